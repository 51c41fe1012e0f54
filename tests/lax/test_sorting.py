"""Sort by keys and by any comparator, against jax.lax on the CPU."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.backend import get
from xarr.compiler.passes.simplify import simplify
from xarr.compiler.pipeline import make_program
from xarr.errors import AxisError, DTypeError, InputError, ShapeError, ValueRangeError
from xarr.ir import ops
from xarr.ir.computations import arg_extremum, lexicographic
from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr.runtime import handles
from xarr.runtime.trace_to_graph import trace
from xarr_numpy import engine
from xarr_reference.reduction import merge_sorted
from xarr_reference.scalars import bit_order

jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(11)
NAN = np.nan
SPECIAL = np.array(
    [[0.0, -0.0, NAN, -1.0, -NAN, np.inf, -0.0, 0.0], [NAN, -np.inf, 3.0, 3.0, -0.0, 1.0, NAN, 0.0]]
)
COMPLEX = np.array(
    [1 + 2j, 1 - 1j, complex(NAN, 1), 0, complex(1, NAN), complex(-0.0, 1), -1j, complex(5, NAN), 2]
)
ARRAYS: list[Any] = [
    SPECIAL,
    SPECIAL.astype(np.float32).T,
    SPECIAL.astype(np.float16),
    SPECIAL.astype(ml_dtypes.bfloat16),
    COMPLEX,
    RNG.integers(-3, 4, (2, 3, 1, 4, 5)),
    np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min, 0, -1]),
    np.array([[True, False, True]]),
    RNG.integers(0, 256, (3, 7)).astype(np.uint8)[:, ::-2],
    np.zeros((3, 0)),
    np.zeros((0, 3), np.int32),
    np.ones((1, 1), np.float32),
]


def same_bits(mine: Any, theirs: Any) -> None:
    got, wanted = np.ascontiguousarray(mine), np.ascontiguousarray(theirs)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    assert got.tobytes() == wanted.tobytes()


def test_sort_agrees_bit_for_bit() -> None:
    for operand in ARRAYS:
        for dimension in {0, -1}:
            same_bits(lax.sort(operand, dimension), jax.lax.sort(operand, dimension))


@pytest.mark.parametrize("rank", [32, 33, 64])
@pytest.mark.parametrize("axis", [-2, -1])
def test_as_many_dimensions_as_arrays_have(rank: int, axis: int) -> None:
    """NumPy itself sorts at most 32."""
    rows = np.array([[3, 1, 2], [-1, 5, 0]])
    shape = (1,) * (rank - 2) + rows.shape
    for dtype in (np.float32, np.int8, np.uint64, np.complex64, ml_dtypes.bfloat16):
        result = lax.sort(rows.astype(dtype).reshape(shape), axis)
        same_bits(result, np.sort(rows.astype(dtype), axis).reshape(shape))
    order = np.argsort(rows, axis, kind="stable").reshape(shape)
    same_bits(xarr.argsort(rows.reshape(shape), axis=axis), order)
    keys, values = lax.sort((rows.reshape(shape), rows.reshape(shape) + 1), axis)
    same_bits(keys, np.sort(rows, axis).reshape(shape))
    same_bits(values, np.sort(rows, axis).reshape(shape) + 1)
    empty = (*(1,) * (rank - 2), 0, 3)
    assert lax.sort(np.zeros(empty), axis).shape == xarr.argsort(np.zeros(empty), axis=axis).shape == empty


def test_sort_key_val_keeps_the_order_of_equal_keys() -> None:
    for keys in ARRAYS[:6]:
        values = np.arange(keys.size, dtype=np.int16).reshape(keys.shape)
        for mine, theirs in zip(
            lax.sort_key_val(keys, values), jax.lax.sort_key_val(keys, values), strict=True
        ):
            same_bits(mine, theirs)


def test_several_keys_are_lexicographic() -> None:
    first, third = RNG.integers(0, 2, (2, 40)), np.arange(80.0).reshape(2, 40)
    second = RNG.choice(np.array([NAN, 0.0, -0.0, 1.0], np.float32), (2, 40))
    for operands in ((first, second, third), (second, first, third)):
        results = lax.sort(operands, num_keys=2)
        assert isinstance(results, tuple)
        for mine, theirs in zip(results, jax.lax.sort(operands, num_keys=2), strict=True):
            same_bits(mine, theirs)


def test_unstable_sort_gives_the_same_keys() -> None:
    operand = RNG.normal(size=500)
    same_bits(lax.sort(operand, is_stable=False), np.sort(operand))


def test_complex_key_carries_others_along() -> None:
    values = np.arange(COMPLEX.size)
    same_bits(lax.sort_key_val(COMPLEX, values)[1], jax.lax.sort_key_val(COMPLEX, values)[1])


@pytest.mark.parametrize("dtype", ["float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz"])
@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_the_only_nan_of_floats_without_minus_zero_comes_last(backend: str, dtype: str) -> None:
    operand = np.array([1, NAN, -2, 0.5, -0.0, 8]).astype(dtype)
    with xarr.config(backend=backend):
        np.testing.assert_array_equal(np.asarray(lax.sort(operand)).astype(float), [-2, 0, 0.5, 1, 8, NAN])


@pytest.mark.parametrize("dtype", ["float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz"])
def test_orders_of_floats_without_minus_zero_are_xlas_but_for_the_nan(dtype: str) -> None:
    values = np.arange(256).astype(np.uint8).view(dtype)
    x, y = values[:, None].repeat(256, 1), values[None, :].repeat(256, 0)
    is_nan = np.isnan(values.astype(np.float32))
    assert np.flatnonzero(is_nan).tolist() == [0x80]
    differ = is_nan[:, None] != is_nan
    for name in ("eq_to", "lt_to", "le_to"):
        theirs = np.asarray(jax.jit(getattr(jax.lax, f"{name}_p").bind)(x, y))
        wanted = np.where(differ, ~theirs, theirs) if name != "eq_to" else theirs
        for backend in ("numpy", "reference"):
            with xarr.config(backend=backend):
                np.testing.assert_array_equal(np.asarray(getattr(lax, name)(x, y)), wanted)
    mine, theirs = np.asarray(lax.sort(values)), np.asarray(jax.lax.sort(values))
    assert (mine.view(np.uint8)[-1], theirs.view(np.uint8)[0]) == (0x80, 0x80)


@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fnuz", "float8_e5m2", "float8_e8m0fnu", "bfloat16"])
def test_a_comparator_of_the_total_order_sorts_all_bits(dtype: str, direction: str) -> None:
    bits = RNG.permutation(2 ** (8 * np.dtype(dtype).itemsize)).astype(f"u{np.dtype(dtype).itemsize}")[:400]
    op = ops.Compare(direction, total_order=True)

    def compare(a: Any, b: Any) -> Any:
        return handles.wrap(Node(op, (a._node, b._node)))

    wanted = sorted(bits.view(dtype), key=bit_order, reverse=direction == "GT")
    result = np.asarray(lax.sort_with(bits.view(dtype), compare))
    np.testing.assert_array_equal(result.view(bits.dtype), np.array(wanted).view(bits.dtype))


def test_float8_sorts_with_nan_last() -> None:
    operand = np.array([1, NAN, -2, 0.5, -0.0, 448]).astype(ml_dtypes.float8_e4m3fnuz)
    np.testing.assert_array_equal(np.asarray(lax.sort(operand)).astype(float), [-2, 0, 0.5, 1, NAN, NAN])
    unsigned = np.array([4, 0.5, NAN, 2.0**100]).astype(ml_dtypes.float8_e8m0fnu)
    np.testing.assert_array_equal(np.asarray(lax.sort(unsigned)).astype(float), [0.5, 4, 2.0**100, NAN])


# --- comparators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 33, 100])
def test_any_comparator_sorts_stably(size: int) -> None:
    operand, index = RNG.integers(-5, 6, (3, size)), np.tile(np.arange(size), (3, 1))

    def by_magnitude(a: Any, b: Any, i: Any, j: Any) -> Any:
        return lax.lt(lax.abs(a), lax.abs(b))

    result, order = lax.sort_with((operand, index), by_magnitude)
    wanted = np.argsort(np.abs(operand), axis=1, kind="stable")
    np.testing.assert_array_equal(np.asarray(order), wanted)
    np.testing.assert_array_equal(np.asarray(result), np.take_along_axis(operand, wanted, 1))


def test_any_comparator_sorts_along_any_dimension() -> None:
    operand = RNG.normal(size=(2, 9, 3, 1, 2))
    for axis in range(-5, 5):
        result = np.asarray(lax.sort_with(operand, lambda a, b: lax.lt(lax.neg(a), lax.neg(b)), axis))
        np.testing.assert_array_equal(result, -np.sort(-operand, axis=axis))


def test_plain_and_total_comparisons_ascending_and_descending() -> None:
    operand = np.array([2.0, -1.0, 2.0, 0.0, -0.0, np.inf, -np.inf])
    index = np.arange(7)
    for compare, sign in ((lax.lt, 1), (lax.gt, -1)):
        _, order = lax.sort_with((operand, index), lambda a, b, i, j, compare=compare: compare(a, b))
        np.testing.assert_array_equal(np.asarray(order), np.argsort(sign * operand, kind="stable"))
        _, order = lax.sort_with((operand, index), lambda a, b, i, j, compare=compare: compare(b, a))
        np.testing.assert_array_equal(np.asarray(order), np.argsort(-sign * operand, kind="stable"))
    special = np.array([np.nan, 0.0, -0.0, np.copysign(np.nan, -1), 1.0])
    ascending = np.asarray(lax.sort_with(special, lax.lt_to))
    np.testing.assert_array_equal(np.signbit(ascending), [True, True, False, False, False])
    assert np.isnan(ascending[[0, 4]]).all()
    same_bits(lax.sort_with(special, lax.gt_to), ascending[::-1])


def test_second_array_can_be_the_key_and_two_keys_can_differ_in_direction() -> None:
    first, second = RNG.integers(0, 3, 30), RNG.integers(0, 3, 30)
    result, _ = lax.sort_with((first, second), lambda a, b, c, d: lax.lt(c, d))
    np.testing.assert_array_equal(np.asarray(result), first[np.argsort(second, kind="stable")])

    def up_then_down(a: Any, b: Any, c: Any, d: Any) -> Any:
        return lax.bitwise_or(lax.lt(a, b), lax.bitwise_and(lax.eq(a, b), lax.gt(c, d)))

    got = lax.sort_with([first, second], up_then_down)
    order = np.lexsort((-second, first))
    np.testing.assert_array_equal(np.asarray(got[0]), first[order])
    np.testing.assert_array_equal(np.asarray(got[1]), second[order])


def test_a_relation_that_is_no_order_still_permutes() -> None:
    operand = np.where(RNG.random(50) < 0.3, np.nan, RNG.normal(size=50))
    for compare in (lambda a, b: lax.lt(lax.mul(a, 2.0), lax.mul(b, 2.0)), lambda a, b: True, lax.ne):
        result = np.asarray(lax.sort_with(operand, compare))
        np.testing.assert_array_equal(np.sort(result), np.sort(operand))


def test_comparator_with_a_branch_runs_on_lanes() -> None:
    operand = RNG.integers(-9, 9, 20)

    def odd_first(a: Any, b: Any) -> Any:
        odd_a, odd_b = lax.bitwise_and(a, 1), lax.bitwise_and(b, 1)
        return lax.cond(lax.eq(odd_a, odd_b), lambda: lax.lt(a, b), lambda: lax.gt(odd_a, odd_b))

    wanted = sorted(operand.tolist(), key=lambda v: (v % 2 == 0, v))
    np.testing.assert_array_equal(np.asarray(lax.sort_with(operand, odd_first)), wanted)


def test_known_comparators_become_numpy_sorts_and_survive_simplification() -> None:
    def text(function: Any) -> str:
        graph, _ = trace(function, [type_of(np.ones((4, 5)))])
        with xarr.config(fusion="auto"):
            program: Any = make_program(graph, get("numpy")).program
        return str(program.text)

    assert "sort_keys(" in text(lambda x: [lax.sort(x)])
    assert "sort_plainly(" in text(lambda x: [lax.sort_with(x, lax.gt)])
    by_key = text(lambda x: [lax.sort_with(x, lambda a, b: lax.lt(lax.abs(a), lax.abs(b)))])
    assert "v0 = sort_by_columns(" in by_key
    assert "v0 = merge_sort(" in text(lambda x: [lax.sort_with(x, lambda a, b: lax.lt(a, lax.neg(b)))])
    dtypes = [np.dtype(kind) for kind in ("f4", "c8", "i8", "f4")]
    for graph in (lexicographic(dtypes, 4), arg_extremum("LT", dtypes[0], dtypes[2])):
        assert simplify(graph) == graph.verify()


# --- what comparators order by ---------------------------------------------------------------------

ENGINES = ["off", *["compiled"] * engine.available()]


def first_then_second(a: Any, b: Any, c: Any, d: Any) -> Any:
    return lax.bitwise_or(lax.gt(a, b), lax.bitwise_and(lax.lt(d, c), lax.eq(b, a)))


def second_then_first(a: Any, b: Any, c: Any, d: Any) -> Any:
    return lax.select(lax.ne(c, d), lax.lt(c, d), lax.gt(a, b))


def by_sum(a: Any, b: Any, c: Any, d: Any) -> Any:
    return lax.lt(
        lax.add(a, lax.convert_element_type(c, a.dtype)), lax.add(b, lax.convert_element_type(d, b.dtype))
    )


def by_magnitude_down(a: Any, b: Any, c: Any, d: Any) -> Any:
    return lax.lt(lax.abs(b), lax.abs(a))


COMPARATORS = {
    each.__name__: each for each in (first_then_second, second_then_first, by_sum, by_magnitude_down)
}


def of_few(size: int, dtype: Any, nan: bool) -> Any:
    """Few numbers, so that many are equal, both zeros and perhaps NaN among them."""
    some = np.array([-1.5, -0.0, 0.0, 2.0, np.inf, -np.inf] + [NAN, -NAN] * nan).astype(dtype)
    return RNG.choice(some, size)


@pytest.mark.parametrize("fusion", ENGINES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8"])
@pytest.mark.parametrize("name", COMPARATORS)
def test_comparators_order_as_the_reference(name: str, dtype: str, fusion: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for size in (1, 2, 3, 17, 40):
        values = RNG.integers(-3, 3, size).astype(kind) if kind.kind == "i" else of_few(size, kind, nan=False)
        operands = (values, RNG.integers(0, 3, size))
        with xarr.use_backend("reference"):
            wanted = [np.asarray(each) for each in lax.sort_with(operands, COMPARATORS[name])]
        with xarr.config(fusion=fusion):
            for mine, theirs in zip(lax.sort_with(operands, COMPARATORS[name]), wanted, strict=True):
                assert_same(mine, theirs)


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize("fusion", ENGINES)
def test_merging_is_that_of_the_definition(fusion: str) -> None:
    """To the element, even for a relation that is no order."""

    def compare(a: Any, b: Any, c: Any, d: Any) -> Any:
        return lax.lt(lax.mul(a, b), lax.convert_element_type(lax.sub(c, d), a.dtype))

    for size in (2, 3, 5, 30, 77):
        operands = (of_few(size, np.float32, nan=True), RNG.integers(0, 3, size))
        with xarr.use_backend("reference"):
            wanted = [np.asarray(each) for each in lax.sort_with(operands, compare)]
        with xarr.config(fusion=fusion):
            for mine, theirs in zip(lax.sort_with(operands, compare), wanted, strict=True):
                assert_same(mine, theirs)


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize("fusion", ENGINES)
@pytest.mark.parametrize("name", ["by_magnitude_down", "by_sum", "lt", "gt"])
def test_nan_goes_where_merging_puts_it(name: str, fusion: str) -> None:
    """A plain comparison says nothing of NaN: the definition's merge sort says where it ends up."""
    compare = COMPARATORS.get(name) or (lambda a, b, c, d: getattr(lax, name)(a, b))
    for size in (2, 3, 7, 33, 64, 100):
        operands = (of_few(size, np.float32, nan=True), np.arange(size))
        with xarr.use_backend("reference"):
            wanted = [np.asarray(each) for each in lax.sort_with(operands, compare)]
            alone = np.asarray(lax.sort_with(operands[0], lambda a, b: compare(a, b, a, b)))
        with xarr.config(fusion=fusion):
            for mine, theirs in zip(lax.sort_with(operands, compare), wanted, strict=True):
                assert_same(mine, theirs)
            assert_same(lax.sort_with(operands[0], lambda a, b: compare(a, b, a, b)), alone)


