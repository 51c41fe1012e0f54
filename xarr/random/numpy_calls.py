"""Calls of numpy.random with Arrays: arguments become NumPy's, what is drawn becomes Arrays.

Python numbers that numpy.random returns (`rand()`, `normal()`) stay Python numbers, so that they promote as in a
NumPy program: `x * rand()` keeps the float32 of x.  NumPy's scalars become Arrays without dimensions, as elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, Final

import numpy as np

from xarr import backend as backends
from xarr.arrays.numpy_protocols import array_of, host_value
from xarr.base.process_rng import separate_state
from xarr.base.tracebacks import names_errors
from xarr.errors import InputError, TracedValueError
from xarr.ir.types import replace_at
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.random.keys import Key
from xarr.runtime import handles, materialisation, trace_stack, view_tracking
from xarr.runtime.handles import Handle

#: How to draw the same distribution in a traced function, from a key that is an argument of it, in terms of the
#: parameters of numpy.random's function.  Distributions that are not here have no function of keys.
KEYED: Final[Mapping[str, str]] = {
    "beta": "random.beta(key, a, b, size)",
    "binomial": "random.binomial(key, n, p, size)",
    "bytes": 'random.bits(key, length, "uint8")',
    "chisquare": "random.chisquare(key, df, size)",
    "choice": "random.choice(key, a, size, replace, p)",
    "dirichlet": "random.dirichlet(key, alpha, size)",
    "exponential": "scale * random.exponential(key, size)",
    "f": "random.f(key, dfnum, dfden, size)",
    "gamma": "scale * random.gamma(key, shape, size)",
    "geometric": "random.geometric(key, p, size)",
    "gumbel": "loc + scale * random.gumbel(key, size)",
    "integers": "random.randint(key, size, low, high)",
    "laplace": "loc + scale * random.laplace(key, size)",
    "logistic": "loc + scale * random.logistic(key, size)",
    "lognormal": "xarr.exp(mean) * random.lognormal(key, sigma, size)",
    "multinomial": "random.multinomial(key, n, pvals)",
    "multivariate_normal": "random.multivariate_normal(key, mean, cov, size)",
    "normal": "loc + scale * random.normal(key, size)",
    "pareto": "random.pareto(key, a, size) - 1",
    "permutation": "random.permutation(key, x)",
    "permuted": "random.permutation(key, x, axis, independent=True)",
    "poisson": "random.poisson(key, lam, size)",
    "power": "random.uniform(key, size) ** (1 / a)",
    "rand": "random.uniform(key, (d0, d1))",
    "randint": "random.randint(key, size, low, high)",
    "randn": "random.normal(key, (d0, d1))",
    "random": "random.uniform(key, size)",
    "random_integers": "random.randint(key, size, low, high + 1)",
    "random_sample": "random.uniform(key, size)",
    "ranf": "random.uniform(key, size)",
    "rayleigh": "random.rayleigh(key, scale, size)",
    "sample": "random.uniform(key, size)",
    "shuffle": "x = random.permutation(key, x)",
    "standard_cauchy": "random.cauchy(key, size)",
    "standard_exponential": "random.exponential(key, size)",
    "standard_gamma": "random.gamma(key, shape, size)",
    "standard_normal": "random.normal(key, size)",
    "standard_t": "random.t(key, df, size)",
    "tomaxint": "random.randint(key, size, 0, 2**63 - 1)",
    "triangular": "random.triangular(key, left, mode, right, size)",
    "uniform": "random.uniform(key, size, minval=low, maxval=high)",
    "wald": "scale * random.wald(key, mean / scale, size)",
    "weibull": "random.weibull_min(key, 1.0, a, size)",
}


def function(draw: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """A function of numpy.random's that takes Arrays and returns them.  Raises as NumPy's, and as `call`."""
    name = name or draw.__name__
    position = _position_of_out(draw)

    @wraps(draw)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return call(name, of_replica(draw), args, kwargs, position)

    wrapper.__name__ = wrapper.__qualname__ = name
    wrapper.__module__ = "xarr.random"
    wrapper.__doc__ = _add_source(draw, name)
    return names_errors(wrapper)


def of_replica(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numpy.random's, or that of the state which a replica has of its own, if it is a thread."""
    state = separate_state()
    # `ranf` and `sample` are functions alone, other names of `random_sample`.
    return draw if state is None else getattr(state, draw.__name__, state.random_sample)


