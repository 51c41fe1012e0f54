"""Small graphs, at least one for every operation, with inputs and what they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.support.factor_cases import FACTORS
from tests.support.graph_parts import (
    Array as Array,
    Case as Case,
    add as add,
    constant as constant,
    data as data,
    graph as graph,
    less as less,
    node as node,
    on_numpy as on_numpy,
    part as part,
    parts as parts,
    scalars as scalars,
    tensor as tensor,
)
from tests.support.operations import own_operations
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.types import TensorType

DTYPES = tuple(
    np.dtype(name)
    for name in (
        *("bool", "int8", "int32", "int64", "uint8", "uint32", "uint64", "float16", "bfloat16"),
        *("float32", "float64", "complex64", "complex128"),
    )
)
PRED, S32, F32 = np.dtype(np.bool_), np.dtype(np.int32), np.dtype(np.float32)
SPECIAL = (ops.BesselI1e, ops.Digamma, ops.Erf, ops.Erfc, ops.ErfInv, ops.Lgamma)


_POSITIVE = (ops.Log, ops.Power, ops.Remainder, ops.Rsqrt, ops.Sqrt, ops.Divide)
_UNIT = (ops.Acos, ops.Asin, ops.Atanh)


def _range(op: type[Op]) -> tuple[float, float]:
    """Intervals to take operands from, so that most results are finite."""
    if op in _POSITIVE:
        return 0.1, 4
    if op in _UNIT:
        return -0.9, 0.9
    return {ops.Acosh: (1.1, 4.0), ops.LogPlusOne: (-0.9, 4.0)}.get(op, (-4.0, 4.0))


def sample(type: TensorType, low: float, high: float, seed: int) -> Array:
    """Pseudo-random values, equal ones for the same arguments."""
    random = np.random.default_rng(seed)
    values = random.uniform(low, high, (2, *type.shape))
    if type.dtype.kind in "bu":
        return np.abs(values[0] * (1 if type.dtype.kind == "u" else values[0] > 0)).astype(type.dtype)
    return (values[0] + 1j * values[1] if type.dtype.kind == "c" else values[0]).astype(type.dtype)


def regular(op: Any) -> Case:
    """An element-wise op on arrays of every element type that it accepts."""
    applied = op("LE") if op is ops.Compare else op()
    types = [tensor(dtype, 2, 3) for dtype in DTYPES if dtype in op.accepts]
    if op is ops.Compare:
        types = [type for type in types if type.dtype.kind != "c"]
    operands = [type for type in types for _ in range(op.arity)]

    def rows(*nodes: Node) -> tuple[Node, ...]:
        starts = range(0, len(nodes), op.arity)
        return tuple(node(applied, *nodes[start : start + op.arity]) for start in starts)

    inputs = tuple(sample(type, *_range(op), seed) for seed, type in enumerate(operands))
    return Case(graph(rows, *operands), inputs)


REGULAR = {op.__name__: regular(op) for op in own_operations(ops.Elementwise)}

MATRIX = np.array([[3, 1, 2], [6, 5, 4]], np.float32)
ROW = np.array([10, 20, 30], np.float32)
M, V = tensor(F32, 2, 3), tensor(F32, 3)
SUM = scalars(add, F32, F32)


def on_matrix(op: Op, *more: Node, inputs: tuple[Array, ...] = (MATRIX,)) -> Case:
    """An op on the matrix, and on constants `more`."""
    return Case(graph(lambda x: node(op, x, *more), M), inputs)


def _select(pred: Node, x: Node, y: Node) -> Node:
    return node(ops.Select(), pred, x, y)


IRREGULAR = {
    "Select": Case(
        graph(_select, tensor(PRED, 2, 3), M, M), (np.array([[True, False, True]] * 2), MATRIX, -MATRIX)
    ),
    "Clamp": Case(
        graph(lambda x, lo, hi: node(ops.Clamp(), lo, x, hi), M, M, M),
        (MATRIX, MATRIX * 0 + 2, MATRIX * 0 + 4),
    ),
    "Convert to int": on_matrix(ops.Convert(S32)),
    "Convert to itself": on_matrix(ops.Convert(F32)),
    "Convert to bfloat16": on_matrix(ops.Convert(np.dtype(ml_dtypes.bfloat16))),
    "Convert to float8": on_matrix(ops.Convert(np.dtype(ml_dtypes.float8_e4m3fn))),
    "BitcastConvert": on_matrix(ops.BitcastConvert(S32)),
    "BitcastConvert to narrow": on_matrix(ops.BitcastConvert(np.dtype(np.uint8))),
    "ReducePrecision": on_matrix(ops.ReducePrecision(5, 2), inputs=(MATRIX / 7,)),
    "Compare in total order": Case(
        graph(lambda x, y: node(ops.Compare("LT", total_order=True), x, y), V, V),
        (np.array([-0.0, np.nan, -np.inf], np.float32), np.array([0.0, np.inf, -np.nan], np.float32)),
    ),
    "Compare complex": Case(
        graph(lambda x: node(ops.Compare("NE"), x, x), tensor(np.complex64, 2)),
        (np.array([1j, complex(np.nan, 0)], np.complex64),),
    ),
}

MOVEMENT = {
    "BroadcastInDim": Case(graph(lambda v: node(ops.BroadcastInDim((2, 3), (1,)), v), V), (ROW,)),
    "BroadcastInDim of a scalar": Case(
        graph(lambda v: node(ops.BroadcastInDim((2, 0), ()), v), tensor(F32)), (np.array(2, np.float32),)
    ),
    "BroadcastInDim, degenerate": Case(
        graph(lambda v: node(ops.BroadcastInDim((4, 2, 3), (0, 2)), v), tensor(F32, 1, 3)), (ROW[None],)
    ),
    "Reshape": on_matrix(ops.Reshape((3, 1, 2))),
    "Reshape to a scalar": Case(
        graph(lambda v: node(ops.Reshape(()), v), tensor(S32, 1)), (np.array([7], S32),)
    ),
    "Transpose": on_matrix(ops.Transpose((1, 0))),
    "Reverse": on_matrix(ops.Reverse((1, 0))),
    "Slice": on_matrix(ops.Slice((0, 0), (2, 3), (1, 2))),
    "Slice of a scalar": Case(
        graph(lambda v: node(ops.Slice((), (), ()), v), tensor(F32)), (np.float32(4) * 1,)
    ),
    "Pad": on_matrix(ops.Pad((0, -1), (1, 2), (0, 3)), constant(9)),
    "Concatenate": Case(graph(lambda x, y: node(ops.Concatenate(1), x, y, x), M, M), (MATRIX, -MATRIX)),
    "Iota": Case(graph(lambda: node(ops.Iota(tensor(np.int16, 2, 3), 1))), ()),
}


def _first_of_two(a: Node, i: Node, b: Node, j: Node) -> tuple[Node, Node]:
    keep = node(ops.Compare("GE"), a, b)
    return _select(keep, a, b), _select(keep, i, j)


def _argmax(x: Node) -> tuple[Node, Node]:
    positions = node(ops.Iota(tensor(S32, 2, 3), 1))
    start = (constant(-np.inf), constant(0, S32))
    both = node(ops.Reduce((1,), scalars(_first_of_two, F32, S32, F32, S32)), x, positions, *start)
    return part(0, both), part(1, both)


def _sorted_pairs(x: Node, y: Node) -> tuple[Node, Node]:
    both = node(ops.Sort(1, True, scalars(lambda a, b, c, d: less(a, b), F32, F32, F32, F32)), x, y)
    return part(0, both), part(1, both)


def _product(x: Node, y: Node) -> Node:
    return node(ops.DotGeneral((), (), (1,), (0,), F32), x, y)


def _batch(x: Node, y: Node) -> Node:
    return node(ops.DotGeneral((0,), (1,), (1,), (0,), np.dtype(np.float64), ("HIGHEST", "DEFAULT")), x, y)


REDUCTION = {
    "Reduce by name": Case(
        graph(lambda x: node(ops.Reduce((1,), SUM), x, constant(0)), M), (MATRIX,), ([6, 15],)
    ),
    "Reduce all": Case(graph(lambda x: node(ops.Reduce((0, 1), SUM), x, constant(0)), M), (MATRIX,), (21,)),
    "Reduce nothing": Case(
        graph(lambda x: node(ops.Reduce((), SUM), x, constant(0)), M), (MATRIX,), (MATRIX,)
    ),
    "Reduce swapped": Case(
        graph(lambda x: node(ops.Reduce((0,), scalars(lambda a, b: add(b, a), F32, F32)), x, constant(0)), M),
        (MATRIX,),
        ([9, 6, 6],),
    ),
    "Reduce by a computation": Case(
        graph(
            lambda x: node(
                ops.Reduce(
                    (1,), scalars(lambda a, b: node(ops.Multiply(), add(a, b), constant(1)), F32, F32)
                ),
                x,
                constant(0),
            ),
            M,
        ),
        (MATRIX,),
        ([6, 15],),
    ),
    "Reduce pairs": Case(graph(_argmax, M), (MATRIX,), ([3, 6], [0, 0])),
    "DotGeneral": Case(
        graph(_product, M, tensor(F32, 3, 2)), (MATRIX, MATRIX.T.copy()), ([[14, 31], [31, 77]],)
    ),
    "DotGeneral, batched": Case(
        graph(_batch, M, tensor(F32, 3, 2, 4)),
        (MATRIX, np.ones((3, 2, 4), np.float32)),
        ([[6] * 4, [15] * 4],),
    ),
    "DotGeneral of scalars": Case(
        graph(lambda x: node(ops.DotGeneral((), (), (), (), F32), x, x), tensor(F32)),
        (np.float32(3) * 1,),
        (9,),
    ),
    "Sort": Case(
        graph(lambda x: node(ops.Sort(0, False, scalars(lambda a, b: less(b, a), F32, F32)), x), V),
        (ROW,),
        ([30, 20, 10],),
    ),
    "Sort pairs": Case(
        graph(_sorted_pairs, M, M), (MATRIX, -MATRIX), ([[1, 2, 3], [4, 5, 6]], [[-1, -2, -3], [-4, -5, -6]])
    ),
}

DOUBLE = graph(lambda x: (add(x, x),), V, name="double it")
BOTH_WAYS = graph(lambda x: (add(x, x), node(ops.Negate(), x)), V, name="both")


def _collatz(start: Node) -> tuple[Node, ...]:
    """Count the steps of Collatz's rule that lead to 1, by a loop around a conditional."""

    def halve(x: Node) -> Node:
        return node(ops.Divide(), x, constant(2, S32))

    def triple(x: Node) -> Node:
        return add(node(ops.Multiply(), x, constant(3, S32)), constant(1, S32))

    def step(x: Node, steps: Node) -> tuple[Node, Node]:
        odd = node(ops.Convert(PRED), node(ops.And(), x, constant(1, S32)))
        following = node(ops.If(scalars(triple, S32), scalars(halve, S32)), odd, x)
        return following, add(steps, constant(1, S32))

    cond = scalars(lambda x, steps: node(ops.Compare("NE"), x, constant(1, S32)), S32, S32)
    loop = node(ops.While(cond, scalars(step, S32, S32)), start, constant(0, S32))
    return part(1, loop), part(0, loop)


