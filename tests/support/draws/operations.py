"""Random calls of the operations of XLA's page that no other module draws, one function for each."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import numpy as np

from tests.elementwise_ops import REGULAR, record_of, types_of
from tests.lax_values import FLOATS, cast, dtype_of
from tests.support.checkout import CHECKOUT
from tests.support.fuzz import Draw, Drawn, HostArray
from tests.ulp_bounds import bound_of
from xarr.ir.types import Ints

REAL: Final = (*FLOATS, "int8", "int32", "int64", "uint8", "uint16", "uint64")
WHOLE: Final = ("int8", "int32", "int64", "uint8", "uint16", "uint64")
SIGNED: Final = (*FLOATS, "int8", "int32", "int64")
COMPLEX: Final = ("complex64", "complex128")
ALL: Final = (*REAL, *COMPLEX, "bool")


def shape_of(random: Random, least: int = 0, rank: int | None = None) -> Ints:
    count = random.randint(0, 4) if rank is None else rank
    return tuple(random.choice([least, 1, 2, 3, 4, 5]) for _ in range(count))


def values(random: Random, shape: Ints, dtype: str, positive: bool = False) -> HostArray:
    """Ordinary numbers, none of them 0; of whole types both signs where there are."""
    draw = np.random.default_rng(random.getrandbits(32))
    if dtype == "bool":
        return draw.random(shape) < 0.5
    if dtype in WHOLE:
        numbers = draw.integers(1, 20, shape)
        return (numbers if positive or dtype[0] == "u" else numbers * draw.choice([-1, 1], shape)).astype(
            dtype
        )
    real = np.abs(draw.normal(size=shape)) + 0.1
    if not positive:
        real = real * draw.choice([-1, 1], shape)
    if dtype in COMPLEX:
        real = real + 1j * (np.abs(draw.normal(size=shape)) + 0.1)
    return cast(real, dtype_of(dtype))


def quarters(random: Random, shape: Ints, dtype: str) -> HostArray:
    """Numbers that every type of 16 bits or more holds, whole types without the fraction."""
    draw = np.random.default_rng(random.getrandbits(32))
    least = 0 if dtype[0] == "u" else -400
    return cast(draw.integers(least, 401, shape) / 4, dtype_of(dtype))


# --- element by element ------------------------------------------------------------------------------


def unary(name: str, dtypes: tuple[str, ...], positive: bool = False) -> Draw:
    def draw(random: Random) -> Drawn:
        dtype = random.choice(dtypes)
        x = values(random, shape_of(random), dtype, positive)
        return Drawn(lambda module, a: getattr(module, name)(*a), (x,), bound_of(name, dtype))

    return draw


def rounding(method: str) -> Draw:
    def draw(random: Random) -> Drawn:
        x = quarters(random, shape_of(random), random.choice(FLOATS))
        return Drawn(lambda module, a: module.round(*a, module.RoundingMethod[method]), (x,))

    return draw


def binary(name: str, dtypes: tuple[str, ...]) -> Draw:
    def draw(random: Random) -> Drawn:
        dtype, shape = random.choice(dtypes), shape_of(random)
        x, y = (values(random, shape, dtype) for _ in range(2))
        return Drawn(lambda module, a: getattr(module, name)(*a), (x, y), bound_of(name, dtype))

    return draw


def clamp(random: Random) -> Drawn:
    dtype, shape = random.choice(REAL), shape_of(random)
    bounds = [() if random.random() < 0.5 else shape] * 2
    low, high = (values(random, bound, dtype) for bound in bounds)
    return Drawn(lambda module, a: module.clamp(*a), (low, values(random, shape, dtype), high))


def select(random: Random) -> Drawn:
    dtype, shape = random.choice(ALL), shape_of(random)
    pred = values(random, random.choice([(), shape]), "bool")
    operands = (pred, values(random, shape, dtype), values(random, shape, dtype))
    return Drawn(lambda module, a: module.select(*a), operands)


def convert(random: Random) -> Drawn:
    old, new = random.choice(REAL), random.choice(ALL)
    x = quarters(random, shape_of(random), old)
    return Drawn(lambda module, a: module.convert_element_type(*a, dtype_of(new)), (x,))


_WIDTHS: Final = {8: ("int8", "uint8"), 16: ("float16", "bfloat16", "uint16"), 32: ("float32", "int32")} | {
    64: ("float64", "uint64", "int64")
}


def bitcast(random: Random) -> Drawn:
    old, new = random.choice(tuple(_WIDTHS)), random.choice(tuple(_WIDTHS))
    shape = shape_of(random) if old >= new else (*shape_of(random), new // old)
    x = values(random, shape, random.choice(_WIDTHS[old]))
    into = random.choice([name for name in _WIDTHS[new] if new == old or "float" not in name])
    return Drawn(lambda module, a: module.bitcast_convert_type(*a, dtype_of(into)), (x,))


def reduce_precision(random: Random) -> Drawn:
    x = values(random, shape_of(random), random.choice(("float16", "float32", "float64")))
    bits = random.randint(2, 8), random.randint(1, 20)
    return Drawn(lambda module, a: module.reduce_precision(*a, *bits), (x,))


# --- creation and movement ---------------------------------------------------------------------------


def iota(random: Random) -> Drawn:
    dtype = dtype_of(random.choice((*REAL, *COMPLEX)))
    if random.random() < 0.3:
        size = random.randint(0, 9)
        return Drawn(lambda module, a: module.iota(dtype, size), ())
    shape = shape_of(random, rank=random.randint(1, 4))
    dimension = random.randrange(len(shape))
    return Drawn(lambda module, a: module.broadcasted_iota(dtype, shape, dimension), ())


def broadcast(random: Random) -> Drawn:
    x = values(random, shape_of(random, rank=random.randint(0, 2)), random.choice(ALL))
    sizes = shape_of(random, rank=random.randint(0, 2))
    return Drawn(lambda module, a: module.broadcast(*a, sizes), (x,))


def collapse(random: Random) -> Drawn:
    x = values(random, shape_of(random, rank=random.randint(1, 4)), random.choice(ALL))
    start = random.randrange(x.ndim)
    stop = random.randint(start + 1, x.ndim)
    return Drawn(lambda module, a: module.collapse(*a, start, stop), (x,))


def concatenate(random: Random) -> Drawn:
    shape, dtype = shape_of(random, rank=random.randint(1, 4)), random.choice(ALL)
    dim = random.randrange(len(shape))
    sizes = [random.randint(0, 4) for _ in range(random.randint(1, 4))]
    parts = tuple(values(random, (*shape[:dim], n, *shape[dim + 1 :]), dtype) for n in sizes)
    return Drawn(lambda module, a: module.concatenate(a, dim), parts)


def reshape(random: Random) -> Drawn:
    factors = [random.choice([1, 2, 3, 2]) for _ in range(random.randint(0, 4))]
    x = values(random, tuple(factors), random.choice(ALL))
    random.shuffle(factors)
    cut = random.randint(0, len(factors))
    sizes = (*factors[:cut], int(np.prod(factors[cut:], dtype=int)))
    return Drawn(lambda module, a: module.reshape(*a, sizes), (x,))


def reverse(random: Random) -> Drawn:
    x = values(random, shape_of(random), random.choice(ALL))
    dims = random.sample(range(x.ndim), random.randint(0, x.ndim))
    return Drawn(lambda module, a: module.rev(*a, dims), (x,))


def transpose(random: Random) -> Drawn:
    x = values(random, shape_of(random), random.choice(ALL))
    order = random.sample(range(x.ndim), x.ndim)
    return Drawn(lambda module, a: module.transpose(*a, order), (x,))


# --- control -----------------------------------------------------------------------------------------

#: Functions of two arrays of one shape, written with lax.
_FUNCTIONS: Final = (
    lambda module, x, y: (x, y),
    lambda module, x, y: (y, x),
    lambda module, x, y: (module.add(x, y), module.sub(x, y)),
    lambda module, x, y: (module.neg(module.mul(x, y)), module.max(x, y)),
    lambda module, x, y: (module.select(module.lt(x, y), x, y), module.min(y, x)),
)


def _pair(random: Random) -> tuple[HostArray, HostArray]:
    dtype, shape = random.choice(("float32", "float64", "int32", "uint8")), shape_of(random)
    return values(random, shape, dtype), values(random, shape, dtype)


def conditional(random: Random) -> Drawn:
    first, second = random.choice(_FUNCTIONS), random.choice(_FUNCTIONS)
    pred = np.asarray(random.random() < 0.5)

    def call(module: Any, a: tuple[Any, ...]) -> Any:
        return module.cond(a[0], lambda x, y: first(module, x, y), lambda x, y: second(module, x, y), *a[1:])

    return Drawn(call, (pred, *_pair(random)))


def switch(random: Random) -> Drawn:
    chosen = [random.choice(_FUNCTIONS) for _ in range(random.randint(1, 4))]
    index = np.asarray(random.randint(-3, 7), "int32")

    def call(module: Any, a: tuple[Any, ...]) -> Any:
        return module.switch(a[0], [lambda x, y, f=f: f(module, x, y) for f in chosen], *a[1:])

    return Drawn(call, (index, *_pair(random)))


def loop(random: Random) -> Drawn:
    step, count = random.choice(_FUNCTIONS[:3]), np.asarray(random.randint(0, 5), "int32")

    def call(module: Any, a: tuple[Any, ...]) -> Any:
        def body(state: Any) -> Any:
            return module.add(state[0], np.int32(1)), *step(module, *state[1:])

        return module.while_loop(lambda state: module.lt(state[0], a[0]), body, (np.int32(0), *a[1:]))

    return Drawn(call, (count, *_pair(random)))


def barrier(random: Random) -> Drawn:
    return Drawn(lambda module, a: module.optimization_barrier(a), _pair(random))


# --- what jax.lax does not have: XLA runs what xarr prints -------------------------------------------------


def call(random: Random) -> Drawn:
    chosen = random.choice(_FUNCTIONS)
    return Drawn(lambda lax, a: lax.call(lambda x, y: chosen(lax, x, y), *a), _pair(random))


def map_elements(random: Random) -> Drawn:
    chosen = random.choice(_FUNCTIONS[2:])
    return Drawn(lambda lax, a: lax.map_elements(lambda x, y: chosen(lax, x, y)[0], *a), _pair(random))


def tuples(random: Random) -> Drawn:
    at = random.randrange(2)
    return Drawn(lambda lax, a: lax.get_tuple_element(lax.tuple(*a), at), _pair(random))


def bit_generator(random: Random) -> Drawn:
    algorithm, length = random.choice(
        [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2), ("DEFAULT", 3)]
    )
    state = np.array([random.getrandbits(64) for _ in range(length)], np.uint64)
    shape, dtype = shape_of(random), random.choice(("uint8", "uint16", "uint32", "uint64"))
    return Drawn(lambda lax, a: lax.rng_bit_generator(a[0], shape, dtype, algorithm), (state,))


def dynamic_size(random: Random) -> Drawn:
    """An array cut to a live size, an operation that honours it, and the size of the result."""
    rank = random.randint(1, 3)
    x = quarters(
        random, tuple(random.randint(1, 5) for _ in range(rank)), random.choice(("float32", "int32"))
    )
    dim = random.randrange(rank)
    size = np.asarray(random.randint(0, x.shape[dim]), "int32")
    axes = tuple(sorted(random.sample(range(rank), random.randint(1, rank))))
    kind = random.choice(
        ("sum", "max", "transposed", "product", "concatenation", "comparison", "dot", "count")
    )
    everything = tuple(range(rank))

    def function(lax: Any, a: tuple[Any, ...]) -> Any:
        cut = lax.set_dimension_size(a[0], a[1], dim)
        if kind == "count":
            return lax.get_dimension_size(cut, dim)
        if kind == "max":
            return lax.reduce_max(lax.neg(cut), axes)
        if kind == "transposed":
            return lax.reduce_sum(lax.transpose(cut, tuple(reversed(everything))), axes)
        if kind == "product":
            return lax.reduce_sum(lax.mul(cut, cut), axes)
        if kind == "concatenation":
            return lax.reduce_sum(lax.concatenate([cut, a[0]], dim), everything)
        if kind == "comparison":
            return lax.reduce_sum(lax.convert_element_type(lax.gt(cut, lax.neg(cut)), np.int32), axes)
        if kind == "dot":
            return lax.dot_general(cut, cut, ((everything, everything), ((), ())))
        return lax.reduce_sum(cut, axes)

    return Drawn(function, (x, size), is_dynamic=True)


NUMBERS: Final = (*REAL, *COMPLEX)


def regular() -> dict[str, Draw]:
    """A draw for each operation of the page that is an op of one operand or two, of what the op accepts."""
    page = CHECKOUT / "docs" / "operations.tsv"
    rows = [line.split("\t") for line in page.read_text(encoding="utf-8").splitlines()[1:]]
    known = {op.name: op for op in REGULAR}
    draws: dict[str, Draw] = {}
    for operation, _, _, name, *_ in rows:
        if name in known:
            op = known[name]
            types = types_of(op, ALL)
            if op.arity == 1:
                draws[operation] = unary(op.lax_name, types, record_of(op).positive)
            else:
                draws[operation] = binary(op.lax_name, types)
    return draws


#: By the names of the page; the functions are those of jax.lax too.
WITH_JAX: Final[dict[str, Draw]] = {
    **regular(),
    "BitcastConvertType": bitcast,
    "Broadcast": broadcast,
    "Clamp": clamp,
    "Collapse": collapse,
    "Concatenate": concatenate,
    "Conditional(pred)": conditional,
    "Conditional(branch_index)": switch,
    "ConvertElementType": convert,
    "Add": binary("add", NUMBERS),
    "Mul": binary("mul", NUMBERS),
    "Max": binary("max", REAL),
    "Min": binary("min", REAL),
    "Eq": binary("eq", ALL),
    "Ne": binary("ne", ALL),
    "Ge": binary("ge", REAL),
    "Gt": binary("gt", REAL),
    "Le": binary("le", REAL),
    "Lt": binary("lt", REAL),
    "EqTotalOrder": binary("eq_to", FLOATS),
    "NeTotalOrder": binary("ne_to", FLOATS),
    "GeTotalOrder": binary("ge_to", FLOATS),
    "GtTotalOrder": binary("gt_to", FLOATS),
    "LeTotalOrder": binary("le_to", FLOATS),
    "LtTotalOrder": binary("lt_to", FLOATS),
    "Imag": unary("imag", COMPLEX),
    "Real": unary("real", COMPLEX),
    "Sign": unary("sign", NUMBERS),
    "Round": rounding("AWAY_FROM_ZERO"),
    "RoundNearestEven": rounding("TO_NEAREST_EVEN"),
    "Iota": iota,
    "OptimizationBarrier": barrier,
    "ReducePrecision": reduce_precision,
    "Reshape": reshape,
    "Rev": reverse,
    "Select": select,
    "Transpose": transpose,
    "While": loop,
}

#: XLA runs what xarr prints of these.
WITH_XLA: Final[dict[str, Draw]] = {
    "Call": call,
    "GetDimensionSize": dynamic_size,
    "GetTupleElement": tuples,
    "Map": map_elements,
    "RngBitGenerator": bit_generator,
    "SetDimensionSize": dynamic_size,
    "Tuple": tuples,
}


def changes(x: HostArray) -> dict[str, Callable[[], HostArray]]:
    """Arrays of another shape or element type, with which a call may still be right."""
    return {
        "doubled": lambda: np.concatenate([x, x, x], -1) if x.ndim and x.shape[-1] > 1 else x,
        "deeper": lambda: np.stack([x, x]),
        "complex": lambda: np.ones(x.shape, np.complex64),
        "float": lambda: np.ones(x.shape, np.float32),
        "int": lambda: np.ones(x.shape, np.int16),
        "bool": lambda: np.ones(x.shape, np.bool_),
    }
