"""A constant or a Python list has no backend of its own: results live where the Arrays among the arguments do."""

import ast
import inspect
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.checkout import CHECKOUT
from tests.support.constants import constants_of_the_default_backend
from tests.support.functions import expression
from tests.support.numpy_records import OLDER, Record, compare, inputs, records
from xarr import lax, random
from xarr.errors import BackendError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.RankWarning")

DEFAULT = xarr.zeros(()).backend
OTHER = "numpy" if DEFAULT == "reference" else "reference"

#: What is read from a file is new data.
NEW_DATA = {"load", "save", "savez", "savez_compressed"}
#: The signs of vectors are the backend's choice.
OF_ANY_SIGN = {"linalg.eig", "linalg.eigh", "linalg.svd"}


class _Mixed:
    """The `xp` of the expressions of records: xarr, where arrays made of no Array are NumPy's."""

    def __getattr__(self, name):
        if name not in ("asarray", "array", "arange", "zeros", "ones", "eye", "linspace"):
            return getattr(xarr, name)

        def make_array(*args, **kwargs):
            is_given = any(isinstance(one, xarr.Array) for one in args)
            return getattr(xarr if is_given else np, name)(*args, **kwargs)

        return make_array


def names_in(tree):
    """The inputs that an expression uses, other than by a function of NumPy's, which makes host values of them."""
    if isinstance(tree, ast.Call) and ast.unparse(tree.func).startswith("np."):
        return set()
    own = {tree.id} if isinstance(tree, ast.Name) else set()
    return own.union(*map(names_in, ast.iter_child_nodes(tree))) & set("xyz")


def arrays_in(value):
    if isinstance(value, xarr.Array):
        yield value
    elif isinstance(value, random.Key):
        yield value.data
    elif isinstance(value, list | tuple):
        for one in value:
            yield from arrays_in(one)


def homes(value):
    """The devices to which the Arrays in a result are committed."""
    devices = [array._node.device for array in arrays_in(value)]
    return {device.name for device in devices if device is not None and device.is_committed}


def smallest(text, record):
    """Values of a small shape and a usual dtype that NumPy takes, and its result."""
    kinds = [dtype for dtype in ("float64", "int64", *record.dtypes) if dtype in record.dtypes]
    shapes = sorted(record.shapes, key=lambda shape: (0 in shape, not shape, len(shape)))
    for dtype, shape in product(kinds, shapes):
        operands = inputs(record, shape, dtype)
        try:
            with np.errstate(all="ignore"):
                return operands, dtype, expression(text)(np, *[value.copy() for value in operands])
        except (ValueError, TypeError, IndexError, np.linalg.LinAlgError):
            continue
    raise AssertionError(f"NumPy refuses {text} for all inputs")


def try_elsewhere(text, record, values=True):
    """Assert that the result lives with the Arrays: all of them, or the first beside NumPy arrays; and its values."""
    used = tuple(sorted(names_in(ast.parse(text))))
    if not used:
        return
    operands, dtype, wanted = smallest(text, record)
    for moved in dict.fromkeys((used, used[:1])):
        form = [
            xarr.asarray(value, device=OTHER) if name in moved else value
            for name, value in zip("xyz", operands, strict=False)
        ]
        result = expression(text)(_Mixed(), *form)
        assert homes(result) <= {OTHER}, text
    if values:
        compare(result, wanted, record.tolerance(dtype))


# --- every function ------------------------------------------------------------------------------------


@pytest.mark.implicit
@pytest.mark.skipif(OLDER, reason="the records are of NumPy 2.4")
@pytest.mark.parametrize("name", [name for name, record in records().items() if name not in NEW_DATA])
def test_results_live_with_the_arguments(name):
    record = records()[name]
    for text in record.expressions:
        try_elsewhere(text, record, values=name not in OF_ANY_SIGN)


def test_a_constant_of_the_default_backend_shows(monkeypatch):
    record = Record((), inputs=2)
    try_elsewhere("xp.add(x, y)", record)
    monkeypatch.setattr(xarr, "add", lambda x, y: x + xarr.asarray([1.0]))
    with pytest.raises(BackendError, match="two backends"):
        try_elsewhere("xp.add(x, y)", record)
    monkeypatch.setattr(xarr, "add", lambda x, y: xarr.asarray(np.asarray(x) + np.asarray(y)))
    with pytest.raises(AssertionError, match=r"xp\.add"):
        try_elsewhere("xp.add(x, y)", record)


