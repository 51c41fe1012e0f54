"""Arrays in other processes: pickles, and the tokens by which Dask knows equal values."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from xarr import backend as backends
from xarr.arrays.device_memory import CudaMemory
from xarr.ir.device import Device
from xarr.ir.types import TensorType
from xarr.runtime import handles
from xarr.runtime.live_values import live_leaf
from xarr.runtime.materialisation import device_of, to_host

#: The device that all Arrays from other processes go to; None where each goes to the device of its name.
_arrivals: Device | None = None


class PickledValues(CudaMemory):
    """An Array for other processes: its value, which is computed, and the name of its device."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        name = device_of(self._node).name
        # Memory of NumPy's, which protocol 5 sends without a copy.
        if self._node.tensor_type.dynamic:
            return _unpickle_live, (to_host(self), self._node.type, name)
        return _unpickle, (to_host(self), name)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Equal for Arrays with equal values, types and devices, in each process.  Source: Dask, `tokenize`."""
        from dask.base import normalize_token

        # In row-major order: Dask reads memory in its own, in which x.T and x.reshape of the same sizes are alike.
        values = np.asarray(to_host(self), order="C")
        return ("xarr.Array", device_of(self._node).name, normalize_token(values))


def receive_on(device: Device | None) -> Device | None:
    """Let all Arrays from other processes go to `device`; None lets each go to that of its name.

    Returns what held before.
    """
    global _arrivals
    before, _arrivals = _arrivals, device
    return before


def _device(name: str) -> Device:
    return _arrivals or backends.get(name).device()


def _unpickle(values: np.ndarray[Any, Any], name: str) -> PickledValues:
    return cast("PickledValues", handles.from_host(values, _device(name)))


def _unpickle_live(values: np.ndarray[Any, Any], type: TensorType, name: str) -> PickledValues:
    """A dynamic array of these live values."""
    return cast("PickledValues", handles.wrap(live_leaf(values, type, _device(name))))
