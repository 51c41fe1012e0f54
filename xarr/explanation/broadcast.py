"""`explain_shapes`: what broadcasting does with given shapes, or why it fails: one object, all views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import TYPE_CHECKING, Any, SupportsIndex

from xarr.base.broadcasting import (
    Alignment,
    Dimensions,
    Misfit,
    Shape,
    align_numpy,
    align_xla,
    as_dimensions,
    xla_violation as _xla_violation,
)
from xarr.errors import BroadcastError, InputError, ShapeError
from xarr.explanation.broadcast_code import (
    explicit_ops,
    loop_body,
    loop_variables,
    one_op,
    suggestions,
    warnings,
)
from xarr.explanation.broadcast_facts import BroadcastFacts, Operand, check_names, clean_text
from xarr.explanation.expression import parse_expression, read_expression
from xarr.explanation.html import Displayed, picture_steps, render_html
from xarr.explanation.notation import operator_named
from xarr.explanation.steps import PictureStep
from xarr.explanation.svg import render_svg
from xarr.explanation.text import problem_lines, render_text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "BroadcastExplanation",
    "ExplainedBroadcastError",
    "broadcast_error",
    "explain_expression",
    "explain_shapes",
    "parse_expression",
]

_MOST_AXES = 200
"""NumPy's arrays have 64 at most."""

_VALUES_SHOWN = 4096
"""Values of larger arrays are not kept: the pictures fold long before that."""


