"""Arrays as text and pictures: `repr`, and the fragment of HTML that notebooks show.

Neither computes much: a pending Array whose graph has more than `LARGEST` elements says so instead of its
values.  `str(x)`, `print(x)` and `np.asarray(x)` ask for the values and compute them.
"""

from __future__ import annotations

from html import escape
from typing import Any, Final

import numpy as np

from xarr.base.typing import Array
from xarr.errors import pluralize
from xarr.ir.graph import Node
from xarr.ir.ops import Concatenate, Slice
from xarr.ir.types import TensorType
from xarr.runtime import handles, materialisation

#: As many elements may be computed to show an array: some tens of milliseconds.
LARGEST: Final = 10**7
#: As many nodes of a graph are looked at.
_MOST_NODES: Final = 2000
#: Pixels of the picture of a shape: the longest edge, and what an edge takes at least.
_LONGEST, _LEAST = 120.0, 14.0


def text(array: Array) -> str:
    """`Array([1., 2.], dtype=float64)`, like NumPy's with the backend where it is not the NumPy backend."""
    kind = f"dtype={array.dtype.name}" + (
        "" if array.backend == "numpy" else f", backend={materialisation.device_of(array._node).name}"
    )
    type = array._node.tensor_type
    if array._node.traced:
        return f"Array(<traced {type.short()}>, {kind})"
    pending = Pending.of(array)
    if pending.is_large:
        return f"Array(<{pending}>, shape={array.shape}, {kind}; x.evaluate() or print(x) computes it)"
    if type.dynamic:
        kind = f"type={type.short()}, live shape={np.asarray(array).shape}, {kind}"
    elif not array.size and array.shape != (0,):
        return f"Array([], shape={array.shape}, {kind})"
    host, options = shown_elements(array, separator=", ", prefix="Array(")
    values = np.array2string(host, **options)
    return f"Array({values}, {kind})"


def elements(array: Array, *settings: Any, **options: Any) -> str:
    """The elements as `numpy.array_str` writes them, with the settings and options of `numpy.array2string`."""
    host, options = shown_elements(array, **options)
    return np.array2string(host, *settings, **options) if host.shape else np.array_str(host, *settings)


def shown_elements(array: Array, **options: Any) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """The elements that `numpy.array2string` prints with these options, and options that print them so.

    Elements in memory that is not the host's are copied only where they are shown: of an array with more than
    `threshold` of them the first and the last `edgeitems` of each dimension, and one that stands for those between.
    """
    whole = handles.wrap(array._node)  # another thread may write to `array` meanwhile
    materialisation.evaluate(whole)
    node, defaults = whole._node, np.get_printoptions()
    threshold, edge = (
        defaults[name] if options.get(name) is None else options[name] for name in ("threshold", "edgeitems")
    )
    on_host = materialisation.device_of(node).backend.is_on_host
    if on_host or node.tensor_type.dynamic or node.tensor_type.size <= threshold:
        return materialisation.to_host(whole), options
    for dimension, size in enumerate(node.shape):
        if size > 2 * edge + 1:
            ends = _part(node, dimension, 0, edge + 1), _part(node, dimension, size - edge, size)
            node = Node(Concatenate(dimension), ends)
    return materialisation.to_host(handles.wrap(node)), {**options, "threshold": 0}


def _part(node: Node, dimension: int, start: int, stop: int) -> Node:
    """The elements from `start` to below `stop` of one dimension."""
    return Node(Slice.cut(node.shape, dimension, start, stop), (node,))


class Pending:
    """The work before an array has a value: how many ops, over how many elements."""

    def __init__(self, ops: int, elements: int, complete: bool) -> None:
        self.ops, self.elements, self.complete = ops, elements, complete

    @classmethod
    def of(cls, array: Array) -> Pending:
        """Of a graph with very many nodes only some are looked at."""
        ops = elements = 0
        seen: set[Node] = set()
        left = [array._node]
        while left and ops < _MOST_NODES:
            node = left.pop()
            if node in seen or node.value is not None:
                continue
            seen.add(node)
            left += node.operands
            if node.operands:
                ops += 1
                elements += node.type.size if isinstance(node.type, TensorType) else 0
        return cls(ops, elements, not left)

    @property
    def is_large(self) -> bool:
        """Whether computing it takes longer than a user who prints a variable would expect."""
        return self.elements > LARGEST or not self.complete

    def __str__(self) -> str:
        more = "" if self.complete else "more than "
        return f"not computed: {more}{pluralize(self.ops, 'op')} over {pluralize(self.elements, 'element')}"


