"""The part of the graph that is to be computed: its order, its structure as a key of programs, and as a graph.

Callers hold the lock of `xarr.runtime.evaluation`, so that no value appears meanwhile.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakSet

from xarr.base.configuration import current as config
from xarr.errors import DonationError, TracedValueError
from xarr.ir.device import Device
from xarr.ir.graph import Donated, Graph, Node, Parameter, parameter, postorder
from xarr.ir.op import Op
from xarr.ir.ops import Constant, Convert, Tuple
from xarr.ir.source import here
from xarr.ir.types import TensorType

#: Nodes of a program; what is longer runs in parts.
LONGEST: Final = 2000
#: Nodes of a graph for which `key_of_few` might be made: an op, what changes its operands, and these.
_FEW: Final = 7


def order_of(roots: list[Node]) -> list[Node]:
    """List what `roots` need, operands first, each once, as `postorder` does, but without a call for each node."""
    order: list[Node] = []
    seen: set[Node] = set()
    #: Nodes of which operands are left, and these, those of the innermost node last; first the roots, of no node.
    users: list[Node] = []
    left = [iter(roots)]
    while left:
        for node in left[-1]:
            if node not in seen:
                seen.add(node)
                if node.value is None and node.operands:
                    users.append(node)
                    left.append(iter(node.operands))
                    break
                order.append(node)
        else:
            left.pop()
            if users:
                order.append(users.pop())
    return order


def is_scalar_constant(node: Node) -> bool:
    return type(node.op) is Constant and not node.op.type.shape


def key_of_few(root: Node, device: Device) -> tuple[tuple[Any, ...], list[Node]] | None:
    """The key and the leaves of one op over values that are there, or over views or conversions of these.

    The common case of eager use, without what only larger graphs need; None for anything else, and where what ops
    make is checked.  Needs no lock.
    """
    settings = config.now()
    if settings["debug_nans"] or settings["debug_overflow"]:
        return None
    key: list[Any] = [root.op, device]
    if root.op.is_ordered:
        key.append(root._location)  # A program tells its line to other replicas, so each line has its own.
    for name in device.backend.options:
        key.append(settings[name])
    leaves: list[Node] = []
    operands = root.operands
    if not 0 < len(operands) <= 3:
        return None
    for operand in operands:
        op, below = operand.op, operand.operands
        if operand.value is None and below:
            if not (op.is_view or type(op) is Convert) or operand.handles:
                return None
            key.append(op)
            (operand,) = below
        if operand.value is None and not is_scalar_constant(operand):
            return None
        if operand not in leaves:
            leaves.append(operand)
            key.append(operand.type)
        key.append(leaves.index(operand))
    return tuple(key), leaves


def structure_of(
    order: list[Node], roots: list[Node], device: Device
) -> tuple[tuple[Any, ...], list[Node], list[Node]]:
    """The structure of a pending graph as a key, its leaves, and the nodes whose values to keep.

    Scalar constants count as leaves, so that `x * rate` is one program for every rate; equal ones are
    one leaf, which the key tells.  That holds for those with a value too: `graph_of` makes no difference.
    """
    few = key_of_few(order[-1], device) if len(order) <= _FEW and len(roots) == 1 else None
    if few is not None:
        return *few, roots
    number: dict[Node, int] = {}
    #: A row after the other: the type of a leaf, or an op and the numbers of its operands.
    settings = config.now()
    key: list[Any] = [device, *[settings[name] for name in device.backend.options]]
    leaves: list[Node] = []
    outputs: list[Node] = []
    literals: dict[Op, int] = {}
    count = 0
    for node in order:
        op, is_pending = node.op, node.value is None
        if type(op) is Constant and not op.type.shape:
            known = literals.setdefault(op, count)
            if known < count and not node.handles:
                number[node] = known
                continue
            leaves.append(node)
            key.append(node.type)
        elif not is_pending:
            leaves.append(node)
            key.append(node.type)
        elif node.operands:
            key.append(op)
            if op.is_ordered:
                key.append(node._location)
            for operand in node.operands:
                key.append(number[operand])
        else:
            _refuse_parameter(node)
            key.append(op)
        number[node] = count
        count += 1
        if is_pending and (node.handles if type(node.type) is TensorType else _is_kept(node)):
            outputs.append(node)
    for root in dict.fromkeys(roots):
        if not _is_kept(root):
            outputs.append(root)
    key.append(None)
    key += [number[node] for node in outputs]
    return tuple(key), leaves, outputs


def _is_kept(node: Node) -> bool:
    """Whether the value may be read later: by an Array, or an op that unpacks a tuple."""
    if type(node.type) is TensorType:
        return node.handles > 0
    return type(node.op) is not Tuple


class StandIn(Node):
    """A node for an argument of a type while a call is recorded, to learn what it amounts to.

    It is as one that is not evaluated, and never will be.  is_wanted: whether its value was asked for;
    is_looked_at: whether it would have been looked at, if it were there.
    """

    __slots__ = ("is_looked_at", "is_wanted")

    def __init__(self, type: TensorType, device: Device | None) -> None:
        super().__init__(Parameter(type), (), type, (), device)
        self.is_wanted = self.is_looked_at = False


#: Arguments of functions that have been recorded: they never get a value any more.
ended: Final[WeakSet[Node]] = WeakSet()


def _refuse_parameter(node: Node) -> None:
    """Refuse a node without operands and value that is an argument of a traced function, or was given away."""
    if isinstance(node.op, Donated):
        lines = str(node.source)
        call = f", this time at {lines}" if node.source and lines not in node.op.taker else ""
        raise DonationError(
            f"the value {node.type.short()} no longer exists: its Array was donated to a function; use what that "
            f"call returned, or do not donate an Array that is still needed\nIt was donated to {node.op.taker}{call}"
        )
    if type(node) is StandIn:
        node.is_wanted = True
        raise TracedValueError("the value of an array is wanted that stands for an argument")
    if node.traced:
        looked = here()
        lines = f"\nIt was asked for at {looked}" if looked else ""
        lines += f"\nIt became an argument at {node.source}" if node.source else ""
        if node in ended:
            raise TracedValueError(
                "the value of a traced array was asked for after the end of the function that made it: it was kept "
                "in an outer list or variable during recording, and has no value; return it from the "
                f"function, or hand it out at each call by xarr.debug.callback(kept.append, x){lines}"
            )
        raise TracedValueError(
            "the value of a traced array was asked for (by float, bool, int, list, numpy.asarray …), but inside "
            "a traced function an argument has no value yet; use lax.cond, lax.select or lax.while_loop for "
            "control flow that depends on values, xarr.where to choose element by element, static_argnames of "
            "xarr.jit for an argument that is a size, an axis or a flag, xarr.debug.print to show the value when the "
            f"function runs, or look at it outside{lines}"
        )


def graph_of(order: list[Node], leaves: list[Node], outputs: list[Node]) -> Graph:
    """The pending nodes as a closed graph whose parameters stand for `leaves`.

    Every other node is a copy, also one that depends on no leaf: settling must not touch what a program
    holds.
    """
    new = {leaf: parameter(leaf.type, location=()) for leaf in leaves}
    literals: dict[Op, Node] = {leaf.op: new[leaf] for leaf in reversed(leaves) if type(leaf.op) is Constant}
    for node in order:
        if node not in new:
            same = literals.get(node.op) if literals and is_scalar_constant(node) else None
            new[node] = same or node.rebuilt(tuple(map(new.__getitem__, node.operands)))
    ordered = [new[node] for node in order if node.value is None and node.op.is_ordered]
    return Graph(map(new.__getitem__, leaves), map(new.__getitem__, outputs), ordered=ordered)


def nodes_of(leaves: list[Node], outputs: list[Node]) -> list[Node]:
    """The pending nodes of which the nodes of `graph_of` are copies, in the same order."""
    known = set(leaves)
    order = postorder(outputs, known.__contains__)
    return [node for node in order if node not in known and not is_scalar_constant(node)]


def parts_of(order: list[Node], roots: list[Node]) -> list[tuple[list[Node], list[Node]]]:
    """A long order in pieces, each with the nodes whose values later pieces or the caller need.

    Compiling takes time per line.  The pieces of a long chain mostly have the same structure, and so
    one program.
    """
    last_use = {operand: index for index, node in enumerate(order) for operand in node.operands}
    last_use.update(dict.fromkeys(roots, len(order)))
    parts = []
    start = 0
    while start < len(order):
        end = min(start + LONGEST, len(order))
        part = order[start:end]
        inside = set(part)
        leaves = [operand for node in part for operand in node.operands if operand not in inside]
        needed = [
            node
            for node in part
            if node.value is None and last_use.get(node, -1) >= end and not is_scalar_constant(node)
        ]
        if needed:
            parts.append(([*dict.fromkeys(leaves), *part], needed))
        start = end
    return parts
