"""NumPy's floating-point warnings switched off and on again around a program.

`np.errstate` does it in Python, which on small arrays takes longer than the operation itself.  What it sets is
one context variable of NumPy 2, which is set here at once; where there is none `np.errstate` is used.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, Final

import numpy as np

#: `state = quiet()` switches warnings off, for this thread or task; `loud(state)` sets them as they were.
Switches = tuple[Callable[[], Any], Callable[[Any], None]]


def switches(variable: object) -> Switches:
    """The two switches, by NumPy's context variable if `variable` is that."""
    if not isinstance(variable, ContextVar):
        return _enter, _leave
    with np.errstate(all="ignore"):
        silence = variable.get(None)
    if silence is None:
        return _enter, _leave
    return partial(variable.set, silence), variable.reset


def numpy_variable() -> object:
    """NumPy's context variable; None if it is not where NumPy 2 has it, since its name is private."""
    umath = getattr(getattr(np, "_core", None), "umath", None)
    return getattr(umath, "_extobj_contextvar", None)


def _enter() -> np.errstate:
    state = np.errstate(all="ignore")
    state.__enter__()
    return state


def _leave(state: np.errstate) -> None:
    state.__exit__(None, None, None)


_switches: Final = switches(numpy_variable())
quiet: Final = _switches[0]
loud: Final = _switches[1]


def quiet_caller(variable: object) -> Callable[..., Any]:
    """`call(function, *operands)` that calls a function of NumPy's without warnings, by a context of its own.

    A context is entered by one thread at a time: RuntimeError for a call while another one runs, which `call_quietly`
    makes instead.  Entering it takes a third of the time of `quiet` and `loud`.
    """
    context = quiet_context(variable)
    return call_quietly if context is None else context.run


def quiet_context(variable: object) -> Context | None:
    """A new context in which NumPy does not warn; None if NumPy has no context variable for it."""
    if not isinstance(variable, ContextVar):
        return None
    context = copy_context()
    context.run(quiet)
    return context


def call_quietly(function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """`function(*operands, **options)` without warnings of NumPy's."""
    state = quiet()
    try:
        return function(*operands, **options)
    finally:
        loud(state)


#: For functions that run no Python, as NumPy's do on its own types.
run_quietly: Final = quiet_caller(numpy_variable())
