"""Calls of NumPy's functions with the values of Arrays in machine code, where the frontend knows that they do the same.

The rules are those of `xarr.calls.host_functions`, whose Python computes where a call gives None here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from string import Template
from typing import Final

import numpy as np

from xarr.base.at_once.numpy_calls import EXACT_SINGLE, LARGEST_INT, SINGLE, WIDE, NumPyCall, Unless
from xarr_numpy.compiled.small_arrays import ufunc_calls
from xarr_numpy.compiled.small_arrays.host_checks import CHECKS
from xarr_numpy.compiled.small_arrays.host_operands import OPERANDS
from xarr_numpy.compiled.small_arrays.objects import KINDS

#: Arguments of a call, items of a list, and how deep lists may lie in lists.
_MOST_ARGUMENTS: Final = 8
_MOST_ITEMS: Final = 4096
_DEEPEST_LIST: Final = 4

#: What a call knows of its operands, a word each: device, elements of all combinations, the first array, arrays, a bit
#: for each kind of elements, whether shapes differ, whether NumPy refused, and what numbers there are.
_FACTS: Final = ("device", "combined", "first", "arrays", "kinds", "differ", "refused", "numbers")
_ROW: Final = ("call", "numbers", "options", "operands", "loops", "others")
_FLAGS: Final = (
    "lists",
    "numbers",
    "fills",
    "empty",
    "negativezeros",
    "bothzeros",
    "alike",
    "contracts",
    "bounded",
    "folds",
    "averages",
)

_CALL: Final = """
# What NumPy gave as the value of an Array, the reference to it taken over; null, without an error, for another object.
def host_value(made: ptr) -> ptr:
    if not is_ndarray(made):
        return plain(made)
    kind = kind_of(made)
    if bytes_of(kind) <= 0 or bytes_of(kind) * size(made) > MOSTPLAIN:
        release(made)
        return null
    if rank(made) != 0 and made.FLAGS & 1:
        return made
    value = copy_of(made) if rank(made) else number_at(made.DATA, kind)
    release(made)
    return value

# The value for a row and its arguments: so many by position, and the last ones by name, of which a tuple has the names.
# The device is put into the facts, a reference.  Null, without an error, where Python computes; the facts say where
# NumPy refused.
def host_compute(row: ptr, items: ptr, count: i64, positional: i64, named: ptr, facts: ptr) -> ptr:
    arguments = stack(ptr, MOSTSTACK)
    most = row_number(row, 1)
    given = positional - most if positional > most else 0
    if PyDict_Size(state.OBSTACLES) != 0 or count >= MOSTSTACK or given > row_number(row, 3):
        return null
    for k in range(positional):
        own = items.ptr[k]
        if k < most:
            own = host_operand(own, row, facts, DEEPEST)
        elif host_fits(row, k - most, own):
            hold(own)
        else:
            own = null
        if not own:
            host_drop(arguments, k)
            return null
        arguments.ptr[k] = own
    # Of the options by name: whether the first one, which may have to be filled in, is among them.
    is_named = False
    for j in range(positional, count if named else positional):
        number = host_option(row, PyTuple_GetItem(named, j - positional), items.ptr[j], given)
        if number < 0:
            host_drop(arguments, positional)
            return null
        if number == 0:
            is_named = True
    filled = i64(row_has(row, FILLS) and positional == most and not is_named)
    if filled:
        hold(None)
        arguments.ptr[positional] = None
    for c in range(positional, count):
        hold(items.ptr[c])
        arguments.ptr[c + filled] = items.ptr[c]
    device = facts.FACT_DEVICE
    operands = positional if positional < most else most
    results = host_results(row, facts, facts.FACT_COMBINED, arguments, operands)
    is_few = facts.FACT_ARRAYS == 1 or results <= MOSTCOMBINED
    is_usual_size = is_few or facts.FACT_DIFFER == 0 or row_has(row, BOUNDED)
    value = null
    if device and is_usual_size and host_combines(row, facts) and not host_is_unsure(row, arguments.ptr[0]):
        hold(device)
        value = host_ask(row, arguments, positional + filled, named, facts, operands)
        if not value:
            release(device)
    host_drop(arguments, count + filled)
    return value

