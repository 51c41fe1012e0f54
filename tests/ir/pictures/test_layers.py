"""Boxes in layers: nothing overlaps, lines go around boxes, and what can be straight is."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from xarr.ir.pictures.layers import MOST_ACROSS, Box, Connection, arrange


def random_boxes(seed: int) -> tuple[list[Box], list[Connection]]:
    """Boxes of unlike sizes, and lines from earlier to later ones, some of them twice."""
    random = Random(seed)
    count = random.randint(1, 60)
    boxes = [Box(random.uniform(20, 260), random.uniform(20, 140)) for _ in range(count)]
    lines = []
    for target in range(1, count):
        for _ in range(random.choice((0, 1, 1, 2, 3))):
            source = max(0, target - random.randint(1, 20))
            if source != target:
                start = boxes[source].width * random.choice((0.3, 0.5))
                lines.append(Connection(source, target, start, random.uniform(0, boxes[target].width)))
    return boxes, lines


def problems_of(boxes: list[Box], lines: list[Connection]) -> list[str]:
    """The faults of an arrangement of boxes, as lines of text."""
    result = arrange(boxes, lines)
    rectangles = [
        (x, y, x + box.width, y + box.height) for (x, y), box in zip(result.corners, boxes, strict=True)
    ]
    problems = []
    for index, (left, top, right, bottom) in enumerate(rectangles):
        if left < 0 or top < 0 or right > result.width + 0.01 or bottom > result.height + 0.01:
            problems.append(f"box {index} is outside")
        for other, (left2, top2, right2, bottom2) in enumerate(rectangles[:index]):
            if min(right, right2) - max(left, left2) > -8 and min(bottom, bottom2) - max(top, top2) > 0:
                problems.append(f"boxes {other} and {index} are too near")
    for line, route in zip(lines, result.routes, strict=True):
        source, target = rectangles[line.source], rectangles[line.target]
        if route[0] != (source[0] + line.start, source[3]) or route[-1] != (target[0] + line.end, target[1]):
            problems.append(f"{line} ends elsewhere")
        for (x, y), (x2, y2) in pairwise(route):
            if y2 < y:
                problems.append(f"{line} goes up")
            inside = [
                index
                for index, (left, top, right, bottom) in enumerate(rectangles)
                for share in range(21)
                if left < x + (x2 - x) * share / 20 < right and top < y + (y2 - y) * share / 20 < bottom
            ]
            if inside:
                problems.append(f"{line} crosses {inside}")
    return problems


@pytest.mark.parametrize("seed", range(60))
def test_nothing_overlaps(seed: int) -> None:
    assert problems_of(*random_boxes(seed)) == []


def test_boxes_that_are_too_near_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xarr.ir.pictures.layers._APART", (-30.0, -30.0, -30.0))
    assert any("too near" in each for each in problems_of(*random_boxes(1)))


def test_lines_that_cross_boxes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "xarr.ir.pictures.layers._route",
        lambda path, boxes, tops, bottoms: iter(
            [
                (
                    path[0].upper.left + path[0].start,
                    tops[path[0].upper.layer] + boxes[path[0].upper.box].height,
                ),
                (path[-1].lower.left + path[-1].end, tops[path[-1].lower.layer]),
            ]
        ),
    )
    assert any("crosses" in each for each in problems_of(*random_boxes(2)))


def test_boxes_in_a_row_lie_below_each_other() -> None:
    boxes = [Box(width, 30) for width in (40, 100, 60)]
    result = arrange(boxes, [Connection(0, 1, 20, 50), Connection(1, 2, 50, 30)])
    assert {round(x, 3) for route in result.routes for x, _ in route} == {50.0}


def test_crossings_are_avoided() -> None:
    boxes = [Box(30, 20)] * 4
    result = arrange(boxes, [Connection(0, 3, 15, 15), Connection(1, 2, 15, 15)])
    assert (result.corners[0][0] < result.corners[1][0]) == (result.corners[3][0] < result.corners[2][0])


def test_what_is_used_late_lies_just_above() -> None:
    result = arrange(
        [Box(30, 20)] * 4, [Connection(0, 2, 15, 10), Connection(2, 3, 15, 10), Connection(1, 3, 15, 20)]
    )
    assert result.corners[1][1] == result.corners[2][1] > result.corners[0][1]


def test_layers_are_not_wider_than_they_may_be() -> None:
    result = arrange([Box(100, 20)] * 60, [])
    assert result.width <= MOST_ACROSS
    assert len({y for _, y in result.corners}) > 3


def test_no_boxes_at_all() -> None:
    result = arrange([], [])
    assert (result.width, result.height, result.corners) == (0, 0, ())
