"""Calls of functions on small arrays, remembered as the program that they amount to.

A function of the NumPy level looks at its arguments, chooses ops and records them, which takes ten times as long as
to compute a few elements.  What it records depends on the types of its arrays, on its other arguments and on the
settings, never on values: a function that looks at a value evaluates the array.  So a call like one before needs no
more than the program of what that one recorded.

The rule: a call is remembered if

* its arguments are Arrays with values, of which none is larger than `Target.max_eager_bytes`, or made of constants by a
  short chain of ops, beside one with a value; numbers, strings, element types, ufuncs, None, and lists and tuples of
  all these.  Where no op is computed at once the nodes of the call are recorded again: on a device where all ops are
  recorded and no values looked at, a GPU; under settings that say so; and where arrays, or what is made of them, are
  larger.  There they are Arrays with a value or without, none of them made of constants alone, whose values the
  function would not look at,
* nobody watches broadcasts, and these do not warn,
* the function records ops that are computed at once, checks, and, of arrays of up to 8 KB, factors of matrices and
  convolutions, and nothing else: it asks for no value, changes no argument, causes no warning of NumPy's about numbers,
  and gives Arrays, or a list or tuple of them; where a check fails, the function itself is called again,
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
from xarr.calls.call_programs import CallProgram, LooksAt, learn
from xarr.calls.host_functions import ROWS, HostFunction, Run, host_function
from xarr.calls.operands import observers
from xarr.calls.repeated_calls import (
    LONGEST,
    MISSED,
    MOST_PARTS,
    PLAIN_KINDS,
    RepeatedCall,
    RepeatedCalls,
    tell,
)
from xarr.calls.small_values import small_value
from xarr.calls.value_calls import VALUE_ROWS
from xarr.errors import XarrError
from xarr.ir.device import Device
from xarr.ir.graph import Node
from xarr.runtime import handles
from xarr.runtime.handles import Handle
from xarr.runtime.small_ops import MOST_BYTES
from xarr.runtime.trace_stack import recording

# Before the first function is asked for its row.
ROWS.update(VALUE_ROWS)

P = ParamSpec("P")
R = TypeVar("R")

#: Calls of a kind before one is remembered.
CALLS_BEFORE: Final = 3
#: Calls that are remembered under the same settings, and kinds of calls that are counted.
_MOST_REMEMBERED: Final = 1024
_MOST_COUNTED: Final = 4096
_MOST_SETTINGS: Final = 4


Program = CallProgram | RepeatedCall | LooksAt


class RememberedCalls(dict[tuple[Any, ...], Program | None]):
    """The programs of calls under the same settings, by their keys; None for a call that has none.

    A call whose function looks at values of small arrays has a program by these, too.

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

    def keep(self, key: tuple[Any, ...], program: Program | None) -> None:
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
    if settings["broadcasting"] != "warn" and not settings["debug"]:
        key = tuple(settings.values())
        if len(_tables) >= _MOST_SETTINGS and key not in _tables:
            _tables.clear()
        table = _tables.setdefault(key, RememberedCalls())
    _known = state, table
    return table


def remembering(
    function: Callable[..., R], repeated: RepeatedCalls | None = None
) -> Callable[[tuple[Any, ...], dict[str, Any]], R]:
    """The function of `args` and `kwargs` that does what `function(*args, **kwargs)` does, and remembers it.

    repeated: where calls are kept that are recorded again, and tried first.
    """

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        state, known = _known
        if recording or observers or state[0] is not _config["_global"] or state[1] is not _overrides():
            known = remembered_calls()
        if known is None:
            return function(*args, **kwargs)
        parts: list[Any] = [function]
        arrays: list[Handle] = []
        values: list[Any] = []
        for value in (*args, *kwargs.values()) if kwargs else args:
            if not _describe(value, parts, arrays, values):
                return function(*args, **kwargs)
        device = _device_of_values(arrays, values)
        nodes: list[Node] | None = None
        if device is None:
            nodes = [array._node for array in arrays]
            for node in nodes:
                parts += (node.type, node.device)
        parts.append(device if nodes is None or nodes else backends.default_device())
        if kwargs:
            parts.append(tuple(kwargs))
        key = tuple(parts)
        program = known.get(key)
        if program is None and key not in known:
            program = _first_program(known, key, function, args, kwargs)
        result: Any = MISSED
        if isinstance(program, LooksAt):
            by_values = _program_by_values(known, key, program, function, args, kwargs, values)
            if by_values is not None:
                arrays, values = program.others(arrays), program.others(values)
                nodes = None if nodes is None else program.others(nodes)
            program = by_values
        elif repeated is not None and isinstance(program, RepeatedCall):
            repeated.add(args, kwargs, program)
        if program is not None:
            result = program.run_values(arrays, values) if nodes is None else program.run(arrays, nodes)
        return function(*args, **kwargs) if result is MISSED else result

    return call


