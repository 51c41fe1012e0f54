"""The functions of `jax.random` of one key, whose answers are kept: XLA compiles each for a second."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from tests.support.answers import recorded

HostArray = np.ndarray[Any, Any]


class JaxKey:
    """`jax.random.key(seed, impl=impl)`; its methods are the functions of `jax.random` that take a key first.

    Results are host arrays, the words of keys for keys.
    """

    def __init__(self, seed: int, impl: str = "threefry2x32") -> None:
        self.seed = seed
        self.impl = impl

    @property
    def key(self) -> Any:
        """The key itself, for what is not kept."""
        return jax.random.key(self.seed, impl=self.impl)

    def __getattr__(self, name: str) -> Callable[..., HostArray]:
        if not hasattr(jax.random, name):
            raise AttributeError(name)
        return functools.partial(self._answer, name)

    def _answer(self, name: str, *arguments: Any, **options: Any) -> HostArray:
        (result,) = _call(name, self.seed, self.impl, arguments, sorted(options.items()))
        return result


@recorded
def _call(name: str, seed: int, impl: str, arguments: Any, options: Any) -> Any:
    result = getattr(jax.random, name)(jax.random.key(seed, impl=impl), *arguments, **dict(options))
    return jax.random.key_data(result) if jax.dtypes.issubdtype(result.dtype, jax.dtypes.prng_key) else result
