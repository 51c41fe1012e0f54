"""Modules of kernels: CUDA C++ compiled by g++, and their launch."""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

HEADER: Final = Path(__file__).with_name("device.h")
RUNTIME: Final = HEADER.with_name("runtime.cpp")
#: Integers wrap as they do on a device, and nothing is rounded otherwise than written.
COMMAND: Final = (
    *("g++", "-std=c++17", "-w", "-shared", "-fPIC", "-fwrapv", "-fno-strict-aliasing"),
    *("-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-fno-exceptions", "-U_FORTIFY_SOURCE"),
    *("-nostdlib", "-x", "c++", "-", "-x", "none"),
)
CACHE: Final = Path(tempfile.gettempdir()) / f"xarr-cuda-{os.getuid()}"
#: Orders in which threads and blocks run.
ORDERS: Final = ("forward", "backward", "shuffled")
_KERNEL: Final = re.compile(
    r'extern "C" __global__ void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)', re.S
)
_SHARED: Final = re.compile(r"__shared__\s+(?:__align__\(16\)\s+)?([\w ]+?)\s+(\w+)\[(\d+)\];")
_BARRIER: Final = re.compile(r"__sync|__shfl")
#: A module has one set of threads, in its own variables: launches of several threads of Python follow one another.
_device: Final = threading.Lock()
#: A stack for each thread of a block, and what is known of elements while races are looked for; see device.h.
_STACK_BYTES: Final = 1024 << 16
_SHADOW_BYTES: Final = 128 << 20
_EXPORTED: Final = 'extern "C" __attribute__((visibility("default")))'


class LaunchError(Exception):
    """A kernel did what would be an error on a device, or what nobody knows the result of."""


class CompileError(Exception):
    """The text of a kernel is no CUDA C++ that the emulator knows."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel: a pointer to elements of a type, or a number of it."""

    type: str
    name: str
    is_pointer: bool

    @classmethod
    def of(cls, declaration: str) -> Parameter:
        """A parameter as it is declared, `const float *__restrict__ x`."""
        words = declaration.replace("__restrict__", " ").replace("*", " * ").split()
        *type, name = [word for word in words if word != "*"]
        return cls(" ".join(type), name, "*" in words)

    def argument(self, number: int) -> str:
        """The argument of this number as the kernel takes it."""
        if self.is_pointer:
            return f'span<{self.type}>(a[{number}], "{self.name}")'
        return f"*({self.type} *)a[{number}].start"


class _Argument(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("nbytes", ctypes.c_longlong))


class _Workspace(ctypes.Structure):
    _fields_ = (("stacks", ctypes.c_void_p), ("shadows", ctypes.c_void_p), ("launch", ctypes.c_uint))


@lru_cache(None)
def _workspace() -> tuple[_Workspace, mmap.mmap]:
    """Numbers of all launches of the process, and memory that they point to, of which pages exist once touched."""
    memory = mmap.mmap(-1, _STACK_BYTES + _SHADOW_BYTES)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return _Workspace(start, start + _STACK_BYTES, 0), memory


