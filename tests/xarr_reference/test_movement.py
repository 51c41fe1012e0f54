"""The reference backend against hand-written values and strided views: creation and movement of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.compare import assert_same
from tests.programs import run
from xarr import lax
from xarr.backend import get
from xarr.dtypes import INTEGER, TABLE
from xarr.errors import ShapeError
from xarr.ir import ops
from xarr.ir.types import TensorType
from xarr.runtime import handles

Shape = tuple[int, ...]


@pytest.mark.parametrize("dtype", [row.dtype for row in TABLE if row.kind != "bool"])
def test_iota(dtype: Any) -> None:
    with np.errstate(all="ignore"):
        counts = np.arange(300).astype(np.int64 if dtype in INTEGER else np.float32).astype(dtype)
        for shape, dim in (((300,), 0), ((2, 300), 1), ((300, 2, 1), 0), ((0,), 0), ((1, 0), 1)):
            line = counts[: shape[dim]]
            expected = np.broadcast_to(
                np.expand_dims(line, [k for k in range(len(shape)) if k != dim]), shape
            )
            assert_same(run(ops.Iota(TensorType(shape, dtype), dim)), expected)


@pytest.mark.parametrize("shape", [(), (0, 2), (1,), (2, 3, 1)])
def test_constant(shape: Shape) -> None:
    array = np.full(shape, -0.0, np.float32)
    assert_same(run(ops.Constant.of(array)), array)


SHAPES: tuple[Shape, ...] = ((), (0,), (1,), (3,), (2, 3, 4), (1, 0, 2), (2, 1, 3, 1, 2))


def count_up(shape: Shape, dtype: Any = np.int32) -> Any:
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
def test_movement_agrees_with_strided_views(shape: Shape) -> None:
    x, rank = count_up(shape), len(shape)
    dims = tuple(range(rank))
    assert_same(run(ops.Transpose(dims[::-1]), x), x.T)
    assert_same(run(ops.Transpose((*dims[1:], *dims[:1])), x), np.moveaxis(x, 0, -1) if rank else x)
    assert_same(run(ops.Reverse(dims), x), x[tuple(slice(None, None, -1) for _ in dims)])
    assert_same(run(ops.Reverse(dims[:1]), x), x[::-1] if rank else x)
    assert_same(run(ops.Reshape((x.size,)), x.T), np.ravel(x.T))
    assert_same(run(ops.Reshape((1, *shape, 1)), x), x[None, ..., None])
    wide = np.lib.stride_tricks.as_strided(x, (2, *shape, 3), (0, *x.strides, 0))
    assert_same(run(ops.BroadcastInDim((2, *shape, 3), tuple(dim + 1 for dim in dims)), x), wide)
    start, stop = tuple(min(1, size) for size in shape), shape
    assert_same(run(ops.Slice(start, stop, (2,) * rank), x), x[tuple(slice(1, None, 2) for _ in dims)])
    for dim in dims:
        assert_same(run(ops.Concatenate(dim), x, x, x), np.concatenate([x, x, x], dim))
    padded = run(ops.Pad((1,) * rank, (2,) * rank, (0,) * rank), x, np.int32(-7))
    assert_same(padded, np.pad(x, ((1, 2),) * rank, constant_values=-7) if rank else x)


def test_size_one_dimensions_stretch_in_broadcast_in_dim() -> None:
    x = np.int32([[1], [2]])
    assert_same(run(ops.BroadcastInDim((2, 3), (0, 1)), x), np.int32([[1, 1, 1], [2, 2, 2]]))
    assert_same(run(ops.BroadcastInDim((3, 2, 1), (1, 2)), x), np.int32([[[1], [2]]] * 3))
    assert_same(run(ops.BroadcastInDim((0, 2), ()), np.int32(5)), np.empty((0, 2), np.int32))


PADDINGS: tuple[Any, ...] = (
    ([1, 2, 3], 0, 0, 1, [1, 9, 2, 9, 3]),
    ([1, 2, 3], 2, 1, 2, [9, 9, 1, 9, 9, 2, 9, 9, 3, 9]),
    ([1, 2, 3], -1, 0, 1, [9, 2, 9, 3]),
    ([1, 2, 3], -2, -1, 1, [2, 9]),
    ([1, 2, 3], 0, -4, 1, [1]),
    ([1, 2, 3], -5, 0, 1, []),
    ([1, 2, 3], -4, 6, 0, [9, 9, 9, 9, 9]),
    ([1, 2, 3], 4, -5, 0, [9, 9]),
    ([], 1, 2, 3, [9, 9, 9]),
    ([5], 0, 1, 4, [5, 9]),
)


@pytest.mark.parametrize(("operand", "low", "high", "interior", "expected"), PADDINGS)
def test_padding_of_one_dimension(operand: Any, low: int, high: int, interior: int, expected: Any) -> None:
    result = run(ops.Pad((low,), (high,), (interior,)), np.array(operand, np.int8), np.int8(9))
    assert_same(result, np.array(expected, np.int8))


def test_padding_of_several_dimensions() -> None:
    x = np.int8([[1, 2], [3, 4]])
    result = run(ops.Pad((1, 0), (0, -1), (0, 1)), x, np.int8(0))
    assert_same(result, np.int8([[0, 0], [1, 0], [3, 0]]))


def test_a_slice_out_of_bounds_is_refused() -> None:
    with pytest.raises(ShapeError, match="C2"):
        run(ops.Slice((0,), (4,), (1,)), np.ones(3))


# --- the examples of XLA's operation semantics --------------------------------------------------------

V = np.float32(
    [
        [[10, 11, 12], [15, 16, 17]],
        [[20, 21, 22], [25, 26, 27]],
        [[30, 31, 32], [35, 36, 37]],
        [[40, 41, 42], [45, 46, 47]],
    ]
)


def reshape(dimensions: Sequence[int], sizes: Shape) -> Any:
    with_reference = handles.from_host(V, get("reference").device())
    return lax.reshape(with_reference, sizes, dimensions)


def test_reshape_examples() -> None:
    rotated = [10, 20, 30, 40, 11, 21, 31, 41, 12, 22, 32, 42]
    rotated += [15, 25, 35, 45, 16, 26, 36, 46, 17, 27, 37, 47]
    assert_same(reshape((0, 1, 2), (24,)), np.ravel(V))
    assert_same(reshape((0, 1, 2), (8, 3)), np.concatenate(V))
    assert_same(reshape((1, 2, 0), (24,)), np.float32(rotated))
    assert_same(reshape((1, 2, 0), (8, 3)), np.float32(rotated).reshape(8, 3))
    assert_same(
        reshape((1, 2, 0), (2, 6, 2)),
        np.float32(
            [
                [[10, 20], [30, 40], [11, 21], [31, 41], [12, 22], [32, 42]],
                [[15, 25], [35, 45], [16, 26], [36, 46], [17, 27], [37, 47]],
            ]
        ),
    )
    assert_same(run(ops.Reshape(()), np.float32([[5]])), np.float32(5))
    assert_same(run(ops.Reshape((1, 1)), np.float32(5)), np.float32([[5]]))


def test_collapse_examples() -> None:
    # The page swaps the dimensions of its last two examples: joining 0 and 1 of 4x2x3 gives 8x3.
    v = handles.from_host(V, get("reference").device())
    assert_same(lax.collapse(v, 0, 3), V.ravel())
    rows = [[10, 11, 12, 15, 16, 17], [20, 21, 22, 25, 26, 27]]
    rows += [[30, 31, 32, 35, 36, 37], [40, 41, 42, 45, 46, 47]]
    assert_same(lax.collapse(v, 0, 2), np.concatenate(V))
    assert_same(lax.collapse(v, 1, 3), np.float32(rows))


def test_concatenate_and_slice_examples() -> None:
    assert_same(run(ops.Concatenate(0), *np.int32([[2, 3], [4, 5], [6, 7]])), np.int32([2, 3, 4, 5, 6, 7]))
    a, b = np.int32([[1, 2], [3, 4], [5, 6]]), np.int32([[7, 8]])
    assert_same(run(ops.Concatenate(0), a, b), np.int32([[1, 2], [3, 4], [5, 6], [7, 8]]))
    assert_same(run(ops.Slice((2,), (4,), (1,)), np.arange(5.0)), np.array([2.0, 3]))
    b = np.arange(12.0).reshape(4, 3)
    assert_same(run(ops.Slice((2, 1), (4, 3), (1, 1)), b), np.array([[7.0, 8], [10, 11]]))
