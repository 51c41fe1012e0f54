"""Indices that lie in bounds for certain are not checked; all others are, and give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from tests.support.draws.indices import count_up
from xarr import lax
from xarr.errors import IndexingError
from xarr.lax import integer_ranges
from xarr.lax.integer_ranges import range_of

pytestmark = pytest.mark.implicit


def is_checked(function: Any, *arguments: Any) -> bool:
    return "xarr.checked_indices" in str(xarr.lower(function, *arguments).stage("traced"))


def evaluate(text: str, i: Any) -> Any:
    return eval(text, {"xarr": xarr, "i": i})


def total(low: Any, high: Any, text: str) -> Any:
    """The sum of the elements of an array of 5 at an index for each i."""
    return lambda x: lax.fori_loop(low, high, lambda i, t: t + xarr.sum(x[evaluate(text, i)]), 0)


X = xarr.asarray(count_up((5,)))


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0, 5, "i"),
        (1, 5, "i - 1"),
        (0, 4, "i + 1"),
        (0, 5, "4 - i"),
        (-5, 0, "i"),
        (-5, 5, "i"),
        (0, 3, "2 * i"),
        (0, 9, "xarr.minimum(i, 4)"),
        (-4, 5, "abs(i)"),
        (-4, 1, "-i"),
        (0, 5, "abs(i - 4)"),
        (0, 9, "xarr.clip(i - 2, 0, 4)"),
        (-7, 9, "i % 5"),
        (-7, 9, "xarr.maximum(i * i * i, 0) % 5"),
        (np.int8(0), np.int8(6 - 1), "i"),
    ],
)
def test_what_is_certain(low: Any, high: Any, text: str) -> None:
    function = total(low, high, text)
    assert not is_checked(function, X)
    wanted = sum(count_up((5,))[np.asarray(evaluate(text, i))].sum() for i in range(low, high))
    assert function(X).item() == xarr.jit(function)(X).item() == wanted


@pytest.mark.parametrize("device", ["numpy", "opaque"])
def test_values_are_certain_where_the_host_has_them(opaque: Any, device: str) -> None:
    with xarr.config(backend=device):
        x = xarr.asarray(count_up((5,)))
        function = total(0, 2, "xarr.asarray([0, 3]) + i")
        with opaque.transfers() as counted:
            assert is_checked(function, x) == (device == "opaque")
        assert counted.to_host == 0
        assert function(x).item() == xarr.jit(function)(x).item() == count_up((5,))[[0, 3, 1, 4]].sum()


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0, 6, "i"),
        (0, 5, "i + 1"),
        (-6, 0, "i"),
        (0, 3, "i * i + 2"),
        (0, 2, "i * 2**62 + i * 2**62"),
        (0, 3, "i % 5 + 3"),
        (0, 7, "xarr.maximum(i, 2)"),
        (-8, 0, "xarr.minimum(i, 4)"),
    ],
)
def test_what_is_out_of_bounds_is_found(low: int, high: int, text: str) -> None:
    function = total(low, high, text)
    assert is_checked(function, X)
    with pytest.raises(IndexingError, match="out of bounds for axis 0 with size 5"):
        np.asarray(function(X))


def test_ends_that_are_values_are_checked() -> None:
    function = lambda x, n: lax.fori_loop(0, n, lambda i, t: t + x[i], 0)  # noqa: E731
    assert is_checked(function, X, xarr.asarray(3))
    assert xarr.jit(function)(X, xarr.asarray(3)).item() == 6
    with pytest.raises(IndexingError, match="index 5"):
        np.asarray(xarr.jit(function)(X, xarr.asarray(6)))


def test_what_is_right_but_not_certain_is_checked() -> None:
    function = total(0, 9, "xarr.where(i * i > 20, i - 5, i)")
    assert is_checked(function, X)
    assert function(X).item() == xarr.jit(function)(X).item() == 15 + 10


@pytest.mark.parametrize(
    ("text", "is_certain"),
    [
        ("xarr.clip(i, 0, 4)", True),
        ("xarr.clip(7 - i, -5, 4)", True),
        ("i % 5", True),
        ("(i - 3) % 4", True),
        ("i % xarr.asarray([2, 3, 5])", True),
        ("xarr.minimum(i, 4)", False),
        ("xarr.maximum(i, 0)", False),
        ("i % -6", False),
        ("i % i", False),
        ("xarr.clip(i, 0, i)", False),
        ("xarr.where((i % 5 != 0) & ((i % 5 < 0) == (i < 0)), i % 5 + 5, i % 5)", False),
    ],
)
def test_of_any_numbers(text: str, is_certain: bool) -> None:
    numbers = np.array([-(2**63), 2**63 - 1, 3])
    function = lambda x, i: x[evaluate(text, i)]  # noqa: E731
    assert is_checked(function, X, xarr.asarray(numbers)) != is_certain
    if is_certain:
        wanted = count_up((5,))[np.asarray(evaluate(text, xarr.asarray(numbers)))]
        assert_same(xarr.jit(function)(X, xarr.asarray(numbers)), wanted)


def test_loops_in_loops() -> None:
    x = count_up((4, 4))

    def inner(i: Any, t: Any) -> Any:
        return lax.fori_loop(0, i + 1, lambda j, s: s + array[i, j], t)

    array = xarr.asarray(x)
    function = lambda: lax.fori_loop(0, 4, inner, 0)  # noqa: E731
    assert not is_checked(function)
    assert function().item() == np.tril(x).sum()


def test_a_loop_that_writes() -> None:
    def add_neighbour(i: Any, x: Any) -> Any:
        return x.at[i].add(x[i - 1])

    function = lambda x: lax.fori_loop(1, 5, add_neighbour, x)  # noqa: E731
    assert not is_checked(function, X)
    assert_same(xarr.jit(function)(X), np.cumsum(count_up((5,))))


def test_ranges_of_arrays() -> None:
    assert not is_checked(lambda x: x[xarr.arange(5)[::-1]], X)
    assert not is_checked(lambda x: x[-1 - xarr.arange(5)], X)
    assert is_checked(lambda x: x[xarr.arange(6)], X)
    assert is_checked(lambda x, i: x[i], X, xarr.asarray([1]))


STEPS: dict[str, Any] = {
    "add": lambda v, c: v + c,
    "subtract": lambda v, c: c - v,
    "multiply": lambda v, c: v * c,
    "minimum": xarr.minimum,
    "maximum": xarr.maximum,
    "remainder": lambda v, c: lax.rem(v, lax.full_like(v, c or 1)),
    "where": lambda v, c: xarr.where(v > c, v, c),
    "clip": lambda v, c: lax.clamp(np.int64(min(c, 0)), v, np.int64(c)),
    "flip": lambda v, c: v[::-1],
    "divide": lambda v, c: lax.div(v, lax.full_like(v, c or 1)),
    "bits": lambda v, c: v & c,
    "mask": lambda v, c: (v > c).astype("int64"),
    "convert": lambda v, c: v.astype("float32").astype("int64"),
    "roll": xarr.roll,
    "pad": lambda v, c: xarr.pad(v, (abs(c), 1), constant_values=c),
    "update": lambda v, c: v.at[c % v.shape[0]].set(c),
    "pick": lambda v, c: xarr.take(v, xarr.asarray([0, -1, c]), mode="clip"),
    "sort": lambda v, c: xarr.sort(v),
    "order": lambda v, c: xarr.argsort(v),
    "greatest so far": lambda v, c: lax.cummax(v, 0, c > 0),
    "least so far": lambda v, c: lax.cummin(v, 0, c > 0),
    "running total": lambda v, c: xarr.cumsum(v),
    "sum": lambda v, c: xarr.sum(v, keepdims=True),
    "least": lambda v, c: xarr.min(v, keepdims=True),
    "number of the greatest": lambda v, c: xarr.argmax(v, keepdims=True),
    "windows": lambda v, c: lax.reduce_window(v, np.int64(c), lax.max, (2,), (1,), [(abs(c), 1)]),
}


@settings(max_examples=200)
@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(-6, 6)), max_size=5),
)
def test_every_value_lies_in_the_range(start: list[int], steps: list[tuple[str, int]]) -> None:
    ranges = []

    def record() -> Any:
        value = lax.iota(np.int64, len(start)) + xarr.asarray(start[0])
        for name, constant in steps:
            value = STEPS[name](value, constant)
        ranges.append(range_of(value._node))
        return value

    host = np.asarray(xarr.jit(record)())
    if ranges[0] is not None:
        assert ranges[0][0] <= host.min()
        assert host.max() <= ranges[0][1]


def test_a_sum_that_could_wrap_around_is_not_known() -> None:
    large = xarr.asarray(np.int8(100)) + xarr.asarray(np.int8(100))
    assert range_of(large._node) is None


PICKS: dict[str, Any] = {
    "order": lambda x: x[xarr.argsort(x * 0.5)],
    "extremes": lambda x: x[xarr.argmax(x)] + x[xarr.argmin(x)],
    "numbers among the chosen": lambda x: x[xarr.cumsum(x > 2) - 1],
    "last start": lambda x: x[lax.cummax(xarr.where(x > 2, xarr.arange(5), 0), 0)],
    "roll": lambda x: x[xarr.roll(xarr.arange(5), 2)],
    "halves": lambda x: x[xarr.arange(10) // 2],
    "bits": lambda x: x[x & 3],
    "greatest": lambda x: x[xarr.max(xarr.arange(5))],
    "mask": lambda x: x[(x > 2).astype("int8")],
}


@pytest.mark.parametrize("name", PICKS)
def test_indices_made_by_sorts_reductions_and_moves_are_certain(name: str) -> None:
    pick = PICKS[name]
    assert not is_checked(pick, X)
    assert_same(xarr.jit(pick)(X), pick(X))


def test_long_chains_of_choices_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [0]
    rule = integer_ranges.range_by_rule

    def count(node: Any, known: Any) -> Any:
        asked[0] += 1
        return rule(node, known)

    monkeypatch.setattr(integer_ranges, "range_by_rule", count)

    def pick(x: Any, k: Any) -> Any:
        for step in range(9):
            k = xarr.where(k < step, k + step, k - step)
        return x[k]

    assert is_checked(pick, X, xarr.asarray(3))
    assert 0 < asked[0] < 1000
