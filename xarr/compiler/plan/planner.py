"""From a fused graph to its plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from xarr.backend import AbstractBackend
from xarr.compiler.plan import records
from xarr.compiler.plan.arena import Arena, aligned
from xarr.compiler.plan.overwriting import is_carried_through, is_update, overwrites, updated_values
from xarr.compiler.plan.records import Buffer, Memory, Peak, Plan, Slice, Step
from xarr.compiler.plan.verifier import verify
from xarr.config import current as config
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.ops.ciphers import cipher_of
from xarr.ir.ops.custom import CHECKED_INDICES
from xarr.ir.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from xarr.compiler.loop_ir.loops import Kernel

#: The numbers of the buffers of a value: one for an array, those of its elements for a tuple.
Numbers = int | tuple["Numbers", ...]
Program = Callable[[ops.Fusion], "Kernel"]


def plan(
    graph: Graph,
    device: str = "",
    donated: Sequence[int] = (),
    views: bool = True,
    program: Program | None = None,
) -> Plan:
    """The plan of a graph for `device`, whose name its buffers get.

    * `donated` - the numbers of parameters, arrays each, that may be written over,
    * `views` - whether ops whose result can be a view of their operand make one; not for an engine whose arrays have
      no strides,
    * `program` - the loop program of a group; without it, launches have none, and no scratch buffers.
    """
    return _Maker(device, views, program).plan(graph, tuple(donated))


def plan_for(graph: Graph, backend: AbstractBackend, donated: Sequence[int] = ()) -> Plan:
    """The plan of a graph that a backend has fused; verified with `config.verify_graphs`."""
    made = plan(graph, backend.name, donated, program=backend.loop_program)
    return verify(made) if config.verify_graphs else made


def peak(graph: Graph) -> Peak:
    """The memory that a graph's arrays take while it runs, each freed after its last use."""
    return _Maker("", True, None).plan(graph).peak


@dataclass(eq=False)
class _Draft:
    """A step whose buffers are not all decided."""

    kind: type[Step]
    node: Node
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    extra: dict[str, Any] = field(default_factory=dict)


class _Maker:
    """Plans of a graph and of those inside, each made once."""

    def __init__(self, device: str, views: bool, program: Program | None) -> None:
        self.device = device
        self.views = views
        self.program = program
        #: By the graph's identity; the graph is kept so that no other one gets its id.
        self._plans: dict[tuple[int, tuple[int, ...], bool], tuple[Graph, Plan]] = {}

    def plan(self, graph: Graph, donated: tuple[int, ...] = (), is_body: bool = False) -> Plan:
        """The plan of a graph; `is_body` for that of a loop, whose arrays are updated however small they are."""
        key = (id(graph), donated, is_body)
        if key not in self._plans:
            self._plans[key] = graph, _Planner(self, graph, donated, is_body).run()
        return self._plans[key][1]


