"""The driver of all random tests: their seeds, how many a run draws, and the checks that families of draws share.

A seed decides its draws, and a test that fails has it in its name.  A run of the suite takes the first seeds of each
test, one of `--thorough` all.  Where a failing draw is made smaller, by hypothesis, `examples` says how many there are.
FUZZ_SEED=7 in the environment, or any other word, draws others.

Of the calls of `xarr.lax` in `tests/support/draws`, many make one program, so that XLA compiles once, and its answers
are kept (`tests/support/answers.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, Final

import jax
import numpy as np
import pytest
from hypothesis import settings
from jax._src.lax import windowed_reductions

import xarr
from tests.compare import assert_same
from tests.lax_oracle import jax_function
from tests.support.answers import recorded, source_of
from tests.xla import run_stablehlo
from xarr import lax
from xarr.errors import DTypeError, InputError, ShapeError, ValueRangeError

HostArray = np.ndarray[Any, Any]
#: Of `xarr.lax` or what stands for `jax.lax`, and the operands.
Call = Callable[[Any, tuple[Any, ...]], Any]

#: Calls of one seed, which make one program.
COUNT: Final = 50
_WORD: Final = os.environ.get("FUZZ_SEED", "")


@dataclass(frozen=True)
class Drawn:
    """A call, its operands, and how far its results may lie from the oracle's.

    `ulp` counts representable numbers, `roundings` roundings of the largest number among operands and results;
    `compare`, where there is one, raises AssertionError for a result that lies too far from the oracle's.
    Of an array with a dynamic dimension, XLA returns the buffer.
    """

    call: Call
    operands: Sequence[HostArray]
    ulp: float = 0
    roundings: float = 0
    name: str = ""
    is_dynamic: bool = False
    compare: Callable[[Any, HostArray], None] | None = None

    def __repr__(self) -> str:
        shown = ", ".join(f"{np.asarray(x).dtype}{list(np.shape(x))}" for x in self.operands)
        return f"{self.name} of {shown}"


Draw = Callable[[Random], Drawn]


def seeds(quick: int, total: int = 10) -> list[Any]:
    """`total` seeds, of which all but the first `quick` belong to thorough runs."""
    return [*range(quick), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(quick, total))]


def one_of_last(*values: Iterable[Any]) -> list[Any]:
    """All combinations of values, of which a normal run takes each of all but the last with one of the last, in turn.

    So each of the last meets each of the others where these are as many.
    """
    *others, last = [[*each] for each in values]
    wanted = [[*enumerate(each)] for each in others]
    return [
        pytest.param(*first, final, marks=() if sum(numbers) % len(last) == own else pytest.mark.thorough)
        for numbers, first in (zip(*each, strict=True) for each in product(*wanted))
        for own, final in enumerate(last)
    ]


def one_in(step: int, values: Sequence[Any], number: int) -> Sequence[Any]:
    """Of the values those at `number`, `number + step` and so on, round and round; all in thorough runs.

    For loops in a test: `number` counts the iterations around, so that each value meets one in `step` of the others.
    """
    return values if _is_thorough() else values[number % step :: step]


def examples(quick: int) -> settings:
    """Settings of hypothesis with `quick` examples, and 50 times as many in thorough runs."""
    return settings(max_examples=quick * (50 if _is_thorough() else 1), derandomize=not _WORD)


def _is_thorough() -> bool:
    return settings.get_current_profile_name() == "thorough"


def generator(name: str, seed: int | str) -> Random:
    """Random numbers, which the name, the seed and FUZZ_SEED decide."""
    return Random(f"{name} {seed} {_WORD}")


@contextmanager
def showing(text: Callable[[], str]) -> Iterator[None]:
    """Add to an AssertionError the text of what was drawn."""
    try:
        yield
    except AssertionError as error:
        error.add_note(text())
        raise


def draw_calls(name: str, draw: Draw, seed: int, count: int = COUNT) -> list[Drawn]:
    """`count` calls, which the name and the seed decide."""
    random = generator(name, seed)
    return [draw(random) for _ in range(count)]


class _Jax:
    """jax.lax, and what it has as primitives only."""

    linalg = jax.lax.linalg
    select_and_scatter = staticmethod(windowed_reductions._select_and_scatter)

    def __getattr__(self, name: str) -> Any:
        return jax_function(name)


# --- the oracles --------------------------------------------------------------------------------------


def check_with_jax(
    name: str, draw: Draw, seed: int, backends: Sequence[str] = ("numpy",), count: int = COUNT
) -> None:
    """Raise AssertionError unless the calls give on each backend what jax.lax gives."""
    rows = draw_calls(name, draw, seed, count)
    source = source_of(sys.modules[draw.__module__])

    @recorded
    def by_jax(name: str, seed: int, operands: Any, source: str) -> Any:
        def every(operands: Any) -> list[Any]:
            return [row.call(_Jax(), each) for row, each in zip(rows, operands, strict=True)]

        return jax.jit(every)(operands)

    _compare(rows, by_jax(name, seed, [tuple(row.operands) for row in rows], source), backends)


def check_with_xla(name: str, draw: Draw, seed: int, count: int = COUNT) -> None:
    """Raise AssertionError unless the calls give on both backends what XLA makes of the text that xarr prints."""
    rows = draw_calls(name, draw, seed, count)
    assert _unknown_to_xla(rows) <= count // 20


def _unknown_to_xla(rows: list[Drawn]) -> int:
    """Compare all calls, which are one program; returns how many of them XLA on the CPU cannot run."""
    flat = [operand for row in rows for operand in row.operands]

    def every(*operands: Any) -> list[Any]:
        rest = iter(operands)
        return _leaves([row.call(lax, tuple(next(rest) for _ in row.operands)) for row in rows])

    results = _by_xla(str(xarr.lower(every, *flat).stage("traced")), *flat)
    if results:
        _compare(rows, results, ("numpy", "reference"))
        return 0
    return sum(_unknown_to_xla([row]) for row in rows) if len(rows) > 1 else 1


def _by_xla(text: str, *operands: Any) -> list[HostArray]:
    """The results of a module; none if XLA refuses it, as it does some dynamic dimensions in the middle."""
    try:
        return run_stablehlo(text, *operands)
    except jax.errors.JaxRuntimeError as error:
        if "UNIMPLEMENTED" not in str(error):
            raise
        return []


def _compare(rows: list[Drawn], wanted: list[HostArray], backends: Sequence[str]) -> None:
    for backend in backends:
        rest = iter(wanted)
        with xarr.use_backend(backend):
            for row in rows:
                for mine in _leaves(row.call(lax, tuple(map(xarr.asarray, row.operands)))):
                    try:
                        _compare_one(mine, next(rest), row)
                    except AssertionError as error:
                        raise AssertionError(
                            f"{backend} and XLA differ: {row}\n{row.operands}\n{error}"
                        ) from None
        assert not list(rest), "XLA has more results"


def _leaves(results: Any) -> list[Any]:
    return jax.tree.leaves(results, is_leaf=lambda leaf: isinstance(leaf, xarr.Array))


def _compare_one(mine: Any, exact: HostArray, row: Drawn) -> None:
    if row.compare is not None:
        row.compare(mine, exact)
    elif row.is_dynamic:
        # XLA lays the live elements of a buffer out as if it had the live sizes.
        shape = np.asarray(mine).shape
        assert_same(np.asarray(mine), exact.reshape(-1)[: int(np.prod(shape, dtype=int))].reshape(shape))
    elif not row.roundings or exact.dtype.kind in "biu":
        assert_same(mine, exact, ulp=row.ulp, normwise=exact.dtype.kind == "c")
    else:
        got = np.asarray(mine)
        assert (got.dtype, got.shape) == (exact.dtype, exact.shape)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
        sizes = [float(np.nanmax(np.abs(x), initial=0)) for x in (exact, *row.operands)]
        limit = row.roundings * float(np.finfo(got.dtype).eps) * max(1.0, *sizes)
        np.testing.assert_allclose(got, exact, rtol=0, atol=limit)


# --- what must be refused -----------------------------------------------------------------------------

#: Of an operand, others that the call may take or not, by what was done to it.
Changes = Callable[[HostArray], Mapping[str, Callable[[], HostArray]]]


def changed_calls(name: str, draw: Draw, changes: Changes, count: int) -> Iterator[tuple[Call, Any, str]]:
    """`count` calls with an operand of another shape or element type, which may still be right."""
    random = generator(name, "changed")
    for _ in range(count):
        row = draw(random)
        operands = list(row.operands)
        position = random.randrange(len(operands))
        others = changes(np.asarray(operands[position]))
        change = random.choice(list(others))
        operands[position] = others[change]()
        yield row.call, tuple(operands), change


def check_refusals(calls: Iterator[tuple[Call, Any, str]]) -> int:
    """Raise AssertionError unless each call that jax.lax refuses is refused; returns how many those are."""
    count = 0
    for call, operands, change in calls:

        def theirs(call: Call = call, operands: Any = operands) -> object:
            return jax.eval_shape(lambda *arrays: call(_Jax(), arrays), *operands)

        def mine(call: Call = call, operands: Any = operands) -> object:
            return call(lax, operands)

        # Of other errors than its own JAX has many: AssertionError, IndexError, ValueError …
        if refuses(theirs, Exception):
            count += 1
            shown = [(str(np.asarray(x).dtype), np.shape(x)) for x in operands]
            assert refuses(mine, ShapeError, DTypeError, InputError, ValueRangeError), (change, shown)
    return count


def refuses(apply: Callable[[], object], *errors: type[Exception]) -> bool:
    """Whether a call raises one of the errors."""
    try:
        apply()
    except errors:
        return True
    return False
