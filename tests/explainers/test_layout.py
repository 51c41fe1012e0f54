"""`explain_layout`: the loop fills memory as NumPy and the layout do."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import xarr
from tests.support.explained import check_views, run_loop
from xarr.errors import InputError, ParseError, ShapeError


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 3), (2, 3, 4), (2, 1, 2, 3)], ids=str)
def test_memory_is_numpys(shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    for order in permutations(range(len(shape))):
        explanation = xarr.explain_layout(x.shape, order)
        memory = run_loop(explanation.loop, np.full(x.size, np.nan), x=x)
        assert explanation.numpy is not None
        laid = eval(explanation.numpy, {"np": np, "x": x})
        assert [step // 8 for step, size in zip(laid.strides, shape, strict=True) if size > 1] == [
            step for step, size in zip(explanation.strides, shape, strict=True) if size > 1
        ]
        np.testing.assert_array_equal(memory, laid.ravel(order="K"))
        check_views(explanation)


@pytest.mark.parametrize(
    "view",
    [
        np.arange(24.0).reshape(4, 6)[::2, ::-1],
        np.broadcast_to(np.arange(3.0), (2, 3)),
        np.arange(24.0).reshape(2, 3, 4)[:, 1],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((0, 3)),
    ],
    ids=["reversed", "repeated", "cut", "fortran", "empty"],
)
def test_views_of_memory(view: Any) -> None:
    explanation = xarr.explain_layout(view)
    assert [step * 8 for step in explanation.strides] == list(view.strides) or not view.size
    check_views(explanation)
    if not view.size:
        return
    memory = run_loop(explanation.loop, np.full(100, np.nan), x=view)
    assert sorted(set(memory[~np.isnan(memory)])) == sorted(set(view.ravel()))


def test_text() -> None:
    text = xarr.explain_layout("f32[3,4]", "{0,1}").text()
    assert text == (
        """\
x: f32[3,4], layout {0,1} (column-major, Fortran order)

  axis      0                       1
  size      3                       4
  stride    1 element               3 elements
  in bytes  4                       12
  how       most minor, contiguous  most major

  steps     1 first element: x[0,0] lies first, at offset 0
            2 axis 0: 1 element, 4 bytes from one to the next: at offsets 0, 1, 2
                x[0,0], x[1,0], x[2,0]
            3 axis 1: 3 elements, 12 bytes from one to the next: at offsets 0, 3, 6, 9
                x[0,0], x[0,1], x[0,2], x[0,3]
            4 every element: each index times the stride of its axis
                x[i,j] lies at i * 1 + j * 3
  loop      for j in range(4):
                for i in range(3):
                    memory[j * 3 + i] = x[i, j]
  NumPy     np.asfortranarray(x)
  XLA       f32[3,4]{0,1}
  memory    12 elements of 4 bytes, 48 B
  reads     3 elements along axis 0 lie in 1 line, 4 elements along axis 1 lie in 1 line of 64 bytes

  other layouts:
      {1,0}   ->  strides (4, 1)"""
    )


def test_padding_is_shown() -> None:
    explanation = xarr.explain_layout((2, 3), "{1,0:pad(2,4)}")
    assert "8 elements, 2 of them padding" in explanation.text()
    assert explanation.to_dict()["allocated"] == 8
    check_views(explanation)


def test_an_arrays_own_layout() -> None:
    assert xarr.explain_layout(xarr.ones((2, 3))).to_dict()["layout"] == "{1,0}"


def test_malformed() -> None:
    with pytest.raises(ParseError):
        xarr.explain_layout((2, 3), "{1,0")
    with pytest.raises(ShapeError, match="orders 1 dimension"):
        xarr.explain_layout((2, 3), (0,))
    with pytest.raises(InputError, match="wanted a Layout"):
        xarr.explain_layout((2, 3), 1.5)


@pytest.mark.parametrize("layout", ["{0,1}", "{1,0}"])
def test_the_loop_of_an_empty_array_begins_where_any_other_does(layout: str) -> None:
    assert "memory[i * 3 + j]" in xarr.explain_layout("f32[0,3]", "{1,0}").loop
    assert xarr.explain_layout("f32[0,3]", layout).to_dict()["allocated"] == 0
    assert " + 1]" not in xarr.explain_layout("f32[0,3]", layout).loop


@pytest.mark.parametrize("seed", range(30))
def test_memory_has_an_element_wherever_one_lies(seed: int) -> None:
    """Of random views: transposed, backwards, with gaps, repeated, overlapping."""
    random = Random(seed)
    whole = np.zeros([random.randint(1, 4) for _ in range(random.randint(1, 3))])
    view = whole.transpose(random.sample(range(whole.ndim), whole.ndim))
    view = view[tuple(slice(None, None, random.choice([1, -1, 2, -2])) for _ in range(view.ndim))]
    if seed % 3 == 0:
        view = np.broadcast_to(view, (2, *view.shape))
    if seed % 2 == 0 and view.shape[-1] > 1:
        view = np.lib.stride_tricks.sliding_window_view(view, 2, axis=-1)
    shown = xarr.explain_layout(view)
    offsets = sorted({shown.offset(index) for index in np.ndindex(view.shape)})
    assert shown.steps()[0].text.endswith("lies first, at offset 0")
    appearing = [key for step in shown.steps() for key in step.shows]
    assert len(set(appearing)) == len(appearing)
    svg = shown.svg()
    for at in (offset - offsets[0] for offset in offsets if offset - offsets[0] < 14):
        assert f"offset {at}<" in svg and (at == 0 or f"m:{at}" in appearing)
    if len(shown.steps()) > 1:
        formula = shown.steps()[-1].code.split("lies at ")[1]
        for index in np.ndindex(view.shape):
            assert eval(formula, dict(zip("ijklm", index, strict=False))) == shown.offset(index) - offsets[0]


def test_views_are_explained_without_copies_of_them() -> None:
    view = np.broadcast_to(np.zeros(1, np.float32), (10**6, 10**6))
    for explained in (xarr.explain_layout(view), xarr.explain_layout(view.T, "{0,1}")):
        check_views(explained)
        assert explained.operand.label == "f32[1000000,1000000]"
    assert "repeated, not stored" in xarr.explain_layout(view).text()


def test_names_of_arrays_are_cleaned_too() -> None:
    explanation = xarr.explain_layout(np.zeros((1, 3)), name="x\x00y")
    ElementTree.fromstring(explanation.svg())
    assert "\x00" not in explanation.html() + explanation.text()
