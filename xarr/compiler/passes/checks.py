"""Checks of values as flags: numbers that a graph returns beside its results, for readers of these.

A check raises where it runs, which only a program on the host can.  A flag is an array of two int64: the number of the
first check that failed, -1 for none, and the value that it failed for, from which the check makes its error on the
host.  Behind a check that has failed a program goes on with some other element, which is never seen: no result that
depends on it can be read.  A loop ends with the step in which its check fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, NoReturn, TypeAlias

import numpy as np

from xarr.backend import AbstractBackend
from xarr.base.custom_calls import run_custom_call
from xarr.base.frozen_dataclasses import record
from xarr.dtypes import UNSIGNED, info
from xarr.ir import ops
from xarr.ir.constants import full
from xarr.ir.graph import Graph, Node, parameter, postorder
from xarr.ir.op import Op
from xarr.ir.ops.control import unpack_results
from xarr.ir.ops.custom_calls import CHECKED_INDICES
from xarr.ir.ops.formula import Term, fill, where
from xarr.ir.source import Source
from xarr.ir.types import TensorType, TupleType

_INT64: Final = np.dtype(np.int64)
_UINT64: Final = np.dtype(np.uint64)
_SCALAR: Final = TensorType((), _INT64)
#: Scalars of int64: the number of the check that failed first, or -1, and the value that it failed for.
State: TypeAlias = tuple[Term, Term]


@record(eq=False)
class FlaggedCheck:
    """The op that raises for the value in a flag, and the node of the outermost graph in which it is."""

    call: Node
    outermost: Node

    def fail(self, value: int) -> NoReturn:
        """Raise what the check would have raised where it ran."""
        op = self.call.op
        if isinstance(op, ops.Check):
            shape = self.call.operands[1].shape
            raise op.error([int(k) for k in np.unravel_index(value, shape)], shape)
        assert isinstance(op, ops.CustomCall)
        host = np.array(value, _INT64).view(np.uint64) if self.call.dtype == np.uint64 else np.array(value)
        index = host.astype(self.call.dtype)
        run_custom_call(op.call_target_name, dict(op.attribute_items), [(index.dtype, ())], (index,))
        raise AssertionError(f"{value} is in bounds of {op}")


class Flagged(NamedTuple):
    """A graph whose last results are flags, its checks, and for each other result which flag says that it is sound."""

    graph: Graph
    checks: tuple[FlaggedCheck, ...]
    flags: tuple[int | None, ...]


def with_flags(graph: Graph) -> Flagged:
    """`graph` without checks, which become flags; one flag for all results that hang on the same checks.

    Checks in computations of other ops than loops, branches and calls stay where they are.
    """
    if not _has_checks(graph):
        return Flagged(graph, (), (None,) * len(graph.results))
    flagger = _Flagger(in_one_pass=True)
    new, states = flagger.rewritten(graph)
    order = {node: number for number, node in enumerate(states)}
    hangs_on = [
        tuple(sorted((node for node in postorder([result]) if node in states), key=order.__getitem__))
        for result in graph.results
    ]
    groups = [group for group in dict.fromkeys(hangs_on) if group]
    flags = [_stack_state(_first([states[node] for node in group])) for group in groups]
    results = [*[new.get(result, result) for result in graph.results], *flags]
    numbers = tuple([groups.index(group) if group else None for group in hangs_on])
    return Flagged(graph.derive(new, results), tuple(flagger.checks), numbers)


@record(eq=False)
class Checks:
    """The checks of a program, whose last results are flags, and for each other result the number of its flag.

    `indices`: for each check the index of its outermost node in the graph before the first stage.
    """

    checks: tuple[FlaggedCheck, ...]
    flags: tuple[int | None, ...]
    indices: tuple[int, ...]

    @property
    def sources(self) -> list[Source | None]:
        """For each check the line that built its outermost node."""
        return [check.outermost.source for check in self.checks]


def flag_check(node: Node) -> tuple[Graph, Graph | None, FlaggedCheck]:
    """A graph of a check's operands that gives its result and whether it failed, and one of the value that it failed
    for, which need not be known before; without the second, and with the result alone, if it cannot fail.
    """
    operands = tuple([parameter(operand.tensor_type) for operand in node.operands])
    check = FlaggedCheck(node, node)
    if type(node.op) is ops.Check:
        result, failure = operands[0], _first_false(operands[1])
        bad: Term | None = ~Term(operands[1])
    else:
        result = counted_from_start(node, operands[0])
        failure, bad = _bad_index(node, operands[0], False), _is_bad(node, operands[0])
    if failure is None or bad is None:
        return Graph(operands, [result]), None, check
    has_failed = _reduce_all(bad, ops.Or(), 0)
    return Graph(operands, [result, has_failed.node]), Graph(operands, [failure[1].node]), check


def without_checks(graph: Graph, backend: AbstractBackend) -> tuple[Graph, Checks | None]:
    """The graph as `backend` runs it: with flags where a check cannot raise, which it does on the host alone."""
    if backend.is_on_host:
        return graph, None
    flagged = with_flags(graph)
    if not flagged.checks:
        return flagged.graph, None
    number = {node: index for index, node in enumerate(graph.nodes)}
    indices = tuple([number[check.outermost] for check in flagged.checks])
    return flagged.graph, Checks(flagged.checks, flagged.flags, indices)


def _has_checks(graph: Graph) -> bool:
    return any(is_check(node) for each in graph.walk(_graphs_of) for node in each.nodes)


def is_check(node: Node) -> bool:
    """Whether a node raises for some values of its operands."""
    return checks_indices(node) or type(node.op) is ops.Check


def _graphs_of(node: Node) -> tuple[Graph, ...]:
    """The computations whose checks become flags."""
    return node.op.graphs if node.op.runs_graphs else ()


# --- checks of indices ------------------------------------------------------------------------------


def checks_indices(node: Node) -> bool:
    """Whether a node is a call that raises where an index is out of bounds."""
    return isinstance(node.op, ops.CustomCall) and node.op.call_target_name == CHECKED_INDICES


def index_bounds(call: Node) -> tuple[int, int]:
    """The least index that is in bounds, and the size of the dimension."""
    attributes = dict(call.op.expect(ops.CustomCall).attribute_items)
    size = int(attributes["size"])
    from_end = attributes.get("from_end", True) and call.dtype not in UNSIGNED
    return -size if from_end else 0, size


def counted_from_start(call: Node, index: Node) -> Node:
    """The result of the call: an index counted from the start."""
    least, size = index_bounds(call)
    if not least:
        return index
    shape = index.shape
    is_negative = Node(ops.Compare("LT"), (index, full(0, shape, index.dtype)))
    shifted = Node(ops.Add(), (index, full(size, shape, index.dtype)))
    return Node(ops.Select(), (is_negative, shifted, index))


# --- the state of checks -----------------------------------------------------------------------------


def _none() -> State:
    """No check has failed."""
    return fill(-1, (), _INT64), fill(0, (), _INT64)


def _first(states: Sequence[State]) -> State:
    """The first failure among states in the order in which they come about."""
    first = states[-1] if states else _none()
    for number, value in reversed(states[:-1]):
        has_failed = number >= 0
        first = where(has_failed, number, first[0]), where(has_failed, value, first[1])
    return first


def _stack_state(state: State) -> Node:
    """An array of a state, by a select, which a group can take in with what the state is computed of."""
    number, value = [Term(Node(ops.BroadcastInDim((2,), ()), (term.node,))) for term in state]
    return where(Term(Node(ops.Iota(TensorType((2,), _INT64), 0))).eq(0), number, value).node


def _reduce_all(array: Term, op: Op, initial: int) -> Term:
    """All elements combined by an op of two."""
    if not array.node.shape:
        return array
    a, b = (parameter(TensorType((), array.dtype)) for _ in range(2))
    combiner = Graph((a, b), [Node(op, (a, b))], "combiner")
    start = fill(initial, (), array.dtype).node
    return Term(Node(ops.Reduce(tuple(range(len(array.node.shape))), combiner), (array.node, start)))


class _Flagger:
    """Takes the checks out of graphs and numbers them."""

    def __init__(self, in_one_pass: bool = False) -> None:
        self.checks: list[FlaggedCheck] = []
        #: Whether a check of indices is one reduction, as on a device, where two are two launches.
        self.in_one_pass = in_one_pass

    def rewritten(
        self, graph: Graph, outermost: Node | None = None
    ) -> tuple[dict[Node, Node], dict[Node, State]]:
        """The nodes that become others, and the states of those that are checks or carry some, in order."""
        new: dict[Node, Node] = {}
        states: dict[Node, State] = {}
        for node in graph.nodes:
            operands = tuple([new.get(operand, operand) for operand in node.operands])
            outer = outermost or node
            if is_check(node):
                new[node], state = self._check(node, operands, outer)
                if state is not None:
                    states[node] = state
            elif any(map(_has_checks, _graphs_of(node))):
                new[node], states[node] = self._computation(node, operands, outer)
            elif operands != node.operands:
                new[node] = node.rebuilt(operands)
        return new, states

    def _flag_graph(self, graph: Graph, outermost: Node) -> Graph:
        """A computation with its state as two more results."""
        new, states = self.rewritten(graph, outermost)
        state = _first(list(states.values()))
        results = [*[new.get(result, result) for result in graph.results], *[term.node for term in state]]
        return graph.derive(new, results)

    # --- checks ----------------------------------------------------------------------------------------

    def _check(self, node: Node, operands: tuple[Node, ...], outermost: Node) -> tuple[Node, State | None]:
        """The node in place of a check, and its state; None if it cannot fail."""
        if type(node.op) is ops.Check:
            result, failure = operands[0], _first_false(operands[1])
        else:
            result, failure = (
                counted_from_start(node, operands[0]),
                _bad_index(node, operands[0], self.in_one_pass),
            )
        if failure is None:
            return result, None
        has_failed, value = failure
        self.checks.append(FlaggedCheck(node, outermost))
        number = where(has_failed, fill(len(self.checks) - 1, (), _INT64), -1)
        return result, (number, value)

    # --- computations ----------------------------------------------------------------------------------

    def _computation(self, node: Node, operands: tuple[Node, ...], outermost: Node) -> tuple[Node, State]:
        """The node in place of an op whose computations have checks, and its state."""
        op = node.op
        if isinstance(op, ops.While):
            flagged = self._loop(op, operands, outermost)
        elif isinstance(op, ops.Call):
            flagged = Node(ops.Call(self._flag_graph(op.computation, outermost)), operands)
        elif isinstance(op, ops.If):
            branches = [self._flag_graph(branch, outermost) for branch in op.graphs]
            flagged = Node(ops.If(*branches), operands)
        else:
            assert isinstance(op, ops.Case)
            flagged = Node(
                ops.Case(tuple([self._flag_graph(branch, outermost) for branch in op.graphs])), operands
            )
        flagged._location = node._location
        count = len(op.results(node))
        elements = [Node(ops.GetTupleElement(k), (flagged,)) for k in range(count + 2)]
        results = (
            Node(ops.Tuple(), tuple(elements[:count])) if isinstance(node.type, TupleType) else elements[0]
        )
        return results, (Term(elements[count]), Term(elements[count + 1]))

    def _loop(self, loop: ops.While, operands: tuple[Node, ...], outermost: Node) -> Node:
        """A loop that carries a state too, as its last two values, and ends when a check has failed.

        One whose condition has checks is turned around: each step ends with the condition of the next, which the
        loop carries before the state.
        """
        body = self._flag_graph(loop.body, outermost)
        is_checked = _has_checks(loop.cond)
        cond = self._flag_graph(loop.cond, outermost) if is_checked else loop.cond
        carried = [parameter(type) for type in loop.body.parameter_types]
        going = [parameter(type) for type in cond.result_types[:1]] if is_checked else []
        before = Term(parameter(_SCALAR)), Term(parameter(_SCALAR))
        ordered: list[Node] = []
        *results, number, value = body.inline(*carried, ordered=ordered)
        states, further = [before, (Term(number), Term(value))], []
        if is_checked:
            again, number, value = cond.inline(*results, ordered=ordered)
            states.append((Term(number), Term(value)))
            further.append(again)
        after = _first(states)
        parameters = (*carried, *going, before[0].node, before[1].node)
        step = Graph(parameters, [*results, *further, after[0].node, after[1].node], body.name, ordered)
        carried = [parameter(type) for type in step.parameter_types]
        tested: list[Node] = []
        holds = carried[-3] if is_checked else loop.cond.inline(*carried[:-2], ordered=tested)[0]
        goes_on = Term(holds) & (Term(carried[-2]) < 0)
        initial = cond.inline(*operands) if is_checked else [term.node for term in _none()]
        flagged = Node(
            ops.While(Graph(carried, [goes_on.node], cond.name, tested), step, loop.progress),
            (*operands, *initial),
        )
        if not is_checked:
            return flagged
        *kept, _, number, value = unpack_results(flagged)
        return Node(ops.Tuple(), (*kept, number, value))


def _bad_index(call: Node, indices: Node, in_one_pass: bool) -> tuple[Term, Term] | None:
    """Whether an index is out of bounds, and the one that is: the least if that is, else the greatest."""
    array, limits = Term(indices), info(call.dtype)
    if not call.tensor_type.size:
        return None
    least, size = index_bounds(call)
    low = _reduce_all(array, ops.Minimum(), int(limits.max))
    high = _reduce_all(array, ops.Maximum(), int(limits.min))
    is_low = low < least if call.dtype not in UNSIGNED else None
    is_high = high >= size if size <= limits.max else None
    if is_low is None or is_high is None:
        only = is_high if is_low is None else is_low
        return None if only is None else (only, _int64(high if is_low is None else low))
    if in_one_pass and indices.shape:
        return _bad_index_in_one_pass(array.convert(_INT64), least, size)
    return _either(is_low, is_high), _int64(where(is_low, low, high))


def _is_bad(call: Node, indices: Node) -> Term | None:
    """For each index whether it is out of bounds; None if none can be."""
    array, limits, (least, size) = Term(indices), info(call.dtype), index_bounds(call)
    is_low = array < least if call.dtype not in UNSIGNED else None
    is_high = array >= size if size <= limits.max else None
    return _either(is_low, is_high) if is_low is not None and is_high is not None else is_low or is_high


def _bad_index_in_one_pass(indices: Term, least: int, size: int) -> tuple[Term, Term]:
    """`_bad_index` of int64, at most 0 the least in bounds, by one reduction, where arrays are read from memory.

    It is the maximum of numbers that are 0 in bounds, 1 and more above them, and from 2^63 on below them.
    """
    below = indices.bitcast(_UINT64) ^ (2**63 - 1)
    above = where(indices >= size, (indices - (size - 1)).bitcast(_UINT64), 0)
    worst = _reduce_all(where(indices < least, below, above), ops.Maximum(), 0)
    signed = worst.bitcast(_INT64)
    return worst > 0, where(signed < 0, signed ^ (2**63 - 1), signed + (size - 1))


def _int64(value: Term) -> Term:
    return value.bitcast(_INT64) if value.dtype == np.uint64 else value.convert(_INT64)


def _either(x: Term, y: Term) -> Term:
    return Term(Node(ops.Or(), (x.node, y.node)))


def _first_false(good: Node) -> tuple[Term, Term] | None:
    """Whether one of the bools is False, and the number of the first in row-major order."""
    size = good.tensor_type.size
    if not size:
        return None
    flat = Term(Node(ops.Reshape((size,)), (good,)))
    indices = Term(Node(ops.Iota(TensorType((size,), _INT64), 0)))
    first = _reduce_all(where(flat, fill(size, (size,), _INT64), indices), ops.Minimum(), size)
    return first < size, first
