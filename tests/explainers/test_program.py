"""xarr.explain on programs: which broadcasts they make, in the user's words, without computing anything."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.errors import InputError, ParseError, TracedValueError
from xarr.explainers.program import ProgramExplanation
from xarr.explanation.broadcast import BroadcastExplanation

pytestmark = pytest.mark.implicit


def explain(function: Any, *arguments: Any) -> ProgramExplanation:
    explanation = xarr.explain(function, *arguments)
    assert isinstance(explanation, ProgramExplanation)
    return explanation


@pytest.fixture
def image() -> xarr.Array:
    return xarr.asarray(np.arange(6.0).reshape(2, 3))


@pytest.fixture
def bias() -> xarr.Array:
    return xarr.asarray(np.array([1.0, 2.0, 3.0]))


def test_names_are_the_users(image: xarr.Array, bias: xarr.Array) -> None:
    explanation = explain(lambda: image - bias)
    assert len(explanation.steps) == 1
    text = str(explanation)
    assert "image - bias    image: f64[2,3]   bias: f64[3]   ->  f64[2,3]" in text
    assert "result[i,j] = image[i,j] - bias[j]" in text
    assert "lambda: image - bias" in text
    assert f"{__file__}:" in text


def test_calls_and_comparisons_are_named_too(image: xarr.Array, bias: xarr.Array) -> None:
    assert "image: f64[2,3]   bias: f64[3]" in str(explain(lambda: xarr.maximum(image, bias)))
    assert "bias: f64[3]   image: f64[2,3]" in str(explain(lambda: bias <= image))


def test_several_broadcasts_in_order(image: xarr.Array, bias: xarr.Array) -> None:
    def program(x: Any) -> Any:
        centered = x - bias
        column = x[:, :1]
        return centered * column + 1.0

    explanation = explain(program, image)
    assert [step.explanation.op for step in explanation.steps] == ["subtract", "multiply"]
    assert "centered * column" in str(explanation)
    assert explanation.error is None
    lines = [step.source.line for step in explanation.steps if step.source]
    assert lines == sorted(lines)
    assert explanation.html().count("<table") >= 2
    with pytest.raises(InputError, match="shows one broadcast, the program makes 2"):
        explanation.svg()


def test_the_page_shows_source_lines(image: xarr.Array, bias: xarr.Array) -> None:
    explanation = explain(lambda: image < bias)
    html = explanation.html()
    assert "lambda: image &lt; bias" in html
    assert html.index("lambda: image") < html.index("<svg")
    assert f"{__file__}:" in html


def test_operands_as_text() -> None:
    explanation = xarr.explain_broadcast("f32[3,1]", "(4,)", op="-")
    assert str(explanation).startswith("a - b    a: f32[3,1]   b: (4,)   ->  (3, 4)")
    mixed = xarr.explain_broadcast("f64[3,1]", np.ones(4), (3, 4), op="where")
    assert "b: f64[4]   c: (3, 4)" in str(mixed)
    for text in ("f32[3", "q7[3]", "(3)", "(3,) + (3,)", ""):
        with pytest.raises(ParseError):
            xarr.explain_broadcast(text, (3,))


def test_one_broadcast_has_a_picture(image: xarr.Array, bias: xarr.Array) -> None:
    explanation = explain(lambda: image - bias)
    assert explanation.svg().lstrip().startswith("<svg")
    assert explanation._repr_html_() == explanation.html()


def test_none_at_all(image: xarr.Array) -> None:
    explanation = explain(lambda: image * image + 2.0)
    assert explanation.steps == ()
    assert "no implicit broadcast" in str(explanation)
    assert "no implicit broadcast" in explanation.html()


def test_a_failing_broadcast_ends_the_program(image: xarr.Array) -> None:
    rows = xarr.asarray(np.ones(2))
    column = xarr.asarray(np.ones((2, 1)))
    explanation = explain(lambda: (image * column) + rows)
    assert len(explanation.steps) == 2
    assert explanation.error is not None
    assert "rows[:, None]" in str(explanation)


@pytest.mark.usefixtures("recorded")
def test_nothing_is_evaluated(image: xarr.Array, bias: xarr.Array) -> None:
    pending = image + 1
    made: list[xarr.Array] = []
    explain(lambda: made.append(pending - bias))
    assert not pending.is_evaluated
    assert not made[0].is_evaluated


def test_arguments_reach_the_function(image: xarr.Array, bias: xarr.Array) -> None:
    explanation = explain(lambda x, y: x / y, image, bias)
    assert "result[i,j] = x[i,j] / y[j]" in str(explanation)


def test_other_errors_pass_through(image: xarr.Array) -> None:
    with pytest.raises(ZeroDivisionError):
        xarr.explain(lambda: 1 // 0)
    with pytest.raises(TracedValueError):
        xarr.explain(lambda: xarr.lower(lambda x: x if x > 0 else -x, 1.0 * image[0, 0]))


def test_a_string_is_bare_shapes() -> None:
    explanation = xarr.explain("(5,1) - (5,)")
    assert isinstance(explanation, BroadcastExplanation)
    assert "(5, 5)" in explanation.text()


@pytest.mark.parametrize("thing", [3, None, np.ones(3)], ids=["int", "None", "array"])
def test_what_is_no_program(thing: Any) -> None:
    with pytest.raises(InputError, match="wants a function such as lambda: x - y"):
        xarr.explain(thing)


def test_setitem_is_a_broadcast_too(image: xarr.Array, bias: xarr.Array) -> None:
    def write() -> None:
        image[:] = bias

    explanation = explain(write)
    assert [step.explanation.operator.name for step in explanation.steps] == ["setitem"]


def test_broadcasts_of_other_threads_are_not_listed(image: xarr.Array, bias: xarr.Array) -> None:
    def program() -> None:
        thread = threading.Thread(target=lambda: image + bias)
        thread.start()
        thread.join()

    assert explain(program).steps == ()


def test_the_watching_ends(image: xarr.Array, bias: xarr.Array) -> None:
    explanation = explain(lambda: image - bias)
    image + bias
    assert len(explanation.steps) == 1
