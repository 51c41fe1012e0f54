"""Fourier transforms against NumPy: the same bits, but where NumPy scales by a factor in float32, or we twice."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from xarr import fft
from xarr.errors import AxisError, DTypeError, InputError, ShapeError, ValueRangeError

jax.config.update("jax_enable_x64", True)

NORMS = (None, "backward", "ortho", "forward")
COMPLEX_ONE, REAL_ONE = ("fft", "ifft", "irfft", "hfft"), ("rfft", "ihfft")
COMPLEX_MANY, REAL_MANY = ("fft2", "ifft2", "fftn", "ifftn", "irfft2", "irfftn"), ("rfft2", "rfftn")
ALL = (*COMPLEX_ONE, *REAL_ONE, *COMPLEX_MANY, *REAL_MANY)
DTYPES = ("bool", "float16", "float32", "float64", "complex64", "complex128")
#: What divides by the number of elements first, and then takes that back.
TWICE = ("ifft", "irfft", "hfft", "ifft2", "ifftn", "irfft2", "irfftn")


def values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    draw = np.random.default_rng([seed, *shape])
    if np.dtype(dtype).kind in "biu":
        return draw.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    values = draw.normal(size=shape)
    return (values + 1j * draw.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def agree(name: str, x: Any, *arguments: Any, norm: str | None = None, **named: Any) -> None:
    """Check that xarr gives what NumPy gives."""
    wanted = getattr(np.fft, name)(x, *arguments, norm=norm, **named)
    result = getattr(fft, name)(x, *arguments, norm=norm, **named)
    plain = ("forward",) if name in ("hfft", "ihfft") else (None, "backward")
    exact = name not in TWICE or norm in plain
    # Of narrower numbers NumPy computes some in float32 and some in float64.
    is_double = np.result_type(x, np.float32) in (np.float64, np.complex128)
    if exact and (is_double or (norm in plain and name not in TWICE)):
        assert_same(result, wanted)
    else:
        got = np.asarray(result)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        epsilon = np.finfo(x.dtype if x.dtype == np.float16 else wanted.dtype).eps * max(
            1, np.abs(wanted).max(initial=0)
        )
        np.testing.assert_allclose(got, wanted, rtol=8 * epsilon, atol=8 * epsilon)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*COMPLEX_ONE, *REAL_ONE])
def test_one_dimension(name: str, dtype: str) -> None:
    if name in REAL_ONE and dtype.startswith("complex"):
        with pytest.raises(DTypeError, match=rf"fft\.{name}: wanted real numbers, got {dtype}"):
            getattr(fft, name)(values((4,), dtype))
        return
    for shape in ((5,), (3, 1, 4)):
        for axis in (-1, 0):
            for n in (None, 3):
                if shape[axis] > 1 or n:
                    for norm in NORMS:
                        agree(name, values(shape, dtype), n, axis, norm=norm)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int8"])
@pytest.mark.parametrize("name", [*COMPLEX_MANY, *REAL_MANY])
def test_several_dimensions(name: str, dtype: str) -> None:
    if name in REAL_MANY and dtype.startswith("complex"):
        with pytest.raises(DTypeError, match="wanted real numbers"):
            getattr(fft, name)(values((4, 4), dtype))
        return
    x = values((2, 3, 4, 3), dtype)
    for norm in NORMS:
        agree(name, x, norm=norm)
        agree(name, x, (5, 2), (0, 2), norm=norm)
        agree(name, x, (-1, 6), (3, 1), norm=norm)
        agree(name, x, axes=(1, 0), norm=norm)
        agree(name, x, axes=(2, 0, 3), norm=norm)
        agree(name, x, axes=(1,), norm=norm)
        agree(name, x, axes=(0, 1, 2, 3), norm=norm)
        agree(name, x, axes=(3, 3), norm=norm)


@pytest.mark.parametrize("name", ALL)
def test_no_elements_in_other_dimensions(name: str) -> None:
    x = np.ones((0, 4, 4), np.float32)
    agree(name, x, *((None, (1, 2)) if name in (*COMPLEX_MANY, *REAL_MANY) else ()))
    agree(name, np.ones((0, 3)), *(((4, 4), (1, 1)) if name in (*COMPLEX_MANY, *REAL_MANY) else (4, 1)))


@pytest.mark.parametrize("name", ALL)
def test_signature_is_numpy_s(name: str) -> None:
    own, numpys = (inspect.signature(getattr(space, name)) for space in (fft, np.fft))
    assert [(p.name, p.default, p.kind) for p in own.parameters.values()] == [
        (p.name, p.default, p.kind) for p in numpys.parameters.values()
    ]


def test_every_function_of_numpy_is_there() -> None:
    assert set(np.fft.__all__) <= set(fft.__all__)


@pytest.mark.parametrize("norm", ["backward", "ortho"])
@pytest.mark.parametrize("name", ["fft", "irfft", "hfft", "ihfft"])
def test_agrees_with_jax(name: str, norm: str) -> None:
    x = values((2, 6), "float32" if name in REAL_ONE else "complex64")
    wanted = np.asarray(getattr(jax.numpy.fft, name)(x, norm=norm))
    got = np.asarray(getattr(fft, name)(x, norm=norm))
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(COMPLEX_ONE), st.sampled_from(NORMS))
def test_any_number_of_points(size: int, points: int, name: str, norm: str | None) -> None:
    agree(name, values((size,), "complex128"), points, norm=norm)


def test_special_values_and_other_memory() -> None:
    x = values((4, 6), "complex128")
    agree("fft", x.T[::-1, ::2])
    for special in (np.nan, np.inf, -0.0):
        x[1, 2] = special
        with np.errstate(all="ignore"):
            for norm in NORMS:
                assert_same(np.isnan(np.asarray(fft.fft(x, norm=norm))), np.isnan(np.fft.fft(x, norm=norm)))


def test_on_the_reference_backend() -> None:
    x = values((3, 4), "float64")
    with xarr.use_backend("reference"):
        for name in ("rfftn", "ifft2", "fft"):
            np.testing.assert_allclose(
                np.asarray(getattr(fft, name)(xarr.asarray(x), norm="ortho")),
                getattr(np.fft, name)(x, norm="ortho"),
                rtol=1e-12,
                atol=1e-12,
            )


def test_jitted() -> None:
    x = values((3, 4), "float64")
    assert_same(xarr.jit(lambda y: fft.irfftn(fft.rfftn(y), (3, 4)))(x), fft.irfftn(fft.rfftn(x), (3, 4)))


def test_without_implicit_broadcasting() -> None:
    with xarr.config(broadcasting="explicit"):
        for name in ALL:
            getattr(fft, name)(np.ones((4, 4)), norm="ortho")
        fft.fftshift(fft.fftfreq(5))
        fft.rfftfreq(4, 0.5)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n: int) -> None:
    for d in (1.0, 0.1, -2):
        assert_same(fft.fftfreq(n, d), np.fft.fftfreq(n, d))
        assert_same(fft.rfftfreq(n, d), np.fft.rfftfreq(n, d))
    assert_same(fft.fftfreq(n, dtype=xarr.float32), np.fft.fftfreq(n).astype(np.float32))
    assert_same(fft.rfftfreq(n, device="cpu"), np.fft.rfftfreq(n))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (4,), (5,), (2, 3), (3, 0, 4)], ids=str)
def test_shifts(shape: tuple[int, ...]) -> None:
    x = values(shape, "float32")
    for name in ("fftshift", "ifftshift"):
        assert_same(getattr(fft, name)(x), getattr(np.fft, name)(x) if shape else x)
        for axes in (0, -1, (0,), [0, -1]) if shape else ():
            assert_same(getattr(fft, name)(x, axes), getattr(np.fft, name)(x, axes))
    assert_same(fft.ifftshift(fft.fftshift(x)), x)


@pytest.mark.parametrize("name", ALL)
def test_refusals(name: str) -> None:
    function, x = getattr(fft, name), np.ones((4, 4))
    sizes: Any = 0 if name in (*COMPLEX_ONE, *REAL_ONE) else (4, 0)
    with pytest.raises(ShapeError, match=rf"fft\.{name}: wanted 1 or more points"):
        function(x, sizes)
    with pytest.raises(ValueRangeError, match=rf"fft\.{name}: wanted norm 'backward', 'ortho' or 'forward'"):
        function(x, norm="unit")
    with pytest.raises(InputError, match="out="):
        function(x, out=x)
    with pytest.raises(DTypeError, match="wanted an element type of NumPy, got bfloat16"):
        function(x.astype(ml_dtypes.bfloat16))
    with pytest.raises(AxisError):
        function(x, None, 2 if name in (*COMPLEX_ONE, *REAL_ONE) else (0, 2))
    with pytest.raises(AxisError):
        function(xarr.float64(1), None, *((-1,) if name in (*COMPLEX_ONE, *REAL_ONE) else ((0, 1),)))


def test_refusals_of_sizes_and_axes() -> None:
    with pytest.raises(ShapeError, match="wanted as many sizes in s as axes, got 1 and 2"):
        fft.fft2(np.ones((4, 4)), (3,))
    with pytest.raises(ShapeError, match="wanted at most 2 sizes in s"):
        fft.fftn(np.ones((4, 4)), (3, 3, 3))
    with pytest.raises(ShapeError, match="wanted at least one axis"):
        fft.rfftn(np.ones((4, 4)), axes=())
    with pytest.raises(ShapeError, match="wanted at least one axis"):
        fft.irfftn(np.ones((4, 4)), axes=())
    with pytest.raises(InputError, match="wanted an int for n"):
        fft.fft(np.ones(3), 2.5)
    with pytest.raises(ValueRangeError, match="wanted n of 1 or more"):
        fft.fftfreq(0)
    with pytest.raises(ValueRangeError, match="a distance d other than 0"):
        fft.rfftfreq(4, 0.0)
    with pytest.raises(DTypeError, match="wanted frequencies of float32 or float64, got complex64"):
        fft.fftfreq(4, dtype=xarr.complex64)
    with pytest.raises(IndexError, match="wanted at least one axis"):
        fft.rfft2(np.ones((4, 4)), axes=())
    assert_same(fft.fftn(np.ones((2, 2)), axes=()), np.fft.fftn(np.ones((2, 2)), axes=()))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_a_negative_number_of_points_is_no_number(name: str) -> None:
    with pytest.raises(ShapeError, match=rf"fft\.{name}: wanted 1 or more points, or None"):
        getattr(xarr.fft, name)(xarr.arange(4.0), n=-1)
