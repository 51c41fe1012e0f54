"""Which dimensions of an operation's result are dynamic: one row for each class of ops.

A rule gets the op, the operand types and the result type that the op's own shape rule gives for the bounds;
it marks which dimensions of that result are dynamic.  `xarr.compiler.dynamic.make_static` computes their live sizes,
and has one row for each row here.

* D0: the op has a rule.
* D1: broadcast_in_dim stretches no dynamic dimension of bound 1 along a larger one.
* D2: reshape maps a dynamic dimension to one, merges it into one, or splits it alone.
* D3: what must be known to lay out the result is static: index vectors of gather and scatter, and the
  last dimension of a bitcast to a wider type.
* D4: a dynamic window dimension of the updates of a scatter covers that dimension of the operand, which no
  component of an index vector indexes.
* D7: select_and_scatter slides its windows along static dimensions alone.
* D8: the spatial dimensions of a kernel are static, and so is all that falls into groups in a convolution.
* D6: the bound of a dynamic dimension is an int32.
* D5: a constant and an iota are static.

Sources: XLA's shape inference and its DynamicDimensionInference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from xarr.base.frozen_dataclasses import record
from xarr.ir.op import DYNAMIC_RULES, Op
from xarr.ir.ops.composite import Clamp
from xarr.ir.ops.control import Map, OptimizationBarrier
from xarr.ir.ops.convolution import Convolution
from xarr.ir.ops.elementwise import BitcastConvert, Convert, Elementwise, ReducePrecision, Select
from xarr.ir.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather, Scatter
from xarr.ir.ops.movement import BroadcastInDim, Concatenate, Pad, Reshape, Reverse, Slice, Transpose
from xarr.ir.ops.reduction import DotGeneral, Reduce, Sort
from xarr.ir.ops.systems import Check
from xarr.ir.ops.windows import ReduceWindow, SelectAndScatter
from xarr.ir.types import Ints, TensorType, TupleType, Type, pack_types

Types = tuple[TensorType, ...]


def mark_dynamic(result: Type, dimensions: Iterable[int]) -> Type:
    """`result`, an array or a tuple of arrays, with these dynamic dimensions."""
    dims = tuple(dimensions)
    if isinstance(result, TensorType):
        return result.with_dynamic(dims)
    return TupleType(tuple([mark_dynamic(element, dims) for element in result.elements]))


def dynamic_in_any(types: Iterable[TensorType]) -> Ints:
    """The dimensions that are dynamic in one of the types or more."""
    return tuple(sorted({dim for type in types for dim in type.dynamic_dimensions}))


def _same_dimensions(op: Op, types: Types, result: Type) -> Type:
    return mark_dynamic(result, dynamic_in_any(types))


def _first_operand(op: Op, types: Types, result: Type) -> Type:
    return mark_dynamic(result, types[0].dynamic_dimensions)


def _bitcast(op: BitcastConvert, types: Types, result: TensorType) -> Type:
    (operand,) = types
    if result.rank < operand.rank and operand.rank - 1 in operand.dynamic_dimensions:
        op.fail(
            "D3", f"the last dimension of {operand.short()} becomes part of {op.dtype} and must be static"
        )
    return mark_dynamic(result, operand.dynamic_dimensions)


def _broadcast(op: BroadcastInDim, types: Types, result: TensorType) -> Type:
    (operand,) = types
    for dim in operand.dynamic_dimensions:
        target = op.broadcast_dimensions[dim]
        if operand.shape[dim] != result.shape[target]:
            op.fail(
                "D1",
                f"dimension {dim} of {operand.short()} may be empty and stretches to no size "
                f"{result.shape[target]}; set_dimension_size(x, 1, {dim}) makes it static",
            )
    return mark_dynamic(result, [op.broadcast_dimensions[dim] for dim in operand.dynamic_dimensions])


def _transpose(op: Transpose, types: Types, result: Type) -> Type:
    return mark_dynamic(result, [op.permutation.index(dim) for dim in types[0].dynamic_dimensions])


def _slice(op: Slice, types: Types, result: TensorType) -> Type:
    """A single element of a dynamic dimension is a static one, as in XLA; the whole stays as it is."""
    sizes = zip(types[0].shape, result.shape, strict=True)
    kept = [whole == size or size != 1 for whole, size in sizes]
    return mark_dynamic(result, [dim for dim in types[0].dynamic_dimensions if kept[dim]])


def _reduce(op: Reduce, types: Types, result: Type) -> Type:
    kept = [dim for dim in range(types[0].rank) if dim not in op.dimensions]
    dynamic = dynamic_in_any(types[: len(types) // 2])
    return mark_dynamic(result, [position for position, dim in enumerate(kept) if dim in dynamic])


def dot_sources(op: DotGeneral, types: Types) -> list[list[tuple[int, int]]]:
    """For each dimension of a contraction's result the (operand, dimension) pairs whose size it has."""
    lhs, rhs = types
    batch = zip(op.lhs_batching_dimensions, op.rhs_batching_dimensions, strict=True)
    return [
        *([(0, a), (1, b)] for a, b in batch),
        *([(0, dim)] for dim in op.lhs_free(lhs)),
        *([(1, dim)] for dim in op.rhs_free(rhs)),
    ]


