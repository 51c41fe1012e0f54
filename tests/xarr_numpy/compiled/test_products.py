"""Many small matrix products as compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr.ir.types import Ints

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]

#: The dimensions of the operands and of the result: b and c of a batch, k and l contracted, m and p rows, n columns.
FORMS = ("bmk,bkn", "mbk,kbn", "bkmp,bkn", "bcmk,cbkn", "bkml,lbkqn", "bm,bn")


def operands(form: str, sizes: dict[str, int], seed: int, dtype: str) -> tuple[Array, Array, Any]:
    """Small whole numbers, whose sums are exact, and the dimension numbers."""
    left, right = form.split(",")
    random = np.random.default_rng(seed)
    arrays = [
        random.integers(-3, 4, [sizes[letter] for letter in side]).astype(dtype) for side in (left, right)
    ]
    shared = [letter for letter in left if letter in right]

    def positions(letters: str) -> tuple[Ints, Ints]:
        results = [letter for letter in shared if letter in letters]
        return tuple(map(left.index, results)), tuple(map(right.index, results))

    return arrays[0], arrays[1], (positions("kl"), positions("bc"))


def fuse(function: Any, *arrays: Array) -> list[ops.Fusion]:
    with xarr.config(fusion="compiled"):
        graph = xarr.lower(function, *map(xarr.asarray, arrays)).stage("fused")
    assert isinstance(graph, Graph)
    return [node.op for node in graph.nodes if isinstance(node.op, ops.Fusion)]


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(FORMS),
    st.sampled_from(("float32", "float64")),
    st.tuples(*[st.integers(1, 5)] * 4),
    st.integers(4, 14),
    st.integers(8, 40),
    st.integers(0, 2**32),
)
def test_small_products_are_those_of_the_reference(
    form: str, dtype: str, few: Ints, rows: int, columns: int, seed: int
) -> None:
    sizes = dict(zip("cklq", few, strict=True)) | {"b": 4, "m": rows, "p": rows, "n": columns}
    left, right, numbers = operands(form, sizes, seed, dtype)

    def function(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, numbers)

    assert len(fuse(function, left, right)) == 1
    with xarr.config(fusion="compiled"):
        result = np.asarray(function(xarr.asarray(left), xarr.asarray(right)))
    with xarr.use_backend("reference"):
        assert_same(result, function(xarr.asarray(left), xarr.asarray(right)))


def test_what_comes_after_joins_small_products() -> None:
    left, right, numbers = operands("bmk,bkn", {"b": 6, "m": 7, "k": 5, "n": 9}, 1, "float32")

    def function(x: Any, y: Any) -> Any:
        result = lax.dot_general(x, y, numbers)
        return lax.max(result, lax.full_like(result, 0))

    assert len(fuse(function, left, right)) == 1
    with xarr.config(fusion="compiled"):
        assert_same(function(*map(xarr.asarray, (left, right))), np.maximum(left @ right, 0))


@pytest.mark.parametrize(
    ("form", "n", "dtype"),
    [
        ("bmk,bkn", 5, "float32"),
        ("bmk,bnk", 16, "float32"),
        ("bmk,bkn", 16, "int32"),
        ("mk,kn", 16, "float32"),
    ],
)
def test_other_products_are_left_to_blas(form: str, n: int, dtype: str) -> None:
    left, right, numbers = operands(form, {"b": 6, "m": 7, "k": 5, "n": n}, 1, dtype)
    assert not fuse(lambda x, y: lax.dot_general(x, y, numbers), left, right)


#: Left and right shapes, and which dimension of each is contracted: columns or terms lie side by side.
IN_LOOPS = {
    "rows beyond a tile": ((19, 7), (7, 100), 1, 0),
    "rows first": ((33, 5), (5, 33), 1, 0),
    "a right matrix beyond a cache": ((9, 70), (70, 200), 1, 0),
    "columns first": ((70, 9), (70, 49), 0, 0),
    "one row": ((1, 40), (40, 200), 1, 0),
    "a vector": ((40,), (40, 37), 0, 0),
    "terms": ((9, 70), (13, 70), 1, 1),
    "few terms": ((5, 3), (6, 3), 1, 1),
    "many terms": ((2, 5000), (3, 5000), 1, 1),
    "terms and a vector": ((7, 40), (40,), 1, 0),
    "nothing lies side by side": ((70, 9), (20, 70), 0, 1),
    "no terms": ((4, 0), (0, 16), 1, 0),
}


@pytest.mark.parametrize("name", IN_LOOPS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles_of_products_in_loops_are_the_products(name: str, dtype: str) -> None:
    left, right, first, second = IN_LOOPS[name]
    random = np.random.default_rng(len(name))
    x, y = (random.integers(-3, 4, shape).astype(dtype) for shape in (left, right))

    def multiply(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, (((first,), (second,)), ((), ())))

    def repeat(x: Any, y: Any) -> Any:
        return lax.fori_loop(
            0,
            3,
            lambda i, total: lax.add(total, multiply(lax.mul(x, lax.full_like(x, 2)), y)),
            multiply(x, y),
        )

    wanted = 7 * np.tensordot(x, y, ((first,), (second,)))
    assert_same(np.asarray(xarr.jit(repeat)(x, y)), wanted.astype(dtype))


def test_infinite_terms_beside_a_tile_count_for_their_own_sums_alone() -> None:
    x, y = np.ones((9, 33), np.float32), np.ones((13, 33), np.float32)
    x[8, 32], y[12, 0] = np.inf, np.nan

    def repeat(x: Any, y: Any) -> Any:
        return lax.fori_loop(
            0, 2, lambda i, total: x @ xarr.swapaxes(y, 0, 1), xarr.zeros((9, 13), "float32")
        )

    got = np.asarray(xarr.jit(repeat)(x, y))
    assert np.isnan(got[:, 12]).all()
    assert np.isinf(got[8, :12]).all()
    assert (got[:8, :12] == 33).all()
