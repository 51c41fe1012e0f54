"""The program of a call: what a function records on arrays that stand for its arguments, and how it is run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from sys import _getframe as frame_of
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

import numpy as np

from xarr.base.configuration import current as config
from xarr.calls.small_values import small_value, wrap_recipe
from xarr.compiler.passes.checks import checks_indices
from xarr.compiler.pipeline import make_program
from xarr.compiler.plan.ownership import exposed_parameters, exposed_results
from xarr.errors import XarrError
from xarr.ir import ops
from xarr.ir.device import Device
from xarr.ir.graph import Node, element_types, postorder
from xarr.ir.op import Op
from xarr.ir.ops import Constant, CustomCall, GetTupleElement
from xarr.ir.source import caller, known_files, locate, location_of
from xarr.ir.types import TensorType, Type
from xarr.runtime import handles
from xarr.runtime.handles import Handle, Recipe, wrap, wrap_leaf
from xarr.runtime.pending import StandIn, graph_of
from xarr.runtime.small_ops import (
    MOST_BYTES,
    apply_op,
    is_few_pending,
    is_small_op,
    pending_value,
    records_all,
    small_ops,
)
from xarr.runtime.view_tracking import PartSteps, lineage, mark, mark_steps

#: Bytes of a constant whose value is kept beside the program that records it.
_MOST_KEPT_BYTES: Final = 2**15
#: Lines for which a call keeps the nodes of its numbers.
_MOST_LINES: Final = 64
#: Ops that a program of a call may have as well, if their arrays have no more bytes: factors of matrices, checks of
#: them, windows.
_COSTLY: Final = (
    *(ops.Eig, ops.Eigh, ops.Geqrf, ops.HouseholderProduct, ops.LogDeterminant, ops.Lu, ops.Solve, ops.Svd),
    *(ops.Check, ops.Convolution),
)
_MOST_COSTLY: Final = 2**13
#: Nodes of the longest call that is recorded by rows.
_MOST_ROWS: Final = 256
Location = tuple[CodeType, int] | None
#: What `CallProgram.run` gives where the function itself is to be called.
MISSED: Final[Any] = object()
#: From `CallProgram.run_values` to what names the errors of the function, outside of which its caller is looked for.
_DEPTH: Final = 2
#: What a function raises that refuses arguments; a program asks for no more than to be told again.
_REFUSALS: Final = (
    *(XarrError, ArithmeticError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError),
)


class Result:
    """A leaf of the result of a call: here an argument itself, by its number."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def make(self, arrays: list[Handle], computed: Sequence[Any], location: Location) -> Any:
        """The Array for these arguments and computed values, built at `location`."""
        return arrays[self.index]


class Fresh(Result):
    """Another Array that shows what an argument shows."""

    __slots__ = ()

    def make(self, arrays: list[Handle], computed: Sequence[Any], location: Location) -> Any:
        return wrap(arrays[self.index]._node)


class Computed(Result):
    """A computed value, by its number."""

    __slots__ = ("device", "is_exposed", "type")

    def __init__(self, index: int, node: Node, device: Device, is_exposed: bool) -> None:
        self.index, self.device, self.is_exposed = index, device, is_exposed
        self.type: TensorType = node.tensor_type

    def make(self, arrays: list[Handle], computed: Sequence[Any], location: Location) -> Any:
        value = computed[self.index]
        return wrap_leaf(self.type, value, self.device, self.is_exposed, location)


class RecordedValue(Result):
    """A recorded value, by the number of its node."""

    __slots__ = ()

    def make(self, arrays: list[Handle], computed: Sequence[Any], location: Location) -> Any:
        return wrap(computed[self.index])


class Recorded(Result):
    """A value made of constants alone, which stays recorded, or is there beside a recipe of its node.

    value: what it is computed to, for ops that are computed at once; None for one that is not small, or not known.
    """

    __slots__ = ("is_new", "order", "value")

    def __init__(self, order: list[Node]) -> None:
        self.order, self.is_new = order, True
        self.value: Any = None

    def make(self, arrays: list[Handle], computed: Sequence[Any], location: Location) -> Any:
        if self.value is not None:
            return wrap_recipe(self.value, Recipe(self.record, (), location, config.backend))
        array = self.record()
        for node in postorder([array._node]):
            node._location = location or ()
        if self.is_new:
            self.is_new = False
            if array._node.type.nbytes <= _MOST_KEPT_BYTES and small_value(array) is not None:
                self.value = array._value if array._device is None else None
        return array

    def record(self) -> Any:
        """An Array of new nodes."""
        new: dict[Node, Node] = {}
        for node in self.order:
            operands = tuple([new[operand] for operand in node.operands])
            new[node] = Node(node.op, operands, node.type, (), node.device)
        return wrap(new[self.order[-1]])


