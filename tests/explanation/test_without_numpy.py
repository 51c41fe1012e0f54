"""Shapes are explained where neither NumPy nor ml_dtypes nor llvmlite can be imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

_ABSENT = "import sys\nfor name in ('numpy', 'ml_dtypes', 'llvmlite'): sys.modules[name] = None\n"
_EXPLAIN = """
from xarr.explanation.expression_steps import explain_text
for text in ('f32[5,1] - f32[5]', '(3,4) + (3,)', '(4,) * (3,1) + (2,)', '(2,3) @ (3,4)', 'where((3,), (2,1), ())'):
    explanation = explain_text(text)
    assert len(explanation.html()) > 300 and explanation.to_dict()
    print(explanation.text())
"""


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_the_text_is_the_same_without_numpy() -> None:
    alone, beside = _run(_ABSENT + _EXPLAIN), _run(_EXPLAIN)
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout == beside.stdout
    assert "does not broadcast" in alone.stdout and "f32[5,5]" in alone.stdout


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (
            "from xarr.explanation.broadcast import broadcast_error; raise broadcast_error('add', [(3,), (4,)])",
            "wanted equal sizes, or 1",
        ),
        (
            "from xarr.explanation.sheets.contraction import product_error\n"
            "raise product_error('matmul', [(2, 3), (2, 3)], None, [None, None])",
            "what would work:",
        ),
    ],
)
def test_errors_of_shapes_are_made_without_numpy(code: str, wanted: str) -> None:
    error = _run(_ABSENT + code).stderr
    assert "Error: a" in error and wanted in error and "numpy" not in error


def test_values_need_numpy() -> None:
    """So the processes above have none: this one fails for that reason."""
    values = "from xarr.explanation.broadcast import explain_shapes; explain_shapes((1,), values=[[1]])"
    assert "ModuleNotFoundError: import of numpy halted" in _run(_ABSENT + values).stderr
    assert _run(values).returncode == 0
