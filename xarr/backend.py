"""The interface of backends, their lookup by name, and the flag that chooses one.

A backend is a package `xarr_<name>` with a class `Backend`, or an entry point `<name>` of the group
`xarr.backends` that loads such a class; it is imported when first used.  The backends in this
repository are looked up by the same rule as any other.
"""

from __future__ import annotations

import importlib
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from xarr.base.at_once.numpy_calls import NumPyCall
from xarr.base.configuration import current as config
from xarr.base.frozen_dataclasses import record
from xarr.base.layouts import Layout
from xarr.base.names import did_you_mean
from xarr.compiler.target import Target
from xarr.errors import BackendError, UnknownBackendError
from xarr.ir.device import Device
from xarr.ir.ops import Constant

if TYPE_CHECKING:
    import numpy as np

    from xarr.base.progress import ProgressCallback
    from xarr.compiler.plan.program_plan import Plan, Step
    from xarr.compiler.schedule import Schedule
    from xarr.ir.graph import Graph, Node
    from xarr.ir.op import Op
    from xarr.ir.types import TensorType

ENTRY_POINTS = "xarr.backends"


class Program(Protocol):
    """A compiled graph: call it with one buffer per parameter, get a tuple of one per result."""

    @property
    def text(self) -> str:
        """The readable source of what runs."""

    def __call__(self, *arguments: Any) -> Sequence[Any]: ...


@dataclass(frozen=True)
class DirectCall:
    """A program that is one call, for a caller who would spare the functions of Python around it.

    * `make`, `specs` - for each result the arguments of `make`, which makes a buffer for it; None where the result is
      an argument itself, the one of `arguments` that has this number,
    * `run` - called with the arguments of the program and then these buffers, fills them for good and returns True;
      or returns False and has done nothing, since the arguments do not lie as they must,
    * `holds_lock` - whether no other thread of Python runs meanwhile, and nothing is raised.
    """

    make: Callable[..., Any]
    specs: tuple[tuple[Any, ...] | None, ...]
    arguments: tuple[int | None, ...]
    run: Callable[..., bool]
    holds_lock: bool = True


@dataclass(frozen=True)
class EagerFunction:
    """An op as a function from the buffers of its operands to that of its result, or to those of several in order.

    It is called without a program.  is_view: whether a result may be memory of an operand; ufunc: what computes
    the op for arrays of these element types and any shapes that NumPy broadcasts, if there is one function.
    """

    call: Callable[..., Any]
    is_view: bool
    ufunc: Callable[..., Any] | None = None


@dataclass(frozen=True)
class ArrayClass:
    """The class of Arrays, for a backend that makes methods of it which need no Python.

    * `cls`, `methods` - the class, and its methods by name, which do all that others leave to them,
    * `obstacles` - the table in which a row says that Arrays are to be computed with by `methods` alone,
    * `context` - a context in which NumPy does not warn; None if there is none,
    * `locate`, `count` - give the location of the user's line for a frame, and count elements that it reads,
    * `index_step`, `copied_bytes`, `live_part` - of parts: what stands for an index, bytes up to which they are copied,
      and what a part of a part refers to, for what its Array refers to,
    * `is_put_back` - says of a part whether the statement that runs puts it back, as `x[0] += 1` does,
    * `wrap_constant` - makes an Array of what an operator gave for constants alone, for the value, the operator's
      method, its Array and the other operand; None where constants have no values,
    * `host_methods` - by the names of methods functions of NumPy's that do the same, unless they raise one of
      `refusals`.
    """

    cls: type[Any]
    methods: Mapping[str, Callable[..., Any]]
    obstacles: dict[int, None]
    context: Context | None
    locate: Callable[..., Any]
    count: Callable[..., Any]
    index_step: object
    copied_bytes: int
    live_part: Callable[..., Any]
    is_put_back: Callable[..., bool]
    wrap_constant: Callable[..., Any]
    host_methods: Mapping[str, NumPyCall]
    refusals: tuple[type[Exception], ...]


