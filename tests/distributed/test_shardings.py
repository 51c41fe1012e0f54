"""How arrays are split over the replicas of a mesh."""

from __future__ import annotations

import copy
import pickle

import pytest

from xarr.distributed import NamedSharding, PartitionSpec as P, make_mesh
from xarr.errors import ArgumentError, ShapeError

MESH = make_mesh((2, 3), ("x", "y"))


@pytest.mark.parametrize(
    ("spec", "shape", "part", "last"),
    [
        (P(), (), (), ()),
        (P(), (4, 6), (4, 6), (slice(0, 4), slice(0, 6))),
        (P("x"), (4, 6), (2, 6), (slice(2, 4), slice(0, 6))),
        (P(None, "y"), (4, 6), (4, 2), (slice(0, 4), slice(4, 6))),
        (P("y", "x"), (3, 2, 5), (1, 1, 5), (slice(2, 3), slice(1, 2), slice(0, 5))),
        (P(("x", "y")), (12,), (2,), (slice(10, 12),)),
        (P(("y", "x")), (12,), (2,), (slice(10, 12),)),
        (P("x"), (0,), (0,), (slice(0, 0),)),
    ],
)
def test_parts_and_where_they_lie(
    spec: P, shape: tuple[int, ...], part: tuple[int, ...], last: tuple[slice, ...]
) -> None:
    sharding = NamedSharding(MESH, spec)
    assert sharding.shard_shape(shape) == part
    assert sharding.global_shape(part) == shape
    assert sharding.index_of(5, shape) == last


def test_the_last_of_several_axes_runs_fastest() -> None:
    by_rows, by_columns = (NamedSharding(MESH, P(axes)) for axes in (("x", "y"), ("y", "x")))
    assert [by_rows.index_of(rank, (6,))[0].start for rank in range(6)] == [0, 1, 2, 3, 4, 5]
    assert [by_columns.index_of(rank, (6,))[0].start for rank in range(6)] == [0, 2, 4, 1, 3, 5]


def test_what_cannot_be_split_says_what_would_work() -> None:
    with pytest.raises(
        ShapeError, match=r"divisible by 2, the replicas along 'x'.*pad it to 6, or leave"
    ) as caught:
        NamedSharding(MESH, P("x")).shard_shape((5, 2))
    assert "got shape (5, 2)" in str(caught.value)
    with pytest.raises(ShapeError, match="at least 2 dimensions"):
        NamedSharding(MESH, P(None, "y")).shard_shape((6,))


def test_axes_that_the_mesh_has_not_or_twice_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"wanted axes of the mesh \('x', 'y'\), got 'z'"):
        NamedSharding(MESH, P("z"))
    with pytest.raises(ArgumentError, match="wanted each axis once"):
        NamedSharding(MESH, P("x", "x"))
    with pytest.raises(ArgumentError, match="wanted names of axes, tuples of names, or None, got 3"):
        P(3)  # type: ignore[arg-type]


def test_specifications_are_values() -> None:
    spec = P("x", None, ("y",))
    assert repr(spec) == "PartitionSpec('x', None, ('y',))"
    assert pickle.loads(pickle.dumps(spec)) == copy.copy(spec) == spec
    assert NamedSharding(MESH, P("x")) == NamedSharding(make_mesh((2, 3), ("x", "y")), P("x"))
    assert NamedSharding(MESH, spec).names == {"x", "y"}
