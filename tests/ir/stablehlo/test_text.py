"""The text of graphs, to be read: each must print as the file of its name in `tests/snapshots`."""

import numpy as np
import pytest

from tests.support.checkout import CHECKOUT
from tests.support.graphs import CASES, M, V, add, constant, graph, node
from tests.xla import parse
from xarr.ir import ops
from xarr.ir.graph import Graph, Node

SNAPSHOTS = CHECKOUT / "tests" / "snapshots"


def _shift(x: Node, v: Node) -> Node:
    return add(x, node(ops.BroadcastInDim((2, 3), (1,)), v))


def _elementwise(x: Node, y: Node) -> tuple[Node, ...]:
    near = node(ops.Compare("LE"), node(ops.Abs(), node(ops.Subtract(), x, y)), constant([1, 2, 3]))
    chosen = node(ops.Select(), near, x, y)
    return node(ops.ReducePrecision(5, 10), chosen), node(ops.Complex(), x, y), node(ops.Acos(), x)


def _movement(x: Node) -> Node:
    turned = node(ops.Reverse((1,)), node(ops.Transpose((1, 0)), x))
    padded = node(ops.Pad((0, -1), (1, 0), (0, 2)), turned, constant(9))
    return node(ops.Concatenate(0), node(ops.Slice((0, 0), (4, 3), (2, 1)), padded), padded)


def _constants() -> tuple[Node, ...]:
    matrix, bools = constant([[1, 2], [3, 4]], np.uint8), constant([True, False], bool)
    bits, empty = constant(-np.inf), constant(np.zeros((0, 3)))
    return (
        constant(0),
        matrix,
        bools,
        bits,
        empty,
        constant(1 - 2j, np.complex128),
        constant(range(101), np.int8),
    )


GRAPHS: dict[str, Graph] = {
    "broadcast": graph(_shift, M, V, name="shift"),
    "elementwise": graph(_elementwise, V, V),
    "movement": graph(_movement, M),
    "constants": graph(_constants),
    "reduce": CASES["Reduce by name"].graph,
    "reduce_pairs": CASES["Reduce pairs"].graph,
    "dot_general": CASES["DotGeneral, batched"].graph,
    "convolution": CASES["Convolution, dilated"].graph,
    "sort": CASES["Sort"].graph,
    "map": CASES["Map"].graph,
    "while_around_if": CASES["While"].graph,
    "while_in_while": CASES["While in while"].graph,
    "case": CASES["Case"].graph,
    "call": CASES["Call"].graph,
    "results_as_tuple": CASES["Tuple of results"].graph,
}


@pytest.mark.parametrize("name", GRAPHS)
def test_text(name: str) -> None:
    assert str(GRAPHS[name]) + "\n" == (SNAPSHOTS / f"{name}.mlir").read_text()
    parse(str(GRAPHS[name]))


def test_every_snapshot_is_compared() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.mlir")} == set(GRAPHS)
