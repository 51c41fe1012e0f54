"""The arithmetic of windows: sizes, positions, progressions, names of padding."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from jax import lax as jlax

from xarr.errors import InputError, ShapeError
from xarr.ir.windows import Window, WindowDimension, dilate_size, named_padding

DIMENSIONS = st.builds(
    WindowDimension,
    size=st.integers(1, 5),
    stride=st.integers(1, 4),
    padding_low=st.integers(-6, 6),
    padding_high=st.integers(-6, 6),
    base_dilation=st.integers(1, 4),
    window_dilation=st.integers(1, 4),
    window_reversal=st.booleans(),
)


def lay_out(dimension: WindowDimension, base_size: int) -> list[int | None]:
    """The dilated and padded base, each position with the index of its element."""
    spread: list[int | None] = [None] * dilate_size(base_size, dimension.base_dilation)
    spread[:: dimension.base_dilation] = range(base_size)
    low, high = dimension.padding_low, dimension.padding_high
    padded = [None] * low + spread + [None] * high
    return padded[max(-low, 0) : max(len(padded) - max(-high, 0), 0)]


@given(DIMENSIONS, st.integers(0, 8))
def test_windows_by_laying_them_out(dimension: WindowDimension, base_size: int) -> None:
    row = lay_out(dimension, base_size)
    extent = (dimension.size - 1) * dimension.window_dilation + 1
    starts = range(0, len(row) - extent + 1, dimension.stride)
    windows = [row[start : start + extent : dimension.window_dilation] for start in starts]
    if dimension.window_reversal:
        windows = [window[::-1] for window in windows]
    assert dimension.output_size(base_size) == len(windows)
    assert dimension.dilated_size == extent
    for (number, window), element in product(enumerate(windows), range(dimension.size)):
        assert dimension.position(number, element, base_size) == window[element]
    assert dimension.counts(base_size).tolist() == [len(w) - w.count(None) for w in windows]
    for element in range(dimension.size):
        overlap = dimension.overlap(element, base_size)
        wanted = [(k, w[element]) for k, w in enumerate(windows) if w[element] is not None]
        result = zip(range(len(windows))[overlap.windows], range(base_size)[overlap.base], strict=True)
        assert list(result) == wanted
        assert overlap.length == len(wanted)


def test_windows_of_several_dimensions() -> None:
    window = Window.of((2, 3), (1, 2), ((0, 0), (1, 1)), (1, 1), (1, 1))
    assert window.sizes == (2, 3)
    assert window.size == 6
    assert window.output_shape((4, 5)) == (3, 3)
    assert list(window.elements()) == list(np.ndindex(2, 3))
    assert window.position((1, 0), (1, 1), (4, 5)) == (2, 0)
    assert window.position((1, 0), (1, 0), (4, 5)) is None
    assert window.counts((4, 5)).tolist() == [[4, 6, 4]] * 3
    assert Window.of((2, 1)).counts((4, 5)).tolist() == [[2]] * 3
    overlap = window.overlap((0, 0), (4, 5))
    assert overlap is not None
    assert [each.length for each in overlap] == [3, 2]
    assert window.overlap((0, 0), (4, 0)) is None


def test_trivial_windows() -> None:
    assert WindowDimension(1).is_trivial
    assert not WindowDimension(1, stride=2).is_trivial
    assert not WindowDimension(1, padding_low=1).is_trivial
    assert WindowDimension(0).output_size(3) == 0


SIZES = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(1, 4)), max_size=3)


@given(SIZES, st.sampled_from(("VALID", "SAME", "SAME_LOWER", "same", "Valid")))
def test_named_padding_as_jax(rows: list[tuple[int, int, int]], name: str) -> None:
    shape, window, strides = ([row[k] for row in rows] for k in range(3))
    wanted = [tuple(map(int, pair)) for pair in jlax.padtype_to_pads(shape, window, strides, name)]
    assert list(named_padding("test", name, shape, window, strides)) == wanted


def test_named_padding_refuses() -> None:
    with pytest.raises(
        InputError, match="test: wanted padding to be one of VALID, SAME, SAME_LOWER or pairs"
    ):
        named_padding("test", "FULL", (3,), (2,), (1,))
    with pytest.raises(ShapeError, match="test: SAME padding wants one window dimension and one stride"):
        named_padding("test", "SAME", (3, 3), (2,), (1, 1))
