"""A backend that compiles and never runs: for testing what is compiled without paying for the run."""

from xarr_null.backend import NullBackend as Backend

__all__ = ["Backend"]
