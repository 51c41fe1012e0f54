"""Rules on an answer, and its score, both read from the graph that it records."""

from __future__ import annotations

from math import prod

from xarr.ir import ops
from xarr.ir.graph import Node, postorder
from xarr.puzzles.records import Rule

#: Ops that change where elements are read, and read none.
_VIEWS = (ops.BroadcastInDim, ops.Reshape, ops.Transpose, ops.Slice)


def recorded_ops(node: Node) -> list[Node]:
    """The ops below a node; arrays, constants, and slices that keep all are none."""
    every = [each for each in postorder([node]) if each.operands]
    return [
        each
        for each in every
        if not (isinstance(each.op, ops.Slice) and each.shape == each.operands[0].shape)
    ]


def elements_of(node: Node) -> int:
    """The elements that the ops of an answer read and write.

    Views read none, products two for each pair that they multiply, windows each of their elements.
    """
    return sum(map(_elements, recorded_ops(node)))


def _elements(node: Node) -> int:
    if isinstance(node.op, _VIEWS):
        return 0
    written = prod(node.shape)
    if isinstance(node.op, ops.DotGeneral):
        summed = prod(node.operands[0].shape[dim] for dim in node.op.lhs_contracting_dimensions)
        return 2 * written * summed + written
    if isinstance(node.op, ops.ReduceWindow):
        return written * node.op.window.size + written
    if isinstance(node.op, ops.Convolution):
        weights = node.operands[1].shape
        return 2 * written * prod(weights) // max(1, weights[node.op.rhs_spec[0]]) + written
    return sum(prod(operand.shape) for operand in node.operands) + written


def broken_rule(node: Node, rules: tuple[Rule, ...], best: int) -> tuple[Rule, str] | None:
    """The first rule that an answer breaks, and what it does instead; None if it keeps all."""
    return next(((rule, said) for rule in rules if (said := _violation(node, rule, best)) is not None), None)


def _violation(node: Node, rule: Rule, best: int) -> str | None:
    every = recorded_ops(node)
    if rule == "one op":
        computing = [each for each in every if not isinstance(each.op, ops.BroadcastInDim)]
        count = len(computing) or len(every)
        return None if count == 1 else f"it records {count}: {_names(computing or every)}"
    if rule == "one broadcast":
        wide = [
            n
            for n in every
            if isinstance(n.op, ops.BroadcastInDim) and prod(n.shape) != prod(n.operands[0].shape)
        ]
        return None if len(wide) <= 1 else f"it broadcasts {len(wide)} times"
    if rule == "no reshape":
        moved = [each for each in every if isinstance(each.op, ops.Reshape | ops.Transpose)]
        return f"it records {_names(moved)}" if moved else None
    if rule == "few elements":
        count = elements_of(node)
        return (
            None if count <= best else f"it reads and writes {count} elements, the best known answer {best}"
        )
    return None  # "nothing implicit" is a setting under which the answer runs


def _names(nodes: list[Node]) -> str:
    return ", ".join(dict.fromkeys(node.op.lax_name for node in nodes))
