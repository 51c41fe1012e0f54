"""Matrix products with dimensions in any order, in one thread and cut among several."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.ir.types import Ints
from xarr_numpy import blas, workers
from xarr_numpy.ops import contraction, convolution

Array = np.ndarray[Any, Any]
DTYPES = ("bool", "int8", "int64", "bfloat16", "float32", "float64", "complex64")


@st.composite
def products(draw: st.DrawFn) -> tuple[Ints, Ints, Any]:
    """Shapes, and dimension numbers as lax has them."""
    kinds = ["b/k/m/n", "bc/kl/mp/n", "/kl/m/np", "b//m/n", "bc/k//", "/k/m/n", "b/kl/mp/nq"]
    batch, contracted, *free = draw(st.sampled_from(kinds)).split("/")
    size = {letter: draw(st.sampled_from((0, 1, 2, 3, 5, 9))) for letter in "bcklmnpq"}
    left = draw(st.sampled_from(list(permutations(batch + contracted + free[0]))))
    right = draw(st.sampled_from(list(permutations(batch + contracted + free[1]))))

    def positions(letters: str) -> tuple[Ints, Ints]:
        return tuple(map(left.index, letters)), tuple(map(right.index, letters))

    shapes = [tuple(size[letter] for letter in side) for side in (left, right)]
    return shapes[0], shapes[1], (positions(contracted), positions(batch))


def whole_numbers(seed: int, shape: Ints, dtype: str) -> Array:
    """Few and small, so that sums are exact."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.dtype(dtype))


def product(left: Array, right: Array, numbers: Any) -> Any:
    return lax.dot_general(xarr.asarray(left), xarr.asarray(right), numbers)


def assert_equal_sums(result: Array, reference: xarr.Array) -> None:
    """Compare the values, with 0.0 for -0.0: a sum of -0.0 is either, as a BLAS begins it with its first product or
    with 0.0, and OpenBLAS and XLA do one or the other by the processor and the shapes."""
    wanted, zero = np.asarray(reference), np.zeros((), result.dtype)
    assert_same(result + zero, wanted + zero)


def test_sums_differ_in_no_more_than_the_sign_of_zero() -> None:
    assert_equal_sums(np.array([-0.0, 1.0]), xarr.asarray([0.0, 1.0]))
    with pytest.raises(AssertionError):
        assert_equal_sums(np.array([5e-324, 1.0]), xarr.asarray([0.0, 1.0]))


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
@settings(max_examples=50, deadline=None)
@given(products(), st.sampled_from(DTYPES), st.integers(0, 2**32))
def test_products_are_those_of_the_reference(shared: bool, case: Any, dtype: str, seed: int) -> None:
    left_shape, right_shape, numbers = case
    left, right = whole_numbers(seed, left_shape, dtype), whole_numbers(seed + 1, right_shape, dtype)
    with pytest.MonkeyPatch.context() as patch:
        if shared:
            patch.setattr(workers, "WORTH_A_THREAD", 0)
            patch.setattr(workers, "count", lambda: 2)
        result = np.asarray(product(left, right, numbers))
    with xarr.use_backend("reference"):
        assert_equal_sums(result, product(left, right, numbers))


def test_infinities_do_not_warn_in_other_threads(monkeypatch: pytest.MonkeyPatch, recwarn: Any) -> None:
    monkeypatch.setattr(workers, "WORTH_A_THREAD", 0)
    x = np.full((64, 4, 4), np.inf, np.float32)
    result = np.asarray(product(x, np.zeros_like(x), (((2,), (1,)), ((0,), (0,)))))
    assert np.isnan(result).all() and not recwarn.list


def test_blas_has_its_threads_again_after_sharing() -> None:
    functions = blas._functions()
    if functions is None:
        pytest.skip("NumPy brings a BLAS whose threads cannot be counted")
    _, count = functions
    before = count()
    seen = []

    def work(start: int, stop: int) -> None:
        seen.append((count(), stop - start))
        if start:
            raise KeyError(start)

    with pytest.raises(KeyError):
        blas.share(work, 1000, 2**20)
    assert {threads for threads, _ in seen} == {1}
    assert count() == before


@pytest.fixture
def two_threads() -> Iterator[Callable[[], int]]:
    """BLAS with two threads; how to ask for their number."""
    functions = blas._functions()
    if functions is None:
        pytest.skip("NumPy's BLAS has no function for the number of its threads")
    set_threads, get_threads = functions
    before = get_threads()
    set_threads(2)
    yield get_threads
    set_threads(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_a_process_forked_while_blas_is_held_has_its_threads(two_threads: Callable[[], int]) -> None:
    held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with blas.one_thread():
            held.set()
            forked.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    child = os.fork()
    if child == 0:  # pragma: no cover
        counts = [two_threads()]
        with blas.one_thread():
            counts.append(two_threads())
        counts.append(two_threads())
        os._exit(0 if counts == [2, 1, 2] else 1)
    _, status = os.waitpid(child, 0)
    held_here = two_threads()
    forked.set()
    holder.join(60)
    assert os.waitstatus_to_exitcode(status) == 0
    assert (held_here, two_threads()) == (1, 2)


def test_operands_that_blas_takes_are_not_copied() -> None:
    swapped = contraction.plan((4, 5, 6), (4, 7, 6), ((0,), (0,)), ((2,), (2,)))
    left, right = np.zeros((4, 5, 6)), np.zeros((4, 7, 6))
    assert np.shares_memory(swapped.left.matrices(left.transpose(swapped.left.axes), 1), left)
    result = swapped.right.matrices(right.transpose(swapped.right.axes), 1)
    assert result.shape == (4, 6, 7) and np.shares_memory(result, right)


def test_contracted_dimensions_are_taken_in_the_order_that_copies_least() -> None:
    """The rows of the second operand lie together in its own order, those of the first in neither."""
    way = contraction.plan((48, 32, 64, 16), (80, 16, 32, 48), ((1,), (2,)), ((0, 3), (3, 1)))
    assert way.right.axes == (2, 0, 1, 3) and way.right.swapped
    assert way.left.axes[-1] != 0


@pytest.mark.thorough
@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("NHWC", "OIHW", "NCHW")]),
    st.sampled_from(("int8", "int64", "bfloat16", "float32", "complex64")),
    st.sampled_from((1, 2, 3)),
    st.tuples(*[st.integers(1, 2)] * 3),
    st.integers(0, 2**32),
)
def test_convolutions_in_shared_blocks_are_those_of_the_reference(
    names: Any, dtype: str, groups: int, steps: tuple[int, int, int], seed: int
) -> None:
    stride, holes, padding = steps
    size = {"N": 2, "H": 7, "W": 6, "C": 2 * groups, "O": 3 * groups, "I": 2}
    left = whole_numbers(seed, tuple(size[letter] for letter in names[0]), dtype)
    size |= {"H": 3, "W": 2}
    right = whole_numbers(seed + 1, tuple(size[letter] for letter in names[1]), dtype)

    def convolve() -> Any:
        pads = ((padding, 1), (0, padding))
        x, k = xarr.asarray(left), xarr.asarray(right)
        return lax.conv_general_dilated(
            x, k, (stride, 1), pads, None, (1, holes), names, feature_group_count=groups
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "WORTH_A_THREAD", 0)
        patch.setattr(workers, "count", lambda: 2)
        patch.setattr(convolution, "_BLOCK", 512)
        result = np.asarray(convolve())
    with xarr.use_backend("reference"):
        assert_equal_sums(result, convolve())
