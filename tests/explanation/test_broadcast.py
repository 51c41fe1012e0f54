"""Explanations: the text, the code in it, the pictures, and the error that carries it."""

from __future__ import annotations

import json
import pickle
import re
from itertools import product
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from xarr import explain_broadcast
from xarr.base.broadcasting import Shape, align_numpy, align_xla, refusal, stretching_refusal
from xarr.errors import BroadcastError, InputError, ShapeError
from xarr.explanation.broadcast import BroadcastExplanation, broadcast_error, explain_shapes
from xarr.explanation.broadcast_code import Suggestion, explicit_ops, loop_nest, one_op, suggestions, warnings
from xarr.explanation.notation import element_bytes

SVG = "{http://www.w3.org/2000/svg}"

EXAMPLES = [
    explain_shapes((5, 1), (5,), op="-"),
    explain_shapes((3, 4), (3,)),
    explain_shapes((2, 3, 4), (3, 1), op="*"),
    explain_shapes((1000,), ()),
    explain_shapes((2, 1, 3, 1), (4, 1, 5)),
    explain_shapes((3,), (2, 1), (), op="where"),
    explain_shapes((2, 3, 4), (2, 5, 4)),
    explain_shapes((2, 3, 4, 5), (2, 3, 5, 5)),
    explain_shapes((0, 1), (3,)),
    explain_shapes((), ()),
    explain_shapes((4,), op="negative"),
    explain_shapes((50, 1, 60), (70, 1), op="<<"),
    explain_shapes((2, 3), (3,), broadcast_dimensions=(0,)),
    explain_shapes((1,) * 20, (2,) * 20),
    explain_shapes((3, 1), (3,), (1, 1, 1)),
]
shapes = st.lists(st.integers(0, 7), max_size=5).map(tuple)

