"""`explain_dtype`: which element type operands are promoted to, on which path, and what the conversions lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np

from xarr.base.canvas import Canvas
from xarr.base.host_arrays import is_weak, scalar_kind
from xarr.calls.operands import promoted_type
from xarr.dtypes import FLOAT, TABLE, canonical, element_type, info, promote
from xarr.errors import DTypeError, InputError
from xarr.explainers.operands import dtype_named
from xarr.explanation.broadcast_code import Suggestion, list_words
from xarr.explanation.broadcast_facts import check_names
from xarr.explanation.sheet import Cell, Listing, Sheet
from xarr.explanation.steps import PictureStep
from xarr.explanation.svg import MARGIN
from xarr.runtime.handles import Handle

DType = np.dtype[Any]

#: The types of the picture, by column: each is above those that it is promoted from.
_LATTICE: Final = (
    ("bool",),
    ("uint8", "int8"),
    ("uint16", "int16", "float16", "bfloat16"),
    ("uint32", "int32", "float32"),
    ("uint64", "int64", "float64", "complex64"),
    ("complex128",),
)
_SHOWN: Final = tuple(canonical(name) for column in _LATTICE for name in column)
_ROWS: Final = {"unsigned": 0, "signed": 1, "float": 2, "bfloat16": 3, "complex": 4, "bool": 1}
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 86.0, 24.0, 122.0, 46.0


@dataclass(frozen=True)
class DTypeOperand:
    """An operand: its name, and its element type, or the kind of a Python number (`weak`), which gives way.

    `value` is the number, where it is known.
    """

    name: str
    dtype: DType | None
    weak: type[Any] | None = None
    value: Any = None

    @property
    def label(self) -> str:
        return str(self.dtype) if self.weak is None else f"Python {self.weak.__name__}"


@dataclass(frozen=True, repr=False)
class DTypeExplanation(Sheet):
    """The element type that operands are promoted to, or why there is none: one object, several views."""

    operands: tuple[DTypeOperand, ...]

    @cached_property
    def _outcome(self) -> tuple[DType | None, str | None]:
        """The type, or why there is none."""
        types = [operand.weak or operand.dtype for operand in self.operands]
        try:
            return promoted_type([each for each in types if each is not None]), None
        except DTypeError as error:
            return None, str(error)

    @property
    def result(self) -> DType | None:
        """The type that all are promoted to; None if there is none."""
        return self._outcome[0]

    @property
    def headline(self) -> str:
        operands = ", ".join(f"{operand.name}: {operand.label}" for operand in self.operands)
        return f"promote {operands}   ->  {self.result or 'no common type'}"

    def problems(self) -> tuple[str, ...]:
        return () if self._outcome[1] is None else (self._outcome[1],)

    def fixes(self) -> tuple[Suggestion, ...]:
        """The conversions to each type that holds all of them; where there is none, to each other's."""
        if self.result is not None:
            return ()
        rows = []
        for target in dict.fromkeys(
            [*(o.dtype for o in self.operands if o.dtype is not None), np.dtype(np.float32)]
        ):
            others = [o for o in self.operands if o.dtype is not None and o.dtype != target]
            call = ", ".join(f"{o.name}.astype({str(target)!r})" for o in others)
            rows.append(Suggestion(call, None, str(target)))
        return tuple(rows)

    def path(self, operand: DTypeOperand) -> tuple[DType, ...]:
        """The types from an operand's to the result, by the steps of the picture; at most the two ends."""
        if operand.dtype is None or self.result is None:
            return ()
        return _path(operand.dtype, self.result)

    def steps(self) -> tuple[PictureStep, ...]:
        """The types of the operands, then edge by edge the path to the result."""
        if self.result is None:
            return ()
        started = list_words([f"{operand.name} is {operand.label}" for operand in self.operands])
        begins = tuple(str(operand.dtype) for operand in self.operands if operand.dtype is not None)
        paths = [(operand.name, self.path(operand)) for operand in self.operands]
        longest = max(len(path) for _, path in paths)
        edges = [self._edge(number, paths) for number in range(1, longest)]
        losses = [f"{operand.name}: {loss}" for operand in self.operands if (loss := self.loss(operand))]
        end = PictureStep(str(self.result), "; ".join([self.why, *losses]), lights=(str(self.result),))
        return (PictureStep("operands", started, lights=begins), *edges, end)

    def _edge(self, number: int, paths: Sequence[tuple[str, tuple[DType, ...]]]) -> PictureStep:
        """The edge that each operand takes at a time, with what the type at its end holds."""
        edges = [(name, path[number - 1], path[number]) for name, path in paths if number < len(path)]
        words = [f"{name}: {low} -> {high}, {_range(high)}" for name, low, high in edges]
        ends = [key for _, low, high in edges for key in (str(low), str(high))]
        drawn = tuple(f"{low} {high}" for _, low, high in edges)
        return PictureStep(f"edge {number}", "; ".join(words), shows=drawn, lights=tuple(ends))

    def table(self) -> tuple[tuple[Cell, ...], ...]:
        rows: list[tuple[Cell, ...]] = [
            (Cell("operand"), Cell("type"), Cell("holds"), Cell("becomes"), Cell("loses"))
        ]
        for operand in self.operands:
            is_same = operand.dtype is not None and operand.dtype == self.result
            becomes = "" if self.result is None else "itself" if is_same else str(self.result)
            loses = self.loss(operand)
            cells = (
                Cell(operand.label),
                Cell(_range(operand.dtype)),
                Cell(becomes),
                Cell(loses, "clash" if loses else ""),
            )
            rows.append((Cell(operand.name), *cells))
        return tuple(rows)

    def loss(self, operand: DTypeOperand) -> str:
        """The values that the conversion of an operand rounds or refuses; nothing where it is exact."""
        result = self.result
        is_whole = result is not None and element_type(result).kind in ("signed", "unsigned")
        if type(operand.value) is int and result is not None and is_whole:
            limits = info(result)
            if not limits.min <= operand.value <= limits.max:
                return f"{operand.value} is out of bounds: an error"
        if operand.dtype is None or self.result is None or operand.dtype == self.result:
            return ""
        own, target = element_type(operand.dtype), element_type(self.result)
        if own.kind in ("signed", "unsigned") and target.kind in ("float", "complex"):
            digits = _digits(self.result)
            if own.bits - (own.kind == "signed") > digits:
                return f"integers beyond 2**{digits} are rounded"
        return ""

    @property
    def why(self) -> str:
        """A sentence on the result."""
        strong = [operand for operand in self.operands if operand.weak is None]
        if self.result is None:
            return "there is no type that both convert to without being told"
        if any(operand.weak for operand in self.operands) and strong:
            if {operand.dtype for operand in strong} == {self.result}:
                return f"the Python number gives way: it takes {self.result}, the type of the array"
            return f"the kind of the Python number is higher, so that the result is {self.result}"
        if self.result in {operand.dtype for operand in strong}:
            return f"{self.result} is the smallest type to which all convert, and one of them"
        return f"{self.result} is the smallest type to which all convert; none of them is it"

    def codes(self) -> tuple[Listing, ...]:
        if self.result is None:
            return ()
        converted = [o for o in self.operands if o.dtype is not None and o.dtype != self.result]
        lines = [f"{o.name}1 = lax.convert_element_type({o.name}, {str(self.result)!r})" for o in converted]
        lines += [
            f"{o.name}1 = lax.full((), {o.name}, {str(self.result)!r})" for o in self.operands if o.weak
        ]
        types = ", ".join(
            str(o.dtype) if o.dtype is not None else o.weak.__name__ if o.weak else "" for o in self.operands
        )
        numpy = f"result_type({types})"
        return (Listing("NumPy", numpy), Listing("explicit", "\n".join(lines) or "# nothing to convert"))

    def notes(self) -> tuple[tuple[str, str], ...]:
        # Where there is a type, the last step says so.
        return (("why", self.why),) if self.result is None else ()

    def facts(self) -> dict[str, Any]:
        return {
            "operands": [
                {
                    "name": operand.name,
                    "dtype": None if operand.dtype is None else str(operand.dtype),
                    "weak": None if operand.weak is None else operand.weak.__name__,
                    "path": [str(each) for each in self.path(operand)],
                    "loses": self.loss(operand),
                }
                for operand in self.operands
            ],
            "result": None if self.result is None else str(self.result),
            "why": self.why,
            "problems": list(self.problems()),
        }

    def draw(self, canvas: Canvas, top: float) -> float:
        """The lattice of types with the paths of the operands; types that are not in it stand below."""
        for low, high in _edges():
            _draw_step(canvas, low, high, top, "d", is_faint=True)
        for operand in self.operands:
            for low, high in pairwise(self.path(operand)):
                if low in _SHOWN and high in _SHOWN:
                    _draw_step(canvas, low, high, top, f"s{canvas.marks.get(f'{low} {high}', '')}")
        for dtype in _SHOWN:
            x, y = _corner(dtype, top)
            numbers = [
                n
                for n, operand in enumerate(self.operands)
                if operand.dtype is not None and operand.dtype == dtype
            ]
            is_result = self.result is not None and dtype == self.result
            style = "c or" if is_result else f"c o{numbers[0] % 5}" if numbers else "c"
            style += canvas.marks.get(str(dtype), "")
            canvas.box(x, y, _WIDTH, _HEIGHT, style, str(dtype), _range(dtype))
            names = ", ".join(self.operands[n].name for n in numbers)
            names += (", " if names else "") + "result" if is_result else ""
            if names:
                canvas.text(x, y - 4, names, "t", 13)
        y = top + 5 * _DOWN + 26
        others = [o for o in self.operands if o.dtype is None or o.dtype not in _SHOWN]
        for number, operand in enumerate(others):
            canvas.text(MARGIN, y + 18 * number, f"{operand.name}: {operand.label}", "d")
        return y + 18 * len(others)


