"""Functions of one element, two or three: ufuncs and their relatives.

Transcendental functions are xarr's own or NumPy's, by engine: they agree within a few ULP.
"""

from tests.support.functions import FLOATS
from tests.support.numpy_records import Record

_CLOSE = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-14, "complex64": 4e-6}
_REAL = ("bool", "int8", "uint8", "int64", "uint64", *FLOATS)
_WHOLE = ("bool", "int8", "uint8", "int64", "uint64")

_EXACT_UNARY = [
    "abs",
    "absolute",
    "ceil",
    "fabs",
    "floor",
    "invert",
    "bitwise_invert",
    "bitwise_not",
    "isfinite",
    "isinf",
    "isnan",
    "logical_not",
    "negative",
    "positive",
    "rint",
    "signbit",
    "square",
    "trunc",
    "conj",
    "conjugate",
    "real",
    "imag",
]
_CLOSE_UNARY = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "rad2deg",
    "radians",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
_EXACT_BINARY = [
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "copysign",
    "equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "multiply",
    "not_equal",
    "subtract",
]
_EXTREMES = ["fmax", "fmin", "maximum", "minimum"]
_ORDERED = ["greater", "greater_equal", "less", "less_equal"]
_DIVISIONS = ["floor_divide", "fmod", "mod", "remainder", "divmod"]
_CLOSE_BINARY = ["arctan2", "atan2", "divide", "hypot", "logaddexp", "true_divide"]
_SHIFTS = ["bitwise_left_shift", "bitwise_right_shift", "left_shift", "right_shift"]


_NO_ORDER = "complex numbers, which have no order, are refused"
_NEGATIVE = (
    "integers to negative integer powers give what truncation of the true power gives; NumPy refuses them"
)


def _unary(name: str, **options) -> Record:
    return Record((f"xp.{name}(x)",), **options)


def _binary(name: str, **options) -> Record:
    calls = (f"xp.{name}(x, y)", f"xp.{name}(x, 3)", f"xp.{name}(x[..., None], y)", f"xp.{name}(2, y)")
    return Record(calls, inputs=2, **options)


RECORDS = {
    **{name: _unary(name) for name in _EXACT_UNARY},
    **{name: _unary(name, rtol=_CLOSE) for name in _CLOSE_UNARY},
    **{name: _binary(name) for name in _EXACT_BINARY},
    **{name: _binary(name, dtypes=_REAL, rtol=0, differs=_NO_ORDER) for name in _ORDERED},
    **{name: _binary(name, rtol=0) for name in _EXTREMES},
    **{name: _binary(name) for name in _DIVISIONS},
    **{name: _binary(name, rtol=_CLOSE, wider=True, differs=_NEGATIVE) for name in ("pow", "power")},
    **{name: _binary(name, rtol=_CLOSE) for name in _CLOSE_BINARY},
    **{name: _binary(name, dtypes=_WHOLE, limits=(0, 7)) for name in _SHIFTS},
    "reciprocal": _unary(
        "reciprocal",
        dtypes=(*FLOATS, "complex64"),
        rtol=_CLOSE,
        differs="of the integer 0 it is -1, as in XLA",
    ),
    **{
        name: Record(
            (f"xp.{name}(x)", f"xp.{name}(x, 1)", f"xp.{name}(x, decimals=-1)"),
            limits=(-100, 100),
            wider=True,
            differs="bools are rounded for any number of decimals, which NumPy refuses for numbers but 0",
        )
        for name in ("around", "round")
    },
    "fix": Record(("xp.fix(x)",), signature="its parameter has no name"),
    "sign": _unary("sign", rtol=_CLOSE),
    "expm1": _unary(
        "expm1",
        rtol=_CLOSE,
        differs="of complex numbers with an infinite real and an infinite or undefined imaginary part the modulus is "
        "known, as the Array API and C99 have it: `expm1(-inf+infj)` is -1; NumPy gives NaN",
    ),
    "nextafter": _binary("nextafter", rtol=0),
    "clip": Record(
        (
            "xp.clip(x, 1, 5)",
            "xp.clip(x, y, None)",
            "xp.clip(x, None, y)",
            "xp.clip(x, a_min=0, a_max=y)",
            "xp.clip(x, min=1, max=3)",
            "xp.clip(x)",
        ),
        inputs=2,
        rtol=0,
        dtypes=(*_REAL[1:], "complex64"),
        signature="the bounds are `min` and `max`, as in the Array API; `a_min` and `a_max` are keywords",
    ),
}
