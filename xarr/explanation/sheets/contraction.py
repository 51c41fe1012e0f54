"""Explanations of products such as `a @ b`: which axes meet, or why they do not; one object, all views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count
from math import prod
from typing import Any, Final, SupportsIndex

from xarr.base.broadcasting import Shape, as_dimensions
from xarr.base.canvas import CHARACTER, Canvas
from xarr.errors import BroadcastError, InputError, pluralize
from xarr.explanation.broadcast_code import Suggestion, list_memory
from xarr.explanation.broadcast_facts import Operand
from xarr.explanation.notation import term
from xarr.explanation.sheet import Cell, Listing, Sheet
from xarr.explanation.sheets.product_svg import ProductPicture, draw_product
from xarr.explanation.steps import PictureStep
from xarr.explanation.svg import CELL, MARGIN

PRODUCTS: Final = ("matmul", "dot", "inner", "vecdot")

_LETTERS: Final = "ijklmnpqrstuvwabcdefgh"
#: More pairs of axes than these are not listed.
_LISTED: Final = 8


@dataclass(frozen=True)
class _Column:
    """One index of the loops: the axis that it runs over in each operand and in the result, and what it is for."""

    letter: str
    axes: tuple[int | None, int | None]
    sizes: tuple[int | None, int | None]
    output: int | None
    is_batch: bool

    @property
    def size(self) -> int | None:
        """The number of values it takes; None if the sizes do not agree."""
        known = {size for size in self.sizes if size is not None}
        if self.is_batch and len(known) > 1:
            known.discard(1)
        return known.pop() if len(known) == 1 else None

    def how(self, names: Sequence[str]) -> str:
        """A word on the axis: contracted, kept, batch, or CLASH."""
        if self.size is None:
            return "CLASH"
        if not self.is_batch:
            return "contracted" if self.output is None else "kept"
        words = [
            f"{name}: {'new axis' if own is None else 'stretched axis'}"
            for name, own in zip(names, self.sizes, strict=True)
            if own != self.size
        ]
        return ", ".join(["batch", *words])


@dataclass(frozen=True, repr=False)
class ContractionExplanation(Sheet):
    """Which axes of two operands a product contracts, keeps and broadcasts, or why it does not run.

    One object, several views.  `pairs` are the contracted axes of both operands, `batch` is how many leading axes of
    the result broadcast, and `problem` says why the strictness in force refuses that.
    """

    op: str
    operands: tuple[Operand, Operand]
    pairs: tuple[tuple[int, int], ...]
    batch: int = 0
    problem: str | None = None

    @property
    def names(self) -> tuple[str, str]:
        return self.operands[0].name, self.operands[1].name

    @property
    def terms(self) -> tuple[str, str]:
        """The names as parts of an expression."""
        return term(self.names[0]), term(self.names[1])

    @property
    def expression(self) -> str:
        if self.op == "matmul":
            return " @ ".join(self.terms)
        left, right = ([pair[n] for pair in self.pairs] for n in (0, 1))
        axes = f", axes=({left}, {right})" if self.op == "tensordot" else ""
        return f"{self.op}({', '.join(self.terms)}{axes})"

    @cached_property
    def columns(self) -> tuple[_Column, ...]:
        """The indices: of batch axes, axes that the first operand keeps, contracted ones, those of the second."""
        return tuple(_columns(self))

    @property
    def clashes(self) -> tuple[_Column, ...]:
        return tuple(column for column in self.columns if column.size is None)

    @property
    def result(self) -> Operand | None:
        """The result; None if there is none."""
        if self.clashes:
            return None
        kept = sorted((c.output, c.size) for c in self.columns if c.output is not None and c.size is not None)
        dtypes = {operand.dtype for operand in self.operands}
        return Operand("result", tuple(size for _, size in kept), dtypes.pop() if len(dtypes) == 1 else None)

    def table(self) -> tuple[tuple[Cell, ...], ...]:
        return tuple(_rows(self))

    def codes(self) -> tuple[Listing, ...]:
        if self.result is None:
            return ()
        codes = [Listing("loop", loop_body(self))]
        if len({operand.dtype for operand in self.operands}) == 1:
            codes.append(Listing("explicit", "\n".join(explicit_ops(self))))
        summed = einsum(self)
        return (*codes, Listing("einsum", summed)) if summed is not None else tuple(codes)

    def notes(self) -> tuple[tuple[str, str], ...]:
        if self.result is None:
            return ()
        return (("work", _work(self)), ("memory", list_memory((*self.operands, self.result))))

    def problems(self) -> tuple[str, ...]:
        return tuple(problem_lines(self))

    def fixes(self) -> tuple[Suggestion, ...]:
        return suggestions(self) if self.clashes else ()

    @property
    def advice(self) -> str:
        return _ACCEPTED if not self.clashes else no_suggestion(self)

    def steps(self) -> tuple[PictureStep, ...]:
        if self.result is None or not self.fits:
            return ()
        return _picture(self, self.result).steps()

    def draw(self, canvas: Canvas, top: float) -> float:
        """The grids; where there is no result the table, with what clashes in red."""
        if self.result is None:
            return _draw_table(canvas, self, top)
        return draw_product(canvas, _picture(self, self.result), top)

    def facts(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "operands": [operand.to_dict() for operand in self.operands],
            "contracted": [list(pair) for pair in self.pairs],
            "batch": self.batch,
            "result": None if self.result is None else list(self.result.shape),
            "problem": "\n".join(problem_lines(self)) or None,
        }

    @property
    def headline(self) -> str:
        """`a @ b    a: f32[2,3]   b: f32[3]   ->  f32[2]`."""
        operands = "   ".join(f"{operand.name}: {operand.label}" for operand in self.operands)
        outcome = "does not multiply" if self.result is None else self.result.label
        outcome = outcome if self.problem is None else "refused"
        return f"{self.expression}    {operands}   ->  {outcome}"


class ExplainedProductError(BroadcastError):
    """A product of shapes that do not fit; its message is the explanation, kept in `explanation`."""

    explanation: ContractionExplanation


def explain_product(
    op: str,
    shapes: Sequence[Sequence[SupportsIndex]],
    names: Sequence[str] | None = None,
    dtypes: Sequence[str | None] | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> ContractionExplanation:
    """Explain matmul, dot, inner or vecdot of two shapes, or tensordot with the `pairs` of axes that it contracts.

    Shapes that do not fit are no error here: the explanation says why.  Raises InputError for another number of
    shapes, and for scalars, which have no axis to contract.
    """
    sizes = [as_dimensions(shape) for shape in shapes]
    if len(sizes) != 2 or not all(sizes):
        raise InputError(f"{op}: wanted two shapes of rank 1 or more, got {', '.join(map(str, sizes))}")
    called, typed = names or ("a", "b"), dtypes or (None, None)
    a, b = (Operand(n, s, d) for n, s, d in zip(called, sizes, typed, strict=True))
    last, other = len(a.shape) - 1, max(len(b.shape) - 2, 0)
    if op in ("inner", "vecdot"):
        other = len(b.shape) - 1
    core = {"matmul": 2, "vecdot": 1}.get(op)
    batch = 0 if core is None else max(len(a.shape) - core, len(b.shape) - core, 0)
    return ContractionExplanation(op, (a, b), tuple(pairs or ((last, other),)), batch)


def product_error(
    op: str,
    shapes: Sequence[Sequence[SupportsIndex]],
    names: Sequence[str] | None,
    dtypes: Sequence[str | None],
    pairs: Sequence[tuple[int, int]] | None = None,
    problem: str | None = None,
) -> ExplainedProductError:
    """The error for a product that does not run; its message is the explanation's text."""
    explanation = replace(explain_product(op, shapes, names, dtypes, pairs), problem=problem)
    error = ExplainedProductError(explanation.text())
    error.explanation = explanation
    return error


