"""A graph for slices of arrays, made one for the arrays: its values get one more dimension, the first.

Only what depends on a batched argument is batched.  Loops end when all slices have, and slices that have ended keep
their values; of branches that slices choose by themselves both are computed.  Nobody sees what is computed for slices
that have ended or chosen otherwise, which are not active: for them no check fails, and no loop goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from xarr import lax
from xarr.arrays.array import Array
from xarr.communication.process_groups import AxisRef
from xarr.compiler.passes.checks import is_check
from xarr.compiler.while_loops.filled_arrays import find_limit
from xarr.errors import InputError, ShapeError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.ops.custom_calls import CHECKED_INDICES
from xarr.ir.ops.parts import count_parts
from xarr.ir.types import TensorType, TupleType
from xarr.lax.tracing import results_of
from xarr.runtime.effects import add_ordered
from xarr.runtime.handles import Handle, wrap
from xarr.runtime.trace_to_graph import trace
from xarr.transforms.batching.rules import broadcast, is_static, move_to_front, rule_of

_INT32: Final = np.dtype(np.int32)
_MEETINGS: Final = (
    *(ops.AllGather, ops.AllReduce, ops.AllToAll, ops.CollectiveBroadcast, ops.CollectivePermute),
    *(ops.CrossReplicaSum, ops.ReduceScatter, ops.StackAlongAxis, ops.ManualComputation),
)


class BatchedValue(NamedTuple):
    """A value of the new graph: its node, whether it is batched, and, of several, each."""

    node: Node | None
    is_batched: bool = False
    elements: tuple[BatchedValue, ...] | None = None

    @property
    def flags(self) -> list[bool]:
        return [self.is_batched] if self.elements is None else [each.is_batched for each in self.elements]


Values = Sequence[BatchedValue]
_Made = TypeVar("_Made")


class ActiveSlices(NamedTuple):
    """For each slice whether it is active, and whether it is known that one is."""

    mask: Node
    has_some: bool


class Batcher:
    """The change of graphs for one mapped axis: its number of slices, its name, and the axes that replicas take."""

    def __init__(self, size: int, axis_name: Hashable, spmd: tuple[str, ...] = ()) -> None:
        self.size, self.axis_name, self.spmd = size, axis_name, spmd
        #: Those for which the graph runs that is changed; None if all are, and there are some.
        self.active = None if size else ActiveSlices(lax.full((0,), False)._node, False)
        # With what it was made of, whose number no other object gets meanwhile.
        self._made: dict[tuple[int, Hashable], tuple[object, Any]] = {}

    # --- graphs -------------------------------------------------------------------------------------

    def run(self, graph: Graph, values: Values) -> list[BatchedValue]:
        """The results of a graph for such values of its parameters."""
        known = dict(zip(graph.parameters, values, strict=True))
        for node in graph.nodes:
            known[node] = self._value(node, [known[operand] for operand in node.operands])
        return [known[result] for result in graph.results]

    def whole(self, value: BatchedValue) -> Node:
        """A batched value, which others are repeated for."""
        assert value.node is not None
        return value.node if value.is_batched else broadcast(value.node, self.size)

    def _graph(
        self, graph: Graph, flags: Sequence[bool], wanted: Sequence[bool], masks: Sequence[Node] = ()
    ) -> tuple[Graph, list[bool]]:
        """A computation for operands of which some are batched, and which results are; the `wanted` ones are.

        It takes masks behind its operands.
        """
        key = (tuple(flags), tuple(wanted), bool(masks))
        return self._make_once(graph, key, lambda: self._make_graph(graph, flags, wanted, masks))

    def _make_once(self, owner: object, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """Make something of a computation or an op, once: loops in loops ask for it again and again."""
        known = self._made.get((id(owner), key))
        if known is None:
            known = self._made[id(owner), key] = owner, make()
        made: _Made = known[1]
        return made

    def _make_graph(
        self, graph: Graph, flags: Sequence[bool], wanted: Sequence[bool], masks: Sequence[Node]
    ) -> tuple[Graph, list[bool]]:
        own: list[bool] = []

        def body(*handles: Handle) -> list[Handle]:
            values, masks = _unpack(handles, flags)
            with self._activate(masks):
                results = self.run(graph, values)
            own.extend(flag for each in results for flag in each.flags)
            return [wrap(node) for node in self._force(results, wanted)]

        return self._record(body, graph, flags, masks), own

    def _force(self, results: Values, wanted: Sequence[bool]) -> list[Node]:
        nodes = []
        for value, flag in zip(results, wanted, strict=True):
            assert value.node is not None
            nodes.append(self.whole(value) if flag else value.node)
        return nodes

    def _record(self, body: Any, graph: Graph, flags: Sequence[bool], masks: Sequence[Node]) -> Graph:
        types = [
            node.tensor_type.with_shape((self.size, *node.shape)) if flag else node.type
            for node, flag in zip(graph.parameters, flags, strict=True)
        ]
        types += [mask.tensor_type.with_shape((self.size,)) for mask in masks]
        made, captured = trace(body, types, name=graph.name, effects=True)
        assert not captured, "computations use their parameters alone"
        return made

    # --- slices that are not active -----------------------------------------------------------------

    @contextmanager
    def _activate(self, masks: Sequence[Node], has_some: bool = False) -> Iterator[None]:
        """Let the slices of a mask, all if there is none, be active in the block."""
        around, self.active = self.active, ActiveSlices(masks[0], has_some) if masks else None
        try:
            yield
        finally:
            self.active = around

    def _masks(self, op: Op) -> list[Node]:
        """The active slices, if the computations of an op ask for them."""
        if self.active is None or not any(
            is_check(each) or isinstance(each.op, ops.While) or _calls_back(each.op) for each in _nodes_in(op)
        ):
            return []
        return [self.active.mask]

    def _excuse(self, op: Op, operands: Values) -> Values:
        """The operands of a check, that hold for slices which are not active."""
        number = int(isinstance(op, ops.Check))
        looked_at = operands[number]
        if self.active is None or (self.active.has_some and not looked_at.is_batched):
            return operands
        mask, array = wrap(self.active.mask), wrap(_node(looked_at))
        dims = (0,) if looked_at.is_batched else ()
        wide = lax.broadcast_in_dim(mask if dims else self._some(), array.shape, dims)
        excused = lax.select(wide, array, lax.full_like(array, number))
        return [*operands[:number], looked_at._replace(node=excused._node), *operands[number + 1 :]]

    def _some(self) -> Array:
        """Whether a slice is active."""
        assert self.active is not None
        return lax.reduce_or(wrap(self.active.mask), (0,))

    @property
    def may_idle(self) -> bool:
        """Whether there may be no active slice."""
        return self.active is not None and not self.active.has_some

    def _asks(self, op: Op) -> bool:
        """Whether an op, with the same operands for all slices, does other things if no slice is active."""
        return self.may_idle and (
            _rests(op) or any(is_check(each) or _rests(each.op) for each in _nodes_in(op))
        )

    # --- nodes --------------------------------------------------------------------------------------

    def _value(self, node: Node, operands: Values) -> BatchedValue:
        op = node.op
        if isinstance(op, ops.GetTupleElement) and operands[0].elements is not None:
            return operands[0].elements[op.index]
        if isinstance(op, ops.Tuple):
            return BatchedValue(None, False, tuple(operands))
        if isinstance(op, ops.StackAlongAxis | ops.IndexAlongAxis) and op.axis_name == self.axis_name:
            return self._along_axis(op, operands)
        if is_check(node):
            operands = self._excuse(op, operands)
        if not any(each.is_batched or any(each.flags) for each in operands) and not self._asks(op):
            return self._same(node, operands)
        if isinstance(op, ops.Call):
            return self._call(node, op, operands)
        if isinstance(op, ops.While):
            return self._loop(node, op, operands)
        if isinstance(op, ops.If | ops.Case):
            return self._branch(node, op, operands)
        if _calls_back(op) and not any(each.is_batched for each in operands):
            called = _call_if(self._some(), node, [_node(each) for each in operands])
            return _together([BatchedValue(each._node) for each in called])
        return self._compute(node, operands)

    def _same(self, node: Node, operands: Values) -> BatchedValue:
        """A value that no slice has a part in, once for all."""
        made = node.rebuilt(tuple([_node(each) for each in operands]))
        made.traced = made.traced or (node.traced and not operands)
        return _split(self._keep(made), False)

    def _keep(self, node: Node) -> Node:
        if node.op.is_ordered:
            add_ordered(node)
        return node

    def _along_axis(self, op: Op, operands: Values) -> BatchedValue:
        if isinstance(op, ops.IndexAlongAxis):
            return BatchedValue(Node(ops.Iota(TensorType((self.size,), _INT32), 0)), True)
        return BatchedValue(self.whole(operands[0]))

    def _compute(self, node: Node, operands: Values) -> BatchedValue:
        op, flags = node.op, [each.is_batched for each in operands]
        nodes = [_node(each) for each in operands]
        if isinstance(op, ops.OptimizationBarrier):
            return _split(node.rebuilt(tuple(nodes)), False, flags)
        if not is_static(node):
            raise InputError(
                f"vmap: wanted arrays of known sizes for {op.called}\nIt is called at {node.source}"
            )
        if isinstance(op, ops.StackAlongAxis):
            made = move_to_front(node.rebuilt(tuple(nodes), op), 1)
            made.traced = True
            return BatchedValue(made, True)
        if isinstance(op, ops.ManualComputation):
            return self._parts(node, op, operands)
        if isinstance(op, ops.CustomCall) and is_check(node):
            types = tuple([self._type(each) for each in op.result_types])
            call = ops.CustomCall(op.call_target_name, types, op.attribute_items)
            return BatchedValue(node.rebuilt((self.whole(operands[0]),), call), True)
        rule = rule_of(op)
        result = None if rule is None else rule(node, nodes, flags, self.size)
        if result is not None:
            return _split(self._keep(result), True)
        parts = None if op.is_ordered else op.decompose(*node.operands)
        if parts is not None:
            parameters = tuple(dict.fromkeys(node.operands))
            values = dict(zip(node.operands, operands, strict=True))
            (whole,) = self.run(Graph(parameters, [parts]), [values[each] for each in parameters])
            return whole
        return self._slice_by_slice(node, operands)

    def _type(self, type: Any) -> TensorType:
        whole: TensorType = type.with_shape((self.size, *type.shape))
        return whole

    def _slice_by_slice(self, node: Node, operands: Values) -> BatchedValue:
        """The results of an operation for each slice by itself, stacked."""
        if meeting := _find_meeting(node.op):
            raise InputError(
                f"vmap: {meeting.op.called} meets slices or replicas in a branch or loop that slices choose by "
                "themselves, and that has effects, which are done slice by slice; wanted one or the other: move the "
                f"effects out of it\nIt is called at {meeting.source}"
            )
        is_batched = [each.is_batched for each in operands]
        slices = [wrap(self.whole(each)) for each in operands if each.is_batched]
        masks = [wrap(self.active.mask)] if self.active is not None and _calls_back(node.op) else []

        def compute(own: list[Array]) -> list[Array]:
            rest = iter(own)
            nodes = [
                next(rest)._node if flag else _node(each)
                for flag, each in zip(is_batched, operands, strict=True)
            ]
            return _call_if(next(rest), node, nodes) if masks else _results(node, nodes)

        values = [BatchedValue(each._node, True) for each in lax.map(compute, [*slices, *masks])]
        return values[0] if not isinstance(node.type, TupleType) else BatchedValue(None, False, tuple(values))

    # --- computations of parts ----------------------------------------------------------------------

    def _parts(self, node: Node, op: ops.ManualComputation, operands: Values) -> BatchedValue:
        """A computation of parts of slices: each member has its part of all of them, or of its slices."""
        flags = [each.is_batched for each in operands]
        axes = tuple([AxisRef(name) for name in self.spmd])
        count = count_parts(op.mesh, axes)
        if self.size % count:
            raise ShapeError(f"vmap: wanted a number of slices that {count} replicas divide, got {self.size}")
        inner, masks = Batcher(self.size // count, self.axis_name), self._masks(op)
        graph, _ = inner._graph(op.computation, flags, [True] * len(op.out_splits), masks)
        changed = replace(
            op,
            in_splits=tuple(
                [(axes, *split) if flag else split for flag, split in zip(flags, op.in_splits, strict=True)]
                + [(axes,) for _ in masks]
            ),
            out_splits=tuple([(axes, *split) for split in op.out_splits]),
            manual_axes=(*op.manual_axes, *[name for name in self.spmd if name not in op.manual_axes]),
            computation=graph,
        )
        made = node.rebuilt((*map(_node, operands), *masks), changed)
        return _split(self._keep(made), True)

    def _call(self, node: Node, op: ops.Call, operands: Values) -> BatchedValue:
        """A computation in place, unless it calls others: that is made once, however often it is called."""
        if not any(isinstance(each.op, ops.Call) for each in op.computation.nodes):
            return _together(self.run(op.computation, operands))
        flags, masks = [each.is_batched for each in operands], self._masks(op)
        graph, own = self._graph(op.computation, flags, [False] * len(op.computation.results), masks)
        made = node.rebuilt((*map(_node, operands), *masks), ops.Call(graph))
        return _split(self._keep(made), False, own)

    # --- branches and loops -------------------------------------------------------------------------

    def _branch(self, node: Node, op: ops.If | ops.Case, operands: Values) -> BatchedValue:
        chosen, rest = operands[0], operands[1:]
        if chosen.is_batched:
            if _has_effects(op):
                return self._slice_by_slice(node, operands)
            return self._choose(op, chosen, rest)
        flags, masks = [each.is_batched for each in rest], self._masks(op)
        count = len(op.graphs[0].results)
        batched = [self._graph(each, flags, [False] * count, masks)[1] for each in op.graphs]
        wanted = [any(each) for each in zip(*batched, strict=True)]
        graphs = [self._graph(each, flags, wanted, masks)[0] for each in op.graphs]
        changed: Op = ops.If(*graphs) if isinstance(op, ops.If) else ops.Case(tuple(graphs))
        made = node.rebuilt((_node(chosen), *map(_node, rest), *masks), changed)
        return _split(self._keep(made), False, wanted)

    def _choose(self, op: ops.If | ops.Case, chosen: BatchedValue, rest: Values) -> BatchedValue:
        """The results of all branches, of which each slice has that of its own."""
        owners, branches = _owners(op, wrap(self.whole(chosen))), []
        for graph, is_own in zip(op.graphs, owners, strict=True):
            with self._activate([self._narrow(is_own)]):
                branches.append(self.run(graph, rest))
        results = branches.pop()
        for is_own, branch in zip(owners[-2::-1], branches[::-1], strict=True):
            results = [self._pick(is_own, *pair) for pair in zip(branch, results, strict=True)]
        return _together(results)

    def _narrow(self, mask: Array) -> Node:
        """The active ones among slices."""
        return (mask if self.active is None else lax.bitwise_and(mask, wrap(self.active.mask)))._node

    def _pick(self, is_own: Array, one: BatchedValue, other: BatchedValue) -> BatchedValue:
        if one.node is other.node:
            return one
        on_true, on_false = self.whole(one), self.whole(other)
        wide = lax.broadcast_in_dim(is_own, on_true.shape, (0,))
        return BatchedValue(lax.select(wide, wrap(on_true), wrap(on_false))._node, True)

    def _loop(self, node: Node, op: ops.While, operands: Values) -> BatchedValue:
        flags, masks = [each.is_batched for each in operands], self._masks(op)
        may_rest = self.may_idle and not _counts(op)
        if may_rest and self.active is not None:
            masks = [self.active.mask]
        while True:
            _, after = self._graph(op.body, flags, [False] * len(flags), masks)
            grown = [old or new for old, new in zip(flags, after, strict=True)]
            if grown == flags:
                break
            flags = grown
        cond, is_chosen = self._graph(op.cond, flags, [False], masks)
        if is_chosen[0]:
            return self._loop_by_slices(node, op, operands, flags)
        if may_rest:
            cond = self._while_some(op.cond, flags, masks)
        body, _ = self._graph(op.body, flags, flags, masks)
        body = body.derive({}, [*body.results, *body.parameters[len(flags) :]])
        made = node.rebuilt((*self._force(operands, flags), *masks), ops.While(cond, body, op.progress))
        return _split(self._keep(made), False, flags)

    def _while_some(self, cond: Graph, flags: Sequence[bool], masks: Sequence[Node]) -> Graph:
        """The condition of a loop that all slices share, which does not hold if none is active."""

        def holds(*handles: Handle) -> list[Handle]:
            values, masks = _unpack(handles, flags)
            with self._activate(masks):
                (goes_on,) = self.run(cond, values)
                return [lax.bitwise_and(wrap(_node(goes_on)), self._some())]

        return self._record(holds, cond, flags, masks)

    def _loop_by_slices(
        self, node: Node, op: ops.While, operands: Values, is_batched: Sequence[bool]
    ) -> BatchedValue:
        """A loop that slices leave after different numbers of steps, with what changes batched."""
        if _has_effects(op):
            return self._slice_by_slice(node, operands)
        pairs = zip(is_batched, op.body.parameters, op.body.results, strict=True)
        flags = [flag or new is not old for flag, old, new in pairs]
        masks = [] if self.active is None else [self.active.mask]

        def go_on(handles: Sequence[Handle]) -> Array:
            values, masks = _unpack(handles, flags)
            with self._activate(masks):
                (holds,) = self.run(op.cond, values)
                return wrap(self._narrow(wrap(self.whole(holds))))

        def cond_of(*handles: Handle) -> list[Handle]:
            return [lax.reduce_or(go_on(handles), (0,))]

        def step(*handles: Handle) -> list[Handle]:
            is_on, (before, masks) = go_on(handles), _unpack(handles, flags)
            with self._activate([is_on._node], True):
                after = self.run(op.body, before)
            picked = [self._pick(is_on, *pair) for pair in zip(after, before, strict=True)]
            return [*map(wrap, self._force(picked, flags)), *map(wrap, masks)]

        cond, body = self._make_once(
            op,
            (*flags, bool(masks)),
            lambda: [
                self._record(make, each, flags, masks) for make, each in ((cond_of, op.cond), (step, op.body))
            ],
        )
        made = node.rebuilt((*self._force(operands, flags), *masks), ops.While(cond, body, op.progress))
        return _split(self._keep(made), False, flags)


def _unpack(handles: Sequence[Handle], flags: Sequence[bool]) -> tuple[list[BatchedValue], list[Node]]:
    """The values of a computation's parameters, and the masks behind them."""
    nodes = [each._node for each in handles]
    values = [BatchedValue(*pair) for pair in zip(nodes, flags, strict=False)]
    return values, nodes[len(flags) :]


