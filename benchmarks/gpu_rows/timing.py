"""The table that needs a GPU: times of a row, ratios to its peers, shares of the device's own rates."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import measure
import numpy as np

from gpu_rows.listing import least_bytes
from gpu_rows.peers import LEFT_OUT, Peers, prepare
from gpu_rows.row import Case, Row
from xarr.base.configuration import current as config

#: Letters of the rows as they matter: what is wanted of a share of the bandwidth first.
IMPORTANCE: Final = "abehcfjdimgknlo"
#: Seconds that the rounds of a line take together, about, and of a sample: calls in a row, as in a loop of a user's.
BUDGET, QUICK_BUDGET, SAMPLE = 2.0, 0.2, 0.01
#: Calls before each sample, which are not timed: caches of the host have forgotten a contender since its sample before.
WARMING: Final = 3
#: Ratios up to which xarr is as fast as CuPy, with what two runs of the same differ by, and as JAX.
CUPY_RATIO, JAX_RATIO = 1.03, 1.2
#: The bytes that are copied to measure bandwidth, and the side of the matrices that are multiplied, at most.
COPIED, SIDE = 2**30, 8192
#: The part of the free memory that the contenders of a row may take.
MEMORY_PART: Final = 0.9


@dataclass(frozen=True)
class Rates:
    """The device's own rates in a second: bytes read and written by a copy, of CUDA and by a kernel; flops by dtype."""

    memcpy: float
    kernel: float
    flops: dict[str, float]

    @property
    def bandwidth(self) -> float:
        return max(self.memcpy, self.kernel)


@dataclass
class TimedLine:
    """The figures of a row for one dtype: seconds by contender, and why others have none."""

    row: str
    name: str
    dtype: str
    seconds: dict[str, float]
    reasons: dict[str, str] = field(default_factory=dict)
    #: Of the bandwidth, or of the rate of products.
    share: float | None = None
    is_product: bool = False
    wanted_share: float | None = None

    def ratio(self, who: str) -> float | None:
        """xarr under jit over the fastest contender whose name begins so; None where one of them has no figure."""
        times = [seconds for name, seconds in self.seconds.items() if name.startswith(who)]
        return self.seconds["xarr"] / min(times) if times and "xarr" in self.seconds else None

    @property
    def verdicts(self) -> list[str]:
        """Each thing that is wanted, and whether it is met."""
        if "xarr" not in self.seconds:
            return [f"xarr: {self.reasons.get('xarr') or self.reasons.get('process', 'no figure')}"]
        wanted: list[tuple[str, bool]] = []
        if self.wanted_share is not None and self.share is not None:
            wanted.append((f"≥ {self.wanted_share:.0%} of the bandwidth", self.share >= self.wanted_share))
        for who, most in (("cupy", CUPY_RATIO), ("jax", JAX_RATIO)):
            ratio = self.ratio(who)
            if ratio is not None:
                wanted.append((f"≤ {most} × {who}", ratio <= most))
        return [f"{text}: {'met' if is_met else 'MISSED'}" for text, is_met in wanted]

    @property
    def is_wrong(self) -> bool:
        """Whether xarr gives another result, or none, for any reason but memory, or that nobody asked for it."""
        reasons = [self.reasons.get(name, "") for name in ("xarr", "lazy", "process")]
        excused = ("memory", "TooLarge", LEFT_OUT)
        return any(each and not any(word in each for word in excused) for each in reasons)


def in_order(
    rows: Iterable[Row], dtypes: Sequence[str], met: Collection[tuple[str, str]] = ()
) -> list[tuple[Row, str]]:
    """Rows and dtypes, the most important first: the first dtype of all rows before the second of any.

    met: titles and dtypes of lines that come last, since what is wanted of them is known to be met.
    """
    pairs = [(row, dtype) for row in rows for dtype in row.dtypes if not dtypes or dtype in dtypes]

    def key(pair: tuple[Row, str]) -> tuple[bool, int, int]:
        row, dtype = pair
        return (row.title, dtype) in met, row.dtypes.index(dtype), IMPORTANCE.index(row.letter)

    return sorted(pairs, key=key)


def timed_lines(
    pairs: Sequence[tuple[Row, str]],
    peers: Peers,
    rates: Rates,
    seconds: float,
    budget: float = BUDGET,
    small: bool = False,
) -> Iterator[TimedLine]:
    """The lines, each as it is ready, until no other one fits in `seconds`.  small: at the sizes of tests."""
    measure.clock = partial(_synchronized_clock, peers)
    started, longest = time.monotonic(), 0.0
    for number, (row, dtype) in enumerate(pairs):
        elapsed = time.monotonic() - started
        if elapsed + longest / 2 > seconds:
            measure.progress(f"{len(pairs) - number} lines do not fit in {seconds:.0f} seconds")
            break
        measure.progress(f"{elapsed:.0f} s: ({row.letter}) {row.name} {dtype}")
        yield timed_line(
            row, dtype, row.case(dtype, *(row.small if small else row.size)), peers, rates, budget
        )
        gc.collect()
        peers.free()
        longest = max(longest, time.monotonic() - started - elapsed)
    measure.progress("")


