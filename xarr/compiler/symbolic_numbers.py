"""Numbers that stand for others: what is made of them is known for all numbers that answer the same questions alike.

What is made of some integers, such as loops of sizes and offsets, hangs on them by arithmetic and by questions: whether
one is less than 64, or equal to another.  A `SymbolicNumber` stands for an integer and computes with expressions, and a
`NumberTrace` notes each question and the answer.  For other integers with the same answers the same code would have
gone the same way, so that they give what the expressions give.  An integer of which more is asked, such as its digits,
is taken to be asked whether it is the one that it is: then the trace holds for no other.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from math import inf, nan
from typing import Any, Final

import numpy as np

#: Integers that always stand for themselves.
LITERAL: Final = range(-2, 3)
#: Tells the hashes of numbers of one trace from those of other traces.
_traces: Final = count(1)

_NAME: Final = re.compile(r"\bn\d+\b")

#: From the integers of a trace to what was asked for; None where an answer is another one.
Follow = Callable[..., tuple[Any, ...] | None]


class NumberTrace:
    """Computations with some integers, and questions that are asked of them, in order; `inputs` stand for these.

    literals: the integers that as keys are what they are, whether they are computed or not.
    """

    def __init__(self, numbers: Iterable[int], literals: range = LITERAL) -> None:
        self.literals = literals
        self._salt = next(_traces)
        #: Expressions with the names that they get, and questions with none.
        self._lines: list[tuple[str, str]] = []
        self._asked: set[str] = set()
        self._known: dict[str, SymbolicNumber] = {}
        #: The names of numbers that were keys, by what they stand for.
        self._keys: dict[Any, str] = {}
        self.inputs = [SymbolicNumber(self, f"n{k}", number) for k, number in enumerate(numbers)]

    def compute(self, expression: str, value: Any) -> SymbolicNumber:
        """The number that an expression gives, which is this one here."""
        known = self._known.get(expression)
        if known is None:
            known = SymbolicNumber(self, f"n{len(self.inputs) + len(self._known)}", value)
            self._known[expression] = known
            self._lines.append((known.name, expression))
        return known

    def ask(self, question: str, answer: Any) -> bool:
        """Note the answer to a question."""
        if question not in self._asked:
            self._asked.add(question)
            self._lines.append(("", f"if {'not ' if answer else ''}({question}): return None"))
        return bool(answer)

    def hash_of(self, number: SymbolicNumber) -> int:
        """The hash of a number, which differs from all other keys of the trace as much as it does here."""
        first = self._keys.setdefault(number.value, number.name)
        if first != number.name:
            self.ask(f"{first} == {number.name}", True)
        return hash((self._salt, number.value))

    def follow(self, results: Sequence[Any]) -> Follow:
        """A function from integers in place of the inputs to what the results are then, plain ones as they are."""
        last = []
        if self._keys:
            different = [*self._keys.values(), *map(str, self.literals)]
            last.append(f"if len({{{', '.join(different)}}}) != {len(different)}: return None")
        values = [each.name if type(each) is SymbolicNumber else repr(each) for each in results]
        last.append(f"return ({''.join(f'{value}, ' for value in values)})")
        lines, wanted = last[::-1], set(_NAME.findall("".join(last)))
        for name, text in reversed(self._lines):
            if not name or name in wanted:
                lines.append(f"{name} = {text}" if name else text)
                wanted.update(_NAME.findall(text))
        lines.append(f"def follow({', '.join(each.name for each in self.inputs)}):")
        scope: dict[str, Any] = {"inf": inf, "nan": nan}
        exec("\n    ".join(lines[::-1]), scope)
        made: Follow = scope["follow"]
        return made

    def forget(self) -> None:
        """Let go of what was noted, since numbers in types, and what is made of them, know their trace."""
        for noted in (self._lines, self._asked, self._known):
            noted.clear()


class SymbolicNumber:
    """A number of a trace, `value` in what is traced: an int, or a float made of some, for all that asks.

    As a key of a table it is another one than plain numbers, but for the literals of its trace.
    """

    __slots__ = ("hash", "name", "trace", "value")
    #: NumPy's numbers leave operations to this class.
    __array_ufunc__ = None

    def __init__(self, trace: NumberTrace, name: str, value: Any) -> None:
        self.hash: int | None = None
        self.trace = trace
        self.name = name
        self.value = value

    # What `isinstance` asks of objects whose type says no.
    __class__ = property(lambda self: type(self.value))

    def ask_value(self) -> Any:
        """The number itself, after which the trace holds for no other."""
        self.trace.ask(f"{self.name} == {self.value!r}", True)
        return self.value

    def __hash__(self) -> int:
        if self.hash is None:  # tables of types ask again when the interpreter has ended
            is_plain = self.value in self.trace.literals or type(self.value) is not int
            self.hash = hash(self.ask_value()) if is_plain else self.trace.hash_of(self)
        return self.hash

    def __bool__(self) -> bool:
        return self.trace.ask(self.name, bool(self.value))

    def bit_length(self) -> Any:
        return self.trace.compute(f"{self.name}.bit_length()", self.value.bit_length())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ask_value(), name)


def _operand(number: SymbolicNumber, other: Any) -> tuple[str, Any] | None:
    """The name or digits of a number in expressions, and the number; None for what is none."""
    if type(other) is SymbolicNumber:
        return (
            (other.name, other.value)
            if other.trace is number.trace
            else (repr(other.ask_value()), other.value)
        )
    if isinstance(other, np.generic):
        other = other.item()
    return (repr(other), other) if isinstance(other, int | float) else None


def _compute_by(sign: str, function: Callable[[Any, Any], Any], is_turned: bool) -> Callable[..., Any]:
    def compute(self: SymbolicNumber, other: Any) -> Any:
        operand = _operand(self, other)
        if operand is None:
            return NotImplemented
        name, value = operand
        if is_turned:
            return self.trace.compute(f"{name} {sign} {self.name}", function(value, self.value))
        return self.trace.compute(f"{self.name} {sign} {name}", function(self.value, value))

    return compute


def _compute_alone(sign: str, function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda self: self.trace.compute(f"{sign}({self.name})", function(self.value))


def _ask_by(sign: str, function: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def ask(self: SymbolicNumber, other: Any) -> Any:
        operand = _operand(self, other)
        if operand is None:
            return NotImplemented
        return self.trace.ask(f"{self.name} {sign} {operand[0]}", function(self.value, operand[1]))

    return ask


def _ask_all(name: str) -> Callable[..., Any]:
    def ask(self: SymbolicNumber, *others: Any) -> Any:
        known = [each.ask_value() if type(each) is SymbolicNumber else each for each in others]
        return getattr(self.ask_value(), name)(*known)

    return ask


_BINARY: Final = {
    **{"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod", "/": "truediv"},
    **{"<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor"},
}
_QUESTIONS: Final = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_UNARY: Final = {"-": "neg", "+": "pos", "~": "invert", "abs": "abs"}

for _sign, _word in _BINARY.items():
    _function = getattr(operator, f"__{_word}__")
    setattr(SymbolicNumber, f"__{_word}__", _compute_by(_sign, _function, is_turned=False))
    setattr(SymbolicNumber, f"__r{_word}__", _compute_by(_sign, _function, is_turned=True))
for _sign, _word in _QUESTIONS.items():
    setattr(SymbolicNumber, f"__{_word}__", _ask_by(_sign, getattr(operator, _word)))
for _sign, _word in _UNARY.items():
    setattr(SymbolicNumber, f"__{_word}__", _compute_alone(_sign, getattr(operator, _word)))
for _word in (
    "ceil", "divmod", "float", "floor", "format", "index", "int",
    "pow", "rdivmod", "repr", "round", "rpow", "str", "trunc",
):  # fmt: skip
    setattr(SymbolicNumber, f"__{_word}__", _ask_all(f"__{_word}__"))