def _corner(dtype: DType, top: float) -> tuple[float, float]:
    column = next(n for n, names in enumerate(_LATTICE) if str(dtype) in names)
    row = _ROWS["bfloat16" if str(dtype) == "bfloat16" else element_type(dtype).kind]
    return MARGIN + column * _ACROSS, top + 18 + row * _DOWN


def _draw_step(
    canvas: Canvas, low: DType, high: DType, top: float, style: str, is_faint: bool = False
) -> None:
    """A line from the right edge of a type to the left edge of the next, or down to one of its own column."""
    (x, y), (right, below) = _corner(low, top), _corner(high, top)
    start = (x + _WIDTH, y + _HEIGHT / 2) if right > x else (x + _WIDTH * 0.8, y + _HEIGHT)
    end = (right, below + _HEIGHT / 2) if right > x else (right + _WIDTH * 0.8, below)
    canvas.line(*start, end[0] - start[0], end[1] - start[1], "g" if is_faint else style)


@lru_cache(maxsize=1)
def _edges() -> tuple[tuple[DType, DType], ...]:
    """The pairs of types without one between them, among those of the picture."""
    above = {low: [high for high in _SHOWN if high != low and _converts(low, high)] for low in _SHOWN}
    return tuple(
        (low, high)
        for low in _SHOWN
        for high in above[low]
        if not any(high in above[middle] for middle in above[low])
    )


