"""How a program of text is run: recorded as it is, or step by step, with loops and branches of Python."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.source_programs.drawing import draw_program, draw_values
from tests.support.source_programs.text import Program
from xarr import lax, tree
from xarr.base.configuration import current as config

#: What a person needs to run a text again.
PREAMBLE: Final = '''\
import numpy as np
import xarr as xp
from xarr import lax

def small(x, limit):
    """Whole numbers from 1 - limit to limit - 1, or NaN, without -0.0."""
    if np.dtype(x.dtype).kind == "c":
        return lax.complex(small(xp.real(x), limit), small(xp.imag(x), limit))
    return xp.trunc(xp.fmod(x, limit)) + 0

def reversed_rows(x):
    return np.asarray(x)[::-1].copy()

lax.register_custom_call("tests.reversed", reversed_rows)
'''
_BASE: Final[dict[str, Any]] = {}
exec(PREAMBLE, _BASE)


class Stepped:
    """`xarr.lax` whose loops, branches and functions are Python's, so that nothing is recorded."""

    def __getattr__(self, name: str) -> Any:
        return getattr(lax, name)

    def fori_loop(self, start: Any, stop: Any, body: Callable[..., Any], state: Any) -> Any:
        for i in range(int(start), int(stop)):
            state = body(xarr.asarray(i), copy_handles(state))
        return state

    def while_loop(self, going: Callable[..., Any], body: Callable[..., Any], state: Any) -> Any:
        while bool(going(copy_handles(state))):
            state = body(copy_handles(state))
        return state

    def scan(self, body: Callable[..., Any], state: Any, rows: Any, reverse: bool = False) -> Any:
        made = []
        order = range(len(rows))
        for k in reversed(order) if reverse else order:
            state, each = body(copy_handles(state), rows[k])
            made.append(each)
        if not made:
            each = _recorded_type(body, state, rows)
            return state, xarr.zeros((0, *each.shape), each.dtype)
        return state, xarr.stack(made[::-1] if reverse else made)

    def cond(self, predicate: Any, yes: Callable[..., Any], no: Callable[..., Any], *operands: Any) -> Any:
        return (yes if bool(predicate) else no)(*copy_handles(operands))

    def switch(self, index: Any, branches: list[Callable[..., Any]], *operands: Any) -> Any:
        return branches[max(0, min(int(index), len(branches) - 1))](*copy_handles(operands))

    def call(self, function: Callable[..., Any], *operands: Any) -> Any:
        return function(*copy_handles(operands))

    def map(self, function: Callable[..., Any], rows: Any) -> Any:
        return xarr.stack([function(row.copy()) for row in rows])


