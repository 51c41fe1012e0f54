"""Functions from outside xarr that a graph may call by name, on host arrays.

A function takes read-only NumPy arrays and the attributes of the call as keyword arguments, and returns an
array, or a sequence of them, of the shapes and element types that the call declared.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from xarr.dtypes import xla_name
from xarr.errors import EvaluationError, InputError

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
#: Element type and sizes of one result.
Declared = tuple[np.dtype[Any], tuple[int, ...]]

_functions: Final[dict[str, Function]] = {}
#: Registers LAPACK's routines when it is imported: a graph that calls one may come from another process.
_HOST_LAPACK: Final = "xarr.base.host.lapack"
_lock: Final = threading.Lock()


def register_custom_call(name: str, function: Function) -> None:
    """Let `custom_call(name, …)` call `function`; one registered under that name before is replaced.

    Calls look the name up each time they run.  Raises InputError for a name that is no text, or for what
    cannot be called.  Source: XLA's CustomCall.
    """
    if type(name) is not str or not name:
        raise InputError(f"register_custom_call: wanted a name, got {name!r}")
    if not callable(function):
        raise InputError(f"register_custom_call: wanted a function for {name!r}, got {function!r}")
    with _lock:
        _functions[name] = function


def unregister_custom_call(name: str) -> None:
    """Forget the function called `name`.  Raises InputError if there is none."""
    if not isinstance(name, str):
        raise InputError(f"unregister_custom_call: wanted a name, got {name!r}")
    function_named("unregister_custom_call", name)
    with _lock:
        _functions.pop(name, None)


def is_registered(name: str) -> bool:
    return _find(name) is not None


def _find(name: str) -> Function | None:
    if name not in _functions and name.startswith("xarr."):
        importlib.import_module(_HOST_LAPACK)
    return _functions.get(name)


def function_named(called: str, name: str) -> Function:
    """The function registered as `name`; InputError of `called`, with the names that there are, if there is none."""
    function = _find(name)
    if function is None:
        known = ", ".join(sorted(_functions)) or "none yet"
        raise InputError(
            f"{called}: no function is registered as {name!r} (registered: {known}); "
            f"lax.register_custom_call({name!r}, function) does it"
        )
    return function


def run_custom_call(
    target: str | Function,
    attributes: Mapping[str, Any],
    declared: Sequence[Declared],
    operands: Sequence[Array],
) -> tuple[Array, ...]:
    """The results of a function, or of the one that is registered under a name, as new arrays.

    Raises EvaluationError [R1] for another number of results than declared, [R2] for another shape or
    element type: a function must keep its promise.
    """
    function, name = _function_and_name(target)
    output = function(*[_read_only(operand) for operand in operands], **attributes)
    results = _results(output, len(declared))
    if len(results) != len(declared):
        raise EvaluationError(
            f"custom_call [R1]: {name!r} declared {len(declared)} results and returned {len(results)}"
        )
    return tuple(
        [_check_result(name, index, *pair) for index, pair in enumerate(zip(declared, results, strict=True))]
    )


def _function_and_name(target: str | Function) -> tuple[Function, str]:
    if isinstance(target, str):
        return function_named("custom_call", target), target
    return target, getattr(target, "__name__", repr(target))


def _results(output: Any, count: int) -> tuple[Any, ...]:
    """Split what a function returned into its results; None for nothing."""
    if output is None:
        return ()
    return (
        tuple(output) if isinstance(output, tuple) or (count != 1 and isinstance(output, list)) else (output,)
    )


def _read_only(operand: Array) -> Array:
    view = np.asarray(operand).view()
    view.flags.writeable = False
    return view


def _check_result(name: str, index: int, declared: Declared, result: Any) -> Array:
    dtype, shape = declared
    array = np.array(result)
    if (array.dtype, array.shape) != (dtype, shape):
        got = f"{array.dtype}[{','.join(map(str, array.shape))}]"
        raise EvaluationError(
            f"custom_call [R2]: result {index} of {name!r} was declared "
            f"{xla_name(dtype)}[{','.join(map(str, shape))}], the function returned {got}"
        )
    return array
