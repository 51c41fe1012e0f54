"""Arguments of the differential tests: special values and random ones, the same on every run."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from xarr.dtypes import BOOL, COMPLEX, INTEGER, canonical, info, real_part_of

HostArray = np.ndarray[Any, Any]

BOOLS: Final = ("bool",)
SIGNED: Final = ("int8", "int16", "int32", "int64")
UNSIGNED: Final = ("uint8", "uint16", "uint32", "uint64")
INTS: Final = SIGNED + UNSIGNED
FLOATS: Final = ("float16", "bfloat16", "float32", "float64")
COMPLEXES: Final = ("complex64", "complex128")
#: Functions of `xarr.lax` of one complex operand.
COMPLEX_UNARY: Final = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cos"),
    *("cosh", "exp", "expm1", "imag", "log", "log1p", "logistic", "neg", "real"),
    *("reciprocal", "rsqrt", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh"),
)
FLOAT8: Final = tuple(name for name in dir(ml_dtypes) if name.startswith("float8"))

#: The shapes of XLA's corner cases: 0-d, empty, of size 1, ordinary, of rank 5.
SHAPES: Final = ((), (0, 3), (1,), (3, 4), (2, 1, 3, 1, 2))


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype called `name`, those of ml_dtypes included."""
    return canonical(getattr(ml_dtypes, name, name))


def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def cast(values: Any, dtype: DTypeLike) -> HostArray:
    """`values` rounded to `dtype` without a warning about overflow."""
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


def floats(dtype: np.dtype[Any], count: int = 400) -> HostArray:
    """±0, ±inf, NaN, subnormals, extremes, halves, huge arguments and random numbers of all magnitudes.

    Of a type of 16 bits, every one of its values.
    """
    if dtype.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    limits = info(dtype)
    tiny, eps = float(limits.tiny), float(limits.eps)
    positive = [
        *(
            0.0,
            0.5,
            1.0,
            1.5,
            2.0,
            2.5,
            3.0,
            3.5,
            np.pi / 2,
            np.pi,
            0.49999997,
            0.49999999999999994,
            4.4999995,
        ),
        *(float(limits.max), tiny, tiny / 2, float(limits.smallest_subnormal), eps, 1 + eps, 1 - eps / 2),
        *(1e5, 1e15, 1e22, 1e30, 8388607.5, 8388609.0, 2.0**52 - 0.5, 2.0**52, 2.0**53 + 2),
        *(1e-5, 1e-10, 20.0, 88.0, 89.0, 104.0, 710.0, 745.0),
    ]
    draw = rng()
    random = [
        draw.normal(size=count),
        draw.normal(size=count) * 30,
        draw.uniform(-1, 1, count),
        draw.uniform(-1, 1, count) * 10.0 ** draw.uniform(-30, 30, count),
    ]
    special = [*positive, *[-x for x in positive], np.inf, -np.inf, np.nan]
    return np.concatenate([cast(special, dtype), *[cast(x, dtype) for x in random]])


def float_pairs(dtype: np.dtype[Any], count: int = 400) -> tuple[HostArray, HostArray]:
    """Every pair of special values, and random pairs."""
    limits = info(dtype)
    extremes = (float(limits.max), float(limits.tiny), float(limits.smallest_subnormal), float(limits.eps))
    positive = [0.0, 0.1, 0.5, 1.0, 1 + float(limits.eps), 1.5, 2.0, 3.0, 7.0, 255.0, 1e4, *extremes]
    special = cast([*positive, *[-x for x in positive], np.inf, -np.inf, np.nan], dtype)
    draw = rng()

    def side(grid: HostArray) -> HostArray:
        wide = draw.uniform(-1, 1, count) * 10.0 ** draw.uniform(-3, 3, count)
        return np.concatenate([grid.ravel(), cast(draw.normal(size=count), dtype), cast(wide, dtype)])

    first, second = (side(grid) for grid in np.meshgrid(special, special))
    return first, second


