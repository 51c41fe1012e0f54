"""LAPACK's routines that no operation of the graph stands for, in NumPy: calls on the host, `xarr.gees` and others.

`xarr.ir.stablehlo.lapack` reads such calls from modules, and `xarr.lax.lapack` has the routines that are operations.

Each takes stacks of matrices and returns what the routine does.  They compute in float64 and complex128, whatever
the elements are; `info` is 0, or what LAPACK says of a matrix that has no such factors.

Source: LAPACK's documentation of the routines; Golub and Van Loan, "Matrix Computations", chapters 4, 5, 7 and 8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import copysign, hypot, sqrt
from typing import Any, Final

import numpy as np

from xarr.base.custom_calls import register_custom_call

Array = np.ndarray[Any, Any]

_EPS: Final = float(np.finfo(np.float64).eps)
_INT32: Final = np.dtype(np.int32)
#: Steps of the QR algorithm for one eigenvalue, as in LAPACK.
_MOST_STEPS: Final = 30


def _map_stack(
    routine: Callable[..., tuple[Any, ...]],
    dtypes: Sequence[Any],
    ranks: Sequence[int],
    operands: Sequence[Array],
) -> tuple[Array, ...]:
    """`routine` for each of a stack of matrices; its results get the element types `dtypes`.

    ranks: the dimensions of each operand that are not the stack's.
    """
    batch = operands[0].shape[: operands[0].ndim - ranks[0]]
    wide = [
        np.array(each, np.result_type(each, np.float64) if each.dtype.kind in "fc" else None)
        for each in operands
    ]
    indices = list(np.ndindex(batch))
    with np.errstate(all="ignore"):
        rows = [routine(*[each[index].copy() for each in wide]) for index in indices]
        shapes = (
            rows[0] if rows else routine(*[np.zeros(each.shape[len(batch) :], each.dtype) for each in wide])
        )
        results = []
        for k, dtype in enumerate(dtypes):
            result = np.empty(batch + np.shape(shapes[k]), dtype)
            for index, row in zip(indices, rows, strict=True):
                result[index] = row[k]
            results.append(result)
    return tuple(results)


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype


# --- reflections ----------------------------------------------------------------------------------------------


def _reflection(x: Array) -> tuple[Any, Array, Any]:
    """(beta, v, tau) with v[0] = 1 and (1 - conj(tau) v v*) x = beta e1, beta real.  Source: LAPACK, larfg."""
    v = x.copy()
    if v.size == 0:
        return 0.0, v, 0.0
    alpha, rest = v[0], float(np.linalg.norm(v[1:]))
    v[0] = 1
    if rest == 0 and np.imag(alpha) == 0:
        return alpha, v, 0.0
    beta = -copysign(hypot(abs(alpha), rest), np.real(alpha))
    v[1:] /= alpha - beta
    return beta, v, (beta - alpha) / beta


def _reflect_rows(a: Array, v: Array, tau: Any) -> None:
    """a := (1 - tau v v*) a."""
    a -= np.outer(tau * v, v.conj() @ a)


def _reflect_columns(a: Array, v: Array, tau: Any) -> None:
    """a := a (1 - tau v v*)."""
    a -= np.outer(a @ v, tau * v.conj())


def _gehrd(a: Array, low: int, high: int) -> tuple[Array, Array, int]:
    taus = np.zeros(max(len(a) - 1, 0), a.dtype)
    for k in range(low - 1, high - 1):
        beta, v, tau = _reflection(a[k + 1 : high, k])
        _reflect_columns(a[:high, k + 1 : high], v, tau)
        _reflect_rows(a[k + 1 : high, k + 1 :], v, np.conj(tau))
        a[k + 1 : high, k] = v
        a[k + 1, k], taus[k] = beta, tau
    return a, taus, 0


def _sytrd_lower(a: Array) -> tuple[Array, Array, Array, Array, int]:
    """The lower triangle as that of a tridiagonal matrix."""
    n = len(a)
    taus, off_diagonal = np.zeros(max(n - 1, 0), a.dtype), np.zeros(max(n - 1, 0))
    if n:
        a[0, 0] = a[0, 0].real
    for k in range(n - 1):
        beta, v, tau = _reflection(a[k + 1 :, k])
        lower = a[k + 1 :, k + 1 :]
        whole = np.tril(lower) + np.tril(lower, -1).conj().T
        np.fill_diagonal(whole, whole.diagonal().real)
        x = tau * (whole @ v)
        w = x - tau / 2 * np.vdot(x, v) * v
        update = np.outer(v, w.conj()) + np.outer(w, v.conj())
        lower[...] = np.where(np.tri(len(v), dtype=bool), whole - update, lower)
        a[k + 1 :, k] = v
        a[k + 1, k] = off_diagonal[k] = np.real(beta)
        taus[k] = tau
    return a, a.diagonal().real.copy(), off_diagonal, taus, 0


def _sytrd_upper(a: Array) -> tuple[Array, Array, Array, Array, int]:
    """The upper triangle: the lower one of the matrix with its rows and columns in the other order.

    LAPACK takes the last column first and puts what is 1 in a reflection last.
    """
    reduced, diagonal, off_diagonal, taus, info = _sytrd_lower(a[::-1, ::-1].copy())
    return reduced[::-1, ::-1], diagonal[::-1], off_diagonal[::-1], taus[::-1], info


def _geqp3(a: Array, pivots: Array) -> tuple[Array, Array, Array]:
    """Columns whose pivot is not 0 come first, in their order; then always the one with the largest rest."""
    rows, columns = a.shape
    order = np.arange(columns)
    fixed = 0
    for column in np.flatnonzero(pivots):
        _exchange(a, order, fixed, int(column))
        fixed += 1
    taus = np.zeros(min(rows, columns), a.dtype)
    for k in range(len(taus)):
        if k >= fixed:
            longest = k + int(np.argmax(np.linalg.norm(a[k:, k:], axis=0)))
            _exchange(a, order, k, longest)
        beta, v, tau = _reflection(a[k:, k])
        _reflect_rows(a[k:, k + 1 :], v, np.conj(tau))
        a[k:, k] = v
        a[k, k], taus[k] = beta, tau
    return a, order + 1, taus


def _exchange(a: Array, order: Array, one: int, other: int) -> None:
    """Exchange two columns and their numbers."""
    a[:, [one, other]] = a[:, [other, one]]
    order[[one, other]] = order[[other, one]]


def _ormqr(a: Array, taus: Array, c: Array, left: bool, transpose: bool) -> tuple[Array]:
    order = range(len(taus))
    for k in reversed(order) if left != transpose else order:
        v = a[:, k].copy()
        v[:k], v[k] = 0, 1
        tau = np.conj(taus[k]) if transpose else taus[k]
        (_reflect_rows if left else _reflect_columns)(c, v, tau)
    return (c,)


# --- tridiagonal systems --------------------------------------------------------------------------------------


def _gtsv(lower: Array, diagonal: Array, upper: Array, b: Array) -> tuple[Array, Array, Array, Array, int]:
    """Elimination with row exchanges.  As JAX calls it, lower[0] and upper[-1] stand outside of the matrix."""
    n = len(diagonal)
    second = np.append(lower[1:], lower[:1] * 0)  # what lies below the diagonal, then two above it
    for k in range(n - 1):
        if abs(diagonal[k]) >= abs(second[k]):
            if diagonal[k] == 0:
                return lower, diagonal, upper, b, k + 1
            factor = second[k] / diagonal[k]
            diagonal[k + 1] -= factor * upper[k]
            b[k + 1] -= factor * b[k]
            second[k] = 0
        else:
            factor = diagonal[k] / second[k]
            diagonal[k], diagonal[k + 1], upper[k] = (
                second[k],
                upper[k] - factor * diagonal[k + 1],
                diagonal[k + 1],
            )
            b[k], b[k + 1] = b[k + 1], b[k] - factor * b[k + 1]
            second[k] = upper[k + 1] if k + 2 < n else 0
            if k + 2 < n:
                upper[k + 1] *= -factor
    if n and diagonal[-1] == 0:
        return lower, diagonal, upper, b, n
    for k in reversed(range(n)):
        if k + 1 < n:
            b[k] -= upper[k] * b[k + 1]
        if k + 2 < n:
            b[k] -= second[k] * b[k + 2]
        b[k] /= diagonal[k]
    lower[1:] = second[:-1]
    return lower, diagonal, upper, b, 0


# --- Schur factors ----------------------------------------------------------------------------------------------


def _gees(a: Array) -> tuple[Array, Array, Array, int]:
    """(T, Q, eigenvalues, info) with Q T Q* = a."""
    n = len(a)
    if not np.isfinite(a).all():
        nan = np.full_like(a, np.nan)
        return nan, nan, np.full(n, np.nan, np.complex128), 1
    # A power of two, so that nothing is rounded, keeps products of elements in range.
    scale = 2.0 ** int(np.frexp(np.abs(a).max(initial=0.0))[1] - 1)
    h, taus, _ = _gehrd(a / scale, 1, n)
    q = np.eye(n, dtype=a.dtype)
    for k in reversed(range(n - 1)):
        v = h[k + 1 :, k].copy()
        v[0] = 1
        _reflect_rows(q[k + 1 :, k + 1 :], v, taus[k])
    t = np.triu(h, -1)
    info = _real_schur(t, q) if t.dtype.kind == "f" else _complex_schur(t, q)
    t *= scale
    return t, q, _eigenvalues(t), info


def _eigenvalues(t: Array) -> Array:
    """Those of a Schur form: its diagonal, and pairs where an element below is not 0."""
    values = t.diagonal().astype(np.complex128)
    for k in range(len(t) - 1):
        if t[k + 1, k] != 0 and t.dtype.kind == "f":
            imaginary = sqrt(abs(t[k, k + 1])) * sqrt(abs(t[k + 1, k]))
            values[k : k + 2] += (imaginary * 1j, -imaginary * 1j)
    return values


def _active_start(t: Array, last: int) -> int:
    """The first row of the block that ends in row `last`; what is negligible beside its neighbours becomes 0."""
    for k in range(last, 0, -1):
        beside = abs(t[k - 1, k - 1]) + abs(t[k, k])
        if abs(t[k, k - 1]) <= _EPS * (beside or 1.0):
            t[k, k - 1] = 0
            return k
    return 0


def _complex_schur(t: Array, q: Array) -> int:
    """Make a Hessenberg matrix triangular by steps with Wilkinson's shift; 0, or 1 + the row where they do not end."""
    last, steps = len(t) - 1, 0
    while last > 0:
        first = _active_start(t, last)
        if first == last:
            last, steps = last - 1, 0
            continue
        if steps == _MOST_STEPS * 10:
            return last + 1
        steps += 1
        shift = _wilkinson(t[last - 1 : last + 1, last - 1 : last + 1])
        if steps % 10 == 0:
            shift = t[last, last] + 0.75 * abs(t[last, last - 1])
        x = np.array([t[first, first] - shift, t[first + 1, first]])
        for k in range(first, last):
            _, v, tau = _reflection(x)
            _reflect_rows(t[k : k + 2, max(k - 1, 0) :], v, np.conj(tau))
            _reflect_columns(t[: min(k + 3, last + 1), k : k + 2], v, tau)
            _reflect_columns(q[:, k : k + 2], v, tau)
            if k > first:
                t[k + 1, k - 1] = 0
            if k + 2 <= last:
                x = t[k + 1 : k + 3, k]
    return 0


