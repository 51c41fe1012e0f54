"""`explain_index`: the shapes and origins that it tells are those of the result."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

import xarr
from tests.indexing.test_advanced import read
from tests.support import fuzz
from tests.support.draws.indices import Index, count_up, indices
from xarr import lax
from xarr.errors import IndexingError, ShapeError, TracedValueError

pytestmark = pytest.mark.implicit


@fuzz.examples(25)
@given(indices())
def test_what_it_tells_is_what_happens(index: Index) -> None:
    x = count_up(index.shape)
    wanted = read(x, index.host)
    assume(wanted is not IndexError)
    explanation = xarr.explain_index(index.shape, index.own)
    assert explanation.result == wanted.shape
    for line in explanation.elements:
        scope = {"x": x, "result": wanted}
        ours, theirs = line.split(" = ")
        assert eval(_with_empty_index(ours), scope) == eval(_with_empty_index(theirs), scope)
    assert str(wanted.shape) in explanation.text().splitlines()[0]
    ElementTree.fromstring(explanation.svg())


def _with_empty_index(text: str) -> str:
    return text.replace("[]", "[()]")


def test_text() -> None:
    text = str(xarr.explain_index((3, 4, 5, 2), xarr.s_[[0, 1], ..., None, [[1], [0]]]))
    assert (
        text == """\
x[[0, 1], ..., None, [[1], [0]]] of x with shape (3, 4, 5, 2) -> (2, 2, 4, 5, 1)

items of the index:
  [0, 1]      integers (2,)    index dimension 0 (size 3)
  ...         ...              keeps dimensions 1, 2 (size 4 × 5)
  None        None             a new dimension of size 1
  [[1], [0]]  integers (2, 1)  index dimension 3 (size 2)

index arrays: [0, 1], [[1], [0]] broadcast to (2, 2)
  other items stand between them, so that their dimensions come first in the result

dimensions of the result:
  0  size 2     dimension 0 of the index arrays
  1  size 2     dimension 1 of the index arrays
  2  size 4     dimension 1 of x
  3  size 5     dimension 2 of x
  4  size 1     new

steps:
  1 [...]: keeps dimensions 1, 2 (size 4 × 5)
  2 [None]: a new dimension of size 1
  3 index arrays: [0, 1], [[1], [0]] broadcast to (2, 2); other items stand between them, so that
    their dimensions come first in the result
  4 result: (2, 2, 4, 5, 1): dimension 0 is dimension 0 of the index arrays, 1 is dimension 1 of the
    index arrays, 2 is dimension 1 of x, 3 is dimension 2 of x, 4 is new

in xarr.lax:
  def program(x, captured_0, captured_1):
      v3 = lax.broadcast_in_dim(captured_0, (2, 2), (1,))
      v4 = lax.broadcast_in_dim(v3, (2, 2, 1), (0, 1))
      v5 = lax.broadcast_in_dim(captured_1, (2, 2), (0, 1))
      v6 = lax.broadcast_in_dim(v5, (2, 2, 1), (0, 1))
      v7 = lax.concatenate([v4, v6], 2)
      v8 = lax.gather(x, v7, lax.GatherDimensionNumbers((2, 3), (0, 3), (0, 3), (), ()), (1, 4, 5, 1), """
        """indices_are_sorted=False, index_vector_dim=2)
      v9 = lax.reshape(v8, (2, 2, 4, 5, 1))
      return v9
"""
    )


def test_code_computes_the_result() -> None:
    x = count_up((3, 4), "float64")
    explanation = xarr.explain_index(xarr.asarray(x), (slice(None, None, -1), slice(1, 3)))
    scope: dict[str, Any] = {"lax": lax}
    exec(explanation.code, scope)
    assert np.asarray(scope["program"](xarr.asarray(x))).tolist() == x[::-1, 1:3].tolist()


@pytest.mark.parametrize(
    ("index", "line"),
    [
        (0, "0  int  takes one of dimension 0 (size 3)"),
        (slice(None, None, -1), "::-1  slice  keeps 3 of dimension 0 (size 3), backwards"),
        (
            np.ones((3, 4), bool),
            "boolean mask of shape (3, 4): 12 True  chooses from dimensions 0, 1 (size 3 × 4)",
        ),
        (True, "bool  takes everything or nothing"),
        ((0, 1, ...), "...  stands for no dimension"),
        (([0], 1), "an int counts as an array where there is one"),
        (([0], [1]), "they stand side by side"),
        (np.arange(3).repeat(9), "int64[27]"),
        ((0, 1), "none: one element"),
        (0, "no item is about dimension 1 (size 4): kept"),
        ([1, 2], "result[1, 3] = x[2, 3]"),
    ],
    ids=str,
)
def test_words(index: Any, line: str) -> None:
    flat = " ".join(str(xarr.explain_index((3, 4), index)).split())
    assert " ".join(line.split()) in flat


def test_pictures() -> None:
    explanation = xarr.explain_index((3, 4), xarr.s_[[0, 1], None])
    assert "<svg" in explanation.html()
    assert explanation._repr_html_() == explanation.html()
    texts = [element.text for element in ElementTree.fromstring(explanation.svg()).iter() if element.text]
    for text in ("0: 3", "1: 4", "[0, 1]", "None", "0: 2", "1: 1", "2: 4"):
        assert text in texts


@pytest.mark.usefixtures("recorded")
def test_lazy_arrays_are_not_computed() -> None:
    a = xarr.asarray([1, 2, 3]) + 1
    explanation = xarr.explain_index(a, slice(1, None))
    assert explanation.result == (2,)
    assert not a.is_evaluated


def test_refusals() -> None:
    with pytest.raises(IndexingError, match="index 3 is out of bounds"):
        xarr.explain_index((3,), [3])
    with pytest.raises(ShapeError, match="got 'abc'"):
        xarr.explain_index("abc", 0)
    with pytest.raises(TracedValueError, match=r"x\.shape"):
        xarr.lower(lambda x: xarr.explain_index(x, 0), xarr.zeros(3))


def test_masks_are_called_masks_and_counted() -> None:
    x = xarr.arange(12).reshape(3, 4)
    for mask in (x % 2 == 0, np.arange(12).reshape(3, 4) % 2 == 0):
        text = str(xarr.explain_index(x, mask))
        assert "boolean mask of shape (3, 4): 6 True  chooses from dimensions 0, 1 (size 3 × 4)" in text
        assert "the mask stands for 2 index arrays of shape (6,), one for each of its dimensions" in text
        assert "index arrays: bool" not in text
    rows = str(xarr.explain_index(x, ([True, False, True], [0, 1])))
    assert "boolean mask of shape (3,): 2 True" in rows
    assert "index arrays: [True, False, True], [0, 1] broadcast to (2,)" in rows


def test_elements_of_large_arrays_are_listed_without_their_memory() -> None:
    lists = ([0, 29],) * 10
    explanation = xarr.explain_index((30,) * 10, lists)
    assert explanation.elements[1] == f"result[1] = x{[29] * 10}"
    assert xarr.explain_index((10**9, 2), (slice(0, 2), 0)).elements == ()
    assert xarr.explain_index((10**6,) * 6, ([0],) * 6).elements == ()
    assert xarr.explain_index((), ()).elements == ("result[] = x[]",)
