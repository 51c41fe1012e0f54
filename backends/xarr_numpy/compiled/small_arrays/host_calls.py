"""LLVM IR of calls of NumPy's functions with the values of Arrays, for functions of which the frontend knows the same.

The rules are those of `xarr.calls.host_functions`, whose Python computes where a call gives None here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from xarr.base.at_once.numpy_calls import EXACT_SINGLE, LARGEST_INT, SINGLE, WIDE, NumPyCall, Unless
from xarr.ir.types import MOST_COMBINED, MOST_PLAIN_BYTES
from xarr_numpy.compiled.small_arrays.host_checks import CHECKS
from xarr_numpy.compiled.small_arrays.host_operands import OPERANDS
from xarr_numpy.compiled.small_arrays.objects import KINDS, text

#: Arguments of a call, items of a list, and how deep lists may lie in lists.
_MOST_ARGUMENTS: Final = 8
_MOST_ITEMS: Final = 4096
_DEEPEST_LIST: Final = 4

#: What a call knows of its operands: device, elements of all combinations, the first array, arrays, a bit for each kind
#: of elements, whether shapes differ, whether NumPy refused, and what numbers there are.
_WORDS: Final = 8

_CALL: Final = """
; What NumPy gave as the value of an Array, the reference to it taken over; null, without an error, for another object.
define internal ptr @host.value(ptr %made) {
  %is.ndarray = call i1 @is_ndarray(ptr %made)
  unless %is.ndarray goto number, array:
  %kind = call i64 @kind_of(ptr %made)
  %itemsize = call i64 @bytes_of(i64 %kind)
  %size = call i64 @size(ptr %made)
  %bytes = mul i64 %itemsize, %size
  %small = icmp sle i64 %bytes, $MOSTBYTES
  %known = icmp sgt i64 %itemsize, 0
  %fine = and i1 %small, %known
  unless %fine goto no, shape:
  %rank = call i64 @rank(ptr %made)
  %is.point = icmp eq i64 %rank, 0
  unless %is.point goto order, point:
  %at = call ptr @word(ptr %made, i64 $DATA)
  %plain = call ptr @number_at(ptr %at, i64 %kind)
  release %made
  ret ptr %plain
order:
  %flags = call i32 @flags(ptr %made)
  %row.major = and i32 %flags, 1
  %is.row.major = icmp ne i32 %row.major, 0
  unless %is.row.major goto copy, give:
  ret ptr %made
copy:
  %name = call ptr @state_word(i64 $COPY)
  %arguments = alloca ptr, align 8
  store ptr %made, ptr %arguments, align 8
  %copied = call ptr @PyObject_VectorcallMethod(ptr %name, ptr %arguments, i64 1, ptr null)
  release %made
  ret ptr %copied
number:
  %own = call ptr @plain(ptr %made)
  ret ptr %own
no:
  release %made
  ret ptr null
}
; The value for a row and its arguments: so many by position, and the last ones by name, of which a tuple has the names.
; The device is put into the first of the facts, a reference.  Null, without an error, where Python
; computes; the last fact is 1 where NumPy refused.
define internal ptr @host.compute(
    ptr %row, ptr %items, i64 %count, i64 %positional, ptr %named, ptr %facts) {
entry:
  %stack = alloca [$MOSTSTACK x ptr], align 8
  %refused.slot = getelementptr i64, ptr %facts, i64 6
  %is.free = call i1 @is_free()
  %short = icmp slt i64 %count, $MOSTSTACK
  %begins = and i1 %is.free, %short
  %most = call i64 @row.number(ptr %row, i64 1)
  %options.given = sub i64 %positional, %most
  %some.given = icmp sgt i64 %options.given, 0
  %given = select i1 %some.given, i64 %options.given, i64 0
  %most.given = call i64 @row.number(ptr %row, i64 3)
  %few.given = icmp sle i64 %given, %most.given
  %usual = and i1 %begins, %few.given
  unless %usual return null, next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %is = icmp slt i64 %k, %positional
  unless %is goto names, more:
  %item = load ptr, ptr %items[%k]
  %is.operand = icmp slt i64 %k, %most
  unless %is.operand goto option, operand:
  %made.of.it = call ptr @host.operand(ptr %item, ptr %row, ptr %facts, i64 $DEEPEST)
  %bad = icmp eq ptr %made.of.it, null
  br i1 %bad, label %give.up, label %put
option:
  %number = sub i64 %k, %most
  %fits = call i1 @host.fits(ptr %row, i64 %number, ptr %item)
  unless %fits goto give.up, as.it.is:
  hold %item
  then put:
  %own = phi ptr [ %made.of.it, %operand ], [ %item, %as.it.is ]
  %slot = getelementptr ptr, ptr %stack, i64 %k
  store ptr %own, ptr %slot, align 8
  %k.next = add i64 %k, 1
  br label %next
; Of the options by name: whether the first one, which may have to be filled in, is among them.
names:
  %has.names = icmp ne ptr %named, null
  unless %has.names goto fill, each:
  %j = phi i64 [ %positional, %names ], [ %j.next, %ask ]
  %each.first = phi i1 [ false, %names ], [ %each.named, %ask ]
  %each.more = icmp slt i64 %j, %count
  unless %each.more goto fill, ask:
  %name.number = sub i64 %j, %positional
  %name = call ptr @PyTuple_GetItem(ptr %named, i64 %name.number)
  %value = load ptr, ptr %items[%j]
  %each.number = call i64 @host.option(ptr %row, ptr %name, ptr %value, i64 %given)
  %each.is.first = icmp eq i64 %each.number, 0
  %each.named = or i1 %each.first, %each.is.first
  %j.next = add i64 %j, 1
  %each.known = icmp sge i64 %each.number, 0
  br i1 %each.known, label %each, label %give.up
fill:
  %is.named = phi i1 [ false, %names ], [ %each.first, %each ]
  %fills = call i1 @row.has(ptr %row, i64 $FILLS)
  %none.given = icmp eq i64 %positional, %most
  %left.out = xor i1 %is.named, true
  %wanted = and i1 %fills, %none.given
  %filled = and i1 %wanted, %left.out
  unless %filled goto copy, put.none:
  %none.slot = getelementptr ptr, ptr %stack, i64 %k
  store ptr @_Py_NoneStruct, ptr %none.slot, align 8
  hold @_Py_NoneStruct
  then copy:
  %one = zext i1 %filled to i64
  %by.position = add i64 %positional, %one
  for %c from %positional below %count
  %from.slot = getelementptr ptr, ptr %items, i64 %c
  %to = add i64 %c, %one
  %to.slot = getelementptr ptr, ptr %stack, i64 %to
  %option.value = load ptr, ptr %from.slot, align 8
  hold %option.value
  store ptr %option.value, ptr %to.slot, align 8
  end %c
  %total = add i64 %count, %one
  %device = load ptr, ptr %facts, align 8
  %combined = load i64, ptr %facts[1]
  %arrays = load i64, ptr %facts[3]
  %differ = load i64, ptr %facts[5]
  %has.device = icmp ne ptr %device, null
  %is.one = icmp eq i64 %arrays, 1
  %are.less = icmp slt i64 %positional, %most
  %operands = select i1 %are.less, i64 %positional, i64 %most
  %results = call i64 @host.results(ptr %row, ptr %facts, i64 %combined, ptr %stack, i64 %operands)
  %are.few = icmp sle i64 %results, $MOSTCOMBINED
  %are.alike = icmp eq i64 %differ, 0
  %are.joined = call i1 @row.has(ptr %row, i64 $BOUNDED)
  %either = or i1 %is.one, %are.few
  %some = or i1 %either, %are.alike
  %any = or i1 %some, %are.joined
  %usual.sizes = and i1 %any, %has.device
  %combine = call i1 @host.combines(ptr %row, ptr %facts)
  %fine = and i1 %usual.sizes, %combine
  unless %fine goto drop.all, see.operand:
  %first = load ptr, ptr %stack, align 8
  %unsure = call i1 @host.is_unsure(ptr %row, ptr %first)
  if %unsure goto drop.all, call:
  hold %device
  %context = call ptr @state_word(i64 $CONTEXT)
  %entered = call i32 @PyContext_Enter(ptr %context)
  %busy = icmp ne i32 %entered, 0
  if %busy goto refused, quiet:
  %function = call ptr @word(ptr %row, i64 $TUPLE)
  %made = call ptr @PyObject_Vectorcall(ptr %function, ptr %stack, i64 %by.position, ptr %named)
  %exited = call i32 @PyContext_Exit(ptr %context)
  %lacks = icmp eq ptr %made, null
  if %lacks goto ask.error, see.zeros:
  %of.zeros = call i1 @row.has(ptr %row, i64 $BOTHZEROS)
  unless %of.zeros goto convert, look.zeros:
  %result.zero = call i1 @host.has_zero(ptr %made, i64 0)
  unless %result.zero goto convert, look.operand:
  for %z from 0 below %most
  %z.operand = load ptr, ptr %stack[%z]
  %operand.zero = call i1 @host.has_zero(ptr %z.operand, i64 1)
  br i1 %operand.zero, label %lose, label %z.last
  end %z
  br label %convert
lose:
  release %made
  br label %leave
convert:
  %result = call ptr @host.value(ptr %made)
  %unknown = icmp eq ptr %result, null
  if %unknown goto leave, give:
  call void @host.drop(ptr %stack, i64 %total)
  ret ptr %result
ask.error:
  %refusals = call ptr @state_word(i64 $REFUSALS)
  %matches = call i32 @PyErr_ExceptionMatches(ptr %refusals)
  %is.refusal = icmp ne i32 %matches, 0
  unless %is.refusal goto leave, clear:
  call void @PyErr_Clear()
  store i64 1, ptr %refused.slot, align 8
  br label %leave
refused:
  call void @PyErr_Clear()
  then leave:
  call void @host.drop(ptr %stack, i64 %total)
  release %device
  ret ptr null
drop.all:
  call void @host.drop(ptr %stack, i64 %total)
  ret ptr null
give.up:
  call void @host.drop(ptr %stack, i64 %k)
  ret ptr null
}
define internal void @host.drop(ptr %stack, i64 %count) {
  for %k from 0 below %count
  %object = load ptr, ptr %stack[%k]
  release %object
  end %k
  ret void
}
; The arguments in a tuple and in a dict as `host.compute` takes them, on a stack, those by name behind the others: how
; many stand by position, and in %all of how many; a new tuple of names into %names, null for none.  Those that may be
; arrays stand by position as far as that goes.  -1, without an error, for too many.
define internal i64 @host.flatten(ptr %row, ptr %args, ptr %dict, ptr %stack, ptr %all, ptr %names) {
entry:
  %position = alloca i64, align 8
  %key = alloca ptr, align 8
  %held = alloca ptr, align 8
  store i64 0, ptr %position, align 8
  store ptr null, ptr %names, align 8
  %count = call i64 @PyTuple_Size(ptr %args)
  %named = call i64 @PyDict_Size(ptr %dict)
  %both = add i64 %count, %named
  store i64 %both, ptr %all, align 8
  %short = icmp slt i64 %both, $MOSTSTACK
  unless %short return -1, copy:
  %items = getelementptr i8, ptr %args, i64 $TUPLE
  %bytes = mul i64 %count, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %stack, ptr %items, i64 %bytes, i1 false)
  %any = icmp ne i64 %named, 0
  if %any goto operands, plain:
  ret i64 %count
