"""Functions that make arrays: from data, from a fill value, from a counter.

Nothing here fills memory before it is evaluated: fill values are constants laid into a shape and ranges
are counters.  `dtype=None` means NumPy's default, which `config.default_dtype` can narrow to float32.
`device` is None (the default backend), "cpu", or the name of a backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from sys import _getframe as frame_of
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.at_once.obstacles import obstacles
from xarr.base.broadcasting import explain_misfit, fits_into
from xarr.base.host_arrays import SCALARS, host_array, only_numbers, scalar_kind
from xarr.base.tracebacks import names_errors, shorten
from xarr.base.typing import Array
from xarr.calls.arguments import (
    MOST_DIMENSIONS,
    DeviceLike,
    arranges_elements,
    as_device,
    check_order,
    convert,
    fill,
    missing_dimensions,
    move_to_device,
)
from xarr.calls.concrete_values import copy_at_once
from xarr.calls.host_functions import ROWS, HostFunction, functions, tries_host
from xarr.calls.operands import DType, as_array, broadcast_operands, fresh, is_weak, promote_operands
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import (
    COMPLEX,
    FLOAT,
    INTEGER,
    PREDICATE,
    canonical,
    check_fits,
    default_float,
    default_of,
    promote_weak,
)
from xarr.errors import (
    ArgumentError,
    BackendError,
    BroadcastError,
    DTypeError,
    InputError,
    RaggedError,
    ValueRangeError,
    XarrError,
    register_function,
)
from xarr.ir.device import Device
from xarr.lax.core import ArrayLike, host_node, integer
from xarr.lax.dynamic_sizes import refuse_dynamic, with_sizes_of
from xarr.numpy_api.creation.ranges import (
    float_range,
    integer_range,
    range_ends,
    range_length,
    range_number,
    space_evenly,
    unusual_range,
)
from xarr.runtime import dlpack
from xarr.runtime.device_arrays import from_device_array, lies_on_device
from xarr.runtime.handles import Handle, commit, from_host, wrap
from xarr.shapes import check_sizes, normalize_axis

__all__ = [
    "arange",
    "array",
    "asarray",
    "copy",
    "empty",
    "empty_like",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

Shape = int | Sequence[int]
INT64 = np.dtype(np.int64)
#: Joins lists of small Arrays and numbers at once.
_join_at_once = HostFunction(ROWS["array"])
functions.append(_join_at_once)
#: Classes of what small Arrays are made of at once.
_AT_ONCE = frozenset({list, tuple, np.ndarray})


# --- from data ------------------------------------------------------------------------------------


def asarray(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    device: DeviceLike = None,
    copy: bool | None = None,
) -> Array:
    """`a` as an Array: an Array, a NumPy array, a number, nested sequences of numbers and Arrays.

    An Array is returned itself if neither element type nor device changes.  The values of a NumPy array
    are copied, since ops recorded now are computed later and must not see what is written into it
    meanwhile; `copy=False` shares its memory instead, and then writing to it is the caller's risk.
    So are those of an array on a GPU, as CuPy's or PyTorch's, but on the GPU: the Array is there, unless
    `device` is another one.

    Random keys stay keys, of their own `dtype`.

    Raises ValueError if `copy=False` is not possible, RaggedError for ragged lists, InputError for objects and for
    strings without a `dtype`, as which they are read,
    DTypeError for an element type that xarr has not.  Source: Array API, `asarray`.
    """
    try:
        check_order("asarray", order)
        if type(a) in _AT_ONCE and device is None and copy in (True, None) and not obstacles:
            made = copy_at_once(a, None if dtype is None else canonical(dtype), frame_of(1))
            if made is None and dtype is None and type(a) is not np.ndarray:
                made = _join_at_once.run((a,), {})
            if made is not None:
                return made
        if isinstance(copy, str):
            raise ArgumentError(f"asarray: wanted True, False or None for copy, got {copy!r}")
        if isinstance(a, Handle):
            return _of_array(as_array(a), dtype, device, copy)
        if hasattr(type(a), "_as_array"):  # random keys, whose class is above this one
            keys: Any = a
            return keys._as_array("asarray", dtype, device, copy)  # type: ignore[no-any-return]
        if _holds_arrays(a):
            if copy is False:
                raise ValueError(
                    "asarray: a sequence of Arrays has no memory to share, so copy=False is not possible"
                )
            return move_to_device(_stack_nested(a, dtype), device)
        if lies_on_device(a):
            return _of_device_array(a, dtype, device, copy)
        there = as_device(device)
        if copy is False:
            if not there.backend.is_on_host:
                raise ValueError(
                    f"asarray: copy=False is not possible: the memory of backend {there.name!r} is not the host's"
                )
            return from_host(_share_memory(a, dtype), there)
        if isinstance(a, (list, tuple, *SCALARS)):
            return wrap(host_node(host_array(a, dtype), there))
        return _from_host(a, None if dtype is None else canonical(dtype), there)
    except XarrError as error:
        shorten(error, register_function("asarray"))
        raise


def _of_device_array(x: Any, dtype: DTypeLike | None, device: DeviceLike, copy: bool | None) -> Array:
    """An array of another library in the memory of a GPU: an Array there, or on `device`."""
    there = None if device is None else as_device(device)
    if there is not None and there.backend.is_on_host:
        if copy is False:
            raise ValueError(
                f"copy=False is not possible: the memory of {type(x).__name__} is not that of {there.name!r}"
            )
        values = dlpack.copied_by_producer(x)
        if values is not None:
            return asarray(values, dtype, device=there)
    return _of_array(from_device_array(x, copy), dtype, device, False if copy is False else None)


def _from_host(obj: Any, wanted: DType | None, device: Device) -> Array:
    source = np.asarray(obj) if isinstance(obj, np.matrix) else dlpack.read(obj)
    # What is no number yet is read as the type that is wanted; numbers are converted as xarr does it.
    kind = getattr(getattr(source, "dtype", None), "kind", "b")  # which types of others, as of keys, lack
    text = isinstance(source, str | bytes | NoneType) or kind in "OUST"
    values = host_array(source, wanted if text else None)
    if wanted is not None and _keeps_kind(values.dtype, wanted):
        with np.errstate(all="ignore"):
            values = values.astype(wanted)
    array = wrap(host_node(values, device))
    return array if wanted is None else convert(array, wanted)


def _keeps_kind(dtype: DType, wanted: DType) -> bool:
    """Whether NumPy converts as xarr does, which saturates where a float leaves the range of an integer."""
    if dtype in COMPLEX:
        return wanted in COMPLEX
    return dtype not in FLOAT or wanted in FLOAT | COMPLEX


def _share_memory(obj: Any, dtype: DTypeLike | None) -> np.ndarray[Any, Any]:
    values = host_array(obj, dtype, copy=False)
    if isinstance(obj, list | tuple):
        raise ValueError("asarray: a list has no memory to share, so copy=False is not possible")
    return values


def _of_array(array: Any, dtype: DTypeLike | None, device: DeviceLike, copy: bool | None) -> Array:
    result: Array = move_to_device(array if dtype is None else convert(array, canonical(dtype)), device)
    if copy is False and result is not array:
        raise ValueError(
            f"asarray: copy=False is not possible: an Array of {array.dtype} must be converted to "
            f"{result.dtype} or moved"
        )
    return fresh(result) if copy and result is array else result


def _holds_arrays(obj: object) -> bool:
    """Whether nested sequences have Arrays among their leaves, or those of other libraries on a GPU."""
    if only_numbers(obj):
        return False
    stack = [obj]
    seen: set[int] = set()  # a list may hold itself
    while stack:
        item = stack.pop()
        if isinstance(item, Handle) or (item is not obj and lies_on_device(item)):
            return True
        if isinstance(item, list | tuple) and id(item) not in seen:
            seen.add(id(item))
            stack.extend(item)
    return False


def _stack_nested(obj: Any, dtype: DTypeLike | None) -> Array:
    """Nested sequences with Arrays among the leaves, joined without looking at a value."""
    parts = [_stack_nested(item, None) if isinstance(item, list | tuple) else item for item in obj]
    arrays = promote_operands("asarray", *parts, dtype=None if dtype is None else canonical(dtype))
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise RaggedError(
            f"a ragged list is not an array: wanted items of equal shape at each level, got {sorted(shapes)}"
        )
    return lax.concatenate([lax.expand_dims(array, (0,)) for array in arrays], 0)


def argument(value: ArrayLike) -> Array:
    """`as_array` of an argument that may be a sequence of Arrays too: they are stacked where they are."""
    if isinstance(value, Handle) or not _holds_arrays(value):
        return as_array(value)
    return _stack_nested(value, None)


@tries_host
def array(
    object: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    ndmin: int = 0,
    ndmax: int = MOST_DIMENSIONS,
    device: DeviceLike = None,
) -> Array:
    """`asarray`, but a new Array by default, with at least `ndmin` dimensions (new ones come first).

    ndmax: how many dimensions nested sequences may have.  Raises ShapeError for more, ValueRangeError for bounds
    above 64.  Source: NumPy, `array`.
    """
    result: Any = asarray(object, dtype, order, device=device, copy=copy)
    missing = missing_dimensions(result.ndim, ndmin, ndmax, isinstance(object, list | tuple))
    if missing <= 0:
        return result  # type: ignore[no-any-return]
    if not isinstance(result, Handle):  # keys
        return result.reshape((1,) * missing + result.shape)  # type: ignore[no-any-return]
    return lax.expand_dims(result, range(missing))


@names_errors
def copy(a: ArrayLike, order: str | None = "K") -> Array:
    """An Array that keeps its value when `a` is written to.  Source: NumPy, `copy`."""
    return array(a, order=order)


@names_errors
def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """An Array of what any object with `__dlpack__` holds, bfloat16 and float8 numbers too.

    The values are copied, since ops recorded now are computed later and must not see what the producer
    writes meanwhile, even if it lends its memory as read-only; `copy=False` shares the memory instead, and
    then writing to it is the caller's risk.  What lies on a GPU is an Array there, if the backend "cupy" works;
    memory of another device than the CPU is read with a `device` that is on the CPU, if the producer can
    copy it there.

    Raises InputError if `x` has no `__dlpack__`, ValueError if `copy=False` is not possible, BackendError
    if the memory cannot be read from the CPU.  Source: Array API, `from_dlpack`; DLPack 1.1.
    """
    if isinstance(x, Handle):
        return _of_array(x, None, device, copy)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise InputError(
            f"from_dlpack: wanted an object with __dlpack__ and __dlpack_device__, got {type(x).__name__}; see "
            "xarr.asarray"
        )
    if lies_on_device(x):
        return _of_device_array(x, None, device, copy)
    try:
        values = dlpack.import_memory(x, device is not None, copy)
    except (BufferError, RuntimeError, ValueError) as error:
        if copy is False:
            raise ValueError(f"from_dlpack: copy=False is not possible: {error}") from error
        raise BackendError(
            f"from_dlpack: the memory of {type(x).__name__} cannot be read: {error}"
        ) from error
    return asarray(values, device=device, copy=copy)


# --- from a fill value ----------------------------------------------------------------------------


@remembers_calls
def zeros(
    shape: Shape, dtype: DTypeLike | None = None, order: str | None = "C", *, device: DeviceLike = None
) -> Array:
    """Zeros (False for bool) of `shape`.  Raises ShapeError for negative sizes.  Source: NumPy, `zeros`."""
    return full(shape, 0, canonical(dtype), order, device=device)


@remembers_calls
def ones(
    shape: Shape, dtype: DTypeLike | None = None, order: str | None = "C", *, device: DeviceLike = None
) -> Array:
    """Ones (True for bool) of `shape`.  Raises ShapeError for negative sizes.  Source: NumPy, `ones`."""
    return full(shape, 1, canonical(dtype), order, device=device)


@remembers_calls
def empty(
    shape: Shape, dtype: DTypeLike | None = None, order: str | None = "C", *, device: DeviceLike = None
) -> Array:
    """`zeros`: an Array is a value, so there is nothing that could be left to be filled in later.

    Source: NumPy and Array API, `empty`.
    """
    return zeros(shape, dtype, order, device=device)


@remembers_calls
def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = "C",
    *,
    device: DeviceLike = None,
) -> Array:
    """An array of `shape` filled with `fill_value`, a scalar or an array that broadcasts to it.

    The element type is that of `fill_value` unless given.  Raises ShapeError for negative sizes,
    BroadcastError if `fill_value` does not broadcast, ValueRangeError for a Python int that `dtype` cannot
    hold.  Source: NumPy, `full`.
    """
    check_order("full", order)
    sizes = check_sizes(shape)
    wanted = None if dtype is None else canonical(dtype)
    if is_weak(fill_value):
        element = default_of(scalar_kind(fill_value)) if wanted is None else wanted
        return fill(sizes, fill_value, element, as_device(device))
    value = asarray(fill_value, device=device)
    value = value if wanted is None else convert(value, wanted)
    return commit(broadcast_array("full", value, sizes), as_device(device))


def broadcast_array(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    """`array` laid into `shape` by NumPy's rule, because the caller asked for it."""
    if not fits_into(array.shape, shape):
        raise BroadcastError(
            f"{name}: an array of shape {array.shape} does not fit the shape {shape}: "
            f"{explain_misfit(array.shape, shape, 'array')}"
        )
    return lax.broadcast_in_dim(array, shape, range(len(shape) - len(array.shape), len(shape)))


