"""numpy.random's names in xarr.random: NumPy's numbers as Arrays, and what a key as first argument changes."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import random
from xarr.errors import DTypeError, InputError, ShapeError, TracedValueError
from xarr.random import numpy_calls, shared_names

#: Arguments of numpy.random's functions and of the methods of its generators, as source.
CALLS = {
    "beta": ["2.0, 3.0, (2, 3)", "[1.0, 2.0], 3.0", "1.0, 2.0"],
    "binomial": ["10, 0.3, 5", "10, [0.1, 0.9]", "10, 0.5"],
    "bytes": ["5"],
    "chisquare": ["3.0, 4", "2.5"],
    "choice": [
        "5, 3",
        "[0.5, 1.5, 2.5], (2, 2)",
        "5, 3, False",
        "5, p=[0.1, 0.2, 0.3, 0.4, 0.0]",
        "3",
        "4, 0",
    ],
    "dirichlet": ["[1.0, 2.0, 3.0], 2", "[1.0, 2.0]"],
    "exponential": ["2.0, 3", "", "[1.0, 2.0]"],
    "f": ["3.0, 4.0, 2", "3, 4"],
    "gamma": ["2.0, 3.0, 4", "2.0"],
    "geometric": ["0.3, 4", "0.5"],
    "gumbel": ["1.0, 2.0, 3", ""],
    "hypergeometric": ["5, 6, 7, 3", "5, 6, 7"],
    "laplace": ["1.0, 2.0, 3", ""],
    "logistic": ["1.0, 2.0, 3", ""],
    "lognormal": ["1.0, 0.5, 3", ""],
    "logseries": ["0.6, 3", "0.6"],
    "multinomial": ["20, [0.2, 0.3, 0.5], 2", "20, [0.2, 0.8]"],
    "multivariate_normal": [
        "[1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]], (2, 3)",
        "[0.0, 1.0], [[1.0, 0.0], [0.0, 1.0]]",
    ],
    "negative_binomial": ["5, 0.4, 3", "5, 0.4"],
    "noncentral_chisquare": ["3.0, 2.0, 3", "3.0, 2.0"],
    "noncentral_f": ["3.0, 4.0, 2.0, 3", "3.0, 4.0, 2.0"],
    "normal": ["1.0, 2.0, (2, 2)", "", "size=()", "[1.0, 2.0], 3.0", "0, 1, (0, 3)"],
    "pareto": ["3.0, 2", "3.0"],
    "permutation": ["6", "[1, 5, 3]", "[[1, 2], [3, 4], [5, 6]]"],
    "poisson": ["3.0, 4", "2.5"],
    "power": ["2.0, 3", "2.0"],
    "random": ["3", "", "(2, 0)", "()"],
    "rayleigh": ["2.0, 3", ""],
    "standard_cauchy": ["3", ""],
    "standard_exponential": ["3", ""],
    "standard_gamma": ["2.0, 3", "2.0"],
    "standard_normal": ["3", ""],
    "standard_t": ["3.0, 4", "3.0"],
    "triangular": ["0.0, 1.0, 3.0, 4", "0.0, 1.0, 3.0"],
    "uniform": ["-1.0, 1.0, (2, 3)", "", "[0.0, 5.0], 10.0"],
    "vonmises": ["0.0, 2.0, 3", "0.0, 2.0"],
    "wald": ["1.0, 2.0, 3", "1.0, 2.0"],
    "weibull": ["2.0, 3", "2.0"],
    "zipf": ["2.5, 3", "2.5"],
}
LEGACY = {
    "rand": ["2, 3", ""],
    "randint": ["0, 10, 5", "10", "0, [3, 300]", "0, 2, 4, bool", "0, 200, (2, 2), 'uint8'"],
    "randn": ["2, 3", ""],
    "random_sample": ["3", ""],
}
ALIASES = {"ranf": ["3", ""], "sample": ["3", ""]}
NEW = {
    "integers": ["0, 10, 5", "10", "0, 10, 3, 'int16', True", "0, [3, 300]"],
    "multivariate_hypergeometric": ["[3, 4, 5], 6, 2", "[3, 4, 5], 6"],
    "permuted": ["[1, 5, 3]", "[[1, 2, 3], [4, 5, 6]], axis=1"],
}
#: With Arrays as arguments; a and b stand for `[1.0, 2.0]` and `[3.0, 4.0]`.
WITH_ARRAYS = {
    "beta": "a, b, (3, 2)",
    "choice": "a, 4",
    "dirichlet": "a",
    "multinomial": "9, a / 3",
    "multivariate_normal": "a, [[2.0, 0.0], b - 3]",
    "normal": "a, b",
    "permutation": "b",
    "uniform": "a[0], b[1], (2,)",
}


def assert_numpys(mine: Any, wanted: Any) -> None:
    """An Array where NumPy gives an array or a scalar of its own, else the same object."""
    if isinstance(wanted, np.ndarray | np.generic):
        assert isinstance(mine, xarr.Array)
        assert_same(mine, wanted)
    else:
        assert type(mine) is type(wanted) and mine == wanted


def cases(*tables: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, arguments) for table in tables for name, calls in table.items() for arguments in calls]


@pytest.fixture
def numpy_state() -> Any:
    state = np.random.get_state()
    yield
    np.random.set_state(state)


def call_method(target: Any, name: str, arguments: str, **values: Any) -> Any:
    return eval(f"target.{name}({arguments})", {"target": target, **values})


@pytest.mark.usefixtures("numpy_state")
@pytest.mark.parametrize(("name", "arguments"), cases(CALLS, LEGACY, ALIASES))
def test_functions_give_numpys_numbers(name: str, arguments: str) -> None:
    np.random.seed(12)
    wanted = [call_method(np.random, name, arguments) for _ in range(2)]
    random.seed(12)
    for each in wanted:
        assert_numpys(call_method(random, name, arguments), each)


@pytest.mark.parametrize(("name", "arguments"), cases(CALLS, LEGACY, {"tomaxint": ["3", ""]}))
def test_a_state_gives_numpys_numbers(name: str, arguments: str) -> None:
    mine, theirs = random.RandomState(5), np.random.RandomState(5)
    for _ in range(2):
        assert_numpys(call_method(mine, name, arguments), call_method(theirs, name, arguments))


@pytest.mark.parametrize(("name", "arguments"), cases(CALLS, NEW))
def test_a_generator_gives_numpys_numbers(name: str, arguments: str) -> None:
    mine, theirs = random.default_rng(5), np.random.default_rng(5)
    for _ in range(2):
        assert_numpys(call_method(mine, name, arguments), call_method(theirs, name, arguments))


@pytest.mark.parametrize(("name", "arguments"), WITH_ARRAYS.items())
def test_parameters_may_be_arrays(name: str, arguments: str) -> None:
    a, b = [1.0, 2.0], [3.0, 4.0]
    wanted = call_method(np.random.default_rng(1), name, arguments, a=np.array(a), b=np.array(b))
    assert_same(
        call_method(random.default_rng(1), name, arguments, a=xarr.asarray(a), b=xarr.asarray(b)), wanted
    )


@pytest.mark.usefixtures("numpy_state")
def test_random_integers_gives_numpys_numbers_and_warning() -> None:
    np.random.seed(1)
    with pytest.warns(DeprecationWarning, match="call randint"):
        wanted = np.random.random_integers(1, 6, 5)
    random.seed(1)
    with pytest.warns(DeprecationWarning, match="call randint"):
        assert_same(random.random_integers(1, 6, 5), wanted)


def test_every_name_of_numpy_random_is_there() -> None:
    assert [name for name in np.random.__all__ if not hasattr(random, name)] == []
    known = {
        *CALLS,
        *LEGACY,
        *ALIASES,
        "random_integers",
        "shuffle",
        "seed",
        "get_state",
        "set_state",
        "default_rng",
    }
    functions = {name for name in np.random.__all__ if not isinstance(getattr(np.random, name), type)}
    assert functions == known


@pytest.mark.parametrize("kind", ["Generator", "RandomState"])
def test_every_method_is_one_of_arrays(kind: str) -> None:
    """A method of NumPy's that nobody has written down here would give NumPy's arrays."""
    public = {name for name in dir(getattr(np.random, kind)) if not name.startswith("_")}
    assert public - vars(getattr(random, kind)).keys() == (
        {"bit_generator"} if kind == "Generator" else set()
    )


# --- the state ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("numpy_state")
def test_the_state_is_numpys_own() -> None:
    random.seed(3)
    first = [random.rand(), np.random.rand(), random.rand()]
    np.random.seed(3)
    assert first == np.random.rand(3).tolist()
    state = random.get_state()
    again = random.normal(size=3)
    random.set_state(state)
    assert_same(random.normal(size=3), np.asarray(again))


def test_generators_are_numpys_to_other_libraries() -> None:
    rng, state = random.default_rng(0), random.RandomState(0)
    assert isinstance(rng, np.random.Generator) and isinstance(state, np.random.RandomState)
    assert isinstance(rng.bit_generator, random.PCG64) and random.PCG64 is np.random.PCG64
    assert random.default_rng(rng) is rng
    # One stream for all callers.
    ours = random.default_rng(np.random.default_rng(0))
    wanted = np.random.default_rng(0).random(2)
    assert ours.random() == wanted[0] and np.random.Generator(ours.bit_generator).random() == wanted[1]


@pytest.mark.parametrize(
    "seed", ["0", "[1, 2]", "xp.asarray([1, 2])", "xp.asarray([7])[0]", "xp.random.SeedSequence(3)"]
)
def test_seeds(seed: str) -> None:
    mine, theirs = (eval(seed, {"xp": xp}) for xp in (xarr, np))
    assert_same(random.default_rng(mine).random(3), np.random.default_rng(theirs).random(3))
    if "Sequence" not in seed:
        assert_same(random.RandomState(mine).random_sample(3), np.random.RandomState(theirs).random_sample(3))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda rng: pickle.loads(pickle.dumps(rng))])
def test_copies_go_on_with_the_same_numbers(duplicate: Any) -> None:
    state = random.RandomState(3)
    state.standard_normal()  # one more is kept for the next call
    again = duplicate(state)
    assert type(again) is random.RandomState
    assert_same(again.standard_normal(3), np.random.RandomState(3).standard_normal(4)[1:])
    rng = random.default_rng(3)
    assert type(duplicate(rng)) is random.Generator
    assert_same(duplicate(rng).random(3), np.random.default_rng(3).random(3))


def test_a_state_is_read_and_set() -> None:
    state = random.RandomState(3)
    state.standard_normal()
    kept = state.get_state()
    wanted = np.asarray(state.standard_normal(3))
    other = random.RandomState(9)
    other.set_state(kept)
    assert_same(other.standard_normal(3), wanted)
    other.set_state(np.random.RandomState(4).get_state(legacy=False))
    assert_same(other.random_sample(2), np.random.RandomState(4).random_sample(2))
    other.seed(3)
    assert_same(other.random_sample(2), np.random.RandomState(3).random_sample(2))


def test_children_draw_numpys_numbers() -> None:
    mine, theirs = random.default_rng(3).spawn(2), np.random.default_rng(3).spawn(2)
    for one, other in zip(mine, theirs, strict=True):
        assert_same(one.random(3), other.random(3))


def test_threads_draw_each_number_once() -> None:
    rng = random.default_rng(3)
    with ThreadPoolExecutor(4) as pool:
        drawn = np.concatenate([np.asarray(each) for each in pool.map(lambda _: rng.random(5), range(200))])
    assert_same(np.sort(drawn), np.sort(np.random.default_rng(3).random(1000)))


def test_arrays_live_on_the_default_backend_or_with_the_parameters() -> None:
    with xarr.use_backend("reference"):
        drawn = random.default_rng(0).random(3)
        assert drawn.backend == "reference"
    assert random.default_rng(0).normal(drawn).backend == "reference"
    assert_same(drawn, np.random.default_rng(0).random(3))
    random.default_rng(0).shuffle(drawn)
    assert drawn.backend == "reference"


def test_what_is_no_array_of_numbers_stays_numpys() -> None:
    words = random.default_rng(0).choice(["heads", "tails"], 4)
    assert type(words) is np.ndarray
    assert_same(words == "heads", np.random.default_rng(0).choice(["heads", "tails"], 4) == "heads")


def test_a_choice_does_not_follow_what_it_was_chosen_from() -> None:
    rows = np.arange(6.0).reshape(3, 2)
    row = random.default_rng(0).choice(rows)
    before = np.array(row)
    rows[:] = 9
    assert_same(row, before)


# --- writing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "int8", "bool", "complex64", "bfloat16"])
@pytest.mark.parametrize("shape", [(6,), (4, 3), (0,), (3, 0)])
def test_shuffle_shows_a_new_order_in_this_handle_alone(dtype: str, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape)).reshape(shape).astype(xarr.empty(0, dtype=dtype).dtype)
    for mine, theirs in (
        (random.default_rng(2), np.random.default_rng(2)),
        (random.RandomState(2), np.random.RandomState(2)),
    ):
        x, shuffled = xarr.asarray(values), values.copy()
        other = x + 0
        assert mine.shuffle(x) is None
        theirs.shuffle(shuffled)
        assert_same(x, shuffled)
        assert_same(other, values if dtype != "bool" else values + 0)


@pytest.mark.usefixtures("numpy_state")
def test_shuffle_of_numpys_arrays_and_lists_is_in_place() -> None:
    random.seed(0)
    array, numbers = np.arange(5), list(range(5))
    random.shuffle(array)
    random.shuffle(numbers)
    random.seed(0)
    x = xarr.arange(5)
    random.shuffle(x)
    assert_same(x, array)
    wanted = list(range(5))
    np.random.seed(0)
    np.random.shuffle(np.arange(5))
    np.random.shuffle(wanted)
    assert numbers == wanted


def test_shuffle_along_an_axis() -> None:
    x, wanted = xarr.arange(12).reshape(3, 4), np.arange(12).reshape(3, 4)
    random.default_rng(1).shuffle(x, axis=1)
    np.random.default_rng(1).shuffle(wanted, axis=1)
    assert_same(x, wanted)


@pytest.mark.parametrize(
    "call",
    [
        "rng.random(out=out)",
        "rng.random(None, 'float64', out)",
        "rng.random(3, out=out)",
        "rng.standard_normal(out=out)",
        "rng.standard_exponential(method='inv', out=out)",
        "rng.standard_gamma([1.0, 2.0, 3.0], out=out)",
        "rng.permuted([4.0, 5.0, 6.0], out=out)",
        "rng.permuted(out, out=out)",
    ],
)
def test_out_shows_the_result_in_that_handle(call: str) -> None:
    wanted, out = np.ones(3), xarr.ones(3)
    other = out
    eval(call, {"rng": np.random.default_rng(4), "out": wanted})
    assert eval(call, {"rng": random.default_rng(4), "out": out}) is out
    assert_same(out, wanted)
    assert other is out


def test_out_of_another_shape_or_type_is_refused_and_stays() -> None:
    out = xarr.zeros(3)
    with pytest.raises(ValueError, match="size"):
        random.default_rng(0).random(4, out=out)
    with pytest.raises(TypeError, match="out"):
        random.default_rng(0).random(3, "float32", out=out)
    assert_same(out, np.zeros(3))


# --- keys --------------------------------------------------------------------------------------------

BOTH = sorted(
    name for name, each in vars(shared_names).items() if hasattr(each, "__wrapped__") and name != "two_ways"
)


def test_every_name_that_jax_shares_goes_both_ways() -> None:
    jax = pytest.importorskip("jax")
    assert [name for name in np.random.__all__ if hasattr(jax.random, name)] == BOTH


@pytest.mark.parametrize("name", BOTH)
def test_a_key_first_means_jaxs_function(name: str) -> None:
    key, keyed = random.key(3), getattr(random, name).__wrapped__
    arguments = {
        **dict.fromkeys(
            ("exponential", "gumbel", "laplace", "logistic", "lognormal", "normal", "uniform"), ((3,),)
        ),
        **dict.fromkeys(("chisquare", "gamma", "pareto", "poisson", "wald"), (2.0, (3,))),
        **dict.fromkeys(("beta", "f"), (2.0, 3.0, (3,))),
        **dict.fromkeys(("geometric",), (0.3, (3,))),
        **dict.fromkeys(("permutation",), (5,)),
        "binomial": (5, 0.5, (3,)),
        "choice": (5, (3,)),
        "dirichlet": (np.array([1.0, 2.0]), (3,)),
        "multinomial": (5, np.array([0.5, 0.5])),
        "multivariate_normal": (np.zeros(2), np.eye(2), (3,)),
        "randint": ((3,), 0, 10),
        "rayleigh": (2.0, (3,)),
        "triangular": (0.0, 1.0, 2.0, (3,)),
    }[name]
    wanted = np.asarray(keyed(key, *arguments))
    words = random.key_data(key)
    for first in (key, words, np.asarray(words)):
        assert_same(getattr(random, name)(first, *arguments), wanted)
    named = dict(zip(list(parameters(keyed))[1:], arguments, strict=False))
    assert_same(getattr(random, name)(key=key, **named), wanted)


def parameters(function: Any) -> Any:
    return inspect.signature(function).parameters


@pytest.mark.usefixtures("numpy_state")
def test_words_alone_are_values_where_a_key_would_want_more() -> None:
    pairs = np.array([[1, 2], [3, 4], [5, 6]], np.uint32)
    for values in (pairs, pairs[0]):
        np.random.seed(2)
        wanted = np.random.permutation(values)
        random.seed(2)
        assert_same(random.permutation(xarr.asarray(values)), wanted)


def test_a_key_survives_jit_and_loops() -> None:
    key = random.key(1)
    wanted = np.asarray(random.uniform(key, (3,)))
    assert_same(xarr.jit(lambda k: random.uniform(k, (3,)))(key), wanted)
    assert_same(xarr.jit(lambda k: random.uniform(k, (3,)))(random.key_data(key)), wanted)
    assert_same(xarr.lax.fori_loop(0, 2, lambda i, _: random.uniform(key, (3,)), xarr.zeros(3)), wanted)


@pytest.mark.parametrize(
    ("error", "call", "mine", "other"),
    [
        (
            DTypeError,
            "uniform(key, 0, 10)",
            "with a key .* random.uniform",
            "without one .* numpy.random.uniform",
        ),
        (InputError, "normal(key, 0.5)", "with a key .* random.normal", "without one .* numpy.random.normal"),
        (TypeError, "randint(key)", "with a key .* random.randint", "without one .* numpy.random.randint"),
        (
            InputError,
            "normal(keys, (3,))",
            "with a key .* random.normal",
            "without one .* numpy.random.normal",
        ),
        (ValueError, "randint(5, 2)", "without a key .* numpy.random.randint", "with one .* random.randint"),
        (
            TypeError,
            "normal(shape=(3,))",
            "without a key .* numpy.random.normal",
            "with one .* random.normal",
        ),
        (
            InputError,
            "uniform(0, 1, key)",
            "without a key .* numpy.random.uniform",
            "with one .* random.uniform",
        ),
        (ShapeError, "uniform(key, (2,), minval=p)", "with a key .* random.uniform", "without one .* numpy"),
    ],
)
def test_errors_say_which_function_it_was(error: type[Exception], call: str, mine: str, other: str) -> None:
    values = {"key": random.key(0), "keys": random.split(random.key(0), 3), "p": np.zeros(3)}
    with pytest.raises(error) as caught:
        eval(f"random.{call}", {"random": random, **values})
    (note,) = caught.value.__notes__
    assert re.search(f"{mine}.*; {other}", note)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "random.rand(key)",
            r"takes no key; with a key, which comes first, write random\.uniform\(key, \(d0, d1\)\)",
        ),
        ("random.shuffle(key)", r"write x = random\.permutation\(key, x\)"),
        ("random.zipf(key, 2.0)", "no function of keys draws this"),
        ("random.seed(key)", r"random\.key_data\(key\) is a seed"),
        ("random.default_rng(key)", r"random\.key_data\(key\) is a seed"),
        ("random.RandomState(key)", r"random\.key_data\(key\) is a seed"),
        (
            "random.default_rng(0).normal(key)",
            r"random\.Generator\.normal .* write loc \+ scale \* random\.normal",
        ),
    ],
)
def test_names_of_numpy_alone_refuse_keys(call: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        eval(call, {"random": random, "key": random.key(0)})
    assert_same(
        random.default_rng(random.key_data(random.key(1))).random(2),
        np.random.default_rng(np.array([0, 1], np.uint32)).random(2),
    )


# --- in traced functions -----------------------------------------------------------------------------

VALUES = {
    **{
        "a": 2.0,
        "b": 3.0,
        "n": 10,
        "p": 0.3,
        "df": 5.0,
        "alpha": np.array([1.0, 2.0]),
        "scale": 2.0,
        "loc": 1.0,
    },
    **{
        "dfnum": 5.0,
        "dfden": 7.0,
        "shape": 2.0,
        "low": 0,
        "high": 1000,
        "mean": 1.5,
        "sigma": 0.5,
        "lam": 3.0,
    },
    **{"left": 0.0, "mode": 1.0, "right": 3.0, "length": 4000, "d0": 50, "d1": 80, "size": 4000},
}
#: Where parameters of one name are of another kind.
SPECIAL: dict[str, dict[str, Any]] = {
    "choice": {"a": np.arange(5.0), "replace": True, "p": np.array([0.1, 0.2, 0.3, 0.4, 0.0])},
    "multinomial": {"pvals": np.array([0.5, 0.5])},
    "multivariate_normal": {"mean": np.zeros(2), "cov": np.eye(2)},
    "permutation": {"x": np.arange(4000.0)},
    "permuted": {"x": np.arange(4000.0), "axis": 0},
    "shuffle": {"x": np.arange(4000.0)},
}


@pytest.mark.parametrize("name", sorted(numpy_calls.KEYED))
def test_the_call_with_a_key_draws_the_same_distribution(name: str) -> None:
    """Quartiles of 4,000 numbers; the call that the refusal shows runs in a traced function."""
    values, source = {**VALUES, **SPECIAL.get(name, {})}, numpy_calls.KEYED[name].removeprefix("x = ")
    size = {"size": (4000,)}
    names = {"random": random, "xarr": xarr, **values, **size}
    mine = np.asarray(xarr.jit(lambda key: eval(source, {**names, "key": key}))(random.key(5)))
    state = np.random.default_rng(5) if name in ("integers", "permuted") else np.random.RandomState(5)
    if name == "shuffle":
        wanted = values["x"].copy()
        state.shuffle(wanted)
    elif name == "bytes":
        wanted = np.frombuffer(state.bytes(4000), np.uint8)
    elif name in ("rand", "randn"):
        wanted = getattr(state, name)(50, 80)
    else:
        alias = {"ranf": "random_sample", "sample": "random_sample"}.get(name, name)
        draw = getattr(state, alias)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # random_integers
            wanted = np.asarray(draw(**{each: values[each] for each in parameters(draw) if each in values}))
    assert mine.shape == (wanted.shape if name != "multinomial" else (2,))
    quarters = [0.25, 0.5, 0.75]
    if name == "multinomial":
        assert mine.sum() == 10
    else:
        own, others = (np.quantile(each.astype(float), quarters) for each in (mine, wanted))
        assert np.all(np.abs(own - others) <= 0.15 * (others[2] - others[0])), (own, others)


DRAWS = sorted({*CALLS, *LEGACY, "shuffle", "seed"})


@pytest.mark.parametrize("name", DRAWS)
def test_drawing_in_a_traced_function_is_refused(name: str) -> None:
    arguments = {"shuffle": "x", "seed": "3"}.get(name) or {**CALLS, **LEGACY}[name][0]
    before = np.random.get_state()[1].copy()
    for body in (
        lambda f: xarr.jit(lambda x: f(x))(xarr.zeros(3)),
        lambda f: xarr.lax.fori_loop(0, 2, lambda i, x: f(x), xarr.zeros(3)),
    ):
        with pytest.raises(TracedValueError) as caught:
            body(lambda x: call_method(random, name, arguments, x=x))
        message = str(caught.value)
        assert message.startswith(f"random.{name} calls numpy.random: in a traced function")
        assert numpy_calls.KEYED.get(name, "draw the numbers outside") in message
    assert_same(np.random.get_state()[1], before)


def test_generators_refuse_in_a_traced_function() -> None:
    rng = random.default_rng(0)
    with pytest.raises(
        TracedValueError, match=r"Generator\.integers .* write random\.randint\(key, size, low, high\)"
    ):
        xarr.jit(lambda x: x + rng.integers(5))(xarr.zeros(3))
    with pytest.raises(TracedValueError, match=r"Generator\.shuffle"):
        xarr.jit(lambda x: rng.shuffle(x))(xarr.zeros(3))
    with pytest.raises(TracedValueError, match=r"RandomState\.rand "):
        xarr.jit(lambda x: x + random.RandomState(0).rand(3))(xarr.zeros(3))
    # Nothing was drawn.
    assert_same(rng.random(2), np.random.default_rng(0).random(2))


def test_importing_xarr_does_not_import_numpy_random() -> None:
    code = "import sys, xarr; print('numpy.random' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]
