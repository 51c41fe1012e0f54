"""LLVM IR of the shapes of NumPy's arrays: elements, whether two are alike, what arrays broadcast to, parts."""

from __future__ import annotations

from typing import Final

SHAPES: Final = """
define internal i64 @size(ptr %array) {
  %rank = call i64 @rank(ptr %array)
  %sizes = call ptr @word(ptr %array, i64 $SIZES)
  for %k from 0 below %rank, %product from 1 then %longer
  %size = load i64, ptr %sizes[%k]
  %longer = mul i64 %product, %size
  end %k
  ret i64 %product
}
; The elements of the shape that two arrays broadcast to, if they do.
define internal i64 @broadcast_size(ptr %left, ptr %right) {
  %left.rank = call i64 @rank(ptr %left)
  %right.rank = call i64 @rank(ptr %right)
  %is.longer = icmp sgt i64 %left.rank, %right.rank
  %long = select i1 %is.longer, ptr %left, ptr %right
  %short = select i1 %is.longer, ptr %right, ptr %left
  %rank = select i1 %is.longer, i64 %left.rank, i64 %right.rank
  %least = select i1 %is.longer, i64 %right.rank, i64 %left.rank
  %ahead = sub i64 %rank, %least
  %longs = call ptr @word(ptr %long, i64 $SIZES)
  %shorts = call ptr @word(ptr %short, i64 $SIZES)
  for %k from 0 below %rank, %product from 1 then %longer
  %size = load i64, ptr %longs[%k]
  %at = sub i64 %k, %ahead
  %has.both = icmp sge i64 %at, 0
  unless %has.both goto go, both:
  %other = load i64, ptr %shorts[%at]
  %is.one = icmp eq i64 %size, 1
  %larger = select i1 %is.one, i64 %other, i64 %size
  then go:
  %own = phi i64 [ %size, %k.body ], [ %larger, %both ]
  %longer = mul i64 %product, %own
  end %k
  ret i64 %product
}
define internal i1 @is_same_shape(ptr %left, ptr %right) {
  %rank = call i64 @rank(ptr %left)
  %other = call i64 @rank(ptr %right)
  %lefts = call ptr @word(ptr %left, i64 $SIZES)
  %rights = call ptr @word(ptr %right, i64 $SIZES)
  %alike = icmp eq i64 %rank, %other
  unless %alike return false, look:
  for %k from 0 below %rank
  %slot = getelementptr i64, ptr %lefts, i64 %k
  %other.slot = getelementptr i64, ptr %rights, i64 %k
  %size = load i64, ptr %slot, align 8
  %other.size = load i64, ptr %other.slot, align 8
  %same = icmp eq i64 %size, %other.size
  br i1 %same, label %k.last, label %return.false
  end %k
  ret i1 true
}
; The dimensions that an item adds to a part, -1 for an int; 2 for one that is left to Python.
define internal i64 @dimensions_of(ptr %item) {
  %is.int = call i1 @is_of(ptr %item, ptr @PyLong_Type)
  unless %is.int goto a, less:
  ret i64 -1
a:
  %is.none = icmp eq ptr %item, @_Py_NoneStruct
  unless %is.none goto b, one:
  ret i64 1
b:
  %is.rest = icmp eq ptr %item, @_Py_EllipsisObject
  unless %is.rest goto c, none:
  ret i64 0
c:
  %is.slice = call i1 @is_of(ptr %item, ptr @PySlice_Type)
  unless %is.slice goto no, slice:
  %start.slot = getelementptr i8, ptr %item, i64 $SLICE
  %stop.slot = getelementptr ptr, ptr %start.slot, i64 1
  %step.slot = getelementptr ptr, ptr %start.slot, i64 2
  %start = load ptr, ptr %start.slot, align 8
  %stop = load ptr, ptr %stop.slot, align 8
  %step = load ptr, ptr %step.slot, align 8
  %start.fine = call i1 @is_end(ptr %start)
  %stop.fine = call i1 @is_end(ptr %stop)
  %step.fine = call i1 @is_end(ptr %step)
  %two = and i1 %start.fine, %stop.fine
  %three = and i1 %two, %step.fine
  if %three goto none, no:
  ret i64 2
}
define internal i1 @is_end(ptr %end) {
  %is.none = icmp eq ptr %end, @_Py_NoneStruct
  %is.int = call i1 @is_of(ptr %end, ptr @PyLong_Type)
  %fine = or i1 %is.none, %is.int
  ret i1 %fine
}
; The rank of the part of an array at an index; -1 for an index that is left to Python.
define internal i64 @rank_of_part(ptr %array, ptr %index) {
entry:
  %rank = call i64 @rank(ptr %array)
  %is.tuple = call i1 @is_of(ptr %index, ptr @PyTuple_Type)
  if %is.tuple goto tuple, single:
  %one = call i64 @dimensions_of(ptr %index)
  %bad = icmp eq i64 %one, 2
  %single.rank = add i64 %rank, %one
  %single.result = select i1 %bad, i64 -1, i64 %single.rank
  ret i64 %single.result
tuple:
  %count = call i64 @PyTuple_Size(ptr %index)
  for %k from 0 below %count, %sum from %rank then %more
  %item = call ptr @PyTuple_GetItem(ptr %index, i64 %k)
  %dimensions = call i64 @dimensions_of(ptr %item)
  %more = add i64 %sum, %dimensions
  %odd = icmp eq i64 %dimensions, 2
  br i1 %odd, label %return.-1, label %k.last
  end %k
  ret i64 %sum
}
"""
