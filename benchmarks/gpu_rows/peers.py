"""The contenders of a row on one device: xarr under jit and recorded, CuPy, JAX, PyTorch, where they are installed.

What a contender cannot do, for want of memory, of an element type or of a compiler, is a reason why it has no figure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from measure import Call, Contenders

import xarr
from gpu_rows.row import Case, Row, arrays_of

#: Elements that are compared of a result, at least.
SAMPLED: Final = 2**20
#: Units in the last place of bfloat16 of the greatest element by which results may differ, and that where a row allows
#: float32 as many as long sums need.
BFLOAT16_TOLERANCE: Final = (16, 64)
LONG_SUM: Final = 1e4

#: The reason of a contender that nobody asked for.
LEFT_OUT: Final = "left out"
#: CuPy's `CompileException` is none of them, and joins where CuPy does.
REFUSALS: Final = (
    *(RuntimeError, TypeError, ValueError, MemoryError, AttributeError, ImportError, OSError, KeyError),
    *(AssertionError, xarr.errors.XarrError),
)


@dataclass
class Peers:
    """The modules that compute, those that are here.

    * `arrays` - CuPy, or in tests NumPy, which has its names,
    * `jax`, `torch` - those modules, None where they have no GPU or are not installed,
    * `reasons` - why one is missing,
    * `refusals` - the errors of those that cannot do something, of memory, types or compilers,
    * `without` - contenders that are left out,
    * `last` - the result of JAX's last call, which another thread of its own may still have to launch.
    """

    arrays: Any
    jax: Any = None
    torch: Any = None
    reasons: dict[str, str] = field(default_factory=dict)
    refusals: tuple[type[Exception], ...] = REFUSALS
    without: tuple[str, ...] = ()
    last: Any = None

    def synchronize(self) -> None:
        """Wait for all that was launched, on all streams."""
        if self.last is not None:
            self.jax.block_until_ready(self.last)
            self.last = None
        if hasattr(self.arrays, "cuda"):
            self.arrays.cuda.runtime.deviceSynchronize()

    def fault(self) -> str:
        """The fault of the device that each call from now on would tell again; empty if there is none."""
        try:
            self.synchronize()
        except self.refusals as error:
            return f"{type(error).__name__}: {_first_line(error)}"
        return ""

    def free(self) -> None:
        """Give the memory back that pools keep."""
        if hasattr(self.arrays, "get_default_memory_pool"):
            self.arrays.get_default_memory_pool().free_all_blocks()
        if self.torch is not None:
            self.torch.cuda.empty_cache()

    def free_bytes(self) -> int | None:
        """The free memory of the device, None where there is no device."""
        self.free()
        return self.arrays.cuda.runtime.memGetInfo()[0] if hasattr(self.arrays, "cuda") else None


def connect(others: Collection[str] = ("jax", "torch")) -> Peers:
    """CuPy, and JAX and PyTorch where they see a GPU.  ImportError without CuPy, RuntimeError without a GPU."""
    # JAX would take three quarters of the memory for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    peers = Peers(import_module("cupy"))
    peers.refusals = (*REFUSALS, peers.arrays.cuda.compiler.CompileException)
    if not peers.arrays.cuda.is_available():
        raise RuntimeError("CuPy sees no GPU")
    for name, sees in (("jax", _jax_sees), ("torch", _torch_sees)):
        if name not in others:
            continue
        if find_spec(name) is None:
            peers.reasons[name] = "not installed"
            continue
        module = import_module(name)
        reason = sees(module)
        if reason:
            peers.reasons[name] = reason
        else:
            setattr(peers, name, module)
    return peers


def _jax_sees(jax: Any) -> str:
    jax.config.update("jax_enable_x64", True)
    jax.config.update(
        "jax_default_matmul_precision", "highest"
    )  # no TF32: xarr, CuPy and PyTorch have none here
    try:
        jax.devices("gpu")
    except RuntimeError as error:
        return _first_line(error)
    return ""


def _torch_sees(torch: Any) -> str:
    # As xarr and CuPy multiply float32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return "" if torch.cuda.is_available() else "sees no GPU"


# --- contenders ----------------------------------------------------------------------------------------------


def makers(case: Case, peers: Peers) -> Iterator[tuple[str, Callable[[list[np.ndarray]], Call]]]:
    """Who takes part, the reference first, and what makes its call of arrays of the host."""
    for name, spelling in case.by_cupy.items():
        yield name, lambda arrays, spelling=spelling: _by_cupy(peers.arrays, spelling, arrays)
    yield "xarr", lambda arrays: _by_xarr(case, arrays)
    yield "lazy", lambda arrays: _by_recording(case, arrays)
    if hasattr(peers.arrays, "cuda"):
        yield "replay", lambda arrays: _by_replay(peers.arrays, case, arrays)
    if peers.jax is not None:
        yield "jax", lambda arrays: _by_jax(peers, case, arrays)
    if peers.torch is not None and case.by_torch is not None:
        yield "torch", lambda arrays: _by_torch(peers.torch, case, arrays, is_compiled=False)
        yield "torch.compile", lambda arrays: _by_torch(peers.torch, case, arrays, is_compiled=True)


def _by_cupy(module: Any, spelling: Any, arrays: list[np.ndarray]) -> Call:
    function, own = spelling(module), [module.asarray(each) for each in arrays]
    return lambda: function(*own)


def _by_xarr(case: Case, arrays: list[np.ndarray]) -> Call:
    own = [xarr.asarray(each).evaluate() for each in arrays]
    compiled = xarr.jit(case.program(xarr, xarr.lax))
    return lambda: compiled(*own)


def _by_recording(case: Case, arrays: list[np.ndarray]) -> Call:
    own, function = [xarr.asarray(each).evaluate() for each in arrays], case.program(xarr, xarr.lax)

    def call() -> Any:
        result = function(*own)
        xarr.evaluate(*result) if isinstance(result, tuple) else result.evaluate()
        return result

    return call


def _by_replay(cupy: Any, case: Case, arrays: list[np.ndarray]) -> Call:
    """Replays of a call as a CUDA graph, in which the host has no part: the time of the kernels alone."""
    stream, pool = cupy.cuda.Stream(non_blocking=True), cupy.cuda.MemoryPool()
    # What the graph writes to is nobody else's as long as its pool is there.
    with stream, cupy.cuda.using_allocator(pool.malloc):
        call = _by_xarr(case, arrays)
        xarr.block_until_ready(call())
        stream.begin_capture()
        try:
            result = call()
        finally:
            graph = stream.end_capture()

    def replay() -> Any:
        assert pool is not None
        graph.launch(stream)
        return result

    return replay


def _by_jax(peers: Peers, case: Case, arrays: list[np.ndarray]) -> Call:
    """A call that does not wait, as those of the others; `Peers.synchronize` does."""
    jax = peers.jax
    own = [jax.device_put(each) for each in arrays]
    compiled = jax.jit(case.by_jax(jax) if case.by_jax else case.program(jax.numpy, jax.lax))

    def call() -> Any:
        peers.last = compiled(*own)
        return peers.last

    return call


def _by_torch(torch: Any, case: Case, arrays: list[np.ndarray], is_compiled: bool) -> Call:
    assert case.by_torch is not None
    own = [_tensor(torch, each) for each in arrays]
    function = torch.compile(case.by_torch(torch)) if is_compiled else case.by_torch(torch)
    return lambda: function(*own)


def _tensor(torch: Any, array: np.ndarray) -> Any:
    if array.dtype.name == "bfloat16":  # which NumPy's type for it is to PyTorch only by its bits
        return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(array).cuda()


@dataclass
class Prepared:
    """The contenders of a row that give the result of the first; why others do not take part, or are wrong."""

    calls: Contenders
    reasons: dict[str, str]


def prepare(case: Case, row: Row, dtype: str, peers: Peers) -> Prepared:
    """Make the arrays of all contenders, call each once, and compare samples of the results with the first's."""
    arrays, prepared, wanted = arrays_of(case.inputs), Prepared({}, {}), None
    for name, make in makers(case, peers):
        if name in peers.without:
            prepared.reasons[name] = LEFT_OUT
            continue
        try:
            call = make(arrays)
            got = sample(call())
        except peers.refusals as error:  # The others are measured all the same.
            prepared.reasons[name] = f"{type(error).__name__}: {_first_line(error)}"
            peers.free()
            continue
        problem = "" if wanted is None else difference(got, wanted, dtype, row)
        wanted = got if wanted is None else wanted
        if problem:
            prepared.reasons[name] = f"WRONG: {problem}"
        else:
            prepared.calls[name] = call
    return prepared


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


