"""The CPU backend: each graph becomes a Python function that calls NumPy, its fused parts machine code."""

from xarr_numpy.backend import NumpyBackend as Backend

__all__ = ["Backend"]
