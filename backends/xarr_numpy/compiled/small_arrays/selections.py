"""LLVM IR of indices that are one Array of ints or bools, which select elements or rows: `x[i]`, `x[x > 0]`."""

from __future__ import annotations

from typing import Final

SELECTING: Final = """
; The value of an Array of int64 or bools with dimensions, which may select from an array on a device; null for no such.
define internal ptr @selector(ptr %index, ptr %device) {
  %is.array = call i1 @is_array(ptr %index)
  br i1 %is.array, label %open, label %no
open:
  %value = call ptr @word(ptr %index, i64 $AT_VALUE)
  %set = call i1 @is_there(ptr %value)
  br i1 %set, label %look, label %no
look:
  %is.ndarray = call i1 @is_ndarray(ptr %value)
  br i1 %is.ndarray, label %measure, label %no
measure:
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
  br i1 %all, label %yes, label %no
yes:
  ret ptr %value
no:
  ret ptr null
}
; The rank of what a selector selects from an array; -1 where that may be large.
define internal i64 @rank_of_selection(ptr %array, ptr %selector, i64 %itemsize) {
  %rank = call i64 @rank(ptr %array)
  %own.rank = call i64 @rank(ptr %selector)
  %kind = call i64 @kind_of(ptr %selector)
  %of.bools = icmp eq i64 %kind, 3
  br i1 %of.bools, label %bools, label %ints
bools:
  %left = sub i64 %rank, %own.rank
  %bools.rank = add i64 %left, 1
  ret i64 %bools.rank
ints:
  %some = icmp sgt i64 %rank, 0
  br i1 %some, label %open, label %no
open:
  %sizes = call ptr @word(ptr %array, i64 $SIZES)
  %rows = load i64, ptr %sizes, align 8
  %any = icmp sgt i64 %rows, 0
  br i1 %any, label %measure, label %no
measure:
  %size = call i64 @size(ptr %array)
  %row = udiv i64 %size, %rows
  %chosen = call i64 @size(ptr %selector)
  %elements = mul i64 %row, %chosen
  %bytes = mul i64 %elements, %itemsize
  %small = icmp sle i64 %bytes, $MOSTPLAIN
  %ints.left = sub i64 %rank, 1
  %ints.rank = add i64 %ints.left, %own.rank
  %result = select i1 %small, i64 %ints.rank, i64 -1
  ret i64 %result
no:
  ret i64 -1
}
; What a selector selects from the value of an Array, as a new one; null for what is left to Python, and for an error.
define internal ptr @read_selected(ptr %buffer, ptr %selector, ptr %device, i64 %itemsize) {
  %rank = call i64 @rank_of_selection(ptr %buffer, ptr %selector, i64 %itemsize)
  %usual = icmp sgt i64 %rank, 0
  br i1 %usual, label %read, label %no
read:
  call void @Py_IncRef(ptr %device)
  call void @Py_IncRef(ptr %buffer)
  call void @Py_IncRef(ptr %selector)
  %made = call ptr @PyObject_GetItem(ptr %buffer, ptr %selector)
  call void @Py_DecRef(ptr %selector)
  call void @Py_DecRef(ptr %buffer)
  %lacks = icmp eq ptr %made, null
  br i1 %lacks, label %clear, label %look
look:
  %is.ndarray = call i1 @is_ndarray(ptr %made)
  br i1 %is.ndarray, label %judge, label %lose
judge:
  %flags = call i32 @flags(ptr %made)
  %row.major = and i32 %flags, 1
  %dense = icmp ne i32 %row.major, 0
  %base = call ptr @word(ptr %made, i64 $BASE)
  %own = icmp eq ptr %base, null
  %fine = and i1 %dense, %own
  br i1 %fine, label %wrap, label %lose
wrap:
  %result = call ptr @wrap(ptr %made, ptr %device, i64 0)
  ret ptr %result
lose:
  call void @Py_DecRef(ptr %made)
  call void @Py_DecRef(ptr %device)
  ret ptr null
clear:
  call void @PyErr_Clear()
  call void @Py_DecRef(ptr %device)
  ret ptr null
no:
  ret ptr null
}
"""