def _wilkinson(block: Array) -> complex:
    """The eigenvalue of a 2x2 matrix that is closer to its last element."""
    (a, b), (c, d) = block.tolist()
    half = (a - d) / 2
    root = complex(np.sqrt(half * half + b * c))
    if (half.conjugate() * root).real < 0:
        root = -root
    below = half + root
    result: complex = d if below == 0 else d - b * c / below
    return result


def _real_schur(t: Array, q: Array) -> int:
    """Make a Hessenberg matrix one of blocks of 1 and 2 rows, by Francis' double steps; 0, or 1 + a row as above."""
    last, steps = len(t) - 1, 0
    while last > 0:
        first = _active_start(t, last)
        if first >= last - 1:
            if first == last - 1:
                _standardise(t, q, first)
            last, steps = first - 1, 0
            continue
        if steps == _MOST_STEPS * 10:
            return last + 1
        steps += 1
        trace = t[last, last] + t[last - 1, last - 1]
        determinant = t[last, last] * t[last - 1, last - 1] - t[last, last - 1] * t[last - 1, last]
        if steps % 10 == 0:
            near = abs(t[last, last - 1]) + abs(t[last - 1, last - 2])
            trace, determinant = (
                2 * (t[last, last] + 0.75 * near),
                (t[last, last] + 0.75 * near) ** 2 + near**2,
            )
        _double_step(t, q, first, last, trace, determinant)
    return 0


