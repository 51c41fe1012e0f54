"""Random bits by NumPy: ciphers over parts that stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.base.host.memory import pool
from xarr.base.process_rng import draw
from xarr.compiler.plan.program_plan import Step
from xarr.ir import ops
from xarr.ir.ops.ciphers import (
    PHILOX_MULTIPLIERS,
    PHILOX_WEYL,
    THREEFRY_PARITY,
    THREEFRY_ROTATIONS,
    U32,
    U64,
    PhiloxPair,
    ThreefryBits,
)
from xarr.ir.types import Ints
from xarr_numpy import workers
from xarr_numpy.ops.table_rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

#: Elements at a time: three arrays of them fit a second-level cache.
_TILE: Final = 2**15
#: The same for Philox, which needs six, twice as wide.
_PHILOX_TILE: Final = 2**13
#: Passes over a tile, of about a tenth of a loop iteration each; a thread hands Python's lock over at each.
_COST: Final = 10


# --- in tiles ----------------------------------------------------------------------------------------


def threefry_bits(form: str, key0: Array, key1: Array, x0: Array, x1: Array) -> Array:
    """One of the forms of ThreefryBits.  The operands broadcast to each other."""
    shape = np.broadcast_shapes(*map(np.shape, (key0, key1, x0, x1)))
    result = pool.empty(shape, U32 if form == "xor" else U64)
    flat = result.reshape(-1)

    def write(tile: slice, x0: Array, x1: Array) -> None:
        if form == "xor":
            np.bitwise_xor(x0, x1, out=flat[tile])
        else:
            high, low = (x0, x1) if form == "joined" else (x1, x0)
            np.left_shift(high, U64.type(32), out=flat[tile], dtype=U64)
            np.bitwise_or(flat[tile], low, out=flat[tile])

    _in_tiles(write, shape, key0, key1, x0, x1)
    return result


def _in_tiles(write: Callable[[slice, Array, Array], None], shape: Ints, *operands: Array) -> None:
    """Have the two words of each tile written."""
    key0, key1, x0, x1 = (_flat(operand, shape) for operand in operands)

    def tiles(_: int, begin: int, end: int) -> None:
        scratch_rows = np.empty((3, min(_TILE, x0.size)), U32)
        with np.errstate(all="ignore"):
            for number in range(begin, end):
                tile = slice(number * _TILE, min((number + 1) * _TILE, x0.size))
                first, second, scratch = scratch_rows[:, : tile.stop - tile.start]
                np.copyto(first, x0[tile])
                np.copyto(second, x1[tile])
                _encrypt(key0[tile], key1[tile], first, second, scratch)
                write(tile, first, second)

    workers.run(tiles, 0, -(-x0.size // _TILE), _TILE * _COST)


def _flat(x: Array, shape: Ints) -> Array:
    """The elements in row-major order; without a copy if they are all the same."""
    if np.size(x) == 1:
        return np.broadcast_to(np.reshape(x, ()), (prod(shape),))
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


def philox_pairs(*operands: Array) -> tuple[Array, Array]:
    """Two pairs of words for each counter.  The operands, two of the key and four of it, broadcast to each other."""
    shape = np.broadcast_shapes(*map(np.shape, operands))
    results = pool.empty(shape, U64), pool.empty(shape, U64)
    pairs = [result.reshape(-1) for result in results]
    key, counter = ([_flat(operand, shape) for operand in part] for part in (operands[:2], operands[2:]))
    size = prod(shape)

    def tiles(_: int, begin: int, end: int) -> None:
        scratch_rows = np.empty((6, min(_PHILOX_TILE, size)), U64)
        with np.errstate(all="ignore"):
            for number in range(begin, end):
                tile = slice(number * _PHILOX_TILE, min((number + 1) * _PHILOX_TILE, size))
                words = [row[: tile.stop - tile.start] for row in scratch_rows]
                for word, start in zip(words, counter, strict=False):
                    np.copyto(word, start[tile])
                x0, x1, x2, x3 = _scramble([each[tile] for each in key], words)
                for pair, low, high in ((pairs[0], x0, x1), (pairs[1], x2, x3)):
                    np.left_shift(high, U64.type(32), out=pair[tile])
                    np.bitwise_or(pair[tile], low, out=pair[tile])

    workers.run(tiles, 0, -(-size // _PHILOX_TILE), _PHILOX_TILE * _COST)
    return results


def _scramble(keys: Sequence[Array], words: Sequence[Array]) -> Sequence[Array]:
    """Philox on words of 32 bits, each in a uint64; the last two arrays are scratch for products."""
    # One element is as good as many where all are the same, and faster to combine.
    keys = [key[:1] if key.strides == (0,) else key for key in keys]
    x0, x1, x2, x3, first, second = words
    for step in range(10):
        if step:
            keys = [key + U32.type(more) for key, more in zip(keys, PHILOX_WEYL, strict=True)]
        np.multiply(x0, U64.type(PHILOX_MULTIPLIERS[0]), out=first)
        np.multiply(x2, U64.type(PHILOX_MULTIPLIERS[1]), out=second)
        wide = [key.astype(U64) for key in keys]
        for target, product, own, key in ((x0, second, x1, wide[0]), (x2, first, x3, wide[1])):
            np.right_shift(product, U64.type(32), out=target)
            np.bitwise_xor(target, own, out=target)
            np.bitwise_xor(target, key, out=target)
        np.bitwise_and(second, U64.type(0xFFFFFFFF), out=x1)
        np.bitwise_and(first, U64.type(0xFFFFFFFF), out=x3)
    return x0, x1, x2, x3


def _rng(emitter: Emitter, step: Step) -> str:
    a, b, _ = emitter.operands(step)
    shape = emitter.result_type(step).shape
    return f"draw({step.op.expect(ops.Rng).distribution!r}, {shape}, {a}, {b})"


def _threefry_bits(emitter: Emitter, step: Step) -> str:
    return f"threefry_bits({step.op.expect(ThreefryBits).form!r}, {_operands(emitter, step)})"


def _philox_pair(emitter: Emitter, step: Step) -> str:
    call = f"philox_pairs({_operands(emitter, step)})"
    both = emitter.shared.get(call)
    if both is None:
        both = emitter.shared[call] = f"pairs{len(emitter.shared)}"
        emitter.body.append((f"{both} = {call}", step.node))
    return f"{both}[{step.op.expect(PhiloxPair).index}]"


def _operands(emitter: Emitter, step: Step) -> str:
    # The function broadcasts its operands to each other, of which one at least must have the whole shape.
    if emitter.broadcasts.issuperset(step.inputs):
        return emitter.values(step.inputs)
    return ", ".join(map(emitter.buffer_name, step.inputs))


SCOPE: Final[dict[str, Any]] = {f.__name__: f for f in (draw, threefry_bits, philox_pairs)}

ROWS: Final[Rows] = {ops.Rng: _rng, ThreefryBits: _threefry_bits, PhiloxPair: _philox_pair}
