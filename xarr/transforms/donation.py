"""Donated arguments whose memory nothing else can see, so that a program may write over it.

Who else sees it is not asked of the interpreter: CPython counts no reference that its stack borrows (3.14), and a
free-threaded Python has two counts.  A node says it itself: `handles` counts the Arrays that show it and the calls
that read it just now, and `exposed` is set by whatever else gets at its value.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from sys import getrefcount
from typing import Final

from xarr.base import python_build
from xarr.errors import DonationError
from xarr.ir.device import Device
from xarr.ir.graph import Donated, Node
from xarr.ir.types import TensorType
from xarr.runtime.handles import Handle, compute

#: Held while it is decided which of two calls an Array is given to.
_lock: Final = threading.RLock()


def give_away(arrays: Iterable[tuple[Handle, Node]], taker: str) -> None:
    """Give all of these Arrays away to the function `taker`, or none of them; an Array may be there twice.

    Each stands with the node that it showed when the caller read its value.
    Raises DonationError if a call in another thread was given one of them since then.
    """
    pairs = list(arrays)
    with _lock:
        for array, node in pairs:
            if array._node is not node and isinstance(array._node.op, Donated):
                compute(array)  # which says to whom it was given
        for array, node in pairs:
            # Another thread may have written to it, so that it shows another value: that one was not read.
            if array._node is node:
                array._give_away(taker)


def note_loss(error: BaseException) -> None:
    """Let the error of a call that had begun to run say that its donated Arrays are gone."""
    if not isinstance(error, DonationError):  # another call was given them
        error.add_note("the Arrays that were donated to this call are gone, although it failed")


def claim(node: Node, device: Device, taker: str) -> None:
    """Let programs on `device` write to the buffer of a node whose Array was given away to the function `taker`.

    Not if another Array shows the node, another call reads it, or its memory is exposed.  The caller has counted
    itself among the readers, and has read the value: another caller who comes to the node after this finds it donated.

    Counts are right only while one thread runs at a time, so that without a global lock no memory is written over;
    `python -m xarr doctor` says so.
    """
    own = node.device
    if own is None or own.committed is not device or python_build.is_free_threaded():
        return
    donated = Donated(node.type, taker)
    # From here to the last line nothing is called, so that no other thread comes between.
    if node.exposed or node.handles != 1 or node.value is None:
        return
    buffer, node.value, node.op = node.value, None, donated
    # Of a small value an op in another thread, or the view of a part, may have the memory without a word to the node.
    is_plain = isinstance(node.type, TensorType) and node.type.is_plain
    if not is_plain or getrefcount(buffer) <= _LEAST_REFERENCES:
        device.backend.claim(buffer)


def _count_least() -> int:
    """Count as `claim` does for a value that nothing but its caller and its variable refers to."""
    kept = [object()]
    buffer = kept[0]
    return getrefcount(buffer)


_LEAST_REFERENCES: Final = _count_least()
