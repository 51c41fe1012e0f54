"""Products of matrices and vectors against NumPy.

Integers and bools agree bit for bit; floats, whose terms may be added in another order, within 1e-13
(float64), 2e-5 (float32) and 4e-3 (float16) of values of this size.
"""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xarr
from tests.support.functions import DTYPES, XP, against_numpy, expression, same, sample
from xarr.errors import AxisError, BroadcastError, InputError, ShapeError

TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-13, "complex64": 2e-5}

IMPLICIT = pytest.mark.implicit

MATMUL = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((5, 2, 3), (5, 3, 4)),
    pytest.param(((5, 1, 2, 3), (6, 3, 4)), marks=IMPLICIT),
    pytest.param(((1, 2, 3), (6, 3, 1)), marks=IMPLICIT),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
    ((0, 2, 3), (3, 4)),
    pytest.param(((0, 2, 3), (1, 3, 4)), marks=IMPLICIT),
    ((1, 1), (1, 1)),
    ((), (3,)),
    ((2, 3), (2, 3)),
    ((3,), (2,)),
    ((4, 2, 3), (5, 3, 2)),
]


@pytest.mark.parametrize("shapes", MATMUL, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul(shapes, dtype):
    inputs = [sample(shape, dtype, special=False, seed=seed) for seed, shape in enumerate(shapes)]
    if dtype == "float16":
        inputs = [np.clip(values, -4, 4) for values in inputs]
    against_numpy(expression("xp.matmul(x, y)"), *inputs, rtol=TOLERANCE.get(dtype))


DOTS = [
    ((), ()),
    ((), (3,)),
    ((2, 3), ()),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (6, 3, 4)),
    ((3,), (6, 3, 4)),
    ((2, 3), (4, 3)),
    ((0,), (0,)),
    ((2, 0), (3, 0)),
]


@pytest.mark.parametrize("shapes", DOTS, ids=str)
@pytest.mark.parametrize("name", ["dot", "inner", "outer", "vdot"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float64", "complex64"])
def test_products(shapes, name, dtype):
    inputs = [sample(shape, dtype, special=False, seed=seed) for seed, shape in enumerate(shapes)]
    against_numpy(expression(f"xp.{name}(x, y)"), *inputs, rtol=TOLERANCE.get(dtype))


TENSORDOT = [
    ("xp.tensordot(x, y)", (2, 3, 4), (3, 4, 5)),
    ("xp.tensordot(x, y, 1)", (2, 3), (3, 4)),
    ("xp.tensordot(x, y, 0)", (2, 3), (4,)),
    ("xp.tensordot(x, y, axes=([0, 2], [1, -1]))", (2, 3, 4), (5, 2, 4)),
    ("xp.tensordot(x, y, axes=(-1, 0))", (2, 3), (3, 4)),
    ("xp.tensordot(x, y, axes=([], []))", (2,), (3,)),
    ("xp.tensordot(x, y, 2)", (2, 3), (2, 3)),
    ("xp.tensordot(x, y, 1)", (2, 0), (0, 4)),
    ("xp.vecdot(x, y)", (2, 3), (3,)),
    pytest.param("xp.vecdot(x, y)", (4, 1, 3), (5, 3), marks=IMPLICIT),
    ("xp.vecdot(x, y, axis=0)", (3, 2), (3, 2)),
    pytest.param("xp.vecdot(x, y, axis=-2)", (3, 2), (4, 3, 1), marks=IMPLICIT),
    pytest.param("xp.vecdot(x, y)", (0, 3), (1, 3), marks=IMPLICIT),
    ("xp.vecdot(x, y)", (2, 0), (2, 0)),
]


@pytest.mark.parametrize(("text", "first", "second"), TENSORDOT, ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int64", "float64", "complex64"])
def test_contractions(text, first, second, dtype):
    inputs = sample(first, dtype, special=False), sample(second, dtype, special=False, seed=1)
    against_numpy(expression(text), *inputs, rtol=TOLERANCE.get(dtype))


@given(st.data())
def test_tensordot_over_any_axes(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4)))
    axes = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(0, len(shape)))]
    others = data.draw(st.lists(st.integers(0, 3), max_size=2))
    order = data.draw(st.permutations(range(len(axes) + len(others))))
    sizes = [shape[axis] for axis in axes] + others
    second = tuple(sizes[index] for index in order)
    axes_of = [order.index(number) for number in range(len(axes))]
    inputs = sample(shape, "int8"), sample(second, "int8", seed=1)
    against_numpy(lambda xp, x, y: xp.tensordot(x, y, (list(axes), axes_of)), *inputs)


