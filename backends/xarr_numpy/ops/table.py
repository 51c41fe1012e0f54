"""How each op is written as a NumPy expression: the backend's table.  Absence means "decompose or refuse"."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.compiler.plan.program_plan import Step
from xarr.dtypes import BOOL, COMPLEX, EXTENDED_FLOAT, FLOAT, INTEGER, SUB_BYTE
from xarr.ir import ops
from xarr.ir.graph import Graph, parameter
from xarr.ir.ops.elementwise import DIRECTIONS, numpy_functions, regular_ops
from xarr_numpy.functions import (
    complex_functions,
    conversion,
    floating_point,
    integer_arithmetic,
    iota_and_pad,
    results,
)
from xarr_numpy.ops import (
    ciphers,
    collectives,
    contraction,
    control,
    convolution,
    factorisations,
    indexing,
    linear_algebra,
    reductions,
    windows,
)
from xarr_numpy.ops.table_rows import Rows, Writer
from xarr_numpy.sorts import sorting

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter


def elementwise(
    template: str, integer: str | None = None, real: str | None = None, complex: str | None = None
) -> Writer:
    """Rows of operations that NumPy broadcasts by itself, with templates of their own for some operands."""

    def write(emitter: Emitter, step: Step) -> str:
        dtype = emitter.type(step.inputs[0]).dtype
        own = (
            integer if dtype in INTEGER else real if dtype in FLOAT else complex if dtype in COMPLEX else None
        )
        return (own or template).format(*broadcast_operands(emitter, step), op=step.op)

    return write


def broadcast_operands(emitter: Emitter, step: Step) -> list[str]:
    """The names of operands that NumPy broadcasts to each other.

    The result is an unmaterialised broadcast if every operand is.  Otherwise some operand has the full shape, and so
    the result.
    """
    if emitter.broadcasts.issuperset(step.inputs):
        emitter.mark_broadcast(step)
        if emitter.scalars.issuperset(step.inputs):
            emitter.scalars.update(step.outputs)
    return [emitter.buffer_name(number) for number in step.inputs]


def plain(template: str) -> Writer:
    """Rows of operations that need their operands whole."""

    def write(emitter: Emitter, step: Step) -> str:
        return template.format(*emitter.operands(step), op=step.op)

    return write


def _compare(emitter: Emitter, step: Step) -> str:
    assert isinstance(step.op, ops.Compare)
    x, y = broadcast_operands(emitter, step)
    ufunc = f"np.{DIRECTIONS[step.op.direction]}"
    if step.op.total_order:
        x, y = f"comparison_order({x})", f"comparison_order({y})"
    return f"{ufunc}({x}, {y})"


#: Element types whose finite numbers stand in a program as they are.
_LITERAL: Final = (BOOL | INTEGER | FLOAT) - EXTENDED_FLOAT


def literal(emitter: Emitter, constant: ops.Constant) -> str:
    """The expression for a constant."""
    text = None if constant.type.shape else _number(constant)
    return emitter.constant(constant.array) if text is None else text


@lru_cache(4096)
def _number(constant: ops.Constant) -> str | None:
    """The expression for a number; None if it has no literal."""
    number = constant.array
    is_literal = number.dtype in _LITERAL and np.isfinite(number)
    return f"np.{number.dtype.name}({number.item()!r})" if is_literal else None


def _iota(emitter: Emitter, step: Step) -> str:
    if reductions.counts_only(emitter.plan, step.outputs[0]):
        return "None"
    emitter.mark_broadcast(step)
    type = emitter.result_type(step)
    return f"iota({type.shape}, {step.op.expect(ops.Iota).dimension}, {emitter.constant(type.dtype)})"


def _broadcast_in_dim(emitter: Emitter, step: Step) -> str:
    assert isinstance(step.op, ops.BroadcastInDim)
    (operand,) = step.inputs
    emitter.mark_broadcast(step)
    name, dims, axes = emitter.buffer_name(operand), step.op.broadcast_dimensions, range(len(step.op.shape))
    if not dims or operand in emitter.scalars:
        emitter.scalars.update(step.outputs)
        return name
    if dims == tuple(axes):
        return name
    return f"{name}[{', '.join([':' if axis in dims else 'None' for axis in axes])}]"


def _slice(emitter: Emitter, step: Step) -> str:
    op = step.op.expect(ops.Slice)
    rows = zip(op.start_indices, op.limit_indices, op.strides, strict=True)
    index = ", ".join(f"{start}:{limit}" + (f":{step}" if step != 1 else "") for start, limit, step in rows)
    return f"{emitter.value(step.inputs[0])}[{index or '...'}]"


def _reverse(emitter: Emitter, step: Step) -> str:
    axes = range(len(emitter.result_type(step).shape))
    index = ", ".join("::-1" if axis in step.op.expect(ops.Reverse).dimensions else ":" for axis in axes)
    return f"{emitter.value(step.inputs[0])}[{index or '...'}]"


def _convert(emitter: Emitter, step: Step) -> str:
    (name,) = broadcast_operands(emitter, step)
    old, new = emitter.type(step.inputs[0]).dtype, emitter.result_type(step).dtype
    if (old in FLOAT | COMPLEX and new not in FLOAT | COMPLEX) or (old in COMPLEX and new not in COMPLEX):
        return f"convert({name}, {emitter.constant(new)})"
    if new in EXTENDED_FLOAT or old in SUB_BYTE or new in SUB_BYTE:
        return f"convert({name}, {emitter.constant(new)})"
    return f"{name}.astype({emitter.constant(new)})"


def _concatenate(emitter: Emitter, step: Step) -> str:
    return f"np.concatenate([{emitter.values(step.inputs)}], {step.op.expect(ops.Concatenate).dimension})"


def _by_parts(emitter: Emitter, step: Step) -> str:
    """Write an op that NumPy has no function for by those that it is defined by: compiled loops have it whole."""
    parameters = [parameter(type) for type in emitter.types(step.inputs)]
    parts = step.op.decompose(*parameters)
    assert parts is not None, f"{step.op.name} is not composite"
    function = emitter.function(Graph(parameters, [parts]))
    return f"{function}({emitter.values(step.inputs)})[0]"


def _bitcast(emitter: Emitter, step: Step) -> str:
    return f"bitcast({emitter.value(step.inputs[0])}, {emitter.constant(emitter.result_type(step).dtype)})"


def _numpy_call(op: type[ops.Elementwise], name: str) -> Writer:
    """The row of an operation that one function of NumPy's is."""
    operands = ", ".join(f"{{{number}}}" for number in range(op.arity))
    return elementwise(f"np.{name}({operands})")


