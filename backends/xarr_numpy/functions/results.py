"""Results of programs: arrays that nothing can write to and that keep no larger one alive."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xarr.backend import read_only

Array = np.ndarray[Any, Any]


def finish(value: Any) -> Any:
    """A program's result as a compact array that nothing can write to; tuples of them."""
    if type(value) is np.ndarray and value.base is None:  # the common case: the array owns its memory
        value.flags.writeable = False
        return value
    if isinstance(value, tuple):
        return tuple([finish(element) for element in value])
    array = compact(value)
    if not array.flags.owndata:
        return read_only(array)
    array.flags.writeable = False
    return array


def seal(array: Array) -> Array:
    """A result whose memory is all its own, as an array that nothing can write to."""
    array.flags.writeable = False
    return array


def compact(value: Any) -> Any:
    """The result of a computation as an array that keeps no larger one alive; tuples of them."""
    if isinstance(value, tuple):
        return tuple([compact(element) for element in value])
    array = np.asarray(value)
    base = array.base
    wasteful = base is not None and getattr(base, "nbytes", 0) > 2 * array.nbytes
    return array.copy() if wasteful or (array.size > 1 and 0 in array.strides) else array


SCOPE: Final[dict[str, Any]] = {
    function.__name__: function
    for function in (
        compact,
        finish,
        seal,
    )
}
