"""Calls of functions on small arrays, remembered as the program that they amount to.

A function of the NumPy level looks at its arguments, chooses ops and records them, which takes ten times as long as
to compute a few elements.  What it records depends on the types of its arrays, on its other arguments and on the
settings, never on values: a function that looks at a value evaluates the array.  So a call like one before needs no
more than the program of what that one recorded.

The rule: a call is remembered if

* its arguments are Arrays with values, of which none is larger than `Target.max_eager_bytes`, or made of constants by a
  short chain of ops, beside one with a value; numbers, strings, element types, ufuncs, None, and lists and tuples of
  all these,
* ops on small arrays are computed at once (`xarr.runtime.small_ops`), nobody watches broadcasts, and these do not warn,
* the function records ops that are computed at once, checks of indices, and nothing else: it asks for no value, changes
  no argument, causes no warning of NumPy's about numbers, and gives Arrays, or a list or tuple of them; where a check
  fails, the function itself is called again,
* it was called so a few times before: a program takes as long as some ten calls.

To record it the function is called with arrays that stand for the arguments: they have types and devices and no values,
so that whatever asks for one fails, and the call is never remembered.  Functions decorated by `remembers_calls` must
have no effects but those on their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType, NoneType
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from xarr import backend as backends
from xarr.base.at_once.obstacles import obstacles
from xarr.base.configuration import current as config
from xarr.base.tracebacks import mark_boundary, name_in_errors, shorten
from xarr.calls.call_programs import MISSED, CallProgram, learn
from xarr.calls.operands import observers
from xarr.calls.small_values import small_value
from xarr.errors import XarrError
from xarr.ir.graph import Node
from xarr.runtime import handles
from xarr.runtime.handles import Handle
from xarr.runtime.small_ops import MOST_BYTES, small_ops
from xarr.runtime.trace_stack import recording

P = ParamSpec("P")
R = TypeVar("R")

#: Calls of a kind before one is remembered.
CALLS_BEFORE: Final = 3
#: Calls that are remembered under the same settings, and kinds of calls that are counted.
_MOST_REMEMBERED: Final = 1024
_MOST_COUNTED: Final = 4096
_MOST_SETTINGS: Final = 4

#: Items of the longest list of arguments that is looked at.
_LONGEST: Final = 64
#: Parts of a key from which on no list is added.
_MOST_PARTS: Final = 256

#: Arguments that are equal only if they mean the same, once their types are.
_PLAIN: Final = frozenset({int, str, bool, NoneType, type(...)})


class RememberedCalls(dict[tuple[Any, ...], CallProgram | None]):
    """The programs of calls under the same settings, by their keys; None for a call that has none.

    counts: how often calls came that have neither.
    """

    def __init__(self) -> None:
        self.counts: dict[tuple[Any, ...], int] = {}

    def is_due(self, key: tuple[Any, ...]) -> bool:
        """Count a call, and say whether it came often enough to be remembered."""
        count = self.counts.get(key, 0)
        if count >= CALLS_BEFORE:
            self.counts.pop(key, None)
            return True
        if len(self.counts) >= _MOST_COUNTED:
            self.counts.clear()
        self.counts[key] = count + 1
        return False

    def keep(self, key: tuple[Any, ...], program: CallProgram | None) -> None:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        self[key] = program


_tables: Final[dict[tuple[Any, ...], RememberedCalls]] = {}
#: The settings by identity, and the calls that are remembered under them.
_known: tuple[tuple[object, object], RememberedCalls | None] = ((None, None), None)


def remembered_calls() -> RememberedCalls | None:
    """The calls that are remembered under the settings in force; None where none is."""
    if recording or observers:
        return None
    state, table = _known
    return table if config.is_in(state) else _look_up()


def _look_up() -> RememberedCalls | None:
    global _known
    state, settings = config.state(), config.now()
    table = None
    if small_ops() is not None and settings["broadcasting"] != "warn" and not settings["debug"]:
        key = tuple(settings.values())
        if len(_tables) >= _MOST_SETTINGS and key not in _tables:
            _tables.clear()
        table = _tables.setdefault(key, RememberedCalls())
    _known = state, table
    return table


def remembering(function: Callable[..., R]) -> Callable[[tuple[Any, ...], dict[str, Any]], R]:
    """The function of `args` and `kwargs` that does what `function(*args, **kwargs)` does, and remembers it."""

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        short: tuple[Any, ...] | None = None
        if not obstacles:
            arrays: list[Handle] = []
            values: list[Any] = []
            short = _short_key(function, args, kwargs, arrays, values)
            entry = None if short is None else _by_values.get(short)
            if entry is not None and entry[0] is _config["_global"] and entry[1] is _overrides():
                result = MISSED if entry[2] is None else entry[2].run_values(arrays, values)
                return function(*args, **kwargs) if result is MISSED else result
        known = remembered_calls()
        if known is None:
            return function(*args, **kwargs)
        return call_known(known, short, args, kwargs)

    def call_known(
        known: RememberedCalls, short: tuple[Any, ...] | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> R:
        parts: list[Any] = [function]
        arrays: list[Handle] = []
        nodes: list[Node] = []
        for value in (*args, *kwargs.values()):
            if not _describe(value, parts, arrays, nodes):
                return function(*args, **kwargs)
        if not nodes:
            parts.append(backends.default_device())
        if kwargs:
            parts.append(tuple(kwargs))
        key = tuple(parts)
        program = known.get(key)
        if program is None and key not in known:
            program = _first_program(known, key, function, args, kwargs)
        if short is not None and key in known:
            if len(_by_values) >= _MOST_COUNTED:
                _by_values.clear()
            _by_values[short] = *config.state(), program
        result = MISSED if program is None else program.run(arrays, nodes)
        return function(*args, **kwargs) if result is MISSED else result

    return call


#: By short keys, for which no node is made: the settings by identity, and the program, None for a call that has none.
_by_values: Final[dict[tuple[Any, ...], tuple[object, object, CallProgram | None]]] = {}
_config: Final = config.__dict__
_overrides: Final = config._overrides.get
#: What stands in short keys for a small value that is a Python number.
_NUMBERS: Final = {float: "f8", int: "i8", bool: "b1"}


def _short_key(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    arrays: list[Handle],
    values: list[Any],
) -> tuple[Any, ...] | None:
    """A key for arguments whose Arrays all have small values on one device; these, and the Arrays, are listed."""
    array_class = handles.array_class()
    parts: list[Any] = [function]
    for value in (*args, *kwargs.values()) if kwargs else args:
        if type(value) is array_class:
            own = value._value
            if type(own) is np.ndarray:
                parts += (own.dtype.char, own.shape)
                arrays.append(value)
                values.append(own)
            elif not _add_value(value, parts, arrays, values):
                return None
        elif not _add_argument(value, parts, arrays, values):
            return None
    if kwargs:
        parts.append(tuple(kwargs))
    if not arrays:
        return None
    device = arrays[0]._device
    for array in arrays:
        if array._device is not device:
            return None
    parts.append(device)
    return None if device is None else tuple(parts)


def _add_value(array: Handle, parts: list[Any], arrays: list[Handle], values: list[Any]) -> bool:
    """Add an Array to a short key; False for one without a small value."""
    own = small_value(array)
    if own is None:
        return False
    if type(own) is np.ndarray:
        parts += (own.dtype.char, own.shape)
    else:
        parts.append(_NUMBERS.get(type(own)) or f"{own.dtype.char}0")
    arrays.append(array)
    values.append(own)
    return True


def _add_argument(value: Any, parts: list[Any], arrays: list[Handle], values: list[Any]) -> bool:
    """Add an argument that is no Array to a short key; False for what no key tells apart."""
    kind = type(value)
    if kind is not list and kind is not tuple:
        return _describe(value, parts, [], [])
    if len(value) > _LONGEST or len(parts) > _MOST_PARTS:  # also of a list that holds itself
        return False
    parts += (kind, len(value))
    for item in value:
        add = _add_value if type(item) is handles.array_class() else _add_argument
        if not add(item, parts, arrays, values):
            return False
    return True


def _describe(value: Any, parts: list[Any], arrays: list[Handle], nodes: list[Node]) -> bool:
    """Add to a key what tells `value` from other arguments, and its Arrays; whether that is possible."""
    kind = type(value)
    if kind is handles.array_class():
        node = value._node
        parts += (node.type, node.device)
        arrays.append(value)
        nodes.append(node)
    elif kind in _PLAIN:
        parts += (kind, value)
    elif kind is float or kind is complex:
        # The text tells apart what compares equal, -0.0 and 0.0, and finds NaN again.
        parts += (kind, value if value and value == value and kind is float else repr(value))
    elif kind is list or kind is tuple:
        if len(value) > _LONGEST or len(parts) > _MOST_PARTS:  # also of a list that holds itself
            return False
        parts += (kind, len(value))
        for item in value:
            if not _describe(item, parts, arrays, nodes):
                return False
    elif isinstance(value, type | np.dtype) or (kind is FunctionType and is_ufunc(value)):
        parts += (kind, value)
    else:
        return False
    return True


def _first_program(
    known: RememberedCalls,
    key: tuple[Any, ...],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> CallProgram | None:
    """The program of a call that has come often enough; None for one that has none, yet or for good."""
    if not known.is_due(key):
        return None
    program = learn(function, args, kwargs, MOST_BYTES)
    known.keep(key, program)
    return program


def is_ufunc(function: Callable[..., Any]) -> bool:
    """Whether `function` is a ufunc of xarr's."""
    return "nargs" in getattr(function, "__dict__", ())


def remembers_calls(function: Callable[P, R]) -> Callable[P, R]:
    """`function` for users, as `names_errors` gives it, with its calls on small arrays remembered."""
    name = name_in_errors(function)
    remembered = remembering(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return remembered(args, kwargs)
        except XarrError as error:
            shorten(error, name)
            raise

    return mark_boundary(call)
