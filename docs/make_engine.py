"""Write `docs/images/engine.svg`, one program on its way to machine code: `python docs/make_engine.py`.

With `--assembly` it prints the machine code for this processor instead, of which the page shows the inner loop.
Everything in the picture is read from the stages of the program, which needs llvmlite.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Any, Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
PICTURE: Final = CHECKOUT / "docs" / "images" / "engine.svg"

sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

import xarr  # noqa: E402
from xarr import lax  # noqa: E402
from xarr.compiler.plan.program_plan import LoopStep, Plan  # noqa: E402
from xarr.ir.graph import Graph  # noqa: E402
from xarr.ir.ops import Constant, Fusion, While  # noqa: E402

_WIDTH: Final = 940
_LINE: Final = 16
_GROUP_COLOURS: Final = ("#dcebf7", "#fde9d0", "#e3f1da")
_MEMORY_COLOURS: Final = {
    "argument": "#dfe3e8",
    "result": "#cfe8c6",
    "arena": "#f9d9b0",
    "constant": "#eeeeee",
}
_TEXT: Final = 'font-family="Menlo, Consolas, monospace" font-size="11.5" xml:space="preserve"'


def dominant(a: Any, v: Any) -> Any:
    """The direction that `a` stretches most, after fifty multiplications: the program of the page."""

    def step(i: Any, v: Any) -> Any:
        w = a @ v
        return w / xarr.sqrt(xarr.sum(w * w))

    return lax.fori_loop(0, 50, step, v)


def lower_dominant() -> Any:
    """The program under `jit`, ready to be shown."""
    return xarr.jit(dominant).lower("f32[64,64]", "f32[64]")


def loop_of(plan: Plan) -> LoopStep:
    """Find the only loop of the plan."""
    (loop,) = [step for step in plan.steps if isinstance(step, LoopStep)]
    return loop


def groups_of(body: Graph) -> list[tuple[str, list[str]]]:
    """A remark on each group of a loop's body, and on each operation in none, and the names of its operations."""
    return [
        (
            "one loop nest",
            [each.op.called for each in node.op.computation.nodes if not isinstance(each.op, Constant)],
        )
        if isinstance(node.op, Fusion)
        else ("in no group", [node.op.called])
        for node in body.nodes
    ]


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="4" fill="{colour}" '
        'stroke="#8a9199"/>'
    )


def _text(x: float, y: float, text: str, style: str = _TEXT) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(text)}</text>'


def _title(x: float, y: float, number: int, text: str) -> str:
    return _text(x, y, f"{number}  {text}", 'font-size="14" font-weight="bold"')


def _arrow(path: str, tip: tuple[float, float], degrees: int) -> str:
    x, y = tip
    return (
        f'<path d="{path}" fill="none" stroke="#55606b" stroke-width="1.6"/>'
        f'<path d="M-8,-4 L0,0 L-8,4 Z" fill="#55606b" transform="translate({x:.0f},{y:.0f}) rotate({degrees})"/>'
    )


def draw_groups(groups: list[tuple[str, list[str]]], x: float, y: float) -> list[str]:
    """Each group a box with its operations in order."""
    lines = []
    for number, (kind, names) in enumerate(groups):
        height = _LINE * len(names) + 12
        lines.append(_rect(x, y, 150, height, _GROUP_COLOURS[number % len(_GROUP_COLOURS)]))
        lines += [_text(x + 10, y + 18 + _LINE * k, name) for k, name in enumerate(names)]
        lines.append(_text(x + 160, y + 18, kind, 'font-size="12" fill="#55606b"'))
        y += height + 10
    return lines


def draw_text(text: str, x: float, y: float, colour: str, width: float) -> list[str]:
    """A program as text in a box."""
    rows = text.splitlines()
    return [
        _rect(x, y, width, _LINE * len(rows) + 12, colour),
        *(_text(x + 10, y + 18 + _LINE * k, row) for k, row in enumerate(rows)),
    ]


def draw_memory(plan: Plan, x: float, y: float) -> list[str]:
    """A row for each buffer, from the step that writes it to the last that reads it."""
    column = 78
    first = x + 150
    lines = [
        _text(first + column * (k + 1) + 8, y + 6, f"step {k}", 'font-size="11" fill="#55606b"')
        for k in range(len(plan.steps))
    ]
    for buffer, kind, offset in zip(plan.buffers, plan.layout.memory, plan.layout.offsets, strict=True):
        y += 22
        begin, end = buffer.start + 1, min(buffer.end, len(plan.steps) - 1) + 1
        where = kind if offset is None else f"{kind}, byte {offset}"
        lines += [
            _text(x, y + 8, f"b{buffer.number}: {buffer.type.short()}"),
            _rect(first + column * begin, y - 5, column * (end - begin + 1), 18, _MEMORY_COLOURS[kind]),
            _text(first + column * begin + 6, y + 8, where, 'font-size="11"'),
        ]
    return lines


def draw_function(loop: LoopStep, x: float, y: float) -> list[str]:
    """The one function: a branch back to the condition, and a call or a loop for each step."""
    calls = [f"loops of {step.op.called}" for step in loop.body.steps]
    condition = [f"loops of {step.op.called}" for step in loop.cond.steps]
    rows = [
        (0, "run:"),
        (1, "head:"),
        *((2, each) for each in condition),
        (2, "branch to done if it is false"),
        *((2, each) for each in calls),
        (2, "swap the two buffers of v"),
        (2, "branch to head"),
        (1, "done:"),
    ]
    text = "\n".join("   " * depth + row for depth, row in rows)
    lines = draw_text(text, x, y, "#f3eefa", 330)
    top, bottom = y + 14 + _LINE, y + 14 + _LINE * (len(rows) - 2)
    path = f"M{x + 170:.0f},{bottom:.0f} H{x + 305:.0f} V{top:.0f} H{x + 92:.0f}"
    return [*lines, _arrow(path, (x + 84, top), 180)]


def page() -> str:
    """The picture."""
    low = lower_dominant()
    plan = low.stage("plan")
    loop = loop_of(plan)
    (body,) = [node.op.body for node in low.stage("fused").nodes if isinstance(node.op, While)]
    (division,) = [
        step.program for step in loop.body.steps if step.word == "launch" and step.op.called == "div"
    ]
    groups = groups_of(body)
    height = 540
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" role="img" font-family="Helvetica, Arial, sans-serif" font-size="12">',
        "<title>A loop on its way from operations to machine code</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _title(20, 30, 1, "The operations of a step, in groups"),
        *draw_groups(groups, 30, 48),
        _title(460, 30, 2, "A group as a loop program"),
        *draw_text(str(division), 470, 48, _GROUP_COLOURS[2], 440),
        _title(20, 310, 3, "The plan of a step: which memory, from when to when"),
        *draw_memory(loop.body, 30, 332),
        _title(580, 310, 4, "All of it as one native function"),
        *draw_function(loop, 590, 328),
        "</svg>",
        "",
    ]
    return "\n".join(lines)


def assembly() -> str:
    """The machine code of the program for this processor, as an assembler would read it."""
    from xarr_numpy.compiled.codegen import llvm_jit
    from xarr_numpy.compiled.plans.plan_code import emit_plan
    from xarr_numpy.compiled.schedule import SCHEDULE
    from xarr_numpy.processor import PROCESSOR

    return llvm_jit.assembly(emit_plan(lower_dominant().stage("plan"), SCHEDULE, PROCESSOR).text)


if __name__ == "__main__":
    if "--assembly" in sys.argv[1:]:
        print(assembly())
    else:
        PICTURE.write_text(page(), encoding="utf-8")
