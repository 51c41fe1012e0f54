"""Cut a graph into groups that run as one loop nest each, with no arrays in between.

Nodes are taken from the results towards the parameters, so that a node's users have been placed before
it.  A group begins with an element-wise operation or a reduction, its root, whose shape gives the domain
of the loops.  A node joins the group of its users if

* its elements can be computed wherever the users ask for them: moving operations and element-wise ones
  always can, a reduction only where it is asked for at the indices that remain,
* it would not be computed much more often than once per element: costly operations must not be asked for
  along dimensions that they do not have, nor at several shifted indices,
* what else uses it does not feed the group: then it is one more output.

What moves or repeats elements is free and is copied into every group that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from math import prod

from xarr.compiler.fusion.grouped_graph import GroupedGraph
from xarr.compiler.fusion.groups import (
    INNER,
    ONE,
    Along,
    Group,
    JoinedPositions,
    find_dependents,
    one_where_one,
    operands_along,
    own_dimensions,
    whole,
)
from xarr.compiler.fusion.joined_reductions import is_short_or_repeated, join_reduction, kept_shape
from xarr.compiler.fusion.partial_updates import placement
from xarr.compiler.fusion.scan_windows import reduces_rows, scan_axis
from xarr.compiler.fusion.scatter_windows import (
    can_accumulate,
    has_rows,
    is_sparse,
    reads_elsewhere,
    updates_by_array,
)
from xarr.compiler.passes.inner_products import products_inside
from xarr.compiler.passes.rewritten_reductions import move_sqrt_after_min
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.constants import repeats_one
from xarr.ir.graph import Graph, Node
from xarr.ir.op import INSTRUCTION
from xarr.ir.operands_first import reach
from xarr.ir.types import Ints, TensorType


def fused_graphs(
    graph: Graph,
    target: Target,
    computes: Callable[[Node], bool],
    worth: Callable[[Group], bool],
    describe: Callable[[ops.Fusion], str] | None = None,
    scatters_accumulate: bool = False,
) -> Iterator[Graph]:
    """Graphs with groups of nodes exchanged for `Fusion` nodes, the first one as fast as can be.

    The others forgo what takes memory, and are made only when they are asked for: the second does without groups over
    the same elements that become one, the third without groups of several results too, since some of these are made
    too early.  One that forgoes nothing more is the very graph before it.

    `computes` says which nodes loops can hold, `worth` which finished groups are to become loops, `describe` what a
    group's loops cost, for its printed text; `scatters_accumulate` whether those of a scatter can hold reductions of
    what they go through.
    """
    graph = move_sqrt_after_min(graph)
    apart, shapes = products_inside(graph, target)
    plain: Iterator[Graph] | None = None
    own = target, computes, describe, scatters_accumulate
    for level, fused in enumerate(_Fuser(apart, *own).graphs(worth)):
        stored = {node.type.shape for node in fused.nodes if isinstance(node.type, TensorType)}
        if stored.isdisjoint(shapes):
            yield fused
        else:  # The products did not end up in groups.
            plain = plain or islice(_Fuser(graph, *own).graphs(worth), level, None)
            yield next(plain)


class _Fuser:
    def __init__(
        self,
        graph: Graph,
        target: Target,
        computes: Callable[[Node], bool],
        describe: Callable[[ops.Fusion], str] | None,
        scatters_accumulate: bool,
    ) -> None:
        self.graph = graph
        self.target = target
        self.describe = describe
        self.scatters_accumulate = scatters_accumulate
        self.computes = computes
        self.results = set(graph.results)
        self.users = find_dependents(graph)
        self.groups: dict[Node, list[Group]] = {}
        #: What moves elements, was copied into groups, and is wanted as an array all the same.
        self.arrays: set[Node] = set()
        #: The positions in the graph of a group's first and last member.
        self.spans: dict[Group, tuple[int, int]] = {}
        self.updates = updates_by_array(graph)
        self.reads = reads_elsewhere(graph, self.updates) if self.updates else set()
        #: Positions that a group reaches over.
        self.joined = JoinedPositions(len(graph.nodes))
        self.order = {node: position for position, node in enumerate(graph.nodes)}

    def graphs(self, worth: Callable[[Group], bool]) -> Iterator[Graph]:
        """The graph with all groups, without merged ones, and without those of several results."""
        for node in reversed(self.graph.nodes):
            self._assign(node)
        apart = self.groups, self.spans
        self.groups, self.spans = dict(self.groups), dict(self.spans)
        self._merge_siblings()
        kept = {group for group in self.spans if worth(group)}
        grouped = GroupedGraph(self.graph, self.groups, kept, self.describe)
        fused = grouped.run() if kept else self.graph
        yield fused
        is_merged = len(self.spans) < len(apart[1])
        self.groups, self.spans = apart
        if is_merged:
            kept = {group for group in self.spans if worth(group)}
            grouped = GroupedGraph(self.graph, self.groups, kept, self.describe)
            fused = grouped.run() if kept else self.graph
        yield fused
        single = {group for group in kept if len(grouped.outputs[group]) == 1}
        if single != kept:
            fused = (
                GroupedGraph(self.graph, self.groups, single, self.describe).run() if single else self.graph
            )
        yield fused

    # --- where a node goes ---------------------------------------------------------------------------

    def _assign(self, node: Node) -> None:
        if isinstance(node.op, ops.DynamicUpdateSlice) and self.computes(node):
            self._begin(node)
            return
        users = self.users.get(node, [])
        #: The groups that use it, and their members that do.
        groups: dict[Group, list[Node]] = {}
        for user in users:
            for group in self.groups.get(user, ()):
                groups.setdefault(group, []).append(user)
        outside = node in self.results or any(
            user not in self.groups or user in self.arrays for user in users
        )
        if not self.computes(node):
            return
        if node.op.moves:
            if not self._copy_into(node, groups) or outside:
                self.arrays.add(node)
            return
        if isinstance(node.op, ops.Reduce) and not self._can_reduce(node):
            return
        if len(groups) > 1 and self.scatters_accumulate:
            groups = self._accumulate_along(groups)
        alone = not outside and len(groups) == 1
        if not isinstance(node.op, ops.Scatter):
            for group, own in groups.items():
                if self._join(node, group, own, alone):
                    return
        self._begin(node)

    def _can_reduce(self, node: Node) -> bool:
        """Whether the results of a reduction are unpacked in its own graph."""
        assert isinstance(node.op, ops.Reduce)
        if isinstance(node.type, TensorType):
            return bool(node.op.dimensions)
        parts = all(isinstance(user.op, ops.GetTupleElement) for user in self.users.get(node, ()))
        return bool(node.op.dimensions) and parts and node not in self.results

    def _copy_into(self, node: Node, groups: dict[Group, list[Node]]) -> bool:
        """Copy a node that moves elements into the groups that use it; whether all take it."""
        everywhere = True
        for group, users in groups.items():
            along, paths = _index_maps(node, group, users), group.paths_to(node, users)
            has_space = _is_one_element(node) or (
                len(group.along) < self.target.max_group_members
                and len(paths) <= self.target.max_paths
                and self._fits_inputs(node, group)
            )
            in_order = _reads_in_order(node, along, group, self.target)
            is_apart = self._comes_before(node, group) or _is_searched(node, users, group)
            if has_space and in_order and not is_apart:
                group.along[node], group.paths[node] = along, paths
                self.groups.setdefault(node, []).append(group)
            else:
                everywhere = False
        return everywhere

    def _comes_before(self, node: Node, group: Group) -> bool:
        """Whether a node is computed before a group, so that an update may write over the array that the node reads."""
        if node not in self.reads:
            return False
        if group.scatter is not None:
            return is_sparse(group.scatter)
        array = node.operands[0]
        is_part = isinstance(node.op, ops.Gather) and 2 * node.tensor_type.size <= array.tensor_type.size
        return is_part and any(self._leads_to([each], group) for each in self.updates.get(array, ()))

    def _fits_inputs(self, node: Node, group: Group) -> bool:
        """Whether a group that a node is copied into has not too many inputs then; of two at most it has not."""
        count = len(node.operands)
        return count <= 2 or count + group.input_count() <= self.target.max_group_inputs

    def _begin(self, node: Node) -> None:
        if isinstance(node.op, ops.Reduce) and is_short_or_repeated(node, self.target):
            domain = kept_shape(node)
            group = Group(domain, (), along={node: {whole(domain)}})
            group.inner[node] = tuple(INNER + k for k in range(len(node.op.dimensions)))
        elif isinstance(node.op, ops.Reduce):
            domain, reduced = node.operands[0].shape, tuple(sorted(node.op.dimensions))
            group = Group(domain, reduced)
            kept = [axis for axis in range(len(domain)) if axis not in reduced]
            group.along[node] = {tuple(ONE if domain[axis] == 1 else axis for axis in kept)}
        elif isinstance(node.op, ops.ReduceWindow):
            group = Group(node.shape, (), along={node: {whole(node.shape)}}, scan=scan_axis(node))
        elif isinstance(node.op, ops.Scatter):
            updates = node.operands[2].shape
            group = Group(updates, (), along={node: {whole(updates)}}, scatter=node)
        else:
            shape, placed = node.shape, None
            if isinstance(node.op, ops.DynamicUpdateSlice):
                shape, placed = node.operands[1].shape, placement(node)
            group = Group(shape, (), placed)
            group.along[node] = {whole(shape)}
        self.groups[node] = [group]
        self.spans[group] = (self.order[node], self.order[node])

    def _join(self, node: Node, group: Group, users: list[Node], alone: bool) -> bool:
        """Let a node that these members use join their group, if it can."""
        if len(group.along) >= self.target.max_group_members:
            return False
        if group.scatter is not None and not (alone and _scatters(node, group.scatter, self.target)):
            return False
        if self._comes_before(node, group):
            return False
        paths = group.paths_to(node, users)
        if len(paths) > self.target.max_paths:
            return False
        index_maps = _index_maps(node, group, users)
        if isinstance(node.op, ops.Reduce):
            scan = group.scan
            plain = group.placed is None and (
                scan is None or reduces_rows(node, group.domain, scan, self.target)
            )
            joined = plain and join_reduction(node, index_maps, group, self.target)
        elif isinstance(node.op, ops.ReduceWindow):
            joined = index_maps == {whole(group.domain)} and self._can_scan(node, group)
        else:
            joined = _is_affordable(node, index_maps, group, self.target) and not _is_recomputed_by_gather(
                node, group, users, self.target
            )
        if not joined:
            return False
        before = dict(group.along)
        if isinstance(node.op, ops.Reduce):  # whose dimensions may be axes of the group by now
            index_maps = _index_maps(node, group, users)
        group.along[node] = index_maps
        if not alone and (not group.is_output(node) or self._feeds(node, group)):
            group.along = before
            group.inner.pop(node, None)
            return False
        if isinstance(node.op, ops.ReduceWindow):
            group.scan = scan_axis(node)
        self.groups[node], group.paths[node] = [group], paths
        low, high = self.spans[group]
        self.spans[group] = (self.order[node], high)
        self.joined.join(self.order[node], low)
        return True

    def _can_scan(self, node: Node, group: Group) -> bool:
        """Whether running totals go the way of the group's loops, and come after its reductions."""
        scan = scan_axis(node)
        if scan is None or group.inner or group.placed or group.scatter or group.scan not in (None, scan):
            return False

        def members_after(node: Node) -> list[Node]:
            return [user for user in self.users.get(node, ()) if user in group.along]

        dependents = set(reach([node], members_after))
        reductions = [each for each in group.along if isinstance(each.op, ops.Reduce)]
        return all(
            each not in dependents and reduces_rows(each, group.domain, scan, self.target)
            for each in reductions
        )

    # --- groups over the same elements ---------------------------------------------------------------

    def _accumulate_along(self, groups: dict[Group, list[Node]]) -> dict[Group, list[Node]]:
        """The groups that use a node, and their members that do, where scatters have taken in what they can."""
        for scatter in [group for group in groups if group.scatter is not None]:
            group = scatter
            for other in [each for each in groups if each.scatter is None and self._accumulates(group, each)]:
                merged = self._merge(group, other)
                groups = {merged: groups[group] + groups[other], **groups}
                del groups[group], groups[other]
                group = merged
        return groups

    def _accumulates(self, scatter: Group, other: Group) -> bool:
        """Whether the loops of a scatter can accumulate what another group does, which then stores nothing else."""
        if len(scatter.along) + len(other.along) > self.target.max_group_members:
            return False
        if not can_accumulate(scatter, other):
            return False
        inside = [node for node in other.along if not (node.op.moves or isinstance(node.op, ops.Reduce))]
        inside = [node for node in inside if node.tensor_type.size > 1]
        if any(node in self.results or self._users_outside(node, other) for node in inside):
            return False
        return not (self._reaches(scatter, other) or self._reaches(other, scatter))

    def _merge_into_scatters(self) -> None:
        """Let scatters accumulate what is reduced of the arrays that they read."""
        reductions: dict[Ints, list[Group]] = {}
        for group in self.spans:
            if group.reduced and group.kept_axes() == ():
                reductions.setdefault(group.domain, []).append(group)
        for group in [each for each in self.spans if each.scatter is not None]:
            for other in [each for each in reductions.get(group.domain, ()) if each in self.spans]:
                shared = self._read(group) & self._read(other)
                is_read = any(node.tensor_type.size > 1 for node in shared)
                if is_read and self._accumulates(group, other):
                    group = self._merge(group, other)

    def _merge_siblings(self) -> None:
        """Let groups with one domain that read the same arrays run as one, which reads them once."""
        if self.scatters_accumulate:
            self._merge_into_scatters()
        alike: dict[tuple[Ints, Ints], list[Group]] = {}
        for group in self.spans:
            if group.scatter is not None:
                continue
            bucket = alike.setdefault((group.domain, group.reduced), [])
            if len(bucket) < self.target.max_siblings:
                bucket.append(group)
        for bucket in alike.values():
            while bucket:
                group = bucket.pop(0)
                for other in list(bucket):
                    if self._are_siblings(group, other):
                        group = self._merge(group, other)
                        bucket.remove(other)

    def _are_siblings(self, group: Group, other: Group) -> bool:
        if len(group.along) + len(other.along) > self.target.max_group_members or group.kept_axes() == ():
            return False
        if group.input_count() + other.input_count() > self.target.max_group_inputs:
            return False
        if (group.placed, group.scan) != (other.placed, other.scan) or group.inner or other.inner:
            return False
        shared = self._read(group) & self._read(other)
        if not any(node.tensor_type.size > 1 for node in shared):
            return False
        return not (self._reaches(group, other) or self._reaches(other, group))

    def _read(self, group: Group) -> set[Node]:
        """The arrays that a group reads in the order in which they lie in memory."""
        return {
            operand
            for node, along in group.along.items()
            for operand in node.operands
            if operand not in group.along and isinstance(operand.type, TensorType)
            if None not in next(iter(along))
        }

    def _reaches(self, group: Group, other: Group) -> bool:
        """Whether `other` uses, directly or not, what `group` computes."""
        members = [node for node in group.along if not node.op.moves]
        start = [user for node in members for user in self._users_outside(node, group)]
        return self._leads_to(start, other)

    def _merge(self, group: Group, other: Group) -> Group:
        """A group in place of two, which are left as they are."""
        along = dict(group.along)
        for node, axes in other.along.items():
            along[node] = along.get(node, set()) | axes
        merged = replace(group, along=along, paths={**group.paths, **other.paths})
        for node in along:
            own = [merged if each is group or each is other else each for each in self.groups[node]]
            self.groups[node] = list(dict.fromkeys(own))
        (low, high), (first, last) = self.spans.pop(group), self.spans.pop(other)
        self.spans[merged] = (min(low, first), max(high, last))
        self.joined.join(*self.spans[merged])
        return merged

    def _feeds(self, node: Node, group: Group) -> bool:
        """Whether something outside of the group that uses `node` is used by the group in turn."""
        return self._leads_to(self._users_outside(node, group), group)

    def _leads_to(self, start: list[Node], group: Group) -> bool:
        """Whether values go from these nodes to the group, all nodes of a group together."""
        last = self.joined.end(self.spans[group][1])
        seen: set[Node] = set()
        stack = list(start)
        while stack:
            user = stack.pop()
            # What comes later leads to what comes later still, since its groups have nothing earlier.
            if user in seen or self.order[user] > last:
                continue
            seen.add(user)
            if user in group.along:
                return True
            stack.extend(self.users.get(user, ()))
            if not user.op.moves:  # a group gives its results together
                stack.extend(self._group_members(user))
        return False

    def _users_outside(self, node: Node, group: Group) -> list[Node]:
        """Users of a node of the group outside of it, by way of ops that move elements too."""
        users, stack = [], [node]
        for each in stack:
            for user in self.users.get(each, ()):
                if user not in group.along:
                    users.append(user)
                elif user.op.moves:
                    stack.append(user)
        return users

    def _group_members(self, node: Node) -> list[Node]:
        groups = self.groups.get(node, ())
        return [member for group in groups for member in group.along if not member.op.moves]


