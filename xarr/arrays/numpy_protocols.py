"""NumPy's own functions called with Arrays: `np.sin(x)`, `np.concatenate([x, y])`, `np.linalg.norm(x)`.

NumPy asks an argument of another class what to do: NEP 13 for ufuncs, NEP 18 for all others.  Here it is
xarr's function of the same name that runs, so that results are Arrays and stay lazy.  What xarr has not of NumPy's is
refused with what to write instead.  Ufuncs of other libraries (scipy.special, numba, `np.frompyfunc`) run on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from sys import _getframe as frame_of
from typing import Any, Final

import numpy as np

from xarr import backend as backends
from xarr.base.at_once.obstacles import obstacles
from xarr.base.tracebacks import shorten
from xarr.calls.small_values import OPERATORS
from xarr.dtypes import ANY, EXTENDED_FLOAT, SUB_BYTE
from xarr.errors import InputError, TracedValueError, XarrError
from xarr.ir.device import Device
from xarr.runtime import view_tracking
from xarr.runtime.handles import Handle, common_device, from_host, namespace
from xarr.runtime.materialisation import device_of, to_host

#: Whether writing to one array shows in another.
_OF_MEMORY: Final = (np.may_share_memory, np.shares_memory)
#: The symbols of the operators that are ufuncs, which numbers and arrays of NumPy's ask for: `np.float32(2) * x`.
_SYMBOLS: Final[dict[Any, str]] = {
    **{np.add: "+", np.subtract: "-", np.multiply: "*", np.true_divide: "/"},
    **{np.floor_divide: "//", np.remainder: "%", np.left_shift: "<<", np.right_shift: ">>"},
    **{np.bitwise_and: "&", np.bitwise_or: "|", np.bitwise_xor: "^", np.equal: "==", np.not_equal: "!="},
    **{np.less: "<", np.less_equal: "<=", np.greater: ">", np.greater_equal: ">="},
}


def ufunc(called: np.ufunc, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Call NumPy's ufunc `called`, or a method of it such as `reduce`, with inputs of which one is an Array.

    Raises as xarr's own, and InputError for a ufunc of NumPy's that xarr has not.  Those of other libraries are
    computed on the host.
    """
    if called in _SYMBOLS and method == "__call__" and not options and not obstacles:
        left, right = inputs
        small = OPERATORS[_SYMBOLS[called]]
        if isinstance(left, Handle):
            result = small.combine(left, right, frame_of(2))
        else:
            result = small.combine_reflected(left, right, frame_of(2))
        if result is not None:
            return result
    own = _counterpart(called)
    if own is None and getattr(np, called.__name__, None) is called:
        raise InputError(_refusal(called, method))
    try:
        if own is None:
            return _on_host(called, method, inputs, options)
        wanted = own if method == "__call__" else getattr(own, method)
        return wanted(*inputs, **options)
    except XarrError as error:
        shorten(error, called.__name__)
        raise


