"""Arrays in the hands of other libraries: DLPack both ways, devices, array_api_compat, the entry point."""

from __future__ import annotations

import gc
import sys
import tomllib
from typing import Any

import array_api_compat
import array_api_strict
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.checkout import CHECKOUT
from xarr.dtypes import EXTENDED_FLOAT, TABLE
from xarr.errors import BackendError, InputError, TracedValueError
from xarr.runtime import dlpack

#: About names, texts and the memory of the NumPy backend.
pytestmark = pytest.mark.usefixtures("on_numpy")
CPU = (1, 0)
#: NumPy, which lends the memory here, has no DLPack of elements of less than 8 bits.
DTYPES = [row.dtype for row in TABLE if row.bits >= 8]


class Producer:
    """An object that lends `array` by DLPack as its own version of the protocol does."""

    device = CPU

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class OldProducer(Producer):
    """As before DLPack 1.0: a capsule "dltensor", and no argument but the stream."""

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__(stream=stream)


class FarProducer(Producer):
    """One whose memory is on another device, kDLCUDA."""

    device = (2, 0)

    def __dlpack__(self, *, dl_device: Any = None, max_version: Any = None, copy: Any = None) -> Any:
        if dl_device is None or copy is False:
            raise BufferError("only the device itself can read this memory")
        return self.array.__dlpack__(dl_device=dl_device, max_version=max_version)


# --- DLPack in ----------------------------------------------------------------------------------------


def sample(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    return np.array([[1, 2, 4], [0.5, 8, 1]]).astype(dtype)[:, ::2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("producer", [Producer, OldProducer])
@pytest.mark.parametrize("copy", [None, True])
def test_every_element_type_goes_out_and_in(dtype: Any, producer: type[Producer], copy: bool | None) -> None:
    values = sample(dtype)
    assert_same(xarr.from_dlpack(producer(xarr.asarray(values)), copy=copy), values)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,) * 5], ids=str)
def test_shapes_at_the_edge_go_out_and_in(shape: tuple[int, ...]) -> None:
    for dtype in ("float32", "bfloat16"):
        values = np.ones(shape, xarr.zeros(0, dtype=dtype).dtype)
        assert_same(xarr.from_dlpack(Producer(xarr.asarray(values))), values)


def test_values_of_other_libraries_come_in() -> None:
    assert_same(xarr.from_dlpack(array_api_strict.asarray([1.0, 2.0])), np.array([1.0, 2.0]))
    assert_same(xarr.from_dlpack(jnp.ones(3, jnp.bfloat16)), np.ones(3, xarr.bfloat16))
    assert_same(xarr.from_dlpack(np.arange(6)[::-2]), np.array([5, 3, 1]))


@pytest.mark.parametrize("producer", [Producer, OldProducer])
def test_an_array_does_not_see_what_the_producer_writes_later(producer: type[Producer]) -> None:
    values = np.arange(3.0)
    result = xarr.from_dlpack(producer(values))
    total = result + 1
    values[:] = 7
    assert_same(result, np.arange(3.0))
    assert_same(total, np.arange(1.0, 4.0))


def test_memory_is_shared_on_demand() -> None:
    values = np.arange(3.0)
    result = xarr.from_dlpack(Producer(values), copy=False)
    assert np.shares_memory(np.asarray(result), values)
    frozen = np.arange(3)
    frozen.flags.writeable = False
    assert np.shares_memory(np.asarray(xarr.from_dlpack(frozen, copy=False)), frozen)
    with pytest.raises(ValueError, match="copy=False is not possible"):
        xarr.from_dlpack(FarProducer(values), device="cpu", copy=False)


def test_another_device_is_read_if_asked_for_and_possible() -> None:
    values = np.arange(3.0)
    assert_same(xarr.from_dlpack(FarProducer(values), device="cpu"), values)
    with pytest.raises(
        BackendError, match=r'the values of FarProducer lie on a GPU, .*; device="cpu" copies'
    ):
        xarr.from_dlpack(FarProducer(values))


def test_what_is_no_producer_is_refused() -> None:
    with pytest.raises(InputError, match="wanted an object with __dlpack__ and __dlpack_device__, got list"):
        xarr.from_dlpack([1, 2])
    used = Producer(np.arange(3))
    capsule = used.__dlpack__()
    np.from_dlpack(type("Once", (Producer,), {"__dlpack__": lambda self, **_: capsule})(0))
    again = type("Again", (Producer,), {"__dlpack__": lambda self, **_: capsule})(0)
    with pytest.raises(BackendError, match="wanted an unused DLPack capsule"):
        xarr.from_dlpack(again)


# --- DLPack out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in EXTENDED_FLOAT], ids=str)
def test_numpy_reads_without_a_copy_and_cannot_write(dtype: Any) -> None:
    array = xarr.asarray(sample(dtype))
    lent = np.from_dlpack(array)
    assert_same(lent, np.asarray(array))
    assert np.shares_memory(lent, np.asarray(array))
    assert not lent.flags.writeable
    own = np.from_dlpack(array, copy=True)
    assert not np.shares_memory(own, np.asarray(array))
    if own.flags.writeable:  # NumPy 2.1 takes even a copy for read-only.
        own[...] = 0
    assert_same(array, sample(dtype))


@pytest.mark.parametrize("dtype", sorted(EXTENDED_FLOAT, key=str), ids=str)
def test_consumers_that_know_narrow_floats_read_them(dtype: Any) -> None:
    values = np.ones((2, 3), dtype)
    assert_same(np.asarray(jnp.from_dlpack(xarr.asarray(values))), values)


