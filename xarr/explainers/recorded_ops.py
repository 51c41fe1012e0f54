"""The ops of a recorded program that have an explanation of their own: products, reductions, windows, gathers …"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

from xarr.dtypes import xla_name
from xarr.explainers.gathers.gather import explain_node
from xarr.explainers.products import EinsumExplanation
from xarr.explainers.promotion import DTypeExplanation, DTypeOperand
from xarr.explainers.reduction import ReductionExplanation
from xarr.explainers.windows import WindowsExplanation
from xarr.explanation.broadcast_facts import Operand
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.source import first_operand, operand_count, operand_names

_LETTERS: Final = "ijklmnopqrstuvwxyz"
#: NumPy's reductions by the function of `xarr.lax` that combines two elements.
_COMBINED: Final = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
_OF_BOOLS: Final = {"bitwise_and": "all", "bitwise_or": "any", "and": "all", "or": "any"}


class Explained(Protocol):
    """The views that every explanation has."""

    @property
    def fits(self) -> bool: ...

    def text(self) -> str: ...

    def html(self) -> str: ...

    def svg(self) -> str: ...

    def to_dict(self) -> dict[str, Any]: ...


def explain_nodes(nodes: Iterable[Node]) -> Iterator[tuple[Node, Explained]]:
    """The nodes that have an explanation, each with it; nothing is evaluated."""
    for node in nodes:
        explanation = _explain(node)
        if explanation is not None:
            yield node, explanation


def _explain(node: Node) -> Explained | None:
    op = node.op
    if isinstance(op, ops.Reduce):
        return _reduction(node, op)
    if isinstance(op, ops.ReduceWindow):
        return _windows(node, op)
    if isinstance(op, ops.Convolution):
        return _convolution(node, op)
    if isinstance(op, ops.DotGeneral):
        return _product(node, op)
    if isinstance(op, ops.Gather | ops.Scatter):
        return explain_node(node, evaluates=False)
    return _promotion(node) if isinstance(op, ops.Binary) else None


def _reduction(node: Node, op: ops.Reduce) -> ReductionExplanation | None:
    name = _combiner(op.computation)
    if len(node.operands) != 2 or name is None or not op.dimensions:
        return None
    return ReductionExplanation(name, _operand(node, 0), tuple(sorted(op.dimensions)))


def _combiner(graph: Graph) -> str | None:
    """NumPy's name of a reduction by this computation; None of any other."""
    if len(graph.nodes) != 1 or graph.nodes[0].operands != graph.parameters:
        return None
    node = graph.nodes[0]
    return (_OF_BOOLS if node.dtype == bool else _COMBINED).get(node.op.lax_name)


def _windows(node: Node, op: ops.ReduceWindow) -> WindowsExplanation | None:
    name = _combiner(op.computation)
    if len(node.operands) != 2 or name not in ("sum", "prod", "max", "min"):
        return None
    return WindowsExplanation(name, _operand(node, 0), op.window)


def _convolution(node: Node, op: ops.Convolution) -> WindowsExplanation | None:
    """The spatial dimensions alone."""
    lhs, rhs = (operand.tensor_type for operand in node.operands)
    shape = tuple(lhs.shape[dim] for dim in op.lhs_spec[2:])
    if not shape or any(op.window_reversal):
        return None
    return WindowsExplanation("conv", Operand(_name(node), shape, xla_name(lhs.dtype)), op.window(rhs))


def _product(node: Node, op: ops.DotGeneral) -> EinsumExplanation | None:
    """The dimension numbers as the letters of an einsum; None where the letters do not suffice."""
    lhs, rhs = (operand.tensor_type for operand in node.operands)
    letters = iter(_LETTERS)
    if lhs.rank + rhs.rank > len(_LETTERS):
        return None
    left = [next(letters) for _ in range(lhs.rank)]
    right = ["" for _ in range(rhs.rank)]
    batch = list(zip(op.lhs_batching_dimensions, op.rhs_batching_dimensions, strict=True))
    summed = zip(op.lhs_contracting_dimensions, op.rhs_contracting_dimensions, strict=True)
    for own, other in (*batch, *summed):
        right[other] = left[own]
    right = [letter or next(letters) for letter in right]
    output = [left[own] for own, _ in batch]
    output += [left[dim] for dim in op.lhs_free(lhs)] + [right[dim] for dim in op.rhs_free(rhs)]
    names = operand_names(node.source, 2) if node.source else None
    called = names if names is not None and all(map(str.isidentifier, names)) else ("A", "B")
    operands = tuple(
        Operand(name, one.shape, xla_name(one.dtype)) for name, one in zip(called, (lhs, rhs), strict=True)
    )
    text = f"{''.join(left)},{''.join(right)}->{''.join(output)}"
    return EinsumExplanation(text, operands, (tuple(left), tuple(right)), tuple(output))


def _promotion(node: Node) -> DTypeExplanation | None:
    """The conversions that NumPy's rule put before an op of two operands that the user wrote."""
    types = [_type_before(operand, node) for operand in node.operands]
    if all(type is None for type in types) or node.source is None:
        return None
    if operand_count(node.source) != 2:  # an index, say, whose arithmetic is not the user's
        return None
    names = operand_names(node.source, 2) or ("a", "b")
    known = [
        own if own is not None else operand.dtype for own, operand in zip(types, node.operands, strict=True)
    ]
    return DTypeExplanation(
        tuple(DTypeOperand(name, dtype) for name, dtype in zip(names, known, strict=True))
    )


def _type_before(operand: Node, consumer: Node) -> Any:
    """The element type of an operand before the conversion that its consumer's expression made; None without one."""
    while isinstance(operand.op, ops.BroadcastInDim) and operand._location == consumer._location:
        operand = operand.operands[0]
    if isinstance(operand.op, ops.Convert) and operand._location == consumer._location:
        return operand.operands[0].dtype
    return None


def _operand(node: Node, number: int) -> Operand:
    type = node.operands[number].tensor_type
    return Operand(_name(node), type.shape, xla_name(type.dtype))


def _name(node: Node) -> str:
    """The array that the user's expression is about, if that is a name, else `operand`."""
    name = first_operand(node.source)
    return name if name is not None and name.isidentifier() else "operand"
