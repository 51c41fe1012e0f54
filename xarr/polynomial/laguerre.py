"""`numpy.polynomial.laguerre` with Arrays in and Arrays out: `Laguerre`, and functions on the host."""

from numpy.polynomial import laguerre as _numpy

from xarr.polynomial._series import Laguerre as Laguerre, exports as _exports

__getattr__, __dir__ = _exports(_numpy, __name__)
