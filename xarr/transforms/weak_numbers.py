"""What stands for a Python number in a function that `jit` traces.

A Python number gives way to the element type of the array beside it, and arithmetic between two of them is
Python's own and gives a Python number again.  A `Number` behaves so without having a value: it is an
expression over the arguments that are numbers, and becomes a parameter of the graph for each element type
that it gives way to.  Each call computes the expression and converts it exactly as outside of `jit`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from xarr.arrays.array import Array
from xarr.base.host_arrays import scalar_kind
from xarr.dtypes import INTEGER, default_of
from xarr.errors import TracedValueError
from xarr.ir.graph import Node, parameter
from xarr.ir.types import TensorType
from xarr.numpy_api.mathematics import elementwise
from xarr.runtime import handles

DType = np.dtype[Any]
Kind = type[Any]
Operator = Callable[..., Any]

_INT64: Final = np.dtype(np.int64)
#: With these the operators of Python show which kind of number they give.
_SAMPLES: Final[dict[Kind, Any]] = {bool: True, int: 1, float: 1.0, complex: 1j}


#: Names of expressions, and what they stand for: arguments, and the names before.
Definitions = Sequence[tuple[str, str]]
#: Longer expressions have names, since those that they are part of would grow without bound: in a loop over
#: `a, b = b, a + b` as 2**n.  And Python reads no more than 200 parentheses inside of one another.
_LONGEST: Final = 200


class Numbers:
    """The parameters of one graph that stand for Python numbers, by expression and element type.

    extra: where new ones are announced to the trace; names: those of long expressions, in the order in which they
    can be computed.
    """

    def __init__(self, extra: list[Node]) -> None:
        self.extra = extra
        self.nodes: dict[tuple[str, Kind, DType], Node] = {}
        self.names: dict[str, str] = {}

    def short(self, text: str) -> str:
        """The expression itself, or the name of a long one."""
        return text if len(text) <= _LONGEST else self.names.setdefault(text, f"w{len(self.names)}")

    def definitions(self, texts: Iterable[str]) -> Definitions:
        """The names that these expressions need, in the order in which they can be computed."""
        needed = {name for text in texts for name in _NAME.findall(text)}
        pairs = []
        for text, name in reversed(self.names.items()):
            if name in needed:
                needed.update(_NAME.findall(text))
                pairs.append((name, text))
        return pairs[::-1]

    def of(self, text: str, kind: Kind, dtype: DType) -> Node:
        node = self.nodes.get((text, kind, dtype))
        if node is None:
            node = self.nodes[text, kind, dtype] = parameter(TensorType((), dtype))
            self.extra.append(node)
        return node


_NAME: Final = re.compile(r"\bw\d+\b")


def _literal(value: Any) -> str:
    """A Python number as an expression, made from the number alone, as a class of its own may print anything."""
    kind = scalar_kind(value)
    number = kind(value)
    if kind is complex:
        return f"complex({_literal(number.real)}, {_literal(number.imag)})"
    return f"float('{number}')" if kind is float and not np.isfinite(number) else f"({number!r})"


def _text(value: Any) -> str:
    return value._text if isinstance(value, Number) else _literal(value)


def _sample(value: Any) -> Any:
    return _SAMPLES[value._weak] if isinstance(value, Number) else value


def _is_number(value: Any, numbers: Numbers) -> bool:
    """Whether Python's arithmetic applies: for a Python number, and for a Number of the same function."""
    if isinstance(value, Number):
        return value._numbers is numbers
    return handles.weak_kind(value) is not None


def _binary(name: str, symbol: str, reflected: bool = False) -> Any:
    compute = getattr(operator, f"__{name}__")
    ordinary = getattr(Array, f"__{'r' if reflected else ''}{name}__")

    def method(self: Number, other: Any) -> Any:
        if not _is_number(other, self._numbers):
            return ordinary(self, other)
        first, second = (other, self) if reflected else (self, other)
        if symbol == "**":
            _refuse_power(first, second)
        kind = scalar_kind(compute(_sample(first), _sample(second)))
        return Number.of(f"({_text(first)} {symbol} {_text(second)})", kind, self._numbers)

    return method


def _refuse_power(base: Any, exponent: Any) -> None:
    kinds = {handles.weak_kind(base), handles.weak_kind(exponent)}
    if isinstance(exponent, Number) and kinds <= {bool, int}:
        raise TracedValueError(
            "whether an int to the power of an int is an int or a float depends on the sign of the exponent, "
            "which is not known of a traced argument; make it a float, or name it in static_argnames"
        )


