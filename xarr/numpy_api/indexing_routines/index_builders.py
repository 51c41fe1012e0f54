"""Functions and objects that make indices, and grids of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr import lax
from xarr.base.layouts import MAX_SIZE
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.calls.arguments import as_device, is_column_major, is_listed
from xarr.calls.operands import as_array, broadcast_operands
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import BOOL, INTEGER, canonical
from xarr.errors import (
    DTypeError,
    FlatIndexError,
    HugeSizeError,
    IndexingError,
    InputError,
    ShapeError,
)
from xarr.indexing.advanced import valid_indices
from xarr.indexing.bounds import Mode
from xarr.indexing.items import item_of_integers
from xarr.ir.device import Device
from xarr.ir.types import Ints
from xarr.lax.core import ArrayLike, check_callable, integer, integers, items, whole
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.arrays import arange, counted_range, ones, spaced_values, zeros
from xarr.numpy_api.creation.ranges import range_number
from xarr.numpy_api.manipulation.joining import concatenate, stack
from xarr.numpy_api.sorting.searching import nonzero
from xarr.runtime.handles import Handle, commit, from_host
from xarr.shapes import check_sizes

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


__all__ = [
    "c_",
    "diag_indices",
    "diag_indices_from",
    "index_exp",
    "indices",
    "ix_",
    "mask_indices",
    "mgrid",
    "ogrid",
    "r_",
    "ravel_multi_index",
    "s_",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
]


@remembers_calls
def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors as index arrays that select all combinations: x[ix_([0, 2], [1, 3])] is 2 by 2.

    args: vectors of integers or, for the indices where they hold, of bools.  Vector k of n comes back with n
    dimensions, its elements along dimension k.  Raises ShapeError for other ranks, DTypeError for floats.
    Source: NumPy, `ix_`.
    """
    return tuple([_open(each, k, len(args)) for k, each in enumerate(args)])


def _open(part: ArrayLike, k: int, rank: int) -> Array:
    vector = as_array(part)
    if vector.ndim != 1:
        raise ShapeError(f"ix_: wanted vectors, got shape {vector.shape}")
    if not vector.size and not isinstance(part, Handle | np.ndarray):
        vector = lax.convert_element_type(vector, "int64")
    if vector.dtype in BOOL:
        (vector,) = nonzero(vector)
    return _orient(vector, k, rank)


def _orient(vector: Array, k: int, rank: int) -> Array:
    return lax.reshape(vector, [vector.size if dim == k else 1 for dim in range(rank)])


# --- grids -----------------------------------------------------------------------------------------------------


@remembers_calls
def indices(dimensions: Sequence[int], dtype: DTypeLike = int, sparse: bool = False) -> Any:
    """The index of each element of an array of shape `dimensions`: component k of it in row k of the result.

    With `sparse` a tuple of arrays instead, each of size 1 in every dimension but its own.
    Raises ShapeError for negative sizes.  Source: NumPy, `indices`.
    """
    shape = check_sizes(integers("indices", "dimensions", dimensions))
    wanted = canonical(dtype)
    if sparse:
        return tuple(
            [_orient(arange(size, dtype=wanted, device=None), k, len(shape)) for k, size in enumerate(shape)]
        )
    if not shape:
        return zeros((0,), wanted, device=None)
    return commit(stack([lax.broadcasted_iota(wanted, shape, k) for k in range(len(shape))]))


class _MeshGrid:
    """The class of `mgrid` and `ogrid`."""

    def __init__(self, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple | list):
            is_open = isinstance(key, slice) and key.stop is None
            # As NumPy: one range without an end is `arange` of its start alone.
            return commit(_range(slice(0, key.start or 0, key.step) if is_open else key))
        axes = [commit(_range(each)) for each in key]
        if not axes:
            return () if self._sparse else zeros((0,), "int64", device=None)
        dtype = np.result_type(*[axis.dtype for axis in axes])
        axes = [lax.convert_element_type(axis, dtype) for axis in axes]
        if self._sparse:
            return tuple([_orient(axis, k, len(axes)) for k, axis in enumerate(axes)])
        shape = tuple([axis.size for axis in axes])
        return stack([lax.broadcast_in_dim(axis, shape, (k,)) for k, axis in enumerate(axes)])


def _range(part: Any) -> Array:
    """start:stop:step as `arange`; with an imaginary step nj, n numbers from start to stop, both included.

    It is committed to no device, unless an end that is an Array is.
    """
    if not isinstance(part, slice) or part.stop is None:
        raise InputError(f"a grid wants slices with a stop, such as [0:3, 0:1:5j], got {part!r}")
    start = 0 if part.start is None else part.start
    if isinstance(part.step, complex):
        return spaced_values(start, part.stop, int(abs(part.step)))[0]
    return counted_range(range_number("start", start), range_number("stop", part.stop), part.step)


#: mgrid[0:2, 0:3]: the components of each index of a grid, in one array of shape (2, 2, 3).
#: Slices are those of `arange`, or with an imaginary step `linspace`.  Source: NumPy, `mgrid`.
mgrid: Final = _MeshGrid(sparse=False)
#: ogrid[0:2, 0:3]: the same as a tuple of arrays with size 1 in every dimension but their own.
ogrid: Final = _MeshGrid(sparse=True)


