"""xarr: a JAX-style array library over pluggable backends that explains itself."""

from xarr import lax as lax
from xarr.array import Array as Array
from xarr.backend import get as get_backend, set_backend as set_backend, use_backend as use_backend
from xarr.config import current as config
from xarr.lazy import evaluate as evaluate