def _converts(low: DType, high: DType) -> bool:
    """Whether the two are promoted to the second; integers to bfloat16, which is xarr's own rule, are left out."""
    if str(high) == "bfloat16" and low.kind in "biu":
        return False
    try:
        return promote(low, high) == high
    except DTypeError:
        return False


@lru_cache(maxsize=1024)
def _path(start: DType, end: DType) -> tuple[DType, ...]:
    """The shortest chain of steps of the picture; both ends alone where there is none."""
    paths: list[tuple[DType, ...]] = [(start,)]
    while paths:
        if any(path[-1] == end for path in paths):
            return next(path for path in paths if path[-1] == end)
        paths = [(*path, high) for path in paths for low, high in _edges() if low == path[-1]]
    return (start, end)


def _digits(dtype: DType) -> int:
    """The binary digits up to which integers are exact in a float or in the parts of a complex number."""
    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    return int(info(real).nmant) + 1


def _range(dtype: DType | None) -> str:
    """The numbers that a type holds, in a word."""
    if dtype is None:
        return "what the other type holds"
    row = element_type(dtype)
    if row.kind == "bool":
        return "True, False"
    if row.kind in ("signed", "unsigned"):
        power = row.bits - (row.kind == "signed")
        return f"{'-2**' + str(power) if row.kind == 'signed' else 0} … 2**{power} - 1"
    word = f"{_digits(dtype)} binary digits"
    if dtype in FLOAT:
        return f"{word}, up to {float(info(dtype).max):.3g}"
    return f"two parts of {word}" if row.kind == "complex" else word


def explain_dtype(*operands: Any, names: Sequence[str] | None = None) -> DTypeExplanation:
    """Explain which element type operands are promoted to, and what the conversions lose.

    Operands are arrays, element types, their names ("int8", "f32"), Python numbers, or int, float, complex and bool
    as written in a program: the last two give way to the types of arrays.

    Raises InputError for no operand, DTypeError for what is no element type.  Types without a common one are no error
    here: the explanation says why.
    """
    if not operands:
        raise InputError("explain_dtype: wanted at least one array, element type or Python number, got none")
    called = check_names("explain_dtype", names, len(operands))
    return DTypeExplanation(tuple(_operand(name, each) for name, each in zip(called, operands, strict=True)))


def _operand(name: str, argument: Any) -> DTypeOperand:
    if argument in (bool, int, float, complex) if isinstance(argument, type) else False:
        return DTypeOperand(name, None, argument)
    if isinstance(argument, Handle):
        weak = argument._weak
        return DTypeOperand(name, None if weak else argument.dtype, weak)  # type: ignore[attr-defined]
    if is_weak(argument):
        return DTypeOperand(name, None, scalar_kind(argument), argument)
    if isinstance(argument, np.ndarray):
        return DTypeOperand(name, canonical(argument.dtype))
    return DTypeOperand(name, dtype_named(argument) if isinstance(argument, str) else canonical(argument))


#: The names of XLA and of NumPy of every element type.
ELEMENT_TYPES: Final = frozenset(name for row in TABLE for name in (row.xla, str(row.dtype)))


def names_type(text: str) -> bool:
    """Whether a word is the name of an element type, or of a kind of Python number."""
    return text in ELEMENT_TYPES or text in ("int", "float", "complex") or _is_alias(text)


def _is_alias(text: str) -> bool:
    return text[:1] == "i" and f"s{text[1:]}" in ELEMENT_TYPES
