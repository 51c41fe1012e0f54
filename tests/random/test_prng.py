"""The generators that keys can be of, beside JAX's."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.answers import recorded, source_of
from tests.support.jax_random import JaxKey
from xarr import random
from xarr.base.configuration import PRNG_IMPLS
from xarr.errors import ArgumentError, ConfigError, InputError
from xarr.random.prng import PRNGS

jax.config.update("jax_enable_x64", True)

IMPLS = list(PRNGS)
SHAPES: list[tuple[int, ...]] = [(), (5,), (2, 3), (67,), (3, 0, 2)]
BACKENDS = ("numpy", "reference")


def both(impl: str, seed: int = 7) -> tuple[Any, JaxKey]:
    return random.key(seed, impl=impl), JaxKey(seed, impl)


def words(keys: Any) -> np.ndarray[Any, Any]:
    return np.asarray(jax.random.key_data(keys))


def test_all_of_jax_are_here() -> None:
    with pytest.raises(ValueError, match="Did you mean one of") as refusal:
        jax.random.key(0, impl="")
    theirs = re.findall('"(.+?)"', str(refusal.value).partition("one of")[2])
    assert set(theirs) == set(PRNGS) == set(PRNG_IMPLS)


@pytest.mark.parametrize("impl", IMPLS)
def test_keys(impl: str) -> None:
    for seed in (0, 42, 2**31, 2**40 + 3, -1, -(2**63)):
        mine, theirs = both(impl, seed)
        assert_same(random.key_data(mine), theirs.key_data())
        assert_same(random.PRNGKey(seed, impl=impl), theirs.key_data())
    for number in (np.int8(-3), np.uint32(5), np.uint64(2**64 - 1)):
        assert_same(random.key_data(random.key(number, impl=impl)), words(jax.random.key(number, impl=impl)))
    mine, theirs = both(impl)
    for shape in (2, 3, (2, 3), (), (0,)):
        assert_same(random.key_data(random.split(mine, shape)), theirs.split(shape))
    for data in (0, 9, 2**32 - 1):
        assert_same(random.key_data(random.fold_in(mine, data)), theirs.fold_in(data))


@pytest.mark.parametrize("impl", IMPLS)
def test_bits(impl: str) -> None:
    theirs = JaxKey(7, impl)
    for shape in SHAPES:
        for width in (8, 16, 32, 64):
            wanted = theirs.bits(shape, f"uint{width}")
            for backend in BACKENDS:
                with xarr.use_backend(backend):
                    assert_same(random.bits(random.key(7, impl=impl), shape, f"uint{width}"), wanted)


@pytest.mark.parametrize("impl", IMPLS)
def test_samplers(impl: str) -> None:
    mine, theirs = both(impl)
    for dtype in ("bfloat16", "float32"):
        assert_same(random.uniform(mine, (3, 5), dtype), theirs.uniform((3, 5), dtype))
        drawn, wanted = (
            np.asarray(made, np.float64)
            for made in (random.normal(mine, (3, 5), dtype), theirs.normal((3, 5), dtype))
        )
        assert np.allclose(drawn, wanted, rtol=3 * float(xarr.finfo(dtype).eps), atol=0)
    for dtype in ("int8", "int64"):
        wanted = theirs.randint((9,), 3, 100, dtype)
        assert_same(random.randint(mine, (9,), 3, 100, dtype), wanted)
    assert_same(random.permutation(mine, 30), theirs.permutation(30))
    counts = theirs.binomial(10.0, 0.3, (5,))
    assert_same(random.binomial(mine, 10.0, 0.3, (5,)), counts)


@pytest.mark.parametrize("impl", ["philox2x32", "rbg", "unsafe_rbg"])
def test_a_key_for_each_element(impl: str) -> None:
    """Of gamma, each number is drawn from a key of its own."""
    mine, theirs = both(impl)
    drawn = np.asarray(random.gamma(mine, np.array([0.5, 2.0, 3.0]), dtype="float32"))
    wanted = theirs.gamma(np.array([0.5, 2.0, 3.0]), dtype="float32")
    assert np.allclose(drawn, wanted, rtol=1e-5, atol=0)


def program(of: Any, key: Any, data: Any) -> Any:
    first, second = of.split(key)
    keys = of.split(of.fold_in(second, data), (2, 2))
    return of.key_data(keys), of.bits(first, (5,), "uint16"), of.uniform(keys[1, 0], (4,))


@recorded
def program_of_jax(impl: str, program_text: str) -> Any:
    return program(jax.random, jax.random.key(7, impl=impl), 3)


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_are_arguments_and_results_of_traced_functions(impl: str) -> None:
    mine = random.key(7, impl=impl)
    jitted = xarr.jit(lambda key, data: (random.split(key), program(random, key, data)))
    keys, results = jitted(mine, 3)
    assert keys.impl == impl and keys.dtype == mine.dtype and keys.shape == (2,)
    wanted = program_of_jax(impl, source_of(program))
    for made in (results, program(random, mine, 3)):
        for one, two in zip(made, wanted, strict=True):
            assert_same(one, two)
    made = xarr.jit(lambda seed: random.key(seed, impl=impl))(11)
    assert_same(random.key_data(made), words(jax.random.key(11, impl=impl)))


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_go_through_loops(impl: str) -> None:
    def step(of: Any) -> Any:
        def body(key: Any, x: Any) -> Any:
            key, own = of.split(key)
            return key, of.uniform(own, (), "float32") + x

        return body

    xs = np.zeros(4, np.float32)
    mine, theirs = both(impl)
    last, drawn = xarr.lax.scan(step(random), mine, xs)
    wanted, numbers = jax.lax.scan(step(jax.random), theirs.key, xs)
    assert last.impl == impl
    assert_same(random.key_data(last), words(wanted))
    assert_same(drawn, np.asarray(numbers))


@pytest.mark.parametrize("impl", IMPLS)
def test_types_and_names(impl: str) -> None:
    mine, theirs = random.key(7, impl=impl), jax.random.key(7, impl=impl)
    assert str(mine.dtype) == str(theirs.dtype) and mine.dtype.itemsize == theirs.dtype.itemsize
    assert random.key_impl(mine) == jax.random.key_impl(theirs) == mine.impl == impl
    assert repr(mine).endswith(f", impl={impl!r})")
    assert random.key_dtype(impl) == random.key_dtype(mine.dtype) == mine.dtype
    for other in (random.key(7, impl=mine.dtype), random.key(7, dtype=mine.dtype), random.key(7, dtype=impl)):
        assert other == mine
    data = random.key_data(mine)
    assert random.wrap_key_data(data, impl=impl) == random.wrap_key_data(data, dtype=mine.dtype) == mine
    assert len({random.key_dtype(each) for each in IMPLS}) == len(IMPLS)


@pytest.mark.parametrize("impl", IMPLS)
def test_words_are_keys_of_the_default(impl: str) -> None:
    mine, theirs = both(impl)
    jitted = xarr.jit(lambda: random.key_data(random.key(7)))
    assert_same(jitted(), words(jax.random.key(7)))
    with xarr.config(default_prng_impl=impl):
        assert random.key(7) == mine and random.key_impl(random.key_data(mine)) == impl
        assert_same(jitted(), theirs.key_data())
        made = random.split(random.PRNGKey(7), 3)
        assert_same(made, theirs.split(3))
        assert_same(
            random.uniform(made[1]), np.asarray(jax.random.uniform(jax.random.split(theirs.key, 3)[1]))
        )


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match=r"wanted one of 'threefry2x32', .* got 'mersenne'"):
        random.key(0, impl="mersenne")
    with pytest.raises(ArgumentError, match=r"wanted one of .* got 3"):
        random.key(0, impl=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="impl or dtype, which mean the same"):
        random.key(0, impl="rbg", dtype="rbg")
    with pytest.raises(InputError, match=r"u32\[2\] of one of threefry2x32, got u32\[4\]; wrap_key_data"):
        random.split(random.PRNGKey(0, impl="rbg"))
    with pytest.raises(InputError, match=r"u32\[4\] of one of rbg, got u32\[2\]"):
        random.wrap_key_data(random.PRNGKey(0), impl="rbg")
    with pytest.raises(ConfigError, match="default_prng_impl: wanted one of 'threefry2x32', "):
        xarr.config.default_prng_impl = "pcg"