operands:
  %at.operands = add i64 $TUPLE, 24
  %operand.names = call ptr @word(ptr %row, i64 %at.operands)
  %most = call i64 @PyTuple_Size(ptr %operand.names)
  then next:
  %k = phi i64 [ %count, %operands ], [ %k.next, %put ]
  %is = icmp slt i64 %k, %most
  unless %is goto rest, look:
  %wanted = call ptr @PyTuple_GetItem(ptr %operand.names, i64 %k)
  %value = call ptr @PyDict_GetItem(ptr %dict, ptr %wanted)
  %is.there = icmp ne ptr %value, null
  unless %is.there goto rest, put:
  %slot = getelementptr ptr, ptr %stack, i64 %k
  store ptr %value, ptr %slot, align 8
  %k.next = add i64 %k, 1
  br label %next
rest:
  %left = sub i64 %both, %k
  %some = icmp ne i64 %left, 0
  if %some goto make, all.done:
  ret i64 %k
make:
  %made = call ptr @PyTuple_New(i64 %left)
  %lacks = icmp eq ptr %made, null
  unless %lacks goto walk, clear:
  call void @PyErr_Clear()
  ret i64 -1
walk:
  %j = phi i64 [ 0, %make ], [ %j, %skip ], [ %j.next, %keep ]
  %goes = call i32 @PyDict_Next(ptr %dict, ptr %position, ptr %key, ptr %held)
  %goes.on = icmp ne i32 %goes, 0
  unless %goes.on goto done, see:
  %name = load ptr, ptr %key, align 8
  br label %compare
