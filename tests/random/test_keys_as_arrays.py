"""Arrays of random keys: what is arranged and asked as of other arrays, beside JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import random
from xarr.errors import ArgumentError, DTypeError, InputError, ShapeError, XarrError

OTHER = random.key(0, impl="rbg")

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "reshape": lambda np_, keys: keys.reshape(2, 3),
    "reshape one": lambda np_, keys: keys.reshape((3, -1)),
    "function reshape": lambda np_, keys: np_.reshape(keys, (2, 1, 3)),
    "ravel": lambda np_, keys: np_.ravel(keys.reshape(2, 3)).reshape(2, 3).ravel(),
    "transpose": lambda np_, keys: keys.reshape(2, 3).T,
    "axes": lambda np_, keys: keys.reshape(1, 2, 3).transpose(2, 0, 1),
    "squeeze": lambda np_, keys: keys.reshape(2, 1, 3).squeeze(1),
    "index": lambda np_, keys: keys.reshape(2, 3)[1, ::-1],
    "index array": lambda np_, keys: keys[np.array([0, 5, 0])],
    "set": lambda np_, keys: keys.reshape(2, 3).at[:, 1].set(keys[0]),
    "get": lambda np_, keys: keys.at[2:4].get(),
    "stack": lambda np_, keys: np_.stack([keys, keys[::-1]], axis=-1),
    "stack of single keys": lambda np_, keys: np_.stack([keys[3], keys[1]]),
    "concatenate": lambda np_, keys: np_.concatenate([keys, keys[:2]]),
    "concatenate rows": lambda np_, keys: np_.concatenate([keys.reshape(2, 3), keys.reshape(2, 3)], axis=1),
    "tile": lambda np_, keys: np_.tile(keys, (2, 1)),
    "broadcast_to": lambda np_, keys: np_.broadcast_to(keys[4], (2, 2)),
    "expand_dims": lambda np_, keys: np_.expand_dims(keys, -1),
    "full_like": lambda np_, keys: np_.full_like(keys, keys[2]),
    "where": lambda np_, keys: np_.where(np.array([True, False] * 3), keys, keys[0]),
    "empty": lambda np_, keys: keys[:0].reshape(0, 2),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.implicit
def test_arranging_keys(name: str) -> None:
    call = CALLS[name]
    wanted = call(jnp, jax.random.split(jax.random.key(7), 6))
    got = call(xarr, random.split(random.key(7), 6))
    jitted = xarr.jit(lambda keys: call(xarr, keys))(random.split(random.key(7), 6))
    for keys in (got, jitted):
        assert (keys.shape, keys.ndim, keys.size) == (wanted.shape, wanted.ndim, wanted.size)
        assert_same(random.key_data(keys), np.asarray(jax.random.key_data(wanted)))


def test_arranged_keys_go_through_loops() -> None:
    def step(carry: Any, key: Any) -> tuple[Any, Any]:
        return xarr.stack([carry[1], key]), random.uniform(carry[0])

    keys = random.split(random.key(1), 5)
    last, drawn = xarr.lax.scan(step, keys[:2], keys)
    assert last.shape == (2,) and drawn.shape == (5,)


def test_dtype() -> None:
    key, theirs = random.key(0), jax.random.key(0)
    assert str(key.dtype) == str(theirs.dtype) and key.dtype.itemsize == theirs.dtype.itemsize
    assert key.dtype == random.key_dtype() == random.split(key).dtype
    kinds = ("prng_key", "extended")
    for kind in kinds:
        assert xarr.issubdtype(key.dtype, getattr(xarr.dtypes, kind))
        assert jnp.issubdtype(theirs.dtype, getattr(jax.dtypes, kind))
        assert not xarr.issubdtype(np.uint32, getattr(xarr.dtypes, kind))
        assert not xarr.issubdtype(key.dtype, np.number) and not jnp.issubdtype(theirs.dtype, np.number)
    assert xarr.issubdtype(xarr.dtypes.prng_key, xarr.dtypes.extended)
    assert not xarr.issubdtype(xarr.dtypes.extended, xarr.dtypes.prng_key)


def test_other_mistakes_are_told_as_before() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InputError, match="an array of Python objects"):
        xarr.stack([{1: 0, "a": 1}])  # type: ignore[list-item]
    with pytest.raises(InputError, match="a ragged list is not an array"):
        xarr.stack(endless)


def test_arrays_of_keys_are_keys() -> None:
    for keys in (random.key(3), random.split(random.key(3), (2, 3)), OTHER):
        for made in (
            xarr.array(keys),
            xarr.asarray(keys, dtype=keys.dtype),
            xarr.jit(xarr.asarray)(keys),
            xarr.array(keys, device=keys.device),
            xarr.array(keys, ndmin=3).reshape(keys.shape),
        ):
            assert made.shape == keys.shape and made.dtype == keys.dtype
            assert (made == keys).all()
        assert xarr.array(keys, ndmin=4).ndim == 4
        assert xarr.result_type(keys) == xarr.result_type(keys.dtype, keys) == keys.dtype
        assert xarr.issubdtype(keys.dtype, np.generic) and not xarr.issubdtype(keys.dtype, np.integer)
        assert keys.nbytes == keys.size * keys.itemsize == random.key_data(keys).nbytes


def test_device() -> None:
    with xarr.use_backend("reference"):
        key = random.key(0)
    assert key.device == random.key_data(key).device != random.key(0).device
    moved = xarr.asarray(key, device=random.key(0).device)
    assert moved.device == random.key(0).device and moved == random.key(0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda keys: keys.reshape(4), ShapeError, "shape"),
        (lambda keys: xarr.stack([keys, xarr.ones(6)]), InputError, "keys cannot be combined with numbers"),
        (
            lambda keys: xarr.concatenate([xarr.arange(2), keys]),
            InputError,
            "cannot be combined with numbers",
        ),
        (lambda keys: xarr.full_like(keys, 0), InputError, "cannot be computed with"),
        (lambda keys: keys.at[0].set(1), InputError, "wanted a key"),
        (lambda keys: random.key_dtype("rgb"), ArgumentError, "for impl, got 'rgb'"),
        (lambda keys: xarr.stack([keys, keys[:2]]), ShapeError, "one shape"),
        (
            lambda keys: xarr.stack([keys[0], OTHER]),
            InputError,
            "keys of threefry2x32 cannot be combined with",
        ),
        (lambda keys: keys.at[0].set(OTHER), InputError, "wanted a key of threefry2x32, got one of rbg"),
        (lambda keys: keys == OTHER, DTypeError, "not comparable with a key of rbg"),
        (np.asarray, InputError, "is not a NumPy array; random.key_data"),
        (lambda keys: xarr.asarray(keys, "uint32"), DTypeError, "key<fry> are not converted to uint32"),
        (lambda keys: xarr.asarray(keys, OTHER.dtype), DTypeError, "are not converted to key<rbg>"),
        (
            lambda keys: xarr.result_type(keys, 1),
            DTypeError,
            "random keys have no promotion, got key<fry>, 1",
        ),
        (lambda keys: xarr.result_type(np.int8, keys), DTypeError, "random keys have no promotion"),
    ],
)
def test_refusals(call: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(random.split(random.key(0), 6))


@pytest.mark.parametrize(
    "call",
    [lambda key: xarr.full(3, key), lambda key: xarr.ones(2).at[0].set(key), lambda key: xarr.add(key, 1)],
    ids=["full", "set", "add"],
)
def test_numbers_are_made_of_no_key(call: Callable[[Any], Any]) -> None:
    with pytest.raises(XarrError, match=r"key.* random.key_data"):
        call(random.key(0))


def test_callbacks_get_keys(capsys: pytest.CaptureFixture[str]) -> None:
    key = random.key(7)

    def draw(key: Any) -> Any:
        xarr.debug.print("{}", key)
        of_key = xarr.pure_callback(
            lambda own: np.asarray(random.uniform(own, (3,))), xarr.ShapeDtypeStruct((3,), "float64"), key
        )
        return of_key, random.uniform(key, (3,))

    for form in (draw, xarr.jit(draw)):
        first, second = form(key)
        assert first.tolist() == second.tolist()
        assert capsys.readouterr().out == "Key([0, 7], impl='threefry2x32')\n"
    assert (xarr.tree.map(np.asarray, key) == key).item()
