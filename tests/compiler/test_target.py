"""The numbers of a machine: in one record, each explained and used, and nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import reduce
from pathlib import Path

import pytest

import xarr
from tests.support.checkout import CHECKOUT
from tests.support.graphs import graph, node, tensor
from tests.support.kernel_texts import CASES, groups
from xarr.compiler.fusion.form_groups import form_groups
from xarr.compiler.loop_ir.loops import Kernel, LoopError
from xarr.compiler.schedule import Kind, Schedule
from xarr.compiler.schedules.cpu.builders import BUILDERS
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr_numpy.compiled.schedule import SCHEDULE
from xarr_numpy.processor import PROCESSOR, Processor

COMPILER = CHECKOUT / "xarr" / "compiler"


def find_undocumented(source: str) -> list[str]:
    """The fields of a class in `source` with no comment `#:` above them, or above those right before."""
    fields, explained = [], False
    for line in source.splitlines():
        text = line.strip()
        if text.startswith("#:"):
            explained = True
        elif field := re.match(r"(\w+): (int|float)\b", text):
            fields += [] if explained else [field.group(1)]
        else:
            explained = False
    return fields


def find_unused(names: Iterable[str], sources: Iterable[str]) -> list[str]:
    """The names that no source asks a target for."""
    text = "\n".join(sources)
    return [name for name in names if not re.search(rf"([tT]arget|PROCESSOR|limits)\.{name}\b", text)]


def numbers(source: str) -> Iterator[str]:
    """The names of a module's constants that are numbers, or tuples of numbers."""
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        value = statement.value
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        if all(map(_is_number, parts)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield ast.unparse(targets[0])


def _is_number(tree: ast.AST) -> bool:
    if isinstance(tree, ast.BinOp):
        return _is_number(tree.left) and _is_number(tree.right)
    if isinstance(tree, ast.UnaryOp):
        return _is_number(tree.operand)
    return isinstance(tree, ast.Constant) and type(tree.value) in (int, float)


def sources(*folders: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.rglob("*.py"))]


def test_every_number_is_explained_and_used() -> None:
    backend = CHECKOUT / "backends" / "xarr_numpy"
    assert find_undocumented((COMPILER / "target.py").read_text(encoding="utf-8")) == []
    assert find_undocumented((backend / "processor.py").read_text(encoding="utf-8")) == []
    assert (
        find_unused(vars(Target)["__annotations__"], sources(COMPILER, CHECKOUT / "xarr" / "runtime")) == []
    )
    assert find_unused(vars(Processor)["__annotations__"], sources(backend)) == []


def test_checks_of_numbers_can_fail() -> None:
    assert find_undocumented("#: One.\na: int = 1\nb: float = 1\n\nc: int = 1") == ["c"]
    assert find_unused(["a", "b"], ["self.target.a + target.bc"]) == ["b"]
    assert list(numbers("A: Final = 2**4\nB = 1, 2\nC = 'x'\nD = (1, 'x')\nE = -1\nF = G * 2")) == [
        "A",
        "B",
        "E",
    ]


