"""Shardy's `manual_computation`: a computation of the parts that each member of a mesh has.

Here a member has whole arrays: it takes its own parts of them, computes, and joins what all members give.  Exports of
JAX's shard_map are such modules, of one replica with a partition for each member of the mesh; in those that xarr prints
members are replicas.
"""

from __future__ import annotations

from collections.abc import Sequence

from xarr.communication.process_groups import AxisRef
from xarr.errors import ShapeError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.ops.collectives import Collective
from xarr.ir.ops.control import unpack_results
from xarr.ir.ops.parts import Split
from xarr.ir.parts import join_parts, own_number, take_part
from xarr.ir.stablehlo.distributed.mesh_syntax import Sharding
from xarr.ir.stablehlo.parsed_operation import Site
from xarr.ir.types import TensorType


def manual_computation(site: Site) -> tuple[Node, ...]:
    """The results as whole arrays, the same at each member."""
    (graph,), captured = site.capturing(0)
    mine = _shardings(site, "in_shardings", len(site.operands))
    theirs = _shardings(site, "out_shardings", len(graph.results))
    is_partition = not any(map(_names_replicas, graph.walk()))
    parts = [_take_part(site, *pair, is_partition) for pair in zip(site.operands, mine, strict=True)]
    node = Node(ops.Call(graph), (*parts, *captured))
    if node.op.is_ordered:
        site.keep_ordered(node)
    pairs = zip(unpack_results(node), theirs, strict=True)
    return tuple([_join_parts(site, *pair, is_partition) for pair in pairs])


def _shardings(site: Site, name: str, count: int) -> Sequence[Sharding]:
    shardings: Sequence[Sharding] = site.operation.attributes.get(name, ())
    if len(shardings) != count:
        site.fail(f"expected {count} {name}, got {len(shardings)}")
    return shardings


def _manual_split(site: Site, sharding: Sharding) -> Split:
    """The axes along which each dimension is cut here; others are left to the program."""
    manual: Sequence[AxisRef] = site.operation.attributes.get("manual_axes", ())
    names = {axis.name for axis in manual}
    return tuple([tuple([axis for axis in axes if axis.name in names]) for axes in sharding.dimensions])


def _names_replicas(graph: Graph) -> bool:
    """Whether a graph has operations that replicas, and not partitions, take part in."""
    return any(
        isinstance(node.op, ops.ReplicaId) or (isinstance(node.op, Collective) and node.op.channel_id <= 0)
        for node in graph.nodes
    )


def _take_part(site: Site, whole: Node, sharding: Sharding, is_partition: bool) -> Node:
    """This member's part of an array."""
    try:
        own = own_number(is_partition)
        return take_part(whole, site.mesh(sharding.mesh), _manual_split(site, sharding), own)
    except ShapeError as error:
        site.fail(str(error).replace("wanted", "expected", 1))


def _join_parts(site: Site, part: Node, sharding: Sharding, is_partition: bool) -> Node:
    """The whole array of which this member has a part."""
    if not isinstance(part.type, TensorType):
        site.fail(f"expected arrays as results, got {part.type}")
    split = _manual_split(site, sharding)
    whole, collectives = join_parts(part, site.mesh(sharding.mesh), split, is_partition)
    for each in collectives:
        site.keep_ordered(each)
    return whole
