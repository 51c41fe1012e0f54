"""Docstrings as reStructuredText: the library's are plain text with code in backticks.

    Sums of windows.

    operand: array of any type.
    window: the size in each dimension,
        continued on a deeper line.

    Returns an array of the operand's type.  Raises ShapeError.  Source: XLA's ReduceWindow.

becomes a paragraph, a list of the parameters that are described, and paragraphs that begin with **Returns**,
**Raises** and **Source**.  What has a meaning in reStructuredText and none in plain text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from inspect import cleandoc
from typing import Final

_CODE: Final = re.compile(r"`([^`]+)`")
#: What would be emphasis, a substitution or a reference.
_SPECIAL: Final = re.compile(r"([\\*|])|(?<=[\w\])`])(_)(?!\w)")
#: One or several parameters at the beginning of a line or of a sentence.
_PARAMETERS: Final = re.compile(r"(?:^|\n\s*|(?<=\.)\s+)((?:\*{0,2}[A-Za-z_]\w*(?:, |(?=:)))+): +")
_SENTENCE: Final = re.compile(r"(?:^|(?<=[.;:)])\s+)(Returns|Raises|Source:)(?=\s)")


def to_rst(docstring: str, parameters: Collection[str]) -> list[str]:
    """The lines of reStructuredText of a docstring of a function that has these parameters."""
    result: list[str] = []
    for block in _blocks(_without_sections(cleandoc(docstring))):
        if _is_list(block):
            result += [*(f"* {escape(item)}" for item in re.split(r"(?:^|\n)\s*\* ", block)[1:]), ""]
        elif block.lstrip().startswith(">>>"):
            result += [*cleandoc(block).splitlines(), ""]
        elif _is_table(block):
            result += ["::", "", *(f"   {line}" for line in block.splitlines()), ""]
        else:
            result += _paragraphs_and_parameters(block, parameters)
    return result


def _without_sections(text: str) -> str:
    """A docstring that was taken over from NumPy without its sections, which its own pages show: what comes before
    the first, and the last paragraph, which is this library's."""
    before, underlined, after = text.partition("\nParameters\n----------\n")
    return f"{before}\n\n{_blocks(after)[-1]}" if underlined else text


def escape(text: str) -> str:
    """Plain text with code in backticks, as reStructuredText."""
    parts = _CODE.split(re.sub("``(.+?)``", r"`\1`", " ".join(text.split()).replace("::", ":")))
    return "".join(
        f"``{part}``" if index % 2 else _SPECIAL.sub(r"\\\1\2", part) for index, part in enumerate(parts)
    )


def _blocks(text: str) -> list[str]:
    """Blocks of lines between blank ones."""
    return [block for block in re.split(r"\n\s*\n", text) if block.strip()]


def _is_list(block: str) -> bool:
    return block.lstrip().startswith("* ")


def _is_table(block: str) -> bool:
    """Whether columns are lined up in most lines: such a block keeps its lines."""
    lines = block.splitlines()
    aligned = sum(bool(re.search(r"\S {3,}\S", line)) for line in lines)
    return 2 * aligned > len(lines)


def _paragraphs_and_parameters(block: str, parameters: Collection[str]) -> Iterator[str]:
    matches = [
        each for each in _PARAMETERS.finditer(block) if set(re.findall(r"\w+", each[1])) <= set(parameters)
    ]
    start, names = 0, ""
    for each in [*matches, None]:
        yield from _paragraphs(block[start : each.start() if each else None], names)
        if each:
            start, names = each.end(), each[1]


def _paragraphs(text: str, names: str) -> Iterator[str]:
    """Running text, as the description of the parameters `names` if there are any; three sentences begin paragraphs."""
    first, *others = _SENTENCE.split(" ".join(text.split()))
    if first.strip():
        yield from ([f"**{escape(names)}**", f"   {escape(first)}", ""] if names else [escape(first), ""])
    for head, rest in zip(others[::2], others[1::2], strict=True):
        yield from (f"**{head.rstrip(':')}** {escape(rest)}", "")
