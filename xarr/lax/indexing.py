"""Windows at positions known only when the program runs: gather, scatter, dynamic slices.

Names, argument order and modes are `jax.lax`'s.  Beyond it there are `index_vector_dim=` (jax.lax wants
the index vectors in the last dimension of the indices), `scatter_with` for any computation and any number
of arrays, and in `xarr.lax.rows` functions that write the dimension numbers themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from xarr import tree
from xarr.backend import AbstractBackend
from xarr.dtypes import BOOL, INTEGER, SIGNED, UNSIGNED, info
from xarr.errors import InputError, ShapeError, ValueRangeError
from xarr.ir import ops
from xarr.ir.computations import combiner, scalars
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.lax.core import (
    ArrayLike,
    broadcast_node,
    integer,
    integers,
    is_array,
    merged,
    operands,
)
from xarr.lax.creation import full, full_like
from xarr.lax.elementwise import add, bitwise_and, clamp, convert_element_type, ge, le, lt, select
from xarr.lax.movement import broadcast_in_dim, expand_dims, index_in_dim, squeeze
from xarr.lax.reduction import reduce_and
from xarr.lax.tracing import record_scalar, results_of, tuple_of
from xarr.lazy import wrap
from xarr.shapes import check_sizes, normalize_axis
from xarr.tree import Structure

if TYPE_CHECKING:
    from xarr.array import Array

Ints = tuple[int, ...]


class GatherDimensionNumbers(NamedTuple):
    """Which dimension is which in a gather.  Source: jax.lax, XLA's Gather.

    * `offset_dims` - dimensions of the result that run over the window, in increasing order,
    * `collapsed_slice_dims` - dimensions of the operand, of window size 1, that the result has not,
    * `start_index_map` - for each component of an index vector, the operand dimension that it places,
    * `operand_batching_dims`, `start_indices_batching_dims` - dimensions of operand and indices that run along.
    """

    offset_dims: Sequence[int]
    collapsed_slice_dims: Sequence[int]
    start_index_map: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    start_indices_batching_dims: Sequence[int] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which dimension is which in a scatter, the mirror image of a gather.  Source: jax.lax, XLA's Scatter.

    * `update_window_dims` - dimensions of the updates that run over the window, in increasing order,
    * `inserted_window_dims` - dimensions of the operand, of window size 1, that the updates have not,
    * `scatter_dims_to_operand_dims` - for each component of an index vector, the dimension that it places,
    * `operand_batching_dims`, `scatter_indices_batching_dims` - dimensions of operand and indices that run along.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


class GatherScatterMode(Enum):
    """What happens to windows that do not lie in the operand as a whole.  Source: jax.lax.

    * `CLIP` - they are moved to the nearest place where they do,
    * `FILL_OR_DROP` - a gathered one is filled with a constant, a scattered one is left out,
    * `PROMISE_IN_BOUNDS` - there are none; should there be some, XLA's rule holds: gather clips, scatter drops.
    """

    CLIP = auto()
    FILL_OR_DROP = auto()
    PROMISE_IN_BOUNDS = auto()

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """A mode from its name: "clip", "fill" or "drop" (also None), "promise_in_bounds"."""
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode not in _MODES:
            raise ValueRangeError(
                f"wanted a mode of {', '.join(map(repr, filter(None, _MODES)))}, got {mode!r}"
            )
        return _MODES[mode]


_MODES: dict[str | None, GatherScatterMode] = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}

Mode = str | GatherScatterMode | None


def dimension_fields(name: str, numbers: Any, kind: type[Any]) -> list[Ints]:
    """The fields of dimension numbers, in the order of `kind`, from anything that has them as attributes."""
    fields: tuple[str, ...] = kind._fields
    missing = [field for field in fields if not hasattr(numbers, field)]
    if missing:
        raise InputError(
            f"{name}: wanted {kind.__name__} for dimension_numbers, got {numbers!r}, without {missing}"
        )
    return [integers(name, field, getattr(numbers, field)) for field in fields]


def _vector_dim(name: str, indices: Node, index_vector_dim: int | None) -> int:
    """Where the index vectors stand: the last dimension unless another one is given."""
    if index_vector_dim is not None:
        return integer(name, "index_vector_dim", index_vector_dim)
    if not indices.shape:
        raise ShapeError(
            f"{name}: indices without dimensions have no index vectors; index_vector_dim=0 takes them as scalars"
        )
    return len(indices.shape) - 1


# --- gather ------------------------------------------------------------------------------------------


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Mode = None,
    fill_value: ArrayLike | None = None,
    index_vector_dim: int | None = None,
) -> Array:
    """Windows of `operand`, one for each index vector.

    operand: array of any type.  start_indices: integers; each index vector, along the last dimension or along
        `index_vector_dim` (which may be their rank: scalars), is where a window starts.
    slice_sizes: the size of the window in each dimension of the operand.
    mode: as GatherScatterMode says; by default "promise_in_bounds", which clamps.
    fill_value: for mode "fill"; by default NaN, the least value of signed and the greatest of unsigned integers,
        True of bools.
    unique_indices: accepted as in jax.lax, where it matters to derivatives alone.
    indices_are_sorted: a promise that backends may use; nothing is checked.

    Returns an array of the operand's type, with the dimensions `offset_dims` running over the window and the
    others over the indices.  A negative index is out of bounds, it does not count from the end.
    Raises ShapeError [C1]-[C21], DTypeError [I2] for indices that are no integers.
    Source: XLA's Gather, StableHLO's gather; modes as jax.lax has them.
    """
    (node,), first = operands("gather", operand)
    (indices,), second = operands("gather", start_indices)
    offset, collapsed, index_map, batching, own_batching = dimension_fields(
        "gather", dimension_numbers, GatherDimensionNumbers
    )
    vector_dim = _vector_dim("gather", indices, index_vector_dim)
    sizes = integers("gather", "slice_sizes", slice_sizes)
    op = ops.Gather(
        offset, collapsed, batching, own_batching, index_map, vector_dim, sizes, bool(indices_are_sorted)
    )
    backend = merged("gather", first, second)
    found = wrap(Node(op, (node, indices)), backend)
    if mode is None or GatherScatterMode.from_any(mode) is not GatherScatterMode.FILL_OR_DROP:
        return found
    windows = op.windows(node.tensor_type, indices.tensor_type)
    last = _last_starts(indices, windows.last_starts, vector_dim)
    inside = bitwise_and(ge(wrap(indices, second), 0), le(wrap(indices, second), wrap(last, None)))
    if vector_dim < len(indices.shape):
        inside = reduce_and(inside, (vector_dim,))
    inside = broadcast_in_dim(inside, windows.windowed_shape, windows.batch_dims)
    value = _default_fill(node.dtype) if fill_value is None else fill_value
    return select(inside, found, full_like(found, value))


def _default_fill(dtype: np.dtype[Any]) -> Any:
    if dtype in INTEGER:
        return int(info(dtype).max if dtype in UNSIGNED else info(dtype).min)
    return True if dtype in BOOL else float("nan")


def _last_starts(indices: Node, last: Ints, vector_dim: int) -> Node:
    """The greatest starts with which windows fit, in the shape and element type of the indices.

    What the type cannot hold cannot be exceeded either.  It is 0 where the operand has no room for the window.
    """
    limit = int(info(indices.dtype).max)
    held = np.array([min(max(start, 0), limit) for start in last], indices.dtype)
    if vector_dim == len(indices.shape):
        return broadcast_node(Node(ops.Constant.of(held[0])), indices.shape, ())
    return broadcast_node(Node(ops.Constant.of(held)), indices.shape, (vector_dim,))


# --- scatter -----------------------------------------------------------------------------------------


def scatter_with(
    operands: Any,
    scatter_indices: ArrayLike,
    updates: Any,
    computation: Callable[..., Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
    index_vector_dim: int | None = None,
) -> Any:
    """`operands` with windows of `updates` combined into them by `computation`, for one array or a pytree of N.

    operands: array, or pytree of arrays, of one shape.
    scatter_indices: integers; each index vector, along the last dimension or along `index_vector_dim` (which
        may be their rank: scalars), is where a window goes.
    updates: an array for each operand, of its element type, in the same structure.
    computation: (elements, updates) -> elements, on scalars, in the structure of `operands`; it may use nothing
        but its arguments.
    mode: as GatherScatterMode says; by default windows that do not fit are left out.
    unique_indices, indices_are_sorted: promises that backends may use; nothing is checked.

    Windows are combined one after the other in row-major order of the scatter indices.
    Returns what was given for `operands`.  Raises ShapeError [C1]-[C23], DTypeError [I2], [C6].
    Source: XLA's Scatter, StableHLO's scatter.
    """
    arrays, structure = tree.flatten(operands)
    new, its = tree.flatten(updates)
    if its != structure or not arrays:
        raise ShapeError(
            f"scatter [C5]: wanted N >= 1 arrays and N updates in one structure, got {structure} and {its}"
        )
    nodes, backend = _pairs(arrays, new)
    graph = _update_graph(computation, structure, [node.dtype for node in nodes[: len(arrays)]])
    options = (indices_are_sorted, unique_indices, mode, index_vector_dim)
    found = _scattered(nodes, scatter_indices, graph, dimension_numbers, backend, options)
    return tree.unflatten(structure, found)


Options = tuple[bool, bool, Mode, int | None]


def _pairs(arrays: Sequence[Any], updates: Sequence[Any]) -> tuple[list[Node], AbstractBackend | None]:
    """The nodes of arrays, then of updates, where Python scalars take their array's element type."""
    pairs = []
    backend: AbstractBackend | None = None
    for array, update in zip(arrays, updates, strict=True):
        pair, its = operands("scatter", array, update)
        backend = merged("scatter", backend, its)
        pairs.append(pair)
    return [array for array, _ in pairs] + [update for _, update in pairs], backend


