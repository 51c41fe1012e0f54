"""What NumPy programs write between the array functions: lists times counts, bytes, cuts, slices in loops."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import partial
from typing import Any, get_origin

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.checkout import CHECKOUT
from xarr import lax
from xarr.errors import BroadcastError, InputError, ShapeError, TracedValueError, ValueRangeError


@pytest.mark.parametrize("sequence", [[0], [1, "a"], (None, 2), "ab", []], ids=repr)
def test_a_sequence_is_repeated_by_a_count_as_by_numpys_scalars(sequence: Any) -> None:
    count = xarr.max(xarr.asarray([2, 3, 1]))
    assert sequence * count == count * sequence == sequence * 3


@pytest.mark.implicit
@pytest.mark.parametrize("factor", [2.5, [2], [[2, 3]], [True]], ids=repr)
def test_a_list_is_multiplied_by_what_is_no_count(factor: Any) -> None:
    argument, host = xarr.asarray(factor), np.asarray(factor)
    for result, wanted in (([3] * argument, [3] * host), (argument * [3], host * [3])):
        assert_same(result, wanted)


def test_a_traced_count_repeats_nothing() -> None:
    with pytest.raises(TracedValueError, match="static_argnames"):
        xarr.jit(lambda n: [0] * n)(3)


@pytest.mark.parametrize("dtype", ["int32", "float64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,)], ids=str)
def test_bytes_are_those_of_the_elements(shape: tuple[int, ...], dtype: str) -> None:
    host = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype) + np.ones((), dtype)
    # Integers of rank 0 are counts of zero bytes; NumPy 2.1 still takes bools for such.
    wanted = host.tobytes() if dtype == "bool" else bytes(host)
    assert bytes(xarr.asarray(host)) == wanted


@pytest.mark.parametrize("cuts", [[2, 5], [0, 0], [9], [], 3, [-1]], ids=str)
def test_cuts_may_be_arrays(cuts: Any) -> None:
    x = np.arange(6.0)
    for name in ("split", "array_split", "hsplit"):
        results = getattr(xarr, name)(xarr.asarray(x), xarr.asarray(cuts, dtype="int64"))
        wanted = getattr(np, name)(x, np.asarray(cuts, dtype=np.int64))
        for one, other in zip(results, wanted, strict=True):
            assert_same(one, other)


def test_a_shape_may_be_an_array() -> None:
    x = xarr.arange(6)
    sizes: Any = xarr.asarray([-1, 2])
    assert xarr.reshape(x, sizes).shape == x.reshape(sizes).shape == (3, 2)
    assert x.reshape(xarr.asarray(6)).shape == (6,)


@pytest.mark.parametrize("package", ["", "lax", "linalg", "random"])
def test_public_names_are_exported_to_type_checkers(package: str) -> None:
    """PEP 484: what is imported is exported by `from m import x as x` alone, not under another name."""
    text = (CHECKOUT / "xarr" / package / "__init__.py").read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    renamed = [
        (one.name, one.asname) for node in imports for one in node.names if one.asname not in (None, one.name)
    ]
    assert [name for _, name in renamed if name and not name.startswith("_")] == []


def test_annotations_that_run_may_have_parameters() -> None:
    array: Any = xarr.ndarray
    assert get_origin(array[Any, np.dtype[np.float64]]) is array


# --- refusals, whose fixes work ------------------------------------------------------------------------


def assert_refused(kind: type[Exception], told: str, call: Callable[[], object]) -> None:
    with pytest.raises(kind, match=re.escape(told)):
        call()


def test_a_slice_with_bounds_of_a_loop_names_dynamic_slice() -> None:
    x = xarr.arange(6.0)
    for write in (False, True):

        def body(i: Any, total: Any, write: bool = write) -> Any:
            if write:
                total[i : i + 3] = 1
                return total
            return total + x[i : i + 3]

        assert_refused(
            TracedValueError,
            "a slice in a traced function",
            partial(lax.fori_loop, 0, 4, body, xarr.zeros(3)),
        )

    def windows(start: Any) -> tuple[Any, Any]:
        return lax.dynamic_slice(x, (start,), (3,)), x[start + xarr.arange(3)]

    run: Any = xarr.jit(windows)
    by_slice, by_array = run(2)
    assert by_slice.tolist() == by_array.tolist() == [2, 3, 4]


def test_reading_a_traced_mask_to_add_names_at() -> None:
    def add(x: Any) -> Any:
        x = x.copy()
        x[x > 1] += 5
        return x

    assert_refused(TracedValueError, "x.at[mask].add(v)", lambda: xarr.jit(add)(xarr.arange(4)))
    result = xarr.jit(lambda x: x.at[x > 1].add(5))(xarr.arange(4))
    assert result.tolist() == [0, 1, 7, 8]


def test_comparisons_without_parentheses_are_told_so() -> None:
    x = xarr.arange(4.0)
    assert_refused(TypeError, "(x > 0) & (y > 0)", lambda: x > 1 & x < 3)
    assert_refused(ShapeError, "(0 < x) & (x < 1)", lambda: 0 < x < 3)
    assert ((x > 1) & (x < 3)).tolist() == [False, False, True, False]


def test_deleting_and_walking_and_formatting_say_what_would_work() -> None:
    x = xarr.arange(3.0) / 7

    def delete() -> None:
        del x[0]

    assert_refused(ValueRangeError, "xarr.delete(x, i)", delete)
    assert_refused(InputError, "nothing to iterate over", lambda: iter(x[0]))
    assert_refused(InputError, "xarr.array2string(x, precision=3)", lambda: f"{x:.3f}")
    assert xarr.array2string(x, precision=3) == "[0.    0.143 0.286]"


@pytest.mark.implicit
@pytest.mark.parametrize(
    ("index", "shape", "told"),
    [
        (np.s_[0], (3,), "shape (4,), the value has shape (3,)"),
        (np.s_[:, :], (3,), "value[:, None] would fit"),
        (np.s_[:2], (4, 2), "value.T would fit"),
        (np.s_[0, 0], (3,), "shape (), the value has shape (3,)"),
        (np.s_[:1], (3, 4), "shape (1, 4), the value has shape (3, 4)"),
        (np.s_[[0, 2], 1:], (2, 4), "shape (2, 3), the value has shape (2, 4)"),
        (np.s_[[0, 2]], (2, 2, 4), "shape (2, 4), the value has shape (2, 2, 4)"),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_its_index(index: Any, shape: tuple[int, ...], told: str) -> None:
    x, value = xarr.zeros((3, 4)), xarr.ones(shape)
    assert_refused(BroadcastError, told, lambda: x.__setitem__(index, value))
    assert_refused(BroadcastError, told, lambda: x.at[index].add(value))
    fix = re.search(r"value\S* would fit", told)
    if fix:
        x[index] = eval(fix[0].removesuffix(" would fit"), {"value": value})
        assert float(x.sum()) == x[index].size


@pytest.mark.parametrize("name", ["broadcast_to", "full"])
def test_not_the_shape_but_the_array_is_to_change(name: str) -> None:
    x = xarr.ones((3, 4))
    with pytest.raises(BroadcastError, match=r"array\.T would fit") as caught:
        xarr.broadcast_to(x, (4, 3)) if name == "broadcast_to" else xarr.full((4, 3), x)
    assert "shape.T" not in str(caught.value)
