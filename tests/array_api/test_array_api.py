"""Every function of the Array API standard, 2025.12, beside NumPy: signature, element types, values.

`ARRAY_API_EXAMPLES` in the environment says how many calls of each function are drawn.
"""

from __future__ import annotations

import inspect
import math
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings, strategies as st

import xarr
from tests.support.array_api import Draw, Record, records, signatures

EXAMPLES = int(os.environ.get("ARRAY_API_EXAMPLES", "6"))
RECORDS = records()
SIGNATURES = signatures()
#: What the inspection tests try.
ELSEWHERE = {"__array_namespace_info__"}
METHODS = """
    __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__
    __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__
    __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__
    __truediv__ __xor__ __radd__ __rand__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__
    __rpow__ __rrshift__ __rsub__ __rtruediv__ __rxor__ __iadd__ __iand__ __ifloordiv__ __ilshift__
    __imatmul__ __imod__ __imul__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__ __ixor__
    T mT device dtype ndim shape size to_device
"""
DTYPES = """
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
"""


def arrays_of(value: Any, form: str) -> Any:
    """`value` with its NumPy arrays, or those in its lists and tuples, as Arrays."""
    if isinstance(value, np.ndarray):
        return xarr.asarray(value) if form == "arrays" else value.copy()
    if isinstance(value, list | tuple) and any(isinstance(item, np.ndarray) for item in value):
        return type(value)(arrays_of(item, form) for item in value)
    return value


def assert_agrees(results: Any, wanted: Any, rtol: float | None) -> None:
    """Assert the structure, shapes, element types and values of `wanted`."""
    if isinstance(wanted, dict):
        assert {name: getattr(results, name) for name in wanted} == wanted
    elif isinstance(wanted, tuple) and any(isinstance(item, np.ndarray) for item in wanted):
        assert isinstance(results, tuple)
        assert len(results) == len(wanted)
        for one, other in zip(results, wanted, strict=True):
            assert_agrees(one, other, rtol)
    elif isinstance(wanted, np.ndarray | np.generic):
        assert isinstance(results, xarr.Array)
        assert (results.shape, results.dtype) == (wanted.shape, wanted.dtype)
        assert_near(np.asarray(results), np.asarray(wanted), rtol)
    else:
        assert type(results) is type(wanted)
        assert results == wanted


def assert_near(result: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], rtol: float | None) -> None:
    if rtol is None or wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(result, wanted)
        return
    bound = rtol * float(np.finfo(wanted.dtype).eps / np.finfo(float).eps)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(result, wanted, bound, bound, equal_nan=True)


@pytest.mark.implicit
@pytest.mark.parametrize("name", sorted(RECORDS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_function_agrees_with_numpys(name: str, data: st.DataObject) -> None:
    record: Record = RECORDS[name]
    call = record.make(Draw(data.draw))
    form = data.draw(st.sampled_from(["arrays", "numpy"]))
    note(f"{name}(*{call.args}, **{call.keywords}) of {form}")
    oracle = getattr(np, name) if record.oracle is None else record.oracle
    args, keywords = arrays_of(call.args, form), {k: arrays_of(v, form) for k, v in call.keywords.items()}
    with np.errstate(all="ignore"), xarr.config(fusion="off"):
        wanted = oracle(*call.args, **call.keywords)
        assert_agrees(getattr(xarr, name)(*args, **keywords), wanted, record.rtol)


def test_every_function_of_the_standard_has_a_record() -> None:
    assert set(RECORDS) | ELSEWHERE == set(SIGNATURES)
    assert len(SIGNATURES) == 136


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_every_call_of_the_standard_is_taken(name: str) -> None:
    """Positional where the standard is positional, by the standard's names where they may be given."""
    ours = inspect.signature(getattr(xarr, name))
    theirs = SIGNATURES[name].parameters.values()
    parameters = [one for one in theirs if one.kind is not one.KEYWORD_ONLY]
    if not any(one.kind is one.VAR_POSITIONAL for one in theirs):
        ours.bind(*parameters)
    for index, one in enumerate(theirs):
        if one.kind is one.POSITIONAL_OR_KEYWORD:
            assert list(ours.parameters)[index] == one.name
        if one.kind is one.KEYWORD_ONLY:
            positional = [each for each in parameters if each.kind is not each.VAR_POSITIONAL]
            ours.bind(*positional, **{one.name: None})
        if one.kind is one.POSITIONAL_OR_KEYWORD:
            only = [each for each in parameters if each.kind is each.POSITIONAL_ONLY]
            ours.bind(*only, **{each.name: None for each in parameters if each not in only})


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_defaults_are_those_of_the_standard(name: str) -> None:
    ours = inspect.signature(getattr(xarr, name)).parameters
    for one in SIGNATURES[name].parameters.values():
        if one.default is not one.empty and one.kind is not one.POSITIONAL_ONLY:
            default = ours[one.name].default
            # None stands for the default where NumPy has another parameter for the same: ddof, kind.
            assert default == one.default or (default is None and one.name in ("correction", "stable"))


@pytest.mark.parametrize("name", METHODS.split())
def test_arrays_have_what_the_standard_gives_them(name: str) -> None:
    assert hasattr(xarr.Array, name)


def test_constants_and_dtypes_of_the_standard_are_there() -> None:
    assert (xarr.e, xarr.inf, xarr.pi, xarr.newaxis) == (math.e, math.inf, math.pi, None)
    assert math.isnan(xarr.nan)
    for name in DTYPES.split():
        assert xarr.zeros(1, dtype=getattr(xarr, name)).dtype == name


def test_a_wrong_value_shows() -> None:
    with pytest.raises(AssertionError):
        assert_agrees(xarr.ones(2), np.array([1.0, 1 + 1e-9]), 1e-12)
    with pytest.raises(AssertionError):
        assert_agrees(xarr.ones(2, dtype="float32"), np.ones(2), None)
    with pytest.raises(AssertionError):
        assert_agrees((xarr.ones(2),), (np.ones(2), np.ones(2)), None)
