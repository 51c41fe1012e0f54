"""Sorting, in NumPy's order: NaN comes last; -0.0 and 0.0 are equal."""

from __future__ import annotations

from typing import Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.operands import as_array
from xarr.calls.remembered_calls import remembers_calls
from xarr.errors import ArgumentError, ValueRangeError
from xarr.lax.core import ArrayLike, flag
from xarr.numpy_api.sorting.order import sort_by_keys
from xarr.shapes import normalize_axis

__all__ = ["argsort", "sort"]

_KINDS: Final = ("quicksort", "mergesort", "heapsort", "stable")


def _check_kind(name: str, kind: str) -> None:
    """An error unless `kind` is NumPy's name of an algorithm, or the beginning of one: all mean one stable sort."""
    if not isinstance(kind, str):
        raise ArgumentError(f"{name}: wanted a string or None for kind, got {kind!r}")
    if not kind or not any(known.startswith(kind.lower()) for known in _KINDS):
        raise ValueRangeError(f"{name}: wanted a kind of None, {', '.join(map(repr, _KINDS))}, got {kind!r}")


def _prepare(
    name: str, a: ArrayLike, axis: int | None, kind: str | None, order: object, descending: bool
) -> tuple[Array, int]:
    """The array, backwards if the sorted one is to be turned round, and the dimension to sort."""
    if kind is not None:
        _check_kind(name, kind)
    if order is not None:
        raise ArgumentError(
            f"{name}: order= names fields of a structured array, and xarr has none; got {order!r}"
        )
    array = as_array(a)
    if axis is None:
        array, axis = lax.reshape(array, (array.size,)), 0
    dimension = normalize_axis(axis, len(array.shape))
    # Reversing before and after keeps equal elements in their order.
    return (lax.rev(array, (dimension,)) if descending else array), dimension


@remembers_calls
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Array:
    """The elements in order along `axis`, or flattened and in order for axis None.

    Complex numbers go by real, then imaginary part; those with NaN come last, in this order: NaN as imaginary part,
    as real part, as both.  Every sort is stable, so `kind` and `stable` change nothing.  `descending` puts NaN first.
    Raises AxisError, also for a scalar, ValueRangeError for an unknown kind.  Source: NumPy and Array API, `sort`.
    """
    descending = flag("sort", "descending", descending)
    flag("sort", "stable", stable)
    array, dimension = _prepare("sort", a, axis, kind, order, descending)
    ((result,), _) = sort_by_keys((array,), (), dimension)
    return lax.rev(result, (dimension,)) if descending else result


@remembers_calls
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Array:
    """The int64 indices that put the elements in order along `axis`; equal ones stay in theirs.

    Arguments and errors as `sort`.  Source: NumPy and Array API, `argsort`.
    """
    descending = flag("argsort", "descending", descending)
    flag("argsort", "stable", stable)
    array, dimension = _prepare("argsort", a, axis, kind, order, descending)
    indices = lax.broadcasted_iota(np.int64, array.shape, dimension)
    if array._node.tensor_type.dynamic:  # only the live elements are reversed
        indices = lax.add(indices, lax.full_like(array, 0, np.int64))
    if descending:
        indices = lax.rev(indices, (dimension,))
    _, (result,) = sort_by_keys((array,), (indices,), dimension)
    return lax.rev(result, (dimension,)) if descending else result
