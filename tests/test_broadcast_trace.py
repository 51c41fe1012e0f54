"""trace_broadcasts: each implicit broadcast of a block, with line, shapes, count and bytes."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.errors import InputError

pytestmark = pytest.mark.implicit

X = xarr.ones((3, 4), dtype="float32")
V = xarr.ones(4, dtype="float32")


def line_here() -> int:
    """The number of the line that calls this."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def test_a_line_with_its_shapes_count_and_bytes() -> None:
    with xarr.trace_broadcasts() as trace:
        for _ in range(5):
            X + V
            line = line_here() - 1
    (traced,) = trace.broadcasts
    assert (traced.count, trace.count, traced.nbytes) == (5, 5, 3 * 4 * 4)
    assert traced.location == f"{__file__}:{line}"
    assert traced.to_dict() == {
        **{"file": __file__, "line": line, "op": "add", "operands": ["X", "V"]},
        **{"shapes": [[3, 4], [4]], "dtypes": ["f32", "f32"], "result": [3, 4]},
        **{"count": 5, "bytes": 48, "kinds": []},
    }


def test_likely_mistakes_come_first() -> None:
    square, row, column, same = xarr.ones((3, 3)), xarr.ones(3), xarr.ones((5, 1)), xarr.ones(5)
    with xarr.trace_broadcasts() as trace:
        for _ in range(100):
            X * V
        square / row
        column - same
        xarr.ones((7, 1)) + xarr.ones((1, 2))
    assert [each.explanation.op for each in trace.broadcasts] == ["subtract", "add", "divide", "multiply"]
    assert [each.kinds for each in trace.broadcasts] == [
        ("OUTER", "AMBIGUOUS"),
        ("OUTER",),
        ("AMBIGUOUS",),
        (),
    ]
    told = trace.text()
    assert told.startswith("4 implicit broadcasts, 2 OUTER, 2 AMBIGUOUS; 103 in all\n")
    assert "column: f64[5, 1], same: f64[5] -> [5, 5]; 1 time, 400 B each" in told
    assert "column - same[:, None]" in told and "X: f32[3, 4], V: f32[4] -> [3, 4]; 100 times" in told
    assert str(trace) == repr(trace) == told


def test_levels() -> None:
    with xarr.trace_broadcasts() as trace:
        X + V
        xarr.ones((3, 3)) + xarr.ones(3)
        xarr.ones((7, 1)) + xarr.ones((1, 2))
    assert [len(trace.at_least(level)) for level in ("outer", "ambiguous", "any")] == [1, 2, 3]
    with pytest.raises(InputError, match="wanted one of 'outer', 'ambiguous', 'any', got 'all'"):
        trace.at_least("all")


@pytest.mark.parametrize(
    "call",
    [
        lambda: X + X,
        lambda: X + 1.5,
        lambda: X * np.float32(2),
        lambda: X + xarr.ones(()),
        lambda: X @ xarr.ones((4, 2), dtype="float32"),
        lambda: xarr.lax.add(X, V, broadcast_dimensions=(1,)),
        lambda: xarr.ones((0, 4)) + xarr.ones((0, 4)),
    ],
    ids=["equal shapes", "a number", "a scalar", "an array of no rank", "matmul", "explicit", "empty"],
)
def test_what_is_no_implicit_broadcast(call: Callable[[], Any]) -> None:
    with xarr.trace_broadcasts() as trace:
        call()
    assert trace.broadcasts == () and trace.count == 0 and trace.text() == "no implicit broadcast"
    assert json.loads(trace.json()) == {"count": 0, "outer": 0, "ambiguous": 0, "broadcasts": []}


@pytest.mark.parametrize(
    ("call", "op", "nbytes"),
    [
        (lambda: xarr.where(X > 0, X, V), "where", 48),
        (lambda: xarr.maximum(X, V.astype("float64")), "maximum", 96),
        (lambda: X.copy().at[0].set(V[:1]), "setitem", 16),
        (lambda: X == V, "equal", 48),
        (lambda: xarr.ones((0, 3)) + xarr.ones(3), "add", 0),
        (lambda: xarr.ones((2, 3), dtype="bfloat16") + xarr.ones((1, 3), dtype="bfloat16"), "add", 12),
    ],
    ids=["where", "maximum", "setitem", "equal", "empty", "bfloat16"],
)
def test_functions_indices_and_types(call: Callable[[], Any], op: str, nbytes: int) -> None:
    with xarr.trace_broadcasts() as trace:
        call()
    (traced,) = [each for each in trace.to_dict()["broadcasts"] if each["op"] == op]
    assert traced["bytes"] == nbytes


def test_other_shapes_on_a_line_are_others() -> None:
    with xarr.trace_broadcasts() as trace:
        for size in (2, 3, 3):
            xarr.ones((size, 4)) + xarr.ones(4)
    assert sorted((each.explanation.shapes[0], each.count) for each in trace.broadcasts) == [
        ((2, 4), 1),
        ((3, 4), 2),
    ]


def test_each_call_of_a_jitted_function_counts_and_values_are_the_same() -> None:
    f = xarr.jit(lambda x, v: (x - v) * 2)
    for _ in range(6):  # so that it is repeated by the shortest way
        wanted = f(X, V)
    with xarr.trace_broadcasts() as trace:
        got = [f(X, V) for _ in range(3)]
    assert trace.count == 3
    assert all(each.tolist() == wanted.tolist() for each in got)


def test_all_threads_and_no_longer_than_the_block() -> None:
    with xarr.trace_broadcasts() as outer, xarr.trace_broadcasts() as trace:
        thread = threading.Thread(target=lambda: X + V)
        thread.start()
        thread.join()
    X + V
    assert trace.count == outer.count == 1


def test_a_block_that_raises_ends_the_trace() -> None:
    with pytest.raises(ZeroDivisionError), xarr.trace_broadcasts() as trace:
        X + V
        raise ZeroDivisionError
    X + V
    assert trace.count == 1


def test_code_without_a_file_has_a_location() -> None:
    with xarr.trace_broadcasts() as trace:
        exec("x + v", {"x": X, "v": V})
    (traced,) = trace.broadcasts
    assert traced.location == "<string>:1" and "[3, 4]" in traced.text()