#: Beyond NumPy: reads and writes, and what only the explicit level has, for a matrix x and a vector y.
EXPRESSIONS = (
    "x[[0, 2], [1]]",
    "x[[True, False, True]]",
    "x[np.array([0, 2])[:, None], [0, -1]]",
    "x[[7]:] if False else x.at[[0, 9]].get(mode='fill')",
    "x.at[[0, 0]].add([[1.0], [2.0]])",
    "x.at[[1], ::2].set([5.0, 6.0])",
    "x.at[x > 0].multiply(2.0)",
    "x.at[[True, False, True]].set(7.0)",
    "lax.linalg.cholesky(x @ x.T + xarr.eye(3, device=x.device))",
    "lax.linalg.lu(x)[0]",
    "lax.linalg.lu_pivots_to_permutation(lax.linalg.lu(x)[1], 3)",
    "lax.cumsum(x) + lax.argmax(y, 0, 'int32')",
    "lax.top_k(y, 2)[1]",
    "lax.reduce_precision(y, 5, 10)",
    "lax.add(y, [1.0, 2.0, 3.0])",
    "lax.pad(y, 0.0, [(1, 1, 1)])",
    "lax.scan(lambda carry, i: (carry + i, carry), y, np.arange(3.0))[1]",
    "xarr.jit(lambda a: xarr.cov(a))(x)",
    "xarr.jit(lambda a: xarr.insert(a, [0, 1], 5.0, axis=0))(x)",
    "xarr.kaiser(4, y[0])",
    "xarr.add.reduce(x, axis=1, initial=3.0, where=[True, False, True])",
    "xarr.add.reduceat(y, [0, 2])",
    "xarr.add.accumulate(x)",
    "xarr.add.outer(y, [1.0, 2.0])",
    "xarr.r_[1:3, y, [4.0]]",
    "xarr.logspace(0, 1, 3, base=y)",
    "xarr.geomspace(y, [1.0, 2.0, 3.0], 3)",
)


@pytest.mark.implicit
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_results_beyond_numpy_live_with_the_arguments(text):
    values = np.random.default_rng(0).uniform(0.5, 2, (4, 3))
    results = []
    for device in (None, OTHER):
        x, y = (xarr.asarray(one, device=device) for one in (values[:3], values[3]))
        results.append(eval(text, {"x": x, "y": y, "np": np, "xarr": xarr, "lax": lax}))
    assert homes(results[1]) == {OTHER}
    np.testing.assert_allclose(np.asarray(results[1]), np.asarray(results[0]), rtol=1e-12)


#: Arguments of the functions of `xarr.random`, by the names of their parameters.
ARGUMENTS = {
    **{
        each: [2.0, 3.0]
        for each in ("a", "b", "loc", "mean", "sigma", "df", "dfnum", "dfden", "lam", "alpha")
    },
    **{"p": [0.25, 0.75], "n": [4.0], "scale": [1.5], "concentration": [2.0], "logits": [0.5, 1.0]},
    **{"left": [0.0], "right": [2.0], "lower": [-1.0], "upper": [1.0], "x": [1, 2, 3, 4]},
    **{"minval": [1], "maxval": [9], "cov": [[2.0, 0.5], [0.5, 1.0]], "data": 3, "d": 2, "num": 3},
    **{"shape": (2,)},
}
OWN_ARGUMENTS = {
    "multinomial": {"n": 4.0},
    "ball": {"p": 2.0},
    "uniform": {"minval": [1.0], "maxval": [9.0]},
    "triangular": {"mode": [1.0]},
    "multivariate_normal": {"shape": ()},
    "categorical": {"shape": ()},
    "dirichlet": {"shape": ()},
    "orthogonal": {"n": 3},
}
#: Made of the numbers of other functions, and slow on the reference backend.
OF_OTHERS = {
    "ball",
    "beta",
    "chisquare",
    "dirichlet",
    "f",
    "generalized_normal",
    "loggamma",
    "multinomial",
    "t",
}
DRAWS = [
    name
    for name, function in vars(random).items()
    if inspect.isfunction(function) and next(iter(inspect.signature(function).parameters), None) == "key"
]


def draw(name, key, on=None):
    """The numbers that a function of `xarr.random` draws with lists as arguments, or with Arrays on a backend."""
    function = getattr(random, name)
    own = {**ARGUMENTS, **OWN_ARGUMENTS.get(name, {})}
    arguments = {each: own[each] for each in inspect.signature(function).parameters if each in own}
    if on is not None:
        is_array = {each: isinstance(value, list) for each, value in arguments.items()}
        arguments = {
            each: xarr.asarray(value, device=on) if is_array[each] else value
            for each, value in arguments.items()
        }
    return function(key, **arguments)


@pytest.mark.implicit
@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_live_with_their_key(name):
    key = random.wrap_key_data(random.key(3).data.to(OTHER))
    result = draw(name, key)
    assert homes(result) == homes(draw(name, key, on=OTHER)) == {OTHER}
    if name in OF_OTHERS:
        return
    for one, other in zip(arrays_in(result), arrays_in(draw(name, random.key(3))), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5)


