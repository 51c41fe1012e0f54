"""Loops that are cut where elements come from other operands of pads, concatenations and rolls."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]
Move = Callable[[Any, Any, int], Any]


def loops(function: Callable[..., Any], *shape: int, dtype: str = "float64") -> str:
    """The loop programs of a function of one array."""
    with xarr.config(fusion="compiled"):
        return str(xarr.jit(function).lower(xarr.zeros(shape, dtype)).stage("loops"))


def part(x: Any, axis: int, *bounds: int | None) -> Any:
    index: list[slice] = [slice(None)] * x.ndim
    index[axis] = slice(*bounds)
    return x[tuple(index)]


def pad(xp: Any, x: Any, axis: int, mode: str, before: int, after: int) -> Any:
    widths = [(0, 0)] * x.ndim
    widths[axis] = before, after
    return part(xp.pad(x, widths, mode=mode), axis, after, after + x.shape[axis])


MOVES: dict[str, Move] = {
    "roll": lambda xp, x, axis: xp.roll(x, 2, axis),
    "roll back": lambda xp, x, axis: xp.roll(x, -1, axis),
    "swap": lambda xp, x, axis: xp.concatenate([part(x, axis, 3, None) * 2, part(x, axis, 3)], axis),
    "even first": lambda xp, x, axis: xp.concatenate(
        [part(x, axis, 0, None, 2), part(x, axis, 1, None, 2)], axis
    ),
    "flip": lambda xp, x, axis: xp.flip(x, axis),
    "flip a pad": lambda xp, x, axis: xp.flip(pad(xp, x, axis, "edge", 2, 1), axis),
    **{
        f"pad {mode} {before} {after}": lambda xp, x, axis, mode=mode, before=before, after=after: pad(
            xp, x, axis, mode, before, after
        )
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
        for before, after in ((1, 1), (3, 0))
    },
}


def combine_moves(xp: Any, x: Any, chosen: list[tuple[str, int, int]]) -> Any:
    """The sum of what moves make of an array, and of each other."""
    arrays = [x]
    for name, axis, number in chosen:
        arrays.append(MOVES[name](xp, arrays[number % len(arrays)], axis))
    total = arrays[0] * 2
    for array in arrays[1:]:
        total = total + array
    return total


@pytest.mark.parametrize("seed", range(30))
def test_cut_loops_compute_what_numpy_does(seed: int) -> None:
    rng = random.Random(seed)
    shape = rng.choice([(1100,), (1, 1025), (40, 33), (33, 40), (11, 13, 17), (5, 6, 7, 8)])
    axes = [axis for axis, size in enumerate(shape) if size > 3]
    chosen = [
        (rng.choice(sorted(MOVES)), rng.choice(axes), rng.randrange(9)) for _ in range(rng.randint(1, 4))
    ]
    x = np.random.default_rng(seed).normal(size=shape).astype(rng.choice(["float64", "float32", "int64"]))
    with xarr.config(fusion="compiled", verify_graphs=True):
        assert_same(
            xarr.jit(lambda x: combine_moves(xarr, x, chosen))(xarr.asarray(x)), combine_moves(np, x, chosen)
        )


def blur(x: xarr.Array) -> xarr.Array:
    p = xarr.pad(x, 1, mode="edge")
    return p[:-2, :-2] + p[1:-1, 1:-1] + p[2:, 2:]


def test_no_element_inside_of_a_padded_grid_has_a_condition() -> None:
    text = loops(blur, 64, 64)
    inside = text[text.index("vector for i") :]
    assert text.count("vector for") == 3  # The first row, the inside, the last row.
    (inside,) = [each for each in text.split("vector for") if " < 62:" in each.splitlines()[0]]
    body = inside[: inside.index("for i", 1)]
    assert "?" not in body and "&" not in body and body.count("in0[") == 3


def test_loops_over_few_elements_are_whole() -> None:
    assert loops(blur, 30, 30).count("vector for") == 1


def test_loops_are_not_cut_into_more_parts_than_wanted() -> None:
    def interleave(x: xarr.Array) -> xarr.Array:
        return xarr.concatenate([part(x, 0, k, None, 17) * 1.5 for k in range(17)]) + 1

    def with_a_border(x: xarr.Array) -> xarr.Array:
        parts = [part(x, 0, k, k + 1) * 1.5 for k in range(16)]
        return xarr.concatenate([*parts, part(x, 0, 16, None)]) + 1

    assert loops(interleave, 17_000).count("vector for") == 1
    text = loops(with_a_border, 16_000)
    assert "vector for i" in text and "< 15984:" in text


def test_rows_of_a_stack_have_loops_of_their_own() -> None:
    text = loops(lambda x: xarr.stack([x * k for k in range(9)]) + 1, 4000)
    assert text.count("vector for") == 9 and "?" not in text


def test_cuts_reach_through_reversed_and_strided_indices() -> None:
    def mirror(x: xarr.Array) -> xarr.Array:
        return xarr.flip(xarr.pad(x, (3, 4)))[::3] + 1

    text = loops(mirror, 6000)
    # Threads would have nothing to share: all of it is one phase.
    assert [line.split(" < ")[1] for line in text.splitlines() if " for i" in f" {line}"] == [
        "1:",
        "2:",
        "2000:",
        "1:",
    ]
    assert "?" not in text
    x = np.random.default_rng(2).normal(size=6000)
    with xarr.config(fusion="compiled"):
        assert_same(xarr.jit(mirror)(xarr.asarray(x)), np.flip(np.pad(x, (3, 4)))[::3] + 1)


def test_rows_of_a_padded_grid_still_run_ahead_of_others() -> None:
    def step(_: Any, x: xarr.Array) -> xarr.Array:
        p = xarr.pad(x, 1)
        return 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])

    x = np.random.default_rng(3).normal(size=(300, 200))
    with xarr.config(fusion="compiled"):
        run = xarr.jit(lambda x: lax.fori_loop(0, 5, step, x))
        assert "they reach 1 rows" in str(run.lower(xarr.asarray(x)).stage("fused"))
        result = run(xarr.asarray(x))
    wanted = x
    for _ in range(5):
        p = np.pad(wanted, 1)
        wanted = 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])
    assert_same(result, wanted)
