"""Programs of several replicas: threads of one process, or processes under MPI."""

from xarr.distributed.costs import Link as Link
from xarr.distributed.launch import initialize as initialize
from xarr.distributed.simulation import simulate as simulate
