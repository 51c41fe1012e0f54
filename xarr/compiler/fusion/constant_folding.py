"""Elementary functions of numbers that are known, as exp(-1j * arange(n)): tables that are computed once.

A group would compute them in each call, and hold their code.  What only moves elements, or computes them in a few
instructions, as positions and masks, stays: loops know more of it than of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from xarr.compiler.functions import ELEMENTARY
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.types import TensorType

#: Gives the result of a graph without parameters, to the bits of compiled loops; None where they do not compute it.
Evaluate: TypeAlias = Callable[[Graph], "np.ndarray[Any, Any] | None"]


#: Gives a graph with tables of so many elements at most, 0 for any number.
Fold: TypeAlias = Callable[[Graph, int], Graph]


def fold_constants(graph: Graph, most_bytes: int, evaluate: Evaluate, most_elements: int = 0) -> Graph:
    """The graph with tables of so many bytes in all, at most, and so many elements each; itself if it has none."""
    tables = _find_tables(graph, most_bytes, most_elements) if ELEMENTARY & graph.op_classes else set()

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        values = evaluate(Graph((), [node])) if node in tables else None
        return None if values is None else node.rebuilt((), ops.Constant.of(values))

    return rewritten(graph, rule) if tables else graph


def _find_tables(graph: Graph, left: int, most_elements: int) -> set[Node]:
    """The last known nodes that are computed by elementary functions, and of which all that is used is small."""
    known: dict[Node, bool] = {}
    for node in graph.nodes:
        op, kind = node.op, node.type
        if not (op.is_elementwise or op.moves) or not all([each in known for each in node.operands]):
            continue
        if not isinstance(kind, TensorType) or kind.dynamic or (most_elements and kind.size > most_elements):
            continue
        if 0 < kind.nbytes <= left:
            is_function = type(op) in ELEMENTARY and kind.dtype.kind in "fcV"
            known[node] = is_function or any([known[each] for each in node.operands])
    needed = set(graph.results).union(*[node.operands for node in graph.nodes if node not in known])
    tables = set()
    for node in reversed(graph.nodes if any(known.values()) else ()):
        if node not in needed or node not in known:
            continue
        if known[node] and node.op.is_elementwise and node.tensor_type.nbytes <= left:
            left -= node.tensor_type.nbytes
            tables.add(node)
        else:
            needed.update(node.operands)
    return tables
