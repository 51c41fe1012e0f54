"""Random small graphs: MLIR reads them, XLA runs them, and the values are those of the NumPy backend.

The movements and the arithmetic here are exact, so the values must be equal; after one inexact operation
they may differ by `tests.xla.TOLERANCE`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from tests.support.graphs import DTYPES, PRED, constant, node, on_numpy, sample
from tests.xla import TOLERANCE, assert_close, parse, run_stablehlo, squeeze_spaces
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.types import TensorType

Array = np.ndarray[Any, Any]

PROGRAM_DTYPES = [
    dtype for dtype in DTYPES if dtype.name not in ("int8", "int64", "uint32", "uint64", "complex128")
]
REAL = [dtype for dtype in PROGRAM_DTYPES if dtype.kind in "fV"]

Draw = Callable[[st.SearchStrategy[Any]], Any]
Step = Callable[[Draw, Node, list[Node]], Node]


def _unary(draw: Draw, x: Node, nodes: list[Node]) -> Node:
    table = [ops.Negate, ops.Abs, ops.Sign, ops.Floor, ops.Not, ops.Real, ops.Popcnt]
    # The modulus of a complex number is inexact.
    fitting = [
        op
        for op in table
        if x.dtype in op.accepts and not (op in (ops.Abs, ops.Sign) and x.dtype.kind == "c")
    ]
    return node(draw(st.sampled_from(fitting))(), x)


def _binary(draw: Draw, x: Node, nodes: list[Node]) -> Node:
    table = [ops.Add, ops.Subtract, ops.Maximum, ops.Minimum, ops.And, ops.Xor]
    fitting = [op for op in table if x.dtype in op.accepts and not (x.dtype.kind == "c" and op in table[2:4])]
    partner = draw(st.sampled_from([other for other in nodes if other.type is x.type]))
    return node(draw(st.sampled_from(fitting))(), x, partner)


def _compare(draw: Draw, x: Node, nodes: list[Node]) -> Node:
    partner = draw(st.sampled_from([other for other in nodes if other.type is x.type]))
    pred = node(ops.Compare(draw(st.sampled_from(["EQ", "NE"]))), x, partner)
    return node(ops.Select(), pred, x, partner) if draw(st.booleans()) else pred


def _convert(draw: Draw, x: Node, nodes: list[Node]) -> Node:
    # Integers may be large after wrapping, and then inexact as floats.
    targets = PROGRAM_DTYPES if x.dtype in REAL or x.dtype == PRED else [x.dtype]
    return node(ops.Convert(draw(st.sampled_from(targets))), x)


def _broadcast(draw: Draw, x: Node, nodes: list[Node]) -> Node:
    size, axis = draw(st.integers(0, 3)), draw(st.integers(0, len(x.shape)))
    kept = [k for k in range(len(x.shape) + 1) if k != axis]
    return node(ops.BroadcastInDim((*x.shape[:axis], size, *x.shape[axis:]), tuple(kept)), x)


def _reorder(draw: Draw, x: Node, nodes: list[Node]) -> Node:
    order = tuple(draw(st.permutations(range(len(x.shape)))))
    flipped = order[: draw(st.integers(0, len(order)))]
    return node(ops.Reverse(flipped), node(ops.Transpose(order), x))


def _slice(draw: Draw, x: Node, nodes: list[Node]) -> Node:
    limits = tuple(draw(st.integers(0, size)) for size in x.shape)
    starts = tuple(draw(st.integers(0, limit)) for limit in limits)
    return node(ops.Slice(starts, limits, tuple(draw(st.integers(1, 3)) for _ in limits)), x)


def _pad(draw: Draw, x: Node, nodes: list[Node]) -> Node:
    low, high, interior = (tuple(draw(st.integers(0, 2)) for _ in x.shape) for _ in range(3))
    return node(ops.Pad(low, high, interior), x, constant(draw(st.integers(0, 1)), x.dtype))


def _join(draw: Draw, x: Node, nodes: list[Node]) -> Node:
    flat = node(ops.Reshape((x.tensor_type.size,)), x)
    return node(ops.Concatenate(0), flat, constant([1, 0], x.dtype), flat)


STEPS: tuple[Step, ...] = (_unary, _binary, _compare, _convert, _broadcast, _reorder, _slice, _pad, _join)


@st.composite
def programs(draw: Draw) -> Graph:
    """Up to five exact operations, all of whose values are results.

    From inputs that are multiples of 1/2 in [-4, 4] they lead to at most 128, which every float type here
    holds exactly: XLA may carry bfloat16 with more digits than NumPy, but no digit is lost.
    """
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    parameters = [parameter(TensorType(shape, draw(st.sampled_from(PROGRAM_DTYPES)))) for _ in range(2)]
    nodes = list(parameters)
    for _ in range(draw(st.integers(1, 5))):
        step = draw(st.sampled_from(STEPS))
        nodes.append(step(draw, draw(st.sampled_from(nodes)), nodes))
    return Graph(parameters, nodes)


def _halves(type: TensorType, seed: int) -> Array:
    values = np.round(sample(TensorType(type.shape, np.dtype(np.float64)), -8, 8, seed)) / 2
    return np.abs(values).astype(type.dtype) if type.dtype.kind == "u" else values.astype(type.dtype)


@settings(max_examples=60)
@given(programs(), st.integers(0, 2**16))
def test_random_graphs_agree_exactly(program: Graph, seed: int) -> None:
    inputs = [_halves(node.tensor_type, seed + index) for index, node in enumerate(program.parameters)]
    text = str(program)
    assert squeeze_spaces(str(parse(text))) == squeeze_spaces(text)
    for got, want in zip(run_stablehlo(text, *inputs), on_numpy(program, *inputs), strict=True):
        assert_close(got, want, 0)


@settings(max_examples=15)
@given(
    programs(), st.sampled_from([ops.Exponential, ops.Tanh, ops.Logistic, ops.Sine]), st.integers(0, 2**16)
)
def test_random_graphs_under_an_inexact_op_agree(program: Graph, op: Any, seed: int) -> None:
    results = [node(op(), result) for result in program.results if result.dtype in REAL]
    inexact = Graph(program.parameters, results)
    inputs = [_halves(node.tensor_type, seed + index) for index, node in enumerate(program.parameters)]
    for got, want in zip(run_stablehlo(str(inexact), *inputs), on_numpy(inexact, *inputs), strict=True):
        assert_close(got, want, TOLERANCE[got.dtype.name])
