"""Complex quotients, exp, log and their kin in compiled loops, beside NumPy's: random numbers and every special one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.lax_values import COMPLEXES, dtype_of, parts
from tests.support.complex_grid import LIMIT, format_rows, grid, pairs, wrong
from xarr import lax
from xarr.base.configuration import current as config
from xarr.ir.ops import Fusion, NativeWhile

pytest.importorskip("llvmlite")

HostArray = np.ndarray[Any, Any]

#: Functions whose formulas differ from NumPy's.
FUNCTIONS = (
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "log",
    "log1p",
    "logistic",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
)


def compile_program(function: Callable[..., Any], *operands: HostArray) -> HostArray:
    """The result of one group of compiled loops."""
    arrays = [xarr.asarray(each) for each in operands]
    with config(fusion="compiled"):
        nodes = xarr.lower(function, *arrays).stage("fused").nodes
        assert all(isinstance(node.op, Fusion) for node in nodes)
        return np.asarray(xarr.jit(function)(*arrays))


def by_numpy(function: Callable[..., Any], *operands: HostArray) -> HostArray:
    with config(fusion="off"):
        return np.asarray(function(*map(xarr.asarray, operands)))


def ordinary(dtype: str, count: int = 3000) -> HostArray:
    """Numbers of moderate size, spread evenly and by magnitude, and some next to the unit circle."""
    rng = np.random.default_rng(5)
    even = rng.uniform(-30, 30, (2, count))
    wide = rng.choice([-1.0, 1.0], (2, count)) * 2.0 ** rng.uniform(-30, 6, (2, count))
    angles = rng.uniform(-np.pi, np.pi, count)
    columns = np.concatenate([even, wide, [np.cos(angles), np.sin(angles)]], axis=1)
    part = dtype_of(dtype).type(0).real.dtype
    return parts(*columns.astype(part), dtype_of(dtype))


def one_sign(x: HostArray) -> HostArray:
    """The parts that are zero, with their signs; 0 for the others."""
    both = np.stack([x.real, x.imag])
    return np.where(both == 0, np.where(np.signbit(both), -1, 1), 0)


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_quotients_have_the_bits_of_single_operations(dtype: str) -> None:
    assert_same(compile_program(lax.div, *pairs(dtype_of(dtype))), by_numpy(lax.div, *pairs(dtype_of(dtype))))
    x = ordinary(dtype)
    y = np.random.default_rng(1).permutation(x)
    assert_same(compile_program(lax.div, x, y), by_numpy(lax.div, x, y))


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_signs_have_the_bits_of_single_operations(dtype: str) -> None:
    for x in (grid(dtype_of(dtype)), ordinary(dtype)):
        assert_same(compile_program(lax.sign, x), by_numpy(lax.sign, x))


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant == 52, reason="needs a longdouble that is longer than float64"
)
@pytest.mark.parametrize("dtype", COMPLEXES)
def test_extreme_quotients_are_those_of_a_longer_type(dtype: str) -> None:
    limits = np.finfo(dtype)
    line = [limits.max, limits.max / 3, 1.5, limits.tiny * 1.25, float(limits.smallest_subnormal) * 5]
    real, imaginary = (part.ravel() for part in np.meshgrid(line, line))
    points = parts(real.astype(limits.dtype), imaginary.astype(limits.dtype), dtype_of(dtype))
    x, y = (part.ravel() for part in np.meshgrid(points, points))
    long_x, long_y = x.astype(np.clongdouble), y.astype(np.clongdouble)
    with np.errstate(all="ignore"):
        exact = (long_x / long_y).astype(dtype)
    for quotient in (compile_program(lax.div, x, y), by_numpy(lax.div, x, y)):
        where = wrong(quotient, exact, 4)
        assert not where.any(), format_rows("div", where, x, y, quotient, exact)


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_special_numbers(name: str, dtype: str) -> None:
    """Infinities, NaN and zeros with their signs are NumPy's; all else is but for units in the last place."""
    function, x = getattr(lax, name), grid(dtype_of(dtype))
    result, expected = compile_program(function, x), by_numpy(function, x)
    where = wrong(result, expected, LIMIT.get(name, 8))
    where |= (one_sign(result) * one_sign(expected) < 0).any(axis=0)
    assert not where.any(), format_rows(name, where, x, result, expected)


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_ordinary_numbers(name: str, dtype: str) -> None:
    function, x = getattr(lax, name), ordinary(dtype)
    result, expected = compile_program(function, x), by_numpy(function, x)
    where = wrong(result, expected, LIMIT.get(name, 8))
    assert not where.any(), format_rows(name, where, x, result, expected)


