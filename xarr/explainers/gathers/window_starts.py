"""Where the windows of a gather or scatter start: as asked for by the indices, and as XLA moves or drops them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from xarr.ir.ops.indexing import Windows
from xarr.ir.types import Ints


@dataclass(frozen=True)
class Placement:
    """One window: its index in the batch, the start asked for, and the start it gets (None if left out)."""

    batch: Ints
    asked: Ints
    start: Ints | None

    @property
    def is_moved(self) -> bool:
        """Whether the start is out of bounds."""
        return self.start != self.asked


def placements(windows: Windows, is_gather: bool, vectors: Any, most: int) -> Iterator[Placement]:
    """The first `most` windows.  Without index vectors they stand at evenly spaced indices, as an example.

    A gather clamps starts so that windows fit; a scatter leaves out windows that do not.
    """
    count = prod(windows.batch_shape)
    for number in range(min(count, most)):
        batch = tuple(int(at) for at in np.unravel_index(number, windows.batch_shape))
        asked = [0] * len(windows.operand_shape)
        limits = [whole - size for whole, size in zip(windows.operand_shape, windows.sizes, strict=True)]
        for component, (dim, last) in enumerate(zip(windows.index_map, windows.last_starts, strict=True)):
            component_start = (
                last * number // max(1, count - 1) if vectors is None else vectors[number, component]
            )
            asked[dim] = int(component_start)
        for dim, position in windows.batching:
            asked[dim] = batch[position]
        if is_gather:
            start = tuple(
                min(max(at, 0), last) if dim in windows.index_map else at
                for dim, (at, last) in enumerate(zip(asked, limits, strict=True))
            )
            yield Placement(batch, tuple(asked), start)
        else:
            fits = all(0 <= at <= last for at, last in zip(asked, limits, strict=True))
            yield Placement(batch, tuple(asked), tuple(asked) if fits else None)


def slice_of(windows: Windows, batch: Ints) -> str:
    """Where a window stands in the windowed array: `[2, :, :]`."""
    placed = dict(zip(windows.batch_dims, batch, strict=True))
    rank = len(windows.batch_dims) + len(windows.window_dims)
    return f"[{', '.join(str(placed.get(dim, ':')) for dim in range(rank)) or '()'}]"


def block_of(windows: Windows, start: Ints) -> str:
    """The elements of the operand that a window covers: `[3, 0:2]`."""
    rows = enumerate(zip(start, windows.sizes, strict=True))
    parts = [str(at) if dim not in windows.kept_dims else f"{at}:{at + size}" for dim, (at, size) in rows]
    return f"[{', '.join(parts) or '()'}]"


def count_windows(windows: Windows, placed: Sequence[Placement], is_gather: bool) -> str:
    """The number of windows in words, and of a scatter what their order is about."""
    count = prod(windows.batch_shape)
    if is_gather:
        return f"{count:,} windows"
    if len(placed) == count and all(each.start is None for each in placed):
        return f"{count:,} windows, all of them left out"
    return f"{count:,} windows, in this order: where they overlap, one finds what those before it wrote"
