"""Computations of parts, made what the program around them can run.

A program that is compiled in a world of several members runs at each of them: it takes its own parts, computes, and
gets those of the others, all of which are nodes like any others.  A program of one process runs once: there a
computation is a call of a function on the host, which starts the members; these meet in its collectives.
"""

from __future__ import annotations

from functools import partial

from xarr.backend import AbstractBackend
from xarr.communication.communicator import current_communicator, current_grid
from xarr.errors import ArgumentError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs
from xarr.ir.parts import join_parts, own_number, take_part

Inner = OncePerGraph[Graph]


def expand(graph: Graph, backend: AbstractBackend) -> Graph:
    """`graph` without computations of parts, for the world in use.

    Raises ArgumentError for a mesh of another number of members than the world has.
    """
    if ops.ManualComputation not in graph.op_classes:
        return graph
    rule = _expand_at_members if current_communicator().size > 1 else partial(_call_host, backend=backend)

    def change(each: Graph, inner: Inner) -> Graph:
        new: dict[Node, Node] = {node: node for node in each.parameters}
        for node in each.nodes:
            operands = tuple([new[operand] for operand in node.operands])
            if isinstance(node.op, ops.ManualComputation):
                new[node] = rule(node, operands)
            else:
                op = map_graphs(node.op, inner)
                changed = op is not node.op or operands != node.operands
                new[node] = node.rebuilt(operands, None if op is node.op else op) if changed else node
        return each.derive(new)

    return OncePerGraph(change, _graphs_around)(graph)


def _graphs_around(node: Node) -> tuple[Graph, ...]:
    """The computations of a node but those of parts."""
    return () if isinstance(node.op, ops.ManualComputation) else node.op.graphs


def _call_host(node: Node, operands: tuple[Node, ...], backend: AbstractBackend) -> Node:
    op = node.op
    assert isinstance(op, ops.ManualComputation)
    types = tuple(op.results(node))
    call = ops.CustomCall(
        "xarr.shard_map", types, has_side_effect=op.is_ordered, function=op.start(op, backend)
    )
    return node.rebuilt(operands, call)


def _expand_at_members(node: Node, operands: tuple[Node, ...]) -> Node:
    op = node.op
    assert isinstance(op, ops.ManualComputation)
    world, is_partition = current_communicator(), current_grid().num_partitions > 1
    count = len(op.mesh.rows(()))
    if world.size != count:
        raise ArgumentError(
            f"wanted a mesh of all {world.size} replicas of {world.name}, got one of {count}\n"
            f"It is used at {node.source}"
        )
    own = own_number(is_partition)
    parts = [take_part(each, op.mesh, split, own) for each, split in zip(operands, op.in_splits, strict=True)]
    call = Node(ops.Call(op.computation), tuple(parts), location=node._location or ())
    count = len(op.out_splits)
    results = [call] if count == 1 else [Node(ops.GetTupleElement(k), (call,)) for k in range(count)]
    wholes = [
        join_parts(each, op.mesh, split, is_partition)[0]
        for each, split in zip(results, op.out_splits, strict=True)
    ]
    return wholes[0] if count == 1 else Node(ops.Tuple(), tuple(wholes))
