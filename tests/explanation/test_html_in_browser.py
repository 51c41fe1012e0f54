"""The HTML of explanations in a browser: steps, alignments, code, contrast; skipped where there is none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.contrast import LOW_CONTRAST
from tests.support.explained import MOST_BYTES
from tests.support.play_site import open_browser
from xarr.explainers.written_calls import EXAMPLES, explain_any
from xarr.explanation.broadcast import explain_shapes
from xarr.explanation.html import join_fragments

#: One of each kind, and what does not fit.
KINDS: Final = (*EXAMPLES, "(3,4) + (3,)", "(3,4) @ (3,)", "(4,) * (3,1) + (3,4)", "(2,3,4,5) + (4,5)")
GHOST, RESULT, ARROW = "g.v.o0", "g.or", "path.n"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


def show(browser: Any, body: str, scheme: str = "light") -> Any:
    """A window with this body."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": 900, "height": 900})
    page.set_default_timeout(10_000)
    page.set_content(
        f'<!DOCTYPE html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><body>{body}</body>'
    )
    return page


def opacities(page: Any, within: str = "") -> list[float]:
    """The opacities of a cell that is read again, of the result, and of the arrow of a new axis."""
    page.wait_for_timeout(450)
    script = "element => Number(getComputedStyle(element).opacity)"
    return [page.eval_on_selector(f"{within} {each}", script) for each in (GHOST, RESULT, ARROW)]


@pytest.mark.parametrize("expression", KINDS)
def test_a_fragment_is_small_and_brings_all_with_it(expression: str) -> None:
    html = explain_any(expression).html()
    assert len(html.encode()) <= MOST_BYTES
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "") and "<link" not in html


def test_steps_show_what_is_there_after_each(browser: Any) -> None:
    page = show(browser, explain_shapes((4, 4), (4, 1), (1,)).html())
    assert page.locator(".steps li:visible").count() == 1
    texts = []
    for number, name in enumerate(("align", "new axes", "stretch", "compute"), 1):
        page.click(f"button:has-text('{number} {name}') >> visible=true")
        texts.append(page.locator(".steps li:visible").inner_text().partition(":")[0])
    assert texts == ["align", "new axes", "stretch", "compute"]


def test_the_picture_follows_the_steps(browser: Any) -> None:
    page = show(browser, explain_shapes((3, 1), (2,), op="*").html())
    stages = []
    for number in (1, 2, 3, 4):
        page.click(f"button:has-text('{number} ')")
        stages.append(opacities(page))
    assert stages == [[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1]]


def test_the_picture_of_a_collective_follows_its_rounds(browser: Any) -> None:
    page = show(browser, explain_any("all_reduce(f32[65536], 4)").html())
    script = "element => Number(getComputedStyle(element).opacity)"
    stages = []
    for number in (1, 2):
        page.click(f"button:has-text('{number} round {number}')")
        page.wait_for_function("() => !document.querySelector('g.p2').getAnimations().length")
        stages.append((page.eval_on_selector("g.p2", script), page.locator(".steps li:visible").count()))
    assert stages == [(0, 1), (1, 1)]


def test_a_picture_without_its_classes_is_noticed(browser: Any) -> None:
    page = show(browser, explain_shapes((3, 1), (2,), op="*").html().replace(" p4", ""))
    page.click("button:has-text('1 ')")
    assert opacities(page) == [0, 1, 0]


def test_alignments_are_switched(browser: Any) -> None:
    page = show(browser, explain_any("(5,1) - (5,)").html())
    assert page.locator("svg:visible").count() == 1
    assert "result (5, 5)" in page.inner_text("body")
    page.click("button:has-text('a - b[:, None]')")
    assert page.locator("svg:visible").count() == 1
    assert "result (5, 1)" in page.inner_text("body") and "result (5, 5)" not in page.inner_text("body")
    assert page.locator("pre:visible").inner_text() == "a - b[:, None]"


def test_without_scripts_the_first_alignment_is_open_and_all_steps_are_listed(browser: Any) -> None:
    html = explain_any("(5,1) - (5,)").html()
    page = show(browser, html[: html.index("<script>")])
    assert page.locator("svg:visible").count() == 1
    assert page.locator(".steps li:visible").count() == 4


def test_steps_of_an_expression_share_style_and_script(browser: Any) -> None:
    explanation = explain_any("(4,) * (3,1) + (3,4)")
    html = explanation.html()
    assert html.count("<script>") == 1 and html.count("<style>") == 2
    page = show(browser, html)
    assert page.locator("[data-wired]").count() == 3
    assert page.locator("button[aria-pressed=true]").count() == 4
    assert (
        page.locator(".xarr-b .paper").first.evaluate("e => getComputedStyle(e).fill") == "rgb(255, 255, 255)"
    )
    broken = show(browser, html.replace("<script>", "<noscript>").replace("</script>", "</noscript>"))
    assert broken.locator("[data-wired]").count() == 0
    alone = explain_any("(5,1) - (5,)").html()
    assert join_fragments([alone]) == alone and join_fragments([]) == ""


def test_several_in_a_page_do_not_meet(browser: Any) -> None:
    page = show(
        browser,
        "".join(explain_any(each).html() for each in ("(5,1) - (5,)", "(5,1) - (5,)", "(2,3) @ (3,)")),
    )
    page.click(".xarr-e:nth-of-type(1) button:has-text('a - b[:, None]')")
    shown = [each.inner_text() for each in page.locator(".xarr-e").all()]
    assert "result (5, 1)" in shown[0] and "result (5, 5)" in shown[1]
    page.hover(".xarr-e:nth-of-type(2) [data-reads] >> nth=6")
    assert page.locator(".lit").count() == 3


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_texts_are_told_from_what_lies_behind(browser: Any, scheme: str) -> None:
    for expression in KINDS:
        explanation = explain_any(expression)
        bodies = [explanation.html()]
        if "+ (3,4)" not in expression:
            bodies.append(explanation.svg())
        for body in bodies:
            page = show(browser, body, scheme)
            if page.locator("[data-reads]:visible").count():
                page.locator("[data-reads]:visible").first.hover()
                page.wait_for_timeout(50)
            assert page.evaluate(LOW_CONTRAST) == [], expression
            page.close()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("color:#a63d00", "color:#e07a30"),
        (".xarr-b .lit rect{fill-opacity:.7", ".xarr-b .lit rect{fill-opacity:1"),
    ],
)
def test_low_contrast_is_noticed(browser: Any, old: str, new: str) -> None:
    html = explain_any("(5,1) - (5,)").html()
    assert old in html
    page = show(browser, html.replace(old, new))
    page.locator("[data-reads]:visible").first.hover()
    assert page.evaluate(LOW_CONTRAST) != []
    assert show(browser, "").evaluate(LOW_CONTRAST) == ["no text at all"]


def test_values_stay_with_the_alignment_that_computes_them() -> None:
    explanation = explain_shapes((2, 2), (2,), values=([[1, 2], [3, 4]], [10, 20]))
    first, second = explanation.html().split("<details><summary>a + b[:, None]")
    assert ">24</text>" in first and ">24</text>" not in second and ">13</text>" not in second


def test_the_library_needs_no_numpy_for_a_fragment() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "from xarr.explanation.broadcast import explain_shapes; print(explain_shapes((5, 1), (5,)).html())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout == explain_shapes((5, 1), (5,)).html() + "\n"
