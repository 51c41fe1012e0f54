"""Systems of linear equations and determinants in terms of factors, and a check of values.

They are printed as StableHLO composites: a call of what they are in terms of others, under a name by which
the reader knows the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.dtypes import COMPLEX, PREDICATE, real_part_of
from xarr.errors import LinAlgError, ShapeError, XarrError
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op, operation
from xarr.ir.ops.binary import Add, Complex, Multiply
from xarr.ir.ops.control import GetTupleElement, Tuple, While, unpack_results
from xarr.ir.ops.creation import Iota
from xarr.ir.ops.factorisations import LETTERS, Lu, squares
from xarr.ir.ops.formula import Term, fill, log, where
from xarr.ir.ops.indexing import DynamicSlice, Gather
from xarr.ir.ops.linear_algebra import TriangularSolve
from xarr.ir.ops.movement import BroadcastInDim, Reshape
from xarr.ir.ops.reduction import Reduce
from xarr.ir.stablehlo.literals import quote
from xarr.ir.types import Ints, TensorType, TupleType, Type

if TYPE_CHECKING:
    from xarr.ir.stablehlo.printer import Printer

#: The errors that a check may raise.
ERRORS: Final[dict[str, type[XarrError]]] = {"LinAlgError": LinAlgError, "ShapeError": ShapeError}

_INT32: Final = np.dtype(np.int32)


class Composite(Op):
    """Base of what is printed as a `stablehlo.composite` of its name, with `definition` as decomposition."""

    has_several_results = True

    def definition(self, *operands: Node) -> Node:
        """Build what runs where the composite is not known: what it decomposes into, unless a class says otherwise."""
        result = self.decompose(*operands)
        assert result is not None, self.name
        return result

    def composite_attributes(self) -> str:
        """The attributes as text; "" for none."""
        return ""

    def assembly(self, node: Node, printer: Printer) -> str:
        parameters = [parameter(operand.type) for operand in node.operands]
        result = self.definition(*parameters)
        results = result.operands if isinstance(result.op, Tuple) else (result,)
        symbol = printer.module.symbol(Graph(parameters, results, self.name.replace(".", "_")))
        own = self.composite_attributes()
        attributes = f"composite_attributes = {{{own}}}, " if own else ""
        return (
            f"stablehlo.composite {quote(self.name)} {printer.names(node.operands)} "
            f"{{{attributes}decomposition = @{symbol}}} : {printer.signature(node)}"
        )


@operation
class Solve(Composite):
    """(x, singular) with a x = b for square matrices a; x is NaN where a is singular.

    singular: whether elimination met a pivot of exactly 0, one bool for each matrix.

    * C1: float32, float64, complex64 or complex128 elements of one type.
    * C2: equal ranks of 2 or more, and equal leading dimensions.
    * C3: the matrices a are square.
    * C4: b has as many rows as a.
    """

    name = "xarr.solve"

    def infer(self, *operands: Type) -> Type:
        a, b = self.tensors(operands, 2)
        both = f"{a.short()} and {b.short()}"
        if a.dtype not in LETTERS or a.dtype is not b.dtype:
            self.fail_dtype(
                "C1", f"wanted floats or complex numbers of 32 bits or more of one type, got {both}"
            )
        if a.rank < 2 or a.rank != b.rank or a.shape[:-2] != b.shape[:-2]:
            self.fail("C2", f"wanted equal ranks of 2 or more and equal leading dimensions, got {both}")
        if a.shape[-1] != a.shape[-2]:
            self.fail("C3", f"wanted square matrices a in the last two dimensions, got {a.short()}")
        if b.shape[-2] != a.shape[-1]:
            self.fail("C4", f"wanted b with {a.shape[-1]} rows, got {b.short()}")
        return TupleType((b, TensorType(a.shape[:-2], PREDICATE)))

    def decompose(self, *operands: Node) -> Node:
        a, b = operands
        factors, pivots, info = unpack_results(Node(Lu(), (a,)))
        rows = permutation(pivots, a.tensor_type.shape[-1])
        x = Node(TriangularSolve(True, True, True), (factors, rows_of(b, rows)))
        x = Node(TriangularSolve(True, False, False), (factors, x))
        singular = ~Term(info).eq(0)
        wide = _broadcast_leading(singular, b.tensor_type.shape)
        return Node(Tuple(), (where(wide, np.nan, Term(x)).node, singular.node))


@operation
class LogDeterminant(Composite):
    """(sign, log |det a|) of square matrices: det a = sign exp(log |det a|), with (0, -inf) for singular ones.

    sign: of the operand's element type, of absolute value 1 or 0.

    * C1, C2: as for all factorisations.
    * C3: square matrices.
    """

    name = "xarr.slogdet"

    def infer(self, *operands: Type) -> Type:
        (a,) = self.tensors(operands, 1)
        batch, _ = squares(self, a)
        return TupleType((TensorType(batch, a.dtype), TensorType(batch, real_part_of(a.dtype))))

    def decompose(self, *operands: Node) -> Node:
        (a,) = operands
        factors, pivots, info = unpack_results(Node(Lu(), (a,)))
        shape, dtype = a.tensor_type.shape, a.dtype
        axis = len(shape) - 2
        row, column = (Term(Node(Iota(TensorType(shape, _INT32), axis + back))) for back in (0, 1))
        diagonal = Term(_reduce(Add(), where(row.eq(column), Term(factors), 0).node, axis, 0))
        size = abs(diagonal)
        rows = Term(Node(Iota(TensorType(shape[:-1], _INT32), axis))) + 1
        kept = Term(pivots).eq(rows)
        real = where(kept, size.constant(1), size.constant(-1))
        direction = diagonal / _convert_reals(size, dtype) * _convert_reals(real, dtype)
        singular = ~Term(info).eq(0)
        sign = Term(_reduce(Multiply(), direction.node, axis, 1))
        total = Term(_reduce(Add(), log(size).node, axis, 0))
        return Node(Tuple(), (where(singular, 0, sign).node, where(singular, -np.inf, total).node))


@operation
class Check(Composite):
    """The first operand as it is, if the second, bools, is true everywhere; else an error when it runs.

    XLA, which cannot raise, runs the first operand alone.

    * C1: an array, and bools.
    """

    message: str
    #: The class of the error, a key of `ERRORS`.
    raises: str = "LinAlgError"
    name = "xarr.check"

    def infer(self, *operands: Type) -> Type:
        value, good = self.tensors(operands, 2)
        if good.dtype is not PREDICATE:
            self.fail_dtype("C1", f"wanted bools, got {good.short()}")
        return value

    def definition(self, *operands: Node) -> Node:
        return operands[0]

    def error(self, index: Sequence[int], shape: Ints) -> XarrError:
        """The error to raise for a False at this index of the bools, of this shape."""
        where = f" (matrix {tuple(map(int, index))} of {shape})" if shape else ""
        return ERRORS[self.raises](f"{self.message}{where}")

    def composite_attributes(self) -> str:
        raises = "" if self.raises == Check.raises else f", raises = {quote(self.raises)}"
        return f"message = {quote(self.message)}{raises}"


# --- parts ----------------------------------------------------------------------------------------


def _reduce(op: Op, node: Node, axis: int, initial: int) -> Node:
    a, b = (parameter(TensorType((), node.dtype)) for _ in range(2))
    combiner = Graph((a, b), [Node(op, (a, b))], "combiner")
    return Node(Reduce((axis,), combiner), (node, fill(initial, (), node.dtype).node))


def _convert_reals(real: Term, dtype: np.dtype[Any]) -> Term:
    """Reals as elements of `dtype`, which may be complex."""
    if dtype not in COMPLEX:
        return real
    return Term(Node(Complex(), (real.node, real.constant(0).node)))


def permutation(pivots: Node, size: int) -> Node:
    """The order of rows 0 … size - 1 after exchanging row i with row pivots[i], counted from 1, one by one."""
    *batch, count = pivots.tensor_type.shape
    type = TensorType((*batch, size), _INT32)
    order = Node(Iota(type, len(batch)))
    if not count or 0 in type.shape:
        return order
    step, seen, rows = (parameter(each) for each in (TensorType((), _INT32), pivots.type, type))
    position = Term(order)
    here = position.eq(_broadcast_leading(Term(step), type.shape))
    there = position.eq(_broadcast_leading(Term(_index_last(seen, step)) - 1, type.shape))
    first = Term(_index_last(rows, step))
    second = Term(_reduce(Add(), where(there, Term(rows), 0).node, len(batch), 0))
    swapped = where(here, _broadcast_leading(second, type.shape), Term(rows))
    swapped = where(there, _broadcast_leading(first, type.shape), swapped)
    more = Graph((step, seen, rows), [(Term(step) < count).node], "cond")
    body = Graph((step, seen, rows), [(Term(step) + 1).node, seen, swapped.node], "body")
    loop = Node(While(more, body), (fill(0, (), _INT32).node, pivots, order))
    return Node(GetTupleElement(2), (loop,))


def _broadcast_leading(term: Term, shape: Ints) -> Term:
    """A term of the leading dimensions everywhere in an array of `shape`."""
    own = tuple(range(len(term.node.tensor_type.shape)))
    return Term(Node(BroadcastInDim(shape, own), (term.node,)))


def _index_last(array: Node, index: Node) -> Node:
    """array[..., index]"""
    *batch, _ = array.tensor_type.shape
    zero = fill(0, (), _INT32).node
    column = Node(DynamicSlice((*batch, 1)), (array, *[zero] * len(batch), index))
    return Node(Reshape(tuple(batch)), (column,))


def rows_of(matrices: Node, order: Node) -> Node:
    """The rows of each matrix in this order."""
    *batch, _, columns = matrices.tensor_type.shape
    if not matrices.tensor_type.size:
        return matrices
    rank = len(batch)
    own = tuple(range(rank))
    op = Gather((rank + 1,), (rank,), own, own, (rank,), rank + 1, (*[1] * rank, 1, columns))
    return Node(op, (matrices, order))
