"""Launches in a row with all their arguments in one block of memory, and CUDA graphs of them.

A graph has the addresses that it was captured with, and CuPy offers no way to exchange them.  So a row of launches that
comes again with the same addresses is captured when it does so for the first time, and replayed from then on.  Since a
pool of memory gives the same addresses again and again, a program that is called in a loop has few sets of them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xarr_cupy.runtime.launches import NUMBER, KernelLaunch, Launches, Location, MemoryCopy, Table

#: From how many launches in a row on a graph is faster than launching each.
LEAST_CAPTURED: Final = 4
#: Graphs that are kept of a row of launches.
MOST_GRAPHS: Final = 16
#: Sets of addresses that it came with, of which is known that they did.
_MOST_KNOWN: Final = 64


class PackedLaunches:
    """Launches, and what computes all their arguments at once: eight bytes each, one after the other.

    `calls` - each launch, and the number of its first argument; `kernels` - module and name of each kernel.
    """

    def __init__(self, launches: Launches) -> None:
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
        self.graphs = GraphCache()
        self._slots = np.array([each.slot for each in locations], np.intp)
        self._offsets = np.array([each.offset for each in locations], np.int64)
        self._steps = 8 * np.arange(len(locations), dtype=np.int64)

    def fill(self, table: Table) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The arguments in a run, and a pointer to each, as the driver reads them while it launches."""
        values = np.array(table, np.int64)[self._slots] + self._offsets
        return values, self._steps + values.ctypes.data


class GraphCache:
    """CUDA graphs of one row of launches, by the addresses that they were captured with; the latest ones are kept.

    `is_closed` - whether no more are captured: CUDA has refused it, or addresses come again only after so many others
    that graphs go before they are replayed.
    """

    def __init__(self) -> None:
        self.is_closed = False
        self._graphs: OrderedDict[bytes, Any] = OrderedDict()
        #: The addresses of graphs that have not been asked for again.
        self._unused: set[bytes] = set()
        self._known: deque[bytes] = deque(maxlen=_MOST_KNOWN)

    def graph(self, addresses: bytes, capture: Callable[[], Any]) -> Any:
        """The graph for these addresses, captured now if they come for the second time; None if there is none."""
        graph = self._graphs.get(addresses)
        self._unused.discard(addresses)
        if graph is not None or self.is_closed:
            return graph
        if addresses not in self._known:
            self._known.append(addresses)
            return None
        graph = capture()
        if graph is None:
            self.is_closed = True
            return None
        self._graphs[addresses] = graph
        self._unused.add(addresses)
        if len(self._graphs) > MOST_GRAPHS:
            # What still runs of a graph that is destroyed goes on to its end.
            oldest, _ = self._graphs.popitem(last=False)
            # To capture takes longer than to launch.
            self.is_closed = oldest in self._unused
        return graph
