"""How each operation computes on arrays of dynamic sizes: one row for each row of `xarr.ir.ops.dynamic_rules`.

A row gets the node and its operands as Live arrays, and gives the Live arrays of its results.  Whatever
mixes elements along a dynamic dimension sees a neutral value behind the live part, or does not see it.
Where two operands disagree on a live size, a size of 1 stretches (of element-wise operations alone) and the
smaller one counts otherwise.

Source: XLA's DynamicPadder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any, Final

import numpy as np

from xarr.compiler.dynamic.valid_regions import (
    Live,
    append_zeros,
    binary,
    compact,
    fill_padding,
    mask_beyond,
    minus,
    number,
    plus,
    quotient_up,
    shared_sizes,
    shift,
    smaller,
    smallest,
    stretch,
    times,
    windows_in,
    zero,
)
from xarr.compiler.dynamic.window_rules import WINDOW_ROWS
from xarr.ir import ops
from xarr.ir.constants import constant, spread
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.ops.control import unpack_results
from xarr.ir.ops.dynamic_rules import dot_sources, regroupings
from xarr.ir.types import TensorType

Lives = tuple[Live, ...]
Row = Callable[[Node, Lives], Lives]
DType = np.dtype[Any]

_PREDICATE: Final = TensorType((), np.dtype(np.bool_))


# --- element by element -----------------------------------------------------------------------------------


def _elementwise(node: Node, operands: Lives) -> Lives:
    buffers = [operand.buffer for operand in operands]
    sizes = {}
    for dim in shared_sizes(operands):
        candidates = dict.fromkeys(operand.sizes[dim] for operand in operands if dim in operand.sizes)
        sizes[dim] = reduce(_joint_size, candidates)
        if len(candidates) > 1:
            for number, operand in enumerate(operands):
                if dim in operand.sizes:
                    buffers[number] = stretch(buffers[number], dim, operand.sizes[dim])
    return (Live(node.rebuilt(tuple(buffers)), sizes),)


def _joint_size(a: Node, b: Node) -> Node:
    one = number(1)
    a_is_one, b_is_one = (binary(ops.Compare("EQ"), size, one) for size in (a, b))
    otherwise = Node(ops.Select(), (b_is_one, a, smaller(a, b)))
    return Node(ops.Select(), (a_is_one, b, otherwise))


def _check(node: Node, operands: Lives) -> Lives:
    value, good = operands
    return (Live(node.rebuilt((value.buffer, good.buffer)), value.sizes),)


# --- moves ------------------------------------------------------------------------------------------------


def _broadcast(node: Node, operands: Lives) -> Lives:
    (operand,), dims = operands, node.op.attributes()["broadcast_dimensions"]
    sizes = {dims[dim]: size for dim, size in operand.sizes.items()}
    return (Live(node.rebuilt((operand.buffer,)), sizes),)


def _transpose(node: Node, operands: Lives) -> Lives:
    (operand,), permutation = operands, node.op.attributes()["permutation"]
    sizes = {permutation.index(dim): size for dim, size in operand.sizes.items()}
    return (Live(node.rebuilt((operand.buffer,)), sizes),)


def _bitcast(node: Node, operands: Lives) -> Lives:
    (operand,) = operands
    return (Live(node.rebuilt((operand.buffer,)), operand.sizes),)


def _reverse(node: Node, operands: Lives) -> Lives:
    (operand,) = operands
    buffer = node.rebuilt((operand.buffer,))
    for dim in node.op.attributes()["dimensions"]:
        if dim in operand.sizes:
            buffer = shift(buffer, dim, minus(number(buffer.shape[dim]), operand.sizes[dim]))
    return (Live(buffer, operand.sizes),)


def _concatenate(node: Node, operands: Lives) -> Lives:
    dim = node.op.attributes()["dimension"]
    sizes = {k: size for k, size in shared_sizes(operands).items() if k != dim}
    if not any(dim in operand.sizes for operand in operands):
        return (Live(node.rebuilt(tuple(operand.buffer for operand in operands)), sizes),)
    total = node.shape[dim]
    buffer = append_zeros(operands[0].buffer, {dim: total - operands[0].shape[dim]})
    end = operands[0].size(dim)
    for operand in operands[1:]:
        # What is dead at the end of one part is written over by the next.
        starts = [number(0)] * len(buffer.shape)
        starts[dim] = end
        buffer = Node(ops.DynamicUpdateSlice(), (buffer, operand.buffer, *starts))
        end = plus(end, operand.size(dim))
    return (Live(buffer, {**sizes, dim: end}),)


def _pad(node: Node, operands: Lives) -> Lives:
    operand, value = operands
    rows = node.op.attributes()
    buffer = node.rebuilt((fill_padding(operand, value.buffer, operand.sizes), value.buffer))
    sizes = {}
    for dim, size in operand.sizes.items():
        gaps = ops.Maximum()
        between = binary(gaps, minus(size, number(1)), number(0))
        wide = plus(size, times(between, number(rows["interior"][dim])))
        padded = plus(wide, number(rows["low"][dim] + rows["high"][dim]))
        sizes[dim] = binary(gaps, padded, number(0))
    return (Live(buffer, sizes),)


def _slice(node: Node, operands: Lives) -> Lives:
    (operand,) = operands
    rows = node.op.attributes()
    kept = {dim: size for dim, size in operand.sizes.items() if dim in node.tensor_type.dynamic_dimensions}
    # The one element that becomes a static one reads as 0 where it is not live.
    buffer = fill_padding(operand, zero(operand.buffer.dtype), set(operand.sizes) - set(kept))
    sizes = {}
    for dim, size in kept.items():
        start, limit, stride = (rows[name][dim] for name in ("start_indices", "limit_indices", "strides"))
        reached = minus(smaller(size, number(limit)), number(start))
        sizes[dim] = quotient_up(binary(ops.Maximum(), reached, number(0)), stride)
    return (Live(node.rebuilt((buffer,)), sizes),)


def _reshape(node: Node, operands: Lives) -> Lives:
    (operand,) = operands
    shape, result = operand.shape, node.shape
    if shape == result:
        return operands
    buffer, sizes, uneven = operand.buffer, {}, []
    groups = [group for group in regroupings(shape, result) if set(group.before) & set(operand.sizes)]
    for group in groups:
        sizes[group.after[0]] = reduce(times, [operand.size(dim) for dim in group.before])
        if len(group.after) > 1:
            rest = int(np.prod([result[dim] for dim in group.after[1:]]))
            sizes[group.after[0]] = quotient_up(sizes[group.after[0]], rest)
            uneven.append(group.before[0])
    buffer = node.rebuilt((fill_padding(operand, zero(buffer.dtype), uneven),))
    for group in groups:
        if any(dim in operand.sizes for dim in group.before[1:]):
            parts = [(shape[dim], operand.size(dim)) for dim in group.before]
            buffer = compact(buffer, group.after[0], parts)
    return (Live(buffer, sizes),)


# --- whole dimensions ----------------------------------------------------------------------------------------


def _neutral(graph: Graph, dtype: DType) -> Any:
    """The value that changes nothing under a computation of one op, or None where it is not known."""
    op = graph.results[0].op
    if len(graph.nodes) != 1 or set(graph.nodes[0].operands) != set(graph.parameters):
        return None
    return op.identity(dtype) if isinstance(op, ops.Binary) else None


def _reduce(node: Node, operands: Lives) -> Lives:
    op, count = node.op.expect(ops.Reduce), len(operands) // 2
    arrays, starts = operands[:count], [operand.buffer for operand in operands[count:]]
    sizes = shared_sizes(arrays)
    hidden = {dim: size for dim, size in sizes.items() if dim in op.dimensions}
    kept = [dim for dim in range(len(arrays[0].shape)) if dim not in op.dimensions]
    left = {kept.index(dim): size for dim, size in sizes.items() if dim in kept}
    results = _reduce_live(node, op, arrays, starts, hidden)
    return tuple(Live(result, left) for result in results)


def _reduce_live(
    node: Node,
    op: ops.Reduce | ops.ReduceWindow,
    arrays: Lives,
    starts: list[Node],
    hidden: dict[int, Node],
) -> list[Node]:
    buffers = [array.buffer for array in arrays]
    neutral = _neutral(op.computation, buffers[0].dtype) if len(arrays) == 1 else None
    if neutral is not None:
        buffers = [mask_beyond(buffers[0], constant(neutral, buffers[0].dtype), hidden)]
    elif hidden:
        shape = buffers[0].shape
        flags = mask_beyond(
            spread(constant(True, _PREDICATE.dtype), shape), constant(False, _PREDICATE.dtype), hidden
        )
        op = replace(op, computation=_flag_elements(op.computation))
        buffers, starts = [*buffers, flags], [*starts, constant(True, _PREDICATE.dtype)]
    return [*unpack_results(node.rebuilt((*buffers, *starts), op))[: len(arrays)]]


def _reduce_window(node: Node, operands: Lives) -> Lives:
    op, count = node.op.expect(ops.ReduceWindow), len(operands) // 2
    arrays, starts = operands[:count], [operand.buffer for operand in operands[count:]]
    sizes, window = shared_sizes(arrays), op.window.dimensions
    hidden = {dim: size for dim, size in sizes.items() if not window[dim].is_trivial}
    results = _reduce_live(node, op, arrays, starts, hidden)
    fitting = {dim: windows_in(size, window[dim]) for dim, size in sizes.items()}
    return tuple(Live(result, fitting) for result in results)


def _select_and_scatter(node: Node, operands: Lives) -> Lives:
    operand, *others = operands
    return (Live(node.rebuilt((operand.buffer, *[each.buffer for each in others])), operand.sizes),)


def _flag_elements(graph: Graph) -> Graph:
    """A reducer with one more array, of flags: elements whose flag is False are passed over."""
    count = len(graph.parameters) // 2
    left, right = ([parameter(p.type) for p in graph.parameters[:count]] for _ in range(2))
    has_left, has_right = parameter(_PREDICATE), parameter(_PREDICATE)
    both = binary(ops.And(), has_left, has_right)
    results = [
        Node(ops.Select(), (both, combined, Node(ops.Select(), (has_left, a, b))))
        for combined, a, b in zip(graph.inline(*left, *right), left, right, strict=True)
    ]
    either = binary(ops.Or(), has_left, has_right)
    return Graph((*left, has_left, *right, has_right), (*results, either), graph.name)


def _dot_general(node: Node, operands: Lives) -> Lives:
    op, buffers = node.op.expect(ops.DotGeneral), [operand.buffer for operand in operands]
    lhs, rhs = operands
    hidden: tuple[dict[int, Node], dict[int, Node]] = ({}, {})
    for a, b in zip(op.lhs_contracting_dimensions, op.rhs_contracting_dimensions, strict=True):
        lengths = [each.sizes[dim] for each, dim in ((lhs, a), (rhs, b)) if dim in each.sizes]
        if lengths:
            # Both sides, since 0 * inf is not 0.
            hidden[0][a] = hidden[1][b] = smallest(lengths)
    buffers = [mask_beyond(each, zero(each.dtype), dims) for each, dims in zip(buffers, hidden, strict=True)]
    types = (lhs.buffer.tensor_type, rhs.buffer.tensor_type)
    sizes = {}
    for out_dim, sources in enumerate(dot_sources(op, types)):
        lengths = [operands[side].sizes[dim] for side, dim in sources if dim in operands[side].sizes]
        if lengths:
            sizes[out_dim] = smallest(lengths)
    return (Live(node.rebuilt(tuple(buffers)), sizes),)


def _sort(node: Node, operands: Lives) -> Lives:
    op, sizes = node.op.expect(ops.Sort), shared_sizes(operands)
    buffers = tuple(operand.buffer for operand in operands)
    if op.dimension in sizes:
        shape, boolean = buffers[0].shape, _PREDICATE.dtype
        dead = mask_beyond(
            spread(constant(False, boolean), shape),
            constant(True, boolean),
            {op.dimension: sizes[op.dimension]},
        )
        op = ops.Sort(op.dimension, op.is_stable, _live_first(op.comparator))
        buffers = (*buffers, dead)
    results = unpack_results(node.rebuilt(buffers, op))[: len(operands)]
    return tuple(Live(result, sizes) for result in results)


def _live_first(graph: Graph) -> Graph:
    """A comparator with one more pair, of flags: elements whose flag is True come after the others."""
    pairs = [parameter(p.type) for p in graph.parameters]
    a_dead, b_dead = parameter(_PREDICATE), parameter(_PREDICATE)
    (before,) = graph.inline(*pairs)
    differ = binary(ops.Xor(), a_dead, b_dead)
    return Graph((*pairs, a_dead, b_dead), [Node(ops.Select(), (differ, b_dead, before))], graph.name)


# --- sizes ----------------------------------------------------------------------------------------------------


def _get_dimension_size(node: Node, operands: Lives) -> Lives:
    (operand,) = operands
    return (Live(operand.size(node.op.attributes()["dimension"])),)


def _set_dimension_size(node: Node, operands: Lives) -> Lives:
    operand, size = operands
    op = node.op.expect(ops.SetDimensionSize)
    sizes = {dim: size for dim, size in operand.sizes.items() if dim != op.dimension}
    if not op.to_bound:
        bound = number(operand.shape[op.dimension])
        sizes[op.dimension] = smaller(binary(ops.Maximum(), size.buffer, number(0)), bound)
    return (Live(operand.buffer, sizes),)


ROWS: Final[dict[type[Op], Row]] = {
    ops.BitcastConvert: _bitcast,
    ops.BroadcastInDim: _broadcast,
    ops.Check: _check,
    ops.Clamp: _elementwise,
    ops.Concatenate: _concatenate,
    ops.Convert: _elementwise,
    ops.DotGeneral: _dot_general,
    ops.Elementwise: _elementwise,
    ops.GetDimensionSize: _get_dimension_size,
    ops.Map: _elementwise,
    ops.Pad: _pad,
    ops.Reduce: _reduce,
    ops.ReducePrecision: _elementwise,
    ops.ReduceWindow: _reduce_window,
    ops.Reshape: _reshape,
    ops.Reverse: _reverse,
    ops.Select: _elementwise,
    ops.SelectAndScatter: _select_and_scatter,
    ops.SetDimensionSize: _set_dimension_size,
    ops.Slice: _slice,
    ops.Sort: _sort,
    ops.Transpose: _transpose,
    **WINDOW_ROWS,
}
