"""Scalar expressions: what the body of a compiled loop computes for one element.

A `Value` is one scalar, made by one of a few primitive operations that every processor has.  Everything
else (exp, erf, the rounding to bfloat16) is built from these, once, whatever prints them: LLVM IR on the
CPU, CUDA C++ on the GPU.  Equal values are one object, so a common subexpression is computed once.

    values = Values()
    x = values.argument("x", np.float32)
    y = x * x + 1.0

The operators of Value are the primitives of its dtype; a Python number beside a Value is a constant of the
Value's dtype.  Nothing is promoted: two operands of different dtypes are a TypeError.

    add sub mul neg          float (IEEE 754, rounded to nearest) and integer (modulo 2**bits)
    div rem                  float, rem being C's fmod, exact; those of integers truncate, and the divisor
                             must not be 0 (nor -1 for the smallest integer)
    fma                      x * y + z, rounded once
    sqrt rint floor ceil trunc abs copysign        float; rint rounds to nearest even
    maximum minimum          float, as IEEE 754-2019 has them: NaN if either is, and -0 < +0
    and or xor not           integer and bool
    shl shr                  integer; 0 <= count < bits; shr keeps the sign of signed dtypes
    popcount, count_leading_zeros                  integer
    eq ne lt le gt ge        to bool; with a NaN only ne holds
    select                   predicate, value where true, value where false: both are computed
    rarely                   predicate, usual value, value where true: as select, but the last is costly and
                             seldom wanted, and may be left out where no element wants it
    convert                  to another dtype: rounds to nearest even; float to integer truncates, ends at
                             the extremes, NaN is 0; to bool is "not 0"
    bitcast                  the same bits as another dtype of the same width
    real imag                a part of a complex number
    complex                  a complex number of its two parts

A complex number is a pair: nothing else is done to it but to load, store and carry it.  What is computed of it is
computed of its parts (xarr.compiler.functions.complex_numbers), and a select chooses part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.dtypes import real_part_of

DType: TypeAlias = np.dtype[Any]
Number: TypeAlias = bool | int | float | complex

BOOL: Final[DType] = np.dtype(np.bool_)
INT64: Final[DType] = np.dtype(np.int64)

COMPARISONS: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
#: For each the comparison that gives the same with its operands exchanged.
MIRRORED: Final = {"lt": "gt", "gt": "lt", "ge": "le", "le": "ge", "eq": "eq", "ne": "ne"}


def _one(op: str) -> Callable[[Value], Value]:
    def compute(self: Value) -> Value:
        self._refuse_complex(op)
        return self.values.make(op, (self,), self.dtype)

    return compute


def _two(op: str, dtype: DType | None = None) -> Callable[[Value, Value | Number], Value]:
    def compute(self: Value, other: Value | Number) -> Value:
        if not isinstance(other, Value):
            other = self.constant(other)
        if other.dtype != self.dtype:
            raise TypeError(f"{op} of {self.dtype} and {other.dtype}")
        self._refuse_complex(op)
        return self.values.make(op, (self, other), dtype or self.dtype)

    return compute


def _reflect(op: str) -> Callable[[Value, Number], Value]:
    compute = _two(op)
    return lambda self, other: compute(self.constant(other), self)


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One scalar: the operation that makes it, its operands, its dtype.

    `attribute` completes the operation: the bytes of a constant, the name of an argument, the buffer of a
    load.  Values compare by identity; `Values.make` gives the same object for equal ones.
    """

    op: str
    operands: tuple[Value, ...]
    dtype: DType
    attribute: Any
    values: Values = field(repr=False)

    def constant(self, number: Number | np.generic) -> Value:
        """A constant of this value's dtype."""
        return self.values.constant(number, self.dtype)

    __add__, __radd__ = _two("add"), _reflect("add")
    __sub__, __rsub__ = _two("sub"), _reflect("sub")
    __mul__, __rmul__ = _two("mul"), _reflect("mul")
    __truediv__, __rtruediv__ = _two("div"), _reflect("div")
    __neg__ = _one("neg")
    __and__ = _two("and")
    __or__ = _two("or")
    __xor__ = _two("xor")
    __invert__ = _one("not")
    __lshift__ = _two("shl")
    __rshift__ = _two("shr")

    # Comparisons are methods: `==` stays identity, by which values are kept in sets and dictionaries.
    eq = _two("eq", BOOL)
    ne = _two("ne", BOOL)
    lt = _two("lt", BOOL)
    le = _two("le", BOOL)
    gt = _two("gt", BOOL)
    ge = _two("ge", BOOL)

    rem = _two("rem")
    maximum = _two("maximum")
    minimum = _two("minimum")
    #: This magnitude with the sign of another value.
    copysign = _two("copysign")

    sqrt = _one("sqrt")
    rint = _one("rint")
    floor = _one("floor")
    ceil = _one("ceil")
    trunc = _one("trunc")
    abs = _one("abs")
    popcount = _one("popcount")
    count_leading_zeros = _one("count_leading_zeros")

    def isnan(self) -> Value:
        return self.ne(self)

    def _refuse_complex(self, op: str) -> None:
        if self.dtype.kind == "c":
            raise TypeError(f"{op} of {self.dtype}; compute it of the parts, real() and imag()")

    def real(self) -> Value:
        """The real part of a complex number."""
        return self._part("real", 0)

    def imag(self) -> Value:
        """The imaginary part of a complex number."""
        return self._part("imag", 1)

    def _part(self, op: str, number: int) -> Value:
        if self.dtype.kind != "c":
            raise TypeError(f"{op} of {self.dtype}; only complex numbers have parts")
        if self.op == "complex":
            return self.operands[number]
        return self.values.make(op, (self,), real_part_of(self.dtype))

    def fma(self, factor: Value | Number, addend: Value | Number) -> Value:
        """`self * factor + addend`, rounded once."""
        operands = (self, *(x if isinstance(x, Value) else self.constant(x) for x in (factor, addend)))
        return self.values.make("fma", operands, self.dtype)

    def polynomial(self, coefficients: Iterable[Number | np.generic]) -> Value:
        """By Horner's rule with fma, the coefficient of the highest power first."""
        first, *others = coefficients
        total = self.constant(first)
        for coefficient in others:
            total = total.fma(self, self.constant(coefficient))
        return total

    def select(self, on_true: Value | Number, on_false: Value | Number) -> Value:
        """Where this bool is true the one, else the other; at least one of them is a Value."""
        like = on_true if isinstance(on_true, Value) else on_false
        if not isinstance(like, Value) or self.dtype != BOOL:
            raise TypeError("wanted a bool to select by, and a Value to select")
        true, false = (x if isinstance(x, Value) else like.constant(x) for x in (on_true, on_false))
        if true.dtype != false.dtype:
            raise TypeError(f"select of {true.dtype} and {false.dtype}")
        if like.dtype.kind == "c":
            parts = (self.select(true.real(), false.real()), self.select(true.imag(), false.imag()))
            return self.values.complex(*parts)
        return self.values.make("select", (self, true, false), like.dtype)

    def rarely(self, exceptional: Value, usual: Value) -> Value:
        """`select(exceptional, usual)`, of which the first is costly and seldom wanted."""
        if self.dtype != BOOL or exceptional.dtype != usual.dtype:
            raise TypeError(f"rarely of {self.dtype}, {exceptional.dtype} and {usual.dtype}")
        return self.values.make("rarely", (self, usual, exceptional), usual.dtype)

    def convert(self, dtype: Any) -> Value:
        """The value in another dtype; see the head of this file for what does not fit."""
        wanted = np.dtype(dtype)
        return self if wanted == self.dtype else self.values.make("convert", (self,), wanted)

    def bitcast(self, dtype: Any) -> Value:
        """The bits as another dtype of the same width."""
        wanted = np.dtype(dtype)
        if wanted.itemsize != self.dtype.itemsize:
            raise TypeError(f"bitcast of {self.dtype} to {wanted}")
        return self if wanted == self.dtype else self.values.make("bitcast", (self,), wanted)


