"""Methods of a class whose objects hold small arrays, made of machine code and put in place of its Python methods."""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from xarr.backend import ArrayClass
from xarr.base.at_once.numpy_calls import NumPyCall
from xarr.base.host.memory import Lease
from xarr.ir.device import Device
from xarr.ir.graph import Data, Leaf, Node
from xarr_numpy.compiled.codegen import integer_division, llvm_jit, typed_python
from xarr_numpy.compiled.cpython_abi import builtin, struct_offsets
from xarr_numpy.compiled.small_arrays import (
    class_slots,
    host_calls,
    objects,
    operators,
    subscripts,
    ufunc_calls,
    unary,
)
from xarr_numpy.compiled.small_arrays.complex_division import LIMITS
from xarr_numpy.compiled.small_arrays.operator_rows import OPERATORS
from xarr_numpy.compiled.small_arrays.shapes import SHAPES

_METH_FASTCALL, _METH_KEYWORDS, _METH_NOARGS, _METH_O = 0x80, 0x2, 0x4, 0x8
_SUBSCRIPTS: Final = ("__getitem__", "__setitem__")
#: Methods by what the C function takes beside the object; others take one argument.
_SEVERAL: Final = frozenset({"__setitem__", "__pow__"})
_ALONE: Final = frozenset(unary.METHODS) - {"__pow__"}
_NOT_REFLECTED: Final = frozenset({"lt", "le", "eq", "ne", "gt", "ge"})
#: Fields of the objects, each a `__slots__` of the class.
FIELDS: Final = ("_shown", "_share", "_value", "_device", "_location", "_part")
#: Fields of nodes and devices, by the class and what their names begin with.
OTHER_FIELDS: Final = {
    (Leaf, "node_"): ("value", "device", "exposed", "op", "handles", "_location"),
    (Device, "device_"): ("backend", "committed"),
}


def names() -> tuple[str, ...]:
    """The methods that there are, `__add__` and so on."""
    result = [*_SUBSCRIPTS, *unary.METHODS]
    for operator in OPERATORS:
        result.append(f"__{operator.name}__")
        if operator.name not in _NOT_REFLECTED:
            result += [f"__r{operator.name}__", f"__i{operator.name}__"]
    return tuple(result)


class NativeMethods:
    """Methods for a class of arrays, and what their machine code refers to.

    backend: the class of the backend whose devices have the arrays; methods: by name, to be set as attributes of the
    class of arrays.
    """

    def __init__(self, array_class: ArrayClass, backend: type[Any]) -> None:
        fields = all_offsets(array_class.cls)
        wanted = [name for name in names() if name in array_class.methods]
        hosts = [*array_class.host_methods]
        state = self._state(array_class, backend, wanted)
        text = module_text(wanted, hosts, fields, array_class.cls, array_class.copied_bytes)
        memory = objects.objects(len(state))
        code = llvm_jit.compile_module(
            lambda: memory + typed_python.compile_functions(text),
            ["set_up", "host_run", *class_slots.FUNCTIONS, *[f"method_{name}" for name in (*wanted, *hosts)]],
            serial=("",),
            source=(text, memory, *map(inspect.getsource, (typed_python, integer_division))),
        )
        words = (ctypes.c_size_t * len(state))(*map(id, state))
        set_up = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(code.addresses["set_up"])
        lines = set_up(ctypes.addressof(words))
        table = (ctypes.c_int64 * (objects.LINES * objects.LINE_WORDS)).from_address(lines)
        self._lines = np.ctypeslib.as_array(table).reshape(objects.LINES, objects.LINE_WORDS)
        self._code = code
        definitions = {name: _definition(name, array_class, code) for name in (*wanted, *hosts)}
        self.methods = {
            name: _new_method(array_class.cls, ctypes.addressof(definition))
            for name, definition in definitions.items()
        }
        self.slots = class_slots.ClassSlots(array_class.cls, code.addresses)
        # The code, and what it refers to, for as long as the process lives: objects of the class may outlive this one.
        _kept.append((code, state, definitions))

    @staticmethod
    def _state(array_class: ArrayClass, backend: type[Any], wanted: Sequence[str]) -> list[Any]:
        own: dict[str, Any] = {
            **{"array": array_class.cls, "ndarray": np.ndarray, "obstacles": array_class.obstacles},
            **{"context": array_class.context, "locate": array_class.locate, "count": array_class.count},
            **{"index_step": array_class.index_step, "copy": sys.intern("copy")},
            **{"live_part": array_class.live_part, "wrap_constant": array_class.wrap_constant},
            "is_put_back": array_class.is_put_back,
            **{kind: np.dtype(kind) for kind in objects.KINDS},
            **{"numpybool": np.bool_, "numpyfloat": np.float64, "numpyint": np.int64},
            **{"node": Node, "leaf": Leaf, "dataop": Data, "lease": Lease, "backend": backend},
            "make_array": np.array,
            "loops": ufunc_calls.loop_table([*[own.ufunc for own in OPERATORS], *unary.UFUNCS.values()]),
            "refusals": array_class.refusals,
            "classes": tuple([np.dtype(kind).type for kind in objects.KINDS]),
        }
        hosts = [host_calls.row_of(row) for row in array_class.host_methods.values()]
        names = (*wanted, *array_class.host_methods, *class_slots.IN_PYTHON)
        methods = [array_class.methods[name] for name in names]
        return [*[own[name] for name in objects.STATE], *methods, *hosts]

    def host_call(
        self, row: NumPyCall, names: Sequence[str], *others: Callable[..., Any] | None
    ) -> Callable[..., Any]:
        """A function of NumPy's for Arrays, as `ArrayMethods.host_call` says."""
        return builtin.function(
            self._code.addresses["host_run"], *host_calls.row_of(row, names, *others), self._code
        )

    def forget_counts(self) -> None:
        """Count the elements of each line from 0 again."""
        self._lines[:, -1] = 0


