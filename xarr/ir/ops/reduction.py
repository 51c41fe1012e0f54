"""Operations over whole dimensions: reduction by any computation, contraction, sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.dtypes import COMPLEX, FLOAT
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op, operation
from xarr.ir.ops.binary import Add, Multiply
from xarr.ir.ops.creation import Constant
from xarr.ir.ops.elementwise import Convert
from xarr.ir.ops.movement import BroadcastInDim, Transpose
from xarr.ir.stablehlo.literals import ints
from xarr.ir.stablehlo.printer import name_with_types
from xarr.ir.types import Ints, TensorType, Type, pack_types

if TYPE_CHECKING:
    from xarr.ir.stablehlo.printer import Printer


#: The computations that MLIR writes by name, `applies stablehlo.add`: the commutative ones.
_APPLIED: Final = frozenset(
    f"stablehlo.{name}" for name in ("add", "and", "maximum", "minimum", "multiply", "or", "xor")
)


@operation
class Reduce(Op):
    """Combine the elements along `dimensions` by `computation`, for N arrays at once.

    Operands: N arrays, then N scalar initial values.  `computation` takes N accumulators and N
    elements and gives N results.  In which order elements meet is not defined, nor how often the
    initial value is used, so it should be a neutral element.

    * C1: N >= 1 arrays of one shape and as many initial values.
    * C2: each initial value is a scalar of its array's element type.
    * C3: dimensions are distinct and lie in the arrays' rank.
    * C4: the computation maps (T0 … TN-1, T0 … TN-1), scalars of the arrays' types, to (T0 … TN-1).
    """

    dimensions: Ints
    computation: Graph
    name = "stablehlo.reduce"
    has_several_results = True

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.computation,)

    def infer(self, *operands: Type) -> Type:
        tensors = self.tensors(operands)
        count = len(tensors) // 2
        arrays, initial = tensors[:count], tensors[count:]
        if not count or len(initial) != count or any(array.shape != arrays[0].shape for array in arrays):
            shown = ", ".join(tensor.short() for tensor in tensors)
            self.fail("C1", f"wanted N arrays of one shape and N initial values, got {shown}")
        scalars = tuple(TensorType((), array.dtype) for array in arrays)
        for scalar, value in zip(scalars, initial, strict=True):
            if value is not scalar:
                self.fail("C2", f"wanted an initial value {scalar.short()}, got {value.short()}")
        rank = arrays[0].rank
        if len(set(self.dimensions)) != len(self.dimensions) or any(
            not 0 <= d < rank for d in self.dimensions
        ):
            self.fail("C3", f"wanted distinct dimensions in [0, {rank}), got {self.dimensions}")
        check_signature(self, "C4", self.computation, scalars * 2, scalars)
        kept = tuple(size for axis, size in enumerate(arrays[0].shape) if axis not in self.dimensions)
        return pack_types(tuple(array.with_shape(kept) for array in arrays))

    def assembly(self, node: Node, printer: Printer) -> str:
        count = len(node.operands) // 2
        pairs = zip(node.operands[:count], node.operands[count:], strict=True)
        head = ", ".join(f"({printer.name(array)} init: {printer.name(value)})" for array, value in pairs)
        tail = f"across dimensions = {ints(self.dimensions)} : {printer.signature(node)}"
        applied = self._applied_op()
        if applied:
            return f"{self.name}{head} applies {applied} {tail}"
        names, body = printer.region(self.computation)
        parameters = self.computation.parameters
        reducer = " ".join(
            f"({name_with_types(names[k::count], parameters[k::count])})" for k in range(count)
        )
        return f"{self.name}{head} {tail}\n{printer.indent} reducer{reducer}  {{\n{body}{printer.indent}}}"

    def _applied_op(self) -> str | None:
        nodes = self.computation.nodes
        if len(nodes) != 1 or nodes[0].op.name not in _APPLIED:
            return None
        return nodes[0].op.name if nodes[0].operands == self.computation.parameters else None


def check_signature(
    op: Op,
    label: str,
    graph: Graph,
    parameters: tuple[Type, ...],
    results: tuple[Type, ...],
    role: str = "computation",
) -> None:
    """Refuse a carried graph whose parameter or result types are not the wanted ones."""
    if graph.parameter_types != parameters or graph.result_types != results:
        op.fail(
            label,
            f"wanted a {role} {_arrow(parameters, results)}, "
            f"got {_arrow(graph.parameter_types, graph.result_types)}",
        )


def _arrow(parameters: tuple[Type, ...], results: tuple[Type, ...]) -> str:
    left, right = (", ".join(type.short() for type in types) for types in (parameters, results))
    return f"({left}) -> ({right})"


@operation
class DotGeneral(Op):
    """Sum of products over the contracting dimensions, for each index of the batch dimensions.

    The result's dimensions are the batch ones, then the free ones of lhs, then those of rhs; products
    and sums are formed in `dtype`, the result's element type, or wider.  Of floats to integers, and of
    complex numbers to real ones, the finished sum is rounded to the operands' element type and converted,
    as XLA does on a CPU.

    * C1: as many batching dimensions on both sides, as many contracting dimensions on both sides.
    * C2: no dimension of an operand is used twice, and each lies in its rank.
    * C3: batching sizes agree.
    * C4: contracting sizes agree.
    * C5: one element type on both sides.
    """

    lhs_batching_dimensions: Ints
    rhs_batching_dimensions: Ints
    lhs_contracting_dimensions: Ints
    rhs_contracting_dimensions: Ints
    dtype: np.dtype[Any]
    precision: tuple[str, str] = ("DEFAULT", "DEFAULT")
    name = "stablehlo.dot_general"

    def infer(self, *operands: Type) -> Type:
        lhs, rhs = self.tensors(operands, 2)
        shown = f"{lhs.short()} and {rhs.short()}"
        batch = (self.lhs_batching_dimensions, self.rhs_batching_dimensions)
        contract = (self.lhs_contracting_dimensions, self.rhs_contracting_dimensions)
        if len(batch[0]) != len(batch[1]) or len(contract[0]) != len(contract[1]):
            self.fail("C1", f"wanted pairs of dimensions, got batching {batch}, contracting {contract}")
        for side, operand in enumerate((lhs, rhs)):
            used = batch[side] + contract[side]
            if len(set(used)) != len(used) or any(not 0 <= dim < operand.rank for dim in used):
                self.fail("C2", f"wanted distinct dimensions of {operand.short()}, got {used}")
        for label, word, pairs in (("C3", "batching", batch), ("C4", "contracting", contract)):
            for a, b in zip(*pairs, strict=True):
                if lhs.shape[a] != rhs.shape[b]:
                    self.fail(
                        label,
                        f"{word} dimensions {a} and {b} of {shown} differ in size: {lhs.shape[a]} and {rhs.shape[b]}",
                    )
        if lhs.dtype != rhs.dtype:
            self.fail_dtype("C5", f"wanted one element type, got {shown}; convert_element_type one")
        return TensorType(self._result_shape(lhs, rhs), self.dtype)

    def assembly(self, node: Node, printer: Printer) -> str:
        batching = f"{ints(self.lhs_batching_dimensions)} x {ints(self.rhs_batching_dimensions)}"
        contracting = f"{ints(self.lhs_contracting_dimensions)} x {ints(self.rhs_contracting_dimensions)}"
        parts = [f"contracting_dims = {contracting}"]
        if self.lhs_batching_dimensions:
            parts.insert(0, f"batching_dims = {batching}")
        if self.precision != ("DEFAULT", "DEFAULT"):
            parts.append(f"precision = [{', '.join(self.precision)}]")
        return printer.functional(node, ", ".join(parts))

    def sum_dtype(self, operand: np.dtype[Any]) -> np.dtype[Any]:
        """The element type of the finished sums of operands of type `operand`, before they become `dtype`."""
        keeps = self.dtype in COMPLEX or (self.dtype in FLOAT and operand not in COMPLEX)
        return self.dtype if keeps or operand not in FLOAT | COMPLEX else operand

    def decompose(self, *operands: Node) -> Node:
        """The sum over the last dimensions of a product [batch, free of lhs, free of rhs, contracted]."""
        lhs, rhs = operands
        left, right = lhs.tensor_type, rhs.tensor_type
        batch, i, j = self.lhs_batching_dimensions, self.lhs_free(left), self.rhs_free(right)
        rank, contracting = len(batch) + len(i) + len(j), self.lhs_contracting_dimensions
        summed = tuple(range(rank, rank + len(contracting)))
        shape = self._result_shape(left, right) + tuple(left.shape[dim] for dim in contracting)
        sums = self.sum_dtype(left.dtype)
        dtype = np.dtype(np.float32) if sums in FLOAT and sums.itemsize < 4 else sums
        positions = tuple(range(len(batch) + len(i)))
        x = _spread(lhs, dtype, batch + i + contracting, positions + summed, shape)
        positions = (*range(len(batch)), *range(len(batch) + len(i), rank))
        others = self.rhs_batching_dimensions + j + self.rhs_contracting_dimensions
        y = _spread(rhs, dtype, others, positions + summed, shape)
        a, b = (parameter(TensorType((), dtype)) for _ in range(2))
        total = Reduce(summed, Graph((a, b), [Node(Add(), (a, b))]))
        zero = Node(Constant.of(np.zeros((), dtype)))
        summed_up = Node(Convert(sums), (Node(total, (Node(Multiply(), (x, y)), zero)),))
        return summed_up if sums == self.dtype else Node(Convert(self.dtype), (summed_up,))

    def _result_shape(self, lhs: TensorType, rhs: TensorType) -> Ints:
        batch = tuple(lhs.shape[dim] for dim in self.lhs_batching_dimensions)
        return (
            batch
            + tuple(lhs.shape[d] for d in self.lhs_free(lhs))
            + tuple(rhs.shape[d] for d in self.rhs_free(rhs))
        )

    def lhs_free(self, lhs: TensorType) -> Ints:
        """The dimensions of lhs that are neither batching nor contracting."""
        used = self.lhs_batching_dimensions + self.lhs_contracting_dimensions
        return tuple(dim for dim in range(lhs.rank) if dim not in used)

    def rhs_free(self, rhs: TensorType) -> Ints:
        """The dimensions of rhs that are neither batching nor contracting."""
        used = self.rhs_batching_dimensions + self.rhs_contracting_dimensions
        return tuple(dim for dim in range(rhs.rank) if dim not in used)


def _spread(operand: Node, dtype: np.dtype[Any], permutation: Ints, positions: Ints, shape: Ints) -> Node:
    """The operand as `dtype` with its dimensions in another order, repeated to `shape` from these `positions`."""
    converted = Node(Convert(dtype), (operand,))
    return Node(BroadcastInDim(shape, positions), (Node(Transpose(permutation), (converted,)),))


@operation
class Sort(Op):
    """Order N arrays together along `dimension`; `comparator(a0, b0, a1, b1 …)` says whether a goes before b.

    * C1: N >= 1 arrays of one shape.
    * C2: `dimension` lies in their rank.
    * C3: the comparator maps pairs of scalars of the arrays' types to one bool.
    """

    dimension: int
    is_stable: bool
    comparator: Graph
    name = "stablehlo.sort"
    has_several_results = True

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.comparator,)

    def infer(self, *operands: Type) -> Type:
        arrays = self.tensors(operands)
        if not arrays or any(array.shape != arrays[0].shape for array in arrays):
            self.fail("C1", f"wanted arrays of one shape, got {', '.join(array.short() for array in arrays)}")
        if not 0 <= self.dimension < arrays[0].rank:
            self.fail("C2", f"wanted a dimension in [0, {arrays[0].rank}), got {self.dimension}")
        pairs = tuple(TensorType((), array.dtype) for array in arrays for _ in range(2))
        check_signature(
            self, "C3", self.comparator, pairs, (TensorType((), np.dtype(np.bool_)),), "comparator"
        )
        return pack_types(arrays)

    def assembly(self, node: Node, printer: Printer) -> str:
        stable = "true" if self.is_stable else "false"
        attributes = f"dimension = {self.dimension} : i64, is_stable = {stable}"
        return printer.generic(node, attributes, [printer.labelled_region(self.comparator)], node.operands)
