"""The schedule of GPUs: one builder for all kinds of groups, by the rules of the serial schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.plan.overwriting import overwritable_operands
from xarr.compiler.schedule import Builder, Kind, Schedule
from xarr.compiler.schedules.gpu import products, scatters, select_and_scatter, sorts, windows
from xarr.compiler.schedules.gpu.grid_loops import GridLoops
from xarr.compiler.schedules.gpu.target import TARGET, GpuTarget
from xarr.compiler.schedules.serial import builders, movement
from xarr.compiler.schedules.serial.serial_loops import Rule
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op

RULES: Final[Mapping[type[Op], Rule]] = {
    **builders.RULES,
    ops.Convolution: products.convolution,
    ops.DotGeneral: products.dot_general,
    ops.Reduce: products.reduce,
    ops.ReduceWindow: windows.reduce_window,
    ops.Scatter: scatters.scatter,
    ops.SelectAndScatter: select_and_scatter.add_phases,
    ops.Sort: sorts.sort,
}


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group, whatever its kind."""
    assert isinstance(target, GpuTarget)
    pairs = overwritable_operands(fusion, target.min_reused_bytes)
    return GridLoops(fusion.computation, RULES, target, pairs).kernel()


def program_of(graph: Graph, target: GpuTarget = TARGET) -> Kernel:
    """The loop program of a graph of nodes each of which `computes` accepts."""
    return GridLoops(graph, RULES, target).kernel()


def program_of_update(node: Node, target: GpuTarget) -> Kernel:
    """The program of a `DynamicUpdateSlice` whose result holds the array already; it takes the other operands."""
    operands = node.operands[1:]
    return movement.update_in_place(GridLoops(Graph(operands, operands), RULES, target), node)


def computes(node: Node) -> bool:
    """Whether these loops compute a node, as those of the serial schedule do, or a sort."""
    return builders.computes(node, RULES)


BUILDERS: Final[Mapping[Kind, Builder]] = dict.fromkeys(
    [kind for kind in Kind if kind is not Kind.SYSTEMS], build
)
#: By `config.deterministic`.
SCHEDULES: Final = {
    setting: Schedule(TARGET.replace(deterministic=int(setting)), BUILDERS) for setting in (True, False)
}
