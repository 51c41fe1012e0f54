"""The numbers of a machine: in one record, each explained and used, and nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.support.checkout import CHECKOUT
from tests.support.graphs import graph, node, tensor
from xarr.compiler.fusion.form_groups import form_groups
from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.schedule import Kind, Schedule
from xarr.compiler.schedules.cpu.builders import BUILDERS
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr_numpy.compiled.schedule import PROCESSOR, SCHEDULE

COMPILER = CHECKOUT / "xarr" / "compiler"
NAMES = [field.name for field in fields(Target)]


def undocumented(source: str) -> list[str]:
    """The fields of a class in `source` with no comment `#:` above them, or above those right before."""
    found, explained = [], False
    for line in source.splitlines():
        text = line.strip()
        if text.startswith("#:"):
            explained = True
        elif field := re.match(r"(\w+): \w+$", text):
            found += [] if explained else [field.group(1)]
        else:
            explained = False
    return found


def unused(names: list[str], sources: list[str]) -> list[str]:
    text = "\n".join(sources)
    return [name for name in names if not re.search(rf"target\.{name}\b", text)]


def numbers(source: str) -> Iterator[str]:
    """The constants of a module that are numbers, or tuples of numbers."""
    for statement in ast.parse(source).body:
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        if value is not None and all(_is_number(part) for part in parts):
            yield ast.unparse(statement)


def _is_number(tree: ast.AST | None) -> bool:
    if isinstance(tree, ast.BinOp):
        return _is_number(tree.left) and _is_number(tree.right)
    return isinstance(tree, ast.Constant) and type(tree.value) in (int, float)


def test_every_number_is_explained_and_used() -> None:
    assert undocumented((COMPILER / "target.py").read_text(encoding="utf-8")) == []
    assert unused(NAMES, [path.read_text(encoding="utf-8") for path in COMPILER.rglob("*.py")]) == []


def test_checks_of_numbers_can_fail() -> None:
    assert undocumented("#: One.\na: int\nb: int\n\nc: int") == ["c"]
    assert unused(["a", "b"], ["self.target.a + target.bc"]) == ["b"]
    assert list(numbers("A: Final = 2**4\nB = 1, 2\nC = 'x'\nD = (1, 'x')")) == [
        "A: Final = 2 ** 4",
        "B = (1, 2)",
    ]


#: What no machine decides: axes of inner reductions are counted from here on; places that int32 counts.
_OTHERS = {"INNER: Final = 1000", "_MOST_PLACES: Final = 2 ** 31"}


@pytest.mark.parametrize("folder", ["schedules", "fusion", "passes"])
def test_schedules_and_groups_have_no_numbers_of_their_own(folder: str) -> None:
    paths: list[Path] = sorted((COMPILER / folder).rglob("*.py"))
    found = {line for path in paths for line in numbers(path.read_text(encoding="utf-8"))}
    assert found <= _OTHERS


def built(schedule: Schedule, rows: int, columns: int) -> Kernel:
    """The loop program of twice a transposed array."""
    moved = graph(lambda x: _twice(node(ops.Transpose((1, 0)), x)), tensor("float32", columns, rows))
    fused = form_groups(moved, schedule, lambda domain, cost: True)
    (fusion,) = (each.op for each in fused.nodes if isinstance(each.op, ops.Fusion))
    return schedule.build(fusion)


def _twice(x: Node) -> Node:
    return node(ops.Add(), x, x)


def test_another_target_gives_other_loops() -> None:
    (tile,) = built(SCHEDULE, 300, 200).locals
    assert tile.size == PROCESSOR.tile_side**2
    (small,) = built(Schedule(replace(PROCESSOR, tile_side=8), BUILDERS), 300, 200).locals
    assert small.size == 64
    assert built(Schedule(replace(PROCESSOR, min_tiled_elements=10**6), BUILDERS), 300, 200).locals == ()


def test_every_kind_of_group_has_a_builder() -> None:
    assert set(BUILDERS) == set(Kind)
