"""LLVM IR of what stands for the arguments of a call in that of NumPy's function, and of what is known of them."""

from __future__ import annotations

from typing import Final

OPERANDS: Final = """
; What stands for an argument in the call, a new reference; null for what nothing does, with or without an error.
define internal ptr @host.leaf(ptr %item, i64 %mask, ptr %facts) {
  %is.array = call i1 @is_array(ptr %item)
  br i1 %is.array, label %array, label %plain
array:
  %value = call ptr @value_of(ptr %item)
  %set = icmp ne ptr %value, null
  br i1 %set, label %own, label %no
own:
  %device = call ptr @word(ptr %item, i64 $AT_DEVICE)
  %known.device = load ptr, ptr %facts, align 8
  %first.device = icmp eq ptr %known.device, null
  %same.device = icmp eq ptr %known.device, %device
  %fine.device = or i1 %first.device, %same.device
  br i1 %fine.device, label %keep.device, label %no
keep.device:
  store ptr %device, ptr %facts, align 8
  %arrays.slot = getelementptr i64, ptr %facts, i64 3
  %arrays = load i64, ptr %arrays.slot, align 8
  %arrays.next = add i64 %arrays, 1
  store i64 %arrays.next, ptr %arrays.slot, align 8
  %is.ndarray = call i1 @is_ndarray(ptr %value)
  br i1 %is.ndarray, label %many, label %single
many:
  %kind = call i64 @kind_of(ptr %value)
  %bit = shl i64 1, %kind
  %taken = and i64 %bit, %mask
  %known = icmp ne i64 %taken, 0
  br i1 %known, label %measure, label %no
; NumPy lets other threads run while it computes many elements: one of them may give the node's memory away.
measure:
  %size = call i64 @size(ptr %value)
  %shown = call ptr @word(ptr %item, i64 $AT_SHOWN)
  %has.node = call i1 @is_there(ptr %shown)
  %long = icmp sge i64 %size, $MINSHARED
  %is.shared = and i1 %has.node, %long
  br i1 %is.shared, label %hold, label %combine
hold:
  %held = call i1 @host.hold(ptr %item, ptr %value, ptr %shown, ptr %facts)
  br i1 %held, label %combine, label %no
combine:
  %combined.slot = getelementptr i64, ptr %facts, i64 1
  %combined = load i64, ptr %combined.slot, align 8
  %product = mul i64 %combined, %size
  %few = icmp sle i64 %combined, $MOSTBYTES
  %combined.next = select i1 %few, i64 %product, i64 %combined
  store i64 %combined.next, ptr %combined.slot, align 8
  %first.slot = getelementptr ptr, ptr %facts, i64 2
  %first = load ptr, ptr %first.slot, align 8
  %is.first = icmp eq ptr %first, null
  br i1 %is.first, label %note, label %compare
note:
  store ptr %value, ptr %first.slot, align 8
  br label %give
compare:
  %alike = call i1 @is_same_shape(ptr %first, ptr %value)
  br i1 %alike, label %give, label %differ
differ:
  call void @host.differ(ptr %facts)
  br label %give
give:
  call void @Py_IncRef(ptr %value)
  ret ptr %value
single:
  call void @host.differ(ptr %facts)
  %is.float = call i1 @is_of(ptr %value, ptr @PyFloat_Type)
  %is.int = call i1 @is_of(ptr %value, ptr @PyLong_Type)
  %is.bool = call i1 @is_of(ptr %value, ptr @PyBool_Type)
  %float.class = call ptr @state_word(i64 $NUMPYFLOAT)
  %int.class = call ptr @state_word(i64 $NUMPYINT)
  %bool.class = call ptr @state_word(i64 $NUMPYBOOL)
  %c1 = select i1 %is.float, ptr %float.class, ptr null
  %c2 = select i1 %is.int, ptr %int.class, ptr %c1
  %class = select i1 %is.bool, ptr %bool.class, ptr %c2
  %b1 = select i1 %is.float, i64 2, i64 0
  %b2 = select i1 %is.int, i64 4, i64 %b1
  %own.bit = select i1 %is.bool, i64 8, i64 %b2
  %own.taken = and i64 %own.bit, %mask
  %fits = icmp ne i64 %own.taken, 0
  br i1 %fits, label %strong, label %no
strong:
  %made = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %class, ptr %value, ptr null)
  ret ptr %made
plain:
  %is = call i1 @host.is_plain(ptr %item)
  br i1 %is, label %same, label %no
same:
  call void @host.differ(ptr %facts)
  call void @Py_IncRef(ptr %item)
  ret ptr %item
no:
  ret ptr null
}
; Count a call as a reader of the node of an Array whose value it reads; false, with an error if that was raised, where
; it is none: the value has just been given away.
define internal i1 @host.hold(ptr %array, ptr %value, ptr %node, ptr %facts) {
  %count.slot = getelementptr i64, ptr %facts, i64 6
  %count = load i64, ptr %count.slot, align 8
  %few = icmp slt i64 %count, $MOSTHELD
  br i1 %few, label %go, label %no
go:
  call void @Py_IncRef(ptr %node)
  %function = call ptr @state_word(i64 $HOLD)
  call void @Py_IncRef(ptr %value)
  %done = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %function, ptr %node, ptr null)
  %failed = icmp eq ptr %done, null
  br i1 %failed, label %raise, label %note
raise:
  call void @Py_DecRef(ptr %value)
  call void @Py_DecRef(ptr %node)
  ret i1 false
note:
  call void @Py_DecRef(ptr %done)
  %index = add i64 %count, 7
  %slot = getelementptr ptr, ptr %facts, i64 %index
  store ptr %node, ptr %slot, align 8
  %count.next = add i64 %count, 1
  store i64 %count.next, ptr %count.slot, align 8
  %now = call ptr @word(ptr %array, i64 $AT_VALUE)
  %still = icmp eq ptr %now, %value
  call void @Py_DecRef(ptr %value)
  ret i1 %still
no:
  ret i1 false
}
; Count it no more: true if that raised errors, of which the last one is put in place of that in `error`.
define internal i1 @host.release(ptr %facts, ptr %error) {
entry:
  %count.slot = getelementptr i64, ptr %facts, i64 6
  %count = load i64, ptr %count.slot, align 8
  %function = call ptr @state_word(i64 $RELEASE)
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %go ]
  %raised = phi i1 [ false, %entry ], [ %raised.next, %go ]
  %is = icmp slt i64 %k, %count
  br i1 %is, label %more, label %end
more:
  %index = add i64 %k, 7
  %slot = getelementptr ptr, ptr %facts, i64 %index
  %node = load ptr, ptr %slot, align 8
  %done = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %function, ptr %node, ptr null)
  %failed = icmp eq ptr %done, null
  br i1 %failed, label %keep, label %fine
fine:
  call void @Py_DecRef(ptr %done)
  br label %go
keep:
  call void @error.drop(ptr %error)
  call void @error.take(ptr %error)
  br label %go
go:
  %raised.next = phi i1 [ %raised, %fine ], [ true, %keep ]
  call void @Py_DecRef(ptr %node)
  %k.next = add i64 %k, 1
  br label %next
end:
  store i64 0, ptr %count.slot, align 8
  ret i1 %raised
}
; The error that is set, nulls for none, into three words, which leaves none set; set from there; dropped there.
define internal void @error.take(ptr %error) {
  %value = getelementptr ptr, ptr %error, i64 1
  %trace = getelementptr ptr, ptr %error, i64 2
  call void @PyErr_Fetch(ptr %error, ptr %value, ptr %trace)
  ret void
}
define internal void @error.put(ptr %error) {
  %type = call ptr @word(ptr %error, i64 0)
  %value = call ptr @word(ptr %error, i64 8)
  %trace = call ptr @word(ptr %error, i64 16)
  call void @PyErr_Restore(ptr %type, ptr %value, ptr %trace)
  ret void
}
define internal void @error.drop(ptr %error) {
  %type = call ptr @word(ptr %error, i64 0)
  %value = call ptr @word(ptr %error, i64 8)
  %trace = call ptr @word(ptr %error, i64 16)
  call void @drop(ptr %type)
  call void @drop(ptr %value)
  call void @drop(ptr %trace)
  ret void
}
define internal void @host.differ(ptr %facts) alwaysinline {
  %slot = getelementptr i64, ptr %facts, i64 5
  store i64 1, ptr %slot, align 8
  ret void
}
define internal i1 @host.is_plain(ptr %item) {
  %class = call ptr @class_of(ptr %item)
  %p1 = icmp eq ptr %class, @PyLong_Type
  %p2 = icmp eq ptr %class, @PyBool_Type
  %p3 = icmp eq ptr %class, @PyFloat_Type
  %p5 = icmp eq ptr %item, @_Py_NoneStruct
  %q1 = or i1 %p1, %p2
  %q2 = or i1 %q1, %p3
  %is = or i1 %q2, %p5
  ret i1 %is
}
; As `host.leaf`, for lists and tuples of such arguments too.
define internal ptr @host.operand(ptr %item, i64 %mask, ptr %facts) {
entry:
  %is.list = call i1 @is_of(ptr %item, ptr @PyList_Type)
  %is.tuple = call i1 @is_of(ptr %item, ptr @PyTuple_Type)
  %several = or i1 %is.list, %is.tuple
  br i1 %several, label %items, label %leaf
leaf:
  %alone = call ptr @host.leaf(ptr %item, i64 %mask, ptr %facts)
  ret ptr %alone
items:
  call void @host.differ(ptr %facts)
  br i1 %is.list, label %of.list, label %of.tuple
of.list:
  %list.count = call i64 @PyList_Size(ptr %item)
  %is.short = icmp sle i64 %list.count, $MOSTITEMS
  br i1 %is.short, label %copy, label %no
; Python runs while nodes are held, and may change the list.
copy:
  %copied = call ptr @PyList_AsTuple(ptr %item)
  %not.copied = icmp eq ptr %copied, null
  br i1 %not.copied, label %no, label %make
of.tuple:
  call void @Py_IncRef(ptr %item)
  br label %make
make:
  %source = phi ptr [ %copied, %copy ], [ %item, %of.tuple ]
  %count = call i64 @PyTuple_Size(ptr %source)
  %short = icmp sle i64 %count, $MOSTITEMS
  br i1 %short, label %new, label %lose
new:
  %made = call ptr @PyList_New(i64 %count)
  %lacks = icmp eq ptr %made, null
  br i1 %lacks, label %lose, label %next
next:
  %k = phi i64 [ 0, %new ], [ %k.next, %put ]
  %is = icmp slt i64 %k, %count
  br i1 %is, label %more, label %end
more:
  %each = call ptr @PyTuple_GetItem(ptr %source, i64 %k)
  %own = call ptr @host.leaf(ptr %each, i64 %mask, ptr %facts)
  %bad = icmp eq ptr %own, null
  br i1 %bad, label %drop, label %put
put:
  %status = call i32 @PyList_SetItem(ptr %made, i64 %k, ptr %own)
  %k.next = add i64 %k, 1
  br label %next
end:
  call void @Py_DecRef(ptr %source)
  br i1 %is.list, label %give, label %tuple
give:
  ret ptr %made
tuple:
  %as.tuple = call ptr @PyList_AsTuple(ptr %made)
  call void @Py_DecRef(ptr %made)
  ret ptr %as.tuple
drop:
  call void @Py_DecRef(ptr %made)
  br label %lose
lose:
  call void @Py_DecRef(ptr %source)
  br label %no
no:
  ret ptr null
}
"""
