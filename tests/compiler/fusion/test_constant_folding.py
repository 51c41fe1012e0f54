"""Elementary functions of known numbers are tables, to the bits of the loops that would compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.backend import get_backend
from xarr.compiler.functions import ELEMENTARY
from xarr.compiler.fusion.constant_folding import fold_constants
from xarr.compiler.pipeline import make_program
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr_numpy.processor import Processor

pytestmark = pytest.mark.usefixtures("on_numpy", "fused")

NUMBERS = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.25, 3.75, 1e-30, -1e-3, 7.1, 20.5, -30.25, 88.9, -104.2, 710.5, 1e5),
    *(np.inf, -np.inf, np.nan, 1e-310),
]
DTYPES: list[Any] = [
    *(np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128),
]


def fused_ops(function: Callable[..., Any], *types: str) -> list[type[ops.Op]]:
    """The classes of the ops of a jitted function, in its groups and loops too, tables as arrays of constants."""
    graph: Any = xarr.jit(function).lower(*types).stage("fused")
    return [type(node.op) for each in graph.walk() for node in each.nodes]


def tables(function: Callable[..., Any], *types: str) -> list[str]:
    graph: Any = xarr.jit(function).lower(*types).stage("fused")
    nodes = [node for each in graph.walk() for node in each.nodes if isinstance(node.op, ops.Constant)]
    return [node.tensor_type.short() for node in nodes if node.shape]


def twiddles(n: int) -> Any:
    return xarr.exp(-1j * np.pi * xarr.arange(n) / n)


def test_a_table() -> None:
    def function(x: Any) -> Any:
        return x * twiddles(6)

    assert tables(function, "c128[6]") == ["c128[6]"]
    assert ops.Exponential not in fused_ops(function, "c128[6]")
    x = xarr.asarray(np.arange(6) + 0.5j)
    np.testing.assert_allclose(
        np.asarray(xarr.jit(function)(x)),
        np.asarray(x) * np.exp(-1j * np.pi * np.arange(6) / 6),
        rtol=1e-14,
    )


def test_what_is_made_of_a_table_by_cheap_operations_is_the_table() -> None:
    def function(x: Any) -> Any:
        return x * (0.5 - 0.5 * xarr.cos(2 * np.pi * xarr.arange(8.0) / 7))

    assert tables(function, "f64[8]") == ["f64[8]"]


def test_a_table_is_not_repeated() -> None:
    def function(x: Any) -> Any:
        return x * twiddles(6)[:, None]

    assert tables(function, "c128[6,50]") == ["c128[6]"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * xarr.arange(8.0) / 3,  # cheap
        lambda x: xarr.exp(x) * 2.0,  # not known
        lambda x: x + (2 ** xarr.arange(8)),  # integers, of which more is known
        lambda x: x + xarr.exp(xarr.arange(2.0**15))[:8],  # too much is computed for it
    ],
    ids=["cheap", "unknown", "integers", "large"],
)
def test_others_are_no_tables(function: Callable[..., Any]) -> None:
    assert not tables(function, "f64[8]")


def test_tables_take_so_many_bytes_in_all() -> None:
    """Eight tables of 2**14 bytes each, and no ninth."""

    def function(x: Any) -> Any:
        return [x * xarr.exp(xarr.arange(2.0**11) * k) for k in range(1, 12)]

    assert len(tables(function, "f64[2048]")) == Processor.max_table_bytes // 2**14


def test_tables_of_a_loop() -> None:
    """Its steps read a table, and do not compute it."""

    def function(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, x: xarr.cumsum(x * xarr.exp(xarr.arange(40.0))), x)

    assert tables(function, "f64[40]") == ["f64[40]"]
    assert ops.Exponential not in fused_ops(function, "f64[40]")


def test_outside_of_jit_there_is_none() -> None:
    backend = get_backend("numpy")
    graph: Any = xarr.lower(lambda x: x * twiddles(6), "c128[6]").stage("decomposed")
    assert not [
        node for node in backend.fuse(graph).nodes if isinstance(node.op, ops.Constant) and node.shape
    ]


def test_what_is_not_computed_stays() -> None:
    graph: Any = xarr.lower(lambda x: x * twiddles(6), "c128[6]").stage("decomposed")
    assert fold_constants(graph, 2**17, lambda graph: None) == graph


@pytest.mark.sampled
@pytest.mark.parametrize("op", sorted(ELEMENTARY, key=lambda op: op.__name__), ids=lambda op: op.__name__)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_bits_are_those_of_loops(op: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: Any = np.array(NUMBERS)
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind == "c":
            numbers = numbers[:, None] + 1j * numbers
        x = numbers.astype(dtype)
    arrays = (x, x[::-1].copy()) if issubclass(op, ops.Binary) else (x,)
    if np.dtype(dtype) not in op.accepts:
        pytest.skip("other element types")
    node = Node(op(), tuple([Node(ops.Constant.of(each)) for each in arrays]))
    results = []
    for most in (0, Processor.max_table_bytes):
        monkeypatch.setattr(Processor, "max_table_bytes", most)
        program: Any = make_program(Graph((), [node]), get_backend("numpy"), hot=True)
        results.append(np.asarray(program.program()[0]))
        assert (type(program.graph.results[0].op) is ops.Constant) == (most > 0)
    same = (results[0] == results[1]) | (results[0] != results[0]) & (results[1] != results[1])
    assert same.all()
    parts = [each.view(f"{each.real.dtype.char}") if each.dtype.kind == "c" else each for each in results]
    zeros = parts[0] == 0
    assert (np.signbit(parts[0][zeros]) == np.signbit(parts[1][zeros])).all()


def test_exponents_that_are_known_have_the_formula_of_their_own() -> None:
    """x**3 by products, as in the loops that would compute it."""

    x = xarr.arange(0.1, 4.0, 0.3)
    by_loops = xarr.jit(lambda x: x**3.0)(x)

    def function(y: Any) -> Any:
        return y + xarr.arange(0.1, 4.0, 0.3) ** 3.0

    assert tables(function, "f64[13]") == ["f64[13]"]
    assert np.asarray(xarr.jit(function)(xarr.zeros(13))).tobytes() == np.asarray(by_loops).tobytes()


def test_what_is_computed_below_moved_elements_has_the_bits_of_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's functions would give others."""

    def function(x: Any) -> Any:
        moved = xarr.flip(lax.erf(xarr.arange(40.0).astype("float32") / 16))
        return lax.tanh(moved[:, None] * xarr.arange(3.0).astype("float32")) * x

    x, results = xarr.ones((40, 3), dtype="float32"), []
    for most in (0, Processor.max_table_bytes):
        monkeypatch.setattr(Processor, "max_table_bytes", most)
        program: Any = make_program(
            xarr.lower(function, x).stage("decomposed"), get_backend("numpy"), hot=True
        )
        results.append(np.asarray(program.program(np.asarray(x))[0]).tobytes())
    assert results[0] == results[1]


