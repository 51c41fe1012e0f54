"""Products of matrices and convolutions: a sum of products for each element of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xarr.compiler.functions import register_dtype
from xarr.compiler.fusion.window_work import free_dimensions, sum_dtype
from xarr.compiler.loop_ir.elements import Index, Source
from xarr.compiler.loop_ir.loops import Affine
from xarr.compiler.loop_ir.scalars import DType, Value
from xarr.compiler.schedules.serial.serial_loops import SerialLoops, Step
from xarr.compiler.schedules.serial.windows import element_of_window, select_if
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints

#: Of the index in the result and that of a term: the indices in both operands, and whether the term exists.
Factors = Callable[[Index, Index], tuple[Index, Index, "Value | None"]]


def dot_general(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The contracted dimensions are summed up."""
    return _sums(loops, node, *terms_of_product(node))


def convolution(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The features of an element's group, and the elements of its window that lie on the array, are summed up."""
    return _sums(loops, node, *terms_of_convolution(loops, node))


def terms_of_product(node: Node) -> tuple[Ints, Factors]:
    """The sizes of the contracted dimensions, and the factors of an element's terms."""
    op = node.op.expect(ops.DotGeneral)
    dims = (
        (op.lhs_batching_dimensions, op.lhs_contracting_dimensions),
        (
            op.rhs_batching_dimensions,
            op.rhs_contracting_dimensions,
        ),
    )
    free = free_dimensions(node)

    def factors(index: Index, term: Index) -> tuple[Index, Index, None]:
        count = len(dims[0][0])
        batch, left, right = index[:count], index[count : count + len(free[0])], index[count + len(free[0]) :]
        indices = []
        for (batching, contracting), own_dims, own in zip(dims, free, (left, right), strict=True):
            at = dict(zip((*batching, *contracting, *own_dims), (*batch, *term, *own), strict=True))
            indices.append(tuple(at[dim] for dim in range(len(at))))
        return indices[0], indices[1], None

    terms = tuple(node.operands[0].shape[dim] for dim in op.lhs_contracting_dimensions)
    return terms, factors


def terms_of_convolution(loops: SerialLoops, node: Node) -> tuple[Ints, Factors]:
    """The input features of a group and the sizes of the window, and the factors of an element's terms."""
    op = node.op.expect(ops.Convolution)
    array, kernel = node.operands
    window = op.window(kernel.tensor_type)
    inputs = kernel.shape[op.rhs_spec[1]]
    features, batch = node.shape[op.out_spec[1]], node.shape[op.out_spec[0]]
    sizes = tuple(array.shape[dim] for dim in op.lhs_spec[2:])

    def group(feature: Affine, count: int) -> Affine:
        """The group of an output feature, where there are so many groups."""
        if count in (1, features):
            return feature if count == features else Affine()
        return Affine(((feature.value(loops.values) / (features // count), 1),))

    def factors(index: Index, term: Index) -> tuple[Index, Index, Value | None]:
        n, o, *own = (index[dim] for dim in op.out_spec)
        c, *number = term
        spatial, exists = element_of_window(loops, window, sizes, tuple(own), tuple(number))
        left = (
            n + group(o, op.batch_group_count) * batch,
            c + group(o, op.feature_group_count) * inputs,
            *spatial,
        )
        return _to_dimensions(op.lhs_spec, left), _to_dimensions(op.rhs_spec, (o, c, *number)), exists

    return (inputs, *(kernel.shape[dim] for dim in op.rhs_spec[2:])), factors


def _to_dimensions(spec: Ints, index: Index) -> Index:
    """An index whose part k belongs to dimension `spec[k]`, in the order of the dimensions."""
    at = dict(zip(spec, index, strict=True))
    return tuple(at[dim] for dim in range(len(spec)))


def _sums(loops: SerialLoops, node: Node, terms: Ints, factors: Factors) -> Sequence[Source]:
    """Zero, and one product after the other; in the end the sums are of the result's type."""
    (sums,) = loops.fold(node.shape, terms, [types_of_sums(node)[0]], *start_and_step(loops, node, factors))

    def source(index: Index, predicate: Value | None) -> Value:
        return finish_sum(loops, node, sums.load(index, predicate))

    return [source]


def types_of_sums(node: Node) -> tuple[DType, DType]:
    """The types in which sums of products are formed, and finished: floats are rounded before they are integers."""
    dtype = node.operands[0].dtype
    finished = node.op.sum_dtype(dtype) if isinstance(node.op, ops.DotGeneral) else node.dtype
    return sum_dtype(dtype, finished), finished


def finish_sum(loops: SerialLoops, node: Node, total: Value) -> Value:
    """An element of the result, of a sum of products."""
    formed, finished = types_of_sums(node)
    return loops.convert(loops.convert(total, formed, finished), finished, node.dtype)


def start_and_step(
    loops: SerialLoops, node: Node, factors: Factors
) -> tuple[Callable[[Index], Sequence[Value]], Step]:
    """Zero, and a sum after one product more."""
    left, right = node.operands[:2]
    dtype, _ = types_of_sums(node)

    def zero(index: Index) -> list[Value]:
        return [loops.values.constant(0, register_dtype(dtype))]

    def step(own: Index, term: Index, held: Sequence[Value]) -> list[Value]:
        at, at_right, exists = factors(own, term)
        x = loops.convert(loops.at(left, at, exists), left.dtype, dtype)
        # A window is whole, whatever of it lies on the array.
        y = loops.convert(loops.at(right, at_right), right.dtype, dtype)
        (old,) = held
        return [select_if(exists, add_product(loops, dtype, x, y, old), old)]

    return zero, step


def add_product(loops: SerialLoops, dtype: DType, x: Value, y: Value, total: Value) -> Value:
    """The sum of a product and a total, of floats rounded once."""
    if dtype.kind == "f":
        return x.fma(y, total)
    return loops.apply(ops.Add(), dtype, total, loops.apply(ops.Multiply(), dtype, x, y))