# --- facts ----------------------------------------------------------------------------------------


def _columns(explanation: ContractionExplanation) -> Iterator[_Column]:
    a, b = (operand.shape for operand in explanation.operands)
    left, right = [i for i, _ in explanation.pairs], [j for _, j in explanation.pairs]
    core = len(explanation.pairs) + (explanation.op == "matmul")
    batches = [max(len(shape) - core, 0) if explanation.batch else 0 for shape in (a, b)]
    used = "".join(explanation.names)
    letters = chain([letter for letter in _LETTERS if letter not in used], (f"i{n}" for n in count()))
    output = 0
    axes: list[tuple[tuple[int | None, int | None], int | None, bool]] = []
    for position in range(explanation.batch):
        own = [position - explanation.batch + count for count in batches]
        axes.append(((own[0] if own[0] >= 0 else None, own[1] if own[1] >= 0 else None), output, True))
        output += 1
    for i in range(batches[0], len(a)):
        if i not in left:
            axes.append(((i, None), output, False))
            output += 1
    kept = [j for j in range(batches[1], len(b)) if j not in right]
    after = [((None, j), output + n, False) for n, j in enumerate(kept)]
    named = [next(letters) for _ in (*axes, *after)]
    summed = [((i, j), None, False) for i, j in explanation.pairs]
    split = len(axes)
    order = [*named[:split], *(next(letters) for _ in summed), *named[split:]]
    for letter, (own_axes, result_axis, is_batch) in zip(order, [*axes, *summed, *after], strict=True):
        first, second = own_axes
        sizes = (None if first is None else a[first], None if second is None else b[second])
        yield _Column(letter, own_axes, sizes, result_axis, is_batch)