class SteppedNames:
    """`xarr` without `jit` and `vmap`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(xarr, name)

    def jit(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *operands: function(*copy_handles(operands))

    def vmap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda rows: xarr.stack([function(row.copy()) for row in rows])


def _recorded_type(body: Callable[..., Any], state: Any, rows: Any) -> Any:
    """The type of what a step makes that never runs, whose loops inside are recorded then."""
    scope = body.__globals__
    before = {name: scope[name] for name in ("xp", "lax")}
    scope.update(xp=xarr, lax=lax)
    try:
        return xarr.eval_shape(body, state, xarr.zeros(rows.shape[1:], rows.dtype))[1]
    finally:
        scope.update(before)


def copy_handles(state: Any) -> Any:
    """Other handles of the same values, so that what writes to one leaves the other."""
    return tree.map(lambda leaf: leaf.copy(), state)


def load(program: Program, record: Callable[[Any], None], steps: bool = False) -> Callable[..., Any]:
    """The function of a program; with `steps`, it runs step by step.  `record` is told what callbacks see."""
    scope = {**_BASE, "record": record}
    if steps:
        scope["xp"], scope["lax"] = SteppedNames(), Stepped()
    exec(compile(program.text(), "<a program of tests>", "exec"), scope)
    function: Callable[..., Any] = scope["program"]
    return function


# --- comparing --------------------------------------------------------------------------------------

Values = list[np.ndarray[Any, Any]]
#: Results and what callbacks saw, or the IndexError.
Outcome = tuple[list[Any], list[Any]] | str
#: A program that may be called again and again.
Function = Callable[[Values], Outcome]


def _outcome(call: Callable[[], Any], seen: list[Any]) -> Outcome:
    seen.clear()
    try:
        results = [np.asarray(each) for each in call()]
    except IndexError as error:
        return str(error).splitlines()[0]
    return results, list(seen)


def arrays_of(values: Values) -> list[Any]:
    """Arrays whose memory only xarr has."""
    made = [xarr.asarray(value).copy() for value in values]
    xarr.evaluate(*made)
    return made


def make_stepped(program: Program, **settings: Any) -> Function:
    seen: list[Any] = []
    function = load(program, lambda x: seen.append(np.array(x)), steps=True)

    def run(values: Values) -> Outcome:
        with config(**settings):
            return _outcome(lambda: function(*arrays_of(values)), seen)

    return run


def make_recorded(program: Program, **settings: Any) -> Function:
    seen: list[Any] = []
    function = load(program, lambda x: seen.append(np.array(x)))

    def run(values: Values) -> Outcome:
        with config(**settings):
            return _outcome(lambda: function(*arrays_of(values)), seen)

    return run


def make_jitted(program: Program, donated: tuple[int, ...] = (), **settings: Any) -> Function:
    seen: list[Any] = []
    compiled = xarr.jit(load(program, lambda x: seen.append(np.array(x))), donate_argnums=donated)

    def run(values: Values) -> Outcome:
        with config(**settings):
            arguments = arrays_of(values)
            made = _outcome(lambda: compiled(*arguments), seen)
            for number, (argument, value) in enumerate(zip(arguments, values, strict=True)):
                if number not in donated:
                    assert_same(argument, value)
        return made

    return run


def make_donating(program: Program) -> Function:
    """All arguments but the first are given away, of which others hold copies, parts and the memory."""
    numbers = tuple(range(1, len(program.arguments)))
    compiled = xarr.jit(load(program, lambda x: seen.append(np.array(x))), donate_argnums=numbers)
    seen: list[Any] = []
    kept: list[tuple[Any, Any]] = []

    def run(values: Values) -> Outcome:
        arguments = arrays_of(values)
        for number in numbers[::2]:
            kept.append((arguments[number].copy(), values[number]))
        if len(numbers) > 2:
            kept.append((np.asarray(arguments[2]), values[2]))
        made = _outcome(lambda: compiled(*arguments), seen)
        for held, value in kept:
            assert_same(held, value)
        if not isinstance(made, str):
            kept.extend((result, np.array(result)) for result in made[0])
        return made

    return run


def make_threaded(program: Program) -> Function:
    """Two threads call the function at once; a callback runs in the thread of its call."""
    own = threading.local()
    compiled = xarr.jit(load(program, lambda x: own.seen.append(np.array(x))))

    def once(values: Values) -> Outcome:
        own.seen = []
        return _outcome(lambda: compiled(*arrays_of(values)), own.seen)

    def run(values: Values) -> Outcome:
        with ThreadPoolExecutor(2) as threads:
            one, other = threads.map(once, [values] * 2)
        if isinstance(other, str):
            assert one == other
        else:
            compare(one, other)
        return one

    return run


#: Each with how often it is drawn.
WAYS: dict[str, tuple[int, Callable[[Program], Function]]] = {
    "jitted": (8, make_jitted),
    "donating": (6, make_donating),
    "from two threads": (1, make_threaded),
    "recorded, all compiled": (2, lambda program: make_recorded(program, fusion="compiled")),
    "recorded": (2, make_recorded),
    "stepped": (3, make_stepped),
    "stepped, all compiled": (
        1,
        lambda program: make_stepped(program, fusion="compiled", small_arrays="lazy"),
    ),
}
#: What is right: operation by operation, without compiled loops; each with how often it is drawn.
ORACLES: dict[str, tuple[int, Callable[[Program], Function]]] = {
    "plain": (6, lambda program: make_jitted(program, fusion="off")),
    "stepped, plain": (3, lambda program: make_stepped(program, fusion="off")),
    "stepped by the reference": (1, lambda program: make_stepped(program, backend="reference")),
}


def compare(mine: Outcome, wanted: Outcome) -> None:
    """Raise AssertionError unless results and what callbacks saw are the same bits."""
    assert not isinstance(mine, str), f"raises {mine}"
    if isinstance(wanted, str):
        return
    for name, ours, theirs in zip(("results", "what callbacks saw"), mine, wanted, strict=True):
        assert len(ours) == len(theirs), f"{name}: got {len(ours)}, wanted {len(theirs)}"
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            try:
                assert_same(one, other)
            except AssertionError as error:
                raise AssertionError(f"{name}: number {number}: {error}") from None


def check(program: Program, seed: int, way: str, oracle: str, counts: tuple[int, ...] = (3, 0, 2)) -> None:
    """Raise AssertionError unless all calls of a program give what the oracle gives."""
    function, right = WAYS[way][1](program), ORACLES[oracle][1](program)
    plain: list[Function] = []
    for call, count in enumerate(counts):
        values = draw_values(program, 10 * seed + call, count)
        wanted = right([value.copy() for value in values])
        got = function([value.copy() for value in values])
        if isinstance(wanted, str) and oracle.startswith("stepped") and not way.startswith("stepped"):
            # What is out of bounds may be needed by nobody: then it is no error of a function that is recorded.
            plain = plain or [make_jitted(program, fusion="off")]
            wanted = plain[0]([value.copy() for value in values])
        if way.startswith("stepped") and isinstance(got, str) and not oracle.startswith("stepped"):
            continue
        if isinstance(wanted, str):
            assert got == wanted, f"raises {got!r}, wanted {wanted!r}"
        else:
            compare(got, wanted)


def draw(seed: int) -> tuple[Program, str, str]:
    """A program, one of WAYS and one of ORACLES."""
    random = fuzz.generator("source programs", seed)
    program = draw_program(random)
    way, oracle = (
        random.choices(list(table), [weight for weight, _ in table.values()])[0] for table in (WAYS, ORACLES)
    )
    return program, way, oracle
