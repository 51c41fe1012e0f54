"""The arithmetic of windows that slide over an array: what reduce_window, select_and_scatter and convolution share.

Along one dimension the *base* (an array of `base_size` elements) is dilated, `base_dilation - 1` holes after each
element but the last, and then padded; negative padding cuts off.  Windows start at every `stride`th index of
what results and must fit in it.  The elements of a window are `window_dilation` indices apart.

The names are those of XLA's `WindowDimension`; the sizes are those of `num_windows` in the StableHLO
specification and of `window_util` in XLA.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd, prod
from typing import Any, Final, NamedTuple

import numpy as np

from xarr.base.frozen_dataclasses import record
from xarr.errors import InputError, ShapeError
from xarr.ir.op import Op
from xarr.ir.types import Ints

Pairs = tuple[tuple[int, int], ...]

#: What a padding may be called instead of being given in numbers.
PADDINGS: Final = ("VALID", "SAME", "SAME_LOWER")

#: The largest extent: that of 64 bits.
LARGEST: Final = 2**63 - 1


class Overlap(NamedTuple):
    """Where one element of every window meets the base: `windows[k]` meets `base[k]`, both of one length."""

    windows: slice
    base: slice
    length: int


NOWHERE = Overlap(slice(0, 0), slice(0, 0), 0)


def dilate_size(size: int, dilation: int) -> int:
    """The extent of `size` elements that are `dilation` indices apart."""
    return (size - 1) * dilation + 1 if size else 0


@record
class WindowDimension:
    """The window along one dimension.

    `padding_low` and `padding_high` may be negative; all others are positive (a convolution also has windows
    of size 0).  With `window_reversal` the elements of the window are counted from its end.
    """

    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    window_reversal: bool = False

    @property
    def dilated_size(self) -> int:
        """The extent of the window with its holes."""
        return dilate_size(self.size, self.window_dilation)

    @property
    def is_trivial(self) -> bool:
        """Whether each window is one element and each element one window."""
        return self == WindowDimension(1)

    def padded_size(self, base_size: int) -> int:
        """The extent of the base with its holes and its padding; negative if more was cut off than there is."""
        return self.padding_low + dilate_size(base_size, self.base_dilation) + self.padding_high

    def output_size(self, base_size: int) -> int:
        """The number of windows that fit; 0 if the window has no element."""
        padded, extent = self.padded_size(base_size), self.dilated_size
        if padded <= 0 or not extent or extent > padded:
            return 0
        return (padded - extent) // self.stride + 1

    def position(self, window: int, element: int, base_size: int) -> int | None:
        """The base index that `element` of this window lies on; None in padding and in holes."""
        index, hole = divmod(self._offset(element) + window * self.stride, self.base_dilation)
        return index if not hole and 0 <= index < base_size else None

    def overlap(self, element: int, base_size: int) -> Overlap:
        """All windows whose `element` lies on the base, and the base indices that it lies on.

        Both are progressions: a window meets the base where `offset + window * stride` is a multiple of
        base_dilation.
        """
        offset, step = self._offset(element), gcd(self.stride, self.base_dilation)
        if offset % step or not base_size:
            return NOWHERE
        holes, every = self.base_dilation // step, self.stride // step
        low = max(0, -(offset // self.stride))
        high = min(
            self.output_size(base_size) - 1, ((base_size - 1) * self.base_dilation - offset) // self.stride
        )
        first = low + (-(offset // step) * pow(every, -1, holes) - low) % holes
        if first > high:
            return NOWHERE
        count = (high - first) // holes + 1
        start = (offset + first * self.stride) // self.base_dilation
        last = count - 1
        return Overlap(
            slice(first, first + last * holes + 1, holes),
            slice(start, start + last * every + 1, every),
            count,
        )

    def counts(self, base_size: int) -> np.ndarray[Any, Any]:
        """The number of elements of each window that lie on the base, as int64."""
        start = np.arange(self.output_size(base_size)) * self.stride - self.padding_low
        step = gcd(self.window_dilation, self.base_dilation)
        holes, every = self.base_dilation // step, self.window_dilation // step
        low = np.maximum(0, -(start // self.window_dilation))
        end = (base_size - 1) * self.base_dilation
        high = np.minimum(self.size - 1, (end - start) // self.window_dilation)
        first = low + (-(start // step) * pow(every, -1, holes) - low) % holes
        return np.where((start % step == 0) & (first <= high), (high - first) // holes + 1, 0)

    def _offset(self, element: int) -> int:
        """The offset of `element` of window 0, relative to the base's first element."""
        if self.window_reversal:
            element = self.size - 1 - element
        return element * self.window_dilation - self.padding_low


