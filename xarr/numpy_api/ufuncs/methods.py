"""The options of a call and the methods of a ufunc; see `xarr.calls.ufuncs`.

Element types are NumPy's own answer: `numpy.ufunc.resolve_dtypes` says what a ufunc computes in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from xarr import indexing, lax
from xarr.base.typing import Array
from xarr.calls.arguments import apply_mask, check_casting, check_order, convert, mask_for, stretch, truth
from xarr.calls.operands import DType, as_array, promote_operands
from xarr.calls.outputs import show, target_of
from xarr.calls.remembered_calls import remembering
from xarr.calls.ufuncs import NOT_GIVEN, Axes, Options, OptionsOfProducts, UFunc
from xarr.dtypes import BOOL, COMPLEX, FLOAT, canonical, promote
from xarr.errors import DTypeError, InputError, ShapeError, pluralize
from xarr.lax.core import ArrayLike, flag
from xarr.numpy_api.manipulation.shapes import moveaxis
from xarr.numpy_api.ufuncs import folds
from xarr.runtime.handles import Handle, weak_kind
from xarr.shapes import normalize_axes

#: Commutative functions: the reduction of numbers, and that of bools.
_NATIVE: Final[dict[str, tuple[Callable[..., Array], Callable[..., Array]]]] = {
    "add": (lax.reduce_sum, lax.reduce_or),
    "multiply": (lax.reduce_prod, lax.reduce_and),
    "maximum": (lax.reduce_max, lax.reduce_max),
    "minimum": (lax.reduce_min, lax.reduce_min),
    "bitwise_and": (lax.reduce_and, lax.reduce_and),
    "bitwise_or": (lax.reduce_or, lax.reduce_or),
    "bitwise_xor": (lax.reduce_xor, lax.reduce_xor),
    "logical_and": (lax.reduce_and, lax.reduce_and),
    "logical_or": (lax.reduce_or, lax.reduce_or),
    "logical_xor": (lax.reduce_xor, lax.reduce_xor),
}
#: The same for `accumulate`.
_RUNNING: Final[dict[str, tuple[Callable[..., Array], Callable[..., Array]]]] = {
    "add": (lax.cumsum, lax.cummax),
    "multiply": (lax.cumprod, lax.cummin),
    "maximum": (lax.cummax, lax.cummax),
    "minimum": (lax.cummin, lax.cummin),
    "logical_and": (lax.cummin, lax.cummin),
    "logical_or": (lax.cummax, lax.cummax),
}
#: The floats that are not NumPy's own.
_NARROW: Final = FLOAT - {np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)}
#: The methods of `x.at[…]` for the functions that it has.
_OF_AT: Final = {name: name for name in ("add", "subtract", "multiply", "divide", "power")}
#: Commutative functions of which NumPy knows no identity.
_REORDERABLE: Final = frozenset({"maximum", "minimum", "fmax", "fmin"})


# --- calls with options ---------------------------------------------------------------------------------


def call_ufunc(
    function: Any, operands: Sequence[ArrayLike], out: object, options: Mapping[str, Any]
) -> Array | tuple[Array, ...]:
    """Call the ufunc with operands under the `options` of a call.

    Raises InputError for a `where` without `out`, for an `out` that is no Array of its own and for unknown options,
    DTypeError for types that NumPy's casting rule or the
    ufunc refuses, ValueRangeError for an unknown casting rule and for a Python int that the type cannot hold.
    """
    name = function.__name__
    _refuse_unknown(name, options, Options.__annotations__)
    targets, where = _outputs(function, out), options.get("where", True)
    if not any(target is not None for target in targets):
        _refuse_where(name, where)
        return _compute(function, operands, options)
    where = True if where is True or (isinstance(where, np.bool_) and where) else where
    results = _compute(function, operands, options)
    casting = options.get("casting", "same_kind")
    shown = [
        result if target is None else show(name, target, result, casting, where=where)
        for result, target in zip(results if isinstance(results, tuple) else (results,), targets, strict=True)
    ]
    return tuple(shown) if isinstance(results, tuple) else shown[0]


def _outputs(function: UFunc, out: object) -> list[Array | None]:
    """The Array for each result, or None for a new one."""
    name, outputs = function.__name__, out if isinstance(out, tuple) else (out,)
    if out is None or (function.nout > 1 and len(outputs) < function.nout and not isinstance(out, tuple)):
        outputs = (*outputs, *[None] * (function.nout - 1))
    if len(outputs) != function.nout:
        raise InputError(
            f"{name}: wanted {pluralize(function.nout, 'item')} in out=, each an Array or None, got {len(outputs)}"
        )
    return [None if one is None else target_of(name, one) for one in outputs]


def _compute(
    function: Any, operands: Sequence[ArrayLike], options: Mapping[str, Any]
) -> Array | tuple[Array, ...]:
    name = function.__name__
    check_order(name, options.get("order"))
    flag(name, "subok", options.get("subok", True))
    casting = options.get("casting", "same_kind")
    check_casting(name, casting)
    signature = _types_asked_for(function, options)
    if signature is None and casting == "same_kind":
        return function(*operands)  # type: ignore[no-any-return]
    kinds = [_kind(value) for value in operands]
    types = _resolve_types(function, (*kinds, *[None] * function.nout), signature, casting)
    output = function(*[_cast(name, value, dtype) for value, dtype in zip(operands, types, strict=False)])
    results = output if isinstance(output, tuple) else (output,)
    wanted = tuple(convert(*pair) for pair in zip(results, types[function.nin :], strict=True))
    return wanted if isinstance(output, tuple) else wanted[0]


def _refuse_unknown(name: str, options: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    unknown = [option for option in options if option not in known]
    if unknown:
        raise InputError(
            f"{name}: got an unexpected keyword argument {unknown[0]!r}; wanted {', '.join(known)} or none"
        )


def _refuse_where(name: str, where: Any) -> None:
    if where is not True and not (isinstance(where, np.bool_) and where):
        raise InputError(
            f"{name}: where= says which elements of out= to write, and without out= the others would have no "
            f"value; write xarr.where(condition, xarr.{name}(…), other)"
        )


def _types_asked_for(function: UFunc, options: Mapping[str, Any]) -> Any:
    """The `signature` for NumPy's resolve_dtypes; None for no wish."""
    name, dtype = function.__name__, options.get("dtype")
    if "signature" in options and "sig" in options:
        raise InputError(f"{name}: signature= and sig= are one argument; wanted one of them")
    signature = options.get("signature", options.get("sig"))
    if dtype is None:
        if signature is None or isinstance(signature, str):
            return signature
        return tuple([None if one is None else canonical(one) for one in signature])
    if signature is not None:
        raise InputError(f"{name}: wanted one of dtype= and signature=, got both")
    return (*[None] * function.nin, *[canonical(dtype)] * function.nout)


