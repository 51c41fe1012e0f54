"""The types of graph values.  A type is interned: two equal types are one object, so `is` compares them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import lru_cache
from math import prod
from typing import Any, ClassVar, Final, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from xarr.dtypes import TABLE, mlir_name, xla_name

#: Numbers of dimensions, the sizes of a shape, or one index for each dimension.
Ints = tuple[int, ...]
_T = TypeVar("_T")


def replace_at(items: tuple[_T, ...], axis: int, *new: _T) -> tuple[_T, ...]:
    """The sizes of a shape, or the parts of an index, with others in place of that along an axis, counted from 0."""
    return (*items[:axis], *new, *items[axis + 1 :])


#: The element types as themselves: NumPy's pickles make other objects of them, which are equal and not identical.
_dtypes: Final = {row.dtype: row.dtype for row in TABLE}
#: Bytes of a plain array at most, and the codes of its element types: NumPy's own but float16 and longer ones.
MOST_PLAIN_BYTES: Final = 2**18
#: Combinations of elements of several arrays that are never too many, whatever the shapes are broadcast to.
MOST_COMBINED: Final = MOST_PLAIN_BYTES // np.dtype(np.complex128).itemsize
PLAIN: Final = frozenset("?bBhHiIlLqQfdFD")


def has_plain_elements(dtype: np.dtype[Any]) -> bool:
    """Whether an element type is NumPy's own, and none of ml_dtypes' with the same code; float16 is not."""
    return dtype.isbuiltin == 1 and dtype.char in PLAIN and dtype.isnative


#: Held while a type is made: of two equal ones made at once only one may stay.
_lock: Final = threading.RLock()


class TensorType:
    """The type of an array: sizes and element type.  Prints as StableHLO does, `tensor<2x3xf32>`.

    `dynamic` marks, with one bool for each dimension, those whose size is known only when the program runs;
    for them `shape` holds the upper bound.  It is empty if there are none.
    `is_plain` marks the static types whose elements NumPy has and whose arrays are small, `MOST_PLAIN_BYTES`.
    """

    __slots__ = ("__weakref__", "dtype", "dynamic", "is_plain", "nbytes", "shape")
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    dynamic: tuple[bool, ...]
    nbytes: int
    is_plain: bool
    _interned: ClassVar[WeakValueDictionary[tuple[Any, ...], TensorType]] = WeakValueDictionary()

    def __new__(
        cls, shape: tuple[int, ...], dtype: np.dtype[Any], dynamic: tuple[bool, ...] = ()
    ) -> TensorType:
        known = cls._interned.get((shape, dtype, dynamic) if dynamic else (shape, dtype))
        return cls._new(shape, dtype, dynamic) if known is None else known

    @classmethod
    def _new(cls, shape: tuple[int, ...], dtype: np.dtype[Any], dynamic: tuple[bool, ...]) -> TensorType:
        if not any(dynamic):
            dynamic = ()
        dtype = _dtypes.get(dtype, dtype)
        key = (shape, dtype, dynamic) if dynamic else (shape, dtype)
        with _lock:
            interned = cls._interned.get(key)
            if interned is None:
                interned = super().__new__(cls)
                interned.shape = shape
                interned.dtype = dtype
                interned.dynamic = dynamic
                interned.nbytes = prod(shape) * dtype.itemsize
                is_small = interned.nbytes <= MOST_PLAIN_BYTES and not dynamic
                interned.is_plain = is_small and has_plain_elements(dtype)
                cls._interned[key] = interned
            return interned

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def bounds(self) -> TensorType:
        """The type of arrays that have the bounds as their sizes."""
        return TensorType(self.shape, self.dtype) if self.dynamic else self

    @property
    def dynamic_dimensions(self) -> tuple[int, ...]:
        """The numbers of the dynamic dimensions."""
        return tuple([dim for dim, flag in enumerate(self.dynamic) if flag])

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        """The static type of another shape."""
        return TensorType(shape, self.dtype)

    def with_dtype(self, dtype: np.dtype[Any]) -> TensorType:
        return TensorType(self.shape, dtype, self.dynamic)

    def with_dynamic(self, dimensions: Iterable[int]) -> TensorType:
        """The type whose dynamic dimensions are `dimensions`."""
        marked = set(dimensions)
        return TensorType(self.shape, self.dtype, tuple([dim in marked for dim in range(self.rank)]))

    def __str__(self) -> str:
        element = mlir_name(self.dtype)
        if not self.dynamic:
            return f"tensor<{''.join(f'{size}x' for size in self.shape)}{element}>"
        pairs = list(zip(self.shape, self.dynamic, strict=True))
        sizes = "".join("?x" if dynamic else f"{size}x" for size, dynamic in pairs)
        bounds = ", ".join(str(size) if dynamic else "?" for size, dynamic in pairs)
        return f"tensor<{sizes}{element}, #stablehlo.bounds<{bounds}>>"

    def short(self) -> str:
        """XLA's spelling, `f32[2,3]`, or `f32[<=2,3]` for a size of at most 2, for messages."""
        dynamic = self.dynamic or (False,) * len(self.shape)
        sizes = [f"<={size}" if flag else str(size) for size, flag in zip(self.shape, dynamic, strict=True)]
        return f"{xla_name(self.dtype)}[{','.join(sizes)}]"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorType, (self.shape, self.dtype, self.dynamic)


