"""LLVM IR of elements and parts of small arrays: `x[3]`, `x[i, j]`, `x[1:, 0]`, read and written.

Indices are ints of Python's, Arrays of one int, slices between ints, None and `...`; others are left to Python.  The
rules are those of `xarr.indexing.small_parts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from xarr.ir.types import MOST_PLAIN_BYTES
from xarr_numpy.compiled.small_arrays.large_values import LARGE
from xarr_numpy.compiled.small_arrays.objects import KINDS, SCALAR_KINDS, text
from xarr_numpy.compiled.small_arrays.selections import SELECTING

#: The int of an index item into %int and that it is one; of Arrays that hold an int too.
_INDICES: Final = """
define internal i64 @index_of(ptr %item) {
  %is.int = call i1 @is_of(ptr %item, ptr @PyLong_Type)
  if %is.int goto read, ask:
  %is.array = call i1 @is_array(ptr %item)
  unless %is.array goto no, open:
  %own = call ptr @word(ptr %item, i64 $AT_VALUE)
  %set = icmp ne ptr %own, null
  unless %set goto no, look:
  %inner = call i1 @is_of(ptr %own, ptr @PyLong_Type)
  unless %inner goto convert, read:
  %int = phi ptr [ %item, %0 ], [ %own, %look ]
  %number = call i64 @integer(ptr %int)
  ret i64 %number
convert:
  %kind = call i64 @scalar_kind(ptr %own)
  %whole = icmp sge i64 %kind, $FIRSTINT
  unless %whole goto no, call:
  %made = call ptr @PyNumber_Index(ptr %own)
  %lacks = icmp eq ptr %made, null
  if %lacks goto clear, take:
  %converted = call i64 @integer(ptr %made)
  release %made
  ret i64 %converted
clear:
  call void @PyErr_Clear()
  then no:
  ret i64 $LEAST
}
; The bytes from one dimension's start to the index in it; least for one that is none, or out of bounds.
define internal i64 @step_to(ptr %array, i64 %axis, ptr %item) {
  %index = call i64 @index_of(ptr %item)
  %sizes = call ptr @word(ptr %array, i64 $SIZES)
  %size = load i64, ptr %sizes[%axis]
  %is.back = icmp slt i64 %index, 0
  %added = select i1 %is.back, i64 %size, i64 0
  %own = add i64 %index, %added
  %inside = icmp ult i64 %own, %size
  unless %inside goto no, yes:
  %strides = call ptr @word(ptr %array, i64 $STRIDES)
  %stride = load i64, ptr %strides[%axis]
  %bytes = mul i64 %own, %stride
  ret i64 %bytes
no:
  ret i64 $LEAST
}
; Where one element lies; null for an index that means anything else.
define internal ptr @element(ptr %array, ptr %index) {
entry:
  %rank = call i64 @rank(ptr %array)
  %data = call ptr @word(ptr %array, i64 $DATA)
  %flags = call i32 @flags(ptr %array)
  %aligned = and i32 %flags, 256
  %odd = icmp eq i32 %aligned, 0
  if %odd return null, look:
  %is.tuple = call i1 @is_of(ptr %index, ptr @PyTuple_Type)
  if %is.tuple goto tuple, single:
  %is.row = icmp eq i64 %rank, 1
  unless %is.row return null, one:
  %step = call i64 @step_to(ptr %array, i64 0, ptr %index)
  %bad = icmp eq i64 %step, $LEAST
  %at = getelementptr i8, ptr %data, i64 %step
  if %bad return null, give:
  ret ptr %at
tuple:
  %count = call i64 @PyTuple_Size(ptr %index)
  %full = icmp eq i64 %count, %rank
  unless %full return null, walk:
  for %k from 0 below %rank, %here from 0 then %there
  %item = call ptr @PyTuple_GetItem(ptr %index, i64 %k)
  %stride = call i64 @step_to(ptr %array, i64 %k, ptr %item)
  %there = add i64 %here, %stride
  %out = icmp eq i64 %stride, $LEAST
  br i1 %out, label %return.null, label %k.last
  end %k
  %where = getelementptr i8, ptr %data, i64 %here
  ret ptr %where
}
define internal i64 @bytes_of(i64 %kind) {
  switch i64 %kind, label %return.-1 [ $SIZES_OF_KINDS ]
two:
  ret i64 2
eight:
  ret i64 8
one:
  ret i64 1
sixteen:
  ret i64 16
four:
  ret i64 4
}
"""

#: What reads and writes begin with behind the label `look`: %buffer, %device and %holder of `%self`, a large node if it
#: is of one; then they go on at `open`, or at `slow`.
_FINDING: Final = """\
look:
  %small = call ptr @value_of(ptr %self)
  %is.small = icmp ne ptr %small, null
  if %is.small goto ask, large:
  %large.node = call ptr @large_node(ptr %self)
  %shows = icmp ne ptr %large.node, null
  unless %shows goto slow, ask:
  %node = phi ptr [ null, %look ], [ %large.node, %large ]
  %of.large = icmp ne ptr %node, null
  %holder = select i1 %of.large, ptr %node, ptr %self
  %at.value = select i1 %of.large, i64 $ATNODE_VALUE, i64 $AT_VALUE
  %at.device = select i1 %of.large, i64 $ATNODE_DEVICE, i64 $AT_DEVICE
  %buffer = call ptr @word(ptr %holder, i64 %at.value)
  %device = call ptr @word(ptr %holder, i64 %at.device)
  %is.ndarray = call i1 @is_ndarray(ptr %buffer)
  br i1 %is.ndarray, label %open, label %slow
