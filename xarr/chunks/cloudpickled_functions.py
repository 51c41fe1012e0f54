"""Jitted functions of scripts and notebooks in the pickles of cloudpickle, by value as plain functions there.

A pickle of Python has the name of a function of `__main__`, which in another process is another module.  `cloudpickle`
writes such functions out, and asks this for jitted ones.
"""

from __future__ import annotations

from typing import Any

import cloudpickle

from xarr.transforms.jit import Jitted
from xarr.transforms.pickled_functions import is_named


def _reduce(jitted: Jitted[..., Any]) -> str | tuple[Any, ...]:
    own = ("__main__", *cloudpickle.list_registry_pickle_by_value())
    in_own = any(jitted.__module__ == name or jitted.__module__.startswith(f"{name}.") for name in own)
    return jitted.reduce_by_value() if in_own or not is_named(jitted) else jitted.__qualname__


cloudpickle.CloudPickler.dispatch_table[Jitted] = _reduce