@dataclass(frozen=True)
class ArrayMethods:
    """Methods by name that may stand in place of those of an `ArrayClass`.

    forget_counts: counts the elements that lines have read from 0 again; host_call: makes of a row, and of the names
    of the parameters that may be arrays, a function of arguments in a tuple and in a dict, which gives an Array; where
    that is not sure what a function gives, and another one where NumPy refuses, None for None.  It is called by a
    function that the user's program called, or that a method did.

    fill_slots: lets Python call the methods that the class has without looking them up, but for those whose names it
    gets, which are others; empty_slots: undoes what the class does not undo as it gets its own methods back.
    """

    methods: Mapping[str, Callable[..., Any]]
    forget_counts: Callable[[], None]
    host_call: Callable[..., Callable[..., Any]]
    fill_slots: Callable[[Collection[str]], None]
    empty_slots: Callable[[], None]


def mark_failed(error: BaseException, node: Node) -> None:
    """Say which node of the graph that a program runs raised `error`; the outermost program has the last word."""
    error.__dict__["_xarr_node"] = node


def failed_node(error: BaseException, graph: Graph) -> Node | None:
    """The node of `graph` whose computation raised `error`, if the backend said so.

    The error forgets it: a node is no part of what users catch, copy and send to other processes.
    """
    failed = error.__dict__.pop("_xarr_node", None)
    return next((node for node in graph.nodes if node is failed), None)


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A view through which nothing can be written."""
    view = array.view()
    view.flags.writeable = False
    return view


@record
class Limits:
    """The largest arrays and the longest reductions that a backend takes; None where nothing is too much.

    * `max_rank`, `max_nbytes` - dimensions and bytes of an array that it can compute,
    * `max_memory` - bytes of a result that the memory of a machine could hold,
    * `max_steps` - elements that one reduction goes through.
    """

    max_rank: int | None = None
    max_nbytes: int | None = None
    max_memory: int | None = None
    max_steps: int | None = None


#: Those of NumPy's arrays; what a process can address; some twenty minutes of one core.
NUMPY_LIMITS: Final = Limits(max_rank=64, max_nbytes=2**63 - 1, max_memory=2**47, max_steps=2**40)


@record
class BorrowedMemory:
    """Memory of a device that another library lends, from the first to the last element of an array.

    * `buffer` - all of it, a buffer of `size` elements of `dtype`; of the array's own shape where `strides` is None,
    * `shape` - that of the array,
    * `strides`, `offset` - the distances of its elements in the buffer, and the index of the first one; None for the
      strides of elements in row-major order,
    * `ordinal` - the number of the device.
    """

    buffer: Any
    dtype: np.dtype[Any]
    size: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    offset: int = 0
    ordinal: int = 0


class AbstractBackend(ABC):
    """The interface of a backend.  A buffer is whatever it likes to compute on."""

    #: The name it is chosen by.
    name: ClassVar[str]
    #: What it refuses as too large.
    limits: ClassVar[Limits] = Limits()
    #: The numbers of its machine, by which groups are formed, loops laid out and plans made.
    target: ClassVar[Target] = Target()
    #: The settings of `xarr.config` that its programs depend on, besides their graph: "fusion", "deterministic" or
    #: none.  Their values are a part of the keys by which programs are kept.
    options: ClassVar[tuple[str, ...]] = ()
    #: Whether buffers lie in the memory of the host.  Then `from_host` may lend memory, `to_host` copies nothing, and
    #: code that builds a graph may look at values that are there; elsewhere only who asks for a value copies it.
    is_on_host: ClassVar[bool] = True
    #: Whether its arrays have strides, so that a result can be a view of an operand's memory in another order.
    has_views: ClassVar[bool] = True
    #: Whether ops on small arrays are computed when they are recorded: then buffers are NumPy arrays of the host, and
    #: `eager_function` says which ops.
    computes_small_ops: ClassVar[bool] = False
    #: The number of the device that this object computes on; `at` gives those of others.
    ordinal: int = 0

    def __repr__(self) -> str:
        return f"<backend {self.name} on {', '.join(self.devices())}>"

    @abstractmethod
    def supports(self, op: type[Op]) -> bool:
        """Whether the backend runs this op whole.  Ops it does not are decomposed, or refused."""

    def fuse(self, graph: Graph, hot: bool = False) -> Graph:
        """The graph cut into groups that run as one; as it is, for a backend that runs op by op.

        `hot`: it will run many times, so that much work on it pays.
        """
        return graph

    def schedule(self) -> Schedule | None:
        """The builders of the loop programs of groups that `fuse` makes; None for a backend that makes none."""
        return None

    @abstractmethod
    def compile(self, graph: Graph) -> Program:
        """Compile a graph that holds only supported ops.  Programs are kept, and used again for equal graphs."""

    def compile_eager(self, graph: Graph) -> Program:
        """As `compile`, but for a value that is wanted now, so that other shapes may come next time.

        A backend whose programs share what it compiled for other shapes returns one of those.
        """
        return self.compile(graph)

    def program_nbytes(self, graph: Graph) -> int:
        """About how many bytes of the host's memory the program of a graph takes; literals count in full.

        Unless the backend says otherwise, as tracemalloc measured it for programs in Python.
        """
        nbytes = 7000
        for each in graph.walk():
            for node in each.nodes:
                nbytes += 750 + (len(node.op.raw) if isinstance(node.op, Constant) else 0)
        return nbytes

    def compile_owning(self, graph: Graph, donated: Sequence[int]) -> Program:
        """As `compile`, but the program may write over the buffers of these parameters if it has claimed them."""
        return self.compile(graph)

    def plan_of(self, program: Program) -> Plan | None:
        """The plan that one of its programs follows; None where it follows none.

        A plan says which results have memory of their own, so that an Array can be donated.
        """
        return None

    def remarks(self, plan: Plan) -> Sequence[tuple[Step, str]]:
        """Remarks on steps for the text of a plan: what keeps them from running as others do."""
        return ()

    def with_progress(self, program: Program, progress: ProgressCallback) -> Program:
        """One of its programs, to the same bits, as one that tells `progress` after each step how far it is.

        A backend that cannot say how far it is returns the program as it is.
        """
        return program

    def direct_call(self, program: Program) -> DirectCall | None:
        """One of its programs as a single call; None if it is more than that."""
        return None

    def is_final(self, program: Program) -> bool:
        """Whether one of its programs stays as it is; False for one that may be another `direct_call` later."""
        return True

    def eager_function(
        self, op: Op, types: Sequence[TensorType] | None, program: Callable[[], Program]
    ) -> EagerFunction | None:
        """One op on small arrays as a function, with the bits that a program of the op alone gives.

        types: of the operands, which NumPy's rule broadcasts to one shape where their shapes differ; None where they
        are converted first.  program: makes the program, conversions and broadcasts included.

        None, for which a backend need do nothing, leaves the op recorded until a value is needed.
        """
        return None

    def array_methods(self, array_class: ArrayClass) -> ArrayMethods | None:
        """Methods for small arrays of a backend that `computes_small_ops`, quicker than those given; None for none."""
        return None

    def fold_segments(self, name: str, x: Any, starts: Any) -> Any:
        """The folds by the ufunc `name` of a vector, from each of `starts` up to the next; None where there is none.

        Both are arrays of the host, the starts of int64, of a backend that `computes_small_ops`; the order of elements
        is that of `reduceat`.
        """
        return None

    def claim(self, buffer: Any) -> bool:
        """Let programs write over a buffer that nothing else sees; False if they cannot, or did not make it."""
        return False

    @abstractmethod
    def from_host(self, array: np.ndarray[Any, Any]) -> Any:
        """A buffer with the values of `array`.  It may share memory: xarr writes to no buffer that was
        not donated."""

    def from_number(self, number: np.ndarray[Any, Any]) -> Any:
        """An array of the host without dimensions as an argument of programs, which may take numbers by value.

        A buffer as `from_host` makes it unless the backend says otherwise; results of programs are always buffers.
        """
        return self.from_host(number)

    @abstractmethod
    def to_host(self, buffer: Any) -> np.ndarray[Any, Any]:
        """The values of a buffer as a NumPy array of the same shape and dtype."""

    def block_until_ready(self, buffer: Any) -> None:
        """Wait until the values of a buffer are there; nothing to do where programs return with their results.

        Raises BackendError if the device failed meanwhile.
        """
        return

    def from_device(self, buffer: Any, origin: AbstractBackend) -> Any:
        """A buffer with the values of one of `origin`, on another device; by way of the host if no other is known."""
        return self.from_host(origin.to_host(buffer))

    def layout(self, buffer: Any, rank: int) -> Layout | None:
        """The order of the dimensions of a buffer, None for no dense order.

        Row-major in memory that is not the host's, unless the backend says otherwise.
        """
        return Layout.of(self.to_host(buffer)) if self.is_on_host else Layout.row_major(rank)

    def dlpack_device(self) -> tuple[int, int]:
        """DLPack's numbers of the device that buffers lie on; for one that DLPack does not know, `kDLExtDev`.

        Source: DLPack 1.1, `DLDeviceType`.
        """
        return (1, 0) if self.is_on_host else (12, 0)

    def to_dlpack(
        self, buffer: Any, stream: Any, max_version: tuple[int, int] | None, copy: bool | None
    ) -> Any:
        """A DLPack capsule with a buffer in memory that is not the host's, of type codes that NumPy knows.

        Elements of other types are exported as unsigned integers with their bits.  Raises BufferError if the memory
        cannot be lent.
        """
        raise BufferError(
            f"__dlpack__: the backend {self.name!r} does not export its memory; wanted dl_device=(1, 0) for a copy in "
            'that of the CPU, or x.to("numpy")'
        )

    def stream(self) -> Any:
        """DLPack's number of the stream on which memory that is lent to this device must be ready; None for none."""
        return None

    def from_dlpack(self, capsule: object, dtype: np.dtype[Any] | None) -> BorrowedMemory:
        """The memory in a DLPack capsule of one of this backend's devices, lent for as long as its buffer lives.

        dtype: the element type whose bits the capsule has as unsigned integers; None for the capsule's own.
        """
        raise BackendError(f"backend {self.name!r} cannot use the memory of other libraries")

    def from_cuda_array_interface(self, x: Any) -> BorrowedMemory:
        """The memory of an object with `__cuda_array_interface__`, lent for as long as its buffer lives."""
        raise BackendError(f"backend {self.name!r} cannot use the memory of other libraries")

    def cuda_array_interface(self, buffer: Any) -> dict[str, Any]:
        """The `__cuda_array_interface__` of a buffer: it says where the memory is, and does not hold it.

        It is asked for where the type of `dlpack_device` is `kDLCUDA`.
        """
        raise BackendError(f"backend {self.name!r} does not export its memory")

    def engine(self) -> str:
        """The engine that runs groups of operations, and why, for `python -m xarr doctor`; "" for none."""
        return ""

    def devices(self) -> tuple[str, ...]:
        """Names of the devices it could use here."""
        return ("cpu",)

    def at(self, ordinal: int) -> AbstractBackend:
        """This backend on its device of that number: always the same object.  BackendError if there is none."""
        if ordinal != self.ordinal:
            raise BackendError(
                f"backend {self.name!r} has no device {ordinal}, only {', '.join(self.devices())}"
            )
        return self

    def device(self) -> Device:
        """The device that this object computes on: always the same."""
        known: dict[str, Any] = self.__dict__
        device: Device = known.get("_device") or known.setdefault("_device", Device(self, self.ordinal))
        return device


