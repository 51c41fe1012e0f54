"""Random bits: Threefry over tiles that stay in the cache.

The graph of Threefry runs like any other; written here is only the fast way of the same arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.ops.ciphers import THREEFRY_PARITY, THREEFRY_ROTATIONS, threefry_graph
from xarr.process_rng import draw
from xarr_numpy.rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]

#: Elements at a time: four arrays of them fit a second-level cache.
_TILE: Final = 2**15


def is_threefry(node: Node) -> bool:
    """Whether a call is one of the cipher."""
    assert isinstance(node.op, ops.Call)
    graph = node.op.computation
    return graph.name == "threefry2x32" and graph == threefry_graph(node.operands[-1].shape)


def threefry2x32(shape: Ints, key0: Array, key1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    """Two words for each counter.  The operands broadcast to `shape`."""
    keys, counters = [_flat(key, shape) for key in (key0, key1)], [_flat(x, shape) for x in (x0, x1)]
    results = np.empty(shape, np.uint32), np.empty(shape, np.uint32)
    first, second = (result.reshape(-1) for result in results)
    scratch = np.empty(min(_TILE, first.size), np.uint32)
    for start in range(0, first.size, _TILE):
        tile = slice(start, start + _TILE)
        np.copyto(first[tile], counters[0][tile])
        np.copyto(second[tile], counters[1][tile])
        _encrypt(keys[0][tile], keys[1][tile], first[tile], second[tile], scratch[: first[tile].size])
    return results


def _flat(x: Array, shape: Ints) -> Array:
    """The elements in row-major order; without a copy if they are all the same."""
    if np.size(x) == 1:
        return np.broadcast_to(np.reshape(x, ()), (int(np.prod(shape)),))
    return np.broadcast_to(x, shape).reshape(-1)


def _encrypt(key0: Array, key1: Array, x0: Array, x1: Array, scratch: Array) -> None:
    """Replace the counters by the words."""
    # One element is as good as many where all are the same, and faster to add.
    key0, key1 = (key[:1] if key.strides == (0,) else key for key in (key0, key1))
    keys = (key0, key1, key0 ^ key1 ^ np.uint32(THREEFRY_PARITY))
    np.add(x0, keys[0], out=x0)
    np.add(x1, keys[1], out=x1)
    for step in range(5):
        for rotation in THREEFRY_ROTATIONS[step % 2]:
            np.add(x0, x1, out=x0)
            np.left_shift(x1, np.uint32(rotation), out=scratch)
            np.right_shift(x1, np.uint32(32 - rotation), out=x1)
            np.bitwise_or(x1, scratch, out=x1)
            np.bitwise_xor(x1, x0, out=x1)
        np.add(x0, keys[(step + 1) % 3], out=x0)
        np.add(x1, keys[(step + 2) % 3] + np.uint32(step + 1), out=x1)


def _rng(emitter: Emitter, node: Node) -> str:
    assert isinstance(node.op, ops.Rng)
    a, b, _ = node.operands
    return f"draw({node.op.distribution!r}, {node.shape}, {emitter.full(a)}, {emitter.full(b)})"


SCOPE: Final[dict[str, Any]] = {"draw": draw, "threefry2x32": threefry2x32}

ROWS: Final[Rows] = {ops.Rng: _rng}
