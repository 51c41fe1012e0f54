"""Literals read back by MLIR and by XLA bit for bit: each NaN, each float8, long ones, empty ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.support.graphs import tensor
from tests.xla import parse, run_stablehlo
from xarr.dtypes import TABLE, element_type
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.stablehlo.literals import dense, ints, quote

NAMES = [str(row.dtype) for row in TABLE]
#: XLA ends the process at types of 6 bits.
OF_XLA = [name for name in NAMES if not name.startswith("float6")]


def as_mlir_reads(literal: str, type: Any) -> str:
    """A literal as MLIR prints it: one text for one sequence of bits."""
    constant = f"func.func @main() {{ %0 = stablehlo.constant {literal} : {type}\n return }}"
    return str(parse(constant)).split("stablehlo.constant ")[1].split("\n")[0].removesuffix(f" : {type}")


def assert_exact(type: Any, raw: bytes) -> None:
    """The literal stands for the same bits as their hexadecimal string, which nothing can round."""
    assert as_mlir_reads(dense(type, raw), type) == as_mlir_reads(f'dense<"0x{raw.hex()}">', type)


@pytest.mark.parametrize("name", [n for n in NAMES if np.dtype(n).itemsize <= 2 and np.dtype(n).kind in "fV"])
def test_every_narrow_float(name: str) -> None:
    dtype = np.dtype(name)
    patterns = np.arange(2 ** element_type(dtype).bits, dtype=f"u{dtype.itemsize}")
    for part in np.split(patterns, max(1, len(patterns) // 64)):
        assert_exact(tensor(dtype, len(part)), part.tobytes())


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bool"])
@given(data=st.data())
def test_any_bits(name: str, data: st.DataObject) -> None:
    dtype = np.dtype(name)
    count = data.draw(st.integers(1, 6))
    raw = data.draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    highest = 2 ** min(8, element_type(dtype).bits) - 1
    assert_exact(tensor(dtype, count), bytes(byte & highest for byte in raw))


@given(
    st.lists(st.floats(allow_subnormal=True), min_size=1, max_size=20),
    st.sampled_from(["float32", "float64"]),
)
def test_floats_near_decimals(values: list[float], name: str) -> None:
    with np.errstate(over="ignore"):
        array = np.array(values, name)
    assert_exact(tensor(name, len(values)), array.tobytes())


@pytest.mark.parametrize("name", OF_XLA)
@pytest.mark.parametrize(
    "shape", [(), (0,), (2, 0, 3), (1,), (1, 1, 1), (3,), (2, 3, 2), (101,), (7, 30)], ids=str
)
def test_xla_holds_the_same_bytes(name: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(np.prod(shape)) % 5 + 1).reshape(shape).astype(name)
    values = values > 2 if name == "bool" else values
    constant = Node(ops.Constant.of(values))
    (got,) = run_stablehlo(str(Graph((), (constant,))))
    assert got.dtype == values.dtype
    assert got.shape == values.shape
    assert got.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0, "float32", "0.000000e+00"),
        (-0.0, "float64", "-0.000000e+00"),
        (0.1, "float32", "1.000000e-01"),
        (0.1, "float64", "1.000000e-01"),
        (np.pi, "float32", "3.14159274"),
        (np.pi, "float64", "3.1415926535897931"),
        (np.pi, "bfloat16", "3.140630e+00"),
        (1e20, "float32", "1.000000e+20"),
        (1.2345678912e22, "float64", "1.2345678912E+22"),
        (0.000123456789, "float64", "1.23456789E-4"),
        (-0.0123456789, "float64", "-0.0123456789"),
        (0.001953125, "bfloat16", "1.953130e-03"),
        (np.inf, "float32", "0x7F800000"),
        (-np.inf, "float16", "0xFC00"),
        (np.nan, "float64", "0x7FF8000000000000"),
        (np.nan, "float8_e4m3fn", "0x7F"),
        (448, "float8_e4m3fn", "4.480000e+02"),
        (5e-324, "float64", "4.940660e-324"),
        (1 - 2.5j, "complex64", "(1.000000e+00,-2.500000e+00)"),
        (complex(0, np.inf), "complex128", "(0.000000e+00,0x7FF0000000000000)"),
        (-128, "int8", "-128"),
        (2**64 - 1, "uint64", "18446744073709551615"),
        (True, "bool", "true"),
    ],
)
def test_text_is_that_of_mlir(value: Any, dtype: str, text: str) -> None:
    type = tensor(dtype)
    literal = dense(type, np.array(value, dtype).tobytes())
    assert literal == f"dense<{text}>"
    assert as_mlir_reads(literal, type) == literal


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (123456789.0, "float64", "123456789.0"),
        (2.0**24 + 2, "float32", "16777218.0"),
        (1234567e3, "float64", "1234567000.0"),
    ],
)
def test_whole_numbers_stay_readable(value: float, dtype: str, text: str) -> None:
    """MLIR would print their bits in hexadecimal."""
    literal = dense(tensor(dtype), np.array(value, dtype).tobytes())
    assert literal == f"dense<{text}>"
    assert as_mlir_reads(literal, tensor(dtype)).startswith("dense<0x")
    assert_exact(tensor(dtype), np.array(value, dtype).tobytes())


def test_shapes_of_literals() -> None:
    def literal(array: Any) -> str:
        array = np.asarray(array)
        return dense(tensor(array.dtype, *array.shape), array.tobytes())

    assert literal(np.int32([[1, 2], [3, 4]])) == "dense<[[1, 2], [3, 4]]>"
    assert literal(np.full((5, 5), 7)) == "dense<7>"
    assert literal(np.float32([0.0, -0.0])) == "dense<[0.000000e+00, -0.000000e+00]>"
    assert literal(np.zeros((2, 0))) == "dense<>"
    assert literal(np.arange(101, dtype=np.uint8)) == f'dense<"0x{bytes(range(101)).hex().upper()}">'
    assert literal(np.arange(100) % 2 == 0).count("true") == 50
    assert literal(np.arange(102) % 2 == 1) == f'dense<"0x{"0001" * 51}">'


def test_ints_and_strings() -> None:
    assert ints((1, np.int64(2))) == "[1, 2]"
    assert ints(()) == "[]"
    assert quote('a\\b"\né') == r'"a\5Cb\22\0A\C3\A9"'
