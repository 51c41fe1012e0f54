"""Typical groups, their loop programs and the LLVM IR of these.

python -m tests.support.kernel_texts            # prints all
python -m tests.support.kernel_texts --update   # writes them to tests/snapshots/kernels
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.support.graphs import graph, node, scalars, tensor
from xarr.compiler.fusion.form_groups import form_groups
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr_numpy.compiled.codegen import emitter
from xarr_numpy.compiled.schedule import SCHEDULE

SNAPSHOTS: Final = Path(__file__).parents[1] / "snapshots" / "kernels"
F16, F32, F64, I32, PRED = (np.dtype(n) for n in ("float16", "float32", "float64", "int32", "bool"))


def _binary(op: type[Any], x: Node, y: Node) -> Node:
    return node(op(), x, y)


def _constant(value: float, like: Node) -> Node:
    return _repeat(node(ops.Constant.of(np.array(value, like.dtype))), like, ())


def _repeat(x: Node, like: Node, dims: tuple[int, ...]) -> Node:
    return node(ops.BroadcastInDim(like.shape, dims), x)


def _reduce(op: type[Any], x: Node, first: Any, *dims: int) -> Node:
    combine = scalars(lambda a, b: node(op(), a, b), x.dtype, x.dtype)
    return node(ops.Reduce(dims, combine), x, node(ops.Constant.of(np.array(first, x.dtype))))


def _sum(x: Node, *dims: int) -> Node:
    return _reduce(ops.Add, x, 0, *dims)


def _row_and_matrix(x: Node, v: Node) -> Node:
    return _binary(ops.Add, x, _binary(ops.Multiply, _repeat(v, x, (1,)), _constant(2, x)))


def _chain(x: Node) -> Node:
    gauss = node(ops.Exponential(), node(ops.Negate(), _binary(ops.Multiply, x, x)))
    return node(ops.Select(), node(ops.Compare("GT"), x, _constant(0, x)), gauss, x)


def _softmax(x: Node) -> Node:
    centred = _binary(ops.Subtract, x, _repeat(_reduce(ops.Maximum, x, -np.inf, 1), x, (0,)))
    e = node(ops.Exponential(), centred)
    return _binary(ops.Divide, e, _repeat(_sum(e, 1), x, (0,)))


def _part(x: Node, row: int, column: int) -> Node:
    rows, columns = (size - 2 for size in x.shape)
    return node(ops.Slice((row, column), (row + rows, column + columns), (1, 1)), x)


def _stencil(x: Node) -> Node:
    upper, lower = _part(x, 0, 1), _part(x, 2, 1)
    left, right = _part(x, 1, 0), _part(x, 1, 2)
    return _binary(ops.Add, _binary(ops.Add, upper, lower), _binary(ops.Add, left, right))


def _pad(x: Node) -> Node:
    filler = node(ops.Constant.of(np.array(1.5, x.dtype)))
    wide = node(ops.Pad((2, -1), (3, 4), (0, 0)), node(ops.Negate(), x), filler)
    return _binary(ops.Add, wide, node(ops.Reverse((1,)), wide))


def _largest_index(x: Node) -> Node:
    positions = node(ops.Iota(TensorType(x.shape, I32), 1))
    positive = node(
        ops.Select(), node(ops.Compare("GT"), x, _constant(0, x)), positions, _constant(-1, positions)
    )
    return _reduce(ops.Maximum, positive, -1, 1)


def _half(x: Node, y: Node) -> Node:
    return node(ops.Convert(F16), _binary(ops.Divide, node(ops.Convert(F32), x), y))


def _rows_at_indices(x: Node, indices: Node) -> Node:
    op = ops.Gather((1,), (0,), (), (), (0,), 1, (1, x.shape[1]))
    rows = node(op, x, indices)
    return _binary(ops.Multiply, rows, _constant(2, rows))


def _scattered_rows(x: Node, indices: Node, updates: Node) -> Node:
    add = scalars(lambda a, b: node(ops.Add(), a, b), x.dtype, x.dtype)
    return node(ops.Scatter((1,), (0,), (), (), (0,), 1, add), x, indices, updates)


def _running_sums(x: Node) -> Node:
    add = scalars(lambda a, b: node(ops.Add(), a, b), x.dtype, x.dtype)
    rank, size = len(x.shape), x.shape[-1]
    ones, zeros = (1,) * rank, ((0, 0),) * (rank - 1)
    op = ops.ReduceWindow((*ones[1:], size), ones, ones, ones, (*zeros, (size - 1, 0)), add)
    return _binary(ops.Divide, node(op, x, node(ops.Constant.of(np.array(0, x.dtype)))), _constant(3, x))


#: By name the function and the types of its operands; each becomes one group.
CASES: Final[dict[str, tuple[Callable[..., Any], tuple[TensorType, ...]]]] = {
    "row_and_matrix": (_row_and_matrix, (tensor(F32, 37, 53), tensor(F32, 53))),
    "chain": (_chain, (tensor(F64, 1001),)),
    "sum_of_rows": (lambda x: _sum(x, 1), (tensor(F32, 37, 53),)),
    "sum_of_tall_columns": (lambda x: _sum(x, 0), (tensor(F32, 9001, 13),)),
    "sum_of_all": (lambda x: _sum(_binary(ops.Multiply, x, x), 0), (tensor(F64, 300_001),)),
    "softmax": (_softmax, (tensor(F32, 37, 53),)),
    "stencil": (_stencil, (tensor(F32, 40, 41),)),
    "padding_and_reverse": (_pad, (tensor(F32, 20, 31),)),
    "indices": (_largest_index, (tensor(F32, 20, 31),)),
    "half_precision": (_half, (tensor(F16, 5, 33), tensor(F32, 5, 33))),
    "gathered_rows": (_rows_at_indices, (tensor(F32, 20, 16), tensor(I32, 70))),
    "scattered_rows": (_scattered_rows, (tensor(F32, 70, 16), tensor(I32, 300), tensor(F32, 300, 16))),
    "running_sums": (_running_sums, (tensor(F64, 7, 53),)),
}


def groups(name: str) -> list[ops.Fusion]:
    """The groups of a case."""
    function, types = CASES[name]
    fused = form_groups(graph(function, *types), SCHEDULE, lambda domain, cost: True)
    return [each.op for each in fused.nodes if isinstance(each.op, ops.Fusion)]


def texts(name: str) -> dict[str, str]:
    """The contents of a case's snapshots, by suffix."""
    (fusion,) = groups(name)
    program = SCHEDULE.build(fusion)
    return {".loops": f"{program}\n", ".ll": emitter.emit(program)[0]}


def main(update: bool) -> None:
    for name in CASES:
        for suffix, text in texts(name).items():
            if update:
                (SNAPSHOTS / f"{name}{suffix}").write_text(text)
            else:
                print(f"# {name}{suffix}\n{text}")


if __name__ == "__main__":
    main(sys.argv[1:] == ["--update"])
