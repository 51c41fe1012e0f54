"""Commands that repeat others: so many times, or until a condition does not hold, which the host reads now and then."""

from __future__ import annotations

from typing import Final, NamedTuple

from xarr.compiler.plan.program_plan import Step
from xarr.ir.graph import Node
from xarr_cupy import host
from xarr_cupy.runtime.commands import Commands, Frame, LocatedArray, run_all

#: Pairs of iterations that are launched at most before the host looks whether any of them was the last.
MOST_PAIRS: Final = 64


def read_condition(step: Step, holds: LocatedArray, frame: Frame) -> bool:
    """A bool that says whether a loop goes on."""
    host.CALLS[step.op.name, host.CONTROL[step.word]] += 1
    return bool(frame.read(holds))


class Repeating(NamedTuple):
    """Run commands so many times."""

    node: Node
    commands: Commands
    times: int

    def run(self, frame: Frame) -> None:
        for _ in range(self.times):
            run_all(self.commands, frame)


class Continuing(NamedTuple):
    """Run `first`, and `following` as long as `more` is true behind them, which the host reads."""

    node: Node
    step: Step
    first: Commands
    following: Commands
    more: LocatedArray

    def run(self, frame: Frame) -> None:
        run_all(self.first, frame)
        while read_condition(self.step, self.more, frame):
            run_all(self.following, frame)


class Batching(NamedTuple):
    """Run a loop of which nobody knows how many iterations it has, whose kernels look at its conditions themselves.

    * `start` - what copies the state to its first memory, and makes both conditions true,
    * `pair` - two iterations: from the first memory to the second, and back.  What they launch does nothing once the
      loop has ended,
    * `conditions` - two bools: whether the state in the first memory goes on, and whether that in the second does.  The
      one that does not is the last,
    * `finish` - for each of them what copies the state to the results.

    The host looks after 1, 2, 4 … pairs, so no more of them are in vain than were needed, and `MOST_PAIRS` at most.
    """

    node: Node
    step: Step
    start: Commands
    pair: Commands
    conditions: LocatedArray
    finish: tuple[Commands, Commands]

    def run(self, frame: Frame) -> None:
        run_all(self.start, frame)
        pairs = 1
        while True:
            for _ in range(pairs):
                run_all(self.pair, frame)
            host.CALLS[self.step.op.name, host.BATCHES] += 1
            first, second = frame.read(self.conditions)
            if not (first and second):
                break
            pairs = min(2 * pairs, MOST_PAIRS)
        run_all(self.finish[0 if not first else 1], frame)


class Iteration(NamedTuple):
    """An iteration of a loop whose state lies in certain memory.

    * `condition`, `holds` - what computes whether there is one more iteration, and where that bool is then,
    * `body`, `following` - what computes the next state, and the number of the iteration that finds it,
    * `finish` - what copies the state to the results if the loop ends here.
    """

    condition: Commands
    holds: LocatedArray
    body: Commands
    following: int
    finish: Commands


class Looping(NamedTuple):
    """Run a loop, whose condition the host reads before each iteration.

    `start` copies what is carried to the state of the first of `iterations`.
    """

    node: Node
    step: Step
    start: Commands
    iterations: tuple[Iteration, ...]

    def run(self, frame: Frame) -> None:
        run_all(self.start, frame)
        present = self.iterations[0]
        while self._holds(present, frame):
            run_all(present.body, frame)
            present = self.iterations[present.following]
        run_all(present.finish, frame)

    def _holds(self, iteration: Iteration, frame: Frame) -> bool:
        run_all(iteration.condition, frame)
        return read_condition(self.step, iteration.holds, frame)
