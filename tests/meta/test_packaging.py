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
    match = re.search(rf"repo: {re.escape(repository)}\n\s+rev: v?(\S+)", config)
    return match and match[1]


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


def requirement(lines: list[str], name: str) -> str | None:
    """The line of a requirement among those of dependencies."""
    return next((line for line in lines if re.split(r"[<>=!~ ;\[]", line)[0] == name), None)


@pytest.mark.parametrize("name", ["numpy", "ml_dtypes", "typing-extensions"])
def test_hooks_check_types_against_the_lowest_versions(name: str, pyproject: dict[str, Any]) -> None:
    hooks = (CHECKOUT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"additional_dependencies: \[(.+)\]", hooks)
    wanted = requirement(pyproject["project"]["dependencies"], name)
    assert wanted is not None and requirement(listed.split(", "), name) == wanted


def test_compiled_loops_are_tested_with_the_llvm_that_users_get(pyproject: dict[str, Any]) -> None:
    extras = pyproject["project"]["optional-dependencies"]
    assert requirement(extras["test"], "llvmlite") == requirement(extras["jit"], "llvmlite")


def test_urls_are_those_of_pages(pyproject: dict[str, Any]) -> None:
    """PyPI takes labels of 32 characters at most."""
    for label, address in pyproject["project"]["urls"].items():
        assert len(label) <= 32 and address.startswith("https://") and "example" not in address


def test_readme_names_the_lowest_versions(pyproject: dict[str, Any]) -> None:
    last = (CHECKOUT / "README.md").read_text(encoding="utf-8").rstrip().splitlines()[-1]
    (python,) = re.findall(r">=(.+)", pyproject["project"]["requires-python"])
    assert f"Python {python} or later" in last
    for name, shown in (("numpy", "NumPy"), ("ml_dtypes", "ml_dtypes")):
        line = requirement(pyproject["project"]["dependencies"], name)
        assert line is not None and f"{shown} {line.partition('>=')[2]} or later" in last


def test_ci_runs_every_python_of_the_classifiers(pyproject: dict[str, Any]) -> None:
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(pyproject["project"]["classifiers"]))
    workflow = (CHECKOUT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"python: \[(.+)\]", workflow)
    assert re.findall(r'"(.+?)"', matrix) == classified


@pytest.mark.parametrize("name", ["ci.yml", "publish.yml"])
def test_workflows_pin_actions_and_begin_without_permissions(name: str) -> None:
    text = (CHECKOUT / ".github/workflows" / name).read_text(encoding="utf-8")
    assert unpinned_actions(text) == []
    assert "\npermissions: {}\n" in text
    assert "write" not in text.replace("id-token: write", "")


def unpinned_actions(workflow: str) -> list[str]:
    """Actions that are not named by a commit, with their version behind it."""
    used = re.findall(r"uses: (.+)", workflow)
    return [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", action)]


def test_an_action_without_a_commit_shows() -> None:
    assert unpinned_actions("- uses: actions/checkout@v4\n") == ["actions/checkout@v4"]
    assert unpinned_actions(f"- uses: actions/checkout@{'0' * 40}\n") != []


def test_citation_has_the_version_and_the_licence(pyproject: dict[str, Any]) -> None:
    citation = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    source = (CHECKOUT / "xarr/__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    assert f"\nversion: {version}\n" in citation
    assert f"\nlicense: {pyproject['project']['license']}\n" in citation


def test_changelog_keeps_its_form() -> None:
    text = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", each) for each in versions[1:])
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_version_readers_see_a_difference() -> None:
    hooks = "repos:\n  - repo: https://github.com/pre-commit/mirrors-mypy\n    rev: v1.0.0\n"
    assert hook_version(hooks, HOOKS["mypy"]) == "1.0.0"
    assert hook_version(hooks, HOOKS["ruff"]) is None
    assert pinned_version(["ruff==0.1", "mypy>=2"], "ruff") == "0.1"
    assert pinned_version(["ruff==0.1", "mypy>=2"], "mypy") is None
