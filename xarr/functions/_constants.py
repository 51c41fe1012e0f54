"""Constants of no backend, which go with arrays of any.  Those that `xarr.lax` makes are of the default one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.lax.core import ArrayLike, host_node
from xarr.lazy import Handle, unowned, wrap

if TYPE_CHECKING:
    from xarr.array import Array
    from xarr.backend import AbstractBackend


def full(shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """`lax.full`; with an Array as `fill_value` of its backend."""
    array = lax.full(shape, fill_value, dtype)
    return array if isinstance(fill_value, Handle) else wrap(array._node, None)


def iota(dtype: DTypeLike, size: int) -> Array:
    """`lax.iota`."""
    return wrap(lax.iota(dtype, size)._node, None)


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Array:
    """`lax.broadcasted_iota`."""
    return wrap(lax.broadcasted_iota(dtype, shape, dimension)._node, None)


def of_host(values: np.ndarray[Any, Any], backend: AbstractBackend | None) -> Array:
    """What was found by looking at an Array, as an Array of its backend."""
    return wrap(unowned(host_node(values, backend)), backend)
