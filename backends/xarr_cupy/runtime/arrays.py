"""Arrays in the memory of a device, and tuples of them, as programs take and return them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from xarr.ir.types import TensorType, TupleType, Type
from xarr_cupy.driver import DeviceMemory


class DeviceArray:
    """Elements in row-major order, in memory of a device, from `offset` bytes on."""

    __slots__ = ("__weakref__", "memory", "offset", "type")

    def __init__(self, memory: DeviceMemory, type: TensorType, offset: int = 0) -> None:
        self.memory, self.type, self.offset = memory, type, offset

    @property
    def address(self) -> int:
        return self.memory.address + self.offset


# --- tuples --------------------------------------------------------------------------------------------------


def flatten(values: Sequence[Any]) -> list[Any]:
    """The arrays among values, those in tuples one by one."""
    return [each for value in values for each in (flatten(value) if isinstance(value, tuple) else [value])]


def flatten_types(types: Sequence[Type]) -> list[TensorType]:
    """The types of the arrays among values of these types."""
    flat: list[TensorType] = []
    for type in types:
        if isinstance(type, TupleType):
            flat += flatten_types(type.elements)
        else:
            assert isinstance(type, TensorType)
            flat.append(type)
    return flat


def pack(types: Sequence[Type], arrays: Iterable[Any]) -> tuple[Any, ...]:
    """The reverse of `flatten`: values of these types."""
    # No function inside, which would be a cycle and keep the arrays until the garbage collector comes by.
    return _take_values(types, iter(arrays))


def _take_values(types: Sequence[Type], left: Iterator[Any]) -> tuple[Any, ...]:
    """Values of these types, of the arrays that are left."""
    return tuple(
        [_take_values(type.elements, left) if isinstance(type, TupleType) else next(left) for type in types]
    )
