"""LLVM IR of operators on small values: floats and ints in registers, arrays by NumPy's operators.

The rules are those of `xarr.calls.small_values`, less what is rare: any pair that is not listed here is left to
Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from xarr.ir.types import MOST_COMBINED
from xarr_numpy.compiled.small_arrays.objects import KINDS, text


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
  br i1 %i.bad, label %no, label %i.fits
i.fits:
  %result = call ptr @PyLong_FromLongLong(i64 %i.int)"""


def _of_ints(instruction: str) -> str:
    return f"%int = {instruction} i64 %m, %n\n  %result = call ptr @PyLong_FromLongLong(i64 %int)"


def _truth(name: str, instruction: str, operands: str) -> str:
    return f"%{name}.is = {instruction} {operands}\n  %{name} = call ptr @truth(i1 %{name}.is)"


_DIVIDED: Final = """%b.zero = fcmp oeq double %b, 0.0
  br i1 %b.zero, label %no, label %divide.floats
divide.floats:
  %float = fdiv double %a, %b
  %number = call ptr @PyFloat_FromDouble(double %float)"""

#: Ints that floats hold, as floats.
_DIVIDED_INTS: Final = """%i.m.exact = call i1 @is_exact(i64 %m)
  %i.n.exact = call i1 @is_exact(i64 %n)
  %i.zero = icmp ne i64 %n, 0
  %i.both = and i1 %i.m.exact, %i.n.exact
  %i.fine = and i1 %i.both, %i.zero
  br i1 %i.fine, label %i.divide, label %no
i.divide:
  %i.x = sitofp i64 %m to double
  %i.y = sitofp i64 %n to double
  %i.double = fdiv double %i.x, %i.y
  %result = call ptr @PyFloat_FromDouble(double %i.double)"""

#: Towards minus infinity, with the remainder of the divisor's sign, as Python has it.
_DIVIDED_WHOLE: Final = """%i.zero = icmp eq i64 %n, 0
  br i1 %i.zero, label %no, label %i.divide
i.divide:
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
  br i1 %i.usual, label %i.shift, label %no
i.shift:
  %i.int = {instruction} i64 %m, %n
  %i.back = {back}
  %i.least = icmp ne i64 %i.int, $LEAST
  %i.same = icmp eq i64 %i.back, %m
  %i.fits = and i1 %i.same, %i.least
  br i1 %i.fits, label %i.made, label %no
i.made:
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
    NativeOperator("mul", "PyNumber_Multiply", _of_doubles("fmul"), _overflowing("smul"), _NUMBERS),
    NativeOperator(
        "truediv", "PyNumber_TrueDivide", _DIVIDED, _DIVIDED_INTS, "float64 float32 float16 int64"
    ),
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

#: Of two values: what `left` and `right` give, as a new reference; null, without an error, where Python computes.
#: weak: one of them is a Python number of the user's, which takes the type of the other.
_COMPUTE: Final = """
define internal ptr @compute.$NAME(ptr %left, ptr %right, i1 %weak) {
entry:
  %left.set = icmp ne ptr %left, null
  %right.set = icmp ne ptr %right, null
  %both.set = and i1 %left.set, %right.set
  br i1 %both.set, label %look, label %no
look:
  %left.class = call ptr @class_of(ptr %left)
  %right.class = call ptr @class_of(ptr %right)
  %left.float = icmp eq ptr %left.class, @PyFloat_Type
  %right.float = icmp eq ptr %right.class, @PyFloat_Type
  %left.int = icmp eq ptr %left.class, @PyLong_Type
  %right.int = icmp eq ptr %right.class, @PyLong_Type
  %left.number = or i1 %left.float, %left.int
  %right.number = or i1 %right.float, %right.int
  %numbers = and i1 %left.number, %right.number
  br i1 %numbers, label %scalars, label %arrays
scalars:
  %ints = and i1 %left.int, %right.int
  br i1 %ints, label %read.ints, label $FLOATS
read.ints:
  %m = call i64 @integer(ptr %left)
  %n = call i64 @integer(ptr %right)
  %m.least = icmp eq i64 %m, $LEAST
  %n.least = icmp eq i64 %n, $LEAST
  %any.least = or i1 %m.least, %n.least
  br i1 %any.least, label %no, label %of.ints
of.ints:
  $INTS
  ret ptr %result
$DOUBLES
arrays:
  %made = call ptr @arrays(ptr %left, ptr %right, i1 %weak, i64 $KINDS, ptr @$CALL)
  ret ptr %made
no:
  ret ptr null
}
"""

#: A comparison as a C function of two objects.
_COMPARE: Final = """
define internal ptr @compare.$NAME(ptr %left, ptr %right) {
  %made = call ptr @PyObject_RichCompare(ptr %left, ptr %right, i32 $NUMBER)
  ret ptr %made
}
"""

_DOUBLES: Final = """of.floats:
  br i1 %left.float, label %left.is, label %left.convert
