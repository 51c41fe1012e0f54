"""What elementary functions of known numbers are, to the bits of compiled groups.

Kernels of one register of lanes compute them, so that tables of all sizes have one: each is compiled once, and soon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from sys import maxsize
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.base.at_once.numpy_warnings import call_quietly
from xarr.compiler.fusion import stage
from xarr.compiler.fusion.constant_folding import fold_constants
from xarr.compiler.plan.planner import plan
from xarr.compiler.plan.program_plan import Launch
from xarr.ir import ops
from xarr.ir.constants import full, repeated_number
from xarr.ir.graph import Graph, Node, parameter, postorder
from xarr.ir.operands_first import compute_operands_first
from xarr.ir.types import TensorType
from xarr_numpy.compiled.kernel import CompiledKernel
from xarr_numpy.compiled.schedule import SCHEDULE
from xarr_numpy.processor import PROCESSOR

Array = np.ndarray[Any, Any]
#: Gives the results of a graph without parameters that only moves elements.
Run: TypeAlias = Callable[[Graph], Sequence[Array]]

#: Elements that a kernel computes: a register of float64 is full.
_LANES: Final = PROCESSOR.register_bytes // 8
#: Kernels that are kept.
_KEPT: Final = 256
#: Operations of a table: those below are looked at for each of them.
_MOST_OPERATIONS: Final = 256


def fold(graph: Graph, run: Run, most_elements: int) -> Graph:
    """The graph with tables of elementary functions of known numbers, of so many elements each, if that is not 0."""

    def evaluate(known: Graph) -> Array | None:
        return _evaluate(known, run) if len(known.nodes) <= _MOST_OPERATIONS else None

    return fold_constants(graph, PROCESSOR.max_table_bytes, evaluate, most_elements)


def _evaluate(graph: Graph, run: Run) -> Array | None:
    """The result of a graph without parameters, an element-wise operation, if loops compute it."""
    (root,) = graph.results
    tables: dict[Node, Array | None] = {}
    return compute_operands_first(root, tables, _tables_below, lambda node: _compute(node, tables, run))


def _tables_below(root: Node) -> list[Node]:
    """The tables of which what an operation computes with moves elements."""
    order = postorder([root], lambda node: not node.op.is_elementwise)
    leaves = Graph((), [node for node in order if not node.op.is_elementwise])
    below: list[Node] = []
    fold_constants(leaves, maxsize, lambda known: below.extend(known.results))
    return below


def _compute(root: Node, tables: Mapping[Node, Array | None], run: Run) -> Array | None:
    """As `_evaluate`, once the tables below are known."""
    lanes: dict[Node, Node] = {}
    leaves = []
    for node in postorder([root], lambda node: not node.op.is_elementwise):
        type = TensorType((_LANES,), node.dtype)
        if not node.op.is_elementwise:
            leaves.append(node)
            lanes[node] = parameter(type, location=())
            continue
        operands = [lanes[operand] for operand in node.operands]
        if isinstance(node.op, ops.Power) and (exponent := repeated_number(node.operands[1])) is not None:
            operands[1] = full(exponent, type.shape, node.dtype)  # which has a formula of its own
        lanes[node] = Node(node.op, tuple(operands), type, ())
    made = _kernel(Graph([lanes[leaf] for leaf in leaves], [lanes[root]]))
    if made is None:
        return None
    kernel, inputs = made
    # Below what moves elements others may be computed: by loops, too.
    moved = fold_constants(
        Graph((), [leaves[k] for k in inputs]), maxsize, lambda known: tables[known.results[0]]
    )
    arrays = call_quietly(run, moved)
    rows = -(-root.tensor_type.size // _LANES)
    operands_of_rows = zip(*[np.resize(array, (rows, _LANES)) for array in arrays], strict=True)
    results = [kernel.call(*each) for each in operands_of_rows]
    return np.concatenate(results)[: root.tensor_type.size].reshape(root.shape)


@lru_cache(_KEPT)
def _kernel(graph: Graph) -> tuple[CompiledKernel, list[int]] | None:
    """The one kernel that computes a graph, and the parameters that it takes; None if that takes others."""
    fused = stage.fuse(graph, PROCESSOR, lambda: SCHEDULE, hot=True)
    made = plan(fused, schedule=lambda: SCHEDULE, target=PROCESSOR)
    step = made.steps[0] if len(made.steps) == 1 else None
    if not isinstance(step, Launch) or step.program is None:
        return None
    kernel = CompiledKernel(step.program, (graph.results[0].tensor_type,), may_be_quick=True)
    return kernel, [made.parameters.index(number) for number in step.inputs]
