"""The machine code of methods for small arrays: where it may be made, what it reads, and which of it is there.

What the methods compute is compared in `tests/arrays/test_native_methods.py`, calls of NumPy's functions in
`tests/calls/test_host_functions.py`.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.calls.concrete_values import small_value
from xarr.calls.host_functions import ROWS, HostFunction
from xarr.errors import BackendError
from xarr.runtime.handles import Handle

pytest.importorskip("llvmlite")

from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.compiled.small_arrays import (
    complex_division,
    host_calls,
    host_checks,
    host_operands,
    methods,
    objects,
    operator_rows,
    operators,
    selections,
    shapes,
    subscripts,
    unary,
)

USUAL: Any = SimpleNamespace(context=object(), cls=xarr.Array)


def test_objects_are_as_expected_where_arrays_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(struct_offsets, "obstacle", lambda: None)
    assert methods.obstacle(USUAL) is None
    assert "warnings" in (methods.obstacle(SimpleNamespace(context=None)) or "")  # type: ignore[arg-type]
    other: Any = SimpleNamespace(context=object(), cls=SimpleNamespace)
    assert methods.obstacle(other) == "classes have another layout"
    monkeypatch.setattr(methods.sys, "byteorder", "big")
    assert "little-endian" in (methods.obstacle(USUAL) or "")


def test_another_layout_is_an_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(struct_offsets, "obstacle", lambda: None)
    for name, wrong in (
        ("SLICE", objects.SLICE + 8),
        ("_RANK", objects._RANK + 4),
        ("_BASE", objects._DESCR),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(objects, name, wrong)
            assert methods.obstacle(USUAL) == "objects have another layout", name
    monkeypatch.setattr(struct_offsets, "obstacle", lambda: "off")
    assert methods.obstacle(USUAL) == "off"


def test_fields_are_looked_for_in_a_sample() -> None:
    offsets = methods.field_offsets(xarr.Array, methods.FIELDS)
    assert offsets.keys() == {*methods.FIELDS}
    assert len({*offsets.values()}) == len(offsets) and max(offsets.values()) < xarr.Array.__basicsize__
    assert methods.field_offsets(Handle, methods.FIELDS).keys() == offsets.keys()


def test_kinds_of_elements_are_told_apart_by_bits() -> None:
    assert host_calls.kind_mask("d") == 1 << objects.KINDS["float64"]
    assert host_calls.kind_mask("dl?") == sum(
        1 << objects.KINDS[kind] for kind in ("float64", "int64", "bool")
    )
    assert [*objects.KINDS][:3] == ["float64", "int64", "bool"]
    for kind in objects.SCALAR_KINDS:
        assert type(np.zeros(1, kind)[0]) is np.dtype(kind).type and np.dtype(kind).isbuiltin


@pytest.mark.implicit
def test_zeros_are_looked_for_among_the_operands_that_there_are(machine_code_methods: None) -> None:
    """Behind them on the stack lies what the call before has left there: an array that is freed, at times."""
    zeros, negative = xarr.asarray([0.0, 5.0]), xarr.asarray([-0.0, 9.0])
    for each in (zeros, negative):
        small_value(each)
    host = HostFunction(ROWS["clip"]._replace(call=np.ndarray.clip), is_for_python=False)
    nothing, result = map(host.run, [(zeros, zeros, negative), (zeros, zeros)], [{}, {}])
    assert nothing is None
    assert_same(result, np.array([0.0, 5.0]))


def test_every_operator_has_its_methods() -> None:
    names = methods.names()
    assert len({*names}) == len(names)
    for operator in operator_rows.OPERATORS:
        assert f"__{operator.name}__" in names
        assert (f"__i{operator.name}__" in names) == (operator.number is None)
    assert {*unary.METHODS, "__getitem__", "__setitem__"} <= {*names}


def test_the_text_has_a_function_for_each_method() -> None:
    fields = dict.fromkeys(methods.all_offsets(xarr.Array), 16)
    text = methods.module_text([*methods.names()], ["sum"], fields, xarr.Array, 64)
    for name in ("__add__", "__getitem__", "__setitem__", "__abs__", "sum"):
        assert f"\ndef method_{name}(" in text
    own = operators.compute_text(operator_rows.OPERATORS[0])
    parts = [
        selections.SELECTING,
        shapes.SHAPES,
        host_checks.CHECKS,
        host_operands.OPERANDS,
        host_calls.CALLS,
    ]
    for part in (*parts, complex_division.DIVISION, subscripts.subscript_text(), own):
        (first, *_) = re.findall(r"^def (\w+)\(", part, re.M)
        assert f"\ndef {first}(" in text
    assert unary.method_text("__neg__", 8).count("(state + 8)") == 1


def test_an_unknown_name_in_capital_letters_is_an_object_outside_that_llvm_refuses() -> None:
    text = objects.objects(1) + compile_functions("def f() -> ptr:\n    return UNKNOWN\n")
    with pytest.raises(BackendError, match="UNKNOWN"):
        llvm_jit.assemble(text)
