"""From a group of fused operations to functions that compute one tile each.

A group is computed in steps.  Each step is

    def once0(in0, ...):                    what all tiles share
        once0 = ...
        return (once0, ...)
    def tile0(part, s0, s1, in1, once0, out0, b0, ...):   ranges of the domain, arrays, room to work in
        x0 = in1[s0]
        np.exp(x0, out=b0)
        ...

There is one step, or where tiles leave partial results one more for each reduction that must be finished
before the next can begin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np

from xarr.compiler.groups import CHEAP, MOVES
from xarr.dtypes import COMPLEX, EXTENDED_FLOAT, FLOAT
from xarr.ir import ops
from xarr.ir.op import Op
from xarr_numpy import tile_kernels
from xarr_numpy.kernels import NARROW
from xarr_numpy.program import Emitter
from xarr_numpy.reductions import ufunc_of
from xarr_numpy.table import SCOPE, TABLE
from xarr_numpy.tile_kernels import BITS
from xarr_numpy.tile_values import Axes, DType, Ints, Value, Values


@dataclass(frozen=True)
class Room:
    """A buffer of a tile: the memory it lies in, what it holds, how it runs along the domain."""

    name: str
    slot: int
    dtype: DType
    axes: Axes


@dataclass
class Rooms:
    """Buffers, whose memory is used again within a tile as soon as nothing needs it."""

    chunks: Ints
    sizes: list[int] = field(default_factory=list)
    rooms: dict[tuple[int, DType, Axes], Room] = field(default_factory=dict)
    _free: dict[int, list[int]] = field(default_factory=dict)

    def take(self, dtype: DType, axes: Axes) -> Room:
        nbytes = dtype.itemsize * prod(self.chunks[axis] for axis in axes)
        free = self._free.get(nbytes)
        slot = free.pop() if free else len(self.sizes)
        if slot == len(self.sizes):
            self.sizes.append(nbytes)
        return self.rooms.setdefault((slot, dtype, axes), Room(f"b{len(self.rooms)}", slot, dtype, axes))

    def give(self, room: Room) -> None:
        self._free.setdefault(self.sizes[room.slot], []).append(room.slot)


@dataclass(frozen=True)
class Total:
    """A reduction that tiles leave partial results of, and what its initial value is called."""

    value: Value
    name: str
    initial: str


@dataclass(frozen=True)
class Step:
    """One pass over the tiles; its functions are called with the arrays that they name."""

    once: str | None
    once_arguments: tuple[str, ...]
    once_results: tuple[str, ...]
    tile: str | None
    tile_arguments: tuple[str, ...]
    totals: tuple[Total, ...]
    #: What later steps need again, whole.
    kept: tuple[tuple[str, DType], ...]
    rooms: tuple[Room, ...]
    sizes: tuple[int, ...]


class Writer:
    """Writes the functions of a group."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.emitter = Emitter(values.graph, name="tile")
        #: What whole arrays are called: arguments, constants, and what reductions gave.
        self.whole: dict[Value, str] = {value: f"in{k}" for k, value in enumerate(values.inputs)}
        self.text: list[str] = []
        self.steps = list(self._steps())
        self.scope: dict[str, Any] = {**SCOPE, **tile_kernels.SCOPE, **self.emitter.scope}
        exec(compile("\n".join(self.text), "<xarr tiles>", "exec"), self.scope)

    def _steps(self) -> Iterator[Step]:
        values = self.values
        last = max((value.stage for value in values.every), default=0)
        rest = dict(enumerate(values.outputs))
        for stage in range(1, last + 1 if values.grid.partial else 1):
            found = [v for v in values.every if v.is_reduction and v.stage == stage]
            now = {k: v for k, v in rest.items() if v.stage == stage - 1 and v.axes & values.reduced}
            rest = {k: v for k, v in rest.items() if k not in now}
            yield StepWriter(self, stage - 1, found, now).step()
        if rest:
            yield StepWriter(self, last, [], rest).step()

    def constant(self, value: Value) -> str:
        """A name for a value that is known."""
        op = value.node.op
        array = op.array.reshape(()) if isinstance(op, ops.Constant) else np.zeros((), value.dtype)
        name = self.emitter.constant(array, "number")
        self.text.append(f"# {name} = {value.dtype} {array}")
        return name