class _Planner:
    """The plan of one graph: steps in the graph's order, then what is written over what, then where it lies."""

    def __init__(self, maker: _Maker, graph: Graph, donated: tuple[int, ...], is_body: bool) -> None:
        self.maker = maker
        self.graph = graph
        self.donated = donated
        self.is_body = is_body
        self.numbers: dict[Node, Numbers] = {}
        self.types: list[TensorType] = []
        self.base: list[int | None] = []
        self.is_view: list[bool] = []
        self.constants: dict[int, ops.Constant] = {}
        self.drafts: list[_Draft] = []

    def run(self) -> Plan:
        for node in self.graph.parameters:
            self.numbers[node] = self._new(node.type)
        parameters = tuple(range(len(self.types)))
        for node in self.graph.nodes:
            _ROWS.get(type(node.op), _Planner._compute)(self, node)
        results = tuple([number for node in self.graph.results for number in self._flat(node)])
        own = tuple([number for k in self.donated for number in self._flat(self.graph.parameters[k])])
        self._write_over(own, results)
        return _Layout(self, parameters, results).plan(own)

    # --- values ----------------------------------------------------------------------------------

    def _new(self, type: Type) -> Numbers:
        if isinstance(type, TupleType):
            return tuple([self._new(element) for element in type.elements])
        return self._array(type)

    def _array(self, type: TensorType, base: int | None = None, is_view: bool = False) -> int:
        self.types.append(type)
        self.base.append(base)
        self.is_view.append(is_view)
        return len(self.types) - 1

    def _flat(self, *nodes: Node) -> tuple[int, ...]:
        return flat(tuple([self.numbers[node] for node in nodes]))

    def _add(self, kind: type[Step], node: Node, outputs: tuple[int, ...], **extra: Any) -> _Draft:
        self.drafts.append(_Draft(kind, node, self._flat(*node.operands), outputs, extra))
        return self.drafts[-1]

    # --- nodes -----------------------------------------------------------------------------------

    def _compute(self, node: Node) -> None:
        if node.op.is_view and self.maker.views:
            (operand,) = self._flat(*node.operands)
            self.numbers[node] = number = self._array(node.tensor_type, operand, is_view=True)
            self._add(records.View, node, (number,))
        else:
            self._call(records.LibraryCall, node)

    def _call(self, kind: type[Step], node: Node, **extra: Any) -> None:
        self.numbers[node] = self._new(node.type)
        self._add(kind, node, self._flat(node), **extra)

    def _constant(self, node: Node) -> None:
        assert isinstance(node.op, ops.Constant)
        self.numbers[node] = number = self._array(node.tensor_type)
        self.constants[number] = node.op

    def _element(self, node: Node) -> None:
        assert isinstance(node.op, ops.GetTupleElement)
        elements = self.numbers[node.operands[0]]
        assert isinstance(elements, tuple), "only tuples have elements"
        self.numbers[node] = elements[node.op.index]

    def _tuple(self, node: Node) -> None:
        self.numbers[node] = tuple([self.numbers[operand] for operand in node.operands])

    def _barrier(self, node: Node) -> None:
        if isinstance(node.type, TupleType):
            self._tuple(node)
        else:
            self.numbers[node] = self.numbers[node.operands[0]]

    def _launch(self, node: Node) -> None:
        assert isinstance(node.op, ops.Fusion)
        program = self.maker.program
        self._call(records.Launch, node, program=None if program is None else program(node.op))

    def _native_loop(self, node: Node) -> None:
        assert isinstance(node.op, ops.NativeWhile)
        state = list(self._flat(*node.operands))
        carried = tuple([k for k in range(len(state)) if not is_carried_through(node.op, k)])
        outputs = tuple([self._array(node.operands[k].tensor_type) for k in carried])
        self._add(records.LaunchLoop, node, outputs, carried=carried)
        for k, number in zip(carried, outputs, strict=True):
            state[k] = number
        self.numbers[node] = tuple(state) if isinstance(node.type, TupleType) else state[0]
        for k, call in node.op.checks:
            self.drafts.append(_Draft(records.Check, node, (state[k],), (), {"call": call}))

    def _loop(self, node: Node) -> None:
        op = node.op
        assert isinstance(op, ops.While)
        state = list(self._flat(*node.operands))
        changed = [k for k in range(len(state)) if not is_carried_through(op, k)]
        outputs = tuple([self._array(node.operands[k].tensor_type) for k in changed])
        updated = updated_values(op.body)
        cond, body = self.maker.plan(op.cond), self.maker.plan(op.body, updated, is_body=True)
        draft = self._add(records.Loop, node, outputs, cond=cond, body=body)
        for k, number in zip(changed, outputs, strict=True):
            state[k] = number
        draft.extra["state"] = tuple(state)
        self.numbers[node] = tuple(state) if isinstance(node.type, TupleType) else state[0]

    def _branch(self, node: Node) -> None:
        self._call(records.Branch, node, branches=tuple(map(self.maker.plan, node.op.graphs)))

    def _function(self, node: Node) -> None:
        assert isinstance(node.op, ops.Call)
        if cipher_of(node) is not None:
            self._call(records.LibraryCall, node)
        else:
            self._call(records.PlanCall, node, plan=self.maker.plan(node.op.computation))

    def _python(self, node: Node) -> None:
        op = node.op
        assert isinstance(op, ops.CustomCall)
        is_check = op.function is None and op.call_target_name == CHECKED_INDICES
        if is_check:
            self._call(records.Check, node, call=op)
        else:
            self._call(records.PythonCall, node)

    def _check(self, node: Node) -> None:
        (operand, _) = self._flat(*node.operands)
        self.numbers[node] = number = self._array(node.tensor_type, operand, is_view=True)
        self._add(records.Check, node, (number,))

    # --- what is written over what ---------------------------------------------------------------

    def _write_over(self, donated: tuple[int, ...], results: tuple[int, ...]) -> None:
        """Decide which outputs lie in the memory of an input, and copy what loops write over but others need."""
        if not any(draft.kind in _OVERWRITING or is_update(draft.node) for draft in self.drafts):
            return
        last: dict[int, int] = {}
        free = set(donated)
        shared = set(results)
        for index, draft in enumerate(self.drafts):
            last.update(dict.fromkeys(draft.inputs, index))
            kept, own = _shared_by(draft), draft.kind in _NEW or is_update(draft.node)
            shared.update(kept)
            free.update(draft.outputs if own else ())
        free -= shared
        drafts, self.drafts = self.drafts, []
        for index, draft in enumerate(drafts):
            dead = {k for k, number in enumerate(draft.inputs) if number in free and last[number] == index}
            if draft.kind is records.Loop:
                self._own_state(draft, dead)
            elif draft.kind in _OVERWRITING or is_update(draft.node):
                self._overwrite(draft, dead)
            self.drafts.append(draft)

    def _overwrite(self, draft: _Draft, dead: set[int]) -> None:
        carried = draft.extra.get("carried")
        pairs = list(overwrites(draft.node, dead))
        if self.is_body and is_update(draft.node) and draft.inputs[0] < len(self.graph.parameters):
            pairs = [(0, 0)] if 0 in dead else []
        for result, operand in pairs:
            output = draft.outputs[carried.index(result) if carried else result]
            self.base[output] = draft.inputs[operand]

    def _own_state(self, draft: _Draft, dead: set[int]) -> None:
        """Give a loop memory of its own for the values that its body updates: the input's, or a copy."""
        inputs, state = list(draft.inputs), draft.extra["state"]
        for k in draft.extra["body"].donated:
            if k not in dead:
                number = self._array(self.types[inputs[k]])
                size = {"nbytes": self.types[number].nbytes}
                self.drafts.append(_Draft(records.Copy, draft.node, (inputs[k],), (number,), size))
                inputs[k] = number
            self.base[state[k]] = inputs[k]
        draft.inputs = tuple(inputs)


