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
from sys import _getframe as frame_of
from types import CodeType, FunctionType, NoneType
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from xarr import backend as backends
from xarr.base.at_once.obstacles import obstacles
from xarr.base.configuration import current as config
from xarr.base.tracebacks import name_in_errors
from xarr.calls.call_programs import CallProgram, LooksAt, learn
from xarr.calls.concrete_values import hold_beside, small_value
from xarr.calls.host_functions import ROWS, HostFunction, Run, host_function, run_for_users
from xarr.calls.operands import are_in_force, observers
from xarr.calls.repeated_calls import (
    MISSED,
    MOST_KEPT_BYTES,
    PLAIN_KINDS,
    KnownCall,
    Recorded,
    RepeatedCall,
    tell,
)
from xarr.calls.value_calls import VALUE_ROWS
from xarr.ir.device import Device
from xarr.ir.graph import Node, postorder
from xarr.ir.source import known_files, locate, own_files
from xarr.ir.types import PLAIN
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
#: Calls of a function that are kept, and lines.
_MOST_KEPT: Final = 1024
#: Items of the longest list of arguments that is looked at.
_LONGEST: Final = 64
#: Parts of a key from which on no list is added.
_MOST_PARTS: Final = 256
_SIMPLE: Final = PLAIN_KINDS | {type, *[type(np.dtype(char)) for char in PLAIN]}
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


# --- calls at their lines ---------------------------------------------------------------------------------------


