"""`x.at[i]`: updates that return a new Array.  Names and arguments are those of `jax.numpy.ndarray.at`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from xarr import indexing
from xarr.base.at_once.obstacles import obstacles
from xarr.base.configuration import current as config
from xarr.base.tracebacks import names_errors, shorten
from xarr.base.typing import Array
from xarr.errors import XarrError
from xarr.indexing.bounds import Mode
from xarr.indexing.dropped import warn_if_dropped
from xarr.indexing.small_parts import updated_small
from xarr.lax.core import ArrayLike
from xarr.numpy_api.mathematics import elementwise


class At:
    """`x.at`: index it, then choose what to do, `x.at[1:, 0].add(2)`.  Nothing changes x itself."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> AtIndex:
        return AtIndex(self._array, index)


def _updating(name: str, what: str, combine: Callable[[Any, Any], Any] | None) -> Callable[..., Array]:
    def method(
        self: AtIndex,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Array:
        if mode is None and combine is None and not obstacles:
            updated = updated_small(self._array, self._index, values, sys._getframe(1))
            if updated is not None:
                return updated
        result = indexing.update(self._array, self._index, values, combine, Mode.of(mode))
        if config.debug:
            warn_if_dropped(result, sys._getframe(1))
        return result

    method.__name__ = name
    method.__qualname__ = f"AtIndex.{name}"
    method.__doc__ = f"x with {what}.  Arguments and errors: see AtIndex."
    return method


class AtIndex:
    """An index of an array.  Each method but `get` returns a new Array of the same shape and element type.

    values: broadcast to what the index selects, and cast as by `x[index] = values`.
    mode: what happens to integers outside of [-size, size) of their dimension:
        "error" (None) - IndexError, when the result is computed if the index has no values before,
        "clip" - the nearest element is meant,
        "fill", "drop" - `get` gives `fill_value` there, the others leave them out,
        "wrap" - index % size is meant,
        "promise_in_bounds" - there are none, and nothing is checked.
    fill_value: by default NaN, the least signed and the greatest unsigned integer, True for bools.
    indices_are_sorted, unique_indices: accepted as in JAX; nothing depends on them.

    A statement that only calls one of them, such as `x.at[0].set(1)`, changes nothing: under `config.debug` that is a
    DroppedUpdateWarning.

    An element that the index means more than once is updated once for each time, in order; of values that are
    set the last stays.
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Array, index: Any) -> None:
        self._array = array
        self._index = index

    @names_errors
    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        fill_value: ArrayLike | None = None,
    ) -> Array:
        """x[index].  Arguments and errors: see AtIndex."""
        return indexing.read(self._array, self._index, Mode.of(mode), fill_value)

    def apply(
        self,
        function: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Array:
        """x with x[index] = function(x[index]), for an element-wise function.  Arguments: see AtIndex."""
        try:
            result = indexing.apply(self._array, self._index, function, Mode.of(mode))
        except XarrError as error:
            shorten(error, "apply")
            raise
        if config.debug:
            warn_if_dropped(result, sys._getframe(1))
        return result

    set = _updating("set", "x[index] = values", None)
    add = _updating("add", "x[index] += values", elementwise.add)
    subtract = _updating("subtract", "x[index] -= values", elementwise.subtract)
    multiply = mul = _updating("multiply", "x[index] *= values", elementwise.multiply)
    divide = _updating("divide", "x[index] /= values", elementwise.divide)
    power = _updating("power", "x[index] **= values", elementwise.power)
    min = _updating("min", "x[index] = minimum(x[index], values)", elementwise.minimum)
    max = _updating("max", "x[index] = maximum(x[index], values)", elementwise.maximum)
