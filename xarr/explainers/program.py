"""`explain`: run a function and account for every implicit broadcast that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, SupportsIndex

import numpy as np

from xarr.base.configuration import current as config
from xarr.calls.operands import ImplicitBroadcast, MatrixProduct, as_array, watching
from xarr.dtypes import xla_name
from xarr.errors import BroadcastError, InputError
from xarr.explanation.broadcast import BroadcastExplanation, explain_shapes
from xarr.explanation.canvas import MONOSPACED
from xarr.explanation.contraction import explain_product
from xarr.explanation.expression import read_operand
from xarr.explanation.expression_steps import ChainExplanation, OpExplanation, explain_text
from xarr.ir.graph import Node
from xarr.ir.source import Source, operand_names, operation_at

_VALUES_SHOWN = 64
"""Values of operands up to this size are shown in the pictures, if they have been computed already."""


@dataclass(frozen=True)
class ProgramStep:
    """One implicit broadcast of a program and the source line that made it."""

    explanation: OpExplanation
    source: Source | None

    def text(self) -> str:
        location = f"{self.source}\n\n" if self.source else ""
        return f"{location}{self.explanation.text()}"

    def html(self) -> str:
        """A self-contained HTML fragment: the line, and under it the broadcast."""
        location = f'<pre style="{MONOSPACED}">{escape(str(self.source))}</pre>\n' if self.source else ""
        return location + self.explanation.html()

    __str__ = __repr__ = text


@dataclass(frozen=True)
class ProgramExplanation:
    """Every implicit broadcast of a program, in the order made.

    `str(e)`, `e.text()`, `e.html()` and `e.svg()` show them all; `e.steps` holds one BroadcastExplanation
    each.  `e.error` is the BroadcastError that ended the program, if one did.
    """

    steps: tuple[ProgramStep, ...]
    error: BroadcastError | None = None

    def text(self) -> str:
        """Plain text, one part per broadcast."""
        if not self.steps:
            return "no implicit broadcast: every operand has the shape of its op's result, or is a scalar\n"
        return ("\n" + "-" * 78 + "\n").join(step.text() for step in self.steps)

    def html(self) -> str:
        """A self-contained HTML fragment."""
        if not self.steps:
            return f"<p>{escape(self.text())}</p>"
        return "\n".join(step.html() for step in self.steps)

    def svg(self) -> str:
        """The picture of the only broadcast; InputError if there is none, or more than one."""
        if len(self.steps) != 1:
            raise InputError(
                f"svg() shows one broadcast, the program makes {len(self.steps)}; "
                "use e.steps[i].explanation.svg()"
            )
        return self.steps[0].explanation.svg()

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html()


def explain(
    function: Callable[..., Any] | str, *arguments: Any
) -> ProgramExplanation | OpExplanation | ChainExplanation:
    """Account for the implicit broadcasts and each `@` of `function(*arguments)`, e.g. `explain(lambda: x - y)`.

    The function is run, its graph recorded; nothing is evaluated unless the function looks at values.
    A broadcast that fails is explained as well, with the fixes that would work.  A string such as
    "(5,1) - (5,)", "(2,3) @ (3,4)" or "(4,) + (3,) + (2,)" explains bare shapes.

    Scalars are not listed: they broadcast freely at every level.
    """
    if isinstance(function, str):
        return explain_text(function)
    if not callable(function):
        raise InputError(f"explain wants a function such as lambda: x - y, got {type(function).__name__}")
    steps: list[ProgramStep] = []
    error: BroadcastError | None = None
    with watching(lambda broadcast: _note(steps, broadcast)):
        try:
            with config(small_arrays="lazy"):  # nothing is computed
                function(*arguments)
        except BroadcastError as raised:
            error = raised
            explanation = getattr(raised, "explanation", None)
            if explanation is None:
                raise
            steps.append(ProgramStep(explanation, None))
    return ProgramExplanation(tuple(steps), error)


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


def _note(steps: list[ProgramStep], event: ImplicitBroadcast | MatrixProduct) -> None:
    if isinstance(event, MatrixProduct):
        names = operand_names(event.source, 2) if event.source else None
        steps.append(ProgramStep(explain_product("matmul", event.shapes, names, event.dtypes), event.source))
        return
    broadcast = event
    shapes = broadcast.alignment.operands
    if all(not shape or shape == broadcast.alignment.result for shape in shapes):
        return
    op, names = operation_at(broadcast.source, broadcast.op, len(shapes))
    explanation = explain_shapes(
        *shapes, op=op, names=names, dtypes=broadcast.dtypes, values=_values(broadcast.nodes)
    )
    steps.append(ProgramStep(explanation, broadcast.source))


def _values(nodes: Sequence[Node]) -> list[Any] | None:
    """The operands' values, if all are small and there already."""
    values = [node.value for node in nodes]
    known = [value for value in values if isinstance(value, np.ndarray) and value.size <= _VALUES_SHOWN]
    return known if nodes and len(known) == len(nodes) else None
