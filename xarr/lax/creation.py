"""Constants and counters of the explicit level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import DTypeLike

from xarr import backend as backends
from xarr.backend import AbstractBackend
from xarr.dtypes import canonical, default_of
from xarr.host import is_weak, scalar, scalar_kind
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr.lax.core import ArrayLike, broadcast_node, integer, operands
from xarr.lax.dynamic_sizes import with_sizes_of
from xarr.lax.elementwise import convert_element_type
from xarr.lax.movement import broadcast_in_dim
from xarr.lazy import Handle, wrap
from xarr.shapes import check_sizes, normalize_axis

if TYPE_CHECKING:
    from xarr.array import Array


def full(shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """An array of `shape` all of whose elements are the scalar `fill_value`.  Source: jax.lax.full."""
    sizes = check_sizes(shape)
    if is_weak(fill_value):
        element = default_of(scalar_kind(fill_value)) if dtype is None else canonical(dtype)
        node = Node(ops.Constant.of(scalar(fill_value, element, given=dtype is not None)))
        return wrap(broadcast_node(node, sizes, ()), backends.default())
    (node,), _ = operands("full", fill_value)
    value = wrap(node, _)
    return broadcast_in_dim(value if dtype is None else convert_element_type(value, dtype), sizes, ())


def full_like(
    x: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Sequence[int] | None = None
) -> Array:
    """`full` with the shape and element type of `x` where they are not given, on its backend.

    Source: jax.lax.full_like.
    """
    (node,), backend = operands("full_like", x)
    element = node.dtype if dtype is None else canonical(dtype)
    sizes = node.shape if shape is None else check_sizes(shape)
    found = _on(full(sizes, fill_value, element), backend)
    if backend is None and isinstance(x, Handle) and not isinstance(fill_value, Handle):
        found = wrap(found._node, None)  # as x, it goes with arrays of any backend
    return with_sizes_of(found, x) if shape is None else found


def _on(array: Array, backend: AbstractBackend | None) -> Array:
    """A constant array, which can live anywhere, on `backend`."""
    return array if backend is None else wrap(array._node, backend)


def iota(dtype: DTypeLike, size: int) -> Array:
    """0, 1 … size - 1.  Source: XLA's Iota."""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Array:
    """0, 1 … along `dimension` of an array of `shape`, the same along every other dimension.

    Source: jax.lax.broadcasted_iota.
    """
    sizes = check_sizes(shape)
    axis = normalize_axis(integer("broadcasted_iota", "dimension", dimension), len(sizes))
    return wrap(Node(ops.Iota(TensorType(sizes, canonical(dtype)), axis)), backends.default())
