"""Donated arguments whose memory nothing else can see, so that a program may write over it.

Who else sees it is found by counting references.  A free-threaded Python counts those of each thread apart, so
there no memory is written over; `python -m xarr doctor` says so.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from xarr import interpreter
from xarr.ir.device import Device
from xarr.lazy import Handle


class _Shown:
    """Stands for an Array with a value that nothing else refers to."""

    def __init__(self, node: Any) -> None:
        self._node = node


class _Held:
    def __init__(self, value: Any) -> None:
        self.value = value


def _references(handle: Any) -> tuple[int, int]:
    """How often the node and the buffer of an Array are referred to, as the interpreter counts."""
    return sys.getrefcount(handle._node), sys.getrefcount(handle._node.value)


#: What `_references` gives where the Array alone refers to the node, and the node alone to the buffer.
_ALONE: Final = _references(_Shown(_Held(object())))


def claim(handle: Any, device: Device, held: int = 0) -> None:
    """Let programs on `device` write to the buffer of a donated Array, unless somebody else might see it change.

    That is whoever has another Array with this value, or has recorded something that uses it, or looks at the
    memory as a NumPy array.  `held`: how often the caller refers to the node, and to the buffer.
    """
    if not isinstance(handle, Handle) or handle._node.value is None or handle._node.handles != 1:
        return
    own = handle._node.device
    if own is None or own.committed is not device or interpreter.is_free_threaded():
        return
    node, buffer = _references(handle)
    if (node, buffer) == (_ALONE[0] + held, _ALONE[1] + held):
        device.backend.claim(handle._node.value)