TEXTS = [
    pytest.param(
        explain_shapes((5, 1), (5,), op="-", dtypes=("f32", "f32")),
        """\
a - b    a: f32[5,1]   b: f32[5]   ->  f32[5,5]

  axis    0            1
  a       5            1 -> 5
  b       new -> 5     5
  --------------------------------------
  result  5            5
  how     b: new axis  a: stretched axis

  loop      result[i,j] = a[i,0] - b[j]
  explicit  a1 = lax.broadcast_in_dim(a, (5, 5), (0, 1))
            b1 = lax.broadcast_in_dim(b, (5, 5), (1,))
            result = lax.sub(a1, b1)
  one op    result = lax.sub(lax.broadcast_in_dim(a, (5, 5), (0, 1)), lax.broadcast_in_dim(b, (5, 5), (1,)))
  reuse     each element of a is read 5 times, of b 5 times
  memory    a 5 elements (20 B), b 5 elements (20 B), result 25 elements (100 B)

  ! OUTER      the result is larger than every operand: 25 elements, the largest operand has 5
               both operands have the same count of elements (5); to pair them one to one:
                 a - b.reshape((5, 1))   ->  f32[5,1]
  ! AMBIGUOUS  2 alignments fit; NumPy's rule takes the trailing axes. The other:
                 a - b[:, None]   or  lax.sub(a, b, broadcast_dimensions=(0,))   ->  f32[5,1]
""",
        id="outer_and_ambiguous",
    ),
    pytest.param(
        explain_shapes((3, 4), (3,), names=("x", "v"), dtypes=("f32", "f32")),
        """\
x + v    x: f32[3,4]   v: f32[3]   ->  does not broadcast

  axis  0      1
  x     3      4 !
  v     new    3 !
  ------------------
  how   match  CLASH

  axis 1: x has 4, v has 3; wanted equal sizes, or 1
  (shapes of different rank meet at their last axes)
  what would work:
      x + v[:, None]   or  lax.add(x, v, broadcast_dimensions=(0,))   ->  f32[3,4]
""",
        id="misfit_with_a_fix",
    ),
    pytest.param(
        explain_shapes((3, 3), (3,), op="multiply"),
        """\
a * b    a: (3, 3)   b: (3,)   ->  (3, 3)

  axis    0            1
  a       3            3
  b       new -> 3     3
  --------------------------
  result  3            3
  how     b: new axis  match

  loop      result[i,j] = a[i,j] * b[j]
  explicit  b1 = lax.broadcast_in_dim(b, (3, 3), (1,))
            result = lax.mul(a, b1)
  one op    result = lax.mul(a, b, broadcast_dimensions=(1,))
  reuse     each element of a is read once, of b 3 times
  memory    a 9 elements, b 3 elements, result 9 elements

  ! AMBIGUOUS  2 alignments fit; NumPy's rule takes the trailing axes. The other:
                 a * b[:, None]   or  lax.mul(a, b, broadcast_dimensions=(0,))   ->  (3, 3)
""",
        id="ambiguous",
    ),
    pytest.param(
        explain_shapes((2, 3), (3, 2), op="<"),
        """\
a < b    a: (2, 3)   b: (3, 2)   ->  does not broadcast

  axis  0      1
  a     2 !    3 !
  b     3 !    2 !
  ------------------
  how   CLASH  CLASH

  axis 0: a has 2, b has 3; wanted equal sizes, or 1
  axis 1: a has 3, b has 2; wanted equal sizes, or 1
  what would work:
      a < b.T   or  lax.lt(a, lax.transpose(b, (1, 0)))   ->  (2, 3)
""",
        id="transpose",
    ),
    pytest.param(
        explain_shapes((3,), (2, 1), (), op="where", dtypes=("pred", "f64", "f64")),
        """\
where(a, b, c)    a: pred[3]   b: f64[2,1]   c: f64[]   ->  f64[2,3]

  axis    0                         1
  a       new -> 2                  3
  b       2                         1 -> 3
  c       new -> 2                  new -> 3
  ----------------------------------------------------------------
  result  2                         3
  how     a: new axis, c: new axis  b: stretched axis, c: new axis

  loop      result[i,j] = where(a[j], b[i,0], c)
  explicit  a1 = lax.broadcast_in_dim(a, (2, 3), (1,))
            b1 = lax.broadcast_in_dim(b, (2, 3), (0, 1))
            c1 = lax.broadcast_in_dim(c, (2, 3), ())
            result = lax.select(a1, b1, c1)
  reuse     each element of a is read twice, of b 3 times, of c 6 times
  memory    a 3 elements (3 B), b 2 elements (16 B), c 1 element (8 B), result 6 elements (48 B)

  ! OUTER      the result is larger than every operand: 6 elements, the largest operand has 3
""",
        id="three_operands",
    ),
    pytest.param(
        explain_shapes((0, 1), (3,), op="/", dtypes=("s32", "s32")),
        """\
a / b    a: s32[0,1]   b: s32[3]   ->  (0, 3)

  axis    0            1
  a       0            1 -> 3
  b       new -> 0     3
  --------------------------------------
  result  0            3
  how     b: new axis  a: stretched axis

  loop      result[i,j] = a[i,0] / b[j]
  explicit  a1 = lax.broadcast_in_dim(a, (0, 3), (0, 1))
            b1 = lax.broadcast_in_dim(b, (0, 3), (1,))
            result = a1 / b1
  reuse     the result is empty: nothing is read
  memory    a 0 elements (0 B), b 3 elements (12 B), result 0 elements
""",
        id="empty",
    ),
    pytest.param(
        explain_shapes((), (), op="atan2"),
        """\
atan2(a, b)    a: ()   b: ()   ->  ()

  loop      result = atan2(a, b)
  explicit  result = lax.atan2(a, b)
  reuse     each element of a is read once, of b once
  memory    a 1 element, b 1 element, result 1 element
""",
        id="scalars",
    ),
    pytest.param(
        explain_shapes((2, 5), (3,)),
        """\
a + b    a: (2, 5)   b: (3,)   ->  does not broadcast

  axis  0      1
  a     2      5 !
  b     new    3 !
  ------------------
  how   match  CLASH

  axis 1: a has 5, b has 3; wanted equal sizes, or 1
  (shapes of different rank meet at their last axes)
  no placement of the lower-rank axes fits, in the order they have
""",
        id="hopeless",
    ),
    pytest.param(
        explain_shapes((1, 2), (4, 3, 1), broadcast_dimensions=(1, 2)),
        """\
a + b    a: (1, 2)   b: (4, 3, 1)   ->  (4, 3, 2)

  axis    0            1                  2
  a       new -> 4     1 -> 3             2
  b       4            3                  1 -> 2
  ---------------------------------------------------------
  result  4            3                  2
  how     a: new axis  a: stretched axis  b: stretched axis

  loop      result[i,j,k] = a[0,k] + b[i,j,0]
  explicit  a1 = lax.broadcast_in_dim(a, (4, 3, 2), (1, 2))
            b1 = lax.broadcast_in_dim(b, (4, 3, 2), (0, 1, 2))
            result = lax.add(a1, b1)
  one op    result = lax.add(lax.broadcast_in_dim(a, (4, 3, 2), (1, 2)), \
lax.broadcast_in_dim(b, (4, 3, 2), (0, 1, 2)))
  reuse     each element of a is read 12 times, of b twice
  memory    a 2 elements, b 12 elements, result 24 elements

  ! OUTER      the result is larger than every operand: 24 elements, the largest operand has 12
""",
        id="composition_of_the_explicit_rule",
    ),
    pytest.param(
        explain_shapes((2, 3), (3,), names=("x", "v"), broadcast_dimensions=(0,)),
        """\
x + v    x: (2, 3)   v: (3,)   ->  refused

  [B5] axis 0 of (3,) meets axis 0 of (2, 3): wanted size 2 or 1, got 3
  what would work:
      x + v[None, :]   or  lax.add(x, v, broadcast_dimensions=(1,))   ->  (2, 3)
""",
        id="labelled_violation",
    ),
]


