"""Operators on small values in machine code: floats and ints in registers, arrays by NumPy's operators.

The rules are those of `xarr.calls.small_values`, less what is rare: any pair that is not listed here is left to
Python.
"""

from __future__ import annotations

from string import Template
from textwrap import indent
from typing import Final

from xarr_numpy.compiled.small_arrays import ufunc_calls
from xarr_numpy.compiled.small_arrays.complex_division import DIVISION
from xarr_numpy.compiled.small_arrays.objects import KINDS
from xarr_numpy.compiled.small_arrays.operator_rows import OPERATORS, NativeOperator

#: Of two values: what `left` and `right` give, as a new reference; null, without an error, where Python computes.
#: weak: one of them is a Python number of the user's, which takes the type of the other.
_COMPUTE: Final = """
def compute_$NAME(left: ptr, right: ptr, weak: i1) -> ptr:
    if not left or not right:
        return null
    left_int = left.CLASS is PyLong_Type
    right_int = right.CLASS is PyLong_Type
    if not (left_int or left.CLASS is PyFloat_Type) or not (right_int or right.CLASS is PyFloat_Type):
        return arrays(left, right, weak, $KINDS, $CALL, $ROW)
    m = integer(left) if left_int else 0
    n = integer(right) if right_int else 0
    if left_int and right_int:
        if m == LEAST or n == LEAST:
            return null
$INTS
$DOUBLES
"""

_DOUBLES: Final = """\
if not is_exact(m) or not is_exact(n):
    return null
a = double(m) if left_int else PyFloat_AsDouble(left)
b = double(n) if right_int else PyFloat_AsDouble(right)
"""

#: A comparison as a C function of two objects.
_COMPARE: Final = """
def compare_$NAME(left: ptr, right: ptr) -> ptr:
    return PyObject_RichCompare(left, right, $NUMBER)
"""

_FITTING: Final = """
# Whether NumPy takes a number beside an array as the op does.
def fits(number: ptr, array: ptr) -> i1:
    kind = kind_of(array)
    is_known = kind == 1 or kind == 2 or kind == 4
    return is_known and (number.CLASS is not PyLong_Type or is_exact(integer(number)))

# The kind of elements of an array or scalar of NumPy's as a bit, the first one for an unknown kind, that of complex128
# for a complex number of Python's; 0 for other numbers.
def kind_bits(object: ptr) -> i64:
    if is_ndarray(object):
        return 1 << kind_of(object)
    if is_number(object):
        return 16 if object.CLASS is PyComplex_Type else 0
    return 1 << scalar_kind(object)

# The product by NumPy's operator; null, without an error, for two single numbers of which one is complex, which that
# may round otherwise than loops over arrays.
def multiply(left: ptr, right: ptr) -> ptr:
    if is_ndarray(left) or is_ndarray(right) or not ((kind_bits(left) | kind_bits(right)) & COMPLEX):
        return PyNumber_Multiply(left, right)
    return null

# Of two values of which one is an array, or a scalar of NumPy's, by NumPy's operator: a C function of two objects.
def arrays(left: ptr, right: ptr, weak: i1, kinds: i64, function: ptr, row: i64) -> ptr:
    left_array = is_ndarray(left)
    right_array = is_ndarray(right)
    if left_array and right_array:
        if not is_same_shape(left, right) and broadcast_size(left, right) > MOSTCOMBINED:
            return null
    elif left_array and is_number(right):
        if not fits(right, left):
            return null
    elif right_array and is_number(left):
        if not fits(left, right):
            return null
    elif not (left_array or scalar_kind(left)) or not (right_array or scalar_kind(right)):
        # A scalar of NumPy's beside a small int.
        is_first = left.CLASS is PyLong_Type
        whole = left if is_first else right
        if not weak or whole.CLASS is not PyLong_Type or not scalar_kind(right if is_first else left):
            return null
        number = integer(whole)
        if not -EXACTSINGLE <= number <= EXACTSINGLE:
            return null
    # Of which kinds of elements the operands are that have any.
    if (kind_bits(left) | kind_bits(right)) & ~kinds:
        return null
    if left_array or right_array:
        quick = loop_over(left, right, state.LOOPS.DATA + 8 * row)
        if quick:
            return quick
    hold(left, right)
    made = null
    if PyContext_Enter(state.CONTEXT) == 0:
        made = call(ptr, function, left, right)
        PyContext_Exit(state.CONTEXT)
    release(left, right)
    if not made:
        PyErr_Clear()
        return null
    return made if is_ndarray(made) else plain(made)

# The device of a result of an Array and of another operand: of Arrays on one device, committed or not, or beside
# constants, which are on none; null where there is none.
@inline
def joint_device(array: ptr, other: ptr) -> ptr:
    own = array.AT_DEVICE
    their = other.AT_DEVICE if is_array(other) else own
    if not is_there(own):
        return their if is_there(their) else null
    return own if their is own or not is_there(their) else common_device(own, their)

# The value of an operand, an Array or a number itself; null for no other.
def operand(object: ptr) -> ptr:
    if is_array(object):
        return object.AT_VALUE if is_there(object.AT_VALUE) else null
    return object if is_number(object) or scalar_kind(object) else null

# Whether an operand is a number of Python's, which takes the type of the other one.
@inline
def is_weak(object: ptr) -> i1:
    return not is_array(object) and not scalar_kind(object)
"""

