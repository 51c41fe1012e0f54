"""Who waits where: the table that every error of a distributed program ends in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from types import FrameType, TracebackType
from typing import Final

from xarr.base.frozen_dataclasses import record
from xarr.communication.communicator import CollectiveCall

#: `python -m xarr.distributed` runs under the name of the script.
_HERE: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: What to do, for the last line of a table.
MISMATCH_ADVICE: Final = (
    "The same collectives must be called by all replicas of a group, in the same order, with the same shapes, "
    "element types and attributes; look for a condition that depends on the replica, at the lines above"
)
DEADLOCK_ADVICE: Final = (
    "Call the same collectives in the same order at all replicas of a group, and pair each recv with a send; look for "
    "a condition that depends on the replica, at the lines above"
)
ENDED_ADVICE: Final = (
    "All replicas of a group must take part in each of its collectives; look for a return, break or exit that depends "
    "on the replica"
)
TIMEOUT_ADVICE: Final = (
    "config.collective_timeout says how long a collective waits for replicas that run; set a longer one if they are "
    "only slow"
)


@record
class Standing:
    """The state of one replica, for a row of a table.

    * `state` - `waits`, `runs`, or how it has ended: `has returned`, `has left by sys.exit(0)`, `raised ValueError: …`,
    * `seconds` - for how long it has waited,
    * `call` - what it waits in, or the last collective that it took part in,
    * `number` - how many collectives it has count, `missing` - the replicas that it waits for,
    * `line` - where it runs, `file.py:12 in f`, if it does not wait.
    """

    rank: int
    state: str
    seconds: float = 0.0
    call: CollectiveCall | None = None
    number: int = 0
    missing: tuple[int, ...] = ()
    line: str = ""

    def row(self) -> str:
        """The row of this replica, without its number."""
        if self.state == "waits":
            missing = f" for {ranks(self.missing)}" if self.missing else ""
            return f"waits {self.seconds:.1f} s{missing} in {describe(self.call, self.number)}"
        where = f" at {self.line}" if self.line else ""
        after = (
            f", after {describe(self.call, self.number)}" if self.call else ", before its first collective"
        )
        return f"{self.state}{where}{after}"


def table(headline: str, standings: Iterable[Standing], advice: str = "") -> str:
    """Text of a headline, a row for each replica, and advice."""
    rows = sorted(standings, key=lambda each: each.rank)
    width = max((len(str(each.rank)) for each in rows), default=1)
    lines = [headline, *(f"  replica {each.rank:{width}}: {each.row()}" for each in rows)]
    return "\n".join([*lines, *([advice] if advice else [])])


def describe(call: CollectiveCall | None, number: int) -> str:
    """`#3 all_reduce(float64[1000], add), built at file.py:12 in f`."""
    if call is None:
        return "no collective"
    source = f", built at {call.source}" if call.source else ""
    return f"#{number} {call.name}{call.signature}{source}"


def ranks(numbers: Sequence[int]) -> str:
    """`replica 1`, `replicas 1, 2`, `replicas 1, 2, … 4095 (4000 of them)`."""
    if len(numbers) == 1:
        return f"replica {numbers[0]}"
    if len(numbers) > 8:
        first = ", ".join(map(str, numbers[:3]))
        return f"replicas {first}, … {numbers[-1]} ({len(numbers)} of them)"
    return f"replicas {', '.join(map(str, numbers))}"


def line_of(frame: FrameType | None) -> str:
    """`file.py:12 in f`, the innermost line of a stack that is the user's; "" if there is none."""
    while frame is not None:
        code = frame.f_code
        if not _is_ours(frame):
            return f"{os.path.basename(code.co_filename)}:{frame.f_lineno} in {code.co_name}"
        frame = frame.f_back
    return ""


def _is_ours(frame: FrameType) -> bool:
    """Whether a frame is of xarr, of a backend, of a program that one wrote, or of the standard library."""
    root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    file = frame.f_code.co_filename
    named = root == "xarr" or root.startswith("xarr_") or root in sys.stdlib_module_names - {"__main__"}
    return named or file.startswith((_HERE, "<"))


def begin_at_script(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without what comes before the user's first line; whole if there is none."""
    rest = trace
    while rest is not None and _is_ours(rest.tb_frame):
        rest = rest.tb_next
    return rest or trace


def line_of_thread(ident: int | None) -> str:
    """The line of the user's that a thread runs now."""
    return line_of(sys._current_frames().get(ident)) if ident is not None else ""
