"""NumPy's functions, a folder for each section of its reference."""
