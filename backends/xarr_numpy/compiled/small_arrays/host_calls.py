"""LLVM IR of calls of NumPy's functions with the values of Arrays, for functions of which the frontend knows the same.

The rules are those of `xarr.calls.host_functions`, whose Python computes where a call gives None here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from xarr.ir.types import MOST_COMBINED, MOST_PLAIN_BYTES
from xarr_numpy.compiled.small_arrays.host_operands import OPERANDS
from xarr_numpy.compiled.small_arrays.objects import KINDS, text

#: Arguments of a call, and items of a list.
_MOST_ARGUMENTS: Final = 8
_MOST_ITEMS: Final = 32

#: Elements from which NumPy lets other threads run while it computes.
_MIN_SHARED: Final = 500

#: What a call knows of its operands: device, elements of all combinations, the first array, arrays, other arguments,
#: whether shapes differ, the number of nodes that are held, and these.
_WORDS: Final = 15

_CALL: Final = """
; None, for what is left to Python: as a new reference.
define internal ptr @host.none() alwaysinline {
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}
; What NumPy gave as the value of an Array, the reference to it taken over; null, without an error, for another object.
define internal ptr @host.value(ptr %made) {
  %is.ndarray = call i1 @is_ndarray(ptr %made)
  br i1 %is.ndarray, label %array, label %number
array:
  %kind = call i64 @kind_of(ptr %made)
  %itemsize = call i64 @bytes_of(i64 %kind)
  %size = call i64 @size(ptr %made)
  %bytes = mul i64 %itemsize, %size
  %small = icmp sle i64 %bytes, $MOSTBYTES
  %known = icmp sgt i64 %itemsize, 0
  %fine = and i1 %small, %known
  br i1 %fine, label %shape, label %no
shape:
  %rank = call i64 @rank(ptr %made)
  %is.point = icmp eq i64 %rank, 0
  br i1 %is.point, label %point, label %order
point:
  %at = call ptr @word(ptr %made, i64 $DATA)
  %plain = call ptr @number_at(ptr %at, i64 %kind)
  call void @Py_DecRef(ptr %made)
  ret ptr %plain
order:
  %flags = call i32 @flags(ptr %made)
  %row.major = and i32 %flags, 1
  %is.row.major = icmp ne i32 %row.major, 0
  br i1 %is.row.major, label %give, label %copy
give:
  ret ptr %made
copy:
  %name = call ptr @state_word(i64 $COPY)
  %arguments = alloca ptr, align 8
  store ptr %made, ptr %arguments, align 8
  %copied = call ptr @PyObject_VectorcallMethod(ptr %name, ptr %arguments, i64 1, ptr null)
  call void @Py_DecRef(ptr %made)
  ret ptr %copied
number:
  %class = call ptr @class_of(ptr %made)
  %float.class = call ptr @state_word(i64 $NUMPYFLOAT)
  %int.class = call ptr @state_word(i64 $NUMPYINT)
  %bool.class = call ptr @state_word(i64 $NUMPYBOOL)
  %is.float = icmp eq ptr %class, %float.class
  br i1 %is.float, label %float, label %a
float:
  %double = call double @PyFloat_AsDouble(ptr %made)
  call void @Py_DecRef(ptr %made)
  %as.float = call ptr @PyFloat_FromDouble(double %double)
  ret ptr %as.float
a:
  %is.int = icmp eq ptr %class, %int.class
  br i1 %is.int, label %int, label %b
int:
  %as.int = call ptr @PyNumber_Index(ptr %made)
  call void @Py_DecRef(ptr %made)
  ret ptr %as.int
b:
  %is.bool = icmp eq ptr %class, %bool.class
  br i1 %is.bool, label %bool, label %c
bool:
  %true = call i32 @PyObject_IsTrue(ptr %made)
  call void @Py_DecRef(ptr %made)
  %is.true = icmp eq i32 %true, 1
  %as.bool = call ptr @truth(i1 %is.true)
  ret ptr %as.bool
c:
  %is.python.int = icmp eq ptr %class, @PyLong_Type
  br i1 %is.python.int, label %give, label %no
no:
  call void @Py_DecRef(ptr %made)
  ret ptr null
}
; The value for a function, the kinds that it takes, and its arguments: so many by position, and those by name in a
; dict, or the last ones, of which a tuple has the names.  The device is put into the first of the facts, a reference.
; Null, without an error, where Python computes.
define internal ptr @host.compute(
    ptr %function, i64 %mask, ptr %items, i64 %count, i64 %positional, ptr %named, ptr %facts,
    i64 %most) {
entry:
  %stack = alloca [$MOSTARGUMENTS x ptr], align 8
  %position = alloca i64, align 8
  %key = alloca ptr, align 8
  %held = alloca ptr, align 8
  store i64 0, ptr %position, align 8
  %is.free = call i1 @is_free()
  %short = icmp sle i64 %count, $MOSTARGUMENTS
  %begins = and i1 %is.free, %short
  br i1 %begins, label %next, label %no
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %is = icmp slt i64 %k, %count
  br i1 %is, label %more, label %names
more:
  %item.slot = getelementptr ptr, ptr %items, i64 %k
  %item = load ptr, ptr %item.slot, align 8
  %is.operand = icmp slt i64 %k, %most
  br i1 %is.operand, label %operand, label %option
operand:
  %made.of.it = call ptr @host.operand(ptr %item, i64 %mask, ptr %facts)
  %bad = icmp eq ptr %made.of.it, null
  br i1 %bad, label %give.up, label %put
option:
  %is.plain = call i1 @host.is_plain(ptr %item)
  br i1 %is.plain, label %as.it.is, label %give.up
as.it.is:
  call void @host.differ(ptr %facts)
  call void @Py_IncRef(ptr %item)
  br label %put
put:
  %own = phi ptr [ %made.of.it, %operand ], [ %item, %as.it.is ]
  %slot = getelementptr ptr, ptr %stack, i64 %k
  store ptr %own, ptr %slot, align 8
  %k.next = add i64 %k, 1
  br label %next
names:
  %all.positional = icmp eq i64 %count, %positional
  %has.names = icmp ne ptr %named, null
  %in.dict = and i1 %has.names, %all.positional
  br i1 %in.dict, label %walk, label %judge
walk:
  %left = call i32 @PyDict_Next(ptr %named, ptr %position, ptr %key, ptr %held)
  %goes.on = icmp ne i32 %left, 0
  br i1 %goes.on, label %see, label %judge
see:
  %value = load ptr, ptr %held, align 8
  %plain = call i1 @host.is_plain(ptr %value)
  br i1 %plain, label %walk, label %give.up
judge:
  %device = load ptr, ptr %facts, align 8
  %combined.slot = getelementptr i64, ptr %facts, i64 1
  %combined = load i64, ptr %combined.slot, align 8
  %arrays.slot = getelementptr i64, ptr %facts, i64 3
  %arrays = load i64, ptr %arrays.slot, align 8
  %differ.slot = getelementptr i64, ptr %facts, i64 5
  %differ = load i64, ptr %differ.slot, align 8
  %has.device = icmp ne ptr %device, null
  %is.one = icmp eq i64 %arrays, 1
  %are.few = icmp sle i64 %combined, $MOSTCOMBINED
  %are.alike = icmp eq i64 %differ, 0
  %either = or i1 %is.one, %are.few
  %any = or i1 %either, %are.alike
  %fine = and i1 %any, %has.device
  br i1 %fine, label %call, label %give.up
call:
  call void @Py_IncRef(ptr %device)
  %context = call ptr @state_word(i64 $CONTEXT)
  %entered = call i32 @PyContext_Enter(ptr %context)
  %busy = icmp ne i32 %entered, 0
  br i1 %busy, label %refused, label %quiet
quiet:
  br i1 %all.positional, label %by.dict, label %by.tuple
by.dict:
  %made.by.dict = call ptr @PyObject_VectorcallDict(ptr %function, ptr %stack, i64 %count, ptr %named)
  br label %called
by.tuple:
  %made.by.tuple = call ptr @PyObject_Vectorcall(ptr %function, ptr %stack, i64 %positional, ptr %named)
  br label %called
called:
  %made = phi ptr [ %made.by.dict, %by.dict ], [ %made.by.tuple, %by.tuple ]
  %exited = call i32 @PyContext_Exit(ptr %context)
  %unsettled = call i1 @host.settle(ptr %facts)
  call void @host.drop(ptr %stack, i64 %count)
  br i1 %unsettled, label %lose, label %judge.made
lose:
  call void @drop(ptr %made)
  br label %leave
judge.made:
  %lacks = icmp eq ptr %made, null
  br i1 %lacks, label %ask, label %convert
convert:
  %result = call ptr @host.value(ptr %made)
  %unknown = icmp eq ptr %result, null
  br i1 %unknown, label %leave, label %give
give:
  ret ptr %result
ask:
  %refusals = call ptr @state_word(i64 $REFUSALS)
  %matches = call i32 @PyErr_ExceptionMatches(ptr %refusals)
  %is.refusal = icmp ne i32 %matches, 0
  br i1 %is.refusal, label %clear, label %leave
clear:
  call void @PyErr_Clear()
  br label %leave
refused:
  call void @PyErr_Clear()
  %refused.settled = call i1 @host.settle(ptr %facts)
  call void @host.drop(ptr %stack, i64 %count)
  br label %leave
leave:
  call void @Py_DecRef(ptr %device)
  ret ptr null
give.up:
  %given.up.settled = call i1 @host.settle(ptr %facts)
  call void @host.drop(ptr %stack, i64 %k)
  br label %no
no:
  ret ptr null
}
; Release what is held, if anything is; an error that is set stays, unless releasing raises one: true, and that is set.
define internal i1 @host.settle(ptr %facts) {
  %count.slot = getelementptr i64, ptr %facts, i64 6
  %count = load i64, ptr %count.slot, align 8
  %any = icmp ne i64 %count, 0
  br i1 %any, label %yes, label %no
yes:
  %error = alloca [3 x ptr], align 8
  call void @error.take(ptr %error)
  %raised = call i1 @host.release(ptr %facts, ptr %error)
  call void @error.put(ptr %error)
  ret i1 %raised
no:
  ret i1 false
}
define internal void @host.drop(ptr %stack, i64 %count) {
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %more ]
  %is = icmp slt i64 %k, %count
  br i1 %is, label %more, label %end
