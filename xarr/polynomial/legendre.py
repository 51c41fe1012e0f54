"""`numpy.polynomial.legendre` with Arrays in and Arrays out: `Legendre`, and functions on the host."""

from numpy.polynomial import legendre as _numpy

from xarr.polynomial._series import Legendre as Legendre, exports as _exports

__getattr__, __dir__ = _exports(_numpy, __name__)
