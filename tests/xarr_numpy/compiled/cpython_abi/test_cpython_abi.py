"""Machine code that reads array objects: where it may, what it refuses to read, and how long its code lives."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.compiled_modules import note_modules
from xarr.base import python_build
from xarr.base.configuration import current as config
from xarr.errors import ConfigError

pytest.importorskip("llvmlite")

from xarr_numpy import engine
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.cpython_abi import addresses, builtin, struct_offsets

X = np.arange(12, dtype=np.float32).reshape(3, 4)


# --- where ---------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The question is asked anew, with no variable in the environment."""
    monkeypatch.delenv(struct_offsets.VARIABLE, raising=False)
    struct_offsets.obstacle.cache_clear()
    yield
    monkeypatch.undo()
    struct_offsets.obstacle.cache_clear()


@pytest.mark.usefixtures("asked")
def test_arrays_lie_in_memory_as_expected() -> None:
    is_known = sys.implementation.name == "cpython" and sys.platform != "win32"
    is_tested = sys.version_info[:2] in struct_offsets.TESTED
    assert struct_offsets.works() is (is_known and is_tested and not python_build.is_free_threaded())


@pytest.mark.usefixtures("asked")
def test_a_free_threaded_python_has_other_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_build, "is_free_threaded", lambda: True)
    monkeypatch.setenv(struct_offsets.VARIABLE, "on")
    assert not struct_offsets.works()


