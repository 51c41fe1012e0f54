"""Every operation alone on 10^6 elements, beside the best NumPy spelling of it: rows for `ops.py`.

Both sides begin with computed arrays and end with one; xarr records and evaluates the operation at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cmp_to_key
from typing import Any

import ml_dtypes
import numpy as np

import xarr
from xarr import lax
from xarr.ir import ops
from xarr.ir.ops.elementwise import numpy_functions

SIZE = 10**6
Function = Callable[..., Any]
#: Name, by xarr, by NumPy, the operands of both.
Row = tuple[str, Function, Function, tuple[np.ndarray, ...]]

random = np.random.default_rng(0)
F32 = random.normal(size=SIZE).astype(np.float32)
F64 = random.normal(size=SIZE)
G32 = random.normal(size=SIZE).astype(np.float32)
POSITIVE = np.abs(F32) + np.float32(0.5)
UNIT = (random.random(SIZE) * 2 - 1).astype(np.float32)
I32, J32 = (random.integers(-1000, 1000, SIZE).astype(np.int32) for _ in range(2))
U32 = random.integers(0, 2**32, SIZE, np.uint32)
SHIFTS = random.integers(0, 32, SIZE).astype(np.uint32)
SMALL = random.integers(0, 8, SIZE).astype(np.int32)
I64 = random.integers(-(10**9), 10**9, SIZE)
BITS, OTHER_BITS = (random.random(SIZE) < 0.5 for _ in range(2))
C64 = (F32 + 1j * G32).astype(np.complex64)
D64 = (G32 + 1j * F32).astype(np.complex64)
C128 = C64.astype(np.complex128)
B16, E16 = F32.astype(ml_dtypes.bfloat16), G32.astype(ml_dtypes.bfloat16)
H16 = F32.astype(np.float16)
F8 = F32.astype(ml_dtypes.float8_e4m3fn)
MATRIX = F32.reshape(1000, 1000)
CUBE = F32.reshape(100, 100, 100)


def unary() -> Iterator[Row]:
    domains = {name: POSITIVE for name in ("log", "log1p", "sqrt")} | {"acosh": POSITIVE + 1}
    domains |= {name: UNIT for name in ("acos", "asin", "atanh")}
    for op, numpy_name in numpy_functions().items():
        if op.arity == 1 and F32.dtype in op.accepts and op not in (ops.Real, ops.RoundNearestEven):
            name = op.lax_name
            yield name, getattr(lax, name), getattr(np, numpy_name), (domains.get(name, F32),)
    for name, ufunc in (
        ("sign", np.sign),
        ("real", np.array),
        ("imag", np.zeros_like),
        ("square", np.square),
    ):
        yield name, getattr(lax, name), ufunc, (F32,)
    yield "rsqrt", lax.rsqrt, lambda x: 1 / np.sqrt(x), (POSITIVE,)
    yield "reciprocal", lax.reciprocal, np.reciprocal, (POSITIVE,)
    yield "logistic", lax.logistic, lambda x: 1 / (1 + np.exp(-x)), (F32,)
    yield "round to even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.rint, (F32,)
    yield "round away", lax.round, lambda x: np.trunc(x + np.copysign(np.float32(0.5), x)), (F32,)
    yield "not", lax.bitwise_not, np.invert, (U32,)
    yield "population_count", lax.population_count, np.bitwise_count, (U32,)
    yield "clz", lax.clz, _clz, (U32,)
    yield "abs of int32", lax.abs, np.abs, (I32,)
    yield "sign of int32", lax.sign, np.sign, (I32,)
    for name, ufunc in (
        ("exp", np.exp),
        ("abs", np.abs),
        ("sqrt", np.sqrt),
        ("log", np.log),
        ("tanh", np.tanh),
    ):
        yield f"{name} of complex64", getattr(lax, name), ufunc, (C64,)
    for name, ufunc in (("exp", np.exp), ("neg", np.negative), ("sqrt", np.sqrt)):
        yield f"{name} of bfloat16", getattr(lax, name), ufunc, (B16,)
    yield "exp of float16", lax.exp, np.exp, (H16,)
    yield "exp of float8", lax.exp, np.exp, (F8,)


def _clz(x: np.ndarray) -> np.ndarray:
    """Exact for 32 bits: a float64 holds them."""
    return 32 - np.frexp(x.astype(np.float64))[1]


def binary() -> Iterator[Row]:
    for name, ufunc in {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod, "max": np.maximum,
        "min": np.minimum, "eq": np.equal, "lt": np.less, "ge": np.greater_equal, "atan2": np.arctan2,
        "nextafter": np.nextafter,
    }.items():  # fmt: skip
        yield name, getattr(lax, name), ufunc, (F32, G32)
    yield "pow", lax.pow, np.power, (POSITIVE, G32)
    yield "integer_pow 3", lambda x: lax.integer_pow(x, 3), lambda x: x * x * x, (F32,)
    yield "lt_to", lax.lt_to, _total_less, (F32, G32)
    yield "div of int32", lax.div, _truncate, (I32, J32)
    yield "rem of int32", lax.rem, lambda x, y: np.fmod(x, np.where(y == 0, 1, y)), (I32, J32)
    yield "rem of uint32 by 7", lambda x: lax.rem(x, np.uint32(7)), lambda x: x % np.uint32(7), (U32,)
    yield "div of int64", lax.div, _truncate, (I64, J32.astype(np.int64))
    yield "pow of int32", lax.pow, np.power, (I32, SMALL)
    for name, ufunc in {"add": np.add, "mul": np.multiply, "max": np.maximum}.items():
        yield f"{name} of int32", getattr(lax, name), ufunc, (I32, J32)
    for name, ufunc in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
        yield f"bitwise_{name}", getattr(lax, f"bitwise_{name}"), ufunc, (I32, J32)
    yield "and of bools", lax.bitwise_and, np.logical_and, (BITS, OTHER_BITS)
    yield "shift_left", lax.shift_left, np.left_shift, (U32, SHIFTS)
    yield "shift_right_logical", lax.shift_right_logical, np.right_shift, (U32, SHIFTS)
    signed = U32.view(np.int32), SHIFTS.view(np.int32)
    yield "shift_right_arithmetic", lax.shift_right_arithmetic, np.right_shift, signed
    for name, ufunc in {"add": np.add, "mul": np.multiply, "div": np.divide, "pow": np.power}.items():
        yield f"{name} of complex64", getattr(lax, name), ufunc, (C64, D64)
    yield "complex", lax.complex, _complex, (F32, G32)
    for name, ufunc in {"add": np.add, "mul": np.multiply, "max": np.maximum, "lt": np.less}.items():
        yield f"{name} of bfloat16", getattr(lax, name), ufunc, (B16, E16)
    yield "add of float16", lax.add, np.add, (H16, H16[::-1].copy())
    yield "add of float8", lax.add, np.add, (F8, F8[::-1].copy())


def _total_less(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    a, b = x.view(np.int32), y.view(np.int32)
    return (a ^ ((a >> 31) & 0x7FFFFFFF)) < (b ^ ((b >> 31) & 0x7FFFFFFF))


def _truncate(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Towards zero, as far as there is no 0 or least integer."""
    quotient = np.floor_divide(x, np.where(y == 0, 1, y))
    return quotient + ((quotient < 0) & (quotient * y != x))


