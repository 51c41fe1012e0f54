"""Descriptions of parameters that docstrings leave out: one table, `parameters.tsv`, for all functions.

Most parameters mean the same in many functions, as `axis` and `key` do, and are said once there.  What a docstring says
of a parameter counts, and is not repeated in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).with_name("parameters.tsv")


@dataclass(frozen=True)
class Description:
    """Words for parameters of these names, in functions whose full names fit one of the patterns."""

    names: tuple[str, ...]
    functions: tuple[str, ...]
    words: str

    def fits(self, function: str, parameter: str) -> bool:
        return parameter in self.names and any(fnmatchcase(function, each) for each in self.functions)


def parse_rows(lines: Iterable[str]) -> tuple[Description, ...]:
    """The rows of a table; ValueError for a line that is none."""
    rows = []
    for line in lines:
        if line.strip() and not line.startswith("#"):
            names, functions, words = line.rstrip("\n").split("\t")
            rows.append(Description(tuple(names.split(", ")), tuple(functions.split()), words))
    return tuple(rows)


@cache
def read_table() -> tuple[Description, ...]:
    """The rows of the table, narrower patterns first."""
    return parse_rows(TABLE.read_text(encoding="utf-8").splitlines())


def describe(function: str, parameter: str, rows: Sequence[Description] | None = None) -> str:
    """The words of the table for a parameter of the function with this full name; "" for nothing.

    A method of Array is described as the function of its name.
    """
    row = row_of(function, parameter, read_table() if rows is None else rows)
    return "" if row is None else row.words


def row_of(function: str, parameter: str, rows: Sequence[Description]) -> Description | None:
    """The first row that fits; None without one."""
    name = function.replace("xarr.Array.", "xarr.")
    return next((row for row in rows if row.fits(name, parameter)), None)
