"""The site's own style in a browser: pictures of narrow windows; skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from tests.support.checkout import CHECKOUT
from tests.support.play_site import open_browser, serve

#: As the theme has it.
THEME = "<style>body { margin: 0 } img { max-width: 100% }</style>"
PICTURE = "docs/images/explanations/broadcast.svg"
SIZES = (
    "() => { const image = document.images[0], box = image.parentElement; return [image.width - image.naturalWidth, "
    "box.scrollWidth - box.clientWidth > 0, document.documentElement.scrollWidth]; }"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


def measure(browser: Any, folder: Path, width: int, style: str) -> list[Any]:
    """By how much a picture is wider than it is drawn, whether it scrolls in its box, and the width of the page."""
    copyfile(CHECKOUT / PICTURE, folder / "picture.svg")
    copyfile(CHECKOUT / "docs" / "_static" / "narrow.css", folder / "narrow.css")
    body = '<article class="bd-article"><p><img alt="a picture" src="picture.svg"></p></article>'
    page = f'<!DOCTYPE html><html lang="en"><head><title>t</title>{THEME}{style}</head><body>{body}</body></html>'
    (folder / "index.html").write_text(page, encoding="utf-8")
    with serve(folder) as address:
        window = browser.new_page(viewport={"width": width, "height": 600})
        window.goto(f"{address}index.html")
        sizes: list[Any] = window.evaluate(SIZES)
        window.close()
    return sizes


def test_pictures_keep_their_size_in_narrow_windows_and_scroll(browser: Any, tmp_path: Path) -> None:
    style = '<link rel="stylesheet" href="narrow.css">'
    assert measure(browser, tmp_path, 320, style) == [0, True, 320]
    assert measure(browser, tmp_path, 1200, style) == [0, False, 1200]
    shrunk, scrolls, _ = measure(browser, tmp_path, 320, "")
    assert shrunk < -300 and not scrolls, "without the style they shrink"


def test_the_site_has_its_style() -> None:
    text = (CHECKOUT / "docs" / "conf.py").read_text(encoding="utf-8")
    assert 'html_static_path = ["_static"]' in text and 'html_css_files = ["narrow.css"]' in text
