"""Calls back into Python: `debug.print`, `debug.callback` and `pure_callback`, beside JAX's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.base.configuration import current as config
from xarr.errors import EvaluationError, InputError, TracedValueError

Program = Callable[[ModuleType, Any], Any]


def _in_a_loop(np_: ModuleType, x: Any) -> Any:
    lax_ = np_.lax

    def body(i: Any, value: Any) -> Any:
        np_.debug.print("step {} {v}", i, v=value, ordered=True)
        return value + 1

    np_.debug.print("before", ordered=True)
    result = lax_.fori_loop(0, 3, body, x)
    np_.debug.print("after {}", result, ordered=True)
    return x * 2


def _in_a_condition(np_: ModuleType, x: Any) -> Any:
    def cond(state: Any) -> Any:
        np_.debug.print("looks at {}", state[0], ordered=True)
        return state[0] < 3

    def body(state: Any) -> Any:
        np_.debug.print("adds to {}", state[0], ordered=True)
        return state[0] + 1, state[1] * 2

    return np_.lax.while_loop(cond, body, (np.int32(0), x))


def _in_one_branch(np_: ModuleType, x: Any) -> Any:
    def loud(value: Any) -> Any:
        np_.debug.print("positive {}", value, ordered=True)
        return value

    quiet = np_.lax.cond(x[0] > 0, loud, lambda value: -value, x)
    return np_.lax.cond(x[0] < 0, loud, lambda value: -value, quiet)


def _in_branches(np_: ModuleType, x: Any) -> Any:
    def branch(number: int) -> Callable[[Any], Any]:
        def print_branch(value: Any) -> Any:
            np_.debug.print(f"branch {number} of {{}}", value, ordered=True)
            return value + number

        return print_branch

    for index in (2, 0, 9):
        x = np_.lax.switch(np.int32(index), [branch(number) for number in range(3)], x)
    return x


def _in_a_scan(np_: ModuleType, x: Any) -> Any:
    def step(carry: Any, each: Any) -> tuple[Any, Any]:
        np_.debug.print("carry {} each {}", carry, each, ordered=True)
        return carry + each, carry

    first = np_.lax.scan(step, x[0], x)
    second = np_.lax.scan(step, first[0], x, reverse=True)
    return second, np_.lax.scan(step, x[0], x[:0])


def _in_a_map(np_: ModuleType, x: Any) -> Any:
    def each(value: Any) -> Any:
        np_.debug.print("element {}", value, ordered=True)
        return value * value

    return np_.lax.map(each, x)


def _in_an_inner_function(np_: ModuleType, x: Any) -> Any:
    @np_.jit
    def inner(value: Any) -> Any:
        np_.debug.print("inner {}", value, ordered=True)
        return value + 1

    np_.debug.print("first", ordered=True)
    x = inner(inner(x))
    np_.debug.print("last", ordered=True)
    return np_.lax.fori_loop(0, 2, lambda i, value: inner(value), x)


def _in_loops_in_branches(np_: ModuleType, x: Any) -> Any:
    def outer(i: Any, value: Any) -> Any:
        def inner(k: Any, each: Any) -> Any:
            np_.debug.print("i={i} k={k}", i=i, k=k, ordered=True)
            return each + 1

        return np_.lax.cond(
            i % 2 == 0, lambda each: np_.lax.fori_loop(0, i, inner, each), lambda each: each, value
        )

    return np_.lax.fori_loop(0, 5, outer, x)


def _without_results(np_: ModuleType, x: Any) -> Any:
    np_.debug.print("nothing but {}", x, ordered=True)
    np_.debug.print("text {x} {x!r:>4} {{}} {n:03d}", x="abc", n=7, ordered=True)
    np_.debug.print("twice", ordered=True)
    np_.debug.print("twice", ordered=True)


def _inner_without_results(np_: ModuleType, x: Any) -> Any:
    inner = np_.jit(lambda y: np_.debug.print("inner {}", y, ordered=True))
    inner(x)
    np_.debug.print("between", ordered=True)

    def step(i: Any, y: Any) -> Any:
        inner(y)
        return y + y

    np_.lax.fori_loop(0, 2, step, x)


PROGRAMS: list[Program] = [
    *(_in_a_loop, _in_a_condition, _in_one_branch, _in_branches, _in_a_scan, _in_a_map),
    *(_in_an_inner_function, _in_loops_in_branches, _without_results, _inner_without_results),
]
VALUES = [np.array([1, 2, 3], np.float32), np.array([-4, 0, 5], np.float32)]


def capture_output(capsys: pytest.CaptureFixture[str], run: Callable[[Any], Any], x: Any) -> tuple[str, Any]:
    capsys.readouterr()
    result = run(x)
    jax.effects_barrier()
    return capsys.readouterr().out, result


@cache
def _jitted_by_jax(program: Program) -> Any:
    return jax.jit(lambda x: program(jax, x))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.strip("_"))
@pytest.mark.parametrize("is_jitted", [False, True])
def test_prints_what_jax_prints(
    program: Program, is_jitted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = xarr.jit(lambda x: program(xarr, x)) if is_jitted else lambda x: program(xarr, x)
    theirs = _jitted_by_jax(program)  # which prints the same as step by step, and compiles once
    for value in (*VALUES, *VALUES):  # the later calls replay
        text, result = capture_output(capsys, ours, xarr.asarray(value))
        wanted, expected = capture_output(capsys, theirs, jax.numpy.asarray(value))
        assert text == wanted
        for leaf, other in zip(xarr.tree.leaves(result), jax.tree.leaves(expected), strict=True):
            assert_same(leaf, np.asarray(other))


def test_a_loop_outside_of_jit_runs_once() -> None:
    seen: list[int] = []

    def body(i: xarr.Array, value: Any) -> Any:
        xarr.debug.callback(lambda k: seen.append(int(k)), i)
        return value[0] + 1, value[1] * 2

    first, second = lax.fori_loop(0, 3, body, (xarr.ones(2), xarr.ones(3)))
    assert seen == [0, 1, 2]  # before anybody looks
    assert first.is_evaluated and second.is_evaluated
    with config(debug_nans=True):
        lax.fori_loop(0, 2, body, (xarr.ones(2), xarr.ones(3)))
    assert seen == [0, 1, 2, 0, 1]
    assert float(lax.call(lambda x: body(x, (x, x))[0], xarr.asarray(5.0))) == 6.0
    assert seen == [0, 1, 2, 0, 1, 5]


def test_callbacks_get_arrays_of_their_own_in_their_pytrees() -> None:
    kept: list[Any] = []

    def keep(values: Any, *, name: str) -> None:
        values["x"][0] = 9
        kept.append((values, name))

    @xarr.jit
    def function(x: xarr.Array, number: float) -> xarr.Array:
        xarr.debug.callback(keep, {"x": x, "n": (number, None)}, name="label")
        return x + 1

    x = xarr.zeros(2)
    for number in (1, 2):
        assert_same(function(x, number), np.ones(2))
    assert [(values["n"], name) for values, name in kept] == [((1, None), "label"), ((2, None), "label")]
    assert_same(kept[0][0]["x"], np.array([9.0, 0.0]))
    assert_same(x, np.zeros(2))
    assert function.compilations == 1


def test_options_may_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    xarr.debug.print(ordered=True)("{} {a}", 1, a=2)  # type: ignore[misc]
    seen: list[Any] = []
    xarr.debug.callback(ordered=True)(seen.append, 3)  # type: ignore[misc]
    assert capsys.readouterr().out == "1 2\n" and seen == [3]
    xarr.effects_barrier()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: xarr.debug.print("{} {}", 1), r"no argument for the field \{1\}"),
        (lambda: xarr.debug.print("{a}", b=1), r"no argument for the field \{a\}"),
        (lambda: xarr.debug.print("{}", 1, b=2), "no field for the argument b"),
        (lambda: xarr.debug.print("x = 2", b=2), r"no field for the argument b"),
        (lambda: xarr.debug.print(3), "wanted a format string"),
        (lambda: xarr.debug.print(ordered=True, x=3), "wanted a format string before"),
        (lambda: xarr.debug.callback(3), "wanted a function to call back"),
    ],
    ids=["positional", "named", "unused", "no fields", "no text", "options", "no function"],
)
@pytest.mark.parametrize("is_jitted", [False, True])
def test_wrong_arguments(call: Callable[[], Any], words: str, is_jitted: bool) -> None:
    with pytest.raises(InputError, match=words):
        xarr.jit(call)() if is_jitted else call()


@pytest.mark.parametrize(
    "program",
    [
        lambda f, x: lax.reduce(x, np.float64(0), lambda a, b: f(a) + b, (0,)),
        lambda f, x: lax.map_elements(f, x),
        lambda f, x: lax.reduce(x, np.float64(0), lambda a, b: xarr.jit(f)(a) + b, (0,)),
        lambda f, x: lax.reduce(
            x, np.float64(0), lambda a, b: lax.cond(a > b, f, lambda each: each, a) + b, (0,)
        ),
    ],
    ids=["reduce", "map_elements", "jit inside", "cond inside"],
)
def test_no_side_effects_of_single_elements(program: Callable[..., Any]) -> None:
    def loud(each: xarr.Array) -> xarr.Array:
        xarr.debug.print("{}", each)
        return each

    for run in (lambda x: program(loud, x), xarr.jit(lambda x: program(loud, x))):
        with pytest.raises(InputError, match=r"single elements.*print or call back outside of it"):
            run(xarr.ones(3))


def test_errors_of_callbacks_reach_the_caller() -> None:
    def fail(value: Any) -> None:
        raise KeyError(f"at {int(value)}")

    @xarr.jit
    def function(x: xarr.Array) -> xarr.Array:
        xarr.debug.callback(fail, x)
        return x

    for value in (1, 2):
        with pytest.raises(KeyError, match=f"at {value}"):
            function(xarr.asarray(value))


def test_side_effects_show_in_the_graph() -> None:
    def function(x: xarr.Array) -> xarr.Array:
        xarr.debug.print("{}", x)
        return x + 1

    for lowered in (xarr.lower(function, "f32[2]"), xarr.jit(function).lower("f32[2]")):
        text = str(lowered)
        assert text.count("has_side_effect = true") == 1
        for stage in ("simplified", "decomposed", "fused"):
            assert "xarr.debug_callback" in str(lowered.stage(stage))


def test_make_explicit_has_no_text_for_a_callback() -> None:
    with pytest.raises(InputError, match="cannot write the functions that debug"):
        xarr.make_explicit(lambda x: (xarr.debug.print("{}", x), x)[1], xarr.ones(2))


# --- pure_callback -----------------------------------------------------------------------------------


def _of_both(x: Any) -> dict[str, Any]:
    return {"sum": np.asarray(x).sum(dtype=np.float32), "rows": [np.sort(np.asarray(x), axis=0)[::-1]]}


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 2)])
def test_pure_callback_as_in_jax(shape: tuple[int, ...]) -> None:
    value = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def program(np_: ModuleType, x: Any) -> Any:
        scalar, array = (np_.ShapeDtypeStruct(sizes, np.float32) for sizes in ((), shape))
        result = np_.pure_callback(_of_both, {"sum": scalar, "rows": [array]}, x + 1)
        return result["rows"][0] * result["sum"]

    expected = np.asarray(jax.jit(lambda x: program(jax, x))(value))
    jitted = xarr.jit(lambda x: program(xarr, x))
    for _ in range(3):
        assert_same(jitted(xarr.asarray(value)), expected)
        assert_same(program(xarr, xarr.asarray(value)), expected)


def test_pure_callback_in_a_loop_and_for_python_numbers() -> None:
    def step(i: xarr.Array, value: xarr.Array) -> xarr.Array:
        return xarr.pure_callback(lambda a, b: float(a) * 2 + int(b), value, value, i)

    assert_same(lax.fori_loop(0, 3, step, np.float32(1)), np.float32(12))
    assert_same(xarr.jit(lambda x: lax.fori_loop(0, 3, step, x))(xarr.float32(1)), np.float32(12))


def test_pure_callbacks_that_nobody_looks_at_are_not_made() -> None:
    calls: list[Any] = []

    def count(x: Any) -> Any:
        calls.append(x)
        return x

    @xarr.jit
    def function(x: xarr.Array) -> xarr.Array:
        xarr.pure_callback(count, x, x)
        return x

    function(xarr.ones(2))
    assert not calls
    unused = xarr.pure_callback(count, xarr.ones(2), xarr.ones(2))
    assert not calls
    assert_same(unused, np.ones(2))
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (
            lambda x: x[:1],
            r"the result of <lambda> was declared float32 of shape \(2,\), the function returned float32 of shape",
        ),
        (
            lambda x: x.astype(int),
            r"was declared float32 of shape \(2,\), the function returned int64 of shape \(2,\)",
        ),
        (lambda x: (x, x), r"must return what was declared: wanted \*, got \(\*, \*\)"),
    ],
    ids=["shape", "dtype", "structure"],
)
def test_pure_callback_keeps_its_promise(callback: Callable[[Any], Any], words: str) -> None:
    result = xarr.pure_callback(
        callback, xarr.ShapeDtypeStruct((2,), "float32"), xarr.ones(2, dtype="float32")
    )
    with pytest.raises(EvaluationError, match=words):
        np.asarray(result)


def test_pure_callback_refuses_what_it_cannot_do() -> None:
    with pytest.raises(InputError, match="wanted a pytree of what has shape and dtype"):
        xarr.pure_callback(np.sin, (3,), xarr.ones(3))
    with pytest.raises(InputError, match="wanted None for sharding"):
        xarr.pure_callback(np.sin, xarr.ones(3), xarr.ones(3), sharding=1)  # type: ignore[arg-type]


# --- what errors say ---------------------------------------------------------------------------------


def test_a_format_of_a_traced_value_names_debug_print() -> None:
    with pytest.raises(TracedValueError, match=r"xarr\.debug\.print\('\{x:\.2f\}', x=x\)"):
        xarr.jit(lambda x: (f"{x:.2f}", x)[1])(1.5)
    with pytest.raises(TracedValueError, match=r"xarr\.debug\.print to show the value"):
        xarr.jit(lambda x: float(x))(xarr.asarray(1.5))


def test_a_value_kept_from_a_function_that_has_ended() -> None:
    kept: list[xarr.Array] = []

    @xarr.jit
    def function(x: xarr.Array) -> xarr.Array:
        kept.append(x * 2)
        return x

    function(xarr.ones(2))
    for look in (lambda: float(kept[0][0]), kept[0].tolist, lambda: (kept[0] + 1).evaluate()):
        with pytest.raises(TracedValueError, match="after the end of the function that made it"):
            look()
