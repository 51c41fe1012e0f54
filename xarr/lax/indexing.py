"""Windows at positions known only when the program runs: gather and scatter.

Names, argument order and modes are `jax.lax`'s.  Beyond it there are `index_vector_dim=` (jax.lax wants
the index vectors in the last dimension of the indices), `scatter_with` for any computation and any number
of arrays, and in `xarr.lax.rows_and_segments` functions that write the dimension numbers themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

import numpy as np

from xarr import tree
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import BOOL, INTEGER, UNSIGNED, info
from xarr.errors import InputError, ShapeError, ValueRangeError
from xarr.ir import ops
from xarr.ir.computations import combiner, second
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.types import Ints
from xarr.lax.core import (
    ArrayLike,
    broadcast_node,
    check_callable,
    integer,
    integers,
    operands,
)
from xarr.lax.creation import full, full_like
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.lax.elementwise import bitwise_and, clamp, ge, le, select
from xarr.lax.movement import broadcast_in_dim
from xarr.lax.reduction import reduce_and
from xarr.lax.tracing import record_scalar, results_of, tuple_of
from xarr.runtime.handles import wrap
from xarr.runtime.small_ops import apply_op
from xarr.shapes import check_sizes
from xarr.tree import Structure


class GatherDimensionNumbers(NamedTuple):
    """Which dimension is which in a gather.  Source: jax.lax, XLA's Gather.

    * `offset_dims` - dimensions of the result that run over the window, in increasing order,
    * `collapsed_slice_dims` - dimensions of the operand, of window size 1, that the result has not,
    * `start_index_map` - for each component of an index vector, the operand dimension that it indexes,
    * `operand_batching_dims`, `start_indices_batching_dims` - dimensions that run along in both.
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
    * `scatter_dims_to_operand_dims` - for each component of an index vector, the dimension that it indexes,
    * `operand_batching_dims`, `scatter_indices_batching_dims` - dimensions that run along in both.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


class GatherScatterMode(Enum):
    """The rule for windows that do not lie in the operand as a whole.  Source: jax.lax.

    * `CLIP` - they are moved to the nearest start where they do,
    * `FILL_OR_DROP` - in a gather they are filled with a constant, in a scatter left out,
    * `PROMISE_IN_BOUNDS` - there are none; if there are, XLA's rule holds: gather clips, scatter drops.
    """

    CLIP = auto()
    FILL_OR_DROP = auto()
    PROMISE_IN_BOUNDS = auto()

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """A mode from its name: "clip", "fill" or "drop" (also None), "promise_in_bounds"."""
        if isinstance(mode, GatherScatterMode):
            return mode
        if not isinstance(mode, str | None) or mode not in _MODES:
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


def vector_dimension(name: str, rank: int, index_vector_dim: int | None) -> int:
    """Where the index vectors stand: the last dimension unless another one is given."""
    if index_vector_dim is not None:
        return integer(name, "index_vector_dim", index_vector_dim)
    if not rank:
        raise ShapeError(
            f"{name}: indices without dimensions have no index vectors; "
            "index_vector_dim=0 takes them as scalars"
        )
    return rank - 1


# --- gather ------------------------------------------------------------------------------------------


