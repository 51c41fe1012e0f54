"""The operators of Python that small arrays have in machine code, a row for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class NativeOperator:
    """An operator: the C function for arrays, lines for two doubles and for two ints, and the kinds of arrays.

    The lines leave %number and %result, objects, or go to `no`; empty where Python computes.  number: of comparisons,
    as `PyObject_RichCompare` counts them.
    """

    name: str
    call: str
    doubles: str
    ints: str
    kinds: str
    number: int | None = None
    #: Whether floats beside ints are left to Python too.
    is_of_ints: bool = False


def _of_doubles(instruction: str) -> str:
    return f"%float = {instruction} double %a, %b\n  %number = call ptr @PyFloat_FromDouble(double %float)"


def _overflowing(name: str) -> str:
    """Ints beyond the greatest of int64, and the least, which has no opposite, are left to Python."""
    return f"""%i.pair = call {{i64, i1}} @llvm.{name}.with.overflow.i64(i64 %m, i64 %n)
  %i.int = extractvalue {{i64, i1}} %i.pair, 0
  %i.over = extractvalue {{i64, i1}} %i.pair, 1
  %i.least = icmp eq i64 %i.int, $LEAST
  %i.bad = or i1 %i.over, %i.least
  if %i.bad return null, i.fits:
  %result = call ptr @PyLong_FromLongLong(i64 %i.int)"""


def _of_ints(instruction: str) -> str:
    return f"%int = {instruction} i64 %m, %n\n  %result = call ptr @PyLong_FromLongLong(i64 %int)"


def _truth(name: str, instruction: str, operands: str) -> str:
    return f"%{name}.is = {instruction} {operands}\n  %{name} = call ptr @truth(i1 %{name}.is)"


_DIVIDED: Final = """%b.zero = fcmp oeq double %b, 0.0
  if %b.zero return null, divide.floats:
  %float = fdiv double %a, %b
  %number = call ptr @PyFloat_FromDouble(double %float)"""

#: Ints that floats hold, as floats.
_DIVIDED_INTS: Final = """%i.m.exact = call i1 @is_exact(i64 %m)
  %i.n.exact = call i1 @is_exact(i64 %n)
  %i.zero = icmp ne i64 %n, 0
  %i.both = and i1 %i.m.exact, %i.n.exact
  %i.fine = and i1 %i.both, %i.zero
  unless %i.fine return null, i.divide:
  %i.x = sitofp i64 %m to double
  %i.y = sitofp i64 %n to double
  %i.double = fdiv double %i.x, %i.y
  %result = call ptr @PyFloat_FromDouble(double %i.double)"""

#: Towards minus infinity, with the remainder of the divisor's sign, as Python has it.
_DIVIDED_WHOLE: Final = """%i.zero = icmp eq i64 %n, 0
  if %i.zero return null, i.divide:
  %i.quotient = sdiv i64 %m, %n
  %i.product = mul i64 %i.quotient, %n
  %i.rest = sub i64 %m, %i.product
  %i.signs = xor i64 %i.rest, %n
  %i.differ = icmp slt i64 %i.signs, 0
  %i.some = icmp ne i64 %i.rest, 0
  %i.below = and i1 %i.differ, %i.some
  %i.one = zext i1 %i.below to i64
  %i.added = select i1 %i.below, i64 %n, i64 0
  %i.floor = sub i64 %i.quotient, %i.one
  %i.remainder = add i64 %i.rest, %i.added
  %result = call ptr @PyLong_FromLongLong(i64 {result})"""

_SHIFTED: Final = """%i.usual = icmp ult i64 %n, 64
  unless %i.usual return null, i.shift:
  %i.int = {instruction} i64 %m, %n
  %i.back = {back}
  %i.least = icmp ne i64 %i.int, $LEAST
  %i.same = icmp eq i64 %i.back, %m
  %i.fits = and i1 %i.same, %i.least
  unless %i.fits return null, i.made:
  %result = call ptr @PyLong_FromLongLong(i64 %i.int)"""

_INTEGERS: Final = "int64 int32 int16 int8 uint64 uint32 uint16 uint8"
_REALS: Final = f"float64 float32 float16 {_INTEGERS}"
_NUMBERS: Final = f"{_REALS} complex128 complex64"


def _comparisons() -> list[NativeOperator]:
    rows = [("lt", "olt", "slt", 0), ("le", "ole", "sle", 1), ("eq", "oeq", "eq", 2), ("ne", "une", "ne", 3)]
    rows += [("gt", "ogt", "sgt", 4), ("ge", "oge", "sge", 5)]
    return [
        NativeOperator(
            name,
            "PyObject_RichCompare",
            _truth("number", f"fcmp {floats}", "double %a, %b"),
            _truth("result", f"icmp {ints}", "i64 %m, %n"),
            f"{_NUMBERS} bool" if number in (2, 3) else f"{_REALS} bool",
            number,
        )
        for name, floats, ints, number in rows
    ]


def _bitwise(name: str, call: str, instruction: str) -> NativeOperator:
    return NativeOperator(name, call, "", _of_ints(instruction), f"{_INTEGERS} bool", is_of_ints=True)


OPERATORS: Final = (
    NativeOperator("add", "PyNumber_Add", _of_doubles("fadd"), _overflowing("sadd"), _NUMBERS),
    NativeOperator("sub", "PyNumber_Subtract", _of_doubles("fsub"), _overflowing("ssub"), _NUMBERS),
    NativeOperator("mul", "multiply", _of_doubles("fmul"), _overflowing("smul"), _NUMBERS),
    NativeOperator("truediv", "divide", _DIVIDED, _DIVIDED_INTS, "float64 float32 float16 int64 complex128"),
    NativeOperator(
        "floordiv",
        "PyNumber_FloorDivide",
        "",
        _DIVIDED_WHOLE.format(result="%i.floor"),
        _INTEGERS,
        is_of_ints=True,
    ),
    NativeOperator(
        "mod",
        "PyNumber_Remainder",
        "",
        _DIVIDED_WHOLE.format(result="%i.remainder"),
        _INTEGERS,
        is_of_ints=True,
    ),
    _bitwise("and", "PyNumber_And", "and"),
    _bitwise("or", "PyNumber_Or", "or"),
    _bitwise("xor", "PyNumber_Xor", "xor"),
    NativeOperator(
        "lshift",
        "PyNumber_Lshift",
        "",
        _SHIFTED.format(instruction="shl", back="ashr i64 %i.int, %n"),
        _INTEGERS,
        is_of_ints=True,
    ),
    NativeOperator(
        "rshift",
        "PyNumber_Rshift",
        "",
        _SHIFTED.format(instruction="ashr", back="add i64 %m, 0"),
        _INTEGERS,
        is_of_ints=True,
    ),
    *_comparisons(),
)
