"""Steps of plans as LLVM IR: one function that runs a loop with all that is inside.

    i64 run(ptr table, i64 most)

runs up to `most` iterations of the outermost loop, without Python's lock, and gives the number of those that were run;
less than `most` if the condition no longer holds, -1 if Python is to raise what a handler of a signal raised.

The kernels are functions of the same module.  Buffers lie where the plan says: at offsets of one arena, or in arrays
whose addresses the table holds (`Slot`).  Views are other addresses, or copies where the elements of a view do not lie
side by side; these lie behind the arena.  The two arrays of a carried value change their addresses, which are
registers, with each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, Literal

from xarr.compiler.loop_ir.loops import Kernel, Loop, copied_buffers
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.arena import aligned_size
from xarr.compiler.plan.native_steps import carries_in_place, view_offset
from xarr.compiler.plan.program_plan import Plan, Step
from xarr.compiler.schedule import Schedule
from xarr.compiler.schedules.cpu.single_operations import program_of_operation
from xarr.ir import ops
from xarr_numpy.compiled.codegen.emitter import Functions
from xarr_numpy.compiled.codegen.instructions import ATTRIBUTES
from xarr_numpy.compiled.threads import costs
from xarr_numpy.compiled.threads.phases import shared_phase
from xarr_numpy.processor import PROCESSOR

#: Functions of Python's C API, and one that lets Python handle signals.
_HELPERS: Final = """
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyErr_CheckSignals()

define internal i1 @interrupted(ptr %thread) noinline nounwind {
  call void @PyEval_RestoreThread(ptr %thread)
  %status = call i32 @PyErr_CheckSignals()
  %same = call ptr @PyEval_SaveThread()
  %raised = icmp ne i32 %status, 0
  ret i1 %raised
}

