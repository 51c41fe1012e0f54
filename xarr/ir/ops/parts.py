"""Computations of the parts of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from xarr.communication.process_groups import AxisRef, Mesh
from xarr.errors import ShapeError
from xarr.ir.graph import Graph
from xarr.ir.op import Op, operation
from xarr.ir.ops.reduction import check_signature
from xarr.ir.stablehlo.literals import quote
from xarr.ir.stablehlo.printer import name_with_types
from xarr.ir.types import TensorType, Type, pack_types

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer

#: For each dimension of an array the axes of a mesh that it is cut along; those behind are whole.
Split: TypeAlias = tuple[tuple[AxisRef, ...], ...]


def count_parts(mesh: Mesh, axes: Sequence[AxisRef]) -> int:
    """The number of parts of a dimension that is cut along axes."""
    return len(mesh.rows(axes)[0])


@operation
class ManualComputation(Op):
    """The joined results of a computation of parts at each member of a mesh; one that is cut nowhere is any member's.

    `start(op, backend)` makes what runs it in a program of one process, a function of whole arrays on the host; in a
    world of several members, of `world_size`, each takes its own parts, computes, and gets those of the others.
    Programs are kept by their graphs, and are not the same there.

    * C0: the operands are arrays.
    * C1: each operand and each result has a split, of no more dimensions than it has itself.
    * C2: the splits have axes of the mesh, each once, and among `manual_axes`.
    * C3: the sizes of operands are divisible by the numbers of parts.
    * C4: the parts have the types of the computation's parameters, and its results are arrays.
    """

    mesh: Mesh
    in_splits: tuple[Split, ...]
    out_splits: tuple[Split, ...]
    manual_axes: tuple[str, ...]
    computation: Graph
    start: Callable[[Any, Any], Callable[..., Any]]
    world_size: int = 1
    name = "sdy.manual_computation"
    lax_name = "shard_map"
    has_several_results = True
    is_internal = True
    runs_graphs = True

    @property
    def is_ordered(self) -> bool:
        return bool(self.computation.ordered) or any(map(any, self.out_splits))

    @property
    def is_pure(self) -> bool:
        return not self.is_ordered

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.computation,)

    def infer(self, *operands: Type) -> Type:
        arrays = self.tensors(operands)
        results = self.computation.result_types
        for types, splits in ((arrays, self.in_splits), (results, self.out_splits)):
            if len(types) != len(splits):
                self.fail("C1", f"wanted a split for each of {len(types)} arrays, got {len(splits)}")
        parts = tuple([self._part(*pair) for pair in zip(arrays, self.in_splits, strict=True)])
        check_signature(self, "C4", self.computation, parts, results)
        return pack_types(tuple([self._whole(*pair) for pair in zip(results, self.out_splits, strict=True)]))

    def _counts(self, type: TensorType, split: Split) -> list[int]:
        if len(split) > type.rank:
            self.fail("C1", f"wanted a split of at most {type.rank} dimensions, got {len(split)}")
        axes = [axis for own in split for axis in own]
        other = [axis.name for axis in axes if axis.name not in self.manual_axes]
        if other or len(set(axes)) != len(axes):
            self.fail(
                "C2", f"wanted axes among {', '.join(self.manual_axes)}, each once, got {_dimensions(split)}"
            )
        try:
            counts = [count_parts(self.mesh, own) for own in split]
        except ShapeError as error:
            self.fail("C2", str(error))
        return [*counts, *[1] * (type.rank - len(split))]

    def _part(self, type: TensorType, split: Split) -> TensorType:
        counts = self._counts(type, split)
        for size, count in zip(type.shape, counts, strict=True):
            if size % count:
                self.fail("C3", f"wanted a size that {count} parts divide, got {size} of {type.short()}")
        return type.with_shape(tuple([size // n for size, n in zip(type.shape, counts, strict=True)]))

    def _whole(self, type: Type, split: Split) -> TensorType:
        if not isinstance(type, TensorType):
            self.fail("C4", f"wanted arrays as results, got {type.short()}")
        counts = self._counts(type, split)
        return type.with_shape(tuple([size * n for size, n in zip(type.shape, counts, strict=True)]))

    def assembly(self, node: Node, printer: Printer) -> str:
        names, body = printer.region(self.computation, terminator="sdy.return")
        shown = [
            f"in_shardings=[{self._shardings(self.in_splits, self.computation.parameter_types)}]",
            f"out_shardings=[{self._shardings(self.out_splits, self.computation.result_types)}]",
            f"manual_axes={{{', '.join(map(quote, self.manual_axes))}}}",
            f"({name_with_types(names, self.computation.parameters)})",
        ]
        head = f"{self.name}({printer.names(node.operands)}) {' '.join(shown)}"
        return f"{head} {{\n{body}{printer.indent}}} : {printer.signature(node)}"

    def _shardings(self, splits: Sequence[Split], types: Sequence[Type]) -> str:
        sizes = ", ".join([f"{quote(name)}={size}" for name, size in self.mesh.axes])
        ids = self.mesh.device_ids
        shown = f"mesh<[{sizes}]{'' if ids is None else f', device_ids={list(ids)}'}>"
        rows = []
        for split, type in zip(splits, types, strict=True):
            rank = type.rank if isinstance(type, TensorType) else 0
            rows.append(f"<{shown}, [{_dimensions((*split, *((),) * (rank - len(split))))}]>")
        return ", ".join(rows)


def _dimensions(split: Split) -> str:
    return ", ".join([f"{{{', '.join(map(_axis, axes))}}}" for axes in split])


def _axis(axis: AxisRef) -> str:
    part = f":({axis.part[0]}){axis.part[1]}" if axis.part else ""
    return f"{quote(axis.name)}{part}"
