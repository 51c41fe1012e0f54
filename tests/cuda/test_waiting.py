"""Waits of the host for a device: who waits, what is raised then, and what ends a wait."""

from __future__ import annotations

import shutil
import signal
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.host_wheel.device import HostDevice
from tests.cuda.test_cupy_backend import device as emulated
from xarr import lax
from xarr.base import progress
from xarr.compiler.pipeline import make_program
from xarr.errors import BackendError, IndexingError

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def count_waits(backend: Any) -> tuple[int, int]:
    """Count the waits of the host for the emulated device, without a copy and for one."""
    return emulated(backend).waits, emulated(backend).downloads


def test_who_blocks_waits_and_nobody_else(cupy: Any) -> None:
    x = xarr.asarray(np.arange(4.0))
    y = (x * 2 + 1).evaluate()
    assert count_waits(cupy) == (0, 0)
    assert y.block_until_ready() is y
    assert count_waits(cupy) == (1, 0)
    xarr.block_until_ready({"x": x, "others": [y * 2, 3]})
    assert count_waits(cupy) == (3, 0)


def test_a_failed_check_is_told_where_the_host_waits_or_looks(cupy: Any) -> None:
    x = xarr.asarray(np.arange(4.0))
    y = (x[xarr.asarray([7])] * 2).evaluate()
    z = xarr.jit(lambda x: lax.fori_loop(0, 3, lambda i, total: total + x[xarr.asarray([-9])], x[:1]))(x)
    downloads = emulated(cupy).downloads
    for _ in range(2):
        with pytest.raises(IndexingError, match="index 7 is out of bounds for axis 0 with size 4") as caught:
            y.block_until_ready()
        assert any("built at" in note and __file__ in note for note in caught.value.__notes__)
    assert emulated(cupy).downloads == downloads + 2
    with pytest.raises(IndexingError, match="index -9 is out of bounds for axis 0 with size 4"):
        xarr.block_until_ready([x, z])


