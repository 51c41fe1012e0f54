"""Random bits from a state against XLA, and the random numbers of the process."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.graphs import graph, node, tensor
from tests.xla import parse, run_stablehlo, squeeze_spaces
from xarr import lax, stablehlo
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.ops.ciphers import PhiloxPair, ThreefryBits
from xarr.ir.types import TensorType
from xarr_numpy import engine

STATES = [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2), ("DEFAULT", 3)]
SHAPES: list[tuple[int, ...]] = [
    (),
    (1,),
    (2,),
    (7,),
    (8,),
    (3, 5),
    (5, 4),
    (4, 3, 2),
    (1, 1),
    (3, 3, 3),
    (0,),
    (2, 0),
]


def generator(algorithm: str, length: int, dtype: str, shape: tuple[int, ...]) -> Graph:
    op = ops.RngBitGenerator(algorithm, TensorType(shape, np.dtype(dtype)))

    def results(state: Node) -> tuple[Node, ...]:
        made = node(op, state)
        return node(ops.GetTupleElement(0), made), node(ops.GetTupleElement(1), made)

    return graph(results, tensor(np.uint64, length))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize(("algorithm", "length"), STATES)
def test_bits_are_those_of_xla(algorithm: str, length: int, dtype: str) -> None:
    states = itertools.cycle([[5, 7, 9], [2**64 - 1, 2**64 - 2, 2**64 - 1], [0, 0, 0], [2**63, 2**32 - 1, 3]])
    for shape, state in zip(SHAPES, states, strict=False):
        start = np.array(state[:length], np.uint64)
        wanted = run_stablehlo(generator(algorithm, length, dtype, shape).to_text(), start)
        for got, expected in zip(lax.rng_bit_generator(start, shape, dtype, algorithm), wanted, strict=True):
            assert_same(got, expected)


@pytest.mark.parametrize(("algorithm", "length"), STATES)
def test_the_reference_backend_agrees(algorithm: str, length: int) -> None:
    start = np.arange(1, length + 1, dtype=np.uint64) * np.uint64(2**40 + 3)
    with xarr.use_backend("reference"):
        slow = [np.asarray(part) for part in lax.rng_bit_generator(start, (3, 2), np.uint16, algorithm)]
    for got, expected in zip(lax.rng_bit_generator(start, (3, 2), np.uint16, algorithm), slow, strict=True):
        assert_same(got, expected)


@pytest.mark.parametrize("fusion", ["off", *["compiled"] * engine.available()])
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize(("algorithm", "length"), [("THREE_FRY", 2), ("PHILOX", 3)])
def test_every_engine_draws_the_bits_of_xla(algorithm: str, length: int, dtype: str, fusion: str) -> None:
    """More than one tile of them, and a last one that is not full."""
    start = np.array([2**64 - 1, 2**64 - 2, 2**64 - 1][:length], np.uint64)
    for shape in ((70_001,), (2, 35_003), (35_003, 2)):
        wanted = run_stablehlo(generator(algorithm, length, dtype, shape).to_text(), start)
        with xarr.config(fusion=fusion):
            got = [np.asarray(part) for part in lax.rng_bit_generator(start, shape, dtype, algorithm)]
        for mine, expected in zip(got, wanted, strict=True):
            assert_same(mine, expected)


@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX"])
def test_bits_are_one_loop_where_loops_are_compiled(algorithm: str) -> None:
    def bits(state: Any) -> Any:
        return lax.rng_bit_generator(state, (10**6,), np.uint32, algorithm)[1]

    with xarr.config(fusion="compiled") if engine.available() else pytest.skip("needs llvmlite"):
        fused: Any = xarr.lower(bits, np.array([1, 2], np.uint64)).stage("fused")
    op = {"THREE_FRY": ThreefryBits, "PHILOX": PhiloxPair}[algorithm]
    assert not any(type(node.op) in (op, ops.Call) for node in fused.nodes)
    assert any(type(node.op) is op for each in fused.walk() for node in each.nodes)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64", "float16"])
def test_other_types_hold_the_same_bits(dtype: str) -> None:
    start = np.array([3, 4], np.uint64)
    unsigned = f"uint{8 * np.dtype(dtype).itemsize}"
    _, bits = lax.rng_bit_generator(start, (6,), dtype)
    _, plain = lax.rng_bit_generator(start, (6,), unsigned)
    assert bits.dtype == dtype
    assert_same(np.asarray(bits).view(unsigned), np.asarray(plain))


@pytest.mark.parametrize("name", ["RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"])
def test_a_uint32_key_works_as_in_jax(name: str) -> None:
    start = np.array([1, 2, 3, 4], np.uint32)
    mine = lax.rng_bit_generator(start, (5,), np.uint32, lax.RandomAlgorithm[name])
    theirs = jax.lax.rng_bit_generator(start, (5,), np.uint32, jax.lax.RandomAlgorithm[name])
    for got, expected in zip(mine, theirs, strict=True):
        assert_same(got, np.asarray(expected))


def test_states_go_on() -> None:
    """Bits drawn one after the other are those of the states in between."""
    state = xarr.asarray(np.array([1, 2], np.uint64))
    results = []
    for _ in range(3):
        state, bits = lax.rng_bit_generator(state, (4,), np.uint64, "THREE_FRY")
        results.append(np.asarray(bits))
    _, whole = lax.rng_bit_generator(np.array([1, 2], np.uint64), (12,), np.uint64, "THREE_FRY")
    assert_same(np.concatenate(results), np.asarray(whole))


def test_text_reads_back() -> None:
    made = generator("PHILOX", 3, "uint32", (2, 2))
    assert squeeze_spaces(str(parse(made.to_text()))) == squeeze_spaces(made.to_text())
    assert stablehlo.parse(made.to_text()).main == made
    text = str(xarr.lower(lambda a: lax.rng_uniform(a, a, (2, 3)), np.float32(1)).stage("traced"))
    assert squeeze_spaces(str(parse(text))) == squeeze_spaces(text)
    read = stablehlo.parse(text).main
    assert squeeze_spaces(read.to_text()) == squeeze_spaces(text).replace(
        "module @_lambda_", f"module @{read.name}"
    )


# --- rules -------------------------------------------------------------------------------------------

BITS = TensorType((2,), np.dtype(np.uint32))


def test_rng_bit_generator_c1() -> None:
    for algorithm, dtype, shape in (
        ("THREE_FRY", np.uint64, (3,)),
        ("PHILOX", np.uint64, (4,)),
        ("DEFAULT", np.int64, (2,)),
        ("DEFAULT", np.uint64, (2, 1)),
    ):
        state = parameter(TensorType(shape, np.dtype(dtype)))
        with pytest.raises(ShapeError, match=r"rng_bit_generator \[C1\]: wanted a state u64"):
            Node(ops.RngBitGenerator(algorithm, BITS), (state,))
    with pytest.raises(ShapeError, match=r"\[C1\]: wanted a state u32\[4\]"):
        lax.rng_bit_generator(np.zeros(3, np.uint32), (2,), algorithm="THREE_FRY")


def test_rng_bit_generator_c2() -> None:
    with pytest.raises(ShapeError, match=r"rng_bit_generator \[C2\]: wanted one of the algorithms"):
        Node(ops.RngBitGenerator("MT", BITS), (parameter(tensor(np.uint64, 2)),))
    with pytest.raises(InputError, match="wanted one of the algorithms THREE_FRY, PHILOX, DEFAULT, got 'MT'"):
        lax.rng_bit_generator(np.zeros(2, np.uint64), (2,), algorithm="MT")


def test_rng_bit_generator_c3() -> None:
    for dtype in ("bool", "complex64"):
        with pytest.raises(DTypeError, match=r"rng_bit_generator \[C3\]"):
            lax.rng_bit_generator(np.zeros(2, np.uint64), (2,), dtype)


def _rng(distribution: str, a: Any, b: Any, sizes: Any, shape: tuple[int, ...] = (2,)) -> Node:
    return Node(ops.Rng(distribution, shape), (parameter(a), parameter(b), parameter(sizes)))


F, S = tensor(np.float32), tensor(np.int64, 1)


def test_rng_c1() -> None:
    with pytest.raises(ShapeError, match=r"rng \[C1\]"):
        _rng("UNIFORM", F, tensor(np.float64), S)
    with pytest.raises(ShapeError, match=r"rng \[C1\]"):
        _rng("UNIFORM", tensor(np.float32, 2), tensor(np.float32, 2), S)


def test_rng_c2() -> None:
    with pytest.raises(ShapeError, match=r"rng \[C2\]: wanted UNIFORM or NORMAL, got 'CAUCHY'"):
        _rng("CAUCHY", F, F, S)


def test_rng_c3() -> None:
    with pytest.raises(DTypeError, match=r"rng \[C3\]: NORMAL numbers cannot be int32"):
        _rng("NORMAL", tensor(np.int32), tensor(np.int32), S)
    with pytest.raises(DTypeError, match=r"rng \[C3\]"):
        lax.rng_uniform(np.complex64(0), np.complex64(1), (2,))


def test_rng_c4() -> None:
    for sizes in (tensor(np.int32, 1), tensor(np.int64, 2)):
        with pytest.raises(ShapeError, match=r"rng \[C4\]: wanted sizes s64\[1\]"):
            _rng("UNIFORM", F, F, sizes)


def test_sizes_are_not_negative() -> None:
    with pytest.raises(InputError, match="sizes >= 0"):
        lax.rng_uniform(0.0, 1.0, (-2,))


# --- numbers of the process --------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def seeded() -> None:
    lax.seed_rng(0)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_the_same_seed_gives_the_same_numbers(backend: str) -> None:
    with xarr.use_backend(backend):
        first = np.asarray(lax.rng_normal(np.float32(0), np.float32(1), (5,)))
        lax.seed_rng(0)
        second = np.asarray(lax.rng_normal(np.float32(0), np.float32(1), (5,)))
        assert_same(second, first)
        lax.seed_rng()
        assert not np.array_equal(lax.rng_normal(np.float32(0), np.float32(1), (5,)), first)


def test_two_draws_are_never_one() -> None:
    a, b = (lax.rng_uniform(0.0, 1.0, (4,)) for _ in range(2))
    assert not np.array_equal(np.asarray(a - b), np.zeros(4))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform_numbers_lie_in_the_interval(dtype: str) -> None:
    low, high = np.array(-1, dtype), np.array(3, dtype)
    result = np.asarray(lax.rng_uniform(low, high, (20000,)))
    assert result.dtype == dtype
    assert result.min() >= low
    assert result.max() < high
    # Of 20,000 the mean has a deviation of 0.008.
    assert abs(result.astype(float).mean() - 1) < 0.05
    assert abs(result.astype(float).var() - 16 / 12) < 0.05


def test_uniform_integers_take_every_value() -> None:
    result = np.asarray(lax.rng_uniform(np.int8(-2), np.int8(3), (2000,)))
    assert sorted(set(result.tolist())) == [-2, -1, 0, 1, 2]
    assert_same(lax.rng_uniform(np.int8(3), np.int8(3), (2,)), np.full(2, 3, np.int8))
    assert_same(lax.rng_uniform(np.False_, np.True_, (2,)), np.zeros(2, bool))


def test_normal_numbers_have_mean_and_deviation() -> None:
    result = np.asarray(lax.rng_normal(2.0, 0.5, (20000,)))
    assert abs(result.mean() - 2) < 0.02
    assert abs(result.std() - 0.5) < 0.02
