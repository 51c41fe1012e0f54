"""Carried arrays that several steps of a loop change, in loops inside too: in one memory."""

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
from xarr.compiler.plan.native_steps import carries_in_place
from xarr.compiler.plan.program_plan import LoopStep, Plan

pytest.importorskip("llvmlite")

SIZE = 100
#: More elements than a loop over numbers writes in a step.
PART = 40


def loop_of(function: Callable[..., Any], *arguments: Any) -> LoopStep:
    plan = xarr.jit(function).lower(*xarr.tree.map(xarr.asarray, arguments)).stage("plan")
    assert isinstance(plan, Plan)
    (loop,) = (step for step in plan.steps if isinstance(step, LoopStep))
    return loop


def in_place(step: Callable[[Any, Any], Any], *arrays: Any) -> bool:
    """Whether a loop carries the array that `step` changes, or several, in place."""

    def function(x: Any) -> Any:
        return lax.fori_loop(0, 4, step, x)

    x = arrays or np.arange(SIZE)
    with xarr.config(fusion="off"):
        wanted = xarr.jit(function)(xarr.tree.map(xarr.asarray, x))
    got = xarr.jit(function)(xarr.tree.map(xarr.asarray, x))
    for one, other in zip(xarr.tree.leaves(got), xarr.tree.leaves(wanted), strict=True):
        assert_same(one, other)
    loop = loop_of(function, x)
    pairs = enumerate(zip(loop.body.parameters, loop.body.results, strict=True))
    numbers = [k for k, (old, new) in pairs if old != new and loop.body.buffers[old].type.shape]
    assert len(numbers) == max(1, len(arrays))
    return carries_in_place(loop, 1).issuperset(numbers)


def swap(i: Any, x: Any) -> Any:
    one, other = (lax.dynamic_slice(x, (start,), (PART,)) for start in (i, SIZE - PART - i))
    return lax.dynamic_update_slice(lax.dynamic_update_slice(x, other, (i,)), one, (SIZE - PART - i,))


def inner(i: Any, x: Any) -> Any:
    """Two loops inside, the second of which goes on with what the first left."""
    y = lax.fori_loop(0, i, lambda k, x: x.at[k].set(x[k + 1] + k), x)
    return lax.fori_loop(0, i + 1, lambda k, y: y.at[k].set(y[i] - k), y).at[i].add(1)


def twice_as_deep(i: Any, x: Any) -> Any:
    return lax.fori_loop(0, i, lambda k, x: inner(k, x).at[i].set(k), x)


def keep_old(i: Any, x: Any) -> Any:
    """The old array is read at what the new one holds."""
    new = x.at[i].set(x[0] + 1)
    return new.at[0].set(x[new[i] % SIZE])


def keep_old_inside(i: Any, x: Any) -> Any:
    """A loop inside reads the old array while it changes the new one."""
    return lax.fori_loop(0, i, lambda k, y: y.at[k].set(x[(y[k] + k) % SIZE]), x)


def on_a_branch(i: Any, x: Any) -> Any:
    """A branch updates the array twice, or changes a part of it, or leaves it as it is."""
    twice = lambda x: x.at[i].set(x[i + 1] + 1).at[i + 2].add(3)  # noqa: E731
    masked = lambda x: lax.select(xarr.arange(SIZE) < 50, x, x * 2)  # noqa: E731
    return lax.cond(i % 2 == 0, twice, lambda x: lax.cond(i == 3, masked, lambda x: x, x), x)


def keep_old_on_a_branch(i: Any, x: Any) -> Any:
    """A branch reads the old array while it makes the new one."""
    return lax.cond(i % 2 == 0, lambda x: x.at[i].add(x[i + 1]) + xarr.roll(x, 1), lambda x: x, x)


def keep_old_behind_a_branch(i: Any, x: Any) -> Any:
    return lax.cond(i % 2 == 0, lambda x: x.at[i].add(x[i + 1]), lambda x: x, x) + x[i]


@pytest.mark.parametrize(
    "step, wanted",
    [
        *[(swap, True), (inner, True), (twice_as_deep, True), (keep_old, False), (keep_old_inside, False)],
        *[(on_a_branch, True), (keep_old_on_a_branch, False), (keep_old_behind_a_branch, False)],
    ],
)
def test_one_memory_is_enough_if_nothing_needs_the_old_array(step: Callable[..., Any], wanted: bool) -> None:
    assert in_place(step) == wanted


def some(i: Any, first: int = 0) -> Any:
    """Indices that come twice."""
    return (xarr.asarray([3, 50, 3, 17, 98]) * (i + 1) + first) % SIZE