def problem_lines(explanation: ContractionExplanation) -> list[str]:
    """Why the product does not run, one sentence per line."""
    first, second = explanation.names
    lines = [] if explanation.problem is None else [explanation.problem]
    for column in explanation.clashes:
        (i, j), (size, other) = column.axes, column.sizes
        wanted = (
            "batch axes of equal sizes, or 1" if column.is_batch else "equal sizes, as they are contracted"
        )
        lines.append(f"axis {i} of {first} has {size}, axis {j} of {second} has {other}; wanted {wanted}")
    return lines


def suggestions(explanation: ContractionExplanation) -> tuple[Suggestion, ...]:
    """Every transpose and exchange that multiplies; of other products the pairs of axes that would."""
    a, b = (operand.shape for operand in explanation.operands)
    first, second = explanation.terms
    if explanation.op != "matmul":
        pairs = [(i, j) for i, size in enumerate(a) for j, other in enumerate(b) if size == other]
        return tuple(
            Suggestion(
                f"tensordot({first}, {second}, axes=([{i}], [{j}]))",
                None,
                str((*a[:i], *a[i + 1 :], *b[:j], *b[j + 1 :])),
            )
            for i, j in pairs[:_LISTED]
        )
    tried = [
        (
            (_spell_operand(first, a, left), _transpose_shape(a, left)),
            (_spell_operand(second, b, right), _transpose_shape(b, right)),
        )
        for left in ((False, True) if len(a) > 1 else (False,))
        for right in ((False, True) if len(b) > 1 else (False,))
    ]
    fits = []
    for (name, shape), (other, turned) in [*tried, ((second, b), (first, a))]:
        each = explain_product("matmul", (shape, turned)).result
        if each is not None:
            fits.append(Suggestion(f"{name} @ {other}", None, str(each.shape)))
    if a == b:
        fits.append(Suggestion(f"{first} * {second}", None, f"{a}, element by element"))
    return tuple(fits)


_ACCEPTED: Final = "the explicit ops above say the same and are accepted"


def no_suggestion(explanation: ContractionExplanation) -> str:
    """Text on the repairs that were tried in vain."""
    if explanation.op == "matmul":
        return "no transpose of them fits, in either order"
    return "no axis of one has the size of an axis of the other"


def _spell_operand(name: str, shape: Shape, is_turned: bool) -> str:
    return name if not is_turned else f"{name}.T" if len(shape) == 2 else f"{name}.mT"


