"""Write `xarr/base/late_names.py`, which names `xarr` imports when asked: `python docs/make_late_names.py`.

They are those that `xarr/__init__.py` imports for type checkers alone; `import *` stands for a module's `__all__`.
Nothing is imported, so that the table can be written when it is out of date.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
TABLE: Final = CHECKOUT / "xarr" / "base" / "late_names.py"

_HEAD: Final = '''\
"""Names of `xarr` that are imported when they are first asked for, so that `import xarr` stays short.

Written by docs/make_late_names.py from `xarr/__init__.py` and the `__all__` of modules: change these, run it.
"""

# ruff: noqa: E501

from __future__ import annotations

from typing import Final

_ROWS: Final = """\
'''
_END: Final = '''\
"""

#: From a module below `xarr` to the names that it gives; none if the module itself is the name.
LATE_MODULES: Final = {module: tuple(names) for module, *names in map(str.split, _ROWS.splitlines())}
'''


def list_exports(module: str) -> list[str]:
    """The `__all__` of a module of the checkout."""
    path = CHECKOUT.joinpath(*module.split(".")).with_suffix(".py")
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(statement.value)]
    raise ValueError(f"{path}: wanted a list __all__, found none")


def late_modules(source: str) -> dict[str, list[str]]:
    """From each module that `source` imports under `if TYPE_CHECKING:` to its names, none for a module itself."""
    table: dict[str, list[str]] = {}
    for statement in _imports_for_types(ast.parse(source)):
        module = str(statement.module)
        for alias in statement.names:
            if module == "xarr":
                table[alias.name] = []
            else:
                names = list_exports(module) if alias.name == "*" else [alias.name]
                table.setdefault(module.removeprefix("xarr."), []).extend(names)
    return dict(sorted(table.items()))


def _imports_for_types(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    for statement in tree.body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("typing.TYPE_CHECKING"):
            yield from (each for each in statement.body if isinstance(each, ast.ImportFrom))


def text() -> str:
    """The module, as it should be."""
    modules = late_modules((CHECKOUT / "xarr" / "__init__.py").read_text(encoding="utf-8"))
    return "".join([_HEAD, *(" ".join((module, *names)) + "\n" for module, names in modules.items()), _END])


if __name__ == "__main__":
    TABLE.write_text(text(), encoding="utf-8")
