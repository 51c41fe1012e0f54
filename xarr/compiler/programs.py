"""Compiled programs, kept for the next graph of the same structure."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from typing import Any, Final

from xarr.backend import AbstractBackend, Program
from xarr.base.frozen_dataclasses import record
from xarr.base.progress import ProgressCallback
from xarr.compiler.passes.checks import Checks
from xarr.compiler.plan.ownership import exposed_parameters, exposed_results
from xarr.compiler.plan.program_plan import Plan
from xarr.ir.graph import Graph

#: How many programs are kept, and how much memory they may take together.
_PROGRAMS_KEPT: Final = 4096
_BYTES_KEPT: Final = 128 * 2**20


@record
class CompiledGraph:
    """A program, the graph that a backend compiled it from, and the checks in it that became flags."""

    program: Program
    graph: Graph
    backend: AbstractBackend
    checks: Checks | None = None

    def with_progress(self, progress: ProgressCallback) -> CompiledGraph:
        """A copy whose program tells `progress` how far it is."""
        program = self.backend.with_progress(self.program, progress)
        return CompiledGraph(program, self.graph, self.backend, self.checks)

    @cached_property
    def plan(self) -> Plan | None:
        """The plan that the program follows; None for a backend that follows none."""
        return self.backend.plan_of(self.program)

    @cached_property
    def exposed_parameters(self) -> tuple[bool, ...]:
        """For each parameter whether its memory may be that of a result too once the program has run."""
        return exposed_parameters(self.graph, self.plan)

    @cached_property
    def exposed_results(self) -> tuple[bool, ...]:
        """For each result whether its memory may be that of a parameter or of another result too."""
        return exposed_results(self.graph, self.plan)


class Programs:
    """Compiled programs by the structure that they compute; those not used for longest go first."""

    def __init__(self, count: int = _PROGRAMS_KEPT, nbytes: int = _BYTES_KEPT) -> None:
        self.count = count
        self.nbytes = nbytes
        self.nbytes_kept = 0
        #: Each with the bytes that it takes.
        self._programs: OrderedDict[tuple[Any, ...], tuple[CompiledGraph, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._programs)

    def get(self, key: tuple[Any, ...]) -> CompiledGraph | None:
        entry = self._programs.get(key)
        if entry is None:
            return None
        # While nothing has to go soon, the order does not matter, and keeping it costs a hash.
        if 2 * len(self._programs) > self.count or 2 * self.nbytes_kept > self.nbytes:
            self._programs.move_to_end(key)
        return entry[0]

    def add(self, key: tuple[Any, ...], compiled: CompiledGraph, nbytes: int) -> None:
        """Keep a program that takes about so many bytes, as its backend counts them."""
        entry = compiled, nbytes
        kept = self._programs.setdefault(key, entry)
        if kept is not entry:
            self._programs[key] = entry
            self.nbytes_kept -= kept[1]
        self.nbytes_kept += nbytes
        while len(self._programs) > 1 and (
            len(self._programs) > self.count or self.nbytes_kept > self.nbytes
        ):
            _, (_, freed) = self._programs.popitem(last=False)
            self.nbytes_kept -= freed
