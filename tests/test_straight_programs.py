"""Programs of several little kernels and loops as one built-in function: no lock, memory in between, freed code."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.config import current as config

pytest.importorskip("llvmlite")

from xarr_numpy import engine
from xarr_numpy.compiled import assembler, builtin, straight

pytestmark = pytest.mark.skipif(not builtin.works(), reason="objects lie in memory in another way")

RNG = np.random.default_rng(1)
X = RNG.normal(size=1000).astype(np.float32)


@pytest.fixture(autouse=True)
def compiled_where_it_is_worth_it() -> None:
    """As without a setting, in every thread: some of these loops run for hours over tiles."""
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
    """Reads one table at computed places, writes to another of which parts stay as they were."""

    def step(i: xarr.Array, table: xarr.Array) -> xarr.Array:
        return lax.dynamic_update_slice(table, lax.dynamic_slice(x, [9 - i], [1]), [i])

    return lax.fori_loop(0, 10, step, xarr.zeros((1000,), dtype="float32") + 7)


def flipped(x: xarr.Array) -> Any:
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


def counted(n: xarr.Array) -> Any:
    """Takes milliseconds."""
    return lax.fori_loop(0, 7 * 10**6, lambda i, s: s * 2 + n, n)


PROGRAMS: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("scalar loop", lambda r: lax.fori_loop(0, 50, lambda i, s: s * r + i, r), (np.float64(0.5),)),
    ("no step", lambda r: lax.fori_loop(3, 3, lambda i, s: s * r, r + 1), (np.float64(0.5),)),
    ("scan", running, (X, np.float32(0.9))),
    ("points", lambda x: lax.fori_loop(0, 9, lambda i, y: abs(y) * 0.5 - x, x * 2), (X,)),
    ("points left early", mandelbrot, (X,)),
    ("table", reversed_table, (X,)),
    ("bools", flipped, (X,)),
    (
        "two loops",
        lambda x, r: (running(x, r)[0] + running(x, r * 2)[1], running(x, r)[1]),
        (X, np.float32(0.1)),
    ),
    ("scratch", lambda x: (xarr.sum(x), xarr.argmax(x)), (np.tile(X, 100),)),
    ("two groups", lambda x: xarr.sum(xarr.sin(x)) / xarr.cumsum(x), (np.tile(X, 10),)),
    (
        "all phases",
        lambda x: xarr.exp(x - xarr.max(x)) / xarr.sum(xarr.exp(x - xarr.max(x))),
        (np.tile(X, 30),),
    ),
    ("a number", lambda x, a: xarr.cumsum(x * a)[::-1] + xarr.arange(1000), (X, 2.5)),
]


@pytest.mark.parametrize(
    ("function", "values"), [row[1:] for row in PROGRAMS], ids=[row[0] for row in PROGRAMS]
)
def test_results_are_those_of_python(function: Callable[..., Any], values: tuple[Any, ...]) -> None:
    arrays = [x if isinstance(x, float) and type(x) is float else xarr.asarray(x).evaluate() for x in values]
    jitted = xarr.jit(function)
    jitted(*arrays)
    for _ in range(2):
        fast, slow = (each(tuple(arrays), {}) for each in jitted._replays)
        for mine, exact in zip(*([x] if isinstance(x, xarr.Array) else x for x in (fast, slow)), strict=True):
            assert_same(np.asarray(mine), np.asarray(exact))


@pytest.mark.parametrize(
    ("function", "values"), [row[1:] for row in PROGRAMS], ids=[row[0] for row in PROGRAMS]
)
def test_they_are_one_built_in_function(function: Callable[..., Any], values: tuple[Any, ...]) -> None:
    arrays = [x if isinstance(x, float) and type(x) is float else xarr.asarray(x).evaluate() for x in values]
    jitted = xarr.jit(function)
    jitted(*arrays)
    assert inspect.isbuiltin(jitted._replay)


def test_what_is_large_or_of_unknown_length_is_not() -> None:
    x, n = xarr.asarray(X).evaluate(), xarr.asarray(5).evaluate()
    many = xarr.asarray(np.ones(2**19, np.float32)).evaluate()
    for function, value in (
        (lambda n: lax.fori_loop(0, n, lambda i, s: s * 2, 1.0), n),
        (lambda x: lax.fori_loop(0, 10**7, lambda i, y: y * 0.5, x), x),
        (lambda n: lax.fori_loop(0, 2 * 10**7, lambda i, s: s * 2 + n, n), n),
        (lambda n: counted(n) + counted(n * 3), n),
        (lambda x: receding(x), x),
        (lambda x: x + 1, many),
        (lambda x: lax.fori_loop(0, 3, lambda i, y: y * 0.5, x), many),
        (lambda x: x[1:] + xarr.sort(x)[1:], x),
    ):
        jitted = xarr.jit(function)
        first = jitted(value)
        assert not inspect.isbuiltin(jitted._replay)
        assert_same(np.asarray(jitted(value)), np.asarray(first))


def test_operands_live_while_the_lock_is_free() -> None:
    """Another thread lets go of them meanwhile."""
    value = np.linspace(0, 1, 10_000)
    jitted = xarr.jit(lambda x: xarr.sum(xarr.sin(x) + xarr.exp(x)))
    x = xarr.asarray(value).evaluate()
    wanted = float(jitted(x))
    assert inspect.isbuiltin(jitted._replay)
    stop, wrong = threading.Event(), []
    held = [x]

    def rebind() -> None:
        while not stop.is_set():
            held[0]._node = xarr.asarray(value.copy()).evaluate()._node

    def call() -> None:
        for _ in range(200):
            found = float(jitted(held[0]))
            if found != wanted:
                wrong.append(found)

    threads = [threading.Thread(target=call) for _ in range(2)]
    other = threading.Thread(target=rebind)
    for thread in (other, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    other.join()
    assert not wrong


def test_references_are_counted_without_the_lock() -> None:
    x = xarr.asarray(np.ones(30_000)).evaluate()
    jitted = xarr.jit(lambda x, a: xarr.sum(xarr.exp(x) * a))
    jitted(x, 2.5)
    assert inspect.isbuiltin(jitted._replay)
    held = [x, x._node, x._node.value, None]
    before = [sys.getrefcount(each) for each in held]
    for _ in range(200):
        jitted._replay((x, 2.5), {})
    after = [sys.getrefcount(each) for each in held]
    assert all(abs(new - old) < 50 for new, old in zip(after, before, strict=True))


def test_failed_allocation_in_between_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves no result behind."""
    x = xarr.asarray(np.tile(X, 100)).evaluate()
    monkeypatch.setattr(straight, "MOST_BYTES", 2**62)
    memory = straight.Straight.memory
    monkeypatch.setattr(straight.Straight, "memory", lambda self, nbytes: memory(self, nbytes + 2**50))
    jitted = xarr.jit(lambda x: xarr.sum(x) * xarr.max(x))
    jitted(x)
    assert inspect.isbuiltin(jitted._replay)
    with pytest.raises(MemoryError):
        jitted(x)