@pytest.mark.parametrize(("explanation", "expected"), TEXTS)
def test_text(explanation: BroadcastExplanation, expected: str) -> None:
    assert explanation.text() + "\n" == expected
    assert str(explanation) == explanation.text()


@pytest.mark.parametrize("explanation", EXAMPLES)
def test_text_is_plain(explanation: BroadcastExplanation) -> None:
    text = explanation.text()
    assert text.isascii() and text.isprintable() is ("\n" not in text)
    assert all(line == line.rstrip() for line in text.splitlines())


def test_loop_variables_avoid_operand_names_and_never_run_out() -> None:
    text = explain_shapes((2, 3), (3,), names=("i", "k")).text()
    assert "result[j,l] = i[j,l] + k[l]" in text
    assert "result[i0,i1,i2" in explain_shapes((1,) * 20, (2,) * 20).text()
    assert "out = result + b" in explain_shapes((), (), names=("result", "b")).text()


def test_singular_and_plural() -> None:
    text = explain_shapes((1,), (2,), dtypes=("f16", "f16")).text()
    assert "a 1 element (2 B), b 2 elements (4 B)" in text
    assert "each element of a is read twice, of b once" in text


def test_names_that_are_expressions_get_parentheses() -> None:
    text = explain_shapes((3, 4), (3,), names=("x - 1", "y[0]"), op="*").text()
    assert "(x - 1) * y[0][:, None]" in text


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("f32", 4),
        ("bf16", 2),
        ("pred", 1),
        ("c128", 16),
        ("f8e4m3fn", 1),
        ("s4", 1),
        ("float64", 8),
        ("x", None),
    ],
)
def test_element_bytes(dtype: str, size: int | None) -> None:
    assert element_bytes(dtype) == size


