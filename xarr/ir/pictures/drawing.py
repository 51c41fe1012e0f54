"""A graph as a picture: a box for each operation, argument and result, lines for the arrays between them.

What an operation carries, the body of a loop or a group, is drawn within its box.  Of long graphs the middle is folded
into one box, so that a picture has some hundred boxes at most.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from math import log10
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from xarr.base.canvas import CHARACTER, MONOSPACED, Canvas, number
from xarr.errors import pluralize
from xarr.ir.memory_use import nbytes, shown_bytes
from xarr.ir.pictures.layers import HEAD, Arrangement, Box, Connection, arrange
from xarr.ir.types import Type

if TYPE_CHECKING:
    from xarr.ir.graph import Graph, Node

T = TypeVar("T")
#: A box, and which of its results.
Origin: TypeAlias = tuple[int, int]

MARGIN: Final = 20.0
#: Boxes in all; operations of the outer graph and of one inside it; arguments and results of one.
_MOST, _MOST_OUTER, _MOST_INNER, _MOST_ENDS = 360, 200, 50, 24
#: Graphs within graphs that are drawn.
_DEEPEST: Final = 4
_LONGEST: Final = 40
#: An operand to which a line leads, where others are written.
_ARRAY: Final = "\N{MIDDLE DOT}"
#: Lines of text that a notebook shows.
_LINES: Final = 300
_ROW, _SIZE, _PAD, _PORT = 16.0, 12, 10.0, 9.0

_COLOURS: Final = {
    "a": ("#56B4E9", "argument"),
    "c": ("#8a8a8a", "constant"),
    "e": ("#0072B2", "element-wise"),
    "m": ("#CC79A7", "moves elements"),
    "p": ("#E69F00", "combines elements"),
    "r": ("#009E73", "result"),
}
_GROUP, _FOLDED = "b", "f"

STYLE: Final = (
    ".xarr-g{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}"
    ".xarr-g .paper{fill:#fff}.xarr-g text{fill:#1b1b1b;white-space:pre}.xarr-g g text{text-anchor:middle}"
    ".xarr-g .t{font-weight:700}.xarr-g .d{fill:#575757}.xarr-g rect{stroke:#555;fill-opacity:.22}"
    ".xarr-g .paper{stroke:none;fill-opacity:1}.xarr-g .b rect{fill:#8a8a8a;fill-opacity:.07;stroke-width:1.6}"
    ".xarr-g .f rect{fill:none;stroke-dasharray:5 3}"
    ".xarr-g .l{fill:none;stroke:#555;stroke-linejoin:round}.xarr-g .h{fill:#555}.xarr-g .l:hover{stroke:#c8102e}"
    + "".join(f".xarr-g .{style} rect{{fill:{colour}}}" for style, (colour, _) in _COLOURS.items())
    + "@media(prefers-color-scheme:dark){.xarr-g .paper{fill:#16181d}.xarr-g text{fill:#ececec}"
    ".xarr-g .d{fill:#b4b8bf}.xarr-g rect{stroke:#a9adb5;fill-opacity:.3}.xarr-g .b rect{fill-opacity:.12}"
    ".xarr-g .paper{stroke:none;fill-opacity:1}.xarr-g .l{stroke:#a9adb5}.xarr-g .h{fill:#a9adb5}"
    ".xarr-g .l:hover{stroke:#ff6b6b}}"
)


@dataclass(slots=True)
class _Item:
    """A box: its lines of text, the first bold, and the graphs within it, each under its name."""

    style: str
    texts: tuple[str, ...]
    title: str
    results: tuple[Type, ...] = ()
    insides: tuple[tuple[str, _Sheet], ...] = ()
    inputs: int = 0

    @property
    def box(self) -> Box:
        words = max(len(text) for text in self.texts) * _SIZE * CHARACTER
        across = sum(max(sheet.width, _SIZE * CHARACTER * len(name)) + _PAD for name, sheet in self.insides)
        ports = _PORT * (1 + max(self.inputs, len(self.results)))
        down = max([sheet.height + _ROW + 2 * _PAD for _, sheet in self.insides], default=0.0)
        width = max(words + 2 * _PAD, across + _PAD, ports)
        return Box(width, len(self.texts) * _ROW + _PAD + down)


@dataclass(slots=True)
class _Sheet:
    """A graph that is laid out: boxes, and for each line what it stands for."""

    items: list[_Item]
    arrangement: Arrangement
    titles: list[str]
    weights: list[int]

    @property
    def width(self) -> float:
        return self.arrangement.width

    @property
    def height(self) -> float:
        return self.arrangement.height


@dataclass(slots=True)
class _Budget:
    """The boxes that may still be drawn."""

    left: int = _MOST


def draw_graph(graph: Graph) -> str:
    """The picture of a graph as a self-contained SVG document, light or dark as the reader's system is."""
    sheet = _lay_out(graph, _MOST_OUTER, _Budget(), 0)
    canvas = Canvas()
    headline = _headline(graph)
    canvas.text(MARGIN, MARGIN + 6, headline, "t", _SIZE)
    top = MARGIN + 26
    _draw(canvas, sheet, MARGIN, top)
    _draw_legend(canvas, sheet, top + sheet.height + 26)
    return canvas.svg(_description(headline, graph), STYLE, MARGIN, "xarr-g")


