"""Constants and counters of the explicit level.  They are committed to no device: they go with arrays on any."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import DTypeLike

from xarr.base.host_arrays import is_weak, scalar, scalar_kind
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import canonical, default_of
from xarr.ir import ops
from xarr.ir.device import Device
from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr.lax.core import ArrayLike, broadcast_node, integer, operands
from xarr.lax.dynamic_sizes import with_sizes_of
from xarr.lax.elementwise import convert_element_type
from xarr.lax.movement import broadcast_in_dim
from xarr.runtime.handles import commit, wrap
from xarr.shapes import check_sizes, normalize_axis


@names_errors
def full(shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """An array of `shape` all of whose elements are the scalar `fill_value`.  Source: jax.lax.full."""
    return _full(shape, fill_value, dtype, None)


def _full(
    shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None, device: Device | None
) -> Array:
    """`full`, committed to `device` where `fill_value` is to none."""
    sizes = check_sizes(shape)
    if is_weak(fill_value):
        element = default_of(scalar_kind(fill_value)) if dtype is None else canonical(dtype)
        constant = ops.Constant.of(scalar(fill_value, element, is_requested=dtype is not None))
        return wrap(broadcast_node(Node(constant, device=device), sizes, ()))
    value = wrap(*operands("full", fill_value))
    result = broadcast_in_dim(value if dtype is None else convert_element_type(value, dtype), sizes, ())
    return result if device is None else commit(result, device)


@names_errors
def full_like(
    x: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Sequence[int] | None = None
) -> Array:
    """`full` with the shape and element type of `x` where they are not given, on its device.

    Source: jax.lax.full_like.
    """
    (node,) = operands("full_like", x)
    element = node.dtype if dtype is None else canonical(dtype)
    sizes = node.shape if shape is None else shape
    device = node.device if node.device is not None and node.device.is_committed else None
    result = _full(sizes, fill_value, element, device)
    return with_sizes_of(result, x) if shape is None else result


@names_errors
def iota(dtype: DTypeLike, size: int) -> Array:
    """0, 1 … size - 1.  Source: XLA's Iota."""
    return broadcasted_iota(dtype, (size,), 0)


@names_errors
def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Array:
    """0, 1 … along `dimension` of an array of `shape`, the same along every other dimension.

    Source: jax.lax.broadcasted_iota.
    """
    sizes = check_sizes(shape)
    axis = normalize_axis(integer("broadcasted_iota", "dimension", dimension), len(sizes))
    return wrap(Node(ops.Iota(TensorType(sizes, canonical(dtype)), axis)))
