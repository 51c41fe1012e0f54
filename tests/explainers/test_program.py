"""xarr.explain on programs: which broadcasts they make, in the user's words, without computing anything."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.distributed import PartitionSpec as P, make_mesh
from xarr.errors import InputError, ParseError, TracedValueError
from xarr.explainers.program import ProgramExplanation
from xarr.explanation.broadcast import BroadcastExplanation
from xarr.runtime.evaluation import watchers

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


# --- what runs inside of something else ----------------------------------------------------------------


def kinds_of(explanation: ProgramExplanation) -> list[tuple[str, str]]:
    """The kind of each step and what it is within, without files and lines."""
    return [
        (type(step.explanation).__name__, re.sub(r" at \S+:\d+", "", step.within))
        for step in explanation.steps
    ]


def loop(x: Any, w: Any) -> Any:
    def body(_: Any, c: Any) -> Any:
        y = c @ w
        return lax.cond(y.sum() > 3, lambda z: z - z.max(axis=1, keepdims=True), lambda z: z * 2, y)

    return lax.fori_loop(0, 3, body, x)


INSIDE = [
    ("ContractionExplanation", "body of while_loop"),
    ("BroadcastExplanation", "true branch of cond, in body of while_loop"),
    ("ReductionExplanation", "body of while_loop"),
    ("ReductionExplanation", "true branch of cond, in body of while_loop"),
]


def test_loops_and_branches_are_listed(image: xarr.Array) -> None:
    w = xarr.ones((3, 3))
    for function in (loop, xarr.jit(loop)):
        for _ in range(2):  # what has been compiled already is explained as at first
            assert sorted(kinds_of(explain(function, image, w))) == sorted(INSIDE)
    step = next(step for step in explain(loop, image, w).steps if "branch" in step.within)
    assert re.search(
        rf"\nin true branch of cond at {re.escape(__file__)}:\d+, in body of while_loop at ", step.text()
    )
    assert "in true branch of cond" in step.html()
    facts = explain(loop, image, w).to_dict()["steps"]
    assert {bool(each["within"]) for each in facts} == {True}


def test_what_is_in_no_loop_is_within_nothing(image: xarr.Array, bias: xarr.Array) -> None:
    assert kinds_of(explain(xarr.jit(lambda: (image - bias).sum()))) == [
        ("BroadcastExplanation", ""),
        ("ReductionExplanation", ""),
    ]


def test_each_branch_of_a_switch_is_told_apart(image: xarr.Array) -> None:
    branches = [lambda x: x.sum(), lambda x: x.max()]
    steps = explain(lambda: lax.switch(1, branches, image)).steps
    assert [re.sub(r" at .*", "", step.within) for step in steps] == [
        "branches[0] of switch",
        "branches[1] of switch",
    ]


def test_parts_of_shard_map_are_listed(bias: xarr.Array) -> None:
    mesh = make_mesh((2,), ("i",))
    x = xarr.ones((4, 3))
    total = xarr.shard_map(
        lambda a: lax.psum((a - bias).sum(axis=0), "i"), mesh=mesh, in_specs=P("i"), out_specs=P()
    )
    for function in (total, total, xarr.jit(total)):
        explanation = explain(function, x)
        assert kinds_of(explanation) == [
            ("BroadcastExplanation", "<lambda>"),
            ("ReductionExplanation", "<lambda>"),
        ]
        assert "a: f64[2,3]" in str(explanation)
    with xarr.trace_broadcasts() as trace:
        total(x)
        total(x)
    assert trace.count == 2


def test_a_module_of_stablehlo_is_looked_into(image: xarr.Array) -> None:
    text = str(xarr.lower(lambda x: lax.fori_loop(0, 2, lambda _, c: c + 1.0 * c.sum(), x), image))
    (step,) = explain(lambda: xarr.stablehlo.run(text, image)).steps
    assert re.sub(r" at \S+:\d+", "", step.within) == "body of while_loop, in _lambda_"


def test_what_is_looked_at_is_listed_too(image: xarr.Array, bias: xarr.Array) -> None:
    def program() -> float:
        total = float((image - bias).sum())
        half = np.float32(0.5) * image[0, :2].astype("float64")
        print(half.max(), total)
        return float(half.max()) + total

    explanation = explain(program)
    assert kinds_of(explanation) == [
        ("BroadcastExplanation", ""),
        ("ReductionExplanation", ""),
        ("DTypeExplanation", ""),  # float32 beside float64
        ("ReductionExplanation", ""),
        ("ReductionExplanation", ""),
    ]
    assert watchers == []
    later = image.max()
    with pytest.raises(ZeroDivisionError):
        xarr.explain(lambda: 1 // 0)
    assert watchers == [] and explain(lambda: later.evaluate()).steps == ()


def test_what_other_threads_compute_is_not_listed(image: xarr.Array) -> None:
    def program() -> None:
        thread = threading.Thread(target=lambda: image.max().evaluate())
        thread.start()
        thread.join()

    assert explain(program).steps == ()
