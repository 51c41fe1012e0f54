"""The executable specification: every operation by its definition, element by element."""

from xarr_reference.backend import ReferenceBackend as Backend

__all__ = ["Backend"]