#: ULP of either part, where 2.9 were found.
INVERSES = dict.fromkeys(("acos", "acosh", "asin", "asinh", "atan", "atanh"), 4)


def everywhere(dtype: str) -> HostArray:
    """Numbers of all magnitudes, and others about each of the branch points 1, -1, i and -i."""
    limits, rng = np.finfo(dtype), np.random.default_rng(3)
    wide = 2.0 ** rng.uniform(limits.minexp + limits.nmant, limits.maxexp - 2, (2, 120))
    moderate = 2.0 ** rng.uniform(-limits.nmant - 2, limits.nmant + 2, (2, 120))
    distances = 2.0 ** rng.uniform(-limits.nmant - 20, 0, (2, 120)) * rng.choice([-1.0, 1.0], (2, 120))
    beside = np.array([1.0 + distances[0], distances[1]])
    columns = np.concatenate([wide, moderate, beside, beside[::-1], [[1, 0], [0, 1]]], axis=1)
    columns = columns * rng.choice([-1.0, 1.0], columns.shape)
    return parts(*columns.astype(limits.dtype), dtype_of(dtype))


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", INVERSES)
def test_both_parts_of_inverse_functions_are_exact_but_for_the_last_places(name: str, dtype: str) -> None:
    """Even where one of them is much smaller than the other; signs, and sides of branch cuts, are tested above."""
    z, limits = everywhere(dtype), np.finfo(dtype)
    result = compile_program(getattr(lax, name), z)
    with mpmath.workprec(5 * limits.maxexp // 2):
        exact = [getattr(mpmath, name)(mpmath.mpc(float(x.real), float(x.imag))) for x in z]
        for part in ("real", "imag"):
            wanted = [abs(getattr(x, part)) for x in exact]
            spacings = np.spacing(np.array([float(x) for x in wanted], limits.dtype))
            got = np.abs(getattr(result, part))
            errors = [abs(float(x) - y) / float(ulp) for x, y, ulp in zip(got, wanted, spacings, strict=True)]
            where = np.array(errors) > INVERSES[name]
            assert not where.any(), format_rows(name, where, z, result, np.array(errors, float))


def numpy_power(x: HostArray, y: HostArray) -> HostArray:
    """The powers of complex128, rounded: those of complex64 overflow in their exponents, and err by some 20 ULP."""
    with np.errstate(all="ignore"):
        return np.power(x.astype(np.complex128), y.astype(np.complex128)).astype(x.dtype)


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_powers_with_whole_exponents_are_the_products_of_numpy(dtype: str) -> None:
    z = np.concatenate([grid(dtype_of(dtype)), ordinary(dtype)])
    exponents = np.random.default_rng(4).integers(-99, 100, z.size).astype(dtype)
    for w in (exponents, (exponents.real % 9 - 4).astype(dtype)):
        with np.errstate(all="ignore"):
            assert_same(compile_program(lax.pow, z, w), np.power(z, w))


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_powers_of_special_numbers(dtype: str) -> None:
    """NaN, and powers of zero, are NumPy's; what it makes of large exponents is not compared."""
    z, w = pairs(dtype_of(dtype))
    halves = np.random.default_rng(9).choice([-1.5, -0.5, 0.5, 1.5, 2.5, 100.0], z.size).astype(dtype)
    for exponent in (w, halves, w.real.astype(dtype)):
        result, expected = compile_program(lax.pow, z, exponent), numpy_power(z, exponent)
        # Products of complex64 overflow by themselves.
        is_product = (
            (exponent.imag == 0) & (np.floor(exponent.real) == exponent.real) & (np.abs(exponent.real) < 100)
        )
        where = (np.isnan(result) != np.isnan(expected)) & ~is_product
        where |= ((result == 0) != (expected == 0)) & (z == 0)
        assert not where.any(), format_rows("pow", where, z, exponent, result, expected)
        # NumPy's logarithms, of some hundreds, are rounded.
        where = wrong(result, expected, 2 if dtype == "complex64" else 4096)
        where &= (np.abs(exponent) < 4) & np.isfinite(expected) & ~is_product
        assert not where.any(), format_rows("pow", where, z, exponent, result, expected)


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_powers_on_the_axes_keep_the_signs_of_zeros(dtype: str) -> None:
    units = [parts(np.array([x]), np.array([y]), np.dtype(dtype)) for x in (0.0, -0.0) for y in (1.0, -1.0)]
    exponents = [
        parts(np.array([x]), np.array([y]), np.dtype(dtype)) for x in (0.0, -0.0) for y in (2.0, -2.0)
    ]
    z, w = np.repeat(np.concatenate(units), 4), np.tile(np.concatenate(exponents), 4)
    assert_same(one_sign(compile_program(lax.pow, z, w)), one_sign(np.power(z, w)))


#: ULP of the larger part for exponents of magnitudes up to 1, where 0.5 and 1.8 were measured.
POWERS = {"complex64": 0.51, "complex128": 2.5}


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_powers_are_exact_but_for_the_last_places(dtype: str) -> None:
    rng = np.random.default_rng(6)
    z = everywhere(dtype)
    w = (rng.uniform(-1, 1, z.size) + 1j * rng.uniform(-1, 1, z.size)).astype(dtype)
    result = compile_program(lax.pow, z, w)
    with mpmath.workprec(5 * np.finfo(dtype).maxexp // 2):
        exact = [mpmath.mpc(complex(x)) ** mpmath.mpc(complex(y)) for x, y in zip(z, w, strict=True)]
        sizes = np.array([max(abs(float(x.real)), abs(float(x.imag))) for x in exact])
        errors = [
            max(abs(float(got.real) - x.real), abs(float(got.imag) - x.imag))
            for got, x in zip(result, exact, strict=True)
        ]
        ulps = np.array(errors, float) / np.spacing(sizes.astype(result.real.dtype))
    where = ulps > POWERS[dtype]
    assert not where.any(), format_rows("pow", where, z, w, result, ulps)


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_logarithms_next_to_the_unit_circle_keep_their_digits(dtype: str) -> None:
    angles = np.random.default_rng(2).uniform(-np.pi, np.pi, 3000)
    z = np.exp(1j * angles).astype(dtype)
    result, expected = (
        compile_program(lambda z: xarr.real(lax.log(z)), z),
        by_numpy(lambda z: xarr.real(lax.log(z)), z),
    )
    assert_same(result, expected, ulp=3)


@pytest.mark.parametrize("shape", [(), (1,), (7, 19), (0, 3)], ids=str)
def test_any_shape(shape: tuple[int, ...]) -> None:
    z = np.resize(ordinary("complex128"), shape)

    def function(z: Any) -> Any:
        return lax.exp(lax.sqrt(z) / (z * z + 3))

    with config(fusion="compiled"):
        result = np.asarray(xarr.jit(function)(xarr.asarray(z)))
    assert_same(result, by_numpy(function, z), ulp=16, normwise=True)


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_a_native_loop_of_functions(dtype: str) -> None:
    """Newton's method for z**3 = 1, which ends at one of three roots."""
    z = ordinary(dtype)[:3000:7]

    def newton(z: Any) -> Any:
        return lax.fori_loop(0, 100, lambda i, z: z - (z * z * z - 1) / (3 * z * z), z)

    def spiral(z: Any) -> Any:
        return lax.fori_loop(0, 9, lambda i, z: lax.exp(lax.tanh(z)) - lax.log(lax.sqrt(z) + 2), z)

    for function, ulp in ((newton, 4), (spiral, 256)):
        with config(fusion="compiled"):
            nodes = xarr.lower(function, xarr.asarray(z)).stage("fused").nodes
            assert any(isinstance(node.op, NativeWhile) for node in nodes)
            result = np.asarray(xarr.jit(function)(xarr.asarray(z)))
        assert_same(result, by_numpy(function, z), ulp=ulp, normwise=True)
