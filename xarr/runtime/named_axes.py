"""The named axes along which collectives go: the mesh of the function that is recorded, or run, for its parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from xarr.base.configuration import current as config
from xarr.communication.process_groups import Mesh

_mesh: Final[ContextVar[Mesh | None]] = ContextVar("mesh", default=None)


def current_mesh() -> Mesh | None:
    """The mesh whose axes have names here, None if there is none."""
    return _mesh.get()


@contextmanager
def bind_axes(mesh: Mesh) -> Iterator[None]:
    """Let the axes of a mesh have their names in the block; its members are the replicas of the world.

    Functions that are recorded, as by jit, are recorded for these axes.
    """
    token = _mesh.set(mesh)
    try:
        with config():  # as if a setting had changed, by which repeated calls know that they are not the same
            yield
    finally:
        _mesh.reset(token)
