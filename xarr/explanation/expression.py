"""Reads an op on bare shapes as a user types it: `(5,1) - (5,)`, `f32[<=3] + f32[]`, `add((3,), ())`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xarr.base.broadcasting import Shape
from xarr.errors import ParseError
from xarr.explanation.notation import BY_SYMBOL, element_bytes

EXAMPLES = ("(5,1) - (5,)", "f32[5,1] - f32[5]", "add((5,1), (5,))", "where((3,), (2,1), ())")

#: How strongly symbols bind, as in Python; comparisons least of all, `**` from right to left.
_BINDS = {
    "**": 8,
    "*": 7,
    "/": 7,
    "//": 7,
    "%": 7,
    "@": 7,
    "+": 6,
    "-": 6,
    "<<": 5,
    ">>": 5,
    "&": 4,
    "^": 3,
    "|": 2,
}
_COMPARISON = 1
#: Longer expressions are refused.
_MOST_OPS = 50

_GROUP = re.compile(r"\((?=\s*(\(|[A-Za-z_]*\w*\s*\[))")
_ANY_SYMBOL = re.compile(
    "|".join(re.escape(symbol) for symbol in sorted([*BY_SYMBOL, "@"], key=len, reverse=True))
)
_SYMBOL = re.compile("|".join(re.escape(symbol) for symbol in sorted(BY_SYMBOL, key=len, reverse=True)))
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")
_TYPED = re.compile(r"([A-Za-z_]\w*)?\s*\[")
#: A dynamic size broadcasts as its bound does.
_SIZE = re.compile(r"(?:<=\s*)?(\d{1,18})(?!\d)")
_LAYOUT = re.compile(r"\{[\d\s,]*\}")
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Expression:
    """An op name or symbol, and the shape and dtype name (None if not given) of each operand."""

    op: str
    shapes: tuple[Shape, ...]
    dtypes: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class ShapeText:
    """An operand: its shape, its dtype name (None if not given), and its number from left to right."""

    shape: Shape
    dtype: str | None
    number: int


@dataclass(frozen=True, slots=True)
class Operation:
    """An op on operands and on the results of other ops."""

    op: str
    operands: tuple[Operation | ShapeText, ...]


def read_operation(text: str) -> Operation:
    """An expression of one op or several, with Python's precedence and parentheses; raises ParseError."""
    return _ExpressionReader(text).operations()


def parse_expression(text: str) -> tuple[str, tuple[Shape, ...]]:
    """The op (a symbol or a name) and the operands' shapes.

    Raises ParseError, which points at the character and shows examples, for anything malformed.
    """
    expression = read_expression(text)
    return expression.op, expression.shapes


def read_expression(text: str) -> Expression:
    """Like `parse_expression`, and keeps the dtypes of operands written as `f32[5,1]`."""
    return _ExpressionReader(text).expression()


def read_operand(text: str) -> tuple[Shape, str | None]:
    """The shape and the dtype name of one operand such as `f32[5,1]` or `(5,1)`; raises ParseError."""
    reader = _ExpressionReader(text)
    operand = reader.operand()
    if reader.at < len(reader.text):
        raise reader.error("the end")
    return operand


