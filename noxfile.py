#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2025.10.14"]
# ///

"""The tasks of CONTRIBUTING.md as nox sessions, for those who prefer them to plain commands."""

import nox

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


if __name__ == "__main__":
    nox.main()
