"""NumPy's functions of small arrays whose results hang on values: sets, selections, counts, bins, indices, factors.

Rows for `host_functions`.  Recorded, each of them looks at values again and again, or steps through a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from xarr.base.at_once.numpy_calls import EXACT, ArgumentKind, NumPyCall
from xarr.base.typing import Array
from xarr.calls.host_functions import has_negative_zeros, options_of, refuse, refuse_large
from xarr.ir.types import MOST_COMBINED

HostArray = np.ndarray[Any, Any]

_INTEGERS: Final = "bBhHiIlLqQ"
_REAL: Final = "?df" + _INTEGERS
_ANY: Final = _REAL + "DF"
_FLAG: Final = ArgumentKind.BOOL
_SHAPE: Final = ArgumentKind.INT | ArgumentKind.INTS
_ORDER: Final = frozenset({"C", "F"})
_INT_OR_NONE: Final = ArgumentKind.INT | ArgumentKind.NONE
_BIT_ORDER: Final = frozenset({"big", "little"})


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def _take_ordered(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays that NumPy and xarr order alike: no element is NaN or -0.0."""

    def compute(*operands: Any, **options: Any) -> Any:
        for each in operands:
            for one in each if type(each) is list else (each,):
                if type(one) is np.ndarray and one.dtype.kind == "f":
                    # A sum that is NaN has infinities of both signs, else.
                    refuse(np.isnan(one.sum()) or not (one.all() or not has_negative_zeros(one)))
        return call(*operands, **options)

    return compute


def _select(call: Callable[..., HostArray]) -> Callable[..., HostArray]:
    """`compress` or `extract` by bools."""

    def compute(condition: HostArray, a: HostArray, axis: int | None = None, out: None = None) -> HostArray:
        refuse(condition.dtype != bool)
        return call(condition, a) if axis is None else call(condition, a, axis)

    return compute


def _find_bins(x: HostArray, bins: HostArray, right: bool = False) -> Any:
    """`digitize`, which looks at floats to see whether bins rise or fall."""
    refuse(
        bins.dtype.kind in "iu" and (bins.size and not -EXACT <= int(bins.min()) <= int(bins.max()) <= EXACT)
    )
    return np.digitize(x, bins, right)


def _split_indices(indices: HostArray, shape: Any, order: str = "C") -> tuple[HostArray, ...]:
    """`unravel_index`, which of no indices takes any shape."""
    refuse(not indices.size)
    return np.unravel_index(indices, shape, order)  # type: ignore[call-overload,no-any-return]


def _join_indices(indices: list[HostArray], dims: Any, mode: str = "raise", order: str = "C") -> HostArray:
    """`ravel_multi_index`, of a list of arrays."""
    refuse(not all([each.size for each in indices]))
    return np.asarray(np.ravel_multi_index(tuple(indices), dims, mode, order))  # type: ignore[call-overload]


def _interpolate(x: HostArray, xp: HostArray, fp: HostArray) -> HostArray:
    """`interp` between points that are in order."""
    refuse((xp[1:] < xp[:-1]).any())
    return np.interp(x, xp, fp)


def _slide(call: Callable[..., HostArray]) -> Callable[..., HostArray]:
    """`convolve` or `correlate` of integers that are summed up as such: not of int64 and uint64, which are floats."""

    def compute(a: HostArray, v: HostArray, *mode: str, **options: str) -> HostArray:
        refuse(np.result_type(a, v).kind == "f")
        return call(a, v, *mode, **options)

    return compute


def _count(x: HostArray, weights: Any = None, minlength: int = 0) -> HostArray:
    """`bincount` of numbers that are no larger than arrays are small."""
    refuse(x.ndim != 1 or (x.size and int(x.max()) >= MOST_COMBINED) or minlength > MOST_COMBINED)
    refuse(weights is not None and (x.shape != weights.shape or weights.dtype.char not in "dl?"))
    return np.bincount(x, weights, minlength)


def _count_in_bins(a: HostArray, bins: Any = 10) -> tuple[HostArray, HostArray]:
    """`histogram` in no more bins than arrays are small, or between edges in order."""
    is_number = type(bins) is int
    refuse(type(a) is not np.ndarray or not (is_number or (type(bins) is np.ndarray and bins.ndim == 1)))
    if is_number:
        refuse_large(bins)
    counts, edges = np.histogram(a, bins)
    return counts, edges if is_number else edges.copy()


