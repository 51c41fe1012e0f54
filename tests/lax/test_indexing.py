"""Gather, scatter and dynamic slices: the same calls as jax.lax, and what jax.lax has not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import lax as jlax

import xarr
from tests.compare import assert_same
from tests.programs import BACKENDS
from tests.xla import parse, run_stablehlo
from xarr import lax
from xarr.errors import DTypeError, IndexingError, InputError, ShapeError, ValueRangeError
from xarr.ir import ops
from xarr.ir.graph import Graph, parameter
from xarr.ir.types import TensorType
from xarr_numpy import engine
from xarr_numpy.ops.indexing import Groups

jax.config.update("jax_enable_x64", True)

ROWS = ((1,), (0,), (0,))
COLUMNS = ((0,), (1,), (1,))
WINDOWS = ((1,), (), (0,))
LEADING_WINDOWS = ((0,), (), (0,))
X = np.arange(12.0).reshape(4, 3)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    with xarr.use_backend(request.param):
        yield request.param


def same_as_jax(function: Callable[..., Any], *arguments: Any) -> None:
    """`function(lax, *arguments)` gives the same bits with xarr.lax and jax.lax."""
    expected = function(jlax, *arguments)
    assert_same(function(lax, *arguments), np.asarray(expected))


# --- gather ------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("mode", [None, "clip", "fill", "promise_in_bounds"], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "float64", "complex64"])
def test_gather_modes_as_jax(dtype: str, mode: str | None, backend: str) -> None:
    indices = np.array([[0], [-1], [3], [2], [1000]], np.int32)

    def rows(lax: Any, x: Any) -> Any:
        return lax.gather(x, indices, lax.GatherDimensionNumbers(*ROWS), (1, 3), mode=mode)

    def windows(lax: Any, x: Any) -> Any:
        numbers = lax.GatherDimensionNumbers((1, 2), (), (0,))
        return lax.gather(x, indices, numbers, (2, 2), mode=mode)

    for function in (rows, windows):
        same_as_jax(function, X.astype(np.dtype(dtype)))


@pytest.mark.parametrize("fill", [-7.5, float("inf"), 0])
def test_fill_value(fill: float, backend: str) -> None:
    same_as_jax(
        lambda lax: lax.gather(X, [[1], [9]] if lax is not jlax else np.array([[1], [9]]),
                               lax.GatherDimensionNumbers(*ROWS), (1, 3), mode="fill", fill_value=fill)
    )  # fmt: skip


def test_numbers_of_jax_are_understood() -> None:
    numbers = jlax.GatherDimensionNumbers(*ROWS)
    assert_same(lax.gather(X, [[2]], numbers, (1, 3)), X[2:3])


@pytest.mark.parametrize("dtype", ["uint64", "int64", "uint8", "int8"])
def test_extreme_indices_are_clamped_as_numbers(dtype: str, backend: str) -> None:
    limits = np.iinfo(dtype)
    indices, x = np.array([[limits.min], [limits.max], [1]], dtype), np.arange(300)
    inside = [0, min(limits.max, 299), 1]
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    assert_same(lax.gather(x, indices, numbers, (1,)), x[inside])
    filled = lax.gather(x, indices, numbers, (1,), mode="fill", fill_value=-1)
    expected = [i if 0 <= int(i) < 300 else -1 for i in indices[:, 0].tolist()]
    assert_same(filled, np.array(expected))


@pytest.mark.parametrize("vector_dim", [0, 1, 2])
def test_index_vectors_in_any_dimension(vector_dim: int, backend: str) -> None:
    x = np.arange(60.0).reshape(3, 4, 5)
    vectors = np.random.default_rng(0).integers(0, 3, (2, 3, 2))
    numbers = lax.GatherDimensionNumbers((1,), (0, 1), (1, 0))
    result = lax.gather(
        x, np.moveaxis(vectors, 2, vector_dim), numbers, (1, 1, 5), index_vector_dim=vector_dim
    )
    assert_same(result, np.moveaxis(x[vectors[..., 1], vectors[..., 0]], 2, 1))


def test_window_without_elements_reads_as_zero(backend: str) -> None:
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    assert_same(lax.gather(X, [[0], [2]], numbers, (0, 3)), np.zeros((2, 3)))


def test_operand_of_rank_0(backend: str) -> None:
    numbers = lax.GatherDimensionNumbers((), (), ())
    result = lax.gather(np.float32(3), np.zeros((2, 0), int), numbers, ())
    assert_same(result, np.full(2, 3, np.float32))


# --- scatter -----------------------------------------------------------------------------------------

SCATTERS = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]


@pytest.mark.sampled
@pytest.mark.parametrize("mode", [None, "clip", "drop", "promise_in_bounds"], ids=str)
@pytest.mark.parametrize("name", SCATTERS)
def test_scatters_as_jax(name: str, mode: str | None, backend: str) -> None:
    """Duplicates, windows out of bounds in part and as a whole, NaN, and windows that overlap."""
    indices = np.array([[0], [3], [-1], [0], [2], [3], [1]])
    updates = np.random.default_rng(1).normal(size=(7, 3))
    updates[3, 1] = np.nan

    def apply(numbers: tuple[Any, ...], u: Any) -> Callable[[Any], Any]:
        return lambda lax: getattr(lax, name)(X, indices, u, lax.ScatterDimensionNumbers(*numbers), mode=mode)

    same_as_jax(apply(ROWS, updates))
    same_as_jax(apply(((1, 2), (), (0,)), np.stack([updates, -updates], 1)))
    same_as_jax(apply(((0, 1), (), (0,)), np.stack([updates.T[:2], -updates.T[:2]], 1)))
    same_as_jax(apply(COLUMNS, np.repeat(updates[:, :1], 4, 1).T))


ELEMENTS = ["bool", "int8", "uint64", "float16", "bfloat16", "complex64"]


@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_max"])
@pytest.mark.parametrize("dtype", ELEMENTS)
def test_scatter_combines_in_the_element_type(dtype: str, name: str, backend: str) -> None:
    """Three hundred updates of five elements: sums differ unless each one is rounded."""
    values = np.random.default_rng(2).normal(size=300) * 3
    arguments = (
        values[:5].astype(np.dtype(dtype)),
        (np.arange(300) * 7 % 6)[:, None],
        values.astype(np.dtype(dtype)),
    )
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))

    def function(x: Any, i: Any, u: Any) -> Any:
        return getattr(lax, name)(x, i, u, numbers)

    (expected,) = run_stablehlo(xarr.lower(function, *arguments).graph.to_text(), *arguments)
    assert_same(function(*arguments), expected)


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_scatter_mul_combines_in_the_element_type(dtype: str, backend: str) -> None:
    values = (np.random.default_rng(2).normal(size=12) * 2).astype(np.dtype(dtype))
    arguments = values[:5], (np.arange(12) * 7 % 6)[:, None], values
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))

    def function(x: Any, i: Any, u: Any) -> Any:
        return lax.scatter_mul(x, i, u, numbers)

    (expected,) = run_stablehlo(xarr.lower(function, *arguments).graph.to_text(), *arguments)
    # XLA contracts the products and sums of complex numbers.
    assert_same(function(*arguments), expected, ulp=8 if dtype == "complex64" else 0, normwise=True)


@pytest.mark.parametrize("name", ["scatter_max", "scatter_min"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("width", [1, 2])
def test_extremes_of_zeros_and_nan(name: str, dtype: str, width: int, backend: str) -> None:
    """All ways in which 0.0, -0.0, NaN and a number can follow each other."""
    some = np.array([0.0, -0.0, np.nan, 1, -1])
    rows = np.array([(a, b, c) for a in some for b in some for c in some]).astype(np.dtype(dtype))
    x, updates = (np.repeat(part, width).reshape(-1, width) for part in (rows[:, 0], rows[:, 1:]))
    indices = np.repeat(np.arange(len(rows)), 2)[:, None]
    result = getattr(lax, name)(x, indices, updates, lax.ScatterDimensionNumbers(*ROWS))
    combine = lax.max if name == "scatter_max" else lax.min
    first, second, third = (np.repeat(column, width).reshape(-1, width) for column in rows.T)
    assert_same(result, np.asarray(combine(combine(first, second), third)))


def test_window_out_of_bounds_in_part_is_left_out(backend: str) -> None:
    numbers = lax.ScatterDimensionNumbers(*WINDOWS)
    result = lax.scatter(np.zeros(4), [[2], [3], [-1], [0]], np.arange(1.0, 9).reshape(4, 2), numbers)
    assert_same(result, np.array([7.0, 8, 1, 2]))


def test_windows_are_applied_one_after_the_other(backend: str) -> None:
    """Overlapping windows: of each element the last window stays, wherever the window dimension stands."""
    updates, indices = np.arange(1.0, 7).reshape(3, 2), np.array([[1], [0], [2]])
    expected = np.array([3.0, 4, 5, 6, 0])
    assert_same(lax.scatter(np.zeros(5), indices, updates, lax.ScatterDimensionNumbers(*WINDOWS)), expected)
    assert_same(
        lax.scatter(np.zeros(5), indices, updates.T, lax.ScatterDimensionNumbers(*LEADING_WINDOWS)), expected
    )
    same_as_jax(
        lambda lax: lax.scatter(
            np.zeros(5), indices, updates.T, lax.ScatterDimensionNumbers(*LEADING_WINDOWS)
        )
    )


def test_scatter_apply_as_jax(backend: str) -> None:
    indices = np.array([[1], [3], [1]])
    same_as_jax(
        lambda lax: lax.scatter_apply(
            X, indices, lambda a: a * 2 + 1, lax.ScatterDimensionNumbers(*ROWS), update_shape=(3, 3)
        )
    )
    numbers = lax.ScatterDimensionNumbers(*ROWS)
    result = lax.scatter_apply(X > 4, indices, lax.bitwise_not, numbers, update_shape=(3, 3))
    assert_same(result, np.stack([X[0] > 4, X[1] > 4, X[2] > 4, X[3] <= 4]))


def argmin_of_pairs(element: Any, update: Any) -> Any:
    """(least value, where it was) of both."""
    ahead = lax.lt(update[0], element[0])
    return lax.select(ahead, update[0], element[0]), lax.select(ahead, update[1], element[1])


def test_variadic_scatter(backend: str) -> None:
    values, indices = np.array([3.0, 1, 2, 1, 5]), np.arange(5)
    start = np.full(3, np.inf), np.full(3, -1)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    least, where = lax.scatter_with(
        start, [[0], [0], [2], [0], [7]], (values, indices), argmin_of_pairs, numbers
    )
    assert_same(least, np.array([1.0, np.inf, 2.0]))
    assert_same(where, np.array([1, -1, 2]))


def test_results_of_a_variadic_computation_may_be_swapped(backend: str) -> None:
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    arrays, updates = {"a": np.array([1.0]), "b": np.array([2.0])}, {"a": np.ones(3), "b": np.ones(3)}
    result = lax.scatter_with(
        arrays, [[0], [0], [0]], updates, lambda old, new: {"a": old["b"], "b": old["a"]}, numbers
    )
    assert_same(result["a"], np.array([2.0]))
    assert_same(result["b"], np.array([1.0]))


def test_windows_without_start_are_all_added_to_the_same_element(backend: str) -> None:
    """XLA's scatter simplifier applies only one of them."""
    result = lax.scatter_add(
        np.float64(1), np.zeros((3, 0), int), [1.0, 2, 4], lax.ScatterDimensionNumbers((), (), ())
    )
    assert_same(result, np.array(8.0))


