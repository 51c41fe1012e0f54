"""Sliding windows over dynamic sizes, against loops over the live part and XLA."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.dynamic_cases import Case
from tests.support.dynamic import check_on, check_with_xla, late
from xarr import lax
from xarr.errors import ShapeError

Host = np.ndarray[Any, Any]
Pairs = tuple[tuple[int, int], ...]


def reduce(
    x: Host,
    start: Any,
    combine: Callable[[Any, Any], Any],
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Pairs,
    dilations: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
) -> Host:
    """The meaning of reduce_window: each window's elements that are no padding, from the initial value on."""
    base, inner = dilations or ((1,) * x.ndim, (1,) * x.ndim)
    shape = []
    for size, (low, high), width, step, between, apart in zip(
        x.shape, padding, window, strides, base, inner, strict=True
    ):
        extent = low + ((size - 1) * between + 1 if size else 0) + high
        reach = (width - 1) * apart + 1
        shape.append((extent - reach) // step + 1 if extent >= reach else 0)
    result = np.full(shape, start, x.dtype)
    for index in np.ndindex(*shape):
        for element in itertools.product(*map(range, window)):
            rows = zip(index, element, strides, padding, base, inner, strict=True)
            at = [divmod(p * s + e * a - low, b) for p, e, s, (low, _), b, a in rows]
            if all(not rest and 0 <= i < size for (i, rest), size in zip(at, x.shape, strict=True)):
                result[index] = combine(result[index], x[tuple(i for i, _ in at)])
    return result


def _sum(*geometry: Any, dilations: Any = None) -> tuple[Callable[[Any], Any], Callable[[Host], Host]]:
    base, inner = dilations or (None, None)
    return (
        lambda x: lax.reduce_window(x, 0.0, lax.add, *geometry, base, inner),
        lambda x: reduce(x, 0, np.add, *geometry, dilations),
    )


def _fuse(a: Any, b: Any) -> Any:
    """a + b in a form that no backend knows."""
    return lax.add(lax.add(a, b), 0.0)


NONE: Pairs = ((0, 0), (0, 0))
#: What XLA does with explicit padding along a dynamic dimension.
UNPADDED = "it leaves the padding out of the sizes"
CASES = [
    Case("sum", ("n m",), *_sum((2, 3), (1, 1), NONE), unlike_xla="it aborts where no window fits"),
    Case(
        "sum_where_it_fits",
        ("n m",),
        *_sum((2, 3), (1, 1), NONE),
        is_defined=lambda sizes: sizes["n"] >= 2 and sizes["m"] >= 3,
    ),
    Case("sum_strided", ("n m",), *_sum((2, 2), (2, 3), NONE)),
    Case("sum_padded", ("n m",), *_sum((3, 2), (1, 2), ((1, 2), (2, 1))), unlike_xla=UNPADDED),
    Case(
        "sum_cut",
        ("n m",),
        *_sum((2, 1), (1, 1), ((-1, -1), (0, 1))),
        unlike_xla="sizes below 0 abort it",
    ),
    Case(
        "sum_dilated",
        ("n m",),
        *_sum((2, 2), (1, 2), ((1, 0), (0, 2)), dilations=((2, 3), (1, 2))),
        unlike_xla=UNPADDED,
    ),
    Case("sum_of_rows", ("n 3",), *_sum((1, 2), (1, 1), NONE)),
    Case("sum_of_few", ("3 n",), *_sum((2, 1), (1, 1), ((1, 1), (0, 0)))),
    Case(
        "max",
        ("n m",),
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), ((1, 1), (1, 1))),
        lambda x: reduce(x, -np.inf, np.maximum, (2, 2), (1, 1), ((1, 1), (1, 1))),
        unlike_xla=UNPADDED,
    ),
    Case(
        "any_computation",
        ("n",),
        lambda x: lax.reduce_window(x, 0.0, _fuse, (3,), (1,), ((2, 1),)),
        lambda x: reduce(x, 0, np.add, (3,), (1,), ((2, 1),)),
        unlike_xla=UNPADDED,
    ),
    Case(
        "from_five",
        ("n",),
        lambda x: lax.reduce_window(x, 5.0, lax.add, (2,), (1,), ((0, 1),)),
        lambda x: reduce(x, 5, np.add, (2,), (1,), ((0, 1),)),
        unlike_xla="it combines the initial value once for each element of padding",
    ),
    Case("cumsum", ("n 2",), lambda x: lax.cumsum(x, 0), lambda x: np.cumsum(x, 0), unlike_xla=UNPADDED),
    Case("cumprod", ("2 n",), lambda x: lax.cumprod(x, 1), lambda x: np.cumprod(x, 1), unlike_xla=UNPADDED),
    Case("cummax", ("n",), lax.cummax, np.maximum.accumulate, unlike_xla=UNPADDED),
    Case(
        "cumsum_reversed",
        ("n",),
        lambda x: lax.cumsum(x, reverse=True),
        lambda x: np.cumsum(x[::-1])[::-1],
        unlike_xla=UNPADDED,
    ),
    Case(
        "select_and_scatter_rows",
        ("n 4", "n 2"),
        lambda x, s: lax.select_and_scatter(x, lax.ge, (1, 2), (1, 2), NONE, s, 0.0, lax.add),
        lambda x, s: (
            np.stack([_pick(row, source) for row, source in zip(x, s, strict=True)]) if len(x) else x
        ),
    ),
]