def _double_step(t: Array, q: Array, first: int, last: int, trace: float, determinant: float) -> None:
    """One step with two shifts of this sum and product, on rows `first` … `last`."""
    a, b, c, d = t[first, first], t[first, first + 1], t[first + 1, first], t[first + 1, first + 1]
    x = np.array([a * a + b * c - trace * a + determinant, c * (a + d - trace), c * t[first + 2, first + 1]])
    for k in range(first, last):
        _, v, tau = _reflection(x)
        end = k + len(v)
        _reflect_rows(t[k:end, max(k - 1, 0) :], v, tau)
        _reflect_columns(t[: min(end + 1, last + 1), k:end], v, tau)
        _reflect_columns(q[:, k:end], v, tau)
        if k > first:
            t[k + 1 : end, k - 1] = 0
        x = t[k + 1 : min(k + 4, last + 1), k]


def _standardise(t: Array, q: Array, k: int) -> None:
    """Rotate the block of rows k and k + 1: triangular if its eigenvalues are real, else with equal diagonal elements.

    Source: LAPACK, lanv2.
    """
    for _ in range(2):
        rotation = _rotation(*t[k : k + 2, k : k + 2].ravel().tolist())
        t[k : k + 2, k:] = rotation @ t[k : k + 2, k:]
        t[: k + 2, k : k + 2] = t[: k + 2, k : k + 2] @ rotation.T
        q[:, k : k + 2] = q[:, k : k + 2] @ rotation.T
        (_, b), (c, _) = t[k : k + 2, k : k + 2].tolist()
        if abs(c) <= _EPS * max(abs(b), abs(t[k, k]), abs(t[k + 1, k + 1])):
            t[k + 1, k] = 0
            return
        if copysign(1, b) != copysign(1, c):
            t[k, k] = t[k + 1, k + 1] = (t[k, k] + t[k + 1, k + 1]) / 2
            return