@pytest.mark.parametrize("targets", [3, 500])
@pytest.mark.parametrize("width", [1, 8])
def test_many_duplicates(targets: int, width: int) -> None:
    """Deep and shallow duplicates take different ways, with the same bits as one update after the other."""
    random = np.random.default_rng(3)
    indices, updates = (
        random.integers(-1, targets, 5000),
        random.normal(size=(5000, width)).astype(np.float32),
    )
    x = random.normal(size=(targets, width)).astype(np.float32)
    sums, mixes = x.copy(), x.copy()
    for at, update in zip(indices, updates, strict=True):
        if at >= 0:
            sums[at] += update
            mixes[at] = mixes[at] * np.float32(0.5) + update
    numbers = lax.ScatterDimensionNumbers(*ROWS)
    with xarr.use_backend("numpy"):
        assert_same(lax.scatter_add(x, indices[:, None], updates, numbers), sums)
        mixed = lax.scatter_with(x, indices[:, None], updates, lambda a, b: a * 0.5 + b, numbers)
        assert_same(mixed, mixes)


ENGINES = ["off", *["compiled"] * engine.available()]


def half_and_more(element: Any, update: Any) -> Any:
    return lax.add(lax.mul(element, np.array(0.5).astype(element.dtype)), update)


def rotate_and_mix(element: Any, update: Any) -> Any:
    """Neither commutative nor associative, for integers."""
    turned = lax.bitwise_xor(lax.shift_left(element, element.dtype.type(3)), update)
    return lax.sub(turned, lax.shift_right_logical(element, element.dtype.type(5)))