# What NumPy's function gives for operands, the first of the arguments, and for options; null where Python computes.
def host_ask(row: ptr, arguments: ptr, positional: i64, named: ptr, facts: ptr, operands: i64) -> ptr:
    made = host_loop(row, arguments, positional, named)
    if not made:
        if PyContext_Enter(state.CONTEXT) != 0:
            PyErr_Clear()
            return null
        made = PyObject_Vectorcall(row.ROW_CALL, arguments, positional, named)
        PyContext_Exit(state.CONTEXT)
    if not made:
        if PyErr_ExceptionMatches(state.REFUSALS) != 0:
            PyErr_Clear()
            facts.FACT_REFUSED = 1
        return null
    if row_has(row, BOTHZEROS) and has_zero(made, 0):
        for k in range(operands):
            if has_zero(arguments.ptr[k], 1):
                release(made)
                return null
    return host_value(made)

# As `host_ask` by NumPy's inner loops; null, without an error, where NumPy is called.
def host_loop(row: ptr, arguments: ptr, positional: i64, named: ptr) -> ptr:
    if row.ROW_LOOPS is None:
        return null
    most = row_number(row, 1)
    table = row.ROW_LOOPS.DATA + 8 * LOOPWORDS
    if not row_has(row, FOLDS):
        if named or positional != most:
            return null
        return loop_over_regular(arguments.ptr[0], arguments.ptr[1] if most == 2 else null, table)
    along = None
    if named:
        if positional != 1 or PyTuple_Size(named) != 1:
            return null
        if PyTuple_GetItem(named, 0) is not PyTuple_GetItem(row.ROW_OPTIONS, 0):
            return null
        along = arguments.ptr[1]
    elif positional == 2:
        along = arguments.ptr[1]
    elif positional > 2:
        return null
    made = fold(arguments.ptr[0], along, table)
    if not made or not row_has(row, AVERAGES):
        return made
    if is_ndarray(made):
        release(made)
        return null
    total = PyFloat_AsDouble(made)
    release(made)
    return PyFloat_FromDouble(total / double(size(arguments.ptr[0])))

def host_drop(objects: ptr, count: i64):
    for k in range(count):
        release(objects.ptr[k])

# The arguments in a tuple and in a dict as `host_compute` takes them, those by name behind the others: how many stand
# by position, and at `all` of how many; a new tuple of names at `names`, null for none.  Those that may be arrays stand
# by position as far as that goes.  -1, without an error, for too many.
def host_flatten(row: ptr, args: ptr, dict: ptr, items: ptr, all: ptr, names: ptr) -> i64:
    count = PyTuple_Size(args)
    total = count + PyDict_Size(dict)
    names.ptr[0] = null
    all.i64[0] = total
    if total >= MOSTSTACK:
        return -1
    llvm_memcpy_p0_p0_i64(items, args + TUPLE, 8 * count, False)
    operands = row.ROW_OPERANDS
    filled = count
    while total > count and filled < PyTuple_Size(operands):
        value = PyDict_GetItem(dict, PyTuple_GetItem(operands, filled))
        if not value:
            break
        items.ptr[filled] = value
        filled += 1
    left = total - filled
    if left == 0:
        return filled
    made = PyTuple_New(left)
    if not made:
        PyErr_Clear()
        return -1
    position = 0
    kept = 0
    key: ptr
    held: ptr
    while PyDict_Next(dict, address(position), address(key), address(held)) != 0:
        # Whether it is one of those that stand by position now.
        is_operand = False
        for c in range(count, filled):
            if PyTuple_GetItem(operands, c) is key:
                is_operand = True
        if is_operand:
            continue
        # A name that is equal to one of ours, and not the same string.
        if kept >= left:
            release(made)
            return -1
        hold(key)
        PyTuple_SetItem(made, kept, key)
        items.ptr[filled + kept] = held
        kept += 1
    names.ptr[0] = made
    return filled

# By a row, the owner of the function: for arguments by position in a tuple and by name in a dict.
@exported
def host_run(self: ptr, arguments: ptr, count: i64) -> ptr:
    facts = stack(i64, FACTWORDS)
    items = stack(ptr, MOSTSTACK)
    total: i64
    names: ptr
    host_begin(facts)
    positional = host_flatten(self, arguments.ptr[0], arguments.ptr[1], items, address(total), address(names))
    if positional >= 0:
        value = host_compute(self, items, total, positional, names, facts)
        drop(names)
        if value:
            return wrap_at(value, facts.FACT_DEVICE, locate_above())
        if PyErr_Occurred():
            return null
    # What NumPy refused is not asked of it again.
    python = (self + ROW_OTHERS).ptr[facts.FACT_REFUSED]
    if python is not None:
        return PyObject_Vectorcall(python, arguments, 2, null)
    hold(None)
    return None

@inline
def host_begin(facts: ptr):
    llvm_memset_p0_i64(facts, 0, 8 * FACTWORDS, False)
    facts.FACT_COMBINED = 1

