"""Names that NumPy programs use beside functions: scalar classes, settings of printing and of errors."""

import subprocess
import sys

import numpy as np
import pytest

import xarr
from xarr.errors import AxisError, DTypeError, InputError, ShapeError, TracedValueError
from xarr.numpy_api.data_types import scalar_types
from xarr.numpy_api.input_output import text as printing
from xarr.numpy_api.mathematics import float_errors


@pytest.mark.parametrize("name", scalar_types.__all__)
def test_scalar_classes_are_numpys(name):
    assert getattr(xarr, name) is getattr(np, name)


def test_arrays_are_instances_of_ndarray():
    assert isinstance(xarr.ones(2), xarr.ndarray)
    assert not isinstance(np.ones(2), xarr.ndarray)


def test_constants():
    assert xarr.newaxis is None
    assert (xarr.euler_gamma, xarr.pi, xarr.e, xarr.inf) == (np.euler_gamma, np.pi, np.e, np.inf)


@pytest.mark.parametrize(
    "narrow", [xarr.bfloat16, xarr.float8_e4m3fn, xarr.float8_e5m2, np.dtype("bfloat16")], ids=repr
)
def test_narrow_floats_are_floating(narrow):
    assert xarr.issubdtype(narrow, xarr.floating)
    assert xarr.issubdtype(narrow, xarr.number)
    assert xarr.issubdtype(narrow, narrow)
    assert not xarr.issubdtype(narrow, xarr.integer)
    assert not xarr.issubdtype(narrow, xarr.float16)
    assert not xarr.issubdtype(xarr.float16, narrow)
    assert xarr.common_type(xarr.ones(2, narrow)) is np.dtype(narrow).type


@pytest.mark.usefixtures("on_numpy")
def test_settings_of_printing_are_numpys():
    x = xarr.asarray([1.23456789, 1e-9])
    with xarr.printoptions(precision=2, suppress=True):
        assert repr(x) == "Array([1.23, 0.  ], dtype=float64)"
        assert xarr.get_printoptions() == np.get_printoptions()
        assert (
            repr(xarr.arange(9.0)) == repr(np.arange(9.0)).replace("array", "Array")[:-1] + ", dtype=float64)"
        )
    with np.printoptions(threshold=3, edgeitems=1):
        assert repr(xarr.arange(9)) == "Array([0, ..., 8], dtype=int64)"
    before = xarr.get_printoptions()["linewidth"]
    try:
        xarr.set_printoptions(linewidth=20)
        assert str(xarr.arange(9)) == str(np.arange(9))
    finally:
        xarr.set_printoptions(linewidth=before)


@pytest.mark.usefixtures("on_numpy")
def test_texts_of_arrays():
    x = xarr.asarray([1.23456789, 20.0])
    assert xarr.array_repr(x, precision=2) == "Array([ 1.23, 20.  ], dtype=float64)"
    assert xarr.array_repr(x) == repr(x)
    assert xarr.array_str(x, precision=2) == "[ 1.23 20.  ]"
    assert xarr.jit(lambda x: x if "traced" in xarr.array_repr(x) + xarr.array_str(x) else -x)(x)[0] > 0
    with pytest.raises(TracedValueError, match="asked for"):
        xarr.jit(lambda x: xarr.array2string(x))(x)


def test_error_states_hold_for_numpy():
    with xarr.errstate(divide="ignore", over="warn"):
        assert np.geterr()["divide"] == "ignore"
        assert xarr.geterr()["over"] == "warn"
        with xarr.errstate(all="ignore"):
            assert xarr.asarray(1.0) / 0 == np.inf
    before = np.geterr()
    assert xarr.seterr(divide="ignore") == before
    xarr.seterr(**before)
    assert np.geterr() == before

    @xarr.errstate(invalid="ignore")
    def action(depth: int) -> str:
        return np.geterr()["invalid"] if depth == 0 else action(depth - 1)

    assert action(2) == "ignore"
    assert np.geterr() == before


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("xarr.errstate(divide='raise')", InputError, "'ignore' or 'warn' for divide"),
        ("xarr.errstate(call=print)", InputError, "calls no function"),
        ("xarr.seterr(all='log')", InputError, "isfinite"),
        ("xarr.issubdtype('int3', xarr.integer)", DTypeError, "wanted two types"),
        ("xarr.common_type(xarr.ones(2, bool))", DTypeError, "numbers, got bool"),
        ("xarr.min_scalar_type('text')", DTypeError, "element type"),
        ("xarr.size([1], 1)", AxisError, "out of range"),
        ("xarr.array2string([[1], [2, 3]])", InputError, "ragged"),
        ("xarr.shape(xarr.lax.set_dimension_size(xarr.ones(3), 2, 0))", ShapeError, "live size"),
    ],
)
def test_refusals(text, error, words):
    with pytest.raises(error, match=words):
        eval(text)


def test_modules_say_all_they_take_from_numpy():
    for module in (float_errors, printing, scalar_types):
        assert sorted(module.__all__) == module.__all__


def test_names_are_found_without_anything_imported_before():
    code = "import xarr; assert xarr.double(2) == 2 and xarr.ndarray is xarr.Array; print(xarr.int_)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "int64" in run.stdout
