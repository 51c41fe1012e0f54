"""How much work is worth compiling: what a backend says of its machine, and decisions by it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from xarr.ir.graph import Graph
from xarr.ir.op import FUNCTION
from xarr.ir.types import TensorType


@dataclass(frozen=True)
class Thresholds:
    """From how much work on compiling pays.

    min_work: instructions that the elements of a graph take.  min_work_in_loop: those of a graph that a loop, a
    branch or a call runs.  max_serial_bytes: of all arrays of a group that a loop repeats, up to which its steps
    run one after the other.  hot: the program runs often, as under `jit`, so that a kernel costs no more than a
    library's function.
    """

    min_work: int
    min_work_in_loop: int
    max_serial_bytes: int
    hot: bool

    def in_loop(self) -> Thresholds:
        """Those for graphs that loops, branches and calls run."""
        return replace(self, min_work=min(self.min_work, self.min_work_in_loop))

    def pays_group(self, domain: tuple[int, ...], cost: int) -> bool:
        """Whether a group over `domain` is worth compiling of which each element takes `cost` instructions."""
        return prod(domain) * cost >= self.min_work

    def may_pay(self, graph: Graph) -> bool:
        """Whether there may be a group that is worth compiling."""
        if self.hot:
            return True
        sizes = [prod(type.shape) for type in graph.types if isinstance(type, TensorType)]
        return max(sizes, default=0) * FUNCTION * max(1, len(graph.nodes)) >= self.min_work
