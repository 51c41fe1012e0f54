"""Functions that are being recorded: which there are, and which is the innermost of this thread or task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import field
from typing import Final

from xarr.base.at_once.obstacles import Obstacle
from xarr.base.configuration import current as config
from xarr.base.frozen_dataclasses import record
from xarr.ir.device import Device
from xarr.ir.graph import Node


@record(eq=False)
class Trace:
    """A function that is being recorded, what stands for its arguments, and parameters made meanwhile.

    allows_effects: whether the function may have side effects.  device: where it runs, None for the default device.
    """

    parameters: tuple[Node, ...]
    extra: list[Node]
    allows_effects: bool = False
    device: Device | None = None
    #: The nodes that are ordered, so far.
    ordered: list[Node] = field(default_factory=list)


#: The functions that are being recorded, the innermost last.
_traces: Final[ContextVar[tuple[Trace, ...]]] = ContextVar("traces", default=())
#: Those of all threads: while there is none, an Array need not look up where it is made.
recording: Final[list[Trace]] = []


def is_tracing() -> bool:
    """Whether this thread or task is recording a function."""
    return bool(_traces.get())


def active() -> tuple[Trace, ...]:
    """The functions that this thread or task is recording, the innermost last."""
    return _traces.get()


def innermost() -> Trace | None:
    """The function that this thread or task is recording, the innermost of them."""
    traces = _traces.get()
    return traces[-1] if traces else None


#: Whether a function under jit runs op by op instead of being recorded.
_unrecorded: Final[ContextVar[bool]] = ContextVar("unrecorded", default=False)


def is_unrecorded() -> bool:
    """Whether this thread or task runs a function op by op that is recorded otherwise, to check or explain each."""
    return _unrecorded.get()


#: Whether this thread or task records what nobody shall watch, since it was computed before.
is_alone: Final[ContextVar[bool]] = ContextVar("is_alone", default=False)
#: By the backend of new arrays: contexts of such.
_lone_contexts: Final[dict[str, Context]] = {}


def lone_context(backend: str) -> Context:
    """A context in which what was computed before is recorded, under the usual settings and watched by nobody.

    Who runs something in it holds an `Obstacle` meanwhile.
    """
    known = _lone_contexts.get(backend)
    if known is None:
        known = Context()
        known.run(is_alone.set, True)
        known.run(config.stay_usual, backend)
        _lone_contexts[backend] = known
    return known.copy()  # since one thread at a time enters a context


@contextmanager
def run_unrecorded() -> Iterator[None]:
    """Run a function that is recorded otherwise."""
    token = _unrecorded.set(True)
    try:
        yield
    finally:
        _unrecorded.reset(token)


@contextmanager
def record_into(trace: Trace) -> Iterator[None]:
    """Let what is built meanwhile belong to `trace`."""
    token = _traces.set((*_traces.get(), trace))
    obstacle = Obstacle()
    recording.append(trace)
    try:
        yield
    finally:
        recording.remove(trace)
        del obstacle
        _traces.reset(token)
