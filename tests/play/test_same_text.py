"""Replies in Pyodide, under node, beside those of CPython, letter for letter: pairs of shapes, and puzzles."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkout import CHECKOUT
from tests.support.play_site import assemble_site, load_script
from xarr.puzzles import PUZZLES

SYMBOLS = ("+", "-", "*", "/", "//", "%", "**", "<", "==", "&")


def draw_states(seed: int, count: int) -> list[dict[str, Any]]:
    """States of pairs of shapes up to rank 4: most alike but for some axes, so that they fit, nearly fit, or do not."""
    page, rng = load_script("page"), random.Random(seed)
    states = []
    for _ in range(count):
        first = [rng.choice((0, 1, 1, 2, 3, 3, 4, 7, 12)) for _ in range(rng.randrange(5))]
        second = [rng.choice((size, size, 1, 3, 5)) for size in first[rng.randrange(len(first) + 1) :]]
        if rng.random() < 0.2:
            rng.shuffle(second)
        pair = [_spell(shape, rng) for shape in rng.sample((first, second), 2)]
        dims = rng.choice(("", "", "", "0", "0,1", "1"))
        states.append({**page.start(f" {rng.choice(SYMBOLS)} ".join(pair)), "dims": dims})
    return states


def _spell(shape: list[int], rng: random.Random) -> str:
    if rng.random() < 0.3:
        return f"f32[{','.join(map(str, shape))}]"
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def list_puzzle_questions() -> list[tuple[str, str]]:
    """The solution and the wrong answers of each puzzle that asks for a shape, and texts that are no answers."""
    answers = [
        (one.number, answer)
        for one in PUZZLES
        if one.is_shape
        for answer in (one.solution, *(wrong.answer for wrong in one.wrong))
    ]
    answers += [(1, "(m,"), (1, "open('x')"), (6, "m / 0"), (6, "(k, 'm')")]
    return [("check", json.dumps({"number": number, "answer": answer})) for number, answer in answers]


def differences(questions: list[tuple[str, str]], answers: list[tuple[str | None, str]]) -> list[str]:
    """The questions to which CPython replies otherwise."""
    functions = {"answer": load_script("page").answer, "check": load_script("puzzle_page").check}
    differing = []
    for (name, asked), (text, digest) in zip(questions, answers, strict=True):
        reply = functions[name](asked)
        if json.loads(reply).get("text") != text or hashlib.sha256(reply.encode()).hexdigest() != digest:
            differing.append(asked)
    return differing


@pytest.mark.parametrize("count", [300, pytest.param(2000, marks=pytest.mark.thorough)])
def test_the_text_in_pyodide_is_that_of_cpython(count: int, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    states = draw_states(20261126, count)
    questions = [*(("answer", json.dumps(state)) for state in states), *list_puzzle_questions()]
    site, asked = assemble_site(tmp_path), tmp_path / "questions.json"
    script = CHECKOUT / "tests" / "play" / "answers.mjs"
    asked.write_text(json.dumps(questions), encoding="utf-8")
    command = [node, str(script), str(site), str(asked)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    answers = json.loads(run.stdout)
    assert differences(questions, answers) == []
    outcomes = [
        text is None or ("->" in text and "does not broadcast" not in text) for text, _ in answers[:count]
    ]
    assert count / 10 < sum(outcomes) < count * 9 / 10, "the draws are all alike"


def test_another_text_is_noticed() -> None:
    page = load_script("page")
    questions = [("answer", json.dumps(state)) for state in draw_states(1, 3)] + list_puzzle_questions()[1:2]
    replies = [page.answer(asked) for _, asked in questions[:3]]
    replies.append(load_script("puzzle_page").check(questions[3][1]))
    answers = [(json.loads(each).get("text"), hashlib.sha256(each.encode()).hexdigest()) for each in replies]
    assert differences(questions, answers) == []
    assert differences(questions, [("other", answers[0][1]), *answers[1:]]) == [questions[0][1]]
    assert differences(questions, [(answers[0][0], ""), *answers[1:]]) == [questions[0][1]]
    assert differences(questions, [*answers[:3], (None, "")]) == [questions[3][1]]