#: Numbers of modules that describe no machine, by module and name, and why.
OTHERS = {
    "compiled/folds.py": {
        "BLOCK_BYTES": "a block of the arrays of replicas",
        "UNINTERRUPTED_BYTES": "bytes after which Python looks for Ctrl-C",
        "REGISTERS": "elements that NumPy's loops take at once, whose bits are kept",
        "_MANY": "an extent that nobody asks for",
    },
    "compiler/fusion/groups.py": {
        "ONE": "a mark",
        "INNER": "axes of inner reductions are counted from here on",
    },
    "compiler/fusion/repeated_positions.py": dict.fromkeys(
        ("_MOST_OPERATIONS", "_MOST_USERS"), "work that is done again, in operations"
    ),
    "compiler/passes/rewritten_reductions.py": {"_DEPTH": "how far stacks are looked for, about time"},
    "compiler/collection.py": {
        "_NEVER": "more than a collector counts",
        "_MANY": "objects beside which others are few: about time, and no machine's",
    },
    "compiler/limits.py": {"MAX_OPERATIONS": "days on any machine: a mistake of the program"},
    "compiler/loop_ir/computed_indices.py": {"_LARGEST": "what int64 counts"},
    "compiler/loop_ir/index_ranges.py": {"_EITHER": "both truth values"},
    "compiler/object_cache.py": {
        "VERSION": "of a file format",
        **dict.fromkeys(("MOST", "MOST_OF_ONE", "SELDOM"), "how much of a disk a user lends"),
    },
    "compiler/passes/complex_powers.py": {"_EXPONENTS": "below which NumPy multiplies"},
    "compiler/plan/arena.py": {"ALIGNMENT": "the form of a plan, which engines rely on"},
    "compiler/pipeline.py": {"_LARGE": "nodes beside which garbage is little: about time, and no machine's"},
    "compiler/programs.py": dict.fromkeys(("_PROGRAMS_KEPT", "_BYTES_KEPT"), "memory that a user lends"),
    "compiler/schedule.py": {"_KEPT": "loop programs that are kept"},
    "compiler/schedules/cpu/select_and_scatter.py": {
        "NOTHING": "a mark",
        "_MAX_DISTANCE": "what int32 counts",
    },
    "compiler/schedules/cpu/single_operations.py": {"_KEPT": "loop programs that are kept"},
    "compiler/schedules/gpu/scatters.py": {"_MOST": "what int64 counts"},
    "compiler/schedules/gpu/tiles.py": {
        "SIDE": "lanes of a warp, which CUDA fixes",
        "_TOGETHER": "lines of a thread that lie side by side",
    },
    "compiler/schedules/gpu/updates/exact_sums.py": {
        **dict.fromkeys(
            (
                "(_FRACTION_BITS, _FRACTION, _EXPONENT)",
                "(_POWERS, _LEAST_POWER, _BIN_BITS)",
                "_NEGATIVE_ZERO",
            ),
            "bits of float32 and int64",
        ),
        "_MOST_OF_BIN": "what rounds right, by these",
        "(_PLUS, _MINUS, _NAN, _OTHER)": "bits of a word",
        "_SORTED_BYTES": "those of a key and a number",
    },
    "compiler/schedules/gpu/vectors.py": {"_COUNTS": "divisors of extents"},
    "compiler/schedules/gpu/windows.py": {"_BANKS": "banks of shared memory, which CUDA fixes"},
    "compiler/schedules/serial/windows.py": {"NOTHING": "a mark"},
    "compiler/kernel_templates.py": {
        "_KEPT": "kinds of groups that are kept",
        **dict.fromkeys(
            ("_MIN_ALIKE", "_MOST", "_LEAST"), "groups from which on a template repays making it"
        ),
    },
    "compiler/while_loops/lowering.py": {"KEPT": "forms that are kept"},
    "compiler/while_loops/late_operands.py": {
        "_STEPS": "after which an order is known",
        "_MOST_OPERANDS": "work of the compiler",
        "_FLOAT_CYCLES": "which operand is later: the same order on any machine",
    },
    "compiler/while_loops/native_loops.py": {"_MOST_WRITTEN": "elements that each read is compared with"},
    "compiler/while_loops/wanted_parts.py": {"_FAR": "beyond all positions"},
    "compiler/while_loops/row_exchanges.py": {"_MOST_ROWS": "updates that one is written as"},
    "compiled/codegen/integer_division.py": {"_FEW_BITS": "what float64 holds"},
    "compiled/codegen/lane_lines.py": {
        "_DEEPEST": "how much of a program is looked through",
        "_MAX_OFFSET": "what int64 counts",
    },
    "compiled/codegen/formula_calls.py": {"_KEPT": "functions that are kept"},
    "compiled/codegen/instructions.py": {"_MOST_LITERAL": "what is no size worth sharing code for"},
    "compiled/codegen/registers.py": {"MAX_LANES": "bits of a number"},
    "compiled/codegen/templates.py": {"_KEPT": "templates that are counted"},
    "compiled/codegen/llvm_jit.py": {
        **dict.fromkeys(("CODEGEN_LEVEL", "QUICK_LEVEL"), "an option of LLVM"),
        **dict.fromkeys(("_LEAST_MEMORY", "_MEMORY_OF_TEXT", "_MEMORY_OF_CODE"), "what LLVM takes"),
    },
    "compiled/plans/fourier.py": {
        "_OPERATIONS": "of a transform, for each element and halving",
        **dict.fromkeys(("_TRIED", "_ROWS_TRIED"), "sizes that are tried before use"),
    },
    "compiled/segments.py": {"_UNROLLED": "elements that xarr adds in this order on any machine"},
    "compiled/threads/costs.py": dict.fromkeys(
        ("TOTALS", "_BY_A_CONSTANT", "_IN_LANES"), "operations for operations"
    ),
    "compiled/kernel.py": {"_KEPT": "functions that are kept"},
    "compiled/known_values.py": {"_KEPT": "kernels that are kept", "_MOST_OPERATIONS": "about time"},
    "compiled/loops/loop_kernel.py": {
        **dict.fromkeys(("SHORT_SECONDS", "LONG_SECONDS"), "how long people wait for Ctrl-C"),
        "MOST_STEPS": "what int64 counts",
    },
    "compiled/loops/sequential.py": {"_KEPT": "programs that are kept"},
    "compiled/plans/matrix_functions.py": {"_NAN": "the bits of no number"},
    "compiled/plans/native_step.py": {"_KEPT": "modules that are kept"},
    "compiled/plans/point_loops.py": {"USUAL_ITERATIONS": "a guess of what a program does"},
    "compiled/small_arrays/class_slots.py": {
        "_MOST_KEPT": "objects whose memory is kept",
    },
    "compiled/small_arrays/host_calls.py": {
        **dict.fromkeys(("_MOST_ARGUMENTS", "_MOST_ITEMS", "_DEEPEST_LIST"), "what a call reads at most"),
    },
    "compiled/small_arrays/methods.py": {
        "(_METH_FASTCALL, _METH_KEYWORDS, _METH_NOARGS, _METH_O)": "flags of CPython"
    },
    "compiled/small_arrays/objects.py": {
        **dict.fromkeys(("LINES", "LINE_WORDS"), "the form of a record"),
        "COUNTED_AT_ONCE": "elements between two looks",
    },
    "compiled/small_arrays/ufunc_calls.py": {
        "_NEW_FROM_DESCR": "the number of a function of NumPy's",
        "_LOOP_WORDS": "the form of a record",
        "_MOST_DIMENSIONS": "what a call reads at most",
    },
    "compiled/threads/phases.py": {"ELEMENTS": "nanoseconds as `workers` counts them"},
    "compiled/threads/work_sharing.py": {
        **dict.fromkeys(("_OPEN", "_CALLER_SLEEPS"), "bits of a word"),
        **dict.fromkeys(("(SLEEPS, LOCK, POOL)",), "offsets in a record"),
        **dict.fromkeys(("GRAIN", "LOOKS"), "multiples: whole registers of any machine, looks at a clock"),
    },
}
#: Coefficients of formulas, and the layout of CPython's and NumPy's objects.
FORMULAS = "compiler/functions/", "compiled/cpython_abi/"


