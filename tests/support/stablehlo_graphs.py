"""Graphs to print and read back: one for each kind of op, and random ones."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from xarr import lax
from xarr.dtypes import SUB_BYTE, TABLE, element_type
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.types import TensorType
from xarr.runtime.handles import Handle
from xarr.runtime.trace_to_graph import trace

F32, I32, BOOL = (np.dtype(name) for name in ("float32", "int32", "bool"))


def tensor(*shape: int, dtype: Any = F32) -> TensorType:
    return TensorType(shape, np.dtype(dtype))


def trace_graph(function: Any, *types: TensorType) -> Graph:
    """The graph that a function of lax records."""

    def flat(*arguments: Handle) -> list[Any]:
        results = function(*arguments)
        return list(results) if isinstance(results, tuple | list) else [results]

    return trace(flat, types, None, "test")[0]


def constants(dtype: np.dtype[Any]) -> Graph:
    raw = np.random.default_rng(0).bytes(3 * 64 * dtype.itemsize)
    if dtype in SUB_BYTE:
        raw = bytes(byte & 2 ** element_type(dtype).bits - 1 for byte in raw)
    array = np.frombuffer(raw, dtype) if dtype != BOOL else np.frombuffer(raw, np.uint8) > 99
    parts = (
        array[:1].reshape(()),
        array[:6].reshape(2, 3),
        array[:0].reshape(0, 3),
        array[:192].reshape(3, 64),
    )
    splat = np.full((5, 2), array[0])
    return Graph((), [Node(ops.Constant.of(part)) for part in (*parts, splat)])


GRAPHS: dict[str, Graph] = {
    "arithmetic": trace_graph(lambda x, y: lax.tanh(lax.add(x, y)), tensor(2, 3), tensor(2, 3)),
    "compare": trace_graph(lambda x, y: (lax.lt(x, y), lax.select(lax.ge(x, y), x, y)), tensor(4), tensor(4)),
    "unsigned": trace_graph(lambda x, y: lax.lt(x, y), tensor(4, dtype=np.uint8), tensor(4, dtype=np.uint8)),
    "clamp": trace_graph(lambda a, x, b: lax.clamp(a, x, b), tensor(3), tensor(3), tensor(3)),
    "complex": trace_graph(lambda x: (lax.real(lax.complex(x, x)), lax.abs(lax.complex(x, x))), tensor(3)),
    "convert": trace_graph(lambda x: lax.convert_element_type(x, np.int8), tensor(3)),
    "bitcast": trace_graph(lambda x: lax.bitcast_convert_type(x, np.uint8), tensor(3)),
    "precision": trace_graph(lambda x: lax.reduce_precision(x, 5, 10), tensor(3)),
    "movement": trace_graph(
        lambda x: lax.rev(lax.transpose(lax.reshape(x, (3, 2)), (1, 0)), (0,)), tensor(6)
    ),
    "slice_pad": trace_graph(
        lambda x: lax.pad(lax.slice(x, (1,), (9,), (3,)), np.float32(0), [(1, -1, 2)]), tensor(9)
    ),
    "broadcast": trace_graph(lambda x: lax.broadcast_in_dim(x, (4, 3, 2), (1,)), tensor(3)),
    "concatenate": trace_graph(lambda x, y: lax.concatenate([x, y, x], 1), tensor(2, 3), tensor(2, 1)),
    "iota": trace_graph(lambda: lax.broadcasted_iota(np.int32, (2, 5), 1)),
    "reduce": trace_graph(lambda x: lax.reduce(x, np.float32(0), lax.add, (0, 2)), tensor(2, 3, 4)),
    "reduce_window": trace_graph(
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 3), (1, 2), [(1, 0), (-1, 2)], (1, 2), (2, 1)),
        tensor(4, 5),
    ),
    "select_and_scatter": trace_graph(
        lambda x, y: lax.select_and_scatter(x, lax.ge, (2, 3), (2, 2), "SAME", y, 0.0, lax.add),
        tensor(4, 5),
        tensor(2, 3),
    ),
    "argmax": trace_graph(lambda x: lax.argmax(x, 1, np.int32), tensor(2, 3)),
    "sort": trace_graph(lambda x, y: lax.sort((x, y), num_keys=1), tensor(2, 3), tensor(2, 3, dtype=I32)),
    "dot": trace_graph(
        lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), tensor(2, 3, 4), tensor(2, 4, 5)
    ),
    "convolution": trace_graph(
        lambda x, y: lax.conv_general_dilated(
            x,
            y,
            (1, 2),
            [(-1, 2), (0, 1)],
            (2, 1),
            (1, 3),
            ("NHWC", "HWIO", "CNHW"),
            2,
            precision="highest",
            window_reversal=(True, False),
        ),
        tensor(1, 4, 4, 2),
        tensor(2, 2, 1, 2),
    ),
    "convolution_of_matrices": trace_graph(lambda x, y: lax.conv(x, y, (), ()), tensor(3, 2), tensor(4, 2)),
    "while": trace_graph(
        lambda x, y: lax.while_loop(lambda c: lax.lt(c, y), lambda c: lax.add(c, x), x), tensor(), tensor()
    ),
    "loop": trace_graph(lambda x: lax.fori_loop(0, 5, lambda i, c: lax.mul(c, x), x), tensor(3)),
    "cond": trace_graph(lambda p, x: lax.cond(p, lax.sin, lax.cos, x), tensor(dtype=BOOL), tensor(3)),
    "switch": trace_graph(
        lambda i, x: lax.switch(i, [lax.sin, lax.cos, lax.tan], x), tensor(dtype=I32), tensor(3)
    ),
    "call": trace_graph(lambda x: lax.call(lambda y: (lax.sin(y), lax.call(lax.cos, y)), x), tensor(3)),
    "map": trace_graph(lambda x: lax.map_elements(lambda a: lax.mul(a, a), x), tensor(2, 3)),
    "barrier": trace_graph(lambda x, y: lax.optimization_barrier((x, y)), tensor(3), tensor()),
    **{f"constant_{row.mlir}": constants(row.dtype) for row in TABLE if row.bits != 6},
}


UNARY = (ops.Negate(), ops.Abs(), ops.Sine(), ops.Tanh(), ops.Sign(), ops.Asinh())
BINARY = (ops.Add(), ops.Multiply(), ops.Maximum(), ops.Atan2(), ops.Compare("LE", True), ops.NextAfter())


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs over arrays of one rank-2 shape, with constants, reductions, loops and calls."""
    type = tensor(draw(st.integers(0, 3)), draw(st.integers(1, 3)))
    parameters = [parameter(type) for _ in range(draw(st.integers(0, 2)))]
    value = draw(st.floats(width=32))
    pool = [*parameters, Node(ops.Constant.of(np.full(type.shape, value, F32)))]
    for _ in range(draw(st.integers(1, 12))):
        pool.append(_step(draw, pool, type))
    results = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
    return Graph(parameters, results)


