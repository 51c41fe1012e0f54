"""A function as it was recorded for one signature: its graph, its program, and a call of that."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from xarr import tree
from xarr.base.frozen_dataclasses import record
from xarr.base.host_arrays import scalar
from xarr.compiler import programs
from xarr.compiler.pipeline import make_program
from xarr.ir.device import Device
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType
from xarr.runtime import handles, materialisation
from xarr.runtime.check_flags import flags_of, unread
from xarr.runtime.evaluation import buffer_of, execute, results_of
from xarr.runtime.handles import Handle
from xarr.transforms.donation import claim, give_away, note_loss
from xarr.transforms.signature import REPLICA, Signature
from xarr.transforms.weak_numbers import Definitions, compute, define
from xarr.tree import Structure

#: Programs that replicas share, by what they were recorded for, the one used last at the end.
_shared: Final[dict[Hashable, programs.CompiledGraph]] = {}
_SHARED_KEPT: Final = 256
#: Held while one is made, never while one runs.
_shared_lock: Final = threading.Lock()


@dataclass(frozen=True)
class Converted:
    """A Python number as a parameter: an expression over the leaves x0, x1 …, its kind, and an element type."""

    text: str
    kind: type[Any]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Donation:
    """Which leaves of the arguments are given away with a call, and to whom."""

    leaves: tuple[int, ...]
    taker: str


@record
class CompiledTrace(programs.CompiledGraph):
    """A program, and the buffers of outer arrays, its last arguments.

    `outer` are the Arrays that these belong to, so that their data counts as being in use.
    """

    hidden: tuple[Any, ...] = ()
    outer: tuple[Handle, ...] = ()


@dataclass(eq=False)
class Traced:
    """A function as it was recorded for one signature.

    The parameters of the graph are the arrays among the leaves of the arguments, then `numbers`, then
    `captured`: arrays from outside with the values that they had when the function was traced.  Leaf i of the
    result, of structure `structure`, is result `result_numbers[i]`.  `device` is where the arguments and outer arrays
    live, None if none of them is committed.
    """

    signature: Signature
    graph: Graph
    numbers: tuple[Converted, ...]
    definitions: Definitions
    captured: tuple[Node, ...]
    structure: Structure
    result_numbers: tuple[int, ...]
    device: Device | None
    donation: Donation
    #: The text and the constants of replay functions, by what stood for the leaves.
    texts: dict[tuple[str, ...], tuple[str, dict[str, Any]]] = field(default_factory=dict)
    #: What stood for the leaves of calls after which there is none yet.
    called: set[tuple[str, ...]] = field(default_factory=set)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _compiled: CompiledTrace | None = None

    @property
    def owner(self) -> Device:
        """The device that runs it."""
        return self.device or self.signature.default_device

    @property
    def key(self) -> Signature:
        """The key that it is kept by, in which arguments that are not committed are on the device that runs it."""
        own = self.signature.keys[0]
        return own if own.device is self.owner else self.signature

    @property
    def arrays(self) -> list[int]:
        """Which leaves of the arguments are arrays."""
        return [index for index, type in enumerate(self.signature.types) if isinstance(type, TensorType)]

    @property
    def donated(self) -> tuple[int, ...]:
        """Which parameters of the graph the program may write over."""
        numbers = {leaf: number for number, leaf in enumerate(self.arrays)}
        return tuple([numbers[leaf] for leaf in self.donation.leaves if leaf in numbers])

    def compile(self) -> CompiledTrace:
        """The program; compiled when it is first wanted."""
        if self._compiled is None:
            outer = tuple([handles.wrap(node) for node in self.captured])
            # Not with the lock: what computes them may wait for other replicas, which may want it too.
            materialisation.evaluate(*outer)
            with self._lock:
                if self._compiled is None:
                    self._compiled = self._compile(outer)
        return self._compiled

    def _compile(self, outer: tuple[Handle, ...]) -> CompiledTrace:
        hidden = tuple([buffer_of(node, self.owner) for node in self.captured])
        made = self._make_program()
        return CompiledTrace(made.program, made.graph, made.backend, made.checks, hidden, outer)

    def _make_program(self) -> programs.CompiledGraph:
        """The program, which replicas that have recorded the same share."""
        if all(name != REPLICA for name, _ in self.signature.settings):
            return make_program(self.graph, self.owner.backend, hot=True, donated=self.donated)
        settings = tuple([each for each in self.signature.settings if each[0] != REPLICA])
        # A program tells the lines of its collectives to other replicas, so other lines have another one.
        lines = [node._location for graph in self.graph.walk() for node in graph.ordered]
        key = self.graph, tuple(lines), self.owner, self.donated, settings
        with _shared_lock:
            made = _shared.pop(key, None) or make_program(
                self.graph, self.owner.backend, hot=True, donated=self.donated
            )
            _shared[key] = made
            while len(_shared) > _SHARED_KEPT:
                del _shared[next(iter(_shared))]
        return made

    def run(self, leaves: Sequence[Any]) -> Any:
        """The result for these leaves of the arguments."""
        compiled, owner = self.compile(), self.owner
        names = define(self.definitions, {f"x{index}": leaf for index, leaf in enumerate(leaves)})
        numbers = [
            owner.backend.from_number(scalar(compute(each.text, names), each.dtype)) for each in self.numbers
        ]
        read = {index: leaf._node for index, leaf in enumerate(leaves) if isinstance(leaf, Handle)}
        for node in read.values():
            node.handles += 1  # so that no call in another thread writes over what this one reads
        try:
            materialisation.evaluate(*[leaves[index] for index in read])
            flags = flags_of([*read.values(), *self.captured]) if unread else ()
            buffers = self._buffers(leaves, read)
            donated = read.keys() & self.donation.leaves
            if donated:
                give_away([(leaves[index], read[index]) for index in donated], self.donation.taker)
            for index in donated:
                claim(read[index], owner, self.donation.taker)
            try:
                values = execute(compiled, (*buffers, *numbers, *compiled.hidden))
            except BaseException as error:
                if donated:
                    note_loss(error)
                raise
        finally:
            for node in read.values():
                handles.release(node)
        nodes = results_of(compiled, self.graph.result_types, self.result_numbers, values, owner, flags)
        return tree.unflatten(self.structure, [handles.wrap(node) for node in nodes])

    def _buffers(self, leaves: Sequence[Any], read: Mapping[int, Node]) -> list[Any]:
        return [
            self._buffer(number, read[index]) if index in read else self._from_host(leaves[index])
            for number, index in enumerate(self.arrays)
        ]

    def _buffer(self, number: int, node: Node) -> Any:
        if node.value is None or node.device is None or node.device.committed is not self.owner:
            return buffer_of(node, self.owner)
        if self.exposes(number):
            node.exposed = True
        return node.value

    def _from_host(self, leaf: Any) -> Any:
        backend = self.owner.backend
        return backend.from_host(leaf) if leaf.shape else backend.from_number(leaf)

    def exposes(self, number: int) -> bool:
        """Whether results of the program may share the memory of this one among the arrays of the arguments."""
        return self.compile().exposed_parameters[number]

    def is_exposed(self, number: int) -> bool:
        """Whether others may see the memory of a result of the graph."""
        return self.compile().exposed_results[number] or number in self._repeated_results

    @cached_property
    def _repeated_results(self) -> frozenset[int]:
        """The results of the graph that stand for several leaves."""
        return frozenset([number for number, count in Counter(self.result_numbers).items() if count > 1])