#: An expression that is one call of a ufunc, which can be told where to write; one that converts.
_CALL: Final = re.compile(r"np\.(\w+)\(([\w, ]+)\)")
_CONVERSION: Final = re.compile(r"(\w+)\.astype\(\w+\)")


class StepWriter:
    """Writes the functions of one step, which computes partial reductions and results."""

    def __init__(
        self, writer: Writer, number: int, reductions: list[Value], outputs: dict[int, Value]
    ) -> None:
        self.writer = writer
        self.values = writer.values
        self.grid = writer.values.grid
        self.number = number
        self.reductions = reductions
        self.outputs = {value: k for k, value in outputs.items()}
        self.rooms = Rooms(self.grid.chunks)
        self.last: dict[Value, Value] = {}
        # In `once`: what values are called, what it needs.
        self.known: dict[Value, str] = {}
        self.once_body: list[str] = []
        self.once_arguments: dict[str, None] = {}
        # In `tile`: what values are called, which lie in a buffer, what it needs.
        self.names: dict[Value, str] = {}
        self.held: dict[Value, Room] = {}
        self.header: list[str] = []
        self.body: list[str] = []
        self.arguments: dict[str, None] = {}
        #: Values that later steps need again, and the arrays that keep them.
        self.kept: dict[Value, str] = {}

    def step(self) -> Step:
        in_tile, at_once = self._wanted()
        self._keep(in_tile)
        for value in at_once:
            self._write_once(value)
        self.last = {operand: value for value in in_tile if not value.once for operand in value.operands}
        for value in in_tile:
            if value.once or value in self.writer.whole:
                self._enter(value)
            else:
                self._write(value)
            self._leave(value)
            self._release(value)
        return self._step(in_tile)

    def _step(self, in_tile: list[Value]) -> Step:
        text, number = self.writer.text, self.number
        totals = tuple(
            Total(v, f"total{number}_{k}", self.known[v.operands[1]]) for k, v in enumerate(self.reductions)
        )
        self.writer.whole.update((total.value, total.name) for total in totals)
        self.writer.whole.update(self.kept)
        used = [self.known[value] for value in in_tile if value.once] + [total.initial for total in totals]
        results = tuple(name for name in dict.fromkeys(used) if name.startswith("once"))
        if self.once_body:
            text.append(f"def share{number}({', '.join(self.once_arguments)}):")
            text.extend(f"    {line}" for line in self.once_body)
            text.append(f"    return ({''.join(f'{name}, ' for name in results)})")
        rooms = tuple(self.rooms.rooms.values())
        if self.body:
            ranges = [f"s{axis}" for axis in range(len(self.grid.domain))]
            names = ["part", *ranges, *self.arguments, *[room.name for room in rooms]]
            text.append(f"def tile{number}({', '.join(names)}):")
            text.extend(f"    {line}" for line in (*self.header, *self.body))
        return Step(
            f"share{number}" if self.once_body else None,
            tuple(self.once_arguments),
            results,
            f"tile{number}" if self.body else None,
            tuple(self.arguments),
            totals,
            tuple((name, value.dtype) for value, name in self.kept.items() if name.startswith("kept")),
            rooms,
            tuple(self.rooms.sizes),
        )

    # --- what is needed --------------------------------------------------------------------------------

    def _is_whole(self, value: Value) -> bool:
        """Whether a result is computed for all tiles at once."""
        return value.once or (self.grid.partial and not value.axes & self.values.reduced)

    def _wanted(self) -> tuple[list[Value], list[Value]]:
        """Values that tiles need, and values that are needed whole."""
        tile = {value.operands[0] for value in self.reductions}
        whole = {value.operands[1] for value in self.reductions}
        for value in self.outputs:
            (whole if self._is_whole(value) else tile).add(value)
        for value in reversed(self.values.every):
            if value in tile and value.once:
                whole.add(value)
            elif value in tile and value not in self.writer.whole:
                tile.update(value.operands)
            if value in whole and value not in self.writer.whole:
                whole.update(value.operands)
        every = self.values.every
        return [value for value in every if value in tile], [value for value in every if value in whole]

    def _keep(self, in_tile: list[Value]) -> None:
        """Find what later steps need again: results of this one, and what would take long to compute."""
        costly: set[Value] = set()
        for value in in_tile:
            known = value.once or value in self.writer.whole
            if known or not (
                costly.intersection(value.operands) or not isinstance(value.node.op, (*CHEAP, *MOVES))
            ):
                continue
            costly.add(value)
        for value in in_tile:
            later = any(
                user.stage > self.number + isinstance(user.node.op, ops.Reduce)
                for user in self.values.users.get(value, ())
            )
            if later and not value.once and value.axes == self.values.large:
                if value in self.outputs:
                    self.kept[value] = f"out{self.outputs[value]}"
                elif value in costly:
                    self.kept[value] = f"kept{self.number}_{len(self.kept)}"

    # --- once ------------------------------------------------------------------------------------------

    def _write_once(self, value: Value) -> None:
        name = self.known[value] = self._known_name(value)
        if not name.startswith(("number", "once")):
            self.once_arguments[name] = None
        if value in self.outputs and self._is_whole(value):
            target = f"out{self.outputs[value]}"
            self.once_arguments[target] = None
            self.once_body.append(f"np.copyto({target}, {name})")

    def _known_name(self, value: Value) -> str:
        whole = self.writer.whole
        op = value.node.op
        if value not in whole and (
            isinstance(op, ops.Constant) or (isinstance(op, ops.Iota) and not value.axes)
        ):
            whole[value] = self.writer.constant(value)
        if value in whole:
            return whole[value]
        name = f"once{self.number}_{len(self.known)}"
        self.once_body.append(f"{name} = {self._once_expression(value)}")
        return name

    def _once_expression(self, value: Value) -> str:
        op = value.node.op
        if isinstance(op, ops.Iota):
            (axis,) = value.axes
            return f"iota({self.grid.domain}, {axis}, {self.writer.emitter.constant(value.dtype)})"
        names = [self.known[operand] for operand in value.operands]
        if isinstance(op, ops.Reduce):
            axes = value.operands[0].axes | self.values.reduced
            shape = tuple(size if axis in axes else 1 for axis, size in enumerate(self.grid.domain))
            return f"reduced({_ufunc(op)}, np.broadcast_to({names[0]}, {shape}), {names[1]}, {op.dimensions})"
        return self._expression(value, names)

    def _expression(self, value: Value, names: list[str]) -> str:
        """What the program without fusion would compute."""
        node, emitter = value.node, self.writer.emitter
        if isinstance(node.op, ops.Power) and node.dtype in (np.float32, np.float64):
            exponent = constant_of(value.operands[1])
            # `power` looks for a single exponent of 0.5, which must be one in the whole and not in a tile.
            if value.operands[1].axes or (exponent is not None and exponent != 0.5):
                return f"np.power({', '.join(names)})"
        emitter.names.update(zip(node.operands, names, strict=True))
        return TABLE[type(node.op)](emitter, node)

    # --- tiles -----------------------------------------------------------------------------------------

    def _enter(self, value: Value) -> None:
        """The part of a whole array that a tile needs."""
        name = self.known[value] if value.once else self.writer.whole[value]
        if not name.startswith("number"):
            self.arguments[name] = None
        self.names[value] = self._cut(name, value.axes, f"x{len(self.names)}")
        if self.grid.first in value.axes:
            # NumPy takes the order of its loops from all arrays.
            room = self.rooms.take(value.dtype, value.axes)
            self.body.append(f"np.copyto({room.name}, {self.names[value]})")
            self.names[value], self.held[value] = room.name, room

    def _cut(self, name: str, axes: Iterable[int], local: str, first: tuple[str, ...] = ()) -> str:
        cut = self.grid.cut & frozenset(axes)
        if not cut and not first:
            return name
        index = [f"s{axis}" if axis in cut else ":" for axis in range(max(cut, default=-1) + 1)]
        self.header.append(f"{local} = {name}[{', '.join([*first, *index])}]")
        return local

    def _write(self, value: Value) -> None:
        if isinstance(value.node.op, ops.Reduce):
            self.names[value] = self._reduction(value, value.node.op)
            return
        names = [self.names[operand] for operand in value.operands]
        lines = SPECIAL.get(type(value.node.op))
        writes = lines(self, value) if lines else None
        if writes is None:
            writes = self._plain(value, names)
        target = self._target(value) or self._room_for(value, isinstance(writes, _InPlace))
        self.names[value] = target
        taken: list[Room] = []

        def room(dtype: Any, axes: Axes) -> str:
            taken.append(self.rooms.take(np.dtype(dtype), axes))
            return taken[-1].name

        self.body.extend(writes(target, names, room))
        for each in taken:
            self.rooms.give(each)

    def _plain(self, value: Value, names: list[str]) -> Lines:
        op = value.node.op
        if isinstance(op, ops.Iota):
            (axis,) = value.axes
            dtype = self.writer.emitter.constant(value.dtype)
            expression = f"counted(s{axis}, {dtype}, {axis}, {len(self.grid.domain)})"
        else:
            expression = self._expression(value, names)
        call = _CALL.fullmatch(expression)
        if call is not None and isinstance(getattr(np, call[1]), np.ufunc):
            return _InPlace(f"np.{call[1]}({call[2]}, out={{}})")
        conversion = _CONVERSION.fullmatch(expression)
        if conversion is not None:
            return lambda out, names, room: [f"np.copyto({out}, {conversion[1]}, casting='unsafe')"]
        return lambda out, names, room: [f"np.copyto({out}, {expression})"]

    def _room_for(self, value: Value, in_place: bool) -> str:
        """A buffer, maybe that of an operand which nothing else needs."""
        room: Room | None = None
        for operand in value.operands if in_place else ():
            held = self.held.get(operand)
            if held and self.last[operand] is value and (held.dtype, held.axes) == (value.dtype, value.axes):
                room = self.held.pop(operand)
                break
        room = room or self.rooms.take(value.dtype, value.axes)
        self.held[value] = room
        return room.name

    def _target(self, value: Value) -> str | None:
        """The tile's part of a result that can be computed where it belongs."""
        number = self.outputs.get(value)
        if number is not None and not self._is_whole(value) and value.axes == self._result_axes(number):
            return self._result(number)
        kept = self.kept.get(value, "")
        if not kept.startswith("kept"):
            return None
        self.arguments[kept] = None
        return self._cut(kept, value.axes, f"y{kept[4:]}")

    def _result_axes(self, number: int) -> Axes:
        return frozenset(axis for axis, size in enumerate(self.values.own_shape(number)) if size != 1)

    def _result(self, number: int) -> str:
        self.arguments[f"out{number}"] = None
        return self._cut(f"out{number}", self._result_axes(number), f"y{number}")

    def _reduction(self, value: Value, op: ops.Reduce) -> str:
        with_all, room = self._whole_term(value.operands[0])
        call = f"reduced({_ufunc(op)}, {with_all}, {self.names[value.operands[1]]}, {op.dimensions})"
        if room:
            self.rooms.give(room)
        target = self._target(value)
        name = target or f"r{len(self.names)}"
        self.body.append(f"np.copyto({name}, {call})" if target else f"{name} = {call}")
        return name

    def _whole_term(self, term: Value) -> tuple[str, Room | None]:
        """The operand of a reduction, repeated along the reduced dimensions where it does not vary."""
        if self.values.reduced <= term.axes:
            return self.names[term], None
        room = self.rooms.take(term.dtype, term.axes | self.values.reduced)
        self.body.append(f"np.copyto({room.name}, {self.names[term]})")
        return room.name, room

    def _leave(self, value: Value) -> None:
        """What outlives the tile."""
        number = self.outputs.get(value)
        if number is not None and not self._is_whole(value) and value.axes != self._result_axes(number):
            self.body.append(f"np.copyto({self._result(number)}, {self.names[value]})")
        for k, reduction in enumerate(self.reductions):
            if reduction.operands[0] is value:
                self._write_partial(k, reduction)

    def _write_partial(self, number: int, value: Value) -> None:
        op = value.node.op
        assert isinstance(op, ops.Reduce)
        with_all, room = self._whole_term(value.operands[0])
        self.arguments[f"part{number}"] = None
        target = self._cut(f"part{number}", value.axes, f"p{number}", ("part",))
        self.body.append(f"np.copyto({target}, combined({_ufunc(op)}, {with_all}, {op.dimensions}))")
        if room:
            self.rooms.give(room)

    def _release(self, value: Value) -> None:
        """Give back the buffers that nothing needs any more."""
        done = [operand for operand in dict.fromkeys(value.operands) if self.last.get(operand) is value]
        for each in done if value in self.last else [*done, value]:
            if each in self.held:
                self.rooms.give(self.held.pop(each))


