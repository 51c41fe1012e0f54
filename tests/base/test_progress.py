"""The progress bar itself: what it says, on a terminal and in a log."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.base import progress
from xarr.base.progress import ProgressBar, StepCounter
from xarr.compiler.pipeline import make_program
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
    bar = ProgressBar("x", Terminal())
    bar(steps, total, 0)
    assert bar.text(seconds) == text


def test_a_program_without_a_standard_error_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert_same(lax.fori_loop(0, 3, lambda i, x: x + i, 0, progress=True), np.asarray(3))


def test_a_terminal_has_one_line_that_is_redrawn() -> None:
    out = Terminal()
    with ProgressBar("x", out) as bar:
        for steps in range(3):
            bar(steps + 1, 3, 0)
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().endswith("\n")
    assert out.getvalue().count("\r") == 4


def test_iterations_of_a_loop_belong_to_the_present_step() -> None:
    bar = ProgressBar("x", Terminal())
    counter = StepCounter(bar, 2)
    counter.iterate()
    counter.iterate()
    assert bar.text(1.0) == f"x   0% |{'░' * 24}| 0/2 [00:01, ? left, 0/s, iteration 2 of a loop]"
    counter.step()
    assert bar.text(1.0) == f"x  50% |{'█' * 12}{'░' * 12}| 1/2 [00:01, 00:01 left, 1 s each]"


def test_a_counter_tells_how_far_it_is() -> None:
    told: list[tuple[int, int | None, int]] = []
    counter = StepCounter(lambda *how_far: told.append(how_far), 5)
    counter.step()
    counter.iterate(3)
    counter.iterate()
    counter.step(2)
    assert told == [(1, 5, 0), (1, 5, 3), (1, 5, 4), (3, 5, 0)]


def test_a_log_has_lines() -> None:
    out = io.StringIO()
    with ProgressBar("x", out) as bar:
        bar(1, None, 0)
        bar(2, None, 0)
    assert [line[:9] for line in out.getvalue().splitlines()] == ["x 1 steps", "x 2 steps", "x 2 steps"]
    assert "\r" not in out.getvalue()


def test_a_loop_that_fails_ends_its_line() -> None:
    out = Terminal()
    with pytest.raises(ZeroDivisionError), ProgressBar("x", out) as bar:
        bar(1, 3, 0)
        raise ZeroDivisionError
    assert out.getvalue().endswith("\n")


def test_an_encoding_without_blocks_gets_question_marks() -> None:
    out = Ascii()
    with ProgressBar("x", out) as bar:
        bar(1, 1, 0)
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
    assert len(lines) == count + 5 + 1
    assert all(line.startswith("it ") for line in lines), (
        "the bar of the loop is not drawn beside that of evaluate"
    )
    assert sum("of a loop" in line for line in lines) == 5


def test_a_bar_inside_of_another_is_not_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    def inner(i: Any, total: Any) -> Any:
        return lax.fori_loop(0, 2, lambda j, part: part + xarr.sin(i * part), total, progress="inner")

    with xarr.config(fusion="off"):
        start = xarr.asarray(0.5)
        lines = capture_bar(
            lambda: xarr.evaluate(lax.fori_loop(0, 3, inner, start, progress="outer")), capsys
        )
        # A device may tell of two iterations at once.
        assert [line.split()[0] for line in lines] in (["outer"] * 4, ["outer"] * 3)
        lines = capture_bar(lambda: xarr.evaluate(lax.fori_loop(0, 3, inner, start), progress="it"), capsys)
        assert {line.split()[0] for line in lines} == {"it"}
        lines = capture_bar(lambda: xarr.evaluate(inner(1.0, start)), capsys)
        assert [line.split()[0] for line in lines] in (["inner"] * 3, ["inner"] * 2)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_a_function_that_is_called_twice_counts_twice(
    backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    layer = xarr.jit(lambda v: lax.tanh(lax.sin(v)))
    with xarr.use_backend(backend), xarr.config(fusion="off"):
        # One traced function, and so one graph, in two calls.
        twice = lax.call(layer, lax.call(layer, xarr.asarray(np.ones(3))))
        lines = capture_bar(lambda: xarr.evaluate(twice, progress="it"), capsys)
    counts = [line.partition("| ")[2].partition(" [")[0] for line in lines]
    total = len(lines) - 1
    assert counts == [f"{step}/{total}" for step in (*range(1, total + 1), total)]


@pytest.mark.parametrize("name", ["numpy", "reference"])
def test_a_program_with_progress_counts_anew_in_each_run(name: str) -> None:
    told: list[tuple[int, int | None, int]] = []
    values = np.ones((7, 40), np.float32)
    with xarr.config(fusion="off"):
        graph, backend = xarr.lower(long_program, values).stage("traced"), xarr.backend.get(name)
        compiled = make_program(graph, backend)
        program = compiled.with_progress(lambda *how_far: told.append(how_far)).program
        buffer = backend.from_host(values)
        wanted = compiled.program(buffer)
        assert not told
        for _ in range(2):
            assert_same(program(buffer)[0], wanted[0])
    half = len(told) // 2
    assert told[:half] == told[half:]
    steps, total, iterations = told[-1]
    assert (steps, iterations) == (total, 0)
    assert [each[2] for each in told if each[2]] == [1, 2, 3, 4, 5] * 2


def test_a_backend_that_wraps_another_shows_its_steps(
    opaque: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    x = lax.sin(lax.sort(xarr.asarray(np.ones(3))))
    lines = capture_bar(lambda: xarr.evaluate(x, progress="it"), capsys)
    assert lines[-1].startswith(f"it 100% |{'█' * 24}| ")


def test_a_loop_with_a_bar_says_which_operation_failed(capsys: pytest.CaptureFixture[str]) -> None:
    with xarr.use_backend("numpy"), xarr.config(fusion="off"), pytest.raises(IndexError) as caught:
        table = xarr.asarray(np.arange(4.0))
        np.asarray(lax.fori_loop(0, 9, lambda i, total: total + table[i], 0.0, progress="own"))
    (note,) = caught.value.__notes__
    assert "while computing while_loop" in note and "test_progress.py:" in note
    assert capsys.readouterr().err.splitlines()[-1].startswith("own  44% |")


def test_evaluate_of_several_programs_counts_programs(capsys: pytest.CaptureFixture[str]) -> None:
    with xarr.config(max_depth=10**6, small_arrays="lazy"):
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
    monkeypatch.delattr(type(backend), "with_progress")
    with xarr.use_backend("numpy"):
        x = xarr.ones(3) * 2
    assert capture_bar(lambda: xarr.evaluate(x, progress="x"), capsys) == []
    assert_same(x, np.full(3, 2.0))


@pytest.mark.parametrize("wanted", [1, None, b"x", "", "two\nlines", "\ud800", np.True_, 0.0, ()], ids=ascii)
def test_a_label_is_one_line(wanted: Any) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "evaluate": lambda: xarr.evaluate(xarr.ones(3), progress=wanted),
        "while_loop": lambda: lax.while_loop(lambda x: x < 1, lambda x: x + 1, 0, progress=wanted),
        "fori_loop": lambda: lax.fori_loop(0, 1, lambda i, x: x, 0, progress=wanted),
        "scan": lambda: lax.scan(lambda c, x: (c, x), 0, xarr.ones(3), progress=wanted),
    }
    for name, call in calls.items():
        with pytest.raises(
            InputError, match=f"^{name}: wanted True, False or a label for progress, in one line"
        ):
            call()
