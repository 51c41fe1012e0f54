"""xarr: a JAX-style array library over pluggable backends that explains itself."""

from xarr import lax as lax
from xarr.array import Array as Array
from xarr.backend import get as get_backend, set_backend as set_backend, use_backend as use_backend
from xarr.config import current as config
from xarr.explanation.broadcast import explain_shapes as explain_broadcast
from xarr.explanation.program import explain as explain
from xarr.lazy import evaluate as evaluate
from xarr.lowering import lower as lower
from xarr.make_explicit import make_explicit as make_explicit
