"""The warning for an update whose result the statement that made it throws away, `x.at[0].set(1)`.

Such a statement is compiled to a call and, right after it, POP_TOP.  Where a call is not followed by that, nothing
is watched.  Where it is, a weak reference to the result tells when it dies, and it was dropped if it dies at that
very instruction: one that was kept, say by `list.extend(map(x.at[0].set, values))`, does not.

A write such as `x[0][1] = 5` is lost likewise: x[0] is an array of its own, which dies at the very STORE_SUBSCR.
"""

from __future__ import annotations

import sys
import warnings
from dis import opmap
from functools import lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from xarr.errors import DroppedUpdateWarning
from xarr.ir.source import Source

if TYPE_CHECKING:
    from xarr.array import Array

_POP_TOP: Final = opmap["POP_TOP"]
#: Assignments to an item; Python 3.12 has one of its own for slices.
_STORES: Final = (opmap["STORE_SUBSCR"], opmap.get("STORE_SLICE"))
#: The references to an array that nothing but the statement writing to it holds, as `__setitem__` counts them.
#: Where Python borrows local variables (3.14), one that is named may have no more; it dies elsewhere.
TEMPORARY: Final = 3
_CACHE: Final = opmap.get("CACHE", 0)
#: The references by the identity of the array, one for each, which live as long as it does.
_watched: Final[dict[int, ref[Any]]] = {}


@lru_cache(maxsize=4096)
def _pop_after(code: CodeType, offset: int) -> int | None:
    """The offset of the POP_TOP that follows the instruction at `offset`, None if another one does."""
    instructions = code.co_code
    following = offset + 2
    while following < len(instructions) and instructions[following] == _CACHE:
        following += 2
    is_pop = following < len(instructions) and instructions[following] == _POP_TOP
    return following if is_pop else None


@lru_cache(maxsize=4096)
def _stores(code: CodeType, offset: int) -> bool:
    """Whether the instruction at `offset` is an assignment to an item."""
    return code.co_code[offset] in _STORES


def warn_if_dropped(found: Array, caller: FrameType) -> None:
    """DroppedUpdateWarning, at the line of `caller`, if the statement that it is at drops `found`."""
    popped = _pop_after(caller.f_code, caller.f_lasti)
    if popped is not None:
        _watch(
            found,
            caller,
            popped,
            "the result of an update is dropped, and the array is as it was: at[…] returns a new array; "
            "write x = x.at[i].set(v), or x[i] = v",
        )


def warn_if_lost(target: Array, caller: FrameType) -> None:
    """DroppedUpdateWarning, at the line of `caller`, if the array that it writes to dies with the statement."""
    if _stores(caller.f_code, caller.f_lasti):
        _watch(
            target,
            caller,
            caller.f_lasti,
            "what is written is lost: it is written to an array of its own that nothing else holds, as x[i], "
            "x.T, x.ravel() and others give it; write x[i, j] = v for x[i][j] = v, or give the array a name, "
            "write to that and put it back",
        )


def _watch(array: Array, caller: FrameType, end: int, message: str) -> None:
    code, call, key = caller.f_code, caller.f_lasti, id(array)

    def gone(reference: ref[Any]) -> None:
        _watched.pop(key, None)
        frame = sys._getframe(1)
        if frame.f_code is code and frame.f_lasti == end:
            place = Source(code, call)
            warnings.warn_explicit(f"{message}\n{place}", DroppedUpdateWarning, place.filename, place.line)

    _watched[key] = ref(array, gone)
