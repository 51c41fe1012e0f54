"""Functions of users that are to run for many slices: recorded once, or called for each if they look at values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xarr import lax
from xarr.base.host import host_array
from xarr.base.typing import Array
from xarr.calls.operands import as_array
from xarr.ir.device import Device
from xarr.lax.core import put
from xarr.numpy_api.creation.arrays import argument


def results_as_arrays(result: Any) -> Any:
    """Make an Array, or a tuple of Arrays, of a function's result."""
    return tuple(argument(one) for one in result) if isinstance(result, tuple) else argument(result)


def results_on(device: Device | None, result: Any) -> Any:
    """Make an Array on `device`, or a tuple of them, of a result of NumPy's."""
    if isinstance(result, tuple):
        return tuple(results_on(device, one) for one in result)
    return put(host_array(result), device)


def each_slice(function: Callable[..., Any], arrays: Sequence[Array]) -> Any:
    """`function` of the slices of all arrays along their first dimension; its results are stacked.

    It is recorded once, and called outright for a single slice.
    """
    if not arrays or arrays[0].shape[0] == 1:
        results = results_as_arrays(
            function(*[lax.index_in_dim(array, 0, 0, keepdims=False) for array in arrays])
        )
        if isinstance(results, tuple):
            return tuple(lax.expand_dims(one, (0,)) for one in results)
        return lax.expand_dims(as_array(results), (0,))
    return lax.map(lambda slices: results_as_arrays(function(*slices)), tuple(arrays))
