"""Groups of operations that run as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from xarr.ir.graph import OncePerGraph
from xarr.ir.memory_use import Peak, nbytes, peak, shown_bytes
from xarr.ir.op import operation
from xarr.ir.ops.composite import Clamp
from xarr.ir.ops.control import Call, GetTupleElement, While
from xarr.ir.ops.custom import CustomCall
from xarr.ir.ops.elementwise import BitcastConvert, Convert, Elementwise, ReducePrecision, Select
from xarr.ir.ops.indexing import DynamicUpdateSlice, Scatter
from xarr.ir.ops.reduction import DotGeneral
from xarr.ir.types import TensorType

if TYPE_CHECKING:
    from xarr.ir.graph import Graph, Node


@operation
class Fusion(Call):
    """A call whose computation a backend runs as loops over `domain`, without arrays in between.

    Made by the fusing stage only.  The loops over the `reduced` dimensions of the domain are those of the
    reductions inside; values after a reduction have the domain's other dimensions.  `describe` says for
    people what the loops cost.
    """

    domain: tuple[int, ...]
    reduced: tuple[int, ...] = ()
    describe: Callable[[Fusion], str] | None = None

    @property
    def called(self) -> str:
        return " and ".join(dict.fromkeys(node.op.called for node in self.computation.results))

    def remark(self, node: Node) -> str | None:
        return None if self.describe is None else f"fusion: {self.describe(self)}"

    def remark_on(self, graph: Graph) -> str:
        found = OncePerGraph(_peak)(graph)
        most, arguments = shown_bytes(found.total), shown_bytes(found.arguments)
        return f"arrays: at most {most} at once, {arguments} of it arguments"


@operation
class NativeWhile(While):
    """A loop that a backend runs in machine code: no step returns to Python.

    Made by the fusing stage only.  `remark_text` says for people how it runs, `checks` which carried values are
    looked at after the last step, and by what.
    """

    remark_text: str = ""
    checks: tuple[tuple[int, CustomCall], ...] = ()

    def remark(self, node: Node) -> str | None:
        return self.remark_text


#: What computes an element from those at the same place, and of what no element is read elsewhere.
_IN_PLACE: Final = (BitcastConvert, Clamp, Convert, Elementwise, ReducePrecision, Select)
#: Arrays below are not worth the trouble: they lie in a cache, and their memory is soon used again.
LEAST_REUSED: Final = 2**15


def reused(graph: Graph, given: Iterable[Node] = ()) -> dict[Node, tuple[tuple[int, int], ...]]:
    """For groups, native loops and updates the results that are written over an operand: (result, operand).

    The operand is the result of one of these, or one of the parameters `given`, and nothing else needs it: it
    is used here for the last time, and before only by such nodes, none of whose results is a view of it.
    """
    last: dict[Node, Node] = {}
    for node in graph.nodes:
        last.update(dict.fromkeys(node.operands, node))
    mixed = _seen_elsewhere(graph, Fusion | NativeWhile).union(graph.results)
    own = {node for node in (*given, *graph.nodes) if node not in mixed and isinstance(node.type, TensorType)}
    own -= {node for node in graph.nodes if not _is_made_here(node)}
    # Who holds a tuple holds its arrays.
    own -= {node for node in own if isinstance(node.op, GetTupleElement) and node.operands[0] in mixed}
    found = {}
    for node in graph.nodes:
        free = {k for k, each in enumerate(node.operands) if each in own and last[each] is node}
        pairs = tuple(_pairs(node, free)) if free else ()
        if pairs:
            found[node] = pairs
    return found


def unshared(graph: Graph) -> frozenset[Node]:
    """The parameters and results whose memory no other of them has once a program of `graph` has run.

    A result among them is made by a group, a native loop or an update, in new memory or over an operand that nothing
    else needs; and there is no view of any, nor has code outside seen it.
    """
    # No product is a view of an operand.
    elsewhere = _seen_elsewhere(graph, Fusion | NativeWhile | DotGeneral)
    count = Counter(map(_array, graph.results))
    seen = {*map(_array, elsewhere), *(array for array, times in count.items() if times > 1)}
    held = elsewhere.union(graph.results)  # who holds a tuple holds its arrays
    made = {
        node
        for node in graph.results
        if _is_made_here(node)
        and _array(node) not in seen
        and not (isinstance(node.op, GetTupleElement) and node.operands[0] in held)
    }
    return frozenset(made.union(set(graph.parameters) - held))


def _array(node: Node) -> tuple[Node, object]:
    """What equal nodes show the same array by: of a loop the value that its body gives, else a part or all."""
    if not isinstance(node.op, GetTupleElement):
        return node, None
    source, index = node.operands[0], node.op.index
    return source, source.op.body.results[index] if isinstance(source.op, NativeWhile) else index


def _seen_elsewhere(graph: Graph, makes_new: Any) -> set[Node]:
    """Nodes that others read than updates and ops of the classes `makes_new`, or that one of these shows.

    makes_new: ops no result of which is a view of an operand, but for what a loop carries through.
    """
    found: set[Node] = set()
    for node in graph.nodes:
        if not (isinstance(node.op, makes_new | GetTupleElement) or _is_update(node)):
            found.update(node.operands)
        elif len(set(node.operands)) < len(node.operands):
            found.update(each for each in node.operands if node.operands.count(each) > 1)
        elif (shown := _carried_through(node)) is not None:
            found.add(shown)
    return found


def _is_update(node: Node) -> bool:
    """Whether a node copies its operands; an update of a scalar is the update itself."""
    return isinstance(node.op, DynamicUpdateSlice) and bool(node.shape)


def _carried_through(node: Node) -> Node | None:
    """The operand of a native loop that a node shows, since no step changes it; None if it shows another array."""
    if not isinstance(node.op, GetTupleElement) or not isinstance(loop := node.operands[0].op, NativeWhile):
        return None
    place = node.op.index
    is_same = loop.body.results[place] is loop.body.parameters[place]
    return node.operands[0].operands[place] if is_same else None


def _is_made_here(node: Node) -> bool:
    """Whether a node is a new array that a group, a native loop or an update makes."""
    if isinstance(node.op, GetTupleElement):
        made = node.operands[0].op
        if isinstance(made, NativeWhile):
            return _carried_through(node) is None
        return isinstance(made, Fusion) and made.describe is not None
    return _is_update(node) or (isinstance(node.op, Fusion) and node.op.describe is not None)


def _pairs(node: Node, free: set[int]) -> Iterator[tuple[int, int]]:
    if isinstance(node.op, NativeWhile):
        yield from (
            (k, k)
            for k, each in enumerate(node.operands)
            if k in free
            and each.tensor_type.nbytes >= LEAST_REUSED
            and node.op.body.results[k] is not node.op.body.parameters[k]
        )
    elif _is_update(node):
        if 0 in free and node.tensor_type.nbytes >= LEAST_REUSED:
            yield 0, 0
    elif isinstance(node.op, Fusion) and node.op.describe is not None:
        for number, operands in enumerate(_overwritable(node.op)):
            fitting = sorted(free.intersection(operands))
            if fitting:
                free.remove(fitting[0])
                yield number, fitting[0]


def written_over(node: Node, operand: Node) -> tuple[tuple[int, int], ...]:
    """The only result of a group and the number of this operand, if it may be written over it; else nothing."""
    if not isinstance(node.op, Fusion) or node.op.describe is None or not isinstance(node.type, TensorType):
        return ()
    (places,) = _overwritable(node.op)
    return tuple((0, k) for k, each in enumerate(node.operands) if each is operand and k in places)


@lru_cache(1024)
def _overwritable(fusion: Fusion) -> tuple[frozenset[int], ...]:
    """For each result of a group the operands over which it may be written.

    These are of its size and read nowhere but at the element that is written, and before it is.
    """
    graph = fusion.computation
    reads: dict[Node, frozenset[int]] = {node: frozenset([k]) for k, node in enumerate(graph.parameters)}
    elsewhere: set[int] = set()
    for node in graph.nodes:
        reads[node] = frozenset().union(*(reads[operand] for operand in node.operands))
        if isinstance(node.op, Scatter) and len(node.operands) == 3:
            # The operand is laid down as the result before anything is combined into it.
            elsewhere.update(*(reads[operand] for operand in node.operands[1:]))
        elif not isinstance(node.op, _IN_PLACE):
            elsewhere |= reads[node]
    found = []
    for node in graph.results:
        domain = node.shape if isinstance(node.op, Scatter) else fusion.domain
        fits = [
            k
            for k, each in enumerate(graph.parameters)
            if each.shape == node.shape == domain
            and each.dtype.itemsize == node.dtype.itemsize
            and node.tensor_type.nbytes >= LEAST_REUSED
        ]
        found.append(reads[node].intersection(fits) - elsewhere if not fusion.reduced else frozenset())
    return tuple(found)


def _turning(loop: NativeWhile) -> int:
    """Bytes of the arrays that take turns with the results, where a native loop repeats a group."""
    sources = [
        node.operands[0] if isinstance(node.op, GetTupleElement) else node for node in loop.body.results
    ]
    pairs = zip(sources, loop.body.results, strict=True)
    return sum(nbytes(node.type) for source, node in pairs if isinstance(source.op, Fusion))


def inside(node: Node) -> int:
    """Bytes of arrays that the computations of an op make and let go; groups make none."""
    return _inside(node, OncePerGraph(_peak))


def _peak(graph: Graph, inner: OncePerGraph[Peak]) -> Peak:
    return peak(graph, partial(_inside, peaks=inner), reused(graph))


def _inside(node: Node, peaks: OncePerGraph[Peak]) -> int:
    if isinstance(node.op, Fusion):
        return 0
    if isinstance(node.op, NativeWhile):
        return _turning(node.op)
    needs = []
    for graph in node.op.graphs:
        found = peaks(graph)
        # A loop holds two states at once, of which its result is one; the result of others is theirs.
        shared = 0 if isinstance(node.op, While) else sum(map(nbytes, graph.result_types))
        needs.append(found.total - found.arguments - shared)
    return max([0, *needs])
