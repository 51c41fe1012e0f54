"""Side effects in recorded functions: their order is in the graph, and none is lost because a result is not read.

A side effect is an operation that takes the token of the one before it, and gives its own.  A function that has side
effects gets the token that its first one follows as one more argument, and has that of its last one as one more
result; so has a loop that carries it, or a branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from xarr.base.host_arrays import scalar
from xarr.dtypes import canonical
from xarr.errors import InputError
from xarr.ir.graph import Node, parameter
from xarr.ir.ops import Constant, GetTupleElement
from xarr.ir.types import TensorType, TupleType
from xarr.runtime.handles import Handle, wrap
from xarr.runtime.materialisation import evaluate
from xarr.runtime.trace_stack import Trace, innermost

#: The type of a token.
TOKEN: Final = TensorType((), canonical("int32"))
#: What the first side effect follows.
START: Final = Node(Constant.of(scalar(0, TOKEN.dtype)))


def last_effect() -> Node:
    """The token of the last side effect so far, which the next one must follow.

    Raises InputError in a function that is recorded for something that runs it on scalars, in any order.
    """
    trace = innermost()
    if trace is None:
        return START
    _refuse_scalars(trace)
    assert trace.effects is not None
    if not trace.effects:
        trace.effects.append(parameter(TOKEN))
    return trace.effects[-1]


def _refuse_scalars(trace: Trace) -> None:
    if trace.effects is None:
        raise InputError(
            "the function of reduce, sort, map_elements or vectorize computes with single elements, as often and in "
            "the order that the backend chooses, so it cannot have side effects; print or call back outside of it, "
            "with its operands or its result"
        )


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


def add_effect(token: Handle, results: Iterable[Handle] = ()) -> None:
    """Let what gave `token` and the other `results` happen: now, or when the function runs that is recorded."""
    trace = innermost()
    if trace is None:
        evaluate(*results, token)
    else:
        assert trace.effects
        trace.effects.append(token._node)