def _choice(index: Node, v: Node) -> Node:
    branches = (
        graph(lambda x: add(x, x), V),
        graph(lambda x: x, V),
        graph(lambda x: node(ops.Negate(), x), V),
    )
    return node(ops.Case(branches), index, v)


def _two_of_a_branch(pred: Node, v: Node) -> tuple[Node, ...]:
    swap = graph(lambda x: (node(ops.Negate(), x), x), V)
    both = node(ops.If(graph(lambda x: (x, x), V), swap), pred, v)
    return part(1, both), part(0, both)


def _calls(v: Node) -> tuple[Node, ...]:
    again = graph(lambda x: (add(x, x),), V, name="equal to double it")
    both = node(ops.Call(BOTH_WAYS), node(ops.Call(again), node(ops.Call(DOUBLE), v)))
    return part(1, both), part(0, both)


def _nested_loops(v: Node) -> Node:
    def body(i: Node, x: Node) -> tuple[Node, Node]:
        inner = node(ops.While(cond, graph(lambda k, y: (add(k, ONE), add(y, y)), S, V)), ZERO, x)
        return add(i, ONE), node(ops.Call(DOUBLE), part(1, inner))

    S = tensor(S32)
    ZERO, ONE = constant(0, S32), constant(1, S32)
    cond = graph(lambda i, x: less(i, constant(2, S32)), S, V)
    return part(1, node(ops.While(cond, graph(body, S, V)), ZERO, v))