def _transpose_shape(shape: Shape, is_turned: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if is_turned else shape


# --- code -----------------------------------------------------------------------------------------


def _own(explanation: ContractionExplanation, number: int) -> list[_Column]:
    """The columns in which an operand has an axis, in the order of its axes."""
    own = ((column.axes[number], column) for column in explanation.columns)
    return [column for _, column in sorted(((axis, c) for axis, c in own if axis is not None), key=_first)]


def _kept_letters(explanation: ContractionExplanation) -> list[str]:
    """The indices of the result in order."""
    return [
        letter
        for _, letter in sorted((c.output, c.letter) for c in explanation.columns if c.output is not None)
    ]


def _first(pair: tuple[int, _Column]) -> int:
    return pair[0]


def _conjugates(explanation: ContractionExplanation) -> bool:
    return explanation.op == "vecdot" and (explanation.operands[0].dtype or "").startswith("c")


def loop_body(explanation: ContractionExplanation) -> str:
    """`result[i,j] += a[i,k] * b[k,j]`."""
    reads = []
    for number, name in enumerate(explanation.terms):
        letters = [
            "0" if column.size != column.sizes[number] else column.letter
            for column in _own(explanation, number)
        ]
        reads.append(f"{name}[{','.join(letters)}]")
    if _conjugates(explanation):
        reads[0] += ".conj()"
    target = ",".join(_kept_letters(explanation))
    return f"result{f'[{target}]' if target else ''} += {reads[0]} * {reads[1]}"


def explicit_ops(explanation: ContractionExplanation) -> tuple[str, ...]:
    """Statements of `xarr.lax` that compute the same for operands of one dtype."""
    batch = [column for column in explanation.columns if column.is_batch]
    lines, arguments = [], list(explanation.terms)
    if _conjugates(explanation):
        arguments[0] = f"lax.conj({arguments[0]})"
    pairs, batching = explanation.pairs, ""
    # Without a common batch, dot_general gives the axes in this order by itself.
    if (
        batch
        and (len(explanation.operands[1].shape) > 2 or explanation.op == "vecdot")
        and len(explanation.operands[0].shape) > 1
    ):
        sizes = tuple(column.size or 0 for column in batch)
        pairs = ()
        for number, operand in enumerate(explanation.operands):
            core = len(operand.shape) - sum(column.axes[number] is not None for column in batch)
            shape = (*sizes, *operand.shape[len(operand.shape) - core :])
            if shape != operand.shape:
                name = f"{operand.name if operand.name.isidentifier() else 'xy'[number]}1"
                start = len(shape) - len(operand.shape)
                dimensions = tuple(range(start, len(shape)))
                lines.append(f"{name} = lax.broadcast_in_dim({arguments[number]}, {shape}, {dimensions})")
                arguments[number] = name
        added = [len(sizes) - sum(c.axes[n] is not None for c in batch) for n in (0, 1)]
        pairs = tuple((i + added[0], j + added[1]) for i, j in explanation.pairs)
        batching = ", ".join(map(str, range(len(sizes))))
        batching = f"({batching},)" if len(sizes) == 1 else f"({batching})"
    left, right = (tuple(pair[n] for pair in pairs) for n in (0, 1))
    numbers = f"(({left}, {right}), ({batching or '()'}, {batching or '()'}))"
    return (*lines, f"result = lax.dot_general({arguments[0]}, {arguments[1]}, {numbers})")


def einsum(explanation: ContractionExplanation) -> str | None:
    """The product as a call of einsum; None where a batch axis is stretched, for which it has no letter of its own."""
    if any(column.is_batch and {*column.sizes} - {None, column.size} for column in explanation.columns):
        return None
    terms = ["".join(column.letter for column in _own(explanation, number)) for number in (0, 1)]
    kept = "".join(_kept_letters(explanation))
    if not all(map(str.isalpha, (*terms, kept or "i"))) or _conjugates(explanation):
        return None
    return f'einsum("{terms[0]},{terms[1]}->{kept}", {explanation.names[0]}, {explanation.names[1]})'


def _work(explanation: ContractionExplanation) -> str:
    sizes = [column.size or 0 for column in explanation.columns]
    shown = f"{' × '.join(f'{size:,}' for size in sizes)} = " if len(sizes) > 1 else ""
    return f"{shown}{pluralize(prod(sizes), 'product')} added up"


# --- views ----------------------------------------------------------------------------------------


def _cell(size: int | None, axis: int | None, mark: bool = False) -> Cell:
    text = "" if size is None else f"{size}{' !' if mark else ''} (axis {axis})"
    return Cell(text, "clash" if mark else "")


def _rows(explanation: ContractionExplanation) -> Iterator[tuple[Cell, ...]]:
    """The table: a row of letters, one for each operand, one for the result, and what happens."""
    columns = explanation.columns
    yield (Cell("index"), *(Cell(column.letter) for column in columns))
    for number, name in enumerate(explanation.names):
        yield (Cell(name), *(_cell(c.sizes[number], c.axes[number], c.size is None) for c in columns))
    if not explanation.clashes:
        ends = (Cell("summed") if c.output is None else _cell(c.size, c.output) for c in columns)
        yield (Cell("result"), *ends)
    yield (Cell("how"), *(Cell(column.how(explanation.names)) for column in columns))


def _picture(explanation: ContractionExplanation, result: Operand) -> ProductPicture:
    """The product as grids."""
    labels = [[column.letter for column in _own(explanation, number)] for number in (0, 1)]
    sizes = {column.letter: column.size or 0 for column in explanation.columns}
    kept, conjugates = _kept_letters(explanation), _conjugates(explanation)
    return ProductPicture(explanation.operands, labels, result, kept, sizes, conjugates)


def _draw_table(canvas: Canvas, explanation: ContractionExplanation, y: float) -> float:
    """The table as boxes, clashing ones red; returns its lower edge."""
    rows = explanation.table()[:-1]
    width = max(48.0, 11 * CHARACTER * max(len(cell.text) for row in rows for cell in row[1:]) + 12)
    left = MARGIN + 12 * CHARACTER * max(len(row[0].text) for row in rows) + 14
    for number, (label, *cells) in enumerate(rows):
        canvas.text(MARGIN, y + 18, label.text, "d" if not number else "")
        for position, cell in enumerate(cells):
            x = left + position * width
            if not number:
                canvas.text(x + width / 2 - 4, y + 18, cell.text, "d")
            elif cell.text:
                style = "x" if cell.mark else f"c o{number - 1}"
                canvas.box(x, y, width - 6, CELL - 4, style, cell.text)
        y += CELL
    return y
