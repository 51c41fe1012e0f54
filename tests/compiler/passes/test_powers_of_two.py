"""Divisions by known powers of two as shifts and masks: the same integers, and no other choices."""

from __future__ import annotations

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.ir import ops

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

SIGNED = ("int8", "int16", "int32", "int64")


def classes(function, *arguments):
    """The operations of the stage in which groups are formed, also in the graphs of others."""
    graph = xarr.jit(function).lower(*arguments).stage("fused")
    classes_of_all, graphs = set(), [graph]
    for each in graphs:
        classes_of_all |= each.op_classes
        graphs += [inner for node in each.nodes for inner in node.op.graphs]
    return classes_of_all


def edges(dtype):
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, -9, -8, -7, -2, -1, 0, 1, 2, 7, 8, 9, info.max], dtype)


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("bits", range(7))
def test_quotients_and_remainders_are_those_of_numpy(dtype, bits):
    x, number = edges(dtype), 2**bits
    quotient, rest, both = xarr.jit(lambda x: (x // number, x % number, xarr.divmod(x, number)))(
        xarr.asarray(x)
    )
    for got, expected in (
        (quotient, x // number),
        (rest, x % number),
        *zip(both, np.divmod(x, number), strict=True),
    ):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(got), expected)


@pytest.mark.parametrize("dtype", SIGNED)
def test_the_greatest_power_of_a_type_is_one_too(dtype):
    x = edges(dtype)
    number = int(np.iinfo(dtype).max) // 2 + 1
    results = xarr.jit(lambda x: (x // number, x % number))(xarr.asarray(x))
    for got, expected in zip(results, (x // number, x % number), strict=True):
        np.testing.assert_array_equal(np.asarray(got), expected)


def test_they_are_shifts_and_masks():
    x = xarr.asarray(edges("int32"))
    assert ops.ShiftRightArithmetic in classes(lambda x: x // 4, x)
    assert ops.And in classes(lambda x: x % 4, x)
    for function in (lambda x: x // 4, lambda x: x % 4):
        assert not {ops.Divide, ops.Remainder} & classes(function, x)


def test_they_are_shifts_in_loops_too():
    x = xarr.asarray(edges("int64"))
    halves = lambda x: lax.fori_loop(0, 3, lambda i, x: xarr.where(x % 2 == 0, x // 2, x), x)  # noqa: E731
    assert not {ops.Divide, ops.Remainder} & classes(halves, x)
    expected = np.asarray(x)
    for _ in range(3):
        expected = np.where(expected % 2 == 0, expected // 2, expected)
    np.testing.assert_array_equal(np.asarray(xarr.jit(halves)(x)), expected)


@pytest.mark.parametrize("number", [-2, -1, 0, 3, 6, 100])
def test_other_divisors_stay(number):
    x = edges("int64")
    results = xarr.jit(lambda x: (x // number, x % number))(xarr.asarray(x))
    with np.errstate(all="ignore"):
        expected = x // np.int64(number), x % np.int64(number)
    for got, each in zip(results, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(got), each)
    assert ops.ShiftRightArithmetic not in classes(lambda x: x // number, xarr.asarray(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (xarr.arange(14) + x) % 4,  # whose strides loops know
        lambda x: x[0] // 4,
        lambda x: lax.rem(x, xarr.full_like(x, 4)),  # which has the dividend's sign
        lambda x: lax.div(x, xarr.full_like(x, 4)),
        lambda x: lax.select(x == 4, x, lax.rem(x, xarr.full_like(x, 4))),
    ],
    ids=["positions", "a number", "rem", "div", "another choice"],
)
def test_what_is_no_such_division_stays(function):
    assert {ops.Divide, ops.Remainder} & classes(function, xarr.asarray(edges("int64")))


def test_choices_that_only_look_alike_stay():
    x, two = xarr.asarray(edges("int64")), xarr.asarray(np.int64(2))

    def unlike(x):
        by = xarr.full_like(x, 2)
        rest = lax.rem(x, by)
        wrong = (rest != 0) & ((rest < 0) != (by < 0))
        of_other = lax.select(by == 0, xarr.full_like(x, 0), lax.select(wrong, rest - by, rest))
        of_nothing = lax.select(by == 0, xarr.full_like(x, 1), lax.div(x, by) - wrong.astype(x.dtype))
        return of_other, of_nothing

    for got, expected in zip(xarr.jit(unlike)(x), unlike(x), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))
    assert ops.ShiftRightArithmetic not in classes(unlike, x)
    assert ops.ShiftRightArithmetic not in classes(lambda x, two: x // two, x, two)
