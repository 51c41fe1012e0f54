"""Commands that repeat others: so many times, or until a condition does not hold, which the host reads now and then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from xarr.base.progress import CountSteps, show_progress
from xarr.compiler.plan.program_plan import Step
from xarr.ir.graph import Node
from xarr.ir.ops import Progress
from xarr_cupy import host
from xarr_cupy.runtime.commands import Commands, Frame, LocatedArray, run_all

#: Pairs of iterations that are launched at most before the host looks whether any of them was the last.
MOST_PAIRS: Final = 64
#: Where a library computes a part, which does not look whether the loop has ended: one pair of so many that are done.
PAIRS_FOR_ONE: Final = 16


def read_condition(step: Step, holds: LocatedArray, frame: Frame) -> bool:
    """A bool that says whether a loop goes on."""
    host.CALLS[step.op.name, host.CONTROL[step.word]] += 1
    return bool(frame.read(holds))


@contextmanager
def outermost_count(frame: Frame) -> Iterator[CountSteps]:
    """A context with the function that is told of iterations that are done; loops inside are not counted."""
    count, frame.count = frame.count, None
    try:
        yield count or (lambda iterations: None)
    finally:
        frame.count = count


class ShowingProgress(NamedTuple):
    """Run a loop and show how far it is, in a bar of its own or, if `counts`, where the steps of the plan are shown.

    `iterations` - how many it has, where that is known, `carried` - the values before the first one, `commands` - the
    loop.
    """

    node: Node
    progress: Progress | None
    counts: bool
    iterations: int | None
    carried: tuple[LocatedArray, ...]
    commands: Commands

    def run(self, frame: Frame) -> None:
        progress, total = self.progress, self.iterations
        if total is None and progress is not None and progress.counter is not None:
            read = {number: frame.read(self.carried[number]) for number in progress.counter}
            total = progress.total([read.get(number) for number in range(len(self.carried))])
        if self.counts and frame.counter is not None:
            self._run(frame, frame.counter.iterate, total)
        elif progress is None:
            run_all(self.commands, frame)
        else:
            with show_progress(progress.label, total) as counter:
                self._run(frame, counter.step, total)

    def _run(self, frame: Frame, tell: CountSteps, total: int | None) -> None:
        done = 0

        def count(iterations: int) -> None:
            nonlocal done
            frame.device.wait()
            iterations = iterations if total is None else min(iterations, total - done)
            done += iterations
            tell(iterations)

        # The last repetition is that of the loop; those before belong to loops inside of its first iterations.
        numbers = [
            k for k, each in enumerate(self.commands) if isinstance(each, Repeating | Batching | Looping)
        ]
        last = (
            numbers[-1]
            if numbers and (self.iterations is None or self.iterations > 2)
            else len(self.commands)
        )
        run_all(self.commands[:last], frame)
        frame.count = count
        try:
            run_all(self.commands[last:], frame)
        finally:
            frame.count = None
        # Iterations that are no repetition of others, or were done by one launch.
        if total is not None and total > done:
            count(total - done)


class Repeating(NamedTuple):
    """Run commands, which are so many iterations of a loop, so many times."""

    node: Node
    commands: Commands
    times: int
    iterations: int = 2

    def run(self, frame: Frame) -> None:
        with outermost_count(frame) as count:
            for _ in range(self.times):
                run_all(self.commands, frame)
                count(self.iterations)


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
    * `finish` - for each of them what copies the state to the results,
    * `has_libraries` - whether a library does a part of each pair, to memory that nobody reads once the loop has ended.

    The host looks after 1, 2, 4 … pairs, so no more of them are in vain than were needed, and `MOST_PAIRS` at most.
    With libraries it looks after each pair, and later after a sixteenth of those that are done.
    """

    node: Node
    step: Step
    start: Commands
    pair: Commands
    conditions: LocatedArray
    finish: tuple[Commands, Commands]
    has_libraries: bool = False

    def run(self, frame: Frame) -> None:
        run_all(self.start, frame)
        pairs, done = 1, 0
        with outermost_count(frame) as count:
            while True:
                for _ in range(pairs):
                    run_all(self.pair, frame)
                host.CALLS[self.step.op.name, host.BATCHES] += 1
                first, second = frame.read(self.conditions)
                if not (first and second):
                    break
                # Of the last batch nobody knows how many were needed.
                count(2 * pairs)
                done += pairs
                pairs = min(max(1, done // PAIRS_FOR_ONE) if self.has_libraries else 2 * pairs, MOST_PAIRS)
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
        with outermost_count(frame) as count:
            while self._holds(present, frame):
                run_all(present.body, frame)
                present = self.iterations[present.following]
                count(1)
        run_all(present.finish, frame)

    def _holds(self, iteration: Iteration, frame: Frame) -> bool:
        run_all(iteration.condition, frame)
        return read_condition(self.step, iteration.holds, frame)