def _index_maps(node: Node, group: Group, users: list[Node]) -> set[Along]:
    """Index maps of `node` for the members of the group that use it."""
    index_maps = set()
    for user in users:
        for along in group.along[user]:
            if user.op.is_elementwise:  # most are
                index_maps.add(one_where_one(node, along))
                continue
            for operand, runs in zip(user.operands, operands_along(user, along, group), strict=True):
                if operand is node:
                    index_maps.add(runs)
    return index_maps


def _is_recomputed_by_gather(node: Node, group: Group, users: list[Node], target: Target) -> bool:
    """Whether a gather among these members that use it would compute its elements anew again and again."""
    if node.tensor_type.size >= prod(group.domain) // 2:
        return False
    is_picked = any(isinstance(user.op, ops.Gather) and user.operands[0] is node for user in users)
    return is_picked and not _is_light(node, target.max_gather_operations)


def _is_light(node: Node, most: int) -> bool:
    """Whether an element is so many cheap operations, at most, away from arrays that are computed apart."""
    count = 0
    for each in reach([node], lambda each: each.operands if each.op.moves or _is_cheap(each) else ()):
        count += _is_cheap(each)
        if count > most:
            return False
    return count > 0


def _is_cheap(node: Node) -> bool:
    return node.op.is_elementwise and node.op.cost <= INSTRUCTION


