"""A group of fused operations as machine code that runs on NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from xarr.compiler import elements, fuse as stage, object_cache
from xarr.compiler.loops import Kernel, Loop
from xarr.compiler.nests import build
from xarr.compiler.traffic import traffic
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr_numpy.compiled import assembler, emitter, workers
from xarr_numpy.compiled.functions import lower
from xarr_numpy.compiled.memory import pool

Array = np.ndarray[Any, Any]


def computes(node: Node) -> bool:
    """Whether compiled loops can hold a node."""
    return elements.computes(node, lower)


def fuse(graph: Graph, worth: Callable[[tuple[int, ...], int, int], bool]) -> Graph:
    """`graph` with groups; `worth` gets a group's domain and how many cheap and costly operations it has."""

    def is_worth_it(group: stage.Group) -> bool:
        members = [node for node in group.along if not isinstance(node.op, stage.MOVES)]
        cheap = sum(isinstance(node.op, (*stage.CHEAP, ops.Reduce)) for node in members)
        return worth(group.domain, cheap, len(members) - cheap)

    return stage.fuse(graph, computes, is_worth_it, describe)


def describe(fusion: ops.Fusion) -> str:
    """The memory traffic of a group's loops."""
    return str(traffic(build(fusion, lower)))


class CompiledKernel:
    """Call it with the group's operands, get its results as new arrays."""

    def __init__(self, fusion: ops.Fusion) -> None:
        self.fusion = fusion
        self.program: Kernel = build(fusion, lower)
        self.text, names = emitter.emit(self.program)
        self._code = assembler.load(_object_code(self.text), names)
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self._phases = [
            (prototype(self._code.addresses[name]), _extent(phase), _turn_cost(phase))
            for name, phase in zip(names, self.program.phases, strict=True)
        ]
        graph = fusion.computation
        self._shapes = [(node.shape, node.dtype) for node in graph.results]
        self._scratch = [(buffer.size, buffer.dtype) for buffer in self.program.scratch]
        count = len(self.program.inputs) + len(self._shapes) + len(self._scratch)
        self._pointers = ctypes.c_void_p * count

    def __call__(self, *operands: Array) -> Any:
        inputs = [np.ascontiguousarray(operand) for operand in operands]
        outputs = [pool.empty(shape, dtype) for shape, dtype in self._shapes]
        scratch = [np.empty(size, dtype) for size, dtype in self._scratch]
        pointers = self._pointers(*[array.ctypes.data for array in (*inputs, *outputs, *scratch)])
        address = ctypes.addressof(pointers)
        for function, extent, cost in self._phases:
            workers.run(function, address, extent, cost)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def __str__(self) -> str:
        """The loop program."""
        return str(self.program)


def _object_code(text: str) -> bytes:
    """Compiled, or as it was compiled once before on such a processor."""
    cache = object_cache.present()
    if cache is None:
        return assembler.assemble(text)
    key = object_cache.key_of(text, assembler.target(), f"level {assembler.CODEGEN_LEVEL}")
    found = cache.get(key)
    if found is None:
        found = assembler.assemble(text)
        cache.put(key, found)
    return found


def _extent(phase: Loop) -> int:
    assert isinstance(phase.extent, int), "the outermost loop has a fixed number of turns"
    return phase.extent


def _turn_cost(phase: Loop) -> int:
    """About how many elements one turn of the outermost loop computes."""
    return _elements(phase) // max(1, _extent(phase))


def _elements(loop: Loop) -> int:
    extent = loop.extent if isinstance(loop.extent, int) else 1024
    inner = [_elements(part) for part in loop.body if isinstance(part, Loop)]
    return extent * max(1, sum(inner))
