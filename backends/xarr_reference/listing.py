"""A graph as text for people: one line for each node, carried computations indented below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xarr.ir.graph import Graph, Node
from xarr.ir.ops import Constant, Iota


def listing(graph: Graph) -> str:
    """The whole text, `%0 …` being the graph's parameters and then its nodes in the order they run."""
    return "\n".join(_lines(graph, graph.name)) + "\n"


def _lines(graph: Graph, title: str) -> Iterator[str]:
    names = {node: f"%{number}" for number, node in enumerate((*graph.parameters, *graph.nodes))}
    yield f"{title}({', '.join(f'{names[node]}: {node.type.short()}' for node in graph.parameters)}):"
    for node in graph.nodes:
        operands = ", ".join(names[operand] for operand in node.operands)
        attributes = "".join(f", {text}" if operands else text for text in _attributes(node))
        yield f"  {names[node]}: {node.type.short()} = {node.op.name}({operands}{attributes})"
        for number, inner in enumerate(node.op.graphs):
            yield from (f"    {line}" for line in _lines(inner, f"computation {number}"))
    yield f"  return {', '.join(names[node] for node in graph.results)}"


def _attributes(node: Node) -> Iterator[str]:
    if isinstance(node.op, Constant):
        text = " ".join(str(node.op.array).split())
        yield text if len(text) <= 60 else f"{text[:57]}..."
        return
    for name, value in node.op.attributes().items():
        if not _is_computation(value) and not (isinstance(node.op, Iota) and name == "type"):
            yield f"{name}={value}"


def _is_computation(value: Any) -> bool:
    return isinstance(value, Graph) or (isinstance(value, tuple) and any(isinstance(v, Graph) for v in value))
