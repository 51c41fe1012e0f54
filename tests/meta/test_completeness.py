"""Every operation is there in every layer, and `docs/operations.md` says so."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import xarr
from tests.support import completeness
from tests.support.checkout import CHECKOUT
from tests.support.completeness import (
    REWRITTEN,
    TRIED_ELSEWHERE,
    WITHOUT_FUNCTION,
    classes_in,
    entry,
    function,
    gaps,
    has_function,
    is_composite,
    lax_names,
    read_back,
)
from tests.support.operations import own_operations
from tests.support.scripts import docs_script
from xarr import lax
from xarr.compiler import pipeline
from xarr.ir import ops
from xarr.ir.op import Op, operation

LIBRARY = [op for op in own_operations() if not op.is_leaf]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return docs_script("make_operations")


# --- every op ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", LIBRARY, ids=lambda op: op.__name__)
def test_operation_is_complete(op: type[Op]) -> None:
    missing = gaps(op)
    assert missing == [], "\n".join(missing)


@pytest.mark.parametrize("name", TRIED_ELSEWHERE)
def test_what_xla_cannot_run_is_parsed_and_read_elsewhere(name: str) -> None:
    text = (CHECKOUT / "tests" / TRIED_ELSEWHERE[name]).read_text(encoding="utf-8")
    (op,) = (op for op in LIBRARY if op.__name__ == name)
    assert op.lax_name in text


@pytest.mark.parametrize("name", REWRITTEN)
def test_what_no_backend_has_is_gone_before_it_compiles(name: str) -> None:
    def function(x: Any) -> Any:
        size = lax.get_dimension_size(x, 0)
        return lax.add(size, lax.get_dimension_size(lax.set_dimension_size(x, size, 0), 0))

    lowered = xarr.lower(function, "f32[<=4]")
    kind = getattr(ops, name)
    assert kind in classes_in(lowered.graph)
    assert kind not in classes_in(pipeline.lower(lowered.graph, lowered.backend, REWRITTEN[name]))


def test_exceptions_are_those_of_ops_without_function() -> None:
    for op in LIBRARY:
        result = all(has_function(name) for name in lax_names(op))
        assert result == (op.__name__ not in WITHOUT_FUNCTION)


# --- the checks can fail -------------------------------------------------------------------------------------


@operation
class Unfinished(ops.Unary):
    """An op that was only begun."""

    name = "stablehlo.unfinished"
    lax_name = "unfinished"
    assembly = Op.assembly


class Unspelled(Op):
    """An op of no family."""

    name = "stablehlo.unspelled"
    lax_name = "square"


@operation
class Composed(ops.Unary):
    """An op without entries that is defined in terms of others, and has a printed form and a function."""

    name = "stablehlo.composed"
    lax_name = "square"

    def decompose(self, *operands: Any) -> Any:
        return operands[0]


def test_every_gap_is_named() -> None:
    assert gaps(Unfinished) == [
        "Unfinished lacks a row in a table of backends/xarr_reference, or Op.decompose",
        "Unfinished lacks a row in a table of backends/xarr_numpy, or Op.decompose",
        "Unfinished lacks Op.assembly, its StableHLO form",
        "Unfinished lacks the function xarr.lax.unfinished",
    ]
    assert "Unspelled lacks a row of _SPELLINGS in xarr/explainers/explicit_program.py" in gaps(Unspelled)
    (gap,) = gaps(Composed)
    assert gap.startswith("Composed lacks a graph in CASES of tests/support/graphs.py that reads back")


def test_what_the_reader_does_not_give_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    results = {op: names for op, names in read_back().items() if op is not ops.Sine}
    monkeypatch.setattr(completeness, "read_back", lambda: results)
    assert len(gaps(ops.Sine)) == 1
    assert gaps(ops.Cosine) == []


def test_entries_name_the_module_of_the_family() -> None:
    assert entry("xarr_reference", ops.Sine) == "elementwise"
    assert entry("xarr_numpy", ops.Sine) == "table"
    assert entry("xarr_numpy", ops.Gather) == "indexing"
    assert entry("xarr_numpy", Unfinished) is None
    assert entry("xarr_nowhere", ops.Sine) is None


def test_functions_are_found_by_dotted_names() -> None:
    assert function("add") is lax.add
    assert function("elementwise.add") is lax.add
    assert function("add.nothing") is None
    assert function("nothing.add") is None
    assert lax_names(ops.Compare) == ("eq", "ne", "ge", "gt", "le", "lt", "eq_to", "lt_to")
    assert is_composite(ops.Clamp) and not is_composite(ops.Sine)


# --- the page ------------------------------------------------------------------------------------------------


def test_page_is_up_to_date(script: ModuleType) -> None:
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "run: python docs/make_operations.py"


def test_table_has_xla_s_operations_once_each(script: ModuleType) -> None:
    rows = script.rows()
    assert len(rows) == 99
    assert len({row.operation for row in rows}) == 99
    assert all(row.family and row.functions and "." in row.op for row in rows)


def test_what_is_in_the_graph_has_its_functions(script: ModuleType) -> None:
    halves = [
        row.operation
        for row in script.rows()
        if row.op in script.op_classes() and not all(callable(function(name)) for name in row.names)
    ]
    assert halves == []


def test_row_of_an_operation_that_is_there(script: ModuleType) -> None:
    (cells,) = (script.cells(row) for row in script.rows() if row.operation == "Mul")
    assert cells[0] == "Mul"
    assert cells[1] == "`lax.mul`"
    assert (cells[4], cells[5]) == ("`elementwise`", "`table`")
    assert "`test_elementwise.py`" in cells[7] and "(Multiply)" in cells[7]
    assert "up to 3 ULP (complex64, complex128)" in cells[8]


def test_row_of_an_operation_that_is_not_there_yet(script: ModuleType) -> None:
    row = script.Row("Levitate", ("levitate", "linalg.hover"), "unheard", "stablehlo.levitate", "")
    name, functions, family, *others = script.cells(row)
    assert (name, family) == ("Levitate", "unheard")
    assert functions == "`levitate`: not yet, `linalg.hover`: not yet"
    assert others == ["not yet"] * 6


def test_only_the_column_of_the_gpu_has_gaps(script: ModuleType) -> None:
    """Function, graph, reference, NumPy and tests are there for each operation of XLA."""
    left = [cell for row in script.rows() for number, cell in enumerate(script.cells(row)) if number != 6]
    assert not [cell for cell in left if script.NOT_YET in cell]
    assert (
        script.NOT_YET
        in script.cells(script.Row("Nothing", ("nothing",), "control", "stablehlo.nothing", ""))[1]
    )
