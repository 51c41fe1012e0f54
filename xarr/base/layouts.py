"""Layouts: in which order, and with which padding, the elements of an array lie in linear memory.

A `Layout` names the dimensions from the most minor, whose index changes fastest from one address in
memory to the next, to the most major.  It may also say to which width each dimension is padded, and
with which value.  The rules are those of XLA's "Shapes and layout" page (`Layout` in
`xla_data.proto`).  `xarr.shapes` binds a layout to sizes and moves arrays into linear memory and back.

The checks of sizes and dimension numbers which the whole library shares are here too.
"""

from __future__ import annotations

import math
import operator
import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TypeAlias, TypeVar

from xarr import errors
from xarr.base.tracebacks import shorten
from xarr.errors import (
    HugeSizeError,
    InputError,
    ParseError,
    ShapeError,
    SizeError,
    TracedValueError,
    XarrError,
    pluralize,
)

if TYPE_CHECKING:  # layouts are explained without NumPy
    import numpy as np

Sizes: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
PaddingValue: TypeAlias = int | float | complex
_T = TypeVar("_T")

MAX_SIZE: Final = 2**63 - 1
"""The largest size, offset or index: XLA keeps them all in an int64."""

DIMENSION_LETTERS: Final = {2: ("y", "x"), 3: ("z", "y", "x"), 4: ("p", "z", "y", "x")}
"""The letters by which XLA's page calls the dimensions of arrays of rank 2, 3 and 4."""


# Dimension numbers and sizes


def integer_of(value: object, error: type[XarrError], wanted: str) -> int:
    """`value` as an int; a bool, a float or anything else that is no integer raises `error`."""
    if type(value) is int:
        return _printable(value, error, wanted)
    if isinstance(value, SupportsIndex) and not isinstance(value, (bool, *_numpy_type("bool_"))):
        try:
            number = int(operator.index(value))
        except TracedValueError:
            raise  # an array with no value yet says more about itself than we could
        except TypeError:
            pass  # arrays have `__index__` whether or not it works
        else:
            return _printable(number, error, wanted)
    if getattr(value, "ndim", 0):  # not its elements, which may be many
        raise error(f"{wanted}, got an array of shape {getattr(value, 'shape', ())}")
    raise error(f"{wanted}, got {reprlib.repr(value)} of type {type(value).__name__}")


def _numpy_type(name: str) -> tuple[type[Any], ...]:
    """A type of NumPy as a tuple of one; an empty one where NumPy is not imported, and nothing is of its types."""
    known = getattr(sys.modules.get("numpy"), name, None)
    return () if known is None else (known,)


def _printable(number: int, error: type[XarrError], wanted: str) -> int:
    # Python refuses to print an int of more than 4300 digits, and so to name it in a later message.
    if number.bit_length() > 1000:
        raise error(f"{wanted}, got one of {number.bit_length()} bits")
    return number


def items_of(value: object) -> tuple[Any, ...]:
    """The items of a sequence; a lone value (a 0-d array too) counts as a sequence of one."""
    lone = isinstance(value, str | bytes) or getattr(value, "ndim", 1) == 0
    return tuple(value) if isinstance(value, Iterable) and not lone else (value,)


def normalize_axis(axis: SupportsIndex, rank: int, *, name: str = "axis") -> int:
    """The dimension number in 0 … rank-1 that `axis` means; -1 is the last dimension.

    `name` is what the caller's signature calls the argument.  Raises AxisError when no such dimension
    exists, InputError for a bool, a float or anything else without `__index__`.
    """
    number = integer_of(axis, InputError, f"{name} must be an integer")
    if -rank <= number < rank:
        return number + rank if number < 0 else number
    legal = f"legal are {-rank} … {rank - 1}" if rank else "a scalar has no dimensions"
    error = errors.AxisError(f"{name} {number} is out of range for an array of rank {rank}; {legal}", rank)
    error.axis = number
    raise error


