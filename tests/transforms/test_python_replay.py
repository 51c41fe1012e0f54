"""Repeated calls of jitted functions: the checks that come before the program, and the results."""

from __future__ import annotations

import gc
import itertools
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.line_counts import count_lines
from xarr import lax
from xarr.arrays.array import Array
from xarr.base.configuration import current as config
from xarr.ir.graph import Leaf
from xarr.transforms.python_replay import MISSED


def arrays(*values: Any) -> list[Array]:
    return [xarr.asarray(value).evaluate() for value in values]


X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y,
        lambda x, y: y - x,
        lambda x, y: (y, x)[0] * 2 + x,
        lambda x, y: (x + y, x - y),
        lambda x, y: (x - y, x * y, x - y),
        lambda x, y: (y * x,),
        lambda x, y: xarr.sum(x * y),
        lambda x, y: x > y,
    ],
    ids=["add", "swapped", "reordered", "two", "one twice", "tuple of one", "sum", "bool"],
)
def test_results_are_those_of_python(function: Callable[..., Any]) -> None:
    x, y = arrays(X, X[::-1] * 3)
    jitted = xarr.jit(function)
    first = jitted(x, y)
    assert jitted.replay_text
    second = jitted(x, y)
    assert type(second) is type(first)
    pairs = zip(first, second, strict=True) if isinstance(first, tuple) else [(first, second)]
    for before, after in pairs:
        assert_same(np.asarray(after), np.asarray(before))


@pytest.mark.parametrize(
    "value",
    [
        np.float32(2.5),
        np.zeros((0, 3)),
        np.array([1, -7, 3], np.int8),
        np.array([[0.5, -0.0]], ml_dtypes.bfloat16),
        np.ones((1, 1, 2, 1, 2), np.uint16),
    ],
    ids=["0-d", "empty", "s8", "bf16", "rank 5"],
)
def test_any_shape_and_element_type(value: Any) -> None:
    (x,) = arrays(value)
    jitted = xarr.jit(lambda x: x + x)
    jitted(x)
    assert jitted.replay_text
    assert_same(np.asarray(jitted(x)), np.asarray(value) + np.asarray(value))


@pytest.mark.usefixtures("on_numpy")
def test_result_is_an_array_like_any_other() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: x + 1)
    jitted(x)
    fast = jitted._replay((x,), {})
    assert type(fast) is Array and fast.is_evaluated and fast.backend == "numpy"
    assert type(fast._node) is Leaf and fast._node.handles == 1
    assert fast._node.source is not None
    assert not np.asarray(fast, copy=False).flags.writeable
    assert not fast._node.value.flags.writeable and fast._node.value.flags.owndata
    assert_same(np.asarray(pickle.loads(pickle.dumps(fast))), X + 1)
    assert_same(np.asarray(xarr.sqrt(fast) * fast), np.sqrt(X + 1) * (X + 1))


def count_calls(jitted: Any) -> list[object]:
    """The results of the replay function, call by call."""
    fast, results = jitted._replay, []

    def note_call(args: Any, kwargs: Any) -> Any:
        results.append(fast(args, kwargs))
        return results[-1]

    jitted._replay, jitted._replays = note_call, (note_call, *jitted._replays[1:])
    return results


def other_backend() -> Array:
    with xarr.use_backend("reference"):
        return xarr.asarray(X).evaluate()


@pytest.mark.parametrize(
    "argument",
    [
        lambda: X,
        lambda: xarr.asarray(X) + 0,
        lambda: xarr.asarray(X.astype(np.float64)).evaluate(),
        lambda: xarr.asarray(X[:2]).evaluate(),
        lambda: 2.0,
        other_backend,
    ],
    ids=["ndarray", "not evaluated", "f64", "shape", "number", "backend"],
)
@pytest.mark.usefixtures("recorded")
def test_another_argument_is_missed(argument: Callable[[], Any]) -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: x * 2)
    jitted(x)
    results = count_calls(jitted)
    other = argument()
    result = jitted(other)
    assert_same(np.asarray(result), np.asarray(other, dtype=getattr(other, "dtype", np.float64)) * 2)
    assert results and all(each is MISSED for each in results)


