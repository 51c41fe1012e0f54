"""Shapes and layouts: the statements of XLA's page, round trips, NumPy and XLA as oracles, each error."""

import copy
import doctest
import math
import pathlib
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from xarr.errors import (
    AxisError,
    DTypeError,
    InputError,
    ParseError,
    ShapeError,
)
from xarr.shapes import (
    DIMENSION_LETTERS,
    AnyShape,
    Layout,
    Shape,
    TupleShape,
    check_sizes,
    normalize_axes,
    normalize_axis,
    pack,
    parse_shape,
)

LETTERS = np.array([["a", "b", "c"], ["d", "e", "f"]])
PADDED = Layout((0, 1), padded_dimensions=(3, 5))
DTYPES: list[Any] = [
    *("bool", "int8", "uint16", "int64", "float16", "float32", "complex64", "complex128"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
]
PADDING_VALUES = st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.complex_numbers()


@st.composite
def sizes_and_layouts(draw: st.DrawFn) -> tuple[tuple[int, ...], Layout]:
    sizes = tuple(draw(st.lists(st.integers(0, 4), max_size=5)))
    order = draw(st.permutations(range(len(sizes))))
    if not draw(st.booleans()):
        return sizes, Layout(order)
    widths = [size + draw(st.integers(0, 2)) for size in sizes]
    return sizes, Layout(order, widths, draw(PADDING_VALUES))


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    sizes, layout = draw(sizes_and_layouts())
    flags = st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes))
    return Shape(draw(st.sampled_from(DTYPES)), sizes, layout, draw(flags))


any_shapes: st.SearchStrategy[AnyShape] = st.recursive(
    shapes(), lambda inner: st.lists(inner, max_size=4).map(TupleShape), max_leaves=6
)


def pack_text(array: np.ndarray[Any, Any], layout: Layout) -> str:
    return " ".join(map(str, pack(array, layout)))


class TestThePage:
    """XLA's page "Shapes and layout", statement by statement."""

    def test_rank_is_the_number_of_dimensions(self) -> None:
        assert [Shape("float32", sizes).rank for sizes in ((), (1,), (1, 1), (0, 2, 1))] == [0, 1, 2, 3]

    def test_true_rank_counts_the_dimensions_larger_than_one(self) -> None:
        assert [Shape("float32", sizes).true_rank for sizes in ((), (1, 1), (0, 2), (5, 1, 7))] == [
            0,
            0,
            1,
            2,
        ]

    def test_dimensions_are_listed_by_ascending_number(self) -> None:
        shape = Shape("float32", (10, 20, 30), Layout((1, 2, 0)))
        assert [shape.dimension(number) for number in range(3)] == [10, 20, 30]
        assert shape.dimensions == (10, 20, 30)

    def test_negative_numbers_count_from_the_end(self) -> None:
        shape = Shape("float32", (10, 20, 30))
        assert [shape.dimension(number) for number in (-1, -2, -3)] == [30, 20, 10]

    def test_letters_of_dimensions(self) -> None:
        assert {rank: "".join(letters) for rank, letters in DIMENSION_LETTERS.items()} == {
            2: "yx",
            3: "zyx",
            4: "pzyx",
        }

    def test_dimension_0_minor_is_column_major(self) -> None:
        assert pack_text(LETTERS, Layout((0, 1))) == "a d b e c f"
        assert Layout.column_major(2) == Layout((0, 1))

    def test_dimension_0_major_is_row_major(self) -> None:
        assert pack_text(LETTERS, Layout((1, 0))) == "a b c d e f"
        assert Layout.row_major(2) == Layout((1, 0))

    @pytest.mark.parametrize("rank", range(6))
    def test_the_default_is_major_to_minor(self, rank: int) -> None:
        assert Shape("float32", (2,) * rank).layout.minor_to_major == tuple(range(rank))[::-1]

    def test_padding(self) -> None:
        assert pack_text(LETTERS, PADDED) == "a d 0 b e 0 c f 0 0 0 0 0 0 0"

    def test_padding_equals_the_layout_of_the_padded_array(self) -> None:
        wide = np.array([list("abc00"), list("def00"), list("00000")])
        assert pack_text(LETTERS, PADDED) == pack_text(wide, Layout((0, 1)))

    def test_as_many_padded_dimensions_as_the_rank(self) -> None:
        with pytest.raises(
            ShapeError, match=r"one width for each of the 2 dimensions .* got 1 width: \(3,\)"
        ):
            Layout((0, 1), (3,))

    def test_documentation(self) -> None:
        page = pathlib.Path(__file__).parents[1] / "docs" / "shapes.md"
        result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
        assert (result.failed, result.attempted > 30) == (0, True)


