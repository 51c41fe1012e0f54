"""The parts of `numpy.lib` that are about arrays: `stride_tricks` and `scimath`."""

from xarr.absent import missing
from xarr.lib import scimath as scimath, stride_tricks as stride_tricks

__all__ = ["scimath", "stride_tricks"]


def __getattr__(name: str) -> object:
    raise missing(__name__, name)
