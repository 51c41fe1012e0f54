"""The Array API standard, 2025.12: its functions' signatures, and how each is tried beside NumPy.

A `Record` draws arguments by hypothesis: element types among those that the standard allows, shapes, values,
keywords.  NumPy's function of the same name says what the result is, unless the record has an oracle.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

#: Parameters of every function of the main namespace, section by section.
SIGNATURES: Final = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
asarray(obj, /, *, dtype=None, device=None, copy=None)
empty(shape, *, dtype=None, device=None)
empty_like(x, /, *, dtype=None, device=None)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
meshgrid(*arrays, indexing='xy')
ones(shape, *, dtype=None, device=None)
ones_like(x, /, *, dtype=None, device=None)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
astype(x, dtype, /, *, copy=True, device=None)
can_cast(from_, to, /)
finfo(type, /)
iinfo(type, /)
isdtype(dtype, kind)
result_type(*arrays_and_dtypes)
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor (x, /)
imag isfinite isinf isnan log log1p log2 log10 logical_not negative positive real reciprocal (x, /)
round sign signbit sin sinh square sqrt tan tanh trunc (x, /)
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor (x1, x2, /)
copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp (x1, x2, /)
logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow (x1, x2, /)
remainder subtract (x1, x2, /)
clip(x, /, min=None, max=None)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
__array_namespace_info__()
matmul(x1, x2, /)
matrix_transpose(x, /)
tensordot(x1, x2, /, *, axes=2)
vecdot(x1, x2, /, *, axis=-1)
broadcast_arrays(*arrays)
broadcast_shapes(*shapes)
broadcast_to(x, /, shape)
concat(arrays, /, *, axis=0)
expand_dims(x, /, axis)
flip(x, /, *, axis=None)
moveaxis(x, source, destination, /)
permute_dims(x, /, axes)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
roll(x, /, shift, *, axis=None)
squeeze(x, /, axis)
stack(arrays, /, *, axis=0)
tile(x, repetitions, /)
unstack(x, /, *, axis=0)
argmax argmin (x, /, *, axis=None, keepdims=False)
count_nonzero(x, /, *, axis=None, keepdims=False)
nonzero(x, /)
searchsorted(x1, x2, /, *, side='left', sorter=None)
where(condition, x1, x2, /)
isin(x1, x2, /, *, invert=False)
unique_all unique_counts unique_inverse unique_values (x, /)
argsort sort (x, /, *, axis=-1, descending=False, stable=True)
cumulative_prod cumulative_sum (x, /, *, axis=None, dtype=None, include_initial=False)
max mean min (x, /, *, axis=None, keepdims=False)
prod sum (x, /, *, axis=None, dtype=None, keepdims=False)
std var (x, /, *, axis=None, correction=0.0, keepdims=False)
all any (x, /, *, axis=None, keepdims=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
"""


def _signature(parameters: str) -> inspect.Signature:
    arguments = ast.parse(f"lambda {parameters}: 0", mode="eval")
    return inspect.signature(eval(compile(arguments, "signature", "eval")))


def signatures() -> dict[str, inspect.Signature]:
    """The signature of each function by its name."""
    rows = [line.rstrip(")").partition("(")[::2] for line in SIGNATURES.strip().splitlines()]
    return {name: _signature(parameters) for names, parameters in rows for name in names.split()}


# --- what is drawn ----------------------------------------------------------------------------------------

_BOOL: Final = ("bool",)
_SIGNED: Final = ("int8", "int16", "int32", "int64")
_INTEGER: Final = (*_SIGNED, "uint8", "uint16", "uint32", "uint64")
_REAL_FLOATING: Final = ("float32", "float64")
_COMPLEX: Final = ("complex64", "complex128")
KINDS: Final = {
    "bool": _BOOL,
    "signed": _SIGNED,
    "integer": _INTEGER,
    "bits": _BOOL + _INTEGER,
    "real floating": _REAL_FLOATING,
    "floating": _REAL_FLOATING + _COMPLEX,
    "complex": _COMPLEX,
    "real": _INTEGER + _REAL_FLOATING,
    "numeric": _INTEGER + _REAL_FLOATING + _COMPLEX,
    "any": _BOOL + _INTEGER + _REAL_FLOATING + _COMPLEX,
}


