"""From a fused graph to its plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from xarr.backend import AbstractBackend
from xarr.base.configuration import current as config
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.layout import Peak
from xarr.compiler.plan.loop_programs import build_native_loop
from xarr.compiler.plan.overwriting import (
    is_beside,
    is_carried_through,
    is_update,
    overwrites,
    updated_values,
    writes_over_source,
)
from xarr.compiler.plan.ownership import shared_buffers
from xarr.compiler.plan.program_plan import Plan, PlanBuffer, Remarks, Step, no_remarks
from xarr.compiler.plan.update_order import reads_before_updates
from xarr.compiler.plan.verifier import verify
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.ops.custom_calls import CHECKED_INDICES
from xarr.ir.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from xarr.compiler.schedule import Schedule
    from xarr.compiler.while_loops.iterated_groups import IteratedGroup
    from xarr.compiler.while_loops.native_loops import NativeLoop

#: The numbers of the buffers of a value: one for an array, those of its elements for a tuple.
Numbers = int | tuple["Numbers", ...]
_DEFAULT: Final = Target()


def plan(
    graph: Graph,
    device: str = "",
    donated: Sequence[int] = (),
    views: bool = True,
    schedule: Callable[[], Schedule | None] | None = None,
    target: Target = _DEFAULT,
    remarks: Remarks = no_remarks,
) -> Plan:
    """The plan of a graph for `device`, whose name its buffers get.

    * `donated` - the numbers of parameters, arrays each, that may be written over,
    * `views` - whether ops whose result can be a view of their operand make one; not for an engine whose arrays have
      no strides,
    * `schedule` - asked at the first group for what builds loop programs; without it, launches have none, and no
      scratch buffers,
    * `target` - the machine's numbers: from how many bytes on results are written over operands,
    * `remarks` - says what the text of the plan says of some of its steps.
    """
    return _Maker(device, views, schedule, target, remarks).plan(graph, tuple(donated))


def plan_for(graph: Graph, backend: AbstractBackend, donated: Sequence[int] = ()) -> Plan:
    """The plan of a graph that a backend has fused; verified with `config.verify_graphs`."""
    made = plan(
        graph,
        backend.device().name,
        donated,
        backend.has_views,
        schedule=backend.schedule,
        target=backend.target,
        remarks=backend.remarks,
    )
    return verify(made) if config.verify_graphs else made


def peak(graph: Graph, overwrites: bool = True, target: Target = _DEFAULT) -> Peak:
    """The memory that a graph's arrays take while it runs on a machine, each freed after its last use.

    Without `overwrites` each result has memory of its own, except in the computations that ops carry.
    """
    maker = _Maker("", True, None, target)
    return _Planner(maker, graph, (), False, overwrites).run().layout.peak


class _Maker:
    """Plans of a graph and of those inside, each made once."""

    def __init__(
        self,
        device: str,
        views: bool,
        schedule: Callable[[], Schedule | None] | None,
        target: Target,
        remarks: Remarks = no_remarks,
    ) -> None:
        self.remarks = remarks
        self.min_reused_bytes = target.min_reused_bytes
        self.device = device
        self.views = views
        self._schedule = schedule
        #: By the graph's identity; the graph is kept so that no other one gets its id.
        self._plans: dict[tuple[int, tuple[int, ...], bool], tuple[Graph, Plan]] = {}

    @cached_property
    def schedule(self) -> Schedule | None:
        return None if self._schedule is None else self._schedule()

    def loop_program(self, loop: ops.NativeWhile) -> NativeLoop | IteratedGroup | None:
        return None if self.schedule is None else build_native_loop(loop, self.schedule)

    def plan(self, graph: Graph, donated: tuple[int, ...] = (), is_body: bool = False) -> Plan:
        """The plan of a graph; `is_body` for that of a loop, whose arrays are updated however small they are."""
        key = (id(graph), donated, is_body)
        if key not in self._plans:
            self._plans[key] = graph, _Planner(self, graph, donated, is_body).run()
        return self._plans[key][1]


def _allocated_late(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes, arrays that hold nothing yet behind all others but what uses them: till then their memory is free."""
    waiting: dict[Node, None] = {}
    for node in nodes:
        if isinstance(node.op, ops.Empty):
            waiting[node] = None
            continue
        for operand in dict.fromkeys(node.operands):
            if operand in waiting:
                del waiting[operand]
                yield operand
        yield node
    yield from waiting


