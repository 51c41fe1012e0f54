"""LLVM IR of what all methods share: fields of Arrays and of NumPy's arrays, results, and the user's line.

Names in capital letters after `$` are filled in by `text`; `@state` holds the objects that the frontend gave.

Sources: CPython, Include/object.h and Doc/c-api; NumPy, numpy/_core/include/numpy/ndarraytypes.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import Final

from xarr_numpy.compiled.codegen.shorthand import expand
from xarr_numpy.compiled.cpython_abi.struct_offsets import CLASS, DATA, FLAGS

#: The words of `@state`, by what they hold; behind them the Python methods.
STATE: Final = (
    *("array", "ndarray", "obstacles", "context", "locate", "count", "index_step", "copy"),
    *("live_part", "wrap_constant", "is_put_back"),
    *("float64", "int64", "bool", "complex128", "float32", "complex64", "float16"),
    *(
        "int32",
        "int16",
        "int8",
        "uint64",
        "uint32",
        "uint16",
        "uint8",
        "classes",
        "numpybool",
        "numpyfloat",
        "numpyint",
    ),
    "refusals",
    *("node", "leaf", "dataop", "lease", "backend", "make_array"),
)
#: Lines that are remembered, a power of two, and the words of each: its code, the offset, its tuple, the elements read.
LINES: Final = 4096
LINE_WORDS: Final = 4
#: Elements of one line that are counted at once.
COUNTED_AT_ONCE: Final = 25
#: Kinds of elements by number, as `@kind_of` gives them; 0 for all others.
KINDS: Final = {
    name: number
    for number, name in enumerate(STATE[STATE.index("float64") : STATE.index("classes")], start=1)
}
#: Kinds whose single elements are NumPy's own scalars, and not Python's numbers; they are the last.
SCALAR_KINDS: Final = tuple(KINDS)[3:]

#: Bytes from the start of a NumPy array to its fields.
_RANK, _SIZES, _STRIDES, _BASE, _DESCR = DATA + 8, DATA + 16, DATA + 24, DATA + 32, DATA + 40
#: Bytes from the start of a slice to its start; stop and step follow.
SLICE: Final = DATA


def offsets(fields: Mapping[str, int]) -> dict[str, str]:
    """Numbers that stand for names in capital letters: offsets of fields, of those of Array as given."""
    own = {f"AT{name.upper()}": at for name, at in fields.items()}
    numbers = {
        **own,
        **{"CLASS": CLASS, "DATA": DATA, "FLAGS": FLAGS, "RANK": _RANK, "SIZES": _SIZES, "STRIDES": _STRIDES},
        **{"BASE": _BASE, "DESCR": _DESCR, "SLICE": SLICE, "LASTLINE": LINES - 1, "LINES": LINES},
        **{"KINDCOUNT": len(KINDS), "FIRSTSCALAR": KINDS[SCALAR_KINDS[0]]},
        **{
            "LINEWORDS": LINE_WORDS,
            "COUNTED": COUNTED_AT_ONCE,
            "TUPLE": tuple.__basicsize__,
            "EXACT": 2**53,
            "LEAST": -(2**63),
        },
        **{name.upper(): 8 * index for index, name in enumerate(STATE)},
    }
    return {name: str(number) for name, number in numbers.items()}


def text(template: str, fields: Mapping[str, int], **more: str) -> str:
    """LLVM IR with the names in capital letters filled in, and loops written out."""
    return expand(Template(template).substitute(offsets(fields), **more))


DECLARATIONS: Final = """
@state = internal global [$WORDS x ptr] zeroinitializer
@lines = internal global [$LINES x [$LINEWORDS x i64]] zeroinitializer
@_Py_NoneStruct = external global i8
@_Py_TrueStruct = external global i8
@_Py_FalseStruct = external global i8
@PyFloat_Type = external global i8
@PyLong_Type = external global i8
@PyBool_Type = external global i8
@PyComplex_Type = external global i8
@PyTuple_Type = external global i8
@PySlice_Type = external global i8
@_Py_EllipsisObject = external global i8
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyEval_GetFrame()
declare ptr @PyFrame_GetCode(ptr)
declare i32 @PyFrame_GetLasti(ptr)
declare ptr @PyFrame_GetBack(ptr)
declare ptr @PyDict_GetItem(ptr, ptr)
declare ptr @PyNumber_Index(ptr)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyList_AsTuple(ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare i32 @PyErr_ExceptionMatches(ptr)
declare i32 @PyObject_SetAttrString(ptr, ptr, ptr)
@exposed = internal constant [8 x i8] c"exposed\\00"
@PyList_Type = external global i8
declare ptr @PyType_GenericAlloc(ptr, i64)
declare i32 @PyContext_Enter(ptr)
declare i32 @PyContext_Exit(ptr)
declare ptr @PyFloat_FromDouble(double)
declare double @PyFloat_AsDouble(ptr)
declare double @PyComplex_RealAsDouble(ptr)
declare double @PyComplex_ImagAsDouble(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyObject_GetItem(ptr, ptr)
declare i32 @PyObject_SetItem(ptr, ptr, ptr)
declare ptr @PyObject_RichCompare(ptr, ptr, i32)
declare ptr @PyNumber_Add(ptr, ptr)
declare ptr @PyNumber_Subtract(ptr, ptr)
declare ptr @PyNumber_Multiply(ptr, ptr)
declare ptr @PyNumber_TrueDivide(ptr, ptr)
declare ptr @PyNumber_FloorDivide(ptr, ptr)
declare ptr @PyNumber_Remainder(ptr, ptr)
declare ptr @PyNumber_And(ptr, ptr)
declare ptr @PyNumber_Or(ptr, ptr)
declare ptr @PyNumber_Xor(ptr, ptr)
declare ptr @PyNumber_Lshift(ptr, ptr)
declare ptr @PyNumber_Rshift(ptr, ptr)
declare ptr @PyNumber_Negative(ptr)
declare ptr @PyNumber_Absolute(ptr)
declare void @PyErr_Clear()
declare ptr @PyErr_Occurred()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @PyWeakref_NewRef(ptr, ptr)
declare ptr @PyTuple_Pack(i64, ...)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare {i64, i1} @llvm.sadd.with.overflow.i64(i64, i64)
declare {i64, i1} @llvm.ssub.with.overflow.i64(i64, i64)
declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)
declare double @llvm.fabs.f64(double)

define ptr @set_up(ptr %table) {
  call void @llvm.memcpy.p0.p0.i64(ptr @state, ptr %table, i64 $STATEBYTES, i1 false)
  ret ptr @lines
}
"""

FIELDS: Final = """
define internal ptr @word(ptr %object, i64 %offset) alwaysinline {
  %word = load ptr, ptr %object + %offset
  ret ptr %word
}
define internal ptr @state_word(i64 %offset) alwaysinline {
  %word = call ptr @word(ptr @state, i64 %offset)
  ret ptr %word
}
define internal ptr @class_of(ptr %object) alwaysinline {
  %class = call ptr @word(ptr %object, i64 $CLASS)
  ret ptr %class
}
define internal i1 @is_array(ptr %object) alwaysinline {
  %class = call ptr @class_of(ptr %object)
  %wanted = call ptr @state_word(i64 $ARRAY)
  %alike = icmp eq ptr %class, %wanted
  ret i1 %alike
}
define internal i1 @is_ndarray(ptr %object) alwaysinline {
  %class = call ptr @class_of(ptr %object)
  %wanted = call ptr @state_word(i64 $NDARRAY)
  %alike = icmp eq ptr %class, %wanted
  ret i1 %alike
}
define internal i1 @is_of(ptr %object, ptr %wanted) alwaysinline {
  %class = call ptr @class_of(ptr %object)
  %alike = icmp eq ptr %class, %wanted
  ret i1 %alike
}
define internal i1 @is_free() alwaysinline {
  %obstacles = call ptr @state_word(i64 $OBSTACLES)
  %count = call i64 @PyDict_Size(ptr %obstacles)
  %free = icmp eq i64 %count, 0
  ret i1 %free
}
; Whether a field of an Array holds an object: neither unset nor None.
define internal i1 @is_there(ptr %object) alwaysinline {
  %set = icmp ne ptr %object, null
  %some = icmp ne ptr %object, @_Py_NoneStruct
  %there = and i1 %set, %some
  ret i1 %there
}
; The small value of an Array that has one and whose device is known; null else.
define internal ptr @value_of(ptr %object) alwaysinline {
  %device = call ptr @word(ptr %object, i64 $AT_DEVICE)
  %known = call i1 @is_there(ptr %device)
  unless %known return null, look:
  %value = call ptr @word(ptr %object, i64 $AT_VALUE)
  ret ptr %value
}
define internal i1 @is_part(ptr %array) alwaysinline {
  %part = call ptr @word(ptr %array, i64 $AT_PART)
  %is = call i1 @is_there(ptr %part)
  ret i1 %is
}
define internal i64 @rank(ptr %array) alwaysinline {
  %rank = load i32, ptr %array + $RANK
  %wide = sext i32 %rank to i64
  ret i64 %wide
}
define internal i32 @flags(ptr %array) alwaysinline {
  %flags = load i32, ptr %array + $FLAGS
  ret i32 %flags
}
; The number of the kind of elements that a NumPy array has.
define internal i64 @kind_of(ptr %array) {
  %descr = call ptr @word(ptr %array, i64 $DESCR)
  %first = getelementptr i8, ptr @state, i64 $FLOAT64
  for %k from 0 below $KINDCOUNT
  %known = load ptr, ptr %first[%k]
  %number = add i64 %k, 1
  %is = icmp eq ptr %known, %descr
  unless %is goto k.last, yes:
  ret i64 %number
  end %k
  ret i64 0
}
; The number of the kind of a scalar of NumPy's; 0 for all else.
define internal i64 @scalar_kind(ptr %object) {
  %class = call ptr @class_of(ptr %object)
  %classes = call ptr @state_word(i64 $CLASSES)
  for %k from 0 below $KINDCOUNT
  %at = mul i64 %k, 8
  %offset = add i64 %at, $TUPLE
  %known = call ptr @word(ptr %classes, i64 %offset)
  %number = add i64 %k, 1
  %is = icmp eq ptr %known, %class
  unless %is goto k.last, yes:
  ret i64 %number
  end %k
  ret i64 0
}
; Whether an object is a scalar of a type that Python has not.
define internal i1 @is_scalar(ptr %object) alwaysinline {
  %kind = call i64 @scalar_kind(ptr %object)
  %is = icmp sge i64 %kind, $FIRSTSCALAR
  ret i1 %is
}
; What an Array holds for a number that NumPy gave, the reference to which is taken over; null, without an error, for
; another object.
define internal ptr @plain(ptr %made) {
  %kind = call i64 @scalar_kind(ptr %made)
  switch i64 %kind, label %as.it.is [ i64 0, label %other  i64 1, label %float  i64 2, label %int  i64 3, label %bool ]
float:
  %double = call double @PyFloat_AsDouble(ptr %made)
  release %made
  %as.float = call ptr @PyFloat_FromDouble(double %double)
  ret ptr %as.float
int:
  %as.int = call ptr @PyNumber_Index(ptr %made)
  release %made
  ret ptr %as.int
bool:
  %true = call i32 @PyObject_IsTrue(ptr %made)
  release %made
  %is.true = icmp eq i32 %true, 1
  %as.bool = call ptr @truth(i1 %is.true)
  ret ptr %as.bool
other:
  %is.int = call i1 @is_of(ptr %made, ptr @PyLong_Type)
  unless %is.int goto no, as.it.is:
  ret ptr %made
no:
  release %made
  ret ptr null
}
; An int of Python's; least for one that is as small, or does not fit.
define internal i64 @integer(ptr %object) {
  %over = alloca i32, align 4
  store i32 0, ptr %over, align 4
  %number = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %over)
  %beyond = load i32, ptr %over, align 4
  %fits = icmp eq i32 %beyond, 0
  %result = select i1 %fits, i64 %number, i64 $LEAST
  ret i64 %result
}
; Whether floats hold an int.
define internal i1 @is_exact(i64 %number) alwaysinline {
  %above = icmp sge i64 %number, -$EXACT
  %below = icmp sle i64 %number, $EXACT
  %exact = and i1 %above, %below
  ret i1 %exact
}
define internal ptr @counted(ptr %object) alwaysinline {
  hold %object
  ret ptr %object
}
define internal ptr @truth(i1 %is) {
  %answer = select i1 %is, ptr @_Py_TrueStruct, ptr @_Py_FalseStruct
  hold %answer
  ret ptr %answer
}
define internal void @drop(ptr %object) {
  %is = icmp ne ptr %object, null
  unless %is goto no, yes:
  release %object
  ret void
no:
  ret void
}
; Put an object, whose reference is taken over, into a field; the old one is returned, null for none.
define internal ptr @exchange(ptr %object, i64 %offset, ptr %new) alwaysinline {
  %slot = getelementptr i8, ptr %object, i64 %offset
  %old = load ptr, ptr %slot, align 8
  store ptr %new, ptr %slot, align 8
  ret ptr %old
}
"""

RESULTS: Final = """
; A method in Python for an object and however many arguments: so many by position, and those that `names` has.
define internal ptr @call_python(ptr %method, ptr %self, ptr %arguments, i64 %count, i64 %positional, ptr %names) {
entry:
  %all = add i64 %count, 1
  %stack = call ptr @PyTuple_New(i64 %all)
  %lacks = icmp eq ptr %stack, null
  if %lacks return null, begin:
  hold %self
  %first = call i32 @PyTuple_SetItem(ptr %stack, i64 0, ptr %self)
  for %k from 0 below %count
  %argument = load ptr, ptr %arguments[%k]
  hold %argument
  %position = add i64 %k, 1
  %put = call i32 @PyTuple_SetItem(ptr %stack, i64 %position, ptr %argument)
  end %k
  %items = getelementptr i8, ptr %stack, i64 $TUPLE
  %by.position = add i64 %positional, 1
  %made = call ptr @PyObject_Vectorcall(ptr %method, ptr %items, i64 %by.position, ptr %names)
  release %stack
  ret ptr %made
}
; The line that a frame is at if it is remembered, one of the user's, as a new reference; null else.
define internal ptr @known_line(ptr %frame, i64 %elements) {
  %code = call ptr @PyFrame_GetCode(ptr %frame)
  release %code
  %offset.narrow = call i32 @PyFrame_GetLasti(ptr %frame)
  %offset = sext i32 %offset.narrow to i64
  %address = ptrtoint ptr %code to i64
  %line = call ptr @line_of(i64 %address, i64 %offset)
  %offset.slot = getelementptr i64, ptr %line, i64 1
  %tuple.slot = getelementptr i64, ptr %line, i64 2
  %count.slot = getelementptr i64, ptr %line, i64 3
  %known.code = load i64, ptr %line, align 8
  %known.offset = load i64, ptr %offset.slot, align 8
  %same.code = icmp eq i64 %known.code, %address
  %same.offset = icmp eq i64 %known.offset, %offset
  %known = and i1 %same.code, %same.offset
  unless %known return null, hit:
  %tuple = load ptr, ptr %tuple.slot, align 8
  hold %tuple
  %before = load i64, ptr %count.slot, align 8
  %count = add i64 %before, %elements
  store i64 %count, ptr %count.slot, align 8
  ret ptr %tuple
}
define internal ptr @line_of(i64 %address, i64 %offset) alwaysinline {
  %high = lshr i64 %address, 4
  %low = lshr i64 %offset, 1
  %sum = add i64 %high, %low
  %index = and i64 %sum, $LASTLINE
  %line = getelementptr [$LINEWORDS x i64], ptr @lines, i64 %index
  ret ptr %line
}
; The user's line that is running, which reads or writes so many elements, as a new reference; null for an error.
define internal ptr @locate(i64 %elements) {
entry:
  %frame = call ptr @PyEval_GetFrame()
  %is.none = icmp eq ptr %frame, null
  unless %is.none goto some, none:
  hold @_Py_NoneStruct
  ret ptr @_Py_NoneStruct
some:
  %tuple = call ptr @known_line(ptr %frame, i64 %elements)
  %known = icmp ne ptr %tuple, null
  unless %known goto miss, hit:
  %counts = icmp ne i64 %elements, 0
  if %counts goto look, done:
  ret ptr %tuple
look:
  %code.object = call ptr @PyTuple_GetItem(ptr %tuple, i64 0)
  %offset.object = call ptr @PyTuple_GetItem(ptr %tuple, i64 1)
  %code = ptrtoint ptr %code.object to i64
  %offset = call i64 @integer(ptr %offset.object)
  %line = call ptr @line_of(i64 %code, i64 %offset)
  %count.slot = getelementptr i64, ptr %line, i64 3
  %count = load i64, ptr %count.slot, align 8
  %many = icmp sge i64 %count, $COUNTED
  unless %many goto done, say:
  store i64 0, ptr %count.slot, align 8
  %number = call ptr @PyLong_FromLongLong(i64 %count)
  %teller = call ptr @state_word(i64 $COUNT)
  %said = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %teller, ptr %frame, ptr %number, ptr null)
  call void @drop(ptr %number)
  %failed = icmp eq ptr %said, null
  unless %failed goto quiet, raise:
  release %tuple
  ret ptr null
