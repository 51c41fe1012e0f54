"""`pmap`: a function of slices of arrays, each of which a replica computes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xarr import tree
from xarr.arrays.array import Array
from xarr.distributed.meshes import ReplicaMesh, make_mesh
from xarr.distributed.shardings import PartitionSpec
from xarr.errors import ArgumentError, InputError, ShapeError
from xarr.lax.movement import expand_dims, squeeze
from xarr.shapes import normalize_axis
from xarr.transforms.sharding.shard_map import shard_map

#: The name of the axis where none is given.
_AXIS = "pmap axis"
#: Kinds of arguments for which programs are kept.
_KEPT = 64
_NOUNS = {"in_axes": "arguments, a tuple", "out_axes": "results"}


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

    out_specs = tree.map(lambda axis: _out_spec(axis, name), out_axes, is_leaf=lambda each: each is None)

    # One for each structure and axes of arguments and number of slices: it keeps the programs of those.
    @functools.lru_cache(maxsize=_KEPT)
    def split_over(structure: tree.Structure, axes: tuple[int | None, ...], count: int) -> Callable[..., Any]:
        def body(*parts: Any) -> Any:
            own = [
                part if axis is None else squeeze(part, (axis,))
                for part, axis in zip(tree.flatten(parts)[0], axes, strict=True)
            ]
            results, shape = tree.flatten(function(*tree.unflatten(structure, own)))
            ends = _axes_of("out_axes", out_axes, tree.unflatten(shape, results))
            return tree.unflatten(
                shape, [_expand(each, axis) for each, axis in zip(results, ends, strict=True)]
            )

        body.__name__ = getattr(function, "__name__", "pmap")
        specs = tree.unflatten(structure, [_spec(axis, name) for axis in axes])
        mapped: Callable[..., Any] = shard_map(
            body, mesh=ReplicaMesh(range(count), name), in_specs=specs, out_specs=out_specs
        )
        return mapped

    @functools.wraps(function)
    def map_slices(*args: Any) -> Any:
        leaves, structure = tree.flatten(args)
        shapes = [getattr(leaf, "shape", None) or np.shape(leaf) for leaf in leaves]
        paths = structure.paths("args")
        axes = [
            None if axis is None else _axis_of(path, axis, shape)
            for path, axis, shape in zip(paths, _axes_of("in_axes", in_axes, args), shapes, strict=True)
        ]
        count = _count(function, shapes, axes)
        make_mesh(count, name)  # refuses another number than that of the replicas of a world
        return split_over(structure, tuple(axes), count)(*args)

    return map_slices


def _axes_of(what: str, axes: Any, values: Any) -> list[int | None]:
    """The axis of each leaf of `values`."""
    leaves, structure = tree.flatten(axes, is_leaf=lambda each: each is None)
    for leaf in leaves:
        if leaf is not None and not isinstance(leaf, int):
            raise ArgumentError(f"pmap: wanted ints or None in {what}, got {leaf!r}")
    try:
        parts = structure.flatten_up_to(values)
    except InputError as error:
        raise ArgumentError(f"pmap: {what} is no prefix of the {_NOUNS[what]}: {error}") from None
    return [leaf for leaf, part in zip(leaves, parts, strict=True) for _ in tree.flatten(part)[0]]


def _axis_of(path: str, axis: int, shape: Sequence[int]) -> int:
    """The axis of an argument, counted from the front."""
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(
            f"pmap: {path}: wanted an array with axis {axis}, which is mapped, got one of shape {tuple(shape)}; "
            "in_axes says which axis of each argument is mapped, None that every replica gets it whole"
        )
    return normalize_axis(axis, len(shape))


def _count(function: Callable[..., Any], shapes: Sequence[Sequence[int]], axes: Sequence[int | None]) -> int:
    """The number of slices, which all mapped arguments have."""
    sizes = {shape[axis] for shape, axis in zip(shapes, axes, strict=True) if axis is not None}
    if len(sizes) != 1 or not min(sizes):
        shown = ", ".join(map(str, sorted(sizes))) or "none"
        raise ShapeError(
            f"pmap: wanted one size of the mapped axes of all arguments of {function!r}, at least 1, got {shown}"
        )
    return int(sizes.pop())


def _spec(axis: int | None, name: str) -> PartitionSpec:
    return PartitionSpec() if axis is None else _split_at(axis, name)


def _split_at(axis: int, name: str) -> PartitionSpec:
    return PartitionSpec(*(None,) * axis, name)


def _out_spec(axis: int | None, name: str) -> PartitionSpec:
    if axis is not None and axis < 0:
        raise ArgumentError(f"pmap: wanted out_axes >= 0, or None, got {axis}")
    return PartitionSpec() if axis is None else _split_at(axis, name)


def _expand(result: Array, axis: int | None) -> Array:
    return result if axis is None else expand_dims(result, (axis,))