class _Planner:
    """The plan of one graph: steps in the graph's order, then what is written over what.

    A value's number is that of its buffer.  The lists have an entry for each buffer.
    """

    def __init__(
        self,
        maker: _Maker,
        graph: Graph,
        donated: tuple[int, ...],
        is_body: bool,
        overwrites: bool = True,
    ) -> None:
        self.overwrites = overwrites
        self.maker = maker
        self.graph = graph
        self.donated = donated
        self.is_body = is_body
        self.numbers: dict[Node, Any] = {}
        self.types: list[TensorType] = []
        self.start: list[int] = []
        self.end: list[int] = []
        self.base: list[int | None] = []
        self.is_view: list[bool] = []
        self.constants: list[ops.Constant | None] = []
        self.steps: list[Step] = []
        #: Whether some step may write over an input.
        self.may_overwrite = False

    def run(self) -> Plan:
        for node in self.graph.parameters:
            self.numbers[node] = self._new(node.type, -1)
        parameters = tuple(range(len(self.types)))
        nodes = reads_before_updates(self.graph) if self.is_body else self.graph.nodes
        for node in _allocated_late(nodes):
            row = _ROWS.get(type(node.op))
            if row is None:
                self._compute(node)
            else:
                row(self, node)
        results = self._inputs(self.graph.results)
        own = self._inputs([self.graph.parameters[k] for k in self.donated]) if self.donated else ()
        if self.may_overwrite and self.overwrites:
            self._write_over(own, results)
        for number in results:
            self.end[number] = len(self.steps)
        return Plan(
            self.graph,
            self._buffers(),
            tuple(self.steps),
            parameters,
            results,
            own,
            self.maker.remarks,
        )

    def _buffers(self) -> tuple[PlanBuffer, ...]:
        device = self.maker.device
        columns = (self.types, self.start, self.end, self.base, self.is_view, self.constants)
        rows = enumerate(zip(*columns, strict=True))
        return tuple([PlanBuffer(number, type, device, *rest) for number, (type, *rest) in rows])

    # --- values ----------------------------------------------------------------------------------

    def _new(self, type: Type, start: int) -> Any:
        """The numbers of new buffers, written by step `start`."""
        if isinstance(type, TupleType):
            return tuple([self._new(element, start) for element in type.elements])
        return self._array(type, start)

    def _array(self, type: TensorType, start: int, base: int | None = None, is_view: bool = False) -> int:
        self.types.append(type)
        self.start.append(start)
        self.end.append(start)
        self.base.append(base)
        self.is_view.append(is_view)
        self.constants.append(None)
        return len(self.start) - 1

    def _inputs(self, nodes: Sequence[Node]) -> tuple[int, ...]:
        """The buffers of nodes, elements of tuples one by one."""
        numbers = self.numbers
        values = tuple(map(numbers.__getitem__, nodes))
        return flat(values) if tuple in map(type, values) else values

    def _add(self, step: Step) -> None:
        index = len(self.steps)
        self.steps.append(step)
        for number in step.inputs:
            self.end[number] = index

    # --- nodes -----------------------------------------------------------------------------------

    def _compute(self, node: Node) -> None:
        inputs, start = self._inputs(node.operands), len(self.steps)
        if node.op.is_view and self.maker.views:
            self.numbers[node] = number = self._array(node.tensor_type, start, inputs[0], is_view=True)
            self._add(program_plan.View(node, inputs, (number,)))
        elif type(node.type) is TensorType:
            self.numbers[node] = number = self._array(node.type, start)
            self._add(program_plan.LibraryCall(node, inputs, (number,)))
        else:
            self._call(program_plan.LibraryCall, node)

    def _update(self, node: Node) -> None:
        if is_update(node):
            self.may_overwrite = True
            inputs = self._inputs(node.operands)
            if self.is_body and self.maker.views and writes_over_source(node):
                source = node.operands[1].tensor_type
                copy = self._array(source, len(self.steps))
                self._add(program_plan.Copy(node, inputs[1:2], (copy,), source.nbytes))
                inputs = (inputs[0], copy, *inputs[2:])
            self._call(program_plan.Update, node, inputs=inputs)
        else:
            self._compute(node)

    def _call(
        self, kind: Callable[..., Step], node: Node, *fields: Any, inputs: tuple[int, ...] | None = None
    ) -> None:
        """Add a step of some kind, whose outputs are new buffers; inputs: those of the operands without it."""
        self.numbers[node] = outputs = self._new(node.type, len(self.steps))
        inputs = self._inputs(node.operands) if inputs is None else inputs
        self._add(kind(node, inputs, flat(outputs), *fields))

    def _constant(self, node: Node) -> None:
        self.numbers[node] = self._array(node.tensor_type, -1)
        self.constants[-1] = node.op.expect(ops.Constant)

    def _empty(self, node: Node) -> None:
        """An array that holds nothing yet: in the memory of a donated argument that nothing needs, if there is one."""
        unneeded = self._unneeded_donations(node.type) if self.donated else []
        if unneeded:
            self.numbers[node] = unneeded[0]
        else:
            self._call(program_plan.Allocate, node)

    def _unneeded_donations(self, type: Type) -> list[Any]:
        """The buffers of donated arguments of a type that nothing needs, and no array that holds nothing yet has."""
        needed = {each for node in self.graph.nodes for each in node.operands}.union(self.graph.results)
        reused = [number for node, number in self.numbers.items() if isinstance(node.op, ops.Empty)]
        arguments = [self.graph.parameters[k] for k in self.donated]
        numbers = [self.numbers[each] for each in arguments if each.type == type and each not in needed]
        return [number for number in numbers if number not in reused]

    def _element(self, node: Node) -> None:
        self.numbers[node] = self.numbers[node.operands[0]][node.op.expect(ops.GetTupleElement).index]

    def _tuple(self, node: Node) -> None:
        self.numbers[node] = tuple([self.numbers[operand] for operand in node.operands])

    def _barrier(self, node: Node) -> None:
        if isinstance(node.type, TupleType):
            self._tuple(node)
        else:
            self.numbers[node] = self.numbers[node.operands[0]]

    def _launch(self, node: Node) -> None:
        assert isinstance(node.op, ops.Fusion)
        self.may_overwrite = True
        schedule = self.maker.schedule
        self._call(program_plan.Launch, node, None if schedule is None else schedule.build(node.op))

    def _carry(self, node: Node) -> tuple[list[int], tuple[int, ...], tuple[int, ...]]:
        """The state of a loop, which has an output for each value that changes, with these numbers and outputs."""
        self.may_overwrite = True
        state, op, start = list(self._inputs(node.operands)), node.op.expect(ops.While), len(self.steps)
        carried = tuple([k for k in range(len(state)) if not is_carried_through(op, k)])
        outputs = tuple([self._array(node.operands[k].tensor_type, start) for k in carried])
        for k, number in zip(carried, outputs, strict=True):
            state[k] = number
        self.numbers[node] = tuple(state) if isinstance(node.type, TupleType) else state[0]
        return state, carried, outputs

    def _native_loop(self, node: Node) -> None:
        assert isinstance(node.op, ops.NativeWhile)
        state, carried, outputs = self._carry(node)
        program = self.maker.loop_program(node.op)
        self._add(program_plan.LaunchLoop(node, self._inputs(node.operands), outputs, program, carried))
        for k, call in node.op.checks:
            self._add(program_plan.CheckStep(node, (state[k],), (), call))

    def _loop(self, node: Node) -> None:
        assert isinstance(node.op, ops.While)
        cond, body = node.op.cond, node.op.body
        state, _, outputs = self._carry(node)
        plans = (
            self.maker.plan(cond),
            self.maker.plan(body, updated_values(body, self.maker.min_reused_bytes), is_body=True),
        )
        self._add(program_plan.LoopStep(node, self._inputs(node.operands), outputs, *plans, tuple(state)))

    def _branch(self, node: Node) -> None:
        self._call(program_plan.Branch, node, tuple(map(self.maker.plan, node.op.graphs)))

    def _function(self, node: Node) -> None:
        self._call(program_plan.PlanCall, node, self.maker.plan(node.op.expect(ops.Call).computation))

    def _python(self, node: Node) -> None:
        op = node.op.expect(ops.CustomCall)
        if op.function is None and op.call_target_name == CHECKED_INDICES:
            self._call(program_plan.CheckStep, node, op)
        else:
            self._call(program_plan.PythonCall, node)

    def _check(self, node: Node) -> None:
        inputs = self._inputs(node.operands)
        self.numbers[node] = number = self._array(node.tensor_type, len(self.steps), inputs[0], is_view=True)
        self._add(program_plan.CheckStep(node, inputs, (number,)))

    # --- what is written over what ---------------------------------------------------------------

    def _write_over(self, donated: tuple[int, ...], results: tuple[int, ...]) -> None:
        """Decide which outputs lie in the memory of an input, and copy what loops write over but others need."""
        free = set(donated)
        for step in self.steps:
            if step.makes_new:
                free.update(step.outputs)
        free -= shared_buffers(self.steps, frozenset(results)).union(results)
        viewed, views = self._ends_of_views(), self._list_views()
        steps, self.steps = self.steps, []
        for index, step in enumerate(steps):
            dead = {
                k
                for k, number in enumerate(step.inputs)
                if number in free
                and self.end[number] == index
                and not self._is_seen(number, viewed, views, step, index)
            }
            if isinstance(step, program_plan.LoopStep):
                self.steps.append(self._with_own_state(step, dead))
            else:
                if dead and step.makes_new:
                    self._overwrite(step, dead)
                self.steps.append(step)
        if len(steps) < len(self.steps):
            self._count_again()

    def _is_seen(
        self, number: int, viewed: dict[int, int], views: dict[int, list[int]], step: Step, index: int
    ) -> bool:
        """Whether a view of a buffer is needed when a step writes over the buffer, or later."""
        end = viewed.get(number, -1)
        if end != index:
            return end > index
        stack = [number]
        while stack:
            for view in views.get(stack.pop(), ()):
                if self.end[view] == index and not is_beside(step, view):
                    return True
                stack.append(view)
        return False

    def _list_views(self) -> dict[int, list[int]]:
        """The views of each buffer that has some, without views of these."""
        views: dict[int, list[int]] = {}
        for number, base in enumerate(self.base):
            if base is not None and self.is_view[number]:
                views.setdefault(base, []).append(number)
        return views

    def _ends_of_views(self) -> dict[int, int]:
        """For each buffer with views the last step that reads one of them, or a view of it."""
        ends: dict[int, int] = {}
        for number in reversed(range(len(self.base))):
            base = self.base[number]
            if base is not None and self.is_view[number]:
                ends[base] = max(ends.get(base, -1), self.end[number], ends.get(number, -1))
        return ends

    def _overwrite(self, step: Step, dead: set[int]) -> None:
        pairs = list(overwrites(step.node, dead, self.maker.min_reused_bytes))
        if (
            self.is_body
            and isinstance(step, program_plan.Update)
            and step.inputs[0] < len(self.graph.parameters)
        ):
            pairs = [(0, 0)] if 0 in dead else []
        for result, operand in pairs:
            index = step.carried.index(result) if isinstance(step, program_plan.LaunchLoop) else result
            self.base[step.outputs[index]] = step.inputs[operand]

    def _with_own_state(self, loop: program_plan.LoopStep, dead: set[int]) -> Step:
        """The loop over memory of its own for the values that its body updates: the input's, or a copy."""
        inputs = list(loop.inputs)
        for k in loop.body.donated:
            # An argument may be read-only when it comes to it: an engine copies it where it must.
            if k not in dead or self._root(inputs[k]) < len(self.graph.parameters):
                copy = self._array(self.types[inputs[k]], -1)
                self.steps.append(
                    program_plan.Copy(loop.node, (inputs[k],), (copy,), self.types[copy].nbytes)
                )
                inputs[k] = copy
            self.base[loop.state[k]] = inputs[k]
        return program_plan.LoopStep(loop.node, tuple(inputs), loop.outputs, loop.cond, loop.body, loop.state)

    def _root(self, number: int) -> int:
        while (base := self.base[number]) is not None:
            number = base
        return number

    def _count_again(self) -> None:
        """First and last steps of buffers, after steps were put between others."""
        for index, step in enumerate(self.steps):
            for number in step.outputs:
                self.start[number] = self.end[number] = index
            for number in step.inputs:
                self.end[number] = index


