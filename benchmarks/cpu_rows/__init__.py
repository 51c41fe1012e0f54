"""The rows of `benchmarks/cpu.py`, by what they are about."""

from __future__ import annotations

from cpu_rows import contraction, elementwise, movement, reductions
from cpu_rows.contenders import Row

ROWS: tuple[Row, ...] = tuple(
    sorted(
        [*elementwise.ROWS, *reductions.ROWS, *contraction.ROWS, *movement.ROWS], key=lambda row: row.letter
    )
)
