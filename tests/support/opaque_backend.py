"""A backend of two devices whose buffers are no NumPy arrays, as a GPU's are none: it shows who looks there unasked.

It computes by the NumPy backend, behind closed doors.  What goes in and out is counted, so that a test can say how
many copies a program makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from xarr.backend import NUMPY_LIMITS, AbstractBackend, Limits, Program, get
from xarr.base.progress import ProgressCallback
from xarr.compiler.plan.program_plan import Plan
from xarr.compiler.schedule import Schedule
from xarr.ir.graph import Graph
from xarr.ir.op import Op


class OpaqueMemoryError(TypeError):
    """A buffer was taken for an array."""


def _refuse(self: Buffer, *arguments: Any, **options: Any) -> NoReturn:
    raise OpaqueMemoryError("the memory of this buffer can be read by its backend alone: ask its to_host")


class Buffer:
    """Memory of the backend: no array, no sequence, nothing to compute with, and equal to itself alone."""

    __slots__ = ("__weakref__", "_contents", "_ordinal")

    def __init__(self, contents: np.ndarray[Any, Any], ordinal: int) -> None:
        self._contents, self._ordinal = contents, ordinal

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
    """Counts of how often values went to the backend, from it to the host, and from one of its devices to the other.

    Of those for the host the elements are counted too.
    """

    from_host: int = 0
    to_host: int = 0
    between: int = 0
    elements_to_host: int = 0


@dataclass(frozen=True)
class OpaqueProgram:
    """A program of the NumPy backend between buffers of one device."""

    program: Program
    ordinal: int

    @property
    def text(self) -> str:
        return self.program.text

    def __str__(self) -> str:
        return str(self.program)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        results = self.program(*[_contents(argument, self.ordinal) for argument in arguments])
        return tuple([_wrap(value, self.ordinal) for value in results])


def _wrap(value: Any, ordinal: int) -> Any:
    """A value of any type as a buffer, or a tuple of them."""
    if isinstance(value, tuple):
        return tuple([_wrap(part, ordinal) for part in value])
    return Buffer(value, ordinal)


def _contents(value: Any, ordinal: int) -> Any:
    """The contents of a value of any type on the device of this number."""
    if isinstance(value, tuple):
        return tuple([_contents(part, ordinal) for part in value])
    if type(value) is Number:
        return value.value
    if type(value) is not Buffer:
        raise OpaqueMemoryError(f"wanted a buffer of the backend 'opaque', got {type(value).__name__}")
    if value._ordinal != ordinal:
        raise OpaqueMemoryError(f"wanted a buffer on device {ordinal}, got one on device {value._ordinal}")
    return value._contents


class Backend(AbstractBackend):
    """`xarr.use_backend("opaque")`, in tests."""

    name: ClassVar[str] = "opaque"
    limits: ClassVar[Limits] = NUMPY_LIMITS
    is_on_host: ClassVar[bool] = False
    # Those of the backend that it computes by.
    options: ClassVar[tuple[str, ...]] = ("fusion",)

    def __init__(self) -> None:
        self._inner = get("numpy")
        self._devices = [self]
        self._transfers = [Transfers()]
        self._devices.append(_on_second(self))

    def at(self, ordinal: int) -> AbstractBackend:
        return self._devices[ordinal] if 0 <= ordinal < 2 else super().at(ordinal)

    @property
    def counted(self) -> Transfers:
        """The counts now, on both devices."""
        return self._transfers[-1]

    @contextmanager
    def transfers(self) -> Iterator[Transfers]:
        """The transfers that the block makes."""
        self._transfers.append(Transfers())
        try:
            yield self.counted
        finally:
            self._transfers.pop()

    def supports(self, op: type[Op]) -> bool:
        return self._inner.supports(op)

    def fuse(self, graph: Graph, hot: bool = False) -> Graph:
        return self._inner.fuse(graph, hot)

    def schedule(self) -> Schedule | None:
        return self._inner.schedule()

    def plan_of(self, program: Program) -> Plan | None:
        return self._inner.plan_of(program.program) if isinstance(program, OpaqueProgram) else None

    def compile(self, graph: Graph) -> Program:
        return OpaqueProgram(self._inner.compile(graph), self.ordinal)

    def with_progress(self, program: Program, progress: ProgressCallback) -> Program:
        assert isinstance(program, OpaqueProgram)
        return OpaqueProgram(self._inner.with_progress(program.program, progress), program.ordinal)

    def from_host(self, array: np.ndarray[Any, Any]) -> Buffer:
        self.counted.from_host += 1
        contents = np.array(array)
        contents.flags.writeable = False
        return Buffer(contents, self.ordinal)

    def from_number(self, number: np.ndarray[Any, Any]) -> Number:
        assert not number.shape
        return Number(np.array(number))

    def to_host(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        host = np.array(_contents(buffer, self.ordinal))
        self.counted.to_host += 1
        self.counted.elements_to_host += host.size
        return host

    def from_device(self, buffer: Any, origin: AbstractBackend) -> Any:
        if not isinstance(origin, Backend):
            return super().from_device(buffer, origin)
        self.counted.between += 1
        return Buffer(_contents(buffer, origin.ordinal), self.ordinal)

    def devices(self) -> tuple[str, ...]:
        return ("opaque", "opaque:1")


def _on_second(first: Backend) -> Backend:
    """The backend on its second device."""
    second = copy(first)
    second.ordinal = 1
    return second
