"""Text such as `(5,1) - (5,)`: what it is read as, and where a malformed one is pointed at."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from xarr.errors import ParseError
from xarr.explanation.broadcast import explain_expression, parse_expression


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(5,1) - (5,)", ("-", ((5, 1), (5,)))),
        ("  ( 5 , 1 , )<<( )", ("<<", ((5, 1), ()))),
        ("f32[5,1] // f32[5]", ("//", ((5, 1), (5,)))),
        ("f32[2,3]{1,0} <= [3]", ("<=", ((2, 3), (3,)))),
        ("add((5,1),(5,))", ("add", ((5, 1), (5,)))),
        ("where((3,), (2,1), ())", ("where", ((3,), (2, 1), ()))),
        ("where(pred[3], f8e4m3fn[2,1], f32[])", ("where", ((3,), (2, 1), ()))),
        ("(0,) ** ()", ("**", ((0,), ()))),
    ],
)
def test_expressions(text: str, expected: Any) -> None:
    assert parse_expression(text) == expected


def test_expressions_keep_dtypes() -> None:
    assert "a: bf16[5,1]   b: (5,)" in explain_expression("bf16[5,1] - (5,)").text()


@pytest.mark.parametrize(
    ("text", "wanted", "column"),
    [
        ("", "a shape", 0),
        ("(5,1)", "an op", 5),
        ("(5,1) -", "a shape", 7),
        ("(5,1) - 5", "a shape", 8),
        ("(5,1) - (5)", r"the shape of a vector is \(5,\)", 8),
        ("(5,1 - (5,)", r'","', 5),
        ("(5,-1) - (5,)", "a size", 3),
        ("(5,,1) - (5,)", "a size", 3),
        ("(5,1) @ (1,5)", "contracts", 6),
        ("(5,1) - (5,) - (5,)", "the end", 13),
        ("f99x[3] + f32[3]", "an element type", 0),
        ("add()", "a shape", 4),
        ("add((3,)", r'"\)"', 8),
        ("(9999999999999999999999,) + ()", "a size", 1),
    ],
)
def test_malformed_expressions_point_at_the_column(text: str, wanted: str, column: int) -> None:
    with pytest.raises(ParseError, match=wanted) as caught:
        parse_expression(text)
    lines = str(caught.value).splitlines()
    assert lines[2].index("^") - 4 == column
    assert "(5,1) - (5,)" in str(caught.value)


def test_the_caret_of_a_long_expression_stays_in_view() -> None:
    with pytest.raises(ParseError) as caught:
        parse_expression("(" + "1, " * 500 + "x) + ()")
    lines = str(caught.value).splitlines()
    assert max(map(len, lines)) < 120 and lines[1][lines[2].index("^")] == "x"


@given(st.text(alphabet="(),[]f32 +-<a{}5\n\x00", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        _, operands = parse_expression(text)
    except ParseError:
        return
    assert operands