@dataclass
class Call:
    """Arguments of one call, arrays as NumPy's."""

    args: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)


class Draw:
    """Draws arguments; every method draws anew."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def of(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def dtype(self, kind: str) -> str:
        return str(self.of(*KINDS[kind]))

    def shape(self, low: int = 0, high: int = 3, side: int = 0) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.draw(
            hnp.array_shapes(min_dims=low, max_dims=high, min_side=side, max_side=4)
        )
        return shape

    def array(
        self,
        kind: str,
        shape: tuple[int, ...] | None = None,
        *,
        dtype: str | None = None,
        low: int = 0,
        side: int = 0,
        special: bool = True,
        limit: int = 100,
    ) -> np.ndarray[Any, Any]:
        """Values of up to `limit`; of real floats also NaN, infinities and zeros of both signs if `special`."""
        wanted = np.dtype(self.dtype(kind) if dtype is None else dtype)
        sizes = self.shape(low, side=side) if shape is None else shape
        return self.draw(hnp.arrays(wanted, sizes, elements=_elements(wanted, special, limit)))

    def pair(self, kind: str, **options: Any) -> tuple[Any, Any]:
        """Two arrays of one element type whose shapes broadcast, or one of them a Python number."""
        dtype = self.dtype(kind)
        shapes = self.draw(
            hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3)
        ).input_shapes
        one, two = (self.array(kind, shape, dtype=dtype, **options) for shape in shapes)
        form = self.of("arrays", "arrays", "first", "second")
        if form == "arrays":
            return one, two
        number = self.array(kind, (), dtype=dtype, **options).item()
        return (number, two) if form == "first" else (one, number)

    def axis(self, x: np.ndarray[Any, Any]) -> int:
        return self.integer(-x.ndim, x.ndim - 1)

    def axes(self, x: np.ndarray[Any, Any]) -> Any:
        """None, an axis, or several."""
        several = self.draw(hnp.valid_tuple_axes(x.ndim))
        return self.of(None, several, *([self.axis(x)] if x.ndim else []))

    def call(self, *args: Any, **keywords: Any) -> Call:
        """A call with some of the keywords, the others left out."""
        return Call(args, {name: value for name, value in keywords.items() if self.of(True, False)})


def _elements(dtype: np.dtype[Any], special: bool, limit: int) -> st.SearchStrategy[Any]:
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        return st.integers(-limit if dtype.kind == "i" else 0, limit)
    numbers = st.integers(-limit * 8, limit * 8).map(lambda n: n / 8)
    if dtype.kind == "c":
        return st.builds(complex, numbers, numbers)
    return numbers | st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 0.0]) if special else numbers


@dataclass(frozen=True)
class Record:
    """A way to try a function: `make` draws a call; `oracle` says its result, NumPy's function if None.

    `rtol` is for results of 64-bit floats (narrower ones get their share), None for equal values.
    """

    make: Callable[[Draw], Call]
    oracle: Callable[..., Any] | None = None
    rtol: float | None = None


def _unary(kind: str, rtol: float | None = None, **options: Any) -> Record:
    return Record(lambda d: d.call(d.array(kind, **options)), rtol=rtol)


def _binary(kind: str, rtol: float | None = None, **options: Any) -> Record:
    return Record(lambda d: Call(d.pair(kind, **options)), rtol=rtol)


def _reduction(kind: str, rtol: float | None = None, **more: Callable[[Draw], Any]) -> Record:
    def make(d: Draw) -> Call:
        x = d.array(kind, special=rtol is None, limit=4 if rtol else 100)
        return d.call(x, axis=d.axes(x), keepdims=d.of(True, False), **{k: v(d) for k, v in more.items()})

    return Record(make, rtol=rtol)


# --- the records ------------------------------------------------------------------------------------------

#: How far apart two good implementations of a transcendental function may be.
NEAR: Final = 1e-14


def _elementwise() -> dict[str, Record]:
    one = {
        "numeric": "abs negative positive sign square isfinite isinf isnan round",
        "complex": "conj imag real",
        "real": "ceil floor trunc",
        "real floating": "signbit",
        "bits": "bitwise_invert",
        "bool": "logical_not",
    }
    two = {
        "any": "equal not_equal",
        "numeric": "add multiply subtract",
        "real": "greater greater_equal less less_equal maximum minimum",
        "real floating": "copysign nextafter",
        "bits": "bitwise_and bitwise_or bitwise_xor",
        "bool": "logical_and logical_or logical_xor",
    }
    near = "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal sin sinh sqrt tan"
    records = {name: _unary(kind) for kind, names in one.items() for name in names.split()}
    records |= {name: _unary("floating", NEAR, limit=8) for name in [*near.split(), "tanh"]}
    records |= {name: _binary(kind) for kind, names in two.items() for name in names.split()}
    records |= {name: _binary("real floating", NEAR, limit=8) for name in ("atan2", "hypot", "logaddexp")}
    records |= {name: _binary("real floating", NEAR) for name in ("floor_divide", "remainder")}
    return records | {
        "abs": _unary("numeric", NEAR),
        "sign": _unary("numeric", NEAR),
        "square": _unary("numeric", NEAR),
        "multiply": _binary("numeric", NEAR),
        "divide": _binary("floating", NEAR, special=False),
        "pow": Record(_power, rtol=1e-12),
        "bitwise_left_shift": Record(_shift),
        "bitwise_right_shift": Record(_shift),
        "clip": Record(_clip),
    }


def _power(d: Draw) -> Call:
    base, exponent = d.pair(d.of("integer", "real floating"), special=False, limit=4)
    return Call((base, abs(exponent)))


def _shift(d: Draw) -> Call:
    dtype = d.dtype("integer")
    x = d.array("integer", dtype=dtype)
    return Call((x, d.array("integer", x.shape, dtype=dtype, limit=7) & 7))


def _clip(d: Draw) -> Call:
    x = d.array("real")
    least, most = sorted(int(d.array("real", (), dtype=str(x.dtype), special=False)) for _ in range(2))
    return Call((x,), {"min": d.of(None, least), "max": d.of(None, most, np.asarray(most, x.dtype))})


def _call(d: Draw, *args: Any, kind: str = "any", **keywords: Any) -> Call:
    return d.call(*args, dtype=d.dtype(kind), device=d.of(None, "cpu"), **keywords)


def _creation() -> dict[str, Record]:
    records = {name: Record(lambda d: _call(d, d.shape())) for name in ("ones", "zeros")}
    records |= {f"{name}_like": Record(lambda d: _call(d, d.array("any"))) for name in ("ones", "zeros")}
    return records | {
        "empty": Record(lambda d: _call(d, d.shape()), lambda *a, **k: np.zeros(*a, **k)),
        "empty_like": Record(lambda d: _call(d, d.array("any")), lambda *a, **k: np.zeros_like(*a, **k)),
        "full": Record(lambda d: d.call(d.shape(), d.of(True, 3, 2.5, 1j), device=d.of(None, "cpu"))),
        "full_like": Record(lambda d: _call(d, d.array("numeric"), d.of(True, 3), kind="numeric")),
        "arange": Record(_arange),
        "linspace": Record(_linspace, rtol=NEAR),
        "eye": Record(lambda d: _call(d, d.integer(0, 4), d.of(None, 0, 3), k=d.integer(-5, 5))),
        "asarray": Record(_asarray),
        "from_dlpack": Record(
            lambda d: d.call(d.array("any"), device=d.of(None, "cpu"), copy=d.of(None, True))
        ),
        "meshgrid": Record(_meshgrid),
        "tril": Record(lambda d: d.call(d.array("any", low=2), k=d.integer(-5, 5))),
        "triu": Record(lambda d: d.call(d.array("any", low=2), k=d.integer(-5, 5))),
    }


def _arange(d: Draw) -> Call:
    numbers = [d.integer(-9, 9) for _ in range(d.integer(1, 2))]
    step = {"step": d.of(-3, -1, 1, 2, 0.5)} if len(numbers) == 2 else {}
    floats = {"dtype": d.of("float64", "float32")} if d.of(True, False) else {}
    return Call(tuple(numbers), step | floats)


def _linspace(d: Draw) -> Call:
    ends = (d.integer(-9, 9), d.integer(-9, 9) / 2)
    return _call(d, *ends, kind="floating", num=d.integer(0, 6), endpoint=d.of(True, False))


def _asarray(d: Draw) -> Call:
    x = d.array("any")
    keywords = {"dtype": str(x.dtype), "copy": d.of(None, True), "device": d.of(None, "cpu")}
    return d.call(d.of(x, x.tolist(), x.item() if x.size == 1 else x), **keywords)


def _meshgrid(d: Draw) -> Call:
    vectors = [d.array("numeric", (d.integer(0, 3),)) for _ in range(d.integer(0, 3))]
    return d.call(*vectors, indexing=d.of("xy", "ij"))


def _data_type() -> dict[str, Record]:
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating")

    def info_of(kind: str, *names: str) -> Record:
        def draw_call(d: Draw) -> Call:
            dtype = np.dtype(d.dtype(kind))
            return Call((d.of(dtype, dtype.type, np.zeros(2, dtype)),))

        def oracle(argument: Any) -> dict[str, Any]:
            dtype = argument.dtype if isinstance(argument, np.ndarray) else np.dtype(argument)
            info = (np.iinfo if dtype.kind in "iu" else np.finfo)(dtype)
            return {"dtype": info.dtype} | {name: getattr(info, name) for name in names}

        return Record(draw_call, oracle)

    return {
        "astype": Record(_astype),
        "can_cast": Record(lambda d: Call((np.dtype(d.dtype("any")), np.dtype(d.dtype("any"))))),
        "finfo": info_of("floating", "bits", "max", "min", "eps", "smallest_normal"),
        "iinfo": info_of("integer", "bits", "max", "min"),
        "isdtype": Record(
            lambda d: Call((np.dtype(d.dtype("any")), d.of(*kinds, "numeric", np.dtype("int8"), kinds[:3])))
        ),
        "result_type": Record(
            lambda d: Call((d.array("numeric"), np.dtype(d.dtype("numeric")), d.of(1, 1.5)))
        ),
    }


def _astype(d: Draw) -> Call:
    x = d.array("any", special=False)
    reals = [name for name in KINDS["any"] if np.can_cast(x.dtype, name, "same_kind")]
    return d.call(x, d.of(*reals), copy=d.of(True, False), device=d.of(None, "cpu"))


def _manipulation() -> dict[str, Record]:
    return {
        "broadcast_arrays": Record(lambda d: Call(_fitting(d))),
        "broadcast_shapes": Record(lambda d: Call(tuple(x.shape for x in _fitting(d)))),
        "broadcast_to": Record(_broadcast_to),
        "concat": Record(_concat),
        "expand_dims": Record(lambda d: Call((x := d.array("any"), d.integer(-x.ndim - 1, x.ndim)))),
        "flip": Record(lambda d: d.call(x := d.array("any"), axis=d.axes(x))),
        "moveaxis": Record(lambda d: Call((x := d.array("any", low=1), d.axis(x), d.axis(x)))),
        "permute_dims": Record(lambda d: Call((x := d.array("any"), d.draw(st.permutations(range(x.ndim)))))),
        "repeat": Record(_repeat),
        "reshape": Record(_reshape),
        "roll": Record(lambda d: d.call(x := d.array("any", low=1), d.integer(-9, 9), axis=d.axis(x))),
        "squeeze": Record(_squeeze),
        "stack": Record(_stack),
        "tile": Record(lambda d: Call((d.array("any"), d.shape()))),
        "unstack": Record(lambda d: d.call(x := d.array("any", low=1), axis=d.axis(x))),
    }


def _fitting(d: Draw) -> tuple[Any, ...]:
    count = d.integer(1, 3)
    shapes = d.draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, max_side=3)).input_shapes
    return tuple(d.array("any", shape) for shape in shapes)


def _broadcast_to(d: Draw) -> Call:
    sizes = d.shape(side=1)
    x = d.array("any", tuple(d.of(1, size) for size in sizes[d.integer(0, len(sizes)) :]))
    return Call((x, sizes))


def _concat(d: Draw) -> Call:
    x = d.array("numeric", low=1)
    axis = d.axis(x)
    shape = list(x.shape)
    shape[axis] = d.integer(0, 3)
    return Call(((x, d.array("numeric", tuple(shape))),), {"axis": d.of(axis, None)})


def _repeat(d: Draw) -> Call:
    x = d.array("any", low=1)
    axis = d.axis(x)
    each = d.array("integer", (x.shape[axis],), dtype="int64", limit=3)
    return Call((x, d.of(d.integer(0, 3), abs(each))), {"axis": axis})


def _reshape(d: Draw) -> Call:
    x = d.array("any")
    sizes = [size for size in d.draw(st.permutations(x.shape))]
    if x.size and sizes and d.of(True, False):
        sizes[d.integer(0, len(sizes) - 1)] = -1
    return d.call(x, tuple(sizes), copy=d.of(None, True))


def _squeeze(d: Draw) -> Call:
    x = d.array("any", (*d.shape(high=2), 1, *d.shape(high=1)))
    return Call((x, d.of(*[axis for axis, size in enumerate(x.shape) if size == 1])))


def _stack(d: Draw) -> Call:
    x = d.array("numeric")
    others = [d.array("numeric", x.shape) for _ in range(d.integer(0, 2))]
    return d.call([x, *others], axis=d.integer(-x.ndim - 1, x.ndim))


def _searching() -> dict[str, Record]:
    def reduction_call(d: Draw) -> Call:
        x = d.array("real", low=1, side=1)
        return d.call(x, axis=d.of(None, d.axis(x)), keepdims=d.of(True, False))

    return {
        "argmax": Record(reduction_call),
        "argmin": Record(reduction_call),
        # NumPy before 2.2 counts all of an array in an int.
        "count_nonzero": replace(
            _reduction("any"), oracle=lambda x, **options: np.asarray(np.count_nonzero(x, **options))
        ),
        "nonzero": _unary("any", low=1),
        "searchsorted": Record(_draw_searchsorted),
        "where": Record(lambda d: Call((d.array("bool", (3, 1)), d.array("numeric", (3, 2)), d.of(1, 0)))),
        "take": Record(_take),
        "take_along_axis": Record(_take_along_axis),
    }


def _draw_searchsorted(d: Draw) -> Call:
    x = d.array("real", (d.integer(0, 9),))
    values = d.of(d.array("real", dtype=str(x.dtype)), d.integer(0, 9))
    if d.of(True, False):
        return d.call(np.sort(x), values, side=d.of("left", "right"))
    return Call((x, values), {"sorter": np.argsort(x, stable=True), "side": d.of("left", "right")})


def _take(d: Draw) -> Call:
    x = d.array("any", low=1, side=1)
    axis = d.axis(x)
    indices = d.array("signed", (d.integer(0, 4),), dtype="int64")
    return Call((x, indices % x.shape[axis]), {"axis": axis})


def _take_along_axis(d: Draw) -> Call:
    x = d.array("any", low=1, side=1)
    axis = d.axis(x)
    return Call((x, d.array("signed", x.shape, dtype="int64") % x.shape[axis]), {"axis": axis})


def _sets() -> dict[str, Record]:
    def unique(*fields: str) -> Callable[..., Any]:
        def oracle(x: Any) -> Any:
            values = np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
            by_name = dict(zip(("values", "indices", "inverse", "counts"), values, strict=True))
            fields_of_result = tuple(by_name[name] for name in fields)
            return fields_of_result[0] if len(fields_of_result) == 1 else fields_of_result

        return oracle

    def draw_call(d: Draw) -> Call:
        return Call((d.array("any", limit=3),))

    return {
        "isin": Record(lambda d: d.call(*_alike(d), invert=d.of(True, False))),
        "unique_all": Record(draw_call, unique("values", "indices", "inverse", "counts")),
        "unique_counts": Record(draw_call, unique("values", "counts")),
        "unique_inverse": Record(draw_call, unique("values", "inverse")),
        "unique_values": Record(draw_call, unique("values")),
    }


def _alike(d: Draw) -> tuple[Any, Any]:
    dtype = d.dtype("any")
    return d.array("any", dtype=dtype, limit=4), d.of(d.array("any", dtype=dtype, limit=4), 1)


def _sorting() -> dict[str, Record]:
    def draw_call(d: Draw) -> Call:
        x = d.array("real", low=1, limit=5)
        return d.call(x, axis=d.axis(x), descending=d.of(True, False), stable=d.of(True, False))

    def sorting_indices(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
        if not descending:
            return np.argsort(x, axis=axis, stable=True)
        backwards = np.argsort(np.flip(x, axis), axis=axis, stable=True)
        return np.flip(x.shape[axis] - 1 - backwards, axis)

    def take_in_order(x: Any, axis: int = -1, **options: bool) -> Any:
        return np.take_along_axis(x, sorting_indices(x, axis, **options), axis)

    return {"argsort": Record(draw_call, sorting_indices), "sort": Record(draw_call, take_in_order)}


def _statistical() -> dict[str, Record]:
    def running(d: Draw) -> Call:
        x = d.array("numeric", low=1, special=False, limit=3)
        return (
            d.call(x, axis=d.axis(x), include_initial=d.of(True, False))
            if x.ndim == 1
            else Call((x,), {"axis": d.axis(x), "include_initial": d.of(True, False)})
        )

    def extreme(d: Draw) -> Call:
        x = d.array("real", side=1)
        return d.call(x, axis=d.axes(x), keepdims=d.of(True, False))

    def spread(d: Draw) -> Call:
        x = d.array("real floating", special=False, side=2)
        keywords = {"axis": d.axes(x), "keepdims": d.of(True, False), "correction": d.of(0, 0.5, 1.0)}
        return d.call(x, **keywords)

    return {
        "all": _reduction("any"),
        "any": _reduction("any"),
        "cumulative_prod": Record(running, rtol=1e-12),
        "cumulative_sum": Record(running, rtol=1e-12),
        "max": Record(extreme),
        "min": Record(extreme),
        "mean": _reduction("floating", 1e-12),
        "prod": _reduction("numeric", 1e-12, dtype=lambda d: "complex128"),
        "sum": _reduction("numeric", 1e-12, dtype=lambda d: "complex128"),
        "std": Record(spread, rtol=1e-12),
        "var": Record(spread, rtol=1e-12),
        "diff": Record(_diff),
    }


def _diff(d: Draw) -> Call:
    x = d.array("numeric", low=1, special=False)
    axis = d.axis(x)
    more = d.array("numeric", x.shape, dtype=str(x.dtype), special=False)
    return Call((x,), {"axis": axis} | d.call(n=d.integer(0, 3), prepend=more, append=more).keywords)


def _linear_algebra() -> dict[str, Record]:
    def product(d: Draw) -> Call:
        rows, inner, columns = (d.integer(0, 3) for _ in range(3))
        dtype = d.dtype("numeric")
        batch = d.of((), (2,), (1,))
        one = d.array("numeric", (*batch, rows, inner), dtype=dtype, special=False, limit=4)
        return Call((one, d.array("numeric", (2, inner, columns), dtype=dtype, special=False, limit=4)))

    def draw_along(d: Draw) -> Call:
        x = d.array("numeric", low=1, special=False, limit=4)
        axis = d.integer(-x.ndim, -1)
        other = d.array("numeric", x.shape, dtype=str(x.dtype), special=False, limit=4)
        return d.call(x, other, axis=axis)

    def tensors(d: Draw) -> Call:
        dtype = d.dtype("numeric")
        sides = d.shape(3, 3)
        one = d.array("numeric", sides, dtype=dtype, special=False, limit=4)
        two = d.array("numeric", sides[1:], dtype=dtype, special=False, limit=4)
        return d.call(one, two, axes=d.of(2, ((1, 2), (0, 1)), ((2,), (1,))))

    return {
        "matmul": Record(product, rtol=1e-12),
        "matrix_transpose": _unary("any", low=2),
        "tensordot": Record(tensors, rtol=1e-12),
        "vecdot": Record(draw_along, rtol=1e-12),
    }


def records() -> dict[str, Record]:
    """The way to try each function, by its name."""
    every: dict[str, Record] = {}
    for section in (_creation, _data_type, _elementwise, _manipulation, _searching, _sets, _sorting):
        every |= section()
    return every | _statistical() | _linear_algebra()