def implies(element: Any, update: Any) -> Any:
    return lax.bitwise_or(lax.bitwise_not(element), update)


@pytest.mark.parametrize("fusion", ENGINES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "uint64", "bool", "complex64"])
@pytest.mark.parametrize("targets", [1, 3, 40])
def test_any_combination_goes_in_order(targets: int, dtype: str, fusion: str) -> None:
    """As the reference, also where one target gets all updates and where others get many or none."""
    random, kind = np.random.default_rng(targets), np.dtype(getattr(ml_dtypes, dtype, dtype))
    combine = implies if dtype == "bool" else rotate_and_mix if kind.kind in "iu" else half_and_more
    indices = np.minimum(random.zipf(1.5, (60, 1)), targets + 1) - 1
    for shape, names in (((), ((), (0,), (0,))), ((2,), ROWS)):
        x, updates = (
            (random.normal(size=(size, *shape)) * 20).astype(kind) for size in (targets, len(indices))
        )
        numbers = lax.ScatterDimensionNumbers(*names)
        with xarr.use_backend("reference"):
            wanted = np.asarray(lax.scatter_with(x, indices, updates, combine, numbers))
        with xarr.config(fusion=fusion), xarr.use_backend("numpy"):
            assert_same(lax.scatter_with(x, indices, updates, combine, numbers), wanted)


