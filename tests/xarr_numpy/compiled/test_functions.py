"""The functions of compiled loops, against more exact computations and against the NumPy program."""

import ctypes
import math
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from tests.compare import assert_same
from tests.elementwise_ops import RECORDS, record_of
from tests.support.elementwise_kernels import Kernel
from tests.support.operations import own_operations
from xarr import dtypes, lax
from xarr.compiler.functions import FUNCTIONS, apply_elementwise, apply_graph, convert, register_dtype
from xarr.compiler.loop_ir.scalars import Value, Values
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, Parameter
from xarr.ir.op import Op
from xarr.ir.ops.ciphers import PhiloxPair, ThreefryBits
from xarr.ir.ops.elementwise import Elementwise
from xarr.ir.types import TensorType
from xarr_numpy.compiled.codegen.llvm_jit import Machine
from xarr_numpy.functions import conversion, floating_point, integer_arithmetic
from xarr_numpy.ops import ciphers
from xarr_reference.scalars import bit_order

Array = np.ndarray[Any, Any]

#: x86-64 of 2003: no fma, no AVX, no SSE4.1.
OLD = Machine("x86-64", "")
#: The ops that loops compute by formulas of their own, by name.
FORMULAS = {
    op.name: RECORDS[op.lax_name]
    for op in own_operations(ops.Elementwise)
    if getattr(RECORDS.get(op.lax_name), "in_loops", None)
}
FORMS = ("xor", "joined", "swapped")
#: Those of floats, without the other of the two that are called lax.round.
FLOAT_OPS = [op for op in own_operations(ops.Unary) if op is not ops.RoundNearestEven]
OPERATIONS = {op.name: op for op in own_operations(ops.Elementwise)}
ARITY = {name: op.arity for name, op in OPERATIONS.items()}
INF, NAN = math.inf, math.nan
LONG = np.finfo(np.longdouble).nmant > 52
needs_long = pytest.mark.skipif(not LONG, reason="needs a longdouble that is longer than float64")


def edges(dtype: Any) -> Array:
    """The numbers where formulas change or break."""
    dtype, info = np.dtype(dtype).type, np.finfo(dtype)
    largest, tiny, smallest = float(info.max), float(info.tiny), float(info.smallest_subnormal)
    positive = [0.0, 1.0, 0.5, 2.0, 3.0, math.pi, math.e, largest, tiny, smallest, math.inf, math.nan]
    positive += [float(np.nextafter(dtype(1), dtype(to))) for to in (0, 2)]
    positive += [math.exp(4), float(info.eps), 1 / 3, 2.5, 87.5, 88.8, 709.5, 745.0]
    with np.errstate(over="ignore"):
        return np.array([*positive, *(-x for x in positive)]).astype(dtype)


def samples(dtype: Any, count: int, seed: int = 0) -> Array:
    """All kinds of floats: any bits, all exponents around 1, and small ones evenly spread."""
    rng = np.random.default_rng(seed)
    width = np.dtype(dtype).itemsize
    anything = rng.integers(0, 2 ** (8 * width), count, np.uint64, endpoint=False) if width < 8 else None
    bits = rng.integers(0, 2**64 - 1, count, np.uint64, endpoint=True) if anything is None else anything
    any_bits = bits.astype(f"u{width}").view(dtype)
    signs = rng.choice([-1.0, 1.0], count)
    parts = [
        any_bits,
        (signs * 2.0 ** rng.uniform(-30, 12, count)).astype(dtype),
        rng.uniform(-10, 10, count).astype(dtype),
        rng.uniform(-1, 1, count).astype(dtype),
        (signs + 2.0 ** -rng.uniform(1, 20, count) * rng.choice([-1.0, 1.0], count)).astype(dtype),
        (signs * rng.uniform(0, 1100, count)).astype(dtype),
        edges(dtype),
    ]
    return np.concatenate(parts)


