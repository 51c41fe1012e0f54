"""The reference backend, the oracle of the others, against hand-written values: element-wise ops."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.compare import assert_same
from tests.programs import run, scalar
from xarr.backend import get
from xarr.dtypes import FLOAT, INTEGER, SIGNED
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op, operation
from xarr_reference import interpreter
from xarr_reference.scalars import nearest, round_to

INF, NAN = np.inf, np.nan
bf16 = ml_dtypes.bfloat16


def check(op: Op, operands: Iterable[Any], expected: Any, dtype: Any = None) -> None:
    """The op on rank 1, on each element alone, and on the elements in rank 3."""
    arrays = [np.asarray(operand, dtype) for operand in operands]
    wanted = np.asarray(expected)
    assert_same(run(op, *arrays), wanted)
    for index in range(wanted.size):
        assert_same(run(op, *[array[index] for array in arrays]), wanted[index])
    deep = [array.reshape(1, -1, 1) for array in arrays]
    assert_same(run(op, *deep), wanted.reshape(1, -1, 1))


# --- completeness -----------------------------------------------------------------------------------


def operation_classes(modules: Iterable[ModuleType]) -> set[type[Op]]:
    """The concrete ops that the modules define: those that say a StableHLO name."""
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    return {cls for cls in classes if issubclass(cls, Op) and "name" in vars(cls)}


FAMILIES = [import_module(f"{ops.__name__}.{module.name}") for module in pkgutil.iter_modules(ops.__path__)]


def needs_rule(op: type[Op]) -> bool:
    """Whether every backend may meet the op: no stage of the compiler replaces it by others, or has made it."""
    is_static = op not in (ops.GetDimensionSize, ops.SetDimensionSize)
    return is_static and not op.is_internal and op.decompose is Op.decompose


def test_every_operation_has_a_rule() -> None:
    needed = {op for op in operation_classes(FAMILIES) if needs_rule(op)}
    assert needed == {op for op in interpreter.TABLE if needs_rule(op)}


def test_an_operation_without_a_rule_would_be_found() -> None:
    module = ModuleType("family")
    module.Halve = Halve  # type: ignore[attr-defined]
    missing = operation_classes([*FAMILIES, module]) - set(interpreter.TABLE)
    assert {op for op in missing if needs_rule(op)} == {Halve}


@operation
class Halve(ops.Unary):
    """x / 2, known to no backend."""

    name = "test.halve"
    lax_name = "halve"
    accepts = FLOAT


def test_an_unknown_operation_is_refused_by_name() -> None:
    with pytest.raises(BackendError, match=r"backend 'reference' has no test\.halve"):
        run(Halve(), np.ones(2))
    with pytest.raises(BackendError, match=r"backend 'reference' has no test\.halve"):
        x = parameter(scalar(float))
        get("reference").compile(Graph([x], [Node(Halve(), (x,))]))


ELEMENTWISE = [cls for cls in interpreter.TABLE if issubclass(cls, ops.Elementwise)]


@pytest.mark.parametrize("cls", ELEMENTWISE)
def test_element_functions_give_the_inferred_dtype(cls: type[ops.Elementwise]) -> None:
    op = ops.Compare("EQ") if cls is ops.Compare else cls()
    function = interpreter.TABLE[cls].__wrapped__  # type: ignore[attr-defined]
    for dtype in cls.accepts:
        one = np.ones(2, dtype)
        with np.errstate(all="ignore"):
            assert function(*[one[0]] * op.arity, **op.attributes()).dtype == op.result_dtype(dtype), dtype
        for shape in ((), (0,), (1,), (2, 1, 3), (2, 0, 1, 1)):
            result = run(op, *[np.ones(shape, dtype)] * op.arity)
            assert (result.shape, result.dtype) == (shape, op.result_dtype(dtype))


# --- arithmetic of integers ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", sorted(INTEGER, key=str))
def test_integers_wrap(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    least, most = np.array([low], dtype), np.array([high], dtype)
    one, two = np.array([1], dtype), np.array([2], dtype)
    check(ops.Add(), (most, one), least)
    check(ops.Subtract(), (least, one), most)
    check(ops.Multiply(), (most, two), np.array([-2 if low else high - 1], dtype))
    check(ops.Negate(), (one,), np.array([-1 if low else high], dtype))
    check(ops.Divide(), (most, one - one), np.array([-1 if low else high], dtype))
    check(ops.Remainder(), (most, one - one), most)
    check(ops.Not(), (least,), most)


@pytest.mark.parametrize("dtype", sorted(SIGNED, key=str))
def test_the_least_integer_has_no_opposite(dtype: Any) -> None:
    least = np.array([np.iinfo(dtype).min], dtype)
    check(ops.Negate(), (least,), least)
    check(ops.Abs(), (least,), least)
    check(ops.Divide(), (least, [-1]), least, dtype)
    check(ops.Remainder(), (least, [-1]), np.array([0], dtype), dtype)
    check(ops.Sign(), (least,), np.array([-1], dtype))


def test_division_of_integers_rounds_towards_zero() -> None:
    x, y = [7, -7, 7, -7, 0], [2, 2, -2, -2, 5]
    check(ops.Divide(), (x, y), np.int32([3, -3, -3, 3, 0]), np.int32)
    check(ops.Remainder(), (x, y), np.int32([1, -1, 1, -1, 0]), np.int32)


def test_powers_of_integers() -> None:
    x = [2, 2, 3, -1, -1, 1, -3, 0, 0, 0, 2]
    y = [3, -1, 5, -5, -4, -9, 2, 0, -1, 3, 7]
    check(ops.Power(), (x, y), np.int8([8, 0, -13, -1, 1, 1, 9, 1, 0, 0, -128]), np.int8)
    check(ops.Power(), ([255, 2], [255, 8]), np.uint8([255, 0]), np.uint8)


def test_shifts_out_of_width() -> None:
    x, y = np.int8([1, 1, 1, -128, -128, -128, 64]), np.int8([7, 8, -1, 7, 100, -1, 1])
    check(ops.ShiftLeft(), (x, y), np.int8([-128, 0, 0, 0, 0, 0, -128]))
    check(ops.ShiftRightLogical(), (x, y), np.int8([0, 0, 0, 1, 0, 0, 32]))
    check(ops.ShiftRightArithmetic(), (x, y), np.int8([0, 0, 0, -1, -1, -1, 32]))
    high, count = np.uint8([128, 128, 64]), np.uint8([7, 8, 255])
    check(ops.ShiftRightArithmetic(), (high, count), np.uint8([255, 255, 0]))
    check(ops.ShiftRightLogical(), (high, count), np.uint8([1, 0, 0]))


def test_bits_are_counted() -> None:
    check(ops.Popcnt(), ([0, -1, 127, -128],), np.int8([0, 8, 7, 1]), np.int8)
    check(ops.CountLeadingZeros(), ([0, -1, 1, 64],), np.int8([8, 0, 7, 1]), np.int8)
    check(ops.CountLeadingZeros(), ([0, 2**63],), np.uint64([64, 0]), np.uint64)


def test_bools() -> None:
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    for op, expected in (
        (ops.Add(), [0, 1, 1, 1]),
        (ops.Or(), [0, 1, 1, 1]),
        (ops.Maximum(), [0, 1, 1, 1]),
        (ops.Multiply(), [0, 0, 0, 1]),
        (ops.And(), [0, 0, 0, 1]),
        (ops.Minimum(), [0, 0, 0, 1]),
        (ops.Xor(), [0, 1, 1, 0]),
        (ops.Compare("LT"), [0, 1, 0, 0]),
    ):
        check(op, (x, y), np.array(expected, bool))
    check(ops.Not(), (x,), ~x)


# --- arithmetic of floats -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, bf16])
def test_signed_zero_infinity_and_nan(dtype: Any) -> None:
    values = np.array([0.0, -0.0, 1.5, -2.5, INF, -INF, NAN], dtype)

    def unary(op: Op, *expected: float) -> None:
        check(op, (values,), np.array(expected, dtype))

    unary(ops.Abs(), 0.0, 0.0, 1.5, 2.5, INF, INF, NAN)
    unary(ops.Negate(), -0.0, 0.0, -1.5, 2.5, -INF, INF, NAN)
    unary(ops.Sign(), 0.0, -0.0, 1, -1, 1, -1, NAN)
    unary(ops.Ceil(), 0.0, -0.0, 2, -2, INF, -INF, NAN)
    unary(ops.Floor(), 0.0, -0.0, 1, -3, INF, -INF, NAN)
    unary(ops.RoundNearestEven(), 0.0, -0.0, 2, -2, INF, -INF, NAN)
    unary(ops.RoundNearestAfz(), 0.0, -0.0, 2, -3, INF, -INF, NAN)
    unary(ops.Imag(), 0, 0, 0, 0, 0, 0, 0)
    unary(ops.Real(), 0.0, -0.0, 1.5, -2.5, INF, -INF, NAN)
    finite = np.array([True] * 4 + [False] * 3)
    check(ops.IsFinite(), (values,), finite)
    corners = values[[0, 1, 4, 5, 6]]

    def corner(op: Op, *expected: float) -> None:
        check(op, (corners,), np.array(expected, dtype))

    half_pi = np.array(np.pi / 2, np.float64).astype(dtype)
    corner(ops.Sqrt(), 0.0, -0.0, INF, NAN, NAN)
    corner(ops.Rsqrt(), INF, -INF, 0, NAN, NAN)
    corner(ops.Cbrt(), 0.0, -0.0, INF, -INF, NAN)
    corner(ops.Exponential(), 1, 1, INF, 0, NAN)
    corner(ops.ExponentialMinusOne(), 0.0, -0.0, INF, -1, NAN)
    corner(ops.Log(), -INF, -INF, INF, NAN, NAN)
    corner(ops.LogPlusOne(), 0.0, -0.0, INF, NAN, NAN)
    corner(ops.Logistic(), 0.5, 0.5, 1, 0, NAN)
    corner(ops.Sine(), 0.0, -0.0, NAN, NAN, NAN)
    corner(ops.Cosine(), 1, 1, NAN, NAN, NAN)
    corner(ops.Tan(), 0.0, -0.0, NAN, NAN, NAN)
    corner(ops.Asin(), 0.0, -0.0, NAN, NAN, NAN)
    corner(ops.Atan(), 0.0, -0.0, half_pi, -half_pi, NAN)
    corner(ops.Sinh(), 0.0, -0.0, INF, -INF, NAN)
    corner(ops.Cosh(), 1, 1, INF, INF, NAN)
    corner(ops.Tanh(), 0.0, -0.0, 1, -1, NAN)
    corner(ops.Asinh(), 0.0, -0.0, INF, -INF, NAN)
    corner(ops.Acosh(), NAN, NAN, INF, NAN, NAN)
    corner(ops.Atanh(), 0.0, -0.0, NAN, NAN, NAN)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, bf16])
def test_binary_corners_of_floats(dtype: Any) -> None:
    def binary(op: Op, *rows: tuple[float, float, float]) -> None:
        x, y, expected = (np.array(column, dtype) for column in zip(*rows, strict=True))
        check(op, (x, y), expected)

    tiny = ml_dtypes.finfo(dtype).smallest_subnormal  # type: ignore[no-untyped-call]
    binary(ops.Add(), (-0.0, -0.0, -0.0), (0.0, -0.0, 0.0), (INF, -INF, NAN), (tiny, -tiny, 0.0))
    binary(ops.Subtract(), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (INF, INF, NAN))
    binary(ops.Multiply(), (-0.0, 2, -0.0), (INF, 0.0, NAN), (tiny, 0.5, 0.0), (-tiny, 0.25, -0.0))
    binary(ops.Divide(), (1, 0.0, INF), (1, -0.0, -INF), (0.0, 0.0, NAN), (1, -INF, -0.0))
    binary(ops.Remainder(), (5.5, 2, 1.5), (-5.5, 2, -1.5), (5.5, -2, 1.5), (-4, 2, -0.0))
    binary(ops.Remainder(), (1, 0, NAN), (3, INF, 3), (-0.0, 3, -0.0), (INF, 2, NAN))
    binary(ops.Maximum(), (NAN, 1, NAN), (1, NAN, NAN), (-0.0, 0.0, 0.0), (0.0, -0.0, 0.0), (-INF, 1, 1))
    binary(ops.Minimum(), (NAN, 1, NAN), (1, NAN, NAN), (-0.0, 0.0, -0.0), (0.0, -0.0, -0.0), (-INF, 1, -INF))
    binary(ops.Power(), (0, 0, 1), (NAN, 0, 1), (1, NAN, 1), (-8, 3, -512), (-8, 0.5, NAN), (0.0, -1, INF))
    binary(ops.Power(), (-INF, 0.5, INF), (-0.0, 0.5, 0), (-INF, -0.5, 0), (-0.0, -3, -INF))
    binary(ops.Atan2(), (0.0, 1, 0.0), (-0.0, 1, -0.0), (0.0, 0.0, 0.0), (NAN, 1, NAN))
    binary(ops.NextAfter(), (0.0, 1, tiny), (0.0, -1, -tiny), (tiny, -1, 0.0), (1, 1, 1), (0.0, -0.0, -0.0))
    binary(ops.NextAfter(), (-tiny, 1, -0.0), (NAN, 1, NAN), (1, NAN, NAN), (INF, INF, INF))


FLOAT8 = [dtype for dtype in sorted(FLOAT, key=str) if dtype.itemsize == 1]


@pytest.mark.parametrize("dtype", FLOAT8)
def test_next_after_walks_through_all_float8(dtype: Any) -> None:
    every = np.arange(256, dtype=np.uint8).view(dtype)
    values = np.unique(every[np.isfinite(every.astype(np.float32))].astype(np.float32)).astype(dtype)
    up, down = run(ops.NextAfter(), values[:-1], values[1:]), run(ops.NextAfter(), values[1:], values[:-1])
    assert up.astype(float).tolist() == values[1:].astype(float).tolist()
    assert down.astype(float).tolist() == values[:-1].astype(float).tolist()


def test_ties_round_to_even_or_away() -> None:
    x = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, -0.3, 4503599627370497.5]
    check(ops.RoundNearestEven(), (x,), np.array([0.0, 2, 2, -0.0, -2, 0, -0.0, 4503599627370498]))
    check(ops.RoundNearestAfz(), (x,), np.array([1.0, 2, 3, -1, -2, 0, -0.0, 4503599627370498]))


@pytest.mark.parametrize("x", [1e-300, 0.1, 0.5, 1.0, 2.0, 3.7, 10.0, 700.0])
def test_functions_are_correctly_rounded(x: float) -> None:
    exact = Decimal(x)
    assert_same(run(ops.Exponential(), np.float64(x)), np.float64(float(exact.exp())))
    assert_same(run(ops.Log(), np.float64(x)), np.float64(float(exact.ln())))
    assert_same(run(ops.Sqrt(), np.float64(x)), np.float64(float(exact.sqrt())))
    assert_same(run(ops.Sqrt(), np.float32(x)), np.float32(float(Decimal(float(np.float32(x))).sqrt())))
    assert_same(run(ops.Logistic(), np.float64(-x)), np.float64(float(1 / (1 + exact.exp()))))


def test_functions_of_subnormal_size_keep_their_digits() -> None:
    check(ops.Logistic(), ([-100.0],), np.float32([3.7200760e-44]), np.float32)
    check(ops.Exponential(), ([-745.0, 709.8],), np.array([5e-324, INF]))
    check(ops.LogPlusOne(), ([1e-20],), np.array([1e-20]))


def test_complex_arithmetic() -> None:
    x, y = np.array([1 + 2j, 3 - 1j, 2j]), np.array([3 - 1j, 3 - 1j, 1 + 0j])
    check(ops.Add(), (x, y), np.array([4 + 1j, 6 - 2j, 1 + 2j]))
    check(ops.Multiply(), (x, y), np.array([5 + 5j, 8 - 6j, 2j]))
    check(ops.Divide(), (x, y), np.array([0.1 + 0.7j, 1, 2j]))
    check(ops.Abs(), ([3 + 4j, -5 + 12j],), np.float32([5, 13]), np.complex64)
    check(ops.Sign(), ([3 + 4j, 0],), np.array([0.6 + 0.8j, 0]))
    check(ops.Sqrt(), ([-4 + 0j],), np.array([2j]))
    check(ops.Imag(), ([1 - 2j],), np.array([-2.0]))
    check(ops.Complex(), ([1.0, -0.0], [INF, -0.0]), np.array([complex(1, INF), complex(-0.0, -0.0)]))


def test_complex_corners() -> None:
    check(ops.Divide(), ([1 + 0j, 1 + 1j], [0j, complex(INF, INF)]), np.array([complex(INF, NAN), 0j]))
    x = [1 + 5j, 1 + 2j, complex(NAN, 1), 2j]
    y = [1 + 3j, 0 + 9j, 1 + 1j, complex(1, NAN)]
    check(ops.Maximum(), (x, y), np.array([1 + 5j, 1 + 2j, complex(NAN, 1), complex(1, NAN)]))
    check(ops.Minimum(), (x, y), np.array([1 + 3j, 9j, complex(NAN, 1), complex(1, NAN)]))
    # The real part is ½ log(1 + 2e-20 + 2e-40).
    check(ops.LogPlusOne(), ([1e-20 + 1e-20j],), np.array([1e-20 + 1e-20j]))


# --- comparing, choosing, converting ------------------------------------------------------------------


def test_comparisons() -> None:
    x, y = np.float32([0.0, 1, NAN, -INF, 2]), np.float32([-0.0, 2, NAN, INF, 1])
    for direction, expected in (
        ("EQ", [1, 0, 0, 0, 0]),
        ("NE", [0, 1, 1, 1, 1]),
        ("LT", [0, 1, 0, 1, 0]),
        ("LE", [1, 1, 0, 1, 0]),
        ("GT", [0, 0, 0, 0, 1]),
        ("GE", [1, 0, 0, 0, 1]),
    ):
        check(ops.Compare(direction), (x, y), np.array(expected, bool))
    check(ops.Compare("NE"), ([1 + 1j, complex(NAN, 0)], [1 + 1j, complex(NAN, 0)]), np.array([False, True]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, bf16, ml_dtypes.float8_e5m2])
def test_total_order(dtype: Any) -> None:
    nan = np.array(NAN, dtype)
    ordered = np.array([-INF, -1, -0.0, 0.0, 1, INF], dtype)
    ordered = np.concatenate([[-np.abs(nan)], ordered, [np.abs(nan)]]).astype(dtype)
    for direction, relation in (("LT", np.less), ("GE", np.greater_equal), ("EQ", np.equal)):
        rank = np.arange(len(ordered))
        expected = relation(rank[:, None], rank)
        x, y = (np.broadcast_to(a, expected.shape) for a in (ordered[:, None], ordered))
        assert_same(run(ops.Compare(direction, total_order=True), x, y), expected)


def test_select_and_clamp() -> None:
    pred = np.array([True, False])
    assert_same(run(ops.Select(), pred, np.int8([1, 2]), np.int8([3, 4])), np.int8([1, 4]))
    check(ops.Clamp(), ([0, 0, 0], [-1, 5, 9], [6, 6, 6]), np.int32([0, 5, 6]), np.int32)
    check(ops.Clamp(), ([0.0, NAN, 5], [NAN, 1.0, 1], [1.0, 1, 3]), np.array([NAN, NAN, 3]))


CONVERSIONS = (
    ([NAN, INF, -INF, -1.9, 1.9, 300, -300, -0.0], float, np.int8, [0, 127, -128, -1, 1, 127, -128, 0]),
    ([NAN, INF, -INF, -1.9, 2.0**64, 2.0**63], float, np.uint64, [0, 2**64 - 1, 0, 0, 2**64 - 1, 2**63]),
    ([2.0**63, -(2.0**63)], np.float32, np.int64, [2**63 - 1, -(2**63)]),
    ([300, -1, 128], np.int32, np.int8, [44, -1, -128]),
    ([-1, 255], np.int16, np.uint8, [255, 255]),
    ([0.0, -0.0, NAN, 1e-45], np.float32, bool, [False, False, True, True]),
    ([0j, 1j], complex, bool, [False, True]),
    ([1 + 5j, complex(-0.0, 1)], complex, np.float32, [1, -0.0]),
    ([-1.5 + 5j], complex, np.int8, [-1]),
    ([True, False], bool, np.float16, [1, 0]),
    ([2**24 + 1, 2**53 + 1, 2**63 - 1], np.int64, np.float32, [2**24, 2**53, 2**63]),
    ([2**53 + 1, 2**63 - 1], np.int64, np.float64, [2**53, 2**63]),
    # Rounded by way of float32 these would be 2**24 and 1.
    ([2**24 + 2**16 + 1], np.int32, bf16, [2**24 + 2**17]),
    ([1 + 2**-8 + 2**-40], float, bf16, [1 + 2**-7]),
    ([1 + 2**-11 + 2**-40, 65519.99, 65520], float, np.float16, [1 + 2**-10, 65504, INF]),
    ([464, 465, INF, -INF], float, ml_dtypes.float8_e4m3fn, [448, NAN, NAN, NAN]),
    ([61439.9, 61440, -0.0], float, ml_dtypes.float8_e5m2, [57344, INF, -0.0]),
    ([-0.0, 1e-9, 241, 248], float, ml_dtypes.float8_e4m3fnuz, [0, 0, 240, NAN]),
    ([0, -1, 1, 1.5, 3], float, ml_dtypes.float8_e8m0fnu, [NAN, NAN, 1, 2, 4]),
    ([1e-300, 2.0**127, 2.0**128], float, ml_dtypes.float8_e8m0fnu, [2.0**-127, 2.0**127, NAN]),
    ([1e39, 1e-46, 1e-45], float, np.complex64, [INF, 0, 1e-45]),
)


@pytest.mark.parametrize(("values", "old", "new", "expected"), CONVERSIONS)
def test_convert(values: list[Any], old: Any, new: Any, expected: list[Any]) -> None:
    with np.errstate(all="ignore"):
        wanted = np.array(expected).astype(new) if np.dtype(new) not in INTEGER else np.array(expected, new)
    check(ops.Convert(np.dtype(new)), (values,), wanted, old)


@pytest.mark.parametrize("dtype", sorted(FLOAT, key=str))
def test_rounding_agrees_with_the_casts_of_numpy_and_ml_dtypes(dtype: Any) -> None:
    bits = np.arange(0, 2**32, 2**32 // 3001, dtype=np.uint32)
    values = bits.view(np.float32) if dtype.itemsize < 4 else bits.astype(np.float64) ** 1.7
    if dtype == ml_dtypes.float8_e8m0fnu:
        # ml_dtypes rounds 1.2 * 2**-127 up.
        values = values[np.abs(values) >= np.finfo(np.float32).tiny]
    with np.errstate(all="ignore"):
        result = np.array([round_to(np.float64(value), dtype) for value in values])
        assert_same(result, values.astype(dtype))


def test_nearest_takes_exact_numbers() -> None:
    assert_same(nearest(Fraction(1, 3), np.dtype(np.float32)), np.float32(1) / np.float32(3))
    assert_same(nearest(-(Fraction(10) ** 400), np.dtype(np.float64)), np.float64(-INF))
    assert_same(nearest(-Fraction(1, 10**400), np.dtype(np.float64)), np.float64(-0.0))
    assert_same(nearest(Fraction(2) ** -1075, np.dtype(np.float64)), np.float64(0))
    assert_same(nearest(Fraction(3, 2) * Fraction(2) ** -1074, np.dtype(np.float64)), np.float64(1e-323))


def test_bitcasts() -> None:
    words = np.array([0x01020304, 0x80000000], np.uint32)
    assert_same(run(ops.BitcastConvert(np.dtype(np.uint8)), words), np.uint8([[4, 3, 2, 1], [0, 0, 0, 128]]))
    assert_same(run(ops.BitcastConvert(np.dtype(np.uint16)), words), np.uint16([[0x304, 0x102], [0, 0x8000]]))
    assert_same(run(ops.BitcastConvert(np.dtype(np.float32)), words), np.float32([2.3879393e-38, -0.0]))
    assert_same(run(ops.BitcastConvert(np.dtype(np.uint8)), words[0]), np.uint8([4, 3, 2, 1]))
    halves = np.uint32([[[0, 0x3FF00000]], [[1, 0]]])
    assert_same(run(ops.BitcastConvert(np.dtype(np.float64)), halves), np.array([[1.0], [5e-324]]))
    assert_same(
        run(ops.BitcastConvert(np.dtype(np.int8)), np.empty((0, 2), bf16)), np.empty((0, 2, 2), np.int8)
    )
    assert_same(run(ops.BitcastConvert(np.dtype(np.uint8)), np.array([False, True])), np.uint8([0, 1]))
    assert_same(run(ops.BitcastConvert(np.dtype(bool)), np.uint8([0, 1, 2])), np.array([False, True, True]))


def test_reduce_precision() -> None:
    x = [1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11, 65519, 65520, -1e-5, 2**-14, 0.0, -0.0, NAN, INF, 1e-40]
    half = [1 + 2**-10, 1, 1 + 2**-9, 65504, INF, -0.0, 2**-14, 0.0, -0.0, NAN, INF, 0]
    check(ops.ReducePrecision(5, 10), (x,), np.float32(half), np.float32)
    check(
        ops.ReducePrecision(8, 0),
        ([1.5, 3, 6, 0.75, -0.1875, 1.25],),
        np.float32([2, 2, 8, 0.5, -0.125, 1]),
        np.float32,
    )
    check(ops.ReducePrecision(1, 5), ([0.5, 1, 1.9, 2, -3],), np.array([0, 0, 0, INF, -INF]))
    check(ops.ReducePrecision(5, 2), ([2.0**-16, 2.0**-24],), np.float16([2.0**-16, 0]), np.float16)
    check(ops.ReducePrecision(11, 60), ([0.1, 5e-324],), np.array([0.1, 5e-324]))
    e4m3 = ml_dtypes.float8_e4m3fn
    check(ops.ReducePrecision(4, 3), ([2.0**-7, 240, 448],), np.array([0, 240, NAN]).astype(e4m3), e4m3)
