"""The memory that a graph's arrays take while it runs op by op, each freed after its last use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xarr.errors import TooLargeError
from xarr.ir.graph import Graph, Node, element_types
from xarr.ir.types import Type
from xarr.records import record


@record
class Peak:
    """Bytes in use at once at most, and those of the arguments among them, which the caller holds."""

    total: int
    arguments: int


def shown_bytes(count: int) -> str:
    """`12 B`, `1.2 kB`, `1.2 MB`, `1.2 GB`."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def nbytes(type: Type) -> int:
    """Bytes of the arrays of a type; sizes that are not known count with their bounds."""
    return sum(each.nbytes for each in element_types(type))


def out_of_memory(error: MemoryError, node: Node | None) -> TooLargeError:
    """The error for a program that found no memory: it names the array of `node` and the line that built it."""
    if node is None:
        return TooLargeError(f"out of memory: {error}")
    return TooLargeError(
        f"{node.op.called}: out of memory for the result {node.type.short()} of {shown_bytes(nbytes(node.type))} "
        "and what computing it takes; compute it in parts, or ask only for what is needed of it: what is indexed or "
        f"reduced at once need never be whole. Built at {node.source}"
    )


#: For a node the results that take the memory of an operand, which nothing needs any more: (result, operand).
Reuse = Mapping[Node, Sequence[tuple[int, int]]]


def peak(graph: Graph, inside: Callable[[Node], int], reuse: Reuse | None = None) -> Peak:
    """The most memory in use at once; `inside` says what an op needs besides operands and results."""
    arrays = _Arrays(graph, reuse or {})
    last: dict[int, int] = {}
    for place, node in enumerate(graph.nodes):
        for each in (node, *node.operands):
            last.update((array, place) for array in arrays.of[each])
    arguments = sum(nbytes(node.type) for node in graph.parameters)
    kept = {array for node in (*graph.results, *graph.parameters) for array in arrays.of[node]}
    in_use = most = arguments
    for place, node in enumerate(graph.nodes):
        in_use += sum(arrays.nbytes[array] for array in arrays.made.get(node, ()))
        most = max(most, in_use + inside(node))
        done = {array for each in (node, *node.operands) for array in arrays.of[each]} - kept
        in_use -= sum(arrays.nbytes[array] for array in done if last[array] == place)
    return Peak(most, arguments)


class _Arrays:
    """The arrays in memory, by number: those of each node, of which views share some, and those it makes."""

    def __init__(self, graph: Graph, reuse: Reuse) -> None:
        self.of: dict[Node, tuple[int, ...]] = {}
        self.made: dict[Node, tuple[int, ...]] = {}
        self.nbytes: list[int] = []
        for node in graph.parameters:
            self.of[node] = self._new(node, {})
        for node in graph.nodes:
            if node in self.of:
                continue
            number = node.op.result_number(node)
            if number is not None:
                found = self.of[node.operands[0]]
                # A tuple that was an argument may show several arrays as one.
                self.of[node] = found[number : number + 1] or found
            elif node.op.is_view:  # the array lives as long as the view
                self.of[node] = self.of[node.operands[0]]
            else:
                taken = {result: self.of[node.operands[k]][0] for result, k in reuse.get(node, ())}
                self.of[node] = self._new(node, taken)
                self.made[node] = tuple(array for array in self.of[node] if array not in taken.values())

    def _new(self, node: Node, taken: Mapping[int, int]) -> tuple[int, ...]:
        found = []
        for number, type in enumerate(element_types(node.type)):
            if number not in taken:
                self.nbytes.append(nbytes(type))
            found.append(taken.get(number, len(self.nbytes) - 1))
        return tuple(found)
