"""Rules for expressions whose parts have the shape of the result, or broadcast to it, and for reductions."""

from __future__ import annotations

import re
from typing import Final

from tests.support.source_programs.drawer import (
    BOOL,
    DTYPES,
    FLOATS,
    SIGNED,
    UNSIGNED,
    Drawer,
    Rule,
    is_small,
    kind_of,
    literal,
)
from tests.support.source_programs.text import Expr, Type

#: Of numbers of one type: NumPy's spelling, whose parts may broadcast, and that of lax, whose parts may not.
_OF_ALL: Final = ("({0} + {1})", "({0} * {1})", "lax.add({0}, {1})", "lax.mul({0}, {1})")
_OF_REALS: Final = (
    *("({0} - {1})", "({0} - {1})", "xp.maximum({0}, {1})", "xp.minimum({0}, {1})", "lax.sub({0}, {1})"),
    *("lax.max({0}, {1})", "lax.min({0}, {1})", "({0} + 1)", "(2 * {0})", "xp.clip({0}, 1, 5)", "({0} ** 2)"),
    *("{0}.clip(0, 3)", "lax.clamp({0}, {1}, {2})", "({0} - 1)", "xp.clip({0}, {1}, {2})", "({0} - 0)"),
    *("xp.square({0})", "({0} % {1})", "lax.rem({0}, {1})", "xp.fmod({0}, {1})", "({0} // {1})"),
)
_OF_WHOLE: Final = (
    *("({0} & {1})", "({0} | {1})", "({0} ^ {1})", "(~{0})", "({0} << ({1} & 7))", "({0} >> ({1} & 7))"),
    *("lax.div({0}, {1})", "lax.shift_left({0}, {1})", "lax.shift_right_logical({0}, {1})", "({0} % 7)"),
    *("lax.shift_right_arithmetic({0}, {1})", "lax.population_count({0})", "lax.clz({0})", "({0} // 3)"),
    *("({0} % 4)", "xp.gcd({0}, {1})", "xp.left_shift({0}, 2)", "xp.power({0}, {1} & 3)"),
)
_OF_SIGNED: Final = ("xp.abs({0})", "(-{0})", "xp.sign({0})", "lax.neg({0})", "lax.abs({0})", "lax.sign({0})")
_OF_FLOATS: Final = (
    *("({0} / {1})", "lax.div({0}, {1})", "xp.sqrt({0})", "xp.floor({0})", "xp.ceil({0})", "xp.rint({0})"),
    *(
        "xp.trunc({0})",
        "xp.copysign({0}, xp.nan_to_num({1}))",
        "xp.fmax({0}, {1})",
        "xp.fmin({0}, {1})",
        "({0} + 0.0)",
    ),
    *("({0} - 0.0)", "({0} * 0.5)", "lax.round({0})", "xp.nan_to_num({0})", "({0} + -0.0)", "({0} * 1.0)"),
    *("xp.rint(xp.sin({0}) * 8)", "xp.rint(xp.tanh({0}) * 8)", "xp.rint(xp.exp(-xp.abs({0})) * 8)"),
    *("lax.integer_pow({0}, 2)", "xp.where(xp.isnan({0}), 0, {0})", "xp.reciprocal({0})"),
)
_OF_BOOLS: Final = (
    *("({0} & {1})", "({0} | {1})", "({0} ^ {1})", "(~{0})", "xp.logical_and({0}, {1})", "({0} != {1})"),
    *("lax.bitwise_and({0}, {1})", "lax.bitwise_or({0}, {1})", "lax.bitwise_not({0})", "({0} <= {1})"),
)
_OF_COMPLEX: Final = (
    *("({0} - {1})", "(-{0})", "xp.conj({0})", "({0} * 1j)", "({0} + 1)", "(xp.real({0}) + {1})"),
    *("lax.complex(xp.imag({0}), xp.real({1}))", "xp.square({0})"),
)
TEMPLATES: Final = {
    "b": _OF_BOOLS,
    "i": (*_OF_ALL, *_OF_REALS, *_OF_WHOLE, *_OF_SIGNED),
    "u": (*_OF_ALL, *_OF_REALS, *_OF_WHOLE),
    "f": (*_OF_ALL, *_OF_REALS, *_OF_FLOATS, *_OF_SIGNED),
    "c": (*_OF_ALL, *_OF_COMPLEX),
}


