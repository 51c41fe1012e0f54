"""Programs of little work as a table of steps, which one built-in function runs (xarr_numpy.compiled.builtin_replay).

Such a program is made of kernels and native loops, which all together are soon done.  Every buffer has a slot; those in
between are parts of one block of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, Literal, Protocol

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Graph, Node, element_types
from xarr.ir.types import TensorType
from xarr_numpy.compiled.sharing import Phase
from xarr_numpy.memory import LEAST

#: Where a buffer comes from, and its number there.
Slot = tuple[Literal["argument", "output", "constant", "memory"], int]

#: Bytes of the buffers in between and of constants, at most.
MOST_BYTES: Final = 2**20
#: Buffers in between start at multiples of so many bytes from the start of their block, whose own alignment is
#: that of `malloc`, 16 bytes; kernels rely on no more than an element's.
ALIGNMENT: Final = 64
#: Nanoseconds of work: from the first on Python's lock is let go of meanwhile, from the second on Python runs the
#: steps, and looks for Ctrl-C between them.
SOON: Final = 5_000
LONG: Final = 10_000_000


@dataclass(frozen=True)
class Part:
    """What a kernel or a loop runs: phases whose buffers are its operands, results and scratch.

    scratch: bytes; work: about how many nanoseconds it takes; code: what keeps the functions loaded; loop: which
    carried values are its results, in order, None for a kernel; the others are as they were.
    """

    phases: tuple[Phase, ...]
    scratch: tuple[int, ...]
    work: float
    code: object
    loop: tuple[int, ...] | None = None


class Runs(Protocol):
    """A kernel or a loop: `part` for so many steps, None if it is more than little work."""

    def part(self, steps: int) -> Part | None: ...


@dataclass
class Straight:
    """The steps, each a phase and its buffers, and the buffers that are no arguments."""

    steps: list[tuple[Phase, tuple[Slot, ...]]] = field(default_factory=list)
    outputs: dict[int, TensorType] = field(default_factory=dict)
    constants: list[np.ndarray[Any, Any]] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    nbytes: int = 0
    work: float = 0.0
    codes: list[object] = field(default_factory=list)
    #: Which output each result of the graph is.
    order: list[int] = field(default_factory=list)

    def memory(self, nbytes: int) -> Slot:
        """A buffer that nobody sees."""
        self.offsets.append(self.nbytes)
        self.nbytes += -(-nbytes // ALIGNMENT) * ALIGNMENT
        return "memory", len(self.offsets) - 1


class _Unfit(Exception):
    """The program is of another kind."""


def straight(graph: Graph, runs: Callable[[Node], tuple[Runs, int] | None]) -> Straight | None:
    """The steps of a graph, None if it is not made of little kernels and loops alone.

    `runs` gives what runs a node, and the steps of a loop; None if nothing does.
    """
    try:
        return _Reader(graph, runs).read()
    except _Unfit:
        return None


class _Reader:
    def __init__(self, graph: Graph, runs: Callable[[Node], tuple[Runs, int] | None]) -> None:
        self.graph = graph
        self.runs = runs
        self.found = Straight()
        self.slots: dict[Node, tuple[Slot, ...]] = {
            node: (("argument", k),) for k, node in enumerate(graph.parameters)
        }

    def read(self) -> Straight:
        for node in self.graph.nodes:
            self.slots[node] = self._slots(node)
        found = self.found
        if found.work >= LONG:
            raise _Unfit
        if not found.steps or found.nbytes + sum(each.nbytes for each in found.constants) > MOST_BYTES:
            raise _Unfit
        numbers: dict[int, int] = {}
        for result in self.graph.results:
            ((kind, number),) = self.slots[result]
            if kind != "memory":
                raise _Unfit
            place = numbers.setdefault(number, len(numbers))
            if found.outputs.setdefault(place, result.tensor_type) != result.tensor_type:
                raise _Unfit
            found.order.append(place)
        if any(each.nbytes >= LEAST for each in found.outputs.values()):
            raise _Unfit
        self._name_outputs(numbers)
        return found

    def _name_outputs(self, numbers: dict[int, int]) -> None:
        """Let results be outputs, not parts of the block."""
        found = self.found
        sizes = [*found.offsets[1:], found.nbytes]
        kept = [k for k in range(len(found.offsets)) if k not in numbers]
        lengths = [sizes[k] - found.offsets[k] for k in kept]
        names: dict[Slot, Slot] = {("memory", k): ("output", place) for k, place in numbers.items()}
        names |= {("memory", k): ("memory", place) for place, k in enumerate(kept)}
        found.steps = [
            (phase, tuple([names.get(slot, slot) for slot in buffers])) for phase, buffers in found.steps
        ]
        *found.offsets, found.nbytes = accumulate(lengths, initial=0)

    def _slots(self, node: Node) -> tuple[Slot, ...]:
        """Where the results of a node are."""
        op = node.op
        if isinstance(op, ops.GetTupleElement):
            return (self.slots[node.operands[0]][op.index],)
        if isinstance(op, ops.Constant):
            return self._constant(op.array)
        if isinstance(op, ops.BroadcastInDim) and isinstance(node.operands[0].op, ops.Constant):
            value = node.operands[0].op.array
            if value.size == 1 and node.tensor_type.nbytes <= MOST_BYTES:
                return self._constant(np.full(node.shape, value.reshape(())))
        if isinstance(op, ops.Reshape):
            return self.slots[node.operands[0]]
        return self._computed(node)

    def _constant(self, array: np.ndarray[Any, Any]) -> tuple[Slot, ...]:
        self.found.constants.append(array)
        return (("constant", len(self.found.constants) - 1),)

    def _computed(self, node: Node) -> tuple[Slot, ...]:
        known = self.runs(node)
        part = None if known is None else known[0].part(known[1])
        if part is None:
            raise _Unfit
        found = self.found
        operands = [slot for operand in node.operands for slot in self.slots[operand]]
        types = [each for each in element_types(node.type) if isinstance(each, TensorType)]
        made = range(len(types)) if part.loop is None else part.loop
        results = {place: found.memory(types[place].nbytes) for place in made}
        scratch = [found.memory(nbytes) for nbytes in part.scratch]
        buffers = (*operands, *results.values(), *scratch)
        found.steps += [(phase, buffers) for phase in part.phases]
        found.work += part.work
        if found.work >= LONG:
            raise _Unfit
        found.codes.append(part.code)
        return tuple([results.get(place) or operands[place] for place in range(len(types))])
