"""What the machine code of all methods shares, in typed Python: fields of Arrays and of NumPy's arrays, results, and
the user's line.

Sources: CPython, Include/object.h and Doc/c-api; NumPy, numpy/_core/include/numpy/ndarraytypes.h.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from xarr.ir.types import MOST_COMBINED, MOST_PLAIN_BYTES
from xarr_numpy.compiled.cpython_abi.struct_offsets import CLASS, DATA, FLAGS

#: The words of `@state`, by what they hold; behind them the Python methods.
STATE: Final = (
    *("array", "ndarray", "obstacles", "context", "locate", "count", "index_step", "copy"),
    *("live_part", "wrap_constant", "is_put_back"),
    *("float64", "int64", "bool", "complex128", "float32", "complex64", "float16", "int32", "int16", "int8"),
    *("uint64", "uint32", "uint16", "uint8", "classes", "numpybool", "numpyfloat", "numpyint", "refusals"),
    *("node", "leaf", "dataop", "lease", "backend", "make_array", "loops"),
)
#: Lines that are remembered, a power of two, and the words of each: its code, the offset, its tuple, the elements read.
LINES: Final = 4096
LINE_WORDS: Final = 4
#: Elements of one line that are counted at once.
COUNTED_AT_ONCE: Final = 500
#: Kinds of elements by number, as `@kind_of` gives them; 0 for all others.
KINDS: Final = {
    name: number
    for number, name in enumerate(STATE[STATE.index("float64") : STATE.index("classes")], start=1)
}
#: Kinds whose single elements are NumPy's own scalars, and not Python's numbers; they are the last.
SCALAR_KINDS: Final = tuple(KINDS)[3:]

#: Bytes from the start of a NumPy array to its fields.
_RANK, _SIZES, _STRIDES, _BASE, _DESCR = DATA + 8, DATA + 16, DATA + 24, DATA + 32, DATA + 40
#: Bytes from the start of a slice to its start; stop and step follow.
SLICE: Final = DATA


#: Types of fields that are no pointers.
TYPES: Final = {"RANK": "i32", "FLAGS": "i32"}
#: Functions of CPython and LLVM: the types of their arguments and results, and their names.
_DECLARED: Final = (
    ("", "void", "PyErr_Clear"),
    ("ptr", "void", "_Py_Dealloc"),
    ("ptr ptr i64 i1", "void", "llvm_memcpy_p0_p0_i64 llvm_memmove_p0_p0_i64"),
    ("ptr i8 i64 i1", "void", "llvm_memset_p0_i64"),
    ("ptr", "i32", "PyFrame_GetLasti PyErr_ExceptionMatches PyContext_Enter PyContext_Exit PyObject_IsTrue"),
    ("ptr", "i32", "PyObject_CallFinalizerFromDealloc"),
    ("ptr i64 ptr", "i32", "PyList_SetItem PyTuple_SetItem"),
    ("ptr ptr ptr", "i32", "PyObject_SetAttrString PyObject_SetItem"),
    ("ptr ptr ptr ptr", "i32", "PyDict_Next"),
    ("ptr", "i64", "PyDict_Size PyList_Size PyTuple_Size"),
    ("ptr ptr", "i64", "PyLong_AsLongLongAndOverflow"),
    ("ptr", "double", "PyFloat_AsDouble PyComplex_RealAsDouble PyComplex_ImagAsDouble"),
    ("double", "double", "llvm_fabs_f64"),
    ("", "ptr", "PyEval_GetFrame PyErr_Occurred"),
    ("double", "ptr", "PyFloat_FromDouble"),
    ("i64", "ptr", "PyLong_FromLongLong PyList_New PyTuple_New"),
    ("i64 *", "ptr", "PyTuple_Pack"),
    ("ptr *", "ptr", "PyObject_CallFunctionObjArgs"),
    ("ptr", "ptr", "PyFrame_GetCode PyFrame_GetBack PyList_AsTuple"),
    ("ptr", "ptr", "PyNumber_Index PyNumber_Negative PyNumber_Absolute"),
    ("ptr i64", "ptr", "PyList_GetItem PyTuple_GetItem PyType_GenericAlloc"),
    ("ptr ptr", "ptr", "PyDict_GetItem PyObject_GetItem PyWeakref_NewRef"),
    (
        "ptr",
        "void",
        "_Py_NewReference PyObject_GC_Track PyObject_GC_UnTrack PyObject_GC_Del PyObject_ClearWeakRefs",
    ),
    ("ptr ptr", "i32", "PyType_IsSubtype"),
    (
        "ptr ptr",
        "ptr",
        "PyNumber_Add PyNumber_Subtract PyNumber_Multiply PyNumber_TrueDivide PyNumber_FloorDivide",
    ),
    (
        "ptr ptr",
        "ptr",
        "PyNumber_Remainder PyNumber_And PyNumber_Or PyNumber_Xor PyNumber_Lshift PyNumber_Rshift",
    ),
    ("ptr ptr i32", "ptr", "PyObject_RichCompare"),
    ("ptr ptr i64 ptr", "ptr", "PyObject_Vectorcall PyObject_VectorcallMethod"),
    (
        "i64 i64",
        '"{i64, i1}"',
        "llvm_sadd_with_overflow_i64 llvm_ssub_with_overflow_i64 llvm_smul_with_overflow_i64",
    ),
)
_OBJECTS: Final = (
    "_Py_NoneStruct _Py_TrueStruct _Py_FalseStruct _Py_EllipsisObject _Py_NotImplementedStruct"
    " PyFloat_Type PyLong_Type PyBool_Type PyComplex_Type PyTuple_Type PySlice_Type PyList_Type"
)


def offsets(fields: Mapping[str, int]) -> dict[str, int]:
    """Numbers that stand for names in capital letters: offsets of fields, of those of Array as given."""
    return {
        **{f"AT{name.upper()}": at for name, at in fields.items()},
        **{"CLASS": CLASS, "DATA": DATA, "FLAGS": FLAGS, "RANK": _RANK, "SIZES": _SIZES, "STRIDES": _STRIDES},
        **{
            "BASE": _BASE,
            "DESCR": _DESCR,
            "SLICE": SLICE,
            "LASTLINE": LINES - 1,
            "LINEBYTES": 8 * LINE_WORDS,
        },
        **{"KINDCOUNT": len(KINDS), "FIRSTSCALAR": KINDS[SCALAR_KINDS[0]], "COUNTED": COUNTED_AT_ONCE},
        **{"TUPLE": tuple.__basicsize__, "EXACT": 2**53, "LEAST": -(2**63)},
        **{"MOSTPLAIN": MOST_PLAIN_BYTES, "MOSTCOMBINED": MOST_COMBINED},
        **{name.upper(): 8 * index for index, name in enumerate(STATE)},
    }


def declarations(constants: Mapping[str, float], types: Mapping[str, str]) -> str:
    """The text that stands before functions: constants, some fields of other types than pointers, and functions of
    CPython and LLVM.
    """
    lines = [f"{name}: {types.get(name, 'ptr')} = {value}" for name, value in constants.items()]
    for kinds, result, names in _DECLARED:
        arguments = ["*others" if kind == "*" else f"a{k}: {kind}" for k, kind in enumerate(kinds.split())]
        lines += [f"def {name}({', '.join(arguments)}) -> {result}: ..." for name in names.split()]
    return "\n".join([*lines, ""])


def objects(words: int) -> str:
    """The objects that functions refer to, in LLVM IR; `@state` has so many words."""
    lines = [
        f"@state = internal global [{words} x ptr] zeroinitializer",
        f"@lines = internal global [{LINES * LINE_WORDS} x i64] zeroinitializer",
        "@pool = internal global [2 x i64] zeroinitializer",
        '@exposed = internal constant [8 x i8] c"exposed\\00"',
        *[f"@{name} = external global i8" for name in _OBJECTS.split()],
    ]
    return "\n".join([*lines, ""])


#: Counts of references, as CPython's functions of these names have them, which leave null alone; since 3.12 those of
#: objects that stay for ever do not change.
_COUNTING: Final = """
@inline
def Py_IncRef(object: ptr):
    if object:
        object.i64[0] += 1