def _owners(op: ops.If | ops.Case, chosen: Array) -> list[Array]:
    """For each branch the slices that choose it, which is the last one for an index of none."""
    if isinstance(op, ops.If):
        first = [chosen]
    else:
        first = [lax.eq(chosen, chosen.dtype.type(number)) for number in range(len(op.graphs) - 1)]
    return [*first, lax.bitwise_not(reduce(lax.bitwise_or, first, lax.full(chosen.shape, False)))]


def _nodes_in(op: Op) -> Iterator[Node]:
    """The nodes of the computations of an op, and of theirs."""
    for graph in op.graphs:
        for node in graph.nodes:
            yield node
            yield from _nodes_in(node.op)


def _calls_back(op: Op) -> bool:
    """Whether an op is a call of a function of the user without side effects."""
    return (
        isinstance(op, ops.CustomCall) and not op.has_side_effect and op.call_target_name != CHECKED_INDICES
    )


def _rests(op: Op) -> bool:
    """Whether an op is not to begin where no slice is active: it may have no end, or calls back."""
    return _calls_back(op) or (isinstance(op, ops.While) and not _counts(op))


def _counts(loop: ops.While) -> bool:
    """Whether a loop ends at a limit that it counts to, as those of `fori_loop` and `scan`."""
    counted = find_limit(loop)
    if counted is None:
        return False
    _, limit = counted
    if limit not in loop.cond.parameters:
        return isinstance(limit.op, ops.Constant)
    number = loop.cond.parameters.index(limit)
    return loop.body.results[number] is loop.body.parameters[number]


