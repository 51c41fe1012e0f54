"""The warning, under `config.debug`, for a statement `x.at[0].set(1)`, which throws its result away.

It is compiled to a call and, right after it, POP_TOP.  Where a call is not followed by that, nothing is watched.
Where it is, a weak reference to the result tells when it dies, and it was dropped if it dies at that very
instruction: one that was kept, say by `list.extend(map(x.at[0].set, values))`, does not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dis import opmap
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Final
from weakref import ref

from xarr.base.typing import Array
from xarr.errors import DroppedUpdateWarning
from xarr.ir.source import Source, warn_at

_POP_TOP: Final = opmap["POP_TOP"]
_CACHE: Final = opmap.get("CACHE", 0)
#: The references by the identity of what they refer to, which live as long as it: one for each array.
_watched: Final[dict[int, ref[Any]]] = {}
_MESSAGE: Final = (
    "the result of an update is dropped, and the array is as it was: at[…] returns a new array; "
    "write x = x.at[i].set(v), or x[i] = v"
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


def warn_if_dropped(array: Array, caller: FrameType) -> None:
    """DroppedUpdateWarning, at the line of `caller`, if the statement that it is at drops `array`."""
    popped = _pop_after(caller.f_code, caller.f_lasti)
    if popped is not None:
        _watch(array, caller, popped)


def _watch(array: Array, caller: FrameType, last: int) -> None:
    _watched[id(array)] = ref(array, _warning_at(id(array), caller.f_code, caller.f_lasti, last))


def _warning_at(key: int, code: CodeType, call: int, last: int) -> Callable[[ref[Any]], None]:
    def warn_when_collected(reference: ref[Any]) -> None:
        _watched.pop(key, None)
        frame = sys._getframe(1)
        if frame.f_code is code and frame.f_lasti == last:
            source = Source(code, call)
            warn_at(source, f"{_MESSAGE}\n{source}", DroppedUpdateWarning)

    return warn_when_collected
