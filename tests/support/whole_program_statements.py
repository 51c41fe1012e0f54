"""What statements of random whole programs compute: for each kind of array the ways to make one of others.

A way is written once, in NumPy's spelling, for NumPy and for xarr (`tests/support/whole_programs.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

#: Largest numbers, such that sums stay exact.
LIMITS: Final = {"float16": 8, "bfloat16": 2, "float32": 64, "complex64": 16}


def small(lang: Any, x: Any) -> Any:
    """Back to small numbers, and -0.0 to 0.0."""
    name = np.dtype(x.dtype).name
    if name == "bool":
        return x
    limit = LIMITS.get(name, 64)
    if np.dtype(x.dtype).kind == "c":
        parts = [lang.rem(part, limit) + 0 for part in (lang.np.real(x), lang.np.imag(x))]
        return lang.complex(*parts)
    return lang.rem(x, limit) + 0


def to(lang: Any, x: Any, dtype: np.dtype[Any]) -> Any:
    """Another element type; numbers that it cannot hold become 1."""
    own = np.dtype(x.dtype)
    if own == dtype:
        return x
    if own.kind == "c" and dtype.kind != "c":
        x = lang.np.real(x)
        own = np.dtype(x.dtype)
    if own.kind not in "iub" and dtype.kind in "iu":
        x = lang.np.where(lang.np.isfinite(x), lang.np.abs(x), lang.asarray(1, own))
        x = lang.np.where(x < 200, x, lang.asarray(1, own)).astype(np.int32)
    return x.astype(dtype)


class Scope:
    """The values that a statement may read: the operands, all of the type of the first, and random numbers."""

    def __init__(self, lang: Any, state: dict[str, Any], step: Any) -> None:
        self.lang, self.xp = lang, lang.np
        self.x = state[step.operands[0]]
        self.dtype = np.dtype(self.x.dtype)
        self.a, self.b, self.c = step.numbers[1:]
        self.i, self.p = state["i"], state["p"]
        self._state = state
        self._second = step.operands[1]
        self.n, self.m = lang.program.shape
        self.is_bool, self.is_complex = self.dtype == np.bool_, self.dtype.kind == "c"

    def __getattr__(self, name: str) -> Any:
        if name in ("xs", "ys"):
            return (
                self._state["x"] if name == "xs" else to(self.lang, self._state["y"], self._state["x"].dtype)
            )
        return to(self.lang, self._state[self._second if name == "y" else name], self.dtype)

    @property
    def q(self) -> Any:
        return self._state["q"] % self.n

    @property
    def r(self) -> Any:
        return self._state["r"] % self.m

    @property
    def wild(self) -> Any:
        """Row numbers, some out of bounds."""
        return self._state["q"]

    def minus(self, x: Any, y: Any) -> Any:
        return self.xp.logical_xor(x, y) if self.is_bool else x - y

    def larger(self, x: Any, y: Any) -> Any:
        return (
            self.xp.where(self.xp.real(x) > self.xp.real(y), x, y)
            if self.is_complex
            else self.xp.maximum(x, y)
        )

    def sum_up(self, x: Any, **options: Any) -> Any:
        return self.xp.sum(x, **options).astype(self.dtype)

    def ones(self, *shape: int) -> Any:
        return self.xp.ones(shape, self.dtype)

    def pairs(self) -> Any:
        """A matrix of ones in the diagonal and -1, 0 or 1 beside it, of which all computations are exact."""
        rows, columns = self.xp.arange(self.m)[:, None], self.xp.arange(self.m)
        signs = (self.r % 3 - 1).astype(np.float64)
        return self.xp.where(rows == columns, 1.0, self.xp.where(rows == columns + 1, signs, 0.0))

    def solve(self, x: Any) -> Any:
        right = self.xp.where(self.xp.isfinite(self.xp.real(x)), self.xp.real(x), self.ones()).astype(
            np.float64
        )
        rows = self.pairs()[self.xp.roll(self.xp.arange(self.m), self.a)]
        return to(self.lang, self.xp.linalg.solve(rows, right), self.dtype)

    def product(self, x: Any, y: Any) -> Any:
        return small(self.lang, self.xp.matmul(x, y).astype(self.dtype))


Way = Callable[[Scope], Any]

MATRIX: Final[tuple[Way, ...]] = (
    lambda o: o.x + o.y,
    lambda o: o.minus(o.x, o.y),
    lambda o: o.x * o.y,
    lambda o: o.larger(o.x, o.y),
    lambda o: o.minus(o.x, o.u),
    lambda o: o.x + o.g[:, None],
    lambda o: o.x * o.s,
    lambda o: o.xp.where(o.p, o.x, o.y),
    lambda o: o.xp.where(o.xp.arange(o.n)[:, None] < o.i, o.x, o.y),
    lambda o: o.xp.where(o.xp.arange(o.m) == o.i, o.y, o.x),
    lambda o: o.xp.where(
        (o.xp.arange(o.n)[:, None] <= o.i) & (o.xp.arange(o.m) > o.a), o.minus(o.x, o.y), o.x
    ),
    lambda o: o.xp.flip(o.x, axis=o.a % 2),
    lambda o: o.xp.roll(o.x, o.a - 4, axis=o.b % 2),
    lambda o: (o.x.T + o.y.T).T,
    lambda o: o.minus(o.x, o.sum_up(o.y, axis=o.a % 2, keepdims=True)),
    lambda o: o.x + o.sum_up(o.y),
    lambda o: o.xp.conj(o.x) if o.is_complex else o.minus(o.x, o.xp.max(o.y, axis=o.a % 2, keepdims=True)),
    lambda o: o.product(o.x, o.w),
    lambda o: o.product(o.x, o.product(o.y.T, o.x)),
    lambda o: o.product(o.product(o.x, o.y.T), o.y),
    lambda o: o.xp.cumsum(o.x, axis=o.a % 2).astype(o.dtype),
    lambda o: o.xp.cumsum(o.y[:, ::-1], axis=1).astype(o.dtype)[:, ::-1],
    lambda o: o.x if o.is_complex else o.xp.sort(o.x, axis=o.a % 2),
    lambda o: o.xp.take_along_axis(
        o.x, o.xp.argsort(o.xp.real(o.y), axis=o.a % 2, stable=True), axis=o.a % 2
    ),
    lambda o: o.x[o.q],
    lambda o: o.x[:, o.r],
    lambda o: ~o.x if o.is_bool else o.xp.where(o.xp.isfinite(o.y), o.y, o.x),
    lambda o: o.xp.take(o.x, o.wild, axis=0, mode="clip"),
    lambda o: o.xp.concatenate([o.x[o.a % o.n :], o.y[: o.a % o.n]]),
    lambda o: o.xp.pad(o.x[1:, : o.m - 2], ((0, 1), (1, 1))),
    lambda o: o.g[:, None] * o.u,
    lambda o: o.xp.broadcast_to(o.u, (o.n, o.m)),
    lambda o: o.xp.broadcast_to(o.x[o.a % o.n], (o.n, o.m)),
    lambda o: o.xp.stack([(o.x if k % 3 else o.y)[k % 5] for k in range(o.n)]),
    lambda o: o.x if o.is_bool else o.xp.abs(o.x).astype(o.dtype),
    lambda o: o.x[:, :1] * o.y[-1:],
    lambda o: o.xp.reshape(o.xp.reshape(o.x, (-1,))[::-1], (o.m, o.n)).T,
    lambda o: o.lang.slice(o.xp.concatenate([o.x, o.y]), (o.i + o.a - 2, 0), (o.n, o.m)),
    lambda o: o.xp.repeat(o.x[: (o.n + 1) // 2], 2, axis=0)[: o.n],
    lambda o: o.xp.tril(o.x, o.a - 3),
    lambda o: o.xp.zeros((o.n, o.m), o.dtype),
    lambda o: o.y,
    lambda o: o.lang.call(o.x, o.a),
    lambda o: o.x if o.is_bool or o.is_complex else o.x // o.y,
    lambda o: o.x if o.is_bool or o.is_complex else o.x % o.y,
    lambda o: (o.x << o.a % 5) ^ (o.y >> o.b % 5) if o.dtype.kind in "iu" else o.y,
    lambda o: o.x if o.is_complex or o.is_bool else o.xp.clip(o.x, o.xp.min(o.u), None),
    lambda o: o.minus(o.x[o.q][:, o.r], o.x),
    lambda o: o.xp.where(o.xp.any(o.p, axis=1)[:, None], o.x, o.sum_up(o.y, axis=0)),
    lambda o: o.xp.concatenate([o.x[:, o.a % o.m :], o.y[:, : o.a % o.m]], axis=1),
    lambda o: o.xp.concatenate([o.xp.diff(o.x, axis=0), o.x[:1]]) if not o.is_bool else o.y,
    lambda o: o.solve(o.x.T).T,
    lambda o: o.x[o.wild],
    # Writing to parts.
    lambda o: o.lang.write(o.x, o.i % o.n, o.u),
    lambda o: o.lang.write(o.x, (slice(None), o.i % o.m), o.g),
    lambda o: o.lang.write(o.x, (slice(None), o.a % o.m), o.y[:, o.b % o.m]),
    lambda o: o.lang.write(o.x, 0, o.y[-1]),
    lambda o: o.lang.write(o.x, (slice(None), -1), o.x[:, 1]),
    lambda o: o.lang.write(o.x, slice(None, None, -2), o.y[: (o.n + 1) // 2]),
    lambda o: o.lang.write(o.x, (slice(None, None, -1), slice(1, None, 2)), o.y[:, : o.m // 2]),
    lambda o: o.lang.write(
        o.x, (slice(1, -1), slice(1, -1)), o.minus(o.x[:-2, 1:-1], o.x[2:, 1:-1]) + o.x[1:-1, :-2]
    ),
    lambda o: o.lang.write(o.x, (slice(1, None), slice(None, -1)), o.x[:-1, 1:]),
    lambda o: o.lang.write(o.x, (o.i % o.n, o.i % o.m), o.s),
    lambda o: o.lang.write(o.x, (o.i % o.n, slice(1, None)), o.x[o.a % o.n, :-1]),
    lambda o: o.lang.write(o.x, o.wild % 4, o.y, "add"),
    lambda o: o.x if o.is_complex else o.lang.write(o.x, o.q, o.y, "max" if o.a % 2 else "min"),
    lambda o: o.lang.write(o.x, (slice(None), o.r), o.y, "add"),
    lambda o: o.lang.write(o.x, (o.q[:5], o.r[:5]), o.g[:5]),
    lambda o: (
        o.lang.write(o.x, o.a % 2 == 0, o.y[0]) if o.n < 0 else o.lang.put_slice(o.x, o.y[:3, :4], (o.i, o.a))
    ),
    lambda o: o.lang.put_slice(o.x, small(o.lang, o.x[:1] + o.u), (o.i + 1, 0)),
    lambda o: o.lang.put_slice(o.x, o.lang.slice(o.x, (o.i, 1), (2, o.m - 1)), (o.i + 1, 0)),
)

ROW: Final[tuple[Way, ...]] = (
    lambda o: o.x + o.v,
    lambda o: o.minus(o.x, o.y),
    lambda o: o.product(o.w, o.x),
    lambda o: o.product(o.v, o.w),
    lambda o: o.xp.reshape(o.product(o.w, o.v[:, None]), (o.m,)),
    lambda o: to(o.lang, o._state["x"], o.dtype)[o.i % o.n],
    lambda o: to(o.lang, o._state["y"], o.dtype)[o.a % o.n],
    lambda o: o.sum_up(to(o.lang, o._state["x"], o.dtype), axis=0),
    lambda o: o.product(o.g, to(o.lang, o._state["y"], o.dtype)),
    lambda o: o.xp.cumsum(o.x).astype(o.dtype),
    lambda o: o.x[::-1],
    lambda o: o.x[o.r],
    lambda o: o.x if o.is_complex else o.xp.sort(o.x),
    lambda o: o.lang.write(o.x, o.i % o.m, o.s),
    lambda o: o.lang.write(o.x, o.r, o.v, "add"),
    lambda o: o.xp.where(o.xp.arange(o.m) < o.i, o.x, o.v),
    lambda o: o.lang.write(o.x, slice(1, None), o.x[:-1] + o.x[1:]),
    lambda o: o.lang.write(o.x, slice(None, None, -3), o.s),
    lambda o: o.v,
    lambda o: o.solve(o.x),
    lambda o: o.solve(o.product(o.w, o.x)),
    lambda o: (
        o.x if o.is_complex or o.is_bool else to(o.lang, o.xp.searchsorted(o.xp.sort(o.x), o.v), o.dtype)
    ),
    lambda o: o.xp.convolve(o.x, o.y, "same").astype(o.dtype) if not o.is_bool else o.y,
    lambda o: o.product(o.xp.triu(o.w), o.x),
)

COLUMN: Final[tuple[Way, ...]] = (
    lambda o: to(o.lang, o._state["x"], o.dtype)[:, o.i % o.m],
    lambda o: o.product(to(o.lang, o._state["y"], o.dtype), o.u),
    lambda o: o.sum_up(to(o.lang, o._state["x"], o.dtype), axis=1),
    lambda o: o.x if o.is_complex else o.xp.max(to(o.lang, o._state["x"], o.dtype), axis=1),
    lambda o: o.x + o.x[::-1],
    lambda o: o.minus(o.x, o.s),
    lambda o: o.x[o.q],
    lambda o: o.lang.write(o.x, o.i % o.n, o.s),
    lambda o: o.xp.cumsum(o.x).astype(o.dtype),
    lambda o: o.xp.diagonal(o.product(o.g[:, None], o.g[None, :])),
)

SQUARE: Final[tuple[Way, ...]] = (
    lambda o: o.x.T,
    lambda o: o.product(o.x, o.x),
    lambda o: o.product(o.x.T, o.x),
    lambda o: o.u[:, None] * o.v,
    lambda o: o.xp.triu(o.x),
    lambda o: o.lang.write(o.x, (o.xp.arange(o.m), o.r), o.u),
    lambda o: o.lang.write(o.x, (slice(None), o.i % o.m), o.v),
    lambda o: o.lang.write(o.x, (o.i % o.m, slice(None)), o.x[:, o.i % o.m]),
    lambda o: o.minus(o.x, o.x[o.i % o.m] * o.x[:, o.i % o.m][:, None]),
    lambda o: o.xp.eye(o.m, dtype=o.dtype),
    lambda o: to(o.lang, o.xp.linalg.inv(o.pairs()), o.dtype),
    lambda o: to(o.lang, o.xp.linalg.cholesky(o.pairs() @ o.pairs().T), o.dtype),
    lambda o: o.solve(o.x),
    lambda o: o.product(
        o.lang.slice(to(o.lang, o._state["x"], o.dtype), (0, 0), (5, o.m)).T,
        to(o.lang, o._state["x"], o.dtype)[:5],
    ),
)

SCALAR: Final[tuple[Way, ...]] = (
    lambda o: o.sum_up(to(o.lang, o._state["x"], o.dtype)),
    lambda o: o.sum_up(o.u * o.v),
    lambda o: to(o.lang, o._state["y"], o.dtype)[o.i % o.n, o.a % o.m],
    lambda o: o.x if o.is_complex else o.xp.max(o.v),
    lambda o: o.x + o.ones(),
    lambda o: o.u[o.i % o.m],
    lambda o: o.g[-1],
    lambda o: o.product(o.u, o.v),
    lambda o: to(o.lang, o.xp.argmax(o.xp.real(o.u)), o.dtype),
    lambda o: to(o.lang, o.i, o.dtype),
    lambda o: o.xp.where(o.x == o.u[0], o.v[1], o.x),
)

MASK: Final[tuple[Way, ...]] = (
    lambda o: o.xp.real(o.xs) > o.xp.real(o.ys),
    lambda o: o.xs == o.ys,
    lambda o: ~o.x,
    lambda o: o.x & o.y,
    lambda o: o.xp.isfinite(o.xs),
    lambda o: o.xp.arange(o.n)[:, None] + o.xp.arange(o.m) < o.i,
    lambda o: o.xp.logical_xor(o.x, o.xp.any(o.x, axis=0)),
    lambda o: o.lang.write(o.x, (slice(None), o.i % o.m), True),
)

ROWS_OF: Final[tuple[Way, ...]] = (
    lambda o: o.x + 1,
    lambda o: o.x[::-1],
    lambda o: o.xp.argsort(o.x, stable=True),
    lambda o: to(o.lang, o._state["g"], o.dtype),
    lambda o: o.x * (o.i + 1),
    lambda o: o.lang.write(o.x, o.i % o.x.shape[0], o.i),
    lambda o: o.xp.cumsum(o.x),
    lambda o: o.xp.where(o.x > 2, o.x, o.x[0]),
    lambda o: o.x ^ 3,
    lambda o: -o.x,
)

COLUMNS_OF: Final[tuple[Way, ...]] = (
    lambda o: o.x + 1,
    lambda o: to(o.lang, o._state["u"], o.dtype),
    lambda o: o.xp.argsort(o.x, stable=True),
    lambda o: o.xp.argmax(o.xp.real(o._state["y"]), axis=0),
    lambda o: o.x // 2 + o.i,
)

WAYS: Final[dict[str, tuple[Way, ...]]] = {
    **dict.fromkeys("xye", MATRIX),
    **dict.fromkeys("uv", ROW),
    **{"g": COLUMN, "w": SQUARE, "s": SCALAR, "p": MASK, "q": ROWS_OF, "r": COLUMNS_OF},
}
