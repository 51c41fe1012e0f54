"""Slots of a class of arrays: what Python calls for its operators without looking a method up, and to make objects.

Where a slot has no function of its own, Python looks for the method by its name, which takes as long as to add two
numbers.  It would free an object field by field, by their descriptions, which takes longer.  As of Python's floats and
lists, the memory of some is kept for the next ones, and is not counted by the collector of garbage.

Setting a method of a class makes Python fill the slot anew, so that a method of the user is called from then on.

Sources: CPython, Include/typeslots.h, whose numbers are part of the stable ABI, and Objects/typeobject.c.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping
from functools import cache
from string import Template
from types import MemberDescriptorType
from typing import Any, Final, NamedTuple

#: Objects whose memory is kept.
_MOST_KEPT: Final = 256

_slot_of: Final = ctypes.pythonapi.PyType_GetSlot
_slot_of.restype = ctypes.c_void_p
_slot_of.argtypes = [ctypes.py_object, ctypes.c_int]


class Slot(NamedTuple):
    """A slot by its number, the function for it, and the methods that it stands for."""

    number: int
    function: str
    methods: tuple[str, ...]


def _of_two(numbers: Mapping[str, int]) -> list[Slot]:
    return [Slot(number, f"slot_{name}", (f"__{name}__", f"__r{name}__")) for name, number in numbers.items()]


def _of_method(numbers: Mapping[str, int]) -> list[Slot]:
    return [Slot(number, f"method___{name}__", (f"__{name}__",)) for name, number in numbers.items()]


COMPARISONS: Final = ("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__")
SLOTS: Final = (
    *_of_two({"add": 7, "and": 8, "floordiv": 12, "lshift": 28, "mul": 29, "or": 31, "pow": 33, "mod": 34}),
    *_of_two({"rshift": 35, "sub": 36, "truediv": 37, "xor": 38, "matmul": 75}),
    *_of_method({"iadd": 14, "iand": 15, "ifloordiv": 16, "ilshift": 17, "imul": 18, "ior": 19, "imod": 21}),
    *_of_method({"irshift": 22, "isub": 23, "itruediv": 24, "ixor": 25, "getitem": 5}),
    *_of_method({"abs": 6, "float": 11, "index": 13, "int": 26, "neg": 30}),
    *(Slot(9, "slot_bool", ("__bool__",)), Slot(3, "slot_setitem", ("__setitem__", "__delitem__"))),
    Slot(67, "slot_compare", COMPARISONS),
)
#: Methods of slots that have no machine code.
IN_PYTHON: Final = ("__rpow__", "__rmatmul__", "__delitem__")
_ALLOC, _DEALLOC, _FINALIZE = (
    Slot(number, name, ()) for number, name in ((47, "allocate"), (52, "deallocate"), (80, ""))
)

#: `pool` has the last one of the objects that are kept, each of which refers to the next in the field of its node, and
#: how many there are.
ALLOCATION: Final = """
@exported
def allocate(cls: ptr, items: i64) -> ptr:
    array = pool.ptr[0] if cls is state.ARRAY else null
    if not array:
        return PyType_GenericAlloc(cls, items)
    pool.ptr[0] = array.AT_SHOWN
    pool.i64[1] -= 1
    array.AT_SHOWN = null
    hold(cls)
    _Py_NewReference(array)
    PyObject_GC_Track(array)
    return array

# Of classes that derive from that of Arrays Python has cleared what they add.
@exported
def deallocate(array: ptr):
    cls = array.CLASS
    if cls.FINALIZER and PyObject_CallFinalizerFromDealloc(array) < 0:
        return
    PyObject_GC_UnTrack(array)
    if array.WEAKREFERENCES:
        PyObject_ClearWeakRefs(array)
    for k in range(FIELDCOUNT):
        drop(exchange(array, FIRSTFIELD + 8 * k, null))
    if cls is state.ARRAY and pool.i64[1] < MOSTKEPT and not cls.FINALIZER:
        array.AT_SHOWN = pool.ptr[0]
        pool.ptr[0] = array
        pool.i64[1] += 1
    else:
        PyObject_GC_Del(array)
    release(cls)
"""

#: Of two objects, of which one is an Array or of a class that derives from that.
_OF_TWO: Final = """
@exported
def slot_$NAME(left: ptr, right: ptr) -> ptr:
    if is_first(left, right):
        return expression(left, right, compute_$NAME, $METHOD, False)
    return expression(right, left, compute_$NAME, $REFLECTED, True)
"""

_OTHERS: Final = """
# Whether the first of two objects is the one whose method an operator calls.
def is_first(left: ptr, right: ptr) -> i1:
    return is_array(left) or not is_array(right) and PyType_IsSubtype(left.CLASS, state.ARRAY) != 0

@exported
def slot_pow(left: ptr, right: ptr, modulo: ptr) -> ptr:
    arguments = stack(ptr, 2)
    if not is_first(left, right):
        # Python asks the classes of all three, of which only the first has a method for a modulus.
        if modulo is not None:
            hold(_Py_NotImplementedStruct)
            return _Py_NotImplementedStruct
        return PyObject_CallFunctionObjArgs((state + $RPOW).ptr[0], right, left, null)
    arguments.ptr[0] = right
    arguments.ptr[1] = modulo
    return method___pow__(left, arguments, 1 if modulo is None else 2)

