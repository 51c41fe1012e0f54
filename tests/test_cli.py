"""python -m xarr: what it prints, where it writes, and its exit status."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.test_strictness import run
from xarr.__main__ import main


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "(5,1) - (5,)"]) == 0
    out = capsys.readouterr().out
    assert "(5, 5)" in out
    assert "result[i,j] = a[i,0] - b[j]" in out


def test_shapes_that_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "f32[5,3] + f32[5]"]) == 1
    assert "b[:, None]" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "(5,1)", "(5,1) -", "(5) + (5,)", "x + y", "(1,2) @ (2,)"])
def test_malformed(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", text]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("xarr explain: cannot read the expression: wanted")
    assert "examples:" in streams.err


@pytest.mark.parametrize(("style", "start"), [("text", "a - b"), ("html", "<"), ("svg", "<svg")])
def test_formats_and_output(
    style: str, start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / f"explained.{style}"
    assert main(["explain", "(5,1) - (5,)", "--format", style, "--output", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert target.read_text(encoding="utf-8").lstrip().startswith(start)


def test_output_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "missing" / "explained.txt"
    assert main(["explain", "(5,1) - (5,)", "--output", str(target)]) == 2
    assert f"cannot write {target}" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["explain"], ["explain", "(1,)", "--format", "pdf"]])
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: python -m xarr" in capsys.readouterr().err


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for part in ("versions", "optional packages", "backends", "gpu", "settings"):
        assert f"\n{part}\n" in f"\n{out}"
    assert f"numpy              {np.__version__}" in out
    assert "numpy              devices: cpu" in out
    assert "broadcasting = " in out


def test_as_a_module() -> None:
    done = run("import runpy, sys; sys.argv[1:] = ['doctor']; runpy.run_module('xarr', run_name='__main__')")
    assert done.returncode == 0
    assert "backends" in done.stdout


def test_doctor_with_an_unknown_backend() -> None:
    done = run("from xarr.__main__ import main; main(['doctor'])", XARR_BACKEND="warp")
    assert done.returncode == 0
    assert "* warp               unavailable: no backend called 'warp'" in done.stdout
