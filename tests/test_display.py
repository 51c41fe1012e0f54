"""What an Array shows of itself, and what that costs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import xarr
from xarr import display


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