def test_keys_that_live_elsewhere_are_arranged_there():
    key = random.wrap_key_data(random.key(3).data.to(OTHER))
    assert homes(xarr.stack([key, key]).data) == {OTHER}
    assert homes(random.split(key, 6).reshape(2, 3).T.data) == {OTHER}


def test_functions_of_polynomials_give_arrays_of_the_backend_of_their_arguments():
    c = xarr.asarray([1.0, 2.0, 3.0], device=OTHER)
    assert homes(xarr.polynomial.polynomial.polyder(c)) == {OTHER}
    assert homes(xarr.polynomial.chebyshev.chebval(c, [1.0, 0.5])) == {OTHER}
    both = xarr.polynomial.polynomial.polydiv(c, [1.0, 2.0])
    assert [homes(each) for each in both] == [{OTHER}, {OTHER}]


def test_a_buffer_is_read_where_it_lives():
    x = xarr.asarray([1.0, 2.0], device=OTHER)
    assert homes(xarr.ndarray((2,), "float64", buffer=x)) == {OTHER}


def test_choices_of_every_kind_live_with_their_key():
    key = random.wrap_key_data(random.key(3).data.to(OTHER))
    for options in (
        {},
        {"replace": False},
        {"p": [0.5, 0.25, 0.25]},
        {"p": [0.5, 0.25, 0.25], "replace": False},
    ):
        assert homes(random.choice(key, 3, (2,), **options)) == {OTHER}
        assert homes(random.choice(key, [4.0, 5.0, 6.0], (2,), **options)) == {OTHER}
    assert homes(random.permutation(key, 5)) == {OTHER}
    assert homes(random.categorical(key, [0.5, 1.0, 2.0], shape=(2,), replace=False)) == {OTHER}


# --- what a user makes -----------------------------------------------------------------------------------


MADE = {
    "zeros": lambda: xarr.zeros(3),
    "asarray": lambda: xarr.asarray([1, 2]),
    "scalar": lambda: xarr.asarray(1.0),
    "arange": lambda: xarr.arange(3),
    "linspace": lambda: xarr.linspace(0, 1, 3),
    "linspace of lists": lambda: xarr.linspace([0, 1], [1, 2], 3),
    "geomspace": lambda: xarr.geomspace(1, 8, 3),
    "zeros_like": lambda: xarr.zeros_like([1, 2]),
    "full_like": lambda: xarr.full_like([1, 2], 3),
    "indices": lambda: xarr.indices((2, 2)),
    "mgrid": lambda: xarr.mgrid[0:2, 0:3],
    "r_": lambda: xarr.r_[0:2, 5],
    "hamming": lambda: xarr.hamming(4),
    "fftfreq": lambda: xarr.fft.fftfreq(4),
    "diag_indices": lambda: xarr.diag_indices(2)[0],
    "tril_indices": lambda: xarr.tril_indices(2)[0],
    "fromfunction": lambda: xarr.fromfunction(lambda i: i, (3,)),
    "key": lambda: random.key(0).data,
}


@pytest.mark.parametrize("name", MADE)
def test_what_a_user_makes_lives_on_the_default_backend_of_then(name):
    with xarr.use_backend(OTHER):
        made = MADE[name]()
    assert made.backend == OTHER
    with pytest.raises(BackendError, match=rf"two backends, {OTHER} and {DEFAULT}; move one, e\.g\. x\.to"):
        xarr.equal(made, xarr.asarray(np.zeros(made.shape)))


@pytest.mark.parametrize(
    "make", [lambda: lax.full((2,), 1), lambda: lax.iota("int64", 2)], ids=["full", "iota"]
)
def test_constants_of_the_explicit_level_go_with_arrays_on_any_device(make):
    with xarr.use_backend(OTHER):
        made = make()
    assert (made.backend, homes(made)) == (DEFAULT, set())
    data = xarr.asarray([10, 20])
    for other in (data, data.to(OTHER)):
        assert (made + other).backend == other.backend
        np.testing.assert_array_equal(np.asarray(made + other), np.add(made, [10, 20]))


def test_what_is_made_of_lists_is_computed_by_the_default_backend_of_then_and_goes_with_any():
    with xarr.use_backend(OTHER):
        result = xarr.flip([1, 2])
    assert (result.backend, result.device) == (OTHER, OTHER)
    assert homes(result) == set()
    data = xarr.asarray([10, 20])
    for other in (data, data.to(OTHER)):
        assert (result + other).backend == other.backend
        np.testing.assert_array_equal(np.asarray(result + other), [12, 21])
    np.testing.assert_array_equal(np.asarray(result), [2, 1])


def test_what_is_made_of_constants_alone_is_computed_by_the_default_backend_of_now():
    result = xarr.isnan([1, 2])
    assert result.backend == DEFAULT
    with xarr.use_backend(OTHER):
        assert result.backend == OTHER


