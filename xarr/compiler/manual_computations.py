"""Computations of parts, made what the program around them can run.

A program that is compiled in a world of several members runs at each of them: it takes its own parts, computes, and
gets those of the others, all of which are nodes like any others.  A program of one process runs once: there a
computation is a call of a function on the host, which starts the members; these meet in its collectives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xarr.backend import AbstractBackend
from xarr.communication.communicator import Communicator, current_communicator, current_grid
from xarr.errors import ArgumentError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs
from xarr.ir.parts import join_parts, own_number, take_part
from xarr.ir.types import TupleType

Inner = OncePerGraph[Graph]


Rule = Callable[[Node, tuple[Node, ...]], Node]


def expand(graph: Graph, backend: AbstractBackend) -> Graph:
    """`graph` without computations of parts, for the world in use.

    Raises ArgumentError for a mesh of another number of members than the world has.
    """
    if ops.ManualComputation not in graph.op_classes:
        return graph
    world = current_communicator()
    if world.size == 1:
        return _replace(graph, partial(_call_host, backend=backend))
    for each in graph.walk(_graphs_around):
        for node in each.nodes:
            if isinstance(node.op, ops.ManualComputation):
                _check_mesh(node, node.op, world)
    return expand_at_members(graph)


def expand_at_members(graph: Graph) -> Graph:
    """`graph` as each member of the mesh runs it: without computations of parts."""
    return _replace(graph, _expand_node)


def _check_mesh(node: Node, op: ops.ManualComputation, world: Communicator) -> None:
    count = len(op.mesh.rows(()))
    if world.size != count:
        raise ArgumentError(
            f"wanted a mesh of all {world.size} replicas of {world.name}, got one of {count}\n"
            f"It is used at {node.source}"
        )


def _replace(graph: Graph, rule: Rule) -> Graph:
    """`graph` with what a rule makes of each computation of parts, but of those inside of others."""

    def change(each: Graph, inner: Inner) -> Graph:
        new: dict[Node, Node] = {node: node for node in each.parameters}
        for node in each.nodes:
            operands = tuple([new[operand] for operand in node.operands])
            if isinstance(node.op, ops.ManualComputation):
                new[node] = rule(node, operands)
            else:
                op = map_graphs(node.op, inner)
                is_same = op is node.op and operands == node.operands
                new[node] = node if is_same else node.rebuilt(operands, None if op is node.op else op)
        return each.derive(new)

    if ops.ManualComputation not in graph.op_classes:
        return graph
    return OncePerGraph(change, _graphs_around)(graph)


def _graphs_around(node: Node) -> tuple[Graph, ...]:
    """The computations of a node but those of parts."""
    return () if isinstance(node.op, ops.ManualComputation) else node.op.graphs


def _call_host(node: Node, operands: tuple[Node, ...], backend: AbstractBackend) -> Node:
    op = node.op.expect(ops.ManualComputation)
    types = tuple(op.results(node))
    call = ops.CustomCall(
        "xarr.shard_map", types, has_side_effect=op.is_ordered, function=op.start(op, backend)
    )
    return node.rebuilt(operands, call)


def _expand_node(node: Node, operands: tuple[Node, ...]) -> Node:
    op, is_partition = node.op.expect(ops.ManualComputation), current_grid().num_partitions > 1
    own = own_number(is_partition)
    parts = [take_part(each, op.mesh, split, own) for each, split in zip(operands, op.in_splits, strict=True)]
    call = Node(ops.Call(op.computation), tuple(parts), location=node._location or ())
    if not isinstance(call.type, TupleType):
        return join_parts(call, op.mesh, op.out_splits[0], is_partition)[0]
    wholes = [
        join_parts(Node(ops.GetTupleElement(number), (call,)), op.mesh, split, is_partition)[0]
        for number, split in enumerate(op.out_splits)
    ]
    return Node(ops.Tuple(), tuple(wholes)) if wholes else call