class TestText:
    @given(any_shapes)
    def test_parse_undoes_str(self, shape: AnyShape) -> None:
        assert parse_shape(str(shape)) == shape
        assert hash(parse_shape(str(shape))) == hash(shape)
        assert eval(repr(shape)) == shape

    @given(any_shapes, st.data())
    def test_white_space_between_tokens(self, shape: AnyShape, data: st.DataObject) -> None:
        # Not inside `pad(`, `<=` and padding values, which are one token each.
        spaced = "".join(
            character + data.draw(st.sampled_from(["", " ", "\n\t", "/* 5 */"])) * (character in "[]{},:")
            for character in str(shape)
        )
        assert parse_shape(spaced) == shape

    @given(any_shapes)
    def test_copy_and_pickle(self, shape: AnyShape) -> None:
        assert pickle.loads(pickle.dumps(shape)) == copy.deepcopy(shape) == shape

    @pytest.mark.parametrize(
        ("text", "printed"),
        [
            ("f32[2,3]", "f32[2,3]{1,0}"),
            ("f32 [2,3] {0,1}", "f32[2,3]{0,1}"),
            ("f32[]", "f32[]"),
            ("f32[0]", "f32[0]{0}"),
            ("f32[02]", "f32[2]{0}"),
            ("f32[<= 10,3]", "f32[<=10,3]{1,0}"),
            ("bf16[9223372036854775807,2]", "bf16[9223372036854775807,2]{1,0}"),
            ("()", "()"),
            (" ( f32[2]{0} , (s32[]) )", "(f32[2]{0}, (s32[]))"),
            ("(pred[], /*index=1*/u8[1])", "(pred[], u8[1]{0})"),
        ],
    )
    def test_same_text_as_xla(self, text: str, printed: str) -> None:
        assert str(parse_shape(text)) == printed
        hlo = pytest.importorskip("jaxlib._hlo", reason="this jaxlib keeps XLA's Shape elsewhere")
        assert str(hlo.Shape(text)) == printed.replace("/*index=1*/", "")

    @given(shapes())
    def test_xla_reads_what_we_print(self, shape: Shape) -> None:
        hlo = pytest.importorskip("jaxlib._hlo", reason="this jaxlib keeps XLA's Shape elsewhere")
        plain = Shape(
            shape.dtype, shape.dimensions, Layout(shape.layout.minor_to_major), shape.dynamic_dimensions
        )
        read = hlo.Shape(str(plain))
        assert str(read) == str(plain)
        assert (read.numpy_dtype(), tuple(read.dimensions())) == (shape.dtype, shape.dimensions)
        assert tuple(read.layout().minor_to_major()) == shape.layout.minor_to_major

    def test_text_of_padding(self) -> None:
        assert str(PADDED) == "{0,1:pad(3,5)}"
        assert str(Layout((0,), 3, -math.inf)) == "{0:pad(3)=-inf}"
        assert Layout.parse(" { 0 : pad( 3 ) = 1.0 } ") == Layout((0,), (3,), 1)

    @pytest.mark.parametrize(
        ("text", "position", "reason"),
        [
            ("", 0, "expected an element type such as 'f32', or '(', got the end of the text"),
            ("F32[2]", 0, "expected an element type"),
            ("f33[2]", 0, "'f33' is not an XLA element type"),
            ("f32", 3, "expected '[', got the end of the text"),
            ("f32(2)", 3, r"expected '[', got '('"),
            ("f32[", 4, "expected a size, got the end of the text"),
            ("f32[2", 5, "expected ',' or ']', got the end of the text"),
            ("f32[2,]", 6, "expected a size, got ']'"),
            ("f32[2 3]", 6, "expected ',' or ']', got '3'"),
            ("f32[-1]", 4, "expected a size, got '-'"),
            ("f32[+2]", 4, "expected a size, got '+'"),
            ("f32[2.0]", 5, "expected ',' or ']', got '.'"),
            ("f32[<2]", 4, "expected a size, got '<'"),
            ("f32[<=]", 6, "expected the bound of a size, got ']'"),
            ("f32[?,3]", 4, "a size without a bound is not allowed here"),
            ("f32[²]", 4, "expected a size, got '²'"),
            ("f32[9223372036854775808]", 4, "a size must be less than 2**63"),
            (f"f32[{'9' * 5000}]", 4, "a size must be less than 2**63"),
            ("f32[2]x", 6, "expected the end of the shape, got 'x'"),
            ("f32[2,3]{1,0", 12, "expected ',' or '}' or ':', got the end of the text"),
            ("f32[2,3]{1 0}", 11, "expected ',' or '}' or ':', got '0'"),
            ("f32[2,3]{0,0}", 8, "minor_to_major must name each dimension 0 … 1 once, got (0, 0)"),
            ("f32[2,3]{0,2}", 8, "minor_to_major must name each dimension 0 … 1 once, got (0, 2)"),
            ("f32[2,3]{0}", 8, "layout {0} orders 1 dimension, but [2,3] has 2; the default would be {1,0}"),
            ("f32[2]{0:T(8)}", 9, "expected 'pad(', got 'T'"),
            ("f32[2]{0:pad(8}", 14, "expected ',' or ')', got '}'"),
            ("f32[2]{0:pad(8)=}", 16, "expected a padding value, got '}'"),
            ("f32[2]{0:pad(8)=1x}", 16, "'1x' is not a number"),
            ("f32[2]{0:pad(8)=99999999999999999999}", 6, "padding_value has 67 bits, which is more than 64"),
            ("f32[2]{0:pad(8)", 15, "expected '}', got the end of the text"),
            ("f32[2]{0:pad(1)}", 6, "pads dimension 0 to 1, which is less than its size 2 in [2]"),
            (
                "f32[2]{0:pad(2,2)}",
                6,
                "one width for each of the 1 dimension in minor_to_major, got 2 widths",
            ),
            ("(f32[2]", 7, "expected ',' or ')', got the end of the text"),
            ("(f32[2],)", 8, "expected an element type such as 'f32', or '(', got ')'"),
            ("(f32[2]))", 8, "expected the end of the shape, got ')'"),
            ("/* f32[]", 0, "expected an element type such as 'f32', or '(', got '/'"),
            ("(" * 100_000, 100, "tuples nested deeper than 100"),
        ],
    )
    def test_malformed(self, text: str, position: int, reason: str) -> None:
        with pytest.raises(ParseError) as caught:
            parse_shape(text)
        assert f"cannot parse this shape at position {position}: " in str(caught.value)
        assert reason in str(caught.value)
        _, line, caret = str(caught.value).split("\n")
        shown = min(position, 60)
        assert caret == " " * (2 + shown) + "^"
        assert line[2 + shown :] == text[position : position + 60]

    @given(st.text(alphabet="f32s(){}[],:<=0195pad -+/*\n", max_size=30))
    def test_any_text_parses_or_raises_parse_error(self, text: str) -> None:
        try:
            shape = parse_shape(text)
        except ParseError as error:
            assert str(error).endswith("^")
        else:
            assert parse_shape(str(shape)) == shape

    @given(any_shapes, st.data())
    def test_truncated_text(self, shape: AnyShape, data: st.DataObject) -> None:
        text = str(shape)
        cut = data.draw(st.integers(0, len(text) - 1))
        if text[cut:].startswith("{") and text[:cut].endswith("]") and text[0] != "(":
            assert Shape.parse(text[:cut]).dimensions == Shape.parse(text).dimensions
        else:
            with pytest.raises(ParseError):
                parse_shape(text[:cut])

    def test_wrong_kind_of_shape(self) -> None:
        with pytest.raises(ParseError, match=r"tuple of shapes; TupleShape.parse reads it"):
            Shape.parse("(f32[])")
        with pytest.raises(ParseError, match=r"shape of an array; Shape.parse reads it"):
            TupleShape.parse("f32[]")

    def test_not_a_text(self) -> None:
        with pytest.raises(InputError, match=r"text of a shape must be a str, got bytes"):
            parse_shape(b"f32[]")  # type: ignore[arg-type]


