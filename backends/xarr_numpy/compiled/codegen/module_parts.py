"""A long module of LLVM IR as several, which threads compile and a linker joins.

Functions that are called stay apart; one that is copied to where it is called is in each part that has such a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_NAME: Final = re.compile(r"@([\w.$]+)")
_COPIED: Final = re.compile(r"call [^@\n]*@([\w.$]+)\([^\n]*\) alwaysinline")
_BEGIN: Final = "\ndefine "
_END: Final = "\n}\n"
_INTERNAL: Final = "define internal "
#: How codes begin that were joined, as no object code does.
_SEVERAL: Final = b"codes of parts: "


@dataclass(frozen=True)
class _Function:
    """The text of a function, what it names, and the names of those that are copied into it."""

    text: str
    named: frozenset[str]
    copied: frozenset[str]


def split_module(ir: str, count: int) -> list[str]:
    """So many modules, at most, which define together what this one does: it alone where it has variables.

    The functions of each are about as long as those of others.
    """
    if count < 2 or " internal global " in ir:
        return [ir]
    rest, *pieces = ("\n" + ir).split(_BEGIN)
    texts = {}
    for piece in pieces:
        body, end, behind = piece.partition(_END)
        texts[_NAME.search(body)[1]] = _BEGIN[1:] + body + end  # type: ignore[index]
        rest += "\n" + behind
    everywhere = {name for name, text in texts.items() if " alwaysinline " in text.partition("\n")[0]}
    functions = {}
    for name, text in texts.items():
        named = frozenset(_NAME.findall(text)) & texts.keys() - {name}
        copied = named & everywhere
        if " alwaysinline\n" in text:
            copied |= frozenset(_COPIED.findall(text))
        functions[name] = _Function(text, named, copied)
    copied = frozenset[str]().union(*[each.copied for each in functions.values()])
    called = frozenset[str]().union(*[each.named - each.copied for each in functions.values()])
    with_copies = {
        name: _with_copies(name, functions)
        for name, each in functions.items()
        if name not in copied or name in called or not each.text.startswith(_INTERNAL)
    }
    parts: list[dict[str, None]] = [{} for _ in range(count)]
    sizes = [0] * count
    for size, name in sorted(
        [(_size(each, functions), name) for name, each in with_copies.items()], reverse=True
    ):
        least = sizes.index(min(sizes))
        sizes[least] += size
        parts[least][name] = None
    return [rest + "".join(_definitions(part, with_copies, functions)) for part in parts if part]


def join_codes(codes: Sequence[bytes]) -> bytes:
    """The object codes of modules one behind the other, each with its length."""
    return b"".join([_SEVERAL, *[part for code in codes for part in (len(code).to_bytes(8, "little"), code)]])


def split_codes(code: bytes) -> list[bytes]:
    """The object codes that were joined, or that of one module."""
    if not code.startswith(_SEVERAL):
        return [code]
    parts, begin = [], len(_SEVERAL)
    while begin < len(code):
        end = begin + 8 + int.from_bytes(code[begin : begin + 8], "little")
        parts.append(code[begin + 8 : end])
        begin = end
    return parts


def _size(names: Iterable[str], functions: dict[str, _Function]) -> int:
    return sum([len(functions[name].text) for name in names])


def _with_copies(name: str, functions: dict[str, _Function]) -> list[str]:
    """A function and those that are copied into it, directly or not."""
    names = [name]
    for each in names:
        names += [other for other in functions[each].copied if other not in names]
    return names


def _definitions(
    own: Iterable[str], with_copies: dict[str, list[str]], functions: dict[str, _Function]
) -> Iterator[str]:
    """These functions, what is copied into them, and declarations of what else they call."""
    defined = {each for name in own for each in with_copies[name]}
    named = frozenset[str]().union(*[functions[name].named for name in defined])
    for name, function in functions.items():
        if name in own:
            yield function.text.replace(_INTERNAL, "define hidden ", 1)
        elif name in defined:
            yield _INTERNAL + function.text.removeprefix(_INTERNAL).removeprefix("define ")
        elif name in named:
            # Not as hidden: the parts may lie too far apart for an address that code adds up from its own.
            head = function.text.partition(" {\n")[0].removeprefix(_INTERNAL).removeprefix("define ")
            yield f"declare {head}\n"
