"""`explain_window`: where the windows of a pooling or convolution lie, padding and holes included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, inf, prod
from typing import Any, Final

from xarr import lax
from xarr.base.broadcasting import Shape
from xarr.base.canvas import Canvas
from xarr.errors import ShapeError, pluralize
from xarr.explainers.operands import choose, programs, read
from xarr.explanation.broadcast_code import Suggestion, list_memory, list_words
from xarr.explanation.broadcast_facts import Operand
from xarr.explanation.grids import COLOURS, CellGrid, GridCell, draw_row, indices_in, key_of, width_for
from xarr.explanation.sheet import Cell, Listing, Sheet
from xarr.explanation.steps import PictureStep, join_terms, unravel, write_element
from xarr.explanation.svg import MARGIN
from xarr.ir.windows import (
    LARGEST,
    Pairs,
    Window,
    WindowDimension,
    dilate_size,
    find_largest_extent,
    named_padding,
)

#: NumPy's function, the neutral element and the step of a loop, by op.
_OPS: Final = {
    "max": ("max", "-inf", "{0} = max({0}, {1})"),
    "min": ("min", "inf", "{0} = min({0}, {1})"),
    "sum": ("sum", "0.0", "{0} += {1}"),
    "prod": ("prod", "1.0", "{0} *= {1}"),
    "conv": ("sum", "0.0", "{0} += {1} * w{2}"),
}
#: What padding and holes count as.
_NEUTRAL: Final = {
    "max": "the least number",
    "min": "the greatest number",
    "sum": "0",
    "prod": "1",
    "conv": "0",
}
WINDOW_OPS: Final = tuple(_OPS)
#: The initial value of the op of `xarr.lax`, and its computation.
_COMBINERS: Final[dict[str, tuple[float, Callable[..., Any]]]] = {
    "max": (-inf, lax.max),
    "min": (inf, lax.min),
    "sum": (0.0, lax.add),
    "prod": (1.0, lax.mul),
}


@dataclass(frozen=True, repr=False)
class WindowsExplanation(Sheet):
    """The windows that slide over an array: their positions, what each reads, and the result's size along each axis.

    One object, several views.  `op` is max, min, sum or prod of each window, or conv, which multiplies by weights
    `w` of the window's shape.
    """

    op: str
    operand: Operand
    window: Window

    @cached_property
    def result(self) -> Operand:
        return Operand("result", self.window.output_shape(self.operand.shape), self.operand.dtype)

    @property
    def _pairs(self) -> Pairs:
        return tuple((d.padding_low, d.padding_high) for d in self.window.dimensions)

    @property
    def _strides(self) -> tuple[int, ...]:
        return tuple(d.stride for d in self.window.dimensions)

    @property
    def _base_dilations(self) -> tuple[int, ...]:
        return tuple(d.base_dilation for d in self.window.dimensions)

    @property
    def _window_dilations(self) -> tuple[int, ...]:
        return tuple(d.window_dilation for d in self.window.dimensions)

    @property
    def padded_shape(self) -> Shape:
        """The array with its holes and its padding."""
        rows = zip(self.window.dimensions, self.operand.shape, strict=True)
        return tuple(max(0, dimension.padded_size(size)) for dimension, size in rows)

    @property
    def headline(self) -> str:
        parts = [f"window {self.window.sizes}", f"strides {self._strides}"]
        parts += [f"padding {self._pairs}"] if any(map(any, self._pairs)) else []
        ones = (1,) * len(self._strides)
        parts += [f"base dilation {self._base_dilations}"] if self._base_dilations != ones else []
        parts += [f"window dilation {self._window_dilations}"] if self._window_dilations != ones else []
        return f"{self.op} over {self.operand.name}: {self.operand.label}, {', '.join(parts)}   ->  {self.result.label}"

    def problems(self) -> tuple[str, ...]:
        lines = []
        for axis, (dimension, size) in enumerate(
            zip(self.window.dimensions, self.operand.shape, strict=True)
        ):
            if not dimension.output_size(size):
                padded = max(0, dimension.padded_size(size))
                extent = dimension.dilated_size
                why = f"no window fits, as it covers {extent} and there are {padded} with padding"
                lines.append(f"axis {axis}: {why}; the result is empty")
        return tuple(lines)

    def fixes(self) -> tuple[Suggestion, ...]:
        """The padding that keeps the size, where another one is there."""
        if not self._strides or self._base_dilations != (1,) * len(self._strides):
            return ()
        extents = [dimension.dilated_size for dimension in self.window.dimensions]
        shown = []
        for name in ("VALID", "SAME"):
            pairs = named_padding("explain_window", name, self.operand.shape, extents, self._strides)
            if pairs != self._pairs:
                other = WindowsExplanation(self.op, self.operand, _repad(self.window, pairs))
                shown.append(Suggestion(f'padding="{name}"', None, other.result.label))
        return tuple(shown)

    def table(self) -> tuple[tuple[Cell, ...], ...]:
        dimensions, sizes = self.window.dimensions, self.operand.shape
        if not sizes:
            return ()
        rows: list[tuple[str, list[str]]] = [("axis", [str(axis) for axis in range(len(sizes))])]
        rows.append((self.operand.name, [str(size) for size in sizes]))
        if any(d.base_dilation > 1 for d in dimensions):
            own = zip(dimensions, sizes, strict=True)
            rows.append(("with holes", [str(dilate_size(size, d.base_dilation)) for d, size in own]))
        if any(map(any, self._pairs)):
            every = zip(dimensions, sizes, self.padded_shape, strict=True)
            rows.append(("padded", [_sum_of_padding(d, size, n) for d, size, n in every]))
        rows.append(("window", [_extent(d) for d in dimensions]))
        rows.append(("stride", [str(d.stride) for d in dimensions]))
        rows.append(("result", [str(size) for size in self.result.shape]))
        rows.append(("how", [_formula(d, size) for d, size in zip(dimensions, sizes, strict=True)]))
        rows.append(("never read", [str(n) for n in self._unread()]))
        return tuple((Cell(label), *map(Cell, cells)) for label, cells in rows)

    def _unread(self) -> list[int]:
        """The positions of the padded array at its end that no window reaches, per axis."""
        rows = zip(self.window.dimensions, self.padded_shape, self.result.shape, strict=True)
        return [n - ((count - 1) * d.stride + d.dilated_size) if count else n for d, n, count in rows]

    @property
    def loop(self) -> str:
        """The loop nest, as Python over the operand, the weights `w` of a convolution, and `result`."""
        _, first, step = _OPS[self.op]
        rank = len(self.operand.shape)
        outer, inner, at = ([f"{letter}{axis}" for axis in range(rank)] for letter in "owp")
        lines, indent = [f"result[...] = {first}"], ""
        for name, size in (
            *zip(outer, self.result.shape, strict=True),
            *zip(inner, self.window.sizes, strict=True),
        ):
            lines.append(f"{indent}for {name} in range({size}):")
            indent += "    "
        conditions = []
        for axis, dimension in enumerate(self.window.dimensions):
            lines.append(f"{indent}p{axis} = {_position(dimension, outer[axis], inner[axis])}")
            conditions += _conditions(dimension, f"p{axis}", self.operand.shape[axis])
            at[axis] += f" // {dimension.base_dilation}" if dimension.base_dilation > 1 else ""
        if conditions:
            lines.append(f"{indent}if {' and '.join(conditions)}:")
            indent += "    "
        target, source, weight = (f"[{', '.join(each) or '()'}]" for each in (outer, at, inner))
        return "\n".join(
            [*lines, indent + step.format(f"result{target}", f"{self.operand.reference}{source}", weight)]
        )

    @property
    def numpy(self) -> str:
        """The windows as a view of the padded array, and the result, in NumPy."""
        function, first, _ = _OPS[self.op]
        value = {"-inf": "-np.inf", "inf": "np.inf"}.get(first, first)
        rank, name = len(self.operand.shape), self.operand.reference
        low = tuple((max(0, a), max(0, b)) for a, b in self._pairs)
        lines = []
        if any(n > 1 for n in self._base_dilations):
            holes = tuple(
                dilate_size(n, d) for n, d in zip(self.operand.shape, self._base_dilations, strict=True)
            )
            lines += [
                f"spread = np.full({holes}, {value})",
                f"spread[{_steps(self._base_dilations)}] = {name}",
            ]
            name = "spread"
        if any(a < 0 or b < 0 for a, b in self._pairs):
            cuts = ", ".join(
                f"{max(0, -a)}:{name}.shape[{n}]{min(0, b) or ''}" for n, (a, b) in enumerate(self._pairs)
            )
            lines.append(f"cut = {name}[{cuts}]")
            name = "cut"
        if any(map(any, low)):
            lines.append(f"padded = np.pad({name}, {low}, constant_values={value})")
            name = "padded"
        extents = tuple(d.dilated_size for d in self.window.dimensions)
        steps = f"{_steps(self._strides)}, {_steps(self._window_dilations)}"
        lines.append(f"windows = np.lib.stride_tricks.sliding_window_view({name}, {extents})[{steps}]")
        weighed = "(windows * w)" if self.op == "conv" else "windows"
        return "\n".join([*lines, f"result = {weighed}.{function}(axis={tuple(range(-rank, 0))})"])

    def codes(self) -> tuple[Listing, ...]:
        made = [Listing("loop", self.loop)]
        if not self.problems() and self.operand.shape:
            made.append(Listing("NumPy", self.numpy))
        return (*made, *self._explicit())

    def _explicit(self) -> list[Listing]:
        name, rank = self.operand.name, len(self.operand.shape)
        options = (self._strides, self._pairs, self._base_dilations, self._window_dilations)
        if self.op != "conv":
            value, by = _COMBINERS[self.op]
            whole = Operand(
                name, self.operand.shape, self.operand.dtype if _is_float(self.operand.dtype) else "f64"
            )
            return programs(
                lambda x: lax.reduce_window(x, value, by, self.window.sizes, *options), [whole], [name]
            )

        def convolve(x: Any, w: Any) -> Any:
            image, weights = (lax.expand_dims(each, (0, 1)) for each in (x, w))
            return lax.squeeze(lax.conv_general_dilated(image, weights, *options), (0, 1))

        weights = Operand("w", self.window.sizes, self.operand.dtype)
        return programs(convolve, [self.operand, weights], [name, "w"]) if rank else []

    def notes(self) -> tuple[tuple[str, str], ...]:
        each = pluralize(self.window.size, "element")
        reads = f"each window has {each}; {pluralize(self.result.size, 'window')}"
        return (("reads", reads), ("memory", list_memory((self.operand, self.result))))

    def facts(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "operand": self.operand.to_dict(),
            "window": list(self.window.sizes),
            "strides": list(self._strides),
            "padding": [list(pair) for pair in self._pairs],
            "base_dilation": list(self._base_dilations),
            "window_dilation": list(self._window_dilations),
            "padded": list(self.padded_shape),
            "result": list(self.result.shape),
            "never_read": self._unread(),
            "loop": self.loop,
            "problems": list(self.problems()),
        }

    # --- steps and picture --------------------------------------------------------------------------

    def steps(self) -> tuple[PictureStep, ...]:
        """The array, what is put around and between its elements, windows at three positions, and what they become."""
        if self.problems() or 0 in self.padded_shape:
            return ()
        outside = [key_of(0, i) for i in indices_in(self.padded_shape) if self._source(i) is None]
        steps = [self._position_step(which, index) for which, index in self._positions().items()]
        end = tuple(self._positions().values())[-1]
        drawn, shown = [key_of("r", i) for i in indices_in(self.result.shape)], {s.shows[0] for s in steps}
        becomes = PictureStep(
            self.op if self.op != "conv" else "weigh and add",
            f"{pluralize(self.result.size, 'window')}, each becomes one element of the result",
            f"{write_element('result', end)} = {self._formula(end)}",
            tuple(key for key in drawn if key not in shown),
            (key_of("r", end), *self._keys(end)),
        )
        negative = [(max(0, -low), max(0, -high)) for low, high in self._pairs]
        cut = f"; padding below 0 cuts off {_sides(negative)}" if any(map(any, negative)) else ""
        array = PictureStep("array", f"{pluralize(self.operand.size, 'element')}, {self.operand.label}{cut}")
        around = PictureStep("padding", self._padding_words(), shows=tuple(outside), lights=tuple(outside))
        return (array, *([around] if outside else []), *steps, becomes)

    def _positions(self) -> dict[str, Shape]:
        """Windows that are shown: the first, the next along the last axis that has several, the last."""
        shape = self.result.shape
        last = tuple(size - 1 for size in shape)
        along = max((axis for axis, at in enumerate(last) if at), default=0)
        step = tuple(int(axis == along) for axis in range(len(shape)))
        positions = {"first window": (0,) * len(shape), "next window": step, "last window": last}
        kept: dict[str, Shape] = {}
        for which, index in positions.items():
            if index not in kept.values() and all(at <= most for at, most in zip(index, last, strict=True)):
                kept[which] = index
        return kept

    def _position_step(self, which: str, index: Shape) -> PictureStep:
        """A window: the positions that it covers, how many of them are no elements, and how it came there."""
        inside = prod(len(elements) for elements, _ in self._elements_in(index))
        outside = self.window.size - inside
        holes = " with its holes" if any(n > 1 for n in self._base_dilations) else ""
        words = [f"{self._span_words(index)} of {self.operand.name}{holes}"]
        words += [f"{outside} of its {self.window.size} positions are padding or holes"] if outside else []
        if which == "first window" and any(n > 1 for n in self._window_dilations):
            words.append(f"its elements are {_by_axes(self._window_dilations)} apart")
        if which == "next window":
            words.append(f"strides are {_by_axes(self._strides)}")
        unread = self._unread()
        if which == "last window" and any(unread):
            ends = list_words([f"{n} at the end of axis {axis}" for axis, n in enumerate(unread) if n])
            words.append(f"{ends} {'is' if sum(unread) == 1 else 'are'} never read")
        own = key_of("r", index)
        return PictureStep(which, "; ".join(words), "", (own,), (own, *self._keys(index)))

    def _span_words(self, index: Shape) -> str:
        """The positions that a window covers along each axis, counted from the array's first element."""
        spans = []
        for d, at in zip(self.window.dimensions, index, strict=True):
            first = at * d.stride - d.padding_low
            last = first + d.dilated_size - 1
            spans.append(str(first) if first == last else f"{first} to {last}")
        element = write_element("result", index)
        position = "positions" if any(d.dilated_size > 1 for d in self.window.dimensions) else "position"
        return f"{element} reads {f'{position} ' + ' × '.join(spans) if spans else 'the element'}"

    def _padding_words(self) -> str:
        """The padding and the holes in words, and what they count as."""
        words = []
        holes = [n - 1 for n in self._base_dilations]
        if any(holes):
            words.append(f"holes between neighbours: {_by_axes(holes)}")
        if any(n > 0 for pair in self._pairs for n in pair):
            words.append(f"around them: {_sides([(max(0, low), max(0, high)) for low, high in self._pairs])}")
        return f"{'; '.join(words)}; they count as {_NEUTRAL[self.op]}, which changes nothing"

    def _elements_in(self, index: Shape) -> list[tuple[range, range]]:
        """Along each axis the elements of the array that a window reads, and their positions in the window."""
        rows = zip(self.window.dimensions, index, self.operand.shape, strict=True)
        return [elements_read(d, at * d.stride - d.padding_low, size) for d, at, size in rows]

    def _formula(self, index: Shape) -> str:
        """An element of the result, as an expression of the elements in its window."""
        axes = self._elements_in(index)
        sizes = [len(elements) for elements, _ in axes]

        def term(number: int) -> str:
            own = zip(axes, unravel(number, sizes), strict=True)
            pairs = [(elements[at], positions[at]) for (elements, positions), at in own]
            read = write_element(self.operand.name, [element for element, _ in pairs])
            return read if self.op != "conv" else f"{read} * {write_element('w', [n for _, n in pairs])}"

        count, first = prod(sizes), _OPS[self.op][1]
        if not count:
            return first
        sign = {"prod": " * ", "sum": " + ", "conv": " + "}.get(self.op, ", ")
        terms = join_terms(count, term, sign)
        return terms if sign != ", " or count == 1 else f"{self.op}({terms})"

    def _keys(self, index: Shape) -> list[str]:
        return [key_of(0, cell) for cell in self._cells(index)]

    def _source(self, index: Shape) -> Shape | None:
        """The element of the array at an index of the padded one; None in padding and in holes."""
        at = []
        for dimension, position, size in zip(self.window.dimensions, index, self.operand.shape, strict=True):
            element, hole = divmod(position - dimension.padding_low, dimension.base_dilation)
            if hole or not 0 <= element < size:
                return None
            at.append(element)
        return tuple(at)

    def _cells(self, index: Shape) -> list[Shape]:
        """The positions in the padded array that a window covers, of those that are drawn."""
        axes = [
            range(at * d.stride, at * d.stride + d.dilated_size, d.window_dilation)
            for d, at in zip(self.window.dimensions, index, strict=True)
        ]
        return [
            cell
            for cell in indices_in(self.padded_shape)
            if all(at in axis for at, axis in zip(cell, axes, strict=True))
        ]

    def draw(self, canvas: Canvas, top: float) -> float:
        result, shown = self.result, list(self._positions().values())[:2] if self.result.size else []
        coloured: dict[Shape, int] = {}
        for number, index in enumerate(shown):
            for cell in self._cells(index):
                coloured[cell] = 2 if cell in coloured else number

        def padded_cell(index: Shape) -> GridCell:
            source = self._source(index)
            text = "" if source is None else ",".join(map(str, source)) or "()"
            title = "padding or a hole" if source is None else f"{self.operand.reference}{list(source)}"
            style = "v" if source is None else "c"
            style += f" o{coloured[index] % COLOURS}" if index in coloured else ""
            return GridCell(text, style, title, key_of(0, index))

        def total(index: Shape) -> GridCell:
            keys = self._keys(index)[:16]
            number = shown.index(index) if index in shown else None
            style = "c" if number is None else f"c o{number % COLOURS}"
            return GridCell(_text(index), style, f"result{list(index)}", key_of("r", index), keys)

        width = width_for([_text(tuple(max(0, n - 1) for n in self.operand.shape))])
        caption = (
            f"{self.operand.label}, padded to {self.padded_shape}"
            if self.padded_shape != self.operand.shape
            else self.operand.label
        )
        grids = (
            CellGrid(self.operand.name, caption, self.padded_shape, padded_cell, width),
            f"{self.op} \N{RIGHTWARDS ARROW}",
            CellGrid("result", result.label, result.shape, total, width),
        )
        bottom = draw_row(canvas, grids, top, MARGIN)
        words = "two windows are coloured" + (
            ", and the cells that both read" if 2 in coloured.values() else ""
        )
        words += "; dashed cells are padding or holes" if self.padded_shape != self.operand.shape else ""
        canvas.text(MARGIN, bottom + 10, words if result.size else "no window fits", "d")
        return bottom + 18


