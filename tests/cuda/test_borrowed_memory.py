"""Memory of GPUs that other libraries lend: DLPack and `__cuda_array_interface__`.

On the emulator, beside a library that a test makes, and by CuPy's own code on memory of the host, beside CuPy.
"""

from __future__ import annotations

import gc
import importlib
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.gpu_arrays import (
    DTYPES,
    VALUES,
    Described,
    GpuArray,
    OldGpuArray,
    Passed,
    address_of,
    fill,
    on_each_device,
)
from tests.cuda.host_wheel.device import HostDevice
from xarr import lax
from xarr.backend import get
from xarr.errors import BackendError, DTypeError
from xarr.runtime import device_arrays, dlpack


@on_each_device
def test_only_arrays_of_others_on_a_gpu_lie_there(lend: Any) -> None:
    for x in (lend(VALUES), Described(lend(VALUES))):
        assert device_arrays.lies_on_device(x)
    for x in (
        VALUES,
        [VALUES],
        1.0,
        "text",
        None,
        xarr.ones(3, device="cpu"),
        np.float32(1),
        object(),
        xarr.asarray(VALUES),
    ):
        assert not device_arrays.lies_on_device(x)


@on_each_device
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_comes_in_on_the_device(lend: Any, dtype: str) -> None:
    values = VALUES.astype(dtype)
    for make in (xarr.asarray, xarr.from_dlpack, xarr.array, lambda x: xarr.asarray(x, copy=False)):
        result = make(lend(values))
        assert (result.device, result.dtype) == ("cupy", values.dtype)
        assert_same(result, values)


@on_each_device
@pytest.mark.parametrize("copy", [None, True, False])
def test_memory_is_shared_on_demand_only(lend: Any, copy: bool | None) -> None:
    x = lend(VALUES)
    for make in (xarr.asarray, xarr.from_dlpack):
        result = make(x, copy=copy)
        assert (result._node.value.address == address_of(x)) == (copy is False)
    doubled = result * 2
    fill(x, 7)
    wanted = np.full_like(VALUES, 7) if copy is False else VALUES
    assert_same(result, wanted)
    assert_same(doubled, wanted * 2)


@on_each_device
def test_nothing_goes_by_the_host(lend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, first = lend(VALUES), get("cupy")._engine.driver
    upload = first.upload

    def upload_number(address: int, array: np.ndarray[Any, Any]) -> None:
        assert array.size == 1
        upload(address, array)

    monkeypatch.setattr(first, "upload", upload_number)
    monkeypatch.setattr(first, "download", None)
    for each in (xarr.asarray(x), xarr.asarray(x, copy=False), xarr.asarray(x.T)):
        (each + each).evaluate()


VIEWS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.T,
    "rows backwards": lambda x: x[::-1],
    "both backwards": lambda x: x[::-1, ::-1],
    "every second": lambda x: x[:, ::2],
    "a column": lambda x: x[:, 1],
    "a part": lambda x: x[1:, 1:],
}


@on_each_device
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_strides_are_copied_on_the_device(lend: Any, view: Callable[[Any], Any]) -> None:
    values = np.arange(12, dtype=np.int16).reshape(3, 4)
    x = lend(values)
    assert_same(xarr.asarray(view(x)), view(values))
    assert_same(xarr.from_dlpack(view(x)), view(values))
    with pytest.raises(
        ValueError, match="copy=False is not possible: wanted elements in row-major order, got strides"
    ):
        xarr.asarray(view(x), copy=False)


@on_each_device
def test_rows_of_a_larger_array_are_shared(lend: Any) -> None:
    x = lend(VALUES)
    assert_same(xarr.asarray(x[1:], copy=False), VALUES[1:])
    assert_same(xarr.asarray(x[1, 2:3], copy=False), VALUES[1, 2:3])


@on_each_device
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1), (3, 1)], ids=str)
def test_shapes_at_the_edge_go_in_and_out(lend: Any, shape: tuple[int, ...]) -> None:
    values = np.ones(shape)
    for copy in (None, False):
        result = xarr.asarray(lend(values), copy=copy)
        assert_same(result, values)
        assert_same(xarr.from_dlpack(Passed(result)), values)


@on_each_device
def test_arrays_on_the_second_device_stay_there(lend: Any) -> None:
    x = lend(VALUES, 1)
    for copy in (None, False):
        result = xarr.asarray(x, copy=copy)
        assert result.device == "cupy:1"
        assert_same(result.T * 2, VALUES.T * 2)
    assert_same(xarr.asarray(x.T), VALUES.T)
    moved = xarr.asarray(x, device="cuda:0")
    assert moved.device == "cupy"
    assert_same(moved, VALUES)
    with pytest.raises(ValueError, match="copy=False is not possible"):
        xarr.asarray(x, device="cuda:0", copy=False)


