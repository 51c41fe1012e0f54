"""Random programs of gathers, scatters, running totals and what surrounds them: compiled as one by one.

All numbers are whole and stay small, so that sums are exact in any order and every path gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from xarr import lax
from xarr.base.configuration import current as config
from xarr.runtime.materialisation import to_host

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 18, 17


def halve(x: Any) -> Any:
    """Back to small numbers."""
    return lax.rem(x, np.float32(7))


def spread(x: Any, axis: int) -> Any:
    return lax.broadcast_in_dim(x, (ROWS, COLUMNS), (axis,))


def indices(x: Any, axis: int) -> Any:
    """Indices made of numbers, some of them out of bounds."""
    column = lax.index_in_dim(x, 1, 1 - axis, keepdims=False)
    return lax.convert_element_type(column, np.int32)


def take(random: Random, x: Any, y: Any) -> Any:
    axis = random.randrange(2)
    mode = random.choice(("clip", "fill"))
    return lax.take(x, indices(y, axis), axis, mode=mode, fill_value=3)


def element_wise(random: Random, x: Any, y: Any) -> Any:
    combine: Callable[[Any, Any], Any] = random.choice((lax.add, lax.sub, lax.max, lax.min))
    return halve(combine(x, y))


def scatter_updates(random: Random, x: Any, y: Any) -> Any:
    axis = random.randrange(2)
    numbers = lax.ScatterDimensionNumbers((1 - axis,), (axis,), (axis,))
    scatter: Callable[..., Any] = random.choice(
        (lax.scatter_add, lax.scatter_max, lax.scatter_min, lax.scatter)
    )
    operand = random.choice((x, lax.full_like(x, 0)))
    return halve(scatter(operand, indices(y, axis), y, numbers, index_vector_dim=1))


def totals(random: Random, x: Any, y: Any) -> Any:
    total: Callable[..., Any] = random.choice((lax.cumsum, lax.cummax, lax.cummin))
    return halve(total(x, random.randrange(2), random.random() < 0.3))


def reduce(random: Random, x: Any, y: Any) -> Any:
    axis = random.randrange(2)
    return halve(lax.sub(x, spread(lax.reduce_sum(y, (axis,)), 1 - axis)))


def move(random: Random, x: Any, y: Any) -> Any:
    ways: Sequence[Callable[[Any], Any]] = (
        lambda x: lax.rev(x, (random.randrange(2),)),
        lambda x: lax.transpose(lax.reshape(x, (COLUMNS, ROWS)), (1, 0)),
        lambda x: lax.pad(lax.slice(x, (1, 2), (ROWS, COLUMNS)), np.float32(1), ((0, 1, 0), (1, 1, 0))),
    )
    return random.choice(ways)(x)


STEPS = (take, element_wise, element_wise, scatter_updates, totals, totals, reduce, move)


def program(seed: int) -> Callable[[Any, Any], Any]:
    def function(x: Any, y: Any) -> Any:
        random = fuzz.generator("moves", seed)
        values = [x, y]
        for _ in range(random.randint(2, 9)):
            step = random.choice(STEPS)
            values.append(step(random, random.choice(values[-4:]), random.choice(values[-4:])))
        results = [values[-1], *random.sample(values[2:], min(2, len(values) - 2))]
        return lax.concatenate(results, 0)

    return function


@pytest.mark.parametrize("seed", fuzz.seeds(30, 600))
def test_compiled_as_one_by_one(seed: int) -> None:
    generator = np.random.default_rng(seed)
    arrays: list[Array] = [generator.integers(-6, 20, (ROWS, COLUMNS)).astype(np.float32) for _ in range(2)]
    results = {}
    for fusion in ("off", "compiled"):
        with config(fusion=fusion):
            results[fusion] = to_host(program(seed)(*map(xarr.asarray, arrays)))
    with fuzz.showing(lambda: str(xarr.lower(program(seed), *arrays).stage("traced"))):
        assert_same(results["compiled"], results["off"])
