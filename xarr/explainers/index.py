"""`explain_index`: which items of an index are about which dimensions, and where the result's come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any, SupportsIndex

import numpy as np

from xarr import lax
from xarr.backend import default_device, use_backend
from xarr.base.canvas import CHARACTER, Canvas
from xarr.dtypes import xla_name
from xarr.errors import TracedValueError
from xarr.explainers.explicit_program import make_explicit
from xarr.explanation.folds import PageFold
from xarr.explanation.html import Displayed, fold_fragment, sections
from xarr.explanation.steps import PictureStep, marks_of, render_steps, step_block, step_lines
from xarr.explanation.svg import CELL, MARGIN, STYLE
from xarr.indexing.advanced import vectors_of
from xarr.indexing.basic import BasicIndex
from xarr.indexing.bounds import Mode
from xarr.indexing.index_plan import IndexPlan, ShapePart, layout_of
from xarr.indexing.items import IndexArray, Item, Mask, count_dimensions, expand_ellipsis, items_of
from xarr.ir.types import Ints
from xarr.runtime.handles import Handle, common_device
from xarr.runtime.materialisation import to_host
from xarr.shapes import check_sizes

#: Results of more elements are not listed, and longer arrays not written out.
_LISTED = 12
#: Of arrays with longer dimensions, or so many elements that NumPy could not number their bytes, no element is listed.
_LONGEST, _MOST = 10**6, 2**59


@dataclass(frozen=True)
class ItemFacts:
    """One item of an index: as it is written, what it is, and the dimensions of the array that it is about."""

    written: str
    kind: str
    dimensions: Ints
    effect: str

    @property
    def is_array(self) -> bool:
        """Whether it is one of the arrays of the index, which broadcast among themselves."""
        return self.kind.startswith(("integers", "bool"))


@dataclass(frozen=True)
class AxisFacts:
    """One dimension of the result: its size, and where it comes from (`source` is an item, or None)."""

    size: int
    origin: str
    source: int | None
    from_batch: bool = False


@dataclass(frozen=True, repr=False)
class IndexExplanation(Displayed):
    """The effect of an index: one object, several views.

    `str(e)` or `e.text()`; `e.code` is the same in `xarr.lax`; `e.svg()` draws how dimensions go through the index;
    notebooks show `e.html()`; `e.to_dict()` is data.  `e.batch` is the shape to which index arrays broadcast, None
    without any, and `e.separated` says whether they stand apart, so that their dimensions come first.
    """

    shape: Ints
    items: tuple[ItemFacts, ...]
    batch: Ints | None
    separated: bool
    axes: tuple[AxisFacts, ...]
    code: str
    elements: tuple[str, ...] = field(default=(), compare=False)

    @property
    def fits(self) -> bool:
        """True: what does not run is refused before."""
        return True

    @property
    def result(self) -> Ints:
        """The shape of the result."""
        return tuple([axis.size for axis in self.axes])

    def steps(self) -> tuple[PictureStep, ...]:
        """The items one by one, then the arrays of the index together, then the result."""
        return tuple(_steps(self))

    def text(self) -> str:
        """Plain text: the items, the batch, the dimensions of the result, the operations, the elements."""
        return "\n".join(_lines(self)) + "\n"

    def svg(self) -> str:
        """A self-contained SVG picture: the array's dimensions, the items, the result's dimensions, the steps."""
        return _draw(self, words=True)

    def html(self) -> str:
        """A self-contained HTML fragment: the picture, the text, and the same in `xarr.lax`."""
        text = "\n".join(_lines(self)).partition("\nsteps:")[0].rstrip()
        codes = [("Dimensions", text), ("XLA", self.code.rstrip())]
        codes += [("Elements", "\n".join(self.elements))] if self.elements else []
        picture, steps = _draw(self, words=False), self.steps()

        def body(fold: PageFold) -> str:
            drawn = render_steps(fold.picture(picture), fold.steps(steps))
            return f"{drawn}\n{sections(codes, fold)}"

        return fold_fragment(body, "text(), svg() and to_dict() have it.")

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data that `json.dumps` accepts."""
        return {
            "shape": list(self.shape),
            "items": [asdict(item) for item in self.items],
            "batch": None if self.batch is None else list(self.batch),
            "separated": self.separated,
            "axes": [asdict(axis) for axis in self.axes],
            "result": list(self.result),
            "code": self.code,
            "steps": [asdict(step) for step in self.steps()],
        }