_ROWS: Final[dict[type[Op], Callable[[_Planner, Node], None]]] = {
    ops.Call: _Planner._function,
    ops.Case: _Planner._branch,
    ops.Check: _Planner._check,
    ops.Constant: _Planner._constant,
    ops.CustomCall: _Planner._python,
    ops.DynamicUpdateSlice: _Planner._update,
    ops.Empty: _Planner._empty,
    ops.Fusion: _Planner._launch,
    ops.GetTupleElement: _Planner._element,
    ops.If: _Planner._branch,
    ops.NativeWhile: _Planner._native_loop,
    ops.OptimizationBarrier: _Planner._barrier,
    ops.StridedUpdate: _Planner._update,
    ops.Tuple: _Planner._tuple,
    ops.While: _Planner._loop,
}
#: Ops that are no more than steps, or no step at all, for every engine.
PLANNED: Final = frozenset(_ROWS) - {ops.DynamicUpdateSlice, ops.StridedUpdate}


def flat(numbers: Numbers) -> tuple[int, ...]:
    """The numbers of buffers in a tuple of tuples, in order."""
    if isinstance(numbers, int):
        return (numbers,)
    arrays: list[int] = []
    for each in numbers:
        arrays += (each,) if isinstance(each, int) else flat(each)
    return tuple(arrays)
