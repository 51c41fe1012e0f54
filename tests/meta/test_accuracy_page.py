"""`docs/accuracy.md` says what the tests test."""

from __future__ import annotations

from tests.support.scripts import docs_script
from tests.ulp_bounds import BOUNDS, REASONS, bound_of


def test_page_is_up_to_date() -> None:
    script = docs_script("make_accuracy")
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "run: python docs/make_accuracy.py"


def test_large_bounds_have_a_reason() -> None:
    unexplained = [
        (row.function, row.dtype)
        for row in BOUNDS
        if row.tested > 6 and (row.function, row.dtype) not in REASONS
    ]
    assert unexplained == []


def test_reasons_belong_to_rows() -> None:
    assert set(REASONS) <= {(row.function, row.dtype) for row in BOUNDS}


def test_one_row_for_each_function_and_type() -> None:
    assert len({(row.function, row.dtype) for row in BOUNDS}) == len(BOUNDS)


def test_unlisted_functions_must_agree_to_the_bit() -> None:
    assert bound_of("add", "float32") == 0
    assert bound_of("cosh", "float64") > 0
