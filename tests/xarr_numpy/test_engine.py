"""Which engine runs groups of operations, and what it says of itself, with and without a compiler."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import xarr
from tests.support.graphs import graph, node, tensor
from xarr.backend import get
from xarr.compiler.pipeline import lower
from xarr.errors import BackendError
from xarr.ir import ops
from xarr_numpy import engine


def test_auto_leaves_small_arrays_alone() -> None:
    pytest.importorskip("llvmlite")
    small, large = (
        graph(lambda x: node(ops.Exponential(), node(ops.Add(), x, x)), tensor("f4", n)) for n in (100, 10**7)
    )
    with xarr.config(fusion="auto"):
        for hot, expected in ((False, [False, True]), (True, [True, True])):
            fused = [lower(each, get("numpy"), "fused", hot) for each in (small, large)]
            assert [any(isinstance(n.op, ops.Fusion) for n in each.nodes) for each in fused] == expected


def test_without_the_compiler_nothing_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "available", lambda: False)
    large = graph(lambda x: node(ops.Exponential(), node(ops.Add(), x, x)), tensor("f4", 10**7))
    with xarr.config(fusion="auto"):
        assert engine.active_engine() == "off"
        fused = lower(large, get("numpy"), "fused", True)
        assert not any(isinstance(n.op, ops.Fusion) for n in fused.nodes)


def test_the_compiler_is_not_replaced_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "available", lambda: False)
    with xarr.config(fusion="compiled"):
        with pytest.raises(BackendError, match=r"needs llvmlite.*pip install 'xarr\[jit\]'"):
            engine.active_engine()
        assert "pip install 'xarr[jit]'" in engine.description()


BLOCKED = """\
import sys
sys.modules["llvmlite"] = None
import numpy as np
import xarr
from xarr.__main__ import main

x = xarr.asarray(np.linspace(-3, 3, 10**6))
lowered = xarr.lower(lambda x: xarr.exp(x) * x + 1, x)
print(lowered.stage("program"))
y = xarr.exp(x) * x + 1
wanted = np.exp(np.asarray(x)) * np.asarray(x) + 1
assert np.array_equal(np.asarray(y), wanted)
assert "xarr_numpy.compiled.kernel" not in sys.modules
main(["doctor"])
"""


def run_outside(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(each for each in sys.path if each)
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_without_the_compiler_numpy_runs_each_operation() -> None:
    done = run_outside(BLOCKED, XARR_FUSION="", XARR_BROADCASTING="numpy")
    assert done.returncode == 0, done.stderr
    assert "np.exp(" in done.stdout
    assert "as llvmlite is not installed; for compiled loops pip install 'xarr[jit]'" in done.stdout


def test_without_the_compiler_it_cannot_be_asked_for() -> None:
    code = BLOCKED.replace("x = xarr", "xarr.config.fusion = 'compiled'\nx = xarr", 1)
    done = run_outside(code, XARR_FUSION="", XARR_BROADCASTING="numpy")
    assert done.returncode != 0
    assert "BackendError: config.fusion is 'compiled', which needs llvmlite" in done.stderr
    assert "pip install 'xarr[jit]'" in done.stderr


@pytest.mark.parametrize("fusion", ["compiled", "off", "auto"])
def test_doctor_names_the_engine(fusion: str) -> None:
    if fusion == "compiled":
        pytest.importorskip("llvmlite")
    done = run_outside("from xarr.__main__ import main; main(['doctor'])", XARR_FUSION=fusion)
    wanted = {
        "compiled": ", as config.fusion = 'compiled' says",
        "off": "none, as config.fusion = 'off' says: one NumPy call for each operation",
        "auto": "compiled loops (llvmlite " if engine.available() else "as llvmlite is not installed",
    }
    assert wanted[fusion] in done.stdout