def _device_like(a: ArrayLike, device: DeviceLike) -> Device | None:
    return a._node.device if device is None and isinstance(a, Handle) else as_device(device)


def _like(
    a: ArrayLike,
    fill_value: complex,
    dtype: DTypeLike | None,
    order: str | None,
    shape: Shape | None,
    device: DeviceLike,
) -> Array:
    check_order("full_like", order)
    model = as_array(a)
    sizes = model.shape if shape is None else check_sizes(shape)
    element = model.dtype if dtype is None else canonical(dtype)
    result = fill(sizes, fill_value, element, _device_like(a, device))
    return with_sizes_of(result, model) if shape is None else result


@remembers_calls
def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    *,
    shape: Shape | None = None,
    device: DeviceLike = None,
) -> Array:
    """`zeros` with the shape, element type and device of `a` where they are not given.  Source: NumPy."""
    return _like(a, 0, dtype, order, shape, device)


@remembers_calls
def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    *,
    shape: Shape | None = None,
    device: DeviceLike = None,
) -> Array:
    """`ones` with the shape, element type and device of `a` where they are not given.  Source: NumPy."""
    return _like(a, 1, dtype, order, shape, device)


@remembers_calls
def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    *,
    shape: Shape | None = None,
    device: DeviceLike = None,
) -> Array:
    """`zeros_like`; see `empty`.  Source: NumPy and Array API, `empty_like`."""
    return _like(prototype, 0, dtype, order, shape, device)