def test_types_promote():
    ints, floats = np.arange(6).reshape(2, 3), np.ones(3, np.float32)
    same(XP.matmul(ints, floats), ints @ floats)
    same(XP.matmul(XP.asarray(ints), [1, 2, 3]), ints @ [1, 2, 3])
    wide = XP.matmul(XP.ones((2, 3), "bfloat16"), XP.ones(3, "bfloat16"))
    assert str(wide.dtype) == "bfloat16" and np.asarray(wide).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (
            "xp.matmul(x, x)",
            ShapeError,
            r"axis 1 of a has 3, axis 0 of b has 2(.*\n)*.* would work:\n +a @ b.T .*\n +a.T @ b ",
        ),
        (
            "xp.matmul(x, np.ones((4, 2)))",
            ShapeError,
            r"would work:\n +a.T @ b.T .*\n +b @ a ",
        ),
        (
            "xp.matmul(x, np.ones(2))",
            ShapeError,
            r"would work:\n +a.T @ b .*\n +b @ a ",
        ),
        ("xp.matmul(x, np.ones((4, 5)))", ShapeError, "no transpose of them fits"),
        ("xp.matmul(np.ones(3), np.ones(2))", ShapeError, "no transpose of them fits"),
        (
            "xp.matmul(np.ones((5, 4, 3)), np.ones((5, 2, 3)))",
            ShapeError,
            r"a @ b.mT ",
        ),
        ("xp.matmul(x, 2)", ShapeError, "x2 is a scalar"),
        (
            "xp.matmul(np.ones((2, 1, 3)), np.ones((5, 3, 1)))",
            BroadcastError,
            "wanted batch axes of equal sizes, or 1",
        ),
        ("xp.matmul(x, x.T, out=5)", InputError, "out="),
        ("xp.dot(x, x)", ShapeError, r"tensordot\(\w, \w, axes=\(\[0\], \[0\]\)\)"),
        ("xp.inner(x, np.ones(4))", ShapeError, "no axis of one has the size of an axis of the other"),
        ("xp.tensordot(x, x, 3)", ShapeError, "between 0 and 2"),
        ("xp.tensordot(x, x, (0, 1, 2))", InputError, "axes of a"),
        ("xp.tensordot(x, x, ([0, 1], [0]))", ShapeError, "as many axes"),
        ("xp.tensordot(x, x, ([2], [0]))", AxisError, "out of range"),
        ("xp.vecdot(x, np.ones(2))", ShapeError, "axis 1 of a has 3, axis 0 of b has 2"),
        ("xp.vecdot(x, 1.0)", AxisError, "no dimensions"),
        ("xp.vdot(x, np.ones(2))", ShapeError, "got 6 and 2"),
    ],
)
def test_refusals(text, error, words):
    with pytest.raises(error, match=words):
        expression(text)(XP, XP.ones((2, 3)))


SHAPE = st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple)


@pytest.mark.implicit
def test_every_fix_of_a_mismatch_works():
    tried = []

    @given(SHAPE, SHAPE)
    def check(a, b):
        x1, x2 = XP.ones(a), XP.ones(b)
        try:
            XP.matmul(x1, x2)
        except ShapeError as error:
            _, _, fixes = str(error).partition("what would work:\n")
            for fix in fixes.splitlines():
                written, _, shape = fix.partition("->")
                result = eval(written.strip(), {"x1": x1, "x2": x2})
                assert str(result.shape) == shape.partition(", element by element")[0].strip()
                tried.append(written.strip())

    check()
    assert len(tried) >= 20 and len(set(tried)) >= 4, tried


def test_strict_broadcasting():
    square, many, few = np.ones((2, 2)), np.ones((3, 2, 2)), np.ones((1, 2, 2))
    with xarr.config(broadcasting="explicit"):
        same(XP.matmul(many, square), many @ square)
        same(XP.matmul(many, many), many @ many)
        same(XP.outer([1, 2], [3]), np.outer([1, 2], [3]))
        with pytest.raises(BroadcastError, match="explicit"):
            XP.matmul(many, few)
        with pytest.raises(BroadcastError, match="explicit"):
            XP.vecdot(many, few)
