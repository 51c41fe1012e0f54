"""`explain`: run a function and account for its implicit broadcasts, products, reductions, windows and gathers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any, SupportsIndex

import numpy as np

from xarr import tree
from xarr.base.canvas import MONOSPACED
from xarr.base.configuration import current as config
from xarr.calls.operands import Event, MatrixProduct, RecordedCall, as_array, watching
from xarr.dtypes import xla_name
from xarr.errors import BroadcastError, InputError
from xarr.explainers.products import EinsumExplanation
from xarr.explainers.recorded_ops import Explained, explain_nodes
from xarr.explainers.written_calls import explain_any
from xarr.explanation.broadcast import BroadcastExplanation, explain_shapes
from xarr.explanation.expression import read_operand
from xarr.explanation.html import Displayed, join_fragments
from xarr.explanation.sheets.contraction import explain_product
from xarr.ir.graph import Graph, Node, next_serial, postorder
from xarr.ir.source import Source, operand_names, operation_at
from xarr.runtime.evaluation import watchers
from xarr.runtime.handles import Handle

_VALUES_SHOWN = 64
"""Values of operands up to this size are shown in the pictures, if they have been computed already."""


@dataclass(frozen=True)
class ProgramStep:
    """One explained op of a program, such as an implicit broadcast, and the source line that made it.

    `within` says in what it runs, innermost first: "body of while_loop at file.py:12"; "" for no loop, branch or call.
    """

    explanation: Explained
    source: Source | None
    within: str = ""

    @property
    def location(self) -> str:
        """The source line, and below it the loop, branch or call that it runs in."""
        return "\n".join(filter(None, [str(self.source or ""), self.within and f"in {self.within}"]))

    def text(self) -> str:
        location = f"{self.location}\n\n" if self.location else ""
        return f"{location}{self.explanation.text()}"

    def html(self) -> str:
        """A self-contained HTML fragment: the line, and under it the broadcast."""
        location = f'<pre style="{MONOSPACED}">{escape(self.location)}</pre>\n' if self.location else ""
        return location + self.explanation.html()

    __str__ = __repr__ = text


@dataclass(frozen=True, repr=False)
class ProgramExplanation(Displayed):
    """The explained ops of a program in the order made: every implicit broadcast, and each product and the like.

    `str(e)`, `e.text()`, `e.html()` show them all; `e.steps` holds one explanation each, `e.broadcasts` those of
    implicit broadcasts.  `e.error` is the BroadcastError that ended the program, if one did.
    """

    steps: tuple[ProgramStep, ...]
    error: BroadcastError | None = None

    @property
    def broadcasts(self) -> tuple[ProgramStep, ...]:
        """The implicit broadcasts among the steps."""
        return tuple(step for step in self.steps if isinstance(step.explanation, BroadcastExplanation))

    def text(self) -> str:
        """Plain text, one part per step."""
        if not self.steps:
            return "no implicit broadcast: every operand has the shape of its op's result, or is a scalar\n"
        return ("\n" + "-" * 78 + "\n").join(step.text() for step in self.steps)

    def html(self) -> str:
        """A self-contained HTML fragment."""
        if not self.steps:
            return f"<p>{escape(self.text())}</p>"
        return join_fragments([step.html() for step in self.steps])

    def svg(self) -> str:
        """The picture of the only broadcast, or else of the only step; InputError if there is no only one."""
        steps = self.broadcasts or self.steps
        if len(steps) != 1:
            kind = "broadcast" if self.broadcasts or not steps else "op"
            raise InputError(
                f"svg() shows one {kind}, the program makes {len(steps)}; use e.steps[i].explanation.svg()"
            )
        return steps[0].explanation.svg()

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data that `json.dumps` accepts."""
        return {
            "steps": [
                {
                    "source": str(step.source) if step.source else None,
                    "within": step.within or None,
                    **step.explanation.to_dict(),
                }
                for step in self.steps
            ],
            "error": None if self.error is None else str(self.error),
        }


