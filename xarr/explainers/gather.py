"""`explain_gather` and `explain_scatter`: what each dimension is for, the loops, and a picture."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from math import prod
from typing import Any, Final, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from xarr import tree
from xarr.base.configuration import current as config
from xarr.errors import InputError, ShapeError
from xarr.explainers.gather_svg import DRAWN_WINDOWS, drawn_block, render_windows, vector_key, window_key
from xarr.explainers.window_starts import Placement, block_of, count_windows, placements, slice_of
from xarr.explanation.broadcast_code import list_words
from xarr.explanation.grids import key_of
from xarr.explanation.html import sections, wrap_fragment
from xarr.explanation.steps import PictureStep, render_steps, step_block
from xarr.ir.computations import scalars
from xarr.ir.graph import Graph, Node, postorder
from xarr.ir.ops import Gather, Scatter
from xarr.ir.ops.indexing import Windows
from xarr.ir.types import Ints, TensorType
from xarr.runtime.handles import Handle, wrap
from xarr.runtime.materialisation import to_host

_ELEMENT, _INDEX = np.dtype(np.float32), np.dtype(np.int64)


@dataclass(frozen=True)
class WindowExplanation:
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
        parts = [f"<p><code>{escape(head)}</code></p>", *(f"<p>{escape(line)}</p>" for line in rest)]
        steps = self.steps()
        parts.append(render_steps(self._draw(steps, words=False) if self._is_drawn else "", steps))
        about = [*_windowed_dimensions(self), "", *_operand_dimensions(self)]
        codes = [("Dimensions", "\n".join(about)), ("Loop", self.loops.rstrip())]
        moves = "\n".join(_moves(self)).rstrip()
        codes += [("Windows", moves)] if moves else []
        return wrap_fragment("\n".join([*parts, sections(codes)]), is_live=True)

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
        if not self._is_drawn:
            raise ShapeError(
                f"explain_{self.op}: wanted an operand of at most 2 dimensions to draw, got shape "
                f"{self.windows.operand_shape}; text() and loops show the same"
            )
        return self._draw(self.steps())

    @property
    def _is_drawn(self) -> bool:
        return len(self.windows.operand_shape) <= 2

    def _draw(self, steps: Sequence[PictureStep], words: bool = True) -> str:
        return render_windows(self.windows, self.is_gather, self.starts, steps, words)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html()

    def _repr_svg_(self) -> str | None:
        return self.svg() if self._is_drawn else None


def explain_gather(
    operand: Any,
    start_indices: Any = None,
    dimension_numbers: Any = None,
    slice_sizes: Sequence[SupportsIndex] | None = None,
    *,
    index_vector_dim: int | None = None,
    indices: ArrayLike | None = None,
) -> WindowExplanation:
    """Explain `lax.gather(operand, start_indices, dimension_numbers, slice_sizes)`.

    operand, start_indices: arrays, or shapes given as tuples or lists of ints.  The values of given indices
        are shown: which element goes where, and what is out of bounds.
    index_vector_dim: as in `lax.gather`, by default the last dimension of the indices.
    indices: values beside a shape of the indices; without any the picture shows an example.

    Of a function alone, as in `explain_gather(lambda: lax.take(x, i))`, or of an Array not yet evaluated, the gather in
    it is explained.

    Raises InputError for arguments of another kind and unless there is one gather, ShapeError [C1]-[C21] for
    numbers that do not fit.
    """
    if dimension_numbers is None and start_indices is None:
        return explain_node(_the_node("explain_gather", Gather, operand))
    names = (
        "offset_dims",
        "collapsed_slice_dims",
        "operand_batching_dims",
        "start_indices_batching_dims",
        "start_index_map",
    )
    offset, collapsed, batching, own_batching, index_map = _fields("explain_gather", dimension_numbers, names)
    whole, starts = (
        TensorType(_shape("explain_gather", shape), dtype)
        for shape, dtype in ((operand, _ELEMENT), (start_indices, _INDEX))
    )
    sizes = _integers("explain_gather", "slice_sizes", slice_sizes)
    vector_dim = _vector_dim(starts, index_vector_dim)
    op = Gather(offset, collapsed, batching, own_batching, index_map, vector_dim, sizes)
    op.infer(whole, starts)
    windows = op.windows(whole, starts)
    values = _values(start_indices) if indices is None else indices
    return WindowExplanation(
        "gather", starts.shape, windows, _vectors("explain_gather", windows, starts.shape, values)
    )


def explain_scatter(
    operand: Any,
    scatter_indices: Any = None,
    updates: Any = None,
    dimension_numbers: Any = None,
    *,
    index_vector_dim: int | None = None,
    indices: ArrayLike | None = None,
) -> WindowExplanation:
    """Explain a `lax.scatter…(operand, scatter_indices, updates, dimension_numbers)`.

    operand, scatter_indices, updates: arrays, or shapes given as tuples or lists of ints.  The values of given
        indices are shown: which element goes where, and what is left out.
    index_vector_dim: as in `lax.scatter`, by default the last dimension of the indices.
    indices: values beside a shape of the indices; without any the picture shows an example.

    Of a function alone, as in `explain_scatter(lambda: lax.segment_sum(x, i))`, or of an Array not yet evaluated, the
    scatter in it is explained.

    Raises InputError for arguments of another kind and unless there is one scatter, ShapeError [C1]-[C22] for
    numbers that do not fit.
    """
    if dimension_numbers is None and scatter_indices is None:
        return explain_node(_the_node("explain_scatter", Scatter, operand))
    names = (
        "update_window_dims",
        "inserted_window_dims",
        "operand_batching_dims",
        "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims",
    )
    window, inserted, batching, own_batching, index_map = _fields("explain_scatter", dimension_numbers, names)
    whole, starts, parts = (
        TensorType(_shape("explain_scatter", shape), dtype)
        for shape, dtype in ((operand, _ELEMENT), (scatter_indices, _INDEX), (updates, _ELEMENT))
    )
    old, new = scalars(_ELEMENT, _ELEMENT)
    vector_dim, replacing = _vector_dim(starts, index_vector_dim), Graph((old, new), [new])
    op = Scatter(window, inserted, batching, own_batching, index_map, vector_dim, replacing)
    op.infer(whole, starts, parts)
    windows = op.windows(whole, starts, parts)
    values = _values(scatter_indices) if indices is None else indices
    return WindowExplanation(
        "scatter", starts.shape, windows, _vectors("explain_scatter", windows, starts.shape, values)
    )


# --- arguments ---------------------------------------------------------------------------------------


def _the_node(name: str, kind: type[Gather | Scatter], what: Any) -> Node:
    """The one gather or scatter that a function, or an Array not yet evaluated, stands for."""
    if not callable(what) and not isinstance(what, Handle):
        raise InputError(
            f"{name}: wanted operand, indices and dimension numbers, or a function; got {what!r}"
        )
    with config(small_arrays="lazy"):  # what is computed knows no more how
        results = tree.flatten(what() if callable(what) else what)[0]
    nodes = [result._node for result in results if isinstance(result, Handle)]
    matches: list[Node] = [node for node in postorder(nodes) if isinstance(node.op, kind)]
    if len(matches) != 1:
        raise InputError(
            f"{name}: wanted one {kind.lax_name} to explain, got {len(matches)}; give a function that makes "
            "one, such as lambda: lax.take(x, i) (an evaluated Array no longer knows which op made it)"
        )
    return matches[0]


def explain_node(node: Node, evaluates: bool = True) -> WindowExplanation:
    """Explain the node of a gather or scatter; `evaluates` says whether indices are computed, to be shown."""
    op, types = node.op, [operand.tensor_type for operand in node.operands]
    assert isinstance(op, Gather | Scatter)
    if isinstance(op, Gather):
        windows, at = op.windows(types[0], types[1]), 1
    else:
        at = len(types) // 2
        windows = op.windows(types[0], types[at], types[at + 1])
    starts = node.operands[at]
    known = not starts.traced if evaluates else isinstance(starts.value, np.ndarray)
    values = np.asarray(to_host(wrap(starts))) if known else None
    name = "gather" if isinstance(op, Gather) else "scatter"
    vectors = _vectors(f"explain_{name}", windows, types[at].shape, values)
    explained = WindowExplanation(name, types[at].shape, windows, vectors)
    return replace(explained, combine=_combination(op)) if isinstance(op, Scatter) else explained


#: How Python writes what a scatter does with an element and its update, by the function of `xarr.lax`.
_COMBINATIONS: Final = {
    "add": "{0} += {1}",
    "sub": "{0} -= {1}",
    "mul": "{0} *= {1}",
    "max": "{0} = max({0}, {1})",
    "min": "{0} = min({0}, {1})",
}


def _combination(op: Scatter) -> str:
    """A template for combining an element of one array with an update: one operation where it is one, else `f`."""
    graph = op.update_computation
    if len(graph.results) == 1:
        result = graph.results[0]
        if result is graph.parameters[1]:
            return "{0} = {1}"
        if tuple(result.operands) == tuple(graph.parameters):
            return _COMBINATIONS.get(result.op.lax_name, WindowExplanation.combine)
    return WindowExplanation.combine


def _values(argument: Any) -> Any:
    """The values of indices that are an array, None of a shape and of what is being traced."""
    if isinstance(argument, Handle):
        return None if argument._node.traced else np.asarray(to_host(argument))
    return argument if isinstance(argument, np.ndarray) or _is_nested(argument) else None


def _is_nested(argument: Any) -> bool:
    """Whether it is a list of lists, which is an array, where a list of ints is a shape."""
    return isinstance(argument, list) and any(isinstance(entry, list) for entry in argument)


def _fields(name: str, numbers: Any, fields: tuple[str, ...]) -> list[Ints]:
    missing = [each for each in fields if not hasattr(numbers, each)]
    if missing:
        raise InputError(f"{name}: wanted dimension numbers of xarr.lax, got {numbers!r}, without {missing}")
    return [_integers(name, each, getattr(numbers, each)) for each in fields]


def _integers(name: str, what: str, values: Any) -> Ints:
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise InputError(f"{name}: wanted a sequence of ints for {what}, got {values!r}") from None


def _shape(name: str, sizes: Any) -> Ints:
    if isinstance(sizes, Handle | np.ndarray) or _is_nested(sizes):
        return sizes._node.tensor_type.shape if isinstance(sizes, Handle) else np.shape(sizes)
    shape = _integers(name, "a shape", sizes)
    if any(size < 0 for size in shape):
        raise ShapeError(f"wanted sizes of 0 or more, got the shape {shape}")
    return shape


def _vector_dim(indices: TensorType, index_vector_dim: int | None) -> int:
    if index_vector_dim is None and not indices.rank:
        raise ShapeError(
            "indices without dimensions have no index vectors; index_vector_dim=0 takes them as scalars"
        )
    return indices.rank - 1 if index_vector_dim is None else index_vector_dim


def _vectors(name: str, windows: Windows, shape: Ints, indices: ArrayLike | None) -> Any:
    """The index vectors as an array (windows, components), None if they are not known."""
    if indices is None:
        return None
    values = np.asarray(indices)
    if values.dtype.kind not in "iu" or values.shape != shape:
        raise InputError(
            f"{name}: wanted integer indices of shape {shape}, got {values.dtype} of {values.shape}"
        )
    if windows.index_vector_dim == values.ndim:
        return values.reshape(-1, 1)
    components = values.shape[windows.index_vector_dim]
    return np.moveaxis(values, windows.index_vector_dim, -1).reshape(prod(windows.batch_shape), components)


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