def _ufunc(op: ops.Reduce) -> str:
    found = ufunc_of(op.computation)
    assert found is not None, "the fusing stage takes only reductions by a ufunc"
    return found


def constant_of(value: Value) -> float | None:
    """The number of a real constant."""
    op = value.node.op
    if not isinstance(op, ops.Constant) or value.dtype in COMPLEX:
        return None
    return float(op.array.reshape(()))


# --- operations of several lines -----------------------------------------------------------------------------

#: The lines that compute a value: from its name, those of its operands, and a source of further buffers.
Lines = Callable[[str, list[str], Callable[[Any, Axes], str]], list[str]]


@dataclass(frozen=True)
class _InPlace:
    """One call that may write into an operand."""

    template: str

    def __call__(self, out: str, names: list[str], room: Callable[[Any, Axes], str]) -> list[str]:
        return [self.template.format(out)]


def _select(step: StepWriter, value: Value) -> Lines | None:
    kind = BITS.get(value.dtype.itemsize)
    axes = value.operands[0].axes
    if kind is None:
        return None
    return lambda out, names, room: [
        f"select_into({', '.join(names)}, {out}, {room(np.int8, axes)}, {room(kind, axes)})"
    ]


def _extremum(step: StepWriter, value: Value) -> Lines | None:
    if value.dtype not in FLOAT:
        return None
    name = "maximum" if isinstance(value.node.op, ops.Maximum) else "minimum"
    x, y = value.operands
    return lambda out, names, room: _larger(name, value, (x, y), names, out, room)