def _kind(value: ArrayLike) -> Any:
    kind = weak_kind(value)
    return as_array(value).dtype if kind is None else np.dtype(bool) if kind is bool else kind


def _resolve_types(
    function: UFunc, kinds: tuple[Any, ...], signature: Any, casting: str, reduction: bool = False
) -> tuple[DType, ...]:
    """The types that NumPy computes in and gives; DTypeError where it refuses."""
    name = function.__name__
    theirs = getattr(np, name, None)
    if theirs is None:
        raise DTypeError(
            f"{name}: NumPy {np.__version__} has no {name} to resolve types with; convert with astype"
        )
    wish = {} if signature is None else {"signature": signature}
    narrow = () if isinstance(signature, str) else _NARROW.intersection(signature or ())
    if len(narrow) == 1 and casting in ("same_kind", "unsafe") and not _is_complex(kinds):
        # NumPy does not count the types of ml_dtypes among the floats, which all real numbers are cast to.
        (dtype,) = narrow
        kinds, wish = tuple([None if kind is None else dtype for kind in kinds]), {}
    try:
        types: tuple[DType, ...] = theirs.resolve_dtypes(kinds, casting=casting, reduction=reduction, **wish)
    except (TypeError, ValueError) as error:
        kinds_text = ", ".join(getattr(kind, "__name__", str(kind)) for kind in kinds if kind is not None)
        raise DTypeError(
            f"{name}: cannot compute in the types asked for from {kinds_text}: {error}; convert with astype first"
        ) from error
    if any(wanted not in (None, dtype) for wanted, dtype in zip(_as_tuple(signature), types, strict=False)):
        raise DTypeError(f"{name}: wanted a signature that it computes in, {types}, got {signature}")
    return tuple([canonical(dtype) for dtype in types])