# --- results -------------------------------------------------------------------------------------------------


def sample(result: Any) -> list[np.ndarray]:
    """Elements of each array of a result in steps of an odd number, on the host; floats and complex ones in float64."""
    parts: Sequence[Any] = result if isinstance(result, tuple | list) else [result]
    return [_sample(each) for each in parts]


def _sample(array: Any) -> np.ndarray:
    flat = array.reshape(-1)
    step = max(1, int(flat.shape[0]) // SAMPLED) | 1
    few = on_host(flat[::step])
    return few if few.dtype.kind in "iub" else few.astype(np.float64)


def on_host(array: Any) -> np.ndarray:
    """An array of any of the libraries as one of NumPy."""
    if hasattr(array, "detach"):
        array = array.detach()
        return np.asarray((array.float() if array.is_floating_point() else array).cpu().numpy())
    return np.asarray(array.get() if hasattr(array, "get") else array)


def difference(got: list[np.ndarray], wanted: list[np.ndarray], dtype: str, row: Row) -> str:
    """The way in which samples differ by more than the row allows; empty if they do not."""
    if len(got) != len(wanted):
        return f"{len(got)} results, wanted {len(wanted)}"
    for left, right in zip(got, wanted, strict=True):
        if left.shape != right.shape:
            return f"{left.size} elements, wanted {right.size}"
        if right.dtype.kind in "iub":
            part = float(np.mean(left != right)) if right.size else 0.0
            if part > row.unequal:
                return f"{part:.2%} of the elements differ"
            continue
        tolerance = row.tolerance * np.finfo(np.float32).eps
        if dtype == "bfloat16":
            tolerance = BFLOAT16_TOLERANCE[row.tolerance >= LONG_SUM] * float(2.0**-7)
        scale = np.max(np.abs(right), initial=0, where=np.isfinite(right))
        if not np.allclose(left, right, rtol=0, atol=tolerance * scale, equal_nan=True):
            return f"by up to {np.nanmax(np.abs(left - right)):.3g}, wanted at most {tolerance * scale:.3g}"
    return ""
