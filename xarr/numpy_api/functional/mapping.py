"""Functions of users applied along axes, over axes, and to each element.

A function that consists of xarr's operations is recorded once, so that it runs for all elements at once or
in one compiled loop.  It should have no effects, since it is called once only.  A function that looks at
values (`if x > 0`, `math.sqrt(x)`) cannot be recorded, which a TracedValueError says and no other error: it is
called again, for each slice with NumPy's values, as NumPy does, which looks at the arrays, takes Python's time for
each, and is an error in a traced function.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.broadcasting import Misfit, align_numpy
from xarr.base.host_arrays import host_array
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.calls.arguments import convert
from xarr.calls.concrete_values import is_known
from xarr.calls.operands import align_observed, as_array, broadcast_operands
from xarr.dtypes import canonical
from xarr.errors import InputError, ShapeError, TracedValueError, pluralize
from xarr.explanation.errors import broadcast_error
from xarr.indexing.element_loops import count
from xarr.indexing.flat import Flat
from xarr.ir.device import Device
from xarr.ir.graph import Graph
from xarr.ir.ops import Map
from xarr.ir.types import TensorType
from xarr.lax.core import ArrayLike, check_callable, integers, items, put
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.lax.tracing import Computation, record, tuple_of
from xarr.numpy_api.creation.arrays import argument
from xarr.numpy_api.manipulation.shapes import broadcast_to
from xarr.runtime.handles import Handle, common_device, wrap
from xarr.runtime.materialisation import evaluate, to_host
from xarr.shapes import normalize_axis
from xarr.tree import LEAF

__all__ = ["apply_along_axis", "apply_over_axes", "broadcast", "vectorize"]

Function = Callable[..., Any]


class broadcast:
    """The shape that arrays broadcast to, and an iterator over the elements that meet in it, Arrays without dimensions.

    shape, size, ndim, nd: of what the arrays broadcast to; numiter: how many there are; iters: their elements in
    the order of that shape; index: how many tuples of elements were given so far.
    One `broadcast` among the arrays stands for its own.  Raises BroadcastError, with the fixes that would work.
    Source: NumPy, `broadcast`.
    """

    def __init__(self, *arrays: ArrayLike | broadcast) -> None:
        own = [each._arrays if isinstance(each, broadcast) else (as_array(each),) for each in arrays]
        self._arrays: tuple[Array, ...] = tuple(array for each in own for array in each)
        for array in self._arrays:
            refuse_dynamic("broadcast", array, "xarr.broadcast_arrays")
        self.shape = common_shape("broadcast", [array.shape for array in self._arrays])
        self.size, self.ndim, self.nd = math.prod(self.shape), len(self.shape), len(self.shape)
        self.numiter, self.index = len(self._arrays), 0

    @cached_property
    def iters(self) -> tuple[Flat, ...]:
        spread = [broadcast_to(array, self.shape) for array in self._arrays]
        evaluate(*[array for array in spread if not array._node.traced])
        return tuple(array.flat for array in spread)

    def reset(self) -> None:
        """Begin with the first elements again."""
        self.index = 0

    def __next__(self) -> tuple[Array, ...]:
        if self.index >= self.size:
            raise StopIteration
        self.index += 1
        count(sys._getframe(1), 1)
        return tuple(each[self.index - 1] for each in self.iters)

    def __iter__(self) -> broadcast:
        return self


def common_shape(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that `shapes` broadcast to; BroadcastError by the name of the function that asks."""
    alignment = align_numpy(*shapes)
    if isinstance(alignment, Misfit):
        raise broadcast_error(name, tuple(shapes))
    return alignment.result


# --- along and over axes --------------------------------------------------------------------------


