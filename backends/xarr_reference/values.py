"""Values between operations: arrays as mere storage, tuples of values, and ways to walk indices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from xarr.ir.types import Ints, Type

Array: TypeAlias = np.ndarray[Any, Any]

#: An array, or a Python tuple of values for a tuple type.
Value: TypeAlias = Any

#: A graph as a function: one argument for each parameter, a tuple of one value for each result.
Computation: TypeAlias = Callable[..., tuple[Value, ...]]

#: How an op is computed: rule(node, *computations that the op carries, *operands).
Rule: TypeAlias = Callable[..., Value]


def empty(type: Type) -> Array:
    """Storage for an array of this type, not yet filled."""
    return np.empty(type.shape, type.dtype)  # type: ignore[union-attr]


def indices(shape: Iterable[int]) -> Iterator[Ints]:
    """Every index of an array of this shape in row-major order: the last dimension varies fastest."""
    return product(*map(range, shape))


def join_index(*parts: tuple[Ints, Ints]) -> Ints:
    """The index with index[n] in dimension dimensions[n], for each of the pairs (dimensions, index)."""
    entries = {dim: at for dimensions, index in parts for dim, at in zip(dimensions, index, strict=True)}
    return tuple(entries[dim] for dim in range(len(entries)))


def cell(array: Array, index: Ints) -> Array:
    """The element at `index` as an array of rank 0, which is what a scalar computation takes."""
    return np.asarray(array[index])


def pack(values: tuple[Value, ...]) -> Value:
    """The value of an op with these results: the result itself when there is one, else their tuple."""
    return values[0] if len(values) == 1 else values
