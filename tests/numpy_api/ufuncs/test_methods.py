"""`reduce`, `accumulate`, `reduceat`, `outer` and `at` of every ufunc, beside NumPy's."""

from __future__ import annotations

import functools
import inspect
import pickle
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.functions import same
from xarr.errors import (
    AxisError,
    DroppedUpdateWarning,
    DTypeError,
    IndexingError,
    InputError,
    ShapeError,
    TracedValueError,
    ValueRangeError,
    XarrError,
)

HostArray = np.ndarray[Any, Any]

UFUNCS = {
    name: ufunc
    for name in sorted(np.__all__)
    if isinstance(ufunc := getattr(np, name), np.ufunc) and name not in ("isnat",)
}
#: Without the Array API's other names for the same functions.
NAMES = [name for name, ufunc in UFUNCS.items() if ufunc.__name__ == name]
BINARY = [name for name in NAMES if UFUNCS[name].nin == 2 and UFUNCS[name].signature is None]
FOLDS = [name for name in BINARY if UFUNCS[name].nout == 1]
UNARY = [name for name in NAMES if UFUNCS[name].nin == 1 and UFUNCS[name].nout == 1]
DTYPES = ("bool", "int8", "float16", "float64", "complex64")
#: Integers to a negative power are refused by NumPy, and XLA's 0 or ±1 in xarr; of NaN as an integer, as a divisor
#: of 0 leaves it, each has its own.
OF_POSITIVE = ("power", "divide", "reciprocal", "floor_divide", "remainder", "fmod", "float_power")
#: Sums of floats are taken in another order than NumPy's, and transcendental functions are xarr's own.
RTOL = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-13, "complex64": 1e-5}


def values(shape: tuple[int, ...], dtype: str, seed: int = 0, positive: bool = False) -> HostArray:
    """Small numbers, so that few results overflow."""
    random = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(random.random(shape) < 0.6)
    whole = np.asarray(random.integers(1 if kind == "u" or positive else -3, 5, shape))
    if kind in "iu":
        return whole.astype(dtype)
    values = whole + random.integers(0, 4, shape) / 4
    return np.asarray(values + 1j * random.integers(-2, 3, shape) if kind == "c" else values).astype(dtype)


def compare(results: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        assert type(results) is tuple and len(results) == len(wanted)
        for one, other in zip(results, wanted, strict=True):
            compare(one, other)
        return
    wanted = np.asarray(wanted)
    rtol = RTOL.get(wanted.dtype.name)
    assert type(results) is xarr.Array
    if rtol is None:
        assert_same(results, wanted)
    else:
        same(results, wanted, rtol)


def beside_numpy(theirs: Callable[..., Any], own: Callable[..., Any], *arrays: Any, **options: Any) -> bool:
    """Assert that both give the same for NumPy arrays and for Arrays; False if both refuse."""
    arguments = [xarr.asarray(array) if isinstance(array, np.ndarray) else array for array in arrays]
    try:
        with np.errstate(all="ignore"):
            wanted = theirs(*arrays, **options)
    except (TypeError, ValueError, IndexError):
        with pytest.raises(XarrError):
            own(*arguments, **options)
        return False
    compare(own(*arguments, **options), wanted)
    return True


REDUCTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"axis": -1, "keepdims": True},
    {"axis": None},
    {"axis": (0, 2)},
    {"axis": ()},
    {"initial": 2},
    {"where": values((2, 3, 2), "bool", 5), "initial": 1, "axis": 1},
    {"where": values((2, 3, 2), "bool", 6), "axis": (1, 2)},
    {"dtype": "float32"},
)


def cases(name: str, options: tuple[dict[str, Any], ...]) -> Iterator[tuple[HostArray, dict[str, Any]]]:
    """All dtypes with few options, and float64 with all."""
    for dtype in DTYPES:
        for number, one in enumerate(options):
            if number == 0 or dtype == "float64":
                yield values((2, 3, 2), dtype, number, name in OF_POSITIVE), one


@pytest.mark.parametrize("name", FOLDS)
def test_reduce(name: str) -> None:
    theirs, own = UFUNCS[name].reduce, getattr(xarr, name).reduce
    done = [beside_numpy(theirs, own, array, **options) for array, options in cases(name, REDUCTIONS)]
    assert any(done)