class _Concatenation:
    """The class of `r_` and `c_`: arrays, numbers and ranges joined.  A text "axis,rank,first" says how."""

    def __init__(self, axis: int, rank: int, first: int) -> None:
        self._how = axis, rank, first

    def __getitem__(self, key: Any) -> Array:
        parts = key if isinstance(key, tuple) else (key,)
        axis, rank, first = self._how
        if parts and isinstance(parts[0], str):
            axis, rank, first = _directions(parts[0], self._how)
            parts = parts[1:]
        if not parts:
            raise InputError("r_ and c_ want one array, number or slice at least")
        if any(isinstance(part, str) for part in parts):
            raise InputError("r_ and c_ take a string as the first item only")
        return commit(concatenate([_raise_rank(part, rank, first) for part in parts], axis))


def _directions(text: str, default: tuple[int, int, int]) -> tuple[int, int, int]:
    if text in ("r", "c"):
        raise InputError(
            f"r_[{text!r}, …] makes a matrix, which xarr does not have; r_['0,2', …] makes a row"
        )
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise InputError(f"r_ and c_ want 'axis', 'axis,rank' or 'axis,rank,first', got {text!r}")
    return (*numbers, *default[len(numbers) :])  # type: ignore[return-value]


def _raise_rank(part: Any, rank: int, first: int) -> Array:
    """A part with at least `rank` dimensions, its own from `first` on."""
    array = _range(part) if isinstance(part, slice) else as_array(part)
    missing = rank - array.ndim
    if missing <= 0 and array.ndim:
        return array
    shape = array.shape or (1,)
    missing = rank - len(shape)
    if missing <= 0:
        return lax.reshape(array, shape)
    before = missing if first == -1 else min(first % rank if first < 0 else first, missing)
    return lax.reshape(array, (*(1,) * before, *shape, *(1,) * (missing - before)))


#: r_[1:4, 0, x]: ranges, numbers and vectors joined along the first dimension.  Source: NumPy, `r_`.
r_: Final = _Concatenation(0, 1, -1)
#: c_[x, y]: vectors as the columns of a matrix.  Source: NumPy, `c_`.
c_: Final = _Concatenation(-1, 2, 0)


class _Expression:
    """The class of `s_` and `index_exp`: an index as Python reads it."""

    def __init__(self, as_tuple: bool) -> None:
        self._as_tuple = as_tuple

    def __getitem__(self, key: Any) -> Any:
        return (key,) if self._as_tuple and not isinstance(key, tuple) else key


#: x[s_[1:, ::2]] is x[1:, ::2].  Source: NumPy, `s_`.
s_: Final = _Expression(as_tuple=False)
#: The same, a tuple also for one item.
index_exp: Final = _Expression(as_tuple=True)


# --- parts of a matrix -------------------------------------------------------------------------------------------


@remembers_calls
def diag_indices(n: float, ndim: int = 2) -> tuple[Array, ...]:
    """The index of the diagonal of an array with `ndim` dimensions of size `n`: each is `arange(n)`.  Source: NumPy."""
    return _diagonal(n, integer("diag_indices", "ndim", ndim), None)


def _diagonal(n: float, ndim: int, device: Device | None) -> tuple[Array, ...]:
    numbers = arange(n, device=device)
    return (numbers,) * ndim


@remembers_calls
def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """`diag_indices` for an array.  Raises ShapeError unless it has 2 or more dimensions, of one size.

    Source: NumPy, `diag_indices_from`.
    """
    array = as_array(arr)
    shape = array.shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise ShapeError(f"diag_indices_from: wanted 2 or more dimensions of one size, got {shape}")
    return _diagonal(shape[0], len(shape), array._node.device)


@remembers_calls
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The index of what `tril` keeps of an array of shape (n, m): on and below diagonal `k`.  Source: NumPy."""
    return _triangle("tril_indices", n, k, m, np.tril_indices, None)


@remembers_calls
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The index of what `triu` keeps of an array of shape (n, m): on and above diagonal `k`.  Source: NumPy."""
    return _triangle("triu_indices", n, k, m, np.triu_indices, None)


def _triangle(
    name: str,
    n: int,
    k: int,
    m: int | None,
    indices: Callable[[int, int, int], tuple[Any, Any]],
    device: Device | None,
) -> tuple[Array, Array]:
    rows, columns = (whole(name, "a size", size) for size in (n, n if m is None else m))
    host = indices(rows, whole(name, "k", k), columns)
    return from_host(host[0], as_device(device)), from_host(host[1], as_device(device))


@remembers_calls
def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for a matrix.  Raises ShapeError for another rank.

    Source: NumPy, `tril_indices_from`.
    """
    name, matrix = "tril_indices_from", _matrix("tril_indices_from", arr)
    return _triangle(name, matrix.shape[0], k, matrix.shape[1], np.tril_indices, matrix._node.device)


@remembers_calls
def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for a matrix.  Raises ShapeError for another rank.

    Source: NumPy, `triu_indices_from`.
    """
    name, matrix = "triu_indices_from", _matrix("triu_indices_from", arr)
    return _triangle(name, matrix.shape[0], k, matrix.shape[1], np.triu_indices, matrix._node.device)


