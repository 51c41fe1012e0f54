"""`explain_gather` and `explain_scatter`: the loops that they show compute what lax computes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from random import Random
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.draws.indexing import layout
from xarr import lax
from xarr.base.canvas import CHARACTER
from xarr.errors import InputError, ShapeError

ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
INTO_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))


@pytest.mark.parametrize("seed", range(60))
def test_loops_compute_what_lax_computes(seed: int) -> None:
    random = Random(seed)
    form = layout(random)
    generator = np.random.default_rng(seed)
    operand, indices = generator.normal(size=form.operand), generator.integers(-1, 4, form.indices)
    updates = generator.normal(size=form.windowed)
    dims = (form.window_dims, form.left_out, form.index_map, form.batching, form.own_batching)
    numbers = lax.GatherDimensionNumbers(*dims)
    shown = xarr.explain_gather(
        form.operand, form.indices, numbers, form.sizes, index_vector_dim=form.vector_dim
    )
    result = np.full(form.windowed, np.nan)
    exec(shown.loops, {"operand": operand, "start_indices": indices, "result": result})
    assert_same(lax.gather(operand, indices, numbers, form.sizes, index_vector_dim=form.vector_dim), result)

    into = lax.ScatterDimensionNumbers(*dims)
    shown = xarr.explain_scatter(
        form.operand, form.indices, form.windowed, into, index_vector_dim=form.vector_dim
    )
    result = operand.copy()
    exec(
        shown.loops,
        {"scatter_indices": indices, "updates": updates, "result": result, "f": lambda a, b: a * 0.5 + b},
    )
    outputs = lax.scatter_with(
        operand, indices, updates, lambda a, b: a * 0.5 + b, into, index_vector_dim=form.vector_dim
    )
    assert_same(outputs, result)


def test_text_of_a_gather() -> None:
    numbers = lax.GatherDimensionNumbers((3, 4), (1,), (2, 1), (0,), (1,))
    text = str(xarr.explain_gather((2, 3, 4, 2), (2, 2, 3, 2), numbers, (1, 1, 2, 2)))
    assert (
        text
        == """\
gather: operand (2, 3, 4, 2), start_indices (2, 2, 3, 2) -> result (2, 2, 3, 2, 2)
12 windows of (1, 1, 2, 2) are read, one for each index vector; starts are clamped so that windows fit

dimensions of the result:
  0  size 2    batch    runs over start_indices dimension 0
  1  size 2    batch    runs over start_indices dimension 1
  2  size 3    batch    runs over start_indices dimension 2
  3  size 2    offset   runs over the window in operand dimension 2
  4  size 2    offset   runs over the window in operand dimension 3

dimensions of the operand:
  0  size 2    window 1    batching  runs along with start_indices dimension 1
  1  size 3    window 1    collapsed starts at component 1 of the index vector
  2  size 4    window 2    window    starts at component 0 of the index vector
  3  size 2    window 2    window    starts at 0

steps:
  1 index: start_indices[0, 0, 1, :] is, for example, [0, 0]: the window of result[0, 0, 1, :, :]
    starts at 0 along dimension 2 and 0 along dimension 1
  2 bounds: a window of (1, 1, 2, 2) fits at starts up to [1, 2, 2, 0]: [0, 0, 0, 0] stays
  3 slice: the window of (1, 1, 2, 2) there is operand[0, 0, 0:2, 0:2]
  4 result: it becomes result[0, 0, 1, :, :]
      result[0, 0, 1, :, :] = operand[0, 0, 0:2, 0:2]
  5 every window: 12 windows

for b0 in range(2):
    for b1 in range(2):
        for b2 in range(3):
            s2 = min(max(start_indices[b0, b1, b2, 0], 0), 2)
            s1 = min(max(start_indices[b0, b1, b2, 1], 0), 2)
            for w0 in range(2):
                for w1 in range(2):
                    result[b0, b1, b2, w0, w1] = operand[b1, s1, s2 + w0, w1]
