"""LLVM IR of what must hold of the arguments of a call for NumPy's function to stand for xarr's."""

from __future__ import annotations

from typing import Final

CHECKS: Final = """
; Whether an array has a float that is -0.0, or (of any sign) 0.0; true too where that is not looked for.
define internal i1 @host.has_zero(ptr %object, i64 %sign) {
entry:
  %is.ndarray = call i1 @is_ndarray(ptr %object)
  if %is.ndarray goto array, scalar:
  %float.class = call ptr @state_word(i64 $NUMPYFLOAT)
  %is.numpys = call i1 @is_of(ptr %object, ptr %float.class)
  %is.pythons = call i1 @is_of(ptr %object, ptr @PyFloat_Type)
  %kind.of.scalar = call i64 @scalar_kind(ptr %object)
  %is.single = icmp eq i64 %kind.of.scalar, $SINGLEKIND
  %is.double = or i1 %is.numpys, %is.pythons
  %is.float = or i1 %is.double, %is.single
  unless %is.float goto ask.int, float:
  %double = call double @PyFloat_AsDouble(ptr %object)
  %double.bits = bitcast double %double to i64
  %double.any = icmp eq i64 %sign, 0
  %double.ignored = zext i1 %double.any to i64
  %double.shifted = shl i64 %double.bits, %double.ignored
  %double.wanted = shl i64 %sign, 63
  %is.null = icmp eq i64 %double.shifted, %double.wanted
  ret i1 %is.null
ask.int:
  %is.int = call i1 @is_of(ptr %object, ptr @PyLong_Type)
  %is.bool = call i1 @is_of(ptr %object, ptr @PyBool_Type)
  %is.python = or i1 %is.int, %is.bool
  br i1 %is.python, label %return.false, label %other
; Of other floats it is not looked for.
other:
  %scalar.kind = call i64 @scalar_kind(ptr %object)
  %is.unknown = call i1 @host.is_inexact(i64 %scalar.kind)
  ret i1 %is.unknown
array:
  %kind = call i64 @kind_of(ptr %object)
  %of.doubles = icmp eq i64 %kind, 1
  %of.singles = icmp eq i64 %kind, $SINGLEKIND
  %of.floats = or i1 %of.doubles, %of.singles
  if %of.floats goto layout, rest:
  %array.unknown = call i1 @host.is_inexact(i64 %kind)
  ret i1 %array.unknown
layout:
  %flags = call i32 @flags(ptr %object)
  %dense = and i32 %flags, 3
  %is.dense = icmp ne i32 %dense, 0
  unless %is.dense return true, begin:
  %size = call i64 @size(ptr %object)
  %data = call ptr @word(ptr %object, i64 $DATA)
  %wanted = shl i64 %sign, 63
  %any = icmp eq i64 %sign, 0
  %ignored = select i1 %any, i64 1, i64 0
  for %k from 0 below %size
  unless %of.doubles goto single.bits.of, double.bits.of:
  %double.own = load i64, ptr %data[%k]
  br label %compare
single.bits.of:
  %single = load i32, ptr %data[%k]
  %single.wide = zext i32 %single to i64
  %single.own = shl i64 %single.wide, 32
  then compare:
  %bits = phi i64 [ %double.own, %double.bits.of ], [ %single.own, %single.bits.of ]
  %shifted = shl i64 %bits, %ignored
  %same = icmp eq i64 %shifted, %wanted
  br i1 %same, label %return.true, label %k.last
  end %k
  ret i1 false
}
; Whether a kind of elements has floats or is unknown: all but ints and bools.
define internal i1 @host.is_inexact(i64 %kind) alwaysinline {
  %bit = shl i64 1, %kind
  %own = and i64 %bit, $EXACTKINDS
  %is = icmp eq i64 %own, 0
  ret i1 %is
}
; The elements of a result at most: of all combinations of elements; less those that a sum runs over; of arrays that are
; combined element by element those of the shape that they broadcast to.
define internal i64 @host.results(ptr %row, ptr %facts, i64 %combined, ptr %stack, i64 %count) {
  %array = load ptr, ptr %facts[2]
  %is.there = icmp ne ptr %array, null
  unless %is.there goto no, ask:
  %combines = call i1 @row.has(ptr %row, i64 $NUMBERS)
  unless %combines goto other, broadcast:
  %elements = call i64 @host.spread(ptr %stack, i64 %count)
  ret i64 %elements
other:
  %contracts = call i1 @row.has(ptr %row, i64 $CONTRACTS)
  unless %contracts goto no, open:
  %rank = call i64 @rank(ptr %array)
  %has.dimensions = icmp sgt i64 %rank, 0
  unless %has.dimensions goto no, read:
  %sizes = call ptr @word(ptr %array, i64 $SIZES)
  %last = sub i64 %rank, 1
  %size = load i64, ptr %sizes[%last]
  %some = icmp sgt i64 %size, 0
  unless %some goto no, divide:
  %square = mul i64 %size, %size
  %fewer = udiv i64 %combined, %square
  ret i64 %fewer
no:
  ret i64 %combined
}
; The elements of the shape that the arrays among so many objects broadcast to, if they do.
define internal i64 @host.spread(ptr %stack, i64 %count) {
entry:
  then next:
  %axis = phi i64 [ 1, %entry ], [ %axis.next, %grow ]
  %product = phi i64 [ 1, %entry ], [ %product.next, %grow ]
  then each:
  %k = phi i64 [ 0, %next ], [ %k.next, %go ]
  %size = phi i64 [ 1, %next ], [ %size.next, %go ]
  %any = phi i1 [ false, %next ], [ %any.next, %go ]
  %is = icmp slt i64 %k, %count
  unless %is goto end, look:
  %object = load ptr, ptr %stack[%k]
  %is.ndarray = call i1 @is_ndarray(ptr %object)
  unless %is.ndarray goto go, open:
  %rank = call i64 @rank(ptr %object)
  %has.it = icmp sge i64 %rank, %axis
  unless %has.it goto go, read:
  %sizes = call ptr @word(ptr %object, i64 $SIZES)
  %at = sub i64 %rank, %axis
  %own = load i64, ptr %sizes[%at]
  %is.one = icmp eq i64 %own, 1
  %larger = select i1 %is.one, i64 %size, i64 %own
  then go:
  %size.next = phi i64 [ %size, %look ], [ %size, %open ], [ %larger, %read ]
  %any.next = phi i1 [ %any, %look ], [ %any, %open ], [ true, %read ]
  %k.next = add i64 %k, 1
  br label %each
end:
  unless %any goto give, grow:
  %product.next = mul i64 %product, %size
  %axis.next = add i64 %axis, 1
  br label %next
give:
  ret i64 %product
}
; Whether the first operand alone says that NumPy's result may be another one.
define internal i1 @host.is_unsure(ptr %row, ptr %operand) {
  %of.none = call i1 @row.has(ptr %row, i64 $EMPTY)
  unless %of.none goto a, count:
  %size = call i64 @size(ptr %operand)
  %is.none = icmp eq i64 %size, 0
  if %is.none return true, a:
  %of.zeros = call i1 @row.has(ptr %row, i64 $NEGATIVEZEROS)
  unless %of.zeros return false, look:
  %has = call i1 @host.has_zero(ptr %operand, i64 1)
  ret i1 %has
}
; The number of the option of this name, for a value that it takes and behind so many by position; -1 for none.
define internal i64 @host.option(ptr %row, ptr %name, ptr %value, i64 %given) {
  %names.offset = add i64 $TUPLE, 16
  %names = call ptr @word(ptr %row, i64 %names.offset)
  %count = call i64 @PyTuple_Size(ptr %names)
  for %k from %given below %count
  %known = call ptr @PyTuple_GetItem(ptr %names, i64 %k)
  %same = icmp eq ptr %known, %name
  unless %same goto k.last, judge:
  %fits = call i1 @host.fits(ptr %row, i64 %k, ptr %value)
  unless %fits goto no, yes:
  ret i64 %k
  end %k
  then no:
  ret i64 -1
}
; Whether an option takes a value.
define internal i1 @host.fits(ptr %row, i64 %option, ptr %value) {
  %at = add i64 %option, $FIRSTOPTION
  %known = call i64 @row.number(ptr %row, i64 %at)
  %kinds = call i64 @host.kinds(ptr %value)
  %own = and i64 %known, %kinds
  %is = icmp ne i64 %own, 0
  ret i1 %is
}
"""