class TokenType(TensorType):
    """The type of a token, which orders effects and is nothing else; prints as StableHLO does, `!stablehlo.token`.

    Its values are arrays without elements, so that whatever carries arrays carries tokens.  No array has this type, and
    no rule that wants arrays takes one.
    """

    __slots__ = ()
    _only: ClassVar[list[TokenType]] = []

    def __new__(cls) -> TokenType:
        with _lock:
            if not cls._only:
                token = object.__new__(cls)
                token.shape, token.dtype, token.dynamic, token.nbytes = (0,), np.dtype(np.bool_), (), 0
                token.is_plain = False
                cls._only.append(token)
            return cls._only[0]

    def __str__(self) -> str:
        return "!stablehlo.token"

    def short(self) -> str:
        return "token[]"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return TokenType, ()


class TupleType:
    """The type of a tuple of values: of `tuple`, and of every op with more than one result."""

    __slots__ = ("__weakref__", "dynamic", "elements")
    elements: tuple[Type, ...]
    #: Whether one of them has a dynamic dimension, or holds an array that has.
    dynamic: bool
    #: Tuples are not counted: what they hold is.
    nbytes: ClassVar[int] = 0
    _interned: ClassVar[WeakValueDictionary[tuple[Type, ...], TupleType]] = WeakValueDictionary()

    def __new__(cls, elements: tuple[Type, ...]) -> TupleType:
        known = cls._interned.get(elements)
        return cls._new(elements) if known is None else known

    @classmethod
    def _new(cls, elements: tuple[Type, ...]) -> TupleType:
        with _lock:
            interned = cls._interned.get(elements)
            if interned is None:
                interned = super().__new__(cls)
                interned.elements = elements
                interned.dynamic = any([element.dynamic for element in elements])
                cls._interned[elements] = interned
            return interned

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"

    def short(self) -> str:
        return f"({', '.join(element.short() for element in self.elements)})"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return TupleType, (self.elements,)


Type = TensorType | TupleType


def pack_types(types: tuple[Type, ...]) -> Type:
    """The type of an op with these results: the type itself when there is one, else their tuple."""
    return types[0] if len(types) == 1 else TupleType(types)


def array_count(type: Type) -> int:
    """The number of arrays that a value of this type is or holds."""
    return 1 if isinstance(type, TensorType) else sum(map(array_count, type.elements))


def element_types(type: Type) -> tuple[Type, ...]:
    """The types of an op's results: the elements of a tuple type, else the type alone."""
    return type.elements if isinstance(type, TupleType) else (type,)


@lru_cache(maxsize=4096)
def part_of(type: TensorType, shape: tuple[int, ...]) -> TensorType:
    """The type of a part of an array of `type`."""
    return type.with_shape(shape)
