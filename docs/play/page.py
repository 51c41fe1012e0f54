"""What the page shows of an expression: `answer` takes the page's state as JSON and returns what it draws, as JSON.

Run by the Python of the browser, and by CPython where the folder is assembled.  Shapes need neither NumPy nor any
other package; where NumPy is loaded, the page explains whatever `python -m xarr explain` does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from xarr.base.broadcasting import LISTED, Alignment, alignments, fixes
from xarr.errors import InputError, ParseError, XarrError
from xarr.explanation.broadcast import BroadcastExplanation, explain_shapes
from xarr.explanation.broadcast_code import (
    cut_text,
    explicit_ops,
    loop_nest,
    memory,
    new_axis_spelling,
    one_op,
    reuse,
    stablehlo,
    steps,
    suggestions,
    warnings,
)
from xarr.explanation.expression_steps import ChainExplanation, OpExplanation, explain_text
from xarr.explanation.sheets.contraction import (
    ContractionExplanation,
    einsum,
    explicit_ops as product_ops,
    loop_body,
    problem_lines as product_problems,
    suggestions as product_fixes,
)
from xarr.explanation.svg import render_svg
from xarr.explanation.text import cell_text, how, no_suggestion, problem_lines

#: The expressions behind the page's buttons, with what each shows.
EXAMPLES = (
    ("(5,1) - (5,)", "a column and a row make a table"),
    ("(3,4) + (4,)", "a row for each row"),
    ("(3,4) + (3,)", "what does not fit, and what would"),
    ("(2,3) + (3,2)", "a transpose is missing"),
    ("(2,3,4) * (3,1)", "new axis and stretched axis"),
    ("(4,3,4) + (4,)", "two alignments fit"),
    ("where((3,), (2,1), ())", "three operands"),
    ("f32[1024,1] < f32[512]", "with element types"),
    ("(2,3) @ (3,4)", "a product"),
    ("(4,) * (3,1) + (3,4)", "one operation after another"),
)

#: Those that are shown where NumPy is loaded.
MORE_EXAMPLES = (
    ("(4,5)[1:, None, [0, 2]]", "an index"),
    ("sum((3,4), axis=1)", "a reduction"),
    ("take((5,4), [0, 3], axis=0)", "a gather"),
    ('window((6,6), 3, strides=2, padding="SAME")', "windows"),
    ("f32[2,3]{0,1}", "a layout"),
    ("dtype(int8, uint8)", "a promotion"),
)

#: A call, an index behind a shape, a layout: what may be explained where NumPy is loaded.
_NEEDS_NUMPY = re.compile(r"\s*(\w+\(.*\)|\([\d,\s]*\)\s*\[.*\]|.*\{[\d,\s]*\})\s*", re.DOTALL)

State = dict[str, Any]
Answer = dict[str, Any]


def answer(text: str) -> str:
    """The page's answer to a state, both as JSON.

    The state: `expression`; `dims`, broadcast dimensions that replace NumPy's rule ("0,2" of the operand of lower rank,
    "0;0,1;" of all operands), or ""; `order`, the order in which the second operand's axes are taken, or "";
    `op`, which operation of several is shown, or null.
    """
    state: State = json.loads(text)
    try:
        return json.dumps(_answer(state))
    except XarrError as error:
        return json.dumps({"error": str(error)})


def warm_up() -> None:
    """Answer once of each kind, so that what is imported late is there."""
    for expression in (EXAMPLES[0][0], EXAMPLES[2][0], EXAMPLES[8][0], "(2,"):
        answer(key(start(expression)))


def answers() -> dict[str, Answer]:
    """The answers to all examples and to what one click leads to from each, by the state as JSON."""
    known: dict[str, Answer] = {}
    for expression, _ in EXAMPLES:
        first = start(expression)
        known[key(first)] = reply = _answer(first)
        for state in _next_states(reply):
            known.setdefault(key(state), _answer(state))
    return known


def start(expression: str) -> State:
    """The state of an expression by NumPy's rule."""
    return {"expression": expression, "dims": "", "order": "", "op": None}


def key(state: State) -> str:
    """The state as the page's script writes it, to look its answer up."""
    return json.dumps(state, separators=(",", ":"), ensure_ascii=False)


def _next_states(reply: Answer) -> Iterator[State]:
    for choice in (*reply.get("alignments", ()), *reply.get("fixes", ())):
        if choice["state"] is not None:
            yield choice["state"]
    yield from (each["state"] for each in reply.get("ops", ()))