def _pair(name: str, symbol: str) -> tuple[Any, Any]:
    """The operator called `name` and the reflected one."""
    return _binary(name, symbol), _binary(name, symbol, reflected=True)


def _comparison(name: str, symbol: str, function: Operator) -> Any:
    between_numbers = _binary(name, symbol)

    def method(self: Number, other: Any) -> Any:
        # An int beside integers is compared exactly, also where their type cannot hold it.
        if (
            self._weak is int
            and handles.weak_kind(other) is None
            and getattr(other, "dtype", None) in INTEGER
        ):
            return function(handles.wrap(self._convert(_INT64)), other)
        return between_numbers(self, other)

    return method


def _unary(name: str, form: str) -> Any:
    compute = getattr(operator, f"__{name}__")

    def method(self: Number) -> Number:
        kind = scalar_kind(compute(_sample(self)))
        return Number.of(form.format(self._text), kind, self._numbers)

    return method


def _rebind(self: Number, other: Any) -> Any:
    """In-place operators: a Python number is not changed, the name is bound to another."""
    return NotImplemented


class Number(Array):
    """A Python number without a value; an Array of the default element type for callers that do not care."""

    __slots__ = ("_numbers", "_text", "_weak")
    _weak: Kind  # type: ignore[misc]
    #: The expression, over names of arguments.
    _text: str
    _numbers: Numbers

    @classmethod
    def of(cls, text: str, kind: Kind, numbers: Numbers) -> Number:
        """The number that an expression of this kind computes."""
        text = numbers.short(text)
        number = object.__new__(cls)
        handles.Handle.__init__(number, numbers.of(text, kind, default_of(kind)))
        number._weak, number._text, number._numbers = kind, text, numbers
        return number

    def _convert(self, dtype: DType) -> Node:
        return self._numbers.of(self._text, self._weak, dtype)

    __add__, __radd__ = _pair("add", "+")
    __sub__, __rsub__ = _pair("sub", "-")
    __mul__, __rmul__ = _pair("mul", "*")
    __truediv__, __rtruediv__ = _pair("truediv", "/")
    __floordiv__, __rfloordiv__ = _pair("floordiv", "//")
    __mod__, __rmod__ = _pair("mod", "%")
    __pow__, __rpow__ = _pair("pow", "**")
    __lshift__, __rlshift__ = _pair("lshift", "<<")
    __rshift__, __rrshift__ = _pair("rshift", ">>")
    __and__, __rand__ = _pair("and", "&")
    __or__, __ror__ = _pair("or", "|")
    __xor__, __rxor__ = _pair("xor", "^")
    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = _rebind
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _rebind
    __eq__ = _comparison("eq", "==", elementwise.equal)
    __ne__ = _comparison("ne", "!=", elementwise.not_equal)
    __lt__ = _comparison("lt", "<", elementwise.less)
    __le__ = _comparison("le", "<=", elementwise.less_equal)
    __gt__ = _comparison("gt", ">", elementwise.greater)
    __ge__ = _comparison("ge", ">=", elementwise.greater_equal)
    __neg__, __pos__ = _unary("neg", "(-{})"), _unary("pos", "(+{})")
    __abs__, __invert__ = _unary("abs", "abs({})"), _unary("invert", "(~{})")

    def __round__(self, digits: int | None = None) -> Number:
        shown = None if digits is None else operator.index(digits)
        text = f"round({self._text}, {shown})"
        return Number.of(text, scalar_kind(round(_sample(self), shown)), self._numbers)

    def __divmod__(self, other: Any) -> tuple[Array, Array]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Array, Array]:
        return other // self, other % self


# In the messages of Python's own errors, to users who know of Arrays only.
Number.__name__ = Number.__qualname__ = Array.__name__


def compute(text: str, values: dict[str, Any]) -> Any:
    """The value of an expression for these arguments; again a Number if one of them is."""
    return eval(
        text, {"abs": abs, "complex": complex, "float": float, "round": round, "__builtins__": {}}, values
    )


def define(definitions: Definitions, values: dict[str, Any]) -> dict[str, Any]:
    """These arguments, and the values of the expressions that have names."""
    for name, text in definitions:
        values[name] = compute(text, values)
    return values
