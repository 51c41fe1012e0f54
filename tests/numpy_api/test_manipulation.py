"""Manipulation functions against NumPy, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.support.functions import DTYPES, SHAPES, XP, against_numpy, expression, same, sample
from xarr.errors import AxisError, BroadcastError, DTypeError, InputError, ShapeError, ValueRangeError

#: One operand of any shape; where NumPy refuses a shape, xarr must too.
UNARY = [
    "xp.reshape(x, -1)",
    "xp.reshape(x, (-1,), order='F')",
    "xp.reshape(x, (2, -1))",
    "xp.reshape(x, (4, -1, 3))",
    "xp.reshape(x, (4, 3), order='F')",
    "xp.reshape(x, (-1, 0))",
    "xp.reshape(x, (-1, -1))",
    "xp.reshape(x, (1, *x.shape, 1))",
    "xp.reshape(x, x.shape[::-1], order='F')",
    "xp.ravel(x)",
    "xp.ravel(x, 'F')",
    "xp.squeeze(x)",
    "xp.squeeze(x, 2)",
    "xp.squeeze(x, (0,))",
    "xp.expand_dims(x, 0)",
    "xp.expand_dims(x, -1)",
    "xp.expand_dims(x, (0, -1))",
    "xp.expand_dims(x, (1, 1))",
    "xp.expand_dims(x, 7)",
    "xp.transpose(x)",
    "xp.permute_dims(x, (1, 0))",
    "xp.permute_dims(x, (-1, 0, 1))",
    "xp.matrix_transpose(x)",
    "xp.swapaxes(x, 0, -1)",
    "xp.swapaxes(x, 1, 2)",
    "xp.moveaxis(x, 0, -1)",
    "xp.moveaxis(x, (0, 1), (-1, 0))",
    "xp.moveaxis(x, (0, 0), (1, 0))",
    "xp.moveaxis(x, 0, (0, 1))",
    "xp.flip(x)",
    "xp.flip(x, -1)",
    "xp.flip(x, (0, 1))",
    "xp.flipud(x)",
    "xp.fliplr(x)",
    "xp.rot90(x)",
    "xp.rot90(x, 2)",
    "xp.rot90(x, -1, (1, 0))",
    "xp.rot90(x, 3, (0, -1))",
    "xp.rot90(x, 4, (0, 0))",
    "xp.roll(x, 1)",
    "xp.roll(x, -7)",
    "xp.roll(x, 2, 0)",
    "xp.roll(x, (1, 2), (0, 1))",
    "xp.roll(x, (1, 2), 0)",
    "xp.roll(x, -1, (0, -1))",
    "xp.roll(x, (1, 2), (0, 1, 0))",
    "xp.tile(x, 2)",
    "xp.tile(x, (2, 0))",
    "xp.tile(x, (2, 1, 3))",
    "xp.tile(x, ())",
    "xp.repeat(x, 3)",
    "xp.repeat(x, 0)",
    "xp.repeat(x, 2, 0)",
    "xp.repeat(x, [2], -1)",
    "xp.broadcast_to(x, (2, 3, 4))",
    "xp.broadcast_to(x, (2, *x.shape))",
    "xp.broadcast_to(x, ())",
    "xp.broadcast_arrays(x, np.ones((3, 1)))",
    "xp.broadcast_arrays(x)",
    "xp.atleast_1d(x)",
    "xp.atleast_2d(x)",
    "xp.atleast_3d(x)",
    "xp.atleast_2d(x, [1])",
    "xp.concatenate([x, x])",
    "xp.concatenate([x, x, x], axis=-1)",
    "xp.concatenate([x, [1.5]], axis=None)",
    "xp.concat([x, np.ones((3, 4))])",
    "xp.concatenate(x)",
    "xp.stack([x, x])",
    "xp.stack([x, x], axis=-1)",
    "xp.stack([x, x], axis=1)",
    "xp.stack(x)",
    "xp.hstack([x, x])",
    "xp.vstack([x, x])",
    "xp.dstack([x, x])",
    "xp.column_stack([x, x])",
    "xp.split(x, 2)",
    "xp.split(x, [1, 3], -1)",
    "xp.array_split(x, 3)",
    "xp.array_split(x, 4, 1)",
    "xp.array_split(x, [3, 1, -1, 9])",
    "xp.array_split(x, [])",
    "xp.hsplit(x, [1])",
    "xp.vsplit(x, [1])",
    "xp.dsplit(x, [1])",
    "xp.unstack(x)",
    "xp.unstack(x, axis=-1)",
    "xp.pad(x, 0)",
    "xp.pad(x, 2)",
    "xp.pad(x, (1, 0), constant_values=1)",
    "xp.pad(x, ((1, 2),), constant_values=(1, 0))",
    "xp.pad(x, [(0, 1), (2, 0)], constant_values=[(1, 0), (0, 1)])",
    "xp.pad(x, 2, mode='edge')",
    "xp.pad(x, (7, 3), mode='reflect')",
    "xp.pad(x, (3, 8), mode='symmetric')",
    "xp.pad(x, (9, 2), mode='wrap')",
    "xp.pad(x, -1)",
]

if not hasattr(np, "unstack"):
    UNARY = [text for text in UNARY if "unstack" not in text]


#: For these NumPy gives a scalar an axis 0, or raises TypeError where the axis is what is missing.
NO_SCALARS = {"xp.repeat(x, 2, 0)", "xp.repeat(x, [2], -1)", "xp.concatenate(x)", "xp.stack(x)"}


@pytest.mark.parametrize("text", UNARY)
def test_any_shape(text):
    for shape in SHAPES:
        if shape != () or text not in NO_SCALARS:
            against_numpy(expression(text), sample(shape, "float64"))


@pytest.mark.parametrize("text", sorted(NO_SCALARS))
def test_scalars_have_no_axis(text):
    with pytest.raises(AxisError, match="no dimensions"):
        expression(text)(XP, XP.asarray(1.0))


MOVES = [
    "xp.reshape(x, (4, -1), order='F')",
    "xp.flip(xp.transpose(x))",
    "xp.roll(x, 1, 0)",
    "xp.tile(x, 2)",
    "xp.repeat(x, 2, 1)",
    "xp.concatenate([x, x], 1)",
    "xp.stack([x, x], 2)",
    "xp.pad(x, 1)",
    "xp.pad(x, 4, mode='reflect')",
    "xp.broadcast_to(x, (2, 3, 4))",
    "xp.array_split(x, 2, 1)",
]


@pytest.mark.parametrize("text", MOVES)
@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16", "float8_e5m2"])
def test_any_dtype(text, dtype):
    values = (
        sample((3, 4), "float32").astype(dtype) if "8_" in dtype or dtype[0] == "b" else sample((3, 4), dtype)
    )
    against_numpy(expression(text), values)


@pytest.mark.parametrize("first", DTYPES)
def test_joined_arrays_promote(first):
    for second in DTYPES:
        inputs = sample((2, 3), first), sample((1, 3), second)
        against_numpy(expression("xp.concatenate([x, y])"), *inputs)
        against_numpy(expression("xp.concatenate([x, y], dtype='float32')"), *inputs)
        against_numpy(expression("xp.hstack([x[0], y[0], 2])"), *inputs)


SEVERAL = [
    "xp.concatenate([x, y])",
    "xp.concatenate((x, y), axis=1)",
    "xp.concatenate([x, y], axis=None)",
    "xp.stack([x, y])",
    "xp.hstack([x, y])",
    "xp.vstack([x, y])",
    "xp.dstack([x, y])",
    "xp.column_stack([x, y])",
    "xp.broadcast_arrays(x, y)",
]
PAIRS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 3), (1, 3)),
    ((2, 3), (2, 1)),
    ((), (2,)),
    ((0, 3), (2, 3)),
    ((4,), (4, 1)),
]


@pytest.mark.parametrize("text", SEVERAL)
@pytest.mark.parametrize("shapes", PAIRS, ids=str)
def test_two_arrays(text, shapes):
    against_numpy(expression(text), *(sample(shape, "float32") for shape in shapes))


@settings(max_examples=30)
@given(st.data())
def test_axes_of_any_rank(data):
    rank = data.draw(st.integers(1, 4))
    values = sample(tuple(data.draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank))), "int8")
    axis, other = data.draw(st.integers(-rank, rank - 1)), data.draw(st.integers(-rank, rank - 1))
    shift = data.draw(st.integers(-5, 5))
    widths = data.draw(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=rank, max_size=rank)
    )
    against_numpy(lambda xp, x: xp.moveaxis(x, axis, other), values)
    against_numpy(lambda xp, x: xp.roll(x, shift, axis), values)
    against_numpy(lambda xp, x: xp.flip(x, (axis, other)), values)
    against_numpy(lambda xp, x: xp.rot90(x, shift, (axis, other)), values)
    against_numpy(lambda xp, x: xp.pad(x, widths, constant_values=shift), values)
    against_numpy(lambda xp, x: xp.array_split(x, abs(shift) + 1, axis), values)
    against_numpy(lambda xp, x: xp.repeat(x, abs(shift), axis), values)


@given(
    st.integers(1, 6),
    st.integers(0, 15),
    st.integers(0, 15),
    st.sampled_from(["reflect", "symmetric", "wrap", "edge"]),
)
def test_padding_far_beyond_the_array(size, before, after, mode):
    against_numpy(lambda xp, x: xp.pad(x, (before, after), mode=mode), np.arange(size))


def test_padding_by_axis():
    against_numpy(lambda xp, x: xp.pad(x, (1, 2), constant_values=-1), sample((2, 2), "int8"))
    widths = {-1: (1, 2), 0: 3}
    same(XP.pad(np.ones((2, 2)), widths), np.pad(np.ones((2, 2)), ((3, 3), (1, 2))))


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("xp.reshape(x, (4, 2))", ShapeError, r"\(2, 3\) has 6 elements, shape \(4, 2\) wants 8"),
        ("xp.reshape(x, (4, -1))", ShapeError, "cannot be divided"),
        ("xp.reshape(x, 2.5)", InputError, "int"),
        ("xp.reshape(x, 6, order='Z')", InputError, "order"),
        ("xp.squeeze(x, 0)", ShapeError, "size 1"),
        ("xp.squeeze(x, 5)", AxisError, "out of range"),
        ("xp.transpose(x, (0, 0))", AxisError, "more than once"),
        ("xp.transpose(x, (0,))", ShapeError, "wanted 2 axes"),
        ("xp.matrix_transpose(x[0])", ShapeError, "rank 2"),
        ("xp.flip(x, 2)", AxisError, "out of range"),
        ("xp.roll(x, 0.5j)", InputError, "int"),
        ("xp.rot90(x, 1, (0,))", ShapeError, "two axes"),
        ("xp.tile(x, -1)", ShapeError, "reps"),
        ("xp.repeat(x, -1)", ShapeError, "^repeat: wanted repeats of 0 or more, got -1$"),
        ("xp.repeat(x, np.complex64(2))", InputError, "^repeat: wanted an int for repeats, got"),
        ("xp.split(x, 0)", ValueRangeError, "^split: wanted at least one part, got 0"),
        ("xp.repeat(x, [1, 2])", ShapeError, "wanted one count"),
        ("xp.broadcast_to(x, (3, 2))", BroadcastError, "2"),
        ("xp.broadcast_to(x, (3,))", BroadcastError, "does not fit"),
        ("xp.broadcast_arrays(x, np.ones(4))", BroadcastError, "4"),
        ("xp.concatenate([])", ShapeError, "at least one"),
        ("xp.concatenate([1, 2])", ShapeError, "stack"),
        ("xp.concatenate(3)", InputError, "sequence of arrays"),
        ("xp.concatenate([x, x[0]])", ShapeError, "along axis 0 only"),
        ("xp.concatenate([x], out=5)", InputError, "out="),
        ("xp.concatenate([x], dtype='int8', casting='safe')", DTypeError, "casting"),
        ("xp.stack([])", ShapeError, "at least one"),
        ("xp.stack([x, x[0]])", ShapeError, "one shape"),
        ("xp.split(x, 4, 1)", ShapeError, "array_split"),
        ("xp.array_split(x, 0)", ValueRangeError, "at least one part"),
        ("xp.unstack(x[0, 0])", AxisError, "no dimensions"),
        ("xp.pad(x, -1)", ValueRangeError, "widths"),
        ("xp.pad(x, (1, 2, 3))", ShapeError, "pad_width"),
        ("xp.pad(x, 1, mode='mode')", ValueRangeError, "wanted a mode"),
        ("xp.pad(x[:0], 1, mode='edge')", ShapeError, "empty"),
        ("xp.pad(xp.zeros(2, 'int8'), 1, constant_values=300)", ValueRangeError, "out of bounds"),
        ("xp.expand_dims(x, 4)", AxisError, "out of range"),
        ("xp.expand_dims(x, None)", InputError, "wanted an int or a sequence of ints for axis, got None"),
    ],
)
def test_refusals(text, error, words):
    with pytest.raises(error, match=words):
        expression(text)(XP, XP.ones((2, 3)))


def test_an_explicit_request_to_broadcast_is_never_refused():
    with xarr.config(broadcasting="explicit"):
        for text in (
            "xp.broadcast_to(x, (2, 3))",
            "xp.broadcast_arrays(x, np.ones((2, 1)))",
            "xp.tile(x, (2, 2))",
        ):
            against_numpy(expression(text), np.arange(3))


@pytest.mark.filterwarnings("ignore::xarr.errors.PartUpdateWarning")
def test_results_are_handles_of_their_own():
    x = XP.asarray([[1, 2]])
    for text in (
        "xp.reshape(x, (1, 2))",
        "xp.atleast_1d(x)",
        "xp.roll(x, 0)",
        "xp.pad(x, 0)",
        "xp.broadcast_arrays(x)[0]",
    ):
        y = expression(text)(XP, x)
        y += 1
        assert np.asarray(x).tolist() == [[1, 2]]