@pytest.mark.parametrize("fusion", ENGINES)
def test_any_combination_of_pairs_goes_in_order(fusion: str) -> None:
    random = np.random.default_rng(0)
    values, indices = random.integers(0, 9, 50).astype(np.float32), random.integers(-1, 4, (50, 1))
    start = np.full(3, np.inf, np.float32), np.full(3, -1)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))

    def swap(element: Any, update: Any) -> Any:
        return lax.add(update[0], lax.convert_element_type(element[1], np.float32)), lax.add(update[1], 1)

    for combine in (argmin_of_pairs, swap):
        with xarr.use_backend("reference"):
            wanted = lax.scatter_with(start, indices, (values, np.arange(50)), combine, numbers)
            wanted = [np.asarray(each) for each in wanted]
        with xarr.config(fusion=fusion), xarr.use_backend("numpy"):
            results = lax.scatter_with(start, indices, (values, np.arange(50)), combine, numbers)
            for mine, theirs in zip(results, wanted, strict=True):
                assert_same(mine, theirs)


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.skipif(not engine.available(), reason="needs llvmlite")
def test_many_updates_are_combined_by_a_compiled_loop() -> None:
    def text(count: int) -> str:
        numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        types = "f32[9]", f"s64[{count},1]", f"f32[{count}]"
        lowered = xarr.lower(lambda x, i, u: lax.scatter_with(x, i, u, half_and_more, numbers), *types)
        program: Any = lowered.stage("program")
        return str(program.text)

    with xarr.config(fusion="auto"):
        assert "scatter_any(f0," in text(100) and "scatter_any(c1," in text(100_000)