def test_steps_that_take_long_together_are_run_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which sees to Ctrl-C between them."""
    x, rate = xarr.asarray(X).evaluate(), xarr.asarray(np.float32(0.5)).evaluate()

    def program(x: xarr.Array, rate: xarr.Array) -> Any:
        return running(running(running(x, rate)[1], rate)[1], rate)[1]

    graph = xarr.jit(program).lower(x, rate).stage("fused")
    found = straight.straight(graph, engine._runs)
    assert found is not None and len(found.steps) == 3
    expected = xarr.jit(program)(x, rate)
    for limit, is_builtin in ((found.work * 1.5, True), (found.work / 2, False)):
        monkeypatch.setattr(straight, "LONG", limit)
        jitted = xarr.jit(program)
        assert_same(jitted(x, rate), expected)
        assert inspect.isbuiltin(jitted._replay) == is_builtin


def test_code_goes_with_its_function() -> None:
    text = "define ptr @entry(ptr %self, ptr %arguments, i64 %count) {\n  %x = load ptr, ptr %arguments\n"
    text += "  call void @Py_IncRef(ptr %x)\n  ret ptr %x\n}\ndeclare void @Py_IncRef(ptr)\n"
    code = assembler.made(text, ["entry"])
    same = builtin.function(code.addresses["entry"], code)
    gone = weakref.ref(code)
    del code
    gc.collect()
    assert same("a thing") == "a thing" and gone() is not None
    del same
    gc.collect()
    assert gone() is None


def test_many_signatures_do_not_keep_their_code() -> None:
    x = xarr.asarray(X).evaluate()
    codes = []
    for number in range(3):
        jitted = xarr.jit(lambda x, number=number: x * (number + 2) - 1.25)
        jitted(x)
        assert inspect.isbuiltin(jitted._replay)
        kernels = [each for each in gc.get_objects() if isinstance(each, assembler.Code)]
        codes += [weakref.ref(each) for each in kernels if "entry" in each.addresses]
        del kernels
    alive = len({id(each()) for each in codes if each() is not None})
    del jitted
    with config(fusion="compiled"):
        engine._kernel.cache_clear()
    gc.collect()
    assert len({id(each()) for each in codes if each() is not None}) <= alive - 3