def _dot_general(op: DotGeneral, types: Types, result: Type) -> Type:
    dynamic = {(side, dim) for side, type in enumerate(types) for dim in type.dynamic_dimensions}
    return mark_dynamic(
        result, [k for k, sources in enumerate(dot_sources(op, types)) if dynamic.intersection(sources)]
    )


# --- reshape --------------------------------------------------------------------------------------------


@record
class Regrouping:
    """Dimensions of an operand that hold the same elements as dimensions of its reshaped form."""

    before: Ints
    after: Ints


def regroupings(before: Ints, after: Ints) -> Iterator[Regrouping]:
    """The smallest groups of dimensions of two shapes, of equal size and without 0, in order.

    Dimensions of size 1 are in no group.
    """
    starts, ends = ([dim for dim, size in enumerate(shape) if size != 1] for shape in (before, after))
    while starts:
        own = list(accumulate([before[dim] for dim in starts], lambda a, b: a * b))
        other = list(accumulate([after[dim] for dim in ends], lambda a, b: a * b))
        common = min(set(own) & set(other))
        i, j = own.index(common) + 1, other.index(common) + 1
        yield Regrouping(tuple(starts[:i]), tuple(ends[:j]))
        starts, ends = starts[i:], ends[j:]


def _reshape(op: Reshape, types: Types, result: TensorType) -> Type:
    (operand,) = types
    if operand.shape == result.shape:
        return mark_dynamic(result, operand.dynamic_dimensions)
    if not operand.size or any(operand.shape[dim] == 1 for dim in operand.dynamic_dimensions):
        _refuse_reshape(op, operand, "a bound of 0 or 1 does not say where the dimension goes")
    dimensions: list[int] = []
    for group in regroupings(operand.shape, result.shape):
        dynamic = set(group.before) & set(operand.dynamic_dimensions)
        if dynamic and len(group.before) > 1 and len(group.after) > 1:
            sizes = [operand.shape[dim] for dim in group.before], [result.shape[dim] for dim in group.after]
            _refuse_reshape(op, operand, f"sizes {sizes[0]} and {sizes[1]} share no dimension")
        dimensions += group.after[:1] if dynamic else ()
    return mark_dynamic(result, dimensions)


def _refuse_reshape(op: Reshape, operand: TensorType, why: str) -> None:
    op.fail(
        "D2",
        f"the live size of {operand.short()} under shape {op.shape} is not clear: {why}; merge and split in "
        "two reshapes, or make it static with set_dimension_size(x, bound, dimension)",
    )


# --- windows at positions known late ----------------------------------------------------------------------


def _refuse_dynamic_vectors(op: Gather | Scatter, indices: TensorType) -> None:
    if op.index_vector_dim in indices.dynamic_dimensions:
        op.fail(
            "D3",
            f"dimension {op.index_vector_dim} of {indices.short()} holds index vectors and must be static",
        )


def _gather(op: Gather, types: Types, result: TensorType) -> Type:
    operand, indices = types
    _refuse_dynamic_vectors(op, indices)
    windows = op.windows(operand.bounds, indices.bounds)
    whole = [
        position
        for position, dim in zip(windows.window_dims, windows.kept_dims, strict=True)
        if dim in operand.dynamic_dimensions and operand.shape[dim] == op.slice_sizes[dim]
    ]
    return mark_dynamic(
        result, [*whole, *_batch_dims(op, indices, windows.batch_dims, operand, windows.batching)]
    )