def _rotation(a: float, b: float, c: float, d: float) -> Array:
    """[[cos, sin], [-sin, cos]] that makes c 0 if the eigenvalues are real, else the diagonal elements equal."""
    half = (a - d) / 2
    if c == 0:
        cosine, sine = 1.0, 0.0
    elif b == 0:
        cosine, sine = 0.0, 1.0
    elif half == 0 and copysign(1, b) != copysign(1, c):
        cosine, sine = 1.0, 0.0
    elif half * half + b * c >= 0:  # an eigenvector for the eigenvalue that is farther from d
        z = half + copysign(sqrt(half * half + b * c), half)
        cosine, sine = z / hypot(z, c), c / hypot(z, c)
    else:
        length = hypot(b + c, a - d)
        cosine = sqrt((1 + abs(b + c) / length) / 2)
        sine = -half / (length * cosine) * copysign(1, b + c)
    return np.array([[cosine, sine], [-sine, cosine]])


# --- the calls ------------------------------------------------------------------------------------------------


def gees(a: Array) -> tuple[Array, ...]:
    """(T, Q, eigenvalues, sdim, info) of complex a; the eigenvalues' parts are two results for real a.

    T is triangular, but for blocks of two rows where real a has eigenvalues that are not real.
    """
    if a.dtype.kind == "c":
        t, q, values, info = _map_stack(_gees, (a.dtype, a.dtype, a.dtype, _INT32), (2,), (a,))
        return t, q, values, np.zeros_like(info), info
    t, q, values, info = _map_stack(_gees, (a.dtype, a.dtype, np.complex128, _INT32), (2,), (a,))
    return t, q, values.real.astype(a.dtype), values.imag.astype(a.dtype), np.zeros_like(info), info


def gehrd(a: Array, low: int, high: int) -> tuple[Array, ...]:
    """(factors, taus, info) of a = Q H Q*: H on and above the first subdiagonal, the reflections of Q below."""
    return _map_stack(partial(_gehrd, low=low, high=high), (a.dtype, a.dtype, _INT32), (2,), (a,))


def geqp3(a: Array, pivots: Array) -> tuple[Array, ...]:
    """(factors, pivots, taus) of Q R = a P; columns with a pivot come first, results count from 1."""
    return _map_stack(_geqp3, (a.dtype, pivots.dtype, a.dtype), (2, 1), (a, pivots))


def gtsv(lower: Array, diagonal: Array, upper: Array, b: Array) -> tuple[Array, ...]:
    """(…, …, …, x, info) of a tridiagonal system with the right hand sides b; the first three hold its factors."""
    dtypes = (*[b.dtype] * 4, _INT32)
    return _map_stack(_gtsv, dtypes, (1, 1, 1, 2), (lower, diagonal, upper, b))


def ormqr(a: Array, taus: Array, c: Array, left: bool, transpose: bool) -> Array:
    """Q c, or c Q, where Q or its adjoint is the product of the reflections that `geqrf` gives."""
    (result,) = _map_stack(
        partial(_ormqr, left=left, transpose=transpose), (c.dtype,), (2, 1, 2), (a, taus, c)
    )
    return result


def sytrd(a: Array, lower: bool) -> tuple[Array, ...]:
    """(factors, d, e, taus, info) of a = Q T Q* for Hermitian a, T tridiagonal with diagonal d and e beside it."""
    dtypes = (a.dtype, _real(a.dtype), _real(a.dtype), a.dtype, _INT32)
    return _map_stack(_sytrd_lower if lower else _sytrd_upper, dtypes, (2,), (a,))


for _function in (gees, gehrd, geqp3, gtsv, ormqr, sytrd):
    register_custom_call(f"xarr.{_function.__name__}", _function)
