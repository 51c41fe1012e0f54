"""Kernels that differ in numbers of iterations, offsets and strides alone, and the machine code that they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import xarr

pytest.importorskip("llvmlite")

from xarr_numpy import engine
from xarr_numpy.compiled import kernel
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.processor import PROCESSOR


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts of the modules of kernels that are compiled, none of which is known before."""
    caches: Iterable[Any] = (engine.kernel, kernel._uses)
    for cache in caches:
        cache.cache_clear()
    kernel._shared.clear()
    texts: list[str] = []
    compile_module = llvm_jit.compile_module

    def compile_and_list(text: str, names: Iterable[str], *serial: Any, **options: Any) -> llvm_jit.Code:
        if "phase0" in text:
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
    assert counts[1] < counts[0], counts


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


def test_long_work_keeps_its_constants(modules: list[str]) -> None:
    for size in range(6):
        assert xarr.jit(xarr.tanh)(np.ones(2**21 + 64 * size)).shape == (2**21 + 64 * size,)
    assert all("%n.all" not in text for text in modules)