class Kept(Result):
    """A value that hangs on no array, which was computed when the call was recorded.

    What holds it is written to as a copy, since others hold it too.
    """

    __slots__ = ("device", "type", "value")

    def __init__(self, node: Node, device: Device) -> None:
        self.type, self.value, self.device = node.tensor_type, node.value, device

    def make(self, arrays: list[Handle], computed: Sequence[Any], location: Location) -> Any:
        return wrap_leaf(self.type, self.value, self.device, True, location)


class PartOf(Result):
    """A result that in NumPy would be a view of argument number `index`, after these steps."""

    __slots__ = ("inner", "steps")

    def __init__(self, inner: Result, index: int, steps: PartSteps) -> None:
        self.inner, self.index, self.steps = inner, index, steps

    def make(self, arrays: list[Handle], computed: Sequence[Any], location: Location) -> Any:
        array = self.inner.make(arrays, computed, location)
        return mark_steps(arrays[self.index], array, self.steps)


class CallProgram:
    """A call as a program over the values of its arrays.

    program: gives the values of the results that it computes for those of the arrays, and for `bound`, values that
    are the same each time, None if it computes none; device: where; exposed: the numbers of the arrays whose memory
    results may share; results: for each leaf of the result what makes it; join: list or tuple, None for a result that
    is one Array.
    """

    __slots__ = ("bound", "device", "exposed", "join", "program", "results")

    def __init__(self, results: list[Result], join: Callable[[list[Any]], Any] | None) -> None:
        self.results, self.join = results, join
        self.program: Callable[..., Sequence[Any]] | None = None
        self.device: Device | None = None
        self.bound: tuple[Any, ...] = ()
        self.exposed: tuple[int, ...] = ()

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
        location, results = location_of(frame_of(_DEPTH)), self.results
        if self.join is None:
            return results[0].make(arrays, computed, location)
        return self.join([result.make(arrays, computed, location) for result in results])

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
        location, results = caller(), self.results
        if self.join is None:
            return results[0].make(arrays, computed, location)
        return self.join([result.make(arrays, computed, location) for result in results])

    def _find_constants(self, nodes: list[Node], values: list[Any]) -> bool:
        """Fill in the values of nodes that have none; whether all are there, and one was from the start."""
        table = small_ops()
        if table is None or self.device is None or not any([value is not None for value in values]):
            return False
        for index, node in enumerate(nodes):
            if values[index] is None:
                values[index] = pending_value(table, node, self.device)
        return not any([value is None for value in values])


class RecordedNode(NamedTuple):
    """A node of a call that is recorded: what picks its operands, and the function that its location names.

    may_be_computed: whether the op is computed at once where its operands are.
    """

    op: Op
    pick: Callable[[list[Node]], tuple[Node, ...]]
    type: Type
    device: Device | None
    function: tuple[str, ...]
    may_be_computed: bool


def _picker(operands: tuple[int, ...]) -> Callable[[list[Node]], tuple[Node, ...]]:
    """The function that picks the items with these numbers, as a tuple."""
    if len(operands) == 1:
        (only,) = operands
        return lambda made: (made[only],)
    return itemgetter(*operands) if operands else lambda made: ()


