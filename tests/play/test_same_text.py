"""Explanations in Pyodide, under node, beside those of CPython: 2,000 random pairs of shapes, letter for letter."""

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

COUNT = 2000
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


def differences(states: list[dict[str, Any]], answers: list[tuple[str | None, str]]) -> list[str]:
    """The expressions of which CPython says another text, or anything else otherwise."""
    page, differing = load_script("page"), []
    for state, (text, digest) in zip(states, answers, strict=True):
        reply = page.answer(json.dumps(state))
        if json.loads(reply).get("text") != text or hashlib.sha256(reply.encode()).hexdigest() != digest:
            differing.append(str(state["expression"]))
    return differing


def test_the_text_in_pyodide_is_that_of_cpython(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    site, states = assemble_site(tmp_path), draw_states(20261126, COUNT)
    script, asked = CHECKOUT / "tests" / "play" / "answers.mjs", tmp_path / "states.json"
    asked.write_text(json.dumps(states), encoding="utf-8")
    command = [node, str(script), str(site), str(asked)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    answers = json.loads(run.stdout)
    assert differences(states, answers) == []
    outcomes = [text is None or ("->" in text and "does not broadcast" not in text) for text, _ in answers]
    assert COUNT / 10 < sum(outcomes) < COUNT * 9 / 10, "the draws are all alike"


def test_another_text_is_noticed() -> None:
    page, states = load_script("page"), draw_states(1, 3)
    replies = [page.answer(json.dumps(state)) for state in states]
    answers = [(json.loads(each).get("text"), hashlib.sha256(each.encode()).hexdigest()) for each in replies]
    assert differences(states, answers) == []
    assert differences(states, [("other", answers[0][1]), *answers[1:]]) == [states[0]["expression"]]
    assert differences(states, [(answers[0][0], ""), *answers[1:]]) == [states[0]["expression"]]