def normalize_axes(axes: Sizes | None, rank: int, *, name: str = "axis") -> tuple[int, ...]:
    """The dimension numbers that `axes` mean, in the given order.

    A lone integer counts as a sequence of one; None means every dimension, as in NumPy's reductions.
    Raises AxisError for a number out of range or two that mean one dimension, InputError for what is
    not an integer.
    """
    if axes is None:
        return tuple(range(rank))
    items = items_of(axes)
    try:
        numbers = tuple(normalize_axis(axis, rank, name=name) for axis in items)
    except XarrError as error:
        shorten(error)
        raise
    if len(set(numbers)) < len(numbers):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        spellings = " and ".join(str(axis) for axis, n in zip(items, numbers, strict=True) if n == twice)
        raise errors.AxisError(f"{name} names dimension {twice} more than once: {spellings} (rank {rank})")
    return numbers


def check_sizes(sizes: Sizes, *, name: str = "shape") -> tuple[int, ...]:
    """`sizes` as a tuple of ints, one per dimension; a lone integer n means (n,), as in NumPy.

    Raises ShapeError, a ValueError, for a size that is negative; HugeSizeError, also an OverflowError, for one
    of more than 2**63-1; SizeError, also a TypeError, for what is no integer (bools and floats are none, even
    when integral) and for a set, which has no order.
    """
    wanted = f"{name} must be a sequence of integers >= 0"
    if isinstance(sizes, Set):
        raise SizeError(f"{wanted}, got {sizes!r}, which has no order")
    checked = tuple(integer_of(size, SizeError, wanted) for size in items_of(sizes))
    for dimension, size in enumerate(checked):
        if size < 0:
            raise ShapeError(f"{wanted}, got {size} for dimension {dimension}{_open_size_hint(size)}")
        if size > MAX_SIZE:
            raise HugeSizeError(f"{wanted} and below 2**63, got {size} for dimension {dimension}")
    return checked


def _open_size_hint(size: int) -> str:
    return "; only reshape may leave a size open with -1" if size == -1 else ""


# Text


class Scanner:
    """Walks through a text token by token; its errors show the character and say what was expected.

    White space is skipped, and so are comments, with which XLA numbers the elements of long tuples.
    """

    _SKIPPED = re.compile(r"(?:\s|/\*.*?\*/)*", re.DOTALL)
    _SHOWN = 60

    def __init__(self, text: str, kind: str) -> None:
        if not isinstance(text, str):
            raise InputError(f"the text of a {kind} must be a str, got {type(text).__name__}")
        self.text, self.kind, self.position = text, kind, 0

    def mark(self) -> int:
        """The position of the next token."""
        match = self._SKIPPED.match(self.text, self.position)
        self.position = match.end() if match else self.position
        return self.position

    def peek(self, token: str) -> bool:
        return self.text.startswith(token, self.mark())

    def accept(self, token: str) -> bool:
        """Whether `token` comes next; if so it is consumed."""
        is_there = self.peek(token)
        self.position += len(token) if is_there else 0
        return is_there

    def expect(self, *tokens: str) -> None:
        """Consume one of the `tokens`."""
        if not any(self.accept(token) for token in tokens):
            raise self.parse_error(" or ".join(map(repr, tokens)))

    def take(self, pattern: str, wanted: str) -> str:
        """Consume and return what the regular expression `pattern` matches."""
        match = re.compile(pattern).match(self.text, self.mark())
        if match is None:
            raise self.parse_error(wanted)
        self.position = match.end()
        return match[0]

    def integer(self, wanted: str) -> int:
        start = self.mark()
        digits = self.take("[0-9]+", wanted).lstrip("0") or "0"
        if len(digits) > len(str(MAX_SIZE)) or int(digits) > MAX_SIZE:
            raise self.error(f"{wanted} must be less than 2**63", start)
        return int(digits)

    def items(self, item: Callable[[], _T], *closers: str) -> tuple[_T, ...]:
        """The items between commas, up to one of the `closers`, which is not consumed."""
        items: list[_T] = []
        if not any(map(self.peek, closers)):
            items.append(item())
            while self.accept(","):
                items.append(item())
            if not any(map(self.peek, closers)):
                raise self.parse_error(" or ".join(map(repr, (",", *closers))))
        return tuple(items)

    def finish(self) -> None:
        if self.mark() < len(self.text):
            raise self.parse_error(f"the end of the {self.kind}")

    def parse_error(self, wanted: str) -> ParseError:
        at = self.mark()
        got = repr(self.text[at]) if at < len(self.text) else "the end of the text"
        return self.error(f"expected {wanted}, got {got}", at)

    def error(self, reason: str, position: int) -> ParseError:
        first = max(0, position - self._SHOWN)
        shown = re.sub(r"\s", " ", self.text[first : position + self._SHOWN])
        caret = " " * (position - first) + "^"
        return ParseError(
            f"cannot parse this {self.kind} at position {position}: {reason}\n  {shown}\n  {caret}"
        )


