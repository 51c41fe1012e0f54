"""What the table of a failed program says of collectives: the line that built each, and what it computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.distributed import simulate
from xarr.errors import CollectiveMismatchError, DeadlockError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.types import TensorType

X = np.arange(3.0)


def _table(program: Callable[[], Any], kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        simulate(2, program)
    return str(caught.value)


def _line(function: Callable[..., Any], offset: int) -> str:
    return f"{Path(__file__).name}:{function.__code__.co_firstlineno + offset}"


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_tables_have_the_line_of_each_call(backend: str) -> None:
    def program() -> None:
        lax.all_reduce(X, lax.add)
        lax.all_reduce(X, lax.add)
        if lax.replica_id() == 1:
            lax.all_reduce(X, lax.add)

    with xarr.use_backend(backend):
        lines = _table(program, DeadlockError).splitlines()
    assert len(lines) == 4, "a headline, a row for each replica, advice"
    assert any("replica 0: has returned" in line and _line(program, 2) in line for line in lines)
    assert any("replica 1: waits" in line and _line(program, 4) in line for line in lines)


def test_tables_have_the_lines_of_jitted_functions_of_one_structure() -> None:
    def program() -> None:
        first = xarr.jit(lambda x: lax.all_reduce(x, lax.add) * 2)
        second = xarr.jit(lambda x: lax.all_reduce(x, lax.add) * 2)
        first(X)
        if lax.replica_id() == 1:
            second(X)

    text = _table(program, DeadlockError)
    assert _line(program, 1) in text
    assert _line(program, 2) in text


def test_tables_have_the_line_of_an_operation_that_is_taken_apart() -> None:
    def program() -> None:
        summed = xarr.jit(lambda x: lax.cross_replica_sum(x) * 2)
        if lax.replica_id() == 1:
            summed(X)

    assert f"all_reduce(f64[3], add, replica_groups=all), built at {Path(__file__)}:" in (
        text := _table(program, DeadlockError)
    )
    assert _line(program, 1) in text


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lax.add, lax.max),
        (lambda a, b: a + 2 * b, lambda a, b: a + 3 * b),
        (lambda a, b: a - b, lambda a, b: b - a),
    ],
    ids=["operations", "constants", "order"],
)
def test_other_computations_are_other_collectives(backend: str, one: Any, other: Any) -> None:
    def program() -> None:
        lax.all_reduce(X, one if lax.replica_id() == 1 else other)

    with xarr.use_backend(backend):
        text = _table(program, CollectiveMismatchError)
        assert simulate(2, lambda: lax.all_reduce(X, one).shape) == [(3,), (3,)]
    assert "for replicas 0, 1 in" not in text, "a replica does not wait for itself"


def test_a_computation_is_told_in_a_few_words() -> None:
    f32 = TensorType((), np.dtype(np.float32))
    a, b, c = (parameter(f32) for _ in range(3))
    add = Graph((a, b), [Node(ops.Add(), (a, b))])
    both = Graph((a, b), [Node(ops.Add(), (Node(ops.Multiply(), (a, b)), b))])
    first = Graph((a, b), [a])
    array = TensorType((4,), f32.dtype)
    assert ops.AllReduce(add).signature([array]) == "(f32[4], add, replica_groups=all)"
    assert re.search(r"computation \w{8} of mul, add,", ops.AllReduce(both).signature([array]))
    assert re.search(r"computation \w{8} of nothing,", ops.AllReduce(first).signature([array]))
    again = Graph((b, c), [Node(ops.Add(), (Node(ops.Multiply(), (b, c)), c))], "another_name")
    assert ops.AllReduce(both).signature([array]) == ops.AllReduce(again).signature([array])
