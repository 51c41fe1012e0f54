"""What the page shows of the puzzles: `check` takes an answer as JSON and returns the verdict, as JSON.

Puzzles that ask for a shape are checked without NumPy, the others where it is loaded, all by `xarr.puzzles.check`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from xarr.errors import XarrError
from xarr.explanation.broadcast import BroadcastExplanation
from xarr.explanation.sheet import Sheet
from xarr.explanation.svg import render_svg
from xarr.puzzles import PUZZLES, Puzzle, Verdict, check as check_answer, hint
from xarr.puzzles.records import RULES

#: Pictures of one verdict: an answer of many ops has as many explanations.
_MOST_PICTURES = 4


def check(text: str) -> str:
    """The verdict on `{"number": 7, "answer": "a + b"}`, both as JSON; `error` says why a text is no answer."""
    asked = json.loads(text)
    try:
        return json.dumps(_describe(check_answer(asked["number"], asked["answer"])))
    except XarrError as error:
        return json.dumps({"error": str(error)})


def _describe(verdict: Verdict) -> dict[str, Any]:
    return {
        "passed": verdict.passed,
        "message": verdict.message,
        "elements": verdict.elements,
        "best": verdict.best,
        "steps": [_describe_step(each) for each in _explanations(verdict)],
    }


def _explanations(verdict: Verdict) -> Sequence[Any]:
    """The explanation of each op of an answer that does not pass, the last ones if there are many."""
    shown: Any = verdict.explanation
    if shown is None:
        return ()
    if isinstance(shown, BroadcastExplanation | Sheet):
        return (shown,)
    return [step.explanation for step in shown.steps[-_MOST_PICTURES:]]


def _describe_step(shown: Any) -> dict[str, Any]:
    is_broadcast = isinstance(shown, BroadcastExplanation)
    return {"svg": render_svg(shown, words=False) if is_broadcast else shown.svg(), "text": shown.text()}


def list_puzzles() -> list[dict[str, Any]]:
    """All puzzles as the page shows them: the task, and the hints, of which the last is a solution."""
    return [_describe_puzzle(one) for one in PUZZLES]


def _describe_puzzle(one: Puzzle) -> dict[str, Any]:
    return {
        "number": one.number,
        "chapter": one.chapter,
        "title": one.title,
        "task": one.task,
        "arrays": [[a.name, f"{a.dtype}[{', '.join(a.sizes.split())}]"] for a in one.arrays],
        "loops": "" if one.is_shape else one.wanted.rstrip(),
        "rules": [[rule, RULES[rule]] for rule in one.rules],
        "hints": [hint(one.number, step) for step in (1, 2, 3)],
        "names": [*([] if one.is_shape else [a.name for a in one.arrays]), *one.sizes],
        "needs_numpy": not one.is_shape,
    }
