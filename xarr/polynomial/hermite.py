"""`numpy.polynomial.hermite` with Arrays in and Arrays out: `Hermite`, and functions on the host."""

from numpy.polynomial import hermite as _numpy

from xarr.polynomial._series import Hermite as Hermite, exports as _exports

__getattr__, __dir__ = _exports(_numpy, __name__)