# --- the code in the explanations runs --------------------------------------------------------------


def lax_with_broadcast_dimensions() -> SimpleNamespace:
    """jax.lax, its binary ops extended by the argument that they lack, as XLA's page defines it."""

    def extend(name: str) -> Any:
        function = getattr(jax.lax, name)

        def call(lhs: Any, rhs: Any, broadcast_dimensions: Any = None) -> Any:
            alignment = align_xla(lhs.shape, rhs.shape, broadcast_dimensions)
            sides = zip((lhs, rhs), alignment.dimensions, strict=True)
            return function(*(jax.lax.broadcast_in_dim(x, alignment.result, own) for x, own in sides))

        return call

    plain = {name: getattr(jax.lax, name) for name in ("broadcast_in_dim", "transpose", "select", "clamp")}
    return SimpleNamespace(**plain, **{name: extend(name) for name in ("add", "sub", "mul", "lt", "max")})


def arrays(explanation: BroadcastExplanation) -> dict[str, Any]:
    made = {}
    for operand in explanation.operands:
        made[operand.name] = jnp.asarray(
            np.arange(1, operand.size + 1, dtype=np.int32).reshape(operand.shape)
        )
    return made


@pytest.mark.sampled
@pytest.mark.parametrize("op", ["add", "-", "*", "<", "maximum", "/"])
@pytest.mark.parametrize(
    "operands", [((5, 1), (5,)), ((2, 3), ()), ((2, 1, 3), (4, 1)), ((0, 1), (3,)), ((2,), (2,))]
)
def test_explicit_ops_one_op_and_loop_compute_what_numpy_does(op: str, operands: tuple[Shape, ...]) -> None:
    explanation = explain_shapes(*operands, op=op)
    scope = arrays(explanation) | {"lax": lax_with_broadcast_dimensions(), "maximum": jnp.maximum}
    expected = np.asarray(eval(explanation.operator.apply(explanation.names), dict(scope)))
    for line in explicit_ops(explanation):
        exec(line, scope)
    np.testing.assert_allclose(scope["result"], expected, rtol=1e-6)
    single = one_op(explanation)
    assert (single is None) == (op == "/")
    if single is not None:
        exec(single, scope)
        np.testing.assert_array_equal(scope["result"], expected)
    filled = {name: np.asarray(scope[name]) for name in "ab"}
    filled["result"] = np.zeros(expected.shape, expected.dtype)
    exec(loop_nest(explanation).replace("maximum", "max"), filled)
    np.testing.assert_allclose(filled["result"], expected, rtol=1e-6)


def test_explicit_ops_of_three_operands_run() -> None:
    explanation = explain_shapes((3,), (2, 1), (), op="where")
    scope = arrays(explanation) | {"lax": lax_with_broadcast_dimensions()}
    scope["a"] = scope["a"] > 0
    for line in explicit_ops(explanation):
        exec(line, scope)
    np.testing.assert_array_equal(scope["result"], jnp.where(scope["a"], scope["b"], scope["c"]))


def runs(suggestion: Suggestion, explanation: BroadcastExplanation) -> bool:
    """Whether both spellings run, no axis stretched unsaid, and give the promised shape."""
    scope = {operand.name: np.ones(operand.shape, np.int32) for operand in explanation.operands}

    def add(a: Any, b: Any, broadcast_dimensions: Any = None) -> Any:
        alignment = align_xla(a.shape, b.shape, broadcast_dimensions)
        return np.empty(() if stretching_refusal(alignment, "ab") else alignment.result)

    lax: Any = SimpleNamespace(add=add, transpose=np.transpose, broadcast_in_dim=jax.lax.broadcast_in_dim)
    try:
        got = [eval(suggestion.expression, dict(scope)).shape]
        if suggestion.explicit is not None:
            got.append(eval(suggestion.explicit, {**scope, "lax": lax}).shape)
    except ValueError:
        return False
    return all(str(shape) == suggestion.result for shape in got)