@partial(arranges_elements, keys=2)
def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    *,
    shape: Shape | None = None,
    device: DeviceLike = None,
) -> Array:
    """`full` with the shape, element type and device of `a` where they are not given.

    Raises ValueRangeError for a Python int that the element type cannot hold.  Source: NumPy, `full_like`.
    """
    check_order("full_like", order)
    model = as_array(a)
    sizes = model.shape if shape is None else check_sizes(shape)
    element = model.dtype if dtype is None else canonical(dtype)
    result = full(sizes, fill_value, element, device=_device_like(a, device))
    return with_sizes_of(result, model) if shape is None else result


# --- from a counter -------------------------------------------------------------------------------


@remembers_calls
def arange(
    start_or_stop: ArrayLike | None = None,
    /,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = 1,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    **start: ArrayLike,
) -> Array:
    """start, start + step … up to but without `stop`; with one argument 0, 1 … start - 1.

    The length is ceil((stop - start) / step), 0 if that is negative; element i is start + i * delta, where
    delta is (start + step) - start in the element type.  That is int64 for integers and the default float
    for floats unless given; NumPy scalars count as the Python number of their value.  `start`
    may be a keyword.  Raises ValueRangeError for step 0, a length that is NaN, or values that the element type
    cannot hold; DTypeError for complex numbers.  Source: NumPy, `arange`.
    """
    wanted = None if dtype is None else canonical(dtype)
    first, last = range_ends(start_or_stop, stop, start)
    return commit(counted_range(first, last, step, wanted), as_device(device))


