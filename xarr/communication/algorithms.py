"""Collectives above `Communicator.exchange`: the same bits on every communicator, at every member.

Each function is called inside of `communicator.collective(call)` by all of `members`, the ranks of a group in its
order.  Arrays are in C order; those that a function returns are new.

Reductions fold from the left in the order of the group, x0 + x1, then + x2 and so on, each element at one member alone,
so that all members get the same bits whatever the computation is.  Large arrays go by all-to-all, fold and all-gather:
each member folds the part of its own number, and hands the result to the others.  This moves 2 (n - 1) / n of the bytes
over each link, as a ring does, in two rounds; where members share memory it reads and writes each byte once, and what
is only moved is read where it lies.  Small arrays are gathered, and folded by everybody; in groups of more than
`DIRECT_MEMBERS` the gathering doubles what each member knows in each round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from xarr.base.frozen_dataclasses import record
from xarr.base.host.memory import pool
from xarr.communication.communicator import Array, Communicator

#: Bytes of an operand up to which a round trip costs more than that everybody computes everything; and bytes that each
#: member gets from others then, where an operand is larger.
SMALL_BYTES: Final = 2**12
RECEIVED_BYTES: Final = 2**17
#: Members up to which each one sends a small array to every other one.
DIRECT_MEMBERS: Final = 8


@record
class Fold:
    """A way to combine rows, folded from the left, to one of their type and dimension.

    * `combine` - writes the combination of rows to an array,
    * `at_once` - writes it to several arrays of a size that no cache holds, while other threads run Python, and tells
      whether it has; the bits are those of `combine`.
    """

    combine: Callable[[Sequence[Array], Array], None]
    at_once: Callable[[Sequence[Array], Sequence[Array]], bool] = lambda rows, outs: False


def is_small(members: int, nbytes: int) -> bool:
    """Whether so many members gather operands of so many bytes, and each folds all of them."""
    return nbytes <= SMALL_BYTES or 0 < (members - 1) * nbytes <= RECEIVED_BYTES


def all_gather(communicator: Communicator, members: Sequence[int], operand: Array) -> Array:
    """The operands of all members, stacked along a new first dimension."""
    out = pool.empty((len(members), *operand.shape), operand.dtype)
    _gather_into(communicator, members, operand, out)
    return out


def _gather_into(communicator: Communicator, members: Sequence[int], operand: Array, out: Array) -> None:
    if communicator.all_gather(members, operand, out):
        return
    if len(members) > DIRECT_MEMBERS and is_small(len(members), operand.nbytes):
        _gather_by_doubling(communicator, members, operand, out)
        return
    with communicator.share(members, (operand,)) as shared:
        if shared is not None:
            for i, (other,) in enumerate(shared):
                out[i, ...] = other
            return
    sends = dict.fromkeys(members, operand)
    communicator.exchange(sends, {source: out[i, ...] for i, source in enumerate(members)})


def _gather_by_doubling(
    communicator: Communicator, members: Sequence[int], operand: Array, out: Array
) -> None:
    """Let each member know the operands of 1, 2, 4 … members, its own first: Bruck's algorithm, log2(n) rounds."""
    count, own = len(members), members.index(communicator.rank)
    rows = np.empty_like(out)
    rows[0, ...] = operand
    known = 1
    while known < count:
        more = min(known, count - known)
        target, source = members[own - known], members[(own + known) % count]
        communicator.exchange({target: rows[:more]}, {source: rows[known : known + more]})
        known += more
    for step in range(count):
        out[(own + step) % count, ...] = rows[step, ...]


def all_to_all(communicator: Communicator, members: Sequence[int], rows: Array) -> Array:
    """Row i of the result is the row of member i for this one: row j goes to member j."""
    out = pool.empty(rows.shape, rows.dtype)
    if communicator.all_to_all(members, rows, out):
        return out
    with communicator.share(members, (rows,)) as shared:
        if shared is not None:
            own = members.index(communicator.rank)
            for i, (other,) in enumerate(shared):
                out[i, ...] = other[own]
            return out
    sends = {target: rows[j, ...] for j, target in enumerate(members)}
    communicator.exchange(sends, {source: out[i, ...] for i, source in enumerate(members)})
    return out


