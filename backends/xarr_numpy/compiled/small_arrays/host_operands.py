"""What stands in machine code for the arguments of a call in that of NumPy's function, and what is known of them."""

from __future__ import annotations

from typing import Final

OPERANDS: Final = """
# A number of a row, which has them in an array.
@inline
def row_number(row: ptr, index: i64) -> i64:
    return row.ROW_NUMBERS.DATA.i64[index]

@inline
def row_has(row: ptr, flag: i64) -> i1:
    return (row_number(row, 2) & flag) != 0

# Whether arrays of a kind of elements may stand in a call; the facts note it.
def row_takes(row: ptr, kind: i64, facts: ptr) -> i1:
    facts.FACT_KINDS |= 1 << kind
    return (row_number(row, 0) & (1 << kind)) != 0

# Whether the arrays and Python numbers of a call are of element types that go together, as `NumPyCall.combines` says.
def host_combines(row: ptr, facts: ptr) -> i1:
    kinds = facts.FACT_KINDS
    numbers = facts.FACT_NUMBERS
    alike = row_has(row, ALIKE)
    if alike and kinds & (kinds - 1):
        return False
    allowed = WIDEKINDS if numbers & 2 else BESIDEKINDS
    if alike:
        allowed &= INEXACTKINDS if numbers & 4 else NUMBERKINDS
    return numbers == 0 or (kinds & ~allowed) == 0

# The kinds of an argument that is no array, as `numpy_calls.ArgumentKind` counts them; 0 for none of these.
def host_kinds(item: ptr) -> i64:
    if item is None:
        return 1
    if item.CLASS is PyBool_Type:
        return 4
    if is_whole(item):
        return 2
    if item.CLASS is not PyTuple_Type or PyTuple_Size(item) == 0:
        return 0
    for k in range(PyTuple_Size(item)):
        if not is_whole(PyTuple_GetItem(item, k)):
            return 0
    return 8

def is_whole(item: ptr) -> i1:
    number = integer(item) if item.CLASS is PyLong_Type else LEAST
    return -LARGEST < number < LARGEST

# What stands for an argument in the call, a new reference; null for what nothing does, with or without an error.
def host_leaf(item: ptr, row: ptr, facts: ptr) -> ptr:
    if not is_array(item):
        if not host_is_number(item, row, facts):
            return null
        facts.FACT_DIFFER = 1
        hold(item)
        return item
    value = item.AT_VALUE
    if not is_there(value):
        return null
    # Constants are on no device.
    device = item.AT_DEVICE
    if is_there(device):
        if facts.FACT_DEVICE and facts.FACT_DEVICE is not device:
            device = common_device(facts.FACT_DEVICE, device)
            if not device:
                return null
        facts.FACT_DEVICE = device
    facts.FACT_ARRAYS += 1
    if not is_ndarray(value):
        return host_scalar(value, row, facts)
    if not row_takes(row, kind_of(value), facts):
        return null
    if facts.FACT_COMBINED <= MOSTPRODUCT:
        facts.FACT_COMBINED *= size(value)
    if not facts.FACT_FIRST:
        facts.FACT_FIRST = value
    elif not is_same_shape(facts.FACT_FIRST, value):
        facts.FACT_DIFFER = 1
    hold(value)
    return value

# As `host_leaf`, for an Array of a single number: of NumPy's type, where that is not a number's of Python.
def host_scalar(value: ptr, row: ptr, facts: ptr) -> ptr:
    facts.FACT_DIFFER = 1
    if not row_has(row, POINTS):
        return null
    maker = null
    kind = scalar_kind(value)
    if value.CLASS is PyFloat_Type:
        maker = state.NUMPYFLOAT
        kind = 1
    elif value.CLASS is PyLong_Type:
        maker = state.NUMPYINT
        kind = 2
    elif value.CLASS is PyBool_Type:
        maker = state.NUMPYBOOL
        kind = 3
    if not row_takes(row, kind, facts):
        return null
    if maker:
        return PyObject_CallFunctionObjArgs(maker, value, null)
    hold(value)
    return value

# Whether a Python number may stand for an array; the facts note 1, 2 for one that no float32 holds, and 4 for a float.
def host_is_number(item: ptr, row: ptr, facts: ptr) -> i1:
    if not row_has(row, NUMBERS):
        return False
    if item.CLASS is PyFloat_Type:
        magnitude = llvm_fabs_f64(PyFloat_AsDouble(item))
        facts.FACT_NUMBERS |= 7 if LARGESTSINGLE < magnitude <= LARGESTDOUBLE else 5
        return True
    if not (host_kinds(item) & 6):
        return False
    number = integer(item)
    facts.FACT_NUMBERS |= 1 if -EXACTSINGLE <= number <= EXACTSINGLE else 3
    return True

# As `host_leaf`, for lists and tuples of such arguments too, where the row takes them; of rows that take numbers for
# lists of lists too, so deep.
def host_operand(item: ptr, row: ptr, facts: ptr, depth: i64) -> ptr:
    is_list = item.CLASS is PyList_Type
    if not is_list and item.CLASS is not PyTuple_Type:
        return host_leaf(item, row, facts)
    if not row_has(row, LISTS) or depth <= 0:
        return null
    facts.FACT_DIFFER = 1
    if is_list:
        # Python may run meanwhile, and change the list.
        source = PyList_AsTuple(item) if PyList_Size(item) <= MOSTITEMS else null
        if not source:
            return null
    else:
        source = item
        hold(item)
    count = PyTuple_Size(source)
    made = PyList_New(count) if count <= MOSTITEMS else null
    for k in range(count if made else 0):
        below = depth - 1 if row_has(row, NUMBERS) else 0
        own = host_operand(PyTuple_GetItem(source, k), row, facts, below)
        if not own:
            release(made)
            made = null
            break
        PyList_SetItem(made, k, own)
    release(source)
    return made
"""
