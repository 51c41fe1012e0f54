"""A program as statements on named arrays of fixed types, and its text in Python.

Whatever statement or part of an expression is taken out, what remains is a program: a loop carries what its block gives
new values, and names without new values are captured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple


class Type(NamedTuple):
    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def row(self) -> Type:
        """The type of an element along the first dimension."""
        return Type(self.dtype, self.shape[1:])


@dataclass(frozen=True)
class Expr:
    """Text of a type; `{0}`, `{1}` … of the template are the parts."""

    template: str
    type: Type
    parts: tuple[Expr, ...] = ()

    def __str__(self) -> str:
        return self.template.format(*self.parts)

    def walk(self) -> Iterator[Expr]:
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True)
class Let:
    """A new value of the array `target`; with `as_it_stands` the text of the value is the whole statement."""

    target: str
    value: Expr
    as_it_stands: bool = False

    def __str__(self) -> str:
        return str(self.value) if self.as_it_stands else f"{self.target} = {_bare(str(self.value))}"


@dataclass(frozen=True)
class Compound:
    """A loop, branches or a function: of what kind, its blocks, expressions of its head, and names of its own."""

    kind: str
    blocks: tuple[Block, ...]
    heads: tuple[Expr, ...] = ()
    names: tuple[str, ...] = ()
    options: str = ""


Statement = Let | Compound
Block = tuple[Statement, ...]


@dataclass(frozen=True)
class Program:
    arguments: tuple[tuple[str, Type], ...]
    block: Block
    results: tuple[str, ...]

    def __str__(self) -> str:
        types = ", ".join(f"{name}: {each}" for name, each in self.arguments)
        return f"# {types}\n{self.text()}"

    def text(self) -> str:
        names = [name for name, _ in self.arguments]
        lines = [f"def program({', '.join(names)}):"]
        lines += indent([*_Printer().block(self.block, names), f"return {tuple_of(self.results)}"])
        return "\n".join(lines) + "\n"


def _bare(text: str) -> str:
    """Without parentheses around all of it."""
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and position + 1 < len(text):
            return text
    return text[1:-1] if text.startswith("(") and "," not in text else text


def indent(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]


def tuple_of(names: Sequence[str]) -> str:
    return f"{names[0]}," if len(names) == 1 else ", ".join(names)


def targets(block: Block) -> set[str]:
    """The names that a block gives new values, but for those of its own functions."""
    made: set[str] = set()
    for step in block:
        if isinstance(step, Let):
            made.add(step.target)
        elif step.kind in ROW_BY_ROW:
            made.add(step.names[0])
        else:
            made.update(*map(targets, step.blocks))
            if step.kind == "scan":
                made.add(step.names[0])
    return made - {""}


#: Compounds that give one array a new value, row by row: the array and its row are their names.
ROW_BY_ROW: Final = ("vmap", "map")


class _Printer:
    def __init__(self) -> None:
        self.numbers = count(1)

    def block(self, block: Block, names: Sequence[str]) -> list[str]:
        """The lines of a block in a function whose variables are `names`."""
        own, lines = list(names), []
        for step in block:
            if isinstance(step, Let):
                lines += str(step).splitlines() if step.as_it_stands or step.target != str(step.value) else []
                own += [step.target] if step.target and step.target not in own else []
            else:
                lines += self.compound(step, own)
        return lines

    def compound(self, step: Compound, names: Sequence[str]) -> list[str]:
        if step.kind in ROW_BY_ROW:
            return self.rows(step)
        changed = set().union(*map(targets, step.blocks))
        carried = [name for name in names if name in changed]
        if not carried:
            return []
        printer = {"fori": self.fori, "while": self.while_loop, "scan": self.scan}.get(
            step.kind, self.functions
        )
        return printer(step, carried)

    def function(
        self, head: str, block: Block, names: Sequence[str], before: Sequence[str], end: str
    ) -> list[str]:
        return [f"def {head}:", *indent([*before, *self.block(block, names), f"return {end}"])]

    def fori(self, step: Compound, carried: list[str]) -> list[str]:
        name, every, (start, stop) = f"step{next(self.numbers)}", tuple_of(carried), step.heads
        return [
            *self.function(
                f"{name}({step.names[0]}, carry)", step.blocks[0], carried, [f"{every} = carry"], every
            ),
            f"{every} = lax.fori_loop({start}, {stop}, {name}, ({every}))",
        ]

    def while_loop(self, step: Compound, carried: list[str]) -> list[str]:
        number, counter = next(self.numbers), step.names[0]
        every = ", ".join([counter, *carried])
        begin = f"{every} = carry"
        return [
            f"def going{number}(carry):",
            *indent([begin, f"return ({counter} < {step.options}) & {step.heads[0]}"]),
            *self.function(
                f"step{number}(carry)",
                step.blocks[0],
                carried,
                [begin],
                ", ".join([f"{counter} + 1", *carried]),
            ),
            f"{every} = lax.while_loop(going{number}, step{number}, "
            f"({', '.join(['xp.asarray(0)', *carried])}))",
        ]

    def scan(self, step: Compound, carried: list[str]) -> list[str]:
        name, every, (rows, result) = f"step{next(self.numbers)}", tuple_of(carried), step.heads
        target, row = step.names
        return [
            *self.function(
                f"{name}(carry, {row})",
                step.blocks[0],
                carried,
                [f"{every} = carry"],
                f"({every}), {result}",
            ),
            f"({every}), {target} = lax.scan({name}, ({every}), {rows}{step.options})",
        ]

    def functions(self, step: Compound, carried: list[str]) -> list[str]:
        """Branches, and functions in functions."""
        made, lines, every = [], [], ", ".join(carried)
        for block in step.blocks:
            made.append(f"part{next(self.numbers)}")
            lines += self.function(f"{made[-1]}({every})", block, carried, [], tuple_of(carried))
        call = {
            "cond": "lax.cond({1}, {0}, {2})",
            "switch": "lax.switch({1}, [{0}], {2})",
            "jit": "xp.jit({0})({2})",
            "call": "lax.call({0}, {2})",
        }[step.kind].format(", ".join(made), *(step.heads or ("",)), every)
        return [*lines, f"{tuple_of(carried)} = {call}"]

    def rows(self, step: Compound) -> list[str]:
        target, row = step.names
        name = f"each{next(self.numbers)}"
        call = {"vmap": f"xp.vmap({name})({target})", "map": f"lax.map({name}, {target})"}[step.kind]
        return [*self.function(f"{name}({row})", step.blocks[0], [row], [], row), f"{target} = {call}"]
