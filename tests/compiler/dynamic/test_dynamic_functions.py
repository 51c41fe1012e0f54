"""Every function of the NumPy level on arrays of dynamic sizes: NumPy's answer for the live part, or a refusal.

Nothing may take the bound for the size in silence, so all public functions are tried, with several
arguments each.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.dynamic import late
from xarr import lax, stablehlo
from xarr.errors import ParseError, XarrError

#: Functions of no arrays, or whose result is not one.
_OTHERS = {
    "asarray",
    "array",
    "frombuffer",
    "from_dlpack",
    "save",
    "load",
    "result_type",
    "linspace",
    "empty_like",
    "array2string",
    "array_repr",
    "array_str",
    "common_type",
    "min_scalar_type",
    "mintypecode",
    "printoptions",
}
#: Arguments after the first for functions that need them.
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "astype": (np.float32,), "broadcast_to": ((2, 5),), "clip": (1, 2), "expand_dims": (0,), "full_like": (2.0,),
    "moveaxis": (0, 0), "pad": ((1, 1),), "repeat": (2,), "reshape": (-1,), "roll": (1,), "split": ([2],),
    "swapaxes": (0, 0), "take": (np.array([0, 2]),), "tile": (2,),
}  # fmt: skip
_LIVE = 3


def functions() -> list[str]:
    names = [name for name in dir(xarr) if not name.startswith("_") and name not in _OTHERS]
    return [n for n in names if callable(getattr(np, n, None)) and not isinstance(getattr(xarr, n), type)]


def dynamic(shape: tuple[int, ...], seed: int) -> tuple[Any, Any]:
    """An Array of live size 3 in its first dimension with NaN behind it, and its live part."""
    # No two elements are equal, since NumPy's argsort leaves the order of such open.
    values = np.random.default_rng(seed).permutation(int(np.prod(shape))).reshape(shape) + 1.0
    live = values[:_LIVE].copy()
    values[_LIVE:] = np.nan
    return lax.set_dimension_size(xarr.asarray(values), late(_LIVE), 0), live


def calls(name: str, shape: tuple[int, ...]) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Arguments for xarr and for NumPy."""
    (x, live), (y, other) = dynamic(shape, 1), dynamic(shape, 2)
    yield (x,), (live,)
    yield ([x, y],), ([live, other],)
    yield (x, y), (live, other.copy())  # of some functions the second is the output
    for number in (1, 2):
        yield (x, number), (live, number)
    yield (x, *_ARGUMENTS.get(name, (-1,))), (live, *_ARGUMENTS.get(name, (-1,)))


def parts(value: Any) -> list[Any]:
    return [np.asarray(part) for part in (value if isinstance(value, tuple | list) else [value])]


