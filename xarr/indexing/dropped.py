"""The warning for an update whose result the statement that made it throws away.

That is `x.at[0].set(1)`, and `x[1:][mask] = 1`, which changes what `x[1:]` returned and nothing else.

The first is compiled to a call and, right after it, POP_TOP.  Where a call is not followed by that, nothing
is watched.  Where it is, a weak reference to the result tells when it dies, and it was dropped if it dies at that
very instruction: one that was kept, say by `list.extend(map(x.at[0].set, values))`, does not.  In the second
the array that was written to dies at the instruction that wrote.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dis import opmap
from functools import lru_cache
from sys import getrefcount
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from xarr.errors import DroppedUpdateWarning
from xarr.ir.source import Source

if TYPE_CHECKING:
    from xarr.array import Array

_POP_TOP: Final = opmap["POP_TOP"]
_CACHE: Final = opmap.get("CACHE", 0)
#: The references by the identity of what they refer to, which live as long as it: one for each array.
_watched: Final[dict[int, ref[Any]]] = {}
#: The stack, the method's `self` and two arguments; a name for the array would be one more.
_REFERENCES_TO_TEMPORARY: Final = 4
_OF_AT: Final = (
    "the result of an update is dropped, and the array is as it was: at[…] returns a new array; "
    "write x = x.at[i].set(v), or x[i] = v"
)
_OF_CHAIN: Final = (
    "a value is written into an array that nothing refers to, and no other array changes: a part of an array is "
    "a value of its own, not a view; write x[i, j] = v, or part = x[i], part[j] = v, x[i] = part"
)


@lru_cache(maxsize=4096)
def _pop_after(code: CodeType, offset: int) -> int | None:
    """The offset of the POP_TOP that follows the instruction at `offset`, None if another one does."""
    instructions = code.co_code
    following = offset + 2
    while following < len(instructions) and instructions[following] == _CACHE:
        following += 2
    is_pop = following < len(instructions) and instructions[following] == _POP_TOP
    return following if is_pop else None


def warn_if_dropped(found: Array, caller: FrameType) -> None:
    """DroppedUpdateWarning, at the line of `caller`, if the statement that it is at drops `found`."""
    popped = _pop_after(caller.f_code, caller.f_lasti)
    if popped is not None:
        _watch(found, caller, popped, _OF_AT)


def warn_if_temporary(written: Array, caller: FrameType) -> None:
    """DroppedUpdateWarning, at the line of `caller`, if nobody can see that `written` was written to.

    Called by a method of the array itself, which nothing holds then but that call and the caller's stack.
    """
    if getrefcount(written) <= _REFERENCES_TO_TEMPORARY:
        _watch(written, caller, caller.f_lasti, _OF_CHAIN)


def _watch(array: Array, caller: FrameType, last: int, message: str) -> None:
    _watched[id(array)] = ref(array, _warning_at(id(array), caller.f_code, caller.f_lasti, last, message))


def _warning_at(key: int, code: CodeType, call: int, last: int, message: str) -> Callable[[ref[Any]], None]:
    def gone(reference: ref[Any]) -> None:
        _watched.pop(key, None)
        frame = sys._getframe(1)
        if frame.f_code is code and frame.f_lasti == last:
            place = Source(code, call)
            warnings.warn_explicit(f"{message}\n{place}", DroppedUpdateWarning, place.filename, place.line)

    return gone
