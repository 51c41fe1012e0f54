"""Ops that are recorded again by what is known of their types: the same nodes as the first time, at their own lines."""

from __future__ import annotations

import itertools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.calls import call_plans, factories
from xarr.calls.operands import are_in_force
from xarr.errors import BackendError, BroadcastError, ValueRangeError
from xarr.ir.graph import Node, postorder
from xarr.numpy_api.mathematics import elementwise
from xarr.runtime.handles import wrap
from xarr.runtime.small_ops import MOST_BYTES

pytestmark = [pytest.mark.implicit, pytest.mark.usefixtures("on_numpy", "usual")]

LARGE = (600, 500)
OPERATORS: tuple[Callable[[Any, Any], Any], ...] = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
    *(operator.lt, operator.eq, operator.ne, operator.ge, operator.pow),
)
NUMBERS = (2, 2.0, True, -0.0, 0.0, float("nan"), float("inf"), 1e300, 1j, 2**40, -1)


@pytest.fixture
def usual() -> Iterator[None]:
    """Settings under which ops on small arrays are computed at once, whatever the run is about."""
    with xarr.config(fusion="auto", small_arrays="eager", broadcasting="numpy"):
        yield


def draw(shape: tuple[int, ...], dtype: Any) -> Any:
    values = np.random.default_rng(len(shape)).normal(size=shape) * 4
    return xarr.asarray(values.astype(dtype)).evaluate()


def shape_of_graph(node: Node) -> Any:
    """The ops and types above computed values, and these by identity; what is small by its bytes, computed or not."""
    if node.type.nbytes <= MOST_BYTES and postorder([node])[0].value is not None:
        return node.type, node.device, np.asarray(wrap(node)).tobytes()
    if node.value is not None:
        return id(node)
    return node.op, node.type, node.device, [shape_of_graph(operand) for operand in node.operands]


def outcome(call: Callable[[], Any]) -> Any:
    """The graph that a call records, or what it raises."""
    try:
        result = call()
    except (xarr.errors.XarrError, TypeError) as error:
        return type(error), str(error)
    return shape_of_graph(result._node)


