"""Arguments that NumPy's signatures have in common: out, order, device, mask, initial value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from xarr import backend as backends, lax
from xarr.backend import AbstractBackend
from xarr.base.host_arrays import scalar
from xarr.base.tracebacks import mark_boundary, name_in_errors, shorten
from xarr.base.typing import Array
from xarr.calls.operands import DType, as_array, broadcast_operands, common_dtype, promote_operands
from xarr.calls.remembered_calls import runner
from xarr.dtypes import BOOL, COMPLEX, FLOAT, INTEGER, PREDICATE
from xarr.errors import ArgumentError, DTypeError, InputError, ShapeError, ValueRangeError, XarrError
from xarr.ir.device import Device
from xarr.ir.graph import Node
from xarr.ir.ops import Constant
from xarr.lax.core import ArrayLike, broadcast_node, integer
from xarr.runtime import handles
from xarr.runtime.handles import Handle, commit, current_device, weak_kind, wrap

P = ParamSpec("P")
R = TypeVar("R")
#: A device as the Array API passes it, None, "cpu" or a backend's name; a backend, or the record itself.
DeviceLike = str | AbstractBackend | Device | None
Axes = int | tuple[int, ...] | None
#: From the strictest rule to none.
CASTINGS: Final = ("no", "equiv", "safe", "same_kind", "unsafe")
#: Of an array of NumPy's.
MOST_DIMENSIONS: Final = 64


def refuse_arrays_apart(name: str, axis: object) -> None:
    """Raise InputError if an array stands where the axis is wanted, as in `concatenate(x, y)`."""
    if getattr(axis, "ndim", 0):
        raise InputError(
            f"{name}: wanted an int for axis, got an array; the arrays go into one sequence: {name}((x, y))"
        )


def check_order(name: str, order: str | None) -> None:
    """ArgumentError for a memory order that only memory could show."""
    if order is not None and str(order).upper() not in ("C", "K", "A"):
        raise ArgumentError(
            f"{name}: wanted order 'C', 'K' or 'A', got {order!r}; the backend decides the "
            "order in memory, and xarr.permute_dims reorders dimensions"
        )


def is_column_major(name: str, order: str | None, known: str = "CFAK") -> bool:
    """Whether elements are numbered in order "F", the first dimension fastest; ArgumentError for an unknown order."""
    wanted = "C" if order is None else str(order).upper()
    if wanted not in tuple(known):
        raise ArgumentError(f"{name}: wanted order 'C' (row-major) or 'F' (column-major), got {order!r}")
    return wanted == "F"


def is_listed(value: object) -> bool:
    """Whether an argument is a list or vector of ints and not one int."""
    if isinstance(value, Handle):
        return bool(value._node.shape)
    return value.ndim > 0 if isinstance(value, np.ndarray) else isinstance(value, Sequence)


def check_casting(
    name: str,
    casting: Any,
    dtypes: Iterable[DType] = (),
    to: DType | None = None,
    fix: str = 'casting="unsafe" allows it',
) -> None:
    """Check the rule of casting, and that it lets each of `dtypes` become `to`.

    fix: what an error about a type says that would work.
    Raises ValueRangeError for an unknown rule, ArgumentError for what is no string, DTypeError for a type.
    """
    if casting not in CASTINGS:
        wrong = ValueRangeError if isinstance(casting, str) else ArgumentError
        raise wrong(f"{name}: wanted casting as one of {', '.join(CASTINGS)}, got {casting!r}")
    for dtype in dtypes:
        if to is not None and not np.can_cast(dtype, to, casting):
            raise DTypeError(f"{name}: cannot cast {dtype} to {to} under casting={casting!r}; {fix}")


def check_common_casting(name: str, casting: str, array: Array, *others: ArrayLike | None) -> None:
    """`check_casting` of arrays, None for no array, to the type that all are promoted to; Python numbers have none."""
    if casting == "same_kind":  # it allows every promotion
        return
    values = [array, *[each for each in others if each is not None]]
    own = [common_dtype(each) for each in values if weak_kind(each) is None]
    check_casting(name, casting, own, common_dtype(*values))


def missing_dimensions(rank: int, ndmin: int, ndmax: int, nested: bool) -> int:
    """The number of dimensions that `array` adds to one of `rank`, 0 or less for none; `nested`: it was sequences.

    Raises ValueRangeError unless ndmin <= ndmax <= 64, ShapeError for sequences nested deeper than `ndmax`.
    """
    least, most = integer("array", "ndmin", ndmin), integer("array", "ndmax", ndmax)
    if not 0 <= most <= MOST_DIMENSIONS:
        raise ValueRangeError(f"array: wanted 0 <= ndmax <= {MOST_DIMENSIONS}, as in NumPy, got {most}")
    if least > most:
        raise ValueRangeError(f"array: wanted ndmin <= {most}, which is ndmax, got {least}")
    if nested and rank > most:
        raise ShapeError(f"array: wanted sequences nested at most {most} deep, which is ndmax, got {rank}")
    return least - rank


def as_device(device: DeviceLike) -> Device:
    """The device that `device` means, None that of what is made now, to commit to; BackendError for an unknown name."""
    if device is None:
        return current_device()
    return device.committed if isinstance(device, Device) else backend_of(device).device()


def backend_of(device: str | AbstractBackend | None) -> AbstractBackend:
    """The backend that `device` means, None the default one; BackendError for an unknown name."""
    if device is None:
        return backends.default()
    if isinstance(device, AbstractBackend):
        return device
    if not isinstance(device, str):
        raise InputError(f'wanted None, "cpu" or the name of a backend for device, got {device!r}')
    if device == "cpu":
        default = backends.default()
        return default if "cpu" in default.devices() else backends.get("numpy")
    return backends.get(device)


def move_to_device(array: Array, device: DeviceLike) -> Array:
    """`array` moved to `device`, itself if it is on that device or `device` is None."""
    if device is None:
        return array
    wanted, own = as_device(device), array._node.device
    if own is None or not own.is_committed:
        return commit(array, wanted)
    return array if own is wanted else handles.move(array, wanted)


def fill(shape: tuple[int, ...], value: complex, dtype: DType, device: Device | None = None) -> Array:
    """A constant of `shape`; it takes no memory until something looks.  device: None for any."""
    constant = Node(Constant.of(scalar(value, dtype, is_requested=True)), device=device)
    return wrap(broadcast_node(constant, shape, ()))


def convert(array: Array, dtype: DType) -> Array:
    """`array` with elements of `dtype`; itself if it has them."""
    return array if array.dtype == dtype else lax.convert_element_type(array, dtype)


def widen_narrow(array: Array) -> Array:
    """`array`, floats of 16 bits or fewer as float32: what several ops compute is rounded once, at the end."""
    is_narrow = array.dtype in FLOAT and array.dtype.itemsize <= 2
    return lax.convert_element_type(array, np.float32) if is_narrow else array


def conjugate_complex(array: Array) -> Array:
    """The complex conjugates; an array of real numbers itself."""
    return lax.conj(array) if array.dtype in COMPLEX else array


def adjoint(array: Array) -> Array:
    """The conjugate transposes of the matrices in the last two dimensions."""
    rank = array.ndim
    return conjugate_complex(lax.transpose(array, (*range(rank - 2), rank - 1, rank - 2)))


def is_nan(x: Array) -> Array:
    """Whether each element is NaN; False for types without NaN."""
    return lax.ne(x, x) if x.dtype in FLOAT | COMPLEX else lax.full_like(x, False, PREDICATE)


def truth(value: ArrayLike) -> Array:
    """Bools: whether each element differs from 0.  NaN does."""
    array = as_array(value)
    return array if array.dtype == bool else lax.ne(array, fill((), 0, array.dtype, array._node.device))


def stretch(array: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast a scalar, or an array with size 1 wherever it differs from `shape`, to `shape`."""
    if array.shape == shape:
        return array
    return lax.broadcast_in_dim(array, shape, range(len(shape)) if array.shape else ())


