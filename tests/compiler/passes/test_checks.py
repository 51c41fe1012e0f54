"""Checks as flags: a graph without checks gives the same values, and flags that say what would have been raised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.compare import assert_same
from tests.programs import graph, type_of
from xarr import lax
from xarr.backend import get
from xarr.compiler.passes.checks import with_flags
from xarr.compiler.pipeline import make_program
from xarr.ir.graph import Graph
from xarr.lax import lapack

X = np.arange(12.0).reshape(3, 4)


def outcome(run: Callable[[], Sequence[Any]]) -> Any:
    """The result of `run`, or the class and the text of the error that it raises."""
    try:
        return list(run())
    except (IndexError, np.linalg.LinAlgError) as error:
        return type(error), str(error)


def flagged_outcome(whole: Graph, arguments: Sequence[np.ndarray[Any, Any]]) -> Any:
    graph = with_flags(whole)
    assert "checked_indices" not in str(graph.graph) and "xarr.check" not in str(graph.graph)
    graph.graph.verify()
    values = make_program(graph.graph, get("reference")).program(*arguments)
    count = len(whole.results)
    flags = [values[count + number] for number in dict.fromkeys(graph.flags) if number is not None]
    failed = [flag for flag in flags if flag[0] >= 0]
    if not failed:
        return list(values[:count])
    number, value = map(int, failed[0])
    return outcome(lambda: graph.checks[number].fail(value))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "read": lambda x, i: x[i],
    "read of two": lambda x, i: x[i, i],
    "write": lambda x, i: x.at[i].set(1.0),
    "one of two": lambda x, i: x[i].sum() + x[:, i].sum(),
    "call": lambda x, i: lax.call(lambda x, i: x[i], x, i),
    "branch": lambda x, i: lax.cond(i.sum() > 1, lambda x: x[i], lambda x: x[i * 0] + 1, x),
    "case": lambda x, i: lax.switch(i.sum() % 3, [lambda x: x[i], lambda x: x[0 * i], lambda x: x[2 * i]], x),
    "loop": lambda x, i: lax.fori_loop(0, 3, lambda k, c: c + x[i + k].sum(), 0.0),
    "loop that a check ends": lambda x, i: lax.while_loop(
        lambda c: c[1] < 99, lambda c: (c[0] + 1, c[1] + x[c[0], 0] * 0), (i.sum(), x[0, 0])
    )[1],
    "condition": lambda x, i: lax.while_loop(
        lambda c: x[c[0], 0] >= 0, lambda c: (c[0] + 1, c[1] + x[c[0], 1]), (i.sum(), x[0, 0])
    )[1],
    "loop in a branch in a loop": lambda x, i: lax.fori_loop(
        0,
        2,
        lambda k, c: lax.cond(
            c > 50, lambda c: c + x[k - 9, 0], lambda c: lax.fori_loop(0, 2, lambda j, c: c + x[i + j].sum(), c), c
        ),
        0.0,
    ),
    "scan": lambda x, i: lax.scan(lambda c, k: (c + x[k].sum(), c), 0.0, i.reshape(-1))[1],
    "systems": lambda x, i: lapack.check(x, i < 2, "not below 2"),
    "one system": lambda x, i: lapack.check(x, (i < 2).all(), "not below 2"),
}  # fmt: skip
INDICES = [0, 2, 3, -3, -4, [0, 1], [1, -1, 4], [[2, -5], [7, 0]], [], np.uint8([1, 200])]


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_flags_say_what_the_checks_raise(function: Callable[..., Any], index: Any) -> None:
    indices = np.asarray(index, None if np.size(index) else np.int64)
    arguments = (X, indices)
    whole = graph(lambda x, i: [function(x, i)], *map(type_of, arguments))
    check_outcome(whole, arguments)


def check_outcome(whole: Graph, arguments: Sequence[np.ndarray[Any, Any]]) -> Any:
    """The outcome of the graph itself, which that of the flagged one has to be."""
    wanted = outcome(lambda: make_program(whole, get("reference")).program(*arguments))
    results = flagged_outcome(whole, arguments)
    if isinstance(wanted, tuple):
        assert results == wanted
    else:
        for one, other in zip(results, wanted, strict=True):
            assert_same(one, other)
    return wanted


def test_what_int64_cannot_hold_is_named() -> None:
    arguments = (X, np.array([1, 2**63 + 5], np.uint64))
    whole = graph(lambda x, i: [x[i]], *map(type_of, arguments))
    kind, text = check_outcome(whole, arguments)
    assert issubclass(kind, IndexError)
    assert "9223372036854775813" in text


def test_a_flag_is_for_the_results_that_hang_on_its_checks() -> None:
    def function(x: Any, i: Any) -> list[Any]:
        y, z = x[i], x[i - 1]
        return [x + 1, y, y * 2, (z + y)[0], i]

    flagged_graph = with_flags(graph(function, type_of(X), type_of(np.array([0, 1]))))
    assert flagged_graph.flags == (None, 0, 0, 1, None)
    assert len(flagged_graph.checks) == 2
    assert [type.short() for type in flagged_graph.graph.result_types[5:]] == ["s64[2]", "s64[2]"]


def test_a_graph_without_checks_stays_as_it_is() -> None:
    whole = graph(lambda x: [x + 1], type_of(X))
    assert with_flags(whole) == (whole, (), (None,))


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 5, 2**20])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint32", "uint64"])
def test_the_index_that_numpy_names_is_told(dtype: str, size: int) -> None:
    info = np.iinfo(dtype)
    ends = [0, size - 1, size, -size, -size - 1, info.min, info.max, info.max - 1, info.min + 1]
    known = np.array([each for each in ends if info.min <= each <= info.max], dtype)
    x = np.zeros(size, np.int8)
    whole = graph(lambda x, i: (x[i],), type_of(x), type_of(known[:2]))
    for low in known:
        for high in known:
            i = np.array([low, high])
            wanted = outcome(lambda i=i: make_program(whole, get("numpy")).program(x, i))
            assert str(flagged_outcome(whole, [x, i])) == str(wanted)
