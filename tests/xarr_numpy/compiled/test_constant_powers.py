"""Powers with known small exponents in compiled loops: beside exact powers, and at the ends of the range beside C99."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.base.configuration import current as config

pytest.importorskip("llvmlite")

HostArray = np.ndarray[Any, Any]

WHOLE = (1, -1, 2, -2, 3, -3, 4, 5, -6, 7, 12, -13, 16, -16)
HALVES = (0.5, -0.5, 1.5, -1.5, 2.5, -3.5, 15.5)
ENDS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0)


def compiled_power(x: HostArray, exponent: float) -> HostArray:
    with config(fusion="compiled"):
        return np.asarray(xarr.jit(lambda x: xarr.power(x, x.dtype.type(exponent)))(xarr.asarray(x)))


def draws(dtype: str) -> HostArray:
    """Numbers of all magnitudes and both signs, some of them subnormal."""
    info, generator = np.finfo(dtype), np.random.default_rng(0)
    reach = generator.uniform(np.log(float(info.smallest_subnormal)), np.log(float(info.max)), 300)
    near_one = generator.normal(size=300)
    return np.concatenate([np.exp(reach), -np.exp(reach[:100]), near_one]).astype(dtype)


def exact_power(x: float, exponent: float) -> Fraction:
    """The power, or a fraction that is as good for a thousand bits."""
    whole, half = divmod(exponent, 1)
    power = Fraction(x) ** int(whole)
    if not half:
        return power
    number = Fraction(x)
    shift = 2 * (1200 + max(0, -number.numerator.bit_length() + number.denominator.bit_length()))
    root = isqrt((number.numerator << shift) // number.denominator)
    return power * Fraction(root, 1 << shift // 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [*WHOLE, *HALVES])
def test_powers_are_rounded_hardly_more_than_once(dtype: str, exponent: float) -> None:
    info, x = np.finfo(dtype), draws(dtype)
    x = x[(x > 0) | (exponent == int(exponent))]
    for number, power in zip(x, compiled_power(x, exponent), strict=True):
        if number == 0:
            continue
        wanted = exact_power(float(number), exponent)
        if abs(wanted) >= Fraction(float(info.max)):
            assert abs(power) >= info.max
        else:
            unit = Fraction(float(np.spacing(np.abs(power)))) or Fraction(float(info.smallest_subnormal))
            assert abs(Fraction(float(power)) - wanted) <= Fraction(4, 5) * unit, (number, power)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [*WHOLE, *HALVES])
def test_powers_of_ends_are_those_of_c99(dtype: str, exponent: float) -> None:
    x = np.array([*ENDS, np.finfo(dtype).max, -np.finfo(dtype).max, 4.0, -4.0], dtype)
    with np.errstate(all="ignore"):
        wanted = np.array([np.float64(pow_c99(float(each), exponent)) for each in x]).astype(dtype)
    assert_same(compiled_power(x, exponent), wanted)


def pow_c99(x: float, exponent: float) -> float:
    """Python's power, which is C's but for the errors that it raises."""
    if x == 0 and exponent < 0:
        return float(np.copysign(np.inf, x)) if exponent % 2 == 1 else np.inf
    if x < 0 and exponent % 1 and x > -np.inf:
        return np.nan
    try:
        return float(x**exponent)
    except OverflowError:
        return -np.inf if x < 0 and exponent % 2 == 1 else np.inf


@pytest.mark.parametrize("exponent", [0.25, 17, -17, 16.5, np.inf, np.nan, 0])
def test_other_exponents_have_the_general_formula(exponent: float) -> None:
    x = np.array([*ENDS, 0.75, 3.0, -2.0])

    def of_both(x: xarr.Array, y: xarr.Array) -> xarr.Array:
        return x**y

    with config(fusion="compiled"):
        wanted = np.asarray(xarr.jit(of_both)(xarr.asarray(x), xarr.asarray(np.full_like(x, exponent))))
    assert_same(compiled_power(x, exponent), wanted)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "int64", "uint64"])
@pytest.mark.parametrize("exponent", [1, 2, 3, 5, 8, 13, 16])
def test_integers_wrap(dtype: str, exponent: int) -> None:
    info = np.iinfo(dtype)
    x = np.array([0, 1, 2, 3, 7, info.max, info.min, info.max // 3], dtype)
    assert_same(compiled_power(x, exponent), np.power(x, np.asarray(exponent, dtype)))


def test_known_exponents_call_no_logarithm() -> None:
    """The general formula is left to a function of its own, for what seldom occurs."""
    with config(fusion="compiled"):
        text = str(xarr.lower(lambda x: x**3, xarr.zeros(64)).stage("loops"))
        general = str(xarr.lower(lambda x: x**3.3, xarr.zeros(64)).stage("loops"))
    assert "rarely(" in text and "rarely(" not in general