def show_graph(graph: Graph) -> str:
    """The picture as a fragment of a page that can be scrolled, and below it, folded, the beginning of the text."""
    lines = str(graph).splitlines()
    text = "\n".join([*lines[:_LINES], *(["\N{HORIZONTAL ELLIPSIS}"] if len(lines) > _LINES else [])])
    return (
        f'<div style="overflow:auto;max-height:80vh">{draw_graph(graph)}</div>'
        f'<details><summary>StableHLO</summary><pre style="{MONOSPACED}">{escape(text)}</pre></details>'
    )


def _headline(graph: Graph) -> str:
    arguments, results = graph.parameters, graph.results
    return (
        f"{_cut(graph.name)}: {pluralize(graph.operation_count, 'operation')}; "
        f"{pluralize(len(arguments), 'argument')}, {_bytes_of(arguments)}; "
        f"{pluralize(len(results), 'result')}, {_bytes_of(results)}"
    )


def _description(headline: str, graph: Graph) -> str:
    """The text for those who cannot see the picture."""
    counts = Counter(node.op.lax_name for node in graph.nodes if node.op.result_number(node) is None)
    return f"Graph {headline}; {_list_counts(counts, 12)}" if counts else f"Graph {headline}"


def _bytes_of(nodes: Sequence[Node]) -> str:
    return shown_bytes(sum(nbytes(node.type) for node in nodes))


# --- boxes and lines ------------------------------------------------------------------------------


@dataclass(slots=True)
class _BoxesOfGraph:
    """Boxes and lines of one graph, as they are made."""

    #: Of nodes that take one of several results: whose, and which.
    elements: Mapping[Node, tuple[Node, int]]
    items: list[_Item] = field(default_factory=list)
    #: For each box where its lines come from.
    sources: list[list[Origin]] = field(default_factory=list)
    boxes: dict[Node, int] = field(default_factory=dict)

    def owner(self, node: Node) -> tuple[Node, int]:
        """The node that computes the value, and which of its results that is."""
        return self.elements.get(node, (node, 0))

    def origin(self, node: Node) -> Origin:
        """The box that a value comes from; a folded one gives all its results from one point."""
        owner, number = self.owner(node)
        box = self.boxes[owner]
        return box, 0 if self.items[box].style == _FOLDED else number

    def add(self, item: _Item, operands: Sequence[Node], nodes: Sequence[Node] = ()) -> None:
        """Add a box that stands for nodes; several lines from one result to it are one if it is a folded box."""
        sources = [self.origin(operand) for operand in operands]
        if item.style == _FOLDED:
            sources = list(dict.fromkeys(sources))
        item.inputs = len(sources)
        self.boxes.update((node, len(self.items)) for node in nodes)
        self.items.append(item)
        self.sources.append(sources)

    def sheet(self) -> _Sheet:
        """All of it laid out."""
        boxes = [item.box for item in self.items]
        lines, titles, weights = [], [], []
        for target, sources in enumerate(self.sources):
            for port, (source, result) in enumerate(sources, 1):
                own = self.items[source]
                start = boxes[source].width * (result + 1) / (max(1, len(own.results)) + 1)
                end = boxes[target].width * port / (len(sources) + 1)
                lines.append(Connection(source, target, start, end))
                type = own.results[result] if own.results else None
                titles.append(
                    f"{own.texts[0]} to {self.items[target].texts[0]}"
                    + (_type_text(type, ": ") if type else "")
                )
                weights.append(nbytes(type) if type else 0)
        return _Sheet(self.items, arrange(boxes, lines), titles, weights)


