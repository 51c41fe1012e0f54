"""Checks under `vmap`: a slice fails where it would alone, not where its loop has ended or it chose another branch."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

import xarr
from tests.support import fuzz
from xarr import lax
from xarr.errors import LinAlgError
from xarr.transforms.batching.batch_graph import Batcher

X = np.array([1.0, 2.0, 3.0, 4.0])


def sum_until(x: Any, last: Any) -> Any:
    """The sum of the elements before `last`; each step reads one, and moves on behind it."""
    return lax.while_loop(lambda s: s[0] < last, lambda s: (s[0] + 1, s[1] + x[s[0]]), (0, 0.0))[1]


def test_a_loop_that_ends_at_the_last_element_looks_at_none_behind_it() -> None:
    rows, lengths = np.tile(X, (3, 1)), np.array([4, 2, 0])
    for f in (xarr.vmap(sum_until), xarr.jit(xarr.vmap(sum_until))):
        np.testing.assert_array_equal(f(rows, lengths), [10, 3, 0])
        with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
            np.asarray(f(rows, np.array([4, 5, 0])))


def test_a_branch_that_was_not_chosen_looks_at_nothing() -> None:
    def read_guarded(x: Any, i: Any) -> Any:
        return lax.cond(i < 4, lambda: x[i], lambda: 0.0)

    def one_of_three(x: Any, i: Any) -> Any:
        return lax.switch(i // 4, [lambda: x[i], lambda: x[i - 4], lambda: -1.0])

    rows, indices = np.tile(X, (3, 1)), np.array([3, 7, 9])
    np.testing.assert_array_equal(xarr.vmap(read_guarded)(rows, indices), [4, 0, 0])
    np.testing.assert_array_equal(xarr.vmap(one_of_three)(rows, indices), [4, 4, -1])
    with pytest.raises(IndexError, match="index -5 is out of bounds"):
        np.asarray(xarr.vmap(read_guarded)(rows, np.array([3, 7, -5])))


def test_an_index_that_all_slices_share_counts_where_one_looks_at_it() -> None:
    read = xarr.vmap(
        lambda flag, x, i: lax.cond(flag, lambda: x[i].sum(), lambda: 0.0), in_axes=(0, None, None)
    )
    bad = xarr.arange(3) + 2
    np.testing.assert_array_equal(read(np.array([False, False]), X, bad), [0, 0])
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        np.asarray(read(np.array([False, True]), X, bad))


def test_no_loop_goes_on_for_a_slice_that_has_ended_or_chosen_otherwise() -> None:
    def odd_part(n: Any) -> Any:
        return lax.while_loop(lambda n: n % 2 == 0, lambda n: n // 2, n)  # of 0 it has no end

    def count_odd_parts(n: Any) -> Any:
        step = lambda s: (odd_part(s[0]) - 1, s[1] + 1)  # noqa: E731
        return lax.while_loop(lambda s: s[0] != 0, step, (n, 0))[1]

    numbers = np.array([0, 1, 12, 14])
    guarded = xarr.vmap(lambda n: lax.cond(n == 0, lambda: n, lambda: odd_part(n)))
    np.testing.assert_array_equal(guarded(numbers), [0, 1, 3, 7])
    np.testing.assert_array_equal(xarr.vmap(count_odd_parts)(numbers), [0, 1, 2, 3])


def test_a_singular_matrix_of_another_slice_is_none() -> None:
    def solve(a: Any, is_wanted: Any) -> Any:
        return lax.cond(is_wanted, lambda: xarr.linalg.inv(a).sum(), lambda: 0.0)

    matrices = np.stack([np.eye(2), np.zeros((2, 2))])
    np.testing.assert_array_equal(xarr.jit(xarr.vmap(solve))(matrices, np.array([True, False])), [2, 0])
    with pytest.raises(LinAlgError):
        np.asarray(xarr.jit(xarr.vmap(solve))(matrices, np.array([True, True])))


def test_no_slice_fails_where_there_is_none() -> None:
    read = xarr.vmap(lambda y, x, i: y + x[i].sum(), in_axes=(0, None, None))
    for f in (read, xarr.jit(read)):
        assert np.asarray(f(np.zeros(0), X, xarr.arange(3) + 2)).shape == (0,)
        with pytest.raises(IndexError, match="index 4 is out of bounds"):
            np.asarray(f(np.zeros(1), X, xarr.arange(3) + 2))


class Caller:
    """A function of Python that notes what it is called with, and gives the next number."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def __call__(self, x: Any) -> Any:
        def note(value: Any) -> Any:
            self.seen.append(float(value))
            return value + 1

        return xarr.pure_callback(note, x, x)

    def take(self) -> list[float]:
        """The numbers that were noted since this was asked last."""
        seen, self.seen = sorted(self.seen), []
        return seen


