"""Fragments keep to their bytes, whatever is explained, and say what they leave out, which text and facts have."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.support.explained import MOST_BYTES
from xarr.errors import ShapeError
from xarr.explainers.collective import COLLECTIVES
from xarr.explanation.broadcast import explain_shapes
from xarr.explanation.folds import MEASURES, Measure, PageFold, count_bytes, cut_middle
from xarr.explanation.html import fold_fragment
from xarr.explanation.steps import PictureStep
from xarr.lax import GatherDimensionNumbers

pytestmark = pytest.mark.implicit

SMALL = Measure(rows=4, columns=4, lines=3, line=20, entries=2, text=30)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
sizes = st.sampled_from([0, 1, 1, 2, 3, 5, 17, 1000, 10**9])
names = st.sampled_from(
    ["x", "a long name" * 3, '"<&>"' * 40, "\N{GREEK SMALL LETTER ALPHA}" * 200, "x\x00\ny"]
)


def check_size(explanation: Any) -> str:
    """Check that the fragment is small, well-formed, and says that it is folded if it is; returns it."""
    html: str = explanation.html()
    assert len(html.encode()) <= MOST_BYTES, len(html.encode())
    body = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    root = ElementTree.fromstring(body)
    assert root.get("class") == "xarr-e"
    assert "<svg" in body or "the picture" in body or not has_picture(explanation)
    return html


def has_picture(explanation: Any) -> bool:
    """Whether there is one: not of operands of a gather with many axes."""
    try:
        return bool(explanation.svg())
    except ShapeError:
        return False


# --- any input ----------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(sizes, max_size=40), min_size=1, max_size=12),
    st.sampled_from(["+", "where", "<"]),
    names,
)
def test_broadcasts_of_any_rank_and_number_of_operands(shapes: list[list[int]], op: str, name: str) -> None:
    check_size(explain_shapes(*shapes, op=op, names=[f"{name}{i}" for i in range(len(shapes))]))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60), st.integers(1, 40), st.booleans())
def test_broadcasts_that_fit_or_nearly_fit(rank: int, count: int, fits: bool) -> None:
    shapes = [tuple(3 if (axis + n) % 3 else 1 for axis in range(rank)) for n in range(count)]
    if not fits:
        shapes[0] = (2,) * rank
    check_size(explain_shapes(*shapes, op="maximum", dtypes=["f32"] * count))


def test_broadcasts_of_very_many_axes() -> None:
    for shapes in (((3,) * 200, (3,) * 100), ((1,) * 200, (10**18,) * 200), ((2,) * 200, (3,) * 200)):
        assert "Left out" in check_size(explain_shapes(*shapes))
    with pytest.raises(ShapeError, match="at most 200 axes to explain, got one of 201"):
        explain_shapes((1,) * 201)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_einsums_of_many_operands(data: st.DataObject) -> None:
    count, letters = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 12))
    terms = [
        "".join(data.draw(st.lists(st.sampled_from(LETTERS[:letters]), max_size=6, unique=True)))
        for _ in range(count)
    ]
    used = sorted(set("".join(terms)))
    output = "".join(data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))])
    lengths = {letter: data.draw(st.sampled_from([1, 2, 3, 8, 100])) for letter in used}
    shapes = [tuple(lengths[letter] for letter in term) for term in terms]
    check_size(xarr.explain_einsum(f"{','.join(terms)}->{output}", *shapes))


def test_einsums_of_all_letters() -> None:
    for count in (2, 4, 26):
        terms = [LETTERS[:26]] * count if count < 5 else [LETTERS[n : n + 2] for n in range(25)]
        shapes = [(2,) * len(term) for term in terms]
        check_size(xarr.explain_einsum(f"{','.join(terms)}->", *shapes))


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_of_any_number_of_replicas(name: str) -> None:
    for replicas in (1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 48, 63, 64):
        for elements in (1, 100_000):
            html = check_size(xarr.explain_collective(name, f"f32[{replicas * elements}]", replicas))
            assert "<svg" in html, "the picture is folded, not left out"


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from([1, 2, 3, 50, 10**6]), min_size=1, max_size=30), names, st.data())
def test_reductions_layouts_and_windows_of_any_rank(shape: list[int], name: str, data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True))
    check_size(xarr.explain_reduce(tuple(shape), axes, op="mean", name=name))
    check_size(xarr.explain_layout(tuple(shape), data.draw(st.permutations(range(len(shape)))), name=name))
    window = [min(size, 3) for size in shape]
    padding = [(data.draw(st.integers(-1, 2)), 1) for _ in shape]
    check_size(xarr.explain_window(tuple(shape), window, padding=padding, window_dilation=2, name=name))


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 30), st.integers(1, 40), st.integers(1, 50))
def test_products_indices_gathers_and_promotions(rank: int, count: int, rows: int) -> None:
    batch = (2,) * min(rank, 20)
    check_size(xarr.explain_matmul((*batch, 3, 4), (*batch, 4, 5), names=['"' * 300, "b"]))
    check_size(xarr.explain_matmul((*batch, 3, 4), (*(3,) * len(batch), 5, 5)))
    check_size(xarr.explain_index((9,) * rank, (slice(1, 5), *([None] * count), ..., [0] * rows)))
    dimensions = GatherDimensionNumbers(tuple(range(1, rank)), (0,), (0,))
    check_size(xarr.explain_gather((9,) * rank, (rows, 1), dimensions, (1, *(2,) * (rank - 1))))
    check_size(xarr.explain_dtype(*["int8", "uint8"] * count, names=["n" * rows] * 2 * count))


# --- the parts ----------------------------------------------------------------------------------------


def test_all_is_shown_where_there_is_space() -> None:
    fold = PageFold()
    assert fold.text("x" * 10_000) == "x" * 10_000 and fold.words("there") == ""
    assert "Left out" not in explain_shapes((5, 1), (5,)).html()


def test_each_part_says_what_it_leaves_out() -> None:
    fold = PageFold(SMALL)
    assert fold.text("a" * 20 + "b" * 20) == "a" * 17 + "\N{HORIZONTAL ELLIPSIS}" + "b" * 10
    assert fold.code("Loop", "1\n2\n3\n4\n5") == "1\n\N{HORIZONTAL ELLIPSIS}\n5"
    rows = [[f"{row}{column}" for column in range(6)] for row in range(7)]
    assert fold.table(rows, "…") == [
        ["00", "01", "…", "05"],
        ["…", "…", "…", "…"],
        ["50", "51", "…", "55"],
        ["60", "61", "…", "65"],
    ]
    assert fold.some([1, 2, 3], "suggestion") == [1, 2] and fold.some([1], "entry") == [1]
    assert fold.steps([PictureStep("n", "t" * 99)])[0].text.startswith("ttt")
    assert fold.picture("<svg/>") == "<svg/>" and fold.table([], "…") == []
    assert fold.words("It is there.") == (
        "Left out, to keep this small: the middle of long texts, 3 of 5 lines of “Loop”, 4 of 7 rows of the table, "
        "3 of 6 columns of the table, 1 of 3 suggestions. It is there."
    )
    last = PageFold(MEASURES[-1])
    assert last.picture("<svg/>") == "" and last.picture("") == "" and "the picture" in last.words("")


@given(st.text(), st.integers(12, 60))
def test_a_text_is_cut_to_bytes_of_its_escaped_form(text: str, most: int) -> None:
    from html import escape

    shown = cut_middle(text, most)
    assert count_bytes(escape(shown)) <= most
    assert (shown == text) == (count_bytes(escape(text)) <= most)


def test_a_body_that_is_not_folded_is_noticed() -> None:
    """The bound holds by the folds alone."""
    assert len(fold_fragment(lambda fold: "x" * 40_000, "")) > MOST_BYTES
    assert len(fold_fragment(lambda fold: fold.text("x" * 40_000), "")) < MOST_BYTES


def test_text_and_facts_have_what_the_fragment_leaves_out() -> None:
    explanation = explain_shapes(*[(n % 2 + 1, 3, 2) for n in range(40)], op="maximum")
    html, text = explanation.html(), explanation.text()
    assert "rows of the table" in html
    assert all(f"x{n}" in text for n in range(40)) and len(explanation.to_dict()["axes"]) == 40
    assert np.prod(explanation.to_dict()["result"]) == 12