def method(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A method of numpy.random's generators that takes Arrays and returns them, as `function` does.

    It draws from the `_host` of the object: NumPy's own methods call one another and want NumPy's arrays.
    """
    label, position = draw.__qualname__, _position_of_out(draw) - 1

    @wraps(draw)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(label, partial(draw, self._host), args, kwargs, position)

    wrapper.__doc__ = _add_source(draw, label)
    return wrapper


def _add_source(draw: Callable[..., Any], label: str) -> str:
    """NumPy's docstring, which says what the arguments are, with a word on Arrays.

    Without its examples: they print NumPy's arrays.
    """
    told = (inspect.getdoc(draw) or "").partition("\nExamples\n")[0].rstrip()
    return f"{told}\n\nArrays are taken and returned.  Source: NumPy, `random.{label}`."


def _position_of_out(draw: Callable[..., Any]) -> int:
    """The position of the parameter `out`; one that no call has where there is none."""
    parameters = list(inspect.signature(draw).parameters)
    return parameters.index("out") if "out" in parameters else 10**6


def call(
    label: str, draw: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], position: int
) -> Any:
    """The result of `draw` for these arguments, as Arrays on their backend, without one on the default backend.

    label: the name as users know it, such as "rand" or "Generator.normal".
    position: that of `out`, which shows the result if it is an Array.  Raises TracedValueError in a traced
    function, where the numbers would be drawn once, InputError for a key, BackendError for Arrays of two backends.
    """
    _refuse_trace(label)
    arguments = [*args, *kwargs.values()]
    _refuse_key(label, *arguments)
    device = (handles.common_device(arguments) or backends.default_device()).committed
    out = args[position] if position < len(args) else kwargs.get("out")
    if isinstance(out, Handle):
        refuse_dynamic(f"random.{label}(out=)", out, "y = without out=")
        name = label.rpartition(".")[2]  # only methods of generators have out=
        refused = view_tracking.refusal(f"random.{label}", out, called=f"rng.{name}")
        if refused is not None:
            raise InputError(refused)
        buffer = np.empty(out._node.shape, out._node.dtype)
        if position < len(args):
            args = replace_at(args, position, buffer)
        else:
            kwargs = {**kwargs, "out": buffer}
    drawn = draw(*map(host_value, args), **{key: host_value(value) for key, value in kwargs.items()})
    if not isinstance(out, Handle):
        return array_of(drawn, device)
    out._show(handles.from_host(buffer, device))
    return out


def shuffle(label: str, draw: Callable[..., Any], x: Any, *axis: int) -> None:
    """Let `draw` shuffle x in place, or the handle show the shuffled values if x is an Array."""
    _refuse_trace(label)
    _refuse_key(label, x, *axis)
    if not isinstance(x, Handle):
        draw(x, *axis)
        return
    refuse_dynamic(f"random.{label}", x, "random.permutation(key, x)")
    values = np.array(materialisation.to_host(x))
    draw(values, *axis)
    x._show(handles.from_host(values, materialisation.device_of(x._node)))


def _refuse_trace(label: str) -> None:
    if trace_stack.is_tracing():
        keyed = KEYED.get(label.rpartition(".")[2])
        instead = (
            f"give the function a key as argument, which random.key(0) makes, and write {keyed}"
            if keyed
            else "draw the numbers outside and give them to the function as argument"
        )
        raise TracedValueError(
            f"random.{label} calls numpy.random: in a traced function it would run once, while that is recorded, and "
            f"not in each call; {instead}"
        )


def _refuse_key(label: str, *arguments: Any) -> None:
    if not any(isinstance(each, Key) for each in arguments):
        return
    keyed = KEYED.get(label.rpartition(".")[2])
    if label in ("default_rng", "seed", "RandomState", "RandomState.seed"):
        instead = "random.key_data(key) is a seed"
    else:
        instead = (
            f"with a key, which comes first, write {keyed}" if keyed else "no function of keys draws this"
        )
    raise InputError(f"random.{label} calls numpy.random, which takes no key; {instead}")


def seed_on_host(name: str, seed: Any) -> Any:
    """A seed as numpy.random takes it.  InputError for a key."""
    _refuse_key(name, seed)
    return host_value(seed)