def ints(dtype: np.dtype[Any], count: int = 40) -> HostArray:
    """0, ±1, powers of two, shift counts, the ends of the type, and random numbers."""
    limits = np.iinfo(dtype)
    near = [0, 1, 2, 3, 7, 8, 9, 15, 16, 31, 32, 63, 64, 100, limits.max // 2, limits.max - 1, limits.max]
    below = [-1, -2, -3, -7, -8, -31, -64, limits.min + 1, limits.min] if limits.min else []
    random = rng().integers(limits.min, limits.max, count, dtype=dtype.type, endpoint=True)
    return np.concatenate([np.array([*near, *below], dtype), random])


def parts(real: HostArray, imaginary: HostArray, dtype: np.dtype[Any]) -> HostArray:
    """A complex array from its parts, without arithmetic."""
    result = np.empty(real.shape, dtype)
    result.real, result.imag = cast(real, real_part_of(dtype)), cast(imaginary, real_part_of(dtype))
    return result


def complexes(dtype: np.dtype[Any], count: int = 200) -> HostArray:
    """Random finite numbers of ordinary size, away from zero and from overflow."""
    draw = rng()
    return np.concatenate(
        [parts(*(draw.normal(size=(2, count)) * scale), dtype) for scale in (0.1, 1.0, 10.0)]
    )


def complex_pairs(dtype: np.dtype[Any]) -> tuple[HostArray, HostArray]:
    first = complexes(dtype)
    return first, np.roll(first, 77)


_SPECIAL_PARTS: Final = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, np.inf, -np.inf, np.nan]


def special_complexes(dtype: np.dtype[Any]) -> HostArray:
    """Every number with parts among ±0, ±inf, NaN and a few ordinary ones."""
    grid = np.meshgrid(_SPECIAL_PARTS, _SPECIAL_PARTS)
    return parts(grid[0].ravel(), grid[1].ravel(), dtype)


def special_complex_pairs(dtype: np.dtype[Any]) -> tuple[HostArray, HostArray]:
    ends = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]
    grid = [axis.ravel() for axis in np.meshgrid(ends, ends, ends, ends)]
    return parts(grid[0], grid[1], dtype), parts(grid[2], grid[3], dtype)


def values(dtype: np.dtype[Any]) -> HostArray:
    """A flat array of interesting values of any element type."""
    if dtype in BOOL:
        return np.array([False, True])
    if dtype in INTEGER:
        return ints(dtype)
    if dtype in COMPLEX:
        return np.concatenate([special_complexes(dtype), complexes(dtype, 20)])
    return np.arange(256, dtype=np.uint8).view(dtype) if dtype.itemsize == 1 else floats(dtype)


def pairs(dtype: np.dtype[Any]) -> tuple[HostArray, HostArray]:
    """Two flat arrays of interesting pairs of any element type."""
    if dtype in COMPLEX:
        return complex_pairs(dtype)
    if dtype in BOOL | INTEGER:
        first, second = np.meshgrid(values(dtype), values(dtype))
        return first.ravel(), second.ravel()
    return float_pairs(dtype)


def fill(shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0) -> HostArray:
    """An array of `shape` with small distinct numbers, for tests of where elements go."""
    count = int(np.prod(shape, dtype=int))
    plain = (np.arange(count) + offset) % 101
    if dtype in BOOL:
        return (plain % 3 == 0).reshape(shape)
    if dtype in COMPLEX:
        return (plain - 1j * plain[::-1]).astype(dtype).reshape(shape)
    return cast(plain, dtype).reshape(shape)


def power_pairs(dtype: np.dtype[Any]) -> tuple[HostArray, HostArray]:
    """Complex bases and exponents whose powers neither overflow nor vanish."""
    draw = rng()
    return parts(*draw.normal(size=(2, 600)), dtype), parts(*draw.normal(size=(2, 600)), dtype)
