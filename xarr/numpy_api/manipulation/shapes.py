"""Functions that move elements about: shapes, joining, splitting, reordering.

None of them looks at a value or changes one; results have the element type of the operand, or, where
several arrays are joined, the one that NumPy 2 promotes them to.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.broadcasting import Misfit, align_numpy
from xarr.base.layouts import items_of
from xarr.base.typing import Array
from xarr.calls.arguments import (
    arranges_elements,
    check_casting,
    is_column_major,
    is_listed,
    refuse_arrays_apart,
)
from xarr.calls.operands import DType, as_array, fresh, promote_operands
from xarr.calls.outputs import takes_out
from xarr.dtypes import BOOL, canonical
from xarr.errors import DivisionByZeroError, DTypeError, InputError, ShapeError, counted
from xarr.explanation.late import broadcast_error
from xarr.lax.core import ArrayLike, integers, whole
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.arrays import argument, broadcast_array
from xarr.numpy_api.manipulation.repeating import repeat_by_counts, repeat_uniformly
from xarr.numpy_api.manipulation.rolling import roll_axes, shifts_of
from xarr.runtime.handles import Handle
from xarr.runtime.parts import BROADCAST, FLIP, INDEX, RESHAPE, TRANSPOSE, mark
from xarr.shapes import check_sizes, normalize_axes, normalize_axis

Shape = int | Sequence[int]
Axes = int | Sequence[int]
Arrays = Sequence[ArrayLike] | ArrayLike


# --- shapes ---------------------------------------------------------------------------------------


@arranges_elements
def reshape(a: ArrayLike, /, shape: Shape, order: str = "C", *, copy: bool | None = None) -> Array:
    """The elements in row-major order (column-major for order "F") under another shape.

    One size may be -1: it is what the number of elements leaves.  Arrays are values, so `copy` changes
    nothing.  Raises ShapeError if the sizes do not fit, ArgumentError for an order.  Source: NumPy, `reshape`.
    """
    array = as_array(a)
    sizes = _open_size(array.shape, shape)
    if not is_column_major("reshape", order):
        result = lax.reshape(array, sizes)
    else:
        backwards = lax.reshape(lax.reshape(_reverse_axes(array), (array.size,)), sizes[::-1])
        result = lax.transpose(backwards, range(len(sizes))[::-1])
    return result if copy else mark(array, result, RESHAPE, (sizes, "F" if order == "F" else "C"))


def _reverse_axes(array: Array) -> Array:
    return lax.transpose(array, range(len(array.shape))[::-1])


def _open_size(old: tuple[int, ...], new: Shape) -> tuple[int, ...]:
    """`new` with its negative size, if it has one, replaced by the size that is left."""
    sizes = list(integers("reshape", "shape", new if is_listed(new) else (new,)))
    count = prod(old)
    open_sizes = [axis for axis, size in enumerate(sizes) if size < 0]
    if len(open_sizes) > 1:
        raise ShapeError(f"reshape: only one size may be -1, got {tuple(sizes)}")
    if open_sizes:
        (axis_left,) = open_sizes
        rest = prod(sizes[:axis_left] + sizes[axis_left + 1 :])
        if rest <= 0 or count % rest:
            raise ShapeError(
                f"reshape: the {counted(count, 'element')} of shape {old} cannot be divided among {tuple(sizes)}: "
                f"wanted sizes whose product divides {count}"
            )
        sizes[axis_left] = count // rest
    checked = check_sizes(sizes)
    if prod(checked) != count:
        raise ShapeError(
            f"reshape: shape {old} has {counted(count, 'element')}, shape {checked} wants {prod(checked):,}"
        )
    return checked


@arranges_elements
def ravel(a: ArrayLike, order: str = "C") -> Array:
    """All elements in one dimension, row-major or (order "F") column-major.  Source: NumPy, `ravel`."""
    return reshape(a, (-1,) if as_array(a).size else (0,), order)


def squeeze(a: ArrayLike, axis: Axes | None = None) -> Array:
    """Dimensions of size 1 removed: those of `axis`, or all.

    Raises ShapeError for an axis of another size, AxisError for none at all.  Source: NumPy, `squeeze`.
    """
    array = as_array(a)
    return _mark_reshape(
        array, lax.squeeze(array, None if axis is None else normalize_axes(axis, len(array.shape)))
    )


def _mark_reshape(array: Array, result: Array) -> Array:
    """Mark `result`, which is `array` under another shape, as a part of it."""
    return mark(array, result, RESHAPE, (result.shape, "C"))


@arranges_elements
def expand_dims(a: ArrayLike, axis: Axes) -> Array:
    """New dimensions of size 1 that have the numbers `axis` in the result.

    Raises AxisError for numbers out of the result's rank or named twice.  Source: NumPy, `expand_dims`.
    """
    array = as_array(a)
    count = len(axis) if isinstance(axis, Sequence) else 1
    return _mark_reshape(array, lax.expand_dims(array, normalize_axes(axis, len(array.shape) + count)))


def atleast_1d(*arys: ArrayLike) -> Any:
    """Scalars become vectors of one element; a tuple of arrays for several.  Source: NumPy."""
    return _at_least(arys, lambda shape: shape if shape else (1,))


def atleast_2d(*arys: ArrayLike) -> Any:
    """A vector of n elements becomes (1, n); a tuple of arrays for several.  Source: NumPy."""
    return _at_least(arys, lambda shape: (1,) * (2 - len(shape)) + shape)


def atleast_3d(*arys: ArrayLike) -> Any:
    """(n,) becomes (1, n, 1) and (m, n) becomes (m, n, 1); a tuple for several arrays.  Source: NumPy."""
    return _at_least(arys, _in_three)


def _in_three(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) >= 3:
        return shape
    return (*shape, 1) if len(shape) == 2 else (1, *(shape or (1,)), 1)


def _at_least(arys: tuple[ArrayLike, ...], rule: Any) -> Any:
    arrays = [as_array(ary) for ary in arys]
    results = tuple(_mark_reshape(array, lax.reshape(array, rule(array.shape))) for array in arrays)
    return results[0] if len(results) == 1 else results


# --- order of dimensions --------------------------------------------------------------------------


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Dimension i of the result is dimension axes[i] of `a`; by default in reverse order.

    Raises ShapeError if `axes` is no permutation, AxisError if one is out of range.  Source: NumPy.
    """
    array = as_array(a)
    rank = len(array.shape)
    order = range(rank)[::-1] if axes is None else normalize_axes(axes, rank, name="axes")
    if len(order) != rank:
        raise ShapeError(
            f"transpose: wanted {counted(rank, 'axis')} for shape {array.shape}, got {tuple(order)}"
        )
    return mark(array, lax.transpose(array, order), TRANSPOSE, order)


