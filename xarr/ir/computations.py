"""Scalar computations that ops carry, in the one form that backends recognise, and what recognises them.

Built without repeated subexpressions, so that simplifying one changes nothing.  Each is built once for an element
type and knows no line of the user's: the operation that carries it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import ml_dtypes
import numpy as np

from xarr.dtypes import COMPLEX, FLOAT, INTEGER
from xarr.ir.constants import constant
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.ops import (
    Abs,
    Add,
    And,
    Binary,
    Compare,
    Complex,
    Exponential,
    Imag,
    Iota,
    LogPlusOne,
    Maximum,
    Multiply,
    Negate,
    Or,
    Real,
    Reduce,
    Remainder,
    Select,
    Subtract,
)
from xarr.ir.types import TensorType

DType = np.dtype[Any]
Constants = dict[DType, tuple[Node, Node]]

_WITHOUT_ZERO: Final = np.dtype(ml_dtypes.float8_e8m0fnu)


def scalars(*dtypes: DType) -> tuple[Node, ...]:
    """New scalar parameters."""
    return tuple(parameter(TensorType((), dtype)) for dtype in dtypes)


def _without_lines(graph: Graph) -> Graph:
    for node in (*graph.parameters, *graph.nodes):
        node.forget_source()
    return graph


@lru_cache(maxsize=256)
def combiner(op: Op, dtype: DType) -> Graph:
    """(a, b) -> op(a, b)."""
    a, b = scalars(dtype, dtype)
    return _without_lines(Graph((a, b), [Node(op, (a, b))], "combiner"))


@lru_cache(maxsize=64)
def second(dtype: DType) -> Graph:
    """(a, b) -> b."""
    a, b = scalars(dtype, dtype)
    return _without_lines(Graph((a, b), [b], "replace"))


@lru_cache(maxsize=256)
def arg_extremum(direction: str, dtype: DType, index_dtype: DType) -> Graph:
    """(value a, index a, value b, index b) -> the pair whose value is ahead in `direction`, "GT" or "LT".

    NaN is ahead of everything and the first NaN of all; of equal values the lesser index counts.
    Source: jax.lax.argmax.
    """
    a, i, b, j = scalars(dtype, index_dtype, dtype, index_dtype)
    pick = Node(Or(), (Node(Compare(direction), (a, b)), Node(Compare("NE"), (a, a))))
    first = Node(And(), (Node(Compare("EQ"), (a, b)), Node(Compare("LT"), (i, j))))
    value = Node(Select(), (pick, a, b))
    index = Node(Select(), (Node(Or(), (pick, first)), i, j))
    return _without_lines(Graph((a, i, b, j), (value, index), "arg_extremum"))


def lexicographic(dtypes: Sequence[DType], num_keys: int) -> Graph:
    """(a0, b0, a1, b1 …) -> whether a goes before b by the first `num_keys` pairs, ascending.

    Floats are in total order but for -0 = +0 and for all NaNs, which are equal and last; complex
    numbers go by real part, then imaginary part.  Source: jax.lax.sort.
    """
    return _lexicographic(tuple(dtypes), num_keys)


@lru_cache(maxsize=256)
def _lexicographic(dtypes: tuple[DType, ...], num_keys: int) -> Graph:
    parameters = scalars(*[dtype for dtype in dtypes for _ in range(2)])
    constants: Constants = {}
    pairs = zip(parameters[: 2 * num_keys : 2], parameters[1 : 2 * num_keys : 2], strict=True)
    keys = [key for a, b in pairs for key in zip(_parts(a), _parts(b), strict=True)]
    result: Node | None = None
    for x, y in reversed([(_canonical(x, constants), _canonical(y, constants)) for x, y in keys]):
        total = x.dtype in FLOAT
        before = Node(Compare("LT", total), (x, y))
        if result is not None:
            before = Node(Or(), (before, Node(And(), (Node(Compare("EQ", total), (x, y)), result))))
        result = before
    assert result is not None
    return _without_lines(Graph(parameters, [result], "comparator"))


def _parts(x: Node) -> tuple[Node, ...]:
    return (Node(Real(), (x,)), Node(Imag(), (x,))) if x.dtype in COMPLEX else (x,)


def _canonical(x: Node, constants: Constants) -> Node:
    """`x` with one representation of zero and one of NaN, if it is a float."""
    if x.dtype not in FLOAT:
        return x
    if x.dtype not in constants:
        zero, nan = (constant(value, x.dtype) for value in (0.0, np.nan))
        constants[x.dtype] = zero, nan
    zero, nan = constants[x.dtype]
    if x.dtype != _WITHOUT_ZERO:
        x = Node(Select(), (Node(Compare("EQ"), (x, zero)), zero, x))
    return Node(Select(), (Node(Compare("NE"), (x, x)), nan, x))


@lru_cache(maxsize=64)
def log_add_exp(dtype: DType) -> Graph:
    """(a, b) -> log(exp(a) + exp(b)) without overflow, for floats and complex numbers.

    Equal infinities and NaN give a + b.  The imaginary part of a complex result lies in [-pi, pi).
    Source: jax.numpy.logaddexp.
    """
    a, b = scalars(dtype, dtype)
    larger, total = Node(Maximum(), (a, b)), Node(Add(), (a, b))
    if dtype in COMPLEX:
        twice = Node(Multiply(), (larger, constant(2, dtype)))
        total_exp = _log_one_plus_exp(larger, Node(Subtract(), (total, twice)))
        angle = _in_one_turn(Node(Imag(), (total_exp,)))
        result = Node(Complex(), (Node(Real(), (total_exp,)), angle))
        return _without_lines(Graph((a, b), [result], "log_add_exp"))
    apart = Node(Subtract(), (a, b))
    total_exp = _log_one_plus_exp(larger, Node(Negate(), (Node(Abs(), (apart,)),)))
    is_nan = Node(Compare("NE"), (apart, apart))
    return _without_lines(Graph((a, b), [Node(Select(), (is_nan, total, total_exp))], "log_add_exp"))


def _log_one_plus_exp(base: Node, exponent: Node) -> Node:
    """base + log(1 + exp(exponent))"""
    return Node(Add(), (base, Node(LogPlusOne(), (Node(Exponential(), (exponent,)),))))


def _in_one_turn(angle: Node) -> Node:
    """Reduce an angle to [-pi, pi)."""
    half, full_circle, zero = (constant(value, angle.dtype) for value in (np.pi, 2 * np.pi, 0))
    rest = Node(Remainder(), (Node(Add(), (angle, half)), full_circle))
    below = Node(Compare("LT"), (rest, zero))
    return Node(Subtract(), (Node(Select(), (below, Node(Add(), (rest, full_circle)), rest)), half))


@lru_cache(maxsize=64)
def descending(dtype: DType, other: DType) -> Graph:
    """(a, b, c, d) -> a > b, floats in total order: the comparator of a sort by one of two arrays."""
    a, b, c, d = scalars(dtype, dtype, other, other)
    greater = Node(Compare("GT", dtype in FLOAT), (a, b))
    return _without_lines(Graph((a, b, c, d), [greater], "comparator"))


# --- which computation it is -------------------------------------------------------------------------


@lru_cache(1024)
def monoids(computation: Graph) -> tuple[type[Binary], ...] | None:
    """For each array the operation that combines it, in any order, if that is all that the computation does."""
    count = len(computation.results)
    parameters = computation.parameters
    combiners = []
    for k, node in enumerate(computation.results):
        op = node.op
        if not isinstance(op, Binary) or not (op.associative and op.commutative):
            return None
        if set(node.operands) != {parameters[k], parameters[count + k]}:
            return None
        combiners.append(type(op))
    return tuple(combiners)


def commutes(computation: Graph) -> bool:
    """Whether a computation is known to give the same for (a, b) as for (b, a)."""
    if monoids(computation) is not None:
        return True
    dtype = computation.results[0].dtype
    return dtype in FLOAT and computation == log_add_exp(dtype)


def arg_direction(node: Node) -> str | None:
    """The direction of `arg_extremum` if a Reduce is by that, over indices that count along the one dimension."""
    op = node.op.expect(Reduce)
    if len(node.operands) != 4 or len(op.dimensions) != 1:
        return None
    values, indices = node.operands[:2]
    counter, axis = indices.op, op.dimensions[0]
    if not isinstance(counter, Iota) or counter.dimension != axis or indices.dtype not in INTEGER:
        return None
    if not 0 < values.shape[axis] <= np.iinfo(indices.dtype).max + 1:
        return None
    for direction in ("GT", "LT"):
        if op.computation == arg_extremum(direction, values.dtype, indices.dtype):
            return direction
    return None