more:
  %slot = getelementptr ptr, ptr %stack, i64 %k
  %object = load ptr, ptr %slot, align 8
  call void @Py_DecRef(ptr %object)
  %k.next = add i64 %k, 1
  br label %next
end:
  ret void
}
; The function in Python of the first owner, for arguments by position in a tuple and by name in a dict.
define ptr @host.run(ptr %self, ptr %arguments, i64 %count) {
entry:
  %facts = alloca [$FACTWORDS x i64], align 8
  call void @llvm.memset.p0.i64(ptr %facts, i8 0, i64 $FACTBYTES, i1 false)
  %combined.slot = getelementptr i64, ptr %facts, i64 1
  store i64 1, ptr %combined.slot, align 8
  %args = load ptr, ptr %arguments, align 8
  %named.slot = getelementptr ptr, ptr %arguments, i64 1
  %named.dict = load ptr, ptr %named.slot, align 8
  %names = call i64 @PyDict_Size(ptr %named.dict)
  %has.names = icmp ne i64 %names, 0
  %named = select i1 %has.names, ptr %named.dict, ptr null
  %function = call ptr @word(ptr %self, i64 $TUPLE)
  %mask.slot = add i64 $TUPLE, 8
  %mask.object = call ptr @word(ptr %self, i64 %mask.slot)
  %mask = call i64 @integer(ptr %mask.object)
  %most.slot = add i64 $TUPLE, 16
  %most.object = call ptr @word(ptr %self, i64 %most.slot)
  %most = call i64 @integer(ptr %most.object)
  %length = call i64 @PyTuple_Size(ptr %args)
  %items = getelementptr i8, ptr %args, i64 $TUPLE
  %value = call ptr @host.compute(
    ptr %function, i64 %mask, ptr %items, i64 %length, i64 %length, ptr %named, ptr %facts, i64 %most)
  %lacks = icmp eq ptr %value, null
  br i1 %lacks, label %none, label %wrap
none:
  %left = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %left, null
  br i1 %raised, label %raise, label %quiet
raise:
  ret ptr null
quiet:
  %nothing = call ptr @host.none()
  ret ptr %nothing
wrap:
  %device = load ptr, ptr %facts, align 8
  %line = call ptr @locate_above()
  %result = call ptr @wrap_at(ptr %value, ptr %device, ptr %line)
  ret ptr %result
}
"""

#: What a method does for arguments after the array itself; NumPy's function and that in Python are words of the state.
_METHODS: Final = """
define internal ptr @host.method(
    ptr %self, ptr %arguments, i64 %count, ptr %names, i64 %host, i64 %mask, i64 %most,
    i64 %fallback) {
entry:
  %facts = alloca [$FACTWORDS x i64], align 8
  %stack = alloca [$MOSTSTACK x ptr], align 8
  %is.array = call i1 @is_array(ptr %self)
  %has.names = icmp ne ptr %names, null
  br i1 %has.names, label %count.names, label %begin
count.names:
  %name.count = call i64 @PyTuple_Size(ptr %names)
  br label %begin
begin:
  %named = phi i64 [ 0, %entry ], [ %name.count, %count.names ]
  %given = add i64 %count, %named
  %total = add i64 %given, 1
  %positional = add i64 %count, 1
  %short = icmp sle i64 %total, $MOSTSTACK
  br i1 %short, label %fill, label %many
fill:
  store ptr %self, ptr %stack, align 8
  %rest = getelementptr ptr, ptr %stack, i64 1
  %bytes = mul i64 %given, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %arguments, i64 %bytes, i1 false)
  br i1 %is.array, label %try, label %slow