def Py_DecRef(object: ptr):
    if object:
        object.i64[0] -= 1
        if object.i64[0] == 0:
            _Py_Dealloc(object)
"""
_COUNTING_BUT_IMMORTAL: Final = """
@inline
def Py_IncRef(object: ptr):
    if object:
        count = object.i32[0] + 1
        if count != 0:
            object.i32[0] = count

def Py_DecRef(object: ptr):
    if object and object.i32[0] >= 0:
        object.i64[0] -= 1
        if object.i64[0] == 0:
            _Py_Dealloc(object)
"""
FIELDS: Final = (
    (_COUNTING if sys.version_info < (3, 12) else _COUNTING_BUT_IMMORTAL)
    + """
@exported
def set_up(table: ptr) -> ptr:
    llvm_memcpy_p0_p0_i64(state, table, STATEBYTES, False)
    return lines

@inline
def is_array(object: ptr) -> i1:
    return object.CLASS is state.ARRAY

@inline
def is_ndarray(object: ptr) -> i1:
    return object.CLASS is state.NDARRAY

# Whether an object is an Array, and nothing keeps operations from being computed at once.
@inline
def is_usual(object: ptr) -> i1:
    return is_array(object) and PyDict_Size(state.OBSTACLES) == 0

# Whether a field of an Array holds an object: neither unset nor None.
@inline
def is_there(object: ptr) -> i1:
    return object is not null and object is not None

