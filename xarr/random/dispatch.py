"""Functions that jax.random and numpy.random both have: a key as first argument means JAX's, all else NumPy's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from xarr.errors import TracedValueError
from xarr.random import counts, gammas, host_calls, samplers, vectors
from xarr.random.keys import Key, words_per_key
from xarr.runtime.handles import Handle

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class TwoWays(Protocol[P, R]):
    """A function that is called as jax.random's, with a key first, or as numpy.random's."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


def two_ways(keyed: Callable[P, R], draw: Callable[..., Any]) -> TwoWays[P, R]:
    """`keyed` where the first argument is a key, else numpy.random's `draw`; errors say which one ran.

    A key is a Key, or uint32 words of one, whose last dimension has size 2 for the default generator; words with
    fewer arguments than `keyed` needs are an argument of `draw`, as in `permutation(x)`.
    """
    name, host = keyed.__name__, host_calls.function(draw)
    parameters = inspect.signature(keyed).parameters.values()
    needed = sum(each.default is each.empty for each in parameters)
    ways = f"random.{name}{_parameters_of(keyed)}", f"numpy.random.{name}{_parameters_of(draw)}"

    @wraps(keyed)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        is_keyed = _is_keyed(args, kwargs, needed)
        try:
            return keyed(*args, **kwargs) if is_keyed else host(*args, **kwargs)
        except TracedValueError:
            raise
        except (TypeError, ValueError) as error:
            mine, other = ways if is_keyed else ways[::-1]
            error.add_note(
                f"{name} with a key as first argument, as here, is {mine}; without one it is {other}"
                if is_keyed
                else f"{name} without a key as first argument, as here, is {mine}; with one it is {other}"
            )
            raise

    wrapper.__module__ = "xarr.random"
    note = f"Without a key as first argument: `numpy.random.{name}`, with NumPy's numbers and parameters."
    wrapper.__doc__ = f"{keyed.__doc__}\n    {note}\n    "
    return wrapper


def _parameters_of(function: Callable[..., Any]) -> str:
    parameters = inspect.signature(function).parameters.values()
    plain = [each.replace(annotation=each.empty) for each in parameters]
    return str(inspect.Signature(plain))


def _is_keyed(args: tuple[Any, ...], kwargs: dict[str, Any], needed: int) -> bool:
    if "key" in kwargs:
        return True
    if not args:
        return False
    first = args[0]
    if isinstance(first, Key):
        return True
    if not isinstance(first, Handle | np.ndarray) or len(args) + len(kwargs) < needed:
        return False
    dtype, shape = (
        (first._node.dtype, first._node.shape) if isinstance(first, Handle) else (first.dtype, first.shape)
    )
    return dtype == np.uint32 and shape[-1:] == (words_per_key(),)


beta = two_ways(gammas.beta, np.random.beta)
binomial = two_ways(counts.binomial, np.random.binomial)
chisquare = two_ways(gammas.chisquare, np.random.chisquare)
choice = two_ways(samplers.choice, np.random.choice)
dirichlet = two_ways(gammas.dirichlet, np.random.dirichlet)
exponential = two_ways(samplers.exponential, np.random.exponential)
f = two_ways(gammas.f, np.random.f)
gamma = two_ways(gammas.gamma, np.random.gamma)
geometric = two_ways(samplers.geometric, np.random.geometric)
gumbel = two_ways(samplers.gumbel, np.random.gumbel)
laplace = two_ways(samplers.laplace, np.random.laplace)
logistic = two_ways(samplers.logistic, np.random.logistic)
lognormal = two_ways(samplers.lognormal, np.random.lognormal)
multinomial = two_ways(counts.multinomial, np.random.multinomial)
multivariate_normal = two_ways(vectors.multivariate_normal, np.random.multivariate_normal)
normal = two_ways(samplers.normal, np.random.normal)
pareto = two_ways(samplers.pareto, np.random.pareto)
permutation = two_ways(samplers.permutation, np.random.permutation)
poisson = two_ways(counts.poisson, np.random.poisson)
randint = two_ways(samplers.randint, np.random.randint)
rayleigh = two_ways(samplers.rayleigh, np.random.rayleigh)
triangular = two_ways(samplers.triangular, np.random.triangular)
uniform = two_ways(samplers.uniform, np.random.uniform)
wald = two_ways(vectors.wald, np.random.wald)
