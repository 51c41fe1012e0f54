"""Sorts that NumPy has no single function for."""