@pytest.mark.parametrize("call", ["evaluated", "jitted"])
def test_of_several_failed_checks_the_first_is_told(call: str, cupy: Any) -> None:
    x = xarr.asarray(np.arange(4.0))
    before = x[xarr.asarray([7])].evaluate()
    function = xarr.jit if call == "jitted" else lambda function: function
    for _ in range(2):
        after = function(lambda x: x[xarr.asarray([9])])(before)
        with pytest.raises(IndexingError, match="index 7 is out of bounds"):
            np.asarray(after)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_loop(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    device = emulated(cupy)
    launch = device.launch

    def launch_and_interrupt(*arguments: Any) -> None:
        launch(*arguments)
        if device.launches == last:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(device, "launch", launch_and_interrupt)
    x = xarr.asarray(np.arange(4.0))
    endless = xarr.jit(lambda x: lax.while_loop(lambda s: s[0] < 9.0, lambda s: lax.cumsum(s) * 0.5, x))
    last = device.launches + 50
    with pytest.raises(KeyboardInterrupt):
        endless(x)
    assert device.launches < last + 10
    assert_same(x * 2, np.arange(4.0) * 2)


def test_a_check_of_indices_takes_two_launches(cupy: Any) -> None:
    gather = xarr.jit(lambda x, i: (x * 2 + 1)[i] * 3)
    x, i = xarr.asarray(np.arange(5.0)).evaluate(), xarr.asarray(np.array([4, -1, 0])).evaluate()
    gather(x, i)
    device = emulated(cupy)
    before = device.launches
    y = gather(x, i)
    # The result, the reduction of the indices, and the flag.
    assert device.launches - before == 3
    assert_same(y, (np.arange(5.0) * 2 + 1)[[4, -1, 0]] * 3)


def test_progress_is_told_after_each_step_that_is_done(cupy: Any) -> None:
    layer = xarr.jit(lambda v: lax.dot(v, v))
    x = xarr.asarray(np.eye(3) * 2)
    told: list[tuple[int, int | None, int]] = []
    lowered = xarr.lower(lambda x: lax.call(layer, lax.call(layer, x)) + lax.cumsum(x, 0), x).stage("traced")
    compiled = make_program(lowered, cupy).with_progress(lambda *far: told.append(far))
    for _ in range(2):
        told.clear()
        before = emulated(cupy).waits
        (result,) = compiled.program(x.evaluate()._node.value)
        assert_same(cupy.to_host(result), np.eye(3) * 16 + np.cumsum(np.eye(3) * 2, 0))
        total = told[-1][1]
        assert told == [(step, total, 0) for step in range(1, len(told) + 1)] and total == len(told) > 2
        assert emulated(cupy).waits - before == total


def test_evaluate_shows_steps(cupy: Any, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    monkeypatch.setattr(progress, "_LOG", 0)
    x = lax.dot(xarr.eye(3), xarr.eye(3))
    xarr.evaluate(x, progress="it")
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"it 100% |{'█' * 24}| ")
    assert_same(x, np.eye(3))


def body_by_host(k: Any, x: Any) -> Any:
    """An iteration of which the host computes a part."""
    return lax.linalg.triangular_solve(xarr.eye(3), x)


LOOPS = {
    "counted": lambda x: lax.fori_loop(0, 7, lambda k, s: lax.cumsum(s, 0), x, progress="own"),
    "of points": lambda x: lax.fori_loop(0, 7, lambda k, s: s * 0.5 + k, x, progress="own"),
    "with the host": lambda x: lax.fori_loop(0, 7, body_by_host, x, progress="own"),
    "of two nested": lambda x: lax.fori_loop(
        0, 2, lambda k, s: lax.fori_loop(0, 9, lambda k, s: lax.cumsum(s, 0), s), x, progress="own"
    ),
    "nested": lambda x: lax.fori_loop(
        0, 7, lambda k, s: lax.fori_loop(0, 9, lambda k, s: lax.cumsum(s, 0), s), x, progress="own"
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_draws_its_bar(
    name: str, cupy: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    monkeypatch.setattr(progress, "_LOG", 0)
    x = np.eye(3)
    result = np.asarray(xarr.jit(LOOPS[name])(xarr.asarray(x)))
    lines = capsys.readouterr().err.splitlines()
    assert lines and all(line.startswith("own ") for line in lines)
    count = 2 if "two" in name else 7
    assert lines[-1].startswith(f"own 100% |{'█' * 24}| {count}/{count} [")
    with xarr.use_backend("numpy"):
        assert_same(result, np.asarray(LOOPS[name](xarr.asarray(x))))


def test_a_loop_of_unknown_length_counts_what_it_knows(
    cupy: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    monkeypatch.setattr(progress, "_LOG", 0)

    def halve(x: Any) -> Any:
        return lax.while_loop(lambda s: lax.reduce_sum(s, (0,)) > 1, lambda s: lax.rev(s, (0,)) * 0.5, x)

    x = xarr.asarray(np.arange(5.0) * 100)
    loop = lax.while_loop(
        lambda s: lax.reduce_sum(s, (0,)) > 1, lambda s: lax.rev(s, (0,)) * 0.5, x, progress="own"
    )
    assert_same(loop, halve(x))
    lines = capsys.readouterr().err.splitlines()
    assert lines and " steps [" in lines[-1] and 1 <= int(lines[-1].split()[1]) <= 10


# --- faults, on the CuPy wheel, of programs of shapes that no other test has ----------------------------------------


def failing(action: Any) -> list[str]:
    """The message and the notes of the error of a device that failed."""
    with pytest.raises(
        BackendError, match=r"the device failed, (cudaErrorIllegalA|CUDA_ERROR_ILLEGAL_A)"
    ) as caught:
        action()
    return [str(caught.value), *[note for note in caught.value.__notes__ if "launched before" in note]]


def test_a_wait_tells_of_a_fault_with_the_line(host: HostDevice) -> None:
    y = (xarr.asarray(np.arange(17.0)) * 2.5).evaluate()
    host.fail()
    message, note = failing(y.block_until_ready)
    assert "Launched since the host last waited for it, the latest first: xarr_0(" in message
    assert "launched before: mul ->" in note and __file__ in note


def test_an_error_lists_the_last_of_many_and_says_so(host: HostDevice) -> None:
    x = xarr.asarray(np.arange(19.0)).block_until_ready()
    for _ in range(12):
        x = (x * x).evaluate()
    host.fail()
    message, *notes = failing(x.block_until_ready)
    assert (
        "waited for it, the last 8 of 12, the latest first: " in message and message.count("; xarr_0(") == 7
    )
    assert len(notes) == 8 and all("launched before (the last 8 of 12): mul" in note for note in notes)


def test_what_is_asked_of_a_device_that_failed_names_the_program(host: HostDevice) -> None:
    x = xarr.asarray(np.arange(23.0)).block_until_ready()
    y = (x * 2.5).evaluate()
    host.fail()
    for action in (
        lambda: xarr.asarray(np.arange(4.0)),
        lambda: (y + 1).evaluate(),
        lambda: xarr.ones((1000, 1000)).evaluate(),
    ):
        _, *notes = failing(action)
        assert any("mul" in note and __file__ in note for note in notes)
