"""Settings: by code (`xarr.config.broadcasting = "warn"`), by environment, or in a `with` block.

| name | environment | values | default |
| --- | --- | --- | --- |
| broadcasting | XARR_BROADCASTING | numpy, warn, rank, explicit | numpy |
| backend | XARR_BACKEND | any backend's name | numpy |
| default_dtype | XARR_DEFAULT_DTYPE | float64, float32 | float64 |
| default_prng_impl | XARR_DEFAULT_PRNG_IMPL | a generator of `xarr.random.key(impl=)` | threefry2x32 |
| max_depth | XARR_MAX_DEPTH | ops in a chain before it is evaluated on its own | 10000 |
| max_pending_bytes | XARR_MAX_PENDING_BYTES | data kept alive only by unevaluated ops | 67108864 |
| jit_warn_compilations | XARR_JIT_WARN_COMPILATIONS | compilations of a jitted function before a warning | 20 |
| fusion | XARR_FUSION | auto, compiled, off: whether groups of ops run as one compiled loop | auto |
| small_arrays | XARR_SMALL_ARRAYS | eager, lazy: whether ops on small arrays are computed when recorded | eager |
| deterministic | XARR_DETERMINISTIC | True, False: same bits in each run on GPUs too, even if slower | True |
| collective_timeout | XARR_COLLECTIVE_TIMEOUT | seconds that a collective waits for replicas that run | 600 |
| native_sums | XARR_NATIVE_SUMS | True, False: MPI adds and multiplies floats between machines, in its order | False |
| kernel_cache | XARR_KERNEL_CACHE | on, off: whether compiled code is kept on disk, in `$XARR_CACHE_DIR` | on |
| debug | XARR_DEBUG | True, False: DroppedUpdateWarning for a statement that drops what `x.at[i].set(v)` made | False |
| debug_nans | XARR_DEBUG_NANS | True, False: NotANumberError where an op makes a NaN of numbers | False |
| debug_overflow | XARR_DEBUG_OVERFLOW | True, False: NumberOverflowError where an op makes an infinity | False |
| traceback | XARR_TRACEBACK | short, full: whether errors leave out the frames within xarr | short |
| verify_graphs | XARR_VERIFY_GRAPHS | True, False: check graphs and loop programs between stages | False |

Four variables are read where they matter: XARR_CACHE_DIR names the directory of the kernel cache, XARR_NATIVE_CALLS
(auto, on, off) says whether compiled loops on the CPU read NumPy's array objects themselves, which is faster for
small arrays; auto does on interpreters on which that was tested.  XARR_THREADS (auto, or a number) says how many
threads the loops of one call share, from the first loop on that is shared; auto takes as many as there are processors,
and one in the tasks of a Dask worker, which runs as many at once as it may use processors.  XARR_PYODIDE names a
folder for docs/play/assemble.py.

Other variables whose names begin with XARR_ are most likely misspelled: UnknownVariableWarning says so at import.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Literal, NoReturn, TypeAlias, get_args

from xarr.base.at_once.obstacles import Obstacle
from xarr.base.frozen_dataclasses import record
from xarr.base.names import did_you_mean
from xarr.errors import ConfigError, UnknownOptionError, UnknownVariableWarning

#: How much implicit broadcasting is allowed.
Mode: TypeAlias = Literal["numpy", "warn", "rank", "explicit"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


#: The generators of random numbers whose keys xarr.random has.
PRNG_IMPLS: Final = ("threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg")


def _one_of(*allowed: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        if value not in allowed:
            raise ConfigError(f"wanted one of {', '.join(map(repr, allowed))}, got {value!r}")
        return str(value)

    return check


def _positive(value: object) -> int:
    try:
        number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else 0
    except ValueError:
        number = 0
    if number <= 0:
        raise ConfigError(f"wanted a positive integer, got {value!r}")
    return number


def _seconds(value: object) -> float:
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else 0.0
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise ConfigError(f"wanted a positive number of seconds, got {value!r}")
    return number


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    known = {"true": True, "1": True, "false": False, "0": False}
    flag = known.get(value.lower()) if isinstance(value, str) else None
    if flag is None:
        raise ConfigError(f"wanted True or False, got {value!r}")
    return flag


def _name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"wanted the name of a backend, got {value!r}")
    return value


def _dtype_name(value: object) -> str:
    return _one_of("float64", "float32")(getattr(value, "__name__", None) or str(value))


@record
class _Option:
    default: Any
    check: Callable[[object], Any]


_OPTIONS: Final[Mapping[str, _Option]] = {
    "broadcasting": _Option("numpy", _one_of(*MODES)),
    "backend": _Option("numpy", _name),
    "default_dtype": _Option("float64", _dtype_name),
    "default_prng_impl": _Option("threefry2x32", _one_of(*PRNG_IMPLS)),
    "max_depth": _Option(10_000, _positive),
    "max_pending_bytes": _Option(64 * 2**20, _positive),
    "jit_warn_compilations": _Option(20, _positive),
    "fusion": _Option("auto", _one_of("auto", "compiled", "off")),
    "small_arrays": _Option("eager", _one_of("eager", "lazy")),
    "deterministic": _Option(True, _flag),
    "collective_timeout": _Option(600.0, _seconds),
    "native_sums": _Option(False, _flag),
    "kernel_cache": _Option("on", _one_of("on", "off")),
    "debug": _Option(False, _flag),
    "debug_nans": _Option(False, _flag),
    "debug_overflow": _Option(False, _flag),
    "traceback": _Option("short", _one_of("short", "full")),
    "verify_graphs": _Option(False, _flag),
}


def _unknown(name: str) -> UnknownOptionError:
    return UnknownOptionError(f"xarr.config has no option {name!r}; there are {', '.join(_OPTIONS)}")


def _check(name: str, value: object) -> Any:
    if name not in _OPTIONS:
        raise _unknown(name)
    try:
        return _OPTIONS[name].check(value)
    except ConfigError as error:
        raise ConfigError(f"config.{name}: {error}") from None


#: Read by other parts of xarr, and by the scripts of its documentation.
_OTHER_VARIABLES: Final = ("XARR_CACHE_DIR", "XARR_NATIVE_CALLS", "XARR_THREADS", "XARR_PYODIDE")


def _check_names() -> None:
    """Warn of environment variables that begin with XARR_ and are no option: they have no effect."""
    known = [*(f"XARR_{name.upper()}" for name in _OPTIONS), *_OTHER_VARIABLES]
    for variable in sorted(os.environ):
        if variable.startswith("XARR_") and variable not in known:
            hint = did_you_mean(variable, known) or f"there are {', '.join(known)}"
            message = f"xarr reads no environment variable {variable}; {hint}"
            warnings.warn(message, UnknownVariableWarning, stacklevel=2)


def _initial() -> dict[str, Any]:
    _check_names()
    values = {name: option.default for name, option in _OPTIONS.items()}
    for name in _OPTIONS:
        variable = f"XARR_{name.upper()}"
        if os.environ.get(variable):  # an empty variable counts as none, as in POSIX
            try:
                values[name] = _check(name, os.environ[variable])
            except ConfigError as error:
                _refuse(f"environment variable {variable}: {error}")
    return values


def _refuse(message: str) -> NoReturn:
    # Of `python -m xarr`, Python imports the package before any line of __main__ could catch an error.
    if sys.argv[:1] == ["-m"] and "xarr" in sys.orig_argv:
        print(f"xarr: {message}", file=sys.stderr)
        raise SystemExit(2)
    raise ConfigError(message) from None


#: The settings under which ops on small values are computed without a further look.
_USUAL: Final = {
    **{"broadcasting": "numpy", "default_dtype": "float64", "small_arrays": "eager"},
    **{"debug": False, "debug_nans": False, "debug_overflow": False},
}


def _is_usual(settings: Mapping[str, Any]) -> bool:
    return settings["fusion"] != "compiled" and all(
        [settings[name] == value for name, value in _USUAL.items()]
    )


#: Blocks that are known at most.
_MOST_BLOCKS: Final = 256
_NONE: Final[Mapping[str, Any]] = {}


class Config:
    """The settings in force.  Assignments are global; `with config(...)` holds in its thread or task only."""

    broadcasting: str
    backend: str
    default_dtype: str
    default_prng_impl: str
    max_depth: int
    max_pending_bytes: int
    jit_warn_compilations: int
    fusion: str
    small_arrays: str
    deterministic: bool
    collective_timeout: float
    native_sums: bool
    kernel_cache: str
    debug: bool
    debug_nans: bool
    debug_overflow: bool
    traceback: str
    verify_graphs: bool

    def __init__(self) -> None:
        self._set(_initial())
        self.__dict__["_overrides"] = ContextVar("overrides", default=_NONE)
        self.__dict__["_is_separate"] = ContextVar("is_separate", default=False)
        #: What blocks have overridden, by what was around them and their settings, and what was around them.
        self.__dict__["_blocks"] = {}
        # Beside the overrides in every context that has them, and in nothing else, which may keep overrides.
        self.__dict__["_obstacles"] = ContextVar("obstacles", default=None)

    def __getattr__(self, name: str) -> Any:
        overrides = self._overrides.get()
        if name in overrides:
            return overrides[name]
        if name in self._global:
            return self._global[name]
        raise _unknown(name)

    def __setattr__(self, name: str, value: object) -> None:
        # A new dict for every change, so that its identity tells whether anything has changed.
        if self._is_separate.get():
            overrides = {**self._overrides.get(), name: _check(name, value)}
            self._obstacles.set(self._obstacle_of({**self._global, **overrides}))
            self._overrides.set(overrides)
            return
        self._set({**self._global, name: _check(name, value)})

    def _set(self, settings: dict[str, Any]) -> None:
        self.__dict__.update(_global=settings, _obstacle=self._obstacle_of(settings))

    @staticmethod
    def _obstacle_of(settings: Mapping[str, Any]) -> Obstacle | None:
        """The obstacle that settings are; None for usual ones."""
        return None if _is_usual(settings) else Obstacle()

    @contextmanager
    def __call__(self, **values: object) -> Iterator[Config]:
        """`with config(broadcasting="explicit"):` sets options for the block, in this thread or task only."""
        overrides = self._overrides_of({name: _check(name, value) for name, value in values.items()})
        obstacle = self._obstacles.set(self._obstacle_of({**self._global, **overrides}))
        token = self._overrides.set(overrides)
        try:
            yield self
        finally:
            self._overrides.reset(token)
            self._obstacles.reset(obstacle)

    def _overrides_of(self, values: dict[str, Any]) -> dict[str, Any]:
        """The overrides inside of a block: one that comes again has the same object, for which programs are known."""
        around = self._overrides.get()
        key = (id(around), *values.items())
        known = self._blocks.get(key)
        if known is None or known[0] is not around:
            if len(self._blocks) >= _MOST_BLOCKS:
                self._blocks.clear()
            known = self._blocks[key] = around, {**around, **values}
        return known[1]  # type: ignore[no-any-return]

    @contextmanager
    def separate(self) -> Iterator[None]:
        """Let assignments in the block hold in this thread or task only, as if it were a process of its own."""
        # A new dict, by whose identity `state` tells this thread or task from others.
        tokens = self._overrides.set({**self._overrides.get()}), self._is_separate.set(True)
        obstacle = self._obstacles.set(self._obstacles.get())
        try:
            yield
        finally:
            self._obstacles.reset(obstacle)
            self._overrides.reset(tokens[0])
            self._is_separate.reset(tokens[1])

    def __reduce__(self) -> str:
        # The one object of this name, for copies and in other processes.
        return "current"

    def __repr__(self) -> str:
        return "\n".join(["xarr.config", *(f"  {name} = {getattr(self, name)!r}" for name in _OPTIONS)])

    def stay_usual(self, backend: str) -> None:
        """Let this context see the settings under which values are computed at once, and record what it computes.

        Who runs something in it holds an `Obstacle` meanwhile.
        """
        self._overrides.set(self._overrides_of({**_USUAL, "small_arrays": "lazy", "backend": backend}))

    def debugging(self) -> bool:
        """Whether what ops make is checked, so that they run one by one."""
        settings = self.now()
        return settings["debug_nans"] or settings["debug_overflow"]  # type: ignore[no-any-return]

    def now(self) -> Mapping[str, Any]:
        """All settings in force, for code that asks for several: one call, where each attribute is two."""
        overrides = self._overrides.get()
        return {**self._global, **overrides} if overrides else self._global

    def snapshot(self) -> dict[str, Any]:
        """The global values, for `restore`."""
        return dict(self._global)

    def state(self) -> tuple[object, object]:
        """Two objects that stay the same as long as no setting changes; compare them by identity."""
        return self._global, self._overrides.get()

    def is_in(self, state: tuple[object, object]) -> bool:
        """Whether no setting has changed since `state()` gave this."""
        return self._global is state[0] and self._overrides.get() is state[1]

    def restore(self, values: Mapping[str, Any]) -> None:
        """Set the global values back to a `snapshot`."""
        self._set({**self._global, **values})


current: Final = Config()
