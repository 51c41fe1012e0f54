"""Calls of machine code that know how CPython and NumPy lay out their objects."""