@exported
def slot_matmul(left: ptr, right: ptr) -> ptr:
    arguments = stack(ptr, 1)
    if not is_first(left, right):
        return PyObject_CallFunctionObjArgs((state + $RMATMUL).ptr[0], right, left, null)
    arguments.ptr[0] = right
    return method___matmul__(left, arguments, 1, null)

@exported
def slot_bool(self: ptr) -> i32:
    own = value_of(self) if is_usual(self) else null
    if own and (own.CLASS is PyBool_Type or own.CLASS is PyLong_Type or own.CLASS is PyFloat_Type):
        return PyObject_IsTrue(own)
    made = PyObject_CallFunctionObjArgs((state + $BOOL).ptr[0], self, null)
    if not made:
        return -1
    answer = PyObject_IsTrue(made)
    release(made)
    return answer

@exported
def slot_setitem(self: ptr, index: ptr, value: ptr) -> i32:
    arguments = stack(ptr, 2)
    if not value:
        done = PyObject_CallFunctionObjArgs((state + $DELITEM).ptr[0], self, index, null)
    else:
        arguments.ptr[0] = index
        arguments.ptr[1] = value
        done = method___setitem__(self, arguments, 2)
    if not done:
        return -1
    release(done)
    return 0

@exported
def slot_compare(self: ptr, other: ptr, number: i32) -> ptr:
"""
_COMPARED: Final = """\
    if number == $NUMBER:
        return expression(self, other, compute_$NAME, $METHOD, False)
"""


def slots_text(methods: Mapping[str, int]) -> str:
    """The functions of slots, but for those that are methods; methods: where the state has those in Python."""
    own = {name.strip("_").upper(): methods[name] for name in (*IN_PYTHON, "__bool__")}
    texts = [Template(_OTHERS).substitute(own)]
    for number, name in enumerate(COMPARISONS):
        texts.append(
            Template(_COMPARED).substitute(NUMBER=number, NAME=name.strip("_"), METHOD=methods[name])
        )
    texts.append("    return null\n")
    for slot in SLOTS:
        name = slot.function.removeprefix("slot_")
        if f"__r{name}__" in slot.methods and name not in ("pow", "matmul"):
            first, second = (methods[each] for each in slot.methods)
            texts.append(Template(_OF_TWO).substitute(NAME=name, METHOD=first, REFLECTED=second))
    return "".join(texts)


def _name_methods() -> dict[str, Any]:
    """Methods for all slots, and one that is called before an object is freed."""
    return {name: lambda *_: None for slot in SLOTS for name in slot.methods} | {"__del__": lambda _: None}


#: A class that has all the slots.
_Sample: Final = type("_Sample", (), _name_methods())


_class: Final[Any] = type


@cache
def slot_offset(slot: Slot) -> int | None:
    """Bytes from the start of a class to a slot; None where that is not sure."""
    words = (ctypes.c_size_t * (_class.__basicsize__ // 8)).from_address(id(_Sample))
    function = _slot_of(_Sample, slot.number)
    matches = [8 * index for index, word in enumerate(words) if word == function]
    return matches[0] if len(matches) == 1 else None


def constants(cls: type[Any]) -> dict[str, int] | None:
    """Give what names in capital letters stand for; None where slots are unknown, or objects have more than fields."""
    fields = [
        name
        for base in cls.__mro__
        for name, each in vars(base).items()
        if type(each) is MemberDescriptorType
    ]
    end = object.__basicsize__ + 8 * len(fields)
    weak = 8 if cls.__weakrefoffset__ == end else 0
    is_usual = cls.__weakrefoffset__ and not cls.__dictoffset__ and cls.__basicsize__ == end + weak
    if not is_usual or None in map(slot_offset, (*SLOTS, _ALLOC, _DEALLOC, _FINALIZE)):
        return None
    return {
        **{"FIRSTFIELD": object.__basicsize__, "FIELDCOUNT": len(fields), "MOSTKEPT": _MOST_KEPT},
        **{"WEAKREFERENCES": cls.__weakrefoffset__, "FINALIZER": slot_offset(_FINALIZE) or 0},
    }


#: The functions that slots hold.
FUNCTIONS: Final = tuple(dict.fromkeys([slot.function for slot in (*SLOTS, _ALLOC, _DEALLOC)]))


class ClassSlots:
    """The slots of a class, with functions at addresses by their names in place of Python's, or without."""

    def __init__(self, cls: type[Any], addresses: Mapping[str, int]) -> None:
        self._cls, self._addresses = cls, addresses
        self._old: dict[Slot, int] = {}

    def _word(self, slot: Slot) -> ctypes.c_size_t:
        return ctypes.c_size_t.from_address(id(self._cls) + (slot_offset(slot) or 0))

    def fill(self, others: Collection[str]) -> None:
        """Let Python call the functions, but for slots of methods among `others`."""
        for slot in (_ALLOC, _DEALLOC):
            self._old.setdefault(slot, self._word(slot).value)
        for slot in (*SLOTS, _ALLOC, _DEALLOC):
            if not any(name in others for name in slot.methods):
                self._word(slot).value = self._addresses[slot.function]

    def empty(self) -> None:
        """Let Python allocate and free objects; other slots follow from the methods that the class gets."""
        for slot, function in self._old.items():
            self._word(slot).value = function