def test_no_other_module_has_numbers_of_a_machine() -> None:
    results: dict[str, set[str]] = {}
    for folder in (COMPILER, CHECKOUT / "backends" / "xarr_numpy" / "compiled"):
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder.parent).as_posix()
            own = set(numbers(path.read_text(encoding="utf-8")))
            if own and not name.startswith(FORMULAS):
                results[name] = own
    assert results == {name: set(reasons) for name, reasons in OTHERS.items()}


def test_a_backend_gives_what_differs() -> None:
    class Small(Target):
        __slots__ = ()
        tile_side = 8

    small = Small()
    assert (small.tile_side, small.line_bytes) == (8, Target().line_bytes)
    assert (small.replace(line_bytes=128).line_bytes, small.replace(line_bytes=128).tile_side) == (128, 8)
    assert isinstance(PROCESSOR.replace(tile_side=1), Processor)
    with pytest.raises(AttributeError, match="tile_sid"):
        small.replace(tile_sid=9)
    with pytest.raises(AttributeError):
        small.tile_side = 9  # type: ignore[misc]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("local_bytes", [2**10, 2**13])
def test_programs_keep_to_little_local_memory(name: str, local_bytes: int) -> None:
    (fusion,) = groups(name)
    kernel = Schedule(PROCESSOR.replace(local_bytes=local_bytes), BUILDERS).build(fusion)
    assert sum(buffer.nbytes for buffer in kernel.locals) <= local_bytes


def test_operands_beyond_the_local_memory_are_read_without_tiles() -> None:
    def sums(*arrays: Node) -> Node:
        return reduce(lambda x, y: node(ops.Add(), x, y), [node(ops.Transpose((1, 0)), x) for x in arrays])

    fused = form_groups(graph(sums, *[tensor("float64", 200, 300)] * 20), SCHEDULE, lambda domain, cost: True)
    (fusion,) = (each.op for each in fused.nodes if isinstance(each.op, ops.Fusion))
    tiles = SCHEDULE.build(fusion).locals
    assert len(tiles) == PROCESSOR.local_bytes // (PROCESSOR.tile_side**2 * 8) == 16


def test_programs_that_want_too_much_local_memory_are_refused() -> None:
    """By `Schedule.build` itself, whatever `config.verify_graphs` says; here by a builder that heeds no target."""
    tile = PROCESSOR.tile_side**2 * 4

    def heedless(fusion: ops.Fusion, target: Target) -> Kernel:
        return BUILDERS[Kind.NEST](fusion, PROCESSOR)

    for verifies in (False, True):
        with xarr.config(verify_graphs=verifies):
            build(Schedule(PROCESSOR.replace(local_bytes=tile), {Kind.NEST: heedless}), 300, 200)
            with pytest.raises(
                LoopError, match=f"L11: local buffers take {tile} bytes, more than the {tile - 1}"
            ):
                build(Schedule(PROCESSOR.replace(local_bytes=tile - 1), {Kind.NEST: heedless}), 300, 200)


def build(schedule: Schedule, rows: int, columns: int) -> Kernel:
    """The loop program of twice a transposed array."""
    moved = graph(lambda x: _twice(node(ops.Transpose((1, 0)), x)), tensor("float32", columns, rows))
    fused = form_groups(moved, schedule, lambda domain, cost: True)
    (fusion,) = (each.op for each in fused.nodes if isinstance(each.op, ops.Fusion))
    return schedule.build(fusion)


def _twice(x: Node) -> Node:
    return node(ops.Add(), x, x)


def test_another_target_gives_other_loops() -> None:
    (tile,) = build(SCHEDULE, 300, 200).locals
    assert tile.size == PROCESSOR.tile_side**2
    (small,) = build(Schedule(PROCESSOR.replace(tile_side=8), BUILDERS), 300, 200).locals
    assert small.size == 64
    assert build(Schedule(PROCESSOR.replace(min_tiled_elements=10**6), BUILDERS), 300, 200).locals == ()


def test_every_kind_of_group_has_a_builder() -> None:
    assert set(BUILDERS) == set(Kind)