def test_python_is_called_back_for_active_slices_alone() -> None:
    call = Caller()
    choose = lambda flag, x: lax.cond(flag, lambda: call(x), lambda: x)  # noqa: E731
    flags = np.array([True, False, True])
    np.testing.assert_array_equal(xarr.vmap(choose)(flags, X[:3]), [2, 2, 4])
    assert call.take() == [1, 3]

    repeat = lambda n, x: lax.fori_loop(0, n, lambda _, x: call(x), x)  # noqa: E731
    np.testing.assert_array_equal(xarr.jit(xarr.vmap(repeat))(np.array([2, 0, 1]), X[:3]), [3, 2, 4])
    assert call.take() == [1, 2, 3]

    shared = xarr.vmap(choose, in_axes=(0, None))
    for own, wanted, called in (
        (flags, [2, 1, 2], [1]),
        (~flags & False, [1, 1, 1], []),
        (flags[:0], [], []),
    ):
        np.testing.assert_array_equal(shared(own, X[0]), wanted)
        assert call.take() == called


def test_a_loop_that_all_slices_share_begins_where_one_is_active() -> None:
    call = Caller()
    count = lambda n: lax.while_loop(lambda k: k != 3, call, n)  # noqa: E731
    choose = xarr.vmap(lambda flag, n: lax.cond(flag, lambda: count(n), lambda: n), in_axes=(0, None))
    np.testing.assert_array_equal(choose(np.array([False, False]), 0), [0, 0])
    assert call.take() == []
    np.testing.assert_array_equal(choose(np.array([False, True]), 0), [0, 3])
    assert call.take() == [0, 1, 2]


def nest_loops(depth: int, x: Any) -> Any:
    if not depth:
        return x * 0.5
    inner = lambda x: lax.cond(x > 0, lambda: nest_loops(depth - 1, x), lambda: x)  # noqa: E731
    return lax.while_loop(lambda x: x > 1, lambda x: lax.fori_loop(0, 2, lambda _, x: inner(x), x), x)


def nest_calls(depth: int, x: Any) -> Any:
    if not depth:
        return x * 0.5
    inner = xarr.jit(lambda x: nest_calls(depth - 1, x))
    return inner(inner(x)) + 1


