"""`vmap`: a function of slices of arrays, as one of the arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from xarr import tree
from xarr.arrays.array import Array
from xarr.base.tracebacks import keep_text, shorten
from xarr.calls.operands import as_array
from xarr.errors import ArgumentError, InputError, ShapeError, XarrError
from xarr.ir import ops
from xarr.ir.graph import Node, parameter
from xarr.ir.types import replace_at
from xarr.runtime.handles import wrap
from xarr.runtime.named_axes import bind_batch_axis
from xarr.shapes import normalize_axis
from xarr.transforms.batching.batch_graph import BatchedValue, Batcher
from xarr.transforms.batching.rules import move_to_front
from xarr.transforms.mapped_arguments import axes_of, axis_of
from xarr.transforms.recording import operands_of, record
from xarr.transforms.signature import call_of

Function = Callable[..., Any]
_OTHERWISE = "it is the same for all slices"


def vmap(
    fun: Function | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: str | tuple[str, ...] | None = None,
) -> Any:
    """`fun` of the slices of its arguments along an axis, computed for all of them at once.

    in_axes: the axis of each argument, for all or a pytree that is a prefix of the arguments; None for one that is the
        same for all slices, which may be a number, a string, a function or any object then, and is given as it is.
        Keyword arguments have axis 0.
    out_axes: the axis of results; None for one that is the same for all slices.
    axis_name: what `lax.psum`, `lax.axis_index` and the like call the slices.
    axis_size: the number of slices, which follows from the arguments if one is mapped.
    spmd_axis_name: the axes of a mesh over which functions under `shard_map` inside are to split the slices.

    An operation becomes one with one more dimension; what has no such form, as a call back into Python, runs slice by
    slice in a loop.  Loops run until all slices have ended, and of branches that slices choose by themselves all are
    computed, but a slice fails, as by an index out of bounds, only where it would alone.  Raises ShapeError for axes
    of other sizes, ArgumentError for other axes and for a result that differs from slice to slice where `out_axes` is
    None.  Source: jax.vmap.
    """
    options = {
        "in_axes": in_axes,
        "out_axes": out_axes,
        "axis_name": axis_name,
        "axis_size": axis_size,
        "spmd_axis_name": spmd_axis_name,
    }
    if fun is None:
        return functools.partial(vmap, **options)
    if not callable(fun):
        raise InputError(f"vmap: wanted a function, got {fun!r}")
    function = fun

    @functools.wraps(function)
    def map_slices(*args: Any, **kwargs: Any) -> Any:
        try:
            return _map(function, args, kwargs, **options)
        except XarrError as error:
            keep_text(error)
            shorten(error)
            raise

    return map_slices


def _map(
    function: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    in_axes: Any,
    out_axes: Any,
    axis_name: Hashable | None,
    axis_size: int | None,
    spmd_axis_name: Any,
) -> Any:
    name = getattr(function, "__name__", type(function).__name__)
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    axes = [*axes_of("vmap", "in_axes", in_axes, args), *axes_of("vmap", "in_axes", 0, kwargs)]
    args, kwargs, axes = _enclose_others(args, kwargs, axes)
    leaves, structure = tree.flatten((args, kwargs))
    paths = [*tree.flatten(args)[1].paths("args"), *tree.flatten(kwargs)[1].paths("kwargs")]
    arrays = [leaf if axis is None else as_array(leaf) for leaf, axis in zip(leaves, axes, strict=True)]
    known = [
        None if axis is None else axis_of("vmap", path, axis, tuple(array.shape), _OTHERWISE)
        for path, axis, array in zip(paths, axes, arrays, strict=True)
    ]
    size = _size(function, arrays, known, axis_size)
    stand_ins = [_stand_in(array, axis) for array, axis in zip(arrays, known, strict=True)]
    own_args, own_kwargs = tree.unflatten(structure, stand_ins)
    labelled: list[tuple[int | str, str, Any]] = [
        *[(k, f"args[{k}]", each) for k, each in enumerate(own_args)],
        *[(key, key, each) for key, each in sorted(own_kwargs.items())],
    ]
    call = call_of(name, [], labelled)
    with _bind(axis_name, size):
        traced = record(name, _disclose(function, own_args), call.signature, frozenset())
    wholes = [
        array if axis is None else wrap(move_to_front(array._node, axis))
        for array, axis in zip(arrays, known, strict=True)
    ]
    operands = operands_of(traced, wholes, call.signature.device)
    flags = [known[leaf] is not None for leaf in traced.arrays]
    flags += [False] * (len(operands) - len(flags))
    batcher = Batcher(size, axis_name, _spmd_axes(spmd_axis_name))
    results = batcher.run(traced.graph, [BatchedValue(*pair) for pair in zip(operands, flags, strict=True)])
    own = [results[number] for number in traced.result_numbers]
    ends = axes_of("vmap", "out_axes", out_axes, tree.unflatten(traced.structure, list(range(len(own)))))
    paths = list(traced.structure.paths("the result"))
    return tree.unflatten(
        traced.structure,
        [_move_axis(batcher, *each, name) for each in zip(own, ends, paths, strict=True)],
    )


@tree.register_static
class _Same:
    """An argument that is the same for all slices and no array, as a string or a function: a tree without leaves."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _is_same(value: Any) -> bool:
    return isinstance(value, _Same)


