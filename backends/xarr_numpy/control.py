"""Loops, branches, calls, maps, tuples and the barrier.

In a program on lanes a condition differs from lane to lane: there each branch runs on the lanes that
take it, and a loop on the lanes that still go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Node, element_types
from xarr.ir.types import TensorType
from xarr_numpy.rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Function = Callable[..., tuple[Any, ...]]


# --- kernels -----------------------------------------------------------------------------------------


def while_loop(cond: Function, body: Function, *state: Any) -> tuple[Any, ...]:
    """The carried values after the last iteration."""
    while cond(*state)[0]:
        state = body(*state)
    return state


def branch(index: Any, functions: Sequence[Function]) -> Function:
    """Function number `index`, the last one if there is no such number."""
    return functions[int(index)] if 0 <= index < len(functions) else functions[-1]


def map_lanes(function: Function, *arrays: Any) -> Any:
    """The one result of a program on lanes, in the shape of the arrays."""
    return np.broadcast_to(function(*arrays)[0], np.broadcast_shapes(*map(np.shape, arrays)))


def while_lanes(cond: Function, body: Function, *state: Any) -> tuple[Any, ...]:
    """`while_loop` for each lane on its own."""
    shape = np.broadcast_shapes(*map(np.shape, state))
    current = [np.broadcast_to(value, shape).reshape(-1) for value in state]
    final = [value.copy() for value in current]
    lanes = np.arange(current[0].size)
    while lanes.size:
        going = np.broadcast_to(cond(*current)[0], lanes.shape)
        for result, value in zip(final, current, strict=True):
            result[lanes[~going]] = value[~going]
        lanes = lanes[going]
        if lanes.size:
            found = body(*[value[going] for value in current])
            current = [np.broadcast_to(value, lanes.shape) for value in found]
    return tuple(result.reshape(shape) for result in final)


def branch_lanes(
    index: Any, functions: Sequence[Function], dtypes: Sequence[np.dtype[Any]], *operands: Any
) -> tuple[Any, ...]:
    """For each lane the results of function number `index`, of the last one if there is no such number."""
    shape = np.broadcast_shapes(np.shape(index), *map(np.shape, operands))
    outside = (index < 0) | (index >= len(functions))
    chosen = np.broadcast_to(np.where(outside, len(functions) - 1, index), shape)
    results = tuple(np.empty(shape, dtype) for dtype in dtypes)
    for number, function in enumerate(functions):
        lanes = chosen == number
        if lanes.any():
            found = function(*[np.broadcast_to(value, shape)[lanes] for value in operands])
            for result, value in zip(results, found, strict=True):
                result[lanes] = value
    return results


# --- rows --------------------------------------------------------------------------------------------


def _names(emitter: Emitter, operands: Sequence[Node]) -> str:
    return ", ".join(emitter.full(operand) for operand in operands)


def _packed(node: Node, call: str) -> str:
    """The expression of an op's value from one for the tuple of its results."""
    return f"{call}[0]" if isinstance(node.type, TensorType) else call


def _tuple(emitter: Emitter, node: Node) -> str:
    return f"({''.join(f'{emitter.full(operand)}, ' for operand in node.operands)})"


def _get_tuple_element(emitter: Emitter, node: Node) -> str:
    assert isinstance(node.op, ops.GetTupleElement)
    return f"{emitter.full(node.operands[0])}[{node.op.index}]"


def _barrier(emitter: Emitter, node: Node) -> str:
    return _packed(node, _tuple(emitter, node))


def _call(emitter: Emitter, node: Node) -> str:
    assert isinstance(node.op, ops.Call)
    return _packed(node, f"{emitter.function(node.op.computation)}({_names(emitter, node.operands)})")


def _map(emitter: Emitter, node: Node) -> str:
    assert isinstance(node.op, ops.Map)
    return f"map_lanes({emitter.function(node.op.computation, lanes=True)}, {_names(emitter, node.operands)})"


def _while(emitter: Emitter, node: Node) -> str:
    assert isinstance(node.op, ops.While)
    loop = "while_lanes" if emitter.lanes and node.operands else "while_loop"
    parts = [emitter.function(graph) for graph in node.op.graphs] + [
        emitter.full(operand) for operand in node.operands
    ]
    return _packed(node, f"{loop}({', '.join(parts)})")


def _if(emitter: Emitter, node: Node) -> str:
    functions = [emitter.function(graph) for graph in node.op.graphs]
    predicate, operands = emitter.full(node.operands[0]), node.operands[1:]
    if emitter.lanes:
        return _packed(node, _lanes_call(emitter, node, f"np.where({predicate}, 0, 1)", functions))
    return _packed(node, f"({functions[0]} if {predicate} else {functions[1]})({_names(emitter, operands)})")


def _case(emitter: Emitter, node: Node) -> str:
    functions = [emitter.function(graph) for graph in node.op.graphs]
    index, operands = emitter.full(node.operands[0]), node.operands[1:]
    if emitter.lanes:
        return _packed(node, _lanes_call(emitter, node, index, functions))
    return _packed(node, f"branch({index}, ({', '.join(functions)},))({_names(emitter, operands)})")


def _lanes_call(emitter: Emitter, node: Node, index: str, functions: Sequence[str]) -> str:
    types = element_types(node.type)
    dtypes = [emitter.constant(each.dtype) for each in types if isinstance(each, TensorType)]
    operands = "".join(f", {emitter.full(operand)}" for operand in node.operands[1:])
    return (
        f"branch_lanes({index}, ({', '.join(functions)},), ({''.join(f'{d}, ' for d in dtypes)}){operands})"
    )


SCOPE: Final[dict[str, Any]] = {
    f.__name__: f for f in (while_loop, branch, map_lanes, while_lanes, branch_lanes)
}

ROWS: Final[Rows] = {
    ops.Call: _call,
    ops.Case: _case,
    ops.GetTupleElement: _get_tuple_element,
    ops.If: _if,
    ops.Map: _map,
    ops.OptimizationBarrier: _barrier,
    ops.Tuple: _tuple,
    ops.While: _while,
}
