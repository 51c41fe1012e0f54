"""Join arrays: along an axis that they have, along a new one, or as blocks of a larger array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import (
    arranges_elements,
    check_casting,
    refuse_arrays_apart,
)
from xarr.calls.operands import as_array, fresh, promote_operands
from xarr.calls.outputs import takes_out
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import (
    canonical,
)
from xarr.errors import (
    InputError,
    ShapeError,
)
from xarr.lax.core import ArrayLike
from xarr.numpy_api.creation.arrays import argument
from xarr.numpy_api.manipulation.shapes import atleast_1d, atleast_2d, atleast_3d, ravel
from xarr.numpy_api.manipulation.splitting import unstack
from xarr.runtime.handles import Handle
from xarr.shapes import normalize_axis

__all__ = ["block", "column_stack", "concat", "concatenate", "dstack", "hstack", "stack", "vstack"]

Arrays = Sequence[ArrayLike] | ArrayLike


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
        check_casting(name, casting, [array.dtype for array in arrays], wanted)
    return lax.concatenate(promote_operands(name, *arrays, dtype=wanted), dim)


def _drop_axis(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


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


@remembers_calls
def hstack(tup: Arrays, *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """Arrays joined along the second dimension, vectors along their only one.  Source: NumPy."""
    parts = [atleast_1d(array) for array in _several("hstack", tup)]
    axis = 0 if parts and len(parts[0].shape) == 1 else 1
    return _join("hstack", parts, axis, dtype, casting)


@remembers_calls
def vstack(tup: Arrays, *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """Arrays joined along the first dimension; vectors count as rows.  Source: NumPy."""
    return _join("vstack", [atleast_2d(array) for array in _several("vstack", tup)], 0, dtype, casting)


@remembers_calls
def dstack(tup: Arrays, *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """Arrays joined along the third dimension, see `atleast_3d`.  Source: NumPy."""
    return _join("dstack", [atleast_3d(array) for array in _several("dstack", tup)], 2, dtype, casting)


@remembers_calls
def column_stack(tup: Arrays) -> Array:
    """Vectors as columns, and matrices, side by side.  Source: NumPy, `column_stack`."""
    columns = [
        lax.reshape(array, (array.size, 1)) if len(array.shape) < 2 else array
        for array in _several("column_stack", tup)
    ]
    return _join("column_stack", columns, 1, None, "same_kind")


@remembers_calls
def block(arrays: Any) -> Array:
    """Arrays joined as nested lists arrange them: the innermost lists along the last dimension, the lists of
    them along the one before, and so on.

    Raises InputError for a tuple, ShapeError for an empty list, lists of different depths, and sizes that
    do not fit.  Source: NumPy, `block`.
    """
    depth = _depth(arrays, ())
    leaves = _leaves(arrays)
    rank = max([depth, *(len(leaf.shape) for leaf in leaves)])
    items = iter([lax.reshape(leaf, (1,) * (rank - len(leaf.shape)) + leaf.shape) for leaf in leaves])

    def join(item: Any, level: int) -> Array:
        if not isinstance(item, list):
            return next(items)
        return concatenate([join(inner, level + 1) for inner in item], axis=level - depth)

    result = join(arrays, 0)
    return result if isinstance(arrays, list) else fresh(result)


def _depth(item: Any, path: tuple[int, ...]) -> int:
    """The depth of nested lists; ShapeError unless all arrays lie equally deep."""
    name = "arrays" + "".join(f"[{index}]" for index in path)
    if isinstance(item, tuple):
        raise InputError(f"block: {name} is a tuple; wanted lists, which alone arrange blocks")
    if not isinstance(item, list):
        return len(path)
    if not item:
        raise ShapeError(f"block: {name} is an empty list; wanted at least one array in each")
    depths = [_depth(inner, (*path, index)) for index, inner in enumerate(item)]
    if len(set(depths)) > 1:
        raise ShapeError(
            f"block: wanted all arrays in lists of one depth, got depths {sorted(set(depths))} in {name}"
        )
    return depths[0]


def _leaves(item: Any) -> list[Array]:
    if not isinstance(item, list):
        return [as_array(item)]
    return [leaf for inner in item for leaf in _leaves(inner)]