_loaded: dict[str, AbstractBackend] = {}
_config: Final = config.__dict__
_overrides: Final = config._overrides.get
#: Names of devices that choose a backend.
_ALIASES: Final = {"cpu": "numpy", "cuda": "cupy"}
#: Other libraries' names for devices that no backend here computes on.
_ACCELERATORS: Final = frozenset({"gpu", "rocm", "hip", "tpu", "mps", "metal", "xpu"})


def get(name: str) -> AbstractBackend:
    """The backend called `name`, loaded if need be; "cpu" is numpy's, "cuda:1" cupy's on its second device.

    Raises BackendError if there is none, or if it cannot work on this machine (it says why).
    """
    if not isinstance(name, str):
        raise BackendError(f"wanted the name of a backend, got {type(name).__name__}")
    loaded = _loaded.get(name)
    if loaded is not None:
        return loaded
    base, colon, number = name.partition(":")
    if base in _ALIASES:
        name = f"{_ALIASES[base]}{colon}{number}"
    loaded = _loaded.get(name)
    if loaded is None:
        # Threads that load it at the same time must get the same one: Arrays of two backends do not mix.
        loaded = _loaded.setdefault(name, _load(name))
    return loaded


def get_backend(name: str | None = None) -> AbstractBackend:
    """The backend called `name`; without a name, the one of new arrays.

    Raises BackendError if there is none of that name, or if it cannot work on this machine (it says why).
    """
    return default() if name is None else get(name)


