"""Workers of `dask.distributed`: on which device each computes, and with how many threads.

A worker runs as many tasks at once as it has threads, so that a task's loops, sorts and products run in the thread of
the task alone: `xarr.compiler.processors` asks this whether it is a task that asks.  XARR_THREADS says another number.
"""

from __future__ import annotations

import re
from typing import Any

from distributed import get_worker
from distributed.diagnostics.plugin import WorkerPlugin

from xarr import backend as backends
from xarr.arrays.pickling import receive_on
from xarr.base.configuration import current as config
from xarr.compiler import processors
from xarr.errors import BackendError


class WorkerDevice(WorkerPlugin):
    """A device for each worker: `client.register_plugin(WorkerDevice("cupy"))`.

    New Arrays of a worker are made on its device, and those that come from elsewhere go there.
    backend: with a number, "cuda:1", that device is meant for all; without one each worker gets its own, by the
    number at the end of its name, as `LocalCluster` names them.  Where each worker sees a single device, as under
    dask-cuda, it is that.

    Raises BackendError for a backend that a worker has not, and for names without numbers where there are several
    devices.
    """

    name = "xarr-device"

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def setup(self, worker: Any) -> None:
        """Begin, in the process of `worker`."""
        device = backends.get(self._device_name(str(worker.name))).device()
        self._before = (config.backend, receive_on(device))
        config.backend = device.name

    def teardown(self, worker: Any) -> None:
        """End: what held before holds again."""
        config.backend, device = self._before
        receive_on(device)

    def _device_name(self, worker: str) -> str:
        own = backends.get(self.backend)
        count = len(own.devices())
        if ":" in self.backend or count == 1:
            return self.backend
        number = re.search(r"\d+$", worker)
        if number is None:
            raise BackendError(
                f"WorkerDevice: wanted a worker whose name ends with a number, to choose one of {count} devices of "
                f'{own.name!r}, got {worker!r}; give workers such names, or say which: WorkerDevice("{own.name}:0")'
            )
        return f"{own.name}:{int(number[0]) % count}"


def _threads_of_task() -> int | None:
    """One in the thread of a task, None elsewhere."""
    try:
        get_worker()
    except ValueError:
        return None
    return 1


processors.ask_first(_threads_of_task)