def function(called: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Any:
    """Answer a call of NumPy's function `called` by xarr's of the same name.  InputError if there is none."""
    if called in _OF_MEMORY:
        return _share_memory(called, *args, **kwargs)
    own = _counterpart(called)
    if own is None:
        raise InputError(_refusal(called, "__call__"))
    if called is np.broadcast_arrays and not all(map(_is_of_numbers, args)):
        return _with_objects(args)
    try:
        return own(*args, **kwargs)
    except XarrError as error:
        shorten(error, called.__name__)
        raise


def _on_host(called: np.ufunc, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """The result of another library's ufunc as Arrays; Arrays among its `out` show it.

    Raises TracedValueError for an Array without a value, InputError for `ufunc.at` of an Array.
    """
    outs = options.get("out") or ()
    handles = [each for each in (*inputs, *outs, *options.values()) if isinstance(each, Handle)]
    if any(handle._node.traced for handle in handles):
        raise TracedValueError(_refusal_in_trace(called))
    if method == "at" and isinstance(inputs[0], Handle):
        raise InputError(
            f"{called.__name__}.at writes into its first argument, which an Array is not; give it a copy"
        )
    name = called.__name__
    refused = [view_tracking.refusal(name, each, called=name) for each in outs if isinstance(each, Handle)]
    if any(refused):
        raise InputError(next(filter(None, refused)))
    device = (common_device(handles) or backends.default_device()).committed
    host_outs = [_buffer(each, options.get("where", True)) for each in outs]
    host_options = {name: host_value(value) for name, value in options.items() if name != "out"}
    if outs:
        host_options["out"] = tuple(host_outs)
    results = getattr(called, method)(*map(host_value, inputs), **host_options)
    if not outs:
        many = isinstance(results, tuple)
        return tuple(array_of(each, device) for each in results) if many else array_of(results, device)
    for out, host in zip(outs, host_outs, strict=True):
        if isinstance(out, Handle):
            out._show(from_host(host, device))
    computed = results if isinstance(results, tuple) else (results,)
    shown = tuple(
        array_of(each, device) if out is None else out for out, each in zip(outs, computed, strict=True)
    )
    return shown if isinstance(results, tuple) else shown[0]


def _buffer(out: Any, where: Any) -> Any:
    """Memory for the result that `out` is to show, with its values where no result is written."""
    if not isinstance(out, Handle):
        return out
    return np.empty(out._node.shape, out._node.dtype) if where is True else np.array(to_host(out))


def host_value(value: Any) -> Any:
    """An argument for a function of NumPy arrays: of Arrays the values, also in lists and tuples of them."""
    if isinstance(value, Handle):
        host = to_host(value)
        return host if host.shape else host[()]
    if type(value) in (list, tuple) and any(isinstance(each, Handle | list | tuple) for each in value):
        return type(value)(map(host_value, value))
    return value


def array_of(result: Any, device: Device | None = None) -> Any:
    """A result of a function of NumPy arrays as an Array, by default on the default device.

    Python numbers, and arrays of text and objects, stay as they are.
    """
    if not isinstance(result, np.ndarray | np.generic) or result.dtype not in ANY:
        return result
    values = np.asarray(result)
    # A view may be of an array that is written to later.
    return from_host(values if values.base is None else values.copy(), device or backends.default_device())


def _share_memory(called: Callable[..., bool], a: Any, b: Any, *options: Any, **named: Any) -> bool:
    """Whether a NumPy array shows the memory of an Array; no Array shows what is written to another one."""
    if isinstance(a, Handle) and isinstance(b, Handle):
        return False
    if any(isinstance(each, Handle) and each._node.value is None for each in (a, b)):
        return False
    return called(host_value(a), host_value(b), *options, **named)


def _is_of_numbers(value: Any) -> bool:
    return isinstance(value, Handle) or np.asarray(value).dtype.kind not in "OUS"


def _with_objects(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """`np.broadcast_arrays` where there are None or texts, as in matplotlib's bars: what is no Array stays NumPy's."""
    shape = np.broadcast_shapes(*map(np.shape, arrays))
    spread = namespace(None).broadcast_to
    return tuple(
        spread(operand, shape) if isinstance(operand, Handle) else np.broadcast_to(operand, shape)
        for operand in arrays
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
        function: Callable[..., Any] = attrgetter(path)(namespace(None))
    except AttributeError:
        return None
    return function


class HostMemory(Handle):
    """Attributes of NumPy's arrays and of pandas' by which other libraries read the value of an Array."""

    __slots__ = ()

    #: To pandas an array of its own around one of NumPy's, so that it selects by masks: `frame[mask]`.
    _typ = "npy_extension"

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The value as a read-only NumPy array.  Source: pandas, `NumpyExtensionArray.to_numpy`."""
        return to_host(self)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next in each dimension of `numpy.asarray(x)`, computed if need be.

        Source: NumPy, `ndarray.strides`.
        """
        return np.asarray(self).strides

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """AttributeError where `__array__` is to be asked: types that NumPy has not, repeated elements, other memory.

        `data` is the memory itself, not an address: the handle may show another value tomorrow.
        """
        is_on_host = self._shown is None or device_of(self._node).backend.is_on_host
        host = to_host(self) if is_on_host else None
        if host is not None and (host.dtype in EXTENDED_FLOAT or host.dtype in SUB_BYTE):
            host = None
        if host is None or (0 in host.strides and host.size > 1):
            raise AttributeError(
                "__array_interface__ is for memory of the host that NumPy has a code for and that is dense"
            )
        memory = host.ravel(order="K")  # where the dimensions lie in another order no copy either
        if memory.base is None:  # a copy: no order of the dimensions makes them dense
            host = memory = np.ascontiguousarray(host)
            memory.flags.writeable = False
        # With strides, since without them PIL wants a buffer.
        return {
            "version": 3,
            "shape": host.shape,
            "typestr": host.dtype.str,
            "strides": host.strides,
            "data": memory,
        }


def _refusal_in_trace(called: np.ufunc) -> str:
    name = called.__name__
    own = (
        f"xarr.lax.{name} does it, or" if hasattr(namespace(None).lax, name) else "xarr has no such function:"
    )
    return (
        f"the ufunc {name} belongs to another library and computes on the host, but in a traced function there are no "
        f"values yet; {own} call it outside and give the function its result, or within by xarr.pure_callback"
    )


def _refusal(called: Callable[..., Any], method: str) -> str:
    name = called.__name__ if method == "__call__" else f"{called.__name__}.{method}"
    if isinstance(called, np.ufunc):
        shown = f"np.{name}" if getattr(np, called.__name__, None) is called else f"the ufunc {name}"
    else:
        module = getattr(called, "__module__", None) or ""
        is_numpys = module.partition(".")[0] == "numpy"
        shown = f"{module.replace('numpy', 'np', 1)}.{name}" if is_numpys else f"the function {name}"
    return f"{shown} does not take xarr arrays; pass numpy.asarray(x) for a NumPy result"
