"""Whole loops as machine code: native loops, iterated groups, scalar computations one after the other."""
