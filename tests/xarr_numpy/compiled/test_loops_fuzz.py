"""Random programs of loops, updates and what surrounds them leave no array written over that is still needed.

Some results are looked at before others, and arguments are donated or kept. All numbers are whole and stay small,
so that sums are exact in any order and every engine gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from xarr import lax
from xarr.base.configuration import current as config

pytest.importorskip("llvmlite")

#: So large that arrays take the memory of others, and so small that a program is one function.
SHAPES = ((90, 60), (66, 10))

Step = Callable[[Random, Any, list[Any]], list[Any]]


def small(x: Any) -> Any:
    return lax.rem(x, 64.0)


def neighbours(x: Any, y: Any) -> Any:
    inside = x[:-2, 1:-1] - x[2:, 1:-1] + y[1:-1, 1:-1]
    return x.at[1:-1, 1:-1].set(small(inside))


def element_wise(random: Random, count: Any, arrays: list[Any]) -> list[Any]:
    x, y, z = arrays
    return [small(random.choice((x + y, x - y, xarr.maximum(x, y), x + y - z)))]


def row_sums(random: Random, count: Any, arrays: list[Any]) -> list[Any]:
    x, y, _ = arrays
    return [small(x - xarr.broadcast_to(xarr.sum(y, axis=1, keepdims=True), x.shape))]


def update(random: Random, count: Any, arrays: list[Any]) -> list[Any]:
    x, y, z = arrays
    rows = xarr.astype(xarr.abs(y[:, 0]), "int64")
    return [
        random.choice(
            (
                neighbours(x, y),
                x.at[count, :].set(y[0]),
                x.at[0].set(x[1]).at[:, -1].set(x[:, -2]),
                small(x + y).at[1:5].set(x[5:9]),
                small(x.at[rows].add(z)),
                lax.dynamic_update_slice(x, y[:20, :7], (count * 40, count)),
            )
        )
    ]


def flip(random: Random, count: Any, arrays: list[Any]) -> list[Any]:
    return [xarr.flip(arrays[0], axis=random.randrange(2))]


def branch(random: Random, count: Any, arrays: list[Any]) -> list[Any]:
    return [lax.cond(count > 1, lambda x, y: x, lambda x, y: small(y + 1), *arrays[:2])]


def scan(random: Random, count: Any, arrays: list[Any]) -> list[Any]:
    x, y, _ = arrays
    last, rows = lax.scan(lambda carry, row: (small(carry - row), carry), x[0], y)
    return [rows, small(y + xarr.broadcast_to(last, y.shape))]


def points(random: Random, count: Any, arrays: list[Any]) -> list[Any]:
    """Carries that are swapped, of which one changes."""
    order = random.choice(((0, 1, 2), (1, 0, 2), (0, 1, 1), (2, 1, 0), (0, 0, 2)))
    index = random.randrange(3)

    def step(i: Any, state: Any) -> Any:
        following = [state[k] for k in order]
        following[index] = small(following[index] + state[0] - state[1])
        return tuple(following)

    return list(lax.fori_loop(0, count, step, tuple(arrays)))


def repeat(random: Random, count: Any, arrays: list[Any]) -> list[Any]:
    """Groups that run again and again, beside carries that do not change."""
    steps: tuple[Callable[[Any, Any, Any, Any], tuple[Any, ...]], ...] = (
        lambda i, x, y, z: (neighbours(x, x), y, z),
        lambda i, x, y, z: (neighbours(x, y), y, z),
        lambda i, x, y, z: (small(x - xarr.sum(y)), small(y + 1), z),
        lambda i, x, y, z: (x.at[i, :].set(small(y[0] - i)), y, small(z - 2)),
        lambda i, x, y, z: (x.at[i].set(y[i]), small(x + y), z),
    )
    step = random.choice(steps)
    return list(lax.fori_loop(0, count, lambda i, state: step(i, *state), tuple(arrays)))


def several(random: Random, count: Any, arrays: list[Any]) -> list[Any]:
    """Loops of several groups: rows, sums, products, loops, branches, and carries that change their names."""
    bodies: tuple[Callable[[Any, Any, Any, Any], tuple[Any, ...]], ...] = (
        lambda i, x, y, z: (lax.dynamic_update_slice(x, small(x[:1] - y[i]), (i + 1, 0)), y, x),
        lambda i, x, y, z: (small(x + xarr.sum(y)), small(y - xarr.sum(x, axis=0)), z),
        lambda i, x, y, z: (small(xarr.matmul(x, xarr.matmul(y[:5].T, z[:5]))), z, y),
        lambda i, x, y, z: (z, small(x + xarr.sum(z)), small(y - xarr.max(x))),
        lambda i, x, y, z: (x.at[0].set(x[3]).at[:, -1].set(x[:, 1]), small(y + xarr.sum(x)), y),
        lambda i, x, y, z: (x.at[1:4].set(x[2:5]), x.at[:, 2].set(x[:, 3]), small(y - xarr.sum(x))),
        lambda i, x, y, z: (lax.dynamic_update_slice(x, z[2:5, :9], (i, i)), small(y + x[1:2] * z), z[::-1]),
        lambda i, x, y, z: (lax.cond(xarr.sum(x) > i, lambda: small(x - xarr.sum(y)), lambda: z), z, y),
        lambda i, x, y, z: (x, *lax.fori_loop(0, i, lambda j, s: (small(s[1] + xarr.sum(x)), s[0]), (y, z))),
        lambda i, x, y, z: (small(x + xarr.cumsum(y, axis=1)), y, xarr.concatenate([z[3:], y[:3]])),
    )
    body, outer = random.choice(bodies), random.choice(bodies)
    if random.random() < 0.3:
        return list(
            lax.fori_loop(
                0,
                2,
                lambda i, s: outer(i, *lax.fori_loop(0, count, lambda j, t: body(j, *t), s)),
                tuple(arrays),
            )
        )
    return list(lax.fori_loop(0, count, lambda i, state: body(i, *state), tuple(arrays)))


def nest_loops(random: Random, count: Any, arrays: list[Any]) -> list[Any]:
    """Loops inside of loops, of a known number of iterations, or none, or as many as an outer loop has done."""

    def loop(depth: int, stop: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        kind, following = random.randrange(3), random.choice((0, 1, 2, None))

        def step(i: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
            x, y, z = state
            if kind == 0:
                x, y = small(x - xarr.sum(y)), x
            elif kind == 1:
                y = lax.dynamic_update_slice(y, small(x[:1] + z[i]), (i + 1, 0))
            state = small(x + y), y, z
            return state if depth == 1 else loop(depth - 1, i if following is None else following, state)

        return lax.fori_loop(0, stop, step, state)

    return list(loop(random.randint(2, 4), count, tuple(arrays)))


def loop_until(random: Random, count: Any, arrays: list[Any]) -> list[Any]:
    """A loop of a length that data say, or that a number that is none ends at once, or never."""
    factor, ends_at_once = random.choice((1.0, -2.0, np.nan)), random.random() < 0.5

    def going(state: tuple[Any, ...]) -> Any:
        total = xarr.sum(state[0][:2]) * factor
        return (state[-1] < 4) & ((total < 9) if ends_at_once else ~(total > 9))

    x, y, z, _ = lax.while_loop(
        going, lambda s: (small(s[0] + xarr.sum(s[1])), s[2], s[1], s[3] + 1), (*arrays, 0 * count)
    )
    return [x, y, z]


STEPS: tuple[Step, ...] = (
    element_wise,
    row_sums,
    update,
    update,
    flip,
    branch,
    scan,
    points,
    repeat,
    repeat,
    several,
    several,
    nest_loops,
    loop_until,
)


def program(seed: int) -> Callable[..., tuple[Any, ...]]:
    def function(count: Any, x: Any, y: Any) -> tuple[Any, ...]:
        random = fuzz.generator("loops", seed)
        values = [x, y]
        for _ in range(random.randint(2, 6)):
            near = values[-6:] if random.random() < 0.7 else values
            values += random.choice(STEPS)(random, count, [random.choice(near) for _ in range(3)])
        return tuple(random.sample(values[2:], min(len(values) - 2, random.randint(1, 5))))

    return function


@pytest.mark.parametrize("seed", fuzz.seeds(15, 250))
def test_every_result_is_that_of_separate_operations(seed: int) -> None:
    steps = (0, 1, 3)[seed % 3]
    random, generator = fuzz.generator("order", seed), np.random.default_rng(seed)
    shape = SHAPES[seed // 3 % 2]
    arrays = [generator.integers(-9, 9, shape).astype(float) for _ in range(2)]

    def results(function: Callable[..., tuple[Any, ...]], fusion: str, donated: bool = False) -> list[Any]:
        with config(fusion=fusion):
            arguments = [(xarr.asarray(x) * 1).evaluate() for x in arrays]
            outputs = function(xarr.asarray(steps), *arguments)
            order = random.sample(range(len(outputs)), len(outputs))
            seen = {k: np.asarray(outputs[k]) for k in order}
            for argument, x in zip(arguments, arrays, strict=True):
                if not donated:
                    assert_same(argument, x)
        return [seen[k] for k in sorted(seen)]

    function = program(seed)
    wanted = results(xarr.jit(function), "off")
    for outputs in (
        results(function, "compiled"),
        results(xarr.jit(function), "compiled"),
        results(xarr.jit(function, donate_argnums=(1, 2)), "compiled", donated=True),
    ):
        with fuzz.showing(lambda: str(xarr.lower(function, xarr.asarray(steps), *arrays).stage("traced"))):
            for one, other in zip(outputs, wanted, strict=True):
                assert_same(one, other)