def explain_index(x: Any, index: Any) -> IndexExplanation:
    """Explain `x[index]`: what each item is about, how arrays in it broadcast, where the result's dimensions come from.

    x: an array, or a shape as a tuple or list of ints.  index: what stands between the brackets; for more than an
        int or an array a tuple, which `xarr.s_[1:, None]` spells.

    Raises IndexingError where `x[index]` does, ShapeError for what is neither array nor shape.
    """
    array = _array(x)
    shape = array.shape
    index_items = _as_tuple(index)
    items = items_of(index)
    whole = expand_ellipsis(items, shape)
    layout = layout_of(whole, shape, Mode.ERROR)
    batch, separated = None, False
    if isinstance(layout, IndexPlan):
        batch, separated = vectors_of("explain_index", array, layout, Mode.ERROR).batch, layout.separated
    # After that, since masks have their values now.
    facts = tuple(_item_facts(written, items, whole, k, shape) for k, written in enumerate(index_items))
    axes = tuple(_axes(items, whole, layout, batch))
    device = common_device((array, *index_items)) or default_device()
    with use_backend(device.backend.name):
        code = str(make_explicit(lambda x: x[index], _spec(array)))
    return IndexExplanation(shape, facts, batch, separated, axes, code, tuple(_elements(array, index, axes)))


def _array(x: Any) -> Any:
    """An Array of the shape: `x` itself, or one that takes no memory until it is evaluated."""
    if isinstance(x, Handle):
        if x._node.traced:
            raise TracedValueError(
                "explain_index: give the shape of an argument of a traced function, x.shape"
            )
        return x
    shape = x.shape if isinstance(x, np.ndarray) else _sizes(x)
    return lax.full(shape, 0, np.float32)


def _sizes(x: Sequence[SupportsIndex]) -> Ints:
    return check_sizes(tuple(x) if isinstance(x, list | tuple) else x)


def _spec(array: Any) -> str:
    return f"{xla_name(array.dtype)}[{','.join(map(str, array.shape))}]"


# --- facts ---------------------------------------------------------------------------------------------------------


def _first_dimension(items: Sequence[Any], whole: Sequence[Any], number: int) -> int:
    """The dimension of the array where an item begins: what comes before it, `...` in full, is counted."""
    before = sum(map(count_dimensions, items[:number]))
    if any(item is Ellipsis for item in items[:number]):
        before += sum(map(count_dimensions, whole)) - sum(map(count_dimensions, items))
    return before


def _item_facts(
    written: Any, items: Sequence[Any], whole: Sequence[Any], number: int, shape: Ints
) -> ItemFacts:
    item, first = items[number], _first_dimension(items, whole, number)
    last = first + count_dimensions(item)
    if item is Ellipsis:
        last = first + sum(map(count_dimensions, whole)) - sum(map(count_dimensions, items))
    dimensions = tuple(range(first, last))
    kind, effect = _kind_and_effect(item, dimensions, shape)
    if isinstance(item, Mask) and item.shape:
        values = _concrete_values(written)
        kind += "" if values is None else f": {int(np.count_nonzero(values)):,} True"
    return ItemFacts(_write_item(written), kind, dimensions, effect)


