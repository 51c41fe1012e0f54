"""Linear algebra with NumPy's and the Array API's names and arguments, on matrices in the last two dimensions.

Integers and bools count as float64; floats of fewer than 32 bits are refused, as in NumPy.  What fails for the
values of a matrix (a singular one, an iteration that does not converge) raises LinAlgError: functions that may do
so compute at once, in a traced function when that one runs.
"""

from typing import TYPE_CHECKING

from xarr.base.absent_names import hooks_of
from xarr.errors import LinAlgError as LinAlgError
from xarr.linalg.decompositions import (
    cholesky as cholesky,
    eig as eig,
    eigh as eigh,
    eigvals as eigvals,
    eigvalsh as eigvalsh,
    qr as qr,
    svd as svd,
    svdvals as svdvals,
)
from xarr.linalg.least_squares import lstsq as lstsq, matrix_rank as matrix_rank, pinv as pinv
from xarr.linalg.norms import (
    cond as cond,
    matrix_norm as matrix_norm,
    norm as norm,
    vector_norm as vector_norm,
)
from xarr.linalg.products import (
    cross as cross,
    diagonal as diagonal,
    matrix_power as matrix_power,
    multi_dot as multi_dot,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
)
from xarr.linalg.systems import (
    det as det,
    inv as inv,
    slogdet as slogdet,
    solve as solve,
    tensorinv as tensorinv,
    tensorsolve as tensorsolve,
)
from xarr.numpy_api.linear_algebra.products import matmul as matmul, vecdot as vecdot
from xarr.numpy_api.manipulation.shapes import matrix_transpose as matrix_transpose

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]

if not TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker
    __getattr__, __dir__ = hooks_of(__name__)
