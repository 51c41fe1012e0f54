"""Replicas in a grid with named axes."""

from __future__ import annotations

import numpy as np
import pytest

from xarr.communication.process_groups import Mesh as Grid
from xarr.distributed import Mesh, make_mesh, simulate
from xarr.errors import ArgumentError, ShapeError, ValueRangeError


def test_a_mesh_numbers_replicas_row_by_row() -> None:
    mesh = make_mesh((2, 3), ("x", "y"))
    assert mesh.devices.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert dict(mesh.shape) == {"x": 2, "y": 3}
    assert (mesh.size, mesh.axis_names) == (6, ("x", "y"))
    assert mesh.coordinates_of(5) == {"x": 1, "y": 2}
    assert mesh.grid == Grid((("x", 2), ("y", 3)))
    assert repr(mesh) == "Mesh('x': 2, 'y': 3)"


def test_one_axis_needs_no_tuples() -> None:
    assert make_mesh(4, "x") == make_mesh((4,), ("x",)) == Mesh(range(4), "x")
    assert len({make_mesh(4, "x"), Mesh([0, 1, 2, 3], "x"), Mesh([1, 0, 2, 3], "x"), make_mesh(4, "y")}) == 3
    assert make_mesh(4, "x") != "x"


def test_replicas_may_be_in_another_order() -> None:
    mesh = Mesh([[2, 0], [1, 3]], ("x", "y"))
    assert mesh.coordinates_of(1) == {"x": 1, "y": 0}
    assert mesh.grid == Grid((("x", 2), ("y", 2)), (2, 0, 1, 3))
    with pytest.raises(ValueError, match="read-only"):
        mesh.devices[0, 0] = 1


@pytest.mark.parametrize(
    ("devices", "names", "kind", "text"),
    [
        ([0, 1], ("x", "y"), ShapeError, "a dimension for each of"),
        ([0.0, 1.0], "x", ShapeError, "wanted numbers of replicas"),
        ([], "x", ShapeError, "wanted numbers of replicas"),
        ([0, 2], "x", ValueRangeError, "each number from 0 to 1 once"),
        ([[0], [1]], ("x", "x"), ArgumentError, "none twice"),
        ([0, 1], ("",), ArgumentError, "a name for each axis"),
    ],
)
def test_what_is_no_mesh_is_refused(devices: object, names: object, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        Mesh(np.asarray(devices), names)  # type: ignore[arg-type]


def test_sizes_that_are_none_are_refused() -> None:
    with pytest.raises(ValueRangeError, match="wanted positive sizes, got"):
        make_mesh((2, 0), ("x", "y"))


def test_in_a_world_a_mesh_has_all_replicas() -> None:
    assert simulate(4, lambda: make_mesh((2, 2), ("x", "y")).size) == [4] * 4
    with pytest.raises(ValueRangeError, match="the number of replicas of a simulation by threads, 2, got"):
        simulate(2, make_mesh, 4, "x")