@record
class Window:
    """The windows over an array: one WindowDimension for each of its dimensions that they slide along."""

    dimensions: tuple[WindowDimension, ...]

    @classmethod
    def of(
        cls,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int] | None = None,
        padding: Sequence[tuple[int, int]] | None = None,
        base_dilations: Sequence[int] | None = None,
        window_dilations: Sequence[int] | None = None,
        window_reversal: Sequence[bool] | None = None,
    ) -> Window:
        """From one sequence for each property, of one length, which must have been checked; None is the default."""
        rank = len(window_dimensions)
        ones = (1,) * rank
        return cls(
            tuple(
                WindowDimension(size, stride, low, high, base, window, reverse)
                for size, stride, (low, high), base, window, reverse in zip(
                    window_dimensions,
                    window_strides or ones,
                    padding or ((0, 0),) * rank,
                    base_dilations or ones,
                    window_dilations or ones,
                    window_reversal or (False,) * rank,
                    strict=True,
                )
            )
        )

    @property
    def sizes(self) -> Ints:
        """The window's size in each dimension."""
        return tuple(dimension.size for dimension in self.dimensions)

    @property
    def size(self) -> int:
        """The number of elements of a window."""
        return prod(self.sizes)

    def output_shape(self, base_shape: Sequence[int]) -> Ints:
        """The number of windows that fit in each dimension of the base."""
        return tuple(d.output_size(size) for d, size in zip(self.dimensions, base_shape, strict=True))

    def counts(self, base_shape: Sequence[int]) -> np.ndarray[Any, Any]:
        """The number of elements of each window that lie on the base, as int64; size 1 where all have one."""
        total = np.ones((1,) * len(self.dimensions), np.int64)
        for axis, (dimension, size) in enumerate(zip(self.dimensions, base_shape, strict=True)):
            if not dimension.is_trivial:
                shape = [-1 if other == axis else 1 for other in range(total.ndim)]
                total = total * dimension.counts(size).reshape(shape)
        return total

    def elements(self) -> Iterator[Ints]:
        """The indices of a window's elements, row-major."""
        return product(*(range(dimension.size) for dimension in self.dimensions))

    def position(
        self, window: Sequence[int], element: Sequence[int], base_shape: Sequence[int]
    ) -> Ints | None:
        """The base index that `element` of this window lies on; None in padding and in holes."""
        rows = zip(self.dimensions, window, element, base_shape, strict=True)
        indices = [dimension.position(*row) for dimension, *row in rows]
        known = tuple(index for index in indices if index is not None)
        return known if len(known) == len(indices) else None

    def overlap(self, element: Sequence[int], base_shape: Sequence[int]) -> tuple[Overlap, ...] | None:
        """Per dimension, the windows whose `element` lies on the base; None if there is none."""
        rows = zip(self.dimensions, element, base_shape, strict=True)
        counts = tuple(dimension.overlap(index, size) for dimension, index, size in rows)
        return counts if all(overlap.length for overlap in counts) else None


def check_entries(
    op: Op, labels: tuple[str, str], name: str, values: Sequence[int], rank: int, where: str
) -> None:
    """Refuse attributes unless there is one entry per dimension (first label), each positive (second)."""
    if len(values) != rank:
        op.fail(labels[0], f"wanted {rank} {name}, one for each dimension of {where}, got {tuple(values)}")
    if any(value < 1 for value in values):
        op.fail(labels[1], f"wanted {name} >= 1, got {tuple(values)}")
    if any(value > LARGEST for value in values):
        op.fail(labels[1], f"wanted {name} that fit in 64 bits, got {tuple(values)}")


def check_padding(op: Op, label: str, padding: Sequence[Sequence[int]], rank: int, where: str) -> None:
    """Refuse padding that is not one pair of low and high per dimension."""
    if len(padding) != rank or any(len(pair) != 2 for pair in padding):
        op.fail(
            label,
            f"wanted {rank} pairs (low, high) of padding, one for each dimension of {where}, "
            f"got {tuple(map(tuple, padding))}",
        )


def find_largest_extent(dimension: WindowDimension, size: int) -> int:
    """The largest of what must fit in 64 bits along a dimension: of the base, the padding and the window."""
    extents = (
        dilate_size(size, dimension.base_dilation),
        dimension.padded_size(size),
        dimension.dilated_size,
    )
    return max(map(abs, (*extents, dimension.padding_low, dimension.padding_high)))


def check_extents(op: Op, label: str, window: Window, base_shape: Sequence[int], where: str) -> None:
    """Refuse windows of which positions, in a base or in padding, do not fit in 64 bits."""
    for dimension, size in zip(window.dimensions, base_shape, strict=True):
        if find_largest_extent(dimension, size) > LARGEST:
            padding = (dimension.padding_low, dimension.padding_high)
            op.fail(
                label,
                f"wanted extents that fit in 64 bits, got padding {padding} and dilations "
                f"{dimension.base_dilation} and {dimension.window_dilation} of {where}",
            )


def named_padding(
    name: str,
    padding: str,
    base_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
) -> Pairs:
    """The padding that `padding` stands for; `window_dimensions` are the extents, holes included.

    * VALID: none.
    * SAME: as many windows as the size divided by the stride, rounded up; an odd one goes to the end.
    * SAME_LOWER: the same, but an odd one goes to the beginning.

    Raises InputError for another name, ShapeError unless the three sequences have one length.
    Source: XLA's MakePadding, which does not look at base dilation.
    """
    kind = padding.upper()
    if kind not in PADDINGS:
        raise InputError(
            f"{name}: wanted padding to be one of {', '.join(PADDINGS)} or pairs (low, high), got {padding!r}"
        )
    if not len(base_shape) == len(window_dimensions) == len(window_strides):
        raise ShapeError(
            f"{name}: {kind} padding wants one window dimension and one stride for each of the "
            f"{len(base_shape)} dimensions, got {tuple(window_dimensions)} and {tuple(window_strides)}"
        )
    if kind == "VALID":
        return ((0, 0),) * len(base_shape)
    # A stride below 1 must not divide here: the op that gets it refuses it, with a label.
    strides = [max(stride, 1) for stride in window_strides]
    rows = zip(base_shape, window_dimensions, strides, strict=True)
    totals = [max((-(-size // stride) - 1) * stride + extent - size, 0) for size, extent, stride in rows]
    halves = [(total // 2, total - total // 2) for total in totals]
    return tuple(halves if kind == "SAME" else [(high, low) for low, high in halves])
