"""Complex numbers whose parts have every magnitude, and where two results for them differ."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tests.lax_values import parts

HostArray = np.ndarray[Any, Any]

#: ULP of the larger part.  Near the poles of logistic, 1 + exp(-x) cancels: see docs/accuracy.md.
LIMIT: Final = {"logistic": 128}


def magnitudes(dtype: np.dtype[Any]) -> list[float]:
    limits = np.finfo(dtype)
    largest, tiny = float(limits.max), float(limits.tiny)
    edge = float(np.log(limits.max)) + 0.15  # exp overflows, half of it does not
    ordinary = [0.0, 0.5, 1.0, np.pi / 2, 3.0, edge, 1e4]
    small = [float(limits.eps) / 8, tiny**0.5 / 3, tiny, tiny / 3, float(limits.smallest_subnormal)]
    return [*ordinary, *small, 1.5 * largest**0.5, largest / 2, largest, np.inf]


def grid(dtype: np.dtype[Any]) -> HostArray:
    """All pairs of parts of every magnitude and sign, and NaN."""
    line = [*magnitudes(dtype), *(-x for x in magnitudes(dtype)), np.nan]
    real, imaginary = np.meshgrid(line, line)
    return parts(real.ravel(), imaginary.ravel(), dtype)


def pairs(dtype: np.dtype[Any], count: int = 3000) -> tuple[HostArray, HostArray]:
    draw, points = np.random.default_rng(7), grid(dtype)
    return draw.choice(points, count), draw.choice(points, count)


def wrong(got: HostArray, wanted: HostArray, ulp: float) -> HostArray:
    """Where parts are neither both NaN, nor equal, nor within `ulp` spacings of the larger finite one."""
    both = [(x.real, x.imag) if np.iscomplexobj(x) else (x,) for x in (got, wanted)]
    with np.errstate(all="ignore"):
        larger = np.max([np.where(np.isfinite(part), np.abs(part), 0) for part in both[1]], axis=0)
        mask = np.zeros(got.shape, bool)
        for mine, theirs in zip(*both, strict=True):
            same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
            mask |= ~same & ~(np.abs(mine - theirs) <= ulp * np.spacing(larger))
    return mask


def is_infinite(x: HostArray) -> HostArray:
    """C99 calls a complex number infinite that has an infinite part, whatever the other is."""
    return np.asarray(np.isinf(x.real) | np.isinf(x.imag))


def format_rows(name: str, where: HostArray, *columns: HostArray) -> str:
    rows = np.flatnonzero(where)[:8]
    return "\n".join([f"{name}: {where.sum()} differ", *(str([str(x[i]) for x in columns]) for i in rows)])
