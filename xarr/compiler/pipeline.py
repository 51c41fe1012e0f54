"""The named stages from a traced graph to a running program, each of which can be stopped at and printed.

traced -> simplified -> static -> decomposed -> fused -> loops -> plan -> program
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from math import prod
from typing import Any, Final

from xarr.backend import AbstractBackend, Program
from xarr.base.configuration import current as config
from xarr.base.progress import ProgressBar
from xarr.compiler.dynamic.make_static import make_static
from xarr.compiler.passes.checks import without_checks
from xarr.compiler.passes.decompose import decompose
from xarr.compiler.passes.simplify import simplify
from xarr.compiler.passes.sub_byte import widen
from xarr.compiler.plan.loop_programs import LoopPrograms, loop_programs
from xarr.compiler.plan.planner import plan_for
from xarr.compiler.plan.program_plan import Plan
from xarr.compiler.programs import CompiledGraph
from xarr.errors import InputError, TooLargeError, ValueRangeError
from xarr.ir.graph import Graph, Node
from xarr.ir.ops import Reduce, ReduceWindow
from xarr.ir.types import TensorType, Type

#: Operations that a program may run, calls counted as often as they are made: some hours of small ones.
MOST_OPERATIONS: Final = 2**32

#: Classes whose objects print nothing but what Python prints.
_PLAIN: Final = frozenset({int, bool, float, complex, str, bytes, type(None)})


def _is_plain(attribute: Any) -> bool:
    """Whether an attribute may be written into the source of a program: no part of it prints text of its own.

    Objects of other classes than those of Python's values are never written, only referred to.
    """
    if type(attribute) in _PLAIN:
        return True
    if isinstance(attribute, tuple | list):
        return _PLAIN.issuperset(map(type, attribute)) or all(map(_is_plain, attribute))
    if is_dataclass(attribute):
        return all(_is_plain(getattr(attribute, field.name)) for field in fields(attribute))
    return not isinstance(attribute, int | float | complex | str | bytes)


def _within_limits(graph: Graph, backend: AbstractBackend) -> Graph:
    """The graph itself; TooLargeError if `backend` cannot compute it.

    That is for an array beyond its limits, whatever its memory, and for calls that would never end.
    """
    if graph.operation_count > MOST_OPERATIONS:
        raise TooLargeError(
            f"{graph.name} runs {graph.operation_count:.3g} operations, since its functions call one another again and "
            f"again; that would take days, and at most 2**{MOST_OPERATIONS.bit_length() - 1} are run: call in a loop "
            "what repeats, which lax.fori_loop and stablehlo.while do"
        )
    is_moderate = _LONG.isdisjoint(graph.op_classes) and _are_moderate(graph.types, backend)
    for each in graph.walk():
        for node in each.nodes:
            attributes = [each for each in vars(node.op).values() if type(each) not in _PLAIN]
            if attributes and not all(map(_is_plain, attributes)):
                raise InputError(
                    f"{node.op.lax_name}: wanted plain numbers and texts, got {node.op.attributes()}"
                )
            if not is_moderate and isinstance(node.type, TensorType):
                _check_size(node, node.type, backend)
    for node in graph.results:  # before anything is compiled for them
        if isinstance(node.type, TensorType) and node.type.nbytes > (backend.max_memory or node.type.nbytes):
            raise _too_large(
                node, node.type, f"{node.type.nbytes >> 40} TiB, beyond the memory of any machine"
            )
    return graph


def _are_moderate(types: Iterable[Type], backend: AbstractBackend) -> bool:
    """Whether values are so far within the limits of a backend that nothing else need be asked."""
    for each in types:
        if isinstance(each, TensorType):
            rank, nbytes = len(each.shape), each.nbytes
            if rank > (backend.max_rank or rank) or not 0 < nbytes <= (backend.max_nbytes or nbytes):
                return False
    return True


def _check_size(node: Node, type: TensorType, backend: AbstractBackend) -> None:
    # NumPy counts the bytes of an empty array as if its empty dimensions were not there.
    nbytes = type.dtype.itemsize * prod([size for size in type.shape if size])
    if backend.max_rank is not None and type.rank > backend.max_rank:
        reason = (
            f"{type.rank} dimensions, and arrays of backend {backend.name!r} have at most {backend.max_rank}"
        )
    elif backend.max_nbytes is not None and nbytes > backend.max_nbytes:
        least = f"2**{nbytes.bit_length() - 1}"
        reason = f"{least} bytes or more, which is beyond what backend {backend.name!r} can address"
    elif backend.max_steps is not None and (steps := _steps(node)) > backend.max_steps:
        reason = (
            f"{steps:.3g} elements to go through, which is beyond what backend {backend.name!r} does in a sensible "
            f"time, at most 2**{backend.max_steps.bit_length() - 1}; reduce it in parts"
        )
    else:
        return
    raise _too_large(node, type, reason)


def _too_large(node: Node, type: TensorType, reason: str) -> TooLargeError:
    origin = f", built at {node.source}" if node.source else ""
    return TooLargeError(f"{node.op.lax_name}: the result {type.short()} has {reason}{origin}")


def _steps(node: Node) -> int:
    """The number of elements that an op goes through whose operands need never be in memory."""
    return prod(node.operands[0].shape) if type(node.op) in _LONG else 0


#: Ops that go through more elements than they have in memory.
_LONG: Final = frozenset({Reduce, ReduceWindow})


#: The stages that give a graph, in order.
STAGES: Final = ("traced", "simplified", "static", "decomposed", "fused")
LAST: Final = STAGES[-1]
#: The names of all stages, in order.
STAGE_NAMES: Final = (*STAGES, "loops", "plan", "program")


def lower(graph: Graph, backend: AbstractBackend, stage: str = LAST, hot: bool = False) -> Graph:
    """`graph` as it stands after `stage`; after the last one it is what the backend compiles.

    `hot` says that it will run many times.

    With `config.verify_graphs` the graph is checked before and after each stage.  Raises ValueRangeError for an
    unknown stage, BackendError for an op that `backend` cannot run.
    """
    if stage not in STAGES:
        raise ValueRangeError(f"wanted one of the stages {', '.join(STAGE_NAMES)}, got {stage!r}")
    verifies = config.verify_graphs
    for name in STAGES:
        match name:
            case "simplified":
                graph = simplify(graph)
            case "static":
                graph = make_static(graph)
            case "decomposed":
                graph = _within_limits(decompose(widen(graph), backend), backend)
            case "fused":
                graph = backend.fuse(graph, hot)
        if verifies:
            graph.verify()
        if name == stage:
            break
    return graph


def make_program(
    graph: Graph,
    backend: AbstractBackend,
    hot: bool = False,
    donated: Sequence[int] = (),
    bar: ProgressBar | None = None,
) -> CompiledGraph:
    """The program of `backend` for `graph`: every one that the frontend runs is made here.

    donated: the parameters that it may write over.  bar: where it counts its steps.
    """
    graph, checks = without_checks(graph, backend)
    lowered = lower(graph, backend, hot=hot)
    if bar is not None:
        program = backend.compile_watched(lowered, bar)
    else:
        program = backend.compile_owning(lowered, donated) if donated else backend.compile(lowered)
    return CompiledGraph(program, lowered, backend, checks)


def stage_of(
    graph: Graph, backend: AbstractBackend, name: str, hot: bool = False, donated: Sequence[int] = ()
) -> Graph | LoopPrograms | Plan | Program:
    """Return what `graph` is after a stage of any name, on the way to what `make_program` makes of it."""
    if name == "program":
        return make_program(graph, backend, hot, donated).program
    if name != STAGES[0]:
        graph, _ = without_checks(graph, backend)
    if name == "loops":
        return loop_programs(lower(graph, backend, hot=hot), backend)
    if name == "plan":
        return plan_for(lower(graph, backend, hot=hot), backend, donated)
    return lower(graph, backend, name, hot)
