"""NumPy's functions beyond the standard: in traced functions, with explicit broadcasting, and what they refuse."""

import numpy as np
import pytest

import xarr
from tests.support.functions import expression, same
from xarr import errors

#: Expressions of `x`, a float64 matrix with NaN, `y`, one without, and `z`, a vector of small integers.
TRACED = (
    "xp.median(y, axis=0)",
    "xp.quantile(y, [0.3, 1.0], axis=1, method='hazen')",
    "xp.quantile(y, y[0, :1] * 0 + 0.25)",
    "xp.percentile(y, 40, method='inverted_cdf', weights=y * y + 1)",
    "xp.nanmedian(x, 1)",
    "xp.nanquantile(x, 0.4, axis=0)",
    "xp.nansum(x)",
    "xp.nanmax(x, 0)",
    "xp.nanvar(x, axis=1, ddof=1)",
    "xp.nanargmax(y, axis=0)",
    "xp.nancumsum(x)",
    "xp.partition(y, 1)[:, 1]",
    "xp.lexsort((y[1], y[0]))",
    "xp.sort_complex(y)",
    "xp.histogram(y, 4)",
    "xp.histogram(y, [-9, 0, 1, 9], weights=y)",
    "xp.histogram2d(y[0], y[1], 3, density=True)",
    "xp.digitize(y, y[0] * 0 + 1)",
    "xp.cov(y)",
    "xp.cov(y, aweights=z + 1, ddof=0)",
    "xp.corrcoef(y, y + 1)",
    "xp.convolve(y[0], y[1], 'same')",
    "xp.correlate(y[0], y[1, :2])",
    "xp.interp(y, z * 1.0, z * 2.0)",
    "xp.interp(y, y[0], y[1], period=3)",
    "xp.gradient(y, 0.5, z * z + 2.0 * z, edge_order=2)",
    "xp.ediff1d(y, to_end=y[0])",
    "xp.trapezoid(y, z * z)",
    "xp.unwrap(y)",
    "xp.i0(y)",
    "xp.sinc(y)",
    "xp.heaviside(y, y)",
    "xp.logaddexp2(y, y)",
    "xp.float_power(z, z)",
    "xp.gcd(z, 6)",
    "xp.lcm(z, z)",
    "xp.angle(y + 1j)",
    "xp.nan_to_num(x)",
    "xp.frexp(y)",
    "xp.ldexp(y[0], z)",
    "xp.modf(y)",
    "xp.spacing(y)",
    "xp.bitwise_count(z)",
    "xp.packbits(y > 0, axis=0)",
    "xp.unpackbits((y > 0).astype('uint8'), axis=1)",
    "xp.isneginf(y)",
    "xp.polyadd(y[0], z)",
    "xp.polyder(y[0], 2)",
    "xp.polyint(y[0], 2, 1)",
    "xp.polyval(y[0], y)",
    "xp.poly(y[0])",
    "xp.polyfit(z, y[0], 2)",
    "xp.polyfit(z, y.T, 1, full=True)[1]",
    "xp.kaiser(5, y[0, 0])",
)


def _inputs():
    generator = np.random.default_rng(7)
    y = np.round(generator.normal(size=(3, 4)) * 3, 2)
    x = y.copy()
    x[0, 1] = x[2, 3] = np.nan
    return x, y, np.arange(4)


@pytest.mark.parametrize("text", TRACED)
def test_traced_functions_give_what_numpys_give_with_explicit_broadcasting(text):
    call, (x, y, z) = expression(text), _inputs()
    with xarr.config(broadcasting="explicit"):
        outputs = xarr.jit(lambda *inputs: call(xarr, *inputs))(x, y, z)
        eager = call(xarr, *map(xarr.asarray, (x, y, z)))
    wanted = call(np, x, y, z)
    for result in (outputs, eager):
        same(result, wanted, 1e-12)


@pytest.mark.parametrize("text", TRACED[::4])
def test_the_reference_gives_what_numpy_gives(text):
    call, inputs = expression(text), _inputs()
    with xarr.use_backend("reference"):
        same(call(xarr, *map(xarr.asarray, inputs)), call(np, *inputs), 1e-12)


@pytest.mark.implicit
def test_ldexp_broadcasts():
    _, y, z = _inputs()
    same(xarr.jit(xarr.ldexp)(y, z), np.ldexp(y, z))
    with xarr.config(broadcasting="explicit"), pytest.raises(errors.BroadcastError, match="ldexp"):
        xarr.ldexp(y, z)


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("xp.bincount(z)", "length="),
        ("xp.histogram(y, 'auto')", "bins= as a number"),
        ("xp.histogram_bin_edges(y, 'fd')", "bins= as a number"),
        ("xp.polymul(y[0], y[1])", "trim_leading_zeros=False"),
        ("xp.polydiv(y[0], y[1])", "trim_leading_zeros=False"),
        ("xp.roots(y[0])", "strip_zeros=False"),
        ("xp.real_if_close(y + 0j)", "xarr.real"),
    ],
)
def test_what_depends_on_values_says_what_helps_in_traced_functions(text, help):
    with pytest.raises(errors.TracedValueError, match=help) as caught:
        xarr.jit(lambda *inputs: expression(text)(xarr, *inputs))(*_inputs())
    assert f"It was asked for at {text}" in str(caught.value)


