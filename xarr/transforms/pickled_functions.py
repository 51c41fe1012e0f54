"""Pickles of functions that keep programs, by name or by value.

Where the other process finds a function by its name, the pickle is the name, as that of a plain function.  Else it has
the function itself, which `cloudpickle` writes, and an identity: a process that receives the same one a hundred times,
as a worker does with each task, makes one of it, which is recorded and compiled once.
"""

from __future__ import annotations

import sys
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final
from weakref import WeakValueDictionary

#: Functions that came by value and are kept though nothing else holds them; those not asked for longest go first.
_KEPT: Final = 128

_lock: Final = threading.Lock()
_received: Final[OrderedDict[str, Any]] = OrderedDict()
#: Functions of this process that were pickled by value: they come back as themselves.
_sent: Final[WeakValueDictionary[str, Any]] = WeakValueDictionary()


def is_named(function: Any) -> bool:
    """Whether the module of `function` has it under its qualified name."""
    module = sys.modules.get(function.__module__)
    try:
        return attrgetter(function.__qualname__)(module) is function
    except AttributeError:
        return False


def reduce_by_value(function: Any, make: Callable[..., Any], *parts: Any) -> tuple[Any, ...]:
    """The reduction, for pickle, of a `function` that `make(*parts)` makes anew; the same identity each time."""
    with _lock:
        identity: str | None = function.__dict__.get("_identity")
        if identity is None:
            identity = function.__dict__["_identity"] = uuid.uuid4().hex
        _sent[identity] = function
    return _restore, (identity, make, parts)


def _restore(identity: str, make: Callable[..., Any], parts: tuple[Any, ...]) -> Any:
    with _lock:
        known = _received.get(identity)
        if known is None:
            known = _sent.get(identity)
        if known is None:
            known = make(*parts)
            known.__dict__["_identity"] = identity
        _received[identity] = known
        _received.move_to_end(identity)
        if len(_received) > _KEPT:
            _received.popitem(last=False)
        return known
