"""The steps of every kind of explanation: the same in text, HTML, SVG and data, and step by step in a browser."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import pytest

import xarr
from tests.support.contrast import LOW_CONTRAST
from tests.support.play_site import open_browser
from xarr.explainers.written_calls import EXAMPLES, explain_any
from xarr.explanation.broadcast import explain_shapes
from xarr.explanation.broadcast_code import steps as alignment_steps
from xarr.explanation.html import wrap_fragment
from xarr.explanation.steps import (
    MOST_STEPS,
    PictureStep,
    join_terms,
    marks_of,
    render_steps,
    step_lines,
    unravel,
    write_element,
)

GATHER: Final = (
    "gather((5,4), [[0],[3],[9]], (1,4), offset_dims=1, collapsed_slice_dims=0, start_index_map=0)"
)
SCATTER: Final = (
    "scatter((5,4), [[9],[3]], (2,4), update_window_dims=(1,), inserted_window_dims=(0,), "
    "scatter_dims_to_operand_dims=(0,))"
)
#: One of each kind that has steps, broadcasts aside, and what is special among them.
KINDS: Final = (
    *(each for each in EXAMPLES if not each.startswith(("(5,1) - (5,)", "all_reduce"))),
    "all_reduce(f32[65536], 4)",
    "conv((5,), 3, padding=2, base_dilation=2)",
    GATHER,
    SCATTER,
    "dtype(bool, complex128)",
    "mean((2,3,4), axis=(0,2))",
)
NAMES: Final = {
    "f32[2,3] @ f32[3,4]": ["line up", "one element", "multiply and add", "every element"],
    "sum((3,4), axis=1)": ["axes", "one group", "sum", "every group"],
    'window((6,6), 3, strides=2, padding="SAME")': [
        *("array", "padding", "first window", "next window", "last window", "max"),
    ],
    GATHER: ["index", "bounds", "slice", "result", "every window"],
    SCATTER: ["index", "bounds", "update", "result", "every window"],
    "f32[2,3]{0,1}": ["first element", "axis 0", "axis 1", "every element"],
    "dtype(int8, uint8)": ["operands", "edge 1", "int16"],
    "(4,5)[1:, None, [0, 2]]": ["[1:]", "[None]", "index arrays", "result"],
    "all_reduce(f32[65536], 4)": ["round 1", "round 2"],
}

#: What is wrong with a picture at a step: what is to come is hidden and the rest shown; what the step is about keeps
#: its colour and has a thick edge, and everything else fades; one item says which step it is.  `marks` are the numbers
#: of elements that have a class.
_WRONG: Final = """
([number, marks]) => {
  const wrong = [], svg = document.querySelector('.xarr-e svg'), style = each => getComputedStyle(each);
  const named = (each, kind) => [...each.classList].filter(name => name[0] === kind && +name.slice(1) > 0);
  for (const [name, count] of Object.entries(marks)) {
    if (svg.querySelectorAll(`.${name}`).length !== count) wrong.push(`wanted ${count} of ${name}`);
  }
  for (const each of svg.querySelectorAll('[class]')) {
    const isLater = named(each, 'p').some(name => name.slice(1) > number);
    if ((style(each).opacity === '0') !== isLater) wrong.push(`${each.outerHTML}: opacity ${style(each).opacity}`);
  }
  const cells = [...svg.querySelectorAll('g')], lit = cells.filter(each => each.classList.contains(`h${number}`));
  for (const each of lit.length ? cells : []) {
    const box = style(each.querySelector('rect')), strong = lit.includes(each);
    if ((box.strokeWidth === '3px') !== strong) wrong.push(`${each.outerHTML}: edge ${box.strokeWidth}`);
    const opacity = Number(box.fillOpacity);
    if (strong ? opacity < .4 : opacity > .08) wrong.push(`${each.outerHTML}: filled ${opacity}`);
  }
  const items = [...document.querySelectorAll('.steps li')].map(each => each.hidden);
  if (items.indexOf(false) !== number - 1 || items.lastIndexOf(false) !== number - 1) wrong.push(`items ${items}`);
  const focused = document.activeElement.textContent, pressed = document.querySelectorAll('[aria-pressed=true]');
  if (!focused.startsWith(`${number} `) || pressed[0] !== document.activeElement) wrong.push(`focus on ${focused}`);
  return wrong;
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


def show(browser: Any, body: str, scheme: str = "light") -> Any:
    """A window with this body, in which nothing moves."""
    page = browser.new_page(
        color_scheme=scheme, reduced_motion="reduce", viewport={"width": 900, "height": 900}
    )
    page.set_default_timeout(10_000)
    page.set_content(
        f'<!DOCTYPE html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><body>{body}</body>'
    )
    return page


def walk(page: Any, count: int) -> Iterator[int]:
    """The steps by keys alone: by tab to the first button, then by the arrow to the right."""
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    for number in range(1, count + 1):
        yield number
        page.keyboard.press("ArrowRight")


def faults(browser: Any, body: str, explanation: Any) -> list[str]:
    """The faults of all steps of the explanation."""
    marks = Counter(re.findall(r"(?<= )[ph]\d", " ".join(re.findall(r'class="([^"]*)"', explanation.svg()))))
    page = show(browser, body)
    walked = walk(page, len(explanation.steps()))
    listed = [fault for number in walked for fault in page.evaluate(_WRONG, [number, marks])]
    page.close()
    return listed


@pytest.mark.parametrize("expression", KINDS)
def test_the_picture_follows_the_steps(browser: Any, expression: str) -> None:
    explanation: Any = explain_any(expression)
    assert 1 < len(explanation.steps()) <= MOST_STEPS
    assert faults(browser, explanation.html(), explanation) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" h2", ""),
        (" p3", ""),
        ("g:not(.h2,.lit) rect", "g:not(.h2,.lit,.c) rect"),
        ("[data-step='2'] .xarr-b .h2 rect", "[data-step='2'] .xarr-b .h9 rect"),
        (":is(.p3,.p4,.p5,.p6,.p7)", ":is(.p4,.p5,.p6,.p7)"),
        ("box.dataset.step = i + 1", "box.dataset.step = 4"),
        ("ArrowRight: 1", "ArrowRight: 0"),
        ("part.hidden = i !== chosen", "part.hidden = i > chosen"),
    ],
)
def test_a_stepper_that_is_broken_is_noticed(browser: Any, old: str, new: str) -> None:
    explanation: Any = explain_any("f32[2,3] @ f32[3,4]")
    body = explanation.html()
    assert old in body
    assert faults(browser, body.replace(old, new), explanation) != []


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_all_texts_can_be_read_at_each_step(browser: Any, scheme: str) -> None:
    for expression in KINDS:
        explanation: Any = explain_any(expression)
        page = show(browser, explanation.html(), scheme)
        for number in walk(page, len(explanation.steps())):
            assert page.evaluate(LOW_CONTRAST) == [], (expression, number)
        page.close()