_kept: Final[list[object]] = []


def module_text(
    wanted: Sequence[str],
    hosts: Sequence[str],
    fields: Mapping[str, int],
    cls: type[Any],
    copied_bytes: int,
) -> str:
    """The functions of these methods, and what they refer to; hosts: those by functions of NumPy's."""
    every = (*wanted, *hosts, *class_slots.IN_PYTHON)
    words_of = {name: 8 * (len(objects.STATE) + index) for index, name in enumerate(every)}
    words = len(objects.STATE) + len(words_of) + len(hosts)
    scalar_ints = [objects.KINDS[kind] for kind in objects.SCALAR_KINDS if np.dtype(kind).kind in "iu"]
    constants = {
        **{**objects.offsets(fields), **LIMITS, **host_calls.CONSTANTS},
        **{
            "STATEBYTES": 8 * words,
            "COPIED": copied_bytes,
            "COMPLEX": host_calls.kind_mask("FD"),
        },
        **{"READ": words_of["__getitem__"], "WRITE": words_of["__setitem__"], "FIRSTINT": min(scalar_ints)},
        **(class_slots.constants(cls) or {}),
        **ufunc_calls.constants(),
    }
    parts = [objects.declarations(constants, objects.TYPES | host_calls.TYPES)]
    parts += [
        objects.FIELDS,
        SHAPES,
        class_slots.ALLOCATION,
        objects.RESULTS,
        ufunc_calls.LOOPS,
        operators.SHARED,
        subscripts.subscript_text(),
        host_calls.CALLS,
    ]
    parts += [operators.compute_text(operator) for operator in OPERATORS]
    for name in wanted:
        if name not in _SUBSCRIPTS:
            made = unary.method_text if name in unary.METHODS else operators.method_text
            parts.append(made(name, words_of[name]))
    for index, name in enumerate(hosts):
        host = 8 * (len(objects.STATE) + len(words_of) + index)
        parts.append(host_calls.method_text(name, host, words_of[name]))
    parts.append(class_slots.slots_text(words_of))
    return "".join(parts)


def obstacle(array_class: ArrayClass) -> str | None:
    """Why there are no such methods here; None if there may be."""
    reason = struct_offsets.obstacle()
    if reason is not None:
        return reason
    if sys.byteorder != "little":
        return "counts of references are read as little-endian machines have them"
    if array_class.context is None:
        return "NumPy's warnings are switched by another way"
    if class_slots.constants(array_class.cls) is None:
        return "classes have another layout"
    if not _slices_are_as_expected() or not _counts_are_as_expected() or not _arrays_are_as_expected():
        return "objects have another layout"
    return None


