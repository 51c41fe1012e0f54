"""NumPy's ways to read memory that have a meaning for values: bits as another type, the numbers in a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill, truth
from xarr.calls.operands import DType, fresh
from xarr.calls.remembered_calls import runner
from xarr.dtypes import BOOL, COMPLEX, SUB_BYTE, canonical, element_type, real_part_of
from xarr.errors import ArgumentError, DTypeError, ShapeError
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.arrays import asarray, empty
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import device_of, to_host
from xarr.runtime.view_tracking import INDEX, VIEW, mark

_BYTE = np.dtype(np.uint8)


def ndarray_of(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    buffer: Any = None,
    offset: int = 0,
    strides: Sequence[int] | None = None,
    order: Any = None,
) -> Array:
    """Zeros of `shape`, or a copy of what `buffer` holds from byte `offset` on, laid out by `strides` or `order`.

    Raises ShapeError for negative sizes, ArgumentError for strides without a buffer or a layout that leaves it.
    Source: NumPy, `ndarray`.
    """
    element = canonical(dtype)
    if buffer is None:
        if strides is not None:
            raise ArgumentError(
                f"ndarray: wanted no strides without a buffer, got {strides}; the backend decides the order "
                "in memory, and xarr.permute_dims reorders dimensions"
            )
        return empty(shape, element, order, device=None)
    memory, device = (
        (to_host(buffer), device_of(buffer._node)) if isinstance(buffer, Handle) else (buffer, None)
    )
    kind = element if dtype is None else np.dtype(dtype)  # of either byte order
    try:
        return asarray(np.ndarray(shape, kind, memory, offset, strides, order), device=device)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"ndarray: {error}") from error


def view_as(array: Array, dtype: Any, kind: type | None) -> Array:
    """As `_view_as`, remembered."""
    return _views.run((array, dtype, kind), {})  # type: ignore[no-any-return]


def _view_as(array: Array, dtype: Any, kind: type | None) -> Array:
    """An Array of its own, a part of `array`, that holds its bits as elements of `dtype`; see `Array.view`."""
    if isinstance(dtype, type) and issubclass(dtype, np.ndarray | Handle):
        dtype, kind = None, dtype
    if kind is not None and not issubclass(kind, Handle):
        raise ArgumentError(
            f"view: wanted no other class than xarr's Array, got {kind.__name__}; numpy.asarray(x).view(…) makes others"
        )
    wanted = array.dtype if dtype is None else canonical(dtype)
    if wanted == array.dtype:
        dynamic = array._node.tensor_type.dynamic  # else an op of its own tells where the part was made
        return mark(array, fresh(array) if dynamic else lax.reshape(array, array.shape), INDEX, ...)
    refuse_dynamic("view", array, "lax.bitcast_convert_type")
    _check_bits(array.dtype, wanted)
    shape = _shape(array, wanted)
    if not array.size:
        return fill(shape, 0, wanted, array._node.device)
    rows = array if array.shape else lax.reshape(array, (1,))
    return mark(array, lax.reshape(_from_plain(_bits(_plain(rows), wanted), wanted), shape), VIEW, wanted)


_views: Final = runner(_view_as)


def _check_bits(old: DType, new: DType) -> None:
    """DTypeError for types of less than a byte, which NumPy keeps one in a byte and XLA side by side."""
    sizes = [element_type(dtype).bits for dtype in (old, new)]
    if {old, new} & SUB_BYTE.keys() and sizes[0] != sizes[1]:
        raise DTypeError(
            f"view: wanted a dtype of as many bits as {old}, which has {sizes[0]}, got {new} of {sizes[1]}; "
            "x.astype(dtype) converts, lax.bitcast_convert_type(x, dtype) splits and joins elements as XLA does"
        )


def _shape(array: Array, wanted: DType) -> tuple[int, ...]:
    """The shape of the same bytes as elements of `wanted`: the last dimension has the others' share."""
    shape, old, new = array.shape, array.dtype.itemsize, wanted.itemsize
    if old == new:
        return shape
    if not shape:
        raise ShapeError(
            f"view: wanted a dtype of {old} bytes for an array without dimensions, got {wanted} of {new} bytes; "
            "x.reshape(1).view(dtype) has one dimension"
        )
    if shape[-1] * old % new:
        raise ShapeError(
            f"view: the {shape[-1] * old} bytes of the last dimension of shape {shape} are not a whole number of "
            f"{wanted}, which has {new} bytes"
        )
    return (*shape[:-1], shape[-1] * old // new)


def _plain(array: Array) -> Array:
    """Complex numbers as real and imaginary parts along the last dimension, bools as bytes, others themselves."""
    if array.dtype in BOOL:
        return convert(array, _BYTE)
    if array.dtype not in COMPLEX:
        return array
    parts = [lax.expand_dims(part, (len(array.shape),)) for part in (lax.real(array), lax.imag(array))]
    together = lax.concatenate(parts, len(array.shape))
    return lax.reshape(together, (*array.shape[:-1], 2 * array.shape[-1]))


def _bits(array: Array, wanted: DType) -> Array:
    """The bits as elements of `wanted`, of its real parts if it is complex, or of bytes if it is bool."""
    element = _BYTE if wanted in BOOL else real_part_of(wanted)
    if array.dtype == element:
        return array
    *outer, last = array.shape
    if array.dtype.itemsize < element.itemsize:
        count = element.itemsize // array.dtype.itemsize
        return lax.bitcast_convert_type(lax.reshape(array, (*outer, last // count, count)), element)
    elements = lax.bitcast_convert_type(array, element)
    return lax.reshape(elements, (*outer, last * (array.dtype.itemsize // element.itemsize)))


def _from_plain(array: Array, wanted: DType) -> Array:
    if wanted in BOOL:
        return truth(array)
    if wanted not in COMPLEX:
        return array
    *outer, last = array.shape
    pairs = lax.reshape(array, (*outer, last // 2, 2))
    real, imag = (lax.index_in_dim(pairs, part, len(outer) + 1, keepdims=False) for part in (0, 1))
    return lax.complex(real, imag)
