"""Names: which ones a module shows, and which one a misspelled one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType


def public_names(namespace: Mapping[str, object], more: Iterable[str] = ()) -> list[str]:
    """The sorted names of a module that are for its users, and those that every module has.

    namespace: the module's `vars`.  Its `__all__` decides; without one, all that is neither private nor a module.
    more: names that the module gives when they are asked for, submodules among them.
    """
    chosen = namespace.get("__all__")
    if isinstance(chosen, list | tuple):
        own = set(map(str, chosen))
    else:
        own = {
            name
            for name, value in namespace.items()
            if not name.startswith("_") and not isinstance(value, ModuleType)
        }
    customary = {name for name in namespace if name.startswith("__") and name != "__main__"}
    return sorted({*own, *more, *customary})


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean NAME?` with the nearest of the known names, for an error's text; "" where none is near."""
    import difflib  # here, because it is two milliseconds of every import of xarr

    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else ""
