"""LAPACK's routines that are operations of the graph, with all that they return.

`xarr.lax.linalg` has the functions that users call; programs written out by `make_explicit` use these.
"""

from __future__ import annotations

from xarr.base.typing import Array
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.lax.core import ArrayLike, apply, flag, operands, text
from xarr.lax.tracing import results_of
from xarr.runtime.handles import wrap


def _apply(op: Op, *values: ArrayLike) -> tuple[Array, ...]:
    """All results of `op`."""
    nodes = operands(op.lax_name, *values)
    type_ = op.infer(*[node.type for node in nodes])
    return tuple(results_of(op, nodes, len(getattr(type_, "elements", (type_,)))))


def getrf(a: ArrayLike) -> tuple[Array, ...]:
    """(factors, pivots, info) of P L U = a, rows counted from 1.

    Raises DTypeError [C1] for other elements than float32, float64, complex64 and complex128, ShapeError [C2].
    Source: LAPACK, getrf.
    """
    return _apply(ops.Lu(), a)


def geqrf(a: ArrayLike) -> tuple[Array, ...]:
    """(factors, taus) of Q R = a: R above, the reflections whose product is Q below the diagonal.

    Raises DTypeError [C1], ShapeError [C2].  Source: LAPACK, geqrf.
    """
    return _apply(ops.Geqrf(), a)


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns, as many as a has, of the product of the reflections that `geqrf` gives.

    a: shape (..., m, n) with m >= n; taus: (..., k) with k <= n.  Raises DTypeError [C1], ShapeError [C2]-[C4].
    Source: jax.lax.linalg; LAPACK, orgqr and ungqr.
    """
    return apply(ops.HouseholderProduct(), a, taus)


def gesdd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True) -> tuple[Array, ...]:
    """(scratch, s, u, vh, info) of u s vh = a.  Raises DTypeError [C1], ShapeError [C2].  Source: LAPACK, gesdd."""
    return _apply(
        ops.Svd(flag("svd", "full_matrices", full_matrices), flag("svd", "compute_uv", compute_uv)), a
    )


def syevd(a: ArrayLike, lower: bool = True, compute_v: bool = True) -> tuple[Array, ...]:
    """(v, w, info) of a v = v w for the Hermitian a of which one triangle is read.

    Raises DTypeError [C1], ShapeError [C2], [C3].  Source: LAPACK, syevd and heevd.
    """
    return _apply(ops.Eigh(flag("eigh", "lower", lower), flag("eigh", "compute_v", compute_v)), a)


def geev(a: ArrayLike, compute_left: bool = True, compute_right: bool = True) -> tuple[Array, ...]:
    """(w, vl, vr, info) of a vr = vr w and vl* a = w vl*, or of real a (re w, im w, vl, vr, info).

    Raises DTypeError [C1], ShapeError [C2], [C3].  Source: LAPACK, geev.
    """
    left, right = flag("eig", "compute_left", compute_left), flag("eig", "compute_right", compute_right)
    return _apply(ops.Eig(left, right), a)


def solve(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """(x, singular) with a x = b; x is NaN where a is singular, which the second, bools, tells.

    a: shape (..., n, n); b: (..., n, m).  Raises DTypeError [C1], ShapeError [C2]-[C4].  Source: LAPACK, gesv.
    """
    x, singular = _apply(ops.Solve(), a, b)
    return x, singular


def slogdet(a: ArrayLike) -> tuple[Array, Array]:
    """(sign, log |det a|): det a = sign exp(log |det a|); (0, -inf) for singular a.

    Raises DTypeError [C1], ShapeError [C2], [C3].  Source: NumPy, `linalg.slogdet`.
    """
    sign, logarithm = _apply(ops.LogDeterminant(), a)
    return sign, logarithm


def check(x: ArrayLike, good: ArrayLike, message: str, raises: str = ops.Check.raises) -> Array:
    """x as it is; an error with `message` when it runs, unless all of the bools `good` are true.

    raises: the class of the error, "LinAlgError" or "ShapeError".
    Raises DTypeError [C1] if they are no bools, InputError for a message that is no text.
    """
    message = text("check", "message", message)
    (value,) = operands("check", x)
    (truth,) = operands("check", good)
    return wrap(Node(ops.Check(message, raises), (value, truth)))
