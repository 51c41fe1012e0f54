"""Fails unless the wheel in a directory holds every file of the packages, nothing else, and is small."""

import sys
import zipfile
from pathlib import Path

MAX_BYTES = 2_000_000
CHECKOUT = Path(__file__).resolve().parents[1]


def expected_files() -> set[str]:
    """The files of `xarr` and of each backend, as paths inside the wheel."""
    packages = [CHECKOUT / "xarr", *(path.parent for path in CHECKOUT.glob("backends/*/__init__.py"))]
    return {
        str(file.relative_to(package.parent))
        for package in packages
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def problems_of(wheel: Path) -> list[str]:
    """The problems of a wheel, as lines of text."""
    expected = expected_files() | {"xarr/py.typed", "xarr_numpy/__init__.py", "xarr_reference/__init__.py"}
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    problems = [f"{name} is missing" for name in sorted(expected - names)]
    problems += [f"{name} does not belong there" for name in sorted(names - expected)]
    if wheel.stat().st_size >= MAX_BYTES:
        problems.append(f"{wheel.stat().st_size:,} bytes; fewer than {MAX_BYTES:,} are allowed")
    return problems


if __name__ == "__main__":
    (built,) = Path(sys.argv[1]).glob("*.whl")
    print(f"{built.name}: {built.stat().st_size:,} bytes")
    sys.exit("\n".join(problems_of(built)) or None)
