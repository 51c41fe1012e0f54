"""From a plan to the source of a Python function that runs it, one line a step.

The function leaves memory to NumPy: it lets go of a buffer after its last use, and writes over one where the plan
says so.  Offsets in the plan's arena, workspaces, and the states of loops that take turns are NumPy's own affair.

    def program(a0, a1):
        v0 = np.exp(a0)
        v1 = v0 * a1[None, :]
        return (finish(v1),)

A broadcast costs nothing as long as element-wise operations use it: the value stays *thin*, with size 1
in the repeated dimensions, and NumPy's own broadcasting repeats it.  Whatever else uses it gets it in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from textwrap import indent
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from xarr.backend import DirectCall, mark_failed
from xarr.base.progress import ProgressBar
from xarr.compiler.plan.planner import plan
from xarr.compiler.plan.records import Launch, Plan, Step
from xarr.errors import BackendError
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType, TupleType, Type
from xarr_numpy import engine
from xarr_numpy.errstate import loud, quiet
from xarr_numpy.ops.control import STEPS, assignment
from xarr_numpy.ops.table import SCOPE, TABLE, literal
from xarr_numpy.processor import PROCESSOR

if TYPE_CHECKING:
    from xarr_numpy.compiled.kernel import CompiledKernel


@dataclass(frozen=True)
class NumpyProgram:
    """A plan as a function.

    * `text` - its source,
    * `lines` - the node that each line computes,
    * `origins` - where its machine code comes from, and how long that took,
    * `direct` - the one short kernel that it is, if it is that.
    """

    plan: Plan
    text: str
    function: Callable[..., tuple[Any, ...]]
    code: CodeType
    lines: dict[int, Node]
    origins: tuple[str, ...] = ()
    direct: DirectCall | None = None

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


class SilentProgram(NumpyProgram):
    """A program of compiled loops alone, which warn of nothing."""

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        try:
            return self.function(*arguments)
        except BaseException as error:
            self._say_where(error)
            raise


class Emitter:
    """Writes a plan's steps as the lines of a function.

    `lanes` makes a program for a scalar computation (a combiner, a comparator, the body of a map) that
    runs on whole arrays, one lane for each element.  With a `bar` the program counts a step after each one.
    """

    def __init__(
        self, plan: Plan, lanes: bool = False, name: str = "program", bar: ProgressBar | None = None
    ) -> None:
        self.plan = plan
        self.graph = plan.graph
        self.lanes = lanes
        self.name = name
        self.bar = bar
        #: The names of nodes whose value is an array, as far as steps have read or written them.
        self.names: dict[Node, str] = {}
        self.thin: set[Node] = set()
        #: Thin values of arrays that have no dimension at all: a scalar broadcast, and what came of it.
        self.points: set[Node] = set()
        #: The number of the first buffer that is no argument.
        self._first = len(plan.parameters)
        #: By the number of a buffer its name, and the node that a thin one is.
        self._values: dict[int, str] = {}
        self._definitions: dict[int, Node] = {}
        self.body: list[tuple[str, Node | None]] = []
        #: The names of what several nodes are parts of, by the expressions for it.
        self.shared: dict[str, str] = {}
        self.nested: list[str] = []
        self.origins: list[str] = []
        self.scope: dict[str, Any] = {} if bar is None else {"bar": bar}
        #: Name and function of each graph and plan that steps carry, here and in the functions around: written once.
        self._functions: dict[tuple[Any, ...], tuple[str, Any, Graph | Plan]] = {}
        #: How many names begin with each prefix.
        self._counts: dict[str, int] = {}
        self._dtypes: dict[np.dtype[Any], str] = {}
        #: The step that is written.
        self.step: Step

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

    def function(self, graph: Graph | Plan, lanes: bool = False, bar: ProgressBar | None = None) -> str:
        """A name for the program of a graph or plan that a step carries; its source follows that of this program."""
        lanes = lanes or self.lanes
        key = (id(graph), lanes, id(bar))
        shared = self._functions.get(key)
        if shared is not None:
            name, self.scope[name], _ = shared
            return name
        prefix = "f" if self.name == "program" else f"{self.name}_"
        name = self.constant(None, prefix)
        made = graph if isinstance(graph, Plan) else plan(graph, schedule=engine.schedule, target=PROCESSOR)
        emitter = Emitter(made, lanes, name, bar)
        emitter._functions = self._functions
        inner = emitter.run()
        self.scope[name] = inner.function
        self._functions[key] = name, inner.function, graph  # kept, so that its id is its own
        self.nested.append(inner.text)
        self.origins += [f"{name} {origin}" for origin in inner.origins]
        return name

    def kernel(self, step: Step) -> CompiledKernel:
        """The compiled kernel that a launch calls."""
        assert isinstance(step, Launch) and step.program is not None, "the plan was made with a schedule"
        return engine.kernel(step.program, tuple([self.plan.buffers[number].type for number in step.outputs]))

    def show(self, name: str, kernel: Any) -> None:
        """Let the text of a kernel follow that of this program."""
        self.nested.append(f"{name}:\n{indent(str(kernel), '    ')}\n")
        if kernel.origin:
            self.origins.append(f"{name}: {kernel.origin}")

    def mark_thin(self, node: Node) -> None:
        """Say that the value has size 1 where the node's type repeats it.  Lanes have no shape to repeat."""
        if not self.lanes:
            self.thin.add(node)

    def full(self, node: Node) -> str:
        """The expression for an operand with its whole shape."""
        if node in self.thin:
            return f"np.broadcast_to({self.names[node]}, {node.shape})"
        return self.names[node]

    @property
    def overwritten(self) -> tuple[tuple[int, int], ...]:
        """The results of the step that are written over an operand: (result, operand)."""
        return () if self.lanes else self.plan.input_output_aliases(self.step)

    def value(self, number: int) -> str:
        """The expression for a buffer with its whole shape."""
        node = self._definitions.get(number)
        return self._name(number) if node is None else self.full(node)

    def values(self, numbers: Iterable[int]) -> str:
        """The expressions for buffers, with commas between them."""
        return ", ".join([self.value(number) for number in numbers])

    def run(self) -> NumpyProgram:
        arguments = self._parameters()
        dead = self._dead()
        for step, gone in zip(self.plan.steps, dead, strict=True):
            self.emit(step)
            if gone and (names := [self._values[number] for number in gone if number in self._values]):
                self.body.append((f"del {', '.join(names)}", None))
            if self.bar is not None:
                self.bar.total = (self.bar.total or 0) + 1
                self.body.append(("bar.step()", None))
        results = self._results()
        self.body.append((f"return ({results})" if results else "return ()", None))
        return self._compile(arguments)

    def _parameters(self) -> str:
        """The names of the arguments; tuples among them are taken apart, except in functions inside of the program."""
        numbers = iter(self.plan.parameters)
        if self.name != "program":
            self._values = {number: f"a{index}" for index, number in enumerate(numbers)}
            return ", ".join(self._values.values())
        for index, node in enumerate(self.graph.parameters):
            if isinstance(node.type, TupleType):
                self.body.append((f"{self._unpack(node.type, f'a{index}', numbers)} = a{index}", None))
            else:
                self._values[next(numbers)] = f"a{index}"
        return ", ".join([f"a{index}" for index in range(len(self.graph.parameters))])

    def _unpack(self, type: TupleType, name: str, numbers: Iterator[int]) -> str:
        parts = []
        for index, element in enumerate(type.elements):
            part = f"{name}_{index}"
            if isinstance(element, TupleType):
                part = self._unpack(element, part, numbers)
            else:
                self._values[next(numbers)] = part
            parts.append(part)
        return f"({''.join(f'{part}, ' for part in parts)})"

    def _dead(self) -> list[list[int]]:
        """For each step the buffers that nothing needs after it."""
        dead: list[list[int]] = [[] for _ in self.plan.steps]
        for buffer in self.plan.buffers:
            if 0 <= buffer.end < len(dead):
                dead[buffer.end].append(buffer.number)
        return dead

    def _name(self, number: int) -> str:
        """The name of a buffer; a constant gets one when it is first used."""
        name = self._values.get(number)
        if name is None:
            name = self._values[number] = f"v{number - self._first}"
            constant = self.plan.buffers[number].constant
            assert constant is not None, f"b{number} is read before it is written"
            self.body.append((f"{name} = {literal(self, constant)}", None))
        return name

    def _read(self, step: Step) -> None:
        """Name the nodes that are operands of a step, for rows of the table, which know no buffers."""
        for node, number in zip(step.node.operands, step.inputs, strict=True):
            if node not in self.names:
                self.names[node] = self._name(number)
                known = self._definitions.get(number, node)
                for marked in (self.thin, self.points):
                    if known in marked:
                        marked.add(node)

    def emit(self, step: Step) -> None:
        """Write the line of a step."""
        self.step, node = step, step.node
        if self.lanes:
            self._refuse_arrays(node)
        names = [f"v{number - self._first}" for number in step.outputs]
        write = STEPS.get(type(step))
        if write is not None:
            line = write(self, step, names)
        else:
            row = TABLE.get(type(node.op))
            if row is None:
                raise BackendError(f"backend 'numpy' has no {node.op.name}")
            self._read(step)
            line = assignment(names, row(self, node), isinstance(node.type, TensorType))
            if isinstance(node.type, TensorType):
                self.names[node] = names[0]
                if node in self.thin:
                    self._definitions[step.outputs[0]] = node
        for number, name in zip(step.outputs, names, strict=True):
            self._values[number] = name
        self.body.append((line, node))

    def _refuse_arrays(self, node: Node) -> None:
        if any(isinstance(each.type, TensorType) and each.shape for each in (node, *node.operands)):
            raise BackendError(
                f"backend 'numpy' runs scalar computations on whole arrays, and {node.op.name} on "
                f"{node.type} inside one is not scalar; move it out of the combiner, comparator or map"
            )

    def _results(self) -> str:
        """The expressions for the results, each with a comma."""
        # Only what leaves the program is made read-only: a loop may write into what it carries.
        numbers = iter(self.plan.results)
        if self.name != "program":
            return "".join([f"compact({self.value(number)}), " for number in numbers])
        return "".join([f"{self._result(node.type, numbers)}, " for node in self.graph.results])

    def _result(self, type: Type, numbers: Iterator[int]) -> str:
        if isinstance(type, TupleType):
            return f"({''.join(f'{self._result(element, numbers)}, ' for element in type.elements)})"
        number = next(numbers)
        start = self.plan.buffers[number].start
        # Nothing else shares the memory of what a kernel has made.
        is_fresh = start >= 0 and isinstance(self.plan.steps[start], Launch)
        return f"{'sealed' if is_fresh else 'finish'}({self.value(number)})"

    def _compile(self, arguments: str) -> NumpyProgram:
        head = f"def {self.name}({arguments}):"
        text = "\n".join([head, *[f"    {line}" for line, _ in self.body]]) + "\n"
        lines = {number: node for number, (_, node) in enumerate(self.body, 2) if node is not None}
        exec(compile(text, "<xarr program>", "exec"), self.scope)
        function = self.scope[self.name]
        # Only what the program uses: programs are many, and the kernels too.
        self.scope.update({name: SCOPE[name] for name in _globals(function.__code__) if name in SCOPE})
        # Kernels never make NumPy warn.
        kind = SilentProgram if {Launch}.issuperset(map(type, self.plan.steps)) else NumpyProgram
        text, origins = "\n".join([text, *self.nested]), tuple(self.origins)
        return kind(self.plan, text, function, function.__code__, lines, origins, self._direct())

    def _direct(self) -> DirectCall | None:
        """The kernel that takes the arguments as they come, if it is all there is."""
        steps = self.plan.steps
        if len(steps) != 1 or not isinstance(step := steps[0], Launch) or self.bar is not None:
            return None
        if (step.inputs, step.outputs) != (self.plan.parameters, self.plan.results):
            return None
        return None if self.plan.input_output_aliases(step) else self.kernel(step).direct


def _globals(code: CodeType) -> set[str]:
    """The names that a function looks up, in functions inside it too."""
    inner = [_globals(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def compile_program(made: Plan, bar: ProgressBar | None = None) -> NumpyProgram:
    """The NumPy program of a plan."""
    return Emitter(made, bar=bar).run()
