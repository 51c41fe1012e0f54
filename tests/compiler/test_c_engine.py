"""The toy engine of tests/support/c_engine.py: loop programs as C, plans that run it, and tests of the library on it.

All the tests that it is to pass, but for those of arrays too large for its library:

    XARR_BACKEND=toy_c python -m pytest -n 2 -k "not (cost or large or wide or long or holes or folded)" \\
        tests/lax/test_{reduction,indexing,windows,movement,sorting,loops,control,convolution,contraction}.py \\
        tests/lax/test_windows_refusals.py tests/ir/test_windows.py

Whatever it leaves to its library, without a reason that tests/support/c_library.py names, is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import c_engine, c_library
from tests.support.checkout import CHECKOUT
from xarr import Array, lax
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.types import TensorType

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0")
#: Parts of test files that take some seconds together.
SELECTION = (
    "tests/lax/test_control.py",
    "tests/lax/test_indexing.py::test_gather_modes_as_jax",
    "tests/lax/test_indexing.py::test_take_as_numpy",
    "tests/lax/test_loops.py::test_scan_carries_and_stacks_pytrees",
    "tests/lax/test_loops.py::test_scan_sees_outer_arrays_and_nests",
    "tests/lax/test_movement.py::test_agrees_with_xla[concatenate-bfloat16]",
    "tests/lax/test_reduction.py::test_bitwise_reductions_agree[reduce_xor]",
    "tests/lax/test_reduction.py::test_numeric_reductions_agree[reduce_max]",
    "tests/lax/test_reduction.py::test_indices_of_extremes_agree[argmax]",
    "tests/lax/test_sorting.py::test_sort_agrees_bit_for_bit",
    "tests/lax/test_convolution.py::test_window_reversal_reads_the_kernel_from_its_end",
    "tests/lax/test_windows.py::test_padding_and_holes_take_no_part",
    "tests/lax/test_windows.py::test_running_totals_of_special_values_as_jax",
    "tests/lax/test_windows.py::test_ties_and_nan",
    "tests/lax/test_windows.py::test_windows_of_padding_choose_nothing",
)


def text(function: Any, *types: str) -> str:
    """The C of a program, without what stands before its functions."""
    program: Any = xarr.jit(function).lower(*types).stage("program")
    return str(program.text).partition("void run")[2]


def test_a_loop_is_a_for_and_a_value_a_variable(toy_c: Any) -> None:
    assert (
        text(lambda x: x * 2 + 1, "f32[3,4]")
        == """(void **buffers) {
    f4 *in0 = buffers[0];
    f4 *out0 = buffers[1];
    {
        for (i8 k3 = 0; k3 < 3; k3++) {
            for (i8 k4 = 0; k4 < 4; k4++) {
                const f4 v5 = in0[4 * k3 + 1 * k4 + 0];
                const f4 v6 = v5 * ((f4)0x1.0000000000000p+1);
                const f4 v7 = v6 + ((f4)0x1.0000000000000p+0);
                out0[4 * k3 + 1 * k4 + 0] = v7;
            }
        }
    }
}
"""
    )


def softmax(x: Array) -> Array:
    y = xarr.exp(x - xarr.max(x, axis=1, keepdims=True))
    return y / xarr.sum(y, axis=1, keepdims=True)


@pytest.mark.implicit
def test_reductions_and_what_follows_are_one_program(toy_c: Any) -> None:
    x = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    result = np.asarray(xarr.jit(softmax)(xarr.asarray(x)))
    wanted = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(result, wanted / wanted.sum(1, keepdims=True), rtol=1e-6)
    assert text(softmax, "f32[5,7]").count("for (") == 10


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "int8", "uint64", "bool"])
def test_sums_of_every_kind_of_number(toy_c: Any, dtype: str) -> None:
    x = xarr.astype(xarr.reshape(xarr.arange(12) - 4, (3, 4)), dtype)
    result = lax.reduce_or(x, (0,)) if dtype == "bool" else lax.reduce_sum(x, (0,))
    with xarr.use_backend("numpy"):
        y = xarr.asarray(np.asarray(x))
        assert_same(result, lax.reduce_or(y, (0,)) if dtype == "bool" else lax.reduce_sum(y, (0,)))


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, -0.0, 5e-324, 1 / 3])
def test_constants_keep_their_bits(toy_c: Any, number: float) -> None:
    result = xarr.jit(lambda x: lax.select(x, xarr.full_like(x, number, dtype="float64"), xarr.zeros(1)))
    assert_same(np.asarray(result(xarr.asarray([True]))), np.array([number]))


def test_what_no_loop_holds_is_the_library_s(toy_c: Any) -> None:
    c_library.CALLS.clear()
    x = np.arange(4.0)
    result = xarr.jit(lambda x: lax.sort(x * -1.0) + 1)
    assert_same(result(xarr.asarray(x)), np.array([-2.0, -1.0, 0.0, 1.0]))
    assert "library sort" in str(result.lower(x).stage("plan"))
    assert {name for name, _ in c_library.CALLS} == {"stablehlo.sort"}


def test_what_a_loop_holds_is_never_the_library_s() -> None:
    x = parameter(TensorType((4,), np.dtype("int64")))
    with pytest.raises(AssertionError, match=r"and no reason: .*reverse"):
        c_library.library_program(Graph([x], [Node(ops.Reverse((0,)), (x,))]))


def test_scatters_windows_and_products_are_loops(toy_c: Any) -> None:
    def function(x: Any, i: Any) -> Any:
        y = x.at[i].add(1.0) * 2
        return lax.reduce_window(y, 0.0, lax.add, (2,), (1,), "VALID"), lax.cumsum(y), lax.dot(y, y)

    x, i = xarr.asarray(np.arange(4.0)), xarr.asarray([1, 1, 3])
    c_library.CALLS.clear()
    sums, totals, product = xarr.jit(function)(x, i)
    assert_same(sums, np.array([6.0, 10.0, 12.0]))
    assert_same(totals, np.array([0.0, 6.0, 10.0, 18.0]))
    assert_same(product, np.array(116.0))
    assert {name for name, _ in c_library.CALLS} == {"stablehlo.custom_call"}  # the indices are checked
    plan = str(xarr.jit(lambda x, i: x.at[i].add(1.0) * 2).lower(x, i).stage("plan"))
    assert "launch" in plan and "library" not in plan


def test_loops_and_branches_have_plans(toy_c: Any) -> None:
    def function(x: Any) -> Any:
        y = lax.fori_loop(0, 5, lambda i, s: s + lax.cumsum(s) * i, x)
        return lax.cond(y[0] > 0, lambda y: y + 1, lambda y: -y, y)

    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.arange(4)))
    assert_same(xarr.jit(function)(xarr.arange(4)), wanted)


def test_a_loop_that_needs_no_plan_is_a_loop_in_c(toy_c: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    compiled = c_engine.compile_program
    monkeypatch.setattr(c_engine, "compile_program", lambda text: texts.append(text) or compiled(text))
    collatz = xarr.jit(lambda n: lax.while_loop(lambda s: s[0] > 1, step_of_collatz, (n, 0))[1])
    assert int(collatz(xarr.asarray(27))) == 111
    assert any("while (condition(buffers[0])" in text for text in texts)


def step_of_collatz(state: Any) -> Any:
    n, count = state
    return lax.select(n % 2 == 0, n // 2, 3 * n + 1), count + 1


def test_a_wrong_operation_is_seen(toy_c: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(c_engine.INFIX, "add", "-")
    result = xarr.jit(lambda x: x * 2 + 1.5)(xarr.asarray([1.0, 2.0]))
    assert_same(result, np.array([0.5, 2.5]))


@pytest.mark.thorough
def test_parts_of_the_tests_of_the_library_pass() -> None:
    done = subprocess.run(
        [*PYTEST, "-k", "toy_c or not (numpy or reference)", *SELECTION],
        cwd=CHECKOUT,
        env={**os.environ, "XARR_BACKEND": "toy_c"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout.splitlines()[-1] and "skipped" not in done.stdout.splitlines()[-1]


def test_it_is_short() -> None:
    assert len(Path(c_engine.__file__).read_text().splitlines()) <= 300
