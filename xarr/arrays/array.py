"""Array: a handle on a lazy value with NumPy's operators and methods."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr import indexing
from xarr.arrays import native_methods, numpy_protocols
from xarr.arrays.at import At
from xarr.arrays.component_methods import ComponentMethods
from xarr.arrays.indexing_methods import IndexingMethods
from xarr.arrays.number_methods import NumberMethods
from xarr.arrays.operators import (
    arithmetic,
    as_method,
    compute,
    equality,
    in_place,
    in_type_of,
    is_operand,
    operator,
    powers,
    raise_to_power,
    reflect,
    repeating,
)
from xarr.arrays.pickling import PickledValues
from xarr.arrays.reductions import ReductionMethods
from xarr.base.absent_names import ABSENT, AbsentAttributes
from xarr.base.at_once.obstacles import obstacles
from xarr.base.tracebacks import names_errors, shorten
from xarr.calls import ufuncs
from xarr.calls.arguments import as_device, backend_of, check_casting, check_order
from xarr.calls.concrete_values import wrap_recipe, wrap_value
from xarr.calls.operands import observe_product, observers
from xarr.calls.small_values import OPERATORS, convert_small, magnitude, negate, raise_to_number
from xarr.dtypes import PREDICATE, canonical
from xarr.errors import InputError, ShapeError, TracedValueError, XarrError
from xarr.indexing.at_once import read_at_once, write_at_once
from xarr.indexing.basic import record_again
from xarr.indexing.element_loops import count_element
from xarr.indexing.small_parts import (
    read_small,
    reshape_small,
    transpose_small,
    write_small,
)
from xarr.ir.ops import Convert
from xarr.ir.source import here
from xarr.lax.core import ArrayLike, apply, convert_step
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.linear_algebra import products as linear_algebra
from xarr.numpy_api.manipulation import memory_views, shapes as manipulation, tiling
from xarr.numpy_api.mathematics import division, elementwise, rounding
from xarr.numpy_api.sorting import sorting
from xarr.numpy_api.ufuncs import methods
from xarr.runtime import display, dlpack, handles, materialisation, trace_stack, view_tracking
from xarr.runtime.handles import Handle, may_be_small
from xarr.runtime.small_ops import apply_op
from xarr.shapes import Layout

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Axis = int | tuple[int, ...] | None
#: Element types of small values by their codes, less those of which NumPy has two.
_DTYPES: Final = {char: np.dtype(char) for char in "?bBhHiIlLfdFD"}


class _ArrayType(type):
    """The metaclass of Array: calling that makes an array as NumPy's `ndarray` does; `lazy.wrap` shows nodes."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        return (
            memory_views.ndarray_of(*args, **options) if cls is Array else super().__call__(*args, **options)
        )