def _larger(
    name: str,
    value: Value,
    operands: tuple[Value, Value],
    names: list[str],
    out: str,
    room: Callable[[Any, Axes], str],
) -> list[str]:
    """The maximum or minimum; constants make it simpler, as they leave less to say about zeros."""
    numbers = [number for number in map(constant_of, operands) if number is not None]
    call = f"np.{name}({', '.join(names)}, out={out})"
    if any(number != 0 for number in numbers):
        return [call]
    if (
        name == "maximum"
        and any(not np.signbit(number) for number in numbers)
        and value.dtype not in EXTENDED_FLOAT
    ):
        # Never -0, and 0.0 + -0.0 is 0.0.
        return [call, f"np.add({out}, {out}.dtype.type(0), out={out})"]
    return [f"{name}_into({', '.join(names)}, {out}, {room(np.bool_, value.axes)})"]


def _clamp(step: StepWriter, value: Value) -> Lines | None:
    if value.dtype not in FLOAT:
        return None
    low, x, high = value.operands

    def lines(out: str, names: list[str], room: Callable[[Any, Axes], str]) -> list[str]:
        between = room(value.dtype, value.axes)
        first = _larger("maximum", value, (x, low), [names[1], names[0]], between, room)
        return first + _larger("minimum", value, (value, high), [between, names[2]], out, room)

    return lines