# Layouts


@dataclass(frozen=True, init=False, eq=False, repr=False, slots=True)
class Layout:
    """The order of an array's dimensions in linear memory, and their padding.

    `minor_to_major` is a permutation of 0 … rank-1: the first dimension named is the most minor, the
    last the most major.  `padded_dimensions` are the widths in memory, one for each dimension in the
    order of the dimension numbers; every offset beyond the array's own size holds `padding_value`,
    which is 0 unless given.  Raises ShapeError where these do not hold, InputError for a padding
    value that is no number.
    """

    minor_to_major: tuple[int, ...]
    padded_dimensions: tuple[int, ...] | None
    padding_value: PaddingValue | None

    def __init__(
        self,
        minor_to_major: Sizes,
        padded_dimensions: Sizes | None = None,
        padding_value: PaddingValue | np.number[Any] | np.bool_ | None = None,
    ) -> None:
        order = _check_permutation(minor_to_major)
        widths = None if padded_dimensions is None else _check_widths(padded_dimensions, len(order))
        if widths is None and padding_value is not None:
            raise ShapeError(f"padding_value {padding_value!r} has no effect without padded_dimensions")
        value = None if widths is None else _check_padding_value(padding_value)
        object.__setattr__(self, "minor_to_major", order)
        object.__setattr__(self, "padded_dimensions", widths)
        object.__setattr__(self, "padding_value", value)

    @classmethod
    def row_major(cls, rank: int) -> Layout:
        """The default: the last dimension is the most minor (C order)."""
        return cls(range(_check_rank(rank) - 1, -1, -1))

    @classmethod
    def column_major(cls, rank: int) -> Layout:
        """Dimension 0 is the most minor (Fortran order)."""
        return cls(range(_check_rank(rank)))

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> Layout | None:
        """The layout in which a NumPy array already lies; see `from_strides`."""
        return cls.from_strides(array.shape, array.strides, array.itemsize)

    @classmethod
    def from_strides(cls, dimensions: Sizes, strides: Sequence[int], itemsize: int) -> Layout | None:
        """The unpadded layout with these strides, counted in bytes as NumPy counts them.

        None when the elements do not fill one block of memory, each offset once: a broadcast, sliced or
        reversed view.  Dimensions of size 1 leave the order open, and an empty array leaves it open
        altogether; what is open is row-major: such a dimension goes just below the one before it.
        """
        sizes = check_sizes(dimensions)
        if len(strides) != len(sizes) or itemsize < 1:
            raise ShapeError(
                f"{len(sizes)} dimensions want as many strides and an itemsize >= 1, got "
                f"strides {tuple(strides)} and itemsize {itemsize}"
            )
        if 0 in sizes:
            return cls.row_major(len(sizes))
        major_to_minor = sorted((d for d in range(len(sizes)) if sizes[d] > 1), key=lambda d: -strides[d])
        step = itemsize
        for dimension in reversed(major_to_minor):
            if strides[dimension] != step:
                return None
            step *= sizes[dimension]
        for dimension in (d for d in range(len(sizes)) if sizes[d] == 1):
            position = major_to_minor.index(dimension - 1) + 1 if dimension else 0
            major_to_minor.insert(position, dimension)
        return cls(major_to_minor[::-1])

    @classmethod
    def parse(cls, text: str) -> Layout:
        """The layout that `str` prints as `text`, such as `{1,0}`; raises ParseError."""
        scanner = Scanner(text, "layout")
        layout = parse_layout(scanner)
        scanner.finish()
        return layout

    @property
    def rank(self) -> int:
        return len(self.minor_to_major)

    @property
    def major_to_minor(self) -> tuple[int, ...]:
        """The dimensions from the most major, which changes slowest, to the most minor."""
        return self.minor_to_major[::-1]

    def check(self, dimensions: Sizes) -> tuple[int, ...]:
        """`dimensions` as a tuple, if this layout fits them; else ShapeError says why not."""
        sizes = check_sizes(dimensions)
        if len(sizes) != self.rank:
            raise ShapeError(
                f"layout {self} orders {pluralize(self.rank, 'dimension')}, but {bracket(sizes)} has "
                f"{len(sizes)}; the default would be {Layout.row_major(len(sizes))}"
            )
        for dimension, (size, width) in enumerate(zip(sizes, self.padded_dimensions or sizes, strict=True)):
            if width < size:
                raise ShapeError(
                    f"layout {self} pads dimension {dimension} to {width}, which is less than "
                    f"its size {size} in {bracket(sizes)}"
                )
        return sizes

    def widths(self, dimensions: Sizes) -> tuple[int, ...]:
        """The number of elements that each dimension takes in memory: its size, or the width it is padded to."""
        sizes = self.check(dimensions)
        return sizes if self.padded_dimensions is None else self.padded_dimensions

    def allocated_size(self, dimensions: Sizes) -> int:
        """The number of elements of linear memory, with padding."""
        return math.prod(self.widths(dimensions))

    def strides(self, dimensions: Sizes) -> tuple[int, ...]:
        """The elements (not bytes) by which one step along each dimension moves in memory."""
        widths = self.widths(dimensions)
        strides, step = [0] * self.rank, 1
        for dimension in self.minor_to_major:
            strides[dimension] = step
            step *= max(widths[dimension], 1)
        return tuple(strides)

    def explain(self, dimensions: Sizes) -> str:
        """The order of memory as text: a drawing up to rank 2, and a table of strides for any rank."""
        sizes = self.check(dimensions)
        count, elements = self.allocated_size(sizes), math.prod(sizes)
        padding = f", {count - elements} of them padding (·)" if count > elements else ""
        title = f"layout {self} of {bracket(sizes)}: {pluralize(count, 'element')} in memory{padding}"
        drawing = _draw_offsets(self, sizes) if self.rank <= 2 else []
        return "\n".join([title, *drawing, *_draw_memory(self, sizes), *_stride_table(self, sizes)])

    def __str__(self) -> str:
        order = ",".join(map(str, self.minor_to_major))
        if self.padded_dimensions is None:
            return f"{{{order}}}"
        value = f"={self.padding_value!r}" if repr(self.padding_value) != "0" else ""
        return f"{{{order}:pad({','.join(map(str, self.padded_dimensions))}){value}}}"

    def __repr__(self) -> str:
        return f"Layout.parse({str(self)!r})"

    # The padding value by its text: 0 == -0.0, but they pad with other bits, and nan != nan, but a
    # layout that pads with nan is equal to itself.
    def _key(self) -> tuple[object, ...]:
        return self.minor_to_major, self.padded_dimensions, repr(self.padding_value)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Layout) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())


