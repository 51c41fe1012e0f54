"""Sorts in machine code: rows of integers that are ordered as the elements are, each with where it stands.

    void @sort_rows_loop(ptr keys, ptr operands, ptr results, ptr sizes, ptr work, i64 count, i64 arrays, i64 blocks, …)

Short runs go to their ranks, and are merged from both ends at once, without a branch.  Both keep the order of equal
ones, so that rows are sorted by the last key first, and by the first one last.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Final

from xarr.compiler.schedule import Schedule
from xarr.compiler.schedules.serial.sorts import is_ranked
from xarr.compiler.sort_keys import integer_keys
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.plans.function_code import FunctionCode
from xarr_numpy.processor import PROCESSOR

_TEXT: Final = """
RUN = 8

def sort_pairs_loop(pairs: ptr, others: ptr, n: i64) -> ptr:
    source = pairs + 0
    target = others + 0
    level = 0
    while (n >> level) > RUN:
        level += 1
    for run in range(1 << level):
        first = (run * n) >> level
        last = ((run + 1) * n) >> level
        for i in range(first, last):
            key = source.i64[2 * i]
            at = first
            for j in range(first, last):
                other = source.i64[2 * j]
                at += i64(other < key) | (i64(other == key) & i64(j < i))
            target.i64[2 * at] = key
            target.i64[2 * at + 1] = source.i64[2 * i + 1]
    while level > 0:
        before = source
        source = target
        target = before
        for run in range(1 << (level - 1)):
            first = (2 * run * n) >> level
            middle = ((2 * run + 1) * n) >> level
            last = ((2 * run + 2) * n) >> level
            merge_loop(source + 16 * first, source + 16 * middle, target + 16 * first, last - first)
        level -= 1
    return target

def merge_loop(first: ptr, middle: ptr, target: ptr, n: i64):
    left = first + 0
    right = middle + 0
    last_left = middle + -16
    last_right = first + (16 * n - 16)
    front = target + 0
    back = target + (16 * n - 16)
    for k in range(n >> 1):
        is_right = right.i64[0] < left.i64[0]
        chosen = right if is_right else left
        front.i64[0] = chosen.i64[0]
        front.i64[1] = chosen.i64[1]
        step = 16 * i64(is_right)
        right = right + step
        left = left + (16 - step)
        front = front + 16
        is_left = last_right.i64[0] < last_left.i64[0]
        chosen = last_left if is_left else last_right
        back.i64[0] = chosen.i64[0]
        back.i64[1] = chosen.i64[1]
        step = 16 * i64(is_left)
        last_left = last_left + -step
        last_right = last_right + (step - 16)
        back = back + -16
    if n & 1:
        chosen = left if left <= last_left else right
        front.i64[0] = chosen.i64[0]
        front.i64[1] = chosen.i64[1]

def put_in_order_loop(target: ptr, source: ptr, size: i64, pairs: ptr, first: i64, n: i64, step: i64):
    if size == 8:
        for i in range(n):
            target.i64[first + step * i] = source.i64[first + step * pairs.i64[2 * i + 1]]
    elif size == 4:
        for i in range(n):
            target.i32[first + step * i] = source.i32[first + step * pairs.i64[2 * i + 1]]
    else:
        for i in range(n):
            for byte in range(size):
                target.i8[size * (first + step * i) + byte] = (
                    source.i8[size * (first + step * pairs.i64[2 * i + 1]) + byte]
                )

def sort_rows_loop(
    keys: ptr, operands: ptr, results: ptr, sizes: ptr, work: ptr, count: i64, arrays: i64, blocks: i64, n: i64,
    step: i64
):
    for block in range(blocks):
        for row in range(step):
            first = block * n * step + row
            pairs = work + 0
            others = work + 16 * n
            for i in range(n):
                pairs.i64[2 * i + 1] = i
            for k in range(count):
                column = keys.ptr[k]
                for i in range(n):
                    pairs.i64[2 * i] = column.i64[first + step * pairs.i64[2 * i + 1]]
                ordered = sort_pairs_loop(pairs, others, n)
                if ordered != pairs:
                    others = pairs
                    pairs = ordered
            for k in range(arrays):
                put_in_order_loop(results.ptr[k], operands.ptr[k], sizes.i64[k], pairs, first, n, step)
"""


@cache
def _text() -> str:
    return compile_functions(_TEXT)


def keys_of(node: Node, schedule: Schedule) -> Graph | None:
    """The integers that a sort goes by, of its operands, the last column first; None if others sort it."""
    op, operands = node.op, tuple([parameter(operand.type) for operand in node.operands])
    if not isinstance(op, ops.Sort) or not operands[0].tensor_type.size or is_ranked(node, schedule.target):
        return None
    keys = integer_keys(Node(op, operands))
    # One array alone NumPy sorts in lanes.
    most = PROCESSOR.max_native_nanoseconds if len(operands) > 1 else PROCESSOR.max_native_call_nanoseconds
    if keys is None or _sort_time(node, len(keys)) > most:
        return None
    return Graph(operands, keys[::-1])


def _sort_time(node: Node, columns: int) -> float:
    """Nanoseconds that sorting by so many columns takes, about."""
    return columns * node.operands[0].tensor_type.size * PROCESSOR.sorted_element_time


def write_sort(
    code: FunctionCode, node: Node, keys: Sequence[str], operands: Sequence[str], results: Sequence[str]
) -> None:
    """Sort the operands of a node by such keys."""
    op, shape = node.op, node.operands[0].shape
    assert isinstance(op, ops.Sort)
    code.helpers["sorts"] = _text()
    size, inner = shape[op.dimension], prod(shape[op.dimension + 1 :])
    sizes = code.integers([operand.dtype.itemsize for operand in node.operands])
    pointers = [*map(code.table, (keys, operands, results)), sizes, code.allocate(32 * size)]
    code.cost += _sort_time(node, len(keys))
    code.call(
        "sort_rows_loop", pointers, (len(keys), len(operands), prod(shape[: op.dimension]), size, inner)
    )