@pytest.mark.parametrize(
    "apply",
    [
        lambda function: xarr.vectorize(function)([1.0, 2.0]),
        lambda function: xarr.vectorize(function, signature="(n)->(n)")([[1.0], [2.0]]),
        lambda function: xarr.apply_along_axis(function, 0, [[1.0, 2.0]]),
    ],
    ids=["vectorize", "signature", "apply_along_axis"],
)
@pytest.mark.parametrize("error", [ValueError, TypeError, ZeroDivisionError, xarr.errors.ShapeError])
def test_an_error_of_a_users_function_surfaces_once(apply, error):
    calls = []

    def fails(value):
        calls.append(value)
        raise error("of the user")

    with pytest.raises(error, match="of the user"):
        apply(fails)
    assert len(calls) == 1


def test_only_looking_at_a_value_calls_a_users_function_again():
    calls = []

    def looks(value):
        calls.append(type(value))
        return -value if value > 1 else value

    assert np.asarray(xarr.vectorize(looks)([1.0, 2.0])).tolist() == [1, -2]
    assert calls[0] is xarr.Array
    assert xarr.Array not in calls[1:]


def test_functions_of_users_are_called_with_host_values_and_their_results_come_back():
    x = xarr.asarray([4.0, 9.0], device=OTHER)
    for result in (
        xarr.vectorize(lambda a: a if a > 5 else -a)(x),
        xarr.vectorize(lambda a: (a if a > 5 else -a, 1))(x)[0],
        xarr.vectorize(lambda v: v if v[0] > 5 else -v, signature="(n)->(n)")(x),
        xarr.apply_along_axis(lambda v: v if v[0] > 5 else -v, 0, x),
    ):
        assert homes(result) == {OTHER}
        assert abs(np.asarray(result)).tolist() == [4, 9]


def test_an_index_that_lives_elsewhere_is_explained():
    x = xarr.asarray([1.0, 2.0, 3.0], device=OTHER)
    assert "x[2]" in str(xarr.explain_index(x, x > 2).text())
    assert "x[1]" in str(xarr.explain_index(x, xarr.asarray([1], device=OTHER)).text())


# --- the rule over the source --------------------------------------------------------------------------------


def test_library_code_makes_constants_of_no_backend():
    folders = (
        "functions",
        "lax",
        "lib",
        "linalg",
        "polynomial",
        "random",
        "indexing",
        "explanation",
        "explainers",
    )
    paths = [path for folder in folders for path in sorted(CHECKOUT.glob(f"xarr/{folder}/**/*.py"))]
    assert (
        constants_of_the_default_backend(
            [*paths, CHECKOUT / "xarr" / "fft.py", CHECKOUT / "xarr" / "emath.py"]
        )
        == []
    )


@pytest.mark.parametrize(
    ("imported", "bad", "good"),
    [
        ("from xarr.numpy_api.creation.arrays import full as filled", "filled((), 0)", "lax.full((), 0)"),
        ("from xarr.numpy_api.creation import arrays as made", "made.ones(3)", "made.ones_like(x)"),
        ("from xarr.numpy_api.creation.arrays import asarray", "asarray(x)", "asarray(x, device=None)"),
        ("from xarr.numpy_api.creation.arrays import zeros", "zeros(3)", "np.zeros(3)"),
    ],
)
def test_the_rule_can_fail(imported, bad, good, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(f"{imported}\n\ndef f(x):\n    return {good}\n")
    assert constants_of_the_default_backend([path]) == []
    path.write_text(f"{imported}\n\ndef f(x):\n    return {bad}\n")
    (problem,) = constants_of_the_default_backend([path])
    assert f"{path}:4: {bad.partition('(')[0]}(…) makes an Array of the default backend" in problem


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.fill(3.0),
        lambda x: x.__setitem__(..., 3.0),
        lambda x: x.__setitem__(slice(None), np.full(3, 3.0)),
        lambda x: xarr.add(1, 2, out=x),
    ],
    ids=["fill", "ellipsis", "slice", "out"],
)
def test_an_array_that_is_written_to_stays_on_its_backend(write: Callable[[xarr.Array], Any]) -> None:
    x = xarr.ones(3, device=OTHER)
    write(x)
    assert_same(x, np.full(3, 3.0))
    assert x.backend == OTHER
    with pytest.raises(BackendError, match="two backends"):
        xarr.ones(3) + x


def test_out_takes_no_result_of_another_backend() -> None:
    x = xarr.ones(3, device=OTHER)
    with pytest.raises(BackendError, match="two backends"):
        xarr.sum(xarr.ones((2, 3)), axis=0, out=x)
    assert_same(x, np.ones(3))