@names_errors
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
    fill_value: for mode "fill"; by default NaN, the least value of signed and the greatest of unsigned
        integers, True of bools.
    unique_indices: accepted as in jax.lax, where it matters to derivatives alone.
    indices_are_sorted: a promise that backends may use; nothing is checked.

    Returns an array of the operand's type, with the dimensions `offset_dims` running over the window and the
    others over the indices.  A negative index is out of bounds, it does not count from the end.
    Raises ShapeError [C1]-[C21], DTypeError [I2] for indices that are no integers.
    Source: XLA's Gather, StableHLO's gather; modes as jax.lax has them.
    """
    (node,) = operands("gather", operand)
    (indices,) = operands("gather", start_indices)
    offset, collapsed, index_map, batching, own_batching = dimension_fields(
        "gather", dimension_numbers, GatherDimensionNumbers
    )
    vector_dim = vector_dimension("gather", len(indices.shape), index_vector_dim)
    sizes = integers("gather", "slice_sizes", slice_sizes)
    op = ops.Gather(
        offset, collapsed, batching, own_batching, index_map, vector_dim, sizes, bool(indices_are_sorted)
    )
    result = apply_op(op, (node, indices))
    if mode is None or GatherScatterMode.from_any(mode) is not GatherScatterMode.FILL_OR_DROP:
        return result
    refuse_dynamic(
        'gather with mode "fill"', operand, "the default, which clamps to the live part", index_map
    )
    windows = op.windows(node.tensor_type, indices.tensor_type)
    last = _last_starts(indices, windows.last_starts, vector_dim)
    inside = bitwise_and(ge(wrap(indices), 0), le(wrap(indices), wrap(last)))
    if vector_dim < len(indices.shape):
        inside = reduce_and(inside, (vector_dim,))
    inside = broadcast_in_dim(inside, windows.windowed_shape, windows.batch_dims)
    value = default_fill(node.dtype) if fill_value is None else fill_value
    return select(inside, result, full_like(result, value))


def default_fill(dtype: np.dtype[Any]) -> Any:
    if dtype in INTEGER:
        return int(info(dtype).max if dtype in UNSIGNED else info(dtype).min)
    return True if dtype in BOOL else float("nan")


def _last_starts(indices: Node, last: Ints, vector_dim: int) -> Node:
    """The greatest starts with which windows fit, in the shape and element type of the indices.

    What the type cannot hold cannot be exceeded either.  It is 0 where the operand has no elements.
    """
    limit = int(info(indices.dtype).max)
    held = np.array([min(max(start, 0), limit) for start in last], indices.dtype)
    if vector_dim == len(indices.shape):
        return broadcast_node(Node(ops.Constant.of(held[0])), indices.shape, ())
    return broadcast_node(Node(ops.Constant.of(held)), indices.shape, (vector_dim,))


# --- scatter -----------------------------------------------------------------------------------------


@names_errors
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
    """`operands` with windows of `updates` combined in by `computation`, for one array or a pytree of N.

    operands: array, or pytree of arrays, of one shape.
    scatter_indices: integers; each index vector, along the last dimension or along `index_vector_dim` (which
        may be their rank: scalars), is where a window goes.
    updates: an array for each operand, of its element type, in the same structure.
    computation: (elements, updates) -> elements, on scalars, in the structure of `operands`; it may use
        nothing but its arguments.
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
    nodes = _pairs(arrays, new)
    graph = _update_graph(computation, structure, [node.dtype for node in nodes[: len(arrays)]])
    options = (indices_are_sorted, unique_indices, mode, index_vector_dim)
    results = _scatter_nodes(nodes, scatter_indices, graph, dimension_numbers, options)
    return tree.unflatten(structure, results)


Options = tuple[bool, bool, Mode, int | None]


def _pairs(arrays: Sequence[Any], updates: Sequence[Any]) -> list[Node]:
    """The nodes of arrays, then of updates, where Python scalars take their array's element type."""
    pairs = [operands("scatter", array, update) for array, update in zip(arrays, updates, strict=True)]
    return [array for array, _ in pairs] + [update for _, update in pairs]


def _update_graph(
    computation: Callable[..., Any], structure: Structure, dtypes: Sequence[np.dtype[Any]]
) -> Graph:
    recorded = record_scalar(
        "scatter", "C23", computation, tuple_of(structure, structure), [*dtypes, *dtypes]
    )
    if recorded.structure != structure:
        raise ShapeError(
            "scatter [C23]: the computation must return the structure that it updates: "
            f"{tree.difference(structure, recorded.structure)}"
        )
    return recorded.with_dtypes(dtypes).graph


