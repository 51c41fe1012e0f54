"""The page in a browser, from a server on this machine and without a network.

Each check has a defect of the sources on which it fails.  Skipped where there is no browser, no Playwright, or no
Pyodide: `XARR_PYODIDE=folder`, or npm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from tests.support.contrast import LOW_CONTRAST
from tests.support.play_site import assemble_site, has_packages, open_browser, serve
from tests.support.play_visits import (
    PATIENCE,
    Defect,
    Visit,
    answer,
    ask,
    opacity,
    show_puzzle,
    visiting,
    wait_for_kept_memory,
    wait_for_python,
    wait_for_text,
)

EXAMPLES: Final = ("(5,1) - (5,)", "(3,4) + (3,)", "(2,3) @ (3,4)", "f32[1024,1] < f32[512]")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(assemble_site(tmp_path_factory.mktemp("play"))) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def visits(browser: Any, address: str) -> Iterator[dict[bool, Visit]]:
    """With Python, and without, by whether it loads."""
    with visiting(browser, address) as whole, visiting(browser, address, python=False) as quick:
        yield {True: whole, False: quick}


# --- checks -----------------------------------------------------------------------------------------


def check_typing(visit: Visit) -> None:
    page = visit.with_python()
    ask(page, "(2,1) + (3,)")
    wait_for_text(page, "#headline", "→ (2, 3)")
    wait_for_text(page, "#table", "1 → 3")
    ask(page, "(2,1) + (3,")
    wait_for_text(page, "#problem", "cannot read the expression")
    ask(page, "(2,1) + (3,)")
    page.wait_for_selector("#problem", state="hidden")


def check_hover(visit: Visit) -> None:
    page = visit.open()
    page.hover("[data-reads='0:1,0 1:2']")
    wait_for_text(page, "#reads", "result[1,2] = a[1,0] - b[2]")
    assert page.locator(".picture .lit").count() == 3
    page.hover("[data-cell='0:1,0']")
    wait_for_text(page, "#reads", "a[1,0] is read by 5")
    assert page.locator(".picture .lit").count() == 6


def check_tabs(visit: Visit) -> None:
    page = visit.open()
    for name, text in (
        ("XLA", "lax.broadcast_in_dim"),
        ("Loop", "for j in"),
        ("StableHLO", "tensor<5x5xf64>"),
    ):
        page.click(f"role=tab[name={name}]")
        wait_for_text(page, "#panel", text)
        assert page.locator("role=tab[selected=true]").inner_text() == name
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#copy")
    wait_for_text(page, "#copy", "Copied")
    assert "tensor<5x5xf64>" in page.evaluate("navigator.clipboard.readText()")


def check_stepper(visit: Visit) -> None:
    page = visit.open("#e=(5,1) - (5,)&s=1")
    ghost, result, arrow = ".picture g.v.o0", ".picture g.or", ".picture path.n"
    wait_for_text(page, "#step", "each axis of an operand meets")
    assert [opacity(page, each) for each in (ghost, result, arrow)] == [0, 0, 0]
    page.click("#on")
    wait_for_text(page, "#step", "b (1, 5)")
    assert [opacity(page, each) for each in (ghost, result, arrow)] == [0, 0, 1]
    page.click("text=stretch")
    assert [opacity(page, each) for each in (ghost, result, arrow)] == [1, 0, 1]
    page.click("#on")
    assert [opacity(page, each) for each in (ghost, result, arrow)] == [1, 1, 1]
    assert page.locator("#on").is_disabled()


def check_stepper_of_a_product(visit: Visit) -> None:
    page = visit.open("#e=(2,3) @ (3,4)&s=2")
    needed, result, other = ".picture g.h2", ".picture g.or", ".picture g[data-reads].p4"
    edges = "cells => cells.map(each => getComputedStyle(each.querySelector('rect')).strokeWidth)"
    wait_for_text(page, "#step", "result[1,1] needs a[1,:] and b[:,1]")
    assert page.eval_on_selector_all(needed, edges) == ["3px"] * 6
    assert [opacity(page, each) for each in (result, other)] == [0, 0]
    page.click("#on")
    wait_for_text(page, "#step", "a[1,0] * b[0,1] + a[1,1] * b[1,1] + a[1,2] * b[2,1]")
    assert [opacity(page, each) for each in (result, other)] == [1, 0]
    page.click("#on")
    wait_for_text(page, "#step", "8 × 3 = 24 products")
    assert [opacity(page, each) for each in (result, other)] == [1, 1]
    assert page.eval_on_selector_all(needed, edges) != ["3px"] * 6
    assert page.locator("#on").is_disabled()


def check_alignments(visit: Visit) -> None:
    page = visit.open()
    page.click("#alignments button:has-text('b[:, None]')")
    wait_for_text(page, "#headline", "→ (5, 1)")
    assert page.locator("#alignments [aria-pressed=true]").inner_text().startswith("a - b[:, None]")
    assert page.input_value("#dimensions") == "0"
    page.click("#alignments button:has-text('rule')")
    wait_for_text(page, "#headline", "→ (5, 5)")


def check_fixes(visit: Visit) -> None:
    page = visit.with_python()
    ask(page, "(2,5) + (5,2)")
    page.click("#fixes button:has-text('b.T')")
    wait_for_text(page, "#headline", "→ (2, 5)")
    ask(page, "(6,7) + (6,)")
    page.click("#alignments button:has-text('b[:, None]')")
    wait_for_text(page, "#headline", "→ (6, 7)")


def check_dimensions(visit: Visit) -> None:
    page = visit.with_python()
    ask(page, "(2,2) + (2,)")
    wait_for_text(page, "#headline", "(2,)")
    page.fill("#dimensions", "7")
    wait_for_text(page, "#notes", "[B3]")
    page.fill("#dimensions", "0")
    wait_for_text(page, "#headline", "b[:, None]")


def check_link(visit: Visit) -> None:
    page = visit.open()
    page.click("#alignments button:has-text('b[:, None]')")
    page.click("role=tab[name=Loop]")
    page.click("text=new axes")
    wait_for_text(page, "#headline", "→ (5, 1)")
    other = visit.open(page.evaluate("location.hash"))
    wait_for_text(other, "#headline", "→ (5, 1)")
    assert other.locator(".picture").get_attribute("data-step") == "2"
    assert other.locator("role=tab[selected=true]").inner_text() == "Loop"
    other.evaluate("location.hash = '#e=(3,4) %2B (4,)'")
    wait_for_text(other, "#headline", "→ (3, 4)")


def reach_by_keys(page: Any, most: int) -> list[str]:
    """List up to so many things that Tab reaches, by id or text, each of which shows that it has the focus."""
    page.focus("body")
    reached: list[str] = []
    for _ in range(most):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "() => { const at = document.activeElement, text = at === document.body ? '' : at.textContent; "
            "return [at.id || text.trim(), getComputedStyle(at).outlineStyle]; }"
        )
        if not name or name in reached:
            break
        reached.append(name)
        assert outline == "solid", f"{name} shows no focus"
    return reached


def check_keyboard(visit: Visit) -> None:
    """All that can be clicked is reached by the keys, and what has the focus is seen to have it."""
    page = visit.open()
    reached = reach_by_keys(page, 60)
    wanted = {
        "expression",
        "(3,4) + (3,)",
        "picture",
        "dimensions",
        "copy",
        "panel",
        "link",
        "numpy",
        "to-puzzles",
    }
    assert wanted <= set(reached), f"{wanted - set(reached)} not reached"
    page.focus("#picture")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    wait_for_text(page, "#reads", "result[1,1] =")
    page.focus("#stepper [aria-current]")
    page.keyboard.press("ArrowLeft")
    wait_for_text(page, "#step", "stretch")
    page.focus("role=tab[selected=true]")
    page.keyboard.press("ArrowRight")
    wait_for_text(page, "#panel", "broadcast_in_dim")
    page.focus("#examples button:nth-child(3)")
    page.keyboard.press("Enter")
    wait_for_text(page, "#headline", "does not fit")


def check_contrast(visit: Visit) -> None:
    for scheme in ("light", "dark"):
        page = visit.open(scheme=scheme)
        for expression in EXAMPLES:
            page.click(f"#examples button[data-expression='{expression}']")
            page.wait_for_timeout(300)
            cell = page.locator(".picture [data-reads]").first
            if cell.count():
                cell.hover()
            assert page.evaluate(LOW_CONTRAST) == [], f"{expression}, {scheme}"


def check_schemes(visit: Visit) -> None:
    """Whether the page and its picture are bright where the reader wants that, and dark where not."""
    dark, light = (visit.open(scheme=scheme) for scheme in ("dark", "light"))
    for page, is_dark in ((dark, True), (light, False)):
        colors = page.evaluate(
            "() => [getComputedStyle(document.body).backgroundColor, "
            "getComputedStyle(document.querySelector('.picture svg .paper')).fill, "
            "getComputedStyle(document.querySelector('.card')).backgroundColor]"
        )
        sums = [sum(map(int, color[4:-1].split(","))) for color in colors]
        assert all((total < 150) is is_dark for total in sums), colors
        assert colors[1] == colors[2], "the picture lies on a sheet of another colour"


def check_narrow(visit: Visit) -> None:
    page = visit.open(width=320)
    for expression in (*EXAMPLES, "(4,) * (3,1) + (3,4)"):
        page.click(f"#examples button[data-expression='{expression}']")
        for name in ("StableHLO", "Text"):
            if page.locator(f"role=tab[name={name}]").count():
                page.click(f"role=tab[name={name}]")
        page.wait_for_timeout(100)
        width = page.evaluate(
            "() => { scrollTo(9999, 0); return [document.documentElement.scrollWidth, scrollX]; }"
        )
        assert width == [320, 0], f"{expression} is {width} wide"


def check_no_errors(visit: Visit) -> None:
    page = visit.with_python()
    page.reload()
    for expression in EXAMPLES:
        page.click(f"#examples button[data-expression='{expression}']")
    wait_for_python(page)
    page.click("#to-puzzles")
    answer(page, "(n, m)")
    wait_for_text(page, "#verdict", "not yet")
    page.click("#to-shapes")
    assert visit.errors == []
    assert visit.requests and all(each.startswith(visit.address) for each in visit.requests), visit.requests


def check_without_web_assembly(visit: Visit) -> None:
    page = visit.open(script="delete globalThis.WebAssembly")
    wait_for_text(page, "#status", "has no WebAssembly")
    page.click("#examples button:nth-child(3)")
    wait_for_text(page, "#headline", "does not fit")
    page.click("#alignments button")
    wait_for_text(page, "#headline", "→ (3, 4)")
    assert page.locator("#expression").is_disabled()


def check_without_numpy(visit: Visit) -> None:
    page = visit.with_python()
    page.click("#numpy")
    status = "#more .numpy-status"
    for _ in range(600):
        if "could not be loaded" in page.inner_text(status):
            break
        page.wait_for_timeout(100)
    wait_for_text(page, status, "shapes go on working")
    assert not page.locator("#numpy").is_disabled(), "one may try again"
    ask(page, "(9,1) + (2,)")
    wait_for_text(page, "#headline", "→ (9, 2)")
    ask(page, "sum((3,4), axis=1)")
    wait_for_text(page, "#problem", "need NumPy: load it below")


def check_kept_memory(visit: Visit) -> None:
    """The second visit takes Python as it was left at the first, and answers as that did."""
    page = visit.open()
    wait_for_python(page)
    assert page.get_attribute("html", "data-restored") == "false"
    wait_for_kept_memory(page)
    page.reload()
    wait_for_python(page)
    assert page.get_attribute("html", "data-restored") == "true"
    ask(page, "(8,1) + (3,)")
    wait_for_text(page, "#headline", "→ (8, 3)")
    show_puzzle_view(page, 6)
    answer(page, "(m, p)")
    wait_for_text(page, "#verdict", "wanted (2, 3, 5)")


def check_damaged_memory(visit: Visit) -> None:
    """Memory that was kept and cannot be used is given up, and Python starts as at the first visit."""
    page = visit.open()
    wait_for_python(page)
    wait_for_kept_memory(page)
    page.evaluate(
        "async () => { const store = await caches.open('xarr.python'), [key] = await store.keys(); "
        "await store.put(key, new Response(new Uint8Array(100))); }"
    )
    page.reload()
    wait_for_python(page)
    assert page.get_attribute("html", "data-restored") == "false"
    ask(page, "(8,1) + (3,)")
    wait_for_text(page, "#headline", "→ (8, 3)")


def show_puzzle_view(page: Any, number: int) -> None:
    """Go to a puzzle from the view of shapes."""
    page.click("#to-puzzles")
    show_puzzle(page, number)


def check_views(visit: Visit) -> None:
    """Shapes and puzzles, each with its own address; going back leads to the one before."""
    page = visit.open("#e=(3,4) %2B (3,)")
    page.click("#to-puzzles")
    page.wait_for_selector("#shapes", state="hidden")
    assert page.get_attribute("#to-puzzles", "aria-current") == "page"
    show_puzzle(page, 9)
    page.go_back()
    page.go_back()
    page.wait_for_selector("#puzzles", state="hidden")
    wait_for_text(page, "#headline", "does not fit")
    assert page.input_value("#expression") == "(3,4) + (3,)"
    assert page.get_attribute("#to-shapes", "aria-current") == "page"


def check_puzzle(visit: Visit) -> None:
    """A wrong answer is drawn, a right one is kept in the list, also after another start."""
    page = visit.open("#p=3")
    wait_for_python(page)
    answer(page, "(m, n, k)")
    wait_for_text(page, "#verdict", "not yet: for m = 3, n = 4, k = 2")
    assert page.locator("#failure svg").count() == 1
    page.click("#failure summary")
    wait_for_text(page, "#failure pre", "a: (3, 1, 4)   b: (2, 1)")
    answer(page, "open('x')")
    wait_for_text(page, "#verdict", "wanted calls")
    assert page.locator("#failure svg").count() == 0
    answer(page, "(m, k, n)")
    wait_for_text(page, "#verdict", "right")
    page.click("#verdict a")
    wait_for_text(page, "#puzzle-title", "4. the surprise")
    assert page.input_value("#answer-text") == "" and page.locator("#verdict").inner_text() == ""
    wait_for_text(page, "#solved", "1 of 36 solved")
    page.reload()
    wait_for_text(page, "#solved", "1 of 36 solved")
    wait_for_text(page, "#chapters a.solved", "3 three axes from two")
    page.click("#forget")
    wait_for_text(page, "#solved", "0 of 36 solved")


def check_hints(visit: Visit) -> None:
    """One after another, the solution last, and none of the puzzle before."""
    page = visit.open("#p=7")
    assert page.locator("#hints pre").count() == 0
    for number, text in ((1, "a is m; b is n"), (2, "a solution records these ops")):
        wait_for_text(page, "#hint", f"Hint {number} of 3")
        page.click("#hint")
        wait_for_text(page, "#hints pre:last-child", text)
        assert "a[:, None] + b" not in page.inner_text("#hints")
    wait_for_text(page, "#hint", "Show a solution")
    page.click("#hint")
    wait_for_text(page, "#hints pre:last-child", "one solution: a[:, None] + b")
    assert page.locator("#hint").is_hidden()
    show_puzzle(page, 8)
    assert page.locator("#hints pre").count() == 0


def check_puzzle_link(visit: Visit) -> None:
    page = visit.open("#p=21")
    page.fill("#answer-text", "x - w[:, None]")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#puzzle-link")
    wait_for_text(page, "#puzzle-link", "Copied")
    address = page.evaluate("navigator.clipboard.readText()")
    other = visit.open("#" + address.partition("#")[2])
    wait_for_text(other, "#puzzle-title", "21. around an axis")
    assert other.input_value("#answer-text") == "x - w[:, None]"
    wait_for_text(other, "#chapters [aria-current]", "21")


def check_puzzle_without_numpy(visit: Visit) -> None:
    page = visit.open("#p=7")
    wait_for_python(page)
    answer(page, "a[:, None] + b")
    wait_for_text(page, "#verdict", "NumPy loads first")
    for _ in range(600):
        if "could not be loaded" in page.inner_text("#verdict"):
            break
        page.wait_for_timeout(100)
    wait_for_text(page, "#verdict", "Chapter 1 and puzzles 31 to 33 need no NumPy")
    wait_for_text(page, "#needs", "could not be loaded")
    wait_for_text(page, "#solved", "0 of 36")
    show_puzzle(page, 31)
    assert page.locator("#needs").is_hidden()
    answer(page, "(m * n, n, 1)")
    wait_for_text(page, "#verdict", "right")


def check_puzzle_keyboard(visit: Visit) -> None:
    page = visit.open("#p=7")
    reached = reach_by_keys(page, 70)
    wanted = {"to-shapes", "loops", "answer-text", "check", "load-for-puzzle", "hint", "puzzle-link"}
    assert wanted <= set(reached), f"{wanted - set(reached)} not reached"
    assert sum("\N{MIDDLE DOT}" in name for name in reached) == 36
    page.focus("#hint")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('#hints') !== null"), "the hint is read aloud"


def check_puzzle_looks(visit: Visit) -> None:
    """Contrast in both schemes, and 320 pixels, with all that a puzzle shows."""
    for scheme, width in (("light", 1280), ("dark", 320)):
        page = visit.open("#p=6&a=(m, p)", scheme=scheme, width=width)
        wait_for_python(page)
        answer(page, "(m, p)")
        page.wait_for_selector("#failure svg")
        page.click("#hint")
        page.click("#failure summary")
        assert page.evaluate(LOW_CONTRAST) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
        answer(page, "(k, m, p)")
        wait_for_text(page, "#verdict", "right")
        assert page.evaluate(LOW_CONTRAST) == []


def check_puzzles_without_web_assembly(visit: Visit) -> None:
    page = visit.open("#p=2", script="delete globalThis.WebAssembly")
    wait_for_text(page, "#verdict", "Answers cannot be checked here")
    assert page.locator("#check").is_disabled()
    show_puzzle(page, 7)
    wait_for_text(page, "#loops", "result[i, j] = a[i] + b[j]")
    wait_for_text(page, "#verdict", 'python -m xarr puzzle 7 "…"')


def check_values(visit: Visit) -> None:
    """With NumPy: indices and reductions are explained, and answers that are arrays are checked and scored."""
    page = visit.open()
    wait_for_python(page)
    page.click("#numpy")
    ended = "html[data-numpy=loaded], html[data-numpy=failed]"
    page.wait_for_selector(ended, timeout=PATIENCE, state="attached")
    assert page.get_attribute("html", "data-numpy") == "loaded", page.inner_text("#more .numpy-status")
    ask(page, "take((5,4), [0, 3], axis=0)")
    wait_for_text(page, "#headline", "gather: operand (5, 4)")
    page.click("#examples button:has-text('sum((3,4), axis=1)')")
    page.wait_for_selector("#picture svg")
    show_puzzle_view(page, 7)
    answer(page, "a + b")
    wait_for_text(page, "#verdict", "not yet")
    assert page.locator("#failure svg").count() == 1
    answer(page, "a[:, None] + b")
    wait_for_text(page, "#verdict", "right: it reads and writes 36 elements, the best known answer 36")
    wait_for_text(page, "#chapters a.solved .score", "36")
    show_puzzle(page, 16)
    answer(page, "(x > 0).sum(axis=0)")
    wait_for_text(page, "#verdict", "right")
    assert visit.errors == []


def check_gallery(visit: Visit) -> None:
    page = visit.open(name="gallery.html", width=320, scheme="dark")
    assert page.locator("svg").count() == 10
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.evaluate(LOW_CONTRAST) == []


#: Pictures that are narrower than they are drawn, and those of them that can be seen whole by scrolling.
SHRUNK: Final = """() => [...document.querySelectorAll('svg')].filter(each =>
  each.getBoundingClientRect().width < Number(each.getAttribute('width')) - 1).length"""
SCROLLING: Final = """() => [...document.querySelectorAll('svg')].filter(each =>
  each.parentElement.scrollWidth > each.parentElement.clientWidth + 9
  && getComputedStyle(each.parentElement).overflowX === 'auto').length"""


def check_gallery_can_be_read(visit: Visit) -> None:
    """Pictures keep their size in a narrow window, and scroll in their boxes."""
    page = visit.open(name="gallery.html", width=320)
    assert page.evaluate(SHRUNK) == 0 and page.evaluate(SCROLLING) >= 8
    wide = visit.open(name="gallery.html", width=1200)
    assert wide.evaluate(SHRUNK) == 0 and wide.evaluate(SCROLLING) == 0


def check_pictures_can_be_read(visit: Visit) -> None:
    page = visit.open(width=320)
    for expression in EXAMPLES:
        page.click(f"#examples button[data-expression='{expression}']")
        page.wait_for_timeout(100)
        assert page.evaluate(SHRUNK) == 0, expression
    assert page.evaluate(SCROLLING) == 1


class Check(NamedTuple):
    """A check, the defect on which it fails, and whether Python has to load for it."""

    function: Callable[[Visit], None]
    defect: Defect
    needs_python: bool = False


CHECKS: Final = (
    Check(check_typing, Defect("play.js", '$("expression").oninput', '$("expression").onreset'), True),
    Check(check_hover, Defect("play.js", '?.classList.add("lit")', '?.classList.add("dim")')),
    Check(check_tabs, Defect("play.js", "view.tab = name;", "")),
    Check(
        check_stepper, Defect("play.js", '$("picture").dataset.step = step', '$("picture").dataset.step = 7')
    ),
    Check(check_stepper_of_a_product, Defect("play.js", "Math.min(view.step, reply.steps.length)", "1")),
    Check(check_alignments, Defect("play.js", "onclick: () => go(to)", "onclick: () => {}")),
    Check(check_fixes, Defect("page.py", '"order": order', '"order": ""'), True),
    Check(check_dimensions, Defect("play.js", 'dims: $("dimensions").value.trim()', 'dims: ""'), True),
    Check(check_link, Defect("play.js", "s: view.step", 's: ""')),
    Check(
        check_keyboard, Defect("index.html", 'class="picture" tabindex="0"', 'class="picture" tabindex="-1"')
    ),
    Check(check_contrast, Defect("style.css", "--quiet: #555a63", "--quiet: #8a8f98")),
    Check(check_schemes, Defect("style.css", "prefers-color-scheme: dark", "prefers-color-scheme: none")),
    Check(check_narrow, Defect("style.css", ".picture { overflow-x: auto", ".picture { overflow-x: visible")),
    Check(check_no_errors, Defect("index.html", "<main>", '<main><img src="missing.png" alt="">'), True),
    Check(check_without_web_assembly, Defect("play.js", "withoutPython(", "console.log(")),
    Check(check_without_numpy, Defect("engine.js", 'sayNumPy("failed"', 'sayNumPy("loading"'), True),
    Check(check_kept_memory, Defect("python.js", "await store.put(build,", 'await store.put("other",'), True),
    Check(check_damaged_memory, Defect("python.js", "await store.delete(build);", "throw 0;"), True),
    Check(check_views, Defect("play.js", "window.onhashchange = showView", "window.onhashchange = null")),
    Check(check_puzzle, Defect("puzzles.js", "localStorage.setItem(", "sessionStorage.getItem("), True),
    Check(check_hints, Defect("puzzles.js", "hints.slice(0, shownHints)", "hints.slice(-shownHints)")),
    Check(check_puzzle_link, Defect("puzzles.js", 'query.set("a"', 'query.set("b"')),
    Check(check_puzzle_without_numpy, Defect("puzzles.js", "one.needs_numpy && !hasNumPy()", "false"), True),
    Check(check_puzzle_keyboard, Defect("puzzles.js", "lastElementChild.focus()", "lastElementChild.blur()")),
    Check(check_puzzle_looks, Defect("style.css", "--result: #00664a", "--result: #48b090"), True),
    Check(check_puzzles_without_web_assembly, Defect("puzzles.js", "isLost = true;", "")),
    Check(check_gallery_can_be_read, Defect("style.css", ".picture svg, .scroll svg", ".picture svg")),
    Check(check_pictures_can_be_read, Defect("style.css", ".picture svg, .scroll svg", ".scroll svg")),
    Check(check_gallery, Defect("style.css", ".scroll { overflow-x: auto", ".scroll { overflow-x: visible")),
)


@pytest.mark.thorough
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.function.__name__)
def test_the_page(check: Check, visits: dict[bool, Visit]) -> None:
    visit = visits[check.needs_python]
    visit.errors.clear()
    visit.requests.clear()
    check.function(visit)


@pytest.mark.thorough
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.function.__name__)
def test_a_check_fails_on_its_defect(check: Check, browser: Any, address: str) -> None:
    errors = (AssertionError, _timeout())
    with visiting(browser, address, check.defect, check.needs_python) as visit, pytest.raises(errors):
        check.function(visit)


@pytest.mark.parametrize("is_there", [True, False])
def test_values(is_there: bool, browser: Any, address: str) -> None:
    """With the wheels of NumPy and ml_dtypes in the folder that XARR_PYODIDE names; without, the check fails."""
    if has_packages() is not is_there:
        pytest.skip(
            "XARR_PYODIDE names no folder with the wheels of NumPy and ml_dtypes" if is_there else "they are"
        )
    with visiting(browser, address) as visit:
        if is_there:
            check_values(visit)
        else:
            with pytest.raises(AssertionError, match="could not be loaded"):
                check_values(visit)


def _timeout() -> type[Exception]:
    error: type[Exception] = pytest.importorskip("playwright.sync_api").TimeoutError
    return error