def _as_tuple(signature: Any) -> tuple[Any, ...]:
    return signature if isinstance(signature, tuple) else ()


def _is_complex(kinds: Iterable[Any]) -> bool:
    return any(kind is complex or kind in COMPLEX for kind in kinds)


def _cast(name: str, value: ArrayLike, dtype: DType) -> Array:
    """`value` with elements of `dtype`, as by casting="unsafe"; ValueRangeError for a Python int out of range."""
    if dtype in BOOL:
        return truth(value)
    loses = (
        weak_kind(value) in ((float, complex) if dtype not in FLOAT else (complex,)) and dtype not in COMPLEX
    )
    return convert(as_array(value), dtype) if loses else promote_operands(name, value, dtype=dtype)[0]


# --- core dimensions ------------------------------------------------------------------------------------


def call_on_cores(
    function: Any, operands: Sequence[ArrayLike], out: object, options: Mapping[str, Any]
) -> Array:
    """Call a function with core dimensions, which `axes` or `axis` move from the end.

    Raises as `call_ufunc`, AxisError, and InputError for `axis` and `keepdims` where there is not one core dimension.
    """
    name = function.__name__
    known = [one for one in OptionsOfProducts.__annotations__ if one != "where"]
    _refuse_unknown(name, options, dict.fromkeys(known))
    (target,) = _outputs(function, out)
    result = _compute_on_cores(function, operands, options)
    if target is None:
        return result
    cores = _number_of_cores(function, operands)
    # What is repeated in a larger `out` are the dimensions that it loops over, and no core dimension.
    broadcasts = (
        _axes_of_cores(function, options) is None
        and target.ndim >= cores
        and result.shape[result.ndim - cores :] == target.shape[target.ndim - cores :]
    )
    return show(name, target, result, options.get("casting", "same_kind"), broadcasts=broadcasts)


def _number_of_cores(function: Any, operands: Sequence[ArrayLike]) -> int:
    """The number of core dimensions of the result; one marked "?" is left out with that of a vector."""
    result: str = function.signature.partition("->")[2]
    if "?" in result:
        return sum(as_array(each).ndim > 1 for each in operands)
    return 0 if result == "()" else result.count(",") + 1


def _compute_on_cores(function: Any, operands: Sequence[ArrayLike], options: Mapping[str, Any]) -> Array:
    axes = _axes_of_cores(function, options)
    if axes is None:
        return _compute(function, operands, options)  # type: ignore[return-value]
    *sources, target = axes
    moved = [moveaxis(value, axis, _last(axis)) for value, axis in zip(operands, sources, strict=True)]
    result = _compute(function, moved, options)
    assert not isinstance(result, tuple)
    if options.get("keepdims"):
        return lax.expand_dims(result, (target[0] % (result.ndim + 1),))
    return moveaxis(result, _last(target), target)


