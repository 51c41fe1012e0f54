"""Whose memory a donated Array is: nobody who could see it sees it change.

The library counts and marks itself who sees the memory of a value; no reference of the interpreter's is counted.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.random_graphs import sample
from xarr import lax
from xarr.backend import get
from xarr.compiler.pipeline import lower
from xarr.compiler.plan.ownership import exposed_parameters, exposed_results
from xarr.compiler.plan.planner import plan
from xarr.errors import DonationError
from xarr.ir import ops
from xarr.ir.graph import Donated, Graph, Node, parameter
from xarr.ir.types import TensorType
from xarr.transforms.lowering import ShapeDtypeStruct

pytest.importorskip("llvmlite")
pytestmark = [pytest.mark.implicit, pytest.mark.usefixtures("on_numpy")]

SIZE = 20_000
ROUNDS = 4


@pytest.fixture(autouse=True)
def compiled_loops() -> Iterator[None]:
    with xarr.config(fusion="compiled"):
        yield


DOUBLE: Any = xarr.jit(lambda x: x * 2 + 1, donate_argnums=0)
MAKE: Any = xarr.jit(lambda x: x * 1 + 0)
KEPT: list[Any] = []


def make() -> xarr.Array:
    """An Array of ones whose memory a program has made and nothing else sees."""
    result: xarr.Array = MAKE(xarr.asarray(np.ones(SIZE)))
    return result


def address(x: xarr.Array) -> int:
    return int(x._node.value.ctypes.data)


def is_reused(x: xarr.Array) -> bool:
    """Whether the memory of `x`, given away, becomes that of the result; the numbers are right at any rate."""
    before = address(x)
    y = DOUBLE(x)
    reused = address(y) == before
    assert_same(y, np.full(SIZE, 3.0))
    return reused


def test_memory_that_nothing_sees_is_written_over() -> None:
    assert [is_reused(make()) for _ in range(ROUNDS)] == [True] * ROUNDS


# --- who looks -----------------------------------------------------------------------------------------------


def _keep(operand: Any) -> Any:
    KEPT.append(operand)
    return np.zeros((), np.float64)


NUMBER: Any = ShapeDtypeStruct((), np.dtype(np.float64))
CALLED: Any = xarr.jit(lambda x: xarr.pure_callback(_keep, NUMBER, x))
SAME: Any = xarr.jit(lambda x: x)
TWICE: Any = xarr.jit(lambda x: (x, x))
TURNED: Any = xarr.jit(lambda x: x.reshape(100, 200).T)
WITH_PART: Any = xarr.jit(lambda x: (x[10:], x * 3))
PICKED: Any = xarr.jit(lambda x, c: lax.cond(c, lambda: x, lambda: x * 2))
LOOPED: Any = xarr.jit(lambda x, n: lax.while_loop(lambda s: s[1] < n, lambda s: (s[0], s[1] + 1), (x, 0))[0])
NESTED: Any = xarr.jit(lambda x: SAME(x))
THRICE: Any = xarr.jit(lambda x: (y := x * 3, y))
NO_SORT: Any = xarr.jit(lambda x: xarr.sort(x[None], axis=0)[0])


def _by_callback(x: xarr.Array) -> Any:
    CALLED(x).evaluate()
    return KEPT.pop()


def _capture(x: xarr.Array) -> Callable[[], Any]:
    function = xarr.jit(lambda y: x * y)
    function(np.float64(1))
    return lambda: function(np.float64(1))


def _captured_before_compilation(x: xarr.Array) -> Callable[[], Any]:
    lowered = xarr.jit(lambda y: (y * 2, x)).lower("f64[]")
    return lambda: lowered.compile()(np.ones(()))[1]


def _carried_by_a_loop(x: xarr.Array) -> Any:
    return lax.fori_loop(0, 2, lambda i, s: (s[0] + 1, s[1]), (xarr.asarray(0.0), x))[1]


def _by_program(x: xarr.Array) -> Any:
    return xarr.jit(lambda x: x).lower(x).compile()(x)


def _by_interface(x: xarr.Array) -> Any:
    return x.__array_interface__["data"]


def _of_tuple(x: xarr.Array) -> Any:
    return lax.optimization_barrier((x, x))[1]


#: What gets hold of the memory of an Array of ones, or something that is computed of it later.
LOOKS: dict[str, Callable[[xarr.Array], Any]] = {
    "asarray": np.asarray,
    "a view": lambda x: np.asarray(x)[3:],
    "a view of a view": lambda x: np.asarray(x)[3:].reshape(-1, 1)[::2].T,
    "memoryview": lambda x: memoryview(np.asarray(x)),
    "DLPack": lambda x: np.from_dlpack(x),
    "__array_interface__": _by_interface,
    "iterator": lambda x: np.nditer(np.asarray(x)),
    "a callback": _by_callback,
    "a copy": lambda x: x.copy(),
    "a part": lambda x: x[5:],
    "a computed part": lambda x: x[5:].evaluate(),
    "transposed": lambda x: x.reshape(100, 200).T.evaluate(),
    "recorded": lambda x: x * 1,
    "recorded twice": lambda x: (x * 1)[None] + 0,
    "index": lambda x: xarr.zeros(3, dtype="int64")[xarr.astype(x, "int64")],
    "itself from jit": SAME,
    "itself from a function in a function": NESTED,
    "itself, twice": lambda x: TWICE(x)[1],
    "transposed in jit": TURNED,
    "a part in jit": lambda x: WITH_PART(x)[0],
    "the branch that is taken": lambda x: PICKED(x, True),
    "the start of a loop of no steps": lambda x: LOOPED(x, 0),
    "carried by a loop": _carried_by_a_loop,
    "carried by a loop in jit": lambda x: LOOPED(x, 5),
    "sorted lines of one": NO_SORT,
    "captured": _capture,
    "captured before compilation": _captured_before_compilation,
    "a compiled program": _by_program,
    "a tuple": _of_tuple,
    "another backend": lambda x: x.to("reference"),
    "printed": str,
}


def values_of(seen: Any) -> Any:
    """The numbers that the memory shows now."""
    if callable(seen):
        seen = seen()
    if isinstance(seen, str):
        return seen
    if isinstance(seen, np.nditer):
        return np.array([float(each) for each in seen])
    return np.array(np.asarray(seen))


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("rounds", [1, ROUNDS])
def test_who_looks_sees_no_change(name: str, rounds: int) -> None:
    """Not at the first call, which is recorded, nor at those that repeat it."""
    for _ in range(rounds):
        x = make()
        seen = LOOKS[name](x)
        with xarr.config(fusion="off"):
            wanted = values_of(LOOKS[name](xarr.asarray(np.ones(SIZE))))
        is_reused(x)
        result = values_of(seen)
        assert_same(result, wanted) if isinstance(result, np.ndarray) else result == wanted


@pytest.mark.parametrize(
    "function",
    [TWICE, THRICE, WITH_PART, lambda x: (x[:-5], x[5:])],
    ids=["an argument", "twice", "part", "parts"],
)
def test_results_that_share_memory_are_kept(function: Callable[[xarr.Array], Any]) -> None:
    for _ in range(ROUNDS):
        one, other = function(make())
        before = np.array(np.asarray(other))
        xarr.jit(lambda x: x * 2 + 1, donate_argnums=0)(one)
        assert_same(other, before)


@pytest.mark.parametrize("fusion", ["compiled", "off"])
@pytest.mark.parametrize("first", fuzz.seeds(2, 12))
def test_memory_that_counts_as_unshared_is(first: int, fusion: str) -> None:
    """Of random programs: neither arguments nor other results lie there."""
    backend, seen = get("numpy"), 0
    for seed in range(10 * first, 10 * first + 10):
        sampled = sample(Random(seed), most=4096)
        with xarr.config(fusion=fusion):
            graph = lower(sampled.graph, backend)
            program = backend.compile(graph)
            results = program(*map(backend.from_host, sampled.inputs))
        made = backend.plan_of(program)
        exposed = (*exposed_parameters(graph, made), *exposed_results(graph, made))
        arrays = [*sampled.inputs, *results]
        for index, (is_exposed, array) in enumerate(zip(exposed, arrays, strict=True)):
            others = [other for k, other in enumerate(arrays) if k != index]
            if not is_exposed and index >= len(graph.parameters):
                seen += 1
                assert not any(np.may_share_memory(array, other) for other in others)
            elif not is_exposed:
                assert not any(np.may_share_memory(array, other) for other in results)
    assert seen or fusion == "off"


def test_memory_that_was_seen_is_written_over_no_more() -> None:
    """Even if the view is gone: what has left may have been handed on."""
    x = make()
    del x
    y = make()
    np.asarray(y)
    assert not is_reused(y)
    z = make()
    MAKE(z)  # a program of loops alone shows nobody what it reads
    assert is_reused(z)


def test_memory_of_the_caller_is_never_written_over() -> None:
    host = np.ones(SIZE)
    for array in (xarr.asarray(host, copy=False), xarr.asarray(host), xarr.from_dlpack(host)):
        for _ in range(ROUNDS):
            x = xarr.jit(lambda x: x)(array)
            DOUBLE(x)
        assert (host == 1).all()
        assert not is_reused(array)
        assert (host == 1).all()


@pytest.mark.parametrize("donated", [0, 1, (0, 1)])
@pytest.mark.parametrize("is_tree", [False, True])
def test_the_same_array_twice(donated: Any, is_tree: bool) -> None:
    def both(x: Any, y: Any) -> Any:
        x, y = (x["a"], y["b"]) if is_tree else (x, y)
        return x.at[0].set(5.0), y * 1 + 0, x * 2 - y

    step = xarr.jit(both, donate_argnums=donated)
    for _ in range(ROUNDS):
        x = make()
        first, second, third = step({"a": x}, {"b": x}) if is_tree else step(x, x)
        assert_same(first[:2], np.array([5.0, 1.0]))
        assert_same(second, np.ones(SIZE))
        assert_same(third, np.ones(SIZE))
        with pytest.raises(DonationError):
            np.asarray(x)


def test_the_same_array_twice_is_not_the_memory_of_two_results() -> None:
    step = xarr.jit(lambda x, y: (x + y, x - y), donate_argnums=(0, 1))
    for _ in range(ROUNDS):
        x = make()
        both, neither = step(x, x)
        assert_same(both, np.full(SIZE, 2.0))
        assert_same(neither, np.zeros(SIZE))
        with pytest.raises(DonationError):
            np.asarray(x)


def test_counts_of_references_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter may say of everything that nobody refers to it."""
    x = make()
    seen = np.asarray(x)
    monkeypatch.setattr(sys, "getrefcount", lambda _: 1)
    for _ in range(ROUNDS):
        DOUBLE(SAME(x))
    assert (seen == 1).all()


