"""Explanations of gathers and scatters: what each dimension is for, the way of a window, the loops, and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from math import prod
from typing import Any

import numpy as np

from xarr.errors import ShapeError
from xarr.explainers.gathers.gather_svg import (
    DRAWN_WINDOWS,
    drawn_block,
    is_drawn,
    render_windows,
    vector_key,
    window_key,
)
from xarr.explainers.gathers.window_starts import Placement, block_of, count_windows, placements, slice_of
from xarr.explanation.broadcast_code import list_words
from xarr.explanation.folds import PageFold
from xarr.explanation.grids import key_of
from xarr.explanation.html import Displayed, fold_fragment, sections
from xarr.explanation.steps import PictureStep, render_steps, step_block
from xarr.ir.ops.indexing import Windows
from xarr.ir.types import Ints


@dataclass(frozen=True, repr=False)
class WindowExplanation(Displayed):
    """The work of one gather or scatter: one object, several views.

    `str(e)` or `e.text()`, which lists the windows of known indices; `e.loops` is Python that computes it
    element by element; `e.svg()` draws operands of rank 2 or less; notebooks show `e.html()`; `e.to_dict()` is data.
    `combine` is how a scatter combines an element with an update, as a format string.
    """

    op: str
    indices_shape: Ints
    windows: Windows
    starts: Any = field(default=None, compare=False, repr=False)
    combine: str = "{0} = f({0}, {1})"

    @property
    def fits(self) -> bool:
        """True: what does not run is refused before."""
        return True

    @property
    def is_gather(self) -> bool:
        return self.op == "gather"

    @property
    def indices_name(self) -> str:
        """The op's name of its indices."""
        return "start_indices" if self.is_gather else "scatter_indices"

    @property
    def windowed_name(self) -> str:
        """The op's name of the array that holds the windows."""
        return "result" if self.is_gather else "updates"

    @property
    def loops(self) -> str:
        """The loop nest: Python over `operand`, the indices, `result` or `updates`, and `f` if it is not known."""
        return "\n".join(_loops(self)) + "\n"

    def steps(self) -> tuple[PictureStep, ...]:
        """The way of one window, from its index to where it lands, and of all."""
        return tuple(_steps(self))

    def text(self) -> str:
        """Plain text: the shapes, what each dimension is for, the steps, the loops."""
        return "\n".join(
            [
                *_headline(self),
                "",
                *_windowed_dimensions(self),
                "",
                *_operand_dimensions(self),
                "",
                *_moves(self),
                *step_block(self.steps()),
                self.loops,
            ]
        )

    def html(self) -> str:
        """A self-contained HTML fragment: the picture of operands of rank 2 or less, the dimensions, the loops."""
        head, *rest = _headline(self)
        steps = self.steps()
        picture = self._draw(steps, words=False) if is_drawn(self.windows) else ""
        about = [*_windowed_dimensions(self), "", *_operand_dimensions(self)]
        codes = [("Dimensions", "\n".join(about)), ("Loop", self.loops.rstrip())]
        moves = "\n".join(_moves(self)).rstrip()
        codes += [("Windows", moves)] if moves else []

        def body(fold: PageFold) -> str:
            lines = (f"<p>{escape(fold.text(line))}</p>" for line in rest)
            drawn = render_steps(fold.picture(picture), fold.steps(steps))
            title = f"<p><code>{escape(fold.text(head))}</code></p>"
            return "\n".join([title, *lines, drawn, sections(codes, fold)])

        return fold_fragment(body, "text(), svg(), loops and to_dict() have it.")

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data that `json.dumps` accepts."""
        windows = self.windows
        return {
            "op": self.op,
            "operand": list(windows.operand_shape),
            "indices": list(self.indices_shape),
            "windows": list(windows.batch_shape),
            "window": list(windows.sizes),
            self.windowed_name: list(windows.windowed_shape),
            "batch_dims": list(windows.batch_dims),
            "window_dims": list(windows.window_dims),
            "index_map": list(windows.index_map),
            "starts": None if self.starts is None else np.asarray(self.starts).tolist(),
            "loop": self.loops,
            "steps": [asdict(step) for step in self.steps()],
        }

    def svg(self) -> str:
        """A self-contained SVG picture; ShapeError for operands of more than 2 dimensions."""
        if not is_drawn(self.windows):
            raise ShapeError(
                f"explain_{self.op}: wanted an operand of at most 2 dimensions to draw, got shape "
                f"{self.windows.operand_shape}; text() and loops show the same"
            )
        return self._draw(self.steps())

    def _draw(self, steps: Sequence[PictureStep], words: bool = True) -> str:
        return render_windows(self.windows, self.is_gather, self.starts, steps, words)

    def _repr_svg_(self) -> str | None:
        return self.svg() if is_drawn(self.windows) else None


# --- text --------------------------------------------------------------------------------------------


def _headline(explanation: WindowExplanation) -> Iterator[str]:
    windows, count = explanation.windows, prod(explanation.windows.batch_shape)
    many = (
        f"{count} window of {windows.sizes} is" if count == 1 else f"{count} windows of {windows.sizes} are"
    )
    one = (
        "one for each index vector"
        if windows.index_vector_dim < len(explanation.indices_shape)
        else "one for each index"
    )
    if explanation.is_gather:
        yield (
            f"gather: operand {windows.operand_shape}, start_indices {explanation.indices_shape} "
            f"-> result {windows.windowed_shape}"
        )
        yield f"{many} read, {one}; starts are clamped so that windows fit"
    else:
        yield (
            f"scatter: operand {windows.operand_shape}, scatter_indices {explanation.indices_shape}, "
            f"updates {windows.windowed_shape} -> result {windows.operand_shape}"
        )
        yield f"{many} written in this order, {one}; a window that does not fit is left out"


def _windowed_dimensions(explanation: WindowExplanation) -> Iterator[str]:
    windows = explanation.windows
    yield f"dimensions of the {explanation.windowed_name}:"
    for dim, size in enumerate(windows.windowed_shape):
        if dim in windows.window_dims:
            own = windows.kept_dims[windows.window_dims.index(dim)]
            word = "offset" if explanation.is_gather else "window"
            yield f"  {dim}  size {size:<4} {word:<8} runs over the window in operand dimension {own}"
        else:
            position = windows.batch_dims.index(dim)
            along = _indices_dim(windows, position)
            yield f"  {dim}  size {size:<4} {'batch':<8} runs over {explanation.indices_name} dimension {along}"


def _indices_dim(windows: Windows, position: int) -> int:
    return position + (position >= windows.index_vector_dim)


def _operand_dimensions(explanation: WindowExplanation) -> Iterator[str]:
    windows, batching = explanation.windows, dict(explanation.windows.batching)
    yield "dimensions of the operand:"
    for dim, (size, window) in enumerate(zip(windows.operand_shape, windows.sizes, strict=True)):
        if dim in batching:
            kind, start = (
                "batching",
                f"runs along with {explanation.indices_name} dimension {_indices_dim(windows, batching[dim])}",
            )
        else:
            left_out = "collapsed" if explanation.is_gather else "inserted"
            kind = "window" if dim in windows.kept_dims else left_out
            start = _start_words(explanation, dim)
        yield f"  {dim}  size {size:<4} window {window:<4} {kind:<9} {start}"


def _start_words(explanation: WindowExplanation, dim: int) -> str:
    if dim not in explanation.windows.index_map:
        return "starts at 0"
    component = explanation.windows.index_map.index(dim)
    if explanation.windows.index_vector_dim == len(explanation.indices_shape):
        return "starts at the index"
    return f"starts at component {component} of the index vector"


#: More windows than these are not listed.
_LISTED = 12


def _moves(explanation: WindowExplanation) -> Iterator[str]:
    """Which elements go where, for indices that are known; what is out of bounds is marked."""
    if explanation.starts is None:
        return
    windows, count = explanation.windows, prod(explanation.windows.batch_shape)
    yield "with these indices:"
    for placement in placements(windows, explanation.is_gather, explanation.starts, _LISTED):
        own = f"{explanation.windowed_name}{slice_of(windows, placement.batch)}"
        asked = f"start {list(placement.asked)} is out of bounds"
        if placement.start is None:
            yield f"  {own} is left out: {asked}"
        else:
            block = block_of(windows, placement.start)
            way = f"{own} <- operand{block}" if explanation.is_gather else f"{own} -> result{block}"
            yield f"  {way}{f': {asked}, clamped' if placement.is_moved else ''}"
    if count > _LISTED:
        yield f"  and {count - _LISTED} more"
    yield ""


# --- steps -------------------------------------------------------------------------------------------


def _steps(explanation: WindowExplanation) -> Iterator[PictureStep]:
    windows, is_gather = explanation.windows, explanation.is_gather
    placed = list(placements(windows, is_gather, explanation.starts, DRAWN_WINDOWS))
    if not placed:
        return
    number = _example(placed, is_gather)
    own, vector = placed[number], (vector_key(number),)
    part = f"{explanation.windowed_name}{slice_of(windows, own.batch)}"
    yield PictureStep("index", _index_words(explanation, own, part), lights=vector)
    yield PictureStep("bounds", _bounds_words(windows, placed, number, is_gather), lights=vector)
    if own.start is not None:
        yield from _block_steps(explanation, own.start, part, window_key(number))
    if prod(windows.batch_shape) > 1:
        others = [window_key(n) for n in range(len(placed)) if n != number] if is_gather else []
        yield PictureStep("every window", count_windows(windows, placed, is_gather), shows=tuple(others))


def _block_steps(explanation: WindowExplanation, start: Ints, part: str, key: str) -> Iterator[PictureStep]:
    """The elements that are read and where they land, or those that are written and what that does."""
    windows, block = explanation.windows, block_of(explanation.windows, start)
    cells = tuple(key_of(0, element) for element in drawn_block(windows, start))
    if 0 in windows.sizes:
        yield PictureStep(
            "window", f"a window of {windows.sizes} has no elements", shows=(key,), lights=(key,)
        )
    elif explanation.is_gather:
        yield PictureStep("slice", f"the window of {windows.sizes} there is operand{block}", lights=cells)
        yield PictureStep("result", f"it becomes {part}", f"{part} = operand{block}", (key,), (key,))
    else:
        yield PictureStep("update", f"{part} is the window that goes there", lights=(key,))
        combined = explanation.combine.format(f"result{block}", part)
        yield PictureStep("result", f"it is written to result{block}", combined, lights=cells)


def _example(placed: Sequence[Placement], is_gather: bool) -> int:
    """The window that is shown: of a gather one that is moved, if there is one, of a scatter one that is written."""
    numbers = range(len(placed))
    wanted = [n for n in numbers if placed[n].is_moved == is_gather]
    return wanted[0] if wanted else min(1, len(placed) - 1)


def _index_words(explanation: WindowExplanation, own: Placement, part: str) -> str:
    """The index vector of a window, and the start that it asks for."""
    windows = explanation.windows
    if not windows.index_map:
        return f"no index says where {part} starts: {list(own.asked)}"
    batch, at = list(map(str, own.batch)), windows.index_vector_dim
    is_vector = at < len(explanation.indices_shape)
    vector = _index([*batch[:at], ":", *batch[at:]] if is_vector else batch)
    components = [own.asked[dim] for dim in windows.index_map]
    known = "" if explanation.starts is not None else ", for example,"
    told = list_words(
        [f"{value} along dimension {d}" for value, d in zip(components, windows.index_map, strict=True)]
    )
    value = components if is_vector else components[0]
    return f"{explanation.indices_name}{vector} is{known} {value}: the window of {part} starts at {told}"


def _bounds_words(windows: Windows, placed: Sequence[Placement], number: int, is_gather: bool) -> str:
    """The fate of starts at which a window does not fit."""
    own = placed[number]
    rows = zip(windows.operand_shape, windows.sizes, strict=True)
    last = [whole - size for whole, size in rows]
    fits = f"a window of {windows.sizes} fits at starts up to {last}"
    if is_gather:
        end = (
            f"{list(own.asked)} is clamped to {list(own.start or ())}"
            if own.is_moved
            else f"{list(own.asked)} stays"
        )
        return f"{fits}: {end}"
    missed = [str(list(each.asked)) for each in placed if each.start is None]
    if not missed:
        return f"{fits}: {list(own.asked)} does"
    return f"{fits}: {list_words(missed)} {'is' if len(missed) == 1 else 'are'} left out"


# --- loops -------------------------------------------------------------------------------------------


def _loops(explanation: WindowExplanation) -> Iterator[str]:
    windows, indent = explanation.windows, ""
    batch = [f"b{position}" for position in range(len(windows.batch_shape))]
    inner = [f"w{position}" for position in range(len(windows.kept_dims))]
    for name, size in zip(batch, windows.batch_shape, strict=True):
        yield f"{indent}for {name} in range({size}):"
        indent += "    "
    for component, (dim, last) in enumerate(zip(windows.index_map, windows.last_starts, strict=True)):
        value = f"{explanation.indices_name}{_index(_vector_index(explanation, batch, component))}"
        yield f"{indent}s{dim} = {f'min(max({value}, 0), {last})' if explanation.is_gather else value}"
    if not explanation.is_gather and (conditions := _conditions(windows)):
        yield f"{indent}if {' and '.join(conditions)}:"
        indent += "    "
    for name, size in zip(inner, windows.window_shape, strict=True):
        yield f"{indent}for {name} in range({size}):"
        indent += "    "
    yield f"{indent}{_assignment(explanation, batch, inner)}"


def _conditions(windows: Windows) -> list[str]:
    """When a window of a scatter fits; none where it always does."""
    bounds = [
        f"0 <= s{dim} <= {last}" for dim, last in zip(windows.index_map, windows.last_starts, strict=True)
    ]
    rows = enumerate(zip(windows.sizes, windows.operand_shape, strict=True))
    return bounds + [
        f"{size} <= {whole}" for dim, (size, whole) in rows if size > whole and dim not in windows.index_map
    ]


def _vector_index(explanation: WindowExplanation, batch: list[str], component: int) -> list[str]:
    at = explanation.windows.index_vector_dim
    return batch if at == len(explanation.indices_shape) else [*batch[:at], str(component), *batch[at:]]


def _assignment(explanation: WindowExplanation, batch: list[str], inner: list[str]) -> str:
    windows = explanation.windows
    element = []
    for dim in range(len(windows.operand_shape)):
        parts = [f"s{dim}"] if dim in windows.index_map else []
        parts += [batch[position] for own, position in windows.batching if own == dim]
        parts += [inner[windows.kept_dims.index(dim)]] if dim in windows.kept_dims else []
        element.append(" + ".join(parts) or "0")
    placed = dict(zip(windows.batch_dims, batch, strict=True)) | dict(
        zip(windows.window_dims, inner, strict=True)
    )
    windowed = _index([placed[dim] for dim in range(len(placed))])
    element_index = _index(element)
    if not explanation.is_gather:
        return explanation.combine.format(f"result{element_index}", f"updates{windowed}")
    return f"result{windowed} = {'0' if 0 in windows.sizes else f'operand{element_index}'}"


def _index(parts: Sequence[str]) -> str:
    return f"[{', '.join(parts) or '()'}]"
