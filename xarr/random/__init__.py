"""Random numbers, from keys as in `jax.random` or from a state as in `numpy.random`.

    key = xarr.random.key(42)
    key, own = xarr.random.split(key)
    x = xarr.random.normal(own, (3, 4), dtype="float32")

With a key as first argument numbers follow from the key alone, on every backend and in traced functions.  A key is used
once; `split` makes new ones of it.  Bits come from Threefry-2x32 in counter mode, as in JAX with its default
`jax_threefry_partitionable`, unless `key(seed, impl=)` asks for "threefry4x32", "philox2x32", "philox4x32", "rbg" or
"unsafe_rbg".  Element types default to xarr's (float64, int64).

    rng = xarr.random.default_rng(42)
    x = rng.normal(size=(3, 4))

Without a key it is NumPy's function of that name, which draws on the host from a state, with NumPy's numbers.
"""

import typing as _typing

from xarr.base.absent_names import hooks_of as _hooks_of
from xarr.random.choices import categorical as categorical
from xarr.random.continuous import (
    cauchy as cauchy,
    truncated_normal as truncated_normal,
    weibull_min as weibull_min,
)
from xarr.random.discrete import bernoulli as bernoulli, rademacher as rademacher
from xarr.random.gamma_family import (
    ball as ball,
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
    key_dtype as key_dtype,
    key_impl as key_impl,
    split as split,
    wrap_key_data as wrap_key_data,
)
from xarr.random.multivariate import (
    double_sided_maxwell as double_sided_maxwell,
    maxwell as maxwell,
    orthogonal as orthogonal,
)
from xarr.random.numpy_generators import (
    MT19937 as MT19937,
    PCG64 as PCG64,
    PCG64DXSM as PCG64DXSM,
    SFC64 as SFC64,
    BitGenerator as BitGenerator,
    Generator as Generator,
    Philox as Philox,
    RandomState as RandomState,
    SeedSequence as SeedSequence,
    bytes as bytes,
    default_rng as default_rng,
    get_state as get_state,
    hypergeometric as hypergeometric,
    logseries as logseries,
    negative_binomial as negative_binomial,
    noncentral_chisquare as noncentral_chisquare,
    noncentral_f as noncentral_f,
    power as power,
    rand as rand,
    randn as randn,
    random as random,
    random_integers as random_integers,
    random_sample as random_sample,
    ranf as ranf,
    sample as sample,
    seed as seed,
    set_state as set_state,
    shuffle as shuffle,
    standard_cauchy as standard_cauchy,
    standard_exponential as standard_exponential,
    standard_gamma as standard_gamma,
    standard_normal as standard_normal,
    standard_t as standard_t,
    vonmises as vonmises,
    weibull as weibull,
    zipf as zipf,
)
from xarr.random.shared_names import (
    beta as beta,
    binomial as binomial,
    chisquare as chisquare,
    choice as choice,
    dirichlet as dirichlet,
    exponential as exponential,
    f as f,
    gamma as gamma,
    geometric as geometric,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    lognormal as lognormal,
    multinomial as multinomial,
    multivariate_normal as multivariate_normal,
    normal as normal,
    pareto as pareto,
    permutation as permutation,
    poisson as poisson,
    randint as randint,
    rayleigh as rayleigh,
    triangular as triangular,
    uniform as uniform,
    wald as wald,
)

if not _typing.TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker
    __getattr__, __dir__ = _hooks_of(__name__)
