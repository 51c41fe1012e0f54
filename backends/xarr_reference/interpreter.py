"""Runs a graph: node after node, each by its rule."""

from __future__ import annotations

from functools import partial
from typing import Final

from xarr.backend import failed_at
from xarr.errors import BackendError
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr_reference import (
    control,
    convolution,
    creation,
    elementwise,
    indexing,
    linear_algebra,
    movement,
    reduction,
    special,
    windows,
)
from xarr_reference.values import Rule, Value

#: The rule of every operation.
TABLE: Final[dict[type[Op], Rule]] = {
    **elementwise.TABLE,
    **creation.TABLE,
    **movement.TABLE,
    **reduction.TABLE,
    **indexing.TABLE,
    **windows.TABLE,
    **convolution.TABLE,
    **control.TABLE,
    **special.TABLE,
    **linear_algebra.TABLE,
}


def run(graph: Graph, *arguments: Value) -> tuple[Value, ...]:
    """The values of the graph's results for these values of its parameters."""
    values: dict[Node, Value] = dict(zip(graph.parameters, arguments, strict=True))
    for node in graph.nodes:
        values[node] = evaluate(node, [values[operand] for operand in node.operands])
    return tuple(values[node] for node in graph.results)


def evaluate(node: Node, operands: list[Value]) -> Value:
    """The value of one node; an error that arises says at which node."""
    rule = TABLE.get(type(node.op))
    if rule is None:
        raise BackendError(f"backend 'reference' has no {node.op.name}")
    computations = [partial(run, graph) for graph in node.op.graphs]
    try:
        return rule(node, *computations, *operands)
    except BaseException as error:
        failed_at(error, node)
        raise
