"""Damaged versions of a text, the same in every run: cut short, or with pieces removed, doubled or moved."""

import random
import re
from collections.abc import Iterator, Sequence

_PIECES = re.compile(r"[\w.$%@#!^\"]+|->|\S")
_STRANGE = (
    *(
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        ",",
        ":",
        "=",
        "->",
        '"',
        "%0",
        "%0#7",
        "@main",
        "#x",
        "!y",
        "^bb1",
    ),
    *(
        "-1",
        "99999999999999999999",
        "4294967296",
        "0x",
        "0xFF",
        "1e999",
        "?",
        "*",
        "//",
        "{-#",
        "tensor<",
        "dense<",
    ),
    *("tensor<?xf32>", "tensor<1000000x1000000xf32>", "i4", "true", "loc(", "\0", "é", "stablehlo.return"),
    *("[" * 200, "(" * 2000, "{" * 300, "tuple<" * 500, "<" * 100),
)


def mutations(texts: Sequence[str], count: int, source: random.Random) -> Iterator[str]:
    """`count` damaged texts, each made from one of `texts` by one to four changes."""
    for _ in range(count):
        text = source.choice(texts)
        for _ in range(source.choice((1, 1, 2, 4))):
            text = _CHANGES[source.randrange(len(_CHANGES))](text, source)
        yield text


def _spans(text: str, source: random.Random) -> tuple[int, int]:
    pieces = list(_PIECES.finditer(text))
    if not pieces:
        return 0, 0
    first = source.randrange(len(pieces))
    last = min(len(pieces) - 1, first + source.choice((0, 0, 0, 1, 3, 20)))
    return pieces[first].start(), pieces[last].end()


def _truncate(text: str, source: random.Random) -> str:
    return text[: source.randrange(len(text) + 1)]


def _remove(text: str, source: random.Random) -> str:
    start, end = _spans(text, source)
    return text[:start] + text[end:]


def _double(text: str, source: random.Random) -> str:
    start, end = _spans(text, source)
    return text[:end] + " " + text[start:end] + text[end:]


def _move(text: str, source: random.Random) -> str:
    start, end = _spans(text, source)
    rest = text[:start] + text[end:]
    position = source.randrange(len(rest) + 1)
    return rest[:position] + text[start:end] + rest[position:]


def _replace(text: str, source: random.Random) -> str:
    start, end = _spans(text, source)
    return text[:start] + source.choice(_STRANGE) + text[end:]


def _swap(text: str, source: random.Random) -> str:
    start, end = _spans(text, source)
    other, stop = _spans(text, source)
    return text[:start] + text[other:stop] + text[end:]


def _character(text: str, source: random.Random) -> str:
    position = source.randrange(len(text) + 1)
    return text[:position] + chr(source.randrange(32, 127)) + text[position + source.randrange(2) :]


def _number(text: str, source: random.Random) -> str:
    numbers = list(re.finditer(r"\d+", text))
    if not numbers:
        return text
    match = source.choice(numbers)
    value = source.choice(("0", "1", "2", "7", "64", "2147483648", "9223372036854775808", "1" * 5000))
    return text[: match.start()] + value + text[match.end() :]


_CHANGES = (_truncate, _remove, _double, _move, _replace, _swap, _character, _number)
