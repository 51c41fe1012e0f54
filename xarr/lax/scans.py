"""Scans of associative functions, and a function applied to each slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xarr import tree
from xarr.base.host_arrays import is_weak
from xarr.base.tracebacks import names_errors
from xarr.errors import InputError, ShapeError
from xarr.ir.types import replace_at
from xarr.lax.core import flag, integer, operands
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.lax.loops import scan_called
from xarr.lax.movement import concatenate, reshape, rev, slice_in_dim
from xarr.lax.tracing import check_arity, result_of, result_paths
from xarr.shapes import normalize_axis

Columns = list[Any]


@names_errors
def associative_scan(fn: Callable[..., Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """[a, fn(a, b), fn(fn(a, b), c), …] of the slices a, b, c … along `axis`, in a logarithmic number of steps.

    fn: (x, y) -> z on arrays that hold several slices along `axis`, associative; elems: a pytree of arrays of
    one size along `axis`, whose structure and shapes `fn` keeps.
    reverse: from the last slice to the first.

    Returns a pytree like `elems`.  Raises ShapeError for other sizes or for a function that changes structure
    or shapes, InputError for what is no function or for no arrays.  Source: jax.lax.associative_scan.
    """
    if not callable(fn):
        raise InputError(f"associative_scan: wanted a function, got {fn!r}")
    arrays, structure = tree.flatten(elems)
    if not arrays:
        raise InputError(f"associative_scan: wanted arrays to scan, got {structure}")
    nodes = operands("associative_scan", *arrays)
    dims = [normalize_axis(integer("associative_scan", "axis", axis), len(node.shape)) for node in nodes]
    sizes = {node.shape[dim] for node, dim in zip(nodes, dims, strict=True)}
    for node, dim in zip(nodes, dims, strict=True):
        refuse_dynamic("associative_scan", node, "set_dimension_size of its result", (dim,))
    if len(sizes) > 1:
        raise ShapeError(
            f"associative_scan: wanted arrays of one size along axis {axis}, got {sorted(sizes)}"
        )
    along = _DimensionScan(fn, structure, dims)
    columns = along.flip(arrays) if flag("associative_scan", "reverse", reverse) else arrays
    results = along.scan(columns)
    return tree.unflatten(structure, along.flip(results) if reverse else results)


class _DimensionScan:
    """Slices of several arrays, each along its own dimension, and a function of two of them."""

    def __init__(self, fn: Callable[..., Any], structure: tree.Structure, dims: list[int]) -> None:
        self.fn, self.structure, self.dims = fn, structure, dims

    def flip(self, columns: Columns) -> Columns:
        return [rev(column, (dim,)) for column, dim in zip(columns, self.dims, strict=True)]

    def part(self, columns: Columns, start: int, stop: int | None = None, stride: int = 1) -> Columns:
        return [
            slice_in_dim(column, start, stop, stride, dim)
            for column, dim in zip(columns, self.dims, strict=True)
        ]

    def combine(self, first: Columns, second: Columns) -> Columns:
        result = self.fn(tree.unflatten(self.structure, first), tree.unflatten(self.structure, second))
        leaves, structure = tree.flatten(result)
        if structure != self.structure:
            raise ShapeError(
                "associative_scan: the function must return the structure of its arguments: "
                f"{tree.difference(self.structure, structure)}"
            )
        paths = result_paths("fn", structure)
        leaves = [
            leaf if is_weak(leaf) else result_of("associative_scan", path, leaf, None)
            for path, leaf in zip(paths, leaves, strict=True)
        ]
        values = operands("associative_scan", *first)
        got = operands("associative_scan", *leaves)
        for old, new in zip(values, got, strict=True):
            if old.type is not new.type:
                raise ShapeError(
                    "associative_scan: the function must return the type of its arguments, "
                    f"{old.tensor_type.short()}, got {new.tensor_type.short()}"
                )
        return leaves

    def scan(self, columns: Columns) -> Columns:
        """Pairs are combined and scanned, which gives each second slice; one step more gives the others."""
        (node,) = operands("associative_scan", columns[0])
        count = node.shape[self.dims[0]]
        if count < 2:
            return [
                slice_in_dim(column, 0, None, axis=dim)
                for column, dim in zip(columns, self.dims, strict=True)
            ]
        odd = self.scan(self.combine(self.part(columns, 0, count - 1, 2), self.part(columns, 1, None, 2)))
        even = self.part(columns, 0, 1)
        if count > 2:
            before = self.part(odd, 0, (count - 1) // 2)
            later = self.combine(before, self.part(columns, 2, None, 2))
            even = [
                concatenate([first, rest], dim)
                for first, rest, dim in zip(even, later, self.dims, strict=True)
            ]
        return [_interleave(a, b, dim) for a, b, dim in zip(even, odd, self.dims, strict=True)]


def _interleave(even: Any, odd: Any, dim: int) -> Any:
    """even[0], odd[0], even[1], … along the dimension."""
    count = min(even.shape[dim], odd.shape[dim])
    heads = [slice_in_dim(each, 0, count, axis=dim) for each in (even, odd)]
    shape = heads[0].shape
    pairs = [reshape(head, (*shape[: dim + 1], 1, *shape[dim + 1 :])) for head in heads]
    mixed = reshape(concatenate(pairs, dim + 1), replace_at(shape, dim, 2 * count))
    return (
        mixed
        if even.shape[dim] == count
        else concatenate([mixed, slice_in_dim(even, count, None, axis=dim)], dim)
    )


@names_errors
def map(f: Callable[..., Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """f of each slice along the leading axis of `xs`, a pytree of arrays, stacked.

    batch_size: accepted for jax.lax's sake; it changes nothing.
    Raises as `scan` does.  Source: jax.lax.map.
    """
    if not callable(f):
        raise InputError(f"map: wanted a function, got {f!r}")
    check_arity("map", "f", f, 1)

    def step(nothing: tuple[()], x: Any) -> tuple[tuple[()], Any]:
        return nothing, f(x)

    return scan_called("map", step, (), xs, own=1)[1]
