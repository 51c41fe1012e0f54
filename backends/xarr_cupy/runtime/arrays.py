"""Arrays in the memory of a device, and tuples of them, as programs take and return them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, Final

import numpy as np

from xarr.ir.types import TensorType, TupleType, Type
from xarr_cupy.interface import DeviceMemory

#: Bytes of a number in memory: those of the widest, a complex128.
NUMBER_NBYTES: Final = 16
_unpack_words: Final[Callable[[bytes], Any]] = Struct("2q").unpack


class DeviceArray:
    """Elements in row-major order, in memory of a device, from `offset` bytes on."""

    __slots__ = ("__weakref__", "address", "is_claimed", "memory", "offset", "type")

    def __init__(self, memory: DeviceMemory, type: TensorType, offset: int = 0) -> None:
        self.memory, self.type, self.offset = memory, type, offset
        self.address = memory.address + offset
        #: Whether a program may write over it: it was given away, and nothing else sees its memory.
        self.is_claimed = False


class NumberArgument:
    """An argument without dimensions that travels with the call of a program: no memory is copied for it.

    One that comes again is kept on the device.
    """

    __slots__ = ("array", "is_known", "type", "words")

    def __init__(self, number: np.ndarray[Any, Any]) -> None:
        self.type = TensorType((), number.dtype)
        #: Whether a program has had it already, and the array that it is from the second time on.
        self.is_known = False
        self.array: DeviceArray | None = None
        #: Its bytes as two integers.
        self.words: tuple[int, int] = _unpack_words(number.tobytes().ljust(NUMBER_NBYTES, b"\0"))


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
