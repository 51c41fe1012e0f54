"""Steps of plans as LLVM IR: one function that runs a loop with all that is inside.

    i64 run(ptr table, i64 most)

runs up to `most` iterations of the outermost loop, without Python's lock, and gives the number of those that were run;
less than `most` if the condition no longer holds, -1 if Python is to raise what a handler of a signal raised, -2, -3 …
if a check failed.

The kernels are functions of the same module.  Buffers lie where the plan says: at offsets of one arena, or in arrays
whose addresses the table holds.  Views are other addresses, or copies where the elements of a view do not lie
side by side; these lie behind the arena.  The two arrays of a carried value change their addresses, which are
registers, with each iteration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, prod

from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.passes.checks import FlaggedCheck, flag_check
from xarr.compiler.plan import planner, program_plan
from xarr.compiler.plan.layout import inner_nbytes
from xarr.compiler.plan.native_steps import (
    OWN_MEMORY,
    MemoryOfOthers,
    begins_empty,
    carried_type,
    carries_in_place,
    copied_views,
    is_fixed,
    memory_of_body,
    memory_of_branch,
)
from xarr.compiler.plan.program_plan import Plan, Step
from xarr.compiler.schedule import Schedule
from xarr.compiler.schedules.cpu.single_operations import (
    multiplies_in_lanes,
    program_of_concatenation,
    program_of_operation,
)
from xarr.compiler.while_loops.iterated_groups import IteratedGroup
from xarr.compiler.while_loops.native_loops import NativeLoop
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, map_graphs, parameter
from xarr.ir.memory_use import shown_bytes
from xarr.ir.ops.control import unpack_results
from xarr_numpy.compiled.plans import fourier, lapack, matrix_functions, matrix_products, point_loops
from xarr_numpy.compiled.plans.function_code import CallBack, Static
from xarr_numpy.compiled.plans.plan_memory import PlanFrame, PlanMemory, in_order
from xarr_numpy.compiled.plans.row_views import is_row_view, write_row_view
from xarr_numpy.compiled.threads import costs
from xarr_numpy.processor import PROCESSOR, Processor


class NotNative(Exception):
    """A step that has no machine code, and why."""

    def __init__(self, step: Step, reason: str) -> None:
        super().__init__(f"{step.word} {step.op.called} {reason}")
        self.step, self.reason = step, reason


@dataclass(frozen=True)
class PlanCode:
    """The module of a loop, or of a plan.

    The table holds the addresses of inputs, of arrays of its own, of the arena, and of addresses that stay the same.

    * `text` - of the module, and the `numbers` that it reads behind the statics, if programs that are alike share it,
    * `inputs` - the carried values that are read from where they are, `own` - those that lie in an array of their own,
      which holds the value when the loop begins where they are `in_place`; of a plan its parameters and its results,
    * `arena` - the bytes of the arena, `statics` - what has the addresses that stay the same, functions of Python too,
    * `checks` - which check failed where the function gives -2, -3 …; the value for which it did begins the arena, an
      int64,
    * `parts` - the loop programs of kernels and of loops over points in it,
    * `nanoseconds` - of a call, or of an iteration of the loop, about; infinite for one with loops inside.
    """

    text: str
    numbers: tuple[int, ...]
    inputs: tuple[int, ...]
    own: tuple[int, ...]
    in_place: frozenset[int]
    arena: int
    statics: tuple[Static, ...]
    checks: tuple[FlaggedCheck, ...]
    parts: tuple[Kernel | NativeLoop, ...]
    nanoseconds: float

    @property
    def calls(self) -> list[CallBack]:
        """The steps that Python computes."""
        return [each for each in self.statics if isinstance(each, CallBack)]


def emit(step: program_plan.LoopStep, wanted: Collection[int], schedule: Schedule) -> PlanCode:
    """The module of a loop of which some carried values are wanted afterwards; Python is called back for what has no
    machine code, unless all of the loop is stepped by Python, as outside of `jit`.

    Raises NotNative if there is a step without machine code in it, or if it takes more memory than in Python.
    """
    plans = (*step.cond.walk(), *step.body.walk())
    has_groups = any(isinstance(each, program_plan.Launch) for plan in plans for each in plan.steps)
    code = _PlanWriter(schedule, calls_python=has_groups).loop_code(step, wanted)
    unwanted = [k for k in range(len(step.state)) if k not in wanted and not is_fixed(step, k)]
    others = sum([step.body.buffers[step.body.parameters[k]].type.nbytes for k in unwanted])
    # Python makes results of its own, which are copied to where they are wanted.
    copied = max(
        [sum([node.tensor_type.nbytes for node in call.graph.results]) for call in code.calls], default=0
    )
    copies = max([copied_views(plan, hands_on=True) for plan in plans])
    _refuse_more_memory(step, code.arena + copied, inner_nbytes(step) + others + copies)
    return code


def _refuse_more_memory(step: Step, in_machine_code: int, in_python: int) -> None:
    more = in_machine_code - in_python
    if more > PROCESSOR.added_bytes:
        raise NotNative(step, f"takes {shown_bytes(more)} less memory")


def emit_plan(plan: Plan, schedule: Schedule, limits: Processor = PROCESSOR) -> PlanCode:
    """The module of a plan, of which `run` gives 0, or for another `most` than 0 nothing but a 1 where it has run for a
    while; raises NotNative as `emit`.

    `limits` says up to how much work operations in no group are loops, outside of the loops of the plan.
    """
    code = _PlanWriter(schedule, limits).plan_code(plan)
    copies = max([copied_views(each, hands_on=each is not plan) for each in plan.walk()])
    results = sum([plan.buffers[plan.results[k]].type.nbytes for k in code.own])
    views = [plan.buffers[number] for number in plan.results if plan.buffers[number].is_view]
    shown = max([0, *[each.type.nbytes for each in views]])
    if shown > PROCESSOR.spare_bytes:
        raise NotNative(plan.steps[-1], f"shows {shown_bytes(shown)} without a copy")
    peak = plan.layout.peak
    _refuse_more_memory(plan.steps[-1], code.arena + results, peak.total - peak.arguments + copies)
    return code


class _PlanWriter(PlanMemory):
    """Writes the function of a loop."""

    def __init__(self, schedule: Schedule, limits: Processor = PROCESSOR, calls_python: bool = False) -> None:
        super().__init__()
        self.calls_python = calls_python
        self.schedule = schedule
        self.limits = limits
        #: The step of the outermost plan that is being written, if it is a plan.
        self._outermost: tuple[Plan, Node | None] | None = None
        self.checks: list[FlaggedCheck] = []

    # --- the function --------------------------------------------------------------------------------------

    def loop_code(self, step: program_plan.LoopStep, wanted: Collection[int]) -> PlanCode:
        numbers, in_place = range(len(step.state)), carries_in_place(step, PROCESSOR.min_reused_bytes)
        fixed = [k for k in numbers if is_fixed(step, k)]
        inputs = [k for k in numbers if k not in in_place or k in fixed]
        own = [k for k in numbers if k not in fixed and (k in wanted or k in in_place)]
        read = {k: self.slot() for k in inputs}
        written = {k: self.slot()[0] for k in own}
        self._begin()
        state: list[tuple[str, ...]] = []
        spares: dict[int, str] = {}
        for k in numbers:
            nbytes, now = carried_type(step, k).nbytes, read[k][0] if k in read else written[k]
            if k in fixed:
                state.append((now,))
            elif carried_type(step, k).size == 1:
                state.append(self.in_registers(now, nbytes, k in in_place))
            elif k not in read:
                state.append((now,))
            else:
                first, spare = written.get(k) or self.allocate(nbytes), self.allocate(nbytes)
                spares[k] = spare
                is_first = self.first(f"icmp eq ptr {now}, {first}")
                following = [
                    f"select i1 {is_first}, ptr {x}, ptr {y}" for x, y in ((spare, first), (first, spare))
                ]
                state.append((now, *map(self.first, following)))
        after, count = self._iterations(step, state, "%most")
        for k in numbers:
            nbytes, last = carried_type(step, k).nbytes, after[k][0]
            if k in spares:
                last = self._bring(written[k], last, spares[k], nbytes) if k in written else last
                self.write(f"store ptr {last}, ptr {read[k][1]}, align 8")
            elif k not in fixed and carried_type(step, k).size == 1:
                target = written.get(k) or self.allocate(nbytes)
                self.copy(target, last, nbytes)
                if k in read:
                    self.write(f"store ptr {target}, ptr {read[k][1]}, align 8")
        self.write(f"ret i64 {count}")
        return self._module(inputs, own, in_place, loops=1)

    def _bring(self, target: str, source: str, spare: str, nbytes: int) -> str:
        """Copy what lies in a spare array to another one; where it lies then."""
        copy, on = self.labels("copy", "on")
        before = self.label
        self.write(f"br i1 {self.line(f'icmp eq ptr {source}, {spare}')}, label %{copy}, label %{on}")
        self.begin(copy)
        self.copy(target, source, nbytes)
        self.jump(on)
        self.begin(on)
        return self.line(f"phi ptr [ {source}, %{before} ], [ {target}, %{copy} ]")

    def plan_code(self, plan: Plan) -> PlanCode:
        arguments = [self.slot()[0] for _ in plan.parameters]
        own = [k for k, number in enumerate(plan.results) if number not in plan.parameters]
        results = {k: self.slot()[0] for k in own}
        self._begin()
        self._outermost = plan, None
        self.gives_up = True
        self.plan(plan, arguments, [results.get(k) for k in range(len(plan.results))])
        self.write("ret i64 0")
        return self._module(range(len(arguments)), own, frozenset())

    def _begin(self) -> None:
        """Name the last addresses of the table."""
        for name in ("%arena", "%statics"):
            self.slot()
            self.name_last(name)

    def _module(
        self, inputs: Iterable[int], own: Iterable[int], in_place: frozenset[int], loops: int = 0
    ) -> PlanCode:
        # Python's lock is let go of at once, or once a loop has run for a while.
        is_long = max(self.longest, self.cost) >= PROCESSOR.min_unlocked_nanoseconds
        budget = PROCESSOR.max_unpolled_nanoseconds if is_long else PROCESSOR.min_unlocked_nanoseconds
        head = ["%budget = alloca i64, align 8", f"store i64 {budget}, ptr %budget, align 8"]
        head += ["%first = call i1 @interrupted(ptr %lock)"] if is_long else []
        time = max(self.longest, self.cost + self.loops_cost) if self.gives_up or self.loops == loops else inf
        # Loops are better off with constants, and so is what runs long.
        may_share = not self.loops and time <= PROCESSOR.max_shared_code_nanoseconds
        module, numbers = self.module_of(head, may_share)
        memory = tuple(inputs), tuple(own), in_place, self.arena
        rest = tuple(self.statics), tuple(self.checks), tuple(self.parts)
        return PlanCode(module, tuple(numbers), *memory, *rest, time)

    def _iterations(
        self,
        step: program_plan.LoopStep,
        state: Sequence[tuple[str, ...]],
        most: str | None = None,
    ) -> tuple[list[tuple[str, ...]], str]:
        """Run iterations; the addresses after the last one, and how many there were.

        `state` has for each carried value the addresses of its arrays: of the present one, and, if there are two, of
        that which is copied there after an iteration, if there are three, of those of the next two iterations.
        """
        head, test, body, done = self.labels("head", "test", "body", "done")
        before, outer_costs = self.label, (self.cost, self.loops_cost)
        self.cost = self.loops_cost = 0.0
        outer_limits, self.limits = self.limits, PROCESSOR
        self.depth += 1
        self.loops += 1
        self.jump(head)
        self.begin(head)
        position = len(self.lines)
        now = [
            each if len(each) < 3 else tuple([f"%{head}.{k}.{number}" for number in range(len(each))])
            for k, each in enumerate(state)
        ]
        if most is not None:
            self.write(f"%{head}.more = icmp slt i64 %{head}.n, {most}")
            self.write(f"br i1 %{head}.more, label %{test}, label %{done}")
            self.begin(test)
        present = [each[0] for each in now]
        (condition,) = self.plan(step.cond, present, [None])
        self.write(f"br i1 {self.holds(condition)}, label %{body}, label %{done}")
        self.begin(body)
        targets = [each[1] if len(each) > 1 else each[0] for each in now]
        self.plan(step.body, present, targets, memory_of_body(step, PROCESSOR.min_reused_bytes))
        for k, each in enumerate(now):
            if len(each) == 2:
                self.copy(each[0], each[1], carried_type(step, k).nbytes)
        self.poll(self.cost)
        count = self.line(f"add i64 %{head}.n, 1")
        last = self.label
        self.jump(head)
        phis = [f"%{head}.n = phi i64 [ 0, %{before} ], [ {count}, %{last} ]"]
        for each, first in zip(now, state, strict=True):
            if len(each) == 3:
                following = (each[1], each[2], each[1])
                phis += [
                    f"{register} = phi ptr [ {x}, %{before} ], [ {y}, %{last} ]"
                    for register, x, y in zip(each, first, following, strict=True)
                ]
        self.lines[position:position] = phis
        self.begin(done)
        spent = (step.iterations or point_loops.USUAL_ITERATIONS) * (self.cost + self.loops_cost)
        self.cost, self.loops_cost = outer_costs[0], outer_costs[1] + spent
        self.limits = outer_limits
        self.depth -= 1
        return now, f"%{head}.n"

    # --- plans ---------------------------------------------------------------------------------------------

    def plan(
        self,
        plan: Plan,
        arguments: Sequence[str],
        targets: Sequence[str | None],
        shared: MemoryOfOthers = OWN_MEMORY,
    ) -> list[str]:
        """Run a plan; the addresses of its results, `targets` where these are set.

        The others lie in the arena until the end of the scope.
        """
        pointers = dict(zip(plan.parameters, arguments, strict=True))
        pointers |= {number: pointers[argument] for number, argument in shared.over.items()}
        frame = PlanFrame(plan, shared.inside, pointers)
        kept = self.locate_results(frame, targets)
        for index, step in enumerate(plan.steps):
            self._step(frame, step, index)
            self.free_memory(frame, index)
        results = []
        for k, (number, target) in enumerate(zip(plan.results, targets, strict=True)):
            if target is not None and k not in kept:
                self.write_to(frame, number, target)
            results.append(target or self.pointer(frame, number))
        left = [number for number, target in zip(plan.results, targets, strict=True) if target is None]
        self.free_memory(frame, len(plan.steps), {*left, *map(plan.root, left)})
        return results

    # --- steps ---------------------------------------------------------------------------------------------

    def _step(self, frame: PlanFrame, step: Step, index: int) -> None:
        if self._outermost and frame.plan is self._outermost[0]:
            self._outermost = frame.plan, step.node
        types = [frame.plan.buffers[number].type for number in (*step.inputs, *step.outputs)]
        if any(type.dynamic for type in types):
            raise NotNative(step, "has sizes that are known late")
        has_bytes = any(frame.nbytes(number) for number in step.outputs)
        if step.outputs and not has_bytes and not step.op.is_ordered:
            return
        if isinstance(step, program_plan.View):
            frame.views[step.outputs[0]] = step
            return
        self.show_before(frame, step, index)
        if isinstance(step, program_plan.LibraryCall) and (
            self._multiply(frame, step) or self._concatenate(frame, step)
        ):
            return
        if isinstance(step, program_plan.LoopStep):
            self._loop(frame, step, index)
            return
        if isinstance(step, program_plan.Copy):
            self.write_to(frame, step.inputs[0], self.pointer(frame, step.outputs[0]))
            return
        tables = self._write_tables(frame, step)
        inputs = [tables.get(k) or self.pointer(frame, number) for k, number in enumerate(step.inputs)]
        if self.depth and is_row_view(frame.plan, step, frame.pointers, frame.copies):
            frame.pointers[step.outputs[0]] = write_row_view(self, step, inputs)
        else:
            outputs = [self.pointer(frame, number) for number in step.outputs]
            with self.scope():
                self._run(frame, step, inputs, outputs)

    def _run(self, frame: PlanFrame, step: Step, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Run a step that computes something, or copies."""
        match step:
            case program_plan.Launch():
                assert step.program is not None, "the plan was made with a schedule"
                self.launch(step.program, [*inputs, *outputs])
            case program_plan.Allocate():
                pass
            case program_plan.Update():
                self.copy(outputs[0], inputs[0], frame.nbytes(step.inputs[0]))
                self.launch(self.program(step), [*inputs[1:], *outputs])
            case program_plan.LibraryCall():
                self._library(step, inputs, outputs)
            case program_plan.PlanCall():
                self.plan(step.plan, inputs, outputs)
            case program_plan.Branch():
                self._branch(frame, step, inputs, outputs)
            case program_plan.LaunchLoop():
                self._launch_loop(frame, step, inputs, outputs)
            case program_plan.CheckStep():
                self._check(frame, step, inputs, outputs)
            case _:
                raise NotNative(step, "has no machine code")

    def _multiply(self, frame: PlanFrame, step: Step) -> bool:
        """Let a BLAS compute a product that is too much work for loops, of operands as they lie; whether it does."""
        if not isinstance(step.op, ops.DotGeneral):
            return False
        with suppress(NotNative):
            self.program(step)
            return False
        arrays = [self.lies(frame, number) for number in step.inputs]
        if None in arrays:
            return False
        operands = [each for each in arrays if each is not None]
        lying = [each.array for each in operands]
        orders = matrix_products.copied_axes(step.node, lying)
        lying = [x if axes is None else in_order(x, axes) for x, axes in zip(lying, orders, strict=True)]
        nanoseconds = matrix_products.product_time(step.node, lying)
        if nanoseconds is None or nanoseconds > PROCESSOR.max_native_blas_nanoseconds:
            return False
        target = self.pointer(frame, step.outputs[0])
        copies = [
            None if axes is None else self.transposition(frame, number, axes)
            for number, axes in zip(step.inputs, orders, strict=True)
        ]
        pointers = [
            self.advance(self.pointer(frame, each.number), each.offset) if copy is None else ""
            for each, copy in zip(operands, copies, strict=True)
        ]
        with self.scope():
            for k, copy in enumerate(copies):
                if copy is not None:
                    pointers[k] = self.allocate(frame.nbytes(step.inputs[k]))
                    self.launch(copy[0], [copy[1], pointers[k]])
            matrix_products.write_product(self, step.node, lying, [*pointers, target])
        self.cost += nanoseconds
        return True

    def _concatenate(self, frame: PlanFrame, step: Step) -> bool:
        """Copy the operands of a concatenation, views of arrays from where they lie; whether loops do."""
        if not isinstance(step.op, ops.Concatenate):
            return False
        graph, numbers = self.with_views(frame, step)
        program = program_of_concatenation(graph, self.schedule)
        if program is None:
            return False
        self.launch(program, [self.pointer(frame, number) for number in (*numbers, *step.outputs)])
        return True

    def _library(self, step: Step, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """The loop program of a library call, or a call of the library, by Python if need be."""
        for time_of, write in (matrix_functions.FUNCTION, *lapack.CALLS, fourier.TRANSFORM):
            nanoseconds = time_of(step.node)
            if nanoseconds is not None and nanoseconds <= self.limits.max_native_nanoseconds:
                write(self, step.node, inputs, outputs)
                return
        if self.sort(step.node, inputs, outputs):
            return
        try:
            program = self.program(step)
        except NotNative as obstacle:
            # By no name that outlives the handler: the frames of all callers would live until a collection.
            if not self.calls_python:
                raise
            self._call_back(obstacle, inputs, outputs)
        else:
            self.launch(program, [*inputs, *outputs])

    def _call_back(self, obstacle: NotNative, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Let Python compute a step."""
        node = obstacle.step.node
        operands = [parameter(operand.type) for operand in node.operands]
        graph = Graph(operands, unpack_results(node.rebuilt(tuple(operands))))
        self.call_back(CallBack(obstacle.step, graph, obstacle.reason), [*inputs, *outputs])

    def program(self, step: Step) -> Kernel:
        """The loop program of a library call, if it is not too much work for one."""
        op = step.op
        if op.is_elementwise:
            raise NotNative(step, "is in no group")
        if isinstance(op, ops.DotGeneral):
            operands = step.node.operands
            terms = [operands[0].shape[axis] for axis in op.lhs_contracting_dimensions]
            products = prod(terms) * step.node.tensor_type.size
            # A matrix times a vector takes as long as reading the matrix, by a library too.
            is_read_once = products <= max([operand.tensor_type.size for operand in operands])
            most = self.limits.max_native_products
            if products > most and multiplies_in_lanes(step.node, self.schedule):
                most = self.limits.max_native_lane_products
            if products > most and not (is_read_once and self.limits is PROCESSOR):
                raise NotNative(step, "is done faster by a BLAS")
        program = program_of_operation(step.node, self.schedule)
        if program is None:
            raise NotNative(step, "has no loop program")
        # A view is copied for who reads it by a library, too.
        is_view = isinstance(step, program_plan.View)
        if not is_view and sum(map(costs.work, program.phases)) > self.limits.max_native_nanoseconds:
            raise NotNative(step, "is much work")
        return program

    def _branch(
        self, frame: PlanFrame, step: program_plan.Branch, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        number = frame.plan.buffers[step.inputs[0]].type
        labels = self.labels(*[f"branch.{k}." for k in range(len(step.branches))], "joined")
        *branches, joined = labels
        if isinstance(step.op, ops.If):
            self.write(f"br i1 {self.holds(inputs[0])}, label %{branches[0]}, label %{branches[1]}")
        else:
            kind = f"i{8 * number.dtype.itemsize}"
            index = self.line(f"load {kind}, ptr {inputs[0]}, align {number.dtype.itemsize}")
            cases = " ".join(f"{kind} {k}, label %{label}" for k, label in enumerate(branches[:-1]))
            self.write(f"switch {kind} {index}, label %{branches[-1]} [ {cases} ]")
        for label, plan in zip(branches, step.branches, strict=True):
            self.begin(label)
            with self.scope():
                self.plan(plan, inputs[1:], outputs, memory_of_branch(plan, inputs[1:], outputs))
            self.jump(joined)
        self.begin(joined)

    def _loop(self, frame: PlanFrame, step: program_plan.LoopStep, index: int) -> None:
        """A loop inside of another: its arrays are the outputs, and others beside them."""
        in_place = carries_in_place(step, PROCESSOR.min_reused_bytes)
        changed = [k for k in range(len(step.state)) if not is_fixed(step, k)]
        arrays = [k for k in changed if carried_type(step, k).size != 1]
        targets = {k: self.pointer(frame, step.state[k]) for k in changed}
        written = [k for k in arrays if self.is_copied(frame, step.inputs[k])]
        for k in written:  # a copy that a view shows a part of may be needed behind the loop
            self.pointer(frame, frame.views[step.inputs[k]].inputs[0])
        sources = {k: self.pointer(frame, number) for k, number in enumerate(step.inputs) if k not in written}
        with self.scope():
            state: list[tuple[str, ...]] = []
            for k, number in enumerate(step.inputs):
                target, nbytes = targets.get(k, ""), frame.nbytes(number)
                if k not in changed:
                    state.append((sources[k],))
                elif k not in arrays:
                    state.append(self.in_registers(sources[k], nbytes, k in in_place))
                elif k in in_place:
                    if not begins_empty(step, k):
                        self.write_to(frame, number, target)
                    state.append((target,))
                elif k in written or sources[k] == target:
                    # What lies in its output from the beginning is read before that is written.
                    self.write_to(frame, number, target)
                    state.append((target, self.allocate(nbytes), target))
                elif self.is_free_after(frame, step, number, index):
                    state.append((sources[k], target, sources[k]))
                else:
                    state.append((sources[k], target, self.allocate(nbytes)))
            after, _ = self._iterations(step, state)
        for k, (number, each) in enumerate(zip(step.state, after, strict=True)):
            # A value that no iteration changes may have an output of its own all the same.
            if (
                len(each) > 1
                or frame.plan.buffers[number].type.size == 1
                or (is_fixed(step, k) and number not in step.inputs)
            ):
                self.copy(self.pointer(frame, number), each[0], frame.nbytes(number))

    def _write_tables(self, frame: PlanFrame, step: Step) -> dict[int, str]:
        """Where the tables lie that a loop begins with, as far as they are copies of views: it changes them there."""
        tables: dict[int, str] = {}
        if isinstance(step, program_plan.LaunchLoop) and isinstance(step.program, NativeLoop):
            for k, number in zip(step.carried, step.outputs, strict=True):
                if step.program.carried[k].kind == "table" and self.is_copied(frame, step.inputs[k]):
                    tables[k] = self.pointer(frame, number)
                    self.write_to(frame, step.inputs[k], tables[k])
        return tables

    def _launch_loop(
        self, frame: PlanFrame, step: program_plan.LaunchLoop, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        """A loop that has machine code of its own, or the loop of an iterated group as its plan says."""
        assert isinstance(step.op, ops.NativeWhile) and step.program is not None
        after: list[str | None] = [None] * len(inputs)
        for k, pointer in zip(step.carried, outputs, strict=True):
            after[k] = pointer
        if not isinstance(step.program, IteratedGroup):
            wanted = [
                k for k, number in zip(step.carried, step.outputs, strict=True) if frame.plan.is_used(number)
            ]
            sources = enumerate(zip(inputs, after, strict=True))
            before = [(begins_empty(step, k) and new) or old for k, (old, new) in sources]
            point_loops.write(self, step.program, before, after, wanted, step.iterations)
            self.parts.append(step.program)
            return
        operands = [parameter(frame.plan.buffers[number].type) for number in step.inputs]
        loop = map_graphs(ops.While(step.op.cond, step.op.body), self.group)
        node = Node(loop, tuple(operands))
        self.run_graph(Graph(operands, unpack_results(node)), inputs, after)

    def _check(
        self, frame: PlanFrame, step: program_plan.CheckStep, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        """A check that ends the function if it fails."""
        node = step.node
        if step.call is not None and not step.outputs:
            node = Node(step.call, (parameter(frame.plan.buffers[step.inputs[0]].type),))
        graph, value, check = flag_check(node)
        targets = [*outputs, *[None] * (len(graph.results) - len(outputs))]
        flags = self.run_graph(self.group(graph), inputs, targets)[1:]
        if value is None:
            return
        failed, on = self.labels("failed", "on")
        self.write(f"br i1 {self.holds(flags[0])}, label %{failed}, label %{on}")
        self.begin(failed)
        self.run_graph(self.group(value), inputs, [self.at(0)])
        outermost = self._outermost and self._outermost[1]
        self.checks.append(FlaggedCheck(check.call, outermost or check.outermost))
        self.write(f"ret i64 {-1 - len(self.checks)}")
        self.begin(on)

    def run_graph(self, graph: Graph, inputs: Sequence[str], targets: Sequence[str | None]) -> list[str]:
        """Run a graph of groups."""
        return self.plan(
            planner.plan(graph, schedule=lambda: self.schedule, target=PROCESSOR), inputs, targets
        )