def _complex(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    result = np.empty(x.shape, np.complex64)
    result.real, result.imag = x, y
    return result


def irregular() -> Iterator[Row]:
    half = np.float32(0.5)
    yield "select", lax.select, np.where, (BITS, F32, G32)
    yield "clamp", lambda x: lax.clamp(-half, x, half), lambda x: np.clip(x, -half, half), (F32,)
    for old, new in (
        ("float32", "int32"), ("float32", "float64"), ("float32", "bfloat16"), ("bfloat16", "float32"),
        ("float32", "float16"), ("float64", "float8_e4m3fn"), ("int32", "float32"), ("float32", "bool"),
        ("int64", "int8"), ("complex64", "float32"),
    ):  # fmt: skip
        yield from _conversion(old, new)
    yield (
        "bitcast to uint32",
        lambda x: lax.bitcast_convert_type(x, np.uint32),
        lambda x: x.view(np.uint32).copy(),
        (F32,),
    )
    yield (
        "bitcast to 4 bytes",
        lambda x: lax.bitcast_convert_type(x, np.uint8),
        lambda x: x.view(np.uint8).copy(),
        (F32,),
    )
    yield (
        "reduce_precision 5, 10",
        lambda x: lax.reduce_precision(x, 5, 10),
        lambda x: x.astype(np.float16).astype(np.float32),
        (F32,),
    )
    yield (
        "reduce_precision 8, 7",
        lambda x: lax.reduce_precision(x, 8, 7),
        lambda x: x.astype(ml_dtypes.bfloat16).astype(np.float32),
        (F32,),
    )
    yield "iota", lambda: lax.iota(np.int32, SIZE), lambda: np.arange(SIZE, dtype=np.int32), ()
    yield (
        "map of a*b + a",
        lambda x, y: lax.map_elements(lambda a, b: lax.add(lax.mul(a, b), a), x, y),
        lambda x, y: x * y + x,
        (F32, G32),
    )
    yield (
        "cond",
        lambda x: lax.cond(True, lambda x: lax.add(x, 1), lambda x: lax.sub(x, 1), x),
        lambda x: x + 1,
        (F32,),
    )
    yield "while_loop, 10 turns of x*0.9", _loop, _loop_by_hand, (F32,)
    yield "scan of 1000 rows, sums", _scan, lambda x: np.cumsum(x, axis=0), (MATRIX,)


def _conversion(old: str, new: str) -> Iterator[Row]:
    arrays = {"float32": F32, "bfloat16": B16, "float64": F64, "int32": I32, "int64": I64, "complex64": C64}
    dtype = np.dtype(getattr(ml_dtypes, new, new))

    def by_hand(x: np.ndarray) -> np.ndarray:
        if dtype.kind == "b":
            return x != 0
        return (x.real if x.dtype.kind == "c" else x).astype(dtype)

    yield f"{old} to {new}", lambda x: lax.convert_element_type(x, dtype), by_hand, (arrays[old],)


def _loop(x: Any) -> Any:
    return lax.fori_loop(0, 10, lambda i, x: lax.mul(x, np.float32(0.9)), x)


def _loop_by_hand(x: np.ndarray) -> np.ndarray:
    for _ in range(10):
        x = x * np.float32(0.9)
    return x


def _scan(x: Any) -> Any:
    return lax.scan(
        lambda total, row: (lax.add(total, row), lax.add(total, row)), np.zeros(1000, np.float32), x
    )[1]


def movement() -> Iterator[Row]:
    yield (
        "broadcast_in_dim",
        lambda x: lax.broadcast_in_dim(x, (1000, 1000), (1,)),
        lambda x: np.broadcast_to(x, (1000, 1000)).copy(),
        (F32[:1000],),
    )
    yield (
        "concatenate",
        lambda x, y: lax.concatenate([x, y], 0),
        lambda x, y: np.concatenate([x, y]),
        (F32, G32),
    )
    yield "pad", lambda x: lax.pad(x, np.float32(0), [(1, 2, 0)] * 2), lambda x: np.pad(x, 1), (MATRIX,)
    yield "pad with holes", lambda x: lax.pad(x, np.float32(0), [(0, 0, 1)] * 2), _with_holes, (MATRIX,)
    yield "reshape", lambda x: lax.reshape(x, (100, 10000)), lambda x: x.reshape(100, 10000).copy(), (F32,)
    yield "rev", lambda x: lax.rev(x, (0, 1)), lambda x: x[::-1, ::-1].copy(), (MATRIX,)
    yield (
        "slice",
        lambda x: lax.slice(x, (10, 10), (990, 990), (1, 2)),
        lambda x: x[10:990, 10:990:2].copy(),
        (MATRIX,),
    )
    yield "transpose", lambda x: lax.transpose(x, (1, 0)), lambda x: x.T.copy(), (MATRIX,)
    yield (
        "transpose of a cube",
        lambda x: lax.transpose(x, (2, 0, 1)),
        lambda x: x.transpose(2, 0, 1).copy(),
        (CUBE,),
    )
    yield (
        "dynamic_slice",
        lambda x: lax.dynamic_slice(x, (10, 10), (900, 900)),
        lambda x: x[10:910, 10:910].copy(),
        (MATRIX,),
    )
    yield (
        "dynamic_update_slice",
        lambda x, y: lax.dynamic_update_slice(x, y, (10, 10)),
        _update,
        (MATRIX, MATRIX[:900, :900].copy()),
    )
    yield (
        "take along axis 1",
        lambda x, i: lax.take(x, i, axis=1),
        lambda x, i: np.take(x, i, axis=1),
        (MATRIX, I32[:1000] % 1000),
    )


def _with_holes(x: np.ndarray) -> np.ndarray:
    result = np.zeros((2 * len(x) - 1, 2 * x.shape[1] - 1), x.dtype)
    result[::2, ::2] = x
    return result


def _update(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    result = x.copy()
    result[10:910, 10:910] = y
    return result


def reductions() -> Iterator[Row]:
    for name, function in {"reduce_sum": np.sum, "reduce_max": np.max, "reduce_prod": np.prod}.items():
        for axes in ((0,), (1,), (0, 1)):
            yield f"{name} over {axes}", _reduce_over(name, axes), _by_numpy(function, axes), (MATRIX,)
    yield (
        "reduce_sum of bfloat16",
        _reduce_over("reduce_sum", (0,)),
        lambda x: x.astype(np.float32).sum(dtype=np.float32),
        (B16,),
    )
    yield "reduce_sum of int32", _reduce_over("reduce_sum", (0,)), lambda x: x.sum(dtype=np.int32), (I32,)
    yield "reduce_or", _reduce_over("reduce_or", (0,)), np.any, (~BITS & BITS,)
    yield (
        "reduce by a + b + ab",
        lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b + a * b, (0,)),
        _in_pairs,
        (MATRIX,),
    )
    yield (
        "reduce rows by a + b + ab",
        lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b + a * b, (1,)),
        lambda x: _in_pairs(x.T),
        (MATRIX,),
    )
    yield "reduce to least and greatest", _extremes, lambda x: (x.min(axis=1), x.max(axis=1)), (MATRIX,)
    yield "argmax", lambda x: lax.argmax(x, 0, np.int32), np.argmax, (F32,)
    yield "argmax of rows", lambda x: lax.argmax(x, 1, np.int32), lambda x: np.argmax(x, axis=1), (MATRIX,)
    for name, ufunc in {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum}.items():
        for axis in (0, 1):
            yield f"{name} along {axis}", _running(name, axis), _accumulate(ufunc, axis), (MATRIX,)
    yield "cumlogsumexp", lambda x: lax.cumlogsumexp(x), np.logaddexp.accumulate, (F32,)
    yield "cumulative a + b + ab", _cumulative, lambda x: np.multiply.accumulate(1 + x) - 1, (F32,)
    yield "max of 100 neighbours", _neighbours(lax.max, -np.inf, 100), _fold_by_doubling(np.maximum), (F32,)
    yield "sum of 100 neighbours", _neighbours(lax.add, 0, 100), _fold_by_doubling(np.add), (F32,)