def _answer(state: State) -> Answer:
    expression = str(state["expression"])
    whole = _explain(expression)
    ops: list[Answer] = []
    if isinstance(whole, ChainExplanation):
        number = len(whole.steps) - 1 if state["op"] is None else int(state["op"])
        if not 0 <= number < len(whole.steps):
            raise InputError(f"wanted an operation from 0 to {len(whole.steps) - 1}, got {number}")
        shown = whole.steps[number]
        ops = [
            {
                "label": _spell(step),
                "fits": step.fits,
                "shown": i == number,
                "state": {**start(expression), "op": i},
            }
            for i, step in enumerate(whole.steps)
        ]
        return {**_describe(shown, None), "ops": ops, "text": whole.text()}
    return _describe(whole, state)


def _explain(expression: str) -> Any:
    """Explain what needs no NumPy, and where it is loaded the rest too."""
    import sys

    if "numpy" not in sys.modules:
        return _explain_shapes(expression)
    from xarr.explainers.written_calls import explain_any

    return explain_any(expression)


def _explain_shapes(expression: str) -> Any:
    """Explain an op on shapes; where it reads as an index or a call instead, the error says what that needs."""
    try:
        return explain_text(expression)
    except ParseError as error:
        if not _NEEDS_NUMPY.fullmatch(expression):
            raise
        said = f"{error}\nAn index, a gather, a reduction, a window and the like need NumPy: load it below."
        raise ParseError(said) from None


def _describe(shown: Any, state: State | None) -> Answer:
    if isinstance(shown, BroadcastExplanation):
        return _describe_broadcast(shown, state)
    if isinstance(shown, ContractionExplanation):
        return _describe_product(shown)
    return _describe_sheet(shown)


# --- broadcasts -----------------------------------------------------------------------------------


def _describe_broadcast(numpy_rule: BroadcastExplanation, state: State | None) -> Answer:
    """By NumPy's rule, or by the dimensions or the order of axes that the state says."""
    original = numpy_rule
    if state is not None and state["order"]:
        original = numpy_rule = _reorder(numpy_rule, _numbers(state["order"]))
    shown = _align_by(numpy_rule, state["dims"]) if state is not None and state["dims"] else numpy_rule
    fixes, more = suggestions(shown) if shown.alignment is None else ((), "")
    choices = [] if state is None else list(_choices(original, shown, state))
    known = {choice["label"] for choice in choices}
    clickable = [] if state is None or not fixes or choices else list(_transposes(shown, state))
    return {
        "kind": "broadcast",
        "expression": _spell(shown),
        "operands": [{"name": each.name, "label": each.label} for each in shown.operands],
        "result": shown.result.label if shown.fits and shown.result is not None else None,
        "fits": shown.fits,
        "svg": render_svg(shown, words=False),
        "steps": _steps(shown),
        "table": _table(shown),
        "problems": problem_lines(shown),
        "notes": _notes(shown),
        "codes": _codes(shown),
        "cost": [reuse(shown), memory(shown)] if shown.alignment is not None else [],
        "alignments": choices,
        "fixes": clickable
        or [
            {"label": one.expression, "explicit": one.explicit, "result": one.result, "state": None}
            for one in fixes
            if one.expression not in known
        ],
        "more": more if fixes else no_suggestion(shown) if not shown.fits and not choices else "",
        "dims": None if state is None else _dimensions(shown, state),
        "text": shown.text(),
    }


def _reorder(explanation: BroadcastExplanation, order: tuple[int, ...]) -> BroadcastExplanation:
    """Explain the same op on the second operand with its axes in another order."""
    if len(explanation.operands) != 2:
        raise InputError("wanted two operands to take the axes of the second in another order")
    first, second = explanation.operands
    if sorted(order) != list(range(len(second.shape))):
        raise InputError(f"wanted an order of the axes of {second.name}, {second.shape}, got {order}")
    name = f"{second.name}.T" if len(order) == 2 else f"{second.name}.transpose({', '.join(map(str, order))})"
    moved = tuple(second.shape[axis] for axis in order)
    return explain_shapes(
        first.shape, moved, op=explanation.op, names=(first.name, name), dtypes=(first.dtype, second.dtype)
    )