class TestShape:
    def test_bytes_with_and_without_padding(self) -> None:
        shape = Shape("int16", (2, 3), PADDED)
        assert (shape.size, shape.itemsize, shape.nbytes, shape.allocated_nbytes) == (6, 2, 12, 30)

    def test_scalar_and_empty(self) -> None:
        assert (Shape("float64", ()).size, Shape("float64", ()).nbytes) == (1, 8)
        assert (Shape("float64", (3, 0)).size, Shape("float64", (3, 0)).true_rank) == (0, 1)

    def test_equality(self) -> None:
        assert Shape("float32", (2, 3)) == Shape(np.float32, [2, np.int64(3)], Layout((1, 0)), [False, False])
        assert Shape("float32", (2, 3)) == Shape(np.dtype(">f4"), (2, 3))
        unequal = [
            Shape("int32", (2, 3)),
            Shape("float32", (3, 2)),
            Shape("float32", (2, 3), Layout((0, 1))),
            Shape("float32", (2, 3), dynamic_dimensions=(True, False)),
        ]
        assert len({Shape("float32", (2, 3)), *unequal}) == 5

    def test_frozen(self) -> None:
        with pytest.raises(AttributeError):
            Shape("float32", (2,)).dimensions = (3,)  # type: ignore[misc]

    def test_dynamic(self) -> None:
        assert Shape.parse("f32[<=10,3]").is_dynamic
        assert not Shape.parse("f32[10,3]").is_dynamic

    @pytest.mark.parametrize("flags", [(True,), (1, 0), True, (None, None)])
    def test_bad_dynamic_dimensions(self, flags: Any) -> None:
        with pytest.raises(ShapeError, match=r"dynamic_dimensions must be 2 bools"):
            Shape("float32", (2, 3), dynamic_dimensions=flags)

    @pytest.mark.parametrize("name", ["u8", "f32", "f16", "pred"])
    def test_names_of_xla_are_ambiguous_as_dtypes(self, name: str) -> None:
        with pytest.raises(
            DTypeError, match=rf"'{name}' is XLA's name of a type.*Shape\.parse\('{name}\[\.\.\.\]'\)"
        ):
            Shape(name, (2,))

    @pytest.mark.parametrize(
        "dtype", ["no such type", object, "U3", "datetime64[s]", [("a", "f4")], ("f4", [2])]
    )
    def test_bad_dtype(self, dtype: Any) -> None:
        with pytest.raises(DTypeError):
            Shape(dtype, (2,))

    def test_layout_must_fit(self) -> None:
        with pytest.raises(ShapeError, match=r"orders 2 dimensions, but .* has 1; the default would be {0}"):
            Shape("float32", (2,), Layout((0, 1)))
        with pytest.raises(ShapeError, match=r"pads dimension 1 to 5, which is less than its size 6"):
            Shape("float32", (2, 6), PADDED)
        with pytest.raises(InputError, match=r"layout must be a Layout, got \(1, 0\)"):
            Shape("float32", (2, 3), (1, 0))  # type: ignore[arg-type]

    def test_dimension_out_of_range(self) -> None:
        with pytest.raises(
            AxisError, match=r"dimension 2 is out of range for an array of rank 2; legal are -2 … 1"
        ):
            Shape("float32", (2, 3)).dimension(2)

    def test_tuple(self) -> None:
        pair = TupleShape([Shape("float32", 2), TupleShape([Shape("int8", ())])])
        assert (len(pair), pair.nbytes, pair[0], list(pair)) == (
            2,
            9,
            Shape("float32", (2,)),
            [pair[0], pair[1]],
        )
        with pytest.raises(
            InputError, match=r"element 1 of a TupleShape must be a Shape or a TupleShape, got 3"
        ):
            TupleShape([pair, 3])  # type: ignore[list-item]


