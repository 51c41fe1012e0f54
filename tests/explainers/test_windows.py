"""`explain_window`: loop, NumPy and explicit program agree for paddings, strides and dilations of any kind."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.explained import check_views, code_of, run_loop, run_program
from xarr.errors import InputError, ShapeError
from xarr.explainers.windows import WINDOW_OPS, WindowsExplanation, elements_read
from xarr.ir.windows import WindowDimension


def draws(count: int) -> list[tuple[Any, ...]]:
    """Shapes, windows, strides, paddings and dilations at random."""
    generator, cases = random.Random(3), []
    for _ in range(count):
        rank = generator.randint(1, 3)
        shape = tuple(generator.randint(1, 6) for _ in range(rank))
        window, strides, base, apart = (
            tuple(generator.randint(1, n) for _ in range(rank)) for n in (3, 3, 2, 2)
        )
        pairs = [(generator.randint(-1, 2), generator.randint(-1, 2)) for _ in range(rank)]
        cases.append((shape, window, strides, generator.choice(["VALID", "SAME", pairs]), base, apart))
    return cases


@pytest.mark.parametrize("op", WINDOW_OPS)
def test_codes_agree(op: str) -> None:
    generator, tried = np.random.default_rng(4), 0
    for case in draws(25):
        x = generator.integers(1, 9, case[0]).astype(float)
        explanation = xarr.explain_window(x, *case[1:], op=op)
        assert isinstance(explanation, WindowsExplanation)
        w = generator.integers(1, 4, explanation.window.sizes).astype(float)
        arrays = (x, w) if op == "conv" else (x,)
        wanted = run_program(code_of(explanation, "explicit"), *arrays)
        assert wanted.shape == explanation.result.shape
        loop = run_loop(explanation.loop, np.empty(wanted.shape), x=x, w=w)
        np.testing.assert_array_equal(loop, wanted)
        if not explanation.fits:
            assert not wanted.size
            continue
        tried += 1
        scope: dict[str, Any] = {"np": np, "x": x, "w": w}
        exec(explanation.numpy, scope)
        np.testing.assert_array_equal(scope["result"], wanted)
    assert tried > 10


def test_text_of_a_pooling() -> None:
    text = xarr.explain_window("f32[6,6]", 3, 2, "SAME").text()
    assert text.startswith(
        """\
max over x: f32[6,6], window (3, 3), strides (2, 2), padding ((0, 1), (0, 1))   ->  f32[3,3]

  axis        0                 1
  x           6                 6
  padded      0 + 6 + 1 = 7     0 + 6 + 1 = 7
  window      3                 3
  stride      2                 2
  result      3                 3
  how         (7 - 3) // 2 + 1  (7 - 3) // 2 + 1
  never read  0                 0
"""
    )
    assert 'padding="VALID"   ->  f32[2,2]' in text


def test_what_is_never_read() -> None:
    facts = xarr.explain_window((8,), 3, 2).to_dict()
    assert facts["never_read"] == [1] and facts["result"] == [3]


@pytest.mark.parametrize(
    "arguments",
    [
        ((6, 6), 3, 2, "SAME"),
        ((8,), 3, 1, [(1, 2)], 2),
        ((7, 7), 2, 1, "VALID", 1, 3),
        ((2,), 3),
        ((100, 100), 5, 3, 2),
        ((3, 4, 5), 2, 1, 1),
        ((0, 3), 1),
        ((), ()),
        ((5,), 3, 1, [(-1, 2)]),
    ],
    ids=str,
)
@pytest.mark.parametrize("op", ["max", "conv"])
def test_views(arguments: Any, op: str) -> None:
    explanation = xarr.explain_window(*arguments, op=op)
    assert check_views(explanation)["result"] == list(explanation.result.shape)


def test_what_does_not_fit_says_why() -> None:
    explanation = xarr.explain_window((2, 5), 3)
    assert not explanation.fits
    assert "axis 0: no window fits, as it covers 3 and there are 2 with padding" in explanation.text()
    assert 'padding="SAME"   ->  (2, 5)' in explanation.text()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (((5,), (3, 3)), ShapeError, r"wanted a positive int, or 1 of them, for window, got \(3, 3\)"),
        (((5,), 3, 0), ShapeError, "for strides, got 0"),
        (((5,), 3, 1, [(1, 1), (0, 0)]), ShapeError, "wanted 1 pairs"),
        (((5,), 3, 1, "FULL"), InputError, "wanted padding to be one of VALID"),
        (((5,), 3, 1, "VALID", 1, 1, "median"), InputError, "wanted op to be one of max, min"),
    ],
)
def test_malformed(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        xarr.explain_window(*arguments)


@pytest.mark.parametrize("seed", range(300))
def test_elements_of_windows_are_those_that_a_walk_finds(seed: int) -> None:
    draw = random.Random(seed).randint
    dimension = WindowDimension(draw(1, 6), draw(1, 4), draw(-3, 5), 0, draw(1, 6), draw(1, 6))
    size, start = draw(0, 8), draw(-9, 20)
    walked = []
    for position in range(dimension.size):
        element, hole = divmod(start + position * dimension.window_dilation, dimension.base_dilation)
        walked += [(element, position)] if not hole and 0 <= element < size else []
    elements, positions = elements_read(dimension, start, size)
    assert list(zip(elements, positions, strict=True)) == walked


def test_windows_of_many_elements_are_counted_not_walked() -> None:
    explained = xarr.explain_window((10**15,), 6 * 10**14, op="sum")
    text = " ".join(explained.text().split())
    assert f"result[{4 * 10**14}] = x[{4 * 10**14}] + " in text and f" + x[{10**15 - 1}]" in text


def test_negative_padding_is_said_to_cut_off() -> None:
    texts = [step.text for step in xarr.explain_window((4, 4), 2, padding=((-1, 2), (1, -2))).steps()]
    assert texts[0].endswith(
        "cuts off 1 before and 0 after along axis 0 and 0 before and 2 after along axis 1"
    )
    assert "around them: 0 before and 2 after along axis 0 and 1 before and 0 after along axis 1" in texts[1]


def test_windows_beyond_64_bits() -> None:
    with pytest.raises(
        ShapeError, match="wanted windows and padded sizes that fit in 64 bits, got 1,099,511"
    ):
        xarr.explain_window((4,), (10**9,), window_dilation=2**40)
