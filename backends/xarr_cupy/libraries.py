"""Operations that libraries of CUDA compute: cuBLAS, cuFFT, cuSOLVER, CUB.

Products call cuBLAS as it is, since CuPy's own ones copy what is transposed, and have no bfloat16.  So do systems of
triangular matrices, and LU and products of reflections call cuSOLVER, of which CuPy has no functions, or none for
stacks of matrices.  All others are called by `driver.arrays`, CuPy, or NumPy where the device is emulated, so that all
of this module runs without a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, Final

import numpy as np

from xarr.compiler.passes.sorted_updates import NumberedSort
from xarr.compiler.sort_keys import order_of
from xarr.dtypes import bfloat16
from xarr.ir import ops
from xarr.ir.computations import lexicographic
from xarr.ir.constants import full
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, parameter, rewritten
from xarr.ir.op import Op
from xarr.ir.types import Ints, TensorType

DType = np.dtype[Any]

_F16, _F32, _F64, _C64, _C128 = map(np.dtype, ("f2", "f4", "f8", "c8", "c16"))
_BF16 = np.dtype(bfloat16)
#: The numbers of `cudaDataType`.
DATA_TYPES: Final[dict[DType, int]] = {_F32: 0, _F64: 1, _F16: 2, _C64: 4, _C128: 5, _BF16: 14}
#: The numbers of `cublasComputeType_t`.  Products of complex numbers are pedantic: none by three of real ones.  Others
#: are as exact without that, since the mode of the handle has no TF32: 1,024 products of 64 x 64 took 55 to 59 us
#: pedantically on an H200, where CuPy's call takes 28.  Short floats are multiplied exactly, and summed up in float32.
COMPUTE_32F, COMPUTE_32F_PEDANTIC, COMPUTE_64F, COMPUTE_64F_PEDANTIC = 68, 69, 70, 71
_COMPUTE_TYPES: Final = {
    **dict.fromkeys((_F16, _BF16, _F32), COMPUTE_32F),
    **{_F64: COMPUTE_64F, _C64: COMPUTE_32F_PEDANTIC, _C128: COMPUTE_64F_PEDANTIC},
}
#: What a product is multiplied by, and what was in the result before, on the host.
_SCALARS: Final = {
    dtype: (np.ones(1, scalar), np.zeros(1, scalar))
    for dtype, scalar in ((_F16, _F32), (_BF16, _F32), *((each, each) for each in (_F32, _F64, _C64, _C128)))
}
#: cuBLAS counts in int32.
_MOST: Final = 2**31 - 1
#: Elements from which CUB sorts them faster than the own merges: before that a block or a few sort them.  A guess.
MIN_SORTED: Final = 2**16
#: The element types of cuFFT and cuSOLVER.
_DTYPES: Final = (_F32, _F64, _C64, _C128)

#: Of `driver.arrays`, an operation, and its operands: the results.
Routine = Callable[..., Sequence[Any]]


# --- products by cuBLAS --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Matrix:
    """A stack of matrices in memory: the steps from one to the next in the batch, in rows and in columns, in elements.

    One of the last two is 1.
    """

    batch: int
    rows: int
    columns: int


@dataclass(frozen=True)
class BatchedProduct:
    """A DotGeneral as products of matrices of (rows, terms) and (terms, columns), to (rows, columns) without gaps.

    * `lhs`, `rhs` - how the operands lie,
    * `permutations` - how an operand is to be transposed first, None where it need not be.
    """

    batch: int
    rows: int
    columns: int
    terms: int
    lhs: Matrix
    rhs: Matrix
    permutations: tuple[Ints | None, Ints | None]


def multiplies(node: Node) -> bool:
    """Whether cuBLAS computes an operation: products of floats or complex numbers, without another rounding."""
    op = node.op
    if not isinstance(op, ops.DotGeneral):
        return False
    left, right = (operand.tensor_type for operand in node.operands)
    results = (left.dtype, _F32) if left.dtype in (_F16, _BF16) else (left.dtype,)
    is_counted = max(left.size, right.size, node.tensor_type.size) <= _MOST
    has_elements = left.size and right.size and node.tensor_type.size
    return left.dtype in DATA_TYPES and op.dtype in results and is_counted and bool(has_elements)


def extend_products(graph: Graph) -> Graph:
    """`graph` with what cuBLAS does beside products as parts of them.

    * Transposes of operands.
    * Convolutions with windows of one element, with features last or behind the batch.
    * Roundings to the type of operands, short floats: it sums up in float32 and rounds once either way.
    """
    return OncePerGraph(_extend_products)(graph)


def _extend_products(graph: Graph, inner: OncePerGraph[Graph]) -> Graph:
    if not any(op in (ops.DotGeneral, ops.Convolution) or op.runs_graphs for op in graph.op_classes):
        return graph
    uses = Counter([operand for node in graph.nodes for operand in dict.fromkeys(node.operands)])
    uses.update(graph.results)

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if isinstance(node.op, ops.Convert) and _is_rounded_to(node.operands[0], node.dtype):
            (product,) = operands
            assert isinstance(product.op, ops.DotGeneral)
            if uses[node.operands[0]] == 1:
                return product.rebuilt(product.operands, replace(product.op, dtype=node.dtype))
        if isinstance(node.op, ops.DotGeneral) and multiplies(node):
            return _multiply_transposed(node, operands)
        if isinstance(node.op, ops.Convolution):
            return _multiply_windows(node.op, *operands)
        op = map_graphs(node.op, inner) if node.op.runs_graphs else node.op
        return None if op is node.op else node.rebuilt(operands, op)

    return rewritten(graph, rule)


def _multiply_transposed(node: Node, operands: tuple[Node, ...]) -> Node | None:
    """A product of what its operands are transposes of, if the result's dimensions stay in their order."""
    op, (lhs, rhs) = node.op, operands
    assert isinstance(op, ops.DotGeneral)
    left = _dims_below(lhs, op.lhs_batching_dimensions, op.lhs_contracting_dimensions)
    if left is not None:
        lhs = lhs.operands[0]
        op = replace(op, lhs_batching_dimensions=left[0], lhs_contracting_dimensions=left[1])
    right = _dims_below(rhs, op.rhs_batching_dimensions, op.rhs_contracting_dimensions)
    if right is not None:
        rhs = rhs.operands[0]
        op = replace(op, rhs_batching_dimensions=right[0], rhs_contracting_dimensions=right[1])
    return None if op is node.op else node.rebuilt((lhs, rhs), op)


