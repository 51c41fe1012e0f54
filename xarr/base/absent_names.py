"""Names of NumPy and JAX that need a word: why one is absent, or how it differs.

The words stand beside this file: those about NumPy's names in `numpy_names.tsv`, from which `docs/make_coverage.py`
writes the page too, those about JAX's in `jax_names.tsv`.  They are read when a name is missing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, NoReturn

from xarr.base.names import public_names

# Neither importlib.resources nor pathlib: they cost more to import than all of this package's functions.
PATH: Final = os.path.join(os.path.dirname(__file__), "numpy_names.tsv")
PATH_OF_JAX: Final = os.path.join(os.path.dirname(__file__), "jax_names.tsv")
_REASONS: Final = {"absent": "which NumPy has", "removed": "which NumPy has removed"}
_STATES: Final = ("same", "differs", "absent", "removed")


@lru_cache(maxsize=1)
def remarks() -> dict[str, tuple[str, str]]:
    """From each name (`linalg.solve`, `ndarray.sort`, `ufunc.at`) to its state and remark."""
    with open(PATH, encoding="utf-8") as lines:
        return parse(lines.read().splitlines())


@lru_cache(maxsize=1)
def reasons_of_jax() -> dict[str, str]:
    """From each name of JAX's that is absent (`grad`, `lax.psum`) to the reason."""
    with open(PATH_OF_JAX, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")]
    return {name: reason for reason, names in rows for name in names.split()}


def parse(lines: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The table of these lines; ValueError for one without a name, a state and a remark, or a name twice."""
    fields = [line.split("\t") for line in lines if line and not line.startswith("#")]
    for line in fields:
        if len(line) != 3 or line[1] not in _STATES:
            raise ValueError(f"numpy_names.tsv: wanted name, {'/'.join(_STATES)} and a remark, got {line}")
    if len({name for name, _, _ in fields}) != len(fields):
        raise ValueError("numpy_names.tsv: wanted each name once, got one twice")
    return {name: (state, remark) for name, state, remark in fields}


def missing(module: str, name: str) -> AttributeError | ImportError:
    """The error for a name that `module`, xarr or one below it, has not, with the reason if NumPy or JAX has it.

    To be raised by the module's `__getattr__`.  `from module import name` gets the reason as an ImportError, as of
    an AttributeError Python would drop the text.
    """
    text = f"module {module!r} has no attribute {name!r}"
    # With the module, Python adds "Did you mean" where it prints the error: only where no reason says better.
    owner = sys.modules.get(module)
    reason = "" if name.startswith("_") else _reason(f"{module}.{name}".removeprefix("xarr."))
    if not reason:
        return AttributeError(text, name=name, obj=owner)
    if sys._getframe(2).f_code.co_name == "_handle_fromlist":
        return ImportError(f"cannot import name {name!r} from {module!r}, {reason}", name=module)
    return AttributeError(f"{text}, {reason}", name=name)


def hooks_of(
    module: str, more: Iterable[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module: `missing` of each name that it has not, `public_names` of what it has.

    more: names that it has besides, submodules.
    """

    def __getattr__(name: str) -> object:
        raise missing(module, name)

    def __dir__() -> list[str]:
        return public_names(vars(sys.modules[module]), more)

    for hook in (__getattr__, __dir__):
        hook.__module__, hook.__qualname__ = module, hook.__name__  # where pickle finds it
    return __getattr__, __dir__


def _reason(path: str) -> str:
    """Why there is no such name, after that of the library that has it; empty for one that none of them has."""
    state, remark = remarks().get(path, ("", ""))
    if state in _REASONS:
        return f"{_REASONS[state]}: {remark}"
    of_jax = "" if state else reasons_of_jax().get(path, "")
    return of_jax and f"which JAX has: {of_jax}"


class Absent:
    """An attribute that an Array has not, nor its class: asking for it gives the reason.

    reason: for names of other libraries; that of NumPy's names is in the table.
    """

    def __init__(self, reason: str = "") -> None:
        self._reason = reason

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        reason = self._reason or remarks()[f"ndarray.{self._name}"][1]
        raise AttributeError(
            f"an xarr Array has no attribute {self._name!r}: {reason}", name=self._name, obj=instance
        )


class AbsentAttributes:
    """The attributes of NumPy's arrays that are about memory, which a value has not, or that NumPy has removed.

    And some of PyTorch's tensors.
    """

    __slots__ = ()

    base = Absent()
    byteswap = Absent()
    ctypes = Absent()
    data = Absent()
    dump = Absent()
    dumps = Absent()
    flags = Absent()
    getfield = Absent()
    itemset = Absent()
    newbyteorder = Absent()
    ptp = Absent()
    setfield = Absent()
    setflags = Absent()
    tofile = Absent()
    tostring = Absent()

    cpu = Absent('it is PyTorch\'s; x.to("cpu") moves an Array')
    cuda = Absent('it is PyTorch\'s; x.to("…") moves an Array to another backend')
    detach = Absent("it is PyTorch's; an Array holds no gradients")
    numpy = Absent("it is PyTorch's; numpy.asarray(x) is its value as a NumPy array")
    permute = Absent("it is PyTorch's; x.transpose(…) or xarr.permute_dims(x, axes)")
    unsqueeze = Absent("it is PyTorch's; x[:, None] or xarr.expand_dims(x, axis)")


#: The names that an Array refuses with a reason.
ABSENT: Final = frozenset(name for name, value in vars(AbsentAttributes).items() if isinstance(value, Absent))
