"""Side effects in recorded functions: their order is in the graph, and none is lost because a result is not read.

What has a side effect is an ordered node: the function that is recorded keeps it, in the order of the program
(`Graph.ordered`), and what carries a graph that has some, such as a loop or a call, is one too.
"""

from __future__ import annotations

from collections.abc import Sequence

from xarr.errors import InputError
from xarr.ir.graph import Node
from xarr.ir.ops import GetTupleElement
from xarr.ir.types import TupleType
from xarr.runtime.handles import wrap
from xarr.runtime.materialisation import evaluate
from xarr.runtime.trace_stack import Trace, innermost


def add_ordered(node: Node) -> list[Node]:
    """Let an ordered node run, now or when the function runs that is recorded; returns its results.

    Raises InputError in a function that is recorded for something that runs it on scalars, in any order.
    """
    trace = innermost()
    if trace is not None:
        keep_ordered([node])
    results = [node]
    if isinstance(node.type, TupleType):
        results = [Node(GetTupleElement(index), (node,)) for index in range(len(node.type.elements))]
    if trace is None:
        evaluate(*map(wrap, results or [node]))
    return results


def keep_ordered(nodes: Sequence[Node]) -> None:
    """Let the function that is recorded run these, in this order, behind all that it has."""
    trace = innermost()
    if trace is not None and nodes:
        _refuse_scalars(trace)
        for node in nodes:
            node.traced = True
        trace.ordered.extend(nodes)


def _refuse_scalars(trace: Trace) -> None:
    if not trace.allows_effects:
        raise InputError(
            "the function of reduce, sort, map_elements or vectorize computes with single elements, as often and in "
            "the order that the backend chooses, so it cannot have side effects; print or call back outside of it, "
            "with its operands or its result"
        )
