"""Files of reStructuredText that are written when the site is built."""

from __future__ import annotations

import re
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write a page; one that has not changed stays as it is, so that Sphinx does not read it again."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def title(text: str, mark: str) -> list[str]:
    """The lines of a title underlined by `mark`."""
    return [text, mark * len(text), ""]


def slug(text: str) -> str:
    """A name of a file: `Conditional(pred)` is `conditional_pred`."""
    return "_".join(re.findall(r"\w+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower()))