def _load(name: str) -> AbstractBackend:
    base, _, number = name.partition(":")
    if number.isdecimal() and (base in _loaded or _factory(base) is not None):
        return get(base).at(int(number))
    factory = _factory(name)
    if factory is None:
        raise UnknownBackendError(_unknown(name))
    backend = factory()
    if not isinstance(backend, AbstractBackend) or backend.name != name:
        raise BackendError(
            f"backend {name!r}: wanted an AbstractBackend of that name to be registered, got {backend!r}"
        )
    return backend


def _factory(name: str) -> Any:
    """The class of the backend called `name`, None if there is none; BackendError if it cannot be imported."""
    try:
        return _from_module(name) or _from_entry_point(name)
    except ImportError as error:
        raise BackendError(f"backend {name!r} is installed but cannot be imported: {error}") from error


def _unknown(name: str) -> str:
    """The text for a name that no backend has: what it was meant to be, or what is missing for it."""
    installed = available()
    there_are = f"available: {', '.join(installed)}"
    if name.partition(":")[0].lower() in _ACCELERATORS:
        return f"no backend called {name!r}: the one for GPUs, those of NVIDIA, is 'cupy'; {there_are}"
    base, colon, number = name.partition(":")
    if colon and base in installed:
        return f"backend {base!r} has no device {number!r}: wanted its number, as in '{base}:1'"
    hint = did_you_mean(name, (*installed, *_ALIASES))
    return (
        f"no backend called {name!r}{f'; {hint}' if hint else ''} ({there_are}; another one is a package "
        f"xarr_<name> with a class Backend, or an entry point of the group {ENTRY_POINTS})"
    )