@pytest.mark.usefixtures("asked")
def test_another_interpreter_has_other_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.implementation, "name", "pypy")
    monkeypatch.setenv(struct_offsets.VARIABLE, "on")
    assert not struct_offsets.works()


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("mode", ["", "auto", "on"])
def test_another_layout_is_noticed(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(struct_offsets.VARIABLE, mode)
    monkeypatch.setattr(struct_offsets, "DATA", struct_offsets.DATA + 8)
    assert not struct_offsets.works()


@pytest.mark.usefixtures("asked")
def test_a_version_on_which_nothing_was_tested_is_not_relied_upon(monkeypatch: pytest.MonkeyPatch) -> None:
    works = struct_offsets.works()
    struct_offsets.obstacle.cache_clear()
    monkeypatch.setattr(struct_offsets, "TESTED", frozenset())
    assert not struct_offsets.works()
    assert "XARR_NATIVE_CALLS=on tries it" in str(struct_offsets.obstacle())
    struct_offsets.obstacle.cache_clear()
    monkeypatch.setenv(struct_offsets.VARIABLE, "on")
    assert struct_offsets.works() is works


@pytest.mark.usefixtures("asked")
def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(struct_offsets.VARIABLE, "off")
    assert struct_offsets.obstacle() == "XARR_NATIVE_CALLS is off"
    with config(fusion="auto"):
        assert (
            "arrays are passed through ctypes: XARR_NATIVE_CALLS is off" in xarr.get_backend("numpy").engine()
        )


@pytest.mark.usefixtures("asked")
def test_another_value_of_the_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(struct_offsets.VARIABLE, "yes")
    with pytest.raises(ConfigError, match="XARR_NATIVE_CALLS: wanted one of auto, on, off, got 'yes'"):
        struct_offsets.works()


def test_both_ways_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a program is a built-in function, or reads addresses as one, where that is switched off."""
    x = np.linspace(-2, 2, 12).reshape(3, 4)
    results = []
    for works in (True, False):
        monkeypatch.setattr(
            struct_offsets, "works", lambda works=works: works and struct_offsets.obstacle() is None
        )
        engine.kernel.cache_clear()
        addresses._fill.cache_clear()
        with config(fusion="compiled"):
            step = xarr.jit(lambda x: (xarr.tanh(x) * 2 + x, xarr.sum(x.T * x.T, axis=0)))
            results.append([np.asarray(each) for each in (*step(x), *step(x[::-1]), *step(xarr.asarray(x)))])
    engine.kernel.cache_clear()
    addresses._fill.cache_clear()
    for native, other in zip(*results, strict=True):
        assert_same(native, other)


# --- built-in functions --------------------------------------------------------------------------------------

reads_objects = pytest.mark.skipif(
    not struct_offsets.works(), reason="machine code may not read array objects here"
)


@reads_objects
def test_numpy_scalars_are_not_read_as_arrays() -> None:
    kernels: list[Any] = []
    for value in (np.float64(1.5), np.int64(257), np.float32(2)):
        text = "define void @phase(ptr %b, i64 %f, i64 %n) { ret void }"
        kernels.append(llvm_jit.compile_module(text, ["phase"]))
        entry, _ = builtin.phase_entries(kernels[-1].addresses["phase"], 1, 2, 0, kernels[-1])
        assert entry(X, X) is True
        assert entry(value, X) is False


@reads_objects
@pytest.mark.parametrize("count", [3, 9, 40])
def test_entries_of_many_arrays_look_at_each(count: int) -> None:
    """The phase writes how many arrays there are into the last one, whose address is the last of its table."""
    text = (
        "define void @phase(ptr %b, i64 %f, i64 %n) {\n"
        f"  %slot = getelementptr ptr, ptr %b, i64 {count - 1}\n  %last = load ptr, ptr %slot\n"
        f"  store i64 {count}, ptr %last\n  ret void\n}}"
    )
    code = llvm_jit.compile_module(text, ["phase"])
    entry, sealing = builtin.phase_entries(code.addresses["phase"], 1, count, 2, code)
    arrays = [np.zeros(4, np.int64) for _ in range(count)]
    assert entry(*arrays) is True and arrays[-1][0] == count
    for position in (0, 1, count // 2, count - 1):
        for other in (np.zeros(8, np.int64)[::2], *([] if position == count - 1 else [np.float64(1.5)])):
            fresh = [np.zeros(4, np.int64) for _ in range(count)]
            fresh[position] = other
            assert entry(*fresh) is False
            assert not any(np.any(each) for each in fresh[1:] if isinstance(each, np.ndarray))
    assert entry(*arrays[1:]) is False
    assert sealing(*arrays) is True
    assert [each.flags.writeable for each in arrays] == [True] * (count - 2) + [False] * 2


@reads_objects
def test_kernels_of_as_many_arrays_share_the_functions_that_call_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = note_modules(monkeypatch)
    with config(fusion="compiled"):
        for number in range(4):
            result = xarr.jit(lambda x, number=number: x * (number + 0.8125) - 7.75)(X)
            np.testing.assert_allclose(np.asarray(result), X * (number + 0.8125) - 7.75)
    assert sum("define ptr @entry" in text for text in texts) <= 1
    assert sum("@phase0" in text for text in texts) == 4


@reads_objects
def test_code_goes_with_its_function() -> None:
    text = "define ptr @entry(ptr %self, ptr %arguments, i64 %count) {\n  %x = load ptr, ptr %arguments\n"
    text += "  call void @Py_IncRef(ptr %x)\n  ret ptr %x\n}\ndeclare void @Py_IncRef(ptr)\n"
    code = llvm_jit.compile_module(text, ["entry"])
    same = builtin.function(code.addresses["entry"], code)
    gone = weakref.ref(code)
    del code
    gc.collect()
    assert same("a thing") == "a thing" and gone() is not None
    del same
    gc.collect()
    assert gone() is None


@reads_objects
def test_many_signatures_do_not_keep_their_code() -> None:
    x = xarr.asarray(X).evaluate()
    codes = []
    for number in range(3):
        jitted = xarr.jit(lambda x, number=number: x * (number + 2) - 1.25)
        jitted(x)
        kernels = [each for each in gc.get_objects() if type(each) is llvm_jit.Code]
        codes += [weakref.ref(each) for each in kernels if "phase0" in each.addresses]
        del kernels
    alive = len({id(each()) for each in codes if each() is not None})
    del jitted
    with config(fusion="compiled"):
        engine.kernel.cache_clear()
    gc.collect()
    assert len({id(each()) for each in codes if each() is not None}) <= alive - 3
