"""Arrays beside other people's objects: SciPy, scikit-learn, einops, pandas, matplotlib, jaxtyping, Python's own."""

from __future__ import annotations

import json
import operator
import os
import subprocess
import sys
from array import array
from collections import UserList
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import einops
import einops.array_api
import jaxtyping
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import xarr
import xarr.einops_backend
from tests.compare import assert_same
from tests.support.array_api_libraries import CALLS, NUMBERS, __file__ as LIBRARIES
from xarr.errors import InputError

#: About names, texts and the memory of the NumPy backend.
pytestmark = pytest.mark.usefixtures("on_numpy")
CUBE = np.arange(24.0).reshape(2, 3, 4)


def reports(library: str) -> dict[str, dict[str, str]]:
    done = subprocess.run(
        [sys.executable, "-P", LIBRARIES, library],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XARR_BACKEND": "numpy"},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, dict[str, str]] = json.loads(done.stdout)
    return report


@pytest.mark.implicit
@pytest.mark.parametrize("library", CALLS)
def test_array_api_functions_of(library: str) -> None:
    answers = reports(library)
    assert answers.keys() == set(CALLS[library])
    for call, report in answers.items():
        assert not report["problem"], f"{call}: {report['problem']}"
        assert report["type"] == ("builtins.float" if call in NUMBERS else "xarr.Array"), call


EINOPS: dict[str, Callable[[Any], Any]] = {
    "rearrange": lambda x: einops.rearrange(x, "a b c -> (c a) b"),
    "rearrange a list": lambda x: einops.rearrange([x, x], "n a b c -> a b (n c)"),
    "reduce by mean": lambda x: einops.reduce(x, "a (b b2) c -> a b", "mean", b2=3),
    "reduce by max": lambda x: einops.reduce(x, "a b c -> b 1", "max"),
    "reduce by any": lambda x: einops.reduce(x > 20, "a b c -> b", "any"),
    "reduce by a function": lambda x: einops.reduce(x, "a b c -> a", lambda y, axes: y.sum(axes)),
    "repeat": lambda x: einops.repeat(x, "a b c -> a (b n) c m", n=2, m=3),
    "einsum": lambda x: einops.einsum(x, x, "a b c, a d c -> a b d"),
    "pack": lambda x: einops.pack([x, x[:, :, 0]], "a b *")[0],
    "unpack": lambda x: einops.unpack(x, [(1,), (2,)], "a * c")[1],
    "array_api.rearrange": lambda x: einops.array_api.rearrange(x, "a b c -> (c a) b"),
    "array_api.reduce": lambda x: einops.array_api.reduce(x, "a b c -> b", "sum"),
    "array_api.repeat": lambda x: einops.array_api.repeat(x, "a b c -> a b c n", n=2),
}


@pytest.mark.parametrize("call", EINOPS.values(), ids=EINOPS.keys())
def test_einops(call: Callable[[Any], Any]) -> None:
    got = call(xarr.asarray(CUBE))
    assert type(got) is xarr.Array
    assert_same(got, xarr.asarray(call(CUBE)))


def test_einops_stays_lazy_and_takes_traced_arrays() -> None:
    x = xarr.arange(6.0).reshape(2, 3) * 2
    y = einops.rearrange(x, "a b -> b a")
    assert not y.is_evaluated
    transposed = xarr.jit(lambda v: einops.rearrange(v, "a b -> b a"))(x)
    assert_same(transposed, y)
    assert einops.parse_shape(x, "a _") == {"a": 2}
    assert type(einops.asnumpy(x)) is np.ndarray


def test_einops_knows_what_floating_point_is() -> None:
    half = xarr.ones((2, 3), dtype="bfloat16")
    assert_same(einops.reduce(half, "a b -> a", "mean"), xarr.ones(2, dtype="bfloat16"))
    with pytest.raises(NotImplementedError, match="reduce_mean is not available for non-floating tensors"):
        einops.reduce(xarr.ones((2, 3), dtype="int32"), "a b -> a", "mean")


def test_einops_tells_numpy_and_xarr_apart() -> None:
    assert type(einops.rearrange(CUBE, "a b c -> c a b")) is np.ndarray
    backend = xarr.einops_backend.XarrBackend()
    assert not backend.is_appropriate_type(CUBE)
    assert_same(backend.from_numpy(CUBE), xarr.asarray(CUBE))
    assert_same(backend.arange(2, 5), xarr.arange(2, 5))


def test_pandas_holds_the_values() -> None:
    x = xarr.arange(3) * 2
    for made in (pd.Series(x), pd.Series(np.asarray(x)), pd.Series(pd.Index(x))):
        assert made.dtype == np.int64
        assert made.tolist() == [0, 2, 4]
    table = pd.DataFrame({"x": x, "y": x / 2})
    assert table.dtypes.tolist() == [np.int64, np.float64]
    assert table["y"].tolist() == [0.0, 1.0, 2.0]
    assert pd.DataFrame(xarr.asarray(CUBE[0])).shape == (3, 4)


def test_pandas_computes_with_arrays_and_back() -> None:
    x, series = xarr.arange(3), pd.Series([0.5, 1.5, 2.5], index=["a", "b", "c"])
    for result in (series + x, x + series):
        pd.testing.assert_series_equal(result, pd.Series([0.5, 2.5, 4.5], index=["a", "b", "c"]))
    assert_same(xarr.asarray(series), xarr.asarray([0.5, 1.5, 2.5]))
    assert series.where(x > 0).isna().tolist() == [True, False, False]
    assert series.iloc[x[1:]].tolist() == [1.5, 2.5]


@pytest.fixture
def axes() -> Any:
    with matplotlib.rc_context({"backend": "agg"}):
        figure, axes = plt.subplots()
        yield axes
        figure.canvas.draw()
        plt.close(figure)


def test_lines_of_matplotlib(axes: Any) -> None:
    x = xarr.linspace(0, 1, 5)
    (line,) = axes.plot(x, x**2)
    np.testing.assert_array_equal(line.get_xydata(), np.stack([x, x**2], axis=1))
    assert len(axes.plot(xarr.asarray(CUBE[0]))) == 4
    axes.errorbar(x, x, yerr=x)
    axes.fill_between(x, x, 2 * x)


def test_images_of_matplotlib(axes: Any) -> None:
    np.testing.assert_array_equal(axes.imshow(xarr.asarray(CUBE[0])).get_array(), CUBE[0])
    colours = xarr.asarray(CUBE[:, :, :3]) / 24
    np.testing.assert_array_equal(axes.imshow(colours).get_array(), CUBE[:, :, :3] / 24)
    axes.contourf(xarr.asarray(CUBE[0]))
    axes.pcolormesh(xarr.asarray(CUBE[0]))


def test_points_and_counts_of_matplotlib(axes: Any) -> None:
    x = xarr.linspace(0, 1, 5)
    np.testing.assert_array_equal(axes.scatter(x, x, c=x, s=x * 9).get_sizes(), x * 9)
    counts, _, _ = axes.hist(x, bins=2)
    assert np.asarray(counts).tolist() == [2, 3]


def test_bars_of_matplotlib(axes: Any) -> None:
    x = xarr.linspace(0, 1, 3)
    assert [bar.get_height() for bar in axes.bar(x, x**2)] == [0, 0.25, 1]
    assert [bar.get_width() for bar in axes.barh(x, 2 * x, color=["r", "g", "b"])] == [0, 1, 2]


def test_points_in_space_of_matplotlib() -> None:
    x = xarr.linspace(0, 1, 3)
    figure = plt.figure()
    axes = figure.add_subplot(projection="3d")
    points = axes.scatter(x, x, x**2)
    assert np.ma.getdata(points._offsets3d[2]).tolist() == [0, 0.25, 1]
    plt.close(figure)


def test_what_is_no_number_stays_numpys_in_broadcast_arrays() -> None:
    x = xarr.arange(6).reshape(2, 3)
    rows, nothing, texts, numbers = np.broadcast_arrays(x[:1], None, ["a", "b", "c"], x)
    assert_same(rows, xarr.broadcast_to(x[:1], (2, 3)))
    assert_same(numbers, x)
    assert nothing.tolist() == [[None] * 3] * 2
    assert texts.tolist() == [["a", "b", "c"]] * 2
    with pytest.raises(ValueError, match="shape"):
        np.broadcast_arrays(x, None, ["a", "b"])


@pytest.mark.parametrize("asked", [np.may_share_memory, np.shares_memory])
def test_no_array_shares_memory_with_another_one(asked: Any) -> None:
    x = xarr.arange(3)
    assert asked(x, x) is False
    assert asked(x, np.arange(3)) is False
    # A caller such as scikit-learn asks whether it may write into the second.
    assert asked(x, np.asarray(x)) is True
    assert asked(np.array(x), x) is False


@pytest.mark.parametrize(
    ("hint", "holds"),
    [
        (jaxtyping.Float[xarr.Array, "a b"], True),
        (jaxtyping.Float64[xarr.Array, "2 *rest"], True),
        (jaxtyping.Num[xarr.Array, "..."], True),
        (jaxtyping.Float[xarr.Array, "a a"], False),
        (jaxtyping.Float[xarr.Array, "a"], False),
        (jaxtyping.Int[xarr.Array, "a b"], False),
        (jaxtyping.Float32[xarr.Array, "a b"], False),
        (jaxtyping.Float[np.ndarray, "a b"], False),
    ],
    ids=str,
)
def test_jaxtyping(hint: Any, holds: bool) -> None:
    x = xarr.zeros((2, 3)) + 1.0
    assert isinstance(x, hint) is holds
    assert not x.is_evaluated


@pytest.mark.parametrize(
    ("dtype", "hint"),
    [
        ("bool", jaxtyping.Bool),
        ("uint8", jaxtyping.UInt8),
        ("int64", jaxtyping.Integer),
        ("complex64", jaxtyping.Complex64),
        ("bfloat16", jaxtyping.BFloat16),
        ("float8_e4m3fn", jaxtyping.Float8e4m3fn),
    ],
)
def test_jaxtyping_knows_the_element_types(dtype: str, hint: Any) -> None:
    assert isinstance(xarr.zeros(3, dtype=dtype), hint[xarr.Array, "n"])
    assert not isinstance(np.zeros(3), hint[xarr.Array, "n"])


def test_jaxtyping_checks_a_function() -> None:
    @jaxtyping.jaxtyped(typechecker=None)
    def is_transposed(x: Any, y: Any) -> bool:
        ours, theirs = jaxtyping.Shaped[xarr.Array, "a b"], jaxtyping.Shaped[xarr.Array, "b a"]
        return isinstance(x, ours) and isinstance(y, theirs)

    x = xarr.zeros((2, 3))
    assert is_transposed(x, x.T)
    assert not is_transposed(x, x)


@pytest.mark.parametrize(
    "other", [range(3), array("d", [0, 1, 2]), bytearray(b"\0\1\2"), UserList([0, 1, 2])]
)
def test_sequences_of_numbers_equal_these(other: Any) -> None:
    x = xarr.asarray(np.array([0.0, 5.0, 2.0]))
    assert_same(x == other, np.array([True, False, True]))
    assert_same(x != other, np.array([False, True, False]))


@pytest.mark.parametrize("number", [Decimal(1), Fraction(1)])
def test_numbers_of_other_kinds_are_refused_instead_of_different(number: Any) -> None:
    x = xarr.asarray(np.array([0.0, 1.0]))
    for compare in (operator.eq, operator.ne):
        with pytest.raises(InputError, match=f"Python objects \\({type(number).__name__}\\)"):
            compare(x, number)
