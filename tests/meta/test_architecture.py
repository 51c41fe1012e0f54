"""The rules of the house: who imports whom, what `import xarr` costs, how large things may grow.

The second half shows on made-up trees that each check is able to fail.
"""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import pytest

from tests.support import architecture, budgets
from tests.support.architecture import Tree
from tests.support.checkout import CHECKOUT, stale_backends, unexpected_variables

LIBRARY = sorted([*CHECKOUT.glob("xarr/**/*.py"), *CHECKOUT.glob("backends/**/*.py")])
EVERYTHING = sorted(
    [
        *LIBRARY,
        *(path for top in ("tests", "examples", "benchmarks") for path in CHECKOUT.glob(f"{top}/**/*.py")),
    ]
)
FORBIDDEN_AT_IMPORT = (
    *("cupy", "jax", "llvmlite", "mpi4py", "matplotlib", "sklearn", "xarr_numpy", "xarr_reference"),
    # What is always there but takes long, and few programs need.
    *("numpy.random", "xarr.explanation.broadcast", "xarr.explainers.program", "xarr.ir.stablehlo.parser"),
    *("xarr.random", "xarr.transforms.jit"),
)

TreeCheck = Callable[[Tree], list[str]]
FileCheck = Callable[[Iterable[Path]], list[str]]

TREE_CHECKS: tuple[TreeCheck, ...] = (
    architecture.import_cycles,
    architecture.package_cycles,
    architecture.upward_imports,
    architecture.upward_type_imports,
    architecture.readers_of_broadcasting,
    architecture.frontend_imports_of_backends,
    architecture.backend_imports_of_closed_modules,
    architecture.backend_imports_of_backends,
    architecture.compiler_names_of_machines,
    architecture.needless_function_level_imports,
)


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree.of_checkout(CHECKOUT)


def modules_loaded_by_import(name: str, forbidden: Iterable[str], path: Iterable[str]) -> list[str]:
    """Which of the forbidden packages a fresh interpreter has loaded after `import name`."""
    code = f"import sys, {name}; print(*(set(sys.modules) & {set(forbidden)!r}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout.split()


@pytest.mark.parametrize("check", TREE_CHECKS, ids=lambda check: check.__name__)
def test_imports(check: TreeCheck, tree: Tree) -> None:
    assert "xarr.errors" in tree.modules
    assert "xarr_numpy" in tree.backends
    problems = check(tree)
    assert not problems, "\n".join(problems)


def test_import_of_xarr_loads_nothing_optional() -> None:
    assert modules_loaded_by_import("xarr", FORBIDDEN_AT_IMPORT, sys.path) == []


def test_no_module_is_hidden_by_an_object(tree: Tree) -> None:
    for name in tree.modules:
        if name.partition(".")[0] == "xarr" and not name.endswith("__main__"):
            importlib.import_module(name)
    assert architecture.shadowed_modules(dict(sys.modules)) == []


