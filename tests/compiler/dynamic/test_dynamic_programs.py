"""Random programs on arrays of dynamic sizes, every element type, and bounds of 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.lax_values import BOOLS, COMPLEXES, FLOATS, INTS, dtype_of
from tests.support.dynamic import late
from xarr import lax

Host = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Step:
    """A function of a dynamic array of rank 2 beside NumPy's."""

    function: Callable[[Any], Any]
    oracle: Callable[[Host], Host]


def _whole(x: Any) -> tuple[int, int]:
    rows, columns = x.shape
    return rows, columns


STEPS = {
    "neg": Step(lambda x: lax.neg(x), lambda x: -x),
    "rev": Step(lambda x: lax.rev(x, (0, 1)), lambda x: x[::-1, ::-1]),
    "transpose": Step(lambda x: lax.transpose(x, (1, 0)), lambda x: x.T),
    "sort": Step(lambda x: lax.sort(x, dimension=0), lambda x: np.sort(x, 0)),
    "sort_last": Step(lambda x: lax.sort(x, dimension=1), lambda x: np.sort(x, 1)),
    "join": Step(lambda x: lax.concatenate([x, lax.neg(x)], 0), lambda x: np.concatenate([x, -x])),
    "join_last": Step(lambda x: lax.concatenate([x, x], 1), lambda x: np.concatenate([x, x], 1)),
    "pad": Step(
        lambda x: lax.pad(x, np.int32(3), ((1, 2, 0), (0, 1, 0))),
        lambda x: np.pad(x, ((1, 2), (0, 1)), constant_values=3),
    ),
    "cut": Step(
        lambda x: lax.slice(x, (0, 0), _whole(x), (2, 1)),
        lambda x: x[::2],
    ),
    "flat": Step(
        lambda x: lax.reshape(x, (x.shape[0] * x.shape[1], 1)),
        lambda x: x.reshape(x.size, 1),
    ),
    "total": Step(
        lambda x: lax.add(x, lax.broadcast_in_dim(lax.reduce_sum(x, (0,)), x.shape, (1,))),
        lambda x: x + x.sum(0, dtype=x.dtype),
    ),
    "product": Step(
        lambda x: lax.rem(lax.dot(lax.transpose(x, (1, 0)), x), np.int32(7)),
        lambda x: np.fmod(x.T @ x, 7),
    ),
    "greatest": Step(
        lambda x: lax.sub(lax.broadcast_in_dim(lax.reduce_max(x, (1,)), x.shape, (0,)), x),
        lambda x: x.max(1, initial=np.iinfo(np.int32).min)[:, None] - x,
    ),
    "both": Step(lambda x: lax.add(x, lax.rev(x, (0,))), lambda x: x + x[::-1]),
    "choice": Step(
        lambda x: lax.select(lax.gt(x, lax.rev(x, (1,))), x, lax.neg(x)),
        lambda x: np.where(x > x[:, ::-1], x, -x),
    ),
    "sized": Step(
        lambda x: lax.add(x, lax.get_dimension_size(x, 0)),
        lambda x: x + np.int32(len(x)),
    ),
    "branch": Step(
        lambda x: lax.cond(lax.gt(lax.get_dimension_size(x, 0), 2), lambda v: lax.rev(v, (0,)), lax.neg, x),
        lambda x: x[::-1] if len(x) > 2 else -x,
    ),
}
_LARGEST = 400


def _fits(name: str, shape: tuple[int, ...]) -> bool:
    """Whether a step keeps the program small and its sizes clear."""
    one_bound = 1 in shape  # a bound of 1 leaves open where it goes
    becomes_static = name == "cut" and shape[0] <= 2
    return np.prod(shape) <= _LARGEST and not (name == "flat" and one_bound) and not becomes_static


