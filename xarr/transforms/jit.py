"""`jit`: a function is recorded once for each signature and runs as one program after that."""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Concatenate, Final, Generic, NamedTuple, ParamSpec, Self, TypeVar, overload

from xarr import tree
from xarr.base.configuration import current as config
from xarr.base.tracebacks import keep_text, shorten
from xarr.calls.operands import observers
from xarr.errors import InputError, RecompilationWarning, XarrError, pluralize
from xarr.ir.graph import parameter
from xarr.ir.source import warn_here
from xarr.runtime import handles, trace_stack
from xarr.shapes import Shape
from xarr.transforms.lowering import Lowered, ShapeDtypeStruct, argument_type
from xarr.transforms.object_state import attributes_of, is_seen, mark
from xarr.transforms.pickled_functions import is_named, reduce_by_value
from xarr.transforms.python_replay import MISSED, Replay, has_fast_path, is_wanted, replay
from xarr.transforms.recording import inline_call, record, run_call
from xarr.transforms.signature import BoundCall, Signature, call_of, static
from xarr.transforms.stages import Stage
from xarr.transforms.traced import Traced

Function = Callable[..., Any]
P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
ArgumentKeys = frozenset[int | str]

#: Signatures of one function that are kept; those not used for longest go first.
_SIGNATURES_KEPT: Final = 256
#: Fast ways into them that are tried, one after the other, before the arguments are taken apart.
_REPLAYS_KEPT: Final = 8


class CacheInfo(NamedTuple):
    """Counts of a jitted function: signatures kept, how many can be, and compilations since it was made."""

    signatures: int
    limit: int
    compilations: int


@overload
def jit(
    f: None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


@overload
def jit(
    f: Callable[P, R],
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
) -> Jitted[P, R]: ...


def jit(
    f: Callable[P, R] | None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
) -> Jitted[P, R] | Callable[[Callable[P, R]], Jitted[P, R]]:
    """`f` as a function that is recorded once for each signature and runs as one compiled program.

    f: takes and returns pytrees (tuples, lists, dicts, dataclasses, None) of Arrays, NumPy arrays and Python
    numbers of any shape and element type; what it returns comes back in the same nesting, as Arrays.
    static_argnums, static_argnames: arguments, by position or name, whose values belong to the signature:
    sizes, axes, flags, functions.  They must be hashable.
    donate_argnums, donate_argnames: arguments whose Arrays are given away with the call; looking at one
    afterwards is an error.
    keep_unused, inline: accepted for JAX's sake; they change nothing.

    A signature is the nesting of the arguments, the shape and element type of each array, which leaves are
    Python numbers (their values may change from call to call, and they promote as outside), the static
    values, the backend, and the settings that matter.  An array from outside that `f` uses has, for good,
    the value that it had when `f` was recorded.  Called inside of another traced function, it becomes a
    call in the graph of that.

    Used as `jit(f)`, `@jit` or `@jit(static_argnames="n")`, on functions and methods.  Of a method, `self` is a
    pytree if it is a dataclass; another object is static, and replacing one of its attributes, or an Array in a
    list or dict that is one, means recording anew.  What hangs on objects within it is read once.

    Raises InputError for arguments that are neither arrays nor static, for static ones without a hash, and for
    names that `f` does not have; in the recorded function TracedValueError where it looks at a value, as
    `if x > 0` and `float(x)` do, and where it changes an argument in place.
    Warns with RecompilationWarning past every `config.jit_warn_compilations` compilations.
    Source: jax.jit.
    """
    options = _Options(
        *(_numbers("static_argnums", static_argnums), _names("static_argnames", static_argnames)),
        *(_numbers("donate_argnums", donate_argnums), _names("donate_argnames", donate_argnames)),
    )
    if f is None:
        return lambda function: Jitted(function, options)
    return Jitted(f, options)


@dataclass(frozen=True)
class _Options:
    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()


def eval_shape(fun: Function, *args: Any, **kwargs: Any) -> Any:
    """`fun(*args, **kwargs)` with a ShapeDtypeStruct for each array of the result; nothing is computed.

    args, kwargs: pytrees of arrays, ShapeDtypeStructs and shapes such as "f32[2,3]".  Raises as `jit` does.
    Source: jax.eval_shape.
    """
    return Jitted(fun).eval_shape(*args, **kwargs)


def _numbers(option: str, value: int | Iterable[int] | None) -> tuple[int, ...]:
    numbers = (value,) if isinstance(value, int) else tuple(value or ())
    if not all(type(number) is int for number in numbers):
        raise InputError(f"jit: wanted an int or a sequence of ints for {option}, got {value!r}")
    return numbers


def _names(option: str, value: str | Iterable[str] | None) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value or ())
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"jit: wanted a name or a sequence of names for {option}, got {value!r}")
    return names


