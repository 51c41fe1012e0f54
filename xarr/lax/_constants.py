"""Constants of no backend, which go with arrays of any: what xarr's own functions make beside an argument.

Those that `xarr.lax` and the creation functions make are the user's, who finds them on the default backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from xarr import backend as backends
from xarr.lax import creation
from xarr.lax.core import ArrayLike, host_node
from xarr.lazy import Handle, unowned, wrap

if TYPE_CHECKING:
    from xarr.array import Array
    from xarr.backend import AbstractBackend


def free(array: Array) -> Array:
    """`array`, which is made of constants alone, without the backend that it was made for."""
    return wrap(array._node, None)


def owned(array: Array) -> Array:
    """What a user made of numbers alone: if no Array was among them, it lives on the default backend."""
    return array if array._backend is not None else wrap(array._node, backends.default())


def full(shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """`lax.full`; with an Array as `fill_value` of its backend."""
    array = creation.full(shape, fill_value, dtype)
    return array if isinstance(fill_value, Handle) else free(array)


def iota(dtype: DTypeLike, size: int) -> Array:
    """`lax.iota`."""
    return free(creation.iota(dtype, size))


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Array:
    """`lax.broadcasted_iota`."""
    return free(creation.broadcasted_iota(dtype, shape, dimension))


def of_host(values: np.ndarray[Any, Any], backend: AbstractBackend | None) -> Array:
    """What was found by looking at an Array, as an Array of its backend."""
    return wrap(unowned(host_node(values, backend)), backend)
