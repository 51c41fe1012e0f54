"""Launches in a row with all their arguments in one block of memory, and CUDA graphs of them.

A graph has the addresses that it was captured with, and CuPy offers no way to exchange them.  So a row of launches that
comes again with the same addresses is captured when it does so for the first time, and replayed from then on.  Since a
pool of memory gives the same addresses again and again, a program that is called in a loop has few sets of them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from ctypes import addressof, c_int64
from operator import itemgetter
from struct import Struct
from threading import Lock, RLock
from typing import Any, Final, NamedTuple
from weakref import ref

from xarr_cupy.runtime.launch_queue import estimate_seconds
from xarr_cupy.runtime.launches import NUMBER, KernelLaunch, Launches, Location, MemoryCopy, Table

#: From how many launches in a row on a graph is faster than launching each.
LEAST_CAPTURED: Final = 4
#: Graphs that are kept of a row of launches.
MOST_GRAPHS: Final = 16
#: Launches in all graphs of a device together: about 1 KB of its memory and of the host's for each.
MOST_CAPTURED: Final = 2**17
#: Sets of addresses that it came with, of which is known that they did.
_MOST_KNOWN: Final = 64


class CaptureRefusedError(Exception):
    """Launches could not be captured; nothing failed on the device.

    is_lasting: whether they never can be, or only not now, for want of memory.
    """

    def __init__(self, is_lasting: bool) -> None:
        super().__init__(is_lasting)
        self.is_lasting = is_lasting


class ArgumentMemory:
    """Memory of the host for all arguments of a row of launches, eight bytes each, and a pointer to each of them.

    `values` - the arguments, `pointers` - the address of the first pointer, as the driver reads them while it launches.
    """

    __slots__ = ("_words", "pointers", "values")

    def __init__(self, count: int) -> None:
        # A size of four bytes is read from the first four, the lower ones.
        self.values = (c_int64 * count)()
        first = addressof(self.values)
        self._words = (c_int64 * count)(*range(first, first + 8 * count, 8))
        self.pointers = addressof(self._words)


class PackedKernel(NamedTuple):
    """A kernel as the driver launches it: its function, its blocks, and the bytes before its first pointer."""

    function: int
    blocks: int
    start: int


class PackedCopy(NamedTuple):
    """A copy as the driver is asked for it: how much, and the numbers of its two addresses among all arguments."""

    nbytes: int
    target: int
    source: int


class PackedLaunches:
    """Launches, and what gives all their arguments in a run.

    `calls` - each launch; `kernels` - module and name of each kernel; `seconds` - an estimate of the time that the
    device takes for them; `addresses` - those of a table that the arguments depend on, which tell runs apart.
    """

    def __init__(self, launches: Launches, memory: GraphMemory) -> None:
        locations: list[Location] = []
        self.calls: list[PackedKernel | PackedCopy] = []
        for each in launches:
            first = len(locations)
            if isinstance(each, MemoryCopy):
                self.calls.append(PackedCopy(each.nbytes, first, first + 1))
                locations += each.target, each.source
            else:
                self.calls.append(PackedKernel(each.module.function(each.name).ptr, each.blocks, 8 * first))
                sizes = [
                    size if isinstance(size, Location) else Location(NUMBER, int(size)) for size in each.sizes
                ]
                locations += [*[argument.location for argument in each.arguments], *sizes]
        self.kernels = tuple(
            [(each.module, each.name) for each in launches if isinstance(each, KernelLaunch)]
        )
        self.seconds = estimate_seconds(launches)
        self.graphs = GraphCache(memory, len(self.calls))
        self._locations = [tuple(each) for each in locations]
        self.addresses: Callable[[Table], Any] = itemgetter(
            *{slot: None for slot, _ in self._locations} or [NUMBER]
        )
        self._pack = Struct(f"{len(locations)}q").pack_into
        #: Memory that no launch uses just now: threads that launch the same have each their own.
        self._unused: list[ArgumentMemory] = []

    def fill(self, table: Table) -> ArgumentMemory:
        """The arguments in a run, in memory that the caller gives back by `release`, once it has launched."""
        try:
            memory = self._unused.pop()
        except IndexError:
            memory = ArgumentMemory(len(self._locations))
        self._pack(memory.values, 0, *[table[slot] + offset for slot, offset in self._locations])
        return memory

    def release(self, memory: ArgumentMemory) -> None:
        """Let others use the memory of arguments: the driver has copied them."""
        self._unused.append(memory)


class CapturedGraph:
    """A CUDA graph of so many launches, until it is dropped for want of memory: then None."""

    __slots__ = ("__weakref__", "graph", "launches")

    def __init__(self, graph: Any, launches: int) -> None:
        self.graph, self.launches = graph, launches


class GraphMemory:
    """The graphs of a device, of all rows of launches; where they are too large, those go that were replayed first.

    What still runs of a graph that is destroyed goes on to its end.
    """

    def __init__(self) -> None:
        # A graph whose program is freed leaves in the middle of anything, also of what is done here.
        self._lock = RLock()
        self._graphs: OrderedDict[ref[CapturedGraph], int] = OrderedDict()
        #: Launches in all graphs together.
        self.launches = 0

    def add(self, graph: CapturedGraph) -> ref[CapturedGraph]:
        """Keep a graph, and drop others where there are too many."""
        held = ref(graph, self._remove)
        with self._lock:
            self._graphs[held] = graph.launches
            self.launches += graph.launches
            while self.launches > MOST_CAPTURED and len(self._graphs) > 1:
                oldest, launches = self._graphs.popitem(last=False)
                self.launches -= launches
                dropped = oldest()
                if dropped is not None:
                    dropped.graph = None
        return held

    def touch(self, held: ref[CapturedGraph]) -> None:
        """Note that a graph is replayed."""
        with self._lock:
            if held in self._graphs:
                self._graphs.move_to_end(held)

    def _remove(self, held: ref[CapturedGraph]) -> None:
        with self._lock:
            self.launches -= self._graphs.pop(held, 0)


class GraphCache:
    """CUDA graphs of one row of launches, by the addresses that they were captured with; those replayed last are kept.

    `is_closed` - whether no more are captured: CUDA cannot capture these launches, or addresses come again only after
    so many others that graphs go before they are replayed.
    """

    def __init__(self, memory: GraphMemory, launches: int) -> None:
        self.is_closed = False
        self._lock = Lock()
        self._memory, self._launches = memory, launches
        self._graphs: OrderedDict[Hashable, tuple[CapturedGraph, ref[CapturedGraph]]] = OrderedDict()
        #: The addresses of graphs that have not been asked for again.
        self._unused: set[Hashable] = set()
        self._known: deque[Hashable] = deque(maxlen=_MOST_KNOWN)

    def graph(self, addresses: Hashable, capture: Callable[[], Any]) -> Any:
        """The graph for these addresses, captured now if they come for the second time; None if there is none.

        capture: makes the graph; CaptureRefusedError if that is not possible.
        """
        with self._lock:
            return self._graph(addresses, capture)

    def _graph(self, addresses: Hashable, capture: Callable[[], Any]) -> Any:
        graph = self._known_graph(addresses)
        self._unused.discard(addresses)
        if graph is not None or self.is_closed:
            return graph
        if addresses not in self._known:
            self._known.append(addresses)
            return None
        try:
            graph = capture()
        except CaptureRefusedError as refusal:
            self.is_closed = refusal.is_lasting
            self._known.remove(addresses)
            return None
        self._keep(addresses, graph)
        return graph

    def _known_graph(self, addresses: Hashable) -> Any:
        """The graph that was captured with these addresses, which is replayed now."""
        entry = self._graphs.get(addresses)
        if entry is None:
            return None
        captured, held = entry
        graph = captured.graph
        if graph is None:
            # Dropped for want of memory; to capture takes longer than to launch.
            del self._graphs[addresses]
            self.is_closed = addresses in self._unused
            return None
        self._memory.touch(held)
        self._graphs.move_to_end(addresses)
        return graph

    def _keep(self, addresses: Hashable, graph: Any) -> None:
        captured = CapturedGraph(graph, self._launches)
        self._graphs[addresses] = captured, self._memory.add(captured)
        self._unused.add(addresses)
        if len(self._graphs) > MOST_GRAPHS:
            oldest, _ = self._graphs.popitem(last=False)
            self.is_closed = oldest in self._unused
