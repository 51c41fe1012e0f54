"""What stands for a Python number in a function that `jit` traces.

A Python number gives way to the element type of the array beside it, and arithmetic between two of them
gives a Python number again.  A `Number` behaves so without having a value: it becomes one parameter of the
graph for each element type that it gives way to, so that each call converts the number itself, exactly
as outside of `jit`.  Between two of them int64, float64 and complex128 take the place of Python's own types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xarr import lazy
from xarr.array import Array
from xarr.dtypes import BOOL, INTEGER, default_of
from xarr.errors import TracedValueError
from xarr.functions import elementwise_functions as elementwise
from xarr.host import scalar_kind
from xarr.ir.graph import Node, parameter
from xarr.ir.ops import Convert
from xarr.ir.types import TensorType
from xarr.lax.core import scalar_node

DType = np.dtype[Any]
Kind = type[Any]
Operator = Callable[..., Any]

#: What arithmetic between Python numbers is done in, whatever the default element types.
_WIDE: Final[dict[Kind, DType]] = {kind: np.dtype(kind) for kind in (bool, int, float, complex)}
_KINDS: Final[dict[DType, Kind]] = {dtype: kind for kind, dtype in _WIDE.items()}


class Parameters:
    """The parameters of a graph that stand for one Python number, by element type.

    extra: where new ones are announced to the trace.
    """

    def __init__(self, extra: list[Node]) -> None:
        self.extra = extra
        self.by_dtype: dict[DType, Node] = {}

    def of(self, dtype: DType) -> Node:
        found = self.by_dtype.get(dtype)
        if found is None:
            found = self.by_dtype[dtype] = parameter(TensorType((), dtype))
            self.extra.append(found)
        return found


def _wide(value: Any, arithmetic: bool) -> Array:
    """A number as an Array of the widest type of its kind; bools count as ints in arithmetic."""
    if isinstance(value, Number):
        found = value._exact()
    else:
        kind = scalar_kind(value)
        found = lazy.wrap(scalar_node(value, _WIDE[kind]), None)
    return found.astype(np.int64) if arithmetic and found.dtype in BOOL else found


def _binary(ordinary: Operator, function: Operator, arithmetic: bool, reflected: bool) -> Any:
    def method(self: Number, other: Any) -> Any:
        if lazy.weak_kind(other) is None:
            return ordinary(self, other)
        pair = (other, self) if reflected else (self, other)
        return Number.result(function(*[_wide(value, arithmetic) for value in pair]))

    return method


def _operators(name: str, function: Operator, arithmetic: bool = True) -> tuple[Any, Any]:
    """The operator called `name` and the reflected one."""
    plain, reflected = getattr(Array, f"__{name}__"), getattr(Array, f"__r{name}__")
    return _binary(plain, function, arithmetic, False), _binary(reflected, function, arithmetic, True)


def _comparison(name: str, function: Operator) -> Any:
    ordinary = getattr(Array, f"__{name}__")

    def method(self: Number, other: Any) -> Any:
        if lazy.weak_kind(other) is not None:
            return Number.result(function(_wide(self, False), _wide(other, False)))
        # An int beside integers is compared exactly, also where their type cannot hold it.
        is_int = self._weak is int and getattr(other, "dtype", None) in INTEGER
        return function(self._exact(), other) if is_int else ordinary(self, other)

    return method


def _unary(function: Operator) -> Any:
    def method(self: Number) -> Number:
        return Number.result(function(_wide(self, True)))

    return method


def _divide(x: Array, y: Array) -> Array:
    if x.dtype in INTEGER and y.dtype in INTEGER:  # not the default float, which may be narrower
        x, y = x.astype(np.float64), y.astype(np.float64)
    return elementwise.divide(x, y)


def _power(x: Array, y: Array) -> Array:
    if x.dtype in INTEGER and y.dtype in INTEGER:
        if y._node.traced:
            raise TracedValueError(
                "whether an int to the power of an int is an int or a float depends on the sign of the "
                "exponent, which an argument without value has not; make it a float, or an argument "
                "of static_argnames"
            )
        if int(y) < 0:
            x, y = x.astype(np.float64), y.astype(np.float64)
    return elementwise.pow(x, y)


def _rebind(self: Number, other: Any) -> Any:
    """In-place operators: a Python number is not changed, the name is bound to another."""
    return NotImplemented


class Number(Array):
    """A Python number without a value; an Array of the default element type for whoever does not care."""

    __slots__ = ("_parameters", "_weak", "_wide")
    _weak: Kind  # type: ignore[misc]
    #: The value in the widest type of its kind; None for an argument, which has it as another parameter.
    _wide: Node | None
    _parameters: Parameters | None

    @classmethod
    def argument(cls, kind: Kind, parameters: Parameters) -> Number:
        """A Python number of this kind that is an argument."""
        found = cls(parameters.of(default_of(kind)), None)
        found._weak, found._wide, found._parameters = kind, None, parameters
        return found

    @classmethod
    def result(cls, value: Array) -> Number:
        """The result of arithmetic between Python numbers."""
        kind = _KINDS[value.dtype]
        wide, dtype = value._node, default_of(kind)
        found = cls(wide if dtype == wide.dtype else Node(Convert(dtype), (wide,)), None)
        found._weak, found._wide, found._parameters = kind, wide, None
        return found

    def _to(self, dtype: DType) -> Node:
        if self._parameters is not None:
            return self._parameters.of(dtype)
        assert self._wide is not None
        return self._wide if self._wide.dtype == dtype else Node(Convert(dtype), (self._wide,))

    def _exact(self) -> Array:
        return lazy.wrap(self._to(_WIDE[self._weak]), None)

    __add__, __radd__ = _operators("add", elementwise.add)
    __sub__, __rsub__ = _operators("sub", elementwise.subtract)
    __mul__, __rmul__ = _operators("mul", elementwise.multiply)
    __truediv__, __rtruediv__ = _operators("truediv", _divide)
    __floordiv__, __rfloordiv__ = _operators("floordiv", elementwise.floor_divide)
    __mod__, __rmod__ = _operators("mod", elementwise.remainder)
    __pow__, __rpow__ = _operators("pow", _power)
    __lshift__, __rlshift__ = _operators("lshift", elementwise.bitwise_left_shift)
    __rshift__, __rrshift__ = _operators("rshift", elementwise.bitwise_right_shift)
    __and__, __rand__ = _operators("and", elementwise.bitwise_and, False)
    __or__, __ror__ = _operators("or", elementwise.bitwise_or, False)
    __xor__, __rxor__ = _operators("xor", elementwise.bitwise_xor, False)
    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = _rebind
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _rebind
    __eq__ = _comparison("eq", elementwise.equal)
    __ne__ = _comparison("ne", elementwise.not_equal)
    __lt__, __le__ = _comparison("lt", elementwise.less), _comparison("le", elementwise.less_equal)
    __gt__, __ge__ = _comparison("gt", elementwise.greater), _comparison("ge", elementwise.greater_equal)
    __neg__, __pos__ = _unary(elementwise.negative), _unary(elementwise.positive)
    __abs__, __invert__ = _unary(elementwise.abs), _unary(elementwise.bitwise_invert)

    def __divmod__(self, other: Any) -> tuple[Array, Array]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Array, Array]:
        return other // self, other % self
