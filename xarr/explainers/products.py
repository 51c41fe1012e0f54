"""`explain_matmul` and `explain_einsum`: which axes of the operands meet, which are summed, and which are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from xarr.base.canvas import Canvas
from xarr.errors import InputError, ShapeError, pluralize
from xarr.explainers.operands import choose, programs, read
from xarr.explanation.broadcast_code import Suggestion, list_memory
from xarr.explanation.broadcast_facts import Operand, check_names
from xarr.explanation.sheet import Cell, Listing, Sheet
from xarr.explanation.sheets.contraction import PRODUCTS, ContractionExplanation, explain_product
from xarr.explanation.sheets.product_svg import ProductPicture, draw_product
from xarr.explanation.steps import PictureStep
from xarr.explanation.svg import MARGIN
from xarr.ir.types import replace_at
from xarr.numpy_api.linear_algebra.einsum import einsum, read_subscripts

_SPARE = "zyxwvutsrqponmlkjihgfedcba"


def explain_matmul(
    a: Any, b: Any, op: str = "matmul", names: Sequence[str] | None = None
) -> ContractionExplanation:
    """Explain `a @ b`: the axes that are contracted, kept and broadcast, or why it does not run and what would.

    a, b: arrays, or shapes as tuples of ints or as text such as "f32[2,3]".  op: matmul, dot, inner or vecdot.

    Raises InputError for operands without axes, and for another op.  Shapes that do not fit are no error here.
    """
    op = choose("explain_matmul", "op", op, PRODUCTS)
    called = check_names("explain_matmul", names, 2)
    operands = [read("explain_matmul", name, each) for name, each in zip(called, (a, b), strict=True)]
    shapes, dtypes = [one.shape for one in operands], [one.dtype for one in operands]
    return explain_product(op, shapes, [one.name for one in operands], dtypes)


@dataclass(frozen=True, repr=False)
class EinsumExplanation(Sheet):
    """The labels of an einsum: the axes that each names, and whether it is kept or summed; one object, several views.

    `labels` has one letter for each axis of each operand, also for those that an ellipsis stands for.
    """

    subscripts: str
    operands: tuple[Operand, ...]
    labels: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]

    @cached_property
    def sizes(self) -> dict[str, int | None]:
        """The size of each label, kept ones first; None where the operands disagree."""
        sizes: dict[str, int | None] = {}
        every = dict.fromkeys([*self.output, *(label for labels in self.labels for label in labels)])
        for label in every:
            axes = {(number, size) for number, _, size in self._axes(label)}
            own = {size for _, size in axes} - {1}
            # Along a diagonal of one operand a size of 1 is not stretched.
            is_clash = len(own) > 1 or len(axes) > len({number for number, _ in axes})
            sizes[label] = None if is_clash else own.pop() if own else 1
        return sizes

    def _is_diagonal(self, label: str) -> bool:
        """Whether a label names several axes of one operand."""
        operands = [number for number, _, _ in self._axes(label)]
        return len(operands) > len(set(operands))

    def _axes(self, label: str) -> Iterator[tuple[int, int, int]]:
        """Operand, axis and size wherever a label stands."""
        for number, labels in enumerate(self.labels):
            for axis, each in enumerate(labels):
                if each == label:
                    yield number, axis, self.operands[number].shape[axis]

    @cached_property
    def result(self) -> Operand | None:
        """The result; None if there is none."""
        sizes = [self.sizes[label] for label in self.output]
        dtypes = {operand.dtype for operand in self.operands}
        if self.problems():
            return None
        return Operand(
            "result", tuple(size or 0 for size in sizes), dtypes.pop() if len(dtypes) == 1 else None
        )

    @property
    def call(self) -> str:
        return f'einsum("{self.subscripts}", {", ".join(operand.name for operand in self.operands)})'

    @property
    def headline(self) -> str:
        operands = "   ".join(f"{operand.name}: {operand.label}" for operand in self.operands)
        return (
            f"{self.call}    {operands}   ->  {'does not run' if self.result is None else self.result.label}"
        )

    def problems(self) -> tuple[str, ...]:
        lines = []
        for label in (label for label, size in self.sizes.items() if size is None):
            sizes = [
                f"axis {axis} of {self.operands[n].name} has {size}" for n, axis, size in self._axes(label)
            ]
            lines.append(
                f"{label} names axes of different sizes: {', '.join(sizes)}; wanted equal sizes"
                f"{' along a diagonal' if self._is_diagonal(label) else ', or 1'}"
            )
        return tuple(lines)

    def fixes(self) -> tuple[Suggestion, ...]:
        """With each order of one operand's letters that fits, where the sizes clash."""
        if not self.problems():
            return ()
        fitting = (
            self._reorder(number, at)
            for number, labels in enumerate(self.labels)
            for at in range(len(labels))
        )
        return tuple(dict.fromkeys(one for one in fitting if one is not None))

    def _reorder(self, number: int, at: int) -> Suggestion | None:
        """The letters of one operand rotated."""
        own = self.labels[number]
        labels = replace_at(self.labels, number, (*own[at:], *own[:at]))
        terms = ",".join("".join(each) for each in labels)
        other = EinsumExplanation(f"{terms}->{''.join(self.output)}", self.operands, labels, self.output)
        return None if other.result is None else Suggestion(other.call, None, other.result.label)

    def table(self) -> tuple[tuple[Cell, ...], ...]:
        if not self.sizes:
            return ()
        rows = [(Cell("label"), *map(Cell, self.sizes))]
        for number, operand in enumerate(self.operands):
            rows.append((Cell(operand.name), *(self._cell(number, label) for label in self.sizes)))
        axes = {label: position for position, label in enumerate(self.output)}
        if self.result is not None:
            ends = (f"{s} (axis {axes[t]})" if t in axes else "summed" for t, s in self.sizes.items())
            rows.append((Cell("result"), *map(Cell, ends)))
        return (*rows, (Cell("how"), *(Cell(self._how(label)) for label in self.sizes)))

    def _cell(self, number: int, label: str) -> Cell:
        own = [(axis, size) for n, axis, size in self._axes(label) if n == number]
        if not own:
            return Cell("")
        axes = ", ".join(str(axis) for axis, _ in own)
        text = f"{own[0][1]} ({'axis' if len(own) == 1 else 'axes'} {axes})"
        is_stretched = self.sizes[label] not in (None, 1) and any(size == 1 for _, size in own)
        return Cell(text, "clash" if self.sizes[label] is None else "stretched" if is_stretched else "")

    def _how(self, label: str) -> str:
        if self.sizes[label] is None:
            return "CLASH"
        is_shared = len(list(self._axes(label))) > 1
        meets = "diagonal" if self._is_diagonal(label) else "multiplied" if is_shared else ""
        return ", ".join(filter(None, [meets, "kept" if label in self.output else "summed"]))

    @property
    def loop(self) -> str:
        """The loop nest, as Python over the operands and `result`, which is 0 before."""
        lines, indent = ["result[...] = 0"], ""
        for label, size in self.sizes.items():
            lines.append(f"{indent}for {self._variable(label)} in range({size}):")
            indent += "    "
        target = ", ".join(map(self._variable, self.output)) or "()"
        reads = [
            f"{operand.reference}[{', '.join(self._read(label, size) for label, size in own) or '()'}]"
            for operand, labels in zip(self.operands, self.labels, strict=True)
            for own in [list(zip(labels, operand.shape, strict=True))]
        ]
        return "\n".join([*lines, f"{indent}result[{target}] += {' * '.join(reads)}"])

    def _variable(self, label: str) -> str:
        """The loop's variable for a label: its letter, unless an operand is called so."""
        return f"{label}_" if any(operand.name == label for operand in self.operands) else label

    def _read(self, label: str, size: int) -> str:
        return "0" if size == 1 and self.sizes[label] != 1 else self._variable(label)

    def codes(self) -> tuple[Listing, ...]:
        if self.result is None:
            return ()
        names = [operand.name for operand in self.operands]
        made = programs(lambda *arrays: einsum(self.subscripts, *arrays), self.operands, names)
        return (Listing("loop", self.loop), Listing("NumPy", self.call), *made)

    def notes(self) -> tuple[tuple[str, str], ...]:
        if self.result is None:
            return ()
        sizes = [size or 0 for size in self.sizes.values()]
        shown = f"{' × '.join(f'{size:,}' for size in sizes)} = " if len(sizes) > 1 else ""
        memory = list_memory((*self.operands, self.result))
        return (("work", f"{shown}{pluralize(prod(sizes), 'product')} added up"), ("memory", memory))

    @cached_property
    def _picture(self) -> ProductPicture | None:
        if self.result is None:
            return None
        sizes = {label: size or 0 for label, size in self.sizes.items()}
        return ProductPicture(self.operands, self.labels, self.result, self.output, sizes)

    def steps(self) -> tuple[PictureStep, ...]:
        return () if self._picture is None else self._picture.steps()

    def draw(self, canvas: Canvas, top: float) -> float:
        if self._picture is None:
            canvas.text(MARGIN, top + 12, "no result: the sizes clash", "w")
            return top + 20
        return draw_product(canvas, self._picture, top)

    def facts(self) -> dict[str, Any]:
        return {
            "op": "einsum",
            "subscripts": self.subscripts,
            "operands": [operand.to_dict() for operand in self.operands],
            "labels": [list(labels) for labels in self.labels],
            "output": list(self.output),
            "sizes": self.sizes,
            "result": None if self.result is None else list(self.result.shape),
            "loop": None if self.result is None else self.loop,
            "problems": list(self.problems()),
            "fixes": [one.expression for one in self.fixes()],
        }