#: Notebooks' own styles would let `<pre>` inherit a proportional font, in which columns do not line up.
_MONOSPACED: Final = (
    "font-size:13px;line-height:1.35;font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"
)


def html(array: Array) -> str:
    """The values where they cost little, and under them, folded, shape, element type, size, backend, layout."""
    type = array._node.tensor_type
    pending = Pending.of(array)
    rows = {
        "size": f"{pluralize(array.size, 'element')}, {pluralize(array.nbytes, 'byte')}",
        "backend": array.backend,
    }
    if array._node.traced:
        shown = f"no value yet: {type.short()} is traced"
    elif pending.is_large:
        shown = f"{pending}; x.evaluate() or print(x) computes it"
    else:
        shown = text(array)
        if not type.dynamic:
            rows["layout"] = str(array.layout)
    cells = "".join(
        f'<tr><th style="text-align:left;padding:0 10px 0 0">{name}</th>'
        f'<td style="text-align:left">{escape(told)}</td></tr>'
        for name, told in rows.items()
    )
    return (
        f'<div class="xarr-array"><pre style="{_MONOSPACED};white-space:pre;overflow-x:auto;margin:0">'
        f'{escape(shown)}</pre><details style="font-size:90%;opacity:.8"><summary style="cursor:pointer">'
        f"shape {escape(str(array.shape))}, {escape(array.dtype.name)}</summary>"
        '<div style="display:flex;gap:24px;align-items:center">'
        f'<table style="border-collapse:collapse">{cells}</table>{shape_svg(array.shape)}</div></details></div>'
    )


def shape_svg(shape: tuple[int, ...]) -> str:
    """A picture of a shape: a bar, a rectangle or a box of the last three dimensions, with their sizes.

    Edges grow with the logarithm of the size, so that (3, 1000000) can still be seen.  Leading dimensions
    are written before it.  A scalar has no picture.
    """
    if not shape:
        return ""
    *leading, depth, rows, columns = (1,) * (3 - len(shape)) + shape if len(shape) < 3 else shape
    wide, high = _edge(columns, shape), _edge(rows, shape) if len(shape) > 1 else _LEAST
    deep = 0.45 * _edge(depth, shape) if len(shape) > 2 else 0.0
    before = "".join(f"{size} × " for size in leading)
    left, top = 12.0 + 8 * len(before), 12.0
    parts = [_polygon(left + deep, top + deep, wide, high)]
    if deep:
        parts += [
            _path(
                (left + deep, top + deep), (left, top), (left + wide, top), (left + deep + wide, top + deep)
            ),
            _path((left, top), (left, top + high), (left + deep, top + deep + high)),
        ]
    labels = [(left + deep + wide / 2, top + deep + high + 16, str(columns), "middle")]
    if len(shape) > 1:
        labels.append((left + deep + wide + 6, top + deep + high / 2 + 4, str(rows), "start"))
    if deep:
        labels.append((left + deep / 2 - 4, top + high + deep / 2 + 14, str(depth), "end"))
    if leading:
        labels.append((8, top + deep + high / 2 + 4, before.rstrip(), "start"))
    parts += [
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="currentColor">{told}</text>'
        for x, y, told, anchor in labels
    ]
    width, height = left + deep + wide + 12 + 9 * len(str(rows)), top + deep + high + 24
    title = f"<title>an array of shape {shape}</title>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'font-family="ui-monospace,monospace" font-size="12">{title}{"".join(parts)}</svg>'
    )


def _edge(size: int, shape: tuple[int, ...]) -> float:
    largest = max(2, *shape)
    return max(_LEAST, _LONGEST * float(np.log2(size + 1) / np.log2(largest + 1)))


def _polygon(x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" fill="#56B4E9" '
        'fill-opacity="0.35" stroke="currentColor"/>'
    )


def _path(*points: tuple[float, float]) -> str:
    points_text = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
    return f'<polyline points="{points_text}" fill="none" stroke="currentColor"/>'
