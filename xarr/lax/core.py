"""Helpers of every lax function: operands from what the user passed, and Arrays from nodes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, Final, TypeAlias

import numpy as np

from xarr import backend as backends
from xarr.base.host_arrays import SCALARS, host_array, scalar, scalar_kind
from xarr.base.typing import Array
from xarr.dtypes import PREDICATE, default_of, promote_weak
from xarr.errors import ArgumentError, DTypeError, InputError, TracedValueError
from xarr.ir.device import Device
from xarr.ir.graph import Node, data
from xarr.ir.op import Op, infer_type
from xarr.ir.ops import BroadcastInDim, Constant, Convert
from xarr.ir.types import TensorType
from xarr.runtime.device_arrays import from_device_array, lies_on_device
from xarr.runtime.handles import Handle, common_device, count_unowned, weak_kind, wrap
from xarr.runtime.small_ops import Steps, apply_op
from xarr.runtime.trace_stack import recording

#: What can stand for an array: an Array, a NumPy array, a number, or nested sequences of numbers.
ArrayLike: TypeAlias = Any

#: What the functions of two operands that are one operation each apply.
BINARY: Final[dict[object, Op]] = {}


def operands(name: str, *values: ArrayLike) -> tuple[Node, ...]:
    """The nodes of the arguments of the op called `name`; arrays on the host go where the Arrays are.

    Python scalars take the element type of the first array among the arguments, those that stand alone the default
    of their kind; DTypeError if that type cannot hold their kind (a float beside an integer array), for a bool
    beside numbers, and for scalars of different kinds: nothing promotes here.
    """
    handles = [value for value in values if isinstance(value, Handle)]
    if len(handles) == len(values) and not (recording and any(handle._weak for handle in handles)):
        return tuple([handle._node for handle in handles])
    device = common_device(handles)
    strong = {i: _strong_node(value, device) for i, value in enumerate(values) if weak_kind(value) is None}
    dtype = next(iter(strong.values())).dtype if strong else _default_dtype(name, values)
    return tuple(
        strong[i] if i in strong else _weak_node(name, value, dtype) for i, value in enumerate(values)
    )


def _default_dtype(name: str, scalars: Sequence[Any]) -> np.dtype[Any]:
    kinds = list(filter(None, map(weak_kind, scalars)))
    if len({*kinds}) > 1:
        shown = [_show(value, kind) for value, kind in zip(scalars, kinds, strict=True)]
        widest = max(kinds, key=SCALARS.index).__name__
        raise DTypeError(
            f"{name}: wanted Python numbers of one kind, got {' and '.join(shown)}; lax never promotes: write "
            f"{widest}(…) around the others, or use the operators and functions of xarr, which promote"
        )
    return default_of(kinds[0])


def _show(value: Any, kind: type[Any]) -> str:
    """A Python number in a message; what stands for one in a traced function has no value."""
    return f"the Python {kind.__name__}{'' if isinstance(value, Handle) else f' {value!r}'}"


def _strong_node(value: ArrayLike, device: Device | None) -> Node:
    if isinstance(value, Handle):
        return value._node
    if lies_on_device(value):
        return from_device_array(value, None)._node
    return count_unowned(host_node(host_array(value), device))


def host_node(array: np.ndarray[Any, Any], device: Device | None) -> Node:
    """A node for values on the host: a constant for a scalar, else a data leaf on `device`.

    None stands for the default device, to which the node is not committed.
    """
    if not array.shape:
        return Node(Constant.of(array), device=device)
    if device is None:
        device = backends.default_device().uncommitted
    return data(TensorType(array.shape, array.dtype), device.backend.from_host(array), device)


def put(values: np.ndarray[Any, Any], device: Device | None) -> Array:
    """An Array of values that were computed on the host from an Array on `device`, back on it."""
    return wrap(count_unowned(host_node(values, device)))


def gives_way(kind: type[Any], dtype: np.dtype[Any]) -> bool:
    """Whether a Python number of this kind may become `dtype` without a conversion being asked for.

    A bool is no number here, as in jax.lax.
    """
    return promote_weak(dtype, kind) == dtype and (kind is not bool or dtype == PREDICATE)


def _weak_node(name: str, value: Any, dtype: np.dtype[Any]) -> Node:
    kind = weak_kind(value)
    assert kind is not None
    if not gives_way(kind, dtype):
        fix = "write int(…) around it" if kind is bool else "convert_element_type the array"
        raise DTypeError(
            f"{name}: {_show(value, kind)} does not fit the other operand's {dtype}; lax never promotes: {fix}, or "
            "use the operators and functions of xarr, which promote"
        )
    return value._convert(dtype) if isinstance(value, Handle) else scalar_node(value, dtype)


def apply(op: Op, *values: ArrayLike) -> Array:
    """The Array of `op` over the arguments, which must already have the right shapes."""
    return apply_op(op, operands(op.lax_name, *values))


def broadcast_node(node: Node, shape: tuple[int, ...], dimensions: tuple[int, ...]) -> Node:
    """`node` laid into `shape`; the node itself if it has that shape already."""
    if node.tensor_type.shape == shape:
        return node
    op, type = broadcast_step(node.tensor_type, shape, dimensions)
    return Node(op, (node,), type)


@lru_cache(maxsize=4096)
def broadcast_step(
    operand: TensorType, shape: tuple[int, ...], dimensions: tuple[int, ...]
) -> tuple[BroadcastInDim, TensorType]:
    """The op that lays an array of a type into `shape`, and the type that it gives."""
    op = BroadcastInDim(shape, dimensions)
    return op, infer_type(op, (operand,))  # type: ignore[return-value]


@lru_cache(maxsize=4096)
def convert_step(operand: TensorType, dtype: np.dtype[Any]) -> tuple[Convert, TensorType]:
    """The op that converts an array of a type to `dtype`, and the type that it gives."""
    op = Convert(dtype)
    return op, infer_type(op, (operand,))  # type: ignore[return-value]


def follow(steps: Steps, node: Node, location: tuple[CodeType, int] | None = None) -> Node:
    """`node` after these steps, built at `location`, by default that of the caller."""
    for op, type in steps:
        node = Node(op, (node,), type, location)
    return node


#: Python takes long over the digits of larger integers, and refuses those of very large ones.
_LARGE: Final = 2**64


def scalar_node(value: complex, dtype: np.dtype[Any], location: tuple[CodeType, int] | None = None) -> Node:
    """A constant of rank 0 from a Python scalar; ValueRangeError for an int that `dtype` cannot hold.

    location: where it was built, by default by the caller.
    """
    op = scalar_constant(value, dtype)
    return Node(op, (), op.type, location)


def scalar_constant(value: complex, dtype: np.dtype[Any]) -> Constant:
    """The op of `scalar_node`."""
    if (type(value) is float and value and value == value) or (
        type(value) is int and -_LARGE < value < _LARGE
    ):
        return _number_constant(value, dtype)  # neither of the zeros of floats, which are equal, nor NaN
    kind: Any = type(value) if type(value) in SCALARS else scalar_kind(value)
    if kind is int and not -_LARGE < value < _LARGE:  # type: ignore[operator]
        return Constant.of(scalar(value, dtype))
    # The text tells apart what compares equal: -0.0 and 0.0, True and 1.
    return _scalar_constant(repr(kind(value)), kind, dtype)


@lru_cache(maxsize=4096, typed=True)
def _number_constant(value: float, dtype: np.dtype[Any]) -> Constant:
    return Constant.of(scalar(value, dtype))


@lru_cache(maxsize=4096)
def _scalar_constant(text: str, kind: type[Any], dtype: np.dtype[Any]) -> Constant:
    return Constant.of(scalar(kind(text), dtype) if kind is not bool else np.array(text == "True", dtype))


def integers(name: str, argument: str, values: Any) -> tuple[int, ...]:
    """A tuple of ints from a sequence of anything that is an exact integer."""
    try:
        return tuple(integer(name, argument, value) for value in values)
    except TypeError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: wanted a sequence of ints for {argument}, got {values!r}") from None


def flag(name: str, argument: str, value: Any) -> bool:
    """True or False from anything with a truth; InputError for an array with dimensions."""
    shape = value._node.shape if isinstance(value, Handle) else getattr(value, "shape", ())
    if isinstance(value, str):
        raise InputError(f"{name}: wanted True or False for {argument}, got {value!r}")
    if shape:
        raise InputError(
            f"{name}: wanted True or False for {argument}, got an array of shape {shape}; one value holds for "
            "the whole array"
        )
    return bool(value)


def check_callable(name: str, argument: str, value: Any) -> None:
    """InputError for what cannot be called."""
    if not callable(value):
        raise InputError(f"{name}: wanted a function for {argument}, got {value!r}")


def items(name: str, argument: str, value: Any) -> list[Any]:
    """The items of a sequence; ArgumentError for what is none."""
    try:
        return list(value)
    except TypeError:
        raise ArgumentError(f"{name}: wanted a sequence for {argument}, got {value!r}") from None


def text(name: str, argument: str, value: Any) -> str:
    """The characters of a string of any class as a plain one; InputError for what is no string."""
    if not isinstance(value, str):
        raise InputError(f"{name}: wanted a string for {argument}, got {value!r}")
    return str.__str__(value)


def real_number(name: str, argument: str, value: Any) -> float:
    """A float from anything that is one; InputError for text, None and arrays with dimensions."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except TypeError as error:
        if isinstance(error, TracedValueError):
            raise
        raise InputError(f"{name}: wanted a number for {argument}, got {value!r}") from None


def whole(name: str, argument: str, value: Any) -> int:
    """An int from anything that equals one, such as 2.0 and True, as NumPy takes counts; ArgumentError for 2.5."""
    try:
        return operator.index(value)
    except TracedValueError:
        raise
    except TypeError:
        try:
            # NumPy's complex numbers become floats with a warning, Python's do not.
            number = math.nan if isinstance(value, str | bytes | np.complexfloating) else float(value)
        except (TypeError, ValueError):
            number = math.nan
    if not number.is_integer():
        raise ArgumentError(f"{name}: wanted an int for {argument}, got {value!r}")
    return int(number)


def integer(name: str, argument: str, value: Any) -> int:
    """An int from anything with `__index__` except a bool; ArgumentError for anything else."""
    if isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name}: wanted an int for {argument}, got the bool {value}")
    try:
        return operator.index(value)
    except TypeError:
        instead = (
            "; in a traced function it has no value yet: name the argument in static_argnames of xarr.jit"
            if isinstance(value, Handle) and value._node.traced
            else ""
        )
        raise ArgumentError(f"{name}: wanted an int for {argument}, got {value!r}{instead}") from None
