"""Random numbers from keys: the same for the same key on every backend, and those of `jax.random`.

    key = xarr.random.key(42)
    key, own = xarr.random.split(key)
    x = xarr.random.normal(own, (3, 4), dtype="float32")

A key is used once; `split` makes new ones of it.  Bits come from Threefry-2x32 in counter mode, as in JAX
with its default `jax_threefry_partitionable`.  Element types default to xarr's (float64, int64).
"""

import typing as _typing

from xarr.absent import missing as _missing
from xarr.names import public_names as _public_names
from xarr.random.counts import (
    binomial as binomial,
    multinomial as multinomial,
    poisson as poisson,
)
from xarr.random.gammas import (
    ball as ball,
    beta as beta,
    chisquare as chisquare,
    dirichlet as dirichlet,
    f as f,
    gamma as gamma,
    generalized_normal as generalized_normal,
    loggamma as loggamma,
    t as t,
)
from xarr.random.keys import (
    Key as Key,
    PRNGKey as PRNGKey,
    bits as bits,
    clone as clone,
    fold_in as fold_in,
    key as key,
    key_data as key_data,
    key_impl as key_impl,
    split as split,
    wrap_key_data as wrap_key_data,
)
from xarr.random.samplers import (
    bernoulli as bernoulli,
    categorical as categorical,
    cauchy as cauchy,
    choice as choice,
    exponential as exponential,
    geometric as geometric,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    lognormal as lognormal,
    normal as normal,
    pareto as pareto,
    permutation as permutation,
    rademacher as rademacher,
    randint as randint,
    rayleigh as rayleigh,
    triangular as triangular,
    truncated_normal as truncated_normal,
    uniform as uniform,
    weibull_min as weibull_min,
)
from xarr.random.vectors import (
    double_sided_maxwell as double_sided_maxwell,
    maxwell as maxwell,
    multivariate_normal as multivariate_normal,
    wald as wald,
)

if not _typing.TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker

    def __getattr__(name: str) -> object:
        raise _missing(__name__, name)


def __dir__() -> list[str]:
    return _public_names(globals())