"""

_READING: Final = (
    """
; An element as a Python number, a new reference; null, without an error, for types that are left to Python.
define internal ptr @number_at(ptr %at, i64 %kind) {
  switch i64 %kind, label %return.null [ i64 1, label %double  i64 2, label %int  i64 3, label %bool ]
double:
  %float = load double, ptr %at, align 8
  %number = call ptr @PyFloat_FromDouble(double %float)
  ret ptr %number
int:
  %long = load i64, ptr %at, align 8
  %whole = call ptr @PyLong_FromLongLong(i64 %long)
  ret ptr %whole
bool:
  %byte = load i8, ptr %at, align 1
  %is = icmp ne i8 %byte, 0
  %truth = call ptr @truth(i1 %is)
  ret ptr %truth
}
define ptr @method.__getitem__(ptr %self, ptr %index) {
  %is.array = call i1 @is_array(ptr %self)
  %is.free = call i1 @is_free()
  %usual = and i1 %is.array, %is.free
  br i1 %usual, label %look, label %slow
"""
    + _FINDING
    + """open:
  %kind = call i64 @kind_of(ptr %buffer)
  %at = call ptr @element(ptr %buffer, ptr %index)
  %is.element = icmp ne ptr %at, null
  unless %is.element goto part, element:
  %plain = call ptr @number_at(ptr %at, i64 %kind)
  %other = icmp eq ptr %plain, null
  if %other goto scalar, python:
  hold %device
  br label %give
; By NumPy's own scalar, at an index that it knows.
scalar:
  %of.array = call i1 @is_array(ptr %index)
  %of.known = icmp ne i64 %kind, 0
  unless %of.known goto slow, open.index:
  unless %of.array goto read.scalar, unwrap:
  %inner = call ptr @word(ptr %index, i64 $AT_VALUE)
  then read.scalar:
  %own.index = phi ptr [ %index, %open.index ], [ %inner, %unwrap ]
; Arrays in the index are asked for their ints in Python, which may give what is read here away.
  hold %device, %buffer, %own.index
  %made.scalar = call ptr @PyObject_GetItem(ptr %buffer, ptr %own.index)
  release %own.index
  %no.scalar = icmp eq ptr %made.scalar, null
  if %no.scalar goto clear, ask.scalar:
  %is.scalar = call i1 @is_scalar(ptr %made.scalar)
  unless %is.scalar goto leave, take.scalar:
  release %buffer
  then give:
  %number = phi ptr [ %plain, %python ], [ %made.scalar, %take.scalar ]
  %result = call ptr @wrap(ptr %number, ptr %device, i64 1)
  ret ptr %result
part:
  %itemsize = call i64 @bytes_of(i64 %kind)
  %has.size = icmp sgt i64 %itemsize, 0
  unless %has.size goto slow, ask.selector:
  %selector = call ptr @selector(ptr %index, ptr %device)
  %selects = icmp ne ptr %selector, null
  unless %selects goto basic, see.size:
  %of.bools = call i1 @is_mask(ptr %selector)
  %any.number = and i1 %of.bools, %of.large
  unless %any.number goto select, lose.selector:
  release %selector
  br label %slow
select:
  call void @count_reader(ptr %node, i64 1)
  %selected = call ptr @read_selected(ptr %buffer, ptr %selector, ptr %device, i64 %itemsize)
  call void @count_reader(ptr %node, i64 -1)
  release %selector
  %none.selected = icmp eq ptr %selected, null
  unless %none.selected goto give.selected, ask.error:
  %error = call ptr @PyErr_Occurred()
  %is.error = icmp ne ptr %error, null
  unless %is.error goto slow, give.selected:
  ret ptr %selected
basic:
  %rank = call i64 @rank_of_part(ptr %buffer, ptr %index)
  %is.array.part = icmp sgt i64 %rank, 0
  unless %is.array.part goto slow, read:
  hold %device, %buffer
  %view = call ptr @PyObject_GetItem(ptr %buffer, ptr %index)
  %lacks = icmp eq ptr %view, null
  unless %lacks goto measure, clear:
  release %buffer, %device
  call void @PyErr_Clear()
  br label %slow
measure:
  %is.view = call i1 @is_ndarray(ptr %view)
  unless %is.view goto leave, choose:
  %size = call i64 @size(ptr %view)
  %bytes = mul i64 %size, %itemsize
  %is.short = icmp sle i64 %bytes, $COPIED
  %flags = call i32 @flags(ptr %view)
  %row.major = and i32 %flags, 1
  %lies.close = icmp ne i32 %row.major, 0
  %short = and i1 %is.short, %lies.close
  br i1 %of.large, label %of.node, label %of.value
; What would keep a much larger array alive is a copy.
of.node:
  %fits = icmp sle i64 %bytes, $MOSTPLAIN
  br i1 %fits, label %copy, label %leave
of.value:
  unless %short goto keep, copy:
  call void @count_reader(ptr %node, i64 1)
  %name = call ptr @state_word(i64 $COPY)
  %arguments = alloca ptr, align 8
  store ptr %view, ptr %arguments, align 8
  %own = call ptr @PyObject_VectorcallMethod(ptr %name, ptr %arguments, i64 1, ptr null)
  call void @count_reader(ptr %node, i64 -1)
  release %view
  %no.memory = icmp eq ptr %own, null
  br i1 %no.memory, label %clear, label %mark
keep:
  %shown = call ptr @word(ptr %self, i64 $AT_SHOWN)
  %has.node = call i1 @is_there(ptr %shown)
  br i1 %has.node, label %expose, label %mark
; The node's memory is seen by a view from now on, unless another thread has just given it away.
expose:
  %exposed = call i32 @PyObject_SetAttrString(ptr %shown, ptr @exposed, ptr @_Py_TrueStruct)
  %now = call ptr @word(ptr %self, i64 $AT_VALUE)
  %still = icmp eq ptr %now, %buffer
  %set.it = icmp eq i32 %exposed, 0
  %both.so = and i1 %still, %set.it
  unless %both.so goto leave, mark:
  %value = phi ptr [ %own, %copy ], [ %view, %keep ], [ %view, %expose ]
  release %buffer
  %reference = call ptr @PyWeakref_NewRef(ptr %self, ptr null)
  %no.reference = icmp eq ptr %reference, null
  if %no.reference goto raise, pack:
  %step = call ptr @state_word(i64 $INDEX_STEP)
  %outer = call ptr @outer_part(ptr %self)
  %lost = icmp eq ptr %outer, null
  unless %lost goto join, drop.reference:
  release %reference
  br label %raise
join:
  %made = call ptr (i64, ...) @PyTuple_Pack(i64 4, ptr %reference, ptr %step, ptr %index, ptr %outer)
  release %outer, %reference
  %failed = icmp eq ptr %made, null
  unless %failed goto wrap, raise:
  release %value, %device
  ret ptr null
wrap:
  %array = call ptr @wrap(ptr %value, ptr %device, i64 0)
  %unmade = icmp eq ptr %array, null
  unless %unmade goto note, forget:
  release %made
  ret ptr null
note:
  %before = call ptr @exchange(ptr %array, i64 $AT_PART, ptr %made)
  ret ptr %array
leave:
  %unused = phi ptr [ %made.scalar, %ask.scalar ], [ %view, %measure ], [ %view, %of.node ], [ %view, %expose ]
  release %unused, %buffer, %device
  then slow:
  %method = call ptr @state_word(i64 $READ)
  %by.python = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %method, ptr %self, ptr %index, ptr null)
  ret ptr %by.python
}
"""
)

_WRITING: Final = (
    """