def test_an_argument_in_column_major_order() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: x * 2)
    jitted(x)
    other = xarr.asarray(X.T.copy()).evaluate().T.evaluate()
    assert_same(np.asarray(jitted(other)), X * 2)


def test_other_numbers_of_arguments_are_missed() -> None:
    x, y = arrays(X, X)
    jitted = xarr.jit(lambda x, y=1: x + y)
    jitted(x, y)
    assert jitted.replay_text
    fast, missed = jitted._replay, MISSED
    assert fast((x, y), {}) is not missed
    for args, kwargs in [((x,), {}), ((x,), {"y": y}), ((x, y, x), {}), ((), {}), ((x, y), {"z": 1})]:
        assert fast(args, kwargs) is missed
    assert_same(np.asarray(jitted(x, y=y)), X + X)


def test_a_number_is_converted_for_arrays_of_the_type_only() -> None:
    """One that does not fit in the element type of the last call may fit in that of this one."""
    jitted = xarr.jit(lambda x, n: x + n)
    for _ in range(3):
        assert_same(jitted(xarr.ones(3, dtype="int8").evaluate(), 5), np.full(3, 6, np.int8))
        assert_same(jitted(xarr.ones(3, dtype="int32").evaluate(), 300), np.full(3, 301, np.int32))


def test_donated_argument_is_missed() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: x + 1)
    jitted(x)
    x._give_away("somebody")
    with pytest.raises(xarr.errors.DonationError):
        jitted(x)


def test_settings_are_looked_at() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: x + 1)
    jitted(x)
    fast, missed = jitted._replay, MISSED
    with xarr.config(fusion="off"):
        assert fast((x,), {}) is missed
    assert fast((x,), {}) is not missed
    before = xarr.config.snapshot()
    xarr.config.max_depth = 77
    try:
        assert fast((x,), {}) is missed
    finally:
        xarr.config.restore(before)


@pytest.mark.implicit
def test_traced_and_watched_calls_are_missed() -> None:
    x, v = arrays(X, X[0])
    jitted = xarr.jit(lambda x, v: x + v)
    jitted(x, v)
    assert jitted.replay_text
    assert xarr.lower(lambda x: jitted(x, v) * 2, x).graph.nodes
    outer = xarr.jit(lambda x: jitted(x, x[0]) * 2)
    assert_same(np.asarray(outer(x)), (X + X[0]) * 2)
    assert "broadcast" in str(xarr.explain(lambda: jitted(x, v)))


def test_references_are_counted() -> None:
    x, y = arrays(X, X)
    jitted = xarr.jit(lambda x, y: (x + y, x - y))
    jitted(x, y)
    fast = jitted._replay
    held = [x, y, x._node, x._node.value, x._node.device, x._node.type, x.dtype, Array, Leaf, MISSED]
    held += [xarr.config.__dict__, xarr.config._global, xarr.config._overrides.get(), True, None]
    before = [sys.getrefcount(each) for each in held]
    for _ in range(1000):
        fast((x, y), {})
        fast((x,), {})
        fast((x, X), {})
    after = [sys.getrefcount(each) for each in held]
    assert all(abs(new - old) < 50 for new, old in zip(after, before, strict=True))


def test_results_are_freed() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: (x + 1, x * 2))
    jitted(x)
    more, twice = jitted(x)
    gone = [weakref.ref(each) for each in (more, more._node, more._node.value, twice._node.value)]
    assert all(gc.is_tracked(each) for each in (more, more._node))
    del more, twice
    assert [each() for each in gone] == [None] * 4


def test_replay_function_goes_with_the_jitted_one() -> None:
    class Marked:
        """Something to be weakly referred to."""

    (x,) = arrays(X)
    mark = Marked()
    jitted = xarr.jit(lambda x, mark=mark: x + 1)
    jitted(x)
    gone = weakref.ref(mark)
    del jitted, mark
    gc.collect()
    assert gone() is None


FLOATS = (1.5, -0.0, 0.1, 1e-320, 3.4e38, 1e300, -1e300, float("inf"), float("nan"))


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, np.int32], ids=lambda dtype: dtype.__name__
)
def test_numbers_are_converted_as_ever(dtype: Any) -> None:
    (x,) = arrays(np.array([1, 2, 3], dtype))
    jitted = xarr.jit(lambda x, a, b: (a - x) * b)
    jitted(x, 1.5, 2.5)
    assert jitted.replay_text
    for a, b in itertools.product(FLOATS, (2.5, -0.0)):
        assert_same(np.asarray(jitted(x, a, b)), np.asarray((a - x) * b))