class Jitted(Generic[P, R]):
    """A function that `jit` made.  Called as the function itself, with its parameters P and results R."""

    __wrapped__: Callable[P, R]
    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[P, R], options: _Options = _Options()) -> None:
        if not callable(function):
            raise InputError(f"jit: wanted a function, got {function!r}")
        # The attributes of a jitted function are its own.
        updated = () if isinstance(function, Jitted) else functools.WRAPPER_UPDATES
        functools.update_wrapper(self, function, updated=updated)
        self.__name__ = _name_of(function)
        self._function = function
        self._options = options
        self._parameters = _parameters(function)
        self._static = self._argument_keys("static", options.static_argnums, options.static_argnames)
        self._donated = self._argument_keys("donate", options.donate_argnums, options.donate_argnames)
        both = sorted(map(str, self._static & self._donated))
        if both:
            raise InputError(
                f"jit: a static argument cannot be donated, and {self.__name__} has both: {both[0]}"
            )
        #: Held for the few lines that read and change what follows, not while anything is recorded.
        self._lock = threading.Lock()
        self._cache: OrderedDict[Signature, Traced] = OrderedDict()
        self._pending: dict[Signature, threading.RLock] = {}
        self._compilations = 0
        self._latest: Signature | None = None
        self._methods: dict[int, tuple[weakref.ref[Any], Jitted[..., Any]]] = {}
        #: The replay function that fitted last, and all that are kept, the newest first.
        self._replay: Replay = _never
        self._replays: tuple[Replay, ...] = ()
        self._text = ""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result = self._replay(args, kwargs)
            return self._call_after_miss(args, kwargs) if result is MISSED else result  # type: ignore[no-any-return]
        except XarrError as error:
            keep_text(error)
            shorten(error)
            raise

    def __reduce__(self) -> str | tuple[Any, ...]:
        return self.__qualname__ if is_named(self) else self.reduce_by_value()

    def reduce_by_value(self) -> tuple[Any, ...]:
        """The reduction, for pickle, that has the function itself and no name; `xarr.transforms.pickled_functions`."""
        return reduce_by_value(self, Jitted, self._function, self._options)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Equal for the same function with the same options.  Source: Dask, `tokenize`."""
        from dask.base import normalize_token

        return ("xarr.jit", normalize_token(self._function), normalize_token(repr(self._options)))

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Jitted[P, R]: ...

    @overload
    def __get__(
        self: Jitted[Concatenate[Any, Q], R], instance: object, owner: type[Any] | None = None
    ) -> Jitted[Q, R]: ...

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        known = self._methods.get(id(instance))
        if known is not None and known[0]() is instance:
            return _HeldMethod(known[1], instance)
        if tree.flatten(instance)[1].container is not None:
            return _Bound(self, instance)
        return _HeldMethod(self._method_of(instance), instance)

    def __repr__(self) -> str:
        return f"<jitted {self.__name__}: {len(self._cache)} signatures, {self._compilations} compilations>"

    # --- what it has done --------------------------------------------------------------------------

    @property
    def signatures(self) -> tuple[str, ...]:
        """The signatures for which a program is kept, as text; the one used last is the last."""
        with self._lock:
            return tuple([f"{self.__name__}{signature}" for signature in self._cache])

    @property
    def compilations(self) -> int:
        """The number of times that the function was recorded."""
        return self._compilations

    def cache_info(self) -> CacheInfo:
        """Count the signatures kept, those that can be kept, and the times that the function was recorded."""
        return CacheInfo(len(self._cache), _SIGNATURES_KEPT, self._compilations)

    def clear_cache(self) -> None:
        """Forget all programs; the next call records the function anew."""
        with self._lock:
            self._cache.clear()
            self._replay, self._replays, self._text = _never, (), ""

    @property
    def replay_text(self) -> str:
        """The Python text that runs when the last call is repeated; empty before the first."""
        return self._text

    def trace(self, *args: Any, **kwargs: Any) -> Stage:
        """The function recorded for such arguments, with its graph and the types of its results; nothing is run.

        Shapes such as "f32[2,3]" and ShapeDtypeStructs may stand for arrays.  Source: jax.stages.Wrapped.trace.
        """
        call = self._call(args, kwargs, _stand_in)
        return Stage(self.__name__, self._trace_call(call), call.signature, self._call)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function for such arguments as a graph, for each stage up to the program; nothing is run.

        Arguments as in `trace`.  Source: jax.stages.Wrapped.lower.
        """
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The result for such arguments with a ShapeDtypeStruct for each array; nothing is computed.

        Arguments as in `trace`.  Source: jax.eval_shape.
        """
        return self.trace(*args, **kwargs).out_info

    # --- a call ------------------------------------------------------------------------------------

    def _call_after_miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call for which the latest replay function is not made."""
        for each in self._replays:
            result = each(args, kwargs)
            if result is not MISSED:
                self._replay = each
                return result
        if observers or config.debugging():
            with trace_stack.run_unrecorded():
                return self._function(*args, **kwargs)
        call = self._call(args, kwargs)
        traced = self._trace_call(call)
        if trace_stack.is_tracing():
            return inline_call(traced, call)
        result = run_call(self.__name__, traced, call)
        if has_fast_path(call) and is_wanted(traced, call):
            self._replay, self._text = replay(traced, call)
            self._replays = (self._replay, *self._replays[: _REPLAYS_KEPT - 1])
        return result

    def _call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], convert: Function | None = None
    ) -> BoundCall:
        arguments: list[tuple[int | str, Any]] = [*enumerate(args), *sorted(kwargs.items())]
        statics, others = [], []
        for key, value in arguments:
            label = self._label(key)
            if key in self._static:
                statics.append(static(self.__name__, key, label, value))
            else:
                others.append((key, label, tree.map(convert, value) if convert else value))
        return call_of(self.__name__, statics, others)

    def _trace_call(self, call: BoundCall) -> Traced:
        """The function recorded for the signature of `call`, by this call if by none before."""
        traced = self._look_up(call.signature)
        if traced is not None:
            return traced
        with self._only_one(call.signature):
            traced = self._look_up(call.signature)
            if traced is None:
                traced = record(self.__name__, self._function, call.signature, self._donated)
                # What uses an argument of an outer traced function holds within that function only.
                if not any(node.traced for node in traced.captured):
                    self._keep(traced)
        return traced

    def _look_up(self, signature: Signature) -> Traced | None:
        with self._lock:
            for key in signature.keys:
                known = self._cache.get(key)
                if known is not None:
                    self._cache.move_to_end(key)
                    return known
            return None

    @contextmanager
    def _only_one(self, signature: Signature) -> Iterator[None]:
        """Let one thread at a time record the function for a signature."""
        with self._lock:
            lock = self._pending.setdefault(signature, threading.RLock())
        try:
            with lock:
                yield
        finally:
            with self._lock:
                self._pending.pop(signature, None)

    def _keep(self, traced: Traced) -> None:
        with self._lock:
            self._cache[traced.key] = traced
            while len(self._cache) > _SIGNATURES_KEPT:
                self._cache.popitem(last=False)
            self._compilations += 1
            count, before = self._compilations, self._latest
            self._latest = traced.signature
        limit = config.jit_warn_compilations
        if before is not None and count > limit and (count - 1) % limit == 0:
            self._warn(count, traced.signature, before)

    def _warn(self, count: int, signature: Signature, before: Signature) -> None:
        changes = (
            "; ".join(signature.changes(before)) or "the cache was cleared, or the function was forgotten"
        )
        message = (
            f"{self.__name__} has been compiled {count} times. This time {changes}. Make what changes from call to "
            "call an array or a number that is not a static argument, and pad arrays to few shapes"
        )
        warn_here(message, RecompilationWarning)

    # --- arguments ---------------------------------------------------------------------------------

    def _argument_keys(self, what: str, numbers: tuple[int, ...], names: tuple[str, ...]) -> ArgumentKeys:
        """Positions and names of arguments, each by both if the function has it under both."""
        parameters = self._parameters
        if parameters is None:
            return frozenset((*numbers, *names))
        positional = [each.name for each in parameters if each.kind in _POSITIONAL]
        keys: set[int | str] = set()
        for number in numbers:
            key = number + len(positional) if number < 0 else number
            if key < 0 or (key >= len(positional) and not _has(parameters, inspect.Parameter.VAR_POSITIONAL)):
                raise InputError(
                    f"jit: {what}_argnums has {number}, but {self.__name__} takes "
                    f"{pluralize(len(positional), 'positional argument')}: {', '.join(positional)}"
                )
            keys.add(key)
            keys.update(positional[key : key + 1])
        known = [each.name for each in parameters if each.kind in _NAMED]
        for name in names:
            if name not in known and not _has(parameters, inspect.Parameter.VAR_KEYWORD):
                raise InputError(
                    f"jit: {what}_argnames has {name!r}, but the arguments of {self.__name__} are {', '.join(known)}"
                )
            keys.add(name)
            keys.update([positional.index(name)] if name in positional else [])
        return frozenset(keys)

    def _label(self, key: int | str) -> str:
        if isinstance(key, str):
            return key
        positional = [each.name for each in self._parameters or () if each.kind in _POSITIONAL]
        return positional[key] if key < len(positional) else f"args[{key - len(positional)}]"

    # --- methods -----------------------------------------------------------------------------------

    def _method_of(self, instance: Any) -> Jitted[..., Any]:
        """This function for one object as its first argument; it goes with the object."""
        key = id(instance)
        forget = functools.partial(_forget, weakref.ref(self), key)
        try:
            reference = weakref.ref(instance, forget)
        except TypeError:
            raise InputError(
                f"jit: the method {self.__name__} cannot be bound to a {type(instance).__name__}, which cannot "
                "be weakly referenced; add '__weakref__' to its __slots__, or make it a dataclass"
            ) from None
        method = _Method(self, reference)
        self._methods[key] = (reference, method)
        return method