def _align_by(explanation: BroadcastExplanation, dims: str) -> BroadcastExplanation:
    """Explain the same op on operands that are aligned by dimensions instead of by NumPy's rule."""
    if ";" not in dims:
        return explain_shapes(
            *explanation.shapes,
            op=explanation.op,
            names=explanation.names,
            dtypes=[each.dtype for each in explanation.operands],
            broadcast_dimensions=_numbers(dims),
        )
    wanted = tuple(_numbers(part) for part in dims.split(";"))
    for alignment in islice(alignments(*explanation.shapes), 64 * LISTED):
        if alignment.dimensions == wanted:
            return replace(explanation, outcome=alignment, problem=None, is_explicit=True)
    raise InputError(f"these dimensions do not fit the shapes: {dims}")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.strip(" ()").split(",") if part.strip())
    except ValueError:
        raise InputError(f"wanted axes such as 0, 2, got {text!r}") from None


def _choices(original: BroadcastExplanation, shown: BroadcastExplanation, state: State) -> Iterator[Answer]:
    """Every alignment that fits, NumPy's first, up to a limit; none where there is nothing to choose."""
    by_meaning: dict[Any, Alignment] = {}
    if original.alignment is not None:
        by_meaning[original.alignment.meaning] = original.alignment
    for alignment in islice(alignments(*original.shapes), 64 * LISTED):
        by_meaning.setdefault(alignment.meaning, alignment)
    if len(by_meaning) + (original.alignment is None) < 2:
        return
    for meaning, alignment in islice(by_meaning.items(), LISTED):
        is_numpys = alignment is original.alignment
        placed = replace(original, outcome=alignment, problem=None, is_explicit=not is_numpys)
        assert placed.result is not None, "an aligned op has a result"
        yield {
            "label": _spell(placed),
            "result": placed.result.label,
            "is_numpys": is_numpys,
            "shown": shown.alignment is not None and shown.alignment.meaning == meaning,
            "state": {**state, "dims": "" if is_numpys else _spell_dimensions(alignment), "op": None},
        }


def _spell_dimensions(alignment: Alignment) -> str:
    lower = _lower(alignment.operands)
    if lower is not None:
        return ",".join(map(str, alignment.dimensions[lower]))
    return ";".join(",".join(map(str, dims)) for dims in alignment.dimensions)


def _lower(shapes: tuple[tuple[int, ...], ...]) -> int | None:
    """Which of two operands has the lower rank, and axes; None where `broadcast_dimensions` say nothing."""
    if len(shapes) != 2 or len(shapes[0]) == len(shapes[1]) or not min(shapes, key=len):
        return None
    return 0 if len(shapes[0]) < len(shapes[1]) else 1


def _transposes(shown: BroadcastExplanation, state: State) -> Iterator[Answer]:
    """The orders of the second operand's axes that fit."""
    if len(shown.operands) != 2 or state["order"] or len(shown.shapes[0]) != len(shown.shapes[1]):
        return
    listed, _ = suggestions(shown)
    for fix, one in zip(fixes(*shown.shapes, names=shown.terms, limit=LISTED), listed, strict=False):
        if fix.permutation is not None:
            order = ",".join(map(str, fix.permutation))
            change = {**state, "order": order, "op": None}
            yield {"label": one.expression, "explicit": one.explicit, "result": one.result, "state": change}


def _dimensions(shown: BroadcastExplanation, state: State) -> Answer | None:
    """Describe the field for `broadcast_dimensions`; None where there is nothing to say."""
    lower = _lower(shown.shapes)
    if lower is None:
        return None
    axes = state["dims"] if shown.alignment is None else ",".join(map(str, shown.alignment.dimensions[lower]))
    return {"name": shown.names[lower], "value": axes.replace(",", ", "), "rank": shown.rank}


def _spell(step: OpExplanation) -> str:
    """The op as it is written: with new axes where it is not NumPy's rule that adds them."""
    if isinstance(step, ContractionExplanation):
        return step.expression
    if step.is_explicit and step.alignment is not None:
        return new_axis_spelling(step)
    return step.operator.apply(step.terms)


def _steps(shown: BroadcastExplanation) -> list[Answer]:
    listed = []
    for step in steps(shown):
        names = ("result",) if step.name == "compute" else shown.names
        shapes = [f"{name} {_spell_shape(shape)}" for name, shape in zip(names, step.shapes, strict=True)]
        listed.append({"name": step.name, "text": step.text, "shapes": shapes})
    return listed