class Array(
    AbsentAttributes,
    PickledValues,
    IndexingMethods,
    NumberMethods,
    ReductionMethods,
    ComponentMethods,
    metaclass=_ArrayType,
):
    """An n-dimensional array of numbers whose value is computed when it is needed.

    Operators and methods follow NumPy: implicit broadcasting, NumPy 2 promotion.  Arrays are values:
    `x[i] = v` and `x += 1` make this handle show another value and change no other Array.  Made by
    `xarr.asarray`, `xarr.zeros` … and by every function; called, the class makes zeros as NumPy's `ndarray`:
    `Array(shape, dtype)`, or with `buffer` a copy of what that holds.
    """

    __module__ = "xarr"
    __slots__ = ()
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *args: Any, **options: Any) -> None:
        # `wrap` does not come by here, nor does a call of Array itself.
        raise InputError(
            f"{type(self).__name__}: wanted Array itself: every operation gives one, and none of a class derived from "
            "it; let an object of the class have an Array as an attribute, x = xarr.asarray(values)"
        )

    def __dir__(self) -> list[str]:
        """Names for completion: the public ones that work, without those that only say why they are absent."""
        names = super().__dir__()
        return [name for name in names if name not in ABSENT and (name[:1] != "_" or name[:2] == "__")]

    # --- what it is --------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions; of dynamic ones the bounds, as XLA has it."""
        value = self._value
        return value.shape if type(value) is np.ndarray else self._node.shape

    @shape.setter
    def shape(self, shape: int | tuple[int, ...]) -> None:
        part, new = getattr(self, "_part", None), manipulation.reshape(self, shape)
        self._rebind(new)
        if part is not None:
            self._part = view_tracking.reshape_part(part, new.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type.  Source: NumPy and Array API, `dtype`."""
        value = self._value
        known = _DTYPES.get(value.dtype.char) if type(value) is np.ndarray else None
        return self._node.tensor_type.dtype if known is None else known

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        value = self._value
        return value.size if type(value) is np.ndarray else self._node.tensor_type.size

    @property
    def itemsize(self) -> int:
        """Bytes of an element.  Source: NumPy, `ndarray.itemsize`."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements.  Source: NumPy, `ndarray.nbytes`."""
        return self._node.tensor_type.nbytes

    @property
    def backend(self) -> str:
        """Name of the backend that computes it."""
        return str(materialisation.device_of(self._node).backend.name)

    @property
    def device(self) -> str:
        """Where it lives, as `device=` takes it, by the Array API standard.

        That is the name of the device, or of the backend where the device alone would mean another one.
        Source: NumPy and Array API, `device`.
        """
        own = materialisation.device_of(self._node)
        name: str = own.backend.devices()[own.ordinal]
        return name if backend_of(name) is own.backend else own.name

    @property
    def layout(self) -> Layout | None:
        """Order of the dimensions in memory; row-major before the value exists, None for no dense order."""
        if self._node.value is None:
            return Layout.row_major(self.ndim)
        owner = materialisation.device_of(self._node).backend
        if self._node.tensor_type.dynamic:
            return Layout.of(materialisation.to_host(self)) if owner.is_on_host else None
        layout: Layout | None = owner.layout(self._node.value, self.ndim)
        return layout

    @property
    def is_evaluated(self) -> bool:
        """Whether the value has been computed."""
        return handles.is_wanted(self) or self._node.value is not None

    @names_errors
    def evaluate(self) -> Array:
        """Compute the value now; returns the array itself."""
        materialisation.evaluate(self)
        return self

    @names_errors
    def block_until_ready(self) -> Array:
        """The array itself, once it has been computed, on a device too.  Source: jax.Array.block_until_ready."""
        return materialisation.block_until_ready(self)

    # --- looking at values ---------------------------------------------------------------------------

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        host = materialisation.to_host(self)
        if copy is False and not materialisation.device_of(self._node).backend.is_on_host:
            raise ValueError(
                f"copy=False is not possible: the memory of backend {self.backend!r} is not the host's"
            )
        if copy is False and dtype is not None and np.dtype(dtype) != host.dtype:
            raise ValueError(f"copy=False is not possible: {host.dtype} is not {np.dtype(dtype)}")
        return np.array(host, dtype, copy=copy)

    def item(self, *index: int) -> Any:
        """The element at `index`, or the only one, as a Python number.

        Raises ShapeError without an `index` for another number of elements, in a dynamic array of live ones.
        Source: NumPy, `ndarray.item`.
        """
        host = materialisation.to_host(self, "item")
        if not index and host.size != 1:
            raise ShapeError(
                f"item: wanted one element, got {host.size} in shape {host.shape}; give the index, e.g. "
                f"x.item({', '.join('0' * max(host.ndim, 1))}), or use x.tolist()"
            )
        return host.item(*index)

    def tolist(self) -> Any:
        """Nested lists of Python numbers.  Source: NumPy, `ndarray.tolist`."""
        return materialisation.to_host(self, "tolist").tolist()

    def __len__(self) -> int:
        if type(self._value) is np.ndarray and self._value.ndim:
            return len(self._value)
        if not self.ndim:
            raise InputError("an array without dimensions has no len() and nothing to iterate over")
        refuse_dynamic("len()", self, "lax.get_dimension_size(x, 0)", (0,))
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        length = len(self)
        if (self._value is None or self._device is None) and not self._node.traced:
            materialisation.evaluate(self)
        # Each as it is when it is asked for, at the line that asks: `map` has no frame of its own.
        return map(self.__getitem__, range(length))

    def __contains__(self, value: ArrayLike) -> bool:
        # In this order an error names the operands as they stand in `value in self`.
        equal = elementwise.equal(value, self) if is_operand(value) else self == value
        return bool(np.any(np.asarray(equal)))

    def __repr__(self) -> str:
        return display.text(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    def __str__(self) -> str:
        return repr(self) if self._node.traced or self._node.tensor_type.dynamic else display.elements(self)

    def __format__(self, spec: str) -> str:
        if self.ndim and spec:
            raise InputError(
                f"the format {spec!r} wants an array without dimensions, got shape {self.shape}; "
                "xarr.array2string(x, precision=3) writes the elements with 3 digits"
            )
        if spec and self._node.traced and trace_stack.is_tracing():
            raise TracedValueError(
                f"the format {spec!r} wants the value of a traced array, which it has when the function runs; "
                f"xarr.debug.print('{{x:{spec}}}', x=x) prints it then\nIt was asked for at {here()}"
            )
        return format(materialisation.to_host(self).item(), spec) if spec else str(self)

    # --- interchange -----------------------------------------------------------------------------------

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        return handles.namespace(api_version)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: ArrayLike, **options: Any) -> Any:
        if any(hasattr(other, "__array_ufunc__") and not is_operand(other) for other in inputs):
            return NotImplemented
        return numpy_protocols.ufunc(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Iterable[type], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        if not all(issubclass(kind, (Handle, np.ndarray, np.generic)) for kind in types):
            return NotImplemented
        return numpy_protocols.function(function, args, kwargs)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule with the value, computed if need be, in the memory of its device, or of the CPU if asked.

        See `xarr.runtime.dlpack.export_capsule` for what is lent and what is copied.  Raises BufferError for
        what the backend cannot lend.
        """
        return dlpack.export_capsule(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = materialisation.device_of(self._node).backend.dlpack_device()
        return device

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        return self.copy()

    def copy(self, order: str | None = "C") -> Array:
        """A new handle on the same value; what happens to one handle does not touch the other."""
        if order != "C":
            check_order("copy", order)
        if self._shown is None and not obstacles and self._weak is None:
            if self._device is not None:
                return wrap_value(self._value, self._device, sys._getframe(1))
            if (recipe := handles.recipe_of(self)) is not None:
                return wrap_recipe(self._value, recipe)
        return handles.wrap(self._node)

    @names_errors
    def to(self, backend: str) -> Array:
        """Move the values to another backend, or to a device by its name, such as "cpu"; itself if they are there.

        Raises BackendError for an unknown name, or a backend that cannot work on this machine (it says why).
        """
        if backend == self.device:
            return self
        wanted = as_device(backend)
        return self if self._node.device is wanted else handles.move(self, wanted)

    @names_errors
    def to_device(self, device: str, /, *, stream: Any = None) -> Array:
        """Copy the values to a device, given by its name or that of a backend.

        Raises BackendError for an unknown name, InputError for a `stream`: values move on the current one.
        Source: Array API, `to_device`.
        """
        if stream is not None:
            raise InputError(f"to_device: wanted stream=None, for the current stream if any, got {stream!r}")
        return self.copy() if device == self.device else handles.move(self, as_device(device))

    @names_errors
    def astype(
        self,
        dtype: DTypeLike,
        order: str | None = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Array:
        """Converted to `dtype`, if `casting` allows it.  `copy=False` returns the array itself if nothing changes."""
        wanted = canonical(dtype)
        check_order("astype", order)
        if casting != "unsafe":
            check_casting("astype", casting, [self.dtype], wanted)
        if wanted == self.dtype:
            return self.copy() if copy else self
        if self._weak is not None:
            return apply(Convert(wanted), self)
        if type(self._value) is np.ndarray and not obstacles:
            converted = convert_small(self, wanted, sys._getframe(1))
            if converted is not None:
                return converted
        op, type_ = convert_step(self._node.tensor_type, wanted)
        return apply_op(op, (self._node,), type_)

    # --- indexing ----------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Array:
        frame = sys._getframe(1)
        try:
            if self._value is None and (part := record_again(self, index, frame)) is not None:
                return part
            if not obstacles and (part := read_small(self, index, frame)) is not None:
                return part
            part = read_at_once(self, index, frame)
            if part is None:
                if type(index) is not slice:  # which means many elements, and is asked for often
                    count_element(self, index, frame)
                part = indexing.read_part(self, index)
            return part
        except XarrError as error:
            shorten(error, "")
            raise

    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        frame = sys._getframe(1)
        if not obstacles and write_small(self, index, value, frame):
            return
        try:
            if not write_at_once(self, index, value, frame):
                if type(index) is not slice:  # which means many elements, and is asked for often
                    count_element(self, index, frame)
                indexing.write(self, index, value)
        except XarrError as error:
            shorten(error, "")
            raise

    @property
    def at(self) -> At:
        """Functional updates such as `x.at[i].set(v)` or `x.at[i].add(v)`; see `xarr.arrays.at.AtIndex`.

        Source: jax.numpy, `ndarray.at`.
        """
        if self._value is None:  # small values have no dynamic dimensions
            refuse_dynamic("x.at", self, "lax.dynamic_update_slice or lax.scatter")
        return At(self)

    def _become(self, result: Array, write: view_tracking.Write, symbol: str) -> Array:
        """In-place arithmetic by the operator `symbol`: keep shape and element type, as NumPy does."""
        if result._node.type is not self._node.type:
            result = in_type_of(self, result, symbol)
        if getattr(self, "_part", None) is not None and view_tracking.is_put_back(self):
            self._rebind(result)
        else:
            self._show(result, write)
        return self

    # --- operators -----------------------------------------------------------------------------------------

    __add__, __radd__, __iadd__ = arithmetic("+", elementwise.add)
    __sub__, __rsub__, __isub__ = arithmetic("-", elementwise.subtract)
    __mul__, __rmul__, __imul__ = repeating("*", elementwise.multiply)
    __truediv__, __rtruediv__, __itruediv__ = arithmetic("/", elementwise.divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = arithmetic("//", division.floor_divide)
    __mod__, __rmod__, __imod__ = arithmetic("%", division.remainder)
    __rpow__, __ipow__ = reflect("**", elementwise.pow), in_place("**", raise_to_power)

    def __pow__(self, other: ArrayLike, modulo: Any = None) -> Array:
        """self ** other, by `xarr.pow`; InputError for a modulo."""
        if modulo is not None:
            raise InputError("pow: xarr arrays take no third argument; write pow(x, y) % modulo")
        if not may_be_small(self) and (type(other) is int or type(other) is float):
            return powers.run((self, other), {})  # type: ignore[no-any-return]
        if type(other) is int and other == 2 and not obstacles:
            square = OPERATORS["*"].combine(self, self, sys._getframe(1))
            if square is not None and square.dtype != PREDICATE:  # the square of bools is a number
                return square
        if (type(other) is int or type(other) is float) and not obstacles:
            power = raise_to_number(self, other, sys._getframe(1))
            if power is not None:
                return power
        return raise_to_power(self, other) if is_operand(other) else NotImplemented

    __and__, __rand__, __iand__ = arithmetic("&", elementwise.bitwise_and)
    __or__, __ror__, __ior__ = arithmetic("|", elementwise.bitwise_or)
    __xor__, __rxor__, __ixor__ = arithmetic("^", elementwise.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = arithmetic("<<", elementwise.left_shift)
    __rshift__, __rrshift__, __irshift__ = arithmetic(">>", elementwise.right_shift)
    __eq__ = equality("==", elementwise.equal, False)  # type: ignore[assignment]
    __ne__ = equality("!=", elementwise.not_equal, True)  # type: ignore[assignment]
    __lt__, __le__ = operator("<", elementwise.less), operator("<=", elementwise.less_equal)
    __gt__, __ge__ = operator(">", elementwise.greater), operator(">=", elementwise.greater_equal)

    def __divmod__(self, other: ArrayLike) -> tuple[Array, Array]:
        """self // other and self % other."""
        return compute(division.divmod, self, other)

    def __rdivmod__(self, other: ArrayLike) -> tuple[Array, Array]:
        """other // self and other % self."""
        return compute(division.divmod, other, self)

    def __neg__(self) -> Array:
        """-self, by `xarr.negative`."""
        is_float = type(self._value) is float and not obstacles
        if is_float and (result := negate(self, sys._getframe(1))) is not None:
            return result
        return elementwise.negative(self)

    def __pos__(self) -> Array:
        """+self, by `xarr.positive`."""
        return elementwise.positive(self)

    def __abs__(self) -> Array:
        """abs(self), by `xarr.abs`."""
        is_float = type(self._value) is float and not obstacles
        if is_float and (result := magnitude(self, sys._getframe(1))) is not None:
            return result
        return elementwise.abs(self)

    def __round__(self, ndigits: int | None = None) -> Array:
        """round(self, ndigits), by `xarr.round`: an Array, without ndigits too."""
        return rounding.round(self, 0 if ndigits is None else ndigits)

    def __invert__(self) -> Array:
        """~self, by `xarr.bitwise_invert`."""
        return elementwise.bitwise_invert(self)

    def __matmul__(self, other: ArrayLike) -> Array:
        """self @ other, by `xarr.matmul`."""
        try:
            result = linear_algebra.matmul(self, other)
            if observers:
                observe_product(self, other)
            return result
        except XarrError as error:
            shorten(error, "")
            raise

    def __rmatmul__(self, other: ArrayLike) -> Array:
        """other @ self, by `xarr.matmul`."""
        return compute(_product, other, self)

    def __imatmul__(self, other: ArrayLike) -> Array:
        """self @= other, which makes self show the result of `xarr.matmul`."""
        return self._become(compute(_product, self, other), ("set", view_tracking.ALL, "{part} @ v"), "@")

    # --- methods: each is the function of the same name ------------------------------------------------

    @property
    def T(self) -> Array:
        """The dimensions in reverse order.  Source: NumPy and Array API, `T`."""
        if not obstacles and may_be_small(self):
            transposed = transpose_small(self, (), sys._getframe(1))
            if transposed is not None:
                return transposed
        return manipulation.transpose(self)

    @property
    @names_errors
    def mT(self) -> Array:
        """The last two dimensions exchanged.  Source: NumPy and Array API, `mT`."""
        return manipulation.matrix_transpose(self)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
        """The elements under another shape; one size may be -1."""
        wanted = shape[0] if len(shape) == 1 else shape
        if order != "C" or copy is not None:
            return manipulation.reshape(self, wanted, order, copy=copy)
        if not obstacles and may_be_small(self):
            sizes = wanted if type(wanted) is tuple else shape
            reshaped = reshape_small(self, sizes, sys._getframe(1))
            if reshaped is not None:
                return reshaped
        return manipulation.reshape(self, wanted)

    def transpose(self, *axes: Any) -> Array:
        """The dimensions in the order `axes`, reversed by default."""
        if not obstacles and may_be_small(self):
            own = axes[0] if len(axes) == 1 and type(axes[0]) is tuple else axes
            if (own or not axes) and (transposed := transpose_small(self, own, sys._getframe(1))) is not None:
                return transposed
        if not axes:
            return manipulation.transpose(self)
        return manipulation.transpose(self, axes if len(axes) > 1 or isinstance(axes[0], int) else axes[0])

    def ravel(self, order: str = "C") -> Array:
        """All elements in one dimension."""
        row = reshape_small(self, (-1,), sys._getframe(1)) if order == "C" and not obstacles else None
        return row if row is not None else manipulation.ravel(self, order)

    @names_errors
    def flatten(self, order: str = "C") -> Array:
        """All elements in one dimension, as `ravel`; in NumPy too the result is an array of its own.

        Source: NumPy, `ndarray.flatten`.
        """
        return manipulation.ravel(self, order).copy()

    swapaxes = as_method(manipulation.swapaxes, "Two dimensions exchanged.")
    squeeze = as_method(manipulation.squeeze, "Without dimensions of size 1.")
    repeat = as_method(tiling.repeat, "Each element `repeats` times.")
    argsort = as_method(sorting.argsort, "Indices that sort along `axis`.")
    dot = as_method(linear_algebra.dot, "NumPy's dot product.")
    round = as_method(rounding.round, "Round to `decimals` decimals, ties to even.")
    clip = as_method(elementwise.clip, "Not below `min` nor above `max`.")


def _product(x1: ArrayLike, x2: ArrayLike) -> Array:
    """x1 @ x2."""
    result = linear_algebra.matmul(x1, x2)
    if observers:
        observe_product(x1, x2)
    return result


handles.bind(Array)
ufuncs.bind(methods)
native_methods.install_when_busy()
