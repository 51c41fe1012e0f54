"""Fourier transforms in machine code: the bits of `numpy.fft`, and Python where NumPy's loops are not found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
import xarr.fft
from tests.compare import assert_same
from xarr import lax

pytest.importorskip("llvmlite")

from xarr_numpy.compiled.cpython_abi import struct_offsets, ufunc_loops
from xarr_numpy.compiled.plans import fourier, plan_code
from xarr_numpy.processor import PROCESSOR

pytestmark = [
    pytest.mark.usefixtures("on_numpy"),
    pytest.mark.skipif(not struct_offsets.works(), reason="no C functions of NumPy's are known here"),
]

RNG = np.random.default_rng(5)
KINDS = ["FFT", "IFFT", "RFFT", "IRFFT"]


def operand(kind: str, shape: tuple[int, ...], count: int, is_single: bool) -> np.ndarray[Any, Any]:
    """Numbers for a transform of the last `count` dimensions, whose sizes of the longer side are those of `shape`."""
    if kind == "IRFFT":
        shape = (*shape[:-1], shape[-1] // 2 + 1)
    numbers = RNG.normal(size=shape)
    numbers = numbers if kind == "RFFT" else numbers + 1j * RNG.normal(size=shape)
    return (
        numbers.astype(numbers.dtype.char.translate({ord("d"): "f", ord("D"): "F"})) if is_single else numbers
    )


def plan_of(function: Any, *arguments: Any) -> str:
    return str(xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("plan"))


@pytest.mark.sampled
@pytest.mark.parametrize("is_single", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "count"), [((8,), 1), ((1,), 1), ((5, 9), 1), ((3, 4, 7), 2), ((4, 1), 2), ((2, 2, 3, 5), 3)]
)
def test_the_bits_are_those_of_single_operations(
    kind: str, shape: tuple[int, ...], count: int, is_single: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def transform(x: Any) -> Any:
        return lax.fft(x + x, kind, shape[-count:]) * 2

    x = operand(kind, shape, count, is_single)
    with xarr.config(fusion="off"):
        wanted = np.asarray(xarr.jit(transform)(x))
    with xarr.config(fusion="compiled"):
        # In single precision NumPy's function may compute in double precision, and the loop does not.
        assert is_single or "in Python" not in plan_of(transform, x)
        assert_same(xarr.jit(transform)(x), wanted)
    monkeypatch.setattr(fourier, "loop_of", lambda name, is_single: None)
    with xarr.config(fusion="compiled"):
        assert "in Python" in plan_of(transform, x)


def spectral_step(i: Any, x: Any) -> Any:
    modes = xarr.fft.rfft(x * x + i)
    return x + xarr.fft.irfft(modes * 0.25, x.shape[-1]) - xarr.real(xarr.fft.fft2(x)) * 1e-3


def test_loops_transform_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(x: Any) -> Any:
        return lax.fori_loop(0, 4, spectral_step, x)

    x = RNG.normal(size=(3, 10))
    with xarr.config(fusion="off"):
        wanted = np.asarray(xarr.jit(steps)(x))
    with xarr.config(fusion="compiled"):
        assert "in Python" not in plan_of(steps, x)
        np.testing.assert_allclose(np.asarray(xarr.jit(steps)(x)), wanted, rtol=1e-12)
    monkeypatch.setattr(fourier, "loop_of", lambda name, is_single: None)
    with xarr.config(fusion="compiled"):
        assert "called back in Python" in plan_of(steps, x)


def test_large_transforms_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(x: Any) -> Any:
        return lax.fori_loop(0, 2, lambda i, x: xarr.fft.fft(x) + i, x)

    monkeypatch.setattr(plan_code, "PROCESSOR", PROCESSOR.replace(max_native_nanoseconds=1000))
    with xarr.config(fusion="compiled"):
        assert "called back in Python" in plan_of(steps, np.ones((64, 8), complex))
        assert "in Python" not in plan_of(steps, np.ones(8, complex))


def test_a_loop_that_gives_other_bits_is_not_called() -> None:
    for name in fourier._TYPES:
        loop = fourier.loop_of(name, False)
        assert loop is not None
        assert fourier._agrees(name, False, loop, 12)
    fft, ifft = (fourier.loop_of(name, False) for name in ("fft", "ifft"))
    assert fft is not None
    assert ifft is not None
    assert not fourier._agrees("fft", False, ifft, 12)
    assert not fourier._agrees("ifft", False, fft, 12)


def test_loops_are_looked_up_only_where_all_is_as_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ufunc_loops.inner_loop(np.add, "dd->d") is not None
    assert ufunc_loops.inner_loop(np.add, "dd->D") is None

    fields = ufunc_loops._UFunc._fields_
    shifted = type("Shifted", (ufunc_loops.ctypes.Structure,), {"_fields_": (fields[-1], *fields[:-1])})
    monkeypatch.setattr(ufunc_loops, "_UFunc", shifted)
    assert ufunc_loops.inner_loop(np.add, "dd->d") is None
    monkeypatch.undo()
    monkeypatch.setattr(struct_offsets, "works", lambda: False)
    assert ufunc_loops.inner_loop(np.add, "dd->d") is None
