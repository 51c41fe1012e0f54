"""Machine code as built-in functions: what they refuse to read, and how long their code lives."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.config import current as config

pytest.importorskip("llvmlite")

from xarr_numpy import engine
from xarr_numpy.compiled import assembler
from xarr_numpy.compiled.cpython_abi import builtin

pytestmark = pytest.mark.skipif(not builtin.works(), reason="objects lie in memory in another way")

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_numpy_scalars_are_not_read_as_arrays() -> None:
    kernels: list[Any] = []
    for value in (np.float64(1.5), np.int64(257), np.float32(2)):
        text = builtin.DECLARATIONS + builtin.entry_text("entry", "phase", 2, 1)
        text += "define void @phase(ptr %b, i64 %f, i64 %n) { ret void }"
        kernels.append(assembler.made(text, ["entry"]))
        entry = builtin.function(kernels[-1].addresses["entry"], kernels[-1])
        assert entry(X, X) is True
        assert entry(value, X) is False


def test_code_goes_with_its_function() -> None:
    text = "define ptr @entry(ptr %self, ptr %arguments, i64 %count) {\n  %x = load ptr, ptr %arguments\n"
    text += "  call void @Py_IncRef(ptr %x)\n  ret ptr %x\n}\ndeclare void @Py_IncRef(ptr)\n"
    code = assembler.made(text, ["entry"])
    same = builtin.function(code.addresses["entry"], code)
    gone = weakref.ref(code)
    del code
    gc.collect()
    assert same("a thing") == "a thing" and gone() is not None
    del same
    gc.collect()
    assert gone() is None


def test_many_signatures_do_not_keep_their_code() -> None:
    x = xarr.asarray(X).evaluate()
    codes = []
    for number in range(3):
        jitted = xarr.jit(lambda x, number=number: x * (number + 2) - 1.25)
        jitted(x)
        kernels = [each for each in gc.get_objects() if type(each) is assembler.Code]
        codes += [weakref.ref(each) for each in kernels if "entry" in each.addresses]
        del kernels
    alive = len({id(each()) for each in codes if each() is not None})
    del jitted
    with config(fusion="compiled"):
        engine.kernel.cache_clear()
    gc.collect()
    assert len({id(each()) for each in codes if each() is not None}) <= alive - 3
