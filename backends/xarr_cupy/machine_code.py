"""Machine code of kernels: made by NVRTC, and kept in the files of the kernel cache.

`xarr.compiler.object_cache` says whose files are read, and which are as good as none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from xarr.compiler import object_cache
from xarr.errors import BackendError

#: Every number is rounded as it is written, and subnormal numbers are kept, as on the CPU.
OPTIONS: Final = ("--std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true")


def load_text(text: str, architecture: str, nvrtc: Any, load: Callable[[bytes], Any]) -> Any:
    """The result of `load` for the machine code of a CUDA C++ text, which is read from the kernel cache or compiled.

    architecture: `sm_90`; nvrtc: CuPy's module; load: raises BackendError for code that the device does not take.

    Such code of the cache is made anew and replaced.  BackendError where NVRTC refuses the text too.
    """
    cache = object_cache.present()
    if cache is None:
        return load(compile_text(text, architecture, nvrtc))
    version = "NVRTC {}.{}".format(*nvrtc.getVersion())
    key = object_cache.key_of(text, *OPTIONS, architecture, version)
    code = cache.get(key)
    if code is not None:
        with suppress(BackendError):  # whole, but none for this device
            return load(code)
    code = compile_text(text, architecture, nvrtc)
    cache.put(key, code)
    return load(code)


def compile_text(text: str, architecture: str, nvrtc: Any) -> bytes:
    """The machine code of a CUDA C++ text, by NVRTC.  BackendError with its log where it refuses the text."""
    program = nvrtc.createProgram(text, "xarr.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"-arch={architecture}"))
        code: bytes = nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise BackendError(f"backend 'cupy': NVRTC refuses a kernel of xarr ({error}):\n{log}") from error
    finally:
        nvrtc.destroyProgram(program)
    return code
