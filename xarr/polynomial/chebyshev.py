"""`numpy.polynomial.chebyshev` with Arrays in and Arrays out: `Chebyshev`, and functions on the host."""

from numpy.polynomial import chebyshev as _numpy

from xarr.polynomial._series import Chebyshev as Chebyshev, exports as _exports

__getattr__, __dir__ = _exports(_numpy, __name__)