def _update_graph(
    computation: Callable[..., Any], structure: Structure, dtypes: Sequence[np.dtype[Any]]
) -> Graph:
    found = record_scalar("scatter", "C23", computation, tuple_of(structure, structure), [*dtypes, *dtypes])
    if found.structure != structure:
        raise ShapeError(
            f"scatter [C23]: the computation must give what it updates: {tree.difference(structure, found.structure)}"
        )
    return found.with_dtypes(dtypes).graph


def _scattered(
    nodes: Sequence[Node],
    scatter_indices: ArrayLike,
    graph: Graph,
    dimension_numbers: ScatterDimensionNumbers,
    backend: AbstractBackend | None,
    options: Options,
) -> list[Array]:
    """The results of a scatter of arrays and updates, which are the first and the second half of `nodes`."""
    (indices,), its = operands("scatter", scatter_indices)
    count = len(nodes) // 2
    is_sorted, unique, mode, index_vector_dim = options
    window, inserted, index_map, batching, own_batching = dimension_fields(
        "scatter", dimension_numbers, ScatterDimensionNumbers
    )
    vector_dim = _vector_dim("scatter", indices, index_vector_dim)
    op = ops.Scatter(
        window, inserted, batching, own_batching, index_map, vector_dim, graph, bool(is_sorted), bool(unique)
    )
    if GatherScatterMode.from_any(mode) is GatherScatterMode.CLIP:
        op.infer(*[node.type for node in (*nodes[:count], indices, *nodes[count:])])
        windows = op.windows(nodes[0].tensor_type, indices.tensor_type, nodes[count].tensor_type)
        last = _last_starts(indices, windows.last_starts, vector_dim)
        indices = clamp(np.zeros((), indices.dtype)[()], wrap(indices, its), wrap(last, None))._node
    everything = (*nodes[:count], indices, *nodes[count:])
    return results_of(op, everything, count, merged("scatter", backend, its))


