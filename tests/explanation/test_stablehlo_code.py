"""StableHLO in explanations, which is written without a graph, beside what graphs print."""

from __future__ import annotations

from typing import Final

import pytest

import xarr
from xarr.explanation.broadcast import explain_shapes
from xarr.explanation.broadcast_code import stablehlo
from xarr.ir.types import TensorType
from xarr.shapes import Shape, parse_shape

#: XLA's names of what NumPy names otherwise.
NAMES: Final = {
    "bool": "pred",
    "uint8": "u8",
    "int32": "s32",
    "bfloat16": "bf16",
    "float8_e4m3b11fnuz": "f8e4m3b11fnuz",
}


@pytest.mark.implicit
@pytest.mark.parametrize("element", ["f64", "f32", "s32", "u8", "bf16"])
@pytest.mark.parametrize(
    "op", ["+", "-", "*", "/", "**", "&", ">>", "<<", "<", ">=", "==", "!=", "maximum", "where"]
)
def test_stablehlo_is_what_lower_prints(op: str, element: str) -> None:
    shapes: list[tuple[int, ...]] = [(5, 1), (4,)]
    dtypes = [element, element]
    if op == "where":
        shapes, dtypes = [(4,), (5, 1), ()], ["pred", element, element]
    is_refused = (op in ("&", ">>", "<<") and "f" in element) or (op in ("/", "**") and "f" not in element)
    function = getattr(xarr, op, None) or eval(f"lambda a, b: a {op} b")
    text = stablehlo(explain_shapes(*shapes, op=op, dtypes=dtypes))
    assert text is not None
    if is_refused:
        return
    types = [f"{each}[{','.join(map(str, shape))}]" for each, shape in zip(dtypes, shapes, strict=True)]
    module = str(xarr.lower(function, *types).stage("traced"))
    for i, name in enumerate("abc"):
        module = module.replace(f"%arg{i}", f"%{name}")
    lines = [line[2:] for line in module.splitlines()[1:-1]]
    assert text.splitlines() == [lines[0].replace("func.func public", "func.func"), *lines[1:]]


@pytest.mark.parametrize("op", ["//", "%", "nextafter", "fancy"])
def test_stablehlo_says_what_is_no_single_op(op: str) -> None:
    text = stablehlo(explain_shapes((5, 1), (4,), op=op))
    assert text is not None and "broadcast_in_dim %b, dims = [1]" in text
    assert "is no single op: print(xarr.lower(f, a, b))" in text


def test_stablehlo_leaves_out_what_is_promoted_or_does_not_fit() -> None:
    assert stablehlo(explain_shapes((2,), (2,), dtypes=["f32", "s32"])) is None
    assert stablehlo(explain_shapes((2,), (3,))) is None
    assert stablehlo(explain_shapes((), (), op="complex")) is not None


@pytest.mark.parametrize(
    "name", ["pred", "bool", "s4", "u2", "uint8", "int32", "bfloat16", "float8_e4m3b11fnuz", "c128"]
)
def test_stablehlo_names_element_types_as_the_printer_does(name: str) -> None:
    text = stablehlo(explain_shapes((2,), (2,), dtypes=[name, name]))
    shape = parse_shape(f"{NAMES.get(name, name)}[2]")
    assert isinstance(shape, Shape)
    assert text is not None and f"%b: {TensorType((2,), shape.dtype)}" in text
