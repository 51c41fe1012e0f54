"""What can be typed to be explained: each example, with the explanation that the function gives."""

from __future__ import annotations

import re

import pytest

import xarr
from tests.support.explained import check_views
from xarr.errors import IndexingError, InputError, ParseError, ShapeError, XarrError
from xarr.explainers.collective import COLLECTIVES, explain_collective
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
        ("(4,5)[[[0,1],[2]]]", InputError, "lists of equal lengths within a list, got .*0, 1"),
        ("f32[a,b][1]", ParseError, "a size"),
        ("take((5,4), [[0,1],[2]])", InputError, "take: wanted lists of equal lengths"),
        ("take((5,4), [0], axis='x')", InputError, "wanted an int, ints or None for axis, got 'x'"),
        ("take((5,4), [0], axis=(0,1))", InputError, "take: wanted an int or None for axis"),
        ("take((5,4), [1, 9], axis=0)", IndexingError, "index 9 is out of bounds for axis 0 with size 5"),
        ("take((5,4), 1.5)", InputError, "take: wanted integers as indices, got float64"),
        ("scatter((5,4), (2,1), 'x')", ParseError, "wanted a shape"),
        ("einsum((2,3), (3,4))", InputError, "subscripts as text .* first"),
        ("(2,3)[" + "-" * 1500 + "1]", XarrError, "."),
    ],
)
def test_malformed(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        explain_any(text)


def test_bare_shapes_are_read_as_before() -> None:
    for text in ("(5,1) - (5,)", "f32[<=3] + f32[]"):
        assert explain_any(text).text() == explain_expression(text).text()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("outer((3,), (4,))", "outer"),
        ("transpose((3,4))", "transpose"),
        ("reshape((3,4), (12,))", "reshape"),
        ("concatenate((3,4), (3,4))", "concatenate"),
        ("argmax((3,4), axis=0)", "argmax"),
        ("cumsum((3,4)) + (4,)", "cumsum"),
        ("sum((3,4)) + (4,)", "sum"),
        ("max((3,4)) + (4,)", "max"),
        ("vecmat((3,), (3,4))", "vecmat"),
        ("dynamic_slice((3,), (1,))", "dynamic_slice"),
    ],
)
def test_known_functions_that_are_not_element_wise_are_refused(text: str, name: str) -> None:
    with pytest.raises(ParseError, match=rf"cannot explain {name}\(.*: wanted an element-wise function"):
        explain_any(text)


@pytest.mark.parametrize(
    "text",
    [
        "hypot((3,), (4,1))",
        "isclose((3,), (4,1))",
        "mine((3,), (4,1))",
        "clamp((), (4,1), (3,))",
        "max((3,), ()) + (4,1)",
    ],
)
def test_element_wise_functions_and_unknown_ones_broadcast(text: str) -> None:
    assert "(4, 3)" in explain_any(text).text().splitlines()[0]


def test_take_is_numpys() -> None:
    last, flat = explain_any("take((5,4), -1, axis=0)").text(), explain_any("take((5,4), [0, -1])").text()
    assert "result[:] <- operand[4, 0:4]" in last and "out of bounds" not in last
    assert "gather: operand (20,)" in flat and "result[1] <- operand[19]" in flat


def test_indices_that_are_empty() -> None:
    assert explain_any("(4,5)[[]]").text().startswith("x[[]] of x with shape (4, 5) -> (0, 5)")
    assert "-> result (0, 4)" in explain_any("take((5,4), [], axis=0)").text()


def test_one_dimension_needs_no_tuple() -> None:
    assert explain_any("gather((5,4), (2,1), (1,4), 1, 0, 0)").text().startswith("gather: operand (5, 4)")


def test_every_collective_can_be_typed() -> None:
    for name in COLLECTIVES:
        assert explain_any(f"{name}(f32[4,2], 4)").text() == explain_collective(name, "f32[4,2]", 4).text()
    text = explain_any("send(f32[8], 4, pairs=[(0, 2), (3, 1)])").text()
    assert text == explain_collective("send", "f32[8]", 4, pairs=[(0, 2), (3, 1)]).text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "all_reduce((1024,), 4)",
            "wanted an array type such as f32[1024], since bytes are counted, got (1024,)",
        ),
        ("all_reduce(f32[4])", "missing 1 required positional argument: 'replicas'"),
        ("all_to_all(f32[3], 2)", "a first dimension that 2 divides"),
        ("all_gather(f32[4], 99)", "1 to 64 replicas, got 99"),
    ],
)
def test_collectives_that_cannot_be_explained(text: str, words: str) -> None:
    with pytest.raises(XarrError, match=re.escape(words)):
        explain_any(text)