def numpy_result(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """NumPy's result, or None for arguments that it does not take or that an output would be."""
    try:
        return function(*arguments)
    except (TypeError, ValueError, IndexError, AttributeError):
        return None


def settle(name: str, result: np.ndarray[Any, Any], arguments: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """`result` without what a function leaves open: partitions say nothing of the order on each side."""
    if name not in ("partition", "argpartition"):
        return result
    values = np.take_along_axis(arguments[0], result, -1) if name == "argpartition" else result
    kth = arguments[1] % values.shape[-1]
    return np.concatenate(
        [np.sort(values[..., :kth]), values[..., kth : kth + 1], np.sort(values[..., kth + 1 :])], axis=-1
    )


@pytest.mark.implicit
@pytest.mark.parametrize("shape", [(5,), (5, 2), (5, 5)], ids=str)
@pytest.mark.parametrize("name", functions())
def test_as_numpy_on_the_live_part_or_refused(name: str, shape: tuple[int, ...]) -> None:
    for arguments, live in calls(name, shape):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = numpy_result(getattr(np, name), live)
        written = wanted if isinstance(wanted, tuple) else (wanted,)
        if wanted is None or any(one is argument for one in written for argument in live[1:]):
            continue
        try:
            result = getattr(xarr, name)(*arguments)
        except XarrError:
            continue
        assert len(parts(result)) == len(parts(wanted))
        for got, want in zip(parts(result), parts(wanted), strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(settle(name, got, live), settle(name, want, live), rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["add", "mean", "std", "sum", "sort", "matmul", "concatenate", "where", "max"]
)
def test_functions_that_are_taken(name: str) -> None:
    x, live = dynamic((5, 5), 1)
    arguments: dict[str, Callable[[Any], tuple[Any, ...]]] = {
        "add": lambda v: (v, v),
        "matmul": lambda v: (v.T, v),
        "concatenate": lambda v: ([v, v],),
        "where": lambda v: (v > 2.0, v, v),
    }
    make = arguments.get(name, lambda v: (v,))
    result = getattr(xarr, name)(*make(x))
    np.testing.assert_allclose(np.asarray(result), getattr(np, name)(*make(live)), rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "count"),
    [([2, 9, 1, 7, 5], 4), ([1, 1, 0, 0, 3], 4), ([0, 1, 2, 3, 4], 3), ([1, 2, 3], 0)],
    ids=str,
)
@pytest.mark.parametrize("descending", [False, True])
def test_argsort_gives_live_indices(values: list[int], count: int, descending: bool) -> None:
    x = lax.set_dimension_size(xarr.asarray(values), xarr.asarray(count, "int32"), 0)
    live = np.array(values[:count], np.int64)
    wanted = np.argsort(-live if descending else live, stable=True)
    np.testing.assert_array_equal(np.asarray(xarr.argsort(x, descending=descending)), wanted)


@pytest.mark.parametrize("replace", [True, False])
def test_choice_refuses_dynamic_elements_and_probabilities(replace: bool) -> None:
    x = lax.set_dimension_size(xarr.arange(5.0), xarr.asarray(3, "int32"), 0)
    key = xarr.random.key(0)
    with pytest.raises(XarrError, match="choice of a dynamic array"):
        xarr.random.choice(key, x, (2,), replace)
    with pytest.raises(XarrError, match="the p of choice of a dynamic array"):
        xarr.random.choice(key, 5, (2,), replace, p=x)


# --- extremes of nothing ------------------------------------------------------------------------------

EXTREMES = ("max", "min", "ptp", "nanmax", "nanmin", "argmax", "argmin")


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("jit", [lambda f: f, xarr.jit], ids=["eager", "jit"])
def test_an_extreme_of_an_empty_live_part_is_refused_as_of_an_empty_array(
    name: str, jit: Callable[[Any], Any]
) -> None:
    reduce = jit(lambda x: getattr(xarr, name)(x))
    values = np.arange(3.0) + 5
    for size in range(4):
        x = lax.set_dimension_size(xarr.asarray(values), xarr.asarray(np.int32(size)), 0)
        if size:
            assert_same(np.asarray(reduce(x)), np.asarray(getattr(np, name)(values[:size])))
            continue
        with pytest.raises(ValueError, match=f"^{name}: wanted at least one element along axis 0") as caught:
            np.asarray(reduce(x))
        assert isinstance(caught.value, XarrError)
        with pytest.raises(ValueError):
            getattr(np, name)(values[:0])
        with pytest.raises(ValueError, match=f"^{name}: wanted at least one element along ax"):
            reduce(xarr.asarray(values[:0]))


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_extremes_of_nothing_are_refused_where_numpy_does(name: str, keepdims: bool) -> None:
    """Over each axis, and over both."""
    values = np.arange(12.0).reshape(3, 4) + 1
    axes = (0, 1) if name.startswith("arg") else (0, 1, (0, 1), None)
    for rows, columns in ((0, 0), (0, 3), (2, 0), (2, 3)):
        x = xarr.asarray(values)
        for dim, size in enumerate((rows, columns)):
            x = lax.set_dimension_size(x, xarr.asarray(np.int32(size)), dim)
        for axis in axes:
            result = getattr(xarr, name)(x, axis=axis, keepdims=keepdims)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = getattr(np, name)(values[:rows, :columns], axis=axis, keepdims=keepdims)
            except ValueError:
                with pytest.raises(ValueError, match=f"^{name}: wanted at least one element along ax"):
                    np.asarray(result)
            else:
                assert_same(np.asarray(result), np.asarray(wanted))


def test_an_extreme_of_a_dynamic_array_is_read_back_from_its_text() -> None:
    graph = xarr.lower(xarr.max, "f64[<=3]").graph
    assert str(stablehlo.parse(str(graph)).main) == str(graph)
    with pytest.raises(ParseError, match="expected one of LinAlgError, ShapeError as raises, got 'KeyError'"):
        stablehlo.parse(str(graph).replace('raises = "ShapeError"', 'raises = "KeyError"'))