def transpose_part(array: Array, order: Sequence[int]) -> Array:
    """The dimensions in an order that is a permutation, as a part of `array`."""
    return mark(array, lax.transpose(array, order), TRANSPOSE, tuple(order))


permute_dims = transpose


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two dimensions exchanged.  Raises ShapeError below rank 2.  Source: Array API."""
    array = as_array(x)
    if len(array.shape) < 2:
        raise ShapeError(f"matrix_transpose: wanted an array of rank 2 or more, got shape {array.shape}")
    return swapaxes(array, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Two dimensions exchanged.  Raises AxisError.  Source: NumPy, `swapaxes`."""
    array = as_array(a)
    order = list(range(len(array.shape)))
    one, two = (normalize_axis(axis, len(order)) for axis in (axis1, axis2))
    order[one], order[two] = two, one
    return transpose_part(array, order)


def moveaxis(a: ArrayLike, source: Axes, destination: Axes) -> Array:
    """Move the dimensions `source` to `destination`; the others keep their order.

    Raises AxisError for numbers out of range or named twice, ShapeError for different counts.
    Source: NumPy, `moveaxis`.
    """
    array = as_array(a)
    rank = len(array.shape)
    origins, targets = (
        normalize_axes(source, rank, name="source"),
        normalize_axes(destination, rank, name="destination"),
    )
    if len(origins) != len(targets):
        raise ShapeError(f"moveaxis: wanted as many destinations as sources, got {targets} for {origins}")
    order = [axis for axis in range(rank) if axis not in origins]
    for target, origin in sorted(zip(targets, origins, strict=True)):
        order.insert(target, origin)
    return transpose_part(array, order)


