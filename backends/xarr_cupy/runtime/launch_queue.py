"""How far the host goes ahead of the device, which Ctrl-C cannot take launches back from.

Events between launches say when the device has come to them.  The host records the next one, and waits for the one
before it: so what is launched and has not run lies between two events at most.  How much is launched between them is
estimated from bytes, and corrected by the time that it took where the device had no pause.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from xarr_cupy.runtime.launches import Launches, MemoryCopy

#: Seconds that a launch takes at least, and as an estimate at most; bytes a second of a common device.
LAUNCH_SECONDS: Final = 3e-6
_MOST_SECONDS: Final = 1e-4
_BYTES_PER_SECOND: Final = 1e12
#: Estimated seconds between two events at most: where the device keeps up, and where it was measured to be fast enough.
_LONGEST_UNMEASURED: Final = 1e-4
_LONGEST: Final = 1e-3
#: Seconds on the device between two events, at most.
_WANTED: Final = 0.05
#: By how much a measured time shortens the next interval at most.
_SHORTEST: Final = 1 / 64


def estimate_seconds(launches: Launches) -> float:
    """A rough lower bound of the time that launches take on a device."""
    return sum(_estimate(_nbytes_of(each)) for each in launches)


def _estimate(nbytes: int) -> float:
    return min(LAUNCH_SECONDS + nbytes / _BYTES_PER_SECOND, _MOST_SECONDS)


def _nbytes_of(launch: Any) -> int:
    if isinstance(launch, MemoryCopy):
        return 2 * launch.nbytes
    return sum(argument.nbytes for argument in launch.arguments)


class LaunchQueue:
    """Lets the host wait where more is launched than the device runs in a tenth of a second, about.

    record: an event of CuPy's, with timing, behind what was launched, None where nothing runs yet; it may be the one
    that is given, an earlier event that nobody looks at any more; wait: waits for an event; elapsed: milliseconds
    between two events that have come.
    """

    def __init__(
        self,
        record: Callable[[Any | None], Any | None],
        wait: Callable[[Any], None],
        elapsed: Callable[[Any, Any], float],
    ) -> None:
        self._record, self._wait, self._elapsed = record, wait, elapsed
        self._lock = Lock()
        self._seconds, self._interval = 0.0, LAUNCH_SECONDS
        #: The events recorded last, the latest at the end; the first is recorded again next time.
        self._events: deque[Any] = deque([None] * 3, maxlen=3)
        #: The event before the latest one, where the device had no pause between them.
        self._start: Any = None

    def add(self, seconds: float) -> None:
        """Note that so many estimated seconds of work were launched; wait for earlier ones where they are too many."""
        self._seconds += seconds
        if self._seconds >= self._interval:
            with self._lock:
                self._bound()

    def _bound(self) -> None:
        self._seconds = 0.0
        event = self._record(self._events[0])
        if event is None:
            return
        earlier, start = self._events[-1], self._start
        self._events.append(event)
        self._start = None
        if earlier is None:
            return
        if earlier.done:
            self._interval = max(self._interval, min(2 * self._interval, _LONGEST_UNMEASURED))
            return
        self._wait(earlier)
        # All up to the latest event was launched while the device was busy with what was before.
        self._start = earlier
        if start is not None:
            seconds = max(self._elapsed(start, earlier) / 1000, 1e-9)
            self._interval = min(self._interval * max(min(_WANTED / seconds, 2.0), _SHORTEST), _LONGEST)
