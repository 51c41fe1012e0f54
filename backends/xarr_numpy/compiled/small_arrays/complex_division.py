"""The quotient of complex numbers in machine code, which NumPy's operator gives where none is extreme.

The rule is that of `complex_divide` of `xarr_numpy.functions.complex_functions`, for complex128.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from xarr.base.at_once.complex_quotients import ordinary_sizes

DIVISION: Final = """
# Whether all elements are neither huge nor tiny, or 0 in a dividend, so that xarr divides complex numbers as NumPy:
# of a number, or of a dense array of float64, int64 or complex128; of no other array.
def divides(object: ptr, divisor: i1) -> i1:
    if not is_ndarray(object):
        return is_ordinary(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object), divisor)
    if not (object.FLAGS & 3):
        return False
    kind = kind_of(object)
    data = object.DATA
    for k in range(size(object)):
        imag = 0.0
        if kind == 1:
            real = data.double[k]
        elif kind == 2:
            real = double(data.i64[k])
        elif kind == 4:
            real = data.double[2 * k]
            imag = data.double[2 * k + 1]
        else:
            return False
        if not is_ordinary(real, imag, divisor):
            return False
    return True

@inline
def is_ordinary(real: double, imag: double, divisor: i1) -> i1:
    a = llvm_fabs_f64(real)
    b = llvm_fabs_f64(imag)
    return a <= HUGE and b <= HUGE and (a >= TINY or b >= TINY or not divisor and a + b == 0.0)

# The quotient by NumPy's operator; null, without an error, for complex numbers that xarr divides otherwise.
def divide(left: ptr, right: ptr) -> ptr:
    if (kind_bits(left) | kind_bits(right)) & 16:
        if not divides(left, False) or not divides(right, True):
            return null
    return PyNumber_TrueDivide(left, right)
"""

LIMITS: Final = dict(zip(("TINY", "HUGE"), map(float, ordinary_sizes(np.dtype(np.float64))), strict=True))
