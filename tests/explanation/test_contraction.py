"""Products and chains of ops, explained: the code shown computes what NumPy computes, the fixes run."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from itertools import product
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.base.broadcasting import Shape
from xarr.errors import BroadcastError, InputError, ParseError, ShapeError
from xarr.explanation.broadcast import BroadcastExplanation
from xarr.explanation.expression_steps import ChainExplanation, explain_text
from xarr.explanation.sheets.contraction import (
    ContractionExplanation,
    ExplainedProductError,
    einsum,
    explain_product,
    explicit_ops,
    loop_body,
    suggestions,
)

SHAPES = [shape for rank in range(1, 4) for shape in product((1, 2, 3), repeat=rank)]


def compute(op: str, a: Any, b: Any) -> Any:
    """NumPy's result; None where it refuses."""
    try:
        return getattr(np, op)(a, b)
    except ValueError:
        return None


def loops(explanation: ContractionExplanation, a: Any, b: Any) -> Any:
    """The result of the line of the loop, run for every index."""
    assert explanation.result is not None
    scope = {"a": a, "b": b, "result": np.zeros(explanation.result.shape)}
    line = loop_body(explanation).replace("result +=", "result[()] +=")
    columns = [(column.letter, column.size or 0) for column in explanation.columns]
    code = compile(line, "loop", "exec")
    for index in product(*(range(size) for _, size in columns)):
        exec(code, scope | dict(zip((letter for letter, _ in columns), index, strict=True)))
    return scope["result"]


@pytest.mark.parametrize("op", ["matmul", "dot", "inner", "vecdot"])
def test_code_and_outcome_are_numpys(op: str) -> None:
    generator = np.random.default_rng(0)
    tried = refused = 0
    for first, second in product(SHAPES, repeat=2):
        if len(first) + len(second) == 6 and first[0] != 2:
            continue
        a, b = (generator.integers(1, 4, shape).astype(float) for shape in (first, second))
        explanation, wanted = explain_product(op, (first, second)), compute(op, a, b)
        assert explanation.fits == (wanted is not None), (first, second)
        if wanted is None:
            refused += 1
            continue
        tried += 1
        assert explanation.result is not None and explanation.result.shape == wanted.shape
        scope: dict[str, Any] = {"lax": lax, "a": xarr.asarray(a), "b": xarr.asarray(b)}
        with xarr.config(broadcasting="explicit"):
            exec("\n".join(explicit_ops(explanation)), scope)
        assert_same(scope["result"], np.asarray(wanted))
        summed = einsum(explanation)
        if summed is not None:
            assert_same(np.asarray(eval(summed, {"einsum": np.einsum, "a": a, "b": b})), np.asarray(wanted))
        if tried % 10 == 0:
            assert_same(loops(explanation, a, b), np.asarray(wanted))
    assert tried > 50 and refused > 50


@pytest.mark.parametrize("op", ["matmul", "dot", "inner", "vecdot"])
def test_every_suggestion_runs(op: str) -> None:
    tried = 0
    for first, second in product(SHAPES, repeat=2):
        explanation = explain_product(op, (first, second))
        for one in suggestions(explanation) if not explanation.fits else ():
            scope = {"a": np.ones(first), "b": np.ones(second), "tensordot": np.tensordot}
            shape = eval(one.expression, scope).shape
            assert str(shape) == one.result.partition(", element by element")[0]
            assert one.expression in explanation.text()
            tried += 1
    assert tried > 50


def test_text_of_a_product() -> None:
    assert (
        explain_product("matmul", ((5, 1, 2, 3), (7, 3, 4)), ("x", "w"), ("f32", "f32")).text()
        == """\
x @ w    x: f32[5,1,2,3]   w: f32[7,3,4]   ->  f32[5,7,2,4]

  index   i                   j                         k           m           l
  x       5 (axis 0)          1 (axis 1)                2 (axis 2)  3 (axis 3)
  w                           7 (axis 0)                            3 (axis 1)  4 (axis 2)
  result  5 (axis 0)          7 (axis 1)                2 (axis 2)  summed      4 (axis 3)
  how     batch, w: new axis  batch, x: stretched axis  kept        contracted  kept

  steps     1 line up: m, of size 3, is axis 3 of x and axis 1 of w: summed over; j, of size 7, is axis 1 of x,
              stretched, and axis 0 of w: they go along together; i, k and l are kept
            2 one element: result[0,1,1,1] needs x[0,0,1,:] and w[1,:,1]
            3 multiply and add: 3 products are added up
                result[0,1,1,1] = x[0,0,1,0] * w[1,0,1] + x[0,0,1,1] * w[1,1,1] + x[0,0,1,2] * w[1,2,1]
            4 every element: the same for each of the 280 elements: 280 × 3 = 840 products
  loop      result[i,j,k,l] += x[i,0,k,m] * w[j,m,l]
  explicit  x1 = lax.broadcast_in_dim(x, (5, 7, 2, 3), (0, 1, 2, 3))
            w1 = lax.broadcast_in_dim(w, (5, 7, 3, 4), (1, 2, 3))
            result = lax.dot_general(x1, w1, (((3,), (2,)), ((0, 1), (0, 1))))
  work      5 × 7 × 2 × 3 × 4 = 840 products added up
  memory    x 30 elements (120 B), w 84 elements (336 B), result 280 elements (1.1 KiB)"""
    )