def _axes_of_cores(function: UFunc, options: Mapping[str, Any]) -> list[tuple[int, ...]] | None:
    """The core dimensions of each operand and of the result; None for the last ones."""
    name, axes, axis = function.__name__, options.get("axes"), options.get("axis")
    keepdims = flag(name, "keepdims", options.get("keepdims", False))
    if function.signature != "(n),(n)->()" and (axis is not None or keepdims):
        raise InputError(
            f"{name}: axis= and keepdims= are for one core dimension, the core dimensions are "
            f"{function.signature}; wanted axes=[(…), (…), (…)]"
        )
    if axes is None:
        axis = -1 if axis is None else axis
        return None if axis == -1 and not keepdims else [(axis,), (axis,), (axis,) if keepdims else ()]
    if axis is not None:
        raise InputError(f"{name}: wanted one of axes= and axis=, got both")
    core_axes = [one if isinstance(one, tuple) else (one,) for one in axes]
    has_target = len(core_axes) == function.nargs
    if len(core_axes) != function.nin and not has_target:
        raise InputError(f"{name}: wanted axes for {function.nargs} arrays, got {axes!r}")
    return core_axes if has_target else [*core_axes, core_axes[0] if keepdims else ()]


def _last(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(-len(axes), 0))


# --- methods --------------------------------------------------------------------------------------------


def _refuse_method(function: UFunc, method: str, nout: int = 1) -> str:
    """The method's name, for messages; InputError if the function is not of two operands with few results."""
    name = f"{function.__name__}.{method}"
    if function.signature is not None:
        raise InputError(f"{name}: wanted a function without core dimensions, got {function.signature}")
    if function.nin != 2 or function.nout > nout:
        raise InputError(
            f"{name}: wanted a function of two operands with one result, got {function.nin} and {function.nout}"
        )
    return name


def _types(function: UFunc, array: Array, dtype: DTypeLike | None) -> tuple[DType, DType]:
    """The types of elements as first operand, which a result is too, and as second operand."""
    signature = None if dtype is None else (canonical(dtype), None, None)
    types = _resolve_types(function, (None, array.dtype, None), signature, "unsafe", reduction=True)
    return types[0], types[1]


def _type(name: str, function: UFunc, array: Array, dtype: DTypeLike | None) -> DType:
    """The one type of both; DTypeError for two."""
    first, second = _types(function, array, dtype)
    if first != second:
        raise DTypeError(f"{name}: wanted a function of operands of one type, got {first} and {second}")
    return first


def _wide(function: UFunc, array: Array, out: Array) -> DType:
    """The type that a method computes in whose result goes to `out`."""
    return _resolve_types(function, (out.dtype, array.dtype, None), None, "unsafe", reduction=True)[0]


def reduce(
    function: Any,
    array: ArrayLike,
    axis: Axes,
    dtype: DTypeLike | None,
    out: object,
    keepdims: bool,
    initial: Any,
    where: ArrayLike,
) -> Array:
    """As `UFunc.reduce`."""
    name = _refuse_method(function, "reduce")
    x = as_array(array)
    if out is not None:
        target = target_of(name, out)
        dtype = _wide(function, x, target) if dtype is None else dtype
        result = reduce(function, x, axis, dtype, None, keepdims, initial, where)
        return show(name, target, result, "unsafe", broadcasts=False)
    is_scalar = not x.shape and not isinstance(axis, tuple) and axis in (0, -1)
    axes = () if is_scalar else normalize_axes(axis, x.ndim)
    first, second = _types(function, x, dtype)
    mask = mask_for(name, x, where)
    start = _start(function, initial, first)
    if start is None:
        _refuse_nothing(name, x, axes, mask)
    if _is_reorderable(function):
        result = _reduce_in_any_order(
            function, convert(x, first), axes, mask, start, initial is not NOT_GIVEN
        )
    else:
        result = _reduce_from_the_left(function, x, axes, mask, start, (first, second))
    return lax.expand_dims(result, axes) if flag(name, "keepdims", keepdims) and axes else result


def _is_reorderable(function: UFunc) -> bool:
    return function.identity is not None or function.__name__ in _REORDERABLE