def explain_einsum(subscripts: str, *operands: Any, names: Sequence[str] | None = None) -> EinsumExplanation:
    """Explain `einsum(subscripts, *operands)`: which axes a label names, and whether it is kept or summed.

    operands: arrays, or shapes as tuples of ints or as text such as "f32[2,3]".

    Raises InputError for subscripts that are no text, ShapeError for those that do not go with the ranks.  Sizes that
    clash are no error here.
    """
    if not isinstance(subscripts, str):
        raise InputError(
            f'explain_einsum: wanted subscripts as text such as "ij,jk->ik" first, got {subscripts!r}'
        )
    free_names = [letter for letter in "abcdefghxyzABCDEFGHXYZ" if letter not in subscripts]
    if names is None:
        names = free_names if len(free_names) >= len(operands) else [f"x{i}" for i in range(len(operands))]
        names = names[: len(operands)]
    called = check_names("explain_einsum", names, len(operands))
    known = tuple(read("explain_einsum", name, each) for name, each in zip(called, operands, strict=True))
    labels = read_subscripts("explain_einsum", subscripts, [len(operand.shape) for operand in known])
    letters = {label for each in (*labels.inputs, labels.output) for label in each}
    spare = [letter for letter in _SPARE + _SPARE.upper() if letter not in letters and letter not in called]
    unnamed = sum(not isinstance(label, str) for label in letters)
    if unnamed > len(spare):
        raise ShapeError(
            f"explain_einsum: wanted at most {len(spare)} axes for an ellipsis, as many as letters are left, "
            f"got {unnamed}"
        )
    free = iter(spare)
    shown = {label: label if isinstance(label, str) else next(free) for label in sorted(letters, key=str)}
    inputs = tuple(tuple(shown[label] for label in each) for each in labels.inputs)
    return EinsumExplanation(subscripts, known, inputs, tuple(shown[label] for label in labels.output))
