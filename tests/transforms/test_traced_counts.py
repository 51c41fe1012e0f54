"""Shifts and diagonals whose numbers are arguments of a traced function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.errors import ArgumentError, AxisError, ShapeError

DTYPES = ["int8", "int64", "uint64"]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex128"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (0, 3), (1,), ()], ids=str)
@pytest.mark.parametrize("shift", [0, 1, -2, 7, -128, 2**63 - 1, -(2**63)])
def test_roll_by_a_traced_shift(shape: tuple[int, ...], shift: int, dtype: str) -> None:
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    rolled = xarr.jit(lambda a, by: xarr.roll(a, by))
    for by in (shift, np.int64(shift)):  # a Python number is traced too
        assert_same(rolled(x, by), np.roll(x, shift))
    for axis in range(len(shape)):
        assert_same(
            xarr.jit(lambda a, by, axis=axis: xarr.roll(a, by, axis))(x, shift), np.roll(x, shift, axis)
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_roll_by_shifts_of_every_integer_type(dtype: str) -> None:
    x = np.arange(2 * 200).reshape(2, 200)
    for shift in (np.iinfo(dtype).max, np.iinfo(dtype).min, 3):
        by = np.array(shift, dtype)
        expected = np.roll(x, min(int(shift), 2**63 - 1) % 200, 1)
        if dtype != "uint64" or shift < 2**63:
            assert_same(xarr.jit(lambda a, by: xarr.roll(a, by, 1))(x, by), expected)


def test_roll_by_several_traced_shifts() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    both = np.array([1, -2])
    assert_same(xarr.jit(lambda a, by: xarr.roll(a, by, (0, 2)))(x, both), np.roll(x, (1, -2), (0, 2)))
    assert_same(xarr.jit(lambda a, by: xarr.roll(a, (by, 1), (0, 2)))(x, 5), np.roll(x, (5, 1), (0, 2)))
    assert_same(xarr.jit(lambda a, by: xarr.roll(a, by, (0, 1)))(x, 2), np.roll(x, 2, (0, 1)))
    assert_same(xarr.jit(lambda a, by: xarr.roll(a, by))(x, both), np.roll(x, both))
    with pytest.raises(ShapeError, match="one shift for each axis"):
        xarr.jit(lambda a, by: xarr.roll(a, by, (0, 1, 2)))(x, both)
    with pytest.raises(AxisError):
        xarr.jit(lambda a, by: xarr.roll(a, by, 3))(x, 1)


def test_roll_in_a_loop() -> None:
    x = xarr.arange(5)
    result = xarr.lax.fori_loop(0, 4, lambda i, value: xarr.roll(value, i), x)
    assert_same(result, np.roll(np.arange(5), 6))


@pytest.mark.sampled
@pytest.mark.parametrize("k", [0, 1, -1, 3, -4, 100, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("shape", [(3, 4), (4, 2), (1, 1), (0, 2)], ids=str)
def test_triangles_and_diagonals_by_a_traced_number(shape: tuple[int, int], k: int) -> None:
    x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    near = max(-100, min(100, k))
    calls: list[tuple[Any, Any]] = [
        (lambda at: xarr.eye(*shape, k=at), np.eye(*shape, k=near)),
        (lambda at: xarr.tri(*shape, k=at), np.tri(*shape, k=near)),
        (lambda at: xarr.tril(x, at), np.tril(x, near)),
        (lambda at: xarr.triu(xarr.asarray(x), at), np.triu(x, near)),
    ]
    for call, expected in calls:
        jitted = xarr.jit(call)
        assert_same(jitted(k), expected)
        assert_same(jitted(np.int64(k)), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_diagonals_of_every_integer_type(dtype: str) -> None:
    for k in (2, 1, np.iinfo(dtype).max):
        got = xarr.jit(lambda at: xarr.eye(300, 300, at))(np.array(k, dtype))
        assert_same(got, np.eye(300, 300, min(int(k), 300)))


@pytest.mark.parametrize("number", [1.5, np.array([1, 2])], ids=["float", "vector"])
def test_what_is_no_traced_integer(number: Any) -> None:
    for call in (lambda at: xarr.eye(3, k=at), lambda at: xarr.tril(xarr.ones((2, 2)), at)):
        with pytest.raises(ArgumentError, match="wanted an int for k, got"):
            xarr.jit(call)(number)
    with pytest.raises(ArgumentError, match="wanted an int for shift, got f64"):
        xarr.jit(lambda by: xarr.roll(xarr.ones(3), by))(1.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: xarr.ones((2, 3)).reshape(n, -1),
        lambda n: xarr.diagonal(xarr.ones((3, 3)), n),
        lambda n: xarr.linspace(0, 1, n),
    ],
    ids=["reshape", "diagonal", "linspace"],
)
def test_a_count_without_a_value_is_named_with_what_works(call: Callable[[Any], Any]) -> None:
    with pytest.raises(ArgumentError, match=r"wanted an int for \w+, got .*static_argnames of xarr\.jit"):
        xarr.jit(call)(1)
    assert xarr.jit(call, static_argnums=0)(1).size
