"""Arrays that both the condition and the body of a loop compute, computed once for both.

    while any(p[p] != p): p = p[p]            s = p[p]; while any(s != p): p = s; s = p[p]

The condition looks at them after each step, and the next step computes them again; so the loop carries them along.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from xarr.compiler.passes.checks import checks_indices
from xarr.compiler.while_loops.loop_invariants import is_quiet
from xarr.compiler.while_loops.loop_rewriting import first_results, rewrite_loops, with_parameters
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, postorder
from xarr.ir.types import TensorType

#: What takes longer to compute again than to read.  Conditions of points, as masks are, are computed where the points
#: are, and neighbours where a grid is read.
_COSTLY: Final = (ops.Convolution, ops.DotGeneral, ops.Gather, ops.Sort)


def share_conditions(graph: Graph, most_bytes: int) -> Graph:
    """`graph` with loops that carry what conditions and bodies compute, up to `most_bytes`; in graphs inside too."""
    return rewrite_loops(graph, partial(_share, most_bytes=most_bytes))


def _share(node: Node, most_bytes: int) -> Node | None:
    """A loop that carries what its condition shares with its body; None if that is nothing."""
    loop = node.op.expect(ops.While)
    pairs = [] if loop.is_ordered else _shared_arrays(loop)
    if not pairs or sum(mine.tensor_type.nbytes for mine, _ in pairs) > most_bytes:
        return None
    cond, body = loop.cond, loop.body
    mine, others = zip(*pairs, strict=True)
    computed = Graph(cond.parameters, mine)
    going, wider = with_parameters(cond, mine), with_parameters(body, others)
    following = wider.derive({}, [*wider.results, *computed.inline(*wider.results)])
    carried = (*node.operands, *computed.inline(*node.operands))
    return first_results(node.rebuilt(carried, ops.While(going, following, loop.progress)), node)


def _shared_arrays(loop: ops.While) -> list[tuple[Node, Node]]:
    """The last arrays that a condition and the body of a loop compute alike, in either; none where the condition may
    fail otherwise.
    """
    cond, body = loop.cond, loop.body
    numbers: dict[object, int] = {}
    mine, others = (_number_nodes(each, numbers) for each in (cond, body))
    in_body = {number: node for node, number in others.items()}
    alike = {node for node, number in mine.items() if number in in_body and node not in cond.parameters}
    inner = {each for node in alike for each in node.operands}
    outside = {each for node in cond.nodes if node not in alike for each in node.operands}
    last = [node for node in cond.nodes if node in alike and (node in outside or node not in inner)]
    last = [node for node in last if _is_computed(node)]
    covered = set(postorder(last))
    if not all(is_quiet(node.op) or (node in covered and checks_indices(node)) for node in cond.nodes):
        return []
    return [(node, in_body[mine[node]]) for node in last]


def _is_computed(node: Node) -> bool:
    """Whether a node is an array that takes longer to compute than to read."""
    if not isinstance(node.type, TensorType) or node.tensor_type.size == 1:
        return False
    return any(isinstance(each.op, _COSTLY) for each in postorder([node]))


def _number_nodes(graph: Graph, numbers: dict[object, int]) -> dict[Node, int]:
    """The number of each node of a graph; those that compute the same of the same parameters have one number."""
    known: dict[Node, int] = {
        node: numbers.setdefault(("parameter", k), len(numbers)) for k, node in enumerate(graph.parameters)
    }
    for node in graph.nodes:
        if node not in known:
            key = node.op, node.type, tuple([known[each] for each in node.operands])
            known[node] = numbers.setdefault(key, len(numbers))
    return known
