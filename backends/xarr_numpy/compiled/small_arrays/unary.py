"""LLVM IR of operators of one small value, of squares, and of what stands for a Python number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xarr_numpy.compiled.small_arrays.objects import text

_SIGNS: Final = """
define ptr @method.$METHOD(ptr %self, ptr %unused) {
  %is.array = call i1 @is_array(ptr %self)
  %is.free = call i1 @is_free()
  %usual = and i1 %is.array, %is.free
  unless %usual goto slow, look:
  %own = call ptr @value_of(ptr %self)
  %set = icmp ne ptr %own, null
  unless %set goto slow, ask:
  %device = call ptr @word(ptr %self, i64 $AT_DEVICE)
  %is.float = call i1 @is_of(ptr %own, ptr @PyFloat_Type)
  unless %is.float goto other, float:
  %double = call double @PyFloat_AsDouble(ptr %own)
  %changed = $DOUBLE
  %number = call ptr @PyFloat_FromDouble(double %changed)
  br label %wrap
other:
  %is.ndarray = call i1 @is_ndarray(ptr %own)
  unless %is.ndarray goto slow, array:
  %kind = call i64 @kind_of(ptr %own)
  %doubles = icmp eq i64 %kind, 1
  unless %doubles goto slow, call:
  hold %own
  %made = call ptr @$CALL(ptr %own)
  release %own
  %lacks = icmp eq ptr %made, null
  unless %lacks goto wrap, clear:
  call void @PyErr_Clear()
  br label %slow
wrap:
  %value = phi ptr [ %number, %float ], [ %made, %call ]
  hold %device
  %result = call ptr @wrap(ptr %value, ptr %device, i64 0)
  ret ptr %result
slow:
  %method = call ptr @state_word(i64 $FALLBACK)
  %by.python = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %method, ptr %self, ptr null)
  ret ptr %by.python
}
"""

#: x ** 2, which is x * x; all other powers are left to Python.
_POWER: Final = """
define ptr @method.$METHOD(ptr %self, ptr %arguments, i64 %count) {
  %is.one = icmp eq i64 %count, 1
  unless %is.one goto slow, begin:
  %exponent = load ptr, ptr %arguments, align 8
  %is.int = call i1 @is_of(ptr %exponent, ptr @PyLong_Type)
  unless %is.int goto slow, read:
  %number = call i64 @integer(ptr %exponent)
  %is.two = icmp eq i64 %number, 2
  %is.array = call i1 @is_array(ptr %self)
  %is.free = call i1 @is_free()
  %some = and i1 %is.two, %is.array
  %usual = and i1 %some, %is.free
  unless %usual goto slow, look:
  %own = call ptr @value_of(ptr %self)
  %device = call ptr @word(ptr %self, i64 $AT_DEVICE)
  hold %device
  %value = call ptr @compute.mul(ptr %own, ptr %own, i1 false)
  %unsure = icmp eq ptr %value, null
  if %unsure goto leave, wrap:
  %result = call ptr @wrap(ptr %value, ptr %device, i64 0)
  ret ptr %result
leave:
  call void @drop(ptr %device)
  then slow:
  %method = call ptr @state_word(i64 $FALLBACK)
  %by.python = call ptr @call_python(
    ptr %method, ptr %self, ptr %arguments, i64 %count, i64 %count, ptr null)
  ret ptr %by.python
}
"""

#: The value itself where it is a Python number of the class that is asked for.
_NUMBER: Final = """
define ptr @method.$METHOD(ptr %self, ptr %unused) {
  %is.array = call i1 @is_array(ptr %self)
  %is.free = call i1 @is_free()
  %usual = and i1 %is.array, %is.free
  unless %usual goto slow, look:
  %own = call ptr @value_of(ptr %self)
  %set = icmp ne ptr %own, null
  unless %set goto slow, ask:
  %is = call i1 @is_of(ptr %own, ptr @$WANTED)
  unless %is goto slow, give:
  hold %own
  ret ptr %own
slow:
  %method = call ptr @state_word(i64 $FALLBACK)
  %by.python = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %method, ptr %self, ptr null)
  ret ptr %by.python
}
"""

#: By the method: lines of `_SIGNS`, and the C function for arrays.
_SIGN_METHODS: Final = {
    "__neg__": ("fneg double %double", "PyNumber_Negative"),
    "__abs__": ("call double @llvm.fabs.f64(double %double)", "PyNumber_Absolute"),
}
_NUMBER_METHODS: Final = {
    "__bool__": "PyBool_Type",
    "__float__": "PyFloat_Type",
    "__int__": "PyLong_Type",
    "__index__": "PyLong_Type",
}
METHODS: Final = (*_SIGN_METHODS, "__pow__", *_NUMBER_METHODS)


def method_text(method: str, fallback: int, fields: Mapping[str, int]) -> str:
    """The function of one of METHODS, whose Python method is at a word of state."""
    more = {"METHOD": method, "FALLBACK": str(8 * fallback)}
    if method in _SIGN_METHODS:
        double, call = _SIGN_METHODS[method]
        return text(_SIGNS, fields, DOUBLE=double, CALL=call, **more)
    if method == "__pow__":
        return text(_POWER, fields, **more)
    return text(_NUMBER, fields, WANTED=_NUMBER_METHODS[method], **more)
