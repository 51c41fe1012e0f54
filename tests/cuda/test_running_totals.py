"""Running totals along rows and columns, on the emulated device."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.compiler.loop_ir.test_verifier import Program
from tests.cuda.test_cupy_backend import device
from tests.cuda.test_shared_work import bits_in_each_order, normal
from xarr import lax
from xarr.compiler.loop_ir.loops import Affine, Loop, Runs, Store, index_value
from xarr.compiler.loop_ir.verifier import verify

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("name", "axis", "shape", "kernels"),
    [
        ("cumsum", 1, (3, 20), 2),
        ("cumsum", 1, (3, 300), 2),
        ("cumlogsumexp", 1, (2, 40), 2),
        ("cummax", 0, (300, 3), 2),
        ("cumsum", 0, (300, 5), 2),
        ("cumprod", 1, (2, 64, 33), 2),
        ("cumlogsumexp", 0, (70, 40), 2),
        ("cumsum", 0, (1040, 33), 4),
        ("cumsum", 0, (8192,), 4),
        ("cumsum", 0, (8193,), 4),
        ("cumprod", 1, (1, 8200), 4),
    ],
)
def test_running_totals_have_the_same_bits_in_each_order(
    name: str,
    axis: int,
    shape: tuple[int, ...],
    kernels: int,
    reverse: bool,
    cupy: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def function(x: Any) -> Any:
        return getattr(lax, name)(x, axis, reverse=reverse)

    array = 1 + normal(*shape) / 99
    device(cupy).texts.clear()
    result = bits_in_each_order(function, [array], cupy, monkeypatch)
    (text,) = device(cupy).texts
    assert text.count("__global__") == kernels
    with xarr.use_backend("numpy"):
        np.testing.assert_allclose(result, np.asarray(function(xarr.asarray(array))), rtol=1e-12)


@pytest.mark.parametrize(("rows", "term"), [(1, lax.lgamma), (4, lax.sqrt)])
def test_a_thread_has_as_many_terms_as_registers_hold(rows: int, term: Any, cupy: Any) -> None:
    x = np.linspace(1, 2, 2100).reshape(1, 2100)
    device(cupy).texts.clear()
    result = np.asarray(xarr.jit(lambda x: lax.cumsum(term(x), 1))(x))
    (text,) = device(cupy).texts
    assert f" own[{rows}];" in text
    with xarr.use_backend("numpy"):
        np.testing.assert_allclose(result, np.cumsum(np.asarray(term(xarr.asarray(x))), 1), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "bool"])
def test_running_totals_of_narrow_types(dtype: str, cupy: Any) -> None:
    x = np.random.default_rng(0).integers(0, 3, (2, 300))
    function = lax.cummax if dtype == "bool" else lax.cumsum
    result = np.asarray(function(xarr.astype(xarr.asarray(x), dtype), 1))
    with xarr.use_backend("numpy"):
        assert_same(result, np.asarray(function(xarr.astype(xarr.asarray(x), dtype), 1)))


@pytest.mark.parametrize("size", [300, 8193])
def test_running_totals_have_no_race(size: int, cupy: Any) -> None:
    device(cupy).races = True
    np.asarray(xarr.jit(lambda x: lax.cumsum(x, 0))(xarr.ones(size)))


def test_l10_stores_of_some_threads_in_lockstep() -> None:
    program = Program()
    shared = program.add("shared", 8)
    program.rows.runs, program.sums.runs, program.columns.runs = Runs.GRID, Runs.BLOCK, Runs.BLOCK
    thread = Loop(index_value(program.values, "thread"), 8, Runs.LOCKSTEP)
    once = Loop(index_value(program.values, "once"), 1)
    once.body.append(
        Store(shared, Affine(((thread.index, 1),)), program.values.constant(0, np.dtype(np.float32)))
    )
    thread.body.append(once)
    program.rows.body.insert(0, thread)
    verify(program.kernel)
    once.extent = program.rows.index.lt(3).select(program.values.constant(1, np.dtype(np.int64)), 0)
    verify(program.kernel)
    once.extent = thread.index.lt(3).select(program.values.constant(1, np.dtype(np.int64)), 0)
    program.breaks("L10", "some threads of a block may store what it shares")
