"""A sheet of SVG that grows with what is drawn on it, so that nothing is ever cut off."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

CHARACTER = 0.62
"""Width of a monospaced character, in font sizes; the widest of the common fonts."""


MONOSPACED = "font:13px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"
"""The style of text in columns; notebooks' own styles would let `<pre>` inherit another font."""


def number(value: float) -> str:
    """The shortest text of a coordinate."""
    return f"{value:.1f}".removesuffix(".0")


class Canvas:
    """Collects elements and the extent that they cover."""

    def __init__(self, marks: Mapping[str, str] | None = None) -> None:
        self.elements: list[str] = []
        #: Classes of what is drawn, by the key of a cell or line.
        self.marks: Mapping[str, str] = marks or {}
        self.width = 0.0
        self.height = 0.0

    def cover(self, x: float, y: float) -> None:
        """Make the sheet reach to this point."""
        self.width, self.height = max(self.width, x), max(self.height, y)

    def add(self, element: str) -> None:
        self.elements.append(element)

    def text(self, x: float, y: float, text: str, style: str = "", size: int = 12) -> float:
        """Write text with its baseline at `y`; returns where it ends."""
        end = x + len(text) * size * CHARACTER
        self.cover(end, y + 4)
        self.add(f'<text x="{number(x)}" y="{number(y)}" class="{style}">{escape(text)}</text>')
        return end

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        style: str,
        text: str = "",
        title: str = "",
        data: str = "",
    ) -> None:
        """A cell: a rectangle with centred text; `title` is shown on hovering, `data` are attributes."""
        self.cover(x + width, y + height)
        inside = f"<title>{escape(title)}</title>" if title else ""
        size = f'width="{number(width)}" height="{number(height)}"'
        inside += f'<rect x="{number(x)}" y="{number(y)}" {size}/>'
        if text:
            position = f'x="{number(x + width / 2)}" y="{number(y + height / 2 + 4)}"'
            inside += f"<text {position}>{escape(text)}</text>"
        self.add(f'<g class="{style}"{data}>{inside}</g>')

    def arrow(self, x: float, y: float, across: float, down: float, style: str) -> None:
        """An arrow along one axis, its head a path of its own (markers break in hidden documents)."""
        self.cover(x + across, y + down)
        head = "m-7 -4l7 4l-7 4z" if across else "m-4 -7l4 7l4 -7z"
        tip = f"M{number(x + across)} {number(y + down)}"
        shaft = f"M{number(x)} {number(y)}l{number(across)} {number(down)}"
        kind, space, more = style.partition(" ")
        filled = f"{kind}h{space}{more}"
        self.add(f'<path d="{shaft}" class="{style}"/><path d="{tip}{head}" class="{filled}"/>')

    def line(self, x: float, y: float, across: float, down: float, style: str) -> None:
        self.cover(x + across, y + down)
        path = f"M{number(x)} {number(y)}l{number(across)} {number(down)}"
        self.add(f'<path d="{path}" class="{style}"/>')

    def svg(self, label: str, style: str, margin: float = 16, name: str = "xarr-b") -> str:
        """The finished picture of class `name`; `label` is its text for those who cannot see it."""
        width, height = number(self.width + margin), number(self.height + margin)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}"><style>{style}</style>'
            f'<rect width="100%" height="100%" class="paper"/>{"".join(self.elements)}</svg>'
        )