def _take(a: HostArray, indices: HostArray, axis: int | None = None) -> HostArray:
    """`take` at integers, at which NumPy does not look if there is nothing to take."""
    refuse(indices.dtype.kind != "i" or not a.size)
    refuse_large(indices.size, 1 if axis is None else a.size // a.shape[axis])
    return np.take(a, indices, axis)


def _factorise(a: HostArray) -> HostArray:
    """`cholesky` of a matrix in which LAPACK finds no NaN, which is not positive."""
    factor = np.linalg.cholesky(a)
    refuse(np.isnan(factor).any())
    return factor


def _show_windows(x: HostArray, window_shape: int, axis: int | None = None) -> HostArray:
    """A copy of `sliding_window_view` of one axis, of no more than arrays are small."""
    refuse(x.size * window_shape > MOST_COMBINED)
    return np.array(np.lib.stride_tricks.sliding_window_view(x, window_shape, axis))


def _find_along(arr: HostArray, indices: HostArray, axis: int | None = -1) -> HostArray:
    """`take_along_axis` at integers."""
    refuse(indices.dtype.kind != "i")
    return np.take_along_axis(arr, indices, axis)


def _unpack(
    a: HostArray, axis: int | None = None, count: int | None = None, bitorder: Any = "big"
) -> HostArray:
    """`unpackbits` to no more bits than arrays are small; beyond no elements NumPy shows what memory holds."""
    refuse(not a.size)
    if count is not None:
        refuse_large(1 if axis is None else a.size // a.shape[axis], max(count, 0))
    return np.unpackbits(a, axis, count, bitorder)


def _sort_by_keys(keys: list[HostArray], axis: int = -1) -> HostArray:
    """`lexsort` by a list of arrays of one shape."""
    refuse(not all([each.ndim and each.shape == keys[0].shape for each in keys]))
    return np.lexsort(keys, axis)


def _name_results(call: Callable[..., Any], kind: Any) -> Callable[..., Any]:
    """`call` with its results in a tuple with names."""
    return lambda x: kind._make(call(x))


def _set_call(name: str, **options: int) -> NumPyCall:
    return NumPyCall(
        _take_ordered(getattr(np, name)), _REAL, 2, options_of(**options), alike=True, is_bounded=True
    )


#: By the names of functions as errors have them.
VALUE_ROWS: Final[dict[str, NumPyCall]] = {
    **{name: NumPyCall(getattr(np, name), _INTEGERS, 2, numbers=True, alike=True) for name in ("gcd", "lcm")},
    "unique": NumPyCall(
        _take_ordered(np.unique),
        _REAL,
        options=options_of(
            return_index=_FLAG, return_inverse=_FLAG, return_counts=_FLAG, axis=ArgumentKind.NONE
        ),
        several=True,
    ),
    "unique_values": NumPyCall(_take_ordered(np.unique), _REAL, is_bounded=True),
    **{name: _set_call(name) for name in ("union1d", "setdiff1d", "setxor1d", "intersect1d")},
    "isin": _set_call("isin", assume_unique=_FLAG, invert=_FLAG),
    "argwhere": NumPyCall(np.argwhere, _ANY),
    "compress": NumPyCall(
        _select(np.compress), _ANY, 2, options_of(axis=_INT_OR_NONE, out=ArgumentKind.NONE), is_bounded=True
    ),
    "extract": NumPyCall(_select(np.extract), _ANY, 2, is_bounded=True),
    "digitize": NumPyCall(_take_ordered(_find_bins), _REAL, 2, options_of(right=_FLAG), is_bounded=True),
    "unravel_index": NumPyCall(
        _split_indices, _INTEGERS, options=options_of(shape=_SHAPE, order=_ORDER), several=True
    ),
    "ravel_multi_index": NumPyCall(
        _join_indices,
        _INTEGERS,
        options=options_of(dims=_SHAPE, mode=frozenset({"raise", "wrap", "clip"}), order=_ORDER),
        lists=True,
    ),
    "interp": NumPyCall(_take_ordered(_interpolate), "d", 3, is_bounded=True),
    "nonzero": NumPyCall(np.ndarray.nonzero, _ANY, several=True),
    "flatnonzero": NumPyCall(np.flatnonzero, _ANY),
    "bincount": NumPyCall(
        _count, "d?" + _INTEGERS, 2, is_bounded=True, options=options_of(minlength=ArgumentKind.INT)
    ),
    "histogram": NumPyCall(_take_ordered(_count_in_bins), "dl", 2, numbers=True, several=True),
    **{
        f"unique_{name}": NumPyCall(
            _name_results(_take_ordered(getattr(np, f"unique_{name}")), kind), _REAL, several=True
        )
        for name, kind in {"all": UniqueAll, "counts": UniqueCounts, "inverse": UniqueInverse}.items()
    },
    "lexsort": NumPyCall(
        _take_ordered(_sort_by_keys),
        _REAL,
        options=options_of(axis=ArgumentKind.INT),
        lists=True,
        is_bounded=True,
    ),
    "searchsorted": NumPyCall(
        np.searchsorted,
        _REAL,
        2,
        options_of(side=frozenset({"left", "right"}), sorter=ArgumentKind.NONE),
        is_bounded=True,
    ),
    "sliding_window_view": NumPyCall(
        _show_windows,
        _ANY,
        options=options_of(window_shape=ArgumentKind.INT, axis=ArgumentKind.INT | ArgumentKind.NONE),
    ),
    "take": NumPyCall(_take, _ANY, 2, options_of(axis=_INT_OR_NONE)),
    "take_along_axis": NumPyCall(
        _find_along,
        _ANY,
        2,
        options_of(axis=_INT_OR_NONE),
    ),
    "divmod": NumPyCall(np.divmod, _REAL, 2, numbers=True, alike=True, several=True),
    **{name: NumPyCall(getattr(np, name), "df", several=True) for name in ("frexp", "modf")},
    **{
        name: NumPyCall(getattr(np, name), "df", 2, numbers=True, alike=True)
        for name in ("fmod", "heaviside", "copysign")
    },
    "ldexp": NumPyCall(np.ldexp, "dli", 2),
    "packbits": NumPyCall(np.packbits, "?B", options=options_of(axis=_INT_OR_NONE, bitorder=_BIT_ORDER)),
    "unpackbits": NumPyCall(
        _unpack,
        "B",
        options=options_of(axis=_INT_OR_NONE, count=_INT_OR_NONE, bitorder=_BIT_ORDER),
    ),
    **{
        name: NumPyCall(
            _slide(getattr(np, name)), _INTEGERS, 2, options_of(mode=frozenset({"full", "same", "valid"}))
        )
        for name in ("convolve", "correlate")
    },
    "linalg.solve": NumPyCall(np.linalg.solve, "d", 2),
    "linalg.inv": NumPyCall(np.linalg.inv, "d"),
    "linalg.cholesky": NumPyCall(_factorise, "d"),
}