def _scatter_nodes(
    nodes: Sequence[Node],
    scatter_indices: ArrayLike,
    graph: Graph,
    dimension_numbers: ScatterDimensionNumbers,
    options: Options,
) -> list[Array]:
    """The results of a scatter of arrays and updates, which are the first and the second half of `nodes`."""
    (indices,) = operands("scatter", scatter_indices)
    count = len(nodes) // 2
    is_sorted, unique, mode, index_vector_dim = options
    window, inserted, index_map, batching, own_batching = dimension_fields(
        "scatter", dimension_numbers, ScatterDimensionNumbers
    )
    vector_dim = vector_dimension("scatter", len(indices.shape), index_vector_dim)
    op = ops.Scatter(
        window, inserted, batching, own_batching, index_map, vector_dim, graph, bool(is_sorted), bool(unique)
    )
    if GatherScatterMode.from_any(mode) is GatherScatterMode.CLIP:
        op.infer(*[node.type for node in (*nodes[:count], indices, *nodes[count:])])
        windows = op.windows(nodes[0].tensor_type, indices.tensor_type, nodes[count].tensor_type)
        last = _last_starts(indices, windows.last_starts, vector_dim)
        indices = clamp(np.zeros((), indices.dtype)[()], wrap(indices), wrap(last))._node
    everything = (*nodes[:count], indices, *nodes[count:])
    return results_of(op, everything, count)


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
        nodes = _pairs([operand], [updates])
        options = (indices_are_sorted, unique_indices, mode, index_vector_dim)
        graph = computation(nodes[0].dtype)
        return _scatter_nodes(nodes, scatter_indices, graph, dimension_numbers, options)[0]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"`operand` with windows of `updates` {what}.\n\n"
        "operand: array.\n"
        "scatter_indices: integers, index vectors along the last dimension or `index_vector_dim`.\n"
        "updates: array of the operand's element type, or a Python scalar if that fits.\n"
        "mode, unique_indices, indices_are_sorted: as in scatter_with.\n\n"
        "Elements are combined in the operand's type, windows in row-major order of the scatter indices.\n"
        "Raises ShapeError [C1]-[C22], DTypeError [I2], [C6].\n\n"
        "Source: XLA's Scatter, with jax.lax's arguments."
    )
    return names_errors(function)


def _combining(op: Op) -> Callable[[np.dtype[Any]], Graph]:
    return lambda dtype: combiner(op, dtype)


scatter = _scatter_by("scatter", "in place of what stood there; of overlapping ones the last stays", second)
scatter_add = _scatter_by("scatter_add", "added", _combining(ops.Add()))
scatter_sub = _scatter_by("scatter_sub", "subtracted", _combining(ops.Subtract()))
scatter_mul = _scatter_by("scatter_mul", "multiplied into it", _combining(ops.Multiply()))
scatter_min = _scatter_by("scatter_min", "where they are smaller (NaN wins)", _combining(ops.Minimum()))
scatter_max = _scatter_by("scatter_max", "where they are larger (NaN wins)", _combining(ops.Maximum()))


@names_errors
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
    """`operand` with `func` applied to the elements of each window, once for each that an element is in.

    func: scalar -> scalar.  update_shape: the shape that updates would have.  Otherwise as scatter_with.
    Source: jax.lax.scatter_apply.
    """
    check_callable("scatter_apply", "func", func)
    (node,) = operands("scatter_apply", operand)
    unused = full(check_sizes(update_shape), _unread_value(node.dtype), node.dtype)
    return scatter_with(  # type: ignore[no-any-return]
        wrap(node),
        scatter_indices,
        wrap(unused._node),
        lambda element, _: func(element),
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
        index_vector_dim=index_vector_dim,
    )


def _unread_value(dtype: np.dtype[Any]) -> Any:
    return False if dtype in BOOL else 0
