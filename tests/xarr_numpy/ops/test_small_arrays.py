"""Shorter ways for small arrays give the bits of the longer ones: running sums, extremes, arguments, products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xarr.ir.windows import Window
from xarr_numpy.functions import floating_point
from xarr_numpy.ops import contraction, reductions, windows

RNG = np.random.default_rng(0)
SPECIAL = (0.0, -0.0, np.nan, np.inf, -np.inf, 1e-3)


def draw(shape: tuple[int, ...], dtype: Any = np.float64, part: float = 0.5) -> np.ndarray[Any, Any]:
    values = RNG.normal(size=shape) * 3
    if np.dtype(dtype).kind in "fc":
        values = np.where(RNG.random(shape) < part, RNG.choice(SPECIAL, shape), values)
    return values.astype(dtype)


@pytest.fixture(autouse=True)
def silent() -> Any:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, np.complex128, np.int8, np.uint32, bool]
)
@pytest.mark.parametrize("axis", [0, 1])
def test_running_reductions(dtype: Any, axis: int) -> None:
    for _ in range(20):
        x = draw((5, 7), dtype, 0.2)
        size = x.shape[axis]
        sizes, padding = [1, 1], [(0, 0), (0, 0)]
        sizes[axis], padding[axis] = size, (size - 1, 0)
        window = Window.of(sizes, padding=padding)
        for ufunc in (np.bitwise_or,) if dtype is bool else (np.add, np.multiply):
            start = np.dtype(dtype).type(ufunc.identity)
            assert windows._prefix_axis(window, x.shape) == axis
            made = windows.reduce_window_ufunc(ufunc, x, start, window)
            wanted = windows._in_order(ufunc, x, start, window)
            assert made.tobytes() == wanted.tobytes() and made.dtype == wanted.dtype
    assert windows._prefix_axis(Window.of([5, 7], padding=[(4, 0), (6, 0)]), (5, 7)) is None
    assert windows._prefix_axis(Window.of([5, 1], padding=[(4, 1), (0, 0)]), (5, 7)) is None


def test_extremes_have_the_zero_that_wins() -> None:
    for shape in ((), (1,), (6,), (2000,)):
        for _ in range(100):
            x, y = draw(shape, part=0.9), draw(shape, part=0.9)
            for function, is_largest in ((floating_point.maximum, True), (floating_point.minimum, False)):
                made = np.asarray(function(x, y))
                both = (x == 0) & (y == 0)
                sign = np.signbit(x) & np.signbit(y) if is_largest else np.signbit(x) | np.signbit(y)
                assert (np.signbit(made) == sign)[both].all()
                wanted = (np.maximum if is_largest else np.minimum)(x, y)
                np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.uint64])
@pytest.mark.parametrize("shape", [(6,), (3, 4)], ids=str)
def test_arguments_of_extremes(dtype: Any, shape: tuple[int, ...]) -> None:
    def refuse(*values: Any) -> Any:
        raise AssertionError("combined")

    kind = np.dtype(dtype).kind
    for find in (np.argmax, np.argmin):
        ends = (-np.inf, np.inf) if kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        start = np.dtype(dtype).type(ends[find is np.argmin])
        for _ in range(20):
            x = draw(shape, dtype)
            for axis in range(x.ndim):
                values, indices = reductions.reduce_argument(
                    find, refuse, x, (start, np.int64(0)), axis, np.dtype(np.int64)
                )
                np.testing.assert_array_equal(indices, find(x, axis=axis))
                own = np.take_along_axis(x, np.expand_dims(indices, axis), axis).squeeze(axis)
                assert values.tobytes() == own.tobytes()
        with pytest.raises(AssertionError, match="combined"):
            reductions.reduce_argument(find, refuse, x, (start, np.int64(1)), 0, np.dtype(np.int64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_products_in_order(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = (
        ((4,), (4,), 0, 0),
        ((3, 4), (4,), 1, 0),
        ((4,), (4, 2), 0, 0),
        ((3, 4), (4, 2), 1, 0),
        ((2, 3, 4), (4,), 2, 0),
    )
    for first, second, left, right in cases:
        x, y = draw(first, dtype, 0.0), draw(second, dtype, 0.0)
        way = contraction.plan(first, second, ((), ()), ((left,), (right,)))
        made = contraction.dot_general(x, y, way, np.dtype(dtype))
        with monkeypatch.context() as patch:
            patch.setattr(contraction, "_are_in_order", lambda *_: False)
            wanted = contraction.dot_general(x, y, way, np.dtype(dtype))
        assert made.tobytes() == wanted.tobytes() and made.shape == wanted.shape
