"""Bytes of values, as text to read, and in the error for a program that runs out of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xarr.errors import TooLargeError
from xarr.ir.types import Type, element_types

if TYPE_CHECKING:
    from xarr.ir.graph import Node


def shown_bytes(count: int) -> str:
    """`12 B`, `1.2 kB`, `1.2 MB`, `1.2 GB`."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def nbytes(type: Type) -> int:
    """Bytes of the arrays of a type; sizes that are not known count with their bounds."""
    return sum(each.nbytes for each in element_types(type))


def out_of_memory(error: MemoryError, node: Node | None) -> TooLargeError:
    """The error for a program that ran out of memory: it names the array of `node` and the line that built it.

    A backend that says who holds the memory raises a TooLargeError, whose text is kept.
    """
    if node is None:
        return TooLargeError(f"out of memory: {error}")
    held = f" ({error})" if isinstance(error, TooLargeError) else ""
    return TooLargeError(
        f"{node.op.called}: out of memory for the result {node.type.short()} of {shown_bytes(nbytes(node.type))} "
        f"and its temporaries{held}; compute it in parts, or index or reduce it before it is evaluated, so that only "
        f"the part that is needed is computed. Built at {node.source}"
    )