def _shared_by(draft: _Draft) -> Collection[int]:
    """The inputs of a step that it may make a view of, or that it reads as more than one operand."""
    if draft.kind is records.Loop:
        own = {draft.inputs[k] for k in draft.extra["body"].donated}
        return [each for each in draft.inputs if each not in own or draft.inputs.count(each) > 1]
    if draft.kind in _NEW or is_update(draft.node) or (draft.kind is records.Check and not draft.outputs):
        return [each for each in draft.inputs if draft.inputs.count(each) > 1]
    return draft.inputs


#: Steps whose outputs are arrays of their own, whatever library the engine uses.
_NEW: Final = frozenset({records.Launch, records.LaunchLoop})
#: Steps that may write over an input, with updates.
_OVERWRITING: Final = _NEW | {records.Loop}

_ROWS: Final[dict[type[Op], Callable[[_Planner, Node], None]]] = {
    ops.Call: _Planner._function,
    ops.Case: _Planner._branch,
    ops.Check: _Planner._check,
    ops.Constant: _Planner._constant,
    ops.CustomCall: _Planner._python,
    ops.Fusion: _Planner._launch,
    ops.GetTupleElement: _Planner._element,
    ops.If: _Planner._branch,
    ops.NativeWhile: _Planner._native_loop,
    ops.OptimizationBarrier: _Planner._barrier,
    ops.Tuple: _Planner._tuple,
    ops.While: _Planner._loop,
}