def all_reduce(
    communicator: Communicator,
    members: Sequence[int],
    operands: Sequence[Array],
    folds: Sequence[Fold],
    natives: Sequence[str | None] = (),
) -> list[Array]:
    """Each operand combined with those of its number at the other members, all operands in one exchange.

    folds: how the rows of each operand are combined; natives: for each operand the name of what a communicator may
    compute itself, as `Communicator.all_reduce` has it, None where it may not.
    """
    outs = [pool.empty(operand.shape, operand.dtype) for operand in operands]
    left: Sequence[int] = range(len(operands))
    if any(natives):
        left = [
            index
            for index, name in enumerate(natives)
            if name is None or not communicator.all_reduce(members, name, operands[index], outs[index])
        ]
    flats = [operands[index].reshape(-1) for index in left]
    targets = [outs[index].reshape(-1) for index in left]
    own = [folds[index] for index in left]
    if left and is_small(len(members), sum([flat.nbytes for flat in flats])):
        _reduce_everywhere(communicator, members, flats, targets, own)
    elif left and not _reduce_shared(communicator, members, flats, targets, own):
        _reduce_in_parts(communicator, members, flats, targets, own)
    return outs


def _bounds(size: int, count: int) -> list[int]:
    """Where the parts of an array of this size begin and end, one for each of `count` members."""
    return [index * size // count for index in range(count + 1)]


def _reduce_shared(
    communicator: Communicator,
    members: Sequence[int],
    flats: Sequence[Array],
    outs: Sequence[Array],
    folds: Sequence[Fold],
) -> bool:
    """Fold this member's part of the operands where they lie, for all, if members share memory; tell whether they do.

    So each operand is read once and each result written once, as few bytes as there can be.
    """
    count, own = len(members), members.index(communicator.rank)
    with communicator.share(members, tuple(flats), tuple(outs)) as shared:
        if shared is None:
            return False
        for number, (fold, flat) in enumerate(zip(folds, flats, strict=True)):
            end = _bounds(flat.size, count)
            rows = [each[number] for each in shared]
            targets = [each[len(flats) + number] for each in shared]
            out = targets.pop(own)
            part = out[end[own] : end[own + 1]]
            _fold_blocks(communicator.block_bytes, fold, rows, end[own], part, targets)
    return True


def _fold_blocks(
    block_bytes: int, fold: Fold, rows: Sequence[Array], start: int, out: Array, others: Sequence[Array] = ()
) -> None:
    """Write the combination of what begins at `start` in the rows to `out`, and there in `others`.

    That is done block by block, if it is not done at once.
    """
    step, part = max(1, block_bytes // out.itemsize), slice(start, start + out.size)
    pieces = [out, *[array[part] for array in (*others, *rows)]]
    if fold.at_once(pieces[1 + len(others) :], pieces[: 1 + len(others)]):
        return
    for mine, *blocks in zip(*[_blocks(piece, step) for piece in pieces], strict=True):
        fold.combine(blocks[len(others) :], mine)
        for other in blocks[: len(others)]:
            other[...] = mine


def _blocks(array: Array, step: int) -> Iterator[Array]:
    """The parts of a flat array, `step` elements each but for the last one."""
    whole = array.size // step * step
    yield from array[:whole].reshape(-1, step)
    if whole < array.size:
        yield array[whole:]


def _reduce_everywhere(
    communicator: Communicator,
    members: Sequence[int],
    flats: Sequence[Array],
    outs: Sequence[Array],
    folds: Sequence[Fold],
) -> None:
    """Gather all operands, and fold them at each member."""
    packed = flats[0] if len(flats) == 1 else _pack(flats)
    received = np.empty((len(members), packed.size), packed.dtype)
    _gather_into(communicator, members, packed, received)
    rows = list(received)
    if len(flats) == 1:
        folds[0].combine(rows, outs[0])
        return
    for (part, dtype), out, fold in zip(_parts(flats), outs, folds, strict=True):
        fold.combine([_view_as(row[part], dtype) for row in rows], out)


def _pack(arrays: Sequence[Array]) -> Array:
    """The bytes of several flat arrays, one after the other; of one its own memory."""
    if len(arrays) == 1:
        return _bytes_of(arrays[0])
    return np.concatenate([_bytes_of(array) for array in arrays])


def _bytes_of(array: Array) -> Array:
    return array.view(np.uint8) if array.size else np.empty(0, np.uint8)


def _view_as(memory: Array, dtype: np.dtype[Any]) -> Array:
    """Bytes as an array; copied where it would not be aligned."""
    array = memory.view(dtype)
    return array if array.flags.aligned else array.copy()


def _parts(arrays: Sequence[Array]) -> Iterator[tuple[slice, np.dtype[Any]]]:
    """Where the bytes of each array lie among those of all, and its element type."""
    start = 0
    for array in arrays:
        yield slice(start, start + array.nbytes), array.dtype
        start += array.nbytes


def _reduce_in_parts(
    communicator: Communicator,
    members: Sequence[int],
    flats: Sequence[Array],
    outs: Sequence[Array],
    folds: Sequence[Fold],
) -> None:
    """Give each member a part of every operand to fold, and the results to all."""
    count, own = len(members), members.index(communicator.rank)
    ends = [_bounds(flat.size, count) for flat in flats]

    def pieces(arrays: Sequence[Array], index: int) -> list[Array]:
        return [array[end[index] : end[index + 1]] for array, end in zip(arrays, ends, strict=True)]

    mine, results = pieces(flats, own), pieces(outs, own)
    nbytes = sum(piece.nbytes for piece in mine)
    rows = pool.empty((count, nbytes), np.dtype(np.uint8))
    others = [(index, rank) for index, rank in enumerate(members) if index != own]
    sends = {rank: _pack(pieces(flats, index)) for index, rank in others}
    communicator.exchange(sends, {rank: rows[index] for index, rank in others})
    for number, (part, dtype) in enumerate(_parts(mine)):
        operands = [
            mine[number] if index == own else _view_as(row[part], dtype) for index, row in enumerate(rows)
        ]
        _fold_blocks(communicator.block_bytes, folds[number], operands, 0, results[number])
    _hand_out(communicator, members, results, {rank: pieces(outs, index) for index, rank in others})


def _hand_out(
    communicator: Communicator,
    members: Sequence[int],
    results: Sequence[Array],
    wanted: dict[int, list[Array]],
) -> None:
    """Send the results of this member to the others, and write theirs where they are wanted."""
    packed = _pack(results)
    sends = {rank: packed for rank in members if rank != communicator.rank}
    if len(results) == 1:
        communicator.exchange(sends, {rank: _bytes_of(pieces[0]) for rank, pieces in wanted.items()})
        return
    buffers = {
        rank: np.empty(sum(piece.nbytes for piece in pieces), np.uint8) for rank, pieces in wanted.items()
    }
    communicator.exchange(sends, buffers)
    for rank, pieces in wanted.items():
        for (part, _), piece in zip(_parts(pieces), pieces, strict=True):
            _bytes_of(piece)[...] = buffers[rank][part]


def reduce_scatter(communicator: Communicator, members: Sequence[int], rows: Array, fold: Fold) -> Array:
    """The combination of row i of all members, for the i-th member; rows: one for each member."""
    own = members.index(communicator.rank)
    out = pool.empty(rows.shape[1:], rows.dtype)
    flat = out.reshape(-1)
    with communicator.share(members, (rows.reshape(-1),)) as shared:
        if shared is not None:
            _fold_blocks(communicator.block_bytes, fold, [each for (each,) in shared], own * flat.size, flat)
            return out
    received = pool.empty(rows.shape, rows.dtype)
    others = [(index, rank) for index, rank in enumerate(members) if index != own]
    sends = {rank: rows[index, ...] for index, rank in others}
    communicator.exchange(sends, {rank: received[index, ...] for index, rank in others})
    operands = [(rows if index == own else received)[index].reshape(-1) for index in range(len(members))]
    _fold_blocks(communicator.block_bytes, fold, operands, 0, flat)
    return out


def permute(communicator: Communicator, operand: Array, pairs: Iterable[tuple[int, int]]) -> Array:
    """The operand of the rank that is this one's source in `pairs`, (source, target); zeros where there is none."""
    rank, pairs = communicator.rank, tuple(pairs)
    sources = [source for source, target in pairs if target == rank]
    sends = {target: operand for source, target in pairs if source == rank}
    out = pool.empty(operand.shape, operand.dtype) if sources else np.zeros(operand.shape, operand.dtype)
    communicator.exchange(sends, dict.fromkeys(sources, out))
    return out


def broadcast(communicator: Communicator, members: Sequence[int], operand: Array) -> Array:
    """The operand of the first of `members`; large ones go by parts, so that no link carries more than others."""
    count, own, root = len(members), members.index(communicator.rank), members[0]
    out = pool.empty(operand.shape, operand.dtype)
    if operand.nbytes <= SMALL_BYTES:
        sends = dict.fromkeys(members, operand) if own == 0 else {}
        communicator.exchange(sends, {root: out})
        return out
    with communicator.share(members, (operand if own == 0 else out,)) as shared:
        if shared is not None:
            out[...] = shared[0][0]
            return out
    if count <= 2:
        communicator.exchange({} if own else dict.fromkeys(members, operand), {root: out})
        return out
    flat, end = operand.reshape(-1), _bounds(operand.size, count)
    parts = [slice(end[index], end[index + 1]) for index in range(count)]
    result = out.reshape(-1)
    sends = {rank: flat[part] for rank, part in zip(members, parts, strict=True)} if own == 0 else {}
    communicator.exchange(sends, {root: result[parts[own]]})
    mine = result[parts[own]]
    others = [index for index in range(count) if index != own]
    communicator.exchange(
        {members[index]: mine for index in others}, {members[index]: result[parts[index]] for index in others}
    )
    return out
