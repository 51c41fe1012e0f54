"""The backend object: a program is the graph itself, interpreted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from xarr.backend import NUMPY_LIMITS, AbstractBackend, Limits, Program, read_only
from xarr.base.progress import ProgressCallback, StepCounter
from xarr.errors import BackendError
from xarr.ir.graph import Graph
from xarr.ir.op import Op
from xarr_reference.interpreter import TABLE, run, step_count
from xarr_reference.values import Array, Value


@dataclass(frozen=True)
class ReferenceProgram:
    """A graph that is interpreted when called; `progress` is told after each node how far that is."""

    graph: Graph
    progress: ProgressCallback | None = None

    @property
    def text(self) -> str:
        """The graph as StableHLO: what is interpreted is the graph itself."""
        return self.graph.to_text()

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __call__(self, *arguments: Value) -> tuple[Value, ...]:
        counter = None if self.progress is None else StepCounter(self.progress, step_count(self.graph))
        with np.errstate(all="ignore"):
            return tuple(map(_freeze, run(self.graph, *arguments, counter=counter)))


def _freeze(value: Value) -> Value:
    """A result that nothing can write to."""
    return tuple(map(_freeze, value)) if isinstance(value, tuple) else read_only(np.asarray(value))


class ReferenceBackend(AbstractBackend):
    """Slow, and right by being its own definition.  Buffers are read-only NumPy arrays."""

    name: ClassVar[str] = "reference"
    limits: ClassVar[Limits] = NUMPY_LIMITS

    def supports(self, op: type[Op]) -> bool:
        return op in TABLE

    def compile(self, graph: Graph) -> Program:
        """The graph as a program.  BackendError for an op that has no rule."""
        for node in graph.nodes:
            if type(node.op) not in TABLE:
                raise BackendError(f"backend 'reference' has no {node.op.name}")
        return ReferenceProgram(graph)

    def with_progress(self, program: Program, progress: ProgressCallback) -> Program:
        assert isinstance(program, ReferenceProgram)
        return ReferenceProgram(program.graph, progress)

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        return read_only(array)

    def to_host(self, buffer: Array) -> np.ndarray[Any, Any]:
        return buffer
