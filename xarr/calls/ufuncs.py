"""Ufuncs: the options that NumPy's calls take, attributes and methods.

A ufunc is a plain Python function with all that attached, so that a call without options costs what it did,
and `help`, `pickle`, doctest and documentation know what it is.  What options and methods do stands in
`xarr.numpy_api.ufuncs.methods`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature
from types import MethodType, ModuleType
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import DTypeLike

from xarr.base.at_once.obstacles import obstacles
from xarr.base.tracebacks import mark_boundary, shorten
from xarr.base.typing import Array
from xarr.calls.remembered_calls import is_ufunc as is_ufunc, remembering, runner
from xarr.calls.ufunc_methods import run_method, update_at
from xarr.errors import XarrError, register_function
from xarr.lax.core import ArrayLike

Axes = int | tuple[int, ...] | None
P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")


class Options(TypedDict, total=False):
    """Options of a call beside its operands, with NumPy's defaults.

    where: which elements of `out` to write; another than True is refused without `out`, as it leaves elements without
        a value.
    casting: how far `dtype` and `signature` may convert: "no", "equiv", "safe", "same_kind" or "unsafe".
    order, subok: accepted where they change nothing.
    dtype: the type to compute in; signature, sig: the types of all operands and results.
    """

    where: ArrayLike
    casting: str
    order: str | None
    dtype: DTypeLike | None
    subok: bool
    signature: Any
    sig: Any


_DEFAULTS_OF_PRODUCTS: Final[dict[str, object]] = {
    "casting": "same_kind",
    "order": "K",
    "dtype": None,
    "subok": True,
    "signature": None,
}
_DEFAULTS: Final = {"where": True, **_DEFAULTS_OF_PRODUCTS}
_NO_OPTIONS: Final[dict[str, Any]] = {}


class NotGiven:
    """The default of an argument that may be anything, None too."""

    def __repr__(self) -> str:
        return "<no value>"


NOT_GIVEN: Final[Any] = NotGiven()


# An injection point, since methods need indices, and those the functions: `xarr.arrays.array` calls bind(…).
_methods: Any = None


def bind(methods: ModuleType) -> None:
    """Make `methods` the module that computes calls with options, and the methods of ufuncs."""
    global _methods
    _methods = methods


def with_options(
    function: UFunc, operands: tuple[ArrayLike, ...], out: object, options: Any
) -> Array | tuple[Array, ...]:
    """Call `function` with options.  Raises as `xarr.numpy_api.ufuncs.methods.call_ufunc`."""
    try:
        result: Array | tuple[Array, ...] = _methods.call_ufunc(function, operands, out, options)
    except XarrError as error:
        shorten(error, function.__name__)
        raise
    return result


def _names_ufunc(method: Callable[Concatenate[UFunc, P], T]) -> Callable[Concatenate[UFunc, P], T]:
    """`method` for users: an error that leaves it begins with the ufunc and its method, such as `add.reduce`.

    Its calls on small arrays are remembered.
    """
    is_update = method.__name__ == "at"  # which is never remembered, since it changes its operand
    remembered = None if is_update else remembering(method)

    @wraps(method)
    def call(function: UFunc, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if is_update:
            if len(args) == 3 and not kwargs and not obstacles and update_at(function.__name__, *args):
                return None  # type: ignore[return-value]
        elif (value := run_method(method.__name__, (function, *args), kwargs)) is not None:
            return value  # type: ignore[no-any-return]
        try:
            if remembered is None:
                return method(function, *args, **kwargs)
            return remembered((function, *args), kwargs)
        except XarrError as error:
            shorten(error, f"{function.__name__}.{method.__name__}")
            raise

    return mark_boundary(call, lambda own: f"{own['function'].__name__}.{own['method'].__name__}")


class UFunc(Protocol):
    """A function of each element of one array or two, with NumPy's attributes and methods of a ufunc.

    nin, nout, nargs: numbers of operands, of results, and of both; identity: what changes no operand, or None;
    signature: the core dimensions of what is no function of each element, such as matmul, or None.

    Methods are for functions of two operands with one result; any other is an InputError, but for `at`, which
    takes functions of one operand too.  Source: NumPy, `numpy.ufunc`.
    """

    __name__: str
    nin: int
    nout: int
    nargs: int
    identity: Any
    signature: str | None

    def __hash__(self) -> int: ...

    @_names_ufunc
    def reduce(
        self,
        array: ArrayLike,
        axis: Axes = 0,
        dtype: DTypeLike | None = None,
        out: Array | None = None,
        keepdims: bool = False,
        initial: Any = NOT_GIVEN,
        where: ArrayLike = True,
    ) -> Array:
        """f(… f(f(initial, a), b) …) of the elements a, b … along `axis`, of which `where` may leave some out.

        axis: one, several for a commutative function, None for all.
        dtype: the type to compute in; by default NumPy's, which sums bools and narrow integers as int64 or uint64.
        initial: by default the identity; None for none, so that the first element comes first.

        Raises ShapeError for no elements, and for a `where`, without initial and identity; AxisError; DTypeError
        where a result cannot be an operand again.
        """
        result: Array = _methods.reduce(self, array, axis, dtype, out, keepdims, initial, where)
        return result

    @_names_ufunc
    def accumulate(
        self, array: ArrayLike, axis: Axes = 0, dtype: DTypeLike | None = None, out: Array | None = None
    ) -> Array:
        """a, f(a, b), f(f(a, b), c) … of the elements a, b, c … along `axis`.

        Element types and errors as `reduce`; ShapeError for an array without dimensions and for several axes.
        """
        result: Array = _methods.accumulate(self, array, axis, dtype, out)
        return result

    @_names_ufunc
    def reduceat(
        self,
        array: ArrayLike,
        indices: ArrayLike,
        axis: Axes = 0,
        dtype: DTypeLike | None = None,
        out: Array | None = None,
    ) -> Array:
        """`reduce` of the elements from each of the `indices` up to the next, along `axis`.

        It is the element at the index alone if the next one is not larger, and the last reaches to the end.
        Raises as `accumulate`, and IndexingError for an index beyond 0 … size - 1, when the result is computed if it
        has no value before.
        """
        result: Array = _methods.reduceat(self, array, indices, axis, dtype, out)
        return result

    @_names_ufunc
    def outer(
        self, A: ArrayLike, B: ArrayLike, /, out: Array | None = None, **options: Unpack[Options]
    ) -> Array:
        """f(a, b) for each element a of A and b of B, in the shape (*A.shape, *B.shape).  Options of a call."""
        result: Array = _methods.outer(self, A, B, out, options)
        return result

    @_names_ufunc
    def at(self, a: Array, indices: Any, b: ArrayLike = NOT_GIVEN, /) -> None:
        """a[indices] = f(a[indices], b), or f(a[indices]), once for each time that an element is meant.

        It makes the Array `a` show the result, as `a[indices] = v` does, and changes no other.  Raises InputError
        for what is no Array, IndexingError for the indices, BroadcastError for b.
        """
        _methods.at(self, a, indices, b)


class UnaryUFunc(UFunc, Protocol[R]):
    """(x) -> Array, or two of them."""

    def __call__(self, x: ArrayLike, /, out: Array | None = None, **options: Unpack[Options]) -> R: ...


class BinaryUFunc(UFunc, Protocol[R]):
    """(x1, x2) -> Array, or two of them."""

    def __call__(
        self, x1: ArrayLike, x2: ArrayLike, /, out: Array | None = None, **options: Unpack[Options]
    ) -> R: ...


class OptionsOfProducts(Options, total=False):
    """More options of a call of a function with core dimensions.

    axes: for each operand and the result, which of its dimensions are the core ones; axis: the one of all; both
    may be given to move them from the end.
    keepdims: whether a result without core dimensions keeps one of size 1.
    """

    axes: Any
    axis: int
    keepdims: bool


class Product(UFunc, Protocol):
    """(x1, x2) -> Array, of core dimensions that by default are the last."""

    def __call__(
        self, x1: ArrayLike, x2: ArrayLike, /, out: Array | None = None, **options: Unpack[OptionsOfProducts]
    ) -> Array: ...


_METHODS: Final = tuple(
    (name, getattr(UFunc, name)) for name in ("reduce", "accumulate", "reduceat", "outer", "at")
)


def _signature(*operands: str, out: object = None, **defaults: object) -> Signature:
    parameters = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in operands]
    target = Parameter("out", Parameter.POSITIONAL_OR_KEYWORD, default=out)
    options = [Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in defaults.items()]
    return Signature([*parameters, target, *options])


_SIGNATURES: Final = {1: _signature("x", **_DEFAULTS), 2: _signature("x1", "x2", **_DEFAULTS)}


def attach(
    function: Callable[..., Any], nin: int, name: str, module: str, signature: str | None = None
) -> Any:
    """`function`, which hands options to `with_options`, as a ufunc with one result.

    name: under which `module`, xarr and NumPy have it; signature: that of core dimensions.
    """
    function.__name__ = function.__qualname__ = register_function(name)
    # Tracebacks tell by the code which function was called.
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    function.__module__ = module
    function.__dict__.update({method: MethodType(body, function) for method, body in _METHODS})
    function.__dict__.update(
        nin=nin,
        nout=1,
        nargs=nin + 1,
        identity=getattr(getattr(np, name, None), "identity", None),
        signature=signature,
        __signature__=_SIGNATURES[nin],
    )
    return function


@overload
def ufunc(function: Callable[[ArrayLike], R]) -> UnaryUFunc[R]: ...
@overload
def ufunc(function: Callable[[ArrayLike, ArrayLike], R]) -> BinaryUFunc[R]: ...


def ufunc(function: Callable[..., Any]) -> Any:
    """A function of one operand or two as a ufunc."""
    nin = function.__code__.co_argcount
    called = _unary(function) if nin == 1 else _binary(function)
    called.__doc__ = function.__doc__
    return attach(called, nin, function.__name__, function.__module__)


@overload
def pair_ufunc(function: Callable[[ArrayLike], R]) -> UnaryUFunc[R]: ...
@overload
def pair_ufunc(function: Callable[[ArrayLike, ArrayLike], R]) -> BinaryUFunc[R]: ...


def pair_ufunc(function: Callable[..., Any]) -> Any:
    """As `ufunc`, for a function with two results, each with an `out` of its own."""
    nin = function.__code__.co_argcount
    called = _unary_pair(function) if nin == 1 else _binary_pair(function)
    called.__doc__ = function.__doc__
    made = attach(called, nin, function.__name__, function.__module__)
    operands = tuple(_SIGNATURES[nin].parameters)[:nin]
    called.__dict__.update(
        nout=2, nargs=nin + 2, __signature__=_signature(*operands, out=(None, None), **_DEFAULTS)
    )
    return made


def gufunc(
    signature: str, **defaults: object
) -> Callable[[Callable[[ArrayLike, ArrayLike], Array]], Product]:
    """A function of two operands whose last dimensions are core ones as a ufunc, one without methods.

    defaults: those of the options of `OptionsOfProducts` that it takes.
    """

    def decorate(function: Callable[[ArrayLike, ArrayLike], Array]) -> Product:
        own = runner(function)

        def call(x1: ArrayLike, x2: ArrayLike, /, out: object = None, **options: Any) -> Any:
            try:
                if options or out is not None:
                    return _methods.call_on_cores(call, (x1, x2), out, options)
                return own.run((x1, x2), _NO_OPTIONS)
            except XarrError as error:
                shorten(error, call.__name__)
                raise

        call.__doc__ = function.__doc__
        made: Product = attach(call, 2, function.__name__, function.__module__, signature)
        call.__dict__["__signature__"] = _signature("x1", "x2", **defaults, **_DEFAULTS_OF_PRODUCTS)
        return made

    return decorate


def _unary(function: Callable[[ArrayLike], R]) -> Callable[..., Any]:
    own = runner(function)

    def call(x: ArrayLike, /, out: object = None, **options: Any) -> Any:
        if options or out is not None:
            return with_options(call, (x,), out, options)  # type: ignore[arg-type]
        try:
            return own.run((x,), _NO_OPTIONS)
        except XarrError as error:
            shorten(error, call.__name__)
            raise

    return call


def _binary(function: Callable[[ArrayLike, ArrayLike], R]) -> Callable[..., Any]:
    own = runner(function)

    def call(x1: ArrayLike, x2: ArrayLike, /, out: object = None, **options: Any) -> Any:
        if options or out is not None:
            return with_options(call, (x1, x2), out, options)  # type: ignore[arg-type]
        try:
            return own.run((x1, x2), _NO_OPTIONS)
        except XarrError as error:
            shorten(error, call.__name__)
            raise

    return call


def _unary_pair(function: Callable[[ArrayLike], R]) -> Callable[..., Any]:
    own = runner(function)

    def call(x: ArrayLike, /, out: object = None, second: object = None, **options: Any) -> Any:
        if options or out is not None or second is not None:
            outs = out if second is None else (out, second)
            return with_options(call, (x,), outs, options)  # type: ignore[arg-type]
        try:
            return own.run((x,), {})
        except XarrError as error:
            shorten(error, call.__name__)
            raise

    return call


def _binary_pair(function: Callable[[ArrayLike, ArrayLike], R]) -> Callable[..., Any]:
    own = runner(function)

    def call(
        x1: ArrayLike, x2: ArrayLike, /, out: object = None, second: object = None, **options: Any
    ) -> Any:
        if options or out is not None or second is not None:
            outs = out if second is None else (out, second)
            return with_options(call, (x1, x2), outs, options)  # type: ignore[arg-type]
        try:
            return own.run((x1, x2), {})
        except XarrError as error:
            shorten(error, call.__name__)
            raise

    return call