def _tuples(x: Node, v: Node) -> tuple[Node, ...]:
    inner = node(ops.Tuple(), x, v)
    outer = node(ops.Tuple(), inner, v)
    return part(1, part(0, outer)), part(0, part(0, outer))


def _results_as_tuple(x: Node, v: Node) -> tuple[Node, ...]:
    """The results of one op used one by one, and all together as an element of a tuple."""
    both = node(ops.OptimizationBarrier(), x, v)
    whole = node(ops.Tuple(), both, v)
    return part(0, both), part(1, part(0, whole))


CONTROL = {
    "Tuple": Case(graph(_tuples, M, V), (MATRIX, ROW), (ROW, MATRIX)),
    "Tuple of results": Case(graph(_results_as_tuple, M, V), (MATRIX, ROW), (MATRIX, ROW)),
    "OptimizationBarrier": Case(
        graph(lambda v: node(ops.OptimizationBarrier(), add(v, v)), V), (ROW,), ([20, 40, 60],)
    ),
    "Call": Case(graph(_calls, V), (ROW,), (ROW * -4, ROW * 8)),
    "Map": Case(
        graph(lambda x, y: node(ops.Map((0, 1), scalars(lambda a, b: less(b, a), F32, F32)), x, y), M, M),
        (MATRIX, MATRIX * 0 + 3),
        ([[False, False, False], [True, True, True]],),
    ),
    "Map of scalars": Case(
        graph(lambda x: node(ops.Map((), scalars(lambda a: add(a, a), F32)), x), tensor(F32)),
        (np.array(3, np.float32),),
        (6,),
    ),
    "While": Case(graph(_collatz, tensor(S32)), (np.array(7, S32),), (16, 1)),
    "While in while": Case(graph(_nested_loops, V), (ROW,), (ROW * 64,)),
    "If": Case(graph(_two_of_a_branch, tensor(PRED), V), (np.array(False), ROW), (ROW, -ROW)),
    "Case": Case(graph(_choice, tensor(S32), V), (np.array(9, S32), ROW), (-ROW,)),
}


