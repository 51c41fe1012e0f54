"""Lowering a function: what its arguments refuse, and what of the world outside it may touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.errors import TracedValueError


@pytest.mark.parametrize(
    "look",
    [np.asarray, bool, float, int, str.format, list, xarr.evaluate, lambda x: x.item(), lambda x: x.tolist()],
    ids=["asarray", "bool", "float", "int", "format", "list", "evaluate", "item", "tolist"],
)
def test_looking_at_a_traced_value(look: Callable[[Any], Any]) -> None:
    def function(x: xarr.Array) -> xarr.Array:
        doubled = x * 2
        if look is str.format:
            f"{doubled:.2f}"
        elif look is list:
            np.asarray(next(iter(doubled[None])))
        else:
            look(doubled)
        return doubled

    with pytest.raises(TracedValueError) as caught:
        xarr.lower(function, xarr.asarray(1.0))
    text = str(caught.value)
    assert ("xarr.debug.print" if look is str.format else "lax.cond") in text
    assert f"{__file__}:" in text
    assert isinstance(caught.value, TypeError)


def test_a_traced_array_can_be_printed() -> None:
    seen: list[str] = []

    def function(x: xarr.Array) -> xarr.Array:
        seen.append(repr(x + 1))
        seen.append(f"{x}")
        return x

    xarr.lower(function, "f32[2,3]")
    assert all(text.startswith("Array(<traced f32[2,3]>") for text in seen)


def test_what_a_trace_holds_is_not_touched_by_evaluation() -> None:
    outside = xarr.arange(3)
    lowered = xarr.lower(lambda x: x + outside, "s64[3]")
    before = str(lowered)
    outside.evaluate()
    assert str(lowered) == before
    lowered.graph.verify()


def test_an_outer_array_cannot_be_changed_in_a_traced_function() -> None:
    total, table = xarr.asarray(0.0), xarr.zeros(3)

    def add(x: xarr.Array) -> xarr.Array:
        nonlocal total
        total += x
        return x

    def store(x: xarr.Array) -> xarr.Array:
        table[0] = x
        return x

    for function in (add, store):
        with pytest.raises(
            TracedValueError, match="an array from outside of a traced function cannot be changed"
        ):
            xarr.lower(function, xarr.asarray(1.0))
    assert float(total) == 0.0
    assert_same(table, np.zeros(3))


def test_an_outer_array_cannot_be_changed_in_the_body_of_a_loop() -> None:
    """Not by a constant either: the body is called once, however often the loop runs it."""
    outer = xarr.zeros(3)

    def count(step: xarr.Array, carry: xarr.Array) -> xarr.Array:
        outer[0] = 1.0
        return carry

    with pytest.raises(
        TracedValueError, match=r"that would happen once(.|\n)*It was made at .*test_lowering"
    ):
        xarr.lax.fori_loop(0, 3, count, xarr.asarray(0.0))

    def function(x: xarr.Array) -> xarr.Array:
        total = xarr.zeros(())

        def add(step: xarr.Array, carry: xarr.Array) -> xarr.Array:
            nonlocal total
            total += x
            return carry

        result: xarr.Array = xarr.lax.fori_loop(0, 3, add, x)
        return result

    with pytest.raises(TracedValueError, match="an array from outside"):
        xarr.lower(function, xarr.asarray(1.0))
    assert_same(outer, np.zeros(3))
    outer += 1  # once the function has ended, or failed, it may change again
    assert_same(outer, np.ones(3))


def test_an_argument_cannot_be_stored_after_its_function_has_ended() -> None:
    kept: list[xarr.Array] = []

    def keep(x: xarr.Array) -> xarr.Array:
        kept.append(x)
        return x

    xarr.lower(keep, xarr.asarray(1.0))
    table = xarr.zeros(3)
    with pytest.raises(
        TracedValueError, match=r"f64\[3\] depends on an argument of a traced function that has"
    ):
        table[0] = kept[0]
    assert_same(table, np.zeros(3))


@pytest.mark.usefixtures("on_numpy")
def test_a_copy_of_an_outer_array_can_be_changed_in_a_traced_function() -> None:
    outer = xarr.asarray([1.0, 2.0])

    def function(x: xarr.Array) -> xarr.Array:
        mine = outer.copy()
        mine[0] = x
        return mine

    lowered = xarr.lower(function, xarr.asarray(1.0))
    program: Any = lowered.stage("program")
    assert_same(program(np.array(7.0), np.array([1.0, 2.0]))[0], np.array([7.0, 2.0]))
    assert_same(outer, np.array([1.0, 2.0]))


@pytest.mark.usefixtures("on_numpy")
def test_an_inner_array_can_be_changed_in_a_traced_function() -> None:
    def function(x: xarr.Array) -> xarr.Array:
        y = xarr.zeros(3)
        y += x
        y[0] = x
        x *= 2
        return y + x

    program: Any = xarr.lower(function, xarr.asarray(1.0)).stage("program")
    assert_same(program(np.array(1.0))[0], np.array([3.0, 3.0, 3.0]))


def test_an_argument_of_a_function_that_has_ended_is_refused() -> None:
    kept: list[xarr.Array] = []

    def keep(x: xarr.Array) -> xarr.Array:
        kept.append(x * 2)
        return x

    xarr.lower(keep, xarr.asarray(1.0))
    with pytest.raises(TracedValueError, match="a traced function that has ended"):
        xarr.lower(lambda y: y + kept[0], xarr.asarray(1.0))
    with pytest.raises(TracedValueError, match="after the end of the function that made it"):
        float(kept[0])


@pytest.mark.usefixtures("on_numpy")
def test_a_body_may_use_the_arguments_of_the_function_around_it() -> None:
    def function(x: xarr.Array) -> Any:
        return xarr.lax.fori_loop(0, 3, lambda i, c: xarr.lax.cond(c < 5, lambda d: d + x, lambda d: d, c), x)

    program: Any = xarr.lower(function, xarr.asarray(2.0)).stage("program")
    assert_same(program(np.array(2.0))[0], np.array(6.0))
