"""Methods of Array that its backend makes for small arrays, in place of those in Python once these are called often.

They do what is certain and call the method in Python for all else, so that nothing but time depends on them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from xarr import backend as backends
from xarr.backend import ArrayClass, ArrayMethods
from xarr.base.at_once.numpy_warnings import numpy_variable, quiet_context
from xarr.base.at_once.obstacles import obstacles
from xarr.calls import host_functions
from xarr.indexing import element_loops
from xarr.indexing.small_parts import MAX_COPIED
from xarr.ir.graph import Node
from xarr.ir.source import call_when_many, location_of
from xarr.runtime import handles
from xarr.runtime.view_tracking import INDEX

#: Values that are made by Python before methods are compiled, which takes as long as some hundred thousand.
CALLS_BEFORE: Final = 10_000
#: The operators of Python, of which Array has the methods.
_OPERATORS: Final = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)
_NAMES: Final = (
    *[f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r", "i")],
    *[f"__{name}__" for name in ("lt", "le", "eq", "ne", "gt", "ge", "neg", "abs", "pow")],
    *("__bool__", "__int__", "__float__", "__index__", "__getitem__", "__setitem__"),
)
#: Methods of which NumPy has a function that takes the same arguments.
_HOST_METHODS: Final = (
    *("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin", "cumsum", "cumprod"),
    *("dot", "take", "trace", "argsort", "__matmul__"),
)
_NAMES_OF_ROWS: Final = {"__matmul__": "matmul"}

#: The methods in Python, by name, while others replace them; empty else.
_replaced: Final[dict[str, Callable[..., Any]]] = {}
#: The methods that were made, one for the process; empty before, and None where there are none.
_made: Final[list[ArrayMethods | None]] = []


def install() -> bool:
    """Put methods of the default backend in place of those in Python; False if it has none."""
    if _replaced:
        return True
    if not _made:
        _made.append(_make())
    made, cls = _made[0], handles.array_class()
    if made is None:
        return False
    for name, method in made.methods.items():
        _replaced[name] = getattr(cls, name)
        setattr(cls, name, method)
    element_loops.others_forget.append(made.forget_counts)
    host_functions.run_by(made.host_call)
    return True


def uninstall() -> bool:
    """Put the methods in Python back; whether others had replaced them."""
    cls, were_replaced = handles.array_class(), bool(_replaced)
    for name, method in _replaced.items():
        if name in cls.__dict__:
            setattr(cls, name, method)
    _replaced.clear()
    host_functions.run_by(None)
    return were_replaced


def install_when_busy() -> None:
    """Install methods when Arrays have been computed with often."""
    call_when_many(CALLS_BEFORE, install)


def _make() -> ArrayMethods | None:
    backend = backends.default_device().backend
    if not backend.computes_small_ops:
        return None
    cls = handles.array_class()
    made: ArrayMethods | None = backend.array_methods(
        ArrayClass(
            cls,
            {name: getattr(cls, name) for name in (*_NAMES, *_HOST_METHODS)},
            obstacles,
            quiet_context(numpy_variable()),
            _locate,
            element_loops.count,
            INDEX,
            MAX_COPIED,
            {name: host_functions.ROWS[_NAMES_OF_ROWS.get(name, name)] for name in _HOST_METHODS},
            host_functions.REFUSALS,
            _hold,
            handles.release,
        )
    )
    return made


def _hold(node: Node) -> None:
    node.handles += 1


def _locate(frame: FrameType) -> object:
    return location_of(frame)
