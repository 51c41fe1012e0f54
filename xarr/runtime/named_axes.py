"""The named axes along which collectives go: the mesh of the function that is recorded, or run, for its parts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from xarr.base.configuration import current as config
from xarr.communication.process_groups import Mesh

_mesh: Final[ContextVar[Mesh | None]] = ContextVar("mesh", default=None)
#: Those of its axes that functions around are split along.
_names: Final[ContextVar[tuple[str, ...]]] = ContextVar("names", default=())

#: The axes that functions around are mapped over by vmap, with their sizes, the innermost last.
_batch_axes: Final[ContextVar[tuple[tuple[Hashable, int], ...]]] = ContextVar("batch_axes", default=())


def current_batch_axes() -> tuple[tuple[Hashable, int], ...]:
    """The axes that functions around are mapped over, with their names and sizes, the innermost last."""
    return _batch_axes.get()


@contextmanager
def bind_batch_axis(name: Hashable, size: int) -> Iterator[None]:
    """Let an axis that a function is mapped over have a name in the block, where others with it are hidden."""
    others = [each for each in _batch_axes.get() if each[0] != name]
    token = _batch_axes.set((*others, (name, size)))
    try:
        with config():  # as in bind_axes
            yield
    finally:
        _batch_axes.reset(token)


def current_mesh() -> Mesh | None:
    """The mesh whose axes have names here, None if there is none."""
    return _mesh.get()


def current_names() -> tuple[str, ...]:
    """The axes of the mesh that have names here: all, or those that the functions around are split along."""
    return _names.get()


@contextmanager
def bind_axes(mesh: Mesh, names: Iterable[str] | None = None) -> Iterator[None]:
    """Let axes of a mesh, all unless `names` says which, have their names in the block.

    They hide axes of vmap with their names.  The members of the mesh are the replicas of the world.  Functions that
    are recorded, as by jit, are recorded for these axes.
    """
    known = [name for name, _ in mesh.axes]
    wanted = frozenset(known if names is None else names)
    seen = tuple([(name, size) for name, size in _batch_axes.get() if name not in wanted])
    tokens = _mesh.set(mesh), _names.set(tuple([name for name in known if name in wanted]))
    outer = _batch_axes.set(seen)
    try:
        with config():  # as if a setting had changed, by which repeated calls know that they are not the same
            yield
    finally:
        _batch_axes.reset(outer)
        _mesh.reset(tokens[0])
        _names.reset(tokens[1])