def _enclose_others(
    args: tuple[Any, ...], kwargs: dict[str, Any], axes: list[int | None]
) -> tuple[tuple[Any, ...], dict[str, Any], list[int | None]]:
    """The arguments, in which what is mapped along no axis and is no array is no leaf; and the axes of the others."""
    leaves, structure = tree.flatten((args, kwargs))
    others = [axis is None and not _is_array(leaf) for leaf, axis in zip(leaves, axes, strict=True)]
    enclosed = [_Same(leaf) if is_other else leaf for leaf, is_other in zip(leaves, others, strict=True)]
    own_args, own_kwargs = tree.unflatten(structure, enclosed)
    left = [axis for axis, is_other in zip(axes, others, strict=True) if not is_other]
    return own_args, own_kwargs, left


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, Array | np.ndarray | np.generic) or hasattr(leaf, "__array__")


def _disclose(function: Function, args: tuple[Any, ...]) -> Function:
    """A function to which arguments are given as the caller gave them."""
    if not any(_is_same(each) for each in tree.leaves(args, is_leaf=_is_same)):
        return function

    def call(*own: Any, **kwargs: Any) -> Any:
        values = tree.map(lambda each: each.value if _is_same(each) else each, own, is_leaf=_is_same)
        return function(*values, **kwargs)

    return call


def _node(value: BatchedValue) -> Node:
    assert value.node is not None
    return value.node


def _bind(axis_name: Hashable | None, size: int) -> AbstractContextManager[None]:
    """Let the axis have its name in the block, if it has one."""
    return nullcontext() if axis_name is None else bind_batch_axis(axis_name, size)


def _spmd_axes(names: Any) -> tuple[str, ...]:
    own = () if names is None else names if isinstance(names, tuple | list) else (names,)
    if not all(isinstance(each, str) for each in own):
        raise ArgumentError(f"vmap: wanted names of axes of a mesh for spmd_axis_name, got {names!r}")
    return tuple(own)


def _size(
    function: Function, arrays: Sequence[Any], axes: Sequence[int | None], axis_size: int | None
) -> int:
    """The number of slices, which all mapped arguments have."""
    sizes = {array.shape[axis] for array, axis in zip(arrays, axes, strict=True) if axis is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if len(sizes) != 1:
        shown = ", ".join(map(str, sorted(sizes))) or "none"
        raise ShapeError(
            f"vmap: wanted one size of the mapped axes of all arguments of {function!r}, got {shown}"
            f"{'' if axis_size is None else f'; axis_size is {axis_size}'}"
        )
    return int(sizes.pop())


def _stand_in(leaf: Any, axis: int | None) -> Any:
    """A stand-in for a slice of an argument, or the argument that is the same for all."""
    if axis is None:
        return _shape_of(as_array(leaf))
    node = leaf._node
    shape = replace_at(node.shape, axis)
    return wrap(parameter(node.tensor_type.with_shape(shape), node.device))


def _shape_of(array: Array) -> Array:
    return wrap(parameter(array._node.tensor_type, array._node.device))


def _move_axis(batcher: Batcher, value: BatchedValue, axis: int | None, path: str, name: str) -> Array:
    """A result with the mapped axis where it is wanted."""
    if axis is None:
        if value.is_batched:
            raise ArgumentError(
                f"{name}: {path} differs from slice to slice, and out_axes says that it has no axis of them; "
                "reduce it, as by lax.psum over the axis_name, or give it an axis"
            )
        return wrap(_node(value))
    whole = batcher.whole(value)
    rank = len(whole.shape)
    if not -rank <= axis < rank:
        raise ShapeError(f"{name}: {path}: wanted an axis in out_axes from {-rank} to {rank - 1}, got {axis}")
    end = normalize_axis(axis, rank)
    if not end:
        return wrap(whole)
    order = [*range(1, end + 1), 0, *range(end + 1, rank)]
    return wrap(Node(ops.Transpose(tuple(order)), (whole,)))
