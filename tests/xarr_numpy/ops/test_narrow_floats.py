"""Functions of floats of 8 and 16 bits: computed in a wider type and rounded once, whatever runs them.

Every value of each type, and for two operands all pairs of 8 bits and a sample of pairs of 16.
"""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import xarr
from tests.elementwise_ops import has_formula
from tests.support.operations import own_operations
from xarr import lax
from xarr.dtypes import EXTENDED_FLOAT
from xarr.ir import ops

NARROW = sorted(EXTENDED_FLOAT | {np.dtype(np.float16)}, key=str)
#: Compiled loops differ between types of 8 bits only in how they widen, which tests of their own hold.
COMPILED = [dtype for dtype in NARROW if dtype.itemsize == 2 or dtype.name.endswith(("fn", "8m0fnu"))]
CASES = [(dtype, "off") for dtype in NARROW] + [(each, "compiled") for each in COMPILED]
SPECIAL = ["bessel_i0e", "bessel_i1e", "digamma", "erf", "erf_inv", "erfc", "lgamma"]
FORMULAS = sorted({op.lax_name for op in own_operations(ops.Unary) if has_formula(op)} - {*SPECIAL})
ONE_OPERAND = [*FORMULAS, *["ceil", "floor", "round", "sign", "sqrt"], *SPECIAL]
TWO_OPERANDS = ["add", "atan2", "div", "max", "min", "mul", "pow", "rem", "sub"]
#: What an error is small beside where it is not beside the result: the terms that cancel near zeros, and what
#: the product of two small factors loses below float32's least normal number.
BESIDE = {"digamma": 16.0, "lgamma": 16.0, "erfc": 2.0**-105}
#: What float32 results may be off by, in parts of them: 8 ULP.
SLACK = 2.0**-21


def every(dtype: np.dtype) -> np.ndarray:
    return np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)


def pairs(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    if dtype.itemsize == 1:
        x, y = np.meshgrid(every(dtype), every(dtype))
        return x.reshape(-1), y.reshape(-1)
    x, y = np.random.default_rng(0).integers(0, 2**16, (2, 100_000), np.uint16)
    return x.view(dtype), y.view(dtype)


def find_functions(names: list[str], dtype: np.dtype) -> dict:
    """The functions that take the type; those of special functions do not take 8 bits."""
    results = {}
    for name in names:
        function, count = getattr(lax, name), 2 if name in TWO_OPERANDS else 1
        try:
            function(*[xarr.zeros((), dtype=dtype)] * count)
        except xarr.errors.DTypeError:
            assert dtype.itemsize == 1 and name in SPECIAL
        else:
            results[name] = function
    return results


def compute(functions: dict, mode: str, *operands: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    def call(*arrays):
        return [function(*arrays) for function in functions.values()]

    with xarr.config(fusion=mode):
        results = xarr.jit(call)(*map(xarr.asarray, operands))
        yield from zip(functions, map(np.asarray, results), strict=True)


def is_nearest(result: np.ndarray, exact: np.ndarray, least: float) -> np.ndarray:
    """Whether no number of the type is closer to `exact`, but for an error of float32.

    least: what the size of the error is measured against at least.
    """
    # float8_e8m0fnu has no 0 and takes what float32 has no number for as if it were.
    exact = np.where(np.abs(exact) < 2.0**-149, np.copysign(0.0, exact), exact)
    rounded = np.asarray(lax.convert_element_type(xarr.asarray(exact), result.dtype))
    with np.errstate(all="ignore"):
        nearest, own = rounded.astype(np.float64), result.astype(np.float64)
        distance, best = np.abs(own - exact), np.abs(nearest - exact)
        close = distance <= best + SLACK * np.maximum(np.abs(exact), least)
    return close | (own == nearest) | (np.isnan(own) & np.isnan(nearest))


def check(names: list[str], mode: str, *operands: np.ndarray) -> None:
    functions = find_functions(names, operands[0].dtype)
    with np.errstate(all="ignore"):
        widened = [operand.astype(np.float64) for operand in operands]
    wide = dict(compute(functions, "off", *widened))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = list(compute(functions, mode, *operands))
    for name, result in rows:
        good = is_nearest(result, wide[name], BESIDE.get(name, 0.0))
        wrong = [operand[~good][:3] for operand in operands]
        assert good.all(), f"{name} of {wrong}: {result[~good][:3]} instead of {wide[name][~good][:3]}"


@pytest.mark.parametrize(("dtype", "mode"), CASES, ids=str)
def test_functions_round_once(dtype: np.dtype, mode: str) -> None:
    check(ONE_OPERAND, mode, every(dtype))


@pytest.mark.parametrize(("dtype", "mode"), CASES, ids=str)
def test_functions_of_two_operands_round_once(dtype: np.dtype, mode: str) -> None:
    check(TWO_OPERANDS, mode, *pairs(dtype))
