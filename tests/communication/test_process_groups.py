"""Which members form groups: the four strategies, groups in all forms, meshes with parts of axes."""

from __future__ import annotations

from typing import Any

import pytest

from xarr.communication.communicator import Grid
from xarr.communication.process_groups import (
    AxisRef,
    Mesh,
    ReplicaGroups,
    Strategy,
    group_of,
    permutations,
    process_groups,
)
from xarr.errors import CommunicationError, ShapeError

FOUR_BY_TWO = Grid(4, 2)


def ranks(grid: Grid, *groups: list[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    return tuple([tuple([grid.rank_of(*member) for member in group]) for group in groups])


@pytest.mark.parametrize(
    ("strategy", "rows", "wanted"),
    [
        # The examples of StableHLO's specification.
        (
            Strategy.CROSS_REPLICA,
            [[0, 1], [2, 3]],
            [[(0, 0), (1, 0)], [(0, 1), (1, 1)], [(2, 0), (3, 0)], [(2, 1), (3, 1)]],
        ),
        (
            Strategy.CROSS_PARTITION,
            [[0, 1]],
            [[(0, 0), (0, 1)], [(1, 0), (1, 1)], [(2, 0), (2, 1)], [(3, 0), (3, 1)]],
        ),
        (
            Strategy.CROSS_REPLICA_AND_PARTITION,
            [[0, 1], [2, 3]],
            [[(0, 0), (1, 0), (0, 1), (1, 1)], [(2, 0), (3, 0), (2, 1), (3, 1)]],
        ),
        (
            Strategy.FLATTENED_IDS,
            [[0, 1, 2, 3], [4, 5, 6, 7]],
            [[(0, 0), (0, 1), (1, 0), (1, 1)], [(2, 0), (2, 1), (3, 0), (3, 1)]],
        ),
    ],
    ids=lambda value: value.value if isinstance(value, Strategy) else "",
)
def test_strategies(strategy: Strategy, rows: Any, wanted: Any) -> None:
    got = process_groups(ReplicaGroups.of(rows), strategy, FOUR_BY_TWO)
    assert got == ranks(FOUR_BY_TWO, *wanted)


@pytest.mark.parametrize(
    ("strategy", "wanted"),
    [
        (Strategy.CROSS_REPLICA, ((0, 2), (1, 3))),
        (Strategy.CROSS_PARTITION, ((0, 1), (2, 3))),
        (Strategy.CROSS_REPLICA_AND_PARTITION, ((0, 2, 1, 3),)),
        (Strategy.FLATTENED_IDS, ((0, 1, 2, 3),)),
    ],
)
def test_no_groups_are_one_of_all(strategy: Strategy, wanted: Any) -> None:
    assert process_groups(ReplicaGroups(), strategy, Grid(2, 2)) == wanted


def test_groups_keep_their_order_and_may_be_ragged() -> None:
    groups = ReplicaGroups.of([[3, 0], [1], [2]])
    assert groups.rows == ((3, 0), (1, -1), (2, -1))
    assert groups.ids == ((3, 0), (1,), (2,))
    assert groups.size is None
    assert str(groups) == "[[3, 0], [1], [2]]"
    assert process_groups(groups, Strategy.CROSS_REPLICA, Grid(4, 1)) == ((3, 0), (1,), (2,))


@pytest.mark.parametrize("rows", [[[0, 1]], [[0, 1, 2, 4]], [[0, 1], [1, 2, 3]]])
def test_each_id_stands_in_one_group(rows: Any) -> None:
    with pytest.raises(CommunicationError, match="wanted each number from 0 to 3 in one of the groups"):
        process_groups(ReplicaGroups.of(rows), Strategy.CROSS_REPLICA, Grid(4, 1))


def test_some_operations_leave_members_out() -> None:
    groups = ReplicaGroups.of([[2, 0]])
    assert process_groups(groups, Strategy.CROSS_REPLICA, Grid(4, 1), is_partial=True) == ((2, 0),)
    with pytest.raises(CommunicationError):
        process_groups(ReplicaGroups.of([[4]]), Strategy.CROSS_REPLICA, Grid(4, 1), is_partial=True)


def test_the_group_of_a_member() -> None:
    assert group_of(((0, 2), (1, 3)), 3) == (1, 3)
    assert group_of(((0, 2),), 1, count=3) == ()
    with pytest.raises(
        CommunicationError, match="wanted groups of 3 members, for which the program was made, got 2"
    ):
        group_of(((0, 2),), 2, count=3)


def test_pairs_are_repeated_for_each_part_of_the_grid() -> None:
    assert permutations(((0, 1),), Strategy.CROSS_REPLICA, Grid(2, 2)) == ((0, 2), (1, 3))
    assert permutations(((0, 1),), Strategy.CROSS_PARTITION, Grid(2, 2)) == ((0, 1), (2, 3))
    with pytest.raises(CommunicationError, match="wanted sources and targets from 0 to 1"):
        permutations(((0, 2),), Strategy.CROSS_REPLICA, Grid(2, 2))


def test_an_id_that_stands_twice() -> None:
    assert ReplicaGroups.of([[0, 1], [2, 1]]).find_repeated() == 1
    assert ReplicaGroups.of([[0, 1], [2]]).find_repeated() is None


# --- meshes -------------------------------------------------------------------------------------------------

MESH = Mesh((("x", 2), ("y", 3)))


@pytest.mark.parametrize(
    ("axes", "wanted"),
    [
        (["x"], ((0, 3), (1, 4), (2, 5))),
        (["y"], ((0, 1, 2), (3, 4, 5))),
        (["x", "y"], ((0, 1, 2, 3, 4, 5),)),
        (["y", "x"], ((0, 3, 1, 4, 2, 5),)),
        ([], ((0,), (1,), (2,), (3,), (4,), (5,))),
    ],
    ids=str,
)
def test_axes_of_a_mesh(axes: list[str], wanted: Any) -> None:
    assert MESH.rows([AxisRef(axis) for axis in axes]) == wanted
    assert ReplicaGroups((), MESH, tuple(map(AxisRef, axes))).ids == wanted


def test_an_axis_of_one_member() -> None:
    assert Mesh((("x", 1),)).rows([AxisRef("x")]) == ((0,),)
    assert Mesh((("x", 1), ("y", 2), ("z", 1))).rows([AxisRef("z"), AxisRef("x"), AxisRef("y")]) == ((0, 1),)


def test_a_mesh_may_number_its_members_otherwise() -> None:
    mesh = Mesh((("x", 2), ("y", 2)), (3, 1, 2, 0))
    assert mesh.rows([AxisRef("x")]) == ((3, 2), (1, 0))


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ([(1, 2)], ((0, 4), (1, 5), (2, 6), (3, 7))),
        ([(2, 2)], ((0, 2), (1, 3), (4, 6), (5, 7))),
        ([(4, 2)], ((0, 1), (2, 3), (4, 5), (6, 7))),
        ([(2, 4)], ((0, 1, 2, 3), (4, 5, 6, 7))),
        ([(1, 2), (4, 2)], ((0, 1, 4, 5), (2, 3, 6, 7))),
        ([(4, 2), (1, 2)], ((0, 4, 1, 5), (2, 6, 3, 7))),
    ],
    ids=str,
)
def test_parts_of_an_axis(parts: Any, wanted: Any) -> None:
    assert Mesh((("x", 8),)).rows([AxisRef("x", part) for part in parts]) == wanted


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([AxisRef("z")], "wanted an axis of the mesh, x, y, got z"),
        ([AxisRef("y", (2, 2))], "wanted parts of the axis y of 3"),
        ([AxisRef("x", (1, 2)), AxisRef("x", (1, 2))], "one behind the other"),
    ],
)
def test_axes_that_a_mesh_has_not(axes: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        MESH.rows(axes)
