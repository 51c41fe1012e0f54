"""NumPy's order of elements where there are NaNs: complex numbers sorted and searched, edges of bins."""

import numpy as np
import pytest

import xarr
from tests.support.functions import expression, same
from xarr.errors import ValueRangeError

_PARTS = (np.nan, 1, 0, -np.inf, np.inf, -3)
#: Each pair of parts several times, so that equal elements show whether they keep their order.
VALUES = np.array([complex(real, imag) for real in _PARTS for imag in _PARTS])
VALUES = np.concatenate([VALUES[::3], VALUES, VALUES[::-1]])

CALLS = [
    "xp.sort(x, stable=True)",
    "xp.argsort(x, stable=True)",
    "xp.searchsorted(xp.sort(x), x)",
    "xp.searchsorted(xp.sort(x), x, side='right')",
    "xp.lexsort((x, x.imag))",
    "xp.lexsort((x.real, x))",
    "xp.sort(xp.reshape(x[:72], (9, 8)), axis=0)",
    "xp.partition(x, 40)[40]",
    "xp.sort_complex(x)",
    "xp.nanmedian(x[xp.isfinite(x) | xp.isnan(x)])",
    "xp.unique(x, equal_nan=False)",
    "xp.unique(x[~xp.isnan(x)])",
    "xp.unique(x, return_index=True, return_inverse=True, return_counts=True)",
    "xp.unique(xp.reshape(x[:72], (36, 2)), axis=0, return_index=True)",
    "xp.isin(x, x[1::2])",
    "xp.unique_all(x)",
]


@pytest.mark.parametrize("text", CALLS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_with_nan(text, dtype):
    """Without NaN, then NaN as imaginary part, as real part, as both: NumPy documents this at `sort`."""
    call, values = expression(text), VALUES.astype(dtype)
    wanted, results = call(np, values), call(xarr, xarr.asarray(values))
    if not isinstance(wanted, tuple):
        wanted, results = (wanted,), (results,)
    for one, other in zip(results, wanted, strict=True):
        same(one, other)


def test_complex_numbers_with_nan_in_a_traced_function():
    distinct = np.unique(VALUES, return_index=True)[0]
    same(xarr.jit(lambda x: xarr.unique(x, size=distinct.size))(VALUES), distinct)
    same(xarr.jit(xarr.sort)(VALUES), np.sort(VALUES))
    rows = VALUES[:72].reshape(36, 2)
    slices = np.unique(rows, axis=0)
    same(xarr.jit(lambda x: xarr.unique(x, axis=0, size=len(slices)))(rows), slices)


def test_the_order_backwards_is_the_descending_one():
    same(xarr.sort(VALUES, descending=True), np.sort(VALUES)[::-1])


def test_one_nan_is_left_of_all():
    values = xarr.unique(VALUES)
    assert values.shape == np.unique(VALUES).shape
    assert np.isnan(np.asarray(values)).tolist() == [False] * (values.size - 1) + [True]


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(
    "bins",
    [
        [np.nan, 3, 2, 1],
        [np.nan, np.nan, 3, 1],
        [np.nan, np.nan],
        [1, 2, np.nan],
        [1, 1, 2],
        [2, 2],
        [2, 2, 1],
        [np.nan],
    ],
    ids=str,
)
def test_bins_with_nan(bins, right):
    values, edges = np.array([1.0, np.nan, 5, -np.inf, np.inf, 2, 3]), np.array(bins, "float64")
    wanted = np.digitize(values, edges, right)
    same(xarr.digitize(values, edges, right), wanted)
    traced = xarr.jit(lambda values, edges: xarr.digitize(values, edges, right))
    same(traced(values, edges), wanted)


def test_bins_that_start_with_nan_and_rise_are_refused():
    with pytest.raises(ValueRangeError, match="increasing or decreasing"):
        xarr.digitize([1.0], [np.nan, 1, 2])
