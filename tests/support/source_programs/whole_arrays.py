"""Rules for expressions that move, read, update, order and multiply elements."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from tests.support.source_programs.drawer import (
    FLOATS,
    SIGNED,
    Drawer,
    Rule,
    is_small,
    kind_of,
    literal,
)
from tests.support.source_programs.elementwise import less
from tests.support.source_programs.text import Expr, Type

Shape = tuple[int, ...]


class Index(NamedTuple):
    """The text between brackets, with parts from `{first}` on, and the shape of what it selects."""

    text: str
    parts: tuple[Expr, ...]
    shape: Shape


def draw_index(d: Drawer, shape: Shape, depth: int, first: int, is_wild: bool = False) -> Index:
    """An index of numbers, steps, and arrays of numbers."""
    words: list[str] = []
    parts: list[Expr] = []
    sample: list[Any] = []
    length = d.random.choice([size for size in d.sizes if 0 < size <= 64] or [2])
    dims = d.random.randint(1, len(shape))
    for size in shape[:dims]:
        kind = d.random.choice(("number", "number", "all", "slice", "slice", "array"))
        if kind == "number" and size:
            _append(words, parts, d.whole_number(size), first)
            sample.append(0)
        elif kind == "array" and size:
            _append(words, parts, d.whole_numbers(length, size, depth, is_wild), first)
            sample.append(np.zeros(length, int))
        else:
            text = _slice(d, size) if kind == "slice" else ":"
            words.append(text)
            sample.append(_slice_of(text))
    if dims < len(shape) and d.chance(0.15):
        words.append("...")
    selected = np.empty(shape, np.bool_)[tuple(sample)].shape
    return Index(", ".join(words), tuple(parts), selected)


def _append(words: list[str], parts: list[Expr], part: Expr, first: int) -> None:
    words.append(f"{{{first + len(parts)}}}")
    parts.append(part)


def _slice(d: Drawer, size: int) -> str:
    start = d.random.choice(("", "", "1", "2", "-2", str(size // 2)))
    stop = d.random.choice(("", "", "-1", str(size // 2 + 1), str(size)))
    step = d.random.choice(("", "", "", ":2", ":3", ":-1", ":-2"))
    return f"{start}:{stop}{step}"


def _slice_of(text: str) -> slice:
    return slice(*(int(word) if word else None for word in text.split(":")))


# --- movement ---------------------------------------------------------------------------------------


def move(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    if not wanted.shape:
        return None
    shape, axis = wanted.shape, d.random.randrange(len(wanted.shape))
    order = d.random.sample(range(len(shape)), len(shape))
    forms: list[tuple[str, Shape]] = [
        (f"xp.flip({{0}}, axis={axis})", shape),
        (f"lax.rev({{0}}, ({axis},))", shape),
        (f"xp.roll({{0}}, {d.random.randint(-3, 3)}, axis={axis})", shape),
        (f"xp.transpose({{0}}, {tuple(order)})", tuple(shape[order.index(k)] for k in range(len(shape)))),
        (f"xp.reshape({{0}}, {shape})", (int(np.prod(shape)),)),
        ("{0}.T", shape[::-1]),
        (f"xp.broadcast_to({{0}}, {shape})", less(d, shape)),
    ]
    if shape[axis] == 1:
        forms.append((f"lax.expand_dims({{0}}, ({axis},))", drop_axis(shape, axis)))
    if shape[axis] % 2 == 0:
        forms.append((f"xp.repeat({{0}}, 2, axis={axis})", resize(wanted, axis, shape[axis] // 2).shape))
    template, source = d.random.choice(forms)
    return Expr(template, wanted, (d.expr(Type(wanted.dtype, source), depth),))


def drop_axis(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def resize(wanted: Type, axis: int, size: int) -> Type:
    return Type(wanted.dtype, (*wanted.shape[:axis], size, *wanted.shape[axis + 1 :]))


def concatenate(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """Two arrays one after the other, or slices side by side."""
    if not wanted.shape or 0 in wanted.shape:
        return None
    axis = d.random.randrange(len(wanted.shape))
    size = wanted.shape[axis]
    if size <= 3 and d.chance(0.5):
        slices = [d.expr(Type(wanted.dtype, drop_axis(wanted.shape, axis)), depth) for _ in range(size)]
        inside = ", ".join(f"{{{k}}}" for k in range(size))
        return Expr(f"xp.stack([{inside}], axis={axis})", wanted, tuple(slices))
    cut = d.random.randint(0, size)
    parts = tuple(d.expr(resize(wanted, axis, each), depth) for each in (cut, size - cut))
    return Expr(f"xp.concatenate([{{0}}, {{1}}], axis={axis})", wanted, parts)


def pad(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """An array with a border, of which some may be negative, and with holes."""
    if not wanted.shape:
        return None
    axis = d.random.randrange(len(wanted.shape))
    size, rank = wanted.shape[axis], len(wanted.shape)
    if size > 2 and d.chance(0.5):
        low, high = d.random.choice(((1, 1), (2, 0), (0, 1), (1, 0)))
        pads = ", ".join(f"({low}, {high})" if k == axis else "(0, 0)" for k in range(rank))
        text = f"xp.pad({{0}}, [{pads}], constant_values={d.number(wanted.dtype)})"
        return Expr(text, wanted, (d.expr(resize(wanted, axis, size - low - high), depth),))
    low, high, holes = d.random.randint(-1, 2), d.random.randint(-1, 2), d.random.choice((0, 0, 1, 2))
    before, rest = divmod(size - low - high + holes, 1 + holes)
    if rest or before < 1 or not is_small(resize(wanted, axis, before).shape):
        return None
    rows = [(low, high, holes) if k == axis else (0, 0, 0) for k in range(rank)]
    filler = literal(wanted.dtype, d.number(wanted.dtype))
    return Expr(f"lax.pad({{0}}, {filler}, {rows})", wanted, (d.expr(resize(wanted, axis, before), depth),))


def step_over(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """Every second or third element, also from the end."""
    if not wanted.shape or 0 in wanted.shape:
        return None
    axis, step = d.random.randrange(len(wanted.shape)), d.random.choice((2, 3, -1, -2))
    whole = resize(wanted, axis, (wanted.shape[axis] - 1) * abs(step) + 1)
    if not is_small(whole.shape):
        return None
    return Expr(f"{{0}}[{', '.join([':'] * axis + [f'::{step}'])}]", wanted, (d.expr(whole, depth),))


def read(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """Elements and rows of an array of the scope, out of bounds too if that is no error."""
    named = [
        (name, each) for name, each in d.scope.arrays.items() if each.dtype == wanted.dtype and each.shape
    ]
    d.random.shuffle(named)
    for name, each in named[:3] * 2:
        is_wild = d.chance(0.3)
        index = draw_index(d, each.shape, min(depth, 1), 1, is_wild)
        if index.shape == wanted.shape:
            parts = (Expr(name, each), *index.parts)
            if is_wild and index.parts:
                filler = f"'fill', fill_value={d.number(wanted.dtype)}"
                mode = d.random.choice(("'clip'", "'wrap'", "'fill'", filler))
                return Expr(f"{{0}}.at[{index.text}].get(mode={mode})", wanted, parts)
            if not is_wild:
                return Expr(f"{{0}}[{index.text}]", wanted, parts)
    return None


def gather(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """Rows by `take`, elements along an axis, and windows at computed starts."""
    if not wanted.shape or 0 in wanted.shape:
        return None
    axis = d.random.randrange(len(wanted.shape))
    size = d.random.choice([size for size in d.sizes if size] or [1])
    operand = Type(wanted.dtype, (*wanted.shape[:axis], size, *wanted.shape[axis + 1 :]))
    if not is_small(operand.shape):
        return None
    part, kind = d.expr(operand, depth), d.random.randrange(4)
    if kind == 0:
        mode = d.random.choice(("clip", "wrap"))
        rows = d.whole_numbers(wanted.shape[axis], size, depth, is_wild=True)
        return Expr(f"xp.take({{0}}, {{1}}, axis={axis}, mode='{mode}')", wanted, (part, rows))
    if kind == 1:
        rows = d.whole_numbers(wanted.shape[axis], size, depth)
        return Expr(f"xp.take({{0}}, {{1}}, axis={axis})", wanted, (part, rows))
    if kind == 2 and len(wanted.shape) > 1:
        numbers = d.expr(Type("int64", wanted.shape), depth)
        return Expr(f"xp.take_along_axis({{0}}, {{1}} % {size}, axis={axis})", wanted, (part, numbers))
    if wanted.shape[axis] > size:
        return None
    starts = ", ".join("{1}" if k == axis else "0" for k in range(len(wanted.shape)))
    start = d.step_or_number(size)
    if start.type.dtype != "int64":
        start = d.convert(start, "int64")
    return Expr(f"lax.dynamic_slice({{0}}, ({starts},), {wanted.shape})", wanted, (part, start))


# --- updates ----------------------------------------------------------------------------------------


def update(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """Some elements anew: set, or changed by the values, in bounds or not."""
    if not wanted.shape:
        return None
    base, is_wild = d.expr(wanted, depth), d.chance(0.3)
    index = draw_index(d, wanted.shape, depth, 2, is_wild)
    ways = {"b": ("set",), "c": ("set", "add", "subtract", "multiply")}.get(
        kind_of(wanted.dtype), ("set", "set", "set", "add", "add", "subtract", "multiply", "min", "max")
    )
    shape = index.shape if d.chance(0.7) else less(d, index.shape)
    value = d.expr(Type(wanted.dtype, shape), depth)
    modes = ("'clip'", "'wrap'", "'drop'", "'fill'")
    mode = f", mode={d.random.choice(modes)}" if is_wild else ""
    return Expr(
        f"{{0}}.at[{index.text}].{d.random.choice(ways)}({{1}}{mode})", wanted, (base, value, *index.parts)
    )


def exchange(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """Two rows that are exchanged, by two updates or by an index of all rows."""
    if not wanted.shape or not wanted.shape[0]:
        return None
    size = wanted.shape[0]
    rows = tuple(d.whole_number(size) for _ in range(2))
    base = d.expr(wanted, depth)
    if d.chance(0.5):
        return Expr("{0}.at[{1}].set({0}[{2}]).at[{2}].set({0}[{1}])", wanted, (base, *rows))
    rows = tuple(Expr(f"({{0}} % {size})", each.type, (each,)) for each in rows)
    every = f"xp.arange({size})"
    text = f"{{0}}[xp.where({every} == {{1}}, {{2}}, xp.where({every} == {{2}}, {{1}}, {every}))]"
    return Expr(text, wanted, (base, *rows))


def put_window(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """A window that is written at a computed start, which is clamped."""
    if not wanted.shape or not wanted.shape[0]:
        return None
    size, rest = wanted.shape[0], wanted.shape[1:]
    part = d.expr(Type(wanted.dtype, (d.random.randint(1, size), *rest)), depth)
    start = ", ".join(["{2}", *["0"] * len(rest)])
    parts = (d.expr(wanted, depth), part, d.convert(d.step_or_number(size), "int64"))
    return Expr(f"lax.dynamic_update_slice({{0}}, {{1}}, ({start},))", wanted, parts)


def set_where(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """A number where a mask is true."""
    mask = d.expr(Type("bool", wanted.shape), depth)
    parts = (d.expr(wanted, depth), mask, d.expr(Type(wanted.dtype, ()), depth))
    return Expr("{0}.at[{1}].set({2})", wanted, parts) if wanted.shape else None


def smooth(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """The inside of a grid from its neighbours, or a row by a function of itself."""
    if not wanted.shape or wanted.shape[0] < 3 or kind_of(wanted.dtype) not in "iuf":
        return None
    x, y = d.expr(wanted, depth), d.expr(wanted, depth)
    if d.chance(0.5):
        row = d.whole_number(wanted.shape[0])
        return Expr("{0}.at[{1}].apply(lambda v: v * 2 - 1)", wanted, (x, row))
    return Expr("{0}.at[1:-1].set({0}[:-2] + {0}[2:] - {1}[1:-1])", wanted, (x, y))


# --- orders, running totals, windows, products -----------------------------------------------------


def order(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    if not wanted.shape or kind_of(wanted.dtype) == "c":
        return None
    axis, part = d.random.randrange(len(wanted.shape)), d.expr(wanted, depth)
    kind = d.random.randrange(4)
    if kind == 0:
        return Expr(f"xp.sort({{0}}, axis={axis})", wanted, (part,))
    if kind == 1:
        keys = d.expr(Type(d.random.choice((*SIGNED, *FLOATS)), wanted.shape), depth)
        return Expr(f"lax.sort(({{0}}, {{1}}), dimension={axis}, num_keys=1)[1]", wanted, (keys, part))
    if kind == 2 and wanted.dtype == "int64":
        keys = d.expr(Type(d.random.choice((*SIGNED, *FLOATS)), wanted.shape), depth)
        return Expr(f"xp.argsort({{0}}, axis={axis}, stable=True)", wanted, (keys,))
    if kind_of(wanted.dtype) in "iu" and len(wanted.shape) == 1:
        size = d.random.choice(d.sizes)
        row = d.expr(Type("float64", (size,)), depth)
        keys = d.expr(Type("float64", wanted.shape), depth)
        at = Expr("xp.searchsorted(xp.sort({0}), {1})", Type("int64", wanted.shape), (row, keys))
        return d.convert(at, wanted.dtype)
    return None


def accumulate(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    kind = kind_of(wanted.dtype)
    if not wanted.shape or kind == "b":
        return None
    axis = d.random.randrange(len(wanted.shape))
    part = d.expr(wanted, depth)
    whole = d.small(part, wanted.shape[axis])
    if kind in "iuf" and d.chance(0.4):
        way = d.random.choice(("cummax", "cummin"))
        turned = d.random.choice(("", ", reverse=True"))
        return Expr(f"(lax.{way}({{0}}, axis={axis}{turned}) + 0)", wanted, (part,))
    if whole is None:
        return None
    if d.chance(0.3):
        return Expr(f"lax.cumsum({{0}}, axis={axis}, reverse={d.chance(0.5)})", wanted, (whole,))
    if len(wanted.shape) == 1 and d.chance(0.2):
        return Expr("lax.associative_scan(lambda a, b: a + b, {0})", wanted, (whole,))
    dtype = f", dtype=xp.{wanted.dtype}" if kind in "iu" else ""
    return Expr(f"xp.cumsum({{0}}, axis={axis}{dtype})", wanted, (whole,))


def windows(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """Sums and extrema of windows, with steps, borders and holes."""
    if not wanted.shape or kind_of(wanted.dtype) not in "iuf" or 0 in wanted.shape:
        return None
    axis = d.random.randrange(len(wanted.shape))
    window, step, hole = d.random.randint(1, 4), d.random.randint(1, 2), d.random.randint(1, 2)
    pad = d.random.randint(0, 2)
    size = (wanted.shape[axis] - 1) * step + (window - 1) * hole + 1 - 2 * pad
    shape = (*wanted.shape[:axis], size, *wanted.shape[axis + 1 :])
    if size < 1 or not is_small(shape):
        return None

    def row(value: Any, other: Any) -> tuple[Any, ...]:
        return tuple(value if k == axis else other for k in range(len(shape)))

    part = d.expr(Type(wanted.dtype, shape), depth)
    name = d.random.choice(("add", "max", "min"))
    chosen = d.small(part, window) if name == "add" else part
    if chosen is None:
        return None
    first = literal(wanted.dtype, "0" if name == "add" else d.number(wanted.dtype))
    text = (
        f"lax.reduce_window({{0}}, {first}, lax.{name}, {row(window, 1)}, {row(step, 1)}, "
        f"{row((pad, pad), (0, 0))}, window_dilation={row(hole, 1)})"
    )
    return Expr(f"({text} + 0)" if kind_of(wanted.dtype) == "f" else text, wanted, (chosen,))


def _factors(d: Drawer, shape: Shape, terms: int) -> tuple[Shape, Shape, str]:
    """The shapes of factors of which the product has a shape, and its text."""
    if not shape:
        return (terms,), (terms,), "({0} @ {1})"
    if len(shape) == 1:
        forms = (
            ((*shape, terms), (terms,), "({0} @ {1})"),
            ((terms,), (terms, *shape), "xp.matmul({0}, {1})"),
        )
        return d.random.choice(forms)
    left, right = (*shape[:-1], terms), (*shape[:-2], terms, shape[-1])
    if len(shape) == 2 and d.chance(0.3):
        return left, right[::-1], d.random.choice(("({0} @ {1}.T)", "xp.einsum('ik,jk->ij', {0}, {1})"))
    return left, right, "({0} @ {1})"


def product(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """Products of matrices, vectors and batches."""
    if kind_of(wanted.dtype) == "b":
        return None
    terms = d.random.choice(d.sizes)
    left, right, text = _factors(d, wanted.shape, terms)
    if not is_small(left) or not is_small(right):
        return None
    factors = [d.small(d.expr(Type(wanted.dtype, shape), depth), terms, 2) for shape in (left, right)]
    parts = tuple(each for each in factors if each is not None)
    if len(parts) < 2:
        return None
    return Expr(f"({text} + 0)" if kind_of(wanted.dtype) in "fc" else text, wanted, parts)


def call(d: Drawer, wanted: Type, depth: int) -> Expr | None:
    """Functions from outside, and barriers."""
    if not wanted.shape:
        return None
    part = d.expr(wanted, depth)
    name = d.random.choice(
        (
            "lax.custom_call('tests.reversed', {0}, result_types={0})",
            "xp.pure_callback(reversed_rows, {0}, {0})",
            "lax.optimization_barrier({0})",
            "xp.jit(lambda v: v[::-1])({0})",
            "lax.all_reduce({0}, lax.max)",
        )
    )
    if "all_reduce" in name and kind_of(wanted.dtype) not in "iu":
        return None
    return Expr(name, wanted, (part,))


WHOLE: Final[tuple[Rule, ...]] = (
    *(move, move, concatenate, pad, step_over, read, read, read, gather, update, update, update, update),
    *(exchange, put_window, set_where, smooth, order, accumulate, windows, product),
)
CALLS: Final[tuple[Rule, ...]] = (call,)