class ScatterFunction(Protocol):
    """(operand, scatter_indices, updates, dimension_numbers, *, …) -> Array"""

    __name__: str

    def __call__(
        self,
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        index_vector_dim: int | None = None,
    ) -> Array: ...


def _scatter_by(name: str, what: str, computation: Callable[[np.dtype[Any]], Graph]) -> ScatterFunction:
    def function(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        index_vector_dim: int | None = None,
    ) -> Array:
        nodes, backend = _pairs([operand], [updates])
        options = (indices_are_sorted, unique_indices, mode, index_vector_dim)
        graph = computation(nodes[0].dtype)
        return _scattered(nodes, scatter_indices, graph, dimension_numbers, backend, options)[0]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"`operand` with windows of `updates` {what}.\n\n"
        "operand: array.  scatter_indices: integers, index vectors along the last dimension or `index_vector_dim`.\n"
        "updates: array of the operand's element type, or a Python scalar if that fits.\n"
        "mode, unique_indices, indices_are_sorted: as in scatter_with.\n\n"
        "Elements are combined in the operand's element type, windows in row-major order of the scatter indices.\n"
        "Raises ShapeError [C1]-[C22], DTypeError [I2], [C6].\n\n"
        "Source: XLA's Scatter, with jax.lax's arguments."
    )
    return function


