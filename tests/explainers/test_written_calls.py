"""What can be typed to be explained: each example, with the explanation that the function gives."""

from __future__ import annotations

import pytest

import xarr
from tests.support.explained import check_views
from xarr.errors import IndexingError, InputError, ParseError, ShapeError, XarrError
from xarr.explainers.written_calls import EXAMPLES, explain_any
from xarr.explanation.broadcast import explain_expression


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples(text: str) -> None:
    explanation = explain_any(text)
    assert explanation.fits
    check_views(explanation)
    assert xarr.explain(text).text() == explanation.text()


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("(5,1) - (5,)", "a - b    a: (5, 1)   b: (5,)   ->  (5, 5)"),
        ("where((3,), (2,1), ())", "where(a, b, c)"),
        ("f32[4,5][1:, [0,2], None]", "x[1:, [0, 2], None] of x with shape (4, 5) -> (3, 2, 1)"),
        ("(4,5)[..., -1]", "x[..., -1] of x with shape (4, 5) -> (4,)"),
        ("max(f32[3,4], axis=(0, 1), keepdims=True)", "x.max(keepdims=True)    x: f32[3,4]   ->  f32[1,1]"),
        ('einsum("ij->ji", (2,3))', 'einsum("ij->ji", a)'),
        ("matmul((2,3), (3,4))", "a @ b"),
        (
            "conv((8,), 3, padding=1)",
            "conv over x: (8,), window (3,), strides (1,), padding ((1, 1),)   ->  (8,)",
        ),
        ("max_pool((8,), 2, 2)", "max over x: (8,), window (2,), strides (2,)   ->  (4,)"),
        (
            "take((5,4), [[0, 3]], axis=-1)",
            "gather: operand (5, 4), start_indices (1, 2, 1) -> result (5, 1, 2)",
        ),
        (
            "gather((5,4), [[0],[2]], (1,4), offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))",
            "gather: operand (5, 4), start_indices (2, 1) -> result (2, 4)",
        ),
        (
            "scatter((5,), (2,1), (2,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))",
            "scatter: operand (5,), scatter_indices (2, 1), updates (2,) -> result (5,)",
        ),
        ("(2,3){0,1}", "x: (2, 3), layout {0,1} (column-major"),
        ("layout((2,3), (0,1))", "x: (2, 3), layout {0,1} (column-major"),
        ("f32[2,3] {1,0:pad(2,4)}", "x: f32[2,3], layout {1,0:pad(2,4)}"),
        ("promote(f32, int)", "promote a: float32, b: Python int   ->  float32"),
    ],
)
def test_kinds(text: str, start: str) -> None:
    assert explain_any(text).text().startswith(start)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("sum()", ParseError, "other arguments of sum: missing 1 required positional argument"),
        ("sum((3,), foo=2)", ParseError, "unexpected keyword argument 'foo'"),
        ("sum((3,4), axis=2)", InputError, "out of range"),
        ("(4,5)[7]", IndexingError, "out of bounds"),
        ("(4,5)[x]", ParseError, "a number, a list, text, None or a slice, got x"),
        ("3[1]", ParseError, "a shape before the index"),
        ("f32[3]{0,1}", ShapeError, "orders 2 dimensions"),
        ("take((5,), [0], axis=3)", InputError, "axis 3 is out of range"),
        ("take(5, [0])", InputError, "wanted a shape"),
        ("sum(__import__('os'))", ParseError, "a number, a list"),
        ("(" * 5000, ParseError, "cannot read"),
        ("(2,3)[" + "-" * 1500 + "1]", XarrError, "."),
    ],
)
def test_malformed(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        explain_any(text)


def test_bare_shapes_are_read_as_before() -> None:
    for text in ("(5,1) - (5,)", "f32[<=3] + f32[]"):
        assert explain_any(text).text() == explain_expression(text).text()
