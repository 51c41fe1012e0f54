"""Values: small ones, which Arrays hold alone, and those that a shape or a refusal depends on.

An Array may hold its value alone (`Handle`), of which ops are computed at once; one that is made of constants alone has
a recipe of its node beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import numpy as np
from numpy import ndarray

from xarr.backend import default_device
from xarr.base.configuration import current as config
from xarr.base.host_arrays import only_numbers
from xarr.base.typing import Array
from xarr.errors import TracedValueError
from xarr.ir.device import Device
from xarr.ir.graph import Node
from xarr.ir.source import here, location_of, user_files
from xarr.ir.types import MOST_PLAIN_BYTES, TensorType, has_plain_elements
from xarr.lax.core import ArrayLike
from xarr.runtime import handles
from xarr.runtime.handles import Handle, Recipe, content_of, wrap_leaf
from xarr.runtime.live_values import values_at_hand
from xarr.runtime.materialisation import to_host
from xarr.runtime.small_ops import pending_value, small_ops

_new: Final = object.__new__
#: NumPy's classes of the element types that Python computes in.
PYTHONS: Final = {np.float64: float, np.int64: int, np.bool_: bool}


def small_value(array: Handle) -> Any:
    """The small value of an Array, as its `_value` holds it; None if it has none, or not where NumPy computes."""
    value, node = array._value, array._shown
    if value is not None or node is None:
        return value
    type_ = node.type
    if type(type_) is not TensorType or not type_.is_plain:
        return None
    value, device = node.value, node.device
    if device is not None and not device.backend.computes_small_ops:
        return None
    is_constant = value is None
    if is_constant:
        value = _pending_value(node)
        if node.value is not None:
            device = node.device
        # Constants have values only beside others, on their device; one that has been computed with is none.
        if node.value is None and device is default_device():
            device = None
        is_constant = node.value is None
    if type(value) is not ndarray or (device is None and not is_constant):
        return None
    held = value if value.ndim else plain_value(value[()])
    # From here to the last line nothing is called: another thread may write to the Array, or give it away.
    if array._shown is node and (node.value is value or (is_constant and node.value is None is device)):
        array._device = device
        array._value = held
        return held
    return None


def _pending_value(node: Any) -> Any:
    table = None if node.traced else small_ops()
    device = default_device() if node.device is None else node.device
    if table is None or not device.backend.computes_small_ops:
        return None
    return pending_value(table, node, device)


def plain_value(value: Any) -> Any:
    """Give what an Array holds for a scalar of NumPy's: a Python number where Python computes in its type."""
    return value.item() if type(value) in PYTHONS else value


def plain_operand(array: ndarray[Any, Any]) -> Any:
    """Give what an Array would hold of an array of NumPy's that stands beside others; None for nothing small."""
    if array.nbytes > MOST_PLAIN_BYTES or not has_plain_elements(array.dtype):
        return None
    return array if array.ndim else plain_value(array[()])


def hold_beside(array: ndarray[Any, Any]) -> Array | None:
    """An Array with a copy of an array of NumPy's, in its order in memory, which goes along with others.

    None for numbers and for what is not small, or not computed with at once.
    """
    device = device_beside()
    if not array.ndim or device is None or plain_operand(array) is None:
        return None
    value = np.array(array)
    return wrap_leaf(TensorType(value.shape, value.dtype), value, device, False, None)


# --- Arrays that hold small values alone ------------------------------------------------------------------------


def wrap_value(value: Any, device: Device, frame: FrameType) -> Array:
    """An Array that holds a small value that nothing else sees, made by the user's line in `frame`."""
    code = frame.f_code
    result = _new(handles._array_class)
    result._shown = None
    result._value = value
    result._device = device
    result._location = (code, frame.f_lasti) if code.co_filename in user_files else location_of(frame)
    return result  # type: ignore[return-value]


#: The element types that NumPy, too, makes arrays of Python's numbers of.
_OF_LISTS: Final = frozenset(map(np.dtype, (np.float64, np.int64, np.bool_, np.complex128)))


def copy_at_once(values: Any, dtype: np.dtype[Any] | None, frame: FrameType) -> Array | None:
    """An Array of a copy of an array of NumPy's, or of lists of Python's numbers; None where that is not sure.

    dtype: the element type that is asked for.
    """
    is_array = type(values) is ndarray
    if not is_array and not only_numbers(values):
        return None
    device = device_beside()
    if device is None or (is_array and not values.ndim):
        return None
    try:
        array = np.array(values)
    except (TypeError, ValueError, OverflowError):
        return None
    if not (has_plain_elements(array.dtype) if is_array else array.dtype in _OF_LISTS):
        return None
    if dtype is not None and dtype is not array.dtype:
        if not has_plain_elements(dtype) or not np.can_cast(array.dtype, dtype):
            return None
        array = array.astype(dtype)
    return wrap_value(array, device.committed, frame) if array.nbytes <= MOST_PLAIN_BYTES else None