@names_errors
def apply_along_axis(func1d: Function, axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """`func1d(vector, *args, **kwargs)` of each vector along `axis`.

    The dimensions of its result, the same for all vectors, stand where `axis` was.  See the module for what
    is recorded.  Raises AxisError, ShapeError if there is no vector.  Source: NumPy, `apply_along_axis`.
    """
    check_callable("apply_along_axis", "func1d", func1d)
    array = as_array(arr)
    target = normalize_axis(axis, len(array.shape))
    outer = (*array.shape[:target], *array.shape[target + 1 :])
    if not math.prod(outer):
        raise ShapeError(
            f"apply_along_axis: shape {array.shape} has no vector along axis {axis} to apply it to"
        )
    order = [*(dim for dim in range(len(array.shape)) if dim != target), target]
    rows = lax.reshape(lax.transpose(array, order), (math.prod(outer), array.shape[target]))
    try:
        results = each_slice(lambda row: argument(func1d(row, *args, **kwargs)), [rows])
    except TracedValueError:
        if not is_known(array):
            raise
        values = np.apply_along_axis(_for_numpy(func1d), 1, to_host(rows), *args, **kwargs)
        results = results_on(array._node.device, values)
    inner = results.shape[1:]
    results = lax.reshape(results, (*outer, *inner))
    first, last = range(target), range(target, len(outer))
    middle = range(len(outer), len(outer) + len(inner))
    return lax.transpose(results, [*first, *middle, *last])


def _for_numpy(function: Function) -> Function:
    """`function` whose Arrays NumPy sees as its own."""

    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if isinstance(result, tuple):
            return tuple(to_host(one) if isinstance(one, Handle) else one for one in result)
        return to_host(result) if isinstance(result, Handle) else result

    return call


@names_errors
def apply_over_axes(func: Function, a: ArrayLike, axes: int | Sequence[int]) -> Array:
    """`func(a, axis)` for the first of `axes`, of its result for the next one, and so on.

    A result with a dimension less gets it back with size 1.  Raises ShapeError for any other result,
    AxisError.  Source: NumPy, `apply_over_axes`.
    """
    check_callable("apply_over_axes", "func", func)
    array = as_array(a)
    rank = len(array.shape)
    numbers = axes if isinstance(axes, Sequence | np.ndarray) and np.ndim(axes) else (axes,)
    for axis in integers("apply_over_axes", "axes", numbers):
        dim = normalize_axis(axis, rank)
        result = argument(func(array, dim))
        if len(result.shape) == rank - 1:
            result = lax.expand_dims(result, (dim,))
        if len(result.shape) != rank:
            raise ShapeError(
                f"apply_over_axes: wanted a result of rank {rank} or {rank - 1} from the function, got shape "
                f"{result.shape}"
            )
        array = result
    return array


# --- each element ---------------------------------------------------------------------------------


class vectorize:
    """`pyfunc`, a function of scalars, as a function of arrays, which broadcast; also a decorator.

    otypes: element types of the results, as a string of codes or a list of dtypes; by default what `pyfunc`
    returns.  doc: the documentation.  excluded: names and positions of arguments that are handed over whole.
    cache: whether a function that is not recorded is called once less.  signature: such as "(n),(n)->()" for a
    function of vectors and so on, called for the slices along all other dimensions.

    See the module for what is recorded.  Python numbers count as arrays of rank 0, as in NumPy.  Calls raise
    BroadcastError, ShapeError for what does not fit the signature or is no scalar without one, and
    ShapeError for no elements if `pyfunc` cannot be recorded and `otypes` do not say what is returned.
    Source: NumPy, `vectorize`.
    """

    pyfunc: Any
    __name__: str

    def __init__(
        self,
        pyfunc: Any = np._NoValue,
        otypes: str | Iterable[Any] | None = None,
        doc: str | None = None,
        excluded: Iterable[int | str] | None = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.otypes = (
            None if otypes is None else [canonical(one) for one in items("vectorize", "otypes", otypes)]
        )
        self.excluded: frozenset[int | str] = frozenset(() if excluded is None else excluded)
        self.cache = cache
        self.signature = signature
        self._cores = None if signature is None else _cores(signature)
        self._doc = doc
        self.pyfunc = pyfunc
        if not self._is_without_function:
            self._take(pyfunc)

    @property
    def _is_without_function(self) -> bool:
        return self.pyfunc is np._NoValue

    def _take(self, pyfunc: Any) -> None:
        if not callable(pyfunc):
            raise InputError(f"vectorize: wanted a function, got {pyfunc!r}")
        self.pyfunc = pyfunc
        self.__name__ = getattr(pyfunc, "__name__", type(pyfunc).__name__)
        self.__doc__ = getattr(pyfunc, "__doc__", None) if self._doc is None else self._doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_without_function:
            if len(args) != 1 or kwargs:
                raise InputError("vectorize: wanted the function to decorate, and nothing else")
            self._take(args[0])
            return self
        positions = [position for position in range(len(args)) if position not in self.excluded]
        names = [name for name in kwargs if name not in self.excluded]

        def fill_in(*values: Any) -> Any:
            whole, named = list(args), dict(kwargs)
            for position, value in zip(positions, values, strict=False):
                whole[position] = value
            named.update(zip(names, values[len(positions) :], strict=True))
            return self.pyfunc(*whole, **named)

        operands = [*(args[position] for position in positions), *(kwargs[name] for name in names)]
        call = fill_in if kwargs or len(positions) < len(args) else self.pyfunc
        results = (
            self._call_on_scalars(call, operands)
            if self._cores is None
            else self._call_on_slices(call, operands)
        )
        return self._convert_results(results)

    def _convert_results(self, output: Any) -> Any:
        """Results in the element types that were asked for."""
        results = output if isinstance(output, tuple) else (output,)
        if self.otypes is None:
            return output
        if len(results) != len(self.otypes):
            raise InputError(
                f"vectorize: {self.__name__} returned {len(results)} results, otypes says {len(self.otypes)}"
            )
        typed = tuple(convert(one, dtype) for one, dtype in zip(results, self.otypes, strict=True))
        return typed if isinstance(output, tuple) else typed[0]

    def _on_host(self, call: Function, operands: list[Any]) -> Any:
        """NumPy's own loop."""
        values = [to_host(one) if isinstance(one, Handle) else one for one in operands]
        if self.otypes is None and any(np.size(value) == 0 for value in values):
            raise ShapeError(
                f"vectorize: {self.__name__} cannot be recorded, as it depends on values, and there is no element "
                "to call it with; give otypes="
            )
        otypes = None if self.otypes is None else [dtype.char for dtype in self.otypes]
        loop = np.vectorize(_for_numpy(call), otypes, cache=self.cache, signature=self.signature)
        return results_on(common_device(operands), loop(*values))

    # --- without a signature ---

    def _call_on_scalars(self, call: Function, operands: list[Any]) -> Any:
        if not operands:
            return results_as_arrays(call())
        arrays = broadcast_operands("vectorize", *map(as_array, operands))
        for array in arrays:
            refuse_dynamic("vectorize", array, "lax.map_elements")
        try:
            results = _elementwise(lambda *scalars: results_as_arrays(call(*scalars)), arrays)
        except TracedValueError:
            if not is_known(*arrays):
                raise
            results = None
        return self._on_host(call, operands) if results is None else results

    # --- with a signature ---

    def _call_on_slices(self, call: Function, operands: list[Any]) -> Any:
        inner, outer = self._cores or ((), ())
        if len(operands) != len(inner):
            raise InputError(
                f"vectorize: signature {self.signature!r} wants {pluralize(len(inner), 'argument')}, "
                f"got {len(operands)}"
            )
        arrays = [as_array(one) for one in operands]
        for array in arrays:
            refuse_dynamic("vectorize", array, "lax.map")
        sizes = _core_sizes(arrays, inner)
        loops = tuple(
            array.shape[: len(array.shape) - len(core)] for array, core in zip(arrays, inner, strict=True)
        )
        alignment = align_observed("vectorize", loops, tuple(array.dtype for array in arrays))
        loop = alignment.result
        flat = [
            _flat_loops(array, len(core), loop, dimensions)
            for array, core, dimensions in zip(arrays, inner, alignment.dimensions, strict=True)
        ]

        def call_checked(*slices: Array) -> Any:
            output = results_as_arrays(call(*slices))
            _check_results(
                self.signature or "", output if isinstance(output, tuple) else (output,), outer, sizes
            )
            return output

        try:
            output = each_slice(call_checked, flat)
        except TracedValueError:
            if not is_known(*arrays):
                raise
            return self._on_host(call, operands)
        results = output if isinstance(output, tuple) else (output,)
        shaped = tuple(lax.reshape(one, (*loop, *one.shape[1:])) for one in results)
        return shaped if isinstance(output, tuple) else shaped[0]


def _elementwise(function: Function, arrays: Sequence[Array]) -> Any:
    """`function` recorded for one element: on whole arrays if it is element-wise, else in a loop.

    None if its results do not depend on the arguments, so that it must be called for each.
    """
    types = [TensorType((), array.dtype) for array in arrays]
    device = common_device(arrays)
    computation = record("vectorize", "pyfunc", function, tuple_of(*[LEAF] * len(types)), types, device)
    if any(result.tensor_type.shape for result in computation.graph.results):
        raise ShapeError(
            f"vectorize: wanted scalars from pyfunc, got {computation.graph.results[0].type}; give signature= for "
            "others"
        )
    if is_known(*arrays) and not any(result.traced for result in computation.graph.results):
        # The same for all elements, or taken from elsewhere at each call.
        return None
    whole = _on_whole_arrays(computation, arrays)
    if whole is None:
        flat = [lax.reshape(array, (array.size,)) for array in arrays]
        mapped = each_slice(function, flat)
        results = [
            lax.reshape(one, arrays[0].shape) for one in (mapped if isinstance(mapped, tuple) else [mapped])
        ]
    else:
        results = whole
    return tuple(results) if computation.structure != LEAF else results[0]


def _on_whole_arrays(computation: Computation, arrays: Sequence[Array]) -> list[Array] | None:
    """The results of an element-wise computation; None of another one."""
    if any(node.tensor_type.shape for node in computation.captured):
        return None
    shape = arrays[0].shape
    captured = [lax.broadcast_in_dim(wrap(node), shape, ()) for node in computation.captured]
    nodes = [array._node for array in (*arrays, *captured)]
    results = []
    for result in computation.graph.results:
        op = Map(tuple(range(len(shape))), Graph(computation.graph.parameters, [result]))
        whole = op.decompose(*nodes)
        if whole is None:
            return None
        results.append(wrap(whole))
    return results


# --- signatures -----------------------------------------------------------------------------------

_NAME: Final = r"\w+"
_CORE: Final = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_SIGNATURE: Final = re.compile(rf"({_CORE}(?:,{_CORE})*)?->({_CORE}(?:,{_CORE})*)")

Cores = tuple[tuple[str, ...], ...]


def _cores(signature: str) -> tuple[Cores, Cores]:
    """The names of the core dimensions of arguments and results."""
    match = _SIGNATURE.fullmatch(re.sub(r"\s+", "", signature))
    if match is None:
        raise _SignatureError(f'vectorize: wanted a signature such as "(m,n),(n)->(m)", got {signature!r}')
    sides = [re.findall(_CORE, side or "") for side in match.groups()]
    inner, outer = (tuple(tuple(re.findall(_NAME, core)) for core in side) for side in sides)
    return inner, outer


class _SignatureError(InputError, ValueError):
    """NumPy says ValueError."""


def _core_sizes(arrays: Sequence[Array], cores: Cores) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for number, (array, core) in enumerate(zip(arrays, cores, strict=True)):
        if len(array.shape) < len(core):
            raise ShapeError(
                f"vectorize: wanted rank {len(core)} or more for argument {number}, of core dimensions "
                f"({', '.join(core)}), got shape {array.shape}"
            )
        for name, size in zip(core, array.shape[len(array.shape) - len(core) :], strict=True):
            if sizes.setdefault(name, size) != size:
                raise ShapeError(
                    f"vectorize: the core dimension {name} has size {sizes[name]}, and size {size} in argument "
                    f"{number} of shape {array.shape}"
                )
    return sizes


def _check_results(signature: str, results: Sequence[Array], cores: Cores, sizes: dict[str, int]) -> None:
    if len(results) != len(cores):
        raise ShapeError(
            f"vectorize: signature {signature!r} says {len(cores)} results, pyfunc returned {len(results)}"
        )
    known = dict(sizes)
    for result, core in zip(results, cores, strict=True):
        fits = len(result.shape) == len(core) and all(
            known.setdefault(name, size) == size for name, size in zip(core, result.shape, strict=True)
        )
        if not fits:
            raise ShapeError(
                f"vectorize: signature {signature!r} says core dimensions ({', '.join(core)}) of sizes {known}, "
                f"pyfunc returned shape {result.shape}"
            )


def _flat_loops(array: Array, rank: int, loop: tuple[int, ...], dimensions: tuple[int, ...]) -> Array:
    """`array` with its loop dimensions laid into `loop` and made one; its last `rank` dimensions are the core."""
    core = array.shape[len(array.shape) - rank :]
    axes = (*dimensions, *range(len(loop), len(loop) + rank))
    laid = lax.broadcast_in_dim(array, (*loop, *core), axes)
    return lax.reshape(laid, (math.prod(loop), *core))


def results_as_arrays(result: Any) -> Any:
    """Make an Array, or a tuple of Arrays, of a function's result."""
    return tuple(argument(one) for one in result) if isinstance(result, tuple) else argument(result)


def results_on(device: Device | None, result: Any) -> Any:
    """Make an Array on `device`, or a tuple of them, of a result of NumPy's."""
    if isinstance(result, tuple):
        return tuple(results_on(device, one) for one in result)
    return put(host_array(result), device)


def each_slice(function: Callable[..., Any], arrays: Sequence[Array]) -> Any:
    """`function` of the slices of all arrays along their first dimension; its results are stacked.

    It is recorded once, and called outright for a single slice.
    """
    if not arrays or arrays[0].shape[0] == 1:
        results = results_as_arrays(
            function(*[lax.index_in_dim(array, 0, 0, keepdims=False) for array in arrays])
        )
        if isinstance(results, tuple):
            return tuple(lax.expand_dims(one, (0,)) for one in results)
        return lax.expand_dims(as_array(results), (0,))
    return lax.map(lambda slices: results_as_arrays(function(*slices)), tuple(arrays))
