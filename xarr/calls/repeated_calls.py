"""What the results of remembered calls are made by, and calls that record the same nodes or compute the same again.

A call is kept by its key, and written as a Python function for each line of the user's that it is made at, which tells
by identity that the arguments are those that it was written for; here one that records:

    def write(A, b0, b1, b2, b3, …):
        def replay(args, kwargs):
            if len(args) == 2 and type(args[0]) is A and (n0 := args[0]._shown) is not None and n0.type is b0 …:
                m1 = Node(b4, (n0, b5), b6, b7, b1)
                return wrap(m1)
            return MISSED

What hangs on no array, such as the numbers of `clip` and their broadcasts, is a node of the line, the same each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from sys import _getframe as frame_of
from textwrap import indent
from types import CodeType, NoneType
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

import numpy as np

from xarr.base.at_once.obstacles import obstacles
from xarr.base.configuration import current as config
from xarr.calls.concrete_values import small_value, wrap_recipe
from xarr.calls.operands import observers
from xarr.errors import XarrError
from xarr.ir.device import Device
from xarr.ir.graph import Node, next_serial, postorder
from xarr.ir.op import Op
from xarr.ir.source import locate
from xarr.ir.types import TensorType, Type
from xarr.runtime import handles
from xarr.runtime.handles import Handle, Recipe, wrap, wrap_leaf
from xarr.runtime.small_ops import apply_op
from xarr.runtime.trace_stack import recording
from xarr.runtime.view_tracking import PartSteps, mark, mark_steps

Location = tuple[CodeType, int] | None
#: What runs a call: a function of arguments by position and by name.
Run = Callable[[tuple[Any, ...], dict[str, Any]], Any]
#: What is given for a call that the function itself is to be called for.
MISSED: Final[Any] = object()

#: Bytes of a constant whose value is kept beside the program that records it.
MOST_KEPT_BYTES: Final = 2**15
#: From here on a chain of constants is evaluated when it is recorded.
_DEEPEST: Final = 8

#: Arguments that are equal only if they mean the same, once their types are.
PLAIN_KINDS: Final = frozenset({int, str, bool, NoneType, type(...)})


def tell(number: complex) -> Any:
    """Give what stands for a number in keys: its text tells 0.0 and -0.0 apart, which are equal, and NaN is itself."""
    return number if type(number) is float and number and number == number else repr(number)


# --- results ----------------------------------------------------------------------------------------------------


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
            if array._node.type.nbytes <= MOST_KEPT_BYTES and small_value(array) is not None:
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


# --- calls that are recorded again -------------------------------------------------------------------------------


class RecordedNode(NamedTuple):
    """A node of a call that is recorded: the numbers of its operands, and the function that its location names.

    may_be_computed: whether the op is computed at once where its operands are.
    """

    op: Op
    operands: tuple[int, ...]
    type: Type
    device: Device | None
    function: tuple[str, ...]
    may_be_computed: bool

    def record(self, operands: tuple[Node, ...], location: Location) -> Node:
        """The node over these operands, built at `location`."""
        if self.may_be_computed:
            return apply_op(self.op, operands, self.type, location)._node
        return Node(self.op, operands, self.type, self.line(location), self.device)

    def line(self, location: Location) -> Any:
        """`location` as nodes have it, with the function."""
        return (*location, *self.function) if location else ()


class KnownCall:
    """A call that is known: as the nodes that it records, or as a program over the values of its arrays.

    results: for each leaf of the result what makes it; join: list or tuple, None for a result that is one Array; state:
    the settings under which it is known, by identity; by_values: whether the arrays have small values that a program
    is for.
    """

    __slots__ = ("join", "results", "state")
    by_values: ClassVar[bool] = False

    def __init__(self, results: list[Result], join: Callable[[list[Any]], Any] | None) -> None:
        self.results, self.join, self.state = results, join, config.state()

    def finish(self, arrays: list[Handle], made: Sequence[Any], location: Location) -> Any:
        """The result, of the nodes of the arrays and the others, or of what the program computed."""
        if self.join is None:
            return self.results[0].make(arrays, made, location)
        return self.join([result.make(arrays, made, location) for result in self.results])

    def write_replay(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], location: tuple[CodeType, int]
    ) -> Run:
        """The function for calls like this one at a line, which gives MISSED for any other."""
        raise NotImplementedError


class RepeatedCall(KnownCall):
    """A call as the nodes that it records, of which no value is looked at.

    rows: the nodes, which are counted on from those of the arrays; few: the numbers of the arrays with few elements,
    which some op may ask for first.
    """

    __slots__ = ("few", "rows")

    def __init__(
        self,
        results: list[Result],
        join: Callable[[list[Any]], Any] | None,
        rows: tuple[RecordedNode, ...],
        few: tuple[int, ...],
    ) -> None:
        super().__init__(results, join)
        self.rows, self.few = rows, few

    def run_values(self, arrays: list[Handle], values: list[Any]) -> Any:
        """As `run`: what few elements with values become is large."""
        return self.run(arrays, [array._node for array in arrays])

    def run(self, arrays: list[Handle], nodes: list[Node]) -> Any:
        """The result for Arrays that show these nodes; MISSED where few elements may be asked for first."""
        for index in self.few:
            if nodes[index].value is None:
                return MISSED
        location, made = locate(frame_of(1)), [*nodes]
        for row in self.rows:
            made.append(row.record(tuple([made[each] for each in row.operands]), location))
        return self.finish(arrays, made, location)

    def write_replay(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], location: tuple[CodeType, int]
    ) -> Run:
        return _NodeWriter(self, location).write(args, kwargs)


_Call = TypeVar("_Call", bound=KnownCall)


class LineWriter(Generic[_Call]):
    """The text of a replay, and what its names stand for.

    conditions: what holds for calls like this one; nodes: the names of the nodes of the call, by their numbers, or of
    the values of its arrays; arrays: the expressions of the arrays.
    """

    def __init__(self, call: _Call, location: tuple[CodeType, int]) -> None:
        self.call, self.location = call, location
        self.conditions: list[str] = []
        self.nodes: list[str] = []
        self.arrays: list[str] = []
        self.values: list[Any] = []

    def name(self, value: Any) -> str:
        self.values.append(value)
        return f"b{len(self.values) - 1}"

    def write(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
        count = f" and len(kwargs) == {len(kwargs)}" if kwargs else " and not kwargs"
        self.conditions.append(f"len(args) == {len(args)}{count}")
        for index, value in enumerate(args):
            self.expect(f"args[{index}]", value)
        for name, value in kwargs.items():
            self.conditions.append(f"{name!r} in kwargs")
            self.expect(f"kwargs[{name!r}]", value)
        settings, overridden = map(self.name, self.call.state)
        self.conditions.append(
            f"config['_global'] is {settings} and overrides() is {overridden} and not recording and not observers"
        )
        text = "\n".join(self.lines())
        names = ", ".join([f"b{index}" for index in range(len(self.values))])
        return _writer(
            f"def write(A, {names}):\n"
            "    def replay(args, kwargs):\n"
            f"        if {' and '.join(self.conditions)}:\n"
            f"{indent(text, ' ' * 12)}\n"
            "        return MISSED\n"
            "    return replay\n"
        )(handles.array_class(), *self.values)

    def expect(self, expression: str, value: Any, is_inside: bool = False) -> None:
        """Add the condition that an argument is as `value`."""
        kind, expected = type(value), self.conditions
        if kind is handles._array_class:
            self.expect_array(expression, value)
        elif kind is list or kind is tuple:
            expected.append(f"type({expression}) is {kind.__name__} and len({expression}) == {len(value)}")
            for index, item in enumerate(value):
                self.expect(f"{expression}[{index}]", item)
        else:
            name = self.name(value)
            is_equal = f"type({expression}) is {self.name(kind)} and {expression} == {name}"
            # Floats by identity alone where equal ones may mean something else.
            is_known = kind is not float or tell(value) is value
            expected.append(f"({expression} is {name}{f' or {is_equal}' if is_known else ''})")

    def expect_array(self, expression: str, array: Handle) -> None:
        """As `expect`, of an Array."""
        raise NotImplementedError

    def lines(self) -> list[str]:
        """The lines that return the result."""
        raise NotImplementedError

    def result(self) -> str:
        """The expression of the result."""
        result = self.call.results[0]
        if self.call.join is None and type(result) is Recorded and result.value is not None:
            recipe = f"{self.name(result.record)}, (), {self.name(self.location)}, {config.backend!r}"
            return f"wrap_recipe({self.name(result.value)}, Recipe({recipe}))"
        arrays, nodes = ", ".join(self.arrays), ", ".join(self.nodes)
        return f"{self.name(self.call.finish)}([{arrays}], [{nodes}], {self.name(self.location)})"


class _NodeWriter(LineWriter[RepeatedCall]):
    """The replay of a call that records nodes; shared: those that hang on no array."""

    def __init__(self, call: RepeatedCall, location: tuple[CodeType, int]) -> None:
        super().__init__(call, location)
        self.shared: dict[int, Node] = {}

    def expect_array(self, expression: str, array: Handle) -> None:
        node, number = array._node, len(self.nodes)
        self.nodes.append(f"n{number}")
        self.arrays.append(expression)
        self.conditions.append(
            f"type({expression}) is A and (n{number} := {expression}._shown) is not None "
            f"and n{number}.type is {self.name(node.type)} and n{number}.device is {self.name(node.device)}"
        )
        if number in self.call.few:
            self.conditions.append(f"n{number}.value is not None")

    def lines(self) -> list[str]:
        lines = [line for row in self.call.rows if (line := self.record(row))]
        return [*lines, f"return {self.result()}"]

    def record(self, row: RecordedNode) -> str:
        """The line that records a node; "" for one that the calls of this line share."""
        number = len(self.nodes)
        own = [self.shared.get(each) for each in row.operands]
        if not any([each is None for each in own]) and not self.is_result(number):
            node = Node(row.op, tuple(own), row.type, row.line(self.location), row.device)  # type: ignore[arg-type]
            if node.depth < _DEEPEST:
                node.exposed = True
                self.shared[number] = node
                self.nodes.append(self.name(node))
                return ""
        self.nodes.append(f"m{number}")
        operands = f"({''.join([f'{self.nodes[each]}, ' for each in row.operands])})"
        op, type_, line = self.name(row.op), self.name(row.type), self.name(row.line(self.location))
        if row.may_be_computed:
            computed = f"apply_op({op}, {operands}, {type_}, {self.name(self.location)})"
            is_last = row is self.call.rows[-1] and self.only_node() == number
            return f"last = {computed}" if is_last else f"m{number} = {computed}._node"
        pending = [self.nodes[each] for each in row.operands if each not in self.shared]
        if not pending:
            return f"m{number} = Node({op}, {operands}, {type_}, {line}, {self.name(row.device)})"
        least = max([self.shared[each].depth for each in row.operands if each in self.shared], default=0)
        return node_text(f"m{number}", op, operands, pending, least, type_, line, self.name(row.device))

    def is_result(self, number: int) -> bool:
        for result in self.call.results:
            inner = result.inner if isinstance(result, PartOf) else result
            if type(inner) is RecordedValue and inner.index == number:
                return True
        return False

    def only_node(self) -> int | None:
        """The number of the node that is the result, perhaps a part by one step; None for other results."""
        result = self.call.results[0]
        inner = result.inner if isinstance(result, PartOf) and len(result.steps) == 1 else result
        return inner.index if self.call.join is None and type(inner) is RecordedValue else None

    def result(self) -> str:
        result, number = self.call.results[0], self.only_node()
        if number is None:
            return super().result()
        is_made = self.call.rows[-1].may_be_computed and number == len(self.nodes) - 1
        shown = "last" if is_made else f"wrap({self.nodes[number]})"
        if not isinstance(result, PartOf):
            return shown
        step, argument = map(self.name, result.steps[0])
        return f"mark({self.arrays[result.index]}, {shown}, {step}, {argument})"


def node_text(
    name: str,
    op: str,
    operands: str,
    pending: Sequence[str],
    least: int,
    type: str,
    location: str,
    device: str,
) -> str:
    """The statements that make a node as `Node` does, for code that makes many; each is named by what stands for it.

    pending: those of the operands that are others each time, of which there is one at least; least: the depth of the
    rest, which is exposed.
    """
    depths = [f"if {each}.depth > depth: depth = {each}.depth" for each in pending]
    fields = {
        **{"op": op, "operands": operands, "type": type, "depth": "depth + 1"},
        "traced": " or ".join([f"{each}.traced" for each in pending]),
        **{"exposed": "False", "handles": "0", "serial": "next_serial()", "value": "None"},
        **{"device": device, "_location": location},
    }
    exposed = [f"{each}.exposed = True" for each in pending]
    made = [f"{name}.{field} = {value}" for field, value in fields.items()]
    return "\n".join([*exposed, f"depth = {least}", *depths, f"{name} = new(Node)", *made])


#: A name within this package, so that the line of a user who calls it counts as the caller.
_FILE: Final = f"{os.path.dirname(os.path.abspath(__file__))}{os.sep}<replay>"
_SCOPE: Final[dict[str, Any]] = {
    **{"Node": Node, "new": object.__new__, "next_serial": next_serial, "apply_op": apply_op},
    **{
        "Recipe": Recipe,
        "wrap_recipe": wrap_recipe,
        "obstacles": obstacles,
        "asarray": np.asarray,
        "XarrError": XarrError,
        "wrap_leaf": wrap_leaf,
    },
    **{"mark": mark, "wrap": wrap, "MISSED": MISSED, "recording": recording, "observers": observers},
    # Its dict: reading an attribute of an object whose class has `__getattr__` takes three times as long.
    **{"config": config.__dict__, "overrides": config._overrides.get},
}


@lru_cache(maxsize=1024)
def _writer(text: str) -> Callable[..., Run]:
    scope = dict(_SCOPE)
    exec(compile(text, _FILE, "exec"), scope)
    return scope["write"]  # type: ignore[no-any-return]
