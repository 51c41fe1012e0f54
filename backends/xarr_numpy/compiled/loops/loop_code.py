"""Native loops as LLVM IR: a function that runs the scalars of a loop, and one that runs its points.

    i64 scalars(ptr buffers, i64 most, i64 write)     takes up to `most` steps; how many it took
    void points(ptr buffers, i64 begin, i64 end)      takes the steps of the points of these tiles

`buffers` holds for each carried value where it lies before the steps, then for each where it lies after them,
then the steps in memory from one point to the next (0 for what all points share), then the `Control`.
"""

from __future__ import annotations

from collections.abc import Iterable

from xarr.compiler.loop_ir.scalars import BOOL, INT64, Value, in_order
from xarr.compiler.while_loops.native_loops import NativeLoop, Write
from xarr_numpy.compiled.codegen.emitter import Functions
from xarr_numpy.compiled.codegen.gathers import Gathers
from xarr_numpy.compiled.codegen.instructions import (
    ATTRIBUTES,
    Block,
    alignment,
    mask_type,
    memory_type,
    numbers_of,
    register_type,
)
from xarr_numpy.compiled.codegen.registers import order_of
from xarr_numpy.processor import PROCESSOR

#: Indices in the control array: the steps to take, whether more will follow, the steps of the longest point;
#: after them for each carried value whether it is wanted.
STEPS, MORE, LONGEST, WANTED = range(4)


