"""What an Array shows of itself, and what that costs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.errors import pluralize
from xarr.runtime import display

#: About names, texts and the memory of the NumPy backend.
pytestmark = pytest.mark.usefixtures("on_numpy")


def test_a_small_pending_array_shows_its_values() -> None:
    assert repr(xarr.ones(2) + 1) == "Array([2., 2.], dtype=float64)"


def test_a_large_pending_array_says_so_and_stays_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "LARGEST", 10)
    x = (xarr.ones((3, 4)) + 1) * 2
    shown = repr(x)
    assert re.fullmatch(
        r"Array\(<not computed: \d ops over \d\d elements>, shape=\(3, 4\), dtype=float64; "
        r"x\.evaluate\(\) or print\(x\) computes it\)",
        shown,
    )
    assert "not computed" in x._repr_html_()
    assert not x.is_evaluated
    assert str(x).startswith("[[4. 4.")
    assert repr(x).startswith("Array([[4., 4.")


def test_a_small_result_of_much_work_counts_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "LARGEST", 1000)
    total = xarr.sum(xarr.ones((100, 100)) * 2)
    assert "not computed" in repr(total)
    assert not total.is_evaluated


def test_a_very_long_graph_is_not_walked_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "_MOST_NODES", 20)
    x = xarr.ones(2)
    with xarr.config(small_arrays="lazy"):
        for _ in range(30):
            x = x + 1
    assert "more than 20 ops" in repr(x)
    assert not x.is_evaluated


@pytest.mark.parametrize(
    "shape", [(), (5,), (3, 4), (2, 3, 4), (8, 3, 5, 6), (0, 3), (1_000_000, 3)], ids=str
)
def test_the_notebook_view_is_well_formed(shape: tuple[int, ...]) -> None:
    x = xarr.zeros(shape, dtype="float32")
    root = ElementTree.fromstring(x._repr_html_())
    told = " ".join(root.itertext())
    assert str(shape) in told
    assert "float32" in told
    assert "numpy" in told
    for size in shape:
        assert str(size) in "".join(ElementTree.fromstring(display.shape_svg(shape)).itertext())


def test_the_notebook_view_of_a_value_has_its_layout() -> None:
    assert "layout" in xarr.asarray(np.zeros((2, 3)))._repr_html_()


def test_a_traced_array_shows_its_type() -> None:
    seen: list[str] = []
    xarr.jit(lambda x: seen.append(x._repr_html_()) or x)(xarr.ones(3))  # type: ignore[func-returns-value]
    assert "traced" in seen[0]
    assert ElementTree.fromstring(seen[0]) is not None


def test_other_backends_are_named() -> None:
    assert "backend=reference" in repr(xarr.ones(2).to("reference"))
    assert "reference" in xarr.ones(2).to("reference")._repr_html_()


def test_a_notebook_shows_values_first_in_columns_and_folds_the_rest() -> None:
    root = ElementTree.fromstring(xarr.asarray(np.eye(2))._repr_html_())
    values, folded = list(root)
    assert values.tag == "pre"
    assert values.text == "Array([[1., 0.],\n       [0., 1.]], dtype=float64)"
    assert "monospace" in values.attrib["style"]
    assert folded.tag == "details"
    assert "open" not in folded.attrib
    summary, *rest = list(folded)
    assert summary.text == "shape (2, 2), float64"
    told = " ".join("".join(each.itertext()) for each in rest)
    for word in ("4 elements", "32 bytes", "numpy", "{1,0}"):
        assert word in told


def test_a_notebook_shows_why_there_are_no_values() -> None:
    large = xarr.zeros((5_000, 5_000)) + 1
    values, _ = list(ElementTree.fromstring(large._repr_html_()))
    assert values.text is not None
    assert values.text.startswith("not computed: 3 ops over 75,000,000 elements; x.evaluate()")
    assert not large.is_evaluated


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (1, "element", "1 element"),
        (0, "element", "0 elements"),
        (10**12, "element", "1,000,000,000,000 elements"),
        (1, "axis", "1 axis"),
        (2, "axis", "2 axes"),
        (2, "entry", "2 entries"),
    ],
)
def test_numbers_of_things(number: int, noun: str, words: str) -> None:
    assert pluralize(number, noun) == words


def test_one_element_is_singular() -> None:
    assert ">1 element, 8 bytes<" in xarr.ones(1)._repr_html_()
    assert ">1 element, 1 byte<" in xarr.ones((), dtype="int8")._repr_html_()


@pytest.mark.implicit
def test_what_is_text_shows_itself_without_print() -> None:
    x, v = xarr.ones((3, 4)), xarr.ones(4)
    lowered = xarr.lower(lambda x, v: x + v, x, v)
    shown: list[Any] = [
        lowered,
        lowered.stage("program"),
        xarr.lower(lambda x: x + 1, "f32[2]").stage("fused"),
        xarr.make_explicit(lambda x, v: x + v, x, v),
        xarr.explain("(3,4) + (4,)"),
        xarr.explain(lambda: x + v),
        xarr.explain_index(x, 0),
        xarr.explain_gather(lambda: x[xarr.asarray([0, 1])]),
    ]
    for each in shown:
        lines: list[str] = []
        if hasattr(each, "_repr_pretty_"):
            each._repr_pretty_(SimpleNamespace(text=lines.append), False)
        assert "".join(lines or [repr(each)]) == str(each)
    backends = [xarr.lower(lambda x: x, "f32[2]"), xarr.make_explicit(lambda x: x), lowered.graph]
    assert not any(" at 0x" in repr(each) for each in [*shown, *backends])
    assert (
        repr(lowered.graph) == "<graph <lambda>(tensor<3x4xf64>, tensor<4xf64>) -> tensor<3x4xf64>, 2 nodes>"
    )
