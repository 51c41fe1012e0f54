"""Checks of explanations: that all views can be read, and that the code which they show runs."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np

import xarr
from xarr import lax

#: Bytes that the HTML of one explanation may have.
MOST_BYTES = 30_000


def check_views(explanation: Any) -> dict[str, Any]:
    """Check that HTML and SVG are well-formed, small and self-contained; returns the facts as read back from JSON."""
    html = explanation.html()
    assert len(html.encode()) <= MOST_BYTES, len(html.encode())
    markup = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    root = ElementTree.fromstring(f"<p>{markup}</p>")
    pictures = [explanation.svg()] + [
        ElementTree.tostring(each, "unicode") for each in root.iter() if _is_svg(each)
    ]
    for picture in pictures:
        check_picture(ElementTree.fromstring(picture))
    assert not re.search(r"""(src|href)=|url\(|@import|https?://(?!www\.w3\.org)""", html)
    assert repr(explanation) == str(explanation) == explanation.text()
    facts: dict[str, Any] = json.loads(json.dumps(explanation.to_dict()))
    return facts


def _is_svg(element: ElementTree.Element) -> bool:
    return element.tag.endswith("svg")


def check_picture(root: ElementTree.Element) -> None:
    """Check that nothing is drawn beyond the edges, and that a result reads cells that are drawn."""
    assert root.get("aria-label")
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    cells = {element.get("data-cell") for element in root.iter()}
    for element in root.iter():
        x, y = (float(element.get(name, "0")) for name in "xy")
        assert 0 <= x <= width and 0 <= y <= height
        if element.tag.endswith("rect") and element.get("x"):
            assert x + float(element.get("width", "0")) <= width
            assert y + float(element.get("height", "0")) <= height
        for key in (element.get("data-reads") or "").split():
            assert key in cells, key


def code_of(explanation: Any, title: str) -> str:
    """The code under a title."""
    (code,) = [each.text for each in explanation.codes() if each.title == title]
    return str(code)


def run_program(text: str, *arrays: Any) -> Any:
    """The result of an explicit program on arrays, as NumPy's, computed where nothing may stay implicit."""
    scope: dict[str, Any] = {"lax": lax, "np": np}
    with xarr.config(broadcasting="explicit"):
        exec(text, scope)
        return np.asarray(scope["program"](*map(xarr.asarray, arrays)))


def run_loop(text: str, result: Any, **arrays: Any) -> Any:
    """The array `result` after a loop nest has filled it; `memory` is another name of it."""
    scope = {"result": result, "memory": result, "inf": np.inf, **arrays}
    exec(text, scope)
    return result