def test_a_refused_product_has_the_users_names_and_fixes() -> None:
    x, v = xarr.ones((3, 4)), xarr.ones(3)
    with pytest.raises(ExplainedProductError) as caught:
        x @ v
    assert isinstance(caught.value, ShapeError) and isinstance(caught.value, BroadcastError)
    text = str(caught.value)
    assert text.startswith("x @ v    x: f64[3,4]   v: f64[3]   ->  does not multiply")
    assert "axis 1 of x has 4, axis 0 of v has 3" in text
    assert "      x.T @ v   ->  (4,)\n      v @ x     ->  (4,)" in text
    assert caught.value.explanation.text() == text
    with pytest.raises(ExplainedProductError, match=r"a @ b.T   ->  \(3, 3\)"):
        xarr.matmul(x, x)  # one name for two operands tells nothing
    with pytest.raises(ExplainedProductError, match=r"dot\(x, v\)"):
        xarr.dot(x, v)
    with pytest.raises(ExplainedProductError, match=r"tensordot\(x, v, axes=\(\[1\], \[0\]\)\)"):
        xarr.tensordot(x, v, 1)


@pytest.mark.parametrize(
    "text",
    ["(2,3) @ (3,4)", "f32[2,3] @ f32[2,3]", "vecdot((4,1,3), (2,3))", "(2,2,3) @ (5,3,4)", "(3,) @ (3,)"],
)
def test_views_of_a_product(text: str) -> None:
    explanation = explain_text(text)
    assert isinstance(explanation, ContractionExplanation)
    root = ElementTree.fromstring(explanation.html())
    assert len(root.findall(".//td[@class='clash']")) == 2 * len(explanation.clashes)
    for each in "".join(root.itertext()), "".join(ElementTree.fromstring(explanation.svg()).itertext()):
        assert explanation.headline in each
    assert json.loads(json.dumps(explanation.to_dict()))["result"] == (
        None if explanation.result is None else list(explanation.result.shape)
    )
    assert repr(explanation) == explanation.text()


def test_names_cannot_break_out_of_the_page() -> None:
    explanation = explain_product("matmul", ((2, 3), (2, 3)), ("<script>alert(1)</script>", "b"))
    for view in (explanation.html(), explanation.svg()):
        ElementTree.fromstring(view)
        assert "<script>" not in view


def test_explain_notes_products() -> None:
    x, w = xarr.ones((2, 3)), xarr.ones((3, 4))
    explanation = xarr.explain(lambda: x @ w)
    assert "x @ w    x: f64[2,3]   w: f64[3,4]   ->  f64[2,4]" in str(explanation)
    failed = xarr.explain(lambda: w @ x)
    assert "w @ x" in str(failed) and "does not multiply" in str(failed)


@pytest.mark.parametrize("mode", ["rank", "explicit"])
def test_strictness_refuses_what_can_be_written(mode: str) -> None:
    x, w = xarr.asarray(np.arange(12.0).reshape(2, 2, 3)), xarr.asarray(np.arange(6.0).reshape(1, 1, 3, 2))
    columns = w.mT
    calls: tuple[tuple[Any, Any], ...] = (
        (lambda: x @ w, np.matmul(np.asarray(x), np.asarray(w))),
        (lambda: xarr.vecdot(x, columns), np.vecdot(np.asarray(x), np.asarray(columns))),
    )
    for call, wanted in calls:
        with xarr.config(broadcasting=mode), pytest.raises(ExplainedProductError) as caught:
            call()
        text = str(caught.value)
        assert f'broadcasting="{mode}" refuses to broadcast x' in text and "of the batch axes" in text
        assert "->  refused" in text and "the explicit ops above say the same" in text
        assert not caught.value.explanation.fits
        ElementTree.fromstring(caught.value.explanation.html())
        scope: dict[str, Any] = {"lax": lax, "x": x, "w": w, "columns": columns}
        with xarr.config(broadcasting=mode):
            exec("\n".join(explicit_ops(caught.value.explanation)), scope)
        assert_same(scope["result"], wanted)


