"""How much memory a loop program reads, writes and takes: what a group of operations costs.

A buffer is counted once for each pass over it.  Loops that follow one another inside an iteration of an outer
loop are one pass if what the iteration touches fits into a processor's own cache, else one each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from xarr.compiler.loop_ir.loops import Buffer, Kernel, Loop, Memory
from xarr.compiler.loop_ir.scalars import Value, in_order
from xarr.ir.memory_use import shown_bytes


@dataclass(frozen=True)
class Traffic:
    """Bytes: `least_read` and `least_written` are those of each input that is used and each output, once."""

    read: int
    least_read: int
    written: int
    least_written: int
    scratch: int
    local: int

    def __str__(self) -> str:
        parts = [
            f"reads {shown_bytes(self.read)} (least {shown_bytes(self.least_read)})",
            f"writes {shown_bytes(self.written)} (least {shown_bytes(self.least_written)})",
        ]
        parts += [f"scratch {shown_bytes(self.scratch)}"] if self.scratch else []
        parts += [f"keeps {shown_bytes(self.local)} a thread"] if self.local else []
        return ", ".join(parts)


def traffic(kernel: Kernel, cache_bytes: int) -> Traffic:
    """Bytes that one call of the kernel reads and writes; scratch counts, local buffers stay in a cache."""
    passes = [touched for phase in kernel.phases for touched in _passes(phase, cache_bytes)]
    inputs: dict[Buffer, int] = {}
    for touched in passes:
        for buffer, count in touched.items():
            inputs[buffer] = max(inputs.get(buffer, 0), count)
    results = sum(buffer.nbytes for buffer in kernel.outputs)
    scratch = sum(buffer.nbytes for buffer in kernel.scratch)
    return Traffic(
        read=sum(map(_nbytes, passes)),
        least_read=_nbytes({b: count for b, count in inputs.items() if b.role == "in"}),
        written=results + scratch,
        least_written=results,
        scratch=scratch,
        local=sum(buffer.nbytes for buffer in kernel.locals),
    )


def _nbytes(touched: dict[Buffer, int]) -> int:
    return sum(count * buffer.dtype.itemsize for buffer, count in touched.items())


def _passes(phase: Loop, cache_bytes: int) -> Iterator[dict[Buffer, int]]:
    """Elements of each buffer that each pass of a phase reads."""
    extents = {loop.index: loop.max_iterations for loop in phase.walk()}
    together = _touched_elements([phase], extents)
    around, iterations = phase, extents[phase.index]
    while len(inner := [part for part in around.body if isinstance(part, Loop)]) == 1:
        around = inner[0]
        iterations *= extents[around.index]
    if len(inner) < 2 or _nbytes(together) <= cache_bytes * iterations:
        yield together
    else:
        for loop in inner:
            yield _touched_elements([loop], extents)


def _touched_elements(loops: Iterable[Loop], extents: dict[Value, int]) -> dict[Buffer, int]:
    elements: dict[Buffer, int] = {}
    roots = [root for loop in loops for each in loop.walk() for root in each.roots()]
    for value in in_order(*roots):
        if value.op == "load" and value.attribute.buffer.memory is Memory.GLOBAL:
            buffer = value.attribute.buffer
            indices = [each for each in in_order(*_offset_values(value)) if each.op == "index"]
            count = prod(extents[index] for index in indices)
            elements[buffer] = min(buffer.size, elements.get(buffer, 0) + count)
    return elements


def _offset_values(load: Value) -> tuple[Value, ...]:
    """The values that say where a load reads, not whether."""
    return load.operands[: len(load.attribute.factors)]
