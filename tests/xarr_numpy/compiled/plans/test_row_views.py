"""Rows at computed starts are read where they lie, unless something writes there while they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr_numpy.compiled.plans import plan_code

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

N, M = 7, 12


def row(a: Any, i: Any, size: int = 1) -> Any:
    """Rows of a matrix from a start on that is clamped."""
    return lax.dynamic_slice(a, (i, xarr.zeros_like(i)), (size, a.shape[1])).reshape(size * a.shape[1])


def read_row(k: Any, a: Any, b: Any, x: Any) -> Any:
    return a, b, x + row(b, k - 3) * x.sum()


def read_two_rows(k: Any, a: Any, b: Any, x: Any) -> Any:
    columns = x.shape[0]
    return a, b, x + row(b, k, 2)[:columns] - row(b, k * 3, 2)[columns:]


def read_a_row_that_is_written(k: Any, a: Any, b: Any, x: Any) -> Any:
    first = row(a, k)
    a = a.at[xarr.clip(k, 0, N - 1)].set(x)
    return a, b, first * 2 + row(a, k + 1)


def exchange_rows_of_one(k: Any, a: Any, b: Any, x: Any) -> Any:
    first, second = row(a, k), row(a, N - 1 - k)
    a = lax.dynamic_update_slice(a, second[None], (k, 0 * k))
    return lax.dynamic_update_slice(a, first[None], (N - 1 - k, 0 * k)), b, x


def carry_a_row(k: Any, a: Any, b: Any, x: Any) -> Any:
    return a, b, row(b, k)


def write_over_a_row(k: Any, a: Any, b: Any, x: Any) -> Any:
    """A row of this size is written over where nothing else needs it."""
    first = row(b, k)
    return a, b, xarr.sort(first * 2 + x.sum()) * 0.5


def change_all_of_the_matrix(k: Any, a: Any, b: Any, x: Any) -> Any:
    return a * 0.5 + row(a, k), b, x + row(a, k + 1)


def branch(k: Any, a: Any, b: Any, x: Any) -> Any:
    return a, b, lax.cond(k % 2 == 0, lambda x: x + row(b, k), lambda x: x - row(b, 1 - k), x)


def loop_inside(k: Any, a: Any, b: Any, x: Any) -> Any:
    return a, b, lax.fori_loop(0, 3, lambda j, x: x * 0.5 + row(b, k + j), x + row(b, k))


def read_every_other_row(k: Any, a: Any, b: Any, x: Any) -> Any:
    """Rows of what machine code copies, whose memory the next step takes."""
    first = row(b[::2], k)
    y = xarr.cumsum(x + first)
    return a, b, xarr.cumsum(y[::-1]) * 0.01 + first


STEPS: tuple[Callable[..., Any], ...] = (
    read_row,
    read_two_rows,
    read_a_row_that_is_written,
    exchange_rows_of_one,
    carry_a_row,
    write_over_a_row,
    change_all_of_the_matrix,
    branch,
    loop_inside,
    read_every_other_row,
)
#: Those in which a row is not copied.
IN_PLACE = (read_row, read_two_rows, write_over_a_row, change_all_of_the_matrix, branch, loop_inside)


def function_of(step: Callable[..., Any], first: int = -2) -> Callable[..., Any]:
    def function(a: Any, b: Any, x: Any) -> Any:
        return lax.fori_loop(first, N + 2, lambda k, state: step(k, *state), (a, b, x))

    return function


def operands(columns: int = M) -> list[xarr.Array]:
    random = np.random.default_rng(0)
    return [xarr.asarray(random.normal(size=shape)) for shape in ((N, columns), (N, columns), (columns,))]


@pytest.mark.parametrize("columns", [M, 5000])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_rows(step: Callable[..., Any], columns: int) -> None:
    """Of few columns and of so many that results are written over operands."""
    function, arguments = function_of(step), operands(columns)
    before = [np.array(each) for each in arguments]
    with xarr.config(fusion="off"):
        wanted = [np.asarray(each) for each in xarr.jit(function)(*arguments)]
    for got, expected in zip(xarr.jit(function)(*arguments), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12)
    for argument, number in zip(arguments, before, strict=True):
        assert_same(np.asarray(argument), number)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_which_rows_are_copied(step: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    addresses: list[str] = []
    write = plan_code.write_row_view

    def note_address(*arguments: Any) -> str:
        addresses.append(write(*arguments))
        return addresses[-1]

    monkeypatch.setattr(plan_code, "write_row_view", note_address)
    xarr.jit(function_of(step, -1)).lower(*operands()).stage("program")  # which no test before has made
    assert bool(addresses) == (step in IN_PLACE)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_starts_of_each_type(dtype: str) -> None:
    """Numbers at the ends of a type are clamped."""
    info = np.iinfo(dtype)
    starts = np.array([0, 1, N - 1, N, info.max, info.min], dtype)
    a = np.arange(float(N * M)).reshape(N, M)

    def function(a: Any, starts: Any) -> Any:
        def step(total: Any, start: Any) -> Any:
            return total + 1, lax.dynamic_slice(a, (start, start * 0), (2, M)) * total

        return lax.scan(step, 1.0, starts)[1]

    arguments = [xarr.asarray(a), xarr.asarray(starts)]
    with xarr.config(fusion="off"):
        wanted = np.asarray(xarr.jit(function)(*arguments))
    assert_same(np.asarray(xarr.jit(function)(*arguments)), wanted)