def test_a_step_in_which_a_text_cannot_be_read_is_noticed(browser: Any) -> None:
    body = explain_any("sum((3,4), axis=1)").html()
    assert "{fill-opacity:.5;stroke-width:3}" in body
    page = show(
        browser, body.replace("{fill-opacity:.5;stroke-width:3}", "{fill-opacity:1;fill:#333;stroke-width:3}")
    )
    assert [bool(page.evaluate(LOW_CONTRAST)) for _ in walk(page, 4)] == [False, True, True, False]


def test_several_steppers_in_a_page_do_not_meet(browser: Any) -> None:
    body = "".join(explain_any(each).html() for each in (KINDS[0], KINDS[2], KINDS[0]))
    page = show(browser, body)
    page.click(".xarr-e:nth-of-type(2) button:has-text('1 ')")
    shown = page.eval_on_selector_all("[data-step]", "all => all.map(each => each.dataset.step)")
    assert shown == ["4", "1", "4"]


# --- without a browser --------------------------------------------------------------------------------


@pytest.mark.parametrize("expression", KINDS)
def test_all_views_have_the_same_steps(expression: str) -> None:
    explanation: Any = explain_any(expression)
    steps, text = explanation.steps(), explanation.text()
    fragment, data = html.unescape(explanation.html()), explanation.to_dict()["steps"]
    picture = _unwrap(html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", explanation.svg()))))
    assert [each["name"] for each in data] == [step.name for step in steps]
    assert fragment.count("<li>") == len(steps)
    for number, (step, fact) in enumerate(zip(steps, data, strict=True), 1):
        assert f"{number} {step.name}: {step.text}" in _unwrap(text)
        assert f"<li><strong>{step.name}</strong>: {step.text}" in fragment
        assert _unwrap(f"{number} {step.name}: {step.text}") in picture
        assert (fact["text"], fact["code"], fact["lights"]) == (step.text, step.code, step.lights)
        for view in (text, fragment, picture):
            assert _unwrap(step.code) in _unwrap(view)
    if expression in NAMES:
        assert [step.name for step in steps] == NAMES[expression]


def _unwrap(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("expression", KINDS)
def test_what_steps_are_about_is_in_the_picture(expression: str) -> None:
    explanation: Any = explain_any(expression)
    svg = explanation.svg()
    for number, step in enumerate(explanation.steps(), 1):
        assert bool(step.lights) == bool(re.search(rf'class="[^"]* h{number}[ "]', svg))
        assert (bool(step.shows) and number > 1) == bool(re.search(rf'class="[^"]* p{number}[ "]', svg))


@pytest.mark.parametrize(
    "expression",
    [
        "c128[1000000000,1000000000] @ c128[1000000000,1000000000]",
        "sum((100000,100000,100000), axis=(0,2))",
        'window((100000,100000,100000), 100, padding="SAME")',
        "f32[100000,100000,100000]{0,1,2}",
        "all_gather(f32[2], 64)",
        "gather((50,50), [[0,1],[3,3],[9,9],[5,5],[6,6],[7,7]], (12,12), offset_dims=(1,2), start_index_map=(0,1))",
    ],
)
def test_fragments_of_large_arrays_are_small(expression: str) -> None:
    fragment = explain_any(expression).html()
    assert len(fragment.encode()) < 30_000 and fragment.count("<li>") >= 4


def test_pictures_of_small_fragments_alone_show_something_on_hovering() -> None:
    small, large = (
        wrap_fragment('<title>x</title><g data-reads="0:1">' + "." * n, True) for n in (1, 30_000)
    )
    assert "Hover a cell" in small and "<title>x</title>" in small and 'data-reads="0:1"' in small
    assert "Hover a cell" not in large and "<title>" not in large and 'data-reads="' not in large


X, A, B, W = (
    np.arange(1.0, size + 1).reshape(shape)
    for size, shape in ((12, (3, 4)), (6, (2, 3)), (12, (3, 4)), (2, (2,)))
)


@pytest.mark.parametrize(
    ("expression", "arrays", "result"),
    [
        ("(2,3) @ (3,4)", {"a": A, "b": B}, A @ B),
        ("vecdot((3,4), (4,))", {"a": X, "b": X[0]}, np.vecdot(X, X[0])),
        ('einsum("ij,jk->ki", (2,3), (3,4))', {"a": A, "b": B}, (A @ B).T),
        ('einsum("ij->j", (2,3))', {"a": A}, A.sum(axis=0)),
        *(
            (f"{op}((3,4), axis=0)", {"x": X}, getattr(X, op)(axis=0))
            for op in ("sum", "prod", "mean", "max", "min")
        ),
        ("any((1,4), axis=1, keepdims=True)", {"x": X[:1]}, X[:1].any(axis=1, keepdims=True)),
        (
            "max_pool((3,4), 2, padding=1)",
            {"x": X},
            np.pad(X, 1)[[0, 1, 2, 3]][:, [0, 1, 2, 3, 4]].clip(X.max()),
        ),
        ("conv((3,), 2, padding=1)", {"x": X[0, :3], "w": W}, np.convolve(X[0, :3], W[::-1])),
        ("take((3,4), [2, 0], axis=0)", {"operand": X}, X[[2, 0]]),
    ],
)
def test_the_code_of_steps_computes(expression: str, arrays: dict[str, Any], result: Any) -> None:
    explanation: Any = explain_any(expression)
    codes = [step.code.split(" = ") for step in explanation.steps() if step.code]
    assert codes
    for element, code in codes:
        scope = {"max": max, "min": min, "result": result, **arrays}
        assert np.all(eval(element, scope) == eval(code, scope)), (element, code)


def test_what_fails_has_no_steps() -> None:
    for expression in (
        "(3,4) @ (3,)",
        'einsum("ij,ij->i", (2,3), (4,3))',
        "max((0,3), axis=0)",
        "dtype(f8e4m3fn, f16)",
    ):
        explanation: Any = explain_any(expression)
        assert not explanation.fits and explanation.steps() == () and explanation.to_dict()["steps"] == []
        assert 'class="steps"' not in explanation.html() and "steps  " not in explanation.text()


def test_marks_and_lines() -> None:
    steps = (
        PictureStep("one", "first", lights=("a",)),
        PictureStep("two", "then", "x + y", ("b", "b"), ("a", "b")),
    )
    assert marks_of(steps) == {"a": " h1 h2", "b": " p2 h2"}
    assert step_lines(steps) == ["1 one: first", "2 two: then", "    x + y"]
    assert render_steps("<svg/>", ()) == "<svg/>"
    assert render_steps("", [PictureStep("<", "a & b", "i < j")]) == (
        '<div><ol class="steps"><li><strong>&lt;</strong>: a &amp; b<br/><code>i &lt; j</code></li></ol></div>'
    )
    with pytest.raises(AssertionError, match="8 steps, and the style has 7"):
        marks_of([PictureStep("", "")] * (MOST_STEPS + 1))


def test_terms() -> None:
    assert join_terms(4, str, " + ") == "0 + 1 + 2 + 3"
    assert join_terms(9, str, " + ") == "0 + 1 + 2 + … + 8"
    assert [unravel(number, (2, 3)) for number in (0, 4, 5)] == [(0, 0), (1, 1), (1, 2)]
    assert unravel(0, ()) == () and write_element("x", ()) == "x" and write_element("x", (1, "i")) == "x[1,i]"


def test_operands_that_are_expressions_stand_in_parentheses() -> None:
    x, z = xarr.ones((2, 3)), xarr.ones((3, 2))
    explained: list[Any] = [
        xarr.explain(lambda: (x + x) @ z),
        xarr.explain_matmul((2, 3), (3, 2), names=["u + v", "w"]),
        xarr.explain_matmul("c64[2,3]", "c64[2,3]", op="vecdot", names=["u + v", "w"]),
        xarr.explain_einsum("ij,jk->ik", (2, 3), (3, 2), names=["u + v", "w * 2"]),
        xarr.explain_reduce((3, 4), 0, name="u + v"),
        xarr.explain_window((6,), 2, op="conv", name="u + v"),
        xarr.explain_layout((2, 3), name="u + v"),
    ]
    texts = [each.text() for each in explained]
    assert "result[1,1] needs (x + x)[1,:] and z[:,1]" in texts[0]
    assert "result[1,1] = (u + v)[1,0] * w[0,1] + " in texts[1]
    assert "result[1] = (u + v)[1,0].conj() * w[1,0] + " in texts[2]
    assert "result[i, k] += (u + v)[i, j] * (w * 2)[j, k]" in texts[3]
    assert "(u + v).sum(axis=0)" in texts[4]
    for text in [*texts, *(each.svg() for each in explained[1:])]:
        assert not any(each in text for each in ("+ x[", "+ v[", "* 2["))


def test_elements_of_scalars_are_their_names() -> None:
    assert [write_element(name, ()) for name in ("x", "x + y")] == ["x", "(x + y)"]
    assert write_element("w[0]", (1, ":")) == "w[0][1,:]"


def test_steps_of_a_broadcast() -> None:
    explanation = explain_shapes((5, 1), (5,), op="-")
    steps = explanation.steps()
    assert [step.name for step in steps] == ["align", "new axes", "stretch", "compute"]
    assert steps[0].code == "a (5, 1)   b (\N{MIDDLE DOT}, 5)"
    assert steps[1].code == "a (5, 1)   b (1, 5)" and "b: axis 0" in steps[1].text
    assert steps[2].code == "a (5, 5)   b (5, 5)" and "a: axis 1" in steps[2].text
    assert steps[3].text == "result[i,j] = a[i,0] - b[j]"
    assert explanation.to_dict()["steps"] == [asdict(step) for step in steps]


def test_what_does_not_broadcast_has_no_steps() -> None:
    explanation = explain_shapes((2,), (3,))
    assert explanation.steps() == () and explanation.to_dict()["steps"] == []


def test_shapes_of_steps() -> None:
    aligned = alignment_steps(explain_shapes((5, 1), (5,), op="-"))
    assert [step.shapes for step in aligned[:2]] == [((5, 1), (None, 5)), ((5, 1), (1, 5))]
    assert [step.name for step in alignment_steps(explain_shapes((2,), (3,)))] == ["align"]
