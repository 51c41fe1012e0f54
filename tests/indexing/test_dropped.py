"""The warning for a dropped result of `x.at[…]` under `config.debug`: where it comes, and where it must not."""

from __future__ import annotations

import gc
import warnings
from collections import deque
from typing import Any

import pytest

import xarr
from xarr.base.configuration import current as config
from xarr.errors import DroppedUpdateWarning
from xarr.indexing import dropped


@pytest.fixture(scope="module", autouse=True)
def quick_collections() -> Any:
    """Keep what the tests before left out of the collections after each test here, which took a second each."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_is_watched_after() -> Any:
    with config(debug=True):
        yield
    gc.collect()
    assert not dropped._watched


def a() -> xarr.Array:
    return xarr.asarray([1, 2, 3])


@pytest.mark.parametrize("method", ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"])
def test_a_statement_that_only_updates_warns(method: str) -> None:
    x = a()
    with pytest.warns(DroppedUpdateWarning, match=r"dropped(.|\n)*test_dropped.py:\d+") as caught:
        getattr(x.at[0], method)(5)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert x.tolist() == [1, 2, 3]


def test_apply_warns() -> None:
    with pytest.warns(DroppedUpdateWarning, match="at\\[0\\].apply"):
        a().at[0].apply(xarr.negative)


def test_other_forms_of_a_call() -> None:
    x, arguments, options = a(), (5,), {"mode": "clip"}
    with pytest.warns(DroppedUpdateWarning) as caught:
        x.at[0].set(*arguments)
        x.at[0].set(*arguments, **options)
        x.at[0].set(values=5)
        x.at[[0, 1]].set(5, mode="drop")
        if x.ndim:
            x.at[x > 1].set(
                5,
            )
    assert len(caught) == 5


def test_in_a_loop_and_in_a_traced_function() -> None:
    def function(x: Any) -> Any:
        for i in range(3):
            x.at[i].set(0)
        return x

    with pytest.warns(DroppedUpdateWarning) as caught:
        function(a())
    assert len(caught) == 3
    with pytest.warns(DroppedUpdateWarning) as caught:
        xarr.jit(function)(a())
    assert len(caught) == 3


def test_module_code_warns() -> None:
    code = "y = x.at[0].set(1)\nx.at[1].set(2)\n"
    with pytest.warns(DroppedUpdateWarning) as caught:
        exec(compile(code, "program.py", "exec"), {"x": a()})
    assert [(each.filename, each.lineno) for each in caught] == [("program.py", 2)]


def test_what_is_used_does_not_warn() -> None:
    x = a()
    kept: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = x.at[0].set(5)
        y = y.at[0].set(6)
        _ = x.at[0].set(5)
        del y
        x = x.at[0].set(5).at[1].set(6)
        kept.append(x.at[0].set(5))
        kept.extend(map(x.at[0].set, [1, 2, 3]))
        kept.extend([x.at[i].set(0) for i in range(3)])
        kept += [(lambda: x.at[0].set(1))()]
        x.at[0].set(5).evaluate()
        x.at[0].set(5).tolist()
        assert x.at[0].set(5)[0] == 5
        x.at[0].get()
        x[0] = 5
        x[[0, 1]] += 1
        print(x.at[0].set(5), end="")
        with pytest.raises(IndexError):
            x.at[9].set(5)
        deque(map(x.at[0].set, [1, 2]), maxlen=0)
    assert len(kept) == 8


def test_interactive_statements_are_shown_not_dropped() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile("x.at[0].set(1)", "<stdin>", "single"), {"x": a()})
        assert eval("x.at[0].set(1)", {"x": a()}).tolist() == [1, 2, 3]


def test_functions_that_return_it() -> None:
    def update(x: xarr.Array) -> xarr.Array:
        return x.at[0].set(5)

    def later(x: xarr.Array) -> Any:
        yield x.at[0].set(5)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert update(a()).tolist() == [5, 2, 3]
        update(a())
        assert [y.tolist() for y in later(a())] == [[5, 2, 3]]


def test_without_debug_nothing_is_watched() -> None:
    x = a()
    with config(debug=False), warnings.catch_warnings():
        warnings.simplefilter("error")
        x.at[0].set(5)
        x.at[0].apply(xarr.negative)
    assert x.tolist() == [1, 2, 3]