@pytest.mark.parametrize("name", FOLDS)
def test_reduce_of_few_elements(name: str) -> None:
    theirs, own = UFUNCS[name].reduce, getattr(xarr, name).reduce
    for dtype, shape in product(("bool", "int64", "float64"), ((), (0,), (1,), (0, 3), (3, 0))):
        for options in (
            {},
            {"initial": 1},
            {"axis": -1},
            {"axis": None, "keepdims": True},
            {"initial": None},
        ):
            beside_numpy(theirs, own, values(shape, dtype), **options)


@pytest.mark.parametrize("name", FOLDS)
def test_accumulate(name: str) -> None:
    theirs, own = UFUNCS[name].accumulate, getattr(xarr, name).accumulate
    options = ({}, {"axis": -2}, {"axis": (1,)}, {"axis": None}, {"dtype": "float32"})
    done = [beside_numpy(theirs, own, array, **one) for array, one in cases(name, options)]
    assert any(done) or name == "ldexp"
    for shape in ((), (0, 3)):
        beside_numpy(theirs, own, values(shape, "float64"))


def reduceat_by_definition(ufunc: np.ufunc) -> Callable[..., HostArray]:
    """`ufunc.reduceat`, with floats computed by calls of the ufunc on one slice after the other.

    NumPy's own (2.4.6) is wrong for power and arctan2 on processors with AVX-512:
    `np.power.reduceat([1.5, 2.0, 2.0], [0])` gives [2.25], not [5.0625].
    """

    def reduceat(array: HostArray, indices: Any, axis: Any = 0, dtype: Any = None) -> HostArray:
        result = ufunc.reduceat(array, indices, axis, dtype)
        if result.dtype.kind != "f" or result.size == 0:
            return result
        lines = np.moveaxis(array.astype(result.dtype), axis or 0, 0)
        ends = [*indices[1:], len(lines)]
        parts = [lines[begin : max(end, begin + 1)] for begin, end in zip(indices, ends, strict=True)]
        return np.moveaxis(np.stack([functools.reduce(ufunc, part) for part in parts]), 0, axis or 0)

    return reduceat


@pytest.mark.parametrize("name", FOLDS)
def test_reduceat(name: str) -> None:
    theirs, own = reduceat_by_definition(UFUNCS[name]), getattr(xarr, name).reduceat
    done = [
        beside_numpy(
            theirs, own, values((9, 2), dtype, 0, name in OF_POSITIVE), np.array([0, 4, 2, 2, 3, 8, 1])
        )
        for dtype in ("bool", "int64", "float64")
    ]
    assert any(done) or name == "ldexp"
    for array, indices, options in (
        (values((2, 5), "int64", positive=True), [3, 0], {"axis": 1}),
        (values((2, 5), "float64"), [], {"axis": -1}),
        (values((2, 5), "float64"), [5], {"axis": -1}),
        (values((2, 5), "float64"), [0, -1], {"axis": -1}),
        (values((0, 2), "float64"), [0], {}),
        (values((0, 2), "float64"), [], {}),
        (values((), "float64"), [0], {}),
        (values((4,), "int64"), [0, 2], {"dtype": "float64", "axis": None}),
    ):
        beside_numpy(theirs, own, array, indices, **options)


@pytest.mark.usefixtures("fused")
def test_the_loops_of_reduceat_grow_with_the_logarithm_of_the_rows() -> None:
    def count_lines(rows: int) -> int:
        lowered = xarr.jit(xarr.add.reduceat).lower(f"f64[{rows}]", "s64[9]")
        return str(lowered.stage("loops")).count("\n")

    assert count_lines(1024) < 2 * count_lines(64)


@pytest.mark.parametrize("name", BINARY)
def test_outer(name: str) -> None:
    theirs, own = UFUNCS[name].outer, getattr(xarr, name).outer
    done = [
        beside_numpy(theirs, own, values((2, 3), one), values((2,), other, 1))
        for one, other in (("bool", "bool"), ("int8", "uint16"), ("float64", "int8"), ("float16", "float16"))
    ]
    done += [beside_numpy(theirs, own, values((3,), "int64"), 2, dtype="float32")]
    assert any(done)
    beside_numpy(theirs, own, values((0,), "int64"), values((2,), "int64"))
    beside_numpy(theirs, own, values((), "int64"), values((), "int64"))


