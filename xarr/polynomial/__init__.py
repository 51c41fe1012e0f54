"""NumPy's series of polynomials, with Arrays in and Arrays out.

`Polynomial`, `Chebyshev`, `Legendre`, `Hermite`, `HermiteE` and `Laguerre` hold coefficients; `p(x)` works in traced
functions, everything else computes on the host.  Source: NumPy, `numpy.polynomial`.
"""

from numpy.polynomial import set_default_printstyle as set_default_printstyle

from xarr.polynomial import (
    chebyshev as chebyshev,
    hermite as hermite,
    hermite_e as hermite_e,
    laguerre as laguerre,
    legendre as legendre,
    polynomial as polynomial,
)
from xarr.polynomial._series import (
    Chebyshev as Chebyshev,
    Hermite as Hermite,
    HermiteE as HermiteE,
    Laguerre as Laguerre,
    Legendre as Legendre,
    Polynomial as Polynomial,
)
