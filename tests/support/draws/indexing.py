"""Random gathers and scatters of every form, which XLA runs as xarr prints them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any, Final

import ml_dtypes
import numpy as np

from tests.support.fuzz import Draw, Drawn, HostArray
from xarr import lax
from xarr.ir.types import Ints

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
    numbers = np.asarray(generator.integers(0, random.choice((1, 2, 4)), shape)).astype(dtype)
    if random.random() < 0.5:
        limits = np.iinfo(dtype)
        odd = generator.choice(np.array([limits.min, limits.max, 5, -1 if limits.min else 4], dtype), shape)
        numbers = np.where(generator.random(shape) < 0.25, odd, numbers)
    return np.asarray(numbers)


def gather(random: Random) -> Drawn:
    form = layout(random)
    # XLA's compiler crashes on some gathers of elements from windows without any; jax.lax refuses them all.
    while 0 in form.sizes and 0 not in form.windowed:
        form = layout(random)
    numbers = lax.GatherDimensionNumbers(
        form.window_dims, form.left_out, form.index_map, form.batching, form.own_batching
    )
    mode = random.choice((None, "clip", "fill"))
    operands = values(random, form.operand, random.choice(TYPES)), index_values(random, form.indices)

    def call(module: Any, a: tuple[Any, ...]) -> Any:
        return module.gather(*a, numbers, form.sizes, mode=mode, index_vector_dim=form.vector_dim)

    return Drawn(call, operands, name=f"{numbers} {form}, mode {mode}")


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


def scatter(random: Random) -> Drawn:
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

    def call(module: Any, arrays: tuple[Any, ...]) -> Any:
        inputs, at, updates = arrays[:count], arrays[count], arrays[count + 1 :]
        packed = (inputs[0], updates[0]) if count == 1 else (inputs, updates)
        results = module.scatter_with(
            packed[0], at, packed[1], pairs, numbers, mode=mode, index_vector_dim=form.vector_dim
        )
        if count == 1:
            return results
        return module.add(results[1], module.convert_element_type(results[0], types[1]))

    inputs = [values(random, form.operand, t) for t in types]
    operands = (*inputs, indices, *(values(random, form.windowed, t) for t in types))
    return Drawn(call, operands, name=f"{name} {numbers} {form}, mode {mode}")


WITH_XLA: Final[dict[str, Draw]] = {"Gather": gather, "Scatter": scatter}
