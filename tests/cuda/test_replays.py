"""Programs that run again: CUDA graphs of them, and what a replay asks of the driver, under the CuPy wheel."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.host_wheel.device import HostDevice
from xarr import lax
from xarr.backend import get
from xarr_cupy.driver import CupyDriver
from xarr_cupy.runtime import packed_launches


def five_kernels(x: Any, n: Any = 1.0) -> Any:
    """Sums along both axes, in an order that no kernel has whole."""
    for _ in range(2):
        x = lax.cumsum(lax.cumsum(x, 0), 1) * n
    return lax.rev(x, (0, 1)) - x


def compute_expected(x: np.ndarray[Any, Any], n: float = 1.0) -> np.ndarray[Any, Any]:
    for _ in range(2):
        x = np.cumsum(np.cumsum(x, 0), 1) * n
    return x[::-1, ::-1] - x


X = np.arange(12.0).reshape(3, 4)


def counts(host: HostDevice) -> tuple[int, int, int]:
    """Allocations, copies and waits."""
    return host.mallocs, host.copies, len(host.synchronised)


def test_a_thousand_replays_with_numbers_ask_for_launches_alone(host: HostDevice) -> None:
    compiled, x = xarr.jit(five_kernels), xarr.asarray(X)
    for k in range(8):
        y = compiled(x, float(k))
    before, replays = counts(host), host.replays
    for k in range(1000):
        y = compiled(x, 0.5 + k)
    assert counts(host) == before
    assert host.replays - replays > 900
    assert_same(y, compute_expected(X, 999.5))


@pytest.mark.parametrize(
    "numbers", [(2, 2.5, True, 1j), (2,), tuple(range(9)), (-1, 2**40, -0.0, float("nan"), False)]
)
def test_numbers_of_each_kind_are_stored_by_a_kernel(numbers: tuple[Any, ...], host: HostDevice) -> None:
    copies = host.copies
    results = xarr.jit(lambda *n: (*n, *[each * 2 for each in n if type(each) is not bool]))(*numbers)
    assert host.copies == copies
    with xarr.use_backend("numpy"):
        wanted = xarr.jit(lambda *n: (*n, *[each * 2 for each in n if type(each) is not bool]))(*numbers)
    for result, each in zip(results, wanted, strict=True):
        assert_same(result, each)


def test_a_row_of_launches_is_captured_when_its_addresses_come_again(host: HostDevice) -> None:
    compiled, x = xarr.jit(five_kernels), xarr.asarray(X)
    replayed = []
    for _ in range(8):
        before = host.replays
        assert_same(compiled(x), compute_expected(X))
        replayed.append(host.replays - before)
    # The pool exchanges the memory of the arena and of the result.
    assert replayed[0] == 0 and replayed[4:] == [1, 1, 1, 1]
    # Other arguments have other addresses.
    others = [xarr.asarray(X + k) for k in range(5)]
    for _ in range(3):
        for k, each in enumerate(others):
            assert_same(compiled(each), compute_expected(X + k))


def test_sets_of_addresses_are_bounded(host: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_launches, "MOST_GRAPHS", 2)
    compiled = xarr.jit(five_kernels)
    arrays = [xarr.asarray(X + k) for k in range(5)]
    before = host.graphs
    for _ in range(4):
        for k, each in enumerate(arrays):
            assert_same(compiled(each), compute_expected(X + k))
    # A graph and what is launched of it, for each that is kept; programs of other tests may go, with theirs.
    assert len(host.graphs - before) == 4


def test_graphs_of_all_programs_are_bounded_together(
    host: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = xarr.asarray(X)
    before = host.graphs
    for k in range(6):
        compiled = xarr.jit(lambda x, k=k: five_kernels(x, 1.0 + k))
        for _ in range(4):
            assert_same(compiled(x), compute_expected(X, 1.0 + k))
        if k == 0:
            memory = get("cupy")._engine.driver._graphs
            monkeypatch.setattr(packed_launches, "MOST_CAPTURED", 2 * memory.launches)
    # A graph and what is launched of it, for each program.
    assert memory.launches <= packed_launches.MOST_CAPTURED
    assert len(host.graphs - before) <= 2 * 4


def test_graphs_that_are_replayed_stay() -> None:
    memory = packed_launches.GraphMemory()
    rows = [packed_launches.GraphCache(memory, packed_launches.MOST_CAPTURED // 4) for _ in range(8)]
    for row in rows:
        for _ in range(2):
            row.graph(b"0", lambda row=row: f"graph {rows.index(row)}")
        assert rows[0].graph(b"0", lambda: pytest.fail("it was dropped")) == "graph 0"
    assert memory.launches == packed_launches.MOST_CAPTURED
    assert rows[1].graph(b"0", lambda: "anew") is None
    # To capture it in vain again takes longer than to launch.
    assert rows[1].is_closed and not rows[0].is_closed
    del rows[1:], row
    assert memory.launches == packed_launches.MOST_CAPTURED // 4


@pytest.mark.parametrize(("sets", "most_captures"), [(16, 16), (40, 17)])
def test_graphs_that_would_go_before_they_are_replayed_are_not_captured(
    sets: int, most_captures: int
) -> None:
    graphs, captured = packed_launches.GraphCache(packed_launches.GraphMemory(), 5), []
    for _ in range(6):
        for k in range(sets):
            graph = graphs.graph(bytes([k]), lambda k=k: captured.append(k) or f"graph {k}")
            assert graph in (None, f"graph {k}")
    assert len(captured) == most_captures
    # Those that there are still serve.
    assert graphs.graph(bytes([captured[-1]]), lambda: None) == f"graph {captured[-1]}"


def test_what_cannot_be_captured_is_launched(host: HostDevice) -> None:
    host.uncaptured.add("xarr_0")
    compiled, x = xarr.jit(five_kernels), xarr.asarray(X)
    before = host.replays
    for _ in range(4):
        assert_same(compiled(x), compute_expected(X))
    assert host.replays == before


@pytest.mark.parametrize(("status", "is_tried_again"), [(2, True), (900, False), (801, False)])
def test_a_capture_without_memory_is_tried_again(status: int, is_tried_again: bool, host: HostDevice) -> None:
    host.capture_status = status
    compiled, x = xarr.jit(five_kernels), xarr.asarray(X)
    before = host.replays
    for _ in range(4):
        assert_same(compiled(x), compute_expected(X))
    assert host.replays == before
    host.capture_status = None
    for _ in range(6):
        assert_same(compiled(x), compute_expected(X))
    assert (host.replays > before) == is_tried_again


def test_a_fault_of_the_device_in_a_capture_is_told(host: HostDevice) -> None:
    compiled, x = xarr.jit(five_kernels), xarr.asarray(X)
    compiled(x).block_until_ready()
    host.capture_status = 700
    with pytest.raises(xarr.errors.BackendError, match=r"the device failed, cudaErrorIllegalAddress.*xarr_"):
        for _ in range(4):
            compiled(x)


def test_the_first_error_of_a_capture_counts(host: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, x = xarr.jit(five_kernels), xarr.asarray(X)
    compiled(x).block_until_ready()
    launch = CupyDriver._launch_all

    def fail(self: Any, prepared: Any, table: Any, stream: int) -> None:
        launch(self, prepared, table, stream)
        if host.streamIsCapturing(stream):
            host.capture_status = 901
            raise KeyboardInterrupt

    monkeypatch.setattr(CupyDriver, "_launch_all", fail)
    with pytest.raises(KeyboardInterrupt):
        for _ in range(4):
            compiled(x)
    assert not host._captures


def test_graphs_are_cut_at_products(host: HostDevice) -> None:
    def function(x: Any) -> Any:
        return five_kernels(lax.dot(five_kernels(x), lax.transpose(x, (1, 0))))

    compiled, x = xarr.jit(function), xarr.asarray(X)
    for _ in range(3):
        before = host.replays
        result = np.asarray(compiled(x))
    assert host.replays - before == 2
    assert_same(result, compute_expected(compute_expected(X) @ X.T))


def test_a_graph_runs_on_the_stream_of_the_caller(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    compiled = xarr.jit(five_kernels)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = xarr.asarray(X)
        for _ in range(4):
            compiled(x)
        host.streams.clear()
        before = host.replays
        y = compiled(x)
        assert host.replays == before + 1 and set(host.streams) == {stream.ptr}
        assert_same(y, compute_expected(X))


def test_a_fault_in_a_graph_names_its_programs(host: HostDevice) -> None:
    compiled, x = xarr.jit(five_kernels), xarr.asarray(X)
    for _ in range(4):
        compiled(x).block_until_ready()
    y = compiled(x)
    host.fail()
    with pytest.raises(
        xarr.errors.BackendError, match=r"the device failed, .*the latest first: xarr_"
    ) as caught:
        y.block_until_ready()
    assert any("launched before" in note and __file__ in note for note in caught.value.__notes__)


def test_replays_are_right_on_each_device(device: str) -> None:
    compiled = xarr.jit(five_kernels)
    arrays = [xarr.asarray(X + k) for k in range(3)]
    for number in range(6):
        for k, x in enumerate(arrays):
            assert_same(compiled(x, 0.5 * number), compute_expected(X + k, 0.5 * number))


def test_a_launch_within_another_has_arguments_of_its_own(
    host: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = importlib.import_module("cupy").cuda
    compiled, arrays = xarr.jit(lambda x: x * 2.5), [xarr.asarray(X + k).evaluate() for k in range(4)]
    compiled(arrays[0]), compiled(arrays[0])
    launch, results, inner = cuda.driver.launchKernel, [], arrays[1:]

    def launch_others_first(*arguments: Any) -> None:
        if inner:
            results.append(compiled(inner.pop()))
        launch(*arguments)

    monkeypatch.setattr(cuda.driver, "launchKernel", launch_others_first)
    results.append(compiled(arrays[0]))
    # The innermost call is done first.
    for result, x in zip(results, [X + 1, X + 2, X + 3, X], strict=True):
        assert_same(result, x * 2.5)


def test_a_kernel_allocates_its_result_alone(host: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    allocated, cuda = [], importlib.import_module("cupy").cuda
    allocate = cuda.alloc

    def count(nbytes: int) -> Any:
        allocated.append(nbytes)
        return allocate(nbytes)

    compiled, x = xarr.jit(lambda x: x * 2.5 + 1), xarr.asarray(X).evaluate()
    compiled(x)
    monkeypatch.setattr(cuda, "alloc", count)
    assert_same(compiled(x), X * 2.5 + 1)
    assert allocated == [X.nbytes]
