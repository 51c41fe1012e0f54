"""Loops that write an array over the one they read visit what changes, with the results of visiting everything."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from xarr import lax
from xarr.compiler.loop_ir.changed_parts import change_in_place
from xarr.compiler.loop_ir.loops import Affine, Buffer, Kernel, Loop, Runs, Store, index_value, load
from xarr.compiler.loop_ir.scalars import INT64, Values, in_order
from xarr.compiler.loop_ir.verifier import verify

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

SIZE = 70

#: Conditions of the position `k`, the step `i` and of numbers that decide at once, where elements change.
BOUNDS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "behind": lambda k, i, x: k > i,
    "up to": lambda k, i, x: k <= i,
    "between": lambda k, i, x: (k >= i) & (k < i + 9),
    "at": lambda k, i, x: k == i,
    "none": lambda k, i, x: (k > i) & (k < i - 2),
    "behind, of those that are large": lambda k, i, x: (k > i) & (x > 1),
    "if a number is even": lambda k, i, x: (i % 2 == 0) & (x < 2),
    "behind, not at the last": lambda k, i, x: ~((k <= i) | (k == SIZE - 1)),
    "multiples": lambda k, i, x: k % i == 0,
    "multiples behind": lambda k, i, x: (k % i == 0) & (k > i) & (i % 3 != 1),
    "multiples by C's remainder": lambda k, i, x: (lax.rem(k, xarr.zeros_like(k) + i) == 0) & (k < 3 * i),
    "shifted multiples": lambda k, i, x: ((k + 5) % i == 0) & (k >= i),
}
OTHERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "outside": lambda k, i, x: (k < i - 3) | (k > i),
    "all but": lambda k, i, x: k != i,
    "of those that are large": lambda k, i, x: x > 1,
    "no multiples": lambda k, i, x: k % i != 0,
    "multiples of what is below 0": lambda k, i, x: (k - 40) % i == 0,
}
#: What becomes of the old elements, given where they change.
CHANGES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "chosen": lambda where, old, new: xarr.where(where, new, old),
    "kept": lambda where, old, new: xarr.where(~where, old, new),
    "subtracted": lambda where, old, new: old - xarr.where(where, new, xarr.zeros_like(old)),
    "added": lambda where, old, new: old + xarr.where(where, new, xarr.negative(xarr.zeros_like(old))),
    "multiplied": lambda where, old, new: xarr.where(where, new, xarr.ones_like(old)) * old,
    "chosen twice": lambda where, old, new: xarr.where(where, xarr.where(old > 2, new + old, old), old),
}


def function_of(
    condition: Callable[..., Any], change: Callable[..., Any], first: int = -3
) -> Callable[..., Any]:
    """A loop from step `first` on that changes an array where the condition of the step holds."""

    def function(x: Any, y: Any) -> Any:
        k = xarr.arange(SIZE)

        def step(i: Any, x: Any) -> Any:
            # One element is read first, so that elements are not computed one by one, each for all steps.
            return change(condition(k, i, y), x, (y + x[xarr.clip(i, 0, SIZE - 1)]) * y)

        return lax.fori_loop(first, SIZE + 3, step, x)

    return function


def agree(function: Callable[..., Any], *arguments: Any) -> None:
    operands = [xarr.asarray(each) for each in arguments]
    with xarr.config(fusion="off"), np.errstate(all="ignore"):
        wanted = xarr.jit(function)(*operands)
    assert_same(xarr.jit(function)(*operands), wanted)


def leaves_out(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether loops of the machine code have bounds that are computed."""
    text = str(xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("program"))
    return re.search(r"for (v\d+ <=|i\d+ < v\d+:)", text) is not None


def draws(dtype: str, seed: int = 0) -> np.ndarray[Any, Any]:
    """Small numbers, and for floats all that is no number."""
    x = np.random.default_rng(seed).integers(-2, 4, SIZE).astype(dtype)
    if x.dtype.kind == "f":
        x[seed % 5 :: 9], x[30:36], x[50] = -0.0, [np.inf, np.nan, -np.inf, -0.0, np.nan, 0.0], np.nan
    return x


@pytest.mark.parametrize(
    ("name", "change", "dtype"),
    fuzz.one_of_last([*BOUNDS, *OTHERS], CHANGES, ["int64", "float64", "float32", "int8"]),
)
def test_conditions(name: str, change: str, dtype: str) -> None:
    function = function_of({**BOUNDS, **OTHERS}[name], CHANGES[change])
    agree(function, draws(dtype), draws(dtype, 1))


