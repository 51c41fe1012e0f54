"""Methods of Array by which one of a single element stands for a Python number."""

from __future__ import annotations

from typing import Any

from xarr.base.at_once.obstacles import obstacles
from xarr.dtypes import INTEGER
from xarr.errors import InputError, ShapeError
from xarr.indexing.at_once import element
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.runtime import materialisation
from xarr.runtime.handles import Handle, number_of


class NumberMethods(Handle):
    """The methods of Array that `bool`, `int`, `float`, `complex` and indices of Python's call."""

    __slots__ = ()

    def _scalar(self, wanted: str) -> Any:
        number = element(self)
        if number is None and (self._node.tensor_type.size != 1 or self._node.shape):
            raise InputError(f"{wanted}() wants an array without dimensions, got shape {self._node.shape}")
        return materialisation.to_host(self).item() if number is None else number

    def __bool__(self) -> bool:
        value = number_of(self)
        if not obstacles and (type(value) is bool or type(value) is float or type(value) is int):
            return bool(value)
        if (number := element(self)) is not None:
            return bool(number)
        refuse_dynamic("bool()", self, "bool() of .any() or .all()")
        type_ = self._node.tensor_type
        if type_.size != 1:
            raise ShapeError(
                f"the truth of an array of {type_.size} elements (shape {type_.shape}) is ambiguous; "
                "use .any() or .all(), and (0 < x) & (x < 1) for 0 < x < 1"
            )
        return bool(materialisation.to_host(self).item())

    def __int__(self) -> int:
        if type(value := number_of(self)) is int and not obstacles:
            return value
        return int(self._scalar("int"))

    def __float__(self) -> float:
        if type(value := number_of(self)) is float and not obstacles:
            return value
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if type(value := number_of(self)) is int and not obstacles:
            return value
        if self._node.dtype not in INTEGER:
            raise InputError(f"wanted an array of integers for an index, got {self._node.dtype}")
        return int(self._scalar("index"))
