"""The element-wise operations as scalar expressions without branches.

They compute in float32 and float64.  float16, bfloat16 and float8 are computed in float32 and rounded once.
erf_inv, lgamma and digamma are not here: the operations they decompose into are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from xarr.compiler.functions import (
    arctangent,
    arithmetic,
    cipher,
    complex_numbers,
    error_function,
    exponential,
    logarithm,
    power,
    trigonometric,
)
from xarr.compiler.functions.conversion import convert, narrow, register_dtype, widen
from xarr.compiler.loop_ir.scalars import BOOL, DType, Value
from xarr.dtypes import EXTENDED_FLOAT, INTEGER, SIGNED
from xarr.ir import ops
from xarr.ir.op import Op
from xarr.ir.ops.ciphers import PhiloxPair, ThreefryBits

__all__ = ["FUNCTIONS", "Function", "apply_elementwise", "convert", "register_dtype"]

HALF: Final = np.dtype(np.float16)
SINGLE: Final = np.dtype(np.float32)
DOUBLE: Final = np.dtype(np.float64)
Types = frozenset[DType]
_REAL: Final[Types] = frozenset({HALF, SINGLE, DOUBLE})
_LOGICAL: Final[Types] = frozenset({BOOL})


@dataclass(frozen=True)
class Function:
    """How an operation is computed, and for which registers; `wide` is for float16 by way of float32."""

    compute: Callable[..., Value]
    accepts: frozenset[DType]
    wide: bool = False

    def __call__(self, *operands: Value) -> Value:
        if not self.wide or operands[0].dtype != HALF:
            return self.compute(*operands)
        return self.compute(*[operand.convert(SINGLE) for operand in operands]).convert(HALF)


def _wide(compute: Callable[..., Value]) -> Function:
    return Function(compute, _REAL, wide=True)


def _on(accepts: frozenset[DType], compute: Callable[..., Value]) -> Function:
    return Function(compute, accepts)


def _power(x: Value, y: Value) -> Value:
    return (power.power if x.dtype.kind == "f" else arithmetic.power)(x, y)


#: By the name of the operation.
FUNCTIONS: Final[dict[str, Function]] = {
    "stablehlo.abs": _on(_REAL | SIGNED, arithmetic.absolute),
    "stablehlo.add": _on(_REAL | INTEGER | _LOGICAL, arithmetic.add),
    "stablehlo.and": _on(INTEGER | _LOGICAL, lambda x, y: x & y),
    "stablehlo.atan2": _wide(arctangent.atan2),
    "stablehlo.cbrt": _wide(power.cbrt),
    "stablehlo.ceil": _on(_REAL, Value.ceil),
    "stablehlo.clamp": _on(_REAL | INTEGER | _LOGICAL, arithmetic.clamp),
    "stablehlo.cosine": _wide(trigonometric.cos),
    "stablehlo.count_leading_zeros": _on(INTEGER, Value.count_leading_zeros),
    "stablehlo.divide": _on(_REAL | INTEGER, arithmetic.divide),
    "stablehlo.exponential": _wide(exponential.exp),
    "stablehlo.exponential_minus_one": _wide(exponential.expm1),
    "stablehlo.floor": _on(_REAL, Value.floor),
    "stablehlo.imag": _on(_REAL, lambda x: x.constant(0.0)),
    "stablehlo.is_finite": _on(_REAL, arithmetic.is_finite),
    "stablehlo.log": _wide(logarithm.log),
    "stablehlo.log_plus_one": _wide(logarithm.log1p),
    "stablehlo.logistic": _wide(exponential.logistic),
    "stablehlo.maximum": _on(_REAL | INTEGER | _LOGICAL, arithmetic.maximum),
    "stablehlo.minimum": _on(_REAL | INTEGER | _LOGICAL, arithmetic.minimum),
    "stablehlo.multiply": _on(_REAL | INTEGER | _LOGICAL, arithmetic.multiply),
    "stablehlo.negate": _on(_REAL | INTEGER, arithmetic.negate),
    "stablehlo.not": _on(INTEGER | _LOGICAL, lambda x: ~x),
    "stablehlo.or": _on(INTEGER | _LOGICAL, lambda x, y: x | y),
    "stablehlo.popcnt": _on(INTEGER, Value.popcount),
    "stablehlo.power": Function(_power, _REAL | INTEGER, wide=True),
    "stablehlo.real": _on(_REAL, lambda x: x),
    "stablehlo.remainder": _on(_REAL | INTEGER, arithmetic.remainder),
    "stablehlo.round_nearest_afz": _on(_REAL, arithmetic.round_away),
    "stablehlo.round_nearest_even": _on(_REAL, Value.rint),
    "stablehlo.rsqrt": _wide(power.rsqrt),
    "stablehlo.select": _on(_REAL | INTEGER | _LOGICAL, Value.select),
    "stablehlo.shift_left": _on(INTEGER, arithmetic.shift_left),
    "stablehlo.shift_right_arithmetic": _on(INTEGER, arithmetic.shift_right_arithmetic),
    "stablehlo.shift_right_logical": _on(INTEGER, arithmetic.shift_right_logical),
    "stablehlo.sign": _on(_REAL | SIGNED, arithmetic.sign),
    "stablehlo.sine": _wide(trigonometric.sin),
    "stablehlo.sqrt": _on(_REAL, Value.sqrt),
    "stablehlo.subtract": _on(_REAL | INTEGER, lambda x, y: x - y),
    "stablehlo.tan": _wide(trigonometric.tan),
    "stablehlo.tanh": _wide(exponential.tanh),
    "stablehlo.xor": _on(INTEGER | _LOGICAL, lambda x, y: x ^ y),
    "chlo.acos": _wide(arctangent.acos),
    "chlo.acosh": _wide(logarithm.acosh),
    "chlo.asin": _wide(arctangent.asin),
    "chlo.asinh": _wide(logarithm.asinh),
    "chlo.atan": _wide(arctangent.atan),
    "chlo.atanh": _wide(logarithm.atanh),
    "chlo.cosh": _wide(exponential.cosh),
    "chlo.erf": _wide(error_function.erf),
    "chlo.erfc": _wide(error_function.erfc),
    "chlo.next_after": _on(_REAL, arithmetic.next_after),
    "chlo.sinh": _wide(exponential.sinh),
}
#: What depends on the format itself and so cannot be computed in float32 for narrower floats.
_OF_THE_FORMAT: Final = ("chlo.next_after", "stablehlo.reduce_precision", "stablehlo.bitcast_convert")


def apply_elementwise(op: Op, dtypes: Sequence[DType], operands: Sequence[Value]) -> Value | None:
    """An element-wise operation on elements of these types, as registers hold them (`register_dtype`).

    None for an operation that is not element-wise, that `complex_numbers` has no formula for, or of narrow floats
    where that is not computed in float32: others must do it.
    """
    dtype = dtypes[-1]
    if isinstance(op, ops.Convert):
        is_complex = "c" in (dtype.kind, op.dtype.kind)
        return (complex_numbers.convert if is_complex else convert)(operands[0], dtype, op.dtype)
    if isinstance(op, ops.Select):
        return operands[0].select(operands[1], operands[2])
    if dtype.kind == "c":
        return _lower_complex(op, operands)
    if isinstance(op, ops.Complex):
        return operands[0].values.complex(*operands)
    if dtype in EXTENDED_FLOAT:
        return _lower_extended(op, dtype, operands)
    if isinstance(op, ops.BitcastConvert):
        same = op.dtype.itemsize == dtype.itemsize and BOOL not in (dtype, op.dtype) and op.dtype.kind != "c"
        return operands[0].bitcast(register_dtype(op.dtype)) if same else None
    return _lower_register(op, dtype, operands)


def _lower_complex(op: Op, operands: Sequence[Value]) -> Value | None:
    if isinstance(op, ops.Compare):
        equal = complex_numbers.equal(*operands)
        return None if op.total_order else equal if op.direction == "EQ" else ~equal
    function = complex_numbers.FUNCTIONS.get(op.name)
    return None if function is None else function(*operands)


def _lower_extended(op: Op, dtype: DType, operands: Sequence[Value]) -> Value | None:
    if op.name in _OF_THE_FORMAT or (isinstance(op, ops.Compare) and op.total_order):
        return None
    found = _lower_register(op, SINGLE, [widen(operand, dtype) for operand in operands])
    return narrow(found, dtype) if found is not None and found.dtype == SINGLE else found


def _lower_register(op: Op, dtype: DType, operands: Sequence[Value]) -> Value | None:
    if isinstance(op, ops.Compare):
        return _compare(op, *operands)
    if isinstance(op, ThreefryBits):
        return cipher.threefry2x32(op.form, *operands)
    if isinstance(op, PhiloxPair):
        return cipher.philox4x32(op.index, *operands)
    if isinstance(op, ops.ReducePrecision):
        return arithmetic.reduce_precision(operands[0], op.exponent_bits, op.mantissa_bits)
    function = FUNCTIONS.get(op.name)
    return function(*operands) if function is not None and dtype in function.accepts else None


def _compare(op: ops.Compare, x: Value, y: Value) -> Value:
    if op.total_order:
        x, y = arithmetic.total_order(x), arithmetic.total_order(y)
    compare: Any = getattr(x, op.direction.lower())
    found: Value = compare(y)
    return found
