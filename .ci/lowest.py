"""Prints `name==version` for the lowest version of everything that pyproject.toml names, for pip to install.

pip install '.[test]' $(python .ci/lowest.py)
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"

#: The extras that are installed beside what xarr cannot do without.
EXTRAS = ("jit", "test")


def lowest(requirements: Iterable[str]) -> list[str]:
    """Of `name>=version` the pin `name==version`; a requirement that is no range stays to pip."""
    matches = (
        re.fullmatch(r"([\w.-]+)>=([\w.]+)(,<[\w.]+)?", each.replace(" ", "")) for each in requirements
    )
    return sorted({f"{each[1]}=={each[2]}" for each in matches if each})


if __name__ == "__main__":
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = [each for extra in EXTRAS for each in project["optional-dependencies"][extra]]
    print(*lowest([*project["dependencies"], *extras]))