def counted_range(first: Any, last: Any, step: ArrayLike | None = 1, wanted: DType | None = None) -> Array:
    """`arange` from one number to another, committed to no device."""
    delta = 1 if step is None else range_number("step", step)
    default = default_float() if any(isinstance(v, float) for v in (first, last, delta)) else INT64
    element = default if wanted is None else wanted
    size = range_length(first, last, delta)
    if wanted is None and isinstance(first, int) and isinstance(delta, int) and size > 1:
        check_fits(first + (size - 1) * delta, element, is_requested=True)
    if element in COMPLEX or element == PREDICATE:
        return unusual_range(first, delta, size, element)
    values = integer_range if element in INTEGER else float_range
    return values(first, delta, size, element)


@remembers_calls
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: DeviceLike = None,
) -> Any:
    """`num` evenly spaced values from `start` to `stop`, which is the last one if `endpoint`.

    start, stop: scalars or arrays that broadcast to a shape S; the result has S with a dimension of size
    `num` at `axis`, and a float type (integers are rounded down to an integer `dtype`).  With `retstep` also
    the step, NaN where there is none.  Raises ValueRangeError for a negative num, DTypeError for
    complex ends and a real `dtype`.  Source: NumPy, `linspace`.
    """
    values, distance = spaced_values(start, stop, num, endpoint, dtype, axis)
    values = commit(move_to_device(values, device))
    return (values, commit(move_to_device(distance, device))) if retstep else values


