"""Element-wise functions of the explicit level.

Names and argument order are `jax.lax`'s.  Element types never promote, and Python numbers alone must be of
one kind.  Binary functions and comparisons follow XlaBuilder: scalars broadcast freely, size-1 dimensions
of arrays of equal rank stretch (but not under `broadcasting="explicit"`), and arrays of different rank need
`broadcast_dimensions`, which maps the dimensions of the lower-rank operand, in increasing order, to
dimensions of the higher-rank one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from xarr.base.broadcasting import Alignment, align_xla, stretching_refusal
from xarr.base.configuration import current as config
from xarr.base.host_arrays import SCALARS
from xarr.base.tracebacks import names_errors, shorten
from xarr.base.typing import Array
from xarr.dtypes import (
    COMPLEX,
    FLOAT,
    INTEGER,
    PREDICATE,
    UNSIGNED,
    canonical,
    default_of,
    with_byte_order,
    xla_name,
)
from xarr.errors import (
    BroadcastError,
    BroadcastWarning,
    DTypeError,
    InputError,
    XarrError,
    register_function,
)
from xarr.explanation.errors import broadcast_error
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.source import warn_here, written_operands
from xarr.lax.core import (
    BINARY,
    ArrayLike,
    apply,
    broadcast_node,
    integer,
    integers,
    operands,
    scalar_node,
)
from xarr.runtime.handles import Handle, weak_kind, wrap
from xarr.runtime.small_ops import apply_op

__all__ = [
    "RoundingMethod",
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitcast_convert_type",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clamp",
    "clz",
    "complex",
    "conj",
    "convert_element_type",
    "cos",
    "cosh",
    "div",
    "eq",
    "eq_to",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "ge",
    "ge_to",
    "gt",
    "gt_to",
    "imag",
    "integer_pow",
    "is_finite",
    "le",
    "le_to",
    "log",
    "log1p",
    "logistic",
    "lt",
    "lt_to",
    "max",
    "min",
    "mul",
    "ne",
    "ne_to",
    "neg",
    "nextafter",
    "population_count",
    "pow",
    "real",
    "reciprocal",
    "reduce_precision",
    "rem",
    "round",
    "rsqrt",
    "select",
    "select_n",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "tan",
    "tanh",
]

F = TypeVar("F")
#: Kinds of Python numbers that may have an int as exponent.
_INEXACT: Final = SCALARS[2:]


class BinaryFunction(Protocol):
    """(x, y, broadcast_dimensions=None) -> Array"""

    __name__: str

    def __call__(
        self, x: ArrayLike, y: ArrayLike, broadcast_dimensions: Sequence[int] | None = None
    ) -> Array: ...


UnaryFunction = Callable[[ArrayLike], "Array"]


def unary(op: Op, module: str = __name__) -> UnaryFunction:
    """The lax function of an element-wise op of one operand, in the module that defines it."""

    def function(x: ArrayLike) -> Array:
        try:
            return apply(op, x)
        except XarrError as error:
            shorten(error, op.lax_name)
            raise

    function.__module__ = module
    return _document(function, op, "x: array of shape S, or a scalar.\n\nReturns an Array of shape S.")


def _binary(op: Op) -> BinaryFunction:
    def function(x: ArrayLike, y: ArrayLike, broadcast_dimensions: Sequence[int] | None = None) -> Array:
        try:
            lhs, rhs = operands(op.lax_name, x, y)
            if lhs.type is not rhs.type or broadcast_dimensions is not None:
                lhs, rhs = _align(op, lhs, rhs, broadcast_dimensions)
            return apply_op(op, (lhs, rhs))
        except XarrError as error:
            shorten(error, op.lax_name)
            raise

    BINARY[function] = op
    return _document(
        function,
        op,
        "x, y: arrays of one element type, or Python scalars.\n"
        "broadcast_dimensions: for arrays of different rank, where each dimension of the lower-rank one goes.\n\n"
        "Raises BroadcastError [B1]-[B5] for shapes that do not fit, DTypeError for element types.",
    )


def _document(function: F, op: Op, arguments: str) -> F:
    summary = (type(op).__doc__ or "").strip()
    function.__name__ = function.__qualname__ = register_function(op.lax_name)  # type: ignore[attr-defined]
    source = "CHLO" if op.name.startswith("chlo.") else "the StableHLO specification"
    function.__doc__ = f"{summary}\n\n{arguments}\n\nSource: {op.name} of {source}."
    return function


def _align(op: Op, lhs: Node, rhs: Node, dimensions: Sequence[int] | None) -> tuple[Node, Node]:
    dims = None if dimensions is None else integers(op.lax_name, "broadcast_dimensions", dimensions)
    try:
        alignment = align_xla(lhs.shape, rhs.shape, dims)
    except BroadcastError:
        dtypes = (xla_name(lhs.dtype), xla_name(rhs.dtype))
        raise broadcast_error(
            op.lax_name, (lhs.shape, rhs.shape), written_operands(2), dtypes, dims, explicit=True
        ) from None
    if config.broadcasting in ("explicit", "warn"):
        _keep_explicit(op, (lhs, rhs), alignment, dims)
    left, right = alignment.dimensions
    return broadcast_node(lhs, alignment.result, left), broadcast_node(rhs, alignment.result, right)


def _keep_explicit(
    op: Op, nodes: tuple[Node, Node], alignment: Alignment, dims: tuple[int, ...] | None
) -> None:
    """Refuse, or under "warn" announce, that an axis of size 1 is stretched."""
    names = written_operands(2)
    refused = stretching_refusal(alignment, names or ("a", "b"))
    if refused is None:
        return
    dtypes = tuple(xla_name(node.dtype) for node in nodes)
    error = broadcast_error(
        op.lax_name, alignment.operands, names, dtypes, dims, explicit=True, problem=refused
    )
    if config.broadcasting == "explicit":
        raise error
    warn_here(error.explanation.text(), BroadcastWarning)


class RoundingMethod(Enum):
    """Where `round` sends ties."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


