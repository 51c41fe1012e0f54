"""Methods of Array that its backend makes for small arrays, in place of those in Python once these are called often.

They do what is certain and call the method in Python for all else, so that nothing but time depends on them.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import _getframe as frame_of
from types import FrameType
from typing import Any, Final

from xarr import backend as backends
from xarr.backend import ArrayClass, ArrayMethods
from xarr.base.at_once.numpy_warnings import numpy_variable, quiet_context
from xarr.base.at_once.obstacles import obstacles
from xarr.base.typing import Array
from xarr.calls import host_functions
from xarr.calls.concrete_values import wrap_constant
from xarr.calls.small_values import OPERATORS, SmallOperator
from xarr.indexing import element_loops
from xarr.indexing.small_parts import MAX_COPIED
from xarr.ir.source import call_when_many, location_of
from xarr.runtime import handles
from xarr.runtime.view_tracking import INDEX, is_put_back, live_part

#: Values that are made by Python before methods are compiled, which takes as long as some hundred thousand.
CALLS_BEFORE: Final = 10_000
#: The operators of Python, of which Array has the methods, by what they are called between underscores.
_ARITHMETIC: Final = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"},
    **{"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"},
}
_COMPARISONS: Final = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}
_NAMES: Final = (
    *[f"__{prefix}{name}__" for name in _ARITHMETIC for prefix in ("", "r", "i")],
    *[f"__{name}__" for name in (*_COMPARISONS, "neg", "abs", "pow")],
    *("__bool__", "__int__", "__float__", "__index__", "__getitem__", "__setitem__", "__delitem__"),
    *("__rpow__", "__rmatmul__"),
)
#: Methods that NumPy's functions of the same arguments compute, by the row of the function.
_HOST_METHODS: Final = {
    "__matmul__": "matmul",
    **{name: name for name in ("sum", "prod", "any", "all", "max", "min", "mean", "argmax", "argmin")},
    **{name: name for name in ("cumsum", "cumprod", "argsort", "dot", "trace", "take")},
}

#: What a compiler raises that does not work: BackendError, llvmlite's own errors, and those of loading libraries.
_COMPILER_ERRORS: Final = (RuntimeError, OSError)

#: The methods of Array in Python, by name, as they were when Array was defined.
_in_python: Final[dict[str, Callable[..., Any]]] = {}
#: By the methods of operators in Python: the operator, and whether the Array comes second.
_operators: Final[dict[Callable[..., Any], tuple[SmallOperator, bool]]] = {}
#: Those of them that others replace now; empty else.
_replaced: Final[dict[str, Callable[..., Any]]] = {}
#: The methods that were made, one for the process; empty before, and None where there are none, or making them failed.
_made: Final[list[ArrayMethods | None]] = []
#: Why making them failed.
failures: Final[list[str]] = []


def install() -> bool:
    """Put methods of the default backend in place of those in Python; False if it has none, or they cannot be compiled.

    A method that a user has put on Array stays.
    """
    if _replaced:
        return True
    if not _made:
        _made.append(_try_to_make())
    made, cls = _made[0], handles.array_class()
    if made is None:
        return False
    for name, method in made.methods.items():
        if getattr(cls, name) is _in_python[name]:
            _replaced[name] = _in_python[name]
            setattr(cls, name, method)
    own = {
        name
        for name, known in _in_python.items()
        if getattr(cls, name) not in (known, made.methods.get(name))
    }
    made.fill_slots(own)
    if made.forget_counts not in element_loops.others_forget:
        element_loops.others_forget.append(made.forget_counts)
    host_functions.run_by(_make_call)
    return True


def _make_call(host: host_functions.HostFunction) -> host_functions.Run | None:
    """A function in machine code that runs a row."""
    made = _made[0]
    if made is None or host.row.several:
        return None
    return made.host_call(host.row, host.names, host.in_python, host.otherwise)


def uninstall() -> bool:
    """Put the methods in Python back; whether others had replaced them."""
    cls, were_replaced = handles.array_class(), bool(_replaced)
    made = _made[0] if _made else None
    if made is not None and were_replaced:
        made.empty_slots()
    for name, method in _replaced.items():
        if made is not None and getattr(cls, name) is made.methods[name]:
            setattr(cls, name, method)
    if made is not None and made.forget_counts in element_loops.others_forget:
        element_loops.others_forget.remove(made.forget_counts)
    _replaced.clear()
    host_functions.run_by(None)
    return were_replaced


def install_when_busy() -> None:
    """Install methods when Arrays have been computed with often, in place of those that Array has now."""
    cls = handles.array_class()
    _in_python.update({name: getattr(cls, name) for name in (*_NAMES, *_HOST_METHODS)})
    for name, symbol in (_ARITHMETIC | _COMPARISONS).items():
        _operators[_in_python[f"__{name}__"]] = OPERATORS[symbol], False
        if name in _ARITHMETIC:
            _operators[_in_python[f"__r{name}__"]] = OPERATORS[symbol], True
    call_when_many(CALLS_BEFORE, install)


def _try_to_make() -> ArrayMethods | None:
    """None if the compiler fails: the user's 10,000th value is computed, and all after it, by Python."""
    try:
        return _make()
    except _COMPILER_ERRORS as error:
        failures.append(str(error))
        return None


def _make() -> ArrayMethods | None:
    backend = backends.default_device().backend
    if not backend.computes_small_ops:
        return None
    cls = handles.array_class()
    made: ArrayMethods | None = backend.array_methods(
        ArrayClass(
            cls,
            _in_python,
            obstacles,
            quiet_context(numpy_variable()),
            _locate,
            element_loops.count,
            INDEX,
            MAX_COPIED,
            live_part,
            is_put_back,
            _wrap_constant,
            {name: host_functions.ROWS[row] for name, row in _HOST_METHODS.items()},
            host_functions.REFUSALS,
        )
    )
    return made


def _wrap_constant(value: Any, method: Callable[..., Any], array: Array, other: Any) -> Array | None:
    """As `ArrayClass` says; called by machine code that the user's line has called."""
    operator, is_second = _operators[method]
    return wrap_constant(value, operator.record, (other, array) if is_second else (array, other), frame_of(1))


def _locate(frame: FrameType) -> object:
    return location_of(frame)
