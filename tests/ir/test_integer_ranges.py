"""The ranges of operations of integers against all numbers that their operands may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.fuzz import generator
from xarr.ir import ops
from xarr.ir.constants import constant, full
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.integer_ranges import Range, has_range, narrow, range_by_rule
from xarr.ir.op import Op
from xarr.ir.ops.custom_calls import CHECKED_INDICES
from xarr.ir.types import TensorType
from xarr_reference.interpreter import run

BINARY: tuple[Op, ...] = (
    *(ops.Add(), ops.Subtract(), ops.Multiply(), ops.Divide(), ops.Remainder(), ops.Minimum(), ops.Maximum()),
    *(ops.And(), ops.Or(), ops.Xor(), ops.ShiftLeft(), ops.ShiftRightLogical(), ops.ShiftRightArithmetic()),
)
DTYPES = [np.dtype(name) for name in ("int8", "uint8")]
#: Where ranges begin and end.
ENDS = (-128, -127, -20, -9, -2, -1, 0, 1, 2, 7, 8, 9, 31, 100, 126, 127, 128, 200, 254, 255)


def range_of(result: Node, known: dict[Node, Range | None]) -> Range | None:
    """The range of a node by those of parameters."""
    if result in known or not has_range(result):
        return known.get(result)
    return range_by_rule(result, lambda node: range_of(node, known))


def draw_range(random: Any, dtype: np.dtype[Any]) -> Range:
    limits = np.iinfo(dtype)
    ends = [end for end in ENDS if limits.min <= end <= limits.max]
    low, high = sorted(random.choices(ends, k=2))
    return low, min(high, low + random.choice([0, 3, 40]))


def check(random: Any, make: Any, dtype: np.dtype[Any], count: int) -> bool:
    """Compare a range with all results; whether one was known.  An operand in ten is any number, by its range."""
    ranges = [draw_range(random, dtype) for _ in range(count)]
    axes = [np.arange(low, high + 1).astype(dtype) for low, high in ranges]
    grid = [each.ravel() for each in np.meshgrid(*axes, indexing="ij")]
    operands = [parameter(TensorType(grid[0].shape, dtype)) for _ in grid]
    result = make(*operands)
    known: dict[Node, Range | None] = {
        node: None if random.random() < 0.1 else range_ for node, range_ in zip(operands, ranges, strict=True)
    }
    result_range = range_of(result, known)
    if result_range is None:
        return False
    with np.errstate(all="ignore"):
        (values,) = run(Graph(operands, [result]), *grid)
    assert isinstance(values, np.ndarray)
    low, high = result_range
    assert low <= values.min() <= values.max() <= high, (ranges, result_range)
    return True


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.lax_name)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operations_of_two(op: Op, dtype: np.dtype[Any]) -> None:
    random = generator("ranges of two", op.lax_name)
    assert sum(check(random, lambda x, y: Node(op, (x, y)), dtype, 2) for _ in range(60)) > 0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_clamps(dtype: np.dtype[Any]) -> None:
    random = generator("ranges of clamps", 0)
    for _ in range(60):
        check(random, lambda x, y: Node(ops.Clamp(), (x, y, full(9, x.shape, dtype))), dtype, 2)
        check(random, lambda x, y: Node(ops.Clamp(), (full(3, x.shape, dtype), y, x)), dtype, 2)


@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE", "EQ", "NE"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_choices_by_comparisons_of_what_they_choose(direction: str, dtype: np.dtype[Any]) -> None:
    random = generator("ranges of choices", direction)

    def make(x: Node, y: Node) -> Node:
        shifted = Node(random.choice([ops.Add(), ops.Subtract()]), (x, full(7, x.shape, dtype)))
        compared = (x, y) if random.random() < 0.5 else (y, x)
        holds = Node(ops.Compare(direction), compared)
        if random.random() < 0.3:
            holds = Node(ops.And(), (holds, Node(ops.Compare("GE"), (x, full(1, x.shape, dtype)))))
        choices = random.choice([(x, y), (y, x), (shifted, x), (x, shifted)])
        return Node(ops.Select(), (holds, *choices))

    assert sum(check(random, make, dtype, 2) for _ in range(40)) > 10


def test_an_index_counted_from_the_end_is_known() -> None:
    k = parameter(TensorType((5,), np.dtype(np.int64)))
    is_negative = Node(ops.Compare("LT"), (k, full(0, (5,), k.dtype)))
    counted = Node(ops.Select(), (is_negative, Node(ops.Add(), (k, full(9, (5,), k.dtype))), k))
    assert range_of(counted, {k: (-9, 8)}) == (0, 8)
    assert range_of(counted, {k: (-10, 8)}) == (-1, 8)
    assert range_of(counted, {k: None}) == (9 - 2**63, 2**63 - 1)


@pytest.mark.parametrize(
    ("size", "operand", "wanted"),
    [(9, None, (0, 8)), (9, (-3, 5), (0, 8)), (9, (2, 30), (2, 8)), (0, None, None), (300, None, None)],
)
def test_checked_indices_lie_in_bounds(size: int, operand: Range | None, wanted: Range | None) -> None:
    type = TensorType((5,), np.dtype(np.int8))
    index = parameter(type)
    call = ops.CustomCall(CHECKED_INDICES, (type,), (("axis", 0), ("size", size)))
    assert range_of(Node(call, (index,)), {index: operand}) == wanted


def test_windows_of_nothing_read_zeros() -> None:
    array, start = (parameter(TensorType(shape, np.dtype(np.int64))) for shape in ((4,), (3, 1)))
    gathers = [Node(ops.Gather((), (0,), (), (), (0,), 1, (size,)), (array, start)) for size in (1, 0)]
    assert [range_of(each, {array: (5, 7), start: None}) for each in gathers] == [(5, 7), (0, 7)]


@pytest.mark.parametrize(
    ("op", "wanted"), [(ops.Minimum(), (-3, 7)), (ops.Maximum(), (-3, 7)), (ops.Add(), None), (None, (-3, 7))]
)
def test_updates_that_replace_or_are_compared(op: Op | None, wanted: Range | None) -> None:
    scalar = TensorType((), np.dtype(np.int64))
    a, b = parameter(scalar), parameter(scalar)
    combine = Graph((a, b), [b if op is None else Node(op, (a, b))])
    array, index, update = (parameter(TensorType(shape, scalar.dtype)) for shape in ((4,), (3, 1), (3,)))
    scatter = Node(ops.Scatter((), (0,), (), (), (0,), 1, combine), (array, index, update))
    assert range_of(scatter, {array: (5, 7), index: None, update: (-3, 2)}) == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("uint8", (0, 255)),
        ("int16", (-(2**15), 2**15 - 1)),
        ("bool", (0, 1)),
        ("float32", None),
        ("uint64", None),
    ],
)
def test_converted_numbers_are_of_the_type_before(name: str, wanted: Range | None) -> None:
    number = parameter(TensorType((3,), np.dtype(name)))
    converted = Node(ops.Convert(np.dtype(np.int64)), (number,))
    assert range_of(converted, {number: (0, 1) if name == "bool" else None}) == wanted
    assert range_of(Node(ops.Convert(np.dtype(np.int8)), (number,)), {number: (0, 1)}) == (0, 1)


def test_numbers_that_have_no_range() -> None:
    assert not has_range(constant(1.5, np.dtype(np.float64)))
    assert not has_range(parameter(TensorType((0,), np.dtype(np.int64))))
    assert range_of(constant(-4, np.dtype(np.int16)), {}) == (-4, -4)


def test_conditions_that_others_have_many_times_are_asked_once() -> None:
    k = parameter(TensorType((), np.dtype(np.int64)))
    holds = Node(ops.Compare("GE"), (k, full(2, (), k.dtype)))
    for _ in range(40):
        holds = Node(
            ops.And(), (holds, Node(ops.And(), (holds, Node(ops.Compare("LT"), (k, full(9, (), k.dtype))))))
        )
    asked = []

    def ask_of(node: Node) -> Range | None:
        asked.append(node)
        return range_of(node, {k: None})

    assert narrow(k, holds, True, ask_of) == (2, 8)
    assert len(asked) < 200
