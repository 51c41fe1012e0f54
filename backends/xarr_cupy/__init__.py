"""The CUDA backend: loop programs as CUDA kernels, memory and libraries by CuPy."""

from xarr_cupy.backend import CupyBackend as Backend

__all__ = ["Backend"]