def _multiply_windows(op: ops.Convolution, array: Node, kernel: Node) -> Node | None:
    """A convolution with windows of one element as a product, whose result lies as that of the convolution."""
    outputs, features = (kernel.shape[dim] for dim in op.rhs_spec[:2])
    batch, feature, *spatial = op.lhs_spec
    is_point = kernel.tensor_type.size == outputs * features and op.window_strides == op.lhs_dilation
    is_whole = all(pair == (0, 0) for pair in op.padding) and set(op.window_strides) <= {1}
    has_groups = op.feature_group_count > 1 or op.batch_group_count > 1
    if not (is_point and is_whole) or has_groups or op.out_spec != op.lhs_spec:
        return None
    shape = tuple([kernel.shape[dim] for dim in sorted(op.rhs_spec[:2])])
    weights = Node(ops.Reshape(shape), (kernel,))
    # Of the weights: the axis of the input features.
    terms = sorted(op.rhs_spec[:2]).index(op.rhs_spec[1])
    precision = op.precision[0], op.precision[1]
    if feature == len(array.shape) - 1:
        product = ops.DotGeneral((), (), (feature,), (terms,), op.dtype, precision)
        made = Node(product, (array, weights))
    elif (batch, feature, *spatial) == tuple(range(len(array.shape))):
        # cuBLAS reads one matrix for each of the batch, which is small beside the array.
        repeated = ops.BroadcastInDim((array.shape[batch], *shape), (1, 2))
        product = ops.DotGeneral((0,), (batch,), (1 + terms,), (feature,), op.dtype, precision)
        made = Node(product, (Node(repeated, (weights,)), array))
    else:
        return None
    return made if multiplies(made) else None


def _dims_below(node: Node, batching: Ints, contracting: Ints) -> tuple[Ints, Ints] | None:
    """The dimensions of which a transpose's operand has these; None for others, or if free ones change their order."""
    op = node.op
    if not isinstance(op, ops.Transpose):
        return None
    below = (
        tuple([op.permutation[axis] for axis in batching]),
        tuple([op.permutation[axis] for axis in contracting]),
    )
    free = [axis for axis in op.permutation if axis not in (*below[0], *below[1])]
    return below if free == sorted(free) else None