class Own(float):
    """A float that is not quite one."""


@pytest.mark.parametrize("other", [2, True, 2j, np.float64(2), np.float32(2), Own(2), X], ids=repr)
def test_what_is_no_python_float_is_missed(other: Any) -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x, a: x * a)
    jitted(x, 2.0)
    assert jitted._replay((x, other), {}) is MISSED
    assert_same(np.asarray(jitted(x, other)), np.asarray(x * other))


def test_unused_number_is_looked_at_too() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda a, x, b: x - a)
    jitted(0.5, x, 1.0)
    assert jitted.replay_text
    assert_same(np.asarray(jitted(1.5, x, float("nan"))), X - np.float32(1.5))
    assert jitted._replay((1.5, x, 1), {}) is MISSED
    assert jitted._replay((1.5, 1.5, 1.0), {}) is MISSED
    assert jitted._replay((x, x, 1.0), {}) is MISSED


def test_number_of_two_types_and_an_expression_of_numbers() -> None:
    x, y = arrays(X, X.astype(np.float64))
    jitted = xarr.jit(lambda x, y, a: (x * a).astype(np.float64) - y * a)
    jitted(x, y, 0.5)
    assert jitted.replay_text
    wanted = (X * np.float32(0.1)).astype(np.float64) - X.astype(np.float64) * 0.1
    assert_same(np.asarray(jitted(x, y, 0.1)), wanted)
    computed = xarr.jit(lambda x, a: x * (a + 1.0))
    computed(x, 0.5)


RNG = np.random.default_rng(1)
LONG_X = RNG.normal(size=1000).astype(np.float32)


@pytest.fixture(autouse=True)
def compiled_where_it_is_worth_it() -> None:
    """As without a setting, in every thread: some of these loops run for hours one NumPy call at a time."""
    config.fusion = "auto"


def running(x: xarr.Array, rate: xarr.Array) -> Any:
    def step(total: xarr.Array, value: xarr.Array) -> Any:
        total = total * rate + value
        return total, total

    return lax.scan(step, xarr.zeros_like(rate), x)


def mandelbrot(x: xarr.Array) -> Any:
    state = (xarr.asarray(0), x * 0, xarr.zeros(x.shape, dtype="int32"))

    def step(state: Any) -> Any:
        i, a, count = state
        inside = a * a <= 4
        return i + 1, xarr.where(inside, a * a + x, a), xarr.where(inside, count + 1, count)

    return lax.while_loop(lambda state: state[0] < 40, step, state)[2]


def reversed_table(x: xarr.Array) -> Any:
    """Reads one table at computed indices, writes to another of which parts stay as they were."""

    def step(i: xarr.Array, table: xarr.Array) -> xarr.Array:
        return lax.dynamic_update_slice(table, lax.dynamic_slice(x, [9 - i], [1]), [i])

    return lax.fori_loop(0, 10, step, xarr.zeros((1000,), dtype="float32") + 7)


def flip(x: xarr.Array) -> Any:
    """Of bools and integers, one of which is carried along."""
    start = (x[0] > 0, xarr.asarray(3, dtype="int8"))
    return lax.fori_loop(0, 7, lambda i, state: (state[0] ^ (i == 3), state[1] * 3), start)


def receding(x: xarr.Array) -> Any:
    """Counts up to a bound that goes away."""
    state = (xarr.asarray(0), xarr.asarray(5), x)
    return lax.while_loop(
        lambda state: state[0] < state[1],
        lambda state: (state[0] + 1, xarr.where(state[1] < 20, state[1] + 2, state[1]), state[2] * 0.5),
        state,
    )[2]


def count_long(n: xarr.Array) -> Any:
    """Takes milliseconds."""
    return lax.fori_loop(0, 7 * 10**6, lambda i, s: s * 2 + n, n)


