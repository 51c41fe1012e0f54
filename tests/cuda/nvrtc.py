"""NVRTC by ctypes: CUDA C++ to machine code without a driver, CuPy or a GPU.

It needs one wheel, nvidia-cuda-nvrtc, in this Python or in the directory that NVRTC_DIRECTORY names.  Source: NVRTC's
documentation, version 13.
"""

from __future__ import annotations

import ctypes
import os
import re
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

#: Set it to the `site-packages` of another environment.
DIRECTORY = "NVRTC_DIRECTORY"
#: Set it to a folder: tests on the emulated device leave the texts of their kernels there, and the gate reads them.
TEXTS = "CUDA_TEXTS"
MISSING = "needs nvidia-cuda-nvrtc, or NVRTC_DIRECTORY"


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


#: What the kernels of this process took, by their architectures: registers, stack and spills of each.
compiled: dict[str, list[tuple[int, int, int]]] = {}


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


needed = pytest.mark.skipif(library() is None, reason=MISSING)


def usage_of(text: str, architecture: str, options: Sequence[str]) -> list[Usage]:
    """Compile a text for an architecture, `sm_90`: what each kernel takes.  CompileError with the compiler's log."""
    log, _ = _compile(text, [f"-arch={architecture}", "--ptxas-options=-v", *options])
    usages = _usages(log)
    compiled.setdefault(architecture, []).extend((each.registers, each.stack, each.spills) for each in usages)
    return usages


def join_texts(texts: Sequence[str]) -> str:
    """The kernels of texts as one text, which is compiled in less than half of the time; each in a namespace."""
    plain = [text.replace('extern "C" ', "") for text in texts]
    return "".join([f"namespace text{number} {{\n{text}\n}}\n" for number, text in enumerate(plain)])


def summary(compiled: Mapping[str, Sequence[tuple[int, int, int]]]) -> str:
    """A line for each architecture: how many kernels there are, their registers, their stack and what they spill."""
    lines = []
    for architecture, rows in sorted(compiled.items(), key=lambda row: int(row[0].partition("_")[2])):
        registers, stack, spills = zip(*rows, strict=True)
        mean = sum(registers) / len(rows)
        lines.append(
            f"{architecture}: {len(rows)} kernels of {min(registers)} to {max(registers)} registers, "
            f"{mean:.0f} on average; {sum(stack)} B of stack, {sum(spills)} B spilled"
        )
    return "\n".join(lines)


def ptx_of(text: str, options: Sequence[str]) -> str:
    """The instructions of a text for an architecture that no machine has.  CompileError with the compiler's log."""
    return _compile(text, ["-arch=compute_90", *options])[1]


def _compile(text: str, flags: Sequence[str]) -> tuple[str, str]:
    """The compiler's log, and PTX."""
    nvrtc, program = library(), ctypes.c_void_p()
    assert nvrtc is not None, "needs nvidia-cuda-nvrtc"
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    error = nvrtc.nvrtcCompileProgram(
        program, len(flags), (ctypes.c_char_p * len(flags))(*map(str.encode, flags))
    )
    log = _read(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
    if error:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        raise CompileError(f"{nvrtc.nvrtcGetErrorString(error).decode()}\n{log}")
    ptx = _read(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return log, ptx


def _read(program: ctypes.c_void_p, size_of: Any, read: Any) -> str:
    """A text of a program that NVRTC has compiled."""
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    read(program, text)
    return text.value.decode()


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
