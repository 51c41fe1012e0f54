"""Random gathers and scatters of every form, against XLA and against the reference backend.

XLA gets many of them as one module, the text of our own graph, so that it compiles once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from tests.xla import run_stablehlo
from xarr import lax
from xarr.ir.types import Ints

HostArray = np.ndarray[Any, Any]

TYPES = (
    np.bool_,
    np.int8,
    np.int64,
    np.uint32,
    np.float16,
    ml_dtypes.bfloat16,
    np.float32,
    np.float64,
    np.complex64,
)
INDEX_TYPES = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64)


@dataclass
class Case:
    """A function of Arrays and the arguments to call it with."""

    function: Callable[..., Any]
    arguments: list[HostArray]
    name: str

    def __repr__(self) -> str:
        shown = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arguments)
        return f"{self.name} of {shown}"


@dataclass
class Layout:
    """Operand, indices and windowed shape of a gather or scatter, and its dimension numbers."""

    operand: Ints
    indices: Ints
    windowed: Ints
    window_dims: Ints
    left_out: Ints
    index_map: Ints
    batching: Ints
    own_batching: Ints
    vector_dim: int
    sizes: Ints


def some_of(random: Random, items: Sequence[int], count: int) -> Ints:
    return tuple(sorted(random.sample(list(items), count)))


def layout(random: Random) -> Layout:
    """Dimension numbers that are valid, of any kind."""
    rank = random.randint(0, 4)
    operand = tuple(random.choice((0, 1, 2, 3, 3, 4, 4)) if random.random() < 0.7 else 3 for _ in range(rank))
    kinds = [random.choice("wwwllb") for _ in range(rank)]
    window, left_out, batching = (tuple(d for d in range(rank) if kinds[d] == kind) for kind in "wlb")
    free = [random.choice((0, 1, 2, 3, 3)) for _ in range(random.randint(0, 2))]
    axes = random.sample(range(len(free) + len(batching)), len(batching))
    batch: list[int] = []
    for axis in range(len(free) + len(batching)):
        batch.append(operand[batching[axes.index(axis)]] if axis in axes else free.pop())
    movable = [dim for dim in range(rank) if dim not in batching]
    index_map = tuple(random.sample(movable, random.randint(0, len(movable))))
    is_scalar = len(index_map) == 1 and random.random() < 0.3
    vector_dim = len(batch) if is_scalar else random.randint(0, len(batch))
    indices = tuple(batch) if is_scalar else (*batch[:vector_dim], len(index_map), *batch[vector_dim:])
    own_batching = tuple(axis + (axis >= vector_dim) for axis in axes)
    sizes = tuple(
        min(1, s) if kinds[d] != "w" else random.choice((s, random.randint(0, s)))
        for d, s in enumerate(operand)
    )
    window_dims = some_of(random, range(len(batch) + len(window)), len(window))
    if random.random() < 0.5:
        window_dims = tuple(range(len(batch), len(batch) + len(window)))
    inside, outside = iter([sizes[dim] for dim in window]), iter(batch)
    windowed = tuple(
        next(inside) if dim in window_dims else next(outside) for dim in range(len(batch) + len(window))
    )
    return Layout(
        operand,
        indices,
        windowed,
        window_dims,
        left_out,
        index_map,
        batching,
        own_batching,
        vector_dim,
        sizes,
    )


def values(random: Random, shape: Ints, dtype: Any) -> HostArray:
    generator = np.random.default_rng(random.getrandbits(32))
    return np.asarray(generator.normal(size=shape) * 5).astype(dtype)


def index_values(random: Random, shape: Ints) -> HostArray:
    dtype = random.choice(INDEX_TYPES)
    generator = np.random.default_rng(random.getrandbits(32))
    found = np.asarray(generator.integers(0, random.choice((1, 2, 4)), shape)).astype(dtype)
    if random.random() < 0.5:
        limits = np.iinfo(dtype)
        odd = generator.choice(np.array([limits.min, limits.max, 5, -1 if limits.min else 4], dtype), shape)
        found = np.where(generator.random(shape) < 0.25, odd, found)
    return np.asarray(found)


def gather_case(random: Random) -> Case:
    form = layout(random)
    # XLA's compiler crashes on some gathers of elements from windows without any; jax.lax refuses them all.
    while 0 in form.sizes and 0 not in form.windowed:
        form = layout(random)
    numbers = lax.GatherDimensionNumbers(
        form.window_dims, form.left_out, form.index_map, form.batching, form.own_batching
    )
    mode = random.choice((None, "clip", "fill"))
    arguments = [values(random, form.operand, random.choice(TYPES)), index_values(random, form.indices)]

    def function(operand: Any, indices: Any) -> Any:
        return lax.gather(operand, indices, numbers, form.sizes, mode=mode, index_vector_dim=form.vector_dim)

    return Case(function, arguments, f"gather {numbers} {form}, mode {mode}")


COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lax.add,
    "subtract": lax.sub,
    "subtract the other way": lambda a, b: lax.sub(b, a),
    "max": lax.max,
    "replace": lambda a, b: b,
    "keep": lambda a, b: a,
    "general": lambda a, b: lax.add(lax.neg(a), lax.add(a, lax.sub(b, a))),
    "of one": lambda a, b: lax.neg(a),
}


def scatter_case(random: Random) -> Case:
    form = layout(random)
    # XLA's scatter simplifier fails on, or forgets all but one of, several windows without a start.
    while not form.index_map and prod(form.windowed) != 1:
        form = layout(random)
    numbers = lax.ScatterDimensionNumbers(
        form.window_dims, form.left_out, form.index_map, form.batching, form.own_batching
    )
    mode = random.choice((None, "clip", "drop"))
    indices, count = index_values(random, form.indices), random.choice((1, 1, 1, 2))
    # XLA refuses two widths of floats in one scatter.
    types: list[Any] = [
        random.choice((np.float16, np.float32, np.float64, np.int64)),
        random.choice((np.int8, np.uint32)),
    ][:count]
    name = random.choice(tuple(COMBINERS))
    combine = COMBINERS[name]

    def pairs(a: Any, b: Any) -> Any:
        if count == 1:
            return combine(a, b)
        second = lax.convert_element_type(b[0], types[1])
        return combine(a[0], b[0]), combine(lax.add(a[1], second), b[1])

    def function(*arrays: Any) -> Any:
        inputs, places, updates = arrays[:count], arrays[count], arrays[count + 1 :]
        packed = (inputs[0], updates[0]) if count == 1 else (inputs, updates)
        found = lax.scatter_with(
            packed[0], places, packed[1], pairs, numbers, mode=mode, index_vector_dim=form.vector_dim
        )
        return found if count == 1 else lax.add(found[1], lax.convert_element_type(found[0], types[1]))

    arguments = [values(random, form.operand, t) for t in types] + [indices]
    arguments += [values(random, form.windowed, t) for t in types]
    return Case(function, arguments, f"scatter {name} {numbers} {form}, mode {mode}")


def check(cases: list[Case]) -> None:
    together = [argument for case in cases for argument in case.arguments]

    def all_of_them(*arrays: Any) -> list[Any]:
        rest = iter(arrays)
        return [case.function(*[next(rest) for _ in case.arguments]) for case in cases]

    text = xarr.lower(all_of_them, *together).graph.to_text()
    for case, by_xla in zip(cases, run_stablehlo(text, *together), strict=True):
        found = {}
        for name in ("numpy", "reference"):
            with xarr.use_backend(name):
                found[name] = case.function(*map(xarr.asarray, case.arguments))
                found[name].evaluate()
        for name, array in found.items():
            try:
                assert_same(array, by_xla)
            except AssertionError as error:
                raise AssertionError(f"{name} and XLA differ: {case}\n{case.arguments}\n{error}") from None


RANDOMS = st.integers(0, 2**32).map(Random)


@settings(max_examples=12)
@given(st.lists(RANDOMS.map(gather_case), min_size=50, max_size=50))
def test_gathers_as_xla(cases: list[Case]) -> None:
    check(cases)


@settings(max_examples=12)
@given(st.lists(RANDOMS.map(scatter_case), min_size=50, max_size=50))
def test_scatters_as_xla(cases: list[Case]) -> None:
    check(cases)
