"""Calls of machine code that read the C structs of Python's objects and NumPy's arrays.

Everything here is a shorter way to what `ctypes` and NumPy do too: where `struct_offsets.works()` says no, they do it.
"""