abs = unary(ops.Abs())
acos = unary(ops.Acos())
acosh = unary(ops.Acosh())
asin = unary(ops.Asin())
asinh = unary(ops.Asinh())
atan = unary(ops.Atan())
atanh = unary(ops.Atanh())
bitwise_not = unary(ops.Not())
cbrt = unary(ops.Cbrt())
ceil = unary(ops.Ceil())
clz = unary(ops.CountLeadingZeros())
cos = unary(ops.Cosine())
cosh = unary(ops.Cosh())
exp = unary(ops.Exponential())
expm1 = unary(ops.ExponentialMinusOne())
floor = unary(ops.Floor())
imag = unary(ops.Imag())
is_finite = unary(ops.IsFinite())
log = unary(ops.Log())
log1p = unary(ops.LogPlusOne())
logistic = unary(ops.Logistic())
neg = unary(ops.Negate())
population_count = unary(ops.Popcnt())
real = unary(ops.Real())
rsqrt = unary(ops.Rsqrt())
sin = unary(ops.Sine())
sinh = unary(ops.Sinh())
sqrt = unary(ops.Sqrt())
tan = unary(ops.Tan())
tanh = unary(ops.Tanh())

add = _binary(ops.Add())
atan2 = _binary(ops.Atan2())
bitwise_and = _binary(ops.And())
bitwise_or = _binary(ops.Or())
bitwise_xor = _binary(ops.Xor())
complex = _binary(ops.Complex())
div = _binary(ops.Divide())
max = _binary(ops.Maximum())
min = _binary(ops.Minimum())
_product = _binary(ops.Multiply())
nextafter = _binary(ops.NextAfter())
_power = _binary(ops.Power())
rem = _binary(ops.Remainder())
shift_left = _binary(ops.ShiftLeft())
shift_right_arithmetic = _binary(ops.ShiftRightArithmetic())
shift_right_logical = _binary(ops.ShiftRightLogical())
sub = _binary(ops.Subtract())

eq = _binary(ops.Compare("EQ"))
ge = _binary(ops.Compare("GE"))
gt = _binary(ops.Compare("GT"))
le = _binary(ops.Compare("LE"))
lt = _binary(ops.Compare("LT"))
ne = _binary(ops.Compare("NE"))
eq_to = _binary(ops.Compare("EQ", total_order=True))
ge_to = _binary(ops.Compare("GE", total_order=True))
gt_to = _binary(ops.Compare("GT", total_order=True))
le_to = _binary(ops.Compare("LE", total_order=True))
lt_to = _binary(ops.Compare("LT", total_order=True))
ne_to = _binary(ops.Compare("NE", total_order=True))


