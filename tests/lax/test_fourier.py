"""Fourier transforms against jax.lax and the reference."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.programs import run
from xarr import lax, stablehlo
from xarr.errors import DTypeError, InputError, ShapeError, ValueRangeError
from xarr.ir import ops
from xarr.lax import FftType

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(11)
KINDS = ["FFT", "IFFT", "RFFT", "IRFFT"]
LENGTHS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), (1,)),
    ((), (2,)),
    ((3,), (8,)),
    ((2, 2), (7,)),
    ((), (3, 4)),
    ((2,), (5, 3)),
    ((), (2, 3, 6)),
    ((2, 1), (3, 2, 1)),
]


def operand(kind: str, batch: tuple[int, ...], lengths: tuple[int, ...], dtype: Any) -> Any:
    shape = (*batch, *lengths)
    if kind == "RFFT":
        return RNG.normal(size=shape).astype(np.dtype(dtype).type(0).real.dtype)
    if kind == "IRFFT":
        shape = (*shape[:-1], lengths[-1] // 2 + 1)
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


def close(got: Any, wanted: Any, single: bool) -> None:
    actual, exact = np.asarray(got), np.asarray(wanted)
    assert (actual.dtype, actual.shape) == (exact.dtype, exact.shape)
    scale = max(1.0, float(np.abs(exact).max(initial=0)))
    np.testing.assert_allclose(actual, exact, rtol=0, atol=scale * (1e-6 if single else 1e-14))


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("batch", "lengths"), LENGTHS, ids=str)
def test_agrees_with_jax_and_the_reference(
    kind: str, batch: tuple[int, ...], lengths: tuple[int, ...]
) -> None:
    for dtype in (np.complex64, np.complex128):
        x = operand(kind, batch, lengths, dtype)
        got = lax.fft(x, kind, lengths)
        close(got, jax.lax.fft(x, kind, lengths), dtype is np.complex64)
        close(got, run(ops.Fft(kind, lengths), x), dtype is np.complex64)


def test_inverses() -> None:
    x = RNG.normal(size=(3, 4, 5))
    close(lax.fft(lax.fft(x, "RFFT", (4, 5)), "IRFFT", (4, 5)), x, False)
    z = x + 1j * RNG.normal(size=x.shape)
    close(lax.fft(lax.fft(z, FftType.FFT, (3, 4, 5)), FftType.IFFT, (3, 4, 5)), z, False)


def test_single_precision_is_kept() -> None:
    assert lax.fft(np.ones(4, np.float32), "rfft", (4,)).dtype == np.complex64
    assert np.asarray(lax.fft(np.ones(4, np.complex64), "fft", (4,))).dtype == np.complex64
    assert np.asarray(lax.fft(np.ones(3, np.complex64), "irfft", (4,))).dtype == np.float32


def test_operands_of_other_types_are_converted_as_in_jax() -> None:
    for x in (np.arange(4), np.arange(4.0), np.arange(4, dtype=np.float32)):
        for kind, length in (("FFT", 4), ("RFFT", 4), ("IRFFT", 6)):
            close(lax.fft(x, kind, (length,)), jax.lax.fft(x, kind, (length,)), x.dtype == np.float32)
    assert_same(lax.fft(np.arange(3), "FFT", ()), np.arange(3))


def test_imaginary_parts_that_do_not_count() -> None:
    x = np.array([1 + 5j, 2 - 1j, 3 + 7j])
    for length in (4, 5):
        close(lax.fft(x, "IRFFT", (length,)), run(ops.Fft("IRFFT", (length,)), x), False)
        close(lax.fft(x, "IRFFT", (length,)), jax.lax.fft(x, "IRFFT", (length,)), False)


def test_nan_and_empty_operands() -> None:
    assert np.isnan(np.asarray(lax.fft(np.array([1, np.nan, 2, 3]) + 0j, "FFT", (4,)))).any()
    assert lax.fft(np.ones((0, 4)) + 0j, "FFT", (4,)).shape == (0, 4)
    assert_same(lax.fft(np.ones((0, 4)), "RFFT", (4,)), np.zeros((0, 3), complex))
    assert_same(lax.fft(np.ones((2, 0)), "RFFT", (0,)), np.zeros((2, 0), complex))
    assert_same(lax.fft(np.ones((2, 0)) + 0j, "FFT", (2, 0)), np.zeros((2, 0), complex))


def test_text_is_read_back() -> None:
    x = operand("RFFT", (2,), (3, 4), np.complex128)
    text = str(xarr.lower(lambda a: lax.fft(a, "RFFT", (3, 4)), "f64[2,3,4]").graph)
    assert "stablehlo.fft %arg0, type = RFFT, length = [3, 4]" in text
    assert_same(stablehlo.run(text, x)[0], lax.fft(x, "RFFT", (3, 4)))
    program = xarr.make_explicit(lambda a: lax.fft(a, "RFFT", (3, 4)), x)
    assert_same(program(x), lax.fft(x, "RFFT", (3, 4)))


def test_fft_c1_number_of_lengths() -> None:
    for lengths in ((2, 2, 2, 2), (2, 2, 2)):
        with pytest.raises(ShapeError, match=r"fft \[C1\]: wanted 1 to 3 lengths"):
            lax.fft(np.ones((2, 2)) + 0j, "FFT", lengths)
    with pytest.raises(ShapeError, match=r"fft \[C1\]"):
        ops.Fft("FFT", ()).infer(ops.Constant.of(np.ones(2) + 0j).type)


def test_fft_c2_element_types() -> None:
    with pytest.raises(
        DTypeError, match=r"fft \[C2\]: wanted float32 or float64 elements for RFFT, got c128\[3\]"
    ):
        lax.fft(np.ones(3) + 0j, "RFFT", (3,))
    with pytest.raises(
        DTypeError, match=r"fft \[C2\]: wanted float32 or float64 elements for RFFT, got f16\[3\]"
    ):
        lax.fft(np.ones(3, np.float16), "RFFT", (3,))


def test_fft_c3_sizes() -> None:
    with pytest.raises(ShapeError, match=r"fft \[C3\]: wanted the last sizes \(4,\) for FFT, got c128\[3\]"):
        lax.fft(np.ones(3) + 0j, "FFT", (4,))
    with pytest.raises(
        ShapeError, match=r"fft \[C3\]: wanted the last sizes \(2, 3\) for IRFFT, got c128\[2,4\]"
    ):
        lax.fft(np.ones((2, 4)) + 0j, "IRFFT", (2, 4))


def test_unknown_types_are_refused() -> None:
    with pytest.raises(InputError, match="wanted a type of FFT, IFFT, RFFT, IRFFT, got 'DCT'"):
        lax.fft(np.ones(3), "DCT", (3,))
    with pytest.raises(ValueRangeError, match="wanted a type of"):
        ops.Fft("DCT", (3,))
