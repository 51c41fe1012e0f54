"""What expressions are drawn with: the names of a scope, element types, small numbers, conditions and indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from random import Random
from typing import Any, Final

import ml_dtypes
import numpy as np

from tests.support.source_programs.text import Expr, Type

BOOL: Final = "bool"
SIGNED: Final = ("int8", "int16", "int32", "int64")
UNSIGNED: Final = ("uint8", "uint16", "uint32", "uint64")
FLOATS: Final = ("float64", "float32", "float16", "bfloat16")
COMPLEX: Final = ("complex128", "complex64")
DTYPES: Final = (BOOL, *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX)
#: Whole numbers up to these are exact, and so are their sums in any order.
_WHOLE: Final = {
    **{"bfloat16": 2**8, "float16": 2**11, "float32": 2**24, "float64": 2**53},
    **{"complex64": 2**24, "complex128": 2**53},
}
#: Elements of an array at most.
MOST: Final = 4096


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def kind_of(name: str) -> str:
    """One of b, i, u, f and c."""
    return "f" if name == "bfloat16" else np.dtype(name).kind


def literal(dtype: str, value: Any) -> str:
    return f"xp.asarray({value}, xp.{dtype})"


@dataclass(frozen=True)
class Scope:
    """The names that may be read: arrays, numbers of steps below some bound; and the array about to get a value."""

    arrays: dict[str, Type]
    steps: dict[str, int] = field(default_factory=dict)
    target: str = ""

    def having(self, **arrays: Type) -> Scope:
        return replace(self, arrays={**self.arrays, **arrays})


#: Makes an expression of a type, of parts that are drawn, or says that this type has none.
Rule = Callable[["Drawer", Type, int], Expr | None]


class Drawer:
    """Expressions of a wanted type, drawn by rules.

    `rules` says which there are for a type.  `may_raise`: whether an index may lie outside, which is an IndexError.
    """

    def __init__(
        self, random: Random, sizes: Sequence[int], rules: Callable[[Type], Sequence[Rule]], may_raise: bool
    ) -> None:
        self.random, self.sizes, self.rules, self.may_raise = random, sizes, rules, may_raise
        self.scope = Scope({})

    def expr(self, wanted: Type, depth: int) -> Expr:
        if depth > 0 and self.random.random() < 0.85:
            for _ in range(5):
                made = self.random.choice(self.rules(wanted))(self, wanted, depth - 1)
                if made is not None:
                    assert made.type == wanted, f"{made} is {made.type}, wanted {wanted}"
                    return made
        return self.leaf(wanted)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # --- without parts ------------------------------------------------------------------------------

    def leaf(self, wanted: Type) -> Expr:
        arrays = self.scope.arrays
        same = [name for name, each in arrays.items() if each == wanted]
        if same and self.chance(0.9):
            near = self.scope.target if self.scope.target in same and self.chance(0.5) else ""
            return Expr(near or self.random.choice(same), wanted)
        shaped = [name for name, each in arrays.items() if each.shape == wanted.shape]
        if shaped and self.chance(0.6):
            name = self.random.choice(shaped)
            return self.convert(Expr(name, arrays[name]), wanted.dtype)
        made = self.random.choice((self.cut, self.cut, self.widen, self.constant))(wanted)
        return made or self.constant(wanted)

    def cut(self, wanted: Type) -> Expr | None:
        """A part of a larger array: the first elements, or a row."""
        arrays, shape = self.scope.arrays, wanted.shape
        rows = [
            name for name, each in arrays.items() if each.shape[1:] == shape and each.shape and each.shape[0]
        ]
        larger = [name for name, each in arrays.items() if shape and _holds(each.shape, shape)]
        if not rows and not larger:
            return None
        name = self.random.choice(rows + larger)
        own = arrays[name]
        if name in rows:
            part = Expr(f"{name}[{{0}}]", Type(own.dtype, shape), (self.whole_number(own.shape[0]),))
        else:
            part = Expr(f"{name}[{', '.join(f':{size}' for size in shape)}]", Type(own.dtype, shape))
        return self.convert(part, wanted.dtype)

    def widen(self, wanted: Type) -> Expr | None:
        arrays = self.scope.arrays
        smaller = [name for name, each in arrays.items() if _embeds(each.shape, wanted.shape)]
        if not smaller or not wanted.shape:
            return None
        name = self.random.choice([name for name in smaller if arrays[name].shape] or smaller)
        part = self.convert(Expr(name, arrays[name]), wanted.dtype)
        return Expr(f"xp.broadcast_to({{0}}, {wanted.shape})", wanted, (part,))

    def constant(self, wanted: Type) -> Expr:
        dtype, shape = wanted
        if len(shape) == 1 and kind_of(dtype) in "iuf" and self.chance(0.4) and shape[0] < 100:
            return Expr(f"xp.arange({shape[0]}, dtype=xp.{dtype})", wanted)
        if not shape and self.scope.steps and self.chance(0.5):
            name = self.random.choice(list(self.scope.steps))
            return Expr(f"{name}.astype(xp.{dtype})", wanted)
        return Expr(f"xp.full({shape}, {self.number(dtype)}, dtype=xp.{dtype})", wanted)

    def number(self, dtype: str) -> str:
        """A Python number that the type holds."""
        kind = kind_of(dtype)
        choices = {
            "b": ("True", "False"),
            "i": ("0", "1", "2", "3", "-1", "7"),
            "u": ("0", "1", "2", "3", "5"),
            "f": ("0.0", "-0.0", "1.0", "-1.0", "2.0", "0.5", "3.0"),
            "c": ("0j", "1j", "2.0", "(1-2j)"),
        }
        return self.random.choice(choices[kind])

    def convert(self, part: Expr, dtype: str) -> Expr:
        """The array in another element type; of a complex one the real part."""
        own = part.type
        if own.dtype == dtype:
            return part
        if kind_of(own.dtype) == "c" and kind_of(dtype) != "c":
            real = {"complex64": "float32", "complex128": "float64"}[own.dtype]
            part = Expr("xp.real({0})", Type(real, own.shape), (part,))
        if kind_of(part.type.dtype) in "f" and kind_of(dtype) in "iu":
            part = Expr("xp.nan_to_num(small({0}, 100))", part.type, (part,))
            if kind_of(dtype) == "u":
                part = Expr("xp.abs({0})", part.type, (part,))
        if part.type.dtype == dtype:
            return part
        return Expr(f"{{0}}.astype(xp.{dtype})", Type(dtype, own.shape), (part,))

    # --- numbers whose sums are exact ---------------------------------------------------------------

    def small(self, part: Expr, terms: int, factors: int = 1) -> Expr | None:
        """Whole numbers of which sums of products are exact in any order, if there are any."""
        dtype = part.type.dtype
        if kind_of(dtype) in "biu":
            return part
        most = (_WHOLE[dtype] // max(terms, 1)) ** (1 / factors)
        if most < 1:
            return None
        return Expr(f"small({{0}}, {min(8, int(most) + 1)})", part.type, (part,))

    # --- conditions ---------------------------------------------------------------------------------

    def step_or_number(self, size: int) -> Expr:
        """A number near 0 … size: of a loop's step, of data, or a literal."""
        number = Type("int64", ())
        scalars = [
            name
            for name, each in self.scope.arrays.items()
            if each.shape == () and kind_of(each.dtype) == "i"
        ]
        if self.scope.steps and self.chance(0.7):
            name = self.random.choice(list(self.scope.steps))
            return Expr(self.random.choice((name, name, f"({name} + 1)", f"({size} - {name})")), number)
        if scalars and self.chance(0.5):
            name = self.random.choice(scalars)
            return Expr(name, self.scope.arrays[name])
        return Expr(str(self.random.randint(0, size)), number)

    def position_mask(self, shape: tuple[int, ...]) -> Expr:
        """A condition of the positions along one or two dimensions, which broadcasts to the shape."""
        axis = self.random.randrange(len(shape))
        mine, compared = _positions(shape, axis), {axis}
        other = self.step_or_number(shape[axis])
        if len(shape) > 1 and self.chance(0.3):
            second = self.random.choice([k for k in range(len(shape)) if k != axis])
            compared.add(second)
            theirs = _positions(shape, second)
            kind = Type("int64", (shape[second], *(1,) * (len(shape) - 1 - second)))
            other = Expr(f"({theirs} + {{0}})", kind, (other,)) if self.chance(0.5) else Expr(theirs, kind)
        relation = self.random.choice(("<", "<=", "==", "!=", ">=", ">"))
        form = self.random.choice(
            ("({0} % 3)", "({0} % 2)", "(({0} + 3) % 4)", f"({shape[axis] - 1} - {{0}})", *["{0}"] * 8)
        )
        left = form.format(mine)
        text = f"({{0}} {relation} {left})" if self.chance(0.2) else f"({left} {relation} {{0}})"
        first = min(compared)
        sizes = tuple(size if first + k in compared else 1 for k, size in enumerate(shape[first:]))
        made = Expr(text, Type(BOOL, sizes), (other,))
        return Expr("(~{0})", made.type, (made,)) if self.chance(0.1) else made

    def mask(self, shape: tuple[int, ...], depth: int) -> Expr:
        """A condition that broadcasts to the shape."""
        if shape and self.chance(0.5):
            made = self.position_mask(shape)
            if self.chance(0.3):
                other = self.mask(shape, depth - 1) if depth > 0 else self.position_mask(shape)
                joined = np.broadcast_shapes(made.type.shape, other.type.shape)
                return Expr(f"({{0}} {self.random.choice('&&|')} {{1}})", Type(BOOL, joined), (made, other))
            return made
        return self.expr(Type(BOOL, shape), depth)

    # --- indices ------------------------------------------------------------------------------------

    def whole_number(self, size: int) -> Expr:
        """An index of a dimension, in bounds."""
        number = Type("int64", ())
        usable = [name for name, bound in self.scope.steps.items() if bound <= size]
        scalars = [
            name
            for name, each in self.scope.arrays.items()
            if each.shape == () and kind_of(each.dtype) in "i"
        ]
        if usable and self.chance(0.6):
            name = self.random.choice(usable)
            return Expr(
                self.random.choice((name, name, f"({size - 1} - {name})", f"({name} - {size})")), number
            )
        if self.scope.steps and self.chance(0.5):
            name = self.random.choice(list(self.scope.steps))
            ahead = self.random.randint(0, 3)
            return Expr(f"(({name} + {ahead}) % {size})" if ahead else f"({name} % {size})", number)
        if scalars and self.chance(0.6) and size < 100:
            name = self.random.choice(scalars)
            way = self.random.choice(("({} % {n})", "xp.clip({}, 0, {m})", "xp.clip({}, -{n}, {m})"))
            return Expr(way.format(name, n=size, m=size - 1), self.scope.arrays[name])
        return Expr(str(self.random.choice((0, -1, size - 1, self.random.randrange(-size, size)))), number)

    def whole_numbers(self, count: int, size: int, depth: int, is_wild: bool = False) -> Expr:
        """`count` indices of a dimension; with `is_wild` some may be out of bounds."""
        dtype = self.random.choice(("int64", "int64", "int64", "int32", "int16", "uint32", "uint8"))
        part = self.expr(Type(dtype, (count,)), depth)
        if is_wild or (self.may_raise and self.chance(0.05)):
            return part
        if size > 100:
            part = self.convert(part, "int64")
        if kind_of(part.type.dtype) == "i" and self.chance(0.3):
            way = self.random.choice(
                (f"xp.clip({{0}}, 0, {size - 1})", f"xp.clip({{0}}, -{size}, {size - 1})")
            )
        else:
            way = f"({{0}} % {size})"
        return Expr(way, part.type, (part,))


def _positions(shape: tuple[int, ...], axis: int) -> str:
    after = len(shape) - 1 - axis
    return f"xp.arange({shape[axis]})" + (f"[:{', None' * after}]" if after else "")


def _embeds(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    """Whether an array broadcasts to a shape, by NumPy's rule."""
    pairs = zip(reversed(shape), reversed(larger), strict=False)
    return len(shape) <= len(larger) and all(a in (1, b) for a, b in pairs)


def _holds(shape: tuple[int, ...], smaller: tuple[int, ...]) -> bool:
    return len(shape) == len(smaller) and all(a >= b for a, b in zip(shape, smaller, strict=True))


def is_small(shape: Sequence[int]) -> bool:
    return prod(shape) <= MOST