@pytest.mark.parametrize(
    ("check", "paths"),
    [
        (budgets.long_files, EVERYTHING),
        (budgets.full_folders, LIBRARY),
        (budgets.repeated_classes, LIBRARY),
        (budgets.long_functions, EVERYTHING),
        (budgets.too_many_longish_functions, LIBRARY),
        (budgets.too_many_suppressions, LIBRARY),
        (budgets.too_few_annotations, LIBRARY),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_budget(check: FileCheck, paths: list[Path]) -> None:
    problems = check(paths)
    assert not problems, "\n".join(problems)


# The checks can fail.


def made_up_tree(root: Path, **sources: str) -> Tree:
    """A checkout from `package__module="source"`; a package whose name begins with `xarr_` is a backend."""
    for name, source in {"xarr": "", "xarr_toy": "", **sources}.items():
        package, _, module = name.partition("__")
        directory = root / "backends" / package if package.startswith("xarr_") else root / package
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{module or '__init__'}.py").write_text(source, encoding="utf-8")
    return Tree.of_checkout(root)


def test_sound_tree_has_no_problems(tmp_path: Path) -> None:
    tree = made_up_tree(
        tmp_path,
        xarr="from .arrays.array import Array",
        xarr__shapes="from xarr.errors import ShapeError",
        xarr__errors="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from xarr.shapes import Shape",
        xarr_toy="import xarr.shapes\nfrom xarr.errors import ShapeError",
        xarr_toy__gpu="def device():\n    import cupy\n    return cupy.cuda.Device()",
        **{"xarr/arrays__array": "from xarr import errors\nfrom .. import shapes"},
    )
    assert set(tree.modules) == {
        *("xarr", "xarr.arrays.array", "xarr.errors", "xarr.shapes", "xarr_toy", "xarr_toy.gpu"),
    }
    assert [problem for check in TREE_CHECKS for problem in check(tree)] == []


@pytest.mark.parametrize(
    "back",
    [
        "from xarr.shapes import Shape",
        "from . import shapes",
        "def late():\n    from .shapes import Shape",
        "import importlib\nlate = importlib.import_module('xarr.shapes')",
    ],
)
def test_cycle_is_found(back: str, tmp_path: Path) -> None:
    tree = made_up_tree(tmp_path, xarr__shapes="import xarr.dtypes", xarr__dtypes=back)
    assert architecture.import_cycles(tree) in (
        ["import cycle: xarr.dtypes -> xarr.shapes -> xarr.dtypes"],
        ["import cycle: xarr.shapes -> xarr.dtypes -> xarr.shapes"],
    )


def test_cycle_through_package_is_found(tmp_path: Path) -> None:
    tree = made_up_tree(tmp_path, xarr="from xarr.array import Array", xarr__array="import xarr")
    assert architecture.import_cycles(tree)


@pytest.mark.parametrize(
    "line", ["from xarr.array import Array", "from .array import Array", "import xarr.array"]
)
def test_upward_import_is_found(line: str, tmp_path: Path) -> None:
    tree = made_up_tree(tmp_path, xarr__array="", xarr__shapes=line)
    layers = [("shapes",), ("lazy",), ("array",)]
    assert architecture.upward_imports(tree, [*layers, ("__init__",)]) == [
        "xarr.shapes:1 imports xarr.array, which lies 2 layer(s) higher"
    ]
    assert architecture.upward_imports(tree)


def test_hidden_module_is_found() -> None:
    package, module = ModuleType("xarr"), ModuleType("xarr.config")
    package.config = module  # type: ignore[attr-defined]
    modules = {"xarr": package, "xarr.config": module, "other.config": module}
    assert architecture.shadowed_modules(modules) == []
    package.config = object()  # type: ignore[attr-defined]
    (problem,) = architecture.shadowed_modules(modules)
    assert problem.startswith("xarr.config is hidden by an object")


def test_full_folder_is_found() -> None:
    few = [Path(f"xarr/calls/m{i}.py") for i in range(16)]
    assert budgets.full_folders([*few, Path("xarr/calls/__init__.py")]) == []
    assert budgets.full_folders([*few, Path("xarr/calls/more.py")]) == ["xarr/calls has 17 modules, over 16"]
    assert budgets.full_folders(Path(f"/x/xarr/lax/m{i}.py") for i in range(30)) == []


def test_two_classes_of_one_name_are_found(tmp_path: Path) -> None:
    for name, source in (
        ("a.py", "class Plan: ...\nclass Array: ..."),
        ("b.py", "def f():\n    class Plan: ..."),
    ):
        (tmp_path / name).write_text(source, encoding="utf-8")
    assert budgets.repeated_classes([tmp_path / "a.py"]) == []
    (problem,) = budgets.repeated_classes(sorted(tmp_path.iterdir()))
    assert problem.startswith("Plan is a class in ")


def test_cycle_of_packages_is_found(tmp_path: Path) -> None:
    tree = made_up_tree(
        tmp_path,
        xarr="from xarr.lax import core",
        **{
            "xarr/calls__low": "",
            "xarr/calls__high": "import xarr.lax.core",
            "xarr/lax__core": "import xarr.calls.low",
        },
    )
    assert architecture.import_cycles(tree) == []
    assert architecture.package_cycles(tree) in (
        ["cycle of packages: calls -> lax -> calls"],
        ["cycle of packages: lax -> calls -> lax"],
    )


@pytest.mark.parametrize(
    ("importer", "name", "problems"),
    [("shapes", "lax", 1), ("shapes", "arrays.array", 1), ("base/typing", "arrays.array", 0)],
)
def test_upward_import_of_a_type_is_found(importer: str, name: str, problems: int, tmp_path: Path) -> None:
    line = f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from xarr.{name} import Array"
    folder, _, module = f"xarr/{importer}".rpartition("/")
    source = {f"{folder}__{module}": line}
    tree = made_up_tree(tmp_path, **{"xarr__lax": "", "xarr/arrays__array": "", **source})
    assert architecture.upward_imports(tree) == []
    assert len(architecture.upward_type_imports(tree)) == problems


@pytest.mark.parametrize(
    ("module", "problems"), [("xarr/lax__movement", 1), ("xarr/lax__elementwise", 0), ("xarr_toy__table", 1)]
)
def test_module_that_reads_broadcasting_is_found(module: str, problems: int, tmp_path: Path) -> None:
    line = "from xarr.base.configuration import current as config\nmode = config.broadcasting"
    tree = made_up_tree(tmp_path, **{module: line})
    assert len(architecture.readers_of_broadcasting(tree)) == problems


def test_module_without_layer_is_found(tmp_path: Path) -> None:
    (problem,) = architecture.upward_imports(made_up_tree(tmp_path, xarr__attic=""))
    assert problem.startswith("xarr.attic is in no layer: add it to a row of LAYERS")


def test_longer_pattern_decides_the_layer() -> None:
    layers = [("explanation.*",), ("explanation.program",), ("__init__",)]
    names = ["xarr.explanation.text", "xarr.explanation.program", "xarr", "xarr.attic"]
    assert [architecture.layer_of(name, layers) for name in names] == [0, 1, 2, None]


@pytest.mark.parametrize("line", ["import xarr_toy", "def run():\n    from xarr_toy import table"])
def test_frontend_import_of_backend_is_found(line: str, tmp_path: Path) -> None:
    tree = made_up_tree(tmp_path, xarr__backend=line)
    (problem,) = architecture.frontend_imports_of_backends(tree)
    assert problem.endswith("imports xarr_toy, a backend")


@pytest.mark.parametrize("line", ["import xarr", "from xarr import lax", "from xarr.array import Array"])
def test_backend_import_of_closed_module_is_found(line: str, tmp_path: Path) -> None:
    tree = made_up_tree(tmp_path, xarr__array="", xarr__lax="", xarr_toy=line)
    assert len(architecture.backend_imports_of_closed_modules(tree)) == 1


@pytest.mark.parametrize("line", ["import xarr_toy", "from xarr_toy.table import TABLE"])
def test_backend_import_of_another_backend_is_found(line: str, tmp_path: Path) -> None:
    tree = made_up_tree(tmp_path, xarr="", xarr_toy="", xarr_toy__table="", xarr_other=line)
    assert len(architecture.backend_imports_of_backends(tree)) == 1
    assert architecture.backend_imports_of_closed_modules(tree) == []


@pytest.mark.parametrize(
    ("line", "problems"),
    [
        ("lane = 1", 1),
        ("def copy(cache_bytes): ...", 1),
        ("import llvmlite\nllvm_text = 1", 1),
        ("from functools import cache, lru_cache", 0),
        ("planes = 'lanes'  # in a cache", 0),
    ],
)
def test_machine_that_the_compiler_names_is_found(line: str, problems: int, tmp_path: Path) -> None:
    (tmp_path / "xarr" / "compiler").mkdir(parents=True)
    for name in ("fuse", "target"):
        (tmp_path / "xarr" / "compiler" / f"{name}.py").write_text(line, encoding="utf-8")
    assert len(architecture.compiler_names_of_machines(made_up_tree(tmp_path))) == problems


@pytest.mark.parametrize(
    "line", ["import math", "import numpy as np", "from xarr import errors", "import xarr_toy"]
)
def test_needless_function_level_import_is_found(line: str, tmp_path: Path) -> None:
    tree = made_up_tree(tmp_path, xarr__errors="", xarr__shapes=f"def late():\n    {line}")
    assert len(architecture.needless_function_level_imports(tree)) == 1


def test_loaded_module_is_found(tmp_path: Path) -> None:
    made_up_tree(tmp_path, xarr="import matplotlib", matplotlib="")
    loaded = modules_loaded_by_import("xarr", FORBIDDEN_AT_IMPORT, [str(tmp_path), *sys.path])
    assert loaded == ["matplotlib"]


def function_of(lines: int, name: str = "f") -> str:
    """An unannotated function of so many lines, its docstring of three lines not counted."""
    return f'def {name}(x):\n    """One.\n\n    Three."""\n' + "    x += 1\n" * (lines - 1)


BAD_SOURCES: tuple[tuple[FileCheck, str, str, str], ...] = (
    (budgets.long_files, "x = 1\n" * 601, "x = 1\n" * 600, "601 lines, over 600"),
    (budgets.long_functions, function_of(101), function_of(100), "f has 101 lines, over 100"),
    (
        budgets.too_many_longish_functions,
        "".join(function_of(41 if i < 2 else 40, f"f{i}") for i in range(39)),
        "".join(function_of(41 if i < 2 else 40, f"f{i}") for i in range(40)),
        "2 of 39 functions have over 40 lines",
    ),
    (
        budgets.too_many_suppressions,
        "x = 1\n" * 997 + "x = 2  # noqa: F841\n" * 2 + "x = 3  # type: ignore[misc]\n",
        "x = 1\n" * 997 + "x = 2  # noqa: F841\n" * 2 + 'x = "# type: ignore[misc]"\n',
        "3 suppressions in 1000 lines",
    ),
    (
        budgets.too_few_annotations,
        "def f(a: int, *b: int, c) -> int: ...\n" + "def g(a: int) -> int: ...\n" * 7,
        "def f(a: int, *b: int, c) -> int: ...\n" + "def g(a: int) -> int: ...\n" * 8,
        "17 of 18 arguments and returns are annotated",
    ),
)


@pytest.mark.parametrize(
    ("check", "bad", "good", "message"), BAD_SOURCES, ids=[check.__name__ for check, *_ in BAD_SOURCES]
)
def test_budget_check_can_fail(check: FileCheck, bad: str, good: str, message: str, tmp_path: Path) -> None:
    over, within = tmp_path / "over.py", tmp_path / "within.py"
    over.write_text(bad, encoding="utf-8")
    within.write_text(good, encoding="utf-8")
    assert message in check([over])[0]
    assert check([within]) == []


def test_self_needs_no_annotation_and_a_static_argument_does(tmp_path: Path) -> None:
    source = tmp_path / "methods.py"
    source.write_text(
        "class C:\n    def m(self): ...\n    @staticmethod\n    def s(a): ...\n", encoding="utf-8"
    )
    assert [one.slots for one in budgets.definitions_in(source).functions] == [1, 2]


def test_unexpected_variable_is_refused() -> None:
    (problem,) = unexpected_variables({"XARR_DEBUG": "1", "XARR_BACKEND": "numpy", "HOME": "/"})
    assert problem.startswith("XARR_DEBUG is set")


def test_conftest_imports_no_xarr() -> None:
    """It sets variables of the environment that xarr reads when it is imported."""
    code = "import sys, tests.conftest; print('xarr' in sys.modules)"
    # PYTHONSAFEPATH, which CI sets, would keep `tests` off the path.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, env=env, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"


def test_stale_backend_is_refused(tmp_path: Path) -> None:
    made_up_tree(tmp_path / "checkout", xarr_toy="x = 1")
    made_up_tree(tmp_path / "installed", xarr_toy="x = 1")
    packages = {
        "xarr": tmp_path / "checkout" / "xarr",
        "xarr_toy": tmp_path / "installed" / "backends" / "xarr_toy",
    }
    assert stale_backends(tmp_path / "checkout", packages.get) == []
    (packages["xarr_toy"] / "__init__.py").write_text("x = 2", encoding="utf-8")
    (problem,) = stale_backends(tmp_path / "checkout", packages.get)
    assert "which differs from" in problem
    (packages["xarr_toy"] / "__init__.py").write_text("x = 1", encoding="utf-8")
    (packages["xarr_toy"] / "more.py").write_text("", encoding="utf-8")
    assert len(stale_backends(tmp_path / "checkout", packages.get)) == 1