INDEX, ZERO, ONE = tensor(S32), np.array(0, S32), np.array(1, S32)
INDICES = np.array([[1], [0]], S32)

INDEXING = {
    "Gather": Case(
        graph(lambda x, i: node(ops.Gather((1,), (0,), (), (), (0,), 1, (1, 3)), x, i), M, tensor(S32, 2, 1)),
        (MATRIX, INDICES),
        (MATRIX[::-1],),
    ),
    "Scatter": Case(
        graph(
            lambda x, i, u: node(ops.Scatter((1,), (0,), (), (), (0,), 1, SUM), x, i, u),
            M,
            tensor(S32, 2, 1),
            M,
        ),
        (MATRIX, INDICES, MATRIX),
        (MATRIX + MATRIX[::-1],),
    ),
    "DynamicSlice": Case(
        graph(lambda x, i, j: node(ops.DynamicSlice((1, 2)), x, i, j), M, INDEX, INDEX),
        (MATRIX, ZERO, ONE),
        (MATRIX[:1, 1:],),
    ),
    "DynamicUpdateSlice": Case(
        graph(
            lambda x, u, i, j: node(ops.DynamicUpdateSlice(), x, u, i, j), M, tensor(F32, 1, 3), INDEX, INDEX
        ),
        (MATRIX, ROW[None], ONE, ZERO),
        (np.stack([MATRIX[0], ROW]),),
    ),
}


def _reduce(*settings: Any, computation: Graph = SUM) -> Callable[[Node], Node]:
    return lambda x: node(ops.ReduceWindow(*settings, computation), x, constant(0))


