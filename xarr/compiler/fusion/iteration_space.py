"""What a group of element-wise operations and reductions computes, whatever order its loops run in."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xarr.compiler.fusion.accesses import parts_of, rank
from xarr.compiler.loop_ir.accumulators import combination
from xarr.compiler.loop_ir.elements import buffer_of, input_buffers
from xarr.compiler.loop_ir.scalars import Values
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, postorder


@dataclass(frozen=True)
class Run:
    """Neighbouring axes of the domain that one index goes through."""

    axes: tuple[int, ...]
    extent: int
    reduced: bool


class IterationSpace:
    """The axes that a group's loops go through, its inputs and outputs, its reductions and their stages.

    A schedule arranges them: which run of axes goes to lanes, blocks or threads, what is kept in between.

    * `runs` - the axes of the domain in runs that one index can go through: `kept_runs` and `reduced_runs`,
    * `reductions` - those over axes of the domain; `inner_reductions` are computed anew for each element of it,
    * `combinations` - for each reduction its computation, as accumulators hold it,
    * `stage_of` - for each node the number of reductions that follow one another until it can be computed.
    """

    def __init__(self, fusion: ops.Fusion, merged: Sequence[Sequence[int]]) -> None:
        self.fusion = fusion
        self.graph = fusion.computation
        self.values = Values()
        self.runs = [
            Run(tuple(axes), prod(fusion.domain[axis] for axis in axes), axes[0] in fusion.reduced)
            for axes in merged
        ]
        self.inputs = input_buffers(self.graph, fusion.ranges)
        self.outputs = tuple(buffer_of(f"out{k}", node, "out") for k, node in enumerate(self.graph.results))
        every = [node for node in self.graph.nodes if isinstance(node.op, ops.Reduce)]
        self.combinations = {node: combination(node) for node in every}
        self.reductions = [node for node in every if not self.is_inside(node)]
        self.inner_reductions = [node for node in every if self.is_inside(node)]
        self.stage_of = stages_of(self.graph, set(self.reductions))
        self.kept_runs = [run for run in self.runs if not run.reduced]
        self.reduced_runs = [run for run in self.runs if run.reduced]

    def is_inside(self, node: Node) -> bool:
        """Whether a reduction is computed anew for each element of the domain."""
        return rank(node.operands[0].shape) > rank(self.fusion.domain)

    def runs_along_all(self, node: Node) -> bool:
        """Whether a node that elements of the domain are computed from runs along the reduced axes too."""
        return rank(node.shape) == rank(self.fusion.domain)

    @property
    def has_reductions(self) -> bool:
        return bool(self.reductions or self.inner_reductions)

    @property
    def in_order(self) -> bool:
        """Whether a reduction wants its elements one after the other."""
        return any(self.combinations[node].in_order for node in self.reductions)

    @cached_property
    def visible(self) -> set[Node]:
        """Nodes with one element in each iteration of the loops over the domain: all but the insides of reductions."""
        return set(postorder(self.graph.results, self.inner_reductions.__contains__))

    def parts(self, node: Node) -> dict[Node, int]:
        """The nodes that stand for the results of a reduction, and which."""
        return parts_of(node, self.graph)


def stages_of(graph: Graph, reductions: Container[Node]) -> dict[Node, int]:
    """For each node how many of some reductions follow one another until it can be computed."""
    stages = dict.fromkeys(graph.parameters, 0)
    for node in graph.nodes:
        before = max((stages[operand] for operand in node.operands), default=0)
        stages[node] = before + (node in reductions)
    return stages


def inside_sizes(node: Node) -> list[int]:
    """The extents of a reduction's own dimensions, without those of size 1."""
    sizes = [node.operands[0].shape[axis] for axis in sorted(node.op.expect(ops.Reduce).dimensions)]
    return [size for size in sizes if size != 1]


def inside_count(node: Node) -> int:
    return prod(inside_sizes(node))
