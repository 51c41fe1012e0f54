"""Laziness: what is computed when, what is kept, how memory stays bounded, and what failures leave behind."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import xarr
from tests.base.test_strictness import run
from tests.compare import assert_same
from xarr import backend as backends
from xarr.compiler.programs import Programs
from xarr.ir.graph import Graph, Node, data
from xarr.ir.ops import Call, Constant
from xarr.ir.types import TensorType
from xarr.runtime import evaluation, handles, pending
from xarr_numpy.backend import NumpyBackend

pytestmark = pytest.mark.usefixtures("recorded")

HostArray = np.ndarray[Any, Any]


class Counting(NumpyBackend):
    """NumPy's backend, which counts what it compiles and runs, and fails while `broken`."""

    name = "counting"

    def __init__(self) -> None:
        self.compiled: list[Graph] = []
        self.runs = 0
        self.broken = False

    def compile(self, graph: Graph) -> Any:
        self.compiled.append(graph)
        program = super().compile(graph)

        def run(*arguments: Any) -> Any:
            self.runs += 1
            if self.broken:
                raise ArithmeticError("the device is on fire")
            return program(*arguments)

        return run

    def compile_eager(self, graph: Graph) -> Any:
        return self.compile(graph)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    backend = Counting()
    monkeypatch.setattr(backends, "_loaded", {**backends._loaded, "counting": backend})
    monkeypatch.setattr(evaluation, "_programs", Programs())
    with xarr.use_backend("counting"):
        yield backend


# --- what is computed when -------------------------------------------------------------------------------


def test_nothing_is_computed_before_somebody_looks(counting: Counting) -> None:
    x = xarr.asarray([1.0, 2.0])
    y = (x + 1) * x
    assert counting.runs == 0
    assert not y.is_evaluated
    looks: list[Callable[[xarr.Array], Any]] = [
        *(np.asarray, repr, str, list, lambda a: a.tolist(), lambda a: a.item(0), xarr.evaluate),
        *(lambda a: 1.0 in a, lambda a: bool(a[0]), lambda a: float(a[0]), lambda a: int(a[0])),
    ]
    for number, look in enumerate(looks):
        z = xarr.asarray([1.0, 2.0]) + number
        runs = counting.runs
        look(z)
        assert counting.runs > runs


def test_several_in_one_program(counting: Counting) -> None:
    x = xarr.asarray([1.0, 2.0])
    y, z = x + 1, x * 2
    xarr.evaluate(y, z)
    assert counting.runs == 1
    assert y.is_evaluated
    assert z.is_evaluated
    xarr.evaluate(y, z)
    xarr.evaluate()
    assert counting.runs == 1


@pytest.mark.usefixtures("unfused")
def test_values_of_other_live_arrays_are_kept(counting: Counting) -> None:
    x = xarr.asarray([1.0, 2.0])
    shared = x + 1
    y, z = shared * 2, shared * 3
    y.evaluate()
    assert shared.is_evaluated
    z.evaluate()
    assert len(counting.compiled[-1].nodes) == 2, "3 laid over the shape, and the product; the sum is there"
    assert_same(z, np.array([6.0, 9.0]))


def test_dead_intermediates_are_not_results(counting: Counting) -> None:
    x = xarr.asarray([1.0, 2.0])
    y = xarr.exp(xarr.exp(x) + 1)
    y.evaluate()
    assert len(counting.compiled[0].results) == 1


def test_equal_structures_share_a_program(counting: Counting) -> None:
    for rate in (0.5, 1.5, 2.5):
        (xarr.asarray([1.0, 2.0]) * rate - rate).evaluate()
    assert (len(counting.compiled), counting.runs) == (1, 3)
    (xarr.asarray([1.0, 2.0, 3.0]) * 0.5 - 0.5).evaluate()
    assert len(counting.compiled) == 2


def test_equal_literals_do_not_get_mixed_up(counting: Counting) -> None:
    """Equal scalars are one leaf; the program of `x*2 + 2` must not run `x*2 + 3`."""
    x = xarr.asarray([1.0])
    for a, b in ((2.0, 2.0), (2.0, 3.0), (3.0, 3.0), (0.0, -0.0)):
        assert_same((x * a + b) / b, (np.ones(1) * a + b) / b) if b else None
        assert_same(x * a * b, np.ones(1) * a * b)
    assert len(counting.compiled) <= 5