def test_numbers_that_are_known_give_no_warnings() -> None:
    """1 / 0 is infinite, below moved elements too, and NumPy is not asked what it thinks of it."""

    def function(x: Any) -> Any:
        return x * xarr.exp(-xarr.flip(1 / xarr.arange(4.0)))

    assert tables(function, "f64[4]") == ["f64[4]"]
    assert float(xarr.jit(function)(xarr.ones(4))[-1]) == 0


@pytest.mark.parametrize(("times", "is_table"), [(50, True), (300, False)])
def test_tables_below_others(times: int, is_table: bool) -> None:
    """Calls do not nest as deep as they do, and many operations are left to loops."""

    def function(y: Any) -> Any:
        x = xarr.arange(8.0)
        for _ in range(times):
            x = xarr.sin(xarr.roll(x, 1))
        return y + x

    wanted = np.arange(8.0)
    for _ in range(times):
        wanted = np.sin(np.roll(wanted, 1))
    np.testing.assert_allclose(np.asarray(xarr.jit(function)(np.zeros(8))), wanted, rtol=1e-13)
    assert tables(function, "f64[8]") == ["f64[8]"] * is_table


@pytest.mark.parametrize("shape", [(), (64,)])
def test_native_loops_compute_no_function_of_a_number_in_each_step(shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, x: x * xarr.exp(xarr.asarray(-2.0)) + xarr.log(x), x)

    kind = "f64[64]" if shape else "f64[]"
    graph: Any = xarr.jit(function).lower(kind).stage("fused")
    assert ops.NativeWhile in {type(node.op) for node in graph.nodes}
    assert ops.Exponential not in fused_ops(function, kind)
    assert ops.Log in fused_ops(function, kind)
    x = xarr.asarray(np.full(shape, 3.5))
    wanted = x
    for _ in range(5):
        wanted = xarr.jit(lambda x: x * xarr.exp(xarr.asarray(-2.0)) + xarr.log(x))(wanted)
    assert np.asarray(xarr.jit(function)(x)).tobytes() == np.asarray(wanted).tobytes()
