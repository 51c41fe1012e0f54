"""The user's source line that built a node, located when the node is built and read only when shown."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Final, TypeAlias

from xarr.base.frozen_dataclasses import record

# Not pathlib: it would be a third of what this module costs to import.
PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LONGEST_NAME: Final = 24
#: The arguments of a Source.
Location: TypeAlias = tuple[CodeType, int] | tuple[CodeType, int, str]
#: Files of this package, which is quicker than to compare the beginnings of their names again and again.
own_files: Final[set[str]] = set()
#: Other files, in which those who make many values look themselves.
user_files: Final[set[str]] = set()
#: Those that have been located, in which those who record calls again look themselves.
known_files: Final[set[str]] = set()
_MOST_FILES: Final = 4096


@record
class Source:
    """A location in the user's program: a code object and the offset of the instruction that ran.

    function: that of xarr's which was called there, where an error may be told later; "" for none.
    """

    code: CodeType
    offset: int
    function: str = ""

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
    def start(self) -> tuple[int, int | None]:
        """Line number and column where the expression begins, which may end on another line."""
        line, _, column, _ = list(self.code.co_positions())[self.offset // 2]
        return line or self.code.co_firstlineno, column

    @property
    def filename(self) -> str:
        return self.code.co_filename

    @property
    def line(self) -> int:
        return self.position[0]

    @property
    def address(self) -> str:
        """`file.py:12`, for tables."""
        return f"{self.filename}:{self.line}"

    def text(self) -> str:
        """`file.py:12` and, where the source can be read, the line with the expression underlined."""
        line, column, end_column = self.position
        location = f"{self.filename}:{line}"
        written = linecache.getline(self.filename, line).rstrip("\n")
        if not written.strip():
            return location
        shown = f"{location}\n    {written.strip()}"
        if column is None or end_column is None:
            return shown
        # Columns count UTF-8 bytes of the unstripped line.
        indent = len(written) - len(written.lstrip())
        start = len(written.encode()[:column].decode(errors="ignore")) - indent
        width = len(written.encode()[column:end_column].decode(errors="ignore"))
        return f"{shown}\n    {' ' * start}{'^' * max(1, width)}"

    def __str__(self) -> str:
        return self.text()


#: The names that programs give to modules of functions.
_MODULES = frozenset({"np", "xarr", "jnp", "lax", "xp", "numpy"})


def operand_names(source: Source, count: int) -> tuple[str, ...] | None:
    """The operands of the expression at `source` as the user wrote them, if there are `count` of them.

    Knows binary operators, comparisons, augmented assignments and calls; None for anything else, and
    where the source line cannot be read.
    """
    parsed = _parse_at(source)
    operands = _operands(parsed[0]) if len(parsed) == 1 else []
    names = tuple(ast.unparse(operand) for operand in operands)
    short = all(len(name) <= _LONGEST_NAME for name in names)
    return names if len(names) == count == len(set(names)) and short else None


def operand_count(source: Source | None) -> int:
    """The number of operands of the operator, comparison or call at `source`; 0 for anything else."""
    parsed = _parse_at(source) if source else []
    return len(_operands(parsed[0])) if len(parsed) == 1 else 0


def first_operand(source: Source | None) -> str | None:
    """The array that the call at `source` is a method of, or its first argument; None where that cannot be read.

    Names of modules are none: `np.sum(x)` is a call on `x`.
    """
    match _parse_at(source) if source else []:
        case [ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=[first, *_]))] if (
            name in _MODULES
        ):
            written = first
        case [ast.Expr(value=ast.Call(func=ast.Attribute(value=written)))]:
            pass
        case [ast.Expr(value=ast.Call(args=[written, *_]))]:
            pass
        case _:
            return None
    name = ast.unparse(written)
    return name if len(name) <= _LONGEST_NAME else None


def _parse_at(source: Source) -> list[ast.stmt]:
    """The expression at `source`; nothing if it cannot be read."""
    line, column, end_column = source.position
    written = linecache.getline(source.filename, line)
    if not written.strip() or column is None or end_column is None:
        return []
    return _parse(written.encode()[column:end_column].decode(errors="ignore"))


def _parse(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text.strip()).body
    except SyntaxError:
        return []


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


def operation_at(source: Source | None, name: str, count: int) -> tuple[str, tuple[str, ...] | None]:
    """The operation `name` as it is written at `source`, and its `count` operands as far as they can be read.

    Of an index that is `setitem:` or `getitem:` and the user's text with a `{}` for each operand: it has no name
    that could be called.  Of a `setitem` the operands are the value and what it is written to.
    """
    if name == "setitem":
        return _update_at(source) or ("setitem:{1} = {0}", ("value", "x[...]"))
    if name == "getitem":
        return _index_at(source, count) or (f"getitem:x[{', '.join(['{}'] * count)}]", None)
    return name, operand_names(source, count) if source else None


def _update_at(source: Source | None) -> tuple[str, tuple[str, ...]] | None:
    """`x[i] = v` and `x.at[i].set(v)`."""
    if source is None:
        return None
    match _parse_at(source):
        case [
            ast.Expr(
                ast.Call(ast.Attribute(ast.Subscript(ast.Attribute(array, "at"), index)) as method, [value])
            )
        ]:
            written = _short(ast.Subscript(array, index, ast.Load()), "x[...]")
            return f"setitem:{_escape(method)}({{0}})", (_short(value, "value"), written)
    # The position of an assignment to x[i] is that of x[i] alone.
    line = linecache.getline(source.filename, source.line)
    indent = len(line.encode()) - len(line.lstrip().encode())
    for node in (inner for statement in _parse(line) for inner in ast.walk(statement)):
        match node:
            case ast.Assign([ast.Subscript() as target], value) if (
                target.col_offset + indent == source.position[1]
            ):
                return "setitem:{1} = {0}", (_short(value, "value"), _short(target, "x[...]"))
    return None


def _index_at(source: Source | None, count: int) -> tuple[str, tuple[str, ...]] | None:
    """`x[i, :, j]`, whose operands are the arrays, and `x[f(…)]` with several of them."""
    parsed = _parse_at(source) if source else []
    match parsed:
        case [ast.Expr(value=ast.Subscript(value=array, slice=index))]:
            items = index.elts if isinstance(index, ast.Tuple) else [index]
        case _:
            return None
    if len(items) == 1 and count > 1:
        names = tuple(f"{_short(items[0], 'index')}[{number}]" for number in range(count))
        return f"getitem:{_escape(array)}[{', '.join(['{}'] * count)}]", names
    names = tuple(_short(item, f"index_{k}") for k, item in enumerate(items) if not _is_basic(item))
    if not len(names) == len(set(names)) == count:
        return None
    shown = ", ".join(_escape(item) if _is_basic(item) else "{}" for item in items)
    return f"getitem:{_escape(array)}[{shown}]", names


def _is_basic(item: ast.expr) -> bool:
    return isinstance(item, ast.Slice | ast.Constant | ast.UnaryOp)


def _short(expression: ast.expr, otherwise: str) -> str:
    name = ast.unparse(expression)
    return name if len(name) <= _LONGEST_NAME else otherwise


def _escape(expression: ast.expr) -> str:
    """The text of an expression in a format string."""
    return ast.unparse(expression).replace("{", "{{").replace("}", "}}")


def caller() -> tuple[CodeType, int] | None:
    """The innermost frame outside this package, as the arguments of a Source; None at top level."""
    return locate(sys._getframe(2))


def locate(frame: FrameType | None) -> tuple[CodeType, int] | None:
    """As `caller`, from `frame` on outwards."""
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if file not in own_files:
            if not file.startswith(PACKAGE):
                if len(known_files) >= _MOST_FILES:
                    known_files.clear()
                known_files.add(file)
                return code, frame.f_lasti
            own_files.add(file)
        frame = frame.f_back
    return None


def location_of(frame: FrameType) -> tuple[CodeType, int] | None:
    """As `caller`, for who has the frame of its own caller, which is the user's most of the time."""
    global _calls_left
    code = frame.f_code
    file = code.co_filename
    if file in own_files or file.startswith(PACKAGE):
        return locate(frame)
    if _calls_left > 1:
        _calls_left -= 1
        return code, frame.f_lasti
    if _calls_left:
        _calls_left = 0
        _when_many()
    if len(user_files) >= _MOST_FILES:
        user_files.clear()
    user_files.add(file)
    return code, frame.f_lasti