class Module:
    """The kernels of a text, which look for races if `races`.  CompileError if g++ refuses it."""

    def __init__(self, text: str, races: bool = False) -> None:
        self.text, self.races = text, races
        self.kernels = {
            name: [Parameter.of(each) for each in parameters.split(",") if each.strip()]
            for name, parameters in _KERNEL.findall(text)
        }
        runtime = _runtime(self._switches())
        self._library = ctypes.CDLL(str(_compile(self.host_text(), ("-O0", runtime, "-lgcc"))))

    def host_text(self) -> str:
        """The text as g++ gets it: pointers and shared memory know their bounds."""
        text = _KERNEL.sub(_checked_signature, _with_lines(self.text) if self.races else self.text)
        text = _with_shared_memory(text)
        if "__shared__" in text:
            raise CompileError("shared memory has one dimension and a constant size here: T name[count];")
        calls = "".join(_launcher(name, parameters) for name, parameters in self.kernels.items())
        return f'{self._switches()}#include "{HEADER}"\n#line 1 "kernel.cu"\n{text}\n{calls}'

    def _switches(self) -> str:
        """The switches of device.h that are on, in its words."""
        barriers = "#define USES_BARRIERS 1\n" if _BARRIER.search(self.text) else ""
        return barriers + ("#define FIND_RACES 1\n" if self.races else "")

    def launch(
        self,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[tuple[int, int]],
        order: str = "forward",
        seed: int = 1,
    ) -> None:
        """Run a kernel of arguments, an address and a number of bytes each; of a number that of its memory.

        Raises LaunchError for the first fault, with the block and the thread.
        """
        parameters = self.kernels[name]
        if len(parameters) != len(arguments):
            raise LaunchError(f"{name} takes {len(parameters)} arguments, got {len(arguments)}")
        if 0 in (*grid, *block):
            raise LaunchError(f"{name} is launched in no blocks, or blocks of no threads: {grid}, {block}")
        pad = [[*sizes, 1, 1][:3] for sizes in (grid, block)]
        sizes = (ctypes.c_uint * 8)(*pad[0], *pad[1], ORDERS.index(order), seed)
        packed = (_Argument * max(1, len(arguments)))(*[_Argument(*each) for each in arguments])
        message = ctypes.create_string_buffer(400)
        workspace, _ = _workspace()
        with _device:
            workspace.launch += 1
            failed = getattr(self._library, f"launch_{name}")(sizes, packed, ctypes.byref(workspace), message)
        if failed:
            raise LaunchError(f"{name}: {message.value.decode()}")


def _checked_signature(match: re.Match[str]) -> str:
    """The head of a kernel whose pointers are spans."""
    parameters = [Parameter.of(each) for each in match[2].split(",") if each.strip()]
    types = [f"Span<{x.type}> {x.name}" if x.is_pointer else f"{x.type} {x.name}" for x in parameters]
    return f"static void {match[1]}({', '.join(types)})"


def _with_shared_memory(text: str) -> str:
    """The text with its shared arrays as parts of one block of bytes.  They lie one after the other in all of it."""
    offset = "0"

    def declare(match: re.Match[str]) -> str:
        nonlocal offset
        type, name, size = match.groups()
        own = offset
        offset = f"(({own}) + {size} * (int)sizeof({type}) + 15) / 16 * 16"
        return f'Span<{type}> {name} = shared<{type}>({own}, {size}, "{name}");'

    def declare_all(part: str) -> str:
        nonlocal offset
        offset = "0"
        return _SHARED.sub(declare, part)

    # Each kernel has its own.
    return "static void".join(declare_all(part) for part in text.split("static void"))


def _with_lines(text: str) -> str:
    """The text whose kernels say the number of the line before each statement.  A statement begins on its own line."""
    lines, is_inside = [], False
    for number, line in enumerate(text.split("\n"), 1):
        begins = bool(_KERNEL.search(line))
        if is_inside and re.match(r"\s*[a-zA-Z_]", line):
            line = f"LINE({number}) {line}"
        is_inside = (is_inside or begins) and line != "}"
        lines.append(line)
    return "\n".join(lines)


def _launcher(name: str, parameters: Sequence[Parameter]) -> str:
    arguments = ", ".join(each.argument(number) for number, each in enumerate(parameters))
    return (
        f"static void call_{name}(Argument *a) {{ {name}({arguments}); }}\n"
        f"{_EXPORTED} int launch_{name}(const unsigned *sizes, Argument *a, const Workspace *memory, char *text) "
        f"{{ return run_grid(call_{name}, sizes, a, memory, text); }}\n"
    )


@lru_cache(None)
def _runtime(switches: str) -> str:
    """The shared object with what all kernels call that have these switches of device.h."""
    return str(_compile(f'{switches}#include "{RUNTIME}"\n', ("-O1", "-lm", "-lc")))


@lru_cache(None)
def _headers() -> bytes:
    return HEADER.read_bytes() + RUNTIME.read_bytes()


def _compile(text: str, options: Sequence[str]) -> Path:
    """The shared object of a text, which is kept."""
    command = [*COMMAND, *options]
    key = hashlib.sha256(repr(command).encode() + _headers() + text.encode()).hexdigest()[:32]
    path = CACHE / f"{key}.so"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        own = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        done = subprocess.run([*command, "-o", str(own)], input=text.encode(), capture_output=True)
        if done.returncode:
            raise CompileError(done.stderr.decode()[:4000])
        own.replace(path)
    return path
