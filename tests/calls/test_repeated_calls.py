"""Replays: the functions that record a call again at its line."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.calls import remembered_tables
from tests.calls.test_call_plans import draw
from tests.compare import assert_same
from xarr.calls import remembered_calls, repeated_calls
from xarr.calls.operands import watching
from xarr.errors import PartUpdateWarning
from xarr.ir.graph import Node

pytestmark = [pytest.mark.implicit, pytest.mark.usefixtures("on_numpy", "eager", "at_first")]

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "clip": lambda x, b: x.clip(0, 1),
    "where": lambda x, b: xarr.where(b, x, 0.0),
    "argmax": lambda x, b: xarr.argmax(x, axis=1),
    "roll": lambda x, b: xarr.roll(x, 1, axis=0),
    "stack": lambda x, b: xarr.stack([x, x], axis=1),
    "power": lambda x, b: x**3,
    "reshape": lambda x, b: x.reshape(1000, 250),
    "remainder": lambda x, b: x % 2.0,
    "transpose": lambda x, b: x.transpose(1, 0),
}


def calls_of_python(call: Callable[[], Any]) -> int:
    """The calls of Python functions that a call takes, less those of destructors and of a garbage collection."""
    names: list[str] = []
    gc.disable()
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    return len([name for name in names if name != "__del__"])


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_recorded_again_takes_few_calls_of_python(name: str) -> None:
    # Larger than what is evaluated for a small array, as one of bools of this shape is.
    x, call = draw((500, 500), "float64"), CALLS[name]
    b = (x > 0).evaluate()
    for _ in range(3):
        call(x, b)
    assert calls_of_python(lambda: call(x, b)) <= 11


#: Calls, and how many of Python's they may take.
VALUE_CALLS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "flip": (lambda x: xarr.flip(x, 0), 14),
    "norm": (lambda x: xarr.linalg.norm(x, axis=1), 12),
    "zeros_like": (lambda x: xarr.zeros_like(x), 12),
    "var": (lambda x: xarr.var(x, axis=0, keepdims=True), 26),
    "swapaxes": (lambda x: x.swapaxes(0, 1), 18),
    "split": (lambda x: xarr.split(x, 2)[1], 25),
}


@pytest.mark.parametrize("name", VALUE_CALLS)
def test_a_call_that_is_computed_again_takes_few_calls_of_python(name: str) -> None:
    call, most = VALUE_CALLS[name]
    arrays = [xarr.asarray(np.arange(12.0).reshape(shape)) for shape in ((4, 3), (2, 6), (4, 3))]
    whole = xarr.asarray(np.arange(24.0).reshape(2, 3, 4))
    with xarr.config(small_arrays="lazy"):
        wanted = [np.asarray(call(x)) for x in arrays]
    for _ in range(4):
        for x, right in zip(arrays, wanted, strict=True):
            assert_same(np.asarray(call(x)), right)
        call(arrays[0].astype("float32"))
        call(whole[0].T)
    x = arrays[0] + 0
    call(x), call(x)
    assert calls_of_python(lambda: call(x)) <= most
    with watching(lambda event: None):
        assert_same(np.asarray(call(x)), wanted[0])
    assert call(x)._node.source.text() != "" and call(x).dtype == np.float64


def test_what_is_computed_again_is_written_to_apart() -> None:
    x = xarr.asarray(np.arange(6.0).reshape(2, 3))
    for _ in range(6):
        turned = x.swapaxes(0, 1)
        with pytest.warns(PartUpdateWarning):
            turned[0, 0] = 7
        assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
        zeros = xarr.zeros_like(x)
        zeros[0] = 1
    y = xarr.asarray(np.arange(6.0).reshape(2, 3))
    part = y.swapaxes(0, 1)
    y[0, 0] = 9
    assert part.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_an_error_in_a_call_that_was_computed_before_is_the_functions() -> None:
    rows = xarr.asarray([[0.0, 1.0], [2.0, 3.0]])
    inside, outside = xarr.asarray([[0], [1]]), xarr.asarray([[0], [5]])

    def take(index: xarr.Array) -> xarr.Array:
        return xarr.take_along_axis(rows, index, axis=1)

    for _ in range(5):
        assert take(inside).tolist() == [[0], [3]]
    with pytest.raises(IndexError, match="take_along_axis"):
        take(outside).tolist()


def test_settings_that_come_back_are_known_again() -> None:
    x = draw((500, 500), "float64")
    call = CALLS["roll"]
    for word in ("numpy", "rank", "numpy"):
        xarr.config.broadcasting = word
        if word == "numpy":
            for _ in range(3):
                call(x, x)
            assert calls_of_python(lambda: call(x, x)) <= 11


def test_what_hangs_on_no_array_is_the_same_at_a_line() -> None:
    x = draw((600, 600), "float64")
    first, second, third = [x.clip(0, 1)._node for _ in range(3)]
    assert second.operands[0] is third.operands[0] is not first.operands[0]
    assert second.operands[0].exposed and second is not third
    other = x.clip(0, 1)._node
    assert other.operands[0] is not third.operands[0]
    assert other.source.line > third.source.line == third.operands[0].source.line


def test_calls_of_one_line_may_differ() -> None:
    x, y = draw((600, 600), "float64"), draw((600, 700), "float32")
    wanted = [np.roll(np.asarray(a), k, 0) for a in (x, y) for k in (1, 2, -300, 1000)]
    for _ in range(3):
        got = [xarr.roll(a, k, 0) for a in (x, y) for k in (1, 2, -300, 1000)]
        for one, other in zip(got, wanted, strict=True):
            assert_same(np.asarray(one), other)


def test_lists_tuples_and_names_of_arguments_tell_calls_apart() -> None:
    x, y = draw((600, 600), "float64"), draw((600, 600), "float64")
    sizes = [600, 600]
    for _ in range(3):
        shapes = [
            xarr.concatenate(each, **options).shape
            for each in ([x, y], (x, y), [x, y, x])
            for options in ({}, {"axis": 0}, {"axis": 1})
        ]
        assert shapes == [(1200, 600), (1200, 600), (600, 1200)] * 2 + [(1800, 600)] * 2 + [(600, 1800)]
        assert [x.reshape(each).shape for each in (sizes, (600, 600), [360_000])] == [
            (600, 600),
            (600, 600),
            (360_000,),
        ]


def test_calls_and_lines_kept_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered_calls, "_MOST_KEPT", 3)
    kept = remembered_calls.RepeatedCalls()
    x = draw((600, 600), "float64")
    for _ in range(2):
        for shift in range(1, 9):
            assert_same(np.asarray(xarr.roll(x, shift, 1)), np.roll(np.asarray(x), shift, 1))
            call = remembered_tables.repeated_calls()[-1]
            kept.add((x, shift), {}, call)
            assert kept.put_before(lambda args, kwargs: None)((x, shift), {}).shape == x.shape
            assert len(kept) <= 3 and len(kept.replays) <= 3 and len(kept.lines) <= 3


def test_a_node_that_is_written_out_is_the_node() -> None:
    x, y = draw((600, 600), "float64")._node, (draw((600, 600), "float64") + 1)._node
    wanted = Node(y.op, (y, x), y.type, y._location, y.device)
    scope = {"new": object.__new__, "Node": Node, "next_serial": int}
    names = {"x": x, "y": y, "op": y.op, "type_": y.type, "line": y._location, "device": y.device}
    text = repeated_calls.node_text("made", "op", "(y, x)", ["y", "x"], 0, "type_", "line", "device")
    exec(text, scope | names, names)
    made: Any = names["made"]
    for field in Node.__slots__:
        if field not in ("__weakref__", "serial"):
            assert getattr(made, field) == getattr(wanted, field), field