left.is:
  %left.double = call double @PyFloat_AsDouble(ptr %left)
  br label %then
left.convert:
  %left.integer = call i64 @integer(ptr %left)
  %left.exact = call i1 @is_exact(i64 %left.integer)
  %left.converted = sitofp i64 %left.integer to double
  br i1 %left.exact, label %then, label %no
then:
  %a = phi double [ %left.double, %left.is ], [ %left.converted, %left.convert ]
  br i1 %right.float, label %right.is, label %right.convert
right.is:
  %right.double = call double @PyFloat_AsDouble(ptr %right)
  br label %both.doubles
right.convert:
  %right.integer = call i64 @integer(ptr %right)
  %right.exact = call i1 @is_exact(i64 %right.integer)
  %right.converted = sitofp i64 %right.integer to double
  br i1 %right.exact, label %both.doubles, label %no
both.doubles:
  %b = phi double [ %right.double, %right.is ], [ %right.converted, %right.convert ]
  $OWN
  ret ptr %number
"""

#: Whether NumPy takes a number beside an array as the op does.
_FITTING: Final = """
define internal i1 @fits(ptr %number, ptr %array) {
  %kind = call i64 @kind_of(ptr %array)
  %is.float = call i1 @is_of(ptr %number, ptr @PyFloat_Type)
  br i1 %is.float, label %float, label %int
float:
  %is.double = icmp eq i64 %kind, 1
  %is.complex = icmp eq i64 %kind, 4
  %is.whole = icmp eq i64 %kind, 2
  %either = or i1 %is.double, %is.complex
  %taken = or i1 %either, %is.whole
  ret i1 %taken
int:
  %value = call i64 @integer(ptr %number)
  %exact = call i1 @is_exact(i64 %value)
  %double = icmp eq i64 %kind, 1
  %complex = icmp eq i64 %kind, 4
  %whole = icmp eq i64 %kind, 2
  %wide = or i1 %double, %complex
  %known = or i1 %wide, %whole
  %fits = and i1 %known, %exact
  ret i1 %fits
}
; Of two values of which one is an array, or a scalar of NumPy's, by NumPy's operator: a C function of two objects.
define internal ptr @arrays(ptr %left, ptr %right, i1 %weak, i64 %kinds, ptr %function) {
  %left.class = call ptr @class_of(ptr %left)
  %right.class = call ptr @class_of(ptr %right)
  %left.float = icmp eq ptr %left.class, @PyFloat_Type
  %right.float = icmp eq ptr %right.class, @PyFloat_Type
  %left.int = icmp eq ptr %left.class, @PyLong_Type
  %right.int = icmp eq ptr %right.class, @PyLong_Type
  %left.number = or i1 %left.float, %left.int
  %right.number = or i1 %right.float, %right.int
  %left.array = call i1 @is_ndarray(ptr %left)
  %right.array = call i1 @is_ndarray(ptr %right)
  %both = and i1 %left.array, %right.array
  br i1 %both, label %two, label %one
two:
  %left.kind = call i64 @kind_of(ptr %left)
  %right.kind = call i64 @kind_of(ptr %right)
  %alike = icmp eq i64 %left.kind, %right.kind
  br i1 %alike, label %shapes, label %no
shapes:
  %same = call i1 @is_same_shape(ptr %left, ptr %right)
  br i1 %same, label %ask, label %count
count:
  %left.size = call i64 @size(ptr %left)
  %right.size = call i64 @size(ptr %right)
  %pairs = mul i64 %left.size, %right.size
  %few = icmp sle i64 %pairs, $MOSTPAIRS
  br i1 %few, label %ask, label %no
one:
  %beside = or i1 %left.number, %right.number
  %an.array = or i1 %left.array, %right.array
  %mixed = and i1 %beside, %an.array
  br i1 %mixed, label %fit, label %scalar
; A scalar of NumPy's beside one of its type, or beside a small int.
scalar:
  %left.scalar.kind = call i64 @scalar_kind(ptr %left)
  %right.scalar.kind = call i64 @scalar_kind(ptr %right)
  %left.scalar = icmp ne i64 %left.scalar.kind, 0
  %right.scalar = icmp ne i64 %right.scalar.kind, 0
  %any.kind = or i64 %left.scalar.kind, %right.scalar.kind
  %two.scalars = and i1 %left.scalar, %right.scalar
  br i1 %two.scalars, label %pair, label %beside.scalar
pair:
  %one.class = icmp eq ptr %left.class, %right.class
  br i1 %one.class, label %ask.kind, label %no
beside.scalar:
  %an.int = or i1 %left.int, %right.int
  %a.scalar = or i1 %left.scalar, %right.scalar
  %one.each = and i1 %an.int, %a.scalar
  %known.pair = and i1 %one.each, %weak
  br i1 %known.pair, label %small, label %no
small:
  %the.int = select i1 %left.int, ptr %left, ptr %right
  %whole = call i64 @integer(ptr %the.int)
  %above = icmp sge i64 %whole, -$SMALL
  %below = icmp sle i64 %whole, $SMALL
  %fits.all = and i1 %above, %below
  br i1 %fits.all, label %ask.kind, label %no
fit:
  %array = select i1 %left.array, ptr %left, ptr %right
  %beside.it = select i1 %left.array, ptr %right, ptr %left
  %taken.so = call i1 @fits(ptr %beside.it, ptr %array)
  br i1 %taken.so, label %ask, label %no
ask:
  %first = select i1 %left.array, ptr %left, ptr %right
  %array.kind = call i64 @kind_of(ptr %first)
  br label %ask.kind
ask.kind:
  %kind = phi i64 [ %array.kind, %ask ], [ %any.kind, %pair ], [ %any.kind, %small ]
  %bit = shl i64 1, %kind
  %taken = and i64 %bit, %kinds
  %known = icmp ne i64 %taken, 0
  br i1 %known, label %call, label %no
call:
  %bools = call ptr @state_word(i64 $NUMPYBOOL)
  call void @Py_IncRef(ptr %left)
  call void @Py_IncRef(ptr %right)
  %context = call ptr @state_word(i64 $CONTEXT)
  %entered = call i32 @PyContext_Enter(ptr %context)
  %busy = icmp ne i32 %entered, 0
  br i1 %busy, label %refused, label %quiet
quiet:
  %made = call ptr %function(ptr %left, ptr %right)
  %left.quiet = call i32 @PyContext_Exit(ptr %context)
  call void @Py_DecRef(ptr %left)
  call void @Py_DecRef(ptr %right)
  %lacks = icmp eq ptr %made, null
  br i1 %lacks, label %clear, label %check
check:
  %is.array = call i1 @is_ndarray(ptr %made)
  br i1 %is.array, label %give, label %ask.scalar
ask.scalar:
  %is.scalar = call i1 @is_scalar(ptr %made)
  br i1 %is.scalar, label %give, label %ask.bool
ask.bool:
  %is.bool = call i1 @is_of(ptr %made, ptr %bools)
  br i1 %is.bool, label %bool, label %other
bool:
  %text = call i32 @PyObject_IsTrue(ptr %made)
  call void @Py_DecRef(ptr %made)
  %is.true = icmp eq i32 %text, 1
  %plain = call ptr @truth(i1 %is.true)
  ret ptr %plain
give:
  ret ptr %made
other:
  call void @Py_DecRef(ptr %made)
  ret ptr null
refused:
  call void @Py_DecRef(ptr %left)
  call void @Py_DecRef(ptr %right)
  br label %clear
clear:
  call void @PyErr_Clear()
  ret ptr null
no:
  ret ptr null
}
; The value of an operand, and whether it is on the device: of an Array, or a number of Python's itself; null for no.
define internal ptr @operand(ptr %object, ptr %device) {
  %is.array = call i1 @is_array(ptr %object)
  br i1 %is.array, label %array, label %number
array:
  %own = call ptr @word(ptr %object, i64 $AT_DEVICE)
  %same = icmp eq ptr %own, %device
  br i1 %same, label %look, label %no
look:
  %value = call ptr @word(ptr %object, i64 $AT_VALUE)
  ret ptr %value
number:
  %is.float = call i1 @is_of(ptr %object, ptr @PyFloat_Type)
  %is.int = call i1 @is_of(ptr %object, ptr @PyLong_Type)
  %is = or i1 %is.float, %is.int
  br i1 %is, label %yes, label %no
yes:
  ret ptr %object
no:
  ret ptr null
}
"""

#: What the methods of `self op other`, `other op self` and `self op= other` do, by the function of two values.
_METHODS: Final = """
define internal ptr @expression(ptr %self, ptr %other, ptr %compute, i64 %fallback, i1 %reflected) {
  %is.array = call i1 @is_array(ptr %self)
  %is.free = call i1 @is_free()
  %usual = and i1 %is.array, %is.free
  br i1 %usual, label %look, label %slow
look:
  %own = call ptr @value_of(ptr %self)
  %device = call ptr @word(ptr %self, i64 $AT_DEVICE)
  %their = call ptr @operand(ptr %other, ptr %device)
  call void @Py_IncRef(ptr %device)
  %their.array = call i1 @is_array(ptr %other)
  %weak = xor i1 %their.array, true
  %first = select i1 %reflected, ptr %their, ptr %own
  %second = select i1 %reflected, ptr %own, ptr %their
  %value = call ptr %compute(ptr %first, ptr %second, i1 %weak)
  %unsure = icmp eq ptr %value, null
  br i1 %unsure, label %leave, label %wrap
wrap:
  %result = call ptr @wrap(ptr %value, ptr %device, i64 0)
  ret ptr %result
leave:
  call void @drop(ptr %device)
  br label %slow
slow:
  %method = call ptr @state_word(i64 %fallback)
  %made = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %method, ptr %self, ptr %other, ptr null)
  ret ptr %made
}
define internal ptr @statement(ptr %self, ptr %other, ptr %compute, i64 %fallback) {
  %is.array = call i1 @is_array(ptr %self)
  %is.free = call i1 @is_free()
  %usual = and i1 %is.array, %is.free
  br i1 %usual, label %look, label %slow
look:
  %is.part = call i1 @is_part(ptr %self)
  br i1 %is.part, label %slow, label %whole
whole:
  %own = call ptr @value_of(ptr %self)
  %device = call ptr @word(ptr %self, i64 $AT_DEVICE)
  %their = call ptr @operand(ptr %other, ptr %device)
  %their.array = call i1 @is_array(ptr %other)
  %weak = xor i1 %their.array, true
  %value = call ptr %compute(ptr %own, ptr %their, i1 %weak)
  %unsure = icmp eq ptr %value, null
  br i1 %unsure, label %slow, label %show
show:
  %line = call ptr @locate(i64 0)
  %failed = icmp eq ptr %line, null
  br i1 %failed, label %raise, label %ask
raise:
  call void @Py_DecRef(ptr %value)
  ret ptr null
ask:
  %now = call ptr @word(ptr %self, i64 $AT_VALUE)
  %still = icmp eq ptr %now, %own
  br i1 %still, label %compare, label %leave
compare:
  %alike = call i1 @is_alike(ptr %own, ptr %value)
  br i1 %alike, label %put, label %leave
put:
  %none1 = call ptr @counted(ptr @_Py_NoneStruct)
  %none2 = call ptr @counted(ptr @_Py_NoneStruct)
  %a = call ptr @exchange(ptr %self, i64 $AT_LOCATION, ptr %line)
  %b = call ptr @exchange(ptr %self, i64 $AT_VALUE, ptr %value)
  %c = call ptr @exchange(ptr %self, i64 $AT_SHOWN, ptr %none1)
  %d = call ptr @exchange(ptr %self, i64 $AT_SHARE, ptr %none2)
  call void @drop(ptr %a)
  call void @drop(ptr %b)
  call void @drop(ptr %c)
  call void @drop(ptr %d)
  call void @Py_IncRef(ptr %self)
  ret ptr %self
leave:
  call void @Py_DecRef(ptr %line)
  call void @Py_DecRef(ptr %value)
  br label %slow
slow:
  %method = call ptr @state_word(i64 %fallback)
  %made = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %method, ptr %self, ptr %other, ptr null)
  ret ptr %made
}
"""

_EXPRESSION: Final = """
define ptr @method.$METHOD(ptr %self, ptr %other) {
  %made = call ptr @expression(ptr %self, ptr %other, ptr @compute.$NAME, i64 $FALLBACK, i1 $REFLECTED)
  ret ptr %made
}
"""
_STATEMENT: Final = """
define ptr @method.$METHOD(ptr %self, ptr %other) {
  %made = call ptr @statement(ptr %self, ptr %other, ptr @compute.$NAME, i64 $FALLBACK)
  ret ptr %made
}
"""

#: Whether an Array may show a new value in place of the old one: of the same class, and element type and shape.
_ALIKE: Final = """
define internal i1 @is_alike(ptr %old, ptr %new) {
  %class = call ptr @class_of(ptr %old)
  %same = call i1 @is_of(ptr %new, ptr %class)
  br i1 %same, label %classes, label %no
classes:
  %is.array = call i1 @is_ndarray(ptr %old)
  br i1 %is.array, label %arrays, label %yes
arrays:
  %old.descr = call ptr @word(ptr %old, i64 $DESCR)
  %new.descr = call ptr @word(ptr %new, i64 $DESCR)
  %descr = icmp eq ptr %old.descr, %new.descr
  br i1 %descr, label %shapes, label %no
shapes:
  %shape = call i1 @is_same_shape(ptr %old, ptr %new)
  ret i1 %shape
yes:
  ret i1 true
no:
  ret i1 false
}
"""


def shared_text(fields: Mapping[str, int]) -> str:
    """The functions that those of all operators call."""
    more = {"MOSTPAIRS": str(MOST_COMBINED), "SMALL": str(2**24)}
    return text(_FITTING + _ALIKE + _METHODS, fields, **more)


def compute_text(operator: NativeOperator, fields: Mapping[str, int]) -> str:
    """The function `compute.<name>` of two values."""
    kinds = sum(1 << KINDS[kind] for kind in operator.kinds.split())
    doubles = text(_DOUBLES, fields, OWN=text(operator.doubles, fields)) if operator.doubles else ""
    compare = text(_COMPARE, fields, NAME=operator.name, NUMBER=str(operator.number))
    return ("" if operator.number is None else compare) + text(
        _COMPUTE,
        fields,
        NAME=operator.name,
        CALL=operator.call if operator.number is None else f"compare.{operator.name}",
        KINDS=str(kinds),
        INTS=text(operator.ints, fields),
        DOUBLES=doubles,
        FLOATS="%of.floats" if doubles else "%no",
    )


def method_text(method: str, fallback: int, fields: Mapping[str, int]) -> str:
    """The function of a method such as `__add__` or `__radd__`, whose Python method is a word of the state."""
    name = method.strip("_")
    known = {operator.name for operator in OPERATORS}
    more = {"METHOD": method, "FALLBACK": str(8 * fallback)}
    if name in known:
        return text(_EXPRESSION, fields, NAME=name, REFLECTED="false", **more)
    if name[0] == "r":
        return text(_EXPRESSION, fields, NAME=name[1:], REFLECTED="true", **more)
    return text(_STATEMENT, fields, NAME=name[1:], **more)