@pytest.mark.parametrize("nest", [nest_loops, nest_calls])
def test_work_grows_with_depth_and_not_faster(nest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    visited: list[Any] = []
    visit = Batcher._value
    monkeypatch.setattr(
        Batcher, "_value", lambda self, node, operands: visited.append(node) or visit(self, node, operands)
    )

    def count_visits(depth: int) -> int:
        visited.clear()
        slices = X if nest is nest_loops else np.tile(X, (2, 1))
        results = xarr.vmap(lambda x: nest(depth, x))(slices)
        np.testing.assert_array_equal(results, [nest(depth, x) for x in slices])
        return len(visited)

    two, four, eight = map(count_visits, (2, 4, 8))
    assert eight - four <= 2 * (four - two)


# --- random programs ------------------------------------------------------------------------------------------


class State(NamedTuple):
    """Of one slice: an array, two indices, the steps that its loops have left, and indices that all slices share."""

    x: Any
    i: Any
    j: Any
    left: Any
    shared: Any


Step = Callable[[State], State]
Host = np.ndarray[Any, Any]


def draw(random: Random, depth: int) -> Step:
    """A random program of indices, branches and loops."""
    parts = [_draw_one(random, depth) for _ in range(random.randint(1, 3))]

    def run(s: State) -> State:
        for part in parts:
            s = part(s)
        return s

    return run


def _draw_one(random: Random, depth: int) -> Step:
    kinds = ["read", "write", "move", "shared", "guarded", "guarded", "guarded"]
    if depth:
        kinds += ["cond", "switch", "while", "while_reads"] * 3 + ["fori", "scan", "rows"] * 2
    kind, a, b = random.choice(kinds), random.randint(-2, 3), random.randint(-4, 6)
    inner = [draw(random, depth - 1) for _ in range(3)] if kind not in kinds[:7] else []
    match kind:
        case "read":
            return lambda s: s._replace(x=s.x * 0.5 + s.x[s.i])
        case "guarded":
            return lambda s: lax.cond(
                (s.i >= -4) & (s.i < 4), lambda s: s._replace(x=s.x + s.x[s.i]), lambda s: s._replace(i=b), s
            )
        case "write":
            return lambda s: s._replace(x=s.x.at[s.j].add(1.0 + a))
        case "move":
            return lambda s: s._replace(i=s.i + a, j=s.j - s.i % 3 + b % 2)
        case "shared":
            return lambda s: s._replace(x=s.x + s.x[s.shared + a].sum())
        case "cond":
            return lambda s: lax.cond(s.i > b, inner[0], inner[1], s)
        case "switch":
            return lambda s: lax.switch(s.j - a, inner, s)
        case "fori":
            return lambda s: lax.fori_loop(0, 2, lambda _, s: inner[0](s), s)
        case "scan":
            return lambda s: lax.scan(lambda s, k: (inner[0](s._replace(i=s.i + k)), s.i), s, np.arange(2))[0]
        case "rows":
            return lambda s: s._replace(
                x=s.x + xarr.vmap(lambda k: inner[0](s._replace(i=s.i + k)).x.sum())(np.arange(2)).sum()
            )

    def step(s: State) -> State:
        return inner[0](s)._replace(i=s.i + 1, left=s.left - 1)

    if kind == "while":
        return lambda s: lax.while_loop(lambda s: (s.i < b) & (s.left > 0), step, s)
    return lambda s: lax.while_loop(lambda s: (s.x[s.i] > a) & (s.left > 0), step, s)


def run_alone(f: Any, rows: tuple[Host, ...], shared: Host) -> list[Host] | None:
    """The results for each slice by itself, stacked; None if one fails."""
    try:
        results = [[np.asarray(each) for each in f(*own, shared)] for own in zip(*rows, strict=True)]
    except IndexError:
        return None
    return [np.stack(each) for each in zip(*results, strict=True)]


def check_seed(seed: int, depth: int = 2) -> bool:
    """Compare a random program of slices with itself for each slice; whether it gave results."""
    random = Random(seed)
    shared = random.choice([0, 0, 0, 1, 4])
    rows = (
        np.array([[random.randint(-3, 3) / 2 for _ in range(4)] for _ in range(4)]),
        *[np.array([random.randint(-4, 3) for _ in range(4)]) for _ in range(2)],
    )
    program, indices = draw(random, depth), np.array([0, shared])

    def f(x: Any, i: Any, j: Any, shared: Any) -> Any:
        return tuple(program(State(xarr.asarray(x), i, j, 5, shared)))[:4]

    wanted = run_alone(xarr.jit(f), rows, indices)
    pairs = [each.reshape(2, 2, *each.shape[1:]) for each in rows]
    axes = (0, 0, 0, None)
    twice = xarr.jit(xarr.vmap(xarr.vmap(f, axes), axes))
    for mapped, own in ((xarr.vmap(f, axes), rows), (twice, pairs)):
        if wanted is None:
            with pytest.raises(IndexError, match="out of bounds"):
                [np.asarray(each) for each in mapped(*own, indices)]
            continue
        for got, want in zip(mapped(*own, indices), wanted, strict=True):
            np.testing.assert_allclose(np.reshape(got, want.shape), want, rtol=1e-12)
    return wanted is not None


@pytest.mark.parametrize("seed", fuzz.seeds(5, 300))
def test_random_programs_fail_where_a_slice_alone_does(seed: int) -> None:
    check_seed(seed)
