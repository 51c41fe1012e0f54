"""Arrays as results of Dask's tasks: how many bytes they take.

A worker asks for the size of what a task returned, in the thread of that task.  So an Array that a task leaves
unevaluated is evaluated there: not later in the thread that sends it, nor while it keeps the chunks alive that it was
made from.
"""

from __future__ import annotations

from typing import Any

from dask.sizeof import sizeof

from xarr.arrays.array import Array
from xarr.runtime.materialisation import device_of, evaluate, to_host


def _size_of(x: Any) -> int:
    """The bytes that the value of an Array occupies, which is computed if need be."""
    if device_of(x._node).backend.is_on_host:
        return int(sizeof(to_host(x)))  # of a broadcast the elements that there are
    evaluate(x)
    return int(x.nbytes)


sizeof.register(Array, _size_of)
