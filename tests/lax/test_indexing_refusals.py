"""Every constraint of gather, scatter and dynamic slices, broken on its own; the names hold the labels."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax as jlax

from tests.support import fuzz
from tests.support.draws.indexing import Layout, layout
from xarr import lax
from xarr.errors import DTypeError, ShapeError, XarrError
from xarr.ir.computations import combiner
from xarr.ir.op import Op
from xarr.ir.ops import Add, DynamicSlice, DynamicUpdateSlice, Gather, Scatter
from xarr.ir.types import TensorType
from xarr.shapes import Shape, parse_shape

F64 = np.dtype(np.float64)
#: f64[3,4,5] and s64[3,2,2]: dimension 0 runs along, dimension 1 is collapsed, 2 is the window.
GATHER = Gather((2,), (1,), (0,), (0,), (2, 1), 2, (1, 1, 5))
SCATTER = Scatter((2,), (1,), (0,), (0,), (2, 1), 2, combiner(Add(), F64))


def types(*texts: str) -> list[TensorType]:
    shapes = [parse_shape(text) for text in texts]
    return [TensorType(shape.dimensions, shape.dtype) for shape in shapes if isinstance(shape, Shape)]


def assert_refused(label: str, op: Op, *operands: str, error: type[XarrError] = ShapeError) -> None:
    with pytest.raises(error, match=rf"^{op.lax_name} \[{label}\]: ."):
        op.infer(*types(*operands))


def refuse_gather(
    label: str,
    *,
    operand: str = "f64[3,4,5]",
    indices: str = "s64[3,2,2]",
    error: type[XarrError] = ShapeError,
    **changes: Any,
) -> None:
    assert_refused(label, replace(GATHER, **changes), operand, indices, error=error)


def refuse_scatter(label: str, *operands: str, error: type[XarrError] = ShapeError, **changes: Any) -> None:
    assert_refused(
        label,
        replace(SCATTER, **changes),
        *(operands or ("f64[3,4,5]", "s64[3,2,2]", "f64[3,2,5]")),
        error=error,
    )


def test_what_the_others_break_is_whole() -> None:
    operand, indices, updates = types("f64[3,4,5]", "s64[3,2,2]", "f64[3,2,5]")
    assert GATHER.infer(operand, indices) is updates
    assert SCATTER.infer(operand, indices, updates) is operand


def test_gather_c0() -> None:
    assert_refused("C0", GATHER, "f64[3,4,5]")


def test_gather_i2() -> None:
    refuse_gather("I2", indices="f32[3,2,2]", error=DTypeError)
    refuse_gather("I2", indices="pred[3,2,2]", error=DTypeError)


def test_gather_c1() -> None:
    refuse_gather("C1", offset_dims=(1, 2))


def test_gather_c2() -> None:
    refuse_gather("C2", index_vector_dim=4)
    refuse_gather("C2", index_vector_dim=-1)


def test_gather_c3() -> None:
    refuse_gather("C3", start_index_map=(2,))
    refuse_gather("C3", index_vector_dim=3)


def test_gather_c4() -> None:
    refuse_gather(
        "C4", operand="f64[3,5]", offset_dims=(1, 1), collapsed_slice_dims=(), operand_batching_dims=()
    )
    refuse_gather(
        "C4", operand="f64[3,5]", offset_dims=(1, 0), collapsed_slice_dims=(), operand_batching_dims=()
    )


def test_gather_c5() -> None:
    refuse_gather("C5", offset_dims=(3,))
    refuse_gather("C5", offset_dims=(-1,))


def test_gather_c6() -> None:
    refuse_gather("C6", collapsed_slice_dims=(0,))


def test_gather_c7() -> None:
    refuse_gather("C7", collapsed_slice_dims=(2, 1), offset_dims=(), slice_sizes=(1, 1, 1))


def test_gather_c8() -> None:
    refuse_gather("C8", collapsed_slice_dims=(3,))


def test_gather_c9() -> None:
    refuse_gather("C9", slice_sizes=(1, 2, 5))


def test_gather_c10() -> None:
    refuse_gather(
        "C10",
        operand_batching_dims=(2, 0),
        start_indices_batching_dims=(1, 0),
        offset_dims=(),
        slice_sizes=(1, 1, 1),
    )


def test_gather_c11() -> None:
    refuse_gather("C11", operand_batching_dims=(-1,))


def test_gather_c12() -> None:
    refuse_gather("C12", slice_sizes=(2, 1, 5))


def test_gather_c13() -> None:
    refuse_gather("C13", start_indices_batching_dims=(0, 0))


def test_gather_c14() -> None:
    refuse_gather("C14", start_indices_batching_dims=(3,))


def test_gather_c15() -> None:
    refuse_gather("C15", start_indices_batching_dims=(2,))


def test_gather_c16() -> None:
    refuse_gather("C16", start_indices_batching_dims=())


def test_gather_c17() -> None:
    refuse_gather("C17", start_indices_batching_dims=(1,))


def test_gather_c18() -> None:
    refuse_gather("C18", start_index_map=(0, 1))
    refuse_gather("C18", start_index_map=(1, 1))


def test_gather_c19() -> None:
    refuse_gather("C19", start_index_map=(1, 3))


def test_gather_c20() -> None:
    refuse_gather("C20", slice_sizes=(1, 1))


def test_gather_c21() -> None:
    refuse_gather("C21", slice_sizes=(1, 1, 6))
    refuse_gather("C21", slice_sizes=(1, 1, -1))
    refuse_gather("C21", slice_sizes=(-1, 1, 5))


def test_scatter_i2() -> None:
    refuse_scatter("I2", "f64[3,4,5]", "f64[3,2,2]", "f64[3,2,5]", error=DTypeError)


def test_scatter_c1() -> None:
    refuse_scatter("C1", "f64[3,4,5]", "f64[3,4,4]", "s64[3,2,2]", "f64[3,2,5]", "f64[3,2,5]")


def test_scatter_c2() -> None:
    refuse_scatter("C2", inserted_window_dims=())


def test_scatter_c3() -> None:
    refuse_scatter("C3", "f64[3,4,5]", "f64[3,4,5]", "s64[3,2,2]", "f64[3,2,5]", "f64[3,2,4]")


def test_scatter_c4() -> None:
    refuse_scatter("C4", "f64[3,4,5]", "s64[3,2,2]", "f64[3,2,6]")
    refuse_scatter("C4", "f64[3,4,5]", "s64[3,2,2]", "f64[3,3,5]")
    refuse_scatter("C4", "f64[3,4,5]", "s64[3,2,2]", "f64[3,2,5,1]")


def test_scatter_c5() -> None:
    refuse_scatter("C5", "f64[3,4,5]", "s64[3,2,2]")
    refuse_scatter("C5", "s64[3,2,2]")


def test_scatter_c6() -> None:
    refuse_scatter("C6", "f64[3,4,5]", "s64[3,2,2]", "f32[3,2,5]", error=DTypeError)


def test_scatter_c7() -> None:
    refuse_scatter("C7", inserted_window_dims=(), update_window_dims=(2, 1))
    refuse_scatter("C7", inserted_window_dims=(), update_window_dims=(2, 2))


def test_scatter_c8() -> None:
    refuse_scatter("C8", update_window_dims=(3,))


def test_scatter_c9() -> None:
    refuse_scatter("C9", inserted_window_dims=(0,))


def test_scatter_c10() -> None:
    refuse_scatter("C10", inserted_window_dims=(2, 1), update_window_dims=())


def test_scatter_c11() -> None:
    refuse_scatter("C11", inserted_window_dims=(3,))


def test_scatter_c12() -> None:
    refuse_scatter("C12", input_batching_dims=(2, 0), update_window_dims=())


def test_scatter_c13() -> None:
    refuse_scatter("C13", input_batching_dims=(-1,))


def test_scatter_c14() -> None:
    refuse_scatter("C14", scatter_indices_batching_dims=(0, 0))


def test_scatter_c15() -> None:
    refuse_scatter("C15", scatter_indices_batching_dims=(3,))


def test_scatter_c16() -> None:
    refuse_scatter("C16", scatter_indices_batching_dims=(2,))


def test_scatter_c17() -> None:
    refuse_scatter("C17", scatter_indices_batching_dims=())


def test_scatter_c18() -> None:
    refuse_scatter("C18", scatter_indices_batching_dims=(1,))


def test_scatter_c19() -> None:
    refuse_scatter("C19", scatter_dims_to_operand_dims=(1,))


def test_scatter_c20() -> None:
    refuse_scatter("C20", scatter_dims_to_operand_dims=(0, 1))
    refuse_scatter("C20", scatter_dims_to_operand_dims=(1, 1))


def test_scatter_c21() -> None:
    refuse_scatter("C21", scatter_dims_to_operand_dims=(1, 3))


def test_scatter_c22() -> None:
    refuse_scatter("C22", index_vector_dim=4)


def test_scatter_c23() -> None:
    refuse_scatter("C23", update_computation=combiner(Add(), np.dtype(np.float32)))


def test_dynamic_slice_i2() -> None:
    assert_refused("I2", DynamicSlice((1,)), "f64[3]", "f64[]", error=DTypeError)


def test_dynamic_slice_c2() -> None:
    assert_refused("C2", DynamicSlice((1, 1)), "f64[3]", "s64[]")
    assert_refused("C2", DynamicSlice((1,)), "f64[3]", "s64[]", "s64[]")


def test_dynamic_slice_c3() -> None:
    assert_refused("C3", DynamicSlice((1, 1)), "f64[3,3]", "s64[]", "s32[]")
    assert_refused("C3", DynamicSlice((1,)), "f64[3]", "s64[1]")


def test_dynamic_slice_c4() -> None:
    assert_refused("C4", DynamicSlice((4,)), "f64[3]", "s64[]")
    assert_refused("C4", DynamicSlice((-1,)), "f64[3]", "s64[]")


def test_dynamic_update_slice_i2() -> None:
    assert_refused("I2", DynamicUpdateSlice(), "f64[3]", "f64[1]", "pred[]", error=DTypeError)


def test_dynamic_update_slice_c2() -> None:
    assert_refused("C2", DynamicUpdateSlice(), "f64[3]", "f32[1]", "s64[]", error=DTypeError)


def test_dynamic_update_slice_c3() -> None:
    assert_refused("C3", DynamicUpdateSlice(), "f64[3]", "f64[1,1]", "s64[]")


def test_dynamic_update_slice_c4() -> None:
    assert_refused("C4", DynamicUpdateSlice(), "f64[3]", "f64[1]")


def test_dynamic_update_slice_c5() -> None:
    assert_refused("C5", DynamicUpdateSlice(), "f64[3,3]", "f64[1,1]", "s64[]", "u8[]")


def test_dynamic_update_slice_c6() -> None:
    assert_refused("C6", DynamicUpdateSlice(), "f64[3]", "f64[4]", "s64[]")


# --- random ones -------------------------------------------------------------------------------------


def spoilt(random: Random, form: Layout) -> Layout:
    """A valid layout with one entry changed, which may or may not still be valid."""
    name = random.choice(
        ("window_dims", "left_out", "index_map", "batching", "own_batching", "sizes", "indices", "windowed")
    )
    entries = list(getattr(form, name))
    if entries and random.random() < 0.8:
        entries[random.randrange(len(entries))] = random.randint(-1, 4)
    else:
        entries.insert(random.randint(0, len(entries)), random.randint(0, 3))
    return replace(
        form,
        **{name: tuple(max(0, e) for e in entries) if name in ("indices", "windowed") else tuple(entries)},
    )


def is_accepted(lax_module: Any, form: Layout, scatter: bool) -> bool:
    x, u = (np.zeros(shape, np.float32) for shape in (form.operand, form.windowed))
    i = np.zeros(form.indices, np.int32)
    dims = (form.window_dims, form.left_out, form.index_map, form.batching, form.own_batching)

    def gather(x: Any, i: Any, u: Any) -> Any:
        return lax_module.gather(x, i, lax_module.GatherDimensionNumbers(*dims), form.sizes)

    def scatter_add(x: Any, i: Any, u: Any) -> Any:
        return lax_module.scatter_add(x, i, u, lax_module.ScatterDimensionNumbers(*dims))

    try:
        if lax_module is jlax:
            jax.eval_shape(scatter_add if scatter else gather, x, i, u)
        else:
            (scatter_add if scatter else gather)(x, i, u)
    except (TypeError, ValueError, IndexError, AssertionError):
        return False
    return True


@pytest.mark.parametrize("seed", fuzz.seeds(1))
@pytest.mark.parametrize("scatter", [False, True], ids=["gather", "scatter"])
def test_what_jax_refuses_is_refused(scatter: bool, seed: int) -> None:
    """Apart from where jax.lax and StableHLO differ: jax.lax refuses windows without elements in dimensions
    that the result has not, and looks at no slice sizes where there are no indices.
    """
    random, refusals = fuzz.generator("gather", seed), 0
    while refusals < 100:
        form = layout(random)
        if form.vector_dim != len(form.indices) - 1:
            continue
        form = spoilt(random, form)
        if (
            not form.indices
            or 0 in form.indices
            or any(not 0 <= dim < len(form.sizes) or not form.sizes[dim] for dim in form.left_out)
        ):
            continue
        ours, theirs = is_accepted(lax, form, scatter), is_accepted(jlax, form, scatter)
        assert ours == theirs, f"xarr {ours}, jax {theirs}: {form}"
        refusals += not ours
