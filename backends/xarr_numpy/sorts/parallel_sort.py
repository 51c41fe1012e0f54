"""NumPy's fastest sort, by several threads, with elements that are equal in the order in which they were."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import numpy as np

from xarr.base.host.memory import pool
from xarr.dtypes import EXTENDED_FLOAT, FLOAT
from xarr_numpy import workers
from xarr_numpy.functions.floating_point import total_order
from xarr_numpy.sorts.stable_order import as_rows

Array = np.ndarray[Any, Any]

#: Elements from which they are shared among threads.
SHARED: Final = 2**17


def sort(x: Array, axis: int) -> Array:
    """A new array, sorted along `axis` and stable: -0 = +0, NaN last.  Not for bfloat16 and float8."""
    assert x.dtype not in EXTENDED_FLOAT, "NumPy does not know their order"
    is_last = axis == x.ndim - 1
    rows = x if is_last else np.moveaxis(x, axis, -1)
    of_half = x.dtype == np.float16
    ordered = _from_integers(_sort_copy(_integers(rows))) if of_half else _sort_copy(rows)
    if x.dtype in FLOAT:
        _restore_order(ordered, rows)
    return np.ascontiguousarray(ordered if is_last else np.moveaxis(ordered, -1, axis))


def _sort_copy(rows: Array) -> Array:
    """A copy whose rows are sorted; equal elements in any order, and NaNs with any bits."""
    result = pool.empty(rows.shape, rows.dtype)
    result[...] = rows
    if result.size < SHARED or workers.count() == 1:
        as_rows(result).sort(axis=-1)
    else:
        _sort_together(result.reshape(-1, result.shape[-1]))
    return result


def _integers(rows: Array) -> Array:
    """Integers in the order of float16 numbers, NaNs last.

    On processors with AVX-512, NumPy 2.1 to 2.4 leaves thousands of float16 numbers unsorted where many are equal;
    its sorts of integers of that size are right there, and no slower elsewhere.
    """
    keys = total_order(rows)
    keys[np.isnan(rows)] = np.iinfo(keys.dtype).max
    return keys


def _from_integers(keys: Array) -> Array:
    # What gives the order of bits gives the bits of the order.
    return total_order(keys.view(np.float16)).view(np.float16)


def _sort_together(rows: Array) -> None:
    """Each thread sorts some of the rows, or of the parts of rows that are few."""
    threads = workers.count()
    if len(rows) >= 2 * threads:
        cuts = [len(rows) * k // (4 * threads) for k in range(4 * threads + 1)]
        parts = [rows[begin:end] for begin, end in pairwise(cuts)]
    else:
        parts = list(rows)
        while len(parts) < threads:
            _share(_halve, parts)
            parts = [half for part in parts for half in np.split(part, [part.size // 2])]
    _share(_sort, parts)


def _halve(part: Array) -> None:
    part.partition(part.size // 2)


def _sort(part: Array) -> None:
    part.sort(axis=-1)


def _share(work: Callable[[Array], None], parts: list[Array]) -> None:
    def phase(_: int, begin: int, end: int) -> None:
        for part in parts[begin:end]:
            work(part)

    workers.run(phase, 0, len(parts), workers.WORTH_A_THREAD, len(parts))


def _restore_order(ordered: Array, rows: Array) -> None:
    """Put what is equal but has different bits, zeros and NaN, where a stable sort puts it.

    NumPy's fastest sort may also change the bits of either.
    """
    zeros = _zeros(ordered)
    if ordered[zeros].size and _has_negative_zero(rows):
        # As many in each row, in the order of the rows.
        ordered[zeros] = rows[rows == 0]
    nan = _nan(ordered)
    if ordered[nan].size:
        ordered[nan] = rows[np.isnan(rows)]


def _has_negative_zero(rows: Array) -> bool:
    bits = rows.view(f"i{rows.itemsize}")
    return bool((bits == np.iinfo(bits.dtype).min).any())


def _zeros(ordered: Array) -> Any:
    """Where the zeros are; one row is searched, as it is sorted."""
    if ordered.ndim != 1:
        return ordered == 0
    zero = ordered.dtype.type(0)
    return slice(int(np.searchsorted(ordered, zero)), int(np.searchsorted(ordered, zero, side="right")))


def _nan(ordered: Array) -> Any:
    if ordered.ndim != 1:
        return np.isnan(ordered)
    return slice(int(np.searchsorted(ordered, ordered.dtype.type(np.nan))), None)
