"""Text and calls back into Python from a function while it runs, also from a recorded one."""

from __future__ import annotations

import string
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xarr.base.names import public_names
from xarr.errors import InputError
from xarr.transforms.callbacks import side_effect

__all__ = ["callback", "print"]


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Print `fmt.format(*args, **kwargs)`: at once, and in a recorded function whenever that runs.

    fmt: as of `str.format`; not an f-string, which would want the values while the function is recorded.
    args, kwargs: pytrees, whose arrays are printed as NumPy prints them.
    ordered, partitioned: accepted for JAX's sake: what is printed always comes in the order of the program.
    skip_format_check: do not look for arguments that lack or are too many before the function runs.

    Without `fmt`, returns a function of it and the arguments.  In `jit`, branches, loops, scans and `call` nothing is
    lost because a result is not read.  Raises InputError for arguments that do not fit `fmt`, and in a function of
    single elements, such as that of `reduce`.  Source: jax.debug.print.
    """
    if fmt is None:
        _refuse_arguments("print", args, kwargs)
        return lambda fmt, *args, **kwargs: _print(fmt, args, kwargs, skip_format_check)
    _print(fmt, args, kwargs, skip_format_check)
    return None


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Call `callback(*args, **kwargs)` for what it does: at once, and in a recorded function whenever that runs.

    args, kwargs: pytrees; the function gets NumPy arrays of its own for the arrays in them.
    ordered, partitioned: accepted for JAX's sake: calls always come in the order of the program.

    Without `callback`, returns a function of it and the arguments.  Raises InputError for what cannot be called,
    and in a function of single elements, such as that of `reduce`.  Source: jax.debug.callback.
    """
    if callback is None:
        _refuse_arguments("callback", args, kwargs)
        return lambda callback, *args, **kwargs: side_effect(callback, args, kwargs)
    side_effect(callback, args, kwargs)
    return None


def _refuse_arguments(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    if args or kwargs:
        first = "a format string" if name == "print" else "a function"
        raise InputError(f"debug.{name}: wanted {first} before the other arguments")


def _print(fmt: str, args: Sequence[Any], kwargs: Mapping[str, Any], unchecked: bool) -> None:
    if not isinstance(fmt, str):
        raise InputError(f"debug.print: wanted a format string, got {fmt!r}; write debug.print('{{}}', x)")
    if not unchecked:
        _Check().vformat(fmt, args, kwargs)

    def write(*args: Any, **kwargs: Any) -> None:
        sys.stdout.write(f"{fmt.format(*args, **kwargs)}\n")

    side_effect(write, args, kwargs)


class _Check(string.Formatter):
    """Looks whether there is an argument for each field and a field for each argument; formats nothing."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        try:
            return super().get_value(key, args, kwargs)
        except (IndexError, KeyError):
            raise InputError(f"debug.print: no argument for the field {{{key}}}") from None

    def check_unused_args(
        self, used_args: set[int | str], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        unused = [str(key) for key in (*range(len(args)), *kwargs) if key not in used_args]
        if unused:
            raise InputError(
                f"debug.print: no field for the argument {unused[0]}; an f-string has filled its fields already, write "
                "debug.print('{}', x) for debug.print(f'{x}')"
            )

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value


def __dir__() -> list[str]:
    return public_names(globals())