def _start(function: UFunc, initial: Any, dtype: DType) -> Array | None:
    """The initial value of a reduction, a scalar of `dtype`; None to begin with its first element."""
    if initial is NOT_GIVEN:
        own = function.identity
        return None if own is None else as_array(np.asarray(own).astype(dtype))
    if initial is None:
        return None
    start = _cast(f"{function.__name__}.reduce", initial, dtype)
    if start.shape:
        raise ShapeError(f"{function.__name__}.reduce: initial must be a scalar, got shape {start.shape}")
    return start


def _refuse_nothing(name: str, x: Array, axes: tuple[int, ...], mask: Array | None) -> None:
    nothing = 0 in x.shape and not math.prod(x.shape[axis] for axis in axes)
    if mask is not None or nothing:
        problem = (
            "where= may leave no element" if mask is not None else f"no elements along {axes} of {x.shape}"
        )
        raise ShapeError(f"{name}: {problem}, and there is no identity to begin with; give initial=")


def _reduce_in_any_order(
    function: Any, x: Array, axes: tuple[int, ...], mask: Array | None, start: Array | None, has_initial: bool
) -> Array:
    """Reduce in any order; `has_initial`: `start` was asked for, and is not just the function's identity."""
    if mask is not None and start is not None:
        identity = _start(function, NOT_GIVEN, x.dtype)
        x = apply_mask(x, mask, start if identity is None else identity)
    native = _NATIVE.get(function.__name__)
    if native is not None:
        result = native[x.dtype in BOOL](x, axes)
        return function(stretch(start, result.shape), result) if has_initial and start is not None else result
    rows = folds.leading(x, axes)
    if start is not None:
        rows = lax.concatenate([stretch(start, (1, *rows.shape[1:])), rows], 0)
    return folds.fold_by_halves(function, rows)


def _reduce_from_the_left(
    function: Any,
    x: Array,
    axes: tuple[int, ...],
    mask: Array | None,
    start: Array | None,
    dtypes: tuple[DType, DType],
) -> Array:
    if len(axes) > 1:
        raise ShapeError(
            f"{function.__name__}.reduce: it is not commutative, so that several axes have no order; "
            f"wanted one axis, got {axes}"
        )
    rows = folds.leading(x, axes)
    holds = None if mask is None else folds.leading(mask, axes)
    if start is None:
        start, rows = folds.head(rows), folds.tail(rows)
    first = convert(stretch(start, rows.shape[1:]), dtypes[0])
    return folds.last(function, first, convert(rows, dtypes[1]), holds)


def accumulate(function: Any, array: ArrayLike, axis: Axes, dtype: DTypeLike | None, out: object) -> Array:
    """As `UFunc.accumulate`."""
    name = _refuse_method(function, "accumulate")
    x = as_array(array)
    if out is not None:
        target = target_of(name, out)
        dtype = _wide(function, x, target) if dtype is None else dtype
        return show(name, target, accumulate(function, x, axis, dtype, None), "unsafe", broadcasts=False)
    dim = _only_axis(name, x, axis)
    element = _type(name, function, x, dtype)
    x = convert(x, element)
    running = _RUNNING.get(function.__name__)
    if running is not None:
        return running[element in BOOL](x, dim)
    if not x.shape[dim]:
        return x
    if _is_reorderable(function):
        return lax.associative_scan(function, x, axis=dim)  # type: ignore[no-any-return]
    rows = folds.leading(x, (dim,))
    return moveaxis(folds.running_folds(function, folds.head(rows), folds.tail(rows)), 0, dim)


def _only_axis(name: str, x: Array, axis: Axes) -> int:
    if not x.shape:
        raise ShapeError(f"{name}: wanted an array with dimensions, got a scalar")
    axes = normalize_axes(axis, x.ndim)
    if len(axes) != 1:
        raise ShapeError(f"{name}: wanted one axis, got {axis!r} for an array of {x.ndim} dimensions")
    return axes[0]


