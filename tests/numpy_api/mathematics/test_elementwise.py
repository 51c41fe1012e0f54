"""Every public element-wise function against NumPy's of the same name: dtypes, special values, shapes.

Where the table ULP has a bound the results may differ by so many representable numbers; everywhere else
the bits are NumPy's, but for the functions that compiled loops compute by polynomials.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from itertools import product
from types import FunctionType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

import xarr
from tests.compare import assert_same
from tests.elementwise_ops import REGULAR, has_formula
from xarr.base.configuration import current as config
from xarr.errors import DTypeError, ValueRangeError
from xarr.numpy_api.mathematics import complex_numbers, division, elementwise, rounding

pytestmark = pytest.mark.implicit

HostArray = np.ndarray[Any, Any]

REAL = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REAL += ["float16", "float32", "float64"]
DTYPES = [*REAL, "complex64", "complex128"]

MODULES = (complex_numbers, division, elementwise, rounding)

#: What `xarr` offers of these modules.
PUBLIC = sorted(
    {
        name
        for module in MODULES
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and getattr(xarr, name, None) is value
    }
)

UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_invert",
    "cbrt",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "degrees",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "negative",
    "positive",
    "radians",
    "real",
    "reciprocal",
    "rint",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
BINARY = [
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "copysign",
    "divide",
    "divmod",
    "equal",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "pow",
    "remainder",
    "subtract",
]
ALIASES = {
    **{"absolute": "abs", "around": "round", "bitwise_not": "bitwise_invert", "invert": "bitwise_invert"},
    **{"conjugate": "conj", "deg2rad": "radians", "rad2deg": "degrees", "fix": "trunc", "mod": "remainder"},
    **{f"arc{name}": f"a{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh", "tan2")},
    **{"left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift"},
    **{"true_divide": "divide", "power": "pow"},
}
#: Tested below, or by their records in `tests/numpy_records`.
OTHER = ["angle", "clip", "float_power", "gcd", "lcm", "logaddexp2", "real_if_close"]

#: Bounds on the distance from NumPy's result.  log2 and log10 divide a logarithm, hypot and logaddexp are
#: composed; powers of float16 are rounded once more.
#: The sum in logaddexp cancels where its result is near 0.  degrees and radians round their factor once more.
ULP = {"log2": 2, "log10": 2, "hypot": 2, "logaddexp": 16, "exp2": 1, "degrees": 1, "radians": 1}
#: Functions for which compiled loops have polynomials of their own.  Their errors are bounded in
#: `tests/elementwise_ops.py`; NumPy's come on top.
POLYNOMIALS = {op.lax_name for op in REGULAR if has_formula(op)}
#: Where NumPy's sign of zero depends on the element type and on the index in the array; xarr's is IEEE 754's.
ZERO_SIGNS = {"maximum", "minimum", "fmax", "fmin", "nextafter"}
#: For complex numbers, in spacings of the larger part.
COMPLEX_ULP = {**dict.fromkeys(UNARY + BINARY, 4), "pow": 8, "exp2": 8}


def bound_of(name: str) -> int:
    """The distance at which a result may lie from NumPy's, in representable numbers."""
    return max(ULP.get(name, 0), 5 if config.fusion == "compiled" and name in POLYNOMIALS else 0)


def test_every_function_is_tested() -> None:
    assert {*UNARY, *BINARY, *ALIASES, *OTHER} == set(PUBLIC)
    for alias, name in ALIASES.items():
        assert getattr(xarr, alias) is getattr(xarr, name)


def test_every_function_is_public() -> None:
    own = [
        name
        for module in MODULES
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    ]
    assert [name for name in own if not name.startswith("_") and name not in PUBLIC] == []


def numpy_name(name: str) -> str:
    """The name that this NumPy has for it: the older versions lack the Array API's names."""
    return name if hasattr(np, name) else {"bitwise_not": "invert"}[name]


def special(dtype: str) -> HostArray:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([True, False])
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        values = {0, 1, 2, 3, 7, 8, 64, limits.max, limits.max - 1, limits.min, limits.min + 1}
        values |= {-1, -2, -3, -7} if kind.kind == "i" else set()
        return np.array(sorted(values), kind)
    limit = np.finfo(kind)
    values = [0.0, 0.5, 1.0, 1.5, 2.5, 3.7, 7.0, 100.0, 1e-3, np.inf, float(limit.max), float(limit.tiny)]
    values += [float(limit.smallest_subnormal), np.nextafter(1, 2, dtype=limit.dtype)]
    both = np.array([*values, *[-x for x in values], np.nan], limit.dtype)
    if kind.kind == "c":
        return np.array([complex(a, b) for a in both[:8] for b in (0.0, 1.0, -2.5, 0.5)], kind)
    return both


