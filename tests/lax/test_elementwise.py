"""The element-wise and creating functions of `xarr.lax` beside `jax.lax` on the CPU, same arguments."""

from __future__ import annotations

import ast
import cmath
import pickle
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Final

import jax
import numpy as np
import pytest

from tests import compare, elementwise_ops, lax_values as make, ulp_bounds
from tests.compare import assert_same
from tests.elementwise_ops import RECORDS as KNOWN, REGULAR, types_of
from tests.lax_oracle import Call, Record, check_results, is_in_jax, jax_function
from tests.lax_values import (
    BOOLS,
    COMPLEX_UNARY,
    COMPLEXES,
    FLOAT8,
    FLOATS,
    INTS,
    SHAPES,
    SIGNED,
    HostArray,
    dtype_of,
)
from tests.support.checkout import CHECKOUT
from tests.ulp_bounds import ANNEX_G, bound_of, differences
from xarr import lax
from xarr.dtypes import COMPLEX, FLOAT, info
from xarr.ir import ops
from xarr.lax import creation, elementwise
from xarr.runtime.materialisation import to_host

ALL: Final = BOOLS + INTS + FLOATS + COMPLEXES
DType = np.dtype[Any]


def _domain(dtype: DType) -> HostArray:
    return make.complexes(dtype) if dtype in COMPLEX else make.values(dtype)


def _unary(name: str, dtypes: Sequence[str] = FLOATS + COMPLEXES) -> Record:
    return Record(name, tuple(dtypes), lambda dtype: [(_domain(dtype),)])


def _binary(name: str, dtypes: Sequence[str] = INTS + FLOATS + COMPLEXES) -> Record:
    return Record(name, tuple(dtypes), lambda dtype: [make.pairs(dtype)])


def _powers(dtype: DType) -> list[Call]:
    if dtype in COMPLEX:
        return [make.power_pairs(dtype), (make.complexes(dtype), 2)]
    x, y = make.pairs(dtype)
    whole = np.resize(np.arange(-5, 6, dtype=np.int32), x.shape)
    return [(x, y), (x, whole), (x, 3), (x, -1), *[(x, np.array(e, dtype)) for e in (0.5, -0.5, 2, 0)]]


def _integer_powers(dtype: DType) -> list[Call]:
    exponents = (0, 1, 3, 4) if dtype.kind in "iu" else (0, 1, 2, 3, 7, -1, -3)
    return [(_domain(dtype), exponent) for exponent in exponents]


def _triples(dtype: DType) -> tuple[HostArray, HostArray, HostArray]:
    x, y = make.pairs(dtype)
    return x, y, np.roll(x, 5)


def _clamps(dtype: DType) -> list[Call]:
    x, y, z = _triples(dtype)
    return [
        (x, z, y),
        (x[1:2].reshape(()), z, y),
        (x[0], z, x[1]),
        (x[:1].reshape(()), z, y[1:2].reshape(())),
    ]


def _selections(dtype: DType) -> list[Call]:
    x, y, _ = _triples(dtype)
    mask = np.arange(x.size) % 2 == 0
    return [(mask, x, y), (np.array(True), x, y), (np.array(False), x, y), (mask[1], x[1], y[1])]


def _choices(dtype: DType) -> list[Call]:
    x, y, z = _triples(dtype)
    mask, index = np.arange(x.size) % 2 == 0, (np.arange(x.size) % 3).astype(np.int32)
    return [
        (mask, x, y),
        (index, x, y, z),
        (np.array(1, np.int32), x, y, z),
        (np.array(True), x, y),
        (index * 0, x),
    ]


def _conversions(dtype: DType) -> list[Call]:
    x = np.concatenate([make.values(dtype), _near_integer_ends(dtype)])
    targets = (
        ("bool", "int32", "float32")
        if dtype.name in FLOAT8
        else ALL + (FLOAT8 if dtype == np.float32 else ())
    )
    return [(x, dtype_of(name)) for name in targets]


def _near_integer_ends(dtype: DType) -> HostArray:
    if dtype not in FLOAT or dtype.itemsize == 1:
        return np.zeros(0, dtype)
    ends = [
        float(sign * (2**bits + step))
        for bits in (7, 8, 15, 16, 31, 32, 63, 64)
        for sign in (1, -1)
        for step in (-1, 0, 1)
    ]
    return make.cast([*ends, 300.7, -300.7, 0.9, -0.9, 1e10], dtype)