@pytest.mark.parametrize("bound", [9, 2**62])
def test_groups_of_updates(bound: int) -> None:
    """Also where target and index do not fit in one integer to sort."""
    groups = Groups(np.array([5, 2, 5, 7, 5, 2]), bound)
    assert groups.targets.tolist() == [5, 2, 7]
    assert groups.order.tolist() == [1, 5, 0, 2, 4, 3]
    assert groups.first.tolist() == [2, 0, 5]
    assert groups.rounds().tolist() == [3, 2, 1]


def test_operands_stay_as_they_were(backend: str) -> None:
    x = xarr.asarray(X).evaluate()
    numbers = lax.ScatterDimensionNumbers(*ROWS)
    for result in (
        lax.scatter_add(x, [[1]], np.ones((1, 3)), numbers),
        lax.scatter_with(x, [[1]], np.ones((1, 3)), lambda a, b: a * b - b, numbers),
        lax.scatter(x, [[1]], np.ones((1, 3)), numbers),
        lax.dynamic_update_slice(x, [[9.0]], (0, 0)),
    ):
        result.evaluate()
    assert_same(x, X)


# --- dynamic slices ----------------------------------------------------------------------------------

STARTS = [(0, 0), (1, 1), (3, 2), (-1, -1), (-9, 9), (100, -100)]


@pytest.mark.sampled
@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.parametrize("kind", [int, np.int32, np.int8])
def test_dynamic_slices_as_jax(start: tuple[int, int], kind: Any, backend: str) -> None:
    starts = tuple(kind(at) for at in start)
    same_as_jax(lambda lax: lax.dynamic_slice(X, starts, (2, 3)))
    same_as_jax(lambda lax: lax.dynamic_update_slice(X, np.full((2, 2), -1.0), starts))
    same_as_jax(lambda lax: lax.dynamic_slice(X, np.array(start), (0, 1)))


@pytest.mark.sampled
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("index", [0, 2, -1, 7, np.uint8(1), np.int64(-2)], ids=repr)
def test_dynamic_slices_in_one_dimension_as_jax(index: Any, axis: int, backend: str) -> None:
    same_as_jax(lambda lax: lax.dynamic_slice_in_dim(X, index, 2, axis))
    same_as_jax(lambda lax: lax.dynamic_index_in_dim(X, index, axis))
    same_as_jax(lambda lax: lax.dynamic_index_in_dim(X, index, axis, keepdims=False))
    part = np.full((2, 3) if not axis else (4, 2), -1.0)
    same_as_jax(lambda lax: lax.dynamic_update_slice_in_dim(X, part, index, axis))
    same_as_jax(lambda lax: lax.dynamic_update_index_in_dim(X, np.full(X.shape[1 - axis], 5.0), index, axis))


def test_narrow_start_of_a_long_dimension(backend: str) -> None:
    x = np.arange(300)
    assert_same(lax.dynamic_slice(x, (np.int8(-1),), (2,)), x[298:])
    assert_same(lax.dynamic_slice(x, np.array([-100], np.int8), (2,)), x[200:202])
    assert_same(lax.dynamic_slice(x, (np.int8(-1),), (2,), allow_negative_indices=False), x[:2])


def test_start_as_array(backend: str) -> None:
    start = xarr.asarray([1, -1])
    assert_same(lax.dynamic_slice(X, start, (1, 2)), X[1:2, 1:])
    assert_same(lax.dynamic_slice(X, (start[0], 1), (1, 2), allow_negative_indices=(True, False)), X[1:2, 1:])


def test_dynamic_slice_of_a_scalar(backend: str) -> None:
    assert_same(lax.dynamic_slice(2.5, (), ()), np.array(2.5))
    assert_same(lax.dynamic_update_slice(2.5, 3.5, ()), np.array(3.5))
    doubled = lax.map_elements(lambda a: lax.dynamic_update_slice(a, lax.dynamic_slice(a, (), ()) * 2, ()), X)
    assert_same(doubled, X * 2)


