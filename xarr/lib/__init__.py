"""The parts of `numpy.lib` that are about arrays: `stride_tricks` and `scimath`."""

from typing import TYPE_CHECKING

from xarr.base.absent_names import missing
from xarr.base.names import public_names
from xarr.lib import scimath as scimath, stride_tricks as stride_tricks

__all__ = ["scimath", "stride_tricks"]


if not TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker

    def __getattr__(name: str) -> object:
        raise missing(__name__, name)


def __dir__() -> list[str]:
    return public_names(globals())
