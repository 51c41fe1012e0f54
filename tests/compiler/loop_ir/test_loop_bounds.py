"""Reductions under conditions of an index run over the elements that are wanted, with the results of all of them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from xarr import lax

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

SIZE = 90
K = np.arange(SIZE)

#: Conditions of the index `k` and a number, which are bounds.
BOUNDS: dict[str, Callable[[Any, Any], Any]] = {
    "below": lambda k, i: k < i,
    "up to": lambda k, i: k <= i,
    "from": lambda k, i: k >= i,
    "above": lambda k, i: i < k,
    "not from": lambda k, i: ~(k >= i),
    "only": lambda k, i: k == i,
    "between": lambda k, i: (k > i - 5) & (k <= i + 3),
    "behind, from the end": lambda k, i: SIZE - 1 - k < i,
    "shifted": lambda k, i: k + 7 < i,
    "below, as narrow numbers": lambda k, i: k.astype("int16") < i.astype("int16"),
    "below, without signs": lambda k, i: k.astype("uint64") < i.astype("uint64"),
    "below, and all but one": lambda k, i: (k < i) & (k != 3),
    "below, and where numbers are large": lambda k, i: (k < i) & (xarr.asarray(K * 5 % 7) > 3),
    "from, and every third": lambda k, i: (k >= i) & (k % 3 != i),
}
#: Those that are none: parts on both sides, another order of the index.
OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "all but": lambda k, i: k != i,
    "outside": lambda k, i: (k < i - 3) | (k > i),
    "every third": lambda k, i: k % 3 < i,
    "as numbers that wrap around": lambda k, i: (k * 5).astype("int8") < i.astype("int8"),
}


def reduction_of(condition: Callable[[Any, Any], Any], reduce: str, rest: Any = 0) -> Callable[..., Any]:
    """A loop whose step i reduces what the condition of i wants of an array, else `rest`."""

    def function(x: Any) -> Any:
        k = xarr.arange(SIZE)

        def step(i: Any, out: Any) -> Any:
            chosen = xarr.where(condition(k, i - 4), x, xarr.asarray(rest).astype(x.dtype))
            return out.at[i].set(getattr(xarr, reduce)(chosen).astype(x.dtype))

        return lax.fori_loop(0, SIZE + 8, step, xarr.zeros(SIZE + 8, x.dtype))

    return function


def agree(function: Callable[..., Any], *arguments: Any) -> None:
    operands = [xarr.asarray(each) for each in arguments]
    with xarr.config(fusion="off"), np.errstate(all="ignore"):
        wanted = xarr.jit(function)(*operands)
    assert_same(xarr.jit(function)(*operands), wanted)


def is_bounded(function: Callable[..., Any], x: Any) -> bool:
    """Whether the loop program of the reduction has computed bounds."""
    text = str(xarr.jit(function).lower(xarr.asarray(x)).stage("program"))
    (line,) = (line for line in text.splitlines() if "vector for" in line and line.startswith(" " * 12))
    return not line.strip().endswith(f"< {SIZE}:") or "<=" in line


def whole(dtype: str) -> np.ndarray[Any, Any]:
    """Small whole numbers, whose sums are exact in any order, and for floats all that is no number."""
    x = np.random.default_rng(3).integers(0, 5, SIZE).astype(dtype)
    if x.dtype.kind == "f":
        x[[20, 50, 70]], x[75:] = (np.inf, np.nan, -np.inf), -0.0
    return x


@pytest.mark.parametrize("name", [*BOUNDS, *OTHERS])
def test_bounds(name: str) -> None:
    function = reduction_of({**BOUNDS, **OTHERS}[name], "sum")
    assert is_bounded(function, whole("int64")) == (name in BOUNDS)
    for dtype in ("int64", "float64"):
        agree(function, whole(dtype))


@pytest.mark.parametrize(
    ("reduce", "dtype", "rest", "name"),
    fuzz.one_of_last(
        ["sum", "prod", "max", "min", "any", "all"],
        ["bool", "uint8", "int32", "float32", "float64"],
        [0, 1, 7, np.nan, -0.0],
        ["from", "between", "outside"],
    ),
)
def test_reductions(reduce: str, dtype: str, rest: float, name: str) -> None:
    if not dtype.startswith("float") and np.isnan(rest):
        rest = 3
    if dtype.startswith("float") and (reduce, rest) == ("prod", 7):
        return  # its powers are rounded, in an order of their own
    agree(reduction_of({**BOUNDS, **OTHERS}[name], reduce, rest), whole(dtype))


def test_only_what_may_be_repeated_is_left_out() -> None:
    x = whole("int64")
    for reduce, rest, wanted in (("sum", 0, True), ("sum", 1, False), ("prod", 1, True), ("prod", 0, False)):
        assert is_bounded(reduction_of(BOUNDS["below"], reduce, rest), x) == wanted
    assert is_bounded(reduction_of(BOUNDS["below"], "max", 123), x)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float64"])
def test_products_with_a_mask(dtype: str) -> None:
    """Of integers they are 0 where the mask is false; of floats -0.0, or NaN, too."""

    def function(x: Any) -> Any:
        def step(i: Any, out: Any) -> Any:
            mask = (xarr.arange(SIZE) < i).astype(x.dtype)
            return out.at[i].set(xarr.sum(x * mask, dtype=x.dtype))

        return lax.fori_loop(0, SIZE + 1, step, xarr.ones(SIZE + 1, x.dtype))

    assert is_bounded(function, whole(dtype)) == (dtype != "float64")
    agree(function, whole(dtype))


def test_zeros_keep_their_signs() -> None:
    """A sum of -0.0 is 0.0 once a 0.0 was added."""
    x = np.full(SIZE, -0.0)

    def function(x: Any) -> Any:
        k = xarr.arange(SIZE)

        def step(i: Any, out: Any) -> Any:
            chosen = xarr.where(k < i, x, 0.0)
            return out.at[i].set(xarr.sum(chosen, initial=-0.0))

        return lax.fori_loop(0, SIZE + 1, step, xarr.ones(SIZE + 1))

    agree(function, x)


def test_bounds_in_lanes_are_the_same_in_all() -> None:
    """The sum of each column, as far as a number, and as far as the number of the column."""

    def function(x: Any, n: Any) -> Any:
        rows, columns = xarr.arange(SIZE)[:, None], xarr.arange(SIZE)

        def step(i: Any, total: Any) -> Any:
            below = xarr.where(rows < i, x, 0).sum(axis=0)
            triangle = xarr.where(rows <= columns, x, 0)
            return (total + below + triangle.sum(axis=0) + triangle.sum(axis=1)) % 1009

        return lax.fori_loop(0, n, step, xarr.zeros(SIZE, "int64"))

    agree(function, np.arange(SIZE * SIZE).reshape(SIZE, SIZE) % 101, np.asarray(20))


class Conditions:
    """Random conditions of an index, of two numbers, and of elements."""

    def __init__(self, random: Random) -> None:
        self.names = random.choices([*BOUNDS, *OTHERS, "element"], k=random.randrange(1, 4))
        self.joins = random.choices("&|", weights=(3, 1), k=3)
        self.turned = random.choices((False, True), weights=(3, 1), k=4)
        self.far = random.choices(range(-9, 9), k=3)
        self.reduce = random.choice(("sum", "prod", "max", "min"))
        self.rest = random.choice((0, 1, 7, -0.0))
        self.is_rest_first = random.random() < 0.3

    def run(self, k: Any, i: Any, x: Any) -> Any:
        condition = None
        for name, join, turned, far in zip(self.names, self.joins, self.turned, self.far, strict=False):
            each = x > 1 if name == "element" else {**BOUNDS, **OTHERS}[name](k, i + far)
            each = ~each if turned else each
            before = each if condition is None else condition
            condition = before & each if join == "&" else before | each
        rest = xarr.asarray(self.rest).astype(x.dtype)
        chosen = xarr.where(~condition, rest, x) if self.is_rest_first else xarr.where(condition, x, rest)
        return getattr(xarr, self.reduce)(chosen).astype(x.dtype)


@pytest.mark.parametrize("seed", fuzz.seeds(15, 1000))
def test_random_conditions(seed: int) -> None:
    random = fuzz.generator("loop bounds", seed)
    parts = [Conditions(random) for _ in range(random.randrange(1, 3))]

    def function(x: Any) -> Any:
        def step(i: Any, out: Any) -> Any:
            values = [part.run(xarr.arange(SIZE), i - 5, x) for part in parts]
            return out.at[i].set(xarr.stack(values))

        return lax.fori_loop(0, SIZE + 10, step, xarr.zeros((SIZE + 10, len(parts)), x.dtype))

    agree(function, whole(random.choice(("int64", "uint16", "float64"))))


def test_conditions_may_be_more_than_calls_of_python_nest() -> None:
    def function(x: Any) -> Any:
        k = xarr.arange(SIZE)

        def step(i: Any, out: Any) -> Any:
            wanted = k < i
            for number in range(400):
                wanted = wanted & ((k >= i - SIZE + number % 7) | ~wanted)
            return out.at[i].set(xarr.where(wanted, x, 0).sum() + out[0])

        return lax.fori_loop(0, SIZE, step, xarr.zeros(SIZE, x.dtype))

    agree(function, whole("int64"))
