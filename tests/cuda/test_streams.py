"""Streams: the caller's is used, and what another one did with an array comes before, under the CuPy wheel."""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.host_wheel.device import HostDevice
from xarr import lax
from xarr.backend import get

X = np.arange(5.0)


def streams(count: int) -> list[Any]:
    """New streams that wait for no other."""
    cupy = importlib.import_module("cupy")
    return [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]


USES: dict[str, Callable[[Any], Any]] = {
    "a program": lambda x: (x * x).evaluate(),
    "a jitted call": lambda x: xarr.jit(lambda x: x + x)(x),
    "a look": np.asarray,
    "a wait": lambda x: x.block_until_ready(),
    "a copy": lambda x: importlib.import_module("cupy").asarray(x),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_stream_waits_for_the_one_before_and_is_waited_for(
    use: Callable[[Any], Any], host: HostDevice
) -> None:
    first, second = streams(2)
    with first:
        x = (xarr.asarray(X) - 1.0).evaluate()
    host.waits.clear()
    host.streams.clear()
    with second:
        use(x)
    # Memory of `x` goes back to the first stream, so that this comes after the use.
    assert host.waits[:2] == [(second.ptr, first.ptr), (first.ptr, second.ptr)]
    assert len(set(host.waits)) == 2
    assert set(host.streams) <= {second.ptr}


def test_an_error_is_not_hidden_by_one_of_the_order_of_streams(
    host: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = streams(2)
    with first:
        x = (xarr.asarray(X) - 1.0).evaluate()
    gpu, memory = get("cupy")._engine.driver, x._node.value.memory
    with second, pytest.raises(KeyboardInterrupt) as caught, gpu.order_streams([memory]):
        monkeypatch.setattr(host, "streamWaitEvent", lambda *arguments: host._raise(700))
        raise KeyboardInterrupt
    assert [note[:60] for note in caught.value.__notes__] == [
        "and then: backend 'cupy': the device failed, cudaErrorIllegal"[:60]
    ]
    with (
        second,
        pytest.raises(xarr.errors.BackendError, match="the device failed"),
        gpu.order_streams([memory]),
    ):
        pass


def test_pinned_memory_is_read_before_a_call_returns(host: HostDevice) -> None:
    runtime, values = importlib.import_module("cupy").cuda.runtime, X.copy()
    compiled = xarr.jit(lambda x: x + 1.0)
    compiled(values)
    host.synchronised.clear()
    compiled(values)
    assert not host.synchronised
    runtime.hostRegister(values.ctypes.data, values.nbytes, 0)
    try:
        compiled(values)
    finally:
        runtime.hostUnregister(values.ctypes.data)
    assert len(host.synchronised) == 1


def test_on_one_stream_nothing_waits(host: HostDevice) -> None:
    (stream,) = streams(1)
    host.waits.clear()
    with stream:
        x = xarr.asarray(X)
        for _ in range(3):
            x = (lax.rev(x, (0,)) * 2.0).block_until_ready()
        np.asarray(x)
    assert host.waits == []


def test_results_go_on_to_a_third_stream(host: HostDevice) -> None:
    first, second, third = streams(3)
    with first:
        x = xarr.asarray(X)
    with second:
        y = (x * x).evaluate()
    host.waits.clear()
    with third:
        assert_same(x + y, X + X * X)
    assert (third.ptr, first.ptr) in host.waits and (third.ptr, second.ptr) in host.waits


def test_donated_memory_stays_in_order(host: HostDevice) -> None:
    first, second, third = streams(3)
    large = np.arange(10_000.0)
    with first:
        x = (xarr.asarray(large) + 1.0).evaluate()
    with second:
        y = xarr.jit(lambda x: x * x, donate_argnums=0)(x)
    host.waits.clear()
    with third:
        assert_same(y, (large + 1) ** 2)
    # The first stream, whose memory it is, waits for the second since that wrote there.
    assert host.waits[0] == (third.ptr, first.ptr)


def test_streams_of_threads_wait_for_the_whole_device(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    made: list[Any] = []

    def make() -> None:
        with xarr.use_backend("cupy"), cupy.cuda.Stream.ptds:
            made.append((xarr.asarray(X) - 1.0).evaluate())

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    before = host.device_waits
    with cupy.cuda.Stream.ptds:
        y = (made[0] + 1.0).evaluate()
        # Before, and behind, since the memory goes back to the other stream.
        assert host.device_waits == before + 2
        assert_same(y, X)
    assert_same(made[0] + 1.0, X)


def test_the_device_is_waited_for_while_no_thread_captures(
    host: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, other, own = get("cupy")._engine.driver, *streams(2)
    runtime, can_capture = importlib.import_module("cupy").cuda.runtime, []
    wait = runtime.deviceSynchronize

    def wait_for_device() -> None:
        can_capture.append(not driver._capturing.locked())
        wait()

    monkeypatch.setattr(runtime, "deviceSynchronize", wait_for_device)
    with own, driver._order_after(own, {(other.ptr, threading.get_ident() + 1): other}):
        pass
    # Before, and behind.
    assert can_capture == [False, False]


def test_the_host_device_refuses_to_wait_for_a_stream_that_captures(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    (stream,) = streams(1)
    stream.begin_capture()
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="StreamCaptureUnsupported"):
        cupy.cuda.runtime.deviceSynchronize()
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="StreamCaptureInvalidated"):
        stream.end_capture()


def test_values_handed_from_stream_to_stream_are_right(device: str) -> None:
    made, wanted = streams(4), np.arange(300_000.0)
    x = xarr.asarray(wanted)
    for number in range(12):
        with made[number % 4]:
            # The memory of the one before is free for the stream that it is of.
            x = (lax.rev(x, (0,)) + float(number)).evaluate()
        wanted = wanted[::-1] + number
    assert_same(x, wanted)


# --- captures of the caller's ---------------------------------------------------------------------------------------


def capture(stream: Any, action: Callable[[], Any]) -> tuple[Any, Any]:
    """The graph of what an action asks for on a stream, and what the action gives."""
    stream.begin_capture()
    try:
        result = action()
    except BaseException:
        stream.end_capture()
        raise
    return stream.end_capture(), result


def double_often(f: Any, x: Any) -> Any:
    """So many launches that the host would look how far the device is."""
    for _ in range(200):
        x = f(x)
    return x.evaluate()


@pytest.mark.parametrize("rows", [1, 5], ids=["launches", "graphs of xarr's own"])
def test_a_capture_of_the_caller_holds_what_xarr_launches(rows: int, host: HostDevice) -> None:
    (stream,) = streams(1)
    f = xarr.jit(lambda x: functools.reduce(lambda x, _: lax.rev(lax.cumsum(x, 0), (0,)), range(rows), x))
    with stream:
        x = (xarr.asarray(X) * 0.5).evaluate()
        wanted = np.asarray(f(x))
        np.asarray(f(x)), np.asarray(f(x))
        launches = host.launches + host.replays
        graph, y = capture(stream, lambda: f(x).evaluate())
        assert host.launches + host.replays == launches
        for _ in range(2):
            graph.launch(stream)
            assert_same(y, wanted)


def test_a_number_of_a_capture_is_kept_for_no_other_call(host: HostDevice) -> None:
    (stream,) = streams(1)
    with stream:
        x = (xarr.asarray(X) + 1.0).evaluate()
        # A number that is known, and another one in the memory where that lay.
        (x * 2.5).evaluate(), (x * 9.25).evaluate()
        graph, y = capture(stream, lambda: (x * 2.5).evaluate())
        assert_same(x * 2.5, (X + 1.0) * 2.5)
        graph.launch(stream)
        assert_same(y, (X + 1.0) * 2.5)


@pytest.mark.parametrize("has_pool", [False, True])
def test_a_replay_writes_over_memory_of_others_unless_it_has_a_pool(has_pool: bool, host: HostDevice) -> None:
    cuda = importlib.import_module("cupy").cuda
    (stream,), pool = streams(1), cuda.MemoryPool()
    f = xarr.jit(lambda x: functools.reduce(lambda x, _: lax.rev(lax.cumsum(x, 0), (0,)), range(4), x))
    with stream:
        x = (xarr.asarray(np.arange(4000.0)) + 1.0).evaluate()
        wanted = np.asarray(f(x))
        with cuda.using_allocator(pool.malloc) if has_pool else contextlib.nullcontext():
            graph, y = capture(stream, lambda: f(x).evaluate())
        later = [(x * k).evaluate() for k in range(8)]
        before = [np.asarray(each).copy() for each in later]
        graph.launch(stream)
        assert_same(y, wanted)
        assert all(np.array_equal(*pair) for pair in zip(later, before, strict=True)) is has_pool


def test_events_of_a_capture_are_not_asked_for(host: HostDevice) -> None:
    (stream,) = streams(1)
    f = xarr.jit(lambda x: x + x)
    with stream:
        x = (xarr.asarray(X) * 0.5).evaluate()
        f(x).evaluate()
        graph, y = capture(stream, lambda: double_often(f, x))
        graph.launch(stream)
        assert_same(y, X * 0.5 * 2.0**200)
        # Nor are they when the capture is over.
        assert_same(double_often(f, x), X * 0.5 * 2.0**200)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a look": (np.asarray, "looked at"),
    "a wait": (lambda x: x.block_until_ready(), "waited for"),
    "an upload": (lambda x: xarr.asarray(X).evaluate(), "copied from the host"),
}


@pytest.mark.parametrize(("action", "words"), REFUSED.values(), ids=REFUSED)
def test_what_a_capture_cannot_hold_is_no_fault_of_the_device(
    action: Any, words: str, host: HostDevice
) -> None:
    (stream,) = streams(1)
    with stream:
        x = (xarr.asarray(X) * 0.5).evaluate()
        with pytest.raises(
            xarr.errors.BackendError, match=f"while a stream captures a graph.*{words}"
        ) as caught:
            capture(stream, lambda: action(x))
        assert type(caught.value) is xarr.errors.BackendError
        assert_same(x + x, X)


def test_a_capture_cannot_wait_for_another_stream(host: HostDevice) -> None:
    first, second = streams(2)
    with first:
        x = (xarr.asarray(X) * 0.5).evaluate()
    with second:
        with pytest.raises(
            xarr.errors.BackendError, match="the current stream captures a graph, which cannot"
        ):
            capture(second, lambda: (x + x).evaluate())
        assert_same(x + x, X)
