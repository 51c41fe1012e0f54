"""The picture of an answer that has no op to explain: its arrays, the result that is wanted, and the one it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xarr.base.canvas import Canvas
from xarr.explanation.grids import COLOURS, CellGrid, GridCell, draw_row, key_of, width_for
from xarr.explanation.sheet import Cell, Listing, Sheet
from xarr.explanation.svg import MARGIN, write_value
from xarr.ir.types import Ints

_Values = np.ndarray[Any, Any]


@dataclass(frozen=True, repr=False)
class ComparisonExplanation(Sheet):
    """The result that a puzzle wants beside that of an answer: one object, several views.

    `got` is None where the answer does not run, and `failure` says why it does not pass.
    """

    answer: str
    failure: str
    arrays: Mapping[str, _Values] = field(compare=False)
    wanted: _Values = field(compare=False)
    got: _Values | None = field(default=None, compare=False)

    @property
    def headline(self) -> str:
        arrays = ", ".join(f"{name} {array.shape}" for name, array in self.arrays.items())
        result = "no result" if self.got is None else str(self.got.shape)
        return f"{self.answer}    {arrays}   ->  {result}, wanted {self.wanted.shape}"

    @property
    def _shown(self) -> dict[str, _Values]:
        """All that is drawn, by its name."""
        drawn = {**self.arrays, "wanted": self.wanted}
        return drawn if self.got is None else {**drawn, "got": self.got}

    def problems(self) -> tuple[str, ...]:
        return (self.failure,)

    def table(self) -> tuple[tuple[Cell, ...], ...]:
        rows = [("array", "shape", "elements")]
        rows += [(name, str(array.shape), str(array.dtype)) for name, array in self._shown.items()]
        return tuple(tuple(map(Cell, row)) for row in rows)

    def codes(self) -> tuple[Listing, ...]:
        return ()

    def notes(self) -> tuple[tuple[str, str], ...]:
        return ()

    def facts(self) -> dict[str, Any]:
        return {
            "answer": self.answer,
            "failure": self.failure,
            "arrays": {name: array.tolist() for name, array in self.arrays.items()},
            "wanted": self.wanted.tolist(),
            "got": None if self.got is None else self.got.tolist(),
        }

    def draw(self, canvas: Canvas, top: float) -> float:
        """The arrays with their values; what differs from what is wanted is red."""
        shown = self._shown
        grids: list[CellGrid | str] = []
        for number, (name, array) in enumerate(shown.items()):
            grids += ["\N{RIGHTWARDS ARROW}"] if name == "wanted" else []
            grids.append(self._grid(name, array, number, len(shown)))
        return draw_row(canvas, grids, top, MARGIN)

    def _grid(self, name: str, array: _Values, number: int, count: int) -> CellGrid:
        result, wanted = name == "got", self.wanted

        def cell(index: Ints) -> GridCell:
            alike = not result or (
                array.shape == wanted.shape
                and bool(np.array_equal(array[index], wanted[index], equal_nan=True))
            )
            style = "x" if not alike else "c or" if name in ("wanted", "got") else f"c o{number % COLOURS}"
            return GridCell(write_value(array[index]), style, f"{name}{list(index)}", key_of(number, index))

        texts = [write_value(value) for value in array.reshape(-1)[:64]]
        return CellGrid(name, str(array.shape), array.shape, cell, width_for(texts), count)
