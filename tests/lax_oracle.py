"""Records of calls, and what `jax.lax` on the CPU says to them: the oracle of the differential tests."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import jax
import numpy as np
from jax._src.lax import lax as primitives

from tests.compare import compute
from tests.lax_values import HostArray, dtype_of
from tests.support.answers import check_once, digest, share, source_of
from xarr import lax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

Call = tuple[Any, ...]

#: What jax.lax has as primitives only, or not at all but for the order of operands.
_TOTAL_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "eq_to": primitives.eq_to_p.bind,
    "ne_to": lambda x, y: ~primitives.eq_to_p.bind(x, y),
    "le_to": primitives.le_to_p.bind,
    "lt_to": primitives.lt_to_p.bind,
    "ge_to": lambda x, y: primitives.le_to_p.bind(y, x),
    "gt_to": lambda x, y: primitives.lt_to_p.bind(y, x),
}


@dataclass(frozen=True, eq=False)
class Record:
    """One function of `xarr.lax`, the element types to test it with, and the calls to make for each.

    Arrays among the arguments, and in a list that is an argument, are traced; all else is passed as it is.
    """

    name: str
    dtypes: tuple[str, ...]
    calls: Callable[[np.dtype[Any]], Sequence[Call]]


def jax_function(name: str) -> Callable[..., Any]:
    """The function of jax.lax called `name`."""
    return _TOTAL_ORDER[name] if name in _TOTAL_ORDER else getattr(jax.lax, name)


def is_in_jax(name: str) -> bool:
    """Whether jax.lax has a function of this name."""
    return name in _TOTAL_ORDER or hasattr(jax.lax, name)


def compute_expected(record: Record, dtype: str) -> list[Any]:
    """The results of jax.lax for each call of the record with that element type: an array or a list of them."""
    return _all_expected(record)[dtype]


def compute_result(record: Record, call: Call) -> Any:
    """The result of xarr.lax for the call."""
    return getattr(lax, record.name)(*call)


def check_results(record: Record, dtype: str, check: Callable[[Call, Any, Any], None], *sources: Any) -> None:
    """Call `check` with each call of that element type, what xarr.lax returns and what jax.lax returns.

    Not if results have the bits with which it has passed, as `check_once` says; `sources` are modules and functions on
    which it depends.
    """
    calls = record.calls(dtype_of(dtype))
    results = [compute_result(record, call) for call in calls]

    def check_all() -> None:
        for call, got, wanted in zip(calls, results, compute_expected(record, dtype), strict=True):
            check(call, got, wanted)

    texts = [source_of(each) for each in (sys.modules[__name__], check, *sources)]
    leaves = [compute(leaf) for each in results for leaf in (each if isinstance(each, list) else [each])]
    arguments = [array for call in calls for array in _arrays(call)]
    others = [argument for call in calls for argument in call if _is_static(argument)]
    check_once(leaves, check_all, record.name, dtype, _text_of(others), arguments, *texts)


@cache
def _all_expected(record: Record) -> dict[str, list[Any]]:
    """All results of a record from one compilation, which is what costs the time."""
    calls = {dtype: record.calls(dtype_of(dtype)) for dtype in record.dtypes}
    traced = [array for one in calls.values() for call in one for array in _arrays(call)]
    others = [argument for one in calls.values() for call in one for argument in call if _is_static(argument)]
    name = digest(record.name, record.dtypes, _text_of(others), traced)
    results: dict[str, list[Any]] = share(name, lambda: _by_jax(record, calls, traced))
    return results


def _by_jax(
    record: Record, calls: dict[str, Sequence[Call]], traced: list[HostArray]
) -> dict[str, list[Any]]:
    function = jax_function(record.name)

    def run(arrays: list[HostArray]) -> dict[str, list[Any]]:
        supply = iter(arrays)
        return {
            dtype: [function(*[_refill(argument, supply) for argument in call]) for call in one]
            for dtype, one in calls.items()
        }

    with warnings.catch_warnings():
        # Conversions of complex numbers to real ones are meant.
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        results: dict[str, list[Any]] = jax.tree.map(np.asarray, jax.jit(run)(traced))
    return results


def _text_of(others: list[Any]) -> str:
    return re.sub(" at 0x[0-9a-f]+", "", repr(others))


def _is_static(argument: Any) -> bool:
    return not isinstance(argument, np.ndarray | list)


def _arrays(call: Call) -> Iterator[HostArray]:
    for argument in call:
        if isinstance(argument, np.ndarray):
            yield argument
        elif isinstance(argument, list):
            yield from _arrays(tuple(argument))


def _refill(argument: Any, supply: Iterator[Any]) -> Any:
    if isinstance(argument, np.ndarray):
        return next(supply)
    if isinstance(argument, list):
        return [_refill(entry, supply) for entry in argument]
    return jax.lax.RoundingMethod(argument.value) if isinstance(argument, Enum) else argument
