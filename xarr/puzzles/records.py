"""A puzzle as data: its arrays, the loops that say what is wanted, rules, a solution, and answers that are wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Rule: TypeAlias = Literal["nothing implicit", "one op", "one broadcast", "no reshape", "few elements"]

#: What each rule asks, for those who solve.
RULES: dict[Rule, str] = {
    "nothing implicit": 'it runs under xarr.config(broadcasting="explicit")',
    "one op": "it records one op beside broadcasts",
    "one broadcast": "it broadcasts one operand at most",
    "no reshape": "it reshapes and transposes nothing",
    "few elements": "it reads and writes no more elements than the best known answer",
}

#: Why an answer does not pass.
Reason: TypeAlias = Literal["does not run", "kind", "shape", "dtype", "values", "rule"]


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array of a puzzle: its sizes as names and numbers (`m 1`), its element type, and for an index its limit."""

    name: str
    sizes: str
    dtype: str = "float64"
    below: str | None = None


@dataclass(frozen=True, slots=True)
class Wrong:
    """An answer that one might give, and why it does not pass."""

    answer: str
    reason: Reason


@dataclass(frozen=True, slots=True, repr=False)
class Puzzle:
    """One puzzle.  `wanted` is Python that computes `result` from the arrays and sizes, loop by loop.

    An answer is an expression of the arrays; of a `shape` puzzle a tuple of their sizes' names, and `result` is that
    tuple.  `shown` is code that the task is about, if there is one.
    """

    number: int
    chapter: str
    title: str
    task: str
    arrays: tuple[ArraySpec, ...]
    wanted: str
    solution: str
    wrong: tuple[Wrong, ...]
    rules: tuple[Rule, ...] = ()
    shown: str = ""
    is_shape: bool = False

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the sizes, in the order in which they occur."""
        words = " ".join(array.sizes for array in self.arrays).replace("*", " ").replace("+", " ").split()
        return tuple(dict.fromkeys(word for word in words if word.isidentifier()))

    def text(self) -> str:
        """The task in full: the arrays, the loops, the rules."""
        arrays = "   ".join(f"{a.name}: {a.dtype}[{', '.join(a.sizes.split())}]" for a in self.arrays)
        lines = [
            f"puzzle {self.number}: {self.title}   (chapter {self.chapter})",
            "",
            self.task,
            "",
            f"  {arrays}",
        ]
        if not self.is_shape:
            lines += ["", *(f"  {line}" for line in self.wanted.rstrip().split("\n"))]
        if self.rules:
            lines += ["", *(f"  rule “{rule}”: {RULES[rule]}" for rule in self.rules)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


_DISTINCT: Final = ((3, 4, 2, 5, 6), (5, 2, 3, 4, 7))


def draw_sizes(puzzle: Puzzle) -> Iterator[dict[str, int]]:
    """The sizes that an answer is tried on: distinct ones first, then equal ones, then 1 and 0 among others."""
    names = puzzle.sizes
    for sizes in _DISTINCT:
        yield dict(zip(names, sizes, strict=False))
    yield from (dict.fromkeys(names, size) for size in (2, 3, 1))
    for small in (1, 0):
        for name in names:
            yield {**dict(zip(names, _DISTINCT[0], strict=False)), name: small}
    yield dict.fromkeys(names, 0)


def shape_of(spec: ArraySpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an array: each word is a size, a number, or `2*m` or `n+2`."""
    return tuple(eval(word, {"__builtins__": {}}, dict(sizes)) for word in spec.sizes.split())
