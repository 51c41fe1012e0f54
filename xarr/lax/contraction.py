"""Contractions of the explicit level: dot, dot_general, batch_matmul."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from numpy.typing import DTypeLike

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import canonical
from xarr.errors import InputError, ShapeError
from xarr.ir import ops
from xarr.lax.core import ArrayLike, integers, operands
from xarr.runtime.small_ops import apply_op

#: ((lhs contracting, rhs contracting), (lhs batch, rhs batch))
DotDimensionNumbers: TypeAlias = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]

#: Everything that jax.lax takes for one of XLA's three precisions.
_PRECISIONS: Final = {
    "default": "DEFAULT",
    "fastest": "DEFAULT",
    "bfloat16": "DEFAULT",
    "high": "HIGH",
    "bfloat16_3x": "HIGH",
    "tensorfloat32": "HIGH",
    "highest": "HIGHEST",
    "float32": "HIGHEST",
}


@names_errors
def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sum of products over the last dimension of lhs and the first of rhs.

    lhs, rhs: vectors or matrices of one element type, [n]·[n] -> [], [m,k]·[k] -> [m], [m,k]·[k,n] -> [m,n];
        arrays of any rank with `dimension_numbers`, which are dot_general's.
    precision: None, "default", "high", "highest", an object with such a name, or a pair of these.
    preferred_element_type: the result's element type; by default that of the operands.

    Raises ShapeError [C4] for sizes that differ, ShapeError for other ranks, DTypeError [C5] for two element
    types.  Source: XLA's Dot, with jax.lax's arguments.
    """
    if dimension_numbers is None:
        left, right = operands("dot", lhs, rhs)
        if not (1 <= len(left.shape) <= 2 and 1 <= len(right.shape) <= 2):
            raise ShapeError(
                "dot: wanted vectors or matrices, got "
                f"{left.tensor_type.short()} and {right.tensor_type.short()}; for other ranks say with "
                "dimension_numbers=((lhs contracting, rhs contracting), (lhs batch, rhs batch)) "
                "which dimensions are summed over"
            )
        dimension_numbers = (((len(left.shape) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


@names_errors
def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sum of products over the contracting dimensions, for each index of the batch dimensions.

    dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)), non-negative.
    Other arguments as `dot`.

    Returns an Array of the batch dimensions, then the free ones of lhs, then those of rhs.  Narrow floats
    accumulate in float32, integers wrap, bools combine by "or" of "and".
    Raises ShapeError [C1]-[C4], DTypeError [C5].  Source: XLA's DotGeneral.
    """
    contracting, batching = _pairs(dimension_numbers)
    left, right = operands("dot_general", lhs, rhs)
    dtype = left.dtype if preferred_element_type is None else canonical(preferred_element_type)
    op = ops.DotGeneral(
        lhs_batching_dimensions=batching[0],
        rhs_batching_dimensions=batching[1],
        lhs_contracting_dimensions=contracting[0],
        rhs_contracting_dimensions=contracting[1],
        dtype=dtype,
        precision=precisions("dot_general", precision),
    )
    return apply_op(op, (left, right))


def _pairs(numbers: Any) -> tuple[Any, Any]:
    try:
        (a, b), (c, d) = numbers
        rows = [integers("dot_general", "dimension_numbers", row) for row in (a, b, c, d)]
    except (TypeError, ValueError) as error:
        raise InputError(
            "dot_general: wanted dimension_numbers ((lhs contracting, rhs contracting), "
            f"(lhs batch, rhs batch)), got {numbers!r}"
        ) from error
    return (rows[0], rows[1]), (rows[2], rows[3])


def precisions(name: str, precision: Any) -> tuple[str, str]:
    """The pair of StableHLO's precisions that `precision` means to the op called `name`."""
    if precision is None:
        return ("DEFAULT", "DEFAULT")
    if isinstance(precision, tuple | list):
        if len(precision) != 2:
            raise InputError(f"{name}: wanted a pair of precisions, got {precision!r}")
        return (_precision(name, precision[0]), _precision(name, precision[1]))
    return (_precision(name, precision),) * 2


def _precision(name: str, precision: Any) -> str:
    word = "default" if precision is None else getattr(precision, "name", precision)
    result = _PRECISIONS.get(word.lower()) if isinstance(word, str) else None
    if result is None:
        raise InputError(
            f"{name}: wanted a precision of {', '.join(map(repr, _PRECISIONS))}, got {precision!r}"
        )
    return result


@names_errors
def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: Any = None) -> Array:
    """[…, m, k] x […, k, n] -> […, m, n], with equal leading dimensions.

    Raises ShapeError unless both have one rank of at least 2, and [C3], [C4] for sizes that differ.
    Source: jax.lax.batch_matmul.
    """
    left, right = operands("batch_matmul", lhs, rhs)
    rank = len(left.shape)
    if rank < 2 or len(right.shape) != rank:
        raise ShapeError(
            f"batch_matmul: wanted arrays of one rank of at least 2, got {left.tensor_type.short()} and "
            f"{right.tensor_type.short()}; broadcast_in_dim the leading dimensions"
        )
    batch = tuple(range(rank - 2))
    return dot_general(lhs, rhs, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)
