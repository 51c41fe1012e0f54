"""Functions in JAX whose exported text the reader's tests read and run, with inputs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

HostArray = np.ndarray[Any, Any]
_DRAW = np.random.default_rng(0)


def _floats(*shape: int) -> HostArray:
    return _DRAW.standard_normal(shape).astype(np.float32)


def _mlp(x: Any, w: Any, b: Any, v: Any) -> Any:
    return jax.nn.log_softmax(jnp.tanh(x @ w + b) @ v)


def _layer_norm(x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def _newton(x: Any) -> Any:
    return lax.while_loop(
        lambda s: jnp.abs(s[0] ** 2 - x) > 1e-3, lambda s: ((s[0] + x / s[0]) / 2, s[1] + 1), (x, 0)
    )


def _branches(p: Any, x: Any) -> Any:
    return lax.cond(p > 0, lambda: x @ x.T, lambda: jnp.outer(x[:, 0], x[:, 1]))


def _collatz(n: Any) -> Any:
    def step(s: Any) -> Any:
        return lax.cond(s[0] % 2 == 0, lambda v: v // 2, lambda v: 3 * v + 1, s[0]), s[1] + 1

    return lax.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]


def _switch(i: Any, x: Any) -> Any:
    return lax.switch(i, [jnp.sin, lambda v: v * x.sum(), jnp.negative], x)


def _nested_loops(x: Any) -> Any:
    def inner(i: Any, c: Any) -> Any:
        return c + x * i

    return lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(0, i + 1, inner, c * 0.5), x)


def _statistics(x: Any) -> Any:
    return {"mean": x.mean(0), "any": (x > 1).any(), "max": x.max(), "argmax": x.argmax(1)}


def _attention(x: Any) -> Any:
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", x, x) / np.sqrt(x.shape[-1]))
    return jnp.einsum("bqk,bkd->bqd", weights, x)


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "mlp": (_mlp, (_floats(5, 4), _floats(4, 8), _floats(8), _floats(8, 3))),
    "softmax": (jax.nn.softmax, (_floats(3, 4),)),
    "layer_norm": (_layer_norm, (_floats(3, 7),)),
    "gradient": (jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)), (_floats(6),)),
    "newton": (_newton, (np.float32(2.0),)),
    "branches": (_branches, (np.float32(1.0), _floats(3, 4))),
    "collatz": (_collatz, (np.int32(27),)),
    "switch": (_switch, (np.int32(1), _floats(4))),
    "nested_loops": (_nested_loops, (_floats(4),)),
    "sort": (lambda x: jnp.sort(x, axis=0), (_floats(5, 3),)),
    "argsort": (lambda x: jnp.argsort(x, descending=True), (_floats(3, 5),)),
    "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x)), (_floats(3, 5),)),
    "top_k": (lambda x: lax.top_k(x, 2), (_floats(3, 5),)),
    "statistics": (_statistics, (_floats(4, 3),)),
    "attention": (_attention, (_floats(2, 3, 4),)),
    "cumsum": (lambda x: lax.associative_scan(jnp.add, x), (_floats(9),)),
    "integers": (
        lambda x: (x // 3, x % 3, x << 2, lax.population_count(x)),
        (np.arange(-5, 6, dtype=np.int32),),
    ),
    "complex": (lambda x: jnp.exp(1j * x) * jnp.conj(x + 2j), (_floats(4),)),
    "pad_concatenate": (
        lambda x: jnp.concatenate([jnp.pad(x, 1), jnp.pad(x, ((0, 0), (2, 0)))]),
        (_floats(3, 4),),
    ),
    "bfloat16": (lambda x: (x.astype(jnp.bfloat16) * 3).astype(jnp.float32).round(), (_floats(8),)),
    "large_constant": (lambda x: x + jnp.asarray(np.arange(200, dtype=np.float32)), (_floats(200),)),
}


def export(function: Any, arguments: Any) -> str:
    """The StableHLO text of `function` for arguments, or for their shapes, as JAX exports it."""
    return str(jax.export.export(jax.jit(function))(*arguments).mlir_module())
