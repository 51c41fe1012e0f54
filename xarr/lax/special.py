"""Special functions, under `jax.lax`'s names."""

from __future__ import annotations

from xarr.ir import ops
from xarr.lax.elementwise import unary

digamma = unary(ops.Digamma())
erf = unary(ops.Erf())
erf_inv = unary(ops.ErfInv())
erfc = unary(ops.Erfc())
lgamma = unary(ops.Lgamma())