def spaced_values(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> tuple[Array, Array]:
    """The values of `linspace` and their distance, on the device of the ends if they have one."""
    count = integer("linspace", "num", num)
    if count < 0:
        raise ValueRangeError(f"linspace: wanted num >= 0, got {count}")
    is_known = all(is_weak(end) or isinstance(end, np.generic) for end in (start, stop))
    known = (start, stop) if is_known else None
    low, high = promote_operands("linspace", start, stop)
    element = promote_weak(low.dtype, float)
    wanted = element if dtype is None else canonical(dtype)
    if element in COMPLEX and wanted not in COMPLEX:
        raise DTypeError(f"linspace: the complex ends do not fit {wanted}; take .real of them first")
    first, last = broadcast_operands("linspace", convert(low, element), convert(high, element))
    values, step = space_evenly(first, last, count, endpoint, known)
    values = convert(lax.floor(values) if wanted in INTEGER else values, wanted)
    rank = len(values.shape)
    dim = normalize_axis(axis, rank)
    order = [*range(1, dim + 1), 0, *range(dim + 1, rank)]
    return values if dim == 0 else lax.transpose(values, order), step


# --- from several arrays ---------------------------------------------------------------------------


@names_errors
def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """Coordinate arrays from coordinate vectors (others are ravelled), one for each, each with its own element type.

    All have the shape of the vectors' lengths, the first two swapped for indexing "xy"; with `sparse` each
    has its length in its own dimension and 1 elsewhere.  Arrays are values, so `copy` changes nothing.
    Raises ValueRangeError for another indexing.  Source: NumPy, `meshgrid`.
    """
    if indexing not in ("xy", "ij"):
        raise ValueRangeError(f"meshgrid: wanted indexing 'xy' or 'ij', got {indexing!r}")
    vectors = [as_array(x) for x in xi]
    for vector in vectors:
        refuse_dynamic("meshgrid", vector, "lax.broadcast_in_dim")
    vectors = [lax.reshape(vector, (vector.size,)) for vector in vectors]
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = [1, 0]
    shape = [0] * len(axes)
    for vector, axis in zip(vectors, axes, strict=True):
        shape[axis] = vector.shape[0]
    return tuple(
        lax.broadcast_in_dim(vector, _alone(shape, axis) if sparse else shape, (axis,))
        for vector, axis in zip(vectors, axes, strict=True)
    )


def _alone(shape: list[int], axis: int) -> list[int]:
    return [size if dim == axis else 1 for dim, size in enumerate(shape)]