def compute_expected(name: str, *operands: Any) -> Any:
    """NumPy's result, or the TypeError that it raises."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(np, numpy_name(name))(*operands)
        except TypeError as error:
            return error


def check(name: str, *operands: HostArray) -> None:
    wanted = compute_expected(name, *operands)
    arrays = [xarr.asarray(operand) for operand in operands]
    function: Callable[..., Any] = getattr(xarr, name)
    if isinstance(wanted, TypeError):
        with pytest.raises(DTypeError):
            function(*arrays)
        return
    results = function(*arrays)
    pairs = zip(results, wanted, strict=True) if isinstance(wanted, tuple) else [(results, wanted)]
    for got, right in pairs:
        if right.dtype.kind == "c":
            keep = np.isfinite(right)
            assert got.dtype == right.dtype
            assert_same(np.asarray(got)[keep], right[keep], ulp=COMPLEX_ULP[name], normwise=True)
        elif name in ZERO_SIGNS and right.dtype.kind == "f":
            assert_same(np.asarray(got) + 0, right + 0)
        else:
            assert_same(got, right, ulp=bound_of(name))


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    for dtype in DTYPES:
        x = special(dtype)
        if name == "reciprocal" and x.dtype.kind in "biu":
            x = x[x != 0]  # NumPy's result for 1 / 0 depends on the platform
        check(name, x)
        check(name, x[:1].reshape(()))
        check(name, x[:0].reshape(0, 3))
        check(name, np.stack([x, x])[:, ::-2].T)


def is_skipped(name: str, left: HostArray, right: HostArray) -> bool:
    """Whether xarr refuses it or defines it otherwise: order of complex numbers, negative powers of integers."""
    kinds = left.dtype.kind + right.dtype.kind
    ordered = name in ("less", "less_equal", "greater", "greater_equal")
    return (ordered and "c" in kinds) or (name == "pow" and set(kinds) <= set("biu"))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    chosen = [dtype for dtype in DTYPES if dtype not in ("int16", "int32", "uint16", "uint32", "complex128")]
    for left, right in product(chosen, chosen):
        x, y = special(left)[:, None], special(right)[None, :]
        if not is_skipped(name, x, y):
            check(name, x, y)


@pytest.mark.parametrize("name", BINARY)
def test_result_dtypes_of_every_pair(name: str) -> None:
    for left, right in product(DTYPES, DTYPES):
        x, y = np.ones(1, left), np.ones(1, right)
        wanted = compute_expected(name, x, y)
        if is_skipped(name, x, y) or isinstance(wanted, TypeError):
            continue
        results = getattr(xarr, name)(xarr.asarray(x), xarr.asarray(y))
        pairs = zip(results, wanted, strict=True) if isinstance(wanted, tuple) else [(results, wanted)]
        assert all(got.dtype == right.dtype for got, right in pairs), (left, right)


@pytest.mark.sampled
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("number", [True, 2, 2.5], ids=repr)
def test_binary_with_python_numbers(name: str, number: float) -> None:
    for dtype in REAL:
        x = special(dtype)
        if name == "pow" and x.dtype.kind in "biu" and not isinstance(number, float):
            x = x[:0]
        for operands in ((x, number), (number, x)):
            wanted = compute_expected(name, *operands)
            arguments = [xarr.asarray(v) if isinstance(v, np.ndarray) else v for v in operands]
            if isinstance(wanted, TypeError):
                with pytest.raises(DTypeError):
                    getattr(xarr, name)(*arguments)
                continue
            results = getattr(xarr, name)(*arguments)
            pairs = zip(results, wanted, strict=True) if isinstance(wanted, tuple) else [(results, wanted)]
            for got, right in pairs:
                assert_same(got, right, ulp=bound_of(name))


@pytest.mark.parametrize("name", BINARY)
def test_binary_shapes(name: str) -> None:
    dtype = (
        "int32"
        if compute_expected(name, np.array([1.5]), np.array([1.5])).__class__ is TypeError
        else "float32"
    )
    shapes = [(), (1,), (3,), (0,), (2, 1), (2, 3), (1, 0), (4, 2, 3)]
    for left, right in product(shapes, shapes):
        x, y = np.full(left, 6, dtype), np.full(right, 2, dtype)
        if not isinstance(numpy_shape(left, right), ValueError):
            check(name, x, y)


def numpy_shape(left: tuple[int, ...], right: tuple[int, ...]) -> Any:
    try:
        return np.broadcast_shapes(left, right)
    except ValueError as error:
        return error


@pytest.mark.parametrize("name", ["complex order", "rounding of complex", "bool minus", "bool positive"])
def test_refusals_name_function_and_dtype(name: str) -> None:
    z, flags = xarr.asarray([1j]), xarr.asarray([True])
    compute, text = {
        "complex order": (lambda: xarr.less(z, z), "less: wanted real numbers, got complex128"),
        "rounding of complex": (lambda: xarr.floor(z), "floor: wanted real numbers, got complex128"),
        "bool minus": (lambda: xarr.subtract(flags, flags), r"subtract: not defined for bools; use \^"),
        "bool positive": (lambda: xarr.positive(flags), "positive: not defined for bools"),
    }[name]
    with pytest.raises(DTypeError, match=text):
        compute()


def test_the_common_float_of_integers_is_numpys() -> None:
    for left, right in product(REAL[:9], REAL[:9]):
        x, y = np.ones(2, left), np.ones(2, right)
        assert xarr.hypot(xarr.asarray(x), xarr.asarray(y)).dtype == np.hypot(x, y).dtype
        assert xarr.divide(xarr.asarray(x), xarr.asarray(y)).dtype == np.divide(x, y).dtype


def test_default_dtype_float32() -> None:
    x = xarr.asarray(np.array([1, 2], np.int64))
    with xarr.config(default_dtype="float32"):
        assert xarr.sqrt(x).dtype == np.float32
        assert xarr.divide(x, x).dtype == np.float32
        assert xarr.asarray([1.5]).dtype == np.float32


@pytest.mark.parametrize("decimals", [-3, -1, 0, 1, 2, 5])
@pytest.mark.parametrize("dtype", [*DTYPES[1:]])
def test_round_to_decimals(dtype: str, decimals: int) -> None:
    x = np.array([0, 5, 15, 25, 120, 99], dtype)
    if x.dtype.kind in "fc":
        x = np.concatenate([x + x.dtype.type(0.125), -x, x / x.dtype.type(8)])
    with np.errstate(all="ignore"):
        wanted = np.round(x, decimals)
    assert_same(xarr.round(xarr.asarray(x), decimals), wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ml_dtypes.bfloat16])
def test_the_sign_of_nan(dtype: Any) -> None:
    x = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf], dtype)
    assert_same(xarr.signbit(xarr.asarray(x)), np.signbit(x))
    turned = np.asarray(xarr.copysign(xarr.asarray(x), xarr.asarray(-x)))
    np.testing.assert_array_equal(np.signbit(turned), ~np.signbit(x))


def test_logaddexp_of_infinities() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1000.0, -1000.0])
    check("logaddexp", x[:, None], x[None, :])


def test_hypot_does_not_overflow() -> None:
    for dtype in ("float16", "float32", "float64"):
        big = np.finfo(dtype).max / np.dtype(dtype).type(2)
        assert np.isfinite(np.asarray(xarr.hypot(xarr.asarray(big), xarr.asarray(big))))
        tiny = np.finfo(dtype).smallest_subnormal
        assert_same(xarr.hypot(xarr.asarray(tiny), xarr.asarray(tiny * 0)), tiny)


@pytest.mark.parametrize(
    "bounds",
    [(0, 2), (None, 2), (1, None), (None, None), (3, 1), (0.5, 1.5), ([0, 1, 2], 2), ([[1], [2]], None)],
    ids=repr,
)
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
def test_clip(dtype: str, bounds: tuple[Any, Any]) -> None:
    x = np.array([-1, 0, 1], dtype) if dtype[0] == "i" else np.array([-1.0, np.nan, 2.0], dtype)
    low, high = (np.array(bound) if isinstance(bound, list) else bound for bound in bounds)
    arguments = [xarr.asarray(bound) if isinstance(bound, np.ndarray) else bound for bound in (low, high)]
    assert_same(xarr.clip(xarr.asarray(x), *arguments), np.clip(x, low, high))
    assert_same(xarr.clip(xarr.asarray(x), min=arguments[0], max=arguments[1]), np.clip(x, low, high))


def test_clip_refuses_a_bound_that_the_type_cannot_hold() -> None:
    with pytest.raises(ValueRangeError, match="300 is out of bounds for uint8"):
        xarr.clip(xarr.asarray(np.array([1], np.uint8)), 300, None)


@pytest.mark.parametrize("name", ["fmax", "fmin", "maximum", "minimum"])
def test_nan_beside_numbers(name: str) -> None:
    for dtype in ("float16", "float32", "float64", "complex64"):
        x = np.array([np.nan, 1.0, -0.0, np.nan, -np.inf], dtype)
        y = np.array([2.0, np.nan, 0.5, np.nan, np.inf], dtype)
        assert_same(getattr(xarr, name)(xarr.asarray(x), xarr.asarray(y)), getattr(np, name)(x, y))


@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh", "floor", "isnan", "negative", "abs", "log1p"])
def test_bfloat16_and_float8(name: str) -> None:
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e5m2):
        x = np.array([0.5, -0.0, 1.5, np.inf, np.nan, -2.0], dtype)
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(x)
        assert_same(getattr(xarr, name)(xarr.asarray(x)), wanted)


FINITE = st.floats(-1e6, 1e6, width=32).map(np.float32)


@given(FINITE, FINITE)
def test_division_identities(x: np.float32, y: np.float32) -> None:
    for name in ("floor_divide", "remainder", "fmod", "divmod"):
        check(name, np.array([x, x]), np.array([y, -y]))


@given(st.integers(-128, 127), st.integers(-128, 127))
def test_integer_division_identities(x: int, y: int) -> None:
    left, right = np.array([x], np.int8), np.array([y], np.int8)
    for name in ("floor_divide", "remainder", "fmod", "left_shift", "right_shift"):
        check(name, left, right)


def test_lists_and_numbers_are_operands_too() -> None:
    assert_same(xarr.add([1, 2], 3), np.array([4, 5]))
    assert_same(xarr.add(1, 2.5), np.array(3.5))
    assert_same(xarr.sqrt(4), np.array(2.0))
    assert_same(xarr.logical_and([1, 0], True), np.array([True, False]))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_logical_functions_take_two_arrays(name: str, count: int) -> None:
    with pytest.raises(TypeError, match=rf"{name}\(\)"):
        getattr(xarr, name)(*[xarr.asarray([True, False])] * count)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("two", [2, 2.0], ids=["int", "float"])
def test_the_power_of_two_is_a_product(dtype: str, two: float) -> None:
    x = xarr.asarray(np.array([0, 1, 3, 7, 11, 100]), dtype=dtype)
    if two == 2.0 and isinstance(two, float) and dtype in ("int8", "uint32"):
        assert (x**two).dtype == np.float64
        return
    text = str(xarr.lower(lambda x: x**two, x))
    assert "stablehlo.multiply" in text and "power" not in text
    assert_same(x**two, np.asarray(x) * np.asarray(x))


def test_other_powers_and_those_of_complex_numbers_are_powers() -> None:
    x = xarr.asarray([1.5, 2.5])
    assert "stablehlo.power" in str(xarr.lower(lambda x: x**3, x))
    assert "stablehlo.power" in str(xarr.lower(lambda x: 2**x, x))
    assert "stablehlo.power" in str(xarr.lower(lambda x: xarr.power(x + 1j, 2), x))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_operator_multiplies_complex_numbers_by_themselves(dtype: str) -> None:
    part = np.finfo(dtype).dtype
    special = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, np.finfo(part).max, -np.finfo(part).tiny]
    pairs = np.stack([each.ravel() for each in np.meshgrid(special, special)], -1).astype(part)
    drawn = np.random.default_rng(5).normal(size=(1000, 2)).astype(part)
    values = np.concatenate([pairs, drawn]).view(dtype).ravel()
    z = xarr.asarray(values)
    for square in (lambda z: z**2, lambda z: operator.ipow(z.copy(), 2)):
        graph = xarr.lower(square, z)
        assert "stablehlo.power" not in str(graph)
        assert_same(square(z), z * z)
        assert_same(xarr.jit(square)(z), xarr.jit(lambda z: z * z)(z))

    assert "stablehlo.power" in str(xarr.lower(lambda z: z**3, z))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_the_operator_has_functions_of_its_own_for_roots_and_reciprocals_as_numpys(dtype: str) -> None:
    part = np.finfo(dtype).dtype
    special = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, np.finfo(part).max, -np.finfo(part).tiny]
    values = np.array(special, part)
    if dtype.startswith("complex"):
        pairs = np.stack([each.ravel() for each in np.meshgrid(special, special)], -1).astype(part)
        drawn = np.random.default_rng(5).normal(size=(1000, 2)).astype(part)
        values = np.concatenate([pairs, drawn]).view(dtype).ravel()
    x = xarr.asarray(values)
    with np.errstate(all="ignore"):
        inverses, roots = values**-1, values**0.5
    for invert, root in (
        (lambda x: x**-1, lambda x: x**0.5),
        (lambda x: operator.ipow(x.copy(), -1), lambda x: operator.ipow(x.copy(), 0.5)),
    ):
        for call in (lambda function: function, xarr.jit):
            assert_same(call(invert)(x), inverses)
            assert_same(call(root)(x), call(xarr.sqrt)(x))
            # Of finite complex numbers compiled loops round their last bits in another way.
            result = np.asarray(call(root)(x))
            for own, wanted in ((result.real, roots.real), (result.imag, roots.imag)):
                is_exact = ~np.isfinite(roots) | (wanted == 0)
                assert_same(own[is_exact], wanted[is_exact])
    for power in (lambda x: x**0.5, lambda x: x**-1):
        assert "stablehlo.power" not in str(xarr.lower(power, x))
    # Numbers of other types are powers there too.
    for power in (lambda x: x**-1.0, lambda x: x ** np.float64(0.5), lambda x: xarr.power(x, 0.5)):
        assert "stablehlo.power" in str(xarr.lower(power, x))
