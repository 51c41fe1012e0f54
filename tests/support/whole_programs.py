"""Random whole programs, as data: statements on named arrays, and loops, scans and branches of statements.

NumPy runs them with loops of Python (`Numpy`), which says what is right; xarr runs the same functions recorded
(`Recorded`), with loops of `xarr.lax`, or one by one (`OneByOne`), with loops of Python, `if` and writes in place.  All
numbers are whole and stay small, or are NaN or infinite, so that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

import ml_dtypes
import numpy as np

import xarr
from tests.support.whole_program_statements import LIMITS, WAYS, Scope, small, to
from xarr import lax

HostArray = np.ndarray[Any, Any]
State = dict[str, Any]

#: The arrays of a program: their dimensions, and of which element type they are, the program's own or a fixed one.
NAMES: Final = {
    **{"x": ("nm", ""), "y": ("nm", ""), "u": ("m", ""), "v": ("m", ""), "g": ("n", ""), "w": ("mm", "")},
    **{"s": ("", ""), "e": ("nm", "other"), "p": ("nm", "bool"), "q": ("n", "int64"), "r": ("m", "int32")},
}
DTYPES: Final = (
    *("float64", "float64", "float64", "float32", "float32", "int32", "int64", "int8", "uint8", "uint32"),
    *("complex128", "complex64", "bfloat16", "float16", "bool"),
)
SHAPES: Final = ((6, 7), (9, 6), (17, 16), (33, 10), (70, 40))
COUNTS: Final = (0, 1, 2, 3, 2)


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


@dataclass(frozen=True)
class Statement:
    """An array `target`, made of the operands and of random numbers; or blocks of statements."""

    name: str
    target: str = ""
    operands: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()

    def __str__(self) -> str:
        head = f"{self.target} = {self.name}({', '.join(self.operands)}; {self.numbers})"
        rows = [f"  {line}" for block in self.blocks for line in ("-", *show(block).splitlines())]
        return "\n".join([head, *rows])


Block = tuple[Statement, ...]


def show(block: Block) -> str:
    return "\n".join(map(str, block))


def list_targets(block: Block) -> set[str]:
    """The names that a block gives new values."""
    inside = [name for each in block for inner in each.blocks for name in list_targets(inner)]
    own = {each.target for each in block if each.target}
    return own.union(inside, *[{"y", "u"} for each in block if each.name == "scan"])


@dataclass(frozen=True)
class Program:
    dtype: str
    other: str
    shape: tuple[int, int]
    block: Block
    results: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {self.other} {self.shape} -> {self.results}\n{show(self.block)}"

    def type_of(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        dims, dtype = NAMES[name]
        sizes = dict(zip("nm", self.shape, strict=True))
        return tuple(sizes[dim] for dim in dims), dtype_of(
            {"": self.dtype, "other": self.other}.get(dtype, dtype)
        )

    def inputs(self, seed: int, specials: bool) -> State:
        """Arrays; with NaN and infinities if so wanted, and if their types have them."""
        generator = np.random.default_rng(seed)
        state = {}
        for name in NAMES:
            shape, dtype = self.type_of(name)
            limit = min(9, LIMITS.get(dtype.name, 9))
            values = generator.integers(0 if dtype.kind in "ub" else -limit, limit, shape).astype(dtype)
            if dtype.kind == "c":
                values = values + (1j * generator.integers(-limit, limit, shape)).astype(dtype)
            if specials and dtype.name in ("float64", "float32") and name != "w":
                chosen = generator.random(shape) < 0.03
                values = np.where(chosen, generator.choice([np.nan, np.inf, -np.inf], shape), values).astype(
                    dtype
                )
            state[name] = values
        return state

    def run(self, language: Language, count: Any, state: State) -> tuple[Any, ...]:
        language.program = self
        # A number as an array, so that it may be that of a loop.
        state = run_block(self.block, language, {**state, "i": count, "count": count})
        return tuple(state[name] for name in self.results)


# --- languages ---------------------------------------------------------------------------------------


def _window(shape: tuple[int, ...], starts: tuple[Any, ...], sizes: tuple[int, ...]) -> tuple[slice, ...]:
    """As JAX has it: a negative start counts from the end, and the window is moved into the array."""
    own = zip(shape, starts, sizes, strict=True)
    firsts = [int(np.clip(k + n if k < 0 else k, 0, n - size)) for n, k, size in own]
    return tuple(slice(k, k + size) for k, size in zip(firsts, sizes, strict=True))


class Numpy:
    """NumPy with loops of Python, whose results are right."""

    np: Any = np
    program: Program

    def rem(self, x: Any, y: Any) -> Any:
        return np.fmod(x, x.dtype.type(y))

    def complex(self, re: Any, im: Any) -> Any:
        z = np.empty(np.shape(re), np.result_type(re, np.complex64))
        z.real, z.imag = re, im
        return z

    def asarray(self, x: Any, dtype: np.dtype[Any]) -> Any:
        return np.asarray(x).astype(dtype)

    def write(self, x: Any, index: Any, value: Any, how: str = "set") -> Any:
        x = np.array(x)
        if how == "set":
            x[index] = value
        else:
            {"add": np.add, "max": np.maximum, "min": np.minimum}[how].at(x, index, value)
        return x

    def call(self, x: Any, shift: int) -> Any:
        """A function from outside."""
        return np.roll(x, shift, axis=1)

    def slice(self, x: Any, starts: tuple[Any, ...], sizes: tuple[int, ...]) -> Any:
        return x[_window(x.shape, starts, sizes)]

    def put_slice(self, x: Any, part: Any, starts: tuple[Any, ...]) -> Any:
        return self.write(x, _window(x.shape, starts, part.shape), part)

    def loop(self, start: Any, stop: Any, body: Callable[[Any, State], State], state: State) -> State:
        for i in range(int(start), int(stop)):
            state = body(np.int64(i), state)
        return state

    def repeat(self, going: Callable[[State], Any], body: Callable[[State], State], state: State) -> State:
        while bool(going(state)):
            state = body(state)
        return state

    def scan(
        self, body: Callable[[State, Any], tuple[State, Any]], state: State, rows: Any, reverse: bool
    ) -> tuple[State, Any]:
        made = []
        for row in rows[::-1] if reverse else rows:
            state, each = body(state, row)
            made.append(each)
        return state, self.np.stack(made[::-1] if reverse else made)

    def choose(self, index: Any, bodies: list[Callable[[State], State]], state: State) -> State:
        return bodies[max(0, min(int(index), len(bodies) - 1))](state)


class OneByOne(Numpy):
    """xarr with loops of Python, writing in place."""

    np = xarr

    def rem(self, x: Any, y: Any) -> Any:
        return xarr.fmod(x, xarr.asarray(y, dtype=x.dtype))

    def complex(self, re: Any, im: Any) -> Any:
        return lax.complex(re, im)

    def asarray(self, x: Any, dtype: np.dtype[Any]) -> Any:
        return xarr.asarray(x).astype(dtype)

    def write(self, x: Any, index: Any, value: Any, how: str = "set") -> Any:
        if how != "set":
            return getattr(x.at[index], how)(value)
        x = x.copy()
        x[index] = value
        return x

    def call(self, x: Any, shift: int) -> Any:
        return lax.custom_call("tests.roll", x, result_types=x, attributes={"shift": shift})

    def slice(self, x: Any, starts: tuple[Any, ...], sizes: tuple[int, ...]) -> Any:
        return lax.dynamic_slice(x, starts, sizes)

    def put_slice(self, x: Any, part: Any, starts: tuple[Any, ...]) -> Any:
        return lax.dynamic_update_slice(x, part, starts)

    def loop(self, start: Any, stop: Any, body: Callable[[Any, State], State], state: State) -> State:
        for i in range(int(start), int(stop)):
            state = body(xarr.asarray(i), state)
        return state


class Recorded(OneByOne):
    """xarr with loops of `xarr.lax`."""

    def write(self, x: Any, index: Any, value: Any, how: str = "set") -> Any:
        return getattr(x.at[index], how)(value)

    def loop(self, start: Any, stop: Any, body: Callable[[Any, State], State], state: State) -> State:
        return lax.fori_loop(start, stop, body, state)

    def repeat(self, going: Callable[[State], Any], body: Callable[[State], State], state: State) -> State:
        return lax.while_loop(going, body, state)

    def scan(
        self, body: Callable[[State, Any], tuple[State, Any]], state: State, rows: Any, reverse: bool
    ) -> tuple[State, Any]:
        return lax.scan(body, state, rows, reverse=reverse)

    def choose(self, index: Any, bodies: list[Callable[[State], State]], state: State) -> State:
        if len(bodies) == 2:
            return lax.cond(index > 0, bodies[1], bodies[0], state)
        return lax.switch(xarr.clip(index, 0, len(bodies) - 1), bodies, state)


Language = Numpy
lax.register_custom_call("tests.roll", lambda x, shift: np.roll(x, shift, axis=1))

# --- running ----------------------------------------------------------------------------------------


def run_block(block: Block, lang: Language, state: State) -> State:
    for step in block:
        state = {**state, **_run(step, lang, state)}
    return state


def _run(step: Statement, lang: Language, state: State) -> State:
    if step.blocks:
        return CONTROL[step.name](step, lang, state)
    shape, dtype = lang.program.type_of(step.target)
    ways = WAYS[step.target]
    scope = Scope(lang, state, step)
    value = small(lang, to(lang, lang.np.asarray(ways[step.numbers[0] % len(ways)](scope)), dtype))
    assert tuple(value.shape) == shape, f"{step}: {value.shape}"
    return {step.target: value}


def _inner(block: Block, lang: Language, outside: State, state: State, **more: Any) -> State:
    after = run_block(block, lang, {**outside, **state, **more})
    return {name: after[name] for name in state}


def _list_carried(step: Statement, state: State, more: str = "") -> State:
    """The arrays that a statement with blocks changes, and, by its first number, some that it does not."""
    names = list_targets(step.blocks[0]).union(*map(list_targets, step.blocks), more)
    if step.numbers[0] % 4 == 0:
        names |= {"x", "s", "p"}
    return {name: state[name] for name in sorted(names)}


def _loop(step: Statement, lang: Language, state: State) -> State:
    _, b, c, _ = step.numbers
    stop = (*COUNTS, state["count"], state["i"])[b % 7]
    start = (0, 0, 1)[c % 3]
    block = step.blocks[0]
    carried = _list_carried(step, state)
    return lang.loop(start, stop, lambda i, inner: _inner(block, lang, state, inner, i=i), carried)


def _while(step: Statement, lang: Language, state: State) -> State:
    _, b, c, d = step.numbers
    xp, dtype = lang.np, np.dtype(state["s"].dtype)
    bound = (9, -3, 0, np.nan)[b % 4] if dtype.kind in "fV" else 5
    carried = {**_list_carried(step, state), "j": lang.asarray(0, np.dtype(np.int64))}

    def going(inner: State) -> Any:
        every = {**state, **inner}
        total = xp.real(xp.sum(every["x"][:2]) if c % 2 else every["s"])
        limit = lang.asarray(bound, np.dtype(total.dtype))
        return (inner["j"] < 4) & ((total < limit) if d % 2 else ~(total > limit))

    def body(inner: State) -> State:
        kept = {name: inner[name] for name in inner if name != "j"}
        return {**_inner(step.blocks[0], lang, state, kept, i=inner["j"]), "j": inner["j"] + 1}

    made = lang.repeat(going, body, carried)
    return {name: made[name] for name in made if name != "j"}


def _scan(step: Statement, lang: Language, state: State) -> State:
    carried = _list_carried(step, state, "u")
    carried.pop("y", None)

    def body(inner: State, row: Any) -> tuple[State, Any]:
        after = _inner(step.blocks[0], lang, state, inner, v=row)
        return after, after["u"]

    after, rows = lang.scan(body, carried, state["y"], step.numbers[1] % 2 == 0)
    return {**after, "y": rows}


def _choose(step: Statement, lang: Language, state: State) -> State:
    _, b, c, _ = step.numbers
    xp = lang.np
    total = to(lang, state["s"], np.dtype(np.int32)) if c % 2 else state["i"]
    index = (total + b) % 4 - 1
    carried = _list_carried(step, state)
    bodies = [lambda inner, block=block: _inner(block, lang, state, inner) for block in step.blocks]
    return lang.choose(xp.asarray(index), bodies, carried)


CONTROL: Final[dict[str, Callable[[Statement, Language, State], State]]] = {
    "loop": _loop,
    "while": _while,
    "scan": _scan,
    "choose": _choose,
}

# --- drawing and making smaller ----------------------------------------------------------------------


def draw_program(random: Random, shapes: Any = SHAPES) -> Program:
    dtype = random.choice(DTYPES)
    usable = shapes[:1] if dtype == "bfloat16" else shapes[:3] if dtype in ("float16",) else shapes
    other = random.choice(
        [each for each in DTYPES if each not in ("bfloat16", "float16") or usable == shapes[:1]]
    )
    shape = random.choice(usable)
    budget = [random.randint(4, 24)]
    block = _draw_block(random, budget, 0, random.randint(2, 9))
    names = sorted(list_targets(block))
    return Program(
        dtype, other, shape, block, tuple(random.sample(names, min(len(names), random.randint(1, 6))))
    )


def _draw_block(random: Random, budget: list[int], depth: int, count: int) -> Block:
    return tuple(_draw(random, budget, depth) for _ in range(max(1, count)))


def _draw(random: Random, budget: list[int], depth: int) -> Statement:
    budget[0] -= 1
    numbers = tuple(random.randrange(1 << 16) if k == 0 else random.randrange(12) for k in range(4))
    if depth < 4 and random.random() < 0.45 and budget[0] > 0:
        name = random.choice(("loop", "loop", "loop", "while", "scan", "choose"))
        count = random.randint(2, 3) if name == "choose" else 1
        blocks = tuple(_draw_block(random, budget, depth + 1, random.randint(1, 3)) for _ in range(count))
        return Statement(name, numbers=numbers, blocks=blocks)
    target = random.choice("xxxyyyeuvgwspqr")
    near = {"nm": "xye", "m": "uv"}.get(NAMES[target][0], target)
    operands = tuple(target if random.random() < 0.6 else random.choice(near) for _ in range(2))
    if target in "pqr":
        operands = (target, target)
    return Statement("let", target, operands, numbers)


def smaller(program: Program) -> Iterator[Program]:
    """Programs with a statement, a loop around statements or a result less."""
    for name in program.results:
        if len(program.results) > 1:
            yield replace(program, results=(name,))
    for block in _smaller(program.block):
        yield replace(program, block=block)
    for shape in SHAPES[:1]:
        if program.shape > shape:
            yield replace(program, shape=shape)


def _smaller(block: Block) -> Iterator[Block]:
    for index, step in enumerate(block):
        before, after = block[:index], block[index + 1 :]
        if before or after:
            yield before + after
        for inner in step.blocks:
            yield before + inner + after
        for k, inner in enumerate(step.blocks):
            for less in _smaller(inner):
                blocks = (*step.blocks[:k], less, *step.blocks[k + 1 :])
                yield (*before, replace(step, blocks=blocks), *after)


def minimise(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A program that fails as well, and of which no smaller one does."""
    while True:
        for each in smaller(program):
            if fails(each):
                program = each
                break
        else:
            return program