@pytest.mark.usefixtures("on_numpy")  # docs/backend_cupy.md: there long lines go through a network
def test_nan_goes_to_the_same_index_in_long_lines_by_every_engine() -> None:
    operands = (of_few(7_001, np.float32, nan=True), np.arange(7_001))
    with xarr.config(fusion="off"):
        order = np.asarray(lax.sort_with(operands, lambda a, b, c, d: lax.lt(a, b))[1])
        lines = np.asarray(
            lax.sort_with([np.stack([x, x[::-1]]) for x in operands], lambda a, b, c, d: lax.lt(a, b))[1]
        )
    np.testing.assert_array_equal(lines[0], order)
    numbers = operands[0].astype(object)
    merged = merge_sorted([(x, i) for i, x in enumerate(numbers)], lambda x, y: x[0] < y[0])
    np.testing.assert_array_equal(order, [i for _, i in merged])
    if engine.available():
        with xarr.config(fusion="compiled"):
            result = np.asarray(lax.sort_with(operands, lambda a, b, c, d: lax.lt(a, b))[1])
        np.testing.assert_array_equal(result, order)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "uint8", "bool", "float8_e4m3fnuz"])
@pytest.mark.parametrize("compare", [lax.lt, lax.gt], ids=["lt", "gt"])
def test_wide_and_narrow_keys_keep_equal_ones_in_order(dtype: str, compare: Any) -> None:
    """64 bits that leave none for indices beside them, with and without equal ones."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    keys = RNG.integers(0, 2**64 - 1, (3, 50), np.uint64, endpoint=True)
    keys = keys.view(kind) if kind.itemsize == 8 and kind.kind != "f" else (keys % 120).astype(kind)
    index = np.tile(np.arange(50), (3, 1))
    for each in (keys, np.concatenate([keys, keys], axis=1)[:, :50], keys[:, RNG.integers(0, 9, 50)]):
        wide = each.astype(np.float32) if kind.kind == "V" else each.astype(object)
        _, order = lax.sort_with((each, index), lambda a, b, i, j: compare(a, b))
        ranks = np.unique(wide, return_inverse=True)[1].reshape(wide.shape)
        wanted = np.argsort(ranks if compare is lax.lt else -ranks, axis=1, kind="stable")
        np.testing.assert_array_equal(np.asarray(order), wanted)


@pytest.mark.parametrize("total", [lax.lt_to, lax.gt_to], ids=["lt_to", "gt_to"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_total_orders_to_the_bit(total: Any, dtype: str) -> None:
    width = np.dtype(dtype).itemsize
    operand = (
        RNG.integers(0, 2 ** (8 * width) - 1, 200, np.uint64, endpoint=True).astype(f"u{width}").view(dtype)
    )
    operand[:9] = [*SPECIAL[0].astype(dtype).tolist(), NAN]
    with xarr.use_backend("reference"):
        wanted = np.asarray(lax.sort_with(operand, total))
    same_bits(lax.sort_with(operand, total), wanted)


def test_compiled_merging_goes_along_any_dimension_and_carries_any_type() -> None:
    operands = (
        RNG.integers(0, 4, (3, 21, 2)),
        COMPLEX[RNG.integers(0, 9, (3, 21, 2))],
        RNG.random((3, 21, 2)) < 0.5,
        RNG.normal(size=(3, 21, 2)).astype(ml_dtypes.bfloat16),
    )

    def compare(a: Any, b: Any, *others: Any) -> Any:
        return lax.lt(lax.rem(a, 3), lax.sub(lax.rem(b, 3), 0 * a))

    wanted = np.argsort(operands[0] % 3, axis=1, kind="stable")
    for fusion in ENGINES:
        with xarr.config(fusion=fusion):
            for mine, operand in zip(lax.sort_with(operands, compare, 1), operands, strict=True):
                same_bits(mine, np.take_along_axis(operand, wanted, 1))


def type_of(array: Any) -> TensorType:
    return TensorType(array.shape, array.dtype)


# --- errors ------------------------------------------------------------------------------------------


def test_sort_c1_shapes() -> None:
    with pytest.raises(ShapeError, match=r"sort \[C1\]: wanted arrays of one shape, got f64\[2\], f64\[3\]"):
        lax.sort((np.ones(2), np.ones(3)))
    with pytest.raises(ShapeError, match=r"sort \[C1\]: wanted at least one array"):
        lax.sort(())


def test_sort_c2_dimension() -> None:
    with pytest.raises(AxisError, match="dimension 1 is out of range"):
        lax.sort(np.ones(3), 1)
    with pytest.raises(AxisError, match="a scalar has no dimensions"):
        lax.sort(np.float64(3))


def test_sort_c3_comparator() -> None:
    operand = np.ones(3, np.float32)
    with pytest.raises(
        ShapeError, match=r"sort \[C3\]: wanted a comparator \(f32\[\], f32\[\]\) -> \(pred\[\]\)"
    ):
        lax.sort_with(operand, lambda a, b: lax.sub(a, b))
    with pytest.raises(ShapeError, match=r"sort_with \[C3\]: .* one bool result, got \(\*, \*\)"):
        lax.sort_with(operand, lambda a, b: (lax.lt(a, b), True))
    outer = lax.reduce_sum(operand, (0,))
    with pytest.raises(
        ShapeError, match=r"sort_with \[C3\]: a computation may use its arguments only.*f32\[\]"
    ):
        lax.sort_with(operand, lambda a, b: lax.lt(lax.mul(a, outer), b))


def test_sort_refuses_bad_arguments() -> None:
    for count in (0, 3):
        with pytest.raises(
            ValueRangeError, match=rf"num_keys in \[1, 2\], one for each key array, got {count}"
        ):
            lax.sort((np.ones(2), np.ones(2)), num_keys=count)
    with pytest.raises(InputError, match="wanted a function for comparator"):
        lax.sort_with(np.ones(2), None)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match=r"lt \[C4\]: complex numbers have no order"):
        lax.sort_with(np.ones(2, complex), lax.lt)
