"""What pyproject.toml promises, and the tool versions that several files repeat."""

import re
import tomllib
from typing import Any

import pytest

from tests.support.checkout import CHECKOUT

HOOKS = {
    "ruff": "https://github.com/astral-sh/ruff-pre-commit",
    "mypy": "https://github.com/pre-commit/mirrors-mypy",
}


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))


def expand_group(groups: dict[str, list[Any]], name: str) -> list[str]:
    """A PEP 735 group with its `include-group` entries replaced by what they include."""
    expanded: list[str] = []
    for entry in groups[name]:
        expanded += [entry] if isinstance(entry, str) else expand_group(groups, entry["include-group"])
    return expanded


def pinned_version(requirements: list[str], tool: str) -> str | None:
    """The version of `tool==version` among requirements."""
    return next((line.partition("==")[2] for line in requirements if line.startswith(f"{tool}==")), None)


def hook_version(config: str, repository: str) -> str | None:
    """The `rev` of a repository in the text of .pre-commit-config.yaml, without its `v`."""
    found = re.search(rf"repo: {re.escape(repository)}\n\s+rev: v?(\S+)", config)
    return found and found[1]


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
def test_tool_version_is_the_same_in_hooks_and_groups(tool: str, pyproject: dict[str, Any]) -> None:
    hooks = (CHECKOUT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    decided = pinned_version(pyproject["dependency-groups"]["lint"], tool)
    assert decided is not None
    assert hook_version(hooks, HOOKS[tool]) == decided


@pytest.mark.parametrize("name", ["test", "docs"])
def test_extra_and_dependency_group_agree(name: str, pyproject: dict[str, Any]) -> None:
    extra = pyproject["project"]["optional-dependencies"][name]
    assert sorted(extra) == sorted(expand_group(pyproject["dependency-groups"], name))


def test_runtime_dependencies_are_three(pyproject: dict[str, Any]) -> None:
    names = {re.split(r"[<>=!~ ;\[]", line)[0] for line in pyproject["project"]["dependencies"]}
    assert names == {"numpy", "ml_dtypes", "typing-extensions"}


def test_every_backend_package_is_shipped(pyproject: dict[str, Any]) -> None:
    shipped = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    backends = {f"backends/{path.parent.name}" for path in CHECKOUT.glob("backends/*/__init__.py")}
    assert set(shipped) == {"xarr"} | backends


def test_version_readers_see_a_difference() -> None:
    hooks = "repos:\n  - repo: https://github.com/pre-commit/mirrors-mypy\n    rev: v1.0.0\n"
    assert hook_version(hooks, HOOKS["mypy"]) == "1.0.0"
    assert hook_version(hooks, HOOKS["ruff"]) is None
    assert pinned_version(["ruff==0.1", "mypy>=2"], "ruff") == "0.1"
    assert pinned_version(["ruff==0.1", "mypy>=2"], "mypy") is None