"""
    )


def test_text_of_a_scatter() -> None:
    text = xarr.explain_scatter(
        (4, 5), (1,), (5, 1), lax.ScatterDimensionNumbers((0,), (0,), (0,)), index_vector_dim=1
    ).text()
    assert (
        "1 window of (1, 5) is written in this order, one for each index; "
        "a window that does not fit is left out" in text
    )
    assert "  0  size 4    window 1    inserted  starts at the index\n" in text
    assert "            result[s0, w0] = f(result[s0, w0], updates[w0, b0])\n" in text


def cells_of(svg: str, count: int) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]:
    """(style without steps, text, title) of each of `count` index vectors, and of the other cells of a picture."""
    tree = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    cells = [
        (
            re.sub(r" [ph]\d", "", group.get("class", "")),
            group.findtext(f"{space}text", ""),
            group.findtext(f"{space}title", ""),
        )
        for group in tree.iter(f"{space}g")
    ]
    return cells[:count], cells[count:]


def test_picture_of_a_gather() -> None:
    """Rows 2 and (9, clamped) 3 of four: two indices, eight cells of the operand, two of each window, in its colour."""
    vectors, texts = cells_of(xarr.explain_gather((4, 2), (2, 1), ROWS, (1, 2), indices=[[2], [9]]).svg(), 2)
    assert vectors == [("c o0", "[2]", "start [2, 0]"), ("x", "[9]", "start [9, 0]")]
    assert [text for _, text, _ in texts] == [
        "0,0",
        "0,1",
        "1,0",
        "1,1",
        "2,0",
        "2,1",
        "3,0",
        "3,1",
        "2,0",
        "2,1",
        "3,0",
        "3,1",
    ]
    assert [style for style, _, _ in texts] == ["v"] * 4 + ["c o0"] * 2 + ["c o1"] * 2 + ["c o0"] * 2 + [
        "c o1"
    ] * 2
    assert texts[4][2] == "operand[2, 0]: windows [0]"


def test_picture_of_a_scatter_shows_overlap_and_what_is_left_out() -> None:
    explained = xarr.explain_scatter((3, 1), (3, 1), (3, 1), INTO_ROWS, indices=[[1], [-1], [1]])
    vectors, texts = cells_of(explained.svg(), 3)
    assert [style for style, _, _ in vectors] == ["c o0", "x", "c o2"]
    assert [text for _, text, _ in texts[:3]] == ["1,0", "left out", "1,0"]
    assert texts[4] == ("c o2", "1,0", "result[1, 0]: windows [0, 2]")


@pytest.mark.parametrize(
    ("shape", "count"),
    [((), 0), ((10**9, 10**9), 1), ((0,), 1), ((7,), 1), ((40,), 1), ((30, 30), 2), ((3, 0), 2), ((1, 1), 2)],
    ids=str,
)
def test_pictures_of_all_sizes_are_well_formed(shape: tuple[int, ...], count: int) -> None:
    numbers = lax.GatherDimensionNumbers(tuple(range(1, len(shape) + 1)), (), tuple(range(count)))
    explained = xarr.explain_gather(shape, (9, count), numbers, tuple(min(2, size) for size in shape))
    ElementTree.fromstring(explained.svg())
    assert ("the starts are an example" in explained.svg()) == (count > 0)
    assert explained._repr_svg_() == explained.svg()


def test_no_picture_above_rank_2() -> None:
    explained = xarr.explain_gather(
        (2, 2, 2), (1, 1), lax.GatherDimensionNumbers((1, 2), (0,), (0,)), (1, 2, 2)
    )
    assert explained._repr_svg_() is None
    with pytest.raises(
        ShapeError, match=r"wanted an operand of at most 2 dimensions to draw, got shape \(2, 2, 2\)"
    ):
        explained.svg()


def assert_refused(error: type[Exception], match: str, *arguments: Any, **options: Any) -> None:
    with pytest.raises(error, match=match):
        xarr.explain_gather(*arguments, **options)


def test_wrong_arguments() -> None:
    assert_refused(ShapeError, r"gather \[C21\]", (4, 5), (3, 1), ROWS, (1, 6))
    assert_refused(
        InputError, "wanted GatherDimensionNumbers for dimension_numbers, got 3", (4, 5), (3, 1), 3, (1, 5)
    )
    assert_refused(InputError, "wanted a sequence of ints for a shape, got 4.5", 4.5, (3, 1), ROWS, (1, 5))
    assert_refused(InputError, "wanted an int for slice_sizes, got 'a'", (4, 5), (3, 1), ROWS, "ab")
    assert_refused(
        ShapeError, r"wanted sizes of 0 or more, got the shape \(-1, 5\)", (-1, 5), (3, 1), ROWS, (1, 5)
    )
    assert_refused(ShapeError, "index_vector_dim=0 takes them as scalars", (4, 5), (), ROWS, (1, 5))
    assert_refused(
        InputError,
        r"wanted integer indices of shape \(3, 1\), got int64 of \(2,\)",
        (4, 5),
        (3, 1),
        ROWS,
        (1, 5),
        indices=[1, 2],
    )
    assert_refused(InputError, r"got float64 of \(1, 1\)", (4, 5), (1, 1), ROWS, (1, 5), indices=[[0.5]])
    with pytest.raises(ShapeError, match=r"scatter \[C4\]"):
        xarr.explain_scatter((4, 5), (3, 1), (2, 5), INTO_ROWS)


# --- arrays and functions ----------------------------------------------------------------------------


def test_arrays_show_where_their_elements_go() -> None:
    x, indices = xarr.asarray(np.arange(8.0).reshape(4, 2)), np.array([[2], [9], [-1]])
    for vectors in (indices, xarr.asarray(indices), indices.tolist()):
        shown = xarr.explain_gather(x, vectors, ROWS, (1, 2))
        assert shown == xarr.explain_gather((4, 2), (3, 1), ROWS, (1, 2))
        assert (
            "with these indices:\n"
            "  result[0, :] <- operand[2, 0:2]\n"
            "  result[1, :] <- operand[3, 0:2]: start [9, 0] is out of bounds, clamped\n"
            "  result[2, :] <- operand[0, 0:2]: start [-1, 0] is out of bounds, clamped\n"
        ) in shown.text()
        assert "result[1, :] out of bounds: [9, 0], clamped" in shown.svg()
    assert "with these indices" not in xarr.explain_gather((4, 2), (3, 1), ROWS, (1, 2)).text()


def test_arrays_of_a_scatter() -> None:
    shown = xarr.explain_scatter(np.zeros((3, 1)), np.array([[1], [5]]), np.ones((2, 1)), INTO_ROWS)
    assert "  updates[0, :] -> result[1, 0:1]\n" in shown.text()
    assert "  updates[1, :] is left out: start [5, 0] is out of bounds\n" in shown.text()
    assert "updates[1, :] out of bounds: [5, 0]" in shown.svg()


def test_long_lists_of_windows_are_cut_off() -> None:
    text = xarr.explain_gather((4, 2), np.zeros((20, 1), int), ROWS, (1, 2)).text()
    assert "  result[11, :] <- operand[0, 0:2]\n  and 8 more\n" in text


@pytest.mark.usefixtures("recorded")
def test_functions_and_arrays_not_yet_evaluated() -> None:
    x, i = xarr.asarray(np.arange(8.0).reshape(4, 2)), xarr.asarray(np.array([2, 0]))
    for shown in (
        xarr.explain_gather(lambda: lax.take(x, i, axis=0)),
        xarr.explain_gather(lax.take(x, i, axis=0)),
    ):
        assert shown.is_gather and shown.windows.operand_shape == (4, 2)
        assert "result[0, :] <- operand[2, 0:2]" in shown.text()
    added = xarr.explain_scatter(lambda: lax.scatter_add(x, i[:, None], np.ones((2, 2)), INTO_ROWS))
    assert "updates[0, :] -> result[2, 0:2]" in added.text()


def test_indices_without_values_are_drawn_as_an_example() -> None:
    def function(x: Any, i: Any) -> Any:
        results.append(xarr.explain_gather(lambda: lax.gather_rows(x, i)))
        return x

    results: list[Any] = []
    xarr.lower(function, "f32[4,2]", "s64[3]")
    assert results[0].starts is None
    assert "the starts are an example" in results[0].svg()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (lambda: xarr.asarray(np.zeros(3)), "wanted one gather to explain, got 0"),
        (3, "wanted operand, indices and dimension numbers, or a function; got 3"),
        (lambda: [lax.gather_rows(np.zeros((2, 2)), np.array([0])) for _ in range(2)], "got 2"),
    ],
    ids=["none", "no function", "two"],
)
def test_what_holds_no_single_gather_is_refused(argument: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        xarr.explain_gather(argument)


@pytest.mark.parametrize(
    ("method", "line"),
    [
        ("add", "result[s0] += updates[b0]"),
        ("subtract", "result[s0] -= updates[b0]"),
        ("multiply", "result[s0] *= updates[b0]"),
        ("set", "result[s0] = updates[b0]"),
        ("max", "result[s0] = max(result[s0], updates[b0])"),
        ("min", "result[s0] = min(result[s0], updates[b0])"),
        ("power", "result[s0] = f(result[s0], updates[b0])"),
    ],
)
@pytest.mark.usefixtures("unfused")
def test_loops_of_updates_say_what_they_do(method: str, line: str) -> None:
    # Without compiled loops, whose powers may lie 1 ULP from those of the C library, which `pow` calls.
    x, i = xarr.arange(5.0), np.array([0, 0, 2])
    updates = np.array([3.0, 2.0, 0.5])
    change = getattr(x.at[xarr.asarray(i)], method)
    shown = xarr.explain_scatter(lambda: change(xarr.asarray(updates)))
    assert line in str(shown)
    result = np.arange(5.0)
    exec(shown.loops, {"scatter_indices": i, "updates": updates, "result": result, "f": pow})
    assert_same(change(xarr.asarray(updates)), result)


def test_labels_of_windows_are_inside_the_picture() -> None:
    numbers = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1))
    starts = [[0, 1], [3, 3], [9, 9], [500, 5], [6, 6], [7, 7]]
    root = ElementTree.fromstring(xarr.explain_gather((50, 50), starts, numbers, (12, 12)).svg())
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    (label,) = [each for each in texts if (each.text or "").endswith("] out of bounds: [500, 5], clamped")]
    end = float(label.get("x", "")) + 12 * CHARACTER * len(str(label.text))
    assert end <= float(root.get("width", ""))


@pytest.mark.parametrize(
    ("indices", "words"),
    [
        ([[9], [9]], "2 windows, all of them left out"),
        ([[0], [9]], "2 windows, in this order: where they overlap, one finds what those before it wrote"),
    ],
)
def test_the_last_step_of_a_scatter(indices: list[list[int]], words: str) -> None:
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    assert xarr.explain_scatter((4,), indices, (2,), numbers).steps()[-1].text == words
