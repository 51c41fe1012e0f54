"""Cubed computes with xarr where CUBED_BACKEND_ARRAY_API_MODULE says so."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.usefixtures("on_numpy"),
    pytest.mark.implicit,
    pytest.mark.skipif(importlib.util.find_spec("cubed") is None, reason="Cubed is not installed"),
]

PROGRAM = Path(__file__).with_name("cubed_program.py")


def run(module: str, folder: Path) -> list[list[str]]:
    """The lines of the program with another library for the arrays of its chunks."""
    environment = {**os.environ, "CUBED_BACKEND_ARRAY_API_MODULE": module, "XARR_BROADCASTING": ""}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_chunks_are_arrays_from_end_to_end(tmp_path: Path) -> None:
    lines = run("xarr", tmp_path)
    assert len(lines) == 15
    assert [line for line in lines if line[1:] != ["xarr.Array", "True"]] == []


def test_another_library_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="shift"):  # in which blocks must be Arrays
        run("numpy", tmp_path)
