"""The warning for a line that reads or writes an array element by element.

Every element is an operation of its own here.  What counts them is two steps of a table for each, by the code and the
instruction that asks; the line is looked up once, when it is to be named.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final

import numpy as np

from xarr.errors import ElementLoopWarning
from xarr.ir.source import PACKAGE, Source, warn_at
from xarr.runtime.handles import Handle

#: Elements after which a line is warned of.
LIMIT: Final = 10_000
#: Instructions that are counted at once; beyond that counting begins anew, so that the table stays small.
_MOST: Final = 1024
#: From the instruction to the number of elements.  Its address stands for it: that of the code, whose object holds the
#: instructions too, and the offset, which is less than that object's size.
counts: Final[dict[int, int]] = {}
#: The codes, so that no other one gets the address.
_codes: Final[dict[int, CodeType]] = {}
#: Lines that were warned of.
_warned: Final[set[tuple[str, int]]] = set()


def count_element(array: Handle, index: Any, frame: FrameType) -> None:
    """Count what `frame` does if `index` means one element of `array`; ElementLoopWarning, once for a line."""
    rank = len(array._node.shape)
    if type(index) is tuple:
        if len(index) != rank or not rank:
            return
        for each in index:
            if type(each) is not int and not _is_number(each):
                return
    elif rank != 1 or (type(index) is not int and not _is_number(index)):
        return
    count(frame, 1)


def _is_number(index: Any) -> bool:
    return isinstance(index, np.integer) or (isinstance(index, Handle) and not index._node.shape)


def count(frame: FrameType, number: int) -> None:
    """Count `number` elements for the instruction that `frame` is at; ElementLoopWarning, once for a line."""
    key = id(frame.f_code) + frame.f_lasti
    before = counts.get(key)
    if before is None:
        before = _count_first(key, frame.f_code)
    counts[key] = before + number
    if before < LIMIT <= before + number:
        _warn(Source(frame.f_code, frame.f_lasti))


def _count_first(key: int, code: CodeType) -> int:
    """Begin to count for an instruction: so many elements it has read or written."""
    if len(counts) >= _MOST:
        counts.clear()
        _codes.clear()
    _codes[key] = code
    return 0


#: What else counts, and is to count from 0 again.
others_forget: Final[list[Callable[[], None]]] = []


def forget() -> None:
    """Count from 0 again, and warn again of lines that were warned of."""
    for forget_counts in others_forget:
        forget_counts()
    counts.clear()
    _codes.clear()
    _warned.clear()


def _warn(source: Source) -> None:
    line = source.filename, source.line
    if line in _warned or source.filename.startswith(PACKAGE):
        return
    if len(_warned) >= _MOST:
        _warned.clear()
    _warned.add(line)
    warn_at(
        source,
        f"this line has read or written {LIMIT:,} single elements of Arrays, and each is an operation of its own. "
        "Write it for the whole array, as in x + y, x[i] = v with an array i, xarr.where or xarr.cumsum; or keep the "
        "loop as xarr.lax.fori_loop in a function under xarr.jit; or loop over x.tolist() or numpy.asarray(x)\n"
        f"{source}",
        ElementLoopWarning,
    )