def _matrix(name: str, arr: ArrayLike) -> Array:
    array = as_array(arr)
    refuse_dynamic(name, array, "xarr.nonzero of a mask")
    if len(array.shape) != 2:
        raise ShapeError(f"{name}: wanted a matrix, got shape {array.shape}")
    return array


@names_errors
def mask_indices(n: int, mask_func: Callable[..., Array], k: Any = 0) -> tuple[Array, ...]:
    """Where mask_func(ones((n, n)), k) differs from 0, for example for `xarr.triu`.  Source: NumPy."""
    check_callable("mask_indices", "mask_func", mask_func)
    return nonzero(mask_func(ones((n, n), dtype="int64", device=None), k))


# --- flat indices ------------------------------------------------------------------------------------------------


def _indices(name: str, values: ArrayLike, axis: int, size: int, mode: Mode, negative: bool = False) -> Array:
    """Integers in [0, size) as int64."""
    dtype = as_array(values).dtype
    if dtype in BOOL:
        values = lax.convert_element_type(as_array(values), "int64")
    elif dtype not in INTEGER:
        raise DTypeError(f"{name}: wanted integers, got {dtype}")
    item = item_of_integers(name, values, from_end=negative)
    try:
        result = valid_indices(
            item, axis, size, mode, None if item.array is None else item.array._node.device
        )
    except IndexingError as error:
        raise FlatIndexError(*error.args) from None
    result = lax.convert_element_type(result, "int64")
    result = result if result.shape == item.shape else lax.reshape(result, item.shape)
    return lax.clamp(np.int64(0), result, np.int64(max(size - 1, 0))) if mode is Mode.CLIP else result


def _sizes(shape: Any) -> Ints:
    """The sizes of a shape: a vector or sequence of ints, or one int.  HugeSizeError for 2**63 elements or more."""
    sizes = check_sizes(tuple(shape) if is_listed(shape) else (shape,))
    if prod(sizes) > MAX_SIZE:
        raise HugeSizeError(f"wanted a shape of less than 2**63 elements, got {sizes}")
    return sizes


def _steps(shape: Ints, column_major: bool) -> Ints:
    """The distance in the flattened array of neighbours along each dimension."""
    if column_major:
        return tuple([prod(shape[:dim]) for dim in range(len(shape))])
    return tuple([prod(shape[dim + 1 :]) for dim in range(len(shape))])


@remembers_calls
def unravel_index(indices: ArrayLike, shape: Any, order: str | None = "C") -> tuple[Array, ...]:
    """Indices into a flattened array as indices into an array of `shape`, an int64 array for each dimension.

    order: "C", the last dimension runs fastest, or "F", the first.  Raises FlatIndexError, an IndexError and a
    ValueError, for what is not in [0, size), IndexingError if that shows when the result is computed, ShapeError
    for several indices without a dimension to lie in, HugeSizeError, DTypeError for floats, ArgumentError for an order.
    Source: NumPy, `unravel_index`.
    """
    steps = _steps(sizes := _sizes(shape), is_column_major("unravel_index", order, "CF"))
    if not sizes and as_array(indices).shape:
        raise ShapeError(
            f"unravel_index: wanted one index for the shape (), got indices of shape {as_array(indices).shape}"
        )
    flat = _indices("unravel_index", indices, 0, prod(sizes), Mode.ERROR)
    rows = zip(sizes, steps, strict=True)
    return tuple([lax.rem(lax.div(flat, max(step, 1)), max(size, 1)) for size, step in rows])


@remembers_calls
def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Any,
    mode: str | Sequence[str] | None = "raise",
    order: str | None = "C",
) -> Array:
    """Indices into an array of shape `dims`, one array for each dimension, as indices into the flattened array.

    mode: "raise", "wrap" or "clip", or one for each dimension; none counts from the end.
    Raises FlatIndexError and HugeSizeError as `unravel_index`, ShapeError for another number of arrays,
    BroadcastError, DTypeError.
    Source: NumPy, `ravel_multi_index`.
    """
    steps = _steps(sizes := _sizes(dims), is_column_major("ravel_multi_index", order, "CF"))
    columns = items("ravel_multi_index", "multi_index", multi_index)
    modes = [mode or "raise"] * len(sizes) if mode is None or isinstance(mode, str) else list(mode)
    if not len(columns) == len(sizes) == len(modes):
        raise ShapeError(
            f"ravel_multi_index: wanted an array of integers for each of {len(sizes)} dimensions, got {len(columns)}"
            f" and {len(modes)} modes"
        )
    rows = enumerate(zip(columns, sizes, modes, strict=True))
    indices = [_indices("ravel_multi_index", each, k, size, Mode.of(one)) for k, (each, size, one) in rows]
    spread = broadcast_operands("ravel_multi_index", *indices)
    terms = [lax.mul(each, step) for each, step in zip(spread, steps, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = lax.add(total, term)
    return total
