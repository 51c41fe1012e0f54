"""Invalid calls of the element-wise, moving and creating functions: what is refused, and by which label.

Each test that is named after a label provokes the constraint of that name in the docstring of the operation.
What jax.lax refuses too is checked beside it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tests.lax_oracle import is_in_jax, jax_function
from tests.lax_values import BOOLS, COMPLEXES, FLOATS, INTS, dtype_of, fill
from tests.support.checkout import CHECKOUT
from tests.support.operations import own_operations
from xarr import lax
from xarr.dtypes import float32, int32
from xarr.errors import DTypeError, InputError, ShapeError, ValueRangeError, XarrError
from xarr.ir import ops
from xarr.ir.graph import Node, parameter
from xarr.ir.op import Op
from xarr.ir.ops.elementwise import Binary, Unary
from xarr.ir.types import TensorType

ALL: Final = BOOLS + INTS + FLOATS + COMPLEXES
F: Final = np.ones((2, 3), np.float32)
I: Final = np.ones((2, 3), np.int32)  # noqa: E741


def assert_refused(
    name: str, *call: Any, label: str | None = None, by_jax: bool = True, **options: Any
) -> None:
    """Both libraries refuse the call; xarr with the label in its message."""
    match = re.escape(f"{name} [{label}]") if label else None
    with pytest.raises(XarrError, match=match):
        getattr(lax, name)(*call, **options)
    if by_jax:
        with pytest.raises((TypeError, ValueError, IndexError, ArithmeticError)):
            jax_function(name)(*call, **options)


# --- element-wise -------------------------------------------------------------------------------------------

#: What jax.lax takes by a formula of its own, and what xarr.lax takes beyond the operation.
_JAX_TAKES: Final = {("atan2", name) for name in COMPLEXES}
_XARR_TAKES: Final = {("sign", name) for name in INTS if name.startswith("u")}

_WRONG_DTYPES: Final = sorted(
    {
        (cls.lax_name, cls.arity, dtype)
        for family in (Unary, Binary)
        for cls in own_operations(family)
        if cls is not ops.Compare
        for dtype in ALL
        if dtype_of(dtype) not in cls.accepts and (cls.lax_name, dtype) not in _XARR_TAKES
    }
)


@pytest.mark.parametrize(("name", "arity", "dtype"), _WRONG_DTYPES)
def test_elementwise_c1(name: str, arity: int, dtype: str) -> None:
    by_jax = is_in_jax(name) and (name, dtype) not in _JAX_TAKES
    assert_refused(name, *[fill((2,), dtype_of(dtype))] * arity, label="C1", by_jax=by_jax)


_BINARY_NAMES: Final = sorted({cls.lax_name for cls in own_operations(Binary) if cls is not ops.Compare})


@pytest.mark.parametrize("name", [*_BINARY_NAMES, "eq", "ge", "gt", "le", "lt", "ne", "eq_to", "lt_to"])
@pytest.mark.parametrize(
    "pair", [("float32", "float64"), ("int32", "int8"), ("int32", "float32"), ("int8", "uint8")]
)
def test_elementwise_c2(name: str, pair: tuple[str, str]) -> None:
    x, y = (fill((2,), dtype_of(dtype)) for dtype in pair)
    assert_refused(name, x, y, label="C2", by_jax=not name.endswith("_to"))


def test_elementwise_c3() -> None:
    """The lax functions align shapes first and raise [B1]-[B5]; the operation itself aligns nothing."""
    operands = tuple(parameter(TensorType(shape, np.dtype(float32))) for shape in ((2,), (3,)))
    with pytest.raises(ShapeError, match=r"add \[C3\]"):
        Node(ops.Add(), operands)
    assert_refused("clamp", F, F[:1], F, label="C1")


@pytest.mark.parametrize("name", ["ge", "gt", "le", "lt"])
@pytest.mark.parametrize("dtype", COMPLEXES)
def test_compare_c4(name: str, dtype: str) -> None:
    x = fill((2,), dtype_of(dtype))
    assert_refused(name, x, x, label="C4")


@pytest.mark.parametrize("name", ["eq_to", "ge_to", "gt_to", "le_to", "lt_to", "ne_to"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "complex64"])
def test_compare_c5(name: str, dtype: str) -> None:
    x = fill((2,), dtype_of(dtype))
    with pytest.raises(DTypeError, match=rf"{name} \[C[45]\]"):
        getattr(lax, name)(x, x)


def test_compare_direction() -> None:
    with pytest.raises(ValueRangeError, match="EQ, NE, GE, GT, LE, LT"):
        ops.Compare("SPACESHIP")


@pytest.mark.parametrize("pred", [I, F, np.array(1)])
def test_select_c1(pred: Any) -> None:
    # jax.lax.select takes integers for select_n's indices.
    assert_refused("select", pred, F, F, label="C1", by_jax=pred is F)


@pytest.mark.parametrize("other", [I, F[:1], np.float32(1), F.astype(np.float64)])
def test_select_c2(other: Any) -> None:
    assert_refused("select", F > 0, F, other, label="C2")


@pytest.mark.parametrize("shape", [(3,), (2,), (1, 3), (3, 2)])
def test_select_c3(shape: tuple[int, ...]) -> None:
    assert_refused("select", np.ones(shape, bool), F, F, label="C3")


def test_select_n_cases() -> None:
    with pytest.raises(InputError, match="at least one case"):
        lax.select_n(F > 0)
    assert_refused("select_n", F > 0, F, F, F)
    assert_refused("select_n", np.zeros((3,), np.int32), F, F, F)
    assert_refused("select_n", F, F, F)
    assert_refused("select_n", I, F, I)


@pytest.mark.parametrize("bounds", [(I, I), (F[0], F[0]), (F, F[:1]), (F.astype(np.float64), F)])
def test_clamp_c1(bounds: tuple[Any, Any]) -> None:
    assert_refused("clamp", bounds[0], F, bounds[1], label="C1")


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_clamp_c2(dtype: str) -> None:
    x = fill((2,), dtype_of(dtype))
    assert_refused("clamp", x, x, x, label="C2", by_jax=False)


@pytest.mark.parametrize(
    "case", [("bool", "int32"), ("complex64", "uint8"), ("int16", "bool"), ("float64", "complex64")]
)
def test_bitcast_convert_c1(case: tuple[str, str]) -> None:
    # jax.lax lets some of these through, to fail or not in the compiler.
    old, new = map(dtype_of, case)
    assert_refused("bitcast_convert_type", fill((4,), old), new, label="C1", by_jax=False)


@pytest.mark.parametrize("shape", [(), (3,), (4, 1), (2, 0)])
def test_bitcast_convert_c2(shape: tuple[int, ...]) -> None:
    assert_refused("bitcast_convert_type", fill(shape, dtype_of("uint8")), np.int32, label="C2")


def test_bitcast_convert_c3() -> None:
    assert_refused(
        "bitcast_convert_type", fill((2,), dtype_of("uint8")), "float6_e2m3fn", label="C3", by_jax=False
    )


@pytest.mark.parametrize("dtype", ["bool", "int32", "complex64"])
def test_reduce_precision_c1(dtype: str) -> None:
    assert_refused("reduce_precision", fill((2,), dtype_of(dtype)), 5, 10, label="C1", by_jax=False)


def test_reduce_precision_c2() -> None:
    assert_refused("reduce_precision", F, 0, 10, label="C2")


def test_reduce_precision_c3() -> None:
    assert_refused("reduce_precision", F, 5, -1, label="C3")


def test_other_arguments_of_elementwise_functions() -> None:
    assert_refused("integer_pow", I, -1)
    assert_refused("integer_pow", F, 0.5, by_jax=False)
    assert_refused("convert_element_type", F, "no such dtype")
    assert_refused("convert_element_type", F, object)
    assert_refused("add", I, 0.5)
    assert_refused("add", np.ones(2, np.int8), 1000, by_jax=False)
    assert_refused("add", F, "text")
    assert_refused("add", F, [[1.0], [1.0, 2.0]], by_jax=False)
    with pytest.raises(InputError, match="RoundingMethod"):
        lax.round(F, 7)  # type: ignore[arg-type]


# --- movement -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [(0,), (0, 1, 2), ()])
def test_broadcast_in_dim_c1(dims: tuple[int, ...]) -> None:
    assert_refused("broadcast_in_dim", F, (2, 3, 4), dims, label="C1")


@pytest.mark.parametrize("dims", [(0, 3), (-1, 1)])
def test_broadcast_in_dim_c2(dims: tuple[int, ...]) -> None:
    assert_refused("broadcast_in_dim", F, (2, 3, 4), dims, label="C2")


@pytest.mark.parametrize("dims", [(1, 0), (0, 0)])
def test_broadcast_in_dim_c3(dims: tuple[int, ...]) -> None:
    # jax.lax lets a permutation through, as StableHLO does; XlaBuilder and xarr do not.
    assert_refused(
        "broadcast_in_dim", np.ones((3, 3), np.float32), (3, 3, 3), dims, label="C3", by_jax=dims == (0, 0)
    )


@pytest.mark.parametrize("shape", [(2, 4), (3, 3), (1, 3), (0, 3)])
def test_broadcast_in_dim_c4(shape: tuple[int, ...]) -> None:
    assert_refused("broadcast_in_dim", F, shape, (0, 1), label="C4")


@pytest.mark.parametrize("sizes", [(5,), (2, 4), (), (0, 6), (6, 2)])
def test_reshape_c1(sizes: tuple[int, ...]) -> None:
    assert_refused("reshape", F, sizes, label="C1")


def test_reshape_wrong_dimensions() -> None:
    assert_refused("reshape", F, (6,), (0, 0))
    assert_refused("reshape", F, (6,), (0,))
    assert_refused("reshape", F, (-1,))


@pytest.mark.parametrize("permutation", [(0,), (0, 0), (0, 2), (1, 0, 2), (-1, 0), ()])
def test_transpose_c1(permutation: tuple[int, ...]) -> None:
    assert_refused("transpose", F, permutation, label="C1")


@pytest.mark.parametrize("dimensions", [(0, 0), (1, 0, 1)])
def test_reverse_c1(dimensions: tuple[int, ...]) -> None:
    assert_refused("rev", F, dimensions, label="C1")


@pytest.mark.parametrize("dimensions", [(2,), (0, 5)])
def test_reverse_c2(dimensions: tuple[int, ...]) -> None:
    assert_refused("rev", F, dimensions, label="C2")


@pytest.mark.parametrize(
    "call", [((0,), (1,)), ((0, 0), (1,)), ((0, 0), (2, 3), (1,)), ((0, 0, 0), (1, 1, 1)), ((), ())]
)
def test_slice_c1(call: tuple[Any, ...]) -> None:
    # jax.lax overlooks limits that are too few.
    assert_refused("slice", F, *call, label="C1", by_jax=call != ((0, 0), (1,)))


@pytest.mark.parametrize("call", [((-1, 0), (2, 3)), ((0, 0), (3, 3)), ((1, 2), (0, 3)), ((3, 0), (3, 0))])
def test_slice_c2(call: tuple[Any, ...]) -> None:
    # jax.lax lets an empty slice begin anywhere.
    assert_refused("slice", F, *call, label="C2", by_jax=call[0] != call[1])


@pytest.mark.parametrize("strides", [(0, 1), (1, -1)])
def test_slice_c3(strides: tuple[int, ...]) -> None:
    assert_refused("slice", F, (0, 0), (2, 3), strides, label="C3")


@pytest.mark.parametrize("value", [np.float64(0), np.int32(0), F, np.zeros((1,), np.float32)])
def test_pad_c1(value: Any) -> None:
    assert_refused("pad", F, value, [(0, 0, 0), (0, 0, 0)], label="C1")


@pytest.mark.parametrize("rows", [1, 3, 0])
def test_pad_c2(rows: int) -> None:
    assert_refused("pad", F, np.float32(0), [(0, 0, 0)] * rows, label="C2")


def test_pad_c3() -> None:
    assert_refused("pad", F, np.float32(0), [(0, 0, -1), (0, 0, 0)], label="C3")


@pytest.mark.parametrize("row", [(-2, -1, 0), (-4, 0, 1), (0, -9, 0)])
def test_pad_c4(row: tuple[int, int, int]) -> None:
    assert_refused("pad", F, np.float32(0), [row, (0, 0, 0)], label="C4")


def test_pad_rows_of_wrong_length() -> None:
    assert_refused("pad", F, np.float32(0), [(0, 0), (0, 0)])


def test_concatenate_c1() -> None:
    assert_refused("concatenate", [], 0, label="C1")


def test_concatenate_c2() -> None:
    assert_refused("concatenate", [F, I], 0, label="C2")


@pytest.mark.parametrize(
    "case", [([F, F[0]], 0), ([F, F], 2), ([F, F], -1), ([np.float32(1), np.float32(2)], 0)]
)
def test_concatenate_c3(case: tuple[Any, int]) -> None:
    assert_refused("concatenate", *case, label="C3", by_jax=case[1] != -1)


def test_concatenate_c4() -> None:
    assert_refused("concatenate", [F, F[:, :2]], 0, label="C4")


def test_other_arguments_of_moving_functions() -> None:
    assert_refused("broadcast", F, (-1,))
    assert_refused("collapse", F, 1, 1, by_jax=False)
    assert_refused("expand_dims", F, (0, 0))
    assert_refused("expand_dims", F, (4,))
    assert_refused("index_in_dim", F, 2)
    assert_refused("index_in_dim", F, -3)
    assert_refused("index_in_dim", F, 0, 2)
    assert_refused("slice_in_dim", F, 0, 9)
    assert_refused("slice_in_dim", F, 0, 1, 0)
    assert_refused("split", F, (1, 2))
    assert_refused("split", F, (-1, 3))
    assert_refused("squeeze", F, (0,))
    assert_refused("squeeze", np.ones((1, 1), np.float32), (0, 0))
    assert_refused("squeeze", np.ones((1, 1), np.float32), (2,))
    assert_refused("transpose", F, (0.0, 1.0))
    assert_refused("slice", F, (0, 0), (1.5, 2))


# --- creation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [b"", b"abc", b"abcdefgh"])
def test_constant_c1(raw: bytes) -> None:
    with pytest.raises(ShapeError, match=r"constant \[C1\]: wanted 4 bytes"):
        Node(ops.Constant(TensorType((), np.dtype(float32)), raw))


@pytest.mark.parametrize("dimension", [1, -1])
def test_iota_c1(dimension: int) -> None:
    with pytest.raises(ShapeError, match=r"broadcasted_iota \[C1\]"):
        Node(ops.Iota(TensorType((3,), np.dtype(int32)), dimension))
    assert_refused("broadcasted_iota", np.int32, (3,), 1)


def test_iota_c2() -> None:
    assert_refused("iota", np.bool_, 3, by_jax=False)
    with pytest.raises(DTypeError, match=r"\[C2\]"):
        lax.iota(np.bool_, 3)


def test_other_arguments_of_creating_functions() -> None:
    assert_refused("full", (-1,), 0.0)
    assert_refused("full", (2,), F)
    assert_refused("full", (2.5,), 0.0)
    assert_refused("full", (2,), 300, np.int8, by_jax=False)
    assert_refused("iota", np.int32, -1)
    assert_refused("broadcasted_iota", np.int32, (2, -3), 0)


# --- completeness -------------------------------------------------------------------------------------------

_LABEL: Final = re.compile(r"^ *\* (C\d+):", re.MULTILINE)


def labelled_tests(classes: Iterable[type[Op]]) -> set[str]:
    """The names that the negative tests of the labels in the docstrings have."""
    return {
        f"test_{_snake(cls.__name__)}_{label.lower()}"
        for cls in classes
        for label in _LABEL.findall(cls.__dict__.get("__doc__") or "")
    }


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def names_of_tests(directory: Path) -> set[str]:
    """The names of all test functions in the directory, without what follows the label."""
    texts = (path.read_text(encoding="utf-8") for path in directory.rglob("*.py"))
    # Most files have none, so they need not be parsed, which takes longest.
    trees = (ast.parse(text) for text in texts if re.search(r"\bdef test_\w+_c\d", text))
    names = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    matches = (re.match(r"test_\w+?_c\d+(?=_|$)", name) for name in names)
    return {match[0] for match in matches if match}


def test_every_label_has_a_negative_test() -> None:
    labels = labelled_tests(own_operations())
    assert len(labels) > 30
    assert labels - names_of_tests(CHECKOUT / "tests") == set()


def test_a_label_without_test_is_found(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text("def test_pad_c1(): ...\ndef test_pad_c2_and_more(): ...\n")
    assert labelled_tests([ops.Pad]) - names_of_tests(tmp_path) == {"test_pad_c3", "test_pad_c4"}
