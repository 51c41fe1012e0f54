"""MLIR text as tokens, and the one error that says where something is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn

from xarr.errors import ParseError

#: Regions, attributes and types nested deeper than this are refused: Python would run out of stack.
DEEPEST: Final = 50
_LONGEST_NUMBER: Final = 400
_WINDOW: Final = 100

_BLANK: Final = re.compile(r"\s*(?://[^\n]*\s*)*")
_TOKEN: Final = re.compile(
    r"""
      (?P<value>%(?:\d+|[A-Za-z$._-][\w$.-]*)(?:\#\d+)?)
    | (?P<symbol>@(?:[A-Za-z_][\w$.]*|"(?:[^"\\\n]|\\.)*"))
    | (?P<hash>\#[A-Za-z_$][\w$.]*)
    | (?P<bang>![A-Za-z_$][\w$.]*)
    | (?P<caret>\^[\w$.-]+)
    | (?P<word>[A-Za-z_][\w$.]*)
    | (?P<hex>-?0x[0-9A-Fa-f]+)
    | (?P<float>-?\d+\.\d*(?:[eE][-+]?\d+)?)
    | (?P<integer>-?\d+)
    | (?P<string>"[^"\\\n]*(?:\\.[^"\\\n]*)*")
    | (?P<mark>->|\{-\#|\#-\}|::|[][(){}<>,:=?*+|/-])
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\([0-9A-Fa-f]{2}|.)")
_NAMED: Final = {"n": "\n", "t": "\t"}
_OPENING: Final = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Token(NamedTuple):
    """A piece of text: `kind` is the name of a group of the token pattern, or "end"."""

    kind: str
    text: str
    start: int


@dataclass(frozen=True)
class Text:
    """The text that is read, and where it came from."""

    content: str
    filename: str = "<stablehlo>"

    def error(self, message: str, position: int) -> ParseError:
        """`message` with the line and column of `position`, the line itself and a caret under it."""
        return ParseError(f"{message}\n{self.excerpt(position)}")

    def location(self, position: int) -> str:
        """`file:line:column`, counted from 1."""
        line = self.content.count("\n", 0, position) + 1
        return f"{self.filename}:{line}:{position - self.content.rfind(chr(10), 0, position)}"

    def excerpt(self, position: int) -> str:
        """The location, the line and the caret.  Of a long line, the part around the position."""
        start = self.content.rfind("\n", 0, position) + 1
        end = self.content.find("\n", position)
        end = len(self.content) if end < 0 else end
        first = max(start, position - _WINDOW // 2)
        last = min(end, first + _WINDOW)
        before, after = "…" if first > start else "", "…" if last < end else ""
        shown = "".join(c if c.isprintable() else " " for c in self.content[first:last]).rstrip()
        caret = " " * (position - first + len(before)) + "^"
        return f"  at {self.location(position)}\n    {before}{shown}{after}\n    {caret}"


class Lexer:
    """The text from the current token on."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._depth = 0
        self._seek(0)

    def _seek(self, position: int) -> None:
        content = self.text.content
        blank = _BLANK.match(content, position)
        assert blank is not None
        start = blank.end()
        match = _TOKEN.match(content, start)
        if match is not None:
            assert match.lastgroup is not None
            self.token = Token(match.lastgroup, match.group(), start)
            self._end = match.end()
        elif start == len(content):
            self.token, self._end = Token("end", "", start), start
        elif content[start] == '"':
            raise self.text.error("this string has no end: expected a closing quote on the same line", start)
        else:
            raise self.text.error(f"unexpected character {content[start]!r}", start)

    def advance(self) -> Token:
        """The current token; the next one becomes current."""
        token = self.token
        self._seek(self._end)
        return token

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """`pattern` at the start of the current token; if it fits, the text after it comes next."""
        match = pattern.match(self.text.content, self.token.start)
        if match is not None:
            self._seek(match.end())
        return match

    def follows(self, character: str) -> bool:
        """Whether the token after the current one begins with `character`."""
        blank = _BLANK.match(self.text.content, self._end)
        assert blank is not None
        return self.text.content.startswith(character, blank.end())

    def at(self, *texts: str) -> bool:
        """Whether the current token is one of these words or marks."""
        return self.token.text in texts

    def accept(self, text: str) -> bool:
        """Step over the current token if it is this word or mark."""
        if self.token.text != text or self.token.kind == "end":
            return False
        self._seek(self._end)
        return True

    def items(self, closing: str, where: str) -> Iterator[None]:
        """Go through a list: once before each of its items, and then over commas, up to and over its last bracket."""
        while not self.at(closing):
            yield
            if not self.accept(","):
                break
        self.expect(closing, where)

    def expect(self, text: str, where: str = "") -> Token:
        """Step over the word or mark `text`, which must come now."""
        if self.token.text != text:
            self.fail(f"{text!r}{where and ' ' + where}")
        return self.advance()

    def take(self, kind: str, what: str) -> Token:
        """Step over a token of this kind, which must come now."""
        if self.token.kind != kind:
            self.fail(what)
        return self.advance()

    def integer(self, what: str = "an integer") -> int:
        """The value of an integer, which must come now."""
        token = self.take("integer", what)
        return self.number(token)

    def number(self, token: Token) -> int:
        """The value of an integer token.  Python itself refuses those of thousands of digits."""
        if len(token.text) > _LONGEST_NUMBER:
            raise self.text.error(
                f"an integer of {len(token.text)} digits: expected a shorter one", token.start
            )
        return int(token.text, 0 if token.kind == "hex" else 10)

    def string(self, what: str = "a string") -> str:
        """The contents of a string, which must come now."""
        return unquote(self.take("string", what).text)

    def symbol(self, what: str = "a name that starts with @") -> str:
        """A symbol's name without the `@`."""
        name = self.take("symbol", what).text[1:]
        return unquote(name) if name.startswith('"') else name

    def fail(self, expected: str) -> NoReturn:
        """Refuse the current token."""
        shown = "the end of the text" if self.token.kind == "end" else repr(self.token.text[:40])
        raise self.text.error(f"expected {expected}, got {shown}", self.token.start)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """One level of nesting; ParseError where there are too many."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.text.error(f"nested deeper than {DEEPEST} levels", self.token.start)
        yield
        self._depth -= 1

    def skip_group(self) -> str:
        """Step over the bracket that comes now and all up to the one that closes it; their text."""
        start = self.token.start
        opened: list[Token] = []
        while True:
            token = self.token
            if token.kind == "mark" and token.text in _OPENING:
                opened.append(token)
            elif not opened:
                self.fail("an opening bracket")
            elif token.text == _OPENING[opened[-1].text]:
                opened.pop()
            elif token.kind == "end" or token.text in _OPENING.values():
                raise self.text.error(f"{opened[-1].text!r} is not closed", opened[-1].start)
            self.advance()
            if not opened:
                return self.text.content[start : token.start + 1]


def unquote(text: str) -> str:
    """The contents of a string literal with its escapes undone."""
    inside = text[1:-1]
    return _ESCAPE.sub(_unescape, inside) if "\\" in inside else inside


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1)
    return chr(int(code, 16)) if len(code) == 2 else _NAMED.get(code, code)
