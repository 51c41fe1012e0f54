"""The facts of one broadcast, before any view of it: operands, outcome, cells of the axis table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from xarr.base.broadcasting import Alignment, Dimensions, Misfit, Shape
from xarr.errors import InputError
from xarr.explanation.notation import Operator, element_bytes, operator_named, term

if TYPE_CHECKING:  # shapes are explained without NumPy, which values alone need
    from numpy.typing import NDArray

_LETTERS: Final = "abcdefgh"
Kind: TypeAlias = Literal["match", "new", "stretched", "clash"]


@dataclass(frozen=True)
class Operand:
    """An operand, or the result: how it is called, its shape, its dtype and small values, if known."""

    name: str
    shape: Shape
    dtype: str | None = None
    values: NDArray[Any] | None = field(default=None, compare=False, repr=False)

    @property
    def reference(self) -> str:
        """The name as part of an expression: in parentheses where it is an expression itself."""
        return term(self.name)

    @property
    def label(self) -> str:
        """`f32[5,1]`, or `(5, 1)` if the dtype is not known."""
        return str(self.shape) if self.dtype is None else f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int | None:
        each = None if self.dtype is None else element_bytes(self.dtype)
        return None if each is None else each * self.size

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "shape": list(self.shape), "dtype": self.dtype}


@dataclass(frozen=True, slots=True)
class AxisCell:
    """One operand on one axis of the result: its own size (None if it lacks the axis), and what happens."""

    kind: Kind
    size: int | None
    target: int | None


@dataclass(frozen=True)
class BroadcastFacts:
    """One op on operands of given shapes, and how they align.

    `problem` says why the op is refused although the shapes may align: a constraint of the explicit
    rule, or the strictness in force.  A Misfit without clashes has no alignment to draw a table of.
    """

    op: str
    operands: tuple[Operand, ...]
    outcome: Alignment | Misfit
    problem: str | None = None
    result_dtype: str | None = None
    is_explicit: bool = False
    result_values: NDArray[Any] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def operator(self) -> Operator:
        return operator_named(self.op)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(operand.name for operand in self.operands)

    @property
    def terms(self) -> tuple[str, ...]:
        """The names as parts of an expression."""
        return tuple(map(term, self.names))

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return tuple(operand.shape for operand in self.operands)

    @property
    def alignment(self) -> Alignment | None:
        """The alignment of the operands; None if they do not align."""
        return self.outcome if isinstance(self.outcome, Alignment) else None

    @cached_property
    def result(self) -> Operand | None:
        """The result under a name that no operand has; None if there is none."""
        if self.alignment is None:
            return None
        free = chain(("result", "out"), (f"result_{i}" for i in count()))
        name = next(name for name in free if name not in self.names)
        return Operand(name, self.alignment.result, self.result_dtype, self.result_values)

    @property
    def same_dtype(self) -> bool:
        """Whether the operands may have one dtype, as far as is known; the predicate of `where` is apart."""
        data = self.operands[1:] if self.operator.name == "where" else self.operands
        return len({operand.dtype for operand in data}) == 1

    @property
    def rank(self) -> int:
        return max(len(shape) for shape in self.shapes)

    @property
    def has_table(self) -> bool:
        """Whether the operands can be laid along common axes (clashing ones included)."""
        return self.alignment is not None or bool(self.clashing_axes)

    @property
    def clashing_axes(self) -> tuple[int, ...]:
        return () if isinstance(self.outcome, Alignment) else tuple(c.axis for c in self.outcome.clashes)

    def dimensions(self, operand: int) -> Dimensions:
        """The axis of the table under which each axis of the operand stands."""
        if isinstance(self.outcome, Alignment):
            return self.outcome.dimensions[operand]
        return tuple(range(self.rank - len(self.shapes[operand]), self.rank))

    def row(self, operand: int) -> tuple[AxisCell, ...]:
        """The operand's row of the axis table, one cell per axis of the result."""
        placed = dict(zip(self.dimensions(operand), self.shapes[operand], strict=True))
        return tuple(self._cell(axis, placed.get(axis)) for axis in range(self.rank))

    def _cell(self, axis: int, size: int | None) -> AxisCell:
        target = None if self.alignment is None else self.alignment.result[axis]
        if size is None:
            return AxisCell("new", None, target)
        if axis in self.clashing_axes and size != 1:
            return AxisCell("clash", size, None)
        return AxisCell("match" if target is None or size == target else "stretched", size, target)

    @cached_property
    def rows(self) -> tuple[tuple[AxisCell, ...], ...]:
        return tuple(self.row(i) for i in range(len(self.operands)))


# --- names ----------------------------------------------------------------------------------------


def check_name(function: str, name: object, what: str = "name") -> str:
    """The name of an operand, as views can show it; InputError for what is no text."""
    if not isinstance(name, str):
        got = f"{name!r} of type {type(name).__name__}"
        raise InputError(f'{function}: wanted text such as "x" for {what}, got {got}')
    return clean_text(name)


def check_names(function: str, names: object, count: int) -> list[str]:
    """The names of so many operands: a, b, c … for None; InputError for others, and for another number of them."""
    if names is None:
        return letters_of(count)
    if not isinstance(names, Sequence):
        example = ", ".join(f'"{letter}"' for letter in letters_of(min(count, 3)))
        got = f"{names!r} of type {type(names).__name__}"
        raise InputError(
            f"{function}: wanted a list of {count} names such as [{example}] for names, got {got}"
        )
    if len(names) != count:
        raise InputError(f"{function}: wanted {count} names, one for each operand, got {len(names)}")
    return [check_name(function, name, f"names[{at}]") for at, name in enumerate(names)]


def letters_of(number: int) -> list[str]:
    """Names for operands that have none: a, b, c …"""
    return list(_LETTERS[:number]) if number <= len(_LETTERS) else [f"x{i}" for i in range(number)]


def clean_text(text: str) -> str:
    """The text on one line and free of control characters, which no view could show."""
    return (
        "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split())) or "_"
    )