quiet:
  release %said
  ret ptr %tuple
miss:
  %made = call ptr @learn_line(ptr %frame)
  ret ptr %made
}
; The user's line in a frame or in one that called it, asked of Python and remembered; null for an error.
define internal ptr @learn_line(ptr %frame) {
  %finder = call ptr @state_word(i64 $LOCATE)
  %made = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %finder, ptr %frame, ptr null)
  %lacks = icmp eq ptr %made, null
  unless %lacks goto look, lost:
  ret ptr null
look:
  %is.tuple = call i1 @is_of(ptr %made, ptr @PyTuple_Type)
  unless %is.tuple goto other, keep:
  %own = call ptr @PyTuple_GetItem(ptr %made, i64 0)
  %at = call ptr @PyTuple_GetItem(ptr %made, i64 1)
  %address = ptrtoint ptr %own to i64
  %offset = call i64 @integer(ptr %at)
  %line = call ptr @line_of(i64 %address, i64 %offset)
  %offset.slot = getelementptr i64, ptr %line, i64 1
  %tuple.slot = getelementptr i64, ptr %line, i64 2
  %count.slot = getelementptr i64, ptr %line, i64 3
  %old = load ptr, ptr %tuple.slot, align 8
  hold %made
  store i64 %address, ptr %line, align 8
  store i64 %offset, ptr %offset.slot, align 8
  store ptr %made, ptr %tuple.slot, align 8
  store i64 0, ptr %count.slot, align 8
  call void @drop(ptr %old)
  ret ptr %made