def parse_layout(scanner: Scanner) -> Layout:
    """The layout that starts at the scanner's position."""
    start = scanner.mark()
    widths, value = None, None
    scanner.expect("{")
    order = scanner.items(lambda: scanner.integer("a dimension number"), "}", ":")
    if scanner.accept(":"):
        scanner.expect("pad(")
        widths = scanner.items(lambda: scanner.integer("a padded size"), ")")
        scanner.expect(")")
        value = _parse_number(scanner) if scanner.accept("=") else None
    scanner.expect("}")
    try:
        return Layout(order, widths, value)
    except ShapeError as error:
        raise scanner.error(str(error), start) from error


def _parse_number(scanner: Scanner) -> PaddingValue:
    start = scanner.mark()
    text = scanner.take(r"[-+.0-9a-z()]{1,64}", "a padding value")
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    raise scanner.error(f"{text!r} is not a number", start)


def _check_permutation(minor_to_major: Sizes) -> tuple[int, ...]:
    wanted = "minor_to_major must be a sequence of integers"
    order = tuple(integer_of(dimension, ShapeError, wanted) for dimension in items_of(minor_to_major))
    if sorted(order) != list(range(len(order))):
        raise ShapeError(
            f"minor_to_major must name each dimension 0 … {len(order) - 1} once, got {order}; "
            f"the default is {tuple(range(len(order)))[::-1]}"
        )
    return order