def reduceat(
    function: Any, array: ArrayLike, indices: ArrayLike, axis: Axes, dtype: DTypeLike | None, out: object
) -> Array:
    """As `UFunc.reduceat`."""
    name = _refuse_method(function, "reduceat")
    x = as_array(array)
    if out is not None:
        target = target_of(name, out)
        dtype = _wide(function, x, target) if dtype is None else dtype
        return show(
            name, target, reduceat(function, x, indices, axis, dtype, None), "unsafe", broadcasts=False
        )
    dim = _only_axis(name, x, axis)
    element = _type(name, function, x, dtype)
    starts, longest = folds.starts_of(name, indices, x.shape[dim])
    rows = convert(x, element)
    folded = folds.segments_at_once(function.__name__, rows, starts)
    return _reduce_segments((function, rows, starts, dim, longest), {}) if folded is None else folded


@remembering
def _reduce_segments(function: Any, x: Array, starts: Array, dim: int, longest: int) -> Array:
    """The folds of the segments of `x` along `dim` that begin at `starts`, of no more than `longest` rows."""
    rows = folds.leading(x, (dim,))
    if not starts.size:
        return moveaxis(lax.slice_in_dim(rows, 0, 0), 0, dim)
    segments = folds.segments if _is_reorderable(function) else folds.segments_from_the_left
    return moveaxis(segments(function, rows, starts, longest), 0, dim)


def outer(
    function: Any, A: ArrayLike, B: ArrayLike, out: object, options: Mapping[str, Any]
) -> Array | tuple[Array, ...]:
    """As `UFunc.outer`."""
    _refuse_method(function, "outer", nout=2)
    first, second = as_array(A), as_array(B)
    shape = (*first.shape, *second.shape)
    rows = lax.broadcast_in_dim(first, shape, range(first.ndim))
    columns = lax.broadcast_in_dim(second, shape, range(first.ndim, len(shape)))
    return call_ufunc(function, (rows, columns), out, options)


def at(function: Any, a: Array, indices: Any, b: ArrayLike) -> None:
    """As `UFunc.at`."""
    name = f"{function.__name__}.at"
    if function.signature is not None or function.nout != 1:
        raise InputError(f"{name}: wanted a function without core dimensions and with one result")
    if (b is NOT_GIVEN) != (function.nin == 1):
        wanted = "no second operand" if function.nin == 1 else "a second operand b"
        raise InputError(f"{name}: {function.__name__} takes {function.nin} operands; wanted {wanted}")
    _refuse_numpys(name, a)
    if b is NOT_GIVEN:
        result = indexing.apply(a, indices, lambda old: _fit_type(name, function(old), a.dtype))
    else:
        result = _update(function, a, indices, as_array(b))
    a._show(result, (_OF_AT.get(function.__name__, "set"), indices, b if b is not NOT_GIVEN else None))


def _refuse_numpys(name: str, a: object) -> None:
    if not isinstance(a, Handle):
        raise InputError(
            f"{name}: wanted an xarr Array to update, got {type(a).__name__}; "
            f"write numpy.{name}(n, i, numpy.asarray(v)) for a NumPy array n, or x = xarr.asarray(n) first"
        )


def _fit_type(name: str, result: Array, dtype: DType) -> Array:
    if result.dtype in COMPLEX and dtype not in COMPLEX:
        raise DTypeError(f"{name}: complex results do not fit an array of {dtype}; take the real part of b")
    return convert(result, dtype)


def _update(function: Any, a: Array, indices: Any, b: Array) -> Array:
    """`a` with f(a, b) at the indices, computed in the types of both and converted to that of `a` each time."""
    if a.dtype == b.dtype:
        return indexing.update(a, indices, b, function)
    name, own, other = f"{function.__name__}.at", a.dtype, b.dtype
    wide = promote(own, other)

    def combine(old: Array, new: Array) -> Array:
        result = function(convert(old, own), convert(new, other))
        return convert(_fit_type(name, result, own), wide)

    updated = indexing.update(convert(a, wide), indices, b, combine)
    if wide == own:
        return updated
    # What is not meant keeps its bits, which the wider type may not hold.
    meant = indexing.update(lax.full_like(a, False, bool), indices, True)
    return lax.select(meant, convert(updated, own), a)
