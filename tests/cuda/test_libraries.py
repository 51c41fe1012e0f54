"""Operations that libraries of CUDA compute, on stand-ins that NumPy computes and that refuse what the libraries do."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.emulator.driver import EmulatedDriver
from tests.cuda.libraries import ARRAYS, CUBLAS, CUSOLVER, LibraryError, gemm_strided_batched_ex
from xarr import lax
from xarr.ir import ops
from xarr.ir.graph import Node, parameter
from xarr.ir.types import TensorType
from xarr_cupy import host, libraries
from xarr_numpy.ops.factorisations import householder_product, lu

#: Dimensions of both operands by letters: those of both that the result has are batches, those that it has not are
#: summed up.
EQUATIONS = (
    *(
        "ij,jk->ik",
        "ji,jk->ik",
        "ij,kj->ik",
        "ji,kj->ik",
        "j,jk->k",
        "ij,j->i",
        "j,j->",
        "i,k->ik",
        "ij,k->ijk",
    ),
    *("bij,bjk->bik", "ibj,bjk->bik", "ijb,kjb->bik", "bqhd,bkhd->bhqk", "bhqk,bkhd->bhqd", "ijl,jlk->ik"),
    *("ilj,jlk->ik", "jil,ljk->ik", "bcij,cbjk->bcik", "bi,bj->bij", "bi,bi->b", "b,b->b", "ij,->ij"),
)
SIZES = {"i": 3, "j": 4, "k": 5, "l": 2, "b": 2, "c": 3, "q": 3, "h": 2, "d": 4}
DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def dims_of(equation: str) -> tuple[str, str, tuple[Any, Any]]:
    """Both operands by letters, and the dimension numbers of `lax.dot_general`."""
    left, right = equation.partition("->")[0].split(",")
    result = equation.partition("->")[2]
    shared = [letter for letter in left if letter in right]
    batch = [letter for letter in result if letter in shared]
    summed = [letter for letter in shared if letter not in result]
    numbers = tuple(
        (tuple(map(left.index, group)), tuple(map(right.index, group))) for group in (summed, batch)
    )
    return left, right, numbers


def operands(left: str, right: str, dtype: str) -> list[Any]:
    """Small integers, of which every sum is exact in each type."""
    rng = np.random.default_rng(0)
    arrays = []
    for letters in (left, right):
        x = rng.integers(-3, 4, [SIZES[letter] for letter in letters]).astype("f4")
        x = x + 1j * rng.integers(-3, 4, x.shape) if dtype.startswith("complex") else x
        arrays.append(xarr.astype(xarr.asarray(x), dtype))
    return arrays


def device(backend: Any) -> EmulatedDriver:
    """The emulated device below a backend."""
    result = backend._engine.driver
    assert isinstance(result, EmulatedDriver)
    return result


@pytest.mark.parametrize(
    ("equation", "dtype"),
    [*((equation, "float32") for equation in EQUATIONS)]
    + [(equation, dtype) for equation in ("bij,kbj->bik", "ijl,ljk->ik") for dtype in DTYPES],
)
def test_products_of_all_dimensions(equation: str, dtype: str, cupy: Any) -> None:
    left, right, numbers = dims_of(equation)
    x, y = operands(left, right, dtype)
    before = device(cupy).products
    host.CALLS.clear()
    result = np.asarray(lax.dot_general(x, y, numbers))
    assert device(cupy).products == before + 1 and not host.CALLS
    with xarr.use_backend("reference"):
        assert_same(result, np.asarray(lax.dot_general(*operands(left, right, dtype), numbers)))


def test_products_in_every_order_of_dimensions(cupy: Any) -> None:
    for left in list(permutations("bcijl"))[::7]:
        letters = "".join(left)
        _, right, numbers = dims_of(f"{letters},bjlkc->bcik")
        x, y = operands(letters, right, "float32")
        wanted = np.einsum(f"{letters},bjlkc->{''.join(letters[k] for k in numbers[1][0])}ik", x, y)
        assert_same(np.asarray(lax.dot_general(x, y, numbers)), wanted)


@pytest.mark.parametrize(
    ("equation", "copied"),
    [
        ("ij,jk->ik", 0),
        ("ji,kj->ik", 0),
        ("bqhd,bkhd->bhqk", 2),
        ("ibj,bkj->bik", 0),
        ("ijl,jlk->ik", 0),
        ("ijl,ljk->ik", 1),
    ],
)
def test_what_can_stay_as_it_lies_is_not_copied(equation: str, copied: int, cupy: Any) -> None:
    left, right, numbers = dims_of(equation)
    x, y = operands(left, right, "float32")
    np.asarray(x), np.asarray(y)
    before = device(cupy).launches
    lax.dot_general(x, y, numbers).block_until_ready()
    assert device(cupy).launches - before == copied


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_summed_up_in_float32(dtype: str, cupy: Any) -> None:
    x = xarr.astype(xarr.ones((1, 4096)), dtype)
    result = lax.dot_general(x, x, (((1,), (1,)), ((), ())), preferred_element_type="float32")
    assert result.dtype == np.float32 and float(result[0, 0]) == 4096.0
    # In the type itself ones would no longer add up at 256 or 2048.
    assert float(lax.dot_general(x, x, (((1,), (1,)), ((), ())))[0, 0]) == 4096.0
    assert device(cupy).products == 2


@pytest.mark.parametrize("equation", EQUATIONS)
def test_transposes_are_parts_of_products(equation: str, cupy: Any) -> None:
    """Whatever is transposed before a product, the result is that of NumPy."""
    left, right, numbers = dims_of(equation)
    x, y = operands(left, right, "float32")
    for reverse in (slice(None, None, -1), slice(1, None)):
        # The last axis first or all in reverse, and the other way for the product.
        orders = [
            tuple(np.roll(range(each.ndim), 1) if reverse.step is None else range(each.ndim)[::-1])
            for each in (x, y)
        ]
        moved = [
            np.transpose(np.asarray(each), np.argsort(order))
            for each, order in zip((x, y), orders, strict=True)
        ]

        def function(x: Any, y: Any, orders: Any = orders) -> Any:
            arrays = [
                lax.transpose(each, tuple(map(int, order)))
                for each, order in zip((x, y), orders, strict=True)
            ]
            return lax.dot_general(*arrays, numbers)

        result = np.asarray(xarr.jit(function)(*map(xarr.asarray, moved)))
        assert_same(result, np.asarray(lax.dot_general(x, y, numbers)))


def test_a_transposed_operand_is_not_copied(cupy: Any) -> None:
    x = xarr.asarray(np.arange(12, dtype="float32").reshape(3, 4))
    before = device(cupy).launches
    assert_same(np.asarray(xarr.jit(lambda x: x @ x.T)(x)), np.asarray(x) @ np.asarray(x).T)
    assert device(cupy).launches == before


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_are_rounded_once_and_by_cublas(dtype: str, cupy: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape) for shape in ((3, 20, 30), (3, 30, 10)))
    # One is beyond float16, and rounded to infinity.
    x[0, 0], y[0, :, 0] = 1e3, 1e3
    x, y = (xarr.astype(xarr.asarray(each), dtype) for each in (x, y))
    np.asarray(x), np.asarray(y)

    def in_loop(x: Any, y: Any) -> Any:
        return lax.while_loop(lambda k: k[0] < 2, lambda k: (k[0] + 1, x @ y), (0, xarr.zeros_like(x @ y)))[1]

    for function, kernels in (
        (lambda x, y: x @ y, 0),
        (lambda x, y: xarr.maximum(x @ y, 0), 1),
        (in_loop, None),
    ):
        before, products = device(cupy).launches, device(cupy).products
        result = xarr.jit(function)(x, y)
        assert device(cupy).products > products and result.dtype == x.dtype
        assert kernels in (None, device(cupy).launches - before)
        with xarr.use_backend("numpy"):
            wanted = np.asarray(xarr.jit(function)(*[xarr.asarray(np.asarray(each)) for each in (x, y)]))
        sums = np.matmul(*[np.asarray(each).astype("f4") for each in (x, y)])
        with np.errstate(over="ignore"):
            rounded = sums.astype(wanted.dtype)
        np.testing.assert_array_equal(np.isinf(np.asarray(result)), np.isinf(wanted))
        assert_same(np.asarray(result), np.maximum(rounded, 0) if kernels == 1 else rounded)


def test_a_product_that_is_wanted_in_float32_too_is_rounded_by_a_kernel(cupy: Any) -> None:
    x = xarr.astype(xarr.ones((4, 4)), "bfloat16")

    def function(x: Any) -> Any:
        wide = lax.dot_general(x, x, (((1,), (0,)), ((), ())), preferred_element_type="float32")
        return wide, xarr.astype(wide, "bfloat16")

    plan = xarr.jit(function).lower(x).stage("plan")
    assert [str(plan.buffers[k].type.dtype) for k in plan.results] == ["float32", "bfloat16"]
    before = device(cupy).products
    for each in xarr.jit(function)(x):
        assert (np.asarray(each) == 4).all()
    assert device(cupy).products == before + 1


def test_products_of_many_terms_are_not_computed_in_reductions(cupy: Any) -> None:
    def nearest(x: Any) -> Any:
        return xarr.min(x[:, :1] - 2 * (x @ x.T), axis=1)

    for rows, terms, products in ((384, 64, 0), (384, 65, 1), (256, 8, 1)):
        x = np.random.default_rng(0).normal(size=(rows, terms)).astype("float32")
        before = device(cupy).products
        result = np.asarray(xarr.jit(nearest)(xarr.asarray(x)))
        assert device(cupy).products == before + products
        np.testing.assert_allclose(result, (x[:, :1] - 2 * x @ x.T).min(1), rtol=2e-5)


@pytest.mark.parametrize(("dtype", "result"), [("int32", "int32"), ("float32", "float64"), ("int8", "int32")])
def test_other_products_are_kernels(dtype: str, result: str, cupy: Any) -> None:
    x = xarr.astype(xarr.asarray(np.arange(12.0).reshape(3, 4)), dtype)
    host.CALLS.clear()
    made = lax.dot_general(x, x, (((1,), (1,)), ((), ())), preferred_element_type=result)
    wanted = np.arange(12).reshape(3, 4)
    assert_same(np.asarray(made), (wanted @ wanted.T).astype(result))
    assert device(cupy).products == 0 and not host.CALLS


def test_no_complex_product_saves_one_of_reals() -> None:
    calls = {}
    for dtype in map(np.dtype, (np.float32, np.complex64, np.float16)):
        types = [TensorType((3, 4), dtype), TensorType((4, 5), dtype)]
        product = libraries.product_of(ops.DotGeneral((), (), (1,), (0,), dtype), *types)
        calls[dtype.name] = libraries.gemm_arguments(product, dtype, dtype)
    assert {name: call[-1][-2] for name, call in calls.items()} == {
        **{"float32": libraries.COMPUTE_32F, "complex64": libraries.COMPUTE_32F_PEDANTIC},
        "float16": libraries.COMPUTE_32F,
    }


def test_what_cublas_counts_not_is_left_to_kernels() -> None:
    op = ops.DotGeneral((), (), (1,), (0,), np.dtype("f4"))
    sides = [parameter(TensorType(shape, np.dtype("f4"))) for shape in ((2**16, 1), (1, 2**15))]
    assert not libraries.multiplies(Node(op, tuple(sides)))


# --- transforms and factorisations -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lengths", [(6,), (5,), (4, 6), (2, 3, 5)])
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
def test_transforms(kind: str, lengths: tuple[int, ...], dtype: str, cupy: Any) -> None:
    rng = np.random.default_rng(0)
    shape = (2, *lengths[:-1], lengths[-1] // 2 + 1 if kind == "IRFFT" else lengths[-1])
    x = rng.normal(size=shape)
    x = x if kind == "RFFT" else x + 1j * rng.normal(size=shape)
    x = x.astype(dtype if kind == "RFFT" else np.result_type(dtype, "c8"))
    host.CALLS.clear()
    result = np.asarray(lax.fft(xarr.asarray(x), kind, lengths))
    assert not host.CALLS
    with xarr.use_backend("numpy"):
        wanted = np.asarray(lax.fft(xarr.asarray(x), kind, lengths))
    assert result.dtype == wanted.dtype
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_factorisations(dtype: str, cupy: Any) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 3, 4, 4)).astype(dtype)
    a = a + 1j * rng.normal(size=a.shape).astype(dtype) if dtype.startswith("complex") else a
    a = (a @ np.conj(a.swapaxes(-1, -2)) + 4 * np.eye(4)).astype(dtype)
    host.CALLS.clear()
    for function in (
        lambda a: lax.linalg.cholesky(a),
        lambda a: lax.linalg.eigh(a)[1],
        lambda a: xarr.linalg.svd(a)[1],
        lambda a: abs(xarr.linalg.qr(a[0, 0])[1]),
    ):
        result = np.asarray(function(xarr.asarray(a)))
        with xarr.use_backend("numpy"):
            wanted = np.asarray(function(xarr.asarray(a)))
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(result, wanted, rtol=1e-4 if dtype in ("float32", "complex64") else 1e-11)
    assert {name for name, _ in host.CALLS} <= {"stablehlo.custom_call"}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("batch", [(), (1,), (2, 3)])
def test_triangular_systems(batch: tuple[int, ...], dtype: str, cupy: Any) -> None:
    a, b = (_matrices((*batch, *shape), dtype) for shape in ((4, 4), (4, 3)))
    host.CALLS.clear()
    options = product((True, False), (True, False), (True, False), ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    for left_side, lower, unit_diagonal, transpose in options:
        right = b if left_side else b.swapaxes(-1, -2)
        op = ops.TriangularSolve(left_side, lower, unit_diagonal, transpose)
        # The other triangle is not read.
        nan = np.where(
            (np.triu if lower else np.tril)(np.ones((4, 4)), 1 if lower else -1), np.nan, a
        ).astype(dtype)
        (result,) = libraries.ROUTINES[ops.TriangularSolve](ARRAYS, op, nan, np.ascontiguousarray(right))
        triangle = (np.tril if lower else np.triu)(a)
        if unit_diagonal:
            triangle = triangle - triangle * np.eye(4, dtype=dtype) + np.eye(4, dtype=dtype)
        matrix = triangle if transpose == "NO_TRANSPOSE" else triangle.swapaxes(-1, -2)
        matrix = matrix.conj() if transpose == "ADJOINT" else matrix
        made = matrix @ result if left_side else result @ matrix
        np.testing.assert_allclose(made, right, atol=1e-3 if dtype in ("float32", "complex64") else 1e-10)
    solved = lax.linalg.triangular_solve(xarr.asarray(a), xarr.asarray(b), left_side=True, lower=True)
    with xarr.use_backend("numpy"):
        wanted = lax.linalg.triangular_solve(xarr.asarray(a), xarr.asarray(b), left_side=True, lower=True)
        wanted = np.asarray(wanted)
    np.testing.assert_allclose(np.asarray(solved), wanted, rtol=1e-3)
    assert not host.CALLS


def _matrices(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=shape)
    x = x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x
    x = x + 3 * np.eye(*shape[-2:])
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (2, 3, 4, 4), (2, 5, 3), (2, 1, 1)])
def test_lu_and_products_of_reflections(shape: tuple[int, ...], dtype: str, cupy: Any) -> None:
    a = _matrices(shape, dtype)
    node = Node(ops.Lu(), (parameter(TensorType(a.shape, a.dtype)),))
    factors, pivots, info = libraries.ROUTINES[ops.Lu](ARRAYS, node.op, a)
    wanted = lu(a)
    for each, other in zip((factors, pivots, info), wanted, strict=True):
        assert each.dtype == other.dtype
        np.testing.assert_allclose(each, other, rtol=1e-4)
    taus = np.linalg.qr(a, mode="raw")[1]
    rows, columns = shape[-2:]
    a = a[..., : min(rows, columns)]
    (made,) = libraries.ROUTINES[ops.HouseholderProduct](ARRAYS, ops.HouseholderProduct(), a, taus)
    np.testing.assert_allclose(made, householder_product(a, taus), rtol=1e-4, atol=1e-5)
    host.CALLS.clear()
    result = np.asarray(xarr.linalg.qr(xarr.asarray(a))[0])
    np.testing.assert_allclose(
        np.conj(result.swapaxes(-1, -2)) @ result,
        np.broadcast_to(np.eye(result.shape[-1]), (*result.shape[:-2], result.shape[-1], result.shape[-1])),
        atol=1e-4,
    )
    assert not host.CALLS


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_eigenvectors_of_any_matrix(dtype: str, cupy: Any) -> None:
    a = np.stack([_matrices((3, 3), dtype), np.full((3, 3), np.nan, dtype), np.eye(3, dtype=dtype)])
    host.CALLS.clear()
    *values, left, right, info = libraries.ROUTINES[ops.Eig](ARRAYS, ops.Eig(), a)
    w = values[0] if len(values) == 1 else values[0] + 1j * values[1]
    assert_same(info != 0, np.array([False, True, False]))
    for k in (0, 2):
        np.testing.assert_allclose(a[k] @ right[k], right[k] * w[k], atol=1e-4)
        np.testing.assert_allclose(left[k].conj().T @ a[k], w[k][:, None] * left[k].conj().T, atol=1e-4)
    assert np.isnan(w[1]).all() and np.isnan(right[1]).all() and np.isnan(left[1]).all()
    made = np.asarray(xarr.linalg.eigvals(xarr.asarray(a[0])))
    np.testing.assert_allclose(np.sort_complex(made), np.sort_complex(w[0]), rtol=1e-4)
    assert not host.CALLS


@pytest.mark.parametrize("lower", [True, False])
def test_only_a_matrix_without_a_factor_is_nan(lower: bool, cupy: Any) -> None:
    a = np.stack([np.eye(2), -np.eye(2), np.full((2, 2), np.nan), np.zeros((2, 2)), 4 * np.eye(2)])
    result = np.asarray(cholesky(a, lower))
    assert_same(np.isnan(result).all((1, 2)), np.array([False, True, True, True, False]))
    assert_same(result[4], 2 * np.eye(2))


def cholesky(a: Any, lower: bool) -> Any:
    node = Node(ops.Cholesky(lower), (parameter(TensorType(a.shape, a.dtype)),))
    return libraries.ROUTINES[ops.Cholesky](ARRAYS, node.op, a)[0]


# --- the stand-ins refuse --------------------------------------------------------------------------------------


GOOD = {"transa": 0, "lda": 2, "a_type": 0, "compute": 69, "c_stride": 4, "beta": 0.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lda": 1}, "INVALID_VALUE: lda = 1 of 2 rows"),
        ({"a_type": 1}, "NOT_SUPPORTED: types 1, 0, 0"),
        ({"compute": 77}, "NOT_SUPPORTED: types 0, 0, 0, computed in 77"),
        ({"c_stride": 3}, "results of a batch overlap"),
        ({"beta": 1.0}, "beta = 0 was expected"),
    ],
)
def test_the_product_refuses(change: dict[str, Any], message: str) -> None:
    x = np.arange(8, dtype="f4")
    result = np.empty(8, "f4")

    def call(transa: int, lda: int, a_type: int, compute: int, c_stride: int, beta: float) -> None:
        scalars = [np.array([number], "f4") for number in (1, beta)]
        at, to = x.ctypes.data, result.ctypes.data
        arguments = (transa, 0, 2, 2, 2, scalars[0].ctypes.data, at, a_type, lda, 4, at, 0, 2, 4)
        gemm_strided_batched_ex(0, *arguments, scalars[1].ctypes.data, to, 0, 2, c_stride, 2, compute, -1)

    call(**GOOD)
    assert_same(result.reshape(2, 2, 2), np.matmul(x.reshape(2, 2, 2), x.reshape(2, 2, 2)))
    with pytest.raises(LibraryError, match=message):
        call(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda at: CUBLAS["strsm"](1, 0, 0, 0, 0, 2, 2, at, at, 1, at, 2),
            "INVALID_VALUE: lda = 1 of 2 rows",
        ),
        (
            lambda at: CUBLAS["strsm"](1, 0, 0, 0, 0, 2, 2, at, at, 2, at, 1),
            "INVALID_VALUE: ldb = 1 of 2 rows",
        ),
        (lambda at: CUBLAS["strsm"](1, 2, 0, 0, 0, 2, 2, at, at, 2, at, 2), "INVALID_VALUE: an option"),
        (lambda at: CUSOLVER["sgetrf"](2, 2, 2, at, 2, 0, at, at), "INVALID_VALUE: handle or workspace"),
        (lambda at: CUSOLVER["sorgqr"](2, 1, 2, 1, at, 2, at, at, 2, at), "workspace or a size"),
    ],
    ids=["lda", "ldb", "side", "workspace", "rows"],
)
def test_systems_and_factorisations_refuse(call: Any, message: str) -> None:
    x = np.ones(8, "f4")
    with pytest.raises(LibraryError, match=message):
        call(x.ctypes.data)


def test_the_others_refuse_short_floats() -> None:
    with pytest.raises(LibraryError, match="cholesky: a dtype of float32 or wider was expected, got float16"):
        ARRAYS.linalg.cholesky(np.eye(2, dtype="f2"))


def test_a_wrong_step_is_seen(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "_operand", lambda inner, outer, sizes: (0, 1))
    x = xarr.asarray(np.eye(3, dtype="f4"))
    with pytest.raises(LibraryError, match="lda = 1 of 3 rows"):
        np.asarray(lax.dot(x, x))
