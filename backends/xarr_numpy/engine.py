"""Which parts of a graph run as compiled loops.

The answer depends on the graph and on `config.fusion` alone, never on how often something ran before, so
that a program gives the same bits each time.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache, lru_cache
from math import prod
from typing import Any, Final

from xarr.config import current as config
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, map_graphs
from xarr.ir.types import TensorType

#: Element operations that take NumPy longer than the compiler takes to make a loop of them.
WORTH_COMPILING: Final = 2**22
#: The same for the body of a loop, which runs several times.
WORTH_COMPILING_IN_LOOP: Final = 2**16
#: Element operations that a transcendental function counts for.
COSTLY: Final = 5
#: Kernels that are kept.
KEPT: Final = 1024


@cache
def available() -> bool:
    """Whether the compiler is installed (`pip install 'xarr[jit]'`)."""
    return importlib.util.find_spec("llvmlite") is not None


def fuse(graph: Graph, hot: bool) -> Graph:
    """`graph` with groups that become compiled loops."""
    mode = config.fusion
    if mode == "off" or (mode == "auto" and not available()):
        return graph
    # A call of a kernel costs no more than one of NumPy's functions.
    least = 1 if hot or mode == "compiled" else WORTH_COMPILING
    return _fused(graph, least, hot)


@cache
def _compiler() -> Any:
    """The module that compiles groups; loaded when there is something to compile, since it takes a while."""
    return importlib.import_module("xarr_numpy.compiled.kernel")


@lru_cache(KEPT)
def kernel(fusion: ops.Fusion) -> Any:
    """A group as a function of arrays, a `CompiledKernel`."""
    return _compiler().CompiledKernel(fusion)


def _fused(graph: Graph, least: int, hot: bool) -> Graph:
    graph = _with_bodies(graph, least, hot)
    if not hot and not _may_hold(graph, least):
        return graph

    def worth(domain: tuple[int, ...], cheap: int, costly: int) -> bool:
        return prod(domain) * (cheap + COSTLY * costly) >= least

    found: Graph = _compiler().fuse(graph, worth)
    return found


def _with_bodies(graph: Graph, least: int, hot: bool) -> Graph:
    """The same in the graphs that loops, branches and calls run."""
    replaced: dict[Node, Node] = {}
    inner = min(least, WORTH_COMPILING_IN_LOOP)
    for node in graph.nodes:
        operands = tuple(replaced.get(operand, operand) for operand in node.operands)
        op = node.op
        if isinstance(op, ops.While | ops.If | ops.Case | ops.Call):
            op = map_graphs(op, lambda body: _fused(body, inner, hot))
        if op is not node.op:
            replaced[node] = node.rebuilt(operands, op)
        elif any(a is not b for a, b in zip(operands, node.operands, strict=True)):
            replaced[node] = node.rebuilt(operands)
    if not replaced:
        return graph
    return Graph(graph.parameters, [replaced.get(node, node) for node in graph.results], graph.name)


def _may_hold(graph: Graph, least: int) -> bool:
    """Whether there is enough work for one group."""
    sizes = [
        node.type.size for node in (*graph.nodes, *graph.parameters) if isinstance(node.type, TensorType)
    ]
    return max(sizes, default=0) * COSTLY * max(1, len(graph.nodes)) >= least
