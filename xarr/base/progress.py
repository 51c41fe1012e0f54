"""The progress of long work: it is counted by a `StepCounter`, which tells one callback how far the work is.

`ProgressBar` is such a callback; it draws on standard error.  On a terminal one line is redrawn at most ten times a
second; elsewhere, as in a log file, a line is written every ten seconds.  Work that ends within half a second shows
nothing, nor does work that is a part of other work with a bar: two bars would draw over each other.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self, TextIO

from xarr.errors import InputError

_WIDTH: Final = 24
_PATIENCE: Final = 0.5
_REDRAW: Final = 0.1
_LOG: Final = 10.0


#: Told how far long work is: (steps done, of how many, iterations done of the loop that the present step is).  The
#: second is None where it is not known beforehand, the third 0 in a step that is no loop.
ProgressCallback = Callable[[int, int | None, int], object]
#: Told how many more steps are done, as `StepCounter.step` and `StepCounter.iterate` are.
CountSteps = Callable[[int], object]


class StepCounter:
    """Counts the steps of one run of long work, and tells `progress` each time how far it is.

    total: the number of steps, None where it is not known beforehand.
    """

    def __init__(self, progress: ProgressCallback, total: int | None) -> None:
        self.steps = 0
        self.iterations = 0
        self._progress = progress
        self._total = total

    def step(self, count: int = 1) -> None:
        """Count steps."""
        self.steps += count
        self.iterations = 0
        self._progress(self.steps, self._total, 0)

    def iterate(self, count: int = 1) -> None:
        """Count iterations of the loop that the present step is."""
        self.iterations += count
        self._progress(self.steps, self._total, self.iterations)


def check_label(name: str, progress: object, default: str) -> str | None:
    """The label that `progress`, an argument of the function `name`, asks for: `default` for True, None for False.

    Raises InputError for what is neither a bool nor a label of printable characters.
    """
    if isinstance(progress, bool):
        return default if progress else None
    if isinstance(progress, str) and progress and progress.isprintable():
        return str.__str__(progress)
    raise InputError(
        f"{name}: wanted True, False or a label for progress, in one line, got {progress!r}; True calls it {default!r}"
    )


class _Bars(threading.local):
    """The bars of a thread."""

    def __init__(self) -> None:
        #: Whether one is drawn now.
        self.is_drawing = False


_bars: Final = _Bars()


@contextmanager
def show_progress(label: str, total: int | None) -> Iterator[StepCounter]:
    """Draw a bar while the block runs, of the steps that it counts, unless another bar is drawn."""
    if _bars.is_drawing:
        yield StepCounter(_ignore, total)
        return
    with ProgressBar(label) as bar:
        yield StepCounter(bar, total)


def _ignore(steps: int, total: int | None, iterations: int) -> None:
    """Draw nothing, as a `ProgressCallback`."""


class ProgressBar:
    """Draws how far long work is, as a `ProgressCallback`; a context manager, which ends the line.

    label: stands before the bar.
    """

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self.label = label
        self.total: int | None = None
        self.steps = 0
        self.iterations = 0
        self._stream = sys.stderr if stream is None else stream
        self._interactive = self._stream is not None and self._stream.isatty()
        self._start = time.monotonic()
        # A program without a console, as under pythonw, has no standard error: sys.stderr is None.
        self._next = math.inf if self._stream is None else self._start + _PATIENCE
        self._drawn = 0
        #: Whether another bar is drawn around this one.
        self._outer = False

    def __call__(self, steps: int, total: int | None, iterations: int) -> None:
        """Draw the new state, if the last line was drawn long enough ago."""
        self.steps, self.total, self.iterations = steps, total, iterations
        now = time.monotonic()
        if now >= self._next:
            self._next = now + (_REDRAW if self._interactive else _LOG)
            self._draw(now)

    def __enter__(self) -> Self:
        self._outer, _bars.is_drawing = _bars.is_drawing, True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Draw the last state, if any was drawn, and end the line."""
        _bars.is_drawing = self._outer
        if self._drawn:
            self._draw(time.monotonic())
            if self._interactive:
                self._write("\n")

    def text(self, seconds: float) -> str:
        """The line as it stands `seconds` after the beginning."""
        rate = self.steps / seconds if seconds > 0 else 0.0
        per_step = f"{rate:,.0f}/s" if rate >= 10 or not rate else f"{1 / rate:.2g} s each"
        iterations = f", iteration {self.iterations:,} of a loop" if self.iterations else ""
        if self.total is None:
            return f"{self.label} {self.steps:,} steps [{_clock(seconds)}, {per_step}{iterations}]"
        share = min(self.steps / self.total, 1.0) if self.total else 1.0
        filled = int(share * _WIDTH)
        left = _clock((self.total - self.steps) / rate) if rate else "?"
        return (
            f"{self.label} {share:4.0%} |{'█' * filled}{'░' * (_WIDTH - filled)}| "
            f"{self.steps:,}/{self.total:,} [{_clock(seconds)}, {left} left, {per_step}{iterations}]"
        )

    def _draw(self, now: float) -> None:
        line = self.text(now - self._start)
        if self._interactive:
            self._write(f"\r{line.ljust(self._drawn)}")
        else:
            self._write(f"{line}\n")
        self._drawn = len(line)

    def _write(self, text: str) -> None:
        assert self._stream is not None
        encoding = self._stream.encoding or "ascii"
        self._stream.write(text.encode(encoding, "replace").decode(encoding))
        self._stream.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(int(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