def _check_rank(rank: int) -> int:
    wanted = "rank must be an integer >= 0"
    number = integer_of(rank, ShapeError, wanted)
    if number < 0:
        raise ShapeError(f"{wanted}, got {number}")
    return number


def _check_widths(padded_dimensions: Sizes, rank: int) -> tuple[int, ...]:
    widths = check_sizes(padded_dimensions, name="padded_dimensions")
    if len(widths) != rank:
        raise ShapeError(
            f"padded_dimensions must have one width for each of the {pluralize(rank, 'dimension')} "
            f"in minor_to_major, got {pluralize(len(widths), 'width')}: {widths}"
        )
    return widths


def _check_padding_value(value: object) -> PaddingValue:
    """`value` as the plainest Python number that has its bits: 1 for True and 1.0, but not for -0.0."""
    number = value.item() if isinstance(value, _numpy_type("generic")) else 0 if value is None else value
    if not isinstance(number, int | float | complex):
        raise InputError(f"padding_value must be a number, got {value!r} of type {type(value).__name__}")
    if isinstance(number, float) and number.is_integer() and abs(number) < 2**53 and repr(number) != "-0.0":
        return int(number)
    if isinstance(number, int) and not -MAX_SIZE - 1 <= number < 2**64:
        raise ShapeError(f"padding_value has {number.bit_length()} bits, which is more than 64")
    return int(number) if isinstance(number, bool) else number


def index_at(offset: int, widths: Sequence[int], minor_to_major: Sequence[int]) -> tuple[int, ...]:
    """The multi-index at an offset in linear memory, which may lie in the padding."""
    index = [0] * len(widths)
    for dimension in minor_to_major:
        offset, index[dimension] = divmod(offset, widths[dimension])
    return tuple(index)


# Drawings


def bracket(sizes: Iterable[int]) -> str:
    return f"[{','.join(map(str, sizes))}]"


def _align_columns(rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of right-aligned columns, indented by two."""
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows, strict=True)]
    return [
        ("  " + "  ".join(f"{cell!s:>{width}}" for cell, width in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def _draw_offsets(layout: Layout, sizes: tuple[int, ...]) -> list[str]:
    """The array of rank <= 2 as a grid, with each element's offset in memory; cut off at 8 by 12."""
    (rows, columns), (row_step, column_step), (row_end, column_end) = (
        ((1, 1, *numbers)[-2:]) for numbers in (layout.widths(sizes), layout.strides(sizes), sizes)
    )
    if 0 in (rows, columns):
        return []
    grid: list[list[int | str]] = [
        [
            row * row_step + column * column_step if row < row_end and column < column_end else "·"
            for column in range(min(columns, 12))
        ]
        + ["…"] * (columns > 12)
        for row in range(min(rows, 8))
    ]
    grid += [["…"] * len(grid[0])] * (rows > 8)
    axes = ("", " (dimension 0 across)", " (dimension 0 down, dimension 1 across)")[layout.rank]
    return [f"offset of each element{axes}:", *_align_columns(grid)]


def _draw_memory(layout: Layout, sizes: tuple[int, ...]) -> list[str]:
    """The multi-indices in the order of memory; cut off after 16."""
    count, widths = layout.allocated_size(sizes), layout.widths(sizes)
    indices = [index_at(offset, widths, layout.minor_to_major) for offset in range(min(count, 16))]
    cells = [
        f"({','.join(map(str, index))})" if all(map(operator.lt, index, sizes)) else "·" for index in indices
    ]
    return (
        ["memory, from the first element on:", "  " + " ".join(cells + ["…"] * (count > 16))] if cells else []
    )


def _stride_table(layout: Layout, sizes: tuple[int, ...]) -> list[str]:
    if not sizes:
        return []
    letters = DIMENSION_LETTERS.get(layout.rank, ("",) * layout.rank)
    ends = {layout.minor_to_major[0]: "most minor", layout.major_to_minor[0]: "most major"}
    remarks = [ends.get(dimension, "") if layout.rank > 1 else "" for dimension in range(layout.rank)]
    names = [f"{dimension} {letter}".strip() for dimension, letter in enumerate(letters)]
    columns = [names, sizes, layout.widths(sizes), layout.strides(sizes), remarks]
    return _align_columns([("dimension", "size", "width", "stride", ""), *zip(*columns, strict=True)])