_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED: Final = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _name_of(function: Function) -> str:
    inner = function.func if isinstance(function, functools.partial) else function
    return str(getattr(inner, "__name__", type(inner).__name__))


def _parameters(function: Function) -> tuple[inspect.Parameter, ...] | None:
    """The parameters of the function; None where Python does not know them."""
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _has(parameters: Iterable[inspect.Parameter], kind: Any) -> bool:
    return any(each.kind is kind for each in parameters)


def _never(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The replay function before there is one."""
    return MISSED


def _forget(reference: weakref.ref[Jitted[..., Any]], key: int, _: object) -> None:
    jitted = reference()
    if jitted is not None:
        jitted._methods.pop(key, None)


class _Method(Jitted[..., Any]):
    """A jitted method of an object that is no pytree.  The object is static, by identity.

    Its attributes are read when the method is recorded.  If one has been replaced since, or an Array in one, or
    in tuples, lists, dicts and dataclasses there, it is recorded anew.  Objects within are not looked into.
    """

    def __init__(self, jitted: Jitted[..., Any], instance: weakref.ref[Any]) -> None:
        self._instance = instance
        self._state: list[Any] = []
        function = jitted._function

        @functools.wraps(function)
        def bound(*args: Any, **kwargs: Any) -> Any:
            return function(instance(), *args, **kwargs)

        _, *rest = inspect.signature(function).parameters.values()
        bound.__signature__ = inspect.Signature(rest)  # type: ignore[attr-defined]
        options = [*_without_self(jitted._static, rest), *_without_self(jitted._donated, rest)]
        super().__init__(bound, _Options(*options))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        self._refresh()
        try:
            result = self._replay(args, kwargs)
            return self._call_after_miss(args, kwargs) if result is MISSED else result
        except XarrError as error:
            keep_text(error)
            shorten(error)
            raise

    def trace(self, *args: Any, **kwargs: Any) -> Stage:
        self._refresh()
        return super().trace(*args, **kwargs)

    def _refresh(self) -> None:
        shown = attributes_of(self._instance())
        if len(shown) != len(self._state) or not all(map(is_seen, shown, self._state)):
            self.clear_cache()
            self._state = [mark(each) for each in shown]


def _without_self(keys: ArgumentKeys, rest: Sequence[inspect.Parameter]) -> tuple[Any, Any]:
    """Positions and names of the arguments after the first, which is static whether it is named or not."""
    numbers = [key - 1 for key in keys if isinstance(key, int) and key]
    named = {each.name for each in rest if each.kind in _NAMED}
    takes_all = _has(rest, inspect.Parameter.VAR_KEYWORD)
    names = [key for key in keys if isinstance(key, str) and (key in named or takes_all)]
    return tuple(sorted(numbers)), tuple(sorted(names))


def _stand_in(leaf: Any) -> Any:
    """An Array without a value for a shape."""
    is_shape = isinstance(leaf, str | Shape | ShapeDtypeStruct)
    return handles.wrap(parameter(argument_type(leaf))) if is_shape else leaf


class _HeldMethod:
    """A jitted method of an object that is no pytree, which lives as long as the method is in use."""

    __slots__ = ("__self__", "_jitted")

    def __init__(self, jitted: Jitted[..., Any], instance: Any) -> None:
        self._jitted = jitted
        self.__self__ = instance

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._jitted(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __reduce__(self) -> tuple[Any, ...]:
        # As for a bound method of Python.
        return getattr, (self.__self__, self._jitted.__name__)

    def __repr__(self) -> str:
        return repr(self._jitted)


class _Bound(_HeldMethod):
    """A jitted method of a pytree, which is the first argument."""

    __slots__ = ()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._jitted(self.__self__, *args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Stage:
        """As `Jitted.trace`, for this object."""
        return self._jitted.trace(self.__self__, *args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """As `Jitted.lower`, for this object."""
        return self._jitted.lower(self.__self__, *args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """As `Jitted.eval_shape`, for this object."""
        return self._jitted.eval_shape(self.__self__, *args, **kwargs)

    def __repr__(self) -> str:
        return f"{self._jitted!r} of {self.__self__!r}"
