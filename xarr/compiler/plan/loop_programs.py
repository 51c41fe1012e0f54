"""The stage `loops`: what each group and each native loop of a fused graph runs."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, TypeAlias

from xarr.base.frozen_dataclasses import record
from xarr.ir import ops

if TYPE_CHECKING:
    from xarr.backend import AbstractBackend
    from xarr.compiler.loop_ir.loops import Kernel
    from xarr.compiler.schedule import Schedule
    from xarr.compiler.while_loops.iterated_groups import IteratedGroup
    from xarr.compiler.while_loops.native_loops import NativeLoop
    from xarr.ir.graph import Graph, Node

LoopProgram: TypeAlias = "Kernel | NativeLoop | IteratedGroup"


def build_native_loop(loop: ops.NativeWhile, schedule: Schedule) -> NativeLoop | IteratedGroup:
    """The program of a native loop; one object for equal loops."""
    # It takes a while to load, and is there already if the stage `fused` has made a native loop.
    from xarr.compiler.while_loops.lowering import loop_program

    return loop_program(loop, schedule)


@record(eq=False)
class LoopPrograms:
    """The loop programs of a fused graph, each once, with the first node that it computes.

    * `device` - the name of the backend's device,
    * `reason` - why there are none, "" if there are some.
    """

    graph: Graph
    device: str
    programs: tuple[tuple[Node, LoopProgram], ...]
    reason: str = ""

    def __str__(self) -> str:
        """Each program below the operations that it computes, and their types."""
        title = f"loop programs of {self.graph.name} on {self.device}:"
        if self.reason:
            return f"{title} none, {self.reason}"
        return "\n".join([title, *[_text(*pair) for pair in self.programs]])

    __repr__ = __str__


def _text(node: Node, program: LoopProgram) -> str:
    operands = ", ".join(operand.type.short() for operand in node.operands)
    lines = indent(str(program).rstrip(), "    ")
    return f"{node.op.called}({operands}) -> {node.type.short()}:\n{lines}"


def loop_programs(graph: Graph, backend: AbstractBackend) -> LoopPrograms:
    """The loop programs of a graph that a backend has fused, as its Schedule builds them."""
    device, schedule = backend.device().name, backend.schedule()
    if schedule is None:
        engine = backend.engine()
        reason = f"since backend {backend.name!r} runs operation by operation{engine and f' ({engine})'}"
        return LoopPrograms(graph, device, (), reason)
    programs: dict[LoopProgram, Node] = {}
    for each in graph.walk(_graphs_outside):
        for node in each.nodes:
            if isinstance(node.op, ops.Fusion):
                programs.setdefault(schedule.build(node.op), node)
            elif isinstance(node.op, ops.NativeWhile):
                programs.setdefault(build_native_loop(node.op, schedule), node)
    reason = "" if programs else f"since no operations of it run as one (engine: {backend.engine()})"
    return LoopPrograms(graph, device, tuple([(node, program) for program, node in programs.items()]), reason)


def _graphs_outside(node: Node) -> tuple[Graph, ...]:
    """The graphs that a node carries, but for those that loop programs run."""
    return () if isinstance(node.op, ops.Fusion | ops.NativeWhile) else node.op.graphs
