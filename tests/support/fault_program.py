"""A program of three replicas, of which one does what its argument says; `none` and `slow` are no faults.

It runs by threads and under MPI alike.  When a fault begins, its time is written to the file that is named.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

import xarr
from xarr import config, lax
from xarr.communication.communicator import current_communicator

X: Final = np.ones(1000)
#: Groups in which replicas 0 and 1, or 1 and 2, are together.
FIRST, LAST = ((0, 1), (2,)), ((1, 2), (0,))


def all_reduce(x: Any, computation: Callable[[Any, Any], Any] = lax.add, groups: Any = None) -> xarr.Array:
    """The sum over a group, as a program of xarr's has it."""
    return lax.all_reduce(xarr.asarray(x), computation, replica_groups=groups)  # type: ignore[no-any-return]


def all_gather(x: Any) -> xarr.Array:
    """The arrays of all replicas, joined."""
    return lax.all_gather(xarr.asarray(x), replica_groups=[[0, 1, 2]], tiled=True)  # type: ignore[no-any-return]


def _raise() -> None:
    raise ValueError("boom")


def _loop() -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        time.sleep(0.01)


def _refuse(left: Any, right: Any) -> Any:
    raise ZeroDivisionError("no sum today")


def _order() -> None:
    all_reduce(X, groups=FIRST)
    all_reduce(X)


def _other_order() -> None:
    all_reduce(X)
    all_reduce(X, groups=FIRST)


def _gather_and_reduce() -> None:
    all_gather(X)
    all_reduce(X)


def _nothing() -> None:
    pass


def _limit(action: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        config.collective_timeout = 1.5
        action()
        all_reduce(X)

    return run


#: What replica 1 does, what 0 does, and what 2 does, after a first reduction of all.
FAULTS: Final[dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]]] = {
    "none": (lambda: all_reduce(X),) * 3,
    "slow": (lambda: (time.sleep(2), all_reduce(X)), *[lambda: all_reduce(X)] * 2),
    "exception": (_raise, *[lambda: all_reduce(X)] * 2),
    "exception in the computation": (lambda: all_reduce(X, _refuse), *[lambda: all_reduce(X)] * 2),
    "killed": (lambda: os.kill(os.getpid(), signal.SIGKILL), *[lambda: all_reduce(X)] * 2),
    "return early": (_nothing, *[lambda: all_reduce(X)] * 2),
    "sys.exit(0) early": (lambda: sys.exit(0), *[lambda: all_reduce(X)] * 2),
    "other op": (lambda: all_gather(X), *[lambda: all_reduce(X)] * 2),
    "other order": (_order, _other_order, lambda: all_reduce(X)),
    "one left out": (lambda: all_reduce(X), *[_gather_and_reduce] * 2),
    "other shape": (lambda: all_reduce(X[:10]), *[lambda: all_reduce(X)] * 2),
    "other dtype": (lambda: all_reduce(X.astype(np.float32)), *[lambda: all_reduce(X)] * 2),
    "other groups": (lambda: all_reduce(X, groups=LAST), *[lambda: all_reduce(X)] * 2),
    "recv without send": (
        lambda: lax.recv(((3,), "float64"), None, 7, [(0, 1)]),
        *[lambda: all_reduce(X)] * 2,
    ),
    "infeed that nobody feeds": (
        lambda: lax.infeed(None, ((1000,), "float64")),
        *[lambda: all_reduce(X)] * 2,
    ),
    "endless loop": (_limit(_loop), *[_limit(_nothing)] * 2),
    "stopped process": (
        _limit(lambda: os.kill(os.getpid(), signal.SIGSTOP)),
        *[_limit(_nothing)] * 2,
    ),
    "Ctrl-C": (_loop, *[lambda: all_reduce(X)] * 2),
    "launcher killed": (_loop, *[lambda: all_reduce(X)] * 2),
}


def run_fault(name: str, begin: Path) -> None:
    """Do what one replica does of a fault."""
    all_reduce(X)
    rank = current_communicator().rank
    if rank == 1:
        begin.write_text(repr(time.time()), encoding="utf-8")
    FAULTS[name][{1: 0, 0: 1, 2: 2}[rank]]()


if __name__ == "__main__":
    run_fault(sys.argv[1], Path(sys.argv[2]))