def _lay_out(graph: Graph, most: int, budget: _Budget, depth: int) -> _Sheet:
    numbered_elements = ((node, node.op.result_number(node)) for node in graph.nodes)
    elements = {node: (node.operands[0], at) for node, at in numbered_elements if at is not None}
    builder = _BoxesOfGraph(elements)
    numbers = {node: index for index, node in enumerate(graph.parameters)}
    written = _written_numbers(graph)
    nodes = [node for node in graph.nodes if node not in elements and node not in written]
    arguments = _fold(graph.parameters, _MOST_ENDS)
    operations = _fold(nodes, most)
    results = _fold(list(enumerate(graph.results)), _MOST_ENDS)
    budget.left -= len(arguments) + len(operations) + len(results)
    for part in arguments:
        builder.add(_arguments(part, numbers), (), part)
    for part in operations:
        item = _operation(part[0], written, budget, depth) if len(part) == 1 else _fold_nodes(part)
        inside = set(part)
        operands = [operand for node in part for operand in node.operands if operand not in written]
        builder.add(item, [each for each in operands if builder.owner(each)[0] not in inside], part)
    for numbered in results:
        builder.add(_results(numbered), [node for _, node in numbered])
    return builder.sheet()


def _written_numbers(graph: Graph) -> dict[Node, str]:
    """Constants of one element, and such repeated, that are written where they are used instead of in a box.

    Those that are results, arguments of graphs within the graph, or of operations whose line of text they would not
    fit into, have a box, from which a line leads there.
    """
    numbers: dict[Node, str] = {}
    for node in graph.nodes:
        if node.op.lax_name == "constant" and not node.operands and node.op.details():
            numbers[node] = node.op.details()
        elif node.op.lax_name == "broadcast_in_dim" and node.operands[0] in numbers:
            numbers[node] = numbers[node.operands[0]]
    boxed = set(graph.results)
    for node in reversed(graph.nodes):  # users before what they use
        is_drawn = node not in numbers or node in boxed
        is_simple = all(_only_op(inner) for inner in node.op.graphs)
        if is_drawn and not (is_simple and len(_spell(node, numbers)) <= _LONGEST):
            boxed.update(node.operands)
    return {node: text for node, text in numbers.items() if node not in boxed}


def _fold(values: Sequence[T], most: int) -> list[tuple[T, ...]]:
    """Each value alone; of more than `most` the first and the last, and all between as one."""
    if len(values) <= most:
        return [(value,) for value in values]
    first = (most + 1) // 2
    last = len(values) - (most - first)
    return [
        *((value,) for value in values[:first]),
        tuple(values[first:last]),
        *((value,) for value in values[last:]),
    ]


def _arguments(nodes: Sequence[Node], numbers: dict[Node, int]) -> _Item:
    first = numbers[nodes[0]]
    if len(nodes) > 1:
        return _Item(
            _FOLDED, (f"arguments {first} to {numbers[nodes[-1]]}", _bytes_of(nodes)), "not drawn one by one"
        )
    (node,) = nodes
    return _Item("a", (f"argument {first}", _type_text(node.type)), _title(node), (node.type,))


def _results(numbered: Sequence[tuple[int, Node]]) -> _Item:
    numbers, nodes = zip(*numbered, strict=True)
    if len(nodes) > 1:
        return _Item(
            _FOLDED, (f"results {numbers[0]} to {numbers[-1]}", _bytes_of(nodes)), "not drawn one by one"
        )
    return _Item("r", (f"result {numbers[0]}", _type_text(nodes[0].type)), nodes[0].type.short())


def _fold_nodes(nodes: Sequence[Node]) -> _Item:
    counts = _list_counts(Counter(node.op.lax_name for node in nodes), 3)
    texts = f"{len(nodes):,} operations, not drawn", counts, f"{_bytes_of(nodes)} of results"
    return _Item(_FOLDED, tuple(map(_cut, texts)), counts)


def _list_counts(counts: Counter[str], most: int) -> str:
    """`12 add, 3 mul`, the most frequent first."""
    shown = ", ".join(f"{count:,} {name}" for name, count in counts.most_common(most))
    return shown + (f", {pluralize(len(counts) - most, 'other')}" if len(counts) > most else "")


def _operation(node: Node, written: Mapping[Node, str], budget: _Budget, depth: int) -> _Item:
    op = node.op
    attributes = op.details()
    texts = [_cut(_spell(node, written)), *([_cut(attributes)] if attributes else []), _type_text(node.type)]
    item = _Item(_style(node), tuple(texts), _title(node), op.results(node))
    if all(_only_op(graph) for graph in op.graphs):
        return item
    if depth >= _DEEPEST or budget.left <= 0:
        inside = sum(graph.operation_count for graph in op.graphs)
        item.texts = (*texts, f"{pluralize(inside, 'operation')} inside, not drawn")
        return item
    item.style = _GROUP
    item.insides = tuple(
        [(name, _lay_out(graph, _MOST_INNER, budget, depth + 1)) for name, graph in _graphs(node)]
    )
    return item


