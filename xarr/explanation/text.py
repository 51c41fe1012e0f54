"""The plain-text view of a broadcast: also the text of every broadcast error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xarr.explanation.broadcast_code import (
    Suggestion,
    explicit_ops,
    list_words,
    loop_body,
    loop_variables,
    memory,
    one_op,
    reuse,
    suggestions,
    warnings,
)
from xarr.explanation.broadcast_facts import AxisCell, BroadcastFacts


def render_text(facts: BroadcastFacts) -> str:
    """The whole explanation; no line ends in white space, and only ASCII is added to the user's names."""
    blocks = [[headline(facts)], list(_table(facts)), list(_code(facts)), list(warning_lines(facts))]
    blocks.append(list(_failure(facts)))
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block)


def headline(facts: BroadcastFacts) -> str:
    """`a - b    a: f32[5,1]   b: f32[5]   ->  f32[5,5]`."""
    operands = "   ".join(f"{operand.name}: {operand.label}" for operand in facts.operands)
    if facts.problem is not None:
        outcome = "refused"
    elif facts.result is None:
        outcome = "does not broadcast"
    else:
        outcome = facts.result.label
    return f"{facts.operator.apply(facts.terms)}    {operands}   ->  {outcome}"


def cell_text(cell: AxisCell) -> str:
    """`5`, `1 -> 5` for a stretched axis, `new -> 5` for a new one, `3 !` for a clashing one."""
    if cell.kind == "clash":
        return f"{cell.size} !"
    if cell.kind == "new":
        return "new" if cell.target is None else f"new -> {cell.target}"
    return f"1 -> {cell.target}" if cell.kind == "stretched" else str(cell.size)


def how(facts: BroadcastFacts, axis: int) -> str:
    """The outcome on one axis: `match`, `b: new axis`, `a: stretched axis`, `CLASH`."""
    if axis in facts.clashing_axes:
        return "CLASH"
    words = {"new": "new axis", "stretched": "stretched axis"}
    return (
        ", ".join(
            f"{name}: {words[row[axis].kind]}"
            for name, row in zip(facts.names, facts.rows, strict=True)
            if row[axis].kind in words and facts.alignment is not None
        )
        or "match"
    )


def _table(facts: BroadcastFacts) -> Iterator[str]:
    if not facts.has_table or not facts.rank:
        return
    axes = range(facts.rank)
    rows = [["axis", *map(str, axes)]]
    for name, cells in zip(facts.names, facts.rows, strict=True):
        rows.append([name, *map(cell_text, cells)])
    split = len(rows)
    if facts.result is not None:
        rows.append([facts.result.name, *map(str, facts.result.shape)])
    rows.append(["how", *(how(facts, axis) for axis in axes)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for i, row in enumerate(rows):
        if i == split:
            yield "  " + "-" * (sum(widths) + 2 * facts.rank)
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))


def _code(facts: BroadcastFacts) -> Iterator[str]:
    if facts.alignment is None:
        return
    yield from entry("loop", [loop_body(facts, loop_variables(facts))])
    yield from entry("explicit", explicit_ops(facts))
    single = one_op(facts)
    if single is not None and facts.alignment.is_implicit:
        yield from entry("one op", [single])
    yield from entry("reuse", [reuse(facts)])
    yield from entry("memory", [memory(facts)])


def entry(label: str, lines: Sequence[str]) -> Iterator[str]:
    """Lines of code behind a label."""
    for i, line in enumerate(lines):
        yield f"  {label if i == 0 else '':<8}  {line}"


def warning_lines(facts: BroadcastFacts) -> Iterator[str]:
    for warning in warnings(facts):
        for i, line in enumerate(warning.lines):
            yield f"  ! {warning.kind:<9}  {line}" if i == 0 else f"{'':<15}{line}"
        yield from suggestion_lines(warning.suggestions, " " * 17)
        if warning.more:
            yield f"{'':<17}{warning.more}"


def _failure(facts: BroadcastFacts) -> Iterator[str]:
    if facts.problem is None and facts.alignment is not None:
        return
    for line in problem_lines(facts):
        yield f"  {line}"
    fixes, more = suggestions(facts)
    if facts.alignment is not None:  # refused by the strictness in force: the explicit ops above do it
        yield "  the explicit ops above say the same and are accepted"
    elif not fixes:
        yield f"  {no_suggestion(facts)}"
    else:
        yield "  what would work:"
        yield from suggestion_lines(fixes, " " * 6)
        if more:
            yield f"      {more}"


def problem_lines(facts: BroadcastFacts) -> list[str]:
    """Why the op does not run, one sentence per line."""
    if facts.problem is not None:
        return facts.problem.splitlines()
    if facts.alignment is not None:
        return []
    lines = []
    for axis in facts.clashing_axes:
        clashing = [
            f"{name} has {row[axis].size}"
            for name, row in zip(facts.names, facts.rows, strict=True)
            if row[axis].kind == "clash"
        ]
        lines.append(f"axis {axis}: {', '.join(clashing)}; wanted equal sizes, or 1")
        empty = [name for name, row in zip(facts.names, facts.rows, strict=True) if row[axis].size == 0]
        if empty:
            lines.append(
                f"({list_words(empty)} {'is' if len(empty) == 1 else 'are'} empty: 0 fits 0 and 1 alone)"
            )
    lengths = {len(shape) for shape in facts.shapes}
    return [*lines, "(shapes of different rank meet at their last axes)"] if len(lengths) > 1 else lines


def no_suggestion(facts: BroadcastFacts) -> str:
    """The line that says what was tried in vain."""
    if len(set(map(len, facts.shapes))) > 1 and len(facts.operands) > 2:
        return "no placement of the lower-rank axes that was tried fits, in the order they have"
    if len(set(map(len, facts.shapes))) > 1:
        return "no placement of the lower-rank axes fits, in the order they have"
    if len(facts.operands) == 2:
        return "no order of the axes fits either"
    return "no placement of new axes helps: operands of the same rank clash"


def suggestion_lines(fixes: Sequence[Suggestion], indent: str) -> Iterator[str]:
    """One line per suggestion, in columns: NumPy's spelling, the explicit op, the result."""
    left = max((len(one.expression) for one in fixes), default=0)
    middle = max((len(one.explicit or "") for one in fixes), default=0)
    for one in fixes:
        explicit = f"   or  {one.explicit or '':<{middle}}" if middle else ""
        yield f"{indent}{one.expression:<{left}}{explicit}   ->  {one.result}"