def explain(function: Callable[..., Any] | str, *arguments: Any) -> ProgramExplanation | Explained:
    """Account for the ops of `function(*arguments)` that have an explanation, e.g. `explain(lambda: x - y)`.

    These are implicit broadcasts and each `@`, wherever they are made; and of what the function returns or looks at,
    what it writes to its arguments, and Arrays of its closure: products, reductions, windows, gathers, scatters and
    implicit promotions, those in loops, branches, functions under `jit` and `shard_map` included, each with its line.
    The function is run, its graph recorded; nothing is evaluated unless the function looks at values, or is split by
    `shard_map`.  A broadcast that fails is explained as well, with the fixes that would work.  A string such as
    "(5,1) - (5,)", "(2,3) @ (3,4)", "(4,5)[1:, None]" or "sum((3,4), axis=1)" explains bare shapes.

    Scalars are not listed: they broadcast freely at every level.
    """
    if isinstance(function, str):
        return explain_any(function)
    if not callable(function):
        raise InputError(f"explain wants a function such as lambda: x - y, got {type(function).__name__}")
    notes: list[tuple[int, Event]] = []
    error: BroadcastError | None = None
    start, result = next_serial(), None
    computed: list[_Recorded] = []
    with watching(lambda event: notes.append((next_serial(), event))), _keep_computed(start, computed):
        try:
            with config(small_arrays="lazy"):  # nothing is computed
                result = function(*arguments)
        except BroadcastError as raised:
            error = raised
            if getattr(raised, "explanation", None) is None:
                raise
    end = next_serial()
    recorded = _list_nodes(start, notes, computed, (result, arguments, _closure(function)))
    contexts = {
        each.node._location[:2]: each.within for each in recorded if each.within and each.node._location
    }
    steps = [(at, step) for at, event in notes for step in _note(event, contexts)]
    steps += _explain_recorded(recorded, [step.source for _, step in steps])
    if error is not None:
        steps.append((end, ProgramStep(error.explanation, None)))  # type: ignore[attr-defined]
    return ProgramExplanation(tuple(step for _, step in sorted(steps, key=lambda pair: pair[0])), error)


def _closure(function: Callable[..., Any]) -> list[Any]:
    """The Arrays that a function refers to, which it may have written to."""
    cells = getattr(function, "__closure__", None) or ()
    return [cell.cell_contents for cell in cells if isinstance(_contents(cell), Handle)]


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


@dataclass(frozen=True)
class _Recorded:
    """A node, when it was made, and in which loop, branch or call it is; "" for none."""

    serial: int
    node: Node
    within: str


@contextmanager
def _keep_computed(start: int, kept: list[_Recorded]) -> Iterator[None]:
    """Keep copies of the nodes made since `start` that this thread computes in the block: they lose their operands."""
    thread, copies = threading.get_ident(), dict[Node, Node]()

    def keep(outputs: Sequence[Node]) -> None:
        if threading.get_ident() != thread:
            return
        for node in postorder(outputs):
            if node.operands and node not in copies:
                copies[node] = node.rebuilt(tuple([copies.get(each, each) for each in node.operands]))
                if node.serial > start:
                    kept.append(_Recorded(node.serial, copies[node], ""))

    watchers.append(keep)
    try:
        yield
    finally:
        watchers.remove(keep)


def _list_nodes(
    start: int, notes: Sequence[tuple[int, Event]], computed: Sequence[_Recorded], values: Any
) -> list[_Recorded]:
    """The nodes computed, and those below `values`, made since `start`; then those in what calls and ops carry."""
    handles = [leaf for leaf in tree.flatten(values)[0] if isinstance(leaf, Handle)]
    below = [node for node in postorder([handle._node for handle in handles]) if node.serial > start]
    recorded = [*computed, *(_Recorded(node.serial, node, "") for node in below)]
    recorded.sort(key=lambda each: each.serial)
    for at, event in notes:
        if isinstance(event, RecordedCall):
            within = event.name + _line_of(event.source)
            recorded += [_Recorded(at, node, within) for node in event.graph.nodes]
    seen = set[int]()
    for outer in recorded:  # which grows
        for name, graph in outer.node.op.named_graphs() if outer.node.op.runs_graphs else ():
            if id(graph) not in seen:
                seen.add(id(graph))
                within = _name_graph(name, graph, outer)
                recorded += [_Recorded(outer.serial, node, within) for node in graph.nodes]
    return recorded


