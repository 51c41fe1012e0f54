"""Numbers that note what is asked of them: what is made of some is made of others with the same answers."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from xarr.compiler.symbolic_numbers import NumberTrace, SymbolicNumber

OPERATIONS = (
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.truediv),
    *(operator.and_, operator.or_, operator.xor, max, min, divmod),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
    *(
        lambda a, b: a << (b & 3),
        lambda a, b: a >> (b & 3),
        lambda a, b: (-a, ~b, abs(a - b)),
        lambda a, b: a and b,
    ),
    *(lambda a, b: (a.bit_length(), bool(b)), lambda a, b: len({a, b, 1, a + b}), lambda a, b: {a: 1}.get(b)),
    *(lambda a, b: f"{a}" if b else None, lambda a, b: sorted((b, 3, a)), lambda a, b: int(a) ** (b & 3)),
    *(
        lambda a, b: sum(range(a & 7)) + b,
        lambda a, b: [3, a, b][a % 3],
        lambda a, b: 2.5 * a + b,
        lambda a, b: a in (b, 4),
    ),
)


def computation(seed: int) -> Callable[..., list[Any]]:
    """A function of three integers, of operations and questions drawn at random."""
    draws = random.Random(seed)
    steps = [(draws.choice(OPERATIONS), draws.random(), draws.random()) for _ in range(8)]

    def compute(*numbers: Any) -> list[Any]:
        integers: list[Any] = [*numbers, 2, 0]
        results: list[Any] = []
        for operation, first, second in steps:
            a, b = (integers[int(pick * len(integers))] for pick in (first, second))
            if operation in (operator.floordiv, operator.mod, operator.truediv, divmod) and b == 0:
                b = 6
            made = operation(a, b)
            results += made if isinstance(made, tuple | list) else [made]
            made = results[-1]
            if isinstance(made, int) and not isinstance(made, bool) and -(10**6) < made < 10**6:
                integers.append(made)
        return results

    return compute


@pytest.mark.parametrize("seed", range(150))
def test_what_others_give_is_what_they_would_have_given(seed: int) -> None:
    compute, draws = computation(seed), random.Random(seed)
    numbers = [draws.randrange(1, 40) for _ in range(3)]
    trace = NumberTrace(numbers)
    results = compute(*trace.inputs)
    follow = trace.follow(results)
    assert follow(*numbers) == tuple(compute(*numbers))
    for _ in range(30):
        others = [draws.randrange(1, 40) if draws.random() < 0.7 else number for number in numbers]
        got = follow(*others)
        assert got is None or got == tuple(compute(*others))


def test_a_trace_holds_for_all_that_answer_alike() -> None:
    trace = NumberTrace((640, 37))
    rows, columns = trace.inputs
    assert isinstance(rows, int)
    follow = trace.follow([rows * columns, rows // 64 if rows > 64 else 0, "text"])
    assert follow(700, 5) == (3500, 10, "text")
    assert follow(64, 5) is None


@pytest.mark.parametrize(
    "ask",
    [
        str, repr, int, float, range, round,
        lambda n: f"{n:3}", lambda n: n.bit_count(), lambda n: n**2, lambda n: "x" * n, lambda n: list(range(99))[n],
        lambda n: np.asarray(n).astype(np.int64), lambda n: np.zeros(n).size, lambda n: n.to_bytes(2, "big"),
    ],
    ids=map(str, range(14)),
)  # fmt: skip
def test_who_asks_for_digits_gets_those_of_one_number(ask: Callable[[Any], Any]) -> None:
    trace = NumberTrace((12,))
    got, wanted = ask(trace.inputs[0]), ask(12)
    assert type(got) is type(wanted) or isinstance(wanted, range)
    assert str(got) == str(wanted)
    follow = trace.follow([])
    assert (follow(12), follow(13)) == ((), None)


def test_numbers_of_two_traces_and_of_numpy_do_not_mix() -> None:
    one, other = NumberTrace((5,)), NumberTrace((5,))
    assert len({one.inputs[0], other.inputs[0], 5}) == 3
    assert one.inputs[0] + other.inputs[0] == 10
    assert [other.follow([])(k) for k in (5, 6)] == [(), None]
    assert type(np.int64(2) * one.inputs[0]) is SymbolicNumber
    assert type(one.inputs[0] * np.float64(2)) is SymbolicNumber
    assert (one.inputs[0] == "5", one.inputs[0] is None) == (False, False)


def test_keys_are_as_different_as_they_were() -> None:
    trace = NumberTrace((9, 20, 29))
    a, b, c = trace.inputs
    table = {a: "a", b: "b"}
    assert table.get(c) is None
    assert len({a + b, c}) == 1
    follow = trace.follow([])
    wanted: Sequence[tuple[tuple[int, int, int], Any]] = (
        ((8, 20, 28), ()), ((8, 20, 27), None), ((8, 8, 16), None), ((1, 20, 21), None)
    )  # fmt: skip
    assert [follow(*numbers) for numbers, _ in wanted] == [each for _, each in wanted]


def test_what_is_not_asked_is_not_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would fail if a question were forgotten."""
    monkeypatch.setattr(NumberTrace, "ask", lambda self, question, answer: bool(answer))
    trace = NumberTrace((9, 20))
    follow = trace.follow([1 if trace.inputs[0] < trace.inputs[1] else 2])
    assert follow(30, 20) == (1,)
