"""Attributes of objects, known again without keeping what they belong to alive."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import xarr
from xarr.transforms.object_state import attributes_of, is_seen, mark


class Model:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def is_same(before: Model, after: Model) -> bool:
    """Whether the attributes of the one are known again in those of the other."""
    old, new = attributes_of(before), attributes_of(after)
    return len(old) == len(new) and all(
        is_seen(value, mark(each)) for value, each in zip(new, old, strict=True)
    )


def test_objects_without_attributes_have_none() -> None:
    assert attributes_of(Model()) == attributes_of(3) == []


@pytest.mark.parametrize(
    "value", [True, 1, 1.0, 1j, -0.0, 0.0, float("nan"), "text", None, (1, 2.0), {"a": [1]}]
)
def test_equal_values_are_known_again(value: Any) -> None:
    assert is_same(Model(a=value), Model(a=value))
    assert not is_same(Model(a=value), Model(a="other"))
    assert not is_same(Model(a=value), Model(b=value))
    assert not is_same(Model(a=value), Model(a=value, b=0))


@pytest.mark.parametrize(
    ("old", "new"),
    [(1, True), (1, 1.0), (0.0, -0.0), (1, 1 + 0j), ((1,), [1]), ({"a": 1}, {"b": 1}), ((1, 2), (1, 2.0))],
)
def test_values_that_a_function_can_tell_apart_are_others(old: Any, new: Any) -> None:
    assert not is_same(Model(a=old), Model(a=new))
    assert not is_same(Model(a=new), Model(a=old))


def test_an_array_is_its_value_of_now() -> None:
    x = xarr.zeros(3)
    model = Model(x=x, parts=[x, {"y": x}])
    known = [mark(each) for each in attributes_of(model)]
    assert all(map(is_seen, attributes_of(model), known))
    x[0] = 1
    shown = attributes_of(model)
    assert [is_seen(*pair) for pair in zip(shown, known, strict=True)] == [
        each is not x._node for each in shown
    ]
    assert sum(each is x._node for each in shown) == 3


def test_marks_keep_no_object_alive() -> None:
    part = Model()
    known = [mark(each) for each in attributes_of(Model(part=part))]
    gone = weakref.ref(part)
    assert all(map(is_seen, attributes_of(Model(part=part)), known))
    del part
    gc.collect()
    assert gone() is None
    assert not is_seen(Model(), known[-1])


class Layer(Model):
    @xarr.jit
    def __call__(self, x: xarr.Array) -> xarr.Array:
        return x if self.bias is None else x + 1


def test_none_instead_of_an_object_that_is_gone_is_another_value() -> None:
    layer, x = Layer(bias=Model()), xarr.zeros(2)
    assert layer(x).tolist() == [1, 1]
    layer.bias = None
    assert layer(x).tolist() == [0, 0]


def test_dicts_without_an_order_are_leaves() -> None:
    mixed = {1: "a", "b": 2}
    assert is_same(Model(a=mixed), Model(a=mixed))
    assert not is_same(Model(a=mixed), Model(a=dict(mixed)))
