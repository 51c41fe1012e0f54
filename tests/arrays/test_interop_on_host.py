"""What other libraries do with the values of Arrays: ufuncs of their own, memory that they read, masks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.special
import sklearn.cluster
import sklearn.linear_model
import sklearn.preprocessing

import xarr
from tests.compare import assert_same
from xarr.errors import BackendError, InputError, PartUpdateWarning, TracedValueError

mpl.use("Agg")
from matplotlib import pyplot as plt

pytestmark = pytest.mark.usefixtures("on_numpy")

V = np.linspace(0.1, 0.9, 6).reshape(2, 3)

# --- ufuncs of other libraries -----------------------------------------------------------------------

FOREIGN: dict[str, Callable[[Any, Any], Any]] = {
    "one argument": lambda x, y: scipy.special.gamma(x),
    "two": lambda x, y: scipy.special.jv(x, y),
    "a number": lambda x, y: scipy.special.jv(1, y),
    "three that broadcast": lambda x, y: scipy.special.betainc(x[:, None], 2.0, y[0]),
    "an array of NumPy's": lambda x, y: scipy.special.jv(V, y),
    "a list": lambda x, y: scipy.special.jv([1.0, 2.0, 3.0], y),
    "several results": lambda x, y: scipy.special.sici(x)[1],
    "no dimensions": lambda x, y: scipy.special.erf(x[0, 0]),
    "empty": lambda x, y: scipy.special.erf(x[:0]),
    "float32": lambda x, y: scipy.special.erf(x.astype("float32")),
    "dtype": lambda x, y: scipy.special.erf(x, dtype="float32"),
    "outer": lambda x, y: scipy.special.jv.outer(x, y),
    "reduce": lambda x, y: np.frompyfunc(max, 2, 1).reduce(x),
    "a Python function": lambda x, y: np.frompyfunc(lambda a: a + 1, 1, 1)(x),
    "complex": lambda x, y: scipy.special.gamma(x + 1j),
}


@pytest.mark.implicit
@pytest.mark.parametrize("call", FOREIGN.values(), ids=list(FOREIGN))
def test_ufuncs_of_other_libraries_give_arrays(call: Callable[[Any, Any], Any]) -> None:
    wanted, got = call(V, 2 * V), call(xarr.asarray(V), 2 * xarr.asarray(V))
    if np.asarray(wanted).dtype == object:  # which no Array can hold
        assert type(got) is np.ndarray and got.tolist() == wanted.tolist()
    else:
        assert isinstance(got, xarr.Array)
        assert_same(got, np.asarray(wanted))


def test_ufuncs_of_other_libraries_show_results_in_out() -> None:
    x, out = xarr.asarray(V), xarr.zeros((2, 3))
    assert scipy.special.erf(x, out=out) is out
    assert_same(out, scipy.special.erf(V))
    host, second = np.zeros((2, 3)), xarr.zeros((2, 3))
    first, other = scipy.special.sici(x, out=(host, second))
    assert first is host and other is second
    for got, wanted in zip((host, second), scipy.special.sici(V), strict=True):
        assert_same(got, wanted)
    third, fourth = scipy.special.sici(x, out=(None, second))
    assert isinstance(third, xarr.Array) and fourth is second
    with pytest.raises(InputError, match="first argument"):
        np.frompyfunc(lambda a, b: a, 2, 1).at(x, [0], 1.0)


def test_results_live_with_the_operands() -> None:
    with xarr.use_backend("reference"):
        x = xarr.asarray(V)
    assert scipy.special.erf(x).backend == "reference"
    with pytest.raises(BackendError, match="two backends"):
        scipy.special.jv(x, xarr.asarray(V, device="numpy"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: scipy.special.erf(x), r"xarr\.lax\.erf does it"),
        (
            lambda x: scipy.special.gamma(x),
            r"xarr has no such function: call it outside.*xarr\.pure_callback",
        ),
    ],
    ids=["erf", "gamma"],
)
def test_ufuncs_of_other_libraries_refuse_in_a_traced_function(call: Any, message: str) -> None:
    with pytest.raises(TracedValueError, match=message):
        xarr.jit(call)(xarr.asarray(V))
    assert_same(xarr.jit(lambda x: x + call(xarr.asarray(V)))(xarr.zeros((2, 3))), call(V))


# --- memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3, 4)])
def test_memory_is_lent_as_it_is(dtype: str, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    x = xarr.asarray(values)
    assert_same(np.asarray(x), values)
    assert x.strides == values.strides and not np.asarray(x).flags.writeable
    lent = type("Other", (), {"__array_interface__": x.__array_interface__})()
    assert_same(np.asarray(lent), values)


def test_what_was_lent_stays_when_the_handle_shows_another_value() -> None:
    x = xarr.arange(100_000) * 2
    lent, values = np.asarray(x), np.arange(100_000) * 2
    x += 1
    x.evaluate()
    del x
    xarr.ones(100_000).evaluate()
    assert_same(lent, values)


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.T,
        lambda v: v.transpose(1, 2, 0),
        lambda v: v[::-1],
        lambda v: v[:, ::2, 1:],
        lambda v: v[:, :, ::-1].T,
    ],
    ids=["T", "transposed", "reversed", "strided", "reversed and T"],
)
def test_memory_in_another_order(change: Callable[[Any], Any]) -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    wanted = change(values)
    for x in (change(xarr.asarray(values)), xarr.asarray(wanted)):
        lent = type("Other", (), {"__array_interface__": x.__array_interface__})()
        for got in (np.asarray(lent), np.asarray(x), x.to_numpy()):
            assert np.array_equal(got, wanted)
        assert x.strides == np.asarray(x).strides


def test_narrow_floats_have_no_code_there() -> None:
    x = xarr.ones(3, dtype="bfloat16")
    assert not hasattr(x, "__array_interface__") and np.asarray(x).dtype == x.dtype
    with pytest.raises(TracedValueError):
        xarr.jit(lambda x: np.asarray(x))(xarr.ones(3))


@pytest.mark.parametrize(
    ("shape", "dtype"), [((3, 4), "uint8"), ((3, 4, 3), "uint8"), ((3, 4), "bool"), ((2, 2), "int32")]
)
def test_images_of_pil(shape: tuple[int, ...], dtype: str) -> None:
    image = pytest.importorskip("PIL.Image")
    values = (np.arange(np.prod(shape)).reshape(shape) % 251).astype(dtype)
    for x in (xarr.asarray(values), xarr.asarray(values[::-1])[::-1]):
        assert_same(np.asarray(image.fromarray(x)), np.asarray(image.fromarray(values)))


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "bfloat16", "int64", "uint8", "bool", "complex64", "float16"]
)
def test_tensors_of_pytorch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, dtype))
    wanted = np.array([[0, 1, 2], [3, 4, 5]]).astype(xarr.empty(0, dtype=dtype).dtype)
    for make in (xarr.asarray, xarr.array):
        x = make(tensor)
        assert_same(x, wanted)
        assert_same(make(tensor.T), wanted.T)
        assert_same(make(tensor, dtype="complex128"), wanted.astype("complex128"))
    x = xarr.asarray(tensor)
    tensor[0, 0] = 1
    assert_same(x, wanted)
    with pytest.raises(InputError, match=r"tensor\.detach"):
        xarr.asarray(torch.ones(3, requires_grad=True))


# --- libraries that write into what they get ---------------------------------------------------------

ROWS = np.random.default_rng(0).normal(size=(30, 3))

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "KMeans": lambda: sklearn.cluster.KMeans(2, n_init=1, random_state=0),
    "MiniBatchKMeans": lambda: sklearn.cluster.MiniBatchKMeans(2, n_init=1, random_state=0),
    "Lasso": lambda: sklearn.linear_model.Lasso(alpha=0.1),
    "LinearRegression": lambda: sklearn.linear_model.LinearRegression(),
    "a state": lambda: sklearn.linear_model.SGDRegressor(random_state=xarr.random.RandomState(0)),
}


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=list(ESTIMATORS))
def test_estimators_of_scikit_learn_copy_what_they_write_into(make: Callable[[], Any]) -> None:
    x, y = xarr.asarray(ROWS), xarr.asarray(ROWS[:, 0] > 0)
    wanted = make().fit(ROWS, ROWS[:, 0] > 0).predict(ROWS)
    assert_same(np.asarray(make().fit(x, y).predict(x)), wanted)
    assert_same(x, ROWS)


def test_scaling_in_place_is_refused_and_a_copy_is_scaled() -> None:
    x = xarr.asarray(ROWS)
    wanted = sklearn.preprocessing.StandardScaler().fit_transform(ROWS)
    assert_same(np.asarray(sklearn.preprocessing.StandardScaler().fit_transform(x)), wanted)
    assert_same(x, ROWS)


# --- pandas, matplotlib, einops ----------------------------------------------------------------------


@pytest.mark.skipif(
    int(pd.__version__.split(".")[0]) < 3,
    reason="pandas 2 takes other masks than its own and NumPy's for labels, and warns of its unique()",
)
def test_masks_select_rows_of_pandas() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": [5.0, 6.0, 7.0, 8.0]})
    mask = np.array([True, False, True, False])
    own = xarr.asarray(mask)
    assert frame[own].equals(frame[mask]) and frame.loc[own, "a"].equals(frame.loc[mask, "a"])
    assert frame["b"][own].equals(frame["b"][mask])
    frame.loc[own, "a"] = 9
    assert frame["a"].tolist() == [9, 2, 9, 4]
    assert pd.unique(xarr.asarray([2, 1, 2])).tolist() == [2, 1]


def test_pandas_takes_arrays_as_values() -> None:
    own = xarr.asarray([True, False])
    assert pd.Series(xarr.arange(3)).tolist() == [0, 1, 2]
    assert_same(own.to_numpy(), np.array([True, False]))


@pytest.mark.parametrize("first", ["pandas, xarr", "xarr, pandas"])
def test_pandas_groups_by_arrays_whichever_is_imported_first(first: str) -> None:
    code = (
        f"import {first}; own = xarr.asarray([2, 1, 2]); frame = pandas.DataFrame({{'a': [1.0, 2.0, 4.0]}});"
        "assert frame.groupby(own)['a'].sum().to_dict() == {1: 2.0, 2: 5.0};"
        "assert pandas.Series(own).groupby([own, own > 1]).size().tolist() == [1, 2];"
        "assert frame.groupby(lambda label: label % 2)['a'].sum().tolist() == [5.0, 2.0]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pandas_refuses_groups_of_another_length_by_name() -> None:
    with pytest.raises(ValueError, match="same length"):
        pd.DataFrame({"a": [1, 2]}).groupby(xarr.arange(3))


def test_surfaces_of_matplotlib() -> None:
    figure = plt.figure()
    axes = figure.add_subplot(projection="3d")
    x, y = xarr.meshgrid(xarr.linspace(0, 1, 12), xarr.linspace(0, 1, 10))
    surface = axes.plot_surface(x, y, x * y)
    axes.plot_wireframe(x, y, x * y)
    assert len(surface.get_facecolor()) == 9 * 11
    figure.canvas.draw()
    plt.close(figure)


@pytest.mark.parametrize("first", ["einops, xarr", "xarr, einops"])
def test_einops_takes_arrays_whichever_is_imported_first(first: str) -> None:
    code = (
        f"import {first}; assert einops.rearrange(xarr.ones((2, 3)), 'a b -> b a').shape == (3, 2);"
        "assert type(einops.__spec__.loader) is type(einops.__loader__); import importlib.resources;"
        "assert importlib.resources.files(einops).joinpath('__init__.py').is_file()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_xarr_does_not_import_einops() -> None:
    subprocess.run([sys.executable, "-c", "import xarr, sys; assert 'einops' not in sys.modules"], check=True)


def test_out_keeps_its_values_where_nothing_is_computed() -> None:
    x, where = xarr.asarray(V), xarr.asarray(V) > 0.5
    for mask in (where, np.asarray(where), False, xarr.asarray(False)):
        out = xarr.full(V.shape, -7.0)
        assert scipy.special.erf(x, out=out, where=mask) is out
        wanted = scipy.special.erf(V, out=np.full(V.shape, -7.0), where=np.asarray(mask))
        assert_same(out, wanted)


def test_parts_warn_when_shuffled_and_are_no_out() -> None:
    x = xarr.arange(6.0).reshape(2, 3)
    with pytest.warns(PartUpdateWarning):
        xarr.random.default_rng(0).shuffle(x[0])
    with pytest.raises(InputError, match=r"write x = x\.at\[1\]\.set\(erf\(…\)\)"):
        scipy.special.erf(x[0], out=x[1])
    with pytest.raises(InputError, match=r"write x = x\.at\[0\]\.set\(rng\.random\(…\)\)"):
        xarr.random.default_rng(0).random(out=x[0])
    assert_same(x, np.arange(6.0).reshape(2, 3))