@names_errors
def mul(
    x: ArrayLike,
    y: ArrayLike,
    broadcast_dimensions: Sequence[int] | None = None,
    *,
    out_dtype: DTypeLike | None = None,
) -> Array:
    """The product of x and y.

    x, y: arrays of one element type, or Python scalars.
    broadcast_dimensions: for arrays of different rank, where each dimension of the lower-rank one goes.
    out_dtype: the element type to which x and y are converted before they are multiplied.

    Raises BroadcastError [B1]-[B5] for shapes that do not fit, DTypeError for element types.
    Source: stablehlo.multiply of the StableHLO specification; jax.lax.mul.
    """
    if out_dtype is None:
        return _product(x, y, broadcast_dimensions)
    lhs, rhs = operands("mul", x, y)
    if lhs.dtype != rhs.dtype:
        return _product(x, y, broadcast_dimensions)  # which refuses them
    first, second = (convert_element_type(wrap(node), out_dtype) for node in (lhs, rhs))
    return _product(first, second, broadcast_dimensions)


BINARY[mul] = ops.Multiply()


@names_errors
def sign(x: ArrayLike) -> Array:
    """-1, -0.0, +0.0, 1 or NaN; 0 or 1 for unsigned integers; x / |x| for complex x, 0 at 0.

    x: array of shape S, or a scalar.

    Returns an Array of shape S.

    Source: stablehlo.sign of the StableHLO specification; jax.lax for unsigned integers.
    """
    (node,) = operands("sign", x)
    return convert_element_type(ne(x, 0), node.dtype) if node.dtype in UNSIGNED else apply(ops.Sign(), x)


@names_errors
def pow(x: ArrayLike, y: ArrayLike, broadcast_dimensions: Sequence[int] | None = None) -> Array:
    """x to the power y.  Integers wrap; a negative integer exponent gives 0, but 1 and -1 keep their size.

    x, y: arrays of one element type, or Python scalars; y may also be an integer beside floats, array or not.
    broadcast_dimensions: for arrays of different rank, where each dimension of the lower-rank one goes.

    Raises BroadcastError [B1]-[B5] for shapes that do not fit, DTypeError for element types.

    Source: stablehlo.power of the StableHLO specification; jax.lax for the integer exponents.
    """
    kind, base, exponent = weak_kind(x), _dtype(x), _dtype(y)
    if kind is not None and kind in _INEXACT and weak_kind(y) is int:
        y = convert_element_type(y, default_of(kind))
    if base is not None and base not in INTEGER and exponent is not None and exponent in INTEGER:
        y = convert_element_type(y, base)
    return _power(x, y, broadcast_dimensions)


def _dtype(value: ArrayLike) -> np.dtype[Any] | None:
    """The element type of an array; None for Python scalars and sequences, which adapt."""
    dtype = value._node.dtype if isinstance(value, Handle) else getattr(value, "dtype", None)
    return None if dtype is None else canonical(dtype)


@names_errors
def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer of each element, as a float; ties go where `rounding_method` says.

    Raises InputError for what is no RoundingMethod.  Source: XLA's Round and RoundNearestEven.
    """
    try:
        method = RoundingMethod(rounding_method)
    except ValueError:
        raise InputError(
            f"round: wanted a rounding_method of {', '.join(map(str, RoundingMethod))}, got {rounding_method!r}; "
            "xarr.round rounds to a number of decimals"
        ) from None
    if method is RoundingMethod.AWAY_FROM_ZERO:
        return apply(ops.RoundNearestAfz(), x)
    return apply(ops.RoundNearestEven(), x)


@names_errors
def square(x: ArrayLike) -> Array:
    """x * x; (a - b) (a + b) + 2 a b i for complex a + b i, whose parts overflow only if the result does.

    Source: jax.lax.square.
    """
    (node,) = operands("square", x)
    if node.dtype not in COMPLEX:
        return mul(x, x)
    a, b = real(x), imag(x)
    product = mul(a, b)
    # The sum of two large equal parts may be infinite, times a difference of 0.
    is_diagonal = bitwise_and(eq(abs(a), abs(b)), is_finite(a))
    return complex(select(is_diagonal, sub(a, a), mul(sub(a, b), add(a, b))), add(product, product))


@names_errors
def exp2(x: ArrayLike) -> Array:
    """2 to the power x, as jax.lax computes it: exp(x log 2), of floats and complexes.

    Source: jax.lax.exp2.
    """
    (node,) = operands("exp2", x)
    if node.dtype not in FLOAT | COMPLEX:
        raise DTypeError(
            f"exp2: wanted floats or complexes, got {node.tensor_type.short()}; convert_element_type"
        )
    return exp(mul(x, math.log(2.0)))


@names_errors
def reciprocal(x: ArrayLike) -> Array:
    """1 / x, of floats and complexes.  Source: jax.lax.reciprocal."""
    return div(1.0, x)


@names_errors
def conj(x: ArrayLike) -> Array:
    """Complex conjugate; the complex number x + 0i for a real x.  Source: XLA's Conj."""
    (node,) = operands("conj", x)
    return complex(real(x), neg(imag(x))) if node.dtype in COMPLEX else complex(x, 0.0)


