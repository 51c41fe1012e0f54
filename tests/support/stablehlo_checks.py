"""Evaluates the checks of the StableHLO project's test programs: `check.expect_close` and its like.

A program is read, its checks become results of the function they stand in, and the function runs.  What it runs in
parallel, by `interpreter.run_parallel`, runs as replicas and partitions in threads.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.compare import ulp_distances
from xarr.communication.communicator import current_communicator
from xarr.distributed import simulate
from xarr.dtypes import COMPLEX, FLOAT, real_part_of
from xarr.errors import XarrError
from xarr.ir.stablehlo.constant_elements import read_elements
from xarr.ir.stablehlo.parser import read_module
from xarr.ir.stablehlo.syntax_tree import Literal, ParsedFunction, ParsedOperation, SourceModule
from xarr.ir.types import TensorType
from xarr.stablehlo import Module, run

HostArray = np.ndarray[Any, Any]

SEPARATOR = "// -----"
#: Runs functions of the module as the members of a grid, a row for each replica.
PARALLEL = "interpreter.run_parallel"
#: What these programs sum may be summed in any order: there the largest value decides what is close.
SUMS = ("dot_general_", "conv_general_dilated_", "fft_", "triangular_solve_")
SUM_TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-14}


@dataclass(frozen=True)
class Case:
    """One function that checks itself."""

    path: Path
    text: str
    function: str

    @property
    def name(self) -> str:
        """`testdata/file.mlir`, or `interpret/file.mlir:function` where one file holds many."""
        name = f"{self.path.parent.name}/{self.path.name}"
        return name if self.path.parent.name == "testdata" else f"{name}:{self.function}"


@dataclass(frozen=True)
class Check:
    kind: str
    tolerance: float
    literal: Literal | None


def cases(path: Path) -> Iterator[Case]:
    """The functions of a file that contain checks."""
    for text in path.read_text(encoding="utf-8").split(SEPARATOR):
        if "check.expect" not in text:
            continue
        for function in read_module(text).functions.values():
            if not function.arguments and any(_is_check(each) for each in _operations(function)):
                yield Case(path, text, function.name)


def outcome(case: Case, backend: str) -> str | None:
    """None if every check of the case holds, else what is wrong, in one line."""
    try:
        source = read_module(case.text, case.path.name)
        if any(each.name == PARALLEL for each in _operations(source.functions[case.function])):
            checks, results = _run_parallel(source, case.function, backend)
        else:
            checks = _expose(source, case.function)
            module = Module(source)
            results = [np.asarray(result) for result in run(module, function=case.function, backend=backend)]
    except XarrError as error:
        return _reason(error)
    for check in reversed(checks):
        expected = results.pop() if check.literal is None else None
        actual = results.pop()
        if expected is None:
            expected = _array(check, actual, source)
        problem = compare(check.kind, check.tolerance, actual, expected)
        if problem and not (case.path.name.startswith(SUMS) and is_close(actual, expected)):
            return problem
    return None


def compare(kind: str, tolerance: float, actual: HostArray, expected: HostArray) -> str | None:
    """None if the values agree as `kind` (eq, close, almost_eq) says, else by how much they do not."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"got {actual.dtype}{actual.shape}, expected {expected.dtype}{expected.shape}"
    if actual.dtype in COMPLEX:
        pairs = ((actual.real, expected.real), (actual.imag, expected.imag))
        return next(filter(None, [compare(kind, tolerance, *pair) for pair in pairs]), None)
    wrong = ~_agrees(kind, tolerance, actual, expected)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    shown = f"{actual[index]} for {expected[index]}"
    return f"{kind}: {int(wrong.sum())} of {wrong.size} differ, first at {index}: {shown}"


def _agrees(kind: str, tolerance: float, actual: HostArray, expected: HostArray) -> HostArray:
    if actual.dtype not in FLOAT:
        return np.asarray(actual == expected)
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    if kind == "eq":
        return np.asarray(same)
    finite = np.isfinite(actual) & np.isfinite(expected)
    if kind == "close":
        return np.asarray(same | (finite & (ulp_distances(actual, expected) <= tolerance)))
    with np.errstate(all="ignore"):
        return np.asarray(
            same | (finite & (np.abs(actual.astype(float) - expected.astype(float)) <= tolerance))
        )


