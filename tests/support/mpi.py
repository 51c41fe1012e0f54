"""Programs under MPI, in processes that end within a time, where there is an MPI; tests are skipped elsewhere."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

#: Open MPI wants to be told that it may run as root, and more processes than cores; MPICH that little shared memory
#: is enough.
ENVIRONMENT: Final = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "true",
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "OMP_NUM_THREADS": "1",
}
_CHECKOUT: Final = Path(__file__).resolve().parents[2]


def mpiexec() -> str | None:
    """The launcher beside this Python, or else on the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def _missing() -> str:
    if importlib.util.find_spec("mpi4py") is None:
        return "needs mpi4py: pip install 'xarr[mpi]'"
    return "" if mpiexec() else "needs an MPI: pip install mpich"


needs_mpi: Final = pytest.mark.skipif(bool(_missing()), reason=_missing() or "there is one")


def environment() -> dict[str, str]:
    """The variables of a process that imports xarr and the tests from where this one does."""
    paths = [str(_CHECKOUT), *(path for path in sys.path if path and "site-packages" not in path)]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    return {**own, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def run_module(n: int, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """`mpiexec -n N python -m …`, whose output is in the failure of a test that looks at it."""
    launcher = mpiexec()
    assert launcher is not None
    command = [launcher, "-n", str(n), sys.executable, "-m", *arguments]
    return subprocess.run(
        command, env=environment(), timeout=timeout, capture_output=True, text=True, errors="replace"
    )


def run_script(
    n: int, script: Path, *arguments: str, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """A script as n processes under MPI."""
    return run_module(n, "xarr.distributed", str(script), *arguments, timeout=timeout)