def _kind_and_effect(item: Item, dimensions: Ints, shape: Ints) -> tuple[str, str]:
    about = _about(dimensions, shape)
    if item is None:
        return "None", "a new dimension of size 1"
    if item is Ellipsis:
        return "...", f"keeps {about}" if dimensions else "stands for no dimension"
    if isinstance(item, slice):
        indices = range(*item.indices(shape[dimensions[0]]))
        order = ", backwards" if indices.step < 0 and len(indices) > 1 else ""
        return "slice", f"keeps {len(indices)} of {about}{order}"
    if isinstance(item, int):
        return "int", f"takes one of {about}"
    if isinstance(item, IndexArray):
        return f"integers {item.shape}", f"index {about}"
    if not item.shape:
        return "bool", "takes everything or nothing: a dimension of size 1 or 0"
    return f"boolean mask of shape {item.shape}", f"chooses from {about} where it is True"


def _about(dimensions: Ints, shape: Ints) -> str:
    names = ", ".join(map(str, dimensions))
    sizes = " × ".join(str(shape[dim]) for dim in dimensions)
    return f"dimension{'s' if len(dimensions) > 1 else ''} {names} (size {sizes})"


def _write_item(item: Any) -> str:
    if isinstance(item, slice):
        start, stop = ("" if part is None else str(part) for part in (item.start, item.stop))
        return f"{start}:{stop}" + ("" if item.step is None else f":{item.step}")
    if item is Ellipsis:
        return "..."
    values = _concrete_values(item)
    if values is None or values.size > _LISTED or (values.dtype == bool and values.ndim > 1):
        shape = item.shape if hasattr(item, "shape") else np.shape(item)
        return f"{item.dtype}{list(shape)}" if hasattr(item, "dtype") else f"list {list(shape)}"
    return "None" if item is None else str(values.tolist())


def _concrete_values(item: Any) -> Any:
    if isinstance(item, Handle):
        return to_host(item) if item._node.value is not None else None
    return np.asarray(item)


def _axes(
    items: Sequence[Any], whole: Sequence[Any], layout: BasicIndex | IndexPlan, batch: Ints | None
) -> Iterator[AxisFacts]:
    """The dimensions of the result in order."""
    kept = _kept_axes(items, whole, layout)
    if isinstance(layout, BasicIndex):
        yield from kept
        return
    assert batch is not None
    arrays = [
        AxisFacts(size, f"dimension {number} of the index arrays", None, True)
        for number, size in enumerate(batch)
    ]
    before = layout.tokens.index(ShapePart.BATCH)
    yield from (*kept[:before], *arrays, *kept[before:])


def _kept_axes(items: Sequence[Any], whole: Sequence[Any], layout: BasicIndex | IndexPlan) -> list[AxisFacts]:
    """The dimensions that slices, `...` and None make."""
    axes: list[AxisFacts] = []
    region = layout if isinstance(layout, BasicIndex) else layout.region
    sources = _sources(items, whole)
    dim = 0
    for item, source in zip(whole, sources, strict=True):
        if item is None:
            axes.append(AxisFacts(1, "new", source))
        elif isinstance(item, slice):
            axes.append(AxisFacts(region.sizes[dim], f"dimension {dim} of x", source))
        dim += count_dimensions(item)
    return axes


def _sources(items: Sequence[Any], whole: Sequence[Any]) -> list[int | None]:
    """For each item of the whole index the one given, None for dimensions that no item names."""
    missing = len(whole) - len(items)
    numbers: list[int | None] = []
    for number, item in enumerate(items):
        numbers += [number] * (1 + missing) if item is Ellipsis else [number]
    return numbers + [None] * (len(whole) - len(numbers))


def _elements(array: Any, index: Any, axes: Sequence[AxisFacts]) -> Iterator[str]:
    """Which element of the array each of the result is, if these are few; no memory of the array's size is taken."""
    count, shape = prod(axis.size for axis in axes), array.shape
    if not 0 < count <= _LISTED or max(shape, default=0) > _LONGEST or prod(shape) > _MOST:
        return
    items = tuple(to_host(item) if isinstance(item, Handle) else item for item in _as_tuple(index))
    along = [np.arange(size).reshape(-1, *(1,) * (len(shape) - 1 - dim)) for dim, size in enumerate(shape)]
    sources = [np.broadcast_to(each, shape)[items] for each in along]
    for position in np.ndindex(*(axis.size for axis in axes)):
        yield f"result{list(position)} = x{[int(source[position]) for source in sources]}"


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


