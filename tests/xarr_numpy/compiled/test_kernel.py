"""Kernels and programs that differ in numbers of elements alone, and the machine code that they share."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import xarr

pytest.importorskip("llvmlite")

from xarr_numpy import engine
from xarr_numpy.compiled.codegen import llvm_jit, templates
from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.compiled.plans import native_step
from xarr_numpy.processor import PROCESSOR, Processor


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts of the modules of kernels that are compiled, none of which is known before."""
    caches: Iterable[Any] = (engine.kernel, templates._template_code, native_step._compile)
    for cache in caches:
        cache.cache_clear()
    texts: list[str] = []
    compile_module = llvm_jit.compile_module

    def compile_and_list(text: str, names: Iterable[str], *serial: Any, **options: Any) -> llvm_jit.Code:
        if "phase0" in text or "@steps(" in text:
            texts.append(text)
        return compile_module(text, names, *serial, **options)

    monkeypatch.setattr(llvm_jit, "compile_module", compile_and_list)
    yield texts
    for cache in caches:
        cache.cache_clear()


def _eliminate(a: Any, steps: int) -> Any:
    for k in range(steps):
        a = a.at[k + 1 :, k].set(a[k + 1 :, k] / a[k, k])
        a = a.at[k + 1 :, k + 1 :].set(a[k + 1 :, k + 1 :] - a[k + 1 :, k, None] * a[None, k, k + 1 :])
    return a


def _matrix(size: int) -> Any:
    return np.random.default_rng(size).random((size, size)) + np.eye(size) * size


def _eliminate_by_numpy(a: Any) -> Any:
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[None, k, k + 1 :]
    return a


def test_loops_over_what_is_left_of_a_matrix_share_code(modules: list[str]) -> None:
    counts = []
    for size in (100, 200):
        del modules[:]
        got = xarr.jit(lambda a, size=size: _eliminate(a, size - 1))(_matrix(size))
        np.testing.assert_array_equal(np.asarray(got), _eliminate_by_numpy(_matrix(size)))
        counts.append(len(modules))
    assert max(counts) < 40, counts  # of 198 and 398 kernels


@pytest.mark.parametrize("native", [True, False])
def test_shapes_from_the_fourth_on_compile_nothing(
    native: bool, modules: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr(struct_offsets, "works", lambda: False)
    scale = xarr.jit(lambda x, y: x[1:] * y + x[:-1])
    for size in range(80, 80 + 16 * 12, 16):
        x = np.random.default_rng(size).random(size + 1)
        np.testing.assert_array_equal(np.asarray(scale(x, x[:-1])), x[1:] * x[:-1] + x[:-1])
    assert len(modules) == PROCESSOR.min_alike_kernels


def test_results_of_several_kernels_that_share_code_stay_apart(modules: list[str]) -> None:
    sums = xarr.jit(lambda x: (xarr.sum(x * x, axis=1), x[:, ::-1] * 2.0))
    cases = [np.random.default_rng(k).random((3 + k, 24 + 8 * k)) for k in range(9)]
    calls = [sums(case) for case in cases] + [sums(case) for case in cases]
    for (total, turned), case in zip(calls, cases * 2, strict=True):
        np.testing.assert_allclose(np.asarray(total), np.sum(case * case, axis=1), rtol=1e-14)
        np.testing.assert_array_equal(np.asarray(turned), case[:, ::-1] * 2.0)


def _normalise(x: Any) -> Any:
    """The mean divides by a number of elements, and rows are kept for the second pass over them."""
    centred = x - xarr.mean(x, axis=1, keepdims=True)
    return centred / xarr.sqrt(xarr.mean(centred * centred, axis=1, keepdims=True))


def _count_near(x: Any, y: Any) -> tuple[Any, Any]:
    """Two kernels, and a check of indices between them: a program that is one function."""
    where = xarr.clip(xarr.floor(x * 8).astype("int64"), 0, 7)
    counts = xarr.zeros(8).at[where].add(1.0)
    return counts / xarr.sum(counts), y[where] + xarr.arange(x.shape[0])


def _edges(x: Any) -> Any:
    padded = xarr.pad(x, 1, mode="edge")
    return (padded[:-2, 1:-1] + padded[2:, 1:-1]) / x.shape[0] + xarr.roll(x, 2, axis=1)


def _draw(*shape: int) -> Any:
    return np.random.default_rng(len(shape) + sum(shape)).random(shape)


@pytest.mark.parametrize(
    ("function", "draw"),
    [
        (_normalise, lambda n: (_draw(5, 60 + 7 * n),)),
        (_normalise, lambda n: (_draw(5, 60 + 7 * n).astype(np.float32),)),
        (_count_near, lambda n: (_draw(70 + 9 * n), _draw(8))),
        (_edges, lambda n: (_draw(38 + 3 * n, 35),)),
    ],
    ids=["rows", "rows of float32", "several kernels", "borders"],
)
def test_shared_code_computes_the_bits_of_code_with_constants(
    function: Any, draw: Any, modules: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [draw(n) for n in range(7)]
    with monkeypatch.context() as patch:
        patch.setattr(Processor, "min_alike_kernels", 10**9)
        wanted = [_arrays(xarr.jit(lambda *x: function(*x))(*case)) for case in cases]
    assert all("%n.all" not in text for text in modules)
    del modules[:]
    engine.kernel.cache_clear()
    gc.collect()  # or code with constants may be there still
    call = xarr.jit(function)
    got = [_arrays(call(*case)) for case in cases]
    assert any("%n.all" in text for text in modules)
    for results, expected in zip(got, wanted, strict=True):
        for result, each in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, each)


def _arrays(results: Any) -> list[Any]:
    return [np.asarray(each) for each in (results if isinstance(results, tuple) else (results,))]


def test_programs_that_are_alike_compile_nothing_from_the_fourth_on(modules: list[str]) -> None:
    call = xarr.jit(_count_near)
    for n in range(8):
        call(_draw(91 + 4 * n), _draw(8))
    assert len(modules) == PROCESSOR.min_alike_kernels


def test_an_index_that_is_out_of_bounds_is_named_by_shared_code() -> None:
    call = xarr.jit(lambda x, i: xarr.zeros(8).at[i].add(x)[0] + xarr.sum(x[i] * 2.0))
    for n in range(30, 54, 4):
        assert float(call(np.ones(n), np.zeros(n, np.int64))) == 3 * n
        with pytest.raises(IndexError, match=f"{n + 3}"):
            float(call(np.ones(n), np.full(n, n + 3)))


def test_rows_more_or_less_need_no_other_code(modules: list[str]) -> None:
    for rows in range(2000, 2005):
        assert xarr.jit(_normalise)(np.ones((rows, 512))).shape == (rows, 512)
    assert len(modules) == 1


def test_long_work_has_constants_when_it_repays_compiling_them(modules: list[str]) -> None:
    for columns in range(503, 503 + 4 * 2, 2):
        call = xarr.jit(lambda x: xarr.tanh(xarr.exp(x)) / xarr.sum(x, axis=1, keepdims=True))
        call(np.ones((3000, columns)))
    assert ["%n.all" in text for text in modules] == [False, False, False, True]
    for _ in range(1000):
        if len(modules) > 4:
            break
        call(np.ones((3000, columns)))
    assert "%n.all" not in modules[4]