PROGRAMS: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("scalar loop", lambda r: lax.fori_loop(0, 50, lambda i, s: s * r + i, r), (np.float64(0.5),)),
    ("no step", lambda r: lax.fori_loop(3, 3, lambda i, s: s * r, r + 1), (np.float64(0.5),)),
    ("scan", running, (LONG_X, np.float32(0.9))),
    ("points", lambda x: lax.fori_loop(0, 9, lambda i, y: abs(y) * 0.5 - x, x * 2), (LONG_X,)),
    ("points left early", mandelbrot, (LONG_X,)),
    ("table", reversed_table, (LONG_X,)),
    ("bools", flip, (LONG_X,)),
    (
        "two loops",
        lambda x, r: (running(x, r)[0] + running(x, r * 2)[1], running(x, r)[1]),
        (LONG_X, np.float32(0.1)),
    ),
    ("scratch", lambda x: (xarr.sum(x), xarr.argmax(x)), (np.tile(LONG_X, 100),)),
    ("two groups", lambda x: xarr.sum(xarr.sin(x)) / xarr.cumsum(x), (np.tile(LONG_X, 10),)),
    (
        "all phases",
        lambda x: xarr.exp(x - xarr.max(x)) / xarr.sum(xarr.exp(x - xarr.max(x))),
        (np.tile(LONG_X, 30),),
    ),
    ("a number", lambda x, a: xarr.cumsum(x * a)[::-1] + xarr.arange(1000), (LONG_X, 2.5)),
]


@pytest.mark.parametrize(
    ("function", "values"), [row[1:] for row in PROGRAMS], ids=[row[0] for row in PROGRAMS]
)
def test_programs_give_each_time_what_they_give_untraced(
    function: Callable[..., Any], values: tuple[Any, ...]
) -> None:
    arrays = [x if isinstance(x, float) and type(x) is float else xarr.asarray(x).evaluate() for x in values]
    jitted = xarr.jit(function)
    first = jitted(*arrays)
    for _ in range(2):
        again = jitted._replay(tuple(arrays), {})
        for mine, exact in zip(
            *([x] if isinstance(x, xarr.Array) else x for x in (again, first)), strict=True
        ):
            assert_same(np.asarray(mine), np.asarray(exact))


def test_operands_live_while_the_lock_is_free() -> None:
    """Another thread lets go of them meanwhile."""
    value = np.linspace(0, 1, 10_000)
    jitted = xarr.jit(lambda x: xarr.sum(xarr.sin(x) + xarr.exp(x)))
    x = xarr.asarray(value).evaluate()
    wanted = float(jitted(x))
    stop, wrong = threading.Event(), []
    held = [x]

    def rebind() -> None:
        while not stop.is_set():
            held[0]._node = xarr.asarray(value.copy()).evaluate()._node

    def call() -> None:
        for _ in range(200):
            result = float(jitted(held[0]))
            if result != wanted:
                wrong.append(result)

    threads = [threading.Thread(target=call) for _ in range(2)]
    other = threading.Thread(target=rebind)
    for thread in (other, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    other.join()
    assert not wrong


def test_a_first_call_with_many_results_takes_time_that_is_linear() -> None:
    x, counts = xarr.arange(4.0).evaluate(), []
    for count in (200, 800):
        jitted = xarr.jit(lambda x, count=count: [x * (k + 1.0) for k in range(count)])
        counts.append(count_lines(lambda jitted=jitted: jitted(x)))
    assert counts[1] < 4 * counts[0], counts


def test_a_function_of_hundreds_of_results_has_none_before_the_second_call() -> None:
    def split(x: Any, count: int) -> list[Any]:
        return [x[k % 12] * (k + 1.0) for k in range(count)]

    (x,) = arrays(X.reshape(12))
    few = xarr.jit(split, static_argnums=1)
    few(x, 3)
    assert few.replay_text
    texts, results = [], []
    for _ in range(3):
        results.append([np.asarray(each) for each in few(x, 300)])
        texts.append(few.replay_text)
    assert texts[1] == texts[2]
    assert len(texts[1]) > 20 * len(texts[0])
    for later in results[1:]:
        assert_same(np.array(later), np.array(results[0]))
    np.testing.assert_array_equal(
        np.array(results[0]), [X.reshape(12)[k % 12] * (k + 1.0) for k in range(300)]
    )
