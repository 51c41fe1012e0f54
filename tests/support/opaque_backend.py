"""A backend whose buffers are no NumPy arrays, as a GPU's are none: it shows who looks into memory unasked.

It computes by the NumPy backend, behind closed doors.  What goes in and out is counted, so that a test can say how
many copies a program makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from xarr.backend import AbstractBackend, Program, get
from xarr.ir.graph import Graph
from xarr.ir.op import Op
from xarr.progress import ProgressBar


class OpaqueMemoryError(TypeError):
    """Somebody took a buffer for an array."""


def _refuse(self: Buffer, *arguments: Any, **options: Any) -> NoReturn:
    raise OpaqueMemoryError("the memory of this buffer can be read by its backend alone: ask its to_host")


class Buffer:
    """Memory of the backend: no array, no sequence, nothing to compute with, and equal to itself alone."""

    __slots__ = ("__weakref__", "_contents")

    def __init__(self, contents: np.ndarray[Any, Any]) -> None:
        self._contents = contents

    # What NumPy or Python would read memory by, and what would make a number or a truth of it.
    __array__ = __array_interface__ = __array_struct__ = __buffer__ = __dlpack__ = property(_refuse)
    __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __bool__ = __int__ = __float__ = __complex__ = __index__ = _refuse
    # What an array has, and what has to be asked of the node's type instead.
    shape = dtype = size = ndim = nbytes = itemsize = strides = flags = base = property(_refuse)


@dataclass(frozen=True)
class Number:
    """An argument that goes along with the call of a program, as to a kernel: no memory is copied for it."""

    value: np.ndarray[Any, Any]


@dataclass
class Transfers:
    """How often values went to the backend, and from it to the host, and how many elements the host got."""

    from_host: int = 0
    to_host: int = 0
    elements_to_host: int = 0


@dataclass(frozen=True)
class OpaqueProgram:
    """A program of the NumPy backend between buffers."""

    program: Program

    @property
    def text(self) -> str:
        return self.program.text

    def __str__(self) -> str:
        return str(self.program)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        return tuple(map(_wrapped, self.program(*map(_contents, arguments))))


def _wrapped(value: Any) -> Any:
    """A value of any type as a buffer, or a tuple of them."""
    return tuple(map(_wrapped, value)) if isinstance(value, tuple) else Buffer(value)


def _contents(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_contents, value))
    if type(value) is Number:
        return value.value
    if type(value) is not Buffer:
        raise OpaqueMemoryError(f"wanted a buffer of the backend 'opaque', got {type(value).__name__}")
    return value._contents


class Backend(AbstractBackend):
    """`xarr.use_backend("opaque")`, in tests."""

    name: ClassVar[str] = "opaque"
    is_on_host: ClassVar[bool] = False

    def __init__(self) -> None:
        self._inner = get("numpy")
        self._transfers = Transfers()

    @contextmanager
    def transfers(self) -> Iterator[Transfers]:
        """The transfers that the block makes."""
        before, self._transfers = self._transfers, Transfers()
        try:
            yield self._transfers
        finally:
            self._transfers = before

    def supports(self, op: type[Op]) -> bool:
        return self._inner.supports(op)

    def fuse(self, graph: Graph, hot: bool = False) -> Graph:
        return self._inner.fuse(graph, hot)

    def compile(self, graph: Graph) -> Program:
        return OpaqueProgram(self._inner.compile(graph))

    def compile_watched(self, graph: Graph, bar: ProgressBar) -> Program:
        return OpaqueProgram(self._inner.compile_watched(graph, bar))

    def from_host(self, array: np.ndarray[Any, Any]) -> Buffer:
        self._transfers.from_host += 1
        contents = np.array(array)
        contents.flags.writeable = False
        return Buffer(contents)

    def from_number(self, number: np.ndarray[Any, Any]) -> Number:
        assert not number.shape
        return Number(np.array(number))

    def to_host(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        host = np.array(_contents(buffer))
        self._transfers.to_host += 1
        self._transfers.elements_to_host += host.size
        return host

    def devices(self) -> tuple[str, ...]:
        return ("opaque",)
