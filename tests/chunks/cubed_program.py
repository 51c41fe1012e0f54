"""Computations of Cubed with xarr for the arrays of its chunks; writes what each gave, one a line.

Cubed decides when it is imported which library it computes with, so that this is a program of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import cubed
import cubed.array_api as xp
import cubed.random
import numpy as np

import xarr

X = np.random.default_rng(0).random((60, 40))

#: Name, of a Cubed array, of NumPy's.
CALLS: tuple[tuple[str, Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    (
        "broadcast",
        lambda d: (d - xp.mean(d, axis=0)) / xp.std(d, axis=0),
        lambda x: (x - x.mean(0)) / x.std(0),
    ),
    (
        "sum",
        lambda d: xp.sum(d) + xp.max(d, axis=0) - xp.prod(d, axis=0),
        lambda x: x.sum() + x.max(0) - x.prod(0),
    ),
    ("argmax", lambda d: xp.argmax(d, axis=0), lambda x: x.argmax(0)),
    ("matmul", lambda d: d @ d.T, lambda x: x @ x.T),
    ("index", lambda d: d[[3, 1, 2]][:, None, 10:30], lambda x: x[[3, 1, 2]][:, None, 10:30]),
    ("concat", lambda d: xp.concat([d.T, d.T]), lambda x: np.concatenate([x.T, x.T])),
    ("stack", lambda d: xp.stack([d, d]), lambda x: np.stack([x, x])),
    ("where", lambda d: xp.where(d > 0.5, d, -d), lambda x: np.where(x > 0.5, x, -x)),
    ("rechunk", lambda d: d.rechunk((30, 20)), lambda x: x),
    ("cumulative sum", lambda d: xp.cumulative_sum(d, axis=0), lambda x: x.cumsum(0)),
    ("nanmean", lambda d: cubed.nanmean(d, axis=0), lambda x: np.nanmean(x, axis=0)),
    ("map_blocks", lambda d: cubed.map_blocks(shift, d, dtype=float), lambda x: x + 1),
    (
        "jitted",
        lambda d: cubed.map_blocks(xarr.jit(lambda b: xarr.sin(b) * 2), d, dtype=float),
        lambda x: np.sin(x) * 2,
    ),
    ("made", lambda d: d * xp.ones((60, 40), chunks=20, spec=d.spec), lambda x: x),
    ("random", lambda d: cubed.random.random((60, 40), chunks=20, spec=d.spec) * 0, lambda x: 0 * x),
)


def shift(block: Any) -> Any:
    """A block of a function of the user, which is an Array, plus one."""
    assert type(block) is xarr.Array
    return block + 1


def main(folder: str) -> None:
    """Compute each call in chunks of (20,20), files in `folder`, and compare it with NumPy's result."""
    spec = cubed.Spec(work_dir=folder, allowed_mem="200MB", reserved_mem="10MB")
    for name, own, numpys in CALLS:
        got = own(cubed.from_array(X, chunks=20, spec=spec)).compute()
        equal = np.allclose(np.asarray(got), numpys(X), rtol=1e-12)
        print(f"{name}\t{type(got).__module__}.{type(got).__qualname__}\t{equal}")


if __name__ == "__main__":
    main(sys.argv[1])