def _is_searched(node: Node, users: list[Node], group: Group) -> bool:
    """Whether a gather among these members would look for elements among those of several arrays."""
    if not isinstance(node.op, ops.Concatenate) or len(node.operands) <= 2:
        return False
    picked = [user.op for user in users if user.operands[0] is node and isinstance(user.op, ops.Gather)]
    is_computed = any(node.op.dimension in op.start_index_map for op in picked)
    return is_computed and node.tensor_type.size <= len(node.operands) * prod(group.domain)


def _is_one_element(node: Node) -> bool:
    """Whether what moves elements moves or repeats a single one, which any loops hold in a register."""
    return repeats_one(node) or node.tensor_type.size == 1


def _scatters(node: Node, scatter: Node, target: Target) -> bool:
    """Whether an operation can be computed as a scatter goes along, in vectors unless it is cheap."""
    if isinstance(node.op, ops.Reduce | ops.ReduceWindow | ops.Scatter):
        return False
    return node.op.cost <= INSTRUCTION or isinstance(node.op, ops.Gather) or has_rows(scatter, target)


def _is_affordable(node: Node, index_maps: set[Along], group: Group, target: Target) -> bool:
    """Whether an element-wise operation is not computed much too often where it is asked for."""
    if node.op.cost <= INSTRUCTION or not node.shape:
        return True
    if len(index_maps) > 1:
        return False
    (along,) = index_maps
    axes = group.axes(range(len(group.domain)))
    missing = [axis for axis in axes if axis not in along]
    if any(axis is not None and axis >= INNER for axis in along):
        return not missing and None not in along
    if None in along:
        return node.tensor_type.size >= prod(group.domain) // 2
    # Along the innermost axis it would be computed anew for each index of the others.
    if not missing or axes[-1] in along:
        return not missing
    return not _is_repeated_in_short_rows(along, axes, group, target) or _may_reduce_for(node, group, target)


