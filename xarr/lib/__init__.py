"""The parts of `numpy.lib` that are about arrays: `stride_tricks` and `scimath`."""

from typing import TYPE_CHECKING

from xarr.base.absent_names import hooks_of
from xarr.lib import scimath as scimath, stride_tricks as stride_tricks

__all__ = ["scimath", "stride_tricks"]


if not TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker
    __getattr__, __dir__ = hooks_of(__name__)
