"""Elements of 2, 4 and 6 bits, compared with XLA on all pairs of values where XLA computes with them."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import xarr
from xarr import lax, stablehlo
from xarr.dtypes import SUB_BYTE, element_type, promote
from xarr.errors import DTypeError, ValueRangeError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node

jax.config.update("jax_enable_x64", True)

INTEGERS = ("int2", "uint2", "int4", "uint4")
#: XLA ends the process at types of 6 bits.
OF_XLA = (*INTEGERS, "float4_e2m1fn")
ALL = (*OF_XLA, "float6_e2m3fn", "float6_e3m2fn")
ENGINES = (("numpy", "compiled"), ("numpy", "off"), ("reference", "auto"))
ARITHMETIC = ("add", "sub", "mul", "max", "min", "eq", "ne", "lt", "le", "gt", "ge")
OF_INTEGERS = ("bitwise_and", "bitwise_or", "bitwise_xor", "div", "rem", "shift_left")
HostArray = np.ndarray[Any, Any]


def every(name: str) -> HostArray:
    """All values of a type."""
    return np.arange(2 ** element_type(np.dtype(name)).bits, dtype=np.uint8).view(name)


def assert_same_bits(mine: Any, theirs: Any) -> None:
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
    assert mine.tobytes() == theirs.tobytes()


def on_each_engine(function: Any, *operands: HostArray) -> list[HostArray]:
    results = []
    for backend, fusion in ENGINES:
        with xarr.use_backend(backend), xarr.config(fusion=fusion):
            results.append(np.asarray(xarr.jit(function)(*map(xarr.asarray, operands))))
    return results


def test_the_types_are_those_of_less_than_a_byte() -> None:
    assert {str(dtype) for dtype in SUB_BYTE} == set(ALL)
    assert all(getattr(xarr, name) is getattr(ml_dtypes, name) for name in ALL)


@pytest.mark.parametrize("name", OF_XLA)
def test_all_pairs_of_values(name: str) -> None:
    values = every(name)
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    for function in ARITHMETIC + (OF_INTEGERS if name in INTEGERS else ()):
        wanted = jax.jit(getattr(jax.lax, function))(x, y)
        for result in on_each_engine(getattr(lax, function), x, y):
            assert_same_bits(result, wanted)


@pytest.mark.parametrize("name", ["float6_e2m3fn", "float6_e3m2fn"])
def test_all_pairs_of_floats_that_xla_has_not(name: str) -> None:
    """A result is the exact one rounded once."""
    values = every(name)
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    for function, exact in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
        wanted = exact(x.astype(np.float32), y.astype(np.float32)).astype(name)
        for result in on_each_engine(getattr(lax, function), x, y):
            assert_same_bits(result, wanted)


NUMBERS = [
    np.arange(-300, 300, dtype=np.int32),
    np.arange(256, dtype=np.uint8),
    np.linspace(-20, 20, 401, dtype=np.float32),
    np.array([np.nan, np.inf, -np.inf, 1e30, -0.0, 0.5, 1.5, 2.5, 3.5, 5.0, 5.0 + 2**-40]),
    np.array([True, False]),
    np.linspace(-9, 9, 73).astype(ml_dtypes.bfloat16),
]


@pytest.mark.parametrize("name", OF_XLA)
def test_conversion_to(name: str) -> None:
    for numbers in NUMBERS:
        # XLA itself rounds float64 twice on the way to 4 bits.
        numbers = (
            numbers.astype(np.float32) if name.startswith("float") and numbers.itemsize == 8 else numbers
        )
        wanted = jax.jit(lambda x: x.astype(name))(numbers)
        for result in on_each_engine(lambda x: x.astype(name), numbers):
            assert_same_bits(result, wanted)


@pytest.mark.parametrize("name", ALL)
def test_conversion_from_and_back(name: str) -> None:
    values = every(name)
    for other in ("float32", "float64", "bfloat16", "complex64"):
        for result in on_each_engine(lambda x, other=other: x.astype(other).astype(x.dtype), values):
            assert_same_bits(result, values)
    exact = values.astype(np.float64)
    for result in on_each_engine(lambda x: x.astype("int16"), values):
        np.testing.assert_array_equal(result, np.trunc(exact).astype(np.int16))
    for result in on_each_engine(lambda x: x.astype(bool), values):
        np.testing.assert_array_equal(result, exact != 0)


@pytest.mark.parametrize(
    ("old", "new"),
    [("int4", "int8"), ("uint2", "uint8"), ("int2", "int4"), ("uint2", "int4"), ("int4", "int32")],
)
def test_bits_are_read_from_the_lowest(old: str, new: str) -> None:
    ratio = element_type(np.dtype(new)).bits // element_type(np.dtype(old)).bits
    draw = np.random.default_rng(0)
    narrow = draw.choice(every(old), (3, 5, ratio))
    wanted = jax.lax.bitcast_convert_type(narrow, new)
    for result in on_each_engine(lambda x: lax.bitcast_convert_type(x, new), narrow):
        assert_same_bits(result, wanted)
    for result in on_each_engine(lambda x: lax.bitcast_convert_type(x, old), np.asarray(wanted)):
        assert_same_bits(result, narrow)
    with pytest.raises(DTypeError, match=r"\[C3\].*no bitcast of 6 bits to 8"):
        lax.bitcast_convert_type(np.zeros(4, "float6_e2m3fn"), "int8")


def move(x: Any) -> Any:
    x = x.reshape(2, -1).T[::-1]
    x = xarr.concatenate([x, xarr.pad(x, ((0, 1), (0, 0)))[1:]])
    return xarr.where(x > 0, x, 0).at[1].set(1)[xarr.asarray([0, 1, 3])]


@pytest.mark.parametrize("name", ALL)
def test_movement_and_choice(name: str) -> None:
    values = every(name)
    x = values.reshape(2, -1).T[::-1]
    x = np.concatenate([x, np.concatenate([x, np.zeros((1, 2), name)])[1:]])
    x = np.where(x.astype(np.float32) > 0, x, np.zeros((), name))
    x[1] = 1
    for result in on_each_engine(move, values):
        assert_same_bits(result, x[[0, 1, 3]])


@pytest.mark.parametrize("name", INTEGERS)
def test_reductions_sorts_and_loops(name: str) -> None:
    values = np.random.default_rng(1).choice(every(name), (5, 4))
    wide = values.astype(np.int64)
    for function in ("sum", "prod", "max", "min", "argmax", "sort", "argsort", "cumsum"):
        for result in on_each_engine(lambda x, function=function: getattr(xarr, function)(x, axis=0), values):
            stable = {"kind": "stable"} if function == "argsort" else {}
            np.testing.assert_array_equal(
                result.astype(np.int64), getattr(np, function)(wide, axis=0, **stable)
            )
    for result in on_each_engine(lambda x: lax.fori_loop(0, 5, lambda i, c: c + x[i], x[0]), values):
        assert_same_bits(result, (wide.sum(axis=0) + wide[0]).astype(name))


@pytest.mark.parametrize("name", ALL)
def test_limits_and_kinds(name: str) -> None:
    values, row = every(name).astype(np.float64), element_type(np.dtype(name))
    limits = xarr.iinfo(name) if name in INTEGERS else xarr.finfo(name)
    assert (limits.min, limits.max, limits.bits) == (values.min(), values.max(), row.bits)
    kind = {"float": "real floating", "signed": "signed integer", "unsigned": "unsigned integer"}[row.kind]
    assert xarr.isdtype(name, kind) and xarr.isdtype(name, "numeric") and not xarr.isdtype(name, "bool")
    assert f"tensor<3x{row.mlir}>" in str(xarr.lower(lambda x: x + x, f"{row.xla}[3]").stage("traced"))


@pytest.mark.parametrize("name", ALL)
def test_no_promotion_but_of_bools_and_python_numbers(name: str) -> None:
    x = xarr.ones(3, dtype=name)
    assert (x + 1).dtype == (x * True).dtype == promote(x.dtype, np.dtype(bool)) == np.dtype(name)
    for other in ("int8", "float32", *(each for each in ALL if each != name)):
        with pytest.raises(DTypeError, match=r"have no implicit promotion: .*; convert, e.g. x.astype\('"):
            x + xarr.ones(3, dtype=other)
    assert xarr.result_type(x, bool, 1, bool) == x.dtype
    for order in ((x, bool, "int8"), ("int8", bool, x), (bool, "int8", x)):
        with pytest.raises(DTypeError, match="no implicit promotion"):
            xarr.result_type(*order)
    with pytest.raises(DTypeError, match="complex have no implicit promotion"):
        x * 1j
    if name in INTEGERS:
        with pytest.raises(DTypeError, match="float have no implicit promotion"):
            x * 1.5
        with pytest.raises(ValueRangeError, match=f"out of bounds for {name}"):
            x + 100


def test_numpy_functions_keep_the_type() -> None:
    x = xarr.asarray([1, 2, 3], dtype="int4")
    assert (x & 2).tolist() == [0, 2, 2] and (x << 1).tolist() == [2, 4, 6] and (~x).tolist() == [-2, -3, -4]
    assert (x & 2).dtype == (-x).dtype == abs(x).dtype == (x // 2).dtype == (x**2).dtype == x.dtype
    narrow = xarr.asarray([1, 2], dtype="float4_e2m1fn")
    assert xarr.exp(narrow).dtype == (narrow / narrow).dtype == narrow.dtype
    assert xarr.exp(narrow).tolist() == [3, 6] and xarr.arange(5, dtype="int4").tolist() == [0, 1, 2, 3, 4]


def test_what_counts_bits_is_refused() -> None:
    x = xarr.ones(3, dtype="int4")
    for function in (lax.population_count, lax.clz, lambda x: lax.shift_right_logical(x, x)):
        with pytest.raises(DTypeError, match=r"\[C1\]: wanted integer elements, got s4\[3\]"):
            function(x)


def test_saved_and_loaded(tmp_path: Any) -> None:
    for name in ALL:
        xarr.save(tmp_path / "x.npy", every(name))
        assert_same_bits(xarr.load(tmp_path / "x.npy"), every(name))


@pytest.mark.parametrize("name", ALL)
def test_text_is_read_again(name: str) -> None:
    """Lists, splats and long literals, in which an element has the lower bits of a byte."""
    for values in (every(name)[:4], np.full((2, 3), every(name)[1]), np.tile(every(name), 40)):
        graph = Graph((), (Node(ops.Constant.of(values)),))
        module = stablehlo.parse(str(graph))
        assert module.main == graph
        assert_same_bits(stablehlo.run(module)[0], values)