def at_beside_numpy(name: str, array: HostArray, *arguments: Any) -> bool:
    wanted, result, other = array.copy(), xarr.asarray(array), xarr.asarray(array)
    operands = [xarr.asarray(one) if isinstance(one, np.ndarray) else one for one in arguments]
    kept = result.copy()
    try:
        with np.errstate(all="ignore"):
            UFUNCS[name].at(wanted, *arguments)
    except (TypeError, ValueError, IndexError):
        with pytest.raises(XarrError):
            getattr(xarr, name).at(result, *operands)
        return False
    assert getattr(xarr, name).at(result, *operands) is None  # type: ignore[func-returns-value]
    compare(result, wanted)
    UFUNCS[name].at(other, *operands)
    compare(other, wanted)
    assert_same(kept, array)
    return True


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", BINARY)
def test_at_of_two_operands(name: str) -> None:
    done = [
        at_beside_numpy(
            name, values((6,), dtype, 0, name in OF_POSITIVE), [0, 0, -1, 3], values((4,), dtype, 1, True)
        )
        for dtype in ("bool", "int64", "float64")
    ]
    assert any(done) or UFUNCS[name].nout > 1
    integers, floats = values((3, 4), "int64", positive=True), values((3, 4), "float64", positive=True)
    at_beside_numpy(name, integers, np.array([0, 1, 1]), 2)
    at_beside_numpy(name, floats, (slice(None), 1), np.array([2, 1, 3]))
    at_beside_numpy(name, integers, (slice(None), [0, 0]), 2)
    at_beside_numpy(name, floats, floats > 1, 2.0)
    at_beside_numpy(name, floats.astype("float32"), 1, np.float64(1.1))
    at_beside_numpy(name, floats, ...)


#: Of some integers NaN or an infinity, which as an integer is XLA's limit and NumPy's platform's.
UNDEFINED = {"arccos", "arccosh", "arcsin", "arctanh", "log", "log10", "log1p", "log2", "reciprocal", "sqrt"}


@pytest.mark.parametrize("name", UNARY)
def test_at_of_one_operand(name: str) -> None:
    done = [
        at_beside_numpy(name, array, [0, 0, -1, 3])
        for dtype in ("bool", "int64", "float64", "complex64")
        if dtype in ("float64", "complex64") or name not in UNDEFINED
        for array in [values((6,), dtype)]
    ]
    assert any(done)
    at_beside_numpy(name, values((2, 3), "float64"), (slice(None), 1))
    at_beside_numpy(name, values((2, 3), "float64"), 1, 2.0)


