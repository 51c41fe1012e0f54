"""The commands `puzzles` and `puzzle`, and the file of what is solved."""

from __future__ import annotations

from pathlib import Path

import pytest

from xarr.__main__ import main
from xarr.puzzles.progress import note_solved, progress_file, solved_puzzles

pytestmark = [pytest.mark.implicit, pytest.mark.usefixtures("on_numpy")]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_a_right_answer_is_written_down(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["puzzles"]) == 0
    out = capsys.readouterr().out
    assert "[ ]  7  every pair" in out and out.endswith("0 of 36 solved\n") and out.count("chapter") == 6
    assert main(["puzzle", "7", "a[:, None] + b"]) == 0
    assert capsys.readouterr().out.startswith("right: it reads and writes")
    assert main(["puzzles"]) == 0
    out = capsys.readouterr().out
    assert "[x]  7  every pair   (36 elements)" in out and "1 of 36 solved" in out


def test_a_wrong_answer_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["puzzle", "8", "x - v"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("not yet: for") and "does not broadcast" in out and "what would work" in out
    assert solved_puzzles() == {}


def test_a_hint_follows_a_wrong_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["puzzle", "7", "a + b", "--hint", "3"]) == 1
    assert capsys.readouterr().out.endswith("\nhint: one solution: a[:, None] + b\n")


def test_what_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["puzzle", "7", "open('x')"]) == 2
    streams = capsys.readouterr()
    assert streams.out == "" and streams.err.startswith("xarr puzzle: wanted calls of functions of np or lax")
    assert main(["puzzle", "99"]) == 2
    assert "1 to 36" in capsys.readouterr().err


def test_tasks_and_hints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["puzzle", "7"]) == 0
    out = capsys.readouterr().out
    assert "Add each element of a to each of b." in out and "--hint 1, 2 and 3 help" in out
    assert main(["puzzle", "7", "--hint", "2"]) == 0
    out = capsys.readouterr().out
    assert "broadcast_in_dim" in out and "a[:, None] + b" not in out
    assert main(["puzzle", "7", "--hint", "3"]) == 0
    assert "a[:, None] + b" in capsys.readouterr().out


def test_the_best_score_stays() -> None:
    assert note_solved(34, 40) and note_solved(34, 14) and note_solved(34, 20) and note_solved(1, None)
    assert solved_puzzles() == {34: 14, 1: None}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', '{"1": "x"}', "null"])
def test_a_damaged_file_counts_as_none(text: str) -> None:
    progress_file().parent.mkdir(parents=True)
    progress_file().write_text(text, encoding="utf-8")
    assert solved_puzzles() == {}
    assert note_solved(2, None) and solved_puzzles() == {2: None}


def test_a_folder_that_cannot_be_written(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (state / "xarr").write_text("a file", encoding="utf-8")
    assert main(["puzzle", "1", "(m, n)"]) == 0
    assert "(not written down:" in capsys.readouterr().out
