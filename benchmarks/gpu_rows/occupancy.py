"""Occupancy: the part of a multiprocessor's warps that blocks of a kernel fill, by what a block takes.

Source: CUDA C++ Programming Guide 13, "Compute Capabilities" and "Hardware Multithreading"; the granularities are those
of NVIDIA's occupancy calculator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WARP: Final = 32
REGISTERS: Final = 2**16
#: Registers are allocated to a warp in units of so many, warps in units of four.
_REGISTER_UNIT: Final = 256
_WARP_UNIT: Final = 4


@dataclass(frozen=True)
class Multiprocessor:
    """Warps and blocks at most, bytes of shared memory, of which each block has some for the system, and their unit."""

    warps: int
    blocks: int
    shared: int
    reserved: int = 2**10
    shared_unit: int = 128


MULTIPROCESSORS: Final = {
    "sm_75": Multiprocessor(32, 16, 64 << 10, 0, 256),
    "sm_80": Multiprocessor(64, 32, 164 << 10),
    "sm_86": Multiprocessor(48, 16, 100 << 10),
    "sm_89": Multiprocessor(48, 24, 100 << 10),
    "sm_90": Multiprocessor(64, 32, 228 << 10),
    "sm_100": Multiprocessor(64, 32, 228 << 10),
}


def occupancy(architecture: str, threads: int, registers: int, shared: int) -> float:
    """The part of the warps of a multiprocessor that blocks fill.

    threads: of a block; registers: of a thread; shared: bytes of a block.
    """
    limits = MULTIPROCESSORS[architecture]
    warps = -(-threads // WARP)
    of_warp = _round_up(registers * WARP, _REGISTER_UNIT)
    by_registers = REGISTERS // of_warp // _WARP_UNIT * _WARP_UNIT // warps if registers else limits.blocks
    of_block = _round_up(shared + limits.reserved, limits.shared_unit)
    by_shared = limits.shared // of_block if of_block else limits.blocks
    return min(limits.blocks, limits.warps // warps, by_registers, by_shared) * warps / limits.warps


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
