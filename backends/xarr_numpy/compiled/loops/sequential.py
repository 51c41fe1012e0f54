"""Scalar computations as machine code that runs one after the other: updates of a scatter, a merge sort.

What a vectorised program cannot do without rounds: each step may depend on the one before.  The order of steps
is that of the definition, so the results are, too, for computations that are no monoid and no order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from string import Template
from textwrap import indent
from typing import Any, Final

import numpy as np

from xarr.compiler.functions import register_dtype
from xarr.compiler.loop_ir import elements
from xarr.compiler.loop_ir.elements import compute_scalars
from xarr.compiler.loop_ir.scalars import BOOL, DType, Value, Values
from xarr.dtypes import COMPLEX
from xarr.ir.graph import Graph
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.instructions import Block, element_type
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.threads.phases import Phase
from xarr_numpy.processor import PROCESSOR

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]

#: Kernels that are kept.
_KEPT: Final = 256


def computes(graph: Graph) -> bool:
    """Whether a computation of scalars can be compiled."""
    held = all(elements.computes(node) and not node.op.graphs for node in graph.nodes)
    return held and not any(node.dtype in COMPLEX for node in (*graph.parameters, *graph.results))


# --- scatter -----------------------------------------------------------------------------------------


def scatter(graph: Graph, results: Arrays, targets: Array, updates: Arrays) -> None:
    """results[t] = computation(results[t], update) in place, for every update and its target t, in order.

    results and updates: contiguous, of shape (…, block) or of no blocks; targets: int64.
    """
    size = np.array(results[0][:1].size, np.int64)
    phase = _scatter_phase(graph)
    buffers = _pointers((size, targets, *results, *updates))
    phase(ctypes.addressof(buffers), 0, targets.size)


@lru_cache(_KEPT)
def _scatter_phase(graph: Graph) -> _SequentialFunction:
    return _Text(graph).phase("scatter", _Text.scatter)


# --- sort --------------------------------------------------------------------------------------------


def merge_sort(comparator: Graph, rows: Arrays) -> None:
    """Sort the last dimension of contiguous arrays together, in place.

    The left half and the right one, and then an element of the right passes one of the left only if it goes
    before it.  Halves are those of the definition, so relations that are no order give the same too.
    """
    count = rows[0].shape[-1]
    if count < 2 or not rows[0].size:
        return
    size = np.array(count, np.int64)
    scratch = [np.empty_like(row) for row in rows]
    buffers = _pointers((size, *rows, *scratch))
    cost = PROCESSOR.comparison_time * count * count.bit_length()
    code = _sort_phase(comparator)
    phase = Phase(code.address, rows[0].size // count, cost)
    phase.run(ctypes.addressof(buffers), held=(code, buffers, size, rows, scratch))


@lru_cache(_KEPT)
def _sort_phase(comparator: Graph) -> _SequentialFunction:
    return _Text(comparator).phase("sort", _Text.sort)


# --- machine code ------------------------------------------------------------------------------------


def _pointers(arrays: Sequence[Array]) -> Any:
    assert all(array.flags.c_contiguous for array in arrays)
    return (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


class _SequentialFunction:
    """A function of machine code, which lives as long as this object."""

    def __init__(self, text: str, name: str) -> None:
        self._code = llvm_jit.compile_module(text, [name], serial=("",))
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self.address = self._code.addresses[name]
        self._function = prototype(self.address)

    def __call__(self, buffers: int, begin: int, end: int) -> None:
        self._function(buffers, begin, end)


def _memory_type(dtype: DType) -> str:
    """The type that moves an element: an integer of its width."""
    return f"i{8 * dtype.itemsize}"


class _Text:
    """Writes the LLVM IR of functions that use one scalar computation."""

    def __init__(self, graph: Graph) -> None:
        values = Values()
        self.dtypes = [node.dtype for node in graph.parameters]
        self.arguments = [
            values.argument(f"a{k}", register_dtype(dtype)) for k, dtype in enumerate(self.dtypes)
        ]
        self.results = compute_scalars(graph, self.arguments, values)
        self.declarations: set[str] = set()
        self.functions: dict[str, str] = {}

    def phase(self, name: str, write: Callable[[_Text], str]) -> _SequentialFunction:
        body = write(self)
        parts = [*sorted(self.declarations), *self.functions.values(), body]
        return _SequentialFunction("\n".join(parts), name)

    def _compute(self, registers: Sequence[str]) -> tuple[list[str], list[str]]:
        """The lines that compute the results of elements as memory has them, and the registers of the same."""
        block = Block(1, prefix="c.")
        names = {
            argument: self._as_value(block, argument.dtype, register)
            for argument, register in zip(self.arguments, registers, strict=True)
        }
        block.emit(self.results, names)
        registers_of_results = [self._as_memory(block, value) for value in self.results]
        self.declarations |= block.declarations
        self.functions |= block.functions
        return block.lines, registers_of_results

    def _as_value(self, block: Block, dtype: DType, register: str) -> str:
        if dtype == BOOL:
            return block.line(f"icmp ne i8 {register}, 0")
        if dtype.kind == "f":
            return block.line(f"bitcast {_memory_type(dtype)} {register} to {element_type(dtype)}")
        return register

    def _as_memory(self, block: Block, value: Value) -> str:
        register = block.operand(value, 1)
        if value.dtype == BOOL:
            return block.line(f"zext i1 {register} to i8")
        if value.dtype.kind == "f":
            kind = _memory_type(value.dtype)
            return block.line(f"bitcast {element_type(value.dtype)} {register} to {kind}")
        return register

    def _function(self, stores: bool) -> str:
        """The computation as a function of addresses of elements: it stores results at the first, or returns one."""
        kinds = [_memory_type(dtype) for dtype in self.dtypes]
        loads = [f"%e{k} = load {kind}, ptr %a{k}" for k, kind in enumerate(kinds)]
        lines, results = self._compute([f"%e{k}" for k in range(len(kinds))])
        if stores:
            ends = [f"store {kinds[k]} {result}, ptr %a{k}" for k, result in enumerate(results)] + [
                "ret void"
            ]
        else:
            ends = [f"%is = trunc i8 {results[0]} to i1", "ret i1 %is"]
        body = "\n".join(f"  {line}" for line in [*loads, *lines, *ends])
        parameters = ", ".join([f"ptr %a{k}" for k in range(len(kinds))])
        kind = "void" if stores else "i1"
        return f"define internal {kind} @compute({parameters}) alwaysinline nounwind {{\nentry:\n{body}\n}}\n"

    def scatter(self) -> str:
        count = len(self.results)
        names = [f"r{k}" for k in range(count)] + [f"u{k}" for k in range(count)]
        at = [
            f"{name} + {dtype.itemsize} * {'old' if name[0] == 'r' else 'new'}"
            for name, dtype in zip(names, self.dtypes, strict=True)
        ]
        text = _SCATTER.substitute(buffers=_buffers(names, 2), addresses=", ".join(at))
        return self._function(stores=True) + compile_functions(text)

    def sort(self) -> str:
        kinds = [(dtype.itemsize, _memory_type(dtype)) for dtype in self.dtypes[::2]]
        at, moves, saves, rests = [], [], [], []
        for k, (size, kind) in enumerate(kinds):
            # The computation is asked whether the right element goes before the left one.
            at += [f"array{k} + {size} * j, scratch{k} + {size} * i"]
            moves += [f"array{k}.{kind}[o] = array{k}.{kind}[j] if passes else scratch{k}.{kind}[i]"]
            saves += [_COPY.format(f"scratch{k}", "low", f"array{k}", "low", "middle - low", size=size)]
            rests += [
                _COPY.format(f"array{k}", "i + j - middle", f"scratch{k}", "i", "middle - i", size=size)
            ]
        names = [f"array{k}" for k in range(len(kinds))] + [f"scratch{k}" for k in range(len(kinds))]
        text = _SORT.substitute(
            buffers=_buffers(names, 1),
            saves=indent("\n".join(saves), "    "),
            moves=indent("\n".join(moves), 8 * " "),
            rests=indent("\n".join(rests), "    "),
            addresses=", ".join(at),
        )
        return self._function(stores=False) + compile_functions(text)


def _buffers(names: Sequence[str], first: int) -> str:
    return "\n".join([f"    {name} = buffers.ptr[{number}]" for number, name in enumerate(names, first)])


_COPY: Final = "llvm_memcpy_p0_p0_i64({0} + {size} * ({1}), {2} + {size} * {3}, {size} * ({4}), False)"

_SCATTER: Final = Template("""
@exported
def scatter(buffers: ptr, begin: i64, end: i64):
    size = buffers.ptr[0].i64[0]
    targets = buffers.ptr[1]
$buffers
    for u in range(begin, end):
        for k in range(size):
            old = targets.i64[u] * size + k
            new = u * size + k
            call(void, compute, $addresses)
""")

_SORT: Final = Template("""
def llvm_memcpy_p0_p0_i64(target: ptr, source: ptr, nbytes: i64, is_volatile: i1): ...

def merge(buffers: ptr, low: i64, high: i64):
    if high - low < 2:
        return
    middle = low + (high - low) / 2
    merge(buffers, low, middle)
    merge(buffers, middle, high)
$buffers
$saves
    i = low
    j = middle
    while i < middle and j < high:
        o = i + j - middle
        passes = call(i1, compute, $addresses)
$moves
        i += 1 - i64(passes)
        j += i64(passes)
$rests

@exported
def sort(buffers: ptr, begin: i64, end: i64):
    size = buffers.ptr[0].i64[0]
    for row in range(begin, end):
        merge(buffers, row * size, (row + 1) * size)
""")
