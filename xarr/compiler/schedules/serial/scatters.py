"""Scatters: the operand as the result, then one update after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from xarr.compiler.loop_ir.computed_indices import as_int64, components, is_inside
from xarr.compiler.loop_ir.elements import Index, Source, compute_scalars
from xarr.compiler.loop_ir.loops import Affine, Loop, Store
from xarr.compiler.loop_ir.scalars import Value
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of, store_all
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.ops.indexing import Windows
from xarr.ir.types import Ints


class Updates:
    """The updates of a scatter: the element of the results that each goes to, and what it makes of it.

    An update has an index in the batch and one in the window, `extents` together, in whose order updates come.
    """

    def __init__(self, loops: SerialLoops, node: Node) -> None:
        count = len(node.operands) // 2
        self.loops, self.op = loops, node.op.expect(ops.Scatter)
        self.operands = node.operands[:count]
        self.indices, self.updates = node.operands[count], node.operands[count + 1 :]

    @cached_property
    def windows(self) -> Windows:
        types = (each.tensor_type for each in (self.operands[0], self.indices, self.updates[0]))
        return self.op.windows(*types)

    @property
    def extents(self) -> Ints:
        return (*self.windows.batch_shape, *self.windows.sizes)

    def start(self, batch: Index) -> tuple[Index, Value | None]:
        """The start of a window of the batch, and whether all of it lies in the operand, None for always."""
        windows = self.windows
        start, fits = [Affine()] * len(windows.operand_shape), None

        def element(index: Index) -> Value:
            return self.loops.at(self.indices, index)

        for dim, last, number in components(windows, len(self.indices.shape), batch, element):
            within = is_inside(number, last)
            if within is not None:
                fits = within if fits is None else fits & within
            start[dim] = Affine(((as_int64(number), 1),))
        for dim, position in windows.batching:
            start[dim] = batch[position]
        return tuple(start), fits

    def target(self, index: Index) -> tuple[Index, Value | None]:
        """The element that an update goes to, and whether it goes anywhere, None for always."""
        rank = len(self.windows.batch_shape)
        start, fits = self.start(index[:rank])
        return tuple(a + b for a, b in zip(start, index[rank:], strict=True)), fits

    def elements(self, index: Index) -> list[Value]:
        """The elements that an update brings to each result."""
        windows, at = self.windows, [Affine()] * len(self.updates[0].shape)
        batch, window = index[: len(windows.batch_shape)], index[len(windows.batch_shape) :]
        for dim, own in zip(windows.batch_dims, batch, strict=True):
            at[dim] = own
        for dim, own_dim in zip(windows.kept_dims, windows.window_dims, strict=True):
            at[own_dim] = window[dim]
        return [self.loops.at(update, tuple(at)) for update in self.updates]

    def combine(self, old: Sequence[Value], index: Index) -> Sequence[Value]:
        """The elements after an update."""
        return self.combine_elements(old, self.elements(index))

    def combine_elements(self, old: Sequence[Value], new: Sequence[Value]) -> Sequence[Value]:
        """The elements after an update that brings others."""
        return compute_scalars(self.op.update_computation, [*old, *new], self.loops.values)

    def copy_operands(self, results: Sequence[Scratch]) -> None:
        """Fill the results with the operands."""

        def copy(index: Index) -> list[Store]:
            return store_all(results, index, [self.loops.at(operand, index) for operand in self.operands])

        self.loops.phase(results[0].shape, copy)

    def only_if(self, fits: Value | None, parts: Sequence[Loop | Store]) -> Sequence[Loop | Store]:
        """The parts of a body where a condition holds, None for always."""
        return parts if fits is None else self.loops.only_if(fits, parts)


def scatter(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """Two phases: copy the operands, then combine each element of each window that lies in them."""
    updates, results = Updates(loops, node), loops.results_of(node)
    updates.copy_operands(results)
    combine_in_place(updates, results, range(len(updates.extents)))
    return sources_of(results)


def combine_in_place(updates: Updates, results: Sequence[Scratch], ordered: Sequence[int]) -> None:
    """A phase that combines each result with its updates, one after the other along the axes `ordered`."""

    def combine(index: Index) -> Sequence[Loop | Store]:
        target, fits = updates.target(index)
        new = updates.combine([each.load(target) for each in results], index)
        return updates.only_if(fits, store_all(results, target, new))

    updates.loops.phase(updates.extents, combine, ordered)
