"""Row (o): the first call of the chain in a new process, with an empty cache on disk and with what that has left."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Final

_CHAIN: Final = "sqrt({m}.maximum(x * 2 + 1, 0) * x + 1)"
_TIME: Final = """
import time
started = time.perf_counter()
{call}
print(time.perf_counter() - started)
"""
#: Who -> what is prepared, and the call.  Each library keeps compiled code in a directory, by a variable.
PROGRAMS: Final = {
    "xarr": (
        "import xarr; xarr.set_backend({backend!r}); x = xarr.ones(10**5, dtype='float32').evaluate()\n"
        "f = xarr.jit(lambda x: xarr." + _CHAIN.format(m="xarr") + ")",
        "f(x).evaluate() if {backend!r} == 'numpy' else numpy.asarray(f(x)[:1])",
    ),
    "cupy": (
        "import cupy; x = cupy.ones(10**5, 'float32')\nf = cupy.fuse(kernel_name='fused')(lambda x: cupy."
        + _CHAIN.format(m="cupy")
        + ")",
        "f(x)[:1].get()",
    ),
    "jax": (
        "import jax, jax.numpy as jnp; x = jax.block_until_ready(jnp.ones(10**5, 'float32'))\n"
        "f = jax.jit(lambda x: jnp." + _CHAIN.format(m="jnp") + ")",
        "jax.block_until_ready(f(x))",
    ),
}


def first_calls(
    names: list[str], seconds: float = float("inf"), backend: str = "cupy"
) -> dict[str, tuple[float, float] | str]:
    """Who -> seconds of the first call, cold and warm, or why there are none: what a process says that fails.

    seconds: for all of them.
    """
    deadline = time.monotonic() + seconds
    times: dict[str, tuple[float, float] | str] = {}
    for name in names:
        try:
            times[name] = _cold_and_warm(name, backend, deadline)
        except RuntimeError as error:
            times[name] = str(error)
        except subprocess.TimeoutExpired as error:
            times[name] = f"more than {error.timeout:.0f} s"
    return times


def _cold_and_warm(name: str, backend: str, deadline: float) -> tuple[float, float]:
    before, call = (text.format(backend=backend) for text in PROGRAMS[name])
    text = f"import numpy\n{before}\n{_TIME.format(call=call)}"
    with tempfile.TemporaryDirectory(prefix="xarr-first-call-") as folder:
        cache = {
            **{"XARR_CACHE_DIR": folder, "CUPY_CACHE_DIR": folder, "JAX_COMPILATION_CACHE_DIR": folder},
            **{
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            },
            **{
                "XARR_KERNEL_CACHE": "on",
                "CUDA_CACHE_PATH": folder,
                "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            },
        }
        environment = {**os.environ, **cache, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        times = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", text],
                env=environment,
                capture_output=True,
                text=True,
                timeout=max(0.1, min(300.0, deadline - time.monotonic())),
                check=False,
            )
            if done.returncode:
                raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
            times.append(float(done.stdout.split()[-1]))
    return times[0], times[1]
