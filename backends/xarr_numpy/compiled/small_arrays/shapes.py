"""LLVM IR of the shapes of NumPy's arrays: elements, whether two are alike, what arrays broadcast to."""

from __future__ import annotations

from typing import Final

SHAPES: Final = """
define internal i64 @size(ptr %array) {
  %rank = call i64 @rank(ptr %array)
  %sizes = call ptr @word(ptr %array, i64 $SIZES)
  for %k from 0 below %rank, %product from 1 then %longer
  %slot = getelementptr i64, ptr %sizes, i64 %k
  %size = load i64, ptr %slot, align 8
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
  %slot = getelementptr i64, ptr %longs, i64 %k
  %size = load i64, ptr %slot, align 8
  %at = sub i64 %k, %ahead
  %has.both = icmp sge i64 %at, 0
  br i1 %has.both, label %both, label %go
both:
  %other.slot = getelementptr i64, ptr %shorts, i64 %at
  %other = load i64, ptr %other.slot, align 8
  %is.one = icmp eq i64 %size, 1
  %larger = select i1 %is.one, i64 %other, i64 %size
  br label %go
go:
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
  br i1 %alike, label %look, label %no
look:
  for %k from 0 below %rank
  %slot = getelementptr i64, ptr %lefts, i64 %k
  %other.slot = getelementptr i64, ptr %rights, i64 %k
  %size = load i64, ptr %slot, align 8
  %other.size = load i64, ptr %other.slot, align 8
  %same = icmp eq i64 %size, %other.size
  br i1 %same, label %k.last, label %no
  end %k
  ret i1 true
no:
  ret i1 false
}
"""
