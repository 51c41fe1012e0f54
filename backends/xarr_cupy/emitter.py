"""Loop programs as CUDA C++: a kernel for each phase.

The words that are known are `grid block` of the outermost loops, whose points threads have, or warps where a loop
inside has the word `warp`; and `grid`, whose points blocks have, around loops with the word `block`.  What needs
others, such as lanes, is refused with a LoopError.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from xarr.compiler.loop_ir.loops import Buffer, Kernel, Loop, LoopError, Memory, Runs, copied_buffers
from xarr_cupy.block_kernels import BlockPrinter, WarpPrinter
from xarr_cupy.spelling import helpers_of
from xarr_cupy.thread_kernels import ThreadPrinter


@dataclass(frozen=True)
class KernelCall:
    """A kernel of a text: its name, the buffers that it takes, and how many blocks run it.

    `copied` is the scratch buffer that it copies to an output, the first of its buffers, if it does nothing else.  It
    may be left out where the output has the memory of the scratch buffer.
    """

    name: str
    buffers: tuple[Buffer, ...]
    blocks: int
    copied: Buffer | None = None


@dataclass(frozen=True)
class KernelSource:
    """A loop program as CUDA C++, and the calls that run it, one after the other."""

    text: str
    calls: tuple[KernelCall, ...]


@lru_cache(1024)
def emit(kernel: Kernel) -> KernelSource:
    """The CUDA C++ of a loop program.  LoopError where it asks for what is not known here."""
    for buffer in kernel.locals:
        if buffer.memory is not Memory.SHARED:
            raise LoopError(f"a thread has no local buffers, wanted {buffer.name}")
    texts, calls = [], []
    for number, phase in enumerate(kernel.phases):
        name = f"xarr_{number}"
        printer = _printer_of(phase)(kernel, phase, name)
        texts.append(printer.text())
        copied = _copied_scratch(kernel, number)
        calls.append(KernelCall(name, printer.buffers, printer.blocks, copied))
    body = "\n".join(texts)
    return KernelSource(f"{helpers_of(body)}\n{body}", tuple(calls))


def _printer_of(phase: Loop) -> type[ThreadPrinter]:
    """Whether a thread, a warp or a block has a point."""
    if phase.runs == Runs.GRID:
        return BlockPrinter
    return WarpPrinter if any(Runs.WARP in loop.runs for loop in phase.walk()) else ThreadPrinter


def _copied_scratch(kernel: Kernel, number: int) -> Buffer | None:
    """The scratch buffer that a phase copies whole to an output, if nothing later writes it or copies it too."""
    pair = copied_buffers(kernel.phases[number])
    if pair is None or pair[0].role != "out" or pair[1].role != "scratch" or pair[0].dtype != pair[1].dtype:
        return None
    later = kernel.phases[number + 1 :]
    copies = [copied_buffers(phase) for phase in later]
    written = {store.buffer for phase in later for loop in phase.walk() for store in loop.stores()}
    is_again = any(other is not None and other[1] is pair[1] for other in copies)
    return None if is_again or pair[1] in written else pair[1]