def _pick(row: Host, source: Host) -> Host:
    result = np.zeros_like(row)
    for index, value in enumerate(source):
        result[2 * index + int(row[2 * index : 2 * index + 2].argmax())] += value
    return result


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_as_loops_over_the_live_part(case: Case, backend: str) -> None:
    check_on(case, backend, poisoned=True)


@pytest.mark.parametrize("case", [case for case in CASES if not case.unlike_xla], ids=lambda case: case.name)
def test_as_xla(case: Case) -> None:
    check_with_xla(case)


def test_dynamic_d7() -> None:
    x = lax.set_dimension_size(np.ones((4, 4), np.float32), late(2), 0)
    with pytest.raises(ShapeError, match=r"select_and_scatter \[D7\]: windows slide along dimension 0"):
        lax.select_and_scatter(
            x, lax.ge, (2, 2), (2, 2), NONE, np.ones((2, 2), np.float32), np.float32(0), lax.add
        )


def test_paddings_by_name_depend_on_the_size_where_windows_skip() -> None:
    x = lax.set_dimension_size(np.arange(16, dtype=np.float32).reshape(4, 4), late(3), 0)
    result = lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), "SAME")
    wanted = reduce(np.asarray(x), 0, np.add, (2, 2), (1, 2), ((0, 1), (0, 0)))
    np.testing.assert_array_equal(np.asarray(result), wanted)
    with pytest.raises(
        ShapeError, match=r"reduce_window with padding 'SAME' of a dynamic array f32\[<=4,4\]"
    ):
        lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 1), "SAME")


def test_pooling_of_dynamic_batches() -> None:
    values = np.arange(2 * 4 * 1, dtype=np.float32).reshape(2, 4, 1)
    x = lax.set_dimension_size(values, late(1), 0)
    np.testing.assert_array_equal(np.asarray(lax.max_pool(x, (2,), (2,), "SAME")), values[:1, 1::2])
    mean = lax.avg_pool(x, (2,), (2,), "SAME", count_include_pad=False)
    np.testing.assert_array_equal(np.asarray(mean), (values[:1, ::2] + values[:1, 1::2]) / 2)


def test_means_of_windows_without_padding_see_static_sizes() -> None:
    x = lax.set_dimension_size(np.ones((2, 4, 1), np.float32), late(3), 1)
    with pytest.raises(ShapeError, match=r"avg_pool without padding of a dynamic array f32\[2,<=4,1\]"):
        lax.avg_pool(x, (2,), padding=[(0, 1)], count_include_pad=False)
    with pytest.raises(ShapeError, match="avg_pool with padding 'SAME' of a dynamic array"):
        lax.avg_pool(x, (2,), (2,), "SAME")