def flip(m: ArrayLike, axis: Axes | None = None) -> Array:
    """Elements in reverse order along `axis` (all by default).  Raises AxisError.  Source: NumPy."""
    array = as_array(m)
    axes = normalize_axes(axis, len(array.shape))
    return mark(array, lax.rev(array, axes), FLIP, axes)


def flipud(m: ArrayLike) -> Array:
    """`flip` along the first dimension.  Raises ShapeError for a scalar.  Source: NumPy."""
    return flip(_of_rank("flipud", m, 1), 0)


def fliplr(m: ArrayLike) -> Array:
    """`flip` along the second dimension.  Raises ShapeError below rank 2.  Source: NumPy."""
    return flip(_of_rank("fliplr", m, 2), 1)


def _of_rank(name: str, a: ArrayLike, rank: int) -> Array:
    array = as_array(a)
    if len(array.shape) < rank:
        raise ShapeError(f"{name}: wanted an array of rank {rank} or more, got shape {array.shape}")
    return array


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate by k times 90 degrees, from the first of `axes` towards the second.

    Raises ShapeError unless there are two axes, AxisError if they are the same.  Source: NumPy, `rot90`.
    """
    array = as_array(m)
    plane = normalize_axes(axes, len(array.shape), name="axes")
    if len(plane) != 2:
        raise ShapeError(f"rot90: wanted two axes, got {plane}")
    quarters = whole("rot90", "k", k) % 4
    if quarters in (0, 2):
        return flip(array, plane if quarters else ())
    return (
        swapaxes(flip(array, plane[1]), *plane) if quarters == 1 else flip(swapaxes(array, *plane), plane[1])
    )


def roll(a: ArrayLike, shift: Axes | Array | Sequence[Array], axis: Axes | None = None) -> Array:
    """Move elements on by `shift`; what leaves at the end enters at the start.

    Without `axis` over the flattened array.  A tuple of shifts goes with a tuple of axes, which may name
    a dimension twice; one of them may be a single number for all.  In a traced function the shifts may depend on
    its arguments.  Of floats the fractions are dropped.  Raises AxisError, ShapeError for different counts,
    ArgumentError for what is no real number.  Source: NumPy, `roll`.
    """
    array, shifts = as_array(a), shifts_of(shift)
    if axis is None:
        return reshape(roll(ravel(array), sum(shifts), 0), array.shape)
    axes = tuple(normalize_axis(one, len(array.shape)) for one in _ints("roll", "axis", axis))
    return fresh(roll_axes(array, shifts, axes))


def _ints(name: str, argument: str, value: Axes) -> tuple[int, ...]:
    return integers(name, argument, value if is_listed(value) else (value,))


# --- repeating ------------------------------------------------------------------------------------


@arranges_elements
def broadcast_to(array: ArrayLike, shape: Shape) -> Array:
    """`array` repeated to `shape` by NumPy's rule; allowed in every mode of `config.broadcasting`.

    Raises BroadcastError, with what would work, if it does not fit.  Source: NumPy.
    """
    source, sizes = as_array(array), check_sizes(shape)
    return mark(source, broadcast_array("broadcast_to", source, sizes), BROADCAST, sizes)


def broadcast_arrays(*arrays: ArrayLike) -> tuple[Array, ...]:
    """The arrays in their common shape; allowed in every mode of `config.broadcasting`.

    Raises BroadcastError if they have none.  Source: NumPy, `broadcast_arrays`.
    """
    sources = [as_array(array) for array in arrays]
    for array in sources:
        refuse_dynamic("broadcast_arrays", array, "lax.broadcast_in_dim")
    shapes = tuple(array.shape for array in sources)
    alignment = align_numpy(*shapes)
    if isinstance(alignment, Misfit):
        raise broadcast_error("broadcast_arrays", shapes)
    return tuple(
        mark(
            array,
            lax.broadcast_in_dim(array, alignment.result, dimensions),
            BROADCAST,
            alignment.result,
        )
        for array, dimensions in zip(sources, alignment.dimensions, strict=True)
    )


@arranges_elements
def tile(A: ArrayLike, reps: Axes) -> Array:
    """`A` repeated reps[i] times along dimension i; the shorter of shape and reps gets ones in
    front.

    True repeats once, False not at all.  Raises ShapeError for negative counts.  Source: NumPy, `tile`.
    """
    array = as_array(A)
    counts = check_sizes(tuple(map(_count, items_of(reps))), name="reps")
    rank = builtins.max(len(counts), len(array.shape))
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - len(array.shape)) + array.shape
    between = [size for pair in zip(counts, sizes, strict=True) for size in pair]
    odd = range(2 * rank)[1::2]
    spread = lax.broadcast_in_dim(lax.reshape(array, sizes), between, odd)
    return lax.reshape(spread, [count * size for count, size in zip(counts, sizes, strict=True)])


def _count(value: Any) -> Any:
    """A bool as the int that it counts as; anything else itself."""
    is_flag = isinstance(value, bool | np.bool_) or (isinstance(value, Handle) and value._node.dtype in BOOL)
    return int(value) if is_flag else value


def repeat(
    a: ArrayLike,
    repeats: int | ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
) -> Array:
    """Each element `repeats` times, next to each other, along `axis` (of the flattened array without one).

    repeats: a count for all elements, or a vector with one for each, which is evaluated, as its sum is the
        size of the result; in a traced function `total_repeat_length` says it, as in jax.numpy: what is
        more is left out, and the last element fills what is missing.

    Raises ShapeError for a negative count, or as many counts as no axis is long, TracedValueError for counts
    without a value, DTypeError for counts that are no integers.  Source: NumPy, `repeat`.
    """
    array = as_array(a)
    array, dim = (ravel(array), 0) if axis is None else (array, normalize_axis(axis, len(array.shape)))
    is_traced = isinstance(repeats, Handle) and repeats._node.traced
    if total_repeat_length is None and not is_traced and np.size(repeats) == 1:
        return repeat_uniformly(array, whole("repeat", "repeats", np.ravel(np.asarray(repeats))[0]), dim)
    return repeat_by_counts(array, as_array(repeats), dim, total_repeat_length)


# --- joining --------------------------------------------------------------------------------------


def _several(name: str, arrays: Arrays) -> list[Array]:
    """The arrays of a sequence, or those along the first dimension of one array."""
    if isinstance(arrays, Handle | np.ndarray):
        return list(unstack(arrays))
    if not hasattr(arrays, "__getitem__"):  # as NumPy asks
        fix = "; a list(…) of it is one" if isinstance(arrays, Iterable) else ""
        raise InputError(f"{name}: wanted a sequence of arrays, got {arrays!r}{fix}")
    return [argument(array) for array in arrays]


def _join(name: str, arrays: list[Array], axis: int, dtype: DTypeLike | None, casting: str) -> Array:
    check_casting(name, casting)
    if not arrays:
        raise ShapeError(f"{name}: wanted at least one array, got none")
    first = arrays[0].shape
    if not first:
        raise ShapeError(
            f"{name}: scalars have no dimension to be joined along; wanted rank 1 or more, or stack"
        )
    dim = normalize_axis(axis, len(first))
    for number, array in enumerate(arrays):
        if len(array.shape) != len(first) or _drop_axis(array.shape, dim) != _drop_axis(first, dim):
            raise ShapeError(
                f"{name}: wanted arrays that differ in size along axis {dim} only, got shape {first} "
                f"for array 0 and {array.shape} for array {number}"
            )
    wanted = None if dtype is None else canonical(dtype)
    if wanted is not None:
        _check_casting(name, arrays, wanted, casting)
    return lax.concatenate(promote_operands(name, *arrays, dtype=wanted), dim)


def _drop_axis(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _check_casting(name: str, arrays: list[Array], dtype: DType, casting: Any) -> None:
    for array in arrays:
        if not np.can_cast(array.dtype, dtype, casting):
            raise DTypeError(
                f"{name}: casting={casting!r} does not allow {array.dtype} to become {dtype}; "
                'casting="unsafe" allows everything'
            )


@arranges_elements
@takes_out("same_kind")
def concatenate(
    arrays: Arrays,
    /,
    axis: int | None = 0,
    out: Array | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> Array:
    """Arrays one after the other along `axis`, or flattened and then one after the other for axis None.

    They have one rank and equal sizes but along `axis`; the element types promote unless `dtype` is given.
    Raises ShapeError, AxisError, DTypeError.  Source: NumPy, `concatenate`; Array API, `concat`.
    """
    refuse_arrays_apart("concatenate", axis)
    parts = _several("concatenate", arrays)
    if axis is None:
        parts, axis = [ravel(array) for array in parts], 0
    return _join("concatenate", parts, axis, dtype, casting)


concat = concatenate


@arranges_elements
@takes_out("same_kind")
def stack(
    arrays: Arrays,
    axis: int = 0,
    out: Array | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> Array:
    """Arrays of one shape along a new dimension that has the number `axis` in the result.

    Raises ShapeError, AxisError, DTypeError.  Source: NumPy and Array API, `stack`.
    """
    refuse_arrays_apart("stack", axis)
    parts = _several("stack", arrays)
    shapes = sorted({array.shape for array in parts})
    if len(shapes) > 1:
        raise ShapeError(f"stack: wanted arrays of one shape, got {', '.join(map(str, shapes))}")
    dim = normalize_axis(axis, len(shapes[0]) + 1) if shapes else 0
    return _join("stack", [lax.expand_dims(array, (dim,)) for array in parts], dim, dtype, casting)


def hstack(tup: Arrays, *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """Arrays joined along the second dimension, vectors along their only one.  Source: NumPy."""
    parts = [atleast_1d(array) for array in _several("hstack", tup)]
    axis = 0 if parts and len(parts[0].shape) == 1 else 1
    return _join("hstack", parts, axis, dtype, casting)


def vstack(tup: Arrays, *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """Arrays joined along the first dimension; vectors count as rows.  Source: NumPy."""
    return _join("vstack", [atleast_2d(array) for array in _several("vstack", tup)], 0, dtype, casting)


def dstack(tup: Arrays, *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """Arrays joined along the third dimension, see `atleast_3d`.  Source: NumPy."""
    return _join("dstack", [atleast_3d(array) for array in _several("dstack", tup)], 2, dtype, casting)


def column_stack(tup: Arrays) -> Array:
    """Vectors as columns, and matrices, side by side.  Source: NumPy, `column_stack`."""
    columns = [
        lax.reshape(array, (array.size, 1)) if len(array.shape) < 2 else array
        for array in _several("column_stack", tup)
    ]
    return _join("column_stack", columns, 1, None, "same_kind")


# --- splitting ------------------------------------------------------------------------------------


def array_split(ary: ArrayLike, indices_or_sections: Axes, axis: int = 0) -> list[Array]:
    """Parts along `axis`: that many, the first ones larger by 1 if need be, or cut before each index.

    Indices mean what they mean in a slice.  Raises AxisError, DivisionByZeroError for fewer than one part.
    Source: NumPy, `array_split`.
    """
    array = as_array(ary)
    dim = normalize_axis(axis, len(array.shape))
    refuse_dynamic("array_split", array, "lax.slice_in_dim", (dim,))
    size = array.shape[dim]
    parts: dict[tuple[int, int], Array] = {}  # of very many parts most are empty

    def part(start: int, stop: int) -> Array:
        low, high, _ = slice(start, stop).indices(size)
        key = low, builtins.max(low, high)
        if key in parts:
            return mark(array, fresh(parts[key]), INDEX, _slice_index(key, dim))
        elements = lax.slice_in_dim(array, *key, axis=dim)
        parts[key] = mark(array, elements, INDEX, _slice_index(key, dim))
        return parts[key]

    cuts = [0, *_cuts("array_split", indices_or_sections, size), size]
    return [part(start, stop) for start, stop in pairwise(cuts)]


def _slice_index(ends: tuple[int, int], axis: int) -> tuple[slice, ...]:
    """The index of a slice along `axis`."""
    return (*[slice(None)] * axis, slice(*ends))


class _TooManyPartsError(ShapeError, MemoryError, OverflowError):
    """NumPy says MemoryError or OverflowError."""


_MOST_PARTS: Final = 2**27


def _cuts(name: str, indices_or_sections: Axes, size: int) -> tuple[int, ...]:
    if is_listed(indices_or_sections):
        return integers(name, "indices_or_sections", indices_or_sections)
    sections = whole(name, "indices_or_sections", indices_or_sections)
    if sections < 1:
        raise DivisionByZeroError(f"{name}: wanted at least one part, got {sections}")
    if sections > _MOST_PARTS:
        raise _TooManyPartsError(f"{name}: a list holds at most {_MOST_PARTS} parts, got {sections}")
    each, larger = divmod(size, sections)
    return tuple(number * each + builtins.min(number, larger) for number in range(1, sections))


def split(ary: ArrayLike, indices_or_sections: Axes, axis: int = 0) -> list[Array]:
    """`array_split` into equal parts, or before each index.

    Raises ShapeError if a number of parts does not divide the size.  Source: NumPy, `split`.
    """
    array = as_array(ary)
    size = array.shape[normalize_axis(axis, len(array.shape))]
    if np.ndim(indices_or_sections) == 0:
        sections = whole("split", "indices_or_sections", indices_or_sections)
        if sections > 0 and size % sections:
            raise ShapeError(
                f"split: {counted(size, 'element')} along axis {axis} make no {sections} equal parts; array_split "
                "allows others"
            )
    return array_split(array, indices_or_sections, axis)


def hsplit(ary: ArrayLike, indices_or_sections: Axes) -> list[Array]:
    """`split` along the second dimension, of vectors along their only one.  Source: NumPy."""
    array = _of_rank("hsplit", ary, 1)
    return split(array, indices_or_sections, 1 if len(array.shape) > 1 else 0)


def vsplit(ary: ArrayLike, indices_or_sections: Axes) -> list[Array]:
    """`split` along the first dimension.  Raises ShapeError below rank 2.  Source: NumPy."""
    return split(_of_rank("vsplit", ary, 2), indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: Axes) -> list[Array]:
    """`split` along the third dimension.  Raises ShapeError below rank 3.  Source: NumPy."""
    return split(_of_rank("dsplit", ary, 3), indices_or_sections, 2)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The arrays that `stack` along `axis` would join to `x`.

    Raises AxisError for a scalar.  Source: Array API, `unstack`.
    """
    array = as_array(x)
    dim = normalize_axis(axis, len(array.shape))
    whole = (slice(None),) * dim
    return tuple(
        mark(array, part, INDEX, (*whole, number)) if part.shape else part
        for number, part in enumerate(lax.unstack(array, dim))
    )
