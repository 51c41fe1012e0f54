"""Docstrings as reStructuredText: the library's are plain text with code in backticks.

    Sums of windows.

    operand: array of any type.
    window: the size in each dimension,
        continued on a deeper line.

    Returns an array of the operand's type.  Raises ShapeError.  Source: XLA's ReduceWindow.

becomes a paragraph, a list of all parameters with their types and what is said of them, what is returned, and
paragraphs that begin with **Raises** and **Source**.  What has a meaning in reStructuredText and none in plain text
is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import Signature, cleandoc, formatannotation
from typing import Final

_CODE: Final = re.compile(r"`([^`]+)`")
#: What would be emphasis, a substitution or a reference.
_SPECIAL: Final = re.compile(r"([\\*|])|(?<=[\w\])`])(_)(?!\w)")
#: One or several parameters at the beginning of a line or of a sentence.
_PARAMETERS: Final = re.compile(r"(?:^|\n\s*|(?<=\.)\s+)((?:\*{0,2}[A-Za-z_]\w*(?:, |(?=:)))+): +")
_SENTENCE: Final = re.compile(r"(?:^|(?<=[.;:)])\s+)(Returns|Raises|Source:)(?=\s)")


@dataclass
class _Docstring:
    """A docstring by its parts, each as lines of reStructuredText."""

    text: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    sentences: dict[str, str] = field(default_factory=dict)


def to_rst(
    docstring: str,
    parameters: Mapping[str, str],
    returns: str = "",
    describe: Callable[[str], str] = lambda name: "",
) -> list[str]:
    """The lines of reStructuredText of a docstring.

    parameters: the types of the function's parameters by name, as they are written in its signature, or "".
    returns: the type of its result, or "".
    describe: what is said of a parameter that the docstring leaves out.
    """
    parts = _read(docstring, parameters)
    described = {name: parts.parameters.get(name) or escape(describe(name)) for name in parameters}
    return [*parts.text, *_fields(parts, parameters, described, returns), *_last_sentences(parts)]


def described_parameters(docstring: str, parameters: Collection[str]) -> set[str]:
    """The parameters that a docstring says something of."""
    return set(_read(docstring, parameters).parameters)


def _read(docstring: str, parameters: Collection[str]) -> _Docstring:
    parts = _Docstring()
    for block in _blocks(_without_sections(cleandoc(docstring))):
        if _is_list(block):
            parts.text += [*(f"* {escape(item)}" for item in re.split(r"(?:^|\n)\s*\* ", block)[1:]), ""]
        elif block.lstrip().startswith(">>>"):
            parts.text += [*cleandoc(block).splitlines(), ""]
        elif _is_table(block):
            parts.text += ["::", "", *(f"   {line}" for line in block.splitlines()), ""]
        else:
            _read_paragraph(block, parameters, parts)
    return parts


def annotations(signature: Signature) -> tuple[dict[str, str], str]:
    """The types of the parameters, `self` left out, and of the result, as they are written; "" for none."""
    parameters = {
        name: annotation_text(each.annotation)
        for name, each in signature.parameters.items()
        if name not in ("self", "cls")
    }
    return parameters, annotation_text(signature.return_annotation)


def annotation_text(annotation: object) -> str:
    """A type as it is written in a signature, "" for none."""
    if annotation is Signature.empty:
        return ""
    return annotation if isinstance(annotation, str) else formatannotation(annotation)


def _fields(
    parts: _Docstring, parameters: Mapping[str, str], described: Mapping[str, str], returns: str
) -> Iterator[str]:
    """All parameters, with what the signature and the docstring say of them, and the result."""
    for name, annotation in parameters.items():
        yield _field(f"param {name}", annotation, described[name])
    said = parts.sentences.get("Returns", "")
    if said or returns not in ("", "None"):
        yield _field("returns", returns, said)
    yield ""


def _field(name: str, annotation: str, words: str) -> str:
    code = f"``{annotation}``" if annotation else ""
    return f":{name}: " + (f"{code}: {words}" if code and words else code or words)


def _last_sentences(parts: _Docstring) -> Iterator[str]:
    for head in ("Raises", "Source:"):
        if head in parts.sentences:
            yield from (f"**{head.rstrip(':')}** {parts.sentences[head]}", "")


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


def _read_paragraph(block: str, parameters: Collection[str], parts: _Docstring) -> None:
    """Add what a block says: running text, and after it the parameters that it describes."""
    matches = [
        each for each in _PARAMETERS.finditer(block) if set(re.findall(r"\w+", each[1])) <= set(parameters)
    ]
    start, names = 0, ""
    for match in [*matches, None]:
        _read_sentences(block[start : match.start() if match else None], re.findall(r"\w+", names), parts)
        if match:
            start, names = match.end(), match[1]


def _read_sentences(text: str, names: Collection[str], parts: _Docstring) -> None:
    """Add running text, as what is said of the parameters `names` if there are any, and the sentences after it."""
    first, *others = _SENTENCE.split(" ".join(text.split()))
    if first.strip() and names:
        parts.parameters.update(dict.fromkeys(names, escape(first)))
    elif first.strip():
        parts.text += [escape(first), ""]
    for head, rest in zip(others[::2], others[1::2], strict=True):
        parts.sentences[head] = " ".join(filter(None, (parts.sentences.get(head), escape(rest))))
