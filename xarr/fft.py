"""Discrete Fourier transforms with NumPy's and the Array API's names and arguments.

`norm` says which direction divides by the number n of elements: "backward" (or None) the inverse, "forward"
the other one, "ortho" both, by sqrt(n).  Integers and bools count as float64; float32 and float16 give
complex64, as in NumPy 2.  On the numpy backend results in double precision are NumPy's to the bit, except for
inverse transforms of another norm than "backward", which XLA has divide by n first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.absent_names import hooks_of
from xarr.base.typing import Array
from xarr.calls.arguments import DeviceLike, as_device, conjugate_complex, convert, fill
from xarr.calls.fourier_calls import FOURIER_ROWS
from xarr.calls.host_functions import ROWS
from xarr.calls.operands import as_array
from xarr.calls.outputs import takes_out
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import BOOL, COMPLEX, EXTENDED_FLOAT, INTEGER, canonical, complex_of, default_float
from xarr.errors import DivisionByZeroError, DTypeError, ShapeError, ValueRangeError
from xarr.ir.types import Ints
from xarr.lax.core import ArrayLike, integer, integers, real_number
from xarr.numpy_api.manipulation.rearranging import roll
from xarr.runtime.handles import commit
from xarr.shapes import normalize_axis

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Axes = int | Sequence[int] | None
#: (name, array) -> how many points along each axis, None where the array says it, and which axes.
Plan = Callable[[str, "Array"], tuple[Ints | None, Ints]]

_FLOAT16: Final = np.dtype(np.float16)
_PLAIN: Final = (None, "backward")
_SWAPPED: Final = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
#: Dimensions that one operation of XLA transforms.
_AT_ONCE: Final = 3


# --- arguments ------------------------------------------------------------------------------------


def _operand(name: str, a: ArrayLike, out: object, norm: str | None) -> Array:
    """`a` as an array of float32, float64, complex64 or complex128; refuses what no transform takes."""
    if norm not in _SWAPPED:
        raise ValueRangeError(f"fft.{name}: wanted norm 'backward', 'ortho' or 'forward', got {norm!r}")
    array = as_array(a)
    if array.dtype in EXTENDED_FLOAT:
        raise DTypeError(
            f"fft.{name}: wanted an element type of NumPy, got {array.dtype}; x.astype('float32')"
        )
    if array.dtype in INTEGER | BOOL:
        return convert(array, np.dtype(np.float64))
    return convert(array, np.dtype(np.float32)) if array.dtype == _FLOAT16 else array


def _one(n: int | None, axis: int) -> Plan:
    """The plan of a transform of one dimension."""

    def plan(name: str, array: Array) -> tuple[Ints | None, Ints]:
        dim = normalize_axis(integer(f"fft.{name}", "axis", axis), array.ndim)
        points = None if n is None else integer(f"fft.{name}", "n", n)
        if points is not None and points < 1:
            raise ShapeError(f"fft.{name}: wanted 1 or more points, or None for all, got {points}")
        return None if points is None else (points,), (dim,)

    return plan


def _several(s: Any, axes: Axes) -> Plan:
    """The plan of a transform of several dimensions, which may be named more than once."""

    def plan(name: str, array: Array) -> tuple[Ints | None, Ints]:
        rank = array.ndim
        sizes = None if s is None else integers(f"fft.{name}", "s", _as_items(s))
        count = rank if sizes is None else len(sizes)
        if axes is None and count > rank:
            raise ShapeError(f"fft.{name}: wanted at most {rank} sizes in s, got {sizes}")
        wanted = (
            range(rank - count, rank) if axes is None else integers(f"fft.{name}", "axes", _as_items(axes))
        )
        dims = tuple([normalize_axis(axis, rank) for axis in wanted])
        if sizes is not None and len(sizes) != len(dims):
            raise ShapeError(
                f"fft.{name}: wanted as many sizes in s as axes, got {len(sizes)} and {len(dims)}"
            )
        return sizes, dims

    return plan


def _as_items(value: Any) -> Any:
    return (value,) if isinstance(value, int | np.integer) else value


def _lengths(name: str, shape: Ints, sizes: Ints | None, axes: Ints, full: bool = False) -> Ints:
    """The number of points along each axis; `full`: of the last one the array holds the half (irfft)."""
    own = [shape[axis] for axis in axes]
    lengths = own if not full else [*own[:-1], 2 * (own[-1] - 1)]
    if sizes is not None:
        lengths = [before if size == -1 else size for size, before in zip(sizes, own, strict=True)]
    if any(length < 1 for length in lengths):
        raise ShapeError(
            f"fft.{name}: wanted 1 or more points along each axis, got {lengths} of shape {shape} along {axes}"
        )
    return tuple(lengths)


def _fit(array: Array, axis: int, size: int) -> Array:
    """`array` cut, or filled up with zeros at the end, to `size` along `axis`."""
    own = array.shape[axis]
    if own > size:
        return lax.slice_in_dim(array, 0, size, axis=axis)
    if own == size:
        return array
    widths = [(0, size - own if dim == axis else 0, 0) for dim in range(array.ndim)]
    return lax.pad(array, fill((), 0, array.dtype), widths)


# --- transforms -----------------------------------------------------------------------------------


def _transform(
    array: Array, kind: lax.FftType, axes: Ints, lengths: Sequence[int], norm: str | None
) -> Array:
    """One operation over up to three different dimensions, moved to the end for it."""
    rest = [dim for dim in range(array.ndim) if dim not in axes]
    order = [*rest, *axes]
    moved = lax.fft(lax.transpose(array, order), kind, lengths)
    result = lax.transpose(moved, [order.index(dim) for dim in range(array.ndim)])
    if norm in _PLAIN:
        return result
    for length in lengths:
        result = _scale(result, kind, length, norm)
    return result


def _scale(array: Array, kind: lax.FftType, length: int, norm: str | None) -> Array:
    """Scale as `norm` asks for beyond XLA, whose inverse divides by the number of elements."""
    # In the array's own precision, as NumPy does.
    count = np.dtype(f"f{array.dtype.itemsize // (2 if array.dtype in COMPLEX else 1)}").type(length)
    factor = count if norm == "forward" else np.sqrt(count)
    if kind in (lax.FftType.FFT, lax.FftType.RFFT):
        factor = 1 / factor
    scalar = fill((), factor.item(), factor.dtype)
    if array.dtype not in COMPLEX:
        return lax.mul(array, scalar)
    # Part by part: with a complex factor an infinite part would make the other one NaN.
    return lax.complex(lax.mul(lax.real(array), scalar), lax.mul(lax.imag(array), scalar))


def _groups(axes: Ints, lengths: Ints, norm: str | None) -> list[tuple[Ints, Ints]]:
    """(axes, lengths) from the last ones to the first, as many together as one operation takes."""
    groups: list[tuple[Ints, Ints]] = []
    for axis, length in zip(reversed(axes), reversed(lengths), strict=True):
        group, sizes = groups[-1] if groups else ((), ())
        # NumPy scales after each axis, so that there it must be one by one.
        if groups and norm in _PLAIN and len(group) < _AT_ONCE and axis not in group:
            groups[-1] = ((axis, *group), (length, *sizes))
        else:
            groups.append(((axis,), (length,)))
    return groups


def _one_by_one(
    array: Array, kind: lax.FftType, groups: Iterable[tuple[Ints, Ints]], norm: str | None
) -> Array:
    for axes, lengths in groups:
        for axis, length in zip(axes, lengths, strict=True):
            array = _fit(array, axis, length)
        array = _transform(array, kind, axes, lengths, norm)
    return array


def _complex(name: str, a: ArrayLike, plan: Plan, norm: str | None, out: object) -> Array:
    """fft, fft2, fftn and their inverses: the last axis first."""
    array = _operand(name, a, out, norm)
    sizes, axes = plan(name, array)
    if not axes:
        return as_array(a)  # as it is, real numbers too
    array = convert(array, complex_of(array.dtype))
    lengths = _lengths(name, array.shape, sizes, axes)
    kind = lax.FftType.IFFT if name.startswith("i") else lax.FftType.FFT
    return _one_by_one(array, kind, _groups(axes, lengths, norm), norm)


def _from_real(name: str, a: ArrayLike, plan: Plan, norm: str | None, out: object) -> Array:
    """rfft, rfft2, rfftn: the last axis from reals to half as many complex numbers, then the others."""
    array = _operand(name, a, out, norm)
    if array.dtype in COMPLEX:
        raise DTypeError(
            f"fft.{name}: wanted real numbers, got {array.dtype}; fft takes complex numbers, x.real has their "
            "real parts"
        )
    sizes, axes = _some(name, plan, array)
    first, *others = _groups(axes, _lengths(name, array.shape, sizes, axes), norm)
    array = _one_by_one(array, lax.FftType.RFFT, [first], norm)
    return _one_by_one(array, lax.FftType.FFT, others, norm)


def _to_real(name: str, a: ArrayLike, plan: Plan, norm: str | None, out: object) -> Array:
    """irfft, irfft2, irfftn: the other axes, then the last from half as many complex numbers to reals."""
    is_half = as_array(a).dtype == _FLOAT16
    array = _operand(name, a, out, norm)
    array = convert(array, complex_of(array.dtype))
    sizes, axes = _some(name, plan, array)
    *leading, length = _lengths(name, array.shape, sizes, axes, full=True)
    groups = [((axis,), (size,)) for axis, size in zip(axes[:-1], leading, strict=True)]
    array = _one_by_one(array, lax.FftType.IFFT, groups, norm)
    array = _fit(array, axes[-1], length // 2 + 1)
    result = _transform(array, lax.FftType.IRFFT, axes[-1:], (length,), norm)
    return convert(result, _FLOAT16) if is_half and not leading else result


class _NoAxisError(ShapeError, IndexError):
    """NumPy says IndexError."""


def _some(name: str, plan: Plan, array: Array) -> tuple[Ints | None, Ints]:
    sizes, axes = plan(name, array)
    if not axes:
        raise _NoAxisError(f"fft.{name}: wanted at least one axis, got none of shape {array.shape}")
    return sizes, axes


ROWS.update(FOURIER_ROWS)


# --- of one dimension -----------------------------------------------------------------------------


@takes_out("same_kind")
def fft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: Array | None = None
) -> Array:
    """result[k] = sum over j of a[j] exp(-2 pi i j k / n), along `axis`.

    n: the number of points; a is cut to it, or filled up with zeros.
    Raises ShapeError for n < 1, AxisError, ValueRangeError for another norm.
    Source: NumPy and Array API, `fft.fft`; XLA's Fft.
    """
    return _complex("fft", a, _one(n, axis), norm, out)


@takes_out("same_kind")
def ifft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: Array | None = None
) -> Array:
    """The inverse of `fft`: result[j] = sum over k of a[k] exp(2 pi i j k / n) / n.

    Source: NumPy and Array API, `fft.ifft`.
    """
    return _complex("ifft", a, _one(n, axis), norm, out)


@takes_out("same_kind")
def rfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: Array | None = None
) -> Array:
    """The first n // 2 + 1 numbers of the `fft` of reals, which determine the others.

    Raises DTypeError for complex numbers.  Source: NumPy and Array API, `fft.rfft`.
    """
    return _from_real("rfft", a, _one(n, axis), norm, out)


@takes_out("same_kind")
def irfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: Array | None = None
) -> Array:
    """The inverse of `rfft`: n reals from n // 2 + 1 complex numbers.

    n: of the result, 2 (m - 1) for m numbers if it is not given.  Source: NumPy and Array API, `fft.irfft`.
    """
    return _to_real("irfft", a, _one(n, axis), norm, out)


@takes_out("same_kind")
def hfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: Array | None = None
) -> Array:
    """The `fft` of a signal with a[n - j] = conj(a[j]), of which the first half is given: n reals.

    Source: NumPy and Array API, `fft.hfft`.
    """
    _operand("hfft", a, out, norm)
    return _to_real("hfft", conjugate_complex(as_array(a)), _one(n, axis), _SWAPPED[norm], out)


@takes_out("same_kind")
def ihfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: Array | None = None
) -> Array:
    """The inverse of `hfft`: n // 2 + 1 complex numbers from n reals.

    Raises DTypeError for complex numbers.  Source: NumPy and Array API, `fft.ihfft`.
    """
    array = _operand("ihfft", a, out, norm)
    return conjugate_complex(_from_real("ihfft", array, _one(n, axis), _SWAPPED[norm], out))


# --- of several dimensions ------------------------------------------------------------------------


@takes_out("same_kind")
def fftn(
    a: ArrayLike, s: Any = None, axes: Axes = None, norm: str | None = None, out: Array | None = None
) -> Array:
    """`fft` along each of `axes`, the last one first.

    s: the number of points along each, -1 for as many as there are; axes: all, or the last len(s).
    An axis that is named twice is transformed twice.  Raises ShapeError for sizes below 1 and for another
    number of sizes than axes, AxisError.  Source: NumPy and Array API, `fft.fftn`.
    """
    return _complex("fftn", a, _several(s, axes), norm, out)


@takes_out("same_kind")
def ifftn(
    a: ArrayLike, s: Any = None, axes: Axes = None, norm: str | None = None, out: Array | None = None
) -> Array:
    """`ifft` along each of `axes`, the last one first: the inverse of `fftn`.  Source: NumPy and Array API."""
    return _complex("ifftn", a, _several(s, axes), norm, out)


@takes_out("same_kind")
def rfftn(
    a: ArrayLike, s: Any = None, axes: Axes = None, norm: str | None = None, out: Array | None = None
) -> Array:
    """`rfft` along the last of `axes`, then `fft` along the others.  Source: NumPy and Array API."""
    return _from_real("rfftn", a, _several(s, axes), norm, out)


@takes_out("same_kind")
def irfftn(
    a: ArrayLike, s: Any = None, axes: Axes = None, norm: str | None = None, out: Array | None = None
) -> Array:
    """`ifft` along all but the last of `axes`, then `irfft` along that.  Source: NumPy and Array API."""
    return _to_real("irfftn", a, _several(s, axes), norm, out)


@takes_out("same_kind")
def fft2(
    a: ArrayLike, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None, out: Array | None = None
) -> Array:
    """`fftn` of the last two dimensions.  Source: NumPy, `fft.fft2`."""
    return _complex("fft2", a, _several(s, axes), norm, out)


@takes_out("same_kind")
def ifft2(
    a: ArrayLike, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None, out: Array | None = None
) -> Array:
    """`ifftn` of the last two dimensions.  Source: NumPy, `fft.ifft2`."""
    return _complex("ifft2", a, _several(s, axes), norm, out)


@takes_out("same_kind")
def rfft2(
    a: ArrayLike, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None, out: Array | None = None
) -> Array:
    """`rfftn` of the last two dimensions.  Source: NumPy, `fft.rfft2`."""
    return _from_real("rfft2", a, _several(s, axes), norm, out)


@takes_out("same_kind")
def irfft2(
    a: ArrayLike, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None, out: Array | None = None
) -> Array:
    """`irfftn` of the last two dimensions.  Source: NumPy, `fft.irfft2`."""
    return _to_real("irfft2", a, _several(s, axes), norm, out)


# --- frequencies ----------------------------------------------------------------------------------


@remembers_calls
def fftfreq(n: int, d: float = 1.0, device: DeviceLike = None, *, dtype: DTypeLike | None = None) -> Array:
    """The frequencies of `fft` of n points at distance d: 0, 1 … n / 2 - 1, -n / 2 … -1, over n d.

    dtype: float32 or float64, the default float type if it is not given.
    Raises ValueRangeError for n < 1 or d = 0.  Source: NumPy and Array API, `fft.fftfreq`.
    """
    size = _points("fftfreq", n, d)
    numbers = lax.iota(np.int64, size)
    half = (size - 1) // 2 + 1
    signed = lax.select(lax.lt(numbers, half), numbers, lax.sub(numbers, size))
    return _frequencies(signed, size, d, device, dtype)


@remembers_calls
def rfftfreq(n: int, d: float = 1.0, device: DeviceLike = None, *, dtype: DTypeLike | None = None) -> Array:
    """The frequencies of `rfft` of n points at distance d: 0, 1 … n // 2, over n d.

    dtype: float32 or float64, the default float type if it is not given.
    Raises ValueRangeError for n < 1 or d = 0.  Source: NumPy and Array API, `fft.rfftfreq`.
    """
    size = _points("rfftfreq", n, d)
    return _frequencies(lax.iota(np.int64, size // 2 + 1), size, d, device, dtype)


def _points(name: str, n: int, d: float) -> int:
    count, d = integer(f"fft.{name}", "n", n), real_number(f"fft.{name}", "d", d)
    if count < 1 or not d:
        raise DivisionByZeroError(
            f"fft.{name}: wanted n of 1 or more and a distance d other than 0, got {n} and {d}"
        )
    return count


def _frequencies(numbers: Array, n: int, d: float, device: DeviceLike, dtype: DTypeLike | None) -> Array:
    wanted = default_float() if dtype is None else canonical(dtype)
    if wanted not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise DTypeError(f"fft: wanted frequencies of float32 or float64, got {wanted}")
    wide = convert(numbers, np.dtype(np.float64))
    return commit(convert(lax.mul(wide, 1.0 / (n * d)), wanted), as_device(device))


@remembers_calls
def fftshift(x: ArrayLike, axes: Axes = None) -> Array:
    """`x` rolled so that frequency 0 is in the middle along `axes` (all if None).

    Raises AxisError.  Source: NumPy and Array API, `fft.fftshift`.
    """
    return _shift("fftshift", x, axes, 1)


@remembers_calls
def ifftshift(x: ArrayLike, axes: Axes = None) -> Array:
    """The inverse of `fftshift`, another function for odd sizes.  Source: NumPy and Array API."""
    return _shift("ifftshift", x, axes, -1)


def _shift(name: str, x: ArrayLike, axes: Axes, sign: int) -> Array:
    array = as_array(x)
    wanted = range(array.ndim) if axes is None else integers(f"fft.{name}", "axes", _as_items(axes))
    dims = [normalize_axis(axis, array.ndim) for axis in wanted]
    # n // 2 forth and -(n // 2) back: for odd n they differ.
    return roll(array, [sign * (array.shape[axis] // 2) for axis in dims], dims)


if not TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker
    __getattr__, __dir__ = hooks_of(__name__)
