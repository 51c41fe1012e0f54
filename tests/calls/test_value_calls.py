"""NumPy's own functions for small arrays whose results hang on values: the bits of what is recorded otherwise."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import xarr
from tests.calls import test_host_functions
from tests.calls.test_host_functions import Arguments, array, compute_recorded, hosts, pick
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.marks import COMPUTED_AT_ONCE
from xarr.calls.concrete_values import small_value
from xarr.calls.host_functions import HostFunction
from xarr.calls.value_calls import VALUE_ROWS
from xarr.errors import FlatIndexError, ValueRangeError, XarrError

pytestmark = [
    pytest.mark.usefixtures("on_numpy"),
    pytest.mark.implicit,
    COMPUTED_AT_ONCE,
]

Generator = np.random.Generator
#: Codes of element types; narrow integers are equal often.
CHARS: Final = "bbBlldf?hL"


def draw_one(rng: Generator) -> Arguments:
    return (array(rng, CHARS),), {}


def draw_distinct(rng: Generator) -> Arguments:
    names = ("return_index", "return_inverse", "return_counts")
    return (array(rng, CHARS),), {name: True for name in names if rng.random() < 0.4}


def draw_two(rng: Generator) -> Arguments:
    first = array(rng, CHARS, usual=True)
    return (first, array(rng, first.dtype.char if rng.random() < 0.8 else CHARS, usual=True)), {}


def draw_divisors(rng: Generator) -> Arguments:
    x = array(rng, "bBhHiIlL?", usual=bool(rng.random() < 0.5))
    other = pick(
        rng, [array(rng, x.dtype.char, x.shape), array(rng, x.dtype.char), 6, -4, 0, 2**31, True, 1.5]
    )
    return (x, other), {}


def draw_selection(rng: Generator) -> Arguments:
    shape = pick(rng, [(3,), (0,), (17,)])
    return (array(rng, "???l", shape), array(rng, shape=pick(rng, [shape, (*shape, 2), (3, 17)]))), {}


def draw_slices(rng: Generator) -> Arguments:
    args, _ = draw_selection(rng)
    axis = [pick(rng, [None, 0, 1, -1])] if rng.random() < 0.6 else []
    return (*args, *axis), {"out": None} if rng.random() < 0.5 else {}


def draw_bins(rng: Generator) -> Arguments:
    edges = xarr.sort(array(rng, "dlf", pick(rng, [(5,), (0,), (1,), (17,)]))).evaluate()
    edges = edges if rng.random() < 0.6 else edges[::-1].evaluate()
    return (array(rng, "dlfb"), edges), {"right": True} if rng.random() < 0.4 else {}


def draw_flat(rng: Generator) -> Arguments:
    shape: Any = pick(rng, [(3, 4), (2, 3, 4), 12, (0, 3), (5,), ()])
    order = {"order": pick(rng, ["C", "F"])} if rng.random() < 0.5 else {}
    indices = xarr.asarray(rng.integers(-1, 13, pick(rng, [(3,), (2, 2), (0,)])).astype(pick(rng, "lib")))
    return (indices.evaluate(), shape), order


def draw_joined(rng: Generator) -> Arguments:
    shape = pick(rng, [(3,), (2, 2), (0,)])
    parts = [xarr.asarray(rng.integers(-1, 4, shape)).evaluate() for _ in range(2)]
    options = {"mode": pick(rng, ["raise", "wrap", "clip"])} if rng.random() < 0.6 else {}
    return (tuple(parts), pick(rng, [(3, 3), (4, 5), 3])), options


def draw_curve(rng: Generator) -> Arguments:
    size = pick(rng, [1, 2, 5, 17])
    xp = xarr.sort(array(rng, "d", (size,), usual=bool(rng.random() < 0.8))).evaluate()
    return (array(rng, "d"), xp, array(rng, "d", (size,))), {}


def draw_histogram(rng: Generator) -> Arguments:
    x = array(rng, "dl", usual=bool(rng.random() < 0.8))
    edges = array(rng, "dl", pick(rng, [(2,), (5,), (1,), (0,), (2, 2)]))
    edges = xarr.sort(edges).evaluate() if rng.random() < 0.7 else edges
    return (x, *([pick(rng, [1, 4, 10, 0, -1, edges, edges])] if rng.random() < 0.7 else [])), {}


def draw_keys(rng: Generator) -> Arguments:
    shape = pick(rng, [(3,), (2, 3), (17,), (0,)])
    keys = [array(rng, CHARS, shape) for _ in range(rng.integers(1, 4))]
    return (tuple(keys),), {"axis": pick(rng, [0, -1, 1])} if rng.random() < 0.4 else {}


def draw_along(rng: Generator) -> Arguments:
    shape = pick(rng, [(3,), (2, 3), (4, 4), (2, 0, 3)])
    indices = xarr.asarray(rng.integers(-4, 4, shape).astype(pick(rng, "lib"))).evaluate()
    return (array(rng, shape=shape), indices), {"axis": pick(rng, [0, -1, 1])} if rng.random() < 0.7 else {}


def draw_operands(rng: Generator) -> Arguments:
    x = array(rng, "dfdflbB?")
    return (x, pick(rng, [array(rng, x.dtype.char, x.shape), array(rng, "dl"), 2, 0, -1.5, 0.0, -0.0])), {}


def draw_float(rng: Generator) -> Arguments:
    return (array(rng, "dfl", pick(rng, [(3,), (2, 3), (), (0,)])),), {}


def draw_scaled(rng: Generator) -> Arguments:
    shape = pick(rng, [(3,), (2, 3)])
    return (array(rng, "d", shape), xarr.asarray(rng.integers(-2000, 2000, shape)).evaluate()), {}


def draw_bits(rng: Generator) -> Arguments:
    options: dict[str, Any] = {"axis": pick(rng, [None, 0, -1, 1])} if rng.random() < 0.6 else {}
    return (array(rng, "?BB"),), options | ({"bitorder": "little"} if rng.random() < 0.4 else {})


def draw_packed(rng: Generator) -> Arguments:
    args, options = draw_bits(rng)
    count = {"count": pick(rng, [None, 0, 3, 20, 40, -3])} if rng.random() < 0.5 else {}
    return args, options | count


def draw_sequences(rng: Generator) -> Arguments:
    sizes = [(1,), (3,), (5,), (17,), (0,)]
    pair = (array(rng, "lbiB", pick(rng, sizes)), array(rng, "lbiB", pick(rng, sizes)))
    return pair, {"mode": pick(rng, ["full", "same", "valid"])} if rng.random() < 0.6 else {}


DRAWS: Final[dict[str, Callable[[Generator], Arguments]]] = {
    **dict.fromkeys(("gcd", "lcm"), draw_divisors),
    "unique": draw_distinct,
    **dict.fromkeys(("unique_values", "argwhere"), draw_one),
    **dict.fromkeys(("union1d", "setdiff1d", "setxor1d", "intersect1d", "isin"), draw_two),
    "extract": draw_selection,
    "compress": draw_slices,
    "digitize": draw_bins,
    "unravel_index": draw_flat,
    "ravel_multi_index": draw_joined,
    "interp": draw_curve,
    "histogram": draw_histogram,
    **dict.fromkeys(("convolve", "correlate"), draw_sequences),
    **dict.fromkeys(("unique_all", "unique_counts", "unique_inverse"), draw_one),
    "lexsort": draw_keys,
    "take_along_axis": draw_along,
    **dict.fromkeys(("divmod", "fmod", "heaviside", "copysign"), draw_operands),
    **dict.fromkeys(("frexp", "modf"), draw_float),
    "ldexp": draw_scaled,
    "packbits": draw_bits,
    "unpackbits": draw_packed,
}


def test_every_row_has_arguments() -> None:
    assert DRAWS.keys() == VALUE_ROWS.keys() - test_host_functions.DRAWS.keys()


@pytest.mark.parametrize("seed", fuzz.seeds(1, 100))
@pytest.mark.parametrize("name", DRAWS)
def test_numpys_functions_give_the_bits_of_recorded_ones(name: str, seed: int, python_methods: None) -> None:
    rng = np.random.default_rng(seed)
    host = HostFunction(VALUE_ROWS[name], None)
    computed = 0
    for _ in range(24):
        args, kwargs = DRAWS[name](rng)
        for each in (*args, *(args[0] if isinstance(args[0], tuple) else ())):
            if isinstance(each, xarr.Array):
                small_value(each)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = host.run(args, kwargs)
        if got is None:
            continue
        computed += 1
        wanted = compute_recorded(getattr(xarr, name), args, kwargs)
        for own, other in zip(hosts(got), wanted, strict=True):
            assert own.dtype == other.dtype and own.shape == other.shape, (args, kwargs)
            assert_same(own, other)
    assert computed, "nothing was compared"


def test_bits_beyond_no_elements_and_many_are_left_to_the_function(python_methods: None) -> None:
    empty, few = (xarr.asarray(np.full(size, 255, np.uint8)).evaluate() for size in (0, 2))
    host = HostFunction(VALUE_ROWS["unpackbits"], None)
    for each, count in ((empty, 3), (few, 2**40)):
        small_value(each)
        assert host.run((each,), {"count": count}) is None
    for _ in range(5):
        np.full(3, 255, np.uint8)  # which leaves memory that is not zero
        assert_same(xarr.unpackbits(empty, count=3), np.zeros(3, np.uint8))


def test_what_has_no_order_is_left_to_the_function(python_methods: None) -> None:
    x = xarr.asarray([1.0, np.nan, np.nan]).evaluate() * 1
    zeros = xarr.asarray([0.0, -0.0]).evaluate() * 1
    for each in (x, zeros):
        assert HostFunction(VALUE_ROWS["unique"], None).run((each,), {}) is None
    assert xarr.unique(x).shape == (2,)


def test_integers_that_are_no_floats_are_left_to_the_function(python_methods: None) -> None:
    wide, unsigned = (xarr.asarray(np.array([2**53 + 1, 2**53], each)).evaluate() * 1 for each in "lL")
    for name, args in (
        ("digitize", (wide, wide)),
        ("convolve", (wide, unsigned)),
        ("correlate", (unsigned, wide)),
    ):
        assert HostFunction(VALUE_ROWS[name], None).run(args, {}) is None
    assert xarr.digitize(wide, wide).tolist() == [0, 1]


def test_no_indices_leave_wrong_shapes_to_the_function(python_methods: None) -> None:
    empty = xarr.asarray(np.zeros((0, 2), np.int64)).evaluate() * 1
    for call in (
        lambda: xarr.unravel_index(empty, (3, -1)),
        lambda: xarr.ravel_multi_index([empty, empty], (3, -1)),
    ):
        with pytest.raises(XarrError, match="shape must be a sequence of integers >= 0, got -1"):
            call()


def test_errors_are_those_of_the_functions(python_methods: None) -> None:
    x = xarr.asarray([1, 2, 99]).evaluate() * 1
    with pytest.raises(FlatIndexError, match=r"^unravel_index: "):
        xarr.evaluate(xarr.unravel_index(x, (3, 4)))
    with pytest.raises(ValueRangeError, match=r"^digitize: wanted bins in increasing"):
        xarr.digitize(x, xarr.asarray([1, 3, 2]).evaluate() * 1)
    with pytest.raises(XarrError, match=r"^gcd: wanted integers"):
        xarr.gcd(x, 1.5)


def test_no_result_is_computed_that_is_large(python_methods: None) -> None:
    x = xarr.asarray([1.0, 2.0]).evaluate() * 1
    small_value(x)
    tracemalloc.start()
    try:
        assert HostFunction(VALUE_ROWS["histogram"], None).run((x, 10**8), {}) is None
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_results_with_names_have_them(python_methods: None) -> None:
    x = xarr.asarray([3, 1, 3]).evaluate() * 1
    for _ in range(5):
        unique = xarr.unique_counts(x)
        assert type(unique).__name__ == "UniqueCounts" and unique.counts.tolist() == [1, 2]
        assert xarr.unique_all(x)._fields == ("values", "indices", "inverse_indices", "counts")


def test_edges_of_bins_are_an_array_of_their_own(python_methods: None) -> None:
    x, edges = (xarr.asarray(each).evaluate() * 1 for each in ([0.5, 1.5], [0.0, 1.0, 2.0]))
    _, own = xarr.histogram(x, edges)
    own[0] = 9.0
    assert edges.tolist() == [0.0, 1.0, 2.0] and own.tolist() == [9.0, 1.0, 2.0]
