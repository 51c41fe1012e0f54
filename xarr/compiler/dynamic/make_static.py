"""Write dynamic dimensions out: a graph of static shapes over buffers of the bounds and int32 live sizes.

Backends know static shapes only.  Here an array of dynamic dimensions becomes a buffer and one scalar for
each of them; `xarr.compiler.dynamic.op_rules` says how each op computes on these.  Parameters and results that are
such arrays become tuples (buffer, size, …), the sizes in the order of the dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xarr.compiler.dynamic.op_rules import ROWS
from xarr.compiler.dynamic.valid_regions import Live
from xarr.compiler.passes.simplify import simplify
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, parameter
from xarr.ir.ops.dynamic_sizes import SIZE
from xarr.ir.types import TensorType, TupleType, Type

#: What became of a value: a Live array, or a tuple of values.
Value = Live | tuple["Value", ...]

_SIZES = (ops.GetDimensionSize, ops.SetDimensionSize)


def make_static(graph: Graph) -> Graph:
    """`graph` without dynamic dimensions; the graph itself if it has none."""
    if not _has_sizes(graph):
        return graph
    parameters = [parameter(_boundary_type(node.type)) for node in graph.parameters]
    operands = dict(zip(graph.parameters, parameters, strict=True))
    values = {old: _unpack(new, old.type) for old, new in operands.items()}
    results = _rewrite(graph, values, OncePerGraph(_flat_graph))
    return simplify(_derive(graph, parameters, [_pack(value) for value in results], values))


def _has_sizes(graph: Graph) -> bool:
    return any([type.dynamic for type in graph.types]) or not graph.op_classes.isdisjoint(_SIZES)


# --- the boundary of a program ------------------------------------------------------------------------------


def _boundary_type(type: Type) -> Type:
    if isinstance(type, TupleType):
        return TupleType(tuple([_boundary_type(element) for element in type.elements]))
    if not type.dynamic:
        return type
    return TupleType((type.bounds, *[SIZE] * len(type.dynamic_dimensions)))


def _unpack(node: Node, type: Type) -> Value:
    """A value of a boundary type as what it means, a value of `type`."""
    if isinstance(type, TensorType) and not type.dynamic:
        return Live(node)
    if isinstance(type, TensorType):
        buffer, *sizes = (_element(node, k) for k in range(1 + len(type.dynamic_dimensions)))
        return Live(buffer, dict(zip(type.dynamic_dimensions, sizes, strict=True)))
    return tuple([_unpack(_element(node, k), each) for k, each in enumerate(type.elements)])


def _element(node: Node, index: int) -> Node:
    return Node(ops.GetTupleElement(index), (node,))


def _pack(value: Value) -> Node:
    if isinstance(value, tuple):
        return Node(ops.Tuple(), tuple([_pack(each) for each in value]))
    if not value.sizes:
        return value.buffer
    return Node(ops.Tuple(), (value.buffer, *_in_order(value)))


def _in_order(array: Live) -> list[Node]:
    return [array.sizes[dim] for dim in sorted(array.sizes)]


# --- inside ---------------------------------------------------------------------------------------------------


def _rewrite(graph: Graph, values: dict[Node, Value], flat: OncePerGraph[Graph]) -> list[Value]:
    """The results of `graph` where its parameters have these values; `flat` is `_flat_graph` of those inside."""
    for node in graph.nodes:
        values[node] = _rewritten(node, [values[operand] for operand in node.operands], flat)
    return [values[node] for node in graph.results]


def _derive(
    graph: Graph, parameters: Sequence[Node], results: Sequence[Node], values: dict[Node, Value]
) -> Graph:
    """The graph whose nodes became `values`."""
    return graph.derive({node: _pack(values[node]) for node in graph.ordered}, results, parameters)


def _rewritten(node: Node, operands: Sequence[Value], flat: OncePerGraph[Graph]) -> Value:
    op = node.op
    if isinstance(op, ops.Tuple):
        return tuple(operands)
    if isinstance(op, ops.GetTupleElement):
        (whole,) = operands
        assert isinstance(whole, tuple)
        return whole[op.index]
    if op.runs_graphs or isinstance(op, ops.OptimizationBarrier):  # which hand values to computations, or on
        return _flatten(node, operands, flat)
    arrays = tuple([operand for operand in operands if isinstance(operand, Live)])
    if isinstance(op, _SIZES) or any(array.sizes for array in arrays):
        return _by_row(node, arrays)
    # A computation on scalars has no dynamic parameters, but may use dynamic arrays within.
    static = node.rebuilt(tuple([array.buffer for array in arrays]), map_graphs(op, flat))
    return _unpack(static, node.type)


def _by_row(node: Node, arrays: tuple[Live, ...]) -> Value:
    row = next((ROWS[base] for base in type(node.op).__mro__ if base in ROWS), None)
    if row is None:
        origin = f"\nbuilt at {node.source}" if node.source else ""
        raise BackendError(f"{node.op.lax_name} cannot compute on dynamic dimensions{origin}")
    results = row(node, arrays)
    return results if isinstance(node.type, TupleType) else results[0]


def _flatten(node: Node, operands: Sequence[Value], flat: OncePerGraph[Graph]) -> Value:
    """The value of a node that takes arrays and sizes one by one."""
    op = map_graphs(node.op, flat)
    types = node.op.results(node)
    leading = isinstance(op, ops.If | ops.Case)
    values = [*_flat(operands[:1]), *_flat(operands[1:])] if leading else _flat(operands)
    result = node.rebuilt(tuple(values), op)
    count = sum(1 + len(_tensor.dynamic_dimensions) for type in types for _tensor in _tensors(type))
    parts = [result] if count == 1 else [_element(result, k) for k in range(count)]
    results = _unflatten(types, parts)
    return results[0] if not isinstance(node.type, TupleType) else tuple(results)


def _flat_graph(graph: Graph, flat: OncePerGraph[Graph]) -> Graph:
    """`graph` with every parameter and result flattened into arrays and then sizes."""
    if not _has_sizes(graph):
        return graph
    parameters = [parameter(type) for type in _flat_types(graph.parameter_types)]
    values = _unflatten(graph.parameter_types, parameters)
    inside = dict(zip(graph.parameters, values, strict=True))
    results = _rewrite(graph, inside, flat)
    return _derive(graph, parameters, _flat(results), inside)


def _leaves(value: Value) -> Iterator[Live]:
    if isinstance(value, Live):
        yield value
    else:
        for each in value:
            yield from _leaves(each)


def _tensors(type: Type) -> Iterator[TensorType]:
    if isinstance(type, TensorType):
        yield type
    else:
        for each in type.elements:
            yield from _tensors(each)


def _flat(values: Sequence[Value]) -> list[Node]:
    """The buffers in order, and then the sizes, so that arrays keep their positions where no tuples nest."""
    arrays = [leaf for value in values for leaf in _leaves(value)]
    return [*[array.buffer for array in arrays], *[size for array in arrays for size in _in_order(array)]]


def _flat_types(types: Sequence[Type]) -> list[Type]:
    tensors = [tensor for type in types for tensor in _tensors(type)]
    return [
        *[tensor.bounds for tensor in tensors],
        *[SIZE for each in tensors for _ in each.dynamic_dimensions],
    ]


def _unflatten(types: Sequence[Type], nodes: Sequence[Node]) -> list[Value]:
    """The values of these types, flattened into `nodes`."""
    count = sum(1 for type in types for _ in _tensors(type))
    buffers, sizes = iter(nodes[:count]), iter(nodes[count:])

    def value(type: Type) -> Value:
        if isinstance(type, TupleType):
            return tuple([value(each) for each in type.elements])
        return Live(next(buffers), {dim: next(sizes) for dim in type.dynamic_dimensions})

    return [value(type) for type in types]