def _name_graph(name: str, graph: Graph, outer: _Recorded) -> str:
    """The name of a graph, its line, and what that is within."""
    op = outer.node.op
    own = graph.name if len(op.graphs) == 1 else f"{name} of {op.lax_name}"
    return own + _line_of(outer.node.source) + (f", in {outer.within}" if outer.within else "")


def _line_of(source: Source | None) -> str:
    return f" at {source.address}" if source else ""


def _explain_recorded(
    recorded: Sequence[_Recorded], broadcast: Sequence[Source | None]
) -> list[tuple[int, ProgramStep]]:
    """The nodes that have an explanation, each of one line once; products that are noted already are left out."""
    steps, seen = [], set()
    for each in recorded:
        for node, explanation in explain_nodes([each.node]):
            source = node.source
            is_noted = isinstance(explanation, EinsumExplanation) and source in broadcast
            key = (source, explanation.text())
            if not is_noted and key not in seen:
                steps.append((each.serial, ProgramStep(explanation, source, each.within)))
            seen.add(key)
    return steps


def explain_broadcast(
    *operands: Any,
    op: str = "add",
    names: Sequence[str] | None = None,
    broadcast_dimensions: Sequence[int] | None = None,
) -> BroadcastExplanation:
    """Explain how `op` broadcasts its operands, or why it does not: text, page and picture in one object.

    Operands are arrays, or shapes given as tuples of ints or as text such as "f32[5,1]":
    `explain_broadcast(x, (5,), op="-")`.  Nothing is evaluated; values that are there already and few are
    shown.  With `broadcast_dimensions` (two operands) XLA's explicit rule is explained, else NumPy's.

    Raises InputError, ParseError or ShapeError for malformed arguments; shapes that do not fit are no error here.
    """
    known = [_shape_and_dtype(operand) for operand in operands]
    arrays = [
        as_array(operand) if pair is None else None for operand, pair in zip(operands, known, strict=True)
    ]
    nodes = [array._node for array in arrays if array is not None]
    pairs = [
        (array.shape, xla_name(array.dtype)) if array is not None else pair
        for array, pair in zip(arrays, known, strict=True)
    ]
    return explain_shapes(
        *(shape for shape, _ in filter(None, pairs)),
        op=op,
        names=names,
        dtypes=[dtype for _, dtype in filter(None, pairs)],
        values=_values(nodes) if len(nodes) == len(operands) else None,
        broadcast_dimensions=broadcast_dimensions,
    )


def _shape_and_dtype(operand: object) -> tuple[Sequence[SupportsIndex], str | None] | None:
    """Those of an operand that is a shape; None of an array."""
    if isinstance(operand, str):
        return read_operand(operand)
    if isinstance(operand, tuple) and all(isinstance(size, SupportsIndex) for size in operand):
        return operand, None
    return None


def _note(event: Event, contexts: Mapping[Any, str]) -> Iterator[ProgramStep]:
    """The step that an event is, if it is one, within what the nodes of its line are."""
    if isinstance(event, RecordedCall):
        return
    source = event.source
    within = contexts.get((source.code, source.offset), "") if source else ""
    if isinstance(event, MatrixProduct):
        names = operand_names(source, 2) if source else None
        yield ProgramStep(explain_product("matmul", event.shapes, names, event.dtypes), source, within)
        return
    shapes = event.alignment.operands
    if all(not shape or shape == event.alignment.result for shape in shapes):
        return
    op, names = operation_at(source, event.op, len(shapes))
    explanation = explain_shapes(
        *shapes, op=op, names=names, dtypes=event.dtypes, values=_values(event.nodes)
    )
    yield ProgramStep(explanation, source, within)


def _values(nodes: Sequence[Node]) -> list[Any] | None:
    """The operands' values, if all are small and there already."""
    values = [node.value for node in nodes]
    known = [value for value in values if isinstance(value, np.ndarray) and value.size <= _VALUES_SHOWN]
    return known if nodes and len(known) == len(nodes) else None
