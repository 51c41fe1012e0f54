"""Loop programs as CUDA C++: a kernel for each phase.

The words that are known are `grid block` of the outermost loops, whose points threads have, or warps where a loop
inside has the word `warp`; and `grid`, whose points blocks have, around loops with the word `block`.  What needs
others, such as lanes, is refused with a LoopError.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Final

from xarr.compiler.loop_ir.loops import (
    Buffer,
    Kernel,
    Loop,
    LoopError,
    Memory,
    Runs,
    copied_buffers,
    grid_loops,
    loads_of,
    offset_of,
)
from xarr_cupy.codegen.block_kernels import BlockPrinter
from xarr_cupy.codegen.kernel_calls import DECLARATION, KernelCall, KernelSource
from xarr_cupy.codegen.sizes import Sizes
from xarr_cupy.codegen.spelling import helpers_of
from xarr_cupy.codegen.thread_kernels import ThreadPrinter
from xarr_cupy.codegen.vector_kernels import VectorBlockPrinter, VectorPrinter
from xarr_cupy.codegen.warp_kernels import WarpPrinter

#: Phases that differ in sizes alone from which on these are parameters of one kernel, whatever is asked for.
_MANY: Final = 3
#: Parameters of a kernel, of 8 bytes at most, up to which sizes are some of them: CUDA 12.0 has 4,096 bytes.
_MOST_PARAMETERS: Final = 500


@lru_cache(1024)
def emit(
    kernel: Kernel, any_sizes: bool = False, conditions: int = 0, has_vectors: bool = True
) -> KernelSource:
    """The CUDA C++ of a loop program.  LoopError where it asks for what is not known here.

    any_sizes: what depends on the sizes of arrays is passed as an argument, so that programs of other shapes have the
    same text; else it is written as a literal, by which a device divides faster.
    conditions: how many bools, of an array that each kernel takes first, are to be true, or the kernels do nothing.
    has_vectors: whether all arrays lie at multiples of 16 bytes, so that neighbouring elements may be loaded and stored
    together.  They are where sizes are literals: whether there are vectors depends on sizes.
    """
    for buffer in kernel.locals:
        if buffer.memory is not Memory.SHARED:
            raise LoopError(f"a thread has no local buffers, wanted {buffer.name}")
    if any(loop.first is not None for phase in kernel.phases for loop in phase.walk()):
        raise LoopError("no CUDA C++ for a loop that begins at a computed iteration")
    names: dict[str, str] = {}
    calls = []
    for number, (printer, definition) in enumerate(_print_phases(kernel, any_sizes, has_vectors)):
        name = names.setdefault(definition, f"xarr_{len(names)}")
        copied = _copied_scratch(kernel, number)
        calls.append(
            KernelCall(
                name,
                printer.buffers,
                printer.blocks,
                copied,
                tuple(printer.sizes.arguments.values()),
                definition,
                kernel.phases[number].label,
                printer.has_vectors,
                frozenset() if copied is None else _inputs_before(kernel, copied),
                copied_buffers(kernel.phases[number]),
            )
        )
    names = {_under_conditions(rest, conditions): name for rest, name in names.items()}
    body = "\n".join([f"{DECLARATION} {name}{rest}" for rest, name in names.items()])
    return KernelSource(f"{helpers_of(body)}\n{body}", tuple(calls))


def _under_conditions(definition: str, conditions: int) -> str:
    """A kernel that begins by looking at so many bools."""
    if not conditions:
        return definition
    text = " && ".join([f"going[{k}]" for k in range(conditions)])
    parameters, body = definition.split(" {\n", 1)
    return f"(const bool *going, {parameters.removeprefix('(')} {{\n    if (!({text})) return;\n{body}"


def _print_phases(kernel: Kernel, any_sizes: bool, has_vectors: bool) -> list[tuple[ThreadPrinter, str]]:
    """The kernel of each phase, from behind its name on."""
    if any_sizes:
        return [_print_phase(kernel, phase, _printer_of(phase), True) for phase in kernel.phases]
    printers = [_printer_of(phase, has_vectors) for phase in kernel.phases]
    rows = list(zip(kernel.phases, printers, strict=True))
    if len(kernel.phases) < _MANY:
        return [_print_phase(kernel, phase, printer, False) for phase, printer in rows]
    of_any = _print_phases(kernel, True, False)
    counts = Counter(definition for _, definition in of_any)
    return [
        each if counts[each[1]] >= _MANY else _print_phase(kernel, *row, False)
        for row, each in zip(rows, of_any, strict=True)
    ]


def _print_phase(
    kernel: Kernel, phase: Loop, printer_type: type[ThreadPrinter], any_sizes: bool
) -> tuple[ThreadPrinter, str]:
    printer = printer_type(kernel, phase, Sizes(any_sizes))
    definition = printer.definition()
    if len(printer.buffers) + len(printer.sizes.arguments) > _MOST_PARAMETERS and any_sizes:
        return _print_phase(kernel, phase, printer_type, False)
    return printer, definition


def _printer_of(phase: Loop, has_vectors: bool = False) -> type[ThreadPrinter]:
    """Whether a thread, a warp or a block has a point, or a thread several points."""
    if phase.runs == Runs.GRID:
        return VectorBlockPrinter if has_vectors else BlockPrinter
    if any(Runs.WARP in loop.runs for loop in phase.walk()):
        return WarpPrinter
    return VectorPrinter if has_vectors and grid_loops(phase)[-1].width > 1 else ThreadPrinter


def _copied_scratch(kernel: Kernel, number: int) -> Buffer | None:
    """The scratch buffer that a phase copies whole to an output, if nothing later writes it or copies it too."""
    pair = copied_buffers(kernel.phases[number])
    if pair is None or pair[0].role != "out" or pair[1].role != "scratch" or pair[0].dtype != pair[1].dtype:
        return None
    later = kernel.phases[number + 1 :]
    copies = [copied_buffers(phase) for phase in later]
    written = {buffer for phase in later for buffer in _buffers_of_stores(phase)}
    is_again = any(other is not None and other[1] is pair[1] for other in copies)
    return None if is_again or pair[1] in written else pair[1]


def _inputs_before(kernel: Kernel, scratch: Buffer) -> frozenset[Buffer]:
    """The inputs that nothing reads once a scratch buffer is written, but its elements those that they become."""
    number, first = next(
        (number, phase) for number, phase in enumerate(kernel.phases) if scratch in _buffers_of_stores(phase)
    )
    read = {load.attribute.buffer for phase in kernel.phases[number + 1 :] for load in loads_of(phase)}
    # In a loop inside an element may be read again.
    is_plain = list(first.walk()) == grid_loops(first) and _buffers_of_stores(first) == {scratch}
    offsets = [(store.offset.constant, dict(store.offset.terms)) for store in grid_loops(first)[-1].stores()]
    for load in loads_of(first):
        own = offset_of(load)
        if not is_plain or any(each != (own.constant, dict(own.terms)) for each in offsets):
            read.add(load.attribute.buffer)
    alike = [
        each
        for each in kernel.inputs
        if (each.size, each.dtype.itemsize) == (scratch.size, scratch.dtype.itemsize)
    ]
    return frozenset(alike) - read


def _buffers_of_stores(phase: Loop) -> set[Buffer]:
    return {store.buffer for loop in phase.walk() for store in loop.stores()}
