"""What is wrong with the picture of a graph: texts and boxes that overlap, lines that cross boxes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final
from xml.etree import ElementTree

_SVG: Final = "{http://www.w3.org/2000/svg}"
#: Width of a character of 12 pixels in the widest of the common fonts, as the library reckons.
_CHARACTER: Final = 12 * 0.62
_NEAR: Final = 0.3


@dataclass(frozen=True)
class Rectangle:
    """A box or the extent of a text."""

    left: float
    top: float
    right: float
    bottom: float
    words: str

    def meets(self, other: Rectangle) -> bool:
        """Whether both have an area in common."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > _NEAR and down > _NEAR

    def holds(self, other: Rectangle) -> bool:
        return (
            self.left - _NEAR <= other.left
            and other.right <= self.right + _NEAR
            and self.top - _NEAR <= other.top
            and other.bottom <= self.bottom + _NEAR
        )


@dataclass(frozen=True)
class Drawn:
    """The geometry of a picture: boxes, texts with the box that they are of, and the corners of each line."""

    width: float
    height: float
    boxes: list[Rectangle]
    texts: list[tuple[Rectangle, Rectangle | None]]
    lines: list[list[tuple[float, float]]]


def read_picture(svg: str) -> Drawn:
    """Boxes, texts and lines of a picture."""
    root = ElementTree.fromstring(svg)
    drawn = Drawn(float(root.attrib["width"]), float(root.attrib["height"]), [], [], [])
    for element in root:
        if element.tag == f"{_SVG}g":
            rect = _rectangle(element.find(f"{_SVG}rect"), " ".join(element.itertext()))
            drawn.boxes.append(rect)
            drawn.texts.extend((_text(each, "middle"), rect) for each in element.iter(f"{_SVG}text"))
        elif element.tag == f"{_SVG}text":
            drawn.texts.append((_text(element, "start"), None))
        elif element.get("class") == "l":
            numbers = [float(each) for each in re.findall(r"[\d.]+", element.attrib["d"])]
            drawn.lines.append(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return drawn


def problems_of(svg: str) -> list[str]:
    """The faults of a picture that cannot be read, as lines of text."""
    drawn = read_picture(svg)
    sheet = Rectangle(0, 0, drawn.width, drawn.height, "the sheet")
    problems = [
        f"{each.words!r} is not within {own.words!r}"
        for each, own in drawn.texts
        if own and not own.holds(each)
    ]
    problems += [f"{each.words!r} is beyond the sheet" for each, _ in drawn.texts if not sheet.holds(each)]
    problems += [f"{each.words!r} is beyond the sheet" for each in drawn.boxes if not sheet.holds(each)]
    for (one, _), (other, _) in combinations(drawn.texts, 2):
        if one.meets(other):
            problems.append(f"texts {one.words!r} and {other.words!r} overlap")
    for first, second in combinations(drawn.boxes, 2):
        if first.meets(second) and not first.holds(second) and not second.holds(first):
            problems.append(f"boxes {first.words!r} and {second.words!r} overlap")
    for line in drawn.lines:
        problems += [
            f"a line from {line[0]} to {line[-1]} crosses {box.words!r}"
            for box in drawn.boxes
            if not all(box.left <= x <= box.right and box.top <= y <= box.bottom for x, y in line)
            and any(_crosses(box, *ends) for ends in pairwise(line))
        ]
    return problems


def _rectangle(rect: ElementTree.Element | None, words: str) -> Rectangle:
    assert rect is not None, words
    x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
    return Rectangle(x, y, x + width, y + height, words)


def _text(element: ElementTree.Element, anchor: str) -> Rectangle:
    words = element.text or ""
    width, x, y = len(words) * _CHARACTER, float(element.attrib["x"]), float(element.attrib["y"])
    left = x - width / 2 if anchor == "middle" else x
    return Rectangle(left, y - 10, left + width, y + 3, words)


def _crosses(box: Rectangle, start: tuple[float, float], end: tuple[float, float]) -> bool:
    """Whether a segment goes through the inside of a box: Liang and Barsky's clipping."""
    near, far = 0.0, 1.0
    for low, high, at, step in (
        (box.left + _NEAR, box.right - _NEAR, start[0], end[0] - start[0]),
        (box.top + _NEAR, box.bottom - _NEAR, start[1], end[1] - start[1]),
    ):
        if step == 0:
            if not low < at < high:
                return False
            continue
        first, last = sorted(((low - at) / step, (high - at) / step))
        near, far = max(near, first), min(far, last)
    return near < far