def _is_repeated_in_short_rows(along: Along, axes: list[int], group: Group, target: Target) -> bool:
    """Whether an operation has one element for each of many short rows: it is faster in lanes, in a group of its own.

    In this group it would be computed for one row after the other, without lanes.
    """
    row = 1
    for axis in reversed(axes):
        if axis in along:
            break
        row *= group.domain[axis]
    return row < target.max_uniform_row and prod(group.domain) >= row * target.min_results_side_by_side


def _may_reduce_for(node: Node, group: Group, target: Target) -> bool:
    """Whether a node is computed from a reduction that the group can hold, and belongs between its stages."""
    stack, seen = list(node.operands), set(node.operands)
    while stack and len(seen) < target.max_group_members:
        each = stack.pop()
        if isinstance(each.op, ops.Reduce):
            fits = each.operands[0].shape == group.domain
            if fits and group.reduced in ((), tuple(own_dimensions(each))):
                return True
        elif each.op.is_elementwise or each.op.moves:
            new = [operand for operand in each.operands if operand not in seen]
            seen.update(new)
            stack.extend(new)
    return False


def _reads_in_order(node: Node, index_maps: set[Along], group: Group, target: Target) -> bool:
    """Whether a transposition still lets the innermost loop read neighbours, or tiles do."""
    if not isinstance(node.op, ops.Transpose) or node.tensor_type.size <= target.max_strided_elements:
        return True
    long = [group.domain[axis] for axis in group.axes(range(len(group.domain)))][-1:]
    if not group.reduced and group.scatter is None and long and long[0] >= target.min_tiled_side:
        return all(None not in along for along in index_maps)
    axes = group.axes(range(len(group.domain)))
    for along in index_maps:
        if any(axis is not None and axis >= INNER for axis in along):
            continue  # copied in the order that is wanted, if need be
        inner = [a for a in operands_along(node, along, group)[0] if a != ONE]
        if axes and axes[-1] in inner and inner[-1] != axes[-1]:
            return False
    return True
