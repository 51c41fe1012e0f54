"""Elements that are written a few apart: updates of these alone, in place where a loop carries the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

ROW = np.array([-0.0, 1.0, np.nan, np.inf, -np.inf, 0.0, 3.0, -0.0, 8.0, 9.0, -2.0])
GRID = np.arange(63.0).reshape(7, 9) - 31

#: Functions of an array that write elements a few apart, and an argument.
WRITES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "every second": (lambda x: x.at[::2].set(-x[::2]), ROW),
    "up to the last but one": (lambda x: x.at[1:-1:3].set(x[2::3]), ROW),
    "backwards": (lambda x: x.at[::-2].set(x[:6]), ROW),
    "backwards, from within": (lambda x: x.at[7:1:-3].set(x[:2]), ROW),
    "one number": (lambda x: x.at[1::2].set(-0.0), ROW),
    "added": (lambda x: x.at[1::4].add(x[:3]), ROW),
    "multiplied": (lambda x: x.at[::5].multiply(-1.0), ROW),
    "both dimensions": (lambda x: x.at[1:-1:2, 2::3].set(x[:3, :3]), GRID),
    "rows": (lambda x: x.at[::3].set(x[1::2]), GRID),
    "columns": (lambda x: x.at[:, 1::4].set(x[:, :2]), GRID),
    "an index and a step": (lambda x: x.at[3, ::2].set(x[0, :5]), GRID),
    "integers": (lambda x: x.at[::2].set(x[1::2]), np.arange(8, dtype="int8")),
    "bools": (lambda x: x.at[::3].set(~x[:3]), np.arange(8) % 2 == 0),
    "complex numbers": (lambda x: x.at[1::2].set(-x[::2]), np.arange(10) * (1 - 2j)),
    "half precision": (lambda x: x.at[1::2].set(-x[::2]), ROW[:10].astype("float16")),
    "nothing": (lambda x: x.at[5:5:2].set(x[:0]), ROW),
    "no longer than a step": (lambda x: x.at[9::4].set(-x[9::4]), ROW),
}


def repeat(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A loop of a few such writes, with the array that it began with added to some."""
    return lambda x: lax.fori_loop(0, 3, lambda i, y: write(write(y)), x)


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("around", [lambda write: write, repeat], ids=["once", "in a loop"])
def test_same_elements(name: str, around: Callable[..., Any]) -> None:
    write, array = WRITES[name]
    function = around(write)
    x = xarr.asarray(array)
    with xarr.config(fusion="off"):
        wanted = np.asarray(function(x))
    assert_same(xarr.jit(function)(x), wanted)
    assert_same(x, array)


def program(function: Callable[[Any], Any], array: Any) -> str:
    return str(xarr.jit(function).lower(xarr.asarray(array)).stage("program"))


def test_a_loop_writes_in_place() -> None:
    text = str(xarr.jit(repeat(WRITES["every second"][0])).lower(xarr.asarray(ROW)).stage("plan"))
    assert text.count("strided_update") == 2 and "pad" not in text and "select" not in text
    assert "called back" not in program(repeat(WRITES["every second"][0]), ROW)


def test_python_steps_them_too() -> None:
    # What the user computes in Python keeps the loop there.
    def step(i: Any, x: Any) -> Any:
        other = xarr.pure_callback(lambda a: np.asarray(a) + 1, x, x)
        return x.at[1::2].set(other[::2])

    x = xarr.arange(6.0)
    got = xarr.jit(lambda x: lax.fori_loop(0, 3, step, x))(x)
    assert_same(got, np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]))


def test_other_choices_stay() -> None:
    """Choices by a mask with other holes, or by one that is known late, are no updates."""

    def shift(x: Any) -> Any:
        laid = lax.pad(x[:3], 0.0, [(0, 1, 1)])
        mask = lax.pad(xarr.ones(3, "bool"), False, [(1, 0, 1)])
        return xarr.where(mask, laid, x[:6])

    def late(x: Any) -> Any:
        laid = lax.pad(x[:3], 0.0, [(0, 1, 1)])
        mask = lax.pad(x[:3] > 0, False, [(0, 1, 1)])
        return xarr.where(mask, laid, x[:6])

    for function in (shift, late):
        x = xarr.asarray(ROW)
        assert "strided_update" not in str(xarr.jit(function).lower(x).stage("fused"))
        with xarr.config(fusion="off"):
            wanted = np.asarray(function(x))
        assert_same(xarr.jit(function)(x), wanted)
