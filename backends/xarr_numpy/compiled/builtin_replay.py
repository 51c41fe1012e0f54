"""A call of a jitted function as one built-in function of CPython: checks, results and kernel in machine code.

What `xarr.transforms.python_replay` writes in Python for a call costs several times what a kernel on a small
array does.  Where the program is made of kernels of little work, and the arguments are Arrays, the same checks are
made here on the C structs of the objects, and the results are made by the C functions of CPython and NumPy.

Sources: CPython, Include/cpython/{tupleobject,listobject,dictobject}.h; NumPy, "Array API" of the C-API.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from xarr.backend import Recipe
from xarr_numpy.compiled import assembler, builtin, sharing, steps_code
from xarr_numpy.compiled.straight import SOON, Slot, Straight

Replay = Callable[[tuple[Any, ...], dict[str, Any]], Any]

#: Arrays that a kernel reads and writes, and arguments, at most.
MOST: Final = 64
#: Bytes from the start of an object to its class, and of a tuple, list or dict to the number of its items.
_CLASS: Final = 8
_COUNT: Final = object.__basicsize__
_ITEMS: Final = tuple.__basicsize__
_BYTES: Final = bytes.__basicsize__ - 1
#: Places in NumPy's table of C functions: what gives its version, the class of arrays, and what makes a new one.
_VERSION: Final = 0
_NDARRAY: Final = 2
_NEW: Final = 94
#: The version of that table whose places these are: that of NumPy 2.
_TABLE: Final = 0x02000000

#: What an argument is looked at as: an Array, a float that becomes a float64 or a float32, one that nothing uses.
_ARRAY: Final = 1
_DOUBLE: Final = 2
_SINGLE: Final = 3
_UNUSED: Final = 4
_KINDS: Final = {np.dtype(np.float64): _DOUBLE, np.dtype(np.float32): _SINGLE}
#: Bytes from the start of a float to its value.
_NUMBER: Final = object.__basicsize__
#: The largest float32, as LLVM writes it.
_LARGEST: Final = f"0x{np.float64(np.finfo(np.float32).max).view(np.uint64):016X}"

#: Fields that are numbers, not addresses: how many rows of each kind there are, and where a field of an object lies.
_LENGTHS: Final = (
    *("arguments", "sources", "outputs", "results", "in_tuple", "constants"),
    *("parts", "bytes", "steps", "long", "shared"),
)
_OFFSETS: Final = (
    *("at_node", "at_backend", "at_value", "at_owner", "at_type", "at_op", "at_handles", "at_place"),
)
_NUMBERS: Final = frozenset((*_LENGTHS, *_OFFSETS))
#: What the machine code reads, in order; all of it has the size of a pointer.
_FIELDS: Final = (
    *("array", "leaf", "backend", "missed", "recording", "observers", "config", "key", "settings"),
    *("overrides", "overridden", "one", "float", "new", "ndarray", "share", "pool"),
    *_LENGTHS,
    *("looked", "made", "wrapped", "fixed", "offsets", "step"),
    *_OFFSETS,
)


class _Context(ctypes.Structure):
    _fields_ = tuple([(name, ctypes.c_size_t) for name in _FIELDS])


def function(recipe: Recipe, program: Straight, places: Sequence[int]) -> Replay | None:
    """The built-in function for calls that `recipe` describes; None where it cannot be made.

    places: which result of the program each of the recipe's is.
    """
    sources = _sources(recipe)
    offsets = _offsets(recipe.array, recipe.leaf)  # type: ignore[arg-type]
    functions = _numpy_functions()
    if sources is None or offsets is None or functions is None:
        return None
    outputs, constants = program.outputs, program.constants
    slots = _slots(len(sources), program)
    longest = max(len(buffers) for _, buffers in program.steps)
    if max(len(slots) + len(sources), longest, len(recipe.results)) > MOST:
        return None
    recording, observers = recipe.empty
    descriptions = [np.dtype(outputs[k].dtype) for k in range(len(outputs))]
    sizes = [_words(outputs[k].shape) for k in range(len(outputs))]
    made = [
        word
        for k in range(len(outputs))
        for word in (id(descriptions[k]), len(outputs[k].shape), ctypes.addressof(sizes[k]))
    ]
    wrapped = [
        word
        for place, (op, type_, source) in zip(places, recipe.results, strict=True)
        for word in (id(op), id(type_), id(source), program.order[place])
    ]
    looked = [word for source in sources for word in source]
    buffers = [_words([slots.get(slot, slot[1]) for slot in step[1]]) for step in program.steps]
    plans = [phase.plan() for phase, _ in program.steps]
    steps = [
        word
        for (phase, names), table, plan in zip(program.steps, buffers, plans, strict=True)
        for word in (phase.address, phase.extent, len(names), ctypes.addressof(table), *(plan or (0, 0, 0)))
    ]
    fixed = [each.ctypes.data for each in constants]
    tables = [_words(each) for each in (looked, made, wrapped, fixed, program.offsets, steps)]
    one = 1
    objects = (
        *(recipe.array, recipe.leaf, recipe.backend, recipe.missed, recording, observers),
        *(*recipe.setting, *recipe.override, one, float),
    )
    context = _Context(
        *[id(each) for each in objects],
        *functions,
        *(sharing.entry() if any(plans) else (0, 0)),
        *(len(recipe.arguments), len(sources), len(outputs), len(recipe.results), recipe.in_tuple),
        *(
            len(constants),
            len(program.offsets),
            program.nbytes,
            len(steps) // steps_code.STEP,
            program.work >= SOON,
            any(plans),
        ),
        *[ctypes.addressof(table) for table in tables],
        *offsets,
    )
    address = ctypes.addressof(context).to_bytes(8, "little")
    # The built-in function holds what the context points to.
    held = (context, objects, tables, sizes, descriptions, recipe, buffers, constants, program.codes)
    code = _code()
    return builtin.function(code.addresses["replay"], address, held, code)


def _slots(sources: int, program: Straight) -> dict[Slot, int]:
    """Where the machine code keeps the addresses of buffers: after those of what is looked at."""
    outputs, constants = len(program.outputs), len(program.constants)
    found: dict[Slot, int] = {("output", k): sources + k for k in range(outputs)}
    found |= {("constant", k): sources + outputs + k for k in range(constants)}
    found |= {("memory", k): sources + outputs + constants + k for k in range(len(program.offsets))}
    return found


def _sources(recipe: Recipe) -> list[tuple[int, int, int]] | None:
    """What is looked at in turn, the parameters of the program first: which argument, as what, and of which type."""
    arrays = [(k, _ARRAY, id(type_)) for k, type_ in enumerate(recipe.arguments) if type_ is not None]
    numbers = [(k, _KINDS.get(dtype, 0), 0) for k, dtype in recipe.numbers]
    used = {k for k, _ in recipe.numbers}
    others = [(k, _UNUSED, 0) for k, type_ in enumerate(recipe.arguments) if type_ is None and k not in used]
    return None if any(kind == 0 for _, kind, _ in numbers) else [*arrays, *numbers, *others]


def _words(values: Any) -> ctypes.Array[ctypes.c_size_t]:
    found = list(values)
    return (ctypes.c_size_t * max(1, len(found)))(*found)


@cache
def _offsets(array: type[Any], leaf: type[Any]) -> tuple[int, ...] | None:
    """Bytes from the start of an Array or leaf to its attributes; None if they are not where they should be."""
    if not (builtin.works() and _is_as_expected()):
        return None
    found = [_offset(array, name) for name in ("_node", "_backend")]
    found += [_offset(leaf, name) for name in ("value", "owner", "type", "op", "handles", "_place")]
    known = tuple([each for each in found if each is not None])
    return known if len(known) == len(found) else None


def _offset(cls: type[Any], name: str) -> int | None:
    """Where an object of a class keeps one of its slots."""
    mark, sample = object(), object.__new__(cls)
    setattr(sample, name, mark)
    words = range(object.__basicsize__, cls.__basicsize__, 8)
    places = [word for word in words if ctypes.c_size_t.from_address(id(sample) + word).value == id(mark)]
    delattr(sample, name)
    return places[0] if len(places) == 1 else None


def _is_as_expected() -> bool:
    """Whether tuples, lists, dicts and bytes lie in memory as the machine code reads them."""
    word = ctypes.c_size_t.from_address
    pair, items, names, text, number = (None, True), [1, 2, 3], {"a": 1, "b": 2}, b"12345678", 1.5
    counts = [word(id(each) + _COUNT).value for each in (pair, items, names)]
    return (
        counts == [2, 3, 2]
        and word(id(pair) + _ITEMS + 8).value == id(True)
        and word(id(text) + _BYTES).value == int.from_bytes(text, "little")
        and word(id(items) + _CLASS).value == id(list)
        and ctypes.c_double.from_address(id(number) + _NUMBER).value == number
    )


@cache
def _numpy_functions() -> tuple[int, int] | None:
    """The addresses of PyArray_NewFromDescr and of PyArray_Type, which every C extension of NumPy finds so.

    None where NumPy does not show the table, where the table is of another version, where that is not the class
    of arrays, and where the function does not make an array.
    """
    core = getattr(np, "_core", None)
    capsule = getattr(getattr(core, "_multiarray_umath", None), "_ARRAY_API", None)
    if capsule is None:
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    entries = (ctypes.c_size_t * (_NEW + 1)).from_address(pointer(capsule, None))
    version = ctypes.PYFUNCTYPE(ctypes.c_uint)(entries[_VERSION])
    if version() != _TABLE or entries[_NDARRAY] != id(np.ndarray) or not _makes_arrays(entries[_NEW]):
        return None
    return entries[_NEW], entries[_NDARRAY]


def _makes_arrays(address: int) -> bool:
    """Whether the function there makes a new array of a class, an element type and a shape."""
    pointer = ctypes.c_void_p
    kinds = (
        ctypes.py_object,
        ctypes.py_object,
        ctypes.c_int,
        pointer,
        pointer,
        pointer,
        ctypes.c_int,
        pointer,
    )
    make = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)(address)
    description, shape = np.dtype(np.float32), (2, 3)
    sizes = (ctypes.c_ssize_t * len(shape))(*shape)
    # The function keeps the reference to the element type that it is given.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(description))
    try:
        made = make(np.ndarray, description, len(shape), ctypes.addressof(sizes), None, None, 0, None)
    except (TypeError, ValueError, SystemError):
        return False
    return (
        type(made) is np.ndarray
        and (made.shape, made.dtype) == (shape, description)
        and bool(made.flags.carray and made.flags.owndata)
    )


@cache
def _code() -> assembler.Code:
    """The machine code of all these built-in functions."""
    return assembler.made(text(), ["replay"])


def text() -> str:
    """The built-in function in LLVM IR, the same for all calls."""
    fields = [
        line
        for number, name in enumerate(_FIELDS)
        for line in (
            f"  %{name}.slot = getelementptr i64, ptr %context, i64 {number}",
            f"  %{name} = load {'i64' if name in _NUMBERS else 'ptr'}, ptr %{name}.slot, align 8",
        )
    ]
    return "\n".join(
        [
            _DECLARATIONS,
            steps_code.DECLARATIONS,
            _head(),
            *fields,
            _checks(),
            _looks(),
            steps_code.text(),
            _results(),
            _wrap(),
        ]
    )


_DECLARATIONS: Final = """
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyTuple_New(i64)
declare double @llvm.fabs.f64(double)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
"""


def _head() -> str:
    return f"""