def _is_rounded_to(node: Node, dtype: DType) -> bool:
    """Whether cuBLAS computes a node, of operands of a short type, and can round it to that type."""
    return multiplies(node) and node.dtype == _F32 and node.operands[0].dtype == dtype


@lru_cache(1024)
def product_of(op: ops.DotGeneral, left: TensorType, right: TensorType) -> BatchedProduct:
    """The product that computes a DotGeneral of operands of these types, which `multiplies` accepts."""
    free = (op.lhs_free(left), op.rhs_free(right))
    batch = (op.lhs_batching_dimensions, op.rhs_batching_dimensions)
    pairs = sorted(zip(op.lhs_contracting_dimensions, op.rhs_contracting_dimensions, strict=True))
    others = sorted(pairs, key=lambda pair: pair[1])
    # The order of the terms is that of an operand: the one of which more lies as it is.
    layouts = [_layouts((left, right), batch, free, order) for order in (pairs, others)]
    (lhs, lhs_order), (rhs, rhs_order) = min(
        layouts, key=lambda both: sum(order is not None for _, order in both)
    )
    sizes = [
        prod(left.shape[dim] for dim in dims) for dims in (batch[0], free[0], op.lhs_contracting_dimensions)
    ]
    columns = prod(right.shape[dim] for dim in free[1])
    return BatchedProduct(sizes[0], sizes[1], columns, sizes[2], lhs, rhs, (lhs_order, rhs_order))


def _layouts(
    types: Sequence[TensorType], batch: Sequence[Ints], free: Sequence[Ints], pairs: Sequence[tuple[int, int]]
) -> list[tuple[Matrix, Ints | None]]:
    """The layout of both operands with the terms in this order, and the permutation that each needs first."""
    layouts: list[tuple[Matrix, Ints | None]] = []
    for side, type in enumerate(types):
        terms = tuple([pair[side] for pair in pairs])
        # Rows of the left operand are its free dimensions, those of the right one the terms.
        groups = (batch[side], free[side], terms) if side == 0 else (batch[side], terms, free[side])
        matrix = _matrix_of(type.shape, groups)
        if matrix is not None:
            layouts.append((matrix, None))
            continue
        order = tuple([dim for group in groups for dim in group])
        sizes = [prod(type.shape[dim] for dim in group) for group in groups]
        layouts.append((Matrix(sizes[1] * sizes[2], sizes[2], 1), order))
    return layouts


def _matrix_of(shape: Ints, groups: Sequence[Ints]) -> Matrix | None:
    """Batch, rows and columns of an array in row-major order, if each has one step, and rows or columns that of 1."""
    steps = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    batch, rows, columns = (
        _step_of([(shape[dim], steps[dim]) for dim in group if shape[dim] > 1]) for group in groups
    )
    if batch is None or rows is None or columns is None or 1 not in (rows, columns):
        return None
    return Matrix(batch, rows, columns)


def _step_of(dimensions: Sequence[tuple[int, int]]) -> int | None:
    """The step from element to element over dimensions of these sizes and steps, in this order, if it is always one.

    1 where there is one element.
    """
    if any(step != size * below for (_, step), (size, below) in pairwise(dimensions)):
        return None
    return dimensions[-1][1] if dimensions else 1


def _operand(inner: int, outer: int, sizes: tuple[int, int]) -> tuple[int, int]:
    """Whether cuBLAS is to transpose a matrix of (inner, outer) sizes with these steps, and the step that is not 1."""
    # A step along one element is never taken, but may not be too short.
    if inner == 1 and (sizes[1] == 1 or outer >= sizes[0]):
        return (0, outer if sizes[1] > 1 else sizes[0])
    return (1, inner if sizes[0] > 1 else sizes[1])


