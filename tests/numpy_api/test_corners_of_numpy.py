"""Types, values and refusals of single functions that NumPy settles in a way of its own."""

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.functions import same
from tests.support.numpy_records import OLDER
from xarr import errors

INF, NAN = np.inf, np.nan
PARTS = (-INF, -1.0, -0.0, 0.0, 2.0, INF, NAN)


# --- types -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex64"])
@pytest.mark.parametrize("ends", [{"prepend": 1}, {"append": 1.5}, {"prepend": True, "append": 2j}], ids=str)
def test_numbers_put_before_a_difference_take_part_in_promotion(dtype: str, ends: dict[str, Any]) -> None:
    x = np.array([1, 0, 1]).astype(dtype)
    same(xarr.diff(x, **ends), np.diff(x, **ends))
    same(xarr.jit(lambda x: xarr.diff(x, **ends))(x), np.diff(x, **ends))


@pytest.mark.parametrize("argument", [range(0), [], (), np.zeros(0), np.zeros(0, int)], ids=repr)
def test_an_open_mesh_of_nothing(argument: Any) -> None:
    if isinstance(argument, np.ndarray) and argument.dtype == float:
        assert xarr.ix_(argument)[0].dtype == np.ix_(argument)[0].dtype
    same(xarr.ix_(argument, [0, 2])[0], np.ix_(argument, [0, 2])[0])


def test_the_conjugate_of_bools() -> None:
    x = np.array([True, False])
    for method in ("conj", "conjugate"):
        same(getattr(xarr.asarray(x), method)(), getattr(x, method)())
    same(xarr.conj(x), np.conj(x))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "complex64"])
