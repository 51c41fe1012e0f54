"""Calls on the host that record again: of large arrays, and of small ones where nothing is computed at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.calls.remembered_tables import repeated_calls, table_in_force
from tests.calls.test_call_plans import draw, outcome
from tests.calls.test_remembered_calls import CALLS
from tests.compare import assert_same
from xarr.calls import remembered_calls
from xarr.errors import IndexingError, PartUpdateWarning
from xarr.ir.graph import postorder

pytestmark = [pytest.mark.implicit, pytest.mark.usefixtures("on_numpy", "eager")]


def compare(calls: list[Callable[[], Any]], monkeypatch: pytest.MonkeyPatch, **settings: Any) -> int:
    """Calls that are recorded again record what the functions do, or raise it; how many there are."""
    monkeypatch.setattr(remembered_calls, "CALLS_BEFORE", 10**9)
    with xarr.config(max_depth=9_998, **settings):
        wanted = [outcome(call) for call in calls]
    monkeypatch.setattr(remembered_calls, "CALLS_BEFORE", 0)
    with xarr.config(max_depth=9_999, **settings):
        table_in_force().clear()
        for _ in range(3):
            for call, one in zip(calls, wanted, strict=True):
                assert outcome(call) == one
        return len(repeated_calls())


@pytest.mark.parametrize("name", CALLS)
def test_small_arrays_where_nothing_is_computed_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    for shape, dtype in (((4, 4), "float64"), ((2, 3, 4), "int8"), ((0, 4), "bool")):
        x, y = draw(shape, dtype), draw(shape, dtype)
        calls += [lambda x=x, y=y, axis=axis: CALLS[name](x, y, 2, axis) for axis in (0, None)]
    compare(calls, monkeypatch, small_arrays="lazy")


@pytest.mark.parametrize("name", CALLS)
def test_large_arrays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Larger than what is evaluated between arrays and few elements, of which each call has values of its own.
    large, few = draw((600, 600), "float64"), draw((600,), "float64")
    pairs = [(large, large), (large, few), (few, large), (large + large, large)]
    compare([lambda x=x, y=y: CALLS[name](x, y, 2, 0) for x, y in pairs], monkeypatch)


def test_most_calls_are_recorded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    large, small = draw((520, 520), "float64"), draw((4, 4), "float64")
    for x, settings in ((large, {}), (small, {"small_arrays": "lazy"})):
        known = {
            name
            for name, call in CALLS.items()
            if compare([lambda x=x, call=call: call(x, x, 2, 0)], monkeypatch, **settings)
        }
        assert len(known) > len(CALLS) / 2
        assert {"sum", "mean", "max", "where", "concatenate", "norm", "roll", "reshape"} <= known


@pytest.mark.usefixtures("at_first")
def test_values_are_right_in_all_calls() -> None:
    x = draw((600, 600), "float64")
    for _ in range(4):
        assert_same(np.asarray(xarr.max(x, axis=1)), np.max(np.asarray(x), axis=1))
        assert_same(np.asarray(x.T.reshape(-1)), np.asarray(x).T.reshape(-1))
        assert_same(np.asarray(xarr.where(x > 0, x, -0.0)), np.where(np.asarray(x) > 0, np.asarray(x), -0.0))
        assert_same(np.asarray(xarr.clip(x, 0.0, 1)), np.clip(np.asarray(x), 0.0, 1))
    assert repeated_calls()


@pytest.mark.usefixtures("at_first")
def test_what_is_computed_at_once_is_so_in_all_calls() -> None:
    x = draw((600, 600), "float64")
    assert [xarr.mean(x, axis=1).is_evaluated for _ in range(4)] == [True] * 4
    assert [xarr.sum(x, axis=1).is_evaluated for _ in range(4)] == [False] * 4
    pending = x + x
    assert [xarr.mean(pending, axis=1).is_evaluated for _ in range(4)] == [False] * 4


@pytest.mark.usefixtures("at_first")
def test_each_call_has_its_own_line() -> None:
    x = draw((600, 600), "float64")
    xarr.std(x)
    first = xarr.cumsum(x, 0)
    second = xarr.cumsum(x, 0)
    assert repeated_calls()
    lines = [
        {node.source.line for node in postorder([each._node]) if node.value is None and node.source}
        for each in (first, second)
    ]
    assert [len(each) for each in lines] == [1, 1] and max(lines[0]) + 1 == max(lines[1])


@pytest.mark.usefixtures("at_first")
def test_arguments_that_compare_equal_are_other_ones() -> None:
    x = draw((600, 600), "float64")
    assert xarr.sum(x, 0, None, None, True).shape == (1, 600)
    for _ in range(3):
        for flag in (1, True, 0, False):
            try:
                shape = xarr.sum(x, 1, None, None, flag).shape
            except xarr.errors.XarrError as error:
                shape = type(error)
            assert shape == ((600, 1) if flag else (600,))
        with pytest.raises(xarr.errors.XarrError):
            xarr.sum(x, (0, 1.0))
        assert xarr.sum(x, (0, 1)).shape == ()
        signs = [np.signbit(np.asarray(xarr.where(x > np.inf, x, zero))[0, 0]) for zero in (0.0, -0.0)]
        assert signs == [False, True]


@pytest.mark.usefixtures("at_first")
def test_methods_tell_arguments_apart_that_compare_equal() -> None:
    x = draw((1, 90_000), "float64")
    shapes = []
    for _ in range(3):
        for size in (1, True, 1.0):
            for call in (lambda s: x.reshape((s, 90_000)), lambda s: x.sum(s), lambda s: x.transpose((0, s))):
                try:
                    shapes.append(call(size).shape)
                except (xarr.errors.XarrError, TypeError) as error:
                    shapes.append(type(error).__name__)
        low = [np.signbit(np.asarray(x.clip(zero, 9.0).min())) for zero in (0.0, -0.0)]
        assert low == [False, True]
        assert [(x**n).dtype for n in (2, 2.0, True)] == [np.float64] * 3
        assert (draw((1, 90_000), "int32") ** 2.0).dtype == np.float64
    assert shapes[:9] * 3 == shapes


@pytest.mark.usefixtures("at_first")
def test_what_few_elements_become_is_recorded_again_if_that_is_large() -> None:
    for _ in range(3):
        x = xarr.asarray(np.arange(600.0)).evaluate() * 1
        large = xarr.broadcast_to(x, (600, 600))
        assert not large.is_evaluated
        assert_same(np.asarray(large), np.broadcast_to(np.arange(600.0), (600, 600)))
    assert repeated_calls()


@pytest.mark.usefixtures("at_first")
def test_a_function_that_looks_at_values_is_called_each_time() -> None:
    x = draw((300, 300), "float64")
    for bound in (299, 300, 299):
        index = xarr.asarray(np.full(3, bound))
        if bound < 300:
            assert xarr.take(x, index, 0).shape == (3, 300)
        else:
            with pytest.raises(IndexingError, match="index 300 is out of bounds"):
                xarr.take(x, index, 0)
        with xarr.config(small_arrays="lazy"):
            if bound < 300:
                assert xarr.take(x, index, 0).shape == (3, 300)
            else:
                with pytest.raises(IndexingError, match="index 300 is out of bounds"):
                    xarr.take(x, index, 0)


@pytest.mark.usefixtures("at_first")
def test_a_part_is_a_part_again() -> None:
    x = draw((600, 600), "float64")
    for _ in range(3):
        part = x.T
        with pytest.warns(PartUpdateWarning):
            part[0] = 1.0


@pytest.mark.usefixtures("at_first")
def test_settings_and_traces_count() -> None:
    x = draw((600, 600), "int64")
    for _ in range(2):
        assert xarr.mean(x, 0).dtype == np.float64
        with xarr.config(default_dtype="float32"):
            assert xarr.mean(x, 0).dtype == np.float32
        jitted = xarr.jit(lambda a: xarr.sum(a, 0) + xarr.max(a, 0))
        assert_same(np.asarray(jitted(x)), np.asarray(x).sum(0) + np.asarray(x).max(0))
        assert "sum" in xarr.explain(lambda: xarr.sum(x, 0)).text()


@pytest.mark.usefixtures("at_first")
def test_calls_kept_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered_calls, "_MOST_REMEMBERED", 3)
    for size in range(40_000, 40_012):
        x = draw((size,), "float64")
        for _ in range(2):
            assert float(xarr.max(x)) == np.asarray(x).max()
    assert len(table_in_force()) <= 3


@pytest.mark.usefixtures("at_first")
def test_a_total_beside_a_large_array_is_computed_first_in_all_calls_or_in_none() -> None:
    x = draw((600, 600), "float32")
    for call in (lambda s: s + x, lambda s: xarr.where(x > 0, s, x), lambda s: xarr.clip(s, x, 9.0)):
        totals = [x.sum() for _ in range(4)]
        results = [call(total) for total in totals]
        assert len({total.is_evaluated for total in totals}) == 1
        assert len({np.asarray(result).tobytes() for result in results}) == 1
