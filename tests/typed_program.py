"""A user's program for type checkers: `mypy --strict` reads it, nothing runs it.

Each `assert_type` says what an editor shows; each ignored error is one that a checker must report, since strict
checkers report an ignore that is not needed.
"""

from collections.abc import Sequence
from typing import Any, assert_type

import xarr
import xarr as np

x = np.asarray([[1.0, 2.0], [3.0, 4.0]])
key = np.random.key(0)

# Modules that are imported when they are first asked for are modules to a checker too.
assert_type(np.fft.fft(x), xarr.Array)
assert_type(np.linalg.inv(x), xarr.Array)
np.linalg.svd(x)
np.random.normal(key, (2, 3))
np.stablehlo.parse("")
leaves, structure = np.tree.flatten({"x": x})
assert_type(leaves[0], Any)

# Misspelled names are errors.
np.summ(x)  # type: ignore[attr-defined]
np.linalg.invert(x)  # type: ignore[attr-defined]
np.emath.sqr(x)  # type: ignore[attr-defined]
np.lib.stride_tricks.sliding_windows(x, 2)  # type: ignore[attr-defined]
x.meann()  # type: ignore[attr-defined]


@xarr.jit
def scale(x: xarr.Array, factor: float = 2.0) -> xarr.Array:
    return x * factor


@xarr.jit(static_argnames="n")
def powers(x: xarr.Array, n: int) -> list[xarr.Array]:
    return [x**i for i in range(n)]


class Model:
    @xarr.jit
    def predict(self, x: xarr.Array) -> xarr.Array:
        return x


# A jitted function has the signature of the function.
assert_type(scale(x), xarr.Array)
assert_type(powers(x, n=3), list[xarr.Array])
assert_type(Model().predict(x), xarr.Array)
scale("x")  # type: ignore[arg-type]
powers(x)  # type: ignore[call-arg]
scale.lower(x).stage("fused")
scale.clear_cache()

assert_type(np.where(x > 0, x, 0.0), xarr.Array)
assert_type(np.unique(x), xarr.Array)
sequence: Sequence[int] = x.shape
assert_type(np.add(x, x), xarr.Array)
assert_type(np.exp(x), xarr.Array)
assert_type(np.less(x, x), xarr.Array)
assert_type(x @ x + x.T, xarr.Array)
assert_type(np.sum(x, axis=0), xarr.Array)
assert_type(np.average(x), xarr.Array)
assert_type(x[0], xarr.Array)
assert_type(x.at[0].set(1.0), xarr.Array)
