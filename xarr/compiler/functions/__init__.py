"""The element-wise operations as scalar expressions without branches.

They compute in float32 and float64.  float16, bfloat16 and float8 are computed in float32 and rounded once.
What is not in the table is computed by its definition, `Op.decompose`: sign, clamp, rsqrt, lgamma, the ciphers.  erf,
erfc and logistic have a definition too, but other bits here: a definition uses what every backend has, and has XLA's
errors, which numbers drawn as JAX draws them rest on; with fma and pairs of floats the errors are smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from xarr.compiler.functions import (
    arctangent,
    arithmetic,
    complex_functions,
    complex_inverses,
    complex_numbers,
    complex_power,
    error_function,
    exponential,
    logarithm,
    power,
    trigonometric,
)
from xarr.compiler.functions.conversion import (
    convert,
    narrow,
    next_after,
    order_of_bits,
    reduce_narrow_precision,
    register_dtype,
    widen,
)
from xarr.compiler.loop_ir.scalars import BOOL, DType, Value
from xarr.dtypes import EXTENDED_FLOAT, INTEGER, element_type
from xarr.ir import ops
from xarr.ir.graph import Graph, parameter
from xarr.ir.op import Op
from xarr.ir.ops.elementwise import Elementwise
from xarr.ir.types import TensorType

__all__ = [
    "ELEMENTARY",
    "FUNCTIONS",
    "Function",
    "apply_elementwise",
    "apply_graph",
    "convert",
    "multiply_add",
    "register_dtype",
]

HALF: Final = np.dtype(np.float16)
SINGLE: Final = np.dtype(np.float32)
DOUBLE: Final = np.dtype(np.float64)
Types = frozenset[DType]
_REGISTERS: Final[Types] = INTEGER | {HALF, SINGLE, DOUBLE, BOOL}


@dataclass(frozen=True)
class Function:
    """The computation of an operation, and its registers; a `wide` one is long, and for float16 by way of float32."""

    compute: Callable[..., Value]
    accepts: frozenset[DType]
    wide: bool = False

    def __call__(self, *operands: Value) -> Value:
        if self.wide and operands[0].dtype == HALF:
            return self(*[operand.convert(SINGLE) for operand in operands]).convert(HALF)
        result = self.compute(*operands)
        if self.wide and result not in operands:  # as x**1 is x
            result.values.formulas[result] = self.compute, operands
        return result


def _registers(op: type[Op]) -> frozenset[DType]:
    """The types of registers that an op takes: those of the element types that it accepts."""
    accepted: frozenset[DType] = getattr(op, "accepts", _REGISTERS)
    return _REGISTERS & accepted


#: The modules of formulas for float32 and float64.
_FORMULAS: Final = (arctangent, error_function, exponential, logarithm, power, trigonometric)
#: The operations that take many instructions, and have bits of their own.
ELEMENTARY: Final = frozenset({op for module in _FORMULAS for op in module.FORMULAS})
#: By the name of the operation.
FUNCTIONS: Final[dict[str, Function]] = {
    **{op.name: Function(compute, _registers(op)) for op, compute in arithmetic.FORMULAS.items()},
    **{
        op.name: Function(compute, _registers(op), wide=True)
        for module in _FORMULAS
        for op, compute in module.FORMULAS.items()
    },
}
#: Those of complex numbers, likewise.
_COMPLEX_FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    op.name: compute
    for module in (complex_numbers, complex_functions, complex_inverses, complex_power)
    for op, compute in module.FORMULAS.items()
}


def apply_elementwise(op: Op, dtypes: Sequence[DType], operands: Sequence[Value]) -> Value | None:
    """An element-wise operation on elements of these types, as registers hold them (`register_dtype`).

    None for an operation that is not element-wise, or that has no formula for these types: others must do it.
    """
    dtype = dtypes[-1]
    if isinstance(op, ops.BitcastConvert):
        return _bitcast(operands[0], dtype, op.dtype)
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
    return _lower_register(op, dtype, operands)


def _bitcast(x: Value, old: DType, new: DType) -> Value | None:
    """The bits of an element as those of another type; None where the widths differ."""
    if element_type(new).bits != element_type(old).bits:
        return None
    if old == new:
        return x
    # A register for a bool has no bits: in memory it is a byte.
    byte = np.dtype(np.uint8)
    bits = x.convert(byte) if old == BOOL else x
    return bits.bitcast(byte).ne(0) if new == BOOL else bits.bitcast(register_dtype(new))


def _lower_complex(op: Op, operands: Sequence[Value]) -> Value | None:
    if isinstance(op, ops.Compare):
        equal = complex_numbers.equal(*operands)
        return None if op.total_order else equal if op.direction == "EQ" else ~equal
    function = _COMPLEX_FUNCTIONS.get(op.name)
    return None if function is None else function(*operands)


def multiply_add(x: Value, y: Value, addend: Value) -> Value:
    """x y + addend, the products of floats and of parts of complex numbers not rounded before they are added."""
    if x.dtype.kind == "c":
        return complex_numbers.multiply_add(x, y, addend)
    return x.fma(y, addend) if x.dtype.kind == "f" else addend + x * y


def _lower_extended(op: Op, dtype: DType, operands: Sequence[Value]) -> Value | None:
    if isinstance(op, ops.NextAfter):
        return next_after(operands[0], operands[1], dtype)
    if isinstance(op, ops.ReducePrecision):
        return reduce_narrow_precision(operands[0], dtype, op.exponent_bits, op.mantissa_bits)
    if isinstance(op, ops.Compare) and op.total_order:
        return _compare(ops.Compare(op.direction), *[order_of_bits(each, dtype) for each in operands])
    result = _lower_register(op, SINGLE, [widen(operand, dtype) for operand in operands])
    return narrow(result, dtype) if result is not None and result.dtype == SINGLE else result


def _lower_register(op: Op, dtype: DType, operands: Sequence[Value]) -> Value | None:
    if isinstance(op, ops.Compare):
        return _compare(op, *operands)
    if isinstance(op, ops.ReducePrecision):
        return arithmetic.reduce_precision(operands[0], op.exponent_bits, op.mantissa_bits)
    function = FUNCTIONS.get(op.name)
    if function is None:
        return _by_definition(op, dtype, operands)
    return function(*operands) if dtype in function.accepts else None


def _by_definition(op: Op, dtype: DType, operands: Sequence[Value]) -> Value | None:
    """The result of an operation on elements of one type by its decomposition; None if that is not computed here."""
    graph = _definition(op, dtype, len(operands)) if isinstance(op, Elementwise | ops.Clamp) else None
    results = None if graph is None else apply_graph(graph, operands)
    return None if results is None else results[0]


@lru_cache(1024)
def _definition(op: Op, dtype: DType, count: int) -> Graph | None:
    parameters = [parameter(TensorType((), dtype)) for _ in range(count)]
    result = op.decompose(*parameters)
    return None if result is None else Graph(parameters, [result])


def apply_graph(computation: Graph, operands: Sequence[Value]) -> tuple[Value, ...] | None:
    """The results of a graph of scalars; None if an operation in it is not computed here."""
    known = dict(zip(computation.parameters, operands, strict=True))
    values = operands[0].values
    for node in computation.nodes:
        if isinstance(node.op, ops.Constant):
            known[node] = values.constant_of_bytes(node.op.raw, register_dtype(node.dtype))
            continue
        if node.op.graphs or not node.operands or not isinstance(node.type, TensorType):
            return None
        value = apply_elementwise(
            node.op, [each.dtype for each in node.operands], [known[x] for x in node.operands]
        )
        if value is None:
            return None
        known[node] = value
    return tuple(known[result] for result in computation.results)


def _compare(op: ops.Compare, x: Value, y: Value) -> Value:
    if op.total_order:
        x, y = arithmetic.total_order(x), arithmetic.total_order(y)
    compare: Any = getattr(x, op.direction.lower())
    truth: Value = compare(y)
    return truth