#: What the methods of `self op other`, `other op self` and `self op= other` do, by the function of two values.
_METHODS: Final = """
def expression(self: ptr, other: ptr, compute: ptr, fallback: i64, reflected: i1) -> ptr:
    method = (state + fallback).ptr[0]
    if not is_usual(self):
        goto(slow)
    device = joint_device(self, other)
    if not device and not are_constants(self, other):
        goto(slow)
    known = device if device else None
    hold(known)
    own = self.AT_VALUE
    their = operand(other)
    value = call(ptr, compute, their if reflected else own, own if reflected else their, is_weak(other))
    if value:
        if device:
            return wrap(value, device, 0)
        array = PyObject_CallFunctionObjArgs(state.WRAP_CONSTANT, value, method, self, other, null)
        release(value)
        if array is not None:
            release(known)
            return array
        release(array)
    release(known)
    label(slow)
    return PyObject_CallFunctionObjArgs(method, self, other, null)

# Whether no operand is on a device: constants alone, beside numbers.
@inline
def are_constants(array: ptr, other: ptr) -> i1:
    return not is_there(array.AT_DEVICE) and not (is_array(other) and is_there(other.AT_DEVICE))

def statement(self: ptr, other: ptr, compute: ptr, fallback: i64) -> ptr:
    if not is_usual(self):
        goto(slow)
    # Of a part that the statement puts back where it has read it nobody else sees the change.
    if is_there(self.AT_PART):
        if not PyEval_GetFrame():
            goto(slow)
        told = PyObject_CallFunctionObjArgs(state.IS_PUT_BACK, self, null)
        if not told:
            return null
        release(told)
        if told is not _Py_TrueStruct:
            goto(slow)
    own = value_of(self)
    if joint_device(self, other) is not self.AT_DEVICE:
        goto(slow)
    value = call(ptr, compute, own, operand(other), is_weak(other))
    if not value:
        goto(slow)
    line = locate(0)
    if not line:
        release(value)
        return null
    if self.AT_VALUE is own and is_alike(own, value):
        hold(None, None)
        location = exchange(self, AT_LOCATION, line)
        before = exchange(self, AT_VALUE, value)
        shown = exchange(self, AT_SHOWN, None)
        share = exchange(self, AT_SHARE, None)
        drop(location)
        drop(before)
        drop(shown)
        drop(share)
        hold(self)
        return self
    release(line, value)
    label(slow)
    return PyObject_CallFunctionObjArgs((state + fallback).ptr[0], self, other, null)

# Whether an Array may show a new value in place of the old one: of the same class, and element type and shape.
def is_alike(old: ptr, new: ptr) -> i1:
    if old.CLASS is not new.CLASS:
        return False
    return not is_ndarray(old) or old.DESCR is new.DESCR and is_same_shape(old, new)
"""

_EXPRESSION: Final = """
@exported
def method_$METHOD(self: ptr, other: ptr) -> ptr:
    return expression(self, other, compute_$NAME, $FALLBACK, $REFLECTED)
"""
_STATEMENT: Final = """
@exported
def method_$METHOD(self: ptr, other: ptr) -> ptr:
    return statement(self, other, compute_$NAME, $FALLBACK)
"""

#: The functions that those of all operators call.
SHARED: Final = _FITTING + DIVISION + _METHODS


def compute_text(operator: NativeOperator) -> str:
    """The function `compute_<name>` of two values."""
    kinds = sum(1 << KINDS[kind] for kind in operator.kinds.split())
    doubles = _DOUBLES + operator.doubles if operator.doubles else "return null"
    compare = Template(_COMPARE).substitute(NAME=operator.name, NUMBER=operator.number)
    return ("" if operator.number is None else compare) + Template(_COMPUTE).substitute(
        NAME=operator.name,
        CALL=operator.call,
        KINDS=kinds,
        ROW=ufunc_calls.row_of(OPERATORS.index(operator)),
        INTS=indent(operator.ints, 8 * " "),
        DOUBLES=indent(doubles, 4 * " "),
    )


def method_text(method: str, fallback: int) -> str:
    """The function of a method such as `__add__` or `__radd__`, whose Python method is so far into the state."""
    name = method.strip("_")
    more = {"METHOD": method, "FALLBACK": fallback}
    if name in {operator.name for operator in OPERATORS}:
        return Template(_EXPRESSION).substitute(NAME=name, REFLECTED="False", **more)
    if name[0] == "r":
        return Template(_EXPRESSION).substitute(NAME=name[1:], REFLECTED="True", **more)
    return Template(_STATEMENT).substitute(NAME=name[1:], **more)