class _Layout:
    """Lives of the buffers, and where they lie."""

    def __init__(self, planner: _Planner, parameters: tuple[int, ...], results: tuple[int, ...]) -> None:
        self.planner = planner
        self.parameters = parameters
        self.results = results
        count, drafts = len(planner.types), planner.drafts
        self.start = [-1] * count
        for index, draft in enumerate(drafts):
            for number in draft.outputs:
                self.start[number] = index
        self.end = list(self.start)
        for index, draft in enumerate(drafts):
            for number in draft.inputs:
                self.end[number] = index
        for number in results:
            self.end[number] = len(drafts)
        self._find_roots()

    def _find_roots(self) -> None:
        """Which buffer has the memory of each, of which kind it is, and how long it is needed."""
        base, count = self.planner.base, len(self.start)
        self.root = list(range(count))
        memory: list[Memory] = ["arena"] * count
        for number in self.parameters:
            memory[number] = "argument"
        for number in self.planner.constants:
            memory[number] = "constant"
        self.last = list(self.end)
        # Copies, which are bases, may have higher numbers than what lies over them.
        for number in sorted(range(count), key=self.start.__getitem__) if base.count(None) < count else ():
            own = base[number]
            if own is not None:
                root = self.root[number] = self.root[own]
                self.last[root] = max(self.last[root], self.end[number])
        for number in self.results:
            root = self.root[number]
            if memory[root] == "arena":
                memory[root] = "result"
        self.memory = memory

    def plan(self, donated: tuple[int, ...]) -> Plan:
        planner, start, drafts = self.planner, self.start, self.planner.drafts
        types, arena = planner.types, Arena()
        offsets: list[int | None] = [None] * len(types)
        born: list[list[int]] = [[] for _ in drafts]
        dying: list[list[int]] = [[] for _ in drafts]
        for number, root in enumerate(self.root):
            if root == number and self.memory[number] in ("arena", "result") and start[number] >= 0:
                born[start[number]].append(number)
                if self.last[number] < len(drafts):
                    dying[self.last[number]].append(number)
        arguments = sum(types[number].nbytes for number in self.parameters)
        in_use = most = arguments
        steps = []
        for index, draft in enumerate(drafts):
            for number in born[index]:
                nbytes = types[number].nbytes
                in_use += nbytes
                if self.memory[number] == "arena":
                    offsets[number] = arena.allocate(nbytes)
            inside, size, extra = _inside(draft)
            most = max(most, in_use + inside)
            workspace = None
            if size:
                workspace = Slice(arena.allocate(size), size)
                arena.release(workspace.offset, size)
            steps.append(draft.kind(draft.node, draft.inputs, draft.outputs, workspace, **extra))
            for number in dying[index]:
                in_use -= types[number].nbytes
                offset = offsets[number]
                if offset is not None:
                    arena.release(offset, types[number].nbytes)
        places = tuple([self.parameters.index(number) for number in donated])
        return Plan(
            planner.graph,
            self._buffers(offsets),
            tuple(steps),
            self.parameters,
            self.results,
            places,
            arena.nbytes,
            Peak(most, arguments),
        )

    def _buffers(self, offsets: list[int | None]) -> tuple[Buffer, ...]:
        planner, device = self.planner, self.planner.maker.device
        return tuple(
            [
                Buffer(
                    number,
                    type,
                    device,
                    self.start[number],
                    self.end[number],
                    self.memory[root := self.root[number]],
                    offsets[root],
                    planner.base[number],
                    planner.is_view[number],
                    planner.constants.get(number),
                )
                for number, type in enumerate(planner.types)
            ]
        )


def _inside(draft: _Draft) -> tuple[int, int, dict[str, Any]]:
    """The bytes in use inside of a step at once, those of its workspace, and the fields of its kind."""
    extra = draft.extra
    if draft.kind is records.Launch:
        program = extra["program"]
        scratch = [] if program is None else [buffer.nbytes for buffer in program.scratch]
        return sum(scratch), sum(map(aligned, scratch)), extra
    if draft.kind is records.LaunchLoop:
        turns = _turns(draft.node.op)
        return sum(turns), sum(map(aligned, turns)), extra
    if draft.kind is records.Loop:
        cond, body = extra["cond"], extra["body"]
        size = aligned(max(cond.arena, body.arena))
        spares: list[int | None] = []
        for k, result in enumerate(body.results):
            has_spare = k not in body.donated and result != body.parameters[k]
            spares.append(size if has_spare else None)
            size += aligned(body.buffers[result].type.nbytes) if has_spare else 0
        spares.append(size)
        extra = {**extra, "spares": tuple(spares)}
        inside = max(each.peak.total - each.peak.arguments for each in (cond, body))
        return inside, size + aligned(1), extra
    plans = (extra["plan"],) if "plan" in extra else extra.get("branches", ())
    # What the results take is counted as outputs of the step.
    needs = [
        each.peak.total
        - each.peak.arguments
        - sum(each.buffers[number].type.nbytes for number in each.results)
        for each in plans
    ]
    return max([0, *needs]), max([0, *[each.arena for each in plans]]), extra


def _turns(loop: Op) -> list[int]:
    """Bytes of the arrays that take turns with the results, where a native loop repeats a group."""
    assert isinstance(loop, ops.NativeWhile)
    found = []
    for result in loop.body.results:
        source = result.operands[0] if isinstance(result.op, ops.GetTupleElement) else result
        if isinstance(source.op, ops.Fusion):
            found.append(result.tensor_type.nbytes)
    return found


def flat(numbers: Numbers) -> tuple[int, ...]:
    """The numbers of buffers in a tuple of tuples, in order."""
    if isinstance(numbers, int):
        return (numbers,)
    found: list[int] = []
    for each in numbers:
        found += (each,) if isinstance(each, int) else flat(each)
    return tuple(found)
