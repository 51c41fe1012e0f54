"""CuPy on a `HostDevice`: `load` it before anything else imports CuPy."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from tests.cuda import nvrtc
from tests.cuda.host_wheel.capsules import exchange
from tests.cuda.host_wheel.device import HostDevice, keep_text
from tests.cuda.libraries import CUBLAS, THRUST, gemm_strided_batched_ex

#: Without these CuPy cannot work, and the tests say so.
MISSING = "needs CuPy and NVRTC: pip install cupy-cuda13x nvidia-cuda-nvrtc"


def is_installed() -> bool:
    """Whether the wheels of CuPy and of NVRTC are here."""
    return find_spec("cupy") is not None and nvrtc.library() is not None


def _cublas() -> ModuleType:
    """A stand-in for CuPy's module of cuBLAS, which cannot be imported without the library."""
    module = ModuleType("cupy_backends.cuda.libs.cublas")
    modes: dict[int, int] = {}

    def gemm(handle: int, *arguments: int) -> None:
        # Nor TF32, whose number is 3.
        assert modes[handle] == 16, "CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION was expected"
        gemm_strided_batched_ex(handle, *arguments)

    module.__dict__.update(
        create=lambda: 1,
        destroy=lambda handle: None,
        getMathMode=lambda handle: modes.get(handle, 0),
        setMathMode=modes.__setitem__,
        gemmStridedBatchedEx=gemm,
        **CUBLAS,
    )
    return module


@lru_cache(None)
def load() -> tuple[Any, HostDevice]:
    """CuPy, and the device below it, once in a process."""
    assert "cupy" not in sys.modules, "CuPy is imported already: it would call a driver"
    # What CuPy compiles for this device is not for another one.
    os.environ["CUPY_CACHE_DIR"] = tempfile.mkdtemp(prefix="xarr-cupy-")
    os.environ["CUPY_ACCELERATORS"] = ""
    device = HostDevice()
    for name in ("runtime", "driver"):
        exchanged = exchange(import_module(f"cupy_backends.cuda.api.{name}"), device)
        assert exchanged, f"CuPy's module {name} offers no functions of these names"
    libraries: Any = import_module("cupy_backends.cuda.libs")
    libraries.cublas = _cublas()
    compiler = import_module("cupy_backends.cuda.libs.nvrtc")
    texts: dict[int, str] = {}
    create, get_cubin = compiler.createProgram, compiler.getCUBIN

    def create_program(text: str, *rest: Any) -> int:
        handle: int = create(text, *rest)
        texts[handle] = text
        device.compiled.append(text)
        return handle

    def cubin_of(program: int) -> bytes:
        image: bytes = get_cubin(program)
        keep_text(image, texts[program])
        return image

    compiler.createProgram, compiler.getCUBIN = create_program, cubin_of
    cupy = import_module("cupy")
    # Its code for devices is compiled beforehand.
    cupy.cuda.thrust = THRUST
    return cupy, device
