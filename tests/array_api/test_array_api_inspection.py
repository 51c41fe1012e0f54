"""What the library says about itself to programs that ask by the Array API standard."""

from __future__ import annotations

import numpy as np
import pytest

import xarr
from xarr.errors import BackendError, ValueRangeError

INFO = xarr.__array_namespace_info__()


def test_the_version_is_one_that_arrays_answer_to() -> None:
    assert xarr.__array_api_version__ == "2025.12"
    assert xarr.zeros(1).__array_namespace__(api_version=xarr.__array_api_version__) is xarr


def test_capabilities_are_those_of_the_default_backend() -> None:
    wanted = {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert INFO.capabilities() == wanted
    with xarr.use_backend("reference"):
        assert INFO.capabilities() == wanted


def test_arrays_can_be_made_on_every_device() -> None:
    assert INFO.default_device() in INFO.devices()
    for device in INFO.devices():
        assert xarr.zeros(2, device=device).device == device


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_default_dtypes_are_those_of_new_arrays(dtype: str) -> None:
    with xarr.config(default_dtype=dtype):
        result = INFO.default_dtypes()
        assert result["real floating"] == xarr.zeros(1).dtype == dtype
        assert result["complex floating"] == xarr.asarray(1j).dtype
        assert result["integral"] == xarr.asarray(1).dtype
        assert result["indexing"] == xarr.argmax(xarr.ones(2)).dtype


@pytest.mark.parametrize(
    "kind",
    [
        "bool",
        "signed integer",
        "unsigned integer",
        "integral",
        "real floating",
        "complex floating",
        "numeric",
        ("bool", "integral"),
        (),
    ],
    ids=str,
)
def test_dtypes_of_a_kind_agree_with_isdtype(kind: str | tuple[str, ...]) -> None:
    results = INFO.dtypes(kind=kind, device="cpu")
    assert results == {name: d for name, d in INFO.dtypes().items() if xarr.isdtype(d, kind)}
    assert all(np.dtype(name) is dtype for name, dtype in results.items())


def test_all_dtypes_of_the_standard_are_there() -> None:
    bits = (8, 16, 32, 64)
    integers = {f"{kind}{size}" for kind in ("int", "uint") for size in bits}
    assert set(INFO.dtypes()) == integers | {"bool", "float32", "float64", "complex64", "complex128"}


def test_unknown_kinds_and_devices_are_refused() -> None:
    with pytest.raises(ValueRangeError, match=r"wanted a kind of 'bool'.*got 'real'"):
        INFO.dtypes(kind="real")
    with pytest.raises(BackendError, match="no backend called 'nowhere'"):
        INFO.default_dtypes(device="nowhere")
    with pytest.raises(BackendError, match="no backend called 'nowhere'"):
        INFO.dtypes(device="nowhere")