# --- friendly constructors ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 2)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_as_numpy(shape: tuple[int, ...], axis: int, backend: str) -> None:
    x = np.arange(24.0).reshape(4, 3, 2)
    indices = np.random.default_rng(4).integers(-2, 6, shape)
    assert_same(lax.take(x, indices, axis), np.take(x, indices, axis, mode="clip"))
    rows = lax.gather_rows(x, indices, mode="fill", fill_value=0)
    outside = ((indices < 0) | (indices > 3))[..., None, None]
    assert_same(rows, np.where(outside, 0, np.take(x, indices, 0, mode="clip")))


def test_take_from_nothing() -> None:
    assert lax.take(np.zeros((0, 3)), np.zeros((2, 0), int), 0).shape == (2, 0, 3)
    with pytest.raises(IndexingError, match=r"dimension 0 of f64\[0,3\] is empty"):
        lax.take(np.zeros((0, 3)), [0], 0)


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_segments_as_jax(name: str, dtype: str, backend: str) -> None:
    data = np.random.default_rng(5).integers(-5, 5, (9, 2)).astype(dtype)
    ids = np.array([3, 0, 0, -1, 3, 7, 1, 0, 4])
    expected = getattr(jax.ops, name)(data, ids, 6)
    assert_same(getattr(lax, name)(data, ids, 6), np.asarray(expected))
    by_pairs = getattr(lax, name)(data, np.stack([ids, ids], 1), 6)
    assert_same(by_pairs, np.asarray(getattr(jax.ops, name)(data.reshape(-1), np.repeat(ids, 2), 6)))


def test_segment_ids_must_fit_the_data() -> None:
    with pytest.raises(
        ShapeError, match=r"segment_sum: wanted segment_ids of the leading dimensions of data f64\[4,3\]"
    ):
        lax.segment_sum(X, [0, 1], 2)


# --- text --------------------------------------------------------------------------------------------


def gathering(vector_dim: int) -> Callable[[Any, Any], Any]:
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    return lambda x, i: lax.gather(
        x, i, numbers, (1, 3), index_vector_dim=vector_dim, indices_are_sorted=True
    )


