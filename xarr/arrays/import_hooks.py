"""einops, pandas, Dask, cloudpickle and xarray learn of Arrays when both are imported, in either order.

einops knows the arrays of a library by a subclass of its AbstractBackend, pandas groups by what is an array by its
class, Dask has registries; none has an entry point for all that: what tells them has to be imported after them.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

#: From a package to what is imported after it.
_FOLLOWED_BY = {
    "einops": "xarr.einops_backend",
    "pandas": "xarr.pandas_groups",
    "dask": "xarr.chunks.dask_tasks",
    "dask.array": "xarr.chunks.dask_arrays",
    "distributed": "xarr.chunks.workers",
    "cloudpickle": "xarr.chunks.cloudpickled_functions",
    "xarray": "xarr.chunks.xarray_indexing",
}


class _Loader:
    """Loads a package as `loader` does, then imports what belongs to it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        _import_after(module.__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Finder:
    """Stands first among the finders, and leaves to the others all but the packages that are followed."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _FOLLOWED_BY:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


def _import_after(name: str) -> None:
    try:
        importlib.import_module(_FOLLOWED_BY[name])
    except ImportError:
        # Another version, without what is derived from or wrapped: then it does not know Arrays.
        return


def install() -> None:
    """Import what follows the packages that are there, and what follows the others when they come."""
    for name in _FOLLOWED_BY:
        if name in sys.modules:
            _import_after(name)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
