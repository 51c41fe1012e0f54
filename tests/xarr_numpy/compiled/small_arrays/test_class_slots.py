"""Slots of the class of arrays: which functions Python calls, and what becomes of objects that are freed."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.marks import COMPUTED_AT_ONCE
from xarr.arrays import native_methods

pytest.importorskip("llvmlite")

from xarr_numpy.compiled.small_arrays import class_slots
from xarr_numpy.compiled.small_arrays.class_slots import SLOTS

pytestmark = [
    pytest.mark.usefixtures("on_numpy", "machine_code_methods"),
    pytest.mark.implicit,
    COMPUTED_AT_ONCE,
]


def slot_value(slot: class_slots.Slot, cls: type[Any] = xarr.Array) -> int:
    return int(class_slots._slot_of(cls, slot.number) or 0)


@pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: str(slot.function))
def test_a_slot_is_that_of_its_methods(slot: class_slots.Slot) -> None:
    bare, full = type("Bare", (), {}), type("Full", (), dict.fromkeys(slot.methods, lambda *_: None))
    assert slot_value(slot, full) not in (0, slot_value(slot, bare))


def test_slots_lie_apart() -> None:
    offsets = [class_slots.slot_offset(slot) for slot in SLOTS]
    assert None not in offsets and len({*offsets}) == len(SLOTS)
    assert class_slots.slot_offset(class_slots.Slot(20, "", ())) is None


def test_python_calls_machine_code_until_a_method_is_set() -> None:
    made = {slot.function: slot_value(slot) for slot in SLOTS}
    native_methods.uninstall()
    assert all(slot_value(slot) != made[slot.function] for slot in SLOTS)
    native_methods.install()
    assert made == {slot.function: slot_value(slot) for slot in SLOTS}
    x, add = xarr.asarray([1.0, 2.0]), native_methods._in_python["__add__"]
    try:
        xarr.Array.__radd__ = lambda self, other: "mine"  # type: ignore[method-assign]
        assert 1.0 + x == "mine" and (x + 1.0).tolist() == [2.0, 3.0]
        assert native_methods.uninstall() and native_methods.install()
        assert 1.0 + x == "mine" and (x + x).tolist() == [2.0, 4.0] and (x - x).tolist() == [0.0, 0.0]
    finally:
        xarr.Array.__radd__ = native_methods._in_python["__radd__"]  # type: ignore[method-assign]
    assert (1.0 + x).tolist() == [2.0, 3.0] and add is native_methods._in_python["__add__"]


def test_memory_of_arrays_is_used_again() -> None:
    x = xarr.asarray([1.0, 2.0])
    y = x + x
    address = id(y)
    seen, died = weakref.ref(y), []
    weakref.finalize(y, died.append, True)
    del y
    assert seen() is None and died == [True]
    z = x * x
    assert id(z) == address and z.tolist() == [1.0, 4.0] and z._node.handles == 1
    assert gc.is_tracked(z) and weakref.getweakrefcount(z) == 0
    with pytest.raises(AttributeError):
        (x + 1.0)._made_in  # noqa: B018


def test_many_arrays_come_and_go() -> None:
    x = xarr.asarray([1.0, 2.0])
    references = []
    for _ in range(3):
        arrays = [x + k for k in range(3 * class_slots._MOST_KEPT)]
        assert [each[0].item() for each in arrays] == [1.0 + k for k in range(len(arrays))]
        references.append(sys.getrefcount(xarr.Array) - len(arrays))
        del arrays
        references.append(sys.getrefcount(xarr.Array))
    assert references == references[:1] * 6


def test_what_an_array_refers_to_goes_with_it() -> None:
    x = xarr.asarray(np.arange(300.0)) * 1.0
    value = weakref.ref(x._value)
    row = x[:200]
    node = weakref.ref(row._node)
    del row
    assert node() is None
    del x
    assert value() is None


def test_cycles_are_collected() -> None:
    x = xarr.asarray([1.0, 2.0]) + 1.0
    owner: list[Any] = [x]

    class Part(tuple):  # type: ignore[type-arg]
        """A tuple that refers to the list."""

    part = Part((owner,))
    x._part = part  # type: ignore[assignment]
    gone = weakref.ref(x)
    del x, owner, part
    gc.collect()
    assert gone() is None


def test_a_method_that_is_called_before_an_array_is_freed() -> None:
    x, freed = xarr.asarray([1.0, 2.0]), []
    try:
        xarr.Array.__del__ = lambda self: freed.append(self)  # type: ignore[attr-defined]
        x + 1.0
        assert [each.tolist() for each in freed] == [[2.0, 3.0]]  # alive again
        freed.clear()
        x * 3.0
        assert [each.tolist() for each in freed] == [[3.0, 6.0]]
    finally:
        del xarr.Array.__del__  # type: ignore[attr-defined]
    freed.clear()
    assert (x + x).tolist() == [2.0, 4.0]


def test_objects_of_derived_classes_are_freed() -> None:
    class Derived(xarr.Array):  # type: ignore[misc]
        pass

    bare = object.__new__(Derived)
    bare._value, bare.more = 1.0, [1]
    seen = weakref.ref(bare)
    del bare
    assert seen() is None
    assert (xarr.asarray([1.0]) + 1.0).tolist() == [2.0]


def test_a_class_with_other_fields_is_not_taken() -> None:
    class Wide(xarr.Array):  # type: ignore[misc]
        pass

    assert class_slots.constants(xarr.Array) is not None
    assert class_slots.constants(Wide) is None


def test_elements_cannot_be_deleted() -> None:
    x = xarr.asarray([1.0, 2.0])
    with pytest.raises(xarr.errors.ValueRangeError, match="cannot be deleted"):
        del x[0]
    assert pow(2.0, x).tolist() == [2.0, 4.0] and (x @ [1.0, 2.0]) == 5.0 and ([1.0, 2.0] @ x) == 5.0
    with pytest.raises(xarr.errors.XarrError, match="third argument"):
        pow(x, 2, 3)


def test_a_modulus_is_no_operand_of_reflected_powers() -> None:
    x = xarr.asarray([1, 2])
    for arguments in ((2, x, 3), (2, 3, x)):
        with pytest.raises(TypeError, match="unsupported operand"):
            pow(*arguments)  # type: ignore[misc]


def test_an_array_without_a_value_is_left_to_python() -> None:
    x = xarr.asarray(np.ones((300, 300))) * 2.0
    assert getattr(x, "_device", None) is None and x._value is None
    assert float((x**2)[0, 0]) == 4.0 and bool((-x)[0, 0] < 0) and float(abs(x)[0, 0]) == 2.0
