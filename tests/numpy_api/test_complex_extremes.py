"""Complex functions of huge, tiny, subnormal and special parts: NumPy backend, reference and XLA."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import xarr
from tests import ulp_bounds
from tests.lax_oracle import Call, Record, check_results
from tests.lax_values import COMPLEX_UNARY, COMPLEXES, dtype_of, parts
from tests.support import complex_grid
from tests.support.complex_grid import LIMIT, format_rows, grid, is_infinite, pairs, wrong
from tests.ulp_bounds import EXTREMES, differences
from xarr import lax
from xarr.runtime.materialisation import to_host

HostArray = np.ndarray[Any, Any]


def run_on(backend: str, name: str, *operands: HostArray) -> HostArray:
    with xarr.use_backend(backend):
        return np.asarray(to_host(getattr(lax, name)(*map(xarr.asarray, operands))))


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", COMPLEX_UNARY)
def test_backends_agree(name: str, dtype: str) -> None:
    x = grid(dtype_of(dtype))
    got, wanted = run_on("numpy", name, x), run_on("reference", name, x)
    where = wrong(got, wanted, LIMIT.get(name, 16))
    assert not where.any(), format_rows(name, where, x, got, wanted)


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", ["add", "div", "mul", "sub"])
def test_backends_agree_about_two_numbers(name: str, dtype: str) -> None:
    x, y = pairs(dtype_of(dtype))
    got, wanted = run_on("numpy", name, x, y), run_on("reference", name, x, y)
    where = wrong(got, wanted, 16) & ~(is_infinite(got) & is_infinite(wanted))
    assert not where.any(), format_rows(name, where, x, y, got, wanted)


@cache
def record(name: str) -> Record:
    return Record(name, COMPLEXES, lambda dtype: [(grid(dtype),)])


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", COMPLEX_UNARY)
def test_xla_agrees_but_where_it_is_said_not_to(name: str, dtype: str) -> None:
    def check(call: Call, result: Any, wanted: HostArray) -> None:
        (x,), got = call, to_host(result)
        differing = wrong(got, wanted, LIMIT.get(name, 16))
        # XLA takes subnormal numbers for 0, among them parts on the way to the result.
        left_aside = near_subnormal(x) | near_subnormal(got)
        for one in differences(name, dtype, got.dtype.name):
            left_aside |= one.where(x)
        for one in EXTREMES:
            if name in one.functions:
                stated = one.where(x)
                assert np.any(differing[stated]), f"{name}: no difference where {one.condition} any more"
                left_aside |= stated
        where = differing & ~left_aside
        assert not where.any(), format_rows(name, where, x, got, wanted)

    check_results(record(name), dtype, check, near_subnormal, complex_grid, ulp_bounds)


def near_subnormal(x: HostArray) -> HostArray:
    least = 2.0**8 * float(np.finfo(x.dtype).tiny)
    both = (x.real, x.imag) if np.iscomplexobj(x) else (x,)
    return np.asarray(np.any([(part != 0) & (np.abs(part) < least) for part in both], axis=0))


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_signs_and_quotients_of_the_largest_numbers(dtype: str) -> None:
    top = float(np.finfo(dtype).max)
    x = parts(np.array([top, -top, top / 2]), np.array([top, top, -top]), dtype_of(dtype))
    wanted = np.array([1 + 1j, -1 + 1j, 0.5 - 1j])
    for backend in ("numpy", "reference"):
        assert np.allclose(run_on(backend, "sign", x), wanted / np.abs(wanted))
        assert np.allclose(run_on(backend, "div", x, x), 1)
        assert np.allclose(run_on(backend, "div", x, x * np.asarray(0.5, x.real.dtype)), 2)
        assert np.allclose(run_on(backend, "square", x)[:2].real, 0)
