"""Who computes an operation of an element type on a GPU, how far from the exact result, and what proves it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import numpy as np

from tests.elementwise_ops import has_formula, record_of
from tests.support.graphs import CASES
from tests.support.retyped_graphs import typed_cases
from tests.xarr_reference.test_agreement import APPROXIMATE_COMPLEX
from xarr.backend import get
from xarr.compiler.schedules.gpu.builders import computes
from xarr.dtypes import COMPLEX, FLOAT, SUB_BYTE, TABLE
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, element_types
from xarr.ir.op import Op
from xarr.ir.types import TensorType
from xarr_cupy import host, libraries

DType = np.dtype[Any]
#: Operations whose results are sums, or what else is combined of many numbers.
SUMS: Final = (
    ops.Reduce,
    ops.ReduceWindow,
    ops.DotGeneral,
    ops.Convolution,
    ops.Scatter,
    ops.SelectAndScatter,
)
#: Operations whose results are operands, parts of them, or numbers that floats have.
_EXACT: Final = (
    *(
        ops.Ceil,
        ops.Compare,
        ops.Complex,
        ops.Floor,
        ops.Imag,
        ops.IsFinite,
        ops.Maximum,
        ops.Minimum,
        ops.Negate,
    ),
    *(ops.NextAfter, ops.Real, ops.Remainder, ops.RoundNearestAfz, ops.RoundNearestEven),
)
#: The library that computes each.
_LIBRARIES: Final[dict[type[Op], str]] = {
    ops.DotGeneral: "cuBLAS",
    ops.Fft: "cuFFT",
    ops.TriangularSolve: "cuBLAS",
    **dict.fromkeys(
        (ops.Cholesky, ops.Eig, ops.Eigh, ops.Svd, ops.Geqrf, ops.HouseholderProduct), "cuSOLVER"
    ),
    ops.Lu: "cuBLAS or cuSOLVER",
    ops.Sort: "CUB",
}
#: Where results of each computer were seen, but for those of libraries.
_SEEN: Final = {
    **dict.fromkeys(("kernel", "graphs", "memory", "parts"), "emulated"),
    "host": "on the CPU",
}


@dataclass(frozen=True)
class Way:
    """Who computes an operation, with which error in ULP, and where that was seen."""

    computers: tuple[str, ...]
    ulp: str
    seen: str


def computer_of(node: Node) -> str:
    """`kernel`, the name of a library, `host`, `parts`, `graphs` or `memory`."""
    op = node.op
    if not get("reference").supports(type(op)):
        return "parts"
    if libraries.computes(node):
        return _LIBRARIES[type(op)]
    if computes(node):
        return "kernel"
    if op.runs_graphs:
        return "graphs"
    if isinstance(op, ops.Tuple | ops.GetTupleElement | ops.OptimizationBarrier):
        return "memory"
    # They are computed in a wider type, by a kernel that converts.
    is_narrow = _dtype(node) in SUB_BYTE and type(op) not in host.OPERATIONS
    return "parts" if is_narrow or not any(host.reasons(node)) else "host"


def ways(on_gpu: Collection[str] = ()) -> dict[str, dict[DType, Way]]:
    """By the names of operations and their element types: how each is computed.

    on_gpu: names of graphs whose results, of all element types, a GPU was seen to compute.
    """
    nodes: dict[str, dict[DType, list[Node]]] = {}
    real: set[tuple[str, DType]] = set()
    for name in CASES:
        for _, case in typed_cases(name):
            for node in nodes_of(case.graph):
                nodes.setdefault(node.op.name, {}).setdefault(_dtype(node), []).append(node)
                if name in on_gpu:
                    real.add((node.op.name, _dtype(node)))
    return {
        name: {
            row.dtype: _way(by_dtype[row.dtype], (name, row.dtype) in real)
            for row in TABLE
            if row.dtype in by_dtype
        }
        for name, by_dtype in sorted(nodes.items())
    }


def ulp_of(node: Node, computer: str) -> str:
    """The largest distance from the exact result, as text; a dash where others have it."""
    op, dtype = node.op, _dtype(node)
    if computer not in ("kernel", "host", "parts"):
        return "–" if computer in ("graphs", "memory") else "unproved"
    if type(op) in host.OPERATIONS:
        return "–"
    if dtype not in FLOAT | COMPLEX:
        return "–" if dtype in SUB_BYTE and computer == "parts" else "0"
    if isinstance(op, SUMS):
        return "sum"
    if isinstance(op, _EXACT) or not isinstance(op, ops.Elementwise):
        return "–" if computer == "parts" else "0"
    if isinstance(op, ops.Abs | ops.Sign) and dtype in FLOAT:
        return "0"
    if dtype in COMPLEX:
        return str(APPROXIMATE_COMPLEX.get(type(op), 0.5))
    if has_formula(type(op)):
        return f"{_bound_of_loops(type(op), dtype):g}"
    measured = record_of(type(op)).beside_xla.get(str(dtype), (0.5,))
    return f"{measured[0]:g}"


def _bound_of_loops(op: Any, dtype: DType) -> float:
    """The bound of compiled loops in ULP: of narrow floats, that of float32, rounded once more."""
    bounds = record_of(op).in_loops
    assert bounds is not None
    if dtype.itemsize > 2:
        return bounds.float64 if dtype == np.float64 else bounds.float32
    digits = 10 if dtype == np.float16 else 7
    return ceil(50 + 100 * bounds.tested32 / 2 ** (23 - digits)) / 100


def _way(nodes: list[Node], is_real: bool) -> Way:
    computers = {computer_of(node) for node in nodes}
    ulps = {ulp_of(node, computer_of(node)) for node in nodes}
    seen = {"real" if is_real and each != "host" else _SEEN.get(each, "stand-in") for each in computers}
    return Way(tuple(sorted(computers)), ", ".join(sorted(ulps - {"–"})) or "–", ", ".join(sorted(seen)))


def nodes_of(graph: Graph) -> Iterator[Node]:
    """The operations of a graph, on arrays with elements."""
    for node in graph.nodes:
        types = [each for x in (node, *node.operands) for each in element_types(x.type)]
        if not isinstance(node.op, ops.Constant) and not any(
            isinstance(each, TensorType) and 0 in each.shape for each in types
        ):
            yield node


def _dtype(node: Node) -> DType:
    """The element type of the first array that is none of indices."""
    types = [each for x in (*node.operands, node) for each in element_types(x.type)]
    return next(each.dtype for each in types if isinstance(each, TensorType))
