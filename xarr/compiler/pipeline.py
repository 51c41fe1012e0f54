"""The named stages from a traced graph to a running program, each of which can be stopped at and printed.

traced -> simplified -> static -> decomposed -> program
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from xarr.backend import AbstractBackend, Program
from xarr.compiler.decompose import decompose
from xarr.compiler.dynamic_sizes import make_static
from xarr.compiler.simplify import simplify
from xarr.ir.graph import Graph

Pass = Callable[[Graph, AbstractBackend], Graph]

STAGES: Final[dict[str, Pass]] = {
    "traced": lambda graph, backend: graph,
    "simplified": lambda graph, backend: simplify(graph),
    "static": lambda graph, backend: make_static(graph),
    "decomposed": decompose,
}


def lower(graph: Graph, backend: AbstractBackend, stage: str) -> Graph | Program:
    """`graph` as it stands after `stage`; the last stage, "program", gives what runs."""
    for name, step in STAGES.items():
        graph = step(graph, backend)
        if name == stage:
            return graph
    if stage != "program":
        raise ValueError(f"wanted one of the stages {', '.join([*STAGES, 'program'])}, got {stage!r}")
    return backend.compile(graph)


def compile_graph(graph: Graph, backend: AbstractBackend) -> Program:
    """The program that `backend` runs for `graph`."""
    program: Any = lower(graph, backend, "program")
    return program  # type: ignore[no-any-return]
