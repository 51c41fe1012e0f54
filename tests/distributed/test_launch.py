"""Starting a program: what is missing is said, and scripts run as threads without MPI."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mpi import environment, needs_mpi, run_script
from xarr.distributed import launch
from xarr.distributed.__main__ import main
from xarr.distributed.launch import check_size, load_mpi
from xarr.errors import CommunicationError, DeadlockError

SCRIPT = """
import sys
from xarr.communication.communicator import current_communicator
c = current_communicator()
sys.stdout.write(f"replica {c.rank} of {c.size} under {c.name}, arguments {sys.argv[1:]}\\n")
"""


def test_a_library_of_another_mpi_than_the_launcher_is_refused() -> None:
    with pytest.raises(CommunicationError) as caught:
        check_size(1, {"PMI_SIZE": "4"}, "Open MPI v5.0.11, package: Debian\nmore")
    text = str(caught.value)
    assert "the launcher has started 4 processes (PMI_SIZE=4), and this MPI sees one" in text
    assert "Open MPI v5.0.11, package: Debian: start with the mpiexec of that one" in text


@pytest.mark.parametrize(
    ("size", "variables"), [(1, {}), (1, {"PMI_SIZE": "1"}), (4, {"PMI_SIZE": "4"}), (1, {"PMI_SIZE": "x"})]
)
def test_other_worlds_are_taken(size: int, variables: dict[str, str]) -> None:
    check_size(size, variables, "MPICH Version: 5")


def test_a_missing_mpi4py_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(
        CommunicationError, match=r"mpi4py, which is not installed: pip install 'xarr\[mpi\]'"
    ):
        load_mpi()


def test_a_missing_mpi_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "mpi4py"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "MPI.py").write_text(
        "raise RuntimeError('cannot load MPI library\\nlibmpi.so')", encoding="utf-8"
    )
    for name in [each for each in sys.modules if each.partition(".")[0] == "mpi4py"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CommunicationError, match=r"finds no MPI \(cannot load MPI library libmpi.so\)"):
        load_mpi()
    for name in [each for each in sys.modules if each.partition(".")[0] == "mpi4py"]:
        monkeypatch.delitem(sys.modules, name)


def test_a_script_runs_as_threads(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "xarr.distributed", "-n", "2", str(script), "a", "-b"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"replica {rank} of 2 under a simulation by threads, arguments ['a', '-b']" for rank in range(2)
    ]


@needs_mpi
def test_a_script_runs_under_mpi(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = run_script(2, script, "a", "-b")
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        assert f"replica {rank} of 2 under MPI, arguments ['a', '-b']" in done.stdout


@needs_mpi
def test_the_traceback_of_a_script_begins_in_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("def f():\n    raise ValueError('boom')\n\nf()\n", encoding="utf-8")
    done = run_script(2, script)
    assert done.returncode == 1
    assert f'Traceback (most recent call last):\n  File "{script}", line 4, in <module>' in done.stderr
    assert "runpy" not in done.stderr


def test_a_script_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["-n", "2", "nowhere.py"])
    assert caught.value.code == 2
    assert "there is no file nowhere.py" in capsys.readouterr().err


def test_what_is_missing_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text("", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert main([str(script)]) == 2
    assert capsys.readouterr().err.startswith("xarr.distributed: MPI is reached through mpi4py")


def test_an_error_of_the_script_is_not_taken_for_one_of_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from xarr.errors import DeadlockError\nraise DeadlockError('all wait')", encoding="utf-8"
    )
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(DeadlockError, match="all wait"):
        main(["-n", "1", str(script)])


def test_initialize_takes_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr.distributed import simulate

    monkeypatch.setattr(launch, "load_mpi", None)
    assert [each.size for each in simulate(2, launch.initialize)] == [2, 2]