# The small value of an Array that has one and whose device is known; null else.
@inline
def value_of(array: ptr) -> ptr:
    return array.AT_VALUE if is_there(array.AT_DEVICE) else null

# The device of a result on two devices that are there: the one that is committed, if they are one; null else.
@inline
def common_device(one: ptr, other: ptr) -> ptr:
    return one.ATDEVICE_COMMITTED if one.ATDEVICE_COMMITTED is other.ATDEVICE_COMMITTED else null

@inline
def rank(array: ptr) -> i64:
    return i64(array.RANK)

# The number of the kind of elements that a NumPy array has.
def kind_of(array: ptr) -> i64:
    for k in range(KINDCOUNT):
        if (state + FLOAT64).ptr[k] is array.DESCR:
            return k + 1
    return 0

# Whether an object is a float, an int or a complex number of Python's.
@inline
def is_number(object: ptr) -> i1:
    own = object.CLASS
    return own is PyFloat_Type or own is PyLong_Type or own is PyComplex_Type

# The number of the kind of a scalar of NumPy's; 0 for all else.
def scalar_kind(object: ptr) -> i64:
    if is_number(object) or object.CLASS is PyBool_Type:
        return 0
    for k in range(KINDCOUNT):
        if (state.CLASSES + TUPLE).ptr[k] is object.CLASS:
            return k + 1
    return 0

# What an Array holds for a number that NumPy gave, the reference to which is taken over; null, without an error, for
# another object.
def plain(made: ptr) -> ptr:
    if made.CLASS is PyFloat_Type or made.CLASS is PyBool_Type:
        return made
    kind = scalar_kind(made)
    if kind == 1:
        number = PyFloat_AsDouble(made)
        release(made)
        return PyFloat_FromDouble(number)
    if kind == 2:
        whole = PyNumber_Index(made)
        release(made)
        return whole
    if kind == 3:
        is_true = PyObject_IsTrue(made) == 1
        release(made)
        return truth(is_true)
    if kind != 0 or made.CLASS is PyLong_Type:
        return made
    release(made)
    return null

# An int of Python's; least for one that is as small, or does not fit.
def integer(object: ptr) -> i64:
    over: i32
    over = 0
    number = PyLong_AsLongLongAndOverflow(object, address(over))
    return number if over == 0 else LEAST

# Whether floats hold an int.
@inline
def is_exact(number: i64) -> i1:
    return -EXACT <= number <= EXACT

def truth(is_true: i1) -> ptr:
    answer = _Py_TrueStruct if is_true else _Py_FalseStruct
    hold(answer)
    return answer

def drop(object: ptr):
    if object:
        release(object)

# Put an object, whose reference is taken over, into a field; the old one is returned, null for none.
@inline
def exchange(object: ptr, offset: i64, new: ptr) -> ptr:
    slot = object + offset
    old = slot.ptr[0]
    slot.ptr[0] = new
    return old