def _device_of_values(arrays: list[Handle], values: list[Any]) -> Device | None:
    """The device on which all of these Arrays have small values, beside those of constants; None if there is none."""
    if obstacles:
        return None
    device: Device | None = None
    for array, value in zip(arrays, values, strict=True):
        if value is None:
            return None
        own = array._device
        if own is not device and own is not None:
            if device is not None:
                return None
            device = own
    return device


_config: Final = config.__dict__
_overrides: Final = config._overrides.get
#: What stands in keys for a small value that is a Python number.
_NUMBERS: Final = {float: "f8", int: "i8", bool: "b1"}


def _describe(value: Any, parts: list[Any], arrays: list[Handle], values: list[Any]) -> bool:
    """Add to a key what tells `value` from other arguments, and list its Arrays; whether that is possible.

    Of an Array with a small value that is its type; of others their nodes tell it, for which None stands among values.
    """
    kind = type(value)
    if kind is handles._array_class:
        own = value._value
        if own is None:
            own = small_value(value)
        if type(own) is np.ndarray:
            parts += (own.dtype.char, own.shape)
        else:
            parts.append(None if own is None else _NUMBERS.get(type(own)) or f"{own.dtype.char}0")
        arrays.append(value)
        values.append(own)
    elif kind in PLAIN_KINDS:
        parts += (kind, value)
    elif kind is float or kind is complex:
        parts += (kind, tell(value))
    elif kind is list or kind is tuple:
        if len(value) > LONGEST or len(parts) > MOST_PARTS:  # also of a list that holds itself
            return False
        parts += (kind, len(value))
        for item in value:
            if not _describe(item, parts, arrays, values):
                return False
    elif isinstance(value, type | np.dtype) or (kind is FunctionType and is_ufunc(value)):
        parts += (kind, value)
    else:
        return False
    return True


def _program_by_values(
    known: RememberedCalls,
    kind: tuple[Any, ...],
    looks: LooksAt,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    values: list[Any],
) -> CallProgram | RepeatedCall | None:
    """As `_first_program`, of a call that is known by its kind and the values that its function looks at."""
    looked_at = [values[index] for index in looks.numbers]
    if NoneType in map(type, looked_at):
        return None
    key = (function, kind, *map(_tell_value, looked_at))
    program = known.get(key)
    if program is None and key not in known:
        program = _first_program(known, key, function, args, kwargs, looks.numbers)
    if isinstance(program, LooksAt):  # at more than was known
        known[kind] = program
        return None
    return program


def _tell_value(value: Any) -> Any:
    """Give what stands in keys for the value of an array whose type the key has."""
    return value.tobytes() if isinstance(value, np.ndarray | np.generic) else tell(value)


def _first_program(
    known: RememberedCalls,
    key: tuple[Any, ...],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    numbers: tuple[int, ...] = (),
) -> Program | None:
    """The program of a call that has come often enough; None for one that has none, yet or for good."""
    if not known.is_due(key):
        return None
    program = learn(function, args, kwargs, MOST_BYTES, numbers)
    known.keep(key, program)
    return program


def is_ufunc(function: Callable[..., Any]) -> bool:
    """Whether `function` is a ufunc of xarr's."""
    return "nargs" in getattr(function, "__dict__", ())


class Runner:
    """The runner of a function that has no row of `ROWS`; run, front and try_first: as those of `HostFunction`."""

    __slots__ = ("front", "run")

    def __init__(self, run: Run) -> None:
        self.run = run
        self.front: Callable[[Run], Run] | None = None

    def try_first(self, front: Callable[[Run], Run]) -> None:
        self.front, self.run = front, front(self.run)


def runner(function: Callable[..., Any]) -> Runner | HostFunction:
    """Give the runner of `function`, called by `run(args, kwargs)`: by NumPy's where that is sure, else remembered."""
    repeated = RepeatedCalls()
    remembered = remembering(function, repeated)
    repeated.host = own = host_function(function, remembered) or Runner(remembered)
    return own


def remembers_calls(function: Callable[P, R]) -> Callable[P, R]:
    """`function` for users, as `names_errors` gives it, with its calls on small arrays remembered."""
    name, own = name_in_errors(function), runner(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return own.run(args, kwargs)  # type: ignore[no-any-return]
        except XarrError as error:
            shorten(error, name)
            raise

    return mark_boundary(call)
