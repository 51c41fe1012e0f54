"""Launches in a row with all their arguments in one block of memory, and CUDA graphs of them.

A graph has the addresses that it was captured with, and CuPy offers no way to exchange them.  So a row of launches that
comes again with the same addresses is captured when it does so for the first time, and replayed from then on.  Since a
pool of memory gives the same addresses again and again, a program that is called in a loop has few sets of them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock, RLock
from typing import Any, Final
from weakref import ref

import numpy as np

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


class PackedLaunches:
    """Launches, and what computes all their arguments at once: eight bytes each, one after the other.

    `calls` - each launch, and the number of its first argument; `kernels` - module and name of each kernel;
    `seconds` - an estimate of the time that the device takes for them.
    """

    def __init__(self, launches: Launches, memory: GraphMemory) -> None:
        locations: list[Location] = []
        self.calls: list[tuple[KernelLaunch | MemoryCopy, int]] = []
        for each in launches:
            self.calls.append((each, len(locations)))
            if isinstance(each, MemoryCopy):
                locations += each.target, each.source
            else:
                # A size of four bytes is read from the first four, the lower ones.
                sizes = [Location(NUMBER, int(size)) for size in each.sizes]
                locations += [*[argument.location for argument in each.arguments], *sizes]
        self.kernels = [(each.module, each.name) for each in launches if isinstance(each, KernelLaunch)]
        self.seconds = estimate_seconds(launches)
        self.graphs = GraphCache(memory, len(self.calls))
        self._slots = np.array([each.slot for each in locations], np.intp)
        self._offsets = np.array([each.offset for each in locations], np.int64)
        self._steps = 8 * np.arange(len(locations), dtype=np.int64)

    def fill(self, table: Table) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The arguments in a run, and a pointer to each, as the driver reads them while it launches."""
        values = np.array(table, np.int64)[self._slots] + self._offsets
        return values, self._steps + values.ctypes.data


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
        self._graphs: OrderedDict[bytes, tuple[CapturedGraph, ref[CapturedGraph]]] = OrderedDict()
        #: The addresses of graphs that have not been asked for again.
        self._unused: set[bytes] = set()
        self._known: deque[bytes] = deque(maxlen=_MOST_KNOWN)

    def graph(self, addresses: bytes, capture: Callable[[], Any]) -> Any:
        """The graph for these addresses, captured now if they come for the second time; None if there is none.

        capture: makes the graph; CaptureRefusedError if that is not possible.
        """
        with self._lock:
            return self._graph(addresses, capture)

    def _graph(self, addresses: bytes, capture: Callable[[], Any]) -> Any:
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

    def _known_graph(self, addresses: bytes) -> Any:
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

    def _keep(self, addresses: bytes, graph: Any) -> None:
        captured = CapturedGraph(graph, self._launches)
        self._graphs[addresses] = captured, self._memory.add(captured)
        self._unused.add(addresses)
        if len(self._graphs) > MOST_GRAPHS:
            oldest, _ = self._graphs.popitem(last=False)
            self.is_closed = oldest in self._unused
