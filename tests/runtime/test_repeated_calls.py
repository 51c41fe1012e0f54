"""What is remembered from one eager call for the next: the same answers, the same checks, the same lines."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.calls import call_plans, factories
from xarr.ir.graph import Node

pytestmark = pytest.mark.implicit

FUNCTIONS: tuple[Callable[[Any, Any], Any], ...] = (
    xarr.add,
    xarr.divide,
    xarr.atan2,
    xarr.maximum,
    xarr.less,
    xarr.subtract,
)
VALUES = {
    "f32[2,3]": np.array([[1.5, -2.0, 0.0], [4.0, 5.0, -6.0]], np.float32),
    "s8[3]": np.array([1, -2, 3], np.int8),
    "f64[2,1]": np.array([[0.25], [-3.0]]),
    "u16": np.uint16(7),
    "bf16[3]": np.array([1.0, 2.0, 4.0], ml_dtypes.bfloat16),
}


def forget_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_plans.Plans, "get", lambda *_: None)


def of(x: Any) -> Any:
    return xarr.asarray(x).evaluate() if isinstance(x, np.ndarray | np.generic) else x


OPERANDS = {**VALUES, "2": 2, "-0.0": -0.0, "True": True, "0.5": 0.5}
PAIRS = [pair for pair in itertools.product(OPERANDS, repeat=2) if pair[0] in VALUES or pair[1] in VALUES]


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_kept_plan_gives_what_a_new_one_does(
    function: Callable[[Any, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    operands = {name: of(value) for name, value in OPERANDS.items()}
    results = [[function(operands[a], operands[b]) for a, b in PAIRS] for _ in range(2)][1]
    forget_plans(monkeypatch)
    for (a, b), planned in zip(PAIRS, results, strict=True):
        wanted = function(operands[a], operands[b])
        assert _shape_of_graph(planned._node) == _shape_of_graph(wanted._node), (a, b)
        assert_same(np.asarray(planned), np.asarray(wanted))


def _shape_of_graph(node: Node) -> Any:
    """The ops and types above computed values, and these by identity."""
    if node.value is not None:
        return id(node)
    return node.op, node.type, [_shape_of_graph(operand) for operand in node.operands]


def test_numbers_are_told_apart() -> None:
    x = of(VALUES["f32[2,3]"])
    for number in (1.0, -0.0, 0.0, 2.5, float("inf"), 1e300, 3, -3, 0):
        with np.errstate(all="ignore"):
            product, difference = VALUES["f32[2,3]"] * number, number - VALUES["f32[2,3]"]
        assert_same(np.asarray(x * number), product)
        assert_same(np.asarray(number - x), difference)


def test_number_that_does_not_fit_is_refused_each_time() -> None:
    x = of(VALUES["s8[3]"])
    assert_same(np.asarray(x + 100), VALUES["s8[3]"] + np.int8(100))
    for _ in range(2):
        with pytest.raises(xarr.errors.ValueRangeError):
            x + 300


def test_default_dtype_counts() -> None:
    x, y = of(np.array([1, 2])), of(np.array([[4], [8]]))
    for _ in range(2):
        assert (x / y).dtype == np.float64
        with xarr.config(default_dtype="float32"):
            assert (x / y).dtype == np.float32
            assert (x / 2).dtype == np.float32
        assert (x / 2).dtype == np.float64


def test_strictness_counts() -> None:
    x, v = of(VALUES["f32[2,3]"]), of(VALUES["f32[2,3]"][0])
    (x + v), (x + v)
    with xarr.config(broadcasting="explicit"):
        for _ in range(2):
            with pytest.raises(xarr.errors.BroadcastError, match="refuses to broadcast"):
                x + v
    with xarr.config(broadcasting="warn"):
        for _ in range(2):
            with pytest.warns(xarr.errors.BroadcastWarning):
                x + v
    assert_same(np.asarray(x + v), VALUES["f32[2,3]"] + VALUES["f32[2,3]"][0])


def test_planned_broadcast_is_explained() -> None:
    x, v = of(VALUES["f32[2,3]"]), of(VALUES["f32[2,3]"][0])
    (x + v), (x + v)
    assert "broadcast" in xarr.explain(lambda: x + v).text()


def test_arrays_of_two_backends_are_refused_each_time() -> None:
    x, v = of(VALUES["f32[2,3]"]), of(VALUES["f32[2,3]"][0])
    (x + v), (x + v)
    with xarr.use_backend("reference"):
        other = of(VALUES["f32[2,3]"][0])
    for _ in range(2):
        with pytest.raises(xarr.errors.BackendError):
            x + other
        with pytest.raises(xarr.errors.BackendError):
            other + x


def test_array_of_no_backend_stays_one() -> None:
    x = of(VALUES["f32[2,3]"])
    for _ in range(3):
        v = xarr.add(1.0, 1.0)
        assert (x + v)._node.device is x._node.device
        assert (v + 1.0)._node.device is None
        assert_same(np.asarray(v * x), VALUES["f32[2,3]"] * np.float64(2))


def test_numbers_alone_make_an_array() -> None:
    for _ in range(3):
        assert_same(np.asarray(xarr.add(1.0, 2)), np.array(3.0))
        assert_same(np.asarray(xarr.add(np.float32(1.0), 2)), np.array(3.0, np.float32))


@pytest.mark.usefixtures("recorded")
def test_every_node_of_a_planned_operation_names_the_line() -> None:
    x, v = of(VALUES["f32[2,3]"]), of(VALUES["s8[3]"])
    lines = []
    for _ in range(3):
        y = x + v
        nodes = [y._node, y._node.operands[1], y._node.operands[1].operands[0]]
        lines.append([node.source.line if node.source else None for node in nodes])
    assert lines[0] == lines[1] == lines[2]
    assert len(set(lines[0])) == 1


def test_plans_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_plans, "_PLANS_KEPT", 4)
    function = factories.binary("add", xarr.ir.ops.Add(), call_plans.same, "x1 + x2.")
    cells = [cell.cell_contents for cell in function.__closure__ if isinstance(cell.cell_contents, dict)]
    for size in range(1, 11):
        assert_same(np.asarray(function(of(np.ones(size)), 1.0)), np.full(size, 2.0))
    assert max(map(len, cells)) <= 4 and any(cells)


def test_one_operand_twice_is_another_program_than_two() -> None:
    x, y = of(np.array([1.0, 2.0])), of(np.array([10.0, 20.0]))
    for _ in range(3):
        assert_same(np.asarray(x - y), np.array([-9.0, -18.0]))
        assert_same(np.asarray(x - x), np.zeros(2))
        assert_same(np.asarray(y - x), np.array([9.0, 18.0]))
        assert_same(np.asarray(x * x * y), np.array([10.0, 80.0]))


def test_order_of_operands_and_results_counts() -> None:
    x, y = of(np.array([1.0, 2.0])), of(np.array([10.0, 20.0]))
    for _ in range(2):
        for first, second in ((x, y), (y, x)):
            a = first * 2.0
            b = a - second
            c = second - a
            xarr.evaluate(c, b)
            host, other = np.asarray(first), np.asarray(second)
            assert_same(np.asarray(b), host * 2 - other)
            assert_same(np.asarray(c), other - host * 2)


def test_changed_operand_that_an_array_shows_is_kept() -> None:
    x, v = of(VALUES["f32[2,3]"]), of(VALUES["f32[2,3]"][0])
    for shown in (False, True, False, True):
        wide = xarr.broadcast_to(v, (2, 3))
        y = x - wide
        if not shown:
            del wide
        y.evaluate()
        assert_same(np.asarray(y), VALUES["f32[2,3]"] - VALUES["f32[2,3]"][0])
        if shown:
            assert wide.is_evaluated


def test_few_operands_in_any_order_and_more_than_once() -> None:
    a, b = of(np.array([1.0, 2.0, 3.0])), of(np.array([[10.0], [20.0]]))
    host, other = np.asarray(a), np.asarray(b)
    for _ in range(3):
        assert_same(np.asarray(a - b), host - other)
        assert_same(np.asarray(b - a), other - host)
        assert_same(np.asarray(a - a[::-1]), host - host[::-1])
        assert_same(np.asarray(a[::-1] - a), host[::-1] - host)
        assert_same(np.asarray(b.T - b), other.T - other)
        assert_same(np.asarray(xarr.where(a > 1.5, a, -1.0)), np.where(host > 1.5, host, -1.0))
        assert_same(np.asarray(xarr.where(a > 1.5, 7.0, 7.0)), np.array([7.0, 7.0, 7.0]))
        assert_same(np.asarray(a[0]), host[0])
        assert_same(np.asarray(a[1]), host[1])


def test_numbers_are_drawn_once_for_an_operand_that_is_used_twice() -> None:
    for _ in range(3):
        drawn = xarr.lax.rng_uniform(np.float32(0), np.float32(1), (4,))
        difference = drawn - drawn
        del drawn
        assert_same(np.asarray(difference), np.zeros(4, np.float32))
