"""Runs a graph: node after node, each by its rule."""

from __future__ import annotations

from functools import partial
from typing import Final

from xarr.backend import mark_failed
from xarr.base.progress import StepCounter
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, OncePerGraph
from xarr.ir.op import Op
from xarr_reference import (
    collectives,
    control,
    convolution,
    creation,
    elementwise,
    factorisations,
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
    **collectives.TABLE,
    **special.TABLE,
    **linear_algebra.TABLE,
    **factorisations.TABLE,
}


def run(graph: Graph, *arguments: Value, counter: StepCounter | None = None) -> tuple[Value, ...]:
    """The values of the graph's results for these values of its parameters.

    With a `counter`, each node is a step, those of called graphs too.
    """
    values: dict[Node, Value] = dict(zip(graph.parameters, arguments, strict=True))
    for node in graph.nodes:
        values[node] = evaluate(node, [values[operand] for operand in node.operands], counter)
        if counter is not None:
            counter.step()
    return tuple(values[node] for node in graph.results)


def step_count(graph: Graph) -> int:
    """The number of steps that `run` counts."""
    return OncePerGraph(_step_count)(graph)


def _step_count(graph: Graph, inner: OncePerGraph[int]) -> int:
    called = (inner(each) for node in graph for each in node.op.graphs if isinstance(node.op, ops.Call))
    return len(graph.nodes) + sum(called)


def _run_iteration(body: Graph, counter: StepCounter, *carried: Value) -> tuple[Value, ...]:
    """Run one iteration of a loop and count it."""
    results = run(body, *carried)
    counter.iterate()
    return results


def evaluate(node: Node, operands: list[Value], counter: StepCounter | None = None) -> Value:
    """The value of one node; an error that arises says at which node."""
    rule = TABLE.get(type(node.op))
    if rule is None:
        raise BackendError(f"backend 'reference' has no {node.op.name}")
    called = counter if isinstance(node.op, ops.Call) else None
    computations = [partial(run, graph, counter=called) for graph in node.op.graphs]
    if counter is not None and isinstance(node.op, ops.While):
        computations[1] = partial(_run_iteration, node.op.body, counter)
    try:
        return rule(node, *computations, *operands)
    except BaseException as error:
        mark_failed(error, node)
        raise
