"""Graphs of tests with other element types: the same operations, on arrays of those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from tests.lax_values import values
from tests.support.graph_parts import Case, graph, node, tensor
from tests.support.graphs import CASES
from tests.support.operations import own_operations
from xarr.dtypes import COMPLEX, FLOAT, SUB_BYTE, TABLE, real_part_of
from xarr.errors import XarrError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.types import TensorType, TupleType

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

#: Element-wise operations by the names of their classes.
ELEMENTWISE: Mapping[str, Any] = {op.__name__: op for op in own_operations(ops.Elementwise)}
#: The names of the other cases.
OTHERS = tuple(name for name in CASES if name not in ELEMENTWISE)


def typed_cases(name: str) -> Iterator[tuple[DType, Case]]:
    """A case of `tests/support/graphs.py` with each element type that its operations accept."""
    for row in TABLE:
        # Collatz's rule leads to 1 where three times an odd number fits.
        if name == "While" and row.bits < 8:
            continue
        if name not in ELEMENTWISE:
            case = retype_case(CASES[name], row.dtype)
        elif row.dtype in ELEMENTWISE[name].accepts:
            case = elementwise_case(ELEMENTWISE[name], row.dtype, (300,))
        else:
            case = None
        if case is not None:
            yield row.dtype, case


def elementwise_case(op: Any, dtype: DType, shape: tuple[int, ...]) -> Case:
    """An element-wise operation on numbers of every kind: all that the type has, if the shape is as large."""
    direction = "NE" if dtype in COMPLEX else "LE"
    applied = op(direction) if op is ops.Compare else op()
    numbers, rng = _values(dtype), np.random.default_rng(op.arity)
    count = int(np.prod(shape))
    first = numbers if 0 < len(numbers) <= count else rng.choice(numbers, count)
    inputs = [np.resize(first, count), *[rng.choice(numbers, count) for _ in range(op.arity - 1)]]
    types = [tensor(dtype, *shape)] * op.arity
    return Case(
        graph(lambda *operands: node(applied, *operands), *types), tuple(x.reshape(shape) for x in inputs)
    )


_values = lru_cache(None)(values)


def retype_case(case: Case, new: DType) -> Case | None:
    """The case with the element type `new` instead of that of its first floats, or of its first array.

    Real parts become those of `new`, where both are complex.  None where an operation refuses the type.
    """
    dtypes = [array.dtype for array in case.inputs] or [np.dtype(np.int16)]
    old = next((dtype for dtype in dtypes if dtype.kind not in "biu"), dtypes[0])
    types = {old: new}
    if old in COMPLEX and new in COMPLEX:
        types[real_part_of(old)] = real_part_of(new)
    try:
        graph = retype(case.graph, types).verify()
    except XarrError:
        return None
    return Case(graph, tuple(convert(x, types.get(x.dtype, x.dtype)) for x in map(np.asarray, case.inputs)))


def retype(graph: Graph, types: Mapping[DType, DType]) -> Graph:
    """The graph with the element types that `types` has for its own.

    Raises XarrError if an operation does not accept them.
    """
    after = {each: parameter(_replace_types(each.type, types)) for each in graph.parameters}
    for each in graph.nodes:
        op = each.op
        if isinstance(op, ops.Constant):
            op = ops.Constant.of(convert(op.array, types.get(op.type.dtype, op.type.dtype)))
        else:
            op = replace(op, **{name: _replace_types(old, types) for name, old in op.attributes().items()})
        after[each] = Node(op, tuple(after[operand] for operand in each.operands))
    parameters, results = ([after[each] for each in nodes] for nodes in (graph.parameters, graph.results))
    return Graph(parameters, results, graph.name)


def convert(array: Array, dtype: DType) -> Array:
    """The array with elements of another type: real parts of complex numbers, integers of floats."""
    if array.dtype == dtype:
        return array
    with np.errstate(all="ignore"):
        real = array.real if array.dtype in COMPLEX and dtype not in COMPLEX else array
        if dtype in FLOAT | COMPLEX:
            return np.asarray(real.astype(dtype))
        numbers = np.nan_to_num(real.astype(np.float64), posinf=100, neginf=-100).astype(np.int64)
        return np.asarray((numbers.astype(np.int8) if dtype in SUB_BYTE else numbers).astype(dtype))


def _replace_types(value: Any, types: Mapping[DType, DType]) -> Any:
    """An attribute with other element types."""
    match value:
        case np.dtype():
            return types.get(value, value)
        case TensorType():
            return TensorType(value.shape, types.get(value.dtype, value.dtype))
        case TupleType():
            return TupleType(tuple(_replace_types(each, types) for each in value.elements))
        case Graph():
            return retype(value, types)
        case (Graph(), *_):
            return tuple(retype(each, types) for each in value)
    return value
