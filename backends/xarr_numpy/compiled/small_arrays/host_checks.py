"""What must hold in machine code of the arguments of a call for NumPy's function to stand for xarr's."""

from __future__ import annotations

from typing import Final

CHECKS: Final = """
# Whether an array has a float that is -0.0, or (of any sign) 0.0; true too where that is not looked for.
def has_zero(object: ptr, sign: i64) -> i1:
    any = i64(sign == 0)
    if not is_ndarray(object):
        kind = scalar_kind(object)
        if object.CLASS is state.NUMPYFLOAT or object.CLASS is PyFloat_Type or kind == SINGLEKIND:
            return bits(PyFloat_AsDouble(object)) << any == sign << 63
        return object.CLASS is not PyLong_Type and object.CLASS is not PyBool_Type and is_inexact(kind)
    kind = kind_of(object)
    # Of other floats it is not looked for.
    if kind != 1 and kind != SINGLEKIND:
        return is_inexact(kind)
    if not (object.FLAGS & 3):
        return True
    data = object.DATA
    for k in range(size(object)):
        own = data.i64[k] if kind == 1 else i64(data.i32[k]) << 32
        if own << any == sign << 63:
            return True
    return False

# Whether a kind of elements has floats or is unknown: all but ints and bools.
@inline
def is_inexact(kind: i64) -> i1:
    return ((1 << kind) & EXACTKINDS) == 0

# The elements of a result at most: of all combinations of elements; less those that a sum runs over; of arrays that are
# combined element by element those of the shape that they broadcast to.
def host_results(row: ptr, facts: ptr, combined: i64, operands: ptr, count: i64) -> i64:
    array = facts.FACT_FIRST
    if not array:
        return combined
    if row_has(row, NUMBERS):
        return host_spread(operands, count)
    if not row_has(row, CONTRACTS) or rank(array) == 0:
        return combined
    last = array.SIZES.i64[rank(array) - 1]
    return unsigned(combined) / (last * last) if last > 0 else combined

# The elements of the shape that the arrays among so many objects broadcast to, if they do.
def host_spread(operands: ptr, count: i64) -> i64:
    product = 1
    axis = 1
    while True:
        length = 1
        has_axis = False
        for k in range(count):
            object = operands.ptr[k]
            if is_ndarray(object) and rank(object) >= axis:
                has_axis = True
                own = object.SIZES.i64[rank(object) - axis]
                if own != 1:
                    length = own
        if not has_axis:
            return product
        product *= length
        axis += 1

# Whether the first operand alone says that NumPy's result may be another one.
def host_is_unsure(row: ptr, operand: ptr) -> i1:
    if row_has(row, EMPTY) and size(operand) == 0:
        return True
    return row_has(row, NEGATIVEZEROS) and has_zero(operand, 1)

# The number of the option of this name, for a value that it takes and behind so many by position; -1 for none.
def host_option(row: ptr, name: ptr, value: ptr, given: i64) -> i64:
    names = row.ROW_OPTIONS
    for k in range(given, PyTuple_Size(names)):
        if PyTuple_GetItem(names, k) is name:
            return k if host_fits(row, k, value) else -1
    return -1

# Whether an option takes a value.
def host_fits(row: ptr, option: i64, value: ptr) -> i1:
    return (row_number(row, option + FIRSTOPTION) & host_kinds(value)) != 0
"""