def _rsqrt(step: StepWriter, value: Value) -> Lines | None:
    if value.dtype not in FLOAT - NARROW:
        return None
    return lambda out, names, room: [f"np.sqrt({names[0]}, out={out})", f"np.reciprocal({out}, out={out})"]


def _logistic(step: StepWriter, value: Value) -> Lines | None:
    if value.dtype not in FLOAT - NARROW:
        return None
    kinds = (value.dtype, np.bool_, np.int8, BITS[value.dtype.itemsize])
    return lambda out, names, room: [
        f"logistic_into({names[0]}, {out}, {', '.join(room(kind, value.axes) for kind in kinds)})"
    ]


def _power(step: StepWriter, value: Value) -> Lines | None:
    """NumPy takes square roots and squares where there is one exponent, which must not depend on tiles."""
    exponent = value.operands[1]
    if value.dtype not in (np.float32, np.float64) or exponent.axes in (frozenset(), value.axes):
        return None

    def lines(out: str, names: list[str], room: Callable[[Any, Axes], str]) -> list[str]:
        each = room(value.dtype, value.axes)
        return [f"np.copyto({each}, {names[1]})", f"np.power({names[0]}, {each}, out={out})"]

    return lines


SPECIAL: Final[dict[type[Op], Callable[[StepWriter, Value], Lines | None]]] = {
    ops.Clamp: _clamp,
    ops.Logistic: _logistic,
    ops.Maximum: _extremum,
    ops.Minimum: _extremum,
    ops.Power: _power,
    ops.Rsqrt: _rsqrt,
    ops.Select: _select,
}