@on_each_device
def test_a_device_on_the_host_gets_a_copy(lend: Any) -> None:
    x = lend(VALUES)
    for result in (xarr.asarray(x, device="cpu"), xarr.from_dlpack(x.T, device="cpu").T):
        assert result.device == "cpu"
        assert_same(result, VALUES)
    with pytest.raises(
        ValueError, match=r"copy=False is not possible: the memory of \w+ is not that of 'numpy'"
    ):
        xarr.asarray(x, device="cpu", copy=False)


@on_each_device
def test_the_default_backend_is_not_asked(lend: Any) -> None:
    x = lend(VALUES)
    with xarr.use_backend("numpy"):
        assert xarr.asarray(x).device == "cupy"
        assert_same(xarr.asarray(x, dtype="float64"), VALUES.astype("f8"))


@on_each_device
def test_they_are_operands(lend: Any) -> None:
    x, y = xarr.asarray(VALUES), lend(VALUES)
    calls: list[Callable[[], Any]] = [
        lambda: x + y,
        lambda: xarr.add(x, y),
        lambda: xarr.add(y, y),
        lambda: lax.add(x, y),
        lambda: xarr.jit(lambda a, b: a + b)(x, y),
        lambda: xarr.concatenate([x, y])[:2] + xarr.concatenate([y, x])[2:],
    ]
    for call in calls:
        result = call()
        assert isinstance(result, xarr.Array)
        assert_same(result, VALUES * 2)
    with pytest.raises(BackendError, match=r"operands live on two backends, numpy and cupy; move one"):
        xarr.ones((2, 3), device="cpu") + y
    total = xarr.zeros((2, 3), dtype="float32")
    total[:] = y
    assert_same(total, VALUES)


@on_each_device
def test_jitted_functions_take_them_again_and_again(lend: Any) -> None:
    double = xarr.jit(lambda x: x * 2)
    for k in range(4):
        assert_same(double(lend(VALUES + k)), (VALUES + k) * 2)
    assert double.compilations == 1


@on_each_device
def test_old_producers_are_read(lend: Any, request: pytest.FixtureRequest) -> None:
    if "emulated" not in get("cupy")._engine.driver.description:
        pytest.skip("the test's own arrays lie in no memory of CuPy's")
    assert_same(xarr.from_dlpack(OldGpuArray(VALUES.copy())), VALUES)
    x = GpuArray(VALUES.copy())
    xarr.from_dlpack(x)
    xarr.from_dlpack(x, copy=False)
    assert x.calls == [
        {"stream": 1, "max_version": (1, 0)},
        {"stream": 1, "max_version": (1, 0), "copy": False},
    ]


@on_each_device
def test_memory_by_the_interface_of_cuda_arrays(lend: Any) -> None:
    x = lend(VALUES)
    assert_same(xarr.asarray(Described(x)), VALUES)
    assert_same(xarr.asarray(Described(x.T)), VALUES.T)
    assert xarr.asarray(Described(x), copy=False)._node.value.address == address_of(x)
    assert_same(xarr.asarray(Described(x), device="cpu"), VALUES)
    address = address_of(x)
    assert_same(xarr.asarray(Described(x, data=(address, True)), copy=False), VALUES)
    with pytest.raises(BackendError, match=r"the memory of Described cannot be read: .*mask"):
        xarr.asarray(Described(x, mask=x))
    with pytest.raises(BackendError, match="wanted elements at multiples of their size, 4 bytes"):
        xarr.asarray(Described(x, shape=(2, 2), data=(address + 2, False)))
    with pytest.raises(DTypeError, match="wanted elements of a type that xarr has, got"):
        xarr.asarray(Described(x, typestr="<V4"))


