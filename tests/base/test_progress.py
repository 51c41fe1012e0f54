"""The progress bar itself: what it says, on a terminal and in a log."""

import io
from collections.abc import Callable

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.base import progress
from xarr.base.progress import ProgressBar
from xarr.errors import InputError


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


def test_iterations_of_a_loop_belong_to_the_present_step() -> None:
    bar = ProgressBar("x", 2, Terminal())
    bar.count_iterations()
    bar.count_iterations()
    assert bar.text(1.0) == f"x   0% |{'░' * 24}| 0/2 [00:01, ? left, 0/s, iteration 2 of a loop]"
    bar.step()
    assert bar.text(1.0) == f"x  50% |{'█' * 12}{'░' * 12}| 1/2 [00:01, 00:01 left, 1 s each]"


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


# --- evaluation ----------------------------------------------------------------------------------------------


def long_program(x: xarr.Array) -> xarr.Array:
    """With calls in calls, a loop, branches, and sums whose bits depend on the order."""

    def layer(v: xarr.Array) -> xarr.Array:
        return lax.call(lambda w: lax.tanh(w), lax.dot(lax.transpose(v, (1, 0)), v))

    def settle(v: xarr.Array) -> xarr.Array:
        return lax.fori_loop(0, 5, lambda i, w: w * np.float32(0.7), v, progress="own")

    looped = settle(lax.call(layer, x))
    chosen = lax.cond(lax.reduce_sum(looped, (0, 1)) > 0, lax.neg, lax.sin, looped)
    return lax.reduce_sum(lax.broadcast_in_dim(lax.reduce_sum(chosen, (0,)), (3, 40), (1,)), (0, 1))


def capture_bar(compute: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    compute()
    streams = capsys.readouterr()
    assert streams.out == ""
    return streams.err.splitlines()


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_evaluate_shows_every_step_and_changes_no_bit(
    backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    values = np.random.default_rng(3).normal(size=(7, 40)).astype(np.float32)
    # A loop in machine code reports several iterations at once.
    with xarr.use_backend(backend), xarr.config(fusion="off"):
        wanted = np.asarray(long_program(xarr.asarray(values)))
        got = long_program(xarr.asarray(values))
        lines = capture_bar(lambda: xarr.evaluate(got, progress="it"), capsys)
    assert got.is_evaluated
    assert_same(got, wanted)
    # A line for each step and for each iteration of the loop, and the last once more.
    count = int(lines[-1].partition("| ")[2].partition("/")[0])
    assert lines[-1].startswith(f"it 100% |{'█' * 24}| {count}/{count} [")
    shown = [line for line in lines if line.startswith("it ")]
    assert len(shown) == count + 5 + 1
    assert sum("of a loop" in line for line in shown) == 5


def test_evaluate_of_several_programs_counts_programs(capsys: pytest.CaptureFixture[str]) -> None:
    with xarr.config(max_depth=10**6):
        x = xarr.asarray(0.0)
        for _ in range(5000):
            x = lax.add(x, 1.0)
        lines = capture_bar(lambda: xarr.evaluate(x, progress=True), capsys)
    assert float(x) == 5000
    assert len(lines) > 2
    count = len(lines) - 1
    assert lines[-1].startswith(f"evaluate 100% |{'█' * 24}| {count}/{count} [")


def test_evaluate_is_silent_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert capture_bar(lambda: xarr.evaluate(xarr.ones(3) * 2), capsys) == []
    done = xarr.ones(3).evaluate()
    assert capture_bar(lambda: xarr.evaluate(done, progress="nothing to do"), capsys) == []


def test_a_backend_that_cannot_say_how_far_it_is_runs_all_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = xarr.backend.get("numpy")
    monkeypatch.delattr(type(backend), "compile_watched")
    x = xarr.ones(3) * 2
    assert capture_bar(lambda: xarr.evaluate(x, progress="x"), capsys) == []
    assert_same(x, np.full(3, 2.0))


@pytest.mark.parametrize("wanted", [1, None, b"x"], ids=repr)
def test_evaluate_refuses_another_label(wanted: object) -> None:
    with pytest.raises(InputError, match="wanted True, False or a label for progress"):
        xarr.evaluate(xarr.ones(3), progress=wanted)  # type: ignore[arg-type]
