"""The words of the source: retired ones with those to use, docstring openings, names of functions.

Each check takes files and lists its problems as lines of text, none when all is well.
"""

import ast
import io
import operator
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

# Words that stood for several things at once, as names on their own; which of these is meant depends.
RETIRED_NAMES = {
    "found": "result, or what it is: index, node, axes, match",
    "given": "argument, value, operand, or whether: has_initial",
    "taken": "operands, names_in_use, or whether: is_taken",
    "turn": "iteration",
    "turns": "iterations",
    "room": "scratch buffer",
    "begun": "start, or whether: has_started",
}

# Those that are as unclear inside of a longer name.
RETIRED_PARTS = {
    "place": "index, offset, position, axis, address, source location: say which",
    "places": "indices, offsets, positions, axes: say which",
    "gathered": "accumulated (gather is the op)",
    "thin": "unmaterialised",
    "straight": "prepared launch",
    "thrift": "memory pressure",
    "seams": "tile boundaries",
    "overwritten": "fully_written",
}

# Those that comments and docstrings have no other use for.
RETIRED_TEXT = {
    **{word: RETIRED_PARTS[word] for word in ("place", "places", "thin", "thrift", "seams")},
    "turn": RETIRED_NAMES["turn"],
    "turns": RETIRED_NAMES["turns"],
    "nobody wants": "unused",
    "somebody": "the role: the caller, the user, a backend",
    "whoever": "the role: the caller, the user, a backend",
}

# Phrases of English that have them, and NumPy's function.
_PHRASES = re.compile(
    r"\bin[ -]place\b|\btakes? place\b|\b(decimal|last) places?\b|\bin turn\b|`(numpy\.|np\.|xarr\.)?place`",
    re.IGNORECASE,
)

_RETIRED_TEXT = re.compile(rf"\b({'|'.join(RETIRED_TEXT)})\b", re.IGNORECASE)

_OPENING = re.compile(r"(The same\b|What\b|Whoever\b|How\b)")

# What a file has in which a check may see something: most have none, and need not be parsed, which takes longest.
_NAMES_INSIDE = re.compile(
    rf"(?<![a-z0-9])({'|'.join({**RETIRED_NAMES, **RETIRED_PARTS})})(?![a-z0-9])", re.IGNORECASE
)
_OPENING_INSIDE = re.compile(rf"[\"']\s*{_OPENING.pattern}")
_DEFINED = re.compile(r"\bdef\s+(\w+)")

_ALONE = frozenset(
    re.findall(
        r"\w+",
        "above across after against along among and apart around as at before behind below beneath beside between "
        "beyond by down for from in inside into near not of off on onto or out outside over per through to "
        "towards under until up upon via with within without",
    )
)
_IRREGULAR = frozenset(
    re.findall(
        r"\w+",
        "begun bent bought broken brought built caught chosen done drawn driven fallen felt flown fought found given "
        "gone grown heard held hidden kept known laid led lent lost made meant met paid said seen sent shown slid "
        "sold sought spent spun stolen stood struck stuck swept sworn taken taught thought thrown told torn "
        "understood undone won worn woven wound written",
    )
)
_NO_PARTICIPLE = frozenset(
    re.findall(r"\w+", "bed breed embed exceed feed hundred indeed need proceed red seed shed speed succeed")
)

# Constructors, and methods that users know by these names.
_METHODS = frozenset({"at", "of", "to"})

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def retired_words(paths: Iterable[Path]) -> list[str]:
    """Names that are bound to retired words, and comments and docstrings that use them."""
    return [problem for path in paths for check in (_names_in, _text_in) for problem in check(path)]


def odd_openings(paths: Iterable[Path]) -> list[str]:
    """Docstrings that open with "The same" or a relative clause instead of a verb or a noun phrase."""
    return [
        f"{path}:{node.lineno} {node.name}: {docstring.splitlines()[0]}"
        for path in paths
        if _OPENING_INSIDE.search(_read(path))
        for node in _nodes(path)
        if isinstance(node, _Definition)
        and (docstring := ast.get_docstring(node)) is not None
        and _OPENING.match(docstring)
    ]


def names_without_verb(paths: Iterable[Path]) -> list[str]:
    """Functions named by nothing but a participle or a preposition, such as `_given` and `_along`.

    Properties and fixtures of tests, which are read as values, and names that users know, those of NumPy and of
    `operator` too, may be.
    """
    return [
        f"{path}:{node.lineno} {node.name}: wanted a verb, or a noun"
        for path in paths
        if any(_is_bare(name.strip("_")) for name in _DEFINED.findall(_read(path)))
        for public in [{*_exports(_parse(path)), *_METHODS, *dir(operator), *np.__all__}]
        for node in _nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name not in public
        and not node.name.startswith("__")
        and not any(_is_value(ast.unparse(decorator)) for decorator in node.decorator_list)
        and _is_bare(node.name.strip("_"))
    ]


def _is_value(decorator: str) -> bool:
    return "property" in decorator or decorator.startswith("pytest.fixture")


def _is_bare(name: str) -> bool:
    return all(
        word in _ALONE or word in _IRREGULAR or (word.endswith("ed") and word not in _NO_PARTICIPLE)
        for word in name.split("_")
    )


def _exports(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            for constant in ast.walk(node.value):
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                    yield constant.value


def _names_in(path: Path) -> Iterator[str]:
    if not _NAMES_INSIDE.search(_read(path)):
        return
    public = set(_exports(_parse(path)))
    for node in _nodes(path):
        name = _bound_name(node)
        if name is None or name in public:
            continue
        word = name.strip("_").lower()
        advice = RETIRED_NAMES.get(word)
        for part in re.sub(r"in_place|(decimal|last)_places?", "", word).split("_"):
            advice = advice or RETIRED_PARTS.get(part)
        if advice is not None:
            yield f"{path}:{node.lineno} {name}: say {advice}"  # type: ignore[attr-defined]


def _bound_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.id if isinstance(node, ast.Name) else node.attr
    if isinstance(node, _Definition):
        return node.name
    return node.arg if isinstance(node, ast.arg) else None


def _text_in(path: Path) -> Iterator[str]:
    # Most files have none of the words, so they need not be cut in tokens, which takes longest.
    if not _RETIRED_TEXT.search(_PHRASES.sub("", _read(path))):
        return
    for line, text in [*_comments(path), *_docstrings(path)]:
        text = _PHRASES.sub("", text)
        for word, advice in RETIRED_TEXT.items():
            if re.search(rf"\b{word}\b", text, re.IGNORECASE):
                yield f"{path}:{line} {word!r} in a comment or docstring: say {advice}"


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    source = io.StringIO(_read(path))
    for token in tokenize.generate_tokens(source.readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in _nodes(path):
        if isinstance(node, _Definition | ast.Module) and (text := ast.get_docstring(node)) is not None:
            yield node.body[0].lineno, text


@lru_cache(maxsize=1)
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _parse(path: Path) -> ast.Module:
    return ast.parse(_read(path), str(path))


@lru_cache(maxsize=1)
def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(_parse(path)))
