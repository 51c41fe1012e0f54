"""Smaller programs that fail as well: without statements, with simpler expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic

from tests.support.source_programs.text import Block, Expr, Let, Program, Statement


def minimise(program: Program, fails: Callable[[Program], bool], seconds: float = 120) -> Program:
    """A program that fails as well, and of which no smaller one does, if there is time to try them all."""
    end = monotonic() + seconds
    while monotonic() < end:
        for each in smaller(program):
            if monotonic() > end or fails(each):
                break
        else:
            return program
        if monotonic() > end:
            return program
        program = each
    return program


def smaller(program: Program) -> Iterator[Program]:
    for name in program.results:
        if len(program.results) > 1:
            yield replace(program, results=(name,))
    names = {name: each for name, each in program.arguments}
    for block in _blocks(program.block, names):
        yield replace(program, block=block)
    unused = [pair for pair in program.arguments[1:] if not _mentions(program, pair[0])]
    if unused:
        kept = tuple(pair for pair in program.arguments if pair not in unused)
        yield replace(program, arguments=kept)


def _mentions(program: Program, name: str) -> bool:
    return bool(re.search(rf"\b{name}\b", program.text().split("\n", 1)[1]))


def _blocks(block: Block, names: dict[str, object]) -> Iterator[Block]:
    if len(block) > 3:
        half = len(block) // 2
        yield block[:half]
        yield block[half:]
    for index in range(len(block)):
        yield block[:index] + block[index + 1 :]
    for index, step in enumerate(block):
        for less in _statements(step, names):
            yield block[:index] + less + block[index + 1 :]


def _statements(step: Statement, names: dict[str, object]) -> Iterator[tuple[Statement, ...]]:
    if isinstance(step, Let):
        for value in _exprs(step.value, names, step.as_it_stands):
            yield (replace(step, value=value),)
        return
    if not step.names:
        for inner in step.blocks:
            yield inner
    elif step.kind == "fori":
        yield (Let(step.names[0], Expr("xp.asarray(1)", step.heads[0].type)), *step.blocks[0])
    for k, inner in enumerate(step.blocks):
        for less in _blocks(inner, names):
            yield (replace(step, blocks=(*step.blocks[:k], less, *step.blocks[k + 1 :])),)
    for k, head in enumerate(step.heads):
        if step.kind != "fori":
            for less in _exprs(head, names, False):
                yield (replace(step, heads=(*step.heads[:k], less, *step.heads[k + 1 :])),)


def _exprs(value: Expr, names: dict[str, object], keeps_head: bool) -> Iterator[Expr]:
    """Simpler expressions of the same type: a name, a part, zeros; then with simpler parts."""
    if not keeps_head:
        for name, each in names.items():
            if each == value.type and value.parts:
                yield Expr(name, value.type)
        for part in list(value.walk())[1:]:
            if part.type == value.type:
                yield part
        plain = f"xp.ones({value.type.shape}, xp.{value.type.dtype})"
        if value.parts:
            yield Expr(plain, value.type)
    for k, part in enumerate(value.parts):
        for less in _exprs(part, names, False):
            yield replace(value, parts=(*value.parts[:k], less, *value.parts[k + 1 :]))
