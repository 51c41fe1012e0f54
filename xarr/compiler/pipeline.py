"""The named stages from a traced graph to a running program, each of which can be stopped at and printed.

traced -> simplified -> static -> decomposed -> fused -> loops -> plan -> program
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final

from xarr.backend import AbstractBackend, Program
from xarr.base.configuration import current as config
from xarr.compiler.collection import collection_paused
from xarr.compiler.dynamic.make_static import make_static
from xarr.compiler.limits import check_limits
from xarr.compiler.manual_computations import expand
from xarr.compiler.passes.checks import Checks, without_checks
from xarr.compiler.passes.decompose import decompose
from xarr.compiler.passes.simplify import simplify
from xarr.compiler.passes.sub_byte import widen
from xarr.compiler.plan.loop_programs import LoopPrograms, loop_programs
from xarr.compiler.plan.planner import plan_for
from xarr.compiler.plan.program_plan import Plan
from xarr.compiler.programs import CompiledGraph
from xarr.errors import ValueRangeError
from xarr.ir.graph import Graph

#: The stages that give a graph, in order.
STAGES: Final = ("traced", "simplified", "static", "decomposed", "fused")
LAST: Final = STAGES[-1]
#: The names of all stages, in order.
STAGE_NAMES: Final = (*STAGES, "loops", "plan", "program")
#: Nodes of a graph beside whose program the objects that the collector of garbage goes through are few.  A program
#: that is to run often is made once, and in a process with many other objects one collection takes as long.
_LARGE: Final = 1000


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
        before = graph
        match name:
            case "simplified":
                graph = simplify(graph)
            case "static":
                graph = make_static(graph)
            case "decomposed":
                graph = decompose(widen(graph), backend)
                check_limits(graph, backend)
            case "fused":
                graph = backend.fuse(graph, hot)
        if verifies:
            graph.verify(before)
        if name == stage:
            break
    return graph


def prepare(graph: Graph, backend: AbstractBackend) -> tuple[Graph, Checks | None]:
    """The graph that goes through the stages, and the checks in it that became flags."""
    return without_checks(expand(graph, backend), backend)


def make_program(
    graph: Graph, backend: AbstractBackend, hot: bool = False, donated: Sequence[int] = ()
) -> CompiledGraph:
    """The program of `backend` for `graph`: every one that the frontend runs is made here.

    donated: the parameters that it may write over.
    """
    with collection_paused() if hot or len(graph.nodes) >= _LARGE else nullcontext():
        return _make_program(graph, backend, hot, donated)


def _make_program(graph: Graph, backend: AbstractBackend, hot: bool, donated: Sequence[int]) -> CompiledGraph:
    graph, checks = prepare(graph, backend)
    lowered = lower(graph, backend, hot=hot)
    if donated:
        program = backend.compile_owning(lowered, donated)
    else:
        program = backend.compile(lowered) if hot else backend.compile_eager(lowered)
    return CompiledGraph(program, lowered, backend, checks)


def stage_of(
    graph: Graph, backend: AbstractBackend, name: str, hot: bool = False, donated: Sequence[int] = ()
) -> Graph | LoopPrograms | Plan | Program:
    """Return what `graph` is after a stage of any name, on the way to what `make_program` makes of it."""
    if name == "program":
        return make_program(graph, backend, hot, donated).program
    if name != STAGES[0]:
        graph, _ = prepare(graph, backend)
    if name == "loops":
        return loop_programs(lower(graph, backend, hot=hot), backend)
    if name == "plan":
        return plan_for(lower(graph, backend, hot=hot), backend, donated)
    return lower(graph, backend, name, hot)
