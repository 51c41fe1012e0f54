"""A kernel launched by itself, for tests of drivers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xarr_cupy.interface import Driver
from xarr_cupy.runtime.launches import Argument, KernelLaunch, Location


def launch(gpu: Driver, module: Any, name: str, blocks: int, arguments: Sequence[tuple[int, int]]) -> None:
    """Run a kernel of a loaded module; the arguments are pointers, each with its bytes."""
    own = tuple([Argument(Location(slot), nbytes) for slot, (_, nbytes) in enumerate(arguments, 1)])
    table = [0, *[address for address, _ in arguments]]
    gpu.submit(gpu.prepare([KernelLaunch(module, name, blocks, own)]), table)