# --- exports and threads while a call runs -------------------------------------------------------------------


def test_a_callback_cannot_look_at_what_was_given_away() -> None:
    x = make()

    def look(_: Any) -> Any:
        with pytest.raises(DonationError):
            np.asarray(x)
        return np.ones((), np.float64)

    step = xarr.jit(lambda x: x * 2 + xarr.pure_callback(look, NUMBER, x[0]), donate_argnums=0)
    for _ in range(ROUNDS):
        x = make()
        assert_same(step(x), np.full(SIZE, 3.0))


def refuse_large(number: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Fail as a callback may."""
    if number > 5:
        raise ValueError("too large")
    return number


def fail_later(x: Any, number: Any) -> Any:
    shape = xarr.ShapeDtypeStruct((), np.float64)
    return x * 2 + xarr.pure_callback(refuse_large, shape, number)


@pytest.mark.parametrize("calls_before", [0, 1, 4])
@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_a_call_that_fails_when_it_runs_has_taken_its_arguments(backend: str, calls_before: int) -> None:
    compiled = xarr.jit(fail_later, donate_argnums=0)
    with xarr.use_backend(backend):
        for _ in range(calls_before):
            compiled(xarr.ones(1000).evaluate(), 1.0)
        x = xarr.ones(1000).evaluate()
        with pytest.raises(ValueError, match="too large") as caught:
            compiled(x, 9.0)
        assert caught.value.__notes__.count(LOST) == 1
        with pytest.raises(xarr.errors.DonationError, match="It was donated to fail_later"):
            np.asarray(x)
        with pytest.raises(xarr.errors.DonationError) as again:
            compiled(x, 1.0)
        assert LOST not in getattr(again.value, "__notes__", [])


LOST = "the Arrays that were donated to this call are gone, although it failed"
REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "no second argument": lambda compiled, x: compiled(x),
    "a shape that does not fit": lambda compiled, x: compiled(x, xarr.ones(7)),
    "an argument without a value": lambda compiled, x: compiled(x, xarr.ones(3)[xarr.asarray(9)]),
}


@pytest.mark.parametrize("calls_before", [0, 1, 4])
@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_a_call_that_is_refused_takes_nothing(call: Any, backend: str, calls_before: int) -> None:
    compiled = xarr.jit(lambda x, y: x * y, donate_argnums=0)
    with xarr.use_backend(backend):
        for _ in range(calls_before):
            compiled(xarr.ones(1000).evaluate(), 1.0)
            compiled(xarr.ones(1000).evaluate(), xarr.asarray(1.0))
        x = xarr.ones(1000).evaluate()
        with pytest.raises((xarr.errors.XarrError, TypeError)) as caught:
            np.asarray(call(compiled, x))
        assert LOST not in getattr(caught.value, "__notes__", [])
        assert np.all(np.asarray(x) == 1)


def test_a_callback_keeps_what_it_was_shown() -> None:
    step = xarr.jit(lambda x: x * 2 + 1 + xarr.pure_callback(_keep, NUMBER, x), donate_argnums=0)
    for _ in range(ROUNDS):
        result = step(make())
        assert_same(KEPT.pop(), np.ones(SIZE))
        assert_same(result, np.full(SIZE, 3.0))


READ: Any = xarr.jit(lambda x, y: x * 3 + y)
COUNTED: Any = xarr.jit(lambda x: xarr.sum(x.reshape(100, 200) @ xarr.ones((200, 1))))


@pytest.mark.parametrize(
    "read",
    [
        lambda x: np.asarray(READ(x, 1.0)) == 4,
        lambda x: np.asarray(COUNTED(x)) == SIZE,
        lambda x: np.asarray(x) == 1,
        lambda x: np.asarray(x * 3 + 1) == 4,
        lambda x: np.asarray(SAME(x)) == 1,
    ],
    ids=["jitted", "product", "export", "recorded", "view"],
)
def test_a_thread_reads_all_or_finds_it_donated(read: Callable[[xarr.Array], Any]) -> None:
    """While another one gives the Array away."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    wrong: list[object] = []
    try:
        for _ in range(60):
            x = make()
            start = threading.Barrier(2)

            def reader(x: xarr.Array = x, start: threading.Barrier = start) -> None:
                start.wait()
                try:
                    for _ in range(20):
                        if not np.all(read(x)):
                            wrong.append("another value")
                except DonationError:
                    pass
                except BaseException as error:
                    wrong.append(error)

            thread = threading.Thread(target=reader)
            thread.start()
            start.wait()
            y = DOUBLE(x)
            thread.join()
            if not (np.asarray(y) == 3).all():
                wrong.append("a result")
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


@pytest.mark.parametrize("count", [1, 2])
def test_of_two_threads_one_is_given_the_arrays(count: int) -> None:
    """The other gets none of them, even where only one of its own is gone, and the usual error."""
    step = xarr.jit(lambda *arrays: sum(arrays[1:], arrays[0] * 2 + 1), donate_argnums=tuple(range(count)))
    step(*[make() for _ in range(count)])
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            arrays, outcomes = [make() for _ in range(count)], []
            start = threading.Barrier(2)

            def call(
                own: list[Any], start: threading.Barrier = start, outcomes: list[Any] = outcomes
            ) -> None:
                start.wait()
                try:
                    outcomes.append(np.asarray(step(*own)))
                except DonationError as error:
                    outcomes.append(str(error))

            spare = [make() for _ in range(count - 1)]
            threads = [threading.Thread(target=call, args=(own,)) for own in (arrays, [*spare, arrays[0]])]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            results = [each for each in outcomes if isinstance(each, np.ndarray)]
            (refused,) = [each for each in outcomes if isinstance(each, str)]
            assert_same(results[0], np.full(SIZE, 2.0 + count))
            assert "its Array was donated to a function" in refused
            left = [each for each in (*arrays[1:], *spare) if not isinstance(each._node.op, Donated)]
            assert len(left) == count - 1
            for each in left:
                assert_same(each, np.ones(SIZE))
    finally:
        sys.setswitchinterval(interval)


def test_all_memory_counts_as_shared_where_no_plan_says_otherwise() -> None:
    graph = xarr.lower(lambda x, y: (x * 2, y @ y), "f64[3]", "f64[2,2]").graph
    assert exposed_parameters(graph, None) == exposed_results(graph, None) == (True, True)
    made = plan(lower(graph, get("numpy")))
    assert exposed_parameters(graph, made) == (False, False)
    assert exposed_results(graph, made) == (False, True)


def test_a_tuple_is_exposed_if_one_of_its_arrays_is() -> None:
    x, y = (parameter(TensorType((3,), np.dtype(np.float64))) for _ in range(2))
    computed = Node(ops.Fusion(Graph([x], [Node(ops.Negate(), (x,))]), (3,)), (x,))
    both, alone, seen = (
        Node(ops.Tuple(), each) for each in ((computed, y), (computed,), (Node(ops.Sine(), (y,)),))
    )
    graph = Graph([x, y], [both, seen])
    assert exposed_parameters(graph, plan(graph)) == (False, True)
    assert exposed_results(graph, plan(graph)) == (True, True)
    graph = Graph([x, y], [alone, y])
    assert exposed_results(graph, plan(graph)) == (False, True)
