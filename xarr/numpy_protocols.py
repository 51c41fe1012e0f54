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

from xarr.errors import InputError
from xarr.lazy import Handle, namespace

#: The reductions and running totals that a ufunc's `reduce` and `accumulate` are.
_REDUCTIONS: Final = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_RUNNING: Final = {"add": "cumsum", "multiply": "cumprod"}
_INSTEAD_OF_OPTIONS: Final = {
    "out": "an xarr array is never written to, nor into a NumPy array: write n = n + x for n += x, or "
    "n += np.asarray(x) to write into n",
    "where": "xarr.where(condition, x, y) chooses element by element",
    "dtype": "x.astype(dtype) converts",
}

#: Whether writing to one array shows in another: never, Arrays are values.
_OF_MEMORY: Final = (np.may_share_memory, np.shares_memory)


def ufunc(called: np.ufunc, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What `called`, or its `reduce`, `accumulate` or `outer`, gives for inputs of which one is an Array.

    Raises InputError for a ufunc, a method or an option that xarr has not.
    """
    name = called.__name__
    own = _counterpart(called)
    if own is None:
        raise InputError(_refusal(called, method))
    if method == "__call__":
        if options:
            raise InputError(_options_refusal(f"np.{name}", options))
        return own(*inputs)
    if method == "outer" and called.nin == 2 and called.signature is None and not options:
        return _outer(own, *inputs)
    if method == "reduce" and name in _REDUCTIONS:
        return _along_first(_REDUCTIONS[name], inputs, options)
    if method == "accumulate" and name in _RUNNING:
        return _along_first(_RUNNING[name], inputs, options)
    raise InputError(_refusal(called, method))


def function(called: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Any:
    """What NumPy's function `called` gives, by xarr's of the same name.  InputError if there is none."""
    if called in _OF_MEMORY:
        return False
    own = _counterpart(called)
    if own is None:
        raise InputError(_refusal(called, "__call__"))
    if called is np.broadcast_arrays and not all(map(_is_of_numbers, args)):
        return _with_objects(args)
    return own(*args, **kwargs)


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


def _outer(own: Callable[..., Any], x: Any, y: Any) -> Any:
    """`own` of every element of x with every element of y, the one's dimensions before the other's."""
    xp = namespace(None)
    first, second = xp.asarray(x), xp.asarray(y)
    shape = (*first.shape, *second.shape)
    spread = xp.lax.broadcast_in_dim
    rows = spread(first, shape, range(first.ndim))
    columns = spread(second, shape, range(first.ndim, len(shape)))
    return own(rows, columns)


def _along_first(name: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """A reduction or running total, by default over the first axis, as that of a ufunc."""
    if any(given is not None for given in options.get("out", ())):
        raise InputError(_options_refusal(f"np.{name}", {"out": None}))
    others = {option: given for option, given in options.items() if option != "out"}
    return getattr(namespace(None), name)(*inputs, **{"axis": 0, **others})


def _options_refusal(called: str, options: Mapping[str, object]) -> str:
    fixes = [_INSTEAD_OF_OPTIONS[option] for option in options if option in _INSTEAD_OF_OPTIONS]
    return "; ".join([f"{called} on xarr arrays takes no {', '.join(options)}", *fixes])


def _refusal(called: Callable[..., Any], method: str) -> str:
    name = called.__name__ if method == "__call__" else f"{called.__name__}.{method}"
    module = "numpy" if isinstance(called, np.ufunc) else getattr(called, "__module__", "numpy")
    known = module.partition(".")[0] == "numpy" and _is_numpys(called)
    shown = f"{module.replace('numpy', 'np', 1)}.{name}" if known else f"the function {name}"
    if isinstance(called, np.ufunc) and not known:
        shown = f"the ufunc {name}"
    return f"{shown} does not take xarr arrays; give it np.asarray(x) for a result of NumPy's"


def _is_numpys(called: Callable[..., Any]) -> bool:
    return not isinstance(called, np.ufunc) or getattr(np, called.__name__, None) is called
