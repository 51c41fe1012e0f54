"""Calls on a device where all ops are recorded: what is recorded of a call again is what its function records."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import xarr
from tests.calls.remembered_tables import repeated_calls, table_in_force
from tests.calls.test_remembered_calls import CALLS
from xarr.calls.repeated_calls import RepeatedCall
from xarr.errors import IndexingError, PartUpdateWarning, XarrError
from xarr.ir.graph import Graph, postorder
from xarr.runtime.pending import graph_of

pytestmark = pytest.mark.usefixtures("opaque", "eager")


def graph_over(result: Any, *arrays: Any) -> Graph:
    """The graph that was recorded between arrays and a result."""
    leaves = [array._node for array in arrays]
    order = postorder([result._node], lambda node: node in leaves)
    return graph_of(order, leaves, [result._node])


def draw(shape: tuple[int, ...], dtype: str, is_pending: bool) -> Any:
    values = np.random.default_rng(len(shape)).normal(size=shape) * 4
    x = xarr.asarray(np.asarray(abs(values) if dtype[0] == "u" else values).astype(dtype))
    return xarr.flip(x.evaluate()) if is_pending else x.evaluate()


@pytest.mark.usefixtures("at_first")
@pytest.mark.parametrize("name", CALLS)
def test_the_same_is_recorded_again(name: str) -> None:
    call = CALLS[name]
    for dtype in ("float64", "uint8", "complex64"):
        for shape in ((4, 4), (4,), (2, 3, 4)):
            x, y = draw(shape, dtype, False), draw(shape, dtype, True)
            graphs = []
            for state in ("lazy", "eager", "eager", "eager"):
                with xarr.config(small_arrays=state):
                    try:
                        result = call(x, y, 2, 0)
                        graphs.append(graph_over(result, x, y))
                        assert result._node.device is x._node.device
                    except (XarrError, ValueError, TypeError) as error:
                        graphs.append(str(error))
            assert graphs[1:] == graphs[:1] * 3, (dtype, shape)


@pytest.mark.usefixtures("at_first")
def test_most_of_these_calls_are_remembered() -> None:
    x, y = draw((4, 4), "float64", False), draw((4, 4), "float64", True)
    known = set()
    for name, call in CALLS.items():
        table_in_force().clear()
        with suppress(XarrError):
            call(x, y, 2, 0)
        known |= {name} if repeated_calls() else set()
    assert len(known) > len(CALLS) / 2
    assert {"sum", "mean", "max", "where", "concatenate", "norm"} <= known


@pytest.mark.usefixtures("at_first")
def test_large_arrays_are_recorded_and_nothing_is_computed() -> None:
    x = xarr.asarray(np.ones((600, 600)))
    for _ in range(3):
        y = xarr.mean(x, axis=1)
        assert not y.is_evaluated
    assert repeated_calls()
    assert y.tolist() == [1.0] * 600


@pytest.mark.usefixtures("at_first")
def test_each_call_has_its_own_line() -> None:
    x = draw((4,), "float64", False)
    first = xarr.std(x)
    second = xarr.std(x)
    assert repeated_calls()
    lines = [{node.source.line for node in graph_nodes(each) if node.source} for each in (first, second)]
    assert [len(each) for each in lines] == [1, 1] and max(lines[0]) + 1 == max(lines[1])


def graph_nodes(array: Any) -> list[Any]:
    return [node for node in postorder([array._node]) if node.value is None]


@pytest.mark.usefixtures("at_first")
def test_checks_are_not_recorded_where_operands_need_none() -> None:
    x, k = draw((3, 4), "float64", False), xarr.asarray(np.arange(4)).evaluate()
    for _ in range(3):
        checked = graph_over(xarr.choose(k, [x[0], x[1], x[2], x[0]]), x, k)
        proved = graph_over(xarr.choose(k % 3, [x[0], x[1], x[2]]), x, k)
        assert any("CustomCall" in type(node.op).__name__ for node in checked.nodes)
        assert not any("CustomCall" in type(node.op).__name__ for node in proved.nodes)


@pytest.mark.usefixtures("at_first")
def test_constants_are_looked_at_each_time() -> None:
    x = draw((4,), "float64", False)
    for index in (1, 2, 7):
        k = xarr.full((2,), index)
        if index < 4:
            assert xarr.take(x, k).tolist() == [x.tolist()[index]] * 2
        else:
            with pytest.raises(IndexingError, match="index 7 is out of bounds"):
                xarr.take(x, k).tolist()


@pytest.mark.usefixtures("at_first")
def test_a_part_is_a_part_again() -> None:
    x = draw((3, 4), "float64", False)
    for _ in range(3):
        part = xarr.transpose(x)
        with pytest.warns(PartUpdateWarning):
            part[0] = 1.0


@pytest.mark.usefixtures("at_first")
def test_effects_and_values_are_never_recorded_again() -> None:
    x = draw((3, 3), "float64", False)
    for _ in range(2):
        xarr.linalg.inv(x)
        xarr.unique(x)
        xarr.nonzero(x > 0)
    names = {
        key[0].__name__ for key, program in table_in_force().items() if isinstance(program, RepeatedCall)
    }
    assert names.isdisjoint({"inv", "unique", "nonzero"})


def test_a_graph_that_differs_is_noticed() -> None:
    x = draw((4,), "float64", False)
    assert graph_over(x + 1, x) != graph_over(x + 2, x)
    assert graph_over(x + 1, x) == graph_over(x + 1, x)