class RepeatedCalls(dict[Any, KnownCall]):
    """The calls of one function that are recorded or computed again, by keys that are quick to make."""

    def __init__(self) -> None:
        #: What runs the function, before which these come as soon as there are any.
        self.host: Any = None
        #: By keys: how often calls without arrays came that are not kept.
        self.counts: dict[Any, int] = {}
        #: By an instruction, as its address: it, and the replay of the last call there.
        self.lines: dict[int, tuple[CodeType, int, Run]] = {}
        #: By an instruction and the key: the call, its replay, and the state for which that was written.
        self.replays: dict[tuple[int, Any], tuple[KnownCall, Run, tuple[object, object]]] = {}
        #: Whether a call of values was added that is to be written for its line.
        self.is_new = False

    def add(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], call: KnownCall, has_values: bool = True
    ) -> None:
        """Keep a call; has_values: whether its Arrays have small values."""
        key = _key_of(args, kwargs, call.by_values) if has_values or not call.by_values else None
        if key is not None:
            self.is_new = call.by_values
            if len(self) >= _MOST_KEPT:
                self.clear()
            self[key] = call
            if not are_in_force(call.state):
                call.state = config.state()
            if self.host is not None and self.host.front is None:
                self.host.try_first(self.put_before)

    def note_constant(self, args: tuple[Any, ...], kwargs: dict[str, Any], made: Handle) -> None:
        """Count a call without arrays, and keep what it gives, constants alone, once it has come often."""
        key = _key_of(args, kwargs)
        if key is None or key in self:
            return
        if len(self.counts) >= _MOST_KEPT:
            self.counts.clear()
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if count > CALLS_BEFORE and made._value.nbytes <= MOST_KEPT_BYTES:
            result = Recorded(postorder([made._node]))
            result.value = made._value
            self.add(args, kwargs, RepeatedCall([result], None, (), ()))

    def put_before(self, run: Run) -> Run:
        """Make of `run` what records calls again, and leaves others to it."""
        lines, kind = self.lines, handles.array_class()

        def run_again(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            frame = frame_of(2)
            while (code := frame.f_code).co_filename in own_files and frame.f_back is not None:
                frame = frame.f_back
            instruction = frame.f_lasti
            if code.co_filename not in known_files:
                location = locate(frame)
                if location is None:
                    return run(args, kwargs)
                code, instruction = location
            last = lines.get(id(code) + instruction)
            if last is not None and last[0] is code and last[1] == instruction:
                result = last[2](args, kwargs)
                if result is not MISSED:
                    return result
            result = MISSED
            if not (args and type(args[0]) is kind and args[0]._shown is None):
                replay = self._replay_at(args, kwargs, (code, instruction))
                result = MISSED if replay is None else replay(args, kwargs)
            if result is MISSED:
                result = run(args, kwargs)
                if self.is_new:
                    self.is_new = False
                    self._replay_at(args, kwargs, (code, instruction), True)
            return result

        return run_again

    def _replay_at(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        location: tuple[CodeType, int],
        by_values: bool = False,
    ) -> Run | None:
        """The replay of a call at a line, written if need be; None for one that is not known."""
        key = _key_of(args, kwargs, by_values)
        call = None if key is None else self.get(key)
        if call is None or not are_in_force(call.state):
            return None
        code, instruction = location
        address = id(code) + instruction
        known = self.replays.get((address, key))
        if known is None or known[0] is not call or known[2] is not call.state:
            if len(self.replays) >= _MOST_KEPT:
                self.replays.clear()
                self.lines.clear()
            known = self.replays[address, key] = call, call.write_replay(args, kwargs, location), call.state
        self.lines[address] = code, instruction, known[1]
        return known[1]


def _key_of(args: tuple[Any, ...], kwargs: dict[str, Any], by_values: bool = False) -> Any:
    """A key of a call, by the nodes of its Arrays, or by their values; None where one has none."""
    if len(args) == 1 and not kwargs and type(args[0]) is handles._array_class and not by_values:
        node = args[0]._shown
        return None if node is None else (node.type, node.device)
    parts: list[Any] = [by_values]
    if not _list_parts((*args, *kwargs.values()) if kwargs else args, parts, by_values):
        return None
    return (*parts, *kwargs)


def _list_parts(values: Any, parts: list[Any], by_values: bool) -> bool:
    """Add to a key what tells `values` from others; whether that is possible."""
    for value in values:
        kind = type(value)
        if kind is handles._array_class and by_values:
            own = value._value
            if own is None:
                return False
            is_array = type(own) is np.ndarray
            parts += (own.dtype.char, own.shape, value._device) if is_array else (type(own), value._device)
        elif kind is handles._array_class:
            node = value._shown
            if node is None:
                return False
            parts += (node.type, node.device)
        elif kind in _SIMPLE:
            parts += (kind, value)
        elif kind is tuple or kind is list:
            parts += (kind, len(value))
            is_long = len(value) > _LONGEST or len(parts) > _MOST_PARTS  # also a list that holds itself
            if is_long or not _list_parts(value, parts, by_values):
                return False
        elif kind is float:
            parts += (kind, tell(value))
        else:
            return False
    return True


# --- the first calls, and those at other lines --------------------------------------------------------------------


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
        passed = args
        if np.ndarray in map(type, args) and not obstacles:
            args = tuple(map(_hold, args))
        parts: list[Any] = [function]
        arrays: list[Handle] = []
        values: list[Any] = []
        for value in (*args, *kwargs.values()) if kwargs else args:
            if not _describe(value, parts, arrays, values):
                return function(*passed, **kwargs)
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
        elif repeated is not None and program is not None and args is passed:
            repeated.add(args, kwargs, program, nodes is None)
        if program is not None:
            result = program.run_values(arrays, values) if nodes is None else program.run(arrays, nodes)
        return function(*passed, **kwargs) if result is MISSED else result

    return call


def _hold(argument: Any) -> Any:
    """An Array with a copy of a small array of NumPy's, which goes along with others; other arguments as they are.

    Arrays of several dimensions in another order than C are: how these lie says in which order sums are added, and
    calls that are not remembered go by that.
    """
    if type(argument) is not np.ndarray or (argument.ndim > 1 and not argument.flags.c_contiguous):
        return argument
    held = hold_beside(argument)
    return argument if held is None else held


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
        if len(value) > _LONGEST or len(parts) > _MOST_PARTS:  # also of a list that holds itself
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
    host = host_function(function, remembered)
    if host is not None:
        host.note_constant = repeated.note_constant
    repeated.host = own = host or Runner(remembered)
    return own


def remembers_calls(function: Callable[P, R]) -> Callable[P, R]:
    """`function` for users, as `names_errors` gives it, with its calls on small arrays remembered."""
    return run_for_users(function, name_in_errors(function), runner(function))