"""
)

RESULTS: Final = """
# A method in Python for an object and however many arguments: so many by position, and those that `names` has.
def call_python(method: ptr, self: ptr, arguments: ptr, count: i64, positional: i64, names: ptr) -> ptr:
    all = PyTuple_New(count + 1)
    if not all:
        return null
    hold(self)
    PyTuple_SetItem(all, 0, self)
    for k in range(count):
        hold(arguments.ptr[k])
        PyTuple_SetItem(all, k + 1, arguments.ptr[k])
    made = PyObject_Vectorcall(method, all + TUPLE, positional + 1, names)
    release(all)
    return made

# The copy of an array; null for an error.
def copy_of(array: ptr) -> ptr:
    argument = array
    return PyObject_VectorcallMethod(state.COPY, address(argument), 1, null)

# The row of the line that a frame is at if it is remembered, one of the user's; null else.
def known_line(frame: ptr) -> ptr:
    code = PyFrame_GetCode(frame)
    release(code)
    offset = i64(PyFrame_GetLasti(frame))
    line = line_of(i64(code), offset)
    return line if line.i64[0] == i64(code) and line.i64[1] == offset else null

@inline
def line_of(code: i64, offset: i64) -> ptr:
    return lines + LINEBYTES * (((unsigned(code) >> 4) + (unsigned(offset) >> 1)) & LASTLINE)

# The user's line that is running, which reads or writes so many elements, as a new reference; null for an error.
def locate(elements: i64) -> ptr:
    frame = PyEval_GetFrame()
    if not frame:
        hold(None)
        return None
    line = known_line(frame)
    if not line:
        return learn_line(frame)
    known = line.ptr[2]
    hold(known)
    line.i64[3] += elements
    count = line.i64[3]
    if count < COUNTED:
        return known
    line.i64[3] = 0
    number = PyLong_FromLongLong(count)
    said = PyObject_CallFunctionObjArgs(state.COUNT, frame, number, null)
    drop(number)
    if not said:
        release(known)
        return null
    release(said)
    return known

# The user's line in a frame or in one that called it, asked of Python and remembered; null for an error.
def learn_line(frame: ptr) -> ptr:
    made = PyObject_CallFunctionObjArgs(state.LOCATE, frame, null)
    if not made or made.CLASS is not PyTuple_Type:
        return made
    code = i64(PyTuple_GetItem(made, 0))
    offset = integer(PyTuple_GetItem(made, 1))
    line = line_of(code, offset)
    old = line.ptr[2]
    hold(made)
    line.i64[0] = code
    line.i64[1] = offset
    line.ptr[2] = made
    line.i64[3] = 0
    drop(old)
    return made

# As `locate`, from a frame of this package that was called by the user's, or by one more such frame.
def locate_above() -> ptr:
    frame = PyEval_GetFrame()
    if not frame:
        hold(None)
        return None
    first = PyFrame_GetBack(frame)
    if first:
        near = known_line(first)
        if near:
            release(first)
            hold(near.ptr[2])
            return near.ptr[2]
        second = PyFrame_GetBack(first)
        release(first)
        if second:
            far = known_line(second)
            release(second)
            if far:
                hold(far.ptr[2])
                return far.ptr[2]
    return learn_line(frame)

# As `wrap`, for a line that is taken over too.
def wrap_at(value: ptr, device: ptr, line: ptr) -> ptr:
    array = allocate(state.ARRAY, 0) if line else null
    if array:
        hold(None)
        array.AT_SHOWN = None
        array.AT_VALUE = value
        array.AT_DEVICE = device
        array.AT_LOCATION = line
        return array
    drop(line)
    release(value, device)
    return null

# A new Array with a value on a device, references to which are taken over, made by a line; null for an error.
def wrap(value: ptr, device: ptr, elements: i64) -> ptr:
    return wrap_at(value, device, locate(elements))

# What a part of an Array refers to beside it, a new reference: None for what is no part itself.  Null for an error.
def outer_part(array: ptr) -> ptr:
    part = array.AT_PART
    if not is_there(part):
        hold(None)
        return None
    hold(part)
    live = PyObject_CallFunctionObjArgs(state.LIVE_PART, part, null)
    release(part)
    return live
"""