@pytest.mark.parametrize("name", [*BOUNDS, *OTHERS])
def test_what_is_left_out(name: str) -> None:
    function = function_of({**BOUNDS, **OTHERS}[name], CHANGES["chosen"])
    assert leaves_out(function, draws("float64"), draws("float64", 1)) == (name in BOUNDS)


#: Changes, and whether one is none, to the bit, where its condition does not hold.
EXACT: dict[str, tuple[Callable[[Any, Any, Any], Any], bool]] = {
    "added 0": (lambda where, old, new: old + xarr.where(where, new, 0.0), False),  # -0.0 + 0.0 is 0.0
    "subtracted -0": (lambda where, old, new: old - xarr.where(where, new, -0.0), False),
    "subtracted from 0": (lambda where, old, new: xarr.where(where, new, 0.0) - old, False),
    "multiplied by 0": (lambda where, old, new: old * xarr.where(where, new, 0.0), False),
    "subtracted 0": (lambda where, old, new: old - xarr.where(where, new, 0.0), True),
    "maximum": (lambda where, old, new: xarr.maximum(old, xarr.where(where, new, -xarr.inf)), True),
    "minimum": (lambda where, old, new: xarr.minimum(xarr.where(where, new, xarr.inf), old), True),
    "multiplied mask": (lambda where, old, new: old - new * where, False),  # infinity times 0 is NaN
    "subtracted mask": (lambda where, old, new: old - (where & (new < 9)).astype("float64"), True),
    "added mask": (lambda where, old, new: old + (where & (new < 9)).astype("float64"), False),
}


@pytest.mark.parametrize("name", EXACT)
def test_only_what_changes_no_bit_is_left_out(name: str) -> None:
    change, is_exact = EXACT[name]
    function = function_of(BOUNDS["behind"], change)
    assert leaves_out(function, draws("float64"), draws("float64", 1)) == is_exact
    agree(function, draws("float64"), draws("float64", 1))


@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_products_of_integers_with_a_mask_are_left_out(dtype: str) -> None:
    function = function_of(BOUNDS["behind"], lambda where, old, new: old - new * where)
    assert leaves_out(function, draws(dtype), draws(dtype, 1))
    agree(function, draws(dtype), draws(dtype, 1))


@pytest.mark.parametrize("name", ["and not", "or", "xor"])
def test_bools(name: str) -> None:
    changes: dict[str, Callable[[Any, Any], Any]] = {
        "and not": lambda w, x: x & ~w,
        "or": lambda w, x: x | w,
        "xor": lambda w, x: x ^ w,
    }

    def function(x: Any) -> Any:
        k = xarr.arange(SIZE)
        return lax.fori_loop(1, 20, lambda i, x: changes[name]((k % i == 0) & (k > 2 * i) & ~x[i], x), x)

    assert leaves_out(function, np.ones(SIZE, bool))
    agree(function, draws("int64") > 0)


def test_rows_and_columns_of_a_matrix() -> None:
    """Elimination whose masks are chosen: what is outside keeps every bit, infinities and negative zeros too."""
    n = 13

    def function(a: Any) -> Any:
        r = xarr.arange(n)

        def step(k: Any, a: Any) -> Any:
            inside = (r[:, None] > k) & (r > k)
            return xarr.where(inside, a - xarr.outer(a[:, k], a[k]) / a[k, k], a)

        return lax.fori_loop(0, n - 1, step, a)

    a = np.random.default_rng(0).normal(size=(n, n))
    agree(function, a)
    for number in (np.nan, np.inf, -0.0, 0.0):
        for at in ((0, 3), (3, 0), (5, 5), (12, 11)):
            b = a.copy()
            b[at] = number
            agree(function, b)


