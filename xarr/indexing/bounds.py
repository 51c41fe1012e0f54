"""Index values outside of a dimension: NumPy's error, or one of JAX's modes.

Values that are known are looked at once, where the index is written.  Of others the graph gets an
`xarr.checked_indices` call, which raises when it runs, and the line that built it is named then.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr import lax
from xarr.base.custom_calls import register_custom_call
from xarr.base.tracebacks import called_function
from xarr.base.typing import Array
from xarr.dtypes import SIGNED, info
from xarr.errors import IndexingError, ValueRangeError
from xarr.ir.graph import Node
from xarr.ir.ops import CustomCall
from xarr.ir.ops.custom_calls import CHECKED_INDICES, AttributeValue
from xarr.ir.source import caller
from xarr.lax.core import put
from xarr.lax.integer_ranges import range_of
from xarr.runtime.handles import wrap

if TYPE_CHECKING:
    from xarr.ir.device import Device

HostArray = np.ndarray[Any, Any]

_INT64: Final = np.dtype(np.int64)


class Mode(Enum):
    """The treatment of an index outside of [-size, size).  Negative ones count from the end in each mode.

    * `ERROR` - IndexError, as NumPy,
    * `CLIP` - the nearest element is meant,
    * `FILL` - a read gives a filler, a write does nothing,
    * `WRAP` - the dimension goes on and on: index % size,
    * `PROMISE` - there is none, and nothing is checked; if there is one, some element is meant, or none.
    """

    ERROR = "error"
    CLIP = "clip"
    FILL = "fill"
    WRAP = "wrap"
    PROMISE = "promise_in_bounds"

    @staticmethod
    def of(mode: object) -> Mode:
        """The mode called `mode` ("drop" is "fill", None is "error"); ValueRangeError for another name."""
        if isinstance(mode, Mode):
            return mode
        member = _MODES.get(mode) if isinstance(mode, str | None) else None
        if member is None:
            names = ", ".join(repr(name) for name in _MODES if name)
            raise ValueRangeError(f"wanted a mode of {names}, got {mode!r}")
        return member


_MODES: Final[dict[str | None, Mode]] = {
    None: Mode.ERROR,
    **{mode.value: mode for mode in Mode},
    "raise": Mode.ERROR,
    "drop": Mode.FILL,
}


def out_of_bounds(
    index: int, axis: int, size: int, shape: tuple[int, ...] | None = None, position: object = None
) -> IndexingError:
    """The error for an index that no element has."""
    whole = "" if shape is None else f" (shape {shape})"
    return IndexingError(f"index {index} is out of bounds for axis {axis} with size {size}{whole}")


def in_bounds(values: HostArray, axis: int, size: int, from_end: bool = True) -> HostArray:
    """`values` with those counted from the end made positive; IndexingError if one is out of bounds."""
    if not values.size:
        return values
    low, high, least = values.min(), values.max(), -size if from_end else 0
    if low < least or high >= size:
        raise out_of_bounds(int(low if low < least else high), axis, size)
    return _from_end(values, size) if low < 0 else values


def _from_end(values: HostArray, size: int) -> HostArray:
    return np.where(values < 0, values + size, values)


def checked_indices(values: HostArray, *, axis: int, size: int, from_end: bool = True) -> HostArray:
    """Run the custom call `xarr.checked_indices`."""
    return in_bounds(values, axis, size, from_end)


register_custom_call(CHECKED_INDICES, checked_indices)


def bring_host_into_bounds(
    values: HostArray,
    axis: int,
    size: int,
    mode: Mode,
    device: Device | None,
    from_end: bool = True,
) -> Array:
    """Known index values as an Array of values in [0, size), or for lax to clip, fill or drop.

    from_end: whether negative ones count from the end, or are out of bounds.
    """
    if values.dtype == np.uint64:
        if mode is Mode.ERROR:
            in_bounds(values, axis, size, False)
        # Beyond int64 an index is out of bounds of any array.
        greatest = np.uint64(info(_INT64).max)
        values = np.mod(values, np.uint64(size)) if mode is Mode.WRAP else np.minimum(values, greatest)
    values = values.astype(_INT64)
    if mode is Mode.ERROR:
        values = in_bounds(values, axis, size, from_end)
    elif mode is Mode.WRAP:
        values = np.mod(values, size)
    elif from_end:
        values = _from_end(values, size)
    return put(values, device)


def bring_into_bounds(indices: Array, axis: int, size: int, mode: Mode, from_end: bool = True) -> Array:
    """`bring_host_into_bounds` of an Array whose values are not known yet."""
    is_signed = indices.dtype in SIGNED
    if is_signed and info(indices.dtype).max < size:
        indices = lax.convert_element_type(indices, _INT64)
    known = range_of(indices._node)
    if known is not None and known[0] >= 0 and known[1] < size:
        return indices
    if mode is Mode.ERROR and (known is None or not -size <= known[0] <= known[1] < size or not from_end):
        return _check_indices(indices, axis, size, from_end)
    if mode is Mode.WRAP:
        fits = info(indices.dtype).max >= size
        return _remainder(indices, size) if fits else indices
    if not is_signed or not from_end or (known is not None and known[0] >= 0):
        return indices
    return lax.select(lax.lt(indices, 0), lax.add(indices, size), indices)


def _remainder(indices: Array, size: int) -> Array:
    """indices % size, which is at least 0; `size` is at least 1."""
    rest = lax.rem(indices, size)
    return lax.select(lax.lt(rest, 0), lax.add(rest, size), rest) if indices.dtype in SIGNED else rest


def _check_indices(indices: Array, axis: int, size: int, from_end: bool) -> Array:
    attributes: tuple[tuple[str, AttributeValue], ...] = (("axis", axis), ("size", size))
    if not from_end:
        attributes = (("axis", axis), ("from_end", False), ("size", size))
    call = CustomCall(CHECKED_INDICES, (indices._node.tensor_type,), attributes)
    location = caller()
    return wrap(Node(call, (indices._node,), None, (*location, called_function()) if location else ()))
