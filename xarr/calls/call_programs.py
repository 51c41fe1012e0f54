"""The program of a call: what a function records on arrays that stand for its arguments, and how it is run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import _getframe as frame_of
from types import CodeType
from typing import Any, Final, NamedTuple

import numpy as np

from xarr import backend as backends
from xarr.base.configuration import current as config
from xarr.calls.concrete_values import small_value
from xarr.calls.repeated_calls import (
    MISSED,
    MOST_KEPT_BYTES,
    Computed,
    Fresh,
    Kept,
    KnownCall,
    LineWriter,
    PartOf,
    Recorded,
    RecordedNode,
    RecordedValue,
    RepeatedCall,
    Result,
    Run,
)
from xarr.compiler.passes.checks import checks_indices
from xarr.compiler.pipeline import make_program
from xarr.compiler.plan.ownership import exposed_parameters, exposed_results
from xarr.errors import XarrError
from xarr.ir import ops
from xarr.ir.device import Device
from xarr.ir.graph import Node, element_types, postorder
from xarr.ir.ops import Constant, CustomCall, GetTupleElement
from xarr.ir.source import caller, location_of
from xarr.ir.types import TensorType
from xarr.runtime import handles
from xarr.runtime.handles import Handle, from_host, wrap
from xarr.runtime.pending import StandIn, graph_of
from xarr.runtime.small_ops import (
    MOST_BETWEEN,
    MOST_BYTES,
    is_few_pending,
    is_small_op,
    most_operand_bytes,
    pending_value,
    records_all,
    small_ops,
)
from xarr.runtime.view_tracking import lineage

#: Ops that a program of a call may have as well, if their arrays have no more bytes: factors of matrices, checks of
#: them, windows.
_COSTLY: Final = (
    *(ops.Eig, ops.Eigh, ops.Geqrf, ops.HouseholderProduct, ops.LogDeterminant, ops.Lu, ops.Solve, ops.Svd),
    *(ops.Check, ops.Convolution),
)
_MOST_COSTLY: Final = 2**13
#: Bytes of the largest array that a call may be remembered by the values of.
_MOST_LOOKED_AT: Final = 2**9
#: Nodes of the longest call that is recorded by rows.
_MOST_ROWS: Final = 256
#: From `CallProgram.run_values` to what names the errors of the function, outside of which its caller is looked for.
_DEPTH: Final = 2
#: What a function raises that refuses arguments; a program asks for no more than to be told again.
_REFUSALS: Final = (
    *(XarrError, ArithmeticError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError),
)


class CallProgram(KnownCall):
    """A call as a program over the values of its arrays.

    program: gives the values of the results that it computes for those of the arrays, and for `bound`, values that
    are the same each time, None for none; exposed: the numbers of the arrays whose memory results may share; device:
    where.
    """

    __slots__ = ("bound", "device", "exposed", "program")
    by_values = True

    def __init__(self, results: list[Result], join: Callable[[list[Any]], Any] | None) -> None:
        super().__init__(results, join)
        self.program: Callable[..., Sequence[Any]] | None = None
        self.bound: tuple[Any, ...] = ()
        self.exposed: tuple[int, ...] = ()
        self.device: Device | None = None

    def write_replay(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], location: tuple[CodeType, int]
    ) -> Run:
        return _ValueWriter(self, location).write(args, kwargs)

    def run_values(self, arrays: list[Handle], values: list[Any]) -> Any:
        """The result for Arrays that hold these small values; MISSED if the function itself is to be called."""
        computed: Sequence[Any] = ()
        if self.program is not None:
            for index in self.exposed:
                node = arrays[index]._shown
                if node is not None:
                    node.exposed = True
            own = [value if type(value) is np.ndarray else np.asarray(value) for value in values]
            try:
                computed = self.program(*own, *self.bound)
            except XarrError:  # an index out of bounds, of which the function itself is to tell
                return MISSED
        return self.finish(arrays, computed, location_of(frame_of(_DEPTH)))

    def run(self, arrays: list[Handle], nodes: list[Node]) -> Any:
        """The result for Arrays that show these nodes; MISSED if a value is not there, or is just given away."""
        computed: Sequence[Any] = ()
        if self.program is not None:
            for node in nodes:
                node.handles += 1  # so that nobody writes over it meanwhile
            try:
                values = [node.value for node in nodes]
                for value in values:
                    if value is None and not self._find_constants(nodes, values):
                        return MISSED
                for index in self.exposed:
                    nodes[index].exposed = True
                computed = self.program(*values, *self.bound)
            except XarrError:  # an index out of bounds, of which the function itself is to tell
                return MISSED
            finally:
                for node in nodes:
                    node.handles -= 1
        return self.finish(arrays, computed, caller())

    def _find_constants(self, nodes: list[Node], values: list[Any]) -> bool:
        """Fill in the values of nodes that have none; whether all are there, and one was from the start."""
        table = small_ops()
        if table is None or self.device is None or not any([value is not None for value in values]):
            return False
        for index, node in enumerate(nodes):
            if values[index] is None:
                values[index] = pending_value(table, node, self.device)
        return not any([value is None for value in values])


class _ValueWriter(LineWriter[CallProgram]):
    """The replay of a call that computes with small values."""

    def __init__(self, call: CallProgram, location: tuple[CodeType, int]) -> None:
        super().__init__(call, location)
        self.conditions.append("not obstacles")

    def expect_array(self, expression: str, array: Handle) -> None:
        own, name = array._value, f"v{len(self.nodes)}"
        self.arrays.append(expression)
        text = f"type({expression}) is A and type({name} := {expression}._value) is {self.name(type(own))}"
        if type(own) is np.ndarray:
            self.nodes.append(name)
            text += f" and {name}.dtype is {self.name(own.dtype)} and {name}.shape == {own.shape}"
        else:
            self.nodes.append(f"asarray({name})")
        self.conditions.append(f"{text} and {expression}._device is {self.name(array._device)}")

    def lines(self) -> list[str]:
        """Of them the program may say that it is no call like others."""
        call, location = self.call, self.name(self.location)
        lines = ["c = ()"]
        if call.program is not None:
            exposed = [self.arrays[index] for index in call.exposed]
            lines = [f"if (n := {each}._shown) is not None: n.exposed = True" for each in exposed]
            operands = ", ".join([*self.nodes, *map(self.name, call.bound)])
            computed = f"{self.name(call.program)}({operands})"
            lines += ["try:", f"    c = {computed}", "except XarrError:", "    return MISSED"]
        result = call.results[0]
        inner = result.inner if isinstance(result, PartOf) and len(result.steps) == 1 else result
        if call.program is None and len(call.results) == 1 and type(result) is Recorded:
            return [f"return {self.result()}"]
        if call.join is not None or type(inner) is not Computed:
            return [*lines, f"return {self.name(call.finish)}([{', '.join(self.arrays)}], c, {location})"]
        fields = f"{self.name(inner.type)}, c[{inner.index}], {self.name(inner.device)}"
        text = f"wrap_leaf({fields}, {inner.is_exposed}, {location})"
        if isinstance(result, PartOf):
            step, argument = map(self.name, result.steps[0])
            text = f"mark({self.arrays[result.index]}, {text}, {step}, {argument})"
        return [*lines, f"return {text}"]


# --- recording a call -------------------------------------------------------------------------------------------


class LooksAt(NamedTuple):
    """Of a call: the numbers of its arrays whose values the function looks at, which are few elements."""

    numbers: tuple[int, ...]

    def others(self, values: list[Any]) -> list[Any]:
        """The values, one for each array, less those of these."""
        return [value for index, value in enumerate(values) if index not in self.numbers]


def learn(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    most_bytes: int,
    known: tuple[int, ...] = (),
) -> CallProgram | RepeatedCall | LooksAt | None:
    """The program of a call like `function(*args, **kwargs)`; None if it is more than small ops, warns, or may fail.

    known: the numbers of arrays that have the same values in each such call; LooksAt names more that should.
    """
    arrays: list[tuple[Handle, Handle]] = []
    own_args = [_replace(value, arrays, known) for value in args]
    own_kwargs = {name: _replace(value, arrays, known) for name, value in kwargs.items()}
    nodes = [own._node for _, own in arrays]
    try:
        # Of a number that does not fit NumPy warns, which each call is to do.
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            result = function(*own_args, **own_kwargs)
    except _REFUSALS:
        wanted = [index for index, node in enumerate(nodes) if type(node) is StandIn and node.is_wanted]
        return _looks_at((*known, *wanted), [array for array, _ in arrays]) if wanted else None
    for (_, own), node in zip(arrays, nodes, strict=True):
        if own._node is not node or own._part is not None or (type(node) is StandIn and node.is_wanted):
            return None
    join = _joiner(result)
    leaves = [result] if join is None else list(result)
    is_twice = len({*map(id, leaves)}) < len(leaves)  # one Array, to which writes show in both
    # No result says whether a check of an argument has failed.
    if not leaves or is_twice or any([type(leaf) is not handles.array_class() for leaf in leaves]):
        return None
    if any([leaf is arrays[index][1] for leaf in leaves for index in known]):
        return None
    stand_ins = [own for index, (_, own) in enumerate(arrays) if index not in known]
    return _program(leaves, join, stand_ins, [own._node for own in stand_ins], most_bytes)


def _looks_at(numbers: tuple[int, ...], arrays: list[Handle]) -> LooksAt | None:
    """The record of a call by these of its arrays; None if they are more than a few elements, or all there are."""
    looked_at = [small_value(arrays[index]) for index in numbers]
    most = max([arrays[index]._node.type.nbytes for index in numbers])
    is_known = not any([value is None for value in looked_at]) and len(numbers) < len(arrays)
    return LooksAt(numbers) if is_known and most <= _MOST_LOOKED_AT else None


def _joiner(result: Any) -> Callable[[list[Any]], Any] | None:
    """Make of a list what a result is, a list or a tuple, which may have names; None for one Array."""
    if type(result) in (list, tuple):
        return type(result)
    return result._make if isinstance(result, tuple) and hasattr(result, "_make") else None


def _replace(value: Any, arrays: list[tuple[Handle, Handle]], known: tuple[int, ...]) -> Any:
    """`value` with arrays that stand for the Arrays in it, both of which are added to `arrays` in order.

    What stands for those with numbers in `known` has their values.
    """
    if type(value) in (list, tuple):
        return type(value)([_replace(item, arrays, known) for item in value])
    if not isinstance(value, Handle):
        return value
    node = value._node
    if len(arrays) in known:
        device = backends.default_device().uncommitted if node.device is None else node.device
        own = from_host(np.array(small_value(value)), device)
    else:
        own = wrap(StandIn(node.tensor_type, node.device))
    arrays.append((value, own))
    return own


def _program(
    leaves: list[Handle],
    join: Callable[[list[Any]], Any] | None,
    stand_ins: list[Handle],
    nodes: list[Node],
    most_bytes: int,
) -> CallProgram | RepeatedCall | None:
    """The program whose results are `leaves`; None if one of the ops is not computed at once."""
    ends = [leaf._node for leaf in leaves]
    varying = _varying(postorder(ends), nodes)
    computed = [node for node in ends if node in varying and node not in nodes]
    order = postorder(computed, lambda node: node.value is not None)
    if not computed:
        results = _results(leaves, stand_ins, _record_alone)
        if results is None:
            return None
        return CallProgram(results, join) if stand_ins else RepeatedCall(results, join, (), ())
    if all([_is_always_recorded(node) for node in nodes]):
        return _repeated_call(leaves, join, stand_ins, nodes)
    types = [each for node in (*nodes, *order) for each in element_types(node.type)]
    if records_all() or max([each.nbytes for each in types], default=0) > most_bytes:
        is_known = all(
            [type(node) is StandIn and not node.is_looked_at and node.device is not None for node in nodes]
        )
        return _repeated_call(leaves, join, stand_ins, nodes) if is_known else None
    device = _common_device([*nodes, *order])
    if len({*computed}) < len(computed) or device is None or not _are_small([*nodes, *order], most_bytes):
        return None
    bound = [node for node in order if node.value is not None]
    graph = graph_of(order, [*nodes, *bound], computed)
    with config(fusion="off"):  # as ops run one by one
        compiled = make_program(graph, device.backend)
    program = compiled.program
    plan = device.backend.plan_of(program)
    is_exposed = exposed_parameters(graph, plan)
    are_exposed = exposed_results(graph, plan)

    def maker_of(node: Node) -> Result | None:
        if node not in computed:
            return _record_alone(node)
        index = computed.index(node)
        return None if node.device is None else Computed(index, node, node.device, are_exposed[index])

    results = _results(leaves, stand_ins, maker_of)
    if results is None:
        return None
    made = CallProgram(results, join)
    made.program, made.device, made.bound = program, device, tuple([node.value for node in bound])
    made.exposed = tuple([index for index in range(len(nodes)) if is_exposed[index]])
    return made


def _repeated_call(
    leaves: list[Handle], join: Callable[[list[Any]], Any] | None, stand_ins: list[Handle], nodes: list[Node]
) -> RepeatedCall | None:
    """The call as the nodes between `nodes` and those of `leaves`; None if it has effects, or data of its own."""
    known = set(nodes)
    order = [
        node for node in postorder([leaf._node for leaf in leaves], known.__contains__) if node not in known
    ]
    if len(order) > _MOST_ROWS or not all([_can_be_repeated(node) for node in order]):
        return None
    number = {node: index for index, node in enumerate([*nodes, *order])}
    are_recorded = records_all() or all([_is_always_recorded(node) for node in nodes])
    results = _results(leaves, stand_ins, lambda node: RecordedValue(number[node]))
    large: set[Node] = set()  # and what hangs on such, which is recorded
    for node in order:
        if node.type.nbytes > MOST_BETWEEN or not large.isdisjoint(node.operands):
            large.add(node)
    rows = [
        RecordedNode(
            node.op,
            tuple([number[operand] for operand in node.operands]),
            node.type,
            node.device,
            (node._location or ())[2:],
            not are_recorded and large.isdisjoint(node.operands) and _may_be_computed(node),
        )
        for node in order
    ]
    few = [index for index, node in enumerate(nodes) if not are_recorded and is_few_pending(node)]
    return None if results is None else RepeatedCall(results, join, tuple(rows), tuple(few))


def _may_be_computed(node: Node) -> bool:
    """Whether the op of a node is computed at once where its operands have values, or are evaluated for it."""
    is_on_theirs = any([node.device is operand.device for operand in node.operands])
    most = most_operand_bytes(node.op, [operand.type for operand in node.operands])
    is_small = _are_small([node], MOST_BYTES) and _are_small([*node.operands], most)
    return is_small_op(node.op) and is_on_theirs and is_small


def _is_always_recorded(node: Node) -> bool:
    """Whether ops on a node are recorded, whatever it is, since values of its device are not looked at for them.

    At constants functions look wherever these lie.
    """
    backend = None if node.device is None else node.device.backend
    return backend is not None and not backend.computes_small_ops and not backend.is_on_host


def _can_be_repeated(node: Node) -> bool:
    """Whether a node with the same op means the same: one of static shape without data of its own, and no effect.

    Checks may be left out of another call, for operands that show that they would not fail.
    """
    op = node.op
    is_small = not isinstance(op, Constant) or node.type.nbytes <= MOST_KEPT_BYTES
    is_known = (
        node.value is None and not op.is_leaf and not node.type.dynamic and not isinstance(op, ops.Check)
    )
    return is_small and is_known and op.is_pure and not op.is_ordered and not isinstance(op, CustomCall)


def _common_device(nodes: list[Node]) -> Device | None:
    """The device on which all of these lie that lie on any; None for several, or one that records all ops."""
    devices = {node.device.committed for node in nodes if node.device is not None}
    device = devices.pop() if len(devices) == 1 else None
    return device if device is not None and device.backend.computes_small_ops else None


def _varying(order: list[Node], nodes: list[Node]) -> set[Node]:
    """The nodes that depend on `nodes`, and these."""
    varying = set(nodes)
    for node in order:
        if not varying.isdisjoint(node.operands):
            varying.add(node)
    return varying


def _are_small(nodes: list[Node], most_bytes: int) -> bool:
    """Whether all are values of static shapes, small, and given or made by ops that are computed at once.

    Of arrays that are smaller still these are more, those that take longer than their arrays are large among them.
    """
    for node in nodes:
        is_known = is_small_op(node.op) or type(node.op) is GetTupleElement or checks_indices(node)
        is_costly = bool(node.operands) and not is_known
        if is_costly and not isinstance(node.op, _COSTLY):
            return False
        most = min(most_bytes, _MOST_COSTLY) if is_costly else most_bytes
        counted = (*node.operands, node) if is_costly else (node,)
        for type_ in [each for one in counted for each in element_types(one.type)]:
            if not isinstance(type_, TensorType) or type_.dynamic or type_.nbytes > most:
                return False
    return True


def _record_alone(node: Node) -> Result | None:
    """The maker of a value that hangs on no array; None for a large one that is made of data."""
    device = node.device
    if node.value is not None and device is not None:
        is_small = node.tensor_type.is_plain and node.type.nbytes <= MOST_KEPT_BYTES
        return Kept(node, device) if is_small and device.backend.computes_small_ops else None
    order = postorder([node])
    return None if any([each.value is not None for each in order]) else Recorded(order)


def _results(
    leaves: list[Handle], stand_ins: list[Handle], maker_of: Callable[[Node], Result | None]
) -> list[Result] | None:
    """The makers of `leaves`, `maker_of` those of nodes that are no arguments; None if one cannot be made again."""
    results: list[Result] = []
    nodes = [array._node for array in stand_ins]
    numbers = {id(array): index for index, array in enumerate(stand_ins)}
    for leaf in leaves:
        node = leaf._node
        made: Result | None
        if id(leaf) in numbers:
            results.append(Result(numbers[id(leaf)]))
            continue
        made = Fresh(nodes.index(node)) if node in nodes else maker_of(node)
        if made is None:
            return None
        steps, whole = lineage(leaf)
        if whole is not None:
            if id(whole) not in numbers:
                return None
            made = PartOf(made, numbers[id(whole)], steps)
        results.append(made)
    return results