#: The rows of operations that one function of NumPy's is.
_NUMPY_CALLS: Final[Rows] = {op: _numpy_call(op, name) for op, name in numpy_functions().items()}

TABLE: Final[Rows] = {
    **_NUMPY_CALLS,
    **{op: _by_parts for op in regular_ops() if op.has_formula},
    # creation
    ops.Iota: _iota,
    # unary
    ops.CountLeadingZeros: elementwise("count_leading_zeros({0})"),
    ops.ExponentialMinusOne: elementwise("np.expm1({0})", complex="complex_expm1({0})"),
    ops.Imag: elementwise("imag({0})"),
    ops.LogPlusOne: elementwise("np.log1p({0})", complex="complex_log1p({0})"),
    ops.Logistic: elementwise("logistic({0})"),
    ops.Popcnt: elementwise("popcnt({0})"),
    ops.RoundNearestAfz: elementwise("round_away({0})"),
    ops.Rsqrt: elementwise("rsqrt({0})", complex="complex_rsqrt({0})"),
    ops.Sign: elementwise("sign({0})", integer="np.sign({0})", complex="complex_sign({0})"),
    # binary
    ops.Compare: _compare,
    ops.Complex: elementwise("make_complex({0}, {1})"),
    ops.Divide: elementwise(
        "np.true_divide({0}, {1})", integer="integer_divide({0}, {1})", complex="complex_divide({0}, {1})"
    ),
    ops.Maximum: elementwise(
        "np.maximum({0}, {1})", real="maximum({0}, {1})", complex="np.maximum({1}, {0})"
    ),
    ops.Minimum: elementwise(
        "np.minimum({0}, {1})", real="minimum({0}, {1})", complex="np.minimum({1}, {0})"
    ),
    ops.NextAfter: elementwise("next_after({0}, {1})"),
    ops.Power: elementwise("power({0}, {1})", integer="integer_power({0}, {1})"),
    ops.Remainder: elementwise("np.fmod({0}, {1})", integer="integer_remainder({0}, {1})"),
    ops.ShiftLeft: elementwise("shift_left({0}, {1})"),
    ops.ShiftRightArithmetic: elementwise("shift_right_arithmetic({0}, {1})"),
    ops.ShiftRightLogical: elementwise("shift_right_logical({0}, {1})"),
    # the irregular element-wise ones
    ops.Select: elementwise("np.where({0}, {1}, {2})"),
    ops.Clamp: elementwise("np.minimum(np.maximum({1}, {0}), {2})", real="clamp({0}, {1}, {2})"),
    ops.Convert: _convert,
    ops.BitcastConvert: _bitcast,
    ops.ReducePrecision: elementwise("reduce_precision({0}, {op.exponent_bits}, {op.mantissa_bits})"),
    # movement
    ops.BroadcastInDim: _broadcast_in_dim,
    ops.Concatenate: _concatenate,
    ops.Pad: plain("pad({0}, {1}, {op.low}, {op.high}, {op.interior})"),
    ops.Reshape: plain("np.reshape({0}, {op.shape})"),
    ops.Reverse: _reverse,
    ops.Slice: _slice,
    ops.Transpose: plain("np.transpose({0}, {op.permutation})"),
    **reductions.ROWS,
    **contraction.ROWS,
    **convolution.ROWS,
    **sorting.ROWS,
    **indexing.ROWS,
    **windows.ROWS,
    **control.ROWS,
    **collectives.ROWS,
    **ciphers.ROWS,
    **linear_algebra.ROWS,
    **factorisations.ROWS,
}

#: The universal functions of NumPy's that operations are whatever their operands, which have one shape: each makes a
#: new array, where `np.real`, no such function, makes a view.
NUMPY_FUNCTIONS: Final[dict[type[ops.Elementwise], np.ufunc]] = {
    op: function
    for op, name in numpy_functions().items()
    if TABLE[op] is _NUMPY_CALLS[op] and isinstance(function := getattr(np, name), np.ufunc)
}

#: What the written expressions can call.
SCOPE: Final[dict[str, Any]] = {
    "np": np,
    **results.SCOPE,
    **conversion.SCOPE,
    **iota_and_pad.SCOPE,
    **floating_point.SCOPE,
    **complex_functions.SCOPE,
    **integer_arithmetic.SCOPE,
    **reductions.SCOPE,
    **contraction.SCOPE,
    **convolution.SCOPE,
    **sorting.SCOPE,
    **indexing.SCOPE,
    **windows.SCOPE,
    **control.SCOPE,
    **collectives.SCOPE,
    **ciphers.SCOPE,
    **linear_algebra.SCOPE,
    **factorisations.SCOPE,
}
