"""Visits of the page of docs/play in a browser, with or without a defect in its sources, and what checks do there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from tests.support.checkout import CHECKOUT

#: Until Python has loaded in the page, on a busy machine.
PATIENCE: Final = 120_000


class Defect(NamedTuple):
    """A text of one of the page's files, and what stands there instead."""

    file: str
    old: str
    new: str


class Visit:
    """Visits of the page, each in a window of its own; all of them are watched for errors and foreign requests."""

    def __init__(self, browser: Any, address: str, defect: Defect | None = None, python: bool = True) -> None:
        self.browser, self.address, self.defect, self.python = browser, address, defect, python
        self.contexts: list[Any] = []
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._ready: Any = None

    def open(
        self, fragment: str = "", width: int = 1280, scheme: str = "light", script: str = "", name: str = ""
    ) -> Any:
        context = self.browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(15_000)
        self.contexts.append(context)
        if script:
            context.add_init_script(script)
        if self.defect is not None:
            body = (CHECKOUT / "docs" / "play" / self.defect.file).read_text(encoding="utf-8")
            assert self.defect.old in body, "the defect is of another version"
            body = body.replace(self.defect.old, self.defect.new)
            context.route(
                f"**/{self.defect.file}", lambda route: route.fulfill(body=body, content_type=_type(route))
            )
        if not self.python:  # what examples show needs none, and is there sooner
            context.route(
                "**/python.js", lambda route: route.fulfill(body="", content_type="text/javascript")
            )
        page = context.new_page()
        page.on(
            "console", lambda message: self.errors.append(message.text) if message.type == "error" else None
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(self.address + (name or "index.html") + fragment)
        if fragment.startswith("#p="):
            page.wait_for_selector("#puzzles:not([hidden]) #task code, #puzzles:not([hidden]) #loops")
        elif not name:
            page.wait_for_selector("#answer:not([hidden]) svg")
        return page

    def with_python(self) -> Any:
        """A window in which Python has loaded: the same for all checks of a visit."""
        if self._ready is None:
            self._ready = self.open()
            wait_for_python(self._ready)
        return self._ready

    def close(self) -> None:
        for context in self.contexts:
            context.close()


def _type(route: Any) -> str:
    ends = {"css": "text/css", "js": "text/javascript", "html": "text/html", "py": "text/plain"}
    return ends[
        route.request.url.partition("?")[0].rpartition(".")[2] if "." in route.request.url[-5:] else "html"
    ]


@contextmanager
def visiting(
    browser: Any, address: str, defect: Defect | None = None, python: bool = True
) -> Iterator[Visit]:
    visit = Visit(browser, address, defect, python)
    try:
        yield visit
    finally:
        visit.close()


def ask(page: Any, expression: str) -> None:
    """Type an expression, and wait until the page has answered."""
    page.fill("#expression", "")
    page.locator("#expression").press_sequentially(expression)
    page.wait_for_function(
        "(text) => new URLSearchParams(location.hash.slice(1)).get('e') === text", arg=expression
    )


def wait_for_python(page: Any) -> None:
    """Wait until shapes that are typed are answered."""
    page.wait_for_selector("html[data-python=ready]", timeout=PATIENCE, state="attached")


def wait_for_kept_memory(page: Any) -> None:
    """Wait until the browser has kept Python's memory for the next visit."""
    page.wait_for_selector("html[data-kept=true]", timeout=30_000, state="attached")


def show_puzzle(page: Any, number: int) -> None:
    """Go to a puzzle by the list."""
    page.click(f"#chapters a[href='#p={number}']")
    page.wait_for_function(f"document.getElementById('puzzle-title').textContent.startsWith('{number}. ')")


def answer(page: Any, text: str) -> None:
    """Type an answer, and check it by the enter key."""
    page.fill("#answer-text", text)
    page.press("#answer-text", "Enter")


def wait_for_text(page: Any, selector: str, text: str) -> None:
    """Wait a while for a text; an AssertionError if it does not come."""
    element = page.locator(selector)
    for _ in range(60):
        if element.count() and text in element.first.inner_text():
            return
        page.wait_for_timeout(50)
    shown = element.first.inner_text() if element.count() else "nothing"
    raise AssertionError(f"wanted {text!r} in {selector}, got {shown!r}")


def opacity(page: Any, selector: str) -> float:
    """The opacity of the first such element, after the transition."""
    page.wait_for_timeout(500)
    return float(page.eval_on_selector(selector, "element => getComputedStyle(element).opacity"))