def _step(draw: st.DrawFn, pool: list[Node], type: TensorType) -> Node:
    x, y = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
    kind = draw(
        st.sampled_from(("unary", "binary", "select", "transpose", "reduce", "while", "call", "sort"))
    )
    if kind == "binary":
        result = Node(draw(st.sampled_from(BINARY)), (x, y))
        return result if result.dtype == F32 else Node(ops.Select(), (result, x, y))
    if kind == "transpose":
        turned = Node(ops.Transpose((1, 0)), (x,))
        return Node(ops.Transpose((1, 0)), (Node(ops.Reverse((0,)), (turned,)),))
    if kind == "reduce":
        a, b = parameter(tensor()), parameter(tensor())
        body = Node(draw(st.sampled_from(BINARY[:4])), (a, b))
        total = Node(ops.Reduce((0,), Graph((a, b), [body])), (x, Node(ops.Constant.of(np.float32(1.5)))))
        return Node(ops.BroadcastInDim(type.shape, (1,)), (total,))
    if kind in ("while", "call"):
        return _loop(x, y, type) if kind == "while" else _call(x, y, type)
    if kind == "sort":
        a, b = parameter(tensor()), parameter(tensor())
        return Node(ops.Sort(1, True, Graph((a, b), [Node(ops.Compare("LT"), (a, b))])), (x,))
    return Node(draw(st.sampled_from(UNARY)), (x,))


def _loop(x: Node, y: Node, type: TensorType) -> Node:
    a, b, c, d = (parameter(type) for _ in range(4))
    never = Node(ops.Constant.of(np.array(False)))
    loop = ops.While(Graph((a, b), [never]), Graph((c, d), [Node(ops.Add(), (c, d)), c]))
    return Node(ops.GetTupleElement(1), (Node(loop, (x, y)),))


def _call(x: Node, y: Node, type: TensorType) -> Node:
    a, b = parameter(type), parameter(type)
    return Node(ops.Call(Graph((a, b), [Node(ops.Subtract(), (a, b))], "difference")), (x, y))