def test_triangles() -> None:
    """A bound of columns that depends on the row."""

    def function(a: Any) -> Any:
        r = xarr.arange(11)
        return lax.fori_loop(0, 5, lambda i, a: xarr.where(r[:, None] >= r + i, a * 2 + a[i, i], a), a)

    agree(function, np.arange(121.0).reshape(11, 11))


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (1, 5), (4, 1), (2, 3, 4)])
def test_shapes(shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        k = xarr.arange(shape[-1])
        return lax.fori_loop(0, 4, lambda i, x: xarr.where(k >= i, x * 3 + x.sum(), x), x)

    agree(function, np.arange(float(np.prod(shape))).reshape(shape))


@pytest.mark.parametrize("seed", fuzz.seeds(15, 300))
def test_random_conditions_beside_the_reference(seed: int) -> None:
    random = Random(seed)
    conditions = random.sample([*BOUNDS.values(), *OTHERS.values()], 2)
    joined = random.choice([lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x & ~y])

    def condition(k: Any, i: Any, x: Any) -> Any:
        return joined(conditions[0](k, i, x), conditions[1](k, i, x))

    function = function_of(condition, random.choice(list(CHANGES.values())), random.choice([-3, 1, SIZE - 4]))
    dtype = random.choice(["int64", "float64", "float32", "uint8", "int16", "float16"])
    x, y = draws(dtype, seed), draws(dtype, seed + 1)
    got = np.asarray(xarr.jit(function)(xarr.asarray(x), xarr.asarray(y)))
    with xarr.use_backend("reference"), np.errstate(all="ignore"):
        assert_same(got, np.asarray(function(xarr.asarray(x), xarr.asarray(y))))


def kernel_of(extent: int, runs: Runs) -> tuple[Kernel, Buffer, Buffer]:
    """`out[i] = i > number ? 1 : in[i]`."""
    values = Values()
    old, number = Buffer("in0", INT64, extent, "in"), Buffer("in1", INT64, 1, "in")
    new = Buffer("out0", INT64, extent, "out")
    index = index_value(values, "i0")
    at = Affine(((index, 1),))
    value = index.gt(load(values, number, Affine())).select(1, load(values, old, at))
    phase = Loop(index, extent, runs, [Store(new, at, value)])
    return Kernel((old, number), (new,), (), (), [phase]), new, old


@pytest.mark.parametrize(
    ("is_whole", "over", "changes"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_phases_that_threads_share_stay(is_whole: bool, over: bool, changes: bool) -> None:
    kernel, new, old = kernel_of(50, Runs.THREADS | Runs.LANES)
    result = change_in_place(kernel, {new: old} if over else {}, lambda phase: is_whole)
    assert (result is not kernel) == changes
    if changes:
        (phase,) = verify(result).phases
        (loop,) = phase.body
        assert phase.extent == 1 and isinstance(loop, Loop) and loop.first is not None
        assert loop.runs == Runs.LANES and phase.runs == Runs.THREADS
    assert kernel.phases[0].first is None, "the kernel itself stays"


def test_stores_of_other_elements_leave_nothing_out() -> None:
    kernel, new, old = kernel_of(50, Runs.LANES | Runs.THREADS)
    (phase,) = kernel.phases
    (store,) = phase.stores()
    phase.body[:] = [Store(new, Affine(((phase.index, -1),), 49), store.value)]
    assert change_in_place(kernel, {new: old}, lambda phase: True) is kernel


def test_divisors_keep_what_keeps_them_from_0() -> None:
    """A division of numbers that no iteration changes may run before it is asked whether anything changes."""
    values = Values()
    old, number, new = (
        Buffer(*each) for each in (("a", INT64, 1, "in"), ("b", INT64, 1, "in"), ("c", INT64, 1, "out"))
    )
    index = index_value(values, "i")
    divisor = load(values, number, Affine())
    is_zero = divisor.eq(0)
    quotient = is_zero.select(0, values.constant(7, INT64) / is_zero.select(1, divisor))
    at = Affine(((index, 1),))
    store = Store(new, at, load(values, old, at) | quotient)
    kernel = Kernel((old, number), (new,), (), (), [Loop(index, 1, Runs.THREADS, [store])])
    changed = change_in_place(kernel, {new: old}, lambda phase: True)
    assert changed is not kernel
    stored = [store.value for loop in changed.phases[0].walk() for store in loop.stores()]
    (division,) = {each for value in stored for each in in_order(value) if each.op == "div"}
    assert division.operands[1].op == "select"


@pytest.mark.parametrize("swaps", [False, True], ids=["one reads", "both read"])
def test_arrays_are_read_before_they_are_written_over(swaps: bool) -> None:
    def step(i: Any, state: Any) -> Any:
        x, y, rows = state
        first = (y if swaps else lax.dynamic_slice(y, (0, 0, 0), (9, 1, 8))) + i
        return xarr.where(rows, first, x), xarr.where(rows, x - 1, y), rows

    def function(*state: Any) -> Any:
        return lax.fori_loop(0, 3, step, state)

    numbers = np.arange(9 * 7 * 8.0).reshape(9, 7, 8)
    arguments = numbers, numbers[::-1] % 11, np.arange(9).reshape(9, 1, 1) % 2 == 0
    with xarr.config(fusion="off"):
        wanted = xarr.jit(function)(*arguments)
    for one, other in zip(xarr.jit(function)(*arguments), wanted, strict=True):
        assert_same(np.asarray(one), np.asarray(other))
