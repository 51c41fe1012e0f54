"""Helpers of the tests of `xarr.numpy_api`: one namespace, sample values, comparison with NumPy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.arrays.array import Array
from xarr.errors import XarrError

#: `xarr`, under the name that stands beside `np`.
XP = xarr

SHAPES = [(), (0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 3, 1, 4)]
FLOATS = ["float16", "float32", "float64"]
DTYPES = ["bool", "int8", "uint8", "int64", "uint64", *FLOATS, "complex64"]

_SPECIAL = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0]


def sample(shape: tuple[int, ...], dtype: str, special: bool = True, seed: int = 0) -> np.ndarray[Any, Any]:
    """Values of any size and sign, with NaN, infinities, zeros of both signs and extremes among them."""
    generator = np.random.default_rng([seed, *shape])
    kind, size = np.dtype(dtype), math.prod(shape)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        values = generator.integers(limits.min, limits.max, size, dtype=kind, endpoint=True)
        values[: 2 if special else 0] = [limits.min, limits.max][: len(values[:2])] if special else []
    elif kind.kind == "b":
        values = generator.integers(0, 2, size).astype(bool)
    else:
        values = np.round(generator.normal(size=size) * 8, 2).astype(kind)
        if kind.kind == "c":
            values = values + 1j * np.round(generator.normal(size=size), 2).astype(kind)
        if special:
            positions = generator.permutation(size)[: len(_SPECIAL)]
            values[positions] = np.array(_SPECIAL, kind)[: len(positions)]
    return values.astype(kind).reshape(shape)


def expression(text: str) -> Callable[..., Any]:
    """The function (xp, x, y, z) -> value of `text`, with `np` for NumPy; the text is the test's name."""
    code = compile(text, text, "eval")
    return lambda xp, *inputs: eval(code, {"xp": xp, "np": np, **dict(zip("xyz", inputs, strict=False))})


def same(result: Any, wanted: Any, rtol: float | None = None) -> None:
    """Assert one structure, shape and dtype, and equal bits, or values within `rtol`; zeros of any sign match
    and NaN matches NaN in the latter case."""
    if isinstance(wanted, list | tuple):
        assert type(result) is type(wanted)
        assert len(result) == len(wanted)
        for one, other in zip(result, wanted, strict=True):
            same(one, other, rtol)
        return
    assert isinstance(result, Array)
    values, expected = np.asarray(result), np.asarray(wanted)
    assert (values.shape, values.dtype) == (expected.shape, expected.dtype)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    if rtol is None:
        assert values.tobytes() == expected.tobytes(), f"{values}\n{expected}"
    else:
        # Part by part: of -inf+1.9j it would want the very bits of 1.9.
        is_complex = values.dtype.kind == "c"
        for part in (np.real, np.imag) if is_complex else (np.asarray,):
            np.testing.assert_allclose(part(values), part(expected), rtol, atol=rtol, equal_nan=True)


def _builtin_kinds(error: Exception) -> tuple[type[Exception], ...]:
    return tuple(kind for kind in (ValueError, TypeError, IndexError) if isinstance(error, kind))


def against_numpy(call: Callable[..., Any], *inputs: Any, rtol: float | None = None) -> None:
    """Assert that `call(xp, *inputs)` gives with xarr what it gives with NumPy: the result, or an error.

    The inputs are handed over once as NumPy arrays and once as Arrays.
    """
    with np.errstate(all="ignore"):
        refused: Exception | None = None
        try:
            wanted = call(np, *inputs)
        except (ValueError, TypeError, IndexError) as error:
            refused = error
    if refused is not None:
        with pytest.raises(XarrError) as caught:
            call(XP, *inputs)
        assert isinstance(caught.value, _builtin_kinds(refused))
        return
    same(call(XP, *inputs), wanted, rtol)
    same(call(XP, *map(XP.asarray, inputs)), wanted, rtol)