# --- attributes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", UFUNCS)
def test_attributes(name: str) -> None:
    theirs, own = UFUNCS[name], getattr(xarr, name)
    for attribute in ("nin", "nout", "nargs", "identity", "signature"):
        assert getattr(own, attribute) == getattr(theirs, attribute), attribute
    assert pickle.loads(pickle.dumps(own)) is own
    assert own.__doc__
    first = list(inspect.signature(own).parameters.values())[: own.nin + 1]
    assert [one.kind for one in first] == [inspect.Parameter.POSITIONAL_ONLY] * own.nin + [
        inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    for method in ("reduce", "accumulate", "reduceat", "outer", "at"):
        bound = getattr(own, method)
        assert pickle.loads(pickle.dumps(bound)) == bound
        assert bound.__doc__


# --- options of calls -----------------------------------------------------------------------------------

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "add-float32": ("add", {"dtype": "float32"}),
    "add-int": ("add", {"dtype": int}),
    "add-complex": ("add", {"dtype": complex}),
    "add-unsafe": ("add", {"dtype": "int32", "casting": "unsafe"}),
    "add-no": ("add", {"casting": "no"}),
    "add-safe": ("add", {"casting": "safe"}),
    "add-signature": ("add", {"signature": "dd->d"}),
    "add-sig": ("add", {"sig": ("float32", "float32", None), "casting": "unsafe"}),
    "add-types": ("add", {"signature": (None, None, np.float64)}),
    "less-bool": ("less", {"dtype": bool}),
    "less-float": ("less", {"dtype": float}),
    "divide-float32": ("divide", {"dtype": "float32"}),
    "divide-int": ("divide", {"dtype": int}),
    "divmod-float64": ("divmod", {"dtype": "float64"}),
    "power-float64": ("power", {"dtype": "float64"}),
    "logical_and-bool": ("logical_and", {"dtype": bool}),
    "subtract-defaults": (
        "subtract",
        {"out": None, "where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True},
    ),
    "multiply-outs": ("multiply", {"out": (None,), "where": np.True_, "order": "C", "subok": False}),
}


@pytest.mark.parametrize(("name", "options"), CALLS.values(), ids=list(CALLS))
def test_options_of_calls(name: str, options: dict[str, Any]) -> None:
    theirs, own = UFUNCS[name], getattr(xarr, name)
    done = [
        beside_numpy(theirs, own, values((2, 3), one), other, **options)
        for one, other in (
            ("int64", values((2, 3), "int64", 1)),
            ("int8", 2),
            ("float64", values((2, 3), "int8", 1)),
            ("float32", 2.5),
            ("bool", True),
        )
    ]
    assert any(done) or name in ("less", "divide")


@pytest.mark.parametrize("name", UNARY)
def test_dtype_of_unary_calls(name: str) -> None:
    theirs, own = UFUNCS[name], getattr(xarr, name)
    for dtype, wanted in product(("int64", "float32", "complex64"), ("float32", "float64", "int64")):
        beside_numpy(theirs, own, values((5,), dtype, positive=True), dtype=wanted)


def test_numbers_take_the_type_that_is_asked_for() -> None:
    assert_same(xarr.add(1.5, 2, dtype="float32"), np.add(1.5, 2, dtype="float32"))
    assert_same(xarr.add(1.5, 2.7, dtype="int32", casting="unsafe"), np.int32(3))
    assert_same(xarr.sqrt(4, dtype="complex64"), np.complex64(2))
    with pytest.raises(ValueRangeError):
        xarr.add(xarr.ones(2, "uint8"), 300, dtype="uint8")


def test_narrow_floats_are_asked_for_as_others() -> None:
    x = xarr.asarray([1.0, 2.0], dtype="bfloat16")
    assert xarr.add(x, x, dtype="float32").dtype == np.float32
    assert xarr.add(xarr.ones(2), x, dtype="bfloat16").dtype == x.dtype
    assert_same(xarr.subtract.reduce(x), np.asarray(-1, x.dtype))


X = xarr.asarray([[1.0, 4.0], [2.0, 3.0]])
REFUSED: dict[str, tuple[Callable[[], Any], type[XarrError], str]] = {
    "out": (lambda: xarr.add(X, 1, out=5), InputError, r"wanted an xarr Array for out=, got int"),  # type: ignore[arg-type]
    "where": (
        lambda: xarr.add(X, 1, where=X > 2),
        InputError,
        r"write xarr\.where\(condition, xarr\.add\(…\), other\)",
    ),
    "where-false": (lambda: xarr.add(X, 1, where=False), InputError, "where="),
    "unknown": (lambda: xarr.exp(X, axis=0), InputError, "unexpected keyword argument 'axis'; wanted where"),
    "casting": (lambda: xarr.exp(X, casting="any"), ValueRangeError, "wanted casting as one of no, equiv"),
    "order": (lambda: xarr.exp(X, order="X"), InputError, "wanted order"),
    "subok": (lambda: xarr.exp(X, subok=X), InputError, "subok"),
    "both": (lambda: xarr.exp(X, dtype=float, signature="d->d"), InputError, "wanted one of dtype= and"),
    "sig": (lambda: xarr.exp(X, sig="d->d", signature="d->d"), InputError, "are one argument"),
    "dtype": (
        lambda: xarr.add(X, 1, dtype=int),
        DTypeError,
        r"from float64, int: .*casting rule 'same_kind'; convert with astype",
    ),
    "dtype-text": (lambda: xarr.add(X, 1, dtype=str), XarrError, "U"),
    "two-axes": (lambda: xarr.subtract.reduce(X, axis=None), ShapeError, "not commutative"),
    "no-elements": (
        lambda: xarr.maximum.reduce(X[:0]),
        ShapeError,
        "no identity to begin with; give initial=",
    ),
    "mask": (lambda: xarr.fmax.reduce(X, where=X > 9), ShapeError, "where= may leave no element"),
    "initial": (lambda: xarr.add.reduce(X, initial=[1]), ShapeError, "initial must be a scalar"),
    "large-initial": (
        lambda: xarr.maximum.reduce(xarr.ones(2, "uint8"), initial=300),
        ValueRangeError,
        "300",
    ),
    "no-axis": (lambda: xarr.add.reduce(X, axis=2), AxisError, "2"),
    "same-axis": (lambda: xarr.add.reduce(X, axis=(0, 0)), AxisError, "0"),
    "reduce-type": (lambda: xarr.less.reduce(X), DTypeError, r"less\.reduce: cannot compute"),
    "reduce-unary": (lambda: xarr.sin.reduce(X), InputError, "two operands with one result, got 1 and 1"),
    "reduce-pair": (lambda: xarr.divmod.reduce(X), InputError, "got 2 and 2"),
    "reduce-core": (lambda: xarr.matmul.reduce(X), InputError, r"without core dimensions, got \(n\?,k\)"),
    "accumulate-scalar": (lambda: xarr.add.accumulate(1.0), ShapeError, "got a scalar"),
    "reduceat-type": (lambda: xarr.add.reduceat(X, [0.5]), IndexingError, "wanted integers"),
    "reduceat-rank": (lambda: xarr.add.reduceat(X, [[0]]), ShapeError, "one dimension"),
    "reduceat-index": (lambda: xarr.add.reduceat(X, [0, 2]), IndexingError, "index 2 is out of bounds for 2"),
    "at-numpy": (
        lambda: xarr.add.at(np.ones(2), 0, 1),  # type: ignore[arg-type]
        InputError,
        r"write numpy\.add\.at\(n, i, numpy\.asarray\(v\)\)",
    ),
    "at-numpy-protocol": (
        lambda: np.add.at(np.ones(2), [0], X),
        InputError,
        r"wanted an xarr Array to update",
    ),
    "at-number": (lambda: xarr.add.at(xarr.ones(2), 0), InputError, "wanted a second operand b"),
    "at-complex": (lambda: xarr.add.at(xarr.ones(2), 0, 1j), DTypeError, "complex results do not fit"),
    "at-core": (lambda: xarr.matmul.at(xarr.ones(2), 0, X), InputError, "core dimensions"),
    "core-axis": (lambda: xarr.matmul(X, X, axis=0), InputError, "for one core dimension"),
    "core-axes": (lambda: xarr.matmul(X, X, axes=[(0, 1)]), InputError, "wanted axes for 3 arrays"),
    "core-both": (lambda: xarr.vecdot(X, X, axis=0, axes=[0, 0]), InputError, "wanted one of axes= and"),
    "core-where": (lambda: xarr.matmul(X, X, where=True), InputError, "unexpected keyword argument 'where'"),
}


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=list(REFUSED))
def test_refusals(call: Callable[[], Any], error: type[XarrError], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


PRODUCTS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "matmul-dtype": ("matmul", (2, 3), (3, 4), {"dtype": "float32"}),
    "matmul-axes": ("matmul", (3, 2, 4), (3, 2, 4), {"axes": [(0, 1), (1, 0), (2, 1)]}),
    "matmul-vector": ("matmul", (3,), (3, 4), {"axes": [(0,), (0, 1), (0,)]}),
    "matvec-axes": ("matvec", (2, 3, 4), (3, 2), {"axes": [(2, 1), 0, 1]}),
    "vecmat-dtype": ("vecmat", (3,), (3, 4), {"dtype": "complex64"}),
    "vecdot-axis": ("vecdot", (3, 2), (3, 2), {"axis": 0}),
    "vecdot-keepdims": ("vecdot", (3, 2), (3, 2), {"axis": 0, "keepdims": True}),
    "vecdot-last": ("vecdot", (3, 2), (3, 2), {"keepdims": True}),
    "vecdot-axes": ("vecdot", (3, 2), (2, 3), {"axes": [0, 1]}),
    "vecdot-nothing": ("vecdot", (3, 2), (3, 2), {"axes": [(0,), (0,), ()]}),
    "vecdot-moved": ("vecdot", (3, 2), (3, 2), {"axes": [0, 0, -1], "keepdims": True}),
}