def _spell(node: Node, written: Mapping[Node, str]) -> str:
    """The name of the box, with its operands where some of them are written: `mul(0.5, ·)`."""
    if not any(operand in written for operand in node.operands):
        return _name(node)
    return f"{_name(node)}({', '.join(written.get(operand, _ARRAY) for operand in node.operands)})"


def _name(node: Node) -> str:
    """The name of the box: `add`; `reduce add` with what the op carries, if that is one op."""
    only = [_only_op(graph) for graph in node.op.graphs]
    return " ".join([node.op.title, *dict.fromkeys(name for name in only if name and all(only))])


def _only_op(graph: Graph) -> str | None:
    """The op of a graph that is one op on its parameters; None of any other."""
    nodes = graph.nodes
    return nodes[0].op.lax_name if len(nodes) == 1 and not nodes[0].op.graphs else None


def _graphs(node: Node) -> list[tuple[str, Graph]]:
    """The graphs that an op carries, each with the name of its attribute; an only one has its own."""
    if len(node.op.graphs) == 1:
        return [(_cut(graph.name), graph) for graph in node.op.graphs]
    return node.op.named_graphs()


def _style(node: Node) -> str:
    if node.op.is_leaf:
        return "a"
    if not node.operands:
        return "c"
    return "e" if node.op.is_elementwise else "m" if node.op.moves else "p"


def _title(node: Node) -> str:
    """The text that is shown on hovering: op, attributes, type, and where it was written."""
    source = f"\n{os.path.basename(node.source.filename)}:{node.source.line}" if node.source else ""
    remark = node.op.remark(node)
    return f"{node.op.name} {node.op.details()}\n{node.type.short()}{source}" + (
        f"\n{remark}" if remark else ""
    )


def _type_text(type: Type, before: str = "") -> str:
    return f"{before}{_cut(type.short())} {shown_bytes(nbytes(type))}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


# --- drawing --------------------------------------------------------------------------------------


def _draw(canvas: Canvas, sheet: _Sheet, left: float, top: float) -> None:
    arrangement = sheet.arrangement
    for item, (x, y) in zip(sheet.items, arrangement.corners, strict=True):
        _draw_item(canvas, item, left + x, top + y)
    for points, title, weight in zip(arrangement.routes, sheet.titles, sheet.weights, strict=True):
        _draw_line(canvas, [(left + x, top + y) for x, y in points], title, weight)


def _draw_item(canvas: Canvas, item: _Item, x: float, y: float) -> None:
    box = item.box
    canvas.cover(x + box.width, y + box.height)
    rows = [
        f'<text x="{number(x + box.width / 2)}" y="{number(y + 17 + _ROW * row)}" class="{"d" if row else "t"}">'
        f"{escape(text)}</text>"
        for row, text in enumerate(item.texts)
    ]
    size = f'width="{number(box.width)}" height="{number(box.height)}" rx="3"'
    canvas.add(
        f'<g class="{item.style}"><title>{escape(item.title)}</title>'
        f'<rect x="{number(x)}" y="{number(y)}" {size}/>{"".join(rows)}</g>'
    )
    below, across = y + len(item.texts) * _ROW + _PAD, x + _PAD
    for name, sheet in item.insides:
        canvas.text(across, below + 10, name, "d", _SIZE)
        _draw(canvas, sheet, across, below + _ROW + _PAD / 2)
        across += max(sheet.width, _SIZE * CHARACTER * len(name)) + _PAD


def _draw_line(canvas: Canvas, points: Sequence[tuple[float, float]], title: str, weight: int) -> None:
    """A line, the wider the more bytes; its end is an arrowhead."""
    *before, (x, y) = points
    shown = [points[0], *(each for last, each in pairwise(before) if each != last)]
    path = "L".join(f"{number(x)} {number(y)}" for x, y in shown)
    width = number(1 + log10(max(1, weight)) / 3)
    canvas.add(f'<path d="M{path}" class="l" stroke-width="{width}"><title>{escape(title)}</title></path>')
    canvas.add(f'<path d="M{number(x)} {number(y)}l-4 -{number(HEAD)}h8z" class="h"/>')


def _draw_legend(canvas: Canvas, sheet: _Sheet, y: float) -> None:
    """The kinds of boxes that there are, from left to right."""
    used, x = set(_styles(sheet)), MARGIN
    for style, (_, text) in _COLOURS.items():
        if style in used:
            canvas.add(
                f'<g class="{style}"><rect x="{number(x)}" y="{number(y)}" width="14" height="14" rx="3"/></g>'
            )
            x = canvas.text(x + 20, y + 11, text, "d", _SIZE) + 18


def _styles(sheet: _Sheet) -> Iterator[str]:
    for item in sheet.items:
        yield item.style
        for _, inner in item.insides:
            yield from _styles(inner)
