"""Numbers and short arrays that steps of a loop hand to one another: in registers, with the bits of operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

DTYPES = (
    "bool",
    "int8",
    "uint16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
SIZES = (1, 2, 3, 5, 6, 7, 9, 15, 17, 31, 33, 70)


def agree(function: Any, *arguments: Any) -> None:
    """Compare a function with its operations one by one, bit by bit."""
    operands = [xarr.asarray(each) for each in arguments]
    with xarr.config(fusion="off"):
        wanted = xarr.jit(function)(*operands)
    for got, value in zip(xarr.jit(function)(*operands), wanted, strict=True):
        assert_same(got, value)


def arrays(size: int, dtype: str) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(size)
    return [generator.integers(0, 4, size).astype(dtype) for _ in range(2)]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_arrays_of_any_length(size: int, dtype: str) -> None:
    """Each step stores what the next reads: rows of a table, shifted, reversed, chosen and added."""

    def step(i: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, table, total = state
        row = lax.dynamic_slice(table, (lax.rem(i, 3), 0), (1, size))[0]
        mixed = xarr.where(x == row, xarr.flip(x), xarr.roll(row, 1))
        table = table.at[(i + 1) % 3].set(mixed)
        return xarr.where(row == mixed, x, table[i % 3]), table, total + xarr.sum(x == mixed)

    def function(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 7, step, (x, xarr.stack([x, y, x]), xarr.asarray(0)))

    agree(function, *arrays(size, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_carried_numbers(dtype: str) -> None:
    """Numbers that are exchanged, stay, and are read and written in arrays, in a loop inside of a loop."""

    def inner(k: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        a, b, x = state
        return b, xarr.where(a == x[k % 3], x[(k + 1) % 3], a), x.at[k % 3].set(b)

    def step(i: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        a, b, same, x, steps = state
        b, a, x = lax.fori_loop(0, i % 4, inner, (a, b, x))
        return a, xarr.where(x[0] == same, x[1], b), same, x, steps + i

    def function(x: Any, y: Any) -> Any:
        state = (x[0], y[1], y[0], x, xarr.asarray(0))
        return (*lax.fori_loop(0, 9, step, state), *lax.fori_loop(0, 0, step, state))

    agree(function, *arrays(3, dtype))


@pytest.mark.parametrize("size", [2, 3, 5, 9, 10, 11, 12, 17, 18])
def test_numbers_chosen_by_comparisons_of_narrower_ones(size: int) -> None:
    """Counts of int64 that go on as long as float32 are above a bound, which bits of random numbers lower."""

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        count, key, x = state
        key, own = xarr.random.split(key)
        drop = xarr.random.bits(own, (size,), dtype="uint32") >> 28
        return xarr.where(x > -30, count + 1, count), key, x - xarr.astype(drop, "float32")

    def function(x: Any) -> Any:
        start = xarr.zeros(size, dtype="int64"), xarr.random.key(size), x
        count, _, x = lax.while_loop(lambda state: xarr.any(state[2] > -30), step, start)
        return count, x

    agree(function, np.arange(size, dtype=np.float32))


def test_loops_go_on_where_they_were_interrupted() -> None:
    """A progress bar is told the steps of each chunk, and numbers are carried from chunk to chunk."""

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        k, a, b = state
        return k + 1, b, (a + b) % 1009

    def function(a: Any, b: Any) -> Any:
        return lax.while_loop(lambda state: state[0] < 20_000, step, (xarr.asarray(0), a[0], b[0]))

    agree(function, *arrays(2, "int64"))
