"""Operations that carry computations, tuples, and the barrier."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Final

from xarr.base.custom_calls import run_custom_call
from xarr.base.progress import show_progress
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.types import TensorType
from xarr_reference.values import Array, Computation, Rule, Value, cell, empty, indices, pack


def tuple_(node: Node, *operands: Value) -> Value:
    """result = (operand 0, operand 1, …)"""
    return operands


def get_tuple_element(node: Node, operand: tuple[Value, ...]) -> Value:
    """result = operand[index]"""
    return operand[node.op.expect(ops.GetTupleElement).index]


def optimization_barrier(node: Node, *operands: Value) -> Value:
    """result = the operands"""
    return pack(operands)


def call(node: Node, computation: Computation, *operands: Value) -> Value:
    """result = f(operands)"""
    return pack(computation(*operands))


def map_(node: Node, computation: Computation, *arrays: Array) -> Array:
    """result[i] = f(array 0[i], array 1[i], …)"""
    result = empty(node.type)
    for index in indices(result.shape):
        (value,) = computation(*[cell(array, index) for array in arrays])
        result[index] = value[()]
    return result


def while_(node: Node, cond: Computation, body: Computation, *operands: Value) -> Value:
    """result = body(body(… body(operands))), as often as cond of the latest values holds"""
    carried: tuple[Value, ...] = operands
    progress = node.op.expect(ops.While).progress
    with show_progress(progress.label, progress.total(carried)) if progress else nullcontext() as counter:
        while cond(*carried)[0]:
            carried = body(*carried)
            if counter is not None:
                counter.step()
    return pack(carried)


def custom_call(node: Node, *operands: Array) -> Value:
    """result = the registered function(operands)"""
    op = node.op.expect(ops.CustomCall)
    declared = [(type.dtype, type.shape) for type in op.result_types if isinstance(type, TensorType)]
    return pack(
        run_custom_call(op.function or op.call_target_name, dict(op.attribute_items), declared, operands)
    )


def if_(
    node: Node, true_branch: Computation, false_branch: Computation, predicate: Array, *operands: Value
) -> Value:
    """result = true_branch(operands) if the predicate holds, else false_branch(operands)"""
    return pack((true_branch if predicate else false_branch)(*operands))


def case(node: Node, *arguments: Value) -> Value:
    """result = branches[index](operands), the last branch for every index out of range"""
    count = len(node.op.expect(ops.Case).branches)
    branches, index, operands = arguments[:count], int(arguments[count]), arguments[count + 1 :]
    return pack(branches[index if 0 <= index < count else -1](*operands))


TABLE: Final[dict[type[Op], Rule]] = {
    ops.Call: call,
    ops.Case: case,
    ops.CustomCall: custom_call,
    ops.GetTupleElement: get_tuple_element,
    ops.If: if_,
    ops.Map: map_,
    ops.OptimizationBarrier: optimization_barrier,
    ops.Tuple: tuple_,
    ops.While: while_,
}
