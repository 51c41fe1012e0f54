"""Each module of the product has a test that is found by its name, or by a row of `tests/meta/modules.tsv`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
TABLE = CHECKOUT / "tests" / "meta" / "modules.tsv"

#: From a module to the file of its tests and what that file names of it.
Rows = Mapping[str, tuple[str, str]]


def rows_of(text: str) -> dict[str, tuple[str, str]]:
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    rows = {module: (test, fact) for module, test, fact in lines}
    assert len(rows) == len(lines), "a module has two rows"
    return rows


def named_tests(module: Path) -> list[Path]:
    """Where the test of `xarr/lax/movement.py` may lie: `tests/lax/test_movement.py`, or in a folder above.

    Backends have folders of their own names: the tests of `backends/xarr_numpy/processor.py` lie in `tests/xarr_numpy`.
    """
    folder = Path("tests", *module.parts[1:-1])
    name = f"test_{module.stem.lstrip('_')}.py"
    return [each / name for each in (folder, *folder.parents) if each.parts[:1] == ("tests",)]


def find_tests_by_name(root: Path, modules: Iterable[Path]) -> dict[Path, Path]:
    """The test file of each module that has one of its name.

    A file that mirrors one module more nearly is not another's: `tests/test_backend.py` is that of `xarr/backend.py`.
    """
    claims: dict[Path, list[tuple[int, Path]]] = {}
    for module in modules:
        existing = (each for each in enumerate(named_tests(module)) if (root / each[1]).exists())
        for distance, test in islice(existing, 1):
            claims.setdefault(test, []).append((distance, module))
    return {
        module: test
        for test, rivals in claims.items()
        for distance, module in rivals
        if distance == min(rivals)[0]
    }


def problems(root: Path, modules: list[Path], rows: Rows) -> list[str]:
    """Modules without a test, rows without a module or a need, and tests that do not name what they test."""
    lines = []
    named = find_tests_by_name(root, modules)
    for module in modules:
        by_name = module in named
        if by_name == (module.as_posix() in rows):
            lines.append(
                f"{module} has a test of its name and a row too: delete the row"
                if by_name
                else f"{module}: wanted {named_tests(module)[0]}, or a row in tests/meta/modules.tsv"
            )
    for module, (test, fact) in rows.items():
        paths = root / module, root / test
        missing = [path for path in paths if not path.is_file()]
        if missing:
            lines.append(f"{module}: no file {missing[0].relative_to(root)}")
            continue
        dotted = ".".join(Path(module).with_suffix("").parts).removeprefix("backends.")
        source, text = (path.read_text(encoding="utf-8") for path in paths)
        if fact == dotted:
            package, _, leaf = dotted.rpartition(".")
            imports = rf"\bimport {dotted}\b|\bfrom {dotted} import|\bfrom {package} import [^\n]*\b{leaf}\b"
            grouped = rf"\bfrom {package} import \([^)]*\b{leaf}\b"
            if not re.search(rf"{imports}|{grouped}", text):
                lines.append(f"{module}: {test} does not import it")
        elif not all(re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", each) for each in (source, text)):
            lines.append(f"{module}: {fact!r} does not stand in both it and {test}")
    return lines


def modules_of(root: Path) -> list[Path]:
    paths = [path for folder in ("xarr", "backends") for path in (root / folder).rglob("*.py")]
    return sorted(path.relative_to(root) for path in paths if path.name != "__init__.py")


def test_every_module_has_a_test_that_can_be_found() -> None:
    modules = modules_of(CHECKOUT)
    assert len(modules) > 300
    assert problems(CHECKOUT, modules, rows_of(TABLE.read_text(encoding="utf-8"))) == []


def make_tree(root: Path) -> list[Path]:
    files = {
        "xarr/lax/movement.py": "def reverse(): ...\n",
        "xarr/lax/sorting.py": "def sort(): ...\n",
        "backends/xarr_numpy/memory.py": "def take(): ...\n",
        "tests/lax/test_movement.py": "from xarr.lax import movement\n",
        "tests/test_all.py": "from xarr_numpy.memory import take\nfrom xarr.lax import (\n    sorting,\n)\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return modules_of(root)


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    modules = make_tree(tmp_path)
    right = {
        "xarr/lax/sorting.py": ("tests/test_all.py", "xarr.lax.sorting"),
        "backends/xarr_numpy/memory.py": ("tests/test_all.py", "xarr_numpy.memory"),
    }
    assert problems(tmp_path, modules, right) == []
    assert problems(
        tmp_path, modules, {**right, "xarr/lax/sorting.py": ("tests/test_all.py", "sorting")}
    ) == ["xarr/lax/sorting.py: 'sorting' does not stand in both it and tests/test_all.py"]
    for row, problem in [
        (("tests/lax/test_movement.py", "xarr.lax.sorting"), "does not import it"),
        (("tests/gone.py", "sort"), "no file tests/gone.py"),
    ]:
        (line,) = problems(tmp_path, modules, {**right, "xarr/lax/sorting.py": row})
        assert problem in line
    (line,) = problems(tmp_path, modules, {"xarr/lax/sorting.py": right["xarr/lax/sorting.py"]})
    assert line.startswith("backends/xarr_numpy/memory.py: wanted tests/xarr_numpy/test_memory.py")
    (line,) = problems(tmp_path, modules, {**right, "xarr/lax/movement.py": ("tests/test_all.py", "take")})[
        :1
    ]
    assert "delete the row" in line
    nearer = tmp_path / "xarr" / "movement.py"
    nearer.write_text("def reverse(): ...\n")
    (tmp_path / "tests" / "test_movement.py").write_text("import xarr.movement\n")
    (tmp_path / "tests" / "lax" / "test_movement.py").unlink()
    (line,) = problems(tmp_path, modules_of(tmp_path), right)
    assert line.startswith("xarr/lax/movement.py: wanted tests/lax/test_movement.py"), "it is another's"
    (line,) = problems(tmp_path, modules, {**right, "xarr/gone.py": ("tests/test_all.py", "take")})
    assert "no file xarr/gone.py" in line
