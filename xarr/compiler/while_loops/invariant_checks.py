"""Checks of index arrays that no step of a loop changes, made in front of it.

A step would look at all indices again, twice, and count them from the start again.  In front of the loop the check is
the same but that it must not fail where no step would run: then zeros are checked instead.  It is moved only if nothing
comes before it in a step that could fail or be observed otherwise, so that errors are raised in the same order.
"""

from __future__ import annotations

from xarr.compiler.passes.checks import checks_indices, index_bounds
from xarr.compiler.while_loops.loop_invariants import is_quiet
from xarr.compiler.while_loops.loop_rewriting import carry, first_results, rewrite_loops
from xarr.ir import ops
from xarr.ir.constants import full
from xarr.ir.graph import Graph, Node, parameter, rewritten


def hoist_checks(graph: Graph) -> Graph:
    """`graph` with the checks of many indices in front of its loops, and of those in the graphs of its operations."""
    return rewrite_loops(graph, _hoist)


def _hoist(node: Node) -> Node | None:
    """A loop that carries what its checks give; None if it has none that can be moved."""
    loop = node.op.expect(ops.While)
    checks = _invariant_checks(loop)
    runs = _runs(node) if checks else False
    if runs is False:
        return None
    carried = (*node.operands, *_make_checks(loop.body, checks, node.operands, runs))
    return first_results(node.rebuilt(carried, carry(loop, checks)), node)


def _invariant_checks(loop: ops.While) -> list[Node]:
    """The checks of many indices which no step changes, and before which no step can fail."""
    body = loop.body
    if not all(is_quiet(node.op) for node in loop.cond.nodes):
        return []
    known = {old for old, new in zip(body.parameters, body.results, strict=True) if old is new}
    changing, checks = set(body.parameters) - known, []
    for node in body.nodes:
        if node in changing:
            continue
        is_fixed = all(operand in known for operand in node.operands)
        if checks_indices(node):
            if (
                not is_fixed
                or node.tensor_type.dynamic
                or node.tensor_type.size < 2
                or not index_bounds(node)[1]
            ):
                break
            checks.append(node)
        elif not is_quiet(node.op):
            break
        if is_fixed:
            known.add(node)
    return checks


def _runs(node: Node) -> Node | bool:
    """Whether a loop runs a step: a bool if it is known, else the node that computes it."""
    assert isinstance(node.op, ops.While)
    iterations = node.op.iterations(node)
    if iterations is not None:
        return iterations > 0
    (going,) = node.op.cond.inline(*node.operands)
    return bool(going.op.array) if isinstance(going.op, ops.Constant) else going


def _make_checks(
    body: Graph, checks: list[Node], operands: tuple[Node, ...], runs: Node | bool
) -> tuple[Node, ...]:
    """The results of the checks for what the loop begins with; of zeros where no step runs."""
    before = Graph(body.parameters, checks)
    if isinstance(runs, bool):
        return before.inline(*operands)
    wanted, flag = set(checks), parameter(runs.type)

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if node not in wanted:
            return None
        every = Node(ops.BroadcastInDim(node.shape, ()), (flag,))
        zeros = full(0, node.shape, node.dtype)
        return node.rebuilt((Node(ops.Select(), (every, *operands, zeros)),))

    return rewritten(Graph((*body.parameters, flag), checks), rule).inline(*operands, runs)
