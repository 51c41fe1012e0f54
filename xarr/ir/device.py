"""Where values lie and programs run, and how operands agree on it."""

from __future__ import annotations

from typing import Any, Final

from xarr.errors import BackendError


class Device:
    """One device of a backend, by its number.  `AbstractBackend.device` makes each once, so that `is` compares them.

    * `backend`, `ordinal` - which one,
    * `is_committed` - whether what lies here refuses operands from elsewhere.  What is made of lists and numbers
      alone is not committed: it lies where the default device of that time put it, and goes along with operands
      that are,
    * `committed`, `uncommitted` - the same device as one and as the other.
    """

    __slots__ = ("backend", "committed", "is_committed", "ordinal", "uncommitted")

    def __init__(self, backend: Any, ordinal: int = 0, committed: Device | None = None) -> None:
        self.backend: Final[Any] = backend
        self.ordinal: Final = ordinal
        self.is_committed: Final = committed is None
        self.committed: Final[Device] = self if committed is None else committed
        self.uncommitted: Final[Device] = Device(backend, ordinal, self) if committed is None else self

    @property
    def name(self) -> str:
        """The backend's name, with the number of a device that is not its first: "cuda:1"."""
        return f"{self.backend.name}:{self.ordinal}" if self.ordinal else str(self.backend.name)

    def __repr__(self) -> str:
        return f"<{'' if self.is_committed else 'uncommitted '}device {self.name}>"


def join_devices(first: Device | None, second: Device | None) -> Device | None:
    """The device of a result of operands on these two; None stands for "any".

    Of two that are not committed it is the first.  BackendError for two that are and differ.
    """
    if second is None or first is second:
        return first
    if first is None:
        return second
    if first.committed is second.committed:
        return first.committed
    if not second.is_committed:
        return first
    if not first.is_committed:
        return second
    kind = "devices" if first.backend.name == second.backend.name else "backends"
    raise BackendError(
        f'operands live on two {kind}, {first.name} and {second.name}; move one, e.g. x.to("{first.name}")'
    )
