"""Reads by arrays of integers and bools, against NumPy over random shapes and indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.draws.indices import Index, count_up, indices
from xarr import lax
from xarr.errors import (
    BroadcastError,
    IndexingError,
    ShapeError,
    TracedValueError,
)

pytestmark = pytest.mark.implicit

HostArray = np.ndarray[Any, Any]
fuzzed, seldom = fuzz.examples(60), fuzz.examples(20)


def read(x: Any, index: Any) -> Any:
    """x[index], or IndexError if it or a look at it raises one."""
    try:
        return np.asarray(x[index])
    except IndexError:
        return IndexError


def index_of(host: Any, own: Any = None) -> Index:
    return Index((3, 4, 5), host, host if own is None else own)


@fuzzed
@given(indices())
@example(index_of((slice(None), [0, 1], slice(None))))
@example(index_of(([0, 1], slice(None), [0, 1])))
@example(index_of((0, slice(None), [0, 1])))
@example(index_of((slice(None), 0, [0, 1])))
@example(index_of((slice(None), [[0], [1]], [0, 1, 2])))
@example(index_of(([0, 1], None, [0, 1])))
@example(index_of((..., None, [0, 1], slice(None, None, -2))))
@example(index_of((np.ones((3, 4), bool), [1])))
@example(index_of((True, [0, 2])))
@example(index_of((False, 1)))
@example(index_of((slice(None), True, 1)))
@example(index_of(([0, 1], 0, ..., [0, 1])))
@example(index_of([]))
@example(index_of(([],)))
@example(index_of(([[0, 1], [2, 0]],)))
def test_reading(index: Index) -> None:
    x = count_up(index.shape)
    wanted = read(x, index.host)
    a = xarr.asarray(x)
    result = read(a, index.own)
    if wanted is IndexError:
        assert result is IndexError
    else:
        assert_same(result, wanted)
        assert_same(a.at[index.own].get(), wanted)
    assert_same(a, x)


@fuzzed
@given(indices(beyond=2))
@example(index_of(([], [[9]])))
@example(index_of(([], 9)))
@example(index_of((np.zeros(3, bool), [9])))
@example(index_of((False, ..., np.array(9))))
def test_reading_out_of_bounds(index: Index) -> None:
    x = count_up(index.shape)
    wanted, result = read(x, index.host), read(xarr.asarray(x), index.own)
    if wanted is IndexError:
        assert result is IndexError
    else:
        assert_same(result, wanted)


@seldom
@given(indices(masks=False, lists=False))
def test_reading_in_a_traced_function(index: Index) -> None:
    x = count_up(index.shape)
    wanted = read(x, index.host)
    if wanted is not IndexError:
        items = index.own if isinstance(index.own, tuple) else (index.own,)
        positions = [k for k, item in enumerate(items) if isinstance(item, np.ndarray | xarr.Array)]

        def function(array: Any, *arrays: Any) -> Any:
            new = dict(zip(positions, arrays, strict=True))
            return array[tuple(new.get(k, item) for k, item in enumerate(items))]

        arrays = [xarr.asarray(items[k]) for k in positions]
        assert_same(xarr.jit(function)(xarr.asarray(x), *arrays), wanted)


@seldom
@given(indices())
def test_reading_on_the_reference_backend(index: Index) -> None:
    x = count_up(index.shape, "float32")
    wanted = read(x, index.host)
    if wanted is not IndexError:
        with xarr.use_backend("reference"):
            items = index.own if isinstance(index.own, tuple) else (index.own,)
            own = tuple(xarr.asarray(np.asarray(i)) if isinstance(i, xarr.Array) else i for i in items)
            assert_same(xarr.asarray(x)[own], wanted)


@pytest.mark.parametrize("dtype", ["bool", "uint16", "float16", "bfloat16", "float8_e5m2", "complex64"])
def test_elements_of_every_kind_keep_their_bits(dtype: str) -> None:
    x = np.array([0, 1, 2, 0, 5, 6]).astype(xarr.asarray([0]).astype(dtype).dtype)
    for index in ([5, 0, -1], np.array([True, False] * 3)):
        assert_same(xarr.asarray(x)[index], x[index])


def test_bounds_of_slices_beside_arrays() -> None:
    x, a = count_up((3, 4)), xarr.asarray(count_up((3, 4)))
    for one in (1, np.int8(1), xarr.asarray(1), True):
        assert_same(a[one:, [0, 2]], x[int(one) :, [0, 2]])
    for bad in (1.0, "1", np.float64(1)):
        with pytest.raises(IndexingError, match="wanted ints or None in a slice"):
            a[bad:, [0, 2]]


def test_a_later_change_of_the_users_index_is_not_seen() -> None:
    indices, mask = np.array([0, 1]), np.array([True, False, True])
    a = xarr.asarray([10, 20, 30])
    first, second = a[indices], a[mask]
    indices[:], mask[:] = 2, False
    assert first.tolist() == [10, 20]
    assert second.tolist() == [10, 30]


# --- what the graph holds ------------------------------------------------------------------------------------


def text(function: Any, *arguments: Any) -> str:
    return str(xarr.lower(function, *arguments).stage("traced"))


def test_known_indices_become_one_gather() -> None:
    shown = text(lambda x: x[np.array([0, -1, 2])], xarr.zeros((3, 4)))
    assert shown.count('"stablehlo.gather"') == 1
    assert "custom_call" not in shown


def test_an_index_without_dimensions_is_a_dynamic_slice() -> None:
    shown = text(lambda x, i: x[:, i], xarr.zeros((3, 4)), xarr.asarray(1))
    assert "stablehlo.dynamic_slice" in shown
    assert "gather" not in shown


def test_unknown_indices_are_checked_by_a_call_that_is_read_back() -> None:
    shown = text(lambda x, i: x[i], xarr.zeros((3, 4)), xarr.asarray([1, 2]))
    assert "stablehlo.custom_call @xarr.checked_indices" in shown
    assert "axis = 0 : i64, size = 3 : i64" in shown
    assert str(xarr.stablehlo.parse(shown).main) == shown


def test_no_operation_broadcasts_implicitly() -> None:
    def function(x: Any, i: Any, j: Any) -> Any:
        return x[i, :, j]

    graph = xarr.lower(
        function, xarr.zeros((3, 4, 5)), xarr.asarray([[0], [1]]), xarr.asarray([0, 1, 2])
    ).graph
    graph.verify()
    assert graph.results[0].shape == (2, 3, 4)


def test_explicit_mode_refuses_index_arrays_of_different_shapes() -> None:
    a = xarr.asarray(count_up((3, 4)))
    with xarr.config(broadcasting="explicit"):
        assert_same(a[[0, 1], [2, 3]], count_up((3, 4))[[0, 1], [2, 3]])
        assert_same(a[[0, 1], 2], count_up((3, 4))[[0, 1], 2])
        with pytest.raises(BroadcastError):
            a[[[0], [1]], [2, 3]]


# --- errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ([0, 3], "index 3 is out of bounds for axis 0 with size 3"),
        ((slice(None), [-5]), "index -5 is out of bounds for axis 1 with size 4"),
        (np.array([2**63], np.uint64), f"index {2**63} is out of bounds for axis 0 with size 3"),
        (([0], [1], [2]), r"too many indices: 3 for an array of shape \(3, 4\), which takes 2"),
        (np.ones((3, 4, 1), bool), "too many indices: 3"),
        ([True, False], "wanted a boolean mask of 3 elements for dimension 0 .* got 2"),
        (
            np.ones((4, 3), bool),
            r"wanted a boolean mask of shape \(3, 4\) for dimensions 0 to 1 .* got \(4, 3\)",
        ),
        (([0, 1], [0, 1, 2]), r"shapes \(2,\) and \(3,\) do not; xarr.ix_"),
        (np.array([0.0, 1.0]), r"array or list of ints or bools as index.*\.astype\(int\)"),
        ([0.5], "array or list of ints or bools as index"),
        (xarr.asarray([1.5]), r"got float64\[1\]"),
        ([[0, 1], [2]], r"wanted an array of ints or bools as index, got \[\["),
        (["a"], "wanted an array of ints or bools"),
        ([slice(None)], "wanted an array of ints or bools"),
    ],
    ids=repr,
)
def test_bad_index_arrays(index: Any, text: str) -> None:
    a = xarr.asarray(count_up((3, 4)))
    for use in (lambda: a[index], lambda: a.at[index].get(), lambda: a.at[index].set(0)):
        with pytest.raises(IndexError, match=text) as caught:
            use()
        assert isinstance(caught.value, IndexingError)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_a_bad_index_without_a_value_is_found_when_it_gets_one(backend: str) -> None:
    with xarr.use_backend(backend):
        a, indices = xarr.asarray(count_up((3, 4))), xarr.asarray([0, 1]) + 2
        result = a[indices]
        with pytest.raises(IndexingError, match="index 3 is out of bounds for axis 0 with size 3") as caught:
            result.evaluate()
        assert any("result = a[indices]" in note for note in caught.value.__notes__)
        with pytest.raises(IndexingError, match="index -4 is out of bounds"):
            (a[indices - 6] + 1).evaluate()
        assert_same(a[indices - 2], count_up((3, 4))[:2])


def test_a_bad_index_in_a_jitted_function() -> None:
    take = xarr.jit(lambda x, i: x[i] * 2)
    a = xarr.asarray(count_up((3,)))
    assert take(a, xarr.asarray([0, -3])).tolist() == [2, 2]
    with pytest.raises(IndexingError, match="index 3 is out of bounds for axis 0 with size 3"):
        np.asarray(take(a, xarr.asarray([0, 3])))
    with pytest.raises(IndexingError, match="index 7 is out of bounds"):
        np.asarray(take(a, xarr.asarray(7)))


def test_indices_that_are_broadcast_away() -> None:
    a, nine = xarr.asarray(count_up((3, 4))), xarr.asarray([9]) + 0
    assert a[[], nine].shape == (0,)
    assert a[[], [[9]]].shape == (1, 0)
    with pytest.raises(IndexingError, match="index 9 is out of bounds for axis 1"):
        np.asarray(a[[], nine[0]])


def test_no_index_is_in_bounds_of_nothing() -> None:
    empty = xarr.zeros((0, 2))
    for index in ([0], xarr.asarray([0]) + 0):
        with pytest.raises(IndexingError, match="no index is in bounds for axis 0 with size 0"):
            empty[index]
    assert empty[[]].shape == (0, 2)


def test_the_mask_of_a_traced_function_has_no_count() -> None:
    with pytest.raises(
        TracedValueError, match=r"xarr.where\(mask, x, other\)(.|\n)*It was asked for at .*test_advanced"
    ):
        xarr.jit(lambda x: x[x > 0])(xarr.asarray([1.0, -1.0]))


def test_a_known_mask_in_a_traced_function() -> None:
    mask = np.array([True, False, True])
    result = xarr.jit(lambda x: x[mask])(xarr.asarray([1.0, 2.0, 3.0]))
    assert result.tolist() == [1.0, 3.0]


def test_a_dynamic_array_is_no_index() -> None:
    with pytest.raises(ShapeError, match="indices that are of a dynamic array"):
        xarr.lower(lambda i: xarr.zeros((3,))[i], "s32[<=4]")


#: Uses of an index that is out of bounds, of an array of five elements.
_BEYOND: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "elements": (lambda x, i: x[i], [9]),
    "elements before the first": (lambda x, i: x[i], [-6]),
    "one element": (lambda x, i: x[i][None], 9),
    "written elements": (lambda x, i: x.at[i].set(1)[:1], [2, 9]),
    "one written element": (lambda x, i: x.at[i].set(1)[:1], 9),
    "taken elements": (lambda x, i: xarr.take(x, i), [9]),
}


@pytest.mark.parametrize("name", _BEYOND)
@pytest.mark.parametrize("is_jitted", [False, True])
def test_only_the_branch_that_is_taken_raises(name: str, is_jitted: bool) -> None:
    """Known indices out of bounds are an error where they are used, in a function that is compiled or not."""
    use, values = _BEYOND[name]
    x, index = xarr.arange(5), xarr.asarray(values).evaluate()

    def choose(number: Any) -> Any:
        return lax.switch(number, [lambda: use(x, index), lambda: x[3:4]])

    def step(number: Any) -> Any:
        return lax.while_loop(
            lambda state: state[0] < 0, lambda state: (state[0] + 1, use(x, index)), (number, x[3:4])
        )[1]

    for function, using in ((choose, 0), (step, -1)):
        run = xarr.jit(function) if is_jitted else function
        assert np.asarray(run(xarr.asarray(1))).tolist() == [3]
        with pytest.raises(IndexingError, match="out of bounds for axis 0 with size 5"):
            np.asarray(run(xarr.asarray(using)))


@pytest.mark.parametrize("size", [4, 300_000])
def test_integers_in_a_list_that_no_index_holds_are_refused(size: int) -> None:
    x = xarr.zeros(size) + xarr.asarray(1.0).evaluate()
    for wrong in (2**63, -(2**70)):
        for index in ([0, wrong], ([0, wrong],)):
            with pytest.raises(IndexError):
                x.evaluate()[index]
            with pytest.raises(IndexError):
                x[index] = 2.0