def _batch_dims(
    op: Gather | Scatter,
    indices: TensorType,
    batch_dims: Ints,
    operand: TensorType,
    batching: tuple[tuple[int, int], ...],
) -> list[int]:
    """The dynamic ones among the dimensions of windowed arrays that run over the indices."""
    own = [dim for dim in range(indices.rank) if dim != op.index_vector_dim]
    positions = {position for position, dim in enumerate(own) if dim in indices.dynamic_dimensions}
    positions |= {position for dim, position in batching if dim in operand.dynamic_dimensions}
    return [batch_dims[position] for position in sorted(positions)]


def _dynamic_slice(op: DynamicSlice, types: Types, result: TensorType) -> Type:
    """A whole dynamic dimension stays one; a part of it has the size that was asked for, as in XLA."""
    operand = types[0]
    return mark_dynamic(
        result, [d for d in operand.dynamic_dimensions if operand.shape[d] == result.shape[d]]
    )


def _scatter(op: Scatter, types: Types, result: Type) -> Type:
    count = len(types) // 2
    inputs, indices, updates = types[:count], types[count], types[count + 1 :]
    _refuse_dynamic_vectors(op, indices)
    windows = op.windows(inputs[0].bounds, indices.bounds, updates[0].bounds)
    dynamic = dynamic_in_any(updates)
    for position, dim in zip(windows.window_dims, windows.kept_dims, strict=True):
        is_whole = windows.operand_shape[dim] == updates[0].shape[position] and dim not in windows.index_map
        if position in dynamic and not is_whole:
            op.fail(
                "D4",
                f"window dimension {position} of updates {updates[0].short()} is dynamic, so it must be as large as "
                f"dimension {dim} of {inputs[0].short()}, and no component of an index vector may index it",
            )
    return mark_dynamic(result, dynamic_in_any(inputs))


# --- sliding windows --------------------------------------------------------------------------------------


def _select_and_scatter(op: SelectAndScatter, types: Types, result: TensorType) -> Type:
    operand, source, _ = types
    for dim in dynamic_in_any((operand, source)):
        if not op.window.dimensions[dim].is_trivial:
            op.fail(
                "D7",
                f"windows slide along dimension {dim} of {operand.short()}, which must be static, and so must that "
                f"of the source {source.short()}",
            )
    return mark_dynamic(result, operand.dynamic_dimensions)


def _convolution(op: Convolution, types: Types, result: TensorType) -> Type:
    lhs, rhs = types
    fixed = set(op.rhs_spec[2:])
    grouped = set(op.lhs_spec[:2]) if op.batch_group_count * op.feature_group_count > 1 else set()
    if fixed & set(rhs.dynamic_dimensions) or grouped & set(lhs.dynamic_dimensions):
        op.fail(
            "D8",
            "a kernel has static spatial dimensions, and batch and features that fall into groups are static, "
            f"got {lhs.short()} and {rhs.short()}",
        )
    if grouped and rhs.dynamic:
        op.fail("D8", f"a kernel for groups is static, got {rhs.short()}")
    targets = convolved_dimensions(op)
    dynamic = [(0, dim) for dim in lhs.dynamic_dimensions] + [(1, dim) for dim in rhs.dynamic_dimensions]
    return mark_dynamic(result, [targets[source] for source in dynamic if source in targets])


def convolved_dimensions(op: Convolution) -> dict[tuple[int, int], int]:
    """(operand, its dimension) -> the result's dimension that comes from it."""
    batch, features, *spatial = op.out_spec
    sources = [(0, op.lhs_spec[0]), (1, op.rhs_spec[0]), *[(0, dim) for dim in op.lhs_spec[2:]]]
    return dict(zip(sources, (batch, features, *spatial), strict=True))


DYNAMIC_RULES.update(
    {
        BitcastConvert: _bitcast,
        BroadcastInDim: _broadcast,
        Check: _first_operand,
        Clamp: _same_dimensions,
        Concatenate: _same_dimensions,
        Convert: _same_dimensions,
        Convolution: _convolution,
        DotGeneral: _dot_general,
        DynamicSlice: _dynamic_slice,
        DynamicUpdateSlice: _first_operand,
        Elementwise: _same_dimensions,
        Gather: _gather,
        Map: _same_dimensions,
        OptimizationBarrier: lambda op, types, result: pack_types(types),
        Pad: _first_operand,
        Reduce: _reduce,
        ReduceWindow: _same_dimensions,
        ReducePrecision: _same_dimensions,
        Reshape: _reshape,
        Reverse: _first_operand,
        Scatter: _scatter,
        Select: _same_dimensions,
        SelectAndScatter: _select_and_scatter,
        Slice: _slice,
        Sort: _same_dimensions,
        Transpose: _transpose,
    }
)
