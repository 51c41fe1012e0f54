"""What keeps ops on small values from being computed without a look at settings and observers.

One table for all threads, with a row for each reason: a function that is being recorded, an observer of
broadcasts, settings that ask for something else, and every `with xarr.config(…)` whose settings some thread or task may
still see.  So the usual case is one test, `if not obstacles`; who finds it otherwise looks closely.
"""

from __future__ import annotations

from typing import Any, Final

#: A row for each reason, by the identity of what stands for it.
obstacles: Final[dict[int, None]] = {}


class Obstacle:
    """A reason, for as long as anybody holds it: so it ends however a block is left, by Ctrl-C in any line too.

    In a variable of contexts it holds as long as any of these: they are copied, and outlive the block.
    """

    __slots__ = ()

    def __init__(self) -> None:
        obstacles[id(self)] = None

    def __del__(self, pop: Any = obstacles.pop) -> None:
        # Bound here because module globals are gone when the interpreter ends.
        pop(id(self), None)
