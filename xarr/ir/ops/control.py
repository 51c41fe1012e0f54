"""Operations that carry computations, tuples, and the barrier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from xarr.base.frozen_dataclasses import record
from xarr.ir.graph import Graph, Node
from xarr.ir.op import FREE, Op, operation
from xarr.ir.ops.binary import Add
from xarr.ir.ops.creation import Constant, integer_of
from xarr.ir.ops.elementwise import Compare
from xarr.ir.ops.movement import BroadcastInDim
from xarr.ir.ops.reduction import check_signature
from xarr.ir.stablehlo.literals import ints, quote
from xarr.ir.stablehlo.printer import join_types
from xarr.ir.types import TensorType, TokenType, TupleType, Type, pack_types

if TYPE_CHECKING:
    from xarr.ir.stablehlo.printer import Printer


PREDICATE_SCALAR = TensorType((), np.dtype(np.bool_))
INDEX_SCALAR = TensorType((), np.dtype(np.int32))


@operation
class Tuple(Op):
    """One value that holds others."""

    name = "stablehlo.tuple"

    def infer(self, *operands: Type) -> Type:
        return TupleType(operands)

    def assembly(self, node: Node, printer: Printer) -> str:
        return " ".join(f"{self.name} {printer.names(node.operands)} : {node.type}".split())


@operation
class GetTupleElement(Op):
    """Element `index` of a tuple, or result `index` of an op with several results.

    * C1: the operand is a tuple.
    * C2: it has an element `index`.
    """

    index: int
    name = "stablehlo.get_tuple_element"
    moves = True
    cost = FREE

    def infer(self, *operands: Type) -> Type:
        operand = operands[0]
        if not isinstance(operand, TupleType):
            self.fail("C1", f"wanted a tuple, got {operand.short()}")
        if not 0 <= self.index < len(operand.elements):
            self.fail("C2", f"wanted an index in [0, {len(operand.elements)}), got {self.index}")
        return operand.elements[self.index]

    def result_number(self, node: Node) -> int | None:
        (operand,) = node.operands
        return None if len(operand.op.results(operand)) == 1 else self.index

    def assembly(self, node: Node, printer: Printer) -> str:
        operand = f"{printer.names(node.operands)}[{self.index}]"
        return f"{self.name} {operand} : {printer.signature(node)}"


def pack_results(results: Sequence[Node]) -> Node:
    """The value of an op with these results."""
    return results[0] if len(results) == 1 else Node(Tuple(), tuple(results))


def compute_on_arrays(computation: Graph, operands: Sequence[Node]) -> tuple[Node, ...] | None:
    """The results of a computation on scalars for each element of arrays of one shape; None if some of it is not
    element-wise.
    """
    shape = operands[0].shape
    whole = dict(zip(computation.parameters, operands, strict=True))
    for node in computation.nodes:
        if isinstance(node.op, Constant):
            whole[node] = Node(BroadcastInDim(shape, ()), (node,)) if shape else node
        elif node.op.is_elementwise:
            whole[node] = Node(node.op, tuple([whole[operand] for operand in node.operands]))
        else:
            return None
    return tuple([whole[result] for result in computation.results])


def unpack_results(node: Node) -> tuple[Node, ...]:
    """The results of an op, of which there is one, or as many as its tuple has elements."""
    count = len(node.op.results(node))
    return (node,) if count == 1 else tuple([Node(GetTupleElement(k), (node,)) for k in range(count)])


@operation
class OptimizationBarrier(Op):
    """The operands themselves; no pass moves work across it or merges what stands on its two sides.

    A backend that does not run it whole gets the operands, and nothing moves after that.

    * C0: the operands are arrays and tokens.
    """

    name = "stablehlo.optimization_barrier"
    has_several_results = True

    @property
    def is_pure(self) -> bool:
        return False

    def infer(self, *operands: Type) -> Type:
        self.tensors(tuple([operand for operand in operands if operand is not TokenType()]))
        return pack_types(operands)

    def decompose(self, *operands: Node) -> Node:
        return pack_results(operands)

    def assembly(self, node: Node, printer: Printer) -> str:
        if not node.operands:
            return f"{self.name}()"
        return f"{self.name} {printer.names(node.operands)} : {join_types(self.results(node))}"


@operation
class Call(Op):
    """The results of a graph over the operands.

    * C1: the operands have the types of the graph's parameters.
    """

    computation: Graph
    name = "func.call"
    runs_graphs = True

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.computation,)

    def infer(self, *operands: Type) -> Type:
        check_signature(self, "C1", self.computation, operands, self.computation.result_types)
        return pack_types(self.computation.result_types)

    def decompose(self, *operands: Node) -> Node:
        return pack_results(self.computation.inline(*operands))

    def results(self, node: Node) -> tuple[Type, ...]:
        return self.computation.result_types

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.call(node, self.computation)


@operation
class Map(Op):
    """A scalar computation applied to the elements of N arrays of one shape.

    * C1: N >= 1 arrays of one shape.
    * C2: `dimensions` are 0, 1 … rank - 1 (XLA knows no other case).
    * C3: the computation maps scalars of the arrays' types to one scalar.
    """

    dimensions: tuple[int, ...]
    computation: Graph
    name = "stablehlo.map"
    lax_name = "map_elements"

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.computation,)

    def infer(self, *operands: Type) -> Type:
        arrays = self.tensors(operands)
        if not arrays or any(array.shape != arrays[0].shape for array in arrays):
            self.fail("C1", f"wanted arrays of one shape, got {', '.join(array.short() for array in arrays)}")
        if self.dimensions != tuple(range(arrays[0].rank)):
            self.fail("C2", f"wanted dimensions {tuple(range(arrays[0].rank))}, got {self.dimensions}")
        scalars = tuple(TensorType((), array.dtype) for array in arrays)
        results = self.computation.result_types
        if len(results) != 1 or not isinstance(results[0], TensorType) or results[0].shape:
            self.fail("C3", f"wanted a computation with one scalar result, got {pack_types(results).short()}")
        check_signature(self, "C3", self.computation, scalars, results)
        return arrays[0].with_dtype(results[0].dtype)

    def decompose(self, *operands: Node) -> Node | None:
        """The computation on whole arrays, if all of it is element-wise."""
        results = compute_on_arrays(self.computation, operands)
        return None if results is None else results[0]

    def assembly(self, node: Node, printer: Printer) -> str:
        attributes = f"dimensions = array<i64{': ' if self.dimensions else ''}{ints(self.dimensions)[1:-1]}>"
        return printer.generic(node, attributes, [printer.labelled_region(self.computation)], node.operands)


@record
class Progress:
    """A bar that a loop shows while it runs.

    label: stands before it; counter: the numbers of an index and of its end among the carried values, by which
    the number of steps is known beforehand, or None.
    """

    label: str
    counter: tuple[int, int] | None = None
    #: What the attributes of a bar are called begins with this.
    prefix: ClassVar[str] = "xarr"

    def attributes(self) -> str:
        """As MLIR attributes, whose values must be texts."""
        label = f"{self.prefix}.progress = {quote(self.label)}"
        if self.counter is None:
            return label
        index, end = self.counter
        return f'{self.prefix}.counter = "{index} {end}", {label}'

    def total(self, carried: Sequence[Any]) -> int | None:
        """The number of steps, from the carried values before the first."""
        if self.counter is None:
            return None
        index, end = (int(carried[number]) for number in self.counter)
        return max(end - index, 0)


@operation
class While(Op):
    """Apply `body` to the carried values as long as `cond` of them holds.

    * C0: the carried values are no tuples: StableHLO knows none there.
    * C1: `cond` maps the operand types to one bool scalar.
    * C2: `body` maps the operand types to themselves.
    """

    cond: Graph
    body: Graph
    progress: Progress | None = None
    name = "stablehlo.while"
    lax_name = "while_loop"
    runs_graphs = True

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.cond, self.body)

    def infer(self, *operands: Type) -> Type:
        _refuse_tuples(self, operands)
        check_signature(self, "C1", self.cond, operands, (PREDICATE_SCALAR,), "cond")
        check_signature(self, "C2", self.body, operands, operands, "body")
        return pack_types(operands)

    def results(self, node: Node) -> tuple[Type, ...]:
        return self.body.result_types

    def iterations(self, node: Node) -> int | None:
        """The number of iterations if it counts from one constant to another; None if that is not known."""
        test, compared = _definition(self.cond.results[0])
        if not isinstance(test, Compare) or test.direction != "LT":
            return None
        parameters = self.cond.parameters
        index, bound = [parameters.index(each) if each in parameters else None for each in compared]
        if index is None or not _counts(self.body.parameters[index], self.body.results[index]):
            return None
        if bound is not None and self.body.results[bound] is not self.body.parameters[bound]:
            return None
        start = integer_of(node.operands[index])
        end = integer_of(compared[1] if bound is None else node.operands[bound])
        return None if start is None or end is None else max(0, end - start)

    def assembly(self, node: Node, printer: Printer) -> str:
        names, cond = printer.region(self.cond, "iterArg")
        _, body = printer.region(self.body, "iterArg")
        pairs = zip(names, node.operands, strict=True)
        carried = ", ".join(f"{name} = {printer.name(operand)}" for name, operand in pairs)
        types = f" : {join_types(self.results(node))}" if node.operands else ""
        if self.progress is not None:
            types += f" attributes {{mhlo.frontend_attributes = {{{self.progress.attributes()}}}}}"
        line = f"{self.name}({carried}){types}"
        return f"{line}\n{printer.indent}cond {{\n{cond}{printer.indent}}} do {{\n{body}{printer.indent}}}"


@operation
class If(Op):
    """`true_branch` of the operands where the first operand, a bool scalar, holds; else `false_branch`.

    * C0: the other operands and the results are no tuples: StableHLO knows none there.
    * C1: the predicate is a bool scalar.
    * C2: both branches take the types of the other operands.
    * C3: both branches give the same types.
    """

    true_branch: Graph
    false_branch: Graph
    name = "stablehlo.if"
    lax_name = "cond"
    runs_graphs = True

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.true_branch, self.false_branch)

    def infer(self, *operands: Type) -> Type:
        if operands[0] is not PREDICATE_SCALAR:
            self.fail("C1", f"wanted a bool scalar predicate, got {operands[0].short()}")
        return _infer_branches(self, operands[1:])

    def results(self, node: Node) -> tuple[Type, ...]:
        return self.true_branch.result_types

    def assembly(self, node: Node, printer: Printer) -> str:
        return _branches(self, node, printer)


@operation
class Case(Op):
    """Branch number `index` (the first operand) of the other operands; the last branch if out of range.

    * C0: the other operands and the results are no tuples: StableHLO knows none there.
    * C1: the index is an int32 scalar.
    * C2: all branches take the types of the other operands.
    * C3: there is at least one branch and all give the same types.
    """

    branches: tuple[Graph, ...]
    name = "stablehlo.case"
    lax_name = "switch"
    runs_graphs = True

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return self.branches

    def infer(self, *operands: Type) -> Type:
        if operands[0] is not INDEX_SCALAR:
            self.fail("C1", f"wanted an int32 scalar index, got {operands[0].short()}")
        if not self.branches:
            self.fail("C3", "wanted at least one branch")
        return _infer_branches(self, operands[1:])

    def results(self, node: Node) -> tuple[Type, ...]:
        return self.branches[0].result_types

    def assembly(self, node: Node, printer: Printer) -> str:
        return _branches(self, node, printer)


def _counts(old: Node, new: Node) -> bool:
    op, operands = _definition(new)
    return isinstance(op, Add) and operands[0] is old and integer_of(operands[1]) == 1


def _definition(node: Node) -> tuple[Op, Sequence[Node]]:
    """The op of a node and its operands.

    Of a result of a call those in its computation, with arguments in place of parameters.
    """
    source, number = node, 0
    if isinstance(node.op, GetTupleElement):
        source, number = node.operands[0], node.op.index
    if not isinstance(source.op, Call):
        return node.op, node.operands
    graph = source.op.computation
    result, arguments = graph.results[number], dict(zip(graph.parameters, source.operands, strict=True))
    return result.op, [arguments.get(each, each) for each in result.operands]


def _refuse_tuples(op: Op, types: Sequence[Type]) -> None:
    for type in types:
        if isinstance(type, TupleType):
            op.fail("C0", f"wanted arrays, got the tuple {type.short()}; pass its elements one by one")


def _infer_branches(op: If | Case, operands: tuple[Type, ...]) -> Type:
    results = op.graphs[0].result_types
    _refuse_tuples(op, (*operands, *results))
    for graph in op.graphs:
        check_signature(op, "C2", graph, operands, graph.result_types, "branch")
        if graph.result_types != results:
            op.fail(
                "C3",
                f"branches differ: {pack_types(results).short()} and {pack_types(graph.result_types).short()}",
            )
    return pack_types(results)


def _branches(op: If | Case, node: Node, printer: Printer) -> str:
    # A region sees the values around it, so a branch names the operands where our graph has parameters.
    regions = [printer.region(graph, operands=node.operands[1:])[1] for graph in op.graphs]
    return printer.generic(node, "", regions, node.operands[:1])
