"""Kernels on the device: loaded once for a text, and unloaded when nothing on the device can need them any more."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from weakref import finalize

#: Modules that are kept although no program holds them, those that were asked for last.
MOST_MODULES: Final = 1024
#: Modules that nothing holds, after which the host waits for the device once, and unloads them all.
MOST_UNUSED: Final = 64
_HEAD: Final = re.compile(r'extern "C" __global__ void (\w+)\(([^)]*)\)')


class CupyModule:
    """The kernels of a text on a GPU.

    * `text` - the CUDA C++,
    * `heads` - the declaration of each kernel, by its name.
    """

    def __init__(self, text: str, module: Any) -> None:
        self.text = text
        self._module = module
        self._functions: dict[str, Any] = {}
        self.heads: dict[str, str] = {
            name: f"{name}({parameters})" for name, parameters in _HEAD.findall(text)
        }

    def function(self, name: str) -> Any:
        """A kernel, looked up once."""
        if name not in self._functions:
            self._functions[name] = self._module.get_function(name)
        return self._functions[name]


class LoadedModules:
    """The modules of a device by their texts.

    A program holds its modules, and with them those of its CUDA graphs; so do the last `MOST_MODULES` lookups.  What
    was launched holds none and may run after its program is gone, so a module that nothing holds is kept until the
    device is known to have run all that was launched before.

    load: CuPy's module of a text; wait: waits for all streams of the device.
    """

    def __init__(self, load: Callable[[str], Any], wait: Callable[[], None]) -> None:
        self._load, self._wait = load, wait
        self._unused: list[Any] = []
        #: The module of a text.
        self.module: Callable[[str], CupyModule] = lru_cache(MOST_MODULES)(self._load_module)

    def _load_module(self, text: str) -> CupyModule:
        self._unload_unused()
        loaded = self._load(text)
        module = CupyModule(text, loaded)
        finalize(module, self._unused.append, loaded).atexit = False
        return module

    def _unload_unused(self) -> None:
        """Unload what nothing holds, where there is enough of it for a wait."""
        count = len(self._unused)
        if count >= MOST_UNUSED:
            self._wait()
            del self._unused[:count]
