"""Runs tests as other processors would: NumPy without its newest kernels, OpenBLAS with those of each core.

    python .ci/machines.py                      FILES in each setting that this processor has
    python .ci/machines.py --list               only say which settings there are
    python .ci/machines.py tests/numpy_api/sorting/test_sets.py   what follows goes to pytest, in the stead of FILES

NumPy and OpenBLAS choose their code by the processor.  A last digit, the order of equal elements or the sign of a
zero that comes out differently must change neither what xarr promises nor what its tests compare with.
Exits with 1 if a setting is red.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]

FEATURES, CORE = "NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE"

#: Kernels of OpenBLAS for x86, each with the feature without which the processor cannot run them.
CORES = {"Haswell": "AVX2", "SkylakeX": "AVX512F", "Zen": "AVX2"}

#: The tests of what NumPy or OpenBLAS computes, and of what xarr computes by their kernels.
FILES = (
    "tests/arrays/test_array.py",
    "tests/array_api/test_array_api.py",
    "tests/array_api/test_array_api_interop.py",
    "tests/xarr_numpy/ops/test_scatter_in_order.py",
    "tests/numpy_api/test_complex_extremes.py",
    "tests/xarr_numpy/compiled/test_folds.py",
    "tests/xarr_numpy/compiled/test_functions.py",
    "tests/xarr_numpy/compiled/test_products.py",
    "tests/numpy_api/linear_algebra/test_einsum.py",
    "tests/numpy_api/mathematics/test_elementwise.py",
    "tests/test_fft.py",
    "tests/numpy_api/functional/test_mapping.py",
    "tests/numpy_api/linear_algebra/test_products.py",
    "tests/numpy_api/sorting/test_sorting.py",
    "tests/numpy_api/statistics/test_reductions.py",
    "tests/lax/test_contraction.py",
    "tests/lax/test_elementwise.py",
    "tests/lax/test_factorisations.py",
    "tests/lax/test_fourier.py",
    "tests/lax/test_linalg.py",
    "tests/lax/test_sorting.py",
    "tests/lax/test_special.py",
    "tests/linalg/test_linalg.py",
    "tests/xarr_numpy/ops/test_narrow_floats.py",
    "tests/compiler/fusion/test_nested_reductions.py",
    "tests/numpy_api/test_numpy_functions.py",
    "tests/numpy_api/test_numpy_idioms.py",
    "tests/numpy_api/test_numpy_programs.py",
    "tests/xarr_numpy/sorts/test_parallel_sort.py",
    "tests/random/test_random.py",
    "tests/random/test_distributions.py",
    "tests/numpy_api/manipulation/test_adding_and_removing.py",
    "tests/xarr_reference/test_agreement.py",
    "tests/numpy_api/test_routines.py",
    "tests/numpy_api/sorting/test_sets.py",
    "tests/compiler/fusion/test_shared_products.py",
    "tests/ir/stablehlo/test_lapack.py",
    "tests/numpy_api/ufuncs/test_methods.py",
    "tests/calls/test_ufuncs.py",
    "tests/ir/test_windows.py",
    "tests/compiler/passes/test_complex_powers.py",
)

#: Prints the features that NumPy uses and the kernels that OpenBLAS took.
_PROBE = """
import ctypes
from numpy._core import _multiarray_umath as numpy
used = [name for name in numpy.__cpu_dispatch__ if numpy.__cpu_features__[name]]
library, core = ctypes.CDLL(numpy.__file__), "no OpenBLAS"
for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename"):
    if function := getattr(library, name, None):
        function.restype = ctypes.c_char_p
        core = function().decode()
        break
print(*used, core)
"""


def features_off(dispatched: Sequence[str]) -> list[str]:
    """Values of NPY_DISABLE_CPU_FEATURES: nothing, all of AVX-512, and all that NumPy can do without."""
    wide = " ".join(name for name in dispatched if name.startswith(("AVX512", "X86_V4")))
    return list(dict.fromkeys(("", wide, " ".join(dispatched))))


def settings(dispatched: Sequence[str], has: Mapping[str, bool]) -> list[dict[str, str]]:
    """The variables of each setting, by what NumPy dispatches on and what the processor has."""
    cores = ["", *(core for core, needed in CORES.items() if has.get(needed))]
    pairs = [{FEATURES: off, CORE: core} for off in features_off(dispatched) for core in cores]
    return [{name: value for name, value in pair.items() if value} for pair in pairs]


def in_setting(setting: Mapping[str, str]) -> dict[str, str]:
    """This process's environment, with the variables of a setting and no others of their names."""
    kept = {name: value for name, value in os.environ.items() if name not in (FEATURES, CORE)}
    return kept | dict(setting)


def probe(setting: Mapping[str, str]) -> str:
    """The kernels that NumPy and OpenBLAS really take: cores that OpenBLAS was built without fall back to others."""
    command = [sys.executable, "-c", _PROBE]
    done = subprocess.run(command, env=in_setting(setting), check=True, capture_output=True, text=True)
    return done.stdout.strip()


def run(setting: Mapping[str, str], arguments: Sequence[str]) -> tuple[bool, str]:
    """Whether pytest passed in a setting, and its last line."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    last = ""
    with subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env=in_setting(setting),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as pytest:
        assert pytest.stdout is not None
        for line in pytest.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return pytest.returncode == 0, last


def main(arguments: Sequence[str]) -> int:
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    results: dict[str, tuple[bool, str]] = {}
    table = []
    for setting in settings(__cpu_dispatch__, __cpu_features__):
        name = " ".join(f"{name}={value!r}" for name, value in setting.items()) or "nothing set"
        kernels = probe(setting)
        if arguments == ["--list"]:
            outcome = (True, kernels)
        elif kernels in results:
            outcome = (results[kernels][0], f"as above: {results[kernels][1]}")
        else:
            print(f"\n=== {name}: {kernels}", flush=True)
            outcome = results[kernels] = run(setting, arguments or ["-n", "2", *FILES])
        table.append((name, *outcome))
    print(
        "\n"
        + "\n".join(f"{'ok ' if passed else 'RED'}  {name}\n       {line}" for name, passed, line in table)
    )
    return 0 if all(passed for _, passed, _ in table) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