@dataclass(frozen=True, repr=False)
class BroadcastExplanation(Displayed, BroadcastFacts):
    """The way in which one op broadcasts its operands, or why it does not: one object, several views.

    `str(e)` or `e.text()`, `e.html()`, `e.svg()`, `e.to_dict()`, `e.steps()`; notebooks show the HTML.
    """

    def text(self) -> str:
        """Plain text: axis table, loop, explicit ops, cost, warnings, fixes."""
        return render_text(self)

    def html(self) -> str:
        """A self-contained HTML fragment; a page may have several."""
        return render_html(self)

    def svg(self) -> str:
        """A self-contained SVG picture."""
        return render_svg(self)

    def steps(self) -> tuple[PictureStep, ...]:
        """Align, insert new axes, stretch, compute, each with the shapes after it; none of what does not align."""
        return picture_steps(self)

    @property
    def fits(self) -> bool:
        """Whether the op runs."""
        return self.alignment is not None and self.problem is None

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data that `json.dumps` accepts."""
        alignment, fixes = self.alignment, suggestions(self)
        return {
            "op": self.operator.name,
            "operands": [operand.to_dict() for operand in self.operands],
            "axes": [[asdict(cell) for cell in row] for row in self.rows] if self.has_table else None,
            "broadcasts": alignment is not None and self.problem is None,
            "problem": "\n".join(problem_lines(self)) or None,
            "result": None if alignment is None else list(alignment.result),
            "broadcast_dimensions": None if alignment is None else [list(d) for d in alignment.dimensions],
            "reuse": alignment and [alignment.reuse(i) for i in range(len(self.operands))],
            "loop": alignment and loop_body(self, loop_variables(self)),
            "explicit": alignment and list(explicit_ops(self)),
            "one_op": one_op(self),
            "warnings": [asdict(warning) for warning in warnings(self)],
            "fixes": [asdict(one) for one in fixes[0]] if alignment is None else [],
            "more_fixes": fixes[1] if alignment is None else "",
            "steps": [asdict(step) for step in self.steps()],
        }

    def _repr_svg_(self) -> str:
        return self.svg()


class ExplainedBroadcastError(BroadcastError):
    """A BroadcastError whose message is the explanation, kept in `explanation`."""

    explanation: BroadcastExplanation


def explain_shapes(
    *shapes: Sequence[SupportsIndex],
    op: str = "add",
    names: Sequence[str] | None = None,
    dtypes: Sequence[str | None] | None = None,
    values: Sequence[ArrayLike | None] | None = None,
    broadcast_dimensions: Sequence[SupportsIndex] | None = None,
    result_dtype: str | None = None,
) -> BroadcastExplanation:
    """Explain an element-wise op on operands of the given shapes.

    `op` is a symbol (`-`) or a name (`subtract`, or any other).  `names` default to a, b, c …; `dtypes`
    are names such as "f32" and make bytes known; `values` are small arrays of those shapes, shown in the
    pictures.  With `broadcast_dimensions` (two operands) XLA's explicit rule is explained, else NumPy's.

    Raises InputError or ShapeError if the arguments themselves are malformed.  Shapes that do not
    broadcast are no error here: the explanation says why.
    """
    sizes = tuple(map(_as_shape, shapes))
    explicit = broadcast_dimensions is not None
    return _explain(
        op, sizes, names, dtypes, values, as_dimensions(broadcast_dimensions), explicit, None, result_dtype
    )


def explain_expression(text: str) -> BroadcastExplanation:
    """Explain text such as `(5,1) - (5,)` or `f32[5,1] - f32[5]`; raises ParseError if it is malformed."""
    expression = read_expression(text)
    return explain_shapes(*expression.shapes, op=expression.op, dtypes=expression.dtypes)


def broadcast_error(
    op: str,
    shapes: Sequence[Sequence[SupportsIndex]],
    names: Sequence[str] | None = None,
    dtypes: Sequence[str | None] | None = None,
    broadcast_dimensions: Sequence[SupportsIndex] | None = None,
    *,
    explicit: bool = False,
    problem: str | None = None,
) -> ExplainedBroadcastError:
    """The error for an op that does not run; its message is the explanation's text.

    `explicit` (implied by `broadcast_dimensions`) names the constraint of XLA's rule that is violated,
    with its label; `problem` is a refusal by the strictness in force.  Raises ValueError if nothing is
    wrong with the shapes.
    """
    dimensions = as_dimensions(broadcast_dimensions)
    explicit = explicit or broadcast_dimensions is not None
    sizes = tuple(map(_as_shape, shapes))
    explanation = _explain(op, sizes, names, dtypes, None, dimensions, explicit, problem, None)
    if explanation.alignment is not None and explanation.problem is None:
        raise ValueError(f"the shapes {', '.join(map(str, sizes))} broadcast: there is no error to build")
    error = ExplainedBroadcastError(explanation.text())
    error.explanation = explanation
    return error


def _explain(
    op: str,
    shapes: tuple[Shape, ...],
    names: Sequence[str] | None,
    dtypes: Sequence[str | None] | None,
    values: Sequence[ArrayLike | None] | None,
    dimensions: Dimensions,
    explicit: bool,
    problem: str | None,
    result_dtype: str | None,
) -> BroadcastExplanation:
    if not isinstance(op, str):
        raise InputError(f"explain_broadcast: wanted a symbol or a name for op, got {op!r}")
    if operator_named(op).name in ("matmul", "@"):
        raise InputError('matmul contracts axes: explain("(2,3) @ (3,4)") says which')
    operands = _operands(shapes, names, dtypes, values)
    outcome: Alignment | Misfit = align_numpy(*shapes)
    if explicit:
        if len(shapes) != 2:
            raise InputError(f"broadcast_dimensions needs two operands, got {len(shapes)}")
        violation = _xla_violation(*shapes, dimensions)
        outcome = Misfit(shapes, ()) if violation else align_xla(*shapes, dimensions)
        problem = violation or problem
    dtype = result_dtype or _result_dtype(op, operands)
    facts = BroadcastFacts(clean_text(op), operands, outcome, problem, dtype, explicit)
    results = _result_values(facts)
    return BroadcastExplanation(facts.op, operands, outcome, problem, dtype, explicit, results)


def _result_values(facts: BroadcastFacts) -> Any:
    if facts.alignment is None or prod(facts.alignment.result) > _VALUES_SHOWN:
        return None
    if any(operand.values is None for operand in facts.operands):
        return None
    from xarr.explanation import values

    return values.apply_to_values(facts)


def _operands(
    shapes: tuple[Shape, ...],
    names: Sequence[str] | None,
    dtypes: Sequence[str | None] | None,
    values: Sequence[ArrayLike | None] | None,
) -> tuple[Operand, ...]:
    if not shapes:
        raise InputError("wanted at least one shape, got none")
    called = check_names("explain_broadcast", names, len(shapes))
    typed = dtypes if dtypes is not None else [None] * len(shapes)
    valued = values if values is not None else [None] * len(shapes)
    for what, words in (("dtypes", typed), ("values", valued)):
        if len(words) != len(shapes):
            raise InputError(f"wanted {len(shapes)} {what}, one per shape, got {len(words)}")
    return tuple(
        Operand(name, shape, None if dtype is None else clean_text(dtype), _as_values(value, shape))
        for name, shape, dtype, value in zip(called, shapes, typed, valued, strict=True)
    )


def _as_shape(shape: Sequence[SupportsIndex]) -> Shape:
    try:
        sizes = as_dimensions(shape)
    except InputError:
        raise InputError(f"a shape must be a sequence of integers such as (5, 1), got {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise ShapeError(f"wanted sizes of 0 or more, got the shape {sizes}")
    if len(sizes) > _MOST_AXES:
        raise ShapeError(f"wanted a shape of at most {_MOST_AXES} axes to explain, got one of {len(sizes)}")
    return sizes


def _as_values(values: ArrayLike | None, shape: Shape) -> Any:
    if values is None:
        return None
    # Imported here, as below, since it needs NumPy, which an explanation of shapes does without.
    from xarr.explanation import values as known

    return known.as_values(values, shape, _VALUES_SHOWN)


def _result_dtype(op: str, operands: tuple[Operand, ...]) -> str | None:
    """The result's dtype where it follows without promotion; None where it does not."""
    operator = operator_named(op)
    data = operands[1:] if operator.name == "where" else operands
    dtypes = {operand.dtype for operand in data}
    if len(dtypes) != 1 or None in dtypes:
        return None
    if operator.is_comparison:
        return "pred"
    return data[0].dtype if operator.keeps_dtype or operator.name == "where" else None
