"""Functions that jax.random and numpy.random both have: a key as first argument means JAX's, all else NumPy's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from xarr.base.tracebacks import names_errors
from xarr.errors import TracedValueError
from xarr.random import choices, continuous, discrete, gamma_family, multivariate, numpy_calls
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
    name, host, drawing = keyed.__name__, numpy_calls.function(draw), names_errors(keyed)
    parameters = inspect.signature(keyed).parameters.values()
    needed = sum(each.default is each.empty for each in parameters)
    ways = f"random.{name}{_parameters_of(keyed)}", f"numpy.random.{name}{_parameters_of(draw)}"

    @wraps(keyed)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        is_keyed = _is_keyed(args, kwargs, needed)
        try:
            return drawing(*args, **kwargs) if is_keyed else host(*args, **kwargs)
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


beta = two_ways(gamma_family.beta, np.random.beta)
binomial = two_ways(discrete.binomial, np.random.binomial)
chisquare = two_ways(gamma_family.chisquare, np.random.chisquare)
choice = two_ways(choices.choice, np.random.choice)
dirichlet = two_ways(gamma_family.dirichlet, np.random.dirichlet)
exponential = two_ways(continuous.exponential, np.random.exponential)
f = two_ways(gamma_family.f, np.random.f)
gamma = two_ways(gamma_family.gamma, np.random.gamma)
geometric = two_ways(discrete.geometric, np.random.geometric)
gumbel = two_ways(continuous.gumbel, np.random.gumbel)
laplace = two_ways(continuous.laplace, np.random.laplace)
logistic = two_ways(continuous.logistic, np.random.logistic)
lognormal = two_ways(continuous.lognormal, np.random.lognormal)
multinomial = two_ways(discrete.multinomial, np.random.multinomial)
multivariate_normal = two_ways(multivariate.multivariate_normal, np.random.multivariate_normal)
normal = two_ways(continuous.normal, np.random.normal)
pareto = two_ways(continuous.pareto, np.random.pareto)
permutation = two_ways(choices.permutation, np.random.permutation)
poisson = two_ways(discrete.poisson, np.random.poisson)
randint = two_ways(discrete.randint, np.random.randint)
rayleigh = two_ways(continuous.rayleigh, np.random.rayleigh)
triangular = two_ways(continuous.triangular, np.random.triangular)
uniform = two_ways(continuous.uniform, np.random.uniform)
wald = two_ways(multivariate.wald, np.random.wald)
