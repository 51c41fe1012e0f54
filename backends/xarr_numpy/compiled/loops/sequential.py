"""Scalar computations as machine code that runs one after the other: updates of a scatter, a merge sort.

What a vectorised program cannot do without rounds: each step may depend on the one before.  The order of steps
is that of the definition, so the results are, too, for computations that are no monoid and no order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
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
        self._code = llvm_jit.compile_module(text, [name])
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
        return _SequentialFunction(
            "\n".join([*sorted(self.declarations), *self.functions.values(), body]) + "\n", name
        )

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

    def scatter(self) -> str:
        count = len(self.results)
        kinds = [_memory_type(dtype) for dtype in self.dtypes]
        names = [f"r{k}" for k in range(count)] + [f"u{k}" for k in range(count)]
        lines, results = self._compute([f"%{name}" for name in names])
        loads, stores = [], []
        for k, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            index = "%old" if k < count else "%new"
            loads += _load(name, kind, f"%{name}.buffer", index)
        for k in range(count):
            stores.append(f"store {kinds[k]} {results[k]}, ptr %r{k}.address")
        return _SCATTER.format(
            buffers=_indent(_buffers(["size", "targets", *names])),
            body=_indent([*loads, *lines, *stores]),
        )

    def sort(self) -> str:
        count = len(self.dtypes) // 2
        kinds = [_memory_type(dtype) for dtype in self.dtypes[::2]]
        loads, moves, saves, rests = [], [], [], []
        # The computation is asked whether the right element goes before the left one.
        registers = [register for k in range(count) for register in (f"%right{k}", f"%left{k}")]
        lines, (before,) = self._compute(registers)
        for k, kind in enumerate(kinds):
            loads += _load(f"left{k}", kind, f"%scratch{k}.buffer", "%i")
            loads += _load(f"right{k}", kind, f"%array{k}.buffer", "%j")
            moves += [
                f"%moved{k} = select i1 %passes, {kind} %right{k}, {kind} %left{k}",
                f"%to{k} = getelementptr inbounds {kind}, ptr %array{k}.buffer, i64 %o",
                f"store {kind} %moved{k}, ptr %to{k}",
            ]
            bytes_each = int(kind[1:]) // 8
            saves += _copy(
                f"save{k}",
                kind,
                f"%scratch{k}.buffer",
                "%lo",
                f"%array{k}.buffer",
                "%lo",
                "%half",
                bytes_each,
            )
            rests += _copy(
                f"rest{k}", kind, f"%array{k}.buffer", "%o", f"%scratch{k}.buffer", "%i", "%left", bytes_each
            )
        self.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        names = [f"array{k}" for k in range(count)] + [f"scratch{k}" for k in range(count)]
        buffers = _indent(_buffers(["size", *names]))
        passes = f"%passes = trunc i8 {before} to i1"
        return _SORT.format(
            buffers=buffers,
            save=_indent(saves),
            step=_indent([*loads, *lines, passes, *moves]),
            rest=_indent(rests),
        )


def _indent(lines: Sequence[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def _buffers(names: Sequence[str]) -> list[str]:
    lines = []
    for k, name in enumerate(names):
        lines.append(f"%{name}.slot = getelementptr inbounds ptr, ptr %buffers, i64 {k}")
        lines.append(f"%{name}.buffer = load ptr, ptr %{name}.slot")
    return lines


def _load(name: str, kind: str, buffer: str, index: str) -> list[str]:
    return [
        f"%{name}.address = getelementptr inbounds {kind}, ptr {buffer}, i64 {index}",
        f"%{name} = load {kind}, ptr %{name}.address",
    ]


def _copy(
    name: str, kind: str, target: str, to: str, source: str, at: str, count: str, bytes_each: int
) -> list[str]:
    return [
        f"%{name}.to = getelementptr inbounds {kind}, ptr {target}, i64 {to}",
        f"%{name}.from = getelementptr inbounds {kind}, ptr {source}, i64 {at}",
        f"%{name}.bytes = mul i64 {count}, {bytes_each}",
        f"call void @llvm.memcpy.p0.p0.i64(ptr %{name}.to, ptr %{name}.from, i64 %{name}.bytes, i1 false)",
    ]


_SCATTER: Final = """\
define void @scatter(ptr %buffers, i64 %begin, i64 %end) nounwind {{
entry:
{buffers}
  %size = load i64, ptr %size.buffer
  br label %updates
updates:
  %u = phi i64 [ %begin, %entry ], [ %u.next, %updated ]
  %more = icmp slt i64 %u, %end
  br i1 %more, label %update, label %done
update:
  %target.address = getelementptr inbounds i64, ptr %targets.buffer, i64 %u
  %target = load i64, ptr %target.address
  %first = mul i64 %target, %size
  %source = mul i64 %u, %size
  br label %elements
elements:
  %k = phi i64 [ 0, %update ], [ %k.next, %element ]
  %left = icmp slt i64 %k, %size
  br i1 %left, label %element, label %updated
element:
  %old = add i64 %first, %k
  %new = add i64 %source, %k
{body}
  %k.next = add i64 %k, 1
  br label %elements
updated:
  %u.next = add i64 %u, 1
  br label %updates
done:
  ret void
}}"""

_SORT: Final = """\
define internal void @merge(ptr %buffers, i64 %lo, i64 %hi) nounwind {{
entry:
  %n = sub i64 %hi, %lo
  %short = icmp slt i64 %n, 2
  br i1 %short, label %done, label %split
split:
  %half = lshr i64 %n, 1
  %mid = add i64 %lo, %half
  call void @merge(ptr %buffers, i64 %lo, i64 %mid)
  call void @merge(ptr %buffers, i64 %mid, i64 %hi)
{buffers}
{save}
  br label %merging
merging:
  %i = phi i64 [ %lo, %split ], [ %i.next, %step ]
  %j = phi i64 [ %mid, %split ], [ %j.next, %step ]
  %passed = sub i64 %j, %mid
  %o = add i64 %i, %passed
  %has.left = icmp slt i64 %i, %mid
  %has.right = icmp slt i64 %j, %hi
  %both = and i1 %has.left, %has.right
  br i1 %both, label %step, label %rest
step:
{step}
  %right.one = zext i1 %passes to i64
  %left.one = sub i64 1, %right.one
  %i.next = add i64 %i, %left.one
  %j.next = add i64 %j, %right.one
  br label %merging
rest:
  %left = sub i64 %mid, %i
{rest}
  br label %done
done:
  ret void
}}
define void @sort(ptr %buffers, i64 %begin, i64 %end) nounwind {{
entry:
  %size.slot = getelementptr inbounds ptr, ptr %buffers, i64 0
  %size.buffer = load ptr, ptr %size.slot
  %size = load i64, ptr %size.buffer
  br label %lines
lines:
  %line = phi i64 [ %begin, %entry ], [ %line.next, %line.body ]
  %more = icmp slt i64 %line, %end
  br i1 %more, label %line.body, label %done
line.body:
  %lo = mul i64 %line, %size
  %hi = add i64 %lo, %size
  call void @merge(ptr %buffers, i64 %lo, i64 %hi)
  %line.next = add i64 %line, 1
  br label %lines
done:
  ret void
}}"""