def test_a_value_that_equals_a_literal_is_not_taken_for_it() -> None:
    zero, other = xarr.asarray(np.float64(0)), xarr.asarray(np.float64(0))
    xarr.evaluate(zero, other)
    assert np.isnan(np.asarray(xarr.remainder(zero, other)))  # The formula has literals of 0, too.
    three = xarr.asarray(np.float64(3))
    xarr.evaluate(three)
    assert np.asarray(xarr.remainder(zero, three)) == 0


def test_the_programs_kept_are_bounded(counting: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(count=10)
    monkeypatch.setattr(evaluation, "_programs", programs)
    x, used = xarr.asarray(np.arange(200.0)), xarr.asarray(np.ones(1))
    for number in range(200):
        assert_same(x[number], np.float64(number))
        (used + 1).evaluate()
    assert len(programs) == 10
    # The one that was used all the time stayed, though it is the oldest.
    compiled = len(counting.compiled)
    (used + 1).evaluate()
    assert len(counting.compiled) == compiled
    x[0].evaluate()
    assert len(counting.compiled) == compiled + 1


def call_with_literal(size: int, inner: bool) -> xarr.Array:
    """A call of a computation that holds 8 * `size` bytes, itself or in one that it calls."""
    literal = Node(Constant.of(np.full(size, float(size))))
    graph = Graph((), [literal])
    return handles.wrap(Node(Call(Graph((), [Node(Call(graph))]) if inner else graph)))


@pytest.mark.parametrize("inner", [False, True], ids=["in the graph", "in a computation of one"])
def test_the_bytes_of_programs_kept_are_bounded(monkeypatch: pytest.MonkeyPatch, inner: bool) -> None:
    programs = Programs(nbytes=120_000)
    monkeypatch.setattr(evaluation, "_programs", programs)
    for size in range(1000, 1100):
        assert_same(call_with_literal(size, inner), np.full(size, float(size)))
    assert 5 < len(programs) <= 10
    assert 50_000 < programs.nbytes_kept <= 120_000
    call_with_literal(20_000, inner).evaluate()
    assert len(programs) == 1, "the last one stays, however large"
    call_with_literal(1000, inner).evaluate()
    assert programs.nbytes_kept < 20_000


def test_a_program_survives_the_evaluation_of_its_nodes() -> None:
    """A program holds copies: settling the first result must not change what runs for the second."""
    for backend in ("numpy", "reference"):
        with xarr.use_backend(backend):
            for _ in range(3):
                assert_same(xarr.arange(5) + 0, np.arange(5))
                assert_same(xarr.lax.iota("int32", 4), np.arange(4, dtype=np.int32))


def test_operands_go_after_evaluation() -> None:
    x = xarr.asarray(np.ones(1000))
    y = xarr.exp(x) + 1
    operands = [weakref.ref(node) for node in y._node.operands]
    buffer = weakref.ref(x._node.value)
    y.evaluate()
    del x
    gc.collect()
    assert [reference() for reference in operands] == [None, None]
    assert buffer() is None
    assert_same(y, np.full(1000, np.exp(1) + 1), ulp=1)


def test_values_do_not_live_in_programs() -> None:
    x = xarr.arange(1000) * 1
    x.evaluate()
    buffer = weakref.ref(x._node.value)
    del x
    gc.collect()
    assert buffer() is None


# --- long chains and loops -------------------------------------------------------------------------------


@pytest.mark.parametrize("max_depth", [10_000, 1_000_000])
def test_a_chain_of_100_000_operations(max_depth: int) -> None:
    with xarr.config(max_depth=max_depth):
        x = xarr.asarray([1.0, 2.0])
        y = x
        for _ in range(100_000):
            y = y + x
        assert y._node.depth > 0
        assert_same(y, np.array([100_001.0, 200_002.0]))
        first = weakref.ref(x._node)
        del x, y
        assert first() is None


def test_a_long_chain_is_freed_without_being_evaluated() -> None:
    with xarr.config(max_depth=1_000_000):
        y = x = xarr.asarray([1.0])
        for _ in range(100_000):
            y = -y
        last = weakref.ref(y._node)
        del x, y
        assert last() is None


def test_long_graphs_with_tuples_and_several_results() -> None:
    with xarr.config(max_depth=1_000_000):
        x = xarr.asarray([3.0, 1.0, 2.0])
        y, kept = x, []
        for step in range(600):
            smallest, index = xarr.lax.sort((y, xarr.lax.iota("int32", 3)), num_keys=1)
            y = smallest * 1.0 + index.astype(np.float64) * 0.0 + 1.0
            if step % 100 == 0:
                kept.append(y)
        xarr.evaluate(y, kept[0])
        assert_same(y, np.array([601.0, 602.0, 603.0]))
        for number, value in enumerate(kept):
            assert value.is_evaluated
            assert_same(value, np.array([1.0, 2.0, 3.0]) + 100 * number + 1 - 0.0)


def test_a_long_graph_is_cut_between_a_tuple_and_its_last_use() -> None:
    with xarr.config(max_depth=1_000_000):
        y, index = xarr.lax.sort((xarr.asarray([3.0, 1.0]), xarr.lax.iota("int32", 2)), num_keys=1)
        for _ in range(5000):
            y = y + 1.0
        y = y + index.astype(np.float64)
        parts = pending.parts_of(pending.order_of([y._node]), [y._node])
        assert len(parts) > 2 and max(len(order) for order, _ in parts) < 2 * pending.LONGEST
        assert_same(y, np.array([5002.0, 5003.0]))


def test_doubling_shares_its_operand() -> None:
    x = xarr.asarray(np.array([1.0]))
    for _ in range(1000):
        x = x + x
    assert_same(x, np.array([2.0**1000]))


def test_a_chain_past_the_bound_is_evaluated_on_its_own() -> None:
    with xarr.config(max_depth=500):
        x = xarr.asarray([1.0])
        for _ in range(2000):
            x = x + 1
        assert x._node.depth <= 500
    assert_same(x, np.array([2001.0]))


def test_dead_data_past_the_bound_is_consumed() -> None:
    with xarr.config(max_pending_bytes=2**20):
        total = xarr.asarray(np.zeros(2**15))
        for _ in range(40):
            total += xarr.asarray(np.ones(2**15))
        assert handles._orphans.nbytes < 2**21
    assert_same(total, np.full(2**15, 40.0))


LOOP = """
import numpy as np, resource, xarr
x = xarr.asarray(np.zeros({size}))
(x + 1).evaluate()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for step in range(3_000):
    x {update}
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown // 1024, float(x[0]))
"""


@pytest.mark.parametrize(
    ("update", "size"),
    [
        ("= x + 1.0", 2**17),
        ("+= xarr.asarray(np.full(32768, 1.0))", 2**15),
        ("= x + np.full(32768, 1.0)", 2**15),
        ("= xarr.lax.add(np.full(32768, 1.0), x)", 2**15),
        ("= xarr.asarray(np.full(32768, 1.0)) + x.copy()", 2**15),
        ("[0:] = np.full(32768, float(step + 1))", 2**15),
    ],
    ids=["numbers", "fresh arrays in place", "NumPy arrays", "lax", "fresh arrays", "setitem"],
)
def test_a_loop_that_never_looks_stays_small(update: str, size: int) -> None:
    """Each array holds at least 256 KiB, so 3,000 of them would be 750 MB."""
    done = run(LOOP.format(update=update, size=size).replace("x [0:]", "x[0:]"))
    assert done.returncode == 0, done.stderr
    grown, value = done.stdout.split()
    assert float(value) == 3_000.0
    assert int(grown) < 200


# --- failures --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unfused")
def test_an_error_at_evaluation_names_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise FloatingPointError("kernel out of order")

    x = xarr.asarray([1.5]).to("numpy")
    y = x + 1  # evaluated before with the same structure, at another line
    y.evaluate()
    monkeypatch.setattr(np, "add", fail)
    z = x + 1
    with pytest.raises(FloatingPointError, match="kernel out of order") as caught:
        z.evaluate()
    (note,) = caught.value.__notes__
    assert "while computing add -> tensor<1xf64>, built at" in note
    assert f"{__file__}:" in note
    assert "z = x + 1" in note
    monkeypatch.undo()
    assert_same(z, np.array([2.5]))


def test_a_failure_leaves_everything_as_it_was(counting: Counting) -> None:
    x = xarr.asarray([1.0])
    y = x + 1
    z = y * 2
    counting.broken = True
    for _ in range(2):
        with pytest.raises(ArithmeticError, match="on fire"):
            xarr.evaluate(y, z)
    assert not y.is_evaluated
    assert not z.is_evaluated
    counting.broken = False
    assert_same(z, np.array([4.0]))
    assert_same(y, np.array([2.0]))


def test_a_failure_in_a_bounded_loop_is_raised_where_the_loop_is(counting: Counting) -> None:
    counting.broken = True
    x = xarr.asarray([1.0])
    with xarr.config(max_depth=300), pytest.raises(ArithmeticError):
        for _ in range(1000):
            x = x + 1
    counting.broken = False
    assert float(x[0]) > 100


# --- threads ---------------------------------------------------------------------------------------------


def test_four_threads_evaluate_one_graph() -> None:
    errors: list[BaseException] = []
    for _ in range(20):
        x = xarr.asarray(np.arange(100.0))
        chain = [x]
        for step in range(60):
            chain.append(chain[-1] * 1.0 + float(step))
        wanted = np.arange(100.0) + np.cumsum(np.arange(60.0))[:, None]
        barrier = threading.Barrier(4)

        def work(
            order: range, barrier: threading.Barrier = barrier, chain: Any = chain, wanted: Any = wanted
        ) -> None:
            try:
                barrier.wait()
                for index in order:
                    assert_same(chain[index + 1], wanted[index])
                    (chain[index] + chain[-1]).evaluate()
            except BaseException as error:
                errors.append(error)

        orders = [range(60), range(59, -1, -1), range(0, 60, 2), range(30, 60)]
        threads = [threading.Thread(target=work, args=(order,)) for order in orders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []


# --- accounting, threads, leaks ------------------------------------------------------------------------------


def test_a_dead_value_counts_once_and_only_while_it_is_needed() -> None:
    before = handles._orphans.nbytes
    x = xarr.asarray(np.ones(1000)).evaluate()
    y = x + 1
    node = x._node
    again = handles.wrap(node)
    del x, again
    assert handles._orphans.nbytes == before + 8000
    handles._orphans.add(node)
    handles.count_unowned(node)
    assert handles._orphans.nbytes == before + 8000, "a node is counted once"
    del node, y
    assert handles._orphans.nbytes == before


def test_a_value_that_an_array_shows_again_is_not_dead() -> None:
    before = handles._orphans.nbytes
    leaf = data(TensorType((1000,), np.dtype(np.float64)), np.zeros(1000), backends.get("numpy").device())
    handles.count_unowned(leaf)
    assert handles._orphans.nbytes == before + 8000
    x = handles.wrap(leaf)
    assert handles._orphans.nbytes == before
    del x
    assert handles._orphans.nbytes == before + 8000
    del leaf
    assert handles._orphans.nbytes == before


def together(count: int, work: Callable[[], None]) -> None:
    """Run `work` in `count` threads that switch as often as they can."""
    barrier = threading.Barrier(count)

    def start() -> None:
        barrier.wait()
        work()

    threads = [threading.Thread(target=start) for _ in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)


def show_and_count(node: Node) -> None:
    for _ in range(3000):
        handles.wrap(node)
        handles.count_unowned(node)


def test_threads_count_exactly() -> None:
    before = handles._orphans.nbytes
    x = xarr.asarray(np.ones(1000)).evaluate()
    y = x + 1
    together(4, partial(show_and_count, x._node))
    assert x._node.handles == 1
    del x, y
    assert handles._orphans.nbytes == before


def test_showing_another_value_counts_the_old_one_while_it_is_needed() -> None:
    before = handles._orphans.nbytes
    x = xarr.asarray(np.ones(1000)).evaluate()
    y = x * 2
    x += 1
    assert handles._orphans.nbytes == before + 8000
    y.evaluate()
    assert handles._orphans.nbytes == before + 8000, "x + 1 still needs it"
    x.evaluate()
    assert handles._orphans.nbytes == before
    assert_same(y, np.full(1000, 2.0))
    assert_same(x, np.full(1000, 2.0))


def test_counting_does_not_make_everything_evaluate(counting: Counting) -> None:
    with xarr.config(max_pending_bytes=2**21):
        for _ in range(100):
            x = xarr.asarray(np.ones(10_000))
            (x + np.ones(10_000)).evaluate()
        runs = counting.runs
        y = xarr.asarray(np.ones(10)) + 1
        assert counting.runs == runs
        assert not y.is_evaluated


def test_equal_types_made_by_many_threads_are_one() -> None:
    barrier = threading.Barrier(8)
    results: list[list[TensorType]] = [[] for _ in range(8)]

    def make(mine: list[TensorType]) -> None:
        for size in range(300):
            if size % 50 == 0:
                barrier.wait()
            mine.append(TensorType((size, 977), np.dtype(np.float32)))

    threads = [threading.Thread(target=make, args=(mine,)) for mine in results]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert all(type is first for mine in results for type, first in zip(mine, results[0], strict=True))


@pytest.mark.usefixtures("on_numpy")
def test_a_value_of_no_backend_stays_so_when_somebody_looks() -> None:
    c = xarr.asarray(2.0) * 3.0
    with xarr.use_backend("reference"):
        assert float(c) == 6.0
    x = xarr.asarray([1.0]).to("numpy")
    assert_same(x * c, np.array([6.0]))


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_no_view_of_a_value_can_be_written_to(backend: str) -> None:
    source = np.arange(4.0)
    x = xarr.asarray(source).to(backend)
    for array in (x, x + 1, x[1:], x[::-1], xarr.broadcast_to(x[:1], (3,)), x.reshape(2, 2)):
        value = array.evaluate()._node.value
        assert not np.asarray(value).flags.writeable
        assert not np.asarray(array).flags.writeable
        copy = np.array(array)
        copy[...] = 7
        assert not np.any(np.asarray(array) == 7)
    source[:] = 9
    assert_same(x, np.arange(4.0))


class Owner:
    """Gives its own memory to callers that ask for an array."""

    def __init__(self) -> None:
        self.values = np.zeros(3)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.values


@pytest.mark.parametrize(
    "make",
    [xarr.asarray, lambda v: xarr.lax.add(v, np.zeros(3)), lambda v: xarr.exp(v) - 1],
    ids=["asarray", "lax", "function"],
)
def test_memory_of_others_is_copied(make: Any) -> None:
    owner, memory = Owner(), np.zeros(3)
    arrays = [make(owner), make(memoryview(memory)), make(memory)]
    owner.values[:] = 5
    memory[:] = 5
    for array in arrays:
        assert_same(array, np.zeros(3))


def test_a_failure_in_a_cached_program_names_the_present_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the program runs once: a failure must not have its effects twice."""
    calls: list[int] = []

    def count(x: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise OSError("no more")
        return x

    xarr.lax.register_custom_call("test.count", count)
    try:
        for line in ("first", "second"):
            y = xarr.lax.custom_call("test.count", xarr.asarray([1.0]), result_types=((1,), "float64"))
            if line == "first":
                y.evaluate()
        with pytest.raises(OSError, match="no more") as caught:
            y.evaluate()
    finally:
        xarr.lax.unregister_custom_call("test.count")
    assert len(calls) == 2
    (note,) = caught.value.__notes__
    assert "while computing custom_call" in note


def test_a_failing_node_of_the_reference_backend_is_named() -> None:
    xarr.lax.register_custom_call("test.fail", lambda: 1 / 0)
    try:
        with xarr.use_backend("reference"), pytest.raises(ZeroDivisionError) as caught:
            np.asarray(xarr.lax.custom_call("test.fail", result_types=((), "float64")) + 1)
    finally:
        xarr.lax.unregister_custom_call("test.fail")
    (note,) = caught.value.__notes__
    assert "while computing custom_call -> tensor<f64>, built at" in note
