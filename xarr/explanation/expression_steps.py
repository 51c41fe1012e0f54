"""`explain_text`: an expression on bare shapes, which may have several ops: each is explained."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from xarr.errors import InputError
from xarr.explanation.broadcast import BroadcastExplanation, explain_shapes
from xarr.explanation.broadcast_facts import letters_of
from xarr.explanation.expression import Operation, ShapeText, read_operation
from xarr.explanation.html import Displayed, join_fragments, wrap_fragment
from xarr.explanation.notation import operator_named, term
from xarr.explanation.sheets.contraction import PRODUCTS, ContractionExplanation, explain_product

OpExplanation = BroadcastExplanation | ContractionExplanation


@dataclass(frozen=True, repr=False)
class ChainExplanation(Displayed):
    """Each op of an expression such as `(4,) * (3,1) + (2,)`, in the order in which Python computes them.

    `str(e)` or `e.text()`, `e.html()`; notebooks show the HTML.  The last of `steps` is the first that fails, if one
    does; `left_out` says how many would come after it.
    """

    expression: str
    steps: tuple[OpExplanation, ...]
    left_out: int = 0

    @property
    def fits(self) -> bool:
        """Whether every op runs."""
        return self.steps[-1].fits

    def text(self) -> str:
        """Plain text, one part per op."""
        return ("\n" + "-" * 78 + "\n").join(
            [f"{self.summary}\n", *(step.text() + "\n" for step in self.steps)]
        )

    def html(self) -> str:
        """A self-contained HTML fragment."""
        return join_fragments(
            [wrap_fragment(f"<p><code>{escape(self.summary)}</code></p>"), *(s.html() for s in self.steps)]
        )

    def svg(self) -> str:
        """InputError, since a picture shows one op."""
        raise InputError(f"svg() shows one op, the expression has {len(self.steps)}; use e.steps[i].svg()")

    @property
    def summary(self) -> str:
        """One line: the number of ops, and the result or the op that fails."""
        result = self.steps[-1].result
        if result is not None and self.fits:
            return f"{self.expression}   ->  {result.label}, in {len(self.steps)} ops"
        after = f"; {self.left_out} more would follow" if self.left_out else ""
        return (
            f"{self.expression}   ->  op {len(self.steps)} of {len(self.steps) + self.left_out} fails{after}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data that `json.dumps` accepts."""
        return {"expression": self.expression, "steps": [step.to_dict() for step in self.steps]}


def explain_text(text: str) -> OpExplanation | ChainExplanation:
    """Explain text such as `(5,1) - (5,)`, `f32[2,3] @ f32[3]` or `(4,) * (3,1) + (2,)`.

    Raises ParseError if it is malformed, InputError for a product that is none of matrices.
    """
    whole = read_operation(text)
    steps: list[OpExplanation] = []
    names = letters_of(_count(whole))
    _explain(whole, names, steps)
    total = _operations(whole)
    if total == 1:
        return steps[0]
    return ChainExplanation(_write_expression(whole, names), tuple(steps), total - len(steps))


def _explain(whole: Operation | ShapeText, names: list[str], steps: list[OpExplanation]) -> _Known | None:
    """Append the explanations of all ops up to the first that fails; None if one does."""
    if isinstance(whole, ShapeText):
        return _Known(names[whole.number], whole.shape, whole.dtype)
    known: list[_Known] = []
    for operand in whole.operands:
        each = _explain(operand, names, steps)
        if each is None:
            return None
        known.append(each)
    step = _step(whole.op, known)
    steps.append(step)
    result = step.result
    return (
        None
        if result is None or not step.fits
        else _Known(_write_expression(whole, names), result.shape, result.dtype)
    )


@dataclass(frozen=True)
class _Known:
    """An operand of a step: its text, its shape and, if known, its dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str | None


def _step(op: str, known: list[_Known]) -> OpExplanation:
    name = "matmul" if op == "@" else op
    shapes, names = [each.shape for each in known], [each.name for each in known]
    dtypes = [each.dtype for each in known]
    if name in PRODUCTS:
        return explain_product(name, shapes, names, dtypes)
    return explain_shapes(*shapes, op=op, names=names, dtypes=dtypes)


def _write_expression(whole: Operation | ShapeText, names: list[str]) -> str:
    if isinstance(whole, ShapeText):
        return names[whole.number]
    parts = [term(_write_expression(operand, names)) for operand in whole.operands]
    return " @ ".join(parts) if whole.op == "@" else operator_named(whole.op).apply(parts)


def _count(whole: Operation | ShapeText) -> int:
    return 1 if isinstance(whole, ShapeText) else sum(map(_count, whole.operands))


def _operations(whole: Operation | ShapeText) -> int:
    return 0 if isinstance(whole, ShapeText) else 1 + sum(map(_operations, whole.operands))