def _combining(op: Op) -> Callable[[np.dtype[Any]], Graph]:
    return lambda dtype: combiner(op, dtype)


def _replacing(dtype: np.dtype[Any]) -> Graph:
    old, new = scalars(dtype, dtype)
    return Graph((old, new), [new], "replace")


scatter = _scatter_by(
    "scatter", "in place of what stood there; of overlapping ones the last stays", _replacing
)
scatter_add = _scatter_by("scatter_add", "added", _combining(ops.Add()))
scatter_sub = _scatter_by("scatter_sub", "subtracted", _combining(ops.Subtract()))
scatter_mul = _scatter_by("scatter_mul", "multiplied into it", _combining(ops.Multiply()))
scatter_min = _scatter_by("scatter_min", "where they are smaller (NaN wins)", _combining(ops.Minimum()))
scatter_max = _scatter_by("scatter_max", "where they are larger (NaN wins)", _combining(ops.Maximum()))


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
    index_vector_dim: int | None = None,
) -> Array:
    """`operand` with `func` applied to the elements of each window, once for each window that an element is in.

    func: scalar -> scalar.  update_shape: the shape that updates would have.  Otherwise as scatter_with.
    """
    (node,), backend = operands("scatter", operand)
    unused = full(check_sizes(update_shape), _unused(node.dtype), node.dtype)
    return scatter_with(  # type: ignore[no-any-return]
        wrap(node, backend),
        scatter_indices,
        wrap(unused._node, backend),
        lambda element, _: func(element),
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
        index_vector_dim=index_vector_dim,
    )


def _unused(dtype: np.dtype[Any]) -> Any:
    return False if dtype in BOOL else 0


