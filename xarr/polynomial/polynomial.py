"""`numpy.polynomial.polynomial` with Arrays in and Arrays out: `Polynomial`, and functions on the host."""

from numpy.polynomial import polynomial as _numpy

from xarr.polynomial._series import Polynomial as Polynomial, exports as _exports

__getattr__, __dir__ = _exports(_numpy, __name__)
