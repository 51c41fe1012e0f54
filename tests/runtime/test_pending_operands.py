"""Operands that are evaluated because an op on small arrays, a write or a mask is computed with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import xarr

pytestmark = pytest.mark.usefixtures("on_numpy", "eager")


@pytest.fixture
def eager() -> Iterator[None]:
    """Whatever the run is about: with compiled groups alone nothing is computed at once."""
    with xarr.config(fusion="auto", small_arrays="eager"):
        yield


def test_what_is_computed_with_a_power_of_constants_is_computed_at_once() -> None:
    x, y = xarr.asarray([1.0, 2.0, 3.0]), 2.0 ** xarr.arange(3)
    assert (x * y).is_evaluated and np.asarray(x * y).tolist() == [1.0, 4.0, 12.0]
    row = xarr.ones(1)
    for _ in range(12):
        row = xarr.concatenate([xarr.ones(1), row[:-1] + row[1:], xarr.ones(1)])
    assert (row + 1).is_evaluated and row[6] == 924


def test_what_hangs_on_other_ops_stays_recorded() -> None:
    x = xarr.asarray([1.0, 2.0, 3.0])
    looped = xarr.lax.fori_loop(0, 3, lambda k, carry: carry * 2, x)
    for _ in range(5):
        looped = looped + x
        assert not looped.is_evaluated
    assert np.asarray(looped).tolist() == [13.0, 26.0, 39.0]


def test_large_arrays_are_written_to_in_memory() -> None:
    x = xarr.zeros((300, 200))
    x[3] = 1.0
    assert x.is_evaluated
    y = x * 2.0
    y[:, 1] = x[:, 0] + 5.0
    assert y.is_evaluated and x[3, 1] == 1.0
    assert np.asarray(y[3, :3]).tolist() == [2.0, 6.0, 2.0]
    kept = y[y[:, 1] > 5.5]
    assert kept.is_evaluated and kept.shape == (1, 200)
    assert y[:, 1].is_evaluated


def test_a_small_part_of_a_large_array_of_constants_does_not_keep_a_write_recorded() -> None:
    x, i = xarr.full((1000, 300), -1.0), xarr.arange(5)
    part = x[i, i] + 1.0
    total = part * xarr.asarray(np.ones(5))  # looks whether `part` is computed at once, which it is not
    assert not total.is_evaluated
    x[i, i + 1] = part
    assert x.is_evaluated and (x[i, i + 1] * 2.0).is_evaluated
    assert np.asarray(x[1, :4]).tolist() == [-1.0, -1.0, 0.0, -1.0]
    assert np.asarray(total).tolist() == [0.0] * 5


@pytest.mark.implicit
def test_what_hangs_on_a_larger_array_is_evaluated_when_it_is_computed_with() -> None:
    x = xarr.asarray(np.ones((300, 200))).evaluate()
    total = (x * x).sum()
    assert not total.is_evaluated and (total + 1.0).is_evaluated and total.is_evaluated
    several = ((x - 3.0) ** 2 * x).sum()  # which is left to be fused
    assert not (several + 1.0).is_evaluated
    sums = (x * x).sum(axis=0)
    beside = x / sums
    assert not beside.is_evaluated and not sums.is_evaluated
    assert float(several) == 300 * 200 * 4 and float(beside[0, 0]) == 1 / 300


def test_a_small_product_of_large_arrays_is_computed_at_once() -> None:
    rng = np.random.default_rng(0)
    host, row = rng.normal(size=(256, 256)), rng.normal(size=(1, 256))
    for dtype in ("float64", "complex128"):
        a, x = xarr.asarray(host.astype(dtype)).evaluate(), xarr.asarray(row.astype(dtype)).evaluate()
        for _ in range(6):
            product = x @ a
            assert product.is_evaluated
            np.testing.assert_allclose(np.asarray(product), row @ host, rtol=1e-12)
            assert not (a @ a).is_evaluated
    assert not ((a * 2) @ x.T).is_evaluated, "what is to be computed may be fused"
    ints = xarr.asarray(np.ones((300, 300), np.int64)).evaluate()
    assert not (ints[0] @ ints).is_evaluated, "no BLAS multiplies these"


def test_a_large_constant_is_evaluated_for_a_small_product() -> None:
    weights = xarr.sin(xarr.arange(65_536.0)).reshape(256, 256) * 0.5
    state = xarr.ones((1, 256))
    assert not weights.is_evaluated
    for _ in range(6):
        state = xarr.tanh(state @ weights)
        assert state.is_evaluated and weights.is_evaluated