; Whether a value is one of this kind of element, or a number that it takes as the op would.
define internal i1 @is_taken(ptr %value, i64 %kind) {
  %is.float = call i1 @is_of(ptr %value, ptr @PyFloat_Type)
  unless %is.float goto a, float:
  %is.double = icmp eq i64 %kind, 1
  ret i1 %is.double
a:
  %is.int = call i1 @is_of(ptr %value, ptr @PyLong_Type)
  unless %is.int goto b, int:
  %number = call i64 @integer(ptr %value)
  %exact = call i1 @is_exact(i64 %number)
  %of.double = icmp eq i64 %kind, 1
  %of.int = icmp eq i64 %kind, 2
  %either = or i1 %of.double, %of.int
  %fits = and i1 %either, %exact
  ret i1 %fits
b:
  %is.bool = call i1 @is_of(ptr %value, ptr @PyBool_Type)
  %of.bool = icmp eq i64 %kind, 3
  %both = and i1 %is.bool, %of.bool
  ret i1 %both
}
define internal void @store(ptr %value, i64 %kind, ptr %at) {
  switch i64 %kind, label %bool [ i64 1, label %double  i64 2, label %int ]
double:
  %is.float = call i1 @is_of(ptr %value, ptr @PyFloat_Type)
  unless %is.float goto whole, float:
  %number = call double @PyFloat_AsDouble(ptr %value)
  store double %number, ptr %at, align 8
  ret void
whole:
  %long = call i64 @integer(ptr %value)
  %converted = sitofp i64 %long to double
  store double %converted, ptr %at, align 8
  ret void
int:
  %own = call i64 @integer(ptr %value)
  store i64 %own, ptr %at, align 8
  ret void
bool:
  %is = icmp eq ptr %value, @_Py_TrueStruct
  %byte = zext i1 %is to i8
  store i8 %byte, ptr %at, align 1
  ret void
}
define ptr @method.__setitem__(ptr %self, ptr %arguments, i64 %count) {
  %is.two = icmp eq i64 %count, 2
  unless %is.two goto slow, begin:
  %index = load ptr, ptr %arguments, align 8
  %given = load ptr, ptr %arguments[1]
  %is.array = call i1 @is_array(ptr %self)
  %is.free = call i1 @is_free()
  %usual = and i1 %is.array, %is.free
  br i1 %usual, label %look, label %slow
"""
    + _FINDING
    + """open:
  %kind = call i64 @kind_of(ptr %buffer)
  %own = call ptr @word(ptr %given, i64 $CLASS)
  %class = call ptr @state_word(i64 $ARRAY)
  %of.array = icmp eq ptr %own, %class
  unless %of.array goto fit, unwrap:
  %their.device = call ptr @word(ptr %given, i64 $AT_DEVICE)
  %same = icmp eq ptr %their.device, %device
  %held = call ptr @word(ptr %given, i64 $AT_VALUE)
  %has = icmp ne ptr %held, null
  %fine = and i1 %same, %has
  unless %fine goto slow, fit:
  %value = phi ptr [ %given, %open ], [ %held, %unwrap ]
  %at = call ptr @element(ptr %buffer, ptr %index)
  %is.element = icmp ne ptr %at, null
  unless %is.element goto part, element:
  %taken = call i1 @is_taken(ptr %value, i64 %kind)
  unless %taken goto slow, hold:
  hold %index
  br label %find
part:
  %itemsize = call i64 @bytes_of(i64 %kind)
  %has.size = icmp sgt i64 %itemsize, 0
  unless %has.size goto slow, ask.selector:
  %selector = call ptr @selector(ptr %index, ptr %device)
  %selects = icmp ne ptr %selector, null
  unless %selects goto basic, select:
  %selected.rank = call i64 @rank_of_selection(ptr %buffer, ptr %selector, i64 %itemsize)
  br label %judge
basic:
  %basic.rank = call i64 @rank_of_part(ptr %buffer, ptr %index)
  hold %index
  then judge:
  %rank = phi i64 [ %selected.rank, %select ], [ %basic.rank, %basic ]
  %part.index = phi ptr [ %selector, %select ], [ %index, %basic ]
  %is.part.index = icmp sgt i64 %rank, 0
  if %is.part.index goto compare, lose:
  release %part.index
  br label %slow
compare:
  %is.array.value = call i1 @is_ndarray(ptr %value)
  unless %is.array.value goto number, types:
  %from = call ptr @word(ptr %value, i64 $DESCR)
  %to = call ptr @word(ptr %buffer, i64 $DESCR)
  %alike = icmp eq ptr %from, %to
  %their.rank = call i64 @rank(ptr %value)
  %lower = icmp sle i64 %their.rank, %rank
  %both = and i1 %alike, %lower
  br i1 %both, label %find, label %lose
number:
  %fits = call i1 @is_taken(ptr %value, i64 %kind)
  br i1 %fits, label %find, label %lose
; The index is held from here on.
find:
  %own.index = phi ptr [ %index, %hold ], [ %part.index, %types ], [ %part.index, %number ]
  %elements = zext i1 %is.element to i64
  hold %value
; Held, the buffer's address is that of no other one that Python, as it looks for the line, gives the Array.
  hold %buffer
  %line = call ptr @locate(i64 %elements)
  %failed = icmp eq ptr %line, null
  unless %failed goto prove, raise:
  release %own.index, %value, %buffer
  ret ptr null
; From here to the write no Python runs: the Array alone refers to memory that it may write to.
prove:
  %shown = call ptr @word(ptr %self, i64 $AT_SHOWN)
  %is.part = call i1 @is_part(ptr %self)
  release %buffer
  if %is.part goto leave, see.node:
  unless %of.large goto prove.small, prove.large:
  %still = icmp eq ptr %shown, %node
  unless %still goto leave, ask.node:
  %is.own = call i1 @is_own(ptr %node, ptr %buffer)
  br i1 %is.own, label %write, label %leave
prove.small:
  %has.node = call i1 @is_there(ptr %shown)
  %now = call ptr @word(ptr %self, i64 $AT_VALUE)
  %changed = icmp ne ptr %now, %buffer
  %bad = or i1 %has.node, %changed
  if %bad goto leave, count.references:
  %references = load i32, ptr %buffer, align 4
  %alone = icmp eq i32 %references, 1
  %base = call ptr @word(ptr %buffer, i64 $BASE)
  %based = icmp eq ptr %base, null
  %flags = call i32 @flags(ptr %buffer)
  %writeable = and i32 %flags, 1024
  %open.to.writes = icmp ne i32 %writeable, 0
  %first = and i1 %alone, %based
  %all = and i1 %first, %open.to.writes
  unless %all goto leave, write:
  hold %holder
  unless %is.element goto write.part, write.element:
  call void @store(ptr %value, i64 %kind, ptr %at)
  br label %done
; NumPy lets other threads run while it writes many elements, which may give the Array another node.
write.part:
  hold %buffer
  call void @open_memory(ptr %buffer, i1 true)
  %status = call i32 @PyObject_SetItem(ptr %buffer, ptr %own.index, ptr %value)
  %stays.open = xor i1 %of.large, true
  call void @open_memory(ptr %buffer, i1 %stays.open)
  release %buffer
  %refused = icmp ne i32 %status, 0
  unless %refused goto done, clear:
  call void @PyErr_Clear()
  release %holder
  br label %leave
done:
  %slot = select i1 %of.large, i64 $ATNODE__LOCATION, i64 $AT_LOCATION
  %before = call ptr @exchange(ptr %holder, i64 %slot, ptr %line)
  call void @drop(ptr %before)
  release %holder, %own.index, %value
  hold @_Py_NoneStruct
  ret ptr @_Py_NoneStruct
leave:
  release %own.index, %line, %value
  then slow:
  %method = call ptr @state_word(i64 $WRITE)
  %by.python = call ptr @call_python(
    ptr %method, ptr %self, ptr %arguments, i64 %count, i64 %count, ptr null)
  ret ptr %by.python
}
"""
)


def subscript_text(fields: Mapping[str, int], read: int, write: int, copied: int) -> str:
    """The methods `__getitem__` and `__setitem__`, whose Python methods are at these words of the state.

    copied: bytes of a contiguous part up to which it is copied.
    """
    names = {1: "one", 2: "two", 4: "four", 8: "eight", 16: "sixteen"}
    sizes = [f"i64 {number}, label %{names[np.dtype(kind).itemsize]}" for kind, number in KINDS.items()]
    first = min(KINDS[kind] for kind in SCALAR_KINDS if np.dtype(kind).kind in "iu")
    words = {"READ": str(8 * read), "WRITE": str(8 * write), "COPIED": str(copied), "FIRSTINT": str(first)}
    words["MOSTPLAIN"] = str(MOST_PLAIN_BYTES)
    words["SIZES_OF_KINDS"] = "  ".join(sizes)
    return text(_INDICES + LARGE + SELECTING + _READING + _WRITING, fields, **words)