# --- dynamic slices ----------------------------------------------------------------------------------


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The window of `slice_sizes` that starts at `start_indices`, moved so far that it lies in the operand.

    start_indices: one integer for each dimension, as a sequence of scalars or a 1-d array.
    allow_negative_indices: whether negative ones count from the end (for all dimensions, or for each); if not
        they are out of bounds, that is, 0.

    Returns an array of shape `slice_sizes`.  Raises ShapeError [C2]-[C4], DTypeError [I2].
    Source: XLA's DynamicSlice, with jax.lax's arguments.
    """
    (node,), first = operands("dynamic_slice", operand)
    starts, second = _start_nodes("dynamic_slice", node, start_indices, allow_negative_indices)
    op = ops.DynamicSlice(integers("dynamic_slice", "slice_sizes", slice_sizes))
    return wrap(Node(op, (node, *starts)), merged("dynamic_slice", first, second))


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """`operand` with the window at `start_indices` replaced by `update`, moved so far that it lies in it.

    update: array of the operand's element type and rank, in no dimension larger.
    start_indices, allow_negative_indices: as in dynamic_slice.

    Raises ShapeError [C3]-[C6], DTypeError [I2], [C2].  Source: XLA's DynamicUpdateSlice, with jax.lax's arguments.
    """
    (node, new), first = operands("dynamic_update_slice", operand, update)
    starts, second = _start_nodes("dynamic_update_slice", node, start_indices, allow_negative_indices)
    op = ops.DynamicUpdateSlice()
    return wrap(Node(op, (node, new, *starts)), merged("dynamic_update_slice", first, second))


def _start_nodes(
    name: str, operand: Node, start_indices: Any, allow_negative: bool | Sequence[bool]
) -> tuple[tuple[Node, ...], AbstractBackend | None]:
    values = _scalars_of(name, start_indices)
    shape = operand.shape
    allowed = [allow_negative] * len(values) if isinstance(allow_negative, bool) else list(allow_negative)
    if len(allowed) != len(values):
        raise ShapeError(f"{name}: wanted {len(values)} of allow_negative_indices, got {len(allowed)}")
    if len(values) != len(shape):
        # The op's own rule says what is wrong.
        return operands(name, *values) if values else ((), None)
    known = [
        value + size if flag and type(value) is int and value < 0 else value
        for value, size, flag in zip(values, shape, allowed, strict=True)
    ]
    nodes, backend = operands(name, *known) if known else ((), None)
    if not any(
        node.dtype in SIGNED and node.shape == () and type(v) is not int
        for node, v in zip(nodes, values, strict=True)
    ):
        return nodes, backend
    arrays = [wrap(node, backend) for node in nodes]
    if any(
        size > info(node.dtype).max for size, node in zip(shape, nodes, strict=True) if node.dtype in SIGNED
    ):
        arrays = [convert_element_type(array, np.int64) for array in arrays]
    return tuple(
        _from_end(array, size)._node
        if flag and type(value) is not int and array.dtype in SIGNED
        else array._node
        for array, size, flag, value in zip(arrays, shape, allowed, values, strict=True)
    ), backend


def _from_end(start: Array, size: int) -> Array:
    """`start`, or `start + size` where it is negative."""
    return select(lt(start, 0), add(start, size), start)


def _scalars_of(name: str, start_indices: Any) -> list[Any]:
    """The start indices one by one."""
    if is_array(start_indices) or isinstance(start_indices, np.ndarray):
        (node,), _ = operands(name, start_indices)
        if len(node.shape) != 1:
            raise ShapeError(
                f"{name}: wanted one start index for each dimension, got an array {node.tensor_type.short()}"
            )
        if isinstance(start_indices, np.ndarray):
            return list(start_indices)
        return [squeeze(index_in_dim(start_indices, at)) for at in range(node.shape[0])]
    if not isinstance(start_indices, Sequence):
        raise InputError(
            f"{name}: wanted a sequence of ints or scalar arrays for start_indices, got {start_indices!r}"
        )
    return list(start_indices)


def _in_dim(
    name: str, operand: ArrayLike, start: ArrayLike, axis: int
) -> tuple[Ints, int, list[Any], list[bool]]:
    """The operand's shape, the axis, and starts and flags that are `start` and True there, else 0 and False."""
    (node,), _ = operands(name, operand)
    dim = normalize_axis(integer(name, "axis", axis), len(node.shape))
    starts: list[Any] = [0] * len(node.shape)
    flags = [False] * len(node.shape)
    starts[dim], flags[dim] = start, True
    return node.shape, dim, starts, flags


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """operand[start_index : start_index + slice_size] along `axis`, moved so far that it lies in the operand."""
    shape, dim, starts, flags = _in_dim("dynamic_slice_in_dim", operand, start_index, axis)
    size = integer("dynamic_slice_in_dim", "slice_size", slice_size)
    flags[dim] = allow_negative_indices
    return dynamic_slice(
        operand, starts, (*shape[:dim], size, *shape[dim + 1 :]), allow_negative_indices=flags
    )


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The slice at `index` along `axis`; the dimension stays with size 1 unless `keepdims` is false."""
    found = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return found if keepdims else squeeze(found, (axis,))


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`operand` with `update` in place of what starts at `start_index` along `axis`, and at 0 along the others."""
    _, dim, starts, flags = _in_dim("dynamic_update_slice_in_dim", operand, start_index, axis)
    flags[dim] = allow_negative_indices
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=flags)


def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """`operand` with the slice at `index` along `axis` replaced by `update`, which may lack that dimension."""
    name = "dynamic_update_index_in_dim"
    shape, dim, _, _ = _in_dim(name, operand, index, axis)
    (_, new), backend = operands(name, operand, update)
    slice_: ArrayLike = wrap(new, backend)
    if len(new.shape) == len(shape) - 1:
        slice_ = expand_dims(slice_, (dim,))
    return dynamic_update_slice_in_dim(
        operand, slice_, index, dim, allow_negative_indices=allow_negative_indices
    )
