"""Compiled loops over complex numbers: the bits of single operations, and those of the reference.

Parts are small whole numbers, zeros of both signs, infinities and NaN, so that sums and products are exact in any
order and by any formula: every engine then has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from tests.lax_values import COMPLEXES
from xarr import lax
from xarr.base.configuration import current as config
from xarr.ir.ops import Fusion, NativeWhile

pytest.importorskip("llvmlite")

HostArray = np.ndarray[Any, Any]
#: More than one register, and a rest.
ROWS, COLUMNS = 7, 19


def draw_numbers(random: Random, shape: tuple[int, ...], dtype: str) -> HostArray:
    """Whole numbers from -3 to 3, of which one in nine is special."""
    special = (-0.0, np.inf, -np.inf, np.nan)

    def part() -> float:
        return random.choice(special) if random.random() < 1 / 9 else float(random.randint(-3, 3))

    numbers = np.array([[part(), part()] for _ in range(int(np.prod(shape)))])
    return numbers.view(np.complex128).reshape(shape).astype(dtype)


def groups(function: Callable[..., Any], *arrays: Any) -> list[str]:
    """The operations inside the groups of a program, and what is outside of them."""
    graph = xarr.lower(function, *arrays).stage("fused")
    inside = [
        node for each in graph.nodes if isinstance(each.op, Fusion) for node in each.op.computation.nodes
    ]
    outside = [node for node in graph.nodes if not isinstance(node.op, Fusion)]
    return [node.op.name for node in outside] + [f"in {node.op.name}" for node in inside]


# --- random programs ---------------------------------------------------------------------------------

Operation = Callable[[Random, Any, Any], Any]

OPERATIONS: tuple[Operation, ...] = (
    lambda random, x, y: x + y,
    lambda random, x, y: x - y,
    lambda random, x, y: -x,
    lambda random, x, y: xarr.conj(x),
    lambda random, x, y: x * random.choice((2, 1j, 1 - 1j)),
    lambda random, x, y: lax.complex(xarr.imag(x), xarr.real(y)),
    lambda random, x, y: xarr.where(xarr.real(x) > xarr.imag(y), x, y),
    lambda random, x, y: xarr.where(random.choice((x == y, x != y)), x, y * 2),
    lambda random, x, y: xarr.astype(xarr.astype(x, "bool"), x.dtype) + y,
    lambda random, x, y: xarr.astype(xarr.real(x), x.dtype) - y,
    lambda random, x, y: xarr.flip(x, axis=random.randrange(2)),
    lambda random, x, y: xarr.concat([y[:, 3:], x[:, :3]], axis=1),
    lambda random, x, y: xarr.pad(x[1:, :-2], ((0, 1), (2, 0))) + y,
    lambda random, x, y: x[:, xarr.asarray([random.randrange(x.shape[1]) for _ in range(x.shape[1])])],
    lambda random, x, y: x + xarr.sum(y, axis=random.randrange(2), keepdims=True),
    lambda random, x, y: x - xarr.sum(y),
    lambda random, x, y: x.at[1:3, 2:4].set(y[1:3, 2:4]),
    lambda random, x, y: x.at[xarr.asarray([1, 1, 2])].add(y[:3]),
    lambda random, x, y: (x.T + y.T).T,
)


def program(seed: int) -> Callable[[Any, Any], tuple[Any, ...]]:
    def function(x: Any, y: Any) -> tuple[Any, ...]:
        random = Random(seed)
        results = [x, y, x * y]
        for _ in range(random.randint(1, 6)):
            results.append(random.choice(OPERATIONS)(random, *random.sample(results[-4:], 2)))
        last = results[-1]
        return tuple(random.choice(((last,), (last, xarr.real(results[-2])), (xarr.sum(last, axis=0), last))))

    return function


def agree(
    function: Callable[..., tuple[Any, ...]], arrays: Sequence[HostArray], other: dict[str, str]
) -> None:
    """The compiled loops give the bits that other settings give."""
    compiled = xarr.jit(function)
    with config(fusion="compiled"):
        results = [xarr.asarray(each).evaluate() for each in compiled(*map(xarr.asarray, arrays))]
    backend = other.get("backend", "numpy")
    with xarr.use_backend(backend), config(fusion=other.get("fusion", "off")):
        wanted = [np.asarray(each) for each in function(*map(xarr.asarray, arrays))]
    for x, y in zip(results, wanted, strict=True):
        assert_same(np.asarray(x), y)


@pytest.mark.implicit
@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from(COMPLEXES))
def test_random_programs_have_the_bits_of_single_operations(seed: int, dtype: str) -> None:
    random = Random(seed)
    arrays = [draw_numbers(random, (ROWS, COLUMNS), dtype) for _ in range(2)]
    agree(program(seed), arrays, {"fusion": "off"})


@pytest.mark.implicit
@settings(max_examples=10)
@given(st.integers(0, 2**32), st.sampled_from(COMPLEXES))
def test_random_programs_have_the_bits_of_the_reference(seed: int, dtype: str) -> None:
    random = Random(seed)
    agree(program(seed), [draw_numbers(random, (4, 5), dtype) for _ in range(2)], {"backend": "reference"})


# --- single operations -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("shape", [(), (1,), (ROWS, COLUMNS), (2, 1, 3, 1, 5), (0, 3)], ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "max", "min", "eq", "ne"])
def test_operations_of_two(name: str, shape: tuple[int, ...], dtype: str) -> None:
    random = Random(1)
    operation = getattr(lax, name)
    arrays = [draw_numbers(random, shape, dtype) for _ in range(2)]
    agree(
        lambda x, y: (operation(operation(x, y), x) if name in ("add", "sub") else operation(x, y),),
        arrays,
        {},
    )


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_a_product_rounds_each_part_once_after_the_second_product(dtype: str) -> None:
    """(a c - b d) + (a d + b c) i with a fused product in each part, whatever the processor has."""
    generator = np.random.default_rng(0)
    part = np.dtype(dtype).type(0).real.dtype.type
    a, b, c, d = generator.normal(size=(4, 40)).astype(part)

    def round_once(number: Fraction) -> Any:
        # float32 by way of float64 would round twice; numbers from float16 on have no ties that matter here.
        return part(float(number)) if part is np.float64 else _nearest(number)

    def fuse(x: Any, y: Any, z: Any) -> Any:
        return round_once(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)))

    wanted = [complex(fuse(p, r, -(q * s)), fuse(p, s, q * r)) for p, q, r, s in zip(a, b, c, d, strict=True)]
    with config(fusion="compiled"):
        x, y = (xarr.asarray(lax.complex(xarr.asarray(p), xarr.asarray(q))) for p, q in ((a, b), (c, d)))
        result = xarr.jit(lambda x, y: x * y)(x, y)
    assert_same(np.asarray(result), np.array(wanted, dtype))


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("terms", [1, 3, 100])
def test_products_of_columns_inside_another_reduction(terms: int, dtype: str) -> None:
    """Products are accumulated in order, as two floats: short ones written out, long ones in a loop."""

    def is_any_positive(x: Any) -> Any:
        products = xarr.prod(x, axis=0)
        return xarr.any(products.real > 0), xarr.sum(xarr.abs(products) > 1), xarr.any(products)

    array = draw_numbers(Random(2), (terms, 9), dtype)
    with config(fusion="compiled"):
        results = xarr.jit(is_any_positive)(xarr.asarray(array))
    with config(fusion="off"):
        wanted = is_any_positive(xarr.asarray(array))
    for result, expected in zip(results, wanted, strict=True):
        assert_same(np.asarray(result), np.asarray(expected))


def _nearest(number: Fraction) -> np.float32:
    guess = np.float32(float(number))
    others = (np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf)))
    return min(others, key=lambda each: abs(Fraction(float(each)) - number))


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_magnitudes_of_large_small_and_special_numbers(dtype: str) -> None:
    limits = np.finfo(dtype)
    line = [
        0.0,
        -0.0,
        3.0,
        4.0,
        limits.max / 2,
        limits.tiny,
        float(limits.smallest_subnormal),
        np.inf,
        np.nan,
        -7.5,
    ]
    real, imaginary = (part.ravel().astype(limits.dtype) for part in np.meshgrid(line, line))
    x = np.empty(real.size, dtype)
    x.real, x.imag = real, imaginary
    with config(fusion="compiled"):
        result = np.asarray(xarr.jit(xarr.abs)(xarr.asarray(x)))
    with np.errstate(all="ignore"):
        wanted = np.hypot(real.astype(np.longdouble), imaginary.astype(np.longdouble)).astype(limits.dtype)
    assert_same(result, wanted, ulp=2)
    assert_same(result[np.isin(x, [3 + 4j, 4 + 3j])], np.full(2, 5, limits.dtype))


@pytest.mark.parametrize("old", ["bool", "int8", "uint64", "float16", "float32", "bfloat16", *COMPLEXES])
@pytest.mark.parametrize("new", ["bool", "int16", "float16", "float64", "bfloat16", *COMPLEXES])
def test_conversions(old: str, new: str) -> None:
    if not {old, new} & set(COMPLEXES):
        return
    x = np.array([0, 1, 2.5, 300.25, 70000.125, 3e9 + 1])
    given_numbers = x + 1j * x[::-1] if old in COMPLEXES else x % 100
    arrays = [np.asarray(xarr.astype(xarr.asarray(given_numbers), old))]
    agree(lambda x: (xarr.astype(xarr.flip(x), new),), arrays, {})


# --- which operations are in loops -------------------------------------------------------------------


def test_what_is_computed_in_one_loop() -> None:
    x = xarr.asarray(np.ones((300, 400), np.complex64))
    with config(fusion="compiled"):
        results = groups(lambda x: xarr.sum(xarr.abs(xarr.conj(x) * x + x[::-1]), axis=1), x)
    assert (
        "in stablehlo.multiply" in results
        and "in stablehlo.abs" in results
        and "in stablehlo.reduce" in results
    )
    assert not [name for name in results if not name.startswith("in ") and name != "call"][1:]


@pytest.mark.parametrize(
    "function",
    [
        xarr.prod,
        lambda x: xarr.cumulative_sum(x, axis=1),
        lambda x: x @ x.T,
    ],
    ids=["product", "running sum", "matrix product"],
)
def test_what_stays_with_numpy(function: Callable[[Any], Any]) -> None:
    x = draw_numbers(Random(3), (4, 6), "complex128")
    x[~np.isfinite(x)] = 2
    with config(fusion="compiled"):
        result = np.asarray(xarr.jit(function)(xarr.asarray(x)))
    with config(fusion="off"):
        assert_same(result, np.asarray(function(xarr.asarray(x))))


# --- native loops ------------------------------------------------------------------------------------


def mandelbrot(c: Any) -> Any:
    """Count the steps of 20 that each point stays within 2, and say where it ends."""

    def step(state: Any) -> Any:
        i, z, count = state
        inside = xarr.real(z) * xarr.real(z) + xarr.imag(z) * xarr.imag(z) <= 4
        return i + 1, xarr.where(inside, z * z + c, z), xarr.where(inside, count + 1, count)

    start = (0, xarr.zeros_like(c), xarr.zeros(c.shape, dtype="int32"))
    return lax.while_loop(lambda state: state[0] < 20, step, start)[1:]


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_a_loop_of_points(dtype: str) -> None:
    # Quarters: products stay exact for the few steps after which points leave.
    c = (np.arange(-8, 3)[None] / 4 + 1j * np.arange(-5, 6)[:, None] / 4).astype(dtype)
    with config(fusion="compiled"):
        graph = xarr.lower(mandelbrot, xarr.asarray(c)).stage("fused")
        (loop,) = [node.op for node in graph.nodes if isinstance(node.op, NativeWhile)]
        assert "until no step changes it" in loop.remark_text
        results = [np.asarray(each) for each in xarr.jit(mandelbrot)(xarr.asarray(c))]
    assert set(results[1].ravel().tolist()) > {1, 2, 20}
    with config(fusion="off"):
        wanted = [np.asarray(each) for each in mandelbrot(xarr.asarray(c))]
    assert_same(results[1], wanted[1])


@pytest.mark.implicit
def test_a_loop_of_one_complex_number() -> None:
    def function(x: Any) -> Any:
        return lax.fori_loop(
            0, 9, lambda i, s: (s[0] * 1j + 1, s[1].at[i].set(s[0])), (x, xarr.zeros(9, dtype=x.dtype))
        )

    agree(function, [np.array(2 - 1j)], {})


def test_a_part_that_is_a_constant_in_the_loop_only() -> None:
    agree(lambda x: (lax.complex(xarr.imag(x.astype("complex128")), x),), [np.arange(float(COLUMNS))], {})
