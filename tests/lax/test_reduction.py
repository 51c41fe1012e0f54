"""Reduce, its common forms, argmax and argmin, against jax.lax on the CPU."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.xla import run_stablehlo
from xarr import lax
from xarr.backend import get
from xarr.compiler.pipeline import make_program
from xarr.errors import AxisError, DTypeError, InputError, ShapeError
from xarr.ir import ops
from xarr.ir.computations import arg_extremum
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.types import TensorType

jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(7)
SPECIAL = np.array([[1.5, np.nan, -0.0, 0.0], [-np.inf, np.inf, 2.0, 2.0], [-3.0, 0.5, -np.inf, -np.inf]])
EXTREMES = [
    (d, np.array([[np.iinfo(d).min, -1, 0], [np.iinfo(d).max, 7, 7]]).astype(d)) for d in ("int8", "int64")
]
CASES: list[tuple[Any, tuple[int, ...]]] = [
    (np.float64(2.5), ()),
    (np.zeros((0, 3), np.float32), (0,)),
    (np.zeros((0, 3), np.float32), (1,)),
    (np.ones((1, 1), np.int16), (0, 1)),
    (RNG.normal(size=(2, 3, 4, 2, 3)), (0, 2, 4)),
    (RNG.normal(size=(2, 3, 4, 2, 3)).astype(np.float32), (3, 1)),
    (SPECIAL, (1,)),
    (SPECIAL.astype(np.float16), (0,)),
    (SPECIAL.astype(ml_dtypes.bfloat16), (0, 1)),
    (EXTREMES[0][1], (0,)),
    (EXTREMES[1][1], (1,)),
    (np.arange(12, dtype=np.uint8).reshape(3, 4) * 21, (0, 1)),
]


def same(mine: Any, theirs: Any, ulps: int = 0) -> None:
    """Equal types and values: equal, or within `ulps` for sums and products of floats."""
    got, wanted = np.asarray(mine), np.asarray(theirs)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if ulps:
        eps = float(ml_dtypes.finfo(wanted.dtype).eps)
        np.testing.assert_allclose(
            got.astype(np.float64), wanted.astype(np.float64), rtol=ulps * eps, atol=ulps * eps
        )
    else:
        np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"])
def test_numeric_reductions_agree(name: str) -> None:
    for operand, axes in CASES:
        rounds = operand.dtype.kind not in "iu" and name in ("reduce_sum", "reduce_prod")
        same(getattr(lax, name)(operand, axes), getattr(jax.lax, name)(operand, axes), 8 * rounds)


@pytest.mark.parametrize("name", ["reduce_and", "reduce_or", "reduce_xor"])
def test_bitwise_reductions_agree(name: str) -> None:
    bools = np.array([[True, False, True], [True, True, True]])
    for operand in (
        bools,
        EXTREMES[0][1],
        EXTREMES[1][1],
        np.zeros((2, 0), np.bool_),
        np.zeros((2, 0), np.uint32),
    ):
        same(getattr(lax, name)(operand, (1,)), getattr(jax.lax, name)(operand, (1,)))


def test_complex_sums_and_bool_extremes() -> None:
    values = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype(np.complex64)
    np.testing.assert_allclose(np.asarray(lax.reduce_sum(values, (0,))), values.sum(0), rtol=1e-6)
    bools = np.array([[True, False], [False, False]])
    same(lax.reduce_max(bools, (1,)), bools.any(1))
    same(lax.reduce_min(bools[:0], (0,)), np.ones(2, bool))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_narrow_sums_accumulate_in_float32(dtype: Any) -> None:
    # One by one in the narrow type the sum would stop growing after a few elements.
    operand = np.full((1000, 2), 0.25).astype(dtype)
    np.testing.assert_array_equal(
        np.asarray(lax.reduce_sum(operand, (0,))).astype(float),
        np.array([250.0, 250.0]).astype(dtype).astype(float),
    )


def test_float8_without_infinity_starts_from_its_extremes() -> None:
    empty = np.zeros((0, 1), ml_dtypes.float8_e4m3fn)
    assert np.asarray(lax.reduce_max(empty, (0,))).astype(float) == -448
    assert np.asarray(lax.reduce_min(empty, (0,))).astype(float) == 448
    unsigned = np.zeros((0, 1), ml_dtypes.float8_e8m0fnu)
    assert 0 < np.asarray(lax.reduce_max(unsigned, (0,))).astype(float) < 1e-38


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_indices_of_extremes_agree(name: str) -> None:
    rank5 = RNG.integers(0, 3, (2, 3, 2, 1, 4))
    arrays = [
        SPECIAL,
        SPECIAL.astype(np.float32).T,
        rank5,
        EXTREMES[0][1],
        SPECIAL > 0,
        np.full((2, 2), -np.inf),
    ]
    for operand in (*arrays, SPECIAL.astype(ml_dtypes.bfloat16)):
        for axis, index in ((0, np.int32), (operand.ndim - 1, np.uint8)):
            same(getattr(lax, name)(operand, axis, index), getattr(jax.lax, name)(operand, axis, index))


def test_argmax_takes_negative_axes_and_ties_across_long_dimensions() -> None:
    operand = np.tile([1.0, 5.0, 5.0], 200)
    assert int(np.asarray(lax.argmax(operand, -1, np.int64))) == 1
    operand[599] = np.nan
    assert int(np.asarray(lax.argmin(operand, -1, np.int64))) == 599


def test_argmax_is_found_by_its_computation_and_any_other_index_array_still_works() -> None:
    operand = np.array([[2.0, 7.0, 7.0], [np.nan, 1.0, np.nan]])
    positions = np.array([[9, 8, 3], [5, 6, 4]])

    def later(a: Any, b: Any) -> Any:
        pick = lax.bitwise_or(lax.gt(a[0], b[0]), lax.ne(a[0], a[0]))
        first = lax.bitwise_and(lax.eq(a[0], b[0]), lax.lt(a[1], b[1]))
        return lax.select(pick, a[0], b[0]), lax.select(lax.bitwise_or(pick, first), a[1], b[1])

    values, indices = lax.reduce((operand, positions), (-np.inf, 0), later, (1,))
    np.testing.assert_array_equal(np.asarray(indices), [3, 5])
    np.testing.assert_array_equal(np.asarray(values), [7, np.nan])
    text = program_text(
        ops.Reduce((1,), arg_extremum("GT", np.dtype(float), np.dtype(np.int64))), operand, iota=True
    )
    assert "reduce_argument(np.argmax" in text


def program_text(op: Any, operand: Any, iota: bool = False) -> str:
    """The NumPy program of a reduction of `operand`."""
    values = parameter(TensorType(operand.shape, operand.dtype))
    starts = [parameter(TensorType((), operand.dtype))]
    arrays = [values]
    if iota:
        arrays.append(Node(ops.Iota(TensorType(operand.shape, np.dtype(np.int64)), 1)))
        starts.append(parameter(TensorType((), np.dtype(np.int64))))
    graph = Graph((values, *starts), [Node(op, (*arrays, *starts))])
    program: Any = make_program(graph, get("numpy")).program
    return str(program.text)


def logaddexp(module: Any) -> Any:
    def combine(a: Any, b: Any) -> Any:
        high = module.max(a, b)
        low = module.min(a, b)
        return module.add(high, module.log1p(module.exp(module.sub(low, high))))

    return combine


@pytest.mark.parametrize("axes", [(1,), (0, 2), (0, 1, 2)])
def test_any_computation_agrees(axes: tuple[int, ...]) -> None:
    operand = RNG.normal(size=(5, 7, 3))
    mine = lax.reduce(operand, -1e30, logaddexp(lax), axes)
    same(mine, jax.lax.reduce(operand, -1e30, logaddexp(jax.lax), axes), 64)


def welford(module: Any) -> Any:
    """Counts, means and sums of squared deviations of two groups, joined."""

    def combine(a: Any, b: Any) -> Any:
        count = module.add(a[0], b[0])
        safe = module.max(count, 1.0)
        delta = module.sub(b[1], a[1])
        mean = module.add(a[1], module.div(module.mul(delta, b[0]), safe))
        spread = module.div(module.mul(module.mul(delta, delta), module.mul(a[0], b[0])), safe)
        return count, mean, module.add(module.add(a[2], b[2]), spread)

    return combine


def test_variadic_computation_agrees() -> None:
    operand = RNG.normal(size=(6, 37))
    arrays = (np.ones_like(operand), operand, np.zeros_like(operand))
    count, mean, spread = lax.reduce(arrays, (0.0, 0.0, 0.0), welford(lax), (1,))
    np.testing.assert_array_equal(np.asarray(count), np.full(6, 37.0))
    np.testing.assert_allclose(np.asarray(mean), operand.mean(1), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(spread) / 37, operand.var(1), rtol=1e-12)


def test_associative_but_not_commutative_computation_keeps_the_order() -> None:
    # Products of affine maps x -> p x + q, applied left to right.
    p, q = RNG.integers(-2, 3, (2, 3, 11))

    def compose(a: Any, b: Any) -> Any:
        return lax.mul(a[0], b[0]), lax.add(lax.mul(a[1], b[0]), b[1])

    got = lax.reduce([p, q], [1, 0], lambda a, b: list(compose(a, b)), (1,))
    slope, offset = np.ones(3, int), np.zeros(3, int)
    for column in range(11):
        slope, offset = slope * p[:, column], offset * p[:, column] + q[:, column]
    np.testing.assert_array_equal(np.asarray(got[0]), slope)
    np.testing.assert_array_equal(np.asarray(got[1]), offset)


def test_computation_with_a_branch_and_a_loop_runs_on_lanes() -> None:
    operand = RNG.integers(1, 50, (4, 9))

    def gcd(a: Any, b: Any) -> Any:
        return lax.while_loop(lambda c: lax.ne(c[1], 0), lambda c: (c[1], lax.rem(c[0], c[1])), (a, b))[0]

    np.testing.assert_array_equal(
        np.asarray(lax.reduce(operand, 0, gcd, (1,))), np.gcd.reduce(operand, axis=1)
    )

    def larger(a: Any, b: Any) -> Any:
        return lax.cond(lax.gt(a, b), lambda x, y: x, lambda x, y: y, a, b)

    np.testing.assert_array_equal(np.asarray(lax.reduce(operand, 0, larger, (0,))), operand.max(0))


def test_constant_computation_and_empty_dimensions() -> None:
    np.testing.assert_array_equal(
        np.asarray(lax.reduce(np.ones((2, 3)), 5.0, lambda a, b: 1.0, (1,))), [1.0, 1.0]
    )
    np.testing.assert_array_equal(
        np.asarray(lax.reduce(np.ones((2, 0)), 5.0, logaddexp(lax), (1,))), [5.0, 5.0]
    )
    assert np.asarray(lax.reduce(np.ones((0, 3)), 5.0, logaddexp(lax), (1,))).shape == (0,)


def test_initial_value_counts() -> None:
    operand = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(lax.reduce(operand, 100.0, lax.add, (1,))), [103.0, 112.0])
    np.testing.assert_array_equal(np.asarray(lax.reduce(operand, 4.5, lax.max, (1,))), [4.5, 5.0])
    start = lax.add(np.float64(1), 1.0)
    np.testing.assert_array_equal(np.asarray(lax.reduce(operand, start, lax.mul, ())), operand * 2)


def test_initial_value_counts_for_a_single_element_where_xla_leaves_it_out() -> None:
    operand = np.array([[10], [11]], np.int32)
    lowered = xarr.lower(lambda x: lax.reduce(x, np.int32(5), lax.add, (1,)), operand)
    (by_xla,) = run_stablehlo(lowered.graph.to_text(), operand)
    np.testing.assert_array_equal(by_xla, [10, 11])
    np.testing.assert_array_equal(np.asarray(lax.reduce(operand, np.int32(5), lax.add, (1,))), [15, 16])


def test_non_contiguous_and_broadcast_operands() -> None:
    operand = np.arange(24.0).reshape(4, 6)[::2, ::-3]
    np.testing.assert_array_equal(np.asarray(lax.reduce_sum(operand, (1,))), operand.sum(1))
    wide = lax.broadcast_in_dim(np.array([1.0, 2.0]), (3, 2), (1,))
    np.testing.assert_array_equal(np.asarray(lax.reduce_sum(wide, (0,))), [3.0, 6.0])
    np.testing.assert_array_equal(np.asarray(lax.reduce_sum(lax.iota(np.int32, 5), (0,))), 10)


def test_reduce_c1_structures_and_shapes() -> None:
    with pytest.raises(ShapeError, match=r"reduce \[C1\].*\(\*, \*\) and \*"):
        lax.reduce((np.ones(2), np.ones(2)), 0.0, lax.add, (0,))
    with pytest.raises(ShapeError, match=r"reduce \[C1\]"):
        lax.reduce((), (), lax.add, (0,))
    with pytest.raises(ShapeError, match=r"reduce \[C1\].*f64\[2\], f64\[3\]"):
        lax.reduce((np.ones(2), np.ones(3)), (0.0, 0.0), lambda a, b: a, (0,))


def test_reduce_c2_initial_value() -> None:
    with pytest.raises(ShapeError, match=r"reduce \[C2\]: wanted an initial value f32\[\], got f64\[\]"):
        lax.reduce(np.ones(3, np.float32), np.float64(0), lax.add, (0,))
    with pytest.raises(DTypeError, match=r"float 0\.5 does not fit"):
        lax.reduce(np.ones(3, np.int32), 0.5, lax.add, (0,))


def test_reduce_c3_dimensions() -> None:
    for axes in ((2,), (-1,), (0, 0)):
        with pytest.raises(ShapeError, match=r"reduce \[C3\]: wanted distinct dimensions in \[0, 2\)"):
            lax.reduce_sum(np.ones((2, 2)), axes)


def test_reduce_c4_number_shape_and_dtype_of_results() -> None:
    operand = np.ones((2, 3), np.float32)
    with pytest.raises(ShapeError, match=r"reduce \[C4\].*wanted \*, got \(\*, \*\)"):
        lax.reduce(operand, 0.0, lambda a, b: (a, b), (0,))
    with pytest.raises(ShapeError, match=r"reduce \[C4\].*got \(f32\[\], f32\[\]\) -> \(f32\[2\]\)"):
        lax.reduce(operand, 0.0, lambda a, b: lax.broadcast(a, (2,)), (0,))
    with pytest.raises(ShapeError, match=r"reduce \[C4\].*-> \(s32\[\]\)"):
        lax.reduce(operand, 0.0, lambda a, b: lax.convert_element_type(a, np.int32), (0,))


def test_reduce_c4_captured_value() -> None:
    outer = lax.add(np.ones(2), 1.0)
    with pytest.raises(
        ShapeError, match=r"reduce \[C4\]: .*outer value f64\[2\](.|\n)*built at .*test_reduction"
    ):
        lax.reduce(np.ones(3), 0.0, lambda a, b: lax.add(a, lax.reduce_sum(outer, (0,))), (0,))


def test_constants_may_be_used_whether_or_not_somebody_looked_at_them() -> None:
    floor = lax.full((), 2.5)
    for _ in range(2):
        result = lax.reduce(np.array([1.0, 2.0]), 0.0, lambda a, b: lax.max(lax.max(a, b), floor), (0,))
        assert np.asarray(result) == np.asarray(floor)


def test_reduce_refuses_what_is_not_a_function() -> None:
    with pytest.raises(InputError, match="wanted a function for computation, got 3"):
        lax.reduce(np.ones(3), 0.0, 3, (0,))  # type: ignore[arg-type]


def test_sums_refuse_bools_and_say_what_to_use() -> None:
    with pytest.raises(DTypeError, match=r"reduce_sum: wanted numbers, got pred\[2\]; use reduce_or"):
        lax.reduce_sum(np.ones(2, bool), (0,))
    with pytest.raises(DTypeError, match="use reduce_and"):
        lax.reduce_prod(np.ones(2, bool), (0,))


def test_argmax_refuses_empty_complex_and_other_index_types() -> None:
    with pytest.raises(ShapeError, match=r"argmax: dimension 0 of f64\[0,2\] is empty"):
        lax.argmax(np.ones((0, 2)), 0, np.int32)
    assert np.asarray(lax.argmax(np.ones((0, 2)), 1, np.int32)).shape == (0,)
    with pytest.raises(DTypeError, match="complex numbers have no order"):
        lax.argmin(np.ones(2, complex), 0, np.int32)
    with pytest.raises(DTypeError, match="wanted an integer index_dtype, got float32"):
        lax.argmin(np.ones(2), 0, np.float32)
    with pytest.raises(AxisError, match="axis 2 is out of range"):
        lax.argmax(np.ones((2, 2)), 2, np.int32)


@pytest.mark.parametrize("name", ["reduce_and", "reduce_or", "reduce_xor"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_bitwise_reductions_refuse_other_elements(name: str, dtype: str) -> None:
    with pytest.raises(DTypeError, match="wanted bool or integer elements"):
        getattr(lax, name)(xarr.ones(3, dtype=dtype), (0,))


@pytest.mark.usefixtures("on_numpy")
def test_a_computation_of_independent_pairs_is_several_reductions() -> None:
    """One in which a result depends on another pair is not."""
    values, others = RNG.normal(size=(4, 5)).astype(np.float32), RNG.integers(-9, 9, (4, 5))
    start = np.float32(np.inf), np.int64(1)
    for axes in ((0,), (1,), (0, 1), ()):
        least, product = lax.reduce(
            (values, others), start, lambda a, b: (lax.min(a[0], b[0]), lax.mul(b[1], a[1])), axes
        )
        same(least, values.min(axis=axes) if axes else values)
        same(product, others.prod(axis=axes) if axes else others)
    with xarr.config(fusion="auto"):
        program: Any = xarr.lower(_cross, "f32[4,5]").stage("program")
    assert "reduce_any(" in program.text
    np.testing.assert_allclose(np.asarray(_cross(values)[0]), values.sum(axis=0), rtol=1e-5, atol=1e-6)


def _cross(x: Any) -> Any:
    """Sums, and sums of both results."""
    zero = np.float32(0)
    return lax.reduce((x, x), (zero, zero), lambda a, b: (lax.add(a[0], b[0]), lax.add(a[0], b[1])), (0,))


def test_indices_of_extremes_need_no_row_of_numbers() -> None:
    def text(function: Any) -> str:
        program: Any = xarr.lower(function, "f32[7]").stage("program")
        return str(program.text)

    with xarr.config(fusion="off"):
        assert "iota(" not in text(lambda x: lax.argmax(x, 0, np.int32))
        assert "iota(" in text(lambda x: (lax.argmax(x, 0, np.int32), lax.iota(np.int32, 7)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("engine", ["off", "compiled", "reference"])
def test_the_larger_zero_is_the_positive_one(engine: str, dtype: str) -> None:
    """Of elements, partial results and the initial value; a NaN and other numbers win as ever."""
    if engine == "compiled":
        pytest.importorskip("llvmlite")
    fusion = "off" if engine == "reference" else engine
    zeros = np.where(RNG.random((40, 9)) < 0.15, 0.0, -0.0) * np.where(RNG.random((40, 1)) < 0.5, 1, -1)
    zeros[0, 0], zeros[1, 3], zeros[2] = np.nan, -1, -0.0
    with xarr.use_backend("reference" if engine == "reference" else "numpy"), xarr.config(fusion=fusion):
        for x, start, axis in product((zeros, -zeros, zeros.T.copy()), (0.0, -0.0), (0, 1)):
            operand, first = xarr.asarray(x, dtype=dtype), xarr.asarray(start, dtype=dtype)
            for reduction, winner in ((lax.max, 0.0), (lax.min, -0.0)):
                result = np.asarray(lax.reduce(operand, first, reduction, (axis,)))
                assert_same(result, _extreme(x, start, axis, winner).astype(result.dtype))


def _extreme(x: np.ndarray[Any, Any], start: float, axis: int, winner: float) -> np.ndarray[Any, Any]:
    """The greatest elements where 0.0 is the `winner` among zeros, the least where -0.0 is."""
    every = np.insert(x, 0, start, axis)
    indices: np.ndarray[Any, Any] = every.min(axis) if np.signbit(winner) else every.max(axis)
    has_winner = ((every == 0) & (np.signbit(every) == np.signbit(winner))).any(axis)
    return np.where(indices == 0, np.where(has_winner, winner, -winner), indices)
