"""Fails unless a tag names the version of xarr, and the files that repeat it agree: `check_release.py v1.2.3`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]

#: Where the version is decided, and the files that repeat it.
SOURCE = ("xarr/__init__.py", r'^__version__ = "(.+)"$')
COPIES = (("CITATION.cff", r"^version: (.+)$"), ("CHANGELOG.md", r"^## \[(\d.*?)\] - \d{4}-\d\d-\d\d$"))


def find_version(text: str, pattern: str) -> str | None:
    """The version that the first line of such a pattern states."""
    match = re.search(pattern, text, re.MULTILINE)
    return match and match[1]


def problems_of(tag: str, texts: dict[str, str]) -> list[str]:
    """The problems of a tag, given the text of each file by its name."""
    version = find_version(texts[SOURCE[0]], SOURCE[1])
    problems = [] if tag == f"v{version}" else [f"the tag is {tag}, the version of {SOURCE[0]} is {version}"]
    for name, pattern in COPIES:
        if (copy := find_version(texts[name], pattern)) != version:
            problems.append(f"{name} has the version {copy}, {SOURCE[0]} has {version}")
    return problems


if __name__ == "__main__":
    names = [SOURCE[0], *(name for name, _ in COPIES)]
    texts = {name: (CHECKOUT / name).read_text(encoding="utf-8") for name in names}
    sys.exit("\n".join(problems_of(sys.argv[1], texts)) or None)
