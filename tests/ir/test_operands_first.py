"""What is computed of operands first."""

from __future__ import annotations

import pytest

from xarr.ir.operands_first import compute_operands_first, reach

OPERANDS = {"a": (), "b": ("a",), "c": ("b", "a", "b")}


def test_operands_come_before_their_users_and_once() -> None:
    order: list[str] = []
    known: dict[str, int] = {}

    def count(key: str) -> int:
        order.append(key)
        return 1 + sum(known[each] for each in OPERANDS[key])

    assert compute_operands_first("c", known, OPERANDS.__getitem__, count) == 6
    assert order == ["a", "b", "c"] and known == {"a": 1, "b": 2, "c": 6}


def test_what_is_known_is_not_computed_again() -> None:
    known = {"b": 10}
    assert compute_operands_first("c", known, lambda key: OPERANDS[key][:1], lambda key: known["b"] + 1) == 11
    assert compute_operands_first("b", known, lambda key: pytest.fail(), lambda key: pytest.fail()) == 10


def test_operands_may_be_more_than_calls_nest() -> None:
    known: dict[int, int] = {}
    assert compute_operands_first(10**5, known, lambda n: [n - 1] if n else [], lambda n: n) == 10**5
    assert len(known) == 10**5 + 1


def test_what_is_reached_comes_once() -> None:
    assert sorted(reach(["c", "a", "c"], OPERANDS.__getitem__)) == ["a", "b", "c"]
    assert list(reach(["b"], lambda key: ())) == ["b"]
    assert list(reach([], OPERANDS.__getitem__)) == []


def test_reaching_goes_on_only_from_what_is_asked_for() -> None:
    reached = reach(["c"], lambda key: pytest.fail() if key == "a" else OPERANDS[key])
    assert next(reached) == "c"
    assert next(reached) in ("a", "b")
