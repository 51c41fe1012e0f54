"""The types of graph values.  A type is interned: two equal types are one object, so `is` compares them."""

from __future__ import annotations

import threading
from math import prod
from typing import Any, ClassVar, Final
from weakref import WeakValueDictionary

import numpy as np

from xarr.dtypes import mlir_name, xla_name

#: Held while a type is made: of two equal ones made at once only one may stay.
_lock: Final = threading.RLock()


class TensorType:
    """The type of an array: sizes and element type.  Prints as StableHLO does, `tensor<2x3xf32>`."""

    __slots__ = ("__weakref__", "dtype", "shape")
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    _interned: ClassVar[WeakValueDictionary[tuple[tuple[int, ...], np.dtype[Any]], TensorType]] = (
        WeakValueDictionary()
    )

    def __new__(cls, shape: tuple[int, ...], dtype: np.dtype[Any]) -> TensorType:
        found = cls._interned.get((shape, dtype))
        return cls._new(shape, dtype) if found is None else found

    @classmethod
    def _new(cls, shape: tuple[int, ...], dtype: np.dtype[Any]) -> TensorType:
        with _lock:
            found = cls._interned.get((shape, dtype))
            if found is None:
                found = super().__new__(cls)
                found.shape = shape
                found.dtype = dtype
                cls._interned[shape, dtype] = found
            return found

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        return TensorType(shape, self.dtype)

    def with_dtype(self, dtype: np.dtype[Any]) -> TensorType:
        return TensorType(self.shape, dtype)

    def __str__(self) -> str:
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{mlir_name(self.dtype)}>"

    def short(self) -> str:
        """XLA's spelling, `f32[2,3]`, for messages."""
        return f"{xla_name(self.dtype)}[{','.join(map(str, self.shape))}]"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorType, (self.shape, self.dtype)


class TupleType:
    """The type of a tuple of values: of `tuple`, and of every op with more than one result."""

    __slots__ = ("__weakref__", "elements")
    elements: tuple[Type, ...]
    _interned: ClassVar[WeakValueDictionary[tuple[Type, ...], TupleType]] = WeakValueDictionary()

    def __new__(cls, elements: tuple[Type, ...]) -> TupleType:
        found = cls._interned.get(elements)
        return cls._new(elements) if found is None else found

    @classmethod
    def _new(cls, elements: tuple[Type, ...]) -> TupleType:
        with _lock:
            found = cls._interned.get(elements)
            if found is None:
                found = super().__new__(cls)
                found.elements = elements
                cls._interned[elements] = found
            return found

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"

    def short(self) -> str:
        return f"({', '.join(element.short() for element in self.elements)})"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return TupleType, (self.elements,)


Type = TensorType | TupleType


def packed(types: tuple[Type, ...]) -> Type:
    """The type of an op with these results: the type itself when there is one, else their tuple."""
    return types[0] if len(types) == 1 else TupleType(types)
