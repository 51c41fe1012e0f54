"""Special functions, under `jax.lax`'s names."""

from __future__ import annotations

import numpy as np

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.errors import DTypeError
from xarr.ir import ops
from xarr.ir.ops.formula import Term
from xarr.ir.ops.special import ACCEPTED, bessel_i0e as formula_of_bessel_i0e
from xarr.lax.core import ArrayLike, operands
from xarr.lax.elementwise import unary
from xarr.runtime.handles import wrap

bessel_i1e = unary(ops.BesselI1e(), __name__)
digamma = unary(ops.Digamma(), __name__)
erf = unary(ops.Erf(), __name__)
erf_inv = unary(ops.ErfInv(), __name__)
erfc = unary(ops.Erfc(), __name__)
lgamma = unary(ops.Lgamma(), __name__)


@names_errors
def bessel_i0e(x: ArrayLike) -> Array:
    """exp(-|x|) I0(x), the modified Bessel function of order 0, of floats: no op, but a formula of others.

    Raises DTypeError for other element types.  Source: jax.lax.bessel_i0e.
    """
    (node,) = operands("bessel_i0e", x)
    dtype = node.dtype
    if dtype not in ACCEPTED:
        raise DTypeError(f"bessel_i0e [C1]: wanted floats of 16 bits or more, got {node.tensor_type.short()}")
    term = Term(node)
    wide = term.convert(np.dtype(np.float32)) if dtype.itemsize == 2 else term
    return wrap(formula_of_bessel_i0e(wide).convert(dtype).node)
