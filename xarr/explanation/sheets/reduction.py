"""Explanations of a sum, maximum and the like: which elements of an array each element of the result is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Final

from xarr.base.broadcasting import Shape
from xarr.base.canvas import Canvas
from xarr.errors import pluralize
from xarr.explanation.broadcast_code import Suggestion, list_memory, list_words
from xarr.explanation.broadcast_facts import Operand
from xarr.explanation.grids import COLOURS, CellGrid, GridCell, draw_row, indices_in, key_of, width_for
from xarr.explanation.sheet import Cell, Listing, Sheet
from xarr.explanation.steps import PictureStep, join_terms, unravel, write_element
from xarr.explanation.svg import MARGIN

#: How a loop begins and goes on, by the name of NumPy's function.
_LOOPS: Final = {
    "sum": ("0", "{0} += {1}"),
    "prod": ("1", "{0} *= {1}"),
    "mean": ("0", "{0} += {1} / {n}"),
    "max": ("-inf", "{0} = max({0}, {1})"),
    "min": ("inf", "{0} = min({0}, {1})"),
    "any": ("False", "{0} = {0} or bool({1})"),
    "all": ("True", "{0} = {0} and bool({1})"),
}
REDUCTIONS: Final = tuple(_LOOPS)
_LETTERS: Final = "ijklmnpqrstuvw"


@dataclass(frozen=True, repr=False)
class ReductionSheet(Sheet):
    """The axes that a reduction combines and those that it keeps: one object, several views."""

    op: str
    operand: Operand
    axes: tuple[int, ...]
    keepdims: bool = False

    @cached_property
    def result(self) -> Operand:
        """The result's shape and, where the operand's element type is known, its own."""
        kept = (
            (1 if axis in self.axes else size) if self.keepdims or axis not in self.axes else None
            for axis, size in enumerate(self.operand.shape)
        )
        return Operand("result", tuple(size for size in kept if size is not None), self._result_dtype)

    @property
    def _result_dtype(self) -> str | None:
        """The element type of the result; None where the rules of promotion are not at hand."""
        return None

    @property
    def count(self) -> int:
        """The number of elements that each element of the result is made of."""
        return prod(self.operand.shape[axis] for axis in self.axes)

    @property
    def call(self) -> str:
        """The call in NumPy's words."""
        return self._spell(self.axes, self.keepdims)

    def _spell(self, axes: tuple[int, ...], keepdims: bool) -> str:
        whole = len(axes) == len(self.operand.shape)
        shown = [] if whole else [f"axis={axes[0] if len(axes) == 1 else axes}"]
        shown += ["keepdims=True"] if keepdims else []
        return f"{self.operand.reference}.{self.op}({', '.join(shown)})"

    @property
    def headline(self) -> str:
        return f"{self.call}    {self.operand.name}: {self.operand.label}   ->  {self.result.label}"

    def problems(self) -> tuple[str, ...]:
        if self.op in ("max", "min") and not self.count:
            empty = list_words([f"axis {axis}" for axis in self.axes if not self.operand.shape[axis]])
            return (f"{empty} of {self.operand.name} is empty, and no element is the {self.op} of none",)
        return ()

    def fixes(self) -> tuple[Suggestion, ...]:
        """With `initial=` where nothing is reduced; else each other single axis, and the form that lines up again."""
        if self.problems():
            call = self.call[:-1] + ("" if self.call.endswith("(") else ", ") + "initial=0)"
            return (Suggestion(call, None, self.result.label),)
        tried = [] if self.keepdims or not self.operand.shape else [(self.axes, True)]
        tried += [((axis,), self.keepdims) for axis in range(len(self.operand.shape)) if self.axes != (axis,)]
        return tuple(self._suggest(axes, keepdims) for axes, keepdims in tried[:5])

    def _suggest(self, axes: tuple[int, ...], keepdims: bool) -> Suggestion:
        other = replace(self, axes=axes, keepdims=keepdims)
        again = f", which broadcasts against {self.operand.name}" if keepdims and axes == self.axes else ""
        return Suggestion(other.call, None, f"{other.result.label}{again}")

    def table(self) -> tuple[tuple[Cell, ...], ...]:
        ranks = range(len(self.operand.shape))
        if not ranks:
            return ()
        sizes, kinds, position = [], [], 0
        for axis in ranks:
            is_reduced = axis in self.axes
            gone = is_reduced and not self.keepdims
            sizes.append(
                Cell("gone" if gone else "1" if is_reduced else str(self.operand.shape[axis]), "new" * gone)
            )
            where = "" if gone else f", axis {position} of the result"
            kinds.append(Cell(f"{'reduced' if is_reduced else 'kept'}{where}"))
            position += not gone
        return (
            (Cell("axis"), *(Cell(str(axis)) for axis in ranks)),
            (Cell(self.operand.name), *(Cell(str(size)) for size in self.operand.shape)),
            (Cell("result"), *sizes),
            (Cell("how"), *kinds),
        )

    @property
    def _first(self) -> str:
        """The value with which a loop begins: that of no elements."""
        return "nan" if self.op == "mean" and not self.count else _LOOPS[self.op][0]

    @property
    def loop(self) -> str:
        """The loop nest, as Python over the operand and `result`, which `result[...] = …` fills first."""
        _, step = _LOOPS[self.op]
        names = [
            _LETTERS[axis] if axis < len(_LETTERS) else f"i{axis}" for axis in range(len(self.operand.shape))
        ]
        kept = [
            ("0" if a in self.axes else n) for a, n in enumerate(names) if self.keepdims or a not in self.axes
        ]
        lines, indent = [f"result[...] = {self._first}"], ""
        order = sorted(range(len(names)), key=lambda axis: (axis in self.axes, axis))
        for axis in order:
            lines.append(f"{indent}for {names[axis]} in range({self.operand.shape[axis]}):")
            indent += "    "
        target, source = (f"[{', '.join(each) or '()'}]" for each in (kept, names))
        body = step.format(f"result{target}", f"{self.operand.reference}{source}", n=self.count)
        return "\n".join([*lines, indent + body])

    def codes(self) -> tuple[Listing, ...]:
        if self.problems():
            return ()
        return (Listing("loop", self.loop), Listing("NumPy", self.call))

    def notes(self) -> tuple[tuple[str, str], ...]:
        each = f"each element of the result is made of {pluralize(self.count, 'element')}"
        return (("reads", each), ("memory", list_memory((self.operand, self.result))))

    def facts(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "operand": self.operand.to_dict(),
            "axes": list(self.axes),
            "keepdims": self.keepdims,
            "result": {"shape": list(self.result.shape), "dtype": self.result.dtype},
            "count": self.count,
            "loop": self.loop,
            "problems": list(self.problems()),
            "others": [one.expression for one in self.fixes()],
        }

    # --- steps and picture --------------------------------------------------------------------------

    @property
    def _example(self) -> Shape:
        """The element of the result that is shown in detail: the second of those that are drawn."""
        return list(self._groups)[:2][-1]

    def steps(self) -> tuple[PictureStep, ...]:
        if self.problems():
            return ()
        axes = PictureStep("axes", self._fates())
        if not self.result.size:
            return (axes, PictureStep("result", "it has no elements"))
        if not self.count:
            return (axes, PictureStep("result", f"{self.op} of no elements is {self._first}"))
        target, groups = self._example, self._groups
        shown, group = key_of("r", target), tuple(groups[target])
        element = write_element("result", target)
        others = tuple(key for each in groups if (key := key_of("r", each)) != shown)
        steps = (
            axes,
            PictureStep(
                "one group",
                f"{self._terms(', ')} {'go' if self.count > 1 else 'goes'} to {element}",
                lights=group,
            ),
            PictureStep(
                self.op, self._count_words(), f"{element} = {self._formula()}", (shown,), (shown, *group)
            ),
        )
        if self.result.size == 1:
            return steps
        whole = f"{self.result.size:,} groups of {pluralize(self.count, 'element')}, one for each element of the result"
        return (*steps, PictureStep("every group", whole, shows=others))

    @cached_property
    def _groups(self) -> dict[Shape, list[str]]:
        """The cells that are drawn, by the element of the result that they go to."""
        groups: dict[Shape, list[str]] = {}
        for index in indices_in(self.operand.shape):
            groups.setdefault(self._target(index), []).append(key_of(0, index))
        return groups

    def _fates(self) -> str:
        """The axes that go and those that stay, with their sizes."""
        fates = []
        for is_reduced, fate in ((True, "stays with size 1" if self.keepdims else "goes"), (False, "stays")):
            named = [a for a in range(len(self.operand.shape)) if (a in self.axes) == is_reduced]
            words = list_words([f"axis {axis} of size {self.operand.shape[axis]:,}" for axis in named])
            end = fate if len(named) == 1 else fate.replace("goes", "go").replace("stays", "stay")
            fates += [f"{words} {end}"] if named else []
        return "; ".join(fates) or "there are none"

    def _terms(self, sign: str) -> str:
        """The elements of the group that is shown."""
        kept = iter(at for axis, at in enumerate(self._example) if not self.keepdims or axis not in self.axes)
        positions = [None if axis in self.axes else next(kept) for axis in range(len(self.operand.shape))]
        sizes = [self.operand.shape[axis] for axis in self.axes]

        def term(number: int) -> str:
            own = iter(unravel(number, sizes))
            return write_element(self.operand.name, [next(own) if at is None else at for at in positions])

        return join_terms(self.count, term, sign)

    def _count_words(self) -> str:
        if self.count == 1:
            return "of one element"
        return f"of {self.count:,} elements{', divided by their number' if self.op == 'mean' else ''}"

    def _formula(self) -> str:
        """The element that is shown, as an expression of those of its group."""
        sign = {"sum": " + ", "mean": " + ", "prod": " * ", "any": " or ", "all": " and "}.get(self.op, ", ")
        terms = self._terms(sign)
        if self.op == "mean":
            return f"({terms}) / {self.count}"
        return terms if self.count == 1 or self.op not in ("max", "min") else f"{self.op}({terms})"

    def _target(self, index: Shape) -> Shape:
        """The element of the result that an element goes to."""
        kept = (
            (0 if a in self.axes else at) if self.keepdims or a not in self.axes else None
            for a, at in enumerate(index)
        )
        return tuple(at for at in kept if at is not None)

    def _style(self, target: Shape) -> str:
        """One colour for all that goes to one element, another for its neighbours."""
        return f"c o{sum(at * (n + 1) for n, at in enumerate(reversed(target))) % COLOURS}"

    def draw(self, canvas: Canvas, top: float) -> float:
        operand, result, width = (
            self.operand,
            self.result,
            width_for([",".join(["0"] * len(self.operand.shape))]),
        )
        reads = self._groups

        def source(index: Shape) -> GridCell:
            target = self._target(index)
            title = f"{operand.reference}{list(index)} goes to result{list(target)}"
            return GridCell(_text(index), self._style(target), title, key_of(0, index))

        def total(index: Shape) -> GridCell:
            title = f"result{list(index)}: {self.op} of {pluralize(self.count, 'element')}"
            return GridCell(_text(index), self._style(index), title, key_of("r", index), reads.get(index, ()))

        over = list_words([f"axis {axis}" for axis in self.axes]) or "no axis"
        sign = f"{self.op} over {over} \N{RIGHTWARDS ARROW}"
        grids = (
            CellGrid(operand.name, operand.label, operand.shape, source, width),
            sign,
            CellGrid("result", result.label, result.shape, total, width),
        )
        bottom = draw_row(canvas, grids, top, MARGIN)
        canvas.text(MARGIN, bottom + 10, "cells of one colour go to the element of that colour", "d")
        return bottom + 18


def _text(index: Shape) -> str:
    return ",".join(map(str, index)) or "()"
