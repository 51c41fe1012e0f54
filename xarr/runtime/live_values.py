"""Values as backends hold them: where they can be looked at, and those of arrays with dynamic dimensions.

The value of such an array is a tuple of a buffer of the bounds and the live sizes.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from xarr.ir.device import Device
from xarr.ir.graph import Node, data
from xarr.ir.ops import Constant
from xarr.ir.types import TensorType, Type
from xarr.runtime.pending import StandIn

#: The values of nodes that are made of constants alone, each with its device.
constants: Final[WeakKeyDictionary[Node, tuple[Device, Any]]] = WeakKeyDictionary()


def values_at_hand(node: Node) -> np.ndarray[Any, Any] | None:
    """The values of an array without dynamic dimensions where reading them costs nothing.

    Those of a constant, and what a backend has computed in the memory of the host; None for all others.
    """
    if isinstance(node.op, Constant):
        return node.op.array
    if type(node) is StandIn:
        node.is_looked_at = True
    if node.value is None or node.device is None or not node.device.backend.is_on_host:
        return None
    node.exposed = True
    values: np.ndarray[Any, Any] = node.device.backend.to_host(node.value)
    return values


def live_part(type: TensorType, value: Any, device: Device) -> np.ndarray[Any, Any]:
    """The live part, read-only, of a value of a dynamic type on `device`."""
    buffer, *sizes = [device.backend.to_host(part) for part in value]
    index = [slice(None)] * type.rank
    for dim, size in zip(type.dynamic_dimensions, sizes, strict=True):
        index[dim] = slice(int(size))
    view: np.ndarray[Any, Any] = buffer[tuple(index)]
    view.flags.writeable = False
    return view


def live_leaf(array: np.ndarray[Any, Any], type: TensorType, device: Device) -> Node:
    """A leaf of a dynamic type on `device` whose live part is `array`."""
    buffer = np.zeros(type.shape, type.dtype)
    buffer[tuple(map(slice, array.shape))] = array
    sizes = [np.array(array.shape[dim], np.int32) for dim in type.dynamic_dimensions]
    return data(type, tuple([device.backend.from_host(part) for part in (buffer, *sizes)]), device)


def moved_value(type: Type, value: Any, origin: Device, device: Device) -> Any:
    """A value of any type on `origin`, on `device`; itself if that is the same."""
    if origin.committed is device.committed:
        return value
    if isinstance(type, TensorType) and not type.dynamic:
        return device.backend.from_device(value, origin.backend)
    if isinstance(type, TensorType):
        return tuple([device.backend.from_device(part, origin.backend) for part in value])
    pairs = zip(type.elements, value, strict=True)
    return tuple([moved_value(element, part, origin, device) for element, part in pairs])
