"""Methods of ufuncs that NumPy's own compute where arrays are small: `add.at`, `add.reduceat`, `maximum.accumulate`."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from sys import _getframe as frame_of
from typing import Any, Final

import numpy as np
from numpy import ndarray

from xarr import backend as backends
from xarr.base.at_once.numpy_calls import NumPyCall, kind_of
from xarr.base.at_once.numpy_warnings import run_quietly
from xarr.calls.concrete_values import join, small_value, wrap_value
from xarr.calls.host_functions import AXIS, EITHER, REFUSALS, HostArray, HostFunction, functions, refuse
from xarr.calls.small_values import show_small_value, spread
from xarr.ir.types import MOST_PLAIN_BYTES
from xarr.runtime import handles
from xarr.runtime.materialisation import own_constant


def _fold_segments(name: str) -> Callable[..., HostArray]:
    """`reduceat` of a vector of floats, in the order in which xarr adds."""

    def fold(x: HostArray, indices: HostArray, axis: int = 0) -> HostArray:
        refuse(x.ndim != 1 or indices.ndim != 1 or axis not in (0, -1) or not indices.size)
        refuse(indices.dtype.char != "l")
        folds = backends.default_device().backend.fold_segments(name, x, indices)
        refuse(folds is None)
        return folds  # type: ignore[no-any-return]

    return fold


_EXACT: Final = ("add", "multiply", "maximum", "minimum")
#: Methods of ufuncs that are the same, which for floats add in another order, as rows of `ROWS`.
_UFUNC_METHODS: Final[dict[tuple[str, str], tuple[NumPyCall, ...]]] = {
    **{("reduceat", name): (NumPyCall(getattr(np, name).reduceat, "l", 2, AXIS),) for name in _EXACT},
    **{("accumulate", name): (NumPyCall(getattr(np, name).accumulate, "l", 1, AXIS),) for name in _EXACT},
}
for _name in ("maximum", "minimum"):
    _row = NumPyCall(getattr(np, _name).accumulate, "dfl", 1, AXIS, unless=EITHER)
    _UFUNC_METHODS["accumulate", _name] = (_row,)
for _name in _EXACT:
    _UFUNC_METHODS["reduceat", _name] += (NumPyCall(_fold_segments(_name), "dfl", 2, AXIS, is_bounded=True),)
_by_ufunc: Final[dict[tuple[str, str], list[HostFunction]]] = {}


def run_method(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the method `name` of NumPy's ufunc for the one that is the first argument; None where that is not sure."""
    key = name, args[0].__name__ if args else ""
    rows = _UFUNC_METHODS.get(key)
    if rows is None:
        return None
    hosts = _by_ufunc.get(key)
    if hosts is None:
        hosts = _by_ufunc[key] = [HostFunction(row) for row in rows]
        functions.extend(hosts)
    for host in hosts:
        if (result := host.run(args[1:], kwargs)) is not None:
            return result
    return None


#: Functions whose `at` is the same, by the codes of element types: floats are added in the order of the indices.
_UPDATES: Final = {"l": frozenset(_EXACT), "d": frozenset({"add", "subtract"})}
#: The classes of numbers that stand for an array of these types.
_NUMBERS_OF: Final = {"l": (int,), "d": (int, float)}


def update_at(name: str, array: Any, indices: Any, b: Any) -> bool:
    """Do `ufunc.at` of this name on small arrays of one type; False where that is not sure, and nothing is done.

    indices: an Array of int64, or a tuple of them; b: an Array of the type of `array`, or a number that it holds.
    """
    chosen = indices if type(indices) is tuple else (indices,)
    is_number = type(b) is not handles._array_class
    arrays = (array, *chosen) if is_number else (array, *chosen, b)
    values = []
    for each in arrays:
        value = small_value(each) if type(each) is handles._array_class else None
        if type(value) is not ndarray:
            return False
        values.append(value)
    own, *others = values
    positions = others[: len(chosen)]
    char = own.dtype.char
    if name not in _UPDATES.get(char, ()) or len(positions) > own.ndim:
        return False
    updates = prod(own.shape[len(positions) :])
    for value in positions:
        if value.dtype.char != "l":
            return False
    updates *= positions[0].size if len(positions) == 1 else spread(*positions)
    if is_number:
        if type(b) not in _NUMBERS_OF[char] or not (kind_of(b) or type(b) is float):
            return False
    elif others[-1].dtype is not own.dtype:
        return False
    if updates > MOST_PLAIN_BYTES:
        return False
    device = array._device
    for each in arrays:
        if each._device is not device:
            device = join(device, each._device)
    if device is not array._device and array._device is not None:
        return False
    if array._device is None and (device is None or not own_constant(array)):
        return False
    new = own.copy()
    where = positions[0] if len(positions) == 1 else tuple(positions)
    try:
        run_quietly(getattr(np, name).at, new, where, b if is_number else others[-1])
    except RuntimeError:  # in another thread just now
        return False
    except REFUSALS:
        return False
    return show_small_value(array, wrap_value(new, array._device, frame_of(2)))
