"""`numpy.polynomial.hermite_e` with Arrays in and Arrays out: `HermiteE`, and functions on the host."""

from numpy.polynomial import hermite_e as _numpy

from xarr.polynomial._series import HermiteE as HermiteE, exports as _exports

__getattr__, __dir__ = _exports(_numpy, __name__)