class Index:
    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def _type_and_value(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__name__}-{value}"


NOT_INTEGERS = [True, np.True_, 1.0, np.float64(1), "1", None, np.array([1]), np.array(True), 1j, b"1"]


class TestDimensionNumbers:
    @pytest.mark.parametrize("rank", range(1, 5))
    def test_as_python_indexes_a_list(self, rank: int) -> None:
        numbers = list(range(rank))
        for axis in range(-rank, rank):
            assert normalize_axis(axis, rank) == numbers[axis]

    @pytest.mark.parametrize("axis", [np.int8(-1), np.uint64(1), np.array(1), Index(-1)])
    def test_whatever_has_index(self, axis: Any) -> None:
        assert normalize_axis(axis, 2) == 1
        assert type(normalize_axis(axis, 2)) is int
        assert normalize_axes(axis, 2) == (1,)

    @pytest.mark.parametrize(("axis", "rank"), [(2, 2), (-3, 2), (0, 0), (-1, 0), (10**30, 3)])
    def test_out_of_range(self, axis: int, rank: int) -> None:
        legal = "a scalar has no dimensions" if rank == 0 else f"legal are {-rank} … {rank - 1}"
        message = f"axis {axis} is out of range for an array of rank {rank}; {legal}"
        for call in (normalize_axis, normalize_axes):
            with pytest.raises(AxisError, match=f"^{message}$"):
                call(axis, rank)

    @pytest.mark.parametrize("axis", NOT_INTEGERS, ids=_type_and_value)
    def test_not_an_integer(self, axis: Any) -> None:
        with pytest.raises(
            InputError, match=rf"^dim must be an integer, got (.* of type {type(axis).__name__}|an array .*)$"
        ):
            normalize_axis(axis, 2, name="dim")
        with pytest.raises(InputError, match=r"^axis must be an integer"):
            normalize_axes((axis,), 2)

    def test_order_is_kept(self) -> None:
        assert normalize_axes((-1, 0), 3) == (2, 0)
        assert normalize_axes(iter([1]), 3) == (1,)
        assert normalize_axes(np.array([2, -2]), 3) == (2, 1)
        assert normalize_axes((), 3) == ()

    def test_none_is_every_dimension(self) -> None:
        assert normalize_axes(None, 3) == (0, 1, 2)

    def test_repeated(self) -> None:
        with pytest.raises(AxisError, match=r"^axis names dimension 1 more than once: 1 and -1 \(rank 2\)$"):
            normalize_axes((0, 1, -1), 2)

    def test_error_of_an_array_without_value_is_kept(self) -> None:
        class Traced:
            def __index__(self) -> int:
                raise ShapeError("has no value yet")

        with pytest.raises(ShapeError, match=r"has no value yet"):
            normalize_axis(Traced(), 2)