def _spell_shape(shape: tuple[int | None, ...]) -> str:
    """The shape with a dot for an axis that the operand lacks."""
    sizes = ["\N{MIDDLE DOT}" if size is None else str(size) for size in shape]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def _table(shown: BroadcastExplanation) -> list[list[Answer]]:
    """The axis table: the head, a row for each operand, the result, and what happens."""
    if not shown.has_table or not shown.rank:
        return []
    rows = [[("axis", ""), *((str(axis), "") for axis in range(shown.rank))]]
    for name, cells in zip(shown.names, shown.rows, strict=True):
        rows.append(
            [
                (name, ""),
                *((cell_text(cell).replace("->", "\N{RIGHTWARDS ARROW}"), cell.kind) for cell in cells),
            ]
        )
    if shown.result is not None:
        rows.append([(shown.result.name, ""), *((str(size), "") for size in shown.result.shape)])
    rows.append([("how", ""), *((how(shown, axis), "") for axis in range(shown.rank))])
    return [[{"text": text, "kind": kind} for text, kind in row] for row in rows]


def _notes(shown: BroadcastExplanation) -> list[Answer]:
    """Warnings; the alternatives of an ambiguous one are the page's buttons."""
    return [
        {
            "kind": warning.kind,
            "lines": [line.partition(" The other")[0] for line in warning.lines],
            "suggestions": [one.expression for one in warning.suggestions] if warning.kind == "OUTER" else [],
        }
        for warning in warnings(shown)
    ]


def _codes(shown: BroadcastExplanation) -> list[Answer]:
    if shown.alignment is None:
        return []
    single, written = one_op(shown), stablehlo(shown)
    spellings = [] if shown.is_explicit else [shown.operator.apply(shown.terms)]
    explicit = "\n".join(explicit_ops(shown)) + (f"\n\n# in one op\n{single}" if single is not None else "")
    codes = [
        ("NumPy", "\n".join(dict.fromkeys((*spellings, new_axis_spelling(shown))))),
        ("XLA", explicit),
        ("Loop", loop_nest(shown)),
        *([("StableHLO", written)] if written is not None else []),
        ("Text", shown.text()),
    ]
    return [{"name": name, "code": code} for name, code in codes]


# --- products and others --------------------------------------------------------------------------


def _describe_product(shown: ContractionExplanation) -> Answer:
    written = einsum(shown)
    codes = [("XLA", "\n".join(product_ops(shown))), ("Loop", loop_body(shown))] if shown.fits else []
    codes = [("NumPy", f"{shown.expression}\n{written or ''}".rstrip()), *codes] if shown.fits else []
    return {
        **_describe_other(shown, [*codes, ("Text", shown.text())]),
        "expression": shown.expression,
        "operands": [{"name": each.name, "label": each.label} for each in shown.operands],
        "result": shown.result.label if shown.fits and shown.result is not None else None,
        "problems": product_problems(shown),
        "fixes": [
            {"label": one.expression, "explicit": one.explicit, "result": one.result, "state": None}
            for one in (() if shown.fits else product_fixes(shown))
        ],
    }


def _describe_sheet(shown: Any) -> Answer:
    """An explanation that needs NumPy: of an index, a gather, a reduction, a window, a layout …"""
    codes = [(each.title, each.text) for each in shown.codes()] if hasattr(shown, "codes") else []
    return _describe_other(shown, [*codes, ("Text", shown.text())])


def _describe_steps(shown: Any) -> list[Answer]:
    """The steps of an explanation that is no broadcast, as the page shows them."""
    steps = shown.steps() if callable(getattr(shown, "steps", None)) else ()
    return [{"name": s.name, "text": s.text, "shapes": [s.code] if s.code else []} for s in steps]


def _describe_other(shown: Any, codes: list[tuple[str, str]]) -> Answer:
    return {
        **{
            "kind": "other",
            "expression": cut_text(shown.text().partition("\n")[0], 200),
            "operands": [],
            "result": None,
        },
        **{
            "fits": bool(shown.fits),
            "svg": shown.svg(),
            "steps": _describe_steps(shown),
            "table": [],
            "problems": [],
            "notes": [],
        },
        **{"codes": [{"name": name, "code": code} for name, code in codes], "cost": [], "alignments": []},
        **{"fixes": [], "more": "", "dims": None, "text": shown.text()},
    }
