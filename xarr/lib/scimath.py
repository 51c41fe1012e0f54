"""`xarr.emath` under NumPy's other name."""

from xarr.emath import (
    arccos as arccos,
    arcsin as arcsin,
    arctanh as arctanh,
    log as log,
    log2 as log2,
    log10 as log10,
    logn as logn,
    power as power,
    sqrt as sqrt,
)