def _bitcasts(dtype: DType) -> list[Call]:
    x, width = make.values(dtype), dtype.itemsize
    if dtype.kind == "b":
        return [(x, dtype_of("bool"))]
    if dtype in COMPLEX:
        return [(x, dtype)]
    rows = x[: x.size // 8 * 8].reshape(-1, 8)
    same = {
        1: ("int8", "uint8", "float8_e5m2"),
        2: ("int16", "float16", "bfloat16"),
        4: ("uint32", "float32"),
        8: ("int64", "float64"),
    }
    wider = [(rows[:, : 2 * step // 2][:, :step], name) for step, name in _wider(width)]
    narrower = [(rows, name) for name in ("uint8", "bfloat16", "float32") if dtype_of(name).itemsize < width]
    return [(a, dtype_of(name)) for a, name in [*[(rows, n) for n in same[width]], *wider, *narrower]]


def _wider(width: int) -> list[tuple[int, str]]:
    names = {2: "float16", 4: "int32", 8: "float64"}
    return [(size // width, name) for size, name in names.items() if size > width]


def _reduce(dtype: DType) -> list[Call]:
    formats = (
        (8, 23),
        (5, 10),
        (8, 7),
        (4, 3),
        (5, 2),
        (2, 1),
        (11, 52),
        (1, 0),
        (3, 0),
        (1, 5),
        (8, 0),
        (2, 30),
    )
    return [(make.values(dtype), *one) for one in formats]


def _fills(dtype: DType) -> list[Call]:
    value = make.fill((1,), dtype, 2)[0]
    return [((2, 3), value), ((), value), ((0, 3), value), ((4,), 1, dtype), ((2,), value, dtype)]


def _likes(dtype: DType) -> list[Call]:
    x = make.fill((2, 3), dtype)
    return [(x, 1), (x, 2.5, dtype_of("float32")), (x, 1, None, (4,)), (make.fill((), dtype), 0)]


def _regular(family: Any, irregular: Sequence[Record]) -> list[Record]:
    """A record of each op of a family that has none yet, with the element types that it accepts."""
    names = {record.name for record in irregular}
    make_record = _unary if family is ops.Unary else _binary
    return [
        make_record(op.lax_name, types_of(op, ALL))
        for op in REGULAR
        if issubclass(op, family) and op.lax_name not in names and is_in_jax(op.lax_name)
    ]


#: Functions that are no single op, or of which jax.lax takes other element types or arguments.
_OF_ONE: Final = (
    *[_unary(name, COMPLEXES) for name in ("imag", "real")],
    _unary("conj", ("float32", "float64", *COMPLEXES)),
    *[_unary(name, INTS + FLOATS + COMPLEXES) for name in ("sign", "square")],
    _unary("reciprocal"),
    Record("round", FLOATS, lambda dtype: [(make.values(dtype), method) for method in lax.RoundingMethod]),
)
_OF_TWO: Final = (
    *[_binary(name) for name in ("add", "mul")],
    *[_binary(name, ALL) for name in ("eq", "ne")],
    *[_binary(name, BOOLS + INTS + FLOATS) for name in ("ge", "gt", "le", "lt")],
    *[_binary(name, FLOATS) for name in ("eq_to", "ge_to", "gt_to", "le_to", "lt_to", "ne_to")],
    Record("pow", FLOATS + COMPLEXES, _powers),
)
RECORDS: Final = (
    *_OF_ONE,
    *_regular(ops.Unary, _OF_ONE),
    *_OF_TWO,
    *_regular(ops.Binary, _OF_TWO),
    Record("integer_pow", INTS + FLOATS + COMPLEXES, _integer_powers),
    Record("clamp", INTS + FLOATS, _clamps),
    Record("select", ALL, _selections),
    Record("select_n", ALL, _choices),
    Record("convert_element_type", ALL + FLOAT8, _conversions),
    Record("bitcast_convert_type", ALL, _bitcasts),
    Record("reduce_precision", FLOATS, _reduce),
    Record("full", ALL + FLOAT8, _fills),
    Record("full_like", ALL + FLOAT8, _likes),
    Record("iota", INTS + FLOATS + COMPLEXES, lambda dtype: [(dtype, size) for size in (0, 1, 5)]),
    Record(
        "broadcasted_iota",
        INTS + FLOATS + COMPLEXES,
        lambda dtype: [
            (dtype, (3, 4), 0),
            (dtype, (3, 4), 1),
            (dtype, (2, 0), 1),
            (dtype, (2, 1, 3, 1, 2), 2),
        ],
    ),
)

#: Functions without a record, and the file whose tests call them: `exp2` is no operation.
EXCUSED: Final = {"exp2": "tests/lax/test_stacking_and_tiling.py"}

_CASES: Final = [
    pytest.param(record, dtype, id=f"{record.name}-{dtype}") for record in RECORDS for dtype in record.dtypes
]


@pytest.mark.parametrize(("record", "dtype"), _CASES)
def test_agrees_with_xla(record: Record, dtype: str) -> None:
    def check(call: Call, result: Any, wanted: HostArray) -> None:
        got = to_host(result)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        with np.errstate(all="ignore"):
            kept = _comparable(record.name, dtype, call, got, wanted)
            assert_same(got[kept], wanted[kept], ulp=bound_of(record.name, dtype), normwise=True)
            _assert_same_zeros(got[kept], wanted[kept])

    helpers = _comparable, _flush, _is_subnormal, _assert_same_zeros
    check_results(record, dtype, check, *helpers, compare, elementwise_ops, ulp_bounds)


def _comparable(name: str, dtype: str, call: Call, got: HostArray, wanted: HostArray) -> HostArray:
    """The elements that are neither stated differences nor lost to XLA's flushing of subnormals to zero."""
    numbers = [np.asarray(x) for x in call if isinstance(x, np.ndarray | np.generic | int)]
    operands = [np.broadcast_to(x, got.shape) for x in numbers if x.shape in ((), got.shape)]
    if name == "integer_pow" and call[1] < 0:
        operands.append(1 / got)  # XLA may flush the power before it inverts it
    kept = np.ones(got.shape, bool)
    for one in differences(name, dtype, got.dtype.name):
        kept &= ~one.where(*operands[:2])
    if name in _MOVES_BITS:
        return kept
    return kept & ~_flush(operands, got, wanted)


#: These look at bits, also XLA's, so subnormal numbers are numbers like any other.
_MOVES_BITS: Final = (
    *(
        "bitcast_convert_type",
        "bitwise_not",
        "complex",
        "conj",
        "full",
        "full_like",
        "imag",
        "neg",
        "real",
        "select",
    ),
    *("select_n", "abs", "eq_to", "ge_to", "gt_to", "le_to", "lt_to", "ne_to", "is_finite"),
)


def _flush(operands: list[HostArray], got: HostArray, wanted: HostArray) -> HostArray:
    """Where XLA reads a subnormal operand as 0, or writes 0 for a subnormal or barely normal result."""
    lost = np.zeros(got.shape, bool)
    for operand in operands:
        lost |= _is_subnormal(operand, 1)
    if got.dtype in COMPLEX:
        small = [_is_subnormal(part, 4) for part in (got.real, got.imag)]
        zero = [part == 0 for part in (wanted.real, wanted.imag)]
        return lost | (small[0] & zero[0]) | (small[1] & zero[1])
    return (
        lost | (_is_subnormal(got, 4) & (wanted == 0) & (np.signbit(got) == np.signbit(wanted)))
        if got.dtype in FLOAT
        else lost
    )


def _is_subnormal(x: HostArray, times: int) -> HostArray:
    """Nonzero below the smallest normal number, `times` over.  Complex numbers: in a part."""
    if x.dtype in COMPLEX:
        return _is_subnormal(x.real, times) | _is_subnormal(x.imag, times)
    if x.dtype not in FLOAT or x.dtype in (np.float16, *map(dtype_of, FLOAT8)):
        return np.zeros(x.shape, bool)
    return (x != 0) & (np.abs(x.astype(np.float64)) < times * float(info(x.dtype).tiny))


def _assert_same_zeros(got: HostArray, wanted: HostArray) -> None:
    if got.dtype in COMPLEX:
        return
    if got.dtype in FLOAT:
        zeros = (got == 0) & (wanted == 0)
        assert_same(np.signbit(got[zeros]), np.signbit(wanted[zeros]))


# --- special values of complex functions ----------------------------------------------------------------

_SPECIAL: Final = [
    Record(name, COMPLEXES, lambda dtype: [(make.special_complexes(dtype),)]) for name in COMPLEX_UNARY
] + [
    Record(name, COMPLEXES, lambda dtype: [make.special_complex_pairs(dtype)])
    for name in ("add", "div", "eq", "max", "min", "mul", "ne", "pow", "sub")
]


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("record", _SPECIAL, ids=lambda record: record.name)
def test_complex_special_values(record: Record, dtype: str) -> None:
    def check(call: Call, result: Any, wanted: HostArray) -> None:
        got = to_host(result)
        with np.errstate(all="ignore"):
            alike = _classes(got) == _classes(wanted)
            stated = np.zeros(got.shape, bool)
            for one in differences(record.name, dtype, got.dtype.name):
                special = one.where(*call)
                assert not np.all(alike[special]), (
                    f"{record.name}: no difference where {one.condition} any more"
                )
                stated |= special
        wrong = ~alike & ~stated
        assert not wrong.any(), _show(record.name, call, got, wanted, wrong)

    check_results(record, dtype, check, _classes, _class, ulp_bounds)


def _show(name: str, call: Call, got: HostArray, wanted: HostArray, where: HostArray) -> str:
    rows = [[*[str(x[i]) for x in call], str(got[i]), str(wanted[i])] for i in np.nonzero(where)[0][:8]]
    return "\n".join([f"{name}: operands, xarr, wanted", *map(str, rows)])


def _classes(x: HostArray) -> HostArray:
    """NaN, ±inf, ±0 or another number, for each part."""
    real, imaginary = (_class(part) for part in (x.real, x.imag))
    return real * 10 + imaginary


def _class(x: HostArray) -> HostArray:
    kinds = [np.isnan(x), np.isinf(x) & (x > 0), np.isinf(x), (x == 0) & np.signbit(x), x == 0]
    return np.select(kinds, range(1, 6), 0)


@pytest.mark.parametrize("name", ANNEX_G)
def test_complex_special_values_are_those_of_c99(name: str) -> None:
    """Python's cmath holds the tables of C99, Annex G; it raises where C99 wants an exception."""
    z = make.special_complexes(dtype_of("complex128"))
    got = to_host(getattr(lax, name)(z))
    reference: Callable[[complex], complex] = getattr(cmath, name)
    for x, value in zip(z, got, strict=True):
        try:
            wanted = np.complex128(reference(complex(x)))
        except ValueError:
            assert not np.isfinite(value), f"{name}({x}) is invalid or infinite, got {value}"
            continue
        if np.isnan(x) or (np.isinf(x.real) and np.isinf(x.imag)):
            # Annex G leaves signs open here, and for some functions whether a part is NaN.
            assert np.isfinite(value) == np.isfinite(wanted), (x, value, wanted)
            continue
        assert _classes(np.array(value)) == _classes(np.array(wanted)), (
            f"{name}({x}): {value}, C99 wants {wanted}"
        )
        if np.isfinite(wanted):
            assert_same(np.array(value), np.array(wanted), ulp=8, normwise=True)


# --- subnormal numbers, which XLA flushes to zero -----------------------------------------------------------

_NAMES_OF_ONE: Final = {record.name for record in (*_OF_ONE, *_regular(ops.Unary, _OF_ONE))}
_SUBNORMAL: Final = [name for name, record in KNOWN.items() if record.keeps_subnormals]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", _SUBNORMAL)
def test_subnormals_are_kept(name: str, dtype: str) -> None:
    """XLA's answer in float64, where nothing of this is subnormal, rounded to the narrow type."""
    narrow = dtype_of(dtype)
    tiny = float(info(narrow).tiny)
    least = float(info(narrow).smallest_subnormal)
    positive = make.cast(
        [least, 2 * least, tiny / 2, tiny / 3, tiny - least, tiny, 3 * tiny, 0.0, 1.0, 0.25], narrow
    )
    x = np.concatenate([positive, -positive])
    pair = [side.ravel() for side in np.meshgrid(x, x)]
    operands = [x] if name in _NAMES_OF_ONE else pair
    with np.errstate(all="ignore"):
        wide = np.asarray(jax_function(name)(*[operand.astype(np.float64) for operand in operands]))
        wanted = wide if wide.dtype == bool else wide.astype(narrow)
        got = to_host(getattr(lax, name)(*operands))
        assert_same(got, wanted, ulp=bound_of(name, dtype))


def test_xla_flushes_subnormals_to_zero() -> None:
    """The reason why the tests leave them out elsewhere.  If this fails, they need not any more."""
    assert np.asarray(jax.lax.mul(np.float32(1e-40), np.float32(1))) == 0
    assert to_host(lax.mul(np.float32(1e-40), np.float32(1))) == np.float32(1e-40)


# --- conversions that round ---------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_conversion_rounds_once(target: str) -> None:
    """XLA goes by way of float32, which sends 1 + ½ULP + a little to the tie 1 + ½ULP and that to even."""
    dtype = dtype_of(target)
    eps = float(info(dtype).eps)
    above = np.array([1 + eps / 2 + 2.0**-40, -1 - eps / 2 - 2.0**-40])
    got, theirs = to_host(lax.convert_element_type(above, dtype)), jax.lax.convert_element_type(above, dtype)
    assert_same(got, make.cast([1 + eps, -1 - eps], dtype))
    assert_same(np.asarray(theirs), make.cast([1, -1], dtype))


# --- shapes, and what only xarr accepts ---------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int8"])
def test_shapes(shape: tuple[int, ...], dtype: str) -> None:
    x, y = (make.fill(shape, dtype_of(dtype), offset) for offset in (1, 4))
    calls = [
        ("add", x, y),
        ("neg", x),
        ("eq", x, y),
        ("select", x == y, x, y),
        ("square", x),
        ("integer_pow", x, 3),
    ]
    calls += [("convert_element_type", x, np.float64 if dtype != "complex64" else np.complex128)]
    for name, *arguments in calls:
        wanted = np.asarray(jax_function(name)(*arguments))
        assert_same(getattr(lax, name)(*arguments), wanted, ulp=bound_of(name, dtype), normwise=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_real_and_imag_of_reals(dtype: str) -> None:
    """StableHLO defines them, jax.lax refuses."""
    x = make.floats(dtype_of(dtype))
    assert_same(lax.real(x), x)
    assert_same(lax.imag(x), np.zeros_like(x))


def test_arithmetic_of_bools() -> None:
    """StableHLO defines it, jax.lax refuses."""
    x, y = make.pairs(dtype_of("bool"))
    assert_same(lax.add(x, y), x | y)
    assert_same(lax.mul(x, y), x & y)


@pytest.mark.parametrize("dtype", INTS)
def test_power_of_integers(dtype: str) -> None:
    """StableHLO defines it, jax.lax refuses.  Wraps as repeated multiplication does."""
    x = make.ints(dtype_of(dtype))
    assert_same(lax.pow(x, np.full_like(x, 3)), np.asarray(jax.lax.integer_pow(x, 3)))


@pytest.mark.parametrize("dtype", SIGNED)
def test_power_with_negative_integer_exponent(dtype: str) -> None:
    x = np.array([1, -1, -1, 0, 2, -3], dtype)
    y = np.array([-3, -3, -2, -1, -1, -2], dtype)
    assert_same(lax.pow(x, y), np.array([1, -1, 1, 0, 0, 0], dtype))


# --- completeness -------------------------------------------------------------------------------------------


def functions_of(*modules: Any) -> set[str]:
    """The public functions that the modules define and xarr.lax exports."""
    exported = {name for name in vars(lax) if not name.startswith("_")}
    names = {
        name for module in modules for name, value in vars(module).items() if _is_defined_in(value, module)
    }
    return {name for name in names & exported}


def _is_defined_in(value: Any, module: Any) -> bool:
    return (
        callable(value)
        and not isinstance(value, type)
        and getattr(value, "__module__", None) == module.__name__
    )


def missing(names: set[str], records: Sequence[Record], excused: Mapping[str, str]) -> set[str]:
    """The functions that have neither a record nor an excuse."""
    return names - {record.name for record in records} - set(excused)


def test_functions_are_found_by_their_module_and_name() -> None:
    """So that pickle finds them, in another process too."""
    functions = [value for name, value in vars(lax).items() if isinstance(value, FunctionType)]
    assert len(functions) > 150
    assert [value.__name__ for value in functions if pickle.loads(pickle.dumps(value)) is not value] == []


def test_every_function_has_a_record() -> None:
    functions = functions_of(elementwise, creation)
    assert len(functions) > 70
    assert missing(functions, RECORDS, EXCUSED) == set()


def test_a_function_without_record_is_found() -> None:
    assert missing({"add", "frobnicate"}, RECORDS, EXCUSED) == {"frobnicate"}


def find_untested(excused: Mapping[str, str]) -> list[str]:
    """The excused functions that the named file does not call as `lax.name(…)`."""
    return [
        name for name, file in excused.items() if name not in find_calls((CHECKOUT / file).read_text("utf-8"))
    ]


def find_calls(source: str) -> set[str]:
    """The functions of `lax` that a source calls."""
    functions = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return {
        each.attr
        for each in functions
        if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "lax"
    }


def test_the_files_of_excused_functions_call_them() -> None:
    assert find_untested(EXCUSED) == []


def test_an_excuse_without_a_call_is_found() -> None:
    assert find_untested({"exp2": "tests/lax/test_movement.py"}) == ["exp2"]
    assert find_calls("lax.exp2\n# lax.sin(x)\njax.lax.cos(x)\ntan(x)\nlax.exp(lax.log(x))") == {"exp", "log"}