def test_the_suggestion_checker_can_fail() -> None:
    explanation = explain_shapes((3, 4), (3,))
    assert not runs(Suggestion("a + b", None, "(3, 4)"), explanation)
    assert not runs(
        Suggestion("a + b[:, None]", "lax.add(a, b, broadcast_dimensions=(1,))", "(3, 4)"), explanation
    )
    assert not runs(Suggestion("a + b[:, None]", None, "(4, 3)"), explanation)


@pytest.mark.parametrize("max_rank", [2, pytest.param(3, marks=pytest.mark.thorough)])
def test_every_error_lists_suggestions_that_run(max_rank: int) -> None:
    shapes = [shape for rank in range(max_rank + 1) for shape in product((1, 2, 3), repeat=rank)]
    tried = 0
    for a, b in product(shapes, repeat=2):
        explanation = explain_shapes(a, b)
        results = suggestions(explanation)[0] if explanation.alignment is None else ()
        text = explanation.text() if results else ""
        for suggestion in results:
            assert suggestion.expression in text and (suggestion.explicit or "") in text
            assert runs(suggestion, explanation), (a, b, suggestion)
        tried += len(results)
        others = [each for warning in warnings(explanation) for each in warning.suggestions]
        assert all(runs(each, explanation) for each in others)
    assert tried > {2: 20, 3: 300}[max_rank]


def test_three_operands_that_clash_get_a_joint_suggestion() -> None:
    text = explain_shapes((3, 4), (3,), (), op="where").text()
    assert "where(a, b[:, None], c)   ->  (3, 4)" in text


def test_left_out_suggestions_are_counted() -> None:
    assert "\n      and 15488 more" in explain_shapes((2,) * 20, (2,) * 5, broadcast_dimensions=(0,)).text()
    many = explain_shapes((2, 2, 2, 2, 2, 3), (3, 2, 2, 2, 2, 2)).text()
    assert "\n      and others" in many


# --- errors -------------------------------------------------------------------------------------------


def test_the_error_carries_the_explanation() -> None:
    error = broadcast_error("add", [(3, 4), (3,)], names=("x", "v"), dtypes=("f32", "f32"))
    assert isinstance(error, BroadcastError) and isinstance(error, ValueError)
    assert str(error) == error.explanation.text() == str(TEXTS[1].values[1]).rstrip("\n")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) and copy.explanation == error.explanation


@pytest.mark.parametrize(("dimensions", "label"), [(None, "B1"), ((0, 1), "B2"), ((2,), "B3"), ((0,), "B5")])
def test_the_explicit_error_has_the_label_and_the_fixes(dimensions: Any, label: str) -> None:
    error = broadcast_error("add", [(2, 3), (3,)], broadcast_dimensions=dimensions, explicit=True)
    assert f"[{label}]" in str(error)
    assert "a + b[None, :]   or  lax.add(a, b, broadcast_dimensions=(1,))" in str(error)


def test_the_explicit_error_for_a_transposed_map_names_the_transpose() -> None:
    error = broadcast_error("add", [(2, 3, 4), (4, 2)], broadcast_dimensions=(2, 0))
    assert "[B4]" in str(error) and "transpose(rhs, (1, 0))" in str(error)


def test_a_refusal_by_strictness_keeps_the_explicit_ops() -> None:
    alignment: Any = align_numpy((2, 3), (3,))
    error = broadcast_error("+", [(2, 3), (3,)], problem=refusal(alignment, "rank", ("a", "b")))
    assert "->  refused" in str(error)
    assert 'broadcasting="rank" refuses to broadcast b' in str(error)
    assert "b1 = lax.broadcast_in_dim(b, (2, 3), (1,))" in str(error)
    assert error.explanation.to_dict()["broadcasts"] is False


def test_there_is_no_error_to_build_where_nothing_is_wrong() -> None:
    with pytest.raises(ValueError, match="no error to build"):
        broadcast_error("+", [(2, 3), (3,)])