#: Steps that write parts of an array which they read; of a matrix, or of two arrays.
PARTS: dict[str, Callable[..., Any]] = {
    "of what is there": lambda i, x: x.at[some(i)].set(x[some(i)] * 2 + i),
    "of other parts": lambda i, x: x.at[some(i)].add(x[some(i, 1)] - x[some(i, 2)]),
    "greatest": lambda i, x: x.at[some(i)].max(x[some(i, 9)]),
    "dropped": lambda i, x: x.at[some(i) + i].set(x.at[some(i) + i].get(mode="clip") + 1, mode="drop"),
    "one after the other": lambda i, x: x.at[some(i)].set(x[some(i, 3)]).at[some(i, 3)].set(x[some(i)]),
    "under a condition": lambda i, x: xarr.where(i % 2 == 0, x.at[some(i)].add(x[some(i, 5)]), x),
    "unless": lambda i, x: xarr.where(i % 2 == 0, x, x.at[some(i)].set(i).at[some(i, 5)].add(x[i])),
    "shifted": lambda i, x: x.at[1:31].set(x[:30]).at[0].set(i),
    "reversed": lambda i, x: x.at[5:25].set(x[15:35][::-1] + x[i]),
}
MATRICES: dict[str, Callable[..., Any]] = {
    "rows": lambda i, x: x.at[some(i)[:3] % 10].set(x[some(i, 7)[2:] % 10] + 1),
    "exchanged rows": lambda i, x: x.at[xarr.stack([i, i + 3])].set(x[xarr.stack([i + 3, i])]),
    "columns": lambda i, x: x.at[:, some(i)[:3] % 10].multiply(x[:, some(i, 7)[2:] % 10]),
    "elements": lambda i, x: x.at[some(i) % 10, some(i, 4) % 10].set(x[some(i, 4) % 10, some(i) % 10]),
    "shifted": lambda i, x: x.at[2:6, 1:].set(x[3:7, :-1]),
}
PAIRS: dict[str, Callable[..., Any]] = {
    "exchanged": lambda i, s: (s[0].at[some(i)].set(s[1][some(i)]), s[1].at[some(i)].set(s[0][some(i)])),
    "elsewhere": lambda i, s: (
        s[0].at[some(i)].add(s[1][some(i, 8)]),
        s[1].at[some(i, 1)].set(s[0][some(i)]),
    ),
    "read behind": lambda i, s: (s[0].at[some(i)].add(1), s[1].at[i].set(xarr.sum(s[0][some(i, 1)]))),
    "differences": lambda i, s: (
        (new := s[0].at[some(i)].set(i)),
        s[1].at[some(i)].set(new[some(i, 50)] - s[0][some(i, 1)]),
    ),
    "of one element": lambda i, s: (
        (new := s[0].at[some(i)].set(i)),
        s[1].at[i].set(new[some(i)[3]] - s[0][some(i)[1]]),
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_are_read_before_they_are_written(name: str) -> None:
    assert in_place(PARTS[name])


@pytest.mark.parametrize("name", MATRICES)
def test_parts_of_matrices_are_read_before_they_are_written(name: str) -> None:
    assert in_place(lambda i, s: (MATRICES[name](i, s[0]),), np.arange(200).reshape(10, 20) % 7)


@pytest.mark.parametrize("name", PAIRS)
def test_parts_of_two_arrays_are_read_before_they_are_written(name: str) -> None:
    assert in_place(PAIRS[name], np.arange(SIZE), np.arange(SIZE) ** 2)


class Steps:
    """Random steps of a body over two vectors and a matrix, of which some keep what others change."""

    def __init__(self, random: Random, depth: int = 0) -> None:
        self.choices = [tuple(random.randrange(720) for _ in range(4)) for _ in range(random.randrange(1, 7))]
        self.inner = Steps(random, depth + 1) if depth < 2 and random.random() < 0.4 else None
        self.branch = Steps(random, depth + 1) if depth < 2 and random.random() < 0.6 else None
        self.returns = random.sample(range(2), 2)

    def run(self, i: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        values = list(state)
        kept = [xarr.asarray(1), values[0][i % SIZE]]
        for kind, where, what, how in self.choices:
            at, number = (i + where) % SIZE, what % 2
            array, other, matrix = values[number], values[1 - number], values[2]
            value = kept[how % len(kept)]
            some = (where + how * xarr.arange(5)) % SIZE
            match kind % 17:
                case 0 | 1:
                    values[number] = array.at[at].set(value + other[(at + how) % SIZE])
                case 2:
                    values[number] = array.at[at].set(array[how % SIZE]).at[how % SIZE].set(array[at])
                case 3:
                    values[2] = matrix.at[at].set(array - matrix[:, how % SIZE])
                case 4:
                    values[2] = matrix.at[:, at].set(matrix[how % SIZE] + other)
                case 5:
                    kept.append(array[at])
                case 6:
                    kept.append(matrix[at, how % SIZE])
                case 7:
                    kept.append(xarr.sum(array[1:] * other[:-1]))
                case 10:
                    values[number] = array.at[some].set(array[(some * 3 + at) % SIZE] + value)
                case 11:
                    values[number] = array.at[some].add(other[some] - array[some])
                case 12:
                    values[2] = matrix.at[some].set(matrix[some[::-1]] + array[at])
                case 13:
                    values[number] = xarr.where((value + i) % 2 == 0, array.at[some].add(array[at]), array)
                case 14:
                    values[number] = array.at[1:30].set(array[:29])
                    values[2] = matrix.at[how % 9 :, 1:].set(matrix[: SIZE - how % 9, :-1])
                case 15:
                    values[number] = array.at[some].set(other[some[::-1]])
                    values[1 - number] = other.at[some].set(array[some])
                case 16:
                    values[number] = array.at[some].set(array[some] * 2)
                    kept.append(values[number][how % SIZE] - array[at])
                case 8 if self.branch is not None:
                    order = [(0, 1, 2), (1, 0, 2)][how % 2]
                    branches = (
                        self.branch.run,
                        lambda at, state, order=order: tuple([state[k] for k in order]),
                    )
                    values = list(lax.cond((value + where) % 2 == 0, *branches, at, tuple(values)))
                case _ if self.inner is not None:
                    values = list(lax.fori_loop(0, at, self.inner.run, tuple(values)))
        first, second = (values[k] for k in self.returns)
        return first, second, values[2] % 1000


@pytest.mark.parametrize("seed", fuzz.seeds(12, 1000))
def test_random_bodies(seed: int) -> None:
    random = fuzz.generator("updates in place", seed)
    steps = Steps(random)

    def function(*state: Any) -> Any:
        return lax.fori_loop(0, 4, lambda i, s: steps.run(i, s), state)

    shapes = ((SIZE,), (SIZE,), (SIZE, SIZE))
    state = [
        xarr.asarray(np.array(random.choices(range(-9, 9), k=np.prod(shape))).reshape(shape))
        for shape in shapes
    ]
    with xarr.config(fusion="off"):
        wanted = xarr.jit(function)(*state)
    for got, value in zip(xarr.jit(function)(*state), wanted, strict=True):
        assert_same(got, value)


def count(keys: Any) -> Any:
    """A table of zeros, of which each step changes one element."""
    return lax.fori_loop(
        0, keys.size, lambda i, c: c.at[keys[i] % SIZE].add(i), xarr.zeros(SIZE, dtype="int64")
    )


def count_rows(keys: Any) -> Any:
    """A step changes more than a loop over numbers does."""

    def step(i: Any, rows: Any) -> Any:
        part = lax.dynamic_slice(rows, (keys[i] % PART,), (PART,))
        return lax.dynamic_update_slice(rows, part + part[::-1] + i, (keys[i] % PART,))

    return lax.fori_loop(0, keys.size, step, xarr.ones(SIZE, dtype="int64"))


def count_in_loops(keys: Any) -> Any:
    return lax.fori_loop(
        0, 5, lambda i, total: total * 3 + count(keys + i) + count_rows(keys * i), count(keys)
    )


def keep_zeros(keys: Any) -> Any:
    """Two loops begin with the same array, which is a result, too."""
    zeros = xarr.zeros(SIZE, dtype="int64")
    first = lax.fori_loop(0, keys.size, lambda i, c: c.at[keys[i] % SIZE].add(i), zeros)
    second = lax.fori_loop(0, keys.size, lambda i, c: c.at[i].set(c[keys[i] % SIZE] + 1), zeros)
    return first, second, zeros + keys[0], zeros


def begin_with_columns(keys: Any) -> Any:
    """The loop begins with columns of a table."""
    table = (keys[: SIZE // 2, None] + xarr.arange(2)).reshape(-1)
    columns = table.reshape(-1, 2).T
    changed = lax.fori_loop(0, 9, lambda i, c: c.at[i % 2, keys[i] % 9].add(i), columns)
    return changed, table


@pytest.mark.parametrize("function", [count, count_rows, count_in_loops, keep_zeros, begin_with_columns])
def test_arrays_with_which_loops_begin(function: Callable[[Any], Any]) -> None:
    keys = np.random.default_rng(2).integers(1000, size=SIZE)
    with xarr.config(fusion="off"):
        wanted = xarr.jit(function)(xarr.asarray(keys))
    made = xarr.jit(function)
    for _ in range(2):
        for one, other in zip(
            xarr.tree.leaves(made(xarr.asarray(keys))), xarr.tree.leaves(wanted), strict=True
        ):
            assert_same(one, other)


@pytest.mark.parametrize("function", [count, count_rows])
@pytest.mark.usefixtures("on_numpy", "fused")
def test_repeated_numbers_are_written_where_a_loop_changes_them(function: Callable[[Any], Any]) -> None:
    from xarr_numpy.compiled import schedule
    from xarr_numpy.compiled.plans import plan_code

    plan = xarr.jit(function).lower("s64[100]").stage("plan")
    assert isinstance(plan, Plan)
    assert "@memcpy" not in plan_code.emit_plan(plan, schedule.SCHEDULE).text