# --- chains -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "written", "headlines"),
    [
        (
            "(4,) * (3,1) + (4,)",
            "(a * b) + c",
            [
                "a * b    a: (4,)   b: (3, 1)   ->  (3, 4)",
                "(a * b) + c    a * b: (3, 4)   c: (4,)   ->  (3, 4)",
            ],
        ),
        ("(3,) + (2,) * (2,)", "a + (b * c)", ["b * c  ", "a + (b * c)  "]),
        ("((3,) + (2,)) * (2,)", "(a + b) * c", ["a + b  "]),
        ("(2,3) @ (3,4) + (4,)", "(a @ b) + c", ["a @ b  ", "(a @ b) + c  "]),
        ("(2,) ** (2,) ** (2,)", "a ** (b ** c)", ["b ** c  ", "a ** (b ** c)  "]),
        (
            "where((3,), (2,1), ()) - f32[3]",
            "(where(a, b, c)) - d",
            ["where(a, b, c)  ", "(where(a, b, c)) - d  "],
        ),
        ("(3,) + (3,) < (3,)", "(a + b) < c", ["a + b  ", "(a + b) < c  "]),
    ],
)
def test_chains_are_explained_in_the_order_of_python(text: str, written: str, headlines: list[str]) -> None:
    explanation = explain_text(text)
    assert isinstance(explanation, ChainExplanation)
    assert explanation.expression.replace("(where(a, b, c))", "where(a, b, c)") in (
        written,
        written.replace("(where(a, b, c))", "where(a, b, c)"),
    )
    shown = [step.text().splitlines()[0] for step in explanation.steps]
    assert len(shown) == len(headlines)
    for line, start in zip(shown, headlines, strict=True):
        assert line.replace("(where(a, b, c))", "where(a, b, c)").startswith(
            start.replace("(where(a, b, c))", "where(a, b, c)")
        )


def test_a_chain_ends_at_the_op_that_fails() -> None:
    explanation = explain_text("(4,) + (3,) + (2,)")
    assert isinstance(explanation, ChainExplanation) and not explanation.fits
    assert explanation.text().startswith("(a + b) + c   ->  op 1 of 2 fails; 1 more would follow\n")
    assert len(explanation.steps) == 1
    fits = explain_text("(4,1) + (3,) + (2,1,1)")
    assert isinstance(fits, ChainExplanation) and fits.fits
    assert fits.summary == "(a + b) + c   ->  (2, 4, 3), in 2 ops"
    for each in (explanation, fits):
        for fragment in re.sub(r"<script>.*?</script>", "", each.html(), flags=re.DOTALL).split("\n<div"):
            assert "<" in fragment
        ElementTree.fromstring(
            "<p>" + re.sub(r"<script>.*?</script>", "", each.html(), flags=re.DOTALL) + "</p>"
        )
        assert json.dumps(each.to_dict())
        with pytest.raises(InputError, match="svg"):
            each.svg()


def test_one_op_is_no_chain() -> None:
    assert isinstance(explain_text("(5,1) - (5,)"), BroadcastExplanation)
    assert isinstance(explain_text("((5,1) - (5,))"), BroadcastExplanation)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(3,) < (3,) < (3,)", "parentheses around one of the comparisons"),
        ("(3,)", "an op such as"),
        ("(3,) + ", "a shape"),
        ("((3,) + (2,)", 'an op or "\\)"'),
        ("(3,) + (2,))", "an op such as .* or the end"),
        ("+".join(["(2,)"] * 60), "at most 50 ops"),
        ("(" * 500 + "(2,)", "at most 50 ops"),
    ],
)
def test_malformed_chains(text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        explain_text(text)


@pytest.mark.parametrize("shapes", [((), (3,)), ((3,), ()), ((3,),)])
def test_products_want_two_shapes_with_axes(shapes: tuple[Shape, ...]) -> None:
    with pytest.raises(InputError, match="two shapes of rank 1 or more"):
        explain_product("matmul", shapes)