try:
  call void @llvm.memset.p0.i64(ptr %facts, i8 0, i64 $FACTBYTES, i1 false)
  %combined.slot = getelementptr i64, ptr %facts, i64 1
  store i64 1, ptr %combined.slot, align 8
  %function = call ptr @state_word(i64 %host)
  %value = call ptr @host.compute(
    ptr %function, i64 %mask, ptr %stack, i64 %total, i64 %positional, ptr %names, ptr %facts, i64 %most)
  %lacks = icmp eq ptr %value, null
  br i1 %lacks, label %none, label %wrap
none:
  %left = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %left, null
  br i1 %raised, label %raise, label %slow
raise:
  ret ptr null
wrap:
  %device = load ptr, ptr %facts, align 8
  %result = call ptr @wrap(ptr %value, ptr %device, i64 0)
  ret ptr %result
slow:
  %method = call ptr @state_word(i64 %fallback)
  %by.python = call ptr @PyObject_Vectorcall(ptr %method, ptr %stack, i64 %positional, ptr %names)
  ret ptr %by.python
many:
  %python.method = call ptr @state_word(i64 %fallback)
  %by.all = call ptr @call_python(
    ptr %python.method, ptr %self, ptr %arguments, i64 %given, i64 %count, ptr %names)
  ret ptr %by.all
}
"""

_METHOD: Final = """
define ptr @method.$METHOD(ptr %self, ptr %arguments, i64 %count, ptr %names) {
  %made = call ptr @host.method(
    ptr %self, ptr %arguments, i64 %count, ptr %names, i64 $HOST, i64 $MASK, i64 $MOST, i64 $FALLBACK)
  ret ptr %made
}
"""


def method_text(
    method: str, chars: str, most: int, host: int, fallback: int, fields: Mapping[str, int]
) -> str:
    """The function of a method such as `sum`: NumPy's function and the Python method are words of the state."""
    return text(
        _METHOD,
        fields,
        METHOD=method,
        MASK=str(kind_mask(chars)),
        MOST=str(most),
        HOST=str(8 * host),
        FALLBACK=str(8 * fallback),
    )


def kind_mask(chars: str) -> int:
    """The kinds of the element types with these codes, a bit for each."""
    return sum(1 << number for kind, number in KINDS.items() if np.dtype(kind).char in chars)


def call_text(fields: Mapping[str, int]) -> str:
    """The function `host.run`, and what methods call."""
    return text(
        OPERANDS + _CALL + _METHODS,
        fields,
        MOSTBYTES=str(MOST_PLAIN_BYTES),
        MOSTCOMBINED=str(MOST_COMBINED),
        MOSTARGUMENTS=str(_MOST_ARGUMENTS),
        MINSHARED=str(_MIN_SHARED),
        MOSTHELD=str(_WORDS - 7),
        MOSTSTACK=str(_MOST_ARGUMENTS),
        MOSTITEMS=str(_MOST_ITEMS),
        FACTWORDS=str(_WORDS),
        FACTBYTES=str(8 * _WORDS),
    )
