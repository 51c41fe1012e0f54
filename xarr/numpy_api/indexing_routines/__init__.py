"""Indexing routines: elements selected, assigned and visited by indices and conditions."""
