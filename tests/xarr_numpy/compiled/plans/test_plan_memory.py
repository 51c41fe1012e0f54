"""Where buffers of loops lie: in one arena, for as long as something needs them; views are read where they lie."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.base.host.memory import pool
from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.processor import PROCESSOR

pytest.importorskip("llvmlite")

pytestmark = pytest.mark.implicit


def grid(*shape: int) -> xarr.Array:
    """Whole numbers."""
    return (xarr.asarray(np.arange(np.prod(shape)).reshape(shape) % 17.0) * 1).evaluate()


def repeat(step: Callable[..., Any], steps: int = 3) -> Callable[..., Any]:
    """A loop whose body is a step of all that it carries."""

    def function(*state: Any) -> Any:
        def body(i: Any, state: Any) -> Any:
            after = step(i, *state)
            return after if isinstance(after, tuple) else (after,)

        return lax.fori_loop(0, steps, body, state)

    return function


def agree(function: Callable[..., Any], *arguments: xarr.Array) -> str:
    """Compare with separate operations bit by bit; the plan of the compiled program."""
    with xarr.config(fusion="off"):
        wanted = function(*arguments)
    compiled = xarr.jit(function)
    for one, other in zip(compiled(*arguments), wanted, strict=True):
        assert_same(one, other)
    text = str(compiled.lower(*arguments).stage("plan"))
    assert "in Python" not in text
    return text


def roll_planes(i: Any, x: Any) -> Any:
    """A stack of roll_planes planes, of which some are picked."""
    parts = xarr.stack([xarr.roll(x[k], (k, -k), axis=(0, 1)) for k in range(4)])
    return xarr.where(parts[0] > 3, parts[xarr.asarray([3, 1, 0, 2])], parts * 2 - i)


def keep_part(i: Any, x: Any) -> Any:
    """A part with steps, which is read when the array has been changed."""
    part = x[:, ::2]
    x = x.at[i].set(xarr.sum(x[0]))
    return x.at[:, 1].set(part[:, i] + xarr.sort(part, axis=1)[:, 0])


def keep_transposed(i: Any, x: Any) -> Any:
    changed = x.at[0, i].set(7.0)
    return xarr.concatenate([x.T[:3], changed[3:]])


def inner_loop(i: Any, x: Any) -> Any:
    """A loop inside begins with an array of this one, which nothing needs later."""
    start = xarr.cumsum(x, axis=0) % 5
    return lax.fori_loop(0, i, lambda k, y: xarr.flip(y, axis=0) + xarr.sum(y), start)


def inner_loops(i: Any, x: Any) -> Any:
    """Two begin with the same one, and with views of it."""
    start = xarr.cumsum(x, axis=0) % 5
    pair = lax.fori_loop(0, i, lambda k, c: (xarr.flip(c[1], axis=0), c[0] * 2), (start, start))
    turned = lax.fori_loop(0, 2, lambda k, y: xarr.flip(y, axis=1) - y[0, 0], start.T)
    return pair[0] + pair[1] - start + turned


def begin_with_rows(i: Any, x: Any) -> Any:
    """A loop inside begins with arrays that repeat a row."""
    rows = xarr.broadcast_to(x[i], x.shape)
    pair = lax.fori_loop(0, i, lambda k, c: (c[1] - xarr.cumsum(c[0], axis=1), c[0]), (rows, rows))
    return (pair[0] + pair[1]) % 7


STEPS = (roll_planes, keep_part, keep_transposed, inner_loop, inner_loops, begin_with_rows)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("size", [5, 40])
def test_loops_with_views_and_loops_inside(step: Callable[..., Any], size: int) -> None:
    agree(repeat(step), grid(4, size, size) if step is roll_planes else grid(size, size))


def test_a_view_of_a_view_is_where_a_loop_begins() -> None:
    """The view between them is needed by the next loop, too."""

    def arrange(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, x: xarr.sort(x, axis=0) + xarr.cumsum(x, axis=1) % 5, x)

    def function(x: Any) -> Any:
        wide = x.T
        return arrange(wide[::2]), arrange(wide)

    plan = agree(function, grid(24, 24))
    assert plan.count(" view transpose(") == 1 and plan.count(" view slice(") == 1


def show_part(draw: Random, x: Any, others: tuple[int, ...]) -> Any:
    """A view of x, in other orders, parts and repetitions, with these sizes along the last dimensions."""
    kind = draw.randrange(6)
    if kind == 0:
        return x[:, :: draw.choice((1, 2))][:, : others[0]]
    if kind == 1:
        return xarr.flip(x, axis=draw.randrange(2))[:, : others[0]]
    if kind == 2:
        return x.T[:, : others[0]]
    if kind == 3:
        return xarr.broadcast_to(x[0, 0], (draw.randrange(1, 9), others[0]))
    if kind == 4:
        return xarr.broadcast_to(x[draw.randrange(3), None, : others[0]], (2, others[0]))
    return x.reshape(-1, others[0])


@pytest.mark.parametrize("seed", range(12))
def test_concatenations_read_views_where_they_lie(seed: int) -> None:
    draw = Random(seed)
    axis, size = draw.randrange(2), draw.choice((12, 60))

    def step(i: Any, x: Any) -> Any:
        draw.seed(seed)
        parts = [show_part(draw, x, (6,)) for _ in range(draw.randrange(2, 6))]
        joined = xarr.concatenate([part.T for part in parts] if axis else parts, axis=axis)
        return (x + (joined.T @ joined).sum() % 5 + xarr.flip(x, axis=0)) % 17

    agree(repeat(step), grid(size, size))


@pytest.mark.skipif(not struct_offsets.works(), reason="products of matrices are called back here")
def test_a_large_concatenation_is_machine_code() -> None:
    """However long it takes: a library copies no faster."""

    def step(i: Any, x: Any) -> Any:
        rows = xarr.concatenate([xarr.roll(x, k, axis=1) for k in range(30)], axis=0)
        return (x + (rows[0] @ rows.T).sum() % 5) % 17

    assert "library concatenate" in agree(repeat(step), grid(100, 1500))


def test_columns_that_fill_no_register_are_multiplied_without_a_copy() -> None:
    def step(i: Any, x: Any) -> Any:
        rows = xarr.cumsum(x, axis=1) % 3
        product = rows @ xarr.linalg.matrix_transpose(rows)
        return (x + xarr.cumsum(product, axis=1)[..., :1]) % 7

    assert "transpose" not in agree(repeat(step), grid(50, 4, 30))


def machine_bytes(function: Callable[..., Any], *arguments: xarr.Array) -> int:
    """The most that a call takes beside its arguments."""
    compiled = xarr.jit(function)
    xarr.evaluate(*compiled(*arguments))
    pool.clear()
    tracemalloc.start()
    xarr.evaluate(*compiled(*arguments))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_copies_of_views_lie_where_nothing_is_needed_any_more() -> None:
    def step(i: Any, x: Any) -> Any:
        rows = xarr.cumsum(x, axis=0) % 5
        x = x + xarr.cumsum(rows, axis=1) % 3
        return xarr.cumsum(x.T, axis=0) % 7  # of a copy, which lies where the rows lay

    function, x = repeat(step), grid(700, 700)
    agree(function, x)
    assert machine_bytes(function, x) <= 4 * x.nbytes + PROCESSOR.min_reused_bytes


def test_a_loop_inside_uses_the_memory_that_it_begins_with() -> None:
    def step(x: Any) -> Any:
        start = xarr.cumsum(x, axis=0) % 5
        after = lax.fori_loop(0, 3, lambda k, y: xarr.cumsum(xarr.cumsum(y, axis=1) % 3, axis=0) % 5, start)
        return (xarr.cumsum(after, axis=1),)

    x = grid(500, 500)
    agree(step, x)
    assert machine_bytes(step, x) <= 4 * x.nbytes + PROCESSOR.min_reused_bytes


@pytest.mark.parametrize("part", [lambda v: v[:, 1:4], lambda v: v[:, :3].T], ids=["columns", "rows"])
def test_a_loop_inside_begins_with_a_part_of_a_copy(part: Callable[[Any], Any]) -> None:
    def step(i: Any, x: Any) -> Any:
        columns = (x - x.sum(axis=0)).T[:3]  # which the sum wants behind the loop, too
        after = lax.fori_loop(0, i, lambda k, y: xarr.sort(y, axis=0) + 1, part(columns))
        return x.at[:3, :3].set(after % 7) + columns.sum() % 5

    agree(repeat(step), grid(6, 6))


@pytest.mark.parametrize(("size", "is_native"), [(400, True), (2000, False)])
def test_loops_may_take_some_megabytes_more_in_machine_code(size: int, is_native: bool) -> None:
    def step(i: Any, x: Any, y: Any, total: Any) -> Any:
        # What reads the columns gets a copy of them; and Python sorts what is copied again.
        return y, xarr.sin(x), xarr.sort(x.T, axis=1)[:, 0] + total

    function = xarr.jit(repeat(step))
    text = str(function.lower(*[f"f64[{size},{size}]"] * 2, f"f64[{size}]").stage("plan"))
    assert ("less memory" not in text) == is_native