@pytest.mark.parametrize(
    ("arguments", "keywords", "error"),
    [
        ((), {}, InputError),
        ((3, 4), {}, InputError),
        (((-1,), (2,)), {}, ShapeError),
        (((2,), (2,)), {"names": ("a",)}, InputError),
        (((2,), (2,)), {"dtypes": ("f32",) * 3}, InputError),
        (((2,),), {"values": [[1, 2, 3]]}, InputError),
        (((2,),), {"values": [["x", "y"]]}, InputError),
        (((2,),), {"values": [[[1], [1, 2]]]}, InputError),
        (((2,),), {"broadcast_dimensions": (0,)}, InputError),
        (((2, 2), (2, 2)), {"op": "@"}, InputError),
    ],
)
def test_malformed_arguments(arguments: Any, keywords: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        explain_shapes(*arguments, **keywords)


# --- data -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("explanation", EXAMPLES)
def test_dict_survives_json(explanation: BroadcastExplanation) -> None:
    facts = explanation.to_dict()
    assert json.loads(json.dumps(facts)).keys() == facts.keys()
    assert facts["broadcasts"] == (explanation.alignment is not None)


def test_dict_of_an_outer_difference() -> None:
    facts = explain_shapes((5, 1), (5,), op="-").to_dict()
    assert facts["op"] == "subtract"
    assert facts["result"] == [5, 5] and facts["reuse"] == [5, 5]
    assert facts["broadcast_dimensions"] == [[0, 1], [1]]
    assert [warning["kind"] for warning in facts["warnings"]] == ["OUTER", "AMBIGUOUS"]
    assert facts["axes"][1][0] == {"kind": "new", "size": None, "target": 5}
    assert facts["axes"][0][1] == {"kind": "stretched", "size": 1, "target": 5}


# --- pictures -------------------------------------------------------------------------------------------


def picture(explanation: BroadcastExplanation) -> ElementTree.Element:
    return ElementTree.fromstring(explanation.svg())


@pytest.mark.parametrize("explanation", EXAMPLES)
def test_svg_is_well_formed_and_nothing_is_cut_off(explanation: BroadcastExplanation) -> None:
    root = picture(explanation)
    assert root.tag == f"{SVG}svg" and root.attrib["aria-label"]
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.attrib["x"]) <= width and 0 <= float(text.attrib["y"]) <= height
    for rect in list(root.iter(f"{SVG}rect"))[1:]:
        assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= width
        assert float(rect.attrib["y"]) + float(rect.attrib["height"]) <= height


def test_svg_tells_stored_from_virtual_cells() -> None:
    root = picture(explain_shapes((5, 1), (5,), op="-"))
    cells = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    stored = [group for group in cells if "data-cell" in group.attrib]
    virtual = [group for group in cells if group.attrib["class"].startswith("v")]
    results = {group.attrib["data-reads"] for group in cells if "data-reads" in group.attrib}
    assert (len(stored), len(virtual), len(results)) == (10, 40, 25)
    keys = {group.attrib["data-cell"] for group in stored}
    assert {key for reads in results for key in reads.split()} == keys


def test_svg_marks_new_and_stretched_axes_differently() -> None:
    def arrows(explanation: BroadcastExplanation) -> set[str]:
        return {path.attrib["class"].split()[0] for path in picture(explanation).iter(f"{SVG}path")}

    assert arrows(explain_shapes((3, 3), (3,))) == {"n", "nh"}
    assert arrows(explain_shapes((3, 3), (3, 1))) == {"s", "sh"}
    assert arrows(explain_shapes((3, 3), (3, 3))) == set()
    assert arrows(explain_shapes((3, 4), (3,))) == {"k"}