define i64 @run(ptr %table, i64 %most) nounwind {
  %thread = call ptr @PyEval_SaveThread()
  %count = call i64 @steps(ptr %table, i64 %most, ptr %thread)
  call void @PyEval_RestoreThread(ptr %thread)
  ret i64 %count
}
"""


class NotNative(Exception):
    """A step that has no machine code, and why."""

    def __init__(self, step: Step, reason: str) -> None:
        super().__init__(f"{step.word} {step.op.called} {reason}")


@dataclass(frozen=True)
class Slot:
    """The array whose address stands in the table.

    * "arena" - the arena, "pool", "share" - the threads and the function by which they share a phase,
    * "fixed" - carried value `number`, which no iteration changes; "in place" - its only array,
    * "state", "next", "spare" - the array that it is in, that of the next iteration, and that of the one after it,
    * "constant" - the elements of `constant`.
    """

    kind: Literal["arena", "pool", "share", "fixed", "in place", "state", "next", "spare", "constant"]
    number: int = 0
    constant: ops.Constant | None = None


@dataclass(frozen=True)
class LoopCode:
    """The module of a loop, what the table holds, and the bytes of the arena."""

    text: str
    slots: tuple[Slot, ...]
    arena: int


def emit(step: program_plan.LoopStep, schedule: Schedule) -> LoopCode:
    """The module of a loop; raises NotNative if there is a step without machine code in it."""
    return _PlanCode(schedule).loop_code(step)


@dataclass(frozen=True)
class _Frame:
    """A plan where it is run: where its arena begins in the arena of all, and the addresses of its buffers."""

    plan: Plan
    start: int
    pointers: dict[int, str]

    def nbytes(self, number: int) -> int:
        return self.plan.buffers[number].type.nbytes


class _PlanCode:
    """Writes the function.  Registers of the entry are those that do not change while it runs."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.functions = Functions()
        self.slots: list[Slot] = []
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.label = "begin"
        #: Bytes of the arena that are in use.
        self.arena = 0
        #: Nanoseconds of what has been written since the loop around it began.
        self.cost = 0.0
        #: The addresses of the pool of threads and of the function by which they share a phase, if any is shared.
        self.threads: tuple[str, ...] = ()
        self._count = 0
        self._at: dict[int, str] = {}
        self._fixed: set[str] = set()
        self._constants: dict[int, str] = {}
        self._kernels: dict[Kernel, list[tuple[str, Loop]]] = {}

    # --- lines ---------------------------------------------------------------------------------------------

    def line(self, instruction: str) -> str:
        """Write an instruction with a result; its register."""
        self._count += 1
        register = f"%r{self._count}"
        self.lines.append(f"{register} = {instruction}")
        return register

    def write(self, instruction: str) -> None:
        self.lines.append(instruction)

    def first(self, instruction: str) -> str:
        """Write an instruction of the entry; its register."""
        self._count += 1
        register = f"%e{self._count}"
        self.entry.append(f"{register} = {instruction}")
        self._fixed.add(register)
        return register

    def labels(self, *names: str) -> list[str]:
        self._count += 1
        return [f"{name}{self._count}" for name in names]

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        self.write(f"br label %{label}")

    # --- addresses -----------------------------------------------------------------------------------------

    def slot(self, slot: Slot) -> str:
        """The address that a new slot of the table holds when the function begins."""
        self.slots.append(slot)
        return self.first(f"load ptr, ptr {self.slot_address(len(self.slots) - 1)}, align 8")

    def slot_address(self, number: int) -> str:
        return self.first(f"getelementptr ptr, ptr %table, i64 {number}")

    def at(self, offset: int) -> str:
        """The address of a byte of the arena."""
        if offset not in self._at:
            self._at[offset] = self.first(f"getelementptr i8, ptr %arena, i64 {offset}")
        return self._at[offset]

    def allocate(self, nbytes: int) -> str:
        """The address of bytes behind all that is in use."""
        offset = self.arena
        self.arena += aligned_size(nbytes)
        return self.at(offset)

    def constant(self, op: ops.Constant) -> str:
        if id(op) not in self._constants:
            self._constants[id(op)] = self.slot(Slot("constant", constant=op))
        return self._constants[id(op)]

    def advance(self, pointer: str, nbytes: int) -> str:
        """An address so many bytes behind another one."""
        if not nbytes:
            return pointer
        instruction = f"getelementptr i8, ptr {pointer}, i64 {nbytes}"
        return self.first(instruction) if pointer in self._fixed else self.line(instruction)

    def copy(self, target: str, source: str, nbytes: int) -> None:
        if target != source and nbytes:
            self.cost += nbytes * PROCESSOR.byte_time
            self.functions.declarations.add("declare ptr @memcpy(ptr, ptr, i64)")
            self.line(f"call ptr @memcpy(ptr {target}, ptr {source}, i64 {nbytes})")

    # --- the function --------------------------------------------------------------------------------------

    def loop_code(self, step: program_plan.LoopStep) -> LoopCode:
        self.slot(Slot("arena"))
        self.entry[-1] = "%arena" + self.entry[-1][self.entry[-1].index(" ") :]
        self.arena = aligned_size(max(step.cond.layout.arena, step.body.layout.arena))
        self._outermost(step)
        body = "\n".join(
            each if each.endswith(":") else f"  {each}"
            for each in [*self.entry, "br label %begin", "begin:", *self.lines]
        )
        text = (
            f"define internal i64 @steps(ptr %table, i64 %most, ptr %thread) {ATTRIBUTES} {{\n"
            f"entry:\n  %budget = alloca i64, align 8\n"
            f"  store i64 {PROCESSOR.max_unpolled_nanoseconds}, ptr %budget, align 8\n{body}\n"
            "raise:\n  ret i64 -1\n}\n"
        )
        return LoopCode(self.functions.module() + _HELPERS + text, tuple(self.slots), self.arena)

    def _outermost(self, step: program_plan.LoopStep) -> None:
        """The loop whose arrays stand in the table."""
        in_place, firsts = carries_in_place(step), dict[int, int]()
        state: list[tuple[str, ...]] = []
        for k in range(len(step.state)):
            if _is_fixed(step, k):
                state.append((self.slot(Slot("fixed", k)),))
            elif k in in_place:
                state.append((self.slot(Slot("in place", k)),))
            else:
                kinds: tuple[Literal["state", "next", "spare"], ...] = ("state", "next", "spare")
                firsts[k] = len(self.slots)
                state.append(tuple([self.slot(Slot(kind, k)) for kind in kinds]))
        after, count = self._iterations(step, state, 0, "%most")
        for k, first in firsts.items():
            for number, register in enumerate(after[k]):
                self.write(f"store ptr {register}, ptr {self.slot_address(first + number)}, align 8")
        self.write(f"ret i64 {count}")

    def _iterations(
        self,
        step: program_plan.LoopStep,
        state: Sequence[tuple[str, ...]],
        start: int,
        most: str | None = None,
    ) -> tuple[list[tuple[str, ...]], str]:
        """Run iterations; the addresses after the last one, and how many there were.

        `state` has for each carried value the addresses of its arrays: of the present one, and, if it has several, of
        those of the next two iterations.
        """
        head, test, body, done = self.labels("head", "test", "body", "done")
        before, outer_cost, self.cost = self.label, self.cost, 0.0
        self.jump(head)
        self.begin(head)
        position = len(self.lines)
        now = [
            each if len(each) == 1 else tuple([f"%{head}.{k}.{number}" for number in range(len(each))])
            for k, each in enumerate(state)
        ]
        if most is not None:
            self.write(f"%{head}.more = icmp slt i64 %{head}.n, {most}")
            self.write(f"br i1 %{head}.more, label %{test}, label %{done}")
            self.begin(test)
        present = [each[0] for each in now]
        (condition,) = self.plan(step.cond, present, [None], start)
        self.write(f"br i1 {self._holds(condition)}, label %{body}, label %{done}")
        self.begin(body)
        targets = [each[1] if len(each) > 1 else each[0] for each in now]
        self.plan(step.body, present, targets, start)
        self._poll()
        count = self.line(f"add i64 %{head}.n, 1")
        last = self.label
        self.jump(head)
        phis = [f"%{head}.n = phi i64 [ 0, %{before} ], [ {count}, %{last} ]"]
        for each, first in zip(now, state, strict=True):
            if len(each) > 1:
                following = (each[1], each[2], each[1])
                phis += [
                    f"{register} = phi ptr [ {x}, %{before} ], [ {y}, %{last} ]"
                    for register, x, y in zip(each, first, following, strict=True)
                ]
        self.lines[position:position] = phis
        self.begin(done)
        self.cost = outer_cost
        return now, f"%{head}.n"

    def _holds(self, pointer: str) -> str:
        byte = self.line(f"load i8, ptr {pointer}, align 1")
        return self.line(f"icmp ne i8 {byte}, 0")

    def _poll(self) -> None:
        """Let Python handle signals from time to time."""
        poll, reset, on = self.labels("poll", "reset", "on")
        left = self.line("load i64, ptr %budget, align 8")
        left = self.line(f"sub i64 {left}, {int(self.cost) + 2}")
        self.write(f"store i64 {left}, ptr %budget, align 8")
        self.write(f"br i1 {self.line(f'icmp slt i64 {left}, 0')}, label %{poll}, label %{on}")
        self.begin(poll)
        raised = self.line("call i1 @interrupted(ptr %thread)")
        self.write(f"br i1 {raised}, label %raise, label %{reset}")
        self.begin(reset)
        self.write(f"store i64 {PROCESSOR.max_unpolled_nanoseconds}, ptr %budget, align 8")
        self.jump(on)
        self.begin(on)

    # --- plans ---------------------------------------------------------------------------------------------

    def plan(
        self, plan: Plan, arguments: Sequence[str], targets: Sequence[str | None], start: int
    ) -> list[str]:
        """Run a plan whose arena begins at `start`; the addresses of its results, `targets` where these are set."""
        frame = _Frame(plan, start, dict(zip(plan.parameters, arguments, strict=True)))
        kept = self._locate_results(frame, targets)
        for index, step in enumerate(plan.steps):
            self._step(frame, step, index)
        results = []
        for k, (number, target) in enumerate(zip(plan.results, targets, strict=True)):
            source = self._pointer(frame, number)
            if target is not None and k not in kept:
                self.copy(target, source, frame.nbytes(number))
            results.append(target or source)
        return results

    def _locate_results(self, frame: _Frame, targets: Sequence[str | None]) -> set[int]:
        """Give the buffers of results their addresses; the results that need no copy."""
        plan, memory = frame.plan, frame.plan.layout.memory
        kept: set[int] = set()
        for k, (number, target) in enumerate(zip(plan.results, targets, strict=True)):
            root = _root(plan, number)
            if memory[number] == "argument" and target == frame.pointers[root]:
                kept.add(k)
            if memory[number] != "result" or root in frame.pointers:
                continue
            fits = target is not None and plan.buffers[root].type.nbytes == frame.nbytes(number)
            if fits and not _is_view(plan, number):
                assert target is not None
                frame.pointers[root] = target
                kept.add(k)
        for number in plan.results:
            root = _root(plan, number)
            if memory[number] == "result" and root not in frame.pointers:
                frame.pointers[root] = self.allocate(frame.nbytes(root))
        return kept

    def _pointer(self, frame: _Frame, number: int) -> str:
        pointer = frame.pointers.get(number)
        if pointer is None:
            buffer = frame.plan.buffers[number]
            if buffer.constant is not None:
                pointer = self.constant(buffer.constant)
            elif buffer.base is not None:
                pointer = self._pointer(frame, buffer.base)
            else:
                offset = frame.plan.layout.offsets[number]
                assert offset is not None, f"b{number} has no memory"
                pointer = self.at(frame.start + offset)
            frame.pointers[number] = pointer
        return pointer

    # --- steps ---------------------------------------------------------------------------------------------

    def _step(self, frame: _Frame, step: Step, index: int) -> None:
        types = [frame.plan.buffers[number].type for number in (*step.inputs, *step.outputs)]
        if any(type.dynamic for type in types):
            raise NotNative(step, "has sizes that are known late")
        if step.outputs and not any(frame.nbytes(number) for number in step.outputs):
            return
        inputs = [self._pointer(frame, number) for number in step.inputs]
        if isinstance(step, program_plan.View):
            frame.pointers[step.outputs[0]] = self._view(step, inputs[0])
            return
        outputs = [self._pointer(frame, number) for number in step.outputs]
        space = frame.plan.layout.workspaces[index]
        start = frame.start + (space.offset if space else 0)
        match step:
            case program_plan.Launch():
                assert step.program is not None, "the plan was made with a schedule"
                self._launch(step.program, [*inputs, *outputs], start)
            case program_plan.Copy():
                self.copy(outputs[0], inputs[0], step.nbytes)
            case program_plan.Update():
                self.copy(outputs[0], inputs[0], frame.nbytes(step.inputs[0]))
                self._launch(self._program(step), [*inputs[1:], *outputs], None)
            case program_plan.LibraryCall():
                self._launch(self._program(step), [*inputs, *outputs], None)
            case program_plan.PlanCall():
                self.plan(step.plan, inputs, outputs, start)
            case program_plan.Branch():
                self._branch(frame, step, inputs, outputs, start)
            case program_plan.LoopStep():
                self._loop(frame, step, inputs, start)
            case _:
                raise NotNative(step, "has no machine code")

    def _view(self, step: program_plan.View, source: str) -> str:
        offset = view_offset(step.node)
        if offset is not None:
            return self.advance(source, offset)
        target = self.allocate(step.node.tensor_type.nbytes)
        self._launch(self._program(step), [source, target], None)
        return target

    def _program(self, step: Step) -> Kernel:
        """The loop program of a library call, if it is not too much work for one."""
        op = step.op
        if isinstance(op, ops.Sort) or op.is_elementwise:
            raise NotNative(step, "is in no group")
        if isinstance(op, ops.DotGeneral):
            terms = [step.node.operands[0].shape[axis] for axis in op.lhs_contracting_dimensions]
            if prod(terms) * step.node.tensor_type.size > PROCESSOR.max_native_products:
                raise NotNative(step, "is done faster by a BLAS")
        program = program_of_operation(step.node, self.schedule)
        if program is None:
            raise NotNative(step, "has no loop program")
        if sum(_work(phase) for phase in program.phases) > PROCESSOR.max_native_nanoseconds:
            raise NotNative(step, "is much work")
        return program

    def _launch(self, kernel: Kernel, pointers: list[str], start: int | None) -> None:
        """Call the functions of a kernel's phases; its scratch buffers lie at `start`, or behind all."""
        for buffer in kernel.scratch:
            if start is None:
                pointers.append(self.allocate(buffer.nbytes))
            else:
                pointers.append(self.at(start))
                start += aligned_size(buffer.nbytes)
        if kernel not in self._kernels:
            names = self.functions.add(kernel, f"k{len(self._kernels)}.")
            self._kernels[kernel] = list(zip(names, kernel.phases, strict=True))
        table = self.first(f"alloca [{len(pointers)} x ptr], align 8")
        for number, pointer in enumerate(pointers):
            slot = self.first(f"getelementptr ptr, ptr {table}, i64 {number}")
            lines = self.entry if pointer in self._fixed else self.lines
            lines.append(f"store ptr {pointer}, ptr {slot}, align 8")
        addresses = dict(zip((*kernel.inputs, *kernel.outputs, *kernel.scratch), pointers, strict=True))
        for name, phase in self._kernels[kernel]:
            copied = copied_buffers(phase)
            if copied is None or addresses[copied[0]] != addresses[copied[1]]:
                self._phase(name, phase, table)

    def _phase(self, name: str, phase: Loop, table: str) -> None:
        """Call the function of a phase, or let threads share it."""
        shared = shared_phase(0, phase)
        numbers = shared.plan_in_threads()
        if numbers is None:
            self.cost += shared.work
            self.write(f"call void @{name}(ptr {table}, i64 0, i64 {shared.extent})")
            return
        if not self.threads:
            self.threads = (self.slot(Slot("pool")), self.slot(Slot("share")))
        pool, share = self.threads
        part, again, done = self.labels("part", "again", "done")
        before = self.label
        self.jump(part)
        self.begin(part)
        arguments = ", ".join(f"i64 {number}" for number in numbers)
        self.write(f"%{part}.i = phi i64 [ 0, %{before} ], [ %{part}.next, %{again}.on ]")
        self.write(
            f"%{part}.next = call i64 {share}(ptr {pool}, ptr @{name}, ptr {table}, i64 %{part}.i, "
            f"i64 {shared.extent}, {arguments}, i64 {PROCESSOR.max_unpolled_nanoseconds})"
        )
        self.write(f"%{part}.left = icmp slt i64 %{part}.next, {shared.extent}")
        self.write(f"br i1 %{part}.left, label %{again}, label %{done}")
        self.begin(again)
        raised = self.line("call i1 @interrupted(ptr %thread)")
        self.write(f"br i1 {raised}, label %raise, label %{again}.on")
        self.begin(f"{again}.on")
        self.jump(part)
        self.begin(done)
        self.cost += shared.work

    def _branch(
        self,
        frame: _Frame,
        step: program_plan.Branch,
        inputs: Sequence[str],
        outputs: Sequence[str],
        start: int,
    ) -> None:
        number = frame.plan.buffers[step.inputs[0]].type
        labels = self.labels(*[f"branch.{k}." for k in range(len(step.branches))], "joined")
        *branches, joined = labels
        if isinstance(step.op, ops.If):
            self.write(f"br i1 {self._holds(inputs[0])}, label %{branches[0]}, label %{branches[1]}")
        else:
            kind = f"i{8 * number.dtype.itemsize}"
            index = self.line(f"load {kind}, ptr {inputs[0]}, align {number.dtype.itemsize}")
            cases = " ".join(f"{kind} {k}, label %{label}" for k, label in enumerate(branches[:-1]))
            self.write(f"switch {kind} {index}, label %{branches[-1]} [ {cases} ]")
        for label, plan in zip(branches, step.branches, strict=True):
            self.begin(label)
            self.plan(plan, inputs[1:], outputs, start)
            self.jump(joined)
        self.begin(joined)

    def _loop(self, frame: _Frame, step: program_plan.LoopStep, inputs: Sequence[str], start: int) -> None:
        """A loop inside of another: its arrays are the outputs and the spares of the workspace."""
        in_place, spares = carries_in_place(step), step.spares
        state: list[tuple[str, ...]] = []
        for k, (number, source) in enumerate(zip(step.state, inputs, strict=True)):
            if _is_fixed(step, k):
                state.append((source,))
                continue
            target = self._pointer(frame, number)
            if k in in_place:
                self.copy(target, source, frame.nbytes(number))
                state.append((target,))
            else:
                spare = spares[k]
                other = target if spare is None else self.at(start + spare)
                state.append((source, target, other))
        after, _ = self._iterations(step, state, start)
        for number, each in zip(step.state, after, strict=True):
            if len(each) > 1:
                self.copy(self._pointer(frame, number), each[0], frame.nbytes(number))


def _work(phase: Loop) -> float:
    assert isinstance(phase.extent, int), "the outermost loop has a fixed number of iterations"
    return phase.extent * costs.iteration(phase)


def _is_fixed(step: program_plan.LoopStep, number: int) -> bool:
    return step.body.results[number] == step.body.parameters[number]


def _root(plan: Plan, number: int) -> int:
    while (base := plan.buffers[number].base) is not None:
        number = base
    return number


def _is_view(plan: Plan, number: int) -> bool:
    """Whether a buffer shows the memory of another one, or of a view."""
    while (base := plan.buffers[number].base) is not None:
        if plan.buffers[number].is_view:
            return True
        number = base
    return False
