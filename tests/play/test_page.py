"""What the page is told of a state, by CPython: the same module answers in the browser."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.checkout import CHECKOUT
from tests.support.play_site import load_script
from xarr.explanation.expression_steps import explain_text

page = load_script("page")


def ask(expression: str, **changes: Any) -> Any:
    """The answer to a state, after its way through JSON."""
    return json.loads(page.answer(page.key({**page.start(expression), **changes})))


@pytest.mark.parametrize("expression", [expression for expression, _ in page.EXAMPLES])
def test_an_example_has_an_answer_with_the_text_of_the_library(expression: str) -> None:
    reply = ask(expression)
    assert reply["text"] == explain_text(expression).text()
    assert (reply["svg"].startswith("<svg ") and reply["codes"]) or not reply["fits"]
    assert page.answers()[page.key(page.start(expression))] == reply


def test_every_click_on_an_example_has_an_answer() -> None:
    known = page.answers()
    states = [
        choice["state"]
        for expression, _ in page.EXAMPLES
        for reply in [known[page.key(page.start(expression))]]
        for choice in (*reply["alignments"], *reply["fixes"], *reply.get("ops", ()))
    ]
    assert len(states) >= 8
    assert all(page.key(state) in known for state in states if state is not None)


def test_the_alignments_that_fit_are_choices_and_one_of_them_is_shown() -> None:
    reply = ask("(5,1) - (5,)")
    assert [(each["label"], each["result"], each["shown"]) for each in reply["alignments"]] == [
        ("a - b", "(5, 5)", True),
        ("a - b[:, None]", "(5, 1)", False),
    ]
    other = ask(**reply["alignments"][1]["state"])
    assert other["result"] == "(5, 1)" and other["expression"] == "a - b[:, None]"
    assert [each["shown"] for each in other["alignments"]] == [False, True]
    assert other["dims"]["value"] == "0"


def test_of_three_operands_each_alignment_is_a_choice() -> None:
    choices = ask("where((2,), (2,2), ())")["alignments"]
    assert len(choices) == 2 and choices[1]["state"]["dims"].count(";") == 2
    assert ask(**choices[1]["state"])["alignments"][1]["shown"] is True


@pytest.mark.parametrize(
    ("expression", "kind", "labels"),
    [
        ("(3,4) + (3,)", "alignments", ["a + b[:, None]"]),
        ("(2,3) + (3,2)", "fixes", ["a + b.T"]),
        ("(2,3,4) + (4,3,2)", "fixes", ["a + b.transpose(2, 1, 0)"]),
        ("(2,3) + (4,5)", "fixes", []),
    ],
)
def test_what_does_not_fit_has_fixes_to_click(expression: str, kind: str, labels: list[str]) -> None:
    reply = ask(expression)
    assert reply["result"] is None and reply["problems"]
    assert [each["label"] for each in reply[kind]] == labels
    assert bool(labels) or reply["more"] == "no order of the axes fits either"
    for each in reply[kind]:
        mended = ask(**each["state"])
        assert mended["fits"] and mended["result"] == each["result"] and mended["expression"] == each["label"]


def test_dimensions_replace_the_rule_of_numpy() -> None:
    assert ask("(2,3) + (2,)", dims="0")["result"] == "(2, 3)"
    refused = ask("(2,3) + (2,)", dims="7")
    assert refused["result"] is None and refused["problems"][0].startswith("[B3]")
    assert refused["dims"]["value"] == "7"
    assert ask("(2,3) + (2,3)")["dims"] is None and ask("(2,3) + ()")["dims"] is None


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"dims": "one"}, "wanted axes such as 0, 2, got 'one'"),
        ({"dims": "0;0"}, "these dimensions do not fit"),
        ({"order": "0,1"}, "wanted an order of the axes"),
        ({"order": "x"}, "wanted axes"),
        ({"expression": "(2,"}, "cannot read the expression"),
        ({"expression": "(2,) + (2,) + (2,)", "op": 5}, "wanted an operation from 0 to 1, got 5"),
    ],
)
def test_a_state_that_makes_no_sense_is_said_to(changes: dict[str, Any], wanted: str) -> None:
    assert wanted in ask(**{"expression": "(2,3) + (2,)", **changes})["error"]


def test_operations_one_after_another_are_shown_one_at_a_time() -> None:
    expression = "(4,) * (3,1) + (2,)"
    reply = ask(expression)
    assert [(each["label"], each["fits"], each["shown"]) for each in reply["ops"]] == [
        ("a * b", True, False),
        ("(a * b) + c", False, True),
    ]
    assert ask(expression, op=0)["result"] == "(3, 4)"


def test_steps_show_what_each_makes_of_the_shapes() -> None:
    steps = ask("(5,1) - (5,)")["steps"]
    assert [each["name"] for each in steps] == ["align", "new axes", "stretch", "compute"]
    assert [each["shapes"][1:] or each["shapes"] for each in steps] == [
        ["b (·, 5)"],
        ["b (1, 5)"],
        ["b (5, 5)"],
        ["result (5, 5)"],
    ]


def test_code_in_each_language() -> None:
    codes = {each["name"]: each["code"] for each in ask("f32[5,1] - f32[5]")["codes"]}
    assert list(codes) == ["NumPy", "XLA", "Loop", "StableHLO", "Text"]
    assert "tensor<5xf32>" in codes["StableHLO"] and "for i in range(5):" in codes["Loop"]


@pytest.mark.parametrize("expression", [expression for expression, _ in page.MORE_EXAMPLES])
def test_with_numpy_the_page_explains_what_the_command_does(expression: str) -> None:
    reply = ask(expression)
    assert "error" not in reply, reply["error"]
    assert reply["svg"].startswith("<svg ") and reply["codes"][-1]["name"] == "Text"


def test_without_numpy_the_page_explains_shapes() -> None:
    code = (
        "import sys\nclass Absent:\n    def find_spec(name, *_):\n"
        "        if name in ('numpy', 'ml_dtypes', 'llvmlite'): raise ImportError(name)\n"
        f"sys.meta_path.insert(0, Absent); sys.path.insert(0, {str(CHECKOUT / 'docs' / 'play')!r})\n"
        "import page\nprint(len(page.answers()))\n"
        "print(page.answer(page.key(page.start('sum((3,4), axis=1)'))))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[0]) == len(page.answers())
    assert "cannot read" in run.stdout
