"""Groups of fused operations on tiles that fit a processor's cache, by NumPy's own functions.

The engine without a compiler: the same groups as compiled loops (fewer kinds of operations), the same bits as
the program without fusion, reductions apart, where other partial sums are added.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from xarr.compiler import fuse as stage
from xarr.compiler.groups import work
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.ops.elementwise import Elementwise
from xarr.ir.types import TensorType
from xarr_numpy import workers
from xarr_numpy.memory import pool
from xarr_numpy.reductions import ufunc_of
from xarr_numpy.table import TABLE
from xarr_numpy.tile_kernels import joined, width
from xarr_numpy.tile_program import Step, Total, Writer
from xarr_numpy.tile_values import Array, Ints, Values, as_domain

#: A thread that runs NumPy hands Python's lock over and over: it is worth so many times more elements.
HAND_OVER: Final = 4
#: Bytes that a thread keeps for the buffers of the next kernel.
MOST_KEPT: Final = 2**25

_IRREGULAR: Final = (ops.Clamp, ops.Convert, ops.ReducePrecision, ops.Select)


def computes(node: Node) -> bool:
    """Whether tiles can hold a node."""
    op = node.op
    if not all(map(_is_held, (node, *node.operands))) or type(op) not in TABLE:
        return False
    if isinstance(op, ops.Reshape):
        sizes, before = ([n for n in each.shape if n != 1] for each in (node, node.operands[0]))
        same: bool = sizes == before
        return same
    if isinstance(op, ops.Constant):
        return node.tensor_type.size == 1
    if isinstance(op, ops.Reduce):
        return len(node.operands) == 2 and bool(op.dimensions) and ufunc_of(op.computation) is not None
    if isinstance(op, ops.BitcastConvert):
        return bool(op.dtype.itemsize == node.operands[0].dtype.itemsize)
    return isinstance(op, (Elementwise, ops.BroadcastInDim, ops.Iota, *_IRREGULAR))


def _is_held(node: Node) -> bool:
    kind = node.type
    held: bool = isinstance(kind, TensorType) and not kind.dynamic and 0 not in kind.shape
    return held


def fuse(graph: Graph, worth: Callable[[Ints, int, int], bool]) -> Graph:
    """`graph` with groups; `worth` gets a group's domain and how many cheap and costly operations it has."""
    return stage.fuse(graph, computes, lambda group: worth(group.domain, *work(group)), nests=False)


class _Memory(threading.local):
    """What a thread keeps its buffers in; None while it is in use."""

    block: Array | None = None


_memory = _Memory()


def _take(nbytes: int) -> Array:
    block, _memory.block = _memory.block, None
    return block if block is not None and block.nbytes >= nbytes else np.empty(nbytes, np.uint8)


def _give_back(block: Array) -> None:
    if block.nbytes <= MOST_KEPT:
        _memory.block = block


