"""`xarr.explain(f)`: products, reductions, windows, gathers and promotions of a program, in the order made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.explained import check_views
from xarr import lax
from xarr.explainers.program import ProgramExplanation

pytestmark = pytest.mark.implicit


def headlines(function: Any, *arguments: Any) -> list[str]:
    """The first line of each step."""
    explanation = xarr.explain(function, *arguments)
    assert isinstance(explanation, ProgramExplanation)
    for step in explanation.steps:
        check_views(step.explanation) if "gather" not in step.explanation.text() else step.html()
    assert explanation.to_dict()["steps"] or not explanation.steps
    return [step.explanation.text().split("\n")[0] for step in explanation.steps]


@pytest.fixture
def x() -> Any:
    return xarr.asarray(np.arange(12.0).reshape(3, 4))


def test_all_kinds_in_order(x: Any) -> None:
    v, rows, counts = xarr.ones(4), xarr.asarray([0, 2]), xarr.arange(4)

    def program(x: Any) -> Any:
        centred = x - v
        product = centred @ x.T
        picked = x[rows]
        total = x.sum(axis=1)
        weighed = total @ (x * counts)
        pooled = lax.reduce_window(x, -np.inf, lax.max, (2, 2))
        return product, picked, weighed, pooled

    assert [line.split("  ")[0] for line in headlines(program, x)] == [
        "x - v",
        "centred @ x.T",
        "gather: operand (3, 4), start_indices (2,) -> result (2, 4)",
        "x.sum(axis=1)",
        "x * counts",
        "promote x: float64, counts: int64",
        "total @ (x * counts)",
        "max over x: f64[3,4], window (2, 2), strides (1, 1)",
    ]


def test_products_by_name_and_dimension_numbers(x: Any) -> None:
    v = xarr.ones(4)
    assert headlines(lambda: xarr.dot(x, v)) == [
        'einsum("ij,j->i", x, v)    x: f64[3,4]   v: f64[4]   ->  f64[3]'
    ]
    numbers = (((1,), (1,)), ((0,), (0,)))
    assert "einsum" in headlines(lambda: lax.dot_general(x, x, numbers))[0]


def test_convolution(x: Any) -> None:
    image, kernel = xarr.ones((1, 1, 5, 5)), xarr.ones((1, 1, 3, 3))
    (line,) = headlines(lambda: lax.conv(image, kernel, (1, 1), "SAME"))
    assert line.startswith("conv over image: f64[5,5], window (3, 3)")


def test_what_is_written_to_an_argument(x: Any) -> None:
    def write(x: Any) -> None:
        x[xarr.asarray([0, 0])] = 1.0

    assert any(line.startswith("scatter") for line in headlines(write, xarr.ones((3, 4))))


def test_index_arithmetic_is_no_promotion(x: Any) -> None:
    narrow = xarr.asarray(np.int8([0, 1]))
    assert not any(line.startswith("promote") for line in headlines(lambda: x[narrow]))
    y = xarr.ones((3, 4), "float32")
    assert not any(line.startswith("promote") for line in headlines(lambda: x.astype("float32") + y))
    assert any(line.startswith("promote x: float64, y: float32") for line in headlines(lambda: x + y))
    long = headlines(lambda: x + xarr.ones((3, 4), "float32").reshape((3, 4)))
    assert any(line.startswith("promote a: float64, b: float32") for line in long)


def test_the_picture_is_that_of_the_only_broadcast(x: Any) -> None:
    explanation = xarr.explain(lambda: x - x.mean(axis=1, keepdims=True))
    assert isinstance(explanation, ProgramExplanation)
    assert len(explanation.steps) == 2 and len(explanation.broadcasts) == 1
    assert explanation.svg() == explanation.broadcasts[0].explanation.svg()
    alone = xarr.explain(lambda: x.sum(axis=0))
    assert alone.svg() == xarr.explain_reduce("f64[3,4]", 0).svg()


@pytest.mark.usefixtures("recorded")
def test_nothing_is_evaluated(x: Any) -> None:
    pending, index = x + 1, xarr.asarray([0, 1]) + 0
    xarr.explain(lambda: (pending.sum(axis=0), pending[index]))
    assert not pending.is_evaluated and not index.is_evaluated
