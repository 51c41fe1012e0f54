"""Operators of one small value in machine code, squares, and what stands for a Python number."""

from __future__ import annotations

from string import Template
from typing import Final

import numpy as np

from xarr_numpy.compiled.small_arrays import ufunc_calls
from xarr_numpy.compiled.small_arrays.operator_rows import OPERATORS

_SIGNS: Final = """
@exported
def method_$METHOD(self: ptr, unused: ptr) -> ptr:
    own = value_of(self) if is_usual(self) else null
    if not own:
        goto(slow)
    device = self.AT_DEVICE
    if own.CLASS is PyFloat_Type:
        number = PyFloat_AsDouble(own)
        value = PyFloat_FromDouble($DOUBLE)
    elif is_ndarray(own) and kind_of(own) == 1:
        value = loop_over_regular(own, null, state.LOOPS.DATA + 8 * $ROW)
        if not value:
            hold(own)
            value = $CALL(own)
            release(own)
        if not value:
            PyErr_Clear()
            goto(slow)
    else:
        goto(slow)
    hold(device)
    return wrap(value, device, 0)
    label(slow)
    return PyObject_CallFunctionObjArgs((state + $FALLBACK).ptr[0], self, null)
"""

#: x ** 2, which is x * x; all other powers are left to Python.
_POWER: Final = """
@exported
def method_$METHOD(self: ptr, arguments: ptr, count: i64) -> ptr:
    if count == 1 and is_usual(self):
        exponent = arguments.ptr[0]
        if exponent.CLASS is PyLong_Type and integer(exponent) == 2:
            own = value_of(self)
            device = self.AT_DEVICE
            hold(device)
            value = compute_mul(own, own, False)
            if value:
                return wrap(value, device, 0)
            drop(device)
    return call_python((state + $FALLBACK).ptr[0], self, arguments, count, count, null)
"""

#: The value itself where it is a Python number of the class that is asked for.
_NUMBER: Final = """
@exported
def method_$METHOD(self: ptr, unused: ptr) -> ptr:
    own = value_of(self) if is_usual(self) else null
    if own and own.CLASS is $WANTED:
        hold(own)
        return own
    return PyObject_CallFunctionObjArgs((state + $FALLBACK).ptr[0], self, null)
"""

#: By the method: the number in `_SIGNS`, and the C function for arrays.
_SIGN_METHODS: Final = {
    "__neg__": ("-number", "PyNumber_Negative"),
    "__abs__": ("llvm_fabs_f64(number)", "PyNumber_Absolute"),
}
#: NumPy's functions of these, whose loops lie behind those of operators of two operands.
UFUNCS: Final = {"__neg__": np.negative, "__abs__": np.absolute}
_NUMBER_METHODS: Final = {
    "__bool__": "PyBool_Type",
    "__float__": "PyFloat_Type",
    "__int__": "PyLong_Type",
    "__index__": "PyLong_Type",
}
METHODS: Final = (*_SIGN_METHODS, "__pow__", *_NUMBER_METHODS)


def method_text(method: str, fallback: int) -> str:
    """The function of one of METHODS, whose Python method is at so many bytes of the state."""
    more = {"METHOD": method, "FALLBACK": str(fallback)}
    if method in _SIGN_METHODS:
        double, call = _SIGN_METHODS[method]
        row = ufunc_calls.row_of(len(OPERATORS) + [*UFUNCS].index(method))
        return Template(_SIGNS).substitute(DOUBLE=double, CALL=call, ROW=row, **more)
    if method == "__pow__":
        return Template(_POWER).substitute(more)
    return Template(_NUMBER).substitute(WANTED=_NUMBER_METHODS[method], **more)
