"""Memory of GPUs that other libraries are lent: DLPack and `__cuda_array_interface__`.

Read by xarr itself, as by any other library, and by CuPy's own code on memory of the host.
"""

from __future__ import annotations

import gc
import importlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.gpu_arrays import (
    CUDA,
    DTYPES,
    NARROW,
    VALUES,
    Described,
    Passed,
    on_each_device,
)
from tests.cuda.host_wheel.device import HostDevice
from xarr.arrays import device_memory
from xarr.errors import DTypeError
from xarr.runtime import dlpack


def test_cupy_reads_arrays_without_a_copy(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    x = xarr.asarray(VALUES) + 1
    for read in (cupy.asarray, cupy.from_dlpack, lambda x: cupy.array(x, copy=None)):
        result = read(x)
        assert type(result) is cupy.ndarray
        assert result.data.ptr == x._node.value.address
        assert_same(result.get(), VALUES + 1)
    with cupy.cuda.Device(1):
        there = xarr.asarray(VALUES, device="cuda:1")
        assert cupy.from_dlpack(there).device.id == cupy.asarray(there).device.id == 1
    assert there.__dlpack_device__() == (CUDA, 1)


@on_each_device
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_goes_out_and_in(lend: Any, dtype: str) -> None:
    x = xarr.asarray(VALUES.astype(dtype))
    shared = xarr.from_dlpack(Passed(x), copy=False)
    assert shared._node.value.address == x._node.value.address
    assert_same(shared, x)
    described = xarr.asarray(Described(x), copy=False)
    assert described._node.value.address == x._node.value.address
    assert_same(described, x)


@on_each_device
@pytest.mark.parametrize("dtype", NARROW)
def test_floats_that_numpy_lacks_go_out_and_in(lend: Any, dtype: str) -> None:
    values = VALUES.astype(getattr(ml_dtypes, dtype))
    result = xarr.from_dlpack(Passed(xarr.asarray(values)))
    assert result.device == "cupy"
    assert_same(result, values)
    assert_same(result + result, values + values)


@on_each_device
def test_lent_memory_is_read_only_and_old_consumers_get_a_copy(lend: Any) -> None:
    x = xarr.asarray(VALUES)

    def tensor_of(**options: Any) -> tuple[Any, Any]:
        capsule = x.__dlpack__(**options)
        return capsule, dlpack._tensor_of(capsule).data

    address = x._node.value.address
    for copy, flags in ((None, 1), (False, 1), (True, 2)):
        capsule, data = tensor_of(max_version=(1, 0), copy=copy)
        managed = dlpack._Versioned.from_address(dlpack._pointer(capsule, b"dltensor_versioned"))
        assert managed.flags & 3 == flags
        assert (data == address) == (copy is not True)
    assert tensor_of()[1] != address
    with pytest.raises(BufferError, match=r"copy=False is not possible; wanted max_version=\(1, 0\)"):
        x.__dlpack__(copy=False)
    assert x.__cuda_array_interface__["data"] == (address, True)


@on_each_device
def test_the_host_gets_a_copy(lend: Any) -> None:
    x = xarr.asarray(VALUES)
    assert_same(np.asarray(x), VALUES)
    assert_same(np.from_dlpack(x, device="cpu"), VALUES)
    with pytest.raises(BufferError, match="copy=False is not possible from backend 'cupy' to the CPU"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(
        BufferError, match=r"wanted dl_device=\(2, 0\), that of backend 'cupy', \(1, 0\), the CPU"
    ):
        x.__dlpack__(dl_device=(2, 1))


@on_each_device
def test_what_has_no_interface_says_so_without_computing(lend: Any) -> None:
    x = xarr.asarray(VALUES) + 1
    assert x.__dlpack_device__() == (CUDA, 0)
    assert not x.is_evaluated
    arrays = [xarr.ones(3, device="cpu"), xarr.ones(3, dtype="bfloat16"), xarr.ones(3, dtype="int4")]
    for x in arrays:
        assert not hasattr(x, "__cuda_array_interface__")
        assert not x.is_evaluated
    with pytest.raises(
        BufferError, match=r'got int4, whose elements DLPack packs; x\.astype\("int8"\) has bytes'
    ):
        arrays[2].__dlpack__(max_version=(1, 0))
    seen: list[bool] = []
    xarr.jit(lambda x: seen.append(hasattr(x, "__cuda_array_interface__")) or x)(xarr.ones(3))
    assert seen == [False]


@pytest.mark.parametrize(
    ("dtype", "works"), [("int4", "int8"), ("uint2", "uint8"), ("float8_e5m2", "float16")]
)
def test_cupy_is_told_which_types_it_has_not(dtype: str, works: str, host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    x = xarr.ones(3, dtype=dtype)
    with pytest.raises(
        DTypeError, match=rf'wanted elements of a type that CuPy has, got {dtype}; .*astype\("{works}"\)'
    ):
        cupy.asarray(x)
    assert_same(xarr.asarray(cupy.asarray(x.astype(works))), np.ones(3, works))


def test_cupy_shares_the_memory_of_bfloat16(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    x = xarr.asarray([1.0, 2.0], dtype="bfloat16").block_until_ready()
    before = host.mallocs
    y = cupy.asarray(x)
    assert host.mallocs == before and y.dtype == x.dtype
    assert_same(xarr.asarray(y), x)


# --- streams and lifetimes ----------------------------------------------------------------------------------


def test_consumers_wait_for_the_stream_that_computes(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    stream, consumer = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    with stream:
        y = xarr.asarray(VALUES) + 1
        host.waits.clear()
        y.__dlpack__(stream=consumer.ptr, max_version=(1, 0))
        y.__dlpack__(stream=-1, max_version=(1, 0))
        y.__dlpack__(stream=stream.ptr, max_version=(1, 0))
        assert host.waits == [(consumer.ptr, stream.ptr)]
        assert y.__cuda_array_interface__["stream"] == stream.ptr
    host.waits.clear()
    # The legacy default stream is the caller's own now.
    for number in (None, 0, 1):
        y.__dlpack__(stream=number, max_version=(1, 0))
    # It comes after what computed the values, and the other way round.
    assert set(host.waits) == {(0, stream.ptr), (stream.ptr, 0)}


@on_each_device
def test_streams_that_are_none_are_refused(lend: Any) -> None:
    for stream in (-2, "1", 1.5):
        with pytest.raises(
            BufferError, match="wanted stream=None, -1, 1, 2 or the address of a stream of cupy, got"
        ):
            xarr.asarray(VALUES).__dlpack__(stream=stream)


def test_lent_memory_lives_as_long_as_the_consumer(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    pool = cupy.get_default_memory_pool()
    for read in (cupy.from_dlpack, cupy.asarray):
        x = (xarr.asarray(VALUES) + 1).evaluate()
        result = read(x)
        x += 1  # shows another value from now on
        x.evaluate()
        used = pool.used_bytes()
        del x
        gc.collect()
        others = [(xarr.asarray(VALUES) * 0).evaluate() for _ in range(3)]
        assert_same(result.get(), VALUES + 1)
        del result, others
        gc.collect()
        assert pool.used_bytes() < used
    assert not device_memory._lent