class RepeatedCall(CallProgram):
    """A call as the nodes that it records, of which no value is looked at.

    rows: those of the nodes, which are counted on from those of the arrays, numbers first; few: the numbers of the
    arrays with few elements, which some op may ask for first; state: the settings under which they are recorded, by
    identity.
    """

    __slots__ = ("_is_alone", "_last", "_lines", "_part", "_single", "few", "numbers", "rows", "state")

    def __init__(
        self,
        results: list[Result],
        join: Callable[[list[Any]], Any] | None,
        rows: tuple[RecordedNode, ...],
        few: tuple[int, ...],
    ) -> None:
        super().__init__(results, join)
        self.few = few
        count = sum([_is_number(row) for row in rows])
        self.numbers, self.rows = rows[:count], rows[count:]
        self.state = config.state()
        #: Whether the last node is the result, where that is all, and of what array it is a part by which step.
        self._is_alone = False
        self._part: tuple[int, Any, Any] | None = None
        if join is None:
            self._show(results[0])
        is_single = self._is_alone and len(self.rows) == 1 and not self.rows[0].may_be_computed
        #: The row of that node if there is no other one, nor a function that its location names.
        self._single = self.rows[0][:4] if is_single and not self.rows[0].function else None
        #: By an instruction, as its address: the nodes of the numbers that it uses, the same each time; and the last.
        self._lines: dict[int, tuple[CodeType, int, list[Node]]] = {}
        self._last: tuple[CodeType | None, int, list[Node]] = (None, 0, [])

    def _show(self, result: Result) -> None:
        inner = result.inner if type(result) is PartOf and len(result.steps) == 1 else result
        if type(inner) is RecordedValue:
            self._is_alone = True
            if type(result) is PartOf:
                self._part = (result.index, *result.steps[0])

    def run_values(self, arrays: list[Handle], values: list[Any]) -> Any:
        """As `run`: what few elements with values become is large."""
        return self.record(arrays, [array._node for array in arrays], frame_of(_DEPTH))

    def run(self, arrays: list[Handle], nodes: list[Node]) -> Any:
        """The result for Arrays that show these nodes; MISSED where few elements may be asked for first."""
        return self.record(arrays, nodes, frame_of(_DEPTH))

    def record(self, arrays: list[Handle], nodes: list[Node], frame: FrameType) -> Any:
        """As `run`, for the user's line that `frame` is at, or was called by."""
        for index in self.few:
            if nodes[index].value is None:
                return MISSED
        code = frame.f_code
        location = (code, frame.f_lasti) if code.co_filename in known_files else locate(frame)
        made = nodes
        if self.numbers:
            last = self._last
            is_again = location is not None and last[0] is location[0] and last[1] == location[1]
            made = [*nodes, *(last[2] if is_again else self._numbers_at(location))]
        if self._single is not None:
            op, pick, type_, device = self._single
            last_node = Node(op, pick(made), type_, location or (), device)
        else:
            last_node = self._record_rows(made, location)
        if self._is_alone:
            part, result = self._part, wrap(last_node)
            return result if part is None else mark(arrays[part[0]], result, part[1], part[2])
        results = self.results
        if self.join is None:
            return results[0].make(arrays, made, location)
        return self.join([result.make(arrays, made, location) for result in results])

    def _record_rows(self, made: list[Node], location: Location) -> Node:
        """Record the nodes behind those of the arrays and numbers; the last one."""
        for op, pick, type_, device, function, may_be_computed in self.rows:
            if may_be_computed:
                made.append(apply_op(op, pick(made), type_, location)._node)
            else:
                line: Any = (*location, *function) if location and function else location or ()
                made.append(Node(op, pick(made), type_, line, device))
        return made[-1]

    def _numbers_at(self, location: Location) -> list[Node]:
        if location is None:
            return [Node(row.op, (), row.type, (), row.device) for row in self.numbers]
        code, instruction = location
        key = id(code) + instruction
        known = self._lines.get(key)
        if known is not None and known[0] is code and known[1] == instruction:
            self._last = known
            return known[2]
        nodes = [Node(row.op, (), row.type, location, row.device) for row in self.numbers]
        if len(self._lines) >= _MOST_LINES:
            self._lines.clear()
        self._lines[key] = self._last = code, instruction, nodes
        return nodes


# --- recording a call -------------------------------------------------------------------------------------------


