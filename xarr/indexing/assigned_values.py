"""Values that are assigned to an index: brought to the shape and the element type of what it selects."""

from __future__ import annotations

import math

from xarr import lax
from xarr.base.broadcasting import explain_misfit, fits_into
from xarr.base.host_arrays import host_array
from xarr.base.typing import Array
from xarr.calls.operands import as_array, broadcast_nodes, is_weak, nodes_of
from xarr.dtypes import COMPLEX, INTEGER
from xarr.errors import BroadcastError, DTypeError, InputError, RaggedError, ValueRangeError
from xarr.ir.types import Ints
from xarr.lax.core import ArrayLike, broadcast_node, host_node, scalar_node
from xarr.runtime.handles import Handle, common_device, wrap


def convert_value(array: Array, value: ArrayLike) -> Array:
    """`value` in the element type of `array`, as NumPy casts what is assigned.

    Raises DTypeError for complex numbers in a real array, ValueRangeError for NaN, infinity and Python ints that
    an integer array cannot hold, BackendError for an Array of another backend.
    """
    result = value if isinstance(value, Handle) or is_weak(value) else _read(array, value)
    is_complex = isinstance(value, complex) or getattr(result, "dtype", None) in COMPLEX
    if is_complex and array.dtype not in COMPLEX:
        raise DTypeError(f"a complex value does not fit an array of {array.dtype}; take its real part")
    if isinstance(value, float) and is_weak(value) and array.dtype in INTEGER:
        if not math.isfinite(value):
            raise ValueRangeError(f"{value} does not fit an array of {array.dtype}, which holds integers")
        result = as_array(value)
    common_device([array, result])
    (node,) = nodes_of((result,), array.dtype)
    return wrap(node)


def _read(array: Array, value: ArrayLike) -> Array:
    """Read what is no Array; text and None as the element type of `array`, as NumPy does."""
    try:
        return as_array(value)
    except RaggedError:
        raise
    except InputError:
        return wrap(host_node(host_array(value, array.dtype), array._node.device))


def fit_value(array: Array, value: ArrayLike, shape: Ints) -> Array:
    """`value` in the element type of `array` and in `shape`, to which it broadcasts by NumPy's rule.

    Leading dimensions of size 1 may be too many.  Raises as `convert`, and BroadcastError.
    """
    converted = convert_value(array, value)
    own_shape = converted.shape
    extra = len(own_shape) - len(shape)
    if extra > 0 and own_shape[:extra] == (1,) * extra:
        converted = lax.reshape(converted, own_shape[extra:])
    if not fits_into(converted.shape, shape):
        raise BroadcastError(
            f"the index selects elements of shape {shape}, the value has shape {own_shape}: "
            f"{explain_misfit(converted.shape, shape, 'value')}"
        )
    like = broadcast_node(scalar_node(0, array.dtype), shape, ())
    placed, _ = broadcast_nodes("setitem", (converted._node, like))
    return wrap(placed)
