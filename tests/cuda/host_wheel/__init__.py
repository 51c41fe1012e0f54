"""The unmodified CuPy wheel on memory of the host, for tests: its own code runs, with no driver and no GPU below it.

CuPy's modules find each other's C functions in capsules.  Those that call the CUDA runtime and driver are exchanged for
ones that ask a `HostDevice`, before CuPy itself is imported.  CuPy's pool, streams, modules and launches are then real,
as is NVRTC; memory is the host's, and kernels run on the emulator.
"""
