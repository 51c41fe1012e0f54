"""Each NumPy function of the coverage page beside NumPy's own, by the records of `tests/numpy_records`."""

import numpy as np
import pytest

import xarr
from tests.support import numpy_records
from tests.support.numpy_records import Record, combinations, records, signature_difference, try_beside_numpy

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


of_this_numpy = pytest.mark.skipif(numpy_records.OLDER, reason="the records are of NumPy 2.4")


@of_this_numpy
@pytest.mark.implicit
@pytest.mark.parametrize("name", records())
def test_function_gives_what_numpys_gives(name):
    record = records()[name]
    ran = {
        text
        for text in record.expressions
        for shape, dtype in combinations(record)
        if try_beside_numpy(text, record, shape, dtype)
    }
    assert ran == set(record.expressions), f"NumPy refuses {set(record.expressions) - ran} for all inputs"


@of_this_numpy
@pytest.mark.parametrize("name", records())
def test_function_takes_numpys_parameters(name):
    difference = signature_difference(name)
    assert not difference or records()[name].signature, difference


def test_each_dtype_and_each_shape_is_tried(monkeypatch):
    record = Record(())
    monkeypatch.delenv("NUMPY_RECORDS", raising=False)
    some = set(combinations(record))
    assert {shape for shape, _ in some} == set(record.shapes)
    assert {dtype for _, dtype in some} == set(record.dtypes)
    monkeypatch.setenv("NUMPY_RECORDS", "all")
    assert len(set(combinations(record))) == len(record.shapes) * len(record.dtypes)


def test_a_wrong_result_shows(monkeypatch):
    monkeypatch.setattr(xarr, "array_equal", lambda x, y, equal_nan=False: xarr.asarray(True))
    with pytest.raises(AssertionError):
        try_beside_numpy("xp.array_equal(x, y)", Record((), inputs=2), (3,), "float64")


def test_a_missing_refusal_shows(monkeypatch):
    monkeypatch.setattr(xarr, "sum", lambda x, axis=None: x)
    with pytest.raises(AssertionError, match="NumPy refuses this"):
        try_beside_numpy("xp.sum(x, axis=3)", Record(()), (3,), "float64")


def test_a_missing_parameter_shows(monkeypatch):
    monkeypatch.setattr(xarr, "median", lambda a, axis=None: a, raising=False)
    assert "keepdims" in signature_difference("median")


def test_two_records_of_one_name_are_refused(monkeypatch, tmp_path):
    for name in ("logic", "logic_"):
        (tmp_path / f"{name}.py").touch()
    records.cache_clear()
    monkeypatch.setattr(numpy_records, "FOLDER", tmp_path)
    monkeypatch.setattr(
        numpy_records.importlib, "import_module", lambda _: type("M", (), {"RECORDS": {"f": None}})
    )
    with pytest.raises(ValueError, match="has a record already"):
        records()
    records.cache_clear()


@of_this_numpy
def test_records_name_functions_of_numpy():
    for name in records():
        assert hasattr(numpy_records.attribute(np, name), "__doc__")
