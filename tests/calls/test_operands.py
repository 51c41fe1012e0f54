"""Operands of NumPy-style calls: one element type, one shape, and who is told of a broadcast."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.base.configuration import current as config
from xarr.calls import operands
from xarr.calls.operands import Event, ImplicitBroadcast, MatrixProduct, watching
from xarr.errors import (
    AmbiguousBroadcastWarning,
    BackendError,
    BroadcastError,
    BroadcastWarning,
    DTypeError,
    InputError,
    OuterBroadcastWarning,
)
from xarr.ir import ops
from xarr.runtime.handles import wrap

I8, I32, F16, F32, F64 = map(np.dtype, (np.int8, np.int32, np.float16, np.float32, np.float64))


def array(shape: tuple[int, ...], dtype: Any = F32) -> Any:
    return xarr.asarray(np.arange(int(np.prod(shape))).reshape(shape).astype(dtype))


# --- one element type ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [
        ([I8], I8),
        ([F32, F32], F32),
        ([I8, np.dtype(np.uint8)], np.dtype(np.int16)),
        ([I32, F32], F64),
        ([I8, float], F64),
        ([F16, float], F16),
        ([F16, int, bool], F16),
        ([I8, int], I8),
        ([np.dtype(bool), int], np.dtype(np.int64)),
        ([F32, complex], np.dtype(np.complex64)),
        ([int, float], F64),
        ([bool], np.dtype(bool)),
        ([bool, complex, int], np.dtype(np.complex128)),
    ],
    ids=str,
)
def test_promoted_types(kinds: list[Any], wanted: np.dtype[Any]) -> None:
    assert operands.promoted_type(kinds) == wanted
    assert operands.promoted_type(kinds[::-1]) == wanted
    values = [kind(1) if isinstance(kind, type) else np.ones(2, kind) for kind in kinds]
    assert operands.common_dtype(*values) == wanted
    assert operands.common_dtype(*map(operands.as_array, values[:1])) == operands.as_array(values[0]).dtype


def test_kinds_and_types_of_values() -> None:
    assert [operands.dtype_or_kind(value) for value in (True, 1, 1.0, 1j)] == [bool, int, float, complex]
    assert operands.dtype_or_kind(np.float16(1)) == operands.dtype_or_kind(array((2,), F16)) == F16
    with pytest.raises(InputError, match="dates and durations cannot be array elements"):
        operands.dtype_or_kind(np.array(["2020-01-01"], "datetime64[D]"))


def test_arrays_of_values() -> None:
    x = array((2,))
    assert operands.as_array(x) is x
    assert_same(operands.as_array(3), np.array(3, np.int64))
    assert_same(operands.as_array([[1.5]]), np.array([[1.5]]))
    host = np.ones(2, F32)
    copied = operands.as_array(host)
    host[0] = 5
    assert_same(copied, np.ones(2, F32))
    assert_same(operands.as_numbers(np.array([True, False])), np.array([1, 0], np.int8))
    assert operands.as_numbers(x) is x


def test_another_handle_keeps_its_value() -> None:
    x = array((2,))
    other = operands.fresh(x)
    assert other is not x and other._node is x._node
    other[0] = 7
    assert_same(x, np.arange(2, dtype=F32))
    assert_same(other, np.array([7, 1], F32))


def test_operands_of_one_element_type() -> None:
    x, y, z = operands.promote_operands("f", array((2,), I8), np.ones((3, 1), F32), 2)
    assert [each.dtype for each in (x, y, z)] == [F32] * 3
    assert [each.shape for each in (x, y, z)] == [(2,), (3, 1), ()]
    x, y = operands.promote_operands("f", array((2,), I8), 1.5, dtype=F16)
    assert_same(x, np.array([0, 1], F16))
    assert_same(y, np.array(1.5, F16))
    same = array((2,))
    assert operands.promote_operands("f", same, 1.0)[0]._node is same._node, "nothing is converted"
    with pytest.raises(DTypeError):
        operands.promote_operands("f", np.ones(1, ml_dtypes.float8_e4m3fn), np.ones(1, ml_dtypes.bfloat16))
    with pytest.raises(OverflowError):
        operands.promote_operands("f", array((2,), I8), 1000)


def test_operands_of_two_backends_are_refused() -> None:
    own, other = array((2,)), array((2,)).to("reference" if config.backend != "reference" else "numpy")
    with pytest.raises(BackendError, match="operands live on two backends"):
        operands.promote_operands("f", own.to("numpy"), other.to("reference"))


# --- one shape ----------------------------------------------------------------------------------------


@pytest.mark.implicit
def test_operands_of_one_shape() -> None:
    x, y = operands.prepare_operands("f", array((3, 1), I8), array((4,)))
    assert_same(x, np.broadcast_to(np.arange(3, dtype=F32)[:, None], (3, 4)))
    assert_same(y, np.broadcast_to(np.arange(4, dtype=F32), (3, 4)))
    assert_same(operands.prepare_operands("f", array((0, 2)), 1)[1], np.ones((0, 2), F32))
    x, y = array((2, 3)), array((3,))
    first, second = operands.broadcast_operands("f", x, y)
    assert first is x and isinstance(second._node.op, ops.BroadcastInDim)


def test_operands_of_equal_shapes_stay_as_they_are() -> None:
    x, y = array((2, 3)), array((2, 3), F64)
    assert [a is b for a, b in zip(operands.broadcast_operands("f", x, y), (x, y), strict=True)] == [True] * 2
    nodes = (x._node, y._node)
    assert operands.broadcast_nodes("f", nodes) is nodes


def test_shapes_that_do_not_fit_are_refused_with_their_types() -> None:
    with pytest.raises(BroadcastError, match=r"f32\[2\].*f64\[3\].*does not broadcast"):
        operands.broadcast_operands("add", array((2,)), array((3,), F64))


def test_discipline() -> None:
    shapes, dtypes = ((3, 1), (4,)), (F32, F64)
    config.broadcasting = "numpy"
    assert operands.align("add", shapes, dtypes).result == (3, 4)
    config.broadcasting = "explicit"
    with pytest.raises(BroadcastError, match="explicit"):
        operands.align("add", shapes, dtypes)
    assert operands.align("add", ((2, 3), (2, 3)), dtypes).result == (2, 3)
    config.broadcasting = "warn"
    with pytest.warns(OuterBroadcastWarning, match=r"f32\[3,1\].*f64\[4\]"):
        assert operands.align("add", shapes, dtypes).result == (3, 4)
    with pytest.warns(BroadcastWarning) as caught:
        operands.align("add", ((3, 4), (4,)), dtypes)
    assert [each.category for each in caught] == [BroadcastWarning]
    with pytest.warns(AmbiguousBroadcastWarning):
        operands.align("add", ((3, 3), (3,)), dtypes)


# --- who is told --------------------------------------------------------------------------------------


def observe_events(call: Callable[[], object]) -> list[Event]:
    events: list[Event] = []
    with watching(events.append):
        call()
    assert not operands.observers
    return events


@pytest.mark.implicit
def test_observers_are_told_of_implicit_broadcasts() -> None:
    x, y = array((3, 1)), array((4,), F64)
    (event,) = observe_events(lambda: operands.broadcast_operands("add", x, y))
    assert isinstance(event, ImplicitBroadcast)
    assert (event.op, event.alignment.operands, event.dtypes) == ("add", ((3, 1), (4,)), ("f32", "f64"))
    assert event.nodes == (x._node, y._node)
    assert event.source is not None and event.source.filename == __file__
    (event,) = observe_events(lambda: operands.align_observed("mul", ((3, 1), (4,)), (F32, F64)))
    assert isinstance(event, ImplicitBroadcast) and (event.op, event.nodes) == ("mul", ())
    assert operands.align_observed("mul", ((3, 1), (4,)), (F32, F64)).result == (3, 4)
    assert observe_events(lambda: operands.broadcast_operands("add", x, x)) == []
    assert observe_events(lambda: operands.align_observed("add", ((3,), (3,)), (F32, F64))) == []


def test_observers_are_told_of_products() -> None:
    (event,) = observe_events(lambda: operands.observe_product(array((2, 3)), np.ones((3,))))
    assert isinstance(event, MatrixProduct)
    assert (event.shapes, event.dtypes) == (((2, 3), (3,)), ("f32", "f64"))
    assert event.source is not None and event.source.filename == __file__


def test_observers_hear_of_their_own_thread_alone_and_not_after_the_block() -> None:
    x = array((2, 2))

    def elsewhere() -> None:
        thread = threading.Thread(target=operands.observe_product, args=(x, x))
        thread.start()
        thread.join()

    assert observe_events(elsewhere) == []
    with pytest.raises(KeyError), watching(lambda event: None):
        raise KeyError
    assert not operands.observers


def test_nodes_of_values() -> None:
    x = array((2,), I8)
    kept, converted, number = operands.nodes_of((x, np.ones(2, F32), 3), None)
    assert kept is x._node and converted.dtype == F32 and number.dtype == np.int64
    kept, converted, number = operands.nodes_of((x, np.ones(2, F32), 3), F32)
    assert isinstance(kept.op, ops.Convert) and kept.operands == (x._node,)
    assert not isinstance(converted.op, ops.Convert) and number.dtype == F32
    assert_same(wrap(operands.node_of(2.5, F16, None)), np.array(2.5, F16))
    assert operands.node_of(np.ones(2, F32), F64, None).dtype == F32, "an array keeps its own"
