"""Powers of complex numbers with small whole exponents: in compiled loops, with the bits of NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.passes.complex_powers import expand_complex_powers
from xarr.ir import ops

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]

EXPONENTS = [-99, -64, -7, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 31, 64, 99]


def numbers(dtype: str) -> Array:
    """Ordinary numbers, and pairs of zeros, infinities, NaN, huge and tiny ones."""
    part = np.finfo(dtype).dtype
    limits = np.finfo(part)
    special = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        np.inf,
        -np.inf,
        np.nan,
        limits.max,
        -limits.tiny,
        limits.smallest_subnormal,
    ]
    pairs = np.stack([each.ravel() for each in np.meshgrid(special, special)], -1).astype(part)
    drawn = np.random.default_rng(3).normal(size=(1000, 2)).astype(part)
    return np.concatenate([pairs, drawn]).view(dtype).ravel()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_have_numpys_bits_in_compiled_loops(dtype: str, exponent: int) -> None:
    z = numbers(dtype)
    with np.errstate(all="ignore"):
        wanted = np.power(z, np.array(exponent, dtype))
    with xarr.config(fusion="compiled"):
        assert_same(xarr.jit(lambda z: xarr.power(z, exponent))(xarr.asarray(z)), wanted)


@pytest.mark.parametrize("fusion", ["off", "compiled"])
def test_a_loop_of_powers_runs_in_machine_code_with_the_bits_of_the_plain_engine(fusion: str) -> None:
    def newton(z: xarr.Array) -> xarr.Array:
        return lax.fori_loop(0, 7, lambda _, z: z - (lax.mul(z**3, z**-4)), z)

    z = xarr.asarray(np.random.default_rng(4).normal(size=(40, 2)).view(np.complex128).ravel())
    with xarr.config(fusion="compiled"):
        text = xarr.jit(newton).lower(z).stage("program").text
    assert "native loop" in text
    with xarr.config(fusion=fusion):
        result = np.asarray(xarr.jit(newton)(z))
    by_numpy = np.asarray(z)
    for _ in range(7):
        by_numpy = by_numpy - by_numpy**3 * by_numpy**-4
    np.testing.assert_allclose(result, by_numpy, rtol=1e-9)


def test_other_powers_stay() -> None:
    z, x = numbers("complex128"), np.arange(3.0)
    for power in (
        lambda: xarr.power(xarr.asarray(z), 100),
        lambda: xarr.power(xarr.asarray(z), 1.5),
        lambda: xarr.power(xarr.asarray(z), 2 + 1j),
        lambda: xarr.power(xarr.asarray(z), xarr.asarray(z)),
        lambda: xarr.power(xarr.asarray(x), 3.0),
    ):
        graph = xarr.lower(power).stage("decomposed")
        assert expand_complex_powers(graph) is graph
    graph = expand_complex_powers(xarr.lower(lambda z: xarr.power(z, 5), z).stage("decomposed"))
    assert ops.Power not in graph.op_classes