# --- text ----------------------------------------------------------------------------------------------------------


def _lines(explanation: IndexExplanation) -> Iterator[str]:
    written = ", ".join(item.written for item in explanation.items)
    yield f"x[{written}] of x with shape {explanation.shape} -> {explanation.result}"
    yield ""
    yield "items of the index:"
    width = max([len(item.written) for item in explanation.items], default=0)
    kinds = max([len(item.kind) for item in explanation.items], default=0)
    for item in explanation.items:
        yield f"  {item.written:<{width}}  {item.kind:<{kinds}}  {item.effect}"
    named = {dim for item in explanation.items for dim in item.dimensions}
    for dim in range(len(explanation.shape)):
        if dim not in named:
            yield f"  {'':<{width}}  {'':<{kinds}}  no item is about {_about((dim,), explanation.shape)}: kept"
    if explanation.batch is not None:
        yield ""
        yield from _batch_lines(explanation)
    yield ""
    yield "dimensions of the result:"
    for number, axis in enumerate(explanation.axes):
        yield f"  {number}  size {axis.size:<4}  {axis.origin}"
    if not explanation.axes:
        yield "  none: one element"
    yield ""
    yield from step_block(explanation.steps())
    yield "in xarr.lax:"
    yield from (f"  {line}" for line in explanation.code.rstrip().split("\n"))
    if explanation.elements:
        yield ""
        yield from explanation.elements


def _batch_lines(explanation: IndexExplanation) -> Iterator[str]:
    arrays = [item for item in explanation.items if item.is_array or item.kind == "int"]
    if len(arrays) == 1 and len(arrays[0].dimensions) > 1:
        count = len(arrays[0].dimensions)
        yield f"the mask stands for {count} index arrays of shape {explanation.batch}, one for each of its dimensions"
        return
    names = ", ".join(item.written for item in arrays)
    yield f"index arrays: {names} broadcast to {explanation.batch}"
    if any(item.kind == "int" for item in arrays):
        yield "  an int counts as an array where there is one"
    if explanation.separated:
        yield "  other items stand between them, so that their dimensions come first in the result"
    else:
        yield "  they stand side by side, so that their dimensions come where they stand"


# --- steps ---------------------------------------------------------------------------------------------------------

#: Items with a step of their own; of more, the others share one.
_STEPPED = 4


def _steps(explanation: IndexExplanation) -> Iterator[PictureStep]:
    alone = [
        k for k, item in enumerate(explanation.items) if not (item.is_array or _is_taken(explanation, item))
    ]
    single = alone if len(alone) <= _STEPPED else alone[: _STEPPED - 1]
    for k in single:
        item = explanation.items[k]
        yield PictureStep(f"[{_label(item)}]", item.effect, "", *_keys(explanation, [k]))
    others = alone[len(single) :]
    if others:
        effects = [f"[{_label(explanation.items[k])}] {explanation.items[k].effect}" for k in others]
        yield PictureStep("other items", "; ".join(effects), "", *_keys(explanation, others))
    if explanation.batch is not None:
        arrays = [
            k for k, item in enumerate(explanation.items) if item.is_array or _is_taken(explanation, item)
        ]
        words = "; ".join(line.strip() for line in _batch_lines(explanation)).removeprefix("index arrays: ")
        yield PictureStep("index arrays", words, "", *_keys(explanation, arrays))
    origins = [f"{number} is {axis.origin}" for number, axis in enumerate(explanation.axes)]
    kept = [n for n, axis in enumerate(explanation.axes) if axis.source is None and not axis.from_batch]
    words = f"{explanation.result}: dimension {', '.join(origins)}" if origins else "one element"
    yield PictureStep("result", words, "", tuple(f"r{n}" for n in (kept if origins else [0])))


def _is_taken(explanation: IndexExplanation, item: ItemFacts) -> bool:
    """Whether it is an int that counts as one of the arrays."""
    return explanation.batch is not None and item.kind == "int"


