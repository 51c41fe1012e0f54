"""numpy.random under its own names: the numbers are NumPy's for the same seed, given as Arrays.

The functions share numpy.random's own state: `xarr.random.seed(0)` is `numpy.random.seed(0)`, so that a program draws
the same numbers with either import, and libraries that draw from numpy.random go on with the same stream.  Replicas
that are threads have a state of their own instead, as processes would, which numpy.random knows nothing of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import (
    MT19937 as MT19937,
    PCG64 as PCG64,
    PCG64DXSM as PCG64DXSM,
    SFC64 as SFC64,
    BitGenerator as BitGenerator,
    Philox as Philox,
    SeedSequence as SeedSequence,
)

from xarr.base.tracebacks import names_errors
from xarr.random import numpy_calls
from xarr.random.numpy_calls import function, method, of_replica

_Generator = np.random.Generator
_State = np.random.RandomState


class Generator(np.random.Generator):
    """`numpy.random.Generator` whose methods take and return Arrays.  `default_rng` makes it.

    bit_generator: as PCG64(seed); all numbers come from it, and it holds all of the state.
    Raises as NumPy's does; TracedValueError for drawing in a traced function.  Source: NumPy, `random.Generator`.
    """

    def __init__(self, bit_generator: BitGenerator) -> None:
        super().__init__(bit_generator)
        self._host = np.random.Generator(bit_generator)

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (self.bit_generator,)

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """`n_children` new generators, independent of this one.  Source: NumPy, `random.Generator.spawn`."""
        return [Generator(child.bit_generator) for child in self._host.spawn(n_children)]

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Shuffle x along `axis`: an Array's handle shows the new order, other Arrays keep theirs."""
        numpy_calls.shuffle("Generator.shuffle", self._host.shuffle, x, axis)

    beta = method(_Generator.beta)
    binomial = method(_Generator.binomial)
    bytes = method(_Generator.bytes)
    chisquare = method(_Generator.chisquare)
    choice = method(_Generator.choice)
    dirichlet = method(_Generator.dirichlet)
    exponential = method(_Generator.exponential)
    f = method(_Generator.f)
    gamma = method(_Generator.gamma)
    geometric = method(_Generator.geometric)
    gumbel = method(_Generator.gumbel)
    hypergeometric = method(_Generator.hypergeometric)
    integers = method(_Generator.integers)
    laplace = method(_Generator.laplace)
    logistic = method(_Generator.logistic)
    lognormal = method(_Generator.lognormal)
    logseries = method(_Generator.logseries)
    multinomial = method(_Generator.multinomial)
    multivariate_hypergeometric = method(_Generator.multivariate_hypergeometric)
    multivariate_normal = method(_Generator.multivariate_normal)
    negative_binomial = method(_Generator.negative_binomial)
    noncentral_chisquare = method(_Generator.noncentral_chisquare)
    noncentral_f = method(_Generator.noncentral_f)
    normal = method(_Generator.normal)
    pareto = method(_Generator.pareto)
    permutation = method(_Generator.permutation)
    permuted = method(_Generator.permuted)
    poisson = method(_Generator.poisson)
    power = method(_Generator.power)
    random = method(_Generator.random)
    rayleigh = method(_Generator.rayleigh)
    standard_cauchy = method(_Generator.standard_cauchy)
    standard_exponential = method(_Generator.standard_exponential)
    standard_gamma = method(_Generator.standard_gamma)
    standard_normal = method(_Generator.standard_normal)
    standard_t = method(_Generator.standard_t)
    triangular = method(_Generator.triangular)
    uniform = method(_Generator.uniform)
    vonmises = method(_Generator.vonmises)
    wald = method(_Generator.wald)
    weibull = method(_Generator.weibull)
    zipf = method(_Generator.zipf)