#: Calls until many values have been made, and what is called then.
_calls_left = 0
_when_many: Callable[[], object] = int


def call_when_many(calls: int, function: Callable[[], object]) -> None:
    """Call `function` when so many values have been located by `location_of`: until then files of users are unknown."""
    global _calls_left, _when_many
    _calls_left, _when_many = calls, function
    user_files.clear()


def user_frame() -> FrameType | None:
    """The innermost frame outside this package, as `caller` has it; None at top level."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def here() -> Source | None:
    """The user's line that is running."""
    frame = caller()
    return Source(*frame) if frame else None


def written_operation(name: str, count: int) -> tuple[str, tuple[str, ...] | None]:
    """`operation_at` of the running expression."""
    return operation_at(here(), name, count)


def written_operands(count: int) -> tuple[str, ...] | None:
    """The `count` operands of the running expression as the user wrote them, where they can be read."""
    location = here()
    return operand_names(location, count) if location else None


def warn_here(message: str, category: type[Warning]) -> None:
    """Warn at the user's line, or at the caller's where there is none."""
    location = here()
    if location is None:
        warnings.warn(message, category, stacklevel=3)
    else:
        warn_at(location, message, category)


def warn_at(source: Source, message: str, category: type[Warning]) -> None:
    """Warn at a line of the user's."""
    warnings.warn_explicit(message, category, source.filename, source.line)
