"""The progress of long loops, drawn on standard error.

On a terminal one line is redrawn at most ten times a second; elsewhere, as in a log file, a line is
written every ten seconds.  A loop that ends within half a second shows nothing.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Self, TextIO

_WIDTH: Final = 24
_PATIENCE: Final = 0.5
_REDRAW: Final = 0.1
_LOG: Final = 10.0


class ProgressBar:
    """Counts steps and shows how far a loop has come; a context manager, which ends the line.

    label: stands before the bar; total: the number of steps, None where it is not known beforehand.
    """

    def __init__(self, label: str, total: int | None, stream: TextIO | None = None) -> None:
        self.label = label
        self.total = total
        self.steps = 0
        self.iterations = 0
        self._stream = sys.stderr if stream is None else stream
        self._interactive = self._stream.isatty()
        self._start = time.monotonic()
        self._next = self._start + _PATIENCE
        self._drawn = 0

    def step(self, count: int = 1) -> None:
        """Count steps."""
        self.steps += count
        self.iterations = 0
        self._draw_if_due()

    def count_iterations(self, count: int = 1) -> None:
        """Count iterations of the loop that the present step is."""
        self.iterations += count
        self._draw_if_due()

    def _draw_if_due(self) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + (_REDRAW if self._interactive else _LOG)
            self._draw(now)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Draw the last state, if any was drawn, and end the line."""
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
        encoding = self._stream.encoding or "ascii"
        self._stream.write(text.encode(encoding, "replace").decode(encoding))
        self._stream.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(int(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
