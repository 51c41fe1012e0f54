"""Computations that ops carry: what each gives for two scalars, and which of them are recognised."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.compare import assert_same
from xarr.backend import get
from xarr.compiler.pipeline import make_program
from xarr.ir import computations, ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.types import TensorType

I32, F32, F64, C128 = map(np.dtype, (np.int32, np.float32, np.float64, np.complex128))
INF, NAN = np.inf, np.nan
FLOATS = (-INF, -1.5, -0.0, 0.0, 2.0, INF, NAN)


def runner(graph: Graph) -> Callable[..., list[Any]]:
    """The graph as a function of host values."""
    engine = get("reference")
    program = make_program(graph.verify(), engine).program
    dtypes = [each.dtype for each in graph.parameters]

    def run(*values: Any) -> list[Any]:
        operands = [np.array(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]
        return [engine.to_host(result) for result in program(*map(engine.from_host, operands))]

    return run


def test_combiners_and_the_second_of_two() -> None:
    (difference,) = runner(computations.combiner(ops.Subtract(), I32))(7, 2)
    assert_same(difference, np.int32(5))
    (second,) = runner(computations.second(F32))(7, 2)
    assert_same(second, np.float32(2))
    assert computations.second(F32).results[0] is computations.second(F32).parameters[1]


@pytest.mark.parametrize("direction", ["GT", "LT"])
def test_the_pair_that_is_ahead(direction: str) -> None:
    """Of each pair of floats, with either index first; of two NaN it is the one that was met first."""
    run = runner(computations.arg_extremum(direction, F64, I32))
    for a, b, (i, j) in product(FLOATS, FLOATS, ((3, 5), (5, 3))):
        if np.isnan(a) or np.isnan(b):
            first = bool(np.isnan(a))
        elif a == b:
            first = i < j
        else:
            first = a > b if direction == "GT" else a < b
        value, index = run(a, i, b, j)
        assert (index, np.isnan(value)) == (i if first else j, np.isnan(a if first else b))
        assert np.isnan(value) or value == (a if first else b)


def key(value: Any) -> tuple[Any, ...]:
    """A key by which Python sorts numbers as NumPy and JAX do: NaN last."""
    parts = [value.real, value.imag] if isinstance(value, complex) else [value]
    return tuple((bool(np.isnan(part)), 0 if np.isnan(part) else part) for part in parts)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (I32, (-(2**31), -1, 0, 7)),
        (F64, FLOATS),
        (C128, (1 + 2j, 1 + 3j, -1 + 9j, complex(NAN, 0), complex(0.0, -0.0), complex(-0.0, 0.0), 0j)),
    ],
    ids=str,
)
def test_lexicographic_order_by_one_key(dtype: Any, values: tuple[Any, ...]) -> None:
    run = runner(computations.lexicographic([dtype, I32], 1))
    for a, b in product(values, values):
        assert bool(run(a, b, 9, 1)[0]) is (key(a) < key(b)), (a, b)


def test_lexicographic_order_by_more_keys() -> None:
    run = runner(computations.lexicographic([F32, I32, F32], 2))
    for a, b in product(product((-0.0, 0.0, 1.0, NAN), (3, 4)), repeat=2):
        (before,) = run(a[0], b[0], a[1], b[1], 5.0, 1.0)
        assert bool(before) is ((key(a[0]), a[1]) < (key(b[0]), b[1])), (a, b)


def test_descending_order() -> None:
    run = runner(computations.descending(F64, I32))
    for a, b in product(FLOATS, FLOATS):
        ranks = [INF if np.isnan(x) else x for x in (a, b)]
        keys = [(np.isnan(x), rank, not np.signbit(x)) for x, rank in zip((a, b), ranks, strict=True)]
        assert run(a, b, 1, 2)[0] == (keys[0] > keys[1]), (a, b)
    assert [bool(runner(computations.descending(I32, I32))(*pair, 0, 0)[0]) for pair in ((2, 1), (1, 2))] == [
        True,
        False,
    ]


def test_log_add_exp_of_floats() -> None:
    run = runner(computations.log_add_exp(F64))
    for a, b in product((*FLOATS, 1e308, -1e308, 700.0, 710.0), repeat=2):
        with np.errstate(all="ignore"):
            wanted = np.logaddexp(a, b)
        assert_same(run(a, b)[0], np.array(wanted), ulp=2)


def test_log_add_exp_of_complex_numbers() -> None:
    run = runner(computations.log_add_exp(C128))
    numbers = (1 + 2j, -3 + 1j, 0.5 - 3j, 1 + 3j, 1000 + 1j, -1000 - 2j)
    for a, b in product(numbers, numbers):
        (got,) = run(a, b)
        shift = max(a.real, b.real)
        total = np.exp(a - shift) + np.exp(b - shift)
        wanted = np.log(total) + shift
        assert -np.pi <= got.imag < np.pi
        assert abs(got - wanted) <= 1e-12 * abs(wanted), (a, b)


# --- which computation it is ----------------------------------------------------------------------------


def graph_of(op: Any, operands: Callable[[Node, Node], tuple[Node, ...]]) -> Graph:
    a, b = computations.scalars(F32, F32)
    return Graph((a, b), [Node(op, operands(a, b))])


def test_monoids_are_recognised() -> None:
    assert computations.monoids(computations.combiner(ops.Add(), F32)) == (ops.Add,)
    assert computations.monoids(graph_of(ops.Maximum(), lambda a, b: (b, a))) == (ops.Maximum,)
    a, i, b, j = computations.scalars(F32, I32, F32, I32)
    both = Graph((a, i, b, j), [Node(ops.Add(), (a, b)), Node(ops.Multiply(), (j, i))])
    assert computations.monoids(both) == (ops.Add, ops.Multiply)
    crossed = Graph((a, i, b, j), [Node(ops.Add(), (a, b)), Node(ops.Multiply(), (i, i))])
    assert computations.monoids(crossed) is None
    assert computations.monoids(graph_of(ops.Add(), lambda a, b: (a, a))) is None
    assert computations.monoids(computations.combiner(ops.Subtract(), F32)) is None
    assert computations.monoids(computations.second(F32)) is None


def test_computations_that_commute_are_recognised() -> None:
    assert computations.commutes(computations.combiner(ops.Multiply(), F32))
    assert computations.commutes(computations.log_add_exp(F32))
    assert not computations.commutes(computations.log_add_exp(C128))
    assert not computations.commutes(computations.combiner(ops.Subtract(), F32))


def test_reductions_to_the_index_of_an_extremum_are_recognised() -> None:
    values = parameter(TensorType((2, 5), F32))

    def reduction(
        dimensions: tuple[int, ...] = (1,),
        counted: int = 1,
        direction: str = "LT",
        dtype: Any = I32,
        computation: Graph | None = None,
    ) -> Node:
        counter = Node(ops.Iota(TensorType((2, 5), np.dtype(dtype)), counted))
        start = [parameter(TensorType((), each)) for each in (F32, np.dtype(dtype))]
        body = computation or computations.arg_extremum(direction, F32, np.dtype(dtype))
        return Node(ops.Reduce(dimensions, body), (values, counter, *start))

    assert [computations.arg_direction(reduction(direction=each)) for each in ("GT", "LT")] == ["GT", "LT"]
    assert computations.arg_direction(reduction((0,), 0)) == "LT"
    assert computations.arg_direction(reduction((0,), 1)) is None
    assert computations.arg_direction(reduction((0, 1), 1)) is None
    a, i, b, j = computations.scalars(F32, I32, F32, I32)
    sums = Graph((a, i, b, j), [Node(ops.Add(), (a, b)), Node(ops.Add(), (i, j))])
    assert computations.arg_direction(reduction(computation=sums)) is None
    alone = Node(
        ops.Reduce((1,), computations.combiner(ops.Add(), F32)), (values, parameter(TensorType((), F32)))
    )
    assert computations.arg_direction(alone) is None
    # Beyond 127 an int8 cannot count.
    for size, wanted in ((128, "GT"), (129, None)):
        shape = (size,)
        counter = Node(ops.Iota(TensorType(shape, np.dtype(np.int8)), 0))
        start = [parameter(TensorType((), np.dtype(each))) for each in (np.float32, np.int8)]
        body = computations.arg_extremum("GT", F32, np.dtype(np.int8))
        node = Node(ops.Reduce((0,), body), (parameter(TensorType(shape, F32)), counter, *start))
        assert computations.arg_direction(node) == wanted


def test_computations_know_no_line_of_the_user() -> None:
    for graph in (computations.lexicographic([F64, I32], 2), computations.log_add_exp(F32)):
        assert all(node.source is None for node in (*graph.parameters, *graph.nodes))
    assert computations.lexicographic([F64], 1) is computations.lexicographic((F64,), 1)