class TestSizes:
    @pytest.mark.parametrize(
        ("sizes", "checked"),
        [
            ((), ()),
            (3, (3,)),
            ([2, 0], (2, 0)),
            (np.array([2, 3]), (2, 3)),
            (np.array(4), (4,)),
            (Index(2), (2,)),
        ],
    )
    def test_accepted(self, sizes: Any, checked: tuple[int, ...]) -> None:
        assert check_sizes(sizes) == checked
        assert all(type(size) is int for size in check_sizes(sizes))

    @pytest.mark.parametrize("size", NOT_INTEGERS, ids=_type_and_value)
    def test_not_an_integer(self, size: Any) -> None:
        with pytest.raises(
            ShapeError, match=r"shape must be a sequence of integers >= 0, got (.* of type|an array)"
        ):
            check_sizes((2, size))

    @pytest.mark.parametrize(
        "sizes", ["23", b"23", 2.0, None, np.zeros((2, 2), int), True], ids=_type_and_value
    )
    def test_not_a_sequence_of_integers(self, sizes: Any) -> None:
        with pytest.raises(ValueError, match=r"shape must be a sequence of integers >= 0"):
            check_sizes(sizes)

    def test_negative(self) -> None:
        with pytest.raises(ShapeError, match=r"window must be .* got -2 for dimension 1$"):
            check_sizes((2, -2), name="window")
        with pytest.raises(ShapeError, match=r"got -1 for dimension 0; only reshape may leave a size open"):
            check_sizes(-1)

    def test_too_large_to_print(self) -> None:
        with pytest.raises(ShapeError, match=r"got one of 16610 bits"):
            check_sizes(10**5000)
        with pytest.raises(InputError, match=r"axis must be an integer, got one of 16610 bits"):
            normalize_axis(10**5000, 2)
        with pytest.raises(ShapeError, match=r"padding_value has 16610 bits"):
            Layout((0,), 3, 10**5000)

    def test_too_large(self) -> None:
        assert check_sizes(2**63 - 1) == (2**63 - 1,)
        with pytest.raises(ShapeError, match=r"below 2\*\*63, got 9223372036854775808 for dimension 0"):
            check_sizes(2**63)
