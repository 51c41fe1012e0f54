"""Unread flags of checks: which values depend on them, and what is raised when such a value is read.

On a device whose memory is not the host's a check cannot raise where it runs.  Its program gives flags beside its
results (`xarr.compiler.passes.checks`), and a caller that reads a value reads first those that it depends on.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from xarr.base.tracebacks import keep_text
from xarr.compiler.passes.checks import Checks, FlaggedCheck
from xarr.errors import XarrError
from xarr.ir.device import Device
from xarr.ir.graph import Node
from xarr.ir.source import Source


class _Flag:
    """A flag on a device, the checks that it may name, and where each was built."""

    __slots__ = ("_buffer", "_checks", "_device", "_sources")

    def __init__(
        self, buffer: Any, device: Device, checks: tuple[FlaggedCheck, ...], sources: Sequence[Source | None]
    ) -> None:
        self._buffer, self._device, self._checks, self._sources = buffer, device, checks, sources

    def read(self) -> None:
        """Raise what the first check that failed would have raised, with the line that built it."""
        number, value = self._device.backend.to_host(self._buffer).tolist()
        if number < 0:
            return
        check, source = self._checks[number], self._sources[number]
        try:
            check.fail(value)
        except XarrError as error:
            if source is not None and source.function:
                error.name_function(source.function)
            keep_text(error)
            node = check.outermost
            error.add_note(f"while computing {node.op.called} -> {node.type}, built at {source}")
            raise


Flags = tuple[_Flag, ...]

#: By values: the flags that say whether they are sound.  Those of one that has been looked at are gone.
unread: Final[dict[weakref.ref[Node], Flags]] = {}


def flags_of(nodes: Iterable[Node]) -> Flags:
    """The unread flags of these values, each once."""
    flags = [flag for node in nodes for flag in unread.get(weakref.ref(node), ())]
    return tuple(dict.fromkeys(flags))


def attach(nodes: Iterable[Node], flags: Flags) -> None:
    """Remember that these values hang on `flags` too."""
    for node in nodes:
        if flags:
            reference = weakref.ref(node, _forget)
            unread[reference] = tuple(dict.fromkeys((*unread.get(reference, ()), *flags)))


def _forget(reference: weakref.ref[Node], pop: Callable[..., Any] = unread.pop) -> None:
    # Bound here because module globals are gone when the interpreter ends.
    pop(reference, None)


def inherit(order: Iterable[Node], outputs: Iterable[Node]) -> None:
    """Let `outputs` hang on the flags of the values that they are computed from; `order` is what has to be computed."""
    hangs_on: dict[Node, Flags] = {}
    for node in order:
        own = flags_of([node]) if node.value is not None else ()
        hangs_on[node] = tuple(dict.fromkeys([*own, *[f for each in node.operands for f in hangs_on[each]]]))
    for node in outputs:
        attach([node], hangs_on[node])


def attach_results(
    checks: Checks,
    numbers: Sequence[int],
    nodes: Sequence[Node],
    buffers: Sequence[Any],
    device: Device,
    sources: Sequence[Source | None] | None = None,
) -> None:
    """Remember on which of a program's flags, in `buffers`, its results hang that `nodes` show, by their numbers.

    sources: for each check, where its outermost node was built, if not where the program's was.
    """
    flags = [_Flag(buffer, device, checks.checks, sources or checks.sources) for buffer in buffers]
    for node, number in zip(nodes, numbers, strict=True):
        flag = checks.flags[number]
        if flag is not None:
            attach([node], (flags[flag],))


def read(node: Node) -> None:
    """Raise what a check that `node` hangs on would have raised, if one has failed."""
    reference = weakref.ref(node)
    for flag in unread.get(reference, ()):
        flag.read()
    unread.pop(reference, None)
