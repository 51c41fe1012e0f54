"""Random contractions, slices, pads, sorts, reductions and scans, 500 of each, against jax.lax.

Fifty at a time make one program, so that XLA compiles ten times and not 500 times.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import jax
import numpy as np
import pytest

from xarr import lax
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.ir.types import Ints

jax.config.update("jax_enable_x64", True)

Array = np.ndarray[Any, Any]
Call = Callable[[Any, tuple[Any, ...]], Any]
#: A call of `lax` or `jax.lax`, its operands, and how many roundings of the largest term results may differ by.
Drawn = tuple[Call, tuple[Array, ...], float]

EXACT = ("bool", "int8", "int32", "int64", "uint8", "uint64")
FLOATS = ("float32", "float64")


def values(random: Random, shape: Ints, dtype: str) -> Array:
    draw = np.random.default_rng(random.randrange(2**32))
    if dtype == "bool":
        return draw.random(shape) < 0.5
    if dtype in EXACT:
        low = 0 if dtype[0] == "u" else -9
        return draw.integers(low, 10, shape).astype(dtype)
    found = draw.normal(size=shape).astype(dtype)
    special = draw.random(shape) < 0.05
    return np.where(special & (random.random() < 0.3), np.asarray(-0.0, dtype), found)


def shape_of(random: Random, rank: int, least: int = 0) -> Ints:
    return tuple(
        random.choice([least, 1, 2, 3, 4, 5]) if least == 0 else random.randint(least, 5) for _ in range(rank)
    )


def draw_dot(random: Random) -> Drawn:
    dtype = random.choice(["int32", "float32", "float64", "complex128", "uint8"])
    batch, contracted = shape_of(random, random.randint(0, 2)), shape_of(random, random.randint(0, 2))
    free = [shape_of(random, random.randint(0, 2)) for _ in range(2)]
    operands, dims = [], []
    for side in range(2):
        sizes = [
            *(("b", k, n) for k, n in enumerate(batch)),
            *(("c", k, n) for k, n in enumerate(contracted)),
        ]
        sizes += [("f", k, n) for k, n in enumerate(free[side])]
        random.shuffle(sizes)
        shape = tuple(n for _, _, n in sizes)
        real = values(random, shape, "float64" if dtype[0] == "c" else dtype)
        operands.append(real.astype(dtype) * (1 + 1j) if dtype[0] == "c" else real)
        place = {(kind, k): axis for axis, (kind, k, _) in enumerate(sizes)}
        dims.append(
            ([place["c", k] for k in range(len(contracted))], [place["b", k] for k in range(len(batch))])
        )
    numbers = ((dims[0][0], dims[1][0]), (dims[0][1], dims[1][1]))
    terms = int(np.prod(contracted, initial=1)) + 2
    return lambda module, x: module.dot_general(*x, numbers), tuple(operands), 4.0 * terms


def draw_slice(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(0, 4)), random.choice(EXACT + FLOATS))
    starts, limits, strides = [], [], []
    for size in x.shape:
        start = random.randint(0, size)
        starts.append(start)
        limits.append(random.randint(start, size))
        strides.append(random.randint(1, 3))
    return lambda module, a: module.slice(*a, starts, limits, strides), (x,), 0


def draw_dynamic_slice(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(1, 4)), random.choice(EXACT + FLOATS))
    sizes = tuple(random.randint(0, size) for size in x.shape)
    kind = random.choice(["int32", "int64", "uint8", "int8"])
    starts = tuple(np.asarray(random.randint(-3 if kind[0] == "i" else 0, 7), kind) for _ in x.shape)
    return lambda module, a: module.dynamic_slice(a[0], a[1:], sizes), (x, *starts), 0


def draw_dynamic_update(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(1, 4)), random.choice(EXACT + FLOATS))
    update = values(random, tuple(random.randint(0, size) for size in x.shape), str(x.dtype))
    starts = tuple(np.asarray(random.randint(-3, 7), "int32") for _ in x.shape)
    return lambda module, a: module.dynamic_update_slice(a[0], a[1], a[2:]), (x, update, *starts), 0


def draw_pad(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(0, 4)), random.choice(EXACT + FLOATS))
    config = []
    for size in x.shape:
        interior = random.choice([0, 0, 1, 2])
        whole = size + max(size - 1, 0) * interior
        low = random.randint(-min(2, whole), 3)
        config.append((low, random.randint(-min(2, max(whole + low, 0)), 3), interior))
    fill = values(random, (), str(x.dtype))
    return lambda module, a: module.pad(*a, config), (x, fill), 0


def draw_sort(random: Random) -> Drawn:
    shape = shape_of(random, random.randint(1, 3))
    count, axis = random.randint(1, 3), random.randrange(len(shape))
    arrays = tuple(values(random, shape, random.choice(EXACT[1:] + FLOATS)) for _ in range(count))
    keys = random.randint(1, count)
    return lambda module, a: module.sort(a, dimension=axis, is_stable=True, num_keys=keys), arrays, 0


def draw_reduce(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(1, 4), 1), random.choice(EXACT[1:] + FLOATS))
    axes = tuple(axis for axis in range(x.ndim) if random.random() < 0.5) or (0,)
    names = ["add", "max", "min", "mul"] + (
        ["bitwise_and", "bitwise_or", "bitwise_xor"] if x.dtype.kind != "f" else []
    )
    name = random.choice(names)
    one = name in ("mul", "bitwise_and")
    neutral = {"max": _lowest(x.dtype), "min": _highest(x.dtype)}.get(
        name, x.dtype.type(one and (1 if name == "mul" else ~x.dtype.type(0)))
    )
    first = np.asarray(neutral, x.dtype)

    def call(module: Any, a: tuple[Any, ...]) -> Any:
        return module.reduce(a[0], first, lambda p, q: getattr(module, name)(p, q), axes)

    return call, (x,), 4.0 * x.size


def _lowest(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def draw_cumulative(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(1, 3)), random.choice(EXACT[1:] + FLOATS))
    name, axis, back = (
        random.choice(["cumsum", "cumprod", "cummax", "cummin"]),
        random.randrange(x.ndim),
        random.random() < 0.5,
    )
    return lambda module, a: getattr(module, name)(*a, axis=axis, reverse=back), (x,), 8.0


def draw_arg(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(1, 3), 1), random.choice(EXACT[1:] + FLOATS))
    name, axis = random.choice(["argmax", "argmin"]), random.randrange(x.ndim)
    return lambda module, a: getattr(module, name)(*a, axis, np.int32), (x,), 0


def draw_broadcast(random: Random) -> Drawn:
    shape = shape_of(random, random.randint(0, 4))
    dims = tuple(axis for axis in range(len(shape)) if random.random() < 0.6)
    operand = tuple(random.choice([1, shape[axis]]) for axis in dims)
    x = values(random, operand, random.choice(EXACT + FLOATS))
    return lambda module, a: module.broadcast_in_dim(*a, shape, dims), (x,), 0


DRAWN = {
    "argument of extremes": draw_arg,
    "broadcast_in_dim": draw_broadcast,
    "cumulative": draw_cumulative,
    "dot_general": draw_dot,
    "dynamic_slice": draw_dynamic_slice,
    "dynamic_update_slice": draw_dynamic_update,
    "pad": draw_pad,
    "reduce": draw_reduce,
    "slice": draw_slice,
    "sort": draw_sort,
}


def close(got: Any, wanted: Any, operands: tuple[Array, ...], factor: float) -> None:
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        found, exact = np.asarray(mine), np.asarray(theirs)
        assert (found.dtype, found.shape) == (exact.dtype, exact.shape)
        if not factor or exact.dtype.kind in "biu":
            np.testing.assert_array_equal(found, exact)
            if exact.dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(found), np.signbit(exact))
            continue
        scale = max(
            1.0, float(np.abs(exact).max(initial=0)), *(float(np.abs(x).max(initial=0)) for x in operands)
        )
        np.testing.assert_allclose(
            found, exact, rtol=0, atol=factor * float(np.finfo(found.dtype).eps) * scale
        )


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", DRAWN)
def test_random_calls_agree_with_jax(name: str, seed: int) -> None:
    random = Random(seed)
    rows = [DRAWN[name](random) for _ in range(50)]

    def every(operands: Any) -> list[Any]:
        return [call(jax.lax, each) for (call, _, _), each in zip(rows, operands, strict=True)]

    wanted = jax.jit(every)([operands for _, operands, _ in rows])
    for (call, operands, factor), theirs in zip(rows, wanted, strict=True):
        close(call(lax, operands), theirs, operands, factor)


def spoilt(random: Random) -> tuple[Call, tuple[Array, ...]]:
    """A call with an operand of another shape or element type, which may still be right."""
    call, operands, _ = DRAWN[random.choice(list(DRAWN))](random)
    place = random.randrange(len(operands))
    x = operands[place]
    changes: list[Callable[[], Array]] = [
        lambda: x[None],
        lambda: x[..., 0] if x.ndim and x.shape[-1] else x,
        lambda: np.concatenate([x, x], -1) if x.ndim else x,
        lambda: x.astype(np.complex64),
        lambda: x.real.astype(np.float32),
    ]
    return call, (*operands[:place], random.choice(changes)(), *operands[place + 1 :])


def refuses(apply: Callable[[], object], *errors: type[Exception]) -> bool:
    try:
        apply()
    except errors:
        return True
    return False


def test_what_jax_refuses_is_refused() -> None:
    random = Random(5)
    refused = 0
    for _ in range(600):
        call, operands = spoilt(random)

        def theirs(call: Call = call, operands: Any = operands) -> object:
            return jax.eval_shape(lambda *given: call(jax.lax, given), *operands)

        def mine(call: Call = call, operands: Any = operands) -> object:
            return call(lax, operands)

        # Of other errors than its own JAX has many: AssertionError, IndexError, ValueError …
        if refuses(theirs, Exception):
            refused += 1
            shown = [(x.dtype, x.shape) for x in operands]
            assert refuses(mine, ShapeError, DTypeError, InputError), shown
    assert refused > 100