def learn(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], most_bytes: int
) -> CallProgram | None:
    """The program of a call like `function(*args, **kwargs)`; None if it is more than small ops, warns, or may fail."""
    stand_ins: list[Handle] = []
    own_args = [_replace(value, stand_ins) for value in args]
    own_kwargs = {name: _replace(value, stand_ins) for name, value in kwargs.items()}
    nodes = [array._node for array in stand_ins]
    try:
        # Of a number that does not fit NumPy warns, which each call is to do.
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            result = function(*own_args, **own_kwargs)
    except _REFUSALS:
        return None
    for array, node in zip(stand_ins, nodes, strict=True):
        if array._node is not node or array._part is not None or (type(node) is StandIn and node.is_wanted):
            return None
    join = _joiner(result)
    leaves = [result] if join is None else list(result)
    is_twice = len({*map(id, leaves)}) < len(leaves)  # one Array, to which writes show in both
    # No result says whether a check of an argument has failed.
    if not leaves or is_twice or any([type(leaf) is not handles.array_class() for leaf in leaves]):
        return None
    return _program(leaves, join, stand_ins, nodes, most_bytes)


def _joiner(result: Any) -> Callable[[list[Any]], Any] | None:
    """Make of a list what a result is, a list or a tuple, which may have names; None for one Array."""
    if type(result) in (list, tuple):
        return type(result)
    return result._make if isinstance(result, tuple) and hasattr(result, "_make") else None


def _replace(value: Any, stand_ins: list[Handle]) -> Any:
    """`value` with arrays that stand for the Arrays in it, which are added to `stand_ins` in order."""
    if type(value) in (list, tuple):
        return type(value)([_replace(item, stand_ins) for item in value])
    if not isinstance(value, Handle):
        return value
    node = value._node
    stand_ins.append(wrap(StandIn(node.tensor_type, node.device)))
    return stand_ins[-1]


def _program(
    leaves: list[Handle],
    join: Callable[[list[Any]], Any] | None,
    stand_ins: list[Handle],
    nodes: list[Node],
    most_bytes: int,
) -> CallProgram | None:
    """The program whose results are `leaves`; None if one of the ops is not computed at once."""
    ends = [leaf._node for leaf in leaves]
    varying = _varying(postorder(ends), nodes)
    computed = [node for node in ends if node in varying and node not in nodes]
    order = postorder(computed, lambda node: node.value is not None)
    if not computed:
        results = _results(leaves, stand_ins, _record_alone)
        return None if results is None else CallProgram(results, join)
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
    order.sort(key=_is_number, reverse=True)
    if len(order) > _MOST_ROWS or not all([_can_be_repeated(node) for node in order]):
        return None
    number = {node: index for index, node in enumerate([*nodes, *order])}
    are_recorded = records_all() or all([_is_always_recorded(node) for node in nodes])
    results = _results(leaves, stand_ins, lambda node: RecordedValue(number[node]))
    rows = [
        RecordedNode(
            node.op,
            _picker(tuple([number[operand] for operand in node.operands])),
            node.type,
            node.device,
            (node._location or ())[2:],
            not are_recorded and _may_be_computed(node),
        )
        for node in order
    ]
    few = [index for index, node in enumerate(nodes) if not are_recorded and is_few_pending(node)]
    return None if results is None else RepeatedCall(results, join, tuple(rows), tuple(few))


def _may_be_computed(node: Node) -> bool:
    """Whether the op of a node is computed at once where its operands have values, or are evaluated for it."""
    is_on_theirs = any([node.device is operand.device for operand in node.operands])
    return is_small_op(node.op) and is_on_theirs and _are_small([node, *node.operands], MOST_BYTES)


def _is_number(node: Node | RecordedNode) -> bool:
    """Whether a node is a constant without dimensions, of which one may do for many calls."""
    return type(node.op) is Constant and not node.op.type.shape


def _is_always_recorded(node: Node) -> bool:
    """Whether ops on a node are recorded, whatever it is, since nobody looks at values of its device for them.

    At constants functions look wherever these lie.
    """
    backend = None if node.device is None else node.device.backend
    return backend is not None and not backend.computes_small_ops and not backend.is_on_host


def _can_be_repeated(node: Node) -> bool:
    """Whether a node with the same op means the same: one of static shape without data of its own, and no effect.

    Checks may be left out of another call, for operands that show that they would not fail.
    """
    op = node.op
    is_small = not isinstance(op, Constant) or node.type.nbytes <= _MOST_KEPT_BYTES
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
        is_small = node.tensor_type.is_plain and node.type.nbytes <= _MOST_KEPT_BYTES
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
