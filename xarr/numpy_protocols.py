"""NumPy's own functions called with Arrays: `np.sin(x)`, `np.concatenate([x, y])`, `np.linalg.norm(x)`.

NumPy asks an argument of another class what to do: NEP 13 for ufuncs, NEP 18 for all others.  Here it is
xarr's function of the same name that runs, so that results are Arrays and stay lazy.  What xarr has not is
refused with what to write instead, and never computed behind the user's back by NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import numpy as np

from xarr.errors import InputError, XarrError
from xarr.lazy import Handle, namespace
from xarr.tracebacks import shorten

#: Whether writing to one array shows in another: never, Arrays are values.
_OF_MEMORY: Final = (np.may_share_memory, np.shares_memory)


def ufunc(called: np.ufunc, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What `called`, or a method of it such as `reduce`, gives for inputs of which one is an Array.

    Raises as xarr's own, and InputError for a ufunc that xarr has not.
    """
    own = _counterpart(called)
    if own is None:
        raise InputError(_refusal(called, method))
    wanted = own if method == "__call__" else getattr(own, method)
    try:
        return wanted(*inputs, **options)
    except XarrError as error:
        shorten(error)
        raise


def function(called: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Any:
    """What NumPy's function `called` gives, by xarr's of the same name.  InputError if there is none."""
    if called in _OF_MEMORY:
        return False
    own = _counterpart(called)
    if own is None:
        raise InputError(_refusal(called, "__call__"))
    if called is np.broadcast_arrays and not all(map(_is_of_numbers, args)):
        return _with_objects(args)
    try:
        return own(*args, **kwargs)
    except XarrError as error:
        shorten(error)
        raise


def _is_of_numbers(given: Any) -> bool:
    return isinstance(given, Handle) or np.asarray(given).dtype.kind not in "OUS"


def _with_objects(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """`np.broadcast_arrays` where there are None or texts, as in matplotlib's bars: what is no Array stays NumPy's."""
    shape = np.broadcast_shapes(*map(np.shape, arrays))
    spread = namespace(None).broadcast_to
    return tuple(
        spread(given, shape) if isinstance(given, Handle) else np.broadcast_to(given, shape)
        for given in arrays
    )


@lru_cache(maxsize=4096)
def _counterpart(called: Callable[..., Any]) -> Callable[..., Any] | None:
    """xarr's function for one of NumPy's; of others, which may have the same names, None.

    The cache is bounded, since it keeps what it was asked about, as ufuncs of `np.frompyfunc`.
    """
    module = getattr(called, "__module__", None) or "numpy"
    name = getattr(called, "__name__", "")
    if isinstance(called, np.ufunc):
        module = "numpy"
    path = f"{module}.{name}".removeprefix("numpy.")
    try:
        if attrgetter(path)(np) is not called:
            return None
        found: Callable[..., Any] = attrgetter(path)(namespace(None))
    except AttributeError:
        return None
    return found


def _refusal(called: Callable[..., Any], method: str) -> str:
    name = called.__name__ if method == "__call__" else f"{called.__name__}.{method}"
    if isinstance(called, np.ufunc):
        shown = f"np.{name}" if getattr(np, called.__name__, None) is called else f"the ufunc {name}"
    else:
        module = getattr(called, "__module__", None) or ""
        is_numpys = module.partition(".")[0] == "numpy"
        shown = f"{module.replace('numpy', 'np', 1)}.{name}" if is_numpys else f"the function {name}"
    return f"{shown} does not take xarr arrays; give it numpy.asarray(x) for a result of NumPy's"
