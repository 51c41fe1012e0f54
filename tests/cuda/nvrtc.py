"""NVRTC by ctypes: CUDA C++ to machine code without a driver, CuPy or a GPU.

It needs one wheel, nvidia-cuda-nvrtc, in this Python or in the directory that NVRTC_DIRECTORY names.  Source: NVRTC's
documentation, version 13.
"""

from __future__ import annotations

import ctypes
import os
import re
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

#: Set it to the `site-packages` of another environment.
DIRECTORY = "NVRTC_DIRECTORY"


class CompileError(Exception):
    """NVRTC refuses a text."""


@dataclass(frozen=True)
class Usage:
    """The share of a multiprocessor that a kernel takes, in registers and bytes of a thread and of a block."""

    kernel: str
    registers: int
    stack: int
    spills: int
    shared: int = 0


@lru_cache(None)
def library() -> ctypes.CDLL | None:
    """The library, None if it is not here."""
    root = Path(os.environ.get(DIRECTORY, sysconfig.get_paths()["purelib"]))
    # The library itself, and not the one with the built-in headers, which it loads from beside it.
    files = sorted(root.glob("nvidia/*/lib/libnvrtc.so.*"))
    if not files:
        return None
    nvrtc = ctypes.CDLL(str(files[0]))
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    return nvrtc


def usage_of(text: str, architecture: str, options: Sequence[str]) -> list[Usage]:
    """Compile a text for an architecture, `sm_90`: what each kernel takes.  CompileError with the compiler's log."""
    nvrtc, program = library(), ctypes.c_void_p()
    assert nvrtc is not None, "needs nvidia-cuda-nvrtc"
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    flags = [f"-arch={architecture}", "--ptxas-options=-v", *options]
    error = nvrtc.nvrtcCompileProgram(
        program, len(flags), (ctypes.c_char_p * len(flags))(*map(str.encode, flags))
    )
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if error:
        raise CompileError(f"{nvrtc.nvrtcGetErrorString(error).decode()}\n{log.value.decode()}")
    return _usages(log.value.decode())


def _usages(log: str) -> list[Usage]:
    """The report of ptxas for each kernel."""
    usages = []
    for part in log.split("Compiling entry function '")[1:]:
        numbers = re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part
        )
        registers = re.search(r"Used (\d+) registers", part)
        shared = re.search(r"(\d+) bytes smem", part)
        assert numbers is not None and registers is not None, part
        stack, stores, loads = map(int, numbers.groups())
        of_block = int(shared[1]) if shared else 0
        usages.append(Usage(part.partition("'")[0], int(registers[1]), stack, stores + loads, of_block))
    return usages
