"""The rows of `docs/operations.tsv`: XLA's operations and what each is in the library."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.operations import own_operations
from xarr.ir.op import Op

ROWS: Final = Path(__file__).resolve().parent / "operations.tsv"


@dataclass(frozen=True)
class Row:
    """One operation of XLA; `op` is the name of what it is in the graph."""

    operation: str
    functions: tuple[str, ...]
    family: str
    op: str
    differences: str

    @property
    def names(self) -> tuple[str, ...]:
        """The functions without what tells two uses of one apart: `round (AWAY_FROM_ZERO)` is `round`."""
        return tuple(name.partition(" ")[0] for name in self.functions)


def rows() -> list[Row]:
    """The table of `docs/operations.tsv`."""
    lines = ROWS.read_text(encoding="utf-8").splitlines()[1:]
    cells = [[*line.split("\t"), ""][:5] for line in lines]
    return [Row(name, tuple(functions.split(", ")), *others) for name, functions, *others in cells]


@cache
def op_classes() -> dict[str, type[Op]]:
    """The library's ops by their names in StableHLO text."""
    return {op.name: op for op in own_operations()}
