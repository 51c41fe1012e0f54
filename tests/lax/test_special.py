"""Special functions against jax.lax and against exact values."""

from __future__ import annotations

import math
from typing import Any

import jax
import ml_dtypes
import mpmath
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.lax_values import cast, dtype_of, floats
from tests.ulp_bounds import AGAINST_ONE, bound_of, differences
from xarr import lax
from xarr.dtypes import info
from xarr.errors import DTypeError
from xarr.ir import ops

jax.config.update("jax_enable_x64", True)

NAMES = ("bessel_i0e", "bessel_i1e", "digamma", "erf", "erf_inv", "erfc", "lgamma")
DTYPES = ("float16", "bfloat16", "float32", "float64")
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -2.0,
    -2.5,
    -0.5,
    math.inf,
    -math.inf,
    math.nan,
    1e-20,
    -1e-20,
    171.5,
    1e30,
]


def values(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Every value of a 16-bit type; but no subnormal numbers, which XLA reads as 0."""
    random = np.random.default_rng(0)
    spread = [random.normal(size=2000) * 2, random.uniform(-1, 1, 2000), random.uniform(-25, 25, 1000)]
    near_one = 1 - 10.0 ** random.uniform(-12, 0, 500)
    result = np.concatenate([cast(x, dtype) for x in (*spread, near_one, -near_one, SPECIAL)])
    result = np.concatenate([result, floats(dtype)])
    with np.errstate(invalid="ignore"):
        return result[(result == 0) | ~(np.abs(result) < info(dtype).tiny)]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_xla(name: str, dtype: str) -> None:
    x = values(dtype_of(dtype))
    got = np.asarray(getattr(lax, name)(x))
    wanted = np.asarray(getattr(jax.lax, name)(x))
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    with np.errstate(all="ignore"):
        # XLA writes 0 for subnormal results.
        kept = (x == 0) | ~(np.abs(got) < 2 * info(got.dtype).tiny)
        for stated in differences(name, dtype, dtype):
            special = stated.where(x)
            assert not np.array_equal(got[special], wanted[special])
            kept &= ~special
        if name in AGAINST_ONE:
            small = np.abs(wanted) < 1
            apart = np.abs(got[small].astype(np.longdouble) - wanted[small].astype(np.longdouble))
            assert np.all(apart <= bound_of(name, dtype) * float(info(got.dtype).eps))
            kept &= ~small
        assert_same(got[kept], wanted[kept], ulp=bound_of(name, dtype))
        zeros = kept & (wanted == 0)
        assert_same(np.signbit(got[zeros]), np.signbit(wanted[zeros]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "exact"), [("erf", math.erf), ("erfc", math.erfc)])
def test_error_functions_are_relatively_exact(name: str, exact: Any, dtype: str) -> None:
    x = np.linspace(-4, 4, 2001).astype(dtype)
    wanted = np.array([exact(float(value)) for value in x])
    # Cephes' erfc loses bits as exp(-x²) does, up to x² ULP.
    limit = 4 if name == "erf" else 24
    error = np.abs(np.asarray(getattr(lax, name)(x)) - wanted) / np.maximum(np.abs(wanted), 1e-300)
    assert error.max() <= limit * np.finfo(dtype).eps


def test_erf_never_leaves_its_range() -> None:
    x = np.linspace(3, 5, 20001, dtype=np.float32)
    assert np.asarray(lax.erf(x)).max() <= 1
    assert np.asarray(lax.erf(-x)).min() >= -1


def test_erf_inv_inverts() -> None:
    x = np.linspace(-0.999, 0.999, 1001)
    np.testing.assert_allclose(np.asarray(lax.erf(lax.erf_inv(x))), x, rtol=0, atol=2e-15)
    assert_same(
        lax.erf_inv(np.array([-1.0, 1.0, 1.5, 0.0, -0.0])), np.array([-np.inf, np.inf, np.nan, 0.0, -0.0])
    )


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_erf_inv_is_exact_near_one(backend: str) -> None:
    x = 1 - 10.0 ** np.random.default_rng(2).uniform(-15.9, 0, 100)
    x = np.concatenate([x, -x, [1 - 2.0**-53, 1e-300, 0.5]])
    with mpmath.workdps(40), xarr.use_backend(backend):
        results = np.asarray(lax.erf_inv(x))
        exact = [mpmath.erfinv(mpmath.mpf(float(value))) for value in x]
        error = [abs(float(mpmath.mpf(float(a)) / b - 1)) for a, b in zip(results, exact, strict=True)]
    assert max(error) <= 4 * np.finfo(float).eps


def test_poles() -> None:
    poles = np.array([0.0, -1.0, -2.0, -170.0])
    assert_same(lax.lgamma(poles), np.full(4, np.inf))
    assert_same(lax.digamma(poles), np.full(4, np.nan))


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_lgamma_of_the_largest(backend: str) -> None:
    with xarr.use_backend(backend):
        assert_same(lax.lgamma(np.array([-np.inf, np.inf, 1e308, 3e305])), np.full(4, np.inf))
        assert np.isfinite(float(lax.lgamma(2.5e305)))


@pytest.mark.parametrize("name", ["erf", "erfc", "lgamma"])
def test_the_reference_backend_has_its_own_definition(name: str) -> None:
    x = np.linspace(-3.3, 3.3, 41)
    with xarr.use_backend("reference"):
        slow = np.asarray(getattr(lax, name)(x))
    np.testing.assert_allclose(np.asarray(getattr(lax, name)(x)), slow, rtol=2e-15, atol=4e-15)


@pytest.mark.parametrize("name", NAMES)
def test_refuses_other_types(name: str) -> None:
    for value in (np.int32(1), np.complex64(1), np.asarray(1, ml_dtypes.float8_e5m2)):
        with pytest.raises(DTypeError, match=rf"{name} \[C1\]"):
            getattr(lax, name)(value)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)], ids=str)
def test_shapes(shape: tuple[int, ...]) -> None:
    assert np.asarray(lax.erf(np.zeros(shape))).shape == shape


def test_numpy_runs_the_formulas() -> None:
    lowered = xarr.lower(lax.erf_inv, "f32[3]")
    assert any(isinstance(node.op, ops.ErfInv) for node in lowered.stage("simplified"))  # type: ignore[union-attr]
    assert not any(isinstance(node.op, ops.ErfInv) for node in lowered.stage("decomposed"))  # type: ignore[union-attr]


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize("function", [lax.erf, lax.erfc])
def test_numpy_keeps_whole_what_compiled_loops_have(function: Any) -> None:
    lowered = xarr.lower(function, "f32[3]")
    x = np.array([-1.5, 0.25, 3.0], np.float32)
    with xarr.config(fusion="off"):
        program = lowered.stage("program")
        assert "np.multiply" in program.text  # type: ignore[union-attr]
        wanted = np.asarray(function(x))
    assert_same(program(x)[0], wanted)  # type: ignore[operator]
