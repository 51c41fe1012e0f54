"""Answers of the oracles: kept to the bit, made anew when a call changes, and missed ones are reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.compare import assert_same
from tests.support import answers


@pytest.mark.parametrize(
    "arrays",
    [
        [],
        [np.array(7, np.int8)],
        [np.arange(6.0).reshape(2, 3), np.zeros((0, 4), np.uint16), np.array([True])],
        [np.array([-0.0, np.nan, np.inf]).astype(ml_dtypes.bfloat16), np.array([1 - 2j])],
    ],
    ids=len,
)
def test_packed_arrays_come_back(arrays: list[Any]) -> None:
    made = answers.unpack_arrays(answers.pack_arrays(arrays))
    assert len(made) == len(arrays)
    for one, other in zip(made, arrays, strict=True):
        assert_same(one, other)


def test_other_calls_have_other_digests() -> None:
    x = np.arange(4.0)
    calls = [
        ("a", x),
        ("b", x),
        ("a", x + 0.5),
        ("a", x.astype(np.float32)),
        ("a", x.reshape(2, 2)),
        ("a", [x]),
        ("a", list(x)),
        (["a", x], 1),
        (["a"], x, 1),
        ("a", ()),
        ("a", 0),
        ("a", (), 0),
    ]
    assert len({answers.digest(*call) for call in calls}) == len(calls)
    assert answers.digest("a", x) == answers.digest("a", x.copy())


def test_what_prints_its_address_is_no_argument() -> None:
    with pytest.raises(TypeError, match="its address differs in each run"):
        answers.digest("a", lambda: 1)


@pytest.fixture
def store(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "DIRECTORY", tmp_path / "answers")
    for name in ("_kept", "_renewed", "_passed", "_renewed_checks", "missed"):
        monkeypatch.setattr(answers, name, {})
    monkeypatch.setattr(answers, "used", set())


def never() -> list[Any]:
    raise AssertionError("the answer is kept")


def returns(*arrays: Any) -> Callable[[], list[Any]]:
    return lambda: list(arrays)


@pytest.mark.usefixtures("store")
def test_an_answer_is_read_where_it_is_kept_and_made_where_it_is_not() -> None:
    x = np.arange(3.0)
    answers.look_up("test_a", "one", returns(x), "renew")
    answers.look_up("test_a", "long", returns(np.zeros(answers.LONGEST + 1, np.uint8)), "renew")
    assert answers.missed == {}
    answers.write()
    answers._kept.clear()
    (read,) = answers.look_up("test_a", "one", never, "")
    assert_same(read, x)
    (made,) = answers.look_up("test_a", "one", returns(x + 1), "live")
    assert_same(made, x + 1)
    (long,) = answers.look_up("test_a", "long", returns(x), "")
    assert_same(long, x)
    assert answers.missed == {}
    (other,) = answers.look_up("test_a", "two", returns(x + 2), "")
    assert_same(other, x + 2)
    assert answers.missed == {"test_a": 1}
    answers.look_up("test_b", "one", returns(x), "")
    assert answers.missed == {"test_a": 1}, "of test_b none are kept"
    with pytest.raises(AssertionError, match="the answer is kept"):
        answers.look_up("test_a", "raises", never, "")
    assert answers.missed == {"test_a": 1}
    assert "1 of test_a; ORACLE=renew python -m pytest -n 0 tests/test_a.py" in answers.report(answers.missed)
    assert answers.report({}) == ""


@pytest.mark.usefixtures("store")
def test_renewing_keeps_what_the_run_used_and_no_more() -> None:
    for key in ("one", "two"):
        answers.look_up("test_a", key, returns(np.arange(3)), "renew")
    answers.write()
    answers._kept.clear()
    answers._renewed.clear()
    answers.look_up("test_a", "two", never, "renew")
    answers.write()
    answers._kept.clear()
    assert list(answers._of_file("test_a")) == ["two"]


@pytest.mark.usefixtures("store")
def test_results_that_passed_a_check_are_checked_again_only_with_other_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []

    def check(mode: str, question: str, *results: Any, fails: bool = False) -> int:
        def run() -> None:
            calls.append(question)
            assert not fails

        before = len(calls)
        answers.check_once([np.asarray(each) for each in results], run, question, mode=mode)
        return len(calls) - before

    monkeypatch.setattr(answers, "_current_file", lambda: "test_a")
    assert check("", "one", 1.0) == 1
    assert answers.missed == {}
    assert check("renew", "one", 1.0) == check("renew", "two", 1.0, 2.0) == 1
    with pytest.raises(AssertionError):
        check("renew", "three", 3.0, fails=True)
    answers.write()
    answers._passed.clear()
    answers._renewed_checks.clear()
    assert check("", "one", 1.0, fails=True) == check("", "two", 1.0, 2.0, fails=True) == 0
    assert answers.missed == {} and answers.used == {"test_a"}
    for other in (np.float32(1), -1.0, [1.0]):
        with pytest.raises(AssertionError):
            check("", "one", other, fails=True)
    assert check("", "one", -1.0) == 1
    with pytest.raises(AssertionError):
        check("", "three", 3.0, fails=True)
    assert check("", "three", 3.0) == 1
    assert answers.missed == {"test_a": 1}
    assert check("live", "one", 1.0) == 1
    assert check("renew", "one", 1.0) == 0
    answers.write()
    answers._passed.clear()
    assert len(answers._read_checks("test_a")) == 1
    answers._renewed_checks.clear()
    assert check("renew", "one", 5.0) == 1  # on another processor
    answers.write()
    answers._passed.clear()
    answers._renewed_checks.clear()
    assert check("", "one", 1.0, fails=True) == check("", "one", 5.0, fails=True) == 0
    monkeypatch.setattr(answers.metadata, "version", {"jax": "2.0"}.__getitem__)
    assert check("renew", "one", 5.0) == 1
    answers.write()
    answers._passed.clear()
    assert check("", "one", 1.0) == 1 and check("", "one", 5.0, fails=True) == 0


@pytest.mark.usefixtures("store")
def test_answers_of_another_jax_are_used_named_and_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"jax": "1.0"}
    monkeypatch.setattr(answers.metadata, "version", installed.__getitem__)
    for file in ("test_a", "test_b"):
        answers.look_up(file, "one", returns(np.arange(3.0)), "renew")
    answers.write()
    answers._kept.clear()
    answers._renewed.clear()
    answers.look_up("test_a", "one", never, "")
    assert answers.used == {"test_a"}
    assert answers.report({}, answers.used, "1.0") == ""
    line = answers.report({}, answers.used, "2.0")
    assert line.startswith("jax 2.0 is installed, and answers were used of jax 1.0 for test_a; ORACLE=live")
    assert "test_b" not in line and "\n" not in line
    installed["jax"] = "2.0"
    (renewed,) = answers.look_up("test_a", "one", returns(np.zeros(2)), "renew")
    assert_same(renewed, np.zeros(2))
    answers.write()
    assert [answers.version_of(file) for file in ("test_a", "test_b")] == ["2.0", "1.0"]


def test_processes_of_a_run_share_what_one_computed(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(answers.SHARED, str(tmp_path))
    assert answers.share("a", lambda: {"x": 1}) == {"x": 1}
    assert answers.share("a", never) == {"x": 1}
    assert answers.share("b", lambda: 2) == 2
    monkeypatch.delenv(answers.SHARED)
    assert answers.share("a", lambda: 3) == 3


def test_every_file_of_answers_says_of_which_jax_they_are() -> None:
    files = {path.stem for path in answers.DIRECTORY.iterdir() if path.name != "jax.txt"}
    assert files == set(answers._versions())


def test_another_text_of_a_source_is_another_call(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[str] = []

    def note(file: str, key: str, compute: Any) -> list[Any]:
        keys.append(key)
        return []

    monkeypatch.setattr(answers, "look_up", note)

    def twice(x: Any) -> Any:
        return 2 * x

    def thrice(x: Any) -> Any:
        return 3 * x

    answers.recorded(twice)(1)
    answers.recorded(twice)(1)
    answers.recorded(thrice)(1)
    answers.recorded(twice, sources=(answers,))(1)
    assert keys[0] == keys[1] and len(set(keys)) == 3
