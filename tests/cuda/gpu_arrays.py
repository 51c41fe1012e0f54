"""Arrays of other libraries on a GPU: those of a library of the tests' own on the emulator, and CuPy's."""

from __future__ import annotations

import importlib
import shutil
from typing import Any

import numpy as np
import pytest

from xarr.runtime import dlpack

CUDA = 2
VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)
#: Types that NumPy's DLPack has.
DTYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "complex128")
NARROW = ("bfloat16", "float8_e5m2", "float8_e4m3fn")

on_each_device = pytest.mark.parametrize(
    "lend",
    [
        pytest.param("cupy", marks=pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")),
        "host",
        pytest.param("gpu", marks=pytest.mark.gpu),
    ],
    indirect=True,
)


class GpuArray:
    """An array of a library that computes on the emulated device, which can be told from none on the CPU."""

    def __init__(self, array: np.ndarray[Any, Any], ordinal: int = 0) -> None:
        self.array, self.ordinal = array, ordinal
        self.calls: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CUDA, self.ordinal)

    def __dlpack__(self, **options: Any) -> Any:
        self.calls.append(options)
        capsule = self.array.__dlpack__(max_version=options.get("max_version"))
        tensor = dlpack._tensor_of(capsule)
        tensor.device_type, tensor.device_id = CUDA, self.ordinal
        return capsule

    def __getitem__(self, index: Any) -> GpuArray:
        return GpuArray(self.array[index], self.ordinal)

    @property
    def T(self) -> GpuArray:
        return GpuArray(self.array.T, self.ordinal)


class OldGpuArray(GpuArray):
    """As before DLPack 1.0: no argument but the stream, and no versioned capsule."""

    def __dlpack__(self, stream: Any = None) -> Any:
        return super().__dlpack__(stream=stream)


class Described:
    """An array that has `__cuda_array_interface__` alone."""

    def __init__(self, holder: Any, **changes: Any) -> None:
        array = getattr(holder, "array", None)
        own = holder.__cuda_array_interface__ if array is None else {**array.__array_interface__, "stream": 1}
        self.holder, self.__cuda_array_interface__ = holder, {**own, **changes}


class Passed:
    """An Array as any other object with `__dlpack__`."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.array.__dlpack_device__()
        return device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


def make_emulated(values: Any, ordinal: int = 0) -> GpuArray:
    return GpuArray(np.array(values), ordinal)


def make_by_cupy(values: Any, ordinal: int = 0) -> Any:
    cupy = importlib.import_module("cupy")
    if ordinal >= cupy.cuda.runtime.getDeviceCount():
        pytest.skip("needs two GPUs")
    with cupy.cuda.Device(ordinal):
        result = cupy.ndarray(np.shape(values), np.asarray(values).dtype)
        result.set(np.asarray(values, order="C"))
    return result


def address_of(x: Any) -> int:
    """The address of an array of either library."""
    return int(x.array.ctypes.data) if isinstance(x, GpuArray) else int(x.data.ptr)


def fill(x: Any, value: float) -> None:
    """Write to an array of either library."""
    if isinstance(x, GpuArray):
        x.array[...] = value
    else:
        x.set(np.full(x.shape, value, x.dtype))
