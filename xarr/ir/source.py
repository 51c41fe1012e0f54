"""The user's source line that built a node, found when the node is built and read only when shown."""

from __future__ import annotations

import ast
import linecache
import os
import sys
from types import CodeType, FrameType
from typing import Final

from xarr.records import record

# Not pathlib: it would be a third of what this module costs to import.
_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LONGEST_NAME: Final = 24
#: Files of this package, which is quicker than to compare the beginnings of their names again and again.
_own: Final[set[str]] = set()


@record
class Source:
    """A place in the user's program: a code object and the offset of the instruction that ran."""

    code: CodeType
    offset: int

    @property
    def position(self) -> tuple[int, int | None, int | None]:
        """Line number, and the first and last column of the expression where Python recorded them."""
        positions = list(self.code.co_positions())
        line, end_line, column, end_column = positions[self.offset // 2]
        one_line = line == end_line
        return (
            line or self.code.co_firstlineno,
            column if one_line else None,
            end_column if one_line else None,
        )

    @property
    def filename(self) -> str:
        return self.code.co_filename

    @property
    def line(self) -> int:
        return self.position[0]

    def text(self) -> str:
        """`file.py:12` and, where the source can be read, the line with the expression underlined."""
        line, column, end_column = self.position
        place = f"{self.filename}:{line}"
        written = linecache.getline(self.filename, line).rstrip("\n")
        if not written.strip():
            return place
        shown = f"{place}\n    {written.strip()}"
        if column is None or end_column is None:
            return shown
        # Columns count UTF-8 bytes of the unstripped line.
        indent = len(written) - len(written.lstrip())
        start = len(written.encode()[:column].decode(errors="ignore")) - indent
        width = len(written.encode()[column:end_column].decode(errors="ignore"))
        return f"{shown}\n    {' ' * start}{'^' * max(1, width)}"

    def __str__(self) -> str:
        return self.text()


def operand_names(source: Source, count: int) -> tuple[str, ...] | None:
    """The operands of the expression at `source` as the user wrote them, if there are `count` of them.

    Knows binary operators, comparisons, augmented assignments and calls; None for anything else, and
    where the source line cannot be read.
    """
    line, column, end_column = source.position
    written = linecache.getline(source.filename, line)
    if not written.strip() or column is None or end_column is None:
        return None
    segment = written.encode()[column:end_column].decode(errors="ignore").strip()
    try:
        parsed = ast.parse(segment).body
    except SyntaxError:
        return None
    found = _operands(parsed[0]) if len(parsed) == 1 else []
    names = tuple(ast.unparse(operand) for operand in found)
    short = all(len(name) <= _LONGEST_NAME for name in names)
    return names if len(names) == count == len(set(names)) and short else None


def _operands(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.AugAssign):
        return [statement.target, statement.value]
    if not isinstance(statement, ast.Expr):
        return []
    match statement.value:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Compare(left=left, comparators=[right]):
            return [left, right]
        case ast.Call(args=arguments):
            return arguments
    return []


def caller() -> tuple[CodeType, int] | None:
    """The innermost frame outside this package, as the arguments of a Source; None at top level."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if file not in _own:
            if not file.startswith(_PACKAGE):
                return code, frame.f_lasti
            _own.add(file)
        frame = frame.f_back
    return None


def here() -> Source | None:
    """The user's line that is running."""
    place = caller()
    return Source(*place) if place else None


def written_operands(count: int) -> tuple[str, ...] | None:
    """The `count` operands of the running expression as the user wrote them, where they can be read."""
    place = here()
    return operand_names(place, count) if place else None
