"""From a graph to the source of a Python function that runs it, one line a node.

    def program(a0, a1):
        v0 = np.exp(a0)
        v1 = v0 * a1[None, :]
        return (finish(v1),)

A broadcast costs nothing as long as element-wise operations use it: the value stays *thin*, with size 1
in the repeated dimensions, and NumPy's own broadcasting repeats it.  Whatever else uses it gets it in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from textwrap import indent
from types import CodeType
from typing import Any, Final

import numpy as np

from xarr.backend import failed_at
from xarr.errors import BackendError
from xarr.ir.graph import Graph, Node, Parameter
from xarr.ir.ops import Constant, Fusion, GetTupleElement
from xarr.ir.ops.fusion import reused
from xarr.ir.types import TensorType, TupleType
from xarr.progress import ProgressBar
from xarr_numpy.quiet import loud, quiet
from xarr_numpy.table import SCOPE, TABLE


@dataclass(frozen=True)
class NumpyProgram:
    """The compiled function, its source, which node each line computes, and where its machine code comes from."""

    text: str
    function: Callable[..., tuple[Any, ...]]
    code: CodeType
    lines: dict[int, Node]
    origins: tuple[str, ...] = ()

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
                    failed_at(error, node)
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
    """Writes the lines of one program.

    `lanes` makes a program for a scalar computation (a combiner, a comparator, the body of a map) that
    runs on whole arrays, one lane for each element.  With a `bar` the program counts a step after each node.
    """

    def __init__(
        self,
        graph: Graph,
        lanes: bool = False,
        name: str = "program",
        in_place: frozenset[Node] = frozenset(),
        bar: ProgressBar | None = None,
        given: Iterable[Node] = (),
    ) -> None:
        self.graph = graph
        self.lanes = lanes
        self.name = name
        #: Nodes that may write into their first operand.
        self.in_place = in_place
        self.bar = bar
        #: Results that are written over an operand; `given` are parameters that may be written over.
        self.reused = {} if lanes else reused(graph, given)
        self.names: dict[Node, str] = {}
        self.thin: set[Node] = set()
        #: Thin values of arrays that have no dimension at all: a scalar broadcast, and what came of it.
        self.points: set[Node] = set()
        self.body: list[tuple[str, Node | None]] = []
        self.nested: list[str] = []
        self.origins: list[str] = []
        self.scope: dict[str, Any] = {} if bar is None else {"bar": bar}
        #: Name and function of each graph that ops carry, here and in the functions around: it is written once.
        self._functions: dict[tuple[Any, ...], tuple[str, Any, Graph]] = {}
        self._count: Counter[str] = Counter()
        self._dtypes: dict[np.dtype[Any], str] = {}
        self._last_use = _last_uses(graph)

    def constant(self, value: Any, prefix: str = "c") -> str:
        """A name in the program's scope for an object that has no literal."""
        if isinstance(value, np.dtype) and value in self._dtypes:
            return self._dtypes[value]
        name = f"{prefix}{self._count[prefix]}"
        self._count[prefix] += 1
        self.scope[name] = value
        if isinstance(value, np.dtype):
            self._dtypes[value] = name
        return name

    def function(
        self,
        graph: Graph,
        lanes: bool = False,
        in_place: frozenset[Node] = frozenset(),
        bar: ProgressBar | None = None,
    ) -> str:
        """A name for the program of a graph that an op carries; its source follows that of this program."""
        lanes = lanes or self.lanes
        key = (id(graph), lanes, in_place, id(bar))
        shared = self._functions.get(key)
        if shared is not None:
            name, self.scope[name], _ = shared
            return name
        prefix = "f" if self.name == "program" else f"{self.name}_"
        name = self.constant(None, prefix)
        emitter = Emitter(graph, lanes, name, in_place, bar)
        emitter._functions = self._functions
        inner = emitter.run()
        self.scope[name] = inner.function
        self._functions[key] = name, inner.function, graph  # kept, so that its id is its own
        self.nested.append(inner.text)
        self.origins += [f"{name} {origin}" for origin in inner.origins]
        return name

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

    def run(self) -> NumpyProgram:
        for index, node in enumerate(self.graph.parameters):
            self.names[node] = f"a{index}"
        for index, node in enumerate(self.graph.nodes):
            self.emit(f"v{index}", node)
            self._free(node)
            self._step()
        # Only what leaves the program is made read-only: a loop may write into what it carries.
        last = "finish" if self.name == "program" else "compact"
        results = "".join(f"{self._last(last, node)}({self.full(node)}), " for node in self.graph.results)
        self.body.append((f"return ({results})" if results else "return ()", None))
        return self._compiled()

    def _last(self, last: str, node: Node) -> str:
        """What readies a result: nothing else shares the memory of what a kernel has made."""
        fresh = type(node.op) is Fusion and not isinstance(node.type, TupleType)
        return "sealed" if fresh and last == "finish" else last

    def emit(self, name: str, node: Node) -> None:
        """One line: the value of `node` under `name`."""
        write = TABLE.get(type(node.op))
        if write is None:
            raise BackendError(f"backend 'numpy' has no {node.op.name}")
        if self.lanes and any(isinstance(n.type, TensorType) and n.shape for n in (node, *node.operands)):
            raise BackendError(
                f"backend 'numpy' runs scalar computations on whole arrays, and {node.op.name} on "
                f"{node.type} inside one is not scalar; move it out of the combiner, comparator or map"
            )
        expression = write(self, node)
        self.names[node] = name
        self.body.append((f"{name} = {expression}", node))

    def _free(self, node: Node) -> None:
        dead = [operand for operand in dict.fromkeys(node.operands) if self._last_use[operand] is node]
        if dead:
            self.body.append((f"del {', '.join(self.names[operand] for operand in dead)}", None))

    def _step(self) -> None:
        if self.bar is not None:
            self.bar.total = (self.bar.total or 0) + 1
            self.body.append(("bar.step()", None))

    def _compiled(self) -> NumpyProgram:
        head = f"def {self.name}({', '.join(self.names[node] for node in self.graph.parameters)}):"
        text = "\n".join([head, *[f"    {line}" for line, _ in self.body]]) + "\n"
        lines = {number: node for number, (_, node) in enumerate(self.body, 2) if node is not None}
        exec(compile(text, "<xarr program>", "exec"), self.scope)
        function = self.scope[self.name]
        # Only what the program uses: programs are many, and the kernels too.
        self.scope.update({name: SCOPE[name] for name in _globals(function.__code__) if name in SCOPE})
        kind = SilentProgram if all(type(node.op) in _SILENT for node in self.graph.nodes) else NumpyProgram
        return kind("\n".join([text, *self.nested]), function, function.__code__, lines, tuple(self.origins))


#: Ops that never make NumPy warn.
_SILENT: Final = frozenset({Constant, Fusion, GetTupleElement, Parameter})


def _globals(code: CodeType) -> set[str]:
    """The names that a function looks up, in functions inside it too."""
    inner = [_globals(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _last_uses(graph: Graph) -> dict[Node, Node | None]:
    """The node after which each value is needed no more; None for results."""
    last: dict[Node, Node | None] = {}
    for node in graph.nodes:
        last.update(dict.fromkeys(node.operands, node))
    last.update(dict.fromkeys(graph.results))
    return last


def compile_program(
    graph: Graph, lanes: bool = False, bar: ProgressBar | None = None, given: Iterable[Node] = ()
) -> NumpyProgram:
    """The NumPy program of a graph.

    The parameters `given` may be written over where their arrays are writeable.
    """
    return Emitter(graph, lanes, bar=bar, given=given).run()
