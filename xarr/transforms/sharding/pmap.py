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
from xarr.errors import ArgumentError, InputError, ShapeError, ValueRangeError, pluralize
from xarr.lax.movement import expand_dims, squeeze
from xarr.runtime.named_axes import current_mesh
from xarr.transforms.jit import jit
from xarr.transforms.mapped_arguments import axes_of, axis_of
from xarr.transforms.sharding.shard_map import shard_map

#: The name of the axis where none is chosen.
_AXIS = "pmap axis"
#: Kinds of arguments for which programs are kept.
_KEPT = 64
_OTHERWISE = "every replica gets it whole"
Function = Callable[..., Any]


def pmap(
    fun: Function | None = None,
    axis_name: str | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[int] | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """`fun` over the slices of its arguments along an axis, each computed by a replica of its own.

    axis_name: what `lax.psum` and the like call the replicas.
    in_axes: the axis of each argument, for all or a pytree that is a prefix of the arguments; None for one that every
        replica gets whole.  Keyword arguments have axis 0.
    out_axes: the axis of results.
    static_broadcasted_argnums: positions of arguments that are no arrays, which have hashes and go to all replicas as
        they are; for another value the function is recorded anew.
    devices: the replicas, by their numbers, in the order of the slices.
    axis_size: the number of slices, which follows from the arguments if one is mapped.
    donate_argnums: accepted for JAX's sake; slices are copies, and arguments stay as they are.

    The results are ShardedArrays, and whole arrays in a function that is recorded, as by jit; `lower` of the function
    is that of such a function.  In a world of several replicas the axis has as many elements as there are replicas.
    Raises ShapeError for axes of other sizes, InputError in another function under `pmap` or `shard_map`, ArgumentError
    for other positions and devices, and as `shard_map` does.  Source: jax.pmap.
    """
    static = _positions("static_broadcasted_argnums", static_broadcasted_argnums)
    _positions("donate_argnums", donate_argnums)
    if fun is None:
        return functools.partial(
            pmap,
            axis_name=axis_name,
            in_axes=in_axes,
            out_axes=out_axes,
            static_broadcasted_argnums=static,
            devices=devices,
            axis_size=axis_size,
        )
    if not callable(fun):
        raise InputError(f"pmap: wanted a function, got {fun!r}")
    if devices is not None and not len(devices):
        raise ValueRangeError("pmap: wanted at least one replica in devices, or None, got none")
    name = axis_name if axis_name is not None else _AXIS
    return PerSlice(fun, name, (in_axes, out_axes), static, devices, axis_size)


class PerSlice:
    """A function that `pmap` made."""

    def __init__(
        self,
        function: Function,
        axis_name: str,
        axes: tuple[Any, Any],
        static: tuple[int, ...],
        devices: Sequence[int] | None,
        axis_size: int | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function, self._axis, self._static = function, axis_name, static
        self._in_axes, self._out_axes = axes
        self._out_specs = tree.map(
            lambda axis: _out_spec(axis, axis_name), self._out_axes, is_leaf=lambda each: each is None
        )
        self._devices = None if devices is None else tuple(devices)
        self._axis_size = axis_size
        # One for each structure and axes of arguments and number of slices: it keeps the programs of those.
        self._split_over = functools.lru_cache(maxsize=_KEPT)(self._make)

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<{self._function!r} over the slices along {self._axis!r}>"

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The function for such arguments, with whole arrays, as a graph, for each stage up to the program."""
        static = [k for k in self._static if k < len(args)]
        return jit(self.__call__, static_argnums=static).lower(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_mesh() is not None:
            raise InputError(
                f"pmap: {self._function!r} is called in a function under pmap or shard_map, whose replicas compute "
                "already; let a function under shard_map have a mesh of two axes"
            )
        statics, mapped = self._take_statics(args)
        leaves, structure = tree.flatten((mapped, kwargs))
        shapes = [getattr(leaf, "shape", None) or np.shape(leaf) for leaf in leaves]
        in_axes = self._in_axes
        if isinstance(in_axes, tuple) and len(in_axes) == len(args):
            in_axes = tuple([axis for k, axis in enumerate(in_axes) if k not in self._static])
        parts = [*axes_of("pmap", "in_axes", in_axes, mapped), *axes_of("pmap", "in_axes", 0, kwargs)]
        paths = [*tree.flatten(mapped)[1].paths("args"), *tree.flatten(kwargs)[1].paths("kwargs")]
        axes = tuple(
            [
                None if axis is None else axis_of("pmap", path, axis, shape, _OTHERWISE)
                for path, axis, shape in zip(paths, parts, shapes, strict=True)
            ]
        )
        count = self._count(shapes, axes)
        mesh = make_mesh(count, self._axis, devices=self._devices)
        try:
            run = self._split_over(structure, axes, mesh, statics)
        except TypeError as error:
            raise InputError(
                f"pmap: wanted values with a hash at static_broadcasted_argnums, got {[each for _, each in statics]!r} "
                f"({error})"
            ) from None
        return run(mapped, kwargs)

    def _take_statics(self, args: tuple[Any, ...]) -> tuple[tuple[tuple[int, Any], ...], tuple[Any, ...]]:
        """The static arguments with their positions, and the others."""
        if self._static and self._static[-1] >= len(args):
            raise ArgumentError(
                f"pmap: wanted positions of arguments in static_broadcasted_argnums, got {self._static}, and "
                f"{pluralize(len(args), 'positional argument')}"
            )
        statics = tuple([(k, args[k]) for k in self._static])
        return statics, tuple([each for k, each in enumerate(args) if k not in self._static])

    def _count(self, shapes: Sequence[Sequence[int]], axes: Sequence[int | None]) -> int:
        """The number of slices, which all mapped arguments have."""
        sizes = {shape[axis] for shape, axis in zip(shapes, axes, strict=True) if axis is not None}
        if self._axis_size is not None:
            sizes.add(self._axis_size)
        if len(sizes) != 1 or not min(sizes):
            shown = ", ".join(map(str, sorted(sizes))) or "none"
            raise ShapeError(
                f"pmap: wanted one size of the mapped axes of all arguments of {self._function!r}, at least 1, got "
                f"{shown}{'' if self._axis_size is None else f'; axis_size is {self._axis_size}'}"
            )
        return int(sizes.pop())

    def _make(
        self,
        structure: tree.Structure,
        axes: tuple[int | None, ...],
        mesh: ReplicaMesh,
        statics: tuple[tuple[int, Any], ...],
    ) -> Function:
        """The function of whole arguments: their slices, with an axis of size 1, go to replicas."""

        def body(*parts: Any) -> Any:
            own = [
                part if axis is None else squeeze(part, (axis,))
                for part, axis in zip(tree.flatten(parts)[0], axes, strict=True)
            ]
            args, kwargs = tree.unflatten(structure, own)
            every = list(args)
            for position, value in statics:
                every.insert(position, value)
            results, shape = tree.flatten(self._function(*every, **kwargs))
            ends = axes_of("pmap", "out_axes", self._out_axes, tree.unflatten(shape, results))
            return tree.unflatten(
                shape, [_expand(each, axis) for each, axis in zip(results, ends, strict=True)]
            )

        body.__name__ = getattr(self._function, "__name__", "pmap")
        specs = tree.unflatten(structure, [_spec(axis, self._axis) for axis in axes])
        mapped: Function = shard_map(body, mesh=mesh, in_specs=specs, out_specs=self._out_specs)
        return mapped


def _positions(what: str, numbers: Any) -> tuple[int, ...]:
    """Positions of arguments, in order."""
    values = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    if not all(isinstance(each, int) and each >= 0 for each in values):
        raise ArgumentError(
            f"pmap: wanted positions of arguments, counted from 0, in {what}, got {numbers!r}"
        )
    return tuple(sorted(set(values)))


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
