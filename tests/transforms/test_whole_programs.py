"""Random whole programs give what NumPy gives: recorded, compiled, donated to, one by one, and from two threads."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz, whole_programs as programs
from tests.support.whole_programs import Language, OneByOne, Program, Recorded, Statement
from xarr.base.configuration import current as config

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

Results = tuple[Any, ...]
#: A program as a function of how often some loops run, and of its arrays.
Function = Callable[[int, programs.State], Results]


def arrays_of(state: programs.State) -> programs.State:
    return {name: xarr.asarray(value).evaluate() for name, value in state.items()}


def plainly(program: Program, language: Language, **settings: str) -> Function:
    def function(count: int, state: programs.State) -> Results:
        with config(**settings):
            return tuple(map(np.asarray, program.run(language, xarr.asarray(count), arrays_of(state))))

    return function


def make_jitted(program: Program, donated: tuple[int, ...] = (), **settings: str) -> Function:
    compiled = xarr.jit(lambda count, state: program.run(Recorded(), count, state), donate_argnums=donated)

    def function(count: int, state: programs.State) -> Results:
        with config(**settings):
            arrays = {name: (value.copy() if donated else value) for name, value in arrays_of(state).items()}
            xarr.evaluate(*arrays.values())
            return tuple(map(np.asarray, compiled(xarr.asarray(count), arrays)))

    return function


def from_two_threads(program: Program) -> Function:
    compiled = make_jitted(program)

    def function(count: int, state: programs.State) -> Results:
        with ThreadPoolExecutor(2) as threads:
            made = list(threads.map(lambda _: compiled(count, state), range(2)))
        for one, other in zip(*made, strict=True):
            assert_same(one, other)
        return made[0]

    return function


#: Each with how often it is drawn.
WAYS: dict[str, tuple[int, Callable[[Program], Function]]] = {
    "jitted": (6, make_jitted),
    "donated": (6, lambda program: make_jitted(program, (1,))),
    "from two threads": (2, from_two_threads),
    "jitted, by single operations": (1, lambda program: make_jitted(program, fusion="off")),
    "recorded, all compiled": (2, lambda program: plainly(program, Recorded(), fusion="compiled")),
    "recorded": (2, lambda program: plainly(program, Recorded())),
    "one by one": (3, lambda program: plainly(program, OneByOne())),
    "one by one, recorded": (1, lambda program: plainly(program, OneByOne(), small_arrays="lazy")),
}


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def check(way: str, program: Program, seed: int) -> None:
    """Raise AssertionError unless the results are NumPy's, however often the loops run, and arguments stay."""
    function = WAYS[way][1](program)
    for count in (seed % 4, 0, 1, seed % 4, 3):
        state = program.inputs(seed + count, specials=seed % 3 == 0)
        before = {name: value.copy() for name, value in state.items()}
        try:
            wanted = program.run(programs.Numpy(), np.int64(count), state)
        except IndexError:
            with contextlib.suppress(IndexError):  # nobody may need what is out of bounds
                function(count, state)
            continue
        for one, other in zip(function(count, state), wanted, strict=True):
            assert_same(one, np.asarray(other))
        for name, value in state.items():
            assert_same(value, before[name])


def check_seed(seed: int) -> None:
    random = fuzz.generator("whole programs", seed)
    program = programs.draw_program(random)
    way = random.choices(list(WAYS), [weight for weight, _ in WAYS.values()])[0]
    with fuzz.showing(lambda: f"{way}, seed {seed}:\n{program}"):
        check(way, program, seed)


@pytest.mark.parametrize("seed", fuzz.seeds(10, 1000))
def test_results_are_those_of_numpy(seed: int) -> None:
    check_seed(seed)


@pytest.mark.parametrize("name", list(programs.WAYS))
@pytest.mark.parametrize("dtype", fuzz.seeds(0, len(set(programs.DTYPES))))
def test_each_statement_in_a_loop(name: str, dtype: int) -> None:
    for number in range(len(programs.WAYS[name])):
        other = {"x": "y", "u": "v"}.get(name, name)
        block = (
            Statement("let", name, (name, other), (number, 2, 3, 4)),
            Statement("let", "x", ("x", "y"), (1, 2, 3, 4)),
        )
        loop = Statement("loop", numbers=(1, 5, 0, 0), blocks=(block,))
        program = Program(sorted(set(programs.DTYPES))[dtype], "float64", (9, 6), (loop,), (name,))
        with fuzz.showing(lambda program=program: str(program)):
            check("jitted", program, 3)


@pytest.mark.parametrize("seed", fuzz.seeds(2, 40))
def test_the_reference_gives_what_numpy_gives(seed: int) -> None:
    program = programs.draw_program(fuzz.generator("whole programs", seed), programs.SHAPES[:1])
    state = program.inputs(seed, specials=False)
    with contextlib.suppress(IndexError), xarr.use_backend("reference"):
        wanted = program.run(programs.Numpy(), np.int64(1), state)
        for one, other in zip(plainly(program, Recorded())(1, state), wanted, strict=True):
            assert_same(one, np.asarray(other))


@pytest.mark.parametrize("start", [-13, -2, 3, 11])
def test_slices_of_both_languages_begin_at_the_same_elements(start: int) -> None:
    x = np.arange(12)
    own, theirs, at = Recorded(), programs.Numpy(), (xarr.asarray(start),)
    assert_same(np.asarray(own.slice(xarr.asarray(x), at, (6,))), theirs.slice(x, (start,), (6,)))
    written = own.put_slice(xarr.asarray(x), xarr.zeros(6, x.dtype), at)
    assert_same(np.asarray(written), theirs.put_slice(x, np.zeros_like(x[:6]), (start,)))


class Wrong(Recorded):
    """Loops that end a step too early."""

    def loop(self, start: Any, stop: Any, body: Callable[..., Any], state: programs.State) -> programs.State:
        return super().loop(start, stop - 1, body, state)


def test_a_wrong_result_is_seen_and_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAYS, "wrong", (0, lambda program: plainly(program, Wrong())))

    def fails(program: Program) -> bool:
        try:
            check("wrong", program, 1)
        except AssertionError:
            return True
        return False

    add = Statement("let", "s", ("s", "s"), (4, 0, 0, 0))
    loop = Statement(
        "loop", numbers=(1, 3, 0, 0), blocks=((add, Statement("let", "u", ("u", "v"), (0, 0, 0, 0))),)
    )
    program = Program("int64", "int32", (9, 6), (add, loop, add), ("u", "s"))
    assert fails(program)
    least = programs.minimise(program, fails)
    assert (
        least.shape == (6, 7) and len(least.results) == len(least.block) == len(least.block[0].blocks[0]) == 1
    )
