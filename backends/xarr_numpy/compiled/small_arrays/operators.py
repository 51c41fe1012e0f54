"""LLVM IR of operators on small values: floats and ints in registers, arrays by NumPy's operators.

The rules are those of `xarr.calls.small_values`, less what is rare: any pair that is not listed here is left to
Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xarr.ir.types import MOST_COMBINED
from xarr_numpy.compiled.small_arrays.complex_division import division_text
from xarr_numpy.compiled.small_arrays.objects import KINDS, text
from xarr_numpy.compiled.small_arrays.operator_rows import OPERATORS, NativeOperator

#: Of two values: what `left` and `right` give, as a new reference; null, without an error, where Python computes.
#: weak: one of them is a Python number of the user's, which takes the type of the other.
_COMPUTE: Final = """
define internal ptr @compute.$NAME(ptr %left, ptr %right, i1 %weak) {
entry:
  %left.set = icmp ne ptr %left, null
  %right.set = icmp ne ptr %right, null
  %both.set = and i1 %left.set, %right.set
  unless %both.set return null, look:
  %left.class = call ptr @class_of(ptr %left)
  %right.class = call ptr @class_of(ptr %right)
  %left.float = icmp eq ptr %left.class, @PyFloat_Type
  %right.float = icmp eq ptr %right.class, @PyFloat_Type
  %left.int = icmp eq ptr %left.class, @PyLong_Type
  %right.int = icmp eq ptr %right.class, @PyLong_Type
  %left.number = or i1 %left.float, %left.int
  %right.number = or i1 %right.float, %right.int
  %numbers = and i1 %left.number, %right.number
  unless %numbers goto arrays, scalars:
  %ints = and i1 %left.int, %right.int
  br i1 %ints, label %read.ints, label $FLOATS
read.ints:
  %m = call i64 @integer(ptr %left)
  %n = call i64 @integer(ptr %right)
  %m.least = icmp eq i64 %m, $LEAST
  %n.least = icmp eq i64 %n, $LEAST
  %any.least = or i1 %m.least, %n.least
  if %any.least return null, of.ints:
  $INTS
  ret ptr %result
$DOUBLES
arrays:
  %made = call ptr @arrays(ptr %left, ptr %right, i1 %weak, i64 $KINDS, ptr @$CALL)
  ret ptr %made
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
  unless %left.float goto left.convert, left.is:
  %left.double = call double @PyFloat_AsDouble(ptr %left)
  br label %then
left.convert:
  %left.integer = call i64 @integer(ptr %left)
  %left.exact = call i1 @is_exact(i64 %left.integer)
  %left.converted = sitofp i64 %left.integer to double
  unless %left.exact return null, then:
  %a = phi double [ %left.double, %left.is ], [ %left.converted, %left.convert ]
  unless %right.float goto right.convert, right.is:
  %right.double = call double @PyFloat_AsDouble(ptr %right)
  br label %both.doubles
right.convert:
  %right.integer = call i64 @integer(ptr %right)
  %right.exact = call i1 @is_exact(i64 %right.integer)
  %right.converted = sitofp i64 %right.integer to double
  unless %right.exact return null, both.doubles:
  %b = phi double [ %right.double, %right.is ], [ %right.converted, %right.convert ]
  $OWN
  ret ptr %number
"""

#: Whether NumPy takes a number beside an array as the op does.
_FITTING: Final = """
define internal i1 @fits(ptr %number, ptr %array) {
  %kind = call i64 @kind_of(ptr %array)
  %of.complex = call i1 @is_of(ptr %number, ptr @PyComplex_Type)
  unless %of.complex goto look, beside.complex:
  %above = icmp sge i64 %kind, 1
  %below = icmp sle i64 %kind, 4
  %whole.or.wide = and i1 %above, %below
  %not.bool = icmp ne i64 %kind, 3
  %converted = and i1 %whole.or.wide, %not.bool
  ret i1 %converted
look:
  %is.float = call i1 @is_of(ptr %number, ptr @PyFloat_Type)
  unless %is.float goto int, float:
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
; The kind of elements of an array or scalar of NumPy's as a bit, the first one for an unknown kind, that of complex128
; for a complex number of Python's; 0 for other numbers.
define internal i64 @kind_bits(ptr %object) {
  %is.ndarray = call i1 @is_ndarray(ptr %object)
  unless %is.ndarray goto ask, array:
  %kind = call i64 @kind_of(ptr %object)
  %bit = shl i64 1, %kind
  ret i64 %bit
ask:
  %class = call ptr @class_of(ptr %object)
  %is.float = icmp eq ptr %class, @PyFloat_Type
  %is.int = icmp eq ptr %class, @PyLong_Type
  %is.complex = icmp eq ptr %class, @PyComplex_Type
  %real = or i1 %is.float, %is.int
  %is.number = or i1 %real, %is.complex
  unless %is.number goto scalar, number:
  %number.bit = select i1 %is.complex, i64 16, i64 0
  ret i64 %number.bit
scalar:
  %scalar.kind = call i64 @scalar_kind(ptr %object)
  %scalar.bit = shl i64 1, %scalar.kind
  ret i64 %scalar.bit
}
; The product by NumPy's operator; null, without an error, for two single numbers of which one is complex, which that
; may round otherwise than loops over arrays.
define internal ptr @multiply(ptr %left, ptr %right) {
  %left.array = call i1 @is_ndarray(ptr %left)
  %right.array = call i1 @is_ndarray(ptr %right)
  %array = or i1 %left.array, %right.array
  %left.bits = call i64 @kind_bits(ptr %left)
  %right.bits = call i64 @kind_bits(ptr %right)
  %bits = or i64 %left.bits, %right.bits
  %pairs = and i64 %bits, $COMPLEX
  %real = icmp eq i64 %pairs, 0
  %sure = or i1 %array, %real
  br i1 %sure, label %go, label %no
go:
  %made = call ptr @PyNumber_Multiply(ptr %left, ptr %right)
  ret ptr %made
no:
  ret ptr null
}
; Of two values of which one is an array, or a scalar of NumPy's, by NumPy's operator: a C function of two objects.
define internal ptr @arrays(ptr %left, ptr %right, i1 %weak, i64 %kinds, ptr %function) {
  %left.class = call ptr @class_of(ptr %left)
  %right.class = call ptr @class_of(ptr %right)
  %left.float = icmp eq ptr %left.class, @PyFloat_Type
  %right.float = icmp eq ptr %right.class, @PyFloat_Type
  %left.int = icmp eq ptr %left.class, @PyLong_Type
  %right.int = icmp eq ptr %right.class, @PyLong_Type
  %left.complex = icmp eq ptr %left.class, @PyComplex_Type
  %right.complex = icmp eq ptr %right.class, @PyComplex_Type
  %left.real = or i1 %left.float, %left.int
  %right.real = or i1 %right.float, %right.int
  %left.number = or i1 %left.real, %left.complex
  %right.number = or i1 %right.real, %right.complex
  %left.array = call i1 @is_ndarray(ptr %left)
  %right.array = call i1 @is_ndarray(ptr %right)
  %both = and i1 %left.array, %right.array
  unless %both goto one, two:
  %same = call i1 @is_same_shape(ptr %left, ptr %right)
  if %same goto ask, count:
  %elements = call i64 @broadcast_size(ptr %left, ptr %right)
  %few = icmp sle i64 %elements, $MOSTPAIRS
  br i1 %few, label %ask, label %return.null
one:
  %beside = or i1 %left.number, %right.number
  %an.array = or i1 %left.array, %right.array
  %mixed = and i1 %beside, %an.array
  br i1 %mixed, label %fit, label %scalar
; A scalar of NumPy's beside another one or an array, or beside a small int.
scalar:
  %left.scalar.kind = call i64 @scalar_kind(ptr %left)
  %right.scalar.kind = call i64 @scalar_kind(ptr %right)
  %left.scalar = icmp ne i64 %left.scalar.kind, 0
  %right.scalar = icmp ne i64 %right.scalar.kind, 0
  %left.numpys = or i1 %left.scalar, %left.array
  %right.numpys = or i1 %right.scalar, %right.array
  %two.numpys = and i1 %left.numpys, %right.numpys
  if %two.numpys goto ask, beside.scalar:
  %an.int = or i1 %left.int, %right.int
  %a.scalar = or i1 %left.scalar, %right.scalar
  %one.each = and i1 %an.int, %a.scalar
  %known.pair = and i1 %one.each, %weak
  unless %known.pair return null, small:
  %the.int = select i1 %left.int, ptr %left, ptr %right
  %whole = call i64 @integer(ptr %the.int)
  %above = icmp sge i64 %whole, -$SMALL
  %below = icmp sle i64 %whole, $SMALL
  %fits.all = and i1 %above, %below
  br i1 %fits.all, label %ask, label %return.null
fit:
  %array = select i1 %left.array, ptr %left, ptr %right
  %beside.it = select i1 %left.array, ptr %right, ptr %left
  %taken.so = call i1 @fits(ptr %beside.it, ptr %array)
  br i1 %taken.so, label %ask, label %return.null
; Of which kinds of elements the operands are that have any.
ask:
  %left.bits = call i64 @kind_bits(ptr %left)
  %right.bits = call i64 @kind_bits(ptr %right)
  %bits = or i64 %left.bits, %right.bits
  %others = xor i64 %kinds, -1
  %wrong = and i64 %bits, %others
  %known = icmp eq i64 %wrong, 0
  unless %known return null, call:
  hold %left, %right
  %context = call ptr @state_word(i64 $CONTEXT)
  %entered = call i32 @PyContext_Enter(ptr %context)
  %busy = icmp ne i32 %entered, 0
  if %busy goto refused, quiet:
  %made = call ptr %function(ptr %left, ptr %right)
  %left.quiet = call i32 @PyContext_Exit(ptr %context)
  release %left, %right
  %lacks = icmp eq ptr %made, null
  if %lacks goto clear, check:
  %is.array = call i1 @is_ndarray(ptr %made)
  if %is.array goto give, scalar.result:
  %plain = call ptr @plain(ptr %made)
  ret ptr %plain
give:
  ret ptr %made
refused:
  release %left, %right
  then clear:
  call void @PyErr_Clear()
  ret ptr null
}
; The device of a result of an Array and of another operand: of Arrays on one device, or beside constants, which are on
; none; null where there is none.
define internal ptr @joint_device(ptr %array, ptr %other) alwaysinline {
  %own = call ptr @word(ptr %array, i64 $AT_DEVICE)
  %is.there = call i1 @is_there(ptr %own)
  %is.array = call i1 @is_array(ptr %other)
  if %is.array goto two, one:
  %alone = select i1 %is.there, ptr %own, ptr null
  ret ptr %alone
two:
  %their = call ptr @word(ptr %other, i64 $AT_DEVICE)
  %are.same = icmp eq ptr %own, %their
  if %are.same goto one, differ:
  %their.there = call i1 @is_there(ptr %their)
  %both = and i1 %is.there, %their.there
  %either = select i1 %is.there, ptr %own, ptr %their
  %some = or i1 %is.there, %their.there
  %known = select i1 %some, ptr %either, ptr null
  %joint = select i1 %both, ptr null, ptr %known
  ret ptr %joint
}
; The value of an operand, an Array or a number itself; null for no other.
define internal ptr @operand(ptr %object) {
  %is.array = call i1 @is_array(ptr %object)
  unless %is.array goto number, array:
  %value = call ptr @word(ptr %object, i64 $AT_VALUE)
  %set = call i1 @is_there(ptr %value)
  unless %set return null, give:
  ret ptr %value
number:
  %is.float = call i1 @is_of(ptr %object, ptr @PyFloat_Type)
  %is.int = call i1 @is_of(ptr %object, ptr @PyLong_Type)
  %is.complex = call i1 @is_of(ptr %object, ptr @PyComplex_Type)
  %is.real = or i1 %is.float, %is.int
  %is = or i1 %is.real, %is.complex
  if %is goto yes, scalar:
  %kind = call i64 @scalar_kind(ptr %object)
  %is.scalar = icmp ne i64 %kind, 0
  unless %is.scalar return null, yes:
  ret ptr %object
}
; Whether an operand is a number of Python's, which takes the type of the other one.
define internal i1 @is_weak(ptr %object) alwaysinline {
  %is.array = call i1 @is_array(ptr %object)
  %kind = call i64 @scalar_kind(ptr %object)
  %is.scalar = icmp ne i64 %kind, 0
  %is.strong = or i1 %is.array, %is.scalar
  %is = xor i1 %is.strong, true
  ret i1 %is
}
"""

#: What the methods of `self op other`, `other op self` and `self op= other` do, by the function of two values.
_METHODS: Final = """
define internal ptr @expression(ptr %self, ptr %other, ptr %compute, i64 %fallback, i1 %reflected) {
  %is.array = call i1 @is_array(ptr %self)
  %is.free = call i1 @is_free()
  %usual = and i1 %is.array, %is.free
  unless %usual goto slow, look:
  %own = call ptr @word(ptr %self, i64 $AT_VALUE)
  %device = call ptr @joint_device(ptr %self, ptr %other)
  %is.known = icmp ne ptr %device, null
  %of.constants = call i1 @are_constants(ptr %self, ptr %other)
  %either = or i1 %is.known, %of.constants
  unless %either goto slow, open:
  %their = call ptr @operand(ptr %other)
  %placed = select i1 %is.known, ptr %device, ptr @_Py_NoneStruct
  hold %placed
  %weak = call i1 @is_weak(ptr %other)
  %first = select i1 %reflected, ptr %their, ptr %own
  %second = select i1 %reflected, ptr %own, ptr %their
  %value = call ptr %compute(ptr %first, ptr %second, i1 %weak)
  %unsure = icmp eq ptr %value, null
  if %unsure goto leave, ask:
  unless %is.known goto constant, wrap:
  %result = call ptr @wrap(ptr %value, ptr %device, i64 0)
  ret ptr %result
constant:
  %maker = call ptr @state_word(i64 $WRAP_CONSTANT)
  %own.method = call ptr @state_word(i64 %fallback)
  %array = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(
    ptr %maker, ptr %value, ptr %own.method, ptr %self, ptr %other, ptr null)
  release %value
  %is.none = icmp eq ptr %array, @_Py_NoneStruct
  if %is.none goto forget, give:
  release %placed
  ret ptr %array
forget:
  release %array
  then leave:
  release %placed
  then slow:
  %method = call ptr @state_word(i64 %fallback)
  %made = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %method, ptr %self, ptr %other, ptr null)
  ret ptr %made
}
; Whether no operand is on a device: constants alone, beside numbers.
define internal i1 @are_constants(ptr %array, ptr %other) alwaysinline {
  %own = call ptr @word(ptr %array, i64 $AT_DEVICE)
  %own.there = call i1 @is_there(ptr %own)
  %is.array = call i1 @is_array(ptr %other)
  if %is.array goto two, one:
  %alone = xor i1 %own.there, true
  ret i1 %alone
two:
  %their = call ptr @word(ptr %other, i64 $AT_DEVICE)
  %their.there = call i1 @is_there(ptr %their)
  %any = or i1 %own.there, %their.there
  %none = xor i1 %any, true
  ret i1 %none
}
define internal ptr @statement(ptr %self, ptr %other, ptr %compute, i64 %fallback) {
  %is.array = call i1 @is_array(ptr %self)
  %is.free = call i1 @is_free()
  %usual = and i1 %is.array, %is.free
  unless %usual goto slow, look:
  %is.part = call i1 @is_part(ptr %self)
  br i1 %is.part, label %part, label %whole
; Of a part that the statement puts back where it has read it nobody else sees the change.
part:
  %frame = call ptr @PyEval_GetFrame()
  %of.python = icmp ne ptr %frame, null
  unless %of.python goto slow, ask.part:
  %asked = call ptr @state_word(i64 $IS_PUT_BACK)
  %told = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %asked, ptr %self, ptr null)
  %unsure.part = icmp eq ptr %told, null
  unless %unsure.part goto hear, no:
  ret ptr null
hear:
  release %told
  %is.put.back = icmp eq ptr %told, @_Py_TrueStruct
  unless %is.put.back goto slow, whole:
  %own = call ptr @value_of(ptr %self)
  %device = call ptr @joint_device(ptr %self, ptr %other)
  %own.device = call ptr @word(ptr %self, i64 $AT_DEVICE)
  %stays = icmp eq ptr %device, %own.device
  unless %stays goto slow, open:
  %their = call ptr @operand(ptr %other)
  %weak = call i1 @is_weak(ptr %other)
  %value = call ptr %compute(ptr %own, ptr %their, i1 %weak)
  %unsure = icmp eq ptr %value, null
  if %unsure goto slow, show:
  %line = call ptr @locate(i64 0)
  %failed = icmp eq ptr %line, null
  unless %failed goto ask, raise:
  release %value
  ret ptr null
ask:
  %now = call ptr @word(ptr %self, i64 $AT_VALUE)
  %still = icmp eq ptr %now, %own
  unless %still goto leave, compare:
  %alike = call i1 @is_alike(ptr %own, ptr %value)
  unless %alike goto leave, put:
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
  hold %self
  ret ptr %self
leave:
  release %line, %value
  then slow:
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
  unless %same return false, classes:
  %is.array = call i1 @is_ndarray(ptr %old)
  unless %is.array return true, arrays:
  %old.descr = call ptr @word(ptr %old, i64 $DESCR)
  %new.descr = call ptr @word(ptr %new, i64 $DESCR)
  %descr = icmp eq ptr %old.descr, %new.descr
  unless %descr return false, shapes:
  %shape = call i1 @is_same_shape(ptr %old, ptr %new)
  ret i1 %shape
}
"""


def shared_text(fields: Mapping[str, int]) -> str:
    """The functions that those of all operators call."""
    pairs = sum(1 << KINDS[kind] for kind in ("complex64", "complex128"))
    more = {"MOSTPAIRS": str(MOST_COMBINED), "SMALL": str(2**24), "COMPLEX": str(pairs)}
    return text(_FITTING + division_text() + _ALIKE + _METHODS, fields, **more)


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
        FLOATS="%of.floats" if doubles else "%return.null",
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
