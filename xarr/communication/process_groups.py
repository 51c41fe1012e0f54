"""Which members of a world take part in a collective together: replica groups in all forms, as groups of ranks.

Source: the specification of StableHLO, "Parallel execution" and "Replica groups".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import chain
from math import prod

import numpy as np

from xarr.base.frozen_dataclasses import record
from xarr.communication.communicator import Grid
from xarr.errors import CommunicationError, ShapeError, pluralize

#: Ids of replicas, partitions or members, a row for each group.
Rows = tuple[tuple[int, ...], ...]


class Strategy(Enum):
    """The ways to read ids of replica groups: what they number, and which members a group of them has."""

    #: Replicas; each partition has groups of its own.
    CROSS_REPLICA = "cross_replica"
    #: Partitions; each replica has groups of its own.
    CROSS_PARTITION = "cross_partition"
    #: Replicas; a group has all partitions of its replicas.
    CROSS_REPLICA_AND_PARTITION = "cross_replica_and_partition"
    #: Members, row by row of the grid.
    FLATTENED_IDS = "flattened_ids"

    def count(self, grid: Grid) -> int:
        """The number of ids that there are."""
        if self is Strategy.CROSS_PARTITION:
            return grid.num_partitions
        members = grid.num_replicas * grid.num_partitions
        return members if self is Strategy.FLATTENED_IDS else grid.num_replicas


@record
class AxisRef:
    """An axis of a mesh, or a part of one: the `size` values behind the first `pre_size` parts of it."""

    name: str
    part: tuple[int, int] | None = None


@record
class Mesh:
    """Members in a grid with named axes, in the order of their numbers unless `device_ids` says another."""

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] | None = None

    def rows(self, axes: Sequence[AxisRef]) -> Rows:
        """The groups of members that differ along these axes alone, the last of which runs fastest.

        Raises ShapeError for an axis that the mesh has not, for parts that are none, and for parts that overlap.
        """
        grouped: list[int] = []
        sizes, starts = self._split(axes)
        for axis in axes:
            grouped.append(starts[axis.name, axis.part[0] if axis.part else 1])
        ids = np.arange(prod(sizes)) if self.device_ids is None else np.array(self.device_ids)
        rest = [dim for dim in range(len(sizes)) if dim not in grouped]
        size = prod(sizes[dim] for dim in grouped)
        table = ids.reshape(sizes).transpose([*rest, *grouped]).reshape(-1, size)
        return tuple(map(tuple, table.tolist()))

    def _split(self, axes: Sequence[AxisRef]) -> tuple[list[int], dict[tuple[str, int], int]]:
        """The sizes of the axes cut where parts begin and end, and the dimension that begins at each cut."""
        sizes: list[int] = []
        starts: dict[tuple[str, int], int] = {}
        known = dict(self.axes)
        for axis in axes:
            if axis.name not in known:
                raise ShapeError(f"wanted an axis of the mesh, {', '.join(known)}, got {axis.name}")
        for name, size in self.axes:
            parts = sorted(axis.part or (1, size) for axis in axes if axis.name == name)
            at = 1
            for before, length in parts:
                if before % at or before < at or size % (before * length):
                    raise ShapeError(
                        f"wanted parts of the axis {name} of {size}, one behind the other, got {parts}"
                    )
                if before > at:
                    sizes.append(before // at)
                starts[name, before] = len(sizes)
                sizes.append(length)
                at = before * length
            sizes.append(size // at)
        return sizes, starts


@record
class ReplicaGroups:
    """Groups of ids: rows, which may be padded with -1, or axes of a mesh; all ids in one group if there is none."""

    rows: Rows = ()
    mesh: Mesh | None = None
    axes: tuple[AxisRef, ...] = ()

    @classmethod
    def of(cls, groups: Sequence[Sequence[int]]) -> ReplicaGroups:
        """Groups of these ids, padded to one length."""
        longest = max(map(len, groups), default=0)
        return cls(tuple([(*map(int, row), *(-1,) * (longest - len(row))) for row in groups]))

    @property
    def ids(self) -> Rows:
        """The ids of each group, without padding; empty for one group of all."""
        if self.mesh is not None:
            return self.mesh.rows(self.axes)
        return tuple([tuple([each for each in row if each != -1]) for row in self.rows])

    @property
    def size(self) -> int | None:
        """The number of ids in each group; None if they differ, or if that is not known."""
        sizes = set(map(len, self.ids))
        return sizes.pop() if len(sizes) == 1 else None

    def find_repeated(self) -> int | None:
        """An id that stands there twice, None if there is none."""
        seen: set[int] = set()
        for each in chain(*self.ids):
            if each in seen:
                return each
            seen.add(each)
        return None

    def __str__(self) -> str:
        shown = ", ".join(f"[{', '.join(map(str, row))}]" for row in self.ids)
        return f"[{shown}]" if self.ids else "all"


def process_groups(groups: ReplicaGroups, strategy: Strategy, grid: Grid, is_partial: bool = False) -> Rows:
    """The ranks of the members of each group, in its order.

    Raises CommunicationError unless each id that there is stands in one group, once; `is_partial`: at most once.
    """
    count = strategy.count(grid)
    rows = groups.ids or (tuple(range(count)),)
    known, listed = list(range(count)), sorted(chain(*rows))
    if listed != known and not (is_partial and len(set(listed)) == len(listed) and set(listed) <= set(known)):
        raise CommunicationError(
            f"wanted each number from 0 to {count - 1} in one of the groups, as {strategy.value} on "
            f"{pluralize(grid.num_replicas, 'replica')} of {pluralize(grid.num_partitions, 'partition')} has them, "
            f"got {groups}; a program that another number of members runs wants as many here: "
            "xarr.distributed.simulate(n, f, num_partitions=…), or mpiexec -n"
        )
    return _members(rows, strategy, grid)


def _members(rows: Rows, strategy: Strategy, grid: Grid) -> Rows:
    replicas, partitions = range(grid.num_replicas), range(grid.num_partitions)
    match strategy:
        case Strategy.FLATTENED_IDS:
            return rows
        case Strategy.CROSS_REPLICA:
            return tuple([tuple([grid.rank_of(r, p) for r in row]) for row in rows for p in partitions])
        case Strategy.CROSS_PARTITION:
            return tuple([tuple([grid.rank_of(r, p) for p in row]) for row in rows for r in replicas])
        case Strategy.CROSS_REPLICA_AND_PARTITION:
            return tuple([tuple([grid.rank_of(r, p) for p in partitions for r in row]) for row in rows])


def permutations(pairs: Rows, strategy: Strategy, grid: Grid) -> Rows:
    """The ranks of source and target for each pair of ids, in each part of the grid.

    Raises CommunicationError for an id that there is not.
    """
    count = strategy.count(grid)
    for each in chain(*pairs):
        if not 0 <= each < count:
            raise CommunicationError(
                f"wanted sources and targets from 0 to {count - 1}, as {strategy.value} on {grid.num_replicas} "
                f"replicas of {grid.num_partitions} partitions has them, got {each}"
            )
    return _members(pairs, strategy, grid)


def group_of(groups: Rows, rank: int, count: int = 0) -> tuple[int, ...]:
    """The group of a member, empty if it is in none.

    count: the number of members that a program was made for, 0 for any; CommunicationError is raised for another one.
    """
    group = next((group for group in groups if rank in group), ())
    if count and group and len(group) != count:
        raise CommunicationError(
            f"wanted groups of {count} members, for which the program was made, got {len(group)}"
        )
    return group
