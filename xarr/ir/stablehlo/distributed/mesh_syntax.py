"""Meshes and parts of their axes: `<["x"=2, "y"=4]>` of Shardy, `#stablehlo.mesh<…>`, and `(1)2`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

from xarr.base.frozen_dataclasses import record
from xarr.communication.process_groups import AxisRef, Mesh
from xarr.ir.stablehlo.lexer import Lexer

T = TypeVar("T")

_INTEGERS: Final = re.compile(r"dense\s*<\s*\[?([\d\s,]*)\]?\s*>\s*:\s*tensor\s*<\s*\d+\s*x\s*i64\s*>")


def _read_list(lexer: Lexer, what: str, read: Callable[[Lexer], T]) -> tuple[T, ...]:
    """`[…, …]`, each element by `read`."""
    lexer.expect("[", f"before {what}")
    return tuple([read(lexer) for _ in lexer.items("]", f"after {what}")])


def _sdy_axis(lexer: Lexer) -> tuple[str, int]:
    name = lexer.string()
    lexer.expect("=", f"after the axis {name}")
    return name, lexer.integer("the size of an axis")


def read_sdy_mesh(lexer: Lexer) -> Mesh:
    """`<["x"=2, "y"=4], device_ids=[0, 1, …]>`."""
    lexer.expect("<", "before the axes of the mesh")
    axes = _read_list(lexer, "the axes of the mesh", _sdy_axis)
    ids = None
    if lexer.accept(","):
        lexer.expect("device_ids", "in the mesh")
        lexer.expect("=", "after device_ids")
        ids = _integers(lexer)
    lexer.expect(">", "after the mesh")
    return Mesh(axes, ids)


def _integers(lexer: Lexer) -> tuple[int, ...]:
    return _read_list(lexer, "the numbers", lambda each: each.integer("a number"))


def read_mesh(lexer: Lexer) -> Mesh:
    """`<axes=[<name = "x", size = 2>, …], device_ids=dense<…> : tensor<…xi64>>`, `#stablehlo.mesh` being read."""
    lexer.expect("<", "before the axes of the mesh")
    lexer.expect("axes", "in the mesh")
    lexer.expect("=", "after axes")
    axes = _read_list(lexer, "the axes of the mesh", _axis)
    ids = None
    if lexer.accept(","):
        lexer.expect("device_ids", "in the mesh")
        lexer.expect("=", "after device_ids")
        match = lexer.match(_INTEGERS)
        if match is None:
            lexer.fail("dense<…> of integers")
        ids = tuple(int(each) for each in match.group(1).split(",") if each.strip())
    lexer.expect(">", "after the mesh")
    return Mesh(axes, ids)


def _axis(lexer: Lexer) -> tuple[str, int]:
    if lexer.token.kind == "hash":
        lexer.advance()
    lexer.expect("<", "before the name of an axis")
    lexer.expect("name", "of an axis")
    lexer.expect("=", "after name")
    name = lexer.string()
    lexer.expect(",", "before the size of an axis")
    lexer.expect("size", "of an axis")
    lexer.expect("=", "after size")
    size = lexer.integer("the size of an axis")
    lexer.expect(">", "after an axis")
    return name, size


def read_part(lexer: Lexer) -> tuple[int, int]:
    """`(1)2`: how many parts come before, and how many this one has."""
    lexer.expect("(", "before the number of parts before")
    before = lexer.integer("the number of parts before")
    lexer.expect(")", "after the number of parts before")
    return before, lexer.integer("the size of a part")


@record
class Sharding:
    """The parts of an array over a mesh: for each dimension the axes along which its parts lie, the first outermost."""

    mesh: str | Mesh
    dimensions: tuple[tuple[AxisRef, ...], ...]


def read_shardings(lexer: Lexer) -> tuple[Sharding, ...]:
    """`[<@mesh, [{"x"}, {}]>, …]`, one for each operand or result; for `@mesh` may stand `mesh<["x"=2]>`."""
    return _read_list(lexer, "the shardings", _sharding)


def _sharding(lexer: Lexer) -> Sharding:
    lexer.expect("<", "before the mesh of a sharding")
    mesh = read_sdy_mesh(lexer) if lexer.accept("mesh") else lexer.symbol()
    lexer.expect(",", "after the mesh of a sharding")
    dimensions = _read_list(lexer, "the dimensions of a sharding", read_axes)
    while lexer.accept(","):  # replicated={"y"}: the values are the same along these
        lexer.take("word", "replicated")
        lexer.expect("=", "after replicated")
        read_axes(lexer)
    lexer.expect(">", "after a sharding")
    return Sharding(mesh, dimensions)


def read_axes(lexer: Lexer) -> tuple[AxisRef, ...]:
    """`{"x", "y":(1)2, ?}`: the axes of a dimension; a question mark leaves more of them to others."""
    lexer.expect("{", "before the axes of a dimension")
    axes = []
    while not lexer.at("}"):
        if not lexer.accept("?"):
            name = lexer.string()
            axes.append(AxisRef(name, read_part(lexer) if lexer.accept(":") else None))
        if not lexer.accept(","):
            break
    lexer.expect("}", "after the axes of a dimension")
    return tuple(axes)