class RandomState(np.random.RandomState):
    """`numpy.random.RandomState` whose methods take and return Arrays.

    seed: None, an int, an array of ints, or a bit generator.
    Raises as NumPy's does; TracedValueError for drawing in a traced function.  Source: NumPy, `random.RandomState`.
    """

    def __init__(self, seed: Any = None) -> None:
        host = np.random.RandomState(numpy_calls.seed_on_host("RandomState", seed))
        super().__init__(host._bit_generator)
        self._host = host

    def __getstate__(self) -> Any:
        return self._host.__getstate__()

    def __setstate__(self, state: Any) -> None:
        self._host.__setstate__(state)

    def __reduce__(self) -> tuple[Any, ...]:
        return RandomState, (self._bit_generator,), self._host.get_state(legacy=False)

    def get_state(self, legacy: bool = True) -> Any:
        """The state, as `set_state` takes it.  Source: NumPy, `random.RandomState.get_state`."""
        return self._host.get_state(legacy=True) if legacy else self._host.get_state(legacy=False)

    def set_state(self, state: Any) -> None:
        """Go on from a state that `get_state` gave.  Source: NumPy, `random.RandomState.set_state`."""
        self._host.set_state(state)

    def shuffle(self, x: Any) -> None:
        """Shuffle x along its first axis: an Array's handle shows the new order, other Arrays keep theirs."""
        numpy_calls.shuffle("RandomState.shuffle", self._host.shuffle, x)

    beta = method(_State.beta)
    binomial = method(_State.binomial)
    bytes = method(_State.bytes)
    chisquare = method(_State.chisquare)
    choice = method(_State.choice)
    dirichlet = method(_State.dirichlet)
    exponential = method(_State.exponential)
    f = method(_State.f)
    gamma = method(_State.gamma)
    geometric = method(_State.geometric)
    gumbel = method(_State.gumbel)
    hypergeometric = method(_State.hypergeometric)
    laplace = method(_State.laplace)
    logistic = method(_State.logistic)
    lognormal = method(_State.lognormal)
    logseries = method(_State.logseries)
    multinomial = method(_State.multinomial)
    multivariate_normal = method(_State.multivariate_normal)
    negative_binomial = method(_State.negative_binomial)
    noncentral_chisquare = method(_State.noncentral_chisquare)
    noncentral_f = method(_State.noncentral_f)
    normal = method(_State.normal)
    pareto = method(_State.pareto)
    permutation = method(_State.permutation)
    poisson = method(_State.poisson)
    power = method(_State.power)
    rand = method(_State.rand)
    randint = method(_State.randint)
    randn = method(_State.randn)
    random = method(_State.random)
    random_integers = method(_State.random_integers)
    random_sample = method(_State.random_sample)
    rayleigh = method(_State.rayleigh)
    seed = method(_State.seed)
    standard_cauchy = method(_State.standard_cauchy)
    standard_exponential = method(_State.standard_exponential)
    standard_gamma = method(_State.standard_gamma)
    standard_normal = method(_State.standard_normal)
    standard_t = method(_State.standard_t)
    tomaxint = method(_State.tomaxint)
    triangular = method(_State.triangular)
    uniform = method(_State.uniform)
    vonmises = method(_State.vonmises)
    wald = method(_State.wald)
    weibull = method(_State.weibull)
    zipf = method(_State.zipf)


@names_errors
def default_rng(seed: Any = None) -> Generator:
    """A Generator with NumPy's default bit generator, PCG64.

    seed: None, an int, an array of ints, a SeedSequence or bit generator; of a Generator of NumPy's the same stream.
    Raises InputError for a key, else as NumPy's.  Source: NumPy, `random.default_rng`.
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(np.random.default_rng(numpy_calls.seed_on_host("default_rng", seed)).bit_generator)


@names_errors
def shuffle(x: Any) -> None:
    """Shuffle x along its first axis: an Array's handle shows the new order, other Arrays keep theirs.

    Source: NumPy, `random.shuffle`.
    """
    numpy_calls.shuffle("shuffle", of_replica(np.random.shuffle), x)


@names_errors
def get_state(legacy: bool = True) -> Any:
    """The state that the functions of this module draw from, as `set_state` takes it.

    Source: NumPy, `random.get_state`.
    """
    return of_replica(np.random.get_state)(legacy)


@names_errors
def set_state(state: Any) -> None:
    """Go on from a state that `get_state` gave.  Source: NumPy, `random.set_state`."""
    of_replica(np.random.set_state)(state)


bytes = function(np.random.bytes)
hypergeometric = function(np.random.hypergeometric)
logseries = function(np.random.logseries)
negative_binomial = function(np.random.negative_binomial)
noncentral_chisquare = function(np.random.noncentral_chisquare)
noncentral_f = function(np.random.noncentral_f)
power = function(np.random.power)
rand = function(np.random.rand)
randn = function(np.random.randn)
random = function(np.random.random)
random_integers = function(np.random.random_integers)
random_sample = function(np.random.random_sample)
ranf = function(np.random.ranf, "ranf")
sample = function(np.random.sample, "sample")
seed = function(np.random.seed)
standard_cauchy = function(np.random.standard_cauchy)
standard_exponential = function(np.random.standard_exponential)
standard_gamma = function(np.random.standard_gamma)
standard_normal = function(np.random.standard_normal)
standard_t = function(np.random.standard_t)
vonmises = function(np.random.vonmises)
weibull = function(np.random.weibull)
zipf = function(np.random.zipf)