def _results(node: Node, operands: Sequence[Node]) -> list[Array]:
    """The results of the op of a node for these operands."""
    return results_of(node.op, operands, len(node.op.results(node)))


def _call_if(condition: Array, node: Node, operands: Sequence[Node]) -> list[Array]:
    """The results of the op of a node if a condition holds, else zeros."""
    types: Any = node.op.results(node)
    zeros = [lax.full(each.shape, 0, each.dtype) for each in types]
    return list(lax.cond(condition, lambda: _results(node, operands), lambda: zeros))


def _meets(op: Op) -> bool:
    """Whether replicas or slices compute it together, for all slices at once."""
    return isinstance(op, _MEETINGS)


def _has_effects(op: Op) -> bool:
    """Whether an op has effects, which each slice has by itself, beside what replicas compute together."""
    return any(node.op.is_ordered and not _meets(node.op) and not node.op.graphs for node in _nodes_in(op))


def _find_meeting(op: Op) -> Node | None:
    return next((node for node in _nodes_in(op) if _meets(node.op)), None)


def _node(value: BatchedValue) -> Node:
    """The node of a value, which for several is their tuple."""
    if value.elements is None:
        assert value.node is not None
        return value.node
    return Node(ops.Tuple(), tuple(map(_node, value.elements)))


def _together(values: Values) -> BatchedValue:
    return values[0] if len(values) == 1 else BatchedValue(None, False, tuple(values))


def _split(node: Node, is_batched: bool, flags: Sequence[bool] | None = None) -> BatchedValue:
    """The value of a node; of several results each, of as many as there are flags, if they are given."""
    if not isinstance(node.type, TupleType):
        return BatchedValue(node, is_batched if flags is None else flags[0])
    own = [is_batched] * len(node.type.elements) if flags is None else flags
    elements = [Node(ops.GetTupleElement(number), (node,)) for number in range(len(own))]
    return _together([BatchedValue(*pair) for pair in zip(elements, own, strict=True)])