def _sums_and_products(x: Node) -> tuple[Node, Node]:
    def combine(a: Node, b: Node, c: Node, d: Node) -> tuple[Node, Node]:
        return add(a, c), node(ops.Multiply(), b, d)

    op = ops.ReduceWindow((1, 2), (1, 1), (1, 1), (1, 1), ((0, 0), (1, 0)), scalars(combine, *[F32] * 4))
    both = node(op, x, x, constant(0), constant(1))
    return part(0, both), part(1, both)


def _largest_gets(x: Node, source: Node) -> Node:
    at_least = scalars(lambda a, b: node(ops.Compare("GE"), a, b), F32, F32)
    op = ops.SelectAndScatter((1, 2), (1, 1), ((0, 0), (0, 1)), at_least, SUM)
    return node(op, x, source, constant(0))


WINDOWS = {
    "ReduceWindow": Case(
        graph(_reduce((2, 2), (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))), M), (MATRIX,), ([[15, 12]],)
    ),
    "ReduceWindow, dilated and padded": Case(
        graph(_reduce((1, 2), (2, 1), (1, 2), (1, 3), ((0, 0), (1, -1))), M), (MATRIX,), ([[1, 3]],)
    ),
    "ReduceWindow by a computation": Case(
        graph(
            _reduce(
                (1, 3),
                (1, 1),
                (1, 1),
                (1, 1),
                ((0, 0), (0, 0)),
                computation=scalars(lambda a, b: add(add(a, a), b), F32, F32),
            ),
            M,
        ),
        (MATRIX,),
        ([[16], [38]],),
    ),
    "ReduceWindow of pairs": Case(
        graph(_sums_and_products, M), (MATRIX,), ([[3, 4, 3], [6, 11, 9]], [[3, 3, 2], [6, 30, 20]])
    ),
    "ReduceWindow of a scalar": Case(
        graph(_reduce((), (), (), (), ()), tensor(F32)), (np.array(3, np.float32),), (3,)
    ),
    "SelectAndScatter": Case(graph(_largest_gets, M, M), (MATRIX, MATRIX), ([[3, 0, 3], [6, 5, 4]],)),
}


def _state(*words: int) -> Array:
    return np.array(words, np.uint64)


_NORMAL = tensor(np.float32, 4, 3)
_DATA = np.float32([[1, 2, 3], [2, 4, 1], [0, 1, 7], [5, 5, 5]])
_FEATURE = np.float32([1, 2, 0.5])

NUMBERS = {
    "Cholesky": Case(
        graph(lambda a: node(ops.Cholesky(True), a), tensor(np.float64, 2, 2)),
        (np.array([[4.0, 2.0], [2.0, 5.0]]),),
        ([[2, 0], [1, 2]],),
    ),
    "TriangularSolve": Case(
        graph(
            lambda a, b: node(ops.TriangularSolve(True, False, False, "TRANSPOSE"), a, b),
            tensor(np.float64, 2, 2),
            tensor(np.float64, 2, 1),
        ),
        (np.array([[2.0, 1.0], [9.0, 4.0]]), np.array([[2.0], [9.0]])),
    ),
    "Fft": Case(
        graph(lambda x: node(ops.Fft("RFFT", (4,)), x), tensor(np.float32, 4)),
        (np.float32([1, 2, 3, 4]),),
        ([10, -2 + 2j, -2],),
    ),
    "BatchNormTraining": Case(
        graph(lambda x, s, o: parts(3, node(ops.BatchNormTraining(0.5, 1), x, s, o)), _NORMAL, V, V),
        (_DATA, _FEATURE, _FEATURE),
    ),
    "BatchNormInference": Case(
        graph(lambda x, v: node(ops.BatchNormInference(0.5, 1), x, v, v, v, v), _NORMAL, V),
        (_DATA, _FEATURE),
    ),
    "BatchNormGrad": Case(
        graph(lambda x, v: parts(3, node(ops.BatchNormGrad(0.5, 1), x, v, v, v, x)), _NORMAL, V),
        (_DATA, _FEATURE),
    ),
    "RngBitGenerator": Case(
        graph(
            lambda s: parts(2, node(ops.RngBitGenerator("THREE_FRY", tensor(np.uint32, 3)), s)),
            tensor(np.uint64, 2),
        ),
        (_state(5, 2**64 - 1),),
        (_state(5, 1), [0xE39B2319, 0x4F19F28F, 0x5338D363]),
    ),
    "Rng": Case(
        # Numbers in an interval without any are its beginning.
        graph(lambda a: node(ops.Rng("UNIFORM", (2,)), a, a, constant([2], np.int64)), tensor(F32)),
        (np.float32(3),),
        ([3, 3],),
    ),
    "Special functions": Case(
        graph(lambda x: tuple(node(op(), x) for op in SPECIAL), V),
        (np.float32([0.25, 0.5, 0.75]),),
    ),
}