@pytest.mark.parametrize(("name", "one", "other", "options"), PRODUCTS.values(), ids=list(PRODUCTS))
def test_options_of_products(
    name: str, one: tuple[int, ...], other: tuple[int, ...], options: dict[str, Any]
) -> None:
    if name not in UFUNCS:
        pytest.skip(f"NumPy {np.__version__} has no {name}")
    assert beside_numpy(
        UFUNCS[name], getattr(xarr, name), values(one, "float64"), values(other, "float64", 1), **options
    )


# --- elsewhere ------------------------------------------------------------------------------------------

TRACED: dict[str, Callable[[Any, Any], Any]] = {
    "call": lambda xp, x: xp.add(x, 1, dtype="float32"),
    "sum": lambda xp, x: xp.add.reduce(x, axis=None),
    "difference": lambda xp, x: xp.subtract.reduce(x, axis=1),
    "quotient": lambda xp, x: xp.divide.reduce(x, where=x > 0, initial=8.0),
    "hypot": lambda xp, x: xp.hypot.reduce(x, axis=(0, 1)),
    "powers": lambda xp, x: xp.power.accumulate(x),
    "maxima": lambda xp, x: xp.fmax.accumulate(x, axis=1),
    "segments": lambda xp, x: xp.add.reduceat(x, [2, 0, 1]),
    "quotients": lambda xp, x: xp.divide.reduceat(x, [2, 0, 1]),
    "outer": lambda xp, x: xp.arctan2.outer(x, x[0]),
}