def test_lengths_and_leading_zeros_can_be_said_in_traced_functions():
    i = np.array([1, 1, 0, 4])
    same(xarr.jit(lambda i: xarr.bincount(i, length=3))(i), np.array([1, 2, 0]))
    p, q = np.array([0.0, 1, 2]), np.array([2.0, 1])
    same(xarr.jit(lambda p, q: xarr.polymul(p, q, trim_leading_zeros=False))(p, q), np.convolve(p, q))
    quotient, rest = xarr.jit(lambda p, q: xarr.polydiv(p, q, trim_leading_zeros=False))(p, q)
    same(quotient, np.array([0, 0.5]))
    same(rest, np.array([0, 0, 1.5]))


def _tell(value):
    """Classes by name, messages as they are; a call shows no address, which differs between processes."""
    return "call" if type(value) is type(_tell) else getattr(value, "__name__", value)


@pytest.mark.parametrize(
    ("call", "error", "wanted"),
    [
        (lambda: xarr.median([1.0], out=np.zeros(())), errors.InputError, "wanted an xarr Array for out="),
        (lambda: xarr.quantile([1.0], 1.5), errors.ValueRangeError, r"q in \[0, 1\], got 1.5"),
        (lambda: xarr.percentile([1.0], np.nan), errors.ValueRangeError, r"q in \[0, 100\]"),
        (lambda: xarr.quantile([1.0], 0.5, method="middle"), errors.ValueRangeError, "median_unbiased"),
        (lambda: xarr.quantile([1.0], 0.5, weights=[1]), errors.ValueRangeError, "inverted_cdf"),
        (
            lambda: xarr.quantile([1.0, 2], 0.5, method="inverted_cdf", weights=[1, -1]),
            errors.ValueRangeError,
            "finite weights of 0 or more",
        ),
        (lambda: xarr.quantile([1j], 0.5), errors.DTypeError, "no order"),
        (lambda: xarr.quantile([], 0.5), errors.ShapeError, "wanted at least one element"),
        (lambda: xarr.partition([3, 1], 2), errors.ValueRangeError, r"kth in \[-2, 1\]"),
        (lambda: xarr.partition([3, 1], 0, kind="heap"), errors.ValueRangeError, "introselect"),
        (lambda: xarr.lexsort(()), errors.InputError, "at least one key"),
        (lambda: xarr.lexsort(([1], [1, 2])), errors.ShapeError, "one shape"),
        (lambda: xarr.nanmean([1.0], dtype="int64"), errors.DTypeError, "float or complex dtype"),
        (lambda: xarr.nanmax([]), errors.ShapeError, "wanted at least one element.*"),
        (lambda: xarr.nanmax([1.0], where=[True]), errors.ShapeError, "initial="),
        (lambda: xarr.bincount([-1]), errors.ValueRangeError, "not negative, got -1"),
        (lambda: xarr.bincount([1.5]), errors.DTypeError, "astype"),
        (lambda: xarr.bincount([1], [1, 2]), errors.ShapeError, r"weights of shape \(1,\)"),
        (lambda: xarr.bincount([1], minlength=2, length=3), errors.InputError, "give one of them"),
        (lambda: xarr.digitize([1], [1, 3, 2]), errors.ValueRangeError, "increasing or decreasing"),
        (lambda: xarr.histogram([1], 0), errors.ValueRangeError, "at least one bin"),
        (lambda: xarr.histogram([1], 2.5), errors.InputError, "an int, edges or a rule"),
        (lambda: xarr.histogram([1], "many"), errors.ValueRangeError, "sturges"),
        (lambda: xarr.histogram([1], "fd", weights=[1]), errors.InputError, "uses elements, not weights"),
        (lambda: xarr.histogram([1], [2, 1]), errors.ValueRangeError, "increasing order"),
        (lambda: xarr.histogram([1, np.nan]), errors.ValueRangeError, "give range="),
        (lambda: xarr.histogram([1], 3, (2, 1)), errors.ValueRangeError, "first <= last"),
        (lambda: xarr.histogram([1], 10, (1, 1 + 1e-16 * 4)), errors.ValueRangeError, "too many"),
        (lambda: xarr.histogramdd([[1, 2]], "fd"), errors.InputError, "got the rule"),
        (lambda: xarr.histogramdd([[1, 2]], [3]), None, None),
        (lambda: xarr.histogram2d([1], [1, 2]), errors.ShapeError, "one length"),
        (lambda: xarr.cov([1, 2], fweights=[0.5, 1]), errors.DTypeError, "aweights="),
        (lambda: xarr.cov([1, 2], aweights=[-1, 1]), errors.ValueRangeError, "not negative.*"),
        (lambda: xarr.cov(np.ones((1, 1, 1))), errors.ShapeError, "at most 2 dimensions"),
        (lambda: xarr.convolve([], [1]), errors.ShapeError, "at least one element"),
        (lambda: xarr.convolve([[1]], [1]), errors.ShapeError, "wanted vectors of at least one"),
        (lambda: xarr.convolve([1], [1], "all"), errors.ValueRangeError, "'full', 'same', 'valid'"),
        (lambda: xarr.interp(0, [], []), errors.ShapeError, "at least 1"),
        (lambda: xarr.interp(0, [1], [1], period=0), errors.ValueRangeError, "other than 0"),
        (lambda: xarr.gradient([1.0]), errors.ShapeError, "at least edge_order"),
        (lambda: xarr.gradient([1.0, 2], 1, 2), errors.InputError, "one spacing"),
        (lambda: xarr.gradient([1.0, 2], edge_order=3), errors.ValueRangeError, "edge_order of 1 or 2"),
        (lambda: xarr.gradient([True, False]), errors.DTypeError, "bools"),
        (lambda: xarr.ediff1d([1, 2], 0.5), errors.DTypeError, "to_end of float64"),
        (lambda: xarr.trapezoid([1, 2], [1, 2, 3]), errors.ShapeError, "2 coordinates"),
        (lambda: xarr.nan_to_num([1.0], copy=False), errors.InputError, "copy=False is not possible"),
        (lambda: xarr.gcd(1.5, 2), errors.DTypeError, "wanted integers"),
        (lambda: xarr.ldexp(1.5, 0.5), errors.DTypeError, "integers that int64 holds"),
        (lambda: xarr.isposinf(1j), errors.DTypeError, "xarr.real"),
        (lambda: xarr.packbits([0.5]), errors.DTypeError, "x != 0"),
        (lambda: xarr.packbits([1], bitorder="up"), errors.ValueRangeError, "'big' or 'little'"),
        (lambda: xarr.unpackbits([1]), errors.DTypeError, "wanted uint8"),
        (
            lambda: xarr.unpackbits(np.zeros(1, "uint8"), count=-9),
            errors.ValueRangeError,
            "cannot leave out 9 of 8",
        ),
        (lambda: xarr.polyder([1, 2], -1), errors.ValueRangeError, "polyint"),
        (lambda: xarr.polyint([1, 2], 3, [1, 2]), errors.ShapeError, "3 of them"),
        (lambda: xarr.poly([[1, 2]]), errors.ShapeError, "a square matrix"),
        (lambda: xarr.polyfit([], [], 1), errors.ArgumentError, "n >= 1 points"),
        (lambda: xarr.polyfit([1, 2], [1, 2], 1, cov=True), errors.ValueRangeError, "unscaled"),
        (lambda: xarr.polyfit([1, 2, 3], np.ones(3, "float16"), 1), errors.DTypeError, "32 bits or more"),
        (lambda: xarr.polyadd([[1]], [1]), errors.ShapeError, "vector of coefficients"),
    ],
    ids=_tell,
)
def test_refusals_say_what_would_work(call, error, wanted):
    if error is None:
        call()
        return
    with pytest.raises(error, match=wanted):
        call()