def where_mask(name: str, where: ArrayLike) -> Array:
    """`where=` as bools; DTypeError for an array of numbers, which NumPy casts to bool no more than xarr does."""
    is_array = isinstance(where, Handle | np.ndarray) and weak_kind(where) is None
    dtype = as_array(where).dtype if is_array else PREDICATE
    if dtype not in BOOL:
        raise DTypeError(f"{name}: wanted bools for where=, got an array of {dtype}; where=mask != 0")
    return truth(where)


def mask_for(name: str, x: Array, where: ArrayLike) -> Array | None:
    """The mask of a reduction in the shape of x; None if every element takes part."""
    if where is True or where is None:
        return None
    mask = where_mask(name, where)
    _, spread = broadcast_operands(name, x, mask)
    if spread.shape != x.shape:
        raise ShapeError(
            f"{name}: where must broadcast to the shape {x.shape} of the array, got {mask.shape}, with which "
            f"it would grow to {spread.shape}"
        )
    return spread


def apply_mask(x: Array, mask: Array | None, other: Array) -> Array:
    """x where the mask holds, else the scalar `other`."""
    return x if mask is None else lax.select(mask, x, stretch(other, x.shape))


def initial_value(name: str, initial: ArrayLike, dtype: DType) -> Array:
    """`initial` as a scalar of `dtype`, without its fraction if that is an integer type, as in NumPy.

    DTypeError for a complex one in a real type, ValueRangeError for a Python number beyond an integer type.
    """
    value = as_array(initial)
    if value.shape:
        raise ShapeError(f"{name}: initial must be a scalar, got shape {value.shape}")
    if dtype in BOOL:
        return truth(value)
    probe = fill((), 0, dtype)
    if common_dtype(probe, initial) == dtype:
        return promote_operands(name, initial, dtype=dtype)[0]
    if value.dtype in COMPLEX:
        raise DTypeError(
            f"{name}: the complex initial {initial!r} does not fit an accumulator of {dtype}; give dtype= "
            "or convert the array"
        )
    if dtype in INTEGER and isinstance(initial, float | np.floating):
        if not np.isfinite(initial):
            raise ValueRangeError(f"{name}: initial {initial!r} does not fit an accumulator of {dtype}")
        return promote_operands(name, int(initial), dtype=dtype)[0]
    return convert(value, dtype)