define ptr @replay(ptr %self, ptr %given, i64 %number) nounwind {{
entry:
  %found = alloca ptr, align 8
  %data = alloca [{MOST} x ptr], align 8
  %numbers = alloca [{MOST} x double], align 8
  %arrays = alloca [{MOST} x ptr], align 8
  %held = alloca [{MOST} x ptr], align 8
  %buffers = alloca [{MOST} x ptr], align 8
  %first.slot = getelementptr i8, ptr %self, i64 {_ITEMS}
  %first = load ptr, ptr %first.slot, align 8
  %address = getelementptr i8, ptr %first, i64 {_BYTES}
  %context = load ptr, ptr %address, align 8"""


def _checks() -> str:
    """Go on to `%work` when `_looks` has put the addresses of all arguments' elements in `%data`, or to `%miss`."""
    return f"""
  %is_pair = icmp eq i64 %number, 2
  br i1 %is_pair, label %count, label %miss
count:
  %args = load ptr, ptr %given, align 8
  %kwargs.slot = getelementptr ptr, ptr %given, i64 1
  %kwargs = load ptr, ptr %kwargs.slot, align 8
  %args.count = getelementptr i8, ptr %args, i64 {_COUNT}
  %count.args = load i64, ptr %args.count, align 8
  %kwargs.count = getelementptr i8, ptr %kwargs, i64 {_COUNT}
  %count.kwargs = load i64, ptr %kwargs.count, align 8
  %recording.count = getelementptr i8, ptr %recording, i64 {_COUNT}
  %count.recording = load i64, ptr %recording.count, align 8
  %observers.count = getelementptr i8, ptr %observers, i64 {_COUNT}
  %count.observers = load i64, ptr %observers.count, align 8
  %one.more = or i64 %count.kwargs, %count.recording
  %too.many = or i64 %one.more, %count.observers
  %is.quiet = icmp eq i64 %too.many, 0
  %is.complete = icmp eq i64 %count.args, %arguments
  %counts = and i1 %is.quiet, %is.complete
  br i1 %counts, label %setting, label %miss
setting:
  %set = call ptr @PyDict_GetItemWithError(ptr %config, ptr %key)
  %is.set = icmp eq ptr %set, %settings
  br i1 %is.set, label %override, label %miss
override:
  store ptr null, ptr %found, align 8
  %status = call i32 @PyContextVar_Get(ptr %overrides, ptr null, ptr %found)
  %override.found = load ptr, ptr %found, align 8
  %is.found = icmp ne ptr %override.found, null
  br i1 %is.found, label %compare, label %fail
compare:
  call void @Py_DecRef(ptr %override.found)
  %is.same = icmp eq ptr %override.found, %overridden
  br i1 %is.same, label %gather, label %miss
gather:
  %is.shared = icmp ne i64 %shared, 0
  br i1 %is.shared, label %pool.look, label %begin
pool.look:
  %pool.found = load ptr, ptr %pool, align 8
  %is.pool = icmp ne ptr %pool.found, null
  br i1 %is.pool, label %begin, label %miss
begin:
  %threads = phi ptr [ null, %gather ], [ %pool.found, %pool.look ]
  br label %next
next:
  %i = phi i64 [ 0, %begin ], [ %i.next, %fine ]
  %is.last = icmp eq i64 %i, %sources
  br i1 %is.last, label %work, label %argument"""


def _looks() -> str:
    """Look at one argument: to `%fine` with the address of its elements, or to `%miss`."""
    return f"""
argument:
  %looked.row = mul i64 %i, 3
  %position.slot = getelementptr i64, ptr %looked, i64 %looked.row
  %position = load i64, ptr %position.slot, align 8
  %kind.slot = getelementptr i64, ptr %position.slot, i64 1
  %kind = load i64, ptr %kind.slot, align 8
  %wanted.slot = getelementptr i64, ptr %position.slot, i64 2
  %wanted = load ptr, ptr %wanted.slot, align 8
  %items = getelementptr i8, ptr %args, i64 {_ITEMS}
  %x.slot = getelementptr ptr, ptr %items, i64 %position
  %x = load ptr, ptr %x.slot, align 8
  %x.class.slot = getelementptr i8, ptr %x, i64 {_CLASS}
  %x.class = load ptr, ptr %x.class.slot, align 8
  %wants.array = icmp eq i64 %kind, {_ARRAY}
  br i1 %wants.array, label %array.look, label %float.look
float.look:
  %is.float = icmp eq ptr %x.class, %float
  br i1 %is.float, label %float.read, label %miss
float.read:
  %read.slot = getelementptr i8, ptr %x, i64 {_NUMBER}
  %number.read = load double, ptr %read.slot, align 8
  %number.slot = getelementptr double, ptr %numbers, i64 %i
  store double %number.read, ptr %number.slot, align 8
  %wants.single = icmp eq i64 %kind, {_SINGLE}
  br i1 %wants.single, label %single.look, label %fine
single.look:
  %number.size = call double @llvm.fabs.f64(double %number.read)
  %fits.single = fcmp ole double %number.size, {_LARGEST}
  br i1 %fits.single, label %single.put, label %miss
single.put:
  %number.single = fptrunc double %number.read to float
  store float %number.single, ptr %number.slot, align 8
  br label %fine
array.look:
  %is.array = icmp eq ptr %x.class, %array
  br i1 %is.array, label %handle, label %miss
handle:
  %node.slot = getelementptr i8, ptr %x, i64 %at_node
  %node = load ptr, ptr %node.slot, align 8
  %own.slot = getelementptr i8, ptr %x, i64 %at_backend
  %own = load ptr, ptr %own.slot, align 8
  %is.own = icmp eq ptr %own, %backend
  %is.node = icmp ne ptr %node, null
  %is.handle = and i1 %is.own, %is.node
  br i1 %is.handle, label %leaf.look, label %miss
leaf.look:
  %type.slot = getelementptr i8, ptr %node, i64 %at_type
  %type = load ptr, ptr %type.slot, align 8
  %owner.slot = getelementptr i8, ptr %node, i64 %at_owner
  %owner = load ptr, ptr %owner.slot, align 8
  %value.slot = getelementptr i8, ptr %node, i64 %at_value
  %value = load ptr, ptr %value.slot, align 8
  %is.type = icmp eq ptr %type, %wanted
  %is.owner = icmp eq ptr %owner, %backend
  %is.value = icmp ne ptr %value, null
  %is.leaf.so.far = and i1 %is.type, %is.owner
  %is.leaf = and i1 %is.leaf.so.far, %is.value
  br i1 %is.leaf, label %value.look, label %miss
value.look:
  %value.class.slot = getelementptr i8, ptr %value, i64 {_CLASS}
  %value.class = load ptr, ptr %value.class.slot, align 8
  %is.ndarray = icmp eq ptr %value.class, %ndarray
  br i1 %is.ndarray, label %ndarray.look, label %miss
ndarray.look:
  %flags.slot = getelementptr i8, ptr %value, i64 {builtin.FLAGS}
  %flags = load i32, ptr %flags.slot, align 4
  %flags.needed = and i32 %flags, {builtin.USABLE}
  %is.usable = icmp eq i32 %flags.needed, {builtin.USABLE}
  br i1 %is.usable, label %elements.read, label %miss
elements.read:
  %elements.slot = getelementptr i8, ptr %value, i64 {builtin.DATA}
  %elements = load ptr, ptr %elements.slot, align 8
  br label %fine
fine:
  %source = phi ptr [ %elements, %elements.read ], [ %number.slot, %float.read ], [ %number.slot, %single.put ]
  %kept = phi ptr [ %value, %elements.read ], [ null, %float.read ], [ null, %single.put ]
  %held.slot = getelementptr ptr, ptr %held, i64 %i
  store ptr %kept, ptr %held.slot, align 8
  %kept.slot = getelementptr ptr, ptr %data, i64 %i
  store ptr %source, ptr %kept.slot, align 8
  %i.next = add i64 %i, 1
  br label %next
miss:
  call void @Py_IncRef(ptr %missed)
  ret ptr %missed
fail:
  ret ptr null"""


def _results() -> str:
    """Wrap the outputs, give them back, and let go of the arrays themselves, of which `%k` are there."""
    return """
result:
  %tuple.wanted = icmp ne i64 %in_tuple, 0
  br i1 %tuple.wanted, label %tuple.new, label %single
single:
  %only = call ptr @wrap(ptr %context, ptr %wrapped, ptr %arrays)
  br label %undo
tuple.new:
  %tuple = call ptr @PyTuple_New(i64 %results)
  %tuple.failed = icmp eq ptr %tuple, null
  br i1 %tuple.failed, label %undo, label %item
item:
  %n = phi i64 [ 0, %tuple.new ], [ %n.next, %item.put ]
  %items.done = icmp eq i64 %n, %results
  br i1 %items.done, label %undo, label %item.new
item.new:
  %item.row = mul i64 %n, 4
  %item.wrapped = getelementptr i64, ptr %wrapped, i64 %item.row
  %item.made = call ptr @wrap(ptr %context, ptr %item.wrapped, ptr %arrays)
  %item.failed = icmp eq ptr %item.made, null
  br i1 %item.failed, label %tuple.drop, label %item.put
item.put:
  %tuple.items = getelementptr i8, ptr %tuple, i64 ITEMS
  %item.slot = getelementptr ptr, ptr %tuple.items, i64 %n
  store ptr %item.made, ptr %item.slot, align 8
  %n.next = add i64 %n, 1
  br label %item
tuple.drop:
  call void @Py_DecRef(ptr %tuple)
  br label %undo
undo:
  %returned = phi ptr [ %only, %single ], [ %tuple, %item ],
    [ null, %output.new ], [ null, %block.none ], [ null, %tuple.new ], [ null, %tuple.drop ]
  br label %drop
drop:
  %m = phi i64 [ 0, %undo ], [ %m.next, %drop.one ]
  %drops.done = icmp eq i64 %m, %k
  br i1 %drops.done, label %leave, label %drop.one
drop.one:
  %drop.slot = getelementptr ptr, ptr %arrays, i64 %m
  %dropped = load ptr, ptr %drop.slot, align 8
  call void @Py_DecRef(ptr %dropped)
  %m.next = add i64 %m, 1
  br label %drop
leave:
  ret ptr %returned
}""".replace("ITEMS", str(_ITEMS))


def _wrap() -> str:
    """A function: an Array that shows a new leaf, as a row of `wrapped` says, with one of the arrays as its value."""
    lines = ["define internal ptr @wrap(ptr %context, ptr %row, ptr %arrays) nounwind {", "entry:"]
    for name in ("array", "leaf", "backend", "one", *_OFFSETS):
        kind = "i64" if name in _NUMBERS else "ptr"
        lines += [
            f"  %{name}.slot = getelementptr i64, ptr %context, i64 {_FIELDS.index(name)}",
            f"  %{name} = load {kind}, ptr %{name}.slot, align 8",
        ]
    for number, name in enumerate(("op", "type", "source")):
        lines += [
            f"  %{name}.slot = getelementptr i64, ptr %row, i64 {number}",
            f"  %{name} = load ptr, ptr %{name}.slot, align 8",
        ]
    lines.append(
        """  %place.slot = getelementptr i64, ptr %row, i64 3
  %place = load i64, ptr %place.slot, align 8
  %value.slot = getelementptr ptr, ptr %arrays, i64 %place
  %value = load ptr, ptr %value.slot, align 8
  %new.leaf = call ptr @PyType_GenericAlloc(ptr %leaf, i64 0)
  %leaf.failed = icmp eq ptr %new.leaf, null
  br i1 %leaf.failed, label %fail, label %fill
fill:"""
    )
    for name in ("op", "type", "value"):
        lines += _put("leaf", name, name)
    lines += [
        *_put("leaf", "owner", "backend"),
        *_put("leaf", "handles", "one"),
        *_put("leaf", "place", "source"),
    ]
    lines.append(
        """  %new.array = call ptr @PyType_GenericAlloc(ptr %array, i64 0)
  %array.failed = icmp eq ptr %new.array, null
  br i1 %array.failed, label %drop, label %show
show:
  %to.node = getelementptr i8, ptr %new.array, i64 %at_node
  store ptr %new.leaf, ptr %to.node, align 8"""
    )
    lines += [*_put("array", "backend", "backend"), "  ret ptr %new.array", "drop:"]
    lines += ["  call void @Py_DecRef(ptr %new.leaf)", "  br label %fail", "fail:", "  ret ptr null", "}"]
    return "\n".join(lines)


def _put(target: str, slot: str, value: str) -> list[str]:
    """Lines: a slot of a new object holds `value`."""
    return [
        f"  call void @Py_IncRef(ptr %{value})",
        f"  %to.{slot} = getelementptr i8, ptr %new.{target}, i64 %at_{slot}",
        f"  store ptr %{value}, ptr %to.{slot}, align 8",
    ]
