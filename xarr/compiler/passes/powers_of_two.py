"""Whole quotients and remainders of signed integers by known powers of two, `x // 2` and `x % 2`: shifts and masks.

These are what the quotient that is rounded down, and the remainder with the divisor's sign, are in two's complement.
Loops know more of remainders of positions and of single numbers, and these stay, as do unsigned ones, which LLVM
itself shifts and masks.
"""

from __future__ import annotations

from xarr.ir import ops
from xarr.ir.constants import full, integer_of, unbroadcast
from xarr.ir.graph import Graph, Node
from xarr.ir.integer_ranges import Range, floored_remainder, says_signs_differ
from xarr.ir.operands_first import compute_operands_first
from xarr.ir.rewriting import rewritten_throughout


def shift_by_powers_of_two(graph: Graph) -> Graph:
    """`graph` with shifts and masks in place of such divisions, in the graphs of its operations too."""
    positions: dict[Node, bool] = {}

    def is_position(node: Node) -> bool:
        sources = node.operands if node.op.is_elementwise or node.op.moves else ()
        return isinstance(node.op, ops.Iota) or any([positions[each] for each in sources])

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        divisor, number = _known_divisor(node, operands)
        division = _division(operands[2]) if number else None
        if division is None or division.operands[1] is not divisor:
            return None
        dividend = division.operands[0]
        if compute_operands_first(dividend, positions, lambda node: node.operands, is_position):
            return None
        is_rest = isinstance(division.op, ops.Remainder)
        bits = full(number - 1 if is_rest else number.bit_length() - 1, node.shape, node.dtype)
        return Node(ops.And() if is_rest else ops.ShiftRightArithmetic(), (dividend, bits))

    return rewritten_throughout(graph, rule) if ops.Remainder in graph.op_classes else graph


def _known_divisor(node: Node, operands: tuple[Node, ...]) -> tuple[Node, int]:
    """The divisor for which a choice of signed integers is 0 if it is 0, and its number: 0 if it is no power of two."""
    if not isinstance(node.op, ops.Select) or node.dtype.kind != "i" or not node.shape:
        return node, 0
    is_zero, nothing, _ = operands
    if not isinstance(is_zero.op, ops.Compare) or is_zero.op.direction != "EQ":
        return node, 0
    divisor, zero = is_zero.operands
    number = max(integer_of(unbroadcast(divisor)) or 0, 0)
    is_known = number & (number - 1) == 0 and all(
        [integer_of(unbroadcast(each)) == 0 for each in (zero, nothing)]
    )
    return divisor, number if is_known else 0


def _division(node: Node) -> Node | None:
    """The division or the remainder that a node rounds down; None for other nodes."""
    if isinstance(node.op, ops.Select):
        return floored_remainder(node, _range)
    if not isinstance(node.op, ops.Subtract):
        return None
    quotient, one = node.operands
    if not isinstance(quotient.op, ops.Divide) or not isinstance(one.op, ops.Convert):
        return None
    (wrong,) = one.operands
    rest = says_signs_differ(wrong, _range)
    return quotient if rest is not None and rest.operands == quotient.operands else None


def _range(node: Node) -> Range | None:
    number = integer_of(unbroadcast(node))
    return None if number is None else (number, number)