def test_the_second_device_by_the_interface_of_cuda_arrays(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    with cupy.cuda.Device(1):
        x = cupy.ndarray(3, np.float32)
        x.set(np.ones(3, np.float32))
    result = xarr.asarray(Described(x))
    assert result.device == "cupy:1"
    assert_same(result, np.ones(3, np.float32))


def test_capsules_that_xarr_cannot_read_are_refused(cupy: Any) -> None:
    def name_unknown_elements(capsule: Any) -> None:
        dlpack._tensor_of(capsule).code = 99

    def name_a_later_version(capsule: Any) -> None:
        dlpack._Versioned.from_address(dlpack._pointer(capsule, b"dltensor_versioned")).major = 2

    class Wrong(GpuArray):
        def __dlpack__(self, **options: Any) -> Any:
            capsule = super().__dlpack__(**options)
            self.change(capsule)
            return capsule

    for change, wanted in (
        (name_unknown_elements, "the memory of Wrong cannot be read"),
        (name_a_later_version, r"wanted DLPack 1\.x, got 2\.0"),
    ):
        x = Wrong(VALUES.copy())
        x.change = change
        with pytest.raises(BackendError, match=wanted):
            xarr.asarray(x)


# --- streams -------------------------------------------------------------------------------------------------


def test_producers_get_the_stream_of_the_caller_ready(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    x = cupy.ndarray(3, np.float32)
    x.set(np.ones(3, np.float32))
    stream = cupy.cuda.Stream(non_blocking=True)
    asked: list[Any] = []

    class Producer(Passed):
        def __dlpack__(self, **options: Any) -> Any:
            asked.append(options["stream"])
            with cupy.cuda.Stream.null:
                return super().__dlpack__(**options)

    host.waits.clear()
    with stream:
        xarr.from_dlpack(Producer(x), copy=False)
    xarr.from_dlpack(Producer(x), copy=False)
    assert asked == [stream.ptr, 1]
    # CuPy lets the stream wait for its own.
    assert host.waits == [(stream.ptr, 0)]


def test_a_copy_is_done_before_the_producer_may_write_again(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    x = cupy.ndarray(3, np.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        host.synchronised.clear()
        xarr.from_dlpack(x)
        assert host.synchronised == [stream.ptr]
        host.synchronised.clear()
        xarr.from_dlpack(x, copy=False)
        assert host.synchronised == []


# --- lifetimes -----------------------------------------------------------------------------------------------


@on_each_device
def test_borrowed_memory_lives_as_long_as_the_array(lend: Any) -> None:
    x = lend(VALUES)
    result = xarr.asarray(x, copy=False)
    owner = weakref.ref(x.array if isinstance(x, GpuArray) else x)
    del x
    gc.collect()
    assert owner() is not None
    assert_same(result, VALUES)
    del result
    gc.collect()
    assert owner() is None


@on_each_device
def test_memory_that_others_hold_is_not_written_over(lend: Any) -> None:
    double = xarr.jit(lambda x: x * 2, donate_argnums=0)
    x = lend(VALUES)
    for _ in range(3):
        assert_same(double(xarr.asarray(x, copy=False)), VALUES * 2)
        assert_same(xarr.asarray(x), VALUES)
    y = (xarr.asarray(VALUES) + 0).evaluate()
    other = xarr.from_dlpack(Passed(y), copy=False)
    assert_same(double(y), VALUES * 2)
    assert_same(other, VALUES)
    z = (xarr.asarray(VALUES) + 0).evaluate()
    described = xarr.asarray(Described(z), copy=False)
    assert_same(double(z), VALUES * 2)
    assert_same(described, VALUES)


@on_each_device
def test_sequences_of_them_are_stacked_on_the_device(lend: Any) -> None:
    row, number = lend(VALUES[0]), lend(np.array(2.5, np.float32))
    for made in (
        xarr.asarray([row, row]),
        xarr.array((row, (number, 2, 3))),
        xarr.asarray([[number, 1], [2, number]]),
    ):
        assert made.device == "cupy" and made.dtype == np.float32
    assert_same(xarr.asarray([row, row]), np.stack([VALUES[0]] * 2))
    assert_same(xarr.asarray([[number, 1], [2, number]], "float64"), np.array([[2.5, 1], [2, 2.5]]))
    on_host = xarr.asarray([number, number], device="cpu")
    assert on_host.device == "cpu"
    assert_same(on_host, np.full(2, 2.5, np.float32))
    with pytest.raises(ValueError, match=r"a sequence of Arrays has no memory to share, so copy=False"):
        xarr.asarray([number, number], copy=False)


# --- without a device ----------------------------------------------------------------------------------------


def test_a_gpu_that_xarr_cannot_use(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, backends = map(importlib.import_module, ("xarr_cupy.driver", "xarr.backend"))

    def refuse() -> Any:
        raise BackendError("backend 'cupy' needs CuPy 14 or later")

    monkeypatch.setattr(driver, "connect", refuse)
    monkeypatch.setattr(backends, "_loaded", {"numpy": get("numpy")})
    for make in (xarr.asarray, xarr.from_dlpack):
        with pytest.raises(
            BackendError,
            match=r'the values of GpuArray lie on a GPU.*needs CuPy 14 or later.*device="cpu" copies',
        ):
            make(GpuArray(VALUES))

    class Copying(GpuArray):
        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(max_version=options["max_version"], dl_device=options["dl_device"])

    assert_same(xarr.asarray(Copying(VALUES.copy()), device="cpu"), VALUES)
