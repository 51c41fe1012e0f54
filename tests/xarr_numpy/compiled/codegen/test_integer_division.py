"""Quotients and remainders of integers in lanes are exact: for numbers of all lengths, and at the ends of each type."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.base.configuration import current as config
from xarr.compiler.loop_ir.scalars import Value, Values
from xarr_numpy.compiled.codegen.instructions import Block
from xarr_numpy.compiled.codegen.integer_division import divides_in_lanes

pytest.importorskip("llvmlite")

HostArray = np.ndarray[Any, Any]

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def ends(dtype: str) -> list[int]:
    """Numbers at the ends of a type, and of those that floats hold."""
    info = np.iinfo(dtype)
    near = [
        0,
        1,
        2,
        3,
        -1,
        -2,
        -3,
        2**51,
        2**51 + 1,
        2**53 + 1,
        2**62,
        2**63 - 2**9,
        2**63 + 1,
        2**64 - 2**10,
    ]
    near += [info.max, info.max - 1, info.max // 2, info.max // 2 + 1, info.min, info.min + 1]
    return [number for number in near if info.min <= number <= info.max]


def draws(dtype: str, count: int) -> HostArray:
    """Numbers of random lengths."""
    info, generator = np.iinfo(dtype), np.random.default_rng(0)
    shifts = generator.integers(0, info.bits, count).astype(f"uint{info.bits}")
    sizes = np.frombuffer(generator.bytes(count * info.bits // 8), f"uint{info.bits}") >> shifts
    return sizes.view(dtype) * (
        generator.choice(np.array([-1, 1], dtype), count) if info.min else np.uint8(1)
    )


def in_compiled_loops(function: Any, *operands: HostArray) -> list[HostArray]:
    with config(fusion="compiled"):
        return [np.asarray(each) for each in xarr.jit(function)(*map(xarr.asarray, operands))]


def all_four(x: xarr.Array, y: Any) -> tuple[xarr.Array, ...]:
    return lax.div(x, y), lax.rem(x, y), x // y, x % y


def exact_results(x: HostArray, y: HostArray) -> list[HostArray]:
    """By Python's integers, and of divisors 0 and -1 by XLA's rules and NumPy's."""
    info = np.iinfo(x.dtype)
    columns: list[list[int]] = [[], [], [], []]
    for a, b in zip(x.tolist(), np.broadcast_to(y, x.shape).tolist(), strict=True):
        sign = 1 if (a < 0) == (b < 0) else -1
        quotient = abs(a) // abs(b) * sign if b else -1 if info.min else info.max
        rest = a - quotient * b if b else a
        floor, modulo = divmod(a, b) if b else (0, 0)
        for column, number in zip(columns, (quotient, rest, floor, modulo), strict=True):
            column.append(number if number <= info.max else info.min)
    return [np.array(column, x.dtype) for column in columns]


@pytest.mark.parametrize("dtype", DTYPES)
def test_divisors_of_their_own(dtype: str) -> None:
    pairs = np.array(list(product(ends(dtype), ends(dtype))), dtype)
    numbers = draws(dtype, 4000)
    x, y = np.concatenate([pairs, numbers.reshape(-1, 2)]).T
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    for got, expected in zip(in_compiled_loops(all_four, x, y), exact_results(x, y), strict=True):
        assert_same(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["constant", "argument"])
def test_one_divisor(dtype: str, kind: str) -> None:
    x = np.concatenate([np.array(ends(dtype), dtype), draws(dtype, 300)])
    for number in [*ends(dtype), 7, 10, 100, *draws(dtype, 2).tolist()]:
        divisor = np.asarray(number, dtype)
        if kind == "constant":
            results = in_compiled_loops(lambda x, y=divisor: all_four(x, y), x)
        else:
            results = in_compiled_loops(all_four, x, divisor)
        for got, expected in zip(results, exact_results(x, divisor), strict=True):
            assert_same(got, expected)


@pytest.mark.parametrize("step", [1, 3, -5, 2**40])
def test_positions_whose_range_is_known(step: int) -> None:
    """Positions up to 2**51 are divided in floats alone, larger ones are not."""
    count = 3000
    start = 2**51 - 700 * step
    numbers = start + step * np.arange(count)

    def function(y: xarr.Array) -> tuple[xarr.Array, ...]:
        return all_four(start + step * xarr.arange(count), y)

    for divisor in (np.int64(1), np.int64(-7), np.int64(2**50 + 1)):
        results = in_compiled_loops(function, np.asarray(divisor))
        for got, expected in zip(results, exact_results(numbers, divisor), strict=True):
            assert_same(got, expected)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_small_dividends_and_any_divisor(dtype: str) -> None:
    y = np.concatenate([np.array(ends(dtype), dtype), draws(dtype, 300)])
    for numbers in (np.full(y.size, 3, dtype), np.arange(y.size).astype(dtype)):
        first, step = int(numbers[0]), int(numbers[1]) - int(numbers[0])

        def function(y: xarr.Array, first: int = first, step: int = step) -> tuple[xarr.Array, ...]:
            return all_four((first + step * xarr.arange(y.size)).astype(y.dtype), y)

        for got, expected in zip(in_compiled_loops(function, y), exact_results(numbers, y), strict=True):
            assert_same(got, expected)


def division(dtype: str, divisor: int | None) -> Value:
    values = Values()
    x, y = values.argument("x", dtype), values.argument("y", dtype)
    return x.rem(y if divisor is None else divisor)


@pytest.mark.parametrize(
    ("dtype", "divisor", "is_here"),
    [
        ("int64", None, True),
        ("int64", 10, True),
        ("int64", 8, False),
        ("int32", 10, False),
        ("uint8", None, True),
    ],
)
def test_what_llvm_has_a_way_for_is_left_to_it(dtype: str, divisor: int | None, is_here: bool) -> None:
    value = division(dtype, divisor)
    assert divides_in_lanes(value) is is_here
    block = Block(8)
    block.emit([value], {each: f"%{each.attribute}" for each in value.operands if each.op == "argument"})
    assert any("rem" in line for line in block.lines) is not is_here