def all_offsets(cls: type[Any]) -> dict[str, int]:
    """Bytes from the start of objects to fields: of a class of arrays, and of what these refer to."""
    others = [
        {f"{prefix}{name}": at for name, at in field_offsets(other, names).items()}
        for (other, prefix), names in OTHER_FIELDS.items()
    ]
    return field_offsets(cls, FIELDS) | others[0] | others[1]


def field_offsets(cls: type[Any], names: Sequence[str]) -> dict[str, int]:
    """Bytes from the start of an object of a class to fields with these names, looked for in a sample."""
    sample, marks = object.__new__(cls), [object() for _ in names]
    for name, mark in zip(names, marks, strict=True):
        setattr(sample, name, mark)
    words = (ctypes.c_size_t * (cls.__basicsize__ // 8)).from_address(id(sample))
    matches = [[8 * index for index, word in enumerate(words) if word == id(mark)] for mark in marks]
    for name in names:
        delattr(sample, name)
    return {name: at for name, (at,) in zip(names, matches, strict=True)}


def _slices_are_as_expected() -> bool:
    sample = slice(object(), object(), object())
    words = (ctypes.c_size_t * 3).from_address(id(sample) + objects.SLICE)
    return [*words] == [id(sample.start), id(sample.stop), id(sample.step)]


def _counts_are_as_expected() -> bool:
    sample = np.zeros(1)
    low = ctypes.c_uint32.from_address(id(sample))
    before = low.value
    others = [sample, sample, sample]
    after = low.value
    del others
    return after - before == 3 and before == 1 and low.value == before


def _arrays_are_as_expected() -> bool:
    return all(_is_as_expected(array) for array in _samples())


def _samples() -> list[np.ndarray[Any, Any]]:
    rows = np.zeros((3, 4))
    return [rows, rows[1:, ::2], rows.T, np.zeros(5, np.bool_), np.zeros((2, 0, 3), np.int64)]


def _is_as_expected(array: np.ndarray[Any, Any]) -> bool:
    def word(name: str) -> int:
        return ctypes.c_size_t.from_address(id(array) + words_of[name]).value

    words_of = objects.offsets({})
    rank = ctypes.c_int.from_address(id(array) + words_of["RANK"]).value
    sizes = (ctypes.c_ssize_t * rank).from_address(word("SIZES"))
    strides = (ctypes.c_ssize_t * rank).from_address(word("STRIDES"))
    base = 0 if array.base is None else id(array.base)
    is_shaped = (tuple(sizes), tuple(strides)) == (array.shape, array.strides)
    return is_shaped and rank == array.ndim and word("DESCR") == id(array.dtype) and word("BASE") == base


# --- methods of CPython's ------------------------------------------------------------------------------------


_new: Final = ctypes.pythonapi.PyDescr_NewMethod
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.py_object, ctypes.c_void_p]


def _new_method(cls: type[Any], definition: int) -> Callable[..., Any]:
    made: Callable[..., Any] = _new(cls, definition)
    return made


def _definition(name: str, array_class: ArrayClass, code: llvm_jit.Code) -> builtin.MethodDef:
    flags = _METH_FASTCALL if name in _SEVERAL else _METH_NOARGS if name in _ALONE else _METH_O
    if name in array_class.host_methods:
        flags = _METH_FASTCALL | _METH_KEYWORDS
    head = f"{name}{_signature_of(name, array_class)}\n--\n\n"
    doc = f"{head}{array_class.methods[name].__doc__ or ''}"
    return builtin.MethodDef(name.encode(), code.addresses[f"method_{name}"], flags, doc.encode())


def _signature_of(name: str, array_class: ArrayClass) -> str:
    """The parameters of a method as CPython reads them in its text."""
    if name in array_class.host_methods:
        parameters = inspect.signature(array_class.methods[name]).parameters.values()
        return f"($self, {', '.join([_parameter(each) for each in parameters][1:])})"
    arguments = {"__setitem__": "key, value, ", "__pow__": "other, modulo=None, "}.get(name, "other, ")
    return f"($self, {'' if name in _ALONE else arguments}/)"


def _parameter(parameter: inspect.Parameter) -> str:
    return str(parameter.replace(annotation=inspect.Parameter.empty))
