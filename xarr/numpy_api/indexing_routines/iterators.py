"""Iterators over indices and elements, for programs that visit one element after the other.

Each element is a step of Python's: expressions of whole arrays, or `lax.fori_loop` under `jit`, take a small part
of the time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy import ndindex

from xarr.base.typing import Array
from xarr.calls.operands import as_array
from xarr.errors import InputError
from xarr.indexing.element_loops import count
from xarr.lax.core import ArrayLike
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.arrays import asarray
from xarr.numpy_api.creation.numpy_readers import call_guarded
from xarr.numpy_api.functional.mapping import common_shape
from xarr.runtime.handles import Handle, common_device
from xarr.runtime.materialisation import evaluate, to_host

__all__ = ["ndenumerate", "ndindex", "nditer"]

#: Flags of an operand of `nditer` that ask for elements to write to.
_WRITING = frozenset(("readwrite", "writeonly"))


class ndenumerate:
    """An iterator over pairs of an index, a tuple of ints, and the element there, an Array without dimensions.

    Source: NumPy, `ndenumerate`.
    """

    def __init__(self, arr: ArrayLike) -> None:
        self._array = as_array(arr)
        refuse_dynamic("ndenumerate", self._array, "lax.fori_loop")
        if not self._array._node.traced:
            evaluate(self._array)
        self._indices = ndindex(self._array.shape)

    def __next__(self) -> tuple[tuple[int, ...], Array]:
        index = next(self._indices)
        count(sys._getframe(1), 1)
        return index, self._array[index]

    def __iter__(self) -> ndenumerate:
        return self


class nditer:
    """NumPy's iterator over the elements of `op`, one array or a list of arrays that broadcast against each other.

    The elements are NumPy's, on the host, and there are all of NumPy's attributes and flags.  Elements of an Array
    are read-only; those of an operand None, which is allocated, and of a NumPy array are written to by
    `element[...] = value`.  `operands` shows what was allocated as an Array with the values of that moment.
    Raises InputError for an Array to write to, ParseError or InputError for what NumPy refuses, BroadcastError for
    shapes that do not broadcast, TracedValueError in a traced function.  Source: NumPy, `nditer`.
    """

    def __init__(
        self,
        op: Any,
        flags: Sequence[str] | None = None,
        op_flags: Sequence[Any] | None = None,
        op_dtypes: Any = None,
        order: str = "K",
        casting: str = "safe",
        op_axes: Sequence[Any] | None = None,
        itershape: Sequence[int] | None = None,
        buffersize: int = 0,
    ) -> None:
        operands = tuple(op) if isinstance(op, list | tuple) else (op,)
        for position, operand in enumerate(operands):
            if isinstance(operand, Handle):
                refuse_dynamic("nditer", operand, "lax.fori_loop")
                _refuse_writing(position, _flags_of(op_flags, position, op))
        if op_axes is None and itershape is None:
            common_shape("nditer", [np.shape(operand) for operand in operands if operand is not None])
        host = [to_host(operand) if isinstance(operand, Handle) else operand for operand in operands]
        options: dict[str, Any] = {
            "flags": flags,
            "op_flags": op_flags,
            "op_dtypes": op_dtypes,
            "order": order,
            "casting": casting,
            "op_axes": op_axes,
            "itershape": itershape,
            "buffersize": buffersize,
        }
        named = {name: value for name, value in options.items() if value is not None}
        self._operands = operands
        self._elements: Any = call_guarded("nditer", lambda: np.nditer(host, **named))

    @property
    def operands(self) -> tuple[Any, ...]:
        """The arrays that were given, and for each None what was allocated, as an Array."""
        return tuple(
            asarray(allocated, copy=True, device=common_device(self._operands))
            if operand is None
            else operand
            for operand, allocated in zip(self._operands, self._elements.operands, strict=True)
        )

    def copy(self) -> nditer:
        """An iterator at the same element."""
        made = object.__new__(nditer)
        made._operands, made._elements = self._operands, self._elements.copy()
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._elements, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # `it.multi_index = (1, 2)` and its like move the iterator.
        if name in ("_operands", "_elements"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._elements, name, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def __next__(self) -> Any:
        return next(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __getitem__(self, index: Any) -> Any:
        return self._elements[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __enter__(self) -> nditer:
        self._elements.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._elements.__exit__(*raised)


def _flags_of(op_flags: Sequence[Any] | None, position: int, op: Any) -> tuple[str, ...]:
    """The flags of one operand: a list for each, or one list for all, as NumPy reads them."""
    if not op_flags:
        return ()
    if isinstance(op_flags[0], str):
        return tuple(op_flags)
    return tuple(op_flags[position]) if position < len(op_flags) else ()


def _refuse_writing(position: int, flags: tuple[str, ...]) -> None:
    asked = [flag for flag in flags if flag in _WRITING]
    if asked:
        raise InputError(
            f"nditer: operand {position} is an Array, whose elements cannot be written one by one, but its flags "
            f"have {asked[0]!r}; give None instead and read it.operands[{position}], or a NumPy array, "
            "or write an expression of whole arrays"
        )
