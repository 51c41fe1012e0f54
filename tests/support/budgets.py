"""Sizes that the source keeps to: lengths, suppressions, annotations; each check lists its problems."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 100
USUAL_FUNCTION_LINES = 40
USUAL_SHARE = 0.95
MAX_SUPPRESSIONS_PER_1000_LINES = 2
ANNOTATED_SHARE = 0.95
MAX_MODULES_IN_FOLDER = 16
#: Folders with a module for each family of ops, which a reader knows without a list.
PARALLEL_FOLDERS = ("xarr/lax", "xarr/ir/ops")

_SUPPRESSION = re.compile(
    r"#.*\b(noqa|type:\s*ignore|pyright:|pylint:|mypy:|fmt:\s*(off|skip)|pragma:\s*no\s*cover)"
)

_Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """One function definition: its length without the docstring, and its annotation slots."""

    location: str
    lines: int
    slots: int
    annotated: int


@dataclass(frozen=True)
class Definitions:
    """The definitions of a file: its functions, methods and nested ones too, and the names of its classes."""

    functions: tuple[Function, ...]
    classes: tuple[str, ...]


def definitions_in(path: Path) -> Definitions:
    """The definitions of a file, which is parsed once for all checks."""
    return _parse(path, path.read_text(encoding="utf-8"))


@cache
def _parse(path: Path, text: str) -> Definitions:
    module = ast.parse(text, str(path))
    classes = tuple(node.name for node in ast.walk(module) if isinstance(node, ast.ClassDef))
    return Definitions(tuple(_functions_in(module, path)), classes)


def _functions_in(module: ast.Module, path: Path) -> Iterator[Function]:
    methods = {
        id(member)
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef)
        for member in node.body
        if isinstance(member, _Definition) and not _is_static(member)
    }
    for node in ast.walk(module):
        if isinstance(node, _Definition):
            yield _describe(node, path, is_method=id(node) in methods)


def _is_static(node: _Definition) -> bool:
    return any(ast.unparse(decorator) == "staticmethod" for decorator in node.decorator_list)


def _describe(node: _Definition, path: Path, is_method: bool) -> Function:
    arguments = [*node.args.posonlyargs, *node.args.args][is_method:]
    arguments += [*node.args.kwonlyargs, *filter(None, [node.args.vararg, node.args.kwarg])]
    annotations = [argument.annotation for argument in arguments] + [node.returns]
    return Function(
        location=f"{path}:{node.lineno} {node.name}",
        lines=_length(node),
        slots=len(annotations),
        annotated=sum(annotation is not None for annotation in annotations),
    )


def _length(node: _Definition) -> int:
    assert node.end_lineno is not None
    lines = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node, clean=False) is not None:
        docstring = node.body[0]
        assert docstring.end_lineno is not None
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def full_folders(paths: Iterable[Path]) -> list[str]:
    """Folders with more modules than a reader takes in, `__init__` and `__main__` not counted."""
    folders = Counter(path.parent for path in paths if not path.stem.startswith("__"))
    return [
        f"{folder} has {count} modules, over {MAX_MODULES_IN_FOLDER}"
        for folder, count in folders.items()
        if count > MAX_MODULES_IN_FOLDER and not folder.as_posix().endswith(PARALLEL_FOLDERS)
    ]


def repeated_classes(paths: Iterable[Path]) -> list[str]:
    """Names of classes that stand in two modules; `Array` is the protocol of the rooms below it too."""
    homes: dict[str, list[Path]] = {}
    for path in paths:
        for name in definitions_in(path).classes:
            if name != "Array":
                homes.setdefault(name, []).append(path)
    return [
        f"{name} is a class in {', '.join(map(str, modules))}: call one of them otherwise"
        for name, modules in homes.items()
        if len(modules) > 1
    ]


def long_files(paths: Iterable[Path], limit: int = MAX_FILE_LINES) -> list[str]:
    """Files of more than `limit` lines."""
    counted = ((path, _count_lines(path)) for path in paths)
    return [f"{path} has {lines} lines, over {limit}" for path, lines in counted if lines > limit]


def _count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def long_functions(paths: Iterable[Path], limit: int = MAX_FUNCTION_LINES) -> list[str]:
    """Functions of more than `limit` lines, docstrings not counted."""
    functions = (function for path in paths for function in definitions_in(path).functions)
    return [f"{one.location} has {one.lines} lines, over {limit}" for one in functions if one.lines > limit]


def too_many_longish_functions(
    paths: Iterable[Path], limit: int = USUAL_FUNCTION_LINES, share: float = USUAL_SHARE
) -> list[str]:
    """The functions above `limit` lines, if fewer than `share` of all functions keep to it."""
    functions = [function for path in paths for function in definitions_in(path).functions]
    longish = [one for one in functions if one.lines > limit]
    if len(longish) <= (1 - share) * len(functions):
        return []
    summary = f"{len(longish)} of {len(functions)} functions have over {limit} lines; {share:.0%} may not"
    return [summary, *(f"{one.location} has {one.lines} lines" for one in longish)]


def too_many_suppressions(
    paths: Iterable[Path], per_1000: float = MAX_SUPPRESSIONS_PER_1000_LINES
) -> list[str]:
    """Comments that silence a linter or type checker, if there are more than `per_1000` lines allow."""
    paths = list(paths)
    suppressions = [location for path in paths for location in _suppressions_in(path)]
    lines = sum(_count_lines(path) for path in paths)
    if len(suppressions) * 1000 <= per_1000 * lines:
        return []
    return [f"{len(suppressions)} suppressions in {lines} lines, over {per_1000} per 1,000", *suppressions]


def _suppressions_in(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    # Most files have none, so they need not be cut in tokens, which takes longest.
    if not _SUPPRESSION.search(text):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and _SUPPRESSION.match(token.string):
            yield f"{path}:{token.start[0]} {token.string}"


def too_few_annotations(paths: Iterable[Path], share: float = ANNOTATED_SHARE) -> list[str]:
    """The functions with unannotated arguments or returns, if fewer than `share` of all are annotated."""
    functions = [function for path in paths for function in definitions_in(path).functions]
    slots, annotated = sum(one.slots for one in functions), sum(one.annotated for one in functions)
    if annotated >= share * slots:
        return []
    bare = [one.location for one in functions if one.annotated < one.slots]
    return [f"{annotated} of {slots} arguments and returns are annotated, under {share:.0%}", *bare]
