"""Replace what a backend cannot run whole by ops that it can; refuse what has no decomposition.

A concatenation of more arrays than a kernel takes is one of concatenations.
"""

from __future__ import annotations

from functools import partial

from xarr.backend import AbstractBackend
from xarr.errors import BackendError
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs
from xarr.ir.ops import Concatenate, GetTupleElement, Tuple
from xarr.ir.rewriting import rewritten_throughout


def decompose(graph: Graph, backend: AbstractBackend) -> Graph:
    """`graph`, and every computation that its ops carry, in ops of `backend` only.

    Raises BackendError, naming op, backend and source line, for an op that the backend lacks and that is
    not defined in terms of others.
    """
    if _is_ready(graph, backend):
        return graph
    once: OncePerGraph[Graph] = OncePerGraph(partial(_whole, backend=backend))
    return once(graph)


Inner = OncePerGraph[Graph]


def _whole(graph: Graph, inner: Inner, backend: AbstractBackend) -> Graph:
    decomposed = _decompose_graph(graph, inner, backend)
    for node in decomposed.nodes:
        if not backend.supports(type(node.op)):
            raise _refusal(node, backend)
    return decomposed


def _decompose_graph(graph: Graph, inner: Inner, backend: AbstractBackend) -> Graph:
    """As `decompose`, but tuples stay, since ops that unpack them may follow."""
    if _is_ready(graph, backend):
        return graph
    new: dict[Node, Node] = {node: node for node in graph.parameters}
    for node in graph.nodes:
        operands = tuple(new[operand] for operand in node.operands)
        if isinstance(node.op, GetTupleElement) and isinstance(operands[0].op, Tuple):
            new[node] = operands[0].operands[node.op.index]
        else:
            new[node] = _decompose_node(node.rebuilt(operands), inner, backend)
    return graph.derive(new)


def _is_ready(graph: Graph, backend: AbstractBackend) -> bool:
    return all(map(backend.supports, graph.op_classes))


def _decompose_node(node: Node, inner: Inner, backend: AbstractBackend) -> Node:
    if backend.supports(type(node.op)):
        op = map_graphs(node.op, inner)
        return node if op is node.op else node.rebuilt(node.operands, op)
    if isinstance(node.op, Tuple):
        return node
    parts = node.op.decompose(*node.operands)
    if parts is None:
        raise _refusal(node, backend)
    graph = Graph(dict.fromkeys(node.operands), [parts])
    for part in graph.nodes:
        if part.source is not None:  # not one that programs share
            part.take_source(node)
    return _decompose_graph(graph, inner, backend).results[0]


def _refusal(node: Node, backend: AbstractBackend) -> BackendError:
    origin = f"\nbuilt at {node.source}" if node.source else ""
    return BackendError(f"backend {backend.name!r} has no {node.op.name} and it is not composite{origin}")


def split_concatenations(graph: Graph, most: int) -> Graph:
    """`graph` with concatenations of at most so many arrays, at least 2, each of which may be one in turn.

    A kernel has a pointer to each array among its parameters.
    """

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if len(operands) <= most or not isinstance(node.op, Concatenate):
            return None
        while len(operands) > most:
            parts = [operands[k : k + most] for k in range(0, len(operands), most)]
            operands = tuple([node.rebuilt(part, node.op) for part in parts])
        return node.rebuilt(operands, node.op)

    return rewritten_throughout(graph, rule)