other:
  ret ptr %made
}
; As `locate`, from a frame of this package that was called by the user's, or by one more such frame.
define internal ptr @locate_above() {
entry:
  %frame = call ptr @PyEval_GetFrame()
  %is.none = icmp eq ptr %frame, null
  unless %is.none goto some, none:
  hold @_Py_NoneStruct
  ret ptr @_Py_NoneStruct
some:
  %first = call ptr @PyFrame_GetBack(ptr %frame)
  %no.first = icmp eq ptr %first, null
  if %no.first goto ask, look.first:
  %near = call ptr @known_line(ptr %first, i64 0)
  %is.near = icmp ne ptr %near, null
  unless %is.near goto further, give.near:
  release %first
  ret ptr %near
further:
  %second = call ptr @PyFrame_GetBack(ptr %first)
  release %first
  %no.second = icmp eq ptr %second, null
  if %no.second goto ask, look.second:
  %far = call ptr @known_line(ptr %second, i64 0)
  release %second
  %is.far = icmp ne ptr %far, null
  unless %is.far goto ask, give.far:
  ret ptr %far
ask:
  %made = call ptr @learn_line(ptr %frame)
  ret ptr %made
}
; As `wrap`, for a line that is taken over too.
define internal ptr @wrap_at(ptr %value, ptr %device, ptr %line) {
  %unknown = icmp eq ptr %line, null
  if %unknown goto no, go:
  %class = call ptr @state_word(i64 $ARRAY)
  %array = call ptr @PyType_GenericAlloc(ptr %class, i64 0)
  %lacks = icmp eq ptr %array, null
  if %lacks goto no, fill:
  %none = call ptr @counted(ptr @_Py_NoneStruct)
  %a = call ptr @exchange(ptr %array, i64 $AT_SHOWN, ptr %none)
  %b = call ptr @exchange(ptr %array, i64 $AT_VALUE, ptr %value)
  %c = call ptr @exchange(ptr %array, i64 $AT_DEVICE, ptr %device)
  %d = call ptr @exchange(ptr %array, i64 $AT_LOCATION, ptr %line)
  ret ptr %array
no:
  call void @drop(ptr %line)
  release %value, %device
  ret ptr null
}
; A new Array with a value on a device, references to which are taken over, made by a line; null for an error.
define internal ptr @wrap(ptr %value, ptr %device, i64 %elements) {
  %line = call ptr @locate(i64 %elements)
  %array = call ptr @wrap_at(ptr %value, ptr %device, ptr %line)
  ret ptr %array
}
; What a part of an Array refers to beside it, a new reference: None for what is no part itself.  Null for an error.
define internal ptr @outer_part(ptr %array) {
  %part = call ptr @word(ptr %array, i64 $AT_PART)
  %is = call i1 @is_there(ptr %part)
  if %is goto ask, none:
  hold @_Py_NoneStruct
  ret ptr @_Py_NoneStruct
ask:
  hold %part
  %looker = call ptr @state_word(i64 $LIVE_PART)
  %live = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %looker, ptr %part, ptr null)
  release %part
  ret ptr %live
}
"""
