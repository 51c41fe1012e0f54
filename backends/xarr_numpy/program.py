"""From a plan to the source of a Python function that runs it, one line a step.

The function leaves memory to NumPy: it lets go of a buffer after its last use, and writes over one where the plan
says so.  Offsets in the plan's arena, workspaces, and the alternating states of loops are NumPy's own affair.

    def program(a0, a1):
        v0 = np.exp(a0)
        v1 = v0 * a1[None, :]
        return (finish(v1),)

A broadcast costs nothing as long as element-wise operations use it: the array is an *unmaterialised broadcast*, with
size 1 in the repeated dimensions, and NumPy's own broadcasting repeats it.  Whatever else uses it gets it in full.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from textwrap import indent
from threading import Lock
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from xarr.backend import DirectCall, mark_failed
from xarr.base.at_once.numpy_warnings import loud, quiet
from xarr.base.progress import ProgressCallback, StepCounter
from xarr.compiler.plan.planner import plan
from xarr.compiler.plan.program_plan import Launch, Plan, Step
from xarr.errors import BackendError
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType, TupleType, Type
from xarr_numpy import engine
from xarr_numpy.functions.results import finish
from xarr_numpy.ops.control import STEPS, assignment
from xarr_numpy.ops.table import SCOPE, TABLE, literal
from xarr_numpy.processor import PROCESSOR

if TYPE_CHECKING:
    from xarr_numpy.compiled.kernel import CompiledKernel
    from xarr_numpy.compiled.plans.native_step import NativePlan

#: Steps of which the kernels are prepared before the first of them is made.
_LOOKED_AHEAD: Final = 1024


@dataclass(frozen=True)
class NumpyProgram:
    """A plan as a function.

    * `parts` - its source, and what that calls: kernels and functions of the program, as objects that print it,
    * `lines` - the node that each line computes,
    * `origins` - where its machine code comes from, and how long that took,
    * `direct` - gives the program as one call, if it is one short kernel, or machine code alone.
    """

    plan: Plan
    parts: tuple[Any, ...]
    function: Callable[..., tuple[Any, ...]]
    code: CodeType
    lines: dict[int, Node]
    origins: tuple[str, ...] = ()
    direct: Callable[[], DirectCall | None] = lambda: None

    @property
    def is_final(self) -> bool:
        """Whether its machine code stays as it is."""
        return True

    @property
    def text(self) -> str:
        """Its source, with that of what it calls: written when it is asked for, since kernels may be many."""
        return "\n".join(map(str, self.parts))

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        state = quiet()
        try:
            return self.function(*arguments)
        except BaseException as error:
            self._say_where(error)
            raise
        finally:
            loud(state)

    def __str__(self) -> str:
        """The source, and how long its machine code took to make."""
        return "".join([self.text, *[f"# {origin}\n" for origin in self.origins]])

    __repr__ = __str__

    def _say_where(self, error: BaseException) -> None:
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is self.code:
                node = self.lines.get(trace.tb_lineno)
                if node is not None:
                    mark_failed(error, node)
            trace = trace.tb_next


@dataclass(frozen=True)
class _Named:
    """A callee of a program and its name: prints as a paragraph with the name above."""

    name: str
    callee: Any

    def __str__(self) -> str:
        return f"{self.name}:\n{indent(str(self.callee), '    ')}\n"


class SilentProgram(NumpyProgram):
    """A program of compiled loops alone, which warn of nothing."""

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        try:
            return self.function(*arguments)
        except BaseException as error:
            self._say_where(error)
            raise


class NativeProgram(NumpyProgram):
    """A plan that is one function of machine code, which itself says where an error is raised."""

    @classmethod
    def of(cls, plan: Plan, native: NativePlan) -> NativeProgram:
        """The program that calls the function."""
        arguments = ", ".join([f"a{k}" for k in range(len(plan.parameters))])
        results = [f"v{k}" for k in range(len(plan.results))]
        finished = [
            f"{'finish' if number in plan.parameters else 'seal'}({name}), "
            for name, number in zip(results, plan.results, strict=True)
        ]
        head = f"def program({arguments}):"
        call = f"{', '.join(results)}, = k0({arguments})"
        text = f"{head}\n    {call}\n    return ({''.join(finished)})\n"

        def function(*arguments: Any) -> tuple[Any, ...]:
            return tuple([finish(value) for value in native.call(*arguments)])

        parts, origins = (text, _Named("k0", native)), (f"k0: {native.origin}",)
        return cls(plan, parts, function, function.__code__, {}, origins, lambda: native.direct)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        return self.function(*arguments)


@dataclass(frozen=True, kw_only=True)
class QuickProgram(NumpyProgram):
    """A program with machine code that was made without optimisation, which `rest` makes good for when that pays."""

    program: NumpyProgram
    rest: Optimisation

    @classmethod
    def of(cls, program: NumpyProgram, quick: Sequence[Quick], optimise: Callable[[], None]) -> NumpyProgram:
        """The program, whose quick parts `optimise` makes anew; the program itself if it has none."""
        lines = sum({each.text: each.lines for each in quick if each.is_quick}.values())
        if not lines:
            return program
        own = {each.name: getattr(program, each.name) for each in fields(NumpyProgram)}
        seconds = lines * PROCESSOR.optimising_time * PROCESSOR.quick_share * 1e-9
        return cls(**own, program=program, rest=Optimisation(optimise, seconds))

    @property
    def is_final(self) -> bool:
        return self.rest.is_done

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        rest = self.rest
        if rest.is_done:
            return self.program(*arguments)
        if rest.seconds <= 0:
            rest.run()
        started = time.perf_counter()
        try:
            return self.program(*arguments)
        finally:
            rest.seconds -= time.perf_counter() - started


@dataclass
class Optimisation:
    """Work to be done when quick machine code has run for so many seconds: a part of those that optimising it takes.

    So what a program takes, however often it is called, is never much more than if it were optimised at once.
    """

    optimise: Callable[[], None]
    seconds: float
    is_done: bool = False
    lock: Lock = field(default_factory=Lock)

    def run(self) -> None:
        """Optimise, unless another thread does meanwhile; what is interrupted is done by the next call."""
        if self.lock.acquire(blocking=False):
            try:
                self.optimise()
                self.is_done = True
            finally:
                self.lock.release()


class Quick(Protocol):
    """Machine code that may have been made without optimisation, its text, and the number of lines of that."""

    lines: int
    is_quick: bool

    @property
    def text(self) -> str: ...


class Emitter:
    """Writes a plan's steps as the lines of a function.

    `lanes` makes a program for a scalar computation (a combiner, a comparator, the body of a map) that
    runs on whole arrays, one lane for each element.  With `counts` the program takes a `StepCounter` first,
    and has it count each step.  Where it `may_be_quick` the machine code of many kernels is made without optimisation,
    until that pays.
    """

    def __init__(
        self,
        plan: Plan,
        lanes: bool = False,
        name: str = "program",
        counts: bool = False,
        may_be_quick: bool = False,
    ) -> None:
        self.plan = plan
        self.may_be_quick = (
            may_be_quick and len(engine.launched_programs(plan.steps)) >= PROCESSOR.min_quick_kernels
        )
        self.lanes = lanes
        self.name = name
        self.counts = counts
        #: The buffers that are unmaterialised broadcasts: of size 1 where their type repeats them.
        self.broadcasts: set[int] = set()
        #: Those that are arrays of no dimension at all: a scalar broadcast, and what came of it.
        self.scalars: set[int] = set()
        #: The number of the first buffer that is no argument.
        self._first = len(plan.parameters)
        #: The names of buffers, as far as steps have read or written them.
        self._names: dict[int, str] = {}
        self.body: list[tuple[str, Node | None]] = []
        #: The names of what several nodes are parts of, by the expressions for it.
        self.shared: dict[str, str] = {}
        #: What prints the functions and kernels that it calls.
        self.nested: list[Any] = []
        self.origins: list[str] = []
        self.scope: dict[str, Any] = {}
        #: Name and function of each graph and plan that steps carry, here and in the functions around: written once.
        self._functions: dict[tuple[Any, ...], tuple[str, Any, Graph | Plan]] = {}
        #: The names of kernels, of those that write over an operand apart.
        self._kernel_names: dict[tuple[CompiledKernel, bool], str] = {}
        #: How many names begin with each prefix.
        self._counts: dict[str, int] = {}
        self._dtypes: dict[np.dtype[Any], str] = {}

    def constant(self, value: Any, prefix: str = "c") -> str:
        """A name in the program's scope for an object that has no literal."""
        if isinstance(value, np.dtype) and value in self._dtypes:
            return self._dtypes[value]
        count = self._counts.get(prefix, 0)
        self._counts[prefix] = count + 1
        name = f"{prefix}{count}"
        self.scope[name] = value
        if isinstance(value, np.dtype):
            self._dtypes[value] = name
        return name

    def function(self, graph: Graph | Plan, lanes: bool = False, counts: bool = False) -> str:
        """A name for the program of a graph or plan that a step carries; its source follows that of this program."""
        lanes = lanes or self.lanes
        key = (id(graph), lanes, counts)
        shared = self._functions.get(key)
        if shared is not None:
            name, self.scope[name], _ = shared
            return name
        prefix = "f" if self.name == "program" else f"{self.name}_"
        name = self.constant(None, prefix)
        made = graph if isinstance(graph, Plan) else plan(graph, schedule=engine.schedule, target=PROCESSOR)
        emitter = Emitter(made, lanes, name, counts)
        emitter._functions = self._functions
        inner = emitter.run()
        self.scope[name] = inner.function
        self._functions[key] = name, inner.function, graph  # kept, so that its id is its own
        self.nested += inner.parts
        self.origins += [f"{name} {origin}" for origin in inner.origins]
        return name

    def kernel(self, step: Step) -> CompiledKernel:
        """The compiled kernel that a launch calls."""
        assert isinstance(step, Launch) and step.program is not None, "the plan was made with a schedule"
        # Functions inside of a program are never optimised.
        may_be_shared = self.name == "program" and not (self.lanes or self.counts)
        return engine.kernel(step.program, tuple(self.types(step.outputs)), self.may_be_quick, may_be_shared)

    def kernel_name(self, kernel: CompiledKernel, writes_over: bool) -> str:
        """A name for the call of a kernel, one for all launches; its text follows that of this program."""
        key = kernel, writes_over
        if key not in self._kernel_names:
            call = kernel.write_over if writes_over else kernel.call
            name = self._kernel_names[key] = self.constant(call, "k")
            self.show(name, kernel)
        return self._kernel_names[key]

    def show(self, name: str, kernel: Any) -> None:
        """Let the text of a kernel follow that of this program."""
        self.nested.append(_Named(name, kernel))
        if kernel.origin:
            self.origins.append(f"{name}: {kernel.origin}")

    def type(self, number: int) -> TensorType:
        """The type of a buffer."""
        return self.plan.buffers[number].type

    def types(self, numbers: Iterable[int]) -> list[TensorType]:
        """The types of buffers."""
        return [self.type(number) for number in numbers]

    def result_type(self, step: Step) -> TensorType:
        """The type of the one output of a step."""
        (number,) = step.outputs
        return self.type(number)

    def mark_broadcast(self, step: Step) -> None:
        """Say that the outputs have size 1 where their types repeat them.  Lanes have no shape to repeat."""
        if not self.lanes:
            self.broadcasts.update(step.outputs)

    def in_place_pairs(self, step: Step) -> tuple[tuple[int, int], ...]:
        """The results of a step that are written over an operand: (result, operand)."""
        return () if self.lanes else self.plan.input_output_aliases(step)

    def buffer_name(self, number: int) -> str:
        """The name of a buffer; a constant gets one, and a line, when it is first used."""
        name = self._names.get(number)
        if name is None:
            name = self._names[number] = f"v{number - self._first}"
            constant = self.plan.buffers[number].constant
            assert constant is not None, f"b{number} is read before it is written"
            self.body.append((f"{name} = {literal(self, constant)}", None))
        return name

    def value(self, number: int) -> str:
        """The expression for a buffer with its whole shape."""
        name = self.buffer_name(number)
        return f"np.broadcast_to({name}, {self.type(number).shape})" if number in self.broadcasts else name

    def values(self, numbers: Iterable[int]) -> str:
        """The expressions for buffers, with commas between them."""
        return ", ".join([self.value(number) for number in numbers])

    def operands(self, step: Step) -> list[str]:
        """The expressions for the inputs of a step."""
        return [self.value(number) for number in step.inputs]

    def run(self) -> NumpyProgram:
        arguments = self._parameters()
        dead = self._dead()
        for index, (step, gone) in enumerate(zip(self.plan.steps, dead, strict=True)):
            if index % _LOOKED_AHEAD == 0 and not self.lanes:
                engine.expect_kernels(self.plan.steps[index : index + _LOOKED_AHEAD])
            self.emit(step)
            if gone and (names := [self._names[number] for number in gone if number in self._names]):
                self.body.append((f"del {', '.join(names)}", None))
            if self.counts:
                self.body.append(("counter.step()", None))
        results = self._results()
        self.body.append((f"return ({results})" if results else "return ()", None))
        program = self._compile(arguments)
        return QuickProgram.of(program, [kernel for kernel, _ in self._kernel_names], self._optimise)

    def _optimise(self) -> None:
        """Let the program call kernels with optimised code."""
        for (kernel, writes_over), name in self._kernel_names.items():
            kernel.optimise()
            self.scope[name] = kernel.write_over if writes_over else kernel.call

    def _parameters(self) -> str:
        """The names of the arguments; tuples among them are unpacked, except in functions inside of the program."""
        numbers = iter(self.plan.parameters)
        if self.name != "program":
            self._names = {number: f"a{index}" for index, number in enumerate(numbers)}
            return ", ".join(self._names.values())
        for index, node in enumerate(self.plan.graph.parameters):
            if isinstance(node.type, TupleType):
                self.body.append((f"{self._unpack(node.type, f'a{index}', numbers)} = a{index}", None))
            else:
                self._names[next(numbers)] = f"a{index}"
        return ", ".join([f"a{index}" for index in range(len(self.plan.graph.parameters))])

    def _unpack(self, type: TupleType, name: str, numbers: Iterator[int]) -> str:
        parts = []
        for index, element in enumerate(type.elements):
            part = f"{name}_{index}"
            if isinstance(element, TupleType):
                part = self._unpack(element, part, numbers)
            else:
                self._names[next(numbers)] = part
            parts.append(part)
        return f"({''.join(f'{part}, ' for part in parts)})"

    def _dead(self) -> list[list[int]]:
        """For each step the buffers that nothing needs after it."""
        dead: list[list[int]] = [[] for _ in self.plan.steps]
        for buffer in self.plan.buffers:
            if 0 <= buffer.end < len(dead):
                dead[buffer.end].append(buffer.number)
        return dead

    def emit(self, step: Step) -> None:
        """Write the line of a step."""
        if self.lanes:
            self._refuse_arrays(step)
        names = [f"v{number - self._first}" for number in step.outputs]
        write = STEPS.get(type(step))
        if write is not None:
            line = write(self, step, names)
        else:
            row = TABLE.get(type(step.op))
            if row is None:
                raise BackendError(f"backend 'numpy' has no {step.op.name}")
            for number in step.inputs:  # The lines of constants come first, whatever the row asks for.
                self.buffer_name(number)
            line = assignment(names, row(self, step), isinstance(step.node.type, TensorType))
        self._names.update(zip(step.outputs, names, strict=True))
        self.body.append((line, step.node))

    def _refuse_arrays(self, step: Step) -> None:
        if any(type.shape for type in self.types((*step.inputs, *step.outputs))):
            raise BackendError(
                f"backend 'numpy' runs scalar computations on whole arrays, and {step.op.name} on "
                f"{step.node.type} inside one is not scalar; move it out of the combiner, comparator or map"
            )

    def _results(self) -> str:
        """The expressions for the results, each with a comma."""
        # Only what leaves the program is made read-only: a loop may write into what it carries.
        numbers = iter(self.plan.results)
        if self.name != "program":
            return "".join([f"compact({self.value(number)}), " for number in numbers])
        return "".join([f"{self._result(node.type, numbers)}, " for node in self.plan.graph.results])

    def _result(self, type: Type, numbers: Iterator[int]) -> str:
        if isinstance(type, TupleType):
            return f"({''.join(f'{self._result(element, numbers)}, ' for element in type.elements)})"
        number = next(numbers)
        start = self.plan.buffers[number].start
        # Nothing else shares the memory of what a kernel has made.
        is_fresh = start >= 0 and isinstance(self.plan.steps[start], Launch)
        return f"{'seal' if is_fresh else 'finish'}({self.value(number)})"

    def _compile(self, arguments: str) -> NumpyProgram:
        head = f"def {self.name}({'counter, ' if self.counts else ''}{arguments}):"
        text = "\n".join([head, *[f"    {line}" for line, _ in self.body]]) + "\n"
        lines = {number: node for number, (_, node) in enumerate(self.body, 2) if node is not None}
        exec(compile(text, "<xarr program>", "exec"), self.scope)
        function = self.scope[self.name]
        # Only what the program uses: programs are many, and the kernels too.
        self.scope.update({name: SCOPE[name] for name in _globals(function.__code__) if name in SCOPE})
        # Kernels never make NumPy warn.
        kind = SilentProgram if {Launch}.issuperset(map(type, self.plan.steps)) else NumpyProgram
        parts, origins, direct = (text, *self.nested), tuple(self.origins), self._direct()
        return kind(self.plan, parts, function, function.__code__, lines, origins, lambda: direct)

    def _direct(self) -> DirectCall | None:
        """The kernel that takes the arguments as they come, if it is all there is."""
        steps = self.plan.steps
        if len(steps) != 1 or not isinstance(step := steps[0], Launch) or self.counts:
            return None
        if (step.inputs, step.outputs) != (self.plan.parameters, self.plan.results):
            return None
        return None if self.plan.input_output_aliases(step) else self.kernel(step).direct


def _globals(code: CodeType) -> set[str]:
    """The names that a function looks up, in functions inside it too."""
    inner = [_globals(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def compile_program(
    made: Plan, progress: ProgressCallback | None = None, is_hot: bool = True
) -> NumpyProgram:
    """The NumPy program of a plan; with `progress`, one that tells it after each step how far it is.

    One function of machine code may take longer to compile than its steps do, so it is for programs that are `is_hot`.
    """
    if progress is None:
        native = engine.native_plan(made) if is_hot else None
        if native is None or isinstance(native, tuple):
            return Emitter(made, may_be_quick=is_hot).run()
        return QuickProgram.of(NativeProgram.of(made, native), [native], native.optimise)
    program, total = Emitter(made, counts=True).run(), made.step_count
    run = program.function
    return replace(program, function=lambda *arguments: run(StepCounter(progress, total), *arguments))