def apply(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """An element-wise function; where the spelling is NumPy's, one of two operands may have to be broadcast."""
    template = d.random.choice(TEMPLATES[kind_of(wanted.dtype)])
    count = len(set(re.findall(r"\{(\d)\}", template)))
    shapes = [wanted.shape] * count
    if count == 2 and "lax" not in template and d.chance(0.3):
        shapes[d.random.randrange(2)] = less(d, wanted.shape)
    return Expr(template, wanted, tuple(d.expr(Type(wanted.dtype, shape), depth) for shape in shapes))


def less(d: Drawer, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another."""
    first = d.random.randint(0, len(shape))
    return tuple(size if d.chance(0.7) else 1 for size in shape[first:])


def convert(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    others = [each.dtype for each in d.scope.arrays.values() if each.shape == wanted.shape] or DTYPES
    dtype = d.random.choice(list(others))
    return (
        None if dtype == wanted.dtype else d.convert(d.expr(Type(dtype, wanted.shape), depth), wanted.dtype)
    )


def compare(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    dtype = d.random.choice([each.dtype for each in d.scope.arrays.values()])
    x, y = (d.expr(Type(dtype, wanted.shape), depth) for _ in range(2))
    relations = ("==", "!=") if kind_of(dtype) == "c" else ("<", "<=", "==", "!=", ">=", ">")
    if kind_of(dtype) == "f" and d.chance(0.3):
        # The sign of a NaN is nobody's promise.
        tests = ("isnan({0})", "isfinite({0})", "signbit(xp.nan_to_num({0}))", "isinf({0})")
        return Expr(f"xp.{d.random.choice(tests)}", wanted, (x,))
    if d.chance(0.2) and kind_of(dtype) != "b":
        return Expr(f"({{0}} {d.random.choice(relations)} 1)", wanted, (x,))
    if d.chance(0.2):
        return Expr(f"lax.{d.random.choice(('eq', 'ne'))}({{0}}, {{1}})", wanted, (x, y))
    return Expr(f"({{0}} {d.random.choice(relations)} {{1}})", wanted, (x, y))


def positions(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    if not wanted.shape:
        return None
    made = d.mask(wanted.shape, depth)
    return made if made.type == wanted else Expr(f"xp.broadcast_to({{0}}, {wanted.shape})", wanted, (made,))


def where(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    mask, x, y = d.mask(wanted.shape, depth), d.expr(wanted, depth), d.expr(wanted, depth)
    if d.chance(0.3):
        number = d.number(wanted.dtype)
        return Expr(
            d.random.choice((f"xp.where({{0}}, {number}, {{1}})", f"xp.where({{0}}, {{1}}, {number})")),
            wanted,
            (mask, x),
        )
    if mask.type.shape == wanted.shape and d.chance(0.3):
        return Expr("lax.select({0}, {1}, {2})", wanted, (mask, x, y))
    return Expr("xp.where({0}, {1}, {2})", wanted, (mask, x, y))


def add_where(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """Arithmetic of what a condition selects, which changes nothing elsewhere, or only zeros and NaN."""
    if kind_of(wanted.dtype) == "b":
        return None
    mask, x, y = d.mask(wanted.shape, depth), d.expr(wanted, depth), d.expr(wanted, depth)
    zero = d.random.choice(("0.0", "-0.0", "0")) if kind_of(wanted.dtype) == "f" else "0"
    template = d.random.choice(
        (
            f"({{1}} + xp.where({{0}}, {{2}}, {zero}))",
            f"({{1}} - xp.where({{0}}, {{2}}, {zero}))",
            "({1} + {0} * {2})",
            "({1} * {0})",
            "({1} - {2} * {0})",
            "({1} * (~{0}) + {2} * {0})",
            "({1} * xp.where({0}, {2}, 1))",
        )
    )
    return Expr(template, wanted, (mask, x, y))


# --- reductions -------------------------------------------------------------------------------------


def reduce(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """A reduction along one dimension, or all, perhaps of what a condition of the position selects."""
    axis = d.random.randint(0, len(wanted.shape))
    keeps = axis < len(wanted.shape) and wanted.shape[axis] == 1 and d.chance(0.7)
    size = d.random.choice(d.sizes)
    after = wanted.shape[axis + 1 :] if keeps else wanted.shape[axis:]
    operand = Type(wanted.dtype, (*wanted.shape[:axis], size, *after))
    if not is_small(operand.shape) or len(operand.shape) > 3:
        return None
    part = d.expr(operand, depth)
    options = f"axis={axis}" + (", keepdims=True" if keeps else "")
    return _reduction(d, part, wanted, size, options, axis)


def _reduction(d: Drawer, part: Expr, wanted: Type, size: int, options: str, axis: int) -> Expr | None:
    kind, shape = kind_of(wanted.dtype), part.type.shape
    if kind == "b":
        return Expr(f"xp.{d.random.choice(('any', 'all'))}({{0}}, {options})", wanted, (part,))
    name = d.random.choice(("sum", "sum", "sum", "max", "min", "prod") if kind != "c" else ("sum",))
    if name in ("max", "min") and size == 0:
        return None
    chosen = d.small(part, size) if name == "sum" else d.small(part, 1) if name == "prod" else part
    if chosen is None:
        return None
    if name == "prod" and kind == "f":
        chosen = Expr("xp.sign({0})", part.type, (chosen,))
    if d.chance(0.5):
        mask = d.position_mask(shape)
        rest = {"sum": "0", "prod": "1"}.get(name) or d.number(wanted.dtype)
        chosen = Expr(f"xp.where({{0}}, {{1}}, {rest})", part.type, (mask, chosen))
    if name in ("sum", "prod") and "keepdims" not in options and d.chance(0.3):
        # Of narrow integers, too, without a wider type.
        return Expr(f"lax.reduce_{name}({{0}}, ({axis},))", wanted, (chosen,))
    if name in ("sum", "prod") and kind in "iu":
        options += f", dtype=xp.{wanted.dtype}"
    text = f"{{0}}.{name}({options})" if d.chance(0.4) else f"xp.{name}({{0}}, {options})"
    return Expr(f"({text} + 0)" if kind == "f" else text, wanted, (chosen,))


def reduce_by_function(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """By a computation of the user, which is associative."""
    if kind_of(wanted.dtype) in "bc" or len(wanted.shape) > 1:
        return None
    axis = d.random.randint(0, len(wanted.shape))
    shape = (*wanted.shape[:axis], d.random.choice(d.sizes), *wanted.shape[axis:])
    functions = ["lax.select(a < b, b, a)", "lax.select(lax.ge(b, a), a, b)"]
    if kind_of(wanted.dtype) in "iu":
        functions += ["a * b + a + b", "(a & b) | (a & 5) | (b & 5)"]
    part = d.expr(Type(wanted.dtype, shape), depth)
    if kind_of(wanted.dtype) == "f":
        part = Expr("(xp.nan_to_num({0}) + 0)", part.type, (part,))
    function, first = (
        d.random.choice(functions),
        literal(wanted.dtype, d.number(wanted.dtype).replace("-0.0", "0.0")),
    )
    return Expr(f"lax.reduce({{0}}, {first}, lambda a, b: {function}, ({axis},))", wanted, (part,))


def find(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """The position of an extremum, or how many elements are wanted."""
    if kind_of(wanted.dtype) not in "iu" or len(wanted.shape) > 1:
        return None
    axis = d.random.randint(0, len(wanted.shape))
    size = d.random.choice([size for size in d.sizes if size] or [1])
    shape = (*wanted.shape[:axis], size, *wanted.shape[axis:])
    dtype = d.random.choice((*SIGNED, *UNSIGNED, *FLOATS, BOOL))
    part = d.expr(Type(dtype, shape), depth)
    name = d.random.choice(("argmax", "argmin", "count_nonzero"))
    made = Expr(f"xp.{name}({{0}}, axis={axis})", Type("int64", wanted.shape), (part,))
    return d.convert(made, wanted.dtype)


ELEMENTWISE: Final[tuple[Rule, ...]] = (
    *(apply, apply, apply, apply, apply, where, where, convert, reduce, reduce, reduce_by_function, find),
)
#: Of masks, and of numbers that are no bools.
MASKS: Final[tuple[Rule, ...]] = (compare, compare, compare, positions, positions)
NUMBERS: Final[tuple[Rule, ...]] = (add_where, add_where)