def is_close(actual: HostArray, expected: HostArray) -> bool:
    """Whether two results of sums in different orders are the same up to rounding."""
    wide = np.complex128 if actual.dtype in COMPLEX else np.float64
    scale = float(np.max(np.abs(expected.astype(wide)), initial=0.0))
    error = float(np.max(np.abs(actual.astype(wide) - expected.astype(wide)), initial=0.0))
    return error <= SUM_TOLERANCE.get(real_part_of(actual.dtype), 0.0) * scale


def _operations(function: ParsedFunction) -> list[ParsedOperation]:
    return function.body.operations if function.body else []


def _target(operation: ParsedOperation) -> str:
    called = (
        operation.attributes.get("call_target_name", "") if operation.name == "stablehlo.custom_call" else ""
    )
    return called or operation.name


def _is_check(operation: ParsedOperation) -> bool:
    return _target(operation).startswith("check.expect_")


def _expose(source: SourceModule, name: str) -> list[Check]:
    """Make the checks of a function results of it; what they check, in order."""
    function = source.functions[name]
    assert function.body is not None
    checks = [operation for operation in function.body.operations if _is_check(operation)]
    function.body.operations = [
        operation for operation in function.body.operations if not _is_check(operation)
    ]
    last = function.body.operations[-1]
    last.operands = [operand for operation in checks for operand in operation.operands]
    types = [type for operation in checks for type in operation.operand_types or ()]
    last.operand_types = function.result_types = tuple(types)
    return [_check(operation) for operation in checks]


def _run_parallel(source: SourceModule, name: str, backend: str) -> tuple[list[Check], list[HostArray]]:
    """The checks of a function that runs others in parallel, and what they check."""
    function = source.functions[name]
    assert function.body is not None
    (call,) = (each for each in _operations(function) if each.name == PARALLEL)
    checks = [each for each in _operations(function) if _is_check(each)]
    # What is left of the function gives the operands.
    last = function.body.operations[-1]
    function.body.operations = [
        *function.body.operations[: function.body.operations.index(call)],
        last,
    ]
    last.operands, last.operand_types = call.operands, call.operand_types
    function.result_types = call.operand_types or ()
    module = Module(source)
    operands = run(module, function=name, backend=backend)
    rows = call.attributes["programs"]
    programs = [each for row in rows for each in row]

    def member() -> list[HostArray]:
        world = current_communicator()
        for queue in call.attributes.get("infeed", ()):
            world.feed([np.asarray(each) for each in run(module, function=queue, backend=backend)])
        counts = [len(source.functions[each].arguments) for each in programs]
        start = sum(counts[: world.rank])
        own = operands[start : start + counts[world.rank]]
        results = run(module, *own, function=programs[world.rank], backend=backend)
        return [np.asarray(result) for result in results]

    results = [each for own in simulate(len(programs), member, num_partitions=len(rows[0])) for each in own]
    checked = [results[value.index] for each in checks for value in each.operands]
    return [_check(each) for each in checks], checked


def _check(operation: ParsedOperation) -> Check:
    target, attributes = _target(operation), operation.attributes
    kind = target.removeprefix("check.expect_").removesuffix("_const")
    absolute = 1e-3 if operation.name == "stablehlo.custom_call" else 1e-4
    tolerance = {"eq": 0.0, "close": 3.0, "almost_eq": absolute}[kind]
    bound = attributes.get("max_ulp_difference") if kind == "close" else attributes.get("tolerance")
    literal = attributes.get("value")
    return Check(kind, float(tolerance if bound is None else bound), literal)


def _array(check: Check, actual: HostArray, source: SourceModule) -> HostArray:
    assert check.literal is not None
    type = TensorType(actual.shape, actual.dtype)
    return read_elements(check.literal, type, source.text, source.resources).array()


def _reason(error: XarrError) -> str:
    first, *others = str(error).split("\n")
    if "does not support" not in first:
        return first
    needs = {line.split(", at ")[0].strip() for line in others if ", at " in line}
    return f"needs {'; '.join(sorted(needs))}"