class Values:
    """Makes values, each of them once."""

    def __init__(self) -> None:
        self._made: dict[Any, Value] = {}
        #: Results of long formulas, with what computes them of which operands.
        self.formulas: dict[Value, tuple[Callable[..., Value], tuple[Value, ...]]] = {}

    def make(
        self, op: str, operands: tuple[Value, ...], dtype: DType, attribute: Any = None, unique: bool = False
    ) -> Value:
        """The value of an operation on operands that fit; `unique` for one that no other may stand for."""
        key = (op, *map(id, operands), dtype, attribute)
        value = None if unique else self._made.get(key)
        if value is None:
            # The operands live in the value, so that no id is used again.
            value = Value(op, operands, dtype, attribute, self)
            if not unique:
                self._made[key] = value
        return value

    def forget(self) -> None:
        """Let go of all values: they know what made them, in a circle."""
        self._made.clear()
        self.formulas.clear()

    def rebuild(self, root: Value, known: dict[Value, Value]) -> Value:
        """A value with others in place of those that are known, to which all that it is computed of are added."""
        for value in in_order(root):
            if value not in known:
                operands = tuple(known.get(each, each) for each in value.operands)
                is_same = all(new is old for new, old in zip(operands, value.operands, strict=True))
                known[value] = (
                    value if is_same else self.make(value.op, operands, value.dtype, value.attribute)
                )
        return known[root]

    def constant(self, number: Number | np.generic, dtype: Any) -> Value:
        """A constant, rounded to its dtype."""
        wanted = np.dtype(dtype)
        return self.constant_of_bytes(np.asarray(number).astype(wanted).tobytes(), wanted)

    def constant_of_bytes(self, raw: bytes, dtype: DType) -> Value:
        """A constant by its bytes."""
        if dtype.kind != "c":
            return self.make("constant", (), dtype, raw)
        part, half = real_part_of(dtype), dtype.itemsize // 2
        return self.complex(*[self.make("constant", (), part, each) for each in (raw[:half], raw[half:])])

    def complex(self, real: Value, imag: Value) -> Value:
        """A complex number of its parts, floats of one dtype."""
        if real.dtype != imag.dtype or real.dtype.kind != "f":
            raise TypeError(f"complex of {real.dtype} and {imag.dtype}")
        if real.op == "real" and imag.op == "imag" and real.operands == imag.operands:
            return real.operands[0]
        return self.make("complex", (real, imag), np.dtype(f"c{2 * real.dtype.itemsize}"))

    def argument(self, name: str, dtype: Any) -> Value:
        """A scalar from outside, by its name."""
        return self.make("argument", (), np.dtype(dtype), name)


def constant_of(value: Value) -> Any:
    """The number of a constant."""
    return np.frombuffer(value.attribute, value.dtype)[0]


def in_order(*roots: Value) -> list[Value]:
    """The values that `roots` need, operands first, each once."""
    listed: set[Value] = set()
    order: list[Value] = []
    stack = list(roots[::-1])
    while stack:
        value = stack[-1]
        if value not in listed:
            operands = value.operands
            if not listed.issuperset(operands):
                stack += [operand for operand in operands[::-1] if operand not in listed]
                continue
            listed.add(value)
            order.append(value)
        stack.pop()
    return order
