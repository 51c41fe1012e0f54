"""LLVM IR of what stands for the arguments of a call in that of NumPy's function, and of what is known of them."""

from __future__ import annotations

from typing import Final

OPERANDS: Final = """
; A number of a row, which has them in an array.
define internal i64 @row.number(ptr %row, i64 %index) alwaysinline {
  %slot.numbers = add i64 $TUPLE, 8
  %numbers = call ptr @word(ptr %row, i64 %slot.numbers)
  %data = call ptr @word(ptr %numbers, i64 $DATA)
  %number = load i64, ptr %data[%index]
  ret i64 %number
}
define internal i1 @row.has(ptr %row, i64 %flag) alwaysinline {
  %flags = call i64 @row.number(ptr %row, i64 2)
  %own = and i64 %flags, %flag
  %has = icmp ne i64 %own, 0
  ret i1 %has
}
; Whether arrays of a kind of elements may stand in a call; the facts note it.
define internal i1 @row.takes(ptr %row, i64 %kind, ptr %facts) {
  %mask = call i64 @row.number(ptr %row, i64 0)
  %bit = shl i64 1, %kind
  %taken = and i64 %bit, %mask
  %known = icmp ne i64 %taken, 0
  call void @host.note(ptr %facts, i64 4, i64 %bit)
  ret i1 %known
}
define internal void @host.note(ptr %facts, i64 %word, i64 %bits) alwaysinline {
  %slot = getelementptr i64, ptr %facts, i64 %word
  %before = load i64, ptr %slot, align 8
  %after = or i64 %before, %bits
  store i64 %after, ptr %slot, align 8
  ret void
}
; Whether the arrays and Python numbers of a call are of element types that go together, as `NumPyCall.combines` says.
define internal i1 @host.combines(ptr %row, ptr %facts) {
  %kinds = load i64, ptr %facts[4]
  %numbers = load i64, ptr %facts[7]
  %alike = call i1 @row.has(ptr %row, i64 $ALIKE)
  %less = sub i64 %kinds, 1
  %others = and i64 %kinds, %less
  %is.single = icmp eq i64 %others, 0
  %different = xor i1 %alike, true
  %one.type = or i1 %different, %is.single
  %any = icmp ne i64 %numbers, 0
  if %any goto beside, alone:
  ret i1 %one.type
beside:
  %large = and i64 %numbers, 2
  %is.large = icmp ne i64 %large, 0
  %all = select i1 %is.large, i64 $WIDEKINDS, i64 $BESIDEKINDS
  %float = and i64 %numbers, 4
  %is.float = icmp ne i64 %float, 0
  %not.bools = and i64 %all, $NUMBERKINDS
  %inexact = and i64 %all, $INEXACTKINDS
  %strict = select i1 %is.float, i64 %inexact, i64 %not.bools
  %allowed = select i1 %alike, i64 %strict, i64 %all
  %wrong = xor i64 %allowed, -1
  %bad = and i64 %kinds, %wrong
  %fine = icmp eq i64 %bad, 0
  %both = and i1 %fine, %one.type
  ret i1 %both
}
; The kinds of an argument that is no array, as `numpy_calls.ArgumentKind` counts them; 0 for none of these.
define internal i64 @host.kinds(ptr %item) {
entry:
  %is.none = icmp eq ptr %item, @_Py_NoneStruct
  unless %is.none goto a, none:
  ret i64 1
a:
  %is.bool = call i1 @is_of(ptr %item, ptr @PyBool_Type)
  unless %is.bool goto b, bool:
  ret i64 4
b:
  %is.int = call i1 @host.is_whole(ptr %item)
  unless %is.int goto c, int:
  ret i64 2
c:
  %is.tuple = call i1 @is_of(ptr %item, ptr @PyTuple_Type)
  unless %is.tuple return 0, tuple:
  %count = call i64 @PyTuple_Size(ptr %item)
  %some = icmp sgt i64 %count, 0
  unless %some return 0, look:
  for %k from 0 below %count
  %each = call ptr @PyTuple_GetItem(ptr %item, i64 %k)
  %whole = call i1 @host.is_whole(ptr %each)
  br i1 %whole, label %k.last, label %return.0
  end %k
  ret i64 8
}
define internal i1 @host.is_whole(ptr %item) {
  %is.int = call i1 @is_of(ptr %item, ptr @PyLong_Type)
  unless %is.int return false, read:
  %number = call i64 @integer(ptr %item)
  %above = icmp sgt i64 %number, -$LARGEST
  %below = icmp slt i64 %number, $LARGEST
  %fits = and i1 %above, %below
  ret i1 %fits
}
; What stands for an argument in the call, a new reference; null for what nothing does, with or without an error.
define internal ptr @host.leaf(ptr %item, ptr %row, ptr %facts) {
  %is.array = call i1 @is_array(ptr %item)
  unless %is.array goto plain, array:
  %value = call ptr @word(ptr %item, i64 $AT_VALUE)
  %set = call i1 @is_there(ptr %value)
  br i1 %set, label %own, label %return.null
; Constants are on no device.
own:
  %device = call ptr @word(ptr %item, i64 $AT_DEVICE)
  %has.device = call i1 @is_there(ptr %device)
  unless %has.device goto count, join:
  %known.device = load ptr, ptr %facts, align 8
  %first.device = icmp eq ptr %known.device, null
  %same.device = icmp eq ptr %known.device, %device
  %fine.device = or i1 %first.device, %same.device
  unless %fine.device return null, keep.device:
  store ptr %device, ptr %facts, align 8
  then count:
  %arrays.slot = getelementptr i64, ptr %facts, i64 3
  %arrays = load i64, ptr %arrays.slot, align 8
  %arrays.next = add i64 %arrays, 1
  store i64 %arrays.next, ptr %arrays.slot, align 8
  %is.ndarray = call i1 @is_ndarray(ptr %value)
  unless %is.ndarray goto single, many:
  %kind = call i64 @kind_of(ptr %value)
  %known = call i1 @row.takes(ptr %row, i64 %kind, ptr %facts)
  unless %known return null, measure:
  %size = call i64 @size(ptr %value)
  %combined.slot = getelementptr i64, ptr %facts, i64 1
  %combined = load i64, ptr %combined.slot, align 8
  %product = mul i64 %combined, %size
  %few = icmp sle i64 %combined, $MOSTPRODUCT
  %combined.next = select i1 %few, i64 %product, i64 %combined
  store i64 %combined.next, ptr %combined.slot, align 8
  %first.slot = getelementptr ptr, ptr %facts, i64 2
  %first = load ptr, ptr %first.slot, align 8
  %is.first = icmp eq ptr %first, null
  unless %is.first goto compare, note:
  store ptr %value, ptr %first.slot, align 8
  br label %give
compare:
  %alike = call i1 @is_same_shape(ptr %first, ptr %value)
  if %alike goto give, differ:
  call void @host.differ(ptr %facts)
  then give:
  hold %value
  ret ptr %value
single:
  call void @host.differ(ptr %facts)
  %may.be.number = call i1 @row.has(ptr %row, i64 $POINTS)
  unless %may.be.number return null, number:
  %is.float = call i1 @is_of(ptr %value, ptr @PyFloat_Type)
  %is.int = call i1 @is_of(ptr %value, ptr @PyLong_Type)
  %is.bool = call i1 @is_of(ptr %value, ptr @PyBool_Type)
  %float.class = call ptr @state_word(i64 $NUMPYFLOAT)
  %int.class = call ptr @state_word(i64 $NUMPYINT)
  %bool.class = call ptr @state_word(i64 $NUMPYBOOL)
  %c1 = select i1 %is.float, ptr %float.class, ptr null
  %c2 = select i1 %is.int, ptr %int.class, ptr %c1
  %class = select i1 %is.bool, ptr %bool.class, ptr %c2
  %scalar.kind = call i64 @scalar_kind(ptr %value)
  %k1 = select i1 %is.float, i64 1, i64 %scalar.kind
  %k2 = select i1 %is.int, i64 2, i64 %k1
  %own.kind = select i1 %is.bool, i64 3, i64 %k2
  %fits = call i1 @row.takes(ptr %row, i64 %own.kind, ptr %facts)
  unless %fits return null, strong:
  %is.python = icmp ne ptr %class, null
  unless %is.python goto give, make:
  %made = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %class, ptr %value, ptr null)
  ret ptr %made
plain:
  %is = call i1 @host.is_number(ptr %item, ptr %row, ptr %facts)
  unless %is return null, same:
  call void @host.differ(ptr %facts)
  hold %item
  ret ptr %item
}
define internal void @host.differ(ptr %facts) alwaysinline {
  %slot = getelementptr i64, ptr %facts, i64 5
  store i64 1, ptr %slot, align 8
  ret void
}
; Whether a Python number may stand for an array; the facts note 1, 2 for one that no float32 holds, and 4 for a float.
define internal i1 @host.is_number(ptr %item, ptr %row, ptr %facts) {
  %may.be = call i1 @row.has(ptr %row, i64 $NUMBERS)
  unless %may.be return false, look:
  %is.float = call i1 @is_of(ptr %item, ptr @PyFloat_Type)
  unless %is.float goto other, float:
  %double = call double @PyFloat_AsDouble(ptr %item)
  %size = call double @llvm.fabs.f64(double %double)
  %above = fcmp ogt double %size, 0x47EFFFFFE0000000
  %finite = fcmp one double %size, 0x7FF0000000000000
  %is.large.float = and i1 %above, %finite
  %float.bits = select i1 %is.large.float, i64 7, i64 5
  br label %yes
other:
  %kinds = call i64 @host.kinds(ptr %item)
  %own = and i64 %kinds, 6
  %is.whole = icmp ne i64 %own, 0
  unless %is.whole return false, whole:
  %number = call i64 @integer(ptr %item)
  %below = icmp sgt i64 %number, $SMALL
  %beyond = icmp slt i64 %number, -$SMALL
  %is.large = or i1 %below, %beyond
  %whole.bits = select i1 %is.large, i64 3, i64 1
  then yes:
  %bits = phi i64 [ %float.bits, %float ], [ %whole.bits, %whole ]
  call void @host.note(ptr %facts, i64 7, i64 %bits)
  ret i1 true
}
; As `host.leaf`, for lists and tuples of such arguments too, where the row takes them; of rows that take numbers for
; lists of lists too, so deep.
define internal ptr @host.operand(ptr %item, ptr %row, ptr %facts, i64 %depth) {
entry:
  %is.list = call i1 @is_of(ptr %item, ptr @PyList_Type)
  %is.tuple = call i1 @is_of(ptr %item, ptr @PyTuple_Type)
  %several = or i1 %is.list, %is.tuple
  if %several goto ask, leaf:
  %alone = call ptr @host.leaf(ptr %item, ptr %row, ptr %facts)
  ret ptr %alone
ask:
  %may.be = call i1 @row.has(ptr %row, i64 $LISTS)
  %left = icmp sgt i64 %depth, 0
  %fine = and i1 %may.be, %left
  unless %fine goto no, items:
  call void @host.differ(ptr %facts)
  unless %is.list goto of.tuple, of.list:
  %list.count = call i64 @PyList_Size(ptr %item)
  %is.short = icmp sle i64 %list.count, $MOSTITEMS
  br i1 %is.short, label %copy, label %no
; Python may run meanwhile, and change the list.
copy:
  %copied = call ptr @PyList_AsTuple(ptr %item)
  %not.copied = icmp eq ptr %copied, null
  br i1 %not.copied, label %no, label %make
of.tuple:
  hold %item
  then make:
  %source = phi ptr [ %copied, %copy ], [ %item, %of.tuple ]
  %count = call i64 @PyTuple_Size(ptr %source)
  %short = icmp sle i64 %count, $MOSTITEMS
  unless %short goto lose, new:
  %made = call ptr @PyList_New(i64 %count)
  %lacks = icmp eq ptr %made, null
  if %lacks goto lose, fill:
  for %k from 0 below %count
  %each = call ptr @PyTuple_GetItem(ptr %source, i64 %k)
  %takes.numbers = call i1 @row.has(ptr %row, i64 $NUMBERS)
  %below = sub i64 %depth, 1
  %depth.left = select i1 %takes.numbers, i64 %below, i64 0
  %own = call ptr @host.operand(ptr %each, ptr %row, ptr %facts, i64 %depth.left)
  %bad = icmp eq ptr %own, null
  if %bad goto drop, put:
  %status = call i32 @PyList_SetItem(ptr %made, i64 %k, ptr %own)
  end %k
  release %source
  ret ptr %made
drop:
  release %made
  then lose:
  release %source
  then no:
  ret ptr null
}
"""
