"""LLVM IR of the quotient of complex numbers, which NumPy's operator gives where none is extreme.

The rule is that of `complex_divide` of `xarr_numpy.functions.complex_functions`, for complex128.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from xarr_numpy.compiled.codegen.integer_division import write_float

_DIVISION: Final = """
; Whether all elements are neither huge nor tiny, or 0 in a dividend, so that xarr divides complex numbers as NumPy:
; of a number, or of a dense array of float64, int64 or complex128; of no other array.
define internal i1 @divides(ptr %object, i1 %divisor) {
  %is.ndarray = call i1 @is_ndarray(ptr %object)
  if %is.ndarray goto array, number:
  %real = call double @PyComplex_RealAsDouble(ptr %object)
  %imag = call double @PyComplex_ImagAsDouble(ptr %object)
  %of.number = call i1 @is_ordinary(double %real, double %imag, i1 %divisor)
  ret i1 %of.number
array:
  %kind = call i64 @kind_of(ptr %object)
  %flags = call i32 @flags(ptr %object)
  %dense = and i32 %flags, 3
  %is.dense = icmp ne i32 %dense, 0
  %size = call i64 @size(ptr %object)
  %data = call ptr @word(ptr %object, i64 $DATA)
  %of.pairs = icmp eq i64 %kind, 4
  unless %is.dense return false, look:
  for %k from 0 below %size
  %at = shl i64 %k, 1
  %index = select i1 %of.pairs, i64 %at, i64 %k
  %slot = getelementptr double, ptr %data, i64 %index
  switch i64 %kind, label %return.false [ i64 1, label %float  i64 2, label %int  i64 4, label %pair ]
float:
  %float.value = load double, ptr %slot, align 8
  br label %judge
int:
  %int.value = load i64, ptr %slot, align 8
  %converted = sitofp i64 %int.value to double
  br label %judge
pair:
  %first = load double, ptr %slot, align 8
  %second = load double, ptr %slot[1]
  then judge:
  %a = phi double [ %float.value, %float ], [ %converted, %int ], [ %first, %pair ]
  %b = phi double [ 0.0, %float ], [ 0.0, %int ], [ %second, %pair ]
  %fine = call i1 @is_ordinary(double %a, double %b, i1 %divisor)
  br i1 %fine, label %k.last, label %return.false
  end %k
  ret i1 true
}
define internal i1 @is_ordinary(double %real, double %imag, i1 %divisor) alwaysinline {
  %a = call double @llvm.fabs.f64(double %real)
  %b = call double @llvm.fabs.f64(double %imag)
  %a.fits = fcmp ole double %a, $HUGE
  %b.fits = fcmp ole double %b, $HUGE
  %fits = and i1 %a.fits, %b.fits
  %a.large = fcmp oge double %a, $TINY
  %b.large = fcmp oge double %b, $TINY
  %large = or i1 %a.large, %b.large
  %sum = fadd double %a, %b
  %none = fcmp oeq double %sum, 0.0
  %dividend = xor i1 %divisor, true
  %zero = and i1 %none, %dividend
  %either = or i1 %large, %zero
  %is = and i1 %fits, %either
  ret i1 %is
}
; The quotient by NumPy's operator; null, without an error, for complex numbers that xarr divides otherwise.
define internal ptr @divide(ptr %left, ptr %right) {
  %left.bits = call i64 @kind_bits(ptr %left)
  %right.bits = call i64 @kind_bits(ptr %right)
  %bits = or i64 %left.bits, %right.bits
  %pairs = and i64 %bits, 16
  %careful = icmp ne i64 %pairs, 0
  unless %careful goto go, look:
  %above = call i1 @divides(ptr %left, i1 false)
  unless %above return null, below:
  %fits = call i1 @divides(ptr %right, i1 true)
  unless %fits return null, go:
  %made = call ptr @PyNumber_TrueDivide(ptr %left, ptr %right)
  ret ptr %made
}
"""

_LIMITS: Final = np.finfo(np.float64)


def division_text() -> str:
    """The function `divide` of two values, with names that are still to be filled in."""
    return _DIVISION.replace("$HUGE", write_float(_LIMITS.max / 4)).replace(
        "$TINY", write_float(_LIMITS.tiny / _LIMITS.eps)
    )
