"""`trace`: what a function does with Arrays that stand for its arguments, as a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xarr.errors import TracedValueError
from xarr.ir.device import Device
from xarr.ir.graph import Graph, Node, next_serial, parameter, postorder
from xarr.ir.ops import Constant, Iota
from xarr.ir.types import Type
from xarr.runtime.handles import Handle, wrap
from xarr.runtime.pending import ended
from xarr.runtime.trace_stack import Trace, active, innermost, record_into


def _refuse_foreign(name: str, captured: Sequence[Node]) -> None:
    """Arguments of functions that have ended have no value and never will."""
    traced = [node for node in captured if node.traced]
    if not traced:
        return
    known = {node for trace in active() for node in (*trace.parameters, *trace.extra)}
    for node in postorder(traced, known.__contains__):
        if node not in known and node.traced and node.op.is_leaf:
            line = f"\nIt became an argument at {node.source}" if node.source else ""
            raise TracedValueError(
                f"{name} uses an argument {node.type} of a traced function that has ended, kept in an outer "
                f"variable; return it from that function instead{line}"
            )


def trace(
    function: Callable[..., Sequence[Handle]],
    types: Sequence[Type],
    device: Device | None = None,
    name: str = "main",
    extra: list[Node] | None = None,
    effects: bool = False,
    owner: Device | None = None,
) -> tuple[Graph, tuple[Node, ...]]:
    """Run `function` on parameters of `types`, which live on `device`, and return what it recorded as a graph.

    owner: where the graph will run; if it is not known yet, on `device`, or with the function around that is recorded.

    The function may append more parameters to `extra`; the graph has them after those of `types`.
    effects: whether the function may have side effects.

    Arrays from outside that the function uses are returned as second element: they became the graph's
    last parameters, one each, and must be passed to it after the others.  Outside arrays that are made
    of constants alone are not captured but computed inside.
    """
    parameters = tuple(parameter(type, device) for type in types)
    start = next_serial()
    extra = [] if extra is None else extra
    if owner is None and device is not None and device.is_committed:
        owner = device
    if owner is None and (around := innermost()) is not None:
        owner = around.device
    recorded = Trace(parameters, extra, effects, owner)
    with record_into(recorded):
        handles = function(*[wrap(node) for node in parameters])
    results = [handle._node for handle in handles]
    parameters = (*parameters, *extra)
    ended.update(parameters)
    ordered = recorded.ordered
    captured, order = _captures([*ordered, *results], parameters, start)
    _refuse_foreign(name, captured)
    for node in captured:
        node.exposed = True
    inner = {node: parameter(node.type) for node in captured}
    new = {**dict(zip(parameters, parameters, strict=True)), **inner}
    for node in order:
        if node not in new:
            # A copy even if nothing below changed: an Array outside may show the node and be evaluated.
            new[node] = node.rebuilt(tuple([new[operand] for operand in node.operands]))
    inputs = (*parameters, *inner.values())
    return Graph(inputs, map(new.__getitem__, results), name, map(new.__getitem__, ordered)), captured


def _captures(
    results: list[Node], parameters: tuple[Node, ...], start: int
) -> tuple[tuple[Node, ...], list[Node]]:
    """The nodes built before `start` and the data leaves that the nodes built since use; all these, operands first."""
    own = frozenset(parameters)
    order = postorder(results, own.__contains__)
    outside: dict[Node, bool] = dict.fromkeys(own, False)
    for node in order:
        is_leaf = not node.operands and not isinstance(node.op, Constant | Iota)
        # What computes without operands, as a custom call does, does so inside if it was called there.
        is_data = is_leaf and (node.op.is_leaf or node.serial < start)
        outside.setdefault(node, is_data or any([outside[operand] for operand in node.operands]))

    def is_captured(node: Node) -> bool:
        return outside[node] and (node.serial < start or not node.operands)

    captured = tuple(node for node in order if is_captured(node))
    if any(node.operands for node in captured):  # what is below is not used by the function itself
        order = postorder(results, lambda node: node in own or is_captured(node))
        captured = tuple(node for node in order if is_captured(node))
    return captured, order
