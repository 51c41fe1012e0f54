"""Loops whose steps look whether an index lies in bounds, as loops that end where it does not.

A call that raises is nothing that a native loop can hold.  So the loop carries along, for each such check, the
index that the last step had, and goes on only while all of them are in bounds.  A step with an index outside is
the last one; what it computes with some other element is never used, since after the loop the checks read
the indices that it ended with and raise what they would have raised in that step.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from xarr.compiler.passes.checks import checks_indices, counted_from_start, index_bounds
from xarr.ir import ops
from xarr.ir.constants import full
from xarr.ir.graph import Graph, Node, parameter, rewritten

_INT64: Final = np.dtype(np.int64)


class CheckedLoop(NamedTuple):
    """A loop that carries more: for each check the position of its index, and the number with which that begins."""

    loop: ops.While
    checks: tuple[tuple[int, ops.CustomCall], ...]
    initial: tuple[ops.Constant, ...]


def without_checks(loop: ops.While) -> CheckedLoop | None:
    """The loop with the checks of its body taken out; None if there are none, or such as it cannot carry."""
    calls = [node for node in loop.body.nodes if _checks_one(node)]
    if not calls:
        return None
    count = len(loop.body.parameters)
    checks = tuple(
        (count + k, call.op) for k, call in enumerate(calls) if isinstance(call.op, ops.CustomCall)
    )
    initial = tuple(ops.Constant.of(np.zeros(call.shape, call.dtype)) for call in calls)
    return CheckedLoop(
        ops.While(_cond(loop.cond, calls), _body(loop.body, calls), loop.progress), checks, initial
    )


def _checks_one(node: Node) -> bool:
    """Whether a node checks one index of a dimension that is not empty: 0, with which it begins, is in bounds."""
    return checks_indices(node) and node.tensor_type.size == 1 and index_bounds(node)[1] > 0


def _body(body: Graph, calls: list[Node]) -> Graph:
    parameters = (*body.parameters, *[parameter(call.type) for call in calls])
    results = [*body.results, *[call.operands[0] for call in calls]]
    checked = frozenset(calls)
    return rewritten(
        body.derive({}, results, parameters),
        lambda node, operands: counted_from_start(node, operands[0]) if node in checked else None,
    )


def _cond(cond: Graph, calls: list[Node]) -> Graph:
    (going,) = cond.results
    extra = [parameter(call.type) for call in calls]
    for call, held in zip(calls, extra, strict=True):
        index = held if held.shape == () else Node(ops.Reshape(()), (held,))
        if index.dtype != _INT64:  # what does not fit there is negative then
            index = Node(ops.Convert(_INT64), (index,))
        for direction, bound in zip(("GE", "LT"), index_bounds(call), strict=True):
            fits = Node(ops.Compare(direction), (index, full(bound, (), _INT64)))
            going = Node(ops.And(), (going, fits))
    return cond.derive({}, [going], (*cond.parameters, *extra))
