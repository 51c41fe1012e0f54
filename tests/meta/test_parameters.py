"""Every parameter of every public function has a description, in its docstring or in the table of all."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import pytest

from tests.support.checkout import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "docs"))

from website import parameters, reference
from website.docstrings import annotations, described_parameters, to_rst


def functions(namespace: str) -> Iterator[tuple[str, Any]]:
    """The public functions of a namespace by their full names, those without a signature left out."""
    module = import_module(namespace)
    for name in reference.names_of(namespace):
        value = getattr(module, name)
        if callable(value) and not inspect.isclass(value) and f"{namespace}.{name}" != "xarr.config":
            yield f"{namespace}.{name}", value


def list_undescribed(name: str, value: Any, rows: Sequence[parameters.Description]) -> list[str]:
    """The parameters of which neither the docstring nor the table says anything."""
    types, _ = annotations(inspect.signature(value))
    said = described_parameters(value.__doc__ or "", types)
    return [each for each in types if each not in said and not parameters.describe(name, each, rows)]


@pytest.mark.parametrize("namespace", reference.NAMESPACES)
def test_every_parameter_is_described(namespace: str) -> None:
    rows = parameters.read_table()
    missing = {name: list_undescribed(name, value, rows) for name, value in functions(namespace)}
    assert {name: each for name, each in missing.items() if each} == {}


def test_a_parameter_without_description_is_found() -> None:
    def shift(x: int, by: int, to: int) -> int:
        """Shift.

        by: how far.
        """
        return x + by + to

    rows = parameters.parse_rows(["# x\n", "x, y\txarr.*\tan array.\n", "to\txarr.roll\twhere to.\n"])
    assert list_undescribed("xarr.shift", shift, rows) == ["to"]
    assert list_undescribed("xarr.roll", shift, rows) == []
    assert list_undescribed("jax.shift", shift, rows) == ["x", "to"]


def test_every_row_says_something_of_a_function() -> None:
    rows = parameters.read_table()
    used: set[tuple[parameters.Description, str]] = set()
    for namespace in reference.NAMESPACES:
        for name, value in functions(namespace):
            types, _ = annotations(inspect.signature(value))
            for each in set(types) - described_parameters(value.__doc__ or "", types):
                row = parameters.row_of(name, each, rows)
                if row is not None:
                    used.add((row, each))
    idle = [f"{name}: {row.words}" for row in rows for name in row.names if (row, name) not in used]
    assert idle == []


def test_the_first_row_that_fits_counts() -> None:
    rows = parameters.parse_rows(["n\txarr.fft.*\tpoints.", "n\t*\trows."])
    assert parameters.describe("xarr.fft.fft", "n", rows) == "points."
    assert (
        parameters.describe("xarr.eye", "n", rows)
        == parameters.describe("xarr.Array.eye", "n", rows)
        == "rows."
    )
    assert parameters.describe("xarr.eye", "m", rows) == ""


def test_a_row_of_two_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 3"):
        parameters.parse_rows(["x\tan array"])


def test_the_table_does_not_overrule_docstrings() -> None:
    words = {"x": "Of the table.", "y": "Also `so_`."}
    lines = to_rst("Add.\n\nx: first.", {"x": "Array", "y": "int"}, "", words.__getitem__)
    assert ":param x: ``Array``: first." in lines
    assert ":param y: ``int``: Also ``so_``." in lines
