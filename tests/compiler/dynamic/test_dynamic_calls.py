"""Every public function on arrays of dynamic sizes: the result for the live part, or a refusal.

A function that computes with `x.shape` takes the bound for the size, and nothing about a new function says whether
it does.  So each must have a call here: those of NumPy's surface have their records, the others those of
`tests/dynamic_calls.py`.  Live arrays of static sizes are the oracle, in NumPy or in xarr.
"""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import xarr
from tests import dynamic_calls
from tests.dynamic_calls import (
    LAX,
    LAX_WITHOUT_ARRAYS,
    OF_KEYS,
    RANDOM,
    RECORDS_WITHOUT_ARRAYS,
    SIZES,
    VARIABLES,
    WITHOUT_RECORD,
    WRITING,
)
from tests.elementwise_ops import REGULAR, types_of
from tests.support.dynamic import late
from tests.support.functions import expression
from tests.support.numpy_records import Record, inputs, records, skip_without
from xarr import lax
from xarr.communication.communicator import current_communicator
from xarr.communication.process_groups import Mesh
from xarr.errors import XarrError
from xarr.runtime.named_axes import bind_axes

Host = np.ndarray[Any, Any]
#: Elements of a buffer behind the live part.
DEAD = 2
#: What gives a shape, or asks for one to pass it on: bounds, on purpose.
READS_SIZES = re.compile(r"\.(shape|dtype|nbytes)$|[xyz](\.T)?\.(shape|size|ndim)|len\(")
REGULAR_OPS = {op.lax_name: op for op in REGULAR}


def grow(value: Host, dimension: int) -> Any:
    """`value` as an Array that is live so far in `dimension`, with NaN, True or a number behind it."""
    shape = [size + DEAD * (dim == dimension) for dim, size in enumerate(value.shape)]
    dead = np.nan if value.dtype.kind in "fc" else True if value.dtype.kind == "b" else 1
    buffer = np.full(shape, dead, value.dtype)
    buffer[tuple(slice(size) for size in value.shape)] = value
    return lax.set_dimension_size(xarr.asarray(buffer), late(value.shape[dimension]), dimension)


def leaves(value: Any) -> list[Any]:
    """The results of a call as host values, one after the other: of a dynamic Array the live part."""
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves(each)]
    return [np.asarray(value)]


def assert_live(
    call: Callable[..., Any], arguments: list[Any], wanted: list[Any], rtol: float, only_shapes: bool = False
) -> None:
    """Assert that `call` gives `wanted`, or refuses."""
    try:
        results = leaves(call(*arguments))
    except XarrError:
        return
    assert [(one.shape, one.dtype) for one in results] == [(one.shape, one.dtype) for one in wanted]
    for one, other in zip(results, wanted, strict=True):
        if one.dtype.kind in "fc" and not only_shapes:
            np.testing.assert_allclose(one, other, rtol, atol=rtol, equal_nan=True)
        elif not only_shapes:
            np.testing.assert_array_equal(one, other)


def functions_of(module: Any) -> list[str]:
    return [name for name in dir(module) if name[0] != "_" and inspect.isfunction(getattr(module, name))]


# --- functions of NumPy's surface --------------------------------------------------------------------------------


def shapes_of(record: Record) -> Iterator[tuple[int, ...]]:
    """The largest shapes of a record's with two dimensions at most, if there are, and with one."""
    ranks = {len(shape) for shape in record.shapes if shape}
    for rank in {1, max([rank for rank in ranks if rank <= 2], default=max(ranks, default=1))}:
        yield max([shape for shape in record.shapes if len(shape) == rank], key=math.prod, default=())


def try_record(record: Record) -> int:
    """Try the calls of a record on dynamic arrays and count them; AssertionError for a result of other sizes."""
    dtypes = [dtype for dtype in ("float64", "int64") if dtype in record.dtypes] or record.dtypes
    return next((count for dtype in dtypes if (count := _try_record(record, dtype))), 0)


def _try_record(record: Record, dtype: str) -> int:
    count = 0
    for shape in dict.fromkeys(shapes_of(record)):
        live = inputs(record, shape, dtype)
        for text in record.expressions:
            call = expression(text)
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = [] if READS_SIZES.search(text) else leaves(call(np, *map(np.copy, live)))
            except (ValueError, TypeError, IndexError, np.linalg.LinAlgError):
                continue  # NumPy refuses the call for this shape
            for dimension in range(len(shape)) if wanted else ():
                arrays = [xarr, *[grow(value, dimension) for value in live]]
                assert_live(call, arrays, wanted, record.tolerance(dtype) or 1e-12)
                count += re.search(r"\b[xyz]\b", text) is not None
    return count


@pytest.mark.implicit
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", records())
def test_records_see_the_live_part_or_are_refused(name: str) -> None:
    skip_without(name)
    assert (try_record(records()[name]) > 0) == (name not in RECORDS_WITHOUT_ARRAYS)