# What a method does for arguments after the array itself; the row and the function in Python are words of the state.
def host_method(self: ptr, arguments: ptr, count: i64, names: ptr, host: i64, fallback: i64) -> ptr:
    facts = stack(i64, FACTWORDS)
    items = stack(ptr, MOSTSTACK)
    method = (state + fallback).ptr[0]
    given = count + (PyTuple_Size(names) if names else 0)
    if given >= MOSTSTACK:
        return call_python(method, self, arguments, given, count, names)
    items.ptr[0] = self
    llvm_memcpy_p0_p0_i64(items + 8, arguments, 8 * given, False)
    if is_array(self):
        host_begin(facts)
        value = host_compute((state + host).ptr[0], items, given + 1, count + 1, names, facts)
        if value:
            return wrap(value, facts.FACT_DEVICE, 0)
        if PyErr_Occurred():
            return null
    return PyObject_Vectorcall(method, items, count + 1, names)
"""
CALLS: Final = OPERANDS + CHECKS + _CALL

_METHOD: Final = """
@exported
def method_$METHOD(self: ptr, arguments: ptr, count: i64, names: ptr) -> ptr:
    return host_method(self, arguments, count, names, $HOST, $FALLBACK)
"""


def method_text(method: str, host: int, fallback: int) -> str:
    """The function of a method such as `sum`: its row and the Python method are at so many bytes of the state."""
    return Template(_METHOD).substitute(METHOD=method, HOST=host, FALLBACK=fallback)


def row_of(call: NumPyCall, names: Sequence[str] = (), *others: object) -> tuple[object, ...]:
    """A row as machine code reads it: function, numbers, names of options and of arguments that may be arrays, others.

    The numbers: the mask of the element types, how many arguments may be arrays, flags, how many options may be given
    by position, and the kinds that each option takes; of strings none, which are left to Python.
    """
    reasons = (Unless.EMPTY, Unless.NEGATIVE_ZEROS, Unless.ZEROS_OF_BOTH_SIGNS)
    flags = [call.lists, call.numbers, call.fills, *[call.unless & each for each in reasons], call.alike]
    averages, function = call.call == np.ndarray.mean, call.call
    loops = ufunc_calls.fold_table(np.add) if averages else ufunc_calls.table_of(function)
    if averages and loops is not None:
        loops[1 + KINDS["int64"]] = 0
    flags += [
        call.contracts,
        call.is_bounded,
        loops is not None and not isinstance(function, np.ufunc),
        averages,
    ]
    bits = sum(1 << index for index, is_set in enumerate(flags) if is_set)
    kinds = [kinds if isinstance(kinds, int) else 0 for kinds in call.options.values()]
    numbers = np.array([kind_mask(call.chars), call.most, bits, call.by_position, *kinds], np.int64)
    options, operands = (tuple(map(sys.intern, each)) for each in (call.options, names))
    return function, numbers, options, operands, loops, *others


def kind_mask(chars: str) -> int:
    """The kinds of the element types with these codes, a bit for each."""
    return sum(1 << number for kind, number in KINDS.items() if np.dtype(kind).char in chars)


#: What names in capital letters stand for.
CONSTANTS: Final = {
    **{
        "MOSTPRODUCT": 2**40,
        "MOSTSTACK": _MOST_ARGUMENTS,
        "MOSTITEMS": _MOST_ITEMS,
        "DEEPEST": _DEEPEST_LIST,
    },
    **{
        "LARGEST": LARGEST_INT,
        "EXACTSINGLE": EXACT_SINGLE,
        "FIRSTOPTION": 4,
        "FACTWORDS": len(_FACTS),
        "POINTS": 3,
    },
    **{
        "LARGESTSINGLE": float(np.finfo(np.float32).max),
        "LARGESTDOUBLE": sys.float_info.max,
        "SINGLEKIND": KINDS["float32"],
    },
    **{"EXACTKINDS": kind_mask("?bBhHiIlL"), "WIDEKINDS": kind_mask(WIDE), "INEXACTKINDS": kind_mask("dDfF")},
    **{"BESIDEKINDS": kind_mask(WIDE + SINGLE), "NUMBERKINDS": kind_mask(WIDE + SINGLE) & ~kind_mask("?")},
    **{name.upper(): 1 << index for index, name in enumerate(_FLAGS)},
    **{f"FACT_{name.upper()}": 8 * index for index, name in enumerate(_FACTS)},
    **{f"ROW_{name.upper()}": tuple.__basicsize__ + 8 * index for index, name in enumerate(_ROW)},
}
#: Types of fields that are no pointers.
TYPES: Final = {f"FACT_{name.upper()}": "i64" for name in _FACTS if name not in ("device", "first")}
