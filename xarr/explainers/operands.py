"""Operands of explanations: an array, a shape, or text such as `f32[5,1]`; and calls on them in XLA's words."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from itertools import count
from keyword import iskeyword
from typing import Any, Final

import numpy as np

from xarr.base.configuration import current as config
from xarr.base.host_arrays import is_weak
from xarr.calls.operands import as_array
from xarr.dtypes import TABLE, canonical, from_xla_name, xla_name
from xarr.errors import InputError
from xarr.explainers.explicit_program import make_explicit
from xarr.explanation.broadcast_facts import Operand, check_name
from xarr.explanation.expression import read_operand
from xarr.explanation.sheet import Listing
from xarr.runtime.handles import Handle
from xarr.shapes import check_sizes
from xarr.transforms.lowering import lower

#: Values of operands up to this size are shown, if they have been computed already.
_VALUES_SHOWN = 256


def read(function: str, name: str, argument: Any) -> Operand:
    """An operand: an array, a shape as a tuple of ints, or text such as `f32[5,1]`.

    Values are kept of small arrays that have them.  Raises InputError, ParseError or ShapeError for anything else.
    """
    name = check_name(function, name)
    if isinstance(argument, str):
        shape, dtype = read_operand(argument)
        return Operand(name, shape, dtype and xla_name(dtype_named(dtype)))
    if isinstance(argument, tuple):
        return Operand(name, check_sizes(argument))
    if isinstance(argument, Handle | np.ndarray | list) or is_weak(argument):
        array = as_array(argument)
        node = array._node
        small = isinstance(node.value, np.ndarray) and node.value.size <= _VALUES_SHOWN
        return Operand(name, array.shape, xla_name(array.dtype), node.value if small else None)
    raise InputError(
        f'{function}: wanted an array, a shape such as (5, 1) or text such as "f32[5,1]" for {name}, '
        f"got {type(argument).__name__}"
    )


def read_lists(function: str, lists: Any) -> np.ndarray[Any, Any]:
    """The array of nested lists; InputError where they are ragged.  Empty lists are of integers, as an index is."""
    try:
        array = np.asarray(lists)
    except ValueError:
        raise InputError(f"{function}: wanted lists of equal lengths within a list, got {lists!r}") from None
    return array if array.size or isinstance(lists, np.ndarray) else array.astype(int)


def spec_of(operand: Operand) -> str:
    """The type of an operand as text; float64 where it has none."""
    return f"{operand.dtype or 'f64'}[{','.join(map(str, operand.shape))}]"


def programs(
    function: Callable[..., Any], operands: Sequence[Operand], names: Sequence[str]
) -> list[Listing]:
    """Codes of a call on operands: its explicit program, and the StableHLO of its graph.

    Parameters are called as the operands are; those whose names are expressions or taken get others.
    """

    def program(*arrays: Any) -> Any:
        return function(*arrays)

    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in _identifiers(names)]
    vars(program)["__signature__"] = Signature(parameters)
    specs = [spec_of(operand) for operand in operands]
    with config(broadcasting="numpy"):  # what is explained may be what the caller refuses
        module = str(lower(program, *specs))
    return [
        Listing("explicit", str(make_explicit(program, *specs))),
        Listing("StableHLO", module, is_in_text=False),
    ]


def _identifiers(names: Sequence[str]) -> list[str]:
    """One identifier for each name, all unlike: the name itself, or `x0`, `x1` … where it is none or taken."""
    kept = [
        name if name.isidentifier() and not iskeyword(name) and name not in names[:at] else None
        for at, name in enumerate(names)
    ]
    free = (name for number in count() if (name := f"x{number}") not in kept)
    return [next(free) if name is None else name for name in kept]


def axes_of(function: str, axis: Any, rank: int) -> tuple[int, ...]:
    """The axes that an argument names, from 0 on; all for None.  InputError for others, and for one named twice."""
    if axis is None:
        return tuple(range(rank))
    listed = axis if isinstance(axis, tuple | list) else (axis,)
    try:
        numbers = [operator.index(each) for each in listed]
    except TypeError:
        raise InputError(f"{function}: wanted an int, ints or None for axis, got {axis!r}") from None
    for number in numbers:
        if not -rank <= number < rank:
            legal = f"legal are {-rank} … {rank - 1}" if rank else "it has no axis"
            raise InputError(f"{function}: axis {number} is out of range for rank {rank}; {legal}")
    axes = tuple(sorted(number % rank for number in numbers))
    if len(set(axes)) != len(axes):
        raise InputError(f"{function}: wanted each axis once, got {axis!r}")
    return axes


def check_flag(function: str, what: str, value: Any) -> bool:
    """A flag, which may be 0 or 1 too, as in NumPy; InputError for anything else."""
    if isinstance(value, bool | np.bool_ | int | np.integer) and value in (0, 1):
        return bool(value)
    raise InputError(f"{function}: wanted True or False for {what}, got {value!r}")


def choose(function: str, what: str, choice: Any, known: Sequence[str]) -> str:
    """One of the names that are known; InputError for anything else."""
    if isinstance(choice, str) and choice in known:
        return choice
    raise InputError(f"{function}: wanted {what} to be one of {', '.join(known)}, got {choice!r}")


def dtype_named(name: str) -> np.dtype[Any]:
    """The element type of a name of XLA or NumPy: `f32`, `s64`, `i64`, `float32`; DTypeError for others."""
    short = f"s{name[1:]}" if name[:1] == "i" and name[1:].isdigit() else name
    return from_xla_name(short) if short in _XLA_NAMES else canonical(name)


def dtype_of(operand: Operand) -> np.dtype[Any] | None:
    """The element type of an operand, None if it is not known."""
    return None if operand.dtype is None else dtype_named(operand.dtype)


_XLA_NAMES: Final = frozenset(row.xla for row in TABLE)
