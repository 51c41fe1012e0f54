"""Wide windows that overlap, folded by a ufunc on tiles that stay in a cache.

Within a tile the number of passes grows as the logarithm of the window: totals of 1, 2, 4, 8 … neighbours, of which
a few make up any window, so that sums are as accurate as pairwise ones.  Integers wrap, so that the difference of
two running sums is exact.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from xarr.base.host.memory import pool
from xarr.dtypes import INTEGER
from xarr.ir.windows import WindowDimension
from xarr_numpy import workers
from xarr_numpy.ops.reductions import COMBINERS

Array = np.ndarray[Any, Any]

#: Elements of a tile, about: three arrays of them fit a second-level cache.
_TILE: Final = 2**15
#: A thread that runs NumPy hands Python's lock over and over: it is worth so many times more elements.
_HAND_OVER: Final = 4


def fold_neighbours(ufunc: np.ufunc, x: Array, axis: int, dimension: WindowDimension, windows: int) -> Array:
    """The windows of x along `axis`, which all lie in it."""
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    result = pool.empty((*before, windows, *after), x.dtype)
    source = x.reshape(prod(before), x.shape[axis], prod(after))
    target = result.reshape(prod(before), windows, prod(after))
    reach, stride = dimension.dilated_size, dimension.stride
    # Neighbouring tiles share what windows reach over, so that is kept small beside a tile.
    count = min(windows, max(1, max(_TILE // max(1, prod(after)), 2 * reach) // stride))
    span = (count - 1) * stride + reach
    lines = max(1, _TILE // max(1, span * prod(after)))
    parts = -(-windows // count)
    kind = (
        _running if ufunc is np.add and x.dtype in INTEGER and dimension.window_dilation == 1 else _doubling
    )

    def tiles(_: int, begin: int, end: int) -> None:
        buffers = np.empty((2, min(lines, len(source)), span, prod(after)), x.dtype)
        with np.errstate(all="ignore"):
            for number in range(begin, end):
                line, part = divmod(number, parts)
                rows = slice(line * lines, (line + 1) * lines)
                out = target[rows, part * count : (part + 1) * count]
                first = part * count * stride
                here = source[rows, first : first + (out.shape[1] - 1) * stride + reach]
                kind(ufunc, here, out, buffers[:, : len(here)], dimension)

    cost = min(lines, len(source)) * span * prod(after) // _HAND_OVER
    workers.run(tiles, 0, -(-len(source) // lines) * parts, cost)
    return result


def _doubling(ufunc: np.ufunc, x: Array, out: Array, buffers: Array, dimension: WindowDimension) -> None:
    """Write totals along axis 1, in the order of the elements of a window."""
    size, step, stride = dimension.size, dimension.window_dilation, dimension.stride
    extent = (out.shape[1] - 1) * stride + 1
    offset, covered, is_first = 0, 1, True
    may_overlap = COMBINERS[ufunc].idempotent
    for power in range(size.bit_length()):
        if power:
            shift = covered * step
            length = x.shape[1] - shift
            scratch = buffers[power % 2][:, :length]
            ufunc(x[:, :length], x[:, shift:], out=scratch)
            x, covered = scratch, 2 * covered
        if may_overlap or not size & covered:
            continue
        here = x[:, offset : offset + extent : stride]
        if is_first:
            np.copyto(out, here)
        else:
            ufunc(out, here, out=out)
        offset, is_first = offset + covered * step, False
    if may_overlap:
        # The first and the last elements of a window.
        last = (size - covered) * step
        ufunc(x[:, :extent:stride], x[:, last : last + extent : stride], out=out)


def _running(ufunc: np.ufunc, x: Array, out: Array, buffers: Array, dimension: WindowDimension) -> None:
    """Sums of integers, as differences of cumulative sums."""
    size, stride = dimension.size, dimension.stride
    sums = buffers[0][:, : x.shape[1]]
    np.add.accumulate(x, axis=1, dtype=x.dtype, out=sums)
    np.copyto(out, sums[:, size - 1 :: stride])
    np.subtract(out[:, 1:], sums[:, stride - 1 :: stride][:, : out.shape[1] - 1], out=out[:, 1:])
