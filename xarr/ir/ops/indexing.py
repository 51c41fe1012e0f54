"""Operations that read and write windows at positions known only when the program runs.

The labels of the constraints are those of the StableHLO specification; `I2` is the row of its table of
inputs that wants integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xarr.base.frozen_dataclasses import record
from xarr.dtypes import INTEGER
from xarr.ir.graph import Graph
from xarr.ir.op import Op, operation
from xarr.ir.ops.reduction import check_signature
from xarr.ir.stablehlo.literals import ints
from xarr.ir.types import Ints, TensorType, Type, pack_types

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer


@record
class Windows:
    """Windows of an operand that start at index vectors: the dimensions that gather and scatter share.

    The *batch* is the start indices without their index vector dimension: one window for each index of it.
    *Windowed* are the arrays that hold the windows, the result of a gather or the updates of a scatter.

    * `operand_shape`, `sizes` - the operand and the window in it, in the operand's dimensions,
    * `kept_dims` - the operand dimensions that windowed arrays have, each in `window_dims` there,
    * `batch_shape`, `batch_dims` - the sizes of the batch, and its dimensions in windowed arrays,
    * `index_map` - the operand dimension that component k of an index vector indexes,
    * `index_vector_dim` - where the components stand; the rank of the start indices if they are scalars,
    * `batching` - pairs of an operand dimension and the position in the batch that it runs along with.
    """

    operand_shape: Ints
    sizes: Ints
    kept_dims: Ints
    window_dims: Ints
    batch_shape: Ints
    batch_dims: Ints
    index_map: Ints
    index_vector_dim: int
    batching: tuple[tuple[int, int], ...]

    @property
    def window_shape(self) -> Ints:
        """The sizes of a window in the kept dimensions."""
        return tuple(self.sizes[dim] for dim in self.kept_dims)

    @property
    def windowed_shape(self) -> Ints:
        """The shape of windowed arrays."""
        sizes = dict(zip(self.batch_dims, self.batch_shape, strict=True))
        sizes.update(zip(self.window_dims, self.window_shape, strict=True))
        return tuple(sizes[dim] for dim in range(len(sizes)))

    @property
    def last_starts(self) -> Ints:
        """The greatest start, for each component of an index vector, with which the window fits."""
        return tuple(self.operand_shape[dim] - self.sizes[dim] for dim in self.index_map)


def _rest(rank: int, *groups: Ints) -> Ints:
    """The dimensions of an array of this rank that are in none of the groups."""
    return tuple(dim for dim in range(rank) if not any(dim in group for group in groups))


def _batch_shape(indices: TensorType, index_vector_dim: int) -> Ints:
    return indices.shape[:index_vector_dim] + indices.shape[index_vector_dim + 1 :]


def _vector_size(indices: TensorType, index_vector_dim: int) -> int:
    return (*indices.shape, 1)[index_vector_dim]


def _check_unique(op: Op, label: str, name: str, dims: Ints) -> None:
    if len(set(dims)) != len(dims):
        op.fail(label, f"wanted each dimension at most once in {name}, got {dims}")


def _check_sorted(op: Op, label: str, name: str, dims: Ints) -> None:
    if list(dims) != sorted(dims):
        op.fail(label, f"wanted {name} in increasing order, got {dims}; {tuple(sorted(dims))} is")


def _check_range(op: Op, label: str, name: str, dims: Ints, rank: int) -> None:
    if any(not 0 <= dim < rank for dim in dims):
        op.fail(label, f"wanted {name} in [0, {rank}), got {dims}")


def _check_index_vectors(
    op: Op, labels: tuple[str, str], indices: TensorType, vector_dim: int, name: str, map_: Ints
) -> None:
    """Check that they are integers, along a dimension that there is, one for each dimension that they index."""
    if indices.dtype not in INTEGER:
        op.fail_dtype("I2", f"wanted integer indices, got {indices.short()}; convert_element_type them")
    if not 0 <= vector_dim <= indices.rank:
        op.fail(
            labels[0],
            f"wanted index_vector_dim in [0, {indices.rank}] for indices {indices.short()}, got {vector_dim}",
        )
    size = _vector_size(indices, vector_dim)
    if len(map_) != size:
        scalars = "" if vector_dim < indices.rank else "; indices without that dimension are scalars"
        op.fail(
            labels[1],
            f"wanted {name} of {size} entries, the size of dimension {vector_dim} of {indices.short()}, "
            f"got {map_}{scalars}",
        )


def _check_batching(
    op: Op,
    labels: Sequence[str],
    operand: TensorType,
    indices: TensorType,
    vector_dim: int,
    names: tuple[str, str],
    dims: tuple[Ints, Ints],
) -> None:
    """The five rules for the dimensions of indices that run along with dimensions of the operand."""
    theirs, own = dims
    _check_unique(op, labels[0], names[1], own)
    _check_range(op, labels[1], names[1], own, indices.rank)
    if vector_dim in own:
        op.fail(
            labels[2], f"index_vector_dim {vector_dim} cannot be a batching dimension, got {names[1]} {own}"
        )
    if len(theirs) != len(own):
        op.fail(labels[3], f"wanted as many {names[0]} as {names[1]}, got {theirs} and {own}")
    for a, b in zip(theirs, own, strict=True):
        if operand.shape[a] != indices.shape[b]:
            op.fail(
                labels[4],
                f"batching dimensions {a} of {operand.short()} and {b} of {indices.short()} differ in size: "
                f"{operand.shape[a]} and {indices.shape[b]}",
            )


def _batching(operand_dims: Ints, indices_dims: Ints, vector_dim: int) -> tuple[tuple[int, int], ...]:
    return tuple((a, b - (b > vector_dim)) for a, b in zip(operand_dims, indices_dims, strict=True))


def _numbers(dialect_name: str, fields: Sequence[tuple[str, Ints]], index_vector_dim: int) -> str:
    """`#stablehlo.gather<offset_dims = [1], …, index_vector_dim = 1>`; MLIR leaves out empty lists, and 0."""
    parts = [f"{name} = {ints(dims)}" for name, dims in fields if dims]
    if index_vector_dim:
        parts.append(f"index_vector_dim = {index_vector_dim}")
    return f"#stablehlo.{dialect_name}<{', '.join(parts)}>"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


@operation
class Gather(Op):
    """Windows of the operand, one for each index vector of the start indices.

    Operands: array, start indices.  result[b, w] = operand[start(b) + w]: the result's dimensions
    `offset_dims` run over the window, the others over the start indices.  Starts are clamped so that the
    whole window lies in the operand.  A window that has size 0 along a dimension which the result has not
    reads as 0 (or false).

    * I2: the start indices are integers.
    * C1: each operand dimension is an offset, a collapsed or a batching one.
    * C2: index_vector_dim lies in the start indices' rank, or is that rank, for scalars.
    * C3: start_index_map has one entry for each component of an index vector.
    * C4: offset_dims strictly increase.
    * C5: they lie in the result's rank.
    * C6: no dimension is twice among collapsed_slice_dims and operand_batching_dims.
    * C7: collapsed_slice_dims increase.
    * C8: they lie in the operand's rank.
    * C9: slice_sizes there are at most 1.
    * C10: operand_batching_dims increase.
    * C11: they lie in the operand's rank.
    * C12: slice_sizes there are at most 1.
    * C13: start_indices_batching_dims are distinct.
    * C14: they lie in the start indices' rank.
    * C15: index_vector_dim is none of them.
    * C16: there are as many batching dimensions on both sides.
    * C17: their sizes agree.
    * C18: no dimension is twice among start_index_map and operand_batching_dims.
    * C19: start_index_map lies in the operand's rank.
    * C20: slice_sizes has one entry for each operand dimension.
    * C21: 0 <= slice_sizes <= the operand's sizes.
    """

    offset_dims: Ints
    collapsed_slice_dims: Ints
    operand_batching_dims: Ints
    start_indices_batching_dims: Ints
    start_index_map: Ints
    index_vector_dim: int
    slice_sizes: Ints
    indices_are_sorted: bool = False
    name = "stablehlo.gather"

    def infer(self, *operands: Type) -> Type:
        operand, indices = self.tensors(operands, 2)
        groups = (self.offset_dims, self.collapsed_slice_dims, self.operand_batching_dims)
        if sum(map(len, groups)) != operand.rank:
            self.fail(
                "C1",
                f"wanted {operand.rank} offset, collapsed and batching dimensions together for "
                f"{operand.short()}, got {groups}",
            )
        _check_index_vectors(
            self, ("C2", "C3"), indices, self.index_vector_dim, "start_index_map", self.start_index_map
        )
        rank = len(_batch_shape(indices, self.index_vector_dim)) + len(self.offset_dims)
        _check_unique(self, "C4", "offset_dims", self.offset_dims)
        _check_sorted(self, "C4", "offset_dims", self.offset_dims)
        _check_range(self, "C5", "offset_dims", self.offset_dims, rank)
        if len(self.slice_sizes) != operand.rank:
            self.fail(
                "C20", f"wanted {operand.rank} slice_sizes for {operand.short()}, got {self.slice_sizes}"
            )
        self._check_left_out(operand)
        names = ("operand_batching_dims", "start_indices_batching_dims")
        dims = (self.operand_batching_dims, self.start_indices_batching_dims)
        _check_batching(
            self, ("C13", "C14", "C15", "C16", "C17"), operand, indices, self.index_vector_dim, names, dims
        )
        _check_unique(
            self,
            "C18",
            "start_index_map and operand_batching_dims",
            self.start_index_map + self.operand_batching_dims,
        )
        _check_range(self, "C19", "start_index_map", self.start_index_map, operand.rank)
        if any(not 0 <= size <= whole for size, whole in zip(self.slice_sizes, operand.shape, strict=True)):
            self.fail("C21", f"wanted 0 <= slice_sizes <= {operand.shape}, got {self.slice_sizes}")
        return operand.with_shape(self.windows(operand, indices).windowed_shape)

    def _check_left_out(self, operand: TensorType) -> None:
        """The operand dimensions that the result has not."""
        both = self.collapsed_slice_dims + self.operand_batching_dims
        _check_unique(self, "C6", "collapsed_slice_dims and operand_batching_dims", both)
        for labels, name, dims in (
            (("C7", "C8", "C9"), "collapsed_slice_dims", self.collapsed_slice_dims),
            (("C10", "C11", "C12"), "operand_batching_dims", self.operand_batching_dims),
        ):
            _check_sorted(self, labels[0], name, dims)
            _check_range(self, labels[1], name, dims, operand.rank)
            if any(self.slice_sizes[dim] > 1 for dim in dims):
                self.fail(
                    labels[2],
                    f"wanted slice_sizes of at most 1 in {name} {dims}, got {self.slice_sizes}; make the "
                    "others offset dimensions",
                )

    def windows(self, operand: TensorType, indices: TensorType) -> Windows:
        """Where the windows lie."""
        batch = _batch_shape(indices, self.index_vector_dim)
        return Windows(
            operand.shape,
            self.slice_sizes,
            _rest(operand.rank, self.collapsed_slice_dims, self.operand_batching_dims),
            self.offset_dims,
            batch,
            _rest(len(batch) + len(self.offset_dims), self.offset_dims),
            self.start_index_map,
            self.index_vector_dim,
            _batching(self.operand_batching_dims, self.start_indices_batching_dims, self.index_vector_dim),
        )

    def assembly(self, node: Node, printer: Printer) -> str:
        names = (
            "offset_dims",
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "start_index_map",
        )
        numbers = _numbers("gather", [(name, getattr(self, name)) for name in names], self.index_vector_dim)
        sizes = f"array<i64{': ' if self.slice_sizes else ''}{ints(self.slice_sizes)[1:-1]}>"
        promise = f"indices_are_sorted = {_boolean(self.indices_are_sorted)}"
        attributes = f"dimension_numbers = {numbers}, {promise}, slice_sizes = {sizes}"
        return f'"{self.name}"({printer.names(node.operands)}) <{{{attributes}}}> : {printer.signature(node)}'


@operation
class Scatter(Op):
    """N arrays with windows combined into them by `update_computation`, one for each index vector.

    Operands: N arrays, scatter indices, N arrays of updates.  The updates' dimensions `update_window_dims`
    run over the window, the others over the scatter indices.  A window that does not lie in the operand as a
    whole is left out, as XLA does it.  Windows are applied one after the other in row-major order of the
    scatter indices, so that overlapping ones have one result on every backend; where the window dimensions
    of the updates come last, this is the row-major order of the updates.

    * I2: the scatter indices are integers.
    * C1: the arrays have one shape.
    * C2: each dimension of theirs is a window, an inserted or a batching one.
    * C3: the updates have one shape.
    * C4: it is that of the scatter indices without index vectors in the scatter dimensions, and no larger
      than the arrays' in the window dimensions.
    * C5: N >= 1 arrays and as many updates.
    * C6: updates have the element types of the arrays.
    * C7: update_window_dims strictly increase.
    * C8: they lie in the updates' rank.
    * C9: no dimension is twice among inserted_window_dims and input_batching_dims.
    * C10: inserted_window_dims increase.
    * C11: they lie in the arrays' rank.
    * C12: input_batching_dims increase.
    * C13: they lie in the arrays' rank.
    * C14: scatter_indices_batching_dims are distinct.
    * C15: they lie in the scatter indices' rank.
    * C16: index_vector_dim is none of them.
    * C17: there are as many batching dimensions on both sides.
    * C18: their sizes agree.
    * C19: scatter_dims_to_operand_dims has one entry for each component of an index vector.
    * C20: no dimension is twice among scatter_dims_to_operand_dims and input_batching_dims.
    * C21: scatter_dims_to_operand_dims lies in the arrays' rank.
    * C22: index_vector_dim lies in the scatter indices' rank, or is that rank, for scalars.
    * C23: the computation maps N elements and N updates, scalars of the arrays' types, to N such elements.
    """

    update_window_dims: Ints
    inserted_window_dims: Ints
    input_batching_dims: Ints
    scatter_indices_batching_dims: Ints
    scatter_dims_to_operand_dims: Ints
    index_vector_dim: int
    update_computation: Graph
    indices_are_sorted: bool = False
    unique_indices: bool = False
    name = "stablehlo.scatter"
    has_several_results = True

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.update_computation,)

    def infer(self, *operands: Type) -> Type:
        inputs, indices, updates = self._groups(self.tensors(operands))
        first, map_ = inputs[0], self.scatter_dims_to_operand_dims
        groups = (self.update_window_dims, self.inserted_window_dims, self.input_batching_dims)
        if sum(map(len, groups)) != first.rank:
            self.fail(
                "C2",
                f"wanted {first.rank} window, inserted and batching dimensions together for {first.short()}, "
                f"got {groups}",
            )
        _check_index_vectors(
            self, ("C22", "C19"), indices, self.index_vector_dim, "scatter_dims_to_operand_dims", map_
        )
        _check_unique(self, "C7", "update_window_dims", self.update_window_dims)
        _check_sorted(self, "C7", "update_window_dims", self.update_window_dims)
        _check_range(self, "C8", "update_window_dims", self.update_window_dims, updates[0].rank)
        both = self.inserted_window_dims + self.input_batching_dims
        _check_unique(self, "C9", "inserted_window_dims and input_batching_dims", both)
        _check_sorted(self, "C10", "inserted_window_dims", self.inserted_window_dims)
        _check_range(self, "C11", "inserted_window_dims", self.inserted_window_dims, first.rank)
        _check_sorted(self, "C12", "input_batching_dims", self.input_batching_dims)
        _check_range(self, "C13", "input_batching_dims", self.input_batching_dims, first.rank)
        names = ("input_batching_dims", "scatter_indices_batching_dims")
        dims = (self.input_batching_dims, self.scatter_indices_batching_dims)
        _check_batching(
            self, ("C14", "C15", "C16", "C17", "C18"), first, indices, self.index_vector_dim, names, dims
        )
        _check_unique(
            self,
            "C20",
            "scatter_dims_to_operand_dims and input_batching_dims",
            map_ + self.input_batching_dims,
        )
        _check_range(self, "C21", "scatter_dims_to_operand_dims", map_, first.rank)
        self._check_updates(first, indices, updates[0])
        scalars = tuple(TensorType((), array.dtype) for array in inputs)
        check_signature(self, "C23", self.update_computation, scalars * 2, scalars)
        return pack_types(inputs)

    def _groups(
        self, tensors: tuple[TensorType, ...]
    ) -> tuple[tuple[TensorType, ...], TensorType, tuple[TensorType, ...]]:
        """Arrays, indices and updates, of which arrays and updates agree among themselves and in number."""
        count = len(tensors) // 2
        shown = ", ".join(tensor.short() for tensor in tensors)
        if len(tensors) != 2 * count + 1 or not count:
            self.fail("C5", f"wanted N >= 1 arrays, indices and N updates, got {shown}")
        inputs, updates = tensors[:count], tensors[count + 1 :]
        for label, word, group in (("C1", "arrays", inputs), ("C3", "updates", updates)):
            if any(array.shape != group[0].shape for array in group):
                self.fail(
                    label, f"wanted {word} of one shape, got {', '.join(array.short() for array in group)}"
                )
        for array, update in zip(inputs, updates, strict=True):
            if array.dtype != update.dtype:
                self.fail_dtype(
                    "C6",
                    f"wanted updates of {array.dtype} for {array.short()}, got {update.short()}; "
                    "convert_element_type them",
                )
        return inputs, tensors[count], updates

    def _check_updates(self, operand: TensorType, indices: TensorType, updates: TensorType) -> None:
        batch = _batch_shape(indices, self.index_vector_dim)
        rank = len(batch) + len(self.update_window_dims)
        if updates.rank != rank:
            self.fail(
                "C4",
                f"wanted updates of rank {rank}, {len(batch)} of indices and {len(self.update_window_dims)} "
                f"of windows, got {updates.short()}",
            )
        scatter_dims = _rest(rank, self.update_window_dims)
        sizes = tuple(updates.shape[dim] for dim in scatter_dims)
        if sizes != batch:
            self.fail(
                "C4",
                f"wanted sizes {batch} of the indices in dimensions {scatter_dims} of updates "
                f"{updates.short()}, got {sizes}",
            )
        kept = _rest(operand.rank, self.inserted_window_dims, self.input_batching_dims)
        for dim, own in zip(self.update_window_dims, kept, strict=True):
            if updates.shape[dim] > operand.shape[own]:
                self.fail(
                    "C4",
                    f"window dimension {dim} of updates {updates.short()} is larger than dimension {own} of "
                    f"{operand.short()}",
                )

    def windows(self, operand: TensorType, indices: TensorType, updates: TensorType) -> Windows:
        """Where the windows lie."""
        batch = _batch_shape(indices, self.index_vector_dim)
        kept = _rest(operand.rank, self.inserted_window_dims, self.input_batching_dims)
        own = dict(zip(kept, self.update_window_dims, strict=True))
        return Windows(
            operand.shape,
            tuple(updates.shape[own[dim]] if dim in own else 1 for dim in range(operand.rank)),
            kept,
            self.update_window_dims,
            batch,
            _rest(updates.rank, self.update_window_dims),
            self.scatter_dims_to_operand_dims,
            self.index_vector_dim,
            _batching(self.input_batching_dims, self.scatter_indices_batching_dims, self.index_vector_dim),
        )

    def assembly(self, node: Node, printer: Printer) -> str:
        names = (
            "update_window_dims",
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims",
        )
        numbers = _numbers("scatter", [(name, getattr(self, name)) for name in names], self.index_vector_dim)
        attributes = (
            f"indices_are_sorted = {_boolean(self.indices_are_sorted)}, "
            f"scatter_dimension_numbers = {numbers}, "
            f"unique_indices = {_boolean(self.unique_indices)}"
        )
        return printer.generic(
            node, attributes, [printer.labelled_region(self.update_computation)], node.operands
        )


def _check_starts(
    op: Op, labels: tuple[str, str], operand: TensorType, starts: tuple[TensorType, ...]
) -> None:
    """One integer scalar for each dimension, all of one type."""

    def describe() -> str:
        return ", ".join(start.short() for start in starts)

    if len(starts) != operand.rank:
        op.fail(labels[0], f"wanted {operand.rank} start indices for {operand.short()}, got {len(starts)}")
    if any([start.dtype not in INTEGER for start in starts]):
        op.fail_dtype("I2", f"wanted integer start indices, got {describe()}")
    if any([start.shape or start is not starts[0] for start in starts]):
        op.fail(
            labels[1],
            f"wanted scalar start indices of one type, got {describe()}; convert_element_type the others",
        )


@operation
class DynamicSlice(Op):
    """The window of `slice_sizes` at a start that is known when the program runs.

    Operands: array, one integer scalar for each of its dimensions.  Starts are clamped so that the window
    lies in the array.

    * I2: the start indices are integers.
    * C2: one start index and one slice size for each dimension.
    * C3: the start indices are scalars of one type.
    * C4: 0 <= slice_sizes <= the operand's sizes.
    """

    slice_sizes: Ints
    name = "stablehlo.dynamic_slice"

    def infer(self, *operands: Type) -> Type:
        operand, *starts = self.tensors(operands)
        _check_starts(self, ("C2", "C3"), operand, tuple(starts))
        if len(self.slice_sizes) != operand.rank:
            self.fail(
                "C2", f"wanted {operand.rank} slice_sizes for {operand.short()}, got {self.slice_sizes}"
            )
        if any(not 0 <= size <= whole for size, whole in zip(self.slice_sizes, operand.shape, strict=True)):
            self.fail("C4", f"wanted 0 <= slice_sizes <= {operand.shape}, got {self.slice_sizes}")
        return operand.with_shape(self.slice_sizes)

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node, f"sizes = {ints(self.slice_sizes)}")


@operation
class DynamicUpdateSlice(Op):
    """The operand with a window of it replaced, at a start that is known when the program runs.

    Operands: array, update, one integer scalar for each dimension.  Starts are clamped so that the update
    lies in the array.

    * I2: the start indices are integers.
    * C2: operand and update have one element type.
    * C3: they have one rank.
    * C4: one start index for each dimension.
    * C5: the start indices are scalars of one type.
    * C6: the update is in no dimension larger than the operand.
    """

    name = "stablehlo.dynamic_update_slice"

    def infer(self, *operands: Type) -> Type:
        operand, update, *starts = self.tensors(operands)

        def describe() -> str:
            return f"operand {operand.short()} and update {update.short()}"

        if operand.dtype != update.dtype:
            self.fail_dtype("C2", f"wanted one element type, got {describe()}; convert_element_type one")
        if operand.rank != update.rank:
            self.fail("C3", f"wanted one rank, got {describe()}; expand_dims the update")
        _check_starts(self, ("C4", "C5"), operand, tuple(starts))
        if any([size > whole for size, whole in zip(update.shape, operand.shape, strict=True)]):
            self.fail("C6", f"wanted an update that fits, got {describe()}")
        return operand

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node)
