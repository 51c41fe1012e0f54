"""Calls of registered functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from xarr import tree
from xarr.base.custom_calls import function_named
from xarr.base.tracebacks import names_errors
from xarr.dtypes import canonical
from xarr.errors import InputError
from xarr.ir import ops
from xarr.ir.ops.custom_calls import AttributeValue
from xarr.ir.types import TensorType
from xarr.lax.core import ArrayLike, integers, text
from xarr.lax.tracing import argument_nodes, results_of


@names_errors
def custom_call(
    call_target_name: str,
    *operands: ArrayLike,
    result_types: Any,
    attributes: Mapping[str, AttributeValue] | None = None,
    has_side_effect: bool = False,
) -> Any:
    """The results of the function registered as `call_target_name`, which runs on the host.

    operands: arrays, which the function gets as read-only NumPy arrays.
    result_types: what it returns: a pair (shape, dtype), or anything with `shape` and `dtype` such as an
        array; or a tuple, list or dict of those for several results.
    attributes: bools, ints, floats and texts, which the function gets as keyword arguments.
    has_side_effect: run each call, in the order of the program, and even if no result is read; outside of functions
        that are recorded, as by jit, where it is called.  Other calls run when a result is needed.

    Returns an Array for each result, in the structure of `result_types`.  Raises InputError for a name that
    is not registered and for attributes of other types; EvaluationError, when it runs, for results that are
    not as declared.  Source: XLA's CustomCall.
    """
    call_target_name = text("custom_call", "call_target_name", call_target_name)
    function_named("custom_call", call_target_name)
    declared, structure = flatten_types("custom_call", result_types)
    nodes = argument_nodes("custom_call", operands)
    op = ops.CustomCall(call_target_name, declared, _items(attributes or {}), bool(has_side_effect))
    return tree.unflatten(structure, results_of(op, nodes, len(declared)))


def _items(attributes: Mapping[Any, Any]) -> tuple[tuple[str, AttributeValue], ...]:
    for name, value in attributes.items():
        if not (isinstance(name, str) and name.isidentifier() and name.isascii()):
            raise InputError(f"custom_call: wanted identifiers as names of attributes, got {name!r}")
        if type(value) not in (bool, int, float, str):
            raise InputError(
                f"custom_call: wanted a bool, int, float or str for the attribute {name!r}, got {value!r}"
            )
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise InputError(f"custom_call: the attribute {name!r} does not fit an int64: {value}")
    return tuple(sorted((str.__str__(name), value) for name, value in attributes.items()))


def flatten_types(name: str, result_types: Any) -> tuple[tuple[TensorType, ...], tree.Structure]:
    """The types of results declared to the function `name`, and their structure."""
    if _is_type(result_types):
        return (_type(name, result_types),), tree.LEAF
    if isinstance(result_types, dict):
        keys = tuple(sorted(result_types))
        types = [_type(name, result_types[key]) for key in keys]
    elif isinstance(result_types, (tuple, list)):
        keys = tuple(range(len(result_types)))
        types = [_type(name, each) for each in result_types]
    else:
        _type(name, result_types)
    return tuple(types), tree.Structure(type(result_types), keys, (tree.LEAF,) * len(types))


def _is_type(value: Any) -> bool:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return not isinstance(value, type)  # np.float32 has both
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], (tuple, list))
        and all(isinstance(size, (int, np.integer)) for size in value[0])
        and not _is_type(value[1])
    )


def _type(name: str, value: Any) -> TensorType:
    if not _is_type(value):
        raise InputError(
            f"{name}: wanted a pair (shape, dtype) or something with shape and dtype, got {value!r}"
        )
    shape, dtype = value if isinstance(value, tuple) else (value.shape, value.dtype)
    sizes = integers(name, "the shape of a result", shape)
    if any(size < 0 for size in sizes):
        raise InputError(f"{name}: wanted sizes >= 0, got {sizes}")
    return TensorType(sizes, canonical(dtype))
