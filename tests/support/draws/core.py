"""Random contractions, slices, pads, sorts, reductions and scans."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import numpy as np

from tests.support.fuzz import Draw, Drawn, HostArray
from xarr.ir.types import Ints

EXACT = ("bool", "int8", "int32", "int64", "uint8", "uint64")
FLOATS = ("float32", "float64")


def values(random: Random, shape: Ints, dtype: str) -> HostArray:
    draw = np.random.default_rng(random.randrange(2**32))
    if dtype == "bool":
        return draw.random(shape) < 0.5
    if dtype in EXACT:
        low = 0 if dtype[0] == "u" else -9
        return draw.integers(low, 10, shape).astype(dtype)
    numbers = draw.normal(size=shape).astype(dtype)
    special = draw.random(shape) < 0.05
    return np.where(special & (random.random() < 0.3), np.asarray(-0.0, dtype), numbers)


def shape_of(random: Random, rank: int, least: int = 0) -> Ints:
    return tuple(
        random.choice([least, 1, 2, 3, 4, 5]) if least == 0 else random.randint(least, 5) for _ in range(rank)
    )


def dot_general(random: Random) -> Drawn:
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
        axes = {(kind, k): axis for axis, (kind, k, _) in enumerate(sizes)}
        dims.append(
            ([axes["c", k] for k in range(len(contracted))], [axes["b", k] for k in range(len(batch))])
        )
    numbers = ((dims[0][0], dims[1][0]), (dims[0][1], dims[1][1]))
    terms = int(np.prod(contracted, initial=1)) + 2
    return Drawn(lambda module, x: module.dot_general(*x, numbers), tuple(operands), roundings=4.0 * terms)


def slice_(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(0, 4)), random.choice(EXACT + FLOATS))
    starts, limits, strides = [], [], []
    for size in x.shape:
        start = random.randint(0, size)
        starts.append(start)
        limits.append(random.randint(start, size))
        strides.append(random.randint(1, 3))
    return Drawn(lambda module, a: module.slice(*a, starts, limits, strides), (x,))


def dynamic_slice(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(1, 4)), random.choice(EXACT + FLOATS))
    sizes = tuple(random.randint(0, size) for size in x.shape)
    kind = random.choice(["int32", "int64", "uint8", "int8"])
    starts = tuple(np.asarray(random.randint(-3 if kind[0] == "i" else 0, 7), kind) for _ in x.shape)
    return Drawn(lambda module, a: module.dynamic_slice(a[0], a[1:], sizes), (x, *starts))


def dynamic_update(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(1, 4)), random.choice(EXACT + FLOATS))
    update = values(random, tuple(random.randint(0, size) for size in x.shape), str(x.dtype))
    starts = tuple(np.asarray(random.randint(-3, 7), "int32") for _ in x.shape)
    return Drawn(lambda module, a: module.dynamic_update_slice(a[0], a[1], a[2:]), (x, update, *starts))


def pad(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(0, 4)), random.choice(EXACT + FLOATS))
    config = []
    for size in x.shape:
        interior = random.choice([0, 0, 1, 2])
        whole = size + max(size - 1, 0) * interior
        low = random.randint(-min(2, whole), 3)
        config.append((low, random.randint(-min(2, max(whole + low, 0)), 3), interior))
    fill = values(random, (), str(x.dtype))
    return Drawn(lambda module, a: module.pad(*a, config), (x, fill))


def sort(random: Random) -> Drawn:
    shape = shape_of(random, random.randint(1, 3))
    count, axis = random.randint(1, 3), random.randrange(len(shape))
    arrays = tuple(values(random, shape, random.choice(EXACT[1:] + FLOATS)) for _ in range(count))
    keys = random.randint(1, count)
    return Drawn(lambda module, a: module.sort(a, dimension=axis, is_stable=True, num_keys=keys), arrays)


def reduce(random: Random) -> Drawn:
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

    return Drawn(call, (x,), roundings=4.0 * x.size)


def _lowest(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def cumulative(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(1, 3)), random.choice(EXACT[1:] + FLOATS))
    name, axis, back = (
        random.choice(["cumsum", "cumprod", "cummax", "cummin"]),
        random.randrange(x.ndim),
        random.random() < 0.5,
    )
    return Drawn(lambda module, a: getattr(module, name)(*a, axis=axis, reverse=back), (x,), roundings=8.0)


def extreme_index(random: Random) -> Drawn:
    x = values(random, shape_of(random, random.randint(1, 3), 1), random.choice(EXACT[1:] + FLOATS))
    name, axis = random.choice(["argmax", "argmin"]), random.randrange(x.ndim)
    return Drawn(lambda module, a: getattr(module, name)(*a, axis, np.int32), (x,))


def broadcast(random: Random) -> Drawn:
    shape = shape_of(random, random.randint(0, 4))
    dims = tuple(axis for axis in range(len(shape)) if random.random() < 0.6)
    operand = tuple(random.choice([1, shape[axis]]) for axis in dims)
    x = values(random, operand, random.choice(EXACT + FLOATS))
    return Drawn(lambda module, a: module.broadcast_in_dim(*a, shape, dims), (x,))


DRAWS: Final[dict[str, Draw]] = {
    "ArgMaxMin": extreme_index,
    "BroadcastInDim": broadcast,
    "Cumulative": cumulative,
    "DotGeneral": dot_general,
    "DynamicSlice": dynamic_slice,
    "DynamicUpdateSlice": dynamic_update,
    "Pad": pad,
    "Reduce": reduce,
    "Slice": slice_,
    "Sort": sort,
}


def changes(x: HostArray) -> dict[str, Callable[[], HostArray]]:
    """Arrays of another shape or element type, with which a call may still be right."""
    return {
        "deeper": lambda: x[None],
        "shallower": lambda: x[..., 0] if x.ndim and x.shape[-1] else x,
        "doubled": lambda: np.concatenate([x, x], -1) if x.ndim else x,
        "complex": lambda: x.astype(np.complex64),
        "float": lambda: x.real.astype(np.float32),
    }
