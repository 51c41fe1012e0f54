"""The warning for lines that read or write single elements, by counts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.errors import ElementLoopWarning
from xarr.indexing import element_loops, small_parts


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch, python_methods: None) -> Iterator[None]:
    """A limit that a test reaches soon, and tables of its own."""
    monkeypatch.setattr(element_loops, "LIMIT", 30)
    monkeypatch.setattr(small_parts, "LIMIT", 30)
    element_loops.forget()
    yield
    element_loops.forget()


def record_warnings(function: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    assert all(each.category is ElementLoopWarning and each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught]


def reads(count: int, index: Any = 0, shape: Any = 3) -> Callable[[], object]:
    x = xarr.ones(shape)

    def loop() -> None:
        for _ in range(count):
            x[index]

    return loop


def writes(count: int, index: Any = 0, shape: Any = 3) -> Callable[[], object]:
    x = xarr.ones(shape)

    def loop() -> None:
        for _ in range(count):
            x[index] = 2

    return loop


@pytest.mark.parametrize("loop", [reads, writes])
@pytest.mark.parametrize(
    ("index", "shape"),
    [(0, 3), (-1, 3), ((1,), 3), ((1, -1), (2, 3)), (np.int64(1), 3), (xarr.asarray(1), 3)],
    ids=repr,
)
def test_single_elements_are_counted_and_one_warning_names_the_line_and_the_ways_out(
    loop: Any, index: Any, shape: Any
) -> None:
    assert record_warnings(loop(29, index, shape)) == []
    (text,) = record_warnings(loop(100, index, shape))
    for word in ("whole array", "lax.fori_loop", "xarr.jit", "tolist", "test_element_loops.py:"):
        assert word in text
    assert record_warnings(loop(100, index, shape)) == []


@pytest.mark.parametrize("loop", [reads, writes])
@pytest.mark.parametrize(
    ("index", "shape"),
    [
        (slice(0, 1), 3),
        (0, (2, 3)),
        ((0, slice(None)), (2, 3)),
        (..., 3),
        ([0], 3),
        ((0, [1]), (2, 3)),
        ((), ()),
    ],
    ids=str,
)
def test_whole_parts_are_not_counted(loop: Any, index: Any, shape: Any) -> None:
    assert record_warnings(loop(100, index, shape)) == []


def test_two_elements_of_one_line_draw_one_warning() -> None:
    x = xarr.zeros(4)

    def loop() -> None:
        for _ in range(50):
            x[1] = x[2] + x[3]

    assert len(record_warnings(loop)) == 1


def test_iterations_are_counted_at_their_line() -> None:
    x = xarr.ones(20)

    def loop() -> None:
        for _ in range(4):
            sum(x)

    (text,) = record_warnings(loop)
    assert "sum(x)" in text
    assert record_warnings(lambda: [row for row in xarr.ones((100, 2))]) == []
    assert len(record_warnings(lambda: list(xarr.ndenumerate(xarr.ones((6, 6)))))) == 1


def test_unrolled_loops_of_traced_functions_are_counted() -> None:
    def total(x: Any) -> Any:
        result = x[0]
        for i in range(1, 40):
            result = result + x[i]
        return result

    assert len(record_warnings(lambda: xarr.jit(total)(xarr.ones(40)))) == 1


def test_the_table_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(element_loops, "_MOST", 8)
    x = xarr.ones(3)
    for _ in range(20):
        exec("x[0]", {"x": x})  # each is a code of its own
    assert len(element_loops.counts) <= 8
    assert record_warnings(reads(100)) != []


def test_a_warning_that_is_an_error_leaves_the_array_as_it_was() -> None:
    x = xarr.zeros(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ElementLoopWarning)
        with pytest.raises(ElementLoopWarning):
            for i in range(40):
                x[0] = i
    assert x[0] == 28
