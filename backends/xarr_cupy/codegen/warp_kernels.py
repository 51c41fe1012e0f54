"""Kernels of phases whose points the lanes of a warp work on together.

The lanes go through the loops that they share, each taking every 32nd iteration.  What a loop accumulates they combine
by shuffles.  What stands outside of such loops all compute, and one stores.

Of a phase that holds its rows (`Loop.sharers`) what iterations compute stays in registers from loop to loop.  A thread
has a fixed number of iterations: loops over them are unrolled, and arrays over them, which nothing but a constant
counts then, are registers.  All elements are loaded before something is computed of them, so that a thread waits for
all of them at once.  Where several rows share a warp, a thread has the iterations of several lanes of a whole one, with
a partial result for each of these, and they combine as lanes would: results have the same bits however many share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from xarr.compiler.loop_ir.held_rows import HeldLoop, held_loops
from xarr.compiler.loop_ir.loops import (
    Accumulator,
    Kernel,
    Loop,
    LoopError,
    Prefix,
    Runs,
    Store,
    grid_loops,
)
from xarr.compiler.loop_ir.scalars import Value
from xarr_cupy.codegen.kernel_calls import BLOCK, MOST_BLOCKS
from xarr_cupy.codegen.sizes import Sizes
from xarr_cupy.codegen.spelling import choose, enclose, type_name
from xarr_cupy.codegen.thread_kernels import MOST_NARROW, ThreadPrinter

WARP: Final = 32
ALL_LANES: Final = "0xffffffffu"
#: Steps of all threads through a tile, up to which each stands for itself: what is equal in all chunks of a product is
#: computed once then.
_MOST_STEPS: Final = 2**3


class WarpPrinter(ThreadPrinter):
    """The text of a phase, of whose grid each warp has points: its lanes share the terms of reductions."""

    #: The word of the loops that are shared, and how many threads share them.
    word, threads = Runs.WARP, WARP
    #: What makes threads wait for each other, after which each reads what others stored.
    barrier = "__syncwarp();"

    def __init__(self, kernel: Kernel, phase: Loop, sizes: Sizes) -> None:
        super().__init__(kernel, phase, sizes)
        #: Whether a line is run by a thread for an iteration of its own.
        self.is_alone = False
        sharers = grid_loops(phase)[-1].sharers
        if sharers not in (0, *self.possible_sharers()):
            raise LoopError(f"no CUDA C++ for rows that {sharers} threads share")
        held = held_loops(phase) if sharers else []
        if sizes.are_parameters and not any(each.kept for each in held):
            # The text would not serve all lengths of rows, for the sake of a loop that needs nothing of another one.
            sharers, held = 0, []
        #: How many threads have a point; of phases that hold their rows what loops keep, and the arrays of that.
        self.sharers = sharers or self.threads
        self.held = {each.loop: each for each in held}
        self.rows: dict[Value, str] = {}
        #: Whether some lanes of a warp may have no point where others have one, and the condition of those that have.
        self.is_partial = self.sharers < WARP and (
            sizes.are_parameters or self.points * self.sharers % WARP > 0
        )
        self.has_point = ""

    def possible_sharers(self) -> Sequence[int]:
        """The numbers of threads that may have a point."""
        return [2**k for k in range(6)]

    @property
    def own(self) -> str:
        """The own number among the threads that have a point."""
        return f"threadIdx.x % {self.sharers}"

    @property
    def blocks(self) -> int:
        return min(-(-self.points * self.sharers // BLOCK), MOST_BLOCKS)

    def head(self) -> str:
        number, wide = ("int", "") if self.points <= MOST_NARROW // WARP else ("int64", "(int64)")
        end, threads, own, first = self.grid_size(), self.sharers, "i", "i"
        if self.is_partial:
            # All lanes go on as long as one has a point: they combine what they have.
            own = self.new("point")
            first, self.has_point = f"{own} - threadIdx.x % {WARP} / {threads}", f"{own} < {end}"
        start = f"for ({number} {own} = ({wide}blockIdx.x * blockDim.x + threadIdx.x) / {threads}; {first} < {end}; "
        return f"{start}{own} += {wide}gridDim.x * blockDim.x / {threads}) {{"

    def begin_point(self) -> None:
        """Lanes without a point compute what those of the last one do, and store nothing."""
        if self.has_point:
            own, _, end = self.has_point.partition(" < ")
            number = "int" if self.points <= MOST_NARROW // WARP else "int64"
            self.line(f"const {number} i = {self.has_point} ? {own} : {end} - 1;")

    def stores(self, stores: Sequence[Store]) -> None:
        if self.is_alone:
            super().stores(stores)
            return
        self.open(f"if ({_both(f'{self.own} == 0', self.has_point)}) {{")
        super().stores(stores)
        self.close()
        self.line(self.barrier)

    def loop(self, loop: Loop) -> None:
        if loop.runs == self.word:
            self.shared_loop(loop)
        else:
            super().loop(loop)

    # --- loops that are shared ---------------------------------------------------------------------------

    def shared_loop(self, loop: Loop) -> None:
        """A loop whose iterations all threads share; only what it accumulates is known behind it."""
        both = bool(loop.body and loop.accumulators)
        if self.is_alone or both or loop.carries or loop.prefixes or loop.search or loop.condition:
            raise LoopError(
                f"no CUDA C++ for a loop shared by {loop.runs} that is nested in another shared loop, "
                "carries or searches"
            )
        if loop in self.held:
            self.held_loop(self.held[loop])
            return
        if loop.accumulators:
            self.accumulate(loop)
            return
        self.open_shared(loop)
        self.run_alone(loop)
        self.close()
        self.line(self.barrier)

    def run_alone(self, loop: Loop) -> None:
        """The body of an iteration, by the thread that has it."""
        self.is_alone = True
        self.body(loop.body)
        self.is_alone = False

    def accumulate(self, loop: Loop) -> None:
        """Accumulate what each thread has, and combine it."""
        held = [self.declare_held(accumulator) for accumulator in loop.accumulators]
        self.open_shared(loop)
        for accumulator, names in zip(loop.accumulators, held, strict=True):
            self.accumulate_terms(accumulator, names)
        self.close()
        for accumulator, names in zip(loop.accumulators, held, strict=True):
            self.share(accumulator, names)

    def accumulate_terms(self, accumulator: Accumulator, names: Sequence[str]) -> None:
        """Combine variables with the terms of an iteration."""
        right = accumulator.arguments or accumulator.right
        terms = [self.term_of(term, each) for term, each in zip(accumulator.terms, right, strict=True)]
        self.combine(accumulator, names, right, terms, accumulator.step or accumulator.combined)

    def term_of(self, term: Value, argument: Value) -> str:
        """The expression of a term if the computation of an argument uses it once, else its variable."""
        is_used_once = self.uses[argument] == 1 and argument not in self.typed
        return self.term(term) if is_used_once else self.value(term)

    def open_shared(self, loop: Loop) -> None:
        """The head of a loop over the own iterations."""
        extent, index = self.extent(loop), self.new(loop.index.attribute)
        number = "int" if loop.max_iterations <= MOST_NARROW else "int64"
        if loop.is_of_tile and loop.extent in range(
            self.threads, _MOST_STEPS * self.threads + 1, self.threads
        ):
            first = self.new("first")
            self.line("#pragma unroll")
            self.open(f"for (int {first} = 0; {first} < {extent}; {first} += {self.threads}) {{")
            self.line(f"const int {index} = {first} + {self.own};")
        else:
            self.open(
                f"for ({number} {index} = {self.own}; {index} < {extent}; {index} += {self.threads}) {{"
            )
        self.names[loop.index] = index

    def declare_held(self, accumulator: Accumulator, parts: int = 1) -> list[str]:
        """Variables of a thread's own partial results, or arrays of so many."""
        names = []
        for identity in accumulator.identities:
            initial, name = self.value(identity), self.new("total")
            if parts == 1:
                self.line(f"{type_name(identity.dtype)} {name} = {initial};")
            else:
                starts = ", ".join([initial] * parts)
                self.line(f"{type_name(identity.dtype)} {name}[{parts}] = {{{starts}}};")
            names.append(name)
        return names

    def combine(
        self,
        accumulator: Accumulator | Prefix,
        targets: Sequence[str],
        right: Sequence[Value],
        terms: Sequence[str],
        combined: Sequence[Value],
    ) -> None:
        """Assign to variables what they and terms are combined to."""
        left = accumulator.left if isinstance(accumulator, Accumulator) else [accumulator.left]
        self.names.update(zip(left, targets, strict=True))
        self.names.update(zip(right, terms, strict=True))
        if len(combined) == 1:
            self.assign(targets[0], combined[0])
            return
        # An unchanged one may be assigned to another.
        new = [self.new("v") for _ in combined]
        for name, value in zip(new, combined, strict=True):
            self.line(f"const {type_name(value.dtype)} {name} = {self.value(value)};")
        for target, name in zip(targets, new, strict=True):
            self.line(f"{target} = {name};")

    def share(self, accumulator: Accumulator, names: Sequence[str]) -> None:
        """Combine the partial results of all lanes of a warp that have a point: each lane has the result."""
        self.open(f"for (int lanes = {min(self.sharers, WARP) // 2}; lanes > 0; lanes /= 2) {{")
        others = [
            self.read_lane("xor", name, result, "lanes")
            for name, result in zip(names, accumulator.results, strict=True)
        ]
        self.combine(accumulator, names, accumulator.right, others, accumulator.combined)
        self.close()
        self.names.update(zip(accumulator.results, names, strict=True))

    def read_lane(self, how: str, name: str, value: Value, distance: str) -> str:
        """A variable with what another lane has in one."""
        other = self.new("other")
        self.line(
            f"const {type_name(value.dtype)} {other} = __shfl_{how}_sync({ALL_LANES}, {name}, {distance});"
        )
        return other

    # --- rows that are held ------------------------------------------------------------------------------

    def held_loop(self, held: HeldLoop) -> None:
        """A loop whose iterations of a thread are unrolled, and keep what later ones need."""
        loop, parts = held.loop, self.threads // self.sharers
        for value in held.common:
            self.value(value)
        extent = self.extent(loop)
        self.load_rows(held, extent)
        computed = [value for value in held.kept if value not in held.loads]
        known = dict(self.rows)
        self.declare_rows(loop, computed)
        totals = [self.declare_held(each, parts) for each in loop.accumulators]
        number = self.open_iterations(loop)
        exists = self.existence(loop, number, extent)
        exists = _both(exists, self.has_point if loop.body else "")
        if exists:
            self.open(f"if ({exists}) {{")
        self.names.update({value: f"{row}[{number}]" for value, row in known.items()})
        for value in computed:
            self.keep(value, number, self.expression(value))
        part = f"[{number} % {parts}]" if parts > 1 else ""
        for accumulator, names in zip(loop.accumulators, totals, strict=True):
            self.accumulate_terms(accumulator, [f"{name}{part}" for name in names])
        self.run_alone(loop)
        if exists:
            self.close()
        self.close()
        for accumulator, names in zip(loop.accumulators, totals, strict=True):
            self.share(accumulator, self.combine_parts(accumulator, names, parts))

    def load_rows(self, held: HeldLoop, extent: str) -> None:
        """Arrays of the elements that a loop loads."""
        if not held.loads:
            return
        known = dict(self.rows)
        self.declare_rows(held.loop, held.loads)
        number = self.open_iterations(held.loop)
        exists = self.existence(held.loop, number, extent)
        self.names.update({value: f"{row}[{number}]" for value, row in known.items()})
        for value in held.loads:
            text = self.expression(value)
            self.keep(
                value, number, choose(exists, text, f"{type_name(value.dtype)}{{}}") if exists else text
            )
        self.close()

    def declare_rows(self, loop: Loop, values: Sequence[Value]) -> None:
        """Declare arrays of values of all iterations of a thread."""
        for value in values:
            self.rows[value] = self.new("row")
            self.line(f"{type_name(value.dtype)} {self.rows[value]}[{self.iterations(loop)}];")

    def keep(self, value: Value, number: str, text: str) -> None:
        """Let the array of a value have its expression in the present iteration."""
        name = f"{self.rows[value]}[{number}]"
        self.line(f"{name} = {text};")
        self.names[value] = name

    def iterations(self, loop: Loop) -> int:
        """The iterations that a thread has; a power of two where texts are for any sizes, so that there are few."""
        count = -(-loop.max_iterations // self.sharers)
        return 1 << (count - 1).bit_length() if self.sizes.are_parameters else count

    def open_iterations(self, loop: Loop) -> str:
        """The head of an unrolled loop over the own iterations; the variable of their number."""
        number, index = self.new("k"), self.new(loop.index.attribute)
        self.line("#pragma unroll")
        self.open(f"for (int {number} = 0; {number} < {self.iterations(loop)}; {number}++) {{")
        self.line(f"const int {index} = {self.own} + {self.sharers} * {number};")
        self.names[loop.index] = index
        return number

    def existence(self, loop: Loop, number: str, extent: str) -> str:
        """The condition under which the loop has an iteration of the own ones, none where it has all."""
        text, whole = f"{self.names[loop.index]} < {extent}", loop.max_iterations // self.sharers
        if self.sizes.are_parameters or not whole:
            return text
        return f"{number} < {whole} || {text}" if loop.max_iterations % self.sharers else ""

    def combine_parts(self, accumulator: Accumulator, names: Sequence[str], parts: int) -> Sequence[str]:
        """Combine partial results that stand for those of several lanes, as these would; the variables of the whole."""
        if parts == 1:
            return names
        apart, part = self.new("apart"), self.new("part")
        self.line("#pragma unroll")
        self.open(f"for (int {apart} = {parts // 2}; {apart} > 0; {apart} /= 2) {{")
        self.line("#pragma unroll")
        self.open(f"for (int {part} = 0; {part} < {apart}; {part}++) {{")
        own, others = ([f"{name}[{at}]" for name in names] for at in (part, f"{part} + {apart}"))
        self.combine(accumulator, own, accumulator.right, others, accumulator.combined)
        self.close()
        self.close()
        return [f"{name}[0]" for name in names]


def _both(condition: str, other: str) -> str:
    """Two conditions as one, either of which may be none."""
    return f"{enclose(condition, 2)} && {enclose(other, 2)}" if condition and other else condition or other