@pytest.mark.parametrize("seed", range(150))
def test_random_programs_as_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    backend = "reference" if seed % 10 == 0 else "numpy"
    bounds, values = (4, 3), rng.integers(-5, 6, (4, 3)).astype(np.int32)
    sizes = tuple(int(rng.integers(bound + 1)) for bound in bounds)
    with xarr.use_backend(backend), np.errstate(over="ignore"):
        x = xarr.asarray(values)
        for dim, size in enumerate(sizes):
            x = lax.set_dimension_size(x, late(size), dim)
        live = values[: sizes[0], : sizes[1]]
        history = []
        for name in rng.choice(list(STEPS), 6):
            if not _fits(name, x.shape):
                continue
            x, live = STEPS[name].function(x), STEPS[name].oracle(live)
            history.append(str(name))
            if rng.integers(4) == 0:
                x.evaluate()
        try:
            assert_same(np.asarray(x), live.astype(np.int32))
        except AssertionError as error:
            raise AssertionError(f"{backend}, live sizes {sizes}: {' '.join(history)}: {error}") from error


# --- element types ------------------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: lax.reduce_sum(x, (0,)),
    "prod": lambda x: lax.reduce_prod(x, (0,)),
    "max": lambda x: lax.reduce_max(x, (0,)),
    "min": lambda x: lax.reduce_min(x, (0,)),
    "or": lambda x: lax.reduce_or(x, (0,)),
    "sort": lambda x: lax.sort(x, dimension=0),
    "rev": lambda x: lax.rev(x, (0,)),
    "dot": lambda x: lax.dot(x, x),
    "concatenate": lambda x: lax.concatenate([x, x], 0),
    "slice": lambda x: lax.slice(x, (1,), (4,)),
}


_UNSUPPORTED = {
    *(("sum", name) for name in BOOLS),
    *(("prod", name) for name in BOOLS),
    *(("or", name) for name in FLOATS + COMPLEXES),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in _FUNCTIONS
        for dtype in BOOLS + INTS + FLOATS + COMPLEXES
        if (name, dtype) not in _UNSUPPORTED
    ],
)
def test_every_element_type_as_the_static_operation(name: str, dtype: str) -> None:
    element, function = dtype_of(dtype), _FUNCTIONS[name]
    values = np.array([3, 1, 2, 1, 2]).astype(element)
    for size in range(6):
        result = function(lax.set_dimension_size(xarr.asarray(values), late(size), 0))
        live = values[:size]
        # Cutting beyond the end is no slice of the static operation.
        wanted = live[1:4] if name == "slice" else np.asarray(function(live))
        if not size and name in ("max", "min") and dtype in COMPLEXES:
            # JAX's static answer has no imaginary part and is not neutral, as a late size of 0 needs it to be.
            wanted = np.asarray(complex(wanted.real, wanted.real), element)
        assert_same(np.asarray(result), wanted)


def test_nothing_behind_the_live_part_is_seen() -> None:
    """Infinities and NaN there, which no multiplication by 0 removes."""
    values = np.array([1, 2, np.inf, np.nan, -np.inf], np.float32)
    for backend in ("numpy", "reference"):
        with xarr.use_backend(backend):
            x = lax.set_dimension_size(xarr.asarray(values), late(2), 0)
            for name, wanted in (("sum", 3.0), ("prod", 2.0), ("max", 2.0), ("min", 1.0), ("dot", 5.0)):
                assert_same(_FUNCTIONS[name](x), np.array(wanted, np.float32))
            assert_same(lax.dot(x, np.full(5, np.inf, np.float32)), np.array(np.inf, np.float32))


def test_signs_of_zero_survive_sums() -> None:
    x = lax.set_dimension_size(np.array([-0.0, 5.0], np.float32), late(1), 0)
    result = lax.reduce(x, np.float32(-0.0), lax.add, (0,))
    assert_same(result, np.array(-0.0, np.float32))


@pytest.mark.parametrize("name", ["sum", "max", "sort", "rev", "dot", "concatenate"])
@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_a_bound_of_zero(name: str, backend: str) -> None:
    with xarr.use_backend(backend):
        x = lax.set_dimension_size(xarr.asarray(np.zeros(0, np.float32)), late(0), 0)
        assert x._node.type.short() == "f32[<=0]"
        assert_same(np.asarray(_FUNCTIONS[name](x)), np.asarray(_FUNCTIONS[name](np.zeros(0, np.float32))))
        assert_same(np.asarray(lax.pad(x, np.float32(1), [(1, 2, 3)])), np.ones(3, np.float32))
        assert_same(np.asarray(lax.add(x, x)), np.zeros(0, np.float32))
