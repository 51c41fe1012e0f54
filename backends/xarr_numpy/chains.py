"""A computation that combines a number with many others, one after the other, for a few numbers at once.

Steps depend on one another, so Python goes through them.  But most computations forget: after some steps of
a / 2 + b nothing is left of where they began.  So long chains are cut into segments that run beside each other
from a guess, and once more from what came out before each; if that changes nothing, they are right to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
Function = Callable[..., tuple[Any, ...]]

#: Steps of a segment: float64 forgets halves after some 60.
_LENGTH: Final = 256
#: Segments that are worth two runs of as many NumPy calls as a segment has steps.
_MANY: Final = 256


@dataclass(frozen=True)
class Steps:
    """A computation of scalars in both forms that Python runs.

    lanes: on arrays, of which each element is a computation of its own,
    loop: on N numbers and N arrays of one dimension, whose elements are combined with the numbers in order.
    """

    lanes: Function
    loop: Function


def follow(steps: Steps, starts: Sequence[Array], chains: Sequence[Sequence[Array]]) -> list[Array]:
    """What comes of N arrays of numbers, each combined with its chain: N arrays of one dimension, in order."""
    counts = np.array([len(chain[0]) // _LENGTH for chain in chains])
    found = [np.array(each) for each in starts]
    ends = _guessed(steps, starts, chains, counts) if counts.sum() >= _MANY else None
    if ends is not None:
        last = np.cumsum(counts)[counts > 0] - 1
        for each, end in zip(found, ends, strict=True):
            each[counts > 0] = end[last]
    for number, chain in enumerate(chains):
        begin = _LENGTH * int(counts[number]) if ends is not None else 0
        values = steps.loop(*[each[number] for each in found], *[stream[begin:] for stream in chain])
        for each, value in zip(found, values, strict=True):
            each[number] = value
    return found


def _guessed(
    steps: Steps, starts: Sequence[Array], chains: Sequence[Sequence[Array]], counts: Array
) -> list[Array] | None:
    """The numbers after each whole segment, those of a chain together; None where the computation remembers."""
    rows = [
        np.ascontiguousarray(np.concatenate([_segments(chain[place]) for chain in chains]).T)
        for place in range(len(starts))
    ]
    first = (np.cumsum(counts) - counts)[counts > 0]
    ends = _run(steps.lanes, [np.repeat(start, counts) for start in starts], rows)
    begins = [np.roll(end, 1) for end in ends]
    for begin, start in zip(begins, starts, strict=True):
        begin[first] = start[counts > 0]
    again = _run(steps.lanes, begins, rows)
    same = all(end.tobytes() == other.tobytes() for end, other in zip(ends, again, strict=True))
    return ends if same else None


def _segments(stream: Array) -> Array:
    return stream[: len(stream) // _LENGTH * _LENGTH].reshape(-1, _LENGTH)


def _run(lanes: Function, current: list[Array], rows: list[Array]) -> list[Array]:
    dtypes = [each.dtype for each in current]
    for updates in zip(*rows, strict=True):
        found = lanes(*current, *updates)
        # A result may be one number for all, or an operand.
        current = [np.broadcast_to(value, updates[0].shape) for value in found]
    return [np.array(each, dtype) for each, dtype in zip(current, dtypes, strict=True)]
