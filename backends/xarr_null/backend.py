"""Verifies a graph, prints what would run, and refuses to run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from xarr.backend import AbstractBackend, Program
from xarr.errors import BackendError
from xarr.ir.graph import Graph
from xarr.ir.op import Op


@dataclass(frozen=True)
class NullProgram:
    """A graph that would run."""

    graph: Graph

    @property
    def text(self) -> str:
        """The graph as StableHLO."""
        return self.graph.to_text()

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __call__(self, *arguments: Any) -> NoReturn:
        raise BackendError(
            "backend 'null' compiles and never runs, so the value of this array does not exist; "
            'compute it on another backend, e.g. under xarr.use_backend("numpy")'
        )


class NullBackend(AbstractBackend):
    """Takes every op whole.  Buffers are the host arrays themselves."""

    name: ClassVar[str] = "null"

    def supports(self, op: type[Op]) -> bool:
        return True

    def compile(self, graph: Graph) -> Program:
        """The program that is never run.  GraphError for a graph that breaks an invariant."""
        return NullProgram(graph.verify())

    def from_host(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array

    def to_host(self, buffer: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return buffer