class TiledKernel:
    """Call it with the group's operands, get its results as new arrays."""

    #: There is no machine code.
    origin: Final = ""

    def __init__(self, fusion: ops.Fusion) -> None:
        self.fusion = fusion
        self.values = Values(fusion)
        self.grid = self.values.grid
        writer = Writer(self.values)
        self.steps = writer.steps
        self._functions = {
            name: writer.scope[name] for step in self.steps for name in (step.once, step.tile) if name
        }
        self._numbers = {name: each for name, each in writer.scope.items() if name.startswith("number")}
        self._text = writer.text
        graph = fusion.computation
        number = {node: k for k, node in enumerate(graph.parameters)}
        self._views = [(f"in{k}", number[v.node], v.along) for k, v in enumerate(self.values.inputs)]
        self._results = [
            (f"out{k}", node.shape, node.dtype, self.values.own_shape(k))
            for k, node in enumerate(graph.results)
        ]

    def call(self, *operands: Array) -> Any:
        rank = len(self.grid.domain)
        outputs = [pool.empty(shape, dtype) for _, shape, dtype, _ in self._results]
        arrays = dict(self._numbers)
        for name, number, along in self._views:
            arrays[name] = as_domain(np.asarray(operands[number]), along, rank)
        for (name, _, _, shape), output in zip(self._results, outputs, strict=True):
            arrays[name] = output.reshape(shape)
        with np.errstate(all="ignore"):
            for step in self.steps:
                self._run(step, arrays)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _run(self, step: Step, arrays: dict[str, Any]) -> None:
        if step.once is not None:
            found = self._functions[step.once](*[arrays[name] for name in step.once_arguments])
            arrays.update(zip(step.once_results, found, strict=True))
        for name, dtype in step.kept:
            arrays[name] = pool.empty(self.grid.domain, dtype)
        for number, total in enumerate(step.totals):
            arrays[f"part{number}"] = self._parts(total)
        if step.tile is not None:
            run = _Tiles(self, step, arrays)
            workers.run(run, 0, self.grid.total, prod(self.grid.chunks) // HAND_OVER)
        for number, total in enumerate(step.totals):
            op = total.value.node.op
            assert isinstance(op, ops.Reduce)
            ufunc = getattr(np, str(ufunc_of(op.computation)).removeprefix("np."))
            parts, dtype = arrays[f"part{number}"], total.value.dtype
            arrays[total.name] = joined(ufunc, parts, arrays[total.initial], dtype)

    def function(self, step: Step) -> Any:
        """What computes one tile of a step."""
        return self._functions[str(step.tile)]

    def _parts(self, total: Total) -> Array:
        """Room for the partial results of a reduction."""
        axes = total.value.axes
        shape = [size if axis in axes else 1 for axis, size in enumerate(self.grid.domain)]
        return np.empty((self.grid.parts, *shape), width(total.value.dtype))

    def __str__(self) -> str:
        """The tiles, and the functions that run on them."""
        lines = [str(self.grid)]
        for step in self.steps:
            for room in step.rooms:
                over = ", ".join(f"s{axis}" for axis in sorted(room.axes))
                lines.append(f"# {step.tile}: {room.name} = {room.dtype}[{over}] in memory {room.slot}")
        for step in self.steps:
            for number, total in enumerate(step.totals):
                lines.append(f"# {total.name} = part{number} of all tiles, from {total.initial}")
        return "\n".join(lines + self._text)


class _Tiles:
    """The tiles of one step of one call."""

    def __init__(self, kernel: TiledKernel, step: Step, arrays: dict[str, Any]) -> None:
        self.grid = kernel.grid
        self.rooms, self.sizes = step.rooms, [-(-size // 64) * 64 for size in step.sizes]
        self.function = kernel.function(step)
        self.arguments = [arrays[name] for name in step.tile_arguments]

    def __call__(self, _: int, start: int, stop: int) -> None:
        block = _take(sum(self.sizes))
        try:
            with np.errstate(all="ignore"):
                self._run(block, start, stop)
        finally:
            _give_back(block)

    def _run(self, block: Array, start: int, stop: int) -> None:
        buffers: dict[Ints, list[Array]] = {}
        for number in range(start, stop):
            part, ranges = self.grid.tile(number)
            lengths = tuple([each.stop - each.start for each in ranges])
            rooms = buffers.get(lengths)
            if rooms is None:
                rooms = buffers[lengths] = self._buffers(block, lengths)
            self.function(part, *ranges, *self.arguments, *rooms)

    def _buffers(self, block: Array, lengths: Ints) -> list[Array]:
        starts = [sum(self.sizes[:slot]) for slot in range(len(self.sizes))]
        found = []
        for room in self.rooms:
            shape = [length if axis in room.axes else 1 for axis, length in enumerate(lengths)]
            nbytes = prod(shape) * room.dtype.itemsize
            start = starts[room.slot]
            array = block[start : start + nbytes].view(room.dtype)
            found.append(_laid_out(array, shape, self.grid.first))
        return found


def _laid_out(array: Array, shape: list[int], first: int | None) -> Array:
    """An array of this shape whose dimension `first` lies outermost in memory."""
    if first is None:
        return array.reshape(shape)
    others = [*shape[:first], *shape[first + 1 :]]
    return np.moveaxis(array.reshape([shape[first], *others]), 0, first)
