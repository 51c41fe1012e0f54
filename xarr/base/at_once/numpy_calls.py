"""What functions of NumPy's may be called with where they stand for xarr's, as data that machine code reads too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

#: Integers beyond are left to xarr's functions, for axes, widths and operands.
LARGEST_INT: Final = 2**31
#: The codes of element types beside which a Python number is taken as xarr's functions take it, and of those beside
#: which it is if they hold it.
WIDE: Final = "dl?D"
SINGLE: Final = "fF"
#: The ints up to which floats of either size hold each, and the greatest float32.
EXACT: Final = 2**53
EXACT_SINGLE: Final = 2**24
GREATEST_SINGLE: Final = float(np.finfo(np.float32).max)


#: The kinds of values that an argument may have, or strings, and None.
Kinds: TypeAlias = int | frozenset[str | None]


class ArgumentKind:
    """Kinds of arguments beside arrays: None, an int, True or False, a tuple of ints, one of tuples of ints, a float.

    Plain ints, which are combined many times quicker than members of an enumeration.
    """

    NONE: Final = 1
    INT: Final = 2
    BOOL: Final = 4
    INTS: Final = 8
    PAIRS: Final = 16
    FLOAT: Final = 32


class Unless:
    """When NumPy's result may be another one: of no elements, of -0.0 among them, and if it has zeros of these."""

    EMPTY: Final = 1
    NEGATIVE_ZEROS: Final = 2
    ZEROS_OF_BOTH_SIGNS: Final = 4


#: The kinds of values by their classes; of ints and tuples they depend on the value.
_BY_CLASS: Final = {
    bool: ArgumentKind.BOOL,
    NoneType: ArgumentKind.NONE,
    float: ArgumentKind.FLOAT,
}


def kind_of(value: Any) -> int:
    """The kind of an argument that is no array; 0 for one of none."""
    kind = type(value)
    if kind is int:
        return ArgumentKind.INT if -LARGEST_INT < value < LARGEST_INT else 0
    if kind is tuple:
        kinds = {kind_of(each) for each in value}
        if kinds == {ArgumentKind.INT}:
            return ArgumentKind.INTS
        return ArgumentKind.PAIRS if kinds == {ArgumentKind.INTS} else 0
    return _BY_CLASS.get(kind, 0)


def fits_single(number: float) -> bool:
    """Whether float32 holds an int, or has numbers as large as a float."""
    if type(number) is float:
        return not GREATEST_SINGLE < abs(number) < float("inf")
    return -EXACT_SINGLE <= number <= EXACT_SINGLE


class NumPyCall(NamedTuple):
    """A function of NumPy's that stands for one of the NumPy level, and what it may be called with.

    call: it; chars: the codes of the element types of its arrays; most: so many of the first arguments may be arrays.
    options: the arguments after these in their order, by position or by name, and by name alone `keepdims` of those
        that have an axis; each with the kinds of its values that mean the same to both, or with these strings or None.
    lists: whether a list of arrays may stand for one; numbers: whether arrays without dimensions and numbers may;
        both: whether lists may hold lists and numbers too.
    fills: whether the first option is passed as None where a call leaves it out.
    unless: when it is left to xarr's function; alike: whether it is for arrays of different element types; several:
        whether it gives a tuple of arrays; contracts: whether it sums over the last dimension of the first array and
        one of the second; is_bounded: whether no result has more elements than all of the arrays.
    """

    call: Callable[..., Any]
    chars: str = "dl?"
    most: int = 1
    options: Mapping[str, Kinds] = MappingProxyType({})
    lists: bool = False
    numbers: bool = False
    fills: bool = False
    unless: int = 0
    alike: bool = False
    several: bool = False
    contracts: bool = False
    is_bounded: bool = False

    def combines(self, chars: set[str], numbers: Sequence[Any]) -> bool:
        """Whether arrays of element types with these codes and Python numbers go together.

        Beside numbers arrays are those that take them as xarr's functions do; where all must be of one type, numbers
        too: no floats beside ints, and none beside bools.
        """
        if self.alike and len(chars) > 1:
            return False
        if not numbers:
            return True
        allowed = WIDE + SINGLE if all(map(fits_single, numbers)) else WIDE
        if self.alike:
            allowed = allowed.translate(
                {ord("?"): "", **({ord("l"): ""} if float in map(type, numbers) else {})}
            )
        return chars <= {*allowed}

    @property
    def by_position(self) -> int:
        """So many of the options may be given by position."""
        return len(self.options) - ("keepdims" in self.options)

    def takes(self, name: str, value: Any) -> bool:
        """Whether an option of this name and value means the same to both."""
        known = self.options.get(name, 0)
        if isinstance(known, frozenset):
            return (value is None or type(value) is str) and value in known
        return bool(kind_of(value) & known)