#: Recipes that lie over one another at most: what is made of more is a value.
_DEEPEST: Final = 8


def wrap_constant(
    value: Any, function: Callable[..., Any], operands: tuple[Any, ...], frame: FrameType
) -> Array | None:
    """An Array with the small value of constants alone, of which `function` of the operands records a node.

    None where constants have no values.
    """
    state, device, name = _known
    if state[0] is not _config["_global"] or state[1] is not _overrides():
        device, name = _look_up_device()
    if device is None:
        return None
    depth, own = 1, []
    each: Any
    for each in operands:
        if type(each) is handles._array_class:
            # Of a value alone that is its recipe.
            each = each._location if each._shown is None else content_of(each)
            if each.depth >= depth:
                depth = each.depth + 1
        own.append(each)
    if depth > _DEEPEST:
        nodes = [each.node() if type(each) is Recipe else each for each in own]
        devices = [each.device for each in nodes if isinstance(each, Node) and each.device is not None]
        return wrap_value(value, devices[0] if devices else device.uncommitted, frame)
    result = _new(handles._array_class or handles.array_class())
    result._shown = None
    result._value = value
    result._device = result._part = None
    code = frame.f_code
    location = (code, frame.f_lasti) if code.co_filename in user_files else location_of(frame)
    result._location = Recipe(function, own, location, name, depth)
    return result  # type: ignore[return-value]


#: The settings by identity, and the device on which constants are computed under them, None for none, with its name.
_known: tuple[tuple[object, object], Device | None, str] = ((None, None), None, "")
_config: Final = config.__dict__
_overrides: Final = config._overrides.get


def _look_up_device() -> tuple[Device | None, str]:
    global _known
    state, device = config.state(), default_device()
    _known = known = state, device if device.backend.computes_small_ops else None, device.name
    return known[1:]


def device_beside() -> Device | None:
    """Where arrays of NumPy's are computed with at once, to which they are not committed; None for nowhere."""
    state, device, _ = _known
    if state[0] is not _config["_global"] or state[1] is not _overrides():
        device, _ = _look_up_device()
    return None if device is None else device.uncommitted


def wrap_recipe(value: Any, recipe: Recipe) -> Array:
    """An Array with the small value of constants alone, and the recipe of its node."""
    result = _new(handles._array_class)
    result._shown = None
    result._value = value
    result._device = result._part = None
    result._location = recipe
    return result  # type: ignore[return-value]


def join(first: Device | None, second: Device | None) -> Device | None:
    """The device of a result of values on these two; None if both are made of constants, or if they differ."""
    if first is None or second is None:
        return first or second
    return first.committed if first.committed is second.committed else None


# --- values where a shape or a refusal depends on them ----------------------------------------------------------


def is_known(*arrays: Array) -> bool:
    """Whether the values can be looked at: none of the arrays depends on an argument of a traced function.

    To look at them may still mean to compute them, which the docstring of a public function has to say.
    """
    return not any(array._node.traced for array in arrays)


def values_of(array: Array) -> np.ndarray[Any, Any]:
    """The values, computed if need be; those of a constant, of which no backend is asked, as they are."""
    host = values_at_hand(array._node)
    return to_host(array) if host is None else host


def look_at(name: str, what: str, value: ArrayLike, instead: str) -> Any:
    """`value`, of an Array its elements, computed now, as a NumPy array.

    Raises TracedValueError for an Array that depends on an argument of a traced function: `name` needs `what`
    of it; `instead` says what works.
    """
    if not isinstance(value, Handle):
        return value
    refuse_traced(name, what, value, instead)
    return to_host(value)


def refuse_traced(name: str, what: str, array: Handle, instead: str) -> None:
    """TracedValueError for an Array without a value."""
    node = array._node
    if not node.traced:
        return
    asked = here()
    location = f"\nIt was asked for at {asked}" if asked else ""
    location += f"\nIt was built at {node.source}" if node.source else ""
    raise TracedValueError(
        f"{name}: the result depends on {what}, and in a traced function {node.type.short()} has no values yet; "
        f"{instead}, or call it outside{location}"
    )
