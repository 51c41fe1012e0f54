"""The CPU backend: each graph becomes a straight-line NumPy program."""

from xarr_numpy.backend import NumpyBackend as Backend

__all__ = ["Backend"]