def scattering(x: Any, i: Any) -> Any:
    numbers = lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    # Two arrays, because XLA writes both results into one buffer where both operands are the same value.
    return lax.scatter_with(
        (x, -x),
        i,
        (1.5 * x[:, 0], x[:, 1]),
        argmin_of_pairs,
        numbers,
        unique_indices=True,
        index_vector_dim=1,
    )


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "gather": (gathering(1), (X, np.array([[0], [2]]))),
    "gather of scalars": (gathering(1), (X, np.array([3, 2]))),
    "gather, vectors first": (gathering(0), (X, np.array([[0, 2]]))),
    "scatter": (scattering, (X, np.array([0, 2, 1, 5]))),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, i), (2, 1)), (X, np.array(1))),
    "dynamic_update_slice": (
        lambda x, i: lax.dynamic_update_slice(x, x[1:2], (i, i), allow_negative_indices=False),
        (X, np.array(2)),
    ),
    "of a scalar": (
        lambda x, i: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (), ()), ()),
        (np.array(1.5), np.array(0)),
    ),
    "all of it": (lambda x, i: lax.dynamic_update_slice(x, x, (i,)), (X[0], np.array(0))),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_is_what_mlir_prints_and_xla_runs(name: str) -> None:
    function, arguments = PROGRAMS[name]
    text = xarr.lower(function, *arguments).graph.to_text()
    # MLIR prints a dynamic slice of a scalar as `%arg0, , sizes = []`, which it cannot read.
    assert str(parse(text)).strip().replace(", , ", ", ") == text
    results = function(*map(xarr.asarray, arguments))
    several = results if isinstance(results, tuple) else (results,)
    for array, expected in zip(several, run_stablehlo(text, *arguments), strict=True):
        assert_same(array, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_explicit_spelling(name: str) -> None:
    function, arguments = PROGRAMS[name]
    explicit = xarr.make_explicit(function, *arguments)
    arrays = [xarr.asarray(argument) for argument in arguments]
    result, expected = explicit(*arrays), function(*arrays)
    for array, other in zip(
        *(each if isinstance(each, tuple) else (each,) for each in (result, expected)), strict=True
    ):
        assert_same(array, np.asarray(other))


@pytest.mark.usefixtures("recorded")
def test_flags_are_part_of_the_op() -> None:
    """A promise made or not makes two ops, so that neither replaces the other."""
    plain = ops.Gather((), (0,), (), (), (0,), 1, (1,))
    promised = ops.Gather((), (0,), (), (), (0,), 1, (1,), indices_are_sorted=True)
    assert plain != promised
    x, i = parameter(TensorType((3,), np.dtype("f4"))), parameter(TensorType((2, 1), np.dtype("i8")))
    result = lax.gather(
        np.zeros(3), [[0]], lax.GatherDimensionNumbers((), (0,), (0,)), (1,), indices_are_sorted=True
    )
    assert result._node.op == promised
    assert "indices_are_sorted = true" in Graph((x, i), [type(result._node)(promised, (x, i))]).to_text()


# --- arguments that are no arguments -----------------------------------------------------------------


def test_wrong_arguments() -> None:
    numbers = lax.GatherDimensionNumbers(*ROWS)
    with pytest.raises(
        ValueRangeError, match="wanted a mode of 'clip', 'fill', 'drop', 'promise_in_bounds', got 'wrap'"
    ):
        lax.gather(X, [[0]], numbers, (1, 3), mode="wrap")
    with pytest.raises(InputError, match="wanted GatherDimensionNumbers for dimension_numbers"):
        lax.gather(X, [[0]], ROWS, (1, 3))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="index_vector_dim=0 takes them as scalars"):
        lax.gather(X, 0, numbers, (1, 3))
    with pytest.raises(
        InputError, match="wanted a sequence of ints or scalar arrays for start_indices, got 3"
    ):
        lax.dynamic_slice(X, 3, (1, 1))
    with pytest.raises(ShapeError, match=r"got an array s64\[1,2\]"):
        lax.dynamic_slice(X, np.array([[1, 2]]), (1, 1))
    with pytest.raises(ShapeError, match="wanted 2 of allow_negative_indices, got 1"):
        lax.dynamic_slice(X, (1, 1), (1, 1), allow_negative_indices=[True])
    with pytest.raises(DTypeError, match="the Python float"):
        lax.scatter_add(np.arange(3), [[0]], 1.5, lax.ScatterDimensionNumbers((), (0,), (0,)))


def test_wrong_computations() -> None:
    numbers, outer = lax.ScatterDimensionNumbers(*ROWS), xarr.asarray([1.0, 2.0])[0]
    with pytest.raises(ShapeError, match=r"scatter \[C23\]: a computation may use its arguments only"):
        lax.scatter_with(X, [[0]], X[:1], lambda a, b: a + outer, numbers)
    with pytest.raises(
        ShapeError, match=r"scatter \[C23\]: the computation must return the structure that it updates"
    ):
        lax.scatter_with(X, [[0]], X[:1], lambda a, b: (a, b), numbers)
    with pytest.raises(
        ShapeError, match=r"scatter \[C5\]: wanted N >= 1 arrays and N updates in one structure"
    ):
        lax.scatter_with((X, X), [[0]], X[:1], lambda a, b: a, numbers)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e5m2])
def test_float8_moves(dtype: Any, backend: str) -> None:
    x = np.array([1, 2, 4, 0.5], dtype)
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    assert_same(lax.gather(x, [[3], [9]], numbers, (1,)), x[[3, 3]])
    assert_same(lax.gather(x, [[3], [9]], numbers, (1,), mode="fill"), np.array([0.5, np.nan], dtype))
    replaced = lax.scatter(x, [[1]], x[3:], lax.ScatterDimensionNumbers((), (0,), (0,)))
    assert_same(replaced, np.array([1, 0.5, 4, 0.5], dtype))
