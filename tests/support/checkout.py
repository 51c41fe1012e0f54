"""The checkout that the tests belong to, and what must hold before they can mean anything."""

import filecmp
from collections.abc import Callable, Mapping
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

# The suite is written to pass in both broadcasting modes and on each CPU backend.  Any other variable
# would change what the tests see behind their back.
ALLOWED_VARIABLES = (
    *("XARR_BROADCASTING", "XARR_BACKEND", "XARR_FUSION", "XARR_KERNEL_CACHE", "XARR_PYODIDE"),
    "XARR_NATIVE_CALLS",
)


def unexpected_variables(environment: Mapping[str, str]) -> list[str]:
    """Complaints about XARR_* variables that the suite is not written for."""
    return [
        f"{name} is set in the environment and would configure the library under test: unset it."
        f" The suite runs with no XARR_* variable but {' and '.join(ALLOWED_VARIABLES)}."
        for name in sorted(environment)
        if name.startswith("XARR_") and name not in ALLOWED_VARIABLES
    ]


def stale_backends(checkout: Path, directory_of: Callable[[str], Path | None]) -> list[str]:
    """Complaints about installed backends that differ from the checkout whose `xarr` is imported.

    `python -m pytest` puts the checkout on the import path, where `xarr` is found before an installed
    one, while the backends, which lie a directory deeper, are found where they were installed.
    """
    if directory_of("xarr") != checkout / "xarr":
        return []
    problems = []
    for source in sorted(path.parent for path in checkout.glob("backends/*/__init__.py")):
        used = directory_of(source.name)
        if used is not None and used != source and not _same_files(source, used):
            problems.append(
                f"xarr is imported from {checkout}, but {source.name} from {used}, which differs from"
                f" {source}: install again, once and for all with `pip install -e '.[test]'`."
            )
    return problems


def _same_files(left: Path, right: Path) -> bool:
    names = [_source_files(left), _source_files(right)]
    if names[0] != names[1]:
        return False
    _, different, unreadable = filecmp.cmpfiles(left, right, names[0], shallow=False)
    return not different and not unreadable


def _source_files(directory: Path) -> list[str]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return sorted(str(path.relative_to(directory)) for path in files)