def operands_of(name: str, dtype: Any, count: int) -> list[Array]:
    first = samples(dtype, count)
    if ARITY.get(name, 1) == 1:
        return [first]
    special = edges(dtype)
    pairs = [grid.ravel() for grid in np.meshgrid(special, special)]
    return [
        np.concatenate([first, pairs[0]]),
        np.concatenate([np.random.default_rng(1).permutation(samples(dtype, count, 2)), pairs[1]]),
    ]


def errors(got: Array, exact: Array) -> Array:
    """The distance from the exact results in ULP; infinite where a special value or a sign is wrong."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        same = (got == rounded) & ((got != 0) | (np.signbit(got) == np.signbit(rounded)))
        same |= np.isnan(got) & np.isnan(rounded)
        _, exponent = np.frexp(np.maximum(np.abs(exact), exact.dtype.type(info.tiny)))
        unit = np.ldexp(exact.dtype.type(1), exponent - 1 - info.nmant)
        distance = np.abs(got.astype(exact.dtype) - exact) / unit
        # Where one rounds to infinity the other may be the largest number.
        ends = np.isinf(got) ^ np.isinf(rounded)
        ends &= (np.abs(got) >= info.max) & (np.abs(rounded) >= info.max) & (got * rounded > 0)
    distance = np.where(ends, 1, distance)
    return np.where(
        same & ~(np.isfinite(got) & (got != 0)), 0, np.where(np.isnan(distance), np.inf, distance)
    )


def assert_within(got: Array, exact: Array, bound: float, *operands: Array) -> None:
    distances = errors(got, exact)
    worst = int(np.argmax(distances))
    arguments = [float(x[worst]) for x in operands]
    message = f"{distances[worst]:.3f} ULP at {arguments}: got {got[worst]!r}, exact {exact[worst]!r}"
    assert distances[worst] <= bound, message


def formula(name: str, dtype: Any) -> Callable[..., Value]:
    return lambda *operands: lower_graph(OPERATIONS[name](), dtype, *operands)


def kernel(name: str, dtype: Any, width: int) -> Kernel:
    return Kernel(formula(name, dtype), [dtype] * ARITY.get(name, 1), width)


# --- accuracy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMULAS)
def test_float32_accuracy(name: str) -> None:
    operands = operands_of(name, np.float32, 60_000)
    with np.errstate(all="ignore"):
        exact = FORMULAS[name].exact(*[x.astype(np.float64) for x in operands])
    assert_within(kernel(name, np.float32, 16)(*operands), exact, FORMULAS[name].in_loops.tested32, *operands)


@needs_long
@pytest.mark.parametrize("name", [name for name, one in FORMULAS.items() if not one.exact_of_float64])
def test_float64_accuracy(name: str) -> None:
    operands = operands_of(name, np.float64, 20_000)
    with np.errstate(all="ignore"):
        exact = FORMULAS[name].exact(*[x.astype(np.longdouble) for x in operands])
    assert_within(kernel(name, np.float64, 8)(*operands), exact, FORMULAS[name].in_loops.tested64, *operands)


@needs_long
@pytest.mark.parametrize("name", [name for name, one in FORMULAS.items() if one.exact_of_float64])
def test_float64_accuracy_of_error_functions(name: str) -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(-7, 7, 1500), rng.uniform(-28, 28, 500), 2.0 ** rng.uniform(-60, 3, 500)])
    x = np.append(x, [np.inf, -np.inf, np.nan])
    record = FORMULAS[name]
    assert_within(kernel(name, np.float64, 8)(x), record.exact_of_float64(x), record.in_loops.tested64, x)


@pytest.mark.parametrize("name", FORMULAS)
def test_every_float16(name: str) -> None:
    x = np.arange(65536).astype(np.uint16).view(np.float16)
    operands = [x, np.random.default_rng(4).permutation(x)][: ARITY.get(name, 1)]
    with np.errstate(all="ignore"):
        exact = FORMULAS[name].exact(*[operand.astype(np.float64) for operand in operands])
    got = kernel(name, np.float16, 16)(*operands)
    assert got.dtype == np.float16
    assert_within(got, exact, 0.501, *operands)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", FORMULAS)
def test_every_width_gives_the_same_bits(name: str, dtype: Any) -> None:
    operands = operands_of(name, dtype, 500)
    one, *others = (kernel(name, dtype, width)(*operands) for width in (1, 4, 16))
    for other in others:
        assert_same(other, one)
    optimised = Kernel(formula(name, dtype), [dtype] * len(operands), 8, optimise=True)
    assert_same(optimised(*operands), one)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="compiles for older x86-64")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FORMULAS)
def test_older_processors_give_the_same_bits(name: str, dtype: Any) -> None:
    operands = operands_of(name, dtype, 200)
    function, dtypes = formula(name, dtype), [dtype] * len(operands)
    assert_same(Kernel(function, dtypes, 8, OLD)(*operands), Kernel(function, dtypes, 8)(*operands))


def test_float16_needs_instructions() -> None:
    assert not OLD.has_float16()
    assert Machine("haswell", "+f16c,+avx2").has_float16()
    with pytest.raises(BackendError, match="could not load"):
        Kernel(FUNCTIONS["stablehlo.exponential"], [np.float16], 1, OLD)


@needs_long
@pytest.mark.parametrize("name", ["stablehlo.sine", "stablehlo.cosine", "stablehlo.tan"])
def test_arguments_next_to_multiples_of_half_pi(name: str) -> None:
    # The double closest to a multiple of pi/2 (Muller et al., Handbook of Floating-Point Arithmetic), and
    # floats on both sides of many multiples.
    multiples = np.arange(1, 200_000, 37) * (
        np.longdouble(math.pi) / 2 + np.longdouble(6.123233995736766e-17)
    )
    hard = np.array([6381956970095103.0 * 2.0**797, 2.0**1023, 1e22])
    for dtype, wider in ((np.float32, np.float64), (np.float64, np.longdouble)):
        x = np.concatenate([multiples.astype(dtype), hard.astype(dtype) if dtype == np.float64 else []])
        x = np.concatenate([np.nextafter(x, dtype(0)), x, np.nextafter(x, dtype(np.inf))]).astype(dtype)
        exact = FORMULAS[name].exact(x.astype(wider))
        bound = FORMULAS[name].in_loops
        allowed = bound.tested32 if dtype == np.float32 else bound.tested64
        assert_within(kernel(name, dtype, 8)(x), exact, allowed, x)


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or platform.system() != "Linux",
    reason="reads flags of x86-64",
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("stablehlo.exponential", [[-INF, -1e30, -1500.0, -1000.0, -747.0, 0.0, -1.0, -2.0]]),
        ("stablehlo.logistic", [[-INF, -1e30, -1500.0, -1000.0, -747.0, 0.0, -1.0, -2.0]]),
        ("stablehlo.power", [[0.5] * 8, [INF, 1e30, 3000.0, 2000.0, 1200.0, 0.0, -1.0, 2.0]]),
    ],
)
def test_no_product_underflows_where_the_result_is_zero(
    name: str, operands: list[list[float]], dtype: Any
) -> None:
    """Masks of a softmax are such numbers, and a processor takes a hundred times as long for such products."""
    function = kernel(name, dtype, 8)
    arrays = [np.array(each, dtype) for each in operands]
    flags = ctypes.CDLL(None)
    flags.feclearexcept(0x3F)
    got = function(*arrays)
    underflow = flags.fetestexcept(0x10)
    assert_same(got[:5], np.zeros(5, dtype))
    assert not underflow


# --- special values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "operands", "wanted"),
    [
        *[(op.name, *record_of(op).special) for op in FLOAT_OPS if record_of(op).special],
        ("stablehlo.round_nearest_even", [0.5, -0.5, 1.5, 2.5], [0.0, -0.0, 2.0, 2.0]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_special_values(name: str, operands: list[float], wanted: list[float], dtype: Any) -> None:
    for width in (1, 4):
        assert_same(kernel(name, dtype, width)(np.array(operands, dtype)), np.array(wanted, dtype))


# --- what is exact: the same bits as the NumPy program -----------------------------------------------

EXACT_FLOATS: dict[str, Callable[..., Array]] = {
    "stablehlo.maximum": floating_point.maximum,
    "stablehlo.minimum": floating_point.minimum,
    "chlo.next_after": floating_point.next_after,
    "stablehlo.remainder": np.fmod,
    "stablehlo.add": np.add,
    "stablehlo.subtract": np.subtract,
    "stablehlo.multiply": np.multiply,
    "stablehlo.divide": np.divide,
}
EXACT_UNARY: dict[str, Callable[..., Array]] = {
    "stablehlo.sign": floating_point.sign,
    "stablehlo.round_nearest_afz": floating_point.round_away,
    "stablehlo.round_nearest_even": np.rint,
    "stablehlo.floor": np.floor,
    "stablehlo.ceil": np.ceil,
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.abs": np.abs,
    "stablehlo.negate": np.negative,
    "stablehlo.is_finite": np.isfinite,
}
EXACT_INTEGERS: dict[str, Callable[..., Array]] = {
    "stablehlo.divide": integer_arithmetic.integer_divide,
    "stablehlo.remainder": integer_arithmetic.integer_remainder,
    "stablehlo.power": integer_arithmetic.integer_power,
    "stablehlo.shift_left": integer_arithmetic.shift_left,
    "stablehlo.shift_right_logical": integer_arithmetic.shift_right_logical,
    "stablehlo.shift_right_arithmetic": integer_arithmetic.shift_right_arithmetic,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.add": np.add,
    "stablehlo.multiply": np.multiply,
    "stablehlo.xor": np.bitwise_xor,
}
EXACT_INTEGERS_UNARY: dict[str, Callable[..., Array]] = {
    "stablehlo.popcnt": integer_arithmetic.popcnt,
    "stablehlo.count_leading_zeros": integer_arithmetic.count_leading_zeros,
    "stablehlo.not": np.invert,
    "stablehlo.negate": np.negative,
}
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", [*EXACT_FLOATS, *EXACT_UNARY])
def test_exact_float_operations(name: str, dtype: Any, width: int) -> None:
    binary = name in EXACT_FLOATS
    grid = [part.ravel() for part in np.meshgrid(edges(dtype), edges(dtype))]
    some = samples(dtype, 200)
    x = np.concatenate([grid[0], some])
    y = np.concatenate([grid[1], np.random.default_rng(5).permutation(some)])
    operands = [x, y] if binary else [x]
    with np.errstate(all="ignore"):
        wanted = {**EXACT_FLOATS, **EXACT_UNARY}[name](*operands)
    assert_same(kernel(name, dtype, width)(*operands), wanted)


def integers(dtype: np.dtype[Any]) -> Array:
    info = np.iinfo(dtype)
    some = np.random.default_rng(6).integers(info.min, info.max, 20, dtype, endpoint=True)
    few = np.array([0, 1, 2, 3, 5, 7, 8, 15, 31, 32, 63, 64, 100, info.max, info.max - 1], dtype)
    return np.concatenate([some, few, few.dtype.type(0) - few, np.array([info.min], dtype)])


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", [*EXACT_INTEGERS, *EXACT_INTEGERS_UNARY])
def test_integer_operations(name: str, dtype: np.dtype[Any], width: int) -> None:
    binary = name in EXACT_INTEGERS
    grid = [part.ravel() for part in np.meshgrid(integers(dtype), integers(dtype))]
    operands = grid if binary else [integers(dtype)]
    with np.errstate(all="ignore"):
        wanted = {**EXACT_INTEGERS, **EXACT_INTEGERS_UNARY}[name](*operands)
    assert_same(kernel(name, dtype, width)(*operands), wanted.astype(dtype))


# --- conversions -------------------------------------------------------------------------------------

EXTENDED = sorted(dtypes.EXTENDED_FLOAT, key=str)


def convert_bits(x: Array, new: np.dtype[Any], width: int) -> Array:
    old = x.dtype
    run = Kernel(lambda value: convert(value, old, new), [register_dtype(old)], width)
    return run(x.view(register_dtype(old))).view(new)


@pytest.mark.parametrize("width", [1, 16])
@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
def test_narrow_floats_are_widened(dtype: np.dtype[Any], width: int) -> None:
    x = np.arange(256**dtype.itemsize).astype(register_dtype(dtype)).view(dtype)
    assert_same(convert_bits(x, np.dtype(np.float32), width), x.astype(np.float32))


@pytest.mark.parametrize("width", [1, 16])
@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
def test_narrow_floats_are_rounded_to(dtype: np.dtype[Any], width: int) -> None:
    upper = np.arange(65536, dtype=np.uint32) << 16
    x = np.concatenate([upper | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).view(np.float32)
    with np.errstate(all="ignore"):
        assert_same(convert_bits(x, dtype, width), x.astype(dtype))


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("new", [*EXTENDED, np.dtype(np.float16)], ids=str)
@pytest.mark.parametrize("old", [np.float64, np.int64, np.uint64, np.int32, np.uint8, np.bool_])
def test_conversions_round_once(old: Any, new: np.dtype[Any], width: int) -> None:
    if np.dtype(old).kind == "f":
        with np.errstate(all="ignore"):
            exact = np.arange(256**new.itemsize).astype(f"u{new.itemsize}").view(new).astype(np.float64)
        exact = np.unique(exact[np.isfinite(exact)])
        middle = (exact[1:] + exact[:-1]) / 2
        x = np.concatenate([np.nextafter(middle, -np.inf), middle, np.nextafter(middle, np.inf), edges(old)])
    elif old == np.bool_:
        x = np.array([True, False])
    else:
        powers = [
            min(2**exponent + less, np.iinfo(old).max) for exponent in range(64) for less in (-1, 0, 1, 2**30)
        ]
        x = np.concatenate([integers(np.dtype(old)), np.array(powers, old)])
    with np.errstate(all="ignore"):
        assert_same(convert_bits(x, new, width), conversion.convert(x, new))


NATIVE = [
    np.dtype(name) for name in ("bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
]


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("new", NATIVE, ids=str)
@pytest.mark.parametrize("old", NATIVE, ids=str)
def test_conversions_of_registers(old: np.dtype[Any], new: np.dtype[Any], width: int) -> None:
    if old.kind == "b":
        x = np.array([True, False, True])
    else:
        x = np.concatenate([edges(old.type), samples(old, 50)]) if old.kind == "f" else integers(old)
    with np.errstate(all="ignore"):
        assert_same(convert_bits(x, new, width), conversion.convert(x, new))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("exponent", "mantissa"), [(5, 10), (8, 7), (4, 3), (11, 52), (2, 0), (3, 23)])
def test_reduce_precision(dtype: Any, exponent: int, mantissa: int) -> None:
    op, x = ops.ReducePrecision(exponent, mantissa), samples(dtype, 500)
    wanted = floating_point.reduce_precision(x, exponent, mantissa)
    run = Kernel(lambda value: lower_graph(op, dtype, value), [dtype], 8)
    assert_same(run(x), wanted)


# --- from operations ---------------------------------------------------------------------------------


def lower_graph(op: Op, dtype: Any, *operands: Any) -> Any:
    result = apply_elementwise(op, [np.dtype(dtype)] * len(operands), operands)
    assert result is not None
    return result


def all_element_wise() -> list[type[Elementwise]]:
    return sorted(own_operations(Elementwise), key=lambda one: one.name)


#: What the definition of an operation gives other bits for than the formula of compiled loops.
TWO_FORMULAS = [op for op in own_operations(ops.Elementwise) if op.has_formula]


def test_every_element_wise_operation_has_a_formula_or_a_definition() -> None:
    defined = {one.name for one in all_element_wise() if one.decompose is not Op.decompose}
    assert {one.name for one in all_element_wise()} - set(FUNCTIONS) - defined == {
        "stablehlo.compare",
        "stablehlo.complex",
    }
    assert set(FUNCTIONS) - {one.name for one in all_element_wise()} == {"stablehlo.select"}
    assert set(FUNCTIONS) & (defined | {"stablehlo.clamp"}) == {one.name for one in TWO_FORMULAS}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", TWO_FORMULAS, ids=lambda kind: kind.name)
def test_what_has_a_formula_beside_its_definition_has_other_bits(kind: type[ops.Unary], dtype: Any) -> None:
    """Where both had the same bits, one of them would be enough."""
    x = np.linspace(0.01, 6, 2000).astype(dtype)

    def define(value: Value) -> Value:
        parameter = Node(Parameter(TensorType((), value.dtype)))
        result = kind().decompose(parameter)
        assert result is not None
        results = apply_graph(Graph([parameter], [result]), [value])
        assert results is not None
        return results[0]

    one, other = Kernel(FUNCTIONS[kind.name], [dtype], 8)(x), Kernel(define, [dtype], 8)(x)
    assert (one != other).any()
    assert np.allclose(one, other, rtol=1e3 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint64])
def test_clamp(dtype: Any) -> None:
    low, x, high = (np.random.default_rng(seed).permutation(clamp_inputs(dtype)) for seed in range(3))
    run = Kernel(lambda *values: lower_graph(ops.Clamp(), dtype, *values), [dtype] * 3, 8)
    with np.errstate(all="ignore"):
        least, most = (
            (floating_point.maximum, floating_point.minimum)
            if np.dtype(dtype).kind == "f"
            else (np.maximum, np.minimum)
        )
        assert_same(run(low, x, high), most(least(x, low), high))


def clamp_inputs(dtype: Any) -> Array:
    return edges(dtype) if np.dtype(dtype).kind == "f" else integers(np.dtype(dtype))


@pytest.mark.parametrize("op", [*map(ThreefryBits, FORMS), PhiloxPair(0), PhiloxPair(1)], ids=str)
def test_ciphers(op: ThreefryBits | PhiloxPair) -> None:
    operands = np.random.default_rng(8).integers(0, 2**32, (op.arity, 200), np.uint32)
    run = Kernel(lambda *values: lower_graph(op, np.uint32, *values), [np.uint32] * op.arity, 8)
    wanted = (
        ciphers.threefry_bits(op.form, *operands)
        if isinstance(op, ThreefryBits)
        else ciphers.philox_pairs(*operands)[op.index]
    )
    assert_same(run(*operands), wanted)


@pytest.mark.parametrize("total_order", [False, True])
@pytest.mark.parametrize("direction", ["EQ", "NE", "GE", "GT", "LE", "LT"])
def test_comparisons(direction: str, total_order: bool) -> None:
    x, y = (part.ravel() for part in np.meshgrid(edges(np.float32), edges(np.float32)))
    op = ops.Compare(direction, total_order)
    ordered = [floating_point.total_order(part) if total_order else part for part in (x, y)]
    names = {"EQ": "equal", "NE": "not_equal", "GE": "greater_equal", "GT": "greater"}
    wanted = getattr(np, {**names, "LE": "less_equal", "LT": "less"}[direction])(*ordered)
    for width in (1, 8):
        run = Kernel(lambda a, b: lower_graph(op, np.float32, a, b), [np.float32] * 2, width)
        assert_same(run(x, y), wanted)


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
def test_total_order_of_narrow_floats(dtype: np.dtype[Any]) -> None:
    unsigned = register_dtype(dtype)
    bits = np.arange(256).astype(unsigned) << 8 * (unsigned.itemsize - 1)
    x, y = (part.ravel() for part in np.meshgrid(bits, bits))
    wanted = [bit_order(a) < bit_order(b) for a, b in zip(x.view(dtype), y.view(dtype), strict=True)]
    op = ops.Compare("LT", total_order=True)
    run = Kernel(lambda a, b: lower_graph(op, dtype, a, b), [unsigned] * 2, 8)
    assert_same(run(x, y), np.array(wanted))
    ordered = [floating_point.comparison_order(part.view(dtype)) for part in (x, y)]
    assert_same(np.less(*ordered), np.array(wanted))


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
def test_narrow_floats_are_computed_in_float32(dtype: np.dtype[Any]) -> None:
    x = (
        np.arange(256).astype(np.uint8).view(dtype)
        if dtype.itemsize == 1
        else samples(np.float32, 500).astype(dtype)
    )
    unsigned = register_dtype(dtype)
    run = Kernel(lambda value: lower_graph(ops.Tanh(), dtype, value), [unsigned], 8)
    with np.errstate(all="ignore"):
        wanted = np.tanh(x.astype(np.float64)).astype(np.float32).astype(dtype)
    assert_same(run(x.view(unsigned)).view(dtype), wanted, ulp=1 if dtype.itemsize == 2 else 0)


def narrow_codes(dtype: np.dtype[Any]) -> Array:
    """All numbers of a float8, or many of bfloat16, as their bits."""
    if dtype.itemsize == 1:
        return np.arange(256).astype(np.uint8)
    special = np.array([0, 1, 0x7F, 0x80, 0x7F7F, 0x7F80, 0x7FC0, 0x3F80], np.uint16)
    return np.concatenate([special, special | np.uint16(0x8000), np.arange(0, 2**16, 331).astype(np.uint16)])


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
def test_next_after_of_narrow_floats(dtype: np.dtype[Any]) -> None:
    codes, unsigned = narrow_codes(dtype), register_dtype(dtype)
    x, y = (each.reshape(-1) for each in np.meshgrid(codes, codes))
    run = Kernel(lambda x, y: lower_graph(ops.NextAfter(), dtype, x, y), [unsigned] * 2, 8)
    assert_same(run(x, y).view(dtype), floating_point.next_after(x.view(dtype), y.view(dtype)))


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@pytest.mark.parametrize(("exponent", "mantissa"), [(5, 10), (8, 7), (4, 3), (2, 0), (3, 1), (1, 5)])
def test_reduce_precision_of_narrow_floats(dtype: np.dtype[Any], exponent: int, mantissa: int) -> None:
    codes, op = narrow_codes(dtype), ops.ReducePrecision(exponent, mantissa)
    run = Kernel(lambda x: lower_graph(op, dtype, x), [register_dtype(dtype)], 8)
    with np.errstate(all="ignore"):
        wanted = floating_point.reduce_precision(codes.view(dtype), exponent, mantissa)
    assert_same(run(codes).view(dtype), wanted)


def test_what_is_left_to_others() -> None:
    x = Values().argument("x", np.uint16)
    bits = ops.BitcastConvert(np.dtype(np.uint32))
    assert apply_elementwise(bits, [np.dtype(np.uint16)], [x]) is None
    z, order = Values().argument("z", np.complex64), ops.Compare("EQ", total_order=True)
    assert apply_elementwise(order, [z.dtype] * 2, [z, z]) is None


# --- operations that decompose -----------------------------------------------------------------------


#: How far from the NumPy program, which computes the same formulas from other functions: in units of eps
#: where the result is at most 1, else in ULP, since near their zeros both err by as much as their terms.
DECOMPOSED = {
    ops.BesselI1e: (lax.bessel_i1e, np.linspace(-20.37, 90, 2001), 8),
    ops.ErfInv: (lax.erf_inv, np.linspace(-0.9999, 0.9999, 2001), 6),
    ops.Lgamma: (lax.lgamma, np.linspace(-20.37, 90, 2001), 24),
    ops.Digamma: (lax.digamma, np.linspace(-20.37, 90, 2001), 40),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", DECOMPOSED, ids=lambda kind: kind.name)
def test_decomposed_functions(kind: type[Op], dtype: Any) -> None:
    function, arguments, bound = DECOMPOSED[kind]
    x = arguments.astype(dtype)
    got = Kernel(lambda value: lower_graph(kind(), dtype, value), [dtype], 8)(x)
    wanted = np.asarray(function(x))
    error = np.abs(got - wanted) / np.maximum(1, np.abs(wanted)) / np.finfo(dtype).eps
    assert got.dtype == dtype
    assert np.max(error) <= bound