# --- the others --------------------------------------------------------------------------------------------------


def along_axis(call: Callable[[], Any]) -> Any:
    """The result of a collective over the axis i, which has one member."""
    with bind_axes(Mesh((("i", 1),))):
        return call()


@cache
def scope(dimension: str) -> dict[str, Any]:
    """The names in expressions, with variables that are dynamic in `dimension`, in none for ""."""
    names: dict[str, Any] = {
        "lax": lax,
        "xarr": xarr,
        "np": np,
        "random": xarr.random,
        "key": xarr.random.key(0),
        "along_axis": along_axis,
        "fetch": lambda: current_communicator().fetch(),
    }
    names |= SIZES | ({dimension: SIZES[dimension] + DEAD} if dimension else {})
    for name, (dimensions, _) in VARIABLES.items():
        value, parts = dynamic_calls.sample(name), dimensions.split()
        names[name] = grow(value, parts.index(dimension)) if dimension in parts else xarr.asarray(value)
    return names


def try_calls(calls: tuple[str, ...], only_shapes: bool = False) -> None:
    """Assert that expressions give for dynamic variables what they give for live ones, or are refused."""
    for text in calls:
        wanted = leaves(eval(text, dict(scope(""))))
        for dimension in SIZES:
            assert_live(eval, [text, dict(scope(dimension))], wanted, 1e-12, only_shapes)


def regular_call(name: str) -> str:
    """The call of a regular element-wise function, on variables of a type that it takes."""
    op = REGULAR_OPS[name]
    pairs = {VARIABLES[pair[0]][1]: pair for pair in ("zz", "ij", "xy")}
    one, other = pairs[types_of(op, tuple(pairs))[-1]]
    return f"lax.{name}({one})" if issubclass(op, xarr.ir.ops.Unary) else f"lax.{name}({one}, {other})"


def lax_calls(name: str) -> tuple[str, ...]:
    """The calls to try of a function of lax; AssertionError for one of which nobody says any."""
    if name in REGULAR_OPS:
        return (regular_call(name),)
    assert name in LAX, f"lax.{name} has no call on dynamic arrays: add one to LAX of tests/dynamic_calls.py"
    return LAX[name]


@pytest.mark.parametrize("name", [name for name in functions_of(lax) if name not in LAX_WITHOUT_ARRAYS])
def test_functions_of_lax_see_the_live_part_or_are_refused(name: str) -> None:
    try_calls(lax_calls(name))


@pytest.mark.parametrize("name", RANDOM)
def test_distributions_have_live_sizes_or_are_refused(name: str) -> None:
    """Which numbers are drawn depends on the bounds."""
    try_calls(RANDOM[name], only_shapes=True)


@pytest.mark.implicit
@pytest.mark.parametrize("name", WRITING)
def test_other_functions_see_the_live_part_or_are_refused(name: str) -> None:
    try_calls(WRITING[name])


# --- the checks can fail -------------------------------------------------------------------------------------------


def test_a_function_that_computes_with_bounds_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xarr, "mean", lambda x: lax.div(xarr.sum(x), float(math.prod(x.shape))))
    with pytest.raises(AssertionError):
        try_record(Record(("xp.mean(x)",), special=False))
    monkeypatch.setattr(xarr, "zeros_like", lambda x: lax.full(x.shape, 0.0))
    with pytest.raises(AssertionError):
        try_record(Record(("xp.zeros_like(x)",)))


def test_a_function_of_lax_that_computes_with_bounds_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lax, "careless", lambda x: lax.slice(x, (x.shape[0] - 1, 0), x.shape), raising=False)
    with pytest.raises(AssertionError, match="careless has no call on dynamic arrays"):
        lax_calls("careless")
    with pytest.raises(AssertionError):
        try_calls(("lax.careless(x)",))


def test_every_function_that_numpy_has_is_tried() -> None:
    own = {name for name in functions_of(xarr) if callable(getattr(np, name, None))}
    for module in (xarr.linalg, xarr.fft):
        own |= {f"{module.__name__.removeprefix('xarr.')}.{name}" for name in functions_of(module)}
    assert own - set(records()) - set(WRITING) == WITHOUT_RECORD


def test_every_distribution_with_parameters_is_tried() -> None:
    signatures = {
        name: str(inspect.signature(getattr(xarr.random, name))) for name in functions_of(xarr.random)
    }
    with_arrays = {name for name, signature in signatures.items() if "ArrayLike" in signature}
    assert with_arrays - OF_KEYS == set(RANDOM) - {"shuffle"}


def test_records_without_arrays_are_known() -> None:
    assert set(records()) > RECORDS_WITHOUT_ARRAYS
    assert try_record(Record(("xp.arange(3)",))) == 0