def elements_read(dimension: WindowDimension, start: int, size: int) -> tuple[range, range]:
    """The elements that a window at a position reads along one axis, and their positions in the window.

    Both are evenly spaced: every so many positions of the window meet an element, and no hole.
    """
    holes, apart = dimension.base_dilation, dimension.window_dilation
    common = gcd(holes, apart)
    if start % common:
        return range(0), range(0)
    period = holes // common
    met = -(start // common) * pow(apart // common, -1, period) % period
    first = max(0, -(start // apart))
    first += (met - first) % period
    positions = range(first, min(dimension.size, ((size - 1) * holes - start) // apart + 1), period)
    lowest, step = (start + first * apart) // holes, period * apart // holes
    return range(lowest, lowest + len(positions) * step, step), positions


def _by_axes(facts: Sequence[int | str]) -> str:
    """A fact that holds along every axis, or one for each."""
    if len(set(facts)) == 1:
        return str(facts[0])
    return list_words([f"{fact} along axis {axis}" for axis, fact in enumerate(facts)])


def _sides(pairs: Pairs | list[tuple[int, int]]) -> str:
    """Counts before and after an array along its axes."""
    return _by_axes([f"{low} before and {high} after" for low, high in pairs])


def _is_float(dtype: str | None) -> bool:
    return dtype is not None and dtype[:1] in ("f", "b") and dtype != "bool"


def _text(index: Shape) -> str:
    return ",".join(map(str, index)) or "()"


def _sum_of_padding(dimension: WindowDimension, size: int, padded: int) -> str:
    """The sum of both paddings and what lies between."""
    own = dilate_size(size, dimension.base_dilation)
    return f"{dimension.padding_low} + {own} + {dimension.padding_high} = {padded}"


def _extent(dimension: WindowDimension) -> str:
    if dimension.window_dilation == 1:
        return str(dimension.size)
    return f"{dimension.size}, {dimension.window_dilation} apart: covers {dimension.dilated_size}"


def _formula(dimension: WindowDimension, size: int) -> str:
    """The arithmetic of the number of windows along one axis."""
    padded, extent = max(0, dimension.padded_size(size)), dimension.dilated_size
    if not dimension.output_size(size):
        return f"{extent} > {padded}"
    return f"({padded} - {extent}) // {dimension.stride} + 1"


def _position(dimension: WindowDimension, window: str, element: str) -> str:
    """The position of an element of a window, counted from the array's first element."""
    start = window if dimension.stride == 1 else f"{window} * {dimension.stride}"
    step = element if dimension.window_dilation == 1 else f"{element} * {dimension.window_dilation}"
    low = dimension.padding_low
    return f"{start} + {step}" + (f" - {low}" if low > 0 else f" + {-low}" if low else "")


def _conditions(dimension: WindowDimension, name: str, size: int) -> list[str]:
    """When a position is one of the array's elements; none where it always is."""
    if dimension.base_dilation > 1:
        return [
            f"{name} % {dimension.base_dilation} == 0",
            f"0 <= {name} // {dimension.base_dilation} < {size}",
        ]
    return [f"0 <= {name} < {size}"] if dimension.padding_low > 0 or dimension.padding_high > 0 else []


def _steps(steps: Sequence[int]) -> str:
    return ", ".join("::" + (str(step) if step > 1 else "") if step > 1 else ":" for step in steps)


def _repad(window: Window, pairs: Pairs) -> Window:
    rows = zip(window.dimensions, pairs, strict=True)
    return Window(
        tuple(
            WindowDimension(d.size, d.stride, low, high, d.base_dilation, d.window_dilation)
            for d, (low, high) in rows
        )
    )


def explain_window(
    x: Any,
    window: Sequence[int] | int,
    strides: Sequence[int] | int = 1,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | int = 1,
    window_dilation: Sequence[int] | int = 1,
    op: str = "max",
    name: str = "x",
) -> WindowsExplanation:
    """Explain windows that slide over an array, as in pooling (`lax.reduce_window`) and in convolutions.

    x: an array, or a shape as a tuple of ints or as text such as "f32[8,8]"; of a convolution the spatial axes alone.
    window: the window's shape; an int stands for each axis, here and below.  strides: from window to window.
    padding: "VALID", "SAME", "SAME_LOWER", or one pair (low, high) for each axis; negative ones cut off.
    base_dilation: from element to element of x, with holes between.  window_dilation: of the window.
    op: max, min, sum or prod of each window, or conv, a sum weighed by `w` of the window's shape.

    Raises InputError and ShapeError for arguments that are malformed; windows that fit nowhere are no error here.
    """
    op = choose("explain_window", "op", op, WINDOW_OPS)
    operand = read("explain_window", name, x)
    rank = len(operand.shape)
    sizes, steps, holes, apart = (
        _entries(what, each, rank)
        for what, each in (
            ("window", window),
            ("strides", strides),
            ("base_dilation", base_dilation),
            ("window_dilation", window_dilation),
        )
    )
    if isinstance(padding, str):
        extents = [dilate_size(size, step) for size, step in zip(sizes, apart, strict=True)]
        pairs = named_padding("explain_window", padding, operand.shape, extents, steps)
    else:
        pairs = _pairs(padding, rank)
    view = Window.of(sizes, steps, pairs, holes, apart)
    largest = max(map(find_largest_extent, view.dimensions, operand.shape), default=0)
    if largest > LARGEST:
        raise ShapeError(
            f"explain_window: wanted windows and padded sizes that fit in 64 bits, got {largest:,}"
        )
    return WindowsExplanation(op, operand, view)


def _entries(what: str, entries: Any, rank: int) -> tuple[int, ...]:
    """One positive int for each axis."""
    listed = (
        (entries,) * rank
        if isinstance(entries, int)
        else tuple(entries)
        if isinstance(entries, list | tuple)
        else ()
    )
    if len(listed) != rank or not all(isinstance(each, int) and each > 0 for each in listed):
        raise ShapeError(
            f"explain_window: wanted a positive int, or {rank} of them, for {what}, got {entries!r}"
        )
    return listed


def _pairs(padding: Any, rank: int) -> Pairs:
    """One pair for each axis; an int stands for itself on both sides of each."""
    listed = ((padding, padding),) * rank if isinstance(padding, int) else padding
    try:
        pairs = tuple((int(low), int(high)) for low, high in listed)
    except (TypeError, ValueError):
        pairs = ()
    if len(pairs) != rank:
        raise ShapeError(
            f"explain_window: wanted {rank} pairs (low, high) of padding, one for each axis, or a name such as "
            f'"SAME", got {padding!r}'
        )
    return pairs
