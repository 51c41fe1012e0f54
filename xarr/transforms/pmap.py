"""`pmap`: a function of slices of arrays, each of which a replica computes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xarr import tree
from xarr.arrays.array import Array
from xarr.distributed.meshes import make_mesh
from xarr.distributed.shardings import PartitionSpec
from xarr.errors import ArgumentError, ShapeError
from xarr.lax.movement import expand_dims, squeeze
from xarr.shapes import normalize_axis
from xarr.transforms.shard_map import shard_map

#: The name of the axis where none is given.
_AXIS = "pmap axis"


def pmap(
    fun: Callable[..., Any] | None = None,
    axis_name: str | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
) -> Any:
    """`fun` over the slices of its arguments along an axis, each computed by a replica of its own.

    axis_name: what `lax.psum` and the like call the replicas.  in_axes: the axis of each argument, for all or a pytree
    that is a prefix of the arguments; None for one that every replica gets whole.  out_axes: the axis of results.

    The results are ShardedArrays.  In a world of several replicas the axis has as many elements as there are replicas.
    Raises ShapeError for axes of other sizes, and as `shard_map` does.  Source: jax.pmap.
    """
    if fun is None:
        return functools.partial(pmap, axis_name=axis_name, in_axes=in_axes, out_axes=out_axes)
    function, name = fun, axis_name or _AXIS

    @functools.wraps(function)
    def map_slices(*args: Any) -> Any:
        axes = _axes_of("in_axes", in_axes, args)
        leaves, structure = tree.flatten(args)
        count = _count(function, leaves, axes)
        specs = tree.unflatten(
            structure, [_spec(axis, leaf, name) for axis, leaf in zip(axes, leaves, strict=True)]
        )

        def body(*parts: Any) -> Any:
            own = [
                part if axis is None else squeeze(part, (normalize_axis(axis, part.ndim),))
                for part, axis in zip(tree.flatten(parts)[0], axes, strict=True)
            ]
            results, shape = tree.flatten(function(*tree.unflatten(structure, own)))
            ends = _axes_of("out_axes", out_axes, tree.unflatten(shape, results))
            return tree.unflatten(
                shape, [_expand(each, axis) for each, axis in zip(results, ends, strict=True)]
            )

        body.__name__ = getattr(function, "__name__", "pmap")
        out_specs = tree.map(lambda axis: _out_spec(axis, name), out_axes, is_leaf=lambda each: each is None)
        mesh = make_mesh(count, name)
        return shard_map(body, mesh=mesh, in_specs=specs, out_specs=out_specs)(*args)

    return map_slices


def _axes_of(what: str, axes: Any, values: Any) -> list[int | None]:
    """The axis of each leaf of `values`."""
    leaves, structure = tree.flatten(axes, is_leaf=lambda each: each is None)
    for leaf in leaves:
        if leaf is not None and not isinstance(leaf, int):
            raise ArgumentError(f"pmap: wanted ints or None in {what}, got {leaf!r}")
    parts = structure.flatten_up_to(values)
    return [leaf for leaf, part in zip(leaves, parts, strict=True) for _ in tree.flatten(part)[0]]


def _count(function: Callable[..., Any], leaves: Sequence[Any], axes: Sequence[int | None]) -> int:
    """The number of slices, which all mapped arguments have."""
    sizes = {
        leaf.shape[normalize_axis(axis, len(leaf.shape))]
        for leaf, axis in zip(leaves, axes, strict=True)
        if axis is not None
    }
    if len(sizes) != 1:
        shown = ", ".join(map(str, sorted(sizes))) or "none"
        raise ShapeError(
            f"pmap: wanted one size of the mapped axes of all arguments of {function!r}, got {shown}"
        )
    return int(sizes.pop())


def _spec(axis: int | None, leaf: Any, name: str) -> PartitionSpec:
    return PartitionSpec() if axis is None else _split_at(normalize_axis(axis, len(leaf.shape)), name)


def _split_at(axis: int, name: str) -> PartitionSpec:
    return PartitionSpec(*(None,) * axis, name)


def _out_spec(axis: int | None, name: str) -> PartitionSpec:
    if axis is not None and axis < 0:
        raise ArgumentError(f"pmap: wanted out_axes >= 0, or None, got {axis}")
    return PartitionSpec() if axis is None else _split_at(axis, name)


def _expand(result: Array, axis: int | None) -> Array:
    return result if axis is None else expand_dims(result, (axis,))
