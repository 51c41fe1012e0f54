"""Long modules in parts, which threads compile: they define what the module does, and compute the same."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.errors import BackendError
from xarr_numpy import workers
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.module_parts import join_codes, split_codes, split_module
from xarr_numpy.processor import Processor

#: `f` adds what `g` gives, of which a copy is in it, to what `h` gives, which is called.
MODULE = """\
declare i64 @llvm.smax.i64(i64, i64)
@unused = internal constant i64 3

define internal i64 @two(i64 %x) alwaysinline nounwind {
  %y = mul i64 %x, 2
  ret i64 %y
}
define internal i64 @g(i64 %x) nounwind {
entry:
  %y = call i64 @two(i64 %x)
  ret i64 %y
}
define internal i64 @h(i64 %x) noinline nounwind {
  %y = call i64 @llvm.smax.i64(i64 %x, i64 100)
  %z = call i64 @two(i64 %y)
  ret i64 %z
}
define i64 @f(i64 %x) nounwind {
  %a = call i64 @g(i64 %x) alwaysinline
  %b = call i64 @h(i64 %x)
  %c = add i64 %a, %b
  ret i64 %c
}
define i64 @other(i64 %x) nounwind {
  %a = call i64 @f(i64 %x)
  %b = call i64 @h(i64 %x)
  %c = add i64 %a, %b
  ret i64 %c
}
"""


def call(code: llvm_jit.Code, name: str, number: int) -> int:
    result: int = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.addresses[name])(number)
    return result


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_parts_define_what_the_module_does(count: int) -> None:
    parts = split_module(MODULE, count)
    assert len(parts) == min(count, 3)  # f, other and h: there are copies of the others
    code = llvm_jit.load(join_codes([llvm_jit.assemble(part) for part in parts]), ["f", "other"])
    assert call(code, "f", 7) == 14 + 200
    assert call(code, "other", 7) == 14 + 400


def test_what_is_copied_is_in_each_part_that_needs_it() -> None:
    parts = split_module(MODULE, 3)
    assert sorted(part.count("define internal i64 @two") for part in parts) == [0, 1, 1]
    assert sorted(part.count("define internal i64 @g(") for part in parts) == [0, 0, 1]
    assert sorted(part.count("define hidden i64 @h(") for part in parts) == [0, 0, 1]
    assert sorted(part.count("declare hidden i64 @h(") for part in parts) == [0, 1, 1]


def test_a_function_for_others_is_copied_too() -> None:
    text = MODULE.replace("define internal i64 @g", "define i64 @g")
    parts = split_module(text, 9)
    code = llvm_jit.load(join_codes([llvm_jit.assemble(part) for part in parts]), ["f", "g", "other"])
    assert call(code, "g", 7) == 14 and call(code, "f", 7) == 14 + 200 and call(code, "other", 7) == 14 + 400


def test_variables_keep_a_module_whole() -> None:
    text = MODULE.replace("internal constant", "internal global")
    assert split_module(text, 2) == [text]


def test_codes_are_joined_and_split() -> None:
    codes = [b"\x7fELF", b"", b"codes"]
    assert split_codes(join_codes(codes)) == codes
    assert split_codes(b"\x7fELF") == [b"\x7fELF"]


def test_what_is_no_code_is_refused() -> None:
    with pytest.raises(BackendError, match="could not load"):
        llvm_jit.load(join_codes([b"no", b"code"]), ["f"])


def transform(x: Any) -> Any:
    """A function of several long groups."""
    for k in range(1, 5):
        x = xarr.tanh(x / k) + xarr.cumsum(xarr.sin(x), axis=0)
    return x


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two threads, and the names of those that generate code of parts."""
    monkeypatch.setenv("XARR_THREADS", "2")
    monkeypatch.setattr(workers, "_pool", None)
    monkeypatch.setattr(Processor, "min_part_lines", 50)
    emit, names = llvm_jit.Machine._emit_unlocked, list[str]()

    def note(self: llvm_jit.Machine, *operands: Any) -> bytes:
        names.append(threading.current_thread().name)
        return emit(self, *operands)

    monkeypatch.setattr(llvm_jit.Machine, "_emit_unlocked", note)
    return names


@pytest.mark.usefixtures("on_numpy", "fused")
def test_programs_in_parts_compute_the_same(two_threads: list[str]) -> None:
    x = xarr.asarray(np.linspace(-3, 3, 40).reshape(8, 5))
    with xarr.config(kernel_cache="off"):
        in_parts = np.asarray(xarr.jit(transform)(x))
        assert len(two_threads) >= 2
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XARR_THREADS", "1")
            two_threads.clear()
            whole = np.asarray(xarr.jit(lambda x: transform(x))(x))
    assert not two_threads
    assert in_parts.tobytes() == whole.tobytes()


def test_threads_may_collect_code_that_nobody_uses(
    two_threads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector of garbage runs in any thread, also while another one waits for that and holds LLVM's lock."""
    monkeypatch.setattr(Processor, "min_part_lines", 3)
    emit = llvm_jit.Machine._emit_unlocked
    was_enabled = gc.isenabled()
    gc.disable()
    ring: list[Any] = [llvm_jit.load(llvm_jit.assemble(MODULE), ["f"])]
    code, collected = weakref.ref(ring[0]), threading.Event()
    ring.append(ring)
    del ring

    def collect(self: llvm_jit.Machine, *operands: Any) -> bytes:
        if threading.current_thread().name == "xarr":
            gc.collect()
            collected.set()
        else:
            collected.wait(10)
        return emit(self, *operands)

    monkeypatch.setattr(llvm_jit.Machine, "_emit_unlocked", collect)
    caller = threading.Thread(
        target=llvm_jit._assemble, args=(MODULE, (), llvm_jit.CODEGEN_LEVEL), daemon=True
    )
    caller.start()
    caller.join(30)
    if was_enabled:
        gc.enable()
    assert not caller.is_alive() and code() is None and llvm_jit._unused
    llvm_jit.load(llvm_jit.assemble(MODULE), ["f"])
    assert not llvm_jit._unused


def test_llvmlite_lets_threads_emit() -> None:
    """Otherwise modules stay whole: which is right, but slower."""
    assert llvm_jit.Machine.host().emits_in_threads()
