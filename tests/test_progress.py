"""The progress bar itself: what it says, on a terminal and in a log."""

import io

import pytest

from xarr import progress
from xarr.progress import ProgressBar


class Terminal(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


class Ascii(io.StringIO):
    encoding = "ascii"  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_PATIENCE", "_REDRAW", "_LOG"):
        monkeypatch.setattr(progress, name, 0.0)


@pytest.mark.parametrize(
    ("steps", "total", "seconds", "text"),
    [
        (0, 4, 1.0, f"x   0% |{'░' * 24}| 0/4 [00:01, ? left, 0/s]"),
        (1, 4, 10.0, f"x  25% |{'█' * 6}{'░' * 18}| 1/4 [00:10, 00:30 left, 10 s each]"),
        (4000, 4000, 2.0, f"x 100% |{'█' * 24}| 4,000/4,000 [00:02, 00:00 left, 2,000/s]"),
        (0, 0, 0.0, f"x 100% |{'█' * 24}| 0/0 [00:00, ? left, 0/s]"),
        (5, None, 7322.0, "x 5 steps [2:02:02, 1.5e+03 s each]"),
    ],
    ids=["none", "quarter", "all", "empty", "unknown"],
)
def test_what_it_says(steps: int, total: int | None, seconds: float, text: str) -> None:
    bar = ProgressBar("x", total, Terminal())
    bar.steps = steps
    assert bar.text(seconds) == text


def test_a_terminal_has_one_line_that_is_redrawn() -> None:
    out = Terminal()
    with ProgressBar("x", 3, out) as bar:
        for _ in range(3):
            bar.step()
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().endswith("\n")
    assert out.getvalue().count("\r") == 4


def test_a_log_has_lines() -> None:
    out = io.StringIO()
    with ProgressBar("x", None, out) as bar:
        bar.step()
        bar.step()
    assert [line[:9] for line in out.getvalue().splitlines()] == ["x 1 steps", "x 2 steps", "x 2 steps"]
    assert "\r" not in out.getvalue()


def test_a_loop_that_fails_ends_its_line() -> None:
    out = Terminal()
    with pytest.raises(ZeroDivisionError), ProgressBar("x", 3, out) as bar:
        bar.step()
        raise ZeroDivisionError
    assert out.getvalue().endswith("\n")


def test_an_encoding_without_blocks_gets_question_marks() -> None:
    out = Ascii()
    with ProgressBar("x", 1, out) as bar:
        bar.step()
    assert "|????" in out.getvalue()
