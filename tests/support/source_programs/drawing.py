"""Whole programs, drawn: arguments and their values, statements, loops to a depth of four, branches, functions."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Final

import numpy as np

from tests.support.source_programs.drawer import (
    BOOL,
    COMPLEX,
    DTYPES,
    FLOATS,
    UNSIGNED,
    Drawer,
    Rule,
    Scope,
    dtype_of,
    is_small,
)
from tests.support.source_programs.elementwise import ELEMENTWISE, MASKS, NUMBERS
from tests.support.source_programs.text import Block, Compound, Expr, Let, Program, Statement, Type
from tests.support.source_programs.whole_arrays import CALLS, WHOLE, draw_index

#: The number of steps of some loops, which is the first argument.
COUNT: Final = "n"
NUMBER: Final = Type("int64", ())
#: Steps of all loops around a statement at most.
_STEPS: Final = 120
_SIZES: Final = (0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 33, 40, 64, 70)
_WEIGHTS: Final = (1, 3, 3, 5, 4, 5, 5, 4, 4, 4, 4, 4, 3, 3, 2, 2, 2)


def draw_program(random: Random) -> Program:
    return _Programs(random).run()


class _Programs:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.sizes = sorted(set(random.choices(_SIZES, _WEIGHTS, k=random.randint(2, 3))))
        self.has_calls = random.random() < 0.1
        self.d = Drawer(random, self.sizes, self.rules, may_raise=random.random() < 0.06)
        self.budget = random.choice((2, 4, 6, 9, 14))

    def rules(self, wanted: Type) -> tuple[Rule, ...]:
        own = MASKS if wanted.dtype == BOOL else NUMBERS
        return (*ELEMENTWISE, *own, *WHOLE, *(CALLS * self.has_calls))

    def run(self) -> Program:
        """A program on a number and two to six arrays, of a few shapes and element types."""
        dtypes = self.random.choices(DTYPES, [3, *[3] * 8, 12, 8, 3, 3, 3, 2], k=self.random.randint(1, 3))
        shapes = [self.shape() for _ in range(self.random.randint(1, 3))]
        arguments = [(COUNT, NUMBER)]
        for name in "abcdef"[: self.random.randint(2, 6)]:
            arguments.append((name, Type(self.random.choice(dtypes), self.random.choice(shapes))))
        if self.random.random() < 0.7:
            length = self.random.choice(self.sizes)
            arguments.append(("k", Type(self.random.choice(("int64", "int32", "int8", "uint16")), (length,))))
        if self.random.random() < 0.6:
            arguments.append(("s", Type(self.random.choice((*dtypes, "int64", "bool")), ())))
        scope = Scope(dict(arguments))
        names = [name for name, _ in arguments[1:]]
        block = self.block(scope, names, 0, _STEPS, self.random.randint(2, 6))
        made = [name for name in names if self.random.random() < 0.7] or names[:1]
        return Program(tuple(arguments), block, tuple(made))

    def shape(self) -> tuple[int, ...]:
        rank = self.random.choices((0, 1, 2, 3), (1, 6, 6, 1))[0]
        while True:
            shape = tuple(self.random.choice(self.sizes) for _ in range(rank))
            if is_small(shape):
                return shape
            rank -= 1

    # --- statements ---------------------------------------------------------------------------------

    def block(self, scope: Scope, names: list[str], depth: int, steps: int, count: int) -> Block:
        """Statements that give new values to arrays of the scope that are called `names`."""
        return tuple(self.statement(scope, names, depth, steps) for _ in range(count))

    def statement(self, scope: Scope, names: list[str], depth: int, steps: int) -> Statement:
        self.budget -= 1
        if depth < 4 and self.budget > 0 and self.random.random() < 0.5:
            made = self.compound(scope, names, depth, steps)
            if made is not None:
                return made
        target = self.random.choice(names)
        kind = scope.arrays[target]
        self.d.scope = replace(scope, target=target)
        if self.has_calls and self.random.random() < 0.1:
            return Let("", Expr("xp.debug.callback(record, {0})", kind, (self.d.leaf(kind),)), True)
        if kind.shape and self.random.random() < 0.12:
            return self.write(target, kind)
        value = self.value(kind, self.random.choice((1, 2, 2, 3)))
        if value.template in scope.arrays and value.template != target:
            value = Expr("xp.copy({0})", kind, (value,))
        return Let(target, value)

    def value(self, kind: Type, depth: int) -> Expr:
        """An expression; of complex numbers small whole ones, whose products are exact by any formula."""
        made = self.d.expr(kind, depth)
        return Expr("small({0}, 8)", kind, (made,)) if kind.dtype in COMPLEX else made

    def write(self, target: str, kind: Type) -> Let:
        """A statement that writes to the array in place, as NumPy's users do."""
        index = draw_index(self.d, kind.shape, 1, 1)
        value = self.d.expr(Type(kind.dtype, index.shape), 1)
        sign = self.random.choice(("=", "+=", "=", "*=") if kind.dtype != BOOL else ("=", "|="))
        # A function may not write to its own arguments.
        text = f"{target} = {target}.copy()\n{target}[{index.text}] {sign} {{0}}"
        return Let(target, Expr(text, kind, (value, *index.parts)), True)

    def compound(self, scope: Scope, names: list[str], depth: int, steps: int) -> Compound | None:
        kind = self.random.choice(
            ("fori",) * 6 + ("while", "while", "scan", "scan", "cond", "cond", "switch", "jit", "vmap", "map")
        )
        self.d.scope = scope
        made: Compound | None = getattr(self, f"_{kind}")(scope, names, depth, steps)
        return made

    def inner(self, scope: Scope, names: list[str], depth: int, steps: int) -> Block:
        some = names if self.random.random() < 0.5 else self.random.sample(names, min(len(names), 2))
        return self.block(scope, some, depth + 1, steps, self.random.randint(1, 4))

    def _fori(self, scope: Scope, names: list[str], depth: int, steps: int) -> Compound | None:
        most = min(steps, self.random.choice((2, 3, 3, 4, 5, 9)))
        if most < 1:
            return None
        usable = [name for name, bound in scope.steps.items() if bound <= most + 1]
        stops = [str(most), str(most), *(f"({name} + 1)" for name in usable)]
        if most >= 4:
            stops += [COUNT, COUNT]
        if "k" in scope.arrays and scope.arrays["k"].shape[0]:
            stops.append(f"xp.clip(k[0].astype(xp.int64), 0, {most})")
        start = self.random.choice(("0", "0", "0", "1", *usable))
        name = "ijlm"[depth]
        stop = self.random.choice(stops)
        inside = replace(scope, steps={**scope.steps, name: most + 1 if "+ 1" in stop else most})
        block = self.inner(inside, names, depth, steps // most)
        return Compound("fori", (block,), (Expr(start, NUMBER), Expr(stop, NUMBER)), (name,))

    def _while(self, scope: Scope, names: list[str], depth: int, steps: int) -> Compound | None:
        """As long as a condition of data holds, for some steps at most; the condition may be of NaN."""
        most = min(steps, self.random.choice((1, 3, 5)))
        if most < 1:
            return None
        name = "ijlm"[depth]
        inside = replace(scope, steps={**scope.steps, name: most})
        block = self.inner(inside, names, depth, steps // most)
        self.d.scope = inside
        kinds = [each for each in scope.arrays.values() if each.dtype == "float64"]
        condition = self.d.expr(Type(BOOL, ()), 2)
        if kinds and self.random.random() < 0.4:
            limit = self.random.choice(("xp.nan", "2.0", "-1.0"))
            relation = self.random.choice(("({0} < {1})", "(~({0} >= {1}))", "({0} != {1})"))
            part = self.d.expr(Type("float64", ()), 2)
            condition = Expr(relation.format("{0}", limit), Type(BOOL, ()), (part,))
        return Compound("while", (block,), (condition,), (name,), str(most))

    def _scan(self, scope: Scope, names: list[str], depth: int, steps: int) -> Compound | None:
        usable = [name for name in names if scope.arrays[name].shape and scope.arrays[name].shape[0] <= steps]
        if not usable:
            return None
        target = self.random.choice(usable)
        length = scope.arrays[target].shape[0]
        sources = [each for each in scope.arrays.values() if each.shape and each.shape[0] == length]
        rows = self.d.expr(self.random.choice(sources), 1)
        row = f"row{depth}"
        inside = scope.having(**{row: rows.type.row})
        block = self.inner(
            inside, [name for name in names if name != target] or names, depth, steps // max(length, 1)
        )
        self.d.scope = inside
        result = self.value(scope.arrays[target].row, 2)
        options = ", reverse=True" if self.random.random() < 0.3 else ""
        return Compound("scan", (block,), (rows, result), (target, row), options)

    def _cond(self, scope: Scope, names: list[str], depth: int, steps: int) -> Compound | None:
        condition = self.d.expr(Type(BOOL, ()), 2)
        if scope.steps and self.random.random() < 0.5:
            name = self.random.choice(list(scope.steps))
            condition = Expr(self.random.choice((f"{name} > 0", f"{name} % 2 == 0")), Type(BOOL, ()))
        blocks = tuple(self.inner(scope, names, depth, steps) for _ in range(2))
        return Compound("cond", blocks, (condition,))

    def _switch(self, scope: Scope, names: list[str], depth: int, steps: int) -> Compound | None:
        number = self.d.convert(self.d.expr(Type(self.random.choice(("int64", "int32")), ()), 1), "int32")
        blocks = tuple(self.inner(scope, names, depth, steps) for _ in range(self.random.randint(2, 3)))
        return Compound("switch", blocks, (number,))

    def _jit(self, scope: Scope, names: list[str], depth: int, steps: int) -> Compound | None:
        return Compound(self.random.choice(("jit", "call")), (self.inner(scope, names, depth, steps),))

    def _vmap(
        self, scope: Scope, names: list[str], depth: int, steps: int, kind: str = "vmap"
    ) -> Compound | None:
        usable = [name for name in names if scope.arrays[name].shape and 0 < scope.arrays[name].shape[0] <= 9]
        if not usable or self.has_calls:
            return None
        target, row = self.random.choice(usable), f"row{depth}"
        kept = {name: each for name, each in scope.arrays.items() if name != target}
        inside = replace(scope, arrays=kept).having(**{row: scope.arrays[target].row})
        block = self.block(inside, [row], depth + 1, max(steps // 9, 1), self.random.randint(1, 3))
        return Compound(kind, (block,), (), (target, row))

    def _map(self, scope: Scope, names: list[str], depth: int, steps: int) -> Compound | None:
        return self._vmap(scope, names, depth, steps, "map")


# --- values -----------------------------------------------------------------------------------------

_SPECIALS: Final = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 0.1, -2.5, 1e-7, 3e38, 5e-324, 1.7e308)


def draw_values(program: Program, seed: int, count: int) -> list[np.ndarray[Any, Any]]:
    """Arguments: small whole numbers for the most part, and all else that element types have."""
    generator = np.random.default_rng(seed)
    specials = seed % 2 == 1
    values = [np.asarray(count)]
    for name, kind in program.arguments[1:]:
        if name == "k":
            values.append(generator.integers(0, 9, kind.shape).astype(dtype_of(kind.dtype)))
        else:
            values.append(_values(generator, kind, specials))
    return values


def _values(generator: np.random.Generator, kind: Type, specials: bool) -> np.ndarray[Any, Any]:
    dtype, shape = dtype_of(kind.dtype), kind.shape
    if kind.dtype == BOOL:
        return generator.integers(0, 2, shape).astype(dtype)
    if kind.dtype in COMPLEX:
        parts = [generator.integers(-4, 5, shape).astype(np.float64) for _ in range(2)]
        return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)
    low = 0 if kind.dtype in UNSIGNED else -9
    values = np.asarray(generator.integers(low, 10, shape)).astype(dtype)
    if not specials:
        return values
    if kind.dtype in FLOATS:
        with np.errstate(all="ignore"):
            others = generator.choice(np.asarray(_SPECIALS), shape).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        others = generator.choice(np.asarray([limits.min, limits.max, 0, 1, 3], dtype), shape)
    return np.where(generator.random(shape) < 0.3, others, values).astype(dtype)
