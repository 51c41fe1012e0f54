"""Calls back into Python, also from functions that are recorded: there they happen when the function runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from xarr import tree
from xarr.base.host_arrays import is_weak, scalar
from xarr.base.tracebacks import names_errors
from xarr.calls.operands import as_array
from xarr.dtypes import canonical
from xarr.errors import EvaluationError, InputError
from xarr.ir import ops
from xarr.ir.types import TensorType
from xarr.lax.core import integers
from xarr.lax.tracing import argument_nodes, results_of
from xarr.runtime import trace_stack
from xarr.runtime.handles import Handle
from xarr.tree import Structure

Function = Callable[..., Any]

#: Stands among leaves for an array, which each call gets anew.
_ARRAY: Final = object()


def side_effect(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Call `function(*args, **kwargs)`, with NumPy arrays for the arrays in these pytrees, for what it does.

    Outside of recorded functions now; in one, whenever that runs, after the side effects before.  What it returns
    is of no concern.
    """
    call, arrays = _on_host(function, args, kwargs)
    if not trace_stack.is_tracing():
        call(*[np.asarray(array) for array in arrays])
        return

    def invoke(*operands: Any) -> tuple[()]:
        call(*operands)
        return ()

    nodes = argument_nodes("debug.callback", arrays)
    results_of(ops.CustomCall("xarr.debug_callback", (), has_side_effect=True, function=invoke), nodes, 0)


@names_errors
def pure_callback(
    callback: Function,
    result_shape_dtypes: Any,
    *args: Any,
    sharding: None = None,
    vmap_method: str | None = None,
    vectorized: bool | None = None,
    **kwargs: Any,
) -> Any:
    """`callback(*args, **kwargs)`, computed by Python whenever the values are wanted, also in a jitted function.

    callback: gets NumPy arrays for the arrays in the pytrees `args` and `kwargs`, and returns arrays of the structure,
        shapes and element types of `result_shape_dtypes`.  It depends on its arguments alone: a call whose result
        is not read is not made.
    result_shape_dtypes: a pytree of what has `shape` and `dtype`, such as ShapeDtypeStruct.
    vmap_method, vectorized: accepted for JAX's sake; under vmap it is called for each slice by itself.

    Raises InputError for other `result_shape_dtypes`; EvaluationError, when it runs, for results that are not as
    declared.  Source: jax.pure_callback.
    """
    if sharding is not None:
        raise InputError("pure_callback: wanted None for sharding, as there is one device")
    declared, structure = tree.flatten(result_shape_dtypes, is_leaf=_has_type)
    types = tuple([_type(each) for each in declared])
    call, arrays = _on_host(callback, args, kwargs)

    def invoke(*operands: Any) -> tuple[Any, ...]:
        leaves, own = tree.flatten(call(*operands))
        if own != structure:
            raise EvaluationError(
                f"pure_callback: {_name(callback)} must return what was declared: {tree.difference(structure, own)}"
            )
        paths = structure.paths(f"the result of {_name(callback)}")
        return tuple([_check_declared(*each) for each in zip(paths, leaves, types, strict=True)])

    invoke.__name__ = _name(callback)
    nodes = argument_nodes("pure_callback", arrays)
    op = ops.CustomCall("xarr.pure_callback", types, function=invoke)
    return tree.unflatten(structure, results_of(op, nodes, len(types)))


def _check_declared(path: str, leaf: Any, declared: TensorType) -> np.ndarray[Any, Any]:
    """A leaf that a callback returned on the host; EvaluationError for another shape or element type."""
    array = scalar(leaf, declared.dtype) if is_weak(leaf) else np.asarray(leaf)
    if (array.dtype, array.shape) != (declared.dtype, declared.shape):
        raise EvaluationError(
            f"pure_callback: {path} was declared {declared.dtype} of shape {declared.shape}, the function returned "
            f"{array.dtype} of shape {array.shape}; convert it with numpy.asarray(…, dtype), or declare that"
        )
    return array


def effects_barrier() -> None:
    """Wait for side effects: nothing to do, since they have happened when a call returns.

    Source: jax.effects_barrier.
    """


def _on_host(
    function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Function, list[Any]]:
    """`function` as one of the arrays among the leaves of its arguments alone, and these arrays."""
    if not callable(function):
        raise InputError(f"wanted a function to call back, got {function!r}")
    leaves, structure = tree.flatten((tuple(args), dict(kwargs)))
    arrays = [as_array(leaf) for leaf in leaves if _is_array(leaf)]
    fixed = [_ARRAY if _is_array(leaf) else leaf for leaf in leaves]
    return _FlatCall(function, structure, fixed), arrays


class _FlatCall:
    """A function of arrays that calls another one with its own copies of them in these arguments."""

    def __init__(self, function: Function, structure: Structure, leaves: Sequence[Any]) -> None:
        self.function, self.structure, self.leaves = function, structure, leaves

    def __call__(self, *arrays: Any) -> Any:
        # Copies, since the backend may write other values to its buffers, and the function keep them.
        copies = iter([np.array(array) for array in arrays])
        leaves = [next(copies) if leaf is _ARRAY else leaf for leaf in self.leaves]
        args, kwargs = tree.unflatten(self.structure, leaves)
        return self.function(*args, **kwargs)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, Handle | np.ndarray | np.generic)


def _name(function: Function) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _has_type(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type)


def _type(value: Any) -> TensorType:
    if not _has_type(value):
        raise InputError(
            "pure_callback: wanted a pytree of what has shape and dtype for result_shape_dtypes, such as "
            f"xarr.ShapeDtypeStruct((3,), 'float32'), got {value!r}"
        )
    return TensorType(integers("pure_callback", "the shape of a result", value.shape), canonical(value.dtype))