def width_of(loop: NativeLoop) -> int:
    """Points of a tile: as many registers of the widest elements as can be held at once."""
    roots = loop.roots()
    used = [value for value in in_order(*roots) if value.dtype != INT64 or value in loop.arguments]
    width = PROCESSOR.register_bytes // max([4, *(alignment(value.dtype) for value in used)])
    held = sum(numbers_of(each.dtype) for each in loop.carried if each.kind == "points")
    most = PROCESSOR.max_early_exit_registers if loop.done else PROCESSOR.max_value_registers
    unrolled = max(1, min(most, PROCESSOR.max_tile_registers // max(1, held)))
    return width * (1 << (unrolled.bit_length() - 1))


def emit(loop: NativeLoop) -> str:
    """The module of a loop: `points` only if it has some."""
    functions = Functions()
    add_functions(functions, loop)
    return functions.module()


def add_functions(functions: Functions, loop: NativeLoop, prefix: str = "") -> None:
    """Write the functions of a loop to a module; their names begin with `prefix`."""
    writers: list[_Scalars | _Points] = [_Scalars(loop), *([_Points(loop)] if loop.has_points() else [])]
    for writer in writers:
        functions.texts.append(writer.text(prefix))
        functions.declarations |= writer.declarations
        functions.helpers |= writer.helpers


class _FunctionWriter(Gathers):
    """The lines of one function, and how carried values are read and written in it."""

    def __init__(self, loop: NativeLoop, width: int) -> None:
        self.loop = loop
        self.width = width
        super().__init__(Block(width, loop.varies, prefix="v"))
        self._pointers: dict[int, str] = {}

    def pointer(self, slot: int) -> str:
        """The pointer in a slot of `buffers`; loaded in the entry."""
        return self._pointers[slot]

    def load_pointers(self) -> None:
        for slot in range(2 * len(self.loop.carried) + 2):
            where = self.line(f"getelementptr ptr, ptr %buffers, i64 {slot}")
            self._pointers[slot] = self.line(f"load ptr, ptr {where}, align 8")

    def input_pointer(self, number: int) -> str:
        return self.pointer(number)

    def output_pointer(self, number: int) -> str:
        return self.pointer(len(self.loop.carried) + number)

    def control(self, number: int) -> str:
        """A number of the control array."""
        control = self.pointer(2 * len(self.loop.carried) + 1)
        where = self.line(f"getelementptr i64, ptr {control}, i64 {number}")
        return self.line(f"load i64, ptr {where}, align 8")

    # --- expressions -------------------------------------------------------------------------------

    def compute(self, roots: Iterable[Value]) -> None:
        """Give `roots` registers."""
        for value in order_of(roots, self.block.names):
            if value is self.loop.point:
                continue
            if value.op == "load":
                self.block.names[value] = self._row(value)
            else:
                self.block.emit([value])
        self.flush()

    def _row(self, value: Value) -> str:
        row = value.attribute
        carried = self.loop.carried[row.number]
        pointer = self.input_pointer(row.number) if carried.is_fixed else self.output_pointer(row.number)
        start = self.block.operand(value.operands[0], 1)
        address = self.line(f"getelementptr {memory_type(value.dtype)}, ptr {pointer}, i64 {start}")
        if not row.wide:
            return self.load_one(value, address)
        return self.load_lanes(
            value, self.line(f"getelementptr {memory_type(value.dtype)}, ptr {address}, i64 %base")
        )

    def load_one(self, value: Value, address: str) -> str:
        element = self.line(f"load {memory_type(value.dtype)}, ptr {address}, align {alignment(value.dtype)}")
        return self.line(f"icmp ne i8 {element}, 0") if value.dtype == BOOL else element

    def load_lanes(self, value: Value, address: str) -> str:
        """One element for each point of the tile."""
        loaded = self.load_masked(value.dtype, address, "%mask")
        self.flush()
        if value.dtype != BOOL:
            return loaded
        return self.line(f"icmp ne {memory_type(BOOL, self.width)} {loaded}, zeroinitializer")

    def store_one(self, value: Value, register: str, address: str) -> None:
        kind = memory_type(value.dtype)
        if value.dtype == BOOL:
            register = self.line(f"zext i1 {register} to i8")
        self.write(f"store {kind} {register}, ptr {address}, align {alignment(value.dtype)}")

    def store_lanes(self, value: Value, register: str, address: str) -> None:
        if value.dtype == BOOL:
            kind, lanes = memory_type(BOOL, self.width), mask_type(BOOL, self.width)
            register = self.line(f"zext {lanes} {register} to {kind}")
        self.store_masked(value.dtype, register, address, "%mask")

    def address(self, pointer: str, value: Value, offset: str) -> str:
        return self.line(f"getelementptr {memory_type(value.dtype)}, ptr {pointer}, i64 {offset}")

    # --- control flow ------------------------------------------------------------------------------

    def label(self, name: str) -> None:
        self.flush()
        self.lines.append(f"{name}:")

    def argument(self, number: int) -> Value:
        argument = self.loop.arguments[number]
        assert argument is not None, "a table has no single element"
        return argument

    def following(self, number: int) -> Value:
        following = self.loop.following[number]
        assert following is not None, "a table has no single element"
        return following

    def read_fixed(self, scalars_only: bool) -> None:
        """Registers for what no step changes."""
        used = set(in_order(*self.loop.roots()))
        for number, carried in enumerate(self.loop.carried):
            argument = self.loop.arguments[number]
            if not carried.is_fixed or argument is None or argument not in used:
                continue
            if carried.kind == "scalar":
                self.block.names[argument] = self.load_one(argument, self.input_pointer(number))
            elif not scalars_only:
                self.block.names[argument] = self.read_points(number)

    def read_points(self, number: int) -> str:
        """The elements of a tile, or the one that all points share, before the steps."""
        steps = self.pointer(2 * len(self.loop.carried))
        where = self.line(f"getelementptr i64, ptr {steps}, i64 {number}")
        step = self.line(f"load i64, ptr {where}, align 8")
        first = self.line(f"mul i64 %base, {step}")
        argument = self.argument(number)
        return self.load_lanes(argument, self.address(self.input_pointer(number), argument, first))

    def phis(self, numbers: Iterable[int], first: dict[int, str], before: str, last: str) -> list[str]:
        """Lines of the registers of carried values, which change from step to step."""
        lines = []
        for number in numbers:
            argument = self.argument(number)
            width = self.block.width_of(argument)
            kind = register_type(argument.dtype, width)
            following = self.block.operand(self.following(number), width)
            lines.append(f"%p{number} = phi {kind} [ {first[number]}, %{before} ], [ {following}, %{last} ]")
        self.flush()
        return lines

    def function_text(self, head: str) -> str:
        self.flush()
        body = "\n".join(line if line.endswith(":") else f"  {line}" for line in self.lines)
        return f"define {head} {ATTRIBUTES} {{\nentry:\n{body}\n}}"


class _Scalars(_FunctionWriter):
    """The function of the scalars."""

    def __init__(self, loop: NativeLoop) -> None:
        super().__init__(loop, 1)

    def text(self, prefix: str = "") -> str:
        loop = self.loop
        numbers = loop.scalars()
        self.load_pointers()
        self.read_fixed(scalars_only=True)
        first = {
            number: self.load_one(self.argument(number), self.input_pointer(number)) for number in numbers
        }
        self.write("%writes = icmp ne i64 %write, 0")
        self.write("br label %head")
        self.label("head")
        self.block.names.update({self.argument(number): f"%p{number}" for number in numbers})
        begin = len(self.lines)
        assert loop.going is not None
        outside = self.inner()
        self.compute([loop.going])
        self.write("%less = icmp slt i64 %n, %most")
        going = self.line(f"and i1 %less, {self.block.operand(loop.going, 1)}")
        self.write(f"br i1 {going}, label %body, label %done")
        self.label("body")
        writes = [write for write in loop.writes if not write.wide]
        self.compute(
            [
                *[self.following(number) for number in numbers],
                *[each for write in writes for each in (write.start, write.value)],
            ]
        )
        self._store_writes(writes)
        self.write("%n1 = add nsw i64 %n, 1")
        phis = ["%n = phi i64 [ 0, %entry ], [ %n1, %next ]", *self.phis(numbers, first, "entry", "next")]
        self.write("br label %head")
        self.lines[begin:begin] = phis
        self.leave(outside)
        self.label("done")
        self.write("br i1 %writes, label %keep, label %end")
        self.label("keep")
        for number in numbers:
            self.store_one(self.argument(number), f"%p{number}", self.output_pointer(number))
        self.write("br label %end")
        self.label("end")
        self.write("ret i64 %n")
        return self.function_text(f"i64 @{prefix}scalars(ptr %buffers, i64 %most, i64 %write)")

    def _store_writes(self, writes: list[Write]) -> None:
        if writes:
            self.write("br i1 %writes, label %put, label %next")
            self.label("put")
            for write in writes:
                start = self.block.operand(write.start, 1)
                address = self.address(self.output_pointer(write.number), write.value, start)
                self.store_one(write.value, self.block.operand(write.value, 1), address)
        self.write("br label %next")
        self.label("next")


class _Points(_FunctionWriter):
    """The function of the points."""

    def __init__(self, loop: NativeLoop) -> None:
        super().__init__(loop, width_of(loop))

    def text(self, prefix: str = "") -> str:
        self.load_pointers()
        for name, slot in (("steps", STEPS), ("more", MORE)):
            self.write(f"%{name} = add i64 {self.control(slot)}, 0")
        self.write("br label %tile")
        self.label("tile")
        self.write("%t = phi i64 [ %begin, %entry ], [ %t1, %stored ]")
        self.write("%again = icmp slt i64 %t, %end")
        self.write("br i1 %again, label %load, label %exit")
        outside = self.inner()
        self.label("load")
        self.write(f"%base = mul i64 %t, {self.width}")
        self._mask()
        self._steps()
        self._results()
        self.leave(outside)
        self.label("exit")
        self.write("ret void")
        return self.function_text(f"void @{prefix}points(ptr %buffers, i64 %begin, i64 %end)")

    def _mask(self) -> None:
        """The lanes that are points."""
        kind = f"<{self.width} x i64>"
        left = self.line(f"sub i64 {self.loop.count}, %base")
        every = self.block.splat(kind, f"i64 {left}")
        lanes = ", ".join(f"i64 {lane}" for lane in range(self.width))
        self.write(f"%mask = icmp slt {kind} <{lanes}>, {every}")

    def _steps(self) -> None:
        loop = self.loop
        numbers = self._changing_values()
        self.read_fixed(scalars_only=False)
        first = {
            number: self.read_points(number)
            if loop.carried[number].kind == "points"
            else self.load_one(self.argument(number), self.input_pointer(number))
            for number in numbers
        }
        self.write("br label %head")
        self.label("head")
        begin = len(self.lines)
        self.block.names.update({self.argument(number): f"%p{number}" for number in numbers})
        self.write("%left = icmp slt i64 %n, %steps")
        self.write("br i1 %left, label %step, label %done")
        outside = self.inner()
        self.label("step")
        self._leave_if_done()
        writes = [write for write in loop.writes if write.wide]
        self.compute(
            [
                *[self.following(number) for number in numbers],
                *[each for write in writes for each in (write.start, write.value)],
            ]
        )
        for write in writes:
            row = self.address(
                self.output_pointer(write.number), write.value, self.block.operand(write.start, 1)
            )
            register = self.block.operand(write.value, self.width)
            self.store_lanes(write.value, register, self.address(row, write.value, "%base"))
        self.write("%n1 = add nsw i64 %n, 1")
        phis = ["%n = phi i64 [ 0, %load ], [ %n1, %go ]", *self.phis(numbers, first, "load", "go")]
        self.write("br label %head")
        self.lines[begin:begin] = phis
        self.leave(outside)

    def _changing_values(self) -> list[int]:
        """Points that change, and the scalars on which they depend."""
        loop = self.loop
        roots = [each for write in loop.writes if write.wide for each in (write.start, write.value)]
        carried = loop.list_sources([*roots, *loop.done], loop.points())
        return [number for number in carried if not loop.carried[number].is_fixed]

    def _leave_if_done(self) -> None:
        """Go on only while a step changes some point of the tile."""
        if self.loop.done:
            lanes = f"<{self.width} x i1>"
            self.compute(self.loop.done)
            moving = "zeroinitializer"
            for mask, kept in self.loop.done.items():
                register = self.block.operand(mask, self.width)
                if kept:
                    register = self.line(f"xor {lanes} {register}, splat (i1 true)")
                moving = self.line(f"or {lanes} {moving}, {register}")
            counted = self.line(f"and {lanes} {moving}, %mask")
            name = f"llvm.vector.reduce.or.v{self.width}i1"
            some = self.block.call(name, "i1", [lanes], [f"{lanes} {counted}"])
            self.write(f"br i1 {some}, label %go, label %done")
        else:
            self.write("br label %go")
        self.label("go")

    def _results(self) -> None:
        self.label("done")
        if self.loop.alive is not None:
            control = self.pointer(2 * len(self.loop.carried) + 1)
            longest = self.line(f"getelementptr i64, ptr {control}, i64 {LONGEST}")
            self.write(f"%longest = atomicrmw max ptr {longest}, i64 %n monotonic")
        for number in self.loop.points():
            wanted = self.line(f"or i64 {self.control(WANTED + number)}, %more")
            yes = self.line(f"icmp ne i64 {wanted}, 0")
            self.write(f"br i1 {yes}, label %store{number}, label %past{number}")
            self.label(f"store{number}")
            argument = self.argument(number)
            address = self.address(self.output_pointer(number), argument, "%base")
            self.store_lanes(argument, f"%p{number}", address)
            self.write(f"br label %past{number}")
            self.label(f"past{number}")
        self.write("br label %stored")
        self.label("stored")
        self.write("%t1 = add nsw i64 %t, 1")
        self.write("br label %tile")