; Whether it is one of those that stand by position now.
compare:
  %c = phi i64 [ %count, %see ], [ %c.next, %compare.next ]
  %c.is = icmp slt i64 %c, %k
  unless %c.is goto take, compare.next:
  %c.name = call ptr @PyTuple_GetItem(ptr %operand.names, i64 %c)
  %c.next = add i64 %c, 1
  %c.same = icmp eq ptr %c.name, %name
  unless %c.same goto compare, skip:
  br label %walk
take:
  %fits = icmp slt i64 %j, %left
  unless %fits goto bad, keep:
  hold %name
  %set = call i32 @PyTuple_SetItem(ptr %made, i64 %j, ptr %name)
  %to = add i64 %k, %j
  %to.slot = getelementptr ptr, ptr %stack, i64 %to
  %held.value = load ptr, ptr %held, align 8
  store ptr %held.value, ptr %to.slot, align 8
  %j.next = add i64 %j, 1
  br label %walk
; A name that is equal to one of ours, and not the same string.
bad:
  release %made
  ret i64 -1
done:
  store ptr %made, ptr %names, align 8
  ret i64 %k
}
; By a row, the owner of the function: for arguments by position in a tuple and by name in a dict.
define ptr @host.run(ptr %self, ptr %arguments, i64 %count) {
entry:
  %facts = alloca [$FACTWORDS x i64], align 8
  %stack = alloca [$MOSTSTACK x ptr], align 8
  %all = alloca i64, align 8
  %names = alloca ptr, align 8
  call void @host.begin(ptr %facts)
  %args = load ptr, ptr %arguments, align 8
  %dict = load ptr, ptr %arguments[1]
  %positional = call i64 @host.flatten(ptr %self, ptr %args, ptr %dict, ptr %stack, ptr %all, ptr %names)
  %usual = icmp sge i64 %positional, 0
  unless %usual goto other, compute:
  %total = load i64, ptr %all, align 8
  %named = load ptr, ptr %names, align 8
  %value = call ptr @host.compute(
    ptr %self, ptr %stack, i64 %total, i64 %positional, ptr %named, ptr %facts)
  call void @drop(ptr %named)
  %lacks = icmp eq ptr %value, null
  unless %lacks goto wrap, none:
  %left = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %left, null
  unless %raised goto other, raise:
  ret ptr null
; What NumPy refused is not asked of it again.
other:
  %refused = load i64, ptr %facts[6]
  %shift = shl i64 %refused, 3
  %first = add i64 $TUPLE, 32
  %at = add i64 %first, %shift
  %python = call ptr @word(ptr %self, i64 %at)
  %is.there = icmp ne ptr %python, @_Py_NoneStruct
  unless %is.there goto nothing, ask:
  %by.python = call ptr @PyObject_Vectorcall(ptr %python, ptr %arguments, i64 2, ptr null)
  ret ptr %by.python
nothing:
  hold @_Py_NoneStruct
  ret ptr @_Py_NoneStruct
wrap:
  %device = load ptr, ptr %facts, align 8
  %line = call ptr @locate_above()
  %result = call ptr @wrap_at(ptr %value, ptr %device, ptr %line)
  ret ptr %result
}
define internal void @host.begin(ptr %facts) alwaysinline {
  call void @llvm.memset.p0.i64(ptr %facts, i8 0, i64 $FACTBYTES, i1 false)
  %combined.slot = getelementptr i64, ptr %facts, i64 1
  store i64 1, ptr %combined.slot, align 8
  ret void
}
"""

#: What a method does for arguments after the array itself; the row and the function in Python are words of the state.
_METHODS: Final = """
define internal ptr @host.method(
    ptr %self, ptr %arguments, i64 %count, ptr %names, i64 %host, i64 %fallback) {
entry:
  %facts = alloca [$FACTWORDS x i64], align 8
  %stack = alloca [$MOSTSTACK x ptr], align 8
  %is.array = call i1 @is_array(ptr %self)
  %has.names = icmp ne ptr %names, null
  unless %has.names goto begin, count.names:
  %name.count = call i64 @PyTuple_Size(ptr %names)
  then begin:
  %named = phi i64 [ 0, %entry ], [ %name.count, %count.names ]
  %given = add i64 %count, %named
  %total = add i64 %given, 1
  %positional = add i64 %count, 1
  %short = icmp sle i64 %total, $MOSTSTACK
  unless %short goto many, fill:
  store ptr %self, ptr %stack, align 8
  %rest = getelementptr ptr, ptr %stack, i64 1
  %bytes = mul i64 %given, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %arguments, i64 %bytes, i1 false)
  unless %is.array goto slow, try:
  call void @host.begin(ptr %facts)
  %row = call ptr @state_word(i64 %host)
  %value = call ptr @host.compute(
    ptr %row, ptr %stack, i64 %total, i64 %positional, ptr %names, ptr %facts)
  %lacks = icmp eq ptr %value, null
  unless %lacks goto wrap, none:
  %left = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %left, null
  unless %raised goto slow, raise:
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
    ptr %self, ptr %arguments, i64 %count, ptr %names, i64 $HOST, i64 $FALLBACK)
  ret ptr %made
}
"""


def method_text(method: str, host: int, fallback: int, fields: Mapping[str, int]) -> str:
    """The function of a method such as `sum`: its row and the Python method are words of the state."""
    return text(_METHOD, fields, METHOD=method, HOST=str(8 * host), FALLBACK=str(8 * fallback))


def row_of(call: NumPyCall, names: Sequence[str] = (), *others: object) -> tuple[object, ...]:
    """A row as machine code reads it: function, numbers, names of options and of arguments that may be arrays, others.

    The numbers: the mask of the element types, how many arguments may be arrays, flags, how many options may be given
    by position, and the kinds that each option takes; of strings none, which are left to Python.
    """
    reasons = (Unless.EMPTY, Unless.NEGATIVE_ZEROS, Unless.ZEROS_OF_BOTH_SIGNS)
    flags = [call.lists, call.numbers, call.fills, *[call.unless & each for each in reasons], call.alike]
    flags += [call.contracts, call.is_bounded]
    bits = sum(1 << index for index, is_set in enumerate(flags) if is_set)
    kinds = [kinds if isinstance(kinds, int) else 0 for kinds in call.options.values()]
    numbers = np.array([kind_mask(call.chars), call.most, bits, call.by_position, *kinds], np.int64)
    options, operands = (tuple(map(sys.intern, each)) for each in (call.options, names))
    return call.call, numbers, options, operands, *others


def kind_mask(chars: str) -> int:
    """The kinds of the element types with these codes, a bit for each."""
    return sum(1 << number for kind, number in KINDS.items() if np.dtype(kind).char in chars)


def call_text(fields: Mapping[str, int]) -> str:
    """The function `host.run`, and what methods call."""
    flags = (
        "LISTS",
        "NUMBERS",
        "FILLS",
        "EMPTY",
        "NEGATIVEZEROS",
        "BOTHZEROS",
        "ALIKE",
        "CONTRACTS",
        "BOUNDED",
    )
    return text(
        OPERANDS + CHECKS + _CALL + _METHODS,
        fields,
        MOSTBYTES=str(MOST_PLAIN_BYTES),
        MOSTCOMBINED=str(MOST_COMBINED),
        MOSTPRODUCT=str(2**40),
        MOSTSTACK=str(_MOST_ARGUMENTS),
        MOSTITEMS=str(_MOST_ITEMS),
        DEEPEST=str(_DEEPEST_LIST),
        LARGEST=str(LARGEST_INT),
        SINGLEKIND=str(KINDS["float32"]),
        EXACTKINDS=str(kind_mask("?bBhHiIlL")),
        WIDEKINDS=str(kind_mask(WIDE)),
        BESIDEKINDS=str(kind_mask(WIDE + SINGLE)),
        NUMBERKINDS=str(kind_mask(WIDE + SINGLE) & ~kind_mask("?")),
        INEXACTKINDS=str(kind_mask("dDfF")),
        SMALL=str(EXACT_SINGLE),
        FIRSTOPTION="4",
        FACTWORDS=str(_WORDS),
        FACTBYTES=str(8 * _WORDS),
        POINTS="3",
        **{name: str(1 << index) for index, name in enumerate(flags)},
    )
