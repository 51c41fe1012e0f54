"""Long modules in parts, which threads compile: they define what the module does, and compute the same."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
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
    assert sorted(part.count("declare i64 @h(") for part in parts) == [0, 1, 1]


def test_a_function_for_others_is_copied_too() -> None:
    text = MODULE.replace("define internal i64 @g", "define i64 @g")
    parts = split_module(text, 9)
    code = llvm_jit.load(join_codes([llvm_jit.assemble(part) for part in parts]), ["f", "g", "other"])
    assert call(code, "g", 7) == 14 and call(code, "f", 7) == 14 + 200 and call(code, "other", 7) == 14 + 400


def test_variables_keep_a_module_whole() -> None:
    text = MODULE.replace("internal constant", "internal global")
    assert split_module(text, 2) == [text]


#: Loads a module in parts, of which one finds room in a gap of so many pages, and the other 8 GB below.
FAR_APART = """
import ctypes, re, sys
from pathlib import Path
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.module_parts import join_codes, split_module

library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long
library.munmap.argtypes = ctypes.c_void_p, ctypes.c_size_t
PAGE, SIZE, ANYWHERE, EXACTLY = 2**12, 2**33, 0x4022, 0x104022

def occupy_gaps():
    text = Path("/proc/self/maps").read_text().partition("[stack]")[0].splitlines()[:-1]
    maps = [[int(each, 16) for each in re.match("(.*?)-(.*?) ", line).groups()] for line in text]
    above = [each for each in maps if each[0] > 0x700000000000]
    for (_, end), (begin, _) in zip(above, above[1:]):
        if begin > end:
            library.mmap(end, begin - end, 0, EXACTLY, -1, 0)

code = join_codes([llvm_jit.assemble(part) for part in split_module(sys.argv[1], 9)])
llvm_jit.load(code, ["f"])
occupy_gaps()
end = library.mmap(None, SIZE, 0, ANYWHERE, -1, 0) + SIZE
occupy_gaps()
for pages in range(1, 8):
    library.munmap(end - PAGE * pages, PAGE * pages)
    loaded = llvm_jit.load(code, ["f"])
    print(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.addresses["f"])(7))
    del loaded
    library.mmap(end - PAGE * pages, PAGE * pages, 0, EXACTLY, -1, 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at where memory lies as Linux tells it")
def test_parts_may_lie_far_apart() -> None:
    """Addresses of functions in another part are looked up: the difference to a part's own may take over 32 bits."""
    text = MODULE.replace(
        "%b = call i64 @h(i64 %x)\n  %c = add i64 %a, %b\n  ret i64 %c\n}\ndefine i64 @o",
        """\
%p = alloca ptr
  store volatile ptr @h, ptr %p
  %h = load volatile ptr, ptr %p
  %b = call i64 %h(i64 %x)
  %c = add i64 %a, %b
  ret i64 %c
}
define i64 @o""",
    )
    assert text != MODULE
    ran = subprocess.run([sys.executable, "-c", FAR_APART, text], capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["214"] * 7, ran.stderr


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