@names_errors
def integer_pow(x: ArrayLike, y: int) -> Array:
    """x ** y for a Python int y, by repeated squaring; 1 / x ** -y for a negative one (floats only).

    x ** 0 is 1 whatever x, NaN included.  Source: jax.lax.integer_pow.
    """
    exponent = integer("integer_pow", "y", y)
    if exponent < 0:
        return reciprocal(integer_pow(x, -exponent))
    (node,) = operands("integer_pow", x)
    if exponent == 0:
        return wrap(broadcast_node(scalar_node(1, node.dtype), node.shape, ()))
    base, result = wrap(node), None
    # From the lowest bit of the exponent up, as jax.lax does it: the other order rounds otherwise.
    for number, bit in enumerate(bin(exponent)[:1:-1]):
        base = mul(base, base) if number else base
        if bit == "1":
            result = base if result is None else mul(result, base)
    assert result is not None
    return result


@names_errors
def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Elements as `new_dtype`.

    Floats become integers by dropping the fraction; NaN becomes 0 and what is out of range goes to the
    nearest end of the type.  Integers wrap.  Complex numbers lose their imaginary part on the way to a
    real type.  Source: XLA's ConvertElementType.
    """
    return apply(ops.Convert(canonical(new_dtype)), operand)


@names_errors
def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Reinterpret the bits as `new_dtype`; a change of width adds or removes the last dimension.

    Raises ShapeError [C2] if the last dimension does not hold one element of a wider type, DTypeError for a type of
    another byte order than the machine's.  Source: XLA's BitcastConvertType.
    """
    if with_byte_order(new_dtype) != canonical(new_dtype):
        raise DTypeError(
            f"bitcast_convert_type: wanted a type of the machine's byte order, got {new_dtype!r}; "
            "xarr.frombuffer(x.tobytes(), dtype) reads bytes in another one"
        )
    return apply(ops.BitcastConvert(canonical(new_dtype)), operand)


@names_errors
def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round floats to a format with these exponent and mantissa bits, and back to their own.

    Source: XLA's ReducePrecision.
    """
    exponent = integer("reduce_precision", "exponent_bits", exponent_bits)
    return apply(
        ops.ReducePrecision(exponent, integer("reduce_precision", "mantissa_bits", mantissa_bits)), operand
    )


@names_errors
def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """on_true where pred holds, else on_false.

    pred: bool array of the shape of the others, or a bool scalar.  Source: XLA's Select.
    """
    (condition,) = operands("select", pred)
    yes, no = operands("select", on_true, on_false)
    if condition.shape == () and yes.shape != ():
        condition = broadcast_node(condition, yes.shape, ())
    return apply_op(ops.Select(), (condition, yes, no))


@names_errors
def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """cases[which], element by element.

    which: bool (for at most two cases) or integer array of the shape of the cases, or a scalar.
    Raises InputError without cases, DTypeError for other indices.  An index out of range takes the nearest
    case, as XLA does.  Source: jax.lax.select_n.
    """
    if not cases:
        raise InputError("select_n: wanted at least one case, got none")
    (index,) = operands("select_n", which)
    if index.dtype != PREDICATE and index.dtype not in INTEGER:
        raise DTypeError(f"select_n: wanted which to be bools or integers, got {index.type.short()}")
    if len(cases) == 1:
        return select(True, cases[0], cases[0])
    if index.dtype == PREDICATE:
        if len(cases) > 2:
            raise InputError(f"select_n: a bool chooses between two cases, got {len(cases)}")
        return select(which, cases[1], cases[0])
    result = cases[-1]
    for number in reversed(range(len(cases) - 1)):
        result = select(le(which, number), cases[number], result)
    return result  # type: ignore[no-any-return]


@names_errors
def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Elements of x, but not below `min` nor above `max`.

    min, max: arrays of the shape of x, or scalars.  Source: XLA's Clamp.
    """
    operand, low, high = operands("clamp", x, min, max)
    bounds = [broadcast_node(b, operand.shape, ()) if b.shape == () else b for b in (low, high)]
    return apply_op(ops.Clamp(), (bounds[0], operand, bounds[1]))