def gemm_arguments(product: BatchedProduct, operand: DType, result: DType) -> list[tuple[int, ...]]:
    """The arguments of cublasGemmStridedBatchedEx around the addresses of rhs, lhs and result, in this order.

    cuBLAS counts down columns, and so computes the transposed result of the transposed operands.
    """
    lhs, rhs = product.lhs, product.rhs
    turned_a, step_a = _operand(rhs.columns, rhs.rows, (product.columns, product.terms))
    turned_b, step_b = _operand(lhs.columns, lhs.rows, (product.terms, product.rows))
    one, zero = _SCALARS[operand]
    type, sizes = DATA_TYPES[operand], (product.columns, product.rows, product.terms)
    return [
        (turned_a, turned_b, *sizes, one.ctypes.data),
        (type, step_a, rhs.batch),
        (type, step_b, lhs.batch, zero.ctypes.data),
        (
            *(DATA_TYPES[result], product.columns, product.rows * product.columns),
            *(product.batch, _COMPUTE_TYPES[operand], -1),
        ),
    ]


# --- transforms and factorisations -----------------------------------------------------------------------------


def _fft(arrays: Any, op: Any, x: Any) -> Sequence[Any]:
    axes = tuple(range(-len(op.fft_length), 0))
    if op.fft_type == "IRFFT":
        # cuFFT expects imaginary parts that cannot be to be 0.
        x = arrays.fft.ifftn(x, axes=axes[:-1]) if len(axes) > 1 else x.copy()
        length = op.fft_length[-1]
        x[..., 0].imag = 0
        if length % 2 == 0:
            x[..., length // 2].imag = 0
        return [arrays.fft.irfft(x, length, axis=-1)]
    transform = {"FFT": arrays.fft.fftn, "IFFT": arrays.fft.ifftn, "RFFT": arrays.fft.rfftn}[op.fft_type]
    return [transform(x, axes=axes)]


def _cholesky(arrays: Any, op: Any, a: Any) -> Sequence[Any]:
    # The library reads the lower triangle, and takes the diagonal for real.
    a = a if op.lower else arrays.conj(a.swapaxes(-1, -2))
    factor, _ = _compute_by_matrix(arrays, lambda a: [arrays.linalg.cholesky(a)], a)
    # Some builds let a zero on the diagonal pass.
    is_singular = ~(arrays.diagonal(factor, axis1=-2, axis2=-1).real > 0).all(-1)
    factor = arrays.where(is_singular[..., None, None], factor.dtype.type(np.nan), factor)
    return [factor if op.lower else arrays.conj(factor.swapaxes(-1, -2))]


def _eigh(arrays: Any, op: Any, a: Any) -> Sequence[Any]:
    uplo = "L" if op.lower else "U"
    w, v, info = _compute_by_matrix(arrays, lambda a: arrays.linalg.eigh(a, UPLO=uplo), a)
    return [v, w, info]


def _svd(arrays: Any, op: Any, a: Any) -> Sequence[Any]:
    u, s, vh, info = _compute_by_matrix(
        arrays, lambda a: arrays.linalg.svd(a, full_matrices=op.full_matrices), a
    )
    return [a, s, u, vh, info]


def _compute_by_matrix(arrays: Any, routine: Callable[[Any], Sequence[Any]], a: Any) -> Sequence[Any]:
    """The results of a routine and a number for each matrix: 0, or 1 where the routine fails, and all is NaN.

    The libraries refuse all matrices for the sake of one.
    """
    try:
        return [*routine(a), arrays.zeros(a.shape[:-2], np.int32)]
    except np.linalg.LinAlgError:
        if a.ndim == 2:
            shapes = routine(arrays.eye(*a.shape, dtype=a.dtype))
            return [*[arrays.full_like(each, np.nan) for each in shapes], arrays.ones((), np.int32)]
        matrices = a.reshape(-1, *a.shape[-2:])
        parts = [_compute_by_matrix(arrays, routine, matrix) for matrix in matrices]
        columns = zip(*parts, strict=True)
        return [arrays.stack(each).reshape(a.shape[:-2] + each[0].shape) for each in columns]


def _geqrf(arrays: Any, op: Any, a: Any) -> Sequence[Any]:
    factors, taus = arrays.linalg.qr(a, mode="raw")
    return [factors.swapaxes(-1, -2), taus]


def _eig(arrays: Any, op: Any, a: Any) -> Sequence[Any]:
    # What the library makes of other numbers is not said.
    is_finite = arrays.isfinite(a).all((-2, -1))
    finite = arrays.where(is_finite[..., None, None], a, a.dtype.type(0))
    w, v, info = _compute_by_matrix(arrays, arrays.linalg.eig, finite)
    # Left eigenvectors are the rows of the inverse of the right ones.
    left = v
    if op.compute_left:
        inverse, _ = _compute_by_matrix(arrays, lambda v: [arrays.linalg.inv(v)], v)
        left = arrays.conj(inverse.swapaxes(-1, -2))
        left = left / arrays.sqrt((abs(left) ** 2).sum(-2, keepdims=True))
    nan = a.dtype.type(np.nan)
    w = arrays.where(is_finite[..., None], w, nan)
    left, v = (arrays.where(is_finite[..., None, None], each, nan) for each in (left, v))
    info = arrays.where(is_finite, info, np.int32(1))
    return [*([w] if a.dtype.kind == "c" else [w.real, w.imag]), left, v, info]


# --- calls of cuBLAS and cuSOLVER for matrices that count down columns -------------------------------------------

#: The letters by which the libraries call element types.
_LETTERS: Final = {_F32: "s", _F64: "d", _C64: "c", _C128: "z"}
#: The numbers of `cublasOperation_t`, `cublasSideMode_t` and `cublasFillMode_t`.
_TRANSPOSES: Final = {"NO_TRANSPOSE": 0, "TRANSPOSE": 1, "ADJOINT": 2}
_LEFT, _RIGHT, _LOWER, _UPPER = 0, 1, 0, 1
#: Elements of a matrix for each of a stack, up to which cuBLAS factors all at once.
_MOST_BATCHED: Final = 2**16


def _address(array: Any) -> int:
    """The address of an array of CuPy, or of NumPy where the device is emulated."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def _addresses(arrays: Any, matrices: Any) -> Any:
    """The addresses of matrices that lie one after the other, on the device."""
    step = matrices.itemsize * prod(matrices.shape[-2:])
    first, count = _address(matrices), prod(matrices.shape[:-2])
    return arrays.asarray(first + step * np.arange(count, dtype=np.uint64))


def _triangular_solve(arrays: Any, op: Any, a: Any, b: Any) -> Sequence[Any]:
    """Solve x' op(a)' = b' instead, with transposed arrays, which is what libraries see that count down columns."""
    x = arrays.empty(b.shape, b.dtype)
    # Bytes, without a kernel.
    arrays.copyto(x, b)
    size, (rows, columns) = a.shape[-1], b.shape[-2:]
    count, alpha = prod(a.shape[:-2]), np.ones(1, a.dtype)
    options = (
        _RIGHT if op.left_side else _LEFT,
        _UPPER if op.lower else _LOWER,
        _TRANSPOSES[op.transpose_a],
        int(op.unit_diagonal),
    )
    handle, name = arrays.cuda.get_cublas_handle(), f"{_LETTERS[a.dtype]}trsm"
    sizes = (columns, rows, alpha.ctypes.data)
    if count == 1:
        solve = getattr(arrays.cuda.cublas, name)
        solve(handle, *options, *sizes, _address(a), size, _address(x), columns)
    else:
        both = [_addresses(arrays, each) for each in (a, x)]
        solve = getattr(arrays.cuda.cublas, f"{name}Batched")
        solve(handle, *options, *sizes, _address(both[0]), size, _address(both[1]), columns, count)
    return [x]


def _lu(arrays: Any, op: Any, a: Any) -> Sequence[Any]:
    rows, columns = a.shape[-2:]
    batch, count = a.shape[:-2], prod(a.shape[:-2])
    # A copy, which becomes the factors.
    factors = a.swapaxes(-1, -2).copy()
    pivots = arrays.empty((*batch, min(rows, columns)), np.int32)
    info = arrays.empty(batch, np.int32)
    letter = _LETTERS[a.dtype]
    if rows == columns and count > 1 and rows * rows <= _MOST_BATCHED * count:
        matrices = _addresses(arrays, factors)
        factor = getattr(arrays.cuda.cublas, f"{letter}getrfBatched")
        handle = arrays.cuda.get_cublas_handle()
        factor(handle, rows, _address(matrices), rows, _address(pivots), _address(info), count)
        return [factors.swapaxes(-1, -2), pivots, info]
    handle, solver = arrays.cuda.device.get_cusolver_handle(), arrays.cuda.cusolver
    size = getattr(solver, f"{letter}getrf_bufferSize")(handle, rows, columns, _address(factors), rows)
    scratch = arrays.empty((max(size, 1),), a.dtype)
    for matrix, pivot, number in _steps(count, factors, pivots, info):
        getattr(solver, f"{letter}getrf")(
            handle, rows, columns, matrix, rows, _address(scratch), pivot, number
        )
    return [factors.swapaxes(-1, -2), pivots, info]


def _householder_product(arrays: Any, op: Any, a: Any, taus: Any) -> Sequence[Any]:
    rows, columns = a.shape[-2:]
    product = a.swapaxes(-1, -2).copy()
    info = arrays.empty(a.shape[:-2], np.int32)
    handle, solver = arrays.cuda.device.get_cusolver_handle(), arrays.cuda.cusolver
    name = f"{_LETTERS[a.dtype]}{'ungqr' if a.dtype.kind == 'c' else 'orgqr'}"
    sizes = (rows, columns, taus.shape[-1])
    size = getattr(solver, f"{name}_bufferSize")(handle, *sizes, _address(product), rows, _address(taus))
    scratch = arrays.empty((max(size, 1),), a.dtype)
    for matrix, tau, number in _steps(prod(a.shape[:-2]), product, taus, info):
        getattr(solver, name)(handle, *sizes, matrix, rows, tau, _address(scratch), size, number)
    return [product.swapaxes(-1, -2)]


def _steps(count: int, *stacks: Any) -> Iterator[list[int]]:
    """The addresses of the parts of each of some stacks of as many."""
    starts = [(_address(each), each.nbytes // count) for each in stacks]
    return ([start + number * step for start, step in starts] for number in range(count))


# --- sorts by CUB ------------------------------------------------------------------------------------------------


def sorts(node: Node) -> bool:
    """Whether CUB computes a sort: one long row of integers or floats upwards, by themselves or with their numbers.

    With others in tow CuPy sorts numbers of 8 bytes, and gathers by them, which moves as many bytes as merges do.
    """
    if not isinstance(node.op, ops.Sort) or len(node.operands) != 1 or not is_long_row(node):
        return isinstance(node.op, NumberedSort)
    dtype = node.operands[0].dtype
    if dtype in (_F32, _F64):
        return node.op.comparator == lexicographic([dtype], 1)
    order = order_of(node.op.comparator)
    return order is not None and order.array == 0 and not order.columns[0].descending


def is_long_row(node: Node) -> bool:
    """Whether a sort is one of a long row of keys that CUB takes, which counts in int32."""
    type = node.operands[0].tensor_type
    is_key = type.dtype in (_F32, _F64) or (type.dtype.kind in "iu" and type.dtype.isbuiltin == 1)
    is_row = MIN_SORTED <= type.size < 2**31 and type.shape[node.op.expect(ops.Sort).dimension] == type.size
    return is_key and is_row and not type.dynamic


def with_one_nan(type: TensorType) -> Graph:
    """A copy of floats in which all NaNs are one, the last.

    CUB takes zeros of both signs for equal, and leaves them in their order, but goes by the bits of NaNs.
    """
    x = parameter(type)
    nan = full(np.nan, x.shape, x.dtype)
    return Graph([x], [Node(ops.Select(), (Node(ops.Compare("NE"), (x, x)), nan, x))])


def sort_in_place(arrays: Any, type: TensorType, keys: int, numbers: int | None) -> None:
    """Sort the elements at an address, and store the number of each at another one if that is given.

    arrays: the library that `driver.arrays` is.
    """
    if numbers is None:
        arrays.cuda.thrust.sort(type.dtype, keys, 0, (type.size,))
    else:
        arrays.cuda.thrust.argsort(type.dtype, numbers, keys, 0, (type.size,))


ROUTINES: Final[dict[type[Op], Routine]] = {
    ops.Fft: _fft,
    ops.Cholesky: _cholesky,
    ops.Eigh: _eigh,
    ops.Svd: _svd,
    ops.Geqrf: _geqrf,
    ops.Eig: _eig,
    ops.TriangularSolve: _triangular_solve,
    ops.Lu: _lu,
    ops.HouseholderProduct: _householder_product,
}


def computes(node: Node) -> bool:
    """Whether a library computes an operation."""
    if type(node.op) not in ROUTINES:
        return multiplies(node) or sorts(node)
    types = [operand.tensor_type for operand in node.operands]
    return all(type.dtype in _DTYPES and type.size for type in types)