def _label(item: ItemFacts) -> str:
    return item.written if len(item.written) <= 20 else item.kind


def _keys(explanation: IndexExplanation, items: Sequence[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys of what the picture has from the step of some items on, and of what that is about."""
    made = [f"i{k}" for k in items]
    for number, axis in enumerate(explanation.axes):
        if set(_sources_of(explanation, axis)) & set(items):
            made.append(f"r{number}")
    about = [f"d{dim}" for k in items for dim in explanation.items[k].dimensions]
    return tuple(made), (*made, *about)


# --- picture -------------------------------------------------------------------------------------------------------

_GAP, _ROW, _LEFT, _COLOURS = 24.0, 72.0, 210.0, 6


def _draw(explanation: IndexExplanation, words: bool) -> str:
    steps = explanation.steps()
    canvas = Canvas(marks_of(steps))
    for number, label in enumerate(("dimensions of x", "items of the index", "dimensions of the result")):
        canvas.text(MARGIN, MARGIN + number * _ROW + CELL / 2 + 4, label, "d")
    sizes = [f"{dim}: {size}" for dim, size in enumerate(explanation.shape)]
    own = _boxes(canvas, MARGIN, "d", sizes, [_style_of(explanation, dim) for dim in range(len(sizes))])
    labels = [_label(item) for item in explanation.items]
    items = _boxes(canvas, MARGIN + _ROW, "i", labels, [_style(explanation, k) for k in range(len(labels))])
    results = [f"{number}: {axis.size}" for number, axis in enumerate(explanation.axes)]
    styles = ["c or" if axis.from_batch else _style(explanation, axis.source) for axis in explanation.axes]
    ends = _boxes(canvas, MARGIN + 2 * _ROW, "r", results or ["one element"], styles or ["v"])
    for number, item in enumerate(explanation.items):
        for dim in item.dimensions:
            _draw_line(canvas, own[dim], items[number], f"i{number}")
    for number, axis in enumerate(explanation.axes):
        for source in _sources_of(explanation, axis):
            _draw_line(canvas, items[source], ends[number], f"i{source}")
        if axis.source is None and not axis.from_batch:
            _draw_line(canvas, own[int(axis.origin.split()[1])], ends[number], f"r{number}")
    canvas.cover(0, canvas.height + 6)
    for line in step_lines(steps) if words else ():
        canvas.text(MARGIN, canvas.height + 14, line, "d")
    return canvas.svg(f"an index of shape {explanation.shape} with result {explanation.result}", STYLE)


def _sources_of(explanation: IndexExplanation, axis: AxisFacts) -> list[int]:
    if axis.from_batch:
        return [k for k, item in enumerate(explanation.items) if item.is_array]
    return [] if axis.source is None else [axis.source]


def _style(explanation: IndexExplanation, source: int | None) -> str:
    if source is None:
        return "v"
    return "c or" if explanation.items[source].is_array else f"c o{source % _COLOURS}"


def _style_of(explanation: IndexExplanation, dim: int) -> str:
    return next(
        (_style(explanation, k) for k, item in enumerate(explanation.items) if dim in item.dimensions), "v"
    )


def _boxes(
    canvas: Canvas, top: float, row: str, labels: Sequence[str], styles: Sequence[str]
) -> list[tuple[float, float]]:
    """A row of boxes, whose keys begin with that of the row; for each the middle of its upper edge."""
    left, centres = MARGIN + _LEFT, []
    for number, (label, style) in enumerate(zip(labels, styles, strict=True)):
        width = max(48.0, 11 * CHARACTER * len(label) + 12)
        canvas.box(left, top, width, CELL, f"{style}{canvas.marks.get(f'{row}{number}', '')}", label)
        centres.append((left + width / 2, top))
        left += width + _GAP
    return centres


def _draw_line(canvas: Canvas, start: tuple[float, float], end: tuple[float, float], key: str) -> None:
    x, y = start[0], start[1] + CELL
    canvas.line(x, y, end[0] - x, end[1] - y, f"s{canvas.marks.get(key, '')}")
