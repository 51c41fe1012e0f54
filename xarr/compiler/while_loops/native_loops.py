"""Loops whose points do not meet: each point goes through all steps in registers.

A `While` is such a loop if, apart from what it carries along unchanged, it carries scalars and arrays of one
size n, and its body computes every element from the scalars and from the same elements of these arrays.  What
does not change may also be read, and a carried array be written, at an index that scalars compute: one element,
or a row of n of them.  Where only scalars change, elements of a table may be read between its writes, too.  Such
a loop can be turned inside out, steps inside and points outside.  The condition is

* one of the scalars alone: they can be run ahead, and say how many steps each point takes; or
* that and `any` of a mask of the points, provided that a step changes nothing of a point whose mask is false.
  Then a point is finished when its mask is false, and the loop has as many steps as the last of them takes.

That a step changes nothing of a point is proved from its expressions: with false in place of the mask,
each must fold to the carried value itself.  The mask must not depend on scalars that change.  By the same
proof, with all masks that selects in the body choose by, a point is left early that no step changes any more.

Each element is computed by the operations of the graph in their order, so its bits are those of a loop that
takes the steps one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final, Literal

from xarr.compiler.functions import apply_elementwise, register_dtype
from xarr.compiler.loop_ir.computed_indices import clamp_index
from xarr.compiler.loop_ir.elements import computes, strides
from xarr.compiler.loop_ir.index_ranges import Ranges
from xarr.compiler.loop_ir.loop_bounds import simplify, with_truths
from xarr.compiler.loop_ir.scalars import BOOL, INT64, DType, Value, Values, constant_of, in_order
from xarr.compiler.while_loops.late_operands import compare_late_operands_last
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.graph import Node
from xarr.ir.graph_ranges import GraphRanges
from xarr.ir.integer_ranges import Range
from xarr.ir.operands_first import compute_operands_first
from xarr.ir.types import TensorType

#: What a carried value is: one number; n of them; more, of which only parts are read or written.
Kind = Literal["scalar", "points", "table"]

#: Elements that a step has written before it reads one of the same table, each of which may be that.
_MOST_WRITTEN: Final = 8


@dataclass(frozen=True)
class Carried:
    """One carried value: its kind, how many elements of which type it has, and whether steps leave it as it is."""

    kind: Kind
    size: int
    dtype: DType
    is_fixed: bool


@dataclass(frozen=True)
class Row:
    """Where a load reads: from carried value `number`, `wide` for one element of each point."""

    number: int
    wide: bool


@dataclass(frozen=True, eq=False)
class Write:
    """Write `value` to carried value `number`, at element `start`, and for points at those that follow."""

    number: int
    start: Value
    value: Value
    wide: bool


@dataclass(eq=False)
class NativeLoop:
    """A loop, as expressions for one step of one point.

    `arguments` and `following` are the carried elements before and after a step; None for tables.  The loop goes
    on while `going` holds and, if there is one, `alive` holds for some point.  Where each mask of `done` has
    the truth that stands beside it, a step changes nothing of a point.
    """

    count: int
    carried: tuple[Carried, ...]
    values: Values
    point: Value
    arguments: list[Value | None]
    following: list[Value | None] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    going: Value | None = None
    alive: Value | None = None
    done: dict[Value, bool] = field(default_factory=dict)

    def roots(self) -> list[Value]:
        """Everything that a step computes."""
        roots = [value for value in (*self.following, self.going, self.alive) if value is not None]
        return roots + [each for write in self.writes for each in (write.start, write.value)]

    def cost(self) -> int:
        """The number of operations that a step takes for one point."""
        return len(in_order(*self.roots()))

    def varies(self, leaf: Value) -> bool:
        """Whether a value without operands differs from point to point."""
        return leaf is self.point or any(
            leaf is argument and carried.kind == "points"
            for argument, carried in zip(self.arguments, self.carried, strict=True)
        )

    def loaded_values(self) -> frozenset[int]:
        """The carried values that steps read at computed indices, which must lie in memory in full."""
        return frozenset(value.attribute.number for value in in_order(*self.roots()) if value.op == "load")

    def sizes(self) -> dict[int, int]:
        """The numbers of elements of carried values, by their indices."""
        return {k: each.size for k, each in enumerate(self.carried)}

    def scalars(self) -> list[int]:
        """The numbers of scalars that change."""
        return [k for k, each in enumerate(self.carried) if each.kind == "scalar" and not each.is_fixed]

    def points(self) -> list[int]:
        """The numbers of points that change."""
        return [k for k, each in enumerate(self.carried) if each.kind == "points" and not each.is_fixed]

    def numbers(self) -> dict[Value, int]:
        """The numbers of carried values, but for tables, by their arguments."""
        return {value: k for k, value in enumerate(self.arguments) if value is not None}

    def list_sources(self, roots: Sequence[Value], wanted: Sequence[int]) -> list[int]:
        """The carried values that a step, and those before it, compute `roots` and the carried values `wanted` of."""
        number_of, carried = self.numbers(), set(wanted)
        pending, new = [*roots], [*wanted]
        while new or pending:
            pending += [each for each in (self.following[k] for k in new) if each is not None]
            reached = {number_of[value] for value in in_order(*pending) if value in number_of}
            new, pending = sorted(reached - carried), []
            carried.update(new)
        return sorted(carried)

    def has_points(self) -> bool:
        """Whether steps change points, or write rows of them."""
        return bool(self.points()) or any(write.wide for write in self.writes)

    def describe(self) -> str:
        """Text that says what is carried, and how the loop ends."""
        scalars, points, tables = (
            sum(each.kind == kind for each in self.carried) for kind in ("scalar", "points", "table")
        )
        text = f"native loop: {scalars} scalars, {points} arrays of {self.count} points, {tables} tables"
        if self.alive is not None:
            return f"{text}, each until its mask is false"
        return f"{text}, each until no step changes it" if self.done else text

    def __str__(self) -> str:
        """The computation of one step for one point, as text."""
        names = {self.point: "point"} | {
            value: f"p{number}" for number, value in enumerate(self.arguments) if value is not None
        }
        lines = [f"{self.describe()}:"]
        for value in in_order(*self.roots()):
            if value in names:
                continue
            if value.op == "constant":
                names[value] = str(constant_of(value))
                continue
            names[value] = f"v{len(lines)}"
            operands = ", ".join(names[operand] for operand in value.operands)
            source = f" of p{value.attribute.number}" if value.op == "load" else ""
            lines.append(f"    {names[value]} = {value.op}{source}({operands})")
        for number, following in enumerate(self.following):
            if following is not None and not self.carried[number].is_fixed:
                lines.append(f"    p{number} = {names[following]}")
        for write in self.writes:
            lines.append(
                f"    p{write.number}[{names[write.start]}{' + point' if write.wide else ''}] = {names[write.value]}"
            )
        going = [] if self.going is None else [names[self.going]]
        alive = [f"any {names[self.alive]}"] if self.alive is not None else []
        return "\n".join([*lines, f"    while {' and '.join(going + alive)}"])


def native_loop(loop: ops.While, max_values: int, ranges: Sequence[Range | None] = ()) -> NativeLoop | None:
    """The loop turned inside out, which begins in these ranges; None if it is not of that kind."""
    try:
        native = _Reader(loop, ranges).read()
    except _Unfit:
        return None
    return native if native.cost() <= max_values else None


class _Unfit(Exception):
    """The loop is of another kind."""


class _Reader:
    def __init__(self, loop: ops.While, ranges: Sequence[Range | None]) -> None:
        self.loop = loop
        self.ranges = ranges
        self.values = Values()
        self.point = self.values.make("argument", (), INT64, "point", unique=True)
        self.known: dict[Node, Value] = {}
        #: The carried numbers of tables that are written, before and after each update.
        self._versions: dict[Node, int] = {}

    def read(self) -> NativeLoop:
        body = self.loop.body
        count, carried = self._classify_carries()
        native = NativeLoop(count, carried, self.values, self.point, [])
        self.native = native
        for number, each in enumerate(carried):
            name = f"p{number}"
            native.arguments.append(
                None if each.kind == "table" else self.values.argument(name, register_dtype(each.dtype))
            )
        for node, argument in zip(body.parameters, native.arguments, strict=True):
            if argument is not None:
                self.known[node] = argument
        self._check_tables()
        self._read_body()
        self._read_condition()
        self._prove_done()
        if not native.has_points():
            self._settle_conditions()
            self._compare_late_operands_last()
        return native

    # --- what is carried ---------------------------------------------------------------------------

    def _classify_carries(self) -> tuple[int, tuple[Carried, ...]]:
        """The number of points, and the carried values."""
        body = self.loop.body
        fixed = [new is old for old, new in zip(body.parameters, body.results, strict=True)]
        if not all(isinstance(node.type, TensorType) and not node.type.dynamic for node in body.parameters):
            raise _Unfit
        if all(fixed) or any(node.tensor_type.size == 0 for node in body.parameters):
            raise _Unfit
        # Of what is written, a row of points is, or one element.
        changing = [
            each.tensor_type.size
            for node, new, same in zip(body.parameters, body.results, fixed, strict=True)
            if not same
            for each in [update.operands[1] for update in _updates(node, new)] or [node]
        ]
        sizes = {size for size in changing if size != 1}
        if len(sizes) > 1:
            raise _Unfit
        count = max(sizes, default=1)
        carried = []
        for node, new, same in zip(body.parameters, body.results, fixed, strict=True):
            size = node.tensor_type.size
            kind: Kind = "scalar" if size == 1 else "points" if size == count else "table"
            if not same and _updates(node, new) and kind != "scalar":
                kind = "table"
            carried.append(Carried(kind, size, node.dtype, same))
        return count, tuple(carried)

    def _check_tables(self) -> None:
        """Refuse a table that is written and used otherwise too, since a later step might see it too early."""
        body = self.loop.body
        users: dict[Node, list[Node]] = {}
        for node in body.nodes:
            for operand in node.operands:
                users.setdefault(operand, []).append(node)
        for number, (old, new) in enumerate(zip(body.parameters, body.results, strict=True)):
            carried = self.native.carried[number]
            if carried.kind != "table" or carried.is_fixed:
                continue
            updates = _updates(old, new)
            wide = any(each.operands[1].tensor_type.size > 1 for each in updates)
            if (wide and len(updates) > 1) or body.results.count(new) > 1:
                raise _Unfit
            for before, update in zip((old, *updates), (*updates, None), strict=True):
                self._versions[before] = number
                if before is not new and before in body.results:
                    raise _Unfit
                for user in users.get(before, ()):
                    is_alike = user is update or self._is_alike(user, before, wide and before is old)
                    if not is_alike or user.operands.count(before) > 1:
                        raise _Unfit

    def _is_alike(self, user: Node, table: Node, wide: bool) -> bool:
        """Whether a node reads as much of a table as is written: a row by points or, by scalars, an element.

        One element, read and written by the scalars, must not be read by points as well.
        """
        if not isinstance(user.op, ops.DynamicSlice) or user.operands[0] is not table:
            return False
        return (user.tensor_type.size > 1) == wide and (wide or self.native.count == 1)

    # --- expressions -------------------------------------------------------------------------------

    def _read_body(self) -> None:
        native, body = self.native, self.loop.body
        for number, node in enumerate(body.results):
            carried = native.carried[number]
            if carried.kind == "table":
                native.following.append(None)
                if not carried.is_fixed:
                    updates = _updates(body.parameters[number], node)
                    native.writes += [self._write(number, update) for update in updates]
                continue
            value = self._element(node)
            if carried.kind == "scalar" and self._varies(value):
                raise _Unfit
            native.following.append(value)

    def _write(self, number: int, node: Node) -> Write:
        update = node.operands[1]
        wide = update.tensor_type.size > 1
        start = self._start(node.operands[0], update.shape, node.operands[2:])
        value = self._element(update)
        if update.tensor_type.size not in (1, self.native.count) or (not wide and self._varies(value)):
            raise _Unfit
        return Write(number, start, value, wide)

    def _element(self, node: Node) -> Value:
        """The element of each point of `node`."""

        def operands_of(node: Node) -> tuple[Node, ...]:
            if not isinstance(node.op, ops.DynamicSlice):
                return node.operands
            return (
                *node.operands[1:],
                *[each for update in self._updates_of(node) for each in update.operands[1:]],
            )

        return compute_operands_first(node, self.known, operands_of, self._compute)

    def _compute(self, node: Node) -> Value:
        op = node.op
        if not isinstance(node.type, TensorType) or node.tensor_type.size not in (1, self.native.count):
            raise _Unfit
        if isinstance(op, ops.DynamicSlice):
            return self._load(node)
        if isinstance(op, ops.Constant) and node.tensor_type.size == 1:
            return self.values.constant_of_bytes(op.raw, register_dtype(node.dtype))
        if isinstance(op, ops.BroadcastInDim | ops.Reshape):
            (operand,) = node.operands
            if operand.tensor_type.size in (1, node.tensor_type.size):
                return self.known[operand]
            raise _Unfit
        if op.moves or op.is_leaf or not computes(node):
            raise _Unfit
        operands = [self.known[operand] for operand in node.operands]
        value = apply_elementwise(op, [operand.dtype for operand in node.operands], operands)
        if value is None:
            raise _Unfit
        return value

    def _updates_of(self, read: Node) -> list[Node]:
        """The updates of this step in the table that a node reads."""
        source = read.operands[0]
        number = self._versions.get(source)
        return [] if number is None else _updates(self.loop.body.parameters[number], source)

    def _load(self, node: Node) -> Value:
        source, *starts = node.operands
        number = self._number_of(source)
        start = self._start(source, node.shape, starts)
        wide = node.tensor_type.size > 1
        operands = (start, self.point) if wide else (start,)
        value = self.values.make("load", operands, register_dtype(node.dtype), Row(number, wide))
        updates = self._updates_of(node)
        if len(updates) > _MOST_WRITTEN:
            raise _Unfit
        # Elements that this step has written are not in memory yet.
        for update in updates:
            array, new, *rest = update.operands
            written = self._start(array, new.shape, rest)
            value = (
                self._element(new)
                if written is start
                else written.eq(start).select(self._element(new), value)
            )
        return value

    def _number_of(self, source: Node) -> int:
        """The carried value that a part is read of."""
        if source in self._versions:
            return self._versions[source]
        for graph in (self.loop.body, self.loop.cond):
            if source in graph.parameters:
                number = graph.parameters.index(source)
                if self.native.carried[number].is_fixed:
                    return number
        raise _Unfit

    def _start(self, array: Node, sizes: Sequence[int], starts: Iterable[Node]) -> Value:
        """Where the part begins in row-major order; the part must lie there in one piece."""
        shape = array.shape
        inner = next((axis for axis, size in enumerate(sizes) if size != 1), len(sizes))
        if tuple(sizes[inner:]) != shape[inner:]:
            raise _Unfit
        total = self.values.constant(0, INT64)
        rows = list(zip(starts, shape, strides(shape), strict=True))[:inner]
        for start, whole, stride in rows:
            value = self._element(start)
            if self._varies(value):
                raise _Unfit
            if whole > 1:
                total = total + clamp_index(value, whole - 1) * stride
        return total

    def _varies(self, value: Value) -> bool:
        return any(not each.operands and self.native.varies(each) for each in in_order(value))

    def _settle_conditions(self) -> None:
        """Leave out of a step, which runs where the loop goes on, what its range decides, as clamps of counters."""
        native = self.native
        if not any(self.ranges):
            return
        inside = GraphRanges(lambda node, range_of: None).inside_loop(self.loop, self.ranges)
        values = in_order(*native.roots())
        loads = {value: inside[value.attribute.number] for value in values if value.op == "load"}
        held = zip(native.arguments, inside, strict=True)
        known = {value: range_ for value, range_ in (*held, *loads.items()) if value and range_}
        ranges = Ranges(dict(known))
        native.following = [value and simplify(value, ranges) for value in native.following]
        native.writes = [
            replace(each, start=simplify(each.start, ranges), value=simplify(each.value, ranges))
            for each in native.writes
        ]

    def _compare_late_operands_last(self) -> None:
        """Let minima and maxima wait for the last step as late as can be."""
        native = self.native
        pairs = [(native.arguments[number], native.following[number]) for number in native.scalars()]
        carried = {old: new for old, new in pairs if old is not None and new is not None}
        new = compare_late_operands_last(native.roots(), carried)
        if new is not None:
            native.following = [value and new[value] for value in native.following]
            native.going, native.alive = (value and new[value] for value in (native.going, native.alive))
            native.writes = [
                replace(write, start=new[write.start], value=new[write.value]) for write in native.writes
            ]

    # --- the end of the loop -----------------------------------------------------------------------

    def _read_condition(self) -> None:
        cond, native = self.loop.cond, self.native
        for node, argument in zip(cond.parameters, native.arguments, strict=True):
            if argument is not None:
                self.known[node] = argument
        native.going = self.values.constant(True, BOOL)
        for term in _terms(cond.results[0]):
            mask = _any_of(term)
            if mask is None:
                value = self._element(term)
                if self._varies(value):
                    raise _Unfit
                native.going = native.going & value if native.going.op != "constant" else value
            elif native.alive is None:
                native.alive = self._element(mask)
            else:
                raise _Unfit
        if native.alive is not None and not self._varies(native.alive):
            native.going, native.alive = native.going & native.alive, None

    def _prove_done(self) -> None:
        """Prove that a step leaves points alone whose masks are false."""
        native = self.native
        if native.alive is not None:
            native.done = {native.alive: False}
            if not self._is_lasting(native.alive) or not self._changes_nothing():
                raise _Unfit
            return
        native.done = dict(self._masks())
        if native.done and not self._changes_nothing():
            native.done = {}

    def _changes_nothing(self) -> bool:
        native = self.native
        if any(write.wide for write in native.writes):
            return False
        pairs = [(native.arguments[number], native.following[number]) for number in native.points()]
        return all(new is not None and with_truths(new, native.done) is old for old, new in pairs)

    def _masks(self) -> Iterable[tuple[Value, bool]]:
        """The conditions by which points keep what they have, and the truth with which they keep it."""
        native = self.native
        arguments = set(native.arguments)
        for argument in native.arguments:
            if argument is not None and argument.dtype.kind == "c":
                arguments.update((argument.real(), argument.imag()))
        following = [native.following[number] for number in native.points()]
        for value in in_order(*[value for value in following if value is not None]):
            if value.op == "select":
                mask, on_true, on_false = value.operands
                keeps_false, keeps_true = on_false in arguments, on_true in arguments
                if keeps_false != keeps_true and self._is_lasting(mask):
                    yield mask, keeps_true
            elif (
                value.op == "convert"
                and value.operands[0].dtype == BOOL
                and self._is_lasting(value.operands[0])
            ):
                yield value.operands[0], False

    def _is_lasting(self, mask: Value) -> bool:
        """Whether a mask stays what it is as long as the point does: it depends on nothing else that changes."""
        if not self._varies(mask):
            return False
        changing = {self.native.arguments[number] for number in self.native.scalars()}
        written = {write.number for write in self.native.writes}
        for each in in_order(mask):
            if each in changing or (each.op == "load" and each.attribute.number in written):
                return False
        return True


def _updates(old: Node, new: Node) -> list[Node]:
    """The updates of a carried array in each step, one part after the other; none if it is no such array."""
    updates = []
    while isinstance(new.op, ops.DynamicUpdateSlice) and new.shape and new is not old:
        updates.append(new)
        new = new.operands[0]
    return updates[::-1] if new is old else []


def _terms(node: Node) -> list[Node]:
    """The conditions that all have to hold."""
    if isinstance(node.op, ops.And):
        return [term for operand in node.operands for term in _terms(operand)]
    if isinstance(node.op, ops.Reshape) and node.operands[0].tensor_type.size == 1:
        return _terms(node.operands[0])
    return [node]


def _any_of(node: Node) -> Node | None:
    """The mask of which `node` tells whether it is true anywhere."""
    if (
        not isinstance(node.op, ops.Reduce)
        or monoids(node.op.computation) != (ops.Or,)
        or len(node.operands) != 2
    ):
        return None
    mask, first = node.operands
    is_whole = prod(node.shape) == 1 and isinstance(first.op, ops.Constant) and not any(first.op.raw)
    return mask if is_whole and mask.dtype == BOOL else None
