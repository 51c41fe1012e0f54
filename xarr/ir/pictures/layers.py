"""Boxes in layers with lines downward between them, in pure numbers: where each lies, so that no line meets a box.

Boxes get layers, lines that pass a layer a position in it like boxes, and each layer an order with few crossings; then
positions are as near to what they are connected with as the order allows.  Between layers lines are straight, and no
box lies there; within a layer they are vertical, at positions that are their own.  Source: Sugiyama, Tagawa and Toda,
Methods for visual understanding of hierarchical system structures, 1981.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Point: TypeAlias = tuple[float, float]

#: A layer gets no further box from this width on.
MOST_ACROSS: Final = 1200.0
#: Between two boxes, a box and a line, two lines.
_APART: Final = (26.0, 14.0, 9.0)
#: Between layers, and the most that is added where lines go far to the side.
_DOWN, _MORE = 30.0, 70.0
#: Lines end vertically, by the height of an arrowhead.
HEAD: Final = 8.0
_SWEEPS: Final = 8
_NEAR_MIDDLE: Final = 40.0


@dataclass(frozen=True, slots=True)
class Box:
    """The size of a box."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Connection:
    """A line from the lower edge of box `source` to the upper edge of box `target`, a later one.

    `start` and `end` are distances from the left edges of the boxes.
    """

    source: int
    target: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The upper left corners of the boxes, the points of each line, and the size of it all."""

    corners: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


@dataclass(slots=True, eq=False)
class _Entry:
    """An entry of a layer: a box, or a line that passes it, whose box is None."""

    layer: int
    width: float
    box: int | None
    left: float = 0.0
    rank: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Segment:
    """A straight piece of a line between a layer and the next, at distances from the left edges of its ends."""

    upper: _Entry
    lower: _Entry
    start: float
    end: float


def arrange(boxes: Sequence[Box], lines: Sequence[Connection]) -> Arrangement:
    """Lay out boxes, each of which comes before those that lines lead to."""
    levels = _levels(boxes, lines)
    layers: list[list[_Entry]] = [[] for _ in range(max(levels, default=-1) + 1)]
    for number, (box, level) in enumerate(zip(boxes, levels, strict=True)):
        layers[level].append(_Entry(level, box.width, number))
    own = {entry.box: entry for layer in layers for entry in layer if entry.box is not None}
    paths = list(_paths(lines, own, layers))
    segments = list(dict.fromkeys(segment for path in paths for segment in path))
    channels: list[list[_Segment]] = [[] for _ in layers]
    for segment in segments:
        channels[segment.upper.layer].append(segment)
    _order(layers, channels)
    _set_positions(layers, segments)
    return _arrangement(boxes, layers, channels, paths)


# --- layers ---------------------------------------------------------------------------------------


def _levels(boxes: Sequence[Box], lines: Sequence[Connection]) -> list[int]:
    """The layer of each box: below all that lead to it; what nothing leads to is just above where it is used."""
    above: list[list[int]] = [[] for _ in boxes]
    below: list[list[int]] = [[] for _ in boxes]
    for line in lines:
        above[line.target].append(line.source)
        below[line.source].append(line.target)
    widths: dict[int, float] = defaultdict(float)
    levels: dict[int, int] = {}

    def put(number: int, level: int, step: int) -> None:
        while widths[level] and widths[level] + boxes[number].width > MOST_ACROSS:
            level += step
        widths[level] += boxes[number].width + _APART[0]
        levels[number] = level

    for number, sources in enumerate(above):
        if sources:
            put(number, 1 + max([levels[each] for each in sources if each in levels], default=-1), 1)
    first = min(levels.values(), default=0)
    for number, sources in enumerate(above):
        if not sources:
            put(number, min([levels[each] for each in below[number]], default=first) - 1, -1)
    first = min(levels.values(), default=0)
    return [levels[number] - first for number in range(len(boxes))]


def _paths(
    lines: Sequence[Connection], own: dict[int, _Entry], layers: list[list[_Entry]]
) -> Iterator[list[_Segment]]:
    """The segments of each line; lines from one point share those that pass layers, whose entries are added."""
    passing: dict[tuple[int, float], list[_Segment]] = {}
    for line in lines:
        source, target = own[line.source], own[line.target]
        shared = passing.setdefault((line.source, line.start), [])
        upper, start = (shared[-1].lower, 0.0) if shared else (source, line.start)
        for level in range(source.layer + 1 + len(shared), target.layer):
            lower = _Entry(level, 0.0, None)
            layers[level].append(lower)
            shared.append(_Segment(upper, lower, start, 0.0))
            upper, start = lower, 0.0
        count = target.layer - source.layer - 1
        upper, start = (shared[count - 1].lower, 0.0) if count else (source, line.start)
        yield [*shared[:count], _Segment(upper, target, start, line.end)]


# --- order ----------------------------------------------------------------------------------------


def _order(layers: list[list[_Entry]], channels: Sequence[Sequence[_Segment]]) -> None:
    """Order each layer by the mean positions of what its entries are connected with, down and up; the best is kept."""
    _number(layers)
    best, fewest = [list(layer) for layer in layers], _crossings(channels)
    for sweep in range(2 * _SWEEPS):
        if not fewest:
            break
        for level in range(1, len(layers)) if sweep % 2 == 0 else range(len(layers) - 2, -1, -1):
            channel = channels[level - 1 if sweep % 2 == 0 else level]
            _sort(layers[level], channel, is_lower=sweep % 2 == 0)
        count = _crossings(channels)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    layers[:] = best
    _number(layers)


def _number(layers: Iterable[Sequence[_Entry]]) -> None:
    for layer in layers:
        for rank, entry in enumerate(layer):
            entry.rank = rank


def _sort(layer: list[_Entry], channel: Iterable[_Segment], is_lower: bool) -> None:
    sums: dict[_Entry, list[float]] = defaultdict(list)
    for segment in channel:
        own, at = (segment.lower, _upper(segment)) if is_lower else (segment.upper, _lower(segment))
        sums[own].append(at)
    means = {entry: sum(at) / len(at) for entry, at in sums.items()}
    layer.sort(key=lambda entry: means.get(entry, entry.rank))
    _number([layer])


def _upper(segment: _Segment) -> float:
    """The position of its upper end among the entries of that layer, where it starts within a box included."""
    return segment.upper.rank + (segment.start / segment.upper.width if segment.upper.width else 0.5)


def _lower(segment: _Segment) -> float:
    return segment.lower.rank + (segment.end / segment.lower.width if segment.lower.width else 0.5)


def _crossings(channels: Iterable[Sequence[_Segment]]) -> int:
    """The pairs of segments that cross: of those to the left of an upper end, each that ends to the right below."""
    count = 0
    for channel in channels:
        ends: list[float] = []
        for _, end in sorted((_upper(each), _lower(each)) for each in channel):
            count += bisect_left(ends, -end)
            insort(ends, -end)
    return count


# --- positions ------------------------------------------------------------------------------------


def _set_positions(layers: Sequence[Sequence[_Entry]], segments: Iterable[_Segment]) -> None:
    """Set the left edge of each entry near to what it is connected with, in turn above, below, and on both sides."""
    above: dict[_Entry, list[tuple[_Entry, float, float]]] = defaultdict(list)
    below: dict[_Entry, list[tuple[_Entry, float, float]]] = defaultdict(list)
    for each in segments:
        shift = _centre_pull(each.start, each.upper.width) - _centre_pull(each.end, each.lower.width)
        above[each.lower].append((each.upper, shift, _weight(each.lower, each.upper)))
        below[each.upper].append((each.lower, -shift, _weight(each.upper, each.lower)))
    for layer in layers:
        _spread(layer, [0.0] * len(layer), [1.0] * len(layer))
    for sides in ((above,), (below,)) * 3 + ((above, below),) * 12:
        for layer in layers if above in sides else reversed(layers):
            wanted, weights = [], []
            for entry in layer:
                near = [each for side in sides for each in side[entry]]
                weight = sum(each[2] for each in near)
                mean = sum((other.left + shift) * own for other, shift, own in near)
                wanted.append(mean / weight if weight else entry.left)
                weights.append(0.1 if not weight else 1.0 if entry.box is None else 4.0)
            _spread(layer, wanted, weights)


def _weight(own: _Entry, other: _Entry) -> float:
    """The weight of one entry for another: most within a line that passes layers, which pulls at no box."""
    if own.box is None:
        return 9.0 if other.box is None else 3.0
    return 0.1 if other.box is None else 1.0


def _centre_pull(at: float, width: float) -> float:
    """The distance at which a line pulls at an edge: the middle if near, so that rows of boxes do not drift aside."""
    return width / 2 if abs(at - width / 2) < _NEAR_MIDDLE else at


def _spread(layer: Sequence[_Entry], wanted: Sequence[float], weights: Sequence[float]) -> None:
    """The left edges with the least sum of weighted squares of distances from those wanted that keep the order, and
    entries apart: neighbours that would come too near are moved as one block."""
    blocks: list[tuple[float, float, int]] = []  # mean of what is left of wanted, weight, number of entries
    offsets, end = [], 0.0
    for number, entry in enumerate(layer):
        if number:
            end += _APART[(layer[number - 1].box is None) + (entry.box is None)]
        offsets.append(end)
        end += entry.width
    for at, weight, offset in zip(wanted, weights, offsets, strict=True):
        block = (at - offset, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, heavy, count = blocks.pop()
            total = heavy + block[1]
            block = (mean * heavy + block[0] * block[1]) / total, total, count + block[2]
        blocks.append(block)
    moved = [mean for mean, _, count in blocks for _ in range(count)]
    for entry, offset, mean in zip(layer, offsets, moved, strict=True):
        entry.left = offset + mean


# --- the result -----------------------------------------------------------------------------------


def _arrangement(
    boxes: Sequence[Box],
    layers: Sequence[Sequence[_Entry]],
    channels: Sequence[Sequence[_Segment]],
    paths: Iterable[Sequence[_Segment]],
) -> Arrangement:
    entries = [entry for layer in layers for entry in layer]
    start = min([entry.left for entry in entries], default=0.0)
    for entry in entries:
        entry.left -= start
    tops: list[float] = []
    bottoms: list[float] = []
    y = 0.0
    for layer, channel in zip(layers, channels, strict=True):
        tops.append(y)
        bottoms.append(
            y + max([boxes[each.box].height for each in layer if each.box is not None], default=0.0)
        )
        reach = max([abs(_x_start(each) - _x_end(each)) for each in channel], default=0.0)
        y = bottoms[-1] + _DOWN + min(_MORE, reach / 12)
    own = {entry.box: entry for entry in entries if entry.box is not None}
    corners = tuple([(own[number].left, tops[own[number].layer]) for number in range(len(boxes))])
    routes = tuple([tuple(_route(path, boxes, tops, bottoms)) for path in paths])
    width = max([entry.left + entry.width for entry in entries], default=0.0)
    return Arrangement(corners, routes, width, bottoms[-1] if bottoms else 0.0)


def _x_start(segment: _Segment) -> float:
    return segment.upper.left + segment.start


def _x_end(segment: _Segment) -> float:
    return segment.lower.left + segment.end


def _route(
    path: Sequence[_Segment], boxes: Sequence[Box], tops: Sequence[float], bottoms: Sequence[float]
) -> Iterator[Point]:
    first = path[0].upper
    assert first.box is not None, "a line begins at a box"
    yield _x_start(path[0]), tops[first.layer] + boxes[first.box].height
    for segment in path:
        yield _x_start(segment), bottoms[segment.upper.layer]
        yield _x_end(segment), tops[segment.lower.layer] - HEAD
    yield _x_end(path[-1]), tops[path[-1].lower.layer]
