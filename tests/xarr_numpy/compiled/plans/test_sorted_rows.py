"""Sorts in machine code: the bits of sorts outside of it, along any axis, by any order, and without Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax

pytest.importorskip("llvmlite")

pytestmark = [pytest.mark.usefixtures("on_numpy", "fused")]

RNG = np.random.default_rng(8)
#: Rows along each axis, too long for ranks, of sizes that runs do and do not divide.
ROWS = [(0, 70), (1, 96), (97,), (3, 128), (150, 3), (2, 65, 5), (1, 300), (797,)]


def plan_of(function: Callable[..., Any], *arguments: Any) -> str:
    return str(xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("plan"))


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Numbers of all sizes with many that are equal; of floats both zeros, infinities and several NaNs."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return RNG.integers(2, size=shape).astype(bool)
    if kind.kind in "iu":
        least, greatest = np.iinfo(kind).min, np.iinfo(kind).max
        wide = RNG.integers(least, greatest, size=shape, dtype=kind, endpoint=True)
        few = RNG.integers(0, 3, size=shape).astype(kind)
        return np.where(RNG.random(shape) < 0.5, wide, few)
    if kind.kind == "c":
        return numbers((*shape, 2), kind.char.lower()).view(kind)[..., 0]
    wide = RNG.normal(size=shape) * 10.0 ** RNG.integers(-4, 4, size=shape)
    special = RNG.choice([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0], size=shape)
    return np.where(RNG.random(shape) < 0.5, wide, special).astype(kind)


def agree(function: Callable[..., Any], *arrays: Any) -> None:
    """A function gives one result in machine code, which calls no Python, and by operations one by one."""
    with xarr.config(fusion="off"):
        wanted = xarr.tree.leaves(xarr.jit(function)(*arrays))
    for got, other in zip(xarr.tree.leaves(xarr.jit(function)(*arrays)), wanted, strict=True):
        assert_same(got, other)


def in_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loop of which each step calls a function with arrays that were rolled."""

    def step(arrays: Any, _: Any) -> Any:
        moved = [xarr.roll(each, 1, 0) for each in arrays]
        return moved, function(*moved)

    return lambda *arrays: lax.scan(step, list(arrays), None, length=3)


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "int64", "int8", "uint64", "uint8", "bool"]
)
@pytest.mark.parametrize("shape", ROWS, ids=str)
def test_the_bits_are_those_of_single_operations(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    axis = int(np.argmax(shape))

    def both(x: Any) -> Any:
        order = lax.sort((x, lax.broadcasted_iota("int64", shape, axis)), dimension=axis, num_keys=1)
        return lax.sort(x, dimension=axis), *order

    agree(in_loop(both), x)
    assert "in Python" not in plan_of(in_loop(both), x)


@pytest.mark.parametrize("dtypes", [("int8", "float32", "uint16"), ("float64", "bool", "complex128")])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_several_keys(dtypes: tuple[str, ...], count: int) -> None:
    arrays = [numbers((2, 140), dtype) for dtype in dtypes]
    arrays[0] = arrays[0] // 8 if arrays[0].dtype.kind == "i" else np.sign(arrays[0])

    def function(*arrays: Any) -> Any:
        return lax.sort(arrays, dimension=1, num_keys=count)

    agree(in_loop(function), *arrays)
    assert "in Python" not in plan_of(in_loop(function), *arrays)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: xarr.argsort(x, descending=True),
        lambda x: lax.top_k(x, 100),
        lambda x: xarr.argsort(xarr.abs(x), axis=-1, stable=True),
        lambda x: xarr.median(x, axis=-1),
        lambda x: xarr.sort(x, axis=-1)[..., ::-1],
    ],
    ids=["descending", "top_k", "absolute", "median", "reversed"],
)
def test_functions_that_sort(function: Callable[[Any], Any]) -> None:
    x = numbers((3, 256), "float32")
    x[np.isnan(x)] = 3
    agree(in_loop(function), x)
    assert "in Python" not in plan_of(in_loop(function), x)


def test_a_sort_in_a_small_program() -> None:
    def function(x: Any) -> Any:
        return xarr.sort(x * 2) + 1

    x = numbers((200,), "float64")
    agree(function, x)
    assert "in Python" not in str(xarr.jit(function).lower(x).stage("plan"))


def test_large_sorts_are_left_to_numpy() -> None:
    x = numbers((100_000,), "float64")
    assert "in Python" in plan_of(in_loop(xarr.sort), x[:1000])
    assert "in Python" not in plan_of(in_loop(xarr.argsort), x[:1000])
    assert "in Python" in plan_of(in_loop(xarr.argsort), x)
