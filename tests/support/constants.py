"""Lines where library code makes constants and takes host values in: a check over its source by `ast`.

NumPy's creation functions make Arrays that are committed to the default device, which no function may use beside
an argument, that may live elsewhere.  Those of `xarr.lax` are committed to none.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

#: Which names of a module make an Array of the default backend.
MAKERS = {
    "xarr.numpy_api.creation.arrays": {
        *(
            "asarray",
            "array",
            "arange",
            "linspace",
            "zeros",
            "ones",
            "empty",
            "full",
        ),
    },
    "xarr.numpy_api.creation.matrices": {"eye", "identity", "tri"},
}
#: The modules that define them.
DEFINING = ("creation/arrays.py", "creation/matrices.py")


def constants_of_the_default_backend(paths: Iterable[Path]) -> list[str]:
    """Calls that make an Array of the default backend without saying `device=`."""
    return [
        f"{path}:{call.lineno}: {ast.unparse(call.func)}(…) makes an Array of the default backend, which does not go "
        "with an argument of another one: take one of xarr.lax, or operands.as_array, or say device="
        for path in paths
        if not path.as_posix().endswith(DEFINING)
        for call in _calls(ast.parse(path.read_text(encoding="utf-8")))
    ]


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    makers = _names_of_makers(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _dotted_name(node.func) not in makers:
            continue
        if all(keyword.arg != "device" for keyword in node.keywords):
            yield node


def _dotted_name(function: ast.expr) -> str:
    """`full` or `lax.full`; "" for anything longer."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return f"{function.value.id}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def _names_of_makers(tree: ast.Module) -> set[str]:
    """The names of the makers in a module: `full`, `lax.full`, `creation.full`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name in MAKERS.get(node.module or "", ()):
                names.add(name)
            names |= {f"{name}.{maker}" for maker in MAKERS.get(f"{node.module}.{alias.name}", ())}
    return names