@pytest.mark.parametrize("version", [None, (0, 8)])
def test_consumers_that_know_no_read_only_memory_get_a_copy(version: Any) -> None:
    array = xarr.asarray([1.0, 2.0])
    assert not np.shares_memory(np.from_dlpack(OldProducer(array)), np.asarray(array))
    with pytest.raises(BufferError, match=r"copy=False is not possible; wanted max_version=\(1, 0\)"):
        array.__dlpack__(max_version=version, copy=False)
    assert '"dltensor"' in repr(array.__dlpack__(max_version=version))
    assert '"dltensor_versioned"' in repr(array.__dlpack__(max_version=(1, 0), copy=False))


def test_reversed_arrays_are_lent_without_negative_strides() -> None:
    array = xarr.asarray([[1.0, 2.0], [3.0, 4.0]])[:, ::-1]
    lent = np.from_dlpack(array)
    assert min(lent.strides) > 0
    assert_same(lent, np.asarray(array))


def test_the_device_is_told_without_computing() -> None:
    array = xarr.zeros(3) + 1
    assert array.__dlpack_device__() == CPU
    assert not array.is_evaluated


def test_streams_and_other_devices_are_refused() -> None:
    array = xarr.zeros(3)
    assert_same(np.from_dlpack(array, device="cpu"), np.zeros(3))
    with pytest.raises(BufferError, match=r"wanted dl_device=\(1, 0\), the CPU, or None, got \(2, 0\)"):
        array.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="wanted stream=None for memory of the CPU, got 1"):
        array.__dlpack__(stream=1)


def test_a_traced_array_has_no_memory_to_lend() -> None:
    with pytest.raises(TracedValueError):
        xarr.jit(lambda x: xarr.from_dlpack(Producer(x)))(xarr.zeros(2))


# --- devices --------------------------------------------------------------------------------------------


def test_arrays_are_made_beside_an_array_by_its_device() -> None:
    here, there = xarr.ones(2), xarr.ones(2).to("reference")
    assert (here.device, there.device) == ("cpu", "reference")
    for array in (here, there):
        beside = xarr.zeros(2, device=array.device)
        assert (array + beside).backend == array.backend
        assert beside.device == array.device
    with xarr.use_backend("reference"):
        assert (here.device, there.device) == ("numpy", "cpu")


def test_to_device_takes_what_device_gives() -> None:
    here = xarr.asarray([1, 2])
    for device, backend in [("cpu", "numpy"), ("numpy", "numpy"), ("reference", "reference")]:
        moved = here.to_device(device)
        assert moved.backend == backend
        assert_same(moved, np.array([1, 2]))
        assert moved.to_device("cpu").backend == "numpy"
    with pytest.raises(BackendError, match="no backend called 'nowhere'"):
        here.to_device("nowhere")
    with pytest.raises(InputError, match="wanted stream=None"):
        here.to_device("cpu", stream=0)


# --- other libraries --------------------------------------------------------------------------------------


def test_array_api_compat_knows_arrays() -> None:
    x, y = xarr.zeros((2, 3)), xarr.ones(3, dtype="int8")
    assert array_api_compat.array_namespace(x, y, 1.0, None) is xarr
    assert array_api_compat.is_array_api_obj(x)
    assert array_api_compat.size(x) == 6
    assert array_api_compat.device(x) == "cpu"
    assert array_api_compat.to_device(x, "reference").backend == "reference"
    with pytest.raises(TypeError, match="Multiple namespaces"):
        array_api_compat.array_namespace(x, np.zeros(3))


def test_only_traced_arrays_are_lazy_for_array_api_compat() -> None:
    x = xarr.arange(4)
    assert not array_api_compat.is_lazy_array(x + 1)
    assert not array_api_compat.is_lazy_array(xarr.zeros((0, 2)))
    seen = []
    xarr.jit(lambda x: seen.append(array_api_compat.is_lazy_array(x)) or x)(x)
    assert seen == [True]


def test_the_namespace_is_found_as_an_entry_point() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["array_api"] == {"xarr": "xarr"}
    assert hasattr(xarr, "__array_api_version__")


class Lender:
    """Hands out one capsule, as producers do that cannot make another."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


@pytest.mark.parametrize("version", [None, (1, 0)], ids=["before 1.0", "1.0"])
@pytest.mark.parametrize("code", [4, 99], ids=["bfloat16", "unknown"])
def test_a_capsule_that_is_refused_goes_back_as_it_came(version: Any, code: int) -> None:
    """With its name, its element type and its deleter, so that another can read it, or free it."""
    values = np.array([1, 2, 250], np.uint16)
    holders = sys.getrefcount(values)
    lender = Lender(values.__dlpack__(max_version=version))
    tensor = dlpack._tensor_of(lender.capsule)
    tensor.code, tensor.lanes = code, 2
    with pytest.raises(BackendError):
        xarr.from_dlpack(lender)
    assert dlpack._tensor_of(lender.capsule).code == code
    assert sys.getrefcount(values) == holders + 1
    tensor.code, tensor.lanes = 4, 1
    assert_same(np.asarray(xarr.from_dlpack(lender, copy=True)), values.view(ml_dtypes.bfloat16))
    with pytest.raises(BufferError, match="wanted an unused DLPack capsule"):
        dlpack._tensor_of(lender.capsule)
    del lender, tensor
    gc.collect()
    assert sys.getrefcount(values) == holders
