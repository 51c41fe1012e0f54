"""The attributes of an object, as they were when a method of it was recorded."""

from __future__ import annotations

import weakref
from typing import Any, Final

from xarr import tree
from xarr.arrays.array import Array
from xarr.errors import InputError
from xarr.transforms.signature import exact
from xarr.tree import Structure

_PLAIN: Final = frozenset((bool, int, float, complex, str, type(None)))


def attributes_of(instance: Any) -> list[Any]:
    """The attributes of an object: names and values, of an Array its node, as that can change."""
    state: list[Any] = []
    for name, value in getattr(instance, "__dict__", {}).items():
        state.append(name)
        if type(value) is Array:
            state.append(value._node)
        elif type(value) in _PLAIN:
            state.append(value)
        else:
            try:
                leaves, structure = tree.flatten(value)
            except InputError:  # a dict whose keys have no order
                leaves, structure = [value], tree.LEAF
            state.append(structure)
            state += [leaf._node if type(leaf) is Array else leaf for leaf in leaves]
    return state


def mark(value: Any) -> Any:
    """Something to know `value` by again which does not keep it, and so the object it belongs to, alive."""
    if type(value) in _PLAIN or type(value) is Structure:
        return value
    try:
        return weakref.ref(value)
    except TypeError:
        return value


def is_seen(value: Any, known: Any) -> bool:
    """Whether `value` is what `mark` gave `known` for."""
    if value is known or (type(known) is weakref.ref and known() is value):
        return True
    if type(value) is not type(known):
        return False
    return (
        bool(value == known)
        if type(value) is Structure
        else type(value) in _PLAIN and exact(value) == exact(known)
    )
