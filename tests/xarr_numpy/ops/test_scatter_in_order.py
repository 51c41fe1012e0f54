"""Scatter by any computation: updates of one target are combined one after the other, to the bit."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax

FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
INTEGERS = [np.int8, np.uint8, np.int32, np.int64, np.uint64]
DTYPES = [np.dtype(each) for each in (*FLOATS, *INTEGERS, np.complex64)]
NUMBERS = lax.ScatterDimensionNumbers((), (0,), (0,))

Combiner = Callable[[Any, Any], Any]


def combiners(dtype: np.dtype) -> Iterator[tuple[str, Combiner]]:
    def number(value: int) -> Any:
        return np.asarray(value, dtype)[()]

    yield "3a + b", lambda a, b: lax.add(lax.mul(a, number(3)), b)
    yield "b - a", lambda a, b: lax.sub(b, a)
    if dtype.kind == "c":
        return
    yield "max(a - 1, b)", lambda a, b: lax.max(lax.sub(a, number(1)), b)
    yield "min(-a, b)", lambda a, b: lax.min(lax.neg(a), b)
    yield "either", lambda a, b: lax.select(lax.lt(a, b) | lax.eq(a, number(0)), lax.add(a, b), lax.max(a, b))
    yield "not", lambda a, b: lax.select(lax.bitwise_not(lax.ge(a, b)), a, lax.sub(b, a))
    yield "(a + 5) / b", lambda a, b: lax.div(lax.add(a, number(5)), b)
    yield "(a + 5) rem b", lambda a, b: lax.rem(lax.add(a, number(5)), b)
    yield "clamp", lambda a, b: lax.clamp(number(0), lax.sub(a, b), number(7))
    yield (
        "converted",
        lambda a, b: lax.convert_element_type(lax.convert_element_type(a, "float64") / 2, dtype) + b,
    )
    if dtype.kind in "iu":
        yield "bits", lambda a, b: lax.bitwise_xor(a << number(1), b & lax.bitwise_not(a))
        yield "|a| | b", lambda a, b: lax.bitwise_or(lax.max(a, lax.neg(a)), b)
    else:
        yield "|a| - b", lambda a, b: lax.sub(lax.abs(a), b)
        yield "sign", lambda a, b: lax.add(lax.sign(a), b)


CASES = [(dtype, name) for dtype in DTYPES for name, _ in combiners(dtype)]


def numbers(dtype: np.dtype, count: int) -> np.ndarray:
    """All bit patterns of integers, with many small ones; floats with zeros, infinities and NaN."""
    random = np.random.default_rng(count)
    if dtype.kind in "iu":
        values = np.frombuffer(random.bytes(count * dtype.itemsize), dtype).copy()
        values[::3] %= 5
        return values
    values = random.normal(size=count) * 4
    if dtype.kind == "c":
        return (values + 1j * values[::-1]).astype(dtype)
    values[::7], values[1::11], values[50::61], values[93::133] = 0, -0.0, np.inf, np.nan
    with np.errstate(all="ignore"):
        return values.astype(dtype)


@pytest.mark.parametrize(("dtype", "name"), CASES, ids=str)
def test_updates_are_combined_as_one_by_one(dtype: np.dtype, name: str) -> None:
    combine = dict(combiners(dtype))[name]
    start, updates = numbers(dtype, 3), numbers(dtype, 200)
    indices = np.random.default_rng(0).integers(0, 3, 200)
    wanted, one = start.copy(), xarr.jit(combine)
    with xarr.config(fusion="off"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for index, update in zip(indices, updates, strict=True):
            wanted[index] = np.asarray(one(xarr.asarray(wanted[index]), xarr.asarray(update)))
        assert_same(lax.scatter_with(start, indices[:, None], updates, combine, NUMBERS), wanted)


# --- many updates of one target -----------------------------------------------------------------------


def forgets(a: Any, b: Any) -> Any:
    return lax.add(lax.mul(a, np.float32(1 / 256)), b)


def remembers(a: Any, b: Any) -> Any:
    return lax.select(lax.lt(b, np.float32(0)), lax.mul(a, b), lax.add(a, b))


@pytest.mark.parametrize("width", [(), (3,)])
@pytest.mark.parametrize("combine", [forgets, remembers])
def test_many_updates_of_one_target(combine: Combiner, width: tuple[int, ...]) -> None:
    """One target has 200 updates, one 3, one 50, and they are mixed."""
    indices = np.random.default_rng(1).permutation([0] * 200 + [1] * 3 + [4] * 50)
    updates = numbers(np.dtype(np.float32), indices.size * 3)[: indices.size * (3 if width else 1)]
    updates = np.nan_to_num(updates, posinf=3).reshape(indices.size, *width)
    start = np.ones((5, *width), np.float32)
    names = lax.ScatterDimensionNumbers((1,) if width else (), (0,), (0,))
    wanted, one = start.copy(), xarr.jit(combine)
    with xarr.config(fusion="off"):
        for index, update in zip(indices, updates, strict=True):
            wanted[index] = np.asarray(one(xarr.asarray(wanted[index]), xarr.asarray(update)))
        assert_same(lax.scatter_with(start, indices[:, None], updates, combine, names), wanted)


def test_many_updates_of_one_target_by_pairs() -> None:
    """The number with the greatest key so far, a little less each time."""

    def combine(a: Any, b: Any) -> Any:
        faded = lax.mul(a[0], np.float32(1 / 256))
        newer = lax.lt(faded, b[0])
        return lax.select(newer, b[0], faded), lax.select(newer, b[1], a[1])

    random = np.random.default_rng(2)
    keys, numbers_of = random.random(300, np.float32) + 1, np.arange(300)
    indices = np.zeros((300, 1), int)
    with xarr.config(fusion="off"):
        arrays = np.zeros(1, np.float32), np.full(1, -1)
        results = lax.scatter_with(arrays, indices, (keys, numbers_of), combine, NUMBERS)
        wanted: tuple[Any, Any] = arrays[0][0], arrays[1][0]
        for pair in zip(keys, numbers_of, strict=True):
            faded = wanted[0] * np.float32(1 / 256)
            wanted = pair if faded < pair[0] else (faded, wanted[1])
    assert (np.asarray(results[0])[0], np.asarray(results[1])[0]) == wanted
