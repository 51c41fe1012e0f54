"""Frozen dataclasses whose methods are written when they are first called.

The standard library compiles five methods for every frozen dataclass, which takes about half a millisecond; an
`import xarr` that makes ninety of them spends a third of its time there, though a program uses few.
A `record` is a dataclass for all that asks (`fields`, `replace`, `match`, `inspect.signature`, pickle), and its
methods are the standard library's, only later.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass
from typing import Any, Final, NoReturn, TypeVar, dataclass_transform, overload

Class = TypeVar("Class", bound=type[Any])

_METHODS: Final = ("__init__", "__repr__")
_COMPARING: Final = ("__eq__", "__hash__")


@overload
def record(cls: Class) -> Class: ...


@overload
def record(*, eq: bool) -> Callable[[Class], Class]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Class | None = None, *, eq: bool = True) -> Class | Callable[[Class], Class]:
    """Class decorator: `dataclass(frozen=True, eq=eq)`, whose methods are written when they are first looked up.

    Its base classes must be records too, or no dataclasses.
    """
    return (lambda decorated: make_record(decorated, eq)) if cls is None else make_record(cls, eq)


def make_record(cls: Class, eq: bool) -> Class:
    """`cls` as a record, with equality and hash from its fields if `eq`."""
    if not (eq or inspect.get_annotations(cls)) and is_dataclass(cls):
        return cls  # it has the fields of its base, and so the methods
    if not cls.__doc__:  # dataclass() would write the signature there, and __init__ for that
        cls.__doc__ = f"{cls.__name__}({', '.join(inspect.get_annotations(cls))})"
    # Not frozen as far as the standard library knows, or it would write __setattr__ and __delattr__ at once.
    dataclass(init=False, repr=False, eq=False)(cls)
    late = {name: _Late(cls, name) for name in (*_METHODS, *(_COMPARING if eq else ()))}
    for name, method in {**late, **_REFUSALS}.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    return cls


class _Late:
    """A stand-in for a method until it is looked up."""

    def __init__(self, cls: type[Any], name: str) -> None:
        self._class = cls
        self._name = name

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        method = _write_method(self._class, self._name)
        # Two threads may both get here, and set equal methods.
        setattr(self._class, self._name, method)
        return method.__get__(instance, owner)


def _write_method(cls: type[Any], name: str) -> Any:
    """A method of a frozen dataclass with the fields of `cls`."""
    own = fields(cls)
    if name == "__init__" and all([_is_positional(each) for each in own]):
        return _init_of(cls, own)
    namespace = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__annotations__": {each.name: each.type for each in own},
        **{each.name: _again(each) for each in own},
    }
    if hasattr(cls, "__post_init__"):
        namespace["__post_init__"] = cls.__post_init__
    compares, init = name in _COMPARING, name == "__init__"
    make = dataclass(init=init, repr=name == "__repr__", eq=compares, unsafe_hash=compares, frozen=init)
    twin: type[Any] = make(type(cls.__name__, (), namespace))
    return twin.__dict__[name]


def _is_positional(field: Field[Any]) -> bool:
    return field.init and not field.kw_only and field.default_factory is MISSING


def _init_of(cls: type[Any], own: tuple[Field[Any], ...]) -> Any:
    """The `__init__` that `dataclass` would write for these fields, without the work of looking through the class.

    A program that computes for the first time needs a dozen of them.
    """
    parameters = ", ".join(["self", *[each.name for each in own]])
    lines = [f"_set(self, {each.name!r}, {each.name})" for each in own]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    names: dict[str, Any] = {"_set": object.__setattr__}
    exec(f"def __init__({parameters}): {'; '.join(lines or ['pass'])}", names)
    init = names["__init__"]
    init.__defaults__ = tuple([each.default for each in own if each.default is not MISSING])
    init.__annotations__ = {**{each.name: each.type for each in own}, "return": None}
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    return init


def _again(known: Field[Any]) -> Any:
    """A field like one of another class."""
    options: dict[str, Any] = {"init": known.init, "repr": known.repr, "hash": known.hash}
    if known.default is not MISSING:
        options["default"] = known.default
    if known.default_factory is not MISSING:
        options["default_factory"] = known.default_factory
    return field(**options, compare=known.compare, kw_only=bool(known.kw_only))


def _refuse_assignment(self: Any, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to {name!r} of {type(self).__name__}, which is immutable")


def _refuse_deletion(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete {name!r} of {type(self).__name__}, which is immutable")


_REFUSALS: Final = {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