class _ExpressionReader:
    def __init__(self, text: str) -> None:
        self.text = "".join(c if c.isprintable() else " " for c in text)
        self.at = 0
        self.count = self.ops = 0

    def operations(self) -> Operation:
        tree = self.tree(_COMPARISON)
        if self.at < len(self.text):
            raise self.error("an op such as + - * / @ < ==, or the end")
        if isinstance(tree, ShapeText):
            raise self.error("an op such as + - * / @ < ==")
        return tree

    def tree(self, least: int) -> Operation | ShapeText:
        """Read the part of the text from here on that binds at least as strongly as `least`."""
        left, compared = self.primary(), False
        while True:
            start = self.at
            symbol = self.take(_ANY_SYMBOL)
            binds = _BINDS.get(symbol[0], _COMPARISON) if symbol is not None else 0
            if symbol is None or binds < least:
                self.at = start
                return left
            if compared and binds == _COMPARISON:
                raise self.error("parentheses around one of the comparisons")
            compared = binds == _COMPARISON
            self.ops += 1
            if self.ops > _MOST_OPS:
                raise self.error(f"at most {_MOST_OPS} ops")
            left = Operation(symbol[0], (left, self.tree(binds + (symbol[0] != "**"))))

    def primary(self) -> Operation | ShapeText:
        """A shape, a call on shapes, or an expression in parentheses."""
        if self.take(_GROUP) is not None:
            self.ops += 1
            if self.ops > _MOST_OPS:
                raise self.error(f"at most {_MOST_OPS} ops")
            tree = self.tree(_COMPARISON)
            if self.take(re.compile(r"\)")) is None:
                raise self.error('an op or ")"')
            return tree
        call = self.take(_CALL)
        if call is not None:
            return Operation(call[1], tuple(self.number_operand(*pair) for pair in self.arguments()))
        return self.number_operand(*self.operand())

    def number_operand(self, shape: Shape, dtype: str | None) -> ShapeText:
        self.count += 1
        return ShapeText(shape, dtype, self.count - 1)

    def expression(self) -> Expression:
        call = self.take(_CALL)
        if call is not None:
            op, operands = call[1], self.arguments()
        else:
            first = self.operand()
            op = self.symbol()
            operands = [first, self.operand()]
        if self.at < len(self.text):
            raise self.error("the end; an expression has one op")
        return Expression(op, tuple(shape for shape, _ in operands), tuple(dtype for _, dtype in operands))

    def symbol(self) -> str:
        symbol = self.take(_SYMBOL)
        if symbol is None:
            contracts = self.text[self.at : self.at + 1] == "@"
            raise self.error(
                "an element-wise op; @ contracts axes, it does not broadcast them"
                if contracts
                else "an op such as + - * / < =="
            )
        return symbol[0]

    def arguments(self) -> list[tuple[Shape, str | None]]:
        operands = [self.operand()]
        while self.take(re.compile(",")) is not None:
            operands.append(self.operand())
        if self.take(re.compile(r"\)")) is None:
            raise self.error('"," or ")"')
        return operands

    def operand(self) -> tuple[Shape, str | None]:
        start = self.at
        typed = self.take(_TYPED)
        if typed is not None:
            if typed[1] is not None and element_bytes(typed[1]) is None:
                self.at = start
                raise self.error("an element type such as f32, s64, u8, bf16 or pred")
            shape, _ = self.sizes("]")
            self.take(_LAYOUT)
            return shape, typed[1]
        if self.take(re.compile(r"\(")) is None:
            raise self.error("a shape: (5,1), (5,) for a vector, () for a scalar, or f32[5,1]")
        shape, trailing_comma = self.sizes(")")
        if len(shape) == 1 and not trailing_comma:
            self.at = start
            raise self.error(f"a tuple: ({shape[0]}) is a number, the shape of a vector is ({shape[0]},)")
        return shape, None

    def sizes(self, close: str) -> tuple[Shape, bool]:
        """The sizes up to the closing bracket, and whether a comma stands before it."""
        sizes: list[int] = []
        comma = True
        while self.take(re.compile(re.escape(close))) is None:
            if not comma:
                raise self.error(f'"," or "{close}"')
            size = self.take(_SIZE)
            if size is None:
                raise self.error(f'a size (a number from 0 to 10^18, or <=10) or "{close}"')
            sizes.append(int(size[1]))
            comma = self.take(re.compile(",")) is not None
        return tuple(sizes), comma

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match here, after white space, and move behind the match and the white space that follows."""
        self.skip()
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            self.skip()
        return match

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def error(self, wanted: str) -> ParseError:
        start = max(0, self.at - 60)
        shown = self.text[start : self.at + 40]
        examples = "\n".join(f"    {example}" for example in EXAMPLES)
        got = repr(self.text[self.at : self.at + 20]) if self.at < len(self.text) else "the end"
        return ParseError(
            f"cannot read the expression: wanted {wanted}, got {got}\n"
            f"    {shown}\n    {' ' * (self.at - start)}^\nexamples:\n{examples}"
        )