def traced_integer(name: str, argument: str, value: object) -> Array | None:
    """An integer without a value, in a traced function, as an int64 scalar; None for what has a value.

    What int64 cannot hold becomes its greatest number.  ArgumentError for what is no integer scalar.
    """
    if not (isinstance(value, Handle) and value._node.traced):
        return None
    array = as_array(value)
    if array.shape or array.dtype not in INTEGER:
        raise ArgumentError(f"{name}: wanted an int for {argument}, got {array._node.tensor_type.short()}")
    if array.dtype == np.uint64:
        array = lax.min(array, np.uint64(np.iinfo(np.int64).max))
    return lax.convert_element_type(array, np.int64)


def arranges_elements(function: Callable[P, R], keys: int = 1) -> Callable[P, R]:
    """`function`, which only arranges elements, for random keys too.

    A class whose values are arrays of something else than numbers has a method `_arrange(function, args, kwargs)`,
    which is asked where `function` itself takes no such value.  keys: how many of them it must get.
    """

    name, own = name_in_errors(function), runner(function)

    @wraps(function)
    def arranging(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return own.run(args, kwargs)  # type: ignore[no-any-return]
        except (XarrError, TypeError, ValueError) as error:
            values = [
                value for value in _items((*args, *kwargs.values())) if hasattr(type(value), "_arrange")
            ]
            if len(values) < keys:
                if isinstance(error, XarrError):
                    shorten(error, name)
                raise
            arranged: R = values[0]._arrange(function, args, kwargs)
            return arranged

    return mark_boundary(arranging)


def _items(values: Iterable[Any]) -> list[Any]:
    """The values, and those in lists and tuples of them for one level, as in `stack([a, b])`."""
    return [item for value in values for item in (value if isinstance(value, list | tuple) else [value])]
