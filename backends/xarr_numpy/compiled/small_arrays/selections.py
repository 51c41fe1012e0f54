"""LLVM IR of indices that select elements or rows: `x[i]`, `x[x > 0]`, `x[[1, 2]]`, `x[i, j]`.

They are one Array of ints or bools, a list of ints, or a tuple of Arrays of ints of one shape.
"""

from __future__ import annotations

from typing import Final

SELECTING: Final = """
; The value of an Array of int64 or bools with dimensions, which may select from an array on a device; null for no such.
define internal ptr @index_array(ptr %index, ptr %device) {
  %is.array = call i1 @is_array(ptr %index)
  unless %is.array return null, open:
  %value = call ptr @word(ptr %index, i64 $AT_VALUE)
  %set = call i1 @is_there(ptr %value)
  unless %set return null, look:
  %is.ndarray = call i1 @is_ndarray(ptr %value)
  unless %is.ndarray return null, measure:
  %kind = call i64 @kind_of(ptr %value)
  %of.ints = icmp eq i64 %kind, 2
  %of.bools = icmp eq i64 %kind, 3
  %known = or i1 %of.ints, %of.bools
  %rank = call i64 @rank(ptr %value)
  %some = icmp sgt i64 %rank, 0
  %own = call ptr @word(ptr %index, i64 $AT_DEVICE)
  %same = icmp eq ptr %own, %device
  %there = call i1 @is_there(ptr %own)
  %constant = xor i1 %there, true
  %fine.device = or i1 %same, %constant
  %both = and i1 %known, %some
  %all = and i1 %both, %fine.device
  unless %all return null, yes:
  ret ptr %value
}
; What stands for an index that selects from an array on a device: an array, or a tuple of arrays of ints of one shape,
; as a new reference; null, without an error, for another index.
define internal ptr @selector(ptr %index, ptr %device) {
entry:
  %single = call ptr @index_array(ptr %index, ptr %device)
  %is.single = icmp ne ptr %single, null
  unless %is.single goto several, hold:
  hold %single
  ret ptr %single
several:
  %is.tuple = call i1 @is_of(ptr %index, ptr @PyTuple_Type)
  unless %is.tuple goto other, tuple:
  %count = call i64 @PyTuple_Size(ptr %index)
  %any = icmp ne i64 %count, 0
  unless %any goto no, begin:
  %first.item = call ptr @PyTuple_GetItem(ptr %index, i64 0)
  %first = call ptr @index_array(ptr %first.item, ptr %device)
  %is.first = icmp ne ptr %first, null
  unless %is.first goto no, make:
  %made = call ptr @PyTuple_New(i64 %count)
  %lacks = icmp eq ptr %made, null
  if %lacks goto clear, fill:
  for %k from 0 below %count
  %item = call ptr @PyTuple_GetItem(ptr %index, i64 %k)
  %own = call ptr @index_array(ptr %item, ptr %device)
  %is.own = icmp ne ptr %own, null
  unless %is.own goto lose, compare:
  %kind = call i64 @kind_of(ptr %own)
  %of.ints = icmp eq i64 %kind, 2
  %alike = call i1 @is_same_shape(ptr %own, ptr %first)
  %fine = and i1 %of.ints, %alike
  unless %fine goto lose, put:
  hold %own
  %set = call i32 @PyTuple_SetItem(ptr %made, i64 %k, ptr %own)
  br label %k.last
  end %k
  ret ptr %made
lose:
  release %made
  ret ptr null
other:
  %is.list = call i1 @is_of(ptr %index, ptr @PyList_Type)
  br i1 %is.list, label %list, label %no
; An array of its own, since the user may change the list.
list:
  %length = call i64 @PyList_Size(ptr %index)
  %some = icmp ne i64 %length, 0
  unless %some goto no, see.items:
  for %j from 0 below %length
  %each = call ptr @PyList_GetItem(ptr %index, i64 %j)
  %is.int = call i1 @is_of(ptr %each, ptr @PyLong_Type)
  br i1 %is.int, label %j.last, label %no
  end %j
  %maker = call ptr @state_word(i64 $MAKE_ARRAY)
  %array = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %maker, ptr %index, ptr null)
  %failed = icmp eq ptr %array, null
  if %failed goto clear, see.array:
  %array.kind = call i64 @kind_of(ptr %array)
  %is.usual = icmp eq i64 %array.kind, 2
  unless %is.usual goto drop, give:
  ret ptr %array
drop:
  release %array
  ret ptr null
clear:
  call void @PyErr_Clear()
  then no:
  ret ptr null
}
define internal i1 @is_mask(ptr %selector) {
  %is.one = call i1 @is_ndarray(ptr %selector)
  unless %is.one return false, look:
  %kind = call i64 @kind_of(ptr %selector)
  %of.bools = icmp eq i64 %kind, 3
  ret i1 %of.bools
}
; The rank of what a selector selects from an array; -1 where that may be large.
define internal i64 @rank_of_selection(ptr %array, ptr %selector, i64 %itemsize) {
entry:
  %rank = call i64 @rank(ptr %array)
  %of.bools = call i1 @is_mask(ptr %selector)
  unless %of.bools goto ints, bools:
  %mask.rank = call i64 @rank(ptr %selector)
  %left = sub i64 %rank, %mask.rank
  %bools.rank = add i64 %left, 1
  ret i64 %bools.rank
ints:
  %is.one = call i1 @is_ndarray(ptr %selector)
  if %is.one goto count, several:
  %dimensions = call i64 @PyTuple_Size(ptr %selector)
  %item = call ptr @PyTuple_GetItem(ptr %selector, i64 0)
  then count:
  %taken = phi i64 [ 1, %ints ], [ %dimensions, %several ]
  %first = phi ptr [ %selector, %ints ], [ %item, %several ]
  %chosen = call i64 @size(ptr %first)
  %own.rank = call i64 @rank(ptr %first)
  %has = icmp sge i64 %rank, %taken
  %size = call i64 @size(ptr %array)
  %some = icmp sgt i64 %size, 0
  %usual = and i1 %has, %some
  unless %usual return -1, measure:
  %sizes = call ptr @word(ptr %array, i64 $SIZES)
  for %k from %taken below %rank, %elements from %chosen then %more
  %own = load i64, ptr %sizes[%k]
  %more = mul i64 %elements, %own
  end %k
  %bytes = mul i64 %elements, %itemsize
  %small = icmp sle i64 %bytes, $MOSTPLAIN
  %ints.left = sub i64 %rank, %taken
  %ints.rank = add i64 %ints.left, %own.rank
  %result = select i1 %small, i64 %ints.rank, i64 -1
  ret i64 %result
}
; What a selector selects from the value of an Array, as a new one; null for what is left to Python, and for an error.
define internal ptr @read_selected(ptr %buffer, ptr %selector, ptr %device, i64 %itemsize) {
  %rank = call i64 @rank_of_selection(ptr %buffer, ptr %selector, i64 %itemsize)
  %usual = icmp sgt i64 %rank, 0
  unless %usual return null, read:
  hold %device, %buffer, %selector
  %made = call ptr @PyObject_GetItem(ptr %buffer, ptr %selector)
  release %selector, %buffer
  %lacks = icmp eq ptr %made, null
  if %lacks goto clear, look:
  %is.ndarray = call i1 @is_ndarray(ptr %made)
  unless %is.ndarray goto lose, judge:
  %flags = call i32 @flags(ptr %made)
  %row.major = and i32 %flags, 1
  %dense = icmp ne i32 %row.major, 0
  %base = call ptr @word(ptr %made, i64 $BASE)
  %own = icmp eq ptr %base, null
  %fine = and i1 %dense, %own
  unless %fine goto lose, wrap:
  %result = call ptr @wrap(ptr %made, ptr %device, i64 0)
  ret ptr %result
lose:
  release %made, %device
  ret ptr null
clear:
  call void @PyErr_Clear()
  release %device
  ret ptr null
}
"""