def convolution(lhs: str, rhs: str, out: str, **changes: Any) -> ops.Convolution:
    """A float32 convolution with dimensions by name: "bf01", "oi01"; `changes` to a plain one."""
    rank = len(lhs) - 2
    spatial = "0123"[:rank]
    specs = zip((lhs, rhs, out), ("bf", "oi", "bf"), strict=True)
    plain: dict[str, Any] = {
        **dict(
            zip(
                ("lhs_spec", "rhs_spec", "out_spec"),
                (tuple(map(spec.index, names + spatial)) for spec, names in specs),
                strict=True,
            )
        ),
        "window_strides": (1,) * rank,
        "padding": ((0, 0),) * rank,
        "lhs_dilation": (1,) * rank,
        "rhs_dilation": (1,) * rank,
        "window_reversal": (False,) * rank,
        "feature_group_count": 1,
        "batch_group_count": 1,
        "dtype": F32,
    }
    return ops.Convolution(**plain | changes)


CONVOLUTION = {
    "Convolution": Case(
        graph(
            lambda x, k: node(convolution("bf0", "oi0", "bf0"), x, k),
            tensor(F32, 1, 2, 3),
            tensor(F32, 1, 2, 2),
        ),
        (MATRIX[None], np.array([[[1, 10], [100, 1000]]], np.float32)),
        ([[[5613, 4521]]],),
    ),
    "Convolution, reversed": Case(
        graph(
            lambda x, k: node(
                convolution("fb0", "io0", "0fb", window_reversal=(True,), padding=((1, -1),)), x, k
            ),
            tensor(F32, 1, 2, 3),
            tensor(F32, 1, 1, 2),
        ),
        (MATRIX[None], np.array([[[1, 10]]], np.float32)),
        ([[[3, 6]], [[31, 65]]],),
    ),
    "Convolution, dilated": Case(
        graph(
            lambda x, k: node(
                convolution(
                    "b0f",
                    "0io",
                    "b0f",
                    window_strides=(2,),
                    lhs_dilation=(3,),
                    rhs_dilation=(2,),
                    precision=("HIGH", "HIGHEST"),
                ),
                x,
                k,
            ),
            tensor(F32, 2, 3, 1),
            tensor(F32, 2, 1, 1),
        ),
        (MATRIX[..., None], np.array([1, 10], np.float32).reshape(2, 1, 1)),
        ([[[3], [0], [20]], [[6], [0], [40]]],),
    ),
    "Convolution in groups of features": Case(
        graph(
            lambda x, k: node(convolution("bf", "oi", "bf", feature_group_count=3), x, k),
            M,
            tensor(F32, 3, 1),
        ),
        (MATRIX, np.array([[1], [10], [100]], np.float32)),
        ([[3, 10, 200], [6, 50, 400]],),
    ),
    "Convolution in groups of the batch": Case(
        graph(
            lambda x, k: node(convolution("bf", "oi", "bf", batch_group_count=2), x, k),
            M,
            tensor(F32, 2, 3),
        ),
        (MATRIX, np.array([[1, 10, 100], [1, 0, 0]], np.float32)),
        ([[213, 6]],),
    ),
}


CASES = (
    REGULAR
    | IRREGULAR
    | MOVEMENT
    | REDUCTION
    | CONTROL
    | INDEXING
    | WINDOWS
    | NUMBERS
    | FACTORS
    | CONVOLUTION
)
