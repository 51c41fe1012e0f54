"""Shapes that do not fit, as pictures, and what texts say of empty and of very large operands."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from xarr.base.broadcasting import Shape
from xarr.explanation.broadcast import BroadcastExplanation, explain_shapes

SVG = "{http://www.w3.org/2000/svg}"


def picture(explanation: BroadcastExplanation) -> ElementTree.Element:
    return ElementTree.fromstring(explanation.svg())


@pytest.mark.parametrize(
    ("operands", "missing"),
    [
        (((3, 4), (3,)), [("b has no [3]", 3)]),
        (((3, 4), (2, 4)), [(f"b has no [2,{column}]", column) for column in range(4)]),
        (((0,), (2,)), [("a has no [0]", 0), ("a has no [1]", 1)]),
        (((100,), (64,)), [("b has no [98]", 2), ("b has no [99]", 3)]),
        (((2, 3, 4), (2, 1, 3)), [("b has no [0,0,3]", 3), ("b has no [1,0,3]", 3)]),
    ],
)
def test_svg_of_a_clash_stands_operands_under_each_other(
    operands: tuple[Shape, ...], missing: list[tuple[str, int]]
) -> None:
    root = picture(explain_shapes(*operands))
    cells = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    boxes = {group.findtext(f"{SVG}title"): group.find(f"{SVG}rect") for group in cells}
    lefts: dict[str, set[float]] = {"a": set(), "b": set()}
    for title, box in boxes.items():
        assert title is not None and box is not None
        lefts[title[0]].add(float(box.attrib["x"]))
    # Column under column: every operand's columns begin where some column of the other does.
    assert lefts["a"] <= lefts["b"] or lefts["b"] <= lefts["a"]
    columns = sorted(lefts["a"] | lefts["b"])
    lacking = [group for group in cells if group.attrib["class"] == "m"]
    assert [group.findtext(f"{SVG}title") for group in lacking] == [title for title, _ in missing]
    for group, (_, column) in zip(lacking, missing, strict=True):
        box = group.find(f"{SVG}rect")
        assert box is not None and columns.index(float(box.attrib["x"])) == column
    below = [
        float(box.attrib["y"])
        for title, box in boxes.items()
        if title and title[0] == "b" and box is not None
    ]
    above = [
        float(box.attrib["y"])
        for title, box in boxes.items()
        if title and title[0] == "a" and box is not None
    ]
    assert max(above) < min(below)


def test_svg_without_common_axes_keeps_the_row() -> None:
    root = picture(explain_shapes((2, 3), (3,), broadcast_dimensions=(0, 1)))
    assert not [group for group in root.iter(f"{SVG}g") if group.attrib["class"] == "m"]


def test_empty_operands_are_named() -> None:
    text = explain_shapes((0, 2), (3, 2), names=("nobody", "some")).text()
    assert "(nobody is empty: 0 fits 0 and 1 alone)" in text
    assert "empty" not in explain_shapes((2,), (3,)).text()


def test_sizes_have_separators_and_bytes() -> None:
    text = explain_shapes((10**6, 1), (10**6,), op="-").text()
    assert "1,000,000,000,000 elements (7.3 TiB at float64), the largest operand has 1,000,000" in text
    assert "a is read 1,000,000 times" in text
    typed = explain_shapes((10**6, 1), (10**6,), dtypes=("f32", "f32")).text()
    assert "result 1,000,000,000,000 elements (3.6 TiB)" in typed
    assert "float64" not in explain_shapes((5, 1), (5,)).text()