@pytest.mark.parametrize("values", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("options", [{}, {"w": np.arange(1, 9) / 3}, {"cov": True}, {"full": True}], ids=str)
def test_fits_are_computed_in_double_precision(dtype: str, values: str, options: dict[str, Any]) -> None:
    x, y = np.arange(1, 9).astype(dtype), (np.sin(np.arange(16)) * 3).reshape(8, 2).astype(values)
    for degree in (2, 1.0):
        wanted, results = (function(x, y, degree, **options) for function in (np.polyfit, xarr.polyfit))
        pairs = zip(wanted, results, strict=True) if options.keys() & {"cov", "full"} else [(wanted, results)]
        for one, other in pairs:
            assert np.asarray(other).dtype == np.asarray(one).dtype or not np.ndim(one)
            np.testing.assert_allclose(np.asarray(other), one, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("degree", [2.5, "2", None, 1j, NAN])
def test_a_degree_that_is_no_integer(degree: Any) -> None:
    with pytest.raises(TypeError, match="polyfit: wanted an int for deg"):
        xarr.polyfit([1.0, 2, 3], [1.0, 2, 3], degree)


# --- values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_sign_of_a_complex_infinity(dtype: str) -> None:
    z = np.array([complex(real, imag) for real in PARTS for imag in PARTS]).astype(dtype)
    with np.errstate(invalid="ignore"):
        wanted = np.sign(z)
    for result in (xarr.sign(z), xarr.jit(xarr.sign)(z)):
        for part in ("real", "imag"):
            np.testing.assert_allclose(getattr(np.asarray(result), part), getattr(wanted, part), rtol=1e-6)
            assert_same(
                np.signbit(getattr(np.asarray(result), part)[~np.isnan(wanted)]),
                np.signbit(getattr(wanted, part)[~np.isnan(wanted)]),
            )


TOLERANCES = [
    {"atol": np.float64(1 - 2e-16), "rtol": 0},
    {"rtol": np.float64(1 - 2e-16), "atol": np.float32(0)},
    {"rtol": np.array([0.2, 0.01]), "atol": [0, 1e-9]},
    {"rtol": 0, "atol": np.array([INF, NAN])},
    {"rtol": np.int64(1), "atol": True},
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int8"])
@pytest.mark.parametrize("tolerance", TOLERANCES, ids=str)
def test_tolerances_of_numpys_types_and_arrays(dtype: str, tolerance: dict[str, Any]) -> None:
    a, b = np.array([1, 1.1]).astype(dtype), np.array([0.1, 1]).astype(dtype)
    for first, second in ((a, b), (b, a), (a, a)):
        with np.errstate(invalid="ignore"):
            same(xarr.isclose(first, second, **tolerance), np.isclose(first, second, **tolerance))
            assert bool(xarr.allclose(first, second, **tolerance)) == np.allclose(first, second, **tolerance)


@pytest.mark.implicit
def test_tolerances_broadcast() -> None:
    a, b, rtol = np.ones(3), np.full(3, 1.1), np.array([[0.2], [0.01]])
    same(xarr.isclose(a, b, rtol=rtol), np.isclose(a, b, rtol=rtol))


@pytest.mark.parametrize("tolerance", [None, "1", 1j, np.complex64(1)])
def test_tolerances_that_are_no_real_numbers(tolerance: Any) -> None:
    with pytest.raises(TypeError, match=r"isclose: wanted a (real )?number for atol"):
        xarr.isclose(1.0, 1.0, atol=tolerance)


class Knowing:
    """An object that answers comparisons itself."""

    def __eq__(self, other: object) -> Any:
        return "equal"

    def __ne__(self, other: object) -> Any:
        return "other"

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "stranger",
    [object(), {}, {1}, b"ab", "ab", None, int, Ellipsis, slice(2), len],
    ids=lambda each: type(each).__name__ + str(each is int),
)
def test_comparison_with_what_is_no_number(stranger: object) -> None:
    x = xarr.asarray([1, 2])
    for result, outcome in ((x == stranger, False), (x != stranger, True), (stranger == x, False)):
        same(result, np.full(2, outcome))
    assert stranger not in x


def test_comparison_with_an_object_that_knows_better() -> None:
    x = xarr.asarray([1, 2])
    assert (x == Knowing()) == (Knowing() == x) == "equal"
    assert (x != Knowing()) == "other"


@pytest.mark.parametrize("x", [xarr.ones(2), np.ones(2), [1.0, 1.0]], ids=["Array", "ndarray", "list"])
def test_a_refused_membership_names_both_as_written(x: Any) -> None:
    y = xarr.zeros((2, 3))
    with pytest.raises(errors.BroadcastError, match=r"x: f64\[2\]   y: f64\[2,3\]"):
        x in y  # noqa: B015


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cov", "corrcoef"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64"])
def test_covariances_are_no_integers(name: str, dtype: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: .*wanted a float or complex dtype, got {dtype}"):
        getattr(xarr, name)([[1, 2, 3], [4, 5, 7]], dtype=dtype)


MASKED = [
    lambda xp, x, where: xp.sum(x, where=where),
    lambda xp, x, where: xp.prod(x, where=where),
    lambda xp, x, where: xp.max(x, where=where, initial=0),
    lambda xp, x, where: xp.mean(x, where=where),
    lambda xp, x, where: xp.std(x, where=where),
    lambda xp, x, where: xp.any(x, where=where),
    lambda xp, x, where: xp.nansum(x, where=where),
    lambda xp, x, where: xp.nanvar(x, where=where),
    lambda xp, x, where: xp.add.reduce(x, where=where),
    lambda xp, x, where: xp.add(x, 1, out=xp.zeros(2), where=where)[1],
    lambda xp, x, where: xp.copyto(xp.asarray(x), 1, where=where),
]


@pytest.mark.parametrize("call", MASKED, ids=map(str, range(len(MASKED))))
def test_masks_are_bools(call: Any) -> None:
    x = np.array([1.0, 2])
    for dtype in ("int64", "uint8", "float32"):
        for mask in (np.array([0, 1], dtype), xarr.asarray([0, 1], dtype=dtype)):
            with pytest.raises(TypeError, match=f"wanted bools for where=, got an array of {dtype}"):
                call(xarr, x, mask)
    for where in ([0, 1], [False, True], True, np.array([False, True]), 1):
        wanted, result = call(np, x, where), call(xarr, x, where)
        assert wanted is result is None or np.asarray(result) == wanted


def _assign(xp: Any, array: Any, index: Any, value: Any) -> Any:
    copy = xp.asarray(array.copy())
    copy[index] = value
    return np.asarray(copy)


MASK = np.array([[True, False], [True, True]])
INDICES = [
    *[(np.zeros(()), index) for index in ((), ...)],
    *[(np.zeros(2), index) for index in (0, [True, False], slice(0, 1))],
    *[(np.zeros((2, 2)), index) for index in ((0, 0), (0, 0, None), (0, 0, ...), 0, (0,), [0, 1], ([0], 0))],
    *[(np.zeros((2, 2)), index) for index in (MASK, (MASK,), (MASK, ...), MASK[:, 0], ~MASK, True)],
    *[(np.zeros((3, 2, 2)), index) for index in ((0, MASK), (slice(2), MASK), (0, 0))],
]
VALUES = [5, [1], [[1]], [[[1]]], (1,), range(1), [[1, 2]], np.float32(2), np.ones(2)]
VALUES += [np.ones(shape) for shape in ((1,), (1, 1), (1, 1, 1), (1, 2), (3,), (1, 3), (3, 1))]


@pytest.mark.implicit
@pytest.mark.parametrize(("array", "index"), INDICES, ids=map(str, range(len(INDICES))))
def test_what_may_be_assigned(array: Any, index: Any) -> None:
    """Of what NumPy refuses nothing is written: no list with more dimensions, no vector as one element, no matrix
    as the elements of a mask."""
    for value in VALUES:
        values = [value, *([xarr.asarray(value)] if isinstance(value, np.ndarray) else [])]
        try:
            wanted = _assign(np, array, index, value)
        except (TypeError, ValueError) as refusal:
            for each in values:
                with pytest.raises((TypeError, ValueError)) as refused:
                    _assign(xarr, array, index, each)
                assert isinstance(refused.value, type(refusal)), (value, refused.value)
            continue
        for each in values:
            assert_same(_assign(xarr, array, index, each), wanted)


def test_refused_assignments_say_what_to_write() -> None:
    x = xarr.zeros((2, 2))
    with pytest.raises(
        errors.BroadcastError, match=r"a single element, got a value of shape \(1,\); write v\[0\]"
    ):
        x[0, 0] = [1]
    with pytest.raises(errors.BroadcastError, match=r"of shape \(2,\), got one of shape \(1, 2\)"):
        x[0] = [[1, 2]]
    with pytest.raises(errors.ArgumentError, match=r"a vector .* got \(1, 3\); v.ravel\(\) is one"):
        x[MASK] = np.ones((1, 3))


# --- arguments that NumPy takes too -------------------------------------------------------------------


class Measured:
    """A class of the user's, written with xarr in place of NumPy."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return xarr.asarray(self.values)


def test_a_class_whose_array_is_one_of_xarr() -> None:
    measured = Measured([3, 1, 2])
    same(xarr.asarray(measured), np.array([3, 1, 2]))
    same(xarr.sort(measured), np.array([1, 2, 3]))
    same(xarr.arange(3) + xarr.sin(measured), np.arange(3) + np.sin([3, 1, 2]))
    with pytest.raises(errors.RaggedError):
        xarr.asarray(Measured([[1], [1, 2]]))


@pytest.mark.parametrize(
    "shift", [1.7, -1.7, True, np.float32(2.9), np.bool_(True), np.array([1.5]), (1.9, False)]
)
def test_rolls_by_what_becomes_an_int(shift: Any) -> None:
    x = np.arange(6).reshape(2, 3)
    axes = (0, 1) if isinstance(shift, tuple) else 1
    same(xarr.roll(x, shift, axes), np.roll(x, shift, axes))
    if not isinstance(shift, tuple):
        same(xarr.roll(x, xarr.asarray(shift), axes), np.roll(x, shift, axes))


@pytest.mark.parametrize("shift", [NAN, INF, 1j, "a", None], ids=repr)
def test_rolls_by_what_is_no_count(shift: Any) -> None:
    with pytest.raises(errors.ArgumentError, match="roll: wanted an int for shift"):
        xarr.roll([1, 2], shift)


@pytest.mark.parametrize(
    "reps", [True, False, (True, 2), np.bool_(True), [False, True], np.array([True, False])]
)
def test_tiles_by_bools(reps: Any) -> None:
    same(xarr.tile([1, 2], reps), np.tile([1, 2], reps))
    if isinstance(reps, bool):
        same(xarr.tile([1, 2], xarr.asarray(reps)), np.tile([1, 2], reps))


# Not "equiv", by which NumPy refuses the Python numbers that "no" lets pass.
@pytest.mark.parametrize("casting", ["no", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize(
    "bounds", [(1, 3), (1.5, 3), (np.int64(1), 3), (None, np.float32(2)), (np.uint8(1), None)]
)
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
def test_casting_of_bounds(casting: str, bounds: tuple[Any, Any], dtype: str) -> None:
    x = np.arange(5).astype(dtype)
    try:
        wanted = np.clip(x, *bounds, casting=casting)
    except TypeError:
        with pytest.raises(errors.DTypeError, match=r"clip: cannot cast"):
            xarr.clip(x, *bounds, casting=casting)
        return
    same(xarr.clip(x, *bounds, casting=casting), wanted)
    same(xarr.asarray(x).clip(*bounds, casting=casting), wanted)


def test_casting_of_clip_to_out() -> None:
    x, o = xarr.asarray([0.5, 2.5, 9.5]), xarr.zeros(3, dtype="int64")
    with pytest.raises(errors.DTypeError, match="same_kind"):
        xarr.clip(x, 1.5, 8, out=o)
    assert xarr.clip(x, 1.5, 8, out=o, casting="unsafe") is o
    same(o, np.array([1, 2, 8]))
    with pytest.raises(errors.ValueRangeError, match="clip: wanted casting as one of"):
        xarr.clip(x, 1, 2, casting="any")
    with pytest.raises(TypeError, match=r"clip: wanted casting as one of .*, got None"):
        xarr.clip(x, 1, 2, casting=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("p", [[1.0, 2, 3], [0.0, 2], [3.0], [1, -1], np.arange(40.0), [1j, 2]], ids=str)
def test_polynomials_at_infinity(p: Any) -> None:
    x = np.array([INF, -INF, NAN, 0.0, 2.0, -1.5])
    with np.errstate(invalid="ignore"):
        wanted = np.polyval(p, x)
    for result in (xarr.polyval(p, x), xarr.jit(xarr.polyval)(np.asarray(p), x)):
        np.testing.assert_array_equal(np.asarray(result), wanted)


def test_subscripts_of_einsum_are_anything_that_is_an_int() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    labels = xarr.arange(2)
    same(xarr.einsum(x, list(labels), y, [labels[1]], [labels[0]]), np.einsum(x, [0, 1], y, [1], [0]))
    for wrong in (True, 1.0, 52, -1, "a"):
        with pytest.raises(errors.ArgumentError, match="wanted ints from 0 to 51"):
            xarr.einsum(y, [wrong])
    with pytest.raises(errors.ValueRangeError, match="einsum: wanted casting as one of"):
        xarr.einsum("i->", y, casting="any")


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    "bounds", [{}, {"ndmax": 2}, {"ndmax": 3, "ndmin": 3}, {"ndmax": 64}, {"ndmax": 2, "ndmin": 1}]
)
def test_the_most_levels_of_a_list(depth: int, bounds: dict[str, int]) -> None:
    if "ndmax" in bounds and OLDER:
        pytest.skip("numpy.array has ndmax since NumPy 2.4")
    nested: Any = [1, 2]
    for _ in range(depth - 1):
        nested = [nested, nested]
    array = np.array(nested)
    same(xarr.array(array, **bounds), np.array(array, **bounds))
    if depth > bounds.get("ndmax", 64):
        with pytest.raises(errors.ShapeError, match="array: wanted sequences nested at most 2 deep"):
            xarr.array(nested, **bounds)
    else:
        same(xarr.array(nested, **bounds), np.array(nested, **bounds))


@pytest.mark.parametrize("bounds", [{"ndmax": -1}, {"ndmax": 65}, {"ndmax": 1, "ndmin": 2}])
def test_impossible_bounds_of_dimensions(bounds: dict[str, int]) -> None:
    with pytest.raises(errors.ValueRangeError, match=r"array: wanted .*ndmax"):
        xarr.array([1], **bounds)


def test_arrays_of_no_floats_are_no_indices_to_delete() -> None:
    same(xarr.delete([0, 1], []), np.delete([0, 1], []))
    for nothing in (np.zeros(0), xarr.zeros(0)):
        with pytest.raises(IndexError, match="delete: wanted ints"):
            xarr.delete([0, 1], nothing)


@pytest.mark.parametrize("mode", ["maximum", "minimum"])
@pytest.mark.parametrize("length", [0, (1, 0), ((0, 1),)])
def test_padding_with_the_largest_of_nothing(mode: str, length: Any) -> None:
    for width in (0, 1):
        with pytest.raises(errors.ValueRangeError, match="pad: wanted a stat_length of 1 or more"):
            xarr.pad([1.0, 2], width, mode, stat_length=length)


def test_a_product_by_name() -> None:
    same(xarr.eye(2).dot(b=[1.0, 2]), np.eye(2).dot(b=[1.0, 2]))


def test_names_of_several_things() -> None:
    named = [
        errors.pluralize(number, noun)
        for number, noun in ((1, "array"), (2, "array"), (2, "entry"), (2, "axis"))
    ]
    assert named == ["1 array", "2 arrays", "2 entries", "2 axes"]


def test_one_tuple_of_elements_after_the_other() -> None:
    own, theirs = (xp.broadcast(xp.asarray([[1], [2]]), xp.asarray([3.5, 4, 5])) for xp in (xarr, np))
    for _ in range(2):
        assert [tuple(map(float, each)) for each in own] == list(theirs)
        assert (own.index, own.size) == (theirs.index, theirs.size) == (6, 6)
        own.reset()
        theirs.reset()
    assert xarr.jit(lambda x: xarr.zeros(xarr.broadcast(x, [[1], [2]]).shape))(np.ones(3)).shape == (2, 3)
    with xarr.config(broadcasting="explicit"):
        assert xarr.broadcast(xarr.ones((2, 1)), 3).shape == (2, 1)
    with pytest.raises(errors.BroadcastError, match="broadcast"):
        xarr.broadcast([1, 2], [1, 2, 3])


def test_digits_of_numbers_that_have_none() -> None:
    assert xarr.binary_repr(xarr.asarray(5), 4) == xarr.base_repr(xarr.asarray(5), padding=1) == "0101"
    assert xarr.binary_repr(True) == "1"
    for base in (1, 37):
        with pytest.raises(errors.ValueRangeError, match=r"base_repr: wanted a base from 2 to 36"):
            xarr.base_repr(5, base)
    with pytest.raises(
        errors.ValueRangeError, match=r"binary_repr: wanted a width of 4 or more for 10, got 2"
    ):
        xarr.binary_repr(10, 2)
    with pytest.raises(errors.InputError, match="wanted an int"):
        xarr.binary_repr(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(3,), (2, 5), (4, 4), (0, 2), (), (2, 3, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
def test_an_array_resizes_itself(shape: tuple[int, ...], dtype: str) -> None:
    host = np.arange(6).reshape(2, 3).astype(dtype)
    x, other = xarr.asarray(host), xarr.asarray(host)
    same_value = x.copy()
    x.resize(*shape) if shape else x.resize(())
    wanted = host.copy()
    wanted.resize(shape, refcheck=False)
    same(x, wanted)
    same(other, host)
    same(same_value, host)

    def show(x: Any) -> Any:
        y = x.copy()
        y.resize(shape)
        return y

    same(xarr.jit(show)(other), wanted)


def test_what_does_not_resize() -> None:
    x = xarr.arange(6)
    x.resize(None)
    x.resize()
    same(x, np.arange(6))
    for wrong, error in (("hi", TypeError), (-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="resize"):
            x.resize(wrong)
    with pytest.raises(TypeError, match="refcheck"):
        x.resize(3, refcheck="hi")
    part = x[:4]
    with pytest.raises(errors.ArgumentError, match=r"resize: wanted an array that owns its data"):
        part.resize(2)
    alone = part.copy()
    alone.resize(2)
    same(alone, np.arange(2))


def test_complex_types_of_objects_that_are_no_arrays() -> None:
    class Column:
        def __init__(self, dtype: Any) -> None:
            self.dtype = dtype

    for dtype in (np.dtype("complex64"), np.dtype(float), type("Own", (), {"type": np.complex128})()):
        assert xarr.iscomplexobj(Column(dtype)) is bool(np.iscomplexobj(Column(dtype)))
        assert xarr.isrealobj(Column(dtype)) is not xarr.iscomplexobj(Column(dtype))
    assert xarr.iscomplexobj([1j])
    assert not xarr.iscomplexobj(xarr.asarray([1.0], dtype="bfloat16"))


def test_a_method_chooses_among_several_arrays() -> None:
    x, rows = np.array([0, 2, 1]), np.arange(9.0).reshape(3, 3)
    same(xarr.asarray(x).choose(*rows), x.choose(*rows))
    same(xarr.asarray(x).choose(rows), x.choose(rows))
    o = xarr.zeros(3)
    assert xarr.asarray(x + 1).choose(rows[0], rows[1], out=o, mode="clip") is o
    same(o, (x + 1).choose(rows[0], rows[1], mode="clip"))


def test_a_conjugate_goes_to_out() -> None:
    x = np.array([1 - 1j, 2j])
    o = xarr.zeros(2, dtype=complex)
    assert xarr.asarray(x).conjugate(o) is o
    same(o, x.conjugate())


@pytest.mark.parametrize(("kind", "error"), [(1, TypeError), ("quick", ValueError)])
def test_kinds_of_partitions(kind: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="partition: wanted the kind 'introselect'"):
        xarr.partition([3, 1, 2], 1, kind=kind)