def _in_pairs(x: np.ndarray) -> np.ndarray:
    """Rows combined by a + b + ab, neighbours first: any associative computation can be spelled so."""
    while len(x) > 1:
        a, b = x[: len(x) // 2 * 2 : 2], x[1::2]
        both = a + b + a * b
        x = np.concatenate([both, x[-1:]]) if len(x) % 2 else both
    return x[0]


def _reduce_over(name: str, axes: tuple[int, ...]) -> Function:
    return lambda x: getattr(lax, name)(x, axes)


def _by_numpy(function: Function, axes: tuple[int, ...]) -> Function:
    return lambda x: function(x, axis=axes)


def _running(name: str, axis: int) -> Function:
    return lambda x: getattr(lax, name)(x, axis)


def _accumulate(ufunc: np.ufunc, axis: int) -> Function:
    return lambda x: ufunc.accumulate(x, axis=axis)


def _extremes(x: Any) -> Any:
    start = np.float32(np.inf), np.float32(-np.inf)
    return lax.reduce((x, x), start, lambda a, b: (lax.min(a[0], b[0]), lax.max(a[1], b[1])), (1,))


def _cumulative(x: Any) -> Any:
    return lax.reduce_window(x, np.float32(0), lambda a, b: a + b + a * b, (SIZE,), (1,), [(SIZE - 1, 0)])


def _neighbours(op: Any, start: float, count: int) -> Function:
    return lambda x: lax.reduce_window(x, np.float32(start), op, (count,), (1,), "VALID")


def _fold_by_doubling(ufunc: np.ufunc) -> Function:
    """100 neighbours are 64, and 32 and 4 more."""

    def function(x: np.ndarray) -> np.ndarray:
        doubled = [x]
        for shift in (1, 2, 4, 8, 16, 32):
            doubled.append(ufunc(doubled[-1][:-shift], doubled[-1][shift:]))
        count = len(x) - 99
        return ufunc(ufunc(doubled[6][:count], doubled[5][64 : 64 + count]), doubled[2][96 : 96 + count])

    return function


def sorts() -> Iterator[Row]:
    yield "sort", lax.sort, np.sort, (F32,)
    yield "sort, descending", lambda x: lax.sort_with(x, lax.gt), lambda x: np.sort(x)[::-1].copy(), (F32,)
    yield "sort by magnitude", _by_magnitude, lambda x: x[np.argsort(np.abs(x), kind="stable")], (F32,)
    yield "sort_key_val", lax.sort_key_val, _with_values, (F32, I32)
    yield "sort by two keys", lambda x, y: lax.sort((x, y), num_keys=2), _by_two, (SMALL, F32)
    yield "sort rows", lambda x: lax.sort(x, 1), lambda x: np.sort(x, axis=1), (MATRIX,)
    # NumPy has no sort by a comparator; Python's takes one.
    yield "sort by what is no column, 10^5", _by_difference, _by_comparator, (I32[: SIZE // 10].copy(),)


def _by_magnitude(x: Any) -> Any:
    return lax.sort_with(x, lambda a, b: lax.lt(lax.abs(a), lax.abs(b)))


def _by_difference(x: Any) -> Any:
    return lax.sort_with(x, lambda a, b: lax.lt(lax.sub(a, b), np.int32(0)))


def _by_comparator(x: np.ndarray) -> np.ndarray:
    return np.array(sorted(x.tolist(), key=cmp_to_key(lambda a, b: -1 if a - b < 0 else a > b)), x.dtype)


def _with_values(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(x, kind="stable")
    return x[order], y[order]


def _by_two(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((y, x))
    return x[order], y[order]


def generators() -> Iterator[Row]:
    state = np.array([1, 2], np.uint64)
    for name, algorithm in (("Philox", "RNG_PHILOX"), ("Threefry", "RNG_THREE_FRY")):
        yield (
            f"bits by {name}",
            _bits(algorithm),
            lambda x: random.integers(0, 2**32, SIZE, np.uint32),
            (state,),
        )
    zero, one = np.float32(0), np.float32(1)
    yield (
        "rng_uniform",
        lambda: lax.rng_uniform(zero, one, (SIZE,)),
        lambda: random.random(SIZE, np.float32),
        (),
    )
    yield (
        "rng_normal",
        lambda: lax.rng_normal(zero, one, (SIZE,)),
        lambda: random.standard_normal(SIZE, np.float32),
        (),
    )


def _bits(algorithm: str) -> Function:
    return lambda state: lax.rng_bit_generator(state, (SIZE,), np.uint32, algorithm=algorithm)[1]


_RECORDING = "NumPy takes 0.3 ms or less; the rest is recording the operation with its computations"
#: Why a row takes more than three times as long as NumPy, where it does.
REASONS: dict[str, str] = {
    "cond": _RECORDING,
    "reduce_max over (0,)": _RECORDING,
    "reduce_or": _RECORDING,
    "reduce to least and greatest": _RECORDING,
    "argmax": _RECORDING,
    "argmax of rows": _RECORDING,
}

FAMILIES = (unary, binary, irregular, movement, reductions, sorts, generators)


def single_ops() -> dict[str, dict[str, Callable[[], object]]]:
    """The table of `ops.py`."""
    table: dict[str, dict[str, Callable[[], object]]] = {}
    for family in FAMILIES:
        for name, function, by_hand, arrays in family():
            table[name] = {"numpy": _make_call(by_hand, arrays), "xarr": _make_evaluation(function, arrays)}
    return table


def _make_call(function: Function, arrays: tuple[np.ndarray, ...]) -> Callable[[], object]:
    def call() -> object:
        with np.errstate(all="ignore"):
            return function(*arrays)

    return call


def _make_evaluation(function: Function, arrays: tuple[np.ndarray, ...]) -> Callable[[], object]:
    held = [xarr.asarray(array).evaluate() for array in arrays]

    def call() -> object:
        result = function(*held)
        xarr.evaluate(*result) if isinstance(result, tuple | list) else result.evaluate()
        return result

    return call
