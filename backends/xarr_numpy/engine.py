"""Which parts of a graph run as one: compiled loops where llvmlite is installed, else one NumPy call an operation.

The answer depends on the graph and on `config.fusion` alone, never on how often something ran before, so
that a program gives the same bits each time.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata
from math import prod
from typing import Any, Final

from xarr.compiler.passes.ciphers import by_pairs, by_words
from xarr.compiler.while_loops.checked_loops import CheckedLoop, without_checks
from xarr.compiler.while_loops.loop_invariants import without_invariants
from xarr.compiler.while_loops.native_loops import known_steps
from xarr.config import current as config
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, rewritten
from xarr.ir.ops.ciphers import cipher_of
from xarr.ir.types import TensorType

#: Element operations that take NumPy longer than the compiler takes to make a loop of them.
WORTH_COMPILING: Final = 2**22
#: The same for the body of a loop, which runs several times.
WORTH_COMPILING_IN_LOOP: Final = 2**16
#: Updates or comparisons, one after the other, that take NumPy longer than the compiler takes.
WORTH_COMPILING_STEPS: Final = 2**9
#: Element operations that a transcendental function counts for.
COSTLY: Final = 5
#: Kernels that are kept.
KEPT: Final = 1024


#: The modules that run groups, by engine, and those that run loops and computations of scalars in machine code.
_MODULES: Final = {
    "compiled": "xarr_numpy.compiled.kernel",
    "loops": "xarr_numpy.compiled.loop_kernel",
    "repeated": "xarr_numpy.compiled.repeated",
    "sequential": "xarr_numpy.compiled.sequential",
}


@cache
def available() -> bool:
    """Whether the compiler is installed (`pip install 'xarr[jit]'`)."""
    return importlib.util.find_spec("llvmlite") is not None


def chosen() -> str:
    """The engine in use: "compiled" or "off".

    Raises BackendError if `config.fusion` wants the compiler and it is not installed.
    """
    mode = config.fusion
    if mode == "compiled" and not available():
        raise BackendError(
            "config.fusion is 'compiled', which wants llvmlite, and that is not installed: pip install 'xarr[jit]', "
            "or choose 'off' or 'auto', which do without"
        )
    if mode == "auto":
        return "compiled" if available() else "off"
    return mode


def description() -> str:
    """The engine in use and why, in one line."""
    asked = "" if config.fusion == "auto" else f", as config.fusion = {config.fusion!r} says"
    if config.fusion == "off":
        return f"none{asked}: one NumPy call for each operation"
    if available():
        return f"compiled loops (llvmlite {metadata.version('llvmlite')}){asked}"
    return (
        f"none{asked}: one NumPy call for each operation, as llvmlite is not installed; "
        "for compiled loops pip install 'xarr[jit]'"
    )


def fuse(graph: Graph, hot: bool) -> Graph:
    """`graph` with groups that run as one."""
    if chosen() == "off":
        return graph if config.fusion == "off" else by_pairs(graph)
    # Under jit a call of a kernel costs no more than one of NumPy's functions.
    least = 1 if hot or config.fusion != "auto" else WORTH_COMPILING
    inner = min(least, WORTH_COMPILING_IN_LOOP)
    once = OncePerGraph[Graph](lambda graph, once: _fused(graph, inner, hot, once), _called)
    return _fused(graph, least, hot, once)


@cache
def _module(name: str) -> Any:
    """One of them; loaded when there is something to run, since it takes a while."""
    return importlib.import_module(_MODULES[name])


@lru_cache(KEPT)
def kernel(fusion: ops.Fusion) -> Any:
    """A group as a function of arrays."""
    return _module("compiled").CompiledKernel(fusion)


def sequential(computation: Graph, steps: int) -> bool:
    """Whether a computation of scalars that must run so often in order is compiled."""
    if chosen() != "compiled" or (config.fusion == "auto" and steps < WORTH_COMPILING_STEPS):
        return False
    found: bool = sequential_module().computes(computation)
    return found


def sequential_module() -> Any:
    """What compiles such computations."""
    return _module("sequential")


def _fused(graph: Graph, least: int, hot: bool, inner: OncePerGraph[Graph]) -> Graph:
    """`inner` does the same to the graphs that loops, branches and calls run, for less work."""
    graph = by_pairs(by_words(graph, least // COSTLY))
    graph = _with_bodies(graph, least, hot, inner)
    if not hot and not _may_hold(graph, least):
        return graph

    def worth(domain: tuple[int, ...], cheap: int, costly: int) -> bool:
        return prod(domain) * (cheap + COSTLY * costly) >= least

    found: Graph = _module("compiled").fuse(graph, worth)
    return found


def _with_bodies(graph: Graph, least: int, hot: bool, inner: OncePerGraph[Graph]) -> Graph:
    """The same in the graphs that loops, branches and calls run."""
    in_loop = min(least, WORTH_COMPILING_IN_LOOP)

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        native = _native(node, operands, least, in_loop, hot)
        if native is not None:
            return native
        if not isinstance(node.op, ops.While | ops.If | ops.Case | ops.Call) or cipher_of(node) is not None:
            return None
        if isinstance(node.op, ops.While):
            return _loop_of_groups(node.op, node, operands, inner)
        op = map_graphs(node.op, inner)
        return None if op is node.op else node.rebuilt(operands, op)

    return rewritten(graph, rule)


def _called(node: Node) -> tuple[Graph, ...]:
    """The function that a node calls, if its operations are fused."""
    return node.op.graphs if type(node.op) is ops.Call and cipher_of(node) is None else ()


def loop_kernel(loop: ops.NativeWhile) -> Any:
    """A native loop as a function of arrays."""
    return _loop_kernel(_bare(loop))


def _native(node: Node, operands: tuple[Node, ...], least: int, inner: int, hot: bool) -> Node | None:
    """A loop as a native loop over `operands`, if it is worth it and can be one."""
    op = node.op
    if not isinstance(op, ops.While) or not _is_worth_it(node, least, inner, hot):
        return None
    for wider in _wider(op):
        found = _plan(_bare(wider.loop))
        if found is not None:
            return wider.node(node, operands, wider.native(wider.loop, str(found.describe())))
    return None


@dataclass(frozen=True)
class _Wider:
    """A loop that carries more than it did, so that it can be a native loop.

    initial: the values that it carries beyond those before, from these.
    checks: which of the values are looked at after the last step, and by what.
    """

    loop: ops.While
    initial: Graph | None = None
    checks: tuple[tuple[int, ops.CustomCall], ...] = ()

    def native(self, loop: ops.While, text: str) -> ops.NativeWhile:
        return ops.NativeWhile(loop.cond, loop.body, self.loop.progress, text, self.checks)

    def node(self, node: Node, operands: tuple[Node, ...], op: ops.While) -> Node:
        """This loop, as `op`, in the place of `node`, with the results of that."""
        if self.initial is None:
            return node.rebuilt(operands, op)
        found = node.rebuilt((*operands, *self.initial.inline(*operands)), op)
        parts = [Node(ops.GetTupleElement(k), (found,)) for k in range(len(operands))]
        return parts[0] if isinstance(node.type, TensorType) else Node(ops.Tuple(), tuple(parts))


def _wider(loop: ops.While) -> Iterator[_Wider]:
    """The loop, without the checks of its steps, and without what does not change from step to step either."""
    yield _Wider(loop)
    checked = _without_checks(loop, Graph(loop.body.parameters, ()))
    if checked is not None:
        yield checked
    loosened = without_invariants(loop)
    if loosened is not None:
        yield _without_checks(*loosened) or _Wider(*loosened)


def _without_checks(loop: ops.While, initial: Graph) -> _Wider | None:
    checked = without_checks(loop)
    if checked is None:
        return None
    values = (*initial.results, *map(Node, checked.initial))
    return _Wider(checked.loop, Graph(initial.parameters, values), checked.checks)


def _loop_of_groups(
    loop: ops.While, node: Node, operands: tuple[Node, ...], fused: Callable[[Graph], Graph]
) -> Node:
    """A loop whose body and condition are made of groups; a native loop if it is one group, but for its scalars."""
    loosened = without_invariants(loop, read_in_part=True)
    wider = _Wider(loop) if loosened is None else _Wider(*loosened)
    op = map_graphs(wider.loop, fused)
    assert isinstance(op, ops.While)
    checked = _without_checks(wider.loop, wider.initial or Graph(loop.body.parameters, ()))
    for each in filter(None, (wider, checked)):
        grouped = op if each is wider else map_graphs(each.loop, fused)
        assert isinstance(grouped, ops.While)
        found = _repeating(each.loop, grouped)
        if found is not None:
            return each.node(node, operands, each.native(found, found.remark_text))
    return wider.node(node, operands, op)


def _repeating(loop: ops.While, fused: ops.While) -> ops.NativeWhile | None:
    """A loop whose fused body is one group, but for its scalars, as a native loop over that."""
    body = fused.body
    if body.parameters != loop.body.parameters:
        return None
    results = [
        old if isinstance(old.type, TensorType) and old.tensor_type.size == 1 else new
        for old, new in zip(loop.body.results, body.results, strict=True)
    ]
    mixed = ops.While(loop.cond, Graph(body.parameters, results, body.name))
    found = _repetition(mixed)
    return found and ops.NativeWhile(mixed.cond, mixed.body, loop.progress, str(found.describe()))


def loop_kernel_if_any(loop: ops.While) -> tuple[Any, CheckedLoop | None] | None:
    """The same for a loop of which it is not known whether it can be one; None if it cannot.

    With its checks taken out if only then it can.
    """
    bare = _bare(loop)
    if _plan(bare) is not None:
        return _loop_kernel(bare), None
    checked = without_checks(bare)
    if checked is None or _plan(checked.loop) is None:
        return None
    return _loop_kernel(checked.loop), checked


def _bare(loop: ops.While) -> ops.While:
    """What computes the same; whether it shows its progress does not matter."""
    return ops.While(loop.cond, loop.body)


@lru_cache(KEPT)
def _plan(loop: ops.While) -> Any:
    return _module("loops").plan(loop)


@lru_cache(KEPT)
def _repetition(loop: ops.While) -> Any:
    return _module("repeated").plan(loop)


@lru_cache(KEPT)
def _loop_kernel(loop: ops.While) -> Any:
    found = _plan(loop)
    if found is None:
        return _module("repeated").RepeatedKernel(_repetition(loop))
    return _module("loops").LoopKernel(found)


def _is_worth_it(node: Node, least: int, inner: int, hot: bool) -> bool:
    """Whether a loop is worth to be one native loop, if loops are compiled at all."""
    if chosen() != "compiled":
        return False
    assert isinstance(node.op, ops.While)
    size = max(
        (each.tensor_type.size for each in node.op.body.nodes if isinstance(each.type, TensorType)), default=0
    )
    work = size * len(node.op.body.nodes)
    steps = known_steps(node)
    return hot or work >= inner or (steps is not None and steps * work >= least)


def _may_hold(graph: Graph, least: int) -> bool:
    """Whether there is enough work for one group."""
    sizes = [
        node.type.size for node in (*graph.nodes, *graph.parameters) if isinstance(node.type, TensorType)
    ]
    return max(sizes, default=0) * COSTLY * max(1, len(graph.nodes)) >= least