def compare_with_new_plans(calls: list[Callable[[], Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call records the same twice, and as often as its plan is made anew."""
    for call in calls:
        again = [outcome(call) for _ in range(3)]
        with monkeypatch.context() as patch:
            patch.setattr(call_plans.Plans, "get", lambda *_: None)
            patch.setattr(call_plans, "_numbers", {})
            assert again == [outcome(call)] * 3


@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
def test_the_same_is_recorded_again(
    function: Callable[[Any, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = [draw(LARGE, dtype) for dtype in ("float64", "float32", "int64", "uint64", "bool", "complex64")]
    others = [*arrays, draw((500,), "int8"), draw((600, 1), "float64"), draw((), "float32"), arrays[0] + 1]
    pairs = [*itertools.product(arrays, others), *itertools.product(arrays, NUMBERS)]
    swapped = [(b, a) for a, b in pairs[::3]]
    calls = [lambda a=a, b=b: function(a, b) for a, b in pairs + swapped]
    compare_with_new_plans(calls, monkeypatch)


def test_functions_of_one_operand_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for dtype in ("float64", "int8", "complex128", "bool"):
        x = draw((700, 800), dtype)
        functions = [xarr.sin, xarr.abs, operator.neg, xarr.exp, xarr.logical_not, xarr.sqrt, xarr.isnan]
        compare_with_new_plans([lambda x=x, f=f: f(x) for f in functions], monkeypatch)


def test_small_arrays_too_where_nothing_is_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x, v, k = draw((3, 4), "float32"), draw((4,), "int8"), draw((), "float64")
    with xarr.config(small_arrays="lazy"):
        pairs = [*itertools.product((x, v, k, x + 1), (x, v, k, v + v, *NUMBERS)), (2.5, x), (True, v)]
        compare_with_new_plans([lambda a=a, b=b: a * b for a, b in pairs], monkeypatch)
        assert not (x + v).is_evaluated
    assert (x + v)._value is not None  # computed at once again
    with xarr.config(small_arrays="lazy"):
        assert (x + v)._value is None


def count_plans(monkeypatch: pytest.MonkeyPatch, function: Any) -> list[Any]:
    """The plans that a function makes from now on."""
    made: list[Any] = []
    plan = call_plans.plan
    monkeypatch.setattr(call_plans, "plan", lambda *rest: made.append(rest) or plan(*rest))
    assert function in call_plans.repeats
    return made


def test_a_plan_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x = draw(LARGE, "float64")
    made = count_plans(monkeypatch, elementwise.add)
    for _ in range(4):
        x + 1.25
    assert len(made) <= 1


def test_each_node_names_its_line() -> None:
    x, v = draw(LARGE, "float64"), draw((500,), "int32")
    for _ in range(2):
        first = x + v * 2.5
        second = x + v * 2.5
        lines = [
            {node.source.line for node in postorder([each._node]) if node.value is None and node.source}
            for each in (first, second)
        ]
        assert [len(each) for each in lines] == [1, 1] and max(lines[0]) + 1 == max(lines[1])


def test_a_number_of_a_line_is_one_node_and_a_new_number_another() -> None:
    x = draw(LARGE, "float64")

    def constant(scale: float) -> Node:
        (node,) = [
            node for node in postorder([(x * scale)._node]) if not node.operands and node.value is None
        ]
        return node

    constant(0.5)
    half = 0.5
    assert constant(half) is constant(half)
    minus, plus = constant(-0.0), constant(0.0)
    assert np.signbit(minus.op.array) and not np.signbit(plus.op.array)  # type: ignore[attr-defined]
    assert constant(True) is not constant(1)
    assert constant(float("nan")) is not constant(half)


def test_numbers_kept_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_plans, "_MOST_NUMBERS", 3)
    monkeypatch.setattr(call_plans, "_numbers", {})
    x = draw(LARGE, "float64")
    for number in range(8):
        total = eval(f"x + {number}.5")  # each a line of its own
        assert float(total[0, 0]) == float(x[0, 0]) + number + 0.5
    assert len(call_plans._numbers) <= 3


def test_a_number_that_does_not_fit_is_refused_each_time() -> None:
    x = draw((700, 700), "int8")
    for number in (100, 300, 100, 300):
        if number == 300:
            with pytest.raises(ValueRangeError, match="300"):
                x + number
            assert bool((x < number).all())
        else:
            assert (x + number).dtype == np.int8


def test_devices_are_joined_each_time() -> None:
    x = draw(LARGE, "float64")
    x + x
    with xarr.use_backend("reference"):
        other = draw(LARGE, "float64")
    for _ in range(2):
        with pytest.raises(BackendError):
            x + other


def test_settings_and_observers_count() -> None:
    x, v = draw(LARGE, "float64"), draw((500,), "float64")
    (x + v), (x + v)
    with xarr.config(broadcasting="explicit"), pytest.raises(BroadcastError):
        x + v
    with xarr.config(default_dtype="float32"):
        assert (draw(LARGE, "int64") / 2).dtype == np.float32
    assert (draw(LARGE, "int64") / 2).dtype == np.float64
    assert "broadcast" in xarr.explain(lambda: x + v).text()


def test_a_traced_function_records_its_own_numbers() -> None:
    x = draw(LARGE, "float64")

    def scale(a: Any) -> Any:
        return a * 2.5

    eager = scale(x)
    assert_same(np.asarray(xarr.jit(scale)(x)), np.asarray(scale(x)))
    assert_same(np.asarray(eager), np.asarray(x) * 2.5)


def test_what_is_large_beside_a_small_value() -> None:
    x, v = draw(LARGE, "float64"), draw((500,), "float64")
    w = v + 1  # a value alone
    for _ in range(3):
        before = np.asarray(v) + 1
        assert_same(np.asarray(x + w), np.asarray(x) + before)
        assert_same(np.asarray(w - x), before - np.asarray(x))
        total = x + w
        w[0] = 5.0
        assert_same(np.asarray(total), np.asarray(x) + before)
        w = v + 1


def test_changes_in_place() -> None:
    x = draw(LARGE, "float64")
    host = np.array(x)
    y = x
    for _ in range(4):
        y += x
        y *= 0.5
        host += np.asarray(x)
        host *= 0.5
    assert y is x
    assert x.shape == LARGE


def test_threads_record_the_same() -> None:
    x = draw(LARGE, "float64")
    results: list[Any] = []

    def work() -> None:
        for _ in range(200):
            total = x * 1.5 + x
        results.append(np.asarray(total))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 4
    for result in results:
        assert_same(result, np.asarray(x) * 1.5 + np.asarray(x))


def test_settings_in_force_are_those_that_are_told() -> None:
    state = xarr.config.state()
    assert are_in_force(state) and not are_in_force(None)
    with xarr.config(max_depth=7):
        assert not are_in_force(state)
    seen: list[bool] = []
    xarr.jit(lambda a: seen.append(are_in_force(state)) or a)(draw((2,), "float64"))
    assert seen == [False]


def test_functions_of_one_op_are_known() -> None:
    assert call_plans.repeat_of(elementwise.add)(1, 2, None) is None  # type: ignore[arg-type]
    assert call_plans.repeat_of(factories.binary) is call_plans._never


def test_plans_for_arrays_of_numpy_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    x, host, row = draw((3, 4), "float64"), np.arange(12.0).reshape(3, 4), np.arange(4.0)
    calls = (lambda: x + host, lambda: host * x, lambda: x - row, lambda: xarr.sin(host))
    wanted = [np.asarray(call()) for call in calls]
    with monkeypatch.context() as patch:
        patch.setattr(call_plans, "plan", lambda *_: pytest.fail("planned again"))
        for call, value in zip(calls, wanted, strict=True):
            assert_same(call(), value)
    with xarr.config(broadcasting="explicit"):
        assert_same(x + host, wanted[0])
        with pytest.raises(BroadcastError):
            x - row
    assert_same(x - row, wanted[2])