def test_svg_shows_values_and_computes_the_result() -> None:
    def texts(explanation: BroadcastExplanation) -> list[str]:
        return [group.findtext(f"{SVG}text") or "" for group in picture(explanation).iter(f"{SVG}g")]

    shown = texts(explain_shapes((2, 1), (2,), op="+", values=[[[10], [20]], [1, 2]]))
    assert shown[:12] == ["10", "10", "20", "20", "1", "2", "1", "2", "11", "12", "21", "22"]
    shown = texts(explain_shapes((2,), (), op="/", values=[[1.0, -0.0], 0.0]))
    assert shown[:6] == ["1", "-0", "0", "0", "inf", "nan"]
    shown = texts(explain_shapes((1,), (2,), values=[jnp.ones(1, jnp.bfloat16), [True, False]]))
    assert shown[2:4] == ["T", "F"]
    assert texts(explain_shapes((2, 1), (2,)))[:4] == ["0,0", "0,0", "1,0", "1,0"]


def test_svg_folds_long_axes() -> None:
    words = [text.text for text in picture(explain_shapes((1000,), ())).iter(f"{SVG}text")]
    assert {"0", "1", "998", "999"} <= set(words) and "997" not in words
    assert len(explain_shapes((10**6, 10**6), (10**6, 1)).svg()) < 30_000


def test_svg_of_rank_4_says_what_it_leaves_out() -> None:
    words = [text.text for text in picture(explain_shapes((2, 1, 3, 1), (4, 1, 5))).iter(f"{SVG}text")]
    assert "drawn: [0,0,:,:] of the result" in words and "new -> 2" in words


HOSTILE = '<script>alert("x")</script>&\x00\n\ud800'


@pytest.mark.parametrize("operands", [((2, 1), (3,)), ((2, 3), (2,)), ((2, 3), (5,))])
def test_names_cannot_break_out_of_the_views(operands: tuple[Shape, ...]) -> None:
    explanation = explain_shapes(*operands, names=(HOSTILE, "b]]>"), op="<" + HOSTILE, dtypes=("<b>", "f32"))
    picture(explanation)
    for view in (explanation.svg(), explanation.html()):
        assert "alert(" not in view.replace("alert(&quot;", "") and "<b>" not in view
        assert "&lt;script&gt;" in view
    assert explanation.html().count("<script>") == (1 if explanation.alignment is not None else 0)
    assert "\x00" not in explanation.text() and explanation.text().encode()


@pytest.mark.parametrize("explanation", EXAMPLES)
def test_html_is_self_contained_and_well_formed(explanation: BroadcastExplanation) -> None:
    html = explanation.html()
    body = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    ElementTree.fromstring(body)
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r'\sid="', html), "two fragments must be able to stand in one page"
    assert explanation._repr_html_() == html and explanation._repr_svg_() == explanation.svg()


@pytest.mark.parametrize("operands", [((5, 1), (5,)), ((3, 4), (3,)), ((2, 3, 4), (3, 1)), ((1000,), ())])
def test_html_of_small_cases_is_small(operands: tuple[Shape, ...]) -> None:
    assert len(explain_shapes(*operands).html().encode()) <= 30_000


@given(st.lists(shapes, min_size=1, max_size=4), st.sampled_from(["+", "where", "odd", "<", "maximum"]))
def test_every_view_of_anything_renders(operands: list[Shape], op: str) -> None:
    explanation = explain_shapes(*operands, op=op)
    assert explanation.text() and explanation.to_dict()
    assert bool(explanation.steps()) == (explanation.alignment is not None)
    ElementTree.fromstring(explanation.svg())
    ElementTree.fromstring(re.sub(r"<script>.*?</script>", "", explanation.html(), flags=re.DOTALL))


def test_no_cell_is_drawn_of_values_that_an_empty_leading_axis_leaves_none_of() -> None:
    explanation = explain_broadcast(np.zeros((2, 0, 3, 1)), np.zeros((5,)))
    assert explanation.svg().startswith("<svg") and "(2, 0, 3, 5)" in explanation.html()
