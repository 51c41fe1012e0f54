"""How groups become loop programs: which kinds there are, and what builds the program of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Final

from xarr.base.configuration import current as config
from xarr.compiler.fusion.scan_windows import computes
from xarr.compiler.kernel_templates import Draft, shared_kernel
from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.loop_ir.verifier import check_local_bytes, verify
from xarr.compiler.memory_traffic import traffic
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op


class Kind(Enum):
    """The op that a group is made around, which wants loops of its own; for a nest its domain."""

    NEST = "element-wise operations and reductions"
    SCAN = "running totals"
    SCATTER = "a scatter"
    ACCUMULATING_SCATTER = "a scatter, and reductions of what it goes through"
    WINDOWS = "a reduction of windows"
    SELECT_AND_SCATTER = "a scatter to what windows choose"
    CONVOLUTION = "a convolution"
    PRODUCT = "products of matrices"
    SYSTEMS = "many systems of equations"


#: Loop programs that are kept.
_KEPT: Final = 1024

#: The loop program of a group, for a machine.
Builder = Callable[[ops.Fusion, Target], Kernel]
#: (a node that loops can compute, the numbers of a machine) -> whether the loops of a builder are to compute it.
Limit = Callable[[Node, Target], bool]

_KINDS: Final[dict[type[Op], Kind]] = {
    ops.Convolution: Kind.CONVOLUTION,
    ops.DotGeneral: Kind.PRODUCT,
    ops.ReduceWindow: Kind.WINDOWS,
    ops.Scatter: Kind.SCATTER,
    ops.SelectAndScatter: Kind.SELECT_AND_SCATTER,
    ops.Solve: Kind.SYSTEMS,
}


def kind_around(node: Node) -> Kind:
    """The kind of a group around an operation."""
    return _KINDS.get(type(node.op), Kind.NEST)


def kind_of(fusion: ops.Fusion) -> Kind:
    """The kind of a group."""
    nodes = fusion.computation.nodes
    # Running totals are windows too, which reach to the end of the array.
    if any(map(computes, nodes)):
        return Kind.SCAN
    kind = next((kind for kind in map(kind_around, nodes) if kind is not Kind.NEST), Kind.NEST)
    if kind is Kind.SCATTER and any(isinstance(node.op, ops.Reduce) for node in nodes):
        return Kind.ACCUMULATING_SCATTER
    return kind


@dataclass(frozen=True, eq=False)
class Schedule:
    """The way in which a backend runs groups.

    * `target` - the numbers of its machine,
    * `builders` - a builder for each kind of group that it runs,
    * `limits` - for kinds of which the builder is not to compute every node that loops could, since some are beyond
      it, or something else is faster: whether it is to compute one,
    * `draft` - what the backend makes of a loop program, and the numbers of elements in it: with it, groups that differ
      in such numbers alone share one loop program (`xarr.compiler.kernel_templates`).
    """

    target: Target
    builders: Mapping[Kind, Builder]
    limits: Mapping[Kind, Limit] = field(default_factory=dict)
    draft: Draft | None = None

    def builds(self, kind: Kind) -> bool:
        """Whether the backend runs groups of this kind."""
        return kind in self.builders

    def takes(self, kind: Kind, node: Node) -> bool:
        """Whether a node that loops can compute is to be a part of such a group."""
        limit = self.limits.get(kind)
        return self.builds(kind) and (limit is None or limit(node, self.target))

    def build(self, fusion: ops.Fusion) -> Kernel:
        """The loop program of a group, one object for equal groups; with `config.verify_graphs` it is checked.

        Raises LoopError where a rule of `loop_ir.verifier` is broken, and always where local buffers take more than the
        target's `local_bytes`: a builder that keeps to its target makes no such program.
        """
        return (_build_verified if config.verify_graphs else _build)(self, fusion)

    def describe(self, fusion: ops.Fusion) -> str:
        """The memory traffic of a group's loops."""
        return str(traffic(self.build(fusion), self.target.cache_bytes))


@lru_cache(_KEPT)
def _build(schedule: Schedule, fusion: ops.Fusion) -> Kernel:
    target = schedule.target

    def build(group: ops.Fusion) -> Kernel:
        return check_local_bytes(schedule.builders[kind_of(group)](group, target), target.local_bytes)

    return build(fusion) if schedule.draft is None else shared_kernel(fusion, build, schedule.draft, schedule)


@lru_cache(_KEPT)
def _build_verified(schedule: Schedule, fusion: ops.Fusion) -> Kernel:
    """The kernel of `_build`, which may have been built while nothing was verified."""
    return verify(_build(schedule, fusion))
