"""Layouts, indices and linear memory: round trips, NumPy as the oracle, each error."""

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from xarr.errors import (
    DTypeError,
    IndexingError,
    InputError,
    ShapeError,
    ValueRangeError,
)
from xarr.shapes import (
    Layout,
    Shape,
    indices,
    linear_to_multi_index,
    multi_index_to_linear,
    pack,
    unpack,
)

PADDED = Layout((0, 1), padded_dimensions=(3, 5))
DTYPES: list[Any] = [
    *("bool", "int8", "uint16", "int64", "float16", "float32", "complex64", "complex128"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
]


@st.composite
def sizes_and_layouts(draw: st.DrawFn) -> tuple[tuple[int, ...], Layout]:
    sizes = tuple(draw(st.lists(st.integers(0, 4), max_size=5)))
    order = draw(st.permutations(range(len(sizes))))
    if not draw(st.booleans()):
        return sizes, Layout(order)
    widths = [size + draw(st.integers(0, 2)) for size in sizes]
    return sizes, Layout(order, widths, draw(st.none() | st.integers(-100, 100)))


def number_elements(sizes: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(math.prod(sizes)).reshape(sizes)


class TestLayout:
    @pytest.mark.parametrize("order", [(0, 0), (1, 2), (0, -1), (2,)])
    def test_not_a_permutation(self, order: tuple[int, ...]) -> None:
        with pytest.raises(ShapeError, match=r"minor_to_major must name each dimension 0 … .* once, got"):
            Layout(order)

    @pytest.mark.parametrize("rank", [-1, 2.0, True])
    def test_bad_rank(self, rank: Any) -> None:
        for make in (Layout.row_major, Layout.column_major):
            with pytest.raises(ShapeError, match=r"^rank must be an integer >= 0, got"):
                make(rank)

    @pytest.mark.parametrize("order", [(0.0, 1), "10", (True, False), None])
    def test_order_of_no_integers(self, order: Any) -> None:
        with pytest.raises(ShapeError, match=r"minor_to_major must be a sequence of integers"):
            Layout(order)

    def test_bad_padding(self) -> None:
        with pytest.raises(ShapeError, match=r"padding_value 0 has no effect without padded_dimensions"):
            Layout((0,), padding_value=0)
        with pytest.raises(
            ShapeError, match=r"padded_dimensions must be a sequence of integers >= 0, got -1"
        ):
            Layout((0,), (-1,))
        with pytest.raises(InputError, match=r"padding_value must be a number, got 'zero' of type str"):
            Layout((0,), (3,), "zero")  # type: ignore[arg-type]
        with pytest.raises(ShapeError, match=r"padding_value has 65 bits"):
            Layout((0,), (3,), 2**64)

    def test_padding_values_are_equal_when_their_bits_are(self) -> None:
        assert Layout((0,), 3) == Layout((0,), 3, 0) == Layout((0,), 3, 0.0) == Layout((0,), 3, np.float32(0))
        assert Layout((0,), 3, True) == Layout((0,), 3, 1)
        assert Layout((0,), 3, -0.0) != Layout((0,), 3, 0.0)
        assert Layout((0,), 3, float("nan")) == Layout((0,), 3, np.float64("nan"))
        assert Layout((0,), 3) != Layout((0,))
        assert Layout((0,)) != "{0}"

    @given(sizes_and_layouts())
    def test_strides_are_those_of_numpy(self, case: tuple[tuple[int, ...], Layout]) -> None:
        sizes, layout = case
        widths = layout.widths(sizes)
        physical = np.zeros([widths[d] for d in layout.major_to_minor], np.int8)
        array = physical.transpose(np.argsort(layout.major_to_minor))
        assert array.shape == widths
        if array.size:
            real = [d for d, width in enumerate(widths) if width > 1]
            assert [layout.strides(sizes)[d] for d in real] == [array.strides[d] for d in real]

    def test_strides_of_an_empty_array_are_not_those_of_a_broadcast(self) -> None:
        assert Layout.row_major(3).strides((2, 0, 3)) == (3, 3, 1)
        assert Layout.row_major(3).strides((2, 3, 0)) == (3, 1, 1)

    @given(sizes_and_layouts())
    def test_from_strides_finds_the_memory_order(self, case: tuple[tuple[int, ...], Layout]) -> None:
        sizes, layout = case
        order = Layout(layout.minor_to_major)
        memory = np.arange(math.prod(sizes))
        view = memory.reshape([sizes[d] for d in order.major_to_minor]).transpose(
            np.argsort(order.major_to_minor)
        )
        read_back = Layout.of(view)
        assert read_back is not None
        assert pack(view, read_back).tolist() == memory.tolist()
        if view.flags.c_contiguous:
            assert read_back == Layout.row_major(view.ndim)

    @pytest.mark.parametrize("sizes", list(itertools.product((1, 2, 3), repeat=4)))
    def test_from_strides_of_c_and_fortran_order(self, sizes: tuple[int, ...]) -> None:
        c, fortran = np.zeros(sizes), np.zeros(sizes, order="F")
        assert Layout.of(c) == Layout.row_major(4)
        layout = Layout.of(fortran)
        assert layout is not None
        large = [d for d in range(4) if sizes[d] > 1]
        assert [d for d in layout.minor_to_major if d in large] == large

    def test_from_strides_where_the_order_is_open(self) -> None:
        assert Layout.from_strides((1, 3), (999, 8), 8) == Layout((1, 0))
        assert Layout.from_strides((3, 1), (8, -5), 8) == Layout((1, 0))
        assert Layout.from_strides((2, 1, 3), (8, 0, 16), 8) == Layout((1, 0, 2))
        assert Layout.from_strides((0, 3), (-7, 1), 8) == Layout((1, 0))
        assert Layout.from_strides((), (), 8) == Layout(())

    @pytest.mark.parametrize(
        "view",
        [
            np.zeros(6)[::2],
            np.zeros(6)[::-1],
            np.zeros((4, 4))[:2, :3],
            np.zeros((4, 4)).T[:3],
            np.broadcast_to(np.zeros(3), (2, 3)),
            np.broadcast_to(np.zeros((3, 1)), (3, 2)),
            np.lib.stride_tricks.sliding_window_view(np.zeros(5), 2),
            np.zeros((3, 3)).diagonal(),
        ],
    )
    def test_from_strides_of_gaps_and_repeats(self, view: np.ndarray[Any, Any]) -> None:
        assert Layout.of(view) is None

    def test_from_strides_wants_one_stride_per_dimension(self) -> None:
        with pytest.raises(ShapeError, match=r"2 dimensions want as many strides and an itemsize >= 1"):
            Layout.from_strides((2, 3), (8,), 8)
        with pytest.raises(ShapeError, match=r"itemsize 0"):
            Layout.from_strides((2, 3), (0, 0), 0)

    def test_explain_the_page(self) -> None:
        assert PADDED.explain((2, 3)).split("\n") == [
            "layout {0,1:pad(3,5)} of [2,3]: 15 elements in memory, 9 of them padding (·)",
            "offset of each element (dimension 0 down, dimension 1 across):",
            "  0  3  6  ·  ·",
            "  1  4  7  ·  ·",
            "  ·  ·  ·  ·  ·",
            "memory, from the first element on:",
            "  (0,0) (1,0) · (0,1) (1,1) · (0,2) (1,2) · · · · · · ·",
            "  dimension  size  width  stride",
            "        0 y     2      3       1  most minor",
            "        1 x     3      5       3  most major",
        ]

    def test_explain_any_rank(self) -> None:
        assert Layout(()).explain(()).split("\n") == [
            "layout {} of []: 1 element in memory",
            "offset of each element:",
            "  0",
            "memory, from the first element on:",
            "  ()",
        ]
        assert "  0  1  ·" in Layout((0,), 3).explain(2).split("\n")
        assert "    1 y     3      3       2" in Layout((0, 1, 2)).explain((2, 3, 4)).replace(
            "      1 y", "  1 y"
        )
        assert Layout.row_major(5).explain((2,) * 5).endswith("4     2      2       1  most minor")

    def test_explain_cuts_large_arrays_off(self) -> None:
        text = Layout.column_major(2).explain((10**9, 10**9))
        assert len(text) < 2000
        assert text.count("…") == 8 + 13 + 1
        assert "memory" not in Layout.row_major(2).explain((0, 3)).split("\n", 1)[1]


class TestIndices:
    @given(sizes_and_layouts())
    def test_both_ways(self, case: tuple[tuple[int, ...], Layout]) -> None:
        sizes, layout = case
        memory = pack(number_elements(sizes) + 1000, layout)
        array = number_elements(sizes) + 1000
        positions = []
        for index in np.ndindex(sizes):
            position = multi_index_to_linear(index, sizes, layout)
            positions.append(position)
            assert memory[position] == array[index]
            assert linear_to_multi_index(position, sizes, layout) == index
        assert [multi_index_to_linear(index, sizes, layout) for index in indices(sizes, layout)] == sorted(
            positions
        )
        for position in set(range(memory.size)) - set(positions):
            with pytest.raises(IndexingError, match=r"falls in the padding"):
                linear_to_multi_index(position, sizes, layout)

    @given(st.lists(st.integers(1, 4), max_size=4))
    def test_as_numpy(self, sizes: list[int]) -> None:
        for index in np.ndindex(*sizes):
            c, fortran = (
                int(np.ravel_multi_index(index, sizes, order=order)) if sizes else 0 for order in ("C", "F")
            )
            assert multi_index_to_linear(index, sizes) == c
            assert multi_index_to_linear(index, sizes, Layout.column_major(len(sizes))) == fortran
        assert list(indices(sizes)) == list(np.ndindex(*sizes))

    def test_layout_of_the_shape_unless_given(self) -> None:
        shape = Shape("float32", (2, 3), PADDED)
        assert multi_index_to_linear((1, 2), shape) == 7
        assert multi_index_to_linear((1, 2), shape, Layout((1, 0))) == 5
        assert linear_to_multi_index(np.int32(7), shape) == (1, 2)

    def test_beyond_32_bits(self) -> None:
        sizes = (2**40, 2**20)
        assert multi_index_to_linear((2**40 - 1, 7), sizes) == (2**40 - 1) * 2**20 + 7
        assert linear_to_multi_index((2**40 - 1) * 2**20 + 7, sizes) == (2**40 - 1, 7)
        assert next(indices(sizes)) == (0, 0)

    def test_of_a_scalar(self) -> None:
        assert multi_index_to_linear((), ()) == 0
        assert linear_to_multi_index(0, ()) == ()
        assert list(indices(())) == [()]

    @pytest.mark.parametrize("index", [(2, 0), (0, -1), (0, 3)])
    def test_out_of_bounds(self, index: tuple[int, int]) -> None:
        with pytest.raises(
            IndexingError, match=r"is out of bounds for dimension . of \[2,3\]; legal are 0 … ."
        ):
            multi_index_to_linear(index, (2, 3), PADDED)

    def test_of_an_empty_array(self) -> None:
        assert list(indices((2, 0))) == []
        with pytest.raises(IndexingError, match=r"out of bounds for dimension 1 of .*; it has size 0"):
            multi_index_to_linear((0, 0), (2, 0))
        with pytest.raises(IndexingError, match=r"legal are none: there are no elements"):
            linear_to_multi_index(0, (2, 0))

    @pytest.mark.parametrize("index", [(), (1,), (0, 0, 0), 1])
    def test_wrong_length(self, index: Any) -> None:
        with pytest.raises(IndexingError, match=r"but \[2,3\] has rank 2"):
            multi_index_to_linear(index, (2, 3))

    @pytest.mark.parametrize("index", [(0.0, 1), (True, 1), "01"])
    def test_not_integers(self, index: Any) -> None:
        with pytest.raises(IndexingError, match=r"an index must be an integer, got"):
            multi_index_to_linear(index, (2, 3))

    @pytest.mark.parametrize("index", [-1, 15])
    def test_linear_out_of_bounds(self, index: int) -> None:
        with pytest.raises(IndexingError, match=f"linear index {index} is out of bounds .* legal are 0 … 14"):
            linear_to_multi_index(index, (2, 3), PADDED)

    def test_linear_not_an_integer(self) -> None:
        with pytest.raises(IndexingError, match=r"a linear index must be an integer, got 1.0 of type float"):
            linear_to_multi_index(1.0, (2, 3))  # type: ignore[arg-type]

    def test_padding_is_named(self) -> None:
        with pytest.raises(IndexingError, match=r"it is \(2, 1\) in the padded \[3,5\], outside of \[2,3\]"):
            linear_to_multi_index(5, (2, 3), PADDED)

    def test_layout_must_fit_at_once(self) -> None:
        with pytest.raises(ShapeError, match=r"orders 1 dimension, but"):
            indices((2, 3), Layout((0,)))


class TestPacking:
    @given(sizes_and_layouts())
    def test_unpack_undoes_pack(self, case: tuple[tuple[int, ...], Layout]) -> None:
        sizes, layout = case
        array = number_elements(sizes)
        back = unpack(pack(array, layout), sizes, layout)
        assert (back.shape, back.dtype, back.flags.c_contiguous) == (array.shape, array.dtype, True)
        assert np.array_equal(back, array)

    @given(sizes_and_layouts())
    def test_padding_holds_the_padding_value(self, case: tuple[tuple[int, ...], Layout]) -> None:
        sizes, layout = case
        memory = pack(np.full(sizes, 1000), layout)
        assert memory.shape == (layout.allocated_size(sizes),)
        values, counts = np.unique(memory, return_counts=True)
        count = dict(zip(values.tolist(), counts.tolist(), strict=True))
        padding = memory.size - math.prod(sizes)
        assert count == {
            key: n for key, n in ((layout.padding_value, padding), (1000, math.prod(sizes))) if n
        }

    @given(st.lists(st.integers(0, 4), max_size=5).map(tuple))
    def test_as_numpy_orders(self, sizes: tuple[int, ...]) -> None:
        array = number_elements(sizes)
        assert np.array_equal(pack(array, Layout.row_major(len(sizes))), array.ravel(order="C"))
        assert np.array_equal(pack(array, Layout.column_major(len(sizes))), array.ravel(order="F"))

    @given(sizes_and_layouts())
    def test_as_numpy_pad_and_transpose(self, case: tuple[tuple[int, ...], Layout]) -> None:
        sizes, layout = case
        margins = [(0, width - size) for size, width in zip(sizes, layout.widths(sizes), strict=True)]
        padded = (
            np.pad(number_elements(sizes), margins, constant_values=layout.padding_value or 0)
            if sizes
            else number_elements(())
        )
        expected = np.transpose(padded, layout.major_to_minor).ravel()
        assert np.array_equal(pack(number_elements(sizes), layout), expected)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_bits_of_any_dtype(self, dtype: Any) -> None:
        raw = np.random.default_rng(0).integers(0, 256, 6 * np.dtype(dtype).itemsize, np.uint8)
        array = (raw & 1 if dtype == "bool" else raw).view(dtype).reshape(2, 3)
        memory = pack(array, PADDED)
        assert memory.dtype == array.dtype
        assert unpack(memory, (2, 3), PADDED).tobytes() == array.tobytes()

    def test_of_views(self) -> None:
        array = np.arange(24).reshape(4, 6)[::-2, ::3]
        assert pack(array, Layout((0, 1))).tolist() == [18, 6, 21, 9]
        assert pack(np.broadcast_to(5, (2, 2)), Layout((0, 1), (2, 3))).tolist() == [5, 5, 5, 5, 0, 0]

    def test_results_own_their_memory(self) -> None:
        array = np.zeros((2, 2))
        memory = pack(array, Layout((1, 0)))
        memory[0] = 1
        unpack(memory, (2, 2), Layout((1, 0)))[0, 0] = 2
        assert (array[0, 0], memory[0]) == (0, 1)

    @pytest.mark.parametrize(
        ("dtype", "value"),
        [
            ("float32", math.inf),
            ("float16", math.nan),
            ("float32", -0.0),
            ("float32", 0.1),
            ("complex64", 1 - 2j),
            ("uint64", 2**64 - 1),
            ("int8", -128),
            ("bool", True),
            (ml_dtypes.bfloat16, -math.inf),
            (ml_dtypes.float8_e5m2, math.inf),
        ],
    )
    def test_padding_values(self, dtype: Any, value: Any) -> None:
        memory = pack(np.ones(1, dtype), Layout((0,), 2, value))
        assert memory[1:].tobytes() == np.array([value]).astype(dtype).tobytes()

    @pytest.mark.parametrize(
        ("dtype", "value"),
        [
            ("uint8", 256),
            ("uint8", -1),
            ("int32", 0.5),
            ("int32", math.nan),
            ("int64", 2**63),
            ("bool", 2),
            ("float32", 1e300),
            ("float16", 70000),
            ("float64", 1j),
            ("complex64", 1e300j),
            (ml_dtypes.float8_e4m3fn, math.inf),
            ("U1", 10),
        ],
    )
    @pytest.mark.filterwarnings("error")
    def test_padding_that_the_dtype_cannot_hold(self, dtype: Any, value: Any) -> None:
        with pytest.raises(ValueRangeError, match=r"cannot hold the padding value .* of layout \{0:pad\(2\)"):
            pack(np.zeros(1, dtype), Layout((0,), 2, value))

    @pytest.mark.parametrize("memory", [np.zeros(6), np.zeros(16), np.zeros((3, 5)), np.zeros(())])
    def test_memory_of_the_wrong_length(self, memory: np.ndarray[Any, Any]) -> None:
        with pytest.raises(
            ShapeError, match=r"\[2,3\] with layout .* lies in 1-d memory of 15 elements, got .* shape"
        ):
            unpack(memory, (2, 3), PADDED)

    def test_layout_must_fit(self) -> None:
        with pytest.raises(ShapeError, match=r"orders 2 dimensions, but"):
            pack(np.zeros(3), PADDED)
        with pytest.raises(ShapeError, match=r"less than its size 4"):
            unpack(np.zeros(15), (4, 3), PADDED)

    @pytest.mark.parametrize("value", [[[1, 2, 3]], 3, None])
    def test_not_an_array(self, value: Any) -> None:
        with pytest.raises(InputError, match=r"wants a NumPy array, got"):
            pack(value, PADDED)
        with pytest.raises(InputError, match=r"unpack wants a NumPy array"):
            unpack(value, (2, 3), PADDED)

    def test_objects(self) -> None:
        with pytest.raises(DTypeError, match=r"pack wants elements of a fixed size, got dtype object"):
            pack(np.array([[None]]), PADDED)

    def test_more_memory_than_addresses(self) -> None:
        with pytest.raises(ValueRangeError, match=r"takes more than 2\*\*63 bytes"):
            pack(np.zeros((1, 1)), Layout((0, 1), (2**40, 2**40)))
        with pytest.raises(ValueRangeError, match=r"takes more than 2\*\*63 bytes"):
            pack(np.zeros((0, 1)), Layout((0, 1), (0, 2**62)))