def timed_line(row: Row, dtype: str, case: Case, peers: Peers, rates: Rates, budget: float) -> TimedLine:
    """Check and time the contenders of a row."""
    line = TimedLine(row.letter, row.name, dtype, {}, {}, None, bool(case.flops), row.share)
    least, free = least_bytes(case), peers.free_bytes()
    # Inputs of each library, and a result of each contender at a time, which pools keep.
    needed = 4 * least + case.most_bytes
    if free is not None and needed > MEMORY_PART * free:
        line.reasons["xarr"] = f"memory: about {needed / 1e9:.0f} GB, {free / 1e9:.0f} GB are free"
        return line
    with config(deterministic=row.deterministic):
        prepared = prepare(case, row, dtype, peers)
        line.reasons |= prepared.reasons
        if prepared.calls:
            line.seconds |= measure.time_case(prepared.calls, budget, sample_seconds=SAMPLE, warming=WARMING)
    if "xarr" in line.seconds:
        if case.flops:
            rate = rates.flops.get(dtype)
            line.share = case.flops / rate / line.seconds["xarr"] if rate else None
        else:
            nbytes, bandwidth = case.nbytes or least, rates.bandwidth
            line.share = nbytes / bandwidth / line.seconds["xarr"] if bandwidth else None
    return line


def _synchronized_clock(peers: Peers) -> float:
    """Seconds, after all that was launched is done: a sample waits for the device at its start and at its end."""
    peers.synchronize()
    return time.perf_counter()


# --- the device's own rates ----------------------------------------------------------------------------------


def measure_rates(peers: Peers, copied: int = COPIED, side: int = SIDE) -> Rates:
    """Copy memory to memory of the device, by CUDA and by a kernel of CuPy, and multiply matrices.

    A rate is 0 where CuPy cannot, which is a reason of `peers` then: xarr is measured all the same.
    """
    rates = [_rate(peers, copying, copied) for copying in (_copy_by_cuda, _copy_by_kernel)]
    products = (("float32", _product_by_cupy), ("bfloat16", _product_by_torch))
    flops = {dtype: _rate(peers, product, side) for dtype, product in products}
    return Rates(*rates, {dtype: rate for dtype, rate in flops.items() if rate})


def _rate(
    peers: Peers, prepare: Callable[[Peers, int], tuple[Callable[[], Any], int] | None], size: int
) -> float:
    """The rate of what `prepare` gives: a call, and how much it does; 0 where there is none."""
    try:
        prepared = prepare(peers, size)
        return prepared[1] / _least_seconds(peers, prepared[0]) if prepared else 0.0
    except peers.refusals as error:
        peers.reasons[prepare.__name__.lstrip("_")] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return 0.0


def _copied_arrays(peers: Peers, nbytes: int) -> tuple[Any, Any]:
    free = peers.free_bytes()
    count = min(nbytes, free // 8 if free else nbytes) // 4
    # Not made by `ones`, which would need CuPy's compiler even where CUDA alone copies.
    return (peers.arrays.asarray(np.ones(count, np.float32)), peers.arrays.empty(count, "float32"))


def _copy_by_cuda(peers: Peers, nbytes: int) -> tuple[Callable[[], Any], int]:
    (source, target), xp = _copied_arrays(peers, nbytes), peers.arrays

    def copy() -> None:
        if hasattr(xp, "cuda"):
            runtime, stream = xp.cuda.runtime, xp.cuda.get_current_stream().ptr
            kind = runtime.memcpyDeviceToDevice
            runtime.memcpyAsync(target.data.ptr, source.data.ptr, target.nbytes, kind, stream)
        else:
            xp.copyto(target, source)

    return copy, 2 * target.nbytes


def _copy_by_kernel(peers: Peers, nbytes: int) -> tuple[Callable[[], Any], int]:
    source, target = _copied_arrays(peers, nbytes)
    return (lambda: peers.arrays.copyto(target, source)), 2 * target.nbytes


def _product_by_cupy(peers: Peers, side: int) -> tuple[Callable[[], Any], int]:
    # Random numbers: of zeros and ones fewer bits change, and the device is faster.
    x = peers.arrays.asarray(np.random.default_rng(0).normal(size=(side, side)).astype(np.float32))
    return (lambda: x @ x), 2 * side**3


def _product_by_torch(peers: Peers, side: int) -> tuple[Callable[[], Any], int] | None:
    """A product in bfloat16, None without PyTorch."""
    if peers.torch is None:
        return None
    y = peers.torch.randn((side, side), dtype=peers.torch.bfloat16, device="cuda")
    return (lambda: y @ y), 2 * side**3


def _least_seconds(peers: Peers, call: Callable[[], Any], rounds: int = 10) -> float:
    call()
    samples = []
    for _ in range(rounds):
        started = _synchronized_clock(peers)
        call()
        samples.append(_synchronized_clock(peers) - started)
    return float(np.min(samples))


# --- printing ------------------------------------------------------------------------------------------------


def describe(line: TimedLine) -> str:
    """A line of the table, in words that need no columns: it is printed as it is ready."""
    times = ", ".join(f"{name} {seconds * 1e3:.4g}" for name, seconds in line.seconds.items())
    ratios = [(who, line.ratio(who)) for who in ("cupy", "jax", "torch")]
    parts = [f"({line.row}) {line.name} {line.dtype}: {times or '–'} ms"]
    parts += [f"{ratio:.2f} × {who}" for who, ratio in ratios if ratio is not None]
    if line.share is not None:
        parts.append(f"{line.share:.0%} of the {'rate of products' if line.is_product else 'bandwidth'}")
    parts += [f"[{each}]" for each in line.verdicts]
    reasons = [f"\n    {name}: {reason}" for name, reason in line.reasons.items()]
    return "; ".join(parts) + "".join(reasons)
