"""dot, dot_general and batch_matmul, against jax.lax on the CPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.errors import DTypeError, InputError, ShapeError

jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(5)
#: lhs shape, rhs shape, dimension numbers
CASES: list[Any] = [
    ((3, 4), (4, 5), (((1,), (0,)), ((), ()))),
    ((4, 3), (5, 4), (((0,), (1,)), ((), ()))),
    ((2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
    ((3, 2, 4, 1), (4, 6, 2, 3), (((0, 2), (3, 0)), ((1,), (2,)))),
    ((2, 3, 2, 2, 3), (3, 2, 2, 3, 2), (((4, 0), (0, 4)), ((1, 3), (3, 1)))),
    ((2, 3), (4,), (((), ()), ((), ()))),
    ((3,), (3,), (((), ()), ((0,), (0,)))),
    ((), (), (((), ()), ((), ()))),
    ((3, 0), (0, 2), (((1,), (0,)), ((), ()))),
    ((0, 3), (3, 2), (((1,), (0,)), ((), ()))),
    ((2, 0, 3), (2, 3, 1), (((2,), (1,)), ((0,), (0,)))),
]


def values(shape: tuple[int, ...], dtype: Any) -> Any:
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return RNG.random(shape) < 0.4
    if kind.kind in "iu":
        return RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)
    real = RNG.integers(-16, 17, shape) / 8
    return np.asarray(real + 1j * RNG.integers(-16, 17, shape) if kind.kind == "c" else real).astype(kind)


def same(mine: Any, theirs: Any) -> None:
    got, wanted = np.asarray(mine), np.asarray(theirs)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    # The sign of a zero depends on whether the sum starts from 0 or from the first product.
    assert (got + got.dtype.type(0)).tobytes() == (wanted + wanted.dtype.type(0)).tobytes()


@pytest.mark.parametrize("case", range(len(CASES)))
def test_dot_general_agrees(case: int) -> None:
    # The values are small multiples of 1/8, so that every sum is exact and all bits must agree.
    lhs, rhs, numbers = CASES[case]
    for dtype in (np.float64, np.int8):
        a, b = values(lhs, dtype), values(rhs, dtype)
        same(lax.dot_general(a, b, numbers), jax.lax.dot_general(a, b, numbers))


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32", "bfloat16", "complex64"],
)
def test_element_types_agree(dtype: str) -> None:
    a, b = values((3, 40), np.dtype(dtype)), values((40, 2), np.dtype(dtype))
    wanted = jax.lax.dot(a, b)
    if dtype in ("float16", "bfloat16"):
        exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(a.dtype)
        same(lax.dot(a, b), exact)
    else:
        same(lax.dot(a, b), wanted)


def test_integers_wrap_even_where_float64_is_not_exact() -> None:
    lhs = np.full((2, 70000), np.iinfo(np.int32).min, np.int32)
    rhs = np.full((70000, 1), 12345, np.int32)
    wanted = np.int64(70000) * np.iinfo(np.int32).min * 12345
    same(lax.dot(lhs, rhs, preferred_element_type=np.int64), np.full((2, 1), wanted))
    same(lax.dot(lhs, rhs), np.full((2, 1), wanted).astype(np.int32))
    wide = np.full((1, 3), 2**62, np.int64)
    same(lax.dot(wide, wide.T), np.zeros((1, 1), np.int64))


@pytest.mark.parametrize(
    ("dtype", "preferred"),
    [
        ("int8", "int32"),
        ("int8", "float32"),
        ("float32", "float64"),
        ("bfloat16", "float32"),
        ("bool", "int32"),
        ("int32", "complex64"),
    ],
)
def test_preferred_element_type_agrees(dtype: str, preferred: str) -> None:
    a, b = values((2, 9), np.dtype(dtype)), values((9, 3), np.dtype(dtype))
    if dtype == "int32":
        a, b = a % 100, b % 100
    same(lax.dot(a, b, preferred_element_type=preferred), jax.lax.dot(a, b, preferred_element_type=preferred))


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("preferred", ["int8", "int32", "uint64", "bool"])
@pytest.mark.parametrize("dtype", ["float8_e5m2", "bfloat16", "float16", "float32", "float64"])
def test_float_products_become_integers_once_and_at_the_end(dtype: str, preferred: str, backend: str) -> None:
    sign = np.abs if preferred == "uint64" else np.positive  # what -1 is as a uint64, nobody defines
    for size in (1, 9):
        a, b = (sign(values(shape, np.dtype(dtype))) for shape in ((3, size), (size, 3)))
        with xarr.use_backend(backend):
            got = np.asarray(lax.dot(a, b, preferred_element_type=preferred))
            scalar = np.asarray(
                lax.dot_general(a[0, 0], b[0, 0], (((), ()), ((), ())), preferred_element_type=preferred)
            )
        same(got, jax.lax.dot(a, b, preferred_element_type=preferred))
        same(scalar, jax.lax.dot(a[:1, :1], b[:1, :1], preferred_element_type=preferred).reshape(()))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "bfloat16", "float16"])
@pytest.mark.parametrize("preferred", ["int8", "int32", "uint64"])
def test_loops_round_sums_of_floats_before_they_are_integers(dtype: str, preferred: str) -> None:
    a, b = np.full((13, 19), 1, dtype), np.full((19, 17), 1, dtype)
    a[0, 0], b[0, 0] = (9, 1) if dtype == "float8_e4m3fn" else (113, 109)

    def product(a: Any, b: Any) -> Any:
        return lax.dot(a, b, preferred_element_type=preferred) + 1

    wanted = jax.lax.dot(a, b, preferred_element_type=preferred) + 1
    same(xarr.jit(product)(a, b), wanted)
    with xarr.config(fusion="off"):
        same(product(xarr.asarray(a), xarr.asarray(b)), wanted)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_complex_products_become_real_at_the_end(backend: str) -> None:
    a, b = values((2, 5), np.complex64), values((5, 3), np.complex64)
    for preferred in ("int32", "float32", "float64"):
        with xarr.use_backend(backend):
            got = np.asarray(lax.dot(a, b, preferred_element_type=preferred))
        same(got, jax.lax.dot(a, b, preferred_element_type=preferred))


def test_narrow_floats_accumulate_in_float32_and_round_once() -> None:
    lhs = np.full((1, 4096), 0.5, ml_dtypes.float8_e4m3fn)
    rhs = np.full((4096, 1), 0.125, ml_dtypes.float8_e4m3fn)
    assert np.asarray(lax.dot(lhs, rhs)).astype(float) == 256
    assert np.asarray(lax.dot(lhs, rhs, preferred_element_type=np.float16)).astype(float) == 256
    scalar = lax.dot_general(
        np.float16(3), np.float16(0.5), (((), ()), ((), ())), preferred_element_type=np.float64
    )
    same(scalar, np.float64(1.5))


def test_dot_of_vectors_and_matrices() -> None:
    a, b, v, w = values((2, 3), float), values((3, 2), float), values((3,), float), values((3,), float)
    for lhs, rhs in ((v, w), (a, v), (v, b), (a, b)):
        same(lax.dot(lhs, rhs), jax.lax.dot(lhs, rhs))


def test_infinities_and_nan_spread() -> None:
    lhs = np.array([[np.inf, 0.0], [np.nan, 1.0]])
    got = np.asarray(lax.dot(lhs, np.array([[0.0, 1.0], [1.0, 1.0]])))
    np.testing.assert_array_equal(np.isnan(got), [[True, False], [True, True]])


def test_operands_that_are_views_and_broadcasts() -> None:
    base = values((6, 8), float)
    np.testing.assert_array_equal(
        np.asarray(lax.dot(base[::2, ::-2], base[:4, ::3])), base[::2, ::-2] @ base[:4, ::3]
    )
    wide = lax.broadcast_in_dim(np.array([1.0, 2.0]), (3, 2), (1,))
    np.testing.assert_array_equal(np.asarray(lax.dot(wide, np.ones(2))), [3.0, 3.0, 3.0])


def test_batch_matmul_agrees() -> None:
    a, b = values((2, 3, 4, 5), float), values((2, 3, 5, 1), float)
    same(lax.batch_matmul(a, b), jax.lax.batch_matmul(a, b))


@pytest.mark.parametrize(
    "precision",
    [
        None,
        "default",
        "HIGH",
        "highest",
        ("default", "highest"),
        jax.lax.Precision.HIGHEST,
        (jax.lax.Precision.HIGH, None),
    ],
)
def test_precision_is_accepted_in_every_spelling(precision: Any) -> None:
    np.testing.assert_array_equal(np.asarray(lax.dot(np.ones(2), np.ones(2), precision=precision)), 2.0)


@pytest.mark.parametrize("precision", ["best", ("high",), 3, SimpleNamespace(name="EXACT")])
def test_precision_refuses_other_things(precision: Any) -> None:
    with pytest.raises(InputError, match="precision"):
        lax.dot(np.ones(2), np.ones(2), precision=precision)


# --- errors ------------------------------------------------------------------------------------------


def test_dot_general_c1_numbers_of_dimensions() -> None:
    for numbers in ((((1,), ()), ((), ())), (((), ()), ((0,), ()))):
        with pytest.raises(ShapeError, match=r"dot_general \[C1\]"):
            lax.dot_general(np.ones((2, 2)), np.ones((2, 2)), numbers)


def test_dot_general_c2_distinct_and_in_range() -> None:
    for numbers in ((((1, 1), (0, 1)), ((), ())), (((2,), (0,)), ((), ())), (((0,), (0,)), ((0,), (1,)))):
        with pytest.raises(ShapeError, match=r"dot_general \[C2\]: wanted distinct dimensions of f64\[2,2\]"):
            lax.dot_general(np.ones((2, 2)), np.ones((2, 2)), numbers)


def test_dot_general_c3_batching_sizes() -> None:
    with pytest.raises(ShapeError, match=r"dot_general \[C3\]: batching dimensions 0 and 0 .* 2 and 3"):
        lax.dot_general(np.ones((2, 2)), np.ones((3, 2)), (((1,), (1,)), ((0,), (0,))))


def test_dot_general_c4_contracting_sizes() -> None:
    with pytest.raises(ShapeError, match=r"dot_general \[C4\]: contracting dimensions 1 and 0 .* 3 and 4"):
        lax.dot(np.ones((2, 3)), np.ones((4, 2)))


def test_dot_general_c5_element_types() -> None:
    with pytest.raises(DTypeError, match=r"dot_general \[C5\]: .*convert_element_type"):
        lax.dot(np.ones(2), np.ones(2, np.float32))


def test_other_ranks_are_refused_with_what_to_write() -> None:
    with pytest.raises(
        ShapeError,
        match=r"dot: wanted vectors or matrices, got f64\[2,2,2\] and f64\[2\].*dimension_numbers=",
    ):
        lax.dot(np.ones((2, 2, 2)), np.ones(2))
    cube = values((2, 2, 2), float)
    same(lax.dot(cube, cube, dimension_numbers=(((2,), (0,)), ((), ()))), np.tensordot(cube, cube, 1))
    with pytest.raises(ShapeError, match="batch_matmul: wanted arrays of one rank of at least 2"):
        lax.batch_matmul(np.ones(2), np.ones(2))


def test_dimension_numbers_of_another_form_are_refused() -> None:
    for numbers in (((1,), (0,)), 3, (((0.5,), (0,)), ((), ()))):
        with pytest.raises(InputError, match="dot_general: wanted"):
            lax.dot_general(np.ones((2, 2)), np.ones((2, 2)), numbers)  # type: ignore[arg-type]