@pytest.mark.parametrize("call", TRACED.values(), ids=list(TRACED))
def test_methods_of_traced_arrays(call: Callable[[Any, Any], Any]) -> None:
    n = np.abs(values((3, 4), "float64")) + 0.5
    wanted = call(np, n)
    compare(xarr.jit(lambda x: call(xarr, x))(n), wanted)
    compare(xarr.jit(lambda x: call(np, x))(xarr.asarray(n)), wanted)


@pytest.mark.parametrize("call", TRACED.values(), ids=list(TRACED))
def test_methods_on_the_reference(call: Callable[[Any, Any], Any]) -> None:
    n = np.abs(values((3, 4), "float64")) + 0.5
    with xarr.use_backend("reference"):
        compare(call(xarr, xarr.asarray(n)), call(np, n))


def test_at_in_a_traced_function() -> None:
    def count(indices: Any) -> Any:
        result = xarr.zeros(4, "int64")
        xarr.add.at(result, indices, 1)
        return result

    assert_same(xarr.jit(count)(xarr.asarray([0, 2, 2, 3])), np.array([1, 0, 2, 1]))
    outer = xarr.zeros(2)
    with pytest.raises(TracedValueError, match="cannot be changed inside"):
        xarr.jit(lambda x: xarr.add.at(outer, 0, x))(1.0)


def test_reduceat_of_traced_indices_checks_them_when_it_runs() -> None:
    n = np.arange(5.0)
    call = xarr.jit(lambda indices: xarr.add.reduceat(n, indices))
    compare(call(xarr.asarray([0, 3, 1])), np.add.reduceat(n, [0, 3, 1]))
    for wrong in (5, -1):
        with pytest.raises(IndexError):
            np.asarray(call(xarr.asarray([0, wrong])))


def test_at_of_a_part_says_that_it_is_dropped() -> None:
    x = xarr.zeros((2, 2))
    with pytest.warns(DroppedUpdateWarning, match=r"x\[0\] is a part of x"):
        xarr.add.at(x[0], 0, 1)
    assert_same(x, np.zeros((2, 2)))


def test_at_leaves_the_bits_of_others_alone() -> None:
    large = np.array([2**62 + 1, 3, 2**62 + 3])
    x = xarr.asarray(large)
    xarr.add.at(x, 1, 0.5)
    assert_same(x, large)


def test_functions_of_a_handle_leave_the_other_alone() -> None:
    x = xarr.zeros(2)
    y = x.copy()
    xarr.add.at(x, [0, 0], 1.0)
    assert_same(x, np.array([2.0, 0.0]))
    assert_same(y, np.zeros(2))


def test_long_folds_from_the_left() -> None:
    """Differences are running sums, which engines take in orders of their own."""
    n = np.random.default_rng(0).random(300) + 0.5
    for call in (lambda f: f.reduce, lambda f: f.accumulate):
        for name in ("subtract", "divide", "fmod", "copysign"):
            wanted = np.asarray(call(UFUNCS[name])(n))
            assert_same(call(getattr(xarr, name))(n), wanted, ulp=8 if name == "subtract" else 0)