def _from_module(name: str) -> Any:
    module = f"xarr_{name}"
    if not name.isidentifier() or importlib.util.find_spec(module) is None:
        return None
    return getattr(importlib.import_module(module), "Backend", None)


def _entry_points() -> Any:
    # Imported here because it takes longer than the rest of xarr and only third parties' backends need it.
    import importlib.metadata as metadata

    return metadata.entry_points(group=ENTRY_POINTS)


def _from_entry_point(name: str) -> Any:
    return next((entry.load() for entry in _entry_points() if entry.name == name), None)


BUNDLED = ("numpy", "reference", "null", "cupy")


def available() -> tuple[str, ...]:
    """Names of the backends that are installed, whether or not their devices are there."""
    names = [name for name in BUNDLED if importlib.util.find_spec(f"xarr_{name}")]
    names += sorted(entry.name for entry in _entry_points())
    return tuple(dict.fromkeys(names))


def default() -> AbstractBackend:
    """The backend of new arrays: `XARR_BACKEND`, `set_backend` or `use_backend`, else numpy."""
    return get(_overrides().get("backend") or _config["_global"]["backend"])


def default_device() -> Device:
    """The device of new arrays: that of the default backend, its first if it was chosen without a number."""
    return default().device()


def set_backend(name: str) -> None:
    """Make `name` the backend of arrays created from now on.  BackendError if it cannot be loaded."""
    config.backend = get(name).device().name


@contextmanager
def use_backend(name: str) -> Iterator[AbstractBackend]:
    """`with use_backend("reference"):` makes it the backend of arrays created in the block."""
    chosen = get(name)
    with config(backend=chosen.device().name):
        yield chosen
