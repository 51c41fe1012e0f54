"""Sort by keys and by any comparator, against jax.lax on the CPU."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import xarr.array  # noqa: F401  binds the class of handles
from xarr import lax
from xarr.backend import get
from xarr.compiler.pipeline import compile_graph
from xarr.compiler.simplify import simplify
from xarr.errors import AxisError, DTypeError, InputError, ShapeError, ValueRangeError
from xarr.ir.computations import arg_extremum, lexicographic
from xarr.ir.types import TensorType
from xarr.lazy import trace

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
        found = lax.sort(operands, num_keys=2)
        assert isinstance(found, tuple)
        for mine, theirs in zip(found, jax.lax.sort(operands, num_keys=2), strict=True):
            same_bits(mine, theirs)


def test_unstable_sort_gives_the_same_keys() -> None:
    operand = RNG.normal(size=500)
    same_bits(lax.sort(operand, is_stable=False), np.sort(operand))


def test_complex_key_carries_others_along() -> None:
    values = np.arange(COMPLEX.size)
    same_bits(lax.sort_key_val(COMPLEX, values)[1], jax.lax.sort_key_val(COMPLEX, values)[1])


def test_float8_sorts_with_nan_last() -> None:
    operand = np.array([1, NAN, -2, 0.5, -0.0, 448]).astype(ml_dtypes.float8_e4m3fnuz)
    np.testing.assert_array_equal(np.asarray(lax.sort(operand)).astype(float), [-2, 0, 0.5, 1, NAN, NAN])
    unsigned = np.array([4, 0.5, NAN, 2.0**100]).astype(ml_dtypes.float8_e8m0fnu)
    np.testing.assert_array_equal(np.asarray(lax.sort(unsigned)).astype(float), [0.5, 4, 2.0**100, NAN])


# --- comparators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 33, 100])
def test_any_comparator_sorts_stably(size: int) -> None:
    operand, place = RNG.integers(-5, 6, (3, size)), np.tile(np.arange(size), (3, 1))

    def by_magnitude(a: Any, b: Any, i: Any, j: Any) -> Any:
        return lax.lt(lax.abs(a), lax.abs(b))

    found, order = lax.sort_with((operand, place), by_magnitude)
    wanted = np.argsort(np.abs(operand), axis=1, kind="stable")
    np.testing.assert_array_equal(np.asarray(order), wanted)
    np.testing.assert_array_equal(np.asarray(found), np.take_along_axis(operand, wanted, 1))


def test_any_comparator_sorts_along_any_dimension() -> None:
    operand = RNG.normal(size=(2, 9, 3, 1, 2))
    for axis in range(-5, 5):
        found = np.asarray(lax.sort_with(operand, lambda a, b: lax.lt(lax.neg(a), lax.neg(b)), axis))
        np.testing.assert_array_equal(found, -np.sort(-operand, axis=axis))


def test_plain_and_total_comparisons_ascending_and_descending() -> None:
    operand = np.array([2.0, -1.0, 2.0, 0.0, -0.0, np.inf, -np.inf])
    place = np.arange(7)
    for compare, sign in ((lax.lt, 1), (lax.gt, -1)):
        _, order = lax.sort_with((operand, place), lambda a, b, i, j, compare=compare: compare(a, b))
        np.testing.assert_array_equal(np.asarray(order), np.argsort(sign * operand, kind="stable"))
        _, order = lax.sort_with((operand, place), lambda a, b, i, j, compare=compare: compare(b, a))
        np.testing.assert_array_equal(np.asarray(order), np.argsort(-sign * operand, kind="stable"))
    special = np.array([np.nan, 0.0, -0.0, np.copysign(np.nan, -1), 1.0])
    ascending = np.asarray(lax.sort_with(special, lax.lt_to))
    np.testing.assert_array_equal(np.signbit(ascending), [True, True, False, False, False])
    assert np.isnan(ascending[[0, 4]]).all()
    same_bits(lax.sort_with(special, lax.gt_to), ascending[::-1])


def test_second_array_can_be_the_key_and_two_keys_can_differ_in_direction() -> None:
    first, second = RNG.integers(0, 3, 30), RNG.integers(0, 3, 30)
    found, _ = lax.sort_with((first, second), lambda a, b, c, d: lax.lt(c, d))
    np.testing.assert_array_equal(np.asarray(found), first[np.argsort(second, kind="stable")])

    def up_then_down(a: Any, b: Any, c: Any, d: Any) -> Any:
        return lax.bitwise_or(lax.lt(a, b), lax.bitwise_and(lax.eq(a, b), lax.gt(c, d)))

    got = lax.sort_with([first, second], up_then_down)
    order = np.lexsort((-second, first))
    np.testing.assert_array_equal(np.asarray(got[0]), first[order])
    np.testing.assert_array_equal(np.asarray(got[1]), second[order])


def test_a_relation_that_is_no_order_still_permutes() -> None:
    operand = np.where(RNG.random(50) < 0.3, np.nan, RNG.normal(size=50))
    for compare in (lambda a, b: lax.lt(lax.mul(a, 2.0), lax.mul(b, 2.0)), lambda a, b: True, lax.ne):
        found = np.asarray(lax.sort_with(operand, compare))
        np.testing.assert_array_equal(np.sort(found), np.sort(operand))


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
        program: Any = compile_graph(graph, get("numpy"))
        return str(program.text)

    assert "sort_keys(" in text(lambda x: [lax.sort(x)])
    assert "sort_by(" in text(lambda x: [lax.sort_with(x, lax.gt)])
    assert "merge_sort(" in text(lambda x: [lax.sort_with(x, lambda a, b: lax.lt(lax.abs(a), lax.abs(b)))])
    dtypes = [np.dtype(kind) for kind in ("f4", "c8", "i8", "f4")]
    for graph in (lexicographic(dtypes, 4), arg_extremum("LT", dtypes[0], dtypes[2])):
        assert simplify(graph) == graph.verify()


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
    with pytest.raises(ShapeError, match=r"sort \[C3\]: .* one bool result, got \(\*, \*\)"):
        lax.sort_with(operand, lambda a, b: (lax.lt(a, b), True))
    outer = lax.reduce_sum(operand, (0,))
    with pytest.raises(ShapeError, match=r"sort \[C3\]: a computation sees its arguments only.*f32\[\]"):
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