def test_a_slice_of_nan_has_no_index():
    assert xarr.nanargmax([[np.nan, np.nan], [1, 2]], axis=1).tolist() == [-1, 1]
    assert xarr.nanargmin(np.nan).item() == -1


def test_integers_far_apart_have_quantiles_between_them():
    extremes = np.array([-128, 127], np.int8)
    assert xarr.quantile(extremes, 0.5).item() == -0.5


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_narrow_floats_keep_their_type(dtype):
    x = xarr.asarray([1, 3, 2, 4], dtype)
    for result in (xarr.median(x), xarr.quantile(x, 0.5), xarr.nanmean(x), xarr.i0(x), xarr.sinc(x)):
        assert result.dtype == x.dtype
    fraction, exponent = xarr.frexp(x)
    assert (xarr.ldexp(fraction, exponent) == x).all()
    assert xarr.histogram(x, 3)[0].tolist() == [1, 1, 2]


def test_sorting_keeps_zeros_and_nan_in_their_order():
    x = np.array([[0.0, 1, -0.0, -1, 0.0], [np.nan, -0.0, 2, -np.nan, 0.0]])
    for axis, values in ((1, x), (0, x.T.copy())):
        wanted = np.sort(values, axis, kind="stable")
        assert np.signbit(xarr.sort(values, axis)).tolist() == np.signbit(wanted).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_long_sequences_are_convolved_as_short_ones(dtype, mode):
    generator = np.random.default_rng(3)
    signal, kernel = (generator.normal(size=size).astype(dtype) for size in (5003, 301))
    rtol = 1e-4 if dtype == "float32" else 1e-12
    same(xarr.convolve(signal, kernel, mode), np.convolve(signal, kernel, mode), rtol)
    same(xarr.correlate(kernel, signal, mode), np.correlate(kernel, signal, mode), rtol)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_stay_where_a_long_kernel_reaches(value):
    signal, kernel = np.ones(5003), np.ones(301)
    signal[1000] = value
    wanted = np.convolve(signal, kernel)
    same(xarr.convolve(signal, kernel), wanted, 1e-12)
    assert np.isfinite(wanted).sum() == wanted.size - 301
