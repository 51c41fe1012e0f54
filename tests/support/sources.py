"""Which public functions do not name the source of their rule in their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import xarr
from xarr import fft, lax, linalg, random
from xarr.base.absent_names import Absent

NAMESPACES: tuple[ModuleType, ...] = (xarr, lax, linalg, fft, random)

_OWN = (
    "config evaluate explain explain_broadcast explain_dtype explain_einsum explain_gather explain_index "
    "get_backend lower explain_layout explain_matmul explain_reduce explain_scatter explain_window "
    "make_explicit seed_rng set_backend trace_broadcasts unregister_custom_call use_backend "
    "Array.backend Array.evaluate Array.is_evaluated Array.layout Array.to"
)
#: Functions and members of Array that no other library or specification has.
OWN = frozenset(_OWN.split())


def functions(namespace: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public functions of `namespace`, without NumPy's own and what tells of absent names."""
    for name in getattr(namespace, "__all__", dir(namespace)):
        value = getattr(namespace, name)
        home = str(getattr(value, "__module__", ""))
        other = home.partition(".")[0] == "numpy" or home == "xarr.base.absent_names"
        if callable(value) and not isinstance(value, type) and not name.startswith("_") and not other:
            yield name, value


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of `kind`, as they stand in it, without what tells of absent ones."""
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        if not name.startswith("_") and not isinstance(value, Absent):
            yield f"{kind.__name__}.{name}", value


def names_source(value: Any) -> bool:
    return "Source: " in (inspect.getdoc(value) or "")


def _names(member: str, value: Any) -> tuple[str, str]:
    """The name of a member, and what its function is called where it goes by several names."""
    called = member.partition(".")[2]
    return called, getattr(value, "__name__", called)


def without_source(members: Iterable[tuple[str, Any]]) -> list[str]:
    """Those neither of whose docstring, nor that of xarr's function of the same name, a source is in."""
    return sorted(
        name
        for name, value in members
        if name not in OWN
        and not names_source(value)
        and not ("." in name and any(names_source(getattr(xarr, each, None)) for each in _names(name, value)))
    )
