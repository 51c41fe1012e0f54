"""The serial schedule: one builder for all kinds of groups, and which operations it knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xarr.compiler.loop_ir import elements
from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.schedule import Builder, Kind, Schedule
from xarr.compiler.schedules.serial import movement, products, reductions, scatters, windows
from xarr.compiler.schedules.serial.serial_loops import Rule, SerialLoops
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, element_types
from xarr.ir.op import Op

RULES: Final[Mapping[type[Op], Rule]] = {
    ops.BitcastConvert: movement.bitcast_convert,
    ops.Call: movement.call,
    ops.Convolution: products.convolution,
    ops.DotGeneral: products.dot_general,
    ops.DynamicSlice: movement.dynamic_slice,
    ops.DynamicUpdateSlice: movement.dynamic_update_slice,
    ops.Fusion: movement.call,
    ops.Map: movement.map_elements,
    ops.Pad: movement.pad,
    ops.Reduce: reductions.reduce,
    ops.ReduceWindow: reductions.running_totals,
    ops.Reshape: movement.reshape,
    ops.Scatter: scatters.scatter,
    ops.SelectAndScatter: windows.select_and_scatter,
}


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group, whatever its kind."""
    return SerialLoops(fusion.computation, RULES, fusion.ranges).kernel()


BUILDERS: Final[Mapping[Kind, Builder]] = dict.fromkeys(
    [kind for kind in Kind if kind is not Kind.SYSTEMS], build
)

#: There are no local buffers, and no long programs.
TARGET: Final = Target().replace(max_group_members=40, max_serial_bytes=0, local_bytes=0)
SCHEDULE: Final = Schedule(TARGET, BUILDERS)


def program_of(graph: Graph) -> Kernel:
    """The loop program of a graph of nodes each of which `computes` accepts."""
    return SerialLoops(graph, RULES).kernel()


def computes(node: Node, rules: Mapping[type[Op], Rule] = RULES) -> bool:
    """Whether loops by these rules compute a node.

    Not what has no elements or sizes that are known late, or computations of scalars that are more than expressions.
    """
    if not all(elements.holds(type) for each in (node, *node.operands) for type in element_types(each.type)):
        return False
    if isinstance(node.op, ops.GetTupleElement):
        return type(node.operands[0].op) in rules
    if type(node.op) not in rules:
        return elements.computes(node)
    if isinstance(node.op, ops.Call | ops.Fusion):
        return all(computes(each, rules) for graph in node.op.graphs for each in graph.nodes)
    return all(elements.computes(each) for graph in node.op.graphs for each in graph.nodes)
